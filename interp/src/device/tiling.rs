//! Which device has which shard of an array, by a sharding.
//!
//! A sharding of either form ([`TileSharding`], [`NamedSharding`]) cuts an array into a grid of tiles, and
//! names for each group of devices that together have all of it the device of each tile. Devices that differ
//! in a trailing tile dimension (replicated or manual subgroups), or in mesh axes that no dimension has, are
//! in different groups: what they do not share, they do not exchange. **Invariant:** every group has as many
//! devices as there are tiles, in row-major order of these.

use hlo::attrs::{
    AxisRef, DeviceAssignment, NamedSharding, Sharding, ShardingKind, SubgroupType, TileSharding,
};

/// A grid of tiles and the devices that have them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tiling {
    /// Tiles a dimension.
    pub tiles: Vec<usize>,
    /// The groups of devices, numbered as the sharding has them: partitions.
    pub groups: Vec<Vec<i64>>,
}

impl Tiling {
    /// Of an array of a rank; `None` if every device has all of it. Errors: what no grid of tiles says.
    pub fn of(sharding: &Sharding, rank: usize) -> Result<Option<Tiling>, String> {
        match sharding {
            Sharding::Single(kind) => match &**kind {
                ShardingKind::Tile(tile) => Tiling::of_tiles(tile, rank),
                ShardingKind::Named(named) => Tiling::of_axes(named, None, rank),
            },
            Sharding::Tuple(elements) => match elements.as_slice() {
                [only @ Sharding::Single(_)] => Tiling::of(only, rank),
                _ => Err("is of a tuple".to_owned()),
            },
        }
    }

    fn of_tiles(sharding: &TileSharding, rank: usize) -> Result<Option<Tiling>, String> {
        let dims = match &sharding.devices {
            DeviceAssignment::Replicated | DeviceAssignment::Manual | DeviceAssignment::Unknown => {
                return Ok(None);
            }
            DeviceAssignment::Unreduced => return Err("is unreduced".to_owned()),
            DeviceAssignment::Maximal(device) => return Err(format!("is of device {device} alone")),
            DeviceAssignment::List { dims, .. } | DeviceAssignment::Iota { dims, .. } => dims,
        };
        if sharding.last_tile_dims.contains(&SubgroupType::Unreduced) {
            return Err("is unreduced".to_owned());
        }
        let malformed = || "has tiles that are not those of the array".to_owned();
        let trailing = sharding.last_tile_dims.len() + usize::from(sharding.last_tile_dim_replicate);
        if dims.len() != rank + trailing {
            return Err(malformed());
        }
        let sizes: Option<Vec<usize>> =
            dims.iter().map(|&n| usize::try_from(n).ok().filter(|&n| n > 0)).collect();
        let sizes = sizes.ok_or_else(malformed)?;
        let ids = sharding.devices.device_ids().ok_or_else(malformed)?;
        let (tiles, subgroups) = sizes.split_at(rank);
        let product = |sizes: &[usize]| sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(size));
        let (count, copies) = (product(tiles), product(subgroups));
        let (Some(count), Some(copies)) = (count, copies) else { return Err(malformed()) };
        if count.checked_mul(copies) != Some(ids.len()) {
            return Err(malformed());
        }
        let groups = (0..copies).map(|copy| ids.iter().skip(copy).step_by(copies).copied().collect());
        Ok(Tiling { tiles: tiles.to_vec(), groups: groups.collect() }.unless_whole())
    }

    /// By mesh axes, of these only those that are in `manual`, if that is given.
    pub fn of_axes(
        sharding: &NamedSharding,
        manual: Option<&[Box<str>]>,
        rank: usize,
    ) -> Result<Option<Tiling>, String> {
        if !sharding.unreduced.is_empty() {
            return Err("is unreduced".to_owned());
        }
        let Some(dims) = &sharding.dims else { return Ok(None) };
        if dims.len() != rank {
            return Err(format!("has {} dimensions for an array of rank {rank}", dims.len()));
        }
        let size = |axis: &AxisRef| match axis.sub_axis {
            Some((_, size)) => usize::try_from(size).ok(),
            None => {
                let (_, size) = sharding.mesh.axes.iter().find(|(name, _)| *name == axis.name)?;
                usize::try_from(*size).ok()
            }
        };
        let malformed = || "has axes that are not those of its mesh".to_owned();
        let (mut tiles, mut axes) = (Vec::with_capacity(rank), Vec::new());
        for dim in dims {
            let mut count = 1usize;
            for axis in &dim.axes {
                if manual.is_some_and(|manual| !manual.contains(&axis.name)) {
                    continue;
                }
                count = size(axis).and_then(|n| count.checked_mul(n)).ok_or_else(malformed)?;
                axes.push(axis.clone());
            }
            tiles.push(count);
        }
        if axes.is_empty() {
            return Ok(None);
        }
        let groups = sharding.mesh.groups_along(&axes).ok_or_else(malformed)?;
        let count: usize = tiles.iter().product();
        if count == 0 || groups.iter().any(|group| group.len() != count) {
            return Err(malformed());
        }
        Ok(Tiling { tiles, groups }.unless_whole())
    }

    fn unless_whole(self) -> Option<Tiling> {
        self.tiles.iter().any(|&n| n > 1).then_some(self)
    }

    /// The size of a shard: XLA pads the last one of a dimension that cannot be divided.
    pub fn shard(&self, full: &[i64]) -> Vec<i64> {
        full.iter().zip(&self.tiles).map(|(&size, &tiles)| div_ceil(size, tiles)).collect()
    }

    /// The group of a partition, and the tile of that group that the partition has.
    pub fn group_and_tile(&self, partition: u32) -> Option<(usize, usize)> {
        self.groups.iter().enumerate().find_map(|(g, group)| {
            group.iter().position(|&id| id == i64::from(partition)).map(|tile| (g, tile))
        })
    }

    /// The start indices of a tile, for shards of a size.
    pub fn start(&self, mut tile: usize, shard: &[usize]) -> Vec<usize> {
        let mut start = vec![0; self.tiles.len()];
        for d in (0..self.tiles.len()).rev() {
            start[d] = tile % self.tiles[d] * shard[d];
            tile /= self.tiles[d];
        }
        start
    }
}

