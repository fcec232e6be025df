//! How far rounding moves a program's results, found by trying: every instruction that rounds gets results
//! that are a unit or two of the last place off, at random, in several runs (Monte Carlo arithmetic).
//!
//! The certified tolerance says what a compiler may do that keeps the program's operations. Another
//! compiler's passes exchange operations for others that are equal in exact arithmetic (`x / c` for
//! `x * (1 / c)`, one expansion of a function for another), so that their results differ from ours by a few
//! units at each step. What is farther off than [`SAFETY_FACTOR`] times what such errors did in any run is no
//! rounding.

use std::sync::{Arc, Mutex, PoisonError};

use hlo::elided::splitmix64;
use hlo::opcode::NumericRow;
use hlo::{ArrayLiteral, Buffer, ElementType, InstrId, Module, Opcode, with_buffer};
use hlo_interp::observe::{Flow, Observer, Site};
use hlo_interp::{Device, Tensor, Value};
use rustc_hash::FxHashMap;

use hlo_engines::engine::interpreter::interpret;
use hlo_engines::engine::{Inputs, Outcome, RunOptions};
use hlo_execution::element::{Number, numbers};
use hlo_execution::format::Format;

/// The number of runs with errors.
pub const PERTURBED_RUNS: u64 = 6;
/// The factor over the effect of random errors above which a difference is no rounding.
pub const SAFETY_FACTOR: f64 = 8.0;
/// Units of the last place that are always granted to a float that was computed.
pub const GRANTED_ULPS: f64 = 32.0;

/// The errors of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Errors {
    /// None.
    None,
    /// A unit or two of the last place at each instruction that rounds, at random.
    Random(u64),
    /// [`SAFETY_FACTOR`] times that, at parameters and constants too: what is on either side of an overflow
    /// that roundings explain. The first two seeds make all magnitudes larger, or smaller.
    Wide {
        /// Of the random errors.
        seed: u64,
        /// Whether conversions to narrower floats saturate instead of overflowing: another compiler may leave
        /// them out.
        unconverted: bool,
    },
}

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
    errors: Errors,
    keep: bool,
    values: Mutex<Values>,
    /// Operands of the conversions that are being executed.
    converted: Mutex<FxHashMap<(InstrId, Device), Value>>,
}

impl Noise {
    /// The result of an instruction with its errors.
    fn noisy(&self, site: &Site<'_>, result: &Value) -> Option<Value> {
        let opcode = site.instr().opcode;
        let given = match opcode {
            Opcode::Parameter => site.computation() == site.module.entry(),
            opcode => opcode == Opcode::Constant,
        };
        let (seed, scale) = match self.errors {
            Errors::None => return None,
            Errors::Random(seed) => (seed, Scale::Unit),
            Errors::Wide { seed: 0, .. } => (0, Scale::Up),
            Errors::Wide { seed: 1, .. } => (1, Scale::Down),
            Errors::Wide { seed, .. } => (seed, Scale::Wide),
        };
        if !(rounds(opcode) || given && scale != Scale::Unit) {
            return None;
        }
        let device = u64::from(site.device.replica) << 32 | u64::from(site.device.partition);
        let site_hash = splitmix64(site.id.index() as u64) ^ device.rotate_left(17);
        let of = |seed: u64| splitmix64(splitmix64(seed ^ site_hash) ^ site.execution);
        let draw = Draw { run: seed % PERTURBED_RUNS, own: of(!0), drawn: of(seed) };
        let operand =
            self.converted.lock().unwrap_or_else(PoisonError::into_inner).remove(&(site.id, site.device));
        let kept = operand.and_then(|operand| unconverted(&operand, result));
        Some(disturbed(kept.as_ref().unwrap_or(result), draw, scale, given))
    }
}

/// Where random numbers of an instruction's execution in a run come from.
#[derive(Clone, Copy, Debug)]
struct Draw {
    /// The number of the run, below [`PERTURBED_RUNS`].
    run: u64,
    /// The same in all runs.
    own: u64,
    /// Of this run.
    drawn: u64,
}

impl Draw {
    /// That of a part.
    fn of(self, part: usize) -> Draw {
        let of = |seed: u64| splitmix64(seed.wrapping_add(part as u64));
        Draw { own: of(self.own), drawn: of(self.drawn), ..self }
    }

