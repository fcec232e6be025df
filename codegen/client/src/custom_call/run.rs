//! Executing the custom calls of programs.
//!
//! **Invariants:** a handler's error or panic ends the execution as an error of its own code, whatever the
//! program did around it; nothing of an execution outlives it.

use std::collections::hash_map::Entry;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hlo::{ArrayLiteral, Buffer, InstrId, Module, Shape};
use hlo_codegen::runtime::arena::Store;
use hlo_interp::custom_call::{Call, CustomCall, Invocation, Registry, bound_calls};
use hlo_interp::{Devices, RunError, Value};
use hlo_threads::cancel::Cancelled;
use rustc_hash::FxHashMap;

use super::context::Context;
use super::functions::Functions;
use super::site::CallSite;
use super::{CustomCalls, Instance, Leaf};
use crate::backend::{Argument, Arrays, Backend, Loaded};
use crate::error::{Code, Error, panic_message};
use crate::options::{CompileOptions, ExecuteOptions};

/// A call of an executable, with what executes it.
struct Instantiated {
    site: Arc<CallSite>,
    instance: Box<dyn Instance>,
}

impl Instantiated {
    fn new(custom_calls: &CustomCalls, module: &Module, id: InstrId) -> Result<Self, Error> {
        let site = Arc::new(CallSite::new(module, id)?);
        let Some(handler) = custom_calls.get(&site.target) else {
            return Err(site.error(Code::NotFound, "nothing is bound to this name"));
        };
        let instance = guarded(&site, || handler.instantiate(&site))?;
        Ok(Self { site, instance })
    }
}

/// Turns a panic of a handler into an error.
fn guarded<T>(site: &CallSite, run: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let panic = Cancelled::rethrow(panic);
        let message = panic_message(&*panic).unwrap_or("no message");
        Err(site.error(Code::Internal, format_args!("the handler panicked: {message}")))
    })
}

/// Instances of the calls of an executable.
struct Calls {
    by_instruction: FxHashMap<InstrId, Instantiated>,
    store: Arc<Store>,
    /// The functions that they refer to; `None`: they are interpreted, as the program is.
    functions: Option<Functions>,
}

/// A program with custom calls of the client's.
pub struct WithCalls {
    loaded: Arc<dyn Loaded>,
    calls: Arc<Calls>,
    targets: Vec<String>,
}

impl fmt::Debug for WithCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithCalls").field("targets", &self.targets).finish_non_exhaustive()
    }
}

impl WithCalls {
    /// A program whose calls get their instances; one that has none stays as it is. `compiled`: the back end
    /// that compiled it, and how, so that functions that it calls back are compiled, too.
    ///
    /// # Errors
    /// A handler refuses a call, or a name is not bound.
    pub(crate) fn instantiate(
        loaded: Arc<dyn Loaded>,
        custom_calls: &CustomCalls,
        compiled: Option<(&Arc<dyn Backend>, &CompileOptions)>,
    ) -> Result<Arc<dyn Loaded>, Error> {
        let Some(module) = loaded.interpreted() else { return Ok(loaded) };
        let ids = bound_calls(module);
        if ids.is_empty() {
            return Ok(loaded);
        }
        let mut by_instruction = FxHashMap::default();
        for id in ids {
            by_instruction.insert(id, Instantiated::new(custom_calls, module, id)?);
        }
        let mut targets: Vec<String> = by_instruction.values().map(|i| i.site.target.clone()).collect();
        targets.sort_unstable();
        targets.dedup();
        let functions = compiled.map(|(backend, options)| {
            Functions::new(Arc::clone(&loaded), Arc::clone(backend), options.clone())
        });
        let calls = Arc::new(Calls { by_instruction, store: Arc::default(), functions });
        Ok(Arc::new(Self { loaded, calls, targets }))
    }

