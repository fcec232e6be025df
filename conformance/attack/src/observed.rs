//! A command of the program, run as a process and watched: its end, its output, its memory, its time.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use hlo_system::resident;

/// Bytes of each stream that are kept: of its beginning and of its end.
const KEPT_BYTES: usize = 32 << 10;
/// The interval at which memory is sampled.
const SAMPLING_PERIOD: Duration = Duration::from_millis(4);

/// The limits of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) deadline: Duration,
    /// The most resident memory, in bytes.
    pub(crate) resident_bytes: u64,
}

/// The end of a command.
#[derive(Debug)]
pub(crate) struct Observed {
    /// Absent where it was killed at the deadline.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) text: String,
    pub(crate) peak_bytes: u64,
    pub(crate) time: Duration,
}

fn kept(mut from: impl Read) -> String {
    let (mut begin, mut end) = (Vec::new(), Vec::new());
    let mut block = [0u8; 8192];
    while let Ok(n) = from.read(&mut block) {
        if n == 0 {
            break;
        }
        if begin.len() < KEPT_BYTES {
            begin.extend_from_slice(&block[..n]);
        } else {
            end.extend_from_slice(&block[..n]);
            if end.len() > 2 * KEPT_BYTES {
                end.drain(..end.len() - KEPT_BYTES);
            }
        }
    }
    begin.extend(end);
    String::from_utf8_lossy(&begin).into_owned()
}

/// Runs a command to its end or the deadline. `then` is called with its process id every few milliseconds.
pub(crate) fn observe(
    command: &mut Command,
    bounds: Bounds,
    then: &mut dyn FnMut(u32, Duration),
) -> std::io::Result<Observed> {
    let start = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        let out = scope.spawn(|| out.map_or_else(String::new, kept));
        let err = scope.spawn(|| err.map_or_else(String::new, kept));
        let (mut peak_bytes, mut period) = (0, Duration::from_millis(1));
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break Some(status);
            }
            peak_bytes = resident::peak_of(child.id()).unwrap_or(0).max(peak_bytes);
            then(child.id(), start.elapsed());
            if start.elapsed() > bounds.deadline || peak_bytes > 2 * bounds.resident_bytes {
                child.kill()?;
                child.wait()?;
                break None;
            }
            std::thread::sleep(period);
            period = (period * 2).min(SAMPLING_PERIOD);
        };
        let time = start.elapsed();
        let text = [out.join().unwrap_or_default(), err.join().unwrap_or_default()].concat();
        Ok(Observed { status, text, peak_bytes, time })
    })
}

/// The violation of an end, if any: its kind and identifying text. `signal` was sent and may have ended it.
pub(crate) fn wrong(seen: &Observed, bounds: Bounds, signal: Option<i32>) -> Option<(&'static str, String)> {
    let line = |with: &str| {
        seen.text.lines().find(|l| l.contains(with)).map(|l| {
            // Numbers and names differ between mutants of one fault.
            l.split_once(" at ").filter(|_| l.contains(".rs:")).map_or(l, |(_, at)| at).to_owned()
        })
    };
    if seen.peak_bytes > bounds.resident_bytes {
        return Some(("memory", format!("{} MiB", seen.peak_bytes >> 20)));
    }
    let Some(status) = seen.status else {
        return Some(("deadline", format!("no end within {} s", bounds.deadline.as_secs())));
    };
    if let Some(died_of) = status.signal()
        && signal != Some(died_of)
    {
        return Some(("signal", format!("died of signal {died_of}")));
    }
    for text in ["panicked at", "internal error", "bug of this program"] {
        if let Some(found) = line(text) {
            return Some(("panic", found));
        }
    }
    match status.code() {
        Some(0..=6) | None => None,
        // A shell's way to say what it died of.
        Some(code) if signal.is_some_and(|s| code == 128 + s) => None,
        Some(code) => Some(("exit", format!("exit code {code}"))),
    }
}
