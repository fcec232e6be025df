//! Every seeded fault hunted, reduced and isolated: what the harness is measured by.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hlo::{Module, Opcode};
use serde::Serialize;

use super::{Event, Finding, Hunt, Source, hunt};
use hlo_engines::engine::{Engine, InterpreterEngine, by_name};
use hlo_engines::faults::{self, Fault};
use hlo_engines::frontend::instruction_count;
use hlo_system::exit::Failure;
use hlo_system::guard::guarded;
use hlo_triage::differential::{Kind, Settings, Subject};
use hlo_triage::isolate::blame;
use hlo_triage::reduce::{self, Candidate, Differential, Trouble};

/// The limits for each fault.
#[derive(Clone, Debug)]
pub struct Effort {
    /// The source of programs.
    pub source: Source,
    /// The number.
    pub count: u64,
    /// Time to find it.
    pub hunt_time: Duration,
    /// Time to reduce it.
    pub reduce_time: Duration,
    /// Threads.
    pub jobs: usize,
    /// Options of comparisons.
    pub settings: Settings,
}

/// The result for one fault.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The fault.
    pub fault: String,
    /// Its family.
    pub family: &'static str,
    /// Programs until it was found, that one included.
    pub programs: u64,
    /// Seconds until it was found, or given up.
    pub hunt_seconds: f64,
    /// The kind of the finding.
    pub kind: Option<Kind>,
    /// Instructions of the program that was found.
    pub instructions: usize,
    /// Instructions after reduction, without those of applied computations (reducers, comparators).
    pub reduced_instructions: usize,
    /// The largest dimension after reduction.
    pub reduced_dimension: i64,
    /// Seconds that reduction took.
    pub reduce_seconds: f64,
    /// Whether reduction came to its end.
    pub fixpoint: bool,
    /// The opcode that isolation names on the reduced program.
    pub isolated: Option<&'static str>,
    /// The failed expectations.
    pub failures: Vec<String>,
    /// The reduced program.
    pub text: String,
}

/// Hunts one fault. Errors: there is no engine for it.
pub fn accept(fault: &Fault, effort: &Effort) -> Result<Report, Failure> {
    let name = fault.pass().name().to_owned();
    let engine = by_name(&format!("faulty:{name}"))?;
    let mut report = Report {
        fault: name,
        family: fault.family.name(),
        programs: 0,
        hunt_seconds: 0.0,
        kind: None,
        instructions: 0,
        reduced_instructions: 0,
        reduced_dimension: 0,
        reduce_seconds: 0.0,
        fixpoint: false,
        isolated: None,
        failures: Vec::new(),
        text: String::new(),
    };
    let found: Mutex<Option<Finding>> = Mutex::new(None);
    let the_hunt = Hunt {
        reference: &InterpreterEngine,
        engines: vec![&*engine],
        source: effort.source.clone(),
        count: effort.count,
        shard: (0, 1),
        max_findings: 1,
        keep_undecided: false,
        keep_all: false,
        max_time: Some(effort.hunt_time),
        timeout: effort.hunt_time,
        jobs: effort.jobs,
        settings: effort.settings,
    };
    let totals = hunt(&the_hunt, &|event| {
        if let Event::Found(finding) = event {
            *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(finding.clone());
        }
    });
    report.programs = totals.programs;
    report.hunt_seconds = totals.seconds;
    let Some(finding) = found.into_inner().unwrap_or_else(PoisonError::into_inner) else {
        report.failures.push("not found".into());
        return Ok(report);
    };
    report.kind = Some(finding.signature.kind);
    report.instructions = instruction_count(&finding.program.module);
    if finding.signature.kind != Kind::Wrong {
        report.failures.push(format!("found as {}", finding.signature.kind.describe()));
    }
    reduced(fault, &engine, finding, effort, &mut report);
    Ok(report)
}

