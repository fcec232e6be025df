//! Sorts whose comparator leaves an order open: which row stands where.
//!
//! A comparator that is a strict weak order (C++, `Compare`) leaves open how rows stand that it does not tell
//! apart, unless the sort is stable; one that is none, as `LT` of floats beside a NaN, leaves everything open:
//! what comes out is up to the algorithm. But rows stay whole, and each is there once. So the rows of a result
//! are those of the operands in some order, which no radius of a single element expresses. Each element keeps
//! its group of rows and its row in it ([`OpenRow`]), and the judge compares the rows of both results
//! ([`hlo_execution::verdict::by_rows`]).
//!
//! Whether the comparator is an order is asked of the line that is sorted: with `below(i)` the number of
//! elements that come before `i`, it is one exactly if `i` comes before `j` where `below(i) < below(j)` and
//! nowhere else. Where a comparison itself is off (a denormal number that may be flushed) and all is an order
//! without that, intervals decide ([`super::order`]). Rows that hold what is off have no bits to compare:
//! nothing is known of those whose order is open.

use std::collections::BTreeMap;
use std::sync::Arc;

use hlo::{AttrKey, Opcode};
use hlo_execution::verdict::{OpenRow, same_buffers};
use hlo_interp::Tensor;

use super::lifted::{Lifted, leaf_at, taken};
use super::number::Numbers;
use super::rules::{Case, Kind, copies, kind};
use super::{Leaf, Radii, movement, order};

/// The most elements of a line of which all pairs are compared.
const MAX_LINE: usize = 256;

/// The most comparisons for an instruction.
const MAX_COMPARISONS: usize = 1 << 20;

/// Of an array, element by element, the row that it is in; or none of any.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OpenRows(Option<Arc<Vec<Option<OpenRow>>>>);

impl OpenRows {
    /// That of an element.
    pub fn at(&self, i: usize) -> Option<OpenRow> {
        self.0.as_ref().and_then(|each| each[i])
    }

    /// The bytes that they occupy.
    pub(super) fn bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |each| size_of_val(&each[..]) as u64)
    }
}

/// Puts the rows of a sort's results, or of moved elements, beside their bounds.
pub(super) fn beside(case: &Case<'_>, leaves: &mut [Leaf]) {
    if matches!(kind(case.opcode()), Kind::Movement(_)) || copies(case) {
        moved(case, leaves);
    } else if case.opcode() == Opcode::Sort
        && case.settings.allowances.reorder_regions
        && let Some(open_rows) = of_sort(case)
    {
        let exact = case.has_exact_operands();
        let mut groups: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (i, open) in open_rows.iter().enumerate() {
            open.iter().for_each(|open| groups.entry(open.group).or_default().push(i));
        }
        for (leaf, t) in leaves.iter_mut().zip(&case.results) {
            let hard = std::mem::take(&mut leaf.bounds.hard);
            let mut each: Vec<f64> = (0..t.len()).map(|i| hard.at(i)).collect();
            // Elements of the same bits are the same in any order, equal keys for instance.
            let open = groups.values().filter(|elements| !(exact && are_alike(t, elements)));
            open.flatten().for_each(|&i| each[i] = f64::INFINITY);
            leaf.bounds.hard = Radii::new(each);
            if exact {
                leaf.bounds.open_rows = OpenRows(Some(Arc::new(open_rows.clone())));
            }
        }
    }
}

/// Whether these elements have the same bits.
fn are_alike(t: &Tensor, elements: &[usize]) -> bool {
    let neighbors = [&elements[..elements.len() - 1], &elements[1..]].map(|part| taken(t, part));
    same_buffers(neighbors[0].buffer(), neighbors[1].buffer(), true)
}