/// The size of the largest of that many parts.
fn div_ceil(size: i64, parts: usize) -> i64 {
    let parts = i64::try_from(parts).unwrap_or(i64::MAX).max(1);
    size / parts + i64::from(size % parts != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiling(text: &str, rank: usize) -> Result<Option<Tiling>, String> {
        let dims = vec!["12"; rank].join(",");
        let text = format!(
            "HloModule m, num_partitions=8\nENTRY e {{ ROOT p = f32[{dims}] parameter(0), sharding={text} }}"
        );
        let module = hlo_parser::parse_module(&text, &hlo_parser::ParseOptions::default()).module;
        let module = module.expect("it parses");
        let sharding = module.instr(module.root(module.entry())).attrs.sharding();
        Tiling::of(sharding.expect("it has a sharding"), rank)
    }

    #[test]
    fn tiles_in_row_major_order() {
        let t = tiling("{devices=[2,2]<=[2,2]T(1,0)}", 2).unwrap().unwrap();
        assert_eq!((t.tiles.as_slice(), t.groups.as_slice()), (&[2, 2][..], &[vec![0, 2, 1, 3]][..]));
        assert_eq!(t.group_and_tile(2), Some((0, 1)));
        assert_eq!(t.start(1, &[3, 4]), [0, 4]);
        assert_eq!(t.shard(&[5, 8]), [3, 4]);
    }

    #[test]
    fn subgroups_are_groups_of_their_own() {
        let t = tiling("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", 2).unwrap().unwrap();
        assert_eq!(t.groups, [vec![0, 2], vec![1, 3]]);
        let t = tiling("{devices=[2,2,2]<=[8] last_tile_dims={manual,replicated}}", 1).unwrap().unwrap();
        assert_eq!(t.groups, [vec![0, 4], vec![1, 5], vec![2, 6], vec![3, 7]]);
    }

    #[test]
    fn whole_arrays_and_what_is_no_grid() {
        assert_eq!(tiling("{replicated}", 1), Ok(None));
        assert_eq!(tiling("{manual}", 1), Ok(None));
        assert_eq!(tiling("{devices=[1,2]<=[2] last_tile_dim_replicate}", 1), Ok(None));
        assert!(tiling("{maximal device=1}", 1).is_err());
    }

    #[test]
    fn mesh_axes() {
        let t = tiling("{mesh['x'=2,'y'=4], [{'y'}]}", 1).unwrap().unwrap();
        assert_eq!((t.tiles.as_slice(), t.groups.len()), (&[4][..], 2));
        assert_eq!(t.groups[1], [4, 5, 6, 7]);
        let t = tiling("{mesh['x'=2,'y'=4], [{'y'},{'x'}]}", 2).unwrap().unwrap();
        assert_eq!(t.groups, [vec![0, 4, 1, 5, 2, 6, 3, 7]]);
    }
}
