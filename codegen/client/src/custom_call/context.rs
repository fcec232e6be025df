//! What an execution lends to the custom calls in it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use hlo::{ArrayLiteral, Literal, Shape};
use hlo_codegen::runtime::arena::{Block, Store};
use hlo_interp::Value;
use hlo_interp::custom_call::Invocation;

use super::attributes::Attribute;
use super::functions::{self, Functions};
use super::site::{CallSite, Function};
use crate::error::{Code, Error};
use crate::options::ExecuteOptions;

/// Something that an execution hands to its custom calls, of a type that both know.
#[derive(Clone)]
pub struct UserData(Arc<dyn Any + Send + Sync>);

impl UserData {
    /// Of any value.
    pub fn new(value: Arc<dyn Any + Send + Sync>) -> Self {
        Self(value)
    }

    /// The value, if it is of this type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for UserData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserData")
    }
}

/// What a call may use while a stage of it runs.
#[derive(Debug)]
pub struct Context<'a> {
    pub(super) site: &'a CallSite,
    pub(super) options: &'a ExecuteOptions,
    pub(super) execution: u64,
    pub(super) device: u32,
    pub(super) threads: usize,
    pub(super) store: &'a Arc<Store>,
    /// Absent before the call is executed.
    pub(super) invocation: Option<&'a Invocation<'a>>,
    /// The program's functions, compiled; `None`: they are interpreted.
    pub(super) functions: Option<&'a Functions>,
}

impl<'a> Context<'a> {
    /// Of a stage that no execution of the call is part of.
    pub(super) fn before(
        site: &'a CallSite,
        options: &'a ExecuteOptions,
        execution: u64,
        device: u32,
        store: &'a Arc<Store>,
    ) -> Self {
        Self { site, options, execution, device, threads: 1, store, invocation: None, functions: None }
    }

    /// The same while the call is executed.
    pub(super) fn during<'b>(
        &self,
        invocation: &'b Invocation<'b>,
        functions: Option<&'b Functions>,
    ) -> Context<'b>
    where
        'a: 'b,
    {
        Context { threads: invocation.threads(), invocation: Some(invocation), functions, ..*self }
    }
}

impl Context<'_> {
    /// The call.
    pub fn site(&self) -> &CallSite {
        self.site
    }

    /// Identifies the execution: [`ExecuteOptions::run_id`].
    pub fn run_id(&self) -> u64 {
        self.options.run_id
    }

    /// Another number for each execution: stages of the same execution have the same.
    pub fn execution(&self) -> u64 {
        self.execution
    }

    /// The number of the device.
    pub fn device(&self) -> u32 {
        self.device
    }

    /// When to give up.
    pub fn deadline(&self) -> Option<Instant> {
        self.options.deadline
    }

    /// What the execution was given for its custom calls.
    pub fn user_data(&self) -> Option<&UserData> {
        self.options.user_data.as_ref()
    }

    /// That the execution is to end: it was cancelled, or its deadline has passed. A handler that takes long
    /// asks now and then.
    ///
    /// # Errors
    /// [`Code::Cancelled`], [`Code::DeadlineExceeded`].
    pub fn check_cancelled(&self) -> Result<(), Error> {
        if self.options.cancellation.as_ref().is_some_and(crate::Cancellation::is_cancelled) {
            return Err(self
                .site
                .error(Code::Cancelled, format_args!("run {} was cancelled", self.run_id())));
        }
        if self.deadline().is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(self.site.error(Code::DeadlineExceeded, "the deadline has passed"));
        }
        Ok(())
    }

    /// Threads that [`Context::parallel`] has.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Calls `work` once with each number below `count`, on the threads of the client, and returns when all
    /// calls have returned.
    pub fn parallel(&self, count: usize, work: impl Fn(usize) + Sync) {
        match self.invocation {
            Some(invocation) => invocation.parallel(count, &work),
            None => (0..count).for_each(work),
        }
    }

    /// Memory for this call alone, aligned to 64 bytes; it may hold anything.
    ///
    /// # Errors
    /// [`Code::ResourceExhausted`].
    pub fn scratch(&self, bytes: u64) -> Result<Block, Error> {
        self.store.take(bytes).map_err(Into::into)
    }

    /// Runs a function that the call refers to on this device: the arrays of its parameters, in order, give
    /// those of its result. A compiled program's functions are compiled, when they are called first, unless
    /// they communicate with other devices, draw random numbers, or have custom calls of the client's: those
    /// are interpreted.
    ///
    /// # Errors
    /// Arguments that do not fit, and whatever ends the function; [`Code::FailedPrecondition`] before the
    /// call is executed.
    pub fn call(&self, function: &Function, arguments: &[ArrayLiteral]) -> Result<Vec<ArrayLiteral>, Error> {
        let Some(invocation) = self.invocation else {
            let message = format!("{} is called before the call is executed", function.name);
            return Err(self.site.error(Code::FailedPrecondition, message));
        };
        // The interpreter says what does not fit.
        if let Some(functions) = self.functions
            && function.takes(arguments)
            && let Some(compiled) = functions.compiled(function)
        {
            return functions::run(&*compiled, function, arguments, self.options);
        }
        let mut given = arguments.iter();
        let values: Option<Vec<Value>> = function.parameters.iter().map(|p| value(p, &mut given)).collect();
        let (Some(values), None) = (values, given.next()) else {
            let (name, given) = (&function.name, arguments.len());
            return Err(self
                .site
                .error(Code::InvalidArgument, format_args!("{name} takes other than {given} arrays")));
        };
        let result = invocation.call(function.computation, values)?;
        Ok(result.into_literal().arrays().into_iter().cloned().collect())
    }

    /// Runs a function that is exported beside the one whose execution this is part of: by its name, or by
    /// an attribute of the call that refers to it. Arguments are the arrays of its parameters, in order.
    ///
    /// # Errors
    /// The program is not executed by a library ([`Code::FailedPrecondition`]); there is none of this name
    /// ([`Code::NotFound`]); calls that nest too deep ([`Code::ResourceExhausted`]); as
    /// [`Executable::execute_with`](crate::Executable::execute_with).
    pub fn call_export(&self, name: &str, arguments: &[ArrayLiteral]) -> Result<Vec<ArrayLiteral>, Error> {
        let Some(library) = &self.options.library else {
            let message = format_args!("the program is no function of a library, which would have {name}");
            return Err(self.site.error(Code::FailedPrecondition, message));
        };
        let named = match self.site.attributes.get(name) {
            Some(Attribute::Function(named)) => named,
            Some(_) | None => name,
        };
        library.execute_within(named, arguments, self.options)
    }
}

/// A value of a shape, its arrays in order.
fn value<'a>(shape: &Shape, arrays: &mut impl Iterator<Item = &'a ArrayLiteral>) -> Option<Value> {
    Some(match shape {
        Shape::Array(_) => Value::from_shared_literal(&Literal::Array(arrays.next()?.clone())),
        Shape::Tuple(parts) => {
            let parts: Option<Vec<Value>> = parts.iter().map(|part| value(part, arrays)).collect();
            Value::tuple(parts?)
        }
        Shape::Token | Shape::Opaque => Value::Token,
        Shape::Buffer(inner) => value(inner, arrays)?,
    })
}
