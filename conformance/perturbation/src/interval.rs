//! Intervals: what an element of an operand may be, from its radius and limits.
//!
//! **Invariant:** an engine's element is a number of the operand's type, so an interval ends at numbers of
//! that type: its ends are rounded to nearest, which is monotone. Where a wider number or an unrounded
//! product may stand there instead (`wide`), they are one unit further out.

use hlo::Opcode;
use hlo_execution::format::Format;

use crate::limits::Limits;

/// What an element may be.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Nothing is known of it.
    pub unknown: bool,
}

impl Interval {
    /// The value itself.
    #[inline(always)]
    pub fn exactly(x: f64) -> Interval {
        Interval { low: x, high: x, unknown: false }
    }

    /// A value that may be off by `r`, within these limits; the ends are not rounded yet.
    #[inline(always)]
    pub fn around(x: f64, r: f64, limits: Limits, wide: bool) -> Interval {
        if !(r.is_finite() && x.is_finite()) {
            if limits.is_none() || x.is_nan() {
                return Interval { unknown: true, ..Interval::exactly(x) };
            }
            return Interval { low: limits.low.min(x), high: limits.high.max(x), unknown: false };
        }
        let (mut low, mut high) = (x - r, x + r);
        if wide {
            (low, high) = (low.next_down(), high.next_up());
        }
        // The reference's value is within the limits, or at them and rounded. What limits leave nothing but a
        // zero is not exact: it may have either sign.
        let (l, h) = (low.max(limits.low.min(x)), high.min(limits.high.max(x)));
        if l < h {
            (low, high) = (l, h);
        }
        Interval { low, high, unknown: false }
    }

    /// Of integers that f64 rounds: the value by half a unit, and each end once more.
    pub fn wider(self) -> Interval {
        let Interval { low, high, unknown } = self;
        Interval { low: low.next_down().next_down(), high: high.next_up().next_up(), unknown }
    }

    /// Whether some of it may be flushed to zero, if denormal numbers are; `x` is the reference's value.
    #[inline(always)]
    pub fn flushes(self, x: f64, format: Format) -> bool {
        x != 0.0 && self.holds_zeros(format)
    }

    /// Its ends, if a comparison in which denormal numbers are flushed treats all of it as zero. Of one that
    /// reaches further the part around zero is not looked at: that a negative denormal number may stand where
    /// a number of at least zero does would leave nothing of any root or logarithm behind a maximum with
    /// zero.
    #[inline(always)]
    pub fn taken_for_zero(self, format: Format) -> Option<[f64; 2]> {
        let least = format.flushes_below();
        (self.low > -least && self.high < least).then_some([self.low, self.high])
    }

    /// Whether it has denormal numbers or zero.
    pub fn holds_zeros(self, format: Format) -> bool {
        self.low < format.flushes_below() && self.high > -format.flushes_below()
    }

    /// With zero.
    #[inline(always)]
    pub fn with_zero(self) -> Interval {
        Interval { low: self.low.min(0.0), high: self.high.max(0.0), ..self }
    }

    /// With zero for what may be flushed. What is computed from a zero of a type that has none is not
    /// followed: nothing is known of the operand, unless it is only compared.
    #[inline(always)]
    pub fn flushed(self, opcode: Opcode, format: Format) -> Interval {
        let unknown = self.unknown || !format.has_zero() && opcode != Opcode::Compare;
        Interval { unknown, ..self.with_zero() }
    }

    /// With the ends rounded, to `l` and `h`. Beyond the largest number of the type the operand itself
    /// overflows; in a type that saturates, rounded ends do not bound an unrounded value, so nothing is
    /// known.
    #[inline(always)]
    pub fn rounded(self, [mut l, mut h]: [f64; 2], limits: Limits, wide: bool, format: Format) -> Interval {
        if format.saturates && (self.low < -format.max || self.high > format.max) {
            return Interval { unknown: true, ..self };
        }
        if wide && l > self.low {
            l -= format.ulp(l);
        }
        if wide && h < self.high {
            h += format.ulp(h);
        }
        if l.is_finite() && h.is_finite() || !limits.is_none() {
            Interval { low: l, high: h, ..self }
        } else {
            Interval { unknown: true, ..self }
        }
    }

    /// Whether it is the reference's value `x`.
    #[inline(always)]
    pub fn is_exact(self, x: f64) -> bool {
        !self.unknown && (self.low == self.high || x.is_nan())
    }

    /// Whether a number is in it.
    pub fn holds(self, x: f64) -> bool {
        self.low <= x && x <= self.high
    }

    /// Whether an end is infinite.
    pub fn is_infinite(self) -> bool {
        self.low.is_infinite() || self.high.is_infinite()
    }
}
