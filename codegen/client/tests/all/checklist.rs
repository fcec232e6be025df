//! What TensorFlow's launch ops, XRT and the XLA runtime's RFC do, function by function, as far as no other
//! file has a test of it: the table is in docs/client.md.

use hlo::Literal;
use hlo_client::closures::{ClosureStore, Demand};
use hlo_client::handles::{HandleExecution, Handles};
use hlo_client::trace::{SpanKind, Trace};
use hlo_client::variables::{Binding, Bound, Variable};
use hlo_client::{
    Client, ClientOptions, Code, CompileOptions, Elapsed, Executable, ExecuteOptions, VerifiedModule,
};
use hlo_interp::Devices;

use crate::common::{adds, compile, cpu, floats, interpreter, values};

const UNSUPPORTED: &str = "HloModule u\nENTRY e { x = f32[2] parameter(0)  ROOT r = f32[2] custom-call(x), custom_call_target=\"nobody_knows\" }";

#[test]
fn platform_info_from_context_has_platforms_by_name() {
    for name in ["cpu", "interpreter"] {
        assert_eq!(Client::for_platform(name, ClientOptions::default()).unwrap().platform(), name);
    }
    let error = Client::for_platform("tpu", ClientOptions::default()).unwrap_err();
    assert!(error.code() == Code::NotFound && error.to_string().contains("tpu"), "{error}");
}

#[test]
fn build_compilation_cache_is_one_a_client() {
    let client = cpu();
    let clone = client.clone();
    compile(&client, &adds(2, 1));
    compile(&clone, &adds(2, 1));
    assert_eq!((client.cache_statistics().compilations, client.cache_statistics().memory_hits), (1, 1));
    compile(&cpu(), &adds(2, 1));
    assert_eq!(client.cache_statistics().memory_hits, 1, "another client has another cache");
}

fn no_variables(executable: &Executable) -> Result<Bound, hlo_client::Error> {
    let arguments = executable.argument_shapes().map(|_| Binding::Argument).collect();
    Bound::new(executable, arguments, Vec::new(), &[])
}

#[test]
fn xla_local_launch_base_compiles_and_runs_in_one_step() {
    let (client, store) = (cpu(), ClosureStore::new());
    let x = client.buffer(&floats(&[1.0, 2.0])).unwrap();
    let elapsed = Elapsed::new();
    let execution = ExecuteOptions { elapsed: Some(elapsed.clone()), ..ExecuteOptions::default() };
    let launch = |text: &str, arguments: &[&hlo_client::Buffer]| {
        let program = VerifiedModule::parse(text).unwrap();
        store.launch(&client, &program, &CompileOptions::default(), no_variables, arguments, &execution)
    };
    let results = launch(&adds(2, 1), &[&x, &x]).unwrap();
    assert_eq!(values(&results[0]), [3.0, 5.0]);
    assert!(elapsed.get().as_nanos() > 0);
    assert!(store.is_empty());
    let error = launch(UNSUPPORTED, &[&x]).unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented);
    assert!(error.to_string().contains("nobody_knows") && error.to_string().contains("fallback"), "{error}");
}

#[test]
fn launch_arguments_are_constants_then_arguments_then_variables() {
    let client = cpu();
    let text =
        "HloModule m\nENTRY e { c = f32[2] parameter(0)  a = f32[2] parameter(1)  v = f32[2] parameter(2)
        ca = f32[2] multiply(c, a)  ROOT r = f32[2] add(ca, v) }";
    let options =
        CompileOptions { constant_arguments: vec![(0, floats(&[10.0, 100.0]))], ..CompileOptions::default() };
    let executable = client.compile(&VerifiedModule::parse(text).unwrap(), &options).unwrap();
    let v = Variable::new("v", client.buffer(&floats(&[1.0, 2.0])).unwrap());
    let bound = vec![Binding::Argument, Binding::Variable(v.clone())];
    let bound = Bound::new(&executable, bound, vec![(v.clone(), 0)], &[]).unwrap();
    assert_eq!(bound.argument_shapes().len(), 1);
    let a = client.buffer(&floats(&[3.0, 4.0])).unwrap();
    bound.execute(&[&a], &ExecuteOptions::default()).unwrap();
    assert_eq!(values(&v.read()), [31.0, 402.0]);
    let missing = bound.execute(&[], &ExecuteOptions::default()).unwrap_err();
    assert_eq!(missing.code(), Code::InvalidArgument);
    let few = Bound::new(&executable, vec![Binding::Argument], Vec::new(), &[]).unwrap_err();
    assert_eq!(few.code(), Code::InvalidArgument);
}

