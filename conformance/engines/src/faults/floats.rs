//! Floating-point arithmetic and elementary functions.

use hlo::attrs::{AttrKey, Direction};
use hlo::{ElementType, InstrId, Opcode};

use super::edit::{Edit, is_total};
use super::{Family, Needs, Row, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "maximum-ignores-nan",
        Family::Elementwise,
        "`maximum` and `minimum` give the other operand where one is NaN.",
        "https://github.com/openxla/xla/issues/49174",
        &[Opcode::Maximum, Opcode::Minimum],
        maximum_ignores_nan,
    ),
    row(
        "clamp-drops-nan",
        Family::Elementwise,
        "`clamp` gives the lower bound where the value is NaN.",
        "https://github.com/tensorflow/tensorflow/issues/119628",
        &[Opcode::Clamp],
        clamp_drops_nan,
    ),
    row(
        "clamp-low-wins",
        Family::Elementwise,
        "`clamp` applies the upper bound first, so that the lower one wins where it is the greater.",
        "https://github.com/openxla/xla/pull/17589",
        &[Opcode::Clamp],
        clamp_low_wins,
    ),
    row(
        "negate-as-subtraction",
        Family::Elementwise,
        "`-x` is `0 - x`, which loses the sign of a zero.",
        "https://github.com/llvm/llvm-project/issues/136646",
        &[Opcode::Negate],
        negate_as_subtraction,
    ),
    row(
        "constant-negative-zero-lost",
        Family::Elementwise,
        "-0 in a constant is +0.",
        "https://github.com/tensorflow/tensorflow/issues/61939",
        &[Opcode::Constant],
        constant_negative_zero_lost,
    ),
    row(
        "sign-from-comparisons",
        Family::Elementwise,
        "`sign` is `(x > 0) - (x < 0)`: 0 for NaN and +0 for -0.",
        "https://github.com/jax-ml/jax/issues/23504",
        &[Opcode::Sign],
        sign_from_comparisons,
    ),
    row(
        "total-order-as-partial",
        Family::Elementwise,
        "A comparison by the total order is done by the partial one: false with NaN, and -0 equals 0.",
        "https://github.com/openxla/xla/issues/48119",
        &[Opcode::Compare],
        total_order_as_partial,
    ),
    row(
        "log-plus-one-naive",
        Family::Elementwise,
        "`log-plus-one` rounds `1 + x` before it takes the logarithm, so that small arguments vanish.",
        "https://github.com/jax-ml/jax/issues/39707",
        &[Opcode::LogPlusOne],
        log_plus_one_naive,
    ),
    row(
        "logistic-overflows",
        Family::Elementwise,
        "`logistic` is `e^x / (1 + e^x)`, which is NaN where `e^x` is infinite.",
        "https://github.com/jax-ml/jax/issues/777",
        &[Opcode::Logistic],
        logistic_overflows,
    ),
    row(
        "power-of-negative-base",
        Family::Elementwise,
        "`power` is `e^(y log x)`, which is NaN for every negative base.",
        "https://github.com/jax-ml/jax/issues/7701",
        &[Opcode::Power],
        power_of_negative_base,
    ),
    row(
        "cbrt-of-negative",
        Family::Elementwise,
        "`cbrt` is `x^(1/3)`, which is NaN for negative numbers.",
        "https://github.com/jax-ml/jax/pull/782",
        &[Opcode::Cbrt],
        cbrt_of_negative,
    ),
    row(
        "atan2-without-quadrant",
        Family::Elementwise,
        "`atan2(y, x)` is the arc tangent of `y / x`, which forgets the quadrant.",
        "https://github.com/jax-ml/jax/issues/38681",
        &[Opcode::Atan2],
        atan2_without_quadrant,
    ),
    row(
        "reduce-precision-ignores-mantissa",
        Family::Elementwise,
        "`reduce-precision` to at least as many exponent bits as the type has is dropped, whatever the mantissa bits.",
        "https://github.com/openxla/xla/pull/10687",
        &[Opcode::ReducePrecision],
        reduce_precision_ignores_mantissa,
    ),
    row(
        "asinh-of-negative",
        Family::Elementwise,
        "`asinh` is `log(x + sqrt(x^2 + 1))`, which cancels for negative arguments and overflows for large ones.",
        "https://github.com/llvm/llvm-project/pull/90718",
        &[Opcode::Asinh],
        asinh_of_negative,
    ),
    row(
        "fused-select-by-multiplication",
        Family::Fusion,
        "A `select` of floats in a fusion is `p * a + (1 - p) * b`: NaN and infinities of the value that is not selected come through.",
        "https://github.com/tensorflow/tensorflow/issues/118674",
        &[Opcode::Select, Opcode::Fusion],
        fused_select_by_multiplication,
    )
    .needing(Needs::FUSION),
];

fn maximum_ignores_nan(e: &mut Edit<'_>) -> Option<InstrId> {
    e.one_of(&[Opcode::Maximum, Opcode::Minimum])?;
    let (a, b) = e.pair()?;
    e.float(a)?;
    let attrs = e.attrs();
    let result = e.again(&[a, b], attrs)?;
    let (a_is_nan, b_is_nan) = (e.is_nan(a)?, e.is_nan(b)?);
    let result = e.select(b_is_nan, a, result)?;
    e.select(a_is_nan, b, result)
}

fn clamp_drops_nan(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Clamp)?;
    let [low, x, high] = *e.operands() else { return None };
    e.float(x)?;
    let nan = e.is_nan(x)?;
    let low_everywhere = if e.array(low)?.rank() == e.array(x)?.rank() { low } else { e.spread(low, x)? };
    let x = e.select(nan, low_everywhere, x)?;
    let attrs = e.attrs();
    e.again(&[low, x, high], attrs)
}

