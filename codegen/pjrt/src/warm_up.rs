//! Warm-up of a process: what the first compilation would take longer for is done while the framework traces.
//!
//! **Invariant:** the process does not end while the code generator runs on the thread of the warm-up, since destructors of
//! static objects take away what it works on: `exit` waits for it.

use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

/// How many threads warm up.
static RUNNING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

unsafe extern "C" {
    /// The C standard's (7.24.4.2): calls a function when the process ends, those that came last first.
    safe fn atexit(function: extern "C" fn()) -> std::ffi::c_int;
}

/// Warms up on a thread of its own. Without one, or without somebody who waits for it, nothing is done.
pub(crate) fn start() {
    static WAITED_FOR: OnceLock<bool> = OnceLock::new();
    if !WAITED_FOR.get_or_init(|| atexit(wait) == 0) {
        return;
    }
    *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    let running = Running;
    let work = move || {
        let _running = running;
        // Whatever is wrong will be said of the first program.
        let _ = std::panic::catch_unwind(hlo_client::warm_up);
    };
    // Without a thread the closure is dropped, and counted as ended.
    let _ = std::thread::Builder::new().name("hlo-warm-up".into()).spawn(work);
}

/// One of those that [`RUNNING`] counts.
struct Running;

impl Drop for Running {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_all();
    }
}

/// Waits until no thread warms up.
extern "C" fn wait() {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    while *running > 0 {
        running = ENDED.wait(running).unwrap_or_else(PoisonError::into_inner);
    }
}
