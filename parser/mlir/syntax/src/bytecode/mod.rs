//! MLIR bytecode: reading it into the tree and writing the tree.
//!
//! Portable artifacts of StableHLO are bytecode of VHLO, StableHLO's versioned form. The tree holds
//! StableHLO: reading translates from any version, writing to any. What the tables of these files ([`codes`],
//! [`vhlo`]) say is facts of the formats; both directions read them.
//!
//! **What holds for any input:** no panic, no recursion on its depth, memory linear in its size (attributes
//! that are written out as text: at most 64 times). Every error has a code, the bytes that are wrong, and the
//! section that they are in.

mod codes;
mod container;
mod cursor;
mod decode;
pub mod export;
mod read;
mod section;
mod version;
mod vhlo;
mod write;

pub use version::{NotAVersion, Version};

use hlo::diag::Diagnostics;

use crate::ir::Module;

/// Whether a file starts as MLIR bytecode does.
pub fn is_bytecode(file: &[u8]) -> bool {
    file.starts_with(&container::MAGIC)
}

/// What a file says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The version of the bytecode format.
    pub format: u64,
    /// Who wrote it, `StableHLO_v1.17.0` or `MLIR22.1.8`.
    pub producer: String,
    /// The version of VHLO, of portable artifacts.
    pub version: Option<Version>,
}

/// Reads the header of a file.
pub fn header(file: &[u8]) -> Result<Header, Diagnostics> {
    let (format, producer) =
        container::header(&mut cursor::Cursor::new(file)).map_err(|error| Diagnostics::from(*error))?;
    Ok(Header {
        format,
        producer: String::from_utf8_lossy(producer).into_owned(),
        version: Version::of_producer(producer),
    })
}

/// Reads a file: a portable artifact of any version of VHLO, with operations and attributes of Shardy in it.
pub fn read(file: &[u8]) -> Result<Module, Diagnostics> {
    read::read(file).map_err(|error| Diagnostics::from(*error))
}

/// Writes a module as a portable artifact that readers of a version of VHLO understand. What this version
/// lacks is refused by name; a file is never of another version than asked for.
pub fn write(module: &Module, target: Version) -> Result<Vec<u8>, Diagnostics> {
    write::write(module, target)
}
