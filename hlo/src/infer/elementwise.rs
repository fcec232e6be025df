//! Elementwise operations: each element of the result depends on the elements of the operands at the same
//! index.
//!
//! HLO has no implicit broadcast: operands have the same dimensions (an unbounded dimension matches any;
//! `clamp` and `select` may be scalars). Floats of different width may mix; the result has the type that
//! holds more, or what the text says.

use super::cx::{Cx, DimList, Inferred, show, show_array};
use super::types::{Classes, higher_precision, merge, same_dims, same_ignoring_precision};
use crate::attrs::{AttrKey, CompareType, Direction};
use crate::diag::codes;
use crate::element_type::ElementType;
use crate::shape::Shape;

/// An operation on elements of certain classes that keeps type and dimensions.
pub(super) fn unary(cx: &Cx, classes: Classes) -> Inferred {
    cx.require_type(0, classes)?;
    Ok(Shape::Array(cx.array(0)?.without_layout()))
}

/// `abs`, `real`, `imag`: a complex operand gives the type of its parts.
pub(super) fn real_part(cx: &Cx, classes: Classes) -> Inferred {
    cx.require_type(0, classes)?;
    let a = cx.array(0)?;
    Ok(Shape::Array(a.with_type(a.element_type.real_part()).without_layout()))
}

/// `is-finite`
pub(super) fn is_finite(cx: &Cx) -> Inferred {
    cx.require_type(0, Classes::FLOAT)?;
    Ok(Shape::Array(cx.array(0)?.with_type(ElementType::Pred).without_layout()))
}

/// `reduce-precision`
pub(super) fn reduce_precision(cx: &Cx) -> Inferred {
    cx.require_type(0, Classes::FLOAT)?;
    let (exponent, mantissa) = (cx.int(AttrKey::ExponentBits)?, cx.int(AttrKey::MantissaBits)?);
    if exponent < 1 {
        return Err(
            cx.error(codes::PRECISION_BITS, format!("exponent_bits must be at least 1, not {exponent}"))
        );
    }
    if mantissa < 0 {
        return Err(cx.error(codes::PRECISION_BITS, format!("mantissa_bits cannot be negative ({mantissa})")));
    }
    Ok(Shape::Array(cx.array(0)?.without_layout()))
}

/// `convert`: the element type is the declared one.
pub(super) fn convert(cx: &Cx) -> Inferred {
    let a = cx.array(0)?;
    Ok(Shape::Array(a.with_type(cx.declared_array()?.element_type).without_layout()))
}

/// `stochastic-convert`: random bits, as many as the operand has, decide how to round.
pub(super) fn stochastic_convert(cx: &Cx) -> Inferred {
    cx.require_type(0, Classes::FLOAT)?;
    cx.require_type(1, Classes::UNSIGNED)?;
    let (a, random) = (cx.array(0)?, cx.array(1)?);
    let (bits, random_bits) = (a.element_type.bits(), random.element_type.bits());
    if bits != random_bits {
        return Err(cx
            .error(
                codes::ELEMENT_TYPES_DIFFER,
                format!("random numbers must have as many bits as the operand, {bits}, not {random_bits}"),
            )
            .at(0, format!("elements of {bits} bits"))
            .at(1, format!("elements of {random_bits} bits")));
    }
    cx.require_same_dims(0, 1)?;
    let result = cx.declared_array()?.element_type;
    if !Classes::REAL.contains(result) {
        return Err(cx
            .error(codes::RESULT_ELEMENT_TYPE, format!("the result cannot have elements of type {result}"))
            .label(format!("must be {}", Classes::REAL)));
    }
    Ok(Shape::Array(a.with_type(result).without_layout()))
}

/// The dimensions of two operands that must agree.
fn common_dims(cx: &Cx) -> Result<DimList, super::InferError> {
    cx.require_same_types(0, 1)?;
    cx.require_same_dims(0, 1)?;
    let (a, b) = (cx.array(0)?, cx.array(1)?);
    let mut dims = DimList::new();
    for i in 0..a.rank() {
        let (size, dynamic) = merge(a, b, i);
        dims.push(size, dynamic);
    }
    Ok(dims)
}

/// An operation on two operands of certain classes that keeps type and dimensions.
pub(super) fn binary(cx: &Cx, classes: Classes) -> Inferred {
    cx.require_type(0, classes)?;
    cx.require_type(1, classes)?;
    let dims = common_dims(cx)?;
    cx.build(higher_precision(cx.array(0)?.element_type, cx.array(1)?.element_type), dims)
}

