//! Processes that answer line by line, and stay for the next question.
//!
//! A question is a JSON object a line; an answer is `{"ok": true}` or
//! `{"error": "why", "kind": "unsupported"}` (or `"trap"`, `"error"`).
//!
//! **Invariants:** a question ends within its time limit with an answer or an outcome that says why there is
//! none; a process that gave no answer is ended, and the next question starts another.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hlo::diag::codes;
use hlo::{Diagnostic, Span};
use hlo_system::exit::Exit;
use hlo_system::files::describe;
use hlo_system::process::{Launch, Lines, NoLine, Process, Tail};
use hlo_system::scratch::{self, Root};
use serde::{Deserialize, Serialize};

use super::Outcome;

/// A process that serves.
#[derive(Debug)]
pub(super) struct Server {
    process: Process,
    answers: Lines,
    /// Its standard error.
    errors: Option<Tail>,
    /// The folder of its requests' files: it ends before they are removed.
    _root: Arc<Root>,
}

/// The maximum number of bytes of standard error that are kept.
const MAX_STDERR_BYTES: usize = 16 << 10;

/// A path as JSON can say it. Errors: it is not UTF-8.
pub(super) fn said(path: &Path) -> Result<String, Outcome> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        let what =
            "the folder for temporary files (TMPDIR) has a name that is not UTF-8, which JSON cannot say";
        Outcome::lacking(format!("{}: {what}", scratch::parent().display()))
    })
}

/// A line of a server: `ok`, or why there are no results.
#[derive(Serialize, Deserialize)]
pub struct Answer {
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ok: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    error: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    kind: String,
}

/// Kinds of failure that a server tells apart; all others are the engine's.
const UNSUPPORTED: &str = "unsupported";
const TRAP: &str = "trap";

impl Answer {
    /// The results are written.
    pub fn ok() -> Self {
        Self { ok: true, error: String::new(), kind: String::new() }
    }

    /// There are none, as a program ends that cannot give them.
    pub fn failed(exit: Exit, error: String) -> Self {
        let kind = match exit {
            Exit::Unsupported => UNSUPPORTED,
            Exit::Trap => TRAP,
            Exit::Ok | Exit::Differs | Exit::Usage | Exit::Parse | Exit::Verify | Exit::Internal => "error",
        };
        Self { ok: false, error, kind: kind.to_owned() }
    }
}

impl Server {
    fn start(launch: io::Result<Launch>, root: &Arc<Root>) -> io::Result<Server> {
        let mut launch = launch?;
        launch.command().stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = launch.start()?;
        let none = || io::Error::other("it has no standard output");
        let answers = Lines::of(process.stdout().ok_or_else(none)?)?;
        let errors = process.stderr().map(|from| Tail::last(from, MAX_STDERR_BYTES)).transpose()?;
        Ok(Server { process, answers, errors, _root: root.clone() })
    }

    /// Asks the process, which `launch` starts if there is none, and waits for the answer. One that gives
    /// none is ended.
    pub(super) fn ask(
        server: &mut Option<Server>,
        name: &str,
        launch: impl FnOnce() -> io::Result<Launch>,
        root: &Arc<Root>,
        question: &impl Serialize,
        timeout: Duration,
    ) -> Result<(), Outcome> {
        let lacks = |what: &str, e: &io::Error| Outcome::lacking(format!("{what}: {}", describe(e)));
        if server.as_mut().is_some_and(|s| s.process.is_gone()) {
            *server = None;
        }
        let this = match server {
            Some(running) => running,
            None => {
                let started = Server::start(launch(), root);
                server.insert(started.map_err(|e| lacks(&format!("{name} cannot be started"), &e))?)
            }
        };
        let line = serde_json::to_string(question).map_err(|e| lacks("the run's line", &e.into()))?;
        let start = Instant::now();
        let answer = match this.process.send(format!("{line}\n").as_bytes(), timeout) {
            Ok(()) => this.answers.next(timeout.saturating_sub(start.elapsed())),
            Err(_) if start.elapsed() >= timeout => Err(NoLine::TimedOut),
            Err(_) => Err(NoLine::End),
        };
        let found = match answer {
            Ok(line) => match answered(name, &line) {
                Ok(results) => return results,
                // Whatever it says next may be the answer to this question.
                Err(none) => none,
            },
            Err(NoLine::TimedOut) => Outcome::timed_out(name, timeout),
            Err(NoLine::TooLong) => {
                let most = Lines::MAX_BYTES;
                Outcome::crashed(format!("{name} printed a line of more than the {most} bytes that are read"))
            }
            // It closed its output, and may still be there.
            Err(NoLine::End) => match this.process.wait(Duration::from_secs(1).min(timeout)) {
                Ok(Some(status)) => {
                    let said = this.errors.take().map(|e| last_words(&e.text())).unwrap_or_default();
                    let said = if said.is_empty() { said } else { format!(": {said}") };
                    Outcome::crashed(format!("the engine ended with {status}{said}"))
                }
                Ok(None) => Outcome::crashed(format!("{name} closed its standard output without an answer")),
                Err(e) => lacks(&format!("{name} cannot be run"), &e),
            },
        };
        *server = None;
        Err(found)
    }
}

/// What a process said of its end: the fatal line of a log such as XLA's
/// (`F0000 00:00:1.5 99 literal.cc:7] Check failed: ...`) without times and numbers of processes, so that the
/// same failure has the same words; or else its last lines.
fn last_words(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    let fatal = |line: &&str| {
        let mut bytes = line.bytes();
        bytes.next() == Some(b'F') && bytes.by_ref().take(4).filter(u8::is_ascii_digit).count() == 4
    };
    if let Some((head, said)) = lines.iter().copied().rfind(fatal).and_then(|line| line.split_once("] ")) {
        let source = head.rsplit(' ').next().unwrap_or_default();
        return format!("{source}: {said}");
    }
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}

/// The number of last lines of a failed process that are reported.
const LAST_LINES: usize = 4;

/// Parses a server's answer: there are results, or an outcome without them. Error: it is malformed.
pub fn answered(name: &str, line: &str) -> Result<Result<(), Outcome>, Outcome> {
    match serde_json::from_str::<Answer>(line) {
        Ok(Answer { ok: true, .. }) => Ok(Ok(())),
        Ok(Answer { error, .. }) if error.is_empty() => {
            let line: String = line.chars().take(120).collect();
            Err(Outcome::crashed(format!("{name} answered neither `ok` nor an `error`: {line}")))
        }
        Ok(Answer { error, kind, .. }) => Ok(Err(match &*kind {
            UNSUPPORTED => {
                Outcome::Unsupported(Diagnostic::error(codes::UNSUPPORTED_OPCODE, Span::NONE, error))
            }
            TRAP => Outcome::Trap(Diagnostic::error(codes::ENGINE_FAILED, Span::NONE, error)),
            _ => Outcome::crashed(error),
        })),
        Err(e) => Err(Outcome::crashed(format!("{name} answered what is no answer: {e}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::last_words;

    #[test]
    fn fatal_lines_are_told_without_what_changes() {
        let text = "I0000 x\nF0000 00:00:1795.5    4300 literal.cc:2531] Check failed: a == b \n*** trace: ***\n  @ 0x7f\n";
        assert_eq!(last_words(text), "literal.cc:2531: Check failed: a == b ");
        assert_eq!(last_words("1\n2\n3\n4\nFile not found\n"), "2\n3\n4\nFile not found");
        assert_eq!(last_words(""), "");
    }
}
