//! The commonest elementwise operations on real floats: what [`super::elementwise`] finds by running the instruction at the ends of the operands'
//! intervals, found by the same arithmetic right here, on all threads and without arrays in between.
//!
//! Numbers of f32, f16 and bf16 are added, multiplied and divided in f64 and rounded to the type: with 53 bits, more than twice 24 and two, that is rounded as if once (Figueroa,
//! When is double rounding innocuous?, 1995). Functions are those of
//! the interpreter.

use hlo::attrs::{CompareType, Direction};
use hlo::half::{bf16, f16};
use hlo::{ElementType, Opcode, with_buffer};
use hlo_interp::Tensor;
use hlo_interp::scalar::Elementary;
use rayon::prelude::*;

use super::Radii;
use super::elementwise::{Settled, flushes};
use super::limits::Limits;
use super::number::Format;
use super::rules::{Arg, Case, Mode};
use crate::element::Number;

/// Elements that a task takes.
const TASK: usize = 1 << 12;

/// A type whose numbers f64 holds.
trait Float: Copy + Sync + Send {
    const TYPE: ElementType;

    /// To the nearest number.
    fn rounded(x: f64) -> f64;

    /// A function that rises or falls everywhere.
    fn function(opcode: Opcode, x: f64) -> f64;
}

fn of<T: Elementary + hlo_interp::scalar::Float>(opcode: Opcode, x: T) -> T {
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

/// What an element of an operand may be.
#[derive(Clone, Copy)]
struct Ends {
    low: f64,
    high: f64,
    exact: bool,
    unknown: bool,
}

impl Ends {
    /// Of a value that may be so far off, and within these limits.
    #[inline(always)]
    fn new<A: Float>(x: f64, r: f64, limits: Limits, wide: bool, flushed: bool, format: Format) -> Ends {
        let (mut low, mut high) = (x, x);
        let mut unknown = false;
        if r > 0.0 {
            if r.is_finite() && x.is_finite() {
                (low, high) = (x - r, x + r);
                if wide {
                    (low, high) = (low.next_down(), high.next_up());
                }
                // The reference's value is within the limits, or at them and rounded. What limits leave nothing but a zero is not exact: it
                // may have either sign.
                let (l, h) = (low.max(limits.low.min(x)), high.min(limits.high.max(x)));
                if l < h {
                    (low, high) = (l, h);
                }
            } else {
                unknown = limits.is_none() || x.is_nan();
                if !unknown {
                    (low, high) = (limits.low.min(x), limits.high.max(x));
                }
            }
        }
        if flushed && x != 0.0 && low < format.min_normal() && high > -format.min_normal() {
            low = low.min(0.0);
            high = high.max(0.0);
        }
        if low < high {
            let (mut l, mut h) = (A::rounded(low), A::rounded(high));
            if wide && l > low {
                l -= format.ulp(l);
            }
            if wide && h < high {
                h += format.ulp(h);
            }
            // The operand itself may be too large for its type.
            unknown |= !(l.is_finite() && h.is_finite()) && limits.is_none();
            if !unknown {
                (low, high) = (l, h);
            }
        }
        Ends { low, high, exact: !unknown && (low == high || x.is_nan()), unknown }
    }

    fn holds_zero(self) -> bool {
        self.low <= 0.0 && self.high >= 0.0
    }

    fn is_infinite(self) -> bool {
        self.low.is_infinite() || self.high.is_infinite()
    }
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
fn sides<'a>(case: &'a Case<'a>, radii: &'a [Radii], format: Format) -> Vec<Side<'a>> {
    let allowed = &case.settings.allowances;
    let side = |(a, radii): (&'a Arg<'a>, &'a Radii)| Side {
        tensor: a.tensor,
        radii,
        wide: allowed.excess_precision && format.precision < 24 || allowed.contraction && a.leaf.product,
    };
    case.args.iter().zip(radii).map(side).collect()
}

impl Side<'_> {
    /// An element of value `x`, or the one that there is.
    #[inline(always)]
    fn ends<A: Float>(&self, i: usize, x: f64, flushed: bool, format: Format) -> Ends {
        let at = if self.tensor.len() == 1 { 0 } else { i };
        Ends::new::<A>(x, self.radii.at(at), self.radii.limits(at), self.wide, flushed, format)
    }
}

