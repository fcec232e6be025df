//! Matrix products by cuBLAS and cuBLASLt (`xla/service/gpu/cublas_cudnn.h`, `GemmBackendConfig`): `D =
//! epilogue(alpha * A B + beta * C + bias)`.
//!
//! A product with nothing after it is a `dot` with the type of D. Otherwise the sums are rounded to the
//! compute type (`f32` for narrower floats), each operation of the epilogue rounds in it, and the last one is
//! converted to the type of D.

use hlo::attrs::Transpose;
use hlo::{AttrKey, AttrValue, Attrs, ElementType, InstrId, Opcode};

use super::Refusal;
use super::body::{Body, Built, compute_type, retyped};
use super::config::Json;

/// `__cublas$gemm`: operands A, B and, if beta is not 0, C.
pub(super) fn gemm(body: &mut Body<'_>) -> Built {
    product(body, Scales::None)
}

/// `__cublas$lt$matmul`: operands A, B, C if beta is not 0, the bias if the epilogue has one. Results D, and
/// the input of the activation if the epilogue says `_AUX`.
pub(super) fn matmul(body: &mut Body<'_>) -> Built {
    product(body, Scales::None)
}

/// `__cublas$lt$matmul$f8`: operands A, B, C if beta is not 0, scales of A and B, the bias if the epilogue
/// has one, a scale of D if that is 8 bits wide. Results D, and the largest modulus of D before its scale if
/// `damax_output`.
pub(super) fn matmul_f8(body: &mut Body<'_>) -> Built {
    product(body, Scales::Tensor)
}

#[derive(Clone, Copy, PartialEq)]
enum Scales {
    None,
    Tensor,
}

/// The parts of an epilogue.
struct Epilogue {
    bias: bool,
    activation: Option<Activation>,
    /// Whether the input of the activation is a result.
    aux: bool,
}

#[derive(Clone, Copy)]
enum Activation {
    Relu,
    Gelu,
    Silu,
}

impl Epilogue {
    fn read(name: &str) -> Result<Self, Refusal> {
        let known = |bias, activation, aux| Ok(Self { bias, activation, aux });
        match name {
            "DEFAULT" | "0" => known(false, None, false),
            "BIAS" | "1" => known(true, None, false),
            "RELU" | "2" => known(false, Some(Activation::Relu), false),
            "BIAS_RELU" | "3" => known(true, Some(Activation::Relu), false),
            "GELU" | "4" => known(false, Some(Activation::Gelu), false),
            "GELU_AUX" | "5" => known(false, Some(Activation::Gelu), true),
            "BIAS_GELU" | "6" => known(true, Some(Activation::Gelu), false),
            "BIAS_GELU_AUX" | "7" => known(true, Some(Activation::Gelu), true),
            "SILU" | "8" => known(false, Some(Activation::Silu), false),
            "BIAS_SILU" | "9" => known(true, Some(Activation::Silu), false),
            other => Err(Refusal(format!("with epilogue {other}"))),
        }
    }

    fn is_none(&self) -> bool {
        !self.bias && self.activation.is_none()
    }
}

fn product(body: &mut Body<'_>, scales: Scales) -> Built {
    let config = gemm_config(&body.config).clone();
    let [a, b] = [body.operand(0)?, body.operand(1)?];
    epilogue(body, &config, scales, 2, |body, ty| sums(body, &config, a, b, ty))
}

