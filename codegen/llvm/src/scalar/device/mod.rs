//! What a GPU has in place of the functions of the runtime (`hlo_codegen::runtime::functions`), which there
//! is no host to call for: internal functions of the module, emitted where they are first needed, of scalars.
//!
//! The algorithms are the interpreter's (`hlo_arithmetic::scalar`), in double-double arithmetic, so results
//! are the correctly rounded ones but for what is closer than 2^-90 to a tie, and special values are the
//! same.

mod angle;
mod complex;
mod dd;
mod inverse;
mod ops;
mod real;
mod remainder;

use hlo::elementwise::{Binary, Function};

use self::complex::{Parts, Point};
use self::ops::{Body, Num, function};
use super::functions::{Digits, of_reduced_angle};
use crate::{Emit, Error, Prim, Result, Value};

fn rounded<'o, 'ctx>(parts: Parts<'o, 'ctx>) -> [Num<'o, 'ctx>; 2] {
    parts.map(dd::Wide::to_f64)
}

/// A complex function as the body of a device function.
macro_rules! body {
    ($f:path) => {
        |_, [re, im]| rounded($f(Point { re, im }))
    };
}

macro_rules! body_of_two {
    ($f:path) => {
        |_, [a, b, c, d]| rounded($f(Point { re: a, im: b }, Point { re: c, im: d }))
    };
}

/// A function of `f64` numbers on parts of either type.
fn on_parts<'ctx, const N: usize, const M: usize>(
    e: &Emit<'_, 'ctx>,
    name: &str,
    operands: [Value<'ctx>; N],
    body: Body<'ctx, N, M>,
) -> Result<[Value<'ctx>; M]> {
    let prim = e.prim_of(operands[0]);
    let mut wide = operands;
    for x in &mut wide {
        *x = e.fpext(*x, Prim::F64)?;
    }
    let mut results = function(e, name, wide, body)?;
    for x in &mut results {
        *x = e.fptrunc(*x, prim)?;
    }
    Ok(results)
}

/// A function of a complex number.
pub(super) fn unary<'ctx>(e: &Emit<'_, 'ctx>, f: Function, z: [Value<'ctx>; 2]) -> Result<[Value<'ctx>; 2]> {
    let body: Body<'ctx, 2, 2> = match f {
        Function::Acos => body!(inverse::acos),
        Function::Acosh => body!(inverse::acosh),
        Function::Asin => body!(inverse::asin),
        Function::Asinh => body!(inverse::asinh),
        Function::Atanh => body!(inverse::atanh),
        Function::Cbrt => body!(complex::cbrt),
        Function::Cosh => body!(complex::cosh),
        Function::Cosine => body!(complex::cosine),
        Function::Exponential => body!(complex::exponential),
        Function::ExponentialMinusOne => body!(complex::exponential_minus_one),
        Function::Log => body!(complex::log),
        Function::LogPlusOne => body!(complex::log_plus_one),
        Function::Logistic => body!(complex::logistic),
        Function::Rsqrt => body!(complex::rsqrt),
        Function::Sine => body!(complex::sine),
        Function::Sinh => body!(complex::sinh),
        Function::Sqrt => body!(complex::sqrt),
        Function::Tan => body!(complex::tan),
        Function::Tanh => body!(complex::tanh),
        Function::Erf => return Err(Error::Llvm("there is no error function of complex numbers".into())),
    };
    on_parts(e, &format!("complex_{}", symbol(f.opcode())), z, body)
}

/// `sign`: `z / |z|`.
pub(super) fn sign<'ctx>(e: &Emit<'_, 'ctx>, z: [Value<'ctx>; 2]) -> Result<[Value<'ctx>; 2]> {
    on_parts(e, "complex_sign", z, body!(complex::sign))
}

/// `abs`
pub(super) fn modulus<'ctx>(e: &Emit<'_, 'ctx>, z: [Value<'ctx>; 2]) -> Result<Value<'ctx>> {
    let [modulus] = on_parts(e, "complex_abs", z, |_, [re, im]| [real::hypot(re, im)])?;
    Ok(modulus)
}

/// An operation of two complex numbers.
pub(super) fn binary<'ctx>(
    e: &Emit<'_, 'ctx>,
    op: Binary,
    operands: [Value<'ctx>; 4],
) -> Result<[Value<'ctx>; 2]> {
    let body: Body<'ctx, 4, 2> = match op {
        Binary::Atan2 => body_of_two!(inverse::angle),
        Binary::Divide => body_of_two!(complex::divide),
        Binary::Multiply => body_of_two!(complex::multiply),
        Binary::Power => body_of_two!(inverse::power),
        Binary::Add
        | Binary::And
        | Binary::Maximum
        | Binary::Minimum
        | Binary::Mulhi
        | Binary::Or
        | Binary::Remainder
        | Binary::ShiftLeft
        | Binary::ShiftRightArithmetic
        | Binary::ShiftRightLogical
        | Binary::Subtract
        | Binary::Xor => {
            return Err(Error::Llvm(format!("{} needs no function of the device", op.opcode())));
        }
    };
    on_parts(e, &format!("complex_{}", symbol(op.opcode())), operands, body)
}

fn symbol(opcode: hlo::Opcode) -> String {
    opcode.name().replace('-', "_")
}

/// C's `fmod` of `f64` scalars.
pub(super) fn remainder<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, y: Value<'ctx>) -> Result<Value<'ctx>> {
    let [rest] = function(e, "remainder_f64", [x, y], remainder::remainder)?;
    Ok(rest)
}

/// Sine, cosine or tangent of an angle of any magnitude, a scalar of `f32` or `f64`: of `f32` numbers in
/// `f64`.
pub(super) fn of_angle<'ctx>(e: &Emit<'_, 'ctx>, f: Function, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let body: Body<'ctx, 1, 1> = match f {
        Function::Sine => |_, [x]| of_any_angle(Function::Sine, x),
        Function::Cosine => |_, [x]| of_any_angle(Function::Cosine, x),
        Function::Tan => |_, [x]| of_any_angle(Function::Tan, x),
        Function::Acos
        | Function::Acosh
        | Function::Asin
        | Function::Asinh
        | Function::Atanh
        | Function::Cbrt
        | Function::Cosh
        | Function::Erf
        | Function::Exponential
        | Function::ExponentialMinusOne
        | Function::Log
        | Function::LogPlusOne
        | Function::Logistic
        | Function::Rsqrt
        | Function::Sinh
        | Function::Sqrt
        | Function::Tanh => return Err(Error::Llvm(format!("{} is of no angle", f.opcode()))),
    };
    let [value] = on_parts(e, &format!("{}_of_any_angle", symbol(f.opcode())), [x], body)?;
    Ok(value)
}

fn of_any_angle<'o, 'ctx>(f: Function, x: Num<'o, 'ctx>) -> [Num<'o, 'ctx>; 1] {
    let angle = angle::reduce(x);
    let value = x.ops.emit(|e| {
        let quadrant = e.fptosi(angle.quadrant.value, Prim::I32)?;
        let quadrant = e.zext(quadrant, Prim::I64)?;
        of_reduced_angle(e, f, [angle.rest.hi.value, angle.rest.lo.value], quadrant, Digits::All)
    });
    [x.is_finite().pick(value, x.ops.nan())]
}
