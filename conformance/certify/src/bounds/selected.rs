//! Folds that choose among elements by their order ([`Choice`]), in any order and with any brackets.
//!
//! Whatever the order, the result is an element that beats all others, directly or by way of others that it
//! beats: each of these lost to some element, and that one to another, up to the last. So it is one of the
//! elements that reach every other one along "may be given of both". One of them is the reference's result;
//! the others are those that may beat it, or beat one that may beat it, and so on. Where values are off,
//! whatever they can be counts. Where one is the only best one there are no others, and the result is exact;
//! elements that tie without an index that decides, zeros of both signs, NaNs that compare to nothing, and
//! elements nearer to the best than they are off may each be the result.
//!
//! Where these are few, the result is one of them, and nothing in between.
//!
//! An extreme is besides between the extremes of the lower and of the higher ends of its elements' intervals.

use std::sync::Arc;

use hlo::ElementType;
use hlo_execution::format::Format;
use hlo_interp::Tensor;
use hlo_recognize::rank::{self, NAN, NEGATIVE_NAN, NEGATIVE_ZERO, POSITIVE_ZERO};
use hlo_recognize::region::{Choice, Outcome};

use super::number::Numbers;
use super::rules::{Arg, Case, Mode};
use super::terms::Terms;
use super::{Leaf, Radii, Ranges};

const UNKNOWN: f64 = f64::INFINITY;

/// How many different elements are tried against all others of a result, until any that could be given is
/// taken to be.
const MAX_TRIED: usize = 32;

/// The greatest number of different elements that are kept for any result.
const MAX_RANGES: usize = 16;

/// The same while those of all results of the instruction are at most [`MAX_RANGES_OF_INSTRUCTION`].
const MAX_RANGES_OF_RESULT: usize = 1 << 10;

/// The greatest number of elements that are kept for all results of an instruction beyond [`MAX_RANGES`] each.
const MAX_RANGES_OF_INSTRUCTION: usize = 1 << 16;

/// The most comparisons for an instruction.
const MAX_COMPARISONS: usize = 100_000_000;

/// A member or a key of a choice: its elements, and behind them its initial values.
struct Column {
    numbers: Numbers,
    /// The ranks of each number, and of the ends of its interval.
    ranks: Vec<i64>,
    low: Vec<i64>,
    high: Vec<i64>,
    off: Vec<f64>,
    floats: bool,
    least: f64,
    /// The least number that is not flushed, or 0.
    flushed: f64,
    /// Each is the reference's number, zeros with their signs.
    exact: bool,
}

impl Column {
    fn new(case: &Case<'_>, parts: [(&Tensor, &Radii); 2], total: bool, zeros: bool) -> Column {
        let ty = parts[0].0.element_type();
        let mut numbers = Numbers { ty, re: Vec::new(), im: ty.is_complex().then(Vec::new) };
        let (mut ranks, mut off) = (Vec::new(), Vec::new());
        for (t, radii) in parts {
            let more = Numbers::of(t);
            numbers.re.extend(more.re);
            if let (Some(im), Some(more)) = (&mut numbers.im, more.im) {
                im.extend(more);
            }
            ranks.extend(rank::of_tensor(t));
            off.extend((0..t.len()).map(|i| radii.at(i)));
        }
        let format = Format::of(ty);
        let flushed =
            format.filter(|_| case.settings.allowances.flush_denormals).map_or(0.0, Format::flushes_below);
        let (mut low, mut high) = (ranks.clone(), ranks.clone());
        let mut exact = off.iter().all(|&r| r == 0.0);
        for i in 0..ranks.len() {
            if ranks[i] == NEGATIVE_NAN && format.is_some() && !total {
                (ranks[i], low[i], high[i]) = (NAN, NAN, NAN);
            }
            let (x, r) = (numbers.re[i], off[i]);
            let special = format.is_some() && !x.is_finite();
            if r > 0.0 {
                (low[i], high[i]) = if !r.is_finite() || special {
                    (i64::MIN, i64::MAX)
                } else if format.is_some() {
                    (rank::of_float(x - r), rank::of_float(x + r))
                } else {
                    let (least, greatest) = rank::ends(ty);
                    let r = r.ceil() as i64;
                    (ranks[i].saturating_sub(r).max(least), ranks[i].saturating_add(r).min(greatest))
                };
            }
            if format.is_none() {
                continue;
            }
            if x.abs() < flushed && x != 0.0 {
                off[i] = r.max(x.abs());
            }
            let (near, far) = (rank::of_float(-flushed), rank::of_float(flushed));
            if flushed > 0.0 && x != 0.0 && low[i] < far && high[i] > near {
                (low[i], high[i]) = (low[i].min(POSITIVE_ZERO), high[i].max(NEGATIVE_ZERO));
            }
            exact &= low[i] == high[i];
            // What is off at all may be the other zero.
            let uncertain = low[i] < high[i] || zeros;
            if uncertain && low[i] == POSITIVE_ZERO {
                low[i] = NEGATIVE_ZERO;
            }
            if uncertain && high[i] == NEGATIVE_ZERO {
                high[i] = POSITIVE_ZERO;
            }
        }
        let least = format.map_or(0.0, Format::min_positive);
        Column { numbers, ranks, low, high, off, floats: format.is_some(), least, flushed, exact }
    }

