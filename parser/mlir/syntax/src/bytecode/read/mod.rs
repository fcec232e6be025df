//! Reading a file into the tree.

mod builtin;
mod elements;
mod entries;
mod ir;
mod operations;
mod shardy;
mod vhlo;

pub(in crate::bytecode) use elements::{file_bytes, shape};
pub(in crate::bytecode) use operations::{is_default, properties};

use super::container::Container;
use super::cursor::Fallible;
use crate::ir::Module;

/// The module of a file.
pub(super) fn read(file: &[u8]) -> Fallible<Module> {
    let container = Container::open(file)?;
    let mut reader = ir::IrReader::new(&container)?;
    reader.read()?;
    Ok(reader.entries.module)
}
