//! Values of elements that are no numbers.

/// A set of an element's values that are no numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Special(u8);

impl Special {
    /// None.
    pub const NONE: Special = Special(0);
    /// Plus infinity.
    pub const POSITIVE: Special = Special(1);
    /// Minus infinity.
    pub const NEGATIVE: Special = Special(2);
    /// NaN.
    pub const NAN: Special = Special(4);
    /// Any of them; of complex numbers, in either part or both.
    pub const ANY: Special = Special(7);

    /// Both sets.
    #[must_use]
    #[inline]
    pub fn or(self, other: Special) -> Special {
        Special(self.0 | other.0)
    }

    /// Whether all of another set is in it.
    #[inline]
    pub fn has(self, other: Special) -> bool {
        self.0 & other.0 == other.0
    }

    /// A number for each of them.
    pub fn values(self) -> impl Iterator<Item = f64> {
        let all = [
            (Special::POSITIVE, f64::INFINITY),
            (Special::NEGATIVE, f64::NEG_INFINITY),
            (Special::NAN, f64::NAN),
        ];
        all.into_iter().filter(move |(s, _)| self.has(*s)).map(|(_, x)| x)
    }

    /// What a real number is, if it is not finite.
    #[inline]
    pub fn of(x: f64) -> Special {
        match x {
            x if x.is_nan() => Special::NAN,
            f64::INFINITY => Special::POSITIVE,
            f64::NEG_INFINITY => Special::NEGATIVE,
            _ => Special::NONE,
        }
    }
}
