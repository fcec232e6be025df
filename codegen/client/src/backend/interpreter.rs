//! The reference interpreter as a back end: it supports every program, and defines what each computes.

use std::sync::Arc;

use hlo::{ArrayLiteral, ArrayShape, Literal, Module, Shape};
use hlo_codegen::runtime::arena::Store;
use hlo_codegen::runtime::executable::Leaf;
use hlo_codegen::runtime::raw::bytes_of;
use hlo_interp::custom_call::Registry;
use hlo_interp::{Devices, Value};
use hlo_library_base::pool::Pool;
use hlo_threads::parallel::with_threads;

use super::{Argument, Array, Arrays, Backend, Compiled, Loaded};
use crate::artifact::Signature;
use crate::error::{Code, Error};
use crate::options::{CompileOptions, ExecuteOptions};
use crate::program::VerifiedModule;

/// The interpreter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interpreter;

impl Interpreter {
    /// A program, ready to be interpreted.
    pub(crate) fn loaded(program: &VerifiedModule) -> Arc<dyn Loaded> {
        Arc::new(Interpreted::new(Arc::clone(program.module())))
    }
}

impl Backend for Interpreter {
    fn platform(&self) -> &'static str {
        "interpreter"
    }

    fn fingerprint(&self) -> String {
        format!("interpreter {}", env!("CARGO_PKG_VERSION"))
    }

    fn compile(
        &self,
        module: &Arc<Module>,
        _options: &CompileOptions,
        _keep: bool,
    ) -> Result<Compiled, Error> {
        Ok(Compiled { loaded: Arc::new(Interpreted::new(Arc::clone(module))), artifact: None })
    }

    fn load(&self, _artifact: &[u8]) -> Result<(Signature, Arc<dyn Loaded>), Error> {
        Err(Error::new(Code::FailedPrecondition, "the interpreter has no artifacts"))
    }
}

/// A module that is interpreted.
#[derive(Debug)]
pub(crate) struct Interpreted {
    module: Arc<Module>,
    parameters: Vec<Shape>,
    store: Arc<Store>,
    result_bytes: u64,
}

impl Interpreted {
    pub(crate) fn new(module: Arc<Module>) -> Self {
        let Signature { parameters, result, .. } = Signature::of(&module);
        let bytes = result.checked_bytes().and_then(|n| u64::try_from(n).ok());
        Self { module, parameters, store: Arc::default(), result_bytes: bytes.unwrap_or(u64::MAX) }
    }

    fn values(&self, arguments: &[Argument<'_>]) -> Result<Vec<Value>, Error> {
        let mut arrays = arguments.iter();
        let values =
            self.parameters.iter().map(|shape| literal(shape, &mut arrays)).collect::<Option<Vec<_>>>();
        let values = values.ok_or_else(|| Error::new(Code::Internal, "there are too few arguments"))?;
        Ok(values.into_iter().map(Value::from_literal).collect())
    }

    fn options(options: &ExecuteOptions, calls: &Registry) -> hlo_interp::Options {
        let custom_calls = calls.clone();
        hlo_interp::Options { fuel: options.fuel, seed: options.rng_seed, custom_calls, ..Default::default() }
    }

    /// Runs something on the threads of an execution.
    fn on_threads<R>(options: &ExecuteOptions, run: impl FnOnce() -> R) -> R {
        match &options.thread_pool {
            Some(pool) => with_threads(Arc::<Pool>::clone(&pool.0), run),
            None => run(),
        }
    }

    fn arrays(&self, value: Value, options: &ExecuteOptions) -> Result<Arrays, Error> {
        let store = options.allocator.as_ref().map_or(&self.store, |allocator| &allocator.0);
        value.into_literal().arrays().into_iter().map(|array| stored(array, store)).collect()
    }
}

/// A literal of a shape, its array leaves taken in order.
fn literal<'a>(shape: &Shape, arrays: &mut impl Iterator<Item = &'a Argument<'a>>) -> Option<Literal> {
    match shape {
        Shape::Array(_) => arrays.next().map(|array| Literal::Array(array.to_literal())),
        Shape::Tuple(elements) => {
            let elements: Option<Vec<Literal>> = elements.iter().map(|e| literal(e, arrays)).collect();
            elements.map(Literal::Tuple)
        }
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => Some(Literal::Token),
    }
}

/// An array in device memory.
pub(super) fn stored(array: &ArrayLiteral, store: &Arc<Store>) -> Result<Array, Error> {
    let bytes = bytes_of(&array.buffer);
    let mut block = store.take(bytes.len() as u64)?;
    block.bytes_mut().copy_from_slice(bytes);
    let shape = ArrayShape::new(array.buffer.element_type(), &array.dims);
    Ok(Array { shape: Some(Box::new(shape)), leaf: Leaf::Own(block) })
}

impl Loaded for Interpreted {
    fn run_bytes(&self) -> u64 {
        self.result_bytes
    }

    fn reuses_arguments(&self) -> bool {
        false
    }

    fn interpreted(&self) -> Option<&Module> {
        Some(&self.module)
    }

    fn run(
        &self,
        arguments: &mut [Argument<'_>],
        options: &ExecuteOptions,
        calls: &Registry,
    ) -> Result<Arrays, Error> {
        let interpreter = hlo_interp::Interpreter::new(&self.module, Self::options(options, calls));
        let values = self.values(arguments)?;
        self.arrays(Self::on_threads(options, || interpreter.run(values))?, options)
    }

    fn run_devices(
        &self,
        arguments: Vec<Vec<Argument<'_>>>,
        devices: Devices,
        options: &ExecuteOptions,
        calls: &Registry,
    ) -> Result<Vec<Arrays>, Error> {
        let interpreter = hlo_interp::Interpreter::new(&self.module, Self::options(options, calls));
        let values: Result<Vec<_>, Error> = arguments.iter().map(|a| self.values(a)).collect();
        let values = values?;
        let results = Self::on_threads(options, || interpreter.run_devices(devices, values))?;
        results.into_iter().map(|(value, _)| self.arrays(value, options)).collect()
    }
}
