//! Sums of many products of real floats: what [`super::sums`] finds by exact sums in f64, found by fewer and
//! quicker ones in f32.
//!
//! With `A` and `B` the largest magnitudes of the operands' elements, `a` and `b` how far off they are, `m`
//! the reference's magnitudes and `g` the relative error of all roundings (`gamma`), a sum is off by at most
//! `g sum(A B) + sum(a m) + sum(A b)`, which is no more than `sum((g A + a) B) + sum(A b)`: one product of
//! matrices where only one operand is off, and two where both are.
//!
//! **Rounding.** Factors are scaled by a power of two, so that the largest has an exponent of [`LARGEST`],
//! and are rounded up to f32. The interpreter's sum of products in f32 is the exact one rounded once, which
//! [`UNIT`] and [`MIN_F32_SUBNORMAL`] cover. Where the least factors are so small that a sum of products that
//! are not zero may round to 0, the long way is taken, as for everything else that is not regular:
//! infinities, NaNs, operands of which nothing is known, few terms.

use hlo::{ElementType, Opcode, Shape};
use hlo_execution::format::{Format, power_of_two};
use hlo_interp::{Accumulate, Tensor, Value};
use hlo_perturbation::gamma;

use super::Radii;
use super::number::Numbers;
use super::probe::{Probe, Regions, retyped};
use super::rules::{Case, Mode};
use super::sums::{self, Factor, Terms, operand_shapes};

/// Multiplications from which this is worth it.
const WORK: usize = 1 << 14;

/// The exponent of the largest factor: sums of 2^40 products of two of them are within f32.
const LARGEST: i32 = 40;

/// More than the relative error of one rounding to f32.
const UNIT: f64 = 1.0 / (1 << 23) as f64;

/// The least number of f32, more than what a rounding to a number that is not normal loses.
const MIN_F32_SUBNORMAL: f64 = f64::from_bits((1023 - 149) << 52);

