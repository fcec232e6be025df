//! Between arrays with run-time sizes and padded ones (`xla/service/dynamic_padder.h`).

use hlo::diag::codes;
use hlo::{ArrayShape, ElementType, Shape, UNBOUNDED};

use crate::custom_call::{Call, NOT_ONE_ARRAY};
use crate::error::Result;
use crate::ops::{Cx, movement};
use crate::value::{Tensor, Value};

/// Refuses a `PadToStatic` that [`pad_to_static`] refuses.
pub(super) fn check_pad(call: &Call<'_>) -> Result<()> {
    let operands: Vec<&Shape> = call.operands().collect();
    let [Shape::Array(x)] = operands[..] else { return Err(call.unsupported(NOT_ONE_ARRAY)) };
    if x.dims.contains(&UNBOUNDED) {
        return Err(call.unsupported("of an unbounded shape"));
    }
    let padded = Shape::Array(ArrayShape::new(x.element_type, &x.dims));
    let sizes = std::iter::repeat_n(Shape::scalar(ElementType::S32), x.rank());
    call.gives(&Shape::tuple([padded].into_iter().chain(sizes)))
}

/// Refuses a `SliceToDynamic` that [`slice_to_dynamic`] refuses whatever the sizes.
pub(super) fn check_slice(call: &Call<'_>) -> Result<()> {
    let mut arrays = call.operands().map(Shape::as_array);
    let (Some(x), Some(sizes)) = (arrays.next().flatten(), arrays.collect::<Option<Vec<_>>>()) else {
        return Err(call.unsupported("with other than arrays"));
    };
    let shape = sliced(call, x.rank(), sizes.iter().map(|s| (s.rank(), s.element_type)))?;
    call.gives(&Shape::Array(ArrayShape::new(x.element_type, &shape.dims)))
}

/// The result of a `SliceToDynamic` of an array of that rank, by the ranks and types of the sizes.
fn sliced<'a>(
    call: &Call<'a>,
    rank: usize,
    sizes: impl ExactSizeIterator<Item = (usize, ElementType)>,
) -> Result<&'a ArrayShape> {
    let Some(shape) = call.instruction.shape.as_array() else {
        return Err(call.unsupported("with such a result"));
    };
    let given = sizes.len();
    let scalars = sizes.into_iter().all(|(rank, ty)| rank == 0 && ty.is_integer());
    if given != rank || shape.rank() != rank || !scalars {
        return Err(call.unsupported("without a size for each dimension"));
    }
    Ok(shape)
}

/// `PadToStatic(x)`: x filled with zeros up to its bounds, and its size in each dimension.
pub(super) fn pad_to_static(cx: &Cx<'_>, call: &Call<'_>, args: &[Value]) -> Result<Value> {
    let [Value::Array(x)] = args else { return Err(call.unsupported(NOT_ONE_ARRAY)) };
    let bounds = cx.operand_shape(0).dims.clone();
    if bounds.contains(&UNBOUNDED) {
        return Err(call.unsupported("of an unbounded shape"));
    }
    let sizes = x.dims().iter().map(|&size| Tensor::scalar(i32::try_from(size).unwrap_or(i32::MAX)).into());
    let sizes: Vec<Value> = sizes.collect();
    let padded = movement::resized(cx, x, &bounds)?;
    Ok(Value::tuple([padded.into()].into_iter().chain(sizes)))
}

/// `SliceToDynamic(x, sizes...)`: the part of x below the sizes, which must be within the result's bounds.
pub(super) fn slice_to_dynamic(cx: &Cx<'_>, call: &Call<'_>, args: &[Value]) -> Result<Value> {
    let mut arrays = args.iter().map(Value::as_array);
    let (Some(x), Some(sizes)) = (arrays.next().flatten(), arrays.collect::<Option<Vec<_>>>()) else {
        return Err(call.unsupported("with other than arrays"));
    };
    let shape = sliced(call, x.rank(), sizes.iter().map(|s| (s.rank(), s.element_type())))?;
    let mut dims = shape.dims.clone();
    for (d, size) in sizes.iter().enumerate() {
        dims[d] = size.index_at(0);
        let bound = if shape.dims[d] == UNBOUNDED { x.dims()[d] } else { shape.dims[d].min(x.dims()[d]) };
        if !(0..=bound).contains(&dims[d]) {
            let message = format!("size {} of dimension {d}, whose bound is {bound}", dims[d]);
            return Err(cx.trap(codes::BAD_DYNAMIC_SIZE, message));
        }
    }
    movement::resized(cx, x, &dims).map(Value::from)
}
