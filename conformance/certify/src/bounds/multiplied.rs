//! Folds by a multiplication, of real and of complex numbers.
//!
//! A product of `n` factors, in any order, goes through `n - 1` multiplications. Each is within some units of
//! the exact product of what it is given, or within a least number where that is too small for units, and is
//! multiplied by the factors that are left: by no more than all magnitudes above 1. So the computed value is
//! within `gamma` times the product of magnitudes, and `n` least numbers times that of the magnitudes above
//! 1, of the exact one (Higham, Accuracy and Stability of Numerical Algorithms, lemma 3.1). These products
//! are the same instruction in f64 on other operands.
//!
//! Infinities and NaNs absorb: see [`absorbed`]. A product well beyond the greatest number is infinite in
//! every order ([`overflowing`]). Which infinities and NaNs partial products give that overflow in some order,
//! [`specials`] says.

use hlo::opcode::Numeric;
use hlo::{ElementType, Opcode};
use hlo_arithmetic::scalar::Elementary;
use hlo_execution::format::{Format, has_infinities};
use hlo_execution::special::Special;
use hlo_interp::{Tensor, Value};
use hlo_perturbation::gamma;

use super::Radii;
use super::number::{Numbers, tensor};
use super::probe::{Probe, Regions, retyped};
use super::rules::{self, Case, Found, Mode};
use super::sums::{Factor, has_inexact_indices, is_index_operand, moved_shapes, to_f64};

/// The factor of which products are powers, up to the range of f64: the rounded logarithm of a product to
/// this base is the number of factors.
const COUNTED: f64 = 1.0 + 1.0 / 65536.0;

/// The radii of such a fold.
pub(super) fn fold(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Found {
    let number = case.results.iter().all(|t| Format::of(t.element_type()).is_some());
    let by = rules::folds_by(case) == Some(Opcode::Multiply) && case.opcode() != Opcode::Map;
    if !number || !by {
        return None;
    }
    if mode == Mode::Hard && has_inexact_indices(case, radii) {
        return Some(case.results.iter().map(|t| Radii::unknown(t.len())).collect());
    }
    let ty = case.results.first()?.element_type();
    let (shapes, regions) = (moved_shapes(case, &to_f64), Regions::Retyped(&to_f64));
    let probe = Probe::new(case.module, case.instr, &shapes, retyped(&case.instr.shape, &to_f64), &regions)?;
    let xs: Vec<Factor> =
        case.args.iter().zip(radii).map(|(a, r)| Factor::new(case.settings, a.tensor, r, ty)).collect();
    let run = |of: &dyn Fn(&Factor) -> Vec<f64>| -> Option<Vec<Vec<f64>>> {
        let args = case.args.iter().enumerate().map(|(k, a)| {
            let ty = a.tensor.element_type();
            Value::Array(if is_index_operand(case, k) || Format::of(ty).is_none() {
                a.tensor.clone()
            } else {
                tensor(ElementType::F64, a.tensor.dims(), &of(&xs[k]))
            })
        });
        let value = probe.run(case.settings, args.collect())?;
        Some(value.arrays().into_iter().map(|t| Numbers::of(t).re).collect())
    };
    let factors = xs.iter().enumerate().filter(|&(k, _)| !is_index_operand(case, k)).map(|(_, x)| x);
    concluded(case, Present::among(factors), &run, mode)
}

/// A probe of a fold of what this gives for each factor: the arrays of its result.
pub(super) type Run<'a> = &'a dyn Fn(&dyn Fn(&Factor) -> Vec<f64>) -> Option<Vec<Vec<f64>>>;

/// What is present among factors.
#[derive(Clone, Copy)]
pub(super) struct Present {
    /// Some that are off.
    off: bool,
    /// Infinities or NaNs.
    specials: bool,
    /// Some of magnitude 0.
    zeros: bool,
}

impl Present {
    pub(super) fn among<'a>(factors: impl Iterator<Item = &'a Factor>) -> Present {
        let none = Present { off: false, specials: false, zeros: false };
        factors.fold(none, |found, x| Present {
            off: found.off || x.off.iter().any(|&r| r > 0.0),
            specials: found.specials || x.has_specials(),
            zeros: found.zeros || x.magnitude.contains(&0.0),
        })
    }
}