/// The radii of a dot or convolution; `None`: they are to be found the long way.
pub(super) fn bounds(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Option<Radii> {
    let ([lhs, rhs], [result]) = (&case.args[..], &case.results[..]) else { return None };
    let (opcode, ty) = (case.opcode(), result.element_type());
    let real = |t: &Tensor| Format::of(t.element_type()).is_some() && !t.element_type().is_complex();
    if !matches!(opcode, Opcode::Dot | Opcode::Convolution)
        || ![lhs.tensor, rhs.tensor, result].into_iter().all(real)
    {
        return None;
    }
    let count = sums::term_count(case);
    if count < 2.0 || result.len() as f64 * count < WORK as f64 {
        return None;
    }
    let manner = sums::manner(case, ty, 1.0, false)?;
    let growth = gamma(count + manner.factors, manner.accumulator.unit_roundoff());
    if growth.is_nan() || growth >= 1.0 {
        return None;
    }
    let xs = [lhs, rhs].map(|a| a.tensor);
    let xs =
        [0, 1].map(|k| Factor::new(case.settings, xs[k], &radii[k], ty).in_tf32(case, xs[k].element_type()));
    if xs.iter().any(|x| x.has_specials() || x.largest.iter().any(|m| !m.is_finite())) {
        return None;
    }
    let [a, b] = &xs;
    let off = |x: &Factor| x.off.iter().any(|&r| r > 0.0);
    // Rounded up, as the sum in each is rounded.
    let all = |x: &Factor| -> Vec<f64> {
        let each = x.largest.iter().zip(&x.off);
        each.map(|(&largest, &off)| (growth * largest + off) * (1.0 + 4.0 * f64::EPSILON)).collect()
    };
    let mut error = match (off(a), off(b)) {
        (_, false) => product(case, &all(a), &b.largest)?,
        (false, true) => product(case, &a.largest, &all(b))?,
        (true, true) => {
            let mut sum = product(case, &all(a), &b.largest)?;
            let rest = product(case, &a.largest, &b.off)?;
            sum.iter_mut().zip(rest).for_each(|(sum, x)| *sum = (*sum + x).next_up());
            sum
        }
    };
    let most = |x: &Factor| x.largest.iter().copied().fold(0.0, f64::max);
    let most = most(a) * most(b) * count;
    let magnitude = |&e: &f64| if e > 0.0 { (e / growth).min(most).max(f64::MIN_POSITIVE) } else { 0.0 };
    let magnitude: Vec<f64> = error.iter().map(magnitude).collect();
    let exact = if Format::of(ty)?.precision < 24 {
        let sum = centers(case, [a, b])?;
        error.iter_mut().zip(&sum).for_each(|(error, sum)| *error += sum.abs() * UNIT + MIN_F32_SUBNORMAL);
        Some(sum)
    } else {
        None
    };
    let n = result.len();
    let terms =
        Terms { magnitude, spread: Vec::new(), count: vec![count; n], exact, wild: None, error: Some(error) };
    let literal = case.settings.options.accumulate == Accumulate::Region;
    Some(sums::concluded(case, result, &terms, &manner, literal, false, mode))
}

/// The instruction on operands of f32.
fn run(case: &Case<'_>, factors: [Vec<f32>; 2]) -> Option<Vec<f64>> {
    let single = |shape: &Shape| retyped(shape, &|_| ElementType::F32);
    let shapes: Vec<Shape> = operand_shapes(case).map(single).collect();
    let regions = Regions::Retyped(&|t| t);
    let probe = Probe::new(case.module, case.instr, &shapes, single(&case.instr.shape), &regions)?;
    let args = case.args.iter().zip(factors);
    let args = args.map(|(a, x)| Value::Array(Tensor::from_vec(a.tensor.dims(), x)));
    let value = probe.run(case.settings, args.collect())?;
    let sums = Numbers::of(value.as_array()?).re;
    sums.iter().all(|x| x.is_finite()).then_some(sums)
}

/// At least the sums of products of factors that are not negative; 0 where these are 0.
fn product(case: &Case<'_>, a: &[f64], b: &[f64]) -> Option<Vec<f64>> {
    let ((a, low_a, back_a), (b, low_b, back_b)) = (scaled(a)?, scaled(b)?);
    if low_a * low_b < MIN_F32_SUBNORMAL {
        return None;
    }
    let back = |x: f64| {
        if x == 0.0 { 0.0 } else { ((x * (1.0 + UNIT) + MIN_F32_SUBNORMAL) * back_a * back_b).next_up() }
    };
    Some(run(case, [a, b])?.into_iter().map(back).collect())
}

/// Factors times a power of two, rounded up; the least of them that is not 0, and what undoes the scaling.
fn scaled(x: &[f64]) -> Option<(Vec<f32>, f64, f64)> {
    let most = x.iter().copied().fold(0.0, f64::max);
    if most == 0.0 {
        return Some((vec![0.0; x.len()], 1.0, 1.0));
    }
    let exponent = (most.to_bits() >> 52) as i32 - 1023;
    if !(-900..900).contains(&exponent) {
        return None;
    }
    let (scale, back) = (power_of_two(LARGEST - exponent), power_of_two(exponent - LARGEST));
    let mut least = f32::INFINITY;
    let up = |&x: &f64| {
        let y = x * scale;
        let near = y as f32;
        let up = if f64::from(near) < y || near == 0.0 && x > 0.0 { near.next_up() } else { near };
        if up > 0.0 {
            least = least.min(up);
        }
        up
    };
    let factors = x.iter().map(up).collect();
    Some((factors, f64::from(least), back))
}

/// The exact sums at the reference's operands, rounded to f32.
fn centers(case: &Case<'_>, factors: [&Factor; 2]) -> Option<Vec<f64>> {
    let fits =
        |t: &Tensor| matches!(t.element_type(), ElementType::F32 | ElementType::F16 | ElementType::BF16);
    if !case.args.iter().all(|a| fits(a.tensor)) {
        return None;
    }
    run(case, factors.map(|x| x.value.iter().map(|&x| x as f32).collect()))
}
