//! The commonest elementwise operations on real floats: what [`super::elementwise`] finds by running the
//! instruction at the ends of the operands' intervals, found by the same arithmetic right here, on all
//! threads and without arrays in between.
//!
//! Numbers of f32, f16 and bf16 are added, multiplied and divided in f64 and rounded to the type: with 53
//! bits, more than twice 24 and two, that is rounded as if once (Figueroa, When is double rounding
//! innocuous?, 1995). Functions are those of the interpreter.

use hlo::half::{bf16, f16};
use hlo::{ElementType, Opcode, with_buffer};
use hlo_arithmetic::scalar::Elementary;
use hlo_execution::element::Number;
use hlo_execution::format::Format;
use hlo_interp::Tensor;
use rayon::prelude::*;

use super::Radii;
use super::comparison::Comparison;
use super::elementwise::{Settled, flushes};
use super::interval::Interval;
use super::limits::Limits;
use super::rules::{Arg, Case, Mode};

/// Elements of a task.
const TASK: usize = 1 << 12;

/// A type whose numbers f64 holds.
trait Float: Copy + Sync + Send {
    const TYPE: ElementType;

    /// To the nearest number.
    fn rounded(x: f64) -> f64;

    /// A function that rises or falls everywhere.
    fn function(opcode: Opcode, x: f64) -> f64;
}

fn of<T: Elementary + hlo_arithmetic::scalar::Float>(opcode: Opcode, x: T) -> T {
    match opcode {
        Opcode::Exponential => x.exponential(),
        Opcode::ExponentialMinusOne => x.exponential_minus_one(),
        Opcode::Log => x.log(),
        Opcode::LogPlusOne => x.log_plus_one(),
        Opcode::Logistic => x.logistic(),
        Opcode::Tanh => x.tanh(),
        Opcode::Rsqrt => x.rsqrt(),
        Opcode::Erf => x.erf(),
        Opcode::Cbrt => x.cbrt(),
        _ => x.sqrt(),
    }
}

/// The nearest number: the conversions of the crate `half` round twice.
fn half(x: f64) -> f16 {
    Number::from_f64(x)
}

fn brain(x: f64) -> bf16 {
    Number::from_f64(x)
}

macro_rules! floats {
    ($($name:ident $ty:ident $near:expr, $function:expr;)*) => {$(
        #[derive(Clone, Copy)]
        struct $name;

        impl Float for $name {
            const TYPE: ElementType = ElementType::$ty;

            #[inline(always)]
            fn rounded(x: f64) -> f64 {
                let near: fn(f64) -> f64 = $near;
                near(x)
            }

            fn function(opcode: Opcode, x: f64) -> f64 {
                let function: fn(Opcode, f64) -> f64 = $function;
                function(opcode, x)
            }
        }
    )*};
}
floats! {
    Double F64 |x| x, |opcode, x| of(opcode, x);
    Single F32 |x| f64::from(x as f32), |opcode, x| f64::from(of(opcode, x as f32));
    Half F16 |x| half(x).to_f64(), |opcode, x| of(opcode, half(x)).to_f64();
    Brain BF16 |x| brain(x).to_f64(), |opcode, x| of(opcode, brain(x)).to_f64();
}

/// Whether it is an operation that is computed here.
fn computes(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Add
            | Opcode::Subtract
            | Opcode::Multiply
            | Opcode::Divide
            | Opcode::Maximum
            | Opcode::Minimum
            | Opcode::Negate
            | Opcode::Abs
            | Opcode::Convert
            | Opcode::Exponential
            | Opcode::ExponentialMinusOne
            | Opcode::Log
            | Opcode::LogPlusOne
            | Opcode::Logistic
            | Opcode::Tanh
            | Opcode::Sqrt
            | Opcode::Rsqrt
            | Opcode::Erf
            | Opcode::Cbrt
    )
}

/// Whether it has numbers of one of the types that are computed here.
pub(super) fn is_float(t: &Tensor) -> bool {
    matches!(t.element_type(), ElementType::F64 | ElementType::F32 | ElementType::F16 | ElementType::BF16)
}

/// Whether the bounds of an instruction are found here.
pub(super) fn applies(case: &Case<'_>) -> bool {
    let [result] = case.results[..] else { return false };
    let n = result.len();
    let fits = |a: &Arg<'_>| is_float(a.tensor) && (a.tensor.len() == n || a.tensor.len() == 1);
    let types = |a: &Arg<'_>| a.tensor.element_type() == result.element_type();
    computes(case.opcode())
        && is_float(result)
        && (1..=2).contains(&case.args.len())
        && case.args.iter().all(fits)
        && (case.opcode() == Opcode::Convert || case.args.iter().all(types))
}

