//! Folds by what merges two partial results ([`hlo_recognize::merges`]), in any order and with any brackets.
//!
//! Forward error: a merge is associative and commutative in exact arithmetic, so the exact result `R` of the
//! initial value and the elements is the same in every order. Every order of `n` terms takes `n - 1` steps,
//! each with a rounding error. If exact steps are replaced by computed ones, operands first, then each
//! replacement moves the result by the error of the step times the derivative of the exact steps above it.
//! For each merge that derivative is bounded, and all possible partial results are bounded by all terms
//! together. The bound holds for engines and for the reference, whose own distance from `R` is computed.
//!
//! - **log-add-exp**: [`super::log_add_exp`].
//! - **Hypotenuse**: the derivatives by all terms are at most 1, and their squares add up to 1, so that a
//!   relative error `e` of each partial result stays one: `R ((1 + d)^(n - 1) - 1)` with `d` the rounding of
//!   squares, sum and root of a step. Squares that underflow are off by a least number, and the root of the
//!   sum by the root of three of them.
//! - **Saturated sums**: without terms of both signs, or where no partial sum reaches an end, an order
//!   changes nothing; otherwise the result is between the sums of the negative and of the positive terms, and
//!   within the ends.
//! - **Rescaled sums**: [`rescaled`]. **Moments**: [`moments`].

mod moments;
mod rescaled;

use hlo::{ElementType, Opcode};
use hlo_execution::format::Format;
use hlo_perturbation::steps::Rounding;
use hlo_perturbation::{UNKNOWN, gamma};
use hlo_recognize::merges::{Infinities, Merge};
use hlo_recognize::rank;
use hlo_recognize::region::Region;

use super::limits::Limits;
use super::log_add_exp;
use super::number::Numbers;
use super::rules::{self, Case, Mode};
use super::terms::Terms;
use super::{Bounds, Radii, selected};

/// The terms of a component: its elements, and its initial values.
struct Column {
    ty: ElementType,
    elements: Vec<f64>,
    initial: Vec<f64>,
    off: [Vec<f64>; 2],
}

/// A term: a number, and how far it is off.
#[derive(Clone, Copy, Debug)]
struct Given {
    value: f64,
    off: f64,
}

impl Column {
    fn of(case: &Case<'_>, component: usize, mode: Mode) -> Option<Column> {
        let arguments = selected::arguments(case, component)?;
        let ty = arguments[0].tensor.element_type();
        if arguments[1].tensor.element_type() != ty || ty.is_complex() {
            return None;
        }
        let [elements, initial] = arguments.map(|a| Numbers::of(a.tensor).re);
        let off = arguments.map(|a| {
            let radii = a.leaf.bounds.radii(mode);
            (0..a.tensor.len()).map(|i| radii.at(i)).collect()
        });
        Some(Column { ty, elements, initial, off })
    }

    /// The radius of a result without elements: that of its initial value. `None`: it has elements.
    fn of_initial_value(&self, terms: &Terms, i: usize) -> Option<f64> {
        terms.at(i).is_empty().then(|| self.terms(terms, i).map(|x| x.off).sum())
    }

    /// The terms of a result, the initial value first.
    fn terms<'a>(&'a self, terms: &'a Terms, i: usize) -> impl Iterator<Item = Given> + Clone + 'a {
        let first = if self.initial.len() == 1 { 0 } else { i };
        let first = Given { value: self.initial[first], off: self.off[1][first] };
        let elements = terms.at(i).iter().map(|&e| e as usize);
        std::iter::once(first).chain(elements.map(|e| Given { value: self.elements[e], off: self.off[0][e] }))
    }
}

/// What steps in a type round.
fn rounding_of(case: &Case<'_>, ty: ElementType) -> Option<Rounding> {
    let format = Format::of(ty)?;
    let flush = case.settings.allowances.flush_denormals;
    let small = if flush { format.flushes_below() } else { format.min_positive() };
    Some(Rounding { format, unit: format.unit_roundoff(), small })
}

