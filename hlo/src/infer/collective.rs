//! Collectives: how sizes depend on the number of participants.
//!
//! Whether replica groups themselves make sense is the verifier's concern; here the size of the first group
//! is what counts. As in XLA, a group of one (which is also what a module says that leaves its device count
//! out) is not checked against sizes.

use super::InferError;
use super::control::callee;
use super::cx::{Cx, DimList, Inferred, count, show, show_array, size};
use super::movement::ceil_div;
use super::types::{Classes, Match, same_dims, shapes_match};
use crate::attrs::collective::{GroupMode, group_mode};
use crate::attrs::{AttrKey, ReplicaGroups};
use crate::diag::codes;
use crate::element_type::ElementType;
use crate::shape::{ArrayShape, Shape, UNBOUNDED};

/// Size of the first group that is written; `None` for one group of all.
fn first_group(groups: &ReplicaGroups) -> Option<i64> {
    match groups {
        ReplicaGroups::Lists(lists) => lists.first().map(|g| i64::try_from(g.len()).unwrap_or(i64::MAX)),
        ReplicaGroups::Iota { dims, .. } => dims.get(1).copied(),
        ReplicaGroups::Mesh(_) => {
            groups.expand().and_then(|g| g.first().map(|g| i64::try_from(g.len()).unwrap_or(i64::MAX)))
        }
    }
}

/// Number of devices that take part together, at least 1.
fn group_size(cx: &Cx) -> i64 {
    let (replicas, partitions) = (cx.module.replica_count(), cx.module.num_partitions());
    let group = cx.attrs.replica_groups().and_then(first_group);
    let n = match group_mode(cx.opcode, cx.attrs) {
        Some(GroupMode::CrossReplica) => group.unwrap_or(replicas),
        Some(GroupMode::CrossPartition) => group.unwrap_or(partitions),
        Some(GroupMode::CrossReplicaAndPartition) => group.unwrap_or(replicas).saturating_mul(partitions),
        // In flattened-id mode groups are required, and the last combination has no mode: the verifier says
        // so.
        Some(GroupMode::FlattenedId) | None => group.unwrap_or(1),
    };
    n.max(1)
}

/// Fails without operands.
fn some_operand(cx: &Cx) -> Result<(), InferError> {
    if cx.operands.is_empty() {
        return Err(cx.error(codes::WRONG_ARITY, "0 operands given").label("takes at least 1 operand"));
    }
    Ok(())
}

/// One shape, or the tuple of several.
fn one_or_tuple(mut shapes: Vec<Shape>) -> Shape {
    if shapes.len() == 1
        && let Some(only) = shapes.pop()
    {
        return only;
    }
    Shape::tuple(shapes)
}

/// All operands, which must be arrays.
fn arrays<'a>(cx: &Cx<'a>) -> Result<Vec<&'a ArrayShape>, InferError> {
    some_operand(cx)?;
    (0..cx.operands.len()).map(|i| cx.array(i)).collect()
}

/// The declared result for the first operand: of several operands the first element.
fn first_result(declared: &Shape, operands: usize) -> Option<&ArrayShape> {
    let first = if operands == 1 { declared } else { declared.as_tuple()?.first()? };
    first.as_array()
}

/// By how much a dimension grows from `from` to `to`: their ratio rounded up, as XLA finds it.
fn ratio(from: i64, to: i64) -> Option<i64> {
    (from > 0 && to >= 0).then(|| ceil_div(to, from))
}

/// Fails if a declared ratio of sizes is not the number of participants.
fn check_shards(cx: &Cx, shards: i64) -> Result<(), InferError> {
    let group = group_size(cx);
    if group == 1 || shards == group {
        return Ok(());
    }
    Err(cx
        .error(codes::SHARD_COUNT, format!("sizes of operand and result differ by a factor of {shards}"))
        .label(format!("must be {group}, the size of a replica group")))
}

/// Whether an operand is the scalar by which PyTorch/XLA orders collectives on AWS Neuron: beside an array,
/// it has no dimension to be divided or gathered along, and stays a scalar. (XLA's own shape inference
/// refuses it.)
fn is_pseudo_token(number: usize, a: &ArrayShape) -> bool {
    number > 0 && a.rank() == 0
}

