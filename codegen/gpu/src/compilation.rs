//! The result of compilation, as data: the fused and scheduled module, its kernels, and PTX.
//!
//! It is what an artifact holds. Buffer assignment and launch plan are not part of it:
//! [`Compilation::assemble`] derives both, without LLVM. **Invariant:** the plan of a program is one that
//! this crate made from a module that verifies, so what comes from a file may be wrong only in its kernels.

use std::sync::Arc;

use hlo::{InstrId, Module, Shape};
use hlo_codegen::CompileError;
use hlo_codegen::compilation::{AssembleError, MAX_CHECKED_INSTRUCTIONS, constant};
use hlo_codegen::run_time_sizes::RunTimeSizes;
use hlo_opt::buffers::{self, Questions};
use rustc_hash::FxHashMap;

use crate::arch::Arch;
use crate::kernel::{Kernel, Stage};
use crate::lower::Lowered;
use crate::plan;
use crate::program::Program;

/// A compiled program before buffer assignment.
#[derive(Debug)]
pub struct Compilation {
    /// The target architecture.
    pub arch: Arch,
    /// Fused and scheduled.
    pub module: Module,
    /// In the order of [`Lowered::kernels`].
    pub kernels: Vec<Kernel>,
    /// PTX texts, each a module of its own.
    pub ptx: Vec<Arc<str>>,
    /// The text that defines each kernel symbol.
    pub symbols: FxHashMap<String, usize>,
    /// The adapter for arguments or results of run-time sizes.
    pub run_time_sizes: Option<RunTimeSizes>,
}

fn defect(message: impl Into<String>) -> CompileError {
    AssembleError::Defect(message.into()).into()
}

impl Compilation {
    /// Assigns buffers and writes the plan. `verify`: the buffers are checked. Errors: kernels that do not
    /// fit the module, buffers that overlap.
    pub fn assemble(self, verify: bool) -> Result<Program, CompileError> {
        let Compilation { arch, module, kernels, ptx, symbols, run_time_sizes } = self;
        let lowered = Lowered::new(&module)?;
        if lowered.kernels.len() != kernels.len() {
            let (has, needs) = (kernels.len(), lowered.kernels.len());
            return Err(defect(format!("{has} kernels of a module that takes {needs}")));
        }
        for stage in kernels.iter().flat_map(|k| &k.stages) {
            let Stage::Launch(launch) = stage else { continue };
            if symbols.get(&launch.symbol).is_none_or(|&at| at >= ptx.len()) {
                return Err(defect(format!("there is no kernel function `{}`", launch.symbol)));
            }
        }
        let kernels: FxHashMap<InstrId, Kernel> = lowered.kernels.iter().copied().zip(kernels).collect();
        let scratch = |id: InstrId| kernels.get(&id).map_or(0, |k| k.scratch_bytes);
        let whole = |_: InstrId| false;
        // Kernels of contractions are emitted for arrays that share no memory.
        let questions = Questions { scratch: &scratch, whole: &whole, epilogue_in_place: &|_| false };
        let assigned = buffers::assign(&module, &questions)?;
        if verify && module.instruction_capacity() <= MAX_CHECKED_INSTRUCTIONS {
            buffers::check::check(&module, &assigned, &questions)
                .map_err(|why| defect(format!("buffers: {why}")))?;
        }
        let mut constants = Vec::with_capacity(assigned.constants.len());
        for &(id, leaf) in &assigned.constants {
            constants.push(constant(&module, id, leaf as usize)?);
        }
        let shape = module.program_shape(module.entry());
        let shape = shape.ok_or_else(|| defect("a program without a result"))?;
        let plan = plan::write(&module, &lowered, &assigned, &kernels);
        Ok(Program {
            name: module.name.to_string(),
            arch,
            parameters: shape.parameters.iter().map(Shape::without_layout).collect(),
            result: shape.result.without_layout(),
            ptx,
            symbols,
            buffers: assigned.assignment,
            constants,
            plan,
            run_time_sizes,
        })
    }
}
