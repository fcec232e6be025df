//! The reducers that are one operation (add, multiply, minimum, maximum, and, or, xor), as functions that
//! inline into typed loops.

use hlo::Opcode;
use hlo::half::{bf16, f16};
use hlo::literal::BufferOf;
use hlo::num_complex::Complex;
use hlo::small_float::{
    F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ,
    F8E8M0FNU,
};
use hlo::small_int::{S1, S2, S4, U1, U2, U4};

use hlo_arithmetic::scalar::{Float, Int, Number, Scalar};

/// Something to do with a reducer.
pub(super) trait With<T> {
    /// The result.
    type Output;

    /// Does it.
    fn with(self, f: impl Fn(T, T) -> T + Copy + Send + Sync) -> Self::Output;
}

/// An element type and its reducers.
pub(super) trait Combine: BufferOf + Scalar {
    /// The identity of an operation for which grouping and order of operands do not matter to the bit; sums
    /// and products of floats are none.
    fn identity(op: Opcode) -> Option<Self>;

    /// Runs `with` with the operation; `None` if the type has no such operation, or it is none of the
    /// reducers.
    fn combine<W: With<Self>>(op: Opcode, with: W) -> Option<W::Output>;
}

/// The dispatch on an operation: `some` names the function of each.
macro_rules! dispatch {
    ($op:expr, $with:expr; $($name:ident => $f:expr),*) => {{
        // Not a dispatch over all opcodes: anything but a reducer has no answer here.
        $(if $op == Opcode::$name {
            return Some($with.with($f));
        })*
        None
    }};
}

macro_rules! ints {
    ($through:ident: $($t:ty),*) => {$(
        impl Combine for $t {
            fn identity(op: Opcode) -> Option<Self> {
                let zero = <$t as Number>::zero();
                [
                    (Opcode::Add, zero),
                    (Opcode::Multiply, <$t as Number>::one()),
                    (Opcode::Minimum, <$t as Int>::MAX),
                    (Opcode::Maximum, <$t as Int>::MIN),
                    (Opcode::And, Int::not(zero)),
                    (Opcode::Or, zero),
                    (Opcode::Xor, zero),
                ]
                .into_iter()
                .find_map(|(o, x)| (o == op).then_some(x))
            }

            fn combine<W: With<Self>>(op: Opcode, with: W) -> Option<W::Output> {
                dispatch!(op, with;
                    Add => $through!($t, |a, b| Number::add(a, b)),
                    Multiply => $through!($t, |a, b| Number::multiply(a, b)),
                    Minimum => $through!($t, |a, b| Int::minimum(a, b)),
                    Maximum => $through!($t, |a, b| Int::maximum(a, b)),
                    And => $through!($t, |a, b| Int::and(a, b)),
                    Or => $through!($t, |a, b| Int::or(a, b)),
                    Xor => $through!($t, |a, b| Int::xor(a, b)))
            }
        }
    )*};
}

macro_rules! floats {
    ($through:ident: $($t:ty),*) => {$(
        impl Combine for $t {
            fn identity(op: Opcode) -> Option<Self> {
                let largest = <$t as Float>::INFINITY.unwrap_or(<$t as Float>::MAX);
                // Of a type without sign and zero the smallest number has no bits.
                let smallest = match <$t as Float>::SIGN {
                    0 => <$t as Float>::from_raw(0),
                    _ => Number::negate(largest),
                };
                [(Opcode::Minimum, largest), (Opcode::Maximum, smallest)]
                    .into_iter()
                    .find_map(|(o, x)| (o == op).then_some(x))
            }

            fn combine<W: With<Self>>(op: Opcode, with: W) -> Option<W::Output> {
                dispatch!(op, with;
                    Add => $through!($t, |a, b| Number::add(a, b)),
                    Multiply => $through!($t, |a, b| Number::multiply(a, b)),
                    Minimum => $through!($t, |a, b| Float::minimum(a, b)),
                    Maximum => $through!($t, |a, b| Float::maximum(a, b)))
            }
        }
    )*};
}

macro_rules! complexes {
    ($($t:ty),*) => {$(
        impl Combine for $t {
            fn identity(_op: Opcode) -> Option<Self> {
                None
            }

            fn combine<W: With<Self>>(op: Opcode, with: W) -> Option<W::Output> {
                dispatch!(op, with;
                    Add => |a, b| Number::add(a, b),
                    Multiply => |a, b| Number::multiply(a, b))
            }
        }
    )*};
}

/// A loop of its own for each operation: the types that programs sum a lot.
macro_rules! inlined {
    ($t:ty, $f:expr) => {
        $f
    };
}

/// One loop for all operations, through a pointer: the types that programs seldom reduce, or whose arithmetic
/// costs more than the call. Their loops would only take time to compile.
macro_rules! pointed {
    ($t:ty, $f:expr) => {
        $f as fn($t, $t) -> $t
    };
}

ints!(inlined: i32, i64, u32);
ints!(pointed: S1, S2, S4, i8, i16, U1, U2, U4, u8, u16, u64);
floats!(inlined: f32, f64);
floats!(pointed: f16, bf16, F8E5M2, F8E4M3, F8E4M3FN, F8E4M3B11FNUZ, F8E3M4, F8E5M2FNUZ, F8E4M3FNUZ, F8E8M0FNU, F4E2M1FN, F6E3M2FN, F6E2M3FN);
complexes!(Complex<f32>, Complex<f64>);

impl Combine for bool {
    fn identity(op: Opcode) -> Option<Self> {
        [
            (Opcode::Add, false),
            (Opcode::Multiply, true),
            (Opcode::Minimum, true),
            (Opcode::Maximum, false),
            (Opcode::And, true),
            (Opcode::Or, false),
            (Opcode::Xor, false),
        ]
        .into_iter()
        .find_map(|(o, x)| (o == op).then_some(x))
    }

    fn combine<W: With<Self>>(op: Opcode, with: W) -> Option<W::Output> {
        dispatch!(op, with;
            Add => |a, b| a | b,
            Multiply => |a, b| a & b,
            Minimum => |a, b| a & b,
            Maximum => |a, b| a | b,
            And => |a, b| a & b,
            Or => |a, b| a | b,
            Xor => |a, b| a ^ b)
    }
}
