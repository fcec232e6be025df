//! Computations that are applied to elements: reducers, comparators, combiners, the computation of a `map`.
//!
//! A [`Region`] is made once from a computation and applied to blocks of up to [`LANES`] elements at a time:
//! a caller fills input columns, calls [`Region::eval`], and reads output columns. Lane `i` of the outputs
//! depends on lane `i` of the inputs alone.

pub(crate) mod bytecode;
mod recognize;
mod scalar_loop;

use hlo::literal::{Buffer, BufferOf};
use hlo::{ComputationId, ElementType, Module, Opcode, with_buffer};

use crate::error::Result;
use crate::ops::{Args, Cx};
use crate::value::{Tensor, Value};
use bytecode::Bytecode;
pub(crate) use scalar_loop::ScalarLoop;

/// The maximum number of elements that are evaluated at a time.
pub(crate) const LANES: usize = 1024;

/// How a comparator orders two rows: by one of their keys alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Order {
    /// The operand of the sort that is the key.
    pub(crate) key: usize,
    /// Larger keys first.
    pub(crate) descending: bool,
    /// The order of floats.
    pub(crate) floats: FloatOrder,
}

/// An order of floats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FloatOrder {
    /// `<` of IEEE 754: nothing is less or greater than a NaN, and the zeros are equal.
    Partial,
    /// -NaN < -inf < ... < -0 < +0 < ... < +inf < +NaN.
    Total,
    /// As `Total`, but all NaNs are equal and largest, and the zeros are equal.
    Merged,
}

/// A computation ready to be applied to elements.
#[derive(Debug)]
pub(crate) struct Region {
    computation: ComputationId,
    parameters: Vec<ElementType>,
    results: Vec<ElementType>,
    /// Whether the result is a tuple (of one element, perhaps).
    tuple: bool,
    /// `None`: not bytecode, so it is run lane by lane.
    bytecode: Option<Bytecode>,
}

/// Columns of a region's inputs and outputs, to be used by one thread.
#[derive(Debug)]
pub(crate) struct Lanes {
    /// Inputs first.
    columns: Vec<Buffer>,
    outputs: Vec<usize>,
}

impl Lanes {
    /// The column of input `i`, with as many elements as [`Region::lanes`] was asked for. Panics on another
    /// type, as [`Tensor::slice`].
    pub(crate) fn input<T: BufferOf>(&mut self, i: usize) -> &mut [T] {
        T::slice_mut(&mut self.columns[i]).expect("invariant: the verifier checked the types of a region")
    }

    /// The column of output `i`; as many elements are valid as [`Region::eval`] was asked for.
    pub(crate) fn output<T: BufferOf>(&self, i: usize) -> &[T] {
        T::slice(self.output_buffer(i)).expect("invariant: the verifier checked the types of a region")
    }

    /// The column of input `i`, of whatever type.
    pub(crate) fn input_buffer(&mut self, i: usize) -> &mut Buffer {
        &mut self.columns[i]
    }

    /// The column of output `i`, of whatever type.
    pub(crate) fn output_buffer(&self, i: usize) -> &Buffer {
        &self.columns[self.outputs[i]]
    }
}

/// The operation (add, multiply, minimum, maximum, and, or, xor) of both parameters, in either order, that a
/// computation on scalars is, as reductions recognize it: through copies and calls.
pub fn binary_of(module: &Module, computation: ComputationId) -> Option<Opcode> {
    let program = module.program_shape(computation)?;
    let scalars = program.parameters.iter().all(hlo::Shape::is_scalar) && program.result.is_scalar();
    scalars.then(|| Region::compile(module, computation).as_binary())?.map(|(opcode, _)| opcode)
}

impl Region {
    /// Prepares a computation whose parameters and results the verifier found to be scalars.
    pub(crate) fn compile(module: &Module, computation: ComputationId) -> Region {
        let program =
            module.program_shape(computation).expect("invariant: a verified computation has a root");
        let scalar = |s: &hlo::Shape| s.expect_array().element_type;
        let parameters = program.parameters.iter().map(scalar).collect();
        let results = program.result.leaves().into_iter().map(scalar).collect();
        let tuple = program.result.as_tuple().is_some();
        Region { computation, parameters, results, tuple, bytecode: Bytecode::compile(module, computation) }
    }

    /// The computation.
    pub(crate) fn computation(&self) -> ComputationId {
        self.computation
    }

    /// Types of the inputs.
    pub(crate) fn parameters(&self) -> &[ElementType] {
        &self.parameters
    }

    /// Types of the results.
    pub(crate) fn results(&self) -> &[ElementType] {
        &self.results
    }

    /// If the result is this operation (add, multiply, minimum, maximum, and, or, xor) of the two parameters,
    /// in either order, and nothing else.
    pub(crate) fn as_binary(&self) -> Option<(Opcode, ElementType)> {
        recognize::binary(self.bytecode.as_ref()?)
    }

    /// If the result is whether the first of two rows comes before the second by one key.
    pub(crate) fn as_order(&self) -> Option<Order> {
        recognize::order(self.bytecode.as_ref()?)
    }

    /// If the result is parameter `n`, unchanged.
    pub(crate) fn as_parameter(&self) -> Option<usize> {
        recognize::parameter(self.bytecode.as_ref()?)
    }

    /// Columns for one thread that evaluates at most `most` lanes at a time, and [`LANES`] if that is less.
    pub(crate) fn lanes(&self, most: usize) -> Lanes {
        let lanes = most.min(LANES);
        if let Some(bytecode) = &self.bytecode {
            return Lanes { columns: bytecode.columns(lanes), outputs: bytecode.outputs.clone() };
        }
        let types = self.parameters.iter().chain(&self.results);
        let columns: Vec<Buffer> = types.map(|&ty| Buffer::zeros(ty, lanes)).collect();
        Lanes { outputs: (self.parameters.len()..columns.len()).collect(), columns }
    }

    /// Applies the computation to the first `n` lanes of the inputs. Takes fuel for each lane.
    pub(crate) fn eval(&self, cx: &Cx<'_>, lanes: &mut Lanes, n: usize) -> Result<()> {
        cx.spend(n as u64)?;
        cx.applied(self, n);
        if let Some(bytecode) = &self.bytecode {
            bytecode.run(&mut lanes.columns, n);
            return Ok(());
        }
        let (inputs, outputs) = lanes.columns.split_at_mut(self.parameters.len());
        for lane in 0..n {
            let args: Args = inputs.iter().map(|column| Value::Array(scalar(column, lane))).collect();
            let result = cx.apply(self.computation, args)?;
            if self.tuple {
                for (value, column) in result.expect_tuple().iter().zip(&mut *outputs) {
                    put(column, lane, value.expect_array());
                }
            } else {
                put(&mut outputs[0], lane, result.expect_array());
            }
        }
        Ok(())
    }
}

fn scalar(column: &Buffer, lane: usize) -> Tensor {
    with_buffer!(column, v => Tensor::scalar(v[lane]))
}

fn put(column: &mut Buffer, lane: usize, value: &Tensor) {
    with_buffer!(column, v => v[lane] = value.slice()[0]);
}
