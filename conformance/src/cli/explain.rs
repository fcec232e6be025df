//! `hlo explain`: the page of a diagnostic's code.

use clap::Args;
use hlo::diag::Code;
use hlo::diag::codes::all;
use hlo::diag::suggest::did_you_mean;
use serde::Serialize;

use super::ui::Ui;
use hlo_system::exit::{Exit, Failure};

/// Options of `hlo explain`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  hlo explain V0312\n  hlo explain --list")]
pub(crate) struct Options {
    /// The code, as errors show it in brackets, or its number
    #[arg(required_unless_present = "list")]
    code: Option<String>,
    /// List all codes
    #[arg(long)]
    list: bool,
}

#[derive(Serialize)]
struct Object {
    code: &'static str,
    title: &'static str,
    page: &'static str,
}

fn object(code: Code) -> Object {
    let info = code.info();
    Object { code: info.code, title: info.title, page: info.page }
}

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    if options.list {
        for code in all() {
            if ui.json {
                ui.object(&object(code));
            } else {
                ui.line(format!("{}  {}", code.as_str(), code.info().title));
            }
        }
        return Ok(Exit::Ok);
    }
    let wanted = options.code.as_deref().unwrap_or("");
    let code = match Code::find(wanted) {
        Some(code) => code,
        None => by_number(wanted)?.ok_or_else(|| unknown(wanted))?,
    };
    if ui.json {
        ui.object(&object(code));
    } else {
        ui.line(format!("{}: {}\n\n{}", code.as_str(), code.info().title, code.info().page.trim()));
    }
    Ok(Exit::Ok)
}

/// The code of this number, whatever its letter: `312` is V0312. Errors: several have it.
fn by_number(wanted: &str) -> Result<Option<Code>, Failure> {
    let Some(number) = wanted.parse::<u32>().ok().filter(|_| wanted.bytes().all(|b| b.is_ascii_digit()))
    else {
        return Ok(None);
    };
    let of = |code: &Code| code.as_str().get(1..).and_then(|n| n.parse::<u32>().ok()) == Some(number);
    let found: Vec<Code> = all().filter(of).collect();
    match found[..] {
        [] => Ok(None),
        [code] => Ok(Some(code)),
        [..] => {
            let named: Vec<String> =
                found.iter().map(|c| format!("  {}  {}", c.as_str(), c.info().title)).collect();
            Err(Failure::usage(format!("`{wanted}` is the number of several codes:\n{}", named.join("\n"))))
        }
    }
}

fn unknown(wanted: &str) -> Failure {
    // A piece of a title helps as much as a mistyped code.
    let lower = wanted.to_lowercase();
    let by_title: Vec<&str> = all()
        .filter(|c| lower.len() >= 3 && c.info().title.to_lowercase().contains(&lower))
        .map(Code::as_str)
        .take(5)
        .collect();
    let hint = if !by_title.is_empty() {
        format!("; did you mean one of {}?", by_title.join(", "))
    } else {
        let upper = wanted.to_uppercase();
        did_you_mean(&upper, all().map(Code::as_str))
            .map(|c| format!("; did you mean {c}?"))
            .unwrap_or_default()
    };
    Failure::usage(format!("there is no code `{wanted}`{hint} (`hlo explain --list` shows all)"))
}
