//! Programs as messages.

use hlo::Module;
use hlo_proto::{Contents, Encoding, Kind};

use crate::failure::{Failure, Result};

/// Writes a program as an `HloModuleProto`.
///
/// # Errors
/// It says what has no field there.
pub fn write(module: &Module) -> Result<Vec<u8>> {
    write_as(module, Kind::Module)
}

/// Writes a program as a message of this kind.
///
/// # Errors
/// It says what has no field there.
pub fn write_as(module: &Module, kind: Kind) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    hlo_proto::write(&Contents::of(module), kind, Encoding::Binary, &mut bytes).map_err(
        |error| match error {
            hlo_proto::WriteError::Unsupported(found) | hlo_proto::WriteError::Unreadable(found) => {
                Failure::of_diagnostics("the program has no HloModuleProto", &found)
            }
            hlo_proto::WriteError::Io(error) => Failure::internal(error.to_string()),
        },
    )?;
    Ok(bytes)
}
