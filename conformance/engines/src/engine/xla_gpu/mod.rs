//! XLA's GPU compiler as an engine, without a GPU: its own PTX is executed, kernel by kernel, by `hlo-ptx`.
//!
//! `xla-gpu:DIR` reads what XLA left in a folder (`--xla_dump_to`); `xla-gpu` has XLA compile the program
//! first ([`compile`]). The optimized module runs in the interpreter; where it comes to an instruction that
//! launches kernels, these run on the values of its operands, and their results are the instruction's
//! ([`observe`]). Copies, loops, branches, calls of libraries and asynchronous pairs are the HLO that they
//! stand for.
//!
//! What an engine of a folder runs ([`forms`]):
//! - **the optimized module itself**, or any program of instructions of it (such as those that `hlo isolate`
//!   and `hlo reduce` make): then the replay injects the reference's values into each kernel's operands, and
//!   each kernel is judged alone;
//! - **the program that XLA compiled**: the first one with parameters and results of the same shapes. Then
//!   its results are judged.
//!
//! | file | what |
//! |---|---|
//! | `thunks`, `buffers` | launch list and buffer assignment, read |
//! | `schedule` | which instruction each launch executes |
//! | `names` | which memory an instruction's value is in |
//! | `dump` | a folder, read and checked |
//! | `layout` | arrays as the device holds them |
//! | `launch` | the kernels of one instruction on values |
//! | `mirror` | a second target, on which each launch is repeated |
//! | `observe` | a run |
//!
//! **Invariants:** a kernel gets the arrays that its instruction has as operands, in memory that overlaps
//! where XLA's does; what the checker of `hlo-ptx` finds ends the run with [`codes::KERNEL_FAULT`], whatever
//! the results are; an instruction is executed by kernels only where it is what XLA compiled.

mod buffers;
mod compile;
mod dump;
mod forms;
mod launch;
mod layout;
pub mod mirror;
mod names;
mod observe;
mod schedule;
mod thunks;

use std::sync::{Arc, Mutex, OnceLock};

use hlo::diag::codes;
use hlo::{Diagnostic, InstrId, Module, Span, fingerprint};
use hlo_interp::{Devices, Observer};

use super::interpreter::interpret;
use super::{
    Allowances, Compilation, Engine, Executable, Form, Inputs, Outcome, RunOptions, flatten, not_observable,
};
use dump::Dump;
use hlo_system::exit::{Exit, Failure};
use launch::{Failed, Limits};
use mirror::{Mirror, Watching};
use observe::{Host, State};

pub use compile::XlaGpuCompiler;

/// Instructions of threads of a launch, at most, if a run has no limit: minutes.
const DEFAULT_FUEL: u64 = 1 << 36;

/// XLA:GPU's compilation of one program.
#[derive(Debug)]
pub struct XlaGpuEngine {
    name: String,
    dump: Arc<Dump>,
    /// The program before compilation.
    program: OnceLock<Program>,
    mirror: Watching,
}

/// The program that an engine of a folder was given first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Program {
    /// The optimized module, or a part of it.
    Optimized,
    /// What was compiled, by its fingerprint. Another program with parameters and results of the same shapes
    /// is not what the dump is of.
    Source(u128),
}

impl XlaGpuEngine {
    /// Reads a folder, or the files of one that begin with a prefix. Errors: a part is missing
    /// ([`Exit::Usage`]), is not what it should be ([`Exit::Parse`]), or does not fit the others
    /// ([`Exit::Verify`]).
    pub fn folder(path: &str) -> Result<Self, Failure> {
        let dump = Arc::new(Dump::read(path)?);
        Ok(Self {
            name: format!("xla-gpu:{path}"),
            dump,
            program: OnceLock::new(),
            mirror: Watching::default(),
        })
    }

    /// The same with one of its PTX files replaced: its name, and the new text. Errors: as of
    /// [`XlaGpuEngine::folder`].
    pub fn changed(path: &str, file: &str, text: &str) -> Result<Self, Failure> {
        let change = |name: &str, is: String| if name == file { text.to_owned() } else { is };
        let dump = Arc::new(Dump::read_changed(path, &change)?);
        Ok(Self {
            name: format!("xla-gpu:{path}"),
            dump,
            program: OnceLock::new(),
            mirror: Watching::default(),
        })
    }