    /// Runs it, with implementations that have this execution's options.
    fn execution<R>(
        &self,
        devices: u32,
        options: &ExecuteOptions,
        run: impl FnOnce(&Registry) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let execution = Arc::new(Execution {
            calls: Arc::clone(&self.calls),
            options: options.clone(),
            number: next_execution(),
            devices,
            failure: Mutex::default(),
        });
        let _finishes = Finish(&execution);
        execution.on_each(|call, context| call.instance.prepare(context))?;
        execution.on_each(|call, context| call.instance.initialize(context))?;
        let mut registry = Registry::default();
        for target in &self.targets {
            registry.insert_shared(target, execution.clone());
        }
        // What a handler said is more than what the run says of it.
        run(&registry).map_err(|error| execution.failure().unwrap_or(error))
    }
}

impl Loaded for WithCalls {
    fn run_bytes(&self) -> u64 {
        self.loaded.run_bytes()
    }

    fn reuses_arguments(&self) -> bool {
        self.loaded.reuses_arguments()
    }

    fn interpreted(&self) -> Option<&Module> {
        self.loaded.interpreted()
    }

    fn run(
        &self,
        arguments: &mut [Argument<'_>],
        options: &ExecuteOptions,
        _calls: &Registry,
    ) -> Result<Arrays, Error> {
        self.execution(1, options, |registry| self.loaded.run(arguments, options, registry))
    }

    fn run_devices(
        &self,
        arguments: Vec<Vec<Argument<'_>>>,
        devices: Devices,
        options: &ExecuteOptions,
        _calls: &Registry,
    ) -> Result<Vec<Arrays>, Error> {
        self.execution(devices.count(), options, |registry| {
            self.loaded.run_devices(arguments, devices, options, registry)
        })
    }
}

/// One execution of a program.
struct Execution {
    calls: Arc<Calls>,
    options: ExecuteOptions,
    number: u64,
    devices: u32,
    /// The first error of a handler.
    failure: Mutex<Option<Error>>,
}

fn next_execution() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Tells the calls of an execution that it has ended.
struct Finish<'e>(&'e Execution);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        // A panic there is nobody's result.
        let _ = self.0.on_each(|call, context| {
            call.instance.finish(context);
            Ok(())
        });
    }
}