/// Every error but want of support reaches who asked, of a program that may fall back, too.
#[test]
fn xla_compile_op_passes_other_errors_on() {
    let (client, store) = (cpu(), ClosureStore::new());
    let program = VerifiedModule::parse(&adds(2, 1)).unwrap();
    let refuses = |_: &Executable| Err(hlo_client::Error::new(Code::FailedPrecondition, "not now"));
    let error = store
        .compile(&client, &program, &CompileOptions::default(), Demand::MayFallBack, refuses)
        .unwrap_err();
    assert_eq!((error.code(), error.to_string().as_str()), (Code::FailedPrecondition, "not now"));
}

#[test]
fn get_computation_cache_entry_keeps_the_program_alive() {
    let client = cpu();
    let handles = Handles::new(&client, 0, 1);
    let program = handles.compile(&VerifiedModule::parse(&adds(2, 1)).unwrap(), &CompileOptions::default());
    let program = program.unwrap();
    let executable = handles.program(program).unwrap();
    handles.release_program(program).unwrap();
    assert_eq!(handles.program(program).unwrap_err().code(), Code::NotFound);
    let x = client.buffer(&floats(&[1.0, 2.0])).unwrap();
    assert_eq!(values(&executable.execute(&[&x, &x]).unwrap()[0]), [3.0, 5.0]);
}

/// `GetDynamicInputInfo`, and results of bounded sizes with those that they have.
#[test]
fn get_dynamic_input_info_and_real_sizes_of_results() {
    let text = "HloModule m\nENTRY e { x = f32[<=4] parameter(0)  y = f32[2] parameter(1)  d = f32[<=4] add(x, x)  ROOT t = (f32[<=4], f32[2]) tuple(d, y) }";
    for client in [cpu(), interpreter()] {
        let executable = compile(&client, text);
        let dynamic: Vec<bool> = executable.argument_shapes().map(|shape| shape.is_dynamic()).collect();
        assert_eq!(dynamic, [true, false]);
        let y = client.buffer(&floats(&[5.0, 6.0])).unwrap();
        for size in [0, 1, 3, 4] {
            let x = client.buffer(&floats(&vec![1.5; size])).unwrap();
            let results = executable.execute(&[&x, &y]).unwrap();
            assert_eq!(values(&results[0]), vec![3.0; size]);
            assert_eq!(results[0].shape().dims[..], [size as i64]);
        }
        let long = client.buffer(&floats(&[0.0; 5])).unwrap();
        assert_eq!(executable.execute(&[&long, &y]).unwrap_err().code(), Code::InvalidArgument);
    }
}