    /// The PTX files of the dump: their names and texts.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.dump.ptx.iter().map(|p| (&*p.file, &*p.text))
    }

    /// The instructions that launch kernels of a PTX file.
    pub fn launchers(&self, file: &str) -> Vec<String> {
        let module = &self.dump.module;
        let all = module.computations().iter().flat_map(|&c| module.instructions(c));
        let is_of_file = |id: &InstrId| {
            let kernel = self.dump.kernels[id.index()].as_ref();
            kernel.is_some_and(|k| k.launches.iter().any(|&(number, _)| self.dump.ptx[number].file == file))
        };
        all.filter(is_of_file).map(|id| module.instr(id).name.to_string()).collect()
    }

    /// Notifies an observer of each launch from now on.
    #[must_use]
    pub fn mirrored(mut self, mirror: Arc<dyn Mirror>) -> Self {
        self.mirror = Watching(Some(mirror));
        self
    }

    /// The optimized module: each kernel is judged alone where this is the program.
    pub fn optimized(&self) -> &Module {
        &self.dump.module
    }

    /// The number of instructions that launch kernels of the dump's PTX.
    pub fn kernels(&self) -> usize {
        self.dump.kernels.iter().flatten().count()
    }
}

/// Reads a PTX text. Errors: [`Exit::Parse`] or [`Exit::Verify`], with all that is wrong, each with its line.
pub fn ptx_module(file: &str, text: &str) -> Result<hlo_ptx::ir::Module, Failure> {
    hlo_ptx::lower::module(text).map_err(|found| {
        let is_syntax = found.iter().any(|d| d.code.starts_with("X00"));
        let all: Vec<String> = found.iter().map(ToString::to_string).collect();
        let exit = if is_syntax { Exit::Parse } else { Exit::Verify };
        Failure::new(exit, format!("{file}: {}", all.join("\n")))
    })
}

/// What XLA's GPU compiler may do: everything that its CPU compiler does, with its own functions and TF32 in
/// products of f32.
const LIBERTIES: Allowances =
    Allowances { tf32: true, functions: super::Functions::XLA_GPU, ..Allowances::LOOSE };

impl Engine for XlaGpuEngine {
    fn name(&self) -> &str {
        &self.name
    }

    fn allowances(&self) -> Allowances {
        LIBERTIES
    }

    fn supports(&self, module: &Module, devices: Devices) -> Result<(), Diagnostic> {
        if devices.count() != 1 {
            return Err(unsupported(format!("`{}` is a program of one device", self.name)));
        }
        if forms::launches(&self.dump, module).is_some() {
            self.program.get_or_init(|| Program::Optimized);
            return Ok(());
        }
        forms::takes_and_gives_the_same(&self.dump, module).map_err(unsupported)?;
        // Where the optimized module is the program, what stands for a value that was left out is the same on
        // both sides.
        if let Some(name) = forms::left_out(&self.dump) {
            return Err(unsupported(forms::left_out_message(&self.dump, name)));
        }
        let this = Program::Source(fingerprint(module));
        if *self.program.get_or_init(|| this) == this {
            return Ok(());
        }
        Err(unsupported(format!(
            "{} is of another program, and has none of its instructions",
            self.dump.file
        )))
    }

    fn compile<'m>(&'m self, module: &'m Module) -> Result<Box<dyn Executable + 'm>, Outcome> {
        self.supports(module, Devices::ONE).map_err(Outcome::Unsupported)?;
        Ok(Box::new(Compiled {
            mirror: self.mirror.clone(),
            ..Compiled::new(&self.name, self.dump.clone(), module)
        }))
    }
}

fn unsupported(message: String) -> Diagnostic {
    Diagnostic::error(codes::UNSUPPORTED_OPCODE, Span::NONE, message)
}

/// A program whose kernels are known.
#[derive(Debug)]
struct Compiled {
    name: String,
    dump: Arc<Dump>,
    /// The module that the interpreter runs.
    form: Module,
    /// By instruction of the form, that of the dump whose kernels it launches.
    launches: Arc<[Option<InstrId>]>,
    /// The module that an observer sees.
    seen: Seen,
    mirror: Watching,
}

/// An observer's view of a run.
#[derive(Debug)]
enum Seen {
    /// The program's own instructions.
    Program,
    /// The optimized module, but for what is inside of kernels.
    Optimized(Vec<bool>),
    /// Nothing: what runs is the optimized module, whose instructions are not the program's.
    Nothing,
}

