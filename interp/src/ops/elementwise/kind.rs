//! The elementwise opcodes by the form of their kernels.

use hlo::Opcode;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum $name { $($variant),* }
    )*};
}

kinds! {
    /// Operations of one operand whose result has its type. `Abs` only of real numbers.
    Unary {
        Abs, Acos, Acosh, Asin, Asinh, Atanh, Cbrt, Ceil, Cosine, Cosh, CountLeadingZeros, Erf, Exponential,
        ExponentialMinusOne, Floor, Log, LogPlusOne, Logistic, Negate, Not, Popcnt, RoundNearestAfz, RoundNearestEven,
        Rsqrt, Sign, Sine, Sinh, Sqrt, Tan, Tanh,
    }
    /// Operations of two operands whose result has their type.
    Binary {
        Add, And, Atan2, Divide, Maximum, Minimum, Mulhi, Multiply, Or, Power, Remainder, ShiftLeft,
        ShiftRightArithmetic, ShiftRightLogical, Subtract, Xor,
    }
}

/// Parts of a complex number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// `real`
    Real,
    /// `imag`
    Imaginary,
    /// `abs`
    Modulus,
}

/// An elementwise opcode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// [`Unary`]; `Abs` of a complex number is [`Part::Modulus`].
    Unary(Unary),
    /// [`Binary`]
    Binary(Binary),
    /// `real`, `imag`
    Part(Part),
    /// `is-finite`
    IsFinite,
    /// `reduce-precision`
    ReducePrecision,
    /// `convert`, and `copy`, which may convert in mixed precision
    Convert,
    /// `stochastic-convert`
    StochasticConvert,
    /// `compare`
    Compare,
    /// `complex`
    Complex,
    /// `clamp`
    Clamp,
    /// `select`
    Select,
}

/// The elementwise form of an opcode, if it is elementwise.
pub(crate) fn kind(opcode: Opcode) -> Option<Kind> {
    Some(match opcode {
        Opcode::Abs => Kind::Unary(Unary::Abs),
        Opcode::Acos => Kind::Unary(Unary::Acos),
        Opcode::Acosh => Kind::Unary(Unary::Acosh),
        Opcode::Asin => Kind::Unary(Unary::Asin),
        Opcode::Asinh => Kind::Unary(Unary::Asinh),
        Opcode::Atanh => Kind::Unary(Unary::Atanh),
        Opcode::Cbrt => Kind::Unary(Unary::Cbrt),
        Opcode::Ceil => Kind::Unary(Unary::Ceil),
        Opcode::Cosine => Kind::Unary(Unary::Cosine),
        Opcode::Cosh => Kind::Unary(Unary::Cosh),
        Opcode::CountLeadingZeros => Kind::Unary(Unary::CountLeadingZeros),
        Opcode::Erf => Kind::Unary(Unary::Erf),
        Opcode::Exponential => Kind::Unary(Unary::Exponential),
        Opcode::ExponentialMinusOne => Kind::Unary(Unary::ExponentialMinusOne),
        Opcode::Floor => Kind::Unary(Unary::Floor),
        Opcode::Log => Kind::Unary(Unary::Log),
        Opcode::LogPlusOne => Kind::Unary(Unary::LogPlusOne),
        Opcode::Logistic => Kind::Unary(Unary::Logistic),
        Opcode::Negate => Kind::Unary(Unary::Negate),
        Opcode::Not => Kind::Unary(Unary::Not),
        Opcode::Popcnt => Kind::Unary(Unary::Popcnt),
        Opcode::RoundNearestAfz => Kind::Unary(Unary::RoundNearestAfz),
        Opcode::RoundNearestEven => Kind::Unary(Unary::RoundNearestEven),
        Opcode::Rsqrt => Kind::Unary(Unary::Rsqrt),
        Opcode::Sign => Kind::Unary(Unary::Sign),
        Opcode::Sine => Kind::Unary(Unary::Sine),
        Opcode::Sinh => Kind::Unary(Unary::Sinh),
        Opcode::Sqrt => Kind::Unary(Unary::Sqrt),
        Opcode::Tan => Kind::Unary(Unary::Tan),
        Opcode::Tanh => Kind::Unary(Unary::Tanh),
        Opcode::Add => Kind::Binary(Binary::Add),
        Opcode::And => Kind::Binary(Binary::And),
        Opcode::Atan2 => Kind::Binary(Binary::Atan2),
        Opcode::Divide => Kind::Binary(Binary::Divide),
        Opcode::Maximum => Kind::Binary(Binary::Maximum),
        Opcode::Minimum => Kind::Binary(Binary::Minimum),
        Opcode::Mulhi => Kind::Binary(Binary::Mulhi),
        Opcode::Multiply => Kind::Binary(Binary::Multiply),
        Opcode::Or => Kind::Binary(Binary::Or),
        Opcode::Power => Kind::Binary(Binary::Power),
        Opcode::Remainder => Kind::Binary(Binary::Remainder),
        Opcode::ShiftLeft => Kind::Binary(Binary::ShiftLeft),
        Opcode::ShiftRightArithmetic => Kind::Binary(Binary::ShiftRightArithmetic),
        Opcode::ShiftRightLogical => Kind::Binary(Binary::ShiftRightLogical),
        Opcode::Subtract => Kind::Binary(Binary::Subtract),
        Opcode::Xor => Kind::Binary(Binary::Xor),
        Opcode::Real => Kind::Part(Part::Real),
        Opcode::Imag => Kind::Part(Part::Imaginary),
        Opcode::IsFinite => Kind::IsFinite,
        Opcode::ReducePrecision => Kind::ReducePrecision,
        Opcode::Convert | Opcode::Copy => Kind::Convert,
        Opcode::StochasticConvert => Kind::StochasticConvert,
        Opcode::Compare => Kind::Compare,
        Opcode::Complex => Kind::Complex,
        Opcode::Clamp => Kind::Clamp,
        Opcode::Select => Kind::Select,
        Opcode::Bitcast
        | Opcode::BitcastConvert
        | Opcode::Broadcast
        | Opcode::Concatenate
        | Opcode::DynamicReshape
        | Opcode::DynamicSlice
        | Opcode::DynamicUpdateSlice
        | Opcode::Gather
        | Opcode::GetDimensionSize
        | Opcode::Iota
        | Opcode::Pad
        | Opcode::Reshape
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
        | Opcode::RngBitGenerator
        | Opcode::RngGetAndUpdateState
        | Opcode::AddDependency
        | Opcode::AfterAll
        | Opcode::Call
        | Opcode::Conditional
        | Opcode::Constant
        | Opcode::CustomCall
        | Opcode::Domain
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
        | Opcode::ReduceScatter
        | Opcode::PartitionId
        | Opcode::ReplicaId => return None,
    })
}
