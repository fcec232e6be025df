//! Kernels: one operation over slices of one element type.
//!
//! A kernel is a loop compiled for one operation and one type; [`Lane`] finds it by their names. The loops
//! know nothing of shapes, threads or blocks: the drivers in the parent module and the bytecode of
//! [`crate::region`] share them.

use hlo::attrs::Direction;
use hlo::elementwise::{Binary, Function, Unary};
use hlo::half::{bf16, f16};
use hlo::literal::BufferOf;
use hlo::num_complex::Complex;
use hlo::small_float::{
    F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ,
    F8E8M0FNU,
};
use hlo::small_int::{S1, S2, S4, U1, U2, U4};

use hlo_arithmetic::scalar::{self, ComplexNumber, Elementary, Float, Int, Number, Scalar};

/// A kernel of one operand.
pub(crate) type K1<A, O> = fn(&[A], &mut [O]);
/// A kernel of two operands.
pub(crate) type K2<A, O> = fn(&[A], &[A], &mut [O]);
/// A kernel of three operands.
pub(crate) type K3<A, O> = fn(&[A], &[A], &[A], &mut [O]);

/// A kernel of one operand, or that of `f64` for a type that is computed in it and rounded.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernel1<T> {
    /// Of the type itself.
    Own(K1<T, T>),
    /// Of `f64`.
    Wide(K1<f64, f64>),
}

/// A kernel of two operands, as [`Kernel1`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernel2<T> {
    /// Of the type itself.
    Own(K2<T, T>),
    /// Of `f64`.
    Wide(K2<f64, f64>),
}

/// Elements that are widened at a time.
const BLOCK: usize = 256;

impl<T: Scalar> Kernel1<T> {
    /// Applies the kernel along slices of one length.
    pub(crate) fn run(&self, a: &[T], out: &mut [T]) {
        match self {
            Kernel1::Own(kernel) => kernel(a, out),
            Kernel1::Wide(kernel) => {
                let (mut x, mut y) = ([0.0; BLOCK], [0.0; BLOCK]);
                for (a, out) in a.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
                    let n = a.len();
                    each1(a, &mut x[..n], |a| scalar::convert::<T, f64>(a));
                    kernel(&x[..n], &mut y[..n]);
                    each1(&y[..n], out, T::from_f64);
                }
            }
        }
    }
}

