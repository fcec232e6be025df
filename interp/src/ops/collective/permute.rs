//! `collective-permute`: from sources to targets, pair by pair.
//!
//! A device waits for the other ends of its own pairs and for nobody else. With `slice_sizes` (in place) the
//! operands are (input, output, input offsets, output offsets): the nth pair of a source sends the slice at
//! its nth input offsets, the nth pair of a target writes at its nth output offsets. Offsets are clamped as
//! those of a dynamic-slice are.

use hlo::diag::codes;
use hlo::{AttrKey, with_element_type};

use super::super::Cx;
use super::super::common::dims;
use super::{Arrival, Finish, arrive, copied, copy_box, detached, result_shape, results, zeros_like};
use crate::device::exchange::{RendezvousKey, RendezvousList};
use crate::device::participants::pairs;
use crate::error::Result;
use crate::ops::Args;
use crate::value::{Sizes, Tensor, Value};

/// The action of a device on receipt.
#[derive(Debug)]
pub(crate) struct Taking {
    /// Those of the rendezvous in which it is the target.
    from: Vec<usize>,
    how: How,
}

#[derive(Debug)]
enum How {
    /// The operands of the source; without a source, zeros of the sizes of its own operands.
    Whole { zeros: Vec<Tensor> },
    /// Written into copies of the outputs: for each transfer the offsets in each of them, not yet clamped.
    Slices { outputs: Vec<Tensor>, starts: Vec<Vec<Vec<i64>>> },
}

/// Whether slices are sent between buffers.
pub(super) fn is_in_place(cx: &Cx<'_>) -> bool {
    cx.attrs().int_lists(AttrKey::PermuteSliceSizes).is_some_and(|s| !s.is_empty())
}

pub(super) fn begin(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let session = cx.session;
    let me = session.number;
    let mine = pairs(cx.instr, session.peers.devices, me).map_err(|e| cx.trap(codes::PARTICIPANTS, e))?;
    let sends = mine.iter().filter(|p| p.1 == me).count();
    let receives = mine.iter().filter(|p| p.2 == me).count();
    let (sent, how, bytes) =
        if is_in_place(cx) { slices(cx, &args, sends, receives)? } else { whole(cx, args, sends, receives)? };
    let mut sent = sent.into_iter();
    let execution = session.traffic.execution(cx.id);
    let mut from = Vec::new();
    let mut arrivals = Vec::with_capacity(mine.len());
    for (number, &(pair, source, target)) in mine.iter().enumerate() {
        let key = RendezvousKey::Pair { instr: cx.id, pair, source, execution };
        let members = if source == target { vec![source] } else { vec![source, target] };
        let given = if source == me { sent.next().unwrap_or_default() } else { Vec::new() };
        if target == me {
            from.push(number);
        }
        arrivals.push(Arrival { key, members: members.into(), rank: usize::from(source != me), given });
    }
    let taking = Taking { from, how };
    if arrivals.is_empty() {
        return result(cx, &taking, &RendezvousList::new());
    }
    Ok(arrive(cx, result_shape(cx).clone(), Finish::Permute(taking), arrivals, bytes))
}

/// What goes out for each pair, what is done with what comes in, and the bytes that go out.
type Parts = (Vec<Vec<Tensor>>, How, u64);

fn whole(cx: &Cx<'_>, args: Args, sends: usize, receives: usize) -> Result<Parts> {
    let operands: Vec<Tensor> = args.into_iter().map(Value::into_array).collect();
    let zeros = match receives {
        0 => operands.iter().map(|x| zeros_like(cx, x)).collect::<Result<_>>()?,
        _ => Vec::new(),
    };
    if sends == 0 {
        return Ok((Vec::new(), How::Whole { zeros }, 0));
    }
    let (given, bytes) = detached(cx, operands)?;
    Ok((vec![given; sends], How::Whole { zeros }, bytes))
}

fn slices(cx: &Cx<'_>, args: &Args, sends: usize, receives: usize) -> Result<Parts> {
    let [input, output, from, to] = args.as_slice() else {
        return Err(cx.unsupported("of slices without four operands"));
    };
    let arrays = |buffers: &Value| -> Vec<Tensor> { buffers.arrays().into_iter().cloned().collect() };
    let (inputs, outputs) = (arrays(input), arrays(output));
    let tuple = input.as_tuple().is_some();
    let (from, to) = (Offsets { value: from, tuple }, Offsets { value: to, tuple });
    let mut sent = Vec::with_capacity(sends);
    let mut bytes = 0;
    for slot in 0..sends {
        let mut given = Vec::with_capacity(inputs.len());
        for (i, input) in inputs.iter().enumerate() {
            let sizes = slice_sizes(cx, i * from.slots(i) + slot, input)?;
            let start = clamped(cx, &from.indices(cx, i, slot, input.rank())?, &sizes, input)?;
            let n: usize = sizes.iter().product();
            with_element_type!(input.element_type(), T => cx.reserve::<T>(n))?;
            let mut buffer = hlo::Buffer::zeros(input.element_type(), n);
            copy_box(input, &start, &sizes, &mut buffer, &sizes, &Sizes::from_elem(0, sizes.len()));
            given.push(Tensor::new(dims(&sizes), buffer));
        }
        bytes += given.iter().map(Tensor::bytes).sum::<u64>();
        sent.push(given);
    }
    let starts = (0..receives)
        .map(|slot| outputs.iter().enumerate().map(|(i, x)| to.indices(cx, i, slot, x.rank())).collect())
        .collect::<Result<_>>()?;
    Ok((sent, How::Slices { outputs, starts }, bytes))
}

