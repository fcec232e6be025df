//! Collectives among the devices of one run.
//!
//! One device is all there is so far: a group can only be the device by itself, and what it would combine with others is
//! what it has. More devices are refused before a run begins.

use hlo::{AttrKey, Opcode};

use super::{Args, Cx};
use crate::error::Result;
use crate::value::Value;

/// Collectives whose one participant gets back what it gave: the fold of one operand (the identity of the fold is not
/// an addend), the concatenation of one, one block out of one.
pub(super) fn alone(cx: &Cx<'_>, args: Args) -> Result<Value> {
    one_device(cx)?;
    Ok(together(args))
}

/// The start of an asynchronous one: `(operands, results)`.
pub(super) fn alone_start(cx: &Cx<'_>, args: Args) -> Result<Value> {
    one_device(cx)?;
    let operands = together(args);
    // An all-reduce hands on only its results.
    if cx.instr.opcode == Opcode::AllReduceStart {
        return Ok(operands);
    }
    Ok(Value::tuple([operands.clone(), operands]))
}

/// The done of an asynchronous one.
pub(super) fn alone_done(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let state = args.into_iter().next().expect("invariant: the verifier checked the number of operands");
    if cx.instr.opcode == Opcode::AllReduceDone {
        return Ok(state);
    }
    Ok(state.expect_tuple()[1].clone())
}

/// A single operand, or the tuple of several.
fn together(args: Args) -> Value {
    let mut args = args;
    if args.len() == 1 { args.remove(0) } else { Value::tuple(args) }
}

fn one_device(cx: &Cx<'_>) -> Result<()> {
    let (replicas, partitions) = (cx.module().replica_count(), cx.module().num_partitions());
    let groups = cx.attrs().replica_groups().and_then(|g| g.expand()).unwrap_or_default();
    let pairs = cx.attrs().int_lists(AttrKey::SourceTargetPairs).is_some();
    if replicas > 1 || partitions > 1 || groups.iter().any(|g| g.len() > 1) || pairs {
        return Err(cx.unsupported("among several devices"));
    }
    Ok(())
}
