//! `hlo print`: programs as text, and whether a text prints back as it was.

use clap::{Args, ValueEnum};
use hlo::Module;
use hlo::print::{PrintOptions, Subcomputations, nested_instructions, print_module};
use serde::Serialize;

use super::ui::{Ui, closed};
use super::{MemoryOptions, ReadOptions};
use hlo_engines::frontend::{JsonError, Rejected, Stage, instruction_count, parse_file, parse_text};
use hlo_system::exit::{Exit, Failure};
use hlo_system::guard::guarded;
use hlo_triage::report::grouped;

/// Options of `hlo print`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  hlo print dump.txt                  the text as it was\n  hlo print --style short --no-metadata module.hlo\n  hlo print --check-roundtrip dump/*.txt"
)]
pub(crate) struct Options {
    /// Files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Style::Source)]
    style: Style,
    /// Leave out constants of more than N elements
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10")]
    elide: Option<usize>,
    /// Without metadata and tables of source locations
    #[arg(long)]
    no_metadata: bool,
    /// Without backend_config
    #[arg(long)]
    no_backend_config: bool,
    /// Without layouts
    #[arg(long)]
    no_layouts: bool,
    /// With the shapes of operands
    #[arg(long)]
    operand_shapes: bool,
    /// With called computations in place
    #[arg(long)]
    nested: bool,
    /// Instead: does each text print back byte for byte?
    #[arg(long)]
    check_roundtrip: bool,
    #[command(flatten)]
    pub(super) memory: MemoryOptions,
    #[command(flatten)]
    read: ReadOptions,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Style {
    /// As the text it was read from
    Source,
    /// As XLA dumps
    Default,
    /// XLA's short form that parses
    Short,
    /// XLA's form without names, for comparing
    Canonical,
}

impl Options {
    fn print_options(&self, module: &Module) -> PrintOptions {
        let mut o = match self.style {
            Style::Source => PrintOptions::source(module),
            Style::Default => PrintOptions::LONG,
            Style::Short => PrintOptions::SHORT_PARSABLE,
            Style::Canonical => PrintOptions::CANONICAL,
        };
        if let Some(limit) = self.elide {
            o = o.eliding(limit);
        }
        o.metadata &= !self.no_metadata;
        o.backend_config &= !self.no_backend_config;
        o.layouts &= !self.no_layouts;
        o.operand_shapes |= self.operand_shapes;
        if self.nested {
            o.subcomputations = Subcomputations::Bodies;
        }
        o
    }
}

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let mut exit = Exit::Ok;
    for file in &options.files {
        let result = guarded(&format!("printing {file}"), || {
            if options.check_roundtrip { Ok(check(file, options, ui)) } else { print(file, options, ui) }
        });
        exit = exit.first_failure(match result {
            Ok(e) => e,
            Err(failure) => {
                super::report_failure(ui, &failure);
                failure.exit
            }
        });
        if closed() {
            break;
        }
    }
    Ok(exit)
}

#[derive(Serialize)]
struct PrintObject<'a> {
    file: &'a str,
    ok: bool,
    stage: Stage,
    errors: Vec<JsonError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

fn reject(file: &str, rejected: &Rejected, ui: &Ui) -> Exit {
    if ui.json {
        let errors = rejected.json_errors();
        ui.object(&PrintObject { file, ok: false, stage: rejected.stage, errors, text: None });
    } else {
        ui.raw_error(&rejected.render(ui.color_errors));
    }
    rejected.exit
}

fn print(file: &str, options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let (source, module, warnings, _) = match parse_file(file, options.read.reading().pick.as_ref()) {
        Ok(parsed) => parsed,
        Err(rejected) => return Ok(reject(file, &rejected, ui)),
    };
    super::warn(file, &source.text, [&warnings], ui);
    let print = options.print_options(&module);
    check_size(&module, &print)?;
    let text = print_module(&module, &print);
    if ui.json {
        ui.object(&PrintObject { file, ok: true, stage: Stage::Parse, errors: Vec::new(), text: Some(text) });
    } else {
        ui.raw(&text);
    }
    Ok(Exit::Ok)
}

/// The maximum of instructions of a text with bodies in place, for each instruction of the module.
const MAX_COPIES: u64 = 16;
/// The number of instructions that any module may have.
const FEW_INSTRUCTIONS: u64 = 1 << 17;

/// Refuses a text whose bodies in place would be many times the module: nested calls grow exponentially.
fn check_size(module: &Module, options: &PrintOptions) -> Result<(), Failure> {
    if options.subcomputations != Subcomputations::Bodies {
        return Ok(());
    }
    let (own, nested) = (instruction_count(module) as u64, nested_instructions(module));
    let limit = own.saturating_mul(MAX_COPIES).max(FEW_INSTRUCTIONS);
    if nested <= limit {
        return Ok(());
    }
    let nested = if nested == u64::MAX { "more than 2^64".to_owned() } else { grouped(nested) };
    let message = format!(
        "with a copy of each called computation in its place the text would have {nested} instructions; the limit is {}",
        grouped(limit)
    );
    Err(Failure::new(Exit::Unsupported, message))
}