/// The offsets of all slices of all buffers: a tuple of indices for one slice, a tuple of such tuples for
/// several, and of a tuple of buffers a tuple of those.
struct Offsets<'a> {
    value: &'a Value,
    /// The buffers are a tuple.
    tuple: bool,
}

impl<'a> Offsets<'a> {
    /// Those of buffer `i`.
    fn buffer(&self, i: usize) -> &'a [Value] {
        let all = self.value.expect_tuple();
        if self.tuple { all[i].expect_tuple() } else { all }
    }

    /// The number of slices of buffer `i`.
    fn slots(&self, i: usize) -> usize {
        let offsets = self.buffer(i);
        if offsets.iter().all(|o| o.as_array().is_some()) { 1 } else { offsets.len() }
    }

    /// The start indices of slice `slot` of buffer `i`.
    fn indices(&self, cx: &Cx<'_>, i: usize, slot: usize, rank: usize) -> Result<Vec<i64>> {
        let offsets = self.buffer(i);
        let whole = offsets.iter().all(|o| o.as_array().is_some());
        let indices = if whole {
            Some(offsets).filter(|_| slot == 0)
        } else {
            offsets.get(slot).and_then(Value::as_tuple)
        };
        match indices.filter(|o| o.len() == rank) {
            Some(indices) => Ok(indices.iter().map(|o| o.expect_array().index_at(0)).collect()),
            None => {
                let message = format!("there are no offsets for slice {slot} of buffer {i}");
                Err(cx.trap(codes::PARTICIPANTS, message))
            }
        }
    }
}

/// The sizes of the nth slice.
fn slice_sizes(cx: &Cx<'_>, n: usize, buffer: &Tensor) -> Result<Sizes> {
    let all = cx.attrs().int_lists(AttrKey::PermuteSliceSizes).unwrap_or(&[]);
    let sizes: Option<Sizes> = all.get(n).and_then(|s| s.iter().map(|&n| usize::try_from(n).ok()).collect());
    let sizes = sizes.filter(|s| s.len() == buffer.rank());
    sizes.ok_or_else(|| cx.trap(codes::PARTICIPANTS, format!("slice {n} of {} has no sizes", buffer.shape())))
}

/// Offsets clamped so that a box is inside a buffer. Traps if it is too large.
fn clamped(cx: &Cx<'_>, start: &[i64], sizes: &[usize], buffer: &Tensor) -> Result<Sizes> {
    let inside = buffer.sizes();
    if sizes.len() != inside.len() || sizes.iter().zip(&inside).any(|(n, whole)| n > whole) {
        let message = format!("a slice of sizes {sizes:?} does not fit into {}", buffer.shape());
        return Err(cx.trap(codes::PARTICIPANTS, message));
    }
    let clamp = |((&i, &n), &whole): ((&i64, &usize), &usize)| i.clamp(0, (whole - n) as i64) as usize;
    Ok(start.iter().zip(sizes).zip(&inside).map(clamp).collect())
}

/// The values that the sources sent.
pub(super) fn result(cx: &Cx<'_>, taking: &Taking, awaited: &RendezvousList) -> Result<Value> {
    let mut received = taking.from.iter().map(|&i| awaited[i].contributions().next().unwrap_or(&[]));
    match &taking.how {
        How::Whole { zeros } => match received.next() {
            None => results(cx, zeros.clone()),
            Some(data) => results(cx, data.iter().map(|x| copied(cx, x)).collect::<Result<_>>()?),
        },
        How::Slices { outputs, starts } => {
            let mut out = outputs.iter().map(|x| copied(cx, x)).collect::<Result<Vec<_>>>()?;
            for (data, starts) in received.zip(starts) {
                for ((x, slice), start) in out.iter_mut().zip(data).zip(starts) {
                    if slice.element_type() != x.element_type() {
                        let message =
                            format!("a slice of {} is sent to {}", slice.element_type(), x.element_type());
                        return Err(cx.trap(codes::PARTICIPANTS, message));
                    }
                    let (sizes, whole) = (slice.sizes(), x.sizes());
                    let start = clamped(cx, start, &sizes, x)?;
                    let x = x.unique().expect("invariant: the copies are this operation's own");
                    copy_box(slice, &Sizes::from_elem(0, sizes.len()), &sizes, x, &whole, &start);
                }
            }
            results(cx, out)
        }
    }
}
