//! Collectives among the devices of a run.
//!
//! An operation has two halves: [`begin`] hands in what the device contributes and never waits, [`finish`]
//! makes the result of what all participants contributed, in the order in which the program names them. The
//! synchronous form, and the done of an asynchronous one, wait in between. In an `async-start` a synchronous
//! form only begins.

mod fold;
mod group;
mod permute;
pub(crate) mod shards;
mod transfer;

use std::sync::{Arc, OnceLock};

use hlo::diag::codes;
use hlo::{ArrayShape, AttrKey, Dims, Opcode, Shape, with_element_type};

use super::elementwise::convert;
use super::movement::strided::{StridedView, copy};
use super::{Args, Cx, Outcome};
use crate::device::exchange::{RendezvousKey, RendezvousList};
use crate::device::pending::Pending;
use crate::error::Result;
use crate::memory::Charge;
use crate::value::{Tensor, Value};

/// The exchange of an opcode with other devices.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// All of a collective.
    Whole(Kind),
    /// Its start, `(operands, result, contexts...)`.
    Start(Kind),
    /// Its start, the promise of the result alone.
    Begin(Kind),
    /// The done of `Start`, of `Begin`.
    Done,
    Settle,
    Send,
    SendDone,
    Receive,
    ReceiveDone,
    Infeed,
    Outfeed,
}

const ACTS: [(Opcode, Act); 20] = [
    (Opcode::AllGather, Act::Whole(Kind::AllGather)),
    (Opcode::AllGatherDone, Act::Done),
    (Opcode::AllGatherStart, Act::Start(Kind::AllGather)),
    (Opcode::AllReduce, Act::Whole(Kind::AllReduce)),
    (Opcode::AllReduceDone, Act::Settle),
    (Opcode::AllReduceStart, Act::Begin(Kind::AllReduce)),
    (Opcode::AllToAll, Act::Whole(Kind::AllToAll)),
    (Opcode::CollectiveBroadcast, Act::Whole(Kind::Broadcast)),
    (Opcode::CollectivePermute, Act::Whole(Kind::Permute)),
    (Opcode::CollectivePermuteDone, Act::Done),
    (Opcode::CollectivePermuteStart, Act::Start(Kind::Permute)),
    (Opcode::CollectiveReduce, Act::Whole(Kind::Reduce)),
    (Opcode::Infeed, Act::Infeed),
    (Opcode::Outfeed, Act::Outfeed),
    (Opcode::RaggedAllToAll, Act::Whole(Kind::Ragged)),
    (Opcode::Recv, Act::Receive),
    (Opcode::RecvDone, Act::ReceiveDone),
    (Opcode::ReduceScatter, Act::Whole(Kind::ReduceScatter)),
    (Opcode::Send, Act::Send),
    (Opcode::SendDone, Act::SendDone),
];

/// Runs an instruction that communicates.
pub(super) fn eval(cx: &Cx<'_>, args: Args) -> Result<Outcome> {
    let act = ACTS.iter().find(|(opcode, _)| *opcode == cx.instr.opcode);
    let typed = |value| super::declared(cx, value, &cx.instr.shape);
    let value = match act.expect("invariant: only opcodes of the table come here").1 {
        Act::Whole(kind) => settled(cx, begin(cx, kind, args)?).and_then(typed),
        Act::Start(kind) => start(cx, kind, args).and_then(typed),
        Act::Begin(kind) => begin(cx, kind, args),
        Act::Done => done(cx, args).and_then(typed),
        Act::Settle => settled(cx, super::control::first(args)).and_then(typed),
        Act::Send => transfer::send(cx, args),
        Act::SendDone => transfer::send_done(cx, args),
        Act::Receive => transfer::recv(cx),
        Act::ReceiveDone => transfer::recv_done(cx, args).and_then(typed),
        Act::Infeed => transfer::infeed(cx),
        Act::Outfeed => transfer::outfeed(cx, args),
    };
    value.map(Outcome::Value)
}

