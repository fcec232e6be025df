//! Infinities and NaNs that the order or the formula of a computation decides, which an engine is free to
//! choose.
//!
//! Radii say nothing of them: no distance to an infinity is finite. They are explained where one can say
//! which other ones there are:
//!
//! - **A real sum that overflows in some order** (of a reduction, dot, ragged dot or convolution). Let P be
//!   the sum of its positive terms and N that of its negative ones. Where P is beyond the greatest number of
//!   the accumulator, adding the positive terms first gives plus infinity, and likewise N; where both are,
//!   NaN. So these are results of a permitted order, whatever the exact sum is.
//! - **A real product that overflows in some order**: [`multiplied::specials`].
//! - **What is infinite or NaN in the reference and computed by way of several numbers**: complex products
//!   and quotients and what is computed from them, complex sums, Fourier transforms, linear systems,
//!   normalization. Which of infinity and NaN comes out, and in which part, depends on the formula (C99,
//!   annex G, recovers infinities; the textbook's formulas do not).
//! - **A Fourier transform whose magnitudes add up to more than the greatest number**: in which groups
//!   elements are added, and when an inverse is scaled, is the algorithm's choice. For real data half of the
//!   greatest number is enough: an algorithm by way of a complex transform of half the length (Numerical
//!   Recipes, section 12.3) adds an element to the conjugate of another before it halves the sum.
//! - **A normalization whose variance and epsilon are a zero in the operands' type**: an engine that computes
//!   in that type divides by it.
//! - **A quotient by a denormal number** that is flushed: infinite, or NaN if the numerator is a zero or
//!   flushed itself. So logarithms and reciprocal roots of one are infinite.
//!
//! **Invariants:** operands are known, so that the reference's infinities are the engine's too. A finite
//! result is never explained here.

use std::sync::Arc;

use hlo::attrs::FftType;
use hlo::{AttrKey, ElementType, Opcode};
use hlo_execution::format::{Format, has_infinities, power_of_two};
use hlo_execution::special::Special;
use hlo_interp::{Tensor, Value};

use super::number::{Numbers, tensor};
use super::probe::{Probe, Regions, retyped};
use super::rules::{self, Case, Kind, kind, moves};
use super::{Leaf, Radii, elementwise, linear, movement, multiplied, sums};

/// Those of an array: element by element, or none.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Specials(Option<Arc<Vec<Special>>>);

impl Specials {
    pub(super) fn new(each: Vec<Special>) -> Specials {
        let some = each.iter().any(|&s| s != Special::NONE);
        Specials(some.then(|| Arc::new(each)))
    }

    /// Those of an element.
    pub fn at(&self, i: usize) -> Special {
        self.0.as_ref().map_or(Special::NONE, |each| each[i])
    }

    /// The bytes that they occupy.
    pub(super) fn bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |each| size_of_val(&each[..]) as u64)
    }
}

/// Puts those of an instruction's results beside their bounds.
pub(super) fn beside(case: &Case<'_>, leaves: &mut [Leaf]) {
    if let ([leaf], true) = (&mut *leaves, rules::copies(case)) {
        leaf.bounds.specials = case.args[0].leaf.bounds.specials.clone();
        return;
    }
    if matches!(kind(case.opcode()), Kind::Movement(_)) {
        return moved(case, leaves);
    }
    if moves(case.opcode()) {
        return handed_on(case, leaves);
    }
    // Where all hard bounds are finite, or all that is known is known, nothing needs them.
    let open = |radii: &Radii| match radii {
        Radii::Zero => false,
        Radii::Unknown => true,
        Radii::Each(each) => each.iter().any(|r| r.is_infinite()),
        Radii::Limited(of) => of.each.iter().any(|r| r.is_infinite()),
    };
    let known = |leaf: &Leaf| !open(&leaf.bounds.soft);
    if !leaves.iter().any(|leaf| open(&leaf.bounds.hard)) {
        return;
    }
    made(case, leaves, known);
    handed_on(case, leaves);
}