/// The radii of a comparison of floats of one of the types here: 0 where the intervals do not meet. `None`: they are found elsewhere.
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
    let total = case.instr.attrs.compare_type() == Some(&CompareType::TotalOrder);
    let direction = *case.instr.attrs.direction()?;
    let format = Format::of(A::TYPE)?;
    let sides = sides(case, radii, format);
    let [a, b] = &sides[..] else { return None };
    let same = case.args[0].from == case.args[1].from;
    let flushed = case.settings.allowances.flush_denormals;
    let element = |x: Ends, y: Ends, (a, b): (f64, f64)| {
        if x.exact && y.exact {
            return 0.0;
        }
        let nan = |of: Ends, value: f64| of.exact && value.is_nan();
        if nan(x, a) && (!total || !y.unknown) || nan(y, b) && (!total || !x.unknown) {
            return 0.0;
        }
        if x.unknown || y.unknown {
            return f64::INFINITY;
        }
        if same {
            return 0.0;
        }
        let strictly = x.high < y.low || y.high < x.low;
        let weakly = match direction {
            Direction::Eq | Direction::Ne => false,
            Direction::Lt | Direction::Ge => y.high <= x.low,
            Direction::Gt | Direction::Le => x.high <= y.low,
        };
        if strictly || weakly && !total { 0.0 } else { 1.0 }
    };
    let mut each = vec![0.0; case.results[0].len()];
    each.par_chunks_mut(TASK).enumerate().for_each(|(task, each)| {
        let first = task * TASK;
        let mut values = [vec![0.0; each.len()], vec![0.0; each.len()]];
        decoded(a.tensor, first, &mut values[0]);
        decoded(b.tensor, first, &mut values[1]);
        for (i, r) in each.iter_mut().enumerate() {
            let both = (values[0][i], values[1][i]);
            let x = a.ends::<A>(first + i, both.0, flushed, format);
            let y = b.ends::<A>(first + i, both.1, flushed, format);
            *r = element(x, y, both);
        }
    });
    Some(Radii::new(each))
}

/// The radii of a `select` whose choices are all decided, between values without limits. `None`: they are found elsewhere.
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
    let sides = sides(case, radii, from);
    let square = opcode == Opcode::Multiply && case.args[0].from == case.args[1].from;
    let settled = Settled::new(case, to, mode, square);
    let flushed = allowed.flush_denormals && flushes(opcode);
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
                        return Ends { low: 0.0, high: 0.0, exact: true, unknown: false };
                    };
                    side.ends::<A>(first + i, xs[k][i], flushed, from)
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
    a: Ends,
    b: Ends,
    settled: &Settled,
    mode: Mode,
    flushed: bool,
    format: Format,
) -> (f64, Limits) {
    const UNKNOWN: (f64, Limits) = (f64::INFINITY, Limits::NONE);
    let mut a = a;
    if mode == Mode::Hard
        && v.is_infinite()
        && matches!(opcode, Opcode::Exponential | Opcode::ExponentialMinusOne)
        && a.low.is_finite()
        && a.high.is_finite()
    {
        // Where it overflows at an exact operand, an implementation that is some units off may not.
        let (low, high) = (a.low - 4.0 * format.ulp(a.low), a.high + 4.0 * format.ulp(a.high));
        a = Ends { low, high: high.min(format.max), exact: false, ..a };
    }
    if a.exact && b.exact {
        let nothing = settled.is_exact() && !(flushed && v != 0.0 && v.abs() < format.min_normal());
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
        Opcode::Multiply if (a.is_infinite() || b.is_infinite()) && (a.holds_zero() || b.holds_zero()) => {
            UNKNOWN
        }
        Opcode::Add => hull(&[a.low + b.low, a.high + b.high]),
        Opcode::Subtract => hull(&[a.low - b.high, a.high - b.low]),
        Opcode::Multiply => hull(&[a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high]),
        // The pole is at 0.
        Opcode::Divide if !b.exact && b.holds_zero() => UNKNOWN,
        Opcode::Divide => hull(&[a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high]),
        Opcode::Maximum => hull(&[larger(a.low, b.low), larger(a.high, b.high)]),
        Opcode::Minimum => hull(&[-larger(-a.low, -b.low), -larger(-a.high, -b.high)]),
        Opcode::Negate => hull(&[-a.low, -a.high]),
        Opcode::Abs if a.low <= 0.0 && a.high >= 0.0 => hull(&[a.low.abs(), a.high.abs(), 0.0]),
        Opcode::Abs => hull(&[a.low.abs(), a.high.abs()]),
        // Zeros of both signs have infinities of both.
        Opcode::Rsqrt if a.low <= 0.0 => UNKNOWN,
        Opcode::Convert => hull(&[a.low, a.high]),
        _ => hull(&[R::function(opcode, a.low), R::function(opcode, a.high)]),
    }
}
