//! Executions in the steady state ask the allocator for nothing; results are in memory of an execution's own
//! allocator, computed on its own threads, where it has these. A program of its own, since its allocator
//! counts; so one test at a time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use hlo::{ArrayLiteral, Literal};
use hlo_client::chain::{ChainInput, ChainOperation, ChainOutput, ChainStep};
use hlo_client::handles::Handles;
use hlo_client::{
    Client, ClientOptions, Code, CompileOptions, DeviceAllocator, ExecuteOptions, LentThreads, ThreadPool,
};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: all is the system's allocator's, which keeps to the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: by the caller's word.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: by the caller's word.
        unsafe { System.dealloc(start, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: by the caller's word.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: by the caller's word.
        unsafe { System.realloc(start, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Tests run one at a time: the count is of the whole process.
static EXCLUSIVE: Mutex<()> = Mutex::new(());

/// Allocations while something runs, once it ran a few times.
fn allocations(mut run: impl FnMut()) -> u64 {
    for _ in 0..4 {
        run();
    }
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    run();
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

fn client() -> Client {
    Client::cpu(ClientOptions { threads: 1, ..ClientOptions::default() }).unwrap()
}

fn floats(values: &[f32]) -> ArrayLiteral {
    let dims = if values.len() == 1 { vec![] } else { vec![values.len() as i64] };
    ArrayLiteral::new(dims.as_slice().into(), hlo::Buffer::F32(values.to_vec())).unwrap()
}

const ADD: &str =
    "HloModule add\nENTRY e { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }";

const STEP: &str = "HloModule step\nENTRY e { x = f32[2,1,1,2,1] parameter(0)  y = f32[2,1,1,2,1] parameter(1)
    s = f32[2,1,1,2,1] add(x, y)  m = f32[2,1,1,2,1] multiply(x, y)  ROOT t = (f32[2,1,1,2,1], f32[2,1,1,2,1]) tuple(s, m) }";

#[test]
fn an_addition_of_scalars_allocates_nothing() {
    let _exclusive = EXCLUSIVE.lock();
    let client = client();
    let add = client.compile(&client.parse(ADD).unwrap(), &CompileOptions::default()).unwrap();
    let (x, y) = (client.buffer(&floats(&[1.0])).unwrap(), client.buffer(&floats(&[2.0])).unwrap());
    let options = ExecuteOptions::default();
    let mut results = Vec::with_capacity(1);
    let counted = allocations(|| {
        results.clear();
        add.execute_into(&[&x, &y], &options, &mut results).unwrap();
    });
    assert_eq!(counted, 0);
    results[0].with_bytes(|bytes| assert_eq!(bytes, 3f32.to_le_bytes())).unwrap();
}

/// A chain of a thousand executions, the results of each being the arguments of the next; also of rank 5 and
/// with two results each.
#[test]
fn chained_runs_of_a_thousand_steps_allocate_nothing() {
    let _exclusive = EXCLUSIVE.lock();
    let client = client();
    let handles = Handles::new(&client, 0, 1);
    let program = handles.compile(&client.parse(STEP).unwrap(), &CompileOptions::default()).unwrap();
    let dims = [2, 1, 1, 2, 1].as_slice();
    let array = |value: f32| {
        Literal::Array(ArrayLiteral::new(dims.into(), hlo::Buffer::F32(vec![value; 4])).unwrap())
    };
    let one = handles.allocate(&array(1.0)).unwrap();
    let data = ChainStep { operation: ChainOperation::Data(one), outputs: vec![] };
    let mut plan = vec![data];
    const STEPS: usize = 1000;
    for step in 1..=STEPS {
        // The sum of the step before and 1; the product with 1 is dropped.
        let before = ChainInput { step: step - 1, output: usize::from(step > 1) };
        let inputs = vec![before, ChainInput { step: 0, output: 0 }];
        plan.push(ChainStep { operation: ChainOperation::Execute { program, inputs }, outputs: vec![] });
    }
    plan[STEPS].outputs.push(ChainOutput { output: 1, result: 0 });
    let chain = handles.chain(&plan).unwrap();
    let options = ExecuteOptions::default();
    let mut results = Vec::with_capacity(1);
    let counted = allocations(|| {
        for handle in results.drain(..) {
            handles.release(handle).unwrap();
        }
        chain.run_into(&options, &mut results).unwrap();
    });
    assert_eq!(handles.read_literal(results[0], false).unwrap(), array(1001.0));
    assert_eq!(counted, 0, "in {STEPS} steps");
}

/// An allocator of a caller's with a limit, and what it gave.
#[derive(Debug, Default)]
struct Own {
    limit_bytes: usize,
    given: Mutex<Vec<(usize, usize)>>,
}

fn aligned(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 64).unwrap()
}

// SAFETY: memory of the system's, zeroed and aligned, which is given back by the same layout.
unsafe impl hlo_client::Allocator for Own {
    fn allocate(&self, bytes: usize) -> Option<NonNull<u8>> {
        let mut given = self.given.lock().unwrap();
        if given.iter().map(|g| g.1).sum::<usize>() + bytes > self.limit_bytes {
            return None;
        }
        // SAFETY: the runtime asks for at least one byte, so that the layout is not of size 0.
        let start = NonNull::new(unsafe { System.alloc_zeroed(aligned(bytes)) })?;
        given.push((start.addr().get(), bytes));
        Some(start)
    }

    unsafe fn deallocate(&self, start: NonNull<u8>, bytes: usize) {
        let mut given = self.given.lock().unwrap();
        let at = given.iter().position(|g| *g == (start.addr().get(), bytes));
        given.remove(at.expect("what is given back was given"));
        // SAFETY: by the caller's word.
        unsafe { System.dealloc(start.as_ptr(), aligned(bytes)) }
    }
}

const ADD_AND_UPDATE: &str = "HloModule both, input_output_alias={ {1}: (1, {}, may-alias) }
    ENTRY e { x = f32[1000] parameter(0)  y = f32[1000] parameter(1)
    s = f32[1000] add(x, y)  m = f32[1000] multiply(x, y)  ROOT t = (f32[1000], f32[1000]) tuple(s, m) }";

#[test]
fn results_are_in_memory_of_the_executions_allocator() {
    let _exclusive = EXCLUSIVE.lock();
    for client in [client(), Client::interpreter(ClientOptions::default()).unwrap()] {
        let program = client.parse(ADD_AND_UPDATE).unwrap();
        let program = client.compile(&program, &CompileOptions::default()).unwrap();
        let own = Arc::new(Own { limit_bytes: 12_000, ..Own::default() });
        let options = ExecuteOptions {
            allocator: Some(DeviceAllocator::new(own.clone())),
            ..ExecuteOptions::default()
        };
        let held = || own.given.lock().unwrap().iter().map(|g| g.1).collect::<Vec<_>>();
        let (x, y) =
            (client.buffer(&floats(&[2.0; 1000])).unwrap(), client.buffer(&floats(&[3.0; 1000])).unwrap());
        let mut results = program.execute_with(&[&x, &y], &options).unwrap();
        // One is new; the other is a copy of the argument that is updated and was not given away.
        assert_eq!(held(), [4000, 4000]);
        assert_eq!(*results[1].to_literal().unwrap().buffer, hlo::Buffer::F32(vec![6.0; 1000]));
        // There is memory for one more array, and not for two.
        let refused = program.execute_with(&[&x, &y], &options).unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
        assert_eq!(held(), [4000, 4000]);
        results.pop();
        assert_eq!(held(), [4000]);
        drop(program.execute_with(&[&results[0], &y], &options).unwrap());
        assert_eq!(held(), [4000]);
        drop(results);
        assert!(held().is_empty());
    }
}

/// Threads of a caller's: the one that calls, counting.
#[derive(Debug)]
struct Counted(Arc<AtomicU64>);

impl LentThreads for Counted {
    fn threads(&self) -> usize {
        3
    }

    fn run(&self, chunks: usize, work: &(dyn Fn(usize) + Sync)) {
        self.0.fetch_add(1, Ordering::Relaxed);
        (0..chunks).for_each(work);
    }
}

#[test]
fn executions_run_on_the_threads_that_they_are_given() {
    let _exclusive = EXCLUSIVE.lock();
    let text = "HloModule large\nENTRY e { x = f32[1000000] parameter(0)  s = f32[1000000] sine(x)
        z = f32[] constant(0)  ROOT r = f32[] reduce(s, z), dimensions={0}, to_apply=sum }";
    let sum = "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }";
    let text = text.replace("\nENTRY", &format!("\n{sum}\nENTRY"));
    for client in [client(), Client::interpreter(ClientOptions::default()).unwrap()] {
        let program = client.compile(&client.parse(&text).unwrap(), &CompileOptions::default()).unwrap();
        let x = client.buffer(&floats(&vec![0.5; 1_000_000])).unwrap();
        let run = |thread_pool| {
            let options = ExecuteOptions { thread_pool, ..ExecuteOptions::default() };
            program.execute_with(&[&x], &options).unwrap().remove(0).to_literal().unwrap()
        };
        let calls = Arc::new(AtomicU64::new(0));
        let lent = run(Some(ThreadPool::lent(Box::new(Counted(Arc::clone(&calls))))));
        assert!(calls.load(Ordering::Relaxed) > 0, "{}", client.platform());
        assert_eq!(lent, run(None));
        assert_eq!(lent, run(Some(ThreadPool::new(2))));
    }
}
