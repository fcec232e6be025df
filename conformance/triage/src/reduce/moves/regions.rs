//! Applied computations made simpler, and instructions of several operands cut to fewer.

use hlo::attrs::{AttrKey, AttrValue, Direction};
use hlo::builder::{ComputationBuilder, scalar_region};
use hlo::{ComputationId, ElementType, InstrId, Module, Opcode, Shape};

use super::Edit;
use super::calls::copied;
use super::dims::refit;
use super::loops::renumber;
use super::signatures::result_is_open;
use crate::reduce::Candidate;
use crate::reduce::program::all_instructions;
use crate::reduce::search::Context;

/// How many operands belong together at each position: inputs of reduce-like instructions come with initial
/// values, of scatters with updates.
fn arity(module: &Module, id: InstrId) -> Option<usize> {
    let i = module.instr(id);
    let n = i.operands().len();
    match i.opcode {
        Opcode::Sort => Some(n),
        Opcode::Reduce | Opcode::ReduceWindow | Opcode::Scatter => Some(n / 2),
        _ => None,
    }
}

/// Each of several operands that are sorted or folded together, dropped.
pub(super) fn operands(context: &Context<'_>) -> Vec<Edit> {
    let module = &context.program.module;
    let mut edits: Vec<Edit> = Vec::new();
    for id in all_instructions(module) {
        let parts = module.instr(id).operands().len();
        if module.instr(id).opcode == Opcode::Concatenate && parts > 1 {
            for k in 0..parts {
                edits.push(Box::new(move |c| without_part(c, id, k)));
            }
        }
        let Some(n) = arity(module, id).filter(|&n| n > 1) else { continue };
        for k in 0..n {
            edits.push(Box::new(move |c| without(c, id, n, k).is_some()));
        }
    }
    edits
}

/// One part less that is concatenated.
fn without_part(c: &mut Candidate, id: InstrId, k: usize) -> bool {
    if !c.alive(id) {
        return false;
    }
    let mut parts = c.module.instr(id).operands().to_vec();
    if parts.len() < 2 || k >= parts.len() {
        return false;
    }
    parts.remove(k);
    c.module.set_operands(id, &parts);
    refit(c)
}

fn without(c: &mut Candidate, id: InstrId, n: usize, k: usize) -> Option<()> {
    if !c.alive(id) || arity(&c.module, id) != Some(n) {
        return None;
    }
    let i = c.module.instr(id);
    let (opcode, operands) = (i.opcode, i.operands().to_vec());
    let callee = i.attrs.computation(AttrKey::ToApply)?;
    let elements = i.shape.as_tuple()?.to_vec();
    let users = result_is_open(&c.module, id)?;
    if users.iter().any(|&u| c.module.instr(u).attrs.int(AttrKey::Index) == Some(k as i64)) {
        return None;
    }
    let (copy, _) = copied(c, callee)?;
    // Parameters of the computation that belong to operand k.
    let gone = if opcode == Opcode::Sort { [2 * k, 2 * k + 1] } else { [k, n + k] };
    let parameters: Vec<InstrId> =
        c.module.computation(copy).parameters().iter().copied().collect::<Option<_>>()?;
    let root = c.module.root(copy);
    if c.module.instr(root).opcode == Opcode::Tuple && opcode != Opcode::Sort {
        let left: Vec<InstrId> = c
            .module
            .instr(root)
            .operands()
            .iter()
            .enumerate()
            .filter(|&(j, _)| j != k)
            .map(|(_, &o)| o)
            .collect();
        let new = match *left {
            [only] => only,
            _ => c.add_tuple(root, &left),
        };
        c.module.set_root(copy, new);
    }
    // What still reads them reads the ones of another operand of the same type, if there is one.
    for (position, &g) in gone.iter().enumerate() {
        let other = (0..n).filter(|&j| j != k).map(|j| {
            let of = if opcode == Opcode::Sort { [2 * j, 2 * j + 1] } else { [j, n + j] };
            parameters[of[position]]
        });
        let p = *parameters.get(g)?;
        let same = other.into_iter().find(|&o| c.module.instr(o).shape == c.module.instr(p).shape);
        if let Some(same) = same {
            c.replace(p, same);
        }
    }
    let region = without_parameters(c, copy, &gone)?;
    let dropped: &[usize] = match opcode {
        Opcode::Sort => &[k],
        Opcode::Scatter => &[k, n + 1 + k],
        _ => &[k, n + k],
    };
    let left: Vec<InstrId> =
        operands.iter().enumerate().filter(|(j, _)| !dropped.contains(j)).map(|(_, &o)| o).collect();
    let shapes: Vec<Shape> =
        elements.iter().enumerate().filter(|&(j, _)| j != k).map(|(_, s)| s.clone()).collect();
    c.module.set_operands(id, &left);
    c.module.instr_mut(id).attrs.set(AttrKey::ToApply, AttrValue::Computation(region));
    if let [only] = &*shapes {
        c.module.instr_mut(id).shape = only.clone();
        for u in users {
            c.replace(u, id);
            c.module.remove(u);
        }
    } else {
        c.module.instr_mut(id).shape = Shape::tuple(shapes);
        for u in users {
            renumber(c, u, k, None)?;
        }
    }
    Some(())
}

