//! What `hlo run` tells of a run besides its result: `--trace`, `--stop-at`, `--stats`.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use hlo::{ArrayLiteral, Literal, Module};
use serde::Serialize;

use super::ui::Ui;
use hlo_engines::engine::{Engine, Inputs, Outcome, RunOptions, flatten};
use hlo_system::exit::{Exit, Failure};
use hlo_system::resident::Mark;
use hlo_triage::report::{self, parse_bytes};
use hlo_triage::watch::Watchers;
use hlo_triage::watch::stats::{Found, Stats};
use hlo_triage::watch::stop::{StopAt, Target, full_name};
use hlo_triage::watch::trace::{Recorder, Written};

/// Options of `hlo run` that watch the run. With any of them results are not compared.
#[derive(Args, Debug)]
pub(crate) struct WatchOptions {
    /// Write the value of every executed instruction to this folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["expected", "reference_platform", "iterations"])]
    trace: Option<String>,
    /// What a trace keeps of each array
    #[arg(long, value_enum, default_value_t = TraceValues::Full, value_name = "FORM", requires = "trace")]
    trace_values: TraceValues,
    /// Larger arrays get a summary only
    #[arg(long, value_name = "BYTES", default_value = "1MiB", value_parser = parse_bytes, requires = "trace")]
    trace_limit: u64,
    /// Give an instruction's value instead of the result: NAME, COMPUTATION.NAME, either with #N for
    /// execution N from 0
    #[arg(long, value_name = "NAME", conflicts_with_all = ["expected", "reference_platform", "iterations"])]
    stop_at: Option<String>,
    /// Count and time every opcode, instead of comparing results
    #[arg(long, conflicts_with_all = ["expected", "reference_platform"])]
    stats: bool,
}

/// `--trace-values`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum TraceValues {
    /// Arrays and their summaries
    Full,
    /// Minimum, maximum, numbers of NaNs, infinities and zeros, hash
    Summary,
}

/// The trace.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    stats: Option<(Found, Memory)>,
    trace: Option<(String, Written)>,
    stopped: Option<String>,
}

/// Memory of a run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Memory {
    /// The growth of the process, with the inputs.
    peak_bytes: Option<u64>,
    /// The most bytes of arrays alive at once.
    live_bytes: u64,
}

impl WatchOptions {
    /// Whether the run is watched at all.
    pub(crate) fn any(&self) -> bool {
        self.stats || self.one_program().is_some()
    }

    /// The option, if there is one, that takes one program only.
    pub(crate) fn one_program(&self) -> Option<&'static str> {
        match (&self.trace, &self.stop_at) {
            (Some(_), _) => Some("--trace"),
            (None, Some(_)) => Some("--stop-at"),
            (None, None) => None,
        }
    }

    /// Runs a program and watches it.
    pub(crate) fn run(
        &self,
        engine: &dyn Engine,
        module: &Module,
        inputs: Inputs,
        options: &RunOptions,
    ) -> Result<(Outcome, Watched), Failure> {
        if let (Some(option), true) = (self.one_program(), options.devices.count() > 1) {
            let message =
                format!("{option} watches one device; this program runs on {}", options.devices.count());
            return Err(Failure::new(Exit::Unsupported, message));
        }
        let limit = match self.trace_values {
            TraceValues::Full => self.trace_limit,
            TraceValues::Summary => 0,
        };
        let target = self.stop_at.as_deref().map(|t| Target::find(module, t)).transpose()?;
        let trace =
            self.trace.as_ref().map(|folder| Recorder::create(Path::new(folder), limit)).transpose()?;
        let watchers = Arc::new(Watchers {
            stats: self.stats.then(Stats::default),
            trace,
            stop: target.map(StopAt::new),
        });
        let input_bytes: u64 = inputs.arguments.iter().flatten().flat_map(Literal::arrays).map(bytes).sum();
        let before = if self.stats { Mark::set() } else { None };
        let mut outcome = engine.run_watched(module, inputs, options, Some(watchers.clone()));
        let grown = before.and_then(Mark::growth);
        let Some(watchers) = Arc::into_inner(watchers) else {
            return Err(Failure::internal("the engine still watches a run that has ended"));
        };

        let mut watched = Watched::default();
        if let Some(stats) = watchers.stats {
            let found = stats.found();
            let live_bytes = found.peak.as_ref().map_or(0, |p| p.bytes);
            let peak_bytes = grown.map(|g| g + input_bytes);
            watched.stats = Some((found, Memory { peak_bytes, live_bytes }));
        }
        // Of a run that failed the trace ends with the instruction before the one that failed.
        if let (Some(recorder), Some(folder)) = (watchers.trace, &self.trace) {
            watched.trace = Some((folder.clone(), recorder.finish(&module.name)?));
        }
        if let (Some(stop), Some(target), Outcome::Finished(finished)) = (watchers.stop, target, &mut outcome)
        {
            finished.results.clear();
            let values = stop.into_values(module)?;
            let mut arrays = Vec::new();
            values.into_iter().for_each(|(_, value)| flatten(value, &mut arrays));
            finished.results.push(arrays);
            let name = full_name(module, module.instr(target.id).parent(), target.id);
            watched.stopped = Some(format!("{name}, execution {}", target.execution));
        }
        Ok((outcome, watched))
    }
}

