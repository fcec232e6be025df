//! Functions of a program that its custom calls refer to, compiled when they are called first.
//!
//! **Invariant:** a function that only the interpreter can execute as part of its program is interpreted
//! there: one with custom calls of the client's, which have their instances in the program, one that
//! communicates with other devices or draws random numbers, and any in a build without a compiler.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hlo::{ArrayLiteral, ComputationId, Shape};
use hlo_codegen::runtime::executable::Leaf;
use hlo_codegen::runtime::raw::buffer_of;
use hlo_interp::custom_call::Registry;
use rustc_hash::FxHashMap;

use super::site::Function;
use crate::backend::{Argument, Array, Backend, Loaded, Source};
use crate::buffer::Data;
use crate::error::{Code, Error};
use crate::options::{CompileOptions, ExecuteOptions};
use crate::program::VerifiedModule;

/// A function that was looked at; `None`: it is interpreted.
type Compiled = Arc<OnceLock<Option<Arc<dyn Loaded>>>>;

/// The functions of one executable.
pub(super) struct Functions {
    backend: Arc<dyn Backend>,
    options: CompileOptions,
    /// The program that they are of.
    program: Arc<dyn Loaded>,
    compiled: Mutex<FxHashMap<ComputationId, Compiled>>,
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Functions").field("backend", &self.backend).finish_non_exhaustive()
    }
}

impl Functions {
    /// Of a program, compiled by the back end that compiled it.
    pub(super) fn new(program: Arc<dyn Loaded>, backend: Arc<dyn Backend>, options: CompileOptions) -> Self {
        Self {
            backend,
            options: CompileOptions { fallback: false, ..options },
            program,
            compiled: Mutex::default(),
        }
    }

    /// A function ready to run; `None`: it is interpreted.
    pub(super) fn compiled(&self, function: &Function) -> Option<Arc<dyn Loaded>> {
        let cell = {
            let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(compiled.entry(function.computation).or_default())
        };
        cell.get_or_init(|| self.compile(function.computation)).clone()
    }

    fn compile(&self, function: ComputationId) -> Option<Arc<dyn Loaded>> {
        let alone = VerifiedModule::of_computation(self.program.interpreted()?, function).ok()?;
        let compiled = self.backend.compile(alone.module(), &self.options, false).ok()?.loaded;
        compiled.interpreted().is_none().then_some(compiled)
    }
}

/// Runs a compiled function.
pub(super) fn run(
    compiled: &dyn Loaded,
    function: &Function,
    arguments: &[ArrayLiteral],
    options: &ExecuteOptions,
) -> Result<Vec<ArrayLiteral>, Error> {
    let shapes: Vec<_> = arguments.iter().map(ArrayLiteral::shape).collect();
    let lent = |(array, shape)| {
        let array: &ArrayLiteral = array;
        Argument { shape, source: Source::Lent(Data::Host(Arc::clone(&array.buffer))) }
    };
    let mut given: Vec<Argument<'_>> = arguments.iter().zip(&shapes).map(lent).collect();
    let arrays = compiled.run(&mut given, options, &Registry::default())?;
    let leaves = function.result.leaves();
    let shapes = leaves.into_iter().filter_map(Shape::as_array);
    let mut results: Vec<ArrayLiteral> = Vec::with_capacity(arrays.len());
    for (Array { shape, leaf }, declared) in arrays.into_iter().zip(shapes) {
        let shape = shape.as_deref().unwrap_or(declared);
        let result = match leaf {
            Leaf::Own(block) => {
                let buffer = buffer_of(shape.element_type, block.bytes());
                ArrayLiteral { dims: shape.dims.clone(), buffer: buffer.into() }
            }
            Leaf::Same(first) => results.get(first as usize).cloned().ok_or_else(|| {
                Error::new(Code::Internal, format!("{} has a result that is none before it", function.name))
            })?,
        };
        results.push(result);
    }
    Ok(results)
}
