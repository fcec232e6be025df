//! `gather`: windows of an operand, each where an index vector says. Starts are clamped so that every window
//! is inside.

use hlo::literal::BufferOf;
use hlo::{AttrKey, Element, with_buffer};
use hlo_threads::parallel;

use super::common::{arrays, dims, list, number, others};
use super::indexing::{Indexing, Outside, Runs};
use super::strided::{SEQUENTIAL, pack, select, strides};
use super::{Args, Cx};
use crate::error::Result;
use crate::value::{Sizes, Tensor, Value};

/// `gather(operand, indices)`.
pub(super) fn gather(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let [operand, indices] = arrays(args);
    let indexing = Indexing {
        start_index_map: list(cx, AttrKey::StartIndexMap),
        operand_batching: list(cx, AttrKey::OperandBatchingDims),
        indices_batching: list(cx, AttrKey::StartIndicesBatchingDims),
        index_vector_dim: number(cx, AttrKey::IndexVectorDim)?,
    };
    let operand_dims = operand.sizes();
    // A slice as large as the bound of a dynamic dimension is as large as that dimension is now.
    let window: Sizes =
        list(cx, AttrKey::SliceSizes).iter().zip(&operand_dims).map(|(&s, &d)| s.min(d)).collect();
    let collapsed = list(cx, AttrKey::CollapsedSliceDims);
    let kept = select(&window, &others(window.len(), &[&collapsed, &indexing.operand_batching]));
    let batch = indexing.batch_dims(&indices.sizes());
    let layout = ResultLayout::new(&batch, &kept, &list(cx, AttrKey::OffsetDims));

    let positions = indexing.positions(&operand_dims, &window, &indices.sizes());
    let bases = positions.bases(&indices, Outside::Clamp);
    let runs = Runs::new(&operand_dims, &window);
    Ok(with_buffer!(operand.buffer(), x => take(cx, x, &bases, &runs, &layout)?).into())
}

/// The dimensions of the result: which are the batch's, and which the window's.
struct ResultLayout {
    batch: Sizes,
    window: Sizes,
    offset_dims: Sizes,
}

impl ResultLayout {
    fn new(batch: &[usize], window: &[usize], offset_dims: &[usize]) -> Self {
        Self { batch: batch.into(), window: window.into(), offset_dims: offset_dims.into() }
    }

    /// For each dimension of the result its size, and its stride in (batch, window) order.
    fn result(&self) -> (Sizes, Sizes) {
        let joined: Sizes = self.batch.iter().chain(&self.window).copied().collect();
        let joined_strides = strides(&joined);
        let (mut next_batch, mut next_window) = (0, self.batch.len());
        (0..joined.len())
            .map(|d| {
                let next = if self.offset_dims.contains(&d) { &mut next_window } else { &mut next_batch };
                *next += 1;
                (joined[*next - 1], joined_strides[*next - 1])
            })
            .unzip()
    }
}

fn take<T: Element + BufferOf>(
    cx: &Cx<'_>,
    x: &[T],
    bases: &[Option<usize>],
    runs: &Runs,
    layout: &ResultLayout,
) -> Result<Tensor> {
    let n = runs.starts.len() * runs.len;
    let (sizes, steps) = layout.result();
    let mut out = cx.overwritten::<T>(bases.len() * n)?;
    if !out.is_empty() {
        let copy = |(out, base): (&mut [T], &Option<usize>)| {
            let Some(base) = base else { return out.fill(T::default()) };
            if runs.len == 1 {
                for (out, start) in out.iter_mut().zip(&runs.starts) {
                    *out = x[base + start];
                }
            } else {
                for (out, start) in out.chunks_exact_mut(runs.len).zip(&runs.starts) {
                    out.copy_from_slice(&x[base + start..base + start + runs.len]);
                }
            }
        };
        if out.len() < SEQUENTIAL {
            out.chunks_exact_mut(n).zip(bases).for_each(copy);
        } else {
            let least = (SEQUENTIAL / n).max(1);
            parallel::pieces(&mut out, n, least, &|i, out| copy((out, &bases[i])));
        }
    }
    if steps[..] != strides(&sizes)[..] {
        cx.reserve::<T>(out.len())?;
        out = pack(&out, &sizes, &steps);
    }
    Ok(Tensor::from_vec(dims(&sizes), out))
}
