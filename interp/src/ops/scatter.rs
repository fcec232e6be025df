//! `scatter`: combines updates into an operand, each window where an index vector says.
//!
//! The combiner is applied literally, `operand = f(operand, update)`, in the order of the index vectors and,
//! within a window, of its elements, both row-major. A window that reaches outside the operand is dropped
//! whole.

use std::borrow::{Borrow, Cow};

use hlo::literal::{Buffer, BufferOf};
use hlo::{AttrKey, Dims, Opcode, with_buffer};
use smallvec::SmallVec;

use super::combine::{Combine, With};
use super::common::{list, number, others, region, results as results_of, same_types};
use super::indexing::{Indexing, Outside, Positions, Runs};
use super::strided::{pack, select, strides};
use super::{Args, Cx};
use crate::error::Result;
use crate::region::{LANES, Region};
use crate::value::{Sizes, Tensor, Value};

/// `scatter(operands..., indices, updates...)`.
pub(super) fn scatter(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let count = args.len() / 2;
    let mut args = args.into_iter().map(Value::into_array);
    let operands: SmallVec<[Tensor; 1]> = args.by_ref().take(count).collect();
    let Some(indices) = args.next() else { return Err(cx.unsupported("without operands")) };
    let updates: SmallVec<[Tensor; 1]> = args.collect();
    let (Some(first), Some(first_update)) = (operands.first(), updates.first()) else {
        return Err(cx.unsupported("without operands"));
    };

    let plan = cx.plan(
        |plan: &Plan| plan.is_of(first, &indices, first_update),
        Plan::is_small,
        || Plan::new(cx, first, &indices, first_update),
    )?;
    let region = region(cx, AttrKey::ToApply)?;
    same_types(cx, &region, operands.iter().chain(&updates).enumerate())?;
    for operand in &operands {
        // A shared operand is copied.
        cx.session.check_memory(cx.instr, Some(operand.bytes()))?;
    }
    let dims = Dims::from_slice(first.dims());
    let bases = plan.positions.bases(&indices, Outside::Drop);
    let updates: SmallVec<[Cow<'_, Buffer>; 1]> = updates.iter().map(|u| plan.batch_first(u)).collect();
    let mut operands: SmallVec<[Buffer; 1]> = operands.into_iter().map(Tensor::into_buffer).collect();
    let windows = Windows { bases, runs: &plan.runs };

    let done = match (region.as_parameter(), region.as_binary(), &mut operands[..], &updates[..]) {
        (Some(0), _, [_], [_]) => true,
        (Some(1), _, [operand], [updates]) => {
            with_buffer!(operand, x => windows.combine(x, updates, |_, update| update));
            true
        }
        (None, Some((op, _)), [operand], [updates]) => {
            with_buffer!(operand, x => windows.combine_with(op, x, updates))
        }
        _ => false,
    };
    if done {
        cx.applied(&region, windows.bases.iter().flatten().count() * windows.size());
    } else {
        combine_in_order(cx, &region, &mut operands, &updates, windows.pairs(), UpdatesAre::Last)?;
    }
    Ok(results_of(cx, operands.into_iter().map(|buffer| Tensor::new(dims.clone(), buffer).into())))
}

/// The plan, which follows from attributes and sizes.
#[derive(Debug)]
struct Plan {
    /// Of operands, indices and updates.
    sizes: [Dims; 3],
    positions: Positions,
    runs: Runs,
    /// Sizes and strides of the updates with the window's dimensions last, unless these are last.
    order: Option<(Sizes, Sizes)>,
}

impl Plan {
    /// Positions and runs up to which a plan is kept.
    const SMALL: usize = 1 << 10;

    fn new(cx: &Cx<'_>, operand: &Tensor, indices: &Tensor, updates: &Tensor) -> Result<Self> {
        let indexing = Indexing {
            start_index_map: list(cx, AttrKey::ScatterDimsToOperandDims),
            operand_batching: list(cx, AttrKey::InputBatchingDims),
            indices_batching: list(cx, AttrKey::ScatterIndicesBatchingDims),
            index_vector_dim: number(cx, AttrKey::IndexVectorDim)?,
        };
        let (operand_sizes, update_sizes) = (operand.sizes(), updates.sizes());
        let window_dims = list(cx, AttrKey::UpdateWindowDims);
        let inserted = list(cx, AttrKey::InsertedWindowDims);
        let window =
            window(&operand_sizes, &update_sizes, &window_dims, &[&inserted, &indexing.operand_batching]);
        let order: Sizes =
            others(update_sizes.len(), &[&window_dims]).into_iter().chain(window_dims).collect();
        let steps = strides(&update_sizes);
        Ok(Self {
            sizes: [operand, indices, updates].map(|x| Dims::from_slice(x.dims())),
            positions: indexing.positions(&operand_sizes, &window, &indices.sizes()),
            runs: Runs::new(&operand_sizes, &window),
            order: (!order.is_sorted()).then(|| (select(&update_sizes, &order), select(&steps, &order))),
        })
    }

    fn is_of(&self, operand: &Tensor, indices: &Tensor, updates: &Tensor) -> bool {
        self.sizes.iter().zip([operand, indices, updates]).all(|(sizes, x)| **sizes == *x.dims())
    }

    fn is_small(&self) -> bool {
        self.positions.len() <= Self::SMALL && self.runs.starts.len() <= Self::SMALL
    }

    /// The updates with the window's dimensions last.
    fn batch_first<'u>(&self, updates: &'u Tensor) -> Cow<'u, Buffer> {
        match &self.order {
            None => Cow::Borrowed(updates.buffer()),
            Some((sizes, steps)) => {
                Cow::Owned(with_buffer!(updates.buffer(), u => BufferOf::wrap(pack(u, sizes, steps))))
            }
        }
    }
}

