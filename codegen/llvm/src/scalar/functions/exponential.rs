//! `e^x` and functions derived from it.

use super::{Digits, at_least, at_most, fabs, has_avx512, polynomial, power_of_two, rint, scale, scaled_sum};
use crate::scalar::float::copysign;
use crate::{Emit, FloatPredicate, Prim, Result, Value};

struct Constants {
    /// ln 2 in two pieces: what the first multiple takes away leaves an exact difference.
    ln_2: [f64; 2],
    /// `(e^r - 1 - r) / r^2` on `|r| <= 0.3468`, of `f64` 2^-58.
    terms: &'static [f64],
    /// Of the other functions: relative to `e^r - 1`.
    terms_minus_one: &'static [f64],
    /// Below it `e^x` is 0, above it infinite.
    bounds: [f64; 2],
    /// Below it `e^x - 1` is -1.
    minus_one: f64,
    /// From here on tanh is 1.
    tanh: f64,
    /// Below it `e^x - 1` is `x`.
    tiny: f64,
}

/// 2^-28 and 2^-26.
const F32: Constants = Constants {
    ln_2: [0.693_145_751_953_125, 1.428_606_820_309_417_2e-6],
    terms: &[0.5, 0.16666512191295624, 0.04166644811630249, 0.00836966186761856, 0.0013936636969447136],
    terms_minus_one: &[
        0.4999999701976776,
        0.16666539013385773,
        0.04166753217577934,
        0.008367149159312248,
        0.001386274816468358,
    ],
    bounds: [-105.0, 89.0],
    minus_one: -20.0,
    tanh: 10.0,
    tiny: 1.490_116_119_384_765_6e-8,
};
/// 2^-60, relative to `e^r - 1`.
const TERMS: &[f64] = &[
    0.5,
    0.16666666666666677,
    0.041666666666666685,
    0.008333333333321606,
    0.0013888888888872286,
    0.00019841269886211946,
    2.480158735176343e-05,
    2.7557244103998148e-06,
    2.755724927365711e-07,
    2.510907913369632e-08,
    2.092263654330021e-09,
];
/// 2^-31.
const FEW_TERMS: &[f64] = &[
    0.5,
    0.166666667728549,
    0.041666481578777385,
    0.008333281971154061,
    0.0013933364284433422,
    0.0001990981280649503,
];
const F64: Constants = Constants {
    ln_2: [std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17],
    terms: &[
        0.5000000000000012,
        0.16666666666666552,
        0.04166666666652098,
        0.00833333333340164,
        0.0013888888945798414,
        0.00019841269711887844,
        2.4801491027839224e-05,
        2.7557400300974663e-06,
        2.763094029760339e-07,
        2.505957215265444e-08,
    ],
    terms_minus_one: TERMS,
    bounds: [-746.0, 710.0],
    minus_one: -40.0,
    tanh: 20.0,
    tiny: 2.775_557_561_562_891_4e-17,
};
const F64_FEW: Constants = Constants { terms: FEW_TERMS, terms_minus_one: FEW_TERMS, ..F64 };

const fn constants(prim: Prim, digits: Digits) -> &'static Constants {
    match (prim, digits) {
        (Prim::F64, Digits::All) => &F64,
        (Prim::F64, Digits::Few) => &F64_FEW,
        (_, _) => &F32,
    }
}

/// `n ln 2 + r + low`, `|r| <= 0.3468`.
struct Reduced<'ctx> {
    n: Value<'ctx>,
    r: Value<'ctx>,
    low: Value<'ctx>,
}

fn reduce<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, c: &Constants) -> Result<Reduced<'ctx>> {
    let prim = e.prim_of(x);
    let n = rint(e, e.fmul(x, e.float(prim, std::f64::consts::LOG2_E))?)?;
    let first = e.fma(n, e.float(prim, -c.ln_2[0]), x)?;
    let r = e.fma(n, e.float(prim, -c.ln_2[1]), first)?;
    let low = e.fma(n, e.float(prim, -c.ln_2[1]), e.fsub(first, r)?)?;
    Ok(Reduced { n, r, low })
}

