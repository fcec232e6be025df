//! Operations that move data without computing: reshape, transpose, broadcast, slices, pad, concatenate,
//! iota, bitcasts.

use super::InferError;
use super::cx::{Cx, DimList, Inferred, count, list, show, show_array, size};
use super::types::{Classes, higher_precision, same_ignoring_precision, same_size};
use crate::attrs::AttrKey;
use crate::diag::codes;
use crate::shape::{ArrayShape, Shape, UNBOUNDED};

/// `copy`, and others that hand on their operand whatever it is.
pub(super) fn identity(cx: &Cx) -> Inferred {
    Ok(cx.operands[0].without_layout())
}

/// `reshape`: the declared dimensions hold as many elements.
pub(super) fn reshape(cx: &Cx) -> Inferred {
    let (a, result) = (cx.array(0)?, cx.declared_array()?);
    same_type(cx, a, result)?;
    same_elements(cx, a, result)?;
    if let Some(d) = cx.attrs.int(AttrKey::InferredDimension)
        && d != -1
    {
        cx.dimension("inferred_dimension", d, result.rank())?;
    }
    Ok(Shape::Array(result.without_layout()))
}

/// Fails if the result of a reshape does not keep the element type.
pub(super) fn same_type(cx: &Cx, a: &ArrayShape, result: &ArrayShape) -> Result<(), InferError> {
    if a.element_type == result.element_type {
        return Ok(());
    }
    Err(cx
        .error(
            codes::RESULT_ELEMENT_TYPE,
            format!("the element type cannot change from {} to {}", a.element_type, result.element_type),
        )
        .at(0, format!("this is {}", show_array(a)))
        .label(format!("elements must be {}", a.element_type)))
}

/// Fails if two arrays (of bounded dimensions) do not hold as many elements.
pub(super) fn same_elements(cx: &Cx, a: &ArrayShape, result: &ArrayShape) -> Result<(), InferError> {
    if a.dims.contains(&UNBOUNDED) || result.dims.contains(&UNBOUNDED) {
        return Ok(());
    }
    let from = a.checked_elements().ok_or_else(|| cx.overflow("the number of elements of the operand"))?;
    let to = result.checked_elements().ok_or_else(|| cx.overflow("the number of elements of the result"))?;
    if from == to {
        return Ok(());
    }
    Err(cx
        .error(codes::ELEMENT_COUNT, format!("{from} elements cannot become {to}"))
        .at(0, format!("{} has {from}", show_array(a)))
        .label(format!("{} has {to}", show_array(result))))
}

/// `transpose`: dimension `i` of the result is dimension `dimensions[i]` of the operand.
pub(super) fn transpose(cx: &Cx) -> Inferred {
    let a = cx.array(0)?;
    let dims = cx.ints(AttrKey::Dimensions)?;
    if dims.len() != a.rank() {
        return Err(cx
            .error(
                codes::DIMENSION_COUNT,
                format!("dimensions={} must name each of {} once", list(dims), count(a.rank(), "dimension")),
            )
            .at(0, format!("this is {}", show_array(a))));
    }
    let mut out = DimList::new();
    for d in cx.dimensions("dimension", dims, a.rank())? {
        out.push_from(a, d);
    }
    cx.build(a.element_type, out)
}

/// `reverse`
pub(super) fn reverse(cx: &Cx) -> Inferred {
    let a = cx.array(0)?;
    cx.dimensions("dimension", cx.ints(AttrKey::Dimensions)?, a.rank())?;
    Ok(Shape::Array(a.without_layout()))
}

