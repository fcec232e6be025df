//! Folds of one element, into which the initial value may not enter ([`Allowances::initial_values`]).
//!
//! Whether it does is a decision of the engine's: hard bounds reach as far as the element alone. Soft ones stay, and
//! a run of the reference that leaves it out has bounds of its own.
//!
//! [`Allowances::initial_values`]: hlo_execution::allowances::Allowances::initial_values

use super::folds::{apart, is_of_one};
use super::rules::{Case, at_least};
use super::{Leaf, Radii};

/// Widens hard bounds by how far the elements are from the results.
pub(super) fn beside(case: &Case<'_>, leaves: &mut [Leaf]) {
    if !case.settings.allowances.initial_values || is_of_one(case) != Some(true) {
        return;
    }
    for ((leaf, result), value) in leaves.iter_mut().zip(&case.results).zip(&case.args) {
        if value.tensor.len() != result.len() {
            continue;
        }
        let alone = |i: usize| match apart(value.tensor, result, i) + value.leaf.bounds.hard.at(i) {
            0.0 => 0.0,
            // From a NaN to a number.
            far if far.is_nan() => f64::INFINITY,
            far => far.next_up(),
        };
        let hard: Vec<f64> = (0..result.len()).map(alone).collect();
        if hard.iter().any(|&r| r > 0.0) {
            let hard = hard.into_iter().enumerate().map(|(i, r)| leaf.bounds.hard.at(i).max(r));
            leaf.bounds.hard = at_least(result, Radii::new(hard.collect()));
        }
    }
}
