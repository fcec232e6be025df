//! Between a whole array and the shard of it that a device has, before a partitioner has run.
//!
//! Such a program computes on whole arrays, each device by itself; `SPMDFullToShardShape`
//! (`xla.sdy.GlobalToLocalShape`) begins a part in which each device has its shard of them, by the sharding
//! of the operand, and `SPMDShardToFullShape` (`xla.sdy.LocalToGlobalShape`) ends it: there the devices
//! exchange their shards, by the sharding of the result, so that each has the whole array again. Both do what
//! XLA's partitioner makes of them (`SpmdPartitioningVisitor::HandleCustomCall`) to the values that its
//! devices hold: a shard at the end of a dimension that cannot be divided is padded with zeros, and the
//! padding is dropped. Where a sharding cuts nothing the value stays as it is.

use std::sync::Arc;

use hlo::attrs::Sharding;
use hlo::diag::codes;
use hlo::{Instruction, Module, Shape};

use super::super::{Args, Cx};
use super::{Arrival, Finish, arrive, copy_box, detached, no_lanes, results, settled};
use crate::custom_call::Call;
use crate::device::exchange::{Rendezvous, RendezvousKey};
use crate::device::sdy;
use crate::device::tiling::Tiling;
use crate::error::Result;
use crate::value::{Tensor, Value, sizes};

/// The conversion of an array that a target names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The shard that a device has.
    ToShard,
    /// All of it.
    ToWhole,
}

/// The direction of a target; `None` if it is none of these.
pub(crate) fn direction(target: &str) -> Option<Direction> {
    match target {
        "SPMDFullToShardShape" | "xla.sdy.GlobalToLocalShape" | "local_xla.sdy.GlobalToLocalShape" => {
            Some(Direction::ToShard)
        }
        "SPMDShardToFullShape" | "xla.sdy.LocalToGlobalShape" | "local_xla.sdy.LocalToGlobalShape" => {
            Some(Direction::ToWhole)
        }
        _ => None,
    }
}

/// How each operand of a call is partitioned, `None` if it stays whole. Errors: why that cannot be said,
/// going on from the name of the target.
pub(crate) fn tilings(call: &Call<'_>, direction: Direction) -> Result<Vec<Option<Tiling>>, String> {
    let (module, instr) = (call.module, call.instruction);
    let operands: Vec<&Shape> = instr.operands().iter().map(|&o| &module.instr(o).shape).collect();
    let results: Vec<&Shape> = match (&instr.shape, operands.as_slice()) {
        (Shape::Tuple(parts), _) if operands.len() == parts.len() => parts.iter().collect(),
        (shape, [_]) => vec![shape],
        _ => return Err(format!("with {} operands for the result {}", operands.len(), instr.shape)),
    };
    if operands.iter().zip(&results).all(|(a, b)| a.without_layout() == b.without_layout())
        && !is_cut(call, direction)
    {
        return Ok(vec![None; operands.len()]);
    }
    let of_sdy = sdy_shardings(module, instr, direction)?;
    let mut tilings = Vec::with_capacity(operands.len());
    for (n, (operand, result)) in operands.iter().zip(&results).enumerate() {
        let (Some(from), Some(to)) = (operand.as_array(), result.as_array()) else {
            return Err(format!("of {} as {}", operand.without_layout(), result.without_layout()));
        };
        let (whole, shard) = if direction == Direction::ToShard { (from, to) } else { (to, from) };
        let same = from.dims == to.dims;
        let who = if direction == Direction::ToShard { "operand" } else { "result" };
        let named = |why: String| format!("whose {who}'s sharding {why}");
        let tiling = match &of_sdy {
            Some((shardings, manual)) => match shardings.get(n) {
                Some(s) => Tiling::of_axes(s, Some(manual), whole.rank()).map_err(named)?,
                None => return Err(format!("with shardings of {} values", shardings.len())),
            },
            None => {
                let sharded =
                    if direction == Direction::ToShard { module.instr(instr.operands()[n]) } else { instr };
                let sharding = match sharded.attrs.sharding() {
                    // Of several results.
                    Some(Sharding::Tuple(each)) if operands.len() > 1 => each.get(n),
                    other => other,
                };
                match sharding {
                    Some(s) => Tiling::of(s, whole.rank()).map_err(named)?,
                    None => None,
                }
            }
        };
        match tiling {
            _ if from.element_type != to.element_type || from.rank() != to.rank() => {
                return Err(format!("of {} as {}", from.without_layout(), to.without_layout()));
            }
            Some(_) | None if from.is_dynamic() || to.is_dynamic() => {
                return Err("of sizes known only at run time".to_owned());
            }
            Some(tiling) if tiling.shard(&whole.dims) == shard.dims.as_slice() => tilings.push(Some(tiling)),
            // A dimension that no sharding cuts: of an array that is already a shard, say.
            Some(_) | None if same => tilings.push(None),
            Some(tiling) => {
                return Err(format!(
                    "whose {who}'s sharding cuts {:?} into shards {:?}, not {:?}",
                    whole.dims.as_slice(),
                    tiling.shard(&whole.dims),
                    shard.dims.as_slice()
                ));
            }
            None => return Err(format!("whose {who} has no sharding that cuts it")),
        }
    }
    Ok(tilings)
}

