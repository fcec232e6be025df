//! Operations: one file per family, reached by one exhaustive `match` on the opcode.
//!
//! An operation is a function of its instruction ([`Cx`]) and its operands' values ([`Args`]). Operands come
//! in by value: one whose storage is not shared may be written in place (`Tensor::unique`). An operation asks
//! [`Cx::vec`] or [`Cx::reserve`] before it allocates anything as large as its result, and takes the
//! dimensions of its result from its operands where the instruction's shape is dynamic.

mod agree;
mod batch_norm;
mod collective;
mod combine;
mod common;
mod contract;
mod control;
mod convolution;
mod custom_call;
mod dot;
pub(crate) mod elementwise;
mod fft;
mod gather;
mod indexing;
mod lapack;
mod library;
mod linear;
mod map;
pub(crate) mod movement;
mod ragged_dot;
mod random;
mod reduce;
mod reduce_window;
pub(crate) mod rng;
mod rng_bit_generator;
mod scaled_dot;
mod scan;
mod scatter;
mod select_and_scatter;
mod sort;
mod strided;
mod topk;
mod window;

use std::sync::Arc;

use hlo::diag::{Code, codes};
use hlo::literal::BufferOf;
use hlo::{ArrayShape, Attrs, ComputationId, Element, InstrId, Instruction, Module, Opcode};
use hlo_arithmetic::sum::Accumulate;
use smallvec::SmallVec;

use crate::device::pending::Pending;
use crate::engine::{Options, Session};
use crate::error::{ErrorKind, Result, RunError};
use crate::plan::Prepared;
use crate::region::Region;
use crate::value::Value;
pub(crate) use collective::{Finish, shards};
pub(crate) use custom_call::{check as check_custom_call, meaning};

/// The operands of an instruction, or the arguments of a computation.
pub(crate) type Args = SmallVec<[Value; 2]>;

/// The outcome of an operation.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Its result.
    Value(Value),
    /// Its result is that of a computation.
    Call(ComputationId, Args),
    /// Its result is `((operands), result)` of a computation.
    Async(ComputationId, Args),
    /// Its result is the state of a loop at its end.
    While {
        /// Whether to go on, of the state.
        condition: ComputationId,
        /// The next state.
        body: ComputationId,
        /// The first state.
        state: Value,
    },
}

impl From<Value> for Outcome {
    fn from(value: Value) -> Outcome {
        Outcome::Value(value)
    }
}

/// The context of an operation, in addition to its operands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cx<'a> {
    pub(crate) session: &'a Session<'a>,
    pub(crate) id: InstrId,
    pub(crate) instr: &'a Instruction,
    /// The nesting depth of this run of a computation.
    pub(crate) depth: u32,
    /// Inside of an `async-start`: a collective only begins.
    pub(crate) lazy: bool,
    /// The plan that earlier runs of the instruction left.
    pub(crate) prepared: Option<&'a Prepared>,
}

/// The result of [`Cx::plan`].
pub(crate) enum Planned<'a, P> {
    /// Of an earlier run.
    Kept(&'a P),
    /// Of this one.
    Made(Arc<P>),
}

impl<P> std::ops::Deref for Planned<'_, P> {
    type Target = P;

    fn deref(&self) -> &P {
        match self {
            Planned::Kept(plan) => plan,
            Planned::Made(plan) => plan,
        }
    }
}

