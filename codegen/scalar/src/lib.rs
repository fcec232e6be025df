//! The back end `cpu:scalar`: kernels as expressions that are evaluated element by element.
//!
//! ```text
//! Request ──> Expr (expression IR) ──> actions over columns of elements ──> Evaluate
//! ```
//!
//! Passes, fusion, schedule, buffers and plan are those of the compiler for the CPU, and so are the library
//! calls of the runtime; where that emits a kernel through LLVM, this evaluates the same expressions with the
//! interpreter's arithmetic. It needs no LLVM, and says which of the two is wrong if a kernel of the compiler
//! is: what both get wrong is the expression that fusion and lowering made, what this gets right is wrong in
//! the emission.
//!
//! **Invariants:** nothing here computes on elements except through [`hlo_interp::columns`]; a kernel's
//! strategy (vectorization, tiling, blocking, chunks) does not exist here, only what is computed at each
//! index. Reassociable reductions are taken in an order that depends on shapes alone.

#![forbid(unsafe_code)]

mod code;
mod fused;
mod loops;
mod nest;

use std::sync::Arc;

use hlo::{InstrId, Module};
use hlo_threads::cancel;

use fused::{Elements, Fused, Rows};
use hlo_codegen::compilation::Compilation;
use hlo_codegen::compile::{Backend, Stages};
use hlo_codegen::kernel::{Kernel, Phase, Progress, Request, Strategy};
use hlo_codegen::program::Code;
use hlo_codegen::run_time_sizes::RunTimeSizes;
use hlo_codegen::{CompileError, Unsupported};
use hlo_library_base::portable::Evaluate;
use hlo_opt::passes::Pipeline;
use loops::Loop;

/// The scratch memory of a single-kernel loop, in bytes.
const LOOP_SCRATCH_BYTES: u64 = size_of::<Progress>().next_multiple_of(64) as u64;

/// An element of an expression costs about as much as this many operations of machine code.
const OPS_PER_ELEMENT: u64 = 256;

/// The back end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scalar {
    /// The optimization level: which passes run ([`Pipeline::cpu`]).
    pub opt_level: u8,
}

impl Backend for Scalar {
    type Compilation = Compilation;

    fn describe(&self) -> String {
        "expressions, element by element".to_owned()
    }

    fn pipeline(&self) -> Pipeline {
        Pipeline::cpu(self.opt_level)
    }

    fn lower(
        &self,
        module: Module,
        run_time_sizes: Option<RunTimeSizes>,
        fallback: bool,
    ) -> Result<Compilation, CompileError> {
        Ok(Compilation::new(module, run_time_sizes, fallback)?)
    }

    fn emit(&self, lowered: Compilation, _stages: &mut dyn Stages) -> Result<Compilation, CompileError> {
        let (mut kernels, mut evaluated) = (Vec::new(), Vec::new());
        for (number, &request) in lowered.requests().iter().enumerate() {
            cancel::poll();
            let (kernel, code) = match kernel(lowered.module(), request, &format!("k{number}")) {
                Ok((kernel, code)) => (Some(kernel), Some(code)),
                Err(_) if lowered.falls_back() => (None, None),
                Err(unsupported) => return Err(unsupported.into()),
            };
            kernels.push(kernel);
            evaluated.push(code);
        }
        Ok(lowered.with_kernels(kernels, Code::Evaluated(evaluated))?)
    }
}

/// The kernel of a request, and its evaluator. Errors: what is not supported.
pub fn kernel(
    module: &Module,
    request: Request,
    symbol: &str,
) -> Result<(Kernel, Arc<dyn Evaluate>), Unsupported> {
    let named = |id: InstrId, units: u64, bytes: u64, flops: u64| {
        let flops = flops.saturating_mul(OPS_PER_ELEMENT);
        let phase = Phase {
            symbol: symbol.to_owned(),
            strategy: Strategy::Interpreted,
            units,
            grain: 1,
            run: 1,
            bytes,
            flops,
        };
        Kernel { name: module.instr(id).name.to_string(), phases: vec![phase], scratch: 0, iterates: false }
    };
    Ok(match request {
        Request::Fusion(id) => {
            let fused = Fused::new(module, id)?;
            (named(id, 1, fused.traffic(), fused.points()), Arc::new(fused))
        }
        Request::Epilogue { fusion, hero } => {
            let (rows, units) = Rows::new(module, fusion, hero)?;
            (named(fusion, units, 0, 0), Arc::new(rows))
        }
        Request::Map(computation) => {
            let elements = Elements::new(module, computation)?;
            (named(module.root(computation), 0, 0, 1), Arc::new(elements))
        }
        Request::Loop(id) => {
            let of = Loop::new(module, id)?;
            let kernel = Kernel {
                scratch: LOOP_SCRATCH_BYTES,
                iterates: true,
                ..named(id, u64::MAX >> 1, 0, of.points())
            };
            (kernel, Arc::new(of))
        }
    })
}
