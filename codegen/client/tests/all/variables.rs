//! Variables, and compiling and running as two steps (one test a line of TensorFlow's launch ops).

use hlo_client::closures::{ClosureStore, CompileStep, Demand};
use hlo_client::variables::{Binding, Bound, Variable};
use hlo_client::{Client, Code, CompileOptions, Executable, ExecuteOptions, VerifiedModule};

use crate::common::{compile, cpu, floats, values};

/// `w - 0.5 g`, and the sum of `w`.
const STEP: &str = "HloModule step, input_output_alias={ {0}: (0, {}, may-alias) }
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY e { w = f32[2] parameter(0)  g = f32[2] parameter(1)  half = f32[] constant(0.5)  h = f32[2] broadcast(half), dimensions={}
  u = f32[2] multiply(h, g)  v = f32[2] subtract(w, u)  zero = f32[] constant(0)
  sum = f32[] reduce(w, zero), dimensions={0}, to_apply=add  ROOT t = (f32[2], f32[]) tuple(v, sum) }";

fn variable(client: &Client, name: &str, value: &[f32]) -> Variable {
    Variable::new(name, client.buffer(&floats(value)).unwrap())
}

fn bound(executable: &Executable, w: &Variable) -> Bound {
    let parameters = vec![Binding::Variable(w.clone()), Binding::Argument];
    Bound::new(executable, parameters, vec![(w.clone(), 0)], &[]).unwrap()
}

#[test]
fn a_program_reads_and_updates_a_variable() {
    let client = cpu();
    let w = variable(&client, "w", &[1.0, 2.0]);
    let step = bound(&compile(&client, STEP), &w);
    let g = client.buffer(&floats(&[2.0, 4.0])).unwrap();
    for n in 1..=3 {
        let results = step.execute(&[&g], &ExecuteOptions::default()).unwrap();
        assert_eq!(results.len(), 1, "the update is no result");
        let n = n as f32;
        assert_eq!(values(&w.read()), [1.0 - n, 2.0 - 2.0 * n]);
    }
}

