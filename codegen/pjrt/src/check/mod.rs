//! Check mode: executions judged against the reference interpreter.
//!
//! The compiled program runs as ever. Then the reference runs on the same arguments, and works out beside
//! every element how far a correct compiler may be from it (`hlo-certify`): what is beyond that is wrong. A
//! wrong execution is saved as a folder that `hlo run FOLDER` repeats, the instruction that is to blame is
//! looked for ([`blame`]), and the call ends with an error that says its line of Python, or the line is
//! logged.
//!
//! **Invariants:** what is given back is never changed by a check; nothing is called wrong but by a bound;
//! what cannot be judged (callbacks, handlers of others, communication with a host, want of memory) is not
//! judged, and the record says why.

mod blame;
mod record;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hlo::attrs::AttrValue;
use hlo::{ArrayLiteral, AttrKey, InstrId, Instruction, Module, Opcode};
use hlo_certify::bounds::certify;
use hlo_client::VerifiedModule;
use hlo_client::backend::unknown_custom_call;
use hlo_execution::allowances::Allowances;
use hlo_execution::run::{Inputs, RunOptions};
use hlo_execution::verdict::{self, ArrayVerdict, Tally};
use hlo_interp::Devices;

use crate::error::{Failure, Result};
use record::Record;

/// Arrays by device.
pub type Arrays = Vec<Vec<ArrayLiteral>>;

/// The reaction to a wrong result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Action {
    /// The execution ends with an error.
    #[default]
    Raise,
    /// It is said on the standard error.
    Log,
}

/// Options of checking executions.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Of how many executions of a program one is judged, the first among them; 0: none.
    pub every: u64,
    /// The reaction to a wrong result.
    pub action: Action,
    /// The folder below which wrong executions are saved; `None`: they are not.
    pub save: Option<PathBuf>,
    /// A file to which a line of JSON is added for every execution that was judged.
    pub log: Option<PathBuf>,
    /// The name of the test in records.
    pub test: fn() -> Option<String>,
}

/// Whether this build has check mode.
pub const IS_THERE: bool = true;

/// The bytes that the machine, the process and its group have left.
pub fn memory_there_is() -> Option<u64> {
    let there = hlo_system::memory_budget::available(1);
    (there.bytes < u64::MAX).then_some(there.bytes)
}

/// Reads `HLO_CHECK`: `1`, `1/16`, `0`.
pub fn sample(text: &str) -> Option<u64> {
    let (one, every) = text.split_once('/').unwrap_or((text, "1"));
    match (one.trim().parse::<u64>().ok()?, every.trim().parse::<u64>().ok()?) {
        (0, 1..) => Some(0),
        (1, every @ 1..) => Some(every),
        _ => None,
    }
}

/// The checks of one program.
#[derive(Debug)]
pub struct Checks {
    settings: Settings,
    /// Why the program cannot be judged.
    refused: Option<String>,
    executions: AtomicU64,
}

/// An execution: arrays by device.
#[derive(Debug)]
pub struct Execution<'a> {
    /// The program.
    pub source: &'a VerifiedModule,
    /// The compiler.
    pub engine: &'a hlo_client::Client,
    /// Its devices.
    pub devices: Devices,
    /// The arguments.
    pub arguments: Arrays,
    /// The results.
    pub results: Arrays,
}

/// The verdict on an execution.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) tally: Tally,
    /// For each device and result.
    pub(crate) arrays: Vec<Vec<ArrayVerdict>>,
    /// The reference's results.
    pub(crate) expected: Vec<Vec<ArrayLiteral>>,
}

impl Verdict {
    /// The first array that has a wrong element: its device and number.
    fn first_wrong(&self) -> Option<(usize, usize)> {
        let wrong = |arrays: &Vec<ArrayVerdict>| arrays.iter().position(|a| a.tally.wrong > 0);
        self.arrays.iter().enumerate().find_map(|(device, arrays)| Some((device, wrong(arrays)?)))
    }

    pub(crate) fn name(&self) -> &'static str {
        match self.tally {
            Tally { wrong: 1.., .. } => "wrong",
            Tally { undecided: 1.., .. } => "undecided",
            Tally { explained: 1.., .. } => "explained",
            Tally { .. } => "same bits",
        }
    }
}

impl Checks {
    /// Of a program.
    pub fn new(settings: Settings, source: &VerifiedModule) -> Option<Self> {
        let refused = cannot_be_judged(source.module());
        Some(Self { settings, refused, executions: AtomicU64::new(0) })
    }

    /// Whether the execution that begins is one to judge; then its arguments are kept, and [`Checks::judge`]
    /// is told how it ended.
    pub fn begin(&self, program: &str) -> bool {
        let before = self.executions.fetch_add(1, Ordering::Relaxed);
        if self.settings.every == 0 || !before.is_multiple_of(self.settings.every) {
            return false;
        }
        if let Some(reason) = &self.refused {
            self.record(&Record::not_judged(program, reason.clone()));
            return false;
        }
        true
    }

    fn record(&self, record: &Record) {
        if let Some(path) = &self.settings.log {
            record.append(path, (self.settings.test)());
        }
    }