/// What comes after the sums, which `sums` gives in a type; `first` is the operand after those of the
/// product.
fn epilogue(
    body: &mut Body<'_>,
    config: &Json,
    scales: Scales,
    first: usize,
    sums: impl FnOnce(&mut Body<'_>, ElementType) -> Built,
) -> Built {
    let epilogue = Epilogue::read(config.word("epilogue", "DEFAULT"))?;
    let beta = config.number("beta", 0.0)?;
    let mut rest = body.operands.get(first..).ok_or_else(few)?.to_vec().into_iter();
    let mut next = |needed: bool| if needed { rest.next().map(Some).ok_or_else(few) } else { Ok(None) };
    let d = body.result(0)?.element_type;
    let narrow = scales == Scales::Tensor && d.bits() == 8;
    let c = next(beta != 0.0)?;
    let scale_a = next(scales == Scales::Tensor)?;
    let scale_b = next(scales == Scales::Tensor)?;
    let bias = next(epilogue.bias)?;
    let scale_d = next(narrow)?;
    if rest.next().is_some() {
        return Err(Refusal(format!("with {} operands", body.operands.len())));
    }

    let alpha = (config.number("alpha_real", 0.0)?, config.number("alpha_imag", 0.0)?);
    let plain = epilogue.is_none() && alpha == (1.0, 0.0) && beta == 0.0 && scales == Scales::None;
    let ty = if plain { d } else { compute_type(d) };
    let mut x = sums(body, ty)?;
    if alpha != (1.0, 0.0) {
        let alpha = number(body, alpha, ty)?;
        x = body.multiply(x, alpha)?;
    }
    for scale in [scale_a, scale_b].into_iter().flatten() {
        let scale = body.convert(scale, ty)?;
        x = body.multiply(x, scale)?;
    }
    if let Some(c) = c {
        let c = body.convert(c, ty)?;
        let beta = number(body, (beta, 0.0), ty)?;
        let c = body.multiply(c, beta)?;
        x = body.add(x, c)?;
    }
    if let Some(bias) = bias {
        let bias = along_columns(body, bias, x)?;
        let bias = body.convert(bias, ty)?;
        x = body.add(x, bias)?;
    }
    let before = x;
    x = match epilogue.activation {
        None => x,
        Some(Activation::Relu) => body.with(Opcode::Maximum, x, 0.0)?,
        Some(Activation::Gelu) => body.gelu_tanh(x)?,
        Some(Activation::Silu) => {
            let s = body.unary(Opcode::Logistic, x)?;
            body.multiply(x, s)?
        }
    };
    let mut results = Vec::new();
    let unscaled = x;
    if let Some(scale) = scale_d {
        let scale = body.convert(scale, ty)?;
        x = body.multiply(x, scale)?;
        x = body.clamp_to(x, d)?;
    }
    results.push(body.convert(x, d)?);
    if epilogue.aux {
        results.push(body.convert(before, d)?);
    }
    if config.flag("damax_output") {
        let moduli = body.unary(Opcode::Abs, unscaled)?;
        let all: Vec<i64> = (0..body.dims(x)?.len() as i64).collect();
        results.push(body.reduce(Opcode::Maximum, moduli, 0.0, &all)?);
    }
    body.results(&results)
}

fn few() -> Refusal {
    Refusal("with too few operands for its configuration".into())
}

/// The configuration of the product: a field of the GPU backend's, or in older text all of it.
fn gemm_config(config: &Json) -> &Json {
    config.field("gemm_backend_config").unwrap_or(config)
}

/// A factor in a type.
fn number(body: &mut Body<'_>, (re, im): (f64, f64), ty: ElementType) -> Built {
    let part = match ty {
        ElementType::C64 => ElementType::F32,
        ElementType::C128 => ElementType::F64,
        real => return body.scalar(re, real),
    };
    let (re, im) = (body.scalar(re, part)?, body.scalar(im, part)?);
    body.instr(Opcode::Complex, &[re, im], Attrs::new())
}

/// `A B` as the configuration's dimension numbers say.
fn sums(body: &mut Body<'_>, config: &Json, a: InstrId, b: InstrId, ty: ElementType) -> Built {
    let numbers = config.get("dot_dimension_numbers");
    let (left, right) =
        (numbers.ints("lhs_contracting_dimensions")?, numbers.ints("rhs_contracting_dimensions")?);
    let batch = [numbers.ints("lhs_batch_dimensions")?, numbers.ints("rhs_batch_dimensions")?];
    body.dot(a, b, [&left, &right], [&batch[0], &batch[1]], ty)
}

/// A vector along the minor dimension of the result.
fn along_columns(body: &mut Body<'_>, bias: InstrId, x: InstrId) -> Built {
    let (length, dims) = (body.dims(bias)?, body.dims(x)?);
    if length.len() == dims.len() {
        return Ok(bias);
    }
    let layout = body.result(0)?.layout.as_ref();
    let minor = layout.and_then(|l| l.minor_to_major.first().copied());
    let minor = minor.unwrap_or(dims.len() as i64 - 1);
    body.broadcast(bias, &dims, &[minor][..length.len().min(1)])
}

/// `__cublas$lt$groupedMatmul` (`GroupedGemmBackendConfig`): operands A, B, group sizes, C if beta is not 0,
/// the bias if the epilogue has one: a `ragged-dot` instead of the product.
pub(super) fn grouped(body: &mut Body<'_>) -> Built {
    let config = body.config.get("grouped_gemm_backend_config").clone();
    let gemm = config.get("gemm_backend_config").clone();
    let ragged = config.get("ragged_dot_dimension_numbers");
    let numbers = ragged.field("dot_dimension_numbers").unwrap_or_else(|| gemm.get("dot_dimension_numbers"));
    let mut attrs = Attrs::new();
    for (key, from, name) in [
        (AttrKey::LhsContractingDims, numbers, "lhs_contracting_dimensions"),
        (AttrKey::RhsContractingDims, numbers, "rhs_contracting_dimensions"),
        (AttrKey::LhsBatchDims, numbers, "lhs_batch_dimensions"),
        (AttrKey::RhsBatchDims, numbers, "rhs_batch_dimensions"),
        (AttrKey::LhsRaggedDims, ragged, "lhs_ragged_dimensions"),
        (AttrKey::RhsGroupDims, ragged, "rhs_group_dimensions"),
    ] {
        attrs.set(key, AttrValue::Ints(from.ints(name)?.into_iter().collect()));
    }
    let operands = [body.operand(0)?, body.operand(1)?, body.operand(2)?];
    let shape = body.infer(Opcode::RaggedDot, &operands, &attrs)?;
    let sums = |body: &mut Body<'_>, ty| {
        body.shaped(Opcode::RaggedDot, retyped(shape.clone(), ty), &operands, attrs.clone())
    };
    epilogue(body, &gemm, Scales::None, 3, sums)
}

/// `__cublas$triangularSolve`: operands A, B; `TriangularSolveOptions` are the configuration.
pub(super) fn triangular_solve(body: &mut Body<'_>) -> Built {
    let config = body.config.clone();
    let transpose = match config.word("transpose_a", "NO_TRANSPOSE") {
        "NO_TRANSPOSE" | "1" => Transpose::No,
        "TRANSPOSE" | "2" => Transpose::Transpose,
        "ADJOINT" | "3" => Transpose::Adjoint,
        other => return Err(Refusal(format!("with transpose_a {other}"))),
    };
    let attrs = Attrs::new()
        .with(AttrKey::LeftSide, AttrValue::Bool(config.flag("left_side")))
        .with(AttrKey::Lower, AttrValue::Bool(config.flag("lower")))
        .with(AttrKey::UnitDiagonal, AttrValue::Bool(config.flag("unit_diagonal")))
        .with(AttrKey::TransposeA, AttrValue::Transpose(transpose));
    let operands = [body.operand(0)?, body.operand(1)?];
    let x = body.instr(Opcode::TriangularSolve, &operands, attrs)?;
    body.results(&[x])
}
