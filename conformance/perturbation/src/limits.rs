//! Limits of values: what intervals around the reference's value cannot say.
//!
//! A radius says how far an engine's element may be from the reference's, the same to both sides. Where it is
//! large beside the value that loses what matters most: that an exponential, a square or a sum of them is no
//! less than 0, that a logistic is no more than 1, that a sum of exponentials is at least its largest term.
//! Of such elements the limits are kept beside the radius; rules that look at intervals
//! (elementwise instructions, folds) take the part of the interval that is within the limits. Those of a
//! complex element are of its real part.
//!
//! **Invariants:** limits hold for every engine, for a value that excess precision leaves unrounded as well.
//! An element with limits is a number (infinities included, NaN not) unless it is the reference's to the bit.
//! Nobody has to look at limits: radii are right without them.

use hlo_execution::format::Format;

/// The least and the greatest value that an element may have. Both infinite: nothing is known, and it may be
/// a NaN.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Limits {
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
    /// The value is one of both, and none between them.
    pub either: bool,
}

impl Limits {
    /// Nothing is known.
    pub const NONE: Limits = Limits { low: f64::NEG_INFINITY, high: f64::INFINITY, either: false };

    /// These; NaN limits say nothing.
    pub fn new(low: f64, high: f64) -> Limits {
        if low.is_nan() || high.is_nan() || low > high {
            Limits::NONE
        } else {
            Limits { low, high, either: false }
        }
    }

    /// One of these; integers beyond what f64 counts, infinities and NaNs say nothing.
    pub fn either(a: f64, b: f64) -> Limits {
        const MAX_COUNTED: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;
        let counted = |x: f64| x.abs() < MAX_COUNTED || x.is_finite() && x.fract() != 0.0;
        if counted(a) && counted(b) {
            Limits { low: a.min(b), high: a.max(b), either: true }
        } else {
            Limits::NONE
        }
    }

    /// Whether a value, a NaN perhaps, is within them.
    pub fn admit(self, value: f64) -> bool {
        if self.either {
            value == self.low || value == self.high
        } else {
            self.is_none() || (self.low..=self.high).contains(&value)
        }
    }

    /// Whether they say nothing.
    pub fn is_none(self) -> bool {
        self.low == f64::NEG_INFINITY && self.high == f64::INFINITY
    }

    /// Both ends further out by a rounding: at most half of `ulp` of the end, of which as much again covers
    /// an end at a power of two. What is at least +0 stays so, because rounding keeps signs; -0 stands for
    /// what is negative and too small.
    pub fn wider(self, ulp: impl Fn(f64) -> f64) -> Limits {
        if self.is_none() {
            return self;
        }
        let out = |end: f64, towards: f64| {
            if end.is_infinite() || end == 0.0 && end.is_sign_positive() == (towards < 0.0) {
                end
            } else {
                let wider = end + towards * ulp(end);
                // An end that is on one side of 0 with all that is beyond it stays there.
                if end != 0.0 && (wider < 0.0) != (end < 0.0) { end * 0.5 } else { wider }
            }
        };
        Limits::new(out(self.low, -1.0), out(self.high, 1.0))
    }

    /// What both say.
    pub fn and(self, other: Limits) -> Limits {
        Limits::new(self.low.max(other.low), self.high.min(other.high))
    }

    /// Whether they say more than a radius around a value. A radius that is small beside the value needs no
    /// limits.
    pub fn tell(self, value: f64, radius: f64) -> bool {
        if radius.is_infinite() {
            return !self.is_none();
        }
        // What they cut off of the interval.
        let cut = (value + radius - self.high).max(self.low - (value - radius));
        let signed = self.low >= 0.0 && value <= radius || self.high <= 0.0 && -value <= radius;
        radius > value.abs() / 64.0 && (cut > radius / 64.0 || signed)
    }

    /// Itself, if it says more than the radius does.
    pub fn beside(self, value: f64, radius: f64) -> Limits {
        if radius > 0.0 && !value.is_nan() && self.tell(value, radius) { self } else { Limits::NONE }
    }

    /// The radius around a value that the limits leave of a radius, and themselves if they say more than
    /// that.
    pub fn narrow(self, value: f64, radius: f64) -> (f64, Limits) {
        if self.is_none() || radius == 0.0 || value.is_nan() {
            return (radius, Limits::NONE);
        }
        let within = (self.high - value).max(value - self.low);
        let radius = if within >= 0.0 { radius.min(within.next_up()) } else { radius };
        (radius, self.beside(value, radius))
    }
}

/// An end of an interval further out by some units in the last place of a type, twice as many as are granted:
/// at a power of two these are twice as large.
pub fn beyond(end: f64, ulps: f64, format: Format, towards: f64) -> f64 {
    if end.is_infinite() || ulps == 0.0 { end } else { end + towards * 2.0 * ulps * format.ulp(end) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::ElementType;

    #[test]
    fn signs_survive_roundings() {
        let format = Format::of(ElementType::BF16).expect("a float");
        let ulp = |x: f64| format.ulp(x);
        let of = |low, high| {
            let l = Limits::new(low, high).wider(ulp);
            (l.low, l.high)
        };
        // The numbers of bf16 beside 1 are 1 - 2^-8 and 1 + 2^-7.
        assert_eq!(of(0.0, 1.0), (0.0, 1.0 + 2f64.powi(-7)));
        assert_eq!(of(1.0, f64::INFINITY), (1.0 - 2f64.powi(-7), f64::INFINITY));
        // A product of opposite signs that is too small is -0.
        assert_eq!(of(-0.0, 1.0).0, -format.min_positive());
        assert_eq!(of(-1.0, -0.0), (-1.0 - 2f64.powi(-7), -0.0));
        assert_eq!(of(-1.0, 0.0).1, format.min_positive());
        // What is above 0 does not come below it.
        assert!(of(format.min_positive(), 1.0).0.is_sign_positive());
        assert!(Limits::NONE.wider(ulp).is_none());
    }

    #[test]
    fn limits_narrow_radii_and_are_kept_where_they_say_more() {
        let unit = Limits::new(0.0, 1.0);
        let (r, kept) = unit.narrow(0.25, 3.0);
        assert!((0.75..0.76).contains(&r), "{r}");
        assert_eq!(kept, unit);
        // 0.5 on both sides is what a radius says, but for the sign.
        assert_eq!(unit.narrow(0.5, 3.0).1, unit);
        assert!(Limits::new(1.0, 2.0).narrow(1.5, 3.0).1.is_none());
        assert_eq!(unit.narrow(0.25, 1e-9), (1e-9, Limits::NONE));
        // Not NaN, but perhaps infinite.
        let above = Limits::new(2.0, f64::INFINITY);
        assert_eq!(above.narrow(3.0, f64::INFINITY), (f64::INFINITY, above));
        assert!(Limits::new(f64::NAN, 1.0).is_none());
        assert_eq!(unit.and(above), Limits::NONE);
    }
}