#[test]
fn an_execution_that_fails_leaves_variables_as_they_were() {
    let client = cpu();
    let w = variable(&client, "w", &[1.0, 2.0]);
    let step = bound(&compile(&client, STEP), &w);
    let wrong = client.buffer(&floats(&[1.0; 3])).unwrap();
    assert_eq!(
        step.execute(&[&wrong], &ExecuteOptions::default()).unwrap_err().code(),
        Code::InvalidArgument
    );
    assert_eq!(values(&w.read()), [1.0, 2.0]);
    assert_eq!(step.execute(&[], &ExecuteOptions::default()).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn executions_that_share_variables_do_not_wait_in_a_circle() {
    let client = cpu();
    let (a, b) = (variable(&client, "a", &[0.0, 0.0]), variable(&client, "b", &[0.0, 0.0]));
    let swap = "HloModule swap\nENTRY e { a = f32[2] parameter(0)  b = f32[2] parameter(1)  one = f32[] constant(1)
        o = f32[2] broadcast(one), dimensions={}  c = f32[2] add(a, o)  d = f32[2] add(b, o)  ROOT t = (f32[2], f32[2]) tuple(d, c) }";
    let executable = compile(&client, swap);
    let bind = |x: &Variable, y: &Variable| {
        let parameters = vec![Binding::Variable(x.clone()), Binding::Variable(y.clone())];
        Bound::new(&executable, parameters, vec![(x.clone(), 0), (y.clone(), 1)], &[]).unwrap()
    };
    let (one, other) = (bind(&a, &b), bind(&b, &a));
    std::thread::scope(|scope| {
        for bound in [&one, &other, &one, &other] {
            scope.spawn(move || {
                for _ in 0..250 {
                    bound.execute(&[], &ExecuteOptions::default()).unwrap();
                }
            });
        }
    });
    assert_eq!(values(&a.read()), [1000.0; 2], "each execution saw both and updated both");
    assert_eq!(values(&b.read()), [1000.0; 2]);
}

#[test]
fn read_only_declarations_hold_both_ways() {
    let client = cpu();
    let (w, other) = (variable(&client, "w", &[1.0, 2.0]), variable(&client, "other", &[1.0, 2.0]));
    let executable = compile(&client, STEP);
    let parameters = || vec![Binding::Variable(w.clone()), Binding::Argument];
    let refuses = |updates: Vec<(Variable, usize)>, read_only: &[Variable], says: &str| {
        let error = Bound::new(&executable, parameters(), updates, read_only).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    };
    refuses(vec![(w.clone(), 0)], std::slice::from_ref(&w), "updates w, which is read-only");
    refuses(vec![], std::slice::from_ref(&other), "does not read the read-only variable other");
    refuses(vec![(w.clone(), 0), (w.clone(), 0)], &[], "updates w twice");
    refuses(vec![(w.clone(), 1)], &[], "w is f32[2], its update f32[]");
    refuses(vec![(w.clone(), 2)], &[], "has no result 2 for w");
    Bound::new(&executable, parameters(), vec![], std::slice::from_ref(&w)).unwrap();
}

fn program() -> VerifiedModule {
    VerifiedModule::parse(STEP).unwrap()
}

fn key(step: CompileStep) -> hlo_client::closures::ClosureKey {
    match step {
        CompileStep::Compiled(key) => key,
        CompileStep::Fallback(why) => panic!("{why}"),
    }
}

#[test]
fn xla_executable_closure_store_produces_unique_keys_and_consumes_once() {
    let (client, store) = (cpu(), ClosureStore::new());
    let w = variable(&client, "w", &[1.0, 2.0]);
    let g = client.buffer(&floats(&[2.0, 4.0])).unwrap();
    let compile = || {
        let options = CompileOptions::default();
        key(store.compile(&client, &program(), &options, Demand::MustCompile, |e| Ok(bound(e, &w))).unwrap())
    };
    let (first, second) = (compile(), compile());
    assert_ne!(first, second, "a cache hit makes a closure of its own");
    assert_eq!(client.cache_statistics().compilations, 1);
    store.run(first, &[&g], &ExecuteOptions::default()).unwrap();
    assert_eq!(values(&w.read()), [0.0, 0.0]);
    let error = store.run(first, &[&g], &ExecuteOptions::default()).unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    assert!(error.to_string().contains("was run or discarded before"), "{error}");
    assert_eq!(store.len(), 1);
    store.discard(second).unwrap();
    assert!(store.is_empty());
    let foreign = ClosureStore::new();
    let error = foreign.run(second, &[&g], &ExecuteOptions::default()).unwrap_err();
    assert!(error.code() == Code::NotFound && error.to_string().contains("another store"), "{error}");
}

#[test]
fn xla_run_uses_the_snapshot_that_the_compiler_saw() {
    let (client, store) = (cpu(), ClosureStore::new());
    let w = variable(&client, "w", &[1.0, 2.0]);
    let g = client.buffer(&floats(&[2.0, 4.0])).unwrap();
    let options = CompileOptions::default();
    let key =
        key(store.compile(&client, &program(), &options, Demand::MustCompile, |e| Ok(bound(e, &w))).unwrap());
    w.assign(client.buffer(&floats(&[100.0, 100.0])).unwrap());
    let results = store.run(key, &[&g], &ExecuteOptions::default()).unwrap();
    assert_eq!(values(&results[0]), [3.0], "the sum of what w was when it was compiled");
    assert_eq!(values(&w.read()), [0.0, 0.0]);
}

#[test]
fn xla_compile_op_must_compile_lazy_and_deferred() {
    let (client, store) = (cpu(), ClosureStore::new());
    let w = variable(&client, "w", &[1.0, 2.0]);
    let ask = |program: &VerifiedModule, demand| {
        store.compile(&client, program, &CompileOptions::default(), demand, |e| Ok(bound(e, &w)))
    };
    assert!(matches!(ask(&program(), Demand::Defer).unwrap(), CompileStep::Fallback(_)));
    assert_eq!(client.cache_statistics().compilations, 0);
    let unsupported = "HloModule u\nENTRY e { x = f32[2] parameter(0)  ROOT r = f32[2] custom-call(x), custom_call_target=\"nobody_knows\" }";
    let unsupported = VerifiedModule::parse(unsupported).unwrap();
    let error = ask(&unsupported, Demand::MustCompile).unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented);
    for _ in 0..2 {
        assert!(matches!(ask(&unsupported, Demand::MayFallBack).unwrap(), CompileStep::Fallback(_)));
    }
    let wrong = CompileOptions { cpu: "z80".into(), ..CompileOptions::default() };
    let error =
        store.compile(&client, &program(), &wrong, Demand::MayFallBack, |e| Ok(bound(e, &w))).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "errors that are no want of support surface");
    assert!(store.is_empty());
}

#[test]
fn closures_that_are_never_run_are_released() {
    let options = hlo_client::ClientOptions { memory_budget_bytes: Some(1 << 20), ..Default::default() };
    let client = Client::cpu(options).unwrap();
    let store = ClosureStore::new();
    let w = variable(&client, "w", &[1.0, 2.0]);
    for _ in 0..10 {
        store
            .compile(&client, &program(), &CompileOptions::default(), Demand::MustCompile, |e| {
                Ok(bound(e, &w))
            })
            .unwrap();
    }
    assert_eq!(store.len(), 10);
    drop(w);
    assert_eq!(client.memory_statistics().held_bytes, 8, "the snapshots hold the variable's value");
    drop(store);
    assert_eq!(client.memory_statistics().held_bytes, 0);
}