/// The radii of products that a probe multiplies.
pub(super) fn concluded(case: &Case<'_>, present: Present, run: Run<'_>, mode: Mode) -> Found {
    const UNKNOWN: f64 = f64::INFINITY;
    let ty = case.results.first()?.element_type();
    let format = Format::of(ty)?;
    let all_largest = run(&|x| x.largest.clone())?;
    let all_above = run(&|x| x.largest.iter().map(|m| m.max(1.0)).collect())?;
    let all_counts = run(&|x| vec![COUNTED; x.off.len()])?;
    let all_magnitudes = if present.off { Some(run(&|x| x.magnitude.clone())?) } else { None };

    let complex = ty.is_complex();
    let all_absorbed = if present.specials && !complex { Some(absorbed(format, run)?) } else { None };
    let infinite = |t: &&Tensor| Numbers::of(t).re.iter().any(|x| x.is_infinite());
    let overflows = !complex && !format.saturates && case.results.iter().any(infinite);
    let all_overflowing = if overflows { Some(overflowing(format, run)?) } else { None };
    let all_vanishing = if present.zeros && !complex { Some(vanishing(run)?) } else { None };
    let flushes = case.settings.allowances.flush_denormals;
    let all_below = if flushes && !format.has_zero() { Some(below(run)?) } else { None };
    let (root, parts) = if complex { (hlo_perturbation::disc::SQRT_2, 2.0) } else { (1.0, 1.0) };
    let relative = 2.0 * root * units(ty) * format.unit_roundoff();
    let mut absolute = root * units(ty).max(1.0) * format.min_positive();
    if flushes {
        absolute += 4.0 * format.flushes_below();
    }
    let arrays = case.results.iter().enumerate();
    arrays
        .map(|(k, result)| {
            let v = Numbers::of(result);
            let (largest, above, counts) = (all_largest.get(k)?, all_above.get(k)?, all_counts.get(k)?);
            let magnitudes = match &all_magnitudes {
                Some(all) => Some(all.get(k)?),
                None => None,
            };
            let lengths = [largest.len(), above.len(), counts.len()];
            if lengths.iter().any(|&n| n != v.len()) || magnitudes.is_some_and(|m| m.len() != v.len()) {
                return None;
            }
            let radius = |i: usize| {
                let (count, largest, above) = (counted(counts[i]), largest[i], above[i]);
                let steps = count - 1.0;
                let growth = gamma(steps, relative);
                if !v.is_finite(i) && all_absorbed.as_ref().is_some_and(|all| all[k][i]) {
                    return 0.0;
                }
                // The reference has overflowed, and every other order does.
                let beyond = |all: &Vec<Vec<bool>>| all[k][i] && growth < 0.5;
                if v.re[i].is_infinite() && all_overflowing.as_ref().is_some_and(beyond) {
                    return 0.0;
                }
                let vanishes = all_vanishing.as_ref().is_some_and(|all| all[k][i]) && v.is_finite(i);
                // Where nothing saturates, a zero and a partial product that overflows are a NaN.
                let survives = |above: f64| format.saturates || above * (1.0 + growth) < format.max;
                if vanishes && (mode == Mode::Soft || survives(above)) {
                    // The sign is that of all factors.
                    return if present.off { format.min_positive() } else { 0.0 };
                }
                if !(largest.is_finite() && above.is_finite() && growth.is_finite()) {
                    return UNKNOWN;
                }
                if !v.is_finite(i) {
                    return if mode == Mode::Soft { 0.0 } else { UNKNOWN };
                }
                // A partial product may be flushed to a zero that the type lacks.
                let flushed = |all: &Vec<Vec<f64>>| all[k][i] < format.flushes_below() * (1.0 + growth);
                if mode == Mode::Hard && steps > 0.0 && all_below.as_ref().is_some_and(flushed) {
                    return UNKNOWN;
                }
                // What is too large stays infinite or NaN, unless it becomes the greatest number.
                let overflows = parts * above * (1.0 + growth) >= format.max;
                if overflows && (mode == Mode::Hard || format.saturates) {
                    return UNKNOWN;
                }
                let moved = magnitudes.map_or(0.0, |m| largest - m[i] + count * f64::EPSILON * largest);
                // The reference has rounded, too.
                let roundings = 2.0 * (growth * largest + steps * absolute * above * (1.0 + growth));
                let r = (moved + roundings) * (1.0 + (count + 16.0) * f64::EPSILON);
                if r > 0.0 { r.next_up() } else { 0.0 }
            };
            Some(Radii::new((0..v.len()).map(radius).collect()))
        })
        .collect()
}

