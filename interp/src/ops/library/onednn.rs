//! Matrix products and convolutions by oneDNN, with the operations fused behind them
//! (`xla/service/cpu/onednn_config.proto`, `onednn_util.cc`).
//!
//! As with cuBLAS: a product with nothing after it is a `dot` or `convolution` with the type of the result;
//! otherwise the sums are rounded to `f32` (`f64` for `f64`), each fused operation rounds there, and the last
//! one is converted.

use hlo::attrs::{ConvDims, Window, WindowDim};
use hlo::{AttrKey, AttrValue, Attrs, InstrId, Opcode};

use super::Refusal;
use super::body::{Body, Built, compute_type, retyped};
use super::config::Json;

/// `__onednn$matmul` (`OneDnnMatMulConfig`): the last two dimensions are matrices, the others the batch, in
/// which size 1 is repeated. `lhs`, `rhs` and `result` may name the dimensions of the arrays (from 1) in the
/// order of the product.
pub(super) fn matmul(body: &mut Body<'_>) -> Built {
    let config = body.config.get("onednn_matmul_config").clone();
    if config.get("optimization_config").flag("weights_prepacked") {
        return Err(Refusal("with prepacked weights".into()));
    }
    let d = body.result(0)?.element_type;
    let fusions = config.get("fusions");
    let ty = if fusions.list("ops").is_empty() { d } else { compute_type(d) };
    let a = side(body, 0, config.get("lhs"), config.flag("transpose_a"))?;
    let b = side(body, 1, config.get("rhs"), config.flag("transpose_b"))?;
    let (left, right) = (body.dims(a)?, body.dims(b)?);
    let rank = left.len();
    if rank < 2 || right.len() != rank {
        return Err(Refusal(format!("of dimensions {left:?} and {right:?}")));
    }
    let batch: Vec<i64> =
        left.iter().zip(&right).take(rank - 2).map(|(&l, &r)| if l == 1 { r } else { l }).collect();
    let full = |dims: &[i64]| [&batch[..], &dims[rank - 2..]].concat();
    let (a, b) = (body.stretch_to(a, &full(&left))?, body.stretch_to(b, &full(&right))?);
    let batch: Vec<i64> = (0..rank as i64 - 2).collect();
    let x = body.dot(a, b, [&[rank as i64 - 1], &[rank as i64 - 2]], [&batch, &batch], ty)?;
    let order = axes(config.get("result"))?;
    let x = if order.is_empty() { x } else { body.transpose(x, &inverse(&order)?)? };
    let x = fused(body, fusions, x)?;
    let x = body.convert(x, d)?;
    body.results(&[x])
}

/// `__onednn$convolution` (`OneDnnConvolutionConfig`).
pub(super) fn convolution(body: &mut Body<'_>) -> Built {
    let config = body.config.get("onednn_conv_config").clone();
    if config.get("optimization_config").flag("weights_prepacked") {
        return Err(Refusal("with prepacked weights".into()));
    }
    let d = body.result(0)?.element_type;
    let fusions = config.get("fusions");
    let ty = if fusions.list("ops").is_empty() { d } else { compute_type(d) };
    let (input, kernel) = (body.operand(0)?, body.operand(1)?);
    let (data, filter, out) = (
        config.get("input").get("data"),
        config.get("kernel").get("filter"),
        config.get("output").get("data"),
    );
    let labels = ConvDims {
        input_batch: data.int("batch_dim")?,
        input_feature: data.int("feature_dim")?,
        input_spatial: data.ints("spatial_dims")?.into_iter().collect(),
        kernel_input_feature: filter.int("input_feature_dim")?,
        kernel_output_feature: filter.int("output_feature_dim")?,
        kernel_spatial: filter.ints("spatial_dims")?.into_iter().collect(),
        output_batch: out.int("batch_dim")?,
        output_feature: out.int("feature_dim")?,
        output_spatial: out.ints("spatial_dims")?.into_iter().collect(),
        unknown: Default::default(),
    };
    let window = config.get("window");
    let sizes = body.dims(kernel)?;
    let (low, high) = (window.ints("pad_left")?, window.ints("pad_right")?);
    let (strides, dilations) = (window.ints("strides")?, window.ints("window_dilations")?);
    let dims = labels.kernel_spatial.iter().enumerate().map(|(i, &d)| {
        Some(WindowDim {
            size: *sizes.get(usize::try_from(d).ok()?)?,
            stride: *strides.get(i)?,
            pad_low: *low.get(i)?,
            pad_high: *high.get(i)?,
            base_dilation: 1,
            window_dilation: dilations.get(i).copied().unwrap_or(1),
            reversal: false,
        })
    });
    let dims = dims.collect::<Option<_>>().ok_or_else(|| Refusal("with an incomplete window".into()))?;
    let groups = config.int("feature_groups")?.max(1);
    let attrs = Attrs::new()
        .with(AttrKey::DimLabels, AttrValue::ConvDims(Box::new(labels)))
        .with(AttrKey::Window, AttrValue::Window(Box::new(Window { dims })))
        .with(AttrKey::FeatureGroupCount, AttrValue::Int(groups));
    let shape = retyped(body.infer(Opcode::Convolution, &[input, kernel], &attrs)?, ty);
    let x = body.shaped(Opcode::Convolution, shape, &[input, kernel], attrs)?;
    let x = fused(body, fusions, x)?;
    let x = body.convert(x, d)?;
    body.results(&[x])
}

