//! On which core a thread is. Only Linux is asked; elsewhere threads are where they are.

/// The core that this thread is on now.
#[cfg(target_os = "linux")]
pub(super) fn here() -> usize {
    rustix::thread::sched_getcpu()
}

/// Moves this thread away from a core, if it is on it and may be on others. Afterwards it may be on all of
/// them again.
#[cfg(target_os = "linux")]
pub(super) fn leave(core: usize) {
    use rustix::thread::{sched_getaffinity, sched_setaffinity};
    if here() != core {
        return;
    }
    let Ok(all) = sched_getaffinity(None) else { return };
    let mut others = all;
    others.unset(core);
    // Where that is refused, it stays where it is.
    if others.count() > 0 && sched_setaffinity(None, &others).is_ok() {
        let _ = sched_setaffinity(None, &all);
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn here() -> usize {
    0
}

#[cfg(not(target_os = "linux"))]
pub(super) fn leave(_core: usize) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::thread::sched_getaffinity;

    /// Whichever core is left, the one it is on or another, a thread may be on as many as before.
    #[test]
    fn who_leaves_may_come_back() {
        let before = sched_getaffinity(None).unwrap();
        for core in 0..64 {
            super::leave(core);
        }
        super::leave(super::here());
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
