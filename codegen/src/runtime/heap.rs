//! The allocator of programs that are built with this crate: mimalloc, counted, with an end where memory
//! ends.
//!
//! A run asks for its memory beforehand, and is refused with an error. This allocator is the last resort: it
//! counts every allocation. Where the count would exceed [`limit`], or the system returns no memory, it calls
//! the handler of the limit and ends the process with the exit code that this gives; without a handler, the
//! allocation fails.
//!
//! **Invariants:** live bytes are [`LIVE`] plus less than [`BATCH_BYTES`] bytes for each thread. Nothing in
//! this file allocates. Inside [`hlo_interp::attempt`] an allocation that is refused returns null to its
//! caller, and the process goes on.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::os::raw::{c_int, c_long};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Once, OnceLock};

use mimalloc::MiMalloc;

/// The allocator, for `#[global_allocator]`.
#[derive(Clone, Copy, Debug)]
pub struct Heap;

/// Memory that there is not.
#[derive(Clone, Copy, Debug)]
pub struct Exhausted {
    /// Bytes that are alive.
    pub live: u64,
    /// Bytes that are requested in addition.
    pub wanted: u64,
    /// The limit; none if the system gives no memory.
    pub limit: Option<u64>,
}

/// Bytes that a thread may allocate or free before it adds them to [`LIVE`].
const BATCH_BYTES: i64 = 16 << 10;

/// Allocations of fewer bytes are not counted one by one against the limit, but with others.
const MIN_LARGE_BYTES: usize = 1 << 20;

/// Bytes that are alive, as far as threads have counted them here.
static LIVE: AtomicI64 = AtomicI64::new(0);
/// The most that may be.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);
/// Bytes of large blocks that were given back since the allocator was last asked to give them back to the
/// system.
static FREED: AtomicU64 = AtomicU64::new(0);
/// Says that memory has ended, without allocating, and with which exit code the process ends.
static HANDLER: OnceLock<fn(&Exhausted) -> u8> = OnceLock::new();
static ENDING: AtomicBool = AtomicBool::new(false);

/// A thread that has counted nothing yet.
const UNCOUNTED: i64 = i64::MIN;

thread_local! {
    /// Bytes that this thread has allocated, less those that it has given back, and not counted in [`LIVE`]
    /// yet.
    static OWN: Cell<i64> = const { Cell::new(UNCOUNTED) };
}

unsafe extern "C" {
    fn mi_option_set(option: c_int, value: c_long);
    fn mi_option_get(option: c_int) -> c_long;
    fn mi_collect(force: bool);
    #[cfg(target_env = "gnu")]
    safe fn mallopt(parameter: c_int, value: c_int) -> c_int;
    safe fn _exit(code: c_int) -> !;
}

/// `mi_option_arena_reserve` of mimalloc 3: the KiB of addresses that are reserved at once. A test knows its
/// default.
const ARENA_RESERVE: c_int = 23;
/// Its default: 1 GiB.
#[cfg(test)]
const ARENA_RESERVE_KIB: c_long = 1 << 20;

/// Sets the maximum number of bytes that may be alive, and what is said where they are not enough.
pub fn limit(bytes: u64, handler: fn(&Exhausted) -> u8) {
    HANDLER.get_or_init(|| handler);
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// Bytes that are alive.
pub fn live() -> u64 {
    u64::try_from(LIVE.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Counts memory that was mapped outside of the allocator. Errors: it would pass the limit; then nothing was
/// counted.
pub(super) fn map(bytes: usize) -> Result<(), ()> {
    let wanted = i64::try_from(bytes).unwrap_or(i64::MAX);
    if passes(wanted) {
        return Err(());
    }
    LIVE.fetch_add(wanted, Ordering::Relaxed);
    Ok(())
}

/// Counts that it is no more.
pub(super) fn unmap(bytes: usize) {
    LIVE.fetch_sub(i64::try_from(bytes).unwrap_or(i64::MAX), Ordering::Relaxed);
}

/// Whether the live bytes and `bytes` more exceed the limit.
fn passes(bytes: i64) -> bool {
    let live = LIVE.load(Ordering::Relaxed).saturating_add(bytes);
    u64::try_from(live).is_ok_and(|live| live > LIMIT.load(Ordering::Relaxed))
}

/// Adds the bytes of an allocation of this thread to the count; negative ones are freed. False: the limit
/// does not allow them, and they were not added.
#[inline]
fn count(bytes: i64) -> bool {
    let own = OWN.get().wrapping_add(bytes);
    if (-BATCH_BYTES..=BATCH_BYTES).contains(&own) {
        OWN.set(own);
        return true;
    }
    count_in_common(bytes)
}

#[cold]
fn count_in_common(bytes: i64) -> bool {
    let own = match OWN.get() {
        UNCOUNTED => {
            prepare();
            0
        }
        own => own,
    };
    if bytes > 0 && passes(own + bytes) {
        OWN.set(own);
        return false;
    }
    LIVE.fetch_add(own + bytes, Ordering::Relaxed);
    OWN.set(0);
    if bytes <= -(MIN_LARGE_BYTES as i64) {
        give_back(bytes.unsigned_abs());
    }
    true
}

/// What is given back stays with the allocator for a while, for the next allocation. It is no longer there
/// once that and what is alive could pass the limit.
fn give_back(bytes: u64) {
    let freed = FREED.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
    if freed.saturating_add(live()) > LIMIT.load(Ordering::Relaxed) {
        FREED.store(0, Ordering::Relaxed);
        COLLECT.store(true, Ordering::Relaxed);
    }
}

/// Freed memory is to go back to the system before more is allocated.
static COLLECT: AtomicBool = AtomicBool::new(false);

/// Where addresses are limited, fewer are reserved at once: the rest is for others, such as stacks.
fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        const SHARE: u64 = 16;
        /// A share of 8 GiB.
        #[cfg(target_env = "gnu")]
        const FEW_ADDRESSES_KIB: u64 = (8 << 20) / SHARE;
        /// Of `malloc.h`.
        #[cfg(target_env = "gnu")]
        const M_ARENA_MAX: c_int = -8;
        let limit = rustix::process::getrlimit(rustix::process::Resource::As).current;
        let Some(kib) = limit.map(|bytes| bytes / SHARE / 1024) else { return };
        // glibc's allocator, which LLVM uses, reserves 64 MiB or more for each thread that allocates.
        #[cfg(target_env = "gnu")]
        if kib < FEW_ADDRESSES_KIB {
            mallopt(M_ARENA_MAX, 1);
        }
        // SAFETY: sets a number; the option is one of the version that is linked.
        unsafe {
            if (kib as c_long) < mi_option_get(ARENA_RESERVE) {
                mi_option_set(ARENA_RESERVE, kib as c_long);
            }
        }
    });
}

