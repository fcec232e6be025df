//! Numbers with a scale for each block of the last dimension
//! (`xla/backends/gpu/transforms/block_scaling_rewriter.cc`, `BlockScaledDotBackendConfig`).

use hlo::attrs::SliceDim;
use hlo::{AttrKey, AttrValue, Attrs, ElementType, InstrId, Opcode};

use super::Refusal;
use super::body::{Body, Built};

/// `__op$quantize(x)`: results x divided by its scales, and the scales: the largest modulus of a block
/// divided by the power of two of the largest number of the quantized type.
pub(super) fn quantize(body: &mut Body<'_>) -> Built {
    let (quantized, scales) = (body.result(0)?, body.result(1)?);
    let x = body.operand(0)?;
    let ty = body.ty(x)?;
    let block = block_size(&quantized.dims, &scales.dims)?;
    let mut blocked = scales.dims.clone();
    blocked.push(block);
    let blocks = body.reshape(x, &blocked)?;
    let moduli = body.unary(Opcode::Abs, blocks)?;
    let largest = body.reduce(Opcode::Maximum, moduli, 0.0, &[scales.dims.len() as i64])?;
    let denominator = power_below(quantized.element_type)?;
    let scale = body.with(Opcode::Divide, largest, denominator)?;
    let scale = body.convert(scale, scales.element_type)?;
    let factor = body.convert(scale, ty)?;
    let factor = spread(body, factor, block)?;
    let x = body.binary(Opcode::Divide, x, factor)?;
    let x = body.convert(x, quantized.element_type)?;
    body.results(&[x, scale])
}

/// `__op$dequantize(x, scales)`: both converted to the result's type, and multiplied.
pub(super) fn dequantize(body: &mut Body<'_>) -> Built {
    let ty = body.result(0)?.element_type;
    let (x, scales) = (body.operand(0)?, body.operand(1)?);
    scaled(body, x, scales, None, ty)
}

/// `__op$block_scaled_dot(a, b, scales of a, [scales of b, [scale]])`: the last dimensions are contracted, a
/// first one of three is the batch.
pub(super) fn dot(body: &mut Body<'_>) -> Built {
    let ty = body.result(0)?.element_type;
    let config = body.config.field("block_scaled_dot_backend_config");
    let block = config.map(|c| c.int("block_size")).transpose()?;
    let (mut a, mut b) = (body.operand(0)?, body.operand(1)?);
    let scales = body.operand(2)?;
    a = scaled(body, a, scales, block, ty)?;
    if let Ok(scales) = body.operand(3) {
        b = scaled(body, b, scales, block, ty)?;
    }
    finish(body, a, b, ty)
}

/// `__cudnn$blockScaledDot` and `__cublas$lt$matmul$mx`: as the above with all four operands, but the scales
/// are stored in the order in which tensor cores read them: tiles of 128 rows and 4 columns, in a tile row
/// `32 i + j` at `j`, `i`.
pub(super) fn swizzled_dot(body: &mut Body<'_>) -> Built {
    let ty = body.result(0)?.element_type;
    let mut sides = [body.operand(0)?, body.operand(1)?];
    for (n, side) in sides.iter_mut().enumerate() {
        let scales = body.operand(n + 2)?;
        let dims = body.dims(scales)?;
        let [.., rows, columns] = dims[..] else { return Err(Refusal("with scales of such a rank".into())) };
        if rows % 128 != 0 || columns % 4 != 0 {
            return Err(Refusal(format!("with scales of dimensions {dims:?}")));
        }
        let batch: i64 = dims[..dims.len() - 2].iter().product();
        let tiles = body.reshape(scales, &[batch, rows / 128, columns / 4, 32, 4, 4])?;
        let rows_first = body.transpose(tiles, &[0, 1, 4, 3, 2, 5])?;
        let scales = body.reshape(rows_first, &dims)?;
        let columns_of = body.dims(*side)?.last().copied().unwrap_or(0);
        let block = match body.ty(*side)? {
            ElementType::F4E2M1FN => 16,
            _ => 32,
        };
        if columns_of > columns.saturating_mul(block) {
            return Err(Refusal(format!("with scales of dimensions {dims:?}")));
        }
        *side = scaled(body, *side, scales, Some(block), ElementType::F32)?;
    }
    finish(body, sides[0], sides[1], ty)
}

