//! `ragged-dot`: contractions in groups. The third operand says how many indices of the ragged dimension
//! belong to each group, group after group; arithmetic is that of `dot`.
//!
//! | the ragged dimension of lhs is | result |
//! |---|---|
//! | free | each of its indices is contracted with the group of rhs that it belongs to; 0 if it belongs to none |
//! | contracting | a leading dimension of groups: each contracts the indices that belong to it |
//! | batch | `dot`, but 0 in batches that belong to no group |
//!
//! Group sizes may have leading dimensions: the batch (and then the free) dimensions of lhs before the ragged
//! one.

use hlo::literal::{Buffer, BufferOf};
use hlo::{AttrKey, with_buffer};

use super::common::{arrays, dims, integers, list, others};
use super::dot::{Side, check_precision, product, sides};
use super::strided::{pack, select, strides};
use super::{Args, Cx};
use crate::error::Result;
use crate::value::{Sizes, Tensor, Value};

/// `ragged-dot(lhs, rhs, group sizes)`.
pub(super) fn ragged_dot(cx: &Cx<'_>, args: Args) -> Result<Value> {
    check_precision(cx)?;
    let [lhs, rhs, groups] = arrays(args);
    let (left, right) = sides(cx);
    let [ragged] = list(cx, AttrKey::LhsRaggedDims)[..] else {
        return Err(cx.unsupported("with other than one ragged dimension"));
    };
    let op = Ragged { cx, ragged, groups: Groups::new(&groups), left, right };
    let result = if op.left.contracting.contains(&ragged) {
        op.contracting(lhs, rhs)?
    } else if op.left.batch.contains(&ragged) {
        op.batch(lhs, rhs)?
    } else {
        op.free(lhs, rhs)?
    };
    Ok(result.into())
}

/// Group sizes: for each index of the leading dimensions a list.
struct Groups {
    sizes: Vec<i64>,
    count: usize,
    leading: usize,
}

impl Groups {
    fn new(x: &Tensor) -> Self {
        let count = x.sizes().last().copied().unwrap_or(1);
        Self { sizes: integers(x), count, leading: x.rank().saturating_sub(1) }
    }

    /// For each group the indices that belong to it, below `n`. An index belongs to the first group that ends
    /// after it.
    fn ranges(&self, list: usize, n: usize) -> Vec<std::ops::Range<usize>> {
        let (mut end, mut reached) = (0i64, 0usize);
        self.sizes[list * self.count..(list + 1) * self.count]
            .iter()
            .map(|&size| {
                end = end.saturating_add(size);
                let start = reached;
                reached = reached.max(usize::try_from(end).unwrap_or(0).min(n));
                start..reached
            })
            .collect()
    }

    /// For each group the indices from where the groups before it end to where it ends, clamped to `0..n`.
    fn cut_ranges(&self, list: usize, n: usize) -> Vec<std::ops::Range<usize>> {
        let mut end = 0i64;
        let cut = |x: i64| usize::try_from(x).unwrap_or(0).min(n);
        self.sizes[list * self.count..(list + 1) * self.count]
            .iter()
            .map(|&size| {
                let start = end;
                end = end.saturating_add(size);
                cut(start)..cut(end).max(cut(start))
            })
            .collect()
    }
}

struct Ragged<'a> {
    cx: &'a Cx<'a>,
    ragged: usize,
    groups: Groups,
    left: Side,
    right: Side,
}

