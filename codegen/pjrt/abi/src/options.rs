//! Messages of compile options (`xla/pjrt/proto/compile_options.proto`, `xla/xla.proto`): numbers of their
//! fields, and the smallest that a caller sends.

use crate::wire::{put, put_number};

/// Numbers of the fields that are read and written (XLA's `xla/pjrt/proto/compile_options.proto`).
pub mod field {
    /// `CompileOptionsProto.parameter_is_tupled_arguments`.
    pub const PARAMETER_IS_TUPLED_ARGUMENTS: u64 = 2;
    /// `CompileOptionsProto.executable_build_options`.
    pub const BUILD_OPTIONS: u64 = 3;
    /// `CompileOptionsProto.env_option_overrides`.
    pub const OVERRIDES: u64 = 7;
    /// `ExecutableBuildOptionsProto.debug_options`.
    pub const DEBUG_OPTIONS: u64 = 3;
    /// `DebugOptions.xla_dump_to` (`xla/xla.proto`).
    pub const DUMP_TO: u64 = 109;
    /// `DebugOptions.xla_dump_hlo_module_re`.
    pub const DUMP_MODULES: u64 = 110;
    /// `DebugOptions.xla_dump_hlo_pass_re`.
    pub const DUMP_PASSES: u64 = 111;
    /// `DebugOptions.xla_dump_hlo_as_text`.
    pub const DUMP_AS_TEXT: u64 = 112;
    /// `DebugOptions.xla_dump_hlo_as_proto`.
    pub const DUMP_AS_PROTO: u64 = 113;
    /// The key of an entry of a map.
    pub const KEY: u64 = 1;
    /// The value of an entry of a map.
    pub const VALUE: u64 = 2;
    /// `OptionOverrideProto.string_field`.
    pub const STRING: u64 = 1;
    /// `OptionOverrideProto.bool_field`.
    pub const BOOL: u64 = 2;
    /// `ExecutableBuildOptionsProto.device_ordinal`.
    pub const DEVICE_ORDINAL: u64 = 1;
    /// `ExecutableBuildOptionsProto.num_replicas`.
    pub const REPLICAS: u64 = 4;
    /// `ExecutableBuildOptionsProto.num_partitions`.
    pub const PARTITIONS: u64 = 5;
    /// `ExecutableBuildOptionsProto.device_assignment`.
    pub const ASSIGNMENT: u64 = 9;
    /// `DeviceAssignmentProto.replica_count`.
    pub const REPLICA_COUNT: u64 = 1;
    /// `DeviceAssignmentProto.computation_count`.
    pub const COMPUTATION_COUNT: u64 = 2;
    /// `DeviceAssignmentProto.computation_devices`.
    pub const COMPUTATION_DEVICES: u64 = 3;
    /// `DeviceAssignmentProto.ComputationDevice.replica_device_ids`.
    pub const DEVICE_IDS: u64 = 1;
}

/// Writes the `CompileOptionsProto` of a program of one device, the default one. `tupled`: its one parameter
/// is a tuple of the arguments.
pub fn write_for_one_device(tupled: bool) -> Vec<u8> {
    let mut build = Vec::new();
    // -1: the default device.
    put_number(&mut build, field::DEVICE_ORDINAL, u64::MAX);
    put_number(&mut build, field::REPLICAS, 1);
    put_number(&mut build, field::PARTITIONS, 1);
    let mut options = Vec::new();
    if tupled {
        put_number(&mut options, field::PARAMETER_IS_TUPLED_ARGUMENTS, 1);
    }
    put(&mut options, field::BUILD_OPTIONS, &build);
    options
}
