//! What commands print, and how.
//!
//! **Invariants:** standard output has results, standard error has progress and errors; colour and progress appear only on a
//! terminal, and not under `NO_COLOR`; a reader that closes the pipe early ends output quietly, without a panic.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

/// Set when nobody reads standard output any more.
static CLOSED: AtomicBool = AtomicBool::new(false);

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
    if CLOSED.load(Ordering::Relaxed) {
        return;
    }
    let mut stdout = io::stdout().lock();
    if stdout.write_all(text.as_bytes()).is_err() {
        CLOSED.store(true, Ordering::Relaxed);
    }
}

fn err(text: &str) {
    // Nothing is left to tell if standard error is gone.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Pushes out what is buffered, before the process ends.
pub fn flush() {
    let _ = io::stdout().lock().flush();
    let _ = io::stderr().lock().flush();
}

/// Whether the reader of standard output is gone.
pub fn closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}
