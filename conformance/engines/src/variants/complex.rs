//! Complex products in which a factor that is real or imaginary only scales.
//!
//! The definition `(a + bi)(c + di) = (ac - bd) + (ad + bc)i` has `0 * inf` where `d` is 0 and `a` or `b` is
//! infinite. Compilers that replace `x * 1` by `x`, or multiply by a real number part by part, have no NaN
//! there. What is finite by the definition stays as it is.

use hlo::attrs::Direction;
use hlo::{InstrId, Module, Opcode};
use hlo_opt::passes::edit::{Edit, each, folds};
use hlo_opt::passes::{Fuel, Pass};

/// The pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct ComplexProducts;

impl Pass for ComplexProducts {
    fn name(&self) -> &str {
        "products-by-parts"
    }

    fn doc(&self) -> &str {
        "complex products in which a real or imaginary factor scales an infinite one part by part"
    }

    fn run(&self, module: &mut Module, fuel: &mut Fuel) -> u64 {
        let folds = folds(module);
        each(module, fuel, |e| if folds.contains(&e.at().parent()) { None } else { by_parts(e) })
    }
}

/// The real and the imaginary part of a value.
#[derive(Clone, Copy)]
struct Parts {
    re: InstrId,
    im: InstrId,
}

impl Parts {
    fn of(e: &mut Edit<'_>, x: InstrId) -> Option<Parts> {
        Some(Parts { re: e.unary(Opcode::Real, x)?, im: e.unary(Opcode::Imag, x)? })
    }

    /// These where `p` holds.
    fn or(self, e: &mut Edit<'_>, p: InstrId, others: Parts) -> Option<Parts> {
        Some(Parts { re: e.select(p, self.re, others.re)?, im: e.select(p, self.im, others.im)? })
    }

    /// Where the real, and where the imaginary part is all there is.
    fn alone(self, e: &mut Edit<'_>, zeros: InstrId) -> Option<[InstrId; 2]> {
        let is = |e: &mut Edit<'_>, part, other| {
            let nothing = e.compare(Direction::Eq, other, zeros)?;
            let something = e.compare(Direction::Ne, part, zeros)?;
            e.binary(Opcode::And, nothing, something)
        };
        Some([is(e, self.re, self.im)?, is(e, self.im, self.re)?])
    }
}

fn by_parts(e: &mut Edit<'_>) -> Option<InstrId> {
    let ty = e.array(e.id())?.element_type;
    if e.at().opcode != Opcode::Multiply || !ty.is_complex() {
        return None;
    }
    let [a, b] = e.operands()?;
    let product = e.again(&[a, b])?;
    let defined = Parts::of(e, product)?;
    let zero = e.scalar_bits(ty.real_part(), 0);
    let zeros = e.fill(zero, product)?;
    let (a, b) = (Parts::of(e, a)?, Parts::of(e, b)?);
    let mut result = defined;
    for (x, factor) in [(b, a), (a, b)] {
        let [real, imaginary] = factor.alone(e, zeros)?;
        let scaled = Parts {
            re: e.binary(Opcode::Multiply, x.re, factor.re)?,
            im: e.binary(Opcode::Multiply, x.im, factor.re)?,
        };
        let crossed = e.binary(Opcode::Multiply, x.im, factor.im)?;
        let rotated =
            Parts { re: e.unary(Opcode::Negate, crossed)?, im: e.binary(Opcode::Multiply, x.re, factor.im)? };
        result = scaled.or(e, real, result)?;
        result = rotated.or(e, imaginary, result)?;
    }
    let finite = [e.unary(Opcode::IsFinite, defined.re)?, e.unary(Opcode::IsFinite, defined.im)?];
    let finite = e.binary(Opcode::And, finite[0], finite[1])?;
    let result = defined.or(e, finite, result)?;
    e.binary(Opcode::Complex, result.re, result.im)
}
