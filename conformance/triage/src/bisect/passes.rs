//! The first of some passes after which a program computes something else, and the first application of it
//! that makes the difference.
//!
//! After each pass that changed something the program is verified, run and compared, from the first pass on;
//! then the pass that fails is run again with fuel for 1, 2, ... applications (by halves, where there are
//! many) on what the passes before it left. Everything is computed anew from the program, so the same
//! question has the same answer.

use hlo::diag::Severity;
use hlo::{Diagnostic, Module};
use hlo_interp::{Accumulate, Devices, Observer};
use hlo_opt::passes::{Fuel, Pipeline};
use serde::Serialize;
use std::sync::Arc;

use super::changes::{Changes, between};
use crate::differential::{Difference, Settings, Subject, differ_from, reference_run};
use hlo_engines::engine::interpreter::interpret;
use hlo_engines::engine::{
    Allowances, Engine, Executable, Form, Inputs, InterpreterEngine, Limits, Outcome, RunOptions,
};
use hlo_system::exit::Failure;
use hlo_system::guard::guarded;

/// Up to this many applications are tried one after the other (linear search).
const MAX_LINEAR_APPLICATIONS: u64 = 48;

/// The fault of a program after passes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Bad {
    /// `wrong result`, `does not verify`, `pass crashed`, `crash`, `trap`, `timeout`.
    pub what: &'static str,
    /// How, in a few lines.
    pub how: Vec<String>,
}

/// A pass that breaks the program.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Found {
    /// Its index in the pipeline, from 0.
    pub step: usize,
    /// Its name.
    pub pass: String,
    /// The application that does it, from 1.
    pub application: u64,
    /// The number of applications of the pass; up to the crash, if it crashed.
    pub applications: u64,
    /// The fault after that application.
    pub bad: Bad,
    /// The instructions that it changed; nothing if the pass crashed in it.
    pub changes: Changes,
}

/// The effect of a pass, for people.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Step {
    /// Its name.
    pub pass: String,
    /// The number of its applications.
    pub applications: u64,
    /// The program after it computes the same.
    pub fine: bool,
}

/// The result of a bisection.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The passes up to the one that is to blame.
    pub steps: Vec<Step>,
    /// The pass to blame.
    pub found: Option<Found>,
}

/// The inputs of a bisection.
#[derive(Debug)]
pub struct Question<'a> {
    /// The program and its inputs.
    pub subject: Subject<'a>,
    /// The passes.
    pub pipeline: &'a Pipeline,
    /// Options of runs and comparisons.
    pub settings: Settings,
    /// Liberties that the passes take.
    pub allowances: Allowances,
    /// How sums round after the passes, if not as in the reference.
    pub accumulate: Option<Accumulate>,
}

/// The program after passes, for the interpreter.
#[derive(Debug)]
struct Made<'a> {
    form: &'a Module,
    allowances: Allowances,
    accumulate: Option<Accumulate>,
    fuel: Option<u64>,
}

impl Engine for Made<'_> {
    fn name(&self) -> &str {
        "what the passes made"
    }

    fn allowances(&self) -> Allowances {
        self.allowances
    }

    fn supports(&self, _module: &Module, _devices: Devices) -> Result<(), Diagnostic> {
        Ok(())
    }

    fn compile<'m>(&'m self, _module: &'m Module) -> Result<Box<dyn Executable + 'm>, Outcome> {
        Ok(Box::new(Ready(self)))
    }
}

#[derive(Debug)]
struct Ready<'a>(&'a Made<'a>);

impl Executable for Ready<'_> {
    fn run(&self, inputs: Inputs, options: &RunOptions, observer: Option<Arc<dyn Observer>>) -> Outcome {
        let options = RunOptions {
            accumulate: self.0.accumulate.unwrap_or(options.accumulate),
            limits: Limits { fuel: self.0.fuel, ..options.limits },
            ..*options
        };
        interpret(self.0.form, inputs, &options, observer)
    }

    fn form(&self) -> Option<Form<'_>> {
        Some(Form::of(self.0.form))
    }
}

/// Bisects. Errors: the program itself cannot be run.
pub fn run(question: &Question<'_>) -> Result<Report, Failure> {
    let expected = reference_run(&InterpreterEngine, &question.subject, &question.settings);
    let finished = expected.clone().into_results().map_err(|(exit, d)| {
        Failure::new(exit, format!("the program itself cannot be run: {}", d.message))
    })?;
    // A loop that a pass made endless ends too.
    let fuel = question.settings.run.limits.fuel.unwrap_or(finished.fuel.saturating_mul(64) + (1 << 20));
    let judge = Judge { question, expected: &expected, fuel };
    let mut report = Report { steps: Vec::new(), found: None };
    let mut before = question.subject.module.clone();
    for (step, pass) in question.pipeline.passes().enumerate() {
        let name = pass.name().to_owned();
        let (applications, bad, after) = match judge.after(&before, step, None) {
            Ok((0, _)) => {
                report.steps.push(Step { pass: name, applications: 0, fine: true });
                continue;
            }
            Ok((n, after)) => (n, judge.bad(&after), Some(after)),
            Err(bad) => (0, Some(bad), None),
        };
        let fine = bad.is_none();
        report.steps.push(Step { pass: name.clone(), applications, fine });
        match (bad, after) {
            (None, Some(after)) => before = after,
            (bad, after) => {
                let bad = bad.unwrap_or(Bad { what: "wrong result", how: Vec::new() });
                report.found = Some(judge.application(&before, step, name, applications, bad, after));
                break;
            }
        }
    }
    Ok(report)
}

