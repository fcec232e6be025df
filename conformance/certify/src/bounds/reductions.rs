//! Reductions of one array of real floats by an addition: what [`super::sums`] finds by running the
//! instruction in f64, found by adding magnitudes, and what elements are off by, right here on all threads.
//!
//! Additions in f64 of `n` terms that are not negative lose at most a relative `n` units, those of any sign
//! as much of the sum of magnitudes; sums are widened by that. Elements of which nothing is known, and
//! denormals that may be flushed, go the long way.
//!
//! **Invariant:** which sums are formed, and in what order, depends on shapes alone, not on the number of
//! threads.

use hlo::{AttrKey, Opcode};
use hlo_execution::format::Format;
use hlo_interp::{Accumulate, Tensor};
use rayon::prelude::*;

use super::rules::{Case, Mode};
use super::sums::{self, Terms};
use super::{Radii, plain, sum_limits};

/// Elements that are decoded at once.
const BLOCK: usize = 1 << 12;

/// Parts of an array that are added up side by side where they are parts of the same sums.
const PARTS: usize = 8;

/// The most terms of a sum: what f64 loses is far below a unit of any narrower type.
const MAX_TERMS: usize = 1 << 24;

/// The sums that results are of.
#[derive(Clone, Copy, Default)]
struct Sum {
    magnitude: f64,
    spread: f64,
    value: f64,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.magnitude += other.magnitude;
        self.spread += other.spread;
        self.value += other.value;
    }

    /// An element that may be so far off.
    fn of(x: f64, r: f64) -> Sum {
        let largest = x.abs() + r;
        Sum { magnitude: if r > 0.0 { largest.next_up() } else { largest }, spread: r, value: x }
    }
}

