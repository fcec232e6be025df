//! A compiler's dumps, pass by pass: every form runs in the interpreter on the same inputs, and the first one
//! that computes something else than the form before it names the pass. Where gentle inputs show no change,
//! extreme ones are tried.
//!
//! Each form is compared with the one before it and with the first. A difference that rounding explains is no
//! change ([`super::noise`], and the certified tolerance with all liberties granted). A value that becomes
//! infinite or NaN, or finite again, or an infinity that changes sign, is a change unless rounding decides it
//! ([`super::infinities`]). Forms that cannot be read or run are skipped and listed: a change found after
//! such a gap may have happened in it.
//!
//! Large constants that a dump elides have values that depend on their name; here on their type alone, since
//! passes give other names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hlo::attrs::{AttrKey, AttrValue};
use hlo::elided::elided_literal;
use hlo::{ArrayLiteral, ArrayShape, ConstantValue, Dims, InstrId, Module, Opcode};
use rustc_hash::FxHashSet;
use serde::Serialize;

use super::changes::{Changes, apart, between, line};
use super::infinities::{self, Form};
use super::names::{DumpName, Stage};
use super::noise::{self, Compared, Errors, Key, PERTURBED_RUNS, Values, tolerance};
use hlo_certify::bounds::certify;
use hlo_engines::engine::{self, Allowances, Inputs, Limits, Outcome, RunOptions};
use hlo_engines::frontend;
use hlo_engines::inputs::{self, InputKind};
use hlo_execution::element::numbers;
use hlo_system::exit::{Exit, Failure};
use hlo_system::files::describe;

/// The dumps of one module, in order.
#[derive(Clone, Debug)]
pub struct Series {
    /// Number of the module.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// Files, in the order in which they were written.
    pub files: Vec<(DumpName, PathBuf)>,
}

impl Series {
    /// Numbers of dumps that are not there although later ones are.
    pub fn missing(&self) -> Vec<u64> {
        let counters: Vec<u64> = self
            .files
            .iter()
            .filter_map(|(n, _)| if let Stage::Pass { counter, .. } = n.stage { Some(counter) } else { None })
            .collect();
        // Only the first 32 missing ones are named.
        let last = counters.last().copied().unwrap_or(0);
        (0..last).filter(|c| !counters.contains(c)).take(32).collect()
    }
}

/// The series of dumps in a folder, by number of the module. Other files are no matter. Errors: wrong usage
/// if there are none.
pub fn series(folder: &Path) -> Result<Vec<Series>, Failure> {
    let entries = std::fs::read_dir(folder)
        .map_err(|e| Failure::usage(format!("{}: {}", folder.display(), describe(&e))))?;
    let files: Vec<(DumpName, PathBuf)> = entries
        .flatten()
        .filter_map(|e| Some((DumpName::parse(e.file_name().to_str()?)?, e.path())))
        .collect();
    let mut all = grouped(files);
    all.retain(|s| s.files.len() > 1);
    if all.is_empty() {
        return Err(Failure::usage(format!(
            "{} holds no dumps pass by pass: module_0000.NAME.before_optimizations.txt, module_0000.NAME.0000.PIPELINE.after_PASS.before_PASS.txt, ... \
             (XLA writes them with --xla_dump_to=DIR --xla_dump_hlo_pass_re=.*)",
            folder.display()
        )));
    }
    Ok(all)
}

/// Dumps by the module that they are of, each series in the order in which it was written.
pub fn grouped(mut files: Vec<(DumpName, PathBuf)>) -> Vec<Series> {
    files.sort_by(|(a, p), (b, q)| (a.number, a.order(b), p).cmp(&(b.number, std::cmp::Ordering::Equal, q)));
    let mut all: Vec<Series> = Vec::new();
    for (name, path) in files {
        let fits = |s: &&mut Series| {
            s.number == name.number
                && (s.name == name.module
                    || name.stage == Stage::After && name.module.starts_with(&format!("{}.", s.name)))
        };
        match all.iter_mut().find(fits) {
            Some(series) => series.files.push((name, path)),
            None => {
                all.push(Series { number: name.number, name: name.module.clone(), files: vec![(name, path)] })
            }
        }
    }
    all
}

