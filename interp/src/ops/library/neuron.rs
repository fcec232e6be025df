//! Custom calls of AWS Neuron, as its front ends emit and define them.
//!
//! The definitions are those of `torch_neuronx/xla_impl/ops.py` (which has the HLO of softmax and of its
//! gradient as its reference implementation) and of `transformers_neuronx/hlo.py` (root mean square
//! normalization). `backend_config` is one decimal number: the dimension of softmax, normalization and the
//! index of an extremum, or the number of elements of `AwsNeuronTopK`. Elementary functions of narrow floats
//! are computed in `f32` and rounded once. Targets whose operands or rounding nobody has published (dropout,
//! native kernels, `AwsNeuronRmsNormBackward`) have no row, and are refused by name.

use hlo::attrs::Direction;
use hlo::{AttrKey, AttrValue, Attrs, ElementType, InstrId, Opcode};

use super::Refusal;
use super::body::{Body, Built, compute_type};

/// An elementwise function of one operand.
fn elementwise(body: &mut Body<'_>, f: impl FnOnce(&mut Body<'_>, InstrId) -> Built) -> Built {
    if body.operands.len() != 1 {
        return Err(Refusal(format!("with {} operands", body.operands.len())));
    }
    let x = body.operand(0)?;
    if !body.ty(x)?.is_float() {
        return Err(Refusal(format!("of {}", body.ty(x)?)));
    }
    let wide = compute_type(body.ty(x)?);
    let x = body.convert(x, wide)?;
    let y = f(body, x)?;
    let y = body.convert(y, body.result(0)?.element_type)?;
    body.results(&[y])
}

/// `AwsNeuronErf(x)`.
pub(super) fn erf(body: &mut Body<'_>) -> Built {
    elementwise(body, |body, x| body.unary(Opcode::Erf, x))
}

/// `AwsNeuronGelu(x)`: `torch.nn.functional.gelu(x, approximate="none")`.
pub(super) fn gelu(body: &mut Body<'_>) -> Built {
    elementwise(body, |body, x| body.gelu_erf(x))
}

/// `AwsNeuronGeluApprxTanh(x)`: `torch.nn.functional.gelu(x, approximate="tanh")`.
pub(super) fn gelu_tanh(body: &mut Body<'_>) -> Built {
    elementwise(body, |body, x| body.gelu_tanh(x))
}

/// `AwsNeuronGeluBackward(x)`: the derivative of gelu at `x`, by which the front end multiplies the gradient:
/// `(1 + erf(x / sqrt(2))) / 2 + x exp(-x^2 / 2) / sqrt(2 pi)`.
pub(super) fn gelu_derivative(body: &mut Body<'_>) -> Built {
    elementwise(body, |body, x| {
        let scaled = body.with(Opcode::Multiply, x, std::f64::consts::FRAC_1_SQRT_2)?;
        let erf = body.unary(Opcode::Erf, scaled)?;
        let cumulative = body.with(Opcode::Add, erf, 1.0)?;
        let cumulative = body.with(Opcode::Multiply, cumulative, 0.5)?;
        let square = body.multiply(x, x)?;
        let exponent = body.with(Opcode::Multiply, square, -0.5)?;
        let density = body.unary(Opcode::Exponential, exponent)?;
        let density = body.with(Opcode::Multiply, density, (2.0 * std::f64::consts::PI).sqrt().recip())?;
        let slope = body.multiply(x, density)?;
        body.add(cumulative, slope)
    })
}

/// `AwsNeuronSilu(x)`: `x logistic(x)`.
pub(super) fn silu(body: &mut Body<'_>) -> Built {
    elementwise(body, |body, x| {
        let gate = body.unary(Opcode::Logistic, x)?;
        body.multiply(x, gate)
    })
}

/// `AwsNeuronSiluBackward(x)`: the derivative of silu at `x`, `logistic(x) (1 + x (1 - logistic(x)))`.
pub(super) fn silu_derivative(body: &mut Body<'_>) -> Built {
    elementwise(body, |body, x| {
        let gate = body.unary(Opcode::Logistic, x)?;
        let one = body.scalar(1.0, body.ty(x)?)?;
        let rest = body.binary(Opcode::Subtract, one, gate)?;
        let slope = body.multiply(x, rest)?;
        let slope = body.with(Opcode::Add, slope, 1.0)?;
        body.multiply(gate, slope)
    })
}