/// The kind of a collective.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    AllGather,
    AllReduce,
    AllToAll,
    Broadcast,
    /// Permutes do not work in groups, but between pairs.
    Permute,
    Ragged,
    Reduce,
    ReduceScatter,
}

/// The state that an operation keeps for [`finish`].
#[derive(Debug)]
pub(crate) enum Finish {
    /// Its index in a group, and operands that only the device itself needs.
    Group { kind: Kind, rank: usize, kept: Vec<Tensor> },
    /// A permute.
    Permute(permute::Taking),
    /// Whole arrays of shards.
    Shards(Vec<shards::Part>),
    /// A transfer to another device: nothing.
    Sent,
    /// A transfer from another device.
    Received,
}

/// Bytes that an outstanding operation counts for in addition to what it hands in.
const OVERHEAD: u64 = 256;

/// Hands in what the device contributes; the result, or the promise of it.
fn begin(cx: &Cx<'_>, kind: Kind, args: Args) -> Result<Value> {
    no_lanes(cx)?;
    if kind == Kind::Permute { permute::begin(cx, args) } else { group::begin(cx, kind, args) }
}

/// Refuses communication in a computation that is applied to elements: the order of its lanes is unspecified.
fn no_lanes(cx: &Cx<'_>) -> Result<()> {
    if cx.depth > 0 { Err(cx.unsupported("in a computation that is applied to elements")) } else { Ok(()) }
}

/// The result of an operation whose participants have all arrived. `cx` is that of the operation, not of its
/// done.
pub(crate) fn finish(cx: &Cx<'_>, pending: &Pending) -> Result<Value> {
    let value = match &pending.finish {
        Finish::Group { kind, rank, kept } => {
            let rendezvous = &pending.awaited[0];
            let contributions: Vec<&[Tensor]> = rendezvous.contributions().collect();
            group::result(cx, *kind, *rank, &contributions, kept, Some(&rendezvous.shared))?
        }
        Finish::Permute(taking) => permute::result(cx, taking, &pending.awaited)?,
        Finish::Shards(parts) => shards::finished(cx, parts, &pending.awaited)?,
        Finish::Sent => return Ok(Value::Token),
        Finish::Received => return transfer::received(cx, &pending.awaited[0]),
    };
    super::declared(cx, value, result_shape(cx))
}

/// The start of an asynchronous one: `(operands, result, contexts...)`.
fn start(cx: &Cx<'_>, kind: Kind, args: Args) -> Result<Value> {
    let mut operands = args.clone();
    // Of an in-place permute only the input.
    let operands = if args.len() == 1 || permute::is_in_place(cx) {
        operands.swap_remove(0)
    } else {
        Value::tuple(operands)
    };
    let result = begin(cx, kind, args)?;
    let contexts = cx.instr.shape.as_tuple().into_iter().flatten().skip(2);
    let contexts = contexts.map(|s| cx.session.zeros(cx.instr, s)).collect::<Result<Vec<_>>>()?;
    Ok(Value::tuple([operands, result].into_iter().chain(contexts)))
}

/// The done of what [`start`] gave.
fn done(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let result = super::control::first(args).take_element(1);
    settled(cx, result.ok_or_else(|| cx.unsupported("of anything but (operands, result)"))?)
}

/// A value that is waited for, except in an `async-start`, where its user does.
pub(super) fn settled(cx: &Cx<'_>, value: Value) -> Result<Value> {
    if cx.lazy { Ok(value) } else { cx.session.settle(value, cx.id) }
}

/// The shape of the result, which of a start is a part of its shape.
fn result_shape<'a>(cx: &Cx<'a>) -> &'a Shape {
    let shape = &cx.instr.shape;
    let start = matches!(cx.instr.opcode, Opcode::AllGatherStart | Opcode::CollectivePermuteStart);
    shape.as_tuple().filter(|_| start).and_then(|t| t.get(1)).unwrap_or(shape)
}