impl<'a> Cx<'a> {
    pub(crate) fn module(&self) -> &'a Module {
        self.session.module()
    }

    pub(crate) fn options(&self) -> &'a Options {
        self.session.interpreter.options()
    }

    pub(crate) fn accumulate(&self) -> Accumulate {
        self.options().accumulate
    }

    pub(crate) fn attrs(&self) -> &'a Attrs {
        &self.instr.attrs
    }

    /// The shape of an array result.
    pub(crate) fn array_shape(&self) -> &'a ArrayShape {
        self.instr.shape.expect_array()
    }

    /// The shape of an array operand.
    pub(crate) fn operand_shape(&self, n: usize) -> &'a ArrayShape {
        self.module().instr(self.instr.operands()[n]).shape.expect_array()
    }

    /// The error that this form of the opcode is not supported; `why` says which form, without the opcode.
    pub(crate) fn unsupported(&self, why: &str) -> RunError {
        RunError::unsupported(self.instr, why)
    }

    /// The error that the program did what it must not.
    pub(crate) fn trap(&self, code: Code, message: impl Into<String>) -> RunError {
        RunError::at(self.instr, ErrorKind::Trap, code, message)
    }

    /// Asks for the memory of `n` elements of a type.
    pub(crate) fn reserve<T: Element>(&self, n: usize) -> Result<()> {
        self.session.check_memory(self.instr, (n as u64).checked_mul(size_of::<T>() as u64))
    }

    /// `n` elements of zero, if the memory limit allows.
    pub(crate) fn vec<T: BufferOf>(&self, n: usize) -> Result<Vec<T>> {
        self.reserve::<T>(n)?;
        if let Some(mut storage) = self.session.meter.reuse(n) {
            storage.fill(T::default());
            return Ok(storage);
        }
        self.zeros(n)
    }

    /// New storage.
    fn zeros<T: BufferOf>(&self, n: usize) -> Result<Vec<T>> {
        let bytes = (n as u64).checked_mul(size_of::<T>() as u64);
        crate::memory::zeros(n).ok_or_else(|| self.session.refused(self.instr, bytes))
    }

    /// `n` elements that the caller overwrites, each of them, if the memory limit allows. What they are
    /// before depends on what ran before.
    pub(crate) fn overwritten<T: BufferOf>(&self, n: usize) -> Result<Vec<T>> {
        self.reserve::<T>(n)?;
        let mut storage = match self.session.meter.reuse(n) {
            Some(storage) => storage,
            None => self.zeros(n)?,
        };
        if cfg!(debug_assertions) {
            // So that tests find out who relies on zeros.
            storage.fill(T::from_bits(u128::MAX >> 1));
        }
        Ok(storage)
    }

    /// Takes fuel beyond the one unit that every instruction takes.
    pub(crate) fn spend(&self, amount: u64) -> Result<()> {
        self.session.spend(self.instr, amount)
    }

    /// What the operation derives from its attributes and its operands' sizes: from an earlier run, if
    /// `fits`, or made now, and kept if it is the first and `small` enough.
    pub(crate) fn plan<P: std::any::Any + Send + Sync>(
        &self,
        fits: impl FnOnce(&P) -> bool,
        small: impl FnOnce(&P) -> bool,
        make: impl FnOnce() -> Result<P>,
    ) -> Result<Planned<'a, P>> {
        if let Some(plan) = self.prepared.and_then(Prepared::get::<P>)
            && fits(plan)
        {
            return Ok(Planned::Kept(plan));
        }
        let plan = Arc::new(make()?);
        if let Some(prepared) = self.prepared
            && small(&plan)
        {
            prepared.keep(&plan);
        }
        Ok(Planned::Made(plan))
    }

    /// The computation that the instruction applies to elements.
    pub(crate) fn region(&self, key: hlo::AttrKey) -> Result<Arc<Region>> {
        let computation = self.attrs().computation(key);
        let computation = computation.ok_or_else(|| self.unsupported(&format!("without {}", key.text())))?;
        Ok(self.session.interpreter.region(computation))
    }

    /// Tells the observer that a computation was applied to that many elements by other means than
    /// [`Region::eval`].
    pub(crate) fn applied(&self, region: &Region, elements: usize) {
        self.tell_applied(region.computation(), elements);
    }

    /// As [`Cx::applied`], of a computation that has no region.
    pub(crate) fn tell_applied(&self, computation: ComputationId, elements: usize) {
        if let Some(observer) = self.session.observer()
            && elements > 0
        {
            let device = self.session.device;
            observer.applied(self.module(), self.id, computation, device, elements as u64);
        }
    }

    /// Runs a computation to its end. Only for computations that are applied to elements and are not
    /// bytecode.
    pub(crate) fn apply(&self, computation: ComputationId, args: Args) -> Result<Value> {
        if self.depth >= crate::engine::MAX_NESTING {
            return Err(self.trap(
                codes::NESTED_TOO_DEEP,
                format!("more than {} applied computations are nested", crate::engine::MAX_NESTING),
            ));
        }
        self.session.run(computation, args, self.depth + 1)
    }
}