/// The number that is the whole `backend_config`, in quotes or not.
fn number(body: &Body<'_>) -> Result<i64, Refusal> {
    let text = body.call.backend_config();
    let digits = text.trim_matches(|c: char| c.is_whitespace() || c == '"' || c == '\\');
    digits.parse().map_err(|_| Refusal(format!("with the backend_config {text:?}, which is no integer")))
}

/// The dimension that `backend_config` names.
fn dimension(body: &Body<'_>, x: InstrId) -> Result<i64, Refusal> {
    let (d, rank) = (number(body)?, body.dims(x)?.len());
    if usize::try_from(d).is_ok_and(|d| d < rank) {
        return Ok(d);
    }
    Err(Refusal(format!("of dimension {d}, for an operand of rank {rank}")))
}

/// A fold of one dimension, repeated along it.
fn folded(body: &mut Body<'_>, opcode: Opcode, x: InstrId, init: f64, dim: i64) -> Built {
    let fold = body.reduce(opcode, x, init, &[dim])?;
    let dims = body.dims(x)?;
    let kept: Vec<i64> = (0..dims.len() as i64).filter(|&d| d != dim).collect();
    body.broadcast(fold, &dims, &kept)
}

/// The operand in the type that it is computed in.
fn float(body: &mut Body<'_>, n: usize) -> Built {
    let x = body.operand(n)?;
    let ty = body.ty(x)?;
    if !ty.is_float() {
        return Err(Refusal(format!("of {ty}")));
    }
    body.convert(x, compute_type(ty))
}

/// `AwsNeuronSoftmax(x)`: `exp(x - max(x)) / sum(exp(x - max(x)))` along a dimension.
pub(super) fn softmax(body: &mut Body<'_>) -> Built {
    let x = float(body, 0)?;
    let dim = dimension(body, x)?;
    let max = folded(body, Opcode::Maximum, x, f64::NEG_INFINITY, dim)?;
    let shifted = body.binary(Opcode::Subtract, x, max)?;
    let powers = body.unary(Opcode::Exponential, shifted)?;
    let sum = folded(body, Opcode::Add, powers, 0.0, dim)?;
    let y = body.binary(Opcode::Divide, powers, sum)?;
    let y = body.convert(y, body.result(0)?.element_type)?;
    body.results(&[y])
}

/// `AwsNeuronSoftmaxBackward(dy, y)`: `y (dy - sum(dy y))` along a dimension, `y` the result of the softmax.
pub(super) fn softmax_gradient(body: &mut Body<'_>) -> Built {
    let (dy, y) = (float(body, 0)?, float(body, 1)?);
    let dim = dimension(body, y)?;
    let product = body.multiply(dy, y)?;
    let sum = folded(body, Opcode::Add, product, 0.0, dim)?;
    let rest = body.binary(Opcode::Subtract, dy, sum)?;
    let dx = body.multiply(y, rest)?;
    let dx = body.convert(dx, body.result(0)?.element_type)?;
    body.results(&[dx])
}

/// `AwsNeuronRmsNorm(x, weight, epsilon)`: `x rsqrt(mean(x^2) + epsilon) weight` along a dimension, whose
/// size is that of `weight`.
pub(super) fn rms_norm(body: &mut Body<'_>) -> Built {
    let x = float(body, 0)?;
    let wide = body.ty(x)?;
    let dim = dimension(body, x)?;
    let dims = body.dims(x)?;
    let (weight, epsilon) = (float(body, 1)?, float(body, 2)?);
    let (weight, epsilon) = (body.convert(weight, wide)?, body.convert(epsilon, wide)?);
    let square = body.multiply(x, x)?;
    let sum = folded(body, Opcode::Add, square, 0.0, dim)?;
    let mean = body.with(Opcode::Divide, sum, dims[dim as usize] as f64)?;
    let shifted = body.binary(Opcode::Add, mean, epsilon)?;
    let factor = body.unary(Opcode::Rsqrt, shifted)?;
    let scaled = body.multiply(x, factor)?;
    let weight = body.broadcast(weight, &dims, &[dim])?;
    let y = body.multiply(scaled, weight)?;
    let y = body.convert(y, body.result(0)?.element_type)?;
    body.results(&[y])
}

/// The identity of a maximum, or of a minimum, of a type; a conversion to integers of 64 bits saturates.
fn identity(ty: ElementType, largest: bool) -> Result<f64, Refusal> {
    match ty.integer_limits() {
        Some((least, greatest)) => Ok(if largest { least } else { greatest } as f64),
        None if ty.is_float() => Ok(if largest { f64::NEG_INFINITY } else { f64::INFINITY }),
        None => Err(Refusal(format!("of {ty}"))),
    }
}

