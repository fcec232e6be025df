//! Elements of an array from row-major order to the order of a layout, and back.

/// Elements of an array of dimensions `dims` in another order. `to_memory`: from row-major order to that of
/// `minor_to_major`, which must be a permutation of the dimensions; else back.
pub(crate) fn permuted<T: Copy>(
    elements: &[T],
    dims: &[i64],
    minor_to_major: &[i64],
    to_memory: bool,
) -> Vec<T> {
    // How far apart neighbours of each dimension are laid out in memory.
    let mut strides = vec![0usize; dims.len()];
    let mut step = 1usize;
    for &d in minor_to_major {
        strides[d as usize] = step;
        step = step.saturating_mul(dims[d as usize].max(0) as usize);
    }
    let sizes: Vec<usize> = dims.iter().map(|&d| d.max(0) as usize).collect();
    let mut index = vec![0usize; dims.len()];
    let mut at = 0;
    // The position in memory of each element, by its row-major index.
    let mut offsets = elements.iter().map(|_| {
        let offset = at;
        for d in (0..sizes.len()).rev() {
            index[d] += 1;
            at += strides[d];
            if index[d] < sizes[d] {
                break;
            }
            at -= strides[d] * index[d];
            index[d] = 0;
        }
        offset
    });
    if to_memory {
        let mut out = elements.to_vec();
        for (element, offset) in elements.iter().zip(&mut offsets) {
            out[offset] = *element;
        }
        out
    } else {
        offsets.map(|offset| elements[offset]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_major_order_and_back() {
        // {{1,2,3},{4,5,6}} with the first dimension minor: 1, 4, 2, 5, 3, 6, as XLA writes it.
        let memory = permuted(&[1, 2, 3, 4, 5, 6], &[2, 3], &[0, 1], true);
        assert_eq!(memory, [1, 4, 2, 5, 3, 6]);
        assert_eq!(permuted(&memory, &[2, 3], &[0, 1], false), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn three_dimensions() {
        let row_major: Vec<usize> = (0..24).collect();
        let memory = permuted(&row_major, &[2, 3, 4], &[1, 2, 0], true);
        // Element (i, j, k) is at i * 12 + k * 3 + j.
        for (n, &element) in row_major.iter().enumerate() {
            let (i, j, k) = (n / 12, n / 4 % 3, n % 4);
            assert_eq!(memory[i * 12 + k * 3 + j], element);
        }
        assert_eq!(permuted(&memory, &[2, 3, 4], &[1, 2, 0], false), row_major);
    }
}
