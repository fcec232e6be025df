//! The elementwise opcodes by form: what interpreter and compiler have one piece of code for each.
//!
//! **Invariant:** an opcode has a form if its row of the table says that it is elementwise; besides these,
//! `copy` has that of `convert`.

use crate::opcode::Opcode;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $name { $(#[allow(missing_docs, reason = "named as the opcode")] $variant),* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// The opcode.
            pub const fn opcode(self) -> Opcode {
                match self { $($name::$variant => Opcode::$variant),* }
            }
        }
    )*};
}

kinds! {
    /// Functions of one operand on real and complex floats that are not exact; `Erf` only on real ones.
    Function { Acos, Acosh, Asin, Asinh, Atanh, Cbrt, Cosine, Cosh, Erf, Exponential, ExponentialMinusOne, Log, LogPlusOne, Logistic, Rsqrt, Sine, Sinh, Sqrt, Tan, Tanh }
    /// Other operations of one operand whose result has its type (but for `abs` of a complex number).
    Unary { Abs, Ceil, CountLeadingZeros, Floor, Negate, Not, Popcnt, RoundNearestAfz, RoundNearestEven, Sign }
    /// Operations of two operands whose result has their type.
    Binary { Add, And, Atan2, Divide, Maximum, Minimum, Mulhi, Multiply, Or, Power, Remainder, ShiftLeft, ShiftRightArithmetic, ShiftRightLogical, Subtract, Xor }
}

/// An elementwise opcode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// [`Function`]
    Function(Function),
    /// [`Unary`]
    Unary(Unary),
    /// [`Binary`]
    Binary(Binary),
    /// `real`
    Real,
    /// `imag`
    Imag,
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

/// The elementwise form of an opcode, if it has one.
pub fn kind(opcode: Opcode) -> Option<Kind> {
    Some(match opcode {
        Opcode::Abs => Kind::Unary(Unary::Abs),
        Opcode::Acos => Kind::Function(Function::Acos),
        Opcode::Acosh => Kind::Function(Function::Acosh),
        Opcode::Asin => Kind::Function(Function::Asin),
        Opcode::Asinh => Kind::Function(Function::Asinh),
        Opcode::Atanh => Kind::Function(Function::Atanh),
        Opcode::Cbrt => Kind::Function(Function::Cbrt),
        Opcode::Ceil => Kind::Unary(Unary::Ceil),
        Opcode::Convert | Opcode::Copy => Kind::Convert,
        Opcode::Cosine => Kind::Function(Function::Cosine),
        Opcode::Cosh => Kind::Function(Function::Cosh),
        Opcode::CountLeadingZeros => Kind::Unary(Unary::CountLeadingZeros),
        Opcode::Erf => Kind::Function(Function::Erf),
        Opcode::Exponential => Kind::Function(Function::Exponential),
        Opcode::ExponentialMinusOne => Kind::Function(Function::ExponentialMinusOne),
        Opcode::Floor => Kind::Unary(Unary::Floor),
        Opcode::Imag => Kind::Imag,
        Opcode::IsFinite => Kind::IsFinite,
        Opcode::Log => Kind::Function(Function::Log),
        Opcode::LogPlusOne => Kind::Function(Function::LogPlusOne),
        Opcode::Logistic => Kind::Function(Function::Logistic),
        Opcode::Negate => Kind::Unary(Unary::Negate),
        Opcode::Not => Kind::Unary(Unary::Not),
        Opcode::Popcnt => Kind::Unary(Unary::Popcnt),
        Opcode::Real => Kind::Real,
        Opcode::ReducePrecision => Kind::ReducePrecision,
        Opcode::RoundNearestAfz => Kind::Unary(Unary::RoundNearestAfz),
        Opcode::RoundNearestEven => Kind::Unary(Unary::RoundNearestEven),
        Opcode::Rsqrt => Kind::Function(Function::Rsqrt),
        Opcode::Sign => Kind::Unary(Unary::Sign),
        Opcode::Sine => Kind::Function(Function::Sine),
        Opcode::Sinh => Kind::Function(Function::Sinh),
        Opcode::Sqrt => Kind::Function(Function::Sqrt),
        Opcode::Tan => Kind::Function(Function::Tan),
        Opcode::Tanh => Kind::Function(Function::Tanh),
        Opcode::Add => Kind::Binary(Binary::Add),
        Opcode::And => Kind::Binary(Binary::And),
        Opcode::Atan2 => Kind::Binary(Binary::Atan2),
        Opcode::Compare => Kind::Compare,
        Opcode::Complex => Kind::Complex,
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
        Opcode::StochasticConvert => Kind::StochasticConvert,
        Opcode::Subtract => Kind::Binary(Binary::Subtract),
        Opcode::Xor => Kind::Binary(Binary::Xor),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_those_of_the_table() {
        for &opcode in Opcode::ALL {
            assert_eq!(kind(opcode).is_some(), opcode.is_elementwise() || opcode == Opcode::Copy, "{opcode}");
        }
        for f in Function::ALL {
            assert_eq!(kind(f.opcode()), Some(Kind::Function(*f)));
        }
        for op in Unary::ALL {
            assert_eq!(kind(op.opcode()), Some(Kind::Unary(*op)));
        }
        for op in Binary::ALL {
            assert_eq!(kind(op.opcode()), Some(Kind::Binary(*op)));
        }
    }
}