struct Judge<'a> {
    question: &'a Question<'a>,
    expected: &'a Outcome,
    fuel: u64,
}

impl Judge<'_> {
    /// Runs a pass with a limit of fuel. Errors: it crashed.
    fn after(&self, before: &Module, step: usize, fuel: Option<u64>) -> Result<(u64, Module), Bad> {
        let mut module = before.clone();
        let mut fuel = fuel.map_or(Fuel::UNLIMITED, Fuel::new);
        let ran = guarded("running a pass", || {
            Ok(self.question.pipeline.step(step, &mut module, &mut fuel, &mut ()))
        });
        match ran {
            // What does not verify is found by `bad`.
            Ok(Ok(_) | Err(_)) => Ok((fuel.taken(), module)),
            Err(failure) => Err(Bad {
                what: "pass crashed",
                how: failure.message.lines().take(1).map(str::to_owned).collect(),
            }),
        }
    }

    /// The fault of the program after passes.
    fn bad(&self, module: &Module) -> Option<Bad> {
        let found = hlo::verify::verify(module);
        if found.has_errors() {
            let errors = found.iter().filter(|d| d.severity == Severity::Error).take(4);
            let how = errors.map(|d| format!("{}: {}", d.code.as_str(), d.message)).collect();
            return Some(Bad { what: "does not verify", how });
        }
        let engine = Made {
            form: module,
            allowances: self.question.allowances,
            accumulate: self.question.accumulate,
            fuel: Some(self.fuel),
        };
        let judged = guarded("running what a pass made", || {
            Ok(differ_from(self.expected, &engine, &self.question.subject, &self.question.settings))
        });
        match judged {
            Ok(difference) if difference.kind.is_failure() => {
                Some(Bad { what: difference.kind.describe(), how: described(&difference) })
            }
            Ok(_) => None,
            Err(failure) => {
                Some(Bad { what: "crash", how: failure.message.lines().take(1).map(str::to_owned).collect() })
            }
        }
    }

    /// The first application after which something is wrong, given that it is after all of them.
    fn application(
        &self,
        before: &Module,
        step: usize,
        pass: String,
        applications: u64,
        bad: Bad,
        after: Option<Module>,
    ) -> Found {
        let tried = |n: u64| match self.after(before, step, Some(n)) {
            Ok((taken, module)) => (self.bad(&module), Some(module), taken),
            Err(bad) => (Some(bad), None, n),
        };
        // A pass that crashed did not say how often it applied: as far as it goes without.
        let all = if after.is_some() { applications } else { self.reach(before, step) };
        let (mut good, mut first, mut end) = (0, all.max(1), (bad, after));
        while first - good > 1 {
            let n = if all <= MAX_LINEAR_APPLICATIONS { good + 1 } else { good + (first - good) / 2 };
            match tried(n) {
                (None, _, _) => good = n,
                (Some(bad), module, _) => (first, end) = (n, (bad, module)),
            }
        }
        let changes = match (&end.1, self.after(before, step, Some(good))) {
            (Some(after), Ok((_, before))) => between(&before, after),
            (_, _) => Changes::default(),
        };
        Found { step, pass, application: first, applications: all, bad: end.0, changes }
    }

    /// The smallest number of applications with which a pass crashes.
    fn reach(&self, before: &Module, step: usize) -> u64 {
        let crashes = |n| self.after(before, step, Some(n)).is_err();
        let mut high = 1;
        while !crashes(high) && high < 1 << 32 {
            high *= 2;
        }
        let mut low = high / 2;
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if crashes(middle) { high = middle } else { low = middle }
        }
        high
    }
}

/// The result of a comparison, in a few lines.
fn described(difference: &Difference) -> Vec<String> {
    let mut lines: Vec<String> = difference.failure.iter().map(|d| d.message.clone()).collect();
    for (name, verdict) in difference.arrays.iter().take(4) {
        let wrong = verdict.tally.wrong;
        let all = verdict.tally.total();
        match verdict.worst.first() {
            Some(worst) => lines.push(format!(
                "{name}: {wrong} of {all} elements wrong, at {:?} {} and not {}",
                worst.index, worst.actual, worst.expected
            )),
            None => lines.push(format!("{name}: {wrong} of {all} elements wrong")),
        }
    }
    if let Some(kind) = difference.blamed {
        lines.push(format!("the first instruction that diverges is of opcode {}", kind.opcode));
    }
    lines
}