/// Those that an instruction makes itself.
fn made(case: &Case<'_>, leaves: &mut [Leaf], known: impl Fn(&Leaf) -> bool) {
    if !case.args.iter().all(|a| known(&a.leaf)) {
        return of_specials(case, leaves);
    }
    let of_order = overflowing(case)
        .or_else(|| overflowing_in_parts(case))
        .or_else(|| transformed(case))
        .or_else(|| multiplied::specials(case));
    let of_order = of_order.unwrap_or_default();
    for (k, (leaf, t)) in leaves.iter_mut().zip(&case.results).enumerate() {
        if Format::of(t.element_type()).is_none() {
            continue;
        }
        let v = Numbers::of(t);
        let by_formula = has_formulas(case, t.element_type());
        let zeros = linear::zero_denominators(case, k).unwrap_or_default();
        let each = (0..v.len()).map(|i| {
            // Those of an applied computation.
            let known = leaf.bounds.specials.at(i);
            if leaf.bounds.hard.at(i).is_finite() {
                return known;
            }
            let divides = zeros.get(i).copied().unwrap_or_default();
            let formula = by_formula && !v.is_finite(i) || divides;
            let formula = if formula { Special::ANY } else { Special::NONE };
            let overflow = if k == 0 { of_order.get(i).copied().unwrap_or_default() } else { Special::NONE };
            known.or(formula).or(overflow).or(at_pole(case, i))
        });
        leaf.bounds.specials = Specials::new(each.collect());
    }
}

/// Of complex elementwise arithmetic by a formula, where an operand is not finite and may be anything that is
/// not: the same is so of the result.
fn of_specials(case: &Case<'_>, leaves: &mut [Leaf]) {
    let ([leaf], [result]) = (leaves, &case.results[..]) else { return };
    if kind(case.opcode()) != Kind::Elementwise || !has_formulas(case, result.element_type()) {
        return;
    }
    let v = Numbers::of(result);
    let known = |i: usize| {
        case.args.iter().all(|a| {
            let (at, bounds) = (if a.tensor.len() == 1 { 0 } else { i }, &a.leaf.bounds);
            bounds.soft.at(at).is_finite() || bounds.specials.at(at) == Special::ANY
        })
    };
    let each = (0..v.len()).map(|i| {
        let open = leaf.bounds.hard.at(i).is_infinite() && !v.is_finite(i);
        if open && known(i) { Special::ANY } else { Special::NONE }
    });
    leaf.bounds.specials = Specials::new(each.collect());
}

/// Those of operands go through arithmetic: each of them gives what the operation gives for it. Where that is
/// a number, nothing is said.
fn handed_on(case: &Case<'_>, leaves: &mut [Leaf]) {
    let ([leaf], [result]) = (leaves, &case.results[..]) else { return };
    let (opcode, ty) = (case.opcode(), result.element_type());
    let by_parts = matches!(
        opcode,
        Opcode::Add
            | Opcode::Subtract
            | Opcode::Multiply
            | Opcode::Convert
            | Opcode::Negate
            | Opcode::Real
            | Opcode::Imag
            | Opcode::Complex
            | Opcode::Select
    );
    let complex = ty.is_complex() || case.args.iter().any(|a| a.tensor.element_type().is_complex());
    let known = unary_at_special(opcode, 0.0).is_some() || binary_at_special(opcode, 0.0, 0.0).is_some();
    let some = case.args.iter().any(|a| a.leaf.bounds.specials.0.is_some());
    if !(by_parts || known && !complex) || !some || Format::of(ty).is_none() || !has_infinities(ty) {
        return;
    }
    let operands: Vec<Numbers> = case.args.iter().map(|a| Numbers::of(a.tensor)).collect();
    let each = (0..result.len()).map(|i| {
        let at = |k: usize| if operands[k].len() == 1 { 0 } else { i };
        let of = |k: usize| case.args[k].leaf.bounds.specials.at(at(k));
        let mut found = leaf.bounds.specials.at(i);
        if leaf.bounds.hard.at(i).is_finite() {
            return found;
        }
        if opcode == Opcode::Select {
            let off = case.args[0].leaf.bounds.hard.at(at(0)) != 0.0;
            let yes = operands[0].re[at(0)] != 0.0;
            let chosen = [(yes || off, 1), (!yes || off, 2)].into_iter().filter(|(may_be, _)| *may_be);
            return chosen.fold(found, |found, (_, k)| found.or(of(k)));
        }
        if complex {
            let any = (0..operands.len()).any(|k| of(k) != Special::NONE);
            return if any { Special::ANY } else { found };
        }
        // What an operand may be: its special values, or a number, whose sign alone matters.
        let values = |k: usize| {
            let (x, r) = (operands[k].re[at(k)], case.args[k].leaf.bounds.hard.at(at(k)));
            let special = of(k).values();
            let number = match x {
                _ if !r.is_finite() => None,
                x if x.abs() > r => Some([x; 2]),
                _ => Some([0.0, 1.0f64.copysign(x)]),
            };
            special.chain(number.into_iter().flatten()).collect::<Vec<f64>>()
        };
        match (opcode, operands.len()) {
            (Opcode::Convert | Opcode::Real, 1) => found = found.or(of(0)),
            (_, 1) => {
                let results = of(0).values().filter_map(|x| unary_at_special(opcode, x));
                results.for_each(|x| found = found.or(Special::of(x)));
            }
            (_, 2) => {
                let (xs, ys) = (values(0), values(1));
                for (x, y) in xs.iter().flat_map(|&x| ys.iter().map(move |&y| (x, y))) {
                    // Numbers stand for their signs here.
                    if !(x.is_finite() && y.is_finite())
                        && let Some(both) = binary_at_special(opcode, x, y)
                    {
                        found = found.or(Special::of(both));
                    }
                }
            }
            (_, _) => {}
        }
        found
    });
    let each: Vec<Special> = each.collect();
    leaf.bounds.specials = Specials::new(each);
}