/// The radii of a reduction; `None`: they are to be found the long way.
pub(super) fn bounds(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Option<Radii> {
    let ([operand, init], [result]) = (&case.args[..], &case.results[..]) else { return None };
    let ty = result.element_type();
    let types = [operand, init].iter().all(|a| a.tensor.element_type() == ty);
    if case.opcode() != Opcode::Reduce
        || !types
        || !plain::is_float(result)
        || case.settings.allowances.flush_denormals
        || matches!(radii[0], Radii::Unknown)
    {
        return None;
    }
    let layout = Layout::of(case, operand.tensor)?;
    let terms = layout.terms + 1;
    if terms > MAX_TERMS || result.len() != layout.results {
        return None;
    }
    let first = Sum::of(plain::at(init.tensor, 0), radii[1].at(0));
    let mut all = layout.sums(operand.tensor, &radii[0])?;
    all.iter_mut().for_each(|sum| sum.add(first));
    if all.iter().any(|sum| !sum.magnitude.is_finite()) {
        return None;
    }
    let count = terms as f64;
    let wider = 1.0 + (count + 2.0) * f64::EPSILON;
    let narrow = Format::of(ty)?.precision < 24;
    // Of narrow types the sum in f64 is the center, which is off by what f64 loses.
    let lost = if narrow { count * f64::EPSILON } else { 0.0 };
    let terms = Terms {
        magnitude: all.iter().map(|sum| sum.magnitude * wider).collect(),
        spread: all.iter().map(|sum| (sum.spread + sum.magnitude * lost) * wider).collect(),
        count: vec![count; all.len()],
        exact: narrow.then(|| all.iter().map(|sum| sum.value).collect()),
        wild: None,
        error: None,
    };
    let manner = sums::manner(case, ty, 0.0, false)?;
    let literal = case.settings.options.accumulate == Accumulate::Region;
    let found = sums::concluded(case, result, &terms, &manner, literal, false, mode);
    Some(sum_limits::narrowed(case, radii, result, found, &manner, mode))
}

/// How the elements of an array are divided among results: for each of `rows`, in row-major order, `inner`
/// elements that all belong to one result, or to as many consecutive ones.
struct Layout {
    /// Sizes of the outer dimensions, and the number of results from one index to the next; 0 of dimensions
    /// that are folded.
    outer: Vec<(usize, usize)>,
    inner: usize,
    /// Whether the inner elements are folded.
    folded: bool,
    results: usize,
    /// Elements of each result.
    terms: usize,
}

impl Layout {
    fn of(case: &Case<'_>, operand: &Tensor) -> Option<Layout> {
        let sizes = operand.sizes();
        let dimensions = case.instr.attrs.ints(AttrKey::Dimensions)?;
        let is_folded = |d: usize| dimensions.contains(&(d as i64));
        let last = sizes.len().checked_sub(1)?;
        let folded = is_folded(last);
        let start = (0..=last).rev().take_while(|&d| is_folded(d) == folded).last()?;
        let inner = sizes[start..].iter().product();
        let mut stride = if folded { 1 } else { inner };
        let mut outer = Vec::new();
        for d in (0..start).rev() {
            outer.push((sizes[d], if is_folded(d) { 0 } else { stride }));
            if !is_folded(d) {
                stride *= sizes[d];
            }
        }
        outer.reverse();
        let terms = (0..=last).filter(|&d| is_folded(d)).map(|d| sizes[d]).product();
        Some(Layout { outer, inner, folded, results: stride, terms })
    }

    fn rows(&self) -> usize {
        self.outer.iter().map(|&(size, _)| size).product()
    }

    /// The first result of a row.
    fn result(&self, mut row: usize) -> usize {
        let mut at = 0;
        for &(size, stride) in self.outer.iter().rev() {
            at += row % size * stride;
            row /= size;
        }
        at
    }

    /// The sums of all elements. `None`: nothing is known of one.
    fn sums(&self, operand: &Tensor, radii: &Radii) -> Option<Vec<Sum>> {
        let rows = self.rows();
        let mut all = vec![Sum::default(); self.results];
        if rows == 0 || self.inner == 0 {
            return Some(all);
        }
        // Leading dimensions that are kept divide the results.
        let kept: usize =
            self.outer.iter().take_while(|&&(_, stride)| stride > 0).map(|&(size, _)| size).product();
        if kept > 1 {
            let (rows_each, results_each) = (rows / kept, self.results / kept);
            all.par_chunks_mut(results_each).enumerate().for_each(|(part, sums)| {
                self.add(operand, radii, part * rows_each..(part + 1) * rows_each, part * results_each, sums);
            });
        } else {
            // Sums of their own for each part only where these are few beside its rows.
            let each = rows.div_ceil((rows / PARTS).clamp(1, PARTS));
            let parts: Vec<Vec<Sum>> = (0..rows.div_ceil(each))
                .into_par_iter()
                .map(|part| {
                    let mut sums = vec![Sum::default(); self.results];
                    self.add(operand, radii, part * each..((part + 1) * each).min(rows), 0, &mut sums);
                    sums
                })
                .collect();
            for part in parts {
                all.iter_mut().zip(part).for_each(|(sum, part)| sum.add(part));
            }
        }
        Some(all)
    }

    /// Adds the elements of some rows to the results from `first` on.
    fn add(
        &self,
        operand: &Tensor,
        radii: &Radii,
        rows: std::ops::Range<usize>,
        first: usize,
        sums: &mut [Sum],
    ) {
        let mut numbers = vec![0.0; BLOCK.min(self.inner)];
        for row in rows {
            let at = self.result(row) - first;
            for start in (0..self.inner).step_by(BLOCK) {
                let n = BLOCK.min(self.inner - start);
                let offset = row * self.inner + start;
                let numbers = &mut numbers[..n];
                plain::decoded(operand, offset, numbers);
                if self.folded {
                    let mut sum = Sum::default();
                    numbers.iter().enumerate().for_each(|(i, &x)| sum.add(Sum::of(x, radii.at(offset + i))));
                    sums[at].add(sum);
                } else {
                    let sums = &mut sums[at + start..at + start + n];
                    let terms = numbers.iter().enumerate().map(|(i, &x)| Sum::of(x, radii.at(offset + i)));
                    sums.iter_mut().zip(terms).for_each(|(sum, term)| sum.add(term));
                }
            }
        }
    }
}