/// `broadcast`: dimension `i` of the operand becomes dimension `dimensions[i]` of the result, of the same
/// size. Without a declared shape the result is the operand with leading dimensions of the sizes in
/// `dimensions`, as XLA's parser has it, which makes sense for little else than scalars.
pub(super) fn broadcast(cx: &Cx) -> Inferred {
    let a = cx.array(0)?;
    let dims = cx.attrs.ints_or_empty(AttrKey::Dimensions);
    let result = match cx.declared {
        Some(_) => cx.declared_array()?.without_layout(),
        None => {
            let mut out = DimList::new();
            for &d in dims {
                if d < 0 {
                    return Err(cx.declared().expect_err("invariant: nothing is declared"));
                }
                out.push(d, false);
            }
            (0..a.rank()).for_each(|i| out.push_from(a, i));
            cx.build_array(a.element_type, out)?
        }
    };
    same_type(cx, a, &result)?;
    if dims.len() != a.rank() {
        return Err(cx
            .error(
                codes::DIMENSION_COUNT,
                format!(
                    "dimensions={} must name one dimension of the result for each of the operand",
                    list(dims)
                ),
            )
            .at(0, format!("this has {}", count(a.rank(), "dimension"))));
    }
    for (i, d) in cx.dimensions("dimension", dims, result.rank())?.into_iter().enumerate() {
        if !same_size(a.dims[i], result.dims[d]) {
            return Err(cx
                .error(
                    codes::BROADCAST_SIZE,
                    format!(
                        "dimension {i} of the operand has size {}, dimension {d} of the result {}",
                        size(a.dims[i]),
                        size(result.dims[d])
                    ),
                )
                .at(0, format!("this is {}", show_array(a)))
                .label(format!(
                    "{} must have size {} in dimension {d}",
                    show_array(&result),
                    size(a.dims[i])
                )));
        }
    }
    Ok(Shape::Array(result))
}

/// `concatenate` along one dimension; the others agree.
pub(super) fn concatenate(cx: &Cx) -> Inferred {
    let first = cx.array(0)?;
    let along = cx.dimension("dimension", cx.one_dimension(AttrKey::Dimensions)?, first.rank())?;
    let mut ty = first.element_type;
    let mut sizes: Vec<(i64, bool)> =
        (0..first.rank()).map(|i| (first.dims[i], first.is_dynamic_dim(i))).collect();
    for n in 1..cx.operands.len() {
        let x = cx.array(n)?;
        if x.rank() != first.rank() {
            return Err(cx
                .error(codes::RANK, format!("operands 0 and {n} have different numbers of dimensions"))
                .at(0, format!("this is {}", show_array(first)))
                .at(n, format!("this is {}", show_array(x))));
        }
        cx.require_same_types(0, n)?;
        ty = higher_precision(ty, x.element_type);
        for (i, (length, dynamic)) in sizes.iter_mut().enumerate() {
            let d = x.dims[i];
            if i == along {
                *length = if *length == UNBOUNDED || d == UNBOUNDED {
                    UNBOUNDED
                } else {
                    length.checked_add(d).ok_or_else(|| cx.overflow("the length of the result"))?
                };
                *dynamic |= x.is_dynamic_dim(i);
            } else if *length == UNBOUNDED {
                (*length, *dynamic) = (d, x.is_dynamic_dim(i));
            } else if d != UNBOUNDED {
                if *length != d {
                    return Err(cx
                        .error(
                            codes::CONCATENATE_SIZES,
                            format!(
                                "dimension {i} has size {} in one operand and {d} in another",
                                size(*length)
                            ),
                        )
                        .at(0, format!("this is {}", show_array(first)))
                        .at(n, format!("this is {}", show_array(x)))
                        .label(format!("only dimension {along} may differ")));
                }
                *dynamic |= x.is_dynamic_dim(i);
            }
        }
    }
    let mut out = DimList::new();
    sizes.into_iter().for_each(|(n, dynamic)| out.push(n, dynamic));
    cx.build(ty, out)
}

