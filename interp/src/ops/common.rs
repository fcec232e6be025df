//! What the operations share: operands, attributes as sizes, indices as integers.

use std::sync::Arc;

use hlo::literal::Bits;
use hlo::{AttrKey, with_buffer};

use super::{Args, Cx};
use crate::error::Result;
use crate::region::Region;
use crate::value::{Sizes, Tensor, Value};

/// The operands as arrays. Panics on another number than `N`, which the verifier has ruled out.
pub(super) fn arrays<const N: usize>(args: Args) -> [Tensor; N] {
    let mut arrays = args.into_iter().map(Value::into_array);
    std::array::from_fn(|_| arrays.next().expect("invariant: the verifier checked the number of operands"))
}

/// A list of dimensions or sizes, empty if absent.
pub(super) fn list(cx: &Cx<'_>, key: AttrKey) -> Sizes {
    crate::value::sizes(cx.attrs().ints_or_empty(key))
}

/// An attribute that is a dimension or a size.
pub(super) fn number(cx: &Cx<'_>, key: AttrKey) -> Result<usize> {
    let number = cx.attrs().int(key).and_then(|n| usize::try_from(n).ok());
    number.ok_or_else(|| cx.unsupported(&format!("without {}", key.text())))
}

/// The numbers from 0 to `rank` that are in none of `lists`.
pub(super) fn others(rank: usize, lists: &[&[usize]]) -> Sizes {
    (0..rank).filter(|d| !lists.iter().any(|list| list.contains(d))).collect()
}

/// Sizes as dimensions of a tensor.
pub(super) fn dims(sizes: &[usize]) -> hlo::Dims {
    sizes.iter().map(|&d| d as i64).collect()
}

/// All elements of an integer tensor, those beyond `i64` saturated.
pub(super) fn integers(x: &Tensor) -> Vec<i64> {
    let ty = x.element_type();
    let unused = 64 - ty.bits().min(64);
    if ty.is_signed_integer() {
        with_buffer!(x.buffer(), v => v.iter().map(|x| ((x.bits() as u64) << unused) as i64 >> unused).collect())
    } else {
        with_buffer!(x.buffer(), v => v.iter().map(|x| i64::try_from(x.bits()).unwrap_or(i64::MAX)).collect())
    }
}

/// The computation that an attribute names, ready to be applied to elements.
pub(super) fn region(cx: &Cx<'_>, key: AttrKey) -> Result<Arc<Region>> {
    let computation = cx.attrs().computation(key);
    let computation = computation.ok_or_else(|| cx.unsupported(&format!("without {}", key.text())))?;
    Ok(cx.session.interpreter.region(computation))
}

/// The result of an instruction with one array or a tuple of arrays for a result.
pub(super) fn results(cx: &Cx<'_>, mut results: Vec<Value>) -> Value {
    match &cx.instr.shape {
        hlo::Shape::Array(_) if results.len() == 1 => results.swap_remove(0),
        hlo::Shape::Array(_)
        | hlo::Shape::Tuple(_)
        | hlo::Shape::Token
        | hlo::Shape::Opaque
        | hlo::Shape::Buffer(_) => Value::tuple(results),
    }
}
