//! Parts of a computation put into one of their own, which is fused, called, repeated or chosen.

use hlo::attrs::{AttrKey, AttrValue, Direction, FusionKind};
use hlo::builder::ComputationBuilder;
use hlo::{Attrs, ComputationId, ElementType, InstrId, NewInstruction, Opcode, Shape};
use rustc_hash::FxHashMap;

use super::Mutator;

/// A part of a computation with one result, and a computation that does the same.
struct Outlined {
    /// The instruction whose value it gives.
    root: InstrId,
    computation: ComputationId,
    /// Its parameters, in the old computation.
    operands: Vec<InstrId>,
}

/// Whether an instruction may move into another computation.
fn movable(module: &hlo::Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    let flags = instr.opcode.flags();
    let stays = matches!(
        instr.opcode,
        Opcode::Parameter
            | Opcode::CustomCall
            | Opcode::Domain
            | Opcode::AfterAll
            | Opcode::AddDependency
            | Opcode::PartitionId
            | Opcode::ReplicaId
            | Opcode::While
            | Opcode::Conditional
            | Opcode::Call
            | Opcode::Fusion
    );
    !flags.side_effect
        && !flags.collective
        && !stays
        && instr.shape.as_array().is_some_and(|a| !a.is_dynamic())
}

/// A part that ends in some instruction: operands are taken in while all their users are inside, so that the
/// part is convex: no path leaves it and returns.
fn outlined(m: &mut Mutator<'_>) -> Option<Outlined> {
    let root = m.site(|module, id| {
        movable(module, id)
            && !module.instr(id).operands().is_empty()
            && module.instr(id).operands().iter().all(|&o| module.instr(o).shape.as_array().is_some())
    })?;
    let limit = 1 + m.choices.below(8);
    let mut inside = vec![root];
    let mut i = 0;
    while i < inside.len() && inside.len() < limit {
        let operands = m.module.instr(inside[i]).operands().to_vec();
        for o in operands {
            let closed = m.module.users(o).iter().all(|u| inside.contains(&u.user));
            let fits = closed && movable(&m.module, o) && m.free(o) && inside.len() < limit;
            let arrays = |&p: &InstrId| m.module.instr(p).shape.as_array().is_some();
            if fits && !inside.contains(&o) && m.module.instr(o).operands().iter().all(arrays) {
                inside.push(o);
            }
        }
        i += 1;
    }
    let order: Vec<InstrId> =
        m.module.instructions(m.module.instr(root).parent()).filter(|id| inside.contains(id)).collect();
    let mut operands: Vec<InstrId> = Vec::new();
    for &id in &order {
        for &o in m.module.instr(id).operands() {
            if !inside.contains(&o) && !operands.contains(&o) {
                operands.push(o);
            }
        }
    }
    let computation = copied(m, &order, &operands);
    Some(Outlined { root, computation, operands })
}

/// A computation of these instructions, the last of which is its root, with parameters for `operands`.
fn copied(m: &mut Mutator<'_>, order: &[InstrId], operands: &[InstrId]) -> ComputationId {
    let shapes: Vec<Shape> = operands.iter().map(|&o| m.module.instr(o).shape.without_layout()).collect();
    let mut b = ComputationBuilder::new(&mut m.module, "outlined");
    let mut known: FxHashMap<InstrId, InstrId> = FxHashMap::default();
    for (&o, shape) in operands.iter().zip(shapes) {
        known.insert(o, b.parameter("p", shape));
    }
    let computation = b.finish();
    for &id in order {
        let instr = m.module.instr(id);
        let inner: Vec<InstrId> = instr.operands().iter().map(|o| known[o]).collect();
        let new = NewInstruction {
            opcode: instr.opcode,
            shape: instr.shape.clone(),
            name: instr.name.clone(),
            operands: inner.as_slice().into(),
            attrs: instr.attrs.clone(),
            span: instr.span,
        };
        let name = m.module.unique_name(&new.name);
        let copy = m.module.append(computation, NewInstruction { name, ..new });
        m.module.set_root(computation, copy);
        known.insert(id, copy);
    }
    computation
}

/// Replaces the part's root by a value and removes the part.
fn replace(m: &mut Mutator<'_>, part: &Outlined, new: InstrId) {
    m.module.replace_all_uses(part.root, new);
    let parent = m.module.instr(new).parent();
    m.prune(parent);
}

pub(super) fn fusion(m: &mut Mutator<'_>) -> Option<()> {
    let part = outlined(m)?;
    let kind = m.choices.pick(FusionKind::ALL);
    let attrs = Attrs::new()
        .with(AttrKey::FusionKind, AttrValue::FusionKind(kind))
        .with(AttrKey::Calls, AttrValue::Computation(part.computation));
    let new = m.before(part.root, Opcode::Fusion, &part.operands, attrs)?;
    replace(m, &part, new);
    Some(())
}

fn call_of(m: &mut Mutator<'_>, part: &Outlined) -> Option<InstrId> {
    let attrs = Attrs::new().with(AttrKey::ToApply, AttrValue::Computation(part.computation));
    m.before(part.root, Opcode::Call, &part.operands, attrs)
}

pub(super) fn call(m: &mut Mutator<'_>) -> Option<()> {
    let part = outlined(m)?;
    let new = call_of(m, &part)?;
    replace(m, &part, new);
    Some(())
}

