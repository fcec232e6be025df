//! Comparison of two arrays, element by element.
//!
//! **Invariants:** NaNs are equal to NaNs unless their bits are asked for; a NaN or an infinity against
//! anything else is infinitely wrong; complex numbers are compared part by part; integers under
//! [`Tolerance::Close`] and [`Tolerance::Ulp`] by their difference.

use hlo::ArrayLiteral;

use hlo_execution::element::{Number, Part, Parts, index_of, nan_among, text_at};

/// The tolerance of an element.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Tolerance {
    /// The same bits.
    Exact,
    /// A maximum distance in representable numbers.
    Ulp(u64),
    /// At most this absolute error.
    Abs(f64),
    /// Wrong only if both the absolute and the relative error are exceeded, XLA's `ErrorSpec`.
    Close {
        /// Absolute error.
        abs: f64,
        /// Error divided by the magnitude of the expected number.
        rel: f64,
    },
}

/// An element that is wrong.
#[derive(Clone, PartialEq, Debug)]
pub struct WrongElement {
    /// Its index in each dimension.
    pub index: Vec<i64>,
    /// As text that reads back.
    pub expected: String,
    /// As text that reads back.
    pub actual: String,
    /// Absolute error; infinite for NaN or infinity against another number.
    pub abs: f64,
    /// Relative error.
    pub rel: f64,
    /// Distance in representable numbers; `None` if it is infinite.
    pub ulp: Option<u64>,
}

/// The result of a comparison.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Comparison {
    /// Number of elements.
    pub elements: usize,
    /// The number of elements with the same bits (NaNs are the same).
    pub same: usize,
    /// The number of elements beyond the tolerance.
    pub wrong: usize,
    /// The largest distance in representable numbers; `None` if some distance is infinite.
    pub max_ulp: Option<u64>,
    /// The largest absolute error.
    pub max_abs: f64,
    /// The largest relative error.
    pub max_rel: f64,
    /// The worst wrong elements by relative error, at most [`Comparison::MAX_KEPT_ELEMENTS`].
    pub worst: Vec<WrongElement>,
}

impl Comparison {
    /// The maximum number of wrong elements that are kept for the report.
    pub const MAX_KEPT_ELEMENTS: usize = 5;

    /// Every element has the same bits.
    pub fn bit_exact(&self) -> bool {
        self.same == self.elements
    }

    /// No element is wrong.
    pub fn passes(&self) -> bool {
        self.wrong == 0
    }
}

/// The error of one part of an element.
#[derive(Clone, Copy, Debug)]
pub struct Error {
    /// Absolute.
    pub abs: f64,
    /// Relative to the expected number; infinite if that is zero and the error is not.
    pub rel: f64,
    /// In representable numbers; `None` if infinite.
    pub ulp: Option<u64>,
}

impl Error {
    /// No error.
    pub const ZERO: Error = Error { abs: 0.0, rel: 0.0, ulp: Some(0) };
    /// Nothing in common.
    pub const INFINITE: Error = Error { abs: f64::INFINITY, rel: f64::INFINITY, ulp: None };

    /// The larger of each.
    #[must_use]
    pub fn max(self, other: Error) -> Error {
        Error {
            abs: self.abs.max(other.abs),
            rel: self.rel.max(other.rel),
            ulp: self.ulp.zip(other.ulp).map(|(a, b)| a.max(b)),
        }
    }

    fn within(self, tolerance: Tolerance) -> bool {
        match tolerance {
            Tolerance::Exact => false,
            Tolerance::Ulp(n) => self.ulp.is_some_and(|u| u <= n),
            Tolerance::Abs(atol) => self.abs <= atol,
            Tolerance::Close { abs, rel } => self.abs <= abs || self.rel <= rel,
        }
    }
}

/// The error of one part.
pub fn error_of(expected: Part, actual: Part) -> Error {
    match (expected, actual) {
        (Part::Int(e), Part::Int(a)) => {
            let distance = e.abs_diff(a);
            let abs = distance as f64;
            Error {
                abs,
                rel: relative(abs, e as f64),
                ulp: Some(u64::try_from(distance).unwrap_or(u64::MAX)),
            }
        }
        (Part::Float { value: e, ordinal: oe }, Part::Float { value: a, ordinal: oa }) => {
            if e.is_nan() && a.is_nan() || e == a {
                Error::ZERO
            } else if e.is_finite() && a.is_finite() {
                let abs = (e - a).abs();
                Error { abs, rel: relative(abs, e), ulp: Some(oe.abs_diff(oa)) }
            } else {
                Error::INFINITE
            }
        }
        (Part::Int(_), Part::Float { .. }) | (Part::Float { .. }, Part::Int(_)) => Error::INFINITE,
    }
}

fn relative(abs: f64, expected: f64) -> f64 {
    if abs == 0.0 { 0.0 } else { abs / expected.abs() }
}

