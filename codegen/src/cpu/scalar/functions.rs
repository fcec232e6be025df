//! Functions that are not exact, on `f32` and `f64`: emitted where that is done, otherwise calls of the runtime ([`crate::runtime::functions`]).

use super::kind::{Binary, Function};
use crate::cpu::llvm::{Emit, Prim, Result, Value};
use crate::runtime::functions::symbol;

/// A function of one operand, of `f32` or `f64`.
pub(super) fn unary<'ctx>(e: &Emit<'_, 'ctx>, function: Function, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let prim = e.prim_of(x);
    match function {
        Function::Sqrt => return e.intrinsic("llvm.sqrt", &[x.get_type()], &[x]),
        Function::Acos
        | Function::Acosh
        | Function::Asin
        | Function::Asinh
        | Function::Atanh
        | Function::Cbrt
        | Function::Cosine
        | Function::Cosh
        | Function::Erf
        | Function::Exponential
        | Function::ExponentialMinusOne
        | Function::Log
        | Function::LogPlusOne
        | Function::Logistic
        | Function::Rsqrt
        | Function::Sine
        | Function::Sinh
        | Function::Tan
        | Function::Tanh => {}
    }
    call(e, &symbol(function.opcode(), suffix(prim)), prim, &[x])
}

/// `a^b`.
pub(super) fn power<'ctx>(e: &Emit<'_, 'ctx>, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
    let prim = e.prim_of(a);
    call(e, &symbol(Binary::Power.opcode(), suffix(prim)), prim, &[a, b])
}

/// The angle of the point (b, a).
pub(super) fn atan2<'ctx>(e: &Emit<'_, 'ctx>, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
    let prim = e.prim_of(a);
    call(e, &symbol(Binary::Atan2.opcode(), suffix(prim)), prim, &[a, b])
}

fn suffix(prim: Prim) -> &'static str {
    if prim == Prim::F32 { "f32" } else { "f64" }
}

/// Calls a function of the runtime for each lane.
fn call<'ctx>(
    e: &Emit<'_, 'ctx>,
    symbol: &str,
    result: Prim,
    operands: &[Value<'ctx>],
) -> Result<Value<'ctx>> {
    e.each_lane(operands, result, |e, lane| e.external(symbol, result, lane))
}
