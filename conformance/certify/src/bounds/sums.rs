//! Sums: products over contracting dimensions, and folds by an addition.
//!
//! A sum of `n` terms, in any order, in pieces, as a tree, with or without `fma`, or exact: each term goes
//! through at most `n - 1` additions and one multiplication, so the computed value is within
//! `gamma = n u / (1 - n u)` times the sum of magnitudes of the exact one (Higham, Accuracy and Stability of
//! Numerical Algorithms, section 4.2), where `u` is the unit of the accumulator. Magnitudes, how operands
//! that are off move the sum, and numbers of terms are the same instruction in f64 on other operands.

use hlo::attrs::Precision;
use hlo::{AttrKey, ElementType, Opcode, Shape};
use hlo_execution::format::{Format, rounded};
use hlo_execution::special::Special;
use hlo_interp::{Accumulate, Tensor, Value};
use hlo_perturbation::gamma;
use rayon::prelude::*;

use super::number::{Numbers, modulus, tensor};
use super::probe::{Probe, Regions, Retype, retyped};
use super::rules::{self, Case, Found, Mode};
use super::{PARALLEL, Radii, Settings, extremes, movement, multiplied, products, reductions, sum_limits};

/// Whether a fold is by an addition of floats.
pub(super) fn is_sum(case: &Case<'_>) -> bool {
    rules::folds_by(case) == Some(Opcode::Add)
}

fn is_number(ty: ElementType) -> bool {
    Format::of(ty).is_some()
}

pub(super) fn to_f64(ty: ElementType) -> ElementType {
    if is_number(ty) { ElementType::F64 } else { ty }
}

/// Terms of the sums that the elements of a result array are.
pub(super) struct Terms {
    /// Sums of magnitudes, at their largest. Not finite where nothing is known.
    pub(super) magnitude: Vec<f64>,
    /// How far operands that are off move the exact sum.
    pub(super) spread: Vec<f64>,
    /// How many terms there are.
    pub(super) count: Vec<f64>,
    /// The exact sum at the reference operands, where that is worth knowing.
    pub(super) exact: Option<Vec<f64>>,
    /// An infinity or NaN among the terms may be another; `None`: nowhere.
    pub(super) wild: Option<Vec<bool>>,
    /// What roundings of the accumulator and operands that are off come to together, if that was found at
    /// once.
    pub(super) error: Option<Vec<f64>>,
}

/// How the sums are computed.
pub(super) struct Manner {
    /// Roundings of a term before it is added.
    pub(super) factors: f64,
    /// The reference rounds at each step, in the result's type, and so may an engine.
    literal: bool,
    /// Format of the accumulator.
    pub(super) accumulator: Format,
}

/// How an instruction's sums of a type are computed; with `factors`, sums of products.
pub(super) fn manner(case: &Case<'_>, ty: ElementType, factors: f64, literal: bool) -> Option<Manner> {
    let own = Format::of(ty);
    let accumulator = match own {
        Some(own) if literal => own,
        Some(_) => Format::of(case.settings.allowances.accumulator(ty.real_part(), factors > 0.0))?,
        None => Format::of(ElementType::F32)?,
    };
    Some(Manner { factors, literal, accumulator })
}