    /// Whether a range of ranks has zeros, or numbers that a comparison may flush.
    fn holds_zeros(&self, low: i64, high: i64) -> bool {
        low < rank::of_float(self.flushed) && high > rank::of_float(-self.flushed)
    }

    /// Whether a comparison that flushes treats all that an element may be as zero.
    fn is_taken_for_zero(&self, i: usize) -> bool {
        self.low[i] > rank::of_float(-self.flushed) && self.high[i] < rank::of_float(self.flushed)
    }

    fn may_be_nan(&self, i: usize) -> bool {
        self.floats && (self.high[i] == NAN || self.low[i] == NEGATIVE_NAN)
    }

    fn is_zero(&self, rank: i64) -> bool {
        self.floats && (rank == NEGATIVE_ZERO || rank == POSITIVE_ZERO)
    }

    /// How far a rank, exactly, is from a reference value.
    fn apart(&self, rank: i64, reference: i64) -> f64 {
        let nan = |rank: i64| self.floats && (rank == NAN || rank == NEGATIVE_NAN);
        if rank == reference || nan(rank) && nan(reference) {
            return 0.0;
        }
        let d = if self.floats {
            (rank::float(rank) - rank::float(reference)).abs()
        } else {
            (i128::from(rank) - i128::from(reference)).abs() as f64
        };
        match d {
            _ if d.is_nan() => UNKNOWN,
            0.0 => self.least,
            _ if self.floats => d.next_up(),
            // Distances beyond 2^53 are rounded.
            _ => (d * (1.0 + f64::EPSILON)).floor(),
        }
    }

    /// What the elements may be that are given, if these are few, and real numbers that f64 holds.
    fn ranges(&self, candidates: &[usize], given: &[bool], most: usize) -> Ranges {
        const MAX_COUNTED: i64 = 1 << f64::MANTISSA_DIGITS;
        let format = Format::of(self.numbers.ty);
        // Ranks of the other integers are what they are.
        let unmoved = self.numbers.ty != ElementType::U64;
        let mut ranges: Vec<[f64; 2]> = Vec::new();
        for (&i, _) in candidates.iter().zip(given).filter(|(_, given)| **given) {
            let (low, high) = (self.low[i], self.high[i]);
            let counted = self.floats || unmoved && low > -MAX_COUNTED && high < MAX_COUNTED;
            if self.numbers.im.is_some() || self.may_be_nan(i) || !counted || !self.off[i].is_finite() {
                return Ranges::default();
            }
            let ends = match format {
                Some(format) => {
                    let (low, high) = (rank::float(low), rank::float(high));
                    // What is off may be a number of a wider type, which is rounded in the end.
                    let out =
                        |end: f64| if self.off[i] > 0.0 && end.is_finite() { format.ulp(end) } else { 0.0 };
                    [low - out(low), high + out(high)]
                }
                None => [low as f64, high as f64],
            };
            if !ranges.contains(&ends) {
                ranges.push(ends);
            }
            if ranges.len() > most {
                return Ranges::default();
            }
        }
        ranges.into_boxed_slice()
    }