impl Execution {
    /// A stage of all calls, on all devices.
    fn on_each(&self, stage: impl Fn(&Instantiated, &Context<'_>) -> Result<(), Error>) -> Result<(), Error> {
        for device in 0..self.devices {
            for call in self.calls.by_instruction.values() {
                let context =
                    Context::before(&call.site, &self.options, self.number, device, &self.calls.store);
                guarded(&call.site, || stage(call, &context))?;
            }
        }
        Ok(())
    }

    fn failure(&self) -> Option<Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl CustomCall for Execution {
    fn run(
        &self,
        call: &Call<'_>,
        invocation: &Invocation<'_>,
        operands: Vec<Value>,
    ) -> Result<Value, RunError> {
        let Some(instantiated) = self.calls.by_instruction.get(&invocation.id()) else {
            return Err(call.trap("it is none of the program that was compiled"));
        };
        let (site, store) = (&instantiated.site, &self.calls.store);
        let context = Context::before(site, &self.options, self.number, invocation.device(), store);
        let context = context.during(invocation, self.calls.functions.as_ref());
        let result = execute(instantiated, &context, invocation, &operands);
        result.map_err(|error| {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            let trap = call.trap(instantiated.site.without_name(&error));
            failure.get_or_insert(error);
            trap
        })
    }
}

/// Executes a call on values.
fn execute(
    call: &Instantiated,
    context: &Context<'_>,
    invocation: &Invocation<'_>,
    operands: &[Value],
) -> Result<Value, Error> {
    let site = &*call.site;
    let mut given = Vec::with_capacity(site.operands.len());
    for operand in operands {
        leaves(operand, &mut given);
    }
    let mut results: Vec<Leaf> = site.results.iter().map(zeros).collect();
    for &(result, operand) in &site.aliases {
        if let (Some(result), Some(operand)) = (results.get_mut(result), given.get(operand)) {
            *result = operand.clone();
        }
    }
    guarded(site, || call.instance.execute(context, &given, &mut results))?;
    drop(given);
    let mut results = results.into_iter();
    let value = value(&invocation.shape(), &mut results);
    value.ok_or_else(|| site.error(Code::Internal, "the handler took results away"))
}

fn leaves(value: &Value, out: &mut Vec<Leaf>) {
    match value {
        Value::Array(tensor) => out.push(Leaf::Array(tensor.to_shared_literal())),
        Value::Tuple(parts) => parts.iter().for_each(|part| leaves(part, out)),
        Value::Token | Value::Pending(_) => out.push(Leaf::Token),
    }
}

fn zeros(shape: &Shape) -> Leaf {
    match shape {
        Shape::Array(array) => {
            let elements = array.dims.iter().map(|&d| usize::try_from(d).unwrap_or(0)).product();
            let buffer = Buffer::zeros(array.element_type, elements).into();
            Leaf::Array(ArrayLiteral { dims: array.dims.clone(), buffer })
        }
        Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => Leaf::Token,
    }
}

fn value(shape: &Shape, results: &mut impl Iterator<Item = Leaf>) -> Option<Value> {
    match shape {
        Shape::Tuple(parts) => {
            let parts: Option<Vec<Value>> = parts.iter().map(|part| value(part, results)).collect();
            Some(Value::tuple(parts?))
        }
        Shape::Buffer(inner) => value(inner, results),
        Shape::Array(_) | Shape::Token | Shape::Opaque => Some(match results.next()? {
            Leaf::Array(array) => Value::from_literal(hlo::Literal::Array(array)),
            Leaf::Token => Value::Token,
        }),
    }
}

/// Implementations for who runs modules without a client, such as parts of programs: calls of the same
/// target, attributes, shapes and functions have one instance, which is made when the first of them is
/// executed.
#[derive(Clone)]
pub struct OnDemand {
    custom_calls: CustomCalls,
    options: ExecuteOptions,
    instances: Arc<Mutex<FxHashMap<String, Arc<Instantiated>>>>,
    store: Arc<Store>,
}

impl OnDemand {
    /// Of a registry.
    pub fn new(custom_calls: CustomCalls) -> Self {
        let options = ExecuteOptions::default();
        Self { custom_calls, options, instances: Arc::default(), store: Arc::default() }
    }

    /// For a run of the interpreter.
    pub fn registry(&self) -> Registry {
        let mut registry = Registry::default();
        let shared: Arc<dyn CustomCall> = Arc::new(self.clone());
        for target in self.custom_calls.targets() {
            registry.insert_shared(&target, Arc::clone(&shared));
        }
        registry
    }

    fn instantiated(&self, module: &Module, id: InstrId) -> Result<Arc<Instantiated>, Error> {
        let site = CallSite::new(module, id)?;
        // All that a handler sees, but for the name of the instruction.
        let key = format!("{:?}", CallSite { instruction: String::new(), ..site });
        let mut instances = self.instances.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(match instances.entry(key) {
            Entry::Occupied(found) => Arc::clone(found.get()),
            Entry::Vacant(vacant) => {
                let new = Instantiated::new(&self.custom_calls, module, id)?;
                Arc::clone(vacant.insert(Arc::new(new)))
            }
        })
    }
}

impl CustomCall for OnDemand {
    fn run(
        &self,
        call: &Call<'_>,
        invocation: &Invocation<'_>,
        operands: Vec<Value>,
    ) -> Result<Value, RunError> {
        let run = || {
            let call = self.instantiated(call.module, invocation.id())?;
            let execution = next_execution();
            let context =
                Context::before(&call.site, &self.options, execution, invocation.device(), &self.store);
            let prepared = guarded(&call.site, || {
                call.instance.prepare(&context)?;
                call.instance.initialize(&context)
            });
            let result = prepared
                .and_then(|()| execute(&call, &context.during(invocation, None), invocation, &operands));
            let _ = guarded(&call.site, || {
                call.instance.finish(&context);
                Ok(())
            });
            result
        };
        run().map_err(|error| {
            let text = error.to_string();
            let name = CallSite::name_of(&call.instruction.name, call.target());
            let text = text.strip_prefix(&name).unwrap_or(&text);
            match error.code() {
                Code::Unimplemented => call.unsupported(&format!("that is refused: {text}")),
                _others => call.trap(text),
            }
        })
    }
}
