//! Emission of kernels, one file per family ([`Family`]).
//!
//! Every family's `emit` returns a [`Kernel`]: launches of functions that it emitted into the unit, whose
//! symbols begin with `symbol`. **Invariant:** what reads an array that a result may share memory with
//! (`hlo_opt::buffers::in_place`) reads an element before it writes the element at its offset.

mod applied;
mod contract;
mod convolution;
mod dot;
mod fft;
mod folds;
mod linalg;
pub mod loops;
mod ragged_dot;
mod random;
mod reduce;
mod reduce_window;
mod rows;
mod scaled_dot;
mod scan;
mod scatter;
mod select_and_scatter;
mod sort;
mod threads;
mod topk;
mod transpose;
mod windows;

use hlo::{InstrId, Module};
use hlo_codegen::Unsupported;
use hlo_llvm::Parameter;
use hlo_llvm::{Emit, Prim, Result, Target, Value};
use inkwell::builder::Builder;
use inkwell::context::Context;

use crate::arch::{Arch, MAX_GRID_X};
use crate::compile::Products;
use crate::kernel::{Argument, Kernel, Launch};
use crate::lower::{self, Family};

/// An LLVM module that kernels are emitted into.
#[derive(Clone, Copy, Debug)]
pub struct Unit<'a, 'ctx> {
    /// Its context.
    pub context: &'ctx Context,
    /// The module.
    pub llvm: &'a inkwell::module::Module<'ctx>,
    /// A builder of its context.
    pub builder: &'a Builder<'ctx>,
    /// The target.
    pub target: &'a Target,
    /// The architecture.
    pub arch: Arch,
    /// The strategy of contractions and convolutions.
    pub products: Products,
}

/// The alignment of every array, in bytes.
pub const ALIGNMENT: u32 = 64;

impl<'a, 'ctx> Unit<'a, 'ctx> {
    /// Begins a kernel function with that many arrays and then that many numbers (`i64`), for blocks of at
    /// most that many threads; returns it and its parameters.
    pub fn begin(
        &self,
        symbol: &str,
        arrays: u32,
        words: usize,
        max_threads: u32,
    ) -> Result<(Emit<'a, 'ctx>, Vec<Value<'ctx>>)> {
        let array = Parameter::Array { align: ALIGNMENT, is_read_only: false, is_no_alias: false };
        let mut parameters = vec![array; arrays as usize];
        parameters.extend(std::iter::repeat_n(Parameter::Scalar(Prim::I64), words));
        Emit::gpu_kernel(self.context, self.llvm, self.builder, self.target, symbol, &parameters, max_threads)
    }

    /// Begins a kernel function with that many read-only arrays and then that many others, none of which
    /// shares memory with another.
    pub fn begin_apart(
        &self,
        symbol: &str,
        reads: u32,
        others: u32,
        max_threads: u32,
    ) -> Result<(Emit<'a, 'ctx>, Vec<Value<'ctx>>)> {
        let array = |is_read_only| Parameter::Array { align: ALIGNMENT, is_read_only, is_no_alias: true };
        let mut parameters = vec![array(true); reads as usize];
        parameters.extend(std::iter::repeat_n(array(false), others as usize));
        Emit::gpu_kernel(self.context, self.llvm, self.builder, self.target, symbol, &parameters, max_threads)
    }
}

/// Emits the kernel of an instruction. Symbols begin with `symbol`.
pub fn emit(
    unit: &Unit<'_, '_>,
    module: &Module,
    id: InstrId,
    family: Family,
    symbol: &str,
) -> Result<Kernel> {
    let mut kernel = match family {
        Family::Loop => loops::emit(unit, module, id, symbol)?,
        Family::Reduce => reduce::emit(unit, module, id, symbol)?,
        Family::Rows => rows::emit(unit, module, id, symbol)?,
        Family::Dot => dot::emit(unit, module, id, lower::hero(module, id), symbol)?,
        Family::Convolution => convolution::emit(unit, module, id, lower::hero(module, id), symbol)?,
        Family::RaggedDot => ragged_dot::emit(unit, module, id, symbol)?,
        Family::ScaledDot => scaled_dot::emit(unit, module, id, symbol)?,
        Family::ReduceWindow => reduce_window::emit(unit, module, id, symbol)?,
        Family::Scan => scan::emit_scan(unit, module, id, symbol)?,
        Family::Scatter => scatter::emit(unit, module, id, symbol)?,
        Family::SelectAndScatter => select_and_scatter::emit(unit, module, id, symbol)?,
        Family::Sort => sort::emit(unit, module, id, symbol)?,
        Family::TopK => topk::emit(unit, module, id, symbol)?,
        Family::Cholesky => linalg::cholesky(unit, module, id, symbol)?,
        Family::TriangularSolve => linalg::triangular_solve(unit, module, id, symbol)?,
        Family::OneDevice => {
            let refused = || Unsupported::new(module, id, "other devices have a part in it");
            let stages = crate::one_device::stages(module, id).ok_or_else(refused)?;
            Kernel { stages, ..Kernel::default() }
        }
        Family::Fft => fft::emit(unit, module, id, symbol)?,
        Family::RandomBits => random::emit(unit, module, id, symbol)?,
    };
    kernel.name = module.instr(id).name.to_string();
    Ok(kernel)
}

/// A launch on a grid of one axis.
pub fn launch(
    module: &Module,
    id: InstrId,
    symbol: &str,
    blocks: i64,
    threads: u32,
    arguments: Vec<Argument>,
) -> std::result::Result<Launch, Unsupported> {
    if blocks > MAX_GRID_X {
        return Err(Unsupported::new(module, id, "more blocks than a grid can have"));
    }
    let blocks = u32::try_from(blocks.max(1)).expect("invariant: at most MAX_GRID_X");
    Ok(Launch {
        symbol: symbol.to_owned(),
        grid: [blocks, 1, 1],
        block: [threads, 1, 1],
        shared_bytes: 0,
        arguments,
    })
}
