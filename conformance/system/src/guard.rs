//! The last line of defence: a panic becomes "internal error" and exit code 70, and deep programs get deep
//! stacks.
//!
//! No input may cause a panic; if one does, the person at the terminal must see what was being done, and a
//! run over many files must go on with the next one.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use hlo_client::panic_message;
use hlo_threads::cancel::{self, Cancelled};

use crate::exit::{Exit, Failure};
use crate::memory_budget;

/// Stack of the threads that run programs: virtual memory, touched only as far as it is used.
pub const STACK_BYTES: usize = 512 << 20;

/// The same where there are fewer addresses.
const STACKS: [usize; 3] = [STACK_BYTES, 64 << 20, 8 << 20];

/// The location of the last panic, for the message.
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());
static HOOK: Once = Once::new();

thread_local! {
    /// The nesting of [`guarded`] calls on this thread.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Keeps the standard library from printing panics that [`guarded`] will report: those of guarded threads,
/// and those of the nameless workers of a thread pool, which reach the guarded thread that waits for them.
fn install_hook() {
    HOOK.call_once(|| {
        let standard = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if DEPTH.get() == 0 && std::thread::current().name().is_some() {
                standard(info);
                return;
            }
            let at = info.location().map(|l| format!(" at {}:{}", l.file(), l.line())).unwrap_or_default();
            if let Ok(mut last) = LAST_PANIC.lock() {
                *last = at;
            }
        }));
    });
}

/// Refuses a machine that lacks instructions which parts of this program were compiled to, or memory.
pub fn check_machine() -> Result<(), Failure> {
    memory_budget::check()?;
    hlo_arithmetic::baseline::check().map_err(|feature| {
        let baseline = hlo_arithmetic::baseline::BASELINE.unwrap_or("this machine");
        Failure::new(
            Exit::Unsupported,
            format!(
                "this program was built for {baseline}, and this machine lacks {feature}; \
                 build it with `make demo` there, or with TARGET_CPU=x86-64 and RUSTFLAGS=\"-C target-cpu=x86-64\" in the environment (results are the same)"
            ),
        )
    })
}

/// Runs `f`; a panic in it becomes a [`Failure`] with exit code 70 that names `what` was being done.
pub fn guarded<T>(what: &str, f: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    install_hook();
    DEPTH.set(DEPTH.get() + 1);
    let caught = catch_unwind(AssertUnwindSafe(f));
    DEPTH.set(DEPTH.get() - 1);
    match caught.map_err(Cancelled::rethrow) {
        Ok(result) => result,
        Err(payload) => {
            let text = panic_message(&*payload).unwrap_or("panic");
            let at = LAST_PANIC.lock().map(|l| l.clone()).unwrap_or_default();
            Err(Failure::internal(format!(
                "internal error while {what}: {text}{at}\nthis is a bug of this program, not of yours; please report it with the input"
            )))
        }
    }
}

/// Runs `f` on a program that does not verify, which nothing here is made for: that it fails is no bug of
/// ours. A panic becomes a [`Failure`] with [`Exit::Verify`].
pub fn at_own_risk<T>(what: &str, f: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    guarded(what, f).map_err(|failure| match failure.exit {
        Exit::Internal => {
            let line =
                failure.message.lines().next().unwrap_or_default().replace("internal error", "stopped");
            Failure::new(
                Exit::Verify,
                format!(
                    "{line}\nthe program breaks the rules above, on which everything rests (--no-verify)"
                ),
            )
        }
        Exit::Ok
        | Exit::Differs
        | Exit::Usage
        | Exit::Parse
        | Exit::Verify
        | Exit::Unsupported
        | Exit::Trap => failure,
    })
}

/// Runs `f`, a whole command, on a thread with a stack that is large enough whatever `ulimit -s` says.
/// Errors: [`Exit::Trap`] if there is none.
pub fn on_own_stack<T: Send>(f: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    std::thread::scope(|scope| match spawn_deep(scope, Some("hlo"), f) {
        Ok(thread) => Ok(thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))),
        Err(_) => Err(no_thread()),
    })
}

fn no_thread() -> Failure {
    let what = "the system gives this process no thread (`ulimit -u`, `ulimit -v`, the pids of its group)";
    Failure::new(Exit::Trap, what)
}

/// Runs `f` on a thread with a stack of [`STACK_BYTES`], or of what the system gives.
pub fn on_deep_stack<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| match spawn_deep(scope, Some("hlo"), f) {
        Ok(thread) => thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload)),
        // No thread at all: the stack of this one has to do.
        Err(f) => f(),
    })
}

/// Stacks of the threads of the pool that operations are spread over, the less the fewer addresses there are.
const POOL_STACKS: [usize; 3] = [64 << 20, 16 << 20, 2 << 20];

/// As many of the threads that somebody asks for as are of use: results do not depend on their number, and
/// with many more than cores they wait for each other longer than they work. 0 stays what it is.
pub fn useful(threads: usize) -> usize {
    /// So that tests on small machines see what several threads do.
    const MIN_THREADS: usize = 16;
    const THREADS_PER_CORE: usize = 4;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    threads.min((THREADS_PER_CORE * cores).max(MIN_THREADS))
}

/// Threads that a run starts in addition to the pool: its own, the compiler's, the one with bounds.
const SPARE_THREADS: usize = 4;

