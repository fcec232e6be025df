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

/// Refuses operands of other types than the parameters of the computation that sees them, whose numbers come
/// with them. (The verifier lets float types be mixed.)
pub(super) fn same_types<'x>(
    cx: &Cx<'_>,
    region: &Region,
    operands: impl IntoIterator<Item = (usize, &'x Tensor)>,
) -> Result<()> {
    let same = |(n, x): (usize, &Tensor)| region.parameters().get(n) == Some(&x.element_type());
    if operands.into_iter().all(same) {
        return Ok(());
    }
    Err(cx.unsupported("with a computation of other types"))
}

/// The result of an instruction with one array or a tuple of arrays for a result.
pub(super) fn results(
    cx: &Cx<'_>,
    results: impl IntoIterator<Item = Value, IntoIter: ExactSizeIterator>,
) -> Value {
    results_of(&cx.instr.shape, results)
}

/// The same, of an instruction of this shape.
pub(super) fn results_of(
    shape: &hlo::Shape,
    results: impl IntoIterator<Item = Value, IntoIter: ExactSizeIterator>,
) -> Value {
    let mut results = results.into_iter();
    match shape {
        hlo::Shape::Array(_) if results.len() == 1 => {
            results.next().expect("invariant: an iterator is as long as it says")
        }
        hlo::Shape::Array(_)
        | hlo::Shape::Tuple(_)
        | hlo::Shape::Token
        | hlo::Shape::Opaque
        | hlo::Shape::Buffer(_) => Value::tuple(results),
    }
}

/// Evaluates an expression with a type alias bound to the Rust type of a real floating-point `ElementType`,
/// and another expression for all other types.
macro_rules! with_float {
    ($ty:expr, $T:ident => $body:expr, $other:expr) => {
        with_float!(@ $ty, $T, $body, $other;
            F16 hlo::half::f16, BF16 hlo::half::bf16, F32 f32, F64 f64,
            F8E5M2 hlo::small_float::F8E5M2, F8E4M3 hlo::small_float::F8E4M3, F8E4M3FN hlo::small_float::F8E4M3FN,
            F8E4M3B11FNUZ hlo::small_float::F8E4M3B11FNUZ, F8E3M4 hlo::small_float::F8E3M4,
            F8E5M2FNUZ hlo::small_float::F8E5M2FNUZ, F8E4M3FNUZ hlo::small_float::F8E4M3FNUZ,
            F8E8M0FNU hlo::small_float::F8E8M0FNU, F4E2M1FN hlo::small_float::F4E2M1FN,
            F6E3M2FN hlo::small_float::F6E3M2FN, F6E2M3FN hlo::small_float::F6E2M3FN)
    };
    (@ $ty:expr, $T:ident, $body:expr, $other:expr; $($variant:ident $rust:ty),*) => {
        match $ty {
            $(hlo::ElementType::$variant => {
                type $T = $rust;
                $body
            })*
            hlo::ElementType::Pred
            | hlo::ElementType::S1
            | hlo::ElementType::S2
            | hlo::ElementType::S4
            | hlo::ElementType::S8
            | hlo::ElementType::S16
            | hlo::ElementType::S32
            | hlo::ElementType::S64
            | hlo::ElementType::U1
            | hlo::ElementType::U2
            | hlo::ElementType::U4
            | hlo::ElementType::U8
            | hlo::ElementType::U16
            | hlo::ElementType::U32
            | hlo::ElementType::U64
            | hlo::ElementType::C64
            | hlo::ElementType::C128 => $other,
        }
    };
}
pub(super) use with_float;
