//! XLA's comparison within an absolute and a relative bound, with its report (`xla/literal_comparison.cc`,
//! `xla/error_spec.h`).
//!
//! A part of an element is wrong if it exceeds both bounds; the relative error is against the expected
//! number. NaN equals NaN; an infinity equals itself and is infinitely far from anything else. Integers and
//! predicates must be equal. Complex numbers are compared part by part.

use hlo::ArrayLiteral;

use crate::compare::error_of;
use hlo_execution::element::{Number, Part, Parts, index_of, nan_among, text_at};

/// The two bounds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ErrorSpec {
    /// Absolute.
    pub abs: f64,
    /// Relative.
    pub rel: f64,
}

impl Default for ErrorSpec {
    fn default() -> Self {
        Self { abs: 1e-3, rel: 1e-3 }
    }
}

/// Borders of the buckets that errors are counted in.
const ERROR_BUCKETS: [f64; 5] = [1e-4, 1e-3, 1e-2, 1e-1, 1.0];
/// Borders of the buckets that magnitudes are counted in.
const VALUE_BUCKETS: [f64; 6] = [0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0];
/// The maximum of the worst elements that are shown.
const MAX_SHOWN_ELEMENTS: usize = 5;

struct Mismatch {
    index: usize,
    abs: f64,
    rel: f64,
    ulp: Option<u64>,
}

/// Compares two arrays; `None` if they are near enough, else the report. `name` says which array this is.
pub fn near(name: &str, expected: &ArrayLiteral, actual: &ArrayLiteral, spec: ErrorSpec) -> Option<String> {
    if expected.dims != actual.dims || expected.buffer.element_type() != actual.buffer.element_type() {
        return Some(format!("{name}: shape {} where {} was expected\n", actual.shape(), expected.shape()));
    }
    fn elements<T: Number>(array: &[T], other: &ArrayLiteral, each: &mut dyn FnMut(usize, Parts, Parts)) {
        let other = T::slice(&other.buffer).expect("invariant: the element types were compared");
        for (i, (x, y)) in array.iter().zip(other).enumerate() {
            each(i, x.parts(), y.parts());
        }
    }
    let ty = expected.buffer.element_type();
    let exact = !(ty.is_float() || ty.is_complex());
    let mut wrong: Vec<Mismatch> = Vec::new();
    let mut report = Report::default();
    let mut each = |index: usize, expected: Parts, actual: Parts| {
        let parts = [Some((expected.0, actual.0)), expected.1.zip(actual.1)];
        let mut worst: Option<Mismatch> = None;
        for (e, a) in parts.into_iter().flatten() {
            let error = error_of(e, a);
            report.count(e, error.abs, error.rel, spec);
            let is_wrong = if exact { error.abs > 0.0 } else { error.abs > spec.abs && error.rel > spec.rel };
            if is_wrong && worst.as_ref().is_none_or(|w| error.rel > w.rel) {
                worst = Some(Mismatch { index, abs: error.abs, rel: error.rel, ulp: error.ulp });
            }
        }
        report.nan_mismatches += usize::from(nan_among(expected) != nan_among(actual));
        wrong.extend(worst);
    };
    hlo::with_buffer!(&*expected.buffer, e => elements(e, actual, &mut each));
    if wrong.is_empty() {
        return None;
    }
    let n = expected.buffer.len();
    let percent = |k: usize| 100.0 * k as f64 / n.max(1) as f64;
    let mut text = format!(
        "{name}: mismatch count {} ({:.4}%) in shape {} ({n} elements), abs bound {}, rel bound {}\n",
        wrong.len(),
        percent(wrong.len()),
        actual.shape(),
        spec.abs,
        spec.rel
    );
    text.push_str("Top relative error mismatches:\n");
    wrong.sort_by(|a, b| b.rel.total_cmp(&a.rel).then(a.index.cmp(&b.index)));
    for w in wrong.iter().take(MAX_SHOWN_ELEMENTS) {
        let index: Vec<String> = index_of(w.index, &actual.dims).iter().map(i64::to_string).collect();
        text.push_str(&format!(
            "  actual {}, expected {}, index {{{}}}, rel error {:.3e}, abs error {:.3e}{}\n",
            text_at(actual, w.index),
            text_at(expected, w.index),
            index.join(","),
            w.rel,
            w.abs,
            w.ulp.map(|u| format!(", float distance {u}")).unwrap_or_default()
        ));
    }
    if !exact {
        report.write(&mut text);
        if let Some(s) = suggest(&wrong) {
            text.push_str(&format!("Suggested ErrorSpec: {s}\n"));
        }
    }
    Some(text)
}

#[derive(Default)]
struct Report {
    parts: usize,
    nan_mismatches: usize,
    values: [usize; VALUE_BUCKETS.len()],
    abs: [usize; ERROR_BUCKETS.len()],
    rel: [usize; ERROR_BUCKETS.len()],
    over_abs: usize,
    over_rel: usize,
}

