//! Runs a program of a folder: an engine and every other form of it are held to the reference.

use std::path::Path;

use hlo::diag::codes::UNBOUNDED_SHAPE;
use hlo::{ArrayLiteral, Module};

use super::{FormFile, Listed};
use crate::corpus::{CaseReport, CorpusOptions, Status, kind_of};
use hlo_engines::engine::form::FormEngine;
use hlo_engines::engine::recorded::{read_results, result_arrays};
use hlo_engines::engine::{self, Engine, Inputs, InterpreterEngine, Outcome, RunOptions, array_name};
use hlo_engines::frontend::{instruction_count, load_as, opcodes};
use hlo_engines::inputs;
use hlo_engines::protos::Recorded;
use hlo_system::exit::{Exit, Failure};
use hlo_system::npz::Npz;
use hlo_triage::bisect::dumps::with_values;
use hlo_triage::check::Check;
use hlo_triage::differential::{Difference, Kind, Settings, Subject, differ_from};
use hlo_triage::feeds::Feeds;
use hlo_triage::judge::{Judge, NoVerdict, modes};
use hlo_triage::policy::Policy;

/// The outcome of one engine or form.
struct Finding {
    what: String,
    exit: Exit,
    said: String,
}

/// Runs it. `Err`: why there is nothing to compare.
pub fn run_program(listed: &Listed, options: &CorpusOptions) -> CaseReport {
    let report = CaseReport::of(listed.name.clone(), "program");
    match run(listed, options, &report) {
        Ok(report) => report,
        // Nobody says the shapes of its arguments.
        Err(failure) if failure.message.starts_with(UNBOUNDED_SHAPE.as_str()) => {
            CaseReport { status: Status::Skip, kind: "skip", reason: failure.message, ..report }
        }
        Err(failure) => report.failed(kind_of(failure.exit), failure.message),
    }
}

/// A form's module with values for its elided constants, the number of those, and what the file recorded.
fn loaded(form: &FormFile) -> Result<(Module, usize, Option<Recorded>), Failure> {
    let program = load_as(&form.path.to_string_lossy(), &form.reading());
    let program = program.map_err(|r| Failure::new(r.exit, r.first_line()))?;
    let (module, elided) = with_values(program.module);
    Ok((module, elided, program.recorded))
}

fn run(listed: &Listed, options: &CorpusOptions, report: &CaseReport) -> Result<CaseReport, Failure> {
    let (module, elided, snapshot) = loaded(&listed.program)?;
    let report =
        CaseReport { opcodes: opcodes(&module), instructions: instruction_count(&module), ..report.clone() };
    let limit = options.run.limits.memory_bytes;
    let devices = engine::devices::choose(&module, None, None)?.devices;
    let run = RunOptions { devices, ..options.run };
    let mut notes = Vec::new();
    if elided > 0 {
        notes.push(format!("{elided} elided constants have made-up values"));
    }
    let mut given = None;
    if let Some(path) = &listed.inputs {
        let open = |path: &Path| Npz::open(path, limit);
        match open(path).and_then(|mut npz| inputs::read(&module, &mut npz, devices)) {
            Ok(arrays) => given = Some(arrays),
            // Arrays beside several programs are those of one of them.
            Err(_) if !listed.alone => {}
            Err(failure) => return Err(failure),
        }
    }
    let recorded = given.is_some();
    let mut snapshot_result = None;
    if let (None, Some(snapshot)) = (&given, &snapshot)
        && let Some(arrays) = snapshot.arguments_on(&module, devices)?
    {
        given = Some(arrays);
        snapshot_result = snapshot.result_on(devices);
    }
    let arrays = match given {
        Some(arrays) => arrays,
        None => {
            let plan = inputs::plan(&module, inputs::range_beside(&listed.program.path.to_string_lossy())?)?;
            inputs::generate(&plan, run.seed, devices, limit)?
        }
    };
    for engine in [&*options.engine, &InterpreterEngine as &dyn Engine] {
        if let Err(d) = engine.supports(&module, devices) {
            return Ok(report.failed(kind_of(Exit::Unsupported), d.message));
        }
    }
    let subject = Subject::new(&module, &arrays);
    let settings = Settings { run, policy: options.policy, ..Settings::default() };
    let reference = InterpreterEngine.run(&module, Inputs::new(&module, &arrays)?, &run);
    if !matches!(reference, Outcome::Finished(_)) {
        return match reference.into_results() {
            Err((exit, d)) => Ok(report.failed(kind_of(exit), d.message)),
            Ok(_) => Err(Failure::internal("a run with results counted as one without")),
        };
    }
    let mut undecided = 0;
    let mut exact = true;
    let mut judged = |what: String, engine: &dyn Engine| {
        let found = differ_from(&reference, engine, &subject, &settings);
        undecided += found.tally.undecided;
        exact &= found.kind == Kind::Same;
        finding(what, &found, &options.policy)
    };
    let mut findings = Vec::new();
    if options.engine.name() != InterpreterEngine.name() {
        findings.push(judged(options.engine.name().to_owned(), &*options.engine));
    }
    for form in &listed.forms {
        findings.push(match loaded(form) {
            Ok((other, ..)) => judged(form.label.clone(), &FormEngine::new(form.label.clone(), other)),
            Err(f) => Finding { what: form.label.clone(), exit: f.exit, said: f.message },
        });
    }
    if let Some(path) = listed.expected.as_ref().filter(|_| recorded) {
        let open = Npz::open(path, limit);
        match open.and_then(|mut npz| read_results(&module, &mut npz, devices)) {
            Ok(expected) => findings.push(against_record(&module, &arrays, &expected, run, options)?),
            Err(_) if !listed.alone => {}
            Err(failure) => return Err(failure),
        }
    }
    if let Some(expected) = snapshot_result {
        findings.push(against_record(&module, &arrays, &expected, run, options)?);
    }
    if findings.is_empty() {
        notes.push("runs".to_owned());
    }
    let bad: Vec<&Finding> = findings.iter().filter(|f| f.exit != Exit::Ok).collect();
    let exit = bad.iter().fold(Exit::Ok, |exit, f| exit.first_failure(f.exit));
    let said = |all: &[&Finding]| {
        all.iter().map(|f| format!("{}: {}", f.what, f.said)).collect::<Vec<_>>().join("; ")
    };
    let good: Vec<&Finding> = findings.iter().filter(|f| f.exit == Exit::Ok).collect();
    if !good.is_empty() {
        notes.insert(0, said(&good));
    }
    let report = CaseReport { note: notes.join("; "), undecided, ..report };
    Ok(if bad.is_empty() {
        CaseReport { status: Status::Pass, bit_exact: exact, ..report }
    } else {
        report.failed(kind_of(exit), said(&bad))
    })
}

