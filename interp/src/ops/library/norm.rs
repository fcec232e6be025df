//! Layer normalization and softmax as library calls.
//!
//! Computed in `f32` (`f64` for `f64`): the mean and the variance, which is the mean of `(x - mean)^2`, are
//! sums rounded once and divided; every other operation rounds.

use hlo::{ElementType, InstrId, Opcode};

use super::Refusal;
use super::body::{Body, Built, compute_type};

/// `__cudnn$norm` (`CudnnNormBackendConfig`). Dimension 0 is the batch, all others are normalized. Forward:
/// operands x, scale, bias; results y and for `LAYER_FWD_TRAIN` mean and `rsqrt(variance + epsilon)`.
/// Backward: operands x, scale, gradient of y, mean, that factor; results the gradients of x, scale and bias.
pub(super) fn cudnn(body: &mut Body<'_>) -> Built {
    let config = body.config.get("cudnn_norm_backend_config");
    let epsilon = config.number("epsilon", 0.0)?;
    let kind = config.word("kind", "LAYER_FWD_INFER").to_owned();
    let ty = body.result(0)?.element_type;
    let wide = compute_type(ty);
    let x = body.operand(0)?;
    let rank = body.dims(x)?.len() as i64;
    let dims: Vec<i64> = (1..rank).collect();
    let x = body.convert(x, wide)?;
    let scale = spread(body, 1, x)?;
    match kind.as_str() {
        "LAYER_FWD_INFER" | "0" | "LAYER_FWD_TRAIN" | "1" => {
            let parts = layer(body, x, &dims, epsilon)?;
            let bias = spread(body, 2, x)?;
            let y = body.multiply(parts.normalized, scale)?;
            let y = body.add(y, bias)?;
            let mut results = vec![body.convert(y, ty)?];
            if kind == "LAYER_FWD_TRAIN" || kind == "1" {
                for (n, value) in [(1, parts.mean), (2, parts.factor)] {
                    let shape = body.result(n)?;
                    let value = body.reshape(value, &shape.dims)?;
                    results.push(body.convert(value, shape.element_type)?);
                }
            }
            body.results(&results)
        }
        "LAYER_BWD" | "2" => {
            let dy = body.operand(2)?;
            let dy = body.convert(dy, wide)?;
            let (mean, factor) = (spread(body, 3, x)?, spread(body, 4, x)?);
            let centred = body.binary(Opcode::Subtract, x, mean)?;
            let normalized = body.multiply(centred, factor)?;
            let product = body.multiply(dy, normalized)?;
            let g = body.multiply(dy, scale)?;
            let along = body.multiply(g, normalized)?;
            let mean_g = average(body, g, &dims)?;
            let mean_along = average(body, along, &dims)?;
            let (mean_g, mean_along) = (keep(body, mean_g, x, &dims)?, keep(body, mean_along, x, &dims)?);
            let parallel = body.multiply(normalized, mean_along)?;
            let rest = body.binary(Opcode::Subtract, g, mean_g)?;
            let rest = body.binary(Opcode::Subtract, rest, parallel)?;
            let dx = body.multiply(rest, factor)?;
            let mut results = vec![body.convert(dx, ty)?];
            for (n, terms) in [(1, product), (2, dy)] {
                let shape = body.result(n)?;
                let sum = body.reduce(Opcode::Add, terms, 0.0, &[0])?;
                let sum = body.reshape(sum, &shape.dims)?;
                results.push(body.convert(sum, shape.element_type)?);
            }
            body.results(&results)
        }
        other => Err(Refusal(format!("of kind {other}"))),
    }
}

/// `__onednn$layernorm` (`OneDnnNormConfig`): operands x, scale, shift; the last dimension is normalized.
pub(super) fn onednn_layer(body: &mut Body<'_>) -> Built {
    let config = body.config.get("onednn_layer_norm_config");
    let rescale = config.word("rescale", "UNDEFINED").to_owned();
    if !matches!(rescale.as_str(), "SCALE_AND_SHIFT" | "3") {
        return Err(Refusal(format!("with rescale {rescale}")));
    }
    // The bits of an f32.
    let epsilon = f32::from_bits(config.int("epsilon_typecast")? as i32 as u32);
    let ty = body.result(0)?.element_type;
    let x = body.operand(0)?;
    let x = body.convert(x, compute_type(ty))?;
    let last = body.dims(x)?.len() as i64 - 1;
    let parts = layer(body, x, &[last], f64::from(epsilon))?;
    let (scale, shift) = (spread(body, 1, x)?, spread(body, 2, x)?);
    let y = body.multiply(parts.normalized, scale)?;
    let y = body.add(y, shift)?;
    let y = body.convert(y, ty)?;
    body.results(&[y])
}

