//! The checks of a `case.json`: what it takes for a result to be right.

use hlo::{ArrayLiteral, ElementType, TypeClass};
use serde::{Deserialize, Serialize};

use crate::compare::{Comparison, Tolerance, compare};
use crate::residual::residuals;

/// The check of one result.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Check {
    /// The same bits, NaN equal to NaN.
    Exact,
    /// At most this many representable numbers away.
    Ulp {
        /// The most.
        max_ulp: u64,
        /// The smallest that the recorded implementation is known to need; not asked of others.
        #[serde(default)]
        min_ulp: u64,
    },
    /// At most this absolute error.
    Abs {
        /// The bound.
        atol: f64,
    },
    /// Wrong only if both bounds are exceeded.
    Close {
        /// Absolute error.
        abs: f64,
        /// Relative error.
        rel: f64,
    },
    /// Formulas that must vanish (see [`crate::residual`]).
    Residual {
        /// Formulas, separated by `;`.
        expr: String,
        /// The largest norm, relative to that of `arg0`.
        tol: f64,
    },
}

/// The verdict of a check on one result.
#[derive(Clone, PartialEq, Debug)]
pub struct Verdict {
    /// The result is right.
    pub pass: bool,
    /// The comparison with the recorded value; under [`Check::Residual`] it decides nothing, since results
    /// are not unique.
    pub comparison: Comparison,
    /// Why it is not right, in a few words.
    pub reason: String,
}

impl Check {
    /// What is used where nothing else is said: integers exactly, floats as closely as two good compilers
    /// agree on ordinary programs.
    pub fn default_for(ty: ElementType) -> Check {
        match ty.class() {
            TypeClass::Pred | TypeClass::Signed | TypeClass::Unsigned => Check::Exact,
            TypeClass::Float | TypeClass::Complex => {
                let (abs, rel) = match ty.real_part().bits() {
                    64 => (1e-12, 1e-9),
                    32 => (1e-5, 1e-4),
                    16 if ty == ElementType::BF16 => (0.01, 0.02),
                    16 => (0.001, 0.004),
                    _ => (0.0, 0.26),
                };
                Check::Close { abs, rel }
            }
        }
    }

    /// In a few words.
    pub fn describe(&self) -> String {
        match self {
            Check::Exact => "same bits".into(),
            Check::Ulp { max_ulp, .. } => format!("within {max_ulp} ulp"),
            Check::Abs { atol } => format!("within {atol:e}"),
            Check::Close { abs, rel } => format!("within {abs:e} or {rel:e} of the value"),
            Check::Residual { expr, tol } => format!("residual of {expr} at most {tol:e}"),
        }
    }

    /// Checks one result. `args` and `results` are all of the run, for residuals.
    pub fn check(
        &self,
        expected: &ArrayLiteral,
        actual: &ArrayLiteral,
        args: &[ArrayLiteral],
        results: &[&ArrayLiteral],
        nan_bits: bool,
    ) -> Verdict {
        let tolerance = match *self {
            Check::Exact | Check::Residual { .. } => Tolerance::Exact,
            Check::Ulp { max_ulp, .. } => Tolerance::Ulp(max_ulp),
            Check::Abs { atol } => Tolerance::Abs(atol),
            Check::Close { abs, rel } => Tolerance::Close { abs, rel },
        };
        let same_shape =
            expected.dims == actual.dims && expected.buffer.element_type() == actual.buffer.element_type();
        let comparison = compare(expected, actual, tolerance, nan_bits);
        if !same_shape {
            let reason = format!("has shape {}, expected {}", actual.shape(), expected.shape());
            return Verdict { pass: false, comparison, reason };
        }
        if let Check::Residual { expr, tol } = self {
            let (pass, reason) = match residuals(expr, args, results) {
                Ok(found) => {
                    let worst =
                        found.iter().copied().fold(0.0, |a: f64, b| if a.is_nan() || b <= a { a } else { b });
                    (found.iter().all(|r| r <= tol), format!("residual {worst:.3e}, at most {tol:e} allowed"))
                }
                Err(e) => (false, e),
            };
            return Verdict { pass, comparison, reason };
        }
        let reason = comparison.worst.first().map_or_else(String::new, |w| {
            let distance = match w.ulp {
                Some(u)
                    if actual.buffer.element_type().is_float()
                        || actual.buffer.element_type().is_complex() =>
                {
                    format!("{u} ulp, rel {:.1e}", w.rel)
                }
                Some(_) => format!("by {}", w.abs),
                None => "infinitely far".into(),
            };
            let index: Vec<String> = w.index.iter().map(i64::to_string).collect();
            format!(
                "{} of {} wrong; [{}]: expected {}, got {} ({distance})",
                comparison.wrong,
                comparison.elements,
                index.join(","),
                w.expected,
                w.actual
            )
        });
        Verdict { pass: comparison.passes(), comparison, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::Buffer;

    fn parse(json: &str) -> Check {
        serde_json::from_str(json).unwrap()
    }

    fn f32s(values: &[f32]) -> ArrayLiteral {
        ArrayLiteral::new([values.len() as i64].into_iter().collect(), Buffer::F32(values.to_vec())).unwrap()
    }

    #[test]
    fn the_json_of_each_kind() {
        assert_eq!(parse(r#"{"kind": "exact"}"#), Check::Exact);
        assert_eq!(
            parse(r#"{"kind": "ulp", "max_ulp": 3, "min_ulp": 0}"#),
            Check::Ulp { max_ulp: 3, min_ulp: 0 }
        );
        assert_eq!(parse(r#"{"kind": "abs", "atol": 0.0001}"#), Check::Abs { atol: 1e-4 });
        assert_eq!(
            parse(r#"{"kind": "close", "abs": 1e-05, "rel": 0.0001}"#),
            Check::Close { abs: 1e-5, rel: 1e-4 }
        );
        assert_eq!(
            parse(r#"{"kind": "residual", "expr": "out0", "tol": 1e-13}"#),
            Check::Residual { expr: "out0".into(), tol: 1e-13 }
        );
        assert!(serde_json::from_str::<Check>(r#"{"kind": "vague"}"#).is_err());
    }

    #[test]
    fn a_failure_says_where_and_how_far() {
        let v = Check::Ulp { max_ulp: 1, min_ulp: 0 }.check(
            &f32s(&[1.0, 2.0]),
            &f32s(&[1.0, 2.5]),
            &[],
            &[],
            false,
        );
        assert!(!v.pass);
        assert_eq!(v.reason, "1 of 2 wrong; [1]: expected 2, got 2.5 (2097152 ulp, rel 2.5e-1)");
        let v = Check::Exact.check(&f32s(&[1.0]), &f32s(&[1.0, 1.0]), &[], &[], false);
        assert_eq!((v.pass, &*v.reason), (false, "has shape f32[2], expected f32[1]"));
    }

    #[test]
    fn residuals_decide_instead_of_values() {
        let (arg, out) = (f32s(&[1.0]), f32s(&[-1.0]));
        let check = |expr: &str| {
            Check::Residual { expr: expr.into(), tol: 1e-6 }.check(
                &f32s(&[1.0]),
                &out,
                std::slice::from_ref(&arg),
                &[&out],
                false,
            )
        };
        assert!(check("out0 * out0 - arg0").pass);
        let v = check("out0 - arg0");
        assert_eq!((v.pass, &*v.reason), (false, "residual 2.000e0, at most 1e-6 allowed"));
        assert!(!check("out0 - wrong").pass);
    }
}