/// `e^x`: beyond the bounds it is 0 or overflows.
pub(super) fn exp<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, digits: Digits) -> Result<Value<'ctx>> {
    let c = constants(e.prim_of(x), digits);
    let x = at_most(e, at_least(e, x, c.bounds[0])?, c.bounds[1])?;
    let Reduced { n, r, .. } = reduce(e, x, c)?;
    let p = polynomial(e, r, c.terms)?;
    // 1 + (r + r^2 p)
    let tail = e.fma(e.fmul(r, r)?, p, r)?;
    scaled_sum(e, tail, n)
}

/// `2^r` on `|r| <= 0.5`, 2^-18; of all that [`exp_bf16`] is asked for, no result is rounded to another
/// `bf16` than `e^x` is.
const BF16_TERMS: &[f64] = &[
    1.0,
    0.693_121_910_095_214_8,
    0.240_245_699_882_507_32,
    0.055_917_430_669_069_29,
    0.009_570_143_185_555_935,
];

/// `e^x` in `f32`, of numbers that `bf16` has: of their 8 digits the logarithm to base 2 is near enough in
/// one piece.
pub(super) fn exp_bf16<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let x = at_most(e, at_least(e, x, F32.bounds[0])?, F32.bounds[1])?;
    let log2_e = e.f32(std::f32::consts::LOG2_E);
    let n = rint(e, e.fmul(x, log2_e)?)?;
    let r = e.fma(x, log2_e, e.fneg(n)?)?;
    scale(e, polynomial(e, r, BF16_TERMS)?, n)
}

/// `2^n (1 + q + low)`, for what needs more than the last place of `e^x`.
struct Parts<'ctx> {
    n: Value<'ctx>,
    q: Value<'ctx>,
    low: Value<'ctx>,
}

fn parts<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, c: &Constants) -> Result<Parts<'ctx>> {
    let Reduced { n, r, low } = reduce(e, x, c)?;
    let rest = e.fma(e.fmul(r, r)?, polynomial(e, r, c.terms_minus_one)?, low)?;
    let q = e.fadd(r, rest)?;
    let low = e.fadd(e.fsub(r, q)?, rest)?;
    Ok(Parts { n, q, low })
}

/// `e^x - 1 = 2^n (e^r - 1) + (2^n - 1)`, at half the scale, since the largest power of two is no number.
pub(super) fn expm1<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, digits: Digits) -> Result<Value<'ctx>> {
    let (prim, c) = (e.prim_of(x), constants(e.prim_of(x), digits));
    let bounded = at_most(e, at_least(e, x, c.minus_one)?, c.bounds[1])?;
    let parts = parts(e, bounded, c)?;
    let half = power_of_two(e, e.fsub(parts.n, e.float(prim, 1.0))?)?;
    let result = e.fma(half, parts.q, e.fsub(half, e.float(prim, 0.5))?)?;
    let result = e.fadd(result, result)?;
    let tiny = e.fcmp(FloatPredicate::ULT, fabs(e, x)?, e.float(prim, c.tiny))?;
    e.select(tiny, x, result)
}

/// Below 0.6, `(tanh(x)/x - 1) / x^2` in `x^2`, 2^-28.
const TANH_SMALL_F32: [f64; 5] = [
    -0.33333298563957214,
    0.13331936299800873,
    -0.05378471687436104,
    0.02079862542450428,
    -0.005897966679185629,
];
/// The same below 0.5625, 2^-54.
const TANH_SMALL_F64: [f64; 10] = [
    -0.3333333333333184,
    0.13333333333101163,
    -0.05396825384317993,
    0.02186948519473462,
    -0.008863184104132926,
    0.003591636392130364,
    -0.0014528075401718636,
    0.0005779306268675281,
    -0.0002083441256219574,
    4.967652384753725e-05,
];
/// `(2^r - 1) / r` on `|r| <= 1/2`, 2^-28.
const EXP2: [f64; 6] = [
    0.6931471824645996,
    0.24022647738456726,
    0.05550359934568405,
    0.009618505835533142,
    0.0013390807434916496,
    0.00015326471475418657,
];

