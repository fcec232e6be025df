//! Plane rotations, as LAPACK's `lartg` (since 3.10) makes them.

use super::matrix::hypotenuse;
use crate::wide::{Field, Real, abs};

/// A rotation that maps (f, g) to (r, 0): c f + s g = r, c g - s f = 0, c >= 0, r with the sign of f.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rotation<R> {
    pub(crate) c: R,
    pub(crate) s: R,
    pub(crate) r: R,
}

/// The rotation of (f, g).
#[inline(always)]
pub(crate) fn rotation<R: Real>(f: R, g: R) -> Rotation<R> {
    if g.is_zero() {
        return Rotation { c: R::one(), s: R::default(), r: f };
    }
    if f.is_zero() {
        return Rotation { c: R::default(), s: R::one().with_sign_of(g), r: abs(g) };
    }
    let length = hypotenuse(f, g);
    let r = length.with_sign_of(f);
    Rotation { c: abs(f) / length, s: g / r, r }
}

/// x, y := c x + s y, c y - s x.
pub(crate) fn rotate<F: Field>((x, y): (&mut [F], &mut [F]), c: F::Real, s: F::Real) {
    for (x, y) in x.iter_mut().zip(y) {
        (*x, *y) = (x.scaled(c) + y.scaled(s), y.scaled(c) - x.scaled(s));
    }
}
