//! Threads that run the chunks of kernels.
//!
//! A job is a function and a number of chunks. Its chunks are divided into one section a thread; each thread
//! takes those of its own section in order and then those that others have left, so that what a core finds in
//! its caches is what it wrote there in the step before. Idle workers look for a job for [`SPIN`] and then
//! sleep, so that steps that follow one another cost about 100 ns to fork and join, and a program at rest
//! costs nothing. Linux may start or wake a worker on the core of its caller, which never waits long enough
//! to be moved: a worker that finds itself there goes to another one.
//!
//! **Invariants:** a worker touches a job only between entering it (a compare-and-swap that fails once the
//! job is closed) and leaving it; the caller closes its job and waits until all have left, then returns. So a
//! job may live on the caller's stack, and a worker that sleeps holds nobody up. A pool does one job at a
//! time: who finds it busy (a nested call, or another thread's) does all of its chunks by itself.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use hlo_threads::cancel;

use super::cores;
use crate::configuration::{self, Configuration};

/// How long an idle worker looks for a job before it sleeps.
const SPIN: Duration = Duration::from_micros(50);

/// [`Shared::state`]: the job may be entered.
const OPEN: u64 = 1 << 31;
/// [`Shared::state`]: the pool ends.
const ENDS: u64 = 1 << 30;
/// [`Shared::state`]: how many workers are in the job.
const INSIDE: u64 = ENDS - 1;
/// [`Shared::state`]: the number of the job is above this bit.
const JOB: u64 = 1 << 32;

/// A pool of threads, of which the caller is one. The others start with the first job that has chunks for
/// them.
#[derive(Debug)]
pub struct Pool {
    threads: usize,
    /// Whose threads do the work; `None`: its own.
    lent: Option<Box<dyn Lent>>,
    shared: Arc<Shared>,
    workers: OnceLock<Vec<JoinHandle<()>>>,
}

/// Threads that are not ours.
pub trait Lent: std::fmt::Debug + Send + Sync {
    /// How many, the caller included.
    fn threads(&self) -> usize;

    /// Calls `work` once with each number below `chunks`, on any of them, and returns when all calls have
    /// returned.
    fn run(&self, chunks: usize, work: &(dyn Fn(usize) + Sync));
}

/// On a cache line (and its neighbour, which is fetched with it) of its own.
#[repr(align(128))]
#[derive(Debug, Default)]
struct Line<T>(T);

struct Shared {
    /// Number of the job, [`OPEN`], [`ENDS`], and how many workers are [`INSIDE`].
    state: Line<AtomicU64>,
    /// For each section how many of its chunks were taken (or more).
    taken: Vec<Line<AtomicUsize>>,
    /// Whether somebody's job is being done.
    busy: Line<AtomicBool>,
    /// The core on which the caller last was when it started or woke a worker.
    caller: Line<AtomicUsize>,
    /// For each worker whether it sleeps or is about to.
    asleep: Vec<Line<AtomicBool>>,
    /// Written by the caller that holds `busy` while no worker is inside.
    job: UnsafeCell<Option<Job>>,
    /// The first panic in the job.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// How long to look for a job.
    spin: Duration,
}

#[derive(Clone, Copy)]
struct Job {
    work: *const (dyn Fn(usize) + Sync),
    chunks: usize,
    /// The caller's.
    configuration: Configuration,
}

// SAFETY: `job` is written only by the holder of `busy` while the job is closed and nobody is inside, and
// read only by who is inside; entering acquires what opening released. The function it points to is `Sync`.
unsafe impl Sync for Shared {}
// SAFETY: as above; nothing in it belongs to one thread.
unsafe impl Send for Shared {}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("state", &self.state.0).finish_non_exhaustive()
    }
}

impl hlo_threads::parallel::Threads for Pool {
    fn count(&self) -> usize {
        self.threads()
    }

    fn run(&self, n: usize, f: &(dyn Fn(usize) + Sync)) {
        Pool::run(self, n, f);
    }
}

impl Pool {
    /// A pool of `threads` threads, the caller included (at least 1).
    pub fn new(threads: usize) -> Self {
        let threads = threads.clamp(1, 1 << 16);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let shared = Shared {
            state: Line::default(),
            taken: (0..threads).map(|_| Line::default()).collect(),
            busy: Line::default(),
            asleep: (1..threads).map(|_| Line::default()).collect(),
            job: UnsafeCell::new(None),
            caller: Line::default(),
            panic: Mutex::new(None),
            // Threads that look for work on a core that others need would slow these.
            spin: if threads <= cores { SPIN } else { Duration::ZERO },
        };
        Self { threads, lent: None, shared: Arc::new(shared), workers: OnceLock::new() }
    }

