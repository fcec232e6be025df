//! C's `fmod` of `f64`, exact.

use super::ops::{Num, Ops, first};

/// How many binary digits of the quotient one step takes away at most: fewer than make a quotient that is no
/// exact `f64`.
const DIGITS: f64 = 51.0;

/// Long division: while the rest is no less than the divisor, the multiple of the divisor times a power of
/// two that the rounded quotient says is taken away.
///
/// With `r` the rest, `d` the divisor times `2^n` and `q` the quotient `r/d`, which is less than 2^52,
/// rounded and truncated: `q` is the integral quotient or one more. `r - q d` is between `-d` and `d` and a
/// multiple of the unit in the last place of `r` or of `d`, of which it has fewer than 2^53: it is exact.
/// Where it is negative the divisor, added once, makes it the rest.
pub(super) fn remainder<'p, 'ctx>(ops: Ops<'p, 'ctx>, [x, y]: [Num<'p, 'ctx>; 2]) -> [Num<'p, 'ctx>; 1] {
    let (zero, one) = (ops.number(0.0), ops.number(1.0));
    let (a, b) = (x.abs(), y.abs());
    let fine = a.lt(f64::INFINITY) & b.gt(0.0);
    // Beside an infinite divisor every rest is less.
    let bounded = b.gt(f64::MAX).pick(ops.number(f64::MAX), b);
    let (start, divisor) = (fine.pick(a, zero), fine.pick(bounded, one));
    let lowest = divisor.exponent();
    let rest = ops.repeat(start, |rest| {
        let gap = rest.exponent() - lowest;
        let n = (gap - DIGITS).max(zero);
        let d = divisor.scale(n);
        let q = (rest / d).trunc();
        let left = (-q).fma(d, rest);
        let left = left.lt(0.0).pick(left + d, left);
        (left.ge(divisor), left)
    });
    // The greatest number with an infinite divisor.
    let rest = (b.is_infinite() & a.eq(f64::MAX)).pick(a, rest);
    [first(&[(fine, rest.copysign(x))], ops.nan())]
}