/// The result of a collective whose participants have all arrived.
pub(crate) fn finish_collective(cx: &Cx<'_>, pending: &Pending) -> Result<Value> {
    collective::finish(cx, pending)
}

/// Runs one instruction.
pub(crate) fn eval(cx: &Cx<'_>, mut args: Args) -> Result<Outcome> {
    agree::agree(cx, &mut args)?;
    // No `?` in the arms: each would take stack space in a frame that applied computations nest many of.
    let value: Result<Value> = match cx.instr.opcode {
        Opcode::Constant | Opcode::Parameter => {
            unreachable!("invariant: the engine binds constants and parameters itself")
        }

        Opcode::Call => return control::call(cx, hlo::AttrKey::ToApply, args),
        Opcode::Fusion => return control::call(cx, hlo::AttrKey::Calls, args),
        Opcode::While => return control::while_loop(cx, args),
        Opcode::Conditional => return control::conditional(cx, args),
        Opcode::AsyncStart => return control::async_start(cx, args),
        Opcode::AsyncUpdate => return control::async_update(cx, args),
        Opcode::AsyncDone => control::async_done(cx, args),
        Opcode::CopyStart => Ok(control::copy_start(args)),
        Opcode::CopyDone => control::copy_done(cx, args),
        Opcode::Tuple => Ok(Value::tuple(args)),
        Opcode::GetTupleElement => control::get_tuple_element(cx, args),
        Opcode::AfterAll => Ok(Value::Token),
        Opcode::OptBarrier | Opcode::Domain | Opcode::AddDependency => Ok(control::first(args)),
        Opcode::Copy => control::copy(cx, args),
        Opcode::PartitionId => Ok(control::device_number(cx.session.device.partition)),
        Opcode::ReplicaId => Ok(control::device_number(cx.session.device.replica)),

        Opcode::Abs
        | Opcode::Acos
        | Opcode::Acosh
        | Opcode::Asin
        | Opcode::Asinh
        | Opcode::Atanh
        | Opcode::Cbrt
        | Opcode::Ceil
        | Opcode::Convert
        | Opcode::Cosine
        | Opcode::Cosh
        | Opcode::CountLeadingZeros
        | Opcode::Erf
        | Opcode::Exponential
        | Opcode::ExponentialMinusOne
        | Opcode::Floor
        | Opcode::Imag
        | Opcode::IsFinite
        | Opcode::Log
        | Opcode::LogPlusOne
        | Opcode::Logistic
        | Opcode::Negate
        | Opcode::Not
        | Opcode::Popcnt
        | Opcode::Real
        | Opcode::ReducePrecision
        | Opcode::RoundNearestAfz
        | Opcode::RoundNearestEven
        | Opcode::Rsqrt
        | Opcode::Sign
        | Opcode::Sine
        | Opcode::Sinh
        | Opcode::Sqrt
        | Opcode::Tan
        | Opcode::Tanh
        | Opcode::Add
        | Opcode::And
        | Opcode::Atan2
        | Opcode::Compare
        | Opcode::Complex
        | Opcode::Divide
        | Opcode::Maximum
        | Opcode::Minimum
        | Opcode::Mulhi
        | Opcode::Multiply
        | Opcode::Or
        | Opcode::Power
        | Opcode::Remainder
        | Opcode::ShiftLeft
        | Opcode::ShiftRightArithmetic
        | Opcode::ShiftRightLogical
        | Opcode::StochasticConvert
        | Opcode::Subtract
        | Opcode::Xor
        | Opcode::Clamp
        | Opcode::Select => {
            let kind = hlo::elementwise::kind(cx.instr.opcode);
            elementwise::eval(cx, kind.expect("invariant: these opcodes are elementwise"), args)
        }

        Opcode::Bitcast => movement::bitcast(cx, args),
        Opcode::BitcastConvert => movement::bitcast_convert(cx, args),
        Opcode::Broadcast => movement::broadcast(cx, args),
        Opcode::Concatenate => movement::concatenate(cx, args),
        Opcode::DynamicReshape => movement::dynamic_reshape(cx, args),
        Opcode::DynamicSlice => movement::dynamic_slice(cx, args),
        Opcode::DynamicUpdateSlice => movement::dynamic_update_slice(cx, args),
        Opcode::GetDimensionSize => Ok(movement::get_dimension_size(cx, args)),
        Opcode::Iota => movement::iota(cx),
        Opcode::Pad => movement::pad(cx, args),
        Opcode::Reshape => movement::reshape(cx, args),
        Opcode::Reverse => movement::reverse(cx, args),
        Opcode::SetDimensionSize => movement::set_dimension_size(cx, args),
        Opcode::Slice => movement::slice(cx, args),
        Opcode::Transpose => movement::transpose(cx, args),
        Opcode::Map => map::map(cx, args),

        Opcode::Gather => gather::gather(cx, args),
        Opcode::Scatter => scatter::scatter(cx, args),
        Opcode::Convolution => convolution::convolution(cx, args),
        Opcode::Dot => dot::dot(cx, args),
        Opcode::RaggedDot => ragged_dot::ragged_dot(cx, args),
        Opcode::ScaledDot => scaled_dot::scaled_dot(cx, args),
        Opcode::Reduce => reduce::reduce(cx, args),
        Opcode::ReduceWindow => reduce_window::reduce_window(cx, args),
        Opcode::Scan => scan::scan(cx, args),
        Opcode::SelectAndScatter => select_and_scatter::select_and_scatter(cx, args),
        Opcode::Sort => sort::sort(cx, args),
        Opcode::Topk => topk::topk(cx, args),
        Opcode::BatchNormGrad => batch_norm::grad(cx, args),
        Opcode::BatchNormInference => batch_norm::inference(cx, args),
        Opcode::BatchNormTraining => batch_norm::training(cx, args),
        Opcode::Cholesky => linear::cholesky(cx, args),
        Opcode::Fft => fft::fft(cx, args),
        Opcode::TriangularSolve => linear::triangular_solve(cx, args),
        Opcode::Rng => rng::rng(cx, args),
        Opcode::RngBitGenerator => rng_bit_generator::rng_bit_generator(cx, args),
        Opcode::RngGetAndUpdateState => rng_bit_generator::rng_get_and_update_state(cx),
        Opcode::CustomCall => return custom_call::custom_call(cx, args),

        Opcode::AllGather
        | Opcode::AllGatherDone
        | Opcode::AllGatherStart
        | Opcode::AllReduce
        | Opcode::AllReduceDone
        | Opcode::AllReduceStart
        | Opcode::AllToAll
        | Opcode::CollectiveBroadcast
        | Opcode::CollectivePermute
        | Opcode::CollectivePermuteDone
        | Opcode::CollectivePermuteStart
        | Opcode::CollectiveReduce
        | Opcode::Infeed
        | Opcode::Outfeed
        | Opcode::RaggedAllToAll
        | Opcode::Recv
        | Opcode::RecvDone
        | Opcode::ReduceScatter
        | Opcode::Send
        | Opcode::SendDone => return collective::eval(cx, args),
    };
    let value = value?;
    if differs(&value, &cx.instr.shape) {
        return declared(cx, value, &cx.instr.shape).map(Outcome::Value);
    }
    Ok(Outcome::Value(value))
}

/// Whether elements are not of the declared types.
fn differs(value: &Value, shape: &hlo::Shape) -> bool {
    match (value, shape) {
        (Value::Array(x), hlo::Shape::Array(a)) => x.element_type() != a.element_type,
        (Value::Tuple(values), hlo::Shape::Tuple(shapes)) => {
            values.iter().zip(shapes.iter()).any(|(v, s)| differs(v, s))
        }
        (_, _) => false,
    }
}

/// A value in the element types that its instruction declares: the verifier lets those of floats differ from
/// what operands say.
fn declared(cx: &Cx<'_>, value: Value, shape: &hlo::Shape) -> Result<Value> {
    if !differs(&value, shape) {
        return Ok(value);
    }
    match (value, shape) {
        (Value::Array(x), hlo::Shape::Array(a)) => {
            elementwise::convert(cx, x, a.element_type).map(Value::Array)
        }
        (Value::Tuple(values), hlo::Shape::Tuple(shapes)) => {
            let parts = values.iter().zip(shapes.iter()).map(|(v, s)| declared(cx, v.clone(), s));
            parts.collect::<Result<Vec<_>>>().map(Value::tuple)
        }
        (value, _) => Ok(value),
    }
}