/// Each replica and partition is told which it is.
#[test]
fn run_executable_assigns_devices() {
    let text = "HloModule m, replica_count=2, num_partitions=3\nENTRY e { r = u32[] replica-id()  p = u32[] partition-id()  ROOT t = (u32[], u32[]) tuple(r, p) }";
    for client in [cpu(), interpreter()] {
        let Ok(executable) = client.compile(
            &client.parse(text).unwrap(),
            &CompileOptions { fallback: true, ..CompileOptions::default() },
        ) else {
            panic!("{} does not compile it", client.platform());
        };
        let devices = Devices::new(2, 3).unwrap();
        let arguments = vec![Vec::new(); 6];
        let results = executable.execute_on_devices(&arguments, devices, &ExecuteOptions::default()).unwrap();
        let of = |b: &hlo_client::Buffer| match &*b.to_literal().unwrap().buffer {
            hlo::Buffer::U32(values) => values[0],
            other => panic!("{:?}", other.element_type()),
        };
        let all: Vec<(u32, u32)> = results.iter().map(|r| (of(&r[0]), of(&r[1]))).collect();
        assert_eq!(all, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)], "{}", client.platform());
        let few = executable.execute_on_devices(&arguments[1..], devices, &ExecuteOptions::default());
        assert_eq!(few.unwrap_err().code(), Code::InvalidArgument);
    }
}