/// The comparison of a form.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Status {
    /// The first form, which the others are held against.
    First,
    /// The same numbers as the form before.
    Same,
    /// Other numbers, explained by rounding; the largest share of its tolerance that one took, beside the
    /// first form.
    Rounding {
        /// 0 to 1.
        share: f64,
    },
    /// Other results than the form before.
    Changed {
        /// `out0: 3 of 12`.
        results: Vec<String>,
    },
    /// It could not be compared.
    Skipped {
        /// Why.
        why: String,
    },
}

/// One form.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Step {
    /// `0033 fusion (HLO_passes_after_layout_assignment)`.
    pub label: String,
    /// The file.
    pub file: String,
    /// Its comparison.
    pub status: Status,
}

/// The first form that computes something else.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Found {
    /// The form.
    pub step: Step,
    /// The last form before it that could be compared.
    pub before: Step,
    /// The pass, as far as the names say: none at the beginning of a pipeline.
    pub pass: Option<String>,
    /// Forms between the two that could not be compared.
    pub gap: Vec<String>,
    /// Results that differ: `out0: 3 of 12 elements, at 4: 1.5, then 2.5 (rounding explains 1e-6)`.
    pub results: Vec<String>,
    /// The instructions that changed.
    pub changes: Changes,
    /// The first instruction that both forms have and whose value differs.
    pub value: Option<Value>,
    /// A later form gives the first results again.
    pub undone: Option<String>,
}

/// An instruction that both forms have and that gives something else in the second.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Value {
    /// Its text in the form before.
    pub before: String,
    /// Its text in the form after.
    pub after: String,
    /// The differences of values.
    pub how: String,
    /// What computes it out of values that both forms agree on, in so far as that is not the same.
    pub changes: Changes,
}

/// The result for a series of dumps.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Number of the module.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// All forms.
    pub steps: Vec<Step>,
    /// Numbers that no file has.
    pub missing: Vec<u64>,
    /// The source of the inputs.
    pub inputs: String,
    /// The kind of generated inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_kind: Option<InputKind>,
    /// Other inputs on which nothing was found.
    pub also: Vec<String>,
    /// The reasons why comparisons are weaker.
    pub notes: Vec<String>,
    /// The first form that computes something else.
    pub found: Option<Found>,
    /// No step is to blame, but the end is not what the beginning was.
    pub drift: Option<String>,
}

impl Report {
    /// The number of forms that ran.
    pub fn compared(&self) -> usize {
        self.steps.iter().filter(|s| !matches!(s.status, Status::Skipped { .. })).count()
    }
}

/// The source of inputs.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    /// An `.npz` file; without one they are generated.
    pub file: Option<&'a str>,
    /// Seed of those that are generated.
    pub seed: u64,
    /// The kind of generated inputs. `None`: gentle ones (or those of the file), then each of
    /// [`InputKind::AFTER_GENTLE`] while no change is found.
    pub kind: Option<InputKind>,
}

/// A certified bound above this share of the number itself explains nothing here.
const MAX_CERTIFIED_ERROR: f64 = 1.0 / 4096.0;

/// The form that later forms are compared with.
struct Base {
    shapes: Vec<ArrayShape>,
    arrays: Vec<Vec<ArrayLiteral>>,
    options: RunOptions,
    results: Vec<ArrayLiteral>,
    tolerance: Vec<Vec<f64>>,
    fuel: u64,
}

struct Ran {
    step: usize,
    module: Module,
    results: Vec<ArrayLiteral>,
}

/// Executed instructions that extreme inputs may take, as a multiple of those of the inputs before; loops
/// count on.
const EXTREME_FUEL: u64 = 16;
const EXTREME_FUEL_LEAST: u64 = 1 << 20;

/// Runs all forms of a series and finds the first that computes something else. Errors: no form can be run.
pub fn run(series: &Series, source: &Source<'_>, options: &RunOptions) -> Result<Report, Failure> {
    let kind = source.kind.unwrap_or_default();
    let (mut report, fuel) = run_on(series, source.file, (source.seed, kind), options)?;
    let changed = |report: &Report| report.found.is_some() || report.drift.is_some();
    if source.kind.is_some() || changed(&report) {
        return Ok(report);
    }
    let most = fuel.saturating_mul(EXTREME_FUEL).max(EXTREME_FUEL_LEAST);
    let fuel = Some(options.limits.fuel.map_or(most, |limit| limit.min(most)));
    let options = RunOptions { limits: Limits { fuel, ..options.limits }, ..*options };
    for kind in InputKind::AFTER_GENTLE {
        match run_on(series, None, (source.seed, kind), &options) {
            Ok((mut other, _)) if changed(&other) => {
                other.also = [vec![report.inputs], report.also].concat();
                return Ok(other);
            }
            Ok((other, _)) => report.also.push(other.inputs),
            Err(failure) => report.notes.push(format!("{kind} inputs: {}", failure.message)),
        }
    }
    Ok(report)
}