/// `slice`: `[start:limit:stride]` for each dimension.
pub(super) fn slice(cx: &Cx) -> Inferred {
    let a = cx.array(0)?;
    let slices = cx.required(cx.attrs.slices(), AttrKey::Slice)?;
    if slices.len() != a.rank() {
        return Err(cx
            .error(
                codes::DIMENSION_COUNT,
                format!("{} for {}", count(slices.len(), "interval"), count(a.rank(), "dimension")),
            )
            .at(0, format!("this is {}", show_array(a))));
    }
    let mut out = DimList::new();
    for (i, s) in slices.iter().enumerate() {
        let dim = a.dims[i];
        let fail = |what: String| {
            Err(cx
                .error(codes::SLICE_BOUNDS, what)
                .at(0, format!("dimension {i} of {} has size {}", show_array(a), size(dim)))
                .label(format!("in [{}:{}:{}]", s.start, s.limit, s.stride)))
        };
        if s.start < 0 {
            return fail(format!("start {} of dimension {i} is negative", s.start));
        }
        if dim != UNBOUNDED && s.limit > dim {
            return fail(format!("limit {} of dimension {i} is beyond its size {dim}", s.limit));
        }
        if s.start > s.limit {
            return fail(format!("start {} of dimension {i} is beyond limit {}", s.start, s.limit));
        }
        if s.stride <= 0 {
            return fail(format!("stride {} of dimension {i} is not positive", s.stride));
        }
        let n = ceil_div(s.limit - s.start, s.stride);
        // One element of a dynamic dimension is there or not, but the result is static.
        out.push(n, n != 1 && dim != UNBOUNDED && a.is_dynamic_dim(i));
    }
    cx.build(a.element_type, out)
}

/// `a / b` rounded up, of a not negative `a` and a positive `b`.
pub(super) fn ceil_div(a: i64, b: i64) -> i64 {
    a / b + i64::from(a % b != 0)
}

/// Start indices: one scalar integer for each dimension, all of the same type, or a single vector of them.
fn start_indices(cx: &Cx, first: usize, rank: usize) -> Result<(), InferError> {
    let n = cx.operands.len() - first;
    if n == 1 && cx.array(first)?.rank() == 1 {
        cx.require_type(first, Classes::INTEGER)?;
        let length = cx.array(first)?.dims[0];
        if !same_size(length, i64::try_from(rank).unwrap_or(i64::MAX)) {
            return Err(cx
                .error(
                    codes::START_INDICES,
                    format!("{} start indices for {}", size(length), count(rank, "dimension")),
                )
                .at(0, format!("this has {}", count(rank, "dimension")))
                .at(first, format!("this is {}", show(cx.operands[first]))));
        }
        return Ok(());
    }
    if n != rank {
        return Err(cx
            .error(
                codes::START_INDICES,
                format!("{} for {}", count(n, "start index operand"), count(rank, "dimension")),
            )
            .at(0, format!("this has {}", count(rank, "dimension"))));
    }
    for i in first..cx.operands.len() {
        let ty = cx.scalar(i, "a start index")?;
        cx.require_type(i, Classes::INTEGER)?;
        let expected = cx.array(first)?.element_type;
        if ty != expected {
            return Err(cx
                .error(
                    codes::START_INDICES,
                    format!("start indices have different types, {expected} and {ty}"),
                )
                .at(first, format!("this is {expected}[]"))
                .at(i, format!("this is {ty}[]")));
        }
    }
    Ok(())
}

/// `dynamic-slice`
pub(super) fn dynamic_slice(cx: &Cx) -> Inferred {
    let a = cx.array(0)?;
    start_indices(cx, 1, a.rank())?;
    let sizes = cx.ints(AttrKey::DynamicSliceSizes)?;
    if sizes.len() != a.rank() {
        return Err(cx
            .error(
                codes::DIMENSION_COUNT,
                format!(
                    "dynamic_slice_sizes={} has {} for {}",
                    list(sizes),
                    count(sizes.len(), "size"),
                    count(a.rank(), "dimension")
                ),
            )
            .at(0, format!("this is {}", show_array(a))));
    }
    let mut out = DimList::new();
    for (i, &n) in sizes.iter().enumerate() {
        written_slice_fits(cx, i, n, a)?;
        // A whole dynamic dimension stays dynamic.
        out.push(n, a.is_dynamic_dim(i) && n > 1 && n == a.dims[i]);
    }
    cx.build(a.element_type, out)
}

/// Fails if a slice does not fit in dimension `i`. Its size `n` is a number of an attribute, in which
/// [`UNBOUNDED`] is as negative as other negative numbers.
pub(super) fn written_slice_fits(cx: &Cx, i: usize, n: i64, a: &ArrayShape) -> Result<(), InferError> {
    if n < 0 {
        return Err(slice_misfit(cx, "slice", i, n.to_string(), a));
    }
    slice_fits(cx, "slice", i, n, a)
}

