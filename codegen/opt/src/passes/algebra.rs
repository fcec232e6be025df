//! Algebraic simplification: identities of arithmetic, logic and comparisons that keep every bit.
//!
//! Integers wrap, so the identities of rings hold, and those of division in the table of SEMANTICS.md. Of
//! floats only identities whose sides round the same exact value, and only for f16, bf16, f32 and f64:
//! narrower types lack zeros, signs or NaNs in ways of their own. Arithmetic canonicalizes NaNs and data
//! movement keeps them, so where one side is the operand itself, the operand must not hold another NaN
//! ([`nan_is_canonical`]). Zeros of either sign differ: `x + 0` turns -0 into +0, `x - 0` and `x + (-0)` do
//! not.

use hlo::attrs::Direction;
use hlo::{ElementType, InstrId, Module, Opcode, TypeClass};

use super::PassCx;
use super::edit::{Edit, each_outside_folds};
use super::facts::{bounds, float_bits, float_value, integer, is_ieee, is_number, nan_is_canonical, splat};

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_outside_folds(module, cx.fuel, |e| {
        if !e.at().opcode.is_elementwise() {
            return None;
        }
        let ty = e.array(e.id())?.element_type;
        match e.at().opcode {
            Opcode::Select => return select(e),
            Opcode::Compare => return compare(e),
            Opcode::Real | Opcode::Imag => return part(e),
            Opcode::Complex => return joined(e),
            _ => {}
        }
        // Mixed types: a conversion too.
        if e.at().operands().iter().any(|&o| e.array(o).map(|a| a.element_type) != Some(ty)) {
            return None;
        }
        match (ty.class(), e.at().operands().len()) {
            (TypeClass::Signed | TypeClass::Unsigned, 1) => unary(e, ty),
            (TypeClass::Pred, 1) => unary(e, ty),
            (TypeClass::Float, 1) => unary(e, ty),
            (TypeClass::Signed | TypeClass::Unsigned, 2) => integers(e, ty),
            (TypeClass::Pred, 2) => predicates(e),
            (TypeClass::Float, 2) if is_ieee(ty) => floats(e, ty),
            (_, _) => None,
        }
    })
}

/// Both operands, with a constant second if the operation is commutative.
fn pair(e: &Edit<'_>) -> Option<[InstrId; 2]> {
    let [a, b] = e.operands()?;
    let constant = |x: InstrId| splat(e.module, x).is_some();
    let ty = e.at().shape.element_type()?;
    let swap = e.at().opcode.commutes(ty) && constant(a) && !constant(b);
    Some(if swap { [b, a] } else { [a, b] })
}

/// A splat with the instruction's dimensions.
fn repeated(e: &mut Edit<'_>, ty: ElementType, bits: u128) -> Option<InstrId> {
    let at = e.id();
    let scalar = e.scalar_bits(ty, bits);
    e.fill(scalar, at)
}

fn ones(ty: ElementType) -> u128 {
    u128::MAX >> (128 - ty.bits())
}

fn integers(e: &mut Edit<'_>, ty: ElementType) -> Option<InstrId> {
    let [a, b] = pair(e)?;
    let value = splat(e.module, b).map(|(_, bits)| bits & ones(ty));
    let (zero, one, all) = (value == Some(0), value == Some(1), value == Some(ones(ty)));
    // One of a single bit is also all of them, and minus one where there is a sign.
    let one = one && ty.bits() > 1;
    let same = a == b;
    match e.at().opcode {
        Opcode::Add if zero => Some(a),
        Opcode::Subtract if zero => Some(a),
        Opcode::Subtract if same => repeated(e, ty, 0),
        Opcode::Multiply if one => Some(a),
        Opcode::Multiply if zero => Some(b),
        Opcode::Multiply if all && ty.is_signed_integer() && ty.bits() > 1 => e.unary(Opcode::Negate, a),
        Opcode::Divide if one => Some(a),
        // MIN rem 1 is 0 too.
        Opcode::Remainder if one => repeated(e, ty, 0),
        Opcode::And if same || all => Some(a),
        Opcode::And if zero => Some(b),
        Opcode::Or if same || zero => Some(a),
        Opcode::Or if all => Some(b),
        Opcode::Xor if zero => Some(a),
        Opcode::Xor if same => repeated(e, ty, 0),
        Opcode::Xor if all => e.unary(Opcode::Not, a),
        Opcode::Maximum | Opcode::Minimum if same => Some(a),
        Opcode::ShiftLeft | Opcode::ShiftRightArithmetic | Opcode::ShiftRightLogical if zero => Some(a),
        Opcode::Power if one => Some(a),
        _ => None,
    }
}

