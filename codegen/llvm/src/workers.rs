//! The threads that LLVM runs on.
//!
//! Where LLVM cannot go on ("Cannot select ...") it calls a handler that may neither return, or LLVM ends the
//! process, nor unwind, for LLVM's frames are in the way. So whatever is asked of LLVM is done by threads of
//! our own: the handler tells the waiting side what happened and stays where it is for ever, and what the
//! thread holds is lost with it. The threads live as long as the process, since what LLVM needs to begin is
//! made once per thread, and have stacks for LLVM's recursion over long expressions. Where the system gives
//! no thread, not even with a small stack, the caller does its jobs itself; only there LLVM's giving up ends
//! the process.
//!
//! **Invariant:** a job is touched only between being taken and being told of as finished or failed; its
//! owner waits for that. So it may borrow.

use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};

use hlo_codegen::runtime::arena::Memory;
use hlo_library_base::configuration;
use hlo_threads::cancel;
use inkwell::llvm_sys::error_handling::LLVMInstallFatalErrorHandler;

use super::Error;

/// Addresses for the stack of a thread, the less the fewer there are; memory is used as it is touched.
const STACKS: [usize; 3] = [1 << 28, 1 << 26, 1 << 23];

/// Calls `job` with each number below `jobs`, on at most as many threads as there are cores. Errors: what
/// LLVM said where it could not go on. A panic is resumed here.
pub fn run<T: Send>(jobs: usize, job: &(dyn Fn(usize) -> T + Sync)) -> Vec<Result<T, Error>> {
    static INSTALL: Once = Once::new();
    // SAFETY: the handler may be called at any time from any thread; it is written for that.
    INSTALL.call_once(|| unsafe { LLVMInstallFatalErrorHandler(Some(fatal)) });
    let results: Vec<Mutex<Option<T>>> = (0..jobs).map(|_| Mutex::new(None)).collect();
    let (token, configuration) = (cancel::current(), configuration::current());
    let work = |index: usize| {
        let result = configuration.with(|| cancel::with(token.clone(), || job(index)));
        *lock(&results[index]) = Some(result);
    };
    let work: *const (dyn Fn(usize) + Sync + '_) = &work;
    // SAFETY: the lifetime is taken off; every use of the function is over when its task has ended, which is
    // waited for below.
    let work: *const (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(work) };
    let batch =
        Arc::new(Batch { ends: Mutex::new(Ends { left: jobs, ..Ends::default() }), all: Condvar::new() });
    QUEUE.add((0..jobs).map(|index| Task { work, index, batch: Arc::clone(&batch) }));
    let mut ends = lock(&batch.ends);
    while ends.left > 0 {
        ends = batch.all.wait(ends).unwrap_or_else(PoisonError::into_inner);
    }
    if let Some(panic) = ends.panic.take() {
        resume_unwind(panic);
    }
    let mut failed = std::mem::take(&mut ends.failed);
    drop(ends);
    results
        .into_iter()
        .enumerate()
        .map(|(index, result)| {
            let result = result.into_inner().unwrap_or_else(PoisonError::into_inner);
            let why = failed.iter_mut().find(|f| f.0 == index).map(|f| std::mem::take(&mut f.1));
            result.ok_or_else(|| Error::Llvm(why.unwrap_or_else(|| "no thread to compile on".to_owned())))
        })
        .collect()
}

/// One call of a function.
struct Task {
    work: *const (dyn Fn(usize) + Sync),
    index: usize,
    batch: Arc<Batch>,
}

// SAFETY: the function is `Sync`, and outlives the task (see `run`).
unsafe impl Send for Task {}

impl Task {
    /// Calls the function, and tells of the end.
    fn run(&self) {
        // SAFETY: who made the task waits for its end.
        let work = unsafe { &*self.work };
        let panic = catch_unwind(AssertUnwindSafe(|| work(self.index))).err();
        self.batch.end(|ends| {
            if let Some(panic) = panic {
                ends.panic.get_or_insert(panic);
            }
        });
    }
}

/// What was asked for together.
struct Batch {
    ends: Mutex<Ends>,
    /// All tasks have ended.
    all: Condvar,
}

#[derive(Default)]
struct Ends {
    left: usize,
    failed: Vec<(usize, String)>,
    panic: Option<Box<dyn Any + Send>>,
}

impl Batch {
    fn end(&self, tell: impl FnOnce(&mut Ends)) {
        let mut ends = lock(&self.ends);
        tell(&mut ends);
        ends.left -= 1;
        if ends.left == 0 {
            self.all.notify_all();
        }
    }
}

/// Tasks that are not begun, and the threads.
struct Queue {
    state: Mutex<State>,
    news: Condvar,
}

struct State {
    tasks: VecDeque<Task>,
    /// Threads that wait for a task, and all that take tasks.
    idle: usize,
    threads: usize,
}

static QUEUE: Queue =
    Queue { state: Mutex::new(State { tasks: VecDeque::new(), idle: 0, threads: 0 }), news: Condvar::new() };

impl Queue {
    /// Has tasks done by the threads, or does them if there are none.
    fn add(&self, tasks: impl Iterator<Item = Task>) {
        let mut state = lock(&self.state);
        state.tasks.extend(tasks);
        self.staff(&mut state);
        while state.threads == 0
            && let Some(task) = state.tasks.pop_front()
        {
            drop(state);
            task.run();
            state = lock(&self.state);
        }
    }

    /// Wakes or starts threads for the tasks that there are.
    fn staff(&self, state: &mut State) {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..state.tasks.len().min(state.idle) {
            self.news.notify_one();
        }
        for _ in state.idle..state.tasks.len() {
            if state.threads >= cores {
                break;
            }
            if !start() {
                break;
            }
            state.threads += 1;
        }
    }

    /// What a thread does all its life.
    fn serve(&self) {
        let mut state = lock(&self.state);
        loop {
            let Some(task) = state.tasks.pop_front() else {
                state.idle += 1;
                state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
                continue;
            };
            drop(state);
            CURRENT.with(|c| *c.borrow_mut() = Some((Arc::clone(&task.batch), task.index)));
            task.run();
            CURRENT.with(|c| *c.borrow_mut() = None);
            state = lock(&self.state);
        }
    }
}

/// Starts a thread that takes tasks, if the system gives one. Its stack may take a quarter of what addresses
/// there are: the rest is for LLVM, which ends the process where it has none.
fn start() -> bool {
    STACKS.iter().any(|&stack| {
        if stack > STACKS[2] && Memory::new(4 * stack as u64).is_err() {
            return false;
        }
        let thread = std::thread::Builder::new().name("hlo-llvm".to_owned()).stack_size(stack);
        thread.spawn(|| QUEUE.serve()).is_ok()
    })
}

thread_local! {
    /// The task of this thread: its batch and number.
    static CURRENT: RefCell<Option<(Arc<Batch>, usize)>> = const { RefCell::new(None) };
}

/// LLVM cannot go on.
extern "C" fn fatal(reason: *const c_char) {
    // SAFETY: LLVM gives a string that is alive until this returns.
    let reason = unsafe { CStr::from_ptr(reason) }.to_string_lossy().into_owned();
    let Some((batch, index)) = CURRENT.with(|c| c.borrow_mut().take()) else {
        // Not a thread of ours: the process ends here, as it would if this returned, and says why.
        panic!("LLVM: {reason}");
    };
    {
        let mut state = lock(&QUEUE.state);
        state.threads -= 1;
        QUEUE.staff(&mut state);
        if state.threads == 0 {
            // Nobody comes by who could do them.
            state.tasks.drain(..).for_each(|task| task.batch.end(|_| {}));
        }
    }
    batch.end(|ends| ends.failed.push((index, reason)));
    drop(batch);
    loop {
        std::thread::park();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use inkwell::AddressSpace;

    use super::super::{Level, Target, new_context};
    use super::*;

    /// A call of another processor's instruction.
    fn impossible() -> super::super::Result<Vec<u8>> {
        let context = new_context();
        let module = context.create_module("m");
        let target = Target::host(Level::O2)?;
        target.prepare(&module)?;
        let name =
            if cfg!(target_arch = "x86_64") { "llvm.aarch64.crc32b" } else { "llvm.x86.sse42.crc32.32.32" };
        let int = context.i32_type();
        let callee = module.add_function(name, int.fn_type(&[int.into(); 2], false), None);
        let pointer = context.ptr_type(AddressSpace::default());
        let function = module.add_function("f", context.void_type().fn_type(&[pointer.into()], false), None);
        let builder = context.create_builder();
        builder.position_at_end(context.append_basic_block(function, "entry"));
        let call = builder.build_call(callee, &[int.const_zero().into(); 2], "")?;
        let value = call.try_as_basic_value().unwrap_basic();
        builder.build_store(function.get_first_param().unwrap().into_pointer_value(), value)?;
        builder.build_return(None)?;
        target.optimize(&module)?;
        target.object(&module)
    }

    /// The process lives, others' jobs are done, and so are later ones, as often as it happens.
    #[test]
    fn what_llvm_cannot_do_is_an_error() {
        for round in 0..3 {
            let done = run(4, &|index| if index == 1 { impossible().map(|o| o.len()) } else { Ok(index) });
            for (index, result) in done.into_iter().enumerate() {
                match result {
                    Ok(result) => assert_eq!(result.unwrap(), index, "round {round}"),
                    Err(error) => {
                        assert_eq!(index, 1);
                        assert!(error.to_string().contains("Cannot select"), "{error}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_panic_comes_back() {
        let panic = catch_unwind(AssertUnwindSafe(|| run(3, &|index| assert_ne!(index, 1, "job 1"))));
        assert!(panic.is_err());
        assert_eq!(run(2, &|index| index).into_iter().map(Result::unwrap).sum::<usize>(), 1);
    }
}
