//! Numbers with errors, and what roundings add to these.

use hlo::ElementType;
use hlo_execution::format::Format;

use crate::{UNKNOWN, gamma};

/// What rounding does to a number, besides rounding an exact zero to itself.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    /// Of a number.
    pub relative: f64,
    /// Of what is too small to be normal.
    pub absolute: f64,
}

impl Unit {
    /// Nothing.
    pub const NONE: Unit = Unit { relative: 0.0, absolute: 0.0 };

    /// Steps in a type; those of complex numbers are several. `flush`: denormal numbers may be zeros.
    pub fn of(ty: ElementType, flush: bool) -> Option<Unit> {
        let format = Format::of(ty)?;
        let times = if ty.is_complex() { 4.0 } else { 1.0 };
        let absolute = if flush { 2.0 * format.flushes_below() } else { format.min_positive() };
        Some(Unit { relative: format.unit_roundoff() * times, absolute: absolute * times })
    }

    /// So many times as much.
    pub fn times(self, n: f64) -> Unit {
        Unit { relative: self.relative * n, absolute: self.absolute * n }
    }

    /// What an element of an operand is off by in effect, relatively, where chains of `n` terms and what
    /// comes after them round.
    pub fn backward(self, n: usize) -> f64 {
        gamma(n as f64 + 3.0, self.relative)
    }

    /// The part of it that comes of numbers too small to be normal.
    pub fn small(self, n: usize) -> f64 {
        self.absolute * (n as f64 + 3.0)
    }

    /// So many roundings one after the other.
    pub fn steps(self, n: f64) -> Unit {
        Unit { relative: gamma(n, self.relative), absolute: self.absolute * n }
    }
}

/// A number of at most the magnitude `size`, with the absolute error `off`; arithmetic rounds.
#[derive(Clone, Copy, Debug)]
pub struct Ball {
    /// Its magnitude, at most.
    pub size: f64,
    /// Its error, at most.
    pub off: f64,
}

impl Ball {
    /// A number with an error.
    pub fn new(size: f64, off: f64) -> Ball {
        Ball { size: size.abs(), off }
    }

    /// After a rounding.
    pub fn rounded(self, unit: Unit) -> Ball {
        let off = self.off + unit.relative * (self.size + self.off) + unit.absolute;
        Ball { size: self.size, off: off * (1.0 + 4.0 * f64::EPSILON) }
    }

    /// The rounded sum.
    pub fn plus(self, other: Ball, unit: Unit) -> Ball {
        Ball { size: self.size + other.size, off: self.off + other.off }.rounded(unit)
    }

    /// The rounded product.
    pub fn times(self, other: Ball, unit: Unit) -> Ball {
        let off = self.size * other.off + other.size * self.off + self.off * other.off;
        Ball { size: self.size * other.size, off: if off.is_nan() { UNKNOWN } else { off } }.rounded(unit)
    }
}

/// Balls in two arrays, so that sums of their products are loops over contiguous numbers.
#[derive(Clone, Debug)]
pub struct Row {
    /// Their magnitudes.
    pub size: Vec<f64>,
    /// Their errors.
    pub off: Vec<f64>,
}

/// Balls next to one another.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Their magnitudes.
    pub size: &'a [f64],
    /// Their errors.
    pub off: &'a [f64],
}

/// Sums that are computed side by side.
const LANES: usize = 8;

impl Row {
    /// Exact zeros.
    pub fn zeros(n: usize) -> Row {
        Row { size: vec![0.0; n], off: vec![0.0; n] }
    }

    /// Some of them.
    pub fn part(&self, from: usize, n: usize) -> Part<'_> {
        Part { size: &self.size[from..from + n], off: &self.off[from..from + n] }
    }
}

impl Part<'_> {
    /// The sum of the products of pairs. What rounding makes of it here is added, as the whole depends on the
    /// order in no other way.
    pub fn times(self, other: Part<'_>) -> Ball {
        let n = self.size.len().min(other.size.len());
        let (mut size, mut off) = ([0.0; LANES], [0.0; LANES]);
        let mut add = |lane: usize, k: usize| {
            let (a, x, b, y) = (self.size[k], self.off[k], other.size[k], other.off[k]);
            size[lane] += a * b;
            off[lane] += a * y + b * x + x * y;
        };
        let whole = n / LANES * LANES;
        for k in (0..whole).step_by(LANES) {
            (0..LANES).for_each(|lane| add(lane, k + lane));
        }
        (whole..n).for_each(|k| add(k - whole, k));
        let rounding = 1.0 + (n as f64 + 16.0) * f64::EPSILON;
        let off = off.iter().sum::<f64>() * rounding;
        Ball { size: size.iter().sum::<f64>() * rounding, off: if off.is_nan() { UNKNOWN } else { off } }
    }
}
