//! Collectives of groups: every member contributes, and takes its part when all have.

use std::sync::OnceLock;

use hlo::AttrKey;
use hlo::diag::codes;

use super::super::Cx;
use super::super::common::dims;
use super::{
    Arrival, Finish, Kind, along, arrive, check_same_sizes, copied, copy_box, counts, detached, fold, part,
    part_size, result_shape, results, zeros_like,
};
use crate::device::exchange::RendezvousKey;
use crate::error::{Result, RunError};
use crate::ops::Args;
use crate::value::{Tensor, Value};

/// Hands in the operands.
pub(super) fn begin(cx: &Cx<'_>, kind: Kind, args: Args) -> Result<Value> {
    let session = cx.session;
    let participants = session.peers.participants(cx.id, cx.instr);
    let participants = participants.map_err(|e| cx.trap(codes::PARTICIPANTS, e))?;
    let Some(membership) = participants.membership(session.number) else {
        if kind == Kind::Broadcast {
            return cx.session.zeros(cx.instr, &cx.instr.shape);
        }
        return Err(cx.trap(codes::PARTICIPANTS, "the device is in no replica group"));
    };
    let mut operands: Vec<Tensor> = args.into_iter().map(Value::into_array).collect();
    let mut kept = Vec::new();
    if kind == Kind::Ragged {
        // The output and what is expected do not matter here.
        kept.push(operands.remove(5));
        kept.push(operands.remove(1));
    }
    if membership.members.len() == 1 {
        return result(cx, kind, 0, &[&operands], &kept, None);
    }
    let (given, bytes) = detached(cx, operands)?;
    let key = RendezvousKey::Group {
        instr: cx.id,
        group: membership.group,
        execution: session.traffic.execution(cx.id),
    };
    let finish = Finish::Group { kind, rank: membership.rank, kept };
    let arrival = Arrival { key, members: membership.members, rank: membership.rank, given };
    Ok(arrive(cx, result_shape(cx).clone(), finish, vec![arrival], bytes))
}

/// The result that a group computes once for all its members.
type Shared = OnceLock<Result<Vec<Tensor>, RunError>>;

/// The result of the member `rank`.
pub(super) fn result(
    cx: &Cx<'_>,
    kind: Kind,
    rank: usize,
    given: &[&[Tensor]],
    kept: &[Tensor],
    shared: Option<&Shared>,
) -> Result<Value> {
    if kind != Kind::Ragged {
        check_same_sizes(cx, given)?;
    }
    let tensors = match kind {
        Kind::AllGather => all_gather(cx, rank, given)?,
        Kind::AllReduce => fold::folded(cx, given, shared)?,
        Kind::ReduceScatter => reduce_scatter(cx, rank, given)?,
        Kind::AllToAll => all_to_all(cx, rank, given)?,
        Kind::Broadcast => broadcast(cx, given)?,
        Kind::Reduce => collective_reduce(cx, rank, given)?,
        Kind::Ragged => vec![ragged(cx, rank, given, kept)?],
        Kind::Permute => unreachable!("invariant: permutes have no groups"),
    };
    results(cx, tensors)
}

/// The operands of all members one after the other; scalars, which only order collectives, as they are.
fn all_gather(cx: &Cx<'_>, rank: usize, given: &[&[Tensor]]) -> Result<Vec<Tensor>> {
    let along = along(cx)?;
    let mut out = Vec::with_capacity(given[0].len());
    for (i, first) in given[0].iter().enumerate() {
        if given.len() == 1 {
            out.push(first.clone());
            continue;
        }
        if first.rank() == 0 {
            // A pseudo-token is not gathered: it is the member's own.
            out.push(copied(cx, &given[rank][i])?);
            continue;
        }
        let part = first.sizes();
        let mut whole = part.clone();
        whole[along] *= given.len();
        cx.session.check_memory(cx.instr, first.bytes().checked_mul(given.len() as u64))?;
        let mut buffer = hlo::Buffer::zeros(first.element_type(), first.len() * given.len());
        let (from, mut to) = (vec![0; part.len()], vec![0; part.len()]);
        for member in given {
            copy_box(&member[i], &from, &part, &mut buffer, &whole, &to);
            to[along] += part[along];
        }
        out.push(Tensor::new(dims(&whole), buffer));
    }
    Ok(out)
}

/// This member's part of the folded operands.
fn reduce_scatter(cx: &Cx<'_>, rank: usize, given: &[&[Tensor]]) -> Result<Vec<Tensor>> {
    let along = along(cx)?;
    let n = given.len();
    if n == 1 {
        return fold::folded(cx, given, None);
    }
    // A scalar, which only orders collectives, is folded whole.
    let own_part = |x: &Tensor| if x.rank() == 0 { Ok(x.clone()) } else { part(cx, x, along, rank, n) };
    let parts: Vec<Vec<Tensor>> =
        given.iter().map(|operands| operands.iter().map(own_part).collect()).collect::<Result<_>>()?;
    let parts: Vec<&[Tensor]> = parts.iter().map(Vec::as_slice).collect();
    fold::folded(cx, &parts, None)
}