/// The same on inputs of a file, or generated from a seed. Also how many instructions the first form
/// executed.
fn run_on(
    series: &Series,
    file: Option<&str>,
    made: (u64, InputKind),
    options: &RunOptions,
) -> Result<(Report, u64), Failure> {
    let mut report = Report {
        number: series.number,
        name: series.name.clone(),
        steps: Vec::new(),
        missing: series.missing(),
        inputs: String::new(),
        input_kind: file.is_none().then_some(made.1),
        also: Vec::new(),
        notes: Vec::new(),
        found: None,
        drift: None,
    };
    let mut base: Option<Base> = None;
    let mut last: Option<Ran> = None;
    let mut ends: Option<(String, Vec<String>)> = None;
    for (name, path) in &series.files {
        let file_name = path.file_name().map(|f| f.to_string_lossy().into_owned()).unwrap_or_default();
        let step = report.steps.len();
        let mut status =
            |status| report.steps.push(Step { label: name.label(), file: file_name.clone(), status });
        let path = path.to_string_lossy();
        let module = match frontend::load(&path) {
            Ok(program) => program.module,
            Err(rejected) => {
                status(Status::Skipped { why: rejected.first_line() });
                continue;
            }
        };
        let (module, elided) = with_values(module);
        let Some(first) = &mut base else {
            match begin(&module, file, made, options) {
                Ok((new, inputs)) => {
                    status(Status::First);
                    report.inputs = inputs;
                    last = Some(Ran { step, module, results: new.results.clone() });
                    base = Some(new);
                    if elided > 0 {
                        report.notes.push(format!(
                            "{elided} large constants are elided: their values are made up from their types (--xla_dump_large_constants writes them)"
                        ));
                    }
                }
                Err(why) => status(Status::Skipped { why }),
            }
            continue;
        };
        let results = match results(&module, first) {
            Ok(results) => results,
            Err(why) => {
                status(Status::Skipped { why });
                continue;
            }
        };
        let previous = last.as_ref().expect("invariant: there is one as soon as there is a first");
        let mut from_last = compared(&previous.results, &results, &first.tolerance);
        if from_last.iter().any(|c| !c.infinite.is_empty()) {
            open_infinities(first, previous, (&module, &results), &from_last);
        }
        if from_last.iter().any(|c| !c.finite.is_empty()) {
            open_roundings(first, previous, (&module, &results), &from_last);
        }
        if from_last.iter().any(|c| c.beyond > 0) {
            from_last = compared(&previous.results, &results, &first.tolerance);
        }
        let from_first = compared(&first.results, &results, &first.tolerance);
        let share = from_first.iter().map(|c| c.share).fold(0.0, f64::max);
        let beyond = described(&from_last);
        let changed = !beyond.is_empty();
        status(if changed {
            Status::Changed { results: beyond }
        } else if from_last.iter().all(|c| c.differ == 0) {
            Status::Same
        } else {
            Status::Rounding { share }
        });
        let fine = described(&from_first).is_empty();
        if changed && report.found.is_none() {
            report.found = Some(explained(&report.steps, previous, step, name, &module, &results, first));
        } else if let Some(found) = &mut report.found
            && found.undone.is_none()
            && fine
        {
            found.undone = Some(report.steps[step].label.clone());
        }
        ends = Some((report.steps[step].label.clone(), described(&from_first)));
        last = Some(Ran { step, module, results });
    }
    if base.is_none() {
        let why = report.steps.first().map(|s| match &s.status {
            Status::Skipped { why } => format!("{}: {why}", s.file),
            Status::First | Status::Same | Status::Rounding { .. } | Status::Changed { .. } => String::new(),
        });
        return Err(Failure::new(
            Exit::Unsupported,
            format!("no form of module {} can be run: {}", series.number, why.unwrap_or_default()),
        ));
    }
    if let (None, Some((label, differences))) = (&report.found, ends)
        && !differences.is_empty()
    {
        report.drift = Some(format!("{label}: {}", differences.join("; ")));
    }
    Ok((report, base.map_or(0, |b| b.fuel)))
}

