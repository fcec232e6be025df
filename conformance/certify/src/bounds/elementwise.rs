//! Elementwise operations on real numbers, integers and predicates.
//!
//! Most are monotone in each operand, so the extremes over a box of operands are at its corners: the same
//! instruction runs on the ends of the operands' intervals, in the operands' own types. An engine's operand
//! is a number of its type, so the ends are rounded to nearest, which is monotone: what is in the interval is
//! between the rounded ends. The reference rounds correctly, so its results at the corners are the correctly
//! rounded extremes, and an engine is within the opcode's ulps of something between them. Where that interval
//! is not symmetric around the reference's value, and wide, its ends are kept as [`Limits`].

use hlo::{ElementType, Opcode, TypeClass};
use hlo_arithmetic::scalar::Elementary;
use hlo_execution::format::{Format, has_infinities, power_of_two, rounded};
use hlo_interp::{Tensor, Value};

use super::comparison::Comparison;
use super::interval::Interval;
use super::limits::{Limits, beyond};
use super::number::Numbers;
use super::operand::{LEAST_ROUNDED, Operand, operand};
use super::probe::Probe;
use super::rules::{Case, Found, Mode};
use super::{Radii, plain};

/// Elementwise bounds of what has no complex numbers.
pub(super) fn bounds(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Found {
    let [result] = case.results[..] else { return None };
    let n = result.len();
    if case.args.iter().any(|a| a.tensor.len() != n && a.tensor.len() != 1) {
        return None;
    }
    let found = match case.opcode() {
        Opcode::Select => select(case, radii, mode)?,
        Opcode::Compare => compare(case, radii, mode)?,
        Opcode::Remainder if result.element_type().is_float() => remainder(case, radii, mode)?,
        Opcode::Real if case.args[0].tensor.element_type() == result.element_type() => radii[0].clone(),
        Opcode::IsFinite => {
            let r = |i: usize| if radii[0].at(i).is_finite() { 0.0 } else { f64::INFINITY };
            Radii::new((0..n).map(r).collect())
        }
        _ => match plain::bounds(case, radii, mode) {
            Some(radii) => radii,
            None => Corners::new(case, radii, mode).bounds()?,
        },
    };
    Some(vec![found])
}

/// The operands' intervals.
struct Corners<'a> {
    case: &'a Case<'a>,
    mode: Mode,
    operands: Vec<Operand<'a>>,
    result: &'a Tensor,
    value: Numbers,
}

/// Whether denormal operands, of this type, and results may be flushed.
pub(super) fn flushes(opcode: Opcode, operand: ElementType) -> bool {
    match opcode {
        Opcode::Negate
        | Opcode::Abs
        | Opcode::Real
        | Opcode::Imag
        | Opcode::Complex
        | Opcode::Not
        | Opcode::Copy => false,
        // The exponent goes into the other type as it is, without arithmetic.
        Opcode::Convert => operand != ElementType::F8E8M0FNU,
        _ => true,
    }
}

/// How radii are found from the extremes of an elementwise function of floats.
pub(super) struct Settled {
    opcode: Opcode,
    ty: ElementType,
    format: Format,
    ulps: f64,
    mode: Mode,
    /// The least and the greatest value, where infinities are not counted.
    finite_ends: Option<[f64; 2]>,
    flushed: bool,
    /// It is the product of a value with itself.
    square: bool,
}

impl Settled {
    pub(super) fn new(case: &Case<'_>, format: Format, mode: Mode, square: bool) -> Settled {
        let (opcode, ty) = (case.opcode(), case.results[0].element_type());
        let operand = case.args.first().map_or(ty, |a| a.tensor.element_type());
        let flushed = case.settings.allowances.flush_denormals && flushes(opcode, operand);
        let finite = mode == Mode::Soft || format.saturates;
        let finite_ends = finite.then(|| finite_ends(opcode, format));
        Settled { opcode, ty, format, ulps: case.ulps(ty), mode, finite_ends, flushed, square }
    }

    /// Whether the function of exact operands is exact, but for what is flushed.
    pub(super) fn is_exact(&self) -> bool {
        self.ulps == 0.0
    }

