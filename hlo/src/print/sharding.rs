//! Shardings and replica groups as text (`xla/hlo/ir/hlo_sharding.cc`, `named_sharding.cc`,
//! `mesh_and_axis.cc`, `replica_group.cc`).

use super::metadata::write_metadata_fields;
use super::text::Text;
use crate::attrs::sharding::{MeshDevices, NamedDim};
use crate::attrs::{
    AxisRef, DeviceAssignment, Mesh, Metadata, NamedSharding, ReplicaGroups, Sharding, ShardingKind,
    SubgroupType, TileSharding,
};

/// Appends a sharding with its braces; `metadata` says whether its metadata come along.
pub(crate) fn write_sharding(out: &mut Text<'_>, sharding: &Sharding, metadata: bool) {
    match sharding {
        Sharding::Tuple(elements) => {
            out.byte(b'{');
            out.indexed_list(elements, |out, e| write_sharding(out, e, metadata));
            out.byte(b'}');
        }
        Sharding::Single(kind) => match &**kind {
            ShardingKind::Tile(tile) => write_tile(out, tile, metadata),
            ShardingKind::Named(named) => write_named(out, named, metadata),
        },
    }
}

fn write_tile(out: &mut Text<'_>, tile: &TileSharding, metadata: bool) {
    out.byte(b'{');
    match &tile.devices {
        DeviceAssignment::Replicated => out.str("replicated"),
        DeviceAssignment::Manual => out.str("manual"),
        DeviceAssignment::Unknown => out.str("unknown"),
        DeviceAssignment::Unreduced => out.str("unreduced"),
        DeviceAssignment::Maximal(device) => {
            out.str("maximal device=");
            out.int(*device);
        }
        DeviceAssignment::List { dims, ids } => {
            write_tile_dims(out, dims);
            out.ints(ids);
        }
        DeviceAssignment::Iota { dims, reshape_dims, transpose } => {
            write_tile_dims(out, dims);
            write_iota(out, reshape_dims, transpose);
        }
    }
    if tile.last_tile_dim_replicate {
        out.str(" last_tile_dim_replicate");
    }
    if !tile.last_tile_dims.is_empty() {
        out.str(" last_tile_dims={");
        out.join(&tile.last_tile_dims, ", ", |out, dim| {
            out.str(match dim {
                SubgroupType::Replicated => "replicated",
                SubgroupType::Manual => "manual",
                SubgroupType::Unreduced => "unreduced",
                SubgroupType::Maximal => "maximal",
            });
        });
        out.byte(b'}');
    }
    for (word, group) in [(" shard_as ", tile.shard_as), (" shard_like ", tile.shard_like)] {
        if let Some(group) = group {
            out.str(word);
            out.int(group);
        }
    }
    if metadata && !tile.metadata.is_empty() {
        out.str(" metadata={");
        if let [one] = &*tile.metadata {
            write_metadata_fields(out, one);
        } else {
            write_metadata_list(out, &tile.metadata);
        }
        out.byte(b'}');
    }
    out.byte(b'}');
}

fn write_metadata_list(out: &mut Text<'_>, metadata: &[Metadata]) {
    out.join(metadata, ", ", |out, m| {
        out.byte(b'{');
        write_metadata_fields(out, m);
        out.byte(b'}');
    });
}

fn write_tile_dims(out: &mut Text<'_>, dims: &[i64]) {
    out.str("devices=[");
    out.ints(dims);
    out.byte(b']');
}

/// `<=[2,4]T(1,0)`.
fn write_iota(out: &mut Text<'_>, reshape_dims: &[i64], transpose: &[i64]) {
    out.str("<=");
    write_iota_dims(out, reshape_dims, transpose);
}

/// `[2,4]T(1,0)`.
fn write_iota_dims(out: &mut Text<'_>, reshape_dims: &[i64], transpose: &[i64]) {
    out.byte(b'[');
    out.ints(reshape_dims);
    out.byte(b']');
    if !transpose.is_empty() {
        out.str("T(");
        out.ints(transpose);
        out.byte(b')');
    }
}

