//! The error function of `f32`.

use super::{at_most, fabs, polynomial, power_of_two, rint};
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
