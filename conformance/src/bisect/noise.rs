//! How far rounding moves a program's results, found by trying: every instruction that rounds gets results that are a unit or two of the last
//! place off, at random, in several runs (Monte Carlo arithmetic).
//!
//! The certified tolerance says what a compiler may do that keeps the program's operations. Another compiler's passes exchange operations for
//! others that are equal in exact arithmetic (`x / c` for `x * (1 / c)`, one expansion of a function for another), so that their results differ
//! from ours by a few units at each step. What is farther off than [`FACTOR`] times what such errors did in any run is no rounding.

use std::sync::{Arc, Mutex, PoisonError};

use hlo::elided::splitmix64;
use hlo::opcode::NumericRow;
use hlo::{ArrayLiteral, Buffer, ElementType, Module, Opcode, with_buffer};
use hlo_interp::observe::{Flow, Observer, Site};
use hlo_interp::{Tensor, Value};
use rustc_hash::FxHashMap;

use crate::element::Number;
use crate::engine::interpreter::interpret;
use crate::engine::{Inputs, Outcome, RunOptions};

/// How many runs with errors.
pub const RUNS: u64 = 6;
/// What is more than so many times what the errors came to is no rounding.
pub const FACTOR: f64 = 8.0;
/// Units of the last place that are always granted to a float that was computed.
pub const UNITS: f64 = 32.0;

/// An instruction by the names that stay: its computation's and its own.
pub type Key = (Arc<str>, Arc<str>);

/// Values of the first execution of each instruction, in the order of the run.
#[derive(Clone, Debug, Default)]
pub struct Values {
    /// Arrays of each, tuples flattened.
    pub by_key: FxHashMap<Key, (usize, Vec<ArrayLiteral>)>,
    elements: usize,
}

/// Arrays and all values together larger than this are not kept.
const MAX_ELEMENTS: usize = 1 << 20;
const MAX_ALL: usize = 1 << 24;

/// Watches a run, and puts errors into it.
#[derive(Debug)]
struct Noise {
    /// None: no errors.
    seed: Option<u64>,
    keep: bool,
    values: Mutex<Values>,
}

impl Observer for Noise {
    fn leave(&self, site: &Site<'_>, result: &Value) -> Flow {
        if site.nesting > 0 {
            return Flow::Continue;
        }
        let noisy = self.seed.filter(|_| rounds(site.instr().opcode)).map(|seed| {
            let device = u64::from(site.device.replica) << 32 | u64::from(site.device.partition);
            let at = splitmix64(seed ^ splitmix64(site.id.index() as u64) ^ device.rotate_left(17));
            disturbed(result, splitmix64(at ^ site.execution))
        });
        if self.keep && site.execution == 0 {
            let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
            let module = site.module;
            let key = (module.computation(site.computation()).name.clone(), site.instr().name.clone());
            let mut arrays = Vec::new();
            crate::engine::flatten(noisy.as_ref().unwrap_or(result).clone().into_literal(), &mut arrays);
            let elements: usize = arrays.iter().map(|a| a.buffer.len()).sum();
            if elements <= MAX_ELEMENTS && values.elements + elements <= MAX_ALL {
                values.elements += elements;
                let order = values.by_key.len();
                values.by_key.entry(key).or_insert((order, arrays));
            }
        }
        noisy.map_or(Flow::Continue, Flow::Replace)
    }
}

/// Whether an instruction of this opcode rounds, or applies a computation that may.
fn rounds(opcode: Opcode) -> bool {
    match opcode.numeric_row() {
        NumericRow::ExactReal(_) => !matches!(opcode, Opcode::Abs | Opcode::Sign),
        NumericRow::Elementary(_) | NumericRow::Sum | NumericRow::Region | NumericRow::Opaque => true,
        NumericRow::Called => false,
        NumericRow::Exact => matches!(opcode, Opcode::Convert | Opcode::ReducePrecision | Opcode::Remainder),
    }
}

fn disturbed(value: &Value, seed: u64) -> Value {
    match value {
        Value::Array(t) => {
            let ty = t.element_type();
            if unit(ty).is_none() {
                return value.clone();
            }
            let buffer = disturbed_buffer(t.buffer(), seed);
            Value::Array(Tensor::new(t.dims().to_vec(), buffer))
        }
        Value::Tuple(parts) => Value::tuple(
            parts.iter().enumerate().map(|(i, p)| disturbed(p, splitmix64(seed.wrapping_add(i as u64)))),
        ),
        Value::Token | Value::Pending(_) => value.clone(),
    }
}

/// The unit of the last place of 1, of the types that get errors.
fn unit(ty: ElementType) -> Option<f64> {
    Some(match ty.real_part() {
        ElementType::F64 => f64::EPSILON,
        ElementType::F32 => f64::from(f32::EPSILON),
        ElementType::F16 => 2f64.powi(-10),
        ElementType::BF16 => 2f64.powi(-7),
        _ => return None,
    })
}

