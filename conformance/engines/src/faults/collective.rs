//! Several devices.

use hlo::attrs::collective::{GroupMode, group_mode};
use hlo::attrs::{AttrKey, AttrValue, ReplicaGroups};
use hlo::{InstrId, Opcode};

use super::edit::{Edit, ints};
use super::{Family, Needs, Row, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "all-reduce-groups-ignored",
        Family::Collective,
        "An `all-reduce` in several groups reduces over all replicas.",
        "https://github.com/pytorch/xla/issues/5279",
        &[Opcode::AllReduce],
        all_reduce_groups_ignored,
    )
    .needing(Needs::DEVICES),
    row(
        "all-gather-along-first-dimension",
        Family::Collective,
        "An `all-gather` joins along the first dimension of the array in memory, whichever it should.",
        "https://github.com/pytorch/xla/pull/3413",
        &[Opcode::AllGather],
        all_gather_along_first_dimension,
    )
    .needing(Needs::DEVICES),
    row(
        "reduce-scatter-shards-rotated",
        Family::Collective,
        "A `reduce-scatter` gives each device the shard of the next one.",
        "https://github.com/pytorch/xla/issues/3824",
        &[Opcode::ReduceScatter],
        reduce_scatter_shards_rotated,
    )
    .needing(Needs::DEVICES),
];

/// The groups as lists; `None` if they are not written out.
fn groups(e: &Edit<'_>) -> Option<Vec<Vec<i64>>> {
    e.me().attrs.replica_groups()?.expand().filter(|g| !g.is_empty())
}

fn all_reduce_groups_ignored(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::AllReduce)?;
    let groups = groups(e)?;
    let mode = group_mode(Opcode::AllReduce, &e.me().attrs)?;
    (groups.len() > 1).then_some(())?;
    let all = match mode {
        GroupMode::CrossReplica | GroupMode::CrossReplicaAndPartition => Vec::new(),
        GroupMode::FlattenedId | GroupMode::CrossPartition => {
            vec![groups.concat().into_iter().collect()]
        }
    };
    e.with_attr(AttrKey::ReplicaGroups, AttrValue::ReplicaGroups(Box::new(ReplicaGroups::Lists(all))))
}

fn all_gather_along_first_dimension(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::AllGather)?;
    let [x] = *e.operands() else { return None };
    let (from, to) = (e.array(x)?, e.result()?);
    let dim = *e.me().attrs.ints(AttrKey::Dimensions)?.first()?;
    (dim != 0 && !from.dims.contains(&0)).then_some(())?;
    let n = to.dims[dim as usize] / from.dims[dim as usize].max(1);
    let mut dims = from.dims.to_vec();
    dims[0] *= n;
    let attrs = e.attrs().with(AttrKey::Dimensions, ints(&[0]));
    let shape = hlo::Shape::array(to.element_type, &dims);
    let gathered = e.shaped(Opcode::AllGather, shape, &[x], attrs)?;
    e.reshape(gathered, &to.dims)
}

fn reduce_scatter_shards_rotated(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::ReduceScatter)?;
    let [x] = *e.operands() else { return None };
    let attrs = e.attrs();
    let dim = usize::try_from(*attrs.ints(AttrKey::Dimensions)?.first()?).ok()?;
    let (size, shard) = (e.array(x)?.dims[dim], e.result()?.dims[dim]);
    (shard > 0 && shard < size).then_some(())?;
    let (rest, first) = (e.cut(x, dim, shard, size)?, e.cut(x, dim, 0, shard)?);
    let rotated = e.concatenate(&[rest, first], dim as i64)?;
    e.again(&[rotated], attrs)
}