/// Whether a sharding says that something is partitioned, although shapes are equal: a dimension of one
/// element on several devices, of which the first has it.
fn is_cut(call: &Call<'_>, direction: Direction) -> bool {
    let (module, instr) = (call.module, call.instruction);
    let sharded = match (direction, instr.operands()) {
        (Direction::ToShard, &[operand]) => module.instr(operand),
        (Direction::ToShard, _) => return true,
        (Direction::ToWhole, _) => instr,
    };
    let rank = instr.shape.as_array().map_or(0, hlo::ArrayShape::rank);
    sharded.attrs.sharding().is_some_and(|s| matches!(Tiling::of(s, rank), Ok(Some(_))))
}

fn sdy_shardings(
    module: &Module,
    instr: &Instruction,
    direction: Direction,
) -> Result<Option<sdy::OfValues>, String> {
    match direction {
        Direction::ToShard => {
            sdy::shardings(module, instr, "xla.sdy.in_shardings", sdy::taker(module, instr))
        }
        Direction::ToWhole => {
            sdy::shardings(module, instr, "xla.sdy.out_shardings", sdy::giver(module, instr))
        }
    }
}

/// An array of the result, once all that it needs is there.
#[derive(Debug)]
pub(crate) enum Part {
    /// It is there.
    There(Tensor),
    /// The shards of the rendezvous' members, in the order of tiles.
    Shards { rendezvous: usize, tiling: Tiling, whole: Vec<usize> },
}

/// Runs a call.
pub(crate) fn run(cx: &Cx<'_>, call: &Call<'_>, direction: Direction, args: Args) -> Result<Value> {
    let tilings = tilings(call, direction).map_err(|why| call.unsupported(&why))?;
    if tilings.iter().all(Option::is_none) {
        // Whatever it is, tuples too.
        return Ok(match (&cx.instr.shape, &args[..]) {
            (Shape::Tuple(_), [Value::Tuple(_)]) => args[0].clone(),
            (Shape::Tuple(_), _) => Value::tuple(args),
            (_, [only]) => only.clone(),
            (_, several) => return Err(call.unsupported(&format!("with {} operands", several.len()))),
        });
    }
    let operands = args.into_iter().map(Value::into_array);
    match direction {
        Direction::ToShard => {
            let shards = operands.zip(&tilings).map(|(x, tiling)| match tiling {
                Some(tiling) => shard(cx, &x, tiling),
                None => Ok(x),
            });
            let shards = shards.collect::<Result<_>>()?;
            results(cx, shards)
        }
        Direction::ToWhole => exchange(cx, operands, tilings),
    }
}

/// This device's shard of its own whole array.
fn shard(cx: &Cx<'_>, x: &Tensor, tiling: &Tiling) -> Result<Tensor> {
    let whole = x.sizes();
    let shard = sizes(&tiling.shard(x.dims()));
    let (_, tile) = group_and_tile(cx, tiling)?;
    let start = tiling.start(tile, &shard);
    let count: usize = shard.iter().product();
    let bytes = (count as u64).checked_mul(x.element_type().storage_bytes() as u64);
    cx.session.check_memory(cx.instr, bytes)?;
    let mut out = hlo::Buffer::zeros(x.element_type(), count);
    let there: Vec<usize> =
        (0..whole.len()).map(|d| shard[d].min(whole[d].saturating_sub(start[d]))).collect();
    if there.iter().all(|&n| n > 0) {
        copy_box(x, &start, &there, &mut out, &shard, &vec![0; shard.len()]);
    }
    Ok(Tensor::new(super::super::common::dims(&shard), out))
}