    /// What an element of value `v` may be off by, and its limits, where the function is between two ends;
    /// `agrees`: at all corners it is `v`; `nan`: at some it is a NaN.
    pub(super) fn radius(
        &self,
        v: f64,
        [mut low, mut high]: [f64; 2],
        exact: bool,
        agrees: bool,
        nan: bool,
    ) -> (f64, Limits) {
        const UNKNOWN: (f64, Limits) = (f64::INFINITY, Limits::NONE);
        let only = |radius: f64| (radius, Limits::NONE);
        let (format, n) = (self.format, self.ulps);
        if v.is_nan() || v.is_infinite() && (self.mode == Mode::Soft || agrees) {
            return if self.mode == Mode::Soft || agrees { only(0.0) } else { UNKNOWN };
        }
        if !exact && nan {
            return UNKNOWN;
        }
        if let Some([least, greatest]) = self.finite_ends {
            low = low.max(least);
            high = high.min(greatest);
        }
        if self.flushed {
            let least = format.flushes_below();
            if v != 0.0 && low < least && high > -least {
                if !format.has_zero() {
                    // A zero becomes a NaN.
                    return UNKNOWN;
                }
                low = low.min(0.0);
                high = high.max(0.0);
            }
        }
        let larger = low.abs().max(high.abs());
        if !larger.is_finite() || !v.is_finite() {
            return (f64::INFINITY, self.limits(low, high));
        }
        let widening = if n > 0.0 { n * format.ulp(larger + n * format.ulp(larger)) } else { 0.0 };
        if self.mode == Mode::Hard && !format.saturates && larger + widening > format.max {
            return (f64::INFINITY, self.limits(low, high));
        }
        let apart = (high - v).max(v - low);
        let apart = if apart > 0.0 { apart.next_up() } else { 0.0 };
        let r = if widening > 0.0 { (apart + widening).next_up() } else { apart };
        if exact {
            return only(r);
        }
        let r = if r == 0.0 && v == 0.0 && !agrees { format.min_positive() } else { r };
        // Limits that say nothing are not worth working out.
        if r <= v.abs() / 64.0 { only(r) } else { self.limits(low, high).narrow(v, r) }
    }

    fn limits(&self, low: f64, high: f64) -> Limits {
        let (format, n) = (self.format, self.ulps);
        let (mut least, mut most) = (beyond(low, n, format, -1.0), beyond(high, n, format, 1.0));
        if least.abs().max(most.abs()) > format.max && !has_infinities(self.ty) {
            return Limits::NONE;
        }
        if least < -format.max {
            least = f64::NEG_INFINITY;
        }
        if most > format.max {
            most = f64::INFINITY;
        }
        // An error in units in the last place does not make such a function negative.
        let positive = low >= 0.0 && low.is_sign_positive() && is_nonnegative(self.opcode);
        if self.square || least < 0.0 && positive {
            least = least.max(0.0);
        }
        Limits::new(least, most)
    }
}

/// The least and the greatest finite value of a function: of one with a pole what it is at the nearest number
/// to it. An operand that need not be rounded to its type is one of f32.
fn finite_ends(opcode: Opcode, format: Format) -> [f64; 2] {
    const F32_MIN_POSITIVE_EXPONENT: i32 = -149;
    let Format { max, precision, .. } = format;
    let narrow = precision < 24;
    let least = if narrow { power_of_two(F32_MIN_POSITIVE_EXPONENT) } else { format.min_positive() };
    let below_one = power_of_two(if narrow { -24 } else { -precision });
    match opcode {
        _ if format.saturates => [-max, max],
        Opcode::Log => [Elementary::log(least), max],
        Opcode::LogPlusOne => [Elementary::log(below_one), max],
        Opcode::Rsqrt => [-max, (1.0 / least.sqrt()).min(max)],
        Opcode::Atanh => {
            let end = Elementary::log(2.0 / below_one) / 2.0;
            [-end, end]
        }
        _ => [-max, max],
    }
}

/// The least and the greatest number of an integer type that a count of its bits is. The counts of all bits
/// of s1 and s2 are beyond their greatest number, and wrap around.
fn counts_of_bits(ty: ElementType) -> (f64, f64) {
    let bits = ty.bits() as i32;
    let greatest = power_of_two(if ty.is_signed_integer() { bits - 1 } else { bits }) - 1.0;
    match f64::from(bits) {
        all if all > greatest => (all - power_of_two(bits), greatest),
        all => (0.0, all),
    }
}

/// Functions that are no less than 0 wherever they are a number.
fn is_nonnegative(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Exponential | Opcode::Logistic | Opcode::Sqrt | Opcode::Rsqrt | Opcode::Cosh | Opcode::Abs
    )
}

