//! The positions of the windows of `gather` and `scatter`.
//!
//! Both address an operand by vectors of indices. The dimensions of the index array but the one that holds
//! the vectors are the batch; for each of its positions there is a window of the operand, of one size for
//! all. A component of the vector says where the window starts along one dimension of the operand; along a
//! batching dimension the window is one element, at the position's own index in the batch; along all others
//! it starts at 0.

use smallvec::SmallVec;

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
    /// The dimension of the components; the index array's rank if each vector is one number.
    pub(super) index_vector_dim: usize,
}

/// The treatment of windows out of bounds.
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

    /// Where the windows are, as far as sizes say it. `window` has the window's size for each dimension of
    /// the operand.
    pub(super) fn positions(&self, operand: &[usize], window: &[usize], index_dims: &[usize]) -> Positions {
        let operand_strides = strides(operand);
        // Of vectors without components positions are apart all the same.
        let mut apart = Sizes::from_slice(index_dims);
        if let Some(components) = apart.get_mut(self.index_vector_dim) {
            *components = (*components).max(1);
        }
        let index_strides = strides(&apart);
        let batch = others(index_dims.len(), &[&[self.index_vector_dim]]);
        let component_stride = index_strides.get(self.index_vector_dim).copied().unwrap_or(0);
        let fits = operand.iter().zip(window).all(|(d, w)| w <= d);
        let component = |(component, &d): (usize, &usize)| Component {
            offset: component * component_stride,
            last: operand[d].saturating_sub(window[d]),
            stride: operand_strides[d],
        };
        let along = |at: usize| -> usize {
            let batching = self.operand_batching.iter().zip(&self.indices_batching);
            batching.map(|(&d, &from)| at / index_strides[from] % index_dims[from] * operand_strides[d]).sum()
        };
        let batch = offsets(&select(index_dims, &batch), &select(&index_strides, &batch));
        Positions {
            batch: batch.into_iter().map(|at| (at, along(at))).collect(),
            components: self.start_index_map.iter().enumerate().map(component).collect(),
            fits,
        }
    }
}

/// The windows of arrays of certain sizes, but for the indices.
#[derive(Debug)]
pub(super) struct Positions {
    /// For each position of the batch, in row-major order: where its vector begins in the index array, and
    /// the offset in the operand of the batching dimensions.
    batch: Vec<(usize, usize)>,
    components: SmallVec<[Component; 4]>,
    /// No window is larger than the operand.
    fits: bool,
}

/// A component of the index vectors.
#[derive(Debug)]
struct Component {
    /// Its offset from the beginning of the vector.
    offset: usize,
    /// The last start at which a window still fits.
    last: usize,
    /// The stride of its dimension in the operand.
    stride: usize,
}

impl Positions {
    /// The number of windows.
    pub(super) fn len(&self) -> usize {
        self.batch.len()
    }

    /// For each window the offset of its first element in the operand, or `None` if it is dropped.
    pub(super) fn bases(&self, indices: &Tensor, outside: Outside) -> Vec<Option<usize>> {
        if !self.fits {
            return vec![None; self.batch.len()];
        }
        let values = integers(indices);
        let base = |&(at, along): &(usize, usize)| {
            let mut base = along;
            for component in &self.components {
                let start = match (usize::try_from(values[at + component.offset]), outside) {
                    (Ok(index), _) if index <= component.last => index,
                    (_, Outside::Drop) => return None,
                    (Ok(_), Outside::Clamp) => component.last,
                    (Err(_), Outside::Clamp) => 0,
                };
                base += start * component.stride;
            }
            Some(base)
        };
        self.batch.iter().map(base).collect()
    }
}

/// The offsets of a window's elements relative to its first, as runs of successive elements.
#[derive(Debug)]
pub(super) struct Runs {
    /// The offset of each run, in row-major order.
    pub(super) starts: Vec<usize>,
    /// The length of each run.
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
