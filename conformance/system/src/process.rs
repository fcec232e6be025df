//! Other programs' processes: lines for the shell, supervised processes, and their end.
//!
//! **Invariants:** no process that was started here outlives the wait for it, nor this process, however it
//! ends; no wait is longer than its timeout; what a process prints takes bounded memory ([`Tail`],
//! [`Lines`]).
//!
//! A process is started through a *supervisor*: this program once more, in its hidden mode ([`supervised`]),
//! in a process group of its own. What ties the two together is a socket pair, because the kernel closes one
//! end of it when its owner dies, of SIGKILL too:
//!
//! - the supervisor is a *subreaper* (Linux), so that whatever the command leaves in the background, in other
//!   sessions too, becomes its child, and is killed when the command ends or is ended;
//! - it reports the command's wait status over the socket, so that no exit code is taken for a signal;
//! - a socket that is shut down for writing only means "end it"; one that is closed means that this process
//!   is gone: then the supervisor removes the temporary folder of this process ([`crate::scratch`]) as well;
//! - what a server is sent goes over the socket, too.
//!
//! `PR_SET_PDEATHSIG` alone would do less: it reaches no grandchildren, it fires when the thread that forked
//! ends, and it can be set only between fork and exec, which is unsafe code.

mod output;
mod supervisor;

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub use output::{Lines, NoLine, Tail};
pub use supervisor::supervised;

/// `line` with each placeholder, such as `{module}`, replaced by its path, quoted; if it has none of them,
/// `otherwise` is added to it before. What a path has is not replaced again.
pub fn filled(line: &str, substitutions: &[(&str, &Path)], otherwise: &str) -> OsString {
    let mut text = line.to_owned();
    if substitutions.iter().all(|(placeholder, _)| !line.contains(placeholder)) {
        text.push(' ');
        text.push_str(otherwise);
    }
    let mut done = OsString::new();
    let mut rest = &*text;
    while let Some((at, placeholder, path)) = substitutions
        .iter()
        .filter_map(|(placeholder, path)| Some((rest.find(placeholder)?, placeholder, path)))
        .min_by_key(|m| m.0)
    {
        done.push(&rest[..at]);
        done.push(quoted(path.as_os_str()));
        rest = &rest[at + placeholder.len()..];
    }
    done.push(rest);
    done
}

/// A word for the shell, in single quotes.
pub fn quoted(word: &OsStr) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut bytes = vec![b'\''];
    for &b in word.as_bytes() {
        match b {
            b'\'' => bytes.extend_from_slice(br"'\''"),
            other => bytes.push(other),
        }
    }
    bytes.push(b'\'');
    OsString::from_vec(bytes)
}

/// The same of a text, and only where the shell would read it as something else.
pub fn quoted_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// This program, to be started once more. Errors: it is not known where it is.
pub fn this_program() -> io::Result<PathBuf> {
    // What runs, even if its file was replaced.
    let own = Path::new("/proc/self/exe");
    if own.exists() {
        return Ok(own.to_owned());
    }
    std::env::current_exe().or_else(|e| {
        let given = std::env::args_os().next().map(PathBuf::from);
        given.filter(|path| path.components().count() > 1 && path.is_file()).ok_or(e)
    })
}

/// A command that is to be started.
#[derive(Debug)]
pub struct Launch {
    command: Command,
    feeds: bool,
}

impl Launch {
    /// A program without arguments. Nothing is read from its standard input but what [`Process::send`] sends,
    /// if it `feeds` the program. `scratch` is the folder that goes when this process does.
    ///
    /// Errors: there is no supervisor, because this program did not begin with [`supervised`] or cannot be
    /// found.
    pub fn new(program: impl AsRef<OsStr>, feeds: bool, scratch: Option<&Path>) -> io::Result<Self> {
        if !supervisor::is_there() {
            return Err(io::Error::other("this program does not begin with `process::supervised`"));
        }
        let mut command = Command::new(this_program()?);
        command.arg(supervisor::MODE).arg(if feeds { "feed" } else { "null" });
        command.arg(scratch.unwrap_or(Path::new(""))).arg(program);
        command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Ok(Self { command, feeds })
    }

    /// A line for the shell.
    pub fn shell(line: impl AsRef<OsStr>, feeds: bool, scratch: Option<&Path>) -> io::Result<Self> {
        let mut launch = Self::new("sh", feeds, scratch)?;
        launch.command.arg("-c").arg(line);
        Ok(launch)
    }

    /// To add arguments, variables and outputs.
    pub fn command(&mut self) -> &mut Command {
        &mut self.command
    }

    /// Starts it.
    pub fn start(mut self) -> io::Result<Process> {
        let (line, theirs) = UnixStream::pair()?;
        let supervisor = self.command.stdin(Stdio::from(OwnedFd::from(theirs))).spawn()?;
        Ok(Process { supervisor, line, said: Vec::new(), feeds: self.feeds, is_over: false })
    }
}

