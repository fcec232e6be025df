//! Engines: whatever can give the results of a program.
//!
//! A run has one or more devices, and everything that belongs to one of them is a list with an entry for
//! each, in the order of their numbers: `replica * partitions + partition`.
//!
//! **Invariants:** an engine ends with results or with a named outcome, never with a guess; comparing,
//! reporting and reducing know only the traits.
//!
//! | engine ([`spec`]) | what it is |
//! |---|---|
//! | `interpreter` | the reference ([`interpreter`]) |
//! | `interpreter:VARIANT` | the interpreter as a correct compiler may differ from it: other orders of sums, contraction ([`passes`]) |
//! | `cpu`, `cpu:O0` to `cpu:O3` | the compiler for this machine ([`cpu`]); with `+fallback` the interpreter executes what is not compiled |
//! | `cpu:scalar` | the same up to its kernels, which are evaluated element by element; needs no LLVM |
//! | `passes:P,Q` | the interpreter on what passes make of the program ([`passes`]) |
//! | `form:FILE` | the interpreter on another form of the program ([`form`]) |
//! | `faulty:NAME` | the interpreter on what a wrong pass makes of it ([`passes`]) |
//! | `recorded:FILE` | results that were recorded ([`recorded`]) |
//! | `pjrt:PLUGIN.so` | a PJRT plugin in this process ([`pjrt`]) |
//! | `xla-gpu:DIR`, `xla-gpu` | XLA's GPU compiler: its PTX, executed without a GPU ([`xla_gpu`]) |
//! | `exec:COMMAND`, `serve:COMMAND` | another program ([`external`]) |
//! | `child:ENGINE` | any of these in a process of its own ([`external`]) |

pub mod cpu;
pub mod devices;
pub mod external;
pub mod form;
pub mod frozen;
pub mod gpu;
pub mod interpreter;
pub mod passes;
pub mod pjrt;
pub mod programs;
pub mod recorded;
mod server;
pub mod spec;
pub mod support;
pub mod timed;
mod watched;
pub mod xla_gpu;

use std::sync::Arc;

use hlo::diag::codes;
use hlo::{Diagnostic, Module, Span};
use hlo_interp::{Devices, Observer};

pub use form::Form;
pub use frozen::{ConstantArguments, FrozenEngine};
pub use hlo_execution::allowances::Allowances;
pub use hlo_execution::functions::{Functions, Library};
pub use hlo_execution::run::{
    Compilation, Finished, Inputs, Limits, Outcome, RunOptions, array_name, flatten, named,
};
pub use hlo_execution::run::{bytes_beside, distinct_bytes};
pub use interpreter::InterpreterEngine;
pub use spec::cpu_options;
pub use spec::{PLATFORMS, allowances, by_name, names_of, with_fallback, with_timeout};
/// Something that runs programs.
pub trait Engine: Send + Sync {
    /// The name that `--platform` and `--engines` take.
    fn name(&self) -> &str;

    /// What its results may differ by from those of the reference, besides what strict numerics grant all.
    fn allowances(&self) -> Allowances {
        Allowances::STRICT
    }

    /// Whether it runs this program on these devices, as far as that is known before running. Errors: a
    /// diagnostic that names the opcode.
    fn supports(&self, module: &Module, devices: Devices) -> Result<(), Diagnostic>;

    /// Whether it has an answer to one program only, whatever it is given: results or a form that was
    /// recorded.
    fn knows_one_program(&self) -> bool {
        false
    }

    /// Whether it is this project's compiler, whose results are held to those of the reference wherever they
    /// are judged.
    fn is_compiler(&self) -> bool {
        false
    }

    /// The same compiler with its kernels evaluated element by element, if it makes machine code of them.
    fn evaluated(&self) -> Option<Arc<dyn Engine>> {
        None
    }

    /// Whether its runs end within a time that it sets them, whatever they do.
    fn ends_by_itself(&self) -> bool {
        false
    }

    /// Makes a verified program ready to run any number of times. Errors: an outcome without results.
    fn compile<'m>(&'m self, module: &'m Module) -> Result<Box<dyn Executable + 'm>, Outcome>;

    /// Compiles and runs a verified program.
    fn run(&self, module: &Module, inputs: Inputs, options: &RunOptions) -> Outcome {
        self.run_watched(module, inputs, options, None)
    }

    /// The same, telling an observer of every instruction, which it may end. An engine that cannot says
    /// [`Outcome::Unsupported`].
    fn run_watched(
        &self,
        module: &Module,
        inputs: Inputs,
        options: &RunOptions,
        observer: Option<Arc<dyn Observer>>,
    ) -> Outcome {
        match self.compile(module) {
            Ok(executable) => executable.run(inputs, options, observer),
            Err(outcome) => outcome,
        }
    }
}

/// A program that an engine made ready.
pub trait Executable: Send + Sync {
    /// Runs it. With an observer: [`Outcome::Unsupported`] if there is no [`Executable::form`].
    fn run(&self, inputs: Inputs, options: &RunOptions, observer: Option<Arc<dyn Observer>>) -> Outcome;

    /// The HLO that is executed instruction by instruction, if it is HLO; an observer sees that, and what it
    /// injects is used.
    fn form(&self) -> Option<Form<'_>> {
        None
    }

    /// How the step of this name is computed, by the names of docs/compiler.md ("kernel: row fusion",
    /// "library call: GEMV"); `None` of engines that have no steps, or do not say.
    fn strategy(&self, _step: &str) -> Option<String> {
        None
    }

    /// The same program so that an observer sees what its steps leave: its [`Executable::form`] is what they
    /// execute, made of the program by rewritings that keep every bit. `None`: that cannot be, or the program
    /// can be observed as it is.
    fn watched(&self) -> Option<Box<dyn Executable + '_>> {
        None
    }

    /// Whether it may have a form, now or watched: what costs nothing to ask.
    fn can_be_observed(&self) -> bool {
        self.form().is_some()
    }
}

/// That an engine cannot be observed.
pub fn not_observable(engine: &str) -> Outcome {
    let d = Diagnostic::error(
        codes::UNSUPPORTED_OPCODE,
        Span::NONE,
        format!("the engine `{engine}` does not execute HLO that can be watched"),
    );
    Outcome::Unsupported(d)
}
