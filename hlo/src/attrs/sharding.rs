//! Shardings (`xla/hlo/ir/hlo_sharding.h`, `named_sharding.h`). They change no value; they are kept whole and
//! checked.

use super::Ints;
use super::metadata::Metadata;

/// A sharding.
#[derive(Clone, PartialEq, Debug)]
pub enum Sharding {
    /// `{{...}, {...}}`: one for each leaf of a tuple.
    Tuple(Vec<Sharding>),
    /// A single one.
    Single(Box<ShardingKind>),
}

/// A sharding of one array.
#[derive(Clone, PartialEq, Debug)]
pub enum ShardingKind {
    /// Everything but [`ShardingKind::Named`].
    Tile(TileSharding),
    /// `{mesh['x'=2], [{'x'}, {}]}`.
    Named(NamedSharding),
}

/// The words and device lists of the older form.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TileSharding {
    /// How devices are given.
    pub devices: DeviceAssignment,
    /// `last_tile_dim_replicate`.
    pub last_tile_dim_replicate: bool,
    /// `last_tile_dims={manual,replicated}`.
    pub last_tile_dims: Vec<SubgroupType>,
    /// `shard_as n`.
    pub shard_as: Option<i64>,
    /// `shard_like n`.
    pub shard_like: Option<i64>,
    /// `metadata={...}`.
    pub metadata: Vec<Metadata>,
}

/// Which devices hold what.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum DeviceAssignment {
    /// `replicated`
    #[default]
    Replicated,
    /// `manual`
    Manual,
    /// `unknown`
    Unknown,
    /// `unreduced`
    Unreduced,
    /// `maximal device=n`
    Maximal(i64),
    /// `devices=[2,1]0,1`
    List {
        /// Tiles a dimension.
        dims: Ints,
        /// Device ids in tile order.
        ids: Vec<i64>,
    },
    /// `devices=[2,2]<=[2,2]T(1,0)`
    Iota {
        /// Tiles a dimension.
        dims: Ints,
        /// The shape that ids are counted in.
        reshape_dims: Ints,
        /// Its permutation; empty if not written.
        transpose: Ints,
    },
}

/// The role of a trailing tile dimension.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SubgroupType {
    /// `replicated`
    Replicated,
    /// `manual`
    Manual,
    /// `unreduced`
    Unreduced,
    /// `maximal`
    Maximal,
}

/// `mesh['x'=2,'y'=4, device_ids=...]`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Mesh {
    /// Axis names and sizes.
    pub axes: Vec<(Box<str>, i64)>,
    /// Device ids in row-major order of the axes: explicit, or an iota.
    pub device_ids: Option<MeshDevices>,
    /// `maximal_mesh[device_id=n]`: a mesh of no axes and one device.
    pub maximal: bool,
}

/// The `device_ids` of a mesh.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum MeshDevices {
    /// Listed.
    List(Vec<i64>),
    /// `([4,2]T(1,0))`.
    Iota {
        /// The shape that ids are counted in.
        reshape_dims: Ints,
        /// Its permutation; empty if not written.
        transpose: Ints,
    },
}

/// An axis, or a part of one: `'a'`, `'a':(2)4`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AxisRef {
    /// Its name.
    pub name: Box<str>,
    /// `(pre_size, size)` of a sub-axis.
    pub sub_axis: Option<(i64, i64)>,
}

/// A dimension of a named sharding: axes, `?` if open, `p1` priority.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct NamedDim {
    /// Axes that divide this dimension, major first.
    pub axes: Vec<AxisRef>,
    /// `?`: may be divided further.
    pub open: bool,
    /// `pN`.
    pub priority: Option<i64>,
}

