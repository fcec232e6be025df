//! Threads for the tasks of handlers.
//!
//! Tasks may outlast the handler that schedules them, and wait for one another in whatever way they like, so
//! they have threads of their own, as many as there are cores, which start with the first task.

use std::ffi::c_void;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use crate::abi::Task;

struct Job {
    task: Task,
    data: *mut c_void,
}

// SAFETY: the C API: a task is called with its data on any thread.
unsafe impl Send for Job {}

/// The number of threads.
pub(crate) fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn work(jobs: &Mutex<Receiver<Job>>) {
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        // SAFETY: the C API: who schedules a task hands over its data, and has it called once.
        unsafe { (job.task)(job.data) };
    }
}

fn start() -> Option<Mutex<Sender<Job>>> {
    let (sender, receiver) = channel();
    let jobs = Arc::new(Mutex::new(receiver));
    let mut started = false;
    for _ in 0..threads() {
        let jobs = Arc::clone(&jobs);
        started |= thread::Builder::new().name("hlo-ffi".into()).spawn(move || work(&jobs)).is_ok();
    }
    started.then(|| Mutex::new(sender))
}

/// Has a task called on one of the threads; false if there are none.
pub(crate) fn schedule(task: Task, data: *mut c_void) -> bool {
    static SENDER: OnceLock<Option<Mutex<Sender<Job>>>> = OnceLock::new();
    let Some(sender) = SENDER.get_or_init(start) else { return false };
    sender.lock().unwrap_or_else(PoisonError::into_inner).send(Job { task, data }).is_ok()
}