impl Ragged<'_> {
    /// The tensor with its dimensions in another order.
    fn ordered(&self, x: &Tensor, order: &[usize]) -> Result<Tensor> {
        self.cx.session.check_memory(self.cx.instr, Some(x.bytes()))?;
        let sizes = x.sizes();
        let (new_sizes, new_steps) = (select(&sizes, order), select(&strides(&sizes), order));
        let buffer: Buffer = with_buffer!(x.buffer(), v => BufferOf::wrap(pack(v, &new_sizes, &new_steps)));
        Ok(Tensor::new(dims(&new_sizes), buffer))
    }

    /// Part of a tensor along its first dimension.
    fn rows(x: &Tensor, range: std::ops::Range<usize>) -> Tensor {
        let mut sizes = x.sizes();
        let row: usize = sizes[1..].iter().product();
        sizes[0] = range.len();
        let buffer: Buffer =
            with_buffer!(x.buffer(), v => BufferOf::wrap(v[range.start * row..range.end * row].to_vec()));
        Tensor::new(dims(&sizes), buffer)
    }

    fn reshaped(x: Tensor, sizes: &[usize]) -> Tensor {
        x.reshaped(dims(sizes))
    }

    /// `[a, k] x [k, n]`, of dense matrices.
    fn multiply(&self, a: Tensor, b: Tensor) -> Result<Tensor> {
        let side =
            |contracting: usize| Side { batch: Sizes::new(), contracting: Sizes::from_elem(contracting, 1) };
        product(self.cx, a, &side(1), b, &side(0), super::contract::sum_type(self.cx))
    }

    fn free(&self, lhs: Tensor, rhs: Tensor) -> Result<Tensor> {
        let [group_dim] = list(self.cx, AttrKey::RhsGroupDims)[..] else {
            return Err(self.cx.unsupported("with other than one group dimension"));
        };
        let (lhs_sizes, rhs_sizes) = (lhs.sizes(), rhs.sizes());
        let free = self.left.free(lhs_sizes.len());
        let still: Sizes = free.iter().copied().filter(|&d| d != self.ragged).collect();
        let columns = others(rhs_sizes.len(), &[&self.right.batch, &self.right.contracting, &[group_dim]]);
        let size = |sizes: &Sizes, dims: &[usize]| select(sizes, dims).iter().product::<usize>();
        let (batch, rest) = (size(&lhs_sizes, &self.left.batch), size(&lhs_sizes, &still));
        let (m, k, n) =
            (lhs_sizes[self.ragged], size(&lhs_sizes, &self.left.contracting), size(&rhs_sizes, &columns));
        let count = rhs_sizes[group_dim];

        let order = [&self.left.batch[..], &still, &[self.ragged], &self.left.contracting].concat();
        let lhs = Self::reshaped(self.ordered(&lhs, &order)?, &[batch * rest * m, k]);
        let order = [&self.right.batch[..], &[group_dim], &self.right.contracting, &columns].concat();
        let rhs = Self::reshaped(self.ordered(&rhs, &order)?, &[batch * count * k, n]);

        // Which list of sizes a batch and the free dimensions but the ragged one have.
        let leading: Sizes = [&self.left.batch[..], &still].concat().into_iter().collect();
        let below: usize = leading.iter().skip(self.groups.leading).map(|&d| lhs_sizes[d]).product();
        let ty = super::contract::sum_type(self.cx);
        let mut out = Buffer::zeros(ty, batch * rest * m * n);
        self.cx.session.check_memory(self.cx.instr, Some(out.len() as u64 * ty.storage_bytes() as u64))?;
        for outer in 0..batch * rest {
            let ranges = self.groups.ranges(outer.checked_div(below).unwrap_or(0), m);
            for (group, range) in ranges.into_iter().enumerate().take(count) {
                if range.is_empty() {
                    continue;
                }
                let a = Self::rows(&lhs, outer * m + range.start..outer * m + range.end);
                let first = (outer / rest * count + group) * k;
                let part = self.multiply(a, Self::rows(&rhs, first..first + k))?.into_buffer();
                with_buffer!(&mut out, out => put(out, (outer * m + range.start) * n, &part));
            }
        }
        // From (batch, free but ragged, ragged, columns) to free dimensions in their order.
        let kept = [&self.left.batch[..], &still, &[self.ragged]].concat();
        let mut sizes = select(&lhs_sizes, &kept);
        sizes.extend(select(&rhs_sizes, &columns));
        let wanted = [&self.left.batch[..], &free].concat();
        let position = |d: &usize| kept.iter().position(|k| k == d);
        let order: Sizes = wanted.iter().filter_map(position).chain(kept.len()..sizes.len()).collect();
        self.ordered(&Tensor::new(dims(&sizes), out), &order)
    }

    fn contracting(&self, lhs: Tensor, rhs: Tensor) -> Result<Tensor> {
        let (lhs_sizes, rhs_sizes) = (lhs.sizes(), rhs.sizes());
        let (rows, columns) = (self.left.free(lhs_sizes.len()), self.right.free(rhs_sizes.len()));
        let at = self.left.contracting.iter().position(|&d| d == self.ragged);
        let Some(at) = at else { return Err(self.cx.unsupported("without its ragged dimension")) };
        let without =
            |dims: &Sizes| -> Sizes { (0..dims.len()).filter(|&i| i != at).map(|i| dims[i]).collect() };
        let (lhs_rest, rhs_rest) = (without(&self.left.contracting), without(&self.right.contracting));
        let size = |sizes: &Sizes, dims: &[usize]| select(sizes, dims).iter().product::<usize>();
        let (batch, rest, ragged) =
            (size(&lhs_sizes, &self.left.batch), size(&lhs_sizes, &lhs_rest), lhs_sizes[self.ragged]);
        let (m, n) = (size(&lhs_sizes, &rows), size(&rhs_sizes, &columns));

        // The ragged dimension first in each batch, so that a group is a range of rows.
        let order = [&self.left.batch[..], &[self.ragged], &lhs_rest, &rows].concat();
        let lhs = Self::reshaped(self.ordered(&lhs, &order)?, &[batch * ragged, rest * m]);
        let order = [&self.right.batch[..], &[self.right.contracting[at]], &rhs_rest, &columns].concat();
        let rhs = Self::reshaped(self.ordered(&rhs, &order)?, &[batch * ragged, rest * n]);

        let count = self.groups.count;
        let below: usize = self.left.batch.iter().skip(self.groups.leading).map(|&d| lhs_sizes[d]).product();
        let ty = super::contract::sum_type(self.cx);
        let mut out = Buffer::zeros(ty, count * batch * m * n);
        for b in 0..batch {
            let ranges = self.groups.cut_ranges(b.checked_div(below).unwrap_or(0), ragged);
            for (group, range) in ranges.into_iter().enumerate() {
                let length = range.len();
                let rows = b * ragged + range.start..b * ragged + range.end;
                // (rest, ragged) is the order of terms.
                let a = Self::reshaped(Self::rows(&lhs, rows.clone()), &[length, rest, m]);
                let a = Self::reshaped(self.ordered(&a, &[2, 1, 0])?, &[m, rest * length]);
                let c = Self::reshaped(Self::rows(&rhs, rows), &[length, rest, n]);
                let c = Self::reshaped(self.ordered(&c, &[1, 0, 2])?, &[rest * length, n]);
                let part = self.multiply(a, c)?.into_buffer();
                with_buffer!(&mut out, out => put(out, (group * batch + b) * m * n, &part));
            }
        }
        let mut sizes = Sizes::from_elem(count, 1);
        sizes.extend(select(&lhs_sizes, &self.left.batch));
        sizes.extend(select(&lhs_sizes, &rows));
        sizes.extend(select(&rhs_sizes, &columns));
        Ok(Tensor::new(dims(&sizes), out))
    }

    fn batch(&self, lhs: Tensor, rhs: Tensor) -> Result<Tensor> {
        let lhs_sizes = lhs.sizes();
        let ty = super::contract::sum_type(self.cx);
        let result = product(self.cx, lhs, &self.left, rhs, &self.right, ty)?;
        let leading: usize =
            self.left.batch.iter().take(self.groups.leading).map(|&d| lhs_sizes[d]).product();
        let ragged = lhs_sizes[self.ragged];
        let block = result.len().checked_div(leading * ragged).unwrap_or(0);
        let sizes = result.sizes();
        let mut out = result.into_buffer();
        for list in 0..leading {
            let sizes = &self.groups.sizes[list * self.groups.count..(list + 1) * self.groups.count];
            let handled = sizes.iter().fold(0i64, |sum, &size| sum.saturating_add(size));
            let handled = usize::try_from(handled).unwrap_or(0).min(ragged);
            let first = (list * ragged + handled) * block;
            let end = (list + 1) * ragged * block;
            with_buffer!(&mut out, out => out[first..end].fill(Default::default()));
        }
        Ok(Tensor::new(dims(&sizes), out))
    }
}

fn put<T: BufferOf>(out: &mut [T], at: usize, part: &Buffer) {
    let part = T::slice(part).expect("invariant: a part has the type of the whole");
    out[at..at + part.len()].copy_from_slice(part);
}
