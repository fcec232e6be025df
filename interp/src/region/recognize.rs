//! Tapes that are something well known: one operation, a parameter, a comparison by one key.

use hlo::attrs::Direction;
use hlo::elementwise::Binary;
use hlo::literal::Bits;
use hlo::{ElementType, Opcode, with_buffer};

use super::tape::{Register, Tape, What};
use super::{FloatOrder, Order};

/// The operation of both parameters that the only result is.
pub(super) fn binary(tape: &Tape) -> Option<(Opcode, ElementType)> {
    let &[result] = &tape.results[..] else { return None };
    let What::Binary(op, a, b) = tape.what(result) else { return None };
    let opcode = match op {
        Binary::Add => Opcode::Add,
        Binary::Multiply => Opcode::Multiply,
        Binary::Maximum => Opcode::Maximum,
        Binary::Minimum => Opcode::Minimum,
        Binary::And => Opcode::And,
        Binary::Or => Opcode::Or,
        Binary::Xor => Opcode::Xor,
        Binary::Atan2
        | Binary::Divide
        | Binary::Mulhi
        | Binary::Power
        | Binary::Remainder
        | Binary::ShiftLeft
        | Binary::ShiftRightArithmetic
        | Binary::ShiftRightLogical
        | Binary::Subtract => return None,
    };
    // Registers 0 and 1 are the parameters.
    let inputs = tape.registers.iter().filter(|r| matches!(r, Register::Input(_))).count();
    (inputs == 2 && (a.min(b), a.max(b)) == (0, 1)).then(|| (opcode, tape.ty(result)))
}

/// The parameter that the only result is.
pub(super) fn parameter(tape: &Tape) -> Option<usize> {
    match &tape.results[..] {
        &[result] if matches!(tape.registers[result], Register::Input(_)) => Some(result),
        _ => None,
    }
}

/// The order by one key that the only result is.
pub(super) fn order(tape: &Tape) -> Option<Order> {
    let &[result] = &tape.results[..] else { return None };
    let What::Compare(direction, total, a, b) = tape.what(result) else { return None };
    let descending = match direction {
        Direction::Lt => false,
        Direction::Gt => true,
        Direction::Eq | Direction::Ne | Direction::Ge | Direction::Le => return None,
    };
    let floats = if total { FloatOrder::Total } else { FloatOrder::Partial };
    let (left, right, floats) = match (input(tape, a), input(tape, b)) {
        (Some(left), Some(right)) => (left, right, floats),
        (None, None) if total => (merged(tape, a)?, merged(tape, b)?, FloatOrder::Merged),
        (_, _) => return None,
    };
    // Parameters 2k and 2k + 1 are operand k of the two rows. Swapped, the order is the reverse.
    (left / 2 == right / 2 && left != right).then_some(Order {
        key: left / 2,
        descending: descending != (left > right),
        floats,
    })
}

fn input(tape: &Tape, register: usize) -> Option<usize> {
    matches!(tape.registers[register], Register::Input(_)).then_some(register)
}

/// The parameter `x` if the register is `select(x != x, nan, select(x == 0, 0, x))`: what JAX puts before a comparison by
/// total order so that all NaNs are one and largest, and the zeros one.
fn merged(tape: &Tape, register: usize) -> Option<usize> {
    let What::Select(is_nan, nan, rest) = tape.what(register) else { return None };
    let What::Select(is_zero, zero, x) = tape.what(rest) else { return None };
    let x = input(tape, x)?;
    let nan_bits = crate::ops::elementwise::canonical_nan(tape.ty(x))?;
    let fits = tape.what(is_nan) == What::Compare(Direction::Ne, false, x, x)
        && constant(tape, nan) == Some(nan_bits)
        && constant(tape, zero) == Some(0)
        && match tape.what(is_zero) {
            What::Compare(Direction::Eq, false, a, b) => a == x && constant(tape, b) == Some(0),
            What::Compare(..) | What::Binary(..) | What::Select(..) | What::Other => false,
        };
    fits.then_some(x)
}

fn constant(tape: &Tape, register: usize) -> Option<u128> {
    match &tape.registers[register] {
        Register::Constant(value) => Some(with_buffer!(value, v => Bits::bits(v[0]))),
        Register::Input(_) | Register::Step(..) => None,
    }
}
