//! The result of compilation, as data: the fused and scheduled module, its kernels, and PTX.
//!
//! It is what an artifact holds. How instructions are executed, buffer assignment and launch plan are derived
//! from the module, without LLVM, by [`Compilation::new`] and [`Assemble::assemble`]. **Invariant:** the plan
//! of a program is one that this crate made from a module that verifies, so what comes from a file may be
//! wrong only in its kernels.

use std::sync::Arc;

use hlo::{InstrId, Module, Shape};
use hlo_codegen::Unsupported;
use hlo_codegen::compilation::{Assemble, AssembleError, assign};
use hlo_codegen::run_time_sizes::RunTimeSizes;
use hlo_opt::buffers::{Assigned, Questions};
use rustc_hash::FxHashMap;

use crate::arch::Arch;
use crate::kernel::{Kernel, Stage};
use crate::lower::Lowered;
use crate::plan;
use crate::program::Program;

/// A compiled program before buffer assignment.
#[derive(Debug)]
pub struct Compilation {
    arch: Arch,
    /// Fused and scheduled.
    module: Module,
    lowered: Lowered,
    /// In the order of [`Lowered::kernels`].
    kernels: Vec<Kernel>,
    ptx: Vec<Arc<str>>,
    symbols: FxHashMap<String, usize>,
    run_time_sizes: Option<RunTimeSizes>,
}

fn defect(message: impl Into<String>) -> AssembleError {
    AssembleError::Defect(message.into())
}

impl Compilation {
    /// Of a fused and scheduled module that has no kernels yet. Errors: what nothing executes.
    pub fn new(
        arch: Arch,
        module: Module,
        run_time_sizes: Option<RunTimeSizes>,
    ) -> Result<Self, Unsupported> {
        let lowered = Lowered::new(&module)?;
        let (kernels, ptx, symbols) = Default::default();
        Ok(Self { arch, module, lowered, kernels, ptx, symbols, run_time_sizes })
    }

    /// The target architecture.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// The module.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// How its instructions are executed.
    pub fn lowered(&self) -> &Lowered {
        &self.lowered
    }

    /// The kernels, in the order of [`Lowered::kernels`].
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// PTX texts, each a module of its own.
    pub fn ptx(&self) -> &[Arc<str>] {
        &self.ptx
    }

    /// The text that defines each kernel symbol.
    pub fn symbols(&self) -> &FxHashMap<String, usize> {
        &self.symbols
    }

    /// The adapter for arguments or results of run-time sizes.
    pub fn run_time_sizes(&self) -> Option<&RunTimeSizes> {
        self.run_time_sizes.as_ref()
    }

    /// Adds its kernels, in the order of [`Lowered::kernels`], with their PTX and the text of each symbol.
    /// Whether they fit is looked at when it is assembled.
    pub fn with_kernels(
        self,
        kernels: Vec<Kernel>,
        ptx: Vec<Arc<str>>,
        symbols: FxHashMap<String, usize>,
    ) -> Self {
        Self { kernels, ptx, symbols, ..self }
    }
}

impl Assemble for Compilation {
    type Program = Program;

    /// Errors: kernels that do not fit the module, buffers that overlap.
    fn assemble(
        self,
        verify: bool,
        assigned: &mut dyn FnMut(&Module, &Assigned),
    ) -> Result<Program, AssembleError> {
        let Compilation { arch, module, lowered, kernels, ptx, symbols, run_time_sizes } = self;
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
        let (buffers, constants) = assign(&module, &questions, verify, assigned)?;
        let shape = module.program_shape(module.entry());
        let shape = shape.ok_or_else(|| defect("a program without a result"))?;
        let plan = plan::write(&module, &lowered, &buffers, &kernels);
        Ok(Program {
            name: module.name.to_string(),
            arch,
            parameters: shape.parameters.iter().map(Shape::without_layout).collect(),
            result: shape.result.without_layout(),
            ptx,
            symbols,
            buffers: buffers.assignment,
            constants,
            plan,
            run_time_sizes,
        })
    }
}