/// The newer form, by names of mesh axes.
#[derive(Clone, PartialEq, Debug)]
pub struct NamedSharding {
    /// The mesh.
    pub mesh: Mesh,
    /// One entry a dimension; `None` where the text gives no dimension list.
    pub dims: Option<Vec<NamedDim>>,
    /// `replicated={...}`.
    pub replicated: Vec<AxisRef>,
    /// `unreduced={...}`, with the word before the brace (`sum`, `max`, `min`) if there is one.
    pub unreduced: Vec<AxisRef>,
    /// `sum`, `max`, `min`.
    pub unreduced_kind: Option<Box<str>>,
    /// `manual={...}`.
    pub manual: Vec<AxisRef>,
    /// `metadata={...}`.
    pub metadata: Vec<Metadata>,
}

/// Limit on how many device ids a compact form may expand to.
const MAX_DEVICES: i64 = 1 << 24;

/// The ids `0..product(reshape_dims)` as an array of shape `reshape_dims`, transposed, flattened.
pub(crate) fn expand_iota(reshape_dims: &[i64], transpose: &[i64]) -> Option<Vec<i64>> {
    let n = reshape_dims.iter().try_fold(1i64, |n, &d| if d < 1 { None } else { n.checked_mul(d) })?;
    if n > MAX_DEVICES {
        return None;
    }
    if transpose.is_empty() {
        return Some((0..n).collect());
    }
    let rank = reshape_dims.len();
    let mut seen = vec![false; rank];
    for &t in transpose {
        let t = usize::try_from(t).ok()?;
        if t >= rank || std::mem::replace(&mut seen[t], true) {
            return None;
        }
    }
    if transpose.len() != rank {
        return None;
    }
    let mut strides = vec![1i64; rank];
    for i in (0..rank.saturating_sub(1)).rev() {
        strides[i] = strides[i + 1] * reshape_dims[i + 1];
    }
    let mut ids = Vec::with_capacity(n as usize);
    let mut index = vec![0i64; rank];
    for _ in 0..n {
        ids.push(index.iter().zip(transpose).map(|(&i, &t)| i * strides[t as usize]).sum());
        for i in (0..rank).rev() {
            index[i] += 1;
            if index[i] < reshape_dims[transpose[i] as usize] {
                break;
            }
            index[i] = 0;
        }
    }
    Some(ids)
}

impl DeviceAssignment {
    /// The device ids in tile order, if this names a tiling.
    pub fn device_ids(&self) -> Option<Vec<i64>> {
        match self {
            DeviceAssignment::List { ids, .. } => Some(ids.clone()),
            DeviceAssignment::Iota { reshape_dims, transpose, .. } => expand_iota(reshape_dims, transpose),
            DeviceAssignment::Replicated
            | DeviceAssignment::Manual
            | DeviceAssignment::Unknown
            | DeviceAssignment::Unreduced
            | DeviceAssignment::Maximal(_) => None,
        }
    }
}

impl Sharding {
    /// The least number of devices that has every device id named here; `None` if no device is named.
    pub fn device_count(&self) -> Option<i64> {
        // Tuples of shardings may be nested.
        let mut pending = vec![self];
        let mut count: Option<i64> = None;
        while let Some(sharding) = pending.pop() {
            match sharding {
                Sharding::Tuple(parts) => pending.extend(parts),
                Sharding::Single(kind) => count = count.max(kind.device_count()),
            }
        }
        count
    }
}

impl ShardingKind {
    fn device_count(&self) -> Option<i64> {
        match self {
            ShardingKind::Tile(tile) => tile.devices.device_count(),
            ShardingKind::Named(named) => named.mesh.device_count(),
        }
    }
}

/// The least number of devices that has all of these ids; `None` if there are none.
pub fn devices_with(ids: impl Iterator<Item = i64>) -> Option<i64> {
    ids.max().filter(|&id| id >= 0).map(|id| id.saturating_add(1))
}

/// The number of ids that an iota over these dimensions has.
fn iota_count(reshape_dims: &[i64]) -> Option<i64> {
    reshape_dims.iter().try_fold(1i64, |n, &d| if d < 1 { None } else { n.checked_mul(d) })
}

