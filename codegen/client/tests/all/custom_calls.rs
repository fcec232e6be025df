//! Custom calls of the client's: compiled and interpreted alike.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hlo::Buffer as Elements;
use hlo_client::custom_call::{Binding, CallSite, Context, Handler, Instance, Leaf, UserData};
use hlo_client::{
    Cancellation, Client, ClientOptions, Code, CompileOptions, Error, Executable, ExecuteOptions,
};

#[cfg(feature = "llvm")]
use crate::common::Counting;
use crate::common::{floats, values};

fn clients() -> Vec<Client> {
    let mut all = vec![Client::interpreter(ClientOptions::default()).unwrap()];
    if cfg!(feature = "llvm") {
        all.push(Client::cpu(ClientOptions { threads: 2, ..ClientOptions::default() }).unwrap());
    }
    all
}

fn compile(client: &Client, text: &str) -> Result<Executable, Error> {
    client.compile(&client.parse(text)?, &CompileOptions::default())
}

fn call_of(config: &str) -> String {
    format!(
        "HloModule m\n ENTRY e {{ x = f32[3] parameter(0)\n y = f32[3] add(x, x)\n \
         c = f32[3] custom-call(y), custom_call_target=\"scale\", api_version=API_VERSION_TYPED_FFI, backend_config={config}\n \
         ROOT r = f32[3] subtract(c, x) }}"
    )
}

fn run(client: &Client, executable: &Executable, x: &[f32]) -> Result<Vec<f32>, Error> {
    let x = client.buffer(&floats(x))?;
    let results = executable.execute(&[&x])?;
    Ok(values(&results[0]))
}

fn scale() -> hlo_client::custom_call::Bound {
    Binding::new("scale").argument::<f32>().attribute::<f32>("by").result::<f32>().to(|call| {
        let by = call.attribute::<f32>("by")?;
        let scaled: Vec<f32> = call.argument::<f32>(0)?.iter().map(|x| x * by).collect();
        call.result::<f32>(0)?.copy_from_slice(&scaled);
        Ok(())
    })
}

#[test]
fn a_bound_function_is_called() {
    for client in clients() {
        client.custom_calls().bind(scale()).unwrap();
        let executable = compile(&client, &call_of("{by = 3.0 : f32}")).unwrap();
        assert_eq!(run(&client, &executable, &[1.0, 2.0, -1.0]).unwrap(), [5.0, 10.0, -5.0]);
    }
}

#[test]
fn signatures_are_checked_when_a_program_is_compiled() {
    for client in clients() {
        client.custom_calls().bind(scale()).unwrap();
        for (config, says) in [
            ("{}", "no attribute `by`"),
            ("{by = 3 : i32}", "`by` is no f32"),
            ("{by = 1.0 : f32, other = 1 : i8}", "knows no attribute `other`"),
        ] {
            let error = compile(&client, &call_of(config)).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(error.to_string().contains(says), "{error}");
        }
        let other = call_of("{by = 3.0 : f32}").replace("custom-call(y)", "custom-call(y, x)");
        let error = compile(&client, &other).unwrap_err();
        assert!(error.to_string().contains("the handler has 1 arguments, the call 2"), "{error}");
        let other = call_of("{by = 3.0 : f32}").replace("f32[3] c", "f64[3] c").replace("f32[3]", "f64[3]");
        let error = compile(&client, &other).unwrap_err();
        assert!(error.to_string().contains("argument 0 is f64[3], the handler's is of f32"), "{error}");
    }
}

#[test]
fn registries_of_two_clients_are_two() {
    for (one, two) in clients().into_iter().zip(clients()) {
        let by = |by: f32| {
            Binding::new("scale").argument::<f32>().any_attributes().result::<f32>().to(move |call| {
                let scaled: Vec<f32> = call.argument::<f32>(0)?.iter().map(|x| x * by).collect();
                call.result::<f32>(0)?.copy_from_slice(&scaled);
                Ok(())
            })
        };
        // Not bound yet: remembered as refused, and found nevertheless once it is.
        if one.platform() == "cpu" {
            assert_eq!(compile(&one, &call_of("{}")).unwrap_err().code(), Code::Unimplemented);
        }
        one.custom_calls().bind(by(2.0)).unwrap();
        two.custom_calls().bind(by(10.0)).unwrap();
        let executable = compile(&one, &call_of("{}")).unwrap();
        assert_eq!(run(&one, &executable, &[1.0, 0.0, 0.0]).unwrap()[0], 3.0);
        let executable = compile(&two, &call_of("{}")).unwrap();
        assert_eq!(run(&two, &executable, &[1.0, 0.0, 0.0]).unwrap()[0], 19.0);
        let again = one.custom_calls().bind(by(5.0)).unwrap_err();
        assert_eq!(again.code(), Code::FailedPrecondition);
    }
}