/// `__onednn$softmax` (`OneDnnSoftmaxConfig`): operand x.
pub(super) fn onednn_softmax(body: &mut Body<'_>) -> Built {
    let axis = body.config.get("onednn_softmax_config").int("softmax_axis")?;
    let ty = body.result(0)?.element_type;
    let x = body.operand(0)?;
    let rank = body.dims(x)?.len() as i64;
    let axis = if axis < 0 { axis + rank } else { axis };
    if !(0..rank).contains(&axis) {
        return Err(Refusal(format!("with softmax_axis {axis}")));
    }
    let x = body.convert(x, compute_type(ty))?;
    let (y, _) = softmax(body, x, axis)?;
    let y = body.convert(y, ty)?;
    body.results(&[y])
}

/// `exp(x - max) / sum of exp(x - max)` along a dimension, and `max + log(sum)` without that dimension.
pub(super) fn softmax(body: &mut Body<'_>, x: InstrId, axis: i64) -> Result<(InstrId, InstrId), Refusal> {
    let largest = body.reduce(Opcode::Maximum, x, f64::NEG_INFINITY, &[axis])?;
    let top = keep(body, largest, x, &[axis])?;
    let shifted = body.binary(Opcode::Subtract, x, top)?;
    let e = body.unary(Opcode::Exponential, shifted)?;
    let sum = body.reduce(Opcode::Add, e, 0.0, &[axis])?;
    let all = keep(body, sum, x, &[axis])?;
    let y = body.binary(Opcode::Divide, e, all)?;
    let log = body.unary(Opcode::Log, sum)?;
    let log = body.add(largest, log)?;
    Ok((y, log))
}

struct Layer {
    normalized: InstrId,
    /// Without the normalized dimensions.
    mean: InstrId,
    factor: InstrId,
}

fn layer(body: &mut Body<'_>, x: InstrId, dims: &[i64], epsilon: f64) -> Result<Layer, Refusal> {
    let mean = average(body, x, dims)?;
    let wide_mean = keep(body, mean, x, dims)?;
    let centred = body.binary(Opcode::Subtract, x, wide_mean)?;
    let square = body.multiply(centred, centred)?;
    let variance = average(body, square, dims)?;
    let shifted = body.with(Opcode::Add, variance, epsilon)?;
    let factor = body.unary(Opcode::Rsqrt, shifted)?;
    let wide_factor = keep(body, factor, x, dims)?;
    Ok(Layer { normalized: body.multiply(centred, wide_factor)?, mean, factor })
}

fn average(body: &mut Body<'_>, x: InstrId, dims: &[i64]) -> Built {
    let sizes = body.dims(x)?;
    let n: f64 = dims.iter().map(|&d| sizes[d as usize] as f64).product();
    let sum = body.reduce(Opcode::Add, x, 0.0, dims)?;
    body.with(Opcode::Divide, sum, n)
}

/// A reduced value repeated along the dimensions that were reduced.
pub(super) fn keep(body: &mut Body<'_>, x: InstrId, like: InstrId, dims: &[i64]) -> Built {
    let sizes = body.dims(like)?;
    let others: Vec<i64> = (0..sizes.len() as i64).filter(|d| !dims.contains(d)).collect();
    body.broadcast(x, &sizes, &others)
}

/// An operand in the type and the dimensions of `like`: those of size 1 are repeated, missing ones are
/// leading.
fn spread(body: &mut Body<'_>, operand: usize, like: InstrId) -> Built {
    let x = body.operand(operand)?;
    let ty: ElementType = body.ty(like)?;
    let x = body.convert(x, ty)?;
    body.stretch(x, like)
}
