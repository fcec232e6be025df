//! The error function.

use super::{Digits, at_most, exponential, fabs, polynomial, power_of_two, rint};
use crate::cpu::llvm::{Emit, FloatPredicate, Result, Value};
use crate::cpu::scalar::float::copysign;

/// 2/sqrt(pi) in two pieces, then `(erf(x)/x - 2/sqrt(pi)) / x^2` in `x^2` up to 1, 2^-29.
const SLOPE: [f32; 2] = [std::f32::consts::FRAC_2_SQRT_PI, -5.863_538_4e-8];
const SMALL: [f64; 6] = [
    -0.3761262893676758,
    0.1128360703587532,
    -0.02685449831187725,
    0.005189398303627968,
    -0.0008018327644094825,
    7.877869211370125e-5,
];
/// `-log2(1 - erf(x))` on `[0.99, 4]`; `erf` has a relative error of 2^-35.
const LARGE: [f64; 8] = [
    -0.0002725487283896655,
    1.6296427249908447,
    0.9135330319404602,
    0.1564251035451889,
    -0.036373790353536606,
    0.006067957729101181,
    -0.0006371003109961748,
    3.131805715383962e-5,
];
/// `(2^r - 1) / r` on `|r| <= 1/2`, 2^-23.
const EXP2: [f64; 5] =
    [0.6931472420692444, 0.24022233486175537, 0.055502749979496, 0.00967192742973566, 0.0013416454894468188];

/// `erf x`: `x P(x^2)` up to 1, beyond it `1 - 2^-Q(|x|)`, which is 1 from 4 on.
pub(super) fn erf<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let magnitude = at_most(e, fabs(e, x)?, 4.0)?;
    let square = e.fmul(magnitude, magnitude)?;
    let tail = e.fma(polynomial(e, square, &SMALL)?, square, e.f32(SLOPE[1]))?;
    let small = e.fma(magnitude, e.f32(SLOPE[0]), e.fmul(magnitude, tail)?)?;

    let z = e.fneg(polynomial(e, magnitude, &LARGE)?)?;
    let n = rint(e, z)?;
    let r = e.fsub(z, n)?;
    let p = e.fma(polynomial(e, r, &EXP2)?, r, e.f32(1.0))?;
    let large = e.fma(p, e.fneg(power_of_two(e, n)?)?, e.f32(1.0))?;

    let is_large = e.fcmp(FloatPredicate::OGE, magnitude, e.f32(1.0))?;
    copysign(e, e.select(is_large, large, small)?, x)
}

/// Of `f64`: as above, up to 1, 2^-62.
const SLOPE_F64: [f64; 2] = [std::f64::consts::FRAC_2_SQRT_PI, 1.533_545_961_316_588e-17];
const SMALL_F64: [f64; 12] = [
    -0.3761263890318375,
    0.11283791670954851,
    -0.02686617064506859,
    0.005223977624720871,
    -0.0008548326974582675,
    0.0001205533086585287,
    -1.4925589030414807e-05,
    1.6460896202425977e-06,
    -1.6349170247835632e-07,
    1.4651883532606201e-08,
    -1.1341666750300939e-09,
    5.90345156682471e-11,
];
/// `-ln(1 - erf(x))` in `x - 2` on `[0.99, 5.93]`; `erf` has a relative error of 2^-59.
const LARGE_F64: [f64; 19] = [
    5.364941264616638,
    4.418160805994416,
    0.9237508418237783,
    0.016465118136827165,
    -0.003570756345882253,
    0.0007323993864112109,
    -0.00013530933549485142,
    2.0706429431371367e-05,
    -1.9521936308454067e-06,
    -2.0363606730261252e-07,
    1.7320676023636401e-07,
    -5.780430150707387e-08,
    1.3948053743844987e-08,
    -2.5344882664177256e-09,
    2.7552913500491216e-10,
    4.127980412373387e-11,
    -3.744766700187576e-11,
    1.0444221073304908e-11,
    -1.1023615212030825e-12,
];

/// The same of `f64`: 1 from 5.93 on.
pub(super) fn erf_f64<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let one = e.f64(1.0);
    let magnitude = at_most(e, fabs(e, x)?, 5.93)?;
    let square = e.fmul(magnitude, magnitude)?;
    let tail = e.fma(polynomial(e, square, &SMALL_F64)?, square, e.f64(SLOPE_F64[1]))?;
    let small = e.fma(magnitude, e.f64(SLOPE_F64[0]), e.fmul(magnitude, tail)?)?;
    let exponent = e.fneg(polynomial(e, e.fsub(magnitude, e.f64(2.0))?, &LARGE_F64)?)?;
    let large = e.fsub(one, exponential::exp(e, exponent, Digits::All)?)?;
    let is_large = e.fcmp(FloatPredicate::OGE, magnitude, one)?;
    copysign(e, e.select(is_large, large, small)?, x)
}
