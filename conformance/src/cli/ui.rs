//! What commands print, and how.
//!
//! **Invariants:** standard output has results, standard error has progress and errors; colour and progress
//! appear only on a terminal, and not under `NO_COLOR`; a reader that closes the pipe early ends output
//! quietly. Other failures of standard output are one error at the end ([`finish`]): all commands print
//! through here.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use hlo_system::exit::{Exit, Failure};
use hlo_system::files::describe;

/// Why standard output takes no more: its reader is gone, or its disk is full.
static BROKEN: OnceLock<io::Error> = OnceLock::new();

/// Options of output.
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
        out(&harmless(text.as_ref(), self.color));
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

    /// Bytes as they are.
    pub fn raw_bytes(&self, bytes: &[u8]) {
        if !closed() {
            written(io::stdout().lock().write_all(bytes));
        }
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
        err(&format!("{on}error{off}: {}\n", harmless(text.as_ref(), false)));
    }

    /// Something that is done which must be seen, on standard error.
    pub fn note(&self, text: impl AsRef<str>) {
        err(&format!("note: {}\n", harmless(text.as_ref(), false)));
    }

    /// Why a command failed, on standard error.
    pub fn failure(&self, failure: &Failure) {
        if failure.rendered {
            // Diagnostics begin with their own `error[CODE]`.
            err(&harmless(&failure.message, self.color_errors));
        } else {
            self.error(&failure.message);
        }
    }

    /// Something to know, on standard error.
    pub fn warn(&self, text: impl AsRef<str>) {
        if !self.quiet {
            err(&format!("warning: {}\n", harmless(text.as_ref(), false)));
        }
    }

    /// Rendered text, on standard error.
    pub fn raw_error(&self, text: &str) {
        err(&harmless(text, self.color_errors));
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

    /// A progress bar for `total` items, with the time left; invisible where there is no terminal.
    pub fn bar(&self, total: u64) -> ProgressBar {
        let target = if self.progress { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        if let Ok(style) = ProgressStyle::with_template(" [{bar:28}] {pos}/{len}   {msg}   {eta} left") {
            bar.set_style(style.progress_chars("#>-"));
        }
        bar
    }
}

/// Text without what a terminal obeys: control characters and marks that change the direction of text, as
/// names may have, are escaped. Line ends and tabs stay, and colours where we may have set them.
fn harmless(text: &str, colours: bool) -> Cow<'_, str> {
    let is_harmful = |c: char| {
        c.is_control() && c != '\n' && c != '\t'
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(is_harmful) {
        safe.push_str(&rest[..at]);
        rest = &rest[at..];
        match colour(rest).filter(|_| colours) {
            Some(length) => {
                safe.push_str(&rest[..length]);
                rest = &rest[length..];
            }
            None => {
                let mut all = rest.chars();
                safe.extend(all.next().into_iter().flat_map(char::escape_default));
                rest = all.as_str();
            }
        }
    }
    safe.push_str(rest);
    Cow::Owned(safe)
}

/// The length of the setting of a colour that a text begins with: `ESC [ 1 ; 31 m`.
fn colour(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\x1b[")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    numbers[end..].starts_with('m').then_some(end + 3)
}

/// Prints what clap says of wrong usage, on standard error.
pub(super) fn usage(e: &clap::Error) {
    let text = e.render();
    let text = if io::stderr().is_terminal() { text.ansi().to_string() } else { text.to_string() };
    err(&harmless(&text, io::stderr().is_terminal()));
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

/// Pushes out what is buffered, before the process ends with `code`, and returns the code that it ends with:
/// another one if that was success and standard output did not take everything.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_told_nothing() {
        assert_eq!(harmless("plain\ttext\n", false), "plain\ttext\n");
        assert_eq!(harmless("a\x1b[2Jb\x07\r", true), "a\\u{1b}[2Jb\\u{7}\\r");
        assert_eq!(harmless("\x1b[1;31mred\x1b[0m", true), "\x1b[1;31mred\x1b[0m");
        assert_eq!(harmless("\x1b[1;31mred", false), "\\u{1b}[1;31mred");
        assert_eq!(harmless("\x1b", true), "\\u{1b}");
        assert_eq!(harmless("\u{9b}31m \u{202e}cba", true), "\\u{9b}31m \\u{202e}cba");
    }
}