fn bytes(array: &ArrayLiteral) -> u64 {
    array.buffer.len() as u64 * array.buffer.element_type().storage_bytes() as u64
}

/// `stats` under `--json`.
#[derive(Serialize)]
pub(crate) struct StatsObject {
    opcodes: Vec<OpcodeObject>,
    ms: f64,
    #[serde(flatten)]
    memory: Memory,
    /// After which instruction most bytes of arrays were alive.
    most_alive_after: Option<String>,
}

#[derive(Serialize)]
struct OpcodeObject {
    opcode: &'static str,
    count: u64,
    elements: u64,
    bytes: u64,
    ms: f64,
    share: f64,
}

impl Watched {
    /// For machines.
    pub(crate) fn stats_object(&self) -> Option<StatsObject> {
        let (found, memory) = self.stats.as_ref()?;
        let total = found.time.as_secs_f64();
        let opcodes = found.rows.iter().map(|(opcode, row)| OpcodeObject {
            opcode: opcode.name(),
            count: row.count,
            elements: row.elements,
            bytes: row.bytes,
            ms: row.time.as_secs_f64() * 1e3,
            share: share(row.time.as_secs_f64(), total),
        });
        Some(StatsObject {
            opcodes: opcodes.collect(),
            ms: total * 1e3,
            memory: *memory,
            most_alive_after: found.peak.as_ref().map(|p| p.after.clone()),
        })
    }

    /// `FOLDER`, if a trace was written.
    pub(crate) fn trace(&self) -> Option<&str> {
        self.trace.as_ref().map(|(folder, _)| &**folder)
    }

    /// Which instruction's value the results are.
    pub(crate) fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// For people.
    pub(crate) fn print(&self, ui: &Ui) {
        if let Some(at) = &self.stopped {
            ui.detail(format!("  stopped  at {at}: its value follows"));
        }
        if let Some((folder, written)) = &self.trace {
            ui.detail(format!(
                "  trace    {folder}: {} values, {} arrays stored",
                report::grouped(written.records),
                report::grouped(written.arrays)
            ));
        }
        let Some((found, memory)) = &self.stats else { return };
        let total = found.time.as_secs_f64();
        ui.line(format!(
            "  stats    {:24} {:>10} {:>10} {:>10} {:>10} {:>6}",
            "opcode", "count", "elements", "bytes", "time", "share"
        ));
        for (opcode, row) in &found.rows {
            ui.line(format!(
                "           {:24} {:>10} {:>10} {:>10} {:>10} {:>5.1}%",
                opcode.name(),
                report::count(row.count),
                report::count(row.elements),
                report::bytes(row.bytes),
                report::time(row.time),
                share(row.time.as_secs_f64(), total) * 100.0
            ));
        }
        if let Some(peak) = &found.peak {
            let process = memory.peak_bytes.map_or_else(String::new, |b| {
                format!(", process {} ({:.2} x)", report::bytes(b), b as f64 / peak.bytes.max(1) as f64)
            });
            ui.line(format!(
                "  memory   arrays {} at most, after {}{process}",
                report::bytes(peak.bytes),
                peak.after
            ));
        }
    }
}

fn share(part: f64, total: f64) -> f64 {
    if total > 0.0 { part / total } else { 0.0 }
}
