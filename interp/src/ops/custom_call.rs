//! `custom-call`: the caller's implementations first, then the targets that are built in.

use hlo::{ComputationId, ElementType, Module, Shape, UNBOUNDED, with_buffer};

use super::collective::shards;
use super::common::{dims, results};
use super::sort::{self, Lines};
use super::{Args, Cx, Outcome, lapack, library, topk};
use crate::custom_call::{Call, Invocation, Meaning, NOT_ONE_ARRAY};
use crate::engine::fits;
use crate::error::Result;
use crate::region::FloatOrder;
use crate::value::{Tensor, Value};

/// Annotations: results are the operands.
const ANNOTATIONS: &[&str] = &[
    "AssumeGatherIndicesInBound",
    "AwsNeuronLNCShardingConstraint",
    "AwsNeuronModuleMarkerEnd-Backward",
    "AwsNeuronModuleMarkerEnd-Forward",
    "AwsNeuronModuleMarkerStart-Backward",
    "AwsNeuronModuleMarkerStart-Forward",
    "AwsNeuronTransferWithStaticRing",
    "LayoutConstraint",
    "MoveToDevice",
    "MoveToHost",
    "NeuronBoundaryMarker-End",
    "NeuronBoundaryMarker-Start",
    "Pin",
    "PinToDevice",
    "PinToDeviceSram",
    "SetBound",
    "ShardBarrierFrom",
    "ShardBarrierTo",
    "Sharding",
    "Unpin",
    "__xla_internal_call_marker_after",
    "__xla_internal_call_marker_before",
    "annotate_device_placement",
    "xla.sdy.FuncResultSharding",
    "xla.sdy.PropagationBarrier",
    "xla.sdy.ShardingGroup",
];

/// Storage that nothing has written yet: zeros.
const ROOM: &[&str] = &["AllocateBuffer", "CreateBuffer", "__nop"];

/// The meaning of a call without an implementation by the caller.
pub(crate) fn meaning(call: &Call<'_>) -> Meaning {
    let target = call.target();
    match target {
        _ if call.is_bound() => Meaning::Open,
        "TopK" | "__gpu$TopK" | "mhlo.topk" | "chlo.top_k" => Meaning::TopK,
        "dce_sink" | "GetRngSeed" | "NopReturnToken" => Meaning::Exact,
        _ if let Some(direction) = shards::direction(target) => match shards::tilings(call, direction) {
            Ok(tilings) if tilings.iter().all(Option::is_none) => Meaning::Same,
            Ok(_) | Err(_) => Meaning::Exact,
        },
        _ if ANNOTATIONS.contains(&target) => Meaning::Same,
        _ if ROOM.contains(&target) => Meaning::Exact,
        _ => match library::expansion(call) {
            Some(module) => Meaning::Expansion(module.into()),
            None if library::is_known(target) => Meaning::Exact,
            None => Meaning::Open,
        },
    }
}

/// Refuses a call of a target that is unknown, or of a form that its target does not have, as [`value`] does,
/// without values.
pub(crate) fn check(call: &Call<'_>) -> Result<()> {
    let (target, instr) = (call.target(), call.instruction);
    match target {
        "TopK" | "__gpu$TopK" | "mhlo.topk" | "chlo.top_k" => check_top_k(call),
        "dce_sink" => call.gives(&Shape::tuple([])),
        "GetRngSeed" => call.gives(&Shape::scalar(ElementType::U64)),
        "NopReturnToken" => call.gives(&Shape::Token),
        "HostExecute" if hosted(call)?.is_some() => Ok(()),
        _ if let Some(direction) = shards::direction(target) => {
            shards::tilings(call, direction).map(drop).map_err(|why| call.unsupported(&why))
        }
        _ if ANNOTATIONS.contains(&target) => {
            let operands: Vec<&Shape> = call.operands().collect();
            match (&instr.shape, &operands[..]) {
                (Shape::Tuple(_), [Shape::Tuple(_)]) => call.gives(operands[0]),
                (Shape::Tuple(_), all) => call.gives(&Shape::tuple(all.iter().copied().cloned())),
                (_, [one]) => call.gives(one),
                (_, several) => Err(call.unsupported(&format!("with {} operands", several.len()))),
            }
        }
        _ if ROOM.contains(&target) && instr.operands().is_empty() => Ok(()),
        _ if let Some(target) = lapack::Target::parse(target) => lapack::check(call, target),
        _ => library::check(call),
    }
}