fn write_named(out: &mut Text<'_>, named: &NamedSharding, metadata: bool) {
    out.byte(b'{');
    write_mesh(out, &named.mesh);
    if let Some(dims) = &named.dims {
        out.str(", [");
        out.join(dims, ", ", write_named_dim);
        out.byte(b']');
    }
    // Without dimensions a bare word stands for all axes of the mesh.
    let word = |axes: &[AxisRef]| named.dims.is_none() && all_axes(&named.mesh, axes);
    let reduction = named.unreduced_kind.as_deref();
    write_axis_set(out, ", replicated=", "", &named.replicated);
    if word(&named.unreduced) {
        out.str(", unreduced");
        if let Some(reduction) = reduction {
            out.byte(b'=');
            out.str(reduction);
        }
    } else {
        write_axis_set(out, ", unreduced=", reduction.unwrap_or(""), &named.unreduced);
    }
    if word(&named.manual) {
        out.str(", manual");
    } else {
        write_axis_set(out, ", manual=", "", &named.manual);
    }
    let axes = [&named.replicated, &named.unreduced, &named.manual];
    if named.dims.is_none() && !named.mesh.maximal && axes.iter().all(|a| a.is_empty()) {
        out.str(", replicated");
    }
    if metadata && !named.metadata.is_empty() {
        out.str(", metadata={");
        write_metadata_list(out, &named.metadata);
        out.byte(b'}');
    }
    out.byte(b'}');
}

/// Whether `axes` are all the axes of a mesh, whole and in order.
fn all_axes(mesh: &Mesh, axes: &[AxisRef]) -> bool {
    !axes.is_empty()
        && mesh.axes.len() == axes.len()
        && mesh.axes.iter().zip(axes).all(|((name, _), axis)| *name == axis.name && axis.sub_axis.is_none())
}

fn write_axis_set(out: &mut Text<'_>, key: &str, word: &str, axes: &[AxisRef]) {
    if axes.is_empty() {
        return;
    }
    out.str(key);
    out.str(word);
    out.byte(b'{');
    out.join(axes, ", ", write_axis);
    out.byte(b'}');
}

fn write_named_dim(out: &mut Text<'_>, dim: &NamedDim) {
    out.byte(b'{');
    out.join(&dim.axes, ", ", write_axis);
    if dim.open {
        out.str(if dim.axes.is_empty() { "?" } else { ", ?" });
    }
    out.byte(b'}');
    if let Some(priority) = dim.priority {
        out.byte(b'p');
        out.int(priority);
    }
}

fn write_axis(out: &mut Text<'_>, axis: &AxisRef) {
    out.byte(b'\'');
    out.str(&axis.name);
    out.byte(b'\'');
    if let Some((pre, size)) = axis.sub_axis {
        out.str(":(");
        out.int(pre);
        out.byte(b')');
        out.int(size);
    }
}

fn write_mesh(out: &mut Text<'_>, mesh: &Mesh) {
    if mesh.maximal {
        out.str("maximal_mesh[device_id=");
        if let Some(MeshDevices::List(ids)) = &mesh.device_ids {
            out.ints(ids);
        }
        out.byte(b']');
        return;
    }
    out.str("mesh[");
    out.join(&mesh.axes, ",", |out, (name, size)| {
        out.byte(b'\'');
        out.str(name);
        out.str("'=");
        out.int(*size);
    });
    out.byte(b']');
    match &mesh.device_ids {
        None => {}
        Some(devices) => {
            out.str(", device_ids=(");
            match devices {
                MeshDevices::List(ids) => out.ints(ids),
                MeshDevices::Iota { reshape_dims, transpose } => {
                    write_iota_dims(out, reshape_dims, transpose)
                }
            }
            out.byte(b')');
        }
    }
}

/// Appends replica groups in the form that they have.
pub(crate) fn write_replica_groups(out: &mut Text<'_>, groups: &ReplicaGroups) {
    match groups {
        ReplicaGroups::Lists(lists) => super::attrs::write_int_lists(out, lists),
        ReplicaGroups::Iota { dims, reshape_dims, transpose } => {
            out.byte(b'[');
            out.ints(dims);
            out.byte(b']');
            write_iota(out, reshape_dims, transpose);
        }
        ReplicaGroups::Mesh(mesh_axes) => {
            write_mesh(out, &mesh_axes.mesh);
            out.str(" {");
            out.join(&mesh_axes.axes, ",", write_axis);
            out.byte(b'}');
        }
    }
}