/// Logic, and arithmetic of 0 and 1 whose result is "not zero".
fn predicates(e: &mut Edit<'_>) -> Option<InstrId> {
    let [a, b] = pair(e)?;
    let value = splat(e.module, b).map(|(_, bits)| bits == 1);
    match e.at().opcode {
        Opcode::And | Opcode::Minimum | Opcode::Multiply => match value {
            Some(true) => Some(a),
            Some(false) => Some(b),
            None => (a == b).then_some(a),
        },
        Opcode::Or | Opcode::Maximum | Opcode::Add => match value {
            Some(false) => Some(a),
            Some(true) => Some(b),
            None => (a == b).then_some(a),
        },
        Opcode::Xor => match value {
            Some(false) => Some(a),
            Some(true) => e.unary(Opcode::Not, a),
            None if a == b => repeated(e, ElementType::Pred, 0),
            None => None,
        },
        _ => None,
    }
}

fn floats(e: &mut Edit<'_>, ty: ElementType) -> Option<InstrId> {
    let [a, b] = pair(e)?;
    let number = splat(e.module, b).and_then(|(_, bits)| float_value(ty, bits));
    let is = |x: f64| is_number(e.module, b, x);
    let itself = || nan_is_canonical(e.module, a).then_some(a);
    match e.at().opcode {
        // -0 is the neutral element, for both zeros.
        Opcode::Add if is(-0.0) => itself(),
        Opcode::Subtract if is(0.0) => itself(),
        Opcode::Multiply | Opcode::Divide | Opcode::Power if is(1.0) => itself(),
        Opcode::Maximum | Opcode::Minimum if a == b => itself(),
        // The same exact value, rounded once; NaN is canonical on both sides.
        Opcode::Add if e.instr(b).opcode == Opcode::Negate => {
            let y = negated(e, b, ty)?;
            e.binary(Opcode::Subtract, a, y)
        }
        Opcode::Subtract if e.instr(b).opcode == Opcode::Negate => {
            let y = negated(e, b, ty)?;
            e.binary(Opcode::Add, a, y)
        }
        // x / 2^k and x * 2^-k.
        Opcode::Divide => {
            let inverse = 1.0 / number?;
            let is_power_of_two = |x: f64| x.is_normal() && x.to_bits() << 12 == 0;
            if !is_power_of_two(number?) || !is_power_of_two(inverse) {
                return None;
            }
            // Denormal or beyond the range in a narrow type: none that it holds exactly, or one that is still
            // exact.
            let bits = float_bits(ty, inverse)?;
            let factor = repeated(e, ty, bits)?;
            e.binary(Opcode::Multiply, a, factor)
        }
        // Both round x * x once: `power` is correctly rounded, and through f64, where a square of 16 bits is
        // exact, rounds nothing else.
        Opcode::Power if is(2.0) => e.binary(Opcode::Multiply, a, a),
        // So are quotients and roots; but a root of -0 is -0, and one of minus infinity no number.
        Opcode::Power if is(-1.0) => {
            let one = repeated(e, ty, float_bits(ty, 1.0)?)?;
            e.binary(Opcode::Divide, one, a)
        }
        Opcode::Power if is(0.5) && is_ieee(ty) => {
            let (zero, infinity) = (float_bits(ty, 0.0)?, float_bits(ty, f64::INFINITY)?);
            let (zero, infinity) = (repeated(e, ty, zero)?, repeated(e, ty, infinity)?);
            let root = e.unary(Opcode::Sqrt, a)?;
            let root = e.binary(Opcode::Add, root, zero)?;
            let minus = repeated(e, ty, float_bits(ty, f64::NEG_INFINITY)?)?;
            let lowest = e.compare(Direction::Eq, a, minus)?;
            e.select(lowest, infinity, root)
        }
        _ => None,
    }
}