/// Fails if a slice of size `n`, which is that of a dimension, does not fit in dimension `i`.
fn slice_fits(cx: &Cx, what: &str, i: usize, n: i64, a: &ArrayShape) -> Result<(), InferError> {
    let dim = a.dims[i];
    if n == UNBOUNDED || n >= 0 && (dim == UNBOUNDED || n <= dim) {
        return Ok(());
    }
    Err(slice_misfit(cx, what, i, size(n), a))
}

fn slice_misfit(cx: &Cx, what: &str, i: usize, n: String, a: &ArrayShape) -> InferError {
    let dim = size(a.dims[i]);
    cx.error(
        codes::SLICE_SIZE,
        format!("the {what} has size {n} in dimension {i}, where the operand has {dim}"),
    )
    .at(0, format!("dimension {i} of {} has size {dim}", show_array(a)))
    .label(format!("must be 0 to {dim}"))
}

/// `dynamic-update-slice`; the operand may be a buffer, which it then updates.
pub(super) fn dynamic_update_slice(cx: &Cx) -> Inferred {
    let a = match cx.operands[0] {
        Shape::Buffer(inner) => inner.as_array().ok_or_else(|| {
            cx.error(codes::EXPECTED_ARRAY, "operand 0 must be an array or a buffer of one")
                .at(0, format!("this is {}", show(cx.operands[0])))
        })?,
        Shape::Array(_) | Shape::Tuple(_) | Shape::Token | Shape::Opaque => cx.array(0)?,
    };
    let update = cx.array(1)?;
    start_indices(cx, 2, a.rank())?;
    if update.rank() != a.rank() {
        return Err(cx
            .error(codes::RANK, "operand and update have different numbers of dimensions")
            .at(0, format!("this is {}", show_array(a)))
            .at(1, format!("this is {}", show_array(update))));
    }
    if !same_ignoring_precision(a.element_type, update.element_type) {
        return Err(cx
            .error(
                codes::ELEMENT_TYPES_DIFFER,
                format!(
                    "operand and update have different element types, {} and {}",
                    a.element_type, update.element_type
                ),
            )
            .at(0, format!("this is {}", show_array(a)))
            .at(1, format!("this is {}", show_array(update))));
    }
    let mut out = DimList::new();
    for i in 0..a.rank() {
        slice_fits(cx, "update", i, update.dims[i], a)?;
        let whole = update.dims[i] == a.dims[i];
        out.push(a.dims[i], a.is_dynamic_dim(i) || whole && update.is_dynamic_dim(i));
    }
    let result = cx.build(a.element_type, out)?;
    Ok(match cx.operands[0] {
        Shape::Buffer(_) => Shape::Buffer(result.into()),
        Shape::Array(_) | Shape::Tuple(_) | Shape::Token | Shape::Opaque => result,
    })
}

/// `pad`: `low`, `high` (negative ones cut) and `interior` for each dimension.
pub(super) fn pad(cx: &Cx) -> Inferred {
    let a = cx.array(0)?;
    let value = cx.scalar(1, "the padding value")?;
    cx.require_same_types(0, 1)?;
    let padding = cx.required(cx.attrs.padding(), AttrKey::Padding)?;
    if padding.len() != a.rank() {
        return Err(cx
            .error(
                codes::DIMENSION_COUNT,
                format!("padding for {} of {}", count(padding.len(), "dimension"), a.rank()),
            )
            .at(0, format!("this is {}", show_array(a))));
    }
    let mut out = DimList::new();
    for (i, p) in padding.iter().enumerate() {
        if p.interior < 0 {
            return Err(cx.error(
                codes::PADDING,
                format!("interior padding {} of dimension {i} is negative", p.interior),
            ));
        }
        let n = a.dims[i];
        let padded = if n == UNBOUNDED {
            UNBOUNDED
        } else {
            let sum = (n - 1)
                .max(0)
                .checked_mul(p.interior)
                .and_then(|inner| n.checked_add(inner)?.checked_add(p.low)?.checked_add(p.high));
            sum.ok_or_else(|| cx.overflow(&format!("the padded size of dimension {i}")))?
        };
        if padded < 0 && n != UNBOUNDED {
            return Err(cx
                .error(codes::PADDING, format!("dimension {i} would have size {padded}"))
                .at(0, format!("dimension {i} of {} has size {n}", show_array(a)))
                .label(format!("{}_{}_{}", p.low, p.high, p.interior)));
        }
        out.push(padded, a.is_dynamic_dim(i));
    }
    cx.build(higher_precision(a.element_type, value), out)
}