/// The radii of an elementwise instruction; `None`: they are found elsewhere.
pub(super) fn bounds(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Option<Radii> {
    if !applies(case) {
        return None;
    }
    fn from<A: Float>(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Option<Radii> {
        match case.results[0].element_type() {
            ElementType::F64 => all::<A, Double>(case, radii, mode),
            ElementType::F32 => all::<A, Single>(case, radii, mode),
            ElementType::F16 => all::<A, Half>(case, radii, mode),
            ElementType::BF16 => all::<A, Brain>(case, radii, mode),
            _ => None,
        }
    }
    let operand = case.args[0].tensor.element_type();
    match (case.opcode(), operand) {
        (Opcode::Convert, ElementType::F64) => from::<Double>(case, radii, mode),
        (Opcode::Convert, ElementType::F32) => from::<Single>(case, radii, mode),
        (Opcode::Convert, ElementType::F16) => from::<Half>(case, radii, mode),
        (Opcode::Convert, ElementType::BF16) => from::<Brain>(case, radii, mode),
        (_, ElementType::F64) => all::<Double, Double>(case, radii, mode),
        (_, ElementType::F32) => all::<Single, Single>(case, radii, mode),
        (_, ElementType::F16) => all::<Half, Half>(case, radii, mode),
        (_, ElementType::BF16) => all::<Brain, Brain>(case, radii, mode),
        (_, _) => None,
    }
}

/// An operand.
struct Side<'a> {
    tensor: &'a Tensor,
    radii: &'a Radii,
    /// A number of a wider type, or a product, may lie between an end and its rounding.
    wide: bool,
}

/// An element.
pub(super) fn at(t: &Tensor, i: usize) -> f64 {
    with_buffer!(t.buffer(), v => Number::parts(v[i]).0.value())
}

/// Some elements, or the one that there is, as often.
pub(super) fn decoded(t: &Tensor, first: usize, out: &mut [f64]) {
    with_buffer!(t.buffer(), v => {
        if v.len() == 1 {
            out.fill(Number::parts(v[0]).0.value());
        } else {
            let from = &v[first..first + out.len()];
            out.iter_mut().zip(from).for_each(|(to, &x)| *to = Number::parts(x).0.value());
        }
    });
}

/// The operands, and what widens their intervals.
fn sides<'a>(case: &'a Case<'a>, radii: &'a [Radii]) -> Vec<Side<'a>> {
    let side = |(a, radii): (&'a Arg<'a>, &'a Radii)| Side {
        tensor: a.tensor,
        radii,
        wide: case.reads_unrounded(a),
    };
    case.args.iter().zip(radii).map(side).collect()
}

impl Side<'_> {
    /// The interval of an element of value `x`, or of the one that there is.
    #[inline(always)]
    fn interval<A: Float>(&self, i: usize, x: f64, flushed: bool, format: Format) -> Interval {
        let at = if self.tensor.len() == 1 { 0 } else { i };
        let (r, limits) = (self.radii.at(at), self.radii.limits(at));
        let mut interval = Interval::exactly(x);
        if r > 0.0 {
            interval = Interval::around(x, r, limits, self.wide);
        }
        if flushed && interval.flushes(x, format) {
            interval = interval.with_zero();
        }
        if interval.low < interval.high {
            let ends = [A::rounded(interval.low), A::rounded(interval.high)];
            interval = interval.rounded(ends, limits, self.wide, format);
        }
        interval
    }
}

/// The radii of a comparison of floats of one of the types here: 0 where the intervals do not meet. `None`:
/// they are found elsewhere.
pub(super) fn compared(case: &Case<'_>, radii: &[Radii]) -> Option<Radii> {
    let ([a, b], [result]) = (&case.args[..], &case.results[..]) else { return None };
    let fits = |a: &Arg<'_>| is_float(a.tensor) && (a.tensor.len() == result.len() || a.tensor.len() == 1);
    if !fits(a) || !fits(b) || a.tensor.element_type() != b.tensor.element_type() {
        return None;
    }
    match a.tensor.element_type() {
        ElementType::F64 => meets::<Double>(case, radii),
        ElementType::F32 => meets::<Single>(case, radii),
        ElementType::F16 => meets::<Half>(case, radii),
        ElementType::BF16 => meets::<Brain>(case, radii),
        _ => None,
    }
}