/// IEEE 754: a function of a real number that is infinite or NaN. `None`: not worked out.
fn unary_at_special(opcode: Opcode, x: f64) -> Option<f64> {
    Some(match opcode {
        Opcode::Negate => -x,
        Opcode::Abs => x.abs(),
        Opcode::Floor
        | Opcode::Ceil
        | Opcode::RoundNearestAfz
        | Opcode::RoundNearestEven
        | Opcode::ReducePrecision => x,
        Opcode::Sqrt => x.sqrt(),
        Opcode::Rsqrt => x.sqrt().recip(),
        Opcode::Cbrt => x.cbrt(),
        Opcode::Exponential => x.exp(),
        Opcode::ExponentialMinusOne => x.exp_m1(),
        Opcode::Log => x.ln(),
        Opcode::LogPlusOne => x.ln_1p(),
        Opcode::Sine => x.sin(),
        Opcode::Cosine => x.cos(),
        Opcode::Tan => x.tan(),
        Opcode::Sinh => x.sinh(),
        Opcode::Cosh => x.cosh(),
        Opcode::Tanh => x.tanh(),
        _ => return None,
    })
}

/// IEEE 754: an operation of two real numbers, at least one of them infinite or NaN. `None`: not worked out.
fn binary_at_special(opcode: Opcode, x: f64, y: f64) -> Option<f64> {
    Some(match opcode {
        Opcode::Add => x + y,
        Opcode::Subtract => x - y,
        Opcode::Multiply => x * y,
        Opcode::Divide => x / y,
        Opcode::Maximum | Opcode::Minimum if x.is_nan() || y.is_nan() => f64::NAN,
        Opcode::Maximum => x.max(y),
        Opcode::Minimum => x.min(y),
        _ => return None,
    })
}

/// Whether results that are not finite depend on the formula.
fn has_formulas(case: &Case<'_>, ty: ElementType) -> bool {
    match kind(case.opcode()) {
        Kind::Fft | Kind::TriangularSolve | Kind::BatchNorm => true,
        Kind::Sum => ty.is_complex(),
        Kind::Region => {
            ty.is_complex() && matches!(rules::folds_by(case), Some(Opcode::Add | Opcode::Multiply))
        }
        Kind::Elementwise => {
            let complex = ty.is_complex() || case.args.iter().any(|a| a.tensor.element_type().is_complex());
            // These work part by part, or choose.
            let by_parts = matches!(
                case.opcode(),
                Opcode::Add
                    | Opcode::Subtract
                    | Opcode::Convert
                    | Opcode::Maximum
                    | Opcode::Minimum
                    | Opcode::Clamp
                    | Opcode::Negate
            );
            complex && !by_parts
        }
        Kind::Movement(_)
        | Kind::Bits
        | Kind::Sort
        | Kind::Topk
        | Kind::Cholesky
        | Kind::Exchange
        | Kind::CollectiveFold
        | Kind::Random
        | Kind::Opaque
        | Kind::CustomCall
        | Kind::Structure => false,
    }
}

