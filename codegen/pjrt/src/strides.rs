//! Arrays whose elements do not lie dense and row-major: copying them to and from such.

use crate::api::numbers::layout_type;
use crate::api::structs::PJRT_Buffer_MemoryLayout;
use crate::border;
use crate::error::{Failure, Result};
use crate::layout::{self, Order};

/// Strides in bytes of a dense row-major array.
pub fn row_major(dims: &[i64], element_bytes: i64) -> Vec<i64> {
    let mut strides = vec![element_bytes; dims.len()];
    for d in (1..dims.len()).rev() {
        strides[d - 1] = strides[d].saturating_mul(dims[d].max(1));
    }
    strides
}

/// The order of the dimensions of a dense array with a caller's byte strides.
///
/// # Errors
/// What is tiled, not dense, or of another rank.
pub fn order_of_layout(
    given: Option<&PJRT_Buffer_MemoryLayout>,
    dims: &[i64],
    element_bytes: i64,
) -> Result<Order> {
    let Some(strides) = of_layout(given, dims, element_bytes)? else { return Ok(None) };
    if let Some(given) = given.filter(|given| given.r#type == layout_type::TILED) {
        let order = border::elements(given.tiled.minor_to_major, dims.len(), "the layout")?;
        return layout::order(&order, dims.len());
    }
    let mut order: Vec<i64> = (0..dims.len() as i64).rev().collect();
    // Where strides are equal, all dimensions but one have one element.
    order.sort_by_key(|&d| (strides[d as usize], dims[d as usize]));
    let order = layout::order(&order, dims.len())?;
    if is_dense(dims, &strides, element_bytes) {
        return Ok(None);
    }
    match is_dense(&layout::permuted(dims, &order), &layout::permuted(&strides, &order), element_bytes) {
        true => Ok(order),
        false => Err(Failure::unimplemented("arrays whose elements are not dense on the device")),
    }
}

/// Strides in bytes of a dense array in a layout; `None`: it is row-major. What is tiled or has the wrong
/// rank is refused.
pub fn of_layout(
    layout: Option<&PJRT_Buffer_MemoryLayout>,
    dims: &[i64],
    element_bytes: i64,
) -> Result<Option<Vec<i64>>> {
    let Some(layout) = layout else { return Ok(None) };
    let rank = dims.len();
    let of_rank = |n: usize, what: &str| {
        if n == rank {
            return Ok(());
        }
        Err(Failure::invalid(format!("the layout has {n} {what}, the array {rank} dimensions")))
    };
    match layout.r#type {
        layout_type::TILED => {
            let tiled = &layout.tiled;
            if tiled.num_tiles > 0 {
                return Err(Failure::unimplemented("layouts with tiles are not supported"));
            }
            of_rank(tiled.minor_to_major_size, "dimensions")?;
            let order = border::elements(tiled.minor_to_major, rank, "the layout")?;
            let mut strides = vec![None; rank];
            let mut next = element_bytes;
            for &d in &order {
                let slot = usize::try_from(d).ok().and_then(|d| strides.get_mut(d));
                match slot {
                    Some(slot @ None) => *slot = Some(next),
                    Some(Some(_)) | None => {
                        return Err(Failure::invalid(format!("{order:?} is no order of {rank} dimensions")));
                    }
                }
                next = next.saturating_mul(dims[d as usize].max(1));
            }
            Ok(Some(strides.into_iter().flatten().collect()))
        }
        layout_type::STRIDES => {
            // Of the union the other member: a pointer and a number at the same offsets.
            of_rank(layout.tiled.minor_to_major_size, "strides")?;
            border::elements(layout.tiled.minor_to_major, rank, "the strides").map(Some)
        }
        other => Err(Failure::invalid(format!("{other} is no type of layout"))),
    }
}

/// Whether elements with these strides lie dense and row-major. Strides of dimensions that have one element
/// do not matter.
pub fn is_dense(dims: &[i64], strides: &[i64], element_bytes: i64) -> bool {
    let dense = row_major(dims, element_bytes);
    dims.contains(&0) || dims.iter().zip(strides).zip(&dense).all(|((&n, s), d)| n == 1 || s == d)
}

/// Calls `copy` with the offset of each element, in bytes with these strides, in row-major order.
pub fn for_each_offset(dims: &[i64], strides: &[i64], mut copy: impl FnMut(i64)) {
    if dims.iter().any(|&d| d <= 0) {
        return;
    }
    let mut index = vec![0_i64; dims.len()];
    let mut offset = 0_i64;
    loop {
        copy(offset);
        let mut d = dims.len();
        loop {
            if d == 0 {
                return;
            }
            d -= 1;
            index[d] += 1;
            offset += strides[d];
            if index[d] < dims[d] {
                break;
            }
            offset -= strides[d] * dims[d];
            index[d] = 0;
        }
    }
}

/// The first and one past the last byte that elements with these strides have; `None`: it is beyond all
/// memory.
pub fn extent(dims: &[i64], strides: &[i64], element_bytes: i64) -> Option<(i64, i64)> {
    if dims.contains(&0) {
        return Some((0, 0));
    }
    let (mut low, mut high) = (0_i64, element_bytes);
    for (&n, &stride) in dims.iter().zip(strides) {
        let reach = stride.checked_mul(n - 1)?;
        low = low.checked_add(reach.min(0))?;
        high = high.checked_add(reach.max(0))?;
    }
    high.checked_sub(low).map(|_| (low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(dims: &[i64], strides: &[i64]) -> Vec<i64> {
        let mut all = Vec::new();
        for_each_offset(dims, strides, |o| all.push(o));
        all
    }

    #[test]
    fn elements_are_visited_in_row_major_order() {
        assert_eq!(offsets(&[2, 3], &row_major(&[2, 3], 4)), [0, 4, 8, 12, 16, 20]);
        assert_eq!(offsets(&[2, 3], &[4, 8]), [0, 8, 16, 4, 12, 20]);
        assert_eq!(offsets(&[3], &[-2]), [0, -2, -4]);
        assert_eq!(offsets(&[], &[]), [0]);
        assert_eq!(offsets(&[2, 0], &[4, 4]), [0; 0]);
    }

    #[test]
    fn strides_of_single_elements_do_not_matter() {
        assert!(is_dense(&[1, 3], &[99, 4], 4));
        assert!(!is_dense(&[2, 3], &[4, 8], 4));
        assert!(is_dense(&[0, 3], &[7, 7], 4));
    }

    #[test]
    fn extents_are_checked() {
        assert_eq!(extent(&[2, 3], &[12, 4], 4), Some((0, 24)));
        assert_eq!(extent(&[3], &[-4], 4), Some((-8, 4)));
        assert_eq!(extent(&[1 << 40, 1 << 40], &[1 << 40, 1], 4), None);
    }
}
