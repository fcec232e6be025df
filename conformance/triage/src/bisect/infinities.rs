//! Whether it depends on rounding that a result is infinite, NaN or finite.
//!
//! A form is run with wide errors at every number it starts from and every rounding ([`Errors::Wide`]); an
//! element that is infinite in one run and finite in another is near an overflow. Sums may be added up in any
//! order: where the terms of one could overflow in some order (the certified hard bound is infinite) a finite
//! result decides nothing. An infinite one is infinite or NaN in any order.

use hlo::opcode::NumericRow;
use hlo::{ArrayLiteral, Module};

use super::dumps::finished;
use super::noise::{self, Errors, PERTURBED_RUNS};
use hlo_certify::bounds::certify;
use hlo_engines::engine::{Allowances, Inputs, RunOptions};
use hlo_execution::element::numbers;

/// What a number is, as far as overflow goes; a set of these is a number of these bits.
fn class(x: f64) -> u8 {
    match x {
        x if x.is_nan() => 8,
        f64::INFINITY => 4,
        f64::NEG_INFINITY => 2,
        _ => FINITE,
    }
}

const FINITE: u8 = 1;

/// Any of them.
const ANY: u8 = 15;

/// The freedoms of compilers with sums that a form does not show.
const ORDERS: Allowances = Allowances {
    narrow_accumulator: true,
    reorder_regions: true,
    decompositions: true,
    ..Allowances::STRICT
};

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
    for seed in 0..PERTURBED_RUNS {
        let errors = Errors::Wide { seed, unconverted: form.unconverted };
        let Some(inputs) = inputs() else { break };
        // A run that errors lead elsewhere shows nothing.
        let Ok(results) = finished(noise::run(form.module, inputs, options, errors, false).0) else {
            continue;
        };
        for ((seen, result), asked) in seen.iter_mut().zip(&results).zip(asked) {
            seen.iter_mut().zip(of(result, asked)).for_each(|(s, c)| *s |= c);
        }
    }
    if let Some(inputs) = inputs().filter(|_| has_sums(form.module))
        && let Ok(certified) = certify(form.module, inputs, options, ORDERS, &mut ())
    {
        let bounds = certified.results.iter().flatten();
        for ((seen, (array, bounds)), asked) in seen.iter_mut().zip(bounds).zip(asked) {
            let parts = if array.buffer.element_type().is_complex() { 2 } else { 1 };
            for (seen, &i) in seen.iter_mut().zip(*asked) {
                if bounds.hard.at(i / parts) == f64::INFINITY {
                    *seen |= if *seen & FINITE != 0 { ANY } else { ANY & !FINITE };
                }
            }
        }
    }
    seen
}

fn has_sums(module: &Module) -> bool {
    let mut all = module.computations().iter().flat_map(|&c| module.instructions(c));
    all.any(|i| {
        matches!(
            module.instr(i).opcode.numeric_row(),
            NumericRow::Sum | NumericRow::Region | NumericRow::Opaque
        )
    })
}
