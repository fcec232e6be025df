//! What runs programs: the seam between clients and platforms.
//!
//! A back end compiles a verified module to something [`Loaded`], which runs on flat arrays. Everything else
//! (buffers, donation, budgets, caches, devices, futures) is the client's, and the same for all. **To add
//! one**: implement both traits, and give [`crate::Client::with_backend`] a value of it.

mod cpu;
mod custom_calls;
mod interpreter;

use std::fmt;
use std::sync::Arc;

use hlo::{ArrayLiteral, ArrayShape, Module};
use hlo_codegen::runtime::arena::Block;
use hlo_codegen::runtime::executable::Leaf;
use hlo_codegen::runtime::raw::buffer_of;
use hlo_interp::custom_call::Registry;
use smallvec::SmallVec;

use crate::artifact::Signature;
use crate::buffer::Data;
use crate::error::Error;
use crate::options::{CompileOptions, ExecuteOptions};

pub use cpu::{Cpu, fingerprint};
pub use custom_calls::unknown_custom_call;
pub use interpreter::Interpreter;

/// A platform.
pub trait Backend: fmt::Debug + Send + Sync {
    /// Its name, such as `cpu`.
    fn platform(&self) -> &'static str;

    /// All that compiled code depends on beside the program and the options: the compiler's build, the
    /// processor.
    fn fingerprint(&self) -> String;

    /// Bytes of large constants that loaded programs hold, those that several have counted once. 0: it keeps
    /// no account of them.
    fn constant_bytes(&self) -> u64 {
        0
    }

    /// Compiles a module that verifies. `keep`: its artifact is wanted, too.
    ///
    /// # Errors
    /// [`crate::Code::Unimplemented`]: something is not supported, and the interpreter may know it.
    fn compile(&self, module: &Arc<Module>, options: &CompileOptions, keep: bool) -> Result<Compiled, Error>;

    /// Loads what [`Compiled::artifact`] holds, with what the program takes and gives.
    ///
    /// # Errors
    /// It is none of this back end, or not for this machine ([`crate::Code::FailedPrecondition`]), or damaged
    /// ([`crate::Code::DataLoss`]).
    fn load(&self, artifact: &[u8]) -> Result<(Signature, Arc<dyn Loaded>), Error>;
}

/// What compiling gives.
#[derive(Debug)]
pub struct Compiled {
    /// Ready to run.
    pub loaded: Arc<dyn Loaded>,
    /// The same to be kept; `None`: nobody asked for it, or there is nothing worth keeping.
    pub artifact: Option<Vec<u8>>,
}

/// A program that is ready to run, any number of times and several at once.
pub trait Loaded: fmt::Debug + Send + Sync {
    /// Bytes of memory that a run needs beside its arguments, results included.
    fn run_bytes(&self) -> u64;

    /// Whether results may be the memory of donated arguments.
    fn reuses_arguments(&self) -> bool;

    /// The module whose custom calls the interpreter executes in a run; `None`: it executes nothing. The runs
    /// are given implementations of those that are the client's.
    fn interpreted(&self) -> Option<&Module>;

    /// Runs it on one device: the array leaves of the arguments, in order, give those of the result.
    /// Arguments that are given away are taken out.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn run(
        &self,
        arguments: &mut [Argument<'_>],
        options: &ExecuteOptions,
        calls: &Registry,
    ) -> Result<Arrays, Error>;

    /// Runs it on several devices at once, replicas times partitions; by device.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn run_devices(
        &self,
        arguments: Vec<Vec<Argument<'_>>>,
        devices: hlo_interp::Devices,
        options: &ExecuteOptions,
        calls: &Registry,
    ) -> Result<Vec<Arrays>, Error>;
}

/// An array that a run is given.
#[derive(Debug)]
pub struct Argument<'a> {
    pub(crate) shape: &'a ArrayShape,
    pub(crate) source: Source,
}

#[derive(Debug)]
pub(crate) enum Source {
    /// Stays as it is.
    Lent(Data),
    /// The run may write to it, and hand it back as a result.
    Given(Block),
    /// It was taken.
    Taken,
}

impl Argument<'_> {
    /// Its shape.
    pub fn shape(&self) -> &ArrayShape {
        self.shape
    }

    /// Its bytes, dense and row-major.
    pub fn bytes(&self) -> &[u8] {
        match &self.source {
            Source::Lent(data) => data.bytes(),
            Source::Given(block) => block.bytes(),
            Source::Taken => &[],
        }
    }

    /// A copy on the host.
    pub fn to_literal(&self) -> ArrayLiteral {
        let buffer = buffer_of(self.shape.element_type, self.bytes());
        ArrayLiteral { dims: self.shape.dims.clone(), buffer: buffer.into() }
    }
}

/// What a run leaves: of few arrays without an allocation.
pub type Arrays = SmallVec<[Array; 4]>;

/// An array that a run leaves.
#[derive(Debug)]
pub struct Array {
    /// Its shape, of a result whose sizes are known only now; `None`: what the program says.
    pub shape: Option<Box<ArrayShape>>,
    /// Its memory.
    pub leaf: Leaf,
}