impl Compiled {
    fn new(name: &str, dump: Arc<Dump>, module: &Module) -> Self {
        let found = forms::launches(&dump, module);
        let seen = if found.is_some() { Seen::Program } else { Seen::Nothing };
        let (runs, launches) = match found {
            Some(launches) => (module, launches),
            None => (&dump.module, forms::own(&dump)),
        };
        let form = observe::hollowed(runs, &launches);
        Self {
            name: name.to_owned(),
            form,
            launches: launches.into(),
            dump,
            seen,
            mirror: Watching::default(),
        }
    }
}

impl Compiled {
    /// The program's arguments as the optimized module's parameters: XLA may have taken tuples apart.
    fn flattened(&self, inputs: Inputs) -> Result<Inputs, Outcome> {
        let mut arrays = Vec::new();
        inputs.arguments.into_iter().flatten().for_each(|literal| flatten(literal, &mut arrays));
        let arguments = Inputs::new(&self.form, &[arrays]).map_err(Outcome::before)?.arguments;
        Ok(Inputs { arguments, host: inputs.host })
    }
}

impl Executable for Compiled {
    fn run(&self, inputs: Inputs, options: &RunOptions, observer: Option<Arc<dyn Observer>>) -> Outcome {
        if observer.is_some() && matches!(self.seen, Seen::Nothing) {
            return not_observable(&self.name);
        }
        if options.devices.count() != 1 {
            return Outcome::Unsupported(unsupported(format!("`{}` is a program of one device", self.name)));
        }
        let inputs = match &self.seen {
            Seen::Program | Seen::Optimized(_) => inputs,
            Seen::Nothing => match self.flattened(inputs) {
                Ok(inputs) => inputs,
                Err(outcome) => return outcome,
            },
        };
        let limits =
            Limits { fuel: options.limits.fuel.unwrap_or(DEFAULT_FUEL), memory_bytes: options.memory_left() };
        let host = Arc::new(Host {
            dump: self.dump.clone(),
            launches: self.launches.clone(),
            limits,
            mirror: self.mirror.clone(),
            inner: observer,
            state: Mutex::new(State::default()),
        });
        let outcome = interpret(&self.form, inputs, options, Some(host.clone()));
        let mut state = host.lock();
        if let Some(failed) = state.failed.take() {
            return failed.outcome();
        }
        match outcome {
            Outcome::Finished(mut finished) => {
                finished.compiled = Some(Box::new(Compilation {
                    machine: format!("XLA:GPU's PTX, {} instructions of threads", state.instructions),
                    time: std::time::Duration::ZERO,
                    kernels: Some(state.kernels),
                    temporary_bytes: None,
                    io_bytes: 0,
                }));
                Outcome::Finished(finished)
            }
            other => other,
        }
    }

    fn form(&self) -> Option<Form<'_>> {
        match &self.seen {
            Seen::Program => Some(Form::of(&self.form)),
            Seen::Optimized(seen) => Some(Form::seen_at(&self.form, seen)),
            Seen::Nothing => None,
        }
    }

    /// The optimized module, whose instructions are not the program's.
    fn watched(&self) -> Option<Box<dyn Executable + '_>> {
        match self.seen {
            Seen::Program | Seen::Optimized(_) => None,
            Seen::Nothing => {
                let launches = forms::own(&self.dump);
                let seen = Seen::Optimized(observe::outside_of_kernels(&self.dump.module, &launches));
                let (name, dump, form) = (self.name.clone(), self.dump.clone(), self.dump.module.clone());
                let (launches, mirror) = (launches.into(), self.mirror.clone());
                Some(Box::new(Compiled { name, dump, form, launches, seen, mirror }))
            }
        }
    }

    fn can_be_observed(&self) -> bool {
        true
    }
}

impl Failed {
    fn outcome(self) -> Outcome {
        let error = |code, message| Diagnostic::error(code, Span::NONE, message);
        match self {
            Failed::Kernel(message) => Outcome::Crashed(error(codes::KERNEL_FAULT, message)),
            Failed::Unsupported(message) => Outcome::Unsupported(unsupported(message)),
            Failed::OutOfFuel(message) => Outcome::Trap(error(codes::OUT_OF_FUEL, message)),
            Failed::OutOfMemory(message) => Outcome::exhausted(message),
        }
    }
}