/// Step functions: soft radii do not account for the distance of a step.
pub(super) fn steps(opcode: Opcode, to: ElementType) -> bool {
    match opcode {
        Opcode::Ceil | Opcode::Floor | Opcode::RoundNearestAfz | Opcode::RoundNearestEven | Opcode::Sign => {
            true
        }
        Opcode::Convert | Opcode::StochasticConvert => Format::of(to).is_none(),
        _ => false,
    }
}

impl<'a> Corners<'a> {
    fn new(case: &'a Case<'a>, radii: &[Radii], mode: Mode) -> Corners<'a> {
        let result = case.results[0];
        let value = Numbers::of(result);
        let args = case.args.iter().zip(radii);
        let mut operands: Vec<Operand<'a>> = args.map(|(arg, radii)| operand(case, arg, radii)).collect();
        if mode == Mode::Hard {
            nudge(case.opcode(), &mut operands, &value);
        }
        Corners { case, mode, operands, result, value }
    }

    fn bounds(&self) -> Option<Radii> {
        let opcode = self.case.opcode();
        let ty = self.result.element_type();
        // Whether a denormal number is flushed decides what floats step to, not what integers are.
        let flushes = self.case.settings.allowances.flush_denormals && Format::of(ty).is_some();
        if self.mode == Mode::Soft && steps(opcode, ty) && !flushes {
            let soft = |i: usize| if self.unknown(i) { f64::INFINITY } else { self.whole_steps(i) };
            return Some(Radii::new((0..self.value.len()).map(soft).collect()));
        }
        let n = self.value.len();
        let mut hull = Hull::new(&self.value);
        if matches!(opcode, Opcode::Sine | Opcode::Cosine) {
            let format = Format::of(ty);
            for i in 0..n {
                let x = &self.operands[0];
                let r = x.moves_by(i);
                // What is negative is a NaN in a type of powers of two.
                if r > 0.0 && format.is_some_and(|f| !f.has_zero()) {
                    (hull.nan[i], hull.agrees[i]) = (true, false);
                }
                if r > 0.0 && r.is_finite() && self.value.re[i].is_finite() {
                    let slack = format.map_or(0.0, |f| f.ulp(1.0).min(f.ulp(self.value.re[i].abs() + r)));
                    hull.low[i] = (self.value.re[i] - r - slack).max(-1.0);
                    hull.high[i] = (self.value.re[i] + r + slack).min(1.0);
                }
            }
            hull.low = rounded(ty, &hull.low);
            hull.high = rounded(ty, &hull.high);
            hull.touched = true;
        } else if self.operands.iter().any(|x| x.uncertain) {
            self.corners(&mut hull)?;
            if matches!(opcode, Opcode::Maximum | Opcode::Minimum | Opcode::Clamp)
                && let Some(format) = Format::of(ty).filter(|_| flushes)
            {
                self.ties_of_flushed(&mut hull, format);
            }
        }
        let settled = Format::of(ty).map(|f| Settled::new(self.case, f, self.mode, self.is_square()));
        let settled = settled.as_ref();
        if !self.operands.iter().any(|x| x.uncertain) {
            return Some(Radii::new((0..n).map(|i| self.radius(i, &hull, settled).0).collect()));
        }
        let (each, limits) = (0..n)
            .map(|i| {
                let (radius, limits) = self.radius(i, &hull, settled);
                limits.narrow(self.value.re[i], radius)
            })
            .unzip();
        Some(Radii::limited(each, limits))
    }

    /// Whether both operands are the same value.
    fn is_square(&self) -> bool {
        let [a, b] = &self.case.args[..] else { return false };
        self.case.opcode() == Opcode::Multiply && a.from == b.from
    }

    fn unknown(&self, i: usize) -> bool {
        self.operands.iter().any(|x| x.unknown[x.index(i)])
    }

    /// Soft radius of a conversion to integers or a rounding to integral values: `floor(r)` of the
    /// operand's `r`, because less than 1 matters only if it changes how the fraction is rounded.
    fn whole_steps(&self, i: usize) -> f64 {
        let to = self.result.element_type();
        match (self.case.opcode(), &self.operands[..]) {
            (Opcode::Convert, [x])
                if to != ElementType::Pred && Format::of(x.tensor.element_type()).is_some() =>
            {
                x.moves_by(i).floor()
            }
            (Opcode::Ceil | Opcode::Floor | Opcode::RoundNearestAfz | Opcode::RoundNearestEven, [x]) => {
                x.moves_by(i).floor()
            }
            _ => 0.0,
        }
    }

    /// Runs the instruction at the corners of the box; and with an operand in the middle of its interval where
    /// the instruction is not monotone in it, or may overflow to NaN at both ends.
    fn corners(&self, hull: &mut Hull) -> Option<()> {
        let probe = Probe::on(self.case)?;
        let (opcode, ty) = (self.case.opcode(), self.result.element_type());
        let between = match Format::of(ty) {
            Some(format) if opcode == Opcode::Convert && !format.has_zero() => 1.0,
            Some(_) | None => 0f64,
        };
        let ends: Vec<[Tensor; 3]> = self
            .operands
            .iter()
            .map(|x| {
                let ends = x.low.iter().zip(&x.high);
                let middle: Vec<f64> = ends.map(|(&l, &h)| between.max(l).min(h)).collect();
                [x.end(false), x.end(true), if x.uncertain { x.replaced(&middle) } else { x.tensor.clone() }]
            })
            .collect();
        let uncertain: Vec<usize> = (0..ends.len()).filter(|&k| self.operands[k].uncertain).collect();
        let mut choices: Vec<Vec<usize>> = (0..1usize << uncertain.len())
            .map(|bits| {
                let mut choice = vec![0; ends.len()];
                uncertain.iter().enumerate().for_each(|(j, &k)| choice[k] = bits >> j & 1);
                choice
            })
            .collect();
        let not_monotone =
            matches!(opcode, Opcode::Abs | Opcode::Cosh | Opcode::Convert | Opcode::Sign | Opcode::Power);
        // What is too large to either side is a NaN in a type without infinities.
        let overflows_to_nan = ty.is_float() && !has_infinities(ty);
        let corners = choices.clone();
        for &k in uncertain.iter().filter(|&&k| overflows_to_nan || not_monotone && k == 0) {
            let edges = corners.iter().filter(|choice| choice[k] == 0);
            choices.extend(edges.map(|choice| {
                let mut middle = choice.clone();
                middle[k] = 2;
                middle
            }));
        }
        for choice in choices {
            let args = choice.iter().zip(&ends).map(|(&end, ends)| Value::Array(ends[end].clone()));
            let value = probe.run(self.case.settings, args.collect())?;
            hull.add(&Numbers::of(value.as_array()?));
        }
        hull.touched = true;
        Some(())
    }

    /// A comparison that flushes treats denormal numbers and zeros as equal, and what is selected is not
    /// flushed: any of them.
    fn ties_of_flushed(&self, hull: &mut Hull, format: Format) {
        for i in 0..self.value.len() {
            let of = |x: &Operand<'_>| x.interval(i).taken_for_zero(format);
            let result = Interval { low: hull.low[i], high: hull.high[i], unknown: false };
            if !result.holds_zeros(format) || self.operands.iter().filter_map(of).count() < 2 {
                continue;
            }
            for [low, high] in self.operands.iter().filter_map(of) {
                hull.agrees[i] &= low >= hull.low[i] && high <= hull.high[i];
                hull.low[i] = hull.low[i].min(low);
                hull.high[i] = hull.high[i].max(high);
            }
        }
    }

    /// What an element may be off by, and its limits; `settled` of floats.
    fn radius(&self, i: usize, hull: &Hull, settled: Option<&Settled>) -> (f64, Limits) {
        const UNKNOWN: (f64, Limits) = (f64::INFINITY, Limits::NONE);
        let only = |radius: f64| (radius, Limits::NONE);
        let opcode = self.case.opcode();
        let ty = self.result.element_type();
        let v = self.value.re[i];
        let exact = self.operands.iter().all(|x| x.is_exact(i));
        if !exact && self.mode == Mode::Hard && matches!(opcode, Opcode::Popcnt | Opcode::CountLeadingZeros) {
            let (low, high) = counts_of_bits(ty);
            return ((v - low).max(high - v), Limits::new(low, high));
        }
        if !exact && self.unknown(i) {
            return UNKNOWN;
        }
        let saturates = settled.is_some_and(|s| s.format.saturates);
        if !exact && (!self.applies(i, hull) || saturates && self.reaches_beyond_domain(i)) {
            // Angles are bounded: the cut or the origin is near.
            let ulp = Format::of(ty).map_or(0.0, |f| f.ulp(4.0));
            let bounded = opcode == Opcode::Atan2 && v.is_finite();
            return if bounded { only(v.abs() + 3.15 + 8.0 * ulp) } else { UNKNOWN };
        }
        let Some(settled) = settled else {
            // An integer or predicate.
            let most = hull.high[i].max(-hull.low[i]);
            return only(match exact {
                true => 0.0,
                // Integers that f64 does not hold may differ though it has one number for them.
                false if most >= LEAST_ROUNDED => {
                    (hull.high[i] - v).max(v - hull.low[i]) + 2.0 * f64::EPSILON * most
                }
                false => (hull.high[i] - v).max(v - hull.low[i]),
            });
        };
        let (low, high) = if exact { (v, v) } else { (hull.low[i], hull.high[i]) };
        // A zero within an interval has either sign, so a zero times it has.
        let signs = opcode == Opcode::Multiply
            && v == 0.0
            && self.operands.iter().any(|x| !x.is_exact(i) && x.holds(i, 0.0));
        settled.radius(v, [low, high], exact, exact || hull.agrees[i] && !signs, hull.nan[i])
    }

    /// Whether the corners tell the extremes over the box.
    fn applies(&self, i: usize, hull: &Hull) -> bool {
        let ty = self.result.element_type();
        let x = &self.operands[0];
        if self.operands.iter().any(|x| x.low(i).is_infinite() || x.high(i).is_infinite())
            && !self.applies_to_infinities(i)
        {
            return false;
        }
        let integer = matches!(ty.class(), TypeClass::Signed | TypeClass::Unsigned);
        match self.case.opcode() {
            Opcode::Divide => {
                let y = &self.operands[1];
                !integer && ty != ElementType::Pred && (y.is_exact(i) || !y.holds(i, 0.0))
            }
            Opcode::Power => !integer && ty != ElementType::Pred && self.power_applies(i),
            Opcode::Atan2 => {
                let (y, x) = (&self.operands[0], &self.operands[1]);
                x.low(i) > 0.0
                    || y.low(i) > 0.0
                    || y.high(i) < 0.0
                    || y.is_exact(i) && y.at(i) != 0.0
                    || y.is_exact(i) && x.high(i) < 0.0
            }
            // Zeros of both signs have infinities of both.
            Opcode::Rsqrt => x.is_exact(i) || x.low(i) > 0.0,
            // Both corners may be beyond a domain that lies between them.
            Opcode::Acos | Opcode::Asin | Opcode::Atanh => !(x.low(i) < -1.0 && x.high(i) > 1.0),
            // One branch of the tangent: it rises.
            Opcode::Tan => x.high(i) - x.low(i) < 3.0 && hull.rises[i],
            Opcode::Add | Opcode::Subtract | Opcode::Multiply if integer => self.stays_in_range(i),
            Opcode::Add | Opcode::Subtract if ty == ElementType::Pred => false,
            Opcode::And | Opcode::Or => ty == ElementType::Pred,
            Opcode::CountLeadingZeros
            | Opcode::Popcnt
            | Opcode::Mulhi
            | Opcode::ShiftLeft
            | Opcode::ShiftRightArithmetic
            | Opcode::ShiftRightLogical
            | Opcode::StochasticConvert
            | Opcode::Remainder
            | Opcode::Xor => false,
            Opcode::Negate | Opcode::Abs if integer => self.stays_in_range(i),
            Opcode::Convert if integer && Format::of(x.tensor.element_type()).is_none() => {
                self.stays_in_range(i)
            }
            _ => true,
        }
    }

    /// Whether a part of the interval, and not all of it, is where the function is a NaN. A type without NaN
    /// has -0 there, which does not tell that a corner is beyond the domain.
    fn reaches_beyond_domain(&self, i: usize) -> bool {
        let (low, high) = match self.case.opcode() {
            Opcode::Acos | Opcode::Asin | Opcode::Atanh => (-1.0, 1.0),
            Opcode::Acosh => (1.0, f64::INFINITY),
            Opcode::Log | Opcode::Sqrt => (0.0, f64::INFINITY),
            Opcode::LogPlusOne => (-1.0, f64::INFINITY),
            _ => return false,
        };
        let x = &self.operands[0];
        let inside = x.low(i) >= low && x.high(i) <= high;
        let outside = x.high(i) < low || x.low(i) > high;
        !inside && !outside
    }

    /// The same of operands that may be infinite: the corners have all NaNs that there are.
    fn applies_to_infinities(&self, i: usize) -> bool {
        match self.case.opcode() {
            // Zero times infinity: within the box perhaps, and at none of its corners.
            Opcode::Multiply => self.operands.iter().all(|x| !x.holds(i, 0.0)),
            Opcode::Add
            | Opcode::Subtract
            | Opcode::Divide
            | Opcode::Maximum
            | Opcode::Minimum
            | Opcode::Clamp
            | Opcode::Negate
            | Opcode::Abs
            | Opcode::Exponential
            | Opcode::ExponentialMinusOne
            | Opcode::Log
            | Opcode::LogPlusOne
            | Opcode::Logistic
            | Opcode::Tanh
            | Opcode::Erf
            | Opcode::Sqrt
            | Opcode::Rsqrt
            | Opcode::Cbrt
            | Opcode::Sign
            | Opcode::Floor
            | Opcode::Ceil => true,
            Opcode::Convert => Format::of(self.result.element_type()).is_some(),
            _ => false,
        }
    }

    fn power_applies(&self, i: usize) -> bool {
        let (x, y) = (&self.operands[0], &self.operands[1]);
        if x.low(i) > 0.0 {
            return true;
        }
        if x.is_exact(i) {
            // Not a base of 0 or less to an uncertain power, but 0 to a positive one.
            return y.is_exact(i) || x.at(i) == 0.0 && y.low(i) > 0.0;
        }
        let exponent = y.at(i);
        y.is_exact(i)
            && (exponent > 0.0 && (x.low(i) >= 0.0 || exponent.fract() == 0.0)
                || exponent == 0.0
                || x.high(i) < 0.0 && exponent.fract() == 0.0)
    }

    /// Whether an integer operation does not wrap over the box.
    fn stays_in_range(&self, i: usize) -> bool {
        let ty = self.result.element_type();
        let bits = ty.bits() as i32;
        let (least, greatest) = if ty.is_signed_integer() {
            (-power_of_two(bits - 1), power_of_two(bits - 1) - 1.0)
        } else {
            (0.0, power_of_two(bits) - 1.0)
        };
        let x = &self.operands[0];
        let ends = |x: &Operand<'_>| [x.low(i), x.high(i)];
        let all: Vec<f64> = match (self.case.opcode(), self.operands.get(1)) {
            (Opcode::Add, Some(y)) => ends(x).iter().flat_map(|a| ends(y).map(|b| a + b)).collect(),
            (Opcode::Subtract, Some(y)) => ends(x).iter().flat_map(|a| ends(y).map(|b| a - b)).collect(),
            (Opcode::Multiply, Some(y)) => ends(x).iter().flat_map(|a| ends(y).map(|b| a * b)).collect(),
            (Opcode::Negate, _) => ends(x).map(|a| -a).to_vec(),
            (Opcode::Abs, _) => ends(x).map(f64::abs).to_vec(),
            (_, _) => ends(x).to_vec(),
        };
        // Numbers beyond 2^53 are rounded here.
        all.iter().all(|&v| v >= least && v <= greatest && v.abs() < 9e15)
    }
}

