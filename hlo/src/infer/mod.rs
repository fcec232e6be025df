//! Shape inference: what shape the result of an instruction has.
//!
//! One rule an opcode, as strict as XLA's `xla/service/shape_inference.cc` and the shape handlers of
//! `xla/service/hlo_verifier.cc`, and stricter where those only crash later: dimension numbers out of range
//! or repeated, sizes that overflow, shapes an operation could not work on. Whatever passes here is sound to
//! execute as far as shapes go.
//!
//! [`infer`] gives the shape of a result; where it does not follow from operands and attributes (`convert`,
//! `reshape`, `parameter`, ...) it says so. [`check`] compares a declared shape with what follows from the
//! rest:
//! - layouts never matter;
//! - which dimensions are dynamic does not matter, and an unbounded dimension matches any size, as in XLA's
//!   verifier;
//! - floats may differ in width (mixed precision) except where an operation hands on values unchanged.
//!
//! Inferred shapes have no layout. Called computations are taken from the module; rules look at their
//! parameters and result alone. All arithmetic on sizes is checked.

mod async_ops;
mod collective;
mod control;
mod convolution;
mod cx;
mod dot;
mod dynamic;
mod elementwise;
mod error;
mod gather_scatter;
mod linalg;
mod movement;
mod random;
mod reduce;
mod sort;
mod transfer;
mod types;
mod window;

pub use error::InferError;

use cx::{Cx, Inferred, count, show};
use types::{Classes, Match, shapes_match};

use crate::attrs::{AttrKey, Attrs};
use crate::diag::codes;
use crate::element_type::ElementType;
use crate::module::Module;
use crate::opcode::{Arity, Opcode};
use crate::shape::{Shape, UNBOUNDED};

/// The shape of the result of `opcode` on operands of these shapes. Fails where the operands do not fit, and
/// where only a declared shape says what the result is.
pub fn infer(
    module: &Module,
    opcode: Opcode,
    operands: &[&Shape],
    attrs: &Attrs,
) -> Result<Shape, InferError> {
    let cx = Cx { module, opcode, operands, attrs, declared: None };
    let shape = rule(&cx)?;
    representable(&cx, &shape)?;
    Ok(shape)
}

/// Whether an instruction may have the shape that it declares.
pub fn check(
    module: &Module,
    opcode: Opcode,
    operands: &[&Shape],
    attrs: &Attrs,
    declared: &Shape,
) -> Result<(), InferError> {
    let cx = Cx { module, opcode, operands, attrs, declared: Some(declared) };
    let inferred = rule(&cx)?;
    if shapes_match(declared, &inferred, strictness(opcode)) {
        return Ok(());
    }
    Err(cx
        .error(
            codes::SHAPE_MISMATCH,
            format!("the result has shape {}, not {}", show(&inferred), show(declared)),
        )
        .label(format!("must be {}", show(&inferred))))
}

