//! The supervisor: this program in its hidden mode, which starts one command, and ends all that comes of it.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, wait};

use crate::scratch;

/// The first argument of a supervisor.
pub(super) const MODE: &str = "__supervise";
/// The prefix of a report; the wait status follows.
pub(super) const ENDED: &str = "ended";
/// The same where the command was not started; the system's number of the error follows.
pub(super) const FAILED: &str = "failed";

/// Whether this program supervises when it is asked to.
static IS_THERE: AtomicBool = AtomicBool::new(false);

pub(super) fn is_there() -> bool {
    IS_THERE.load(Ordering::Relaxed)
}

/// The first thing that a program does that starts others: if it was started to supervise, it does that, and
/// the exit code to end with is returned.
pub fn supervised() -> Option<u8> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != MODE) {
        IS_THERE.store(true, Ordering::Relaxed);
        return None;
    }
    let feeds = arguments.next().is_some_and(|mode| mode == "feed");
    let scratch = arguments.next().map(PathBuf::from).unwrap_or_default();
    let Some(program) = arguments.next() else { return Some(2) };
    let line = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
    let Ok(mut line) = line else { return Some(2) };
    let report = match supervise(&line, feeds, &scratch, &program, arguments) {
        Ok(status) => format!("{ENDED} {status}\n"),
        // What has no number is a lack of something: EAGAIN.
        Err(e) => format!("{FAILED} {}\n", e.raw_os_error().unwrap_or(11)),
    };
    // Whoever asked may be gone.
    let _ = line.write_all(report.as_bytes());
    Some(0)
}

/// Runs a command to its end, or until nobody waits for it any more. Returns its wait status.
fn supervise(
    line: &UnixStream,
    feeds: bool,
    scratch: &Path,
    program: &OsString,
    arguments: impl Iterator<Item = OsString>,
) -> io::Result<i32> {
    // A name of its own, so that `killall` of this program's name spares it, which ends when this program
    // does.
    let _ = rustix::thread::set_name(c"hlo-supervisor");
    // Elsewhere only the command's group is ended.
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    // Threads before the command, so that nothing runs unwatched if there are none.
    let command = Arc::new(Mutex::new(None::<Pid>));
    let watch = {
        let (line, command, scratch) = (line.try_clone()?, command.clone(), scratch.to_owned());
        move || hang_up(&line, &command, &scratch)
    };
    std::thread::Builder::new().spawn(watch)?;
    let mut child = {
        let mut command = command.lock().unwrap_or_else(PoisonError::into_inner);
        let mut line = Command::new(program);
        line.args(arguments).process_group(0);
        let child = line.stdin(if feeds { Stdio::piped() } else { Stdio::null() }).spawn()?;
        *command = Some(Pid::from_child(&child));
        child
    };
    let own = Pid::from_child(&child);
    if let Some(stdin) = child.stdin.take() {
        let line = line.try_clone()?;
        if let Err(e) = std::thread::Builder::new().spawn(move || feed(line, stdin)) {
            end_all(own);
            return Err(e);
        }
    }
    let status = loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == own => break Ok(status.as_raw()),
            // What the command has left.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => break Err(e.into()),
        }
    };
    // Held for good by whoever hears that nobody waits any more, and ends this process.
    let _one = command.lock().unwrap_or_else(PoisonError::into_inner);
    end_all(own);
    status
}

/// Copies what the command is sent. One that reads nothing blocks this thread alone.
fn feed(mut line: UnixStream, stdin: ChildStdin) {
    let mut stdin = Some(stdin);
    let mut bytes = [0; 4096];
    while let Ok(n @ 1..) = line.read(&mut bytes) {
        // One that closed its input gets no more.
        if stdin.as_mut().is_some_and(|to| to.write_all(&bytes[..n]).and_then(|()| to.flush()).is_err()) {
            stdin = None;
        }
    }
}

/// Waits until nobody waits any more, and ends everything, this process too.
fn hang_up(line: &UnixStream, command: &Mutex<Option<Pid>>, scratch: &Path) {
    let seen = loop {
        let mut fds = [PollFd::new(line, PollFlags::RDHUP)];
        match poll(&mut fds, None) {
            Ok(_) if fds[0].revents().intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR) => {
                break fds[0].revents();
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break PollFlags::empty(),
        }
    };
    let command = command.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(command) = *command {
        end_all(command);
    }
    if !scratch.as_os_str().is_empty() {
        // Shut down is one direction, closed are both: then nobody else removes it.
        if seen.contains(PollFlags::HUP) {
            scratch::remove_of_dead(scratch);
        }
        // Of this program in a process of its own, which was killed with its supervisors.
        scratch::sweep_beside(scratch);
    }
    std::process::exit(0);
}

/// The time to wait for killed processes to end.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Kills a command's group and whatever else is a child of this process, until there is none.
fn end_all(command: Pid) {
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    // It may have no members any more.
    let _ = kill_process_group(command, Signal::KILL);
    loop {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
        if start.elapsed() > KILL_TIMEOUT {
            return;
        }
        let _ = kill_process_group(command, Signal::KILL);
        for child in children() {
            let _ = kill_process(child, Signal::KILL);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// The children of this process: those of others came here when their parents ended, and theirs will.
fn children() -> Vec<Pid> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let of = |entry: std::fs::DirEntry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // `PID (name) state parent`, and the name may have spaces and parentheses.
        let parent: i32 = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
        Pid::from_raw(pid).filter(|_| parent == own)
    };
    std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(of).collect()
}
