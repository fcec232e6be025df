//! A command of the user's says whether a program fails.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use crate::files::describe;
use crate::process;
use crate::reduce::store::write_candidate;
use crate::reduce::{Candidate, Kind, Oracle, Signature};

/// What the output of a failing command must have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Match {
    /// Anything.
    Any,
    /// This text somewhere.
    Text(String),
}

/// Runs a command on each candidate: a code other than 0 is a failure, the code (and the text looked for) is its signature.
#[derive(Clone, Debug)]
pub struct Command {
    /// The command for `sh -c`; `{dir}`, `{module}` and `{inputs}` stand for the folder and its two files. Without any of them the
    /// folder is added at the end.
    pub command: String,
    /// What its output must have.
    pub output: Match,
    /// How long it may take; longer is a failure of its own kind.
    pub timeout: Duration,
}

/// The most of its output that is looked at.
const MOST_OUTPUT: u64 = 16 << 20;

impl Command {
    fn line(&self, folder: &Path) -> String {
        let (module, inputs) = (folder.join("module.hlo"), folder.join("inputs.npz"));
        let places: [(&str, &Path); 3] = [("{dir}", folder), ("{module}", &module), ("{inputs}", &inputs)];
        process::filled(&self.command, &places, "{dir}")
    }

    fn run(&self, folder: &Path) -> Result<(Option<i32>, String), String> {
        let output = folder.join("output.txt");
        let file = std::fs::File::create(&output).map_err(|e| describe(&e))?;
        let errors = file.try_clone().map_err(|e| describe(&e))?;
        let mut shell = std::process::Command::new("sh");
        let mut child = process::grouped(&mut shell)
            .arg("-c")
            .arg(self.line(folder))
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .spawn()
            .map_err(|e| describe(&e))?;
        let code = process::wait(&mut child, self.timeout).map(code_of);
        let text = std::fs::File::open(&output).map(|f| {
            let mut bytes = Vec::new();
            // What cannot be read is not looked at.
            let _ = std::io::Read::read_to_end(&mut std::io::Read::take(f, MOST_OUTPUT), &mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        Ok((code, text.unwrap_or_default()))
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
        let folder = tempfile::Builder::new().prefix("hlo-reduce-").tempdir().ok()?;
        let result = write_candidate(folder.path(), candidate).and_then(|()| self.run(folder.path()));
        let (code, output) = result.ok()?;
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
}
