//! Sine and cosine of `f32`.

use hlo::Opcode;

use super::{MAGIC, beyond, polynomial};
use crate::cpu::llvm::{Emit, FloatPredicate, Prim, Result, Value};

/// pi in three pieces of 24 bits, each rounded down: the first multiple of the argument is taken away exactly (what is left is less than 2 and a multiple
/// of 2^-23).
const PI: [f32; 3] = [3.141_592_5, 1.509_957_9e-7, 1.078_060_5e-14];
/// `(sin r - r) / r^3` in `r^2`, on `|r| <= 1.6`, 2^-31.
const SINE: [f64; 5] = [
    -0.1666666716337204,
    0.008333349600434303,
    -0.00019842898473143578,
    2.7614657938102027e-6,
    -2.5256577274035408e-8,
];
/// Beyond this the multiple of pi is no longer exact.
const LIMIT: f64 = 262_144.0;

/// `sin(x - k pi)` with the sign that `turns`, whose last bit counts, gives it.
fn reduced<'ctx>(
    e: &Emit<'_, 'ctx>,
    x: Value<'ctx>,
    k: Value<'ctx>,
    turns: Value<'ctx>,
) -> Result<Value<'ctx>> {
    let mut r = x;
    for part in PI {
        r = e.fma(k, e.f32(-part), r)?;
    }
    let square = e.fmul(r, r)?;
    let p = polynomial(e, square, &SINE)?;
    let sine = e.fma(e.fmul(square, r)?, p, r)?;
    let sign = e.shl(turns, e.i32(31))?;
    e.bitcast(e.xor(e.bitcast(sine, Prim::I32)?, sign)?, Prim::F32)
}

/// `sin x`: `k` is the integer nearest to `x / pi`.
pub(super) fn sine<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let sum = e.fma(x, e.f32(std::f32::consts::FRAC_1_PI), e.f32(MAGIC))?;
    let k = e.fsub(sum, e.f32(MAGIC))?;
    let fast = reduced(e, x, k, e.bitcast(sum, Prim::I32)?)?;
    // -0 of -0.
    let fast = e.select(e.fcmp(FloatPredicate::OEQ, x, e.f32(0.0))?, x, fast)?;
    beyond(e, Opcode::Sine, x, LIMIT, fast)
}

/// `cos x = -sin(x - pi/2)`: `k` is half an odd number.
pub(super) fn cosine<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let turns = e.fma(x, e.f32(std::f32::consts::FRAC_1_PI), e.f32(-0.5))?;
    let sum = e.fadd(turns, e.f32(MAGIC))?;
    let k = e.fadd(e.fsub(sum, e.f32(MAGIC))?, e.f32(0.5))?;
    let fast = reduced(e, x, k, e.not(e.bitcast(sum, Prim::I32)?)?)?;
    beyond(e, Opcode::Cosine, x, LIMIT, fast)
}