/// Of a function of a denormal number that may be flushed, where it has a pole at 0.
fn at_pole(case: &Case<'_>, i: usize) -> Special {
    let pole = match (case.opcode(), &case.args[..]) {
        (Opcode::Divide, [_, y]) => y.tensor,
        (Opcode::Log | Opcode::Rsqrt, [x]) => x.tensor,
        (_, _) => return Special::NONE,
    };
    let ty = pole.element_type();
    let Some(format) = Format::of(ty).filter(|_| !ty.is_complex()) else { return Special::NONE };
    let at = |t: &Tensor| super::plain::at(t, if t.len() == 1 { 0 } else { i });
    let small = |x: f64| x.abs() < format.flushes_below();
    let y = at(pole);
    let flushes = case.settings.allowances.flush_denormals && elementwise::flushes(case.opcode(), ty);
    if !flushes || y == 0.0 || !small(y) || !has_infinities(case.results[0].element_type()) {
        return Special::NONE;
    }
    let zero = 0f64.copysign(y);
    match case.opcode() {
        Opcode::Log => Special::NEGATIVE,
        Opcode::Rsqrt => Special::of(1.0 / zero),
        _ => {
            let x = at(case.args[0].tensor);
            let infinite = Special::of(f64::INFINITY.copysign(x) / zero);
            match x {
                x if x.is_nan() => Special::NONE,
                0.0 => Special::NAN,
                x if small(x) => Special::NAN.or(infinite),
                _ => infinite,
            }
        }
    }
}

/// How much larger than the greatest number a sum of terms of one sign has to be, so that the rounding of
/// these sums does not matter.
const CLEARLY: f64 = 1.0 + 1.0 / 4096.0;

/// Powers of two that the two factors of products (or all terms of sums, which have one factor) are scaled by
/// while sums are looked at, so that none overflows f64.
///
/// Products of f64 need both factors far down; what underflows then is too small to matter beside a sum that
/// overflows. Those of narrower types do not, and limits of f16 would be denormal there.
fn scales(factors: f64, accumulator: Format) -> [i32; 2] {
    match (factors > 0.0, accumulator.max > f64::from(f32::MAX)) {
        (true, true) => [-540, -540],
        (true, false) => [-64, 0],
        (false, _) => [-64, -64],
    }
}

/// What a sum of terms of one sign, scaled by [`scales`], has to reach to overflow for certain.
fn limit(factors: f64, accumulator: Format) -> f64 {
    let [first, second] = scales(factors, accumulator);
    // One after the other: the product of both scales may be less than the least number.
    let scaled = accumulator.max * power_of_two(first);
    (if factors > 0.0 { scaled * power_of_two(second) } else { scaled }) * CLEARLY
}

/// What a factor of a term is replaced by.
type Map = fn(f64) -> f64;

fn positive(x: f64) -> f64 {
    if x.is_finite() { x.max(0.0) } else { 0.0 }
}

fn negative(x: f64) -> f64 {
    positive(-x)
}

/// Of two factors, those whose products are positive.
const SAME_SIGNS: [[Map; 2]; 2] = [[positive, positive], [negative, negative]];
/// Those whose products are negative.
const OPPOSITE_SIGNS: [[Map; 2]; 2] = [[positive, negative], [negative, positive]];

/// 1 for what is asked for, 0 for all else.
fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

fn up(x: f64) -> f64 {
    flag(x == f64::INFINITY)
}

fn down(x: f64) -> f64 {
    flag(x == f64::NEG_INFINITY)
}

fn is_positive(x: f64) -> f64 {
    flag(x > 0.0)
}

fn is_negative(x: f64) -> f64 {
    flag(x < 0.0)
}

fn is_zero(x: f64) -> f64 {
    flag(x == 0.0)
}

fn is_infinite(x: f64) -> f64 {
    flag(x.is_infinite())
}

fn is_nan(x: f64) -> f64 {
    flag(x.is_nan())
}

fn one(_: f64) -> f64 {
    1.0
}

