//! Cube roots, of `f64` operands.

use super::logarithm::split_any;
use super::{Digits, fabs, polynomial, power_of_two, rint};
use crate::scalar::float::copysign;
use crate::{Emit, FloatPredicate, Result, Value};

/// `a^(-1/3)` on `[3/8, 3]`, 2^-9.
const INVERSE: [f64; 7] = [
    2.0834018048907628,
    -2.8208147527946497,
    3.3023800673478356,
    -2.314007015743671,
    0.928229237822623,
    -0.19631888103437076,
    0.01693963513717916,
];
/// Those of `h` in `(1 - h)^(-1/3) - 1`, divided by `h`.
const STEP: [f64; 4] = [1.0 / 3.0, 2.0 / 9.0, 14.0 / 81.0, 35.0 / 243.0];

/// With `|x| = 2^3k a`: `y = a^(-1/3)` by one step of fifth order, then `c = a y^2` and what `a - c^3` says.
pub(super) fn cbrt<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, digits: Digits) -> Result<Value<'ctx>> {
    let magnitude = fabs(e, x)?;
    let (n, m) = split_any(e, magnitude)?;
    let k = rint(e, e.fmul(n, e.f64(1.0 / 3.0))?)?;
    let a = e.fmul(m, power_of_two(e, e.fma(k, e.f64(-3.0), n)?)?)?;
    let y = polynomial(e, a, &INVERSE)?;
    let h = e.fma(e.fneg(e.fmul(e.fmul(y, y)?, y)?)?, a, e.f64(1.0))?;
    let y = e.fma(e.fmul(y, h)?, polynomial(e, h, &STEP)?, y)?;
    let square = e.fmul(y, y)?;
    let mut c = e.fmul(square, a)?;
    if digits == Digits::All {
        let power = e.fmul(c, c)?;
        let power_low = e.fma(c, c, e.fneg(power)?)?;
        let rest = e.fma(e.fneg(power)?, c, a)?;
        let rest = e.fma(e.fneg(power_low)?, c, rest)?;
        c = e.fma(rest, e.fmul(square, e.f64(1.0 / 3.0))?, c)?;
    }
    let root = copysign(e, e.fmul(c, power_of_two(e, k)?)?, x)?;
    let plain = e.fcmp(FloatPredicate::OLT, magnitude, e.f64(f64::INFINITY))?;
    let some = e.fcmp(FloatPredicate::OGT, magnitude, e.f64(0.0))?;
    // Zeros, infinities and NaNs are their own.
    e.select(e.and(plain, some)?, root, x)
}
