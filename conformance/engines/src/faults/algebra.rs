//! Simplifications of several elementwise instructions that do not hold.

use hlo::attrs::Direction;
use hlo::{InstrId, Opcode};

use super::edit::Edit;
use super::{Family, Needs, Row, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "subtract-self-is-zero",
        Family::Elementwise,
        "`x - x` of floats is 0, also for infinities and NaN.",
        "https://github.com/jax-ml/jax/issues/38602",
        &[Opcode::Subtract],
        subtract_self_is_zero,
    )
    .needing(Needs::CHAIN),
    row(
        "multiply-by-zero-is-zero",
        Family::Elementwise,
        "`x * 0` of floats is 0, also for infinities, NaN and negative numbers.",
        "https://github.com/jax-ml/jax/issues/1052",
        &[Opcode::Multiply],
        multiply_by_zero_is_zero,
    )
    .needing(Needs::CHAIN),
    row(
        "sqrt-of-square-is-abs",
        Family::Elementwise,
        "`sqrt(x * x)` of floats is `abs(x)`, although the square may over- or underflow.",
        "https://github.com/openxla/xla/issues/42732",
        &[Opcode::Sqrt],
        sqrt_of_square_is_abs,
    )
    .needing(Needs::CHAIN),
    row(
        "power-of-half-is-sqrt",
        Family::Elementwise,
        "`power(x, 0.5)` is `sqrt(x)`, also for -0 and -inf.",
        "https://github.com/openxla/xla/pull/14478",
        &[Opcode::Power],
        power_of_half_is_sqrt,
    )
    .needing(Needs::CHAIN),
    row(
        "log-of-exponential-is-identity",
        Family::Elementwise,
        "`log(exponential(x))` is `x`, although the exponential may over- or underflow.",
        "https://github.com/openxla/xla/pull/45560",
        &[Opcode::Log],
        log_of_exponential_is_identity,
    )
    .needing(Needs::CHAIN),
    row(
        "abs-of-integer-square-dropped",
        Family::Elementwise,
        "`abs(x * x)` of signed integers is `x * x`, although the product may wrap to a negative number.",
        "https://github.com/tensorflow/tensorflow/issues/118178",
        &[Opcode::Abs],
        abs_of_integer_square_dropped,
    )
    .needing(Needs::CHAIN),
    row(
        "integer-division-reassociated",
        Family::Elementwise,
        "`(a * b) / c` and `(a / b) * c` of integers are done in the other order, `a * (b / c)` and `(a * c) / b`.",
        "https://github.com/llvm/llvm-project/pull/121534",
        &[Opcode::Divide, Opcode::Multiply],
        integer_division_reassociated,
    )
    .needing(Needs::CHAIN),
    row(
        "select-of-comparison-is-maximum",
        Family::Elementwise,
        "`select(a > b, a, b)` of floats is `maximum(a, b)`, which differs for NaN and for zeros.",
        "https://github.com/openxla/xla/pull/22950",
        &[Opcode::Select],
        select_of_comparison_is_maximum,
    )
    .needing(Needs::CHAIN),
];

fn subtract_self_is_zero(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Subtract)?;
    let (a, b) = e.pair()?;
    (a == b).then_some(())?;
    e.wide_float(a).or_else(|| e.complex(a))?;
    e.number(a, 0.0)
}

fn multiply_by_zero_is_zero(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Multiply)?;
    let (a, b) = e.pair()?;
    e.wide_float(a)?;
    if e.is_splat(b, 0.0) {
        Some(b)
    } else if e.is_splat(a, 0.0) {
        Some(a)
    } else {
        None
    }
}

fn sqrt_of_square_is_abs(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Sqrt)?;
    let square = e.operand(0)?;
    let [a, b] = *e.operands_of(square, Opcode::Multiply)? else { return None };
    (a == b).then_some(())?;
    e.wide_float(a)?;
    e.un(Opcode::Abs, a)
}

fn power_of_half_is_sqrt(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Power)?;
    let (x, y) = e.pair()?;
    e.wide_float(x)?;
    e.is_splat(y, 0.5).then_some(())?;
    e.un(Opcode::Sqrt, x)
}

fn log_of_exponential_is_identity(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Log)?;
    let power = e.operand(0)?;
    let x = *e.operands_of(power, Opcode::Exponential)?.first()?;
    e.wide_float(x).map(|_| x)
}

fn abs_of_integer_square_dropped(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Abs)?;
    let square = e.operand(0)?;
    let [a, b] = *e.operands_of(square, Opcode::Multiply)? else { return None };
    (a == b && e.integer(a)?.is_signed_integer()).then_some(square)
}

fn integer_division_reassociated(e: &mut Edit<'_>) -> Option<InstrId> {
    let opcode = e.one_of(&[Opcode::Divide, Opcode::Multiply])?;
    let (first, c) = e.pair()?;
    e.integer(first)?;
    let inner = if opcode == Opcode::Divide { Opcode::Multiply } else { Opcode::Divide };
    let [a, b] = *e.operands_of(first, inner)? else { return None };
    if opcode == Opcode::Divide {
        let quotient = e.bin(Opcode::Divide, b, c)?;
        e.bin(Opcode::Multiply, a, quotient)
    } else {
        let product = e.bin(Opcode::Multiply, a, c)?;
        e.bin(Opcode::Divide, product, b)
    }
}

fn select_of_comparison_is_maximum(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Select)?;
    let [p, x, y] = *e.operands() else { return None };
    e.float(x)?;
    let [a, b] = *e.operands_of(p, Opcode::Compare)? else { return None };
    let greater = match *e.instr(p).attrs.direction()? {
        Direction::Gt | Direction::Ge => true,
        Direction::Lt | Direction::Le => false,
        Direction::Eq | Direction::Ne => return None,
    };
    let straight = (x, y) == (a, b);
    (straight || (x, y) == (b, a)).then_some(())?;
    e.bin(if greater == straight { Opcode::Maximum } else { Opcode::Minimum }, x, y)
}
