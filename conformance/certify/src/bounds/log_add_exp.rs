//! Folds by `log(exp(a) + exp(b))` ([`hlo::log_add_exp`]).
//!
//! The exact function is associative, commutative and monotone, so the exact result `R` of some numbers has
//! no order. A computed step is off by at most `u (K + |r|)` where it gives `r`: the difference is rounded
//! (which moves the exponential by at most `u |d| exp(-|d|) <= u / e`), exponential and logarithm are within
//! some units, and the sum is rounded. Replacing one exact partial result after the other by the computed
//! one, the bottom ones first, moves the whole each time by that times a weight `exp(r - T)` of at most 1,
//! where `T` is the whole as it is then; and `|r| exp(r - T) <= |T| + 1 / e`. So with `n - 1` steps, in any
//! order and with any brackets, and `g = (n - 1) u`, the whole is off by `E <= g (K + 1 / e + |R| + E)`.
//! Operands that are off move `R` by no more than the one that is off most, since all weights together are 1.

use hlo::opcode::Numeric;
use hlo::{AttrKey, ElementType, Opcode, Shape};
use hlo_execution::format::Format;
use hlo_interp::Value;

use super::number::{Numbers, tensor};
use super::probe::{Probe, Regions, retyped};
use super::rules::{Case, Found, Mode};
use super::sums::{operand_shapes, to_f64};
use super::{Radii, Settings};

/// Steps times units from which nothing is known.
const TOO_MANY: f64 = 0.125;

/// Whether an instruction folds windows so, in a type in which an engine may take any order.
pub(super) fn of_windows(case: &Case<'_>) -> bool {
    let computation = case.instr.attrs.computation(AttrKey::ToApply);
    case.opcode() == Opcode::ReduceWindow
        && computation.is_some_and(|c| hlo::folds_in_any_order(case.module, c))
}

/// The type in which an instruction folds so.
fn folded(case: &Case<'_>) -> Option<ElementType> {
    hlo::log_add_exp(case.module, case.instr.attrs.computation(AttrKey::ToApply)?)
}

/// The radii of such a fold.
pub(super) fn fold(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Found {
    let ([x, init], [result]) = (&case.args[..], &case.results[..]) else { return None };
    let ty = folded(case)?;
    let same = [x.tensor, init.tensor, result].iter().all(|t| t.element_type() == ty);
    if !same || !matches!(case.opcode(), Opcode::Reduce | Opcode::ReduceWindow) {
        return None;
    }
    let format = Format::of(ty)?;
    if format.precision < 8 {
        return None; // What such formats hold is so near to their end that a step may leave it.
    }
    let shapes: Vec<Shape> = operand_shapes(case).map(|shape| retyped(shape, &to_f64)).collect();
    let run = |by: Opcode, of: &dyn Fn(usize) -> Vec<f64>| -> Option<Vec<f64>> {
        let regions = Regions::Fold(by, ElementType::F64);
        let result = retyped(&case.instr.shape, &to_f64);
        let probe = Probe::new(case.module, case.instr, &shapes, result, &regions)?;
        let args = case.args.iter().enumerate();
        let args = args.map(|(k, a)| Value::Array(tensor(ElementType::F64, a.tensor.dims(), &of(k))));
        let value = probe.run(case.settings, args.collect())?;
        value.arrays().first().map(|t| Numbers::of(t).re)
    };
    let counts = run(Opcode::Add, &|k| vec![1.0; case.args[k].tensor.len()])?;
    let off = |k: usize| -> Vec<f64> { (0..case.args[k].tensor.len()).map(|i| radii[k].at(i)).collect() };
    let moved = if radii.iter().all(Radii::is_zero) { None } else { Some(run(Opcode::Maximum, &off)?) };
    let step = Step::new(format, ty, case.settings);
    let v = Numbers::of(result);
    if counts.len() != v.len() || moved.as_ref().is_some_and(|m| m.len() != v.len()) {
        return None;
    }
    let radius = |i: usize| {
        let moved = moved.as_ref().map_or(0.0, |m| m[i]);
        if !v.is_finite(i) {
            // NaNs and infinities come from those of operands alone.
            return if moved == 0.0 || mode == Mode::Soft { 0.0 } else { f64::INFINITY };
        }
        let r = step.radius(v.re[i].abs(), counts[i], moved);
        if v.re[i].abs() + r < format.max { r } else { f64::INFINITY }
    };
    Some(vec![Radii::new((0..v.len()).map(radius).collect())])
}

/// How far off a step is.
pub(super) struct Step {
    unit: f64,
    /// `K + 1 / e`.
    constant: f64,
    /// What is too small for units.
    absolute: f64,
}

impl Step {
    fn new(format: Format, ty: ElementType, settings: &Settings) -> Step {
        let units = |opcode: Opcode| match opcode.numeric(ty) {
            Numeric::Ulp(n) | Numeric::Normwise(n) => f64::from(n) + 0.5,
            Numeric::Exact | Numeric::Sum | Numeric::Region | Numeric::Called | Numeric::Opaque => 0.5,
        };
        // A unit in the last place is at most two of `u`; the logarithm is at most that of 2.
        let constant = 0.75 + 2.0 * units(Opcode::Exponential) + 1.4 * units(Opcode::LogPlusOne);
        let flushed = if settings.allowances.flush_denormals { 4.0 * format.flushes_below() } else { 0.0 };
        Step { unit: format.unit_roundoff(), constant, absolute: 4.0 * format.min_positive() + flushed }
    }

    /// A step by `max + log1p(exp(min - max))` or `max + log(exp(a - max) + exp(b - max))`, with functions as an
    /// engine's may be. Of the latter the other exponential, of 0, is within its units of 1, and their sum is
    /// rounded; the logarithm of that, which is at least 1, moves by no more.
    pub(super) fn in_any_form(case: &Case<'_>, ty: ElementType) -> Option<Step> {
        let format = Format::of(ty).filter(|f| f.precision >= 8)?;
        let units = |opcode: Opcode| f64::from(case.settings.allowances.functions.ulps(opcode, ty)) + 0.5;
        let logarithm = units(Opcode::Log).max(units(Opcode::LogPlusOne));
        let constant = 3.0 + 4.0 * units(Opcode::Exponential) + 1.4 * logarithm;
        Some(Step { constant, ..Step::new(format, ty, case.settings) })
    }

    /// The error bound of a computed result of a magnitude, of `count` numbers that are off by at most
    /// `moved`.
    pub(super) fn radius(&self, magnitude: f64, count: f64, moved: f64) -> f64 {
        let steps = (count - 1.0).max(0.0);
        let g = steps * self.unit;
        if !(g < TOO_MANY && moved.is_finite()) {
            return f64::INFINITY;
        }
        // Of the engine, and of the reference, which has rounded too: |R| is at most their values and what
        // either is off by.
        let one = (g * (self.constant + magnitude + moved) + steps * self.absolute) / (1.0 - 4.0 * g);
        let r = (2.0 * one + moved) * (1.0 + 64.0 * f64::EPSILON);
        if r > 0.0 { r.next_up() } else { 0.0 }
    }
}