    /// A pool of threads that somebody else has.
    pub fn of(lent: Box<dyn Lent>) -> Self {
        let mut pool = Self::new(1);
        pool.threads = lent.threads().clamp(1, 1 << 16);
        pool.lent = Some(lent);
        pool
    }

    /// The number of threads, the caller included.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Calls `work` once with each number below `chunks`, on all threads, and returns when all calls have
    /// returned. Each thread begins with a part of the numbers of its own, in order. A panic in `work` is
    /// resumed here, and chunks that were not begun are then left out; so it is where the caller's [`cancel`]
    /// token was cancelled.
    pub fn run(&self, chunks: usize, work: &(dyn Fn(usize) + Sync)) {
        if chunks > 1
            && let Some(token) = cancel::current()
        {
            let polled = |chunk| {
                cancel::poll_token(Some(&token));
                work(chunk);
            };
            return self.share(chunks, &polled);
        }
        self.share(chunks, work);
    }

    /// [`Pool::run`] without an end from outside.
    fn share(&self, chunks: usize, work: &(dyn Fn(usize) + Sync)) {
        let alone = chunks <= 1 || self.threads == 1;
        if let Some(lent) = self.lent.as_ref().filter(|_| !alone) {
            let configuration = configuration::current();
            return lent.run(chunks, &|chunk| configuration.with(|| work(chunk)));
        }
        if alone
            || self.shared.busy.0.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            (0..chunks).for_each(work);
            return;
        }
        let workers = self.workers.get_or_init(|| self.start());
        let shared = &*self.shared;
        for taken in &shared.taken {
            taken.0.store(0, Ordering::Relaxed);
        }
        // SAFETY: the lifetime is taken off the reference, which is used only until all workers have left the
        // job, below.
        let work: *const (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(work) };
        let job = Job { work, chunks, configuration: configuration::current() };
        // SAFETY: `busy` is ours, and the last job was closed and left by all before it was given up.
        unsafe { *shared.job.get() = Some(job) };
        let number = (shared.state.0.load(Ordering::Relaxed) / JOB).wrapping_add(1);
        shared.state.0.store(number.wrapping_mul(JOB) | OPEN, Ordering::Release);
        // Between opening and looking for sleepers: a worker does these two things the other way round.
        fence(Ordering::SeqCst);
        for (worker, asleep) in workers.iter().zip(&shared.asleep).take(chunks - 1) {
            if asleep.0.load(Ordering::Relaxed) && asleep.0.swap(false, Ordering::Relaxed) {
                shared.caller.0.store(cores::here(), Ordering::Relaxed);
                worker.thread().unpark();
            }
        }
        shared.work_on(job, 0);
        shared.state.0.fetch_and(!OPEN, Ordering::Relaxed);
        let mut waited = 0_u32;
        while shared.state.0.load(Ordering::Acquire) & INSIDE != 0 {
            waited = waited.saturating_add(1);
            // Whoever is still inside has a chunk to finish, and may have lost its core.
            if waited < 4096 { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        let panic = shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        shared.busy.0.store(false, Ordering::Release);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    fn start(&self) -> Vec<JoinHandle<()>> {
        self.shared.caller.0.store(cores::here(), Ordering::Relaxed);
        let start = |index: usize| {
            let shared = Arc::clone(&self.shared);
            std::thread::Builder::new().name(format!("hlo-{index}")).spawn(move || shared.serve(index))
        };
        // With fewer threads than asked for, the others do all the work.
        (1..self.threads).map_while(|index| start(index).ok()).collect()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.state.0.fetch_or(ENDS, Ordering::SeqCst);
        for worker in self.workers.take().into_iter().flatten() {
            let thread: &Thread = worker.thread();
            thread.unpark();
            // A worker catches every panic of a job: it ends as it should.
            let _ = worker.join();
        }
    }
}

impl Shared {
    /// What worker `index` does all its life.
    fn serve(&self, index: usize) {
        let mut last = 0;
        self.leave_caller();
        loop {
            let state = self.wait(index, last);
            if state & ENDS != 0 {
                return;
            }
            last = state / JOB;
            if state & OPEN != 0 && self.enter(last) {
                // SAFETY: inside, so the caller waits, and entering acquired what it wrote.
                if let Some(job) = unsafe { *self.job.get() } {
                    job.configuration.with(|| self.work_on(job, index));
                }
                self.state.0.fetch_sub(1, Ordering::Release);
            } else {
                // Too late: perhaps for want of a core.
                self.leave_caller();
            }
        }
    }

    /// Goes to another core, if this is that of the caller and there are enough for all threads.
    fn leave_caller(&self) {
        if !self.spin.is_zero() {
            cores::leave(self.caller.0.load(Ordering::Relaxed));
        }
    }

    /// Waits for another job than `last` (or the end) and returns the state.
    fn wait(&self, index: usize, last: u64) -> u64 {
        let news = |state: u64| state / JOB != last || state & ENDS != 0;
        let mut since = None;
        loop {
            for _ in 0..64 {
                let state = self.state.0.load(Ordering::Relaxed);
                if news(state) {
                    return state;
                }
                std::hint::spin_loop();
            }
            let now = Instant::now();
            if now.duration_since(*since.get_or_insert(now)) < self.spin {
                continue;
            }
            let asleep = &self.asleep[index - 1].0;
            asleep.store(true, Ordering::Relaxed);
            // Between saying so and looking once more: the caller does these two things the other way round.
            fence(Ordering::SeqCst);
            while asleep.load(Ordering::Relaxed) && !news(self.state.0.load(Ordering::SeqCst)) {
                std::thread::park();
            }
            asleep.store(false, Ordering::Relaxed);
            self.leave_caller();
            since = None;
        }
    }

    /// Enters job `number`, if that is still open.
    fn enter(&self, number: u64) -> bool {
        let enter = |state: u64| (state / JOB == number && state & OPEN != 0).then_some(state + 1);
        self.state.0.fetch_update(Ordering::Acquire, Ordering::Relaxed, enter).is_ok()
    }

    /// Does chunks until there are none: of section `first`, then of the others.
    fn work_on(&self, job: Job, first: usize) {
        // SAFETY: the caller of `Pool::run` keeps the function while anybody is inside.
        let work = unsafe { &*job.work };
        let sections = self.taken.len();
        let start =
            |section: usize| (job.chunks / sections) * section + (job.chunks % sections) * section / sections;
        for offset in 0..sections {
            let section = (first + offset) % sections;
            let (begin, end) = (start(section), start(section + 1));
            let taken = &self.taken[section].0;
            loop {
                // Looking before taking keeps the counter from being written by everybody who passes by.
                if taken.load(Ordering::Relaxed) >= end - begin {
                    break;
                }
                let chunk = begin + taken.fetch_add(1, Ordering::Relaxed);
                if chunk >= end {
                    break;
                }
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(chunk))) {
                    self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
                    for taken in &self.taken {
                        taken.0.store(usize::MAX / 2, Ordering::Relaxed);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU8;

    /// Every chunk is done once, whatever the number of threads, with and without sleep between jobs.
    #[test]
    fn each_chunk_is_done_once() {
        for threads in [1, 2, 3, 8] {
            let pool = Pool::new(threads);
            for round in 0..2000_usize {
                let chunks = [0, 1, 2, 3, 7, 64][round % 6];
                let done: Vec<AtomicU8> = (0..chunks).map(|_| AtomicU8::new(0)).collect();
                pool.run(chunks, &|chunk| {
                    done[chunk].fetch_add(1, Ordering::Relaxed);
                });
                assert!(done.iter().all(|d| d.load(Ordering::Relaxed) == 1));
                if round % 500 == 499 {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    /// Several callers and calls from inside a job: whoever finds the pool busy works alone.
    #[test]
    fn callers_may_be_many_and_nested() {
        let pool = Pool::new(3);
        let sum = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..300 {
                        pool.run(5, &|_| {
                            pool.run(4, &|i| {
                                sum.fetch_add(i, Ordering::Relaxed);
                            });
                        });
                    }
                });
            }
        });
        assert_eq!(sum.into_inner(), 3 * 300 * 5 * 6);
    }

    #[test]
    fn a_panic_comes_back_and_the_pool_goes_on() {
        let pool = Pool::new(2);
        for _ in 0..20 {
            let panic = catch_unwind(AssertUnwindSafe(|| pool.run(64, &|i| assert_ne!(i, 40, "chunk 40"))));
            assert!(panic.is_err());
            let sum = AtomicUsize::new(0);
            pool.run(10, &|i| {
                sum.fetch_add(i, Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), 45);
        }
    }

    /// Prints what a fork and join of two chunks costs: `--ignored --nocapture`, in a release build.
    #[test]
    #[ignore = "a measurement"]
    fn cost_of_fork_and_join() {
        let pool = Pool::new(2);
        let mut times: Vec<u128> = (0..101)
            .map(|_| {
                let start = Instant::now();
                for _ in 0..1000 {
                    pool.run(2, &|i| {
                        std::hint::black_box(i);
                    });
                }
                start.elapsed().as_nanos() / 1000
            })
            .collect();
        times.sort_unstable();
        eprintln!("fork and join of 2 chunks: {} ns", times[50]);
    }
}
