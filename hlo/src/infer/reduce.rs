//! `reduce`, `map`, `scan`, and what is asked of a reducer.

use smallvec::SmallVec;

use super::InferError;
use super::control::callee;
use super::cx::{Cx, DimList, Inferred, count, list, show, show_array, size};
use super::types::{Match, is_scalar_of, same_size, shapes_match};
use crate::attrs::AttrKey;
use crate::diag::codes;
use crate::element_type::ElementType;
use crate::shape::{ArrayShape, ProgramShape, Shape};

/// An operand's number and element type.
pub(super) type Typed = (usize, ElementType);

/// Checks a computation `(accumulators..., values...) -> accumulators` against initial values and values of
/// these types (the widths of floats may differ). Gives the types of the accumulators.
pub(super) fn check_reducer(
    cx: &Cx,
    key: AttrKey,
    signature: &ProgramShape,
    inits: &[Typed],
    values: &[Typed],
) -> Result<SmallVec<[ElementType; 2]>, InferError> {
    let n = values.len();
    let name = callee(cx, key);
    if signature.parameters.len() != 2 * n {
        return Err(cx
            .error(
                codes::REDUCER_ARITY,
                format!("{name} takes {}", count(signature.parameters.len(), "parameter")),
            )
            .label(format!("must take {}: {} and {}", 2 * n, count(n, "accumulator"), count(n, "value"))));
    }
    let results: &[Shape] = match &signature.result {
        Shape::Tuple(t) => t,
        one @ (Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_)) => {
            std::slice::from_ref(one)
        }
    };
    let types: Option<SmallVec<[ElementType; 2]>> =
        results.iter().map(|s| s.as_array().filter(|a| a.dims.is_empty()).map(|a| a.element_type)).collect();
    let expected = || if n == 1 { "a scalar".to_owned() } else { format!("a tuple of {n} scalars") };
    let Some(types) = types.filter(|t| t.len() == n) else {
        return Err(cx
            .error(codes::REDUCER_RESULT, format!("{name} gives {}", show(&signature.result)))
            .label(format!("must give {}", expected())));
    };
    for (i, &ty) in types.iter().enumerate() {
        let accumulator = &signature.parameters[i];
        if !shapes_match(accumulator, &Shape::scalar(ty), Match::Strict) {
            return Err(cx
                .error(
                    codes::REDUCER_TYPES,
                    format!("parameter {i} of {name} is {}, but its result {ty}[]", show(accumulator)),
                )
                .label("must be the same: one is the next accumulator"));
        }
        let (operand, init) = inits[i];
        if !is_scalar_of(accumulator, init) {
            return Err(cx
                .error(codes::REDUCER_TYPES, format!("{name} accumulates {ty}[], but starts with {init}"))
                .at(operand, format!("elements are {init}")));
        }
        let (operand, value_type) = values[i];
        let value = &signature.parameters[n + i];
        if !is_scalar_of(value, value_type) || !is_scalar_of(value, ty) {
            return Err(cx
                .error(
                    codes::REDUCER_TYPES,
                    format!(
                        "parameter {} of {name} is {}, but accumulates values of type {value_type} in {ty}",
                        n + i,
                        show(value)
                    ),
                )
                .at(operand, format!("elements are {value_type}")));
        }
    }
    Ok(types)
}

/// Operands of `reduce` and `reduce-window`: inputs of equal dimensions, then a scalar to start with for
/// each. Gives the number of inputs and the types of the accumulators.
pub(super) fn inputs_and_inits(cx: &Cx) -> Result<(usize, SmallVec<[ElementType; 2]>), InferError> {
    let n = cx.operands.len() / 2;
    if cx.operands.len() != 2 * n {
        return Err(cx
            .error(codes::REDUCE_OPERANDS, format!("{} given", count(cx.operands.len(), "operand")))
            .label("takes as many initial values as inputs"));
    }
    let (mut inits, mut values) = (SmallVec::<[Typed; 2]>::new(), SmallVec::<[Typed; 2]>::new());
    for i in 0..n {
        values.push((i, cx.array(i)?.element_type));
        if i > 0 {
            cx.require_same_dims(0, i)?;
        }
        inits.push((n + i, cx.scalar(n + i, "an initial value")?));
    }
    let signature = cx.signature(AttrKey::ToApply)?;
    let types = check_reducer(cx, AttrKey::ToApply, &signature, &inits, &values)?;
    Ok((n, types))
}

