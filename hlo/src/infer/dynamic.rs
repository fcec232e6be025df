//! Run-time sizes of dimensions.

use super::cx::{Cx, DimList, Inferred, count, show_array};
use super::movement::{same_elements, same_type};
use crate::attrs::AttrKey;
use crate::diag::codes;
use crate::element_type::ElementType;
use crate::shape::{ArrayShape, Shape};

/// The dimension that the attribute names; its size must fit in an s32, which is what sizes are measured in.
fn sized_dimension(cx: &Cx, a: &ArrayShape) -> Result<usize, super::InferError> {
    let d = cx.dimension("dimension", cx.one_dimension(AttrKey::Dimensions)?, a.rank())?;
    if a.dims[d] > i64::from(i32::MAX) {
        return Err(cx
            .error(
                codes::DIMENSION_SIZE,
                format!("dimension {d} has size {}, which does not fit in an s32", a.dims[d]),
            )
            .at(0, format!("this is {}", show_array(a))));
    }
    Ok(d)
}

/// `get-dimension-size`
pub(super) fn get_dimension_size(cx: &Cx) -> Inferred {
    sized_dimension(cx, cx.array(0)?)?;
    Ok(Shape::scalar(ElementType::S32))
}

/// `set-dimension-size`: the dimension is dynamic afterwards.
pub(super) fn set_dimension_size(cx: &Cx) -> Inferred {
    let a = cx.array(0)?;
    let d = sized_dimension(cx, a)?;
    let ty = cx.scalar(1, "a dimension size")?;
    if ty != ElementType::S32 {
        return Err(cx
            .error(codes::DIMENSION_SIZE, format!("the size cannot be of type {ty}"))
            .at(1, format!("this is {ty}[]"))
            .label("must be s32"));
    }
    let mut out = DimList::new();
    (0..a.rank()).for_each(|i| out.push(a.dims[i], i == d || a.is_dynamic_dim(i)));
    cx.build(a.element_type, out)
}

/// `dynamic-reshape`: a size for each dimension of the declared shape, whose bounds hold as many elements as
/// the operand's.
pub(super) fn dynamic_reshape(cx: &Cx) -> Inferred {
    let (a, result) = (cx.array(0)?, cx.declared_array()?);
    same_type(cx, a, result)?;
    same_elements(cx, a, result)?;
    if cx.operands.len() - 1 != result.rank() {
        return Err(cx
            .error(
                codes::DIMENSION_COUNT,
                format!("{} for {}", count(cx.operands.len() - 1, "size"), count(result.rank(), "dimension")),
            )
            .label(format!("must be one for each dimension of {}", show_array(result))));
    }
    for i in 1..cx.operands.len() {
        let ty = cx.scalar(i, "a dimension size")?;
        if ty != ElementType::S32 {
            return Err(cx
                .error(codes::DIMENSION_SIZE, format!("the size cannot be of type {ty}"))
                .at(i, format!("this is {ty}[]"))
                .label("must be s32"));
        }
    }
    Ok(Shape::Array(result.without_layout()))
}