/// Where a function overflows at exact operands an implementation that is some ulps off may not: certain are
/// only operands some ulps beyond.
fn nudge(opcode: Opcode, operands: &mut [Operand<'_>], value: &Numbers) {
    let overflows = matches!(
        opcode,
        Opcode::Exponential | Opcode::ExponentialMinusOne | Opcode::Sinh | Opcode::Cosh | Opcode::Power
    );
    if !overflows || operands.iter().any(|x| x.numbers.re.contains(&0.0)) && opcode == Opcode::Power {
        return;
    }
    for (i, v) in value.re.iter().enumerate() {
        if !v.is_infinite() {
            continue;
        }
        for x in operands.iter_mut() {
            let Some(format) = Format::of(x.tensor.element_type()) else { continue };
            let k = x.index(i);
            let at = x.numbers.re[k];
            if at.is_finite() && at.abs() + 4.0 * format.ulp(at) < format.max {
                x.low[k] = x.low[k].min(at - 4.0 * format.ulp(at));
                x.high[k] = x.high[k].max(at + 4.0 * format.ulp(at));
                x.uncertain = true;
            }
        }
    }
}

/// The least and greatest results so far.
struct Hull {
    low: Vec<f64>,
    high: Vec<f64>,
    nan: Vec<bool>,
    /// All have the same value, to the sign of zero, or all are NaN.
    agrees: Vec<bool>,
    /// The second corner is not below the first.
    rises: Vec<bool>,
    first: Option<Vec<f64>>,
    value: Vec<f64>,
    touched: bool,
}

impl Hull {
    fn new(value: &Numbers) -> Hull {
        let n = value.len();
        Hull {
            low: value.re.clone(),
            high: value.re.clone(),
            nan: vec![false; n],
            agrees: vec![true; n],
            rises: vec![true; n],
            first: None,
            value: value.re.clone(),
            touched: false,
        }
    }

    fn add(&mut self, corner: &Numbers) {
        for (i, &x) in corner.re.iter().enumerate() {
            let v = self.value[i];
            self.nan[i] |= x.is_nan();
            self.agrees[i] &=
                x.is_nan() && v.is_nan() || x == v && x.is_sign_negative() == v.is_sign_negative();
            // Of zeros the one of the outer sign.
            if x < self.low[i] || x == self.low[i] && x.is_sign_negative() {
                self.low[i] = x;
            }
            if x > self.high[i] || x == self.high[i] && x.is_sign_positive() {
                self.high[i] = x;
            }
            if let Some(first) = &self.first {
                self.rises[i] &= first[i] <= x;
            }
        }
        if self.first.is_none() {
            self.first = Some(corner.re.clone());
        }
    }
}

/// `select`: the chosen one; if the choice may be another, either.
fn select(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Option<Radii> {
    let [p, a, b] = &case.args[..] else { return None };
    if let Some(found) = plain::selected(case, radii) {
        return Some(found);
    }
    let v = Numbers::of(case.results[0]);
    let n = v.len();
    let scalar = |t: &Tensor, i: usize| if t.len() == 1 { 0 } else { i };
    let chosen = Numbers::of(p.tensor);
    let uncertain = mode == Mode::Hard && !radii[0].is_zero();
    let (x, y) = (Numbers::of(a.tensor), Numbers::of(b.tensor));
    let format = Format::of(v.ty);
    let each = |i: usize| {
        let (ip, ia, ib) = (scalar(p.tensor, i), scalar(a.tensor, i), scalar(b.tensor, i));
        let (ra, rb) = (radii[1].at(ia), radii[2].at(ib));
        let r = if chosen.re[ip] != 0.0 { ra } else { rb };
        if !uncertain || radii[0].at(ip) == 0.0 {
            return r;
        }
        let (va, vb) = (x.at(ia), y.at(ib));
        // `max` would pass over a NaN: a number against a NaN is infinitely far.
        let part = |a: f64, b: f64| match (a - b).abs() {
            _ if a == b || a.is_nan() && b.is_nan() => 0.0,
            d if d.is_nan() => f64::INFINITY,
            d => d,
        };
        let apart = part(va.0, vb.0).max(part(va.1, vb.1));
        match apart {
            _ if format.is_none() && apart > 9e15 => f64::INFINITY,
            0.0 if va.0.is_sign_negative() == vb.0.is_sign_negative()
                && va.1.is_sign_negative() == vb.1.is_sign_negative() =>
            {
                ra.max(rb)
            }
            0.0 => ra.max(rb).max(format.map_or(0.0, Format::min_positive)),
            _ => (apart + ra.max(rb)).next_up(),
        }
    };
    let is_open = |ip: usize| uncertain && radii[0].at(ip) != 0.0;
    let opens = (0..p.tensor.len()).any(is_open);
    if v.im.is_some() || !opens && !radii.iter().any(Radii::has_limits) {
        return Some(Radii::new((0..n).map(each).collect()));
    }
    let limits = |i: usize| {
        let (ip, ia, ib) = (scalar(p.tensor, i), scalar(a.tensor, i), scalar(b.tensor, i));
        let (yes, no) = (chosen.re[ip] != 0.0, chosen.re[ip] == 0.0);
        let open = is_open(ip);
        let of = |x: f64, radii: &Radii, i: usize| within(x, radii.at(i), radii.limits(i));
        let (x, y) = (of(x.re[ia], &radii[1], ia), of(y.re[ib], &radii[2], ib));
        match (x, y) {
            (Some(x), _) if yes && !open => x,
            (_, Some(y)) if no && !open => y,
            (Some(x), Some(y)) if open => {
                // Of two that are known, one of both.
                let either = match x.low == x.high && y.low == y.high {
                    true => Limits::either(x.low, y.low),
                    false => Limits::NONE,
                };
                let hull = Limits::new(x.low.min(y.low), x.high.max(y.high));
                if either.is_none() { hull } else { either }
            }
            (_, _) => Limits::NONE,
        }
    };
    let (each, limits) = (0..n).map(|i| limits(i).narrow(v.re[i], each(i))).unzip();
    Some(Radii::limited(each, limits))
}

/// The interval of an element as limits; `None`: it may be a NaN.
pub(super) fn within(x: f64, radius: f64, limits: Limits) -> Option<Limits> {
    if x.is_nan() || radius.is_infinite() && limits.is_none() {
        return None;
    }
    let around = match x {
        _ if radius.is_infinite() || radius > 0.0 && x.is_infinite() => Limits::NONE,
        _ if radius == 0.0 => Limits::new(x, x),
        x => Limits::new((x - radius).next_down(), (x + radius).next_up()),
    };
    Some(Limits::new(around.low.max(limits.low.min(x)), around.high.min(limits.high.max(x))))
}

/// `compare`: decided where the intervals do not meet.
fn compare(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Option<Radii> {
    let [a, b] = &case.args[..] else { return None };
    if mode == Mode::Soft && !case.settings.allowances.flush_denormals {
        let unknown = |i: usize, t: &Tensor, r: &Radii| r.at(if t.len() == 1 { 0 } else { i }).is_infinite();
        let each = (0..case.results[0].len()).map(|i| {
            if unknown(i, a.tensor, &radii[0]) || unknown(i, b.tensor, &radii[1]) {
                f64::INFINITY
            } else {
                0.0
            }
        });
        return Some(Radii::new(each.collect()));
    }
    if let Some(found) = plain::compared(case, radii) {
        return Some(found);
    }
    let comparison = Comparison::of(case)?;
    let (x, y) = (operand(case, a, &radii[0]), operand(case, b, &radii[1]));
    // Numbers that an f64 does not hold are near to each other.
    let coarse = |t: &Tensor| matches!(t.element_type(), ElementType::S64 | ElementType::U64);
    let slack = if coarse(a.tensor) || coarse(b.tensor) { 4096.0 } else { 0.0 };
    let of = |o: &Operand<'_>, i: usize| (o.interval(i), o.at(i));
    let each = (0..case.results[0].len()).map(|i| comparison.radius(of(&x, i), of(&y, i), slack));
    Some(Radii::new(each.collect()))
}

/// `remainder` of floats: `x - trunc(x / y) * y`, if the quotient is decided.
fn remainder(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Option<Radii> {
    let [a, b] = &case.args[..] else { return None };
    let (x, y) = (operand(case, a, &radii[0]), operand(case, b, &radii[1]));
    let v = Numbers::of(case.results[0]);
    let format = Format::of(v.ty)?;
    let each = (0..v.len()).map(|i| {
        if x.is_exact(i) && y.is_exact(i) {
            return 0.0;
        }
        let infinite = [&x, &y].iter().any(|o| o.low(i).is_infinite() || o.high(i).is_infinite());
        let unknown = x.unknown[x.index(i)] || y.unknown[y.index(i)] || infinite;
        if unknown || !v.re[i].is_finite() || y.holds(i, 0.0) {
            return f64::INFINITY;
        }
        let off = |o: &Operand<'_>| {
            if o.is_exact(i) { 0.0 } else { (o.high(i) - o.at(i)).max(o.at(i) - o.low(i)) }
        };
        let (rx, ry) = (off(&x), off(&y));
        let quotients = [x.low(i), x.high(i)].map(|x| [x / y.low(i), x / y.high(i)]);
        let quotients = quotients.as_flattened();
        let least = quotients.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = quotients.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let near = 4.0 * f64::EPSILON * greatest.abs().max(least.abs());
        let decided =
            (least - near).trunc() == (greatest + near).trunc() && greatest.abs().max(least.abs()) < 1e15;
        let q = (x.at(i) / y.at(i)).abs() + 1.0;
        let steady = rx + q * ry;
        let steady = (steady + format.ulp(v.re[i].abs() + steady)).next_up();
        if decided || mode == Mode::Soft {
            steady
        } else {
            // It keeps the sign of x and stays below y.
            (v.re[i].abs() + y.low(i).abs().max(y.high(i).abs())).next_up()
        }
    });
    Some(Radii::new(each.collect()))
}