/// Whether a computation gives a tuple, be it of one element.
pub(super) fn gives_tuple(cx: &Cx, key: AttrKey) -> Result<bool, InferError> {
    Ok(cx.signature(key)?.result.as_tuple().is_some())
}

/// `reduce`
pub(super) fn reduce(cx: &Cx) -> Inferred {
    let (_, types) = inputs_and_inits(cx)?;
    let a = cx.array(0)?;
    let reduced = cx.dimensions("dimension", cx.ints(AttrKey::Dimensions)?, a.rank())?;
    let mut out = DimList::new();
    (0..a.rank()).filter(|i| !reduced.contains(i)).for_each(|i| out.push_from(a, i));
    results(cx, &types, |_| Ok(out.clone()), gives_tuple(cx, AttrKey::ToApply)?)
}

/// Arrays of these types, as a tuple if the computation gives one.
pub(super) fn results(
    cx: &Cx,
    types: &[ElementType],
    dims: impl Fn(usize) -> Result<DimList, InferError>,
    tuple: bool,
) -> Inferred {
    let arrays: Result<Vec<Shape>, InferError> =
        types.iter().enumerate().map(|(i, &ty)| cx.build(ty, dims(i)?)).collect();
    let mut arrays = arrays?;
    match arrays.pop() {
        Some(only) if !tuple && arrays.is_empty() => Ok(only),
        last => {
            arrays.extend(last);
            Ok(Shape::tuple(arrays))
        }
    }
}

/// `map`: a function of scalars at each index of operands of equal dimensions.
pub(super) fn map(cx: &Cx) -> Inferred {
    for i in 0..cx.operands.len() {
        cx.array(i)?;
        cx.require_same_dims(0, i)?;
    }
    let a = cx.array(0)?;
    let dims = cx.attrs.ints_or_empty(AttrKey::Dimensions);
    let all = dims.len() == a.rank() && dims.iter().enumerate().all(|(i, &d)| usize::try_from(d) == Ok(i));
    if !dims.is_empty() && !all {
        return Err(cx
            .error(
                codes::DIMENSION_COUNT,
                format!("dimensions={} must be all dimensions in order", list(dims)),
            )
            .at(0, format!("this is {}", show_array(a))));
    }
    let signature = cx.signature(AttrKey::ToApply)?;
    let name = callee(cx, AttrKey::ToApply);
    if signature.parameters.len() != cx.operands.len() {
        return Err(cx.error(
            codes::MAP_SIGNATURE,
            format!(
                "{} for the {} of {name}",
                count(cx.operands.len(), "operand"),
                count(signature.parameters.len(), "parameter")
            ),
        ));
    }
    for (i, parameter) in signature.parameters.iter().enumerate() {
        let ty = cx.array(i)?.element_type;
        if !is_scalar_of(parameter, ty) {
            return Err(cx
                .error(codes::MAP_SIGNATURE, format!("parameter {i} of {name} is {}", show(parameter)))
                .at(i, format!("elements are {ty}"))
                .label(format!("must be {ty}[]")));
        }
    }
    let Some(result) = signature.result.as_array().filter(|r| r.dims.is_empty()) else {
        return Err(cx
            .error(codes::MAP_SIGNATURE, format!("{name} gives {}", show(&signature.result)))
            .label("must give a scalar"));
    };
    cx.build(result.element_type, DimList::of(a))
}

/// Takes a dimension out of an array, or puts one in.
fn without(a: &ArrayShape, d: usize) -> Shape {
    let mut out = DimList::new();
    (0..a.rank()).filter(|&i| i != d).for_each(|i| out.push_from(a, i));
    let array = ArrayShape { layout: None, ..a.clone() };
    Shape::Array(out.replace_dims(array))
}

/// The elements of a tuple, or the one shape.
fn flat(shape: &Shape) -> &[Shape] {
    match shape {
        Shape::Tuple(t) => t,
        one @ (Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_)) => {
            std::slice::from_ref(one)
        }
    }
}

