//! Replica groups: which devices take part in a collective together.

use super::Ints;
use super::sharding::{AxisRef, Mesh};

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