#[test]
fn errors_and_panics_end_the_execution() {
    for client in clients() {
        let fails = Binding::new("fails")
            .remaining_arguments()
            .result::<f32>()
            .to(|call| Err(call.site().error(Code::DataLoss, "the third one is missing")));
        let panics =
            Binding::new("panics").remaining_arguments().result::<f32>().to(|_| panic!("nobody expects it"));
        client.custom_calls().bind(fails).unwrap();
        client.custom_calls().bind(panics).unwrap();
        for (target, code, says) in [
            ("fails", Code::DataLoss, "the third one is missing"),
            ("panics", Code::Internal, "nobody expects it"),
        ] {
            let executable = compile(&client, &call_of("{}").replace("scale", target)).unwrap();
            for _ in 0..2 {
                let error = run(&client, &executable, &[1.0, 2.0, 3.0]).unwrap_err();
                assert_eq!(error.code(), code);
                assert!(error.to_string().contains(says) && error.to_string().contains(target), "{error}");
            }
        }
    }
}

/// Counts its stages.
#[derive(Default)]
struct Stages {
    instantiated: AtomicUsize,
    prepared: AtomicUsize,
    initialized: AtomicUsize,
    executed: AtomicUsize,
    dropped: AtomicUsize,
}

struct Counter(Arc<Stages>);

impl Handler for Counter {
    fn instantiate(&self, site: &Arc<CallSite>) -> Result<Box<dyn Instance>, Error> {
        assert_eq!((site.operands.len(), site.results.len()), (2, 3));
        self.0.instantiated.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Counted(Arc::clone(&self.0), AtomicUsize::new(0))))
    }
}