/// An allocation that the limit or the system refuses: null for whoever asked whether there is memory, else
/// the end of the process.
#[cold]
fn refuse(bytes: usize, limit: Option<u64>) -> *mut u8 {
    if hlo_interp::attempt::is_on() {
        return std::ptr::null_mut();
    }
    match HANDLER.get() {
        Some(handler) => end(&Exhausted { live: live(), wanted: bytes as u64, limit }, *handler),
        // Whoever allocates ends the process.
        None => std::ptr::null_mut(),
    }
}

fn end(exhausted: &Exhausted, handler: fn(&Exhausted) -> u8) -> ! {
    if ENDING.swap(true, Ordering::Relaxed) {
        // Another thread says it.
        loop {
            std::thread::park();
        }
    }
    LIMIT.store(u64::MAX, Ordering::Relaxed);
    _exit(handler(exhausted).into())
}

#[inline]
fn counted(bytes: usize, allocate: impl FnOnce() -> *mut u8) -> *mut u8 {
    if bytes >= MIN_LARGE_BYTES && COLLECT.swap(false, Ordering::Relaxed) {
        // SAFETY: gives free memory back, nothing else.
        unsafe { mi_collect(true) };
    }
    // Layouts are no larger than `isize::MAX`.
    if !count(bytes as i64) {
        return refuse(bytes, Some(LIMIT.load(Ordering::Relaxed)));
    }
    let start = allocate();
    if start.is_null() {
        count(-(bytes as i64));
        return refuse(bytes, None);
    }
    start
}

// SAFETY: mimalloc's, whose blocks and layouts go through unchanged.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's word.
        counted(layout.size(), || unsafe { MiMalloc.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's word.
        counted(layout.size(), || unsafe { MiMalloc.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller's word.
        unsafe { MiMalloc.dealloc(start, layout) };
        count(-(layout.size() as i64));
    }

    #[inline]
    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both blocks are there while one is copied to the other.
        if !count(size as i64) {
            return refuse(size, Some(LIMIT.load(Ordering::Relaxed)));
        }
        // SAFETY: the caller's word.
        let moved = unsafe { MiMalloc.realloc(start, layout, size) };
        if moved.is_null() {
            count(-(size as i64));
            return refuse(size, None);
        }
        count(-(layout.size() as i64));
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_the_one_that_is_meant() {
        // SAFETY: reads a number.
        assert_eq!(unsafe { mi_option_get(ARENA_RESERVE) }, ARENA_RESERVE_KIB);
    }

    /// These tests look at what all threads count, or count more than there is.
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 64).unwrap()
    }

    /// The allocator of this test is another, so that this thread counts nothing else.
    #[test]
    fn blocks_are_counted_while_they_are_alive() {
        let _alone = ALONE.lock();
        // SAFETY: the layouts are not empty, and blocks are given back by their layouts.
        unsafe {
            Heap.dealloc(Heap.alloc(layout(64)), layout(64));
            let before = OWN.get();
            let block = Heap.alloc(layout(100));
            assert_eq!(OWN.get() - before, 100);
            let block = Heap.realloc(block, layout(100), 300);
            assert_eq!(OWN.get() - before, 300);
            Heap.dealloc(block, layout(300));
            assert_eq!(OWN.get(), before);
            let other = Heap.alloc_zeroed(layout(64));
            Heap.dealloc(other, layout(64));
        }
        assert_eq!((map(1 << 40), live() >= 1 << 40), (Ok(()), true));
        unmap(1 << 40);
        assert!(live() < 1 << 40);
    }

    #[test]
    fn who_asks_whether_there_is_memory_is_told() {
        let _alone = ALONE.lock();
        // SAFETY: the layout is not empty.
        let refused = hlo_interp::attempt::attempt(|| unsafe { Heap.alloc(layout(1 << 60)) });
        assert!(refused.is_null());
    }
}