/// Arrays that gather `declared`-many shards along a dimension.
fn gathered(cx: &Cx, declared: Option<&Shape>) -> Inferred {
    let arrays = arrays(cx)?;
    let d = cx.one_dimension(AttrKey::Dimensions)?;
    let i = cx.dimension("dimension", d, arrays[0].rank())?;
    let from = arrays[0].dims[i];
    let written = declared.and_then(|s| first_result(s, arrays.len())).and_then(|r| r.dims.get(i).copied());
    let shards = match written.and_then(|to| ratio(from, to)) {
        Some(n) => {
            check_shards(cx, n)?;
            n
        }
        None => group_size(cx),
    };
    let mut results = Vec::with_capacity(arrays.len());
    for (number, a) in arrays.into_iter().enumerate() {
        if is_pseudo_token(number, a) {
            results.push(Shape::Array(a.without_layout()));
            continue;
        }
        let i = cx.dimension("dimension", d, a.rank())?;
        let mut out = DimList::new();
        for j in 0..a.rank() {
            if j == i && a.dims[i] != UNBOUNDED {
                let n = a.dims[i].checked_mul(shards).ok_or_else(|| cx.overflow("the gathered size"))?;
                out.push(n, false);
            } else {
                out.push_from(a, j);
            }
        }
        results.push(cx.build(a.element_type, out)?);
    }
    Ok(one_or_tuple(results))
}

/// `all-gather`
pub(super) fn all_gather(cx: &Cx) -> Inferred {
    gathered(cx, cx.declared)
}

/// The operands, as one shape or a tuple.
fn operands_shape(cx: &Cx) -> Shape {
    one_or_tuple(cx.operands.iter().map(|s| s.without_layout()).collect())
}

/// `all-gather-start`: operands and result.
pub(super) fn all_gather_start(cx: &Cx) -> Inferred {
    let declared = match cx.declared {
        Some(s) => Some(s.as_tuple().and_then(|t| t.get(1)).ok_or_else(|| {
            cx.error(codes::ASYNC_SHAPE, format!("the result is {}", show(s)))
                .label("must be (operands, results)")
        })?),
        None => None,
    };
    Ok(Shape::tuple([operands_shape(cx), gathered(cx, declared)?]))
}

/// `all-gather-done`, `collective-permute-done`: the second element of what was started.
pub(super) fn second_element(cx: &Cx) -> Inferred {
    Ok(cx.tuple(0, 2)?[1].without_layout())
}

/// Fails if the computation does not fold two scalars into one.
fn check_folding(cx: &Cx) -> Result<(), InferError> {
    let signature = cx.signature(AttrKey::ToApply)?;
    let name = callee(cx, AttrKey::ToApply);
    if signature.parameters.len() % 2 != 0 || signature.parameters.is_empty() {
        return Err(cx
            .error(
                codes::REDUCER_ARITY,
                format!("{name} takes {}", count(signature.parameters.len(), "parameter")),
            )
            .label("must take 2"));
    }
    Ok(())
}

/// `all-reduce`, `all-reduce-start`: the shapes of the operands.
pub(super) fn all_reduce(cx: &Cx) -> Inferred {
    arrays(cx)?;
    check_folding(cx)?;
    Ok(operands_shape(cx))
}

/// `collective-reduce`: the shapes of the operands, without that of a dynamic root.
pub(super) fn collective_reduce(cx: &Cx) -> Inferred {
    check_folding(cx)?;
    broadcast(cx)
}

/// `reduce-scatter`: a dimension is divided by the number of participants.
pub(super) fn reduce_scatter(cx: &Cx) -> Inferred {
    let arrays = arrays(cx)?;
    check_folding(cx)?;
    let d = cx.one_dimension(AttrKey::Dimensions)?;
    let i = cx.dimension("dimension", d, arrays[0].rank())?;
    let from = arrays[0].dims[i];
    let written =
        cx.declared.and_then(|s| first_result(s, arrays.len())).and_then(|r| r.dims.get(i).copied());
    let shards = match written.and_then(|to| ratio(to, from)) {
        Some(n) if n > 0 => {
            check_shards(cx, n)?;
            n
        }
        Some(_) | None => group_size(cx),
    };
    let mut results = Vec::with_capacity(arrays.len());
    for (number, a) in arrays.into_iter().enumerate() {
        if is_pseudo_token(number, a) {
            results.push(Shape::Array(a.without_layout()));
            continue;
        }
        let i = cx.dimension("dimension", d, a.rank())?;
        if a.dims[i] != UNBOUNDED && a.dims[i] % shards != 0 {
            return Err(cx
                .error(
                    codes::SHARD_COUNT,
                    format!("dimension {i} of size {} cannot be divided among {shards}", a.dims[i]),
                )
                .at(number, format!("this is {}", show_array(a))));
        }
        let mut out = DimList::new();
        for j in 0..a.rank() {
            if j == i && a.dims[i] != UNBOUNDED {
                out.push(a.dims[i] / shards, a.is_dynamic_dim(i));
            } else {
                out.push_from(a, j);
            }
        }
        results.push(cx.build(a.element_type, out)?);
    }
    Ok(one_or_tuple(results))
}

