//! Compilation units: LLVM modules that kernels are emitted into.

use hlo::Module;
use inkwell::builder::Builder;
use inkwell::context::Context;

use super::loops;
use hlo_codegen::kernel::{Kernel, Request};
use hlo_llvm::{Lines, Result, Target};

/// An LLVM module that kernels are emitted into.
#[derive(Clone, Copy, Debug)]
pub struct Unit<'a, 'ctx> {
    /// Its context.
    pub context: &'ctx Context,
    /// The module.
    pub module: &'a inkwell::module::Module<'ctx>,
    /// A builder of its context.
    pub builder: &'a Builder<'ctx>,
    /// The target.
    pub target: &'a Target,
    /// Line tables for debuggers, if there are any: the lines of the program's text.
    pub lines: Option<&'a Lines<'ctx>>,
}

impl Unit<'_, '_> {
    /// Emits the functions of a kernel; their symbols begin with `symbol`, which no other kernel has.
    pub fn emit(&self, module: &Module, request: Request, symbol: &str) -> Result<Kernel> {
        loops::emit(self, module, request, symbol)
    }
}