/// Compares two arrays. Arrays of different types or dimensions are wrong in every element of the first.
pub fn compare(
    expected: &ArrayLiteral,
    actual: &ArrayLiteral,
    tolerance: Tolerance,
    nan_bits: bool,
) -> Comparison {
    if expected.dims != actual.dims || expected.buffer.element_type() != actual.buffer.element_type() {
        return Comparison {
            elements: expected.buffer.len(),
            wrong: expected.buffer.len().max(1),
            max_abs: f64::INFINITY,
            max_rel: f64::INFINITY,
            ..Comparison::default()
        };
    }
    /// All elements but those of the same bits: this is compiled for each element type, what becomes of them
    /// once.
    fn differing<T: Number>(
        expected: &[T],
        actual: &ArrayLiteral,
        each: &mut dyn FnMut(usize, Parts, Parts),
    ) {
        let actual = T::slice(&actual.buffer).expect("invariant: the element types were compared");
        for (i, (&e, &a)) in expected.iter().zip(actual).enumerate() {
            if e.bits() != a.bits() {
                each(i, e.parts(), a.parts());
            }
        }
    }
    let elements = expected.buffer.len();
    let mut found = Comparison { elements, same: elements, max_ulp: Some(0), ..Comparison::default() };
    // Worst first; ties keep the first element.
    let mut worst: Vec<(f64, usize, Error)> = Vec::new();
    let mut each = |i: usize, e: Parts, a: Parts| {
        if !nan_bits && same_but_nan_bits(e, a) {
            return;
        }
        found.same -= 1;
        let first = error_of(e.0, a.0);
        let second = e.1.zip(a.1).map(|(e, a)| error_of(e, a)).unwrap_or(Error::ZERO);
        let error = first.max(second);
        found.max_abs = found.max_abs.max(error.abs);
        found.max_rel = found.max_rel.max(error.rel);
        found.max_ulp = found.max_ulp.zip(error.ulp).map(|(a, b)| a.max(b));
        let nan_differs = nan_bits && (nan_among(e) || nan_among(a));
        if nan_differs || !(first.within(tolerance) && second.within(tolerance)) {
            found.wrong += 1;
            if worst.len() < Comparison::MAX_KEPT_ELEMENTS || worst.last().is_some_and(|w| w.0 < error.rel) {
                let at = worst.partition_point(|w| w.0 >= error.rel);
                worst.insert(at, (error.rel, i, error));
                worst.truncate(Comparison::MAX_KEPT_ELEMENTS);
            }
        }
    };
    hlo::with_buffer!(&*expected.buffer, e => differing(e, actual, &mut each));
    found.worst = worst
        .into_iter()
        .map(|(_, i, error)| WrongElement {
            index: index_of(i, &actual.dims),
            expected: text_at(expected, i),
            actual: text_at(actual, i),
            abs: error.abs,
            rel: error.rel,
            ulp: error.ulp,
        })
        .collect();
    found
}

/// The same bits in every part that is not a NaN on both sides.
fn same_but_nan_bits(e: Parts, a: Parts) -> bool {
    fn same(e: Part, a: Part) -> bool {
        match (e, a) {
            (Part::Int(e), Part::Int(a)) => e == a,
            (Part::Float { value: e, .. }, Part::Float { value: a, .. }) => {
                e.is_nan() && a.is_nan() || e.to_bits() == a.to_bits()
            }
            (Part::Int(_), Part::Float { .. }) | (Part::Float { .. }, Part::Int(_)) => false,
        }
    }
    same(e.0, a.0) && e.1.zip(a.1).is_none_or(|(e, a)| same(e, a))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::Buffer;

    fn f32s(values: &[f32]) -> ArrayLiteral {
        ArrayLiteral::new([values.len() as i64].into_iter().collect(), Buffer::F32(values.to_vec())).unwrap()
    }

    #[test]
    fn exact_tells_zeros_apart_and_nans_together() {
        let c =
            compare(&f32s(&[0.0, f32::NAN, 1.0]), &f32s(&[-0.0, -f32::NAN, 1.0]), Tolerance::Exact, false);
        assert_eq!((c.wrong, c.same, c.max_ulp), (1, 2, Some(0)));
        assert_eq!((c.worst[0].index.as_slice(), &*c.worst[0].actual), (&[0i64][..], "-0"));
        let c = compare(&f32s(&[f32::NAN]), &f32s(&[-f32::NAN]), Tolerance::Exact, true);
        assert_eq!(c.wrong, 1);
    }

    #[test]
    fn ulps_count_representable_numbers_of_the_type() {
        let next = |x: f32, n: u32| f32::from_bits(x.to_bits() + n);
        let (e, a) = (f32s(&[1.0, 2.0]), f32s(&[next(1.0, 3), 2.0]));
        assert!(compare(&e, &a, Tolerance::Ulp(3), false).passes());
        let c = compare(&e, &a, Tolerance::Ulp(2), false);
        assert_eq!((c.wrong, c.max_ulp), (1, Some(3)));
        let c = compare(&f32s(&[f32::MAX]), &f32s(&[f32::INFINITY]), Tolerance::Ulp(u64::MAX), false);
        assert_eq!((c.wrong, c.max_ulp), (1, None));
        let half = |x: f32| {
            let v = vec![hlo::half::bf16::from_f32(x)];
            ArrayLiteral::new([1].into_iter().collect(), Buffer::BF16(v)).unwrap()
        };
        assert_eq!(compare(&half(1.0), &half(1.0078125), Tolerance::Exact, false).max_ulp, Some(1));
    }

    #[test]
    fn close_needs_both_errors_exceeded() {
        let close = Tolerance::Close { abs: 1e-3, rel: 1e-3 };
        assert!(compare(&f32s(&[1000.0, 1e-9]), &f32s(&[1000.5, 5e-4]), close, false).passes());
        let c = compare(&f32s(&[0.0, 1.0, f32::INFINITY]), &f32s(&[0.5, 1.01, 3.0]), close, false);
        assert_eq!(c.wrong, 3);
        assert_eq!(c.worst[0].rel, f64::INFINITY);
        assert!(!compare(&f32s(&[f32::NAN]), &f32s(&[1.0]), close, false).passes());
    }

    #[test]
    fn other_dimensions_are_wrong() {
        assert!(!compare(&f32s(&[]), &f32s(&[1.0]), Tolerance::Abs(9.0), false).passes());
    }

    #[test]
    fn indices() {
        assert_eq!(index_of(7, &[2, 3, 2]), [1, 0, 1]);
        assert_eq!(index_of(0, &[]), [0i64; 0]);
    }
}
