//! The positions of the windows of `gather` and `scatter`.
//!
//! Both address an operand by vectors of indices. The dimensions of the index array but the one that holds
//! the vectors are the batch; for each of its positions there is a window of the operand, of one size for
//! all. A component of the vector says where the window starts along one dimension of the operand; along a
//! batching dimension the window is one element, at the position's own index in the batch; along all others
//! it starts at 0.

use super::common::{integers, others};
use super::strided::{offsets, select, strides};
use crate::value::{Sizes, Tensor};

/// The dimension numbers that `gather` and `scatter` have in common, by their names in `gather`.
#[derive(Debug)]
pub(super) struct Indexing {
    /// The operand's dimension that each component of an index vector addresses.
    pub(super) start_index_map: Sizes,
    /// Batching dimensions of the operand.
    pub(super) operand_batching: Sizes,
    /// The dimensions of the index array that go with them.
    pub(super) indices_batching: Sizes,
    /// Where the components are; the index array's rank if each vector is one number.
    pub(super) index_vector_dim: usize,
}

/// What becomes of a window that reaches outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outside {
    /// It is moved inside.
    Clamp,
    /// There is none.
    Drop,
}

impl Indexing {
    /// Sizes of the batch dimensions of an index array.
    pub(super) fn batch_dims(&self, indices: &[usize]) -> Sizes {
        select(indices, &others(indices.len(), &[&[self.index_vector_dim]]))
    }

    /// For each position of the batch, in row-major order, the offset of its window's first element in the
    /// operand, or `None` if the window is dropped. `window` has the window's size for each dimension of the
    /// operand.
    pub(super) fn bases(
        &self,
        operand: &[usize],
        window: &[usize],
        indices: &Tensor,
        outside: Outside,
    ) -> Vec<Option<usize>> {
        let operand_strides = strides(operand);
        let index_dims = indices.sizes();
        // Of vectors without components positions are apart all the same.
        let mut apart = index_dims.clone();
        if let Some(components) = apart.get_mut(self.index_vector_dim) {
            *components = (*components).max(1);
        }
        let index_strides = strides(&apart);
        let batch = others(index_dims.len(), &[&[self.index_vector_dim]]);
        let component_stride = index_strides.get(self.index_vector_dim).copied().unwrap_or(0);
        let values = integers(indices);
        // The last start at which a window still fits.
        let last: Vec<Option<usize>> = operand.iter().zip(window).map(|(&d, &w)| d.checked_sub(w)).collect();
        if last.contains(&None) {
            let n = batch.iter().map(|&d| index_dims[d]).product();
            return vec![None; n];
        }
        let positions = offsets(&select(&index_dims, &batch), &select(&index_strides, &batch));
        let base = |at: usize| {
            let mut base = 0;
            for (component, &d) in self.start_index_map.iter().enumerate() {
                let last = last[d].unwrap_or(0);
                let index = values[at + component * component_stride];
                let start = match (usize::try_from(index), outside) {
                    (Ok(index), _) if index <= last => index,
                    (_, Outside::Drop) => return None,
                    (Ok(_), Outside::Clamp) => last,
                    (Err(_), Outside::Clamp) => 0,
                };
                base += start * operand_strides[d];
            }
            for (&d, &from) in self.operand_batching.iter().zip(&self.indices_batching) {
                base += at / index_strides[from] % index_dims[from] * operand_strides[d];
            }
            Some(base)
        };
        positions.into_iter().map(base).collect()
    }
}

/// The offsets of a window's elements relative to its first, as runs of successive elements.
#[derive(Debug)]
pub(super) struct Runs {
    /// Where each run begins, in row-major order.
    pub(super) starts: Vec<usize>,
    /// How long each is.
    pub(super) len: usize,
}

impl Runs {
    /// For a window of these sizes in a dense operand of those.
    pub(super) fn new(operand: &[usize], window: &[usize]) -> Self {
        let strides = strides(operand);
        // Trailing dimensions that the window covers whole, and one more.
        let mut outer = window.len();
        let mut len = 1;
        while outer > 0 && strides[outer - 1] <= len {
            outer -= 1;
            len *= window[outer];
        }
        Runs { starts: offsets(&window[..outer], &strides[..outer]), len }
    }
}