/// Whether the text may leave out the shape of such an instruction (XLA: `CanInferShape` in `hlo_parser.cc`).
/// Some opcodes whose shape would follow must have it written nevertheless, as in XLA.
pub const fn can_infer(opcode: Opcode) -> bool {
    match opcode {
        Opcode::Abs
        | Opcode::Acos
        | Opcode::Acosh
        | Opcode::Asin
        | Opcode::Asinh
        | Opcode::Atanh
        | Opcode::Cbrt
        | Opcode::Ceil
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
        | Opcode::Subtract
        | Opcode::Xor
        | Opcode::Clamp
        | Opcode::Select
        | Opcode::Broadcast
        | Opcode::Concatenate
        | Opcode::Copy
        | Opcode::Gather
        | Opcode::GetDimensionSize
        | Opcode::Pad
        | Opcode::Reverse
        | Opcode::Scatter
        | Opcode::SetDimensionSize
        | Opcode::Transpose
        | Opcode::Convolution
        | Opcode::Dot
        | Opcode::RaggedDot
        | Opcode::ScaledDot
        | Opcode::Map
        | Opcode::Reduce
        | Opcode::ReduceWindow
        | Opcode::Scan
        | Opcode::SelectAndScatter
        | Opcode::Sort
        | Opcode::Topk
        | Opcode::BatchNormGrad
        | Opcode::BatchNormInference
        | Opcode::BatchNormTraining
        | Opcode::Cholesky
        | Opcode::Fft
        | Opcode::TriangularSolve
        | Opcode::AddDependency
        | Opcode::AfterAll
        | Opcode::Call
        | Opcode::Conditional
        | Opcode::Domain
        | Opcode::GetTupleElement
        | Opcode::OptBarrier
        | Opcode::Tuple
        | Opcode::While
        | Opcode::PartitionId
        | Opcode::ReplicaId => true,
        Opcode::Convert
        | Opcode::ReducePrecision
        | Opcode::StochasticConvert
        | Opcode::Bitcast
        | Opcode::BitcastConvert
        | Opcode::DynamicReshape
        | Opcode::DynamicSlice
        | Opcode::DynamicUpdateSlice
        | Opcode::Iota
        | Opcode::Reshape
        | Opcode::Slice
        | Opcode::Rng
        | Opcode::RngBitGenerator
        | Opcode::RngGetAndUpdateState
        | Opcode::Constant
        | Opcode::CustomCall
        | Opcode::Fusion
        | Opcode::Parameter
        | Opcode::AsyncStart
        | Opcode::AsyncUpdate
        | Opcode::AsyncDone
        | Opcode::CopyStart
        | Opcode::CopyDone
        | Opcode::Infeed
        | Opcode::Outfeed
        | Opcode::Recv
        | Opcode::RecvDone
        | Opcode::Send
        | Opcode::SendDone
        | Opcode::AllGather
        | Opcode::AllGatherStart
        | Opcode::AllGatherDone
        | Opcode::AllReduce
        | Opcode::AllReduceStart
        | Opcode::AllReduceDone
        | Opcode::AllToAll
        | Opcode::CollectiveBroadcast
        | Opcode::CollectivePermute
        | Opcode::CollectivePermuteStart
        | Opcode::CollectivePermuteDone
        | Opcode::CollectiveReduce
        | Opcode::RaggedAllToAll
        | Opcode::ReduceScatter => false,
    }
}

fn representable(cx: &Cx, shape: &Shape) -> Result<(), InferError> {
    let mut fits = true;
    shape.for_each_leaf(&mut |leaf| {
        fits &=
            leaf.as_array().is_some_and(|a| a.dims.contains(&UNBOUNDED)) || leaf.checked_bytes().is_some();
    });
    if fits { Ok(()) } else { Err(cx.overflow("the size of the result in bytes")) }
}

/// Which differences between a declared and an inferred shape an opcode allows (XLA:
/// `ShapeVerifier::CheckShape`).
const fn strictness(opcode: Opcode) -> Match {
    match opcode {
        Opcode::Bitcast
        | Opcode::Broadcast
        | Opcode::DynamicReshape
        | Opcode::DynamicUpdateSlice
        | Opcode::Reshape
        | Opcode::RngBitGenerator
        | Opcode::RngGetAndUpdateState
        | Opcode::Call
        | Opcode::Conditional
        | Opcode::Constant
        | Opcode::CustomCall
        | Opcode::Fusion
        | Opcode::GetTupleElement
        | Opcode::OptBarrier
        | Opcode::Parameter
        | Opcode::Tuple
        | Opcode::While
        | Opcode::AsyncStart
        | Opcode::AsyncUpdate
        | Opcode::AsyncDone
        | Opcode::CopyStart
        | Opcode::CopyDone
        | Opcode::Infeed
        | Opcode::Outfeed
        | Opcode::Recv
        | Opcode::RecvDone
        | Opcode::Send
        | Opcode::SendDone
        | Opcode::PartitionId
        | Opcode::ReplicaId => Match::Strict,
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
        | Opcode::Select
        | Opcode::BitcastConvert
        | Opcode::Concatenate
        | Opcode::Copy
        | Opcode::DynamicSlice
        | Opcode::Gather
        | Opcode::GetDimensionSize
        | Opcode::Iota
        | Opcode::Pad
        | Opcode::Reverse
        | Opcode::Scatter
        | Opcode::SetDimensionSize
        | Opcode::Slice
        | Opcode::Transpose
        | Opcode::Convolution
        | Opcode::Dot
        | Opcode::RaggedDot
        | Opcode::ScaledDot
        | Opcode::Map
        | Opcode::Reduce
        | Opcode::ReduceWindow
        | Opcode::Scan
        | Opcode::SelectAndScatter
        | Opcode::Sort
        | Opcode::Topk
        | Opcode::BatchNormGrad
        | Opcode::BatchNormInference
        | Opcode::BatchNormTraining
        | Opcode::Cholesky
        | Opcode::Fft
        | Opcode::TriangularSolve
        | Opcode::Rng
        | Opcode::AddDependency
        | Opcode::AfterAll
        | Opcode::Domain
        | Opcode::AllGather
        | Opcode::AllGatherStart
        | Opcode::AllGatherDone
        | Opcode::AllReduce
        | Opcode::AllReduceStart
        | Opcode::AllReduceDone
        | Opcode::AllToAll
        | Opcode::CollectiveBroadcast
        | Opcode::CollectivePermute
        | Opcode::CollectivePermuteStart
        | Opcode::CollectivePermuteDone
        | Opcode::CollectiveReduce
        | Opcode::RaggedAllToAll
        | Opcode::ReduceScatter => Match::MixedPrecision,
    }
}

