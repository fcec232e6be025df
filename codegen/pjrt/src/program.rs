//! Programs as they come: StableHLO in bytecode or text, or HLO in protocol buffers.

use hlo::Module;
use hlo_mlir::bytecode;
use hlo_mlir::convert::{ConvertOptions, convert};
use hlo_mlir::text;
use hlo_proto::{Encoding, Kind, ReadOptions};

use crate::error::{Failure, Result};
use crate::inspect;
use crate::layout::{Layouts, Mode};
use crate::memory::Kinds;
use crate::sharding::Shardings;
use hlo_pjrt_abi::wire;

/// The format of an `HloModuleProtoWithConfig`, the one beside MLIR that frameworks take back.
pub const WITH_CONFIG: &str = "hlo_with_config";

/// `HloModuleProtoWithConfig.hlo_module`.
const MODULE: u64 = 1;
/// `HloModuleProtoWithConfig.config`.
const CONFIG: u64 = 2;
/// `HloModuleProto.host_program_shape`.
const HOST_PROGRAM_SHAPE: u64 = 4;
/// `HloModuleConfigProto.entry_computation_layout`.
const ENTRY_COMPUTATION_LAYOUT: u64 = 1;

/// An `HloModuleProto` as an `HloModuleProtoWithConfig`, whose configuration says the shapes of parameters
/// and result.
///
/// # Errors
/// It is no message.
pub fn with_config(module: &[u8]) -> Result<Vec<u8>> {
    let mut config = Vec::new();
    for (number, value) in wire::fields(module)? {
        if let (HOST_PROGRAM_SHAPE, wire::Value::Bytes(shape)) = (number, value) {
            wire::put(&mut config, ENTRY_COMPUTATION_LAYOUT, shape);
        }
    }
    let mut bytes = Vec::with_capacity(module.len() + config.len() + 20);
    wire::put(&mut bytes, MODULE, module);
    wire::put(&mut bytes, CONFIG, &config);
    Ok(bytes)
}

/// A program as it came.
#[derive(Debug)]
pub struct Read {
    /// The program.
    pub module: Module,
    /// How its arrays are on devices.
    pub shardings: Shardings,
    /// How its arrays are laid out in memory.
    pub layouts: Layouts,
}

/// Reads a program in a format of the C API.
///
/// # Errors
/// It is broken, or has what is not supported; the format is unknown.
pub fn read(format: &str, code: &[u8]) -> Result<Read> {
    match format {
        "mlir" => stablehlo(code),
        "hlo" => row_major(hlo(code)?),
        WITH_CONFIG => {
            let parts = wire::fields(code)?;
            match parts.iter().find(|(number, _)| *number == MODULE) {
                Some((_, wire::Value::Bytes(module))) => row_major(hlo(module)?),
                Some((_, wire::Value::Number(_))) | None => {
                    Err(Failure::invalid("the HloModuleProtoWithConfig has no module"))
                }
            }
        }
        other => Err(Failure::unimplemented(format!(
            "programs in the format `{other}` are not supported; `mlir`, `hlo` and `hlo_with_config` are"
        ))),
    }
}

fn stablehlo(code: &[u8]) -> Result<Read> {
    let tree = if bytecode::is_bytecode(code) {
        bytecode::read(code)
            .map_err(|found| Failure::of_diagnostics("the bytecode cannot be read", &found))?
    } else {
        let code = std::str::from_utf8(code)
            .map_err(|_| Failure::invalid("the program is neither MLIR bytecode nor text"))?;
        text::parse(code, &text::ReadOptions::default())
            .map_err(|found| Failure::of_diagnostics("the program does not parse", &found))?
    };
    let converted = convert(&tree, &ConvertOptions::default())
        .map_err(|found| Failure::of_diagnostics("the program cannot be converted to HLO", &found))?;
    let mut module = converted.module;
    inspect::inspect(&mut module)?;
    let shardings = Shardings::of(&mut module, &converted.result_shardings, &converted.sharding_groups)?;
    let modes = |texts: &[Option<Box<str>>]| -> Result<Vec<Mode>> {
        texts.iter().map(|text| text.as_deref().map_or(Ok(Mode::Default), Mode::read)).collect()
    };
    let (arguments, results) = (modes(&converted.argument_layouts)?, modes(&converted.result_layouts)?);
    let layouts = Layouts::resolve(&module, &arguments, &results)?;
    let kinds = Kinds::of_names(&converted.argument_memories, &converted.result_memories)?;
    if !layouts.are_row_major() || !kinds.are_default() {
        layouts.write(&mut module);
        kinds.write(&mut module);
    }
    Ok(Read { module, shardings, layouts })
}

/// A program whose arrays lie row-major, whatever its header says: as with XLA, a module of HLO does not say
/// in which layouts its caller has arrays.
fn row_major(read: Read) -> Result<Read> {
    let Read { mut module, shardings, layouts } = read;
    if module.header.entry_computation_layout.is_some() {
        layouts.write(&mut module);
    }
    Ok(Read { module, shardings, layouts })
}

fn hlo(code: &[u8]) -> Result<Read> {
    let found = hlo_proto::read(code, Kind::Module, Encoding::Binary, &ReadOptions::default());
    let broken = || Failure::of_diagnostics("the HloModuleProto cannot be read", &found.diagnostics);
    let mut module = found.document.map(|document| document.module).ok_or_else(broken)?;
    let shardings = Shardings::read(&mut module, code)?;
    let layouts = Layouts::resolve(&module, &[], &[])?;
    Ok(Read { module, shardings, layouts })
}

/// Reads a program that this plugin wrote, whose header says how its arrays are laid out in memory.
///
/// # Errors
/// It is broken.
pub fn read_own(code: &[u8]) -> Result<Read> {
    let read = hlo(code)?;
    Ok(Read { layouts: Layouts::of_header(&read.module)?, ..read })
}