/// The operand of a negation of the same type.
fn negated(e: &Edit<'_>, x: InstrId, ty: ElementType) -> Option<InstrId> {
    let y = *e.instr(x).operands().first()?;
    (e.array(y)?.element_type == ty).then_some(y)
}

/// `not`, `negate` and `abs` twice. Negation of floats flips a bit, also of a NaN; of integers it wraps. The
/// types without a sign, or with a pattern of -0 that means NaN, are left alone.
fn unary(e: &mut Edit<'_>, ty: ElementType) -> Option<InstrId> {
    let x = e.operand(0)?;
    let inner = e.instr(x);
    let y = *inner.operands().first()?;
    if ty.is_float() && !is_ieee(ty) || e.array(y)?.element_type != ty {
        return None;
    }
    match (e.at().opcode, inner.opcode) {
        (Opcode::Not, Opcode::Not) | (Opcode::Negate, Opcode::Negate) => Some(y),
        (Opcode::Abs, Opcode::Abs) => Some(x),
        // abs(MIN) = MIN = abs(-MIN)
        (Opcode::Abs, Opcode::Negate) => e.unary(Opcode::Abs, y),
        (_, _) => None,
    }
}

/// Selection copies bits.
fn select(e: &mut Edit<'_>) -> Option<InstrId> {
    let [p, a, b] = e.operands()?;
    let ty = e.array(e.id())?.element_type;
    if [a, b].iter().any(|&o| e.array(o).map(|a| a.element_type) != Some(ty)) {
        return None;
    }
    if a == b {
        return Some(a);
    }
    if let Some(p) = integer(e.module, p) {
        return Some(if p == 0 { b } else { a });
    }
    let not = e.instr(p);
    if not.opcode == Opcode::Not {
        let p = *not.operands().first()?;
        return e.select(p, b, a);
    }
    None
}

/// Comparison of something with itself; a NaN is not equal to itself, so only integers and predicates.
fn compare(e: &mut Edit<'_>) -> Option<InstrId> {
    let [a, b] = e.operands()?;
    let ty = e.array(a)?.element_type;
    let direction = *e.at().attrs.direction()?;
    if a == b && !ty.is_float() && !ty.is_complex() {
        let holds = matches!(direction, Direction::Eq | Direction::Le | Direction::Ge);
        return repeated(e, ElementType::Pred, u128::from(holds));
    }
    if ty == ElementType::Pred && e.array(b)?.element_type == ElementType::Pred {
        let value = integer(e.module, b)?;
        return match (direction, value) {
            (Direction::Eq, 1) | (Direction::Ne, 0) => Some(a),
            (Direction::Eq, 0) | (Direction::Ne, 1) => e.unary(Opcode::Not, a),
            (_, _) => None,
        };
    }
    // Decided by ranges, such as that no count is negative.
    let ((a_low, a_high), (b_low, b_high)) = (bounds(e.module, a)?, bounds(e.module, b)?);
    let (less, greater) = (a_high < b_low, a_low > b_high);
    let (least, most) = (a_low >= b_high, a_high <= b_low);
    let (never, always) = match direction {
        Direction::Eq => (less || greater, false),
        Direction::Ne => (false, less || greater),
        Direction::Lt => (least, less),
        Direction::Ge => (less, least),
        Direction::Gt => (most, greater),
        Direction::Le => (greater, most),
    };
    if never || always { repeated(e, ElementType::Pred, u128::from(always)) } else { None }
}

/// The real or imaginary part of a complex number that was just built: parts are copied.
fn part(e: &Edit<'_>) -> Option<InstrId> {
    let x = e.instr(e.operand(0)?);
    let slot = usize::from(e.at().opcode == Opcode::Imag);
    let part = *x.operands().get(slot)?;
    (x.opcode == Opcode::Complex && e.array(part)?.element_type == e.array(e.id())?.element_type)
        .then_some(part)
}

fn joined(e: &Edit<'_>) -> Option<InstrId> {
    let [re, im] = e.operands()?;
    let (re, im) = (e.instr(re), e.instr(im));
    let z = *re.operands().first()?;
    (re.opcode == Opcode::Real
        && im.opcode == Opcode::Imag
        && im.operands() == [z]
        && e.array(z)?.element_type == e.array(e.id())?.element_type)
        .then_some(z)
}