/// Widens the tolerance of numbers that roundings of this form explain: it may be the one that these move
/// more.
fn open_roundings(
    base: &mut Base,
    previous: &Ran,
    (module, results): (&Module, &[ArrayLiteral]),
    compared: &[Compared],
) {
    let disturbed = disturbed(module, &|| adapted(module, base).ok(), &base.options);
    for (i, compared) in compared.iter().enumerate().filter(|(_, c)| !c.finite.is_empty()) {
        let (Some(before), Some(after)) = (previous.results.get(i), results.get(i)) else { continue };
        let others: Vec<&ArrayLiteral> = disturbed.iter().filter_map(|d| d.get(i)).collect();
        let explained = tolerance(after, &others);
        let (before, after) = (numbers(before), numbers(after));
        for &at in &compared.finite {
            let wide = explained.get(at).copied().unwrap_or(0.0);
            let off = before.get(at).zip(after.get(at)).map_or(f64::INFINITY, |(x, y)| (x - y).abs());
            if let Some(t) = base.tolerance.get_mut(i).and_then(|t| t.get_mut(at))
                && off <= wide
            {
                *t = t.max(wide);
            }
        }
    }
}

/// The results of a program with random errors, run by run.
fn disturbed(
    module: &Module,
    inputs: &dyn Fn() -> Option<Inputs>,
    options: &RunOptions,
) -> Vec<Vec<ArrayLiteral>> {
    let run = |seed| finished(noise::run(module, inputs()?, options, Errors::Random(seed), false).0).ok();
    // A run that errors lead elsewhere shows nothing.
    (0..PERTURBED_RUNS).filter_map(run).collect()
}

/// Makes the tolerance of numbers infinite whose infinity (or NaN) depends on rounding, in this form or the
/// one before.
fn open_infinities(
    base: &mut Base,
    previous: &Ran,
    (module, results): (&Module, &[ArrayLiteral]),
    compared: &[Compared],
) {
    let asked: Vec<&[usize]> = compared.iter().map(|c| &c.infinite[..]).collect();
    let classes = |form: &Form<'_>| {
        infinities::classes(form, &|| adapted(form.module, base).ok(), &base.options, &asked)
    };
    // A conversion that is new is to be kept to.
    let before = classes(&Form { module: &previous.module, results: &previous.results, unconverted: true });
    let after = classes(&Form { module, results, unconverted: false });
    for (((asked, before), after), tolerance) in asked.iter().zip(before).zip(after).zip(&mut base.tolerance)
    {
        for ((&i, before), after) in asked.iter().zip(before).zip(after) {
            if let Some(t) = tolerance.get_mut(i).filter(|_| before & after != 0) {
                *t = f64::INFINITY;
            }
        }
    }
}