/// Which products of real numbers have an absorbing factor, so that they are the same in every order: a NaN;
/// an infinity and a zero, whose product is NaN; an infinity, if no factor may be zero and no partial product
/// may underflow to one. Only factors that are exact count.
fn absorbed(format: Format, run: Run<'_>) -> Option<Vec<Vec<bool>>> {
    /// The factor of a product that counts something, a power of two.
    const PRESENT: f64 = 2.0;
    let certain = |x: &Factor, i: usize| x.off[i] == 0.0;
    let each = |of: &dyn Fn(&Factor, usize) -> f64| run(&|x| (0..x.off.len()).map(|i| of(x, i)).collect());
    let present = |is: &dyn Fn(&Factor, usize) -> bool| {
        each(&|x, i| if certain(x, i) && is(x, i) { PRESENT } else { 1.0 })
    };
    let nan = present(&|x, i| x.special[i] == Special::NAN)?;
    let infinite = present(&|x, i| matches!(x.special[i], Special::POSITIVE | Special::NEGATIVE))?;
    let zero = present(&|x, i| x.special[i] == Special::NONE && x.magnitude[i] == 0.0)?;
    let least = each(&|x, i| match (x.special[i], certain(x, i)) {
        (Special::NONE, _) => (x.magnitude[i] - x.off[i]).clamp(0.0, 1.0),
        (_, true) => 1.0,
        (_, false) => 0.0,
    })?;
    let safe = 2.0 * format.flushes_below();
    let product = |k: usize, i: usize| {
        nan[k][i] > 1.0 || infinite[k][i] > 1.0 && (zero[k][i] > 1.0 || least[k][i] >= safe)
    };
    Some((0..nan.len()).map(|k| (0..nan[k].len()).map(|i| product(k, i)).collect()).collect())
}

/// Which products of real numbers overflow in every order: they are beyond four times the greatest number, no
/// factor is a zero, and no partial product may underflow.
fn overflowing(format: Format, run: Run<'_>) -> Option<Vec<Vec<bool>>> {
    // Roots of factors, so that no partial product leaves the range of f64.
    const ROOT: f64 = 4096.0;
    let root = |log2: f64| (log2 / ROOT).exp2();
    let least = |x: &Factor, i: usize| match x.special[i] {
        Special::NONE => (x.magnitude[i] - x.off[i]).max(0.0),
        _ => 0.0,
    };
    let products = run(&|x| (0..x.off.len()).map(|i| root(least(x, i).log2())).collect())?;
    let small = run(&|x| (0..x.off.len()).map(|i| least(x, i).min(1.0)).collect())?;
    let (limit, safe) = (root(format.max.log2() + 2.0), 2.0 * format.flushes_below());
    let beyond = |(product, small): (&f64, &f64)| product.is_finite() && *product >= limit && *small >= safe;
    let each = products.iter().zip(&small);
    Some(each.map(|(products, small)| products.iter().zip(small).map(beyond).collect()).collect())
}

