//! Memory for arrays: aligned to 64 bytes, backed by huge pages where that pays, pooled for reuse.
//!
//! A fresh page costs a fault when it is first written: for a large result many times what computing it
//! costs. So a [`Store`] (a free list) keeps memory that is given up, and what is taken from a store may hold
//! anything (a kernel writes all of what others read).

use std::alloc::Layout;
use std::collections::VecDeque;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::heap;

/// The alignment of arrays, in bytes.
pub const ALIGNMENT: usize = hlo_opt::buffers::ALIGNMENT as usize;

/// Memory of at least this many bytes is mapped, on huge pages.
const MIN_MAPPED_BYTES: usize = 1 << 20;

const HUGE_PAGE_BYTES: usize = 2 << 20;

/// There is not enough memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfMemory {
    /// The number of bytes that were asked for.
    pub bytes: u64,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no memory for {} more bytes", self.bytes)
    }
}

/// Owned memory; initialized (to zero, when it is new), so that any of it may be read as bytes.
pub struct Memory {
    start: NonNull<u8>,
    /// The usable bytes.
    bytes: usize,
    /// How it was allocated.
    source: Source,
}

/// Where a [`Store`] has its memory from, if that is somebody else's.
///
/// # Safety
/// Memory that `allocate` gives starts at a multiple of [`ALIGNMENT`], has at least as many bytes as were
/// asked for (at least one), all of them initialized, and has no other user until it is passed to
/// `deallocate`.
pub unsafe trait Allocator: fmt::Debug + Send + Sync {
    /// Memory; `None`: there is none.
    fn allocate(&self, bytes: usize) -> Option<NonNull<u8>>;

    /// Takes memory back.
    ///
    /// # Safety
    /// `allocate` of this allocator gave it for the same number of bytes, and it is no longer used.
    unsafe fn deallocate(&self, start: NonNull<u8>, bytes: usize);
}

enum Source {
    /// Empty.
    Nowhere,
    /// By the allocator, with this layout.
    Allocator(Layout),
    /// A mapping of its own: its start and length.
    Mapping(NonNull<u8>, usize),
    /// Somebody else's.
    Foreign(Arc<dyn Allocator>),
}

// SAFETY: it owns the memory, as `Box<[u8]>` does.
unsafe impl Send for Memory {}
// SAFETY: reading it needs no more than a shared reference; whoever writes through the pointer says why that
// is alone.
unsafe impl Sync for Memory {}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({} bytes)", self.bytes)
    }
}

impl Memory {
    /// New memory, all zero.
    pub fn new(bytes: u64) -> Result<Self, OutOfMemory> {
        let error = OutOfMemory { bytes };
        let size = usize::try_from(bytes).ok().filter(|&n| n <= isize::MAX as usize / 2).ok_or(error)?;
        if size == 0 {
            let start = NonNull::<Aligned>::dangling().cast();
            return Ok(Self { start, bytes: 0, source: Source::Nowhere });
        }
        if size >= MIN_MAPPED_BYTES {
            return Self::map(size).ok_or(error);
        }
        let layout = Layout::from_size_align(size, ALIGNMENT).map_err(|_| error)?;
        // SAFETY: the layout is not of size 0.
        let start = hlo_interp::attempt::attempt(|| unsafe { std::alloc::alloc_zeroed(layout) });
        let start = NonNull::new(start).ok_or(error)?;
        Ok(Self { start, bytes: size, source: Source::Allocator(layout) })
    }

    /// Memory of somebody else's.
    fn foreign(bytes: u64, allocator: &Arc<dyn Allocator>) -> Result<Self, OutOfMemory> {
        let error = OutOfMemory { bytes };
        let size = usize::try_from(bytes).map_err(|_| error)?;
        if size == 0 {
            return Self::new(0);
        }
        let start = allocator.allocate(size).ok_or(error)?;
        Ok(Self { start, bytes: size, source: Source::Foreign(Arc::clone(allocator)) })
    }

