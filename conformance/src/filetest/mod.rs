//! Tests that are HLO files: the program, and in its comments what must come of it.
//!
//! ```text
//! // test: interpret
//! HloModule t
//! ENTRY e { a = f32[2] parameter(0)
//!   ROOT s = f32[2] add(a, a) }
//! // run: e([1, nan]) == [2, nan]
//! // run: e([-0, inf]) == [-0, inf]
//! ```
//!
//! A file may hold several programs, separated by lines that begin with `// ====`. Each says with `// test:`
//! what it is:
//! - `interpret`: it verifies, and each `// run: e(ARGUMENTS) == RESULTS` holds to the bit (NaN equals NaN),
//!   or each `// run: e(ARGUMENTS) fails[CODE]: TEXT` fails so. `~ulp(n)` after the results allows that
//!   distance, where an opcode of the program allows it too; how values are written: [`value`]. On several
//!   devices (`// replicas: N`, `// partitions: N`, or what the module says) `|` separates what belongs to
//!   each of them, and what is without it belongs to all: `e([1] | [2]) == [3]`. `// infeed: VALUES` is what
//!   the program is fed and `// outfeed: VALUES` what must come out of it, in order; with `[C]` after the
//!   word over channel C. `// repeat: N` does each run that many times. `// accumulate: region`,
//!   `// fuel: N`, `// memory: SIZE` and `// nan-bits: true` apply to all runs.
//!   `// origin: numpy, hand` says where the expected values come from (see [`Origin`]), for this program and
//!   those after it in the file; [`crate::coverage`] counts no run without it.
//! - `verify`: it is rejected with exactly the errors that `// error[CODE]: TEXT` at the ends of the lines
//!   announce (or, in a line of its own, `// error[CODE] anywhere: TEXT`); with none announced, it is
//!   accepted.
//! - `print`: it prints as the sections `// ---- STYLE` at its end say (`source`, `default`, `short`,
//!   `canonical`). `HLO_BLESS=1` rewrites these sections.
//!
//! **Invariants:** a comment that looks like a directive and is none is an error, and so is a program without
//! a test or a test without an expectation; every program that parses must print to text that reads back to
//! an equal module.

mod directive;
mod host;
mod other;
mod value;

use std::sync::Arc;

pub use directive::Origin;
pub use other::{Ran, run_file_on};

use hlo::diag::{Diagnostic, Severity, render_all};
use hlo::opcode::Numeric;
use hlo::print::{PrintOptions, print_module};
use hlo::{ArrayLiteral, ArrayShape, Diagnostics, LineIndex, Module, Opcode};
use hlo_interp::{Accumulate, Observer};
use rustc_hash::FxHashSet;

use crate::coverage::{Executed, Key};
use hlo_engines::engine::{self, Engine, Finished, Inputs, InterpreterEngine, Limits, RunOptions, named};
use hlo_engines::frontend::parse_text;
use hlo_engines::inputs::parameter_arrays;
use hlo_system::exit::Exit;
use hlo_system::guard::guarded;
use hlo_triage::compare::{Tolerance, compare};

use directive::{Expectation, ExpectedError, Kind, Run, Section, Spec};
use host::TextHost;

/// What a line begins with that separates the programs of a file.
pub const SEPARATOR: &str = "// ====";

/// Runs all tests of a file. Returns the blessed text if `bless` is set and it differs.
///
/// Errors: everything that is wrong, as text with lines of the file.
pub fn run_file(name: &str, text: &str, bless: bool) -> Result<Option<String>, String> {
    run_file_watched(name, text, bless, &mut |_| {})
}

/// A run that gave the values that were expected of it, which come from elsewhere.
#[derive(Debug)]
pub struct Confirmed {
    /// The line of the file.
    pub line: usize,
    /// The executed pairs of opcode and element type.
    pub executed: FxHashSet<(Opcode, Key)>,
}

/// [`run_file`], telling of the runs that count for [`crate::coverage`].
pub fn run_file_watched(
    name: &str,
    text: &str,
    bless: bool,
    confirmed: &mut dyn FnMut(Confirmed),
) -> Result<Option<String>, String> {
    let mut problems = Vec::new();
    let mut blessed = String::new();
    let mut origin = Vec::new();
    for chunk in split(text) {
        let what = format!("testing {name}:{}", chunk.first_line);
        let outcome = guarded(&what, || Ok(run_chunk(name, &chunk, bless, &mut origin, confirmed)));
        match outcome.unwrap_or_else(|f| Err(f.message)) {
            Ok(new) => blessed.push_str(new.as_deref().unwrap_or(chunk.text)),
            Err(e) => {
                problems.push(format!("{name}:{}: {}", chunk.first_line, e.trim_end()));
                blessed.push_str(chunk.text);
            }
        }
    }
    if problems.is_empty() { Ok((blessed != text).then_some(blessed)) } else { Err(problems.join("\n\n")) }
}

