//! Functions that check themselves, as StableHLO's tests have them: each is a case of `hlo test`.

mod grid;

use std::path::{Path, PathBuf};

use hlo::Span;
use hlo_interp::custom_call::Registry;
use hlo_interp::{Accumulate, ErrorKind, Interpreter, Options, Value};
use hlo_mlir::check::compare;
use hlo_mlir::convert::{ConvertOptions, Converted, RUN_PARALLEL, convert, functions, is_test};
use hlo_mlir::text::{ReadOptions, parse_part, split};

use crate::corpus::{CaseReport, CorpusOptions, Status, kind_of};
use grid::RunParallel;
use hlo_engines::frontend::{instruction_count, opcodes};
use hlo_system::exit::Exit;
use hlo_system::files::read_source;
use hlo_system::memory_budget;
use hlo_triage::judge::modes;

/// A function that checks itself.
#[derive(Clone, PartialEq, Debug)]
pub struct TestFunction {
    /// The file.
    pub path: PathBuf,
    /// The span of its module in the text.
    pub part: Span,
    /// Its name; empty if the module cannot be read, which is a case that fails.
    pub function: String,
    /// How often a function of the same name stands before it in the file.
    pub number: usize,
}

impl TestFunction {
    /// `file.mlir@main`, `file.mlir@main.2`
    pub fn name(&self) -> String {
        let file = self.path.display();
        match self.number {
            0 => format!("{file}@{}", self.function),
            n => format!("{file}@{}.{}", self.function, n + 1),
        }
    }
}

/// The functions of a file that check themselves; none if it is no MLIR.
pub fn tests_of(path: &Path) -> Vec<TestFunction> {
    let Ok(source) = read_source(&path.to_string_lossy()) else { return Vec::new() };
    if !hlo_engines::mlir::is_mlir(&source.text) {
        return Vec::new();
    }
    let mut tests: Vec<TestFunction> = Vec::new();
    let mut add = |part: Span, function: &str| {
        let number = tests.iter().filter(|t| t.function == function).count();
        tests.push(TestFunction { path: path.to_owned(), part, function: function.to_owned(), number });
    };
    for part in split(&source.text) {
        let checks = source.text[part.range()].contains("check.");
        match parse_part(&source.text, part, &options(source.text.len())) {
            Ok(module) => {
                for (op, name) in functions(&module) {
                    if is_test(&module, op) {
                        add(part, name);
                    }
                }
            }
            Err(_) if checks => add(part, ""),
            Err(_) => {}
        }
    }
    tests
}

fn options(text_bytes: usize) -> ReadOptions {
    ReadOptions { memory_bytes: memory_budget::text_left().saturating_sub(text_bytes as u64) }
}

/// Runs the function and compares what it checks, with sums in either order.
pub(crate) fn run(test: &TestFunction, options: &CorpusOptions) -> CaseReport {
    let report = CaseReport::of(test.name(), "program");
    let source = match read_source(&test.path.to_string_lossy()) {
        Ok(source) => source,
        Err(f) => return report.failed(kind_of(f.exit), f.message),
    };
    let text = &source.text;
    let shown = |found: &hlo::Diagnostics, exit: Exit| {
        let line = found.iter().next().map_or_else(String::new, |d| {
            let (line, _) = hlo::LineIndex::new(text).line_column(text, d.span.start);
            format!("{} at line {line}: {}", d.code.as_str(), d.message)
        });
        CaseReport::of(test.name(), "program")
            .failed(kind_of(hlo_engines::mlir::exit_of(found).unwrap_or(exit)), line)
    };
    let module = match parse_part(text, test.part, &self::options(text.len())) {
        Ok(module) => module,
        Err(found) => return shown(&found, Exit::Parse),
    };
    let wanted =
        ConvertOptions { function: Some(test.function.clone()), checks: true, ..ConvertOptions::default() };
    let program = match convert(&module, &wanted) {
        Ok(program) => program,
        Err(found) => return shown(&found, Exit::Unsupported),
    };
    let found = hlo::verify::verify(&program.module);
    if found.has_errors() {
        return shown(&found, Exit::Verify);
    }
    let report = CaseReport {
        opcodes: opcodes(&program.module),
        instructions: instruction_count(&program.module),
        ..report
    };
    let mut wrong = Vec::new();
    for &accumulate in modes(&program.module) {
        match passes(&program, accumulate, options) {
            Ok(None) => {
                let accumulate = if accumulate == Accumulate::Exact { "exact" } else { "region" };
                return CaseReport { status: Status::Pass, accumulate: Some(accumulate), ..report };
            }
            Ok(Some(why)) => wrong.push(why),
            Err((exit, why)) => return report.failed(kind_of(exit), why),
        }
    }
    report.failed(kind_of(Exit::Differs), wrong.into_iter().next().unwrap_or_default())
}

/// Why a check of the program fails, with sums in one order; or why the program does not run.
fn passes(
    program: &Converted,
    accumulate: Accumulate,
    options: &CorpusOptions,
) -> Result<Option<String>, (Exit, String)> {
    let (fuel, memory_limit_bytes) = (options.run.limits.fuel, options.run.limits.memory_bytes);
    let mut custom_calls = Registry::default();
    custom_calls.insert(RUN_PARALLEL, RunParallel { accumulate, fuel, memory_limit_bytes });
    let options = Options { accumulate, fuel, memory_limit_bytes, custom_calls, ..Options::default() };
    let result = Interpreter::new(&program.module, options).run(Vec::new()).map_err(|e| {
        let exit = match e.kind {
            ErrorKind::Unsupported => Exit::Unsupported,
            ErrorKind::Trap | ErrorKind::OutOfFuel | ErrorKind::OutOfMemory | ErrorKind::Arguments => {
                Exit::Trap
            }
        };
        (exit, e.to_string())
    })?;
    let parts: &[Value] = result.as_tuple().unwrap_or_default();
    for check in &program.checks {
        let [actual, expected] = check.results.map(|i| parts.get(i).and_then(Value::as_array));
        let (Some(actual), Some(expected)) = (actual, expected) else {
            return Err((Exit::Unsupported, "a check of something that is no array".to_owned()));
        };
        if let Err(why) = compare(check.kind, &actual.to_literal(), &expected.to_literal()) {
            return Ok(Some(why));
        }
    }
    Ok(None)
}
