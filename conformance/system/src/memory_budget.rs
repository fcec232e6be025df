//! Memory limits: what a requested limit comes to on this machine, in this process, now.
//!
//! A limit may be more than there is, and whoever allocates beyond that is aborted or killed. So whatever
//! allocates for values asks [`within`] when it begins. **Invariants:** the limit in force is the minimum
//! of what was asked for and what the kernel says is left ([`SOURCES`]), less a margin for what is not
//! counted; the process as a whole takes no more than [`limit_process`] says: where that, or the system,
//! has no more to give, it says so and ends as [`Exit::Trap`].

mod groups;

use std::fmt::Write;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hlo::diag::codes;
use hlo_codegen::runtime::heap::{self, Exhausted};

use crate::exit::{Exit, Failure};

/// A memory limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryBudget {
    /// Bytes.
    pub bytes: u64,
    /// Its source, for people.
    pub of: &'static str,
}

impl MemoryBudget {
    /// The limit of `--memory-limit`.
    pub fn asked(bytes: u64) -> Self {
        MemoryBudget { bytes, of: "--memory-limit" }
    }

    /// As a limit in a message.
    pub fn describe(&self) -> String {
        format!("{} bytes ({})", self.bytes, self.of)
    }
}

/// A source of limits in the kernel: what is left of it, if that is known, and its name.
type Source = (fn() -> Option<u64>, &'static str);

const SOURCES: [Source; 3] = [
    (machine, "what is free on this machine"),
    (group, "what is left of the group's memory limit"),
    (addresses, "what is left of the process's addresses, `ulimit -v`"),
];

/// A process with less than this cannot begin: its dependencies, LLVM above all, end it where memory ends.
const MIN_BYTES: u64 = 32 << 20;

/// Refuses to begin with too little memory. Errors: [`Exit::Trap`].
pub fn check() -> Result<(), Failure> {
    let budget = available(1);
    if budget.bytes >= MIN_BYTES {
        return Ok(());
    }
    let least = MIN_BYTES >> 20;
    let message = format!(
        "too little memory to begin with: {}, and at least {least} MiB are needed",
        budget.describe()
    );
    Err(Failure::new(Exit::Trap, message))
}

/// The overhead of a process beyond the values that `--memory-limit` counts: programs, compiled code, pools
/// of the allocator.
const OVERHEAD_BYTES: u64 = 128 << 20;

/// The maximum number of bytes for each program that the process runs.
static BYTES_PER_PROGRAM: AtomicU64 = AtomicU64::new(u64::MAX);

/// Limits the whole process to a limit on the program that it runs, and to what the kernel can give it.
pub fn limit_process(limit: u64, json: bool) {
    JSON.store(json, Ordering::Relaxed);
    BYTES_PER_PROGRAM.store(limit, Ordering::Relaxed);
    set_concurrency(1);
}

/// Sets the number of programs that run at once, each of which may take as much as [`limit_process`] was
/// told.
pub fn set_concurrency(programs: usize) {
    let all = BYTES_PER_PROGRAM
        .load(Ordering::Relaxed)
        .saturating_mul(programs.max(1) as u64)
        .saturating_add(OVERHEAD_BYTES);
    let now = heap::live();
    let there = [machine(), group()].into_iter().flatten().min().unwrap_or(u64::MAX);
    heap::limit(all.min(there.saturating_add(now)), ended);
}

/// What a program's text may take in addition to the limit: a program can be read even if values are limited
/// to very little.
pub const TEXT_OVERHEAD_BYTES: u64 = 64 << 20;

/// The maximum number of bytes that a program's text, its tree and its values may take more.
pub fn text_left() -> u64 {
    let limit = BYTES_PER_PROGRAM.load(Ordering::Relaxed).saturating_add(TEXT_OVERHEAD_BYTES);
    limit.min(available(1).bytes)
}

/// Refuses to read a text of that many bytes, if there are not as many. Errors: [`Exit::Trap`].
pub fn require_for_text(bytes: u64, name: &str) -> Result<(), Failure> {
    if bytes < SMALL_BYTES {
        return Ok(());
    }
    let left = text_left();
    if bytes <= left {
        return Ok(());
    }
    let message = format!(
        "{name}: a text of {bytes} bytes; there is memory for {left} (--memory-limit, or what there is)"
    );
    Err(Failure::new(Exit::Trap, message))
}

/// Whether output is machine readable.
static JSON: AtomicBool = AtomicBool::new(false);

/// Reports that memory has ended, without allocating.
fn ended(exhausted: &Exhausted) -> u8 {
    let Exhausted { live, wanted, limit } = exhausted;
    let mut text = Line { bytes: [0; 320], length: 0 };
    let exit = Exit::Trap.code();
    let json = JSON.load(Ordering::Relaxed);
    // What does not fit is left out.
    let _ = if json {
        write!(text, "{{\"ok\":false,\"exit\":{exit},\"message\":\"")
    } else {
        write!(text, "error[{}]: ", codes::OUT_OF_MEMORY.as_str())
    };
    let _ = write!(text, "out of memory: {live} bytes are alive, {wanted} more are wanted, ");
    let _ = match limit {
        Some(limit) => {
            write!(text, "and the limit is {limit} (--memory-limit and what the process needs beside it)")
        }
        None => write!(text, "which the system does not give"),
    };
    let _ = text.write_str(if json { "\"}\n" } else { "\n" });
    let said = &text.bytes[..text.length];
    // Nobody is left to tell if that cannot be said.
    let _ = if json {
        rustix::io::write(io::stdout().as_fd(), said)
    } else {
        rustix::io::write(io::stderr().as_fd(), said)
    };
    exit
}

/// A text of bounded length on the stack.
struct Line {
    bytes: [u8; 320],
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let free = &mut self.bytes[self.length..];
        let n = text.len().min(free.len());
        free[..n].copy_from_slice(&text.as_bytes()[..n]);
        self.length += n;
        Ok(())
    }
}