/// The computation that a call of `HostExecute` runs elsewhere. Refuses one that takes or gives something
/// else than the call: the verifier leaves computations of custom calls to their targets.
fn hosted(call: &Call<'_>) -> Result<Option<ComputationId>> {
    let (module, instr) = (call.module, call.instruction);
    if call.is_bound() {
        return Ok(None);
    }
    let ("HostExecute", &[computation]) = (call.target(), &instr.attrs.called_computations()[..]) else {
        return Ok(None);
    };
    let operands = instr.operands().iter().map(|&o| &module.instr(o).shape);
    let fits = module.program_shape(computation).is_some_and(|signature| {
        signature.parameters.len() == instr.operands().len()
            && signature.parameters.iter().zip(operands).all(|(p, o)| p.compatible(o))
            && signature.result.compatible(&instr.shape)
    });
    if fits {
        Ok(Some(computation))
    } else {
        Err(call.unsupported("of a computation that takes or gives something else"))
    }
}

/// `custom-call`.
pub(super) fn custom_call(cx: &Cx<'_>, args: Args) -> Result<Outcome> {
    let call = Call { instruction: cx.instr, module: cx.module() };
    if let Some(computation) = hosted(&call)? {
        return Ok(Outcome::Call(computation, args));
    }
    value(cx, call, args).map(Outcome::Value)
}

fn value(cx: &Cx<'_>, call: Call<'_>, args: Args) -> Result<Value> {
    let target = call.target();
    if let Some(implementation) = cx.options().custom_calls.get(target) {
        let result = implementation.run(&call, &Invocation::new(cx), args.into_vec())?;
        if !fits(&result, &cx.instr.shape) {
            return Err(call.trap(format_args!("the result has shape {}", result.shape())));
        }
        return Ok(result);
    }
    if call.is_bound() {
        return Err(library::unknown(&call));
    }
    if let Some(direction) = shards::direction(target) {
        return shards::run(cx, &call, direction, args);
    }
    let result = match target {
        "TopK" | "__gpu$TopK" | "mhlo.topk" | "chlo.top_k" => top_k(cx, &call, args)?,
        // Keeps its operands from being removed, and has no result.
        "dce_sink" => Value::tuple([]),
        "GetRngSeed" => Tensor::scalar(cx.options().seed).into(),
        "NopReturnToken" => Value::Token,
        _ if ANNOTATIONS.contains(&target) => annotation(cx, &call, args)?,
        _ if ROOM.contains(&target) && args.is_empty() => cx.session.zeros(cx.instr, &cx.instr.shape)?,
        _ => match lapack::Target::parse(target) {
            Some(target) => return lapack::run(cx, &call, target, args),
            None => match library::run(cx, &call, args)? {
                Some(result) => result,
                None => return Err(library::unknown(&call)),
            },
        },
    };
    if !fits(&result, &cx.instr.shape) {
        return Err(call.gives_another(&result.shape()));
    }
    Ok(result)
}

fn annotation(cx: &Cx<'_>, call: &Call<'_>, args: Args) -> Result<Value> {
    let tuple = matches!(cx.instr.shape, Shape::Tuple(_));
    match (tuple, &args[..]) {
        // A tuple is passed on, anything else wrapped.
        (true, [Value::Tuple(_)]) | (false, [_]) => Ok(args[0].clone()),
        (true, _) => Ok(Value::tuple(args)),
        (false, several) => Err(call.unsupported(&format!("with {} operands", several.len()))),
    }
}

/// How many elements of each line a `TopK` gives, and its comparator: without one the largest come.
fn top_k_form(call: &Call<'_>) -> Result<(usize, Option<ComputationId>)> {
    let shape = call.instruction.shape.as_tuple().and_then(|t| t.first()?.as_array());
    let Some(&k) = shape.and_then(|s| s.dims.last()) else {
        return Err(call.unsupported("without a pair of results"));
    };
    let comparator = call.instruction.attrs.called_computations().first().copied();
    Ok((usize::try_from(k).unwrap_or(0), comparator))
}

