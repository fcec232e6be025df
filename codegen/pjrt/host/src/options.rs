//! `CompileOptionsProto`, as far as it is written here.
//!
//! Field numbers are those of XLA's `xla/pjrt/proto/compile_options.proto`.

/// `CompileOptionsProto.parameter_is_tupled_arguments`.
const PARAMETER_IS_TUPLED_ARGUMENTS: u64 = 2;
/// `CompileOptionsProto.executable_build_options`.
const BUILD_OPTIONS: u64 = 3;
/// `ExecutableBuildOptionsProto.device_ordinal`.
const DEVICE_ORDINAL: u64 = 1;
/// `ExecutableBuildOptionsProto.num_replicas`.
const REPLICAS: u64 = 4;
/// `ExecutableBuildOptionsProto.num_partitions`.
const PARTITIONS: u64 = 5;

fn varint(to: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        to.push((n as u8) | 0x80);
        n >>= 7;
    }
    to.push(n as u8);
}

fn number(to: &mut Vec<u8>, field: u64, n: u64) {
    varint(to, field << 3);
    varint(to, n);
}

/// The options of a program of one device; `tupled`: its one parameter is a tuple of the arguments.
pub(crate) fn of_one_device(tupled: bool) -> Vec<u8> {
    let mut build = Vec::new();
    // -1: the default device.
    number(&mut build, DEVICE_ORDINAL, u64::MAX);
    number(&mut build, REPLICAS, 1);
    number(&mut build, PARTITIONS, 1);
    let mut options = Vec::new();
    if tupled {
        number(&mut options, PARAMETER_IS_TUPLED_ARGUMENTS, 1);
    }
    varint(&mut options, BUILD_OPTIONS << 3 | 2);
    varint(&mut options, build.len() as u64);
    options.extend(build);
    options
}