/// The window's size along each dimension of the operand: that of the updates, 1 where they have no dimension
/// for it.
fn window(operand: &[usize], updates: &[usize], window_dims: &[usize], absent: &[&[usize]]) -> Sizes {
    let mut window = Sizes::from_elem(1, operand.len());
    for (&to, &from) in others(operand.len(), absent).iter().zip(window_dims) {
        window[to] = updates[from];
    }
    window
}

/// The offsets of the updates in the operand, (batch, window) row-major.
struct Windows<'p> {
    bases: Vec<Option<usize>>,
    runs: &'p Runs,
}

impl Windows<'_> {
    /// Elements of a window.
    fn size(&self) -> usize {
        self.runs.starts.len() * self.runs.len
    }

    /// Calls `each` with the offset of a run in the operand and the updates that go there.
    fn for_each_run(&self, mut each: impl FnMut(usize, std::ops::Range<usize>)) {
        let (window, len) = (self.size(), self.runs.len);
        if window == 0 {
            return;
        }
        for (batch, base) in self.bases.iter().enumerate() {
            let Some(base) = base else { continue };
            for (run, start) in self.runs.starts.iter().enumerate() {
                let from = batch * window + run * len;
                each(base + start, from..from + len);
            }
        }
    }

    fn combine<T: BufferOf>(&self, operand: &mut [T], updates: &Buffer, f: impl Fn(T, T) -> T) {
        let updates = T::slice(updates)
            .expect("invariant: the verifier checked that updates are of the operand's type");
        self.for_each_run(|at, from| {
            for (x, &update) in operand[at..at + from.len()].iter_mut().zip(&updates[from]) {
                *x = f(*x, update);
            }
        });
    }

    /// Whether the operation is one that the type has; then it is done.
    fn combine_with<T: Combine>(&self, op: Opcode, operand: &mut [T], updates: &Buffer) -> bool {
        struct Loop<'a, T> {
            windows: &'a Windows<'a>,
            operand: &'a mut [T],
            updates: &'a Buffer,
        }
        impl<T: Combine> With<T> for Loop<'_, T> {
            type Output = ();
            fn with(self, f: impl Fn(T, T) -> T + Copy + Send + Sync) {
                self.windows.combine(self.operand, self.updates, f);
            }
        }
        T::combine(op, Loop { windows: self, operand, updates }).is_some()
    }

    /// All pairs of an offset in the operand and the update that goes there, in order.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let (window, len) = (self.size(), self.runs.len);
        let windows = self.bases.iter().enumerate().filter_map(|(batch, base)| Some((batch, (*base)?)));
        windows.flat_map(move |(batch, base)| {
            self.runs.starts.iter().enumerate().flat_map(move |(run, start)| {
                let from = batch * window + run * len;
                (base + start..).zip(from..from + len)
            })
        })
    }
}