/// The index of an extremum along a dimension: the first of equal elements, the first NaN if there is one, as
/// `torch.argmax` has it.
fn extremum(body: &mut Body<'_>, largest: bool) -> Built {
    let x = body.operand(0)?;
    let (ty, dim, dims) = (body.ty(x)?, dimension(body, x)?, body.dims(x)?);
    let opcode = if largest { Opcode::Maximum } else { Opcode::Minimum };
    let extremum = folded(body, opcode, x, identity(ty, largest)?, dim)?;
    let mut found = body.compare(Direction::Eq, x, extremum)?;
    if ty.is_float() {
        // A maximum or minimum is NaN if an element is.
        let nan = body.compare(Direction::Ne, x, x)?;
        found = body.binary(Opcode::Or, found, nan)?;
    }
    let index = body.result(0)?.element_type;
    let positions = body.iota(index, &dims, dim)?;
    let size = dims[dim as usize] as f64;
    let none = body.scalar(size, index)?;
    let none = body.broadcast(none, &dims, &[])?;
    let candidates = body.select(found, positions, none)?;
    let first = body.reduce(Opcode::Minimum, candidates, size, &[dim])?;
    body.results(&[first])
}

/// `AwsNeuronArgMax(x)`.
pub(super) fn argmax(body: &mut Body<'_>) -> Built {
    extremum(body, true)
}

/// `AwsNeuronArgMin(x)`.
pub(super) fn argmin(body: &mut Body<'_>) -> Built {
    extremum(body, false)
}

/// `AwsNeuronTopK(x)`: the `k` largest elements of each line and their indices, by the order of `topk`.
pub(super) fn top_k(body: &mut Body<'_>) -> Built {
    let (x, k) = (body.operand(0)?, number(body)?);
    let attrs =
        Attrs::new().with(AttrKey::K, AttrValue::Int(k)).with(AttrKey::Largest, AttrValue::Bool(true));
    let pair = body.instr(Opcode::Topk, &[x], attrs)?;
    let (values, indices) = (body.get(pair, 0)?, body.get(pair, 1)?);
    let indices = body.convert(indices, body.result(1)?.element_type)?;
    body.results(&[values, indices])
}

/// By how much height and width of images `[batch, height, width, channels]` differ, which must be whole
/// numbers; `backend_config` says that neither corners are aligned nor pixels have half centers.
fn scales(body: &Body<'_>, small: &[i64], large: &[i64]) -> Result<[i64; 2], Refusal> {
    if !body.call.backend_config().contains("00") {
        return Err(Refusal(format!("with the backend_config {:?}", body.call.backend_config())));
    }
    match (small, large) {
        (&[n, h, w, c], &[m, height, width, d])
            if n == m && c == d && h > 0 && w > 0 && height % h == 0 && width % w == 0 =>
        {
            Ok([height / h, width / w])
        }
        _ => Err(Refusal(format!(
            "of images {small:?} and {large:?}, which are no whole number of times as large"
        ))),
    }
}

/// `ResizeNearest(x)`: each pixel as a block of the result.
pub(super) fn resize_nearest(body: &mut Body<'_>) -> Built {
    let x = body.operand(0)?;
    let (small, large) = (body.dims(x)?, body.result(0)?.dims.clone());
    let [down, across] = scales(body, &small, &large)?;
    let blocks = [small[0], small[1], down, small[2], across, small[3]];
    let y = body.broadcast(x, &blocks, &[0, 1, 3, 5])?;
    let y = body.reshape(y, &large)?;
    body.results(&[y])
}

/// `ResizeNearestGrad(dy)`: the sum of each block.
pub(super) fn resize_nearest_gradient(body: &mut Body<'_>) -> Built {
    let dy = float(body, 0)?;
    let (large, small) = (body.dims(dy)?, body.result(0)?.dims.clone());
    let [down, across] = scales(body, &small, &large)?;
    let blocks = [small[0], small[1], down, small[2], across, small[3]];
    let dy = body.reshape(dy, &blocks)?;
    let dx = body.reduce(Opcode::Add, dy, 0.0, &[2, 4])?;
    let dx = body.convert(dx, body.result(0)?.element_type)?;
    body.results(&[dx])
}
