//! A conditional whose branch is known: a predicate that is a constant, or an index, which outside of the branches means the last one. What it
//! becomes is a call of that branch, for the call inliner.

use hlo::attrs::{AttrKey, AttrValue, Attrs};
use hlo::{ElementType, InstrId, Module, Opcode};

use super::Fuel;
use super::edit::{Edit, each_outside_folds};
use super::facts::integer;

pub(super) fn run(module: &mut Module, fuel: &mut Fuel) -> u64 {
    each_outside_folds(module, fuel, call)
}

fn call(e: &mut Edit<'_>) -> Option<InstrId> {
    if e.at().opcode != Opcode::Conditional {
        return None;
    }
    let index = e.operand(0)?;
    let branches = e.at().attrs.called_computations();
    let only = branches.len() == 1;
    // A branch with an effect stays where its order is written.
    if e.module.computation(*branches.first()?).execution_thread.is_some()
        || super::edit::has_effect(e.module, e.id())
    {
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
