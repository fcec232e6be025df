//! Custom calls: functions of whoever embeds the project, which programs call by name.
//!
//! A client has a registry ([`CustomCalls`]) of implementations by target. An implementation is a
//! [`Handler`], which makes an [`Instance`] of each call of a program when it is compiled, or a function with
//! a declared signature ([`Binding`]), which is checked against each call then. Interpreter and compiled
//! programs execute them alike.
//!
//! ```
//! use hlo::{ArrayLiteral, Buffer};
//! use hlo_client::custom_call::Binding;
//! use hlo_client::{Client, ClientOptions, CompileOptions};
//!
//! # fn main() -> Result<(), hlo_client::Error> {
//! let client = Client::interpreter(ClientOptions::default())?; // or Client::cpu
//! // Applies a function of the program as often as an attribute says, and scales what comes of it.
//! let repeat = Binding::new("repeat").argument::<f32>().attribute::<i32>("times").function("step");
//! let repeat = repeat.result::<f32>();
//! client.custom_calls().bind(repeat.to(|call| {
//!     let mut x = call.argument_array(0)?;
//!     for _ in 0..call.attribute::<i32>("times")? {
//!         call.check_cancelled()?;
//!         x = call.function("step", &[x])?.remove(0);
//!     }
//!     call.set_result(0, x)
//! }))?;
//!
//! let program = client.parse(
//!     "HloModule m
//!      half { x = f32[2] parameter(0)  c = f32[] constant(0.5)  h = f32[2] broadcast(c), dimensions={}
//!        ROOT r = f32[2] multiply(x, h) }
//!      ENTRY main { x = f32[2] parameter(0)
//!        ROOT y = f32[2] custom-call(x), custom_call_target=\"repeat\", called_computations={half},
//!          api_version=API_VERSION_TYPED_FFI, backend_config={step = @half, times = 3 : i32} }",
//! )?;
//! let executable = client.compile(&program, &CompileOptions::default())?;
//! let x = client.buffer(&ArrayLiteral::new([2].as_slice().into(), Buffer::F32(vec![8.0, 16.0])).unwrap())?;
//! let results = executable.execute(&[&x])?;
//! assert_eq!(*results[0].to_literal()?.buffer, Buffer::F32(vec![1.0, 2.0]));
//! # Ok(())
//! # }
//! ```
//!
//! A handler that fails ends the execution with its [`Error`], one that panics with [`Code::Internal`]. A
//! name is bound once: programs that were compiled keep the handler that they found.
//!
//! **Invariants:** a bound target takes precedence (no pass and no built-in implementation handles its
//! calls); each call of an executable has an instance of its own, which lives as long as the executable;
//! stages come in order: instances are made when the program is compiled, then for each execution and device
//! all are prepared, all are initialized, and executed as the program comes to them.

mod attributes;
mod binding;
mod context;
mod functions;
mod run;
mod site;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use hlo::Module;
use hlo_interp::custom_call::bind;
use rustc_hash::FxHashMap;

use crate::error::{Code, Error};

pub use attributes::{Attribute, Attributes};
pub use binding::{Binding, Bound, BoundCall};
pub use context::{Context, UserData};
pub use run::{OnDemand, WithCalls};
pub use site::{CallSite, Function};

/// An operand or a result of a call; tuples are flattened.
#[derive(Clone, Debug)]
pub enum Leaf {
    /// An array in row-major order.
    Array(hlo::ArrayLiteral),
    /// What only orders executions.
    Token,
}

/// An implementation of a target.
pub trait Handler: Send + Sync {
    /// Makes what executes one call of a program, when the program is compiled.
    ///
    /// # Errors
    /// The call is none that it implements.
    fn instantiate(&self, site: &Arc<CallSite>) -> Result<Box<dyn Instance>, Error>;
}

/// One call of an executable.
pub trait Instance: Send + Sync {
    /// Before an execution: asks for what all calls of it need.
    ///
    /// # Errors
    /// Ends the execution.
    fn prepare(&self, _context: &Context<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Before an execution, after all calls were prepared.
    ///
    /// # Errors
    /// Ends the execution.
    fn initialize(&self, _context: &Context<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Computes the results, which are zero before, of the operands. Both are as [`CallSite::operands`] and
    /// [`CallSite::results`] say.
    ///
    /// # Errors
    /// Ends the execution.
    fn execute(&self, context: &Context<'_>, operands: &[Leaf], results: &mut [Leaf]) -> Result<(), Error>;

    /// After an execution, however it ended: what earlier stages have kept for it goes.
    fn finish(&self, _context: &Context<'_>) {}
}

#[derive(Default)]
struct Entry {
    handler: Option<Arc<dyn Handler>>,
    /// Whether it gives way to what is built in.
    is_fallback: bool,
}

/// Implementations by target. Clones are the same registry.
#[derive(Clone, Default)]
pub struct CustomCalls(Arc<RwLock<FxHashMap<Box<str>, Entry>>>);

impl CustomCalls {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds what [`Binding::to`] gives.
    ///
    /// # Errors
    /// As [`CustomCalls::bind_handler`].
    pub fn bind(&self, bound: Bound) -> Result<(), Error> {
        let name = bound.name().to_owned();
        self.bind_handler(&name, Arc::new(bound))
    }

    /// Binds a target to an implementation, before one that is built in.
    ///
    /// # Errors
    /// [`Code::FailedPrecondition`]: the name is bound; [`Code::InvalidArgument`]: it is empty.
    pub fn bind_handler(&self, target: &str, handler: Arc<dyn Handler>) -> Result<(), Error> {
        self.insert(target, Entry { handler: Some(handler), is_fallback: false })
    }

    /// Binds a target to an implementation, which is used for calls that nothing built in implements.
    ///
    /// # Errors
    /// As [`CustomCalls::bind_handler`].
    pub fn bind_fallback(&self, target: &str, handler: Arc<dyn Handler>) -> Result<(), Error> {
        self.insert(target, Entry { handler: Some(handler), is_fallback: true })
    }

    fn insert(&self, target: &str, entry: Entry) -> Result<(), Error> {
        if target.is_empty() {
            return Err(Error::new(Code::InvalidArgument, "a custom call without a name"));
        }
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if all.contains_key(target) {
            return Err(Error::new(Code::FailedPrecondition, format!("{target:?} is bound already")));
        }
        all.insert(target.into(), entry);
        Ok(())
    }

    /// The implementation of a target.
    pub fn get(&self, target: &str) -> Option<Arc<dyn Handler>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(target)?.handler.clone()
    }

    /// The targets, sorted.
    pub fn targets(&self) -> Vec<String> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut targets: Vec<String> = all.keys().map(|target| target.to_string()).collect();
        targets.sort_unstable();
        targets
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Marks the calls of a module that these implement, so that nothing built in takes them. Returns how
    /// many there are.
    pub fn mark(&self, module: &mut Module) -> usize {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if all.is_empty() {
            return 0;
        }
        let is_ours = |call: &hlo_interp::custom_call::Call<'_>| {
            all.get(call.target()).is_some_and(|entry| !entry.is_fallback || call.check().is_err())
        };
        bind(module, is_ours)
    }
}

impl fmt::Debug for CustomCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.targets()).finish()
    }
}