fn meets<A: Float>(case: &Case<'_>, radii: &[Radii]) -> Option<Radii> {
    let comparison = Comparison::of(case)?;
    let format = Format::of(A::TYPE)?;
    let sides = sides(case, radii);
    let [a, b] = &sides[..] else { return None };
    let flushed = case.settings.allowances.flush_denormals;
    let mut each = vec![0.0; case.results[0].len()];
    each.par_chunks_mut(TASK).enumerate().for_each(|(task, each)| {
        let first = task * TASK;
        let mut values = [vec![0.0; each.len()], vec![0.0; each.len()]];
        decoded(a.tensor, first, &mut values[0]);
        decoded(b.tensor, first, &mut values[1]);
        for (i, r) in each.iter_mut().enumerate() {
            let of = |side: &Side<'_>, x: f64| (side.interval::<A>(first + i, x, flushed, format), x);
            *r = comparison.radius(of(a, values[0][i]), of(b, values[1][i]), 0.0);
        }
    });
    Some(Radii::new(each))
}

/// The radii of a `select` whose choices are all decided, between values without limits. `None`: they are
/// found elsewhere.
pub(super) fn selected(case: &Case<'_>, radii: &[Radii]) -> Option<Radii> {
    let [p, a, b] = &case.args[..] else { return None };
    if !radii[0].is_zero() || radii.iter().any(Radii::has_limits) {
        return None;
    }
    let n = case.results[0].len();
    let scalars = [p, a, b].map(|x| x.tensor.len() != n);
    let mut each = vec![0.0; n];
    each.par_chunks_mut(TASK).enumerate().for_each(|(task, each)| {
        let first = task * TASK;
        let mut chosen = vec![0.0; each.len()];
        decoded(p.tensor, if scalars[0] { 0 } else { first }, &mut chosen);
        for (i, r) in each.iter_mut().enumerate() {
            let k = if chosen[i] != 0.0 { 1 } else { 2 };
            *r = radii[k].at(if scalars[k] { 0 } else { first + i });
        }
    });
    Some(Radii::new(each))
}