/// Which infinities and NaNs orders of a real sum give, element by element.
fn overflowing(case: &Case<'_>) -> Option<Vec<Special>> {
    let [result] = case.results[..] else { return None };
    let ty = result.element_type();
    let factors = match kind(case.opcode()) {
        Kind::Sum if matches!(case.opcode(), Opcode::Dot | Opcode::Convolution | Opcode::RaggedDot) => 1.0,
        Kind::Region
            if sums::is_sum(case) && matches!(case.opcode(), Opcode::Reduce | Opcode::ReduceWindow) =>
        {
            0.0
        }
        _ => return None,
    };
    let real = |t: &Tensor| t.element_type().is_float();
    // Sizes of groups are none of the factors.
    let is_term = |k: usize| case.opcode() != Opcode::RaggedDot || k < 2;
    let terms = || case.args.iter().enumerate().filter(|(k, _)| is_term(*k)).map(|(_, a)| a);
    if !real(result) || !terms().all(|a| real(a.tensor)) || !case.has_exact_operands() {
        return None;
    }
    let format = sums::manner(case, ty, factors, false)?.accumulator;
    let to_f64 = |_: ElementType| ElementType::F64;
    let shapes = sums::operand_shapes(case).enumerate();
    let shapes: Vec<_> =
        shapes.map(|(k, s)| if is_term(k) { retyped(s, &to_f64) } else { s.clone() }).collect();
    let probe = Probe::new(
        case.module,
        case.instr,
        &shapes,
        retyped(&case.instr.shape, &to_f64),
        &Regions::Retyped(&to_f64),
    )?;
    // Sums of the terms, with a map and a power of two applied to each factor. A term of a sum is its only
    // factor.
    let run = |of: [Map; 2], scales: [i32; 2]| -> Option<Vec<f64>> {
        let args = case.args.iter().enumerate().map(|(k, a)| {
            if !is_term(k) {
                return Value::Array(a.tensor.clone());
            }
            let (map, scale) = (of[k.min(1)], power_of_two(scales[k.min(1)]));
            let each: Vec<f64> = Numbers::of(a.tensor).re.iter().map(|&x| map(x) * scale).collect();
            Value::Array(tensor(ElementType::F64, a.tensor.dims(), &each))
        });
        Some(Numbers::of(probe.run(case.settings, args.collect())?.as_array()?).re)
    };
    // Sums of no negative number: nothing cancels.
    let all = |pairs: &[[Map; 2]], scales: [i32; 2]| -> Option<Vec<f64>> {
        let mut sums = pairs.iter().map(|&pair| run(pair, scales));
        let first = sums.next()??;
        sums.try_fold(first, |total, sum| Some(total.iter().zip(sum?).map(|(a, b)| a + b).collect()))
    };
    let product = factors > 0.0;
    let of_kind = |products: &[[Map; 2]], sums: Map, scales: [i32; 2]| {
        if product { all(products, scales) } else { all(&[[sums, sums]], scales) }
    };
    let scaled = scales(factors, format);
    let above = of_kind(&SAME_SIGNS, positive, scaled)?;
    let below = of_kind(&OPPOSITE_SIGNS, negative, scaled)?;
    // Infinite terms of either sign, and NaNs.
    let infinite = terms().any(|a| Numbers::of(a.tensor).re.iter().any(|x| !x.is_finite()));
    let has = |products: &[[Map; 2]], sums: Map| {
        if infinite { of_kind(products, sums, [0, 0]) } else { Some(vec![0.0; above.len()]) }
    };
    let [plus, minus, nan] = [
        has(&[[up, is_positive], [is_positive, up], [down, is_negative], [is_negative, down]], up)?,
        has(&[[up, is_negative], [is_negative, up], [down, is_positive], [is_positive, down]], down)?,
        has(&[[is_nan, one], [one, is_nan], [is_infinite, is_zero], [is_zero, is_infinite]], is_nan)?,
    ];
    let limit = limit(factors, format);
    let each = (0..above.len()).map(|i| {
        let (plus, minus) = (plus[i] > 0.0, minus[i] > 0.0);
        if !(above[i].is_finite() && below[i].is_finite()) || nan[i] > 0.0 || plus && minus {
            return Special::NONE;
        }
        match (above[i] >= limit || plus, below[i] >= limit || minus, has_infinities(ty)) {
            (false, false, _) => Special::NONE,
            (_, _, false) => Special::NAN,
            (true, false, true) => Special::POSITIVE,
            (false, true, true) => Special::NEGATIVE,
            // An infinite term is not forgotten.
            (true, true, true) if plus => Special::POSITIVE.or(Special::NAN),
            (true, true, true) if minus => Special::NEGATIVE.or(Special::NAN),
            (true, true, true) => Special::ANY,
        }
    });
    Some(each.collect())
}

