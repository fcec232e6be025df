//! Custom calls of JAX that are neither LAPACK's nor a solver's.

use hlo::{ArrayShape, ElementType, Opcode, Shape, UNBOUNDED};

use super::Refusal;
use super::body::{Body, Built};
use crate::custom_call::{Call, NOT_ONE_ARRAY, has_static_sizes};
use crate::error::Result;
use crate::ops::Cx;
use crate::value::{Tensor, Value, sizes};

/// `cu_threefry2x32_ffi(key 0, key 1, counter 0, counter 1)`: the two words of Threefry-2x32 with 20 rounds,
/// elementwise.
pub(super) fn threefry2x32(body: &mut Body<'_>) -> Built {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    const PARITY: u32 = 0x1bd1_1bda;
    let [k0, k1, mut x, mut y] = [body.operand(0)?, body.operand(1)?, body.operand(2)?, body.operand(3)?];
    let k2 = body.binary(Opcode::Xor, k0, k1)?;
    let k2 = body.with(Opcode::Xor, k2, f64::from(PARITY))?;
    let keys = [k0, k1, k2];
    x = body.add(x, k0)?;
    y = body.add(y, k1)?;
    for round in 0..5 {
        for rotation in ROTATIONS[round % 2] {
            x = body.add(x, y)?;
            let left = body.with(Opcode::ShiftLeft, y, f64::from(rotation))?;
            let right = body.with(Opcode::ShiftRightLogical, y, f64::from(32 - rotation))?;
            y = body.binary(Opcode::Or, left, right)?;
            y = body.binary(Opcode::Xor, x, y)?;
        }
        x = body.add(x, keys[(round + 1) % 3])?;
        y = body.add(y, keys[(round + 2) % 3])?;
        y = body.with(Opcode::Add, y, round as f64 + 1.0)?;
    }
    body.results(&[x, y])
}

/// An elementwise operation that a dialect of MLIR has under another name.
pub(super) fn unary(body: &mut Body<'_>) -> Built {
    let x = body.operand(0)?;
    let name = body.call.target().rsplit('.').next().unwrap_or_default();
    let opcode = match name {
        "acos" => Opcode::Acos,
        "acosh" => Opcode::Acosh,
        "asin" => Opcode::Asin,
        "asinh" => Opcode::Asinh,
        "atanh" => Opcode::Atanh,
        "cosh" => Opcode::Cosh,
        "erf" => Opcode::Erf,
        "sinh" => Opcode::Sinh,
        "tan" => Opcode::Tan,
        other => return Err(Refusal(format!("for {other}"))),
    };
    let y = body.unary(opcode, x)?;
    body.results(&[y])
}

/// Refuses a call that [`lu_pivots_to_permutation`] refuses whatever the sizes at run time.
pub(super) fn check_pivots(call: &Call<'_>) -> Result<()> {
    let operands: Vec<&Shape> = call.operands().collect();
    let ([Shape::Array(pivots)], Shape::Array(shape)) = (&operands[..], &call.instruction.shape) else {
        return Err(call.unsupported(NOT_ONE_ARRAY));
    };
    if !operands.into_iter().chain([&call.instruction.shape]).all(has_static_sizes) {
        return Ok(());
    }
    permutes(call, pivots, shape).map(drop)
}

/// Batches and lengths of the pivots that a call makes permutations of.
fn permutes(call: &Call<'_>, pivots: &ArrayShape, shape: &ArrayShape) -> Result<(usize, usize, usize)> {
    let (own, wanted) = (sizes(&pivots.dims), sizes(&shape.dims));
    let (Some((&k, batch)), Some((&n, rows))) = (own.split_last(), wanted.split_last()) else {
        return Err(call.unsupported("of a scalar"));
    };
    if batch != rows || k > n || shape.element_type != ElementType::S32 {
        let pivots = pivots.without_layout();
        return Err(call.unsupported(&format!("of {pivots} with the result {shape}")));
    }
    Ok((batch.iter().product(), k, n))
}

/// `cu_lu_pivots_to_permutation(pivots)`: the permutation that exchanging row `i` with row `pivots[i]`, for
/// each `i` in order, makes of `0, 1, ...`; pivots count from 0. One that is no row exchanges nothing, as in
/// JAX's kernel.
pub(super) fn lu_pivots_to_permutation(_: &Cx<'_>, call: &Call<'_>, args: &[Value]) -> Result<Value> {
    let ([Value::Array(pivots)], Shape::Array(shape)) = (args, &call.instruction.shape) else {
        return Err(call.unsupported(NOT_ONE_ARRAY));
    };
    let given = ArrayShape::new(pivots.element_type(), pivots.dims());
    let (batch, k, n) = permutes(call, &given, shape)?;
    let mut all = Vec::with_capacity(batch * n);
    for line in 0..batch {
        let mut permutation: Vec<i32> = (0..n).map(|i| i as i32).collect();
        for i in 0..k {
            if let Some(with) = usize::try_from(pivots.index_at(line * k + i)).ok().filter(|&with| with < n) {
                permutation.swap(i, with);
            }
        }
        all.extend(permutation);
    }
    Ok(Tensor::from_vec(shape.dims.clone(), all).into())
}

const NO_CONDITION: &str = "without a condition";

/// Refuses an assertion whose condition is not one element.
pub(super) fn check_assertion(call: &Call<'_>) -> Result<()> {
    let one = |x: &ArrayShape| x.is_dynamic() || x.dims.iter().all(|&d| d == 1 || d == UNBOUNDED);
    let condition = call.operands().next().and_then(Shape::as_array);
    if condition.is_some_and(one) { Ok(()) } else { Err(call.unsupported(NO_CONDITION)) }
}

/// Whatever is printed.
pub(super) fn check_silent(_: &Call<'_>) -> Result<()> {
    Ok(())
}

/// `shape_assertion(condition, ...)`, `__xla_gpu_assert(condition)`: stops the program if the condition is
/// false.
pub(super) fn assertion(cx: &Cx<'_>, call: &Call<'_>, args: &[Value]) -> Result<Value> {
    let condition = args.first().and_then(Value::as_array).filter(|x| x.len() == 1);
    let Some(condition) = condition else { return Err(call.unsupported(NO_CONDITION)) };
    if condition.index_at(0) == 0 {
        return Err(call.trap(format_args!("the assertion does not hold {}", call.backend_config())));
    }
    cx.session.zeros(cx.instr, &cx.instr.shape)
}

/// `__xla_gpu_debug_print`: says something on the way, and has no value.
pub(super) fn silent(cx: &Cx<'_>, _: &Call<'_>, _: &[Value]) -> Result<Value> {
    cx.session.zeros(cx.instr, &cx.instr.shape)
}
