//! Inlining of calls, maps and fusions.
//!
//! The result of a call is that of the callee's instructions on the operands, so they may replace the call,
//! except where the instruction itself matters (random numbers, exchanges with hosts and other devices): what
//! has effects stays. A map applies the same operations to each element, which is what elementwise
//! instructions do.

use hlo::attrs::{AttrKey, AttrValue, Attrs, COMMON};
use hlo::{ComputationId, InstrId, Module, NewInstruction, Opcode, Shape};
use rustc_hash::FxHashMap;

use hlo_library_base::Unsupported;

use super::PassCx;
use super::edit::{
    Edit, Survey, callees_first, each_from_callers, each_outside_folds, layout_seen, same_but_layout,
};
use super::facts::is_elided;

/// Repeats until a fixed point: what was inlined may contain more.
fn repeated(
    module: &mut Module,
    cx: &mut PassCx<'_>,
    mut rewrite: impl FnMut(&mut Edit<'_>) -> Option<InstrId>,
) -> u64 {
    let mut applied = 0;
    loop {
        match each_outside_folds(module, cx.fuel, &mut rewrite) {
            0 => return applied,
            n => applied += n,
        }
    }
}

/// The maximum number of instructions of a program with every call expanded. No call is inlined that would
/// exceed it.
pub(super) const MAX_EXPANDED: u64 = 1 << 20;

/// The maximum number of operations of a computation that is applied to elements: it becomes straight-line
/// code of one function, and LLVM's time for that grows faster than its length.
const MAX_APPLIED_OPERATIONS: u64 = 1 << 13;

/// Refuses computations that are applied to elements and are larger than any that a person writes, their
/// calls included. The computation of a map becomes separate instructions, which are fused as far as that
/// pays.
fn check_applied(module: &Module) -> Result<(), Unsupported> {
    let mut known: FxHashMap<ComputationId, u64> = FxHashMap::default();
    for id in module.computations().iter().flat_map(|&c| module.instructions(c)) {
        let instr = module.instr(id);
        let whole = matches!(
            instr.opcode,
            Opcode::Call
                | Opcode::Fusion
                | Opcode::While
                | Opcode::Conditional
                | Opcode::AsyncStart
                | Opcode::Map
                | Opcode::CustomCall
        );
        if whole {
            continue;
        }
        for callee in instr.attrs.called_computations() {
            let cost = *known.entry(callee).or_insert_with(|| hlo::cost::applied_cost(module, callee));
            if cost > MAX_APPLIED_OPERATIONS {
                let reason = format!(
                    "with a computation of more than {MAX_APPLIED_OPERATIONS} operations for each element, a copy for each call in it"
                );
                return Err(Unsupported::new(module, id, reason));
            }
        }
    }
    Ok(())
}

/// Refuses a program that is too large with every call, loop, branch and map expanded, as it is in the end,
/// in HLO or in emitted code: each level of calls may double it.
pub fn check_size(module: &Module) -> Result<(), Unsupported> {
    check_applied(module)?;
    let mut sizes: FxHashMap<ComputationId, u64> = FxHashMap::default();
    let called = |sizes: &FxHashMap<ComputationId, u64>, id: InstrId| {
        let called = module.instr(id).attrs.called_computations();
        called.iter().filter_map(|c| sizes.get(c)).fold(0, |n: u64, &more| n.saturating_add(more))
    };
    for c in callees_first(module) {
        let size = module.instructions(c).map(|id| called(&sizes, id).saturating_add(1));
        let size = size.fold(0, u64::saturating_add);
        sizes.insert(c, size);
    }
    if sizes.get(&module.entry()).is_none_or(|&n| n <= MAX_EXPANDED) {
        return Ok(());
    }
    match module.instructions(module.entry()).max_by_key(|&id| called(&sizes, id)) {
        Some(id) if called(&sizes, id) > 0 => {
            let reason =
                format!("what it calls is more than {MAX_EXPANDED} instructions, a copy for each call of it");
            Err(Unsupported::new(module, id, reason))
        }
        Some(_) | None => Ok(()),
    }
}

pub(super) fn inline_calls(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    // From callers to callees: what a callee calls is copied once for each caller that stays, not once for
    // each level.
    each_from_callers(module, cx.fuel, |e| {
        let callee =
            (e.at().opcode == Opcode::Call).then(|| e.at().attrs.computation(AttrKey::ToApply)).flatten()?;
        let operands = e.at().operands().to_vec();
        inline(e, callee, &operands)
    })
}

pub(super) fn unfuse(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    let inlined = repeated(module, cx, |e| {
        let callee =
            (e.at().opcode == Opcode::Fusion).then(|| e.at().attrs.computation(AttrKey::Calls)).flatten()?;
        let operands = e.at().operands().to_vec();
        inline(e, callee, &operands)
    });
    inlined + call_fusions(module, cx)
}

/// Turns the fusions that could not be inlined into calls.
///
/// Fusions of the input program must not reach lowering, which takes every fusion for one that
/// [`crate::fusion`] made. A fusion becomes a call instead of being inlined if it has control edges, or if
/// control edges, side effects or other layouts are inside. The call stays one unit of execution: its control
/// predecessors run before all of its instructions, its control successors after them, and the scheduler
/// keeps both orders. The called computation goes through passes, fusion and scheduling like any other.
fn call_fusions(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    let survey = Survey::of(module);
    if survey.run_time_sizes {
        return 0;
    }
    let fusions: Vec<InstrId> = module
        .computations()
        .iter()
        .filter(|c| !survey.folds.contains(c))
        .flat_map(|&c| module.instructions(c))
        .filter(|&id| module.instr(id).opcode == Opcode::Fusion)
        .collect();
    let mut applied = 0;
    for id in fusions {
        let instr = module.instr(id);
        let Some(callee) = instr.attrs.computation(AttrKey::Calls) else { continue };
        let mut attrs = Attrs::new().with(AttrKey::ToApply, AttrValue::Computation(callee));
        for &key in COMMON {
            if let Some(value) = instr.attrs.get(key) {
                attrs.set(key, value.clone());
            }
        }
        if !cx.fuel.take() {
            break;
        }
        let instr = module.instr_mut(id);
        instr.opcode = Opcode::Call;
        instr.attrs = attrs;
        applied += 1;
    }
    applied
}

/// The instructions of `callee` on `operands`, before the calling instruction. Returns the result; `None`
/// where inlining would change something.
pub(super) fn inline(e: &mut Edit<'_>, callee: ComputationId, operands: &[InstrId]) -> Option<InstrId> {
    let module = &*e.module;
    let c = module.computation(callee);
    let root = module.root(callee);
    if c.execution_thread.is_some()
        || e.has_effect()
        || c.parameters().len() != operands.len()
        || (module.instruction_capacity() + c.len()) as u64 > MAX_EXPANDED
        || !passes(module, root, &e.at().shape)
    {
        return None;
    }
    for (p, &o) in c.parameters().iter().zip(operands) {
        if !passes(module, (*p)?, &module.instr(o).shape) {
            return None;
        }
    }
    let body: Vec<InstrId> = module.instructions(callee).collect();
    let stays = |&id: &InstrId| is_elided(module, id) || !module.instr(id).control_predecessors.is_empty();
    if body.iter().any(stays) {
        return None;
    }
    let mut map: FxHashMap<InstrId, InstrId> = FxHashMap::default();
    for id in body {
        let instr = e.instr(id);
        if let Some(n) = instr.parameter_number() {
            map.insert(id, operands[usize::try_from(n).ok()?]);
            continue;
        }
        let mut new = copied(e.module, id, &map)?;
        new.name = e.module.unique_name(&new.name);
        own_fusion(e, &mut new);
        map.insert(id, e.insert(new));
    }
    map.get(&root).copied()
}

/// Whether a value may have another shape inside of the callee: the same up to a layout that nothing there
/// reads.
fn passes(module: &Module, inside: InstrId, outside: &Shape) -> bool {
    let shape = &module.instr(inside).shape;
    shape == outside || same_but_layout(shape, outside) && !layout_seen(module, inside)
}

fn copied(module: &Module, id: InstrId, map: &FxHashMap<InstrId, InstrId>) -> Option<NewInstruction> {
    let instr = module.instr(id);
    let operands = instr.operands().iter().map(|o| map.get(o).copied()).collect::<Option<_>>()?;
    Some(NewInstruction {
        opcode: instr.opcode,
        shape: instr.shape.clone(),
        name: instr.name.clone(),
        operands,
        attrs: instr.attrs.clone(),
        span: instr.span,
    })
}

/// A fusion has a computation of its own, and so has its copy.
fn own_fusion(e: &mut Edit<'_>, new: &mut NewInstruction) {
    if new.opcode != Opcode::Fusion {
        return;
    }
    // Nested fusions too; the depth is that of the text's computations, each of which is copied once.
    let mut order: Vec<ComputationId> = e.module.computations().to_vec();
    let at = e.at().parent();
    let mut made = Vec::new();
    let mut pending = Vec::new();
    new.attrs.map_computations(|c| {
        let copy = twin(e.module, c);
        pending.push((c, copy));
        copy
    });
    while let Some((c, copy)) = pending.pop() {
        made.push(copy);
        let mut map: FxHashMap<InstrId, InstrId> = FxHashMap::default();
        for id in e.module.instructions(c).collect::<Vec<_>>() {
            let Some(mut inner) = copied(e.module, id, &map) else { continue };
            if inner.opcode == Opcode::Fusion {
                let module = &mut *e.module;
                inner.attrs.map_computations(|c| {
                    let copy = twin(module, c);
                    pending.push((c, copy));
                    copy
                });
            }
            // Names are scoped by computation: the copy keeps them, and elided constants their values.
            let new = e.module.append(copy, inner);
            map.insert(id, new);
        }
        if let Some(&root) = map.get(&e.module.root(c)) {
            e.module.set_root(copy, root);
        }
    }
    // Callees stand before callers.
    let position = order.iter().position(|&c| c == at).unwrap_or(0);
    for &copy in made.iter().rev() {
        order.insert(position, copy);
    }
    order[position..position + made.len()].reverse();
    e.module.set_computation_order(order);
    made.into_iter().for_each(|c| e.made_computation(c));
}

/// An empty computation named after another.
fn twin(module: &mut Module, c: ComputationId) -> ComputationId {
    let (name, span) = (module.computation(c).name.clone(), module.computation(c).span);
    let name = module.unique_computation_name(&name);
    module.add_computation(name, span)
}

pub(super) fn inline_maps(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_outside_folds(module, cx.fuel, mapped)
}

fn mapped(e: &mut Edit<'_>) -> Option<InstrId> {
    if e.at().opcode != Opcode::Map {
        return None;
    }
    let callee = e.at().attrs.computation(AttrKey::ToApply)?;
    let dims = e.array(e.id())?.dims.clone();
    let operands = e.at().operands().to_vec();
    match lanes(e, callee, &operands, &dims)?[..] {
        [one] => Some(one),
        _ => None,
    }
}

/// The maximum number of instructions that a call in a scalar computation is expanded to: each level of calls
/// may double it.
const MAX_CALLED: usize = 1 << 10;

/// The instructions of a computation and of its callees, once for each call; those beyond `most` are not
/// counted.
pub(super) fn expanded(module: &Module, c: ComputationId, most: usize) -> usize {
    let mut count = 0;
    for id in module.instructions(c) {
        count += 1;
        if module.instr(id).opcode == Opcode::Call
            && let Some(callee) = module.instr(id).attrs.computation(AttrKey::ToApply)
            && count <= most
        {
            count += expanded(module, callee, most - count);
        }
        if count > most {
            break;
        }
    }
    count
}

/// Applies a scalar computation to arrays, element by element: it consists of elementwise instructions,
/// constants and calls of such computations, on operands of the types of the parameters. Returns the root, or
/// the elements of a root that is a tuple; `None` for anything else.
pub(super) fn lanes(
    e: &mut Edit<'_>,
    callee: ComputationId,
    operands: &[InstrId],
    dims: &[i64],
) -> Option<Vec<InstrId>> {
    let parameters = e.module.computation(callee).parameters().to_vec();
    if parameters.len() != operands.len() {
        return None;
    }
    let root = e.module.root(callee);
    let tuple = e.instr(root).opcode == Opcode::Tuple;
    let roots = if tuple { e.instr(root).operands().to_vec() } else { vec![root] };
    let mut map: FxHashMap<InstrId, InstrId> = FxHashMap::default();
    for (p, &o) in parameters.iter().zip(operands) {
        let p = (*p)?;
        if !e.instr(p).shape.is_scalar() || e.instr(p).shape.element_type() != Some(e.array(o)?.element_type)
        {
            return None;
        }
        map.insert(p, o);
    }
    for id in e.module.instructions(callee).collect::<Vec<_>>() {
        let instr = e.instr(id);
        if instr.opcode == Opcode::Parameter || tuple && id == root {
            continue;
        }
        if !instr.shape.is_scalar() || is_elided(e.module, id) || !instr.control_predecessors.is_empty() {
            return None;
        }
        let mut new = copied(e.module, id, &map)?;
        if new.opcode == Opcode::Call {
            let callee = new.attrs.computation(AttrKey::ToApply)?;
            if expanded(e.module, callee, MAX_CALLED) > MAX_CALLED {
                return None;
            }
            let made = lanes(e, callee, &new.operands, dims)?;
            map.insert(id, *made.first().filter(|_| made.len() == 1)?);
            continue;
        }
        new.name = e.module.unique_name(&new.name);
        let made = if new.opcode == Opcode::Constant {
            let constant = e.insert(new);
            e.fill_dims(constant, dims)?
        } else if new.opcode.is_elementwise() {
            let ty = new.shape.element_type()?;
            e.shaped(new.opcode, Shape::array(ty, dims), &new.operands, new.attrs)?
        } else {
            return None;
        };
        map.insert(id, made);
    }
    roots.iter().map(|r| map.get(r).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computations each of which calls the previous one that many times.
    fn tower(levels: usize, calls: usize) -> Module {
        let mut text =
            "HloModule m\nc0 {\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] sine(p)\n}\n".to_owned();
        for level in 1..=levels {
            let head = if level == levels { "ENTRY e".to_owned() } else { format!("c{level}") };
            text += &format!("{head} {{\n  p = f32[4] parameter(0)\n");
            let mut last = "p".to_owned();
            for k in 0..calls {
                let root = if k + 1 == calls { "ROOT " } else { "" };
                text += &format!("  {root}q{k} = f32[4] call({last}), to_apply=c{}\n", level - 1);
                last = format!("q{k}");
            }
            text += "}\n";
        }
        let parsed = hlo_parser::parse_module(&text, &hlo_parser::ParseOptions::default());
        parsed.module.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics))
    }

    #[test]
    fn calls_of_calls_are_one_computation() {
        let mut module = tower(1000, 1);
        assert_eq!(
            inline_calls(&mut module, &mut PassCx::cpu(&mut crate::passes::Fuel::UNLIMITED.clone())),
            1000
        );
        let opcodes = module.instructions(module.entry()).map(|id| module.instr(id).opcode);
        assert_eq!(opcodes.collect::<Vec<_>>(), [Opcode::Parameter, Opcode::Sine]);
    }

    #[test]
    fn calls_that_double_at_each_level_are_refused() {
        assert!(check_size(&tower(10, 2)).is_ok());
        let refused = check_size(&tower(100, 2)).unwrap_err();
        assert_eq!(refused.opcode, Opcode::Call);
    }
}
