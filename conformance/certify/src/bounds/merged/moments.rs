//! Moments: means and sums of squared distances from them, merged with counts (Welford, Note on a method for
//! calculating corrected sums of squares and products, 1962; Chan, Golub and LeVeque, Updating formulae and a
//! pairwise algorithm for computing sample variances, 1979; Algorithms for computing the sample variance:
//! analysis and recommendations, 1983).
//!
//! Of parts with counts `n_i`, means `m_i` and sums of squares `s_i` the whole has `N = sum n_i`,
//! `m = sum n_i m_i / N` and `S = sum s_i + sum n_i (m_i - m)^2`, in any order. Counts are whole numbers
//! whose sum the type holds, so they are exact.
//!
//! Rounding errors of one step: `d` of its mean and `e` of its sum of squares ([`hlo_perturbation::steps`]).
//! They are bounded over all parts that there can be: except for errors so far, means lie between the least
//! and the greatest `m_i`, which are `R` apart, and sums of squares between 0 and `S`. The mean of all is
//! linear in the mean of a part, with a weight of at most 1. If the mean of a part with count `n_k` moves by
//! `d`, then `S` moves by `2 n_k (m_k - m) d + n_k (1 - n_k / N) d^2`; if its sum of squares moves by `e`, by
//! `e`. So the mean of `n` terms is off by at most `(n - 1) d`, and the sum of squares by at most
//! `(n - 1) (e + 2 N R d + N d^2)`.
//!
//! How far a step is off depends on the quotient of both counts: each is looked at between powers of two.

use hlo::Opcode;
use hlo_execution::format::Format;
use hlo_perturbation::UNKNOWN;
use hlo_perturbation::steps::{self as rounded, Range, Rounding};
use hlo_recognize::region::Region;
use hlo_recognize::terms::{Assumptions, Id, Kind, Terms as Computed, resolved};

use crate::bounds::Radii;
use crate::bounds::number::Numbers;
use crate::bounds::rules::{Case, Mode};
use crate::bounds::terms::Terms;

use super::{Column, around, rounding_of};

/// How often what partial results are off by is added to the ranges that they are in.
const MAX_ROUNDS: usize = 8;

/// The most terms of the computation times results times ranges of counts.
const MAX_WORK: usize = 1 << 26;

/// A step, where parts count nothing or something.
struct Form {
    nothing: [bool; 2],
    terms: Computed,
    /// Which of these are not negative.
    positive: Vec<bool>,
    /// The terms of the mean and of the squares.
    ids: Vec<Id>,
}

/// One step, by which of both parts count nothing: none, the first, the second.
struct Steps {
    forms: Vec<Form>,
    /// The parameters of count, mean and squares.
    counts: [usize; 2],
    means: [usize; 2],
    squares: Option<[usize; 2]>,
}

impl Steps {
    fn new(region: &Region<'_>, mean: usize, count: usize, squares: Option<usize>) -> Option<Steps> {
        let pair = |c: usize| [region.accumulator(c), region.element(c)];
        let expression = &region.expression;
        let roots: Vec<usize> = std::iter::once(mean).chain(squares).map(|c| expression.results[c]).collect();
        let forms = [[false, false], [true, false], [false, true]].into_iter().map(|nothing| {
            let mut kinds = vec![Kind::Finite; expression.parameters.len()];
            for (p, nothing) in pair(count).into_iter().zip(nothing) {
                kinds[p] = if nothing { Kind::Exactly(0.0) } else { Kind::Positive };
            }
            let (terms, ids) = resolved(expression, &roots, Assumptions { kinds, order: None })?;
            let (counts, squares) = (pair(count), squares.map(pair));
            let not_negative = |p: usize| counts.contains(&p) || squares.is_some_and(|s| s.contains(&p));
            let positive = rounded::positive(&terms, &not_negative);
            Some(Form { nothing, terms, positive, ids })
        });
        Some(Steps {
            forms: forms.collect::<Option<Vec<_>>>()?,
            counts: pair(count),
            means: pair(mean),
            squares: squares.map(pair),
        })
    }

    fn size(&self) -> usize {
        self.forms.iter().map(|form| form.terms.all().len()).sum()
    }
}

