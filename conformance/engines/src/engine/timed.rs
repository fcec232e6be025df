//! An engine of this process whose compilations and runs end in time.

use std::sync::Arc;
use std::time::Duration;

use hlo::{Diagnostic, Module};
use hlo_interp::{Devices, Observer};

use super::{Allowances, Engine, Executable, Form, Inputs, Outcome, RunOptions};
use crate::time_limit::within;

/// Another engine, each of whose compilations and runs may take so long.
pub struct TimedEngine {
    inner: Arc<dyn Engine>,
    limit: Duration,
}

impl TimedEngine {
    /// The engine within a limit.
    pub fn new(inner: Arc<dyn Engine>, limit: Duration) -> Self {
        Self { inner, limit }
    }
}

impl Engine for TimedEngine {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn allowances(&self) -> Allowances {
        self.inner.allowances()
    }

    fn supports(&self, module: &Module, devices: Devices) -> Result<(), Diagnostic> {
        self.inner.supports(module, devices)
    }

    fn knows_one_program(&self) -> bool {
        self.inner.knows_one_program()
    }

    fn is_compiler(&self) -> bool {
        self.inner.is_compiler()
    }

    fn evaluated(&self) -> Option<Arc<dyn Engine>> {
        self.inner.evaluated()
    }

    // A run that polls nothing does not end.
    fn ends_by_itself(&self) -> bool {
        self.inner.ends_by_itself()
    }

    fn compile<'m>(&'m self, module: &'m Module) -> Result<Box<dyn Executable + 'm>, Outcome> {
        let compiled = within(self.limit, || self.inner.compile(module));
        let inner = compiled.unwrap_or_else(|unfinished| Err(unfinished.outcome(self.name())))?;
        Ok(Box::new(Timed { inner, engine: self }))
    }
}

/// A program of such an engine.
struct Timed<'e> {
    inner: Box<dyn Executable + 'e>,
    engine: &'e TimedEngine,
}

impl Executable for Timed<'_> {
    fn run(&self, inputs: Inputs, options: &RunOptions, observer: Option<Arc<dyn Observer>>) -> Outcome {
        let run = within(self.engine.limit, || self.inner.run(inputs, options, observer));
        run.unwrap_or_else(|unfinished| unfinished.outcome(self.engine.name()))
    }

    fn form(&self) -> Option<Form<'_>> {
        self.inner.form()
    }

    fn strategy(&self, step: &str) -> Option<String> {
        self.inner.strategy(step)
    }

    fn watched(&self) -> Option<Box<dyn Executable + '_>> {
        let inner = within(self.engine.limit, || self.inner.watched()).ok().flatten()?;
        Some(Box::new(Timed { inner, engine: self.engine }))
    }

    fn can_be_observed(&self) -> bool {
        self.inner.can_be_observed()
    }
}