/// `complex`: two f32 or two f64.
pub(super) fn complex(cx: &Cx) -> Inferred {
    let (a, b) = (cx.array(0)?, cx.array(1)?);
    for (i, x) in [(0, a), (1, b)] {
        if x.element_type.complex_of().is_none() {
            return Err(cx
                .error(
                    codes::OPERAND_ELEMENT_TYPE,
                    format!("operand {i} cannot have elements of type {}", x.element_type),
                )
                .at(i, format!("this is {}", show_array(x)))
                .label("must be f32 or f64"));
        }
    }
    if a.element_type != b.element_type {
        return Err(cx
            .error(
                codes::ELEMENT_TYPES_DIFFER,
                format!(
                    "real and imaginary parts have different types, {} and {}",
                    a.element_type, b.element_type
                ),
            )
            .at(0, format!("this is {}", show_array(a)))
            .at(1, format!("this is {}", show_array(b))));
    }
    let dims = common_dims(cx)?;
    let ty = a.element_type.complex_of().expect("invariant: checked above");
    cx.build(ty, dims)
}

/// `compare`
pub(super) fn compare(cx: &Cx) -> Inferred {
    let dims = common_dims(cx)?;
    let ty = cx.array(1)?.element_type;
    let direction = *cx.required(cx.attrs.direction(), AttrKey::Direction)?;
    let default = CompareType::of(ty);
    if let Some(&how) = cx.attrs.compare_type() {
        let fits = how == default || ty.is_float() && how == CompareType::TotalOrder;
        if !fits {
            let also = if ty.is_float() { " or TOTALORDER" } else { "" };
            return Err(cx
                .error(
                    codes::COMPARE_TYPE,
                    format!("elements of type {ty} cannot be compared as {}", how.text()),
                )
                .at(1, format!("this is {}", show(cx.operands[1])))
                .label(format!("must be {}{also}", default.text())));
        }
    }
    if ty.is_complex() && !matches!(direction, Direction::Eq | Direction::Ne) {
        return Err(cx
            .error(
                codes::COMPARE_TYPE,
                format!("complex numbers have no order, {} means nothing", direction.text()),
            )
            .at(0, format!("this is {}", show(cx.operands[0])))
            .label("must be EQ or NE"));
    }
    cx.build(ElementType::Pred, dims)
}

/// `clamp(low, x, high)`: the bounds are scalars or of the shape of `x`.
pub(super) fn clamp(cx: &Cx) -> Inferred {
    for i in 0..3 {
        cx.require_type(i, Classes::ANY)?;
    }
    cx.require_same_types(0, 1)?;
    cx.require_same_types(1, 2)?;
    for i in [0, 2] {
        if !cx.array(i)?.dims.is_empty() {
            cx.require_same_dims(i, 1)?;
        }
    }
    Ok(Shape::Array(cx.array(1)?.without_layout()))
}

/// `select(predicate, a, b)`: the predicate is a scalar or of the shape of the others.
pub(super) fn select(cx: &Cx) -> Inferred {
    cx.require_type(0, Classes::PRED)?;
    let (p, a, b) = (cx.array(0)?, cx.array(1)?, cx.array(2)?);
    if !same_ignoring_precision(a.element_type, b.element_type) {
        cx.require_same_types(1, 2)?;
    }
    cx.require_same_dims(1, 2)?;
    let scalar = p.dims.is_empty();
    if !scalar && (!same_dims(&p.dims, &a.dims) || !same_dims(&p.dims, &b.dims)) {
        return Err(cx
            .error(
                codes::OPERAND_SHAPES_DIFFER,
                format!(
                    "the predicate has another shape than what it selects, {} and {}",
                    show_array(p),
                    show_array(a)
                ),
            )
            .at(0, format!("this is {}", show_array(p)))
            .at(1, format!("this is {}", show_array(a)))
            .label("must be a scalar or have the same dimensions"));
    }
    let mut dims = DimList::new();
    for i in 0..a.rank() {
        let (size, dynamic) = merge(a, b, i);
        dims.push(size, dynamic || !scalar && p.is_dynamic_dim(i));
    }
    cx.build(higher_precision(a.element_type, b.element_type), dims)
}