/// The contribution of a device to a rendezvous.
struct Arrival {
    key: RendezvousKey,
    /// Numbers of the devices, and which of them this one is.
    members: Arc<[u32]>,
    rank: usize,
    /// Copies that no device owns ([`detached`]).
    given: Vec<Tensor>,
}

/// Arrives at some rendezvous, in order; `bytes` is what is given away. The promise of a value of a shape.
fn arrive(cx: &Cx<'_>, shape: Shape, finish: Finish, arrivals: Vec<Arrival>, bytes: u64) -> Value {
    let session = cx.session;
    let charge = Charge::new(&session.meter, bytes + OVERHEAD);
    let deposit = session.traffic.deposit(charge);
    let awaited: RendezvousList = arrivals
        .into_iter()
        .map(|a| session.peers.exchange.arrive(a.key, &a.members, a.rank, a.given))
        .collect();
    let value = OnceLock::new();
    Value::Pending(Arc::new(Pending { start: cx.id, shape, awaited, finish, deposit, value }))
}

/// Tensors whose storage no longer belongs to the device, and their bytes: copies, except of those that are
/// not shared.
fn detached(cx: &Cx<'_>, tensors: impl IntoIterator<Item = Tensor>) -> Result<(Vec<Tensor>, u64)> {
    let mut total = 0;
    let mut out = Vec::new();
    for mut tensor in tensors {
        if !tensor.is_unique() {
            cx.session.check_memory(cx.instr, Some(tensor.bytes()))?;
        }
        total += tensor.bytes();
        let dims: Dims = tensor.dims().into();
        out.push(Tensor::new(dims, tensor.into_buffer()));
    }
    Ok((out, total))
}

/// A copy that belongs to this device.
fn copied(cx: &Cx<'_>, x: &Tensor) -> Result<Tensor> {
    cx.session.check_memory(cx.instr, Some(x.bytes()))?;
    Ok(Tensor::new(x.dims(), x.buffer().clone()))
}

/// Zeros in the type and the run-time sizes of an array.
fn zeros_like(cx: &Cx<'_>, x: &Tensor) -> Result<Tensor> {
    cx.session.check_memory(cx.instr, Some(x.bytes()))?;
    Ok(Tensor::new(x.dims(), hlo::Buffer::zeros(x.element_type(), x.len())))
}

/// Results as the instruction declares them: an array, or a tuple of arrays. Traps if one does not fit, which
/// is so where the groups of the run are not those that the text was written for.
fn results(cx: &Cx<'_>, results: Vec<Tensor>) -> Result<Value> {
    let declared = result_shape(cx);
    let shapes: Vec<&ArrayShape> = declared.leaves().into_iter().filter_map(Shape::as_array).collect();
    let mut out = Vec::with_capacity(results.len());
    for (i, result) in results.into_iter().enumerate() {
        let Some(shape) = shapes.get(i) else { return Err(cx.unsupported("of so many operands")) };
        let result = convert(cx, result, shape.element_type)?;
        let fits = result.rank() == shape.rank()
            && result.dims().iter().enumerate().all(|(d, &n)| {
                n == shape.dims[d]
                    || shape.is_dynamic_dim(d) && (shape.dims[d] == hlo::UNBOUNDED || n <= shape.dims[d])
            });
        if !fits {
            let message =
                format!("{} gives {}, not {}", cx.instr.opcode, result.shape(), shape.without_layout());
            return Err(
                cx.trap(codes::PARTICIPANTS, format!("{message}: is the number of participants right?"))
            );
        }
        out.push(Value::from(result));
    }
    match out.pop() {
        Some(only) if declared.as_tuple().is_none() => Ok(only),
        last => Ok(Value::tuple(out.into_iter().chain(last))),
    }
}

