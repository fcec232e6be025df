//! Programs as they come: StableHLO in bytecode or text, or HLO in protocol buffers.

use hlo::Module;
use hlo_mlir::bytecode;
use hlo_mlir::convert::{ConvertOptions, convert};
use hlo_mlir::text;
use hlo_proto::{Contents, Encoding, Kind, ReadOptions};

use crate::error::{Failure, Result};

/// Reads a program in a format of the C API.
///
/// # Errors
/// It is broken, or has what is not supported; the format is unknown.
pub fn read(format: &str, code: &[u8]) -> Result<Module> {
    match format {
        "mlir" => stablehlo(code),
        "hlo" => hlo(code),
        other => Err(Failure::unimplemented(format!(
            "programs in the format `{other}` are not supported; `mlir` and `hlo` are"
        ))),
    }
}

fn stablehlo(code: &[u8]) -> Result<Module> {
    let tree = if bytecode::is_bytecode(code) {
        bytecode::read(code)
            .map_err(|found| Failure::of_diagnostics("the bytecode cannot be read", &found))?
    } else {
        let code = std::str::from_utf8(code)
            .map_err(|_| Failure::invalid("the program is neither MLIR bytecode nor text"))?;
        text::parse(code, &text::ReadOptions::default())
            .map_err(|found| Failure::of_diagnostics("the program does not parse", &found))?
    };
    let converted = convert(&tree, &ConvertOptions::default());
    converted
        .map(|converted| converted.module)
        .map_err(|found| Failure::of_diagnostics("the program cannot be converted to HLO", &found))
}

fn hlo(code: &[u8]) -> Result<Module> {
    let found = hlo_proto::read(code, Kind::Module, Encoding::Binary, &ReadOptions::default());
    let broken = || Failure::of_diagnostics("the HloModuleProto cannot be read", &found.diagnostics);
    found.document.map(|document| document.module).ok_or_else(broken)
}

/// Writes a program as an `HloModuleProto`.
///
/// # Errors
/// It says what has no field there.
pub fn write(module: &Module) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    hlo_proto::write(&Contents::of(module), Kind::Module, Encoding::Binary, &mut bytes).map_err(|error| {
        match error {
            hlo_proto::WriteError::Unsupported(found) | hlo_proto::WriteError::Unreadable(found) => {
                Failure::of_diagnostics("the program has no HloModuleProto", &found)
            }
            hlo_proto::WriteError::Io(error) => Failure::internal(error.to_string()),
        }
    })?;
    Ok(bytes)
}