fn disturbed_buffer(buffer: &Buffer, seed: u64) -> Buffer {
    let unit = unit(buffer.element_type()).unwrap_or(0.0);
    fn each<T: Number>(v: &[T], unit: f64, seed: u64) -> Buffer {
        let off = |x: f64, r: u64| {
            // Narrow types have few units to give away.
            let steps = if unit > 1e-4 { [-1.0, 0.0, 0.0, 1.0] } else { [-2.0, -1.0, 1.0, 2.0] };
            if x.is_finite() { x * (1.0 + unit * steps[(r >> 7) as usize & 3]) } else { x }
        };
        let element = |(i, x): (usize, &T)| {
            let r = splitmix64(seed.wrapping_add(i as u64));
            let (re, im) = x.parts();
            let (re, im) = (re.value(), im.map_or(0.0, |p| p.value()));
            // What is not finite keeps its bits.
            let moved = (off(re, r), off(im, splitmix64(r)));
            if re.is_finite() && im.is_finite() { T::from_parts(moved.0, moved.1) } else { *x }
        };
        T::wrap(v.iter().enumerate().map(element).collect())
    }
    with_buffer!(buffer, v => each(v, unit, seed))
}

/// Runs a program. With a seed: with errors. The values of its instructions, if `keep`.
pub fn run(
    module: &Module,
    inputs: Inputs,
    options: &RunOptions,
    seed: Option<u64>,
    keep: bool,
) -> (Outcome, Values) {
    if seed.is_none() && !keep {
        return (interpret(module, inputs, options, None), Values::default());
    }
    let noise = Arc::new(Noise { seed, keep, values: Mutex::default() });
    let outcome = interpret(module, inputs, options, Some(noise.clone()));
    let values = std::mem::take(&mut *noise.values.lock().unwrap_or_else(PoisonError::into_inner));
    (outcome, values)
}

/// The numbers of an array: two for each complex element.
pub fn numbers(array: &ArrayLiteral) -> Vec<f64> {
    with_buffer!(&array.buffer, v => v
        .iter()
        .flat_map(|x| {
            let (re, im) = x.parts();
            std::iter::once(re.value()).chain(im.map(|p| p.value()))
        })
        .collect())
}

/// How far each number of an array may be from the reference's.
pub fn tolerance(reference: &ArrayLiteral, disturbed: &[&ArrayLiteral]) -> Vec<f64> {
    let exact = numbers(reference);
    let ty = reference.buffer.element_type();
    let granted = unit(ty).map_or(0.0, |u| u * if u > 1e-4 { 4.0 } else { UNITS });
    let mut far: Vec<f64> = vec![0.0; exact.len()];
    for other in disturbed {
        for ((far, &x), y) in far.iter_mut().zip(&exact).zip(numbers(other)) {
            let off = if x == y || x.is_nan() && y.is_nan() { 0.0 } else { (x - y).abs() };
            *far = far.max(if off.is_nan() { f64::INFINITY } else { off });
        }
    }
    far.iter().zip(&exact).map(|(far, x)| far * FACTOR + granted * x.abs()).collect()
}

/// How the numbers of two arrays compare under a tolerance for each.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Compared {
    /// All of them.
    pub total: usize,
    /// Those that differ at all.
    pub differ: usize,
    /// Those that differ by more than the tolerance.
    pub beyond: usize,
    /// The largest share of its tolerance that a number took which is within.
    pub share: f64,
    /// The first number beyond: place, before, after, tolerance.
    pub first: Option<(usize, f64, f64, f64)>,
}

/// Compares; arrays of another number of elements differ in all of them.
pub fn compare(before: &ArrayLiteral, after: &ArrayLiteral, tolerance: &[f64]) -> Compared {
    let (a, b) = (numbers(before), numbers(after));
    let mut found = Compared { total: a.len(), ..Compared::default() };
    let exact = before.buffer.element_type() == after.buffer.element_type() && a.len() == b.len();
    if !exact || tolerance.len() != a.len() {
        return Compared { differ: a.len().max(1), beyond: a.len().max(1), ..found };
    }
    for (i, ((&x, &y), &t)) in a.iter().zip(&b).zip(tolerance).enumerate() {
        if x == y || x.is_nan() && y.is_nan() {
            continue;
        }
        found.differ += 1;
        let off = (x - y).abs();
        // Not a number where there was one, or the other way round.
        if t.is_infinite() || off <= t {
            found.share = found.share.max(if t > 0.0 && t.is_finite() { off / t } else { 0.0 });
        } else {
            found.beyond += 1;
            found.first = found.first.or(Some((i, x, y, t)));
        }
    }
    found
}
