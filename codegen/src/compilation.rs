//! The result of compilation, as data: the fused and scheduled module, and the machine code of its kernels.
//!
//! It is what is cached on disk and what an ahead-of-time artifact holds (XLA's counterpart is
//! `CompilationResultProto`: module, buffer assignment, object files). Buffer assignment and launch plan are
//! not part of it: [`Assemble::assemble`] derives both from the module, without LLVM. **Invariant:** the
//! plan of a program is always one that was made here from a module that verifies, so what comes from a
//! file may be wrong only in its machine code.

use std::fmt;
use std::sync::Arc;

use hlo::{InstrId, Module};

use crate::Unsupported;
use crate::kernel::{Kernel, Request};
use crate::plan::lower::{Lowered, Lowering};
use crate::program::{Code, Program};
use crate::run_time_sizes::RunTimeSizes;
use hlo_opt::buffers::{self, Assigned, Questions};

/// The buffer assignment of modules with more instructions is not checked.
const MAX_CHECKED_INSTRUCTIONS: usize = 5_000;

/// The code index of a kernel that nothing launches.
const NO_KERNEL: Kernel = Kernel { name: String::new(), phases: Vec::new(), scratch: 0, iterates: false };

/// What compiling leaves, as data, in any back end: what a program is made of without its compiler.
pub trait Assemble: fmt::Debug {
    /// What is executed.
    type Program: fmt::Debug;

    /// Assigns buffers and writes the plan. `verify`: the buffers are checked. `assigned` observes the buffer
    /// assignment.
    fn assemble(
        self,
        verify: bool,
        assigned: &mut dyn FnMut(&Module, &Assigned),
    ) -> Result<Self::Program, AssembleError>;
}

/// A compiled program before buffer assignment, for the runtime of this crate.
#[derive(Debug)]
pub struct Compilation {
    /// Fused and scheduled.
    module: Module,
    lowered: Lowered,
    /// By request of [`Compilation::requests`]; `None`: not supported, so the interpreter executes the
    /// instruction.
    kernels: Vec<Option<Kernel>>,
    code: Code,
    run_time_sizes: Option<RunTimeSizes>,
    fallback: bool,
}

/// Why a compilation gives no program.
#[derive(Debug)]
pub enum AssembleError {
    /// Something is not supported.
    Unsupported(Box<Unsupported>),
    /// The parts do not fit together, or the buffers are wrong: a defect of the compiler, or of the file that
    /// the parts come from.
    Defect(String),
}