/// A polynomial; from where it is more than 1/2 on, `1 - 2 / (e^2|x| + 1)`, where an error of the sum is at
/// most half of one of the result.
pub(super) fn tanh<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let (prim, c) = (e.prim_of(x), constants(e.prim_of(x), Digits::All));
    let (one, two) = (e.float(prim, 1.0), e.float(prim, 2.0));
    let magnitude = at_most(e, fabs(e, x)?, c.tanh)?;
    let (terms, from): (&[f64], f64) = match prim {
        Prim::F64 => (&TANH_SMALL_F64, 0.5625),
        _ => (&TANH_SMALL_F32, 0.6),
    };
    let square = e.fmul(magnitude, magnitude)?;
    let small = e.fma(polynomial(e, square, terms)?, e.fmul(square, magnitude)?, magnitude)?;

    let sum = match prim {
        Prim::F64 => {
            let Reduced { n, r, .. } = reduce(e, e.fadd(magnitude, magnitude)?, c)?;
            let tail = e.fma(e.fmul(r, r)?, polynomial(e, r, c.terms)?, r)?;
            let power = power_of_two(e, n)?;
            e.fma(power, tail, e.fadd(power, one)?)?
        }
        _ => {
            let factor = e.float(prim, 2.0 * std::f64::consts::LOG2_E);
            let n = rint(e, e.fmul(magnitude, factor)?)?;
            let r = e.fma(magnitude, factor, e.fneg(n)?)?;
            let power = e.fma(polynomial(e, r, &EXP2)?, r, one)?;
            // Times a normal power of two it is exact: either way rounds once.
            if e.gpu || has_avx512(e, power) {
                e.fadd(scale(e, power, n)?, one)?
            } else {
                e.fma(power, power_of_two(e, n)?, one)?
            }
        }
    };
    let large = e.fsub(one, e.fdiv(two, sum)?)?;

    let is_large = e.fcmp(FloatPredicate::OGE, magnitude, e.float(prim, from))?;
    let result = e.select(is_large, large, small)?;
    if !e.x86 || e.avx512 {
        return copysign(e, result, x);
    }
    // It is positive: no sign has to be taken away first.
    let int = Prim::int(prim.bits());
    let sign = e.and(e.bitcast(x, int)?, e.bitcast(e.float(prim, -0.0), int)?)?;
    e.bitcast(e.or(e.bitcast(result, int)?, sign)?, prim)
}

/// `1 / (1 + a)` for `a = e^-|x|`, or `a / (1 + a)` of a negative number, corrected by what rounding took
/// from both its sides and from itself; `1 / (1 + a)` is the result or what it lacks to 1.
pub(super) fn logistic<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let (prim, c) = (e.prim_of(x), constants(e.prim_of(x), Digits::All));
    let (zero, one) = (e.float(prim, 0.0), e.float(prim, 1.0));
    let parts = parts(e, at_least(e, e.fneg(fabs(e, x)?)?, c.bounds[0])?, c)?;
    let significand = e.fadd(one, parts.q)?;
    let low = e.fadd(e.fadd(e.fsub(one, significand)?, parts.q)?, parts.low)?;
    let a = scale(e, significand, parts.n)?;
    let a_low = e.fmul(a, low)?;
    let sum = e.fadd(one, a)?;
    let sum_low = e.fadd(e.fadd(e.fsub(one, sum)?, a)?, a_low)?;
    let negative = e.fcmp(FloatPredicate::OLT, x, zero)?;
    let above = e.select(negative, a, one)?;
    let y = e.fdiv(above, sum)?;
    let rest = e.fma(e.fneg(y)?, sum, above)?;
    let rest = e.fadd(rest, e.select(negative, a_low, zero)?)?;
    let rest = e.fma(e.fneg(y)?, sum_low, rest)?;
    let inverse = e.select(negative, e.fsub(one, y)?, y)?;
    e.fma(inverse, rest, y)
}

