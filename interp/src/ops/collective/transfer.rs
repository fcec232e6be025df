//! `send` and `recv` between devices and with hosts, `infeed` and `outfeed`.
//!
//! Between devices the source-target pairs of XLA's frontend attribute say who sends to whom: replicas
//! without a channel id, partitions with one. The nth send of a device to another over a channel meets the
//! other's nth receive from it. A device that is no source sends nothing, one that is no target receives
//! zeros. A single device without pairs sends to itself.

use std::sync::Arc;

use hlo::attrs::collective::{GroupMode, send_recv_pairs};
use hlo::diag::codes;
use hlo::{AttrKey, Shape};

use super::super::Cx;
use super::super::control::first;
use super::{Arrival, Finish, arrive, detached, settled};
use crate::device::exchange::{Rendezvous, RendezvousKey};
use crate::device::participants::{peer, within};
use crate::engine::fits;
use crate::error::Result;
use crate::ops::Args;
use crate::value::{Tensor, Value};

/// Whether the other end is a host. Errors: among the lanes of a region, or if the order of exchanges is not
/// defined.
fn is_host(cx: &Cx<'_>) -> Result<bool> {
    super::no_lanes(cx)?;
    cx.session.check_order(cx.id)?;
    Ok(cx.attrs().bool(AttrKey::IsHostTransfer))
}

fn channel(cx: &Cx<'_>) -> i64 {
    cx.attrs().int(AttrKey::ChannelId).unwrap_or(0)
}

/// The other end of this device's transfer: `at` 0 looks for it among the sources, 1 among the targets.
fn other_end(cx: &Cx<'_>, at: usize) -> Result<Option<u32>> {
    let (devices, me) = (cx.session.peers.devices, cx.session.number);
    let Some(pairs) = send_recv_pairs(cx.attrs()) else {
        if devices.count() == 1 {
            return Ok(Some(me));
        }
        return Err(cx.unsupported("among several devices without source-target pairs"));
    };
    let mode = if channel(cx) > 0 { GroupMode::CrossPartition } else { GroupMode::CrossReplica };
    let mut found = None;
    for pair in pairs {
        let end = |id| match within(id, mode, devices) {
            Ok(id) => Ok(peer(mode, devices, me, id)),
            Err(e) => Err(cx.trap(codes::PARTICIPANTS, e)),
        };
        let ends = [end(pair[0])?, end(pair[1])?];
        if ends[at] == me && found.replace(ends[1 - at]).is_some() {
            let what = if at == 0 { "source" } else { "target" };
            return Err(cx.trap(codes::PARTICIPANTS, format!("device {me} is the {what} of two pairs")));
        }
    }
    Ok(found)
}

/// Meets the other end of a transfer.
fn meet(
    cx: &Cx<'_>,
    source: u32,
    target: u32,
    shape: Shape,
    finish: Finish,
    given: Vec<Tensor>,
    bytes: u64,
) -> Value {
    let channel = channel(cx);
    let sends = matches!(finish, Finish::Sent);
    let number = cx.session.traffic.transfer(channel, if sends { target } else { source }, sends);
    let key = RendezvousKey::Transfer { channel, source, target, number };
    let members: Arc<[u32]> = [source, target].into();
    arrive(cx, shape, finish, vec![Arrival { key, members, rank: usize::from(!sends), given }], bytes)
}

/// `send(data, token)`: (data, context, token).
pub(super) fn send(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let (me, data) = (cx.session.number, first(args));
    let token = if is_host(cx)? {
        cx.options().host.send(me, channel(cx), &data).map_err(|e| cx.trap(codes::HOST, e))?;
        Value::Token
    } else {
        match other_end(cx, 0)? {
            None => Value::Token,
            Some(target) => {
                let (given, bytes) = detached(cx, data.arrays().into_iter().cloned())?;
                meet(cx, me, target, Shape::Token, Finish::Sent, given, bytes)
            }
        }
    };
    Ok(Value::tuple([data, Tensor::scalar(0u32).into(), token]))
}

/// `send-done`: the token, when the other end has begun to receive.
pub(super) fn send_done(cx: &Cx<'_>, args: Args) -> Result<Value> {
    match first(args).take_element(2) {
        Some(token) => settled(cx, token),
        None => Ok(Value::Token),
    }
}