impl fmt::Display for AssembleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AssembleError::Unsupported(unsupported) => unsupported.diagnostic().message.fmt(f),
            AssembleError::Defect(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for AssembleError {}

impl From<Unsupported> for AssembleError {
    fn from(unsupported: Unsupported) -> Self {
        AssembleError::Unsupported(Box::new(unsupported))
    }
}

impl Compilation {
    /// Of a fused and scheduled module that has no kernels yet. `fallback`: the interpreter executes what is
    /// not compiled. Errors: what nothing executes.
    pub fn new(
        module: Module,
        run_time_sizes: Option<RunTimeSizes>,
        fallback: bool,
    ) -> Result<Self, Unsupported> {
        let lowered = Lowered::new(&module, fallback)?;
        let kernels = vec![None; lowered.requests.len()];
        Ok(Self { module, lowered, kernels, code: Code::default(), run_time_sizes, fallback })
    }

    /// The module.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// How its instructions are executed.
    pub fn lowered(&self) -> &Lowered {
        &self.lowered
    }

    /// The requests for kernels.
    pub fn requests(&self) -> &[Request] {
        &self.lowered.requests
    }

    /// The kernels, by request.
    pub fn kernels(&self) -> &[Option<Kernel>] {
        &self.kernels
    }

    /// How an instruction is executed, for people: "kernel: row fusion", "library call: GEMV", "copy", ...;
    /// empty of one that does not run.
    pub fn strategy(&self, id: InstrId) -> String {
        let Some(decision) = self.lowered.decisions.get(&id) else { return String::new() };
        let kernel = |request| self.kernels.get(self.lowered.kernel_of(request)?).and_then(Option::as_ref);
        let strategy = match decision {
            Lowering::Kernel(request) => kernel(*request).map(Kernel::strategy).unwrap_or_default(),
            Lowering::Library(library) => library.strategy().to_owned(),
            Lowering::Hero(hero) => hero.library.strategy().to_owned(),
            Lowering::Nothing
            | Lowering::Copy
            | Lowering::While
            | Lowering::Conditional
            | Lowering::Call
            | Lowering::Interpret => String::new(),
        };
        match &strategy[..] {
            "" => decision.describe().to_owned(),
            strategy => format!("{}: {strategy}", decision.describe()),
        }
    }

    /// The object code of its kernels, if they are machine code: each loaded separately; symbols are unique
    /// over all of them.
    pub fn objects(&self) -> &[Arc<[u8]>] {
        self.code.objects()
    }

    /// The adapter for arguments or results of run-time sizes.
    pub fn run_time_sizes(&self) -> Option<&RunTimeSizes> {
        self.run_time_sizes.as_ref()
    }

    /// Whether the interpreter executes what is not compiled.
    pub fn falls_back(&self) -> bool {
        self.fallback
    }

    /// Adds the kernels of its requests, and their code. Errors: it has another number of requests.
    pub fn with_kernels(self, kernels: Vec<Option<Kernel>>, code: Code) -> Result<Self, AssembleError> {
        if kernels.len() != self.lowered.requests.len() {
            let (has, needs) = (kernels.len(), self.lowered.requests.len());
            return Err(AssembleError::Defect(format!("{has} kernels of a module that takes {needs}")));
        }
        Ok(Self { kernels, code, ..self })
    }
}

impl Assemble for Compilation {
    type Program = Program;

    fn assemble(
        mut self,
        verify: bool,
        assigned: &mut dyn FnMut(&Module, &Assigned),
    ) -> Result<Program, AssembleError> {
        let module = self.module;
        self.lowered.without(&module, &self.kernels)?;
        let lowered = self.lowered;
        let loops =
            |id: InstrId| matches!(lowered.decisions.get(&id), Some(Lowering::Kernel(Request::Loop(_))));
        let kernels: Vec<Kernel> = self.kernels.into_iter().map(|k| k.unwrap_or(NO_KERNEL)).collect();
        let scratch = |id: InstrId| lowered.scratch(id, &kernels);
        let epilogues =
            |id: InstrId| matches!(lowered.decisions.get(&id), Some(Lowering::Hero(hero)) if !hero.in_place);
        let questions = Questions { scratch: &scratch, whole: &loops, epilogue_in_place: &epilogues };
        let (buffers, constants) = assign(&module, &questions, verify, assigned)?;
        let shape = module.program_shape(module.entry());
        let shape = shape.ok_or_else(|| AssembleError::Defect("a program without a result".to_owned()))?;
        let interprets = lowered.interprets();
        let plan = lowered.plan(&module, &buffers, &kernels);
        Ok(Program {
            name: module.name.to_string(),
            parameters: shape.parameters.iter().map(hlo::Shape::without_layout).collect(),
            result: shape.result.without_layout(),
            code: self.code,
            kernels,
            buffers: buffers.assignment,
            constants,
            plan,
            module: interprets.then(|| Arc::new(module)),
            run_time_sizes: self.run_time_sizes,
        })
    }
}

/// The buffer assignment of a fused and scheduled module, and the values of its constant allocations.
/// `verify`: the buffers are checked. `assigned` observes the buffer assignment. Errors: buffers that are
/// wrong, constants whose values are not in the text.
pub fn assign(
    module: &Module,
    questions: &Questions<'_>,
    verify: bool,
    assigned: &mut dyn FnMut(&Module, &Assigned),
) -> Result<(Assigned, Vec<Arc<hlo::Literal>>), AssembleError> {
    let buffers = buffers::assign(module, questions)?;
    if verify && module.instruction_capacity() <= MAX_CHECKED_INSTRUCTIONS {
        buffers::check::check(module, &buffers, questions)
            .map_err(|why| AssembleError::Defect(format!("buffers: {why}")))?;
    }
    assigned(module, &buffers);
    let constants = buffers.constants.iter().map(|&(id, leaf)| constant(module, id, leaf as usize));
    let constants = constants.collect::<Result<_, _>>()?;
    Ok((buffers, constants))
}

/// An array leaf of a constant. Errors: its value is not in the text.
fn constant(module: &Module, id: InstrId, leaf: usize) -> Result<Arc<hlo::Literal>, Unsupported> {
    let missing = || Unsupported::new(module, id, "a constant whose value is not in the text");
    let literal = hlo_opt::passes::facts::literal(module, id).ok_or_else(missing)?;
    if literal.as_array().is_some() {
        return Ok(Arc::clone(literal));
    }
    let array = literal.arrays().get(leaf).map(|&a| a.clone()).ok_or_else(missing)?;
    Ok(Arc::new(hlo::Literal::Array(array)))
}