/// Smaller requests are not worth asking the kernel for.
const SMALL_BYTES: u64 = 64 << 20;

/// Refuses to use `bytes` more bytes for `what` if the budget does not have them. Errors: [`Exit::Trap`].
pub fn require(bytes: u64, what: &str) -> Result<(), Failure> {
    if bytes < SMALL_BYTES {
        return Ok(());
    }
    let budget = available(1);
    if bytes <= budget.bytes {
        return Ok(());
    }
    Err(Failure::new(Exit::Trap, format!("{what} want {bytes} bytes; the limit is {}", budget.describe())))
}

/// Whether stacks of that many bytes leave most of the addresses to others.
pub fn is_modest(stacks: u64) -> bool {
    addresses().is_none_or(|left| stacks <= left / 4)
}

/// The share of a limit that was `asked` for, of each of `shares` that run at once. `held` is what each has
/// already and counts against its limit.
pub fn within(asked: MemoryBudget, held: u64, shares: u32) -> MemoryBudget {
    let left = SOURCES.iter().filter_map(|(left, of)| Some((left()?, *of)));
    least(asked, left, held, shares)
}

/// The memory available to each of `shares` that run at once.
pub fn available(shares: u32) -> MemoryBudget {
    within(MemoryBudget { bytes: u64::MAX, of: "" }, 0, shares)
}

fn least(
    asked: MemoryBudget,
    left: impl Iterator<Item = (u64, &'static str)>,
    held: u64,
    shares: u32,
) -> MemoryBudget {
    left.map(|(bytes, of)| {
        // An eighth is for other things than values: code, stacks, what allocators keep.
        let bytes = (bytes - bytes / 8) / u64::from(shares.max(1));
        MemoryBudget { bytes: bytes.saturating_add(held), of }
    })
    .fold(asked, |least, budget| if budget.bytes < least.bytes { budget } else { least })
}

/// The memory that the kernel can give without reclaiming from others.
fn machine() -> Option<u64> {
    bytes_of(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// The memory left by the limits of the process's control groups and of their parents.
fn group() -> Option<u64> {
    groups::left(Path::new("/"))
}

/// The address space left by the limit on it.
fn addresses() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let limit = number_after(&limits, "Max address space")?;
    let used = bytes_of(&fs::read_to_string("/proc/self/status").ok()?, "VmSize:")?;
    Some(limit.saturating_sub(used))
}

/// The number after a name at the beginning of a line; none where there is a word.
fn number_after(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// The same of a number of KiB.
fn bytes_of(text: &str, name: &str) -> Option<u64> {
    number_after(text, name)?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_in_force_and_named() {
        let left = [(800, "machine"), (1600, "addresses")];
        let of = |limit, held, shares| {
            let asked = MemoryBudget::asked(limit);
            let budget = least(asked, left.into_iter(), held, shares);
            (budget.bytes, budget.of)
        };
        assert_eq!(of(500, 0, 1), (500, "--memory-limit"));
        assert_eq!(of(5000, 0, 1), (700, "machine"));
        assert_eq!(of(5000, 100, 2), (450, "machine"));
        assert_eq!(of(710, 100, 1), (710, "--memory-limit"));
    }

    #[test]
    fn more_than_there_is_is_refused() {
        assert!(require(1, "nothing").is_ok());
        if cfg!(target_os = "linux") {
            let refused = require(1 << 60, "arrays").unwrap_err();
            assert_eq!(refused.exit, Exit::Trap);
            assert!(refused.message.starts_with("arrays want 1152921504606846976 bytes; the limit is "));
        }
    }

    #[test]
    fn what_the_kernel_says_is_read() {
        let meminfo =
            "MemTotal:       24683928 kB\nMemFree:        23429292 kB\nMemAvailable:   23905280 kB\n";
        assert_eq!(bytes_of(meminfo, "MemAvailable:"), Some(23_905_280 << 10));
        let limits = "Max stack size            8388608              unlimited            bytes\n\
                      Max address space         3072000000           unlimited            bytes\n";
        assert_eq!(number_after(limits, "Max address space"), Some(3_072_000_000));
        assert_eq!(
            number_after("Max address space         unlimited  unlimited\n", "Max address space"),
            None
        );
        if cfg!(target_os = "linux") {
            assert!(machine().is_some_and(|bytes| bytes > 0));
        }
    }
}
