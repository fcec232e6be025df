//! `hlo filetest`: runs programs whose comments say what must come of them (see [`crate::filetest`]).

use std::path::Path;

use clap::Args;

use super::ui::Ui;
use crate::filetest::run_file;
use hlo_system::exit::{Exit, Failure};
use hlo_system::files::{read_source, write_text};

/// Options of `hlo filetest`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  hlo filetest conformance/filetests/ops/*.hlo\n  hlo filetest --bless conformance/filetests/print/short.hlo"
)]
pub(crate) struct Options {
    /// Files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Rewrite the golden sections from what the program says now; refused where CI is set
    #[arg(long)]
    bless: bool,
}

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    if options.bless && std::env::var_os("CI").is_some() {
        return Err(Failure::usage("--bless is refused where CI is set: goldens are blessed by people"));
    }
    let (mut passed, mut failed) = (0, 0);
    for file in &options.files {
        let source = read_source(file)?;
        match run_file(file, &source.text, options.bless) {
            Ok(blessed) => {
                passed += 1;
                match blessed {
                    Some(text) if options.bless => {
                        write_text(Path::new(file), &text)?;
                        ui.detail(format!("{file}: {}, blessed", ui.good("ok")));
                    }
                    _ => ui.detail(format!("{file}: {}", ui.good("ok"))),
                }
            }
            Err(problems) => {
                failed += 1;
                ui.line(problems);
            }
        }
    }
    ui.line(format!("{passed} passed, {failed} failed"));
    Ok(if failed == 0 { Exit::Ok } else { Exit::Differs })
}