    /// How far what an element may be is from a reference value.
    fn reach(&self, i: usize, reference: &Numbers, at: usize, rank: i64) -> f64 {
        let mut apart = self.apart(self.ranks[i], rank);
        if let (Some(a), Some(b)) = (&self.numbers.im, &reference.im) {
            apart = apart.max(self.apart(rank::of_float(a[i]), rank::of_float(b[at])));
        }
        match (apart, self.off[i]) {
            (apart, 0.0) => apart,
            (0.0, off) => off,
            (apart, off) => (apart + off).next_up(),
        }
    }
}

/// Keys of the elements of a choice and of its initial values.
pub(super) type KeyValues = [(Tensor, Arc<Leaf>); 2];

/// The radii of the members of a choice with these keys; `None`: not worked out.
pub(super) fn bounds(
    case: &Case<'_>,
    choice: &Choice,
    keys: &[KeyValues],
    radii: &[Radii],
    mode: Mode,
    terms: Option<&Terms>,
) -> Option<Vec<Radii>> {
    let table = &choice.table;
    let scatter = case.opcode() == hlo::Opcode::Scatter;
    let columns: Option<Vec<Column>> = choice
        .members
        .iter()
        .enumerate()
        .map(|(k, &m)| {
            let [element, initial] = argument_indices(case, m);
            let part =
                |k: usize| -> Option<(&Tensor, &Radii)> { Some((case.args.get(k)?.tensor, radii.get(k)?)) };
            let parts = [part(element)?, part(initial)?];
            let ty = case.results.get(m)?.element_type();
            let typed = parts.iter().all(|(t, _)| t.element_type() == ty);
            typed.then(|| Column::new(case, parts, table.is_total(k), table.mixes_zeros))
        })
        .collect();
    let mut columns = columns?;
    for (k, parts) in keys.iter().enumerate() {
        let radii = parts.each_ref().map(|(_, leaf)| leaf.bounds.radii(mode));
        let parts = [(&parts[0].0, radii[0]), (&parts[1].0, radii[1])];
        let total = table.is_total(choice.members.len() + k);
        columns.push(Column::new(case, parts, total, table.mixes_zeros));
    }
    if table.any_order && columns.iter().all(|column| column.exact) {
        return Some(choice.members.iter().map(|_| Radii::Zero).collect());
    }
    let terms = terms.filter(|_| table.selects)?;
    let results: Vec<&Tensor> = choice.members.iter().map(|&m| case.results[m]).collect();
    if results.iter().any(|t| t.len() != terms.results()) {
        return None;
    }
    let references: Vec<(Numbers, Vec<i64>)> =
        results.iter().map(|t| (Numbers::of(t), rank::of_tensor(t))).collect();
    let elements = arguments(case, 0)?[0].tensor.len();
    let mixed = choice.mixed_slots();
    let mut fold = Fold { choice, columns, references, scatter, elements, mixed, left: MAX_COMPARISONS };
    let mut each = vec![Vec::with_capacity(terms.results()); results.len()];
    let mut ranges: Vec<Vec<Ranges>> = vec![Vec::new(); results.len()];
    let mut candidates: Vec<usize> = Vec::new();
    let mut left = MAX_RANGES_OF_INSTRUCTION;
    for result in 0..terms.results() {
        candidates.clear();
        candidates.extend(terms.at(result).iter().map(|&e| e as usize));
        candidates.push(elements + if scatter { result } else { 0 });
        let (radii, given) = fold.radii(&candidates, result, mode)?;
        for (m, r) in radii.into_iter().enumerate() {
            each[m].push(r);
            if mode == Mode::Hard {
                let found = match r > 0.0 {
                    true => fold.columns[m].ranges(
                        &candidates,
                        &given,
                        left.clamp(MAX_RANGES, MAX_RANGES_OF_RESULT),
                    ),
                    false => Ranges::default(),
                };
                left = left.saturating_sub(found.len());
                ranges[m].push(found);
            }
        }
    }
    let all = each.into_iter().zip(ranges);
    Some(
        all.map(|(each, ranges)| Radii::new(each).in_ranges((mode == Mode::Hard).then_some(ranges)))
            .collect(),
    )
}

struct Fold<'a> {
    choice: &'a Choice,
    columns: Vec<Column>,
    /// Of each member the reference's result, as numbers and as ranks; of keys none.
    references: Vec<(Numbers, Vec<i64>)>,
    scatter: bool,
    /// How many elements there are, before the initial values.
    elements: usize,
    /// Pairs of slots, of each member, of which something of either is given.
    mixed: Vec<Vec<(usize, usize)>>,
    /// Comparisons that may still be made.
    left: usize,
}

