//! The last line of defence: a panic becomes "internal error" and exit code 70, and deep programs get deep stacks.
//!
//! No input may cause a panic; if one does, the person at the terminal must see what was being done, and a run over
//! many files must go on with the next one.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, Once};

use crate::exit::Failure;

/// Stack of the threads that run programs: virtual memory, touched only as far as it is used.
pub const STACK_BYTES: usize = 512 << 20;

/// Where the last panic was, for the message.
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());
static HOOK: Once = Once::new();

thread_local! {
    /// How many [`guarded`] calls this thread is in.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Keeps the standard library from printing panics that [`guarded`] will report: those of guarded threads, and those of the
/// nameless workers of a thread pool, which reach the guarded thread that waits for them.
fn install_hook() {
    HOOK.call_once(|| {
        let standard = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if DEPTH.get() == 0 && std::thread::current().name().is_some() {
                standard(info);
                return;
            }
            let place = info.location().map(|l| format!(" at {}:{}", l.file(), l.line())).unwrap_or_default();
            if let Ok(mut last) = LAST_PANIC.lock() {
                *last = place;
            }
        }));
    });
}

/// Refuses a machine that lacks instructions which parts of this program were compiled to.
pub fn check_machine() -> Result<(), Failure> {
    hlo_interp::baseline::check().map_err(|feature| {
        let baseline = hlo_interp::baseline::BASELINE.unwrap_or("this machine");
        Failure::new(
            crate::exit::Exit::Unsupported,
            format!(
                "this program was built for {baseline}, and this machine lacks {feature}; \
                 build it with `make demo` there, or with TARGET_CPU=x86-64 and RUSTFLAGS=\"-C target-cpu=x86-64\" in the environment (results are the same)"
            ),
        )
    })
}

/// What a panic said, if it is text.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> Option<&str> {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied())
}

/// Runs `f`; a panic in it becomes a [`Failure`] with exit code 70 that names `what` was being done.
pub fn guarded<T>(what: &str, f: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    install_hook();
    DEPTH.set(DEPTH.get() + 1);
    let caught = catch_unwind(AssertUnwindSafe(f));
    DEPTH.set(DEPTH.get() - 1);
    match caught {
        Ok(result) => result,
        Err(payload) => {
            let text = panic_message(&*payload).unwrap_or("panic");
            let place = LAST_PANIC.lock().map(|l| l.clone()).unwrap_or_default();
            Err(Failure::internal(format!(
                "internal error while {what}: {text}{place}\nthis is a bug of this program, not of yours; please report it with the input"
            )))
        }
    }
}

/// Runs `f` on a thread with a stack of [`STACK_BYTES`], or of what the system gives.
pub fn on_deep_stack<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    let cell = Mutex::new(Some(f));
    let run = || cell.lock().ok().and_then(|mut f| f.take()).map(|f| f());
    for bytes in [STACK_BYTES, 64 << 20, 8 << 20] {
        let joined = std::thread::scope(|scope| {
            let builder = std::thread::Builder::new().name("hlo".into()).stack_size(bytes);
            builder.spawn_scoped(scope, run).ok().map(std::thread::ScopedJoinHandle::join)
        });
        match joined {
            Some(Ok(Some(value))) => return value,
            Some(Ok(None)) => unreachable!("the closure is taken only by the thread that returns its value"),
            Some(Err(payload)) => std::panic::resume_unwind(payload),
            None => {}
        }
    }
    // No thread at all: the stack of this one has to do.
    run().expect("invariant: no thread took the closure")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

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
    fn deep_recursion_fits() {
        fn depth(n: u64) -> u64 {
            let pad = std::hint::black_box([n; 32]);
            if n == 0 { 0 } else { 1 + depth(pad[31] - 1) }
        }
        assert_eq!(on_deep_stack(|| depth(100_000)), 100_000);
    }
}
