//! Random numbers.

use super::cx::{Cx, Inferred, count, show};
use super::types::{Classes, Match, same_ignoring_precision, shapes_match};
use crate::attrs::{AttrKey, RngDistribution};
use crate::diag::codes;
use crate::element_type::ElementType;
use crate::shape::Shape;

/// `rng(a, b)`: bounds of a uniform, mean and standard deviation of a normal distribution; scalars of the
/// result's type.
pub(super) fn rng(cx: &Cx) -> Inferred {
    if cx.operands.len() != 2 {
        return Err(cx
            .error(codes::WRONG_ARITY, format!("{} given", count(cx.operands.len(), "operand")))
            .label("takes 2 operands"));
    }
    let result = cx.declared_array()?;
    let types =
        [cx.scalar(0, "a parameter of the distribution")?, cx.scalar(1, "a parameter of the distribution")?];
    if types[0] != types[1] {
        cx.require_same_types(0, 1)?;
        return Err(cx.error(
            codes::ELEMENT_TYPES_DIFFER,
            format!("operands have different types, {} and {}", types[0], types[1]),
        ));
    }
    if !same_ignoring_precision(types[0], result.element_type) {
        return Err(cx
            .error(
                codes::RESULT_ELEMENT_TYPE,
                format!("operands are {}, but the result has {}", types[0], result.element_type),
            )
            .label(format!("elements must be {}", types[0])));
    }
    let classes = match cx.required(cx.attrs.distribution(), AttrKey::Distribution)? {
        RngDistribution::Uniform => Classes::ORDERED,
        RngDistribution::Normal => Classes::FLOAT,
    };
    cx.require_type(0, classes)?;
    Ok(Shape::Array(result.without_layout()))
}

/// `rng-bit-generator(state)`: a tuple of the next state and the declared bits, or the bits alone.
pub(super) fn bit_generator(cx: &Cx) -> Inferred {
    cx.require_type(0, Classes::UNSIGNED)?;
    let declared = cx.declared()?;
    let bits = match declared {
        Shape::Tuple(t) => {
            let [state, bits] = &**t else {
                return Err(cx
                    .error(codes::RNG_STATE, format!("the result has {}", count(t.len(), "element")))
                    .label("must be a tuple of the next state and the bits"));
            };
            if !shapes_match(state, cx.operands[0], Match::Strict) {
                return Err(cx
                    .error(
                        codes::RNG_STATE,
                        format!("the state changes from {} to {}", show(cx.operands[0]), show(state)),
                    )
                    .at(0, format!("this is {}", show(cx.operands[0]))));
            }
            bits
        }
        one @ (Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_)) => one,
    };
    let Some(bits) = bits.as_array() else {
        return Err(cx
            .error(codes::EXPECTED_ARRAY, "the bits must be an array")
            .label(format!("this is {}", show(bits))));
    };
    if !Classes::REAL.contains(bits.element_type) {
        return Err(cx
            .error(codes::RESULT_ELEMENT_TYPE, format!("random bits cannot have type {}", bits.element_type))
            .label(format!("must be {}", Classes::REAL)));
    }
    Ok(declared.without_layout())
}

/// `rng-get-and-update-state`
pub(super) fn state(cx: &Cx) -> Inferred {
    cx.int(AttrKey::Delta)?;
    Ok(Shape::array(ElementType::U64, &[2]))
}