/// `all-to-all`: of one array whose dimension is split, exchanged and joined again; or of as many arrays as
/// participants.
pub(super) fn all_to_all(cx: &Cx) -> Inferred {
    let arrays = arrays(cx)?;
    let n = group_size(cx);
    if cx.attrs.ints(AttrKey::Dimensions).is_some() {
        let [a] = *arrays.as_slice() else {
            return Err(cx
                .error(codes::WRONG_ARITY, format!("{} given", count(arrays.len(), "operand")))
                .label("takes 1 operand where dimensions says how to split it"));
        };
        let d = cx.dimension("dimension", cx.one_dimension(AttrKey::Dimensions)?, a.rank())?;
        if a.dims[d] != UNBOUNDED && a.dims[d] % n != 0 {
            return Err(cx
                .error(
                    codes::SHARD_COUNT,
                    format!("dimension {d} of size {} cannot be divided among {n}", a.dims[d]),
                )
                .at(0, format!("this is {}", show_array(a))));
        }
        if (0..a.rank()).any(|i| a.is_dynamic_dim(i) && a.dims[i] != UNBOUNDED) {
            return Err(cx
                .error(codes::DYNAMIC_DIMENSION, "dynamic dimensions are not supported")
                .at(0, format!("this is {}", show_array(a))));
        }
        return Ok(Shape::Array(a.without_layout()));
    }
    // Of one participant, which is also what a module says that leaves out how many there are, the run has to
    // check.
    if n != 1 && usize::try_from(n) != Ok(arrays.len()) {
        return Err(cx
            .error(codes::SHARD_COUNT, format!("{} for a group of {n}", count(arrays.len(), "operand")))
            .label("takes as many operands as participants, or dimensions"));
    }
    for i in 1..arrays.len() {
        cx.require_same_dims(0, i)?;
        if arrays[0].element_type != arrays[i].element_type {
            return Err(cx
                .error(
                    codes::ELEMENT_TYPES_DIFFER,
                    format!("operands 0 and {i} have different element types"),
                )
                .at(0, format!("this is {}", show_array(arrays[0])))
                .at(i, format!("this is {}", show_array(arrays[i]))));
        }
    }
    Ok(Shape::tuple(cx.operands.iter().map(|s| s.without_layout())))
}

/// `collective-broadcast`; with a dynamic root the last operand has an s32 for each of the others.
pub(super) fn broadcast(cx: &Cx) -> Inferred {
    let arrays = arrays(cx)?;
    if !cx.attrs.bool(AttrKey::HasDynamicRoot) {
        return Ok(operands_shape(cx));
    }
    let (root, data) = arrays.split_last().expect("invariant: there is an operand");
    let fits = root.element_type == ElementType::S32
        && !data.is_empty()
        && same_dims(&root.dims, &[i64::try_from(data.len()).unwrap_or(i64::MAX)]);
    if !fits {
        return Err(cx
            .error(codes::COLLECTIVE_OPERANDS, format!("the root is {}", show_array(root)))
            .at(data.len(), format!("must be s32[{}]", data.len().max(1))));
    }
    Ok(one_or_tuple(cx.operands[..data.len()].iter().map(|s| s.without_layout()).collect()))
}

/// Whether a permute copies slices between buffers: `(input, output, input offsets, output offsets)`.
fn in_place(cx: &Cx) -> Result<bool, InferError> {
    if cx.attrs.int_lists(AttrKey::PermuteSliceSizes).is_none_or(<[_]>::is_empty) {
        return Ok(false);
    }
    if cx.operands.len() != 4 {
        return Err(cx
            .error(codes::WRONG_ARITY, format!("{} given", count(cx.operands.len(), "operand")))
            .label("takes 4 operands where slice_sizes is given"));
    }
    check_offsets(cx, 0, 2)?;
    check_offsets(cx, 1, 3)?;
    if cx.operands[0].as_tuple().map(<[_]>::len) != cx.operands[1].as_tuple().map(<[_]>::len) {
        return Err(cx
            .error(codes::COLLECTIVE_OPERANDS, "inputs and outputs differ in number")
            .at(0, format!("this is {}", show(cx.operands[0])))
            .at(1, format!("this is {}", show(cx.operands[1]))));
    }
    Ok(true)
}