struct Counted(Arc<Stages>, AtomicUsize);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl Instance for Counted {
    fn prepare(&self, context: &Context<'_>) -> Result<(), Error> {
        assert_eq!(context.run_id(), 17);
        self.0.prepared.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn initialize(&self, _context: &Context<'_>) -> Result<(), Error> {
        self.0.initialized.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn execute(&self, context: &Context<'_>, operands: &[Leaf], results: &mut [Leaf]) -> Result<(), Error> {
        self.0.executed.fetch_add(1, Ordering::Relaxed);
        assert_eq!(self.1.fetch_add(1, Ordering::Relaxed), 0, "each call has an instance of its own");
        assert_eq!(context.user_data().unwrap().get::<u8>(), Some(&42));
        assert_eq!(context.scratch(100).unwrap().bytes().len(), 100);
        let sum = AtomicUsize::new(0);
        context.parallel(10, |i| {
            sum.fetch_add(i, Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), 45);
        let ([Leaf::Array(x), Leaf::Token], [Leaf::Array(y), Leaf::Token, Leaf::Array(n)]) =
            (operands, results)
        else {
            panic!("tuples are flattened, tokens are leaves")
        };
        *y = x.clone();
        n.buffer = Elements::S32(vec![7]).into();
        Ok(())
    }
}

#[test]
fn stages_come_in_order_and_instances_end_with_the_executable() {
    let text = "HloModule m\n ENTRY e { x = f32[2] parameter(0)\n t = token[] after-all()\n p = (f32[2], token[]) tuple(x, t)\n \
        a = ((f32[2], token[]), s32[]) custom-call(p), custom_call_target=\"count\", custom_call_has_side_effect=true\n \
        q = (f32[2], token[]) get-tuple-element(a), index=0\n \
        ROOT b = ((f32[2], token[]), s32[]) custom-call(q), custom_call_target=\"count\", custom_call_has_side_effect=true }";
    for client in clients() {
        let stages = Arc::new(Stages::default());
        client.custom_calls().bind_handler("count", Arc::new(Counter(Arc::clone(&stages)))).unwrap();
        let executable = compile(&client, text).unwrap();
        let x = client.buffer(&floats(&[1.0, 2.0])).unwrap();
        let user_data = Some(UserData::new(Arc::new(42u8)));
        let options = ExecuteOptions { run_id: 17, user_data, ..ExecuteOptions::default() };
        let results = executable.execute_with(&[&x], &options).unwrap();
        assert_eq!(*results[0].to_literal().unwrap().buffer, Elements::F32(vec![1.0, 2.0]));
        assert_eq!(*results[1].to_literal().unwrap().buffer, Elements::S32(vec![7]));
        let of = |n: &AtomicUsize| n.load(Ordering::Relaxed);
        let seen =
            [of(&stages.instantiated), of(&stages.prepared), of(&stages.initialized), of(&stages.executed)];
        assert_eq!(seen, [2; 4]);
        assert_eq!(of(&stages.dropped), 0);
        drop(executable);
        assert_eq!(of(&stages.dropped), 2);
    }
}

#[test]
fn functions_of_the_program_are_called_back() {
    let text = "HloModule m\n square { x = f32[2] parameter(0)\n ROOT r = f32[2] multiply(x, x) }\n \
        both { x = f32[2] parameter(0)\n y = f32[2] parameter(1)\n s = f32[2] add(x, y)\n d = f32[2] subtract(x, y)\n ROOT r = (f32[2], f32[2]) tuple(s, d) }\n \
        ENTRY e { x = f32[2] parameter(0)\n ROOT r = f32[2] custom-call(x), custom_call_target=\"use\", called_computations={square, both} }";
    for client in clients() {
        let uses = Binding::new("use").argument::<f32>().function("square").function("both").result::<f32>();
        let uses = uses.to(|call| {
            let x = call.argument_array(0)?;
            let squared = call.function("square", std::slice::from_ref(&x))?.remove(0);
            let wrong = call.function("both", std::slice::from_ref(&x)).unwrap_err();
            assert_eq!(wrong.code(), Code::InvalidArgument);
            let difference = call.function("both", &[squared, x])?.remove(1);
            call.set_result(0, difference)
        });
        client.custom_calls().bind(uses).unwrap();
        let executable = compile(&client, text).unwrap();
        assert_eq!(run(&client, &executable, &[3.0, 10.0]).unwrap(), [6.0, 90.0]);
    }
}

#[cfg(feature = "llvm")]
#[test]
fn functions_of_a_compiled_program_are_compiled_when_they_are_called() {
    let text = "HloModule m\n sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n \
        norm { x = f32[4096] parameter(0)\n y = f32[4096] multiply(x, x)\n z = f32[] constant(0)\n \
          ROOT n = f32[] reduce(y, z), dimensions={0}, to_apply=sum }\n \
        idle { x = f32[4096] parameter(0)\n ROOT y = f32[4096] negate(x) }\n \
        nested { x = f32[4096] parameter(0)\n ROOT y = f32[4096] custom-call(x), custom_call_target=\"twice\" }\n \
        ENTRY e { x = f32[4096] parameter(0)\n \
          ROOT r = (f32[], f32[4096]) custom-call(x), custom_call_target=\"use\", called_computations={norm, nested, idle} }";
    let backend = Counting::new(2);
    let client = Client::with_backend(backend.clone(), ClientOptions::default()).unwrap();
    let twice = Binding::new("twice").argument::<f32>().result::<f32>().to(|call| {
        let doubled: Vec<f32> = call.argument::<f32>(0)?.iter().map(|x| 2.0 * x).collect();
        call.result::<f32>(0)?.copy_from_slice(&doubled);
        Ok(())
    });
    client.custom_calls().bind(twice).unwrap();
    let uses = Binding::new("use").argument::<f32>().function("norm").function("nested").any_attributes();
    let uses = uses.result::<f32>().result::<f32>().to(|call| {
        let x = call.argument_array(0)?;
        let norms: Vec<_> =
            (0..3).map(|_| call.function("norm", std::slice::from_ref(&x))).collect::<Result<_, _>>()?;
        assert!(norms.iter().all(|norm| norm == &norms[0]));
        call.set_result(0, norms[0][0].clone())?;
        // From several threads at once, too.
        call.parallel(4, |_| assert_eq!(call.function("norm", std::slice::from_ref(&x)).unwrap(), norms[0]));
        let nested = call.function("nested", std::slice::from_ref(&x))?.remove(0);
        call.set_result(1, nested)
    });
    client.custom_calls().bind(uses).unwrap();
    let executable = compile(&client, text).unwrap();
    assert_eq!(backend.compilations(), 1);
    let x = client.buffer(&floats(&[2.0; 4096])).unwrap();
    for _ in 0..2 {
        let results = executable.execute(&[&x]).unwrap();
        assert_eq!(values(&results[0]), [16384.0]);
        assert_eq!(values(&results[1]), [4.0; 4096]);
    }
    // The entry, `norm` and `nested` (which is interpreted, since it has a custom call). `idle` is not called.
    assert_eq!(backend.compilations(), 3);
}

#[test]
fn what_is_built_in_gives_way_to_what_is_bound_but_not_to_a_fallback() {
    let text = "HloModule m\n ENTRY e { x = f32[2] parameter(0)\n ROOT r = f32[2] custom-call(x), custom_call_target=\"Sharding\" }";
    for client in clients() {
        let nine = || {
            Binding::new("Sharding").argument::<f32>().result::<f32>().to(|call| {
                call.result::<f32>(0)?.fill(9.0);
                Ok(())
            })
        };
        client.custom_calls().bind(nine()).unwrap();
        let executable = compile(&client, text).unwrap();
        assert_eq!(run(&client, &executable, &[1.0, 2.0]).unwrap(), [9.0, 9.0]);
    }
    for client in clients() {
        let handler = Binding::new("Sharding").argument::<f32>().result::<f32>().to(|_| panic!());
        client.custom_calls().bind_fallback("Sharding", Arc::new(handler)).unwrap();
        let executable = compile(&client, text).unwrap();
        assert_eq!(run(&client, &executable, &[1.0, 2.0]).unwrap(), [1.0, 2.0]);
    }
}

#[test]
fn a_handler_learns_that_it_is_to_end() {
    for client in clients() {
        let waits = Binding::new("scale").argument::<f32>().any_attributes().result::<f32>().to(|call| {
            loop {
                call.check_cancelled()?;
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        client.custom_calls().bind(waits).unwrap();
        let executable = compile(&client, &call_of("{}")).unwrap();
        let x = client.buffer(&floats(&[1.0; 3])).unwrap();
        let deadline = Some(Instant::now() + Duration::from_millis(20));
        let error = executable
            .execute_with(&[&x], &ExecuteOptions { deadline, ..ExecuteOptions::default() })
            .unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
        let cancellation = Cancellation::new();
        let options =
            ExecuteOptions { cancellation: Some(cancellation.clone()), ..ExecuteOptions::default() };
        let canceller = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            cancellation.cancel();
        });
        let error = executable.execute_with(&[&x], &options).unwrap_err();
        assert_eq!(error.code(), Code::Cancelled, "{error}");
        canceller.join().unwrap();
    }
}

#[test]
fn artifacts_find_their_handlers_when_they_are_loaded() {
    for client in clients().into_iter().filter(|client| client.platform() == "cpu") {
        client.custom_calls().bind(scale()).unwrap();
        let program = client.parse(&call_of("{by = 3.0 : f32}")).unwrap();
        let artifact = client.compile_artifact(&program, &CompileOptions::default()).unwrap();
        let loaded = client.load(&artifact).unwrap();
        assert_eq!(run(&client, &loaded, &[1.0, 2.0, -1.0]).unwrap(), [5.0, 10.0, -5.0]);
        let other = Client::cpu(ClientOptions::default()).unwrap();
        let error = other.load(&artifact).unwrap_err();
        assert_eq!(error.code(), Code::NotFound, "{error}");
    }
}

#[test]
fn a_call_that_nobody_implements_is_refused_by_name() {
    for client in clients() {
        let error = match compile(&client, &call_of("{}")) {
            Ok(executable) => run(&client, &executable, &[1.0; 3]).unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(error.code(), Code::Unimplemented);
        assert!(error.to_string().contains("\"scale\""), "{error}");
    }
}