/// The seed of a run, and its number in what is said of it.
#[test]
fn run_executable_has_a_seed_and_a_launch_id() {
    let text = "HloModule m\nENTRY e { l = f32[] constant(0)  h = f32[] constant(1)  ROOT r = f32[8] rng(l, h), distribution=rng_uniform }";
    for client in [cpu(), interpreter()] {
        let options = CompileOptions { fallback: true, ..CompileOptions::default() };
        let executable = client.compile(&client.parse(text).unwrap(), &options).unwrap();
        let run = |rng_seed| {
            let options = ExecuteOptions { rng_seed, ..ExecuteOptions::default() };
            values(&executable.execute_with(&[], &options).unwrap()[0])
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
        let cancellation = hlo_client::Cancellation::new();
        cancellation.cancel();
        let options =
            ExecuteOptions { run_id: 77, cancellation: Some(cancellation), ..ExecuteOptions::default() };
        let error = executable.execute_with(&[], &options).unwrap_err();
        assert!(error.code() == Code::Cancelled && error.to_string().contains("77"), "{error}");
    }
}

#[test]
fn xrt_execute_op_pins_checks_and_releases() {
    let client = cpu();
    let handles = Handles::new(&client, 0, 1);
    let program = VerifiedModule::parse(&adds(2, 1)).unwrap();
    let program = handles.compile(&program, &CompileOptions::default()).unwrap();
    let x = handles.allocate(&Literal::Array(floats(&[1.0, 2.0]))).unwrap();
    let releasing = HandleExecution { release_input_handles: true, ..HandleExecution::default() };
    assert_eq!(handles.execute(program, &[x], &releasing).unwrap_err().code(), Code::InvalidArgument);
    handles.value(x).expect("an execution that fails releases nothing");
    let sum = handles.execute(program, &[x, x], &releasing).unwrap();
    assert_eq!(handles.value(x).unwrap_err().code(), Code::NotFound);
    assert_eq!(handles.read_literal(sum[0], true).unwrap(), Literal::Array(floats(&[3.0, 5.0])));
}

/// Spans of everything that takes time, and the numbers, as they are handed out.
#[test]
fn metrics_and_trace_spans() {
    let folder = tempfile::tempdir().unwrap();
    let trace = Trace::new();
    let options = || ClientOptions {
        cache_directory: Some(folder.path().to_owned()),
        trace: Some(trace.clone()),
        track_owners: true,
        ..ClientOptions::default()
    };
    for round in 0..2 {
        let client = Client::cpu(options()).unwrap();
        let executable = compile(&client, &adds(2, 1));
        compile(&client, &adds(2, 1));
        let x = client.buffer(&floats(&[1.0, 2.0])).unwrap();
        let sum = executable.execute(&[&x, &x]).unwrap();
        assert_eq!(executable.execute(&[&x]).unwrap_err().code(), Code::InvalidArgument);
        let metrics = client.metrics();
        assert_eq!((metrics.executions, metrics.failed_executions), (1, 1));
        assert_eq!((metrics.cache.compilations, metrics.cache.disk_hits), (1 - round, round));
        assert_eq!(metrics.cache.memory_hits, 1);
        assert_eq!(metrics.compile_time.is_zero(), round == 1);
        let owners =
            [("f32[2] an array from the host".to_owned(), 8), ("f32[2] result 0 of adds".to_owned(), 8)];
        assert_eq!(metrics.owners, owners);
        assert_eq!(metrics.memory.held_bytes, 16);
        let json = metrics.to_json();
        assert!(json.contains("\"executions\":1,") && json.ends_with("\"bytes\":8}]}"), "{json}");
        drop(sum);
    }
    let spans = trace.spans();
    let count = |kind| {
        spans.iter().filter(|s| s.kind == kind && (&*s.name == "adds" || kind == SpanKind::Transfer)).count()
    };
    assert_eq!([SpanKind::Lookup, SpanKind::Compile, SpanKind::Store].map(count), [4, 1, 1]);
    // Not there, not there under the lock, there.
    assert_eq!([SpanKind::Load, SpanKind::Transfer, SpanKind::Run].map(count), [3, 2, 4]);
    let lookup = spans.iter().find(|s| s.kind == SpanKind::Lookup).unwrap();
    let compile = spans.iter().find(|s| s.kind == SpanKind::Compile).unwrap();
    assert!(lookup.begin <= compile.begin && compile.took <= lookup.took && compile.thread == lookup.thread);
    let chrome = trace.to_chrome();
    assert!(
        chrome.starts_with("{\"traceEvents\":[{\"name\":\"adds\",\"cat\":\"load\",\"ph\":\"X\","),
        "{chrome}"
    );
    assert!(chrome.ends_with("],\"displayTimeUnit\":\"ns\"}") && trace.lost() == 0);
}

/// What is known when a program is compiled is in it and not in the list of arguments, and later runs do not
/// look at what it was made of.
#[test]
fn constants_are_folded() {
    let client = cpu();
    let text = "HloModule m\nENTRY e { n = s32[] parameter(0)  x = f32[2] parameter(1)  two = s32[] constant(2)  m = s32[] multiply(n, two)
        f = f32[] convert(m)  fs = f32[2] broadcast(f), dimensions={}  ROOT r = f32[2] multiply(x, fs) }";
    let three = hlo::ArrayLiteral::new([].as_slice().into(), hlo::Buffer::S32(vec![3])).unwrap();
    let options = CompileOptions { constant_arguments: vec![(0, three)], ..CompileOptions::default() };
    let program = VerifiedModule::parse(text).unwrap();
    let left = program.with_constants(&options.constant_arguments).unwrap();
    assert_eq!(left.module().computation(left.module().entry()).parameters().len(), 1);
    let executable = client.compile(&program, &options).unwrap();
    assert_eq!(executable.argument_shapes().len(), 1);
    let x = client.buffer(&floats(&[1.0, 2.0])).unwrap();
    assert_eq!(values(&executable.execute(&[&x]).unwrap()[0]), [6.0, 12.0]);
}

#[test]
fn programs_say_what_they_cost_and_what_memory_they_take() {
    let text = "HloModule cost\nENTRY e { x = f32[4,8] parameter(0)  y = f32[8,16] parameter(1)
        p = f32[4,16] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT e = f32[4,16] exponential(p) }";
    for client in [cpu(), interpreter()] {
        let program = client.parse(text).unwrap();
        let cost = program.cost_analysis();
        // A product and an addition for each of 8 terms; each instruction reads its operands and writes its result.
        assert_eq!((cost.flops, cost.transcendentals), (2.0 * 8.0 * 64.0, 64.0));
        assert_eq!(cost.bytes_accessed, 4.0 * ((32 + 128 + 64) + (64 + 64)) as f64);
        let memory = client.compile(&program, &CompileOptions::default()).unwrap().memory_analysis();
        assert_eq!((memory.argument_bytes, memory.result_bytes), (4 * (32 + 128), 4 * 64));
        assert!(memory.temporary_bytes < 4096, "{memory:?}");
    }
}