/// Reduces the finding, and isolates what is left.
fn reduced(fault: &Fault, engine: &Arc<dyn Engine>, finding: Finding, effort: &Effort, report: &mut Report) {
    let oracle = Differential {
        reference: Arc::new(InterpreterEngine),
        engine: engine.clone(),
        settings: finding.settings,
        time: None,
        trouble: Trouble::default(),
    };
    let options = reduce::Options {
        jobs: effort.jobs,
        max_time: Some(effort.reduce_time),
        ..reduce::Options::default()
    };
    let original = Candidate { module: finding.program.module, inputs: finding.program.inputs };
    let start = Instant::now();
    let outcome = guarded("reducing", || Ok(reduce::reduce(&original, &oracle, &options, &mut |_, _| {})));
    report.reduce_seconds = start.elapsed().as_secs_f64();
    let smallest = match outcome {
        Ok(Ok(smallest)) => smallest,
        Ok(Err(e)) => return report.failures.push(format!("not reduced: {e}")),
        Err(f) => return report.failures.push(format!("not reduced: {}", f.message)),
    };
    let module = &smallest.best.module;
    report.fixpoint = smallest.fixpoint;
    report.reduced_instructions = outside_regions(module);
    report.reduced_dimension = largest_dimension(module);
    report.text = reduce::text(module);
    if !smallest.fixpoint {
        report.failures.push(format!("no fixpoint within {} s", effort.reduce_time.as_secs()));
    }
    let (instructions, dimension) = fault.needs.reduced_size(fault.family);
    if report.reduced_instructions > instructions {
        report.failures.push(format!("reduced to more than {instructions} instructions"));
    }
    if report.reduced_dimension > dimension {
        report.failures.push(format!("reduced to dimensions of more than {dimension}"));
    }
    let mut settings = finding.settings;
    if let Ok(devices) = hlo_engines::engine::devices::stated(module, None, None) {
        settings.run.devices = devices;
    }
    let blamed = blame(&Subject::new(module, &smallest.best.inputs), &**engine, &settings);
    report.isolated = blamed.map(|b| b.location.opcode.name());
    let right = |o: &Opcode| Some(o.name()) == report.isolated;
    // A fault that merges any two instructions names none.
    if !fault.opcodes.is_empty() && !fault.opcodes.iter().any(right) {
        let wanted: Vec<&str> = fault.opcodes.iter().map(|o| o.name()).collect();
        let got = report.isolated.unwrap_or("nothing");
        report.failures.push(format!("isolated {got} rather than {}", wanted.join(" or ")));
    }
}

/// Instructions without those of applied computations: a sort cannot do without its comparator.
fn outside_regions(module: &Module) -> usize {
    let all = || module.computations().iter().copied();
    let mut applied = Vec::new();
    for id in all().flat_map(|c| module.instructions(c)) {
        let instr = module.instr(id);
        let calls = matches!(
            instr.opcode,
            Opcode::Call | Opcode::Fusion | Opcode::While | Opcode::Conditional | Opcode::AsyncStart
        );
        if !calls {
            applied.extend(instr.attrs.called_computations());
        }
    }
    all().filter(|c| !applied.contains(c)).map(|c| module.computation(c).len()).sum()
}

/// The largest dimension of any array.
fn largest_dimension(module: &Module) -> i64 {
    let instructions = module.computations().iter().flat_map(|&c| module.instructions(c));
    let leaves = instructions.flat_map(|i| module.instr(i).shape.leaves());
    leaves.filter_map(hlo::Shape::as_array).flat_map(|a| a.dims.iter().copied()).max().unwrap_or(0)
}

/// The faults to hunt: those of these names, or all. Errors: one that there is not.
pub fn chosen(names: &[String]) -> Result<Vec<Fault>, Failure> {
    for name in names {
        by_name(&format!("faulty:{name}"))?;
    }
    let mut all = faults::all();
    all.retain(|f| names.is_empty() || names.iter().any(|n| n == f.pass().name()));
    Ok(all)
}