/// What the parts of a result are.
struct Parts {
    terms: f64,
    count: f64,
    mean: f64,
    squares: f64,
    /// The least and the greatest mean of a part that counts something.
    low: f64,
    high: f64,
    /// The mean and the squares of the part that counts nothing.
    nothing: Option<[f64; 2]>,
    /// What operands that are off move mean and squares by.
    moved: [f64; 2],
    /// What the mean and the squares here are off by themselves.
    own: [f64; 2],
}

impl Parts {
    fn of(columns: &[&Column], terms: &Terms, i: usize, most: f64) -> Option<Parts> {
        let (means, counts) = (columns[0], columns[1]);
        let squares = columns.get(2);
        let each = || {
            let squares = squares.map(|c| c.terms(terms, i));
            let mut squares = squares.into_iter().flatten();
            counts.terms(terms, i).zip(means.terms(terms, i)).map(move |(n, m)| (n, m, squares.next()))
        };
        let (mut n, mut sum, mut nothing) = (0.0, 0.0, None);
        let (mut low, mut high, mut off) = (f64::INFINITY, f64::NEG_INFINITY, 0.0f64);
        for (count, m, s) in each() {
            let whole = count.off == 0.0 && count.value >= 0.0 && count.value.fract() == 0.0;
            let s_known =
                s.is_none_or(|s| s.value.is_finite() && s.off.is_finite() && s.value - s.off >= 0.0);
            if !whole || !m.value.is_finite() || !m.off.is_finite() || !s_known {
                return None;
            }
            n += count.value;
            if count.value == 0.0 {
                // The means of two parts that count nothing have no mean.
                if nothing.replace([m.value, s.map_or(0.0, |s| s.value)]).is_some() {
                    return None;
                }
                if m.off > 0.0 {
                    return None;
                }
                continue;
            }
            sum += count.value * m.value;
            (low, high) = (low.min(m.value - m.off), high.max(m.value + m.off));
            off = off.max(m.off);
        }
        // A NaN says nothing either.
        if !(n > 0.0 && n <= most) {
            return None;
        }
        let mean = sum / n;
        let all = each().count() as f64;
        let own = (all + 4.0) * f64::EPSILON * low.abs().max(high.abs());
        let range = high - low;
        let mut total = 0.0;
        let mut moved = 0.0;
        for (count, m, s) in each() {
            let distance = m.value - mean;
            total += count.value * distance * distance + s.map_or(0.0, |s| s.value);
            moved += s.map_or(0.0, |s| s.off) + count.value * m.off * (2.0 * range + m.off);
        }
        let own_squares = (2.0 * all + 8.0) * f64::EPSILON * total + n * own * (2.0 * range + own);
        Some(Parts {
            terms: all,
            count: n,
            mean,
            squares: total,
            low,
            high,
            nothing,
            moved: [off, moved],
            own: [own, own_squares],
        })
    }

    /// What all steps together make mean and squares be off by, in any order. `None`: they may overflow, or
    /// what they are off by grows beyond what there is.
    fn off(&self, steps: &Steps, rounding: Rounding, quotient: f64) -> Option<[f64; 2]> {
        let taken = self.terms - 1.0;
        let mut around = [0.0, self.moved[1]];
        for _ in 0..MAX_ROUNDS {
            let [d, e] = self.step(steps, rounding, quotient, around)?;
            let range = self.high - self.low + 2.0 * around[0];
            let mean = taken * d;
            let squares = taken * (e + self.count * d * (2.0 * range + d));
            if !mean.is_finite() || !squares.is_finite() {
                return None;
            }
            if mean <= around[0] && squares + self.moved[1] <= around[1] {
                return Some([mean, squares]);
            }
            around = [2.0 * mean, 2.0 * squares + self.moved[1]];
        }
        None
    }

