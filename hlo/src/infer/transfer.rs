//! Copies that run asynchronously, and what goes to and comes from hosts and other devices.

use super::cx::{Cx, Inferred, show};
use super::types::{Match, shapes_match};
use crate::attrs::AttrKey;
use crate::diag::codes;
use crate::element_type::ElementType;
use crate::shape::Shape;

/// `copy-start`: destination, source, context.
pub(super) fn copy_start(cx: &Cx) -> Inferred {
    let shape = cx.operands[0].without_layout();
    Ok(Shape::tuple([shape.clone(), shape, Shape::scalar(ElementType::U32)]))
}

/// `copy-done`
pub(super) fn copy_done(cx: &Cx) -> Inferred {
    let t = cx.tuple(0, 2)?;
    if !shapes_match(&t[0], &t[1], Match::Strict) {
        return Err(cx
            .error(
                codes::TRANSFER,
                format!("destination {} and source {} have different shapes", show(&t[0]), show(&t[1])),
            )
            .at(0, format!("this is {}", show(cx.operands[0]))));
    }
    Ok(t[0].without_layout())
}

/// `send(data, token)`: data, context, token.
pub(super) fn send(cx: &Cx) -> Inferred {
    cx.token(1)?;
    Ok(Shape::tuple([cx.operands[0].without_layout(), Shape::scalar(ElementType::U32), Shape::Token]))
}

/// `send-done`
pub(super) fn send_done(cx: &Cx) -> Inferred {
    cx.tuple(0, 1)?;
    Ok(Shape::Token)
}

/// `recv(token)`: the declared data, context, token.
pub(super) fn recv(cx: &Cx) -> Inferred {
    cx.token(0)?;
    let declared = cx.declared()?;
    let Some([data, ..]) = declared.as_tuple() else {
        return Err(cx
            .error(codes::TRANSFER, format!("the result is {}", show(declared)))
            .label("must be a tuple of data, u32[] and token[]"));
    };
    Ok(Shape::tuple([data.without_layout(), Shape::scalar(ElementType::U32), Shape::Token]))
}

/// `recv-done`: data and token.
pub(super) fn recv_done(cx: &Cx) -> Inferred {
    Ok(Shape::tuple([cx.tuple(0, 1)?[0].without_layout(), Shape::Token]))
}

/// `infeed(token)`: the declared data and a token.
pub(super) fn infeed(cx: &Cx) -> Inferred {
    cx.token(0)?;
    let declared = cx.declared()?;
    let Some([data, _]) = declared.as_tuple() else {
        return Err(cx
            .error(codes::TRANSFER, format!("the result is {}", show(declared)))
            .label("must be a tuple of data and token[]"));
    };
    Ok(Shape::tuple([data.without_layout(), Shape::Token]))
}

/// `outfeed(data, token)`
pub(super) fn outfeed(cx: &Cx) -> Inferred {
    cx.token(1)?;
    if let Some(crate::AttrValue::Shape(shape)) = cx.attrs.get(AttrKey::OutfeedShape)
        && !shapes_match(shape, cx.operands[0], Match::Strict)
    {
        return Err(cx
            .error(codes::TRANSFER, format!("outfeed_shape is {}", show(shape)))
            .at(0, format!("this is {}", show(cx.operands[0])))
            .label("must be the shape of the operand"));
    }
    Ok(Shape::Token)
}