/// The order of dimensions in a tensor's layout, from 0; empty if there is none.
fn axes(config: &Json) -> Result<Vec<i64>, Refusal> {
    Ok(config.get("tensor").ints("dimensions")?.into_iter().map(|d| d.saturating_sub(1)).collect())
}

fn inverse(order: &[i64]) -> Result<Vec<i64>, Refusal> {
    let mut inverse = vec![0; order.len()];
    for (from, &to) in order.iter().enumerate() {
        let slot = usize::try_from(to).ok().and_then(|to| inverse.get_mut(to));
        *slot.ok_or_else(|| Refusal("with such dimensions".into()))? = from as i64;
    }
    Ok(inverse)
}

fn side(body: &mut Body<'_>, operand: usize, config: &Json, transposed: bool) -> Built {
    let mut x = body.operand(operand)?;
    let order = axes(config)?;
    if !order.is_empty() {
        x = body.transpose(x, &order)?;
    }
    let rank = body.dims(x)?.len() as i64;
    if transposed && rank >= 2 {
        let order: Vec<i64> = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
        x = body.transpose(x, &order)?;
    }
    Ok(x)
}

/// The operations behind a product, in order; those that add take the operands from the third on.
fn fused(body: &mut Body<'_>, config: &Json, mut x: InstrId) -> Built {
    let ty = body.ty(x)?;
    let mut operands = body.operands.iter().skip(2).copied().collect::<Vec<_>>().into_iter();
    let mut factors = config.list("alpha").iter();
    for op in config.list("ops") {
        x = match op.as_word() {
            "BIAS" | "BINARY_ADD" | "SUM" | "1" | "6" | "11" => {
                let addend = operands.next().ok_or_else(|| Refusal("with too few operands".into()))?;
                let addend = body.convert(addend, ty)?;
                let addend = body.stretch(addend, x)?;
                body.add(x, addend)?
            }
            "RELU" | "2" => body.with(Opcode::Maximum, x, 0.0)?,
            "TANH" | "3" => body.unary(Opcode::Tanh, x)?,
            "GELU_ERF" | "4" => body.gelu_erf(x)?,
            "GELU_TANH" | "5" => body.gelu_tanh(x)?,
            "LINEAR" | "7" => {
                let factor = factors.next().and_then(|f| f.as_word().parse().ok());
                let factor: f64 = factor.ok_or_else(|| Refusal("with a LINEAR without alpha".into()))?;
                body.with(Opcode::Multiply, x, factor)?
            }
            "ELU" | "8" => {
                let low = body.unary(Opcode::ExponentialMinusOne, x)?;
                body.where_positive(x, x, low)?
            }
            "RELU6" | "9" => {
                let x = body.with(Opcode::Maximum, x, 0.0)?;
                body.with(Opcode::Minimum, x, 6.0)?
            }
            "SIGMOID" | "10" => body.unary(Opcode::Logistic, x)?,
            "SWISH" | "12" => {
                let s = body.unary(Opcode::Logistic, x)?;
                body.multiply(x, s)?
            }
            other => return Err(Refusal(format!("with the fused operation {other}"))),
        };
    }
    match operands.next() {
        None => Ok(x),
        Some(_) => Err(Refusal(format!("with {} operands", body.operands.len()))),
    }
}
