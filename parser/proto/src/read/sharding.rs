//! Shardings, meshes and replica groups.

use hlo::attrs::sharding::{MeshDevices, NamedDim};
use hlo::attrs::{
    AxisRef, DeviceAssignment, Ints, Mesh, MeshAxes, NamedSharding, ReplicaGroups, Sharding, ShardingKind,
    TileSharding,
};
use hlo::diag::codes::proto::*;

use super::origin::metadata;
use crate::node::Node;
use crate::schema::devices::{
    axis_ref, axis_ref_sub_axis, collective_device_list, iota_replica_group_list, mesh,
    mesh_axes_replica_group_list, mesh_iota_transform, mesh_mesh_axis, named_sharding,
    named_sharding_dimension_sharding as dimension, op_sharding as s, replica_group,
};
use crate::schema::modules::hlo_instruction as i;
use crate::tables::{SUBGROUPS, sharding_type};
use crate::wire::Res;

/// A sharding. `payloads` are those of the module.
pub(crate) fn sharding(n: Node<'_>, payloads: &[Box<str>]) -> Res<Sharding> {
    if let Some(named) = n.child(s::NAMED_SHARDING, |n| named(n, payloads)) {
        return Ok(Sharding::Single(Box::new(ShardingKind::Named(named?))));
    }
    if n.int(s::TYPE) == sharding_type::TUPLE {
        return Ok(Sharding::Tuple(n.children(s::TUPLE_SHARDINGS, |n| sharding(n, payloads))?));
    }
    let group = n.bool(s::IS_SHARD_GROUP).then(|| n.int(s::SHARD_GROUP_ID));
    let like = n.int(s::SHARD_GROUP_TYPE) != 0;
    let last_tile_dims = n.int_list(s::LAST_TILE_DIMS)?.into_iter().map(|kind| {
        let found = SUBGROUPS.iter().find(|c| i64::from(c.0) == kind).map(|c| c.1);
        found.ok_or_else(|| n.bad_enumerator(s::LAST_TILE_DIMS, kind))
    });
    Ok(Sharding::Single(Box::new(ShardingKind::Tile(TileSharding {
        devices: devices(n)?,
        last_tile_dim_replicate: n.bool(s::REPLICATE_ON_LAST_TILE_DIM),
        last_tile_dims: last_tile_dims.collect::<Res<_>>()?,
        shard_as: group.filter(|_| !like),
        shard_like: group.filter(|_| like),
        metadata: n.children(s::METADATA, |n| metadata(n, payloads))?,
    }))))
}

fn devices(n: Node<'_>) -> Res<DeviceAssignment> {
    let dims = n.ints(s::TILE_ASSIGNMENT_DIMENSIONS)?;
    let ids = n.int_list(s::TILE_ASSIGNMENT_DEVICES)?;
    Ok(match n.int(s::TYPE) {
        sharding_type::REPLICATED => DeviceAssignment::Replicated,
        sharding_type::MANUAL => DeviceAssignment::Manual,
        sharding_type::UNKNOWN => DeviceAssignment::Unknown,
        sharding_type::UNREDUCED => DeviceAssignment::Unreduced,
        sharding_type::MAXIMAL => match *ids {
            [id] => DeviceAssignment::Maximal(id),
            _ => {
                return Err(n.error(
                    PROTO_BAD_VALUE,
                    s::TILE_ASSIGNMENT_DEVICES,
                    "a maximal sharding has one device",
                ));
            }
        },
        sharding_type::OTHER => {
            let reshape_dims = n.ints(s::IOTA_RESHAPE_DIMS)?;
            if reshape_dims.is_empty() {
                DeviceAssignment::List { dims, ids }
            } else {
                let transpose = permutation(n, s::IOTA_TRANSPOSE_PERM, &reshape_dims)?;
                DeviceAssignment::Iota { dims, reshape_dims, transpose }
            }
        }
        kind => return Err(n.bad_enumerator(s::TYPE, kind)),
    })
}

/// A permutation of dimensions; empty if it is the identity, which text does not write.
fn permutation(n: Node<'_>, number: u32, dims: &[i64]) -> Res<Ints> {
    let permutation = n.ints(number)?;
    if permutation.len() != dims.len() && !permutation.is_empty() {
        let message = format!("a permutation of {} dimensions for {}", permutation.len(), dims.len());
        return Err(n.error(PROTO_BAD_VALUE, number, message));
    }
    let identity = permutation.iter().enumerate().all(|(i, &d)| d == i as i64);
    Ok(if identity { Ints::new() } else { permutation })
}

/// The longest name of an axis that is read: references hold copies of it, which a message names by a few
/// bytes each.
const MAX_AXIS_NAME_BYTES: usize = 256;

