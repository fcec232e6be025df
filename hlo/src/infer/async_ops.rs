//! `async-start`, `async-update`, `async-done`.
//!
//! What is between start and done has the shape `((operands...), output, contexts...)`. Operands may be bound
//! late: then the first element holds those bound so far, and an output that is not available yet is `()`.
//! How starts, updates and dones form chains is the verifier's concern.

use super::InferError;
use super::control::callee;
use super::cx::{Cx, Inferred, count, show};
use super::types::{Match, shapes_match};
use crate::attrs::AttrKey;
use crate::diag::codes;
use crate::shape::Shape;

/// Whether `part` is what `whole` is once all is bound: equal, `()`, or a tuple of such parts.
fn is_prefix(part: &Shape, whole: &Shape) -> bool {
    if shapes_match(part, whole, Match::Strict) {
        return true;
    }
    match (part, whole) {
        (Shape::Tuple(p), _) if p.is_empty() => true,
        (Shape::Tuple(p), Shape::Tuple(w)) => {
            p.len() <= w.len() && p.iter().zip(w.iter()).all(|(p, w)| is_prefix(p, w))
        }
        (Shape::Array(_) | Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_), _) => false,
    }
}

/// The elements of an asynchronous value: bound operands, output.
fn parts(shape: &Shape, fail: impl FnOnce() -> InferError) -> Result<(&[Shape], &Shape), InferError> {
    match shape.as_tuple() {
        Some([bound, output, ..]) => bound.as_tuple().map(|b| (b, output)).ok_or_else(fail),
        Some(_) | None => Err(fail()),
    }
}

fn declared_parts<'a>(cx: &Cx<'a>) -> Result<(&'a [Shape], &'a Shape), InferError> {
    let declared = cx.declared()?;
    parts(declared, || {
        cx.error(codes::ASYNC_SHAPE, format!("the result is {}", show(declared)))
            .label("must be ((operands), output, ...)")
    })
}

fn operand_parts<'a>(cx: &Cx<'a>) -> Result<(&'a [Shape], &'a Shape), InferError> {
    let operand = cx.operands[0];
    parts(operand, || {
        cx.error(codes::ASYNC_SHAPE, "operand 0 must be an asynchronous value")
            .at(0, format!("this is {}, not ((operands), output, ...)", show(operand)))
    })
}

/// Fails if operands, from number `first` on, are not those bound.
fn check_bound(cx: &Cx, first: usize, bound: &[Shape]) -> Result<(), InferError> {
    let operands = &cx.operands[first..];
    if operands.len() != bound.len() {
        return Err(cx.error(
            codes::ASYNC_SHAPE,
            format!("{}, but the result binds {}", count(operands.len(), "operand"), bound.len()),
        ));
    }
    for (i, (operand, bound)) in operands.iter().zip(bound).enumerate() {
        if !shapes_match(operand, bound, Match::Strict) {
            return Err(cx
                .error(codes::ASYNC_SHAPE, format!("operand {} is bound as {}", first + i, show(bound)))
                .at(first + i, format!("this is {}", show(operand))));
        }
    }
    Ok(())
}

/// `async-start`
pub(super) fn start(cx: &Cx) -> Inferred {
    let (bound, output) = declared_parts(cx)?;
    check_bound(cx, 0, bound)?;
    let signature = cx.signature(AttrKey::Calls)?;
    let name = callee(cx, AttrKey::Calls);
    let fits = bound.len() <= signature.parameters.len()
        && bound.iter().zip(&signature.parameters).all(|(b, p)| is_prefix(b, p));
    if !fits {
        let shown: Vec<String> = signature.parameters.iter().map(show).collect();
        return Err(cx
            .error(codes::ASYNC_SHAPE, format!("the operands do not fit the parameters of {name}"))
            .label(format!("{name} takes ({})", shown.join(", "))));
    }
    if !is_prefix(output, &signature.result) {
        return Err(cx.error(
            codes::ASYNC_SHAPE,
            format!("the output is {}, but {name} gives {}", show(output), show(&signature.result)),
        ));
    }
    Ok(cx.declared()?.without_layout())
}

/// `async-update`: as before, perhaps with more operands bound and more output available.
pub(super) fn update(cx: &Cx) -> Inferred {
    let (before, output_before) = operand_parts(cx)?;
    let (bound, output) = declared_parts(cx)?;
    let fits = before.len() <= bound.len()
        && before.iter().zip(bound).all(|(p, w)| is_prefix(p, w))
        && is_prefix(output_before, output);
    if !fits {
        return Err(cx
            .error(codes::ASYNC_SHAPE, "the result does not continue operand 0")
            .at(0, format!("this is {}", show(cx.operands[0])))
            .label(format!("this is {}", show(cx.declared()?))));
    }
    check_bound(cx, 1, &bound[before.len()..])?;
    Ok(cx.declared()?.without_layout())
}

/// `async-done`: the output.
pub(super) fn done(cx: &Cx) -> Inferred {
    Ok(operand_parts(cx)?.1.without_layout())
}
