//! Thread pools, as C sees them.

use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

use hlo_library_base::pool::{Lent, Pool};

/// Does chunk `chunk` of a job.
pub type Work = unsafe extern "C" fn(job: *mut c_void, chunk: u64);

/// Has the chunks of a job done: calls `work(job, n)` once with each `n` below `chunks`, on any threads, and
/// returns when all calls have returned.
pub type Run = unsafe extern "C" fn(context: *mut c_void, chunks: u64, work: Work, job: *mut c_void);

/// `hlo_ahead_thread_pool` of the headers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ThreadPool {
    /// The number of threads, the caller included.
    pub threads: u64,
    /// Has a job done.
    pub run: Run,
    /// Given to `run`.
    pub context: *mut c_void,
}

/// A pool of the caller's.
#[derive(Debug)]
struct Foreign(ThreadPool);

// SAFETY: by its contract `run` may be called from any thread, on its context.
unsafe impl Send for Foreign {}
// SAFETY: as above.
unsafe impl Sync for Foreign {}

impl Lent for Foreign {
    fn threads(&self) -> usize {
        usize::try_from(self.0.threads).unwrap_or(1)
    }

    fn run(&self, chunks: usize, work: &(dyn Fn(usize) + Sync)) {
        /// What a chunk is told.
        struct Job<'a>(&'a (dyn Fn(usize) + Sync));
        unsafe extern "C" fn chunk(job: *mut c_void, chunk: u64) {
            // SAFETY: the job of the call of `run` below, which waits for it. A panic ends the process:
            // nothing can carry it across C.
            let job = unsafe { &*job.cast::<Job<'_>>().cast_const() };
            (job.0)(chunk as usize);
        }
        let mut job = Job(work);
        // SAFETY: the job lives until `run` returns, and by its contract no call of `chunk` is left then.
        unsafe { (self.0.run)(self.0.context, chunks as u64, chunk, (&raw mut job).cast()) };
    }
}

/// `run` of the library's own pools.
unsafe extern "C" fn run_own(context: *mut c_void, chunks: u64, work: Work, job: *mut c_void) {
    struct Job(Work, *mut c_void);
    // SAFETY: the caller's job may be worked on by several threads: that is what it is for.
    unsafe impl Sync for Job {}
    impl Job {
        fn chunk(&self, chunk: usize) {
            // SAFETY: a chunk of the job, once.
            unsafe { (self.0)(self.1, chunk as u64) };
        }
    }
    // SAFETY: the context of a pool that `create` made.
    let pool = unsafe { &*context.cast::<Arc<Pool>>().cast_const() };
    let job = Job(work, job);
    pool.run(usize::try_from(chunks).unwrap_or(usize::MAX), &|chunk| job.chunk(chunk));
}

/// The threads of a pool; null: the caller's alone.
///
/// # Safety
/// It is null or a pool that is alive while the result is.
pub(crate) unsafe fn of(pool: *const ThreadPool) -> Arc<Pool> {
    static ALONE: OnceLock<Arc<Pool>> = OnceLock::new();
    if pool.is_null() {
        return Arc::clone(ALONE.get_or_init(|| Arc::new(Pool::new(1))));
    }
    // SAFETY: by the caller's word.
    let pool = unsafe { *pool };
    if std::ptr::fn_addr_eq(pool.run, run_own as Run) {
        // SAFETY: the context of a pool that `create` made, alive by the caller's word.
        return Arc::clone(unsafe { &*pool.context.cast::<Arc<Pool>>() });
    }
    Arc::new(Pool::of(Box::new(Foreign(pool))))
}

/// A pool of that many threads, the caller included; 0: as many as there are cores. It is given back to
/// [`hlo_ahead_thread_pool_destroy`].
#[cfg_attr(feature = "symbols", unsafe(no_mangle))]
pub extern "C" fn hlo_ahead_thread_pool_create(threads: u64) -> *mut ThreadPool {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = usize::try_from(threads).ok().filter(|&n| n > 0).unwrap_or(cores);
    let pool = Arc::new(Pool::new(threads));
    let threads = pool.threads() as u64;
    let context = Box::into_raw(Box::new(pool)).cast();
    Box::into_raw(Box::new(ThreadPool { threads, run: run_own, context }))
}

/// Ends the threads of a pool that [`hlo_ahead_thread_pool_create`] made; of null nothing.
///
/// # Safety
/// It is one, no run uses it, and it is given once.
#[cfg_attr(feature = "symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn hlo_ahead_thread_pool_destroy(pool: *mut ThreadPool) {
    if !pool.is_null() {
        // SAFETY: made by `create`, given back once.
        let pool = unsafe { Box::from_raw(pool) };
        // SAFETY: as above.
        drop(unsafe { Box::from_raw(pool.context.cast::<Arc<Pool>>()) });
    }
}