/// MLIR has no form of its own that it would print back to: the module must be the same.
fn check_mlir(file: &str, text: &str, ui: &Ui) -> Exit {
    let checked = hlo_engines::mlir::prints_back(text);
    let module_equal = checked.is_ok();
    if ui.json {
        let errors = Vec::new();
        ui.object(&RoundTripObject {
            file,
            ok: module_equal,
            stage: Stage::Parse,
            bytes_equal: false,
            module_equal,
            difference: None,
            errors,
        });
    } else {
        match checked {
            Ok(()) => ui.detail(format!("{file}: {}", ui.good("same"))),
            Err(why) => ui.line(format!("{file}: {}: {why}", ui.bad("differs"))),
        }
    }
    if module_equal { Exit::Ok } else { Exit::Differs }
}

/// The first difference of two texts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Difference {
    line: usize,
    column: usize,
    expected: String,
    actual: String,
}

#[derive(Serialize)]
struct RoundTripObject<'a> {
    file: &'a str,
    ok: bool,
    stage: Stage,
    /// The text prints back byte for byte.
    bytes_equal: bool,
    /// What is printed reads back to an equal module.
    module_equal: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Difference>,
    errors: Vec<JsonError>,
}

fn check(file: &str, options: &Options, ui: &Ui) -> Exit {
    let (source, module, _, _) = match parse_file(file, options.read.reading().pick.as_ref()) {
        Ok(parsed) => parsed,
        Err(rejected) => {
            let exit = reject(file, &rejected, ui);
            if !ui.json {
                ui.line(format!("{file}: {}", ui.bad(&rejected.summary())));
            }
            return exit;
        }
    };
    if hlo_engines::mlir::is_mlir(&source.text) {
        return check_mlir(file, &source.text, ui);
    }
    if !source.is_hlo {
        let failure = Failure::usage(format!("{file}: --check-roundtrip takes HLO text"));
        super::report_failure(ui, &failure);
        return failure.exit;
    }
    let printed = print_module(&module, &PrintOptions::source(&module));
    let difference = first_difference(&source.text, &printed);
    let module_equal = match &difference {
        // The same text gives the same module.
        None => true,
        Some(_) => {
            parse_text(&printed).0.is_some_and(|again| hlo::equal::modules_equal(&module, &again).is_ok())
        }
    };
    let ok = difference.is_none() && module_equal;
    if ui.json {
        let bytes_equal = difference.is_none();
        let errors = Vec::new();
        ui.object(&RoundTripObject {
            file,
            ok,
            stage: Stage::Parse,
            bytes_equal,
            module_equal,
            difference,
            errors,
        });
    } else {
        match difference {
            None => ui.detail(format!("{file}: {}", ui.good("same"))),
            Some(d) => {
                let meaning = if module_equal { "" } else { ", and reads back as another module" };
                ui.line(format!(
                    "{file}: {} at {}:{}{meaning}\n  read     {}\n  printed  {}",
                    ui.bad("differs"),
                    d.line,
                    d.column,
                    d.expected,
                    d.actual
                ));
            }
        }
    }
    if ok { Exit::Ok } else { Exit::Differs }
}

fn first_difference(expected: &str, actual: &str) -> Option<Difference> {
    if expected == actual {
        return None;
    }
    let (mut e, mut a) = (expected.split('\n'), actual.split('\n'));
    let mut line = 0;
    loop {
        line += 1;
        let (left, right) = (e.next(), a.next());
        if left == right && left.is_some() {
            continue;
        }
        let (left_text, right_text) = (left.unwrap_or("<end>"), right.unwrap_or("<end>"));
        let same = left_text.bytes().zip(right_text.bytes()).take_while(|(x, y)| x == y).count();
        return Some(Difference {
            line,
            column: same + 1,
            expected: around(left_text, same),
            actual: around(right_text, same),
        });
    }
}

/// A piece of a line around a byte offset.
fn around(line: &str, at: usize) -> String {
    let mut from = at.saturating_sub(60).min(line.len());
    while !line.is_char_boundary(from) {
        from -= 1;
    }
    let mut to = (at + 60).min(line.len());
    while !line.is_char_boundary(to) {
        to += 1;
    }
    let (before, after) = (if from > 0 { "..." } else { "" }, if to < line.len() { "..." } else { "" });
    format!("{before}{}{after}", &line[from..to])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_has_a_place() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        let d = first_difference("a\nbcd\n", "a\nbxd\n").unwrap();
        assert_eq!((d.line, d.column, &*d.expected, &*d.actual), (2, 2, "bcd", "bxd"));
        let d = first_difference("a\n", "a").unwrap();
        assert_eq!((d.line, &*d.expected, &*d.actual), (2, "", "<end>"));
    }
}