/// `iota`: the declared shape, which has the dimension that is counted along.
pub(super) fn iota(cx: &Cx) -> Inferred {
    let result = cx.declared_array()?;
    if result.dims.is_empty() {
        return Err(cx.error(codes::RANK, "the result cannot be a scalar"));
    }
    cx.dimension("iota_dimension", cx.int(AttrKey::IotaDimension)?, result.rank())?;
    if !Classes::NUMBER.contains(result.element_type) {
        return Err(cx
            .error(
                codes::RESULT_ELEMENT_TYPE,
                format!("the result cannot have elements of type {}", result.element_type),
            )
            .label(format!("must be {}", Classes::NUMBER)));
    }
    Ok(Shape::Array(result.without_layout()))
}

/// `bitcast-convert`: elements of another width are made of, or split into, the last dimension.
pub(super) fn bitcast_convert(cx: &Cx) -> Inferred {
    let (a, ty) = (cx.array(0)?, cx.declared_array()?.element_type);
    let fail =
        |what: String| Err(cx.error(codes::BITCAST_WIDTH, what).at(0, format!("this is {}", show_array(a))));
    if a.element_type.is_complex() != ty.is_complex() {
        return fail(format!(
            "bits of {} cannot become {ty}: one is complex, the other is not",
            a.element_type
        ));
    }
    let (from, to) = (a.element_type.bits(), ty.bits());
    if from.max(to) % from.min(to) != 0 {
        return fail(format!("{from} bits of {} cannot become {to} bits of {ty}", a.element_type));
    }
    let mut out = DimList::new();
    if from >= to {
        (0..a.rank()).for_each(|i| out.push_from(a, i));
        if from > to {
            out.push(i64::from(from / to), false);
        }
    } else {
        let ratio = i64::from(to / from);
        let Some((&last, rest)) = a.dims.split_last() else {
            return fail(format!("a scalar of {from} bits cannot become {to} bits of {ty}"));
        };
        if !same_size(last, ratio) {
            return fail(format!(
                "{ratio} elements of {} make one of {ty}, but the last dimension has size {last}",
                a.element_type
            ));
        }
        (0..rest.len()).for_each(|i| out.push_from(a, i));
    }
    cx.build(ty, out)
}

/// Bits in memory: with packed narrow elements and with whole bytes.
fn memory_bits(a: &ArrayShape) -> Option<(i128, i128)> {
    let n = i128::from(a.checked_elements()?);
    Some((n * i128::from(a.element_type.bits()), n * 8 * a.element_type.storage_bytes() as i128))
}

/// `bitcast`: the declared shape takes as many bytes. Where tiles or run-time sizes decide how many those
/// are, nothing is checked here: memory is a backend's matter then.
pub(super) fn bitcast(cx: &Cx) -> Inferred {
    let (a, result) = (cx.array(0)?, cx.declared_array()?);
    let plain = |x: &ArrayShape| {
        !x.is_dynamic()
            && x.layout.as_ref().is_none_or(|l| {
                l.tiles.is_empty() && l.physical_shape.is_none() && l.tail_padding_alignment.is_none()
            })
    };
    if plain(a) && plain(result) {
        let from = memory_bits(a).ok_or_else(|| cx.overflow("the number of elements of the operand"))?;
        let to = memory_bits(result).ok_or_else(|| cx.overflow("the number of elements of the result"))?;
        if from.0 != to.0 && from.1 != to.1 {
            return Err(cx
                .error(codes::BITCAST_SIZE, format!("{} bytes cannot become {}", from.1 / 8, to.1 / 8))
                .at(0, format!("{} takes {} bytes", show_array(a), from.1 / 8))
                .label(format!("{} takes {} bytes", show_array(result), to.1 / 8)));
        }
    }
    Ok(Shape::Array(result.without_layout()))
}