    /// Whether this is the run in which a number that is drawn to stay as it is in many runs moves.
    fn moves(self) -> bool {
        self.own % PERTURBED_RUNS == self.run
    }
}

/// The scale of errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scale {
    Unit,
    Wide,
    Up,
    Down,
}

impl Observer for Noise {
    fn enter(&self, site: &Site<'_>, operands: &[Value]) {
        let kept = matches!(self.errors, Errors::Wide { unconverted: true, .. })
            && site.nesting == 0
            && matches!(site.instr().opcode, Opcode::Convert | Opcode::ReducePrecision);
        if let Some(operand) = operands.first().filter(|_| kept) {
            let mut converted = self.converted.lock().unwrap_or_else(PoisonError::into_inner);
            converted.insert((site.id, site.device), operand.clone());
        }
    }

    fn leave(&self, site: &Site<'_>, result: &Value) -> Flow {
        if site.nesting > 0 {
            return Flow::Continue;
        }
        let noisy = self.noisy(site, result);
        if self.keep && site.execution == 0 {
            let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
            let module = site.module;
            let key = (module.computation(site.computation()).name.clone(), site.instr().name.clone());
            let mut arrays = Vec::new();
            hlo_engines::engine::flatten(
                noisy.as_ref().unwrap_or(result).clone().into_literal(),
                &mut arrays,
            );
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

fn disturbed(value: &Value, draw: Draw, scale: Scale, given: bool) -> Value {
    match value {
        Value::Array(t) => {
            let ty = t.element_type();
            if unit(ty).is_none() {
                return value.clone();
            }
            let buffer = disturbed_buffer(t.buffer(), draw, scale, given);
            Value::Array(Tensor::new(t.dims().to_vec(), buffer))
        }
        Value::Tuple(parts) => {
            Value::tuple(parts.iter().enumerate().map(|(i, p)| disturbed(p, draw.of(i), scale, given)))
        }
        Value::Token | Value::Pending(_) => value.clone(),
    }
}

/// The result of a conversion that saturates; `None` if nothing overflows.
fn unconverted(operand: &Value, result: &Value) -> Option<Value> {
    let (Value::Array(from), Value::Array(to)) = (operand, result) else { return None };
    let (from, numbers_to) = (numbers(&from.to_literal()), numbers(&to.to_literal()));
    let overflowed = |(x, y): (&f64, &f64)| x.is_finite() && y.is_infinite();
    if from.len() != numbers_to.len() || !from.iter().zip(&numbers_to).any(overflowed) {
        return None;
    }
    let max = Format::of(to.element_type())?.max;
    let cut = |(x, y): (&f64, &f64)| if overflowed((x, y)) { y.signum() * max } else { *y };
    let parts: Vec<f64> = from.iter().zip(&numbers_to).map(cut).collect();
    fn made<T: Number>(old: &[T], parts: &[f64]) -> Buffer {
        let each = parts.len() / old.len().max(1);
        let element = |(x, p): (&T, &[f64])| {
            let finite = p.iter().all(|p| p.is_finite());
            if finite { T::from_parts(p[0], p.get(1).copied().unwrap_or(0.0)) } else { *x }
        };
        T::wrap(old.iter().zip(parts.chunks(each.max(1))).map(element).collect())
    }
    let buffer = with_buffer!(to.buffer(), v => made(v, &parts));
    Some(Value::Array(Tensor::new(to.dims().to_vec(), buffer)))
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

/// `given`: numbers of the program or its inputs, which do not become infinite.
fn disturbed_buffer(buffer: &Buffer, draw: Draw, scale: Scale, given: bool) -> Buffer {
    let ty = buffer.element_type();
    let unit = unit(ty).unwrap_or(0.0);
    let Some(format) = Format::of(ty) else { return buffer.clone() };
    fn each<T: Number>(v: &[T], off: &dyn Fn(f64, Draw) -> f64, draw: Draw) -> Buffer {
        let element = |(i, x): (usize, &T)| {
            let draw = draw.of(i);
            let (re, im) = x.parts();
            let (re, im) = (re.value(), im.map_or(0.0, |p| p.value()));
            // What is not finite keeps its bits.
            let moved = (off(re, draw), off(im, draw.of(0)));
            if re.is_finite() && im.is_finite() { T::from_parts(moved.0, moved.1) } else { *x }
        };
        T::wrap(v.iter().enumerate().map(element).collect())
    }
    let off = |x: f64, draw: Draw| {
        // Narrow types have few units to give away, but each number moves in some run.
        let steps = match unit > 1e-4 {
            true if draw.moves() => [-1.0, -1.0, 1.0, 1.0],
            true => [-1.0, 0.0, 0.0, 1.0],
            false => [-2.0, -1.0, 1.0, 2.0],
        };
        let random = steps[(draw.drawn >> 7) as usize & 3];
        let most = steps[3] * x.signum();
        let step = match scale {
            Scale::Unit => random,
            Scale::Wide => SAFETY_FACTOR * random,
            Scale::Up => SAFETY_FACTOR * most,
            Scale::Down => -SAFETY_FACTOR * most,
        };
        // Denormals are rounded to multiples of the smallest one; zeros are exact.
        let ulp = (x.abs() * unit).max(if x == 0.0 { 0.0 } else { format.min_positive() });
        let moved = x + step * ulp;
        match given && x.is_finite() {
            true => moved.clamp(-format.max, format.max),
            false => moved,
        }
    };
    with_buffer!(buffer, v => each(v, &off, draw))
}

/// Runs a program with these errors. The values of its instructions, if `keep`.
pub fn run(
    module: &Module,
    inputs: Inputs,
    options: &RunOptions,
    errors: Errors,
    keep: bool,
) -> (Outcome, Values) {
    if errors == Errors::None && !keep {
        return (interpret(module, inputs, options, None), Values::default());
    }
    let noise = Arc::new(Noise { errors, keep, values: Mutex::default(), converted: Mutex::default() });
    let outcome = interpret(module, inputs, options, Some(noise.clone()));
    let values = std::mem::take(&mut *noise.values.lock().unwrap_or_else(PoisonError::into_inner));
    (outcome, values)
}

/// How far each number of an array may be from the reference's: infinitely, if errors make it finite or
/// infinite, and not at all from an infinity that they do not move.
pub fn tolerance(reference: &ArrayLiteral, disturbed: &[&ArrayLiteral]) -> Vec<f64> {
    let exact = numbers(reference);
    let ty = reference.buffer.element_type();
    let granted = unit(ty).map_or(0.0, |u| u * if u > 1e-4 { 4.0 } else { GRANTED_ULPS });
    let mut far: Vec<f64> = vec![0.0; exact.len()];
    for other in disturbed {
        for ((far, &x), y) in far.iter_mut().zip(&exact).zip(numbers(other)) {
            let off = if x == y || x.is_nan() && y.is_nan() { 0.0 } else { (x - y).abs() };
            *far = far.max(if off.is_nan() { f64::INFINITY } else { off });
        }
    }
    let smallest =
        Format::of(ty).map_or(0.0, |f| f.min_positive()) * if granted > 0.0 { GRANTED_ULPS } else { 0.0 };
    let tolerance = |(far, x): (&f64, &f64)| match x.is_finite() {
        true => far * SAFETY_FACTOR + (granted * x.abs()).max(smallest),
        false => *far,
    };
    far.iter().zip(&exact).map(tolerance).collect()
}

/// The comparison of two arrays' numbers, with a tolerance for each.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Compared {
    /// All of them.
    pub total: usize,
    /// Those that differ at all.
    pub differ: usize,
    /// Those that differ by more than the tolerance.
    pub beyond: usize,
    /// The largest share of its tolerance that a number took which is within.
    pub share: f64,
    /// The first number beyond: its index, before, after, tolerance.
    pub first: Option<(usize, f64, f64, f64)>,
    /// Indices of those beyond of which one of the two is infinite or NaN.
    pub infinite: Vec<usize>,
    /// Indices of the others beyond.
    pub finite: Vec<usize>,
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
        // A NaN is within no tolerance.
        if t.is_infinite() || off <= t {
            found.share = found.share.max(if t > 0.0 && t.is_finite() { off / t } else { 0.0 });
        } else {
            found.beyond += 1;
            let both = x.is_finite() && y.is_finite();
            if both { &mut found.finite } else { &mut found.infinite }.push(i);
            found.first = found.first.or(Some((i, x, y, t)));
        }
    }
    found
}
