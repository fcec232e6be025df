//! Emission of kernels, one file a family ([`Family`]).
//!
//! Every family's `emit` gives a [`Kernel`]: launches of functions that it put into the unit, whose symbols begin with `symbol`. **Invariant:** what
//! reads an array that a result may share memory with (`hlo_codegen::buffers::in_place`) reads an element before it writes the element in its place.

mod contract;
mod convolution;
mod dot;
pub mod loops;
mod ragged_dot;
mod scaled_dot;

use hlo::{InstrId, Module};
use hlo_codegen::Unsupported;
use hlo_codegen::cpu::llvm::Parameter;
use hlo_codegen::cpu::llvm::{Emit, Prim, Result, Target, Value};
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
    /// What it is compiled for.
    pub target: &'a Target,
    /// The architecture.
    pub arch: Arch,
    /// How contractions and convolutions are computed.
    pub products: Products,
}

/// Bytes that every array is aligned to.
pub const ALIGNMENT: u32 = 64;

impl<'a, 'ctx> Unit<'a, 'ctx> {
    /// Begins a kernel function of so many arrays and then so many numbers (`i64`), for blocks of at most so many threads; gives it and its parameters.
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

    /// Begins a kernel function of so many arrays that nobody writes while it runs, and then so many others, none of which shares memory with another.
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

/// Emits what executes an instruction. Symbols begin with `symbol`.
pub fn emit(
    unit: &Unit<'_, '_>,
    module: &Module,
    id: InstrId,
    family: Family,
    symbol: &str,
) -> Result<Kernel> {
    let missing =
        |what: &str| Err(Unsupported::new(module, id, format!("there is no kernel for {what}")).into());
    let mut kernel = match family {
        Family::Loop => loops::emit(unit, module, id, symbol)?,
        Family::Reduce => return missing("reductions"),
        Family::Dot => dot::emit(unit, module, id, lower::hero(module, id), symbol)?,
        Family::Convolution => convolution::emit(unit, module, id, lower::hero(module, id), symbol)?,
        Family::RaggedDot => ragged_dot::emit(unit, module, id, symbol)?,
        Family::ScaledDot => scaled_dot::emit(unit, module, id, symbol)?,
        Family::ReduceWindow => return missing("windows"),
        Family::Scan => return missing("scans"),
        Family::Scatter => return missing("scatters"),
        Family::SelectAndScatter => return missing("selections"),
        Family::Sort => return missing("sorting"),
        Family::TopK => return missing("top-k"),
        Family::Fft => return missing("transforms"),
        Family::RandomBits => return missing("random bits"),
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