/// `scan(inputs..., carries...)`: the computation takes a slice of each input and the carries; it gives a
/// slice of each output and the carries. Results are the outputs, stacked along the dimension, and the last
/// carries.
pub(super) fn scan(cx: &Cx) -> Inferred {
    let d = cx.one_dimension(AttrKey::Dimensions)?;
    let carries_attr = cx.int(AttrKey::NumCarries)?;
    let signature = cx.signature(AttrKey::ToApply)?;
    let name = callee(cx, AttrKey::ToApply);
    let roots = flat(&signature.result);
    let carries = usize::try_from(carries_attr)
        .ok()
        .filter(|&c| c <= cx.operands.len() && c <= roots.len())
        .ok_or_else(|| {
            cx.error(
                codes::SCAN,
                format!(
                    "{carries_attr} carries, but {} and {}",
                    count(cx.operands.len(), "operand"),
                    count(roots.len(), "result")
                ),
            )
        })?;
    let (inputs, outputs) = (cx.operands.len() - carries, roots.len() - carries);
    if inputs == 0 && outputs == 0 {
        return Err(cx.error(codes::SCAN, "neither inputs nor outputs, so there is nothing to scan along"));
    }
    if signature.parameters.len() != cx.operands.len() {
        return Err(cx.error(
            codes::SCAN,
            format!(
                "{} for the {} of {name}",
                count(cx.operands.len(), "operand"),
                count(signature.parameters.len(), "parameter")
            ),
        ));
    }
    // The length comes from the first input; without one, from the first declared output.
    let length = if inputs > 0 {
        let a = cx.array(0)?;
        let i = cx.dimension("dimension", d, a.rank())?;
        (a.dims[i], a.is_dynamic_dim(i))
    } else {
        let first = flat(cx.declared()?).first().and_then(Shape::as_array);
        let Some(a) = first else {
            return Err(cx.error(codes::EXPECTED_ARRAY, "an output must be an array"));
        };
        let i = cx.dimension("dimension", d, a.rank())?;
        (a.dims[i], a.is_dynamic_dim(i))
    };
    for (i, parameter) in signature.parameters.iter().enumerate() {
        let expected = if i < inputs {
            let a = cx.array(i)?;
            let at = cx.dimension("dimension", d, a.rank())?;
            if !same_size(a.dims[at], length.0) {
                return Err(cx
                    .error(codes::SCAN, format!("inputs have different sizes along dimension {d}"))
                    .at(0, format!("size {}", size(length.0)))
                    .at(i, format!("size {}", size(a.dims[at]))));
            }
            without(a, at)
        } else {
            cx.operands[i].without_layout()
        };
        if !shapes_match(parameter, &expected, Match::MixedPrecision) {
            return Err(cx
                .error(
                    codes::SCAN,
                    format!(
                        "parameter {i} of {name} is {}, but its operand gives {}",
                        show(parameter),
                        show(&expected)
                    ),
                )
                .at(i, format!("this is {}", show(cx.operands[i]))));
        }
    }
    let mut shapes = Vec::with_capacity(roots.len());
    for (i, root) in roots.iter().enumerate() {
        if i >= outputs {
            let parameter = &signature.parameters[inputs + i - outputs];
            if !shapes_match(parameter, root, Match::MixedPrecision) {
                return Err(cx.error(
                    codes::SCAN,
                    format!(
                        "carry {} of {name} comes in as {} and goes out as {}",
                        i - outputs,
                        show(parameter),
                        show(root)
                    ),
                ));
            }
            shapes.push(root.without_layout());
            continue;
        }
        let Some(a) = root.as_array() else {
            return Err(cx.error(codes::EXPECTED_ARRAY, format!("output {i} of {name} must be an array")));
        };
        let at = cx.dimension("dimension", d, a.rank() + 1)?;
        let mut out = DimList::new();
        for j in 0..=a.rank() {
            if j == at {
                out.push(length.0, length.1);
            }
            if j < a.rank() {
                out.push_from(a, j);
            }
        }
        shapes.push(cx.build(a.element_type, out)?);
    }
    if signature.result.as_tuple().is_none() {
        return Ok(shapes.pop().expect("invariant: a result that is no tuple is one shape"));
    }
    // The result of a computation that gives a tuple of one may be declared without the tuple.
    if shapes.len() == 1 && cx.declared.is_some_and(|s| s.as_tuple().is_none()) {
        return Ok(shapes.pop().expect("invariant: there is one"));
    }
    Ok(Shape::tuple(shapes))
}
