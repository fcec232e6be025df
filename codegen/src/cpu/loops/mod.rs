//! Loop nests: fusions as functions over a range of units.

use hlo::Module;

use super::Unit;
use super::llvm::{Error, Result};
use crate::Unsupported;
use crate::kernel::{Kernel, Request};

/// Emits the functions of a kernel into a unit: one for each phase, their symbols `symbol` and what tells the phases apart.
pub fn emit(unit: &Unit<'_, '_>, module: &Module, request: Request, symbol: &str) -> Result<Kernel> {
    let _ = (unit, symbol);
    let id = match request {
        Request::Fusion(id) | Request::Loop(id) => id,
        Request::Epilogue { fusion, .. } => fusion,
        Request::Map(computation) => module.root(computation),
    };
    Err(Error::from(Unsupported::new(module, id, "no kernel computes it yet")))
}
