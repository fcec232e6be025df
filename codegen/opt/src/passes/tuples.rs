//! Tuple simplification: the element of a tuple instruction is its operand, and a tuple of all elements of
//! another, in their order, is that one.

use hlo::attrs::AttrKey;
use hlo::{InstrId, Module, Opcode};

use super::PassCx;
use super::edit::{Edit, each_outside_folds};

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_outside_folds(module, cx.fuel, |e| match e.at().opcode {
        Opcode::GetTupleElement => element(e),
        Opcode::Tuple => whole(e),
        _ => None,
    })
}

fn element(e: &Edit<'_>) -> Option<InstrId> {
    let tuple = e.instr(e.operand(0)?);
    let index = usize::try_from(e.at().attrs.int(AttrKey::Index)?).ok()?;
    if tuple.opcode != Opcode::Tuple {
        return None;
    }
    tuple.operands().get(index).copied()
}

fn whole(e: &Edit<'_>) -> Option<InstrId> {
    let first = e.instr(e.operand(0)?);
    let tuple = *first.operands().first()?;
    let elements = e.instr(tuple).shape.as_tuple()?.len();
    let in_order = e.at().operands().iter().enumerate().all(|(i, &o)| {
        let o = e.instr(o);
        o.opcode == Opcode::GetTupleElement
            && o.operands().first() == Some(&tuple)
            && o.attrs.int(AttrKey::Index) == Some(i as i64)
    });
    (in_order && elements == e.at().operands().len()).then_some(tuple)
}
