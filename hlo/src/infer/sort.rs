//! `sort` and `topk`.

use super::control::callee;
use super::cx::{Cx, DimList, Inferred, count, show, show_array, size};
use super::types::{Classes, is_scalar_of};
use crate::attrs::AttrKey;
use crate::diag::codes;
use crate::element_type::ElementType;
use crate::shape::{Shape, UNBOUNDED};

/// `sort`: the comparator takes a pair of scalars for each operand and gives a predicate.
pub(super) fn sort(cx: &Cx) -> Inferred {
    for i in 0..cx.operands.len() {
        cx.array(i)?;
        cx.require_same_dims(0, i)?;
    }
    let signature = cx.signature(AttrKey::ToApply)?;
    let name = callee(cx, AttrKey::ToApply);
    if !is_scalar_of(&signature.result, ElementType::Pred) {
        return Err(cx
            .error(codes::COMPARATOR, format!("{name} gives {}", show(&signature.result)))
            .label("must give pred[]"));
    }
    if signature.parameters.len() != 2 * cx.operands.len() {
        return Err(cx
            .error(
                codes::COMPARATOR,
                format!("{name} takes {}", count(signature.parameters.len(), "parameter")),
            )
            .label(format!("must take {}: a pair for each operand", 2 * cx.operands.len())));
    }
    for (i, parameter) in signature.parameters.iter().enumerate() {
        let ty = cx.array(i / 2)?.element_type;
        if !is_scalar_of(parameter, ty) {
            return Err(cx
                .error(codes::COMPARATOR, format!("parameter {i} of {name} is {}", show(parameter)))
                .at(i / 2, format!("elements are {ty}"))
                .label(format!("must be {ty}[]")));
        }
    }
    cx.dimension("dimension", cx.one_dimension(AttrKey::Dimensions)?, cx.array(0)?.rank())?;
    if cx.operands.len() == 1 {
        return Ok(cx.operands[0].without_layout());
    }
    Ok(Shape::tuple(cx.operands.iter().map(|s| s.without_layout())))
}

/// `topk`: along the last dimension; values and their indices.
pub(super) fn topk(cx: &Cx) -> Inferred {
    cx.require_type(0, Classes::ORDERED)?;
    let a = cx.array(0)?;
    let k = cx.int(AttrKey::K)?;
    let Some((&last, rest)) = a.dims.split_last() else {
        return Err(cx
            .error(codes::RANK, "the operand cannot be a scalar")
            .at(0, format!("this is {}", show_array(a))));
    };
    if k < 0 || last != UNBOUNDED && k > last {
        return Err(cx
            .error(codes::TOPK, format!("k={k} is out of range"))
            .at(0, format!("the last dimension of {} has size {}", show_array(a), size(last)))
            .label(format!("must be 0 to {}", size(last))));
    }
    let mut out = DimList::new();
    (0..rest.len()).for_each(|i| out.push_from(a, i));
    out.push(k, false);
    Ok(Shape::tuple([cx.build(a.element_type, out.clone())?, cx.build(ElementType::S32, out)?]))
}
