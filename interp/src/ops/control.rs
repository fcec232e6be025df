//! Calls, loops, branches, tuples, asynchronous pairs and what only passes its operand on.

use hlo::{AttrKey, ComputationId};
use smallvec::smallvec;

use super::{Args, Cx, Outcome};
use crate::error::Result;
use crate::value::{Tensor, Value};

fn computation(cx: &Cx<'_>, key: AttrKey) -> Result<ComputationId> {
    cx.attrs().computation(key).ok_or_else(|| cx.unsupported(&format!("without {}", key.text())))
}

/// `call`, `fusion`: the result of a computation.
pub(super) fn call(cx: &Cx<'_>, key: AttrKey, args: Args) -> Result<Outcome> {
    Ok(Outcome::Call(computation(cx, key)?, args))
}

/// `while`: the state when the condition first is false.
pub(super) fn while_loop(cx: &Cx<'_>, args: Args) -> Result<Outcome> {
    let (condition, body) = (computation(cx, AttrKey::Condition)?, computation(cx, AttrKey::Body)?);
    let state = first(args);
    // An observer has to see every instruction.
    if cx.session.observer().is_none()
        && let Some(scalars) = cx.session.interpreter.scalar_loop(condition, body)
    {
        let state = cx.session.settle(state, cx.id)?;
        return scalars.run(cx, &state).map(Outcome::Value);
    }
    Ok(Outcome::While { condition, body, state })
}

/// `conditional`: a predicate chooses between two computations; an `s32` index among several, the last one if
/// it is out of range.
pub(super) fn conditional(cx: &Cx<'_>, args: Args) -> Result<Outcome> {
    let mut args = args.into_iter();
    let selector = args.next().ok_or_else(|| cx.unsupported("without operands"))?;
    let selector = cx.session.settle(selector, cx.id)?.into_array();
    let selector = (selector.element_type(), selector.index_at(0));
    let called = cx.attrs().called_computations();
    let chosen = match selector {
        (hlo::ElementType::Pred, condition) => usize::from(condition == 0),
        (_, index) => usize::try_from(index).unwrap_or(usize::MAX).min(called.len().saturating_sub(1)),
    };
    match (called.get(chosen), args.nth(chosen)) {
        (Some(&branch), Some(arg)) => Ok(Outcome::Call(branch, smallvec![arg])),
        (Some(_) | None, _) => Err(cx.unsupported("without a computation and an operand for each branch")),
    }
}

/// `async-start`: runs its computation at once. Its result is `((operands), result)`. With fewer operands
/// than the computation has parameters it is `((operands), ())`: updates bring the others.
pub(super) fn async_start(cx: &Cx<'_>, args: Args) -> Result<Outcome> {
    begin(cx, computation(cx, AttrKey::Calls)?, args)
}

fn begin(cx: &Cx<'_>, computation: ComputationId, args: Args) -> Result<Outcome> {
    if args.len() < cx.module().computation(computation).parameters().len() {
        return cx.session.started(cx.instr, args, Value::tuple([])).map(Outcome::Value);
    }
    Ok(Outcome::Async(computation, args))
}

/// `async-update`: passes on what it waits for. Further operands are the next ones of the computation, which
/// runs when it has all.
pub(super) fn async_update(cx: &Cx<'_>, args: Args) -> Result<Outcome> {
    let mut args = args.into_iter();
    let mut waiting = args.next().ok_or_else(|| cx.unsupported("without operands"))?;
    if args.len() == 0 {
        return Ok(Outcome::Value(waiting));
    }
    let mut start = cx.instr;
    while let (hlo::Opcode::AsyncUpdate, Some(&before)) = (start.opcode, start.operands().first()) {
        start = cx.module().instr(before);
    }
    let computation = start.attrs.computation(AttrKey::Calls);
    let computation = computation.ok_or_else(|| cx.unsupported("of a start in another place"))?;
    let bound = waiting.take_element(0);
    let bound = bound.as_ref().and_then(Value::as_tuple).unwrap_or_default();
    begin(cx, computation, bound.iter().cloned().chain(args).collect())
}

/// `async-done`: the result inside the tuple of `async-start`, once its computation has all operands.
pub(super) fn async_done(cx: &Cx<'_>, args: Args) -> Result<Value> {
    fn fits(value: &Value, shape: &hlo::Shape) -> bool {
        match (value, shape) {
            (Value::Tuple(values), hlo::Shape::Tuple(shapes)) => {
                values.len() == shapes.len() && values.iter().zip(shapes.iter()).all(|(v, s)| fits(v, s))
            }
            (Value::Tuple(_), _) | (_, hlo::Shape::Tuple(_)) => false,
            (_, _) => true,
        }
    }
    let result = super::collective::settled(cx, element(cx, args, 1)?)?;
    if fits(&result, &cx.instr.shape) {
        return Ok(result);
    }
    Err(cx.unsupported("of a computation that lacks operands, or gives another shape"))
}

/// `copy-start`: (destination, source, context).
pub(super) fn copy_start(args: Args) -> Value {
    let source = first(args);
    Value::tuple([source.clone(), source, Value::Array(Tensor::scalar(0u32))])
}

/// `copy-done`: the destination inside the tuple of `copy-start`.
pub(super) fn copy_done(cx: &Cx<'_>, args: Args) -> Result<Value> {
    element(cx, args, 0)
}

/// `get-tuple-element`.
pub(super) fn get_tuple_element(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let index = cx.attrs().int(AttrKey::Index).and_then(|i| usize::try_from(i).ok());
    element(cx, args, index.ok_or_else(|| cx.unsupported("without an index"))?)
}

fn element(cx: &Cx<'_>, args: Args, index: usize) -> Result<Value> {
    let mut tuple = first(args);
    tuple.take_element(index).ok_or_else(|| cx.unsupported("of anything but a tuple with that element"))
}

/// `copy`: the operand, in the element type of the result (the verifier lets float types be mixed).
pub(super) fn copy(cx: &Cx<'_>, args: Args) -> Result<Value> {
    Ok(match (first(args), cx.instr.shape.element_type()) {
        (Value::Array(x), Some(ty)) => Value::Array(super::elementwise::convert(cx, x, ty)?),
        (x, _) => x,
    })
}

/// Instructions that return their first operand: `opt-barrier`, `domain`, `add-dependency`.
pub(super) fn first(args: Args) -> Value {
    args.into_iter().next().expect("invariant: the verifier checked the number of operands")
}

/// The operands as arrays. Panics on another number than `N`, which the verifier has ruled out.
pub(super) fn arrays<const N: usize>(args: Args) -> [Tensor; N] {
    let mut arrays = args.into_iter().map(Value::into_array);
    std::array::from_fn(|_| arrays.next().expect("invariant: the verifier checked the number of operands"))
}

/// `partition-id`, `replica-id`.
pub(super) fn device_number(number: u32) -> Value {
    Value::Array(Tensor::scalar(number))
}
