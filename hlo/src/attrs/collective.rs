//! Replica groups: which devices take part in a collective together.

use super::sharding::{AxisRef, Mesh};
use super::{AttrKey, Attrs, Ints};
use crate::opcode::Opcode;

/// The three forms of replica groups (`xla/hlo/ir/collective_device_list.h`, `replica_group.h`).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ReplicaGroups {
    /// `{{0,1},{2,3}}`; `{}` is one group of all.
    Lists(Vec<Ints>),
    /// `[2,4]<=[4,2]T(1,0)`: iota of `reshape_dims`, transposed, as `dims[0]` groups of `dims[1]`.
    Iota {
        /// Number of groups, size of a group.
        dims: Ints,
        /// The shape that the ids are counted in.
        reshape_dims: Ints,
        /// Its permutation; empty if it is the identity and not written.
        transpose: Ints,
    },
    /// `mesh['a'=2,'b'=4] {'a'}`.
    Mesh(Box<MeshAxes>),
}

/// Axes of a mesh.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MeshAxes {
    /// The mesh.
    pub mesh: Mesh,
    /// The axes along which devices are grouped.
    pub axes: Vec<AxisRef>,
}

impl ReplicaGroups {
    /// The groups as lists of ids; `None` if the numbers do not fit together or there are more than 2^24 ids.
    pub fn expand(&self) -> Option<Vec<Vec<i64>>> {
        match self {
            ReplicaGroups::Lists(groups) => Some(groups.iter().map(|g| g.to_vec()).collect()),
            ReplicaGroups::Iota { dims, reshape_dims, transpose } => {
                let ids = super::sharding::expand_iota(reshape_dims, transpose)?;
                let [groups, size] = <[i64; 2]>::try_from(dims.as_slice()).ok()?;
                if groups < 0 || size < 1 || groups.checked_mul(size)? != ids.len() as i64 {
                    return None;
                }
                Some(ids.chunks(usize::try_from(size).ok()?).map(<[i64]>::to_vec).collect())
            }
            ReplicaGroups::Mesh(axes) => axes.mesh.groups_along(&axes.axes),
        }
    }
}

/// How the participants of a collective are numbered (`xla/service/collective_ops_utils.h`).
///
/// A module whose text does not say how many replicas or partitions there are says 1; then numbers are not
/// checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupMode {
    /// Replica ids: no channel id.
    CrossReplica,
    /// Partition ids: a channel id, on an opcode without `use_global_device_ids`.
    CrossPartition,
    /// Replica ids, all partitions of those replicas together: a channel id.
    CrossReplicaAndPartition,
    /// `replica * partitions + partition`: a channel id and `use_global_device_ids=true`.
    FlattenedId,
}

impl GroupMode {
    /// The name in XLA's texts.
    pub fn name(self) -> &'static str {
        match self {
            GroupMode::CrossReplica => "cross-replica",
            GroupMode::CrossPartition => "cross-partition",
            GroupMode::CrossReplicaAndPartition => "cross-replica-and-partition",
            GroupMode::FlattenedId => "flattened-id",
        }
    }
}

/// The group mode of a collective; `None` for the combination that has none (global ids without a channel).
pub fn group_mode(opcode: Opcode, attrs: &Attrs) -> Option<GroupMode> {
    let channel = attrs.int(AttrKey::ChannelId).is_some_and(|c| c != 0);
    let global = attrs.bool(AttrKey::UseGlobalDeviceIds);
    let takes_global = opcode.attrs().iter().any(|s| s.key == AttrKey::UseGlobalDeviceIds);
    match (channel, global) {
        (false, false) => Some(GroupMode::CrossReplica),
        (false, true) => None,
        (true, true) => Some(GroupMode::FlattenedId),
        (true, false) if takes_global => Some(GroupMode::CrossReplicaAndPartition),
        (true, false) => Some(GroupMode::CrossPartition),
    }
}

/// Frontend attribute of a send or recv between devices: its source-target pairs, as XLA writes them.
pub const SEND_RECV_PAIRS: &str = "_xla_send_recv_source_target_pairs";

/// The source-target pairs of a send or recv between devices; `None` if it has none, or they are no pairs of
/// numbers.
pub fn send_recv_pairs(attrs: &Attrs) -> Option<Vec<[i64; 2]>> {
    let text = attrs.frontend_attributes()?.get(SEND_RECV_PAIRS)?;
    let numbers: Vec<i64> = text
        .split(|c: char| !(c.is_ascii_digit() || c == '-'))
        .filter(|s| !s.is_empty())
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    let (pairs, rest) = numbers.as_chunks::<2>();
    rest.is_empty().then(|| pairs.to_vec())
}
