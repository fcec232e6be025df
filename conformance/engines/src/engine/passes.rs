//! The interpreter on what passes make of a program: real passes, permitted variants and seeded faults alike.

use std::sync::Arc;

use hlo::diag::codes;
use hlo::{Diagnostic, Module, Span};
use hlo_interp::{Accumulate, Devices, Observer};
use hlo_opt::passes::{Fuel, Pipeline};

use super::interpreter::interpret;
use super::{Allowances, Engine, Executable, Form, Inputs, Outcome, RunOptions, support};

/// Passes, then the interpreter.
#[derive(Debug)]
pub struct PassesEngine {
    name: String,
    pipeline: Pipeline,
    allowances: Allowances,
    accumulate: Option<Accumulate>,
}

impl PassesEngine {
    /// Runs what `pipeline` makes of a program. `allowances` are the liberties that its passes take.
    pub fn new(name: String, pipeline: Pipeline, allowances: Allowances) -> Self {
        Self { name, pipeline, allowances, accumulate: None }
    }

    /// With sums that round so, whatever a run asks for.
    #[must_use]
    pub fn with_accumulate(self, accumulate: Option<Accumulate>) -> Self {
        Self { accumulate, ..self }
    }
}

impl Engine for PassesEngine {
    fn name(&self) -> &str {
        &self.name
    }

    fn allowances(&self) -> Allowances {
        self.allowances
    }

    fn supports(&self, module: &Module, _devices: Devices) -> Result<(), Diagnostic> {
        support::custom_calls(module, self.name())
    }

    fn compile<'m>(&'m self, module: &'m Module) -> Result<Box<dyn Executable + 'm>, Outcome> {
        let mut rewritten = module.clone();
        let mut fuel = Fuel::UNLIMITED;
        let configuration = super::cpu::machine().configuration;
        let ran = configuration.with(|| self.pipeline.run(&mut rewritten, &mut fuel)).map_err(|broken| {
            let why = broken.diagnostics.into_iter().next().map(|d| d.message.clone()).unwrap_or_default();
            let message = format!("what the pass {} made does not verify: {why}", broken.pass);
            Outcome::Crashed(Diagnostic::error(codes::ENGINE_FAILED, Span::NONE, message))
        })?;
        if ran.iter().all(|r| r.applications == 0) {
            return Ok(Box::new(Rewritten { form: None, source: module, accumulate: self.accumulate }));
        }
        Ok(Box::new(Rewritten { form: Some(rewritten), source: module, accumulate: self.accumulate }))
    }
}

/// The program after passes; `None` if none applied.
#[derive(Debug)]
struct Rewritten<'m> {
    form: Option<Module>,
    source: &'m Module,
    accumulate: Option<Accumulate>,
}

impl Executable for Rewritten<'_> {
    fn run(&self, inputs: Inputs, options: &RunOptions, observer: Option<Arc<dyn Observer>>) -> Outcome {
        let options = RunOptions { accumulate: self.accumulate.unwrap_or(options.accumulate), ..*options };
        interpret(self.form.as_ref().unwrap_or(self.source), inputs, &options, observer)
    }

    fn form(&self) -> Option<Form<'_>> {
        Some(self.form.as_ref().map_or(Form::same(self.source), Form::of))
    }
}
