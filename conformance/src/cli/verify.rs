//! `hlo verify`: checks programs, a line for each, and goes on after a bad one.

use clap::Args;
use serde::Serialize;

use super::ui::{Ui, closed};
use crate::exit::{Exit, Failure};
use crate::frontend::{JsonError, Program, Rejected, Stage, instruction_count, load};
use crate::guard::guarded;
use hlo::diag::render_all;

/// Options of `hlo verify`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  hlo verify module.hlo\n  hlo verify dump/*.txt --json\n  cat module.hlo | hlo verify -"
)]
pub(crate) struct Options {
    /// Files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
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
    for file in &options.files {
        let result = guarded(&format!("verifying {file}"), || Ok(load(file)));
        exit = exit.first_failure(match result {
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
        });
        if closed() {
            break;
        }
    }
    Ok(exit)
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
            crate::report::time(t.read),
            crate::report::time(t.parse),
            crate::report::time(t.verify)
        )
    } else {
        String::new()
    };
    let n = instruction_count(&program.module);
    ui.detail(format!(
        "{file}: {}, {} instruction{}{times}",
        ui.good("ok"),
        crate::report::grouped(n as u64),
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
