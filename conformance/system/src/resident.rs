//! What the system says of a process (Linux): how much memory and processor time it really takes, which
//! signals it ignores.

use std::fs;
use std::time::Duration;

/// A point in time from which the peak is counted.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    resident: u64,
}

impl Mark {
    /// Forgets the peak so far; `None` where the system does not tell.
    pub fn set() -> Option<Self> {
        // 5: the peak of the resident set becomes what it is now.
        fs::write("/proc/self/clear_refs", "5").ok()?;
        Some(Self { resident: field("self", "VmRSS:")? })
    }

    /// The maximum number of bytes by which the resident set has grown since. Pages that the allocator keeps
    /// from before are no growth.
    pub fn growth(self) -> Option<u64> {
        Some(field("self", "VmHWM:")?.saturating_sub(self.resident))
    }
}

/// Processor time of all threads that are alive.
pub fn processor_time() -> Option<Duration> {
    let mut total = 0u64;
    for task in fs::read_dir("/proc/self/task").ok()? {
        let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        total += text.split(' ').next()?.parse::<u64>().ok()?;
    }
    Some(Duration::from_nanos(total))
}

/// The peak resident set of a child process, in bytes; `None` until `execve` has loaded its program. A child
/// of `posix_spawn` (`CLONE_VM | CLONE_VFORK`) shares the address space of its parent until then, and the
/// parent may resume shortly before: `/proc` then reports the parent's peak. The two are distinguished by the
/// arguments in the address space, which must differ from those of this process. They are read first:
/// `execve` replaces the parent's address space by the child's, never the reverse.
pub fn peak_of(child: u32) -> Option<u64> {
    let arguments = |process: &str| fs::read(format!("/proc/{process}/cmdline")).ok();
    let child = child.to_string();
    // Empty: the memory is new and its arguments are not there yet, or the process has ended.
    let of_child = arguments(&child).filter(|a| !a.is_empty())?;
    if of_child == arguments("self")? {
        return None;
    }
    field(&child, "VmHWM:")
}

/// The signals that this process ignores, number N as bit N - 1.
pub fn ignored_signals() -> Option<u64> {
    u64::from_str_radix(&text("self", "SigIgn:")?, 16).ok()
}

fn field(process: &str, name: &str) -> Option<u64> {
    let kilobytes: u64 = text(process, name)?.strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

fn text(process: &str, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    Some(status.lines().find_map(|l| l.strip_prefix(name))?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_shared_with_this_process_is_not_a_childs() {
        assert_eq!(peak_of(std::process::id()), None);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        // As long as it takes: a child that never loads its program is stopped by the runner of the tests.
        let peak = loop {
            if let Some(peak) = peak_of(child.id()) {
                break peak;
            }
            std::thread::yield_now();
        };
        child.kill().unwrap();
        child.wait().unwrap();
        assert!((1..64 << 20).contains(&peak), "{peak}");
    }
}
