//! Sums of what has the scale of a running maximum (online softmax): pairs `(m, s)` stand for `s exp(m)`, and
//! are merged to `(M, s1 exp(m1 - M) + s2 exp(m2 - M))` with `M = max(m1, m2)`. The whole is
//! `S = sum s_i exp(m_i - M)` with the greatest of all as `M`, in any order.
//!
//! A term is multiplied by `exp(a - b)` for the maxima `a <= b` of larger and larger parts, whose differences
//! add up to `M - m_i`. Maxima are exact, so a difference is off by one rounding of itself, together at most
//! `u (M - m_i)`, which is a factor of `exp(u (M - m_i))`. The exponential, the product and the sum of a step
//! are off by `k` units; so after `n - 1` steps a term is within
//! `|s_i| exp(m_i - M) ((1 + k u)^(n - 1) exp(u (M - m_i)) - 1)` of what it is exactly. No factor is above 1:
//! what underflows in a step is a least number times no more than the sum of all `|s_i|`.
//! Maxima that are off by `r` move each exponent by no more than that of the term and of the greatest.

use hlo::Opcode;
use hlo_perturbation::{UNKNOWN, exponential, gamma};

use crate::bounds::Radii;
use crate::bounds::number::Numbers;
use crate::bounds::rules::{Case, Mode};
use crate::bounds::terms::Terms;

use super::{Column, around, of_function, rounding_of};

/// The radii of a component whose terms are scaled by the maximum that another one is.
pub(super) fn sums(case: &Case<'_>, [component, by]: [usize; 2], terms: &Terms, mode: Mode) -> Option<Radii> {
    let (sums, maxima) = (Column::of(case, component, mode)?, Column::of(case, by, mode)?);
    if sums.ty != maxima.ty {
        return None;
    }
    let rounding = rounding_of(case, sums.ty)?;
    let u = rounding.unit + 4.0 * f64::EPSILON;
    let step = of_function(case, Opcode::Exponential, sums.ty, rounding.unit) + 2.0 * u;
    let v = Numbers::of(case.results[component]);
    let radius = |i: usize| {
        let pairs = || sums.terms(terms, i).zip(maxima.terms(terms, i));
        if let Some(off) = sums.of_initial_value(terms, i) {
            return off;
        }
        let steps = terms.at(i).len() as f64;
        // Two that are minus infinity have no difference.
        let nothing = pairs().filter(|(_, m)| m.value == f64::NEG_INFINITY && m.off == 0.0).count();
        let known = |m: f64| m.is_finite() || m == f64::NEG_INFINITY;
        let open = pairs().any(|(s, m)| {
            !s.value.is_finite()
                || !s.off.is_finite()
                || !m.off.is_finite()
                || !known(m.value)
                || m.value.is_infinite() && m.off != 0.0
        });
        if open || nothing > 1 {
            return UNKNOWN;
        }
        let most = pairs().fold(f64::NEG_INFINITY, |most, (_, m)| most.max(m.value));
        let farthest = pairs().fold(0.0f64, |far, (_, m)| far.max(m.off));
        let growth = gamma(steps, step);
        let (mut exact, mut size, mut off, mut all) = (0.0, 0.0, 0.0, 0.0);
        for (s, m) in pairs() {
            let size_of = s.value.abs() + s.off;
            all += size_of;
            if m.value.is_infinite() {
                continue;
            }
            let distance = most - m.value;
            let factor = exponential(-distance);
            let moved = m.off + farthest;
            let exponent = u * (distance + moved) + moved + 4.0 * steps * rounding.small;
            let grown = (1.0 + growth) * exponential(exponent) - 1.0;
            exact += s.value * factor;
            size += size_of * factor;
            off += size_of * factor * grown + s.off * factor;
        }
        if all * (1.0 + growth) >= rounding.format.max {
            return if v.is_finite(i) || mode == Mode::Hard { UNKNOWN } else { 0.0 };
        }
        let small = 2.0 * steps * rounding.small * (all + 2.0) * (1.0 + growth);
        let own = (steps + 8.0) * 8.0 * f64::EPSILON * size;
        around(exact, off + small + own, v.re[i], rounding, mode)
    };
    Some(Radii::new((0..v.len()).map(radius).collect()))
}