/// Offsets of an array are a tuple of one index a dimension, or a tuple of such tuples; of a tuple of arrays
/// a tuple of those.
fn check_offsets(cx: &Cx, buffers: usize, offsets: usize) -> Result<(), InferError> {
    fn indices(shape: &Shape, rank: usize) -> bool {
        let index = |s: &Shape| {
            s.as_array().is_some_and(|a| a.dims.is_empty() && Classes::INTEGER.contains(a.element_type))
        };
        shape.as_tuple().is_some_and(|t| t.len() == rank && t.iter().all(index))
    }
    fn fits(a: &Shape, offsets: &Shape) -> bool {
        let (Some(a), Some(t)) = (a.as_array(), offsets.as_tuple()) else { return false };
        indices(offsets, a.rank()) || !t.is_empty() && t.iter().all(|s| indices(s, a.rank()))
    }
    let (a, o) = (cx.operands[buffers], cx.operands[offsets]);
    let ok = match (a, o) {
        (Shape::Tuple(a), Shape::Tuple(o)) => {
            a.len() == o.len() && a.iter().zip(o.iter()).all(|(a, o)| fits(a, o))
        }
        (Shape::Array(_) | Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_), _) => {
            fits(a, o)
        }
    };
    if ok {
        return Ok(());
    }
    Err(cx
        .error(
            codes::COLLECTIVE_OPERANDS,
            format!("operand {offsets} is no tuple of offsets for operand {buffers}"),
        )
        .at(buffers, format!("this is {}", show(a)))
        .at(offsets, format!("this is {}", show(o))))
}

/// `collective-permute`
pub(super) fn permute(cx: &Cx) -> Inferred {
    some_operand(cx)?;
    if in_place(cx)? {
        return Ok(cx.operands[1].without_layout());
    }
    arrays(cx)?;
    Ok(operands_shape(cx))
}

/// `collective-permute-start`: operands, results, and whatever contexts are declared.
pub(super) fn permute_start(cx: &Cx) -> Inferred {
    some_operand(cx)?;
    let mut shapes = if in_place(cx)? {
        vec![cx.operands[0].without_layout(), cx.operands[1].without_layout()]
    } else {
        arrays(cx)?;
        vec![operands_shape(cx), operands_shape(cx)]
    };
    if let Some([_, _, contexts @ ..]) = cx.declared.and_then(Shape::as_tuple) {
        shapes.extend(contexts.iter().map(Shape::without_layout));
    }
    Ok(Shape::tuple(shapes))
}

/// `ragged-all-to-all(input, output, input offsets, send sizes, output offsets, receive sizes)`: the output,
/// updated.
pub(super) fn ragged_all_to_all(cx: &Cx) -> Inferred {
    let (input, output) = (cx.array(0)?, cx.array(1)?);
    if input.element_type != output.element_type {
        return Err(cx
            .error(codes::ELEMENT_TYPES_DIFFER, "rows of the input cannot be put into the output")
            .at(0, format!("this is {}", show_array(input)))
            .at(1, format!("this is {}", show_array(output))));
    }
    for i in 2..6 {
        let a = cx.array(i)?;
        if !(1..=2).contains(&a.rank()) {
            return Err(cx
                .error(codes::RANK, format!("operand {i} must have 1 or 2 dimensions"))
                .at(i, format!("this is {}", show_array(a))));
        }
        cx.require_type(i, Classes::INTEGER)?;
        if !shapes_match(cx.operands[2], cx.operands[i], Match::Strict) {
            return Err(cx
                .error(codes::OPERAND_SHAPES_DIFFER, format!("operands 2 and {i} have different shapes"))
                .at(2, format!("this is {}", show(cx.operands[2])))
                .at(i, format!("this is {}", show(cx.operands[i])))
                .note(format!("offsets and sizes have one entry for each of {}", size(a.dims[0]))));
        }
    }
    Ok(Shape::Array(output.without_layout()))
}