impl DeviceAssignment {
    fn device_count(&self) -> Option<i64> {
        match self {
            DeviceAssignment::Maximal(id) => devices_with(std::iter::once(*id)),
            DeviceAssignment::List { ids, .. } => devices_with(ids.iter().copied()),
            DeviceAssignment::Iota { reshape_dims, .. } => iota_count(reshape_dims),
            DeviceAssignment::Replicated
            | DeviceAssignment::Manual
            | DeviceAssignment::Unknown
            | DeviceAssignment::Unreduced => None,
        }
    }
}

impl Mesh {
    /// The least number of devices that has every device of the mesh.
    fn device_count(&self) -> Option<i64> {
        match &self.device_ids {
            Some(MeshDevices::List(ids)) => devices_with(ids.iter().copied()),
            Some(MeshDevices::Iota { reshape_dims, .. }) => iota_count(reshape_dims),
            None => self.devices().filter(|_| !self.axes.is_empty()),
        }
    }

    /// Number of devices.
    pub fn devices(&self) -> Option<i64> {
        let n = self.axes.iter().try_fold(1i64, |n, &(_, d)| if d < 1 { None } else { n.checked_mul(d) })?;
        (n <= MAX_DEVICES).then_some(n)
    }

    /// The groups of devices that differ only in their coordinates along `axes`, as lists of ids.
    pub fn groups_along(&self, axes: &[AxisRef]) -> Option<Vec<Vec<i64>>> {
        let n = self.devices()?;
        let ids = match &self.device_ids {
            None => (0..n).collect(),
            Some(MeshDevices::List(ids)) => ids.clone(),
            Some(MeshDevices::Iota { reshape_dims, transpose }) => expand_iota(reshape_dims, transpose)?,
        };
        if ids.len() as i64 != n {
            return None;
        }
        // Split axes at sub-axis borders, so that each piece is either grouped along or not.
        let mut pieces: Vec<(i64, Option<usize>)> = Vec::new();
        for (name, size) in &self.axes {
            let mut parts: Vec<(i64, i64, usize)> = Vec::new();
            for (position, axis) in axes.iter().enumerate().filter(|(_, a)| a.name == *name) {
                let (pre, len) = axis.sub_axis.unwrap_or((1, *size));
                if pre < 1 || len < 1 || size % pre.checked_mul(len)? != 0 {
                    return None;
                }
                parts.push((pre, len, position));
            }
            parts.sort_unstable();
            let mut done = 1;
            for (pre, len, position) in parts {
                if pre < done || pre % done != 0 {
                    return None;
                }
                if pre > done {
                    pieces.push((pre / done, None));
                }
                pieces.push((len, Some(position)));
                done = pre * len;
            }
            if done < *size {
                pieces.push((size / done, None));
            }
        }
        if axes.iter().any(|a| !self.axes.iter().any(|(n, _)| *n == a.name)) {
            return None;
        }
        let mut order: Vec<usize> = (0..pieces.len()).filter(|&i| pieces[i].1.is_none()).collect();
        let mut grouped: Vec<usize> = (0..pieces.len()).filter(|&i| pieces[i].1.is_some()).collect();
        grouped.sort_by_key(|&i| pieces[i].1);
        let group_size: i64 = grouped.iter().map(|&i| pieces[i].0).product();
        order.extend(grouped);
        let dims: Vec<i64> = pieces.iter().map(|p| p.0).collect();
        let transpose: Vec<i64> = order.iter().map(|&i| i as i64).collect();
        let positions = expand_iota(&dims, &transpose)?;
        let flat: Option<Vec<i64>> =
            positions.iter().map(|&p| ids.get(usize::try_from(p).ok()?).copied()).collect();
        Some(flat?.chunks(usize::try_from(group_size).ok()?.max(1)).map(<[i64]>::to_vec).collect())
    }
}