/// `recv(token)`: (data, context, token).
pub(super) fn recv(cx: &Cx<'_>) -> Result<Value> {
    let me = cx.session.number;
    let shape = cx.instr.shape.as_tuple().and_then(<[Shape]>::first);
    let shape = shape.ok_or_else(|| cx.unsupported("without data"))?;
    let data = if is_host(cx)? {
        let data = cx.options().host.receive(me, channel(cx), shape);
        checked(cx, data.map_err(|e| cx.trap(codes::HOST, e))?, shape)?
    } else {
        match other_end(cx, 1)? {
            None => cx.session.zeros(cx.instr, shape)?,
            Some(source) => meet(cx, source, me, shape.clone(), Finish::Received, Vec::new(), 0),
        }
    };
    Ok(Value::tuple([data, Tensor::scalar(0u32).into(), Value::Token]))
}

/// `recv-done`: (data, token).
pub(super) fn recv_done(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let data = first(args).take_element(0).ok_or_else(|| cx.unsupported("of anything but a recv"))?;
    Ok(Value::tuple([settled(cx, data)?, Value::Token]))
}

/// The value that the source sent, in the shape that the receive declares.
pub(super) fn received(cx: &Cx<'_>, rendezvous: &Rendezvous) -> Result<Value> {
    fn build(shape: &Shape, sent: &mut impl Iterator<Item = Tensor>) -> Option<Value> {
        Some(match shape {
            Shape::Array(_) => sent.next()?.into(),
            Shape::Tuple(t) => Value::tuple(t.iter().map(|s| build(s, sent)).collect::<Option<Vec<_>>>()?),
            Shape::Token | Shape::Opaque => Value::Token,
            Shape::Buffer(inner) => build(inner, sent)?,
        })
    }
    let sent = rendezvous.contributions().next().unwrap_or(&[]);
    let copies = sent.iter().map(|x| super::copied(cx, x)).collect::<Result<Vec<_>>>()?;
    let shape = cx.instr.shape.as_tuple().and_then(<[Shape]>::first).unwrap_or(&cx.instr.shape);
    let mut rest = copies.into_iter();
    match build(shape, &mut rest).filter(|v| rest.next().is_none() && fits(v, shape)) {
        Some(value) => Ok(value),
        None => {
            let shapes: Vec<String> = sent.iter().map(|x| x.shape().to_string()).collect();
            let message = format!(
                "device {} sends {}, but {} is expected",
                rendezvous.members[0],
                shapes.join(", "),
                shape.without_layout()
            );
            Err(cx.trap(codes::PARTICIPANTS, message))
        }
    }
}

/// A value from a host, if it has the shape that is expected.
fn checked(cx: &Cx<'_>, value: Value, shape: &Shape) -> Result<Value> {
    if fits(&value, shape) {
        return Ok(value);
    }
    let message = format!("the host gives {}, but {} is expected", value.shape(), shape.without_layout());
    Err(cx.trap(codes::HOST, message))
}

/// `infeed(token)`: (data, token).
pub(super) fn infeed(cx: &Cx<'_>) -> Result<Value> {
    is_host(cx)?;
    let shape = cx.instr.shape.as_tuple().and_then(<[Shape]>::first);
    let shape = shape.ok_or_else(|| cx.unsupported("without data"))?;
    let config = cx.attrs().str(AttrKey::InfeedConfig).unwrap_or_default();
    let data = cx.options().host.infeed(cx.session.number, shape, config);
    let data = checked(cx, data.map_err(|e| cx.trap(codes::HOST, e))?, shape)?;
    Ok(Value::tuple([data, Value::Token]))
}

/// `outfeed(data, token)`: a token.
pub(super) fn outfeed(cx: &Cx<'_>, args: Args) -> Result<Value> {
    is_host(cx)?;
    let config = cx.attrs().str(AttrKey::OutfeedConfig).unwrap_or_default();
    let data = first(args);
    cx.options().host.outfeed(cx.session.number, &data, config).map_err(|e| cx.trap(codes::HOST, e))?;
    Ok(Value::Token)
}
