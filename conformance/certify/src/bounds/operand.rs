//! The intervals of an instruction's operands, element by element.
//!
//! **Invariant:** with denormal numbers flushed, the interval of an operand of arithmetic that may be
//! denormal holds zero.

use hlo::{BufferOf, ElementType, with_buffer};
use hlo_execution::element::Number;
use hlo_execution::format::{Format, rounded};
use hlo_interp::Tensor;

use super::Radii;
use super::elementwise::flushes;
use super::interval::Interval;
use super::number::{Numbers, tensor};
use super::rules::{Arg, Case};

/// The magnitude from which on f64 does not hold every integer: 2^53.
pub(super) const LEAST_ROUNDED: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;

/// An operand, element by element: of a scalar always the same one.
pub(super) struct Operand<'a> {
    pub(super) tensor: &'a Tensor,
    pub(super) numbers: Numbers,
    /// Both ends of each element's interval.
    pub(super) low: Vec<f64>,
    pub(super) high: Vec<f64>,
    /// Nothing is known of an element.
    pub(super) unknown: Vec<bool>,
    pub(super) uncertain: bool,
}

impl Operand<'_> {
    pub(super) fn index(&self, i: usize) -> usize {
        if self.low.len() == 1 { 0 } else { i }
    }

    pub(super) fn at(&self, i: usize) -> f64 {
        self.numbers.re[self.index(i)]
    }

    pub(super) fn low(&self, i: usize) -> f64 {
        self.low[self.index(i)]
    }

    pub(super) fn high(&self, i: usize) -> f64 {
        self.high[self.index(i)]
    }

    /// At most how far it is off.
    pub(super) fn moves_by(&self, i: usize) -> f64 {
        let (low, high) = (self.low(i), self.high(i));
        // An infinity or a NaN that is known is not off.
        let known = low == high || low.is_nan() && high.is_nan();
        if known { 0.0 } else { (high - self.at(i)).max(self.at(i) - low) }
    }

    pub(super) fn interval(&self, i: usize) -> Interval {
        let i = self.index(i);
        Interval { low: self.low[i], high: self.high[i], unknown: self.unknown[i] }
    }

    pub(super) fn is_exact(&self, i: usize) -> bool {
        self.interval(i).is_exact(self.at(i))
    }

    pub(super) fn holds(&self, i: usize, x: f64) -> bool {
        self.interval(i).holds(x)
    }

    /// The tensor of the lower or higher ends.
    pub(super) fn end(&self, high: bool) -> Tensor {
        let (ends, whole): (&[f64], fn(f64) -> f64) =
            if high { (&self.high, f64::floor) } else { (&self.low, f64::ceil) };
        if !self.uncertain {
            return self.tensor.clone();
        }
        if Format::of(self.tensor.element_type()).is_some() {
            return self.replaced(ends);
        }
        self.replaced(&ends.iter().map(|&x| whole(x)).collect::<Vec<f64>>())
    }

    pub(super) fn has_unknown(&self) -> bool {
        self.unknown.contains(&true)
    }

    /// 1 for elements of which nothing is known.
    pub(super) fn unknown_flags(&self) -> Vec<f64> {
        self.unknown.iter().map(|&u| f64::from(u8::from(u))).collect()
    }

    /// The least, or the greatest, of what a comparison that flushes treats as zero, in f64; where there is
    /// nothing else 0.
    pub(super) fn taken_for_zero(&self, high: bool) -> Tensor {
        let format = Format::of(self.tensor.element_type());
        let end = |i: usize| {
            format.and_then(|f| self.interval(i).taken_for_zero(f)).map_or(0.0, |e| e[usize::from(high)])
        };
        let ends: Vec<f64> = (0..self.tensor.len()).map(end).collect();
        tensor(ElementType::F64, self.tensor.dims(), &ends)
    }

    /// Whether a comparison that flushes treats anything but zeros as zero.
    pub(super) fn has_taken_for_zero(&self) -> bool {
        Format::of(self.tensor.element_type()).is_some_and(|f| {
            let of = |i: usize| self.interval(i).taken_for_zero(f);
            self.uncertain && (0..self.tensor.len()).any(|i| of(i).is_some_and(|ends| ends != [0.0; 2]))
        })
    }

    /// The tensor with numbers in place of its uncertain elements.
    pub(super) fn replaced(&self, numbers: &[f64]) -> Tensor {
        let keep = |i: usize| self.is_exact(i);
        let buffer = with_buffer!(self.tensor.buffer(), v => {
            let each = v.iter().zip(numbers).enumerate();
            let new = each.map(|(i, (&x, &to))| if keep(i) { x } else { Number::from_parts(to, 0.0) });
            BufferOf::wrap(new.collect())
        });
        Tensor::new(self.tensor.dims(), buffer)
    }
}

/// The intervals of an operand of an instruction.
pub(super) fn operand<'a>(case: &Case<'_>, arg: &Arg<'a>, radii: &Radii) -> Operand<'a> {
    let tensor = arg.tensor;
    let ty = tensor.element_type();
    let numbers = Numbers::of(tensor);
    let n = numbers.len();
    let format = Format::of(ty);
    let allowed = &case.settings.allowances;
    let (mut low, mut high) = (numbers.re.clone(), numbers.re.clone());
    let mut unknown = vec![false; n];
    let mut uncertain = false;
    let wide = case.reads_unrounded(arg);
    for i in 0..n {
        let (x, r) = (numbers.re[i], radii.at(i));
        let mut interval = Interval::exactly(x);
        if r > 0.0 {
            uncertain = true;
            interval = if ty == ElementType::Pred {
                Interval { low: 0.0, high: 1.0, unknown: false }
            } else {
                Interval::around(x, r, radii.limits(i), wide)
            };
            if format.is_none() && !interval.unknown && interval.high.max(-interval.low) >= LEAST_ROUNDED {
                interval = interval.wider();
            }
        }
        if let Some(format) = format
            && allowed.flush_denormals
            && flushes(case.opcode(), ty)
            && interval.flushes(x, format)
        {
            uncertain = true;
            interval = interval.flushed(case.opcode(), format);
        }
        (low[i], high[i], unknown[i]) = (interval.low, interval.high, interval.unknown);
    }
    if let Some(format) = format
        && uncertain
    {
        let (l, h) = (rounded(ty, &low), rounded(ty, &high));
        for i in 0..n {
            if low[i] < high[i] {
                let interval = Interval { low: low[i], high: high[i], unknown: unknown[i] };
                // A zero stays one in a type that has none: it is that of a wider type.
                let end = |x: f64, rounded: f64| if x == 0.0 { x } else { rounded };
                let ends = [end(low[i], l[i]), end(high[i], h[i])];
                let interval = interval.rounded(ends, radii.limits(i), wide, format);
                (low[i], high[i], unknown[i]) = (interval.low, interval.high, interval.unknown);
            }
        }
    }
    Operand { tensor, numbers, low, high, unknown, uncertain }
}