/// `(e^|x| - 1) / 4` in two parts, and `e^|x| / 4`.
fn quarters<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, digits: Digits) -> Result<[Value<'ctx>; 3]> {
    let (prim, c) = (e.prim_of(x), constants(e.prim_of(x), digits));
    // Where every result overflows, and no quarter does.
    let magnitude = at_most(e, fabs(e, x)?, c.bounds[1] + 0.6)?;
    let parts = parts(e, magnitude, c)?;
    let quarter = power_of_two(e, e.fsub(parts.n, e.float(prim, 2.0))?)?;
    // A quarter of (1 + q + low), less 1/4, which is 0 or larger than a quarter of q.
    let base = e.fadd(quarter, e.float(prim, -0.25))?;
    let h = e.fma(quarter, parts.q, base)?;
    let rest = e.fma(quarter, parts.q, e.fsub(base, h)?)?;
    let low = e.fma(quarter, parts.low, rest)?;
    Ok([h, low, e.fma(quarter, parts.q, quarter)?])
}

/// `2 (h + h / (4h + 1))` for `h = (e^|x| - 1) / 4`: the quotient is nothing where the sum overflows.
pub(super) fn sinh<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, digits: Digits) -> Result<Value<'ctx>> {
    let [h, low, _] = quarters(e, x, digits)?;
    sinh_of(e, x, h, low)
}

fn sinh_of<'ctx>(
    e: &Emit<'_, 'ctx>,
    x: Value<'ctx>,
    h: Value<'ctx>,
    low: Value<'ctx>,
) -> Result<Value<'ctx>> {
    let prim = e.prim_of(x);
    let (one, four) = (e.float(prim, 1.0), e.float(prim, 4.0));
    let quotient = e.fdiv(h, e.fma(h, four, one)?)?;
    let inverse = e.fma(quotient, e.float(prim, -4.0), one)?;
    let slope = e.fma(inverse, inverse, one)?;
    let half = e.fadd(h, e.fma(low, slope, quotient)?)?;
    // A quarter of a small number may be none.
    let tiny = e.fcmp(FloatPredicate::OLT, fabs(e, x)?, e.float(prim, 1e-8))?;
    e.select(tiny, x, copysign(e, e.fadd(half, half)?, x)?)
}

/// `2 (a + 1 / 16a)` for `a = e^|x| / 4`.
pub(super) fn cosh<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, digits: Digits) -> Result<Value<'ctx>> {
    let [_, _, a] = quarters(e, x, digits)?;
    cosh_of(e, a)
}

fn cosh_of<'ctx>(e: &Emit<'_, 'ctx>, a: Value<'ctx>) -> Result<Value<'ctx>> {
    let half = e.fadd(a, e.fdiv(e.float(e.prim_of(a), 0.0625), a)?)?;
    e.fadd(half, half)
}

/// Both.
pub(super) fn sinh_cosh<'ctx>(
    e: &Emit<'_, 'ctx>,
    x: Value<'ctx>,
    digits: Digits,
) -> Result<[Value<'ctx>; 2]> {
    let [h, low, a] = quarters(e, x, digits)?;
    Ok([sinh_of(e, x, h, low)?, cosh_of(e, a)?])
}

/// `2^(n + r)` of `f64`, `|r| <= 0.51`, `n` an integer.
pub(super) fn exp2<'ctx>(e: &Emit<'_, 'ctx>, r: Value<'ctx>, n: Value<'ctx>) -> Result<Value<'ctx>> {
    let x = e.fmul(r, e.f64(F64.ln_2[0]))?;
    let low = e.fma(r, e.f64(F64.ln_2[0]), e.fneg(x)?)?;
    let tail = e.fadd(x, e.fma(e.fmul(x, x)?, polynomial(e, x, TERMS)?, low)?)?;
    scaled_sum(e, tail, n)
}
