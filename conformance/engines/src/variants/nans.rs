//! NaNs that are computed with their sign bit set, as x86's arithmetic gives them: where an instruction looks
//! at their bits.
//!
//! The reference's are canonical, which is positive (SEMANTICS.md). NaNs that were given and moved keep their
//! bits, so only what is surely computed is changed: results of arithmetic, and what is moved of these alone.

use hlo::attrs::Direction;
use hlo::opcode::Family;
use hlo::{AttrKey, ElementType, InstrId, Module, Opcode};
use hlo_opt::passes::edit::{Edit, each_outside_folds};
use hlo_opt::passes::{Fuel, Pass};

/// The pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct NegativeNans;

impl Pass for NegativeNans {
    fn name(&self) -> &str {
        "negative-nans"
    }

    fn doc(&self) -> &str {
        "computed NaNs with their sign bit set where bits are looked at"
    }

    fn run(&self, module: &mut Module, fuel: &mut Fuel) -> u64 {
        each_outside_folds(module, fuel, rewritten)
    }
}

/// The instruction on operands whose NaNs are negative.
fn rewritten(e: &mut Edit<'_>) -> Option<InstrId> {
    let sees_bits = match e.at().opcode {
        Opcode::BitcastConvert => e.array(e.id())?.element_type != e.array(e.operand(0)?)?.element_type,
        Opcode::Compare => e.at().attrs.is_total_order(),
        Opcode::Topk => true,
        Opcode::Sort => {
            let root = e.root(e.at().attrs.computation(AttrKey::ToApply)?);
            root.opcode == Opcode::Compare && root.attrs.is_total_order()
        }
        _ => false,
    };
    if !sees_bits {
        return None;
    }
    let operands = e.at().operands().to_vec();
    let mut new = Vec::new();
    for &x in &operands {
        new.push(negative(e, x).unwrap_or(x));
    }
    if new == operands { None } else { e.again(&new) }
}

/// An array with its NaNs negative, if they are computed.
fn negative(e: &mut Edit<'_>, x: InstrId) -> Option<InstrId> {
    let nan = negative_nan(e.array(x)?.element_type)?;
    if !is_computed(e, x) {
        return None;
    }
    let is_nan = e.compare(Direction::Ne, x, x)?;
    let nan = e.scalar_bits(e.array(x)?.element_type, nan);
    let nans = e.fill(nan, x)?;
    e.select(is_nan, nans, x)
}

/// The quiet NaN without payload whose sign bit is set, of real types that have one.
fn negative_nan(ty: ElementType) -> Option<u128> {
    if ty == ElementType::F64 {
        return Some(f64::NAN.copysign(-1.0).to_bits().into());
    }
    let format = ty.float_format()?;
    let bits = format.nan_bits()? | format.sign_mask();
    (!ty.is_complex() && format.has_sign() && format.is_nan(bits)).then(|| bits.into())
}

/// Whether all floats of an array are results of arithmetic.
fn is_computed(e: &Edit<'_>, x: InstrId) -> bool {
    let instr = e.instr(x);
    let are_computed = || {
        let floats = |o: &&InstrId| e.array(**o).is_some_and(|a| a.element_type.is_float());
        instr.operands().iter().filter(floats).all(|&o| is_computed(e, o))
    };
    match (instr.opcode, instr.opcode.family()) {
        (Opcode::Copy | Opcode::Select, _) => are_computed(),
        (Opcode::Real | Opcode::Imag, _) => false,
        (_, Family::Movement) => !instr.operands().is_empty() && are_computed(),
        (_, Family::Elementwise | Family::Contraction | Family::Transform) => true,
        (_, _) => false,
    }
}
