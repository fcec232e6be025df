//! Simplification of conditionals.
//!
//! A known branch (a constant predicate, or a constant index, where out of range means the last branch): the
//! conditional becomes a call of that branch, for the call inliner.
//!
//! If-conversion: if all branches are cheap, all are computed and the results selected, which copies bits. A
//! branch that is not taken may then run: elementwise instructions and movements, which neither trap nor have
//! effects.

use hlo::attrs::{AttrKey, AttrValue, Attrs, Direction};
use hlo::{ComputationId, ElementType, InstrId, Module, Opcode, Shape};

use super::PassCx;
use super::calls::inline;
use super::edit::{Edit, each, each_outside_folds};
use super::facts::{element_flops, integer};

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_outside_folds(module, cx.fuel, call)
}

fn call(e: &mut Edit<'_>) -> Option<InstrId> {
    if e.at().opcode != Opcode::Conditional {
        return None;
    }
    let index = e.operand(0)?;
    let branches = e.at().attrs.called_computations();
    let only = branches.len() == 1;
    // A branch with an effect stays where its order is written.
    if e.module.computation(*branches.first()?).execution_thread.is_some() || e.has_effect() {
        return None;
    }
    let value = if only { 0 } else { integer(e.module, index)? };
    let n = if e.instr(index).shape.element_type() == Some(ElementType::Pred) {
        usize::from(value == 0)
    } else {
        usize::try_from(value).ok().filter(|&n| n < branches.len()).unwrap_or(branches.len() - 1)
    };
    let operand = e.operand(n + 1)?;
    let attrs = Attrs::new().with(AttrKey::ToApply, AttrValue::Computation(*branches.get(n)?));
    let shape = e.at().shape.clone();
    e.shaped(Opcode::Call, shape, &[operand], attrs)
}

/// If-conversion: the maximum number of branches, of instructions in one, of elements of any value in it, and
/// its maximum cost in simple vector operations.
const MAX_BRANCHES: usize = 4;
const MAX_INSTRUCTIONS: usize = 32;
const MAX_ELEMENTS: i64 = 4096;
const MAX_FLOPS: f64 = 16384.0;

/// In computations that fold values too: neither a branch nor a selection is an addition.
pub(super) fn selections(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each(module, cx.fuel, selected)
}

fn selected(e: &mut Edit<'_>) -> Option<InstrId> {
    if e.at().opcode != Opcode::Conditional {
        return None;
    }
    let index = e.operand(0)?;
    let branches = e.at().attrs.called_computations();
    if !(2..=MAX_BRANCHES).contains(&branches.len()) || !branches.iter().all(|&c| is_cheap(e.module, c)) {
        return None;
    }
    let operands = e.at().operands().get(1..)?.to_vec();
    let mut results = Vec::with_capacity(branches.len());
    for (&branch, &operand) in branches.iter().zip(&operands) {
        results.push(inline(e, branch, &[operand])?);
    }
    // The index of the branch: the last one for every other value.
    let ty = e.instr(index).shape.element_type()?;
    let mut chosen = Vec::new();
    for i in 0..branches.len() - 1 {
        chosen.push(if ty == ElementType::Pred {
            index
        } else {
            let number = e.scalar_bits(ty, i as u128);
            e.compare(Direction::Eq, index, number)?
        });
    }
    let Some(elements) = e.at().shape.as_tuple().map(<[_]>::len) else {
        return choice(e, &chosen, &results);
    };
    let mut parts = Vec::with_capacity(elements);
    for i in 0..elements {
        let mut values = Vec::with_capacity(results.len());
        for &r in &results {
            values.push(e.get(r, i as i64)?);
        }
        parts.push(choice(e, &chosen, &values)?);
    }
    e.tuple(&parts)
}

/// The value whose predicate holds first, or the last one.
fn choice(e: &mut Edit<'_>, chosen: &[InstrId], values: &[InstrId]) -> Option<InstrId> {
    let (&last, others) = values.split_last()?;
    let mut value = last;
    for (&p, &other) in chosen.iter().zip(others).rev() {
        e.array(other)?;
        value = e.select(p, other, value)?;
    }
    Some(value)
}

/// Whether computing a branch speculatively is cheap.
fn is_cheap(module: &Module, c: ComputationId) -> bool {
    let small = |shape: &Shape| {
        shape
            .leaves()
            .iter()
            .all(|s| s.as_array().and_then(|a| a.checked_elements()).is_some_and(|n| n <= MAX_ELEMENTS))
    };
    let flops = |id: InstrId| {
        let instr = module.instr(id);
        let elements = instr.shape.as_array().map_or(0, |s| s.elements()) as f64;
        if instr.opcode.is_elementwise() { elements * element_flops(instr.opcode) } else { 0.0 }
    };
    module.computation(c).len() <= MAX_INSTRUCTIONS
        && module.instructions(c).map(flops).sum::<f64>() <= MAX_FLOPS
        && module.instructions(c).all(|id| {
            let instr = module.instr(id);
            let moves = matches!(
                instr.opcode,
                Opcode::Parameter
                    | Opcode::Constant
                    | Opcode::Iota
                    | Opcode::Broadcast
                    | Opcode::Reshape
                    | Opcode::Transpose
                    | Opcode::Slice
                    | Opcode::Concatenate
                    | Opcode::Pad
                    | Opcode::Reverse
                    | Opcode::DynamicSlice
                    | Opcode::DynamicUpdateSlice
                    | Opcode::GetTupleElement
                    | Opcode::Tuple
            );
            let through = instr.opcode == Opcode::Parameter || small(&instr.shape);
            (moves || instr.opcode.is_elementwise() && instr.attrs.called_computations().is_empty())
                && through
        })
        && small(&module.instr(module.root(c)).shape)
}