fn rule(cx: &Cx) -> Inferred {
    let arity = cx.opcode.arity();
    if !arity.accepts(cx.operands.len()) {
        let takes = match arity {
            Arity::Exactly(n) => count(n, "operand"),
            Arity::AtLeast(n) => format!("at least {}", count(n, "operand")),
        };
        return Err(cx
            .error(codes::WRONG_ARITY, format!("{} given", count(cx.operands.len(), "operand")))
            .label(format!("takes {takes}")));
    }
    match cx.opcode {
        Opcode::Abs => elementwise::real_part(cx, Classes::SIGNED.or(Classes::FLOAT).or(Classes::COMPLEX)),
        Opcode::Acos
        | Opcode::Acosh
        | Opcode::Asin
        | Opcode::Asinh
        | Opcode::Atanh
        | Opcode::Cosine
        | Opcode::Cosh
        | Opcode::Exponential
        | Opcode::ExponentialMinusOne
        | Opcode::Log
        | Opcode::LogPlusOne
        | Opcode::Logistic
        | Opcode::Rsqrt
        | Opcode::Sine
        | Opcode::Sinh
        | Opcode::Sqrt
        | Opcode::Tan
        | Opcode::Tanh => elementwise::unary(cx, Classes::FLOAT.or(Classes::COMPLEX)),
        Opcode::Cbrt
        | Opcode::Ceil
        | Opcode::Erf
        | Opcode::Floor
        | Opcode::RoundNearestAfz
        | Opcode::RoundNearestEven => elementwise::unary(cx, Classes::FLOAT),
        Opcode::Convert => elementwise::convert(cx),
        Opcode::CountLeadingZeros | Opcode::Popcnt => elementwise::unary(cx, Classes::INTEGER),
        Opcode::Imag | Opcode::Real => elementwise::real_part(cx, Classes::FLOAT.or(Classes::COMPLEX)),
        Opcode::IsFinite => elementwise::is_finite(cx),
        Opcode::Negate => elementwise::unary(cx, Classes::NUMBER),
        Opcode::Not => elementwise::unary(cx, Classes::PRED.or(Classes::INTEGER)),
        Opcode::ReducePrecision => elementwise::reduce_precision(cx),
        Opcode::Sign => elementwise::unary(cx, Classes::SIGNED.or(Classes::FLOAT).or(Classes::COMPLEX)),
        Opcode::Add | Opcode::Multiply | Opcode::Maximum | Opcode::Minimum => {
            elementwise::binary(cx, Classes::ANY)
        }
        Opcode::And | Opcode::Or | Opcode::Xor => elementwise::binary(cx, Classes::PRED.or(Classes::INTEGER)),
        Opcode::Atan2 => elementwise::binary(cx, Classes::FLOAT.or(Classes::COMPLEX)),
        Opcode::Compare => elementwise::compare(cx),
        Opcode::Complex => elementwise::complex(cx),
        Opcode::Divide | Opcode::Power | Opcode::Subtract => elementwise::binary(cx, Classes::NUMBER),
        Opcode::Mulhi | Opcode::ShiftLeft | Opcode::ShiftRightArithmetic | Opcode::ShiftRightLogical => {
            elementwise::binary(cx, Classes::INTEGER)
        }
        Opcode::Remainder => elementwise::binary(cx, Classes::REAL),
        Opcode::StochasticConvert => elementwise::stochastic_convert(cx),
        Opcode::Clamp => elementwise::clamp(cx),
        Opcode::Select => elementwise::select(cx),
        Opcode::Bitcast => movement::bitcast(cx),
        Opcode::BitcastConvert => movement::bitcast_convert(cx),
        Opcode::Broadcast => movement::broadcast(cx),
        Opcode::Concatenate => movement::concatenate(cx),
        Opcode::Copy | Opcode::Domain | Opcode::OptBarrier | Opcode::AllReduceDone => movement::identity(cx),
        Opcode::DynamicReshape => dynamic::dynamic_reshape(cx),
        Opcode::DynamicSlice => movement::dynamic_slice(cx),
        Opcode::DynamicUpdateSlice => movement::dynamic_update_slice(cx),
        Opcode::Gather => gather_scatter::gather(cx),
        Opcode::GetDimensionSize => dynamic::get_dimension_size(cx),
        Opcode::Iota => movement::iota(cx),
        Opcode::Pad => movement::pad(cx),
        Opcode::Reshape => movement::reshape(cx),
        Opcode::Reverse => movement::reverse(cx),
        Opcode::Scatter => gather_scatter::scatter(cx),
        Opcode::SetDimensionSize => dynamic::set_dimension_size(cx),
        Opcode::Slice => movement::slice(cx),
        Opcode::Transpose => movement::transpose(cx),
        Opcode::Convolution => convolution::convolution(cx),
        Opcode::Dot => dot::dot(cx),
        Opcode::RaggedDot => dot::ragged_dot(cx),
        Opcode::ScaledDot => dot::scaled_dot(cx),
        Opcode::Map => reduce::map(cx),
        Opcode::Reduce => reduce::reduce(cx),
        Opcode::ReduceWindow => window::reduce_window(cx),
        Opcode::Scan => reduce::scan(cx),
        Opcode::SelectAndScatter => window::select_and_scatter(cx),
        Opcode::Sort => sort::sort(cx),
        Opcode::Topk => sort::topk(cx),
        Opcode::BatchNormGrad => linalg::batch_norm_grad(cx),
        Opcode::BatchNormInference => linalg::batch_norm_inference(cx),
        Opcode::BatchNormTraining => linalg::batch_norm_training(cx),
        Opcode::Cholesky => linalg::cholesky(cx),
        Opcode::Fft => linalg::fft(cx),
        Opcode::TriangularSolve => linalg::triangular_solve(cx),
        Opcode::Rng => random::rng(cx),
        Opcode::RngBitGenerator => random::bit_generator(cx),
        Opcode::RngGetAndUpdateState => random::state(cx),
        Opcode::AddDependency => control::add_dependency(cx),
        Opcode::AfterAll => control::after_all(cx),
        Opcode::Call => control::call(cx, AttrKey::ToApply),
        Opcode::Conditional => control::conditional(cx),
        Opcode::Constant => control::constant(cx),
        Opcode::CustomCall => control::custom_call(cx),
        Opcode::Fusion => control::call(cx, AttrKey::Calls),
        Opcode::GetTupleElement => control::get_tuple_element(cx),
        Opcode::Parameter => control::parameter(cx),
        Opcode::Tuple => control::tuple(cx),
        Opcode::While => control::while_loop(cx),
        Opcode::AsyncStart => async_ops::start(cx),
        Opcode::AsyncUpdate => async_ops::update(cx),
        Opcode::AsyncDone => async_ops::done(cx),
        Opcode::CopyStart => transfer::copy_start(cx),
        Opcode::CopyDone => transfer::copy_done(cx),
        Opcode::Infeed => transfer::infeed(cx),
        Opcode::Outfeed => transfer::outfeed(cx),
        Opcode::Recv => transfer::recv(cx),
        Opcode::RecvDone => transfer::recv_done(cx),
        Opcode::Send => transfer::send(cx),
        Opcode::SendDone => transfer::send_done(cx),
        Opcode::AllGather => collective::all_gather(cx),
        Opcode::AllGatherStart => collective::all_gather_start(cx),
        Opcode::AllGatherDone | Opcode::CollectivePermuteDone => collective::second_element(cx),
        Opcode::AllReduce | Opcode::AllReduceStart => collective::all_reduce(cx),
        Opcode::CollectiveReduce => collective::collective_reduce(cx),
        Opcode::AllToAll => collective::all_to_all(cx),
        Opcode::CollectiveBroadcast => collective::broadcast(cx),
        Opcode::CollectivePermute => collective::permute(cx),
        Opcode::CollectivePermuteStart => collective::permute_start(cx),
        Opcode::RaggedAllToAll => collective::ragged_all_to_all(cx),
        Opcode::ReduceScatter => collective::reduce_scatter(cx),
        Opcode::PartitionId | Opcode::ReplicaId => Ok(Shape::scalar(ElementType::U32)),
    }
}