fn finish(body: &mut Body<'_>, a: InstrId, b: InstrId, ty: ElementType) -> Built {
    let (left, right) = (body.dims(a)?.len() as i64 - 1, body.dims(b)?.len() as i64 - 1);
    let batch: &[i64] = if left == 2 { &[0] } else { &[] };
    let mut x = body.dot(a, b, [&[left], &[right]], [batch, batch], ty)?;
    if let Ok(scale) = body.operand(4) {
        let scale = body.convert(scale, ty)?;
        x = body.multiply(x, scale)?;
    }
    body.results(&[x])
}

/// `x` times its scales; these may be padded beyond what `x` needs.
fn scaled(body: &mut Body<'_>, x: InstrId, scales: InstrId, block: Option<i64>, ty: ElementType) -> Built {
    let (dims, have) = (body.dims(x)?, body.dims(scales)?);
    if dims.len() != have.len() || dims.is_empty() {
        return Err(Refusal("with scales of another rank".into()));
    }
    let last = dims.len() - 1;
    let mut need = dims.clone();
    let block = match block {
        Some(block) if block > 0 => {
            need[last] = dims[last].div_euclid(block) + i64::from(dims[last] % block != 0);
            block
        }
        Some(block) => return Err(Refusal(format!("with block_size {block}"))),
        None => {
            need[last] = have[last];
            block_size(&dims, &have)?
        }
    };
    let scales = if need == have {
        scales
    } else {
        let slices: Vec<SliceDim> =
            need.iter().map(|&limit| SliceDim { start: 0, limit, stride: 1 }).collect();
        let attrs = Attrs::new().with(AttrKey::Slice, AttrValue::Slices(slices.into()));
        body.instr(Opcode::Slice, &[scales], attrs)?
    };
    let scales = body.convert(scales, ty)?;
    let mut factor = spread(body, scales, block)?;
    if body.dims(factor)?[last] != dims[last] {
        let slices: Vec<SliceDim> =
            dims.iter().map(|&limit| SliceDim { start: 0, limit, stride: 1 }).collect();
        let attrs = Attrs::new().with(AttrKey::Slice, AttrValue::Slices(slices.into()));
        factor = body.instr(Opcode::Slice, &[factor], attrs)?;
    }
    let x = body.convert(x, ty)?;
    body.multiply(x, factor)
}

/// Repeats each element of the last dimension.
fn spread(body: &mut Body<'_>, x: InstrId, times: i64) -> Built {
    let mut dims = body.dims(x)?;
    let same: Vec<i64> = (0..dims.len() as i64).collect();
    dims.push(times);
    let wide = body.broadcast(x, &dims, &same)?;
    dims.pop();
    if let Some(last) = dims.last_mut() {
        *last = last.checked_mul(times).ok_or_else(|| Refusal("of that size".into()))?;
    }
    body.reshape(wide, &dims)
}

fn block_size(x: &[i64], scales: &[i64]) -> Result<i64, Refusal> {
    match (x.last(), scales.last()) {
        (Some(&m), Some(&n)) if n > 0 && m > 0 && m % n == 0 => Ok(m / n),
        _ => Err(Refusal(format!("with scales of dimensions {scales:?} for {x:?}"))),
    }
}

/// The largest power of two in a float type.
fn power_below(ty: ElementType) -> Result<f64, Refusal> {
    let largest = super::body::largest(ty)?;
    Ok(f64::from_bits(largest.to_bits() & (0x7ff << 52)))
}