impl Report {
    fn count(&mut self, expected: Part, abs: f64, rel: f64, spec: ErrorSpec) {
        self.parts += 1;
        let magnitude = expected.value().abs();
        if let Some(at) = VALUE_BUCKETS.iter().rposition(|&b| magnitude >= b) {
            self.values[at] += 1;
        }
        for (i, &border) in ERROR_BUCKETS.iter().enumerate() {
            self.abs[i] += usize::from(abs > border);
            self.rel[i] += usize::from(rel > border);
        }
        self.over_abs += usize::from(abs > spec.abs);
        self.over_rel += usize::from(rel > spec.rel);
    }

    fn write(&self, text: &mut String) {
        let percent = |k: usize| 100.0 * k as f64 / self.parts.max(1) as f64;
        text.push_str("Magnitudes of the expected values:\n");
        for (i, &k) in self.values.iter().enumerate() {
            let high = VALUE_BUCKETS.get(i + 1).map_or("inf".to_owned(), f64::to_string);
            text.push_str(&format!("  [{}, {high}): {k} ({:.4}%)\n", VALUE_BUCKETS[i], percent(k)));
        }
        for (what, over, buckets) in [("abs", self.over_abs, &self.abs), ("rel", self.over_rel, &self.rel)] {
            text.push_str(&format!("Elements exceeding the {what} bound: {over} ({:.4}%)\n", percent(over)));
            for (border, k) in ERROR_BUCKETS.iter().zip(buckets) {
                text.push_str(&format!("  > {border}: {k} ({:.4}%)\n", percent(*k)));
            }
        }
        if self.nan_mismatches > 0 {
            text.push_str(&format!("NaN against a number: {}\n", self.nan_mismatches));
        }
    }
}

/// Bounds that would let every element pass: none of the pairs is looser than another in both. The pair with
/// the smallest sum of logarithms stands between the two extremes.
fn suggest(wrong: &[Mismatch]) -> Option<String> {
    if wrong.iter().any(|w| !w.abs.is_finite()) {
        return None;
    }
    let mut by_abs: Vec<(f64, f64)> = wrong.iter().map(|w| (w.abs, w.rel)).collect();
    by_abs.sort_by(|a, b| b.0.total_cmp(&a.0));
    // Bound abs by element k: those before it need the relative bound.
    let mut frontier = Vec::new();
    let mut rel = 0.0f64;
    for &(abs, own) in &by_abs {
        frontier.push((abs, rel));
        rel = rel.max(own);
    }
    frontier.push((0.0, rel));
    let usable = |p: &&(f64, f64)| p.1.is_finite();
    let knee = frontier
        .iter()
        .filter(usable)
        .filter(|p| p.0 > 0.0 && p.1 > 0.0)
        .min_by(|a, b| (a.0 * a.1).total_cmp(&(b.0 * b.1)));
    let ends = [frontier.first(), knee, frontier.last()];
    let mut pairs: Vec<String> =
        ends.into_iter().flatten().filter(usable).map(|(a, r)| format!("abs {a:.3e} rel {r:.3e}")).collect();
    pairs.dedup();
    Some(pairs.join("; or "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::Buffer;

    fn f32s(values: &[f32]) -> ArrayLiteral {
        ArrayLiteral::new([values.len() as i64].into_iter().collect(), Buffer::F32(values.to_vec())).unwrap()
    }

    fn s32s(values: &[i32]) -> ArrayLiteral {
        ArrayLiteral::new([values.len() as i64].into_iter().collect(), Buffer::S32(values.to_vec())).unwrap()
    }

    #[test]
    fn both_bounds_must_be_exceeded() {
        let spec = ErrorSpec::default();
        assert_eq!(near("r", &f32s(&[1000.0, 0.0]), &f32s(&[1000.9, 0.0009]), spec), None);
        assert!(near("r", &f32s(&[0.0]), &f32s(&[0.0011]), spec).is_some());
        assert_eq!(
            near("r", &f32s(&[f32::NAN, f32::INFINITY]), &f32s(&[-f32::NAN, f32::INFINITY]), spec),
            None
        );
        assert!(near("r", &f32s(&[f32::INFINITY]), &f32s(&[f32::MAX]), spec).is_some());
        assert!(near("r", &s32s(&[1_000_000]), &s32s(&[1_000_001]), spec).is_some());
    }

    #[test]
    fn the_report_tells_what_xla_tells() {
        let text = near(
            "out0",
            &f32s(&[1.0, 2.0, f32::NAN, 4.0]),
            &f32s(&[1.5, 2.0, 3.0, 4.1]),
            ErrorSpec::default(),
        )
        .unwrap();
        assert!(text.starts_with("out0: mismatch count 3 (75.0000%) in shape f32[4] (4 elements), abs bound 0.001, rel bound 0.001\n"), "{text}");
        assert!(text.contains("actual 3, expected nan, index {2}, rel error inf"), "{text}");
        assert!(text.contains("  [1, inf): 3 (75.0000%)"), "{text}");
        assert!(text.contains("NaN against a number: 1"), "{text}");
        let text = near("out0", &f32s(&[1.0, 4.0]), &f32s(&[1.5, 5.0]), ErrorSpec::default()).unwrap();
        assert!(text.contains("Suggested ErrorSpec: abs 1.000e0 rel 0.000e0; or abs 5.000e-1 rel 2.500e-1; or abs 0.000e0 rel 5.000e-1"), "{text}");
    }
}
