//! Shardings, meshes, replica groups: which device holds or does what.

use super::Type::*;
use super::origins::OP_METADATA;
use super::shapes::SHAPE;
use super::{enums, messages};

enums! {
    OP_SHARDING_SHARD_GROUP_TYPE "OpSharding.ShardGroupType" { AS = 0, LIKE = 1, }
    OP_SHARDING_TYPE "OpSharding.Type" { REPLICATED = 0, MAXIMAL = 1, TUPLE = 2, OTHER = 3, MANUAL = 4, UNKNOWN = 5, UNREDUCED = 6, }
}

messages! {
    OP_SHARDING op_sharding "OpSharding" {
        type TYPE = 1: one Enum(&OP_SHARDING_TYPE);
        tile_shape TILE_SHAPE = 2: one Message(&SHAPE);
        tile_assignment_dimensions TILE_ASSIGNMENT_DIMENSIONS = 3: many Int64;
        tile_assignment_devices TILE_ASSIGNMENT_DEVICES = 4: many Int64;
        tuple_shardings TUPLE_SHARDINGS = 5: many Message(&OP_SHARDING);
        replicate_on_last_tile_dim REPLICATE_ON_LAST_TILE_DIM = 6: one Bool;
        metadata METADATA = 7: many Message(&OP_METADATA);
        last_tile_dims LAST_TILE_DIMS = 8: many Enum(&OP_SHARDING_TYPE);
        iota_reshape_dims IOTA_RESHAPE_DIMS = 9: many Int64;
        iota_transpose_perm IOTA_TRANSPOSE_PERM = 10: many Int32;
        is_shard_group IS_SHARD_GROUP = 11: one Bool;
        shard_group_id SHARD_GROUP_ID = 12: one Int64;
        shard_group_type SHARD_GROUP_TYPE = 13: one Enum(&OP_SHARDING_SHARD_GROUP_TYPE);
        named_sharding NAMED_SHARDING = 14: one Message(&NAMED_SHARDING);
    }
    NAMED_SHARDING named_sharding "NamedShardingProto" {
        mesh MESH = 2: one Message(&MESH);
        dim_shardings DIM_SHARDINGS = 3: many Message(&NAMED_SHARDING_DIMENSION_SHARDING);
        replicated_axes REPLICATED_AXES = 4: many Message(&AXIS_REF);
        unreduced_axes UNREDUCED_AXES = 5: many Message(&AXIS_REF);
        metadata METADATA = 6: many Message(&OP_METADATA);
        manual_axes MANUAL_AXES = 7: many Message(&AXIS_REF);
    }
    MESH mesh "MeshProto" {
        axes AXES = 1: many Message(&MESH_MESH_AXIS);
        device_ids DEVICE_IDS = 2: many Int64;
        iota_transform IOTA_TRANSFORM = 3: one Message(&MESH_IOTA_TRANSFORM);
    }
    MESH_MESH_AXIS mesh_mesh_axis "MeshProto.MeshAxis" {
        name NAME = 1: one String;
        size SIZE = 2: one Int64;
    }
    MESH_IOTA_TRANSFORM mesh_iota_transform "MeshProto.IotaTransform" {
        reshape_dims RESHAPE_DIMS = 1: many Int64;
        transpose_perm TRANSPOSE_PERM = 2: many Int64;
    }
    NAMED_SHARDING_DIMENSION_SHARDING named_sharding_dimension_sharding "NamedShardingProto.DimensionSharding" {
        axes AXES = 1: many Message(&AXIS_REF);
        is_closed IS_CLOSED = 2: one Bool;
    }
    AXIS_REF axis_ref "AxisRefProto" {
        mesh_axis_index MESH_AXIS_INDEX = 1: one Int64;
        sub_axis_info SUB_AXIS_INFO = 2: one Message(&AXIS_REF_SUB_AXIS);
    }
    AXIS_REF_SUB_AXIS axis_ref_sub_axis "AxisRefProto.SubAxis" {
        pre_size PRE_SIZE = 1: one Int64;
        size SIZE = 2: one Int64;
    }
    REPLICA_GROUP replica_group "ReplicaGroup" {
        replica_ids REPLICA_IDS = 1: many Int64;
    }
    SOURCE_TARGET source_target "SourceTarget" {
        source SOURCE = 1: one Int64;
        target TARGET = 2: one Int64;
    }
    COLLECTIVE_DEVICE_LIST collective_device_list "CollectiveDeviceListProto" {
        replica_groups REPLICA_GROUPS = 1: many Message(&REPLICA_GROUP);
        // Until 2025; now a field of the instruction.
        iota_replica_group_list IOTA_REPLICA_GROUP_LIST = 2: one Message(&IOTA_REPLICA_GROUP_LIST);
    }
    IOTA_REPLICA_GROUP_LIST iota_replica_group_list "IotaReplicaGroupListProto" {
        num_replica_groups NUM_REPLICA_GROUPS = 1: one Int64;
        num_devices_per_group NUM_DEVICES_PER_GROUP = 2: one Int64;
        iota_reshape_dims IOTA_RESHAPE_DIMS = 3: many Int64;
        iota_transpose_perm IOTA_TRANSPOSE_PERM = 4: many Int32;
    }
    MESH_AXES_REPLICA_GROUP_LIST mesh_axes_replica_group_list "MeshAxesReplicaGroupListProto" {
        mesh MESH = 1: one Message(&MESH);
        axes AXES = 2: many Message(&AXIS_REF);
    }
    DEVICE_ASSIGNMENT device_assignment "DeviceAssignmentProto" {
        replica_count REPLICA_COUNT = 1: one Int32;
        computation_count COMPUTATION_COUNT = 2: one Int32;
        computation_devices COMPUTATION_DEVICES = 3: many Message(&DEVICE_ASSIGNMENT_COMPUTATION_DEVICE);
    }
    DEVICE_ASSIGNMENT_COMPUTATION_DEVICE device_assignment_computation_device "DeviceAssignmentProto.ComputationDevice" {
        replica_device_ids REPLICA_DEVICE_IDS = 1: many Int64;
    }
}