/// The relative error of an elementary function, exact or not.
fn of_function(case: &Case<'_>, opcode: Opcode, ty: ElementType, unit: f64) -> f64 {
    // A unit in the last place is at most two units of rounding, and half of one is a rounding.
    (2.0 * f64::from(case.settings.allowances.functions.ulps(opcode, ty)) + 1.0) * unit
}

/// The bounds of a component, from the elements of each result.
pub(super) fn bounds(
    case: &Case<'_>,
    region: &Region<'_>,
    component: usize,
    merge: Merge,
    terms: &Terms,
) -> Option<Bounds> {
    let result = *case.results.get(component)?;
    if terms.results() != result.len() {
        return None;
    }
    let found = |mode: Mode| -> Option<Radii> {
        match merge {
            Merge::LogAddExp { infinities } => exponentials(case, component, infinities, terms, mode),
            Merge::Hypotenuse => hypotenuses(case, component, terms, mode),
            Merge::Rescaled { by } => rescaled::sums(case, [component, by], terms, mode),
            Merge::Mean { count } => moments::radii(case, region, [component, count], None, terms, mode),
            Merge::Squares { mean, count } => {
                moments::radii(case, region, [mean, count], Some(component), terms, mode)
            }
            Merge::Saturated { low, high } => saturated(case, component, [low, high], terms, mode),
            Merge::Difference => None,
        }
    };
    Some(rules::concluded(result, found(Mode::Soft)?, found(Mode::Hard)?))
}

/// The radius of a result from the exact one and what engines are off from that.
fn around(exact: f64, off: f64, reference: f64, rounding: Rounding, mode: Mode) -> f64 {
    if !reference.is_finite() {
        return if mode == Mode::Soft && !off.is_nan() { 0.0 } else { UNKNOWN };
    }
    let r = (off + (reference - exact).abs()) * (1.0 + 16.0 * f64::EPSILON);
    if r.is_nan() || reference.abs() + r >= rounding.format.max { UNKNOWN } else { r.next_up() }
}

fn exponentials(
    case: &Case<'_>,
    component: usize,
    infinities: Infinities,
    terms: &Terms,
    mode: Mode,
) -> Option<Radii> {
    let column = Column::of(case, component, mode)?;
    let step = log_add_exp::Step::in_any_form(case, column.ty)?;
    let v = Numbers::of(case.results[component]);
    let format = Format::of(column.ty)?;
    let radius = |i: usize| {
        let (mut counts, mut moved, mut nan) = ([0; 3], 0.0f64, false);
        for x in column.terms(terms, i) {
            nan |= x.value.is_nan() || x.value.is_infinite() && x.off != 0.0;
            let class = match x.value {
                f64::NEG_INFINITY => 0,
                f64::INFINITY => 2,
                _ => 1,
            };
            counts[class] += 1;
            moved = moved.max(x.off);
        }
        if let Some(off) = column.of_initial_value(terms, i) {
            return off;
        }
        if nan || !infinities.any_order(counts) {
            return UNKNOWN;
        }
        if counts[2] > 0 || counts[1] == 0 {
            // The greatest of all, in any order.
            return 0.0;
        }
        if !v.is_finite(i) {
            return if mode == Mode::Soft { 0.0 } else { UNKNOWN };
        }
        let n = counts.iter().sum::<usize>() as f64;
        let r = step.radius(v.re[i].abs(), n, moved);
        if v.re[i].abs() + r < format.max { r } else { UNKNOWN }
    };
    Some(Radii::new((0..v.len()).map(radius).collect()))
}

