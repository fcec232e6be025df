//! Windows that slide over an array: `reduce-window`, `select-and-scatter`, and the sizes they give, also for
//! `convolution`.

use super::InferError;
use super::control::callee;
use super::cx::{Cx, DimList, Inferred, count, show, show_array, size};
use super::reduce::{check_reducer, gives_tuple, inputs_and_inits, results};
use super::types::{is_scalar_of, same_dims, same_ignoring_precision};
use crate::attrs::{AttrKey, Window, WindowDim};
use crate::diag::codes;
use crate::element_type::ElementType;
use crate::shape::{ArrayShape, ProgramShape, Shape, UNBOUNDED};

/// The window, which may be left out where there are no dimensions.
fn window<'a>(cx: &Cx<'a>, none: &'a Window) -> &'a Window {
    cx.attrs.window().unwrap_or(none)
}

/// Fails if a window dimension is not sound in itself.
pub(super) fn check_dim(cx: &Cx, i: usize, w: &WindowDim) -> Result<(), InferError> {
    let positive = [
        ("size", w.size),
        ("stride", w.stride),
        ("base dilation", w.base_dilation),
        ("window dilation", w.window_dilation),
    ];
    match positive.iter().find(|p| p.1 < 1) {
        None => Ok(()),
        Some((what, n)) => {
            Err(cx.error(codes::WINDOW, format!("{what} {n} of window dimension {i} must be at least 1")))
        }
    }
}

/// How often a window fits in a dimension of size `n`.
pub(super) fn placements(cx: &Cx, i: usize, n: i64, w: &WindowDim) -> Result<i64, InferError> {
    check_dim(cx, i, w)?;
    if n == UNBOUNDED {
        return Ok(UNBOUNDED);
    }
    let found = w.padded(n).zip(w.placements(n));
    let (base, placements) =
        found.ok_or_else(|| cx.overflow(&format!("the padded size of dimension {i}")))?;
    if base < 0 {
        return Err(cx
            .error(codes::WINDOW, format!("padding cuts more than the {n} elements of dimension {i}"))
            .label(format!("pad={}_{} leaves {base}", w.pad_low, w.pad_high)));
    }
    Ok(placements)
}

/// The dimensions that a window over `a` gives.
fn window_dims(cx: &Cx, a: &ArrayShape, window: &Window) -> Result<DimList, InferError> {
    if window.dims.len() != a.rank() {
        return Err(cx
            .error(
                codes::WINDOW,
                format!("the window has {}, the operand {}", count(window.dims.len(), "dimension"), a.rank()),
            )
            .at(0, format!("this is {}", show_array(a))));
    }
    let mut out = DimList::new();
    for (i, w) in window.dims.iter().enumerate() {
        out.push(placements(cx, i, a.dims[i], w)?, a.is_dynamic_dim(i));
    }
    Ok(out)
}

/// `reduce-window`: each input gives an array of its initial value's type.
pub(super) fn reduce_window(cx: &Cx) -> Inferred {
    let (n, _) = inputs_and_inits(cx)?;
    let none = Window::default();
    let window = window(cx, &none);
    let types: Result<Vec<ElementType>, InferError> =
        (n..2 * n).map(|i| Ok(cx.array(i)?.element_type)).collect();
    let dims = |i: usize| window_dims(cx, cx.array(i)?, window);
    results(cx, &types?, dims, gives_tuple(cx, AttrKey::ToApply)?)
}

/// The selecting computation: `(T, T) -> pred`.
fn check_select(cx: &Cx, ty: ElementType, signature: &ProgramShape) -> Result<(), InferError> {
    let name = callee(cx, AttrKey::Select);
    if signature.parameters.len() != 2 || signature.parameters.iter().any(|p| !is_scalar_of(p, ty)) {
        let parameters: Vec<String> = signature.parameters.iter().map(show).collect();
        return Err(cx
            .error(codes::SELECT_SIGNATURE, format!("{name} takes ({})", parameters.join(", ")))
            .at(0, format!("elements are {ty}"))
            .label(format!("must take ({ty}[], {ty}[])")));
    }
    if !is_scalar_of(&signature.result, ElementType::Pred) {
        return Err(cx
            .error(codes::SELECT_SIGNATURE, format!("{name} gives {}", show(&signature.result)))
            .label("must give pred[]"));
    }
    Ok(())
}

/// `select-and-scatter(operand, source, init)`
pub(super) fn select_and_scatter(cx: &Cx) -> Inferred {
    let (a, source) = (cx.array(0)?, cx.array(1)?);
    let init = cx.scalar(2, "the initial value")?;
    check_select(cx, a.element_type, &cx.signature(AttrKey::Select)?)?;
    let scatter = cx.signature(AttrKey::Scatter)?;
    check_reducer(cx, AttrKey::Scatter, &scatter, &[(2, init)], &[(1, source.element_type)])?;
    let none = Window::default();
    let expected = cx.build_array(a.element_type, window_dims(cx, a, window(cx, &none))?)?;
    if !same_dims(&expected.dims, &source.dims)
        || !same_ignoring_precision(expected.element_type, source.element_type)
    {
        let sizes: Vec<String> = expected.dims.iter().map(|&n| size(n)).collect();
        return Err(cx
            .error(codes::SOURCE_SHAPE, format!("the source has shape {}", show_array(source)))
            .at(0, format!("the window over {} has [{}] placements", show_array(a), sizes.join(",")))
            .at(1, format!("must be {}", show_array(&expected))));
    }
    Ok(Shape::Array(a.without_layout()))
}
