//! Limits of sums: what a reduction by addition is at least and at most, where terms have limits.
//!
//! In any order and with any brackets a sum of `n` terms is within `gamma` times the sum of magnitudes of the
//! exact one; one of terms that are not negative is no less than any of them, since rounding is monotone:
//! `fl(a + b) >= a` where `b >= 0`. Where `gamma` is large (many terms, a narrow type), only the latter bounds
//! such a sum away from negative numbers.

use hlo::Opcode;
use hlo_execution::format::{Format, has_infinities};
use hlo_interp::Tensor;
use hlo_perturbation::gamma;

use super::limits::Limits;
use super::number::Numbers;
use super::rules::{Case, Mode};
use super::sums::Manner;
use super::{Radii, elementwise, relations};

/// From this relative error on the sign of a sum whose terms have one is worth working out.
const MAX_SYMMETRIC: f64 = 0.25;

/// What is known of a sum while terms are added to it.
#[derive(Clone)]
struct Sum {
    low: f64,
    high: f64,
    magnitude: f64,
    count: f64,
    /// No term is below 0.
    positive: bool,
    /// No term is above 0.
    negative: bool,
    /// Of terms that are not negative, and of those that are not positive, the one farthest from 0 at least.
    peaks: [f64; 2],
    /// Some term may be a NaN.
    unknown: bool,
}

impl Sum {
    fn add(&mut self, term: Option<Limits>) {
        let Some(Limits { low, high, .. }) = term else {
            self.unknown = true;
            return;
        };
        // Infinities of both signs make a NaN.
        let both = |a: f64, b: f64| a == f64::NEG_INFINITY && b == f64::INFINITY;
        self.unknown |= both(low, high) || both(self.low, high) || both(low, self.high);
        self.low += low;
        self.high += high;
        self.magnitude += low.abs().max(high.abs());
        self.count += 1.0;
        self.positive &= low >= 0.0 && low.is_sign_positive();
        self.negative &= high <= 0.0;
        self.peaks = [self.peaks[0].max(low), self.peaks[1].min(high)];
    }
}

/// The radii of a reduction by addition with what the limits of its operand say of it.
pub(super) fn narrowed(
    case: &Case<'_>,
    operands: &[Radii],
    result: &Tensor,
    radii: Radii,
    manner: &Manner,
    mode: Mode,
) -> Radii {
    limits(case, operands, result, manner, mode).map_or(radii.clone(), |limits| {
        let v = Numbers::of(result);
        let each = (0..v.len()).map(|i| limits[i].narrow(v.re[i], radii.at(i)));
        let (each, limits) = each.unzip();
        Radii::limited(each, limits)
    })
}

fn limits(
    case: &Case<'_>,
    radii: &[Radii],
    result: &Tensor,
    manner: &Manner,
    mode: Mode,
) -> Option<Vec<Limits>> {
    let [operand, init] = &case.args[..] else { return None };
    let peak = operand.leaf.relations.as_ref().and_then(|r| r.peak.as_ref());
    let real = Format::of(result.element_type()).filter(|_| !result.element_type().is_complex());
    let (own, acc) = (real?, manner.accumulator);
    let terms = operand.tensor.len() as f64 / result.len().max(1) as f64;
    let coarse = gamma(terms, acc.unit_roundoff()) > MAX_SYMMETRIC;
    if case.opcode() != Opcode::Reduce || !(radii[0].has_limits() || peak.is_some() || coarse) {
        return None;
    }
    let into = relations::reduced(case)?;
    let (x, first) = (Numbers::of(operand.tensor), Numbers::of(init.tensor));
    let start = elementwise::within(first.re[0], radii[1].at(0), radii[1].limits(0));
    let mut sum = Sum {
        low: 0.0,
        high: 0.0,
        magnitude: 0.0,
        count: 0.0,
        positive: true,
        negative: true,
        peaks: [0.0; 2],
        unknown: false,
    };
    sum.add(start);
    let mut sums = vec![sum; result.len()];
    for (i, &r) in into.iter().enumerate() {
        sums[r as usize].add(elementwise::within(x.re[i], radii[0].at(i), radii[0].limits(i)));
    }
    let peaks = peak.map(|p| p.within(&into, result.len(), mode));
    let small = if case.settings.allowances.flush_denormals {
        acc.flushes_below().max(own.flushes_below())
    } else {
        0.0
    };
    let each = sums.iter().enumerate().map(|(r, sum)| {
        if sum.unknown {
            return Limits::NONE;
        }
        // That of the engine, and of these sums in f64.
        let relative = gamma(sum.count + 1.0, acc.unit_roundoff()) + 2.0 * (sum.count + 2.0) * f64::EPSILON;
        let absolute = 2.0 * (sum.count + 1.0) * small;
        let [peak, trough] = sum.peaks;
        let (mut low, mut high) = if sum.positive {
            ((sum.low * (1.0 - relative)).max(peak) - absolute, sum.high * (1.0 + relative))
        } else if sum.negative {
            (sum.low * (1.0 + relative), (sum.high * (1.0 - relative)).min(trough) + absolute)
        } else {
            let off = relative * sum.magnitude + absolute;
            (sum.low - off, sum.high + off)
        };
        if sum.positive {
            low = low.max(0.0);
        } else if sum.negative {
            high = high.min(0.0);
        }
        if let Some(peaks) = peaks.as_ref().filter(|_| sum.positive) {
            low = low.max(peaks[r] * (1.0 - 8.0 * own.unit_roundoff()));
        }
        // What is flushed to a zero that the type lacks is a NaN.
        let vanishes = !own.has_zero() && small > 0.0 && low < 2.0 * small;
        if low.is_nan() || high.is_nan() || vanishes {
            return Limits::NONE;
        }
        let most = acc.max.min(own.max);
        if sum.magnitude * (1.0 + relative) >= most && mode == Mode::Hard {
            // Partial sums of both signs may overflow to both infinities, and those of some types to a NaN.
            match (sum.positive, sum.negative) {
                _ if !has_infinities(result.element_type()) => return Limits::NONE,
                (true, _) => high = f64::INFINITY,
                (_, true) => low = f64::NEG_INFINITY,
                (false, false) => return Limits::NONE,
            }
        }
        if mode == Mode::Soft {
            (low, high) = (low.max(-most), high.min(most));
        }
        Limits::new(low, high).wider(|x| own.ulp(x))
    });
    Some(each.collect())
}