    /// Judges an execution.
    ///
    /// # Errors
    /// A result is wrong, and that is to raise.
    pub fn judge(&self, execution: &Execution<'_>) -> Result<()> {
        let start = Instant::now();
        let module = execution.source.module();
        let name = module.name.to_string();
        let verdict = match judged(module, execution.devices, &execution.arguments, &execution.results) {
            Ok(verdict) => verdict,
            Err(reason) => {
                self.record(&Record::not_judged(&name, reason));
                return Ok(());
            }
        };
        let mut record = Record::of(&name, &verdict);
        let Some((device, result)) = verdict.first_wrong() else {
            self.record(&record.took(start));
            return Ok(());
        };
        let blamed = blame::find(execution, device, result);
        record.message = message(execution, &verdict, (device, result), &blamed);
        record.blamed = Some(blamed.location());
        if let Some(parent) = &self.settings.save {
            match record::save(parent, execution, &verdict, &record.message, blamed.opcode()) {
                Ok(folder) => record.saved = Some(folder),
                Err(why) => record.message += &format!("; it could not be saved: {why}"),
            }
        }
        let said = match &record.saved {
            Some(folder) => format!(
                "{}\n  saved: {} (`hlo run {}` repeats it)",
                record.message,
                folder.display(),
                folder.display()
            ),
            None => record.message.clone(),
        };
        self.record(&record.took(start));
        match self.settings.action {
            Action::Raise => Err(Failure::internal(format!("hlo check: {said}"))),
            Action::Log => {
                crate::log::line(&format!("check: {said}"));
                Ok(())
            }
        }
    }
}

/// Runs the reference with bounds, and compares. Errors: why there is no verdict.
pub(crate) fn judged(
    module: &Module,
    devices: Devices,
    arguments: &[Vec<ArrayLiteral>],
    results: &[Vec<ArrayLiteral>],
) -> std::result::Result<Verdict, String> {
    let inputs = Inputs::new(module, arguments).map_err(|failure| failure.message)?;
    let options = RunOptions { devices, ..RunOptions::default() };
    let certified = certify(module, inputs, &options, Allowances::STRICT, &mut ()).map_err(|outcome| {
        let diagnostic = outcome.diagnostic().map(|d| d.message.clone());
        format!("the reference has no results: {}", diagnostic.unwrap_or_default())
    })?;
    let mut verdict = Verdict::default();
    for (actual, expected) in results.iter().zip(certified.results) {
        if actual.len() != expected.len() {
            return Err(format!("{} results, {} of the reference", actual.len(), expected.len()));
        }
        let mut of_device = Vec::with_capacity(actual.len());
        let mut references = Vec::with_capacity(actual.len());
        for (actual, (expected, bounds)) in actual.iter().zip(expected) {
            let one = verdict::judge(&expected, actual, &bounds, false)?;
            verdict.tally.add(&one.tally);
            of_device.push(one);
            references.push(expected);
        }
        verdict.arrays.push(of_device);
        verdict.expected.push(references);
    }
    Ok(verdict)
}

/// Why a program cannot be judged: a run of the reference would do something again, or something else.
fn cannot_be_judged(module: &Module) -> Option<String> {
    if let Some((call, _)) = unknown_custom_call(module) {
        let target = module.instr(call).attrs.str(AttrKey::CustomCallTarget).unwrap_or_default();
        return Some(format!("calls {target}, which only the caller has"));
    }
    let refused = |instr: &Instruction| {
        matches!(instr.opcode, Opcode::Infeed | Opcode::Outfeed | Opcode::Rng | Opcode::RngGetAndUpdateState)
            || (matches!(instr.opcode, Opcode::Send | Opcode::Recv)
                && instr.attrs.bool(AttrKey::IsHostTransfer))
    };
    let all = module.computations().iter().flat_map(|&c| module.instructions(c));
    let found = all.into_iter().find(|&id| refused(module.instr(id)))?;
    Some(format!("{} has more than its arguments to go by", module.instr(found).opcode.name()))
}

/// A sentence or two on a wrong execution.
fn message(
    execution: &Execution<'_>,
    verdict: &Verdict,
    (device, result): (usize, usize),
    blamed: &blame::Blamed,
) -> String {
    let module = execution.source.module();
    let array = &verdict.arrays[device][result];
    let on = if verdict.arrays.len() > 1 { format!(" on device {device}") } else { String::new() };
    let mut text = format!(
        "{} of {} elements of result {result}{on} of {} are wrong",
        array.tally.wrong,
        array.tally.total(),
        module.name
    );
    if let Some(worst) = array.worst.first() {
        let index: Vec<String> = worst.index.iter().map(i64::to_string).collect();
        text += &format!(": at [{}] {}, not {}", index.join(", "), worst.actual, worst.expected);
        if let Some(bound) = worst.bound {
            text += &format!(" (within {bound:e} would be explained)");
        }
    }
    text += &format!("\n  {}", blamed.describe(module));
    text
}