/// Refuses a `TopK` of a form that [`top_k`] refuses.
fn check_top_k(call: &Call<'_>) -> Result<()> {
    let operands: Vec<&Shape> = call.operands().collect();
    let [Shape::Array(x)] = operands[..] else { return Err(call.unsupported(NOT_ONE_ARRAY)) };
    let (k, comparator) = top_k_form(call)?;
    if let Some(comparator) = comparator
        && !compares(call.module, comparator, x.element_type)
    {
        return Err(call.unsupported(OTHER_TYPES));
    }
    let mut given = x.without_layout();
    let Some(last) = given.dims.last_mut() else { return Err(call.unsupported("of a scalar")) };
    if *last != UNBOUNDED {
        *last = (*last).min(k as i64);
    }
    if comparator.is_none() && x.element_type.is_complex() {
        return Err(call.unsupported("of complex numbers"));
    }
    let indices = given.with_type(ElementType::S32);
    call.gives(&Shape::tuple([Shape::Array(given), Shape::Array(indices)]))
}

const OTHER_TYPES: &str = "with a computation of other types";

/// `TopK`: like `topk`, with the `k` of the result's last dimension and the order of the called computation.
fn top_k(cx: &Cx<'_>, call: &Call<'_>, args: Args) -> Result<Value> {
    let [Value::Array(x)] = &args[..] else { return Err(call.unsupported(NOT_ONE_ARRAY)) };
    let (k, comparator) = top_k_form(call)?;
    let Some(comparator) = comparator else {
        let (values, indices) = topk::select(cx, x, k, true)?;
        return Ok(results(cx, vec![values.into(), indices.into()]));
    };
    if !compares(cx.module(), comparator, x.element_type()) {
        return Err(call.unsupported(OTHER_TYPES));
    }
    let region = cx.session.interpreter.region(comparator);
    let order = region.as_order().filter(|order| order.key == 0);
    let (values, indices) = match order {
        Some(order) if !x.element_type().is_float() || order.floats == FloatOrder::Total => {
            cx.applied(&region, x.len());
            topk::select(cx, x, k, order.descending)?
        }
        Some(_) | None => sorted(cx, x, k, &region)?,
    };
    Ok(results(cx, vec![values.into(), indices.into()]))
}

/// Whether a computation, which the verifier does not look at, tells whether a value comes before another, or
/// one with its index.
fn compares(module: &Module, comparator: ComputationId, ty: ElementType) -> bool {
    let is = |shape: &Shape, ty| shape.is_scalar() && shape.element_type() == Some(ty);
    module.program_shape(comparator).is_some_and(|program| {
        let types = [ty, ty, ElementType::S32, ElementType::S32];
        matches!(program.parameters.len(), 2 | 4)
            && program.parameters.iter().zip(types).all(|(p, ty)| is(p, ty))
            && is(&program.result, ElementType::Pred)
    })
}

/// The first `k` of each line by any comparator, of values or of values and their indices.
fn sorted(cx: &Cx<'_>, x: &Tensor, k: usize, region: &crate::region::Region) -> Result<(Tensor, Tensor)> {
    let mut sizes = x.sizes();
    let lines = Lines::new(&sizes, sizes.len().saturating_sub(1));
    let mut operands = vec![x.clone()];
    if region.parameters().len() > 2 {
        let indices = (0..x.len()).map(|i| (i % lines.len) as i32).collect();
        operands.push(Tensor::from_vec(dims(&sizes), indices));
    }
    let order = sort::order(cx, region, &operands, lines)?;
    let k = k.min(lines.len);
    if let Some(last) = sizes.last_mut() {
        *last = k;
    }
    let order: Vec<u32> = order.chunks_exact(lines.len.max(1)).flat_map(|line| &line[..k]).copied().collect();
    let values = with_buffer!(x.buffer(), v => topk::taken(v, &order, k, lines));
    let indices: Vec<i32> = order.iter().map(|&i| i as i32).collect();
    Ok((Tensor::new(dims(&sizes), values), Tensor::from_vec(dims(&sizes), indices)))
}