/// A supervised process. It ends when this is dropped.
#[derive(Debug)]
pub struct Process {
    supervisor: Child,
    line: UnixStream,
    /// What the supervisor has said of its last line so far.
    said: Vec<u8>,
    feeds: bool,
    is_over: bool,
}

/// The longest time that a supervisor needs to end what it watches.
const END_TIMEOUT: Duration = Duration::from_secs(8);

/// The longest report of a supervisor.
const MAX_MESSAGE_BYTES: usize = 64;

impl Process {
    /// Its standard output, if that is piped; the second time `None`.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.supervisor.stdout.take()
    }

    /// The same of standard error.
    pub fn stderr(&mut self) -> Option<ChildStderr> {
        self.supervisor.stderr.take()
    }

    /// Waits for its end; `None`: it took too long, and was ended with all that it started. Errors: it could
    /// not be started, or its supervisor was killed; neither is a fault of the command.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<Option<ExitStatus>> {
        let start = Instant::now();
        loop {
            if let Some(at) = self.said.iter().position(|&b| b == b'\n') {
                let said = String::from_utf8_lossy(&self.said[..at]).into_owned();
                self.end();
                return status(&said).map(Some);
            }
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                self.end();
                return Ok(None);
            }
            match self.read(left) {
                Ok(0) => {
                    self.end();
                    return Err(io::Error::other("what supervised it was killed"));
                }
                Ok(_) => {}
                Err(e) if is_pause(&e) => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Whether it has ended.
    pub fn is_gone(&mut self) -> bool {
        if !self.is_over && self.said.is_empty() {
            return match self.read(Duration::from_micros(1)) {
                Ok(0) => true,
                Ok(_) => !self.said.is_empty(),
                Err(e) => !is_pause(&e),
            };
        }
        true
    }

    fn read(&mut self, left: Duration) -> io::Result<usize> {
        let mut bytes = [0; MAX_MESSAGE_BYTES];
        self.line.set_read_timeout(Some(left.max(Duration::from_micros(1))))?;
        let n = self.line.read(&mut bytes)?;
        self.said.extend_from_slice(&bytes[..n]);
        if self.said.len() > MAX_MESSAGE_BYTES {
            return Err(io::Error::other("what supervised it says what it should not"));
        }
        Ok(n)
    }

    /// Writes to its standard input. Errors: it takes too long to read it, or is gone.
    pub fn send(&mut self, bytes: &[u8], timeout: Duration) -> io::Result<()> {
        debug_assert!(self.feeds, "nobody reads it otherwise");
        self.line.set_write_timeout(Some(timeout.max(Duration::from_millis(1))))?;
        self.line.write_all(bytes)
    }

    /// Ends it, with all that it started.
    pub fn end(&mut self) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        // Whoever is gone needs no ending.
        let _ = self.line.shutdown(Shutdown::Write);
        let start = Instant::now();
        let mut pause = Duration::from_micros(100);
        while start.elapsed() < END_TIMEOUT {
            if !matches!(self.supervisor.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(10));
        }
        let _ = self.supervisor.kill();
        let _ = self.supervisor.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Whether nothing has come yet.
fn is_pause(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Parses a supervisor's report.
fn status(said: &str) -> io::Result<ExitStatus> {
    let number = |text: &str| text.parse::<i32>().ok();
    match said.split_once(' ').map(|(what, n)| (what, number(n))) {
        Some((supervisor::ENDED, Some(raw))) => Ok(ExitStatus::from_raw(raw)),
        Some((supervisor::FAILED, Some(errno))) => Err(io::Error::from_raw_os_error(errno)),
        _ => Err(io::Error::other("what supervised it says what it should not")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_and_quoted() {
        let (a, b) = (Path::new("/a b"), Path::new("/it's"));
        let fill = |line| filled(line, &[("{x}", a), ("{y}", b)], "{y} {x}");
        assert_eq!(fill("run --in {x}"), "run --in '/a b'");
        assert_eq!(fill("run"), r"run '/it'\''s' '/a b'");
    }

    #[test]
    fn what_a_path_has_is_not_filled() {
        let (a, b) = (Path::new("/t/{y}/a"), Path::new("/t/{x}/b"));
        let fill = |line| filled(line, &[("{x}", a), ("{y}", b)], "{y} {x}");
        assert_eq!(fill("{x}{x} {y}"), "'/t/{y}/a''/t/{y}/a' '/t/{x}/b'");
    }

    #[test]
    fn words_are_quoted_where_that_is_needed() {
        assert_eq!(quoted_word("serve:python3"), "serve:python3");
        assert_eq!(quoted_word("exec:rm -rf $HOME; it's"), r"'exec:rm -rf $HOME; it'\''s'");
        assert_eq!(quoted_word(""), "''");
    }

    #[test]
    fn reports_are_read() {
        assert_eq!(status("ended 256").unwrap().code(), Some(1));
        assert_eq!(status("ended 9").unwrap().signal(), Some(9));
        assert_eq!(status("failed 2").unwrap_err().kind(), ErrorKind::NotFound);
        assert!(status("ended").is_err() && status("ended x").is_err() && status("").is_err());
    }
}
