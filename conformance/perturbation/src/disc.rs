//! Complex numbers that may be off, as discs: where they may be, and how far powers of them move.

use hlo_arithmetic::scalar::Elementary;
use hlo_execution::number::modulus;

use crate::UNKNOWN;

/// At least the square root of 2.
pub const SQRT_2: f64 = std::f64::consts::SQRT_2 * (1.0 + f64::EPSILON);

/// A complex number and how far it may be off.
#[derive(Clone, Debug)]
pub struct Disc {
    /// The real part of its centre.
    pub re: f64,
    /// The imaginary part.
    pub im: f64,
    /// How far each part may be off.
    pub part: f64,
    /// How far the number may be off, in modulus.
    pub r: f64,
    /// At least the modulus of the centre.
    pub m: f64,
    /// It is the reference's value to the bit, or that flushed.
    pub known: bool,
}

impl Disc {
    /// At most the distance to a point.
    pub fn distance(&self, re: f64, im: f64) -> f64 {
        modulus(self.re - re, self.im - im) * (1.0 - 8.0 * f64::EPSILON)
    }

    /// Whether it may meet an axis where its coordinate along that, at least and at most, is on a cut. What is
    /// known stays on its side: a flushed part is a zero of the same sign.
    pub fn reaches(&self, on_cut: impl Fn(f64, f64) -> bool, axis: Axis) -> bool {
        let (along, across) = match axis {
            Axis::Real => (self.re, self.im),
            Axis::Imaginary => (self.im, self.re),
        };
        !self.known && across.abs() <= self.part && on_cut(along - self.part, along + self.part)
    }

    /// Whether the disc may meet the negative real axis, zero included.
    pub fn meets_cut(&self) -> bool {
        self.reaches(|low, _| low <= 0.0, Axis::Real)
    }
}

/// An axis of the plane.
#[derive(Clone, Copy, Debug)]
pub enum Axis {
    /// That of real numbers.
    Real,
    /// That of imaginary numbers.
    Imaginary,
}

/// `|(x + h)^(y + k) - x^y|` for `|h| <= x.r` and `|k| <= y.r`, where the power is `v` in modulus.
///
/// With an exact integer exponent it is a product, which has no branch cut. Other powers are `exp(y log x)`:
/// off the cut the logarithm moves by at most `x.r / (|x| - x.r)`. Where the disc of `x` may meet the cut, and
/// that matters, nothing is known.
pub fn power(x: &Disc, y: &Disc, v: f64, cut_matters: bool) -> f64 {
    // Of the functions of f64, and of the reference's modulus.
    const SLACK: f64 = 1.0 + 1e-6;
    if y.r == 0.0 && y.im == 0.0 && y.re == y.re.round() && y.re.abs() < 2f64.powi(53) {
        let n = y.re;
        if n == 0.0 {
            return 0.0;
        }
        // The modulus farthest from 0, or nearest to it, has the derivative of largest modulus.
        let end = if n > 0.0 { x.m + x.r } else { x.m - x.r };
        if end <= 0.0 {
            return UNKNOWN;
        }
        let grown = Elementary::exponential_minus_one(n * Elementary::log_plus_one((end - x.m) / x.m));
        return SLACK
            * if grown <= 1.0 { v * grown } else { Elementary::exponential(n * Elementary::log(end)) };
    }
    if x.m <= x.r || (x.r > 0.0 && cut_matters && x.meets_cut()) {
        return UNKNOWN;
    }
    let moved = x.r / (x.m - x.r);
    let size = Elementary::log(x.m).abs() + std::f64::consts::PI;
    let exponent = SLACK * (y.m * moved + y.r * (size + moved));
    // e^d - 1 <= d + d^2 up to 1
    if exponent < 1.0 { SLACK * v * (exponent + exponent * exponent) } else { UNKNOWN }
}

#[cfg(test)]
mod tests {
    use hlo::elided::splitmix64;
    use hlo::num_complex::Complex;
    use hlo_arithmetic::scalar::Number;

    use super::*;

    fn disc(re: f64, im: f64, part: f64) -> Disc {
        Disc { re, im, part, r: part * SQRT_2, m: modulus(re, im), known: part == 0.0 }
    }

    /// Powers of points of two discs are within the bound around that of the centres, the bound is of the
    /// order of the farthest one, and integer exponents have no branch cut.
    #[test]
    fn powers_of_discs() {
        let mut seed = 0;
        let mut next = |least: f64, most: f64| {
            seed += 1;
            least + (most - least) * ((splitmix64(seed) >> 11) as f64 / (1u64 << 53) as f64)
        };
        for round in 0..400 {
            let whole = round % 2 == 0;
            let x = disc(next(-2.0, 2.0), if round % 5 == 0 { 0.0 } else { next(-2.0, 2.0) }, next(0.0, 0.1));
            let y = match whole {
                true => disc(next(-4.0, 4.0).round(), 0.0, 0.0),
                false => disc(next(-2.0, 2.0), next(-1.0, 1.0), next(0.0, 0.1)),
            };
            let of = |re: f64, im: f64| Complex::new(re, im);
            let value = of(x.re, x.im).power(of(y.re, y.im));
            let bound = power(&x, &y, value.norm(), true);
            assert!(!whole || y.re < 0.0 || bound.is_finite());
            let mut farthest = 0f64;
            for _ in 0..50 {
                let mut near =
                    |z: &Disc| of(z.re + next(-1.0, 1.0) * z.part, z.im + next(-1.0, 1.0) * z.part);
                farthest = farthest.max((near(&x).power(near(&y)) - value).norm());
            }
            assert!(farthest <= bound, "{round}: {farthest:e} {bound:e}");
            // Samples reach no corner: what is asserted is that the bound is no other order of magnitude.
            let far_from_zero = x.m > 8.0 * x.r;
            assert!(!(whole && far_from_zero) || bound <= 8.0 * farthest, "{round}: {farthest:e} {bound:e}");
        }
        let (base, half) = (disc(-1.5, 0.0, 1e-9), disc(0.5, 0.0, 0.0));
        assert!(power(&base, &half, 1.5f64.sqrt(), true).is_infinite());
        assert!(power(&base, &half, 1.5f64.sqrt(), false) < 1e-7);
    }
}
