//! Recognition of well-known bytecode: one operation, a parameter, a comparison by one key.

use hlo::attrs::Direction;
use hlo::elementwise::Binary;
use hlo::literal::Bits;
use hlo::{ElementType, Opcode, with_buffer};

use super::bytecode::{Bytecode, Register, What};
use super::{FloatOrder, Order};

/// The operation of both parameters that the only result is.
pub(super) fn binary(bytecode: &Bytecode) -> Option<(Opcode, ElementType)> {
    let &[result] = &bytecode.results[..] else { return None };
    let What::Binary(op, a, b) = bytecode.what(result) else { return None };
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
    let inputs = bytecode.registers.iter().filter(|r| matches!(r, Register::Input(_))).count();
    (inputs == 2 && (a.min(b), a.max(b)) == (0, 1)).then(|| (opcode, bytecode.ty(result)))
}

/// The parameter that the only result is.
pub(super) fn parameter(bytecode: &Bytecode) -> Option<usize> {
    match &bytecode.results[..] {
        &[result] if matches!(bytecode.registers[result], Register::Input(_)) => Some(result),
        _ => None,
    }
}

/// The order by one key that the only result is.
pub(super) fn order(bytecode: &Bytecode) -> Option<Order> {
    let &[result] = &bytecode.results[..] else { return None };
    let What::Compare(direction, total, a, b) = bytecode.what(result) else { return None };
    let descending = match direction {
        Direction::Lt => false,
        Direction::Gt => true,
        Direction::Eq | Direction::Ne | Direction::Ge | Direction::Le => return None,
    };
    let floats = if total { FloatOrder::Total } else { FloatOrder::Partial };
    let (left, right, floats) = match (input(bytecode, a), input(bytecode, b)) {
        (Some(left), Some(right)) => (left, right, floats),
        (None, None) if total => (merged(bytecode, a)?, merged(bytecode, b)?, FloatOrder::Merged),
        (_, _) => return None,
    };
    // Parameters 2k and 2k + 1 are operand k of the two rows. Swapped, the order is the reverse.
    (left / 2 == right / 2 && left != right).then_some(Order {
        key: left / 2,
        descending: descending != (left > right),
        floats,
    })
}

fn input(bytecode: &Bytecode, register: usize) -> Option<usize> {
    matches!(bytecode.registers[register], Register::Input(_)).then_some(register)
}

/// The parameter `x` if the register is `select(x != x, nan, select(x == 0, 0, x))`: what JAX puts before a
/// comparison by total order so that all NaNs are one and largest, and the zeros one.
fn merged(bytecode: &Bytecode, register: usize) -> Option<usize> {
    let What::Select(is_nan, nan, rest) = bytecode.what(register) else { return None };
    let What::Select(is_zero, zero, x) = bytecode.what(rest) else { return None };
    let x = input(bytecode, x)?;
    let nan_bits = crate::ops::elementwise::canonical_nan(bytecode.ty(x))?;
    let fits = bytecode.what(is_nan) == What::Compare(Direction::Ne, false, x, x)
        && constant(bytecode, nan) == Some(nan_bits)
        && constant(bytecode, zero) == Some(0)
        && match bytecode.what(is_zero) {
            What::Compare(Direction::Eq, false, a, b) => a == x && constant(bytecode, b) == Some(0),
            What::Compare(..) | What::Binary(..) | What::Select(..) | What::Other => false,
        };
    fits.then_some(x)
}

fn constant(bytecode: &Bytecode, register: usize) -> Option<u128> {
    match &bytecode.registers[register] {
        Register::Constant(value) => Some(with_buffer!(value, v => Bits::bits(v[0]))),
        Register::Input(_) | Register::Step(..) => None,
    }
}