/// Which infinities and NaNs a product of exact real numbers is in some order. Where the factors above 1
/// overflow together that is an infinity, of the sign of all factors; NaN instead where a factor is a zero, and
/// NaN as well where those below 1 underflow together.
pub(super) fn specials(case: &Case<'_>) -> Option<Vec<Special>> {
    let ([x, initial], [result]) = (&case.args[..], &case.results[..]) else { return None };
    let ty = result.element_type();
    let real = |t: &Tensor| t.element_type().is_float();
    let by = rules::folds_by(case) == Some(Opcode::Multiply)
        && matches!(case.opcode(), Opcode::Reduce | Opcode::ReduceWindow);
    if !by || !has_infinities(ty) || ![x.tensor, initial.tensor, *result].into_iter().all(real) {
        return None;
    }
    if !case.has_exact_operands() {
        return None;
    }
    let format = Format::of(ty)?;
    let shapes = moved_shapes(case, &to_f64);
    let to = retyped(&case.instr.shape, &to_f64);
    let probe = Probe::new(case.module, case.instr, &shapes, to, &Regions::Retyped(&to_f64))?;
    let run = |map: &dyn Fn(f64) -> f64| -> Option<Vec<f64>> {
        let args = case.args.iter().map(|a| {
            let each: Vec<f64> = Numbers::of(a.tensor).re.iter().map(|&x| map(x)).collect();
            Value::Array(tensor(ElementType::F64, a.tensor.dims(), &each))
        });
        Some(Numbers::of(probe.run(case.settings, args.collect())?.as_array()?).re)
    };
    // Powers of two count factors, and infinite and NaN ones leave nothing to be said.
    let present = |is: fn(f64) -> bool| run(&move |x| if is(x) { 2.0 } else { 1.0 });
    let unknown = present(|x| !x.is_finite())?;
    let zero = present(|x| x == 0.0)?;
    let number = |x: f64| if x == 0.0 { 1.0 } else { x.abs() };
    let above = run(&|x| number(x).max(1.0))?;
    let below = run(&|x| number(x).min(1.0))?;
    let sign = run(&|x| if x.is_sign_negative() { -1.0 } else { 1.0 })?;
    let each = (0..above.len()).map(|i| {
        if unknown[i] > 1.0 || above[i] < format.max {
            return Special::NONE;
        }
        if zero[i] > 1.0 {
            return Special::NAN;
        }
        let infinity = if sign[i] < 0.0 { Special::NEGATIVE } else { Special::POSITIVE };
        if below[i] < format.flushes_below() { infinity.or(Special::NAN) } else { infinity }
    });
    let each: Vec<Special> = each.collect();
    (each.len() == result.len()).then_some(each)
}

/// Which products of real numbers have an exact zero among their factors. They are 0, unless a partial product
/// is not finite.
fn vanishing(run: Run<'_>) -> Option<Vec<Vec<bool>>> {
    let zero =
        |x: &Factor, i: usize| x.special[i] == Special::NONE && x.off[i] == 0.0 && x.magnitude[i] == 0.0;
    let all = run(&|x| (0..x.off.len()).map(|i| if zero(x, i) { 2.0 } else { 1.0 }).collect())?;
    Some(all.into_iter().map(|of| of.into_iter().map(|count| count > 1.0).collect()).collect())
}

/// The least partial product in any order: that of the magnitudes below 1.
fn below(run: Run<'_>) -> Option<Vec<Vec<f64>>> {
    let least = |x: &Factor, i: usize| (x.magnitude[i] - x.off[i]).clamp(0.0, 1.0);
    run(&|x| (0..x.off.len()).map(|i| least(x, i)).collect())
}

/// Within how many units of its result (of the modulus) a product is.
fn units(ty: ElementType) -> f64 {
    match Opcode::Multiply.numeric(ty) {
        Numeric::Ulp(n) | Numeric::Normwise(n) => f64::from(n) + 1.0,
        Numeric::Exact | Numeric::Sum | Numeric::Region | Numeric::Called | Numeric::Opaque => 0.5,
    }
}

/// The number of factors of a product: its rounded logarithm to the base [`COUNTED`].
fn counted(product: f64) -> f64 {
    if product.is_finite() {
        (Elementary::log(product) / Elementary::log(COUNTED)).round()
    } else {
        f64::INFINITY
    }
}