/// The same of a complex dot or convolution: each part of an element is a sum of products of parts.
fn overflowing_in_parts(case: &Case<'_>) -> Option<Vec<Special>> {
    let ([a, b], [result]) = (&case.args[..], &case.results[..]) else { return None };
    let complex = [a.tensor, b.tensor, *result].iter().all(|t| t.element_type().is_complex());
    let product = matches!(case.opcode(), Opcode::Dot | Opcode::Convolution);
    if !product || !complex || !case.has_exact_operands() {
        return None;
    }
    let format = sums::manner(case, result.element_type(), 1.0, false)?.accumulator;
    let to_f64 = |_: ElementType| ElementType::F64;
    let shapes: Vec<_> = sums::operand_shapes(case).map(|s| retyped(s, &to_f64)).collect();
    let to = retyped(&case.instr.shape, &to_f64);
    let probe = Probe::new(case.module, case.instr, &shapes, to, &Regions::Retyped(&to_f64))?;
    let parts = [a, b].map(|x| Numbers::of(x.tensor)).map(|x| [x.re, x.im.unwrap_or_default()]);
    let run = |(k, l): (usize, usize), [f, g]: [Map; 2]| -> Option<Vec<f64>> {
        let [first, second] = scales(1.0, format).map(power_of_two);
        let scaled: Vec<f64> = parts[0][k].iter().map(|&x| f(x) * first).collect();
        let other: Vec<f64> = parts[1][l].iter().map(|&x| g(x) * second).collect();
        let of = |t: &Tensor, each: &[f64]| Value::Array(tensor(ElementType::F64, t.dims(), each));
        let value = probe.run(case.settings, vec![of(a.tensor, &scaled), of(b.tensor, &other)])?;
        Some(Numbers::of(value.as_array()?).re)
    };
    let limit = limit(1.0, format);
    let mut overflows = vec![false; result.len()];
    // Terms of one sign of either part are added up: nothing cancels.
    let (re, im) = ([(0, 0), (1, 1)], [(0, 1), (1, 0)]);
    for (products, signs) in [
        (re, [SAME_SIGNS, OPPOSITE_SIGNS]),
        (re, [OPPOSITE_SIGNS, SAME_SIGNS]),
        (im, [SAME_SIGNS, SAME_SIGNS]),
        (im, [OPPOSITE_SIGNS, OPPOSITE_SIGNS]),
    ] {
        let mut sums = vec![0.0; result.len()];
        for (product, pairs) in products.into_iter().zip(signs) {
            for pair in pairs {
                sums.iter_mut().zip(run(product, pair)?).for_each(|(sum, x)| *sum += x);
            }
        }
        for (overflows, sum) in overflows.iter_mut().zip(sums) {
            *overflows |= sum.is_finite() && sum >= limit;
        }
    }
    Some(overflows.into_iter().map(|o| if o { Special::ANY } else { Special::NONE }).collect())
}

/// Of transforms, whose elements are all made of all elements of a block.
fn transformed(case: &Case<'_>) -> Option<Vec<Special>> {
    let ([arg], [result], Opcode::Fft) = (&case.args[..], &case.results[..], case.opcode()) else {
        return None;
    };
    let lengths = case.instr.attrs.ints(AttrKey::FftLength)?.len();
    let block = |dims: &[i64]| dims.iter().rev().take(lengths).product::<i64>().max(1) as usize;
    let (taken, given) = (block(arg.tensor.dims()), block(result.dims()));
    let x = linear::transform_operand(case)?;
    let sums_before_halving = match case.instr.attrs.fft_type()? {
        FftType::Fft | FftType::Ifft => 1.0,
        FftType::Rfft | FftType::Irfft => 2.0,
    };
    let limit = Format::of(result.element_type())?.max * linear::SCALED / sums_before_halving;
    let each = (0..x.len() / taken).flat_map(|b| {
        let overflows = linear::scaled_norm(&x, b * taken..(b + 1) * taken, linear::SCALED) >= limit;
        std::iter::repeat_n(if overflows { Special::ANY } else { Special::NONE }, given)
    });
    let each: Vec<Special> = each.collect();
    (each.len() == result.len()).then_some(each)
}

/// Of moved elements those that they have.
fn moved(case: &Case<'_>, leaves: &mut [Leaf]) {
    let [leaf] = leaves else { return };
    if case.args.iter().all(|a| a.leaf.bounds.specials.0.is_none()) {
        return;
    }
    if let Some(from) = movement::sources(case) {
        let of = |source: movement::Source| {
            source.map_or(Special::NONE, |(k, i)| case.args[k].leaf.bounds.specials.at(i))
        };
        leaf.bounds.specials = Specials::new(from.into_iter().map(of).collect());
    }
}