fn hypotenuses(case: &Case<'_>, component: usize, terms: &Terms, mode: Mode) -> Option<Radii> {
    let column = Column::of(case, component, mode)?;
    let rounding = rounding_of(case, column.ty)?;
    let u = rounding.unit;
    // The root halves what squares and their sum are off by.
    let relative = 1.01 * u + of_function(case, Opcode::Sqrt, column.ty, u);
    let v = Numbers::of(case.results[component]);
    let radius = |i: usize| {
        let steps = terms.at(i).len() as f64;
        if let Some(off) = column.of_initial_value(terms, i) {
            return off;
        }
        let most = column.terms(terms, i).fold(0.0f64, |most, x| most.max(x.value.abs() + x.off));
        if column.terms(terms, i).any(|x| !x.value.is_finite()) || !most.is_finite() {
            return UNKNOWN;
        }
        // Scaled, so that squares of f64 stay in range.
        let norm = |of: &dyn Fn(Given) -> f64| {
            let scaled = column.terms(terms, i).map(|x| if most == 0.0 { 0.0 } else { of(x) / most });
            scaled.map(|x| x * x).sum::<f64>().sqrt() * most
        };
        let (exact, moved) = (norm(&|x| x.value), norm(&|x| x.off));
        let own = (steps + 4.0) * f64::EPSILON * exact;
        let growth = gamma(steps, relative);
        // The squares of partial results of all orders are no more than that of the last one.
        let largest = (exact + moved) * (1.0 + growth);
        if largest * (largest / rounding.format.max) >= 1.0 - 8.0 * u {
            let least = (exact - moved) * (1.0 - growth);
            let always = least > 0.0 && least * (least / rounding.format.max) > 1.0 + 8.0 * u;
            return if v.re[i].is_infinite() && (always || mode == Mode::Soft) { 0.0 } else { UNKNOWN };
        }
        let small = (3.0 * rounding.small).sqrt() + 2.0 * rounding.small;
        let off = growth * (exact + moved) + moved + own + steps * small;
        around(exact, off, v.re[i], rounding, mode)
    };
    Some(Radii::new((0..v.len()).map(radius).collect()))
}

fn saturated(
    case: &Case<'_>,
    component: usize,
    [low, high]: [i128; 2],
    terms: &Terms,
    mode: Mode,
) -> Option<Radii> {
    let arguments = selected::arguments(case, component)?;
    let ty = arguments[0].tensor.element_type();
    if arguments.iter().any(|a| !a.leaf.bounds.is_exact() || a.tensor.element_type() != ty) {
        return None;
    }
    let integers = |t: &hlo_interp::Tensor| -> Vec<i128> {
        rank::of_tensor(t).into_iter().map(|r| rank::integer(ty, r)).collect()
    };
    let [elements, initial] = arguments.map(|a| integers(a.tensor));
    let results = integers(case.results[component]);
    let (least, most) = rank::ends(ty);
    let (least, most) = (rank::integer(ty, least), rank::integer(ty, most));
    let mut limits = Vec::with_capacity(results.len());
    let each: Vec<f64> = results
        .iter()
        .enumerate()
        .map(|(i, &result)| {
            let first = initial[if initial.len() == 1 { 0 } else { i }];
            let all = || std::iter::once(first).chain(terms.at(i).iter().map(|&e| elements[e as usize]));
            let (positive, negative) =
                all().fold((0, 0), |(p, n): (i128, i128), x| (p + x.max(0), n + x.min(0)));
            let mut limit = Limits::NONE;
            // Every partial result is a term or within the ends, and the sum of two is one of the type's.
            let (from, to) = all().fold((low, high), |(from, to), x| (from.min(x), to.max(x)));
            let r = if terms.at(i).is_empty() || low <= negative && positive <= high {
                0.0
            } else if 2 * from < least || 2 * to > most || low > 0 || high < 0 {
                UNKNOWN
            } else if negative == 0 || positive == 0 {
                0.0
            } else {
                let (from, to) = (low.max(negative), high.min(positive));
                limit = Limits::new((from as f64).next_down(), (to as f64).next_up());
                if mode == Mode::Soft { 0.0 } else { ((to - result).max(result - from) as f64).next_up() }
            };
            limits.push(limit);
            r
        })
        .collect();
    Some(Radii::limited(each, limits))
}