impl Fold<'_> {
    /// Of each member of a result how far it may be off; and which candidates may be given.
    fn radii(&mut self, candidates: &[usize], result: usize, mode: Mode) -> Option<(Vec<f64>, Vec<bool>)> {
        let matches: Vec<bool> = candidates.iter().map(|&i| self.matches(i, result)).collect();
        // What is given is no element, but something of several, as only NaNs make it.
        let mixed = !matches.contains(&true);
        if mixed && !self.mixes(candidates) {
            return None;
        }
        let given = match mode {
            Mode::Soft => matches,
            Mode::Hard if mixed => vec![true; candidates.len()],
            Mode::Hard => self.given(candidates, matches),
        };
        let each = self.columns.iter().zip(&self.references).enumerate().map(|(m, (column, reference))| {
            let (numbers, ranks) = reference;
            let reference = ranks[result];
            let given = || candidates.iter().zip(&given).filter(|(_, given)| **given).map(|(&i, _)| i);
            let mut r = given().map(|i| column.reach(i, numbers, result, reference)).fold(0.0, f64::max);
            if let Some((low, high)) = self.extremes(m, candidates) {
                let between = column.apart(low, reference).max(column.apart(high, reference));
                r = if mode == Mode::Soft { between } else { r.min(between) };
            }
            // A zero of the other sign.
            let other = |i: usize| column.is_zero(column.ranks[i]) && column.ranks[i] != reference;
            let any = self.choice.table.mixes_zeros && candidates.iter().any(|&i| other(i));
            if mode == Mode::Hard && column.is_zero(reference) && (any || given().any(other)) {
                r = r.max(column.least);
            }
            r
        });
        let each = each.collect();
        Some((each, given))
    }

    /// Whether an element is what the reference gave.
    fn matches(&self, i: usize, result: usize) -> bool {
        self.columns.iter().zip(&self.references).all(|(column, (numbers, ranks))| {
            let same = |a: i64, b: i64| {
                let nan = |rank: i64| rank == NAN || rank == NEGATIVE_NAN;
                a == b
                    || column.floats && nan(a) && nan(b)
                    || self.choice.table.mixes_zeros && rank::equal(a, b, column.floats)
            };
            let imaginary = match (&column.numbers.im, &numbers.im) {
                (Some(a), Some(b)) => same(rank::of_float(a[i]), rank::of_float(b[result])),
                (_, _) => true,
            };
            same(column.ranks[i], ranks[result]) && imaginary
        })
    }

    /// The lowest and the highest rank of a member that is an extreme.
    fn extremes(&self, member: usize, candidates: &[usize]) -> Option<(i64, i64)> {
        let greatest = self.choice.table.extreme[member]?;
        let column = &self.columns[member];
        // Of an operand that is overwritten nothing is left.
        let unknown =
            |i: usize| column.may_be_nan(i) || column.low[i] == i64::MIN && column.high[i] == i64::MAX;
        if candidates.iter().any(|&i| unknown(i)) {
            return None;
        }
        let ends = |of: &[i64]| {
            let ends = candidates.iter().map(|&i| of[i]);
            if greatest { ends.max() } else { ends.min() }
        };
        let (low, high) = ends(&column.low).zip(ends(&column.high))?;
        // A comparison that flushes takes all that is denormal for equal, so any of it may be what is given.
        let ties = || candidates.iter().filter(|&&i| column.is_taken_for_zero(i));
        if column.flushed > 0.0 && column.holds_zeros(low, high) {
            let least = ties().map(|&i| column.low[i]).fold(low, i64::min);
            return Some((least, ties().map(|&i| column.high[i]).fold(high, i64::max)));
        }
        Some((low, high))
    }

    /// Which of both it may give where these are the accumulator and the element.
    fn outcome(&self, x: usize, y: usize) -> Outcome {
        let columns = &self.columns;
        let ends = |i: usize| move |m: usize| (columns[m].low[i], columns[m].high[i]);
        self.choice.table.outcome(&self.choice.looked_at, ends(x), ends(y))
    }

    /// Whether an element may be given of it and another one.
    fn may_beat(&self, x: usize, y: usize) -> bool {
        // The operand of a scatter is always the accumulator.
        let accumulates = |i: usize| self.scatter && i >= self.elements;
        !accumulates(y) && self.outcome(x, y).first || !accumulates(x) && self.outcome(y, x).second
    }

    /// Which candidates may be the result, beside those that are the reference's.
    fn given(&mut self, candidates: &[usize], mut given: Vec<bool>) -> Vec<bool> {
        if self.mixes(candidates) {
            return vec![true; candidates.len()];
        }
        let mut pending: Vec<usize> = (0..candidates.len()).filter(|&c| given[c]).collect();
        let mut tried: Vec<Vec<(i64, i64)>> = Vec::new();
        while let Some(c) = pending.pop() {
            let i = candidates[c];
            let mut seen: Vec<(i64, i64)> = self
                .columns
                .iter()
                .zip(&self.choice.looked_at)
                .filter(|(_, looked_at)| **looked_at)
                .map(|(column, _)| (column.low[i], column.high[i]))
                .collect();
            seen.push((i64::from(i >= self.elements), 0));
            if tried.contains(&seen) {
                continue;
            }
            if tried.len() == MAX_TRIED || self.left < candidates.len() {
                return self.swept(candidates, given);
            }
            tried.push(seen);
            self.left -= candidates.len();
            for (d, &j) in candidates.iter().enumerate() {
                if !given[d] && self.may_beat(j, i) {
                    given[d] = true;
                    pending.push(d);
                }
            }
        }
        given
    }

    /// The same at less cost: by an extreme alone, or all.
    fn swept(&self, candidates: &[usize], mut given: Vec<bool>) -> Vec<bool> {
        let member = (0..self.columns.len()).find(|&m| self.extremes(m, candidates).is_some());
        let greatest = member.and_then(|m| self.choice.table.extreme[m]);
        let (Some(m), Some(greatest)) = (member, greatest) else { return vec![true; candidates.len()] };
        let column = &self.columns[m];
        let sign = |rank: i64| if greatest { rank } else { !rank };
        let ends = |i: usize| {
            let (low, high) = (sign(column.low[i]), sign(column.high[i]));
            // Zeros are equal.
            let (low, high) = (low.min(high), low.max(high));
            (
                if low == POSITIVE_ZERO { NEGATIVE_ZERO } else { low },
                if high == NEGATIVE_ZERO { POSITIVE_ZERO } else { high },
            )
        };
        let mut bar = candidates.iter().zip(&given).filter(|(_, g)| **g).map(|(&i, _)| ends(i).0).min();
        loop {
            let mut next = bar;
            for (c, &i) in candidates.iter().enumerate().filter(|_| bar.is_some()) {
                if Some(ends(i).1) >= bar {
                    given[c] = true;
                    next = next.min(Some(ends(i).0));
                }
            }
            if next == bar {
                return given;
            }
            bar = next;
        }
    }

    /// Whether something of two candidates may be given that is neither.
    fn mixes(&self, candidates: &[usize]) -> bool {
        if self.mixed.is_empty() {
            return false;
        }
        let present: Vec<Vec<bool>> = self
            .columns
            .iter()
            .zip(&self.choice.table.lines)
            .map(|(column, line)| {
                let mut present = vec![false; line.slots()];
                for &i in candidates {
                    let (low, high) = (line.slot(column.low[i]), line.slot(column.high[i]));
                    present[low..=high].iter_mut().for_each(|p| *p = true);
                }
                present
            })
            .collect();
        self.mixed.iter().any(|slots| {
            slots
                .iter()
                .enumerate()
                .all(|(m, &(x, y))| !self.choice.looked_at[m] || present[m][x] && present[m][y])
        })
    }
}

/// Which operands are the elements and the initial values of a component.
fn argument_indices(case: &Case<'_>, component: usize) -> [usize; 2] {
    let n = case.results.len();
    match case.opcode() {
        hlo::Opcode::Scatter => [n + 1 + component, component],
        hlo::Opcode::SelectAndScatter => [1, 2],
        _ => [component, n + component],
    }
}

/// The elements and initial values of a component.
pub(super) fn arguments<'a, 'b>(case: &'b Case<'a>, component: usize) -> Option<[&'b Arg<'a>; 2]> {
    let [element, initial] = argument_indices(case, component);
    Some([case.args.get(element)?, case.args.get(initial)?])
}
