//! What is known not to be supported before anything runs, and who was asked.

use std::sync::Arc;

use hlo::{AttrKey, Diagnostic, Module};
use hlo_interp::{Devices, Observer, REFUSAL};

use super::{Allowances, Engine, Executable, Form, Inputs, Outcome, RunOptions};

/// Whether the interpreter, which executes custom calls for compiled programs too, knows every custom call
/// that a run comes to.
///
/// Errors: the first call that it does not know, or not of these operands.
pub(super) fn custom_calls(module: &Module, engine: &str) -> Result<(), Diagnostic> {
    match hlo_client::backend::unknown_custom_call(module) {
        None => Ok(()),
        Some((id, error)) => Err(named(engine, with_a_way_on(error.to_diagnostic(), module.instr(id)))),
    }
}

fn with_a_way_on(diagnostic: Diagnostic, instr: &hlo::Instruction) -> Diagnostic {
    let target = instr.attrs.str(AttrKey::CustomCallTarget).unwrap_or_default();
    diagnostic.note(format!(
        "`--custom-call '{target}=identity'` (or `zeros`, or a file of its results `FILE.npz`) goes on without it"
    ))
}

/// The same refusal as that of the platform that was asked for, whoever found it.
pub fn named(engine: &str, mut diagnostic: Diagnostic) -> Diagnostic {
    if engine != "interpreter"
        && let Some(subject) = SUBJECTS.iter().find(|s| diagnostic.message.contains(*s))
    {
        let asked = format!("platform {engine} does not support ");
        diagnostic.message = diagnostic.message.replacen(subject, &asked, 1);
    }
    diagnostic
}

/// The prefixes of refusals of the interpreter and of the compiler.
const SUBJECTS: [&str; 2] = [REFUSAL, hlo_codegen::REFUSAL];

/// An engine with one program that it has made ready, so that what it refuses is known before inputs are
/// made, and it is compiled once for all of them.
pub struct Ready<'e> {
    engine: &'e dyn Engine,
    module: &'e Module,
    compiled: Result<Box<dyn Executable + 'e>, Outcome>,
}

impl<'e> Ready<'e> {
    /// Makes a verified program ready.
    pub fn new(engine: &'e dyn Engine, module: &'e Module) -> Self {
        Self { engine, module, compiled: engine.compile(module) }
    }

    /// That compiling took too long.
    pub fn timed_out(&self) -> Option<&Diagnostic> {
        match &self.compiled {
            Err(Outcome::TimedOut(diagnostic)) => Some(diagnostic),
            Ok(_) | Err(_) => None,
        }
    }

    /// Why the program cannot be run; `None` if it can, as far as is known.
    pub fn refusal(&self) -> Option<&Diagnostic> {
        match &self.compiled {
            Err(Outcome::Unsupported(diagnostic)) => Some(diagnostic),
            Ok(_) | Err(_) => None,
        }
    }
}

impl Engine for Ready<'_> {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn allowances(&self) -> Allowances {
        self.engine.allowances()
    }

    fn supports(&self, module: &Module, devices: Devices) -> Result<(), Diagnostic> {
        self.engine.supports(module, devices)
    }

    fn knows_one_program(&self) -> bool {
        self.engine.knows_one_program()
    }

    fn is_compiler(&self) -> bool {
        self.engine.is_compiler()
    }

    fn ends_by_itself(&self) -> bool {
        self.engine.ends_by_itself()
    }

    fn compile<'m>(&'m self, module: &'m Module) -> Result<Box<dyn Executable + 'm>, Outcome> {
        if !std::ptr::eq(module, self.module) {
            return self.engine.compile(module);
        }
        match &self.compiled {
            Ok(executable) => Ok(Box::new(Borrowed(&**executable))),
            Err(outcome) => Err(outcome.clone()),
        }
    }
}

/// A program that the caller keeps.
struct Borrowed<'e>(&'e (dyn Executable + 'e));

impl Executable for Borrowed<'_> {
    fn run(&self, inputs: Inputs, options: &RunOptions, observer: Option<Arc<dyn Observer>>) -> Outcome {
        self.0.run(inputs, options, observer)
    }

    fn form(&self) -> Option<Form<'_>> {
        self.0.form()
    }

    fn strategy(&self, step: &str) -> Option<String> {
        self.0.strategy(step)
    }

    fn watched(&self) -> Option<Box<dyn Executable + '_>> {
        self.0.watched()
    }

    fn can_be_observed(&self) -> bool {
        self.0.can_be_observed()
    }
}