    /// What a step of parts that are off by as much is off by.
    fn step(&self, steps: &Steps, rounding: Rounding, quotient: f64, around: [f64; 2]) -> Option<[f64; 2]> {
        let mean = Range::exact(self.low - around[0], self.high + around[0]);
        let most = self.squares + around[1];
        let (mut d, mut e) = (0.0f64, 0.0f64);
        for Form { nothing, terms, positive, ids } in &steps.forms {
            if nothing.contains(&true) && self.nothing.is_none() {
                continue;
            }
            let counted = |k: usize| -> Vec<[f64; 2]> {
                if nothing[k] { vec![[0.0, 0.0]] } else { ranges_of_counts(self.count) }
            };
            let pairs = counted(0).into_iter().flat_map(|a| counted(1).into_iter().map(move |b| [a, b]));
            for counts in pairs.filter(|[a, b]| a[0] + b[0] <= self.count) {
                let parameter = |p: usize| {
                    let at = |of: [usize; 2]| of.iter().position(|&q| q == p);
                    if let Some(k) = at(steps.counts) {
                        return Some(Range::count(counts[k][0], counts[k][1]));
                    }
                    let nothing = |k: usize| self.nothing.filter(|_| nothing[k]);
                    if let Some(k) = at(steps.means) {
                        return Some(nothing(k).map_or(mean, |[m, _]| Range::exact(m, m)));
                    }
                    let k = at(steps.squares?)?;
                    Some(nothing(k).map_or(Range::exact(0.0, most), |[_, s]| Range::exact(s, s)))
                };
                let all = rounded::ranges(terms, positive, &parameter, rounding, quotient)?;
                d = d.max(all[ids[0]].off());
                if let Some(&squares) = ids.get(1) {
                    let found = all[squares];
                    // What may become negative is in no range of the next step.
                    if !positive[squares] {
                        return None;
                    }
                    // The squares of a part are no more than those of all.
                    e = e.max(found.relative * most + found.absolute);
                }
            }
        }
        Some([d, e])
    }
}

/// Counts up to a whole number between powers of two.
fn ranges_of_counts(most: f64) -> Vec<[f64; 2]> {
    let mut ranges = Vec::new();
    let mut low = 1.0;
    while low <= most {
        ranges.push([low, (2.0 * low).min(most)]);
        low *= 2.0;
    }
    ranges
}

/// The radii of a component that is a mean, or a sum of squared distances from one (`squares`).
pub(super) fn radii(
    case: &Case<'_>,
    region: &Region<'_>,
    [mean, count]: [usize; 2],
    squares: Option<usize>,
    terms: &Terms,
    mode: Mode,
) -> Option<Radii> {
    let component = squares.unwrap_or(mean);
    let all = [Some(mean), Some(count), squares].into_iter().flatten();
    let columns = all.map(|c| Column::of(case, c, mode)).collect::<Option<Vec<Column>>>()?;
    let columns: Vec<&Column> = columns.iter().collect();
    let ty = columns[0].ty;
    let rounding = rounding_of(case, ty)?;
    let steps = Steps::new(region, mean, count, squares)?;
    // The whole numbers that the type of means holds, and that of counts.
    let whole = |format: Format| f64::from(format.precision).exp2();
    let most = Format::of(columns[1].ty).map_or(f64::INFINITY, whole).min(whole(rounding.format));
    let narrow = columns[1].ty.bits() as f64 - f64::from(u8::from(columns[1].ty.is_signed_integer()));
    let most = if columns[1].ty.is_integer() { most.min(narrow.exp2() - 1.0) } else { most };
    let approximate = case.settings.allowances.functions.ulps(Opcode::Divide, ty);
    let reciprocal = if case.settings.allowances.reciprocals { 2.0 } else { 0.0 };
    let quotient = 1.0 + reciprocal + 2.0 * f64::from(approximate);
    let v = Numbers::of(case.results[component]);
    let counted = Numbers::of(case.results[count]).re.iter().fold(1.0, |most: f64, &n| most.max(n));
    let ranges = counted.min(most).log2().ceil() as usize + 1;
    if v.len().saturating_mul(steps.size() * ranges * ranges) > MAX_WORK {
        return None;
    }
    let radius = |i: usize| {
        if let Some(off) = columns[if squares.is_some() { 2 } else { 0 }].of_initial_value(terms, i) {
            return off;
        }
        let found = Parts::of(&columns, terms, i, most)
            .and_then(|parts| Some((parts.off(&steps, rounding, quotient)?, parts)));
        let Some((off, parts)) = found else { return UNKNOWN };
        let k = usize::from(squares.is_some());
        let exact = if squares.is_some() { parts.squares } else { parts.mean };
        around(exact, off[k] + parts.own[k] + parts.moved[k], v.re[i], rounding, mode)
    };
    Some(Radii::new((0..v.len()).map(radius).collect()))
}
