//! `hlo coverage`: which pairs of opcode and element type are verified and run ([`crate::coverage`]).

use std::path::{Path, PathBuf};

use clap::Args;
use hlo::{ElementType, Opcode};
use serde::Serialize;

use super::ui::Ui;
use crate::coverage::{Coverage, Key};
use hlo_system::exit::{Exit, Failure};

/// Options of `hlo coverage`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  hlo coverage conformance/filetests\n  hlo coverage --holes conformance/filetests\n  hlo coverage --json conformance/filetests | jq 'select(.legal and (.interpreted | not))'\n\nExit codes: 0 no holes, 1 holes or a test failed"
)]
pub(crate) struct Options {
    /// Filetests, or folders of them
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only the list of pairs that are missing, one a line
    #[arg(long)]
    holes: bool,
}

#[derive(Serialize)]
struct Object<'a> {
    opcode: &'static str,
    /// `f32`, `f32 -> s8`, or `-` for tokens.
    r#type: String,
    legal: bool,
    verified: bool,
    interpreted: bool,
    /// The first run: FILE:LINE.
    test: Option<&'a str>,
}

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let mut files = Vec::new();
    for path in &options.paths {
        collect(path, &mut files)?;
    }
    files.sort();
    let coverage = Coverage::measure(&files)?;
    let holes = coverage.holes();
    if ui.json {
        objects(&coverage, ui);
    } else if options.holes {
        holes.iter().for_each(|(opcode, key)| ui.raw(&format!("{opcode} {key}\n")));
    } else {
        table(&coverage, ui);
        summary(&coverage, &holes, ui);
    }
    for failed in &coverage.failed {
        ui.error(failed);
    }
    Ok(if holes.is_empty() && coverage.failed.is_empty() { Exit::Ok } else { Exit::Differs })
}

/// The filetests at or below a path; programs of `verify/` are broken on purpose.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = std::fs::read_dir(path)
        .map_err(|e| Failure::usage(format!("{}: {}", path.display(), hlo_system::files::describe(&e))))?;
    for entry in entries.flatten().map(|e| e.path()) {
        if entry.is_dir() && !entry.ends_with("verify") || entry.extension().is_some_and(|e| e == "hlo") {
            collect(&entry, files)?;
        }
    }
    Ok(())
}

fn objects(coverage: &Coverage, ui: &Ui) {
    for &opcode in Opcode::ALL {
        for key in coverage.legal.conceivable(opcode) {
            let test = coverage.interpreted.get(&(opcode, key)).map(String::as_str);
            ui.object(&Object {
                opcode: opcode.name(),
                r#type: key.to_string(),
                legal: coverage.legal.contains(opcode, key),
                verified: coverage.verified.contains(&(opcode, key)),
                interpreted: test.is_some(),
                test,
            });
        }
    }
}

/// The cell of the table for some pairs: the worst of them.
fn mark(coverage: &Coverage, opcode: Opcode, keys: &[Key]) -> char {
    let legal: Vec<Key> = keys.iter().copied().filter(|&k| coverage.legal.contains(opcode, k)).collect();
    let verified = |k: &Key| coverage.verified.contains(&(opcode, *k));
    if keys.iter().any(|k| verified(k) != coverage.legal.contains(opcode, *k)) {
        '!'
    } else if legal.is_empty() {
        '.'
    } else if legal.iter().all(|&k| coverage.covers(opcode, k)) {
        '#'
    } else {
        'v'
    }
}

fn table(coverage: &Coverage, ui: &Ui) {
    let width = Opcode::ALL.iter().map(|o| o.name().len()).max().unwrap_or(0);
    // Names of types downwards.
    let names: Vec<Vec<char>> = ElementType::ALL.iter().map(|t| t.name().chars().collect()).collect();
    let height = names.iter().map(Vec::len).max().unwrap_or(0);
    for row in 0..height {
        let line: String = names.iter().map(|n| format!(" {}", n.get(row).copied().unwrap_or(' '))).collect();
        ui.raw(&format!("{:width$}{}\n", "", line.trim_end()));
    }
    for &opcode in Opcode::ALL {
        let keys = coverage.legal.conceivable(opcode);
        let cell = |&ty: &ElementType| {
            let of: Vec<Key> = keys
                .iter()
                .copied()
                .filter(|k| match *k {
                    Key::On(on) => on == ty,
                    Key::FromTo(from, _) => from == ty,
                    Key::Nothing => true,
                })
                .collect();
            format!(" {}", mark(coverage, opcode, &of))
        };
        let row = if keys == [Key::Nothing] {
            format!(" {} tokens", mark(coverage, opcode, &keys))
        } else {
            ElementType::ALL.iter().map(cell).collect()
        };
        ui.raw(&format!("{:width$}{row}\n", opcode.name()));
    }
}

fn summary(coverage: &Coverage, holes: &[(Opcode, Key)], ui: &Ui) {
    ui.line("");
    ui.line("# run by a test   v verified alone   . not legal   ! the verifier is wrong");
    ui.line("convert, bitcast-convert: by the type of the operand, of all results");
    let legal: usize = Opcode::ALL.iter().map(|&o| coverage.legal.keys(o).len()).sum();
    let of_legal = holes.iter().filter(|(o, k)| coverage.legal.contains(*o, *k)).count();
    ui.line(format!("{} of {legal} legal pairs are run, {} holes", legal - of_legal, holes.len()));
    for &opcode in Opcode::ALL {
        let keys: Vec<String> =
            holes.iter().filter(|(o, _)| *o == opcode).map(|(_, k)| k.to_string()).collect();
        if !keys.is_empty() {
            let all = keys.len() == coverage.legal.keys(opcode).len();
            ui.line(format!("  {opcode}: {}", if all { "all".into() } else { keys.join(", ") }));
        }
    }
}
