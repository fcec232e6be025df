//! Contraction: `a * b + c`, `a * b - c` and `c - a * b` of floats with one rounding.
//!
//! Up to f32, products are exact in f64 (at most 48 bits, exponents far inside of its range), and the sum is
//! rounded to 53 bits and then to the type. That is the fused operation but where the exact sum is within
//! 2^-53 of the middle between two numbers of the type: half a unit of the last place from the truth either
//! way. In f64 the product is split into its rounded value and the rest (Dekker), and both are added; where
//! the rest would not be exact (products that overflow or are close to denormal) nothing is contracted.

use hlo::attrs::Direction;
use hlo::{ElementType, InstrId, Module, Opcode};
use hlo_opt::passes::edit::{Edit, each, folds};
use hlo_opt::passes::{Fuel, Pass};

/// The pass.
#[derive(Clone, Copy, Debug)]
pub struct Fma;

impl Pass for Fma {
    fn name(&self) -> &str {
        "fma"
    }

    fn doc(&self) -> &str {
        "does not round products of floats that are added to something"
    }

    fn run(&self, module: &mut Module, fuel: &mut Fuel) -> u64 {
        let folds = folds(module);
        each(module, fuel, |e| if folds.contains(&e.at().parent()) { None } else { contracted(e) })
    }
}

/// The position of the product among the operands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

fn contracted(e: &mut Edit<'_>) -> Option<InstrId> {
    let opcode = e.at().opcode;
    if !matches!(opcode, Opcode::Add | Opcode::Subtract) {
        return None;
    }
    let ty = e.array(e.id())?.element_type;
    // The steps of powers of two are no rounding to nearest.
    if !ty.is_float() || ty == ElementType::F8E8M0FNU {
        return None;
    }
    let [x, y] = e.operands()?;
    let is_product = |id: InstrId| {
        let same = |o: &InstrId| e.array(*o).is_some_and(|a| a.element_type == ty);
        let instr = e.instr(id);
        instr.opcode == Opcode::Multiply && same(&id) && instr.operands().iter().all(same)
    };
    let (side, product, c) = match (is_product(x), is_product(y)) {
        (true, _) => (Side::Left, x, y),
        (false, true) => (Side::Right, y, x),
        (false, false) => return None,
    };
    if e.array(c)?.element_type != ty {
        return None;
    }
    let &[a, b] = e.instr(product).operands() else { return None };
    if ty == ElementType::F64 {
        return dekker(e, opcode, side, [a, b, c], product);
    }
    let [a, b, c] = [a, b, c].map(|x| e.convert(x, ElementType::F64));
    let product = e.binary(Opcode::Multiply, a?, b?)?;
    let sum = combined(e, opcode, side, product, c?)?;
    e.convert(sum, ty)
}

fn combined(e: &mut Edit<'_>, opcode: Opcode, side: Side, p: InstrId, c: InstrId) -> Option<InstrId> {
    match side {
        Side::Left => e.binary(opcode, p, c),
        Side::Right => e.binary(opcode, c, p),
    }
}

/// A number in every element of an array like another.
fn number(e: &mut Edit<'_>, value: f64, like: InstrId) -> Option<InstrId> {
    let scalar = e.scalar_bits(ElementType::F64, u128::from(value.to_bits()));
    e.fill(scalar, like)
}

/// Two halves of 26 bits whose sum is the number.
fn halves(e: &mut Edit<'_>, x: InstrId) -> Option<[InstrId; 2]> {
    let factor = number(e, 134_217_729.0, x)?;
    let t = e.binary(Opcode::Multiply, factor, x)?;
    let rest = e.binary(Opcode::Subtract, t, x)?;
    let high = e.binary(Opcode::Subtract, t, rest)?;
    let low = e.binary(Opcode::Subtract, x, high)?;
    Some([high, low])
}

fn dekker(
    e: &mut Edit<'_>,
    opcode: Opcode,
    side: Side,
    [a, b, c]: [InstrId; 3],
    product: InstrId,
) -> Option<InstrId> {
    let ([a1, a2], [b1, b2]) = (halves(e, a)?, halves(e, b)?);
    // The rest: ((a1 b1 - p) + a1 b2 + a2 b1) + a2 b2, each step exact.
    let mut rest = e.binary(Opcode::Multiply, a1, b1)?;
    rest = e.binary(Opcode::Subtract, rest, product)?;
    for (x, y) in [(a1, b2), (a2, b1), (a2, b2)] {
        let part = e.binary(Opcode::Multiply, x, y)?;
        rest = e.binary(Opcode::Add, rest, part)?;
    }
    // sum + error = product + c exactly (Knuth); the signs of a subtraction first.
    let (p, c) = match (opcode, side) {
        (Opcode::Subtract, Side::Left) => (product, e.unary(Opcode::Negate, c)?),
        (Opcode::Subtract, Side::Right) => {
            rest = e.unary(Opcode::Negate, rest)?;
            (e.unary(Opcode::Negate, product)?, c)
        }
        (_, _) => (product, c),
    };
    let sum = e.binary(Opcode::Add, p, c)?;
    let back = e.binary(Opcode::Subtract, sum, p)?;
    let other = e.binary(Opcode::Subtract, sum, back)?;
    let (left, right) = (e.binary(Opcode::Subtract, p, other)?, e.binary(Opcode::Subtract, c, back)?);
    let error = e.binary(Opcode::Add, left, right)?;
    let small = e.binary(Opcode::Add, error, rest)?;
    let fused = e.binary(Opcode::Add, sum, small)?;
    // Only where all of that was exact, and the result is not 0, whose sign could differ.
    let size = e.unary(Opcode::Abs, product)?;
    let (least, zero) = (number(e, 2f64.powi(-900), size)?, number(e, 0.0, size)?);
    let large = e.compare(Direction::Gt, size, least)?;
    let finite = e.unary(Opcode::IsFinite, fused)?;
    let not_zero = e.compare(Direction::Ne, fused, zero)?;
    let sure = e.binary(Opcode::And, large, finite)?;
    let sure = e.binary(Opcode::And, sure, not_zero)?;
    let plain = combined(
        e,
        opcode,
        side,
        product,
        if opcode == Opcode::Subtract && side == Side::Left { e.operand(1)? } else { c },
    )?;
    e.select(sure, fused, plain)
}
