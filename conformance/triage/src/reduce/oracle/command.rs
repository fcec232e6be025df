//! A command of the user's says whether a program fails.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use crate::reduce::store::write_candidate;
use crate::reduce::{Candidate, Kind, Oracle, Signature, Trouble};
use hlo_system::files::describe;
use hlo_system::process::{self, Launch, Tail};
use hlo_system::scratch::{self, Scratch};

/// What the output of a failing command must have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Match {
    /// Anything.
    Any,
    /// This text somewhere.
    Text(String),
}

/// Runs a command on each candidate: a code other than 0 is a failure, the code (and the text looked for) is
/// its signature.
#[derive(Clone, Debug)]
pub struct Command {
    /// The command for `sh -c`; `{dir}`, `{module}` and `{inputs}` stand for the folder and its two files.
    /// Without any of them the folder is added at the end.
    pub command: String,
    /// What its output must have.
    pub output: Match,
    /// How long it may take; longer is a failure of its own kind.
    pub timeout: Duration,
    /// What it could not be run for.
    pub trouble: Trouble,
}

/// The most of its output that is looked at.
const MAX_OUTPUT_BYTES: usize = 16 << 20;

impl Command {
    fn line(&self, folder: &Path) -> OsString {
        let (module, inputs) = (folder.join("module.hlo"), folder.join("inputs.npz"));
        let substitutions: [(&str, &Path); 3] =
            [("{dir}", folder), ("{module}", &module), ("{inputs}", &inputs)];
        process::filled(&self.command, &substitutions, "{dir}")
    }

    fn run(&self, folder: &Scratch) -> io::Result<(Option<i32>, String)> {
        let mut launch = Launch::shell(self.line(folder.path()), false, Some(folder.root().path()))?;
        let (output, printed) = io::pipe()?;
        launch.command().stdout(printed.try_clone()?).stderr(printed);
        let mut process = launch.start()?;
        let output = Tail::first(output, MAX_OUTPUT_BYTES)?;
        let code = process.wait(self.timeout)?.map(code_of);
        Ok((code, output.text()))
    }

    /// Runs the command on a candidate. Errors: the environment lacks something for that.
    fn tried(&self, candidate: &Candidate) -> Result<(Option<i32>, String), String> {
        let folder = Scratch::new().map_err(|e| {
            let parent = scratch::parent();
            format!("no folder for candidates in {} (TMPDIR): {}", parent.display(), describe(&e))
        })?;
        write_candidate(folder.path(), candidate)?;
        let found =
            self.run(&folder).map_err(|e| format!("the command cannot be started: {}", describe(&e)))?;
        match folder.check() {
            Err(e) if found.0 != Some(0) => Err(format!("{}: {}", folder.path().display(), describe(&e))),
            Err(_) | Ok(()) => Ok(found),
        }
    }
}

/// The code that a process ended with; 128 and the signal, if one ended it.
fn code_of(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    status.code().unwrap_or(128 + signal.unwrap_or(0))
}

impl Oracle for Command {
    fn check(&self, candidate: &Candidate) -> Option<Signature> {
        let (code, output) = self.trouble.of(self.tried(candidate))?;
        let signature =
            |kind, code: Option<String>| Signature { kind, opcode: None, code, engine: String::new() };
        match code {
            None => Some(signature(Kind::Timeout, None)),
            Some(0) => None,
            Some(code) => match &self.output {
                Match::Any => Some(signature(Kind::Command, Some(format!("exit code {code}")))),
                Match::Text(text) if output.contains(text) => {
                    Some(signature(Kind::Command, Some(format!("exit code {code}, \"{text}\""))))
                }
                Match::Text(_) => None,
            },
        }
    }

    fn trouble(&self) -> Option<String> {
        self.trouble.get()
    }
}
