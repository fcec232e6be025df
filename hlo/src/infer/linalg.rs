//! Linear algebra, Fourier transforms, batch normalization.

use super::InferError;
use super::cx::{Cx, DimList, Inferred, count, list, show_array, size, size_list};
use super::types::{Classes, same_dims, same_size};
use crate::attrs::{AttrKey, FftType};
use crate::diag::codes;
use crate::shape::{ArrayShape, Shape, UNBOUNDED};

const FIELD: Classes = Classes::FLOAT.or(Classes::COMPLEX);

/// Fails if operand 0 is not a (stack of) square matrices.
fn square<'a>(cx: &Cx<'a>) -> Result<&'a ArrayShape, InferError> {
    let a = cx.array(0)?;
    let [.., rows, columns] = *a.dims.as_slice() else {
        return Err(cx
            .error(codes::RANK, "the matrix must have at least 2 dimensions")
            .at(0, format!("this is {}", show_array(a))));
    };
    if same_size(rows, columns) {
        return Ok(a);
    }
    Err(cx
        .error(
            codes::SQUARE_MATRIX,
            format!("the matrix must be square, not {} by {}", size(rows), size(columns)),
        )
        .at(0, format!("this is {}", show_array(a))))
}

/// `cholesky`
pub(super) fn cholesky(cx: &Cx) -> Inferred {
    cx.require_type(0, FIELD)?;
    Ok(Shape::Array(square(cx)?.without_layout()))
}

/// `triangular-solve(a, b)`
pub(super) fn triangular_solve(cx: &Cx) -> Inferred {
    cx.require_type(0, FIELD)?;
    let (a, b) = (square(cx)?, cx.array(1)?);
    let fail = |code, what: String| {
        Err(cx
            .error(code, what)
            .at(0, format!("this is {}", show_array(a)))
            .at(1, format!("this is {}", show_array(b))))
    };
    if a.element_type != b.element_type {
        return fail(
            codes::ELEMENT_TYPES_DIFFER,
            format!(
                "operands 0 and 1 have different element types, {} and {}",
                a.element_type, b.element_type
            ),
        );
    }
    if a.rank() != b.rank() {
        return fail(codes::RANK, "operands have different numbers of dimensions".to_owned());
    }
    let batch = a.rank() - 2;
    let left = cx.attrs.bool(AttrKey::LeftSide);
    let shared = b.dims[batch + usize::from(!left)];
    if !same_size(a.dims[batch], shared) {
        let (what, where_) = if left { ("rows", "left") } else { ("columns", "right") };
        return fail(
            codes::SOLVE_SIZES,
            format!("a matrix of {} on the {where_} side of {} {what}", size(a.dims[batch]), size(shared)),
        );
    }
    if !same_dims(&a.dims[..batch], &b.dims[..batch]) {
        return fail(
            codes::SOLVE_SIZES,
            format!(
                "different leading dimensions, {} and {}",
                size_list(&a.dims[..batch]),
                size_list(&b.dims[..batch])
            ),
        );
    }
    Ok(Shape::Array(b.without_layout()))
}