/// Starts the pool that operations are spread over, of `threads` threads (0: one a core) or of as many as the
/// system gives. Later calls change nothing. Errors: [`Exit::Trap`] if it gives none.
///
/// The pool is made once or never, and with it none of its threads may fail: they are started before, and the
/// spare ones with them.
pub fn start_pool(threads: usize) -> Result<(), Failure> {
    let wanted =
        if threads == 0 { std::thread::available_parallelism().map_or(1, usize::from) } else { threads };
    let all = wanted + SPARE_THREADS;
    let (mut count, mut stack, mut started) = (0, 0, Vec::new());
    for smaller in POOL_STACKS {
        if smaller > POOL_STACKS[2] && !memory_budget::is_modest(all as u64 * smaller as u64) {
            continue;
        }
        started = Waiting::start(all, smaller);
        if started.len() == all {
            break;
        }
        // These free space for more that are smaller.
        if started.len() > count {
            (count, stack) = (started.len(), smaller);
        }
        started.clear();
    }
    if started.is_empty() {
        started = Waiting::start(count, stack);
    }
    if started.is_empty() {
        return Err(no_thread());
    }
    let threads = started.len().saturating_sub(SPARE_THREADS).clamp(1, wanted);
    let none = || io::Error::other("more threads than were started");
    let spawn = |worker| started.pop().ok_or_else(none).and_then(|thread| thread.work(worker));
    // Fails only if a pool exists already, which then serves.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).spawn_handler(spawn).build_global();
    Ok(())
}

/// A thread that waits to become one of the pool's. It ends where it is dropped.
struct Waiting {
    /// `None`: it has got its work, or ends.
    work: Option<Sender<rayon::ThreadBuilder>>,
    thread: Option<JoinHandle<()>>,
}

impl Waiting {
    /// So many with such a stack at once, or as many as the system gives.
    fn start(wanted: usize, stack: usize) -> Vec<Waiting> {
        let start = |_| {
            let (work, worker) = mpsc::channel::<rayon::ThreadBuilder>();
            let run = move || worker.recv().into_iter().for_each(rayon::ThreadBuilder::run);
            let thread = Builder::new().stack_size(stack).spawn(run).ok()?;
            Some(Waiting { work: Some(work), thread: Some(thread) })
        };
        (0..wanted).map_while(start).collect()
    }

    fn work(mut self, worker: rayon::ThreadBuilder) -> io::Result<()> {
        // The pool's threads are not joined.
        self.thread = None;
        let sent = self.work.take().map(|work| work.send(worker).is_ok());
        if sent == Some(true) { Ok(()) } else { Err(io::Error::other("a thread that has ended")) }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            // It has done nothing that could have failed.
            let _ = thread.join();
        }
    }
}

/// Starts `f`, as part of what this thread does, on a thread with a stack of [`STACK_BYTES`], or a smaller
/// one where memory is short. `Err`: the system gives no thread, and `f` was not called.
pub fn spawn_deep<'s, T: Send + 's, F: FnOnce() -> T + Send + 's>(
    scope: &'s Scope<'s, '_>,
    name: Option<&str>,
    f: F,
) -> Result<ScopedJoinHandle<'s, T>, F> {
    let cell = Arc::new(Mutex::new(Some(f)));
    let taken = |cell: &Mutex<Option<F>>| {
        let f = cell.lock().unwrap_or_else(PoisonError::into_inner).take();
        f.expect("invariant: only the thread that was started, or else its starter, takes the closure")
    };
    for bytes in STACKS {
        if bytes > STACKS[2] && !memory_budget::is_modest(bytes as u64) {
            continue;
        }
        let mut builder = Builder::new().stack_size(bytes);
        if let Some(name) = name {
            builder = builder.name(name.to_owned());
        }
        let (cell, token) = (cell.clone(), cancel::current());
        if let Ok(thread) = builder.spawn_scoped(scope, move || cancel::with(token, || taken(&cell)())) {
            return Ok(thread);
        }
    }
    Err(taken(&cell))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_reported_with_what_was_being_done() {
        let failure = guarded("testing", || -> Result<(), Failure> { panic!("boom {}", 7) }).unwrap_err();
        assert_eq!(failure.exit, Exit::Internal);
        assert!(
            failure.message.starts_with("internal error while testing: boom 7 at "),
            "{}",
            failure.message
        );
        assert!(failure.message.contains("guard.rs:"), "{}", failure.message);
    }

    #[test]
    fn a_panic_of_a_broken_program_is_the_programs() {
        let failure = at_own_risk("running m", || -> Result<(), Failure> { panic!("boom") }).unwrap_err();
        assert_eq!(failure.exit, Exit::Verify);
        assert!(failure.message.starts_with("stopped while running m: boom at "), "{}", failure.message);
        let trap = || Err(Failure::new(Exit::Trap, "fuel"));
        assert_eq!(at_own_risk("x", trap as fn() -> Result<(), Failure>).unwrap_err().exit, Exit::Trap);
    }

    #[test]
    fn threads_that_the_system_does_not_give_are_not_counted() {
        assert_eq!(Waiting::start(3, 1 << 20).len(), 3);
        assert_eq!(Waiting::start(3, usize::MAX >> 2).len(), 0);
    }

    #[test]
    fn the_pool_runs_on_threads_that_waited() {
        let mut started = Waiting::start(3, 1 << 20);
        let spawn = |worker| started.pop().expect("three wait").work(worker);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).spawn_handler(spawn).build().unwrap();
        assert_eq!(pool.broadcast(|context| context.index()), [0, 1]);
        drop(pool);
        assert_eq!(started.len(), 1);
    }

    #[test]
    fn deep_recursion_fits() {
        fn depth(n: u64) -> u64 {
            let pad = std::hint::black_box([n; 32]);
            if n == 0 { 0 } else { 1 + depth(pad[31] - 1) }
        }
        assert_eq!(on_deep_stack(|| depth(100_000)), 100_000);
    }
}