/// One program of a file, its separator line included.
struct Chunk<'a> {
    text: &'a str,
    first_line: usize,
}

fn split(text: &str) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    let (mut start, mut first_line) = (0, 1);
    let (mut at, mut line) = (0, 1);
    for l in text.split_inclusive('\n') {
        if l.starts_with(SEPARATOR) && !text[start..at].trim().is_empty() {
            chunks.push(Chunk { text: &text[start..at], first_line });
            (start, first_line) = (at, line);
        }
        at += l.len();
        line += 1;
    }
    chunks.push(Chunk { text: &text[start..], first_line });
    chunks
}

fn run_chunk(
    name: &str,
    chunk: &Chunk<'_>,
    bless: bool,
    origin: &mut Vec<Origin>,
    confirmed: &mut dyn FnMut(Confirmed),
) -> Result<Option<String>, String> {
    let spec = directive::parse(chunk.text, chunk.first_line)?;
    if !spec.origin.is_empty() {
        origin.clone_from(&spec.origin);
    }
    // Blank lines keep the lines of diagnostics those of the file.
    let program = format!("{}{}", "\n".repeat(chunk.first_line - 1), spec.program);
    let (module, mut found) = parse_text(&program);
    if let Some(module) = &module
        && !found.has_errors()
    {
        fixpoint(module)?;
        found.append(hlo::verify::verify(module));
    }
    let rejected =
        |d: &Diagnostics| format!("the program is rejected:\n{}", render_all(d, name, &program, false));
    let mut blessed = None;
    for kind in &spec.kinds {
        match kind {
            Kind::Verify => check_errors(&spec.errors, &found, &program)?,
            Kind::Interpret => {
                let module =
                    module.as_ref().filter(|_| !found.has_errors()).ok_or_else(|| rejected(&found))?;
                if spec.runs.is_empty() {
                    return Err("an interpret test without `// run:`".into());
                }
                let mut failures = Vec::new();
                for run in &spec.runs {
                    let watch = Arc::new(Executed::default());
                    match check_run(module, run, &spec, &program, watch.clone()) {
                        Err(e) => failures.push(format!("line {}: {e}", run.line)),
                        Ok(Checked::Values) if !origin.is_empty() => {
                            confirmed(Confirmed { line: run.line, executed: watch.take() });
                        }
                        Ok(Checked::Values | Checked::Failure) => {}
                    }
                }
                if !failures.is_empty() {
                    return Err(failures.join("\n"));
                }
            }
            Kind::Print => {
                let module =
                    module.as_ref().filter(|_| !found.has_errors()).ok_or_else(|| rejected(&found))?;
                blessed = check_sections(module, &spec, bless)?;
            }
        }
    }
    if !spec.kinds.contains(&Kind::Verify) && !spec.errors.is_empty() {
        return Err("`// error` outside a verify test".into());
    }
    if !spec.kinds.contains(&Kind::Interpret) && !spec.runs.is_empty() {
        return Err("`// run:` outside an interpret test".into());
    }
    if !spec.kinds.contains(&Kind::Print) && !spec.sections.is_empty() {
        return Err("a golden section outside a print test".into());
    }
    Ok(blessed)
}

/// What is printed reads back to an equal module, and prints the same again.
fn fixpoint(module: &Module) -> Result<(), String> {
    let options = PrintOptions::source(module);
    let printed = print_module(module, &options);
    let (again, diagnostics) = parse_text(&printed);
    let again = again.ok_or_else(|| {
        format!("what is printed does not parse:\n{}", render_all(&diagnostics, "printed", &printed, false))
    })?;
    hlo::equal::modules_equal(module, &again)
        .map_err(|d| format!("print and parse change the program: {d}\n{printed}"))?;
    let second = print_module(&again, &PrintOptions::source(&again));
    if second == printed { Ok(()) } else { Err(format!("printing twice differs:\n{printed}\n---\n{second}")) }
}