/// `dot`, `convolution` and the like: sums of products of an element of each operand that holds numbers.
pub(super) fn products(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Found {
    let [result] = case.results[..] else { return None };
    let ty = result.element_type();
    // Of scaled-dot all four operands are factors, of others two.
    let factors = if case.opcode() == Opcode::ScaledDot { 4 } else { 2 };
    if radii.iter().skip(factors).any(|r| !r.is_zero()) {
        return Some(vec![Radii::unknown(result.len())]);
    }
    let floats = case.args.iter().take(factors).any(|a| is_number(a.tensor.element_type()));
    if !floats && !is_number(ty) {
        let exact = radii.iter().all(Radii::is_zero);
        return Some(vec![if exact { Radii::Zero } else { Radii::unknown(result.len()) }]);
    }
    if let Some(found) = products::bounds(case, radii, mode) {
        return Some(vec![found]);
    }
    let f64_of = |ty: ElementType| if ty == ElementType::Pred { ty } else { ElementType::F64 };
    let shapes: Vec<Shape> = operand_shapes(case)
        .enumerate()
        .map(|(k, shape)| if k < factors { retyped(shape, &f64_of) } else { shape.clone() })
        .collect();
    let f64_result = retyped(&case.instr.shape, &|_| ElementType::F64);
    let probe = Probe::new(case.module, case.instr, &shapes, f64_result, &Regions::Retyped(&|t| t))?;
    let xs: Vec<Factor> = case
        .args
        .iter()
        .take(factors)
        .zip(radii)
        .map(|(a, r)| Factor::new(case.settings, a.tensor, r, ty).in_tf32(case, a.tensor.element_type()))
        .collect();
    let run = |of: &dyn Fn(usize) -> Vec<f64>| -> Option<Vec<f64>> {
        let args = case.args.iter().enumerate().map(|(k, a)| {
            if k < factors {
                Value::Array(tensor(f64_of(a.tensor.element_type()), a.tensor.dims(), &of(k)))
            } else {
                Value::Array(a.tensor.clone())
            }
        });
        Some(Numbers::of(probe.run(case.settings, args.collect())?.as_array()?).re)
    };
    let n = result.len();
    // What nothing is known of is left out of the sums, and makes those unknown that it meets: exact sums
    // with infinities in them are slow.
    let known = |v: &[f64]| v.iter().map(|&x| if x.is_finite() { x } else { 0.0 }).collect::<Vec<f64>>();
    let mut magnitude = run(&|k| known(&xs[k].largest))?;
    // Products of f64 may be too small for one.
    let tiny = |x: &Factor| x.largest.iter().any(|&m| m > 0.0 && m < 1e-150);
    if magnitude.contains(&0.0) && xs.iter().any(tiny) {
        let some = run(&|k| xs[k].largest.iter().map(|&m| f64::from(u8::from(m > 0.0))).collect())?;
        // Not of those that are NaN, of which nothing is known.
        let lost = magnitude.iter_mut().zip(some).filter(|(m, some)| **m == 0.0 && *some > 0.0);
        lost.for_each(|(m, _)| *m = f64::from_bits(1));
    }
    for (k, x) in xs.iter().enumerate().filter(|(_, x)| x.largest.iter().any(|m| !m.is_finite())) {
        let met = run(&|l| {
            if l == k {
                x.largest.iter().map(|m| f64::from(u8::from(!m.is_finite()))).collect()
            } else {
                vec![1.0; xs[l].largest.len()]
            }
        })?;
        magnitude.iter_mut().zip(met).filter(|(_, met)| *met > 0.0).for_each(|(m, _)| *m = f64::INFINITY);
    }
    let mut spread = vec![0.0; n];
    let mut wild: Option<Vec<bool>> = None;
    for k in 0..factors {
        if xs[k].off.iter().all(|&r| r == 0.0) || magnitude.iter().all(|m| !m.is_finite()) {
            continue;
        }
        // Of a product of sums the difference to the product of the first parts, telescoped.
        let part = run(&|j| match j.cmp(&k) {
            std::cmp::Ordering::Less => known(&xs[j].largest),
            std::cmp::Ordering::Equal => known(&xs[j].off),
            std::cmp::Ordering::Greater => xs[j].magnitude.clone(),
        })?;
        spread.iter_mut().zip(part).for_each(|(s, p)| *s += p);
        for j in (0..factors).filter(|&j| j != k && xs[j].has_specials()) {
            let flag = |b: bool| f64::from(u8::from(b));
            let met = run(&|l| {
                if l == j {
                    xs[j].special.iter().map(|&s| flag(s != Special::NONE)).collect()
                } else if l == k {
                    xs[k].off.iter().map(|&r| flag(r > 0.0)).collect()
                } else {
                    vec![1.0; xs[l].off.len()]
                }
            })?;
            let wild = wild.get_or_insert_with(|| vec![false; n]);
            wild.iter_mut().zip(met).for_each(|(w, m)| *w |= m > 0.0);
        }
    }
    if factors == 4 {
        // An operand times its scale may be too small or too large for f32, although the product of all is
        // not.
        let single = Format::of(ElementType::F32)?;
        for (operand, scale) in [(0, 2), (1, 3)] {
            let small = run(&|k| match k {
                _ if k == operand => vec![2.0 * single.min_positive(); xs[k].off.len()],
                _ if k == scale => vec![1.0; xs[k].off.len()],
                _ => known(&xs[k].largest),
            })?;
            let flushed = case.settings.allowances.flush_denormals;
            let times = if flushed { single.flushes_below() / single.min_positive() } else { 1.0 };
            spread.iter_mut().zip(small).for_each(|(s, small)| *s += small * times);
            let large = run(&|k| {
                if k == operand || k == scale { known(&xs[k].largest) } else { vec![1.0; xs[k].off.len()] }
            })?;
            magnitude
                .iter_mut()
                .zip(large)
                .filter(|(_, m)| *m >= single.max)
                .for_each(|(m, _)| *m = f64::INFINITY);
        }
    }
    let complex = case.args.iter().any(|a| a.tensor.element_type().is_complex());
    let literal_mode = case.settings.options.accumulate == Accumulate::Region;
    let narrow = Format::of(ty).is_none_or(|f| f.precision < 24);
    let exact = if narrow && !complex { Some(run(&|k| xs[k].value.clone())?) } else { None };
    let count = term_count(case) * if complex { 2.0 } else { 1.0 };
    let terms = Terms { magnitude, spread, count: vec![count; n], exact, wild, error: None };
    // Scaled-dot: two more products.
    let manner = manner(case, ty, if factors == 4 { 3.0 } else { 1.0 }, false)?;
    Some(vec![concluded(case, result, &terms, &manner, literal_mode, complex, mode)])
}

pub(super) fn operand_shapes<'a>(case: &'a Case<'_>) -> impl Iterator<Item = &'a Shape> {
    case.instr.operands().iter().map(|&o| &case.module.instr(o).shape)
}

/// These with other element types, but for those that say where elements go.
pub(super) fn moved_shapes(case: &Case<'_>, retype: Retype<'_>) -> Vec<Shape> {
    let shapes = operand_shapes(case).enumerate();
    shapes.map(|(k, s)| if is_index_operand(case, k) { s.clone() } else { retyped(s, retype) }).collect()
}

/// The number of products in each element, or more.
pub(super) fn term_count(case: &Case<'_>) -> f64 {
    let lhs = case.args[0].tensor;
    let rhs = case.args[1].tensor;
    let size =
        |t: &Tensor, d: i64| usize::try_from(d).ok().and_then(|d| t.dims().get(d)).map_or(1.0, |&n| n as f64);
    if case.opcode() == Opcode::Convolution {
        let all = rhs.len() as f64;
        let features = case.instr.attrs.conv_dims().map_or(1.0, |d| size(rhs, d.kernel_output_feature));
        return if features > 0.0 { (all / features).ceil() } else { all };
    }
    case.instr.attrs.ints_or_empty(AttrKey::LhsContractingDims).iter().map(|&d| size(lhs, d)).product()
}

/// The relative error of an operand that is truncated to the 10 fraction bits of TF32, more than that of
/// rounding to them.
const TF32_UNIT: f64 = 1.0 / (1 << 10) as f64;

/// Whether operands of f32 may be truncated to TF32: engines that do so do it where the instruction asks for
/// no more precision.
fn may_be_tf32(case: &Case<'_>) -> bool {
    let asked = case.instr.attrs.precisions();
    case.settings.allowances.tf32 && asked.is_none_or(|all| all.iter().all(|p| *p == Precision::Default))
}

/// An operand of products.
pub(super) struct Factor {
    pub(super) value: Vec<f64>,
    pub(super) magnitude: Vec<f64>,
    /// How far off.
    pub(super) off: Vec<f64>,
    /// Magnitude and that; infinite where nothing is known.
    pub(super) largest: Vec<f64>,
    /// An infinity or NaN; it counts as 0 elsewhere.
    pub(super) special: Vec<Special>,
}

impl Factor {
    pub(super) fn new(settings: &Settings, t: &Tensor, radii: &Radii, into: ElementType) -> Factor {
        let mut x = Numbers::of(t);
        let n = x.len();
        let (from, to) = (Format::of(x.ty), Format::of(into));
        if from.is_none() && to.is_some() {
            // Integers are converted to the type of the result first.
            x.re = rounded(into.real_part(), &x.re);
        }
        let flushed = |i: usize| match from {
            Some(f) if settings.allowances.flush_denormals => {
                let (re, im) = x.at(i);
                [re, im].into_iter().filter(|part| part.abs() < f.flushes_below()).map(f64::abs).sum()
            }
            Some(_) | None => 0.0,
        };
        // An engine may convert operands to the type of the result first.
        let rounds = |m: f64| match (from, to) {
            (Some(f), Some(t))
                if f.precision > t.precision || f.max > t.max || f.min_exponent < t.min_exponent =>
            {
                if m > t.max {
                    f64::INFINITY
                } else if m > 0.0 {
                    t.ulp(m) / 2.0
                } else {
                    0.0
                }
            }
            _ => 0.0,
        };
        let each = || (0..n).into_par_iter().with_min_len(PARALLEL);
        let special: Vec<Special> = each()
            .map(|i| match x.im {
                Some(_) if x.is_finite(i) => Special::NONE,
                Some(_) => Special::ANY,
                None => Special::of(x.re[i]),
            })
            .collect();
        let finite = |i: usize| special[i] == Special::NONE;
        // Each part of a complex sum is a sum of its own, whatever the other part of a term is.
        let finite_part = |part: f64| if part.is_finite() { part } else { 0.0 };
        let size = |i: usize| match (finite(i), x.at(i)) {
            (true, _) => x.modulus(i),
            (false, (re, im)) => modulus(finite_part(re), finite_part(im)),
        };
        let magnitude: Vec<f64> = each().map(size).collect();
        let root = if x.im.is_some() { hlo_perturbation::disc::SQRT_2 } else { 1.0 };
        let off: Vec<f64> = each().map(|i| radii.at(i) * root + rounds(magnitude[i]) + flushed(i)).collect();
        let largest = each()
            .map(|i| match magnitude[i] + off[i] {
                0.0 => 0.0,
                // Rounded up, an exact one would overflow for nothing.
                exact if off[i] == 0.0 && x.im.is_none() => exact,
                size => size.next_up(),
            })
            .collect();
        let value = each().map(|i| if finite(i) { x.re[i] } else { 0.0 }).collect();
        Factor { value, magnitude, off, largest, special }
    }

    /// Whether an element is an infinity or NaN.
    pub(super) fn has_specials(&self) -> bool {
        self.special.iter().any(|&s| s != Special::NONE)
    }

    /// The same factor of a product of an element type, truncated to TF32 where engines may do that: what an
    /// element may be, times one and [`TF32_UNIT`].
    pub(super) fn in_tf32(mut self, case: &Case<'_>, ty: ElementType) -> Factor {
        if ty == ElementType::F32 && may_be_tf32(case) {
            for (off, largest) in self.off.iter_mut().zip(&mut self.largest) {
                let cut = *largest * TF32_UNIT;
                (*off, *largest) =
                    (*off + cut, (*largest + cut).next_up() * f64::from(u8::from(*largest > 0.0)));
            }
        }
        self
    }
}

/// The radii of sums.
pub(super) fn concluded(
    case: &Case<'_>,
    result: &Tensor,
    terms: &Terms,
    manner: &Manner,
    literal_reference: bool,
    complex: bool,
    mode: Mode,
) -> Radii {
    const UNKNOWN: f64 = f64::INFINITY;
    let ty = result.element_type();
    let v = Numbers::of(result);
    let n = v.len();
    let own = Format::of(ty);
    let acc = manner.accumulator;
    let flush = case.settings.allowances.flush_denormals;
    let wide = own.is_some_and(|f| f.precision >= 24) && !complex;
    let limit = own.map_or(f64::INFINITY, |f| f.max);
    let alone = if case.settings.allowances.one_term_sums { alone(case.opcode(), complex) } else { 0.0 };
    // What the exact sum may be, and whether it is the reference's value.
    let ends = |i: usize, x: f64| {
        let (count, s) = (terms.count[i], terms.magnitude[i]);
        let single = count <= 1.0 && manner.factors <= 1.0 || count <= 2.0 && manner.factors == 0.0;
        // One rounding, or none: right in the type itself.
        let steps = if single && (wide || manner.factors == 0.0 && count <= 1.0) {
            0.0
        } else {
            count + manner.factors
        };
        let mut error = match &terms.error {
            Some(error) => error[i],
            None => gamma(steps, acc.unit_roundoff()) * s + terms.spread[i],
        };
        if manner.factors > 0.0 && s > 0.0 && steps > 0.0 {
            error += 2.0 * count * manner.factors * acc.min_positive();
        }
        if flush && s > 0.0 {
            error += 2.0 * (count + manner.factors) * acc.flushes_below();
        }
        let center = match &terms.exact {
            Some(sum) => {
                error += s * f64::EPSILON;
                sum[i]
            }
            None => {
                // The exact sum is half a unit around the reference, or the reference has errors of its own.
                // One element is passed on as it is.
                let passed = count <= 1.0 && manner.factors == 0.0;
                if steps > 0.0 || error > 0.0 && !passed {
                    if steps > 0.0 && (literal_reference || manner.literal) {
                        error *= 2.0;
                    } else if let Some(f) = own {
                        error += f.ulp(x.abs()) / 2.0;
                    }
                }
                x
            }
        };
        let exact = error == 0.0 && (terms.exact.is_none() || s == 0.0);
        let error = if error > 0.0 { (error * (1.0 + 16.0 * f64::EPSILON)).next_up() } else { 0.0 };
        (center - error, center + error, exact)
    };
    // With the ends rounded to the type.
    let radius = |i: usize, x: f64, low: f64, high: f64, exact: bool| {
        let s = terms.magnitude[i];
        let overflows =
            s * (1.0 + 2.0 * gamma(terms.count[i] + manner.factors, acc.unit_roundoff())) >= acc.max;
        if !s.is_finite() || terms.wild.as_ref().is_some_and(|wild| wild[i]) && mode == Mode::Hard {
            UNKNOWN
        } else if !x.is_finite() {
            if mode == Mode::Soft || !overflows && !complex { 0.0 } else { UNKNOWN }
        } else if overflows && mode == Mode::Hard {
            UNKNOWN
        } else if x == 0.0 && s > 0.0 && manner.factors > 0.0 {
            // A product that is too small is a zero of its sign, and may be added to another zero.
            let apart = high.abs().max(low.abs());
            if apart.is_finite() { apart.max(own.map_or(0.0, Format::min_positive)) } else { UNKNOWN }
        } else if exact {
            let alone = x == 0.0 && x.is_sign_positive() && terms.count[i] <= alone;
            if alone { own.map_or(0.0, Format::min_positive) } else { 0.0 }
        } else {
            if low.is_nan() || high.is_nan() {
                // An end below the least number of a type without zero.
                return UNKNOWN;
            }
            let clamped = |y: f64, to: f64| if y.is_finite() { y } else { to };
            let decided = low.is_finite() && high.is_finite();
            if !decided && mode == Mode::Hard {
                UNKNOWN
            } else {
                let apart = (clamped(high, limit) - x).max(x - clamped(low, -limit));
                if apart > 0.0 { apart.next_up() } else { sign_of_zero(x, low, high, own) }
            }
        }
    };
    let mut each = vec![0.0f64; n];
    for part in std::iter::once(&v.re[..]).chain(v.im.as_deref()) {
        each.par_chunks_mut(PARALLEL).enumerate().for_each(|(task, each)| {
            let first = task * PARALLEL;
            let part = &part[first..first + each.len()];
            let (mut low, mut high) = (Vec::with_capacity(part.len()), Vec::with_capacity(part.len()));
            let mut exact = Vec::with_capacity(part.len());
            for (i, &x) in part.iter().enumerate() {
                let (l, h, same) = ends(first + i, x);
                low.push(l);
                high.push(h);
                exact.push(same);
            }
            let (low, high) = (rounded(ty.real_part(), &low), rounded(ty.real_part(), &high));
            for (i, r) in each.iter_mut().enumerate() {
                *r = r.max(radius(first + i, part[i], low[i], high[i], exact[i]));
            }
        });
    }
    Radii::new(each)
}

/// The number of terms up to which a sum is one product, or an initial value and an element: an engine may
/// leave out adding it to zero, and so give -0.
fn alone(opcode: Opcode, complex: bool) -> f64 {
    match opcode {
        Opcode::Dot | Opcode::Convolution | Opcode::RaggedDot | Opcode::ScaledDot => {
            if complex {
                2.0
            } else {
                1.0
            }
        }
        Opcode::Reduce | Opcode::ReduceWindow => 2.0,
        _ => 0.0,
    }
}

/// The radius of a result that equals both ends: zeros may differ in sign.
fn sign_of_zero(x: f64, low: f64, high: f64, format: Option<Format>) -> f64 {
    let same = |y: f64| y.is_sign_negative() == x.is_sign_negative();
    match format {
        Some(format) if x == 0.0 && !(same(low) && same(high)) => format.min_positive(),
        Some(_) | None => 0.0,
    }
}

/// Applied computations: sums, what is monotone, and what moves.
pub(super) fn fold(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Found {
    if case.opcode() == Opcode::Scatter && rules::overwrites(case) {
        return movement::overwritten(case, radii, mode);
    }
    let by = if case.opcode() == Opcode::Map { None } else { rules::folds_by(case) };
    let number = case.results.iter().all(|t| is_number(t.element_type()));
    let predicate = case.results.iter().all(|t| t.element_type() == ElementType::Pred);
    match by {
        Some(Opcode::Add) if number => sum(case, radii, mode),
        Some(Opcode::Maximum | Opcode::Minimum) => extremes::bounds(case, radii, mode),
        Some(Opcode::And | Opcode::Or) if predicate => extremes::bounds(case, radii, mode),
        // Of the others each step is followed, if these are not too many.
        Some(Opcode::Multiply) if !matches!(case.opcode(), Opcode::Reduce | Opcode::ReduceWindow) => {
            multiplied::fold(case, radii, mode)
        }
        Some(_) | None => None,
    }
}

/// Of an operation that applies a computation, which operands say where elements go.
pub(super) fn is_index_operand(case: &Case<'_>, k: usize) -> bool {
    match case.opcode() {
        Opcode::Scatter => !is_number(case.args[k].tensor.element_type()) && k == case.args.len() / 2,
        Opcode::SelectAndScatter => k == 0,
        _ => false,
    }
}

/// Whether an index may be another one in an engine's run. What select-and-scatter selects, `windows` says.
pub(super) fn has_inexact_indices(case: &Case<'_>, radii: &[Radii]) -> bool {
    if case.opcode() == Opcode::SelectAndScatter {
        return false;
    }
    let flushed = |t: &Tensor| {
        let Some(f) = Format::of(t.element_type()) else { return false };
        let x = Numbers::of(t);
        case.settings.allowances.flush_denormals
            && x.re.iter().any(|x| *x != 0.0 && x.abs() < f.flushes_below())
    };
    (0..case.args.len())
        .any(|k| is_index_operand(case, k) && (!radii[k].is_zero() || flushed(case.args[k].tensor)))
}

fn sum(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Found {
    let unknown = || case.results.iter().map(|t| Radii::unknown(t.len())).collect();
    if mode == Mode::Hard && has_inexact_indices(case, radii) {
        return Some(unknown());
    }
    if let Some(found) = reductions::bounds(case, radii, mode) {
        return Some(vec![found]);
    }
    let (shapes, regions) = (moved_shapes(case, &to_f64), Regions::Retyped(&to_f64));
    let probe = Probe::new(case.module, case.instr, &shapes, retyped(&case.instr.shape, &to_f64), &regions)?;
    let ty = case.results[0].element_type();
    let xs: Vec<Factor> =
        case.args.iter().zip(radii).map(|(a, r)| Factor::new(case.settings, a.tensor, r, ty)).collect();
    let run = |of: &dyn Fn(&Factor) -> Vec<f64>| -> Option<Vec<Vec<f64>>> {
        let args = case.args.iter().enumerate().map(|(k, a)| {
            let ty = a.tensor.element_type();
            Value::Array(if is_index_operand(case, k) || !is_number(ty) {
                a.tensor.clone()
            } else {
                tensor(ElementType::F64, a.tensor.dims(), &of(&xs[k]))
            })
        });
        let value = probe.run(case.settings, args.collect())?;
        Some(value.arrays().into_iter().map(|t| Numbers::of(t).re).collect())
    };
    let magnitudes = run(&|x| x.largest.clone())?;
    let counts = run(&|x| vec![1.0; x.off.len()])?;
    let off =
        xs.iter().enumerate().any(|(k, x)| !is_index_operand(case, k) && x.off.iter().any(|&r| r > 0.0));
    let spreads = if off { Some(run(&|x| x.off.clone())?) } else { None };
    let complex = ty.is_complex();
    let literal = matches!(case.opcode(), Opcode::Scatter | Opcode::SelectAndScatter)
        || case.opcode() == Opcode::Scan && complex;
    let manner = manner(case, ty, 0.0, literal)?;
    let narrow = Format::of(ty).is_some_and(|f| f.precision < 24);
    let sums = if (narrow || literal && ty == ElementType::F32) && !complex {
        Some(run(&|x| x.value.clone())?)
    } else {
        None
    };
    let literal_mode = case.settings.options.accumulate == Accumulate::Region;
    let arrays = case.results.iter().enumerate();
    arrays
        .map(|(k, result)| {
            let n = result.len();
            let terms = Terms {
                magnitude: magnitudes.get(k)?.clone(),
                spread: spreads
                    .as_ref()
                    .map_or_else(|| vec![0.0; n], |s| s.get(k).cloned().unwrap_or_default()),
                count: counts.get(k)?.clone(),
                exact: sums.as_ref().and_then(|s| s.get(k).cloned()),
                wild: None,
                error: None,
            };
            let fits = [terms.magnitude.len(), terms.spread.len(), terms.count.len()].iter().all(|&l| l == n);
            fits.then(|| {
                let found = concluded(case, result, &terms, &manner, literal_mode, false, mode);
                sum_limits::narrowed(case, radii, result, found, &manner, mode)
            })
        })
        .collect()
}