/// The part in a loop of one to three iterations: of what it is made from, or of its own result where that
/// has the shape of an operand.
pub(super) fn while_loop(m: &mut Mutator<'_>) -> Option<()> {
    let part = outlined(m)?;
    let trips = m.choices.int(1, 3) as i32;
    let own = m.module.instr(part.root).shape.without_layout();
    let shapes: Vec<Shape> =
        part.operands.iter().map(|&o| m.module.instr(o).shape.without_layout()).collect();
    // The state: the counter, the operands, the result.
    let mut all = vec![Shape::scalar(ElementType::S32)];
    all.extend(shapes.iter().cloned());
    all.push(own.clone());
    let (state, n) = (Shape::tuple(all), part.operands.len() as i64);
    let again = shapes.iter().position(|s| s.compatible(&own)).filter(|_| m.choices.chance(128));

    let mut b = ComputationBuilder::new(&mut m.module, "condition");
    let whole = b.parameter("s", state.clone());
    let counter = b.get(whole, 0).ok()?;
    let limit = b.scalar(trips);
    b.compare(Direction::Lt, counter, limit).ok()?;
    let condition = b.finish();

    let mut b = ComputationBuilder::new(&mut m.module, "iterate");
    let whole = b.parameter("s", state);
    let counter = b.get(whole, 0).ok()?;
    let one = b.scalar(1);
    let up = b.binary(Opcode::Add, counter, one).ok()?;
    let mut next = vec![up];
    for i in 1..=n {
        next.push(b.get(whole, i).ok()?);
    }
    let made = b.call(part.computation, &next[1..]).ok()?;
    if let Some(i) = again {
        next[i + 1] = made;
    }
    next.push(made);
    b.tuple(&next).ok()?;
    let body = b.finish();

    let zero = zero(m, part.root);
    // What the result is before the first iteration: the part as it is, so that the loop has something to
    // write over.
    let first = call_of(m, &part)?;
    let mut init = vec![zero];
    init.extend(&part.operands);
    init.push(first);
    let init = m.before(part.root, Opcode::Tuple, &init, Attrs::new())?;
    let attrs = Attrs::new()
        .with(AttrKey::Condition, AttrValue::Computation(condition))
        .with(AttrKey::Body, AttrValue::Computation(body));
    let looped = m.before(part.root, Opcode::While, &[init], attrs)?;
    let attrs = Attrs::new().with(AttrKey::Index, AttrValue::Int(n + 1));
    let new = m.before(part.root, Opcode::GetTupleElement, &[looped], attrs)?;
    replace(m, &part, new);
    Some(())
}

/// An s32 constant of 0.
fn zero(m: &mut Mutator<'_>, anchor: InstrId) -> InstrId {
    let value = std::sync::Arc::new(hlo::Literal::scalar(0i32));
    let value = AttrValue::Literal(hlo::ConstantValue::Given(value));
    let attrs = Attrs::new().with(AttrKey::ConstantValue, value);
    m.before_shaped(anchor, Opcode::Constant, Shape::scalar(ElementType::S32), &[], attrs)
}

/// The part in one branch; in the other the same, or an operand of the same shape. A predicate of the program
/// chooses, or a constant.
pub(super) fn conditional(m: &mut Mutator<'_>) -> Option<()> {
    let part = outlined(m)?;
    let own = m.module.instr(part.root).shape.without_layout();
    let shapes: Vec<Shape> =
        part.operands.iter().map(|&o| m.module.instr(o).shape.without_layout()).collect();
    let same = shapes.iter().position(|s| s.compatible(&own));
    let state = Shape::tuple(shapes);
    let mut branches = Vec::new();
    for second in [false, true] {
        let mut b = ComputationBuilder::new(&mut m.module, "branch");
        let whole = b.parameter("s", state.clone());
        let parts: Vec<InstrId> =
            (0..part.operands.len() as i64).map(|i| b.get(whole, i).ok()).collect::<Option<_>>()?;
        match same.filter(|_| second) {
            Some(i) => b.set_root(parts[i]),
            None => {
                b.call(part.computation, &parts).ok()?;
            }
        }
        branches.push(b.finish());
    }
    let scalars = m.earlier(part.root, |a| a.rank() == 0 && a.element_type == ElementType::Pred);
    let predicate = if scalars.is_empty() {
        let yes = m.choices.chance(160);
        let value =
            AttrValue::Literal(hlo::ConstantValue::Given(std::sync::Arc::new(hlo::Literal::scalar(yes))));
        let attrs = Attrs::new().with(AttrKey::ConstantValue, value);
        m.before_shaped(part.root, Opcode::Constant, Shape::scalar(ElementType::Pred), &[], attrs)
    } else {
        m.choices.pick(&scalars)
    };
    let argument = m.before(part.root, Opcode::Tuple, &part.operands, Attrs::new())?;
    let attrs = Attrs::new()
        .with(AttrKey::TrueComputation, AttrValue::Computation(branches[0]))
        .with(AttrKey::FalseComputation, AttrValue::Computation(branches[1]));
    let new = m.before(part.root, Opcode::Conditional, &[predicate, argument, argument], attrs)?;
    replace(m, &part, new);
    Some(())
}
