//! The runs of filetests on another engine than the interpreter.

use std::sync::Arc;

use hlo::diag::codes;
use hlo::{Module, Opcode};
use rustc_hash::FxHashSet;

use super::host::TextHost;
use super::{Run, Spec, directive, prepare, split};

use crate::coverage::{Executed, Key};
use hlo_engines::engine::{Engine, InterpreterEngine, Limits, Outcome};
use hlo_engines::frontend::parse_text;
use hlo_system::guard::guarded;
use hlo_triage::differential::{Difference, Hosts, Kind, Settings, Subject, differ_compiled};
use hlo_triage::policy::Policy;

/// The outcome of a run.
#[derive(Debug)]
pub struct Ran {
    /// The line of the file.
    pub line: usize,
    /// The pairs that the interpreter executed.
    pub executed: FxHashSet<(Opcode, Key)>,
    /// Where the engine ended otherwise. Runs that the interpreter stops must stop with the same code; those
    /// that it refuses or stops for a limit or unordered feeds may end in any way but a crash.
    pub difference: Difference,
}

/// Runs the `interpret` tests of a file on an engine, unchecked. Errors: the file is no filetest.
pub fn run_file_on(engine: &dyn Engine, name: &str, text: &str) -> Result<Vec<Ran>, String> {
    let mut all = Vec::new();
    for chunk in split(text) {
        let at = |e: String| format!("{name}:{}: {e}", chunk.first_line);
        let spec = directive::parse(chunk.text, chunk.first_line).map_err(at)?;
        if !spec.kinds.contains(&directive::Kind::Interpret) {
            continue;
        }
        let module = parse_text(&spec.program).0.ok_or_else(|| at("it does not parse".to_owned()))?;
        let what = format!("testing {name}:{}", chunk.first_line);
        let ran = guarded(&what, || Ok(run_program(engine, &module, &spec)));
        all.extend(ran.unwrap_or_else(|f| Err(f.message)).map_err(at)?);
    }
    Ok(all)
}

fn run_program(engine: &dyn Engine, module: &Module, spec: &Spec) -> Result<Vec<Ran>, String> {
    let mut compiled = engine.compile(module);
    spec.runs.iter().map(|run| run_one(engine, module, &mut compiled, spec, run)).collect()
}

fn run_one(
    engine: &dyn Engine,
    module: &Module,
    compiled: &mut Result<Box<dyn hlo_engines::engine::Executable + '_>, Outcome>,
    spec: &Spec,
    run: &Run,
) -> Result<Ran, String> {
    let (arguments, options) = prepare(module, run, spec)?;
    let count = arguments.len();
    let infeed = spec.infeed.clone();
    let host = Hosts::new(move || Arc::new(TextHost::new(&infeed, count)));
    let subject = Subject { host, ..Subject::new(module, &arguments) };
    let watch = Arc::new(Executed::default());
    let expected = match subject.inputs() {
        Ok(inputs) => InterpreterEngine.run_watched(module, inputs, &options, Some(watch.clone())),
        Err(outcome) => outcome,
    };
    let code = |o: &Outcome| o.diagnostic().map(|d| d.code);
    let difference = match compiled {
        Err(outcome) => Difference::ended(
            if matches!(outcome, Outcome::Unsupported(_)) { Kind::Unsupported } else { Kind::Crash },
            outcome.diagnostic().cloned(),
        ),
        Ok(executable) => match &expected {
            Outcome::Finished(_) => {
                let policy = Policy { nan_bits: spec.nan_bits, ..Policy::default() };
                let settings = Settings { run: options, policy, ..Settings::default() };
                differ_compiled(&expected, engine, &**executable, &subject, &settings)
            }
            // A compiled program goes on for ever where the reference finds that out.
            stopped if code(stopped) == Some(codes::ENDLESS_LOOP) && options.limits.fuel.is_none() => {
                Difference::ended(Kind::Same, None)
            }
            stopped => {
                let outcome = match subject.inputs() {
                    Ok(inputs) => executable.run(inputs, &options, None),
                    Err(outcome) => outcome,
                };
                let limited = options.limits != Limits { fuel: None, memory_bytes: 1 << 30 };
                // Compiled programs are scheduled: feeds have an order.
                let free = limited
                    || matches!(stopped, Outcome::Unsupported(_))
                    || code(stopped) == Some(codes::UNORDERED);
                let kind = match &outcome {
                    Outcome::Crashed(_) => Kind::Crash,
                    other if free || code(other) == code(stopped) => Kind::Same,
                    Outcome::Unsupported(_) => Kind::Unsupported,
                    _ => Kind::Wrong,
                };
                Difference::ended(kind, outcome.diagnostic().cloned())
            }
        },
    };
    Ok(Ran { line: run.line, executed: watch.take(), difference })
}
