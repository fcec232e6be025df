//! Whether it depends on rounding that a result is infinite, NaN or finite.
//!
//! A form is run with wide errors at every number it starts from and every rounding ([`Errors::Wide`]), and
//! with sums that overflow where some order of their terms does ([`super::orders`]); an element that is
//! infinite in one run and finite in another decides nothing.

use hlo::{ArrayLiteral, Module};

use super::dumps::finished;
use super::noise::{self, Errors, PERTURBED_RUNS};
use super::orders::Orders;
use hlo_engines::engine::{Inputs, RunOptions};
use hlo_execution::element::numbers;

/// What a number is, as far as overflow goes; a set of these is a number of these bits.
fn class(x: f64) -> u8 {
    match x {
        x if x.is_nan() => 8,
        f64::INFINITY => 4,
        f64::NEG_INFINITY => 2,
        _ => 1,
    }
}

/// A form whose results are asked about.
pub struct Form<'a> {
    /// The program.
    pub module: &'a Module,
    /// Its results.
    pub results: &'a [ArrayLiteral],
    /// Whether the other form may leave out conversions to narrower types that this one has.
    pub unconverted: bool,
}

/// For each result and each of the numbers of it that are asked about, what it may be.
/// `inputs` makes the inputs of a run, `None` if there are none.
pub fn classes(
    form: &Form<'_>,
    inputs: &dyn Fn() -> Option<Inputs>,
    options: &RunOptions,
    asked: &[&[usize]],
) -> Vec<Vec<u8>> {
    let of = |array: &ArrayLiteral, asked: &[usize]| -> Vec<u8> {
        let numbers = numbers(array);
        asked.iter().map(|&i| numbers.get(i).map_or(0, |&x| class(x))).collect()
    };
    let mut seen: Vec<Vec<u8>> = form.results.iter().zip(asked).map(|(r, a)| of(r, a)).collect();
    let mut see = |results: &[ArrayLiteral]| {
        for ((seen, result), asked) in seen.iter_mut().zip(results).zip(asked) {
            seen.iter_mut().zip(of(result, asked)).for_each(|(s, c)| *s |= c);
        }
    };
    for seed in 0..PERTURBED_RUNS {
        let errors = Errors::Wide { seed, unconverted: form.unconverted };
        let Some(inputs) = inputs() else { break };
        // A run that errors lead elsewhere shows nothing.
        if let Ok(results) = finished(noise::run(form.module, inputs, options, errors, false).0) {
            see(&results);
        }
    }
    if let Some(orders) = inputs().and_then(|inputs| Orders::of(form.module, inputs, options)) {
        orders.results(form.module, inputs, options).iter().for_each(|results| see(results));
    }
    seen
}