/// Which parameters of a combiner the updates are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum UpdatesAre {
    /// The first ones, as in `select-and-scatter`.
    First,
    /// The last ones, as in `scatter`.
    Last,
}

/// Applies any combiner to pairs of an offset in the operands and one in the updates, in order, over blocks
/// of pairs whose offsets differ. The types of operands and updates are those of the region's parameters.
pub(super) fn combine_in_order<U: Borrow<Buffer>>(
    cx: &Cx<'_>,
    region: &Region,
    operands: &mut [Buffer],
    updates: &[U],
    pairs: impl Iterator<Item = (usize, usize)>,
    order: UpdatesAre,
) -> Result<()> {
    let most = updates.first().map_or(0, |u| u.borrow().len());
    let mut block = Block::new(most, operands.first().map_or(0, Buffer::len));
    let mut lanes = region.lanes(most);
    let (operand_at, update_at) = match order {
        UpdatesAre::First => (operands.len(), 0),
        UpdatesAre::Last => (0, operands.len()),
    };
    let mut flush = |block: &mut Block, operands: &mut [Buffer]| -> Result<()> {
        for (i, (operand, update)) in operands.iter().zip(updates).enumerate() {
            with_buffer!(operand, x => gather_lanes(x, &block.to, lanes.input(operand_at + i)));
            with_buffer!(update.borrow(), x => gather_lanes(x, &block.from, lanes.input(update_at + i)));
        }
        region.eval(cx, &mut lanes, block.to.len())?;
        for (i, operand) in operands.iter_mut().enumerate() {
            with_buffer!(operand, x => scatter_lanes(lanes.output(i), &block.to, x));
        }
        block.clear();
        Ok(())
    };
    for (to, from) in pairs {
        if !block.admits(to) {
            flush(&mut block, operands)?;
        }
        block.push(to, from);
    }
    flush(&mut block, operands)
}

fn gather_lanes<T: Copy>(x: &[T], offsets: &[usize], lanes: &mut [T]) {
    lanes.iter_mut().zip(offsets).for_each(|(lane, &at)| *lane = x[at]);
}

fn scatter_lanes<T: Copy>(lanes: &[T], offsets: &[usize], x: &mut [T]) {
    lanes.iter().zip(offsets).for_each(|(&lane, &at)| x[at] = lane);
}

/// Updates that may be applied at once, because no two go to the same element.
struct Block {
    to: Vec<usize>,
    from: Vec<usize>,
    /// For each bucket of offsets (a power of two) the number of the block that last had one in it.
    seen: Vec<u32>,
    number: u32,
}

impl Block {
    const MAX_BUCKETS: usize = 1 << 16;

    /// For at most `updates` updates of `elements` elements.
    fn new(updates: usize, elements: usize) -> Self {
        let capacity = updates.min(LANES);
        Self {
            to: Vec::with_capacity(capacity),
            from: Vec::with_capacity(capacity),
            seen: vec![0; elements.min(Self::MAX_BUCKETS).next_power_of_two()],
            number: 1,
        }
    }

    fn bucket(&self, to: usize) -> usize {
        to & (self.seen.len() - 1)
    }

    /// Whether the block has capacity left, and `to` certainly differs from all offsets so far.
    fn admits(&self, to: usize) -> bool {
        self.to.len() < LANES && self.seen[self.bucket(to)] != self.number
    }

    fn push(&mut self, to: usize, from: usize) {
        let bucket = self.bucket(to);
        self.seen[bucket] = self.number;
        self.to.push(to);
        self.from.push(from);
    }

    fn clear(&mut self) {
        self.to.clear();
        self.from.clear();
        self.number = self.number.wrapping_add(1);
        if self.number == 0 {
            self.seen.fill(0);
            self.number = 1;
        }
    }
}