/// The dimension that a collective works along.
fn along(cx: &Cx<'_>) -> Result<usize> {
    let d = cx.attrs().ints_or_empty(AttrKey::Dimensions).first().and_then(|&d| usize::try_from(d).ok());
    d.ok_or_else(|| cx.unsupported("without dimensions"))
}

/// Copies a box of one array into another of the same element type. Panics if it is not inside both.
fn copy_box(
    from: &Tensor,
    from_start: &[usize],
    box_sizes: &[usize],
    to: &mut hlo::Buffer,
    to_sizes: &[usize],
    to_start: &[usize],
) {
    fn of<T: hlo::BufferOf>(
        from: &Tensor,
        source: &StridedView,
        n: &[usize],
        to: &mut hlo::Buffer,
        target: &StridedView,
    ) {
        let to = T::slice_mut(to).expect("invariant: both have the same element type");
        copy(n, from.slice::<T>(), source, to, target);
    }
    let at = |sizes: &[usize], start: &[usize]| {
        let mut view = StridedView::dense(sizes);
        view.offset = start.iter().zip(&view.strides).map(|(&i, &s)| i * s as usize).sum();
        view
    };
    let (source, target) = (at(&from.sizes(), from_start), at(to_sizes, to_start));
    with_element_type!(from.element_type(), T => of::<T>(from, &source, box_sizes, to, &target));
}

/// Part `i` of `n` equal parts along a dimension. Traps if there are no equal parts.
fn part(cx: &Cx<'_>, x: &Tensor, along: usize, i: usize, n: usize) -> Result<Tensor> {
    let mut dims = x.sizes();
    let size = part_size(cx, x, along, n)?;
    dims[along] = size;
    let elements = dims.iter().product();
    with_element_type!(x.element_type(), T => cx.reserve::<T>(elements))?;
    let mut out = hlo::Buffer::zeros(x.element_type(), elements);
    let (mut from, to) = (vec![0; dims.len()], vec![0; dims.len()]);
    from[along] = i * size;
    copy_box(x, &from, &dims, &mut out, &dims, &to);
    Ok(Tensor::new(super::common::dims(&dims), out))
}

/// The size of one of `n` equal parts along a dimension. Traps if there are no equal parts.
fn part_size(cx: &Cx<'_>, x: &Tensor, along: usize, n: usize) -> Result<usize> {
    let size = x.sizes()[along];
    if size.is_multiple_of(n) {
        return Ok(size / n);
    }
    let message = format!("dimension {along} of size {size} cannot be divided among {n} participants");
    Err(cx.trap(codes::PARTICIPANTS, message))
}

/// Traps if the run-time sizes of what participants contribute differ.
fn check_same_sizes(cx: &Cx<'_>, contributions: &[&[Tensor]]) -> Result<()> {
    let first = contributions[0];
    for other in &contributions[1..] {
        for (i, (a, b)) in first.iter().zip(*other).enumerate() {
            if a.dims() != b.dims() {
                let message = format!(
                    "participants have operands {i} of different run-time sizes {:?} and {:?}",
                    a.dims(),
                    b.dims()
                );
                return Err(cx.trap(codes::BAD_DYNAMIC_SIZE, message));
            }
        }
    }
    Ok(())
}

/// All elements of an integer tensor as sizes or offsets; `None` if one is negative.
fn counts(x: &Tensor) -> Option<Vec<usize>> {
    super::common::integers(x).into_iter().map(|n| usize::try_from(n).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::sizes;

    #[test]
    fn sizes_of_boxes() {
        let from = Tensor::from_vec([2i64, 3].as_slice(), vec![1i32, 2, 3, 4, 5, 6]);
        let mut to = hlo::Buffer::zeros(hlo::ElementType::S32, 9);
        copy_box(&from, &[0, 1], &[2, 2], &mut to, &sizes(&[3, 3]), &[1, 0]);
        assert_eq!(to, hlo::Buffer::S32(vec![0, 0, 0, 2, 3, 0, 5, 6, 0]));
    }
}
