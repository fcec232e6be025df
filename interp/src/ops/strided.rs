//! Index arithmetic over strided arrays: offsets, and copies of permuted or broadcast views into dense ones.
//!
//! A view is a list of sizes and one of strides, in elements; row-major order of its indices is the order of
//! everything here. Strides are not negative; a stride of 0 repeats.

use super::movement::strided::{StridedView, copy};
use crate::value::Sizes;

/// Elements below which work stays on the calling thread.
pub(super) const SEQUENTIAL: usize = 1 << 15;

/// Strides of a dense row-major array.
pub(super) fn strides(dims: &[usize]) -> Sizes {
    let mut strides = Sizes::from_elem(1, dims.len());
    for i in (1..dims.len()).rev() {
        strides[i - 1] = strides[i] * dims[i];
    }
    strides
}

/// The values of `list` at the indices `dims`, which the verifier checked.
pub(super) fn select(list: &[usize], dims: &[usize]) -> Sizes {
    dims.iter().map(|&d| list[d]).collect()
}

/// Offsets of all elements of a view, in order.
pub(super) fn offsets(dims: &[usize], strides: &[usize]) -> Vec<usize> {
    let mut out = vec![0];
    for (&size, &stride) in dims.iter().zip(strides) {
        out = out.iter().flat_map(|&base| (0..size).map(move |i| base + i * stride)).collect();
    }
    out
}

/// The same view with as few dimensions as possible.
pub(super) fn collapse(dims: &[usize], strides: &[usize]) -> (Sizes, Sizes) {
    let (mut sizes, mut steps) = (Sizes::new(), Sizes::new());
    for (&size, &stride) in dims.iter().zip(strides) {
        if size == 1 {
            continue;
        }
        match (sizes.last_mut(), steps.last_mut()) {
            (Some(last), Some(step)) if *step == size * stride => {
                *last *= size;
                *step = stride;
            }
            _ => {
                sizes.push(size);
                steps.push(stride);
            }
        }
    }
    (sizes, steps)
}

/// The elements of a view, dense. Panics if the view reaches outside of `data`.
pub(super) fn pack<T: Copy + Default + Send + Sync>(data: &[T], dims: &[usize], strides: &[usize]) -> Vec<T> {
    let n: usize = dims.iter().product();
    let mut out = vec![T::default(); n];
    let view = StridedView { offset: 0, strides: strides.iter().map(|&s| s as isize).collect() };
    copy(dims, data, &view, &mut out, &StridedView::dense(dims));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_agrees_with_offsets() {
        let shapes: &[(&[usize], &[usize])] = &[
            (&[], &[]),
            (&[3], &[2]),
            (&[2, 3], &[3, 1]),
            (&[3, 2], &[1, 3]),
            (&[2, 2, 3], &[0, 3, 1]),
            (&[40, 50], &[1, 40]),
            (&[3, 1, 4, 5], &[1, 7, 15, 3]),
            (&[7, 5, 300], &[300, 2100, 1]),
            (&[300, 7, 70], &[1, 300 * 70, 300]),
            (&[2, 0, 3], &[1, 1, 1]),
        ];
        for (dims, strides) in shapes {
            let reach: usize =
                1 + dims.iter().zip(*strides).map(|(d, s)| d.saturating_sub(1) * s).sum::<usize>();
            let data: Vec<u32> = (0..reach as u32).collect();
            let expected: Vec<u32> = offsets(dims, strides).into_iter().map(|o| o as u32).collect();
            assert_eq!(pack(&data, dims, strides), expected, "{dims:?} {strides:?}");
        }
    }

    #[test]
    fn offsets_are_row_major() {
        assert_eq!(offsets(&[2, 3], &[10, 1]), [0, 1, 2, 10, 11, 12]);
        assert_eq!(offsets(&[], &[]), [0]);
        assert_eq!(strides(&[2, 3, 4])[..], [12, 4, 1]);
    }
}