/// Whether the interpreter gives what is recorded, within the tolerance of `hlo run --expected`.
fn against_record(
    module: &Module,
    inputs: &[Vec<ArrayLiteral>],
    expected: &[Vec<ArrayLiteral>],
    run: RunOptions,
    options: &CorpusOptions,
) -> Result<Finding, Failure> {
    let checks: Vec<Check> =
        result_arrays(module).iter().map(|s| Check::default_for(s.element_type)).collect();
    let judge = Judge {
        engine: &InterpreterEngine,
        module,
        inputs,
        feeds: &Feeds::default(),
        expected,
        checks: &checks,
        options: run,
        modes: modes(module),
        nan_bits: options.policy.nan_bits,
    };
    let judged = match judge.run() {
        Ok(judged) => judged,
        Err(NoVerdict::Run(exit, d)) => return Err(Failure::new(exit, d.message)),
        Err(NoVerdict::Failure(failure)) => return Err(failure),
    };
    let what = "recorded results".to_owned();
    let wrong = judged.verdicts.iter().position(|v| !v.pass);
    Ok(match wrong {
        None if judged.bit_exact() => Finding { what, exit: Exit::Ok, said: "same bits".to_owned() },
        None => Finding { what, exit: Exit::Ok, said: "within tolerance".to_owned() },
        Some(i) => {
            let name = array_name(expected.len(), i / checks.len(), "out", i % checks.len());
            let said = format!("{name}: {}", judged.verdicts[i].reason);
            Finding { what, exit: Exit::Differs, said }
        }
    })
}

fn finding(what: String, found: &Difference, policy: &Policy) -> Finding {
    let exit = found.exit(policy);
    let shown = || found.arrays.iter().filter(|(_, v)| !v.worst.is_empty());
    let worst = shown().find(|(_, v)| v.tally.wrong > 0).or_else(|| shown().next());
    let worst =
        worst.and_then(|(name, v)| v.worst.first().map(|w| hlo_triage::report::text::element(name, w)));
    let why = found.failure.as_ref().map(|d| d.message.clone()).or(worst).filter(|_| exit != Exit::Ok);
    let said =
        if found.kind == Kind::Undecided { found.verdict(policy) } else { found.kind.describe().to_owned() };
    Finding { what, exit, said: why.map_or_else(|| said.clone(), |why| format!("{said}: {why}")) }
}
