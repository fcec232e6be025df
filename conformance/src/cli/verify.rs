//! `hlo verify`: checks programs, a line for each, and goes on after a bad one.

use std::path::Path;

use clap::Args;
use serde::Serialize;

use super::test::list_others;
use super::ui::{Ui, closed};
use super::{MemoryOptions, ReadOptions};
use crate::folder::{Folder, Listed, no_program, scan};
use hlo::diag::render_all;
use hlo_engines::frontend::{JsonError, Program, Reading, Rejected, Stage, instruction_count, load_as};
use hlo_system::exit::{Exit, Failure};
use hlo_system::guard::guarded;
use hlo_triage::report::grouped;

/// Options of `hlo verify`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  hlo verify module.hlo\n  hlo verify dump --json                  all modules of a folder\n  cat module.hlo | hlo verify -"
)]
pub(crate) struct Options {
    /// Files, or folders of them; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    #[command(flatten)]
    pub(super) memory: MemoryOptions,
    #[command(flatten)]
    read: ReadOptions,
}

#[derive(Serialize)]
struct Object<'a> {
    file: &'a str,
    ok: bool,
    stage: Stage,
    errors: Vec<JsonError>,
}

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let mut exit = Exit::Ok;
    let reading = options.read.reading();
    for file in &options.files {
        exit = exit.first_failure(if file != "-" && Path::new(file).is_dir() {
            folder(file, &reading, ui)?
        } else {
            one(file, &reading, ui)
        });
        if closed() {
            break;
        }
    }
    Ok(exit)
}

fn one(file: &str, reading: &Reading, ui: &Ui) -> Exit {
    match guarded(&format!("verifying {file}"), || Ok(load_as(file, reading))) {
        Ok(Ok(program)) => {
            accept(file, &program, ui);
            Exit::Ok
        }
        Ok(Err(rejected)) => {
            reject(file, &rejected, ui);
            rejected.exit
        }
        Err(failure) => {
            super::report_failure(ui, &failure);
            failure.exit
        }
    }
}

/// A module of a folder, for machines.
#[derive(Serialize)]
struct ModuleObject<'a> {
    file: &'a str,
    ok: bool,
    stage: Stage,
    instructions: usize,
    forms: Vec<Object<'a>>,
}

/// All programs of a folder, a line for each module whatever number of forms there are of it.
fn folder(root: &str, reading: &Reading, ui: &Ui) -> Result<Exit, Failure> {
    if reading.pick.is_some() {
        return Err(Failure::usage(format!("--module takes one file, and {root} is a folder")));
    }
    let roots = [root.to_owned()];
    let Folder { cases, mut programs, others } = scan(&roots)?;
    programs.extend(cases.iter().filter_map(|case| Listed::of_case(case)));
    if programs.is_empty() {
        return Err(no_program(&roots, &others));
    }
    let mut exit = Exit::Ok;
    for program in &programs {
        exit = exit.first_failure(module(program, ui));
        if closed() {
            return Ok(exit);
        }
    }
    list_others(ui, &others);
    Ok(exit)
}

fn module(listed: &Listed, ui: &Ui) -> Exit {
    let (mut exit, mut instructions) = (Exit::Ok, 0);
    let files: Vec<(String, Reading)> = (std::iter::once(&listed.program).chain(&listed.passes))
        .chain(&listed.forms)
        .map(|form| (form.path.to_string_lossy().into_owned(), form.reading()))
        .collect();
    let mut forms = Vec::new();
    let mut bad = 0;
    for (i, (file, reading)) in files.iter().enumerate() {
        let object = match guarded(&format!("verifying {file}"), || Ok(load_as(file, reading))) {
            Ok(Ok(program)) => {
                super::warn(file, &program.source.text, [&program.warnings], ui);
                if i == 0 {
                    instructions = instruction_count(&program.module);
                }
                Object { file, ok: true, stage: Stage::Verify, errors: Vec::new() }
            }
            Ok(Err(rejected)) => {
                exit = exit.first_failure(rejected.exit);
                bad += 1;
                if !ui.json {
                    ui.raw_error(&rejected.render(ui.color_errors));
                }
                Object { file, ok: false, stage: rejected.stage, errors: rejected.json_errors() }
            }
            Err(failure) => {
                exit = exit.first_failure(failure.exit);
                bad += 1;
                ui.failure(&failure);
                Object { file, ok: false, stage: Stage::Verify, errors: Vec::new() }
            }
        };
        forms.push(object);
    }
    let (file, n) = (&*listed.name, forms.len());
    if ui.json {
        let stage = forms.iter().find(|f| !f.ok).map_or(Stage::Verify, |f| f.stage);
        ui.object(&ModuleObject { file, ok: exit == Exit::Ok, stage, instructions, forms });
        return exit;
    }
    let size =
        format!("{} instruction{}", grouped(instructions as u64), if instructions == 1 { "" } else { "s" });
    let of = if n == 1 { String::new() } else { format!(", {n} forms") };
    match (bad, n) {
        (0, _) => ui.detail(format!("{file}: {}, {size}{of}", ui.good("ok"))),
        (_, 1) => ui.line(format!("{file}: {}", ui.bad(rejection(exit)))),
        (bad, n) => ui.line(format!("{file}: {}: {bad} of {n} forms", ui.bad(rejection(exit)))),
    }
    exit
}

/// The kind of rejection of a program, in words.
fn rejection(exit: Exit) -> &'static str {
    match exit {
        Exit::Parse => "cannot be parsed",
        Exit::Verify => "does not verify",
        Exit::Ok | Exit::Differs | Exit::Usage | Exit::Unsupported | Exit::Trap | Exit::Internal => {
            "cannot be read"
        }
    }
}

fn accept(file: &str, program: &Program, ui: &Ui) {
    if ui.json {
        ui.object(&Object { file, ok: true, stage: Stage::Verify, errors: Vec::new() });
        return;
    }
    if !program.warnings.is_empty() && !ui.quiet {
        ui.raw_error(&render_all(&program.warnings, file, &program.source.text, ui.color_errors));
    }
    let times = if ui.verbose {
        let t = program.times;
        format!(
            "   read {} parse {} verify {}",
            hlo_triage::report::time(t.read),
            hlo_triage::report::time(t.parse),
            hlo_triage::report::time(t.verify)
        )
    } else {
        String::new()
    };
    let n = instruction_count(&program.module);
    ui.detail(format!(
        "{file}: {}, {} instruction{}{times}",
        ui.good("ok"),
        hlo_triage::report::grouped(n as u64),
        if n == 1 { "" } else { "s" }
    ));
}

fn reject(file: &str, rejected: &Rejected, ui: &Ui) {
    if ui.json {
        ui.object(&Object { file, ok: false, stage: rejected.stage, errors: rejected.json_errors() });
        return;
    }
    ui.raw_error(&rejected.render(ui.color_errors));
    ui.line(format!("{file}: {}", ui.bad(&rejected.summary())));
}
