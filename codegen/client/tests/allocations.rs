//! Executions in the steady state ask the allocator for nothing. A program of its own, since its allocator
//! counts; so one test at a time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use hlo::{ArrayLiteral, Literal};
use hlo_client::chain::{ChainInput, ChainOperation, ChainOutput, ChainStep};
use hlo_client::handles::Handles;
use hlo_client::{Client, ClientOptions, CompileOptions, ExecuteOptions};

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