/// The first form: its inputs, its results, and how far rounding moves them.
fn begin(
    module: &Module,
    file: Option<&str>,
    (seed, kind): (u64, InputKind),
    options: &RunOptions,
) -> Result<(Base, String), String> {
    let devices = engine::devices::choose(module, None, None).map_err(|f| f.message)?.devices;
    let options = RunOptions { devices, ..*options };
    let limit = options.limits.memory_bytes;
    let (arrays, from) = match file {
        Some(path) => {
            let mut npz = hlo_system::npz::Npz::open(path, limit).map_err(|f| f.message)?;
            (inputs::read(module, &mut npz, devices).map_err(|f| f.message)?, path.to_owned())
        }
        None => {
            let plan = inputs::plan(module, None).map_err(|f| f.message)?.of_kind(kind);
            let from = format!("made, seed {seed}, {kind} ({})", inputs::describe(&plan));
            (inputs::generate(&plan, seed, devices, limit).map_err(|f| f.message)?, from)
        }
    };
    let given = || Inputs::new(module, &arrays).map_err(|f| f.message);
    let outcome = noise::run(module, given()?, &options, Errors::None, false).0;
    let fuel = if let Outcome::Finished(f) = &outcome { f.fuel } else { 0 };
    let results = finished(outcome)?;
    let disturbed = disturbed(module, &|| given().ok(), &options);
    let mut all: Vec<Vec<f64>> = results
        .iter()
        .enumerate()
        .map(|(i, r)| tolerance(r, &disturbed.iter().filter_map(|d| d.get(i)).collect::<Vec<_>>()))
        .collect();
    // What is certified counts too, where it says something: through long chains it grows to bounds that
    // would explain anything.
    if let Ok(certified) = certify(module, given()?, &options, Allowances::LOOSE, &mut ()) {
        for (tolerance, (array, bounds)) in all.iter_mut().zip(certified.results.iter().flatten()) {
            let parts = (tolerance.len() / array.buffer.len().max(1)).max(1);
            for (i, (t, x)) in tolerance.iter_mut().zip(numbers(array)).enumerate() {
                let soft = bounds.soft.at(i / parts);
                if x.is_finite() && soft <= x.abs() * MAX_CERTIFIED_ERROR {
                    *t = t.max(soft);
                }
            }
        }
    }
    let shapes = inputs::parameter_arrays(module);
    Ok((Base { shapes, arrays, options, results, tolerance: all, fuel }, from))
}

/// The inputs as another form takes them: parameters by their number, with the same elements in perhaps other
/// dimensions.
fn adapted(module: &Module, base: &Base) -> Result<Inputs, String> {
    let shapes = inputs::parameter_arrays(module);
    if shapes.len() != base.shapes.len() {
        return Err(format!("it has {} parameters, the first form {}", shapes.len(), base.shapes.len()));
    }
    let mut arrays = base.arrays.clone();
    for device in &mut arrays {
        for (i, (array, shape)) in device.iter_mut().zip(&shapes).enumerate() {
            let same = array.buffer.element_type() == shape.element_type
                && shape.checked_elements() == i64::try_from(array.buffer.len()).ok();
            if !same {
                return Err(format!("parameter {i} is {shape}, and {} in the first form", array.shape()));
            }
            array.dims = Dims::from_slice(&shape.dims);
        }
    }
    Inputs::new(module, &arrays).map_err(|f| f.message)
}

/// The arrays of the results of all devices. Errors: why there are none.
pub(super) fn finished(outcome: Outcome) -> Result<Vec<ArrayLiteral>, String> {
    let finished = outcome.into_results().map_err(|(_, d)| d.message)?;
    Ok(finished.results.into_iter().flatten().collect())
}

fn results(module: &Module, base: &Base) -> Result<Vec<ArrayLiteral>, String> {
    let results = finished(noise::run(module, adapted(module, base)?, &base.options, Errors::None, false).0)?;
    if results.len() != base.results.len() {
        return Err(format!("it has {} results, the first form {}", results.len(), base.results.len()));
    }
    Ok(results)
}

fn compared(before: &[ArrayLiteral], after: &[ArrayLiteral], tolerance: &[Vec<f64>]) -> Vec<Compared> {
    before.iter().zip(after).zip(tolerance).map(|((b, a), t)| noise::compare(b, a, t)).collect()
}

/// A sentence for each result beyond rounding.
fn described(compared: &[Compared]) -> Vec<String> {
    let beyond = compared.iter().enumerate().filter(|(_, c)| c.beyond > 0);
    beyond
        .map(|(i, c)| match c.first {
            Some((at, before, after, t)) => {
                let explained = match before.is_finite() && after.is_finite() {
                    true => format!("rounding explains {t:.1e}"),
                    false => "no rounding explains that".to_owned(),
                };
                let (beyond, total) = (c.beyond, c.total);
                format!(
                    "out{i}: {beyond} of {total} numbers, at {at} {before:?}, then {after:?} ({explained})"
                )
            }
            None => format!("out{i}: another type or number of elements"),
        })
        .collect()
}

/// The report of the first change.
fn explained(
    steps: &[Step],
    previous: &Ran,
    step: usize,
    name: &DumpName,
    module: &Module,
    results: &[ArrayLiteral],
    base: &Base,
) -> Found {
    let skipped = steps[previous.step + 1..step].iter().map(|s| s.label.clone()).collect();
    Found {
        step: steps[step].clone(),
        before: steps[previous.step].clone(),
        pass: name.pass().map(str::to_owned),
        gap: skipped,
        results: described(&compared(&previous.results, results, &base.tolerance)),
        changes: between(&previous.module, module),
        value: first_value(&previous.module, module, base),
        undone: None,
    }
}