/// One block from each member: of operands (result `i` is from member `i`), or of a dimension.
fn all_to_all(cx: &Cx<'_>, rank: usize, given: &[&[Tensor]]) -> Result<Vec<Tensor>> {
    let n = given.len();
    if cx.attrs().ints(AttrKey::Dimensions).is_none() {
        if given[0].len() != n {
            let message = format!("{} operands for {n} participants", given[0].len());
            return Err(cx.trap(codes::PARTICIPANTS, message));
        }
        return given.iter().map(|operands| copied(cx, &operands[rank])).collect();
    }
    let along = along(cx)?;
    let x = &given[0][0];
    let block_size = part_size(cx, x, along, n)?;
    if n == 1 {
        return Ok(vec![x.clone()]);
    }
    let whole = x.sizes();
    let mut block = whole.clone();
    block[along] = block_size;
    let mut buffer = zeros_like(cx, x)?.into_buffer();
    let (mut from, mut to) = (vec![0; whole.len()], vec![0; whole.len()]);
    from[along] = rank * block_size;
    for member in given {
        copy_box(&member[0], &from, &block, &mut buffer, &whole, &to);
        to[along] += block_size;
    }
    Ok(vec![Tensor::new(x.dims(), buffer)])
}

/// The member that each operand comes from or goes to, and the number of operands without that which says so.
fn roots(cx: &Cx<'_>, given: &[&[Tensor]]) -> Result<Vec<usize>> {
    let count = given[0].len();
    if !cx.attrs().bool(AttrKey::HasDynamicRoot) {
        return Ok(vec![0; count]);
    }
    let root = |operands: &[Tensor]| operands.last().map(super::super::common::integers).unwrap_or_default();
    let chosen = root(given[0]);
    if given[1..].iter().any(|other| root(other) != chosen) {
        return Err(cx.trap(codes::PARTICIPANTS, "the participants name different roots"));
    }
    let n = given.len();
    let fits = |r: &i64| {
        usize::try_from(*r).ok().filter(|&r| r < n).ok_or_else(|| {
            cx.trap(codes::PARTICIPANTS, format!("the root {r} is no rank in a group of {n} participants"))
        })
    };
    chosen.iter().map(fits).collect()
}

/// The operands of the root.
fn broadcast(cx: &Cx<'_>, given: &[&[Tensor]]) -> Result<Vec<Tensor>> {
    let roots = roots(cx, given)?;
    if given.len() == 1 {
        return Ok(given[0][..roots.len()].to_vec());
    }
    roots.iter().enumerate().map(|(i, &root)| copied(cx, &given[root][i])).collect()
}

/// The folded operands at their roots, zeros elsewhere.
fn collective_reduce(cx: &Cx<'_>, rank: usize, given: &[&[Tensor]]) -> Result<Vec<Tensor>> {
    let roots = roots(cx, given)?;
    let data: Vec<&[Tensor]> = given.iter().map(|operands| &operands[..roots.len()]).collect();
    let folded = if roots.contains(&rank) { Some(fold::folded(cx, &data, None)?) } else { None };
    roots
        .iter()
        .enumerate()
        .map(|(i, &root)| match &folded {
            Some(folded) if root == rank => Ok(folded[i].clone()),
            Some(_) | None => zeros_like(cx, &data[0][i]),
        })
        .collect()
}

/// Rows of run-time counts from each member to each other: member `i` sends, for each of its `k` updates of
/// member `j`, `send_sizes[j][k]` rows from `input_offsets[j][k]` on, which `j` writes from
/// `output_offsets[j][k]` on (a number of `i`'s), in the order of members and updates. `given` are (input,
/// input offsets, send sizes, output offsets), `kept` (receive sizes, output).
fn ragged(cx: &Cx<'_>, rank: usize, given: &[&[Tensor]], kept: &[Tensor]) -> Result<Tensor> {
    let trap = |what: String| cx.trap(codes::PARTICIPANTS, what);
    let [expected, output] = kept else { unreachable!("invariant: two operands are kept") };
    let n = given.len();
    let entries = expected.len();
    if entries % n != 0 {
        return Err(trap(format!("{entries} sizes for {n} participants")));
    }
    let updates = entries / n;
    let negative = |what: &str| trap(format!("the {what} of a ragged all-to-all are negative"));
    let expected = counts(expected).ok_or_else(|| negative("receive sizes"))?;
    let whole = output.sizes();
    let mut buffer = copied(cx, output)?.into_buffer();
    let start = vec![0; whole.len()];
    for (sender, operands) in given.iter().enumerate() {
        let [input, from, sizes, to] = operands else {
            unreachable!("invariant: four operands are handed in")
        };
        let same_rows =
            input.element_type() == output.element_type() && input.sizes().get(1..) == whole.get(1..);
        if !same_rows || whole.is_empty() {
            return Err(trap(format!("rows of {} cannot be put into {}", input.shape(), output.shape())));
        }
        let from = counts(from).ok_or_else(|| negative("input offsets"))?;
        let sizes = counts(sizes).ok_or_else(|| negative("send sizes"))?;
        let to = counts(to).ok_or_else(|| negative("output offsets"))?;
        for k in 0..updates {
            let (sent, wanted) = (rank * updates + k, sender * updates + k);
            let rows = sizes[sent];
            if rows != expected[wanted] {
                let what = format!("participant {sender} sends {rows} rows to {rank}");
                return Err(trap(format!("{what}, which expects {} (update {k})", expected[wanted])));
            }
            let fits = |start: usize, size: usize| start.checked_add(rows).is_some_and(|end| end <= size);
            let (source, target) = (from[sent], to[sent]);
            if !fits(source, input.sizes()[0]) || !fits(target, whole[0]) {
                return Err(trap(format!(
                    "participant {sender} sends rows {source}..+{rows} of {} to rows {target}..+{rows} of {} of {rank}",
                    input.sizes()[0],
                    whole[0]
                )));
            }
            let mut block = input.sizes();
            block[0] = rows;
            let (mut source_start, mut target_start) = (start.clone(), start.clone());
            (source_start[0], target_start[0]) = (source, target);
            copy_box(input, &source_start, &block, &mut buffer, &whole, &target_start);
        }
    }
    Ok(Tensor::new(output.dims(), buffer))
}