impl<T: Scalar> Kernel2<T> {
    /// Applies the kernel along slices of one length.
    pub(crate) fn run(&self, a: &[T], b: &[T], out: &mut [T]) {
        match self {
            Kernel2::Own(kernel) => kernel(a, b, out),
            Kernel2::Wide(kernel) => {
                let (mut x, mut y, mut z) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
                for ((a, b), out) in a.chunks(BLOCK).zip(b.chunks(BLOCK)).zip(out.chunks_mut(BLOCK)) {
                    let n = a.len();
                    each1(a, &mut x[..n], |a| scalar::convert::<T, f64>(a));
                    each1(b, &mut y[..n], |b| scalar::convert::<T, f64>(b));
                    kernel(&x[..n], &y[..n], &mut z[..n]);
                    each1(&z[..n], out, T::from_f64);
                }
            }
        }
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

/// An element type and its kernels. `None`: the type has no such operation.
pub(crate) trait Lane: BufferOf + Scalar<Carrier: BufferOf> {
    /// The type of a real part.
    type Part: BufferOf;

    /// Functions that are not exact.
    fn function(f: Function) -> Option<Kernel1<Self>>;
    /// Operations whose result has the type of their operand. `Abs` only of real numbers.
    fn unary(op: Unary) -> Option<Kernel1<Self>>;
    /// Operations whose result has the type of their operands.
    fn binary(op: Binary) -> Option<Kernel2<Self>>;
    /// Comparisons; `total` by the total order of floats.
    fn compare(direction: Direction, total: bool) -> Option<K2<Self, bool>>;
    /// Parts of complex numbers.
    fn part(part: Part) -> Option<K1<Self, Self::Part>>;
    /// From parts.
    fn from_parts() -> Option<K2<Self::Part, Self>>;
    /// Whether a float is neither infinite nor NaN.
    fn is_finite() -> Option<K1<Self, bool>>;
    /// `clamp` of (low, x, high).
    fn clamp() -> Option<K3<Self, Self>>;
    /// `reduce-precision`, of one element.
    fn reduce_precision() -> Option<fn(Self, u32, u32) -> Self>;
}

/// Applies `f` along slices of one length.
#[inline(always)]
fn each1<A: Copy, O>(a: &[A], out: &mut [O], f: impl Fn(A) -> O) {
    for (o, &a) in out.iter_mut().zip(a) {
        *o = f(a);
    }
}

#[inline(always)]
fn each2<A: Copy, O>(a: &[A], b: &[A], out: &mut [O], f: impl Fn(A, A) -> O) {
    for ((o, &a), &b) in out.iter_mut().zip(a).zip(b) {
        *o = f(a, b);
    }
}

#[inline(always)]
fn each3<A: Copy, O>(a: &[A], b: &[A], c: &[A], out: &mut [O], f: impl Fn(A, A, A) -> O) {
    for (((o, &a), &b), &c) in out.iter_mut().zip(a).zip(b).zip(c) {
        *o = f(a, b, c);
    }
}

macro_rules! k1 {
    ($f:expr) => {
        Some(|a, o| each1(a, o, $f))
    };
}

macro_rules! k2 {
    ($f:expr) => {
        Some(|a, b, o| each2(a, b, o, $f))
    };
}

/// The comparison kernel of an ordered type, after a function to what is compared.
macro_rules! ordered {
    ($direction:expr, $key:expr) => {
        match $direction {
            Direction::Eq => k2!(|a, b| $key(a) == $key(b)),
            Direction::Ne => k2!(|a, b| $key(a) != $key(b)),
            Direction::Ge => k2!(|a, b| $key(a) >= $key(b)),
            Direction::Gt => k2!(|a, b| $key(a) > $key(b)),
            Direction::Le => k2!(|a, b| $key(a) <= $key(b)),
            Direction::Lt => k2!(|a, b| $key(a) < $key(b)),
        }
    };
}

fn int_unary<T: Int + Number>(op: Unary) -> Option<K1<T, T>> {
    match op {
        Unary::Abs => k1!(Int::abs),
        Unary::Negate => k1!(Number::negate),
        Unary::Sign => k1!(Number::sign),
        Unary::Not => k1!(Int::not),
        Unary::Popcnt => k1!(Int::popcnt),
        Unary::CountLeadingZeros => k1!(Int::count_leading_zeros),
        Unary::Ceil | Unary::Floor | Unary::RoundNearestAfz | Unary::RoundNearestEven => None,
    }
}

fn int_binary<T: Int + Number>(op: Binary) -> Option<K2<T, T>> {
    match op {
        Binary::Add => k2!(Number::add),
        Binary::Subtract => k2!(Number::subtract),
        Binary::Multiply => k2!(Number::multiply),
        Binary::Divide => k2!(Number::divide),
        Binary::Remainder => k2!(Number::remainder),
        Binary::Power => k2!(Number::power),
        Binary::Maximum => k2!(Int::maximum),
        Binary::Minimum => k2!(Int::minimum),
        Binary::Mulhi => k2!(Int::multiply_high),
        Binary::And => k2!(Int::and),
        Binary::Or => k2!(Int::or),
        Binary::Xor => k2!(Int::xor),
        Binary::ShiftLeft => k2!(Int::shift_left),
        Binary::ShiftRightArithmetic => k2!(Int::shift_right_arithmetic),
        Binary::ShiftRightLogical => k2!(Int::shift_right_logical),
        Binary::Atan2 => None,
    }
}

fn pred_unary(op: Unary) -> Option<K1<bool, bool>> {
    match op {
        Unary::Not => k1!(|a: bool| !a),
        Unary::Abs | Unary::Sign | Unary::Popcnt => k1!(|a| a),
        Unary::Negate => k1!(Number::negate),
        Unary::CountLeadingZeros
        | Unary::Ceil
        | Unary::Floor
        | Unary::RoundNearestAfz
        | Unary::RoundNearestEven => None,
    }
}

fn pred_binary(op: Binary) -> Option<K2<bool, bool>> {
    match op {
        Binary::Add => k2!(Number::add),
        Binary::Subtract => k2!(Number::subtract),
        Binary::Multiply => k2!(Number::multiply),
        Binary::Divide => k2!(Number::divide),
        Binary::Remainder => k2!(Number::remainder),
        Binary::Power => k2!(Number::power),
        Binary::Maximum | Binary::Or => k2!(|a, b| a | b),
        Binary::Minimum | Binary::And => k2!(|a, b| a & b),
        Binary::Xor => k2!(|a, b| a ^ b),
        Binary::Mulhi
        | Binary::ShiftLeft
        | Binary::ShiftRightArithmetic
        | Binary::ShiftRightLogical
        | Binary::Atan2 => None,
    }
}

fn float_unary<T: Float + Elementary>(op: Unary) -> Option<K1<T, T>> {
    match op {
        Unary::Abs => k1!(Float::abs),
        Unary::Ceil => k1!(Float::ceil),
        Unary::Floor => k1!(Float::floor),
        Unary::RoundNearestAfz => k1!(Float::round_nearest_afz),
        Unary::RoundNearestEven => k1!(Float::round_nearest_even),
        Unary::Negate => k1!(Number::negate),
        Unary::Sign => k1!(Number::sign),
        Unary::Not | Unary::Popcnt | Unary::CountLeadingZeros => None,
    }
}

fn real_function<T: Float + Elementary>(f: Function) -> Option<K1<T, T>> {
    if f == Function::Erf { k1!(Float::erf) } else { elementary(f) }
}

/// What real and complex floating-point types have in common.
fn elementary<T: Elementary>(f: Function) -> Option<K1<T, T>> {
    match f {
        Function::Acos => k1!(Elementary::acos),
        Function::Acosh => k1!(Elementary::acosh),
        Function::Asin => k1!(Elementary::asin),
        Function::Asinh => k1!(Elementary::asinh),
        Function::Atanh => k1!(Elementary::atanh),
        Function::Cbrt => k1!(Elementary::cbrt),
        Function::Cosine => k1!(Elementary::cosine),
        Function::Cosh => k1!(Elementary::cosh),
        Function::Exponential => k1!(Elementary::exponential),
        Function::ExponentialMinusOne => k1!(Elementary::exponential_minus_one),
        Function::Log => k1!(Elementary::log),
        Function::LogPlusOne => k1!(Elementary::log_plus_one),
        Function::Logistic => k1!(Elementary::logistic),
        Function::Rsqrt => k1!(Elementary::rsqrt),
        Function::Sine => k1!(Elementary::sine),
        Function::Sinh => k1!(Elementary::sinh),
        Function::Sqrt => k1!(Elementary::sqrt),
        Function::Tan => k1!(Elementary::tan),
        Function::Tanh => k1!(Elementary::tanh),
        Function::Erf => None,
    }
}

fn complex_unary<T: Number>(op: Unary) -> Option<K1<T, T>> {
    match op {
        Unary::Negate => k1!(Number::negate),
        Unary::Sign => k1!(Number::sign),
        Unary::Abs
        | Unary::Ceil
        | Unary::Floor
        | Unary::RoundNearestAfz
        | Unary::RoundNearestEven
        | Unary::Not
        | Unary::Popcnt
        | Unary::CountLeadingZeros => None,
    }
}

fn float_binary<T: Float + Elementary>(op: Binary) -> Option<K2<T, T>> {
    match op {
        Binary::Maximum => k2!(Float::maximum),
        Binary::Minimum => k2!(Float::minimum),
        Binary::Add
        | Binary::Subtract
        | Binary::Multiply
        | Binary::Divide
        | Binary::Remainder
        | Binary::Power
        | Binary::Atan2 => elementary_binary(op),
        Binary::Mulhi
        | Binary::And
        | Binary::Or
        | Binary::Xor
        | Binary::ShiftLeft
        | Binary::ShiftRightArithmetic
        | Binary::ShiftRightLogical => None,
    }
}

fn elementary_binary<T: Elementary>(op: Binary) -> Option<K2<T, T>> {
    match op {
        Binary::Add => k2!(Number::add),
        Binary::Subtract => k2!(Number::subtract),
        Binary::Multiply => k2!(Number::multiply),
        Binary::Divide => k2!(Number::divide),
        Binary::Remainder => k2!(Number::remainder),
        Binary::Power => k2!(Number::power),
        Binary::Atan2 => k2!(Elementary::atan2),
        Binary::Maximum
        | Binary::Minimum
        | Binary::Mulhi
        | Binary::And
        | Binary::Or
        | Binary::Xor
        | Binary::ShiftLeft
        | Binary::ShiftRightArithmetic
        | Binary::ShiftRightLogical => None,
    }
}

fn float_compare<T: Float>(direction: Direction, total: bool) -> Option<K2<T, bool>> {
    if total {
        ordered!(direction, Float::total_order_key)
    } else {
        ordered!(direction, std::convert::identity)
    }
}

/// A real number's parts: itself and zero.
fn real_part<T: Number>(part: Part) -> Option<K1<T, T>> {
    match part {
        Part::Real => k1!(|a| a),
        Part::Imaginary => k1!(|_| T::zero()),
        Part::Modulus => None,
    }
}

impl Lane for bool {
    type Part = bool;

    fn function(_f: Function) -> Option<Kernel1<bool>> {
        None
    }

    fn unary(op: Unary) -> Option<Kernel1<bool>> {
        pred_unary(op).map(Kernel1::Own)
    }

    fn binary(op: Binary) -> Option<Kernel2<bool>> {
        pred_binary(op).map(Kernel2::Own)
    }

    fn compare(direction: Direction, _total: bool) -> Option<K2<bool, bool>> {
        ordered!(direction, std::convert::identity)
    }

    fn part(part: Part) -> Option<K1<bool, bool>> {
        real_part(part)
    }

    fn from_parts() -> Option<K2<bool, bool>> {
        None
    }

    fn is_finite() -> Option<K1<bool, bool>> {
        None
    }

    fn clamp() -> Option<K3<bool, bool>> {
        Some(|low, x, high, o| each3(low, x, high, o, |low, x, high| (x | low) & high))
    }

    fn reduce_precision() -> Option<fn(bool, u32, u32) -> bool> {
        None
    }
}

macro_rules! int_lanes {
    ($($t:ty),*) => {$(
        impl Lane for $t {
            type Part = $t;

            fn function(_f: Function) -> Option<Kernel1<$t>> {
                None
            }

            fn unary(op: Unary) -> Option<Kernel1<$t>> {
                int_unary(op).map(Kernel1::Own)
            }

            fn binary(op: Binary) -> Option<Kernel2<$t>> {
                int_binary(op).map(Kernel2::Own)
            }

            fn compare(direction: Direction, _total: bool) -> Option<K2<$t, bool>> {
                ordered!(direction, std::convert::identity)
            }

            fn part(part: Part) -> Option<K1<$t, $t>> {
                real_part(part)
            }

            fn from_parts() -> Option<K2<$t, $t>> {
                None
            }

            fn is_finite() -> Option<K1<$t, bool>> {
                None
            }

            fn clamp() -> Option<K3<$t, $t>> {
                Some(|low, x, high, o| each3(low, x, high, o, |low, x, high| Int::clamp_between(x, low, high)))
            }

            fn reduce_precision() -> Option<fn($t, u32, u32) -> $t> {
                None
            }
        }
    )*};
}

int_lanes!(S1, S2, S4, i8, i16, i32, i64, U1, U2, U4, u8, u16, u32, u64);

/// Kernels of the types that have their own.
mod own {
    use super::*;

    pub(super) fn function<T: Float + Elementary>(f: Function) -> Option<Kernel1<T>> {
        real_function(f).map(Kernel1::Own)
    }

    pub(super) fn unary<T: Float + Elementary>(op: Unary) -> Option<Kernel1<T>> {
        float_unary(op).map(Kernel1::Own)
    }

    pub(super) fn binary<T: Float + Elementary>(op: Binary) -> Option<Kernel2<T>> {
        float_binary(op).map(Kernel2::Own)
    }
}

/// Kernels of the 16-bit types: arithmetic of their own, functions through `f64`, as [`scalar`] defines both.
mod half {
    use super::*;

    pub(super) use super::narrow::{function, unary};

    pub(super) fn binary<T: Float + Elementary>(op: Binary) -> Option<Kernel2<T>> {
        match op {
            Binary::Remainder | Binary::Power | Binary::Atan2 => narrow::binary(op),
            Binary::Add
            | Binary::Subtract
            | Binary::Multiply
            | Binary::Divide
            | Binary::Maximum
            | Binary::Minimum
            | Binary::Mulhi
            | Binary::And
            | Binary::Or
            | Binary::Xor
            | Binary::ShiftLeft
            | Binary::ShiftRightArithmetic
            | Binary::ShiftRightLogical => own::binary(op),
        }
    }
}

/// Kernels of the types of a byte and less: all but the operations on the sign bit through `f64`, as
/// [`scalar`] defines them.
mod narrow {
    use super::*;

    pub(super) fn function<T: Float + Elementary>(f: Function) -> Option<Kernel1<T>> {
        real_function(f).map(Kernel1::Wide)
    }

    pub(super) fn unary<T: Float + Elementary>(op: Unary) -> Option<Kernel1<T>> {
        match op {
            Unary::Negate => Some(Kernel1::Own(|a, o| each1(a, o, Number::negate))),
            Unary::Abs => Some(Kernel1::Own(|a, o| each1(a, o, Float::abs))),
            Unary::Ceil
            | Unary::CountLeadingZeros
            | Unary::Floor
            | Unary::Not
            | Unary::Popcnt
            | Unary::RoundNearestAfz
            | Unary::RoundNearestEven
            | Unary::Sign => float_unary(op).map(Kernel1::Wide),
        }
    }

    pub(super) fn binary<T>(op: Binary) -> Option<Kernel2<T>> {
        float_binary(op).map(Kernel2::Wide)
    }
}

macro_rules! float_lanes {
    ($kernels:ident: $($t:ty),*) => {$(
        impl Lane for $t {
            type Part = $t;

            fn function(f: Function) -> Option<Kernel1<$t>> {
                $kernels::function(f)
            }

            fn unary(op: Unary) -> Option<Kernel1<$t>> {
                $kernels::unary(op)
            }

            fn binary(op: Binary) -> Option<Kernel2<$t>> {
                $kernels::binary(op)
            }

            fn compare(direction: Direction, total: bool) -> Option<K2<$t, bool>> {
                float_compare(direction, total)
            }

            fn part(part: Part) -> Option<K1<$t, $t>> {
                real_part(part)
            }

            fn from_parts() -> Option<K2<$t, $t>> {
                None
            }

            fn is_finite() -> Option<K1<$t, bool>> {
                k1!(Float::is_finite)
            }

            fn clamp() -> Option<K3<$t, $t>> {
                Some(|low, x, high, o| each3(low, x, high, o, |low, x, high| Float::clamp_between(x, low, high)))
            }

            fn reduce_precision() -> Option<fn($t, u32, u32) -> $t> {
                Some(scalar::reduce_precision::<$t>)
            }
        }
    )*};
}

float_lanes!(own: f32, f64);
float_lanes!(half: f16, bf16);
float_lanes!(
    narrow: F8E5M2,
    F8E4M3,
    F8E4M3FN,
    F8E4M3B11FNUZ,
    F8E3M4,
    F8E5M2FNUZ,
    F8E4M3FNUZ,
    F8E8M0FNU,
    F4E2M1FN,
    F6E3M2FN,
    F6E2M3FN
);

macro_rules! complex_lanes {
    ($($part:ty),*) => {$(
        impl Lane for Complex<$part> {
            type Part = $part;

            fn function(f: Function) -> Option<Kernel1<Self>> {
                elementary(f).map(Kernel1::Own)
            }

            fn unary(op: Unary) -> Option<Kernel1<Self>> {
                complex_unary(op).map(Kernel1::Own)
            }

            fn binary(op: Binary) -> Option<Kernel2<Self>> {
                // The two that take one of their operands are no arithmetic.
                let kernel: Option<K2<Self, Self>> = if op == Binary::Maximum {
                    k2!(ComplexNumber::maximum)
                } else if op == Binary::Minimum {
                    k2!(ComplexNumber::minimum)
                } else {
                    elementary_binary(op)
                };
                kernel.map(Kernel2::Own)
            }

            fn compare(direction: Direction, _total: bool) -> Option<K2<Self, bool>> {
                match direction {
                    Direction::Eq => k2!(|a, b| a == b),
                    Direction::Ne => k2!(|a, b| a != b),
                    Direction::Ge | Direction::Gt | Direction::Le | Direction::Lt => None,
                }
            }

            fn part(part: Part) -> Option<K1<Self, $part>> {
                match part {
                    Part::Real => k1!(ComplexNumber::real),
                    Part::Imaginary => k1!(ComplexNumber::imag),
                    Part::Modulus => k1!(ComplexNumber::modulus),
                }
            }

            fn from_parts() -> Option<K2<$part, Self>> {
                k2!(ComplexNumber::from_parts)
            }

            fn is_finite() -> Option<K1<Self, bool>> {
                None
            }

            fn clamp() -> Option<K3<Self, Self>> {
                Some(|low, x, high, o| {
                    each3(low, x, high, o, |low, x, high| ComplexNumber::clamp_between(x, low, high))
                })
            }

            fn reduce_precision() -> Option<fn(Self, u32, u32) -> Self> {
                None
            }
        }
    )*};
}

complex_lanes!(f32, f64);
