//! Shardings, meshes and replica groups.

use hlo::attrs::sharding::{MeshDevices, NamedDim};
use hlo::attrs::{
    AxisRef, DeviceAssignment, Mesh, NamedSharding, ReplicaGroups, Sharding, ShardingKind, TileSharding,
};

use super::origin::{Payloads, metadata};
use super::{Missing, Written};
use crate::message::Message;
use crate::schema::devices::{
    AXIS_REF, AXIS_REF_SUB_AXIS, COLLECTIVE_DEVICE_LIST, IOTA_REPLICA_GROUP_LIST, MESH,
    MESH_AXES_REPLICA_GROUP_LIST, MESH_IOTA_TRANSFORM, MESH_MESH_AXIS, NAMED_SHARDING,
    NAMED_SHARDING_DIMENSION_SHARDING, OP_SHARDING, REPLICA_GROUP, axis_ref, axis_ref_sub_axis,
    collective_device_list, iota_replica_group_list, mesh as mesh_fields, mesh_axes_replica_group_list,
    mesh_iota_transform, mesh_mesh_axis, named_sharding, named_sharding_dimension_sharding as dimension,
    op_sharding as s, replica_group,
};
use crate::schema::modules::hlo_instruction as i;
use crate::tables::{SUBGROUPS, enumerator, sharding_type};

/// A sharding.
pub(crate) fn sharding<'m>(of: &'m Sharding, payloads: &mut Payloads<'m>) -> Written<Message<'m>> {
    let mut m = Message::new(&OP_SHARDING);
    match of {
        Sharding::Tuple(parts) => {
            m.int(s::TYPE, sharding_type::TUPLE);
            let parts = parts.iter().map(|part| sharding(part, payloads)).collect::<Written<Vec<_>>>()?;
            m.messages(s::TUPLE_SHARDINGS, parts);
        }
        Sharding::Single(kind) => match &**kind {
            ShardingKind::Tile(tile) => tiles(tile, payloads, &mut m),
            ShardingKind::Named(named) => m.message(s::NAMED_SHARDING, named_sharding(named, payloads)?),
        },
    }
    Ok(m)
}

fn tiles<'m>(of: &'m TileSharding, payloads: &mut Payloads<'m>, m: &mut Message<'m>) {
    // Exhaustive, so that a new field is not forgotten here.
    let TileSharding {
        devices,
        last_tile_dim_replicate,
        last_tile_dims,
        shard_as,
        shard_like,
        metadata: origins,
    } = of;
    match devices {
        DeviceAssignment::Replicated => m.int(s::TYPE, sharding_type::REPLICATED),
        DeviceAssignment::Manual => m.int(s::TYPE, sharding_type::MANUAL),
        DeviceAssignment::Unknown => m.int(s::TYPE, sharding_type::UNKNOWN),
        DeviceAssignment::Unreduced => m.int(s::TYPE, sharding_type::UNREDUCED),
        DeviceAssignment::Maximal(id) => {
            m.int(s::TYPE, sharding_type::MAXIMAL);
            m.ints(s::TILE_ASSIGNMENT_DEVICES, [*id]);
        }
        DeviceAssignment::List { dims, ids } => {
            m.int(s::TYPE, sharding_type::OTHER);
            m.ints(s::TILE_ASSIGNMENT_DIMENSIONS, dims.iter().copied());
            m.ints(s::TILE_ASSIGNMENT_DEVICES, ids.iter().copied());
        }
        DeviceAssignment::Iota { dims, reshape_dims, transpose } => {
            m.int(s::TYPE, sharding_type::OTHER);
            m.ints(s::TILE_ASSIGNMENT_DIMENSIONS, dims.iter().copied());
            m.ints(s::IOTA_RESHAPE_DIMS, reshape_dims.iter().copied());
            m.ints(s::IOTA_TRANSPOSE_PERM, permutation(transpose, reshape_dims.len()));
        }
    }
    m.bool(s::REPLICATE_ON_LAST_TILE_DIM, *last_tile_dim_replicate);
    m.messages(s::METADATA, origins.iter().map(|o| metadata(o, payloads)).collect());
    m.ints(s::LAST_TILE_DIMS, last_tile_dims.iter().map(|&kind| enumerator(SUBGROUPS, kind).unwrap_or(0)));
    if let Some(group) = shard_as.or(*shard_like) {
        m.bool(s::IS_SHARD_GROUP, true);
        m.int(s::SHARD_GROUP_ID, group);
        m.int(s::SHARD_GROUP_TYPE, i64::from(shard_as.is_none()));
    }
}

/// A permutation that text leaves out where it is the identity.
fn permutation(transpose: &[i64], rank: usize) -> Vec<i64> {
    if transpose.is_empty() { (0..rank as i64).collect() } else { transpose.to_vec() }
}