    fn map(size: usize) -> Option<Self> {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        // Slack, so that it can start at a huge page.
        let length = size.checked_next_multiple_of(HUGE_PAGE_BYTES)?.checked_add(HUGE_PAGE_BYTES)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        heap::map(size).ok()?;
        // SAFETY: a new mapping at an address that the kernel chooses replaces no existing one.
        let mapping = unsafe { mmap_anonymous(std::ptr::null_mut(), length, protection, flags) };
        let mapping = mapping.inspect_err(|_| heap::unmap(size)).ok()?;
        let mapping = NonNull::new(mapping.cast::<u8>())?;
        // SAFETY: less than HUGE_PAGE_BYTES, and the mapping has that much more than `size`.
        let start = unsafe { mapping.add(mapping.as_ptr().align_offset(HUGE_PAGE_BYTES)) };
        #[cfg(target_os = "linux")]
        // SAFETY: the range is in the mapping; the advice changes no contents. That it is not taken is no
        // error.
        let _ = unsafe {
            let advised = size.next_multiple_of(HUGE_PAGE_BYTES);
            rustix::mm::madvise(start.as_ptr().cast(), advised, rustix::mm::Advice::LinuxHugepage)
        };
        Some(Self { start, bytes: size, source: Source::Mapping(mapping, length) })
    }

    /// The start address; aligned to [`ALIGNMENT`]. Not null even if it is empty.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: initialized memory of this length; nobody writes to it while it can be looked at (the
        // runtime hands memory out when a run is over).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// The bytes, writable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and the reference is the only one.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

#[repr(align(64))]
struct Aligned;

impl Drop for Memory {
    fn drop(&mut self) {
        match self.source {
            Source::Nowhere => {}
            // SAFETY: it came from the allocator by this layout.
            Source::Allocator(layout) => unsafe { std::alloc::dealloc(self.start.as_ptr(), layout) },
            Source::Mapping(start, length) => {
                // SAFETY: the mapping is ours. Its failing would leak it, nothing else.
                unsafe {
                    let _ = rustix::mm::munmap(start.as_ptr().cast(), length);
                }
                heap::unmap(self.bytes);
            }
            // SAFETY: it came from this allocator, for as many bytes.
            Source::Foreign(ref allocator) => unsafe { allocator.deallocate(self.start, self.bytes) },
        }
    }
}

/// A pool of memory that was given up, by size.
///
/// **Invariant:** what it keeps and what is in use together are at most what was in use at once since it was
/// last trimmed: the results of a training step, hundreds of arrays, find the memory of the step before, and
/// a program whose sizes change keeps no memory for sizes that are over. Memory of somebody else's is not
/// kept: that allocator sees each array come and go.
#[derive(Debug, Default)]
pub struct Store {
    state: Mutex<Kept>,
    allocator: Option<Arc<dyn Allocator>>,
}

#[derive(Debug, Default)]
struct Kept {
    /// What is kept, the oldest first.
    free: VecDeque<Memory>,
    free_bytes: u64,
    used_bytes: u64,
    peak_bytes: u64,
}

impl Kept {
    /// Memory of exactly that many bytes; `None`: there is none, and new memory may be mapped. It is in use
    /// from now on.
    fn take(&mut self, bytes: u64) -> Option<Memory> {
        self.used_bytes += bytes;
        if let Some(at) = self.free.iter().rposition(|m| m.bytes as u64 == bytes) {
            self.free_bytes -= bytes;
            return self.free.remove(at);
        }
        self.peak_bytes = self.peak_bytes.max(self.used_bytes);
        None
    }

    /// What is more than was in use at once.
    fn surplus(&mut self) -> Vec<Memory> {
        let mut surplus = Vec::new();
        while self.free_bytes + self.used_bytes > self.peak_bytes {
            let Some(oldest) = self.free.pop_front() else { break };
            self.free_bytes -= oldest.len() as u64;
            surplus.push(oldest);
        }
        surplus
    }
}

impl Store {
    /// A store of somebody else's memory.
    pub fn of(allocator: Arc<dyn Allocator>) -> Self {
        Self { state: Mutex::default(), allocator: Some(allocator) }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory of exactly that many bytes, with any contents.
    pub fn take(self: &Arc<Self>, bytes: u64) -> Result<Block, OutOfMemory> {
        if bytes > isize::MAX as u64 {
            return Err(OutOfMemory { bytes });
        }
        let block = |memory| Block { memory: Some(memory), store: Arc::clone(self) };
        if let Some(allocator) = &self.allocator {
            return Memory::foreign(bytes, allocator).map(block);
        }
        let surplus = {
            let mut kept = self.kept();
            match kept.take(bytes) {
                Some(memory) => return Ok(block(memory)),
                None => kept.surplus(),
            }
        };
        drop(surplus);
        let memory = Memory::new(bytes).or_else(|e| {
            // What is kept counts against limits of memory.
            if self.trim() > 0 { Memory::new(bytes) } else { Err(e) }
        });
        memory.map(block).inspect_err(|_| self.kept().used_bytes -= bytes)
    }

    /// Returns the pooled memory to the system. Gives the number of bytes.
    pub fn trim(&self) -> u64 {
        let mut kept = self.kept();
        let free = std::mem::take(&mut kept.free);
        let bytes = std::mem::take(&mut kept.free_bytes);
        kept.peak_bytes = kept.used_bytes;
        drop(kept);
        drop(free);
        bytes
    }
}

/// Memory that returns to its [`Store`] when it is dropped.
#[derive(Debug)]
pub struct Block {
    /// `None` only while it is dropped.
    memory: Option<Memory>,
    store: Arc<Store>,
}

impl std::ops::Deref for Block {
    type Target = Memory;

