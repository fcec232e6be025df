//! Angles: the inverse trigonometric functions, of `f64` operands.

use super::logarithm::root;
use super::{Digits, fabs, polynomial, sqrt};
use crate::scalar::float::copysign;
use crate::{Emit, FloatPredicate, IntPredicate, Prim, Result, Value};

/// `(asin t - t) / t^3` in `t^2`, on `|t| <= 1/2`: 2^-58 and 2^-35.
const ASIN: [f64; 13] = [
    0.1666666666666676,
    0.07499999999970772,
    0.0446428571746316,
    0.03038194270705402,
    0.022372215003631905,
    0.017351611794547552,
    0.013980822455470655,
    0.011398901961826434,
    0.010780282514444607,
    0.0037063951760716203,
    0.02170725204866704,
    -0.02099847852791245,
    0.03262807432160706,
];
const ASIN_FEW: [f64; 7] = [
    0.16666667180280278,
    0.07499948889783363,
    0.04465997441257983,
    0.030112501308489005,
    0.024604833397632316,
    0.007509180252003121,
    0.03464660240514233,
];
/// `(atan t - t) / t^3` in `t^2`, on `|t| <= 1`: 2^-56 and 2^-33.
const ATAN: [f64; 20] = [
    -0.33333333333333065,
    0.19999999999951182,
    -0.14285714282560383,
    0.11111111006639207,
    -0.09090906996871388,
    0.07692279774749207,
    -0.06666403575195112,
    0.05880525158443364,
    -0.052535074946497035,
    0.04722286803255814,
    -0.04219090767046087,
    0.03664019382014789,
    -0.02990124329019779,
    0.02198175302507444,
    -0.013897731586448542,
    0.007194557000613084,
    -0.0028839421573707475,
    0.0008309850430530417,
    -0.00015208945368579393,
    1.3218062432384957e-05,
];
const ATAN_FEW: [f64; 11] = [
    -0.3333333213329094,
    0.19999927232768958,
    -0.142841671943814,
    0.11094504185611642,
    -0.08985444153107183,
    0.07259457990499986,
    -0.05451639941793669,
    0.034476438873702164,
    -0.016299887837094833,
    0.004926543641414757,
    -0.0006979911932385648,
];
/// pi/2 and pi in two pieces.
const HALF_PI: [f64; 2] = [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17];
const PI: [f64; 2] = [std::f64::consts::PI, 1.224_646_799_147_353_2e-16];

/// `constant - x`
fn from<'ctx>(e: &Emit<'_, 'ctx>, constant: [f64; 2], x: Value<'ctx>) -> Result<Value<'ctx>> {
    e.fsub(e.f64(constant[0]), e.fsub(x, e.f64(constant[1]))?)
}

/// The angle of the point (x, y): of the smaller magnitude over the larger one, then by octant.
pub(super) fn atan2<'ctx>(
    e: &Emit<'_, 'ctx>,
    y: Value<'ctx>,
    x: Value<'ctx>,
    digits: Digits,
) -> Result<Value<'ctx>> {
    let (a, b) = (fabs(e, y)?, fabs(e, x)?);
    let steep = e.fcmp(FloatPredicate::OGT, a, b)?;
    let (small, large) = (e.select(steep, b, a)?, e.select(steep, a, b)?);
    let t = e.fdiv(small, large)?;
    // Of two infinities, and of two zeros.
    let t = e.select(e.fcmp(FloatPredicate::OEQ, a, b)?, e.f64(1.0), t)?;
    let t = e.select(e.fcmp(FloatPredicate::OEQ, e.fadd(a, b)?, e.f64(0.0))?, e.f64(0.0), t)?;
    let z = e.fmul(t, t)?;
    let terms: &[f64] = if digits == Digits::All { &ATAN } else { &ATAN_FEW };
    let angle = e.fma(e.fmul(t, z)?, polynomial(e, z, terms)?, t)?;
    let angle = e.select(steep, from(e, HALF_PI, angle)?, angle)?;
    let left = e.icmp(IntPredicate::SLT, e.bitcast(x, Prim::I64)?, e.i64(0))?;
    let angle = e.select(left, from(e, PI, angle)?, angle)?;
    // The sign of a NaN says nothing, and a NaN stays one. Not LLVM's copysign, whose sign LLVM 22 rounds to
    // f16 by a function that is not there where the result is.
    let sign = e.and(e.bitcast(y, Prim::I64)?, e.i64(i64::MIN))?;
    e.bitcast(e.or(e.bitcast(angle, Prim::I64)?, sign)?, Prim::F64)
}

/// `asin t` in two parts for `t = |x|`, or for `t = sqrt((1 - |x|) / 2)` where `|x| > 1/2`, which the mask
/// says: there `asin x = pi/2 - 2 asin t`.
fn reduced<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, digits: Digits) -> Result<[Value<'ctx>; 3]> {
    let magnitude = fabs(e, x)?;
    let large = e.fcmp(FloatPredicate::OGT, magnitude, e.f64(0.5))?;
    let (half, zero) = (e.f64(0.5), e.f64(0.0));
    let z = e.select(large, e.fma(magnitude, e.f64(-0.5), half)?, e.fmul(magnitude, magnitude)?)?;
    if digits == Digits::Few {
        let t = e.select(large, sqrt(e, z)?, magnitude)?;
        return Ok([t, e.fmul(e.fmul(t, z)?, polynomial(e, z, &ASIN_FEW)?)?, large]);
    }
    let [t, low] = root(e, [z, zero])?;
    let (t, low) = (e.select(large, t, magnitude)?, e.select(large, low, zero)?);
    Ok([t, e.fma(e.fmul(t, z)?, polynomial(e, z, &ASIN)?, low)?, large])
}

/// `constant - 2 (t + rest)`: the first difference is exact or nearly.
fn from_double<'ctx>(
    e: &Emit<'_, 'ctx>,
    constant: [f64; 2],
    [t, rest]: [Value<'ctx>; 2],
) -> Result<Value<'ctx>> {
    let first = e.fma(t, e.f64(-2.0), e.f64(constant[0]))?;
    e.fsub(first, e.fma(rest, e.f64(2.0), e.f64(-constant[1]))?)
}

/// `asin x`
pub(super) fn asin<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, digits: Digits) -> Result<Value<'ctx>> {
    let [t, rest, large] = reduced(e, x, digits)?;
    let above = from_double(e, HALF_PI, [t, rest])?;
    copysign(e, e.select(large, above, e.fadd(t, rest)?)?, x)
}

/// `acos x`
pub(super) fn acos<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, digits: Digits) -> Result<Value<'ctx>> {
    let [t, rest, large] = reduced(e, x, digits)?;
    let angle = e.fadd(t, rest)?;
    let left = e.fcmp(FloatPredicate::OLT, x, e.f64(0.0))?;
    let above = e.select(left, from_double(e, PI, [t, rest])?, e.fadd(angle, angle)?)?;
    let near = from(e, HALF_PI, copysign(e, angle, x)?)?;
    // Beyond 1 the root is no number.
    e.select(large, above, near)
}
