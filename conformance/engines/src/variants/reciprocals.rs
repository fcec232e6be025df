//! Quotients by what repeats numbers, or by constants, as products with the reciprocals: `x / broadcast(c)`
//! as `x * broadcast(1 / c)`.

use hlo::{ElementType, InstrId, Module, Opcode};
use hlo_opt::passes::edit::{Edit, each_outside_folds};
use hlo_opt::passes::{Fuel, Pass};

/// The pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reciprocals;

impl Pass for Reciprocals {
    fn name(&self) -> &str {
        "reciprocals"
    }

    fn doc(&self) -> &str {
        "products with reciprocals for quotients by what repeats numbers"
    }

    fn run(&self, module: &mut Module, fuel: &mut Fuel) -> u64 {
        each_outside_folds(module, fuel, multiplied)
    }
}

fn multiplied(e: &mut Edit<'_>) -> Option<InstrId> {
    let [x, divisor] = e.operands()?;
    let (array, of) = (e.array(e.id())?, e.instr(divisor));
    let ty = array.element_type;
    let same = [x, divisor].iter().all(|&o| e.array(o).is_some_and(|a| a.element_type == ty));
    // Types of a byte and less are computed in wider ones.
    let real = ty.is_float() && ty.bits() >= 16;
    if e.at().opcode != Opcode::Divide || of.opcode != Opcode::Broadcast || !real || !same {
        return None;
    }
    let few = *of.operands().first()?;
    let source = match e.instr(few).opcode {
        Opcode::Convert => *e.instr(few).operands().first()?,
        _ => few,
    };
    let is_constant = e.instr(source).opcode == Opcode::Constant;
    if !is_constant && e.array(few)?.checked_elements()? >= array.checked_elements()? {
        return None;
    }
    let one = e.scalar_bits(ElementType::S32, 1);
    let one = e.convert(one, ty)?;
    e.times_reciprocal(x, divisor, one)
}
