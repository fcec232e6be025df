//! `scatter`: combines updates into an operand, each window where an index vector says.
//!
//! The combiner is applied literally, `operand = f(operand, update)`, in the order of the index vectors and,
//! within a window, of its elements, both row-major. A window that reaches outside the operand is dropped
//! whole.

use hlo::literal::{Buffer, BufferOf};
use hlo::{AttrKey, Opcode, with_buffer};

use super::combine::{Combine, With};
use super::common::{dims, list, number, others, region, results as results_of, same_types};
use super::indexing::{Indexing, Outside, Runs};
use super::strided::{pack, select, strides};
use super::{Args, Cx};
use crate::error::Result;
use crate::region::{LANES, Region};
use crate::value::{Sizes, Tensor, Value};

/// `scatter(operands..., indices, updates...)`.
pub(super) fn scatter(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let count = args.len() / 2;
    let mut args = args.into_iter().map(Value::into_array);
    let operands: Vec<Tensor> = args.by_ref().take(count).collect();
    let (Some(indices), Some(first)) = (args.next(), operands.first()) else {
        return Err(cx.unsupported("without operands"));
    };
    let updates: Vec<Tensor> = args.collect();

    let indexing = Indexing {
        start_index_map: list(cx, AttrKey::ScatterDimsToOperandDims),
        operand_batching: list(cx, AttrKey::InputBatchingDims),
        indices_batching: list(cx, AttrKey::ScatterIndicesBatchingDims),
        index_vector_dim: number(cx, AttrKey::IndexVectorDim)?,
    };
    let operand_dims = first.sizes();
    let window_dims = list(cx, AttrKey::UpdateWindowDims);
    let inserted = list(cx, AttrKey::InsertedWindowDims);
    let window =
        window(&operand_dims, &updates[0].sizes(), &window_dims, &[&inserted, &indexing.operand_batching]);
    let bases = indexing.bases(&operand_dims, &window, &indices, Outside::Drop);
    let plan = Plan { bases, runs: Runs::new(&operand_dims, &window) };

    let region = region(cx, AttrKey::ToApply)?;
    same_types(cx, &region, operands.iter().chain(&updates).enumerate())?;
    let updates: Vec<Buffer> = updates.iter().map(|u| batch_first(u, &window_dims)).collect();
    let result_dims: Vec<hlo::Dims> = operands.iter().map(|o| dims(&o.sizes())).collect();
    for operand in &operands {
        // A shared operand is copied.
        cx.session.check_memory(cx.instr, Some(operand.bytes()))?;
    }
    let mut operands: Vec<Buffer> = operands.into_iter().map(Tensor::into_buffer).collect();

    let done = match (region.as_parameter(), region.as_binary(), &mut operands[..], &updates[..]) {
        (Some(0), _, [_], [_]) => true,
        (Some(1), _, [operand], [updates]) => {
            with_buffer!(operand, x => plan.combine(x, updates, |_, update| update));
            true
        }
        (None, Some((op, _)), [operand], [updates]) => {
            with_buffer!(operand, x => plan.combine_with(op, x, updates))
        }
        _ => false,
    };
    if done {
        cx.applied(&region, plan.bases.iter().flatten().count() * plan.window());
    } else {
        combine_in_order(cx, &region, &mut operands, &updates, plan.pairs(), UpdatesAre::Last)?;
    }
    let results = result_dims.into_iter().zip(operands);
    Ok(results_of(cx, results.map(|(dims, buffer)| Tensor::new(dims, buffer).into()).collect()))
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

/// The updates with the window's dimensions last.
fn batch_first(updates: &Tensor, window_dims: &[usize]) -> Buffer {
    let sizes = updates.sizes();
    let order: Sizes =
        others(sizes.len(), &[window_dims]).into_iter().chain(window_dims.iter().copied()).collect();
    let steps = strides(&sizes);
    with_buffer!(updates.buffer(), u => BufferOf::wrap(pack(u, &select(&sizes, &order), &select(&steps, &order))))
}

/// Where the updates go, (batch, window) row-major.
struct Plan {
    bases: Vec<Option<usize>>,
    runs: Runs,
}

impl Plan {
    /// Elements of a window.
    fn window(&self) -> usize {
        self.runs.starts.len() * self.runs.len
    }

    /// Calls `each` with the offset of a run in the operand and the updates that go there.
    fn for_each_run(&self, mut each: impl FnMut(usize, std::ops::Range<usize>)) {
        let (window, len) = (self.window(), self.runs.len);
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
            plan: &'a Plan,
            operand: &'a mut [T],
            updates: &'a Buffer,
        }
        impl<T: Combine> With<T> for Loop<'_, T> {
            type Output = ();
            fn with(self, f: impl Fn(T, T) -> T + Copy + Send + Sync) {
                self.plan.combine(self.operand, self.updates, f);
            }
        }
        T::combine(op, Loop { plan: self, operand, updates }).is_some()
    }

    /// All pairs of an offset in the operand and the update that goes there, in order.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let (window, len) = (self.window(), self.runs.len);
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
pub(super) fn combine_in_order(
    cx: &Cx<'_>,
    region: &Region,
    operands: &mut [Buffer],
    updates: &[Buffer],
    pairs: impl Iterator<Item = (usize, usize)>,
    order: UpdatesAre,
) -> Result<()> {
    let mut block = Block::new();
    let mut lanes = region.lanes();
    let (operand_at, update_at) = match order {
        UpdatesAre::First => (operands.len(), 0),
        UpdatesAre::Last => (0, operands.len()),
    };
    let mut flush = |block: &mut Block, operands: &mut [Buffer]| -> Result<()> {
        for (i, (operand, update)) in operands.iter().zip(updates).enumerate() {
            with_buffer!(operand, x => gather_lanes(x, &block.to, lanes.input(operand_at + i)));
            with_buffer!(update, x => gather_lanes(x, &block.from, lanes.input(update_at + i)));
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

fn gather_lanes<T: Copy>(x: &[T], places: &[usize], lanes: &mut [T]) {
    lanes.iter_mut().zip(places).for_each(|(lane, &at)| *lane = x[at]);
}

fn scatter_lanes<T: Copy>(lanes: &[T], places: &[usize], x: &mut [T]) {
    lanes.iter().zip(places).for_each(|(&lane, &at)| x[at] = lane);
}

/// Updates that may be applied at once, because no two go to the same element.
struct Block {
    to: Vec<usize>,
    from: Vec<usize>,
    /// For each bucket of offsets the number of the block that last had one in it.
    seen: Vec<u32>,
    number: u32,
}

impl Block {
    const BUCKETS: usize = 1 << 16;

    fn new() -> Self {
        Self {
            to: Vec::with_capacity(LANES),
            from: Vec::with_capacity(LANES),
            seen: vec![0; Self::BUCKETS],
            number: 1,
        }
    }

    /// Whether the block has capacity left, and `to` certainly differs from all offsets so far.
    fn admits(&self, to: usize) -> bool {
        self.to.len() < LANES && self.seen[to % Self::BUCKETS] != self.number
    }

    fn push(&mut self, to: usize, from: usize) {
        self.seen[to % Self::BUCKETS] = self.number;
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