/// Which tile of which group this device has.
fn group_and_tile(cx: &Cx<'_>, tiling: &Tiling) -> Result<(usize, usize)> {
    let partition = cx.session.number % cx.session.peers.devices.partitions;
    let found = tiling.group_and_tile(partition);
    found.ok_or_else(|| {
        let message = format!("partition {partition} has no shard: the sharding does not name it");
        cx.trap(codes::PARTICIPANTS, message)
    })
}

/// Hands in this device's shards, and waits for those of the others.
fn exchange(
    cx: &Cx<'_>,
    operands: impl Iterator<Item = Tensor>,
    tilings: Vec<Option<Tiling>>,
) -> Result<Value> {
    no_lanes(cx)?;
    let session = cx.session;
    let devices = session.peers.devices;
    let replica = session.number / devices.partitions;
    let execution = session.traffic.execution(cx.id);
    let shapes: Vec<Vec<i64>> =
        cx.instr.shape.leaves().into_iter().filter_map(Shape::as_array).map(|a| a.dims.to_vec()).collect();
    let (mut parts, mut arrivals, mut bytes) = (Vec::new(), Vec::new(), 0);
    for (n, ((x, tiling), whole)) in operands.zip(tilings).zip(shapes).enumerate() {
        let Some(tiling) = tiling else {
            parts.push(Part::There(x));
            continue;
        };
        let (group, tile) = group_and_tile(cx, &tiling)?;
        let members = members(cx, &tiling.groups[group], replica)?;
        let (given, more) = detached(cx, [x])?;
        bytes += more;
        // Groups of the operands of one call are numbered one operand after the other.
        let number = n as u32 * devices.count() + replica * devices.partitions + group as u32;
        let key = RendezvousKey::Group { instr: cx.id, group: number, execution };
        parts.push(Part::Shards { rendezvous: arrivals.len(), tiling, whole: sizes(&whole).to_vec() });
        arrivals.push(Arrival { key, members, rank: tile, given });
    }
    let promise = arrive(cx, cx.instr.shape.clone(), Finish::Shards(parts), arrivals, bytes);
    settled(cx, promise)
}

/// The devices of a group of partitions. Traps if the run does not have them, or one has two tiles.
fn members(cx: &Cx<'_>, group: &[i64], replica: u32) -> Result<Arc<[u32]>> {
    let partitions = cx.session.peers.devices.partitions;
    let mut members = Vec::with_capacity(group.len());
    for &id in group {
        let Some(partition) = u32::try_from(id).ok().filter(|&id| id < partitions) else {
            let s = if partitions == 1 { "" } else { "s" };
            let message = format!("there is no partition {id}: the run has {partitions} partition{s}");
            return Err(cx.trap(codes::PARTICIPANTS, message));
        };
        let device = replica * partitions + partition;
        if members.contains(&device) {
            let message = format!("partition {id} has two shards of one array");
            return Err(cx.trap(codes::PARTICIPANTS, message));
        }
        members.push(device);
    }
    Ok(members.into())
}

/// The arrays of the result, after everybody has arrived.
pub(super) fn finished(cx: &Cx<'_>, parts: &[Part], awaited: &[Arc<Rendezvous>]) -> Result<Value> {
    let whole = parts.iter().map(|part| match part {
        Part::There(x) => Ok(x.clone()),
        Part::Shards { rendezvous, tiling, whole } => {
            let shards: Vec<&Tensor> =
                awaited[*rendezvous].contributions().filter_map(<[Tensor]>::first).collect();
            joined(cx, &shards, tiling, whole)
        }
    });
    results(cx, whole.collect::<Result<_>>()?)
}

fn joined(cx: &Cx<'_>, shards: &[&Tensor], tiling: &Tiling, whole: &[usize]) -> Result<Tensor> {
    let count: usize = whole.iter().product();
    let ty = shards[0].element_type();
    cx.session.check_memory(cx.instr, (count as u64).checked_mul(ty.storage_bytes() as u64))?;
    let mut out = hlo::Buffer::zeros(ty, count);
    for (tile, shard) in shards.iter().enumerate() {
        let size = shard.sizes();
        let start = tiling.start(tile, &size);
        let there: Vec<usize> =
            (0..whole.len()).map(|d| size[d].min(whole[d].saturating_sub(start[d]))).collect();
        if there.iter().all(|&n| n > 0) {
            copy_box(shard, &vec![0; size.len()], &there, &mut out, whole, &start);
        }
    }
    Ok(Tensor::new(super::super::common::dims(whole), out))
}
