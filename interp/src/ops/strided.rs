//! Index arithmetic over strided arrays: offsets, and copies of permuted or broadcast views into dense ones.
//!
//! A view is a list of sizes and one of strides, in elements; row-major order of its indices is the order of everything
//! here. Strides are not negative; a stride of 0 repeats.

use crate::parallel;

use crate::value::Sizes;

/// Elements below which work stays on the calling thread.
pub(super) const SEQUENTIAL: usize = 1 << 15;

/// Side of the square tiles of a transposing copy: both sides stay in the first-level cache.
const TILE: usize = 32;

/// Strides of a dense row-major array.
pub(super) fn strides(dims: &[usize]) -> Sizes {
    let mut strides = Sizes::from_elem(1, dims.len());
    for i in (1..dims.len()).rev() {
        strides[i - 1] = strides[i] * dims[i];
    }
    strides
}

/// The values of `list` at the places that `dims` names, which the verifier checked.
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
    if n == 0 {
        return Vec::new();
    }
    let (mut dims, mut strides) = collapse(dims, strides);
    // Always two dimensions inside, so that there is one loop.
    while dims.len() < 2 {
        dims.insert(0, 1);
        strides.insert(0, 0);
    }
    let (columns, column) = (dims[dims.len() - 1], strides[dims.len() - 1]);
    let (rows, row) = (dims[dims.len() - 2], strides[dims.len() - 2]);
    if dims.len() == 2 && rows == 1 && column == 1 {
        return data[..n].to_vec();
    }
    let outer = &dims[..dims.len() - 2];
    let outer_strides = &strides[..dims.len() - 2];
    let mut out = vec![T::default(); n];
    // A band is a run of rows of one plane.
    let band = if rows * columns <= SEQUENTIAL {
        rows
    } else {
        (SEQUENTIAL / columns).clamp(1, rows).next_multiple_of(TILE).min(rows)
    };
    let bands = rows.div_ceil(band);
    let copy = |index: usize, out: &mut [T]| {
        let (plane, first) = (index / bands, index % bands * band);
        let mut base = first * row;
        let mut rest = plane;
        for (&size, &stride) in outer.iter().zip(outer_strides).rev() {
            base += rest % size * stride;
            rest /= size;
        }
        copy_plane(&data[base..], columns, row, column, out);
    };
    // Bands at the end of a plane may be shorter, so planes are cut first.
    let plane_len = rows * columns;
    if n <= SEQUENTIAL {
        out.chunks_mut(plane_len).enumerate().for_each(|(p, plane)| {
            plane.chunks_mut(band * columns).enumerate().for_each(|(b, out)| copy(p * bands + b, out));
        });
    } else {
        parallel::pieces(&mut out, plane_len, SEQUENTIAL / plane_len, &|p, plane| {
            parallel::pieces(plane, band * columns, 1, &|b, out| copy(p * bands + b, out));
        });
    }
    out
}

/// Copies rows of `columns` elements, all strides given.
fn copy_plane<T: Copy>(data: &[T], columns: usize, row: usize, column: usize, out: &mut [T]) {
    let rows = out.len() / columns;
    if column == 1 {
        for (i, out) in out.chunks_exact_mut(columns).enumerate() {
            out.copy_from_slice(&data[i * row..i * row + columns]);
        }
    } else if row == 1 {
        for i in (0..rows).step_by(TILE) {
            for j in (0..columns).step_by(TILE) {
                for i in i..(i + TILE).min(rows) {
                    for j in j..(j + TILE).min(columns) {
                        out[i * columns + j] = data[i + j * column];
                    }
                }
            }
        }
    } else {
        for (i, out) in out.chunks_exact_mut(columns).enumerate() {
            for (j, out) in out.iter_mut().enumerate() {
                *out = data[i * row + j * column];
            }
        }
    }
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