    fn deref(&self) -> &Memory {
        self.memory.as_ref().expect("invariant: a block that is not being dropped has its memory")
    }
}

impl std::ops::DerefMut for Block {
    fn deref_mut(&mut self) -> &mut Memory {
        self.memory.as_mut().expect("invariant: a block that is not being dropped has its memory")
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take().filter(|_| self.store.allocator.is_none()) else { return };
        let bytes = memory.len() as u64;
        let mut kept = self.store.kept();
        kept.used_bytes -= bytes;
        kept.free_bytes += bytes;
        kept.free.push_back(memory);
        let surplus = kept.surplus();
        drop(kept);
        drop(surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_zero_and_all_there() {
        for bytes in [0, 1, 63, 4096, MIN_MAPPED_BYTES as u64 - 1, MIN_MAPPED_BYTES as u64, (5 << 20) + 1] {
            let mut memory = Memory::new(bytes).unwrap();
            assert_eq!((memory.start() as usize % ALIGNMENT, memory.len() as u64), (0, bytes));
            assert!(memory.bytes().iter().all(|&b| b == 0));
            memory.bytes_mut().fill(7);
            assert_eq!(memory.bytes().last().copied().unwrap_or(7), 7);
        }
    }

    #[test]
    fn what_no_machine_has_is_an_error() {
        for bytes in [u64::MAX, 1 << 62, 1 << 55] {
            assert_eq!(Memory::new(bytes).map(|_| ()), Err(OutOfMemory { bytes }));
        }
    }

    #[test]
    fn a_store_gives_out_again_what_came_back() {
        let store = Arc::new(Store::default());
        let first = store.take(3 << 20).unwrap();
        let start = first.start();
        let second = store.take(3 << 20).unwrap();
        assert_ne!(second.start(), start);
        drop(first);
        let third = store.take(3 << 20).unwrap();
        assert_eq!(third.start(), start);
        // While it is in use: memory that was unmapped may come back at the same address.
        assert_ne!(store.take(4 << 20).unwrap().start(), start);
    }

    #[test]
    fn a_store_keeps_as_much_as_was_in_use_at_once() {
        let store = Arc::new(Store::default());
        let take = |count: u64, bytes: u64| -> Vec<Block> {
            (0..count).map(|_| store.take(bytes).unwrap()).collect()
        };
        // Of a program with hundreds of results all.
        let mut starts: Vec<_> = take(300, 4096).iter().map(|b| b.start()).collect();
        let mut again: Vec<_> = take(300, 4096).iter().map(|b| b.start()).collect();
        starts.sort_unstable();
        again.sort_unstable();
        assert_eq!(starts, again);
        // Other sizes replace those: 300 x 4096 bytes were in use at once.
        for bytes in 1..=200 {
            drop(take(1, bytes * 64));
        }
        let kept = store.kept();
        assert_eq!((kept.used_bytes, kept.peak_bytes), (0, 300 * 4096));
        assert!(kept.free_bytes <= kept.peak_bytes && kept.free_bytes > kept.peak_bytes - 2 * 12800);
        drop(kept);
        assert!(store.trim() > 0 && store.trim() == 0);
        // Since then nothing was.
        let block = take(1, 4096);
        assert_eq!(store.kept().peak_bytes, 4096);
        drop(block);
        assert_eq!(store.trim(), 4096);
    }
}
