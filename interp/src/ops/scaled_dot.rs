//! `scaled-dot(lhs, rhs, lhs scale, rhs scale)`: `dot` of operands that are multiplied by scales, one for
//! each block of elements. A scale has the operand's rank, and each of its sizes divides the operand's; a
//! scalar scale counts as 1.
//!
//! The scaled operands are products in f64, exact for operands and scales of f32 and narrower, and then
//! contracted as by `dot`. With `--accumulate region` operands and scales are converted to the result type
//! first, and the products are rounded to f32 (for a result of f64 to f64).

use hlo::ElementType;
use hlo_arithmetic::sum::Accumulate;

use super::common::{arrays, dims};
use super::dot::{check_precision, product, sides};
use super::elementwise::convert;
use super::strided::strides;
use super::{Args, Cx};
use crate::error::Result;
use crate::value::{Sizes, Tensor, Value};

/// `scaled-dot(lhs, rhs, lhs scale, rhs scale)`.
pub(super) fn scaled_dot(cx: &Cx<'_>, args: Args) -> Result<Value> {
    check_precision(cx)?;
    let [lhs, rhs, lhs_scale, rhs_scale] = arrays(args);
    let (left, right) = sides(cx);
    let ty = super::contract::sum_type(cx);
    if !ty.is_float() {
        return Err(cx.unsupported(&format!("with a result of type {ty}")));
    }
    let (lhs, rhs) = (scaled(cx, lhs, lhs_scale)?, scaled(cx, rhs, rhs_scale)?);
    Ok(product(cx, lhs, &left, rhs, &right, ty)?.into())
}

/// The operand times its scale.
fn scaled(cx: &Cx<'_>, x: Tensor, scale: Tensor) -> Result<Tensor> {
    let ty = super::contract::sum_type(cx);
    let literal = cx.accumulate() == Accumulate::Region;
    let operand = |x: Tensor| -> Result<Tensor> {
        let x = if literal { convert(cx, x, ty)? } else { x };
        convert(cx, x, ElementType::F64)
    };
    let (sizes, scale_sizes) = (x.sizes(), scale.sizes());
    if scale_sizes.is_empty() {
        return Ok(x);
    }
    let fits = sizes.len() == scale_sizes.len()
        && sizes.iter().zip(&scale_sizes).all(|(&n, &s)| n == 0 || s != 0 && n.is_multiple_of(s));
    if !fits {
        return Err(
            cx.unsupported(&format!("of dimensions {sizes:?} with a scale of dimensions {scale_sizes:?}"))
        );
    }
    let (x, scale) = (operand(x)?, operand(scale)?);
    let offsets = blocks(&sizes, &scale_sizes);
    let scale = scale.slice::<f64>();
    let products = x.slice::<f64>().iter().zip(offsets).map(|(&x, at)| x * scale[at]);
    if literal && ty != ElementType::F64 {
        let products: Vec<f32> = products.map(|x| x as f32).collect();
        return Ok(Tensor::from_vec(dims(&sizes), products));
    }
    let products: Vec<f64> = products.collect();
    Ok(Tensor::from_vec(dims(&sizes), products))
}

/// For each element of the operand, the offset of its scale.
fn blocks(sizes: &Sizes, scale: &Sizes) -> Vec<usize> {
    let mut offsets = vec![0];
    for ((&size, &count), stride) in sizes.iter().zip(scale).zip(strides(scale)) {
        let block = size.checked_div(count).unwrap_or(1).max(1);
        offsets = offsets.iter().flat_map(|&at| (0..size).map(move |i| at + i / block * stride)).collect();
    }
    offsets
}