fn check_errors(expected: &[ExpectedError], found: &Diagnostics, program: &str) -> Result<(), String> {
    let lines = LineIndex::new(program);
    let line_of =
        |d: &Diagnostic| (!d.span.is_none()).then(|| lines.line_column(program, d.span.start).0 as usize);
    let errors: Vec<&Diagnostic> = found.iter().filter(|d| d.severity == Severity::Error).collect();
    let mut used = vec![false; errors.len()];
    let mut problems = Vec::new();
    for e in expected {
        let at = errors.iter().enumerate().position(|(i, d)| {
            !used[i]
                && d.code.as_str() == e.code
                && e.line.is_none_or(|l| line_of(d) == Some(l))
                && text_of(d).contains(&e.text)
        });
        match at {
            Some(i) => used[i] = true,
            None => {
                let line = e.line.map_or("anywhere".into(), |l| format!("in line {l}"));
                problems.push(format!("no error {} {line} with `{}`", e.code, e.text));
            }
        }
    }
    for (d, _) in errors.iter().zip(&used).filter(|(_, used)| !**used) {
        let line = line_of(d).map_or("without a place".into(), |l| format!("in line {l}"));
        problems.push(format!("unexpected error {} {line}: {} ({})", d.code.as_str(), d.message, d.label));
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

fn text_of(d: &Diagnostic) -> String {
    let mut text = format!("{}\n{}", d.message, d.label);
    for part in d.related.iter().map(|r| &r.1).chain(&d.notes) {
        text.push('\n');
        text.push_str(part);
    }
    text
}

/// The expectation that a passing run was compared with.
enum Checked {
    Values,
    Failure,
}

/// The arguments of a run for each device, and how it is run.
fn prepare(module: &Module, run: &Run, spec: &Spec) -> Result<(Vec<Vec<ArrayLiteral>>, RunOptions), String> {
    let entry = &module.computation(module.entry()).name;
    if **entry != *run.entry {
        return Err(format!("the entry is {entry}, not {}", run.entry));
    }
    let shapes = parameter_arrays(module);
    let devices = engine::devices::stated(module, spec.replicas, spec.partitions).map_err(|f| f.message)?;
    let count = devices.count() as usize;
    let mut arguments: Vec<Vec<ArrayLiteral>> = Vec::new();
    for texts in for_devices(&run.arguments, count)? {
        if shapes.len() != texts.len() {
            return Err(format!("{} arguments for {} parameters", texts.len(), shapes.len()));
        }
        let parse = |(i, (text, shape)): (usize, (&String, &ArrayShape))| {
            value::parse(text, shape).map_err(|e| format!("argument {i}: {e}"))
        };
        arguments.push(texts.iter().zip(&shapes).enumerate().map(parse).collect::<Result<_, _>>()?);
    }
    let options = RunOptions {
        accumulate: if spec.region { Accumulate::Region } else { Accumulate::Exact },
        limits: Limits { fuel: spec.fuel, memory_bytes: spec.memory.unwrap_or(1 << 30) },
        seed: 0,
        devices,
        kept_bytes: 0,
    };
    Ok((arguments, options))
}

fn check_run(
    module: &Module,
    run: &Run,
    spec: &Spec,
    program: &str,
    watch: Arc<Executed>,
) -> Result<Checked, String> {
    let (arguments, options) = prepare(module, run, spec)?;
    let count = arguments.len();
    let inputs = Inputs::new(module, &arguments).map_err(|f| f.message)?;
    // What depends on timing shows sooner or later.
    let times = spec.repeat.unwrap_or(if count > 1 { 4 } else { 2 });
    let mut checked = Checked::Failure;
    for time in 0..times {
        let host = Arc::new(TextHost::new(&spec.infeed, count));
        let inputs = Inputs { host: host.clone(), ..inputs.clone() };
        // Both with and without somebody watching.
        let observer: Option<Arc<dyn Observer>> = if time == 0 { Some(watch.clone()) } else { None };
        let outcome = InterpreterEngine.run_watched(module, inputs, &options, observer).into_results();
        let ended = check_outcome(module, run, spec, program, outcome)
            .and_then(|c| host.check(&spec.outfeed, spec.nan_bits).map(|()| c));
        checked = ended.map_err(|e| if time == 0 { e } else { format!("the {}th time: {e}", time + 1) })?;
    }
    Ok(checked)
}

fn check_outcome(
    module: &Module,
    run: &Run,
    spec: &Spec,
    program: &str,
    outcome: Result<Finished, (Exit, Diagnostic)>,
) -> Result<Checked, String> {
    match (&run.expectation, outcome) {
        (Expectation::Fails { code, text }, Err((_, d))) => {
            if d.code.as_str() == code && text_of(&d).contains(text) {
                Ok(Checked::Failure)
            } else {
                Err(format!("fails with {}: {}", d.code.as_str(), d.message))
            }
        }
        (Expectation::Fails { code, .. }, Ok(_)) => Err(format!("does not fail with {code}")),
        (Expectation::Results { .. }, Err((_, d))) => {
            Err(format!("fails:\n{}", render_all(&Diagnostics::from(d), "program", program, false)))
        }
        (Expectation::Results { values, ulp }, Ok(finished)) => {
            let results = named("", &finished.results);
            let values = for_devices(values, finished.results.len())?.concat();
            if values.len() != results.len() {
                return Err(format!("{} results, {} expected", results.len(), values.len()));
            }
            for (text, (i, actual)) in values.iter().zip(results) {
                if let Some(expected) = value::digest_text(text) {
                    check_digests(&i, &expected, actual)?;
                    continue;
                }
                let expected = value::parse(text, &actual.shape()).map_err(|e| format!("result {i}: {e}"))?;
                if let Some(n) = *ulp {
                    check_ulp_is_allowed(module, n)?;
                }
                let tolerance = ulp.map_or(Tolerance::Exact, Tolerance::Ulp);
                let comparison = compare(&expected, actual, tolerance, spec.nan_bits);
                if !comparison.passes() {
                    let worst = comparison.worst.first().map_or(String::new(), |w| {
                        format!(" ({:?}: expected {}, got {})", w.index, w.expected, w.actual)
                    });
                    let got = hlo_triage::report::array_text(actual);
                    return Err(format!("result {i} differs{worst}; it is\n{got}"));
                }
            }
            Ok(Checked::Values)
        }
    }
}

/// Every part of a result has the digest that is expected of it.
fn check_digests(result: &str, expected: &[String], actual: &ArrayLiteral) -> Result<(), String> {
    let found = value::digests(actual, expected.len())
        .ok_or_else(|| format!("result {result}: {} digests of {}", expected.len(), actual.shape()))?;
    match found.iter().zip(expected).position(|(a, b)| a != b) {
        None => Ok(()),
        Some(i) => {
            let part = actual.buffer.len() / expected.len();
            Err(format!(
                "result {result}: the digest of elements {} to {} is {}, not {}",
                i * part,
                (i + 1) * part - 1,
                found[i],
                expected[i]
            ))
        }
    }
}

/// The entry of each device, where one entry stands for all.
fn for_devices(lists: &[Vec<String>], count: usize) -> Result<Vec<Vec<String>>, String> {
    match lists {
        [all] => Ok(vec![all.clone(); count]),
        _ if lists.len() == count => Ok(lists.to_vec()),
        _ => Err(format!("there are values for {} devices, not {count}", lists.len())),
    }
}

/// A tolerance needs an opcode that allows as much for some element type in the program.
fn check_ulp_is_allowed(module: &Module, n: u64) -> Result<(), String> {
    let allowed = module.computations().iter().flat_map(|&c| module.instructions(c)).any(|i| {
        let i = module.instr(i);
        i.shape.leaves().iter().filter_map(|s| s.element_type()).any(|ty| match i.opcode.numeric(ty) {
            Numeric::Ulp(k) | Numeric::Normwise(k) => n <= u64::from(k),
            Numeric::Sum => true,
            Numeric::Exact | Numeric::Region | Numeric::Called | Numeric::Opaque => false,
        })
    });
    if allowed { Ok(()) } else { Err(format!("~ulp({n}): no opcode of the program allows so much")) }
}

fn check_sections(module: &Module, spec: &Spec, bless: bool) -> Result<Option<String>, String> {
    if spec.sections.is_empty() {
        return Err("a print test without a section `// ---- STYLE`".into());
    }
    let mut blessed = spec.before_sections.clone();
    let mut problems = Vec::new();
    for Section { style, body, header } in &spec.sections {
        let options = match style.as_str() {
            "source" => PrintOptions::source(module),
            "default" => PrintOptions::LONG,
            "short" => PrintOptions::SHORT_PARSABLE,
            "canonical" => PrintOptions::CANONICAL,
            other => return Err(format!("there is no style `{other}`")),
        };
        let printed = print_module(module, &options);
        if printed.trim_end() != body.trim_end() {
            problems.push(format!("prints otherwise in style {style}:\n{printed}"));
        }
        blessed.push_str(header);
        blessed.push_str(printed.trim_end());
        blessed.push('\n');
    }
    if bless {
        Ok(Some(blessed))
    } else if problems.is_empty() {
        Ok(None)
    } else {
        Err(problems.join("\n"))
    }
}