/// The first instruction of the form after, in the order of its run, that the form before has too and that
/// gives something else there.
fn first_value(before: &Module, after: &Module, base: &Base) -> Option<Value> {
    let run = |module: &Module, errors| {
        let inputs = adapted(module, base).ok()?;
        let (_, values) = noise::run(module, inputs, &base.options, errors, true);
        Some(values)
    };
    let (old, new) = (run(before, Errors::None)?, run(after, Errors::None)?);
    let disturbed: Vec<Values> =
        (0..PERTURBED_RUNS).filter_map(|seed| run(before, Errors::Random(seed))).collect();
    let mut keys: Vec<_> = new.by_key.iter().collect();
    keys.sort_by_key(|(_, (order, _))| *order);
    let mut agreed: FxHashSet<&Key> = FxHashSet::default();
    for (key, (_, arrays)) in keys {
        let Some((_, was)) = old.by_key.get(key) else { continue };
        let same_shapes = was.len() == arrays.len()
            && was
                .iter()
                .zip(arrays)
                .all(|(a, b)| a.dims == b.dims && a.buffer.element_type() == b.buffer.element_type());
        if !same_shapes {
            continue;
        }
        let compared = was.iter().zip(arrays).enumerate().map(|(i, (a, b))| {
            let others: Vec<&ArrayLiteral> =
                disturbed.iter().filter_map(|d| d.by_key.get(key)?.1.get(i)).collect();
            noise::compare(a, b, &tolerance(a, &others))
        });
        let Some((found, first)) = compared.filter_map(|c| c.first.map(|first| (c, first))).next() else {
            agreed.insert(key);
            continue;
        };
        let (at, x, y, _) = first;
        let (here, there) = (at_key(before, key)?, at_key(after, key)?);
        let (removed, added) = (cone(before, here, &agreed), cone(after, there, &agreed));
        return Some(Value {
            before: line(before, here),
            after: line(after, there),
            how: format!("{} of {} numbers differ, at {at} {x:?}, then {y:?}", found.beyond, found.total),
            changes: apart(removed, added),
        });
    }
    None
}

fn at_key(module: &Module, key: &Key) -> Option<InstrId> {
    module.instructions(module.find_computation(&key.0)?).find(|&id| module.instr(id).name == key.1)
}

/// What computes an instruction out of values that both forms agree on, as lines: itself, its operands down
/// to those, and what these apply.
fn cone(module: &Module, id: InstrId, agreed: &FxHashSet<&Key>) -> Vec<String> {
    let mut seen: FxHashSet<InstrId> = FxHashSet::default();
    let mut pending = vec![id];
    while let Some(id) = pending.pop() {
        if !seen.insert(id) {
            continue;
        }
        let instr = module.instr(id);
        pending.extend(instr.operands().iter().copied().filter(|&o| {
            let operand = module.instr(o);
            let key = (module.computation(operand.parent()).name.clone(), operand.name.clone());
            !agreed.contains(&key)
        }));
        for c in instr.attrs.called_computations() {
            pending.extend(module.instructions(c));
        }
    }
    let all = module.computations().iter().flat_map(|&c| module.instructions(c));
    all.filter(|id| seen.contains(id)).map(|id| line(module, id)).collect()
}

/// Assigns elided constants values that follow from their types. Returns how many there are.
pub fn with_values(mut module: Module) -> (Module, usize) {
    let all: Vec<InstrId> = module.computations().iter().flat_map(|&c| module.instructions(c)).collect();
    let mut elided = 0;
    for id in all {
        let instr = module.instr(id);
        let is_elided = instr.opcode == Opcode::Constant
            && matches!(instr.attrs.constant_value(), Some(ConstantValue::Elided));
        if !is_elided {
            continue;
        }
        elided += 1;
        if let Some(literal) = elided_literal("elided", &instr.shape) {
            let value = AttrValue::Literal(ConstantValue::Given(Arc::new(literal)));
            module.instr_mut(id).attrs.set(AttrKey::ConstantValue, value);
        }
    }
    (module, elided)
}