fn all<A: Float, R: Float>(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Option<Radii> {
    let (opcode, result) = (case.opcode(), case.results[0]);
    let (from, to) = (Format::of(A::TYPE)?, Format::of(R::TYPE)?);
    let allowed = &case.settings.allowances;
    let sides = sides(case, radii);
    let square = opcode == Opcode::Multiply && case.args[0].from == case.args[1].from;
    let settled = Settled::new(case, to, mode, square);
    let flushed = allowed.flush_denormals && flushes(opcode, A::TYPE);
    let mut each = vec![0.0; result.len()];
    let limits: Vec<Option<Vec<Limits>>> = each
        .par_chunks_mut(TASK)
        .enumerate()
        .map(|(task, radii)| {
            let first = task * TASK;
            let n = radii.len();
            let (mut v, mut xs) = (vec![0.0; n], [vec![0.0; n], vec![0.0; n]]);
            decoded(result, first, &mut v);
            sides.iter().zip(&mut xs).for_each(|(side, x)| decoded(side.tensor, first, x));
            let mut limits: Option<Vec<Limits>> = None;
            for i in 0..n {
                let end = |k: usize| {
                    let Some(side) = sides.get(k) else {
                        return (Interval::exactly(0.0), true);
                    };
                    let x = xs[k][i];
                    let interval = side.interval::<A>(first + i, x, flushed, from);
                    (interval, interval.is_exact(x))
                };
                let (radius, limit) = element::<R>(opcode, v[i], end(0), end(1), &settled, mode, flushed, to);
                let (radius, limit) = limit.narrow(v[i], radius);
                radii[i] = radius;
                if !limit.is_none() {
                    limits.get_or_insert_with(|| vec![Limits::NONE; n])[i] = limit;
                }
            }
            limits
        })
        .collect();
    if limits.iter().all(Option::is_none) {
        return Some(Radii::new(each));
    }
    let chunks = each.chunks(TASK).zip(limits);
    let limits = chunks.flat_map(|(radii, limits)| limits.unwrap_or_else(|| vec![Limits::NONE; radii.len()]));
    let limits = limits.collect();
    Some(Radii::limited(each, limits))
}

/// The radius and the limits of an element.
#[allow(
    clippy::too_many_arguments,
    reason = "the innermost loop's body, with what is the same for all elements"
)]
#[inline(always)]
fn element<R: Float>(
    opcode: Opcode,
    v: f64,
    (mut a, mut a_is_exact): (Interval, bool),
    (b, b_is_exact): (Interval, bool),
    settled: &Settled,
    mode: Mode,
    flushed: bool,
    format: Format,
) -> (f64, Limits) {
    const UNKNOWN: (f64, Limits) = (f64::INFINITY, Limits::NONE);
    if mode == Mode::Hard
        && v.is_infinite()
        && matches!(opcode, Opcode::Exponential | Opcode::ExponentialMinusOne)
        && a.low.is_finite()
        && a.high.is_finite()
    {
        // Where it overflows at an exact operand, an implementation that is some units off may not.
        let (low, high) = (a.low - 4.0 * format.ulp(a.low), a.high + 4.0 * format.ulp(a.high));
        a = Interval { low, high: high.min(format.max), ..a };
        a_is_exact = false;
    }
    if a_is_exact && b_is_exact {
        let nothing = settled.is_exact() && !(flushed && v != 0.0 && v.abs() < format.flushes_below());
        return if nothing || !v.is_finite() && mode == Mode::Soft {
            (0.0, Limits::NONE)
        } else {
            settled.radius(v, [v, v], true, true, false)
        };
    }
    if a.unknown || b.unknown {
        return UNKNOWN;
    }
    let hull = |corners: &[f64]| {
        let (mut low, mut high, mut nan, mut agrees) = (v, v, false, true);
        for &x in corners {
            let x = R::rounded(x);
            nan |= x.is_nan();
            agrees &= x.is_nan() && v.is_nan() || x == v && x.is_sign_negative() == v.is_sign_negative();
            if x < low || x == low && x.is_sign_negative() {
                low = x;
            }
            if x > high || x == high && x.is_sign_positive() {
                high = x;
            }
        }
        settled.radius(v, [low, high], false, agrees, nan)
    };
    let larger = |x: f64, y: f64| {
        if x.is_nan() || y.is_nan() {
            f64::NAN
        } else if x > y || x == y && y.is_sign_negative() {
            x
        } else {
            y
        }
    };
    match opcode {
        // Zero times infinity: within the box perhaps, and at none of its corners.
        Opcode::Multiply if (a.is_infinite() || b.is_infinite()) && (a.holds(0.0) || b.holds(0.0)) => UNKNOWN,
        Opcode::Add => hull(&[a.low + b.low, a.high + b.high]),
        Opcode::Subtract => hull(&[a.low - b.high, a.high - b.low]),
        // A zero within an interval has either sign, so a zero times it has.
        Opcode::Multiply if v == 0.0 && (!a_is_exact && a.holds(0.0) || !b_is_exact && b.holds(0.0)) => {
            hull(&[a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high, -v])
        }
        Opcode::Multiply => hull(&[a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high]),
        // The pole is at 0.
        Opcode::Divide if !b_is_exact && b.holds(0.0) => UNKNOWN,
        Opcode::Divide => hull(&[a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high]),
        Opcode::Maximum | Opcode::Minimum => {
            let ends = if opcode == Opcode::Maximum {
                [larger(a.low, b.low), larger(a.high, b.high)]
            } else {
                [-larger(-a.low, -b.low), -larger(-a.high, -b.high)]
            };
            match (a.taken_for_zero(format), b.taken_for_zero(format)) {
                // The comparison flushes, and what is selected is not flushed: either.
                (Some(x), Some(y)) if flushed => hull(&[ends[0], ends[1], x[0], x[1], y[0], y[1]]),
                (_, _) => hull(&ends),
            }
        }
        Opcode::Negate => hull(&[-a.low, -a.high]),
        Opcode::Abs if a.low <= 0.0 && a.high >= 0.0 => hull(&[a.low.abs(), a.high.abs(), 0.0]),
        Opcode::Abs => hull(&[a.low.abs(), a.high.abs()]),
        // Zeros of both signs have infinities of both.
        Opcode::Rsqrt if a.low <= 0.0 => UNKNOWN,
        Opcode::Convert => hull(&[a.low, a.high]),
        _ => hull(&[R::function(opcode, a.low), R::function(opcode, a.high)]),
    }
}