fn mesh(of: &Mesh) -> Message<'_> {
    let mut m = Message::new(&MESH);
    let axes = of.axes.iter().map(|(name, size)| {
        let mut m = Message::new(&MESH_MESH_AXIS);
        m.text(mesh_mesh_axis::NAME, &**name);
        m.int(mesh_mesh_axis::SIZE, *size);
        m
    });
    m.messages(mesh_fields::AXES, axes.collect());
    match &of.device_ids {
        None => {}
        Some(MeshDevices::List(ids)) => m.ints(mesh_fields::DEVICE_IDS, ids.iter().copied()),
        Some(MeshDevices::Iota { reshape_dims, transpose }) => {
            let mut iota = Message::new(&MESH_IOTA_TRANSFORM);
            iota.ints(mesh_iota_transform::RESHAPE_DIMS, reshape_dims.iter().copied());
            iota.ints(mesh_iota_transform::TRANSPOSE_PERM, permutation(transpose, reshape_dims.len()));
            m.message(mesh_fields::IOTA_TRANSFORM, iota);
        }
    }
    m
}

fn axis<'m>(of: &AxisRef, mesh: &Mesh) -> Written<Message<'m>> {
    let index = mesh.axes.iter().position(|a| a.0 == of.name);
    let index = index.ok_or(Missing("an axis that the mesh does not have"))?;
    let mut m = Message::new(&AXIS_REF);
    m.int(axis_ref::MESH_AXIS_INDEX, index as i64);
    if let Some((pre_size, size)) = of.sub_axis {
        let mut part = Message::new(&AXIS_REF_SUB_AXIS);
        part.int(axis_ref_sub_axis::PRE_SIZE, pre_size);
        part.int(axis_ref_sub_axis::SIZE, size);
        m.message(axis_ref::SUB_AXIS_INFO, part);
    }
    Ok(m)
}

fn axes<'m>(of: &[AxisRef], mesh: &Mesh) -> Written<Vec<Message<'m>>> {
    of.iter().map(|a| axis(a, mesh)).collect()
}

fn named_sharding<'m>(of: &'m NamedSharding, payloads: &mut Payloads<'m>) -> Written<Message<'m>> {
    // Exhaustive, so that a new field is not forgotten here.
    let NamedSharding { mesh: over, dims, replicated, unreduced, unreduced_kind, manual, metadata: origins } =
        of;
    if unreduced_kind.is_some() {
        return Err(Missing("the operation by which unreduced parts are combined"));
    }
    let dim = |d: &NamedDim| {
        if d.priority.is_some() {
            return Err(Missing("the priority of a dimension's sharding"));
        }
        let mut m = Message::new(&NAMED_SHARDING_DIMENSION_SHARDING);
        m.messages(dimension::AXES, axes(&d.axes, over)?);
        m.bool(dimension::IS_CLOSED, !d.open);
        Ok(m)
    };
    let mut m = Message::new(&NAMED_SHARDING);
    m.message(named_sharding::MESH, mesh(over));
    m.messages(named_sharding::DIM_SHARDINGS, dims.iter().flatten().map(dim).collect::<Written<Vec<_>>>()?);
    m.messages(named_sharding::REPLICATED_AXES, axes(replicated, over)?);
    m.messages(named_sharding::UNREDUCED_AXES, axes(unreduced, over)?);
    m.messages(named_sharding::METADATA, origins.iter().map(|o| metadata(o, payloads)).collect());
    m.messages(named_sharding::MANUAL_AXES, axes(manual, over)?);
    Ok(m)
}

/// The replica groups of a collective, into its message.
pub(crate) fn replica_groups<'m>(of: &'m ReplicaGroups, m: &mut Message<'m>) -> Written<()> {
    match of {
        ReplicaGroups::Lists(groups) => {
            let each = groups.iter().map(|ids| {
                let mut m = Message::new(&REPLICA_GROUP);
                m.ints(replica_group::REPLICA_IDS, ids.iter().copied());
                m
            });
            let mut list = Message::new(&COLLECTIVE_DEVICE_LIST);
            list.messages(collective_device_list::REPLICA_GROUPS, each.collect());
            m.message(i::COLLECTIVE_DEVICE_LIST, list);
        }
        ReplicaGroups::Iota { dims, reshape_dims, transpose } => {
            use iota_replica_group_list as g;
            let [groups, size] = dims[..] else {
                return Err(Missing("replica groups that are not of two dimensions"));
            };
            let mut iota = Message::new(&IOTA_REPLICA_GROUP_LIST);
            iota.int(g::NUM_REPLICA_GROUPS, groups);
            iota.int(g::NUM_DEVICES_PER_GROUP, size);
            iota.ints(g::IOTA_RESHAPE_DIMS, reshape_dims.iter().copied());
            iota.ints(g::IOTA_TRANSPOSE_PERM, permutation(transpose, reshape_dims.len()));
            m.message(i::IOTA_COLLECTIVE_DEVICE_LIST, iota);
        }
        ReplicaGroups::Mesh(along) => {
            use mesh_axes_replica_group_list as g;
            let mut groups = Message::new(&MESH_AXES_REPLICA_GROUP_LIST);
            groups.message(g::MESH, mesh(&along.mesh));
            groups.messages(g::AXES, axes(&along.axes, &along.mesh)?);
            m.message(i::MESH_AXES_REPLICA_GROUP_LIST, groups);
        }
    }
    Ok(())
}