/// A copy of a computation that lacks parameters which nothing in it reads.
fn without_parameters(
    c: &mut Candidate,
    computation: ComputationId,
    gone: &[usize],
) -> Option<ComputationId> {
    let parameters: Vec<InstrId> =
        c.module.computation(computation).parameters().iter().copied().collect::<Option<_>>()?;
    let dropped: Vec<InstrId> = gone.iter().filter_map(|&g| parameters.get(g).copied()).collect();
    // Instructions that nothing needs any more may still read them.
    let ids: Vec<InstrId> = c.module.instructions(computation).collect();
    let root = c.module.root(computation);
    for &id in ids.iter().rev() {
        if id != root && c.module.users(id).is_empty() && c.module.instr(id).opcode != Opcode::Parameter {
            c.module.remove(id);
        }
    }
    if dropped.iter().any(|&p| !c.module.users(p).is_empty() || c.module.root(computation) == p) {
        return None;
    }
    let mut number = 0;
    for &p in &parameters {
        if dropped.contains(&p) {
            c.module.remove(p);
        } else {
            c.module.instr_mut(p).attrs.set(AttrKey::ParameterNumber, AttrValue::Int(number));
            number += 1;
        }
    }
    // The list of parameters is made anew by copying.
    copied(c, computation).map(|(copy, _)| copy)
}

/// Each applied computation, by one instruction.
pub(super) fn simpler(context: &Context<'_>) -> Vec<Edit> {
    let module = &context.program.module;
    let mut edits: Vec<Edit> = Vec::new();
    for id in all_instructions(module) {
        let i = module.instr(id);
        let key = match i.opcode {
            Opcode::Reduce
            | Opcode::ReduceWindow
            | Opcode::Scatter
            | Opcode::AllReduce
            | Opcode::ReduceScatter
            | Opcode::Sort => AttrKey::ToApply,
            Opcode::SelectAndScatter => AttrKey::Scatter,
            _ => continue,
        };
        let Some(callee) = i.attrs.computation(key) else { continue };
        let Some(signature) = module.program_shape(callee) else { continue };
        let types: Option<Vec<ElementType>> = signature.parameters.iter().map(Shape::element_type).collect();
        let Some(types) = types else { continue };
        if i.opcode == Opcode::Sort {
            edits.push(Box::new(move |c| {
                apply(c, id, key, |m| {
                    hlo::builder::comparator(m, "compare", Direction::Lt, &pairs(&types)).ok()
                })
            }));
        } else if let [ty, other] = *types
            && ty == other
        {
            for opcode in [Opcode::Add, Opcode::Or] {
                edits.push(Box::new(move |c| {
                    apply(c, id, key, |m| scalar_region(m, opcode.name(), opcode, ty).ok())
                }));
            }
            edits.push(Box::new(move |c| apply(c, id, key, |m| second(m, ty))));
        }
    }
    edits
}

fn pairs(types: &[ElementType]) -> Vec<ElementType> {
    types.iter().step_by(2).copied().collect()
}

/// The second of two scalars.
fn second(module: &mut Module, ty: ElementType) -> Option<ComputationId> {
    let mut b = ComputationBuilder::new(module, "second");
    b.parameter("x", Shape::scalar(ty));
    b.parameter("y", Shape::scalar(ty));
    Some(b.finish())
}

fn apply(
    c: &mut Candidate,
    id: InstrId,
    key: AttrKey,
    make: impl FnOnce(&mut Module) -> Option<ComputationId>,
) -> bool {
    if !c.alive(id) {
        return false;
    }
    let Some(region) = make(&mut c.module) else { return false };
    c.module.instr_mut(id).attrs.set(key, AttrValue::Computation(region));
    true
}