fn clamp_low_wins(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Clamp)?;
    let [low, x, high] = *e.operands() else { return None };
    let rank = e.array(x)?.rank();
    let [low, high] = [low, high].map(|bound| (bound, e.array(bound).map(|a| a.rank())));
    let low = if low.1? == rank { low.0 } else { e.spread(low.0, x)? };
    let high = if high.1? == rank { high.0 } else { e.spread(high.0, x)? };
    let below = e.bin(Opcode::Minimum, x, high)?;
    e.bin(Opcode::Maximum, below, low)
}

fn negate_as_subtraction(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Negate)?;
    let x = e.operand(0)?;
    e.wide_float(x).or_else(|| e.complex(x))?;
    let zero = e.number(x, 0.0)?;
    e.bin(Opcode::Subtract, zero, x)
}

fn constant_negative_zero_lost(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Constant)?;
    let ty = e.wide_float(e.at())?;
    let Some(hlo::ConstantValue::Given(literal)) = e.me().attrs.constant_value() else { return None };
    let mut array = literal.as_array()?.clone();
    let sign = 1u128 << (ty.bits() - 1);
    let changed = hlo::with_buffer!(std::sync::Arc::make_mut(&mut array.buffer), v => {
        let lost = v.iter_mut().filter(|x| hlo::Bits::bits(**x) == sign);
        lost.map(|x| *x = hlo::Bits::from_bits(0)).count()
    });
    (changed > 0).then(|| e.constant(array))
}

fn sign_from_comparisons(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Sign)?;
    let x = e.operand(0)?;
    let ty = e.float(x).filter(|&ty| ty != ElementType::F8E8M0FNU)?;
    let zero = e.number(x, 0.0)?;
    let (above, below) = (e.compare(Direction::Gt, x, zero)?, e.compare(Direction::Lt, x, zero)?);
    let (above, below) = (e.convert(above, ty)?, e.convert(below, ty)?);
    e.bin(Opcode::Subtract, above, below)
}

fn total_order_as_partial(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Compare)?;
    is_total(&e.me().attrs).then_some(())?;
    let mut attrs = e.attrs();
    attrs.remove(AttrKey::CompareType);
    let operands = e.operands();
    e.again(&operands, attrs)
}

fn log_plus_one_naive(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::LogPlusOne)?;
    let x = e.operand(0)?;
    e.wide_float(x).or_else(|| e.complex(x))?;
    let one = e.number(x, 1.0)?;
    let sum = e.bin(Opcode::Add, one, x)?;
    e.un(Opcode::Log, sum)
}

fn logistic_overflows(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Logistic)?;
    let x = e.operand(0)?;
    e.wide_float(x)?;
    let (power, one) = (e.un(Opcode::Exponential, x)?, e.number(x, 1.0)?);
    let sum = e.bin(Opcode::Add, power, one)?;
    e.bin(Opcode::Divide, power, sum)
}

fn power_of_negative_base(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Power)?;
    let (x, y) = e.pair()?;
    e.wide_float(x)?;
    let zero = e.number(x, 0.0)?;
    let negative = e.compare(Direction::Lt, x, zero)?;
    let attrs = e.attrs();
    let power = e.again(&[x, y], attrs)?;
    let log = e.un(Opcode::Log, x)?;
    e.select(negative, log, power)
}

fn cbrt_of_negative(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Cbrt)?;
    let x = e.operand(0)?;
    e.wide_float(x)?;
    let third = e.number(x, 1.0 / 3.0)?;
    e.bin(Opcode::Power, x, third)
}

fn atan2_without_quadrant(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Atan2)?;
    let (y, x) = e.pair()?;
    e.wide_float(x)?;
    let (quotient, one) = (e.bin(Opcode::Divide, y, x)?, e.number(x, 1.0)?);
    e.bin(Opcode::Atan2, quotient, one)
}

fn reduce_precision_ignores_mantissa(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::ReducePrecision)?;
    let x = e.operand(0)?;
    let own = [(ElementType::F16, 5), (ElementType::BF16, 8), (ElementType::F32, 8), (ElementType::F64, 11)];
    let ty = e.float(x)?;
    let own = own.iter().find(|(t, _)| *t == ty)?.1;
    (e.me().attrs.int(AttrKey::ExponentBits)? >= own).then_some(x)
}

fn asinh_of_negative(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Asinh)?;
    let x = e.operand(0)?;
    e.wide_float(x)?;
    let (square, one) = (e.bin(Opcode::Multiply, x, x)?, e.number(x, 1.0)?);
    let sum = e.bin(Opcode::Add, square, one)?;
    let root = e.un(Opcode::Sqrt, sum)?;
    let argument = e.bin(Opcode::Add, x, root)?;
    e.un(Opcode::Log, argument)
}

fn fused_select_by_multiplication(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Select)?;
    e.in_fusion().then_some(())?;
    let [p, a, b] = *e.operands() else { return None };
    let ty = e.wide_float(a)?;
    let p = if e.array(p)?.rank() == e.array(a)?.rank() { p } else { e.spread(p, a)? };
    let (yes, no) = (e.convert(p, ty)?, e.un(Opcode::Not, p)?);
    let no = e.convert(no, ty)?;
    let (a, b) = (e.bin(Opcode::Multiply, yes, a)?, e.bin(Opcode::Multiply, no, b)?);
    e.bin(Opcode::Add, a, b)
}
