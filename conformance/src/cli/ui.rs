//! What commands print, and how.
//!
//! **Invariants:** standard output has results, standard error has progress and errors; colour and progress appear only on a
//! terminal, and not under `NO_COLOR`; a reader that closes the pipe early ends output quietly, without a panic. Whatever else standard
//! output cannot take is one error at the end ([`finish`]), never a success: all that commands print goes through here.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::files::describe;

/// Why standard output takes no more: its reader is gone, or its disk is full.
static BROKEN: OnceLock<io::Error> = OnceLock::new();

/// How a command talks.
#[derive(Clone, Copy, Debug)]
pub struct Ui {
    /// Only errors.
    pub quiet: bool,
    /// More detail.
    pub verbose: bool,
    /// One JSON object a line.
    pub json: bool,
    /// Colour on standard output.
    pub color: bool,
    /// Colour on standard error.
    pub color_errors: bool,
    /// Progress on standard error.
    pub progress: bool,
}

impl Ui {
    /// From flags and surroundings.
    pub fn new(quiet: bool, verbose: bool, json: bool) -> Self {
        let color = std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
            && std::env::var_os("TERM").is_none_or(|t| t != "dumb");
        let (out, err) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        Self {
            quiet,
            verbose,
            json,
            color: color && out,
            color_errors: color && err,
            progress: err && !quiet,
        }
    }

    /// A line of results.
    pub fn line(&self, text: impl AsRef<str>) {
        out(text.as_ref());
        out("\n");
    }

    /// A line of detail: not when quiet, and not between JSON objects.
    pub fn detail(&self, text: impl AsRef<str>) {
        if !self.quiet && !self.json {
            self.line(text);
        }
    }

    /// Text as it is.
    pub fn raw(&self, text: &str) {
        out(text);
    }

    /// One JSON object on its own line.
    pub fn object(&self, value: &impl Serialize) {
        match serde_json::to_string(value) {
            Ok(text) => self.line(text),
            Err(e) => self.error(format!("cannot be written as JSON: {e}")),
        }
    }

    /// A problem, on standard error.
    pub fn error(&self, text: impl AsRef<str>) {
        let (on, off) = if self.color_errors { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
        err(&format!("{on}error{off}: {}\n", text.as_ref()));
    }

    /// Why a command failed, on standard error.
    pub fn failure(&self, failure: &Failure) {
        if failure.rendered {
            // Diagnostics begin with their own `error[CODE]`.
            err(&failure.message);
        } else {
            self.error(&failure.message);
        }
    }

    /// Something to know, on standard error.
    pub fn warn(&self, text: impl AsRef<str>) {
        if !self.quiet {
            err(&format!("warning: {}\n", text.as_ref()));
        }
    }

    /// Text as it is, on standard error.
    pub fn raw_error(&self, text: &str) {
        err(text);
    }

    /// Green, on a terminal.
    pub fn good(&self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Red, on a terminal.
    pub fn bad(&self, text: &str) -> String {
        self.paint("1;31", text)
    }

    /// Grey, on a terminal.
    pub fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// A bar for so many things, with the time left; invisible where there is no terminal.
    pub fn bar(&self, total: u64) -> ProgressBar {
        let target = if self.progress { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        if let Ok(style) = ProgressStyle::with_template(" [{bar:28}] {pos}/{len}   {msg}   {eta} left") {
            bar.set_style(style.progress_chars("#>-"));
        }
        bar
    }
}

fn out(text: &str) {
    if !closed() {
        written(io::stdout().lock().write_all(text.as_bytes()));
    }
}

/// Remembers that standard output failed. For what others print there.
pub(super) fn written(result: io::Result<()>) {
    if let Err(e) = result {
        // The first error says why; later ones follow from it.
        let _ = BROKEN.set(e);
    }
}

fn err(text: &str) {
    // Nothing is left to tell if standard error is gone.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Pushes out what is buffered, before the process ends with `code`, and returns the code that it ends with: another one if that was
/// success and standard output did not take everything.
pub fn finish(code: u8) -> u8 {
    if !closed() {
        written(io::stdout().lock().flush());
    }
    let code = match BROKEN.get() {
        Some(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            err(&format!("error: standard output cannot be written: {}\n", describe(e)));
            if code == Exit::Ok.code() { Exit::Usage.code() } else { code }
        }
        _ => code,
    };
    let _ = io::stderr().lock().flush();
    code
}

/// Whether standard output takes no more, so that further results reach nobody.
pub fn closed() -> bool {
    BROKEN.get().is_some()
}