/// `fft` of the last 1 to 3 dimensions, whose sizes are `fft_length`; the last one halved on the complex side
/// of a real transform.
pub(super) fn fft(cx: &Cx) -> Inferred {
    let a = cx.array(0)?;
    let lengths = cx.ints(AttrKey::FftLength)?;
    let kind = *cx.required(cx.attrs.fft_type(), AttrKey::FftType)?;
    let Some(&last) = lengths.last().filter(|_| lengths.len() <= 3) else {
        return Err(cx
            .error(
                codes::FFT_LENGTH,
                format!("fft_length={} has {}", list(lengths), count(lengths.len(), "size")),
            )
            .label("must have 1 to 3"));
    };
    if let Some(n) = lengths.iter().find(|&&n| n < 0) {
        return Err(cx.error(codes::FFT_LENGTH, format!("fft_length {n} is negative")));
    }
    let complex_in = match kind {
        FftType::Fft | FftType::Ifft | FftType::Irfft => true,
        FftType::Rfft => false,
    };
    if complex_in {
        cx.require_type(0, Classes::COMPLEX)?;
    } else if a.element_type.complex_of().is_none() {
        return Err(cx
            .error(
                codes::OPERAND_ELEMENT_TYPE,
                format!("operand 0 cannot have elements of type {}", a.element_type),
            )
            .at(0, format!("this is {}", show_array(a)))
            .label("must be f32 or f64"));
    }
    if a.rank() < lengths.len() {
        return Err(cx
            .error(codes::RANK, format!("{} cannot be transformed", count(lengths.len(), "dimension")))
            .at(0, format!("this has {}", count(a.rank(), "dimension"))));
    }
    let first = a.rank() - lengths.len();
    for (i, &n) in lengths.iter().enumerate() {
        let last_dim = i + 1 == lengths.len();
        let expected = match kind {
            FftType::Irfft if last_dim && n == 0 && a.dims[first + i] == 0 => 0,
            FftType::Irfft if last_dim => n / 2 + 1,
            FftType::Fft | FftType::Ifft | FftType::Rfft | FftType::Irfft => n,
        };
        if !same_size(a.dims[first + i], expected) {
            return Err(cx
                .error(
                    codes::FFT_LENGTH,
                    format!(
                        "dimension {} has size {}, but fft_length={}",
                        first + i,
                        size(a.dims[first + i]),
                        list(lengths)
                    ),
                )
                .at(0, format!("this is {}", show_array(a)))
                .label(format!("must have size {expected}")));
        }
    }
    let mut out = DimList::new();
    (0..a.rank() - 1).for_each(|i| out.push_from(a, i));
    let (end, dynamic) = (a.rank() - 1, a.is_dynamic_dim(a.rank() - 1) && a.dims[a.rank() - 1] != UNBOUNDED);
    match kind {
        FftType::Fft | FftType::Ifft => Ok(Shape::Array(a.without_layout())),
        FftType::Rfft => {
            if last == 0 {
                out.push_from(a, end);
            } else {
                out.push(last / 2 + 1, dynamic);
            }
            cx.build(a.element_type.complex_of().expect("invariant: checked above"), out)
        }
        FftType::Irfft => {
            out.push(last, dynamic);
            cx.build(a.element_type.real_part(), out)
        }
    }
}

/// Checks a batch normalization: a float array, and for each other operand in `vectors` one dimension of the
/// size of the feature dimension. Gives the shape of such a vector.
fn batch_norm<'a>(cx: &Cx<'a>, vectors: &[usize]) -> Result<(&'a ArrayShape, ArrayShape), InferError> {
    cx.require_type(0, Classes::FLOAT)?;
    let a = cx.array(0)?;
    let feature = cx.dimension("feature_index", cx.int(AttrKey::FeatureIndex)?, a.rank())?;
    for &i in vectors {
        let v = cx.array(i)?;
        if v.rank() != 1 {
            return Err(cx
                .error(codes::RANK, format!("operand {i} must have one dimension, not {}", v.rank()))
                .at(i, format!("this is {}", show_array(v))));
        }
        cx.require_same_types(0, i)?;
        if !same_size(v.dims[0], a.dims[feature]) {
            return Err(cx
                .error(
                    codes::FEATURE_COUNT,
                    format!(
                        "operand {i} has {} elements for {} features",
                        size(v.dims[0]),
                        size(a.dims[feature])
                    ),
                )
                .at(0, format!("dimension {feature} of {} has size {}", show_array(a), size(a.dims[feature])))
                .at(i, format!("this is {}", show_array(v))));
        }
    }
    let mut out = DimList::new();
    out.push_from(a, feature);
    Ok((a, cx.build_array(a.element_type, out)?))
}

/// `batch-norm-training(x, scale, offset)`: normalized, mean, variance.
pub(super) fn batch_norm_training(cx: &Cx) -> Inferred {
    let (a, feature) = batch_norm(cx, &[1, 2])?;
    Ok(Shape::tuple([a.without_layout().into(), feature.clone().into(), feature.into()]))
}

/// `batch-norm-inference(x, scale, offset, mean, variance)`
pub(super) fn batch_norm_inference(cx: &Cx) -> Inferred {
    let (a, _) = batch_norm(cx, &[1, 2, 3, 4])?;
    Ok(Shape::Array(a.without_layout()))
}

/// `batch-norm-grad(x, scale, mean, variance, gradient)`: gradients of operand, scale, offset.
pub(super) fn batch_norm_grad(cx: &Cx) -> Inferred {
    let (a, feature) = batch_norm(cx, &[1, 2, 3])?;
    cx.require_same_types(0, 4)?;
    cx.require_same_dims(0, 4)?;
    Ok(Shape::tuple([a.without_layout().into(), feature.clone().into(), feature.into()]))
}