/// Of moved elements those that they have.
fn moved(case: &Case<'_>, leaves: &mut [Leaf]) {
    let [leaf] = leaves else { return };
    if case.args.iter().all(|a| a.leaf.bounds.open_rows.0.is_none()) {
        return;
    }
    if copies(case) {
        leaf.bounds.open_rows = case.args[0].leaf.bounds.open_rows.clone();
    } else if let Some(from) = movement::sources(case) {
        let of = |source: movement::Source| {
            let (k, i) = source?;
            case.args[k].leaf.bounds.open_rows.at(i)
        };
        leaf.bounds.open_rows = OpenRows(Some(Arc::new(from.into_iter().map(of).collect())));
    }
}

/// The rows of the elements of a sort's results. `None`: none of them is open, or it is not worked out.
fn of_sort(case: &Case<'_>) -> Option<Vec<Option<OpenRow>>> {
    let first = case.args.first()?.tensor;
    let dim = usize::try_from(*case.instr.attrs.ints(AttrKey::Dimensions)?.first()?).ok()?;
    let same = case.args.iter().all(|a| a.tensor.dims() == first.dims());
    if !same || case.results.len() != case.args.len() {
        return None;
    }
    let stable = case.instr.attrs.bool(AttrKey::IsStable);
    if stable && order::is_strict_weak_order(case) {
        return None;
    }
    let lines = order::lines(first, dim);
    let n = lines.first()?.len();
    let comparisons = lines.len().checked_mul(n.checked_mul(n)?)?;
    if !(2..=MAX_LINE).contains(&n) || comparisons > MAX_COMPARISONS {
        return None;
    }
    let before = comparisons_of(case, &lines, n)?;
    let mut open_rows: Vec<Option<OpenRow>> = vec![None; first.len()];
    for (line, before) in lines.iter().zip(before.chunks_exact(n * n)) {
        let comes = |i: usize, j: usize| before[i * n + j].0;
        let below: Vec<usize> = (0..n).map(|i| (0..n).filter(|&j| comes(j, i)).count()).collect();
        let is_order = (0..n).all(|i| (0..n).all(|j| comes(i, j) == (below[i] < below[j])));
        let certain = before.iter().all(|(_, certain)| *certain);
        if is_order && (stable || !certain) {
            continue;
        }
        // Results are in the reference's order: rows that are not told apart stand together there.
        let mut ranks: Vec<usize> = below;
        ranks.sort_unstable();
        let mut start = 0;
        while start < n {
            let end = match is_order {
                true => start + ranks[start..].iter().take_while(|&&r| r == ranks[start]).count(),
                false => n,
            };
            if end - start > 1 {
                let group = case.settings.account.number();
                for rank in start..end {
                    let (row, rows) = ((rank - start) as u32, (end - start) as u32);
                    open_rows[line[rank]] = Some(OpenRow { group, row, rows });
                }
            }
            start = end;
        }
    }
    open_rows.iter().any(Option::is_some).then_some(open_rows)
}

/// Of each line, for each pair of its elements, whether the comparator puts the first one before the second,
/// and whether every engine sees that so.
fn comparisons_of(case: &Case<'_>, lines: &[Vec<usize>], n: usize) -> Option<Vec<(bool, bool)>> {
    let comparator = case.instr.attrs.computation(AttrKey::ToApply)?;
    let pairs = || lines.iter().flat_map(|line| (0..n * n).map(move |k| (line[k / n], line[k % n])));
    let (left, right): (Vec<usize>, Vec<usize>) = pairs().unzip();
    let at = |tensor: &Tensor, leaf: &Leaf, positions: &[usize]| {
        (taken(tensor, positions), Arc::new(leaf_at(leaf, positions)))
    };
    let args = case.args.iter().flat_map(|a| [at(a.tensor, &a.leaf, &left), at(a.tensor, &a.leaf, &right)]);
    let (values, leaves) = Lifted::new(case, comparator).run(args.unzip())?;
    let ([value], [leaf]) = (&values[..], &leaves[..]) else { return None };
    let each = Numbers::of(value).re.into_iter().enumerate();
    Some(each.map(|(i, x)| (x != 0.0, leaf.bounds.hard.at(i) == 0.0)).collect())
}