fn mesh(n: Node<'_>) -> Res<Mesh> {
    let axes = n.children(mesh::AXES, |n| {
        let name = n.text(mesh_mesh_axis::NAME);
        if name.len() > MAX_AXIS_NAME_BYTES {
            let message =
                format!("a name of {} bytes; at most {MAX_AXIS_NAME_BYTES} are supported", name.len());
            return Err(n.error(PROTO_BAD_VALUE, mesh_mesh_axis::NAME, message));
        }
        Ok((name.into(), n.int(mesh_mesh_axis::SIZE)))
    })?;
    let iota = n.child(mesh::IOTA_TRANSFORM, |n| -> Res<_> {
        let reshape_dims = n.ints(mesh_iota_transform::RESHAPE_DIMS)?;
        let transpose = permutation(n, mesh_iota_transform::TRANSPOSE_PERM, &reshape_dims)?;
        Ok(MeshDevices::Iota { reshape_dims, transpose })
    });
    let ids = n.int_list(mesh::DEVICE_IDS)?;
    let device_ids = match iota.transpose()? {
        Some(iota) => Some(iota),
        None => Some(ids).filter(|ids| !ids.is_empty()).map(MeshDevices::List),
    };
    let maximal = axes.is_empty() && matches!(&device_ids, Some(MeshDevices::List(ids)) if ids.len() == 1);
    Ok(Mesh { axes, device_ids, maximal })
}

fn axis(n: Node<'_>, mesh: &Mesh) -> Res<AxisRef> {
    let index = n.int(axis_ref::MESH_AXIS_INDEX);
    let Some((name, _)) = usize::try_from(index).ok().and_then(|i| mesh.axes.get(i)) else {
        let message = format!("the mesh has {} axes, and none of number {index}", mesh.axes.len());
        return Err(n.error(PROTO_BAD_ID, axis_ref::MESH_AXIS_INDEX, message));
    };
    let part = |n: Node<'_>| (n.int(axis_ref_sub_axis::PRE_SIZE), n.int(axis_ref_sub_axis::SIZE));
    Ok(AxisRef { name: name.clone(), sub_axis: n.child(axis_ref::SUB_AXIS_INFO, part) })
}

fn named(n: Node<'_>, payloads: &[Box<str>]) -> Res<NamedSharding> {
    let mesh = n.child(named_sharding::MESH, mesh).transpose()?;
    let mesh = mesh.unwrap_or(Mesh { axes: Vec::new(), device_ids: None, maximal: false });
    let axes = |number| n.children(number, |n| axis(n, &mesh));
    let dims = n.children(named_sharding::DIM_SHARDINGS, |n| {
        Ok(NamedDim {
            axes: n.children(dimension::AXES, |n| axis(n, &mesh))?,
            open: !n.bool(dimension::IS_CLOSED),
            priority: None,
        })
    })?;
    Ok(NamedSharding {
        dims: Some(dims).filter(|d| !d.is_empty()),
        replicated: axes(named_sharding::REPLICATED_AXES)?,
        unreduced: axes(named_sharding::UNREDUCED_AXES)?,
        unreduced_kind: None,
        manual: axes(named_sharding::MANUAL_AXES)?,
        metadata: n.children(named_sharding::METADATA, |n| metadata(n, payloads))?,
        mesh,
    })
}

fn iota_groups(n: Node<'_>) -> Res<ReplicaGroups> {
    use iota_replica_group_list as g;
    let reshape_dims = n.ints(g::IOTA_RESHAPE_DIMS)?;
    let transpose = permutation(n, g::IOTA_TRANSPOSE_PERM, &reshape_dims)?;
    let dims = [n.int(g::NUM_REPLICA_GROUPS), n.int(g::NUM_DEVICES_PER_GROUP)];
    Ok(ReplicaGroups::Iota { dims: dims.as_slice().into(), reshape_dims, transpose })
}

fn group(n: Node<'_>) -> Res<Ints> {
    n.ints(replica_group::REPLICA_IDS)
}

/// The replica groups of a collective, in whichever of the forms of several versions they are.
pub(crate) fn replica_groups(n: Node<'_>) -> Res<ReplicaGroups> {
    if let Some(groups) = n.child(i::IOTA_COLLECTIVE_DEVICE_LIST, iota_groups) {
        return groups;
    }
    let along_axes = |n: Node<'_>| {
        use mesh_axes_replica_group_list as g;
        let mesh = n.required(g::MESH, mesh)?;
        let axes = n.children(g::AXES, |n| axis(n, &mesh))?;
        Ok(ReplicaGroups::Mesh(Box::new(MeshAxes { mesh, axes })))
    };
    if let Some(groups) = n.child(i::MESH_AXES_REPLICA_GROUP_LIST, along_axes) {
        return groups;
    }
    let listed = |n: Node<'_>| {
        use collective_device_list as g;
        match n.child(g::IOTA_REPLICA_GROUP_LIST, iota_groups) {
            Some(groups) => groups,
            None => Ok(ReplicaGroups::Lists(n.children(g::REPLICA_GROUPS, group)?)),
        }
    };
    if let Some(groups) = n.child(i::COLLECTIVE_DEVICE_LIST, listed) {
        return groups;
    }
    Ok(ReplicaGroups::Lists(n.children(i::REPLICA_GROUPS, group)?))
}
