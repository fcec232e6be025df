//! A command of the user's says whether a program fails.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::files::describe;
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
        let quoted = |p: &Path| format!("'{}'", p.display().to_string().replace('\'', "'\\''"));
        let mut line = self.command.clone();
        let places = [
            ("{dir}", folder.to_owned()),
            ("{module}", folder.join("module.hlo")),
            ("{inputs}", folder.join("inputs.npz")),
        ];
        let mut named = false;
        for (name, path) in places {
            named |= line.contains(name);
            line = line.replace(name, &quoted(&path));
        }
        if named { line } else { format!("{line} {}", quoted(folder)) }
    }

    fn run(&self, folder: &Path) -> Result<(Option<i32>, String), String> {
        let output = folder.join("output.txt");
        let file = std::fs::File::create(&output).map_err(|e| describe(&e))?;
        let errors = file.try_clone().map_err(|e| describe(&e))?;
        let mut shell = std::process::Command::new("sh");
        // A group of its own, so that what it starts can be ended with it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        let mut child = shell
            .arg("-c")
            .arg(self.line(folder))
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .spawn()
            .map_err(|e| describe(&e))?;
        let code = wait(&mut child, self.timeout);
        let text = std::fs::File::open(&output).map(|f| {
            let mut bytes = Vec::new();
            // What cannot be read is not looked at.
            let _ = std::io::Read::read_to_end(&mut std::io::Read::take(f, MOST_OUTPUT), &mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        Ok((code, text.unwrap_or_default()))
    }
}

/// The code that a process ends with (128 and the signal, if one ended it); `None` if it takes too long, and is ended.
fn wait(child: &mut Child, timeout: Duration) -> Option<i32> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(500);
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            #[cfg(unix)]
            let signal = std::os::unix::process::ExitStatusExt::signal(&status);
            #[cfg(not(unix))]
            let signal: Option<i32> = None;
            return Some(status.code().unwrap_or(128 + signal.unwrap_or(0)));
        }
        if start.elapsed() >= timeout {
            // It may have ended just now.
            #[cfg(unix)]
            let _ =
                std::process::Command::new("kill").args(["-9", "--", &format!("-{}", child.id())]).status();
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
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