/// `f.py:12, jit(f)/sin`: where an instruction is from.
pub(crate) fn source_location(module: &Module, id: InstrId) -> Option<String> {
    let Some(AttrValue::Metadata(metadata)) = module.instr(id).attrs.get(AttrKey::Metadata) else {
        return None;
    };
    let file = metadata.source_file.as_deref().filter(|f| !f.is_empty());
    let at = file.map(|file| match metadata.source_line {
        Some(line) => format!("{file}:{line}"),
        None => file.to_owned(),
    });
    let op = metadata.op_name.as_deref().filter(|n| !n.is_empty());
    match (at, op) {
        (Some(at), Some(op)) => Some(format!("{at} ({op})")),
        (Some(one), None) => Some(one),
        (None, op) => op.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::Buffer;

    #[test]
    fn samples() {
        assert_eq!(sample("1"), Some(1));
        assert_eq!(sample("1/16"), Some(16));
        assert_eq!(sample("0"), Some(0));
        for wrong in ["", "2", "1/0", "one", "1/", "-1"] {
            assert_eq!(sample(wrong), None, "{wrong}");
        }
    }

    fn floats(values: &[f32]) -> ArrayLiteral {
        ArrayLiteral::new([values.len() as i64].as_slice().into(), Buffer::F32(values.to_vec())).unwrap()
    }

    const TEXT: &str = "HloModule m
        ENTRY main {
          x = f32[2] parameter(0)
          s = f32[2] sine(x), metadata={op_name=\"jit(f)/sin\" source_file=\"f.py\" source_line=3}
          y = f32[2] add(s, s), metadata={op_name=\"jit(f)/add\" source_file=\"f.py\" source_line=4}
          ROOT r = (f32[2], f32[2]) tuple(y, x) }";

    fn settings(action: Action, folder: &std::path::Path) -> Settings {
        let (save, log) = (Some(folder.to_owned()), Some(folder.join("log.jsonl")));
        Settings { every: 1, action, save, log, test: || Some("a test".to_owned()) }
    }

    #[test]
    fn a_wrong_result_is_blamed_saved_and_raised() {
        let engine = hlo_client::Client::interpreter(hlo_client::ClientOptions::default()).unwrap();
        let source = VerifiedModule::parse(TEXT).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let x = floats(&[0.5, 1.0]);
        let right = floats(&[2.0 * 0.5_f32.sin(), 2.0 * 1.0_f32.sin()]);
        let execution = |results: Vec<ArrayLiteral>| Execution {
            source: &source,
            engine: &engine,
            devices: Devices::ONE,
            arguments: vec![vec![x.clone()]],
            results: vec![results],
        };
        let checks = Checks::new(settings(Action::Raise, folder.path()), &source).unwrap();
        assert!(checks.begin("m"));
        checks.judge(&execution(vec![right.clone(), x.clone()])).unwrap();
        let wrong = execution(vec![floats(&[2.0 * 0.5_f32.sin(), 1.5]), x.clone()]);
        let error = checks.judge(&wrong).unwrap_err();
        for word in
            ["1 of 2 elements of result 0", "at [1] 1.5, not 1.68294", "f.py:4 (jit(f)/add)", "saved:"]
        {
            assert!(error.message.contains(word), "{word}: {}", error.message);
        }
        let log = std::fs::read_to_string(folder.path().join("log.jsonl")).unwrap();
        let lines: Vec<serde_json::Value> = log.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(lines[1]["verdict"], "wrong");
        assert_eq!(lines[1]["test"], "a test");
        let saved = std::path::Path::new(lines[1]["saved"].as_str().unwrap()).to_owned();
        for file in ["module.hlo", "inputs.npz", "expected.npz", "actual.npz", "finding.json"] {
            assert!(saved.join(file).is_file(), "{file}");
        }
        // The same by a log: the execution goes on.
        let checks = Checks::new(settings(Action::Log, folder.path()), &source).unwrap();
        checks.judge(&wrong).unwrap();
    }

    #[test]
    fn what_only_the_caller_has_is_not_judged() {
        let folder = tempfile::tempdir().unwrap();
        let text = "HloModule m
            ENTRY main { ROOT y = f32[2] custom-call(), custom_call_target=\"of_somebody\" }";
        let source = VerifiedModule::parse(text).unwrap();
        let checks = Checks::new(settings(Action::Raise, folder.path()), &source).unwrap();
        assert!(!checks.begin("m"));
        let log = std::fs::read_to_string(folder.path().join("log.jsonl")).unwrap();
        assert!(log.contains("not judged") && log.contains("of_somebody"), "{log}");
    }

    #[test]
    fn every_third_execution_is_judged() {
        let folder = tempfile::tempdir().unwrap();
        let source = VerifiedModule::parse(TEXT).unwrap();
        let of = |every| Settings { every, ..settings(Action::Raise, folder.path()) };
        let checks = Checks::new(of(3), &source).unwrap();
        let judged: Vec<bool> = (0..7).map(|_| checks.begin("m")).collect();
        assert_eq!(judged, [true, false, false, true, false, false, true]);
        assert!(!Checks::new(of(0), &source).unwrap().begin("m"));
    }
}
