//! The order of an array's elements in memory, as steps from its logical dimensions: what `bitcast` reads and
//! writes.
//!
//! A tile pads the minor dimensions to its multiples and moves what is inside of it to the end
//! (`docs/tiled_layout.md` of openxla/xla). **Invariant:** after the last step the elements, row-major, are
//! the memory of the array, padding included. Splits across memories, memory spaces and alignment move
//! nothing here.

use smallvec::SmallVec;

use crate::layout::{Layout, TileDim};
use crate::shape::Dims;

/// One step from logical dimensions to memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Dimensions in another order: dimension `i` is the operand's dimension `[i]`, as in `transpose`.
    Permute(SmallVec<[usize; 4]>),
    /// The same elements in other dimensions.
    Reshape(Dims),
    /// Padding at the ends, up to these dimensions.
    Pad(Dims),
}

/// Why a layout gives no order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoOrder {
    /// Not all elements are there.
    Sparse,
    /// A tile of sizes below 1, or one whose last dimension is combined with nothing.
    Tile,
    /// More than 2^63 elements.
    TooLarge,
}

/// The steps to memory of an array with these dimensions, and its dimensions before each step and after all.
/// Without a layout there are none. Errors: [`NoOrder`].
pub fn steps(layout: Option<&Layout>, dims: &[i64]) -> Result<(Vec<Step>, Vec<Dims>), NoOrder> {
    let mut steps = Vec::new();
    let mut shapes: Vec<Dims> = vec![dims.into()];
    let Some(layout) = layout else { return Ok((steps, shapes)) };
    if !layout.dim_levels.is_empty() || layout.physical_shape.is_some() {
        return Err(NoOrder::Sparse);
    }
    let order: SmallVec<[usize; 4]> = layout.minor_to_major.iter().rev().map(|&d| d as usize).collect();
    let mut now: Dims = order.iter().map(|&d| dims[d]).collect();
    let mut push = |step, dims: &Dims| {
        steps.push(step);
        shapes.push(dims.clone());
    };
    push(Step::Permute(order), &now);
    for tile in &layout.tiles {
        if now.len() < tile.len() {
            now.insert_from_slice(0, &vec![1; tile.len() - now.len()]);
            push(Step::Reshape(now.clone()), &now);
        }
        let first = now.len() - tile.len();
        let (mut merged, mut sizes): (Dims, Vec<i64>) = (now[..first].into(), Vec::new());
        let mut product = 1i64;
        for (&n, dim) in now[first..].iter().zip(tile) {
            product = product.checked_mul(n).ok_or(NoOrder::TooLarge)?;
            if let TileDim::Size(size) = *dim {
                merged.push(product);
                sizes.push(size);
                product = 1;
            }
        }
        if sizes.iter().any(|&s| s < 1) || matches!(tile.last(), Some(TileDim::Combine)) {
            return Err(NoOrder::Tile);
        }
        if merged != now {
            push(Step::Reshape(merged.clone()), &merged);
        }
        let mut padded = merged.clone();
        let (mut split, mut order): (Dims, SmallVec<[usize; 4]>) =
            (merged[..first].into(), (0..first).collect());
        for (d, &size) in sizes.iter().enumerate() {
            let n = merged[first + d];
            let tiles = n.div_euclid(size) + i64::from(n % size != 0);
            padded[first + d] = tiles.checked_mul(size).ok_or(NoOrder::TooLarge)?;
            split.extend([tiles, size]);
        }
        order.extend((0..sizes.len()).map(|d| first + 2 * d));
        order.extend((0..sizes.len()).map(|d| first + 2 * d + 1));
        if padded != merged {
            push(Step::Pad(padded.clone()), &padded);
        }
        push(Step::Reshape(split.clone()), &split);
        now = order.iter().map(|&d| split[d]).collect();
        push(Step::Permute(order), &now);
    }
    Ok((steps, shapes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tile_pads_and_goes_inside() {
        let layout = Layout { tiles: vec![vec![TileDim::Size(2), TileDim::Size(4)]], ..Layout::row_major(2) };
        let (steps, shapes) = steps(Some(&layout), &[3, 5]).unwrap();
        let dims = |d: &[i64]| Dims::from_slice(d);
        assert_eq!(
            steps,
            [
                Step::Permute([0, 1].into_iter().collect()),
                Step::Pad(dims(&[4, 8])),
                Step::Reshape(dims(&[2, 2, 2, 4])),
                Step::Permute([0, 2, 1, 3].into_iter().collect()),
            ]
        );
        assert_eq!(shapes.last(), Some(&dims(&[2, 2, 2, 4])));
    }

    #[test]
    fn what_gives_no_order() {
        let tiled = |tile| Layout { tiles: vec![tile], ..Layout::row_major(1) };
        assert_eq!(steps(Some(&tiled(vec![TileDim::Size(0)])), &[3]), Err(NoOrder::Tile));
        assert_eq!(steps(Some(&tiled(vec![TileDim::Combine])), &[3]), Err(NoOrder::Tile));
        assert_eq!(steps(Some(&tiled(vec![TileDim::Size(1 << 40)])), &[i64::MAX]), Err(NoOrder::TooLarge));
    }
}
