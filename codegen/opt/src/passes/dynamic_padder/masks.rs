//! Masks for the padding of padded arrays.

use hlo::attrs::{AttrKey, AttrValue, Attrs, Direction};
use hlo::{ElementType, InstrId, Opcode, Shape};

use super::{View, number};
use crate::passes::edit::Edit;

/// Where an array's elements are valid: a `pred` of its bounds; `Some(None)`: everywhere.
pub(super) fn valid(e: &mut Edit<'_>, view: &View) -> Option<Option<InstrId>> {
    let dims = e.array(view.array)?.dims.clone();
    let mut valid: Option<InstrId> = None;
    for (d, &size) in view.sizes.iter().enumerate() {
        let Some(size) = size else { continue };
        let index = iota(e, &dims, d)?;
        let size = e.fill_dims(size, &dims)?;
        let here = e.compare(Direction::Lt, index, size)?;
        valid = Some(match valid {
            Some(others) => e.binary(Opcode::And, others, here)?,
            None => here,
        });
    }
    Some(valid)
}

/// The index along a dimension, as `s32`.
pub(super) fn iota(e: &mut Edit<'_>, dims: &[i64], d: usize) -> Option<InstrId> {
    i32::try_from(*dims.get(d)?).ok()?;
    let attrs = Attrs::new().with(AttrKey::IotaDimension, AttrValue::Int(d as i64));
    e.shaped(Opcode::Iota, Shape::array(ElementType::S32, dims), &[], attrs)
}

/// The array with its padding replaced by a scalar.
pub(super) fn behind(e: &mut Edit<'_>, view: &View, scalar: InstrId) -> Option<InstrId> {
    let Some(valid) = valid(e, view)? else { return Some(view.array) };
    let fill = e.fill(scalar, view.array)?;
    e.select(valid, view.array, fill)
}

/// The array with its padding replaced by zeros.
pub(super) fn zeros_behind(e: &mut Edit<'_>, view: &View) -> Option<InstrId> {
    if view.is_static() {
        return Some(view.array);
    }
    let ty = e.array(view.array)?.element_type;
    let zero = e.scalar_bits(ty, 0);
    behind(e, view, zero)
}

/// One size for dimensions that operands share: static ones are cropped to it, of several the smallest
/// counts, except that one of 1 is broadcast if `repeats`.
pub(super) fn shared(e: &mut Edit<'_>, sizes: &[Option<InstrId>], repeats: bool) -> Option<Option<InstrId>> {
    let mut all: Vec<InstrId> = sizes.iter().flatten().copied().collect();
    all.sort_unstable();
    all.dedup();
    let mut result: Option<InstrId> = None;
    let one = number(e, 1)?;
    for size in all {
        result = Some(match result {
            None => size,
            Some(other) => {
                let least = e.binary(Opcode::Minimum, other, size)?;
                if repeats {
                    let (a, b) =
                        (e.compare(Direction::Eq, other, one)?, e.compare(Direction::Eq, size, one)?);
                    let without = e.select(b, other, least)?;
                    e.select(a, size, without)?
                } else {
                    least
                }
            }
        });
    }
    Some(result)
}

/// The array, with its only element along `d` broadcast to the bound if its size there is 1 and that of the
/// others may not be.
pub(super) fn repeated(e: &mut Edit<'_>, view: &View, d: usize) -> Option<InstrId> {
    let Some(size) = view.sizes[d] else { return Some(view.array) };
    let dims = e.array(view.array)?.dims.clone();
    if dims[d] == 0 {
        return Some(view.array);
    }
    let first = e.cut(view.array, d, 0, 1)?;
    let mut without = dims.clone();
    without.remove(d);
    let first = e.reshape(first, &without)?;
    let mapping: Vec<i64> = (0..dims.len() as i64).filter(|&i| i != d as i64).collect();
    let all = e.broadcast(first, &dims, &mapping)?;
    let one = number(e, 1)?;
    let alone = e.compare(Direction::Eq, size, one)?;
    let alone = e.fill_dims(alone, &dims)?;
    e.select(alone, all, view.array)
}
