//! Attention by cuDNN (`CudnnfMHABackendConfig`, `cudnn_custom_call_compiler.cc`): `softmax(fmha_scale * Q K
//! + bias, masked) V`.
//!
//! Everything is computed in `f32`: sums are rounded once, every other operation rounds, and results are
//! converted at the end. A masked score is -inf. Rows beyond a sequence's length, and rows without any score,
//! are 0. Dropout (its bits are cuDNN's own), packed and paged sequences, alibi and computations in the
//! middle are refused.

use hlo::attrs::Direction;
use hlo::{ElementType, InstrId, Opcode};
use smallvec::SmallVec;

use super::Refusal;
use super::body::{Body, Built};
use super::config::Json;
use super::norm::{keep, softmax};

const WIDE: ElementType = ElementType::F32;

/// Forward, without bias: operands Q, K, V, then lengths of Q and K if the mask pads. Results the output,
/// perhaps the logarithm of each row's sum of exponentials, scratch.
pub(super) fn forward(body: &mut Body<'_>) -> Built {
    run_forward(body, false)
}

/// Forward, with a bias after V that is added to the scores.
pub(super) fn forward_bias(body: &mut Body<'_>) -> Built {
    run_forward(body, true)
}

/// Backward: operands Q, K, V, the row logarithms, gradient of the output, (bias), the output, lengths.
/// Results the gradients of Q, K, V, perhaps of the bias, scratch.
pub(super) fn backward(body: &mut Body<'_>) -> Built {
    run_backward(body, false)
}

/// Backward, with a bias.
pub(super) fn backward_bias(body: &mut Body<'_>) -> Built {
    run_backward(body, true)
}

type Dims = SmallVec<[i64; 4]>;

/// Dimension numbers of a product.
struct Numbers {
    contracting: [Dims; 2],
    batch: [Dims; 2],
}

impl Numbers {
    fn read(config: &Json, key: &str) -> Result<Self, Refusal> {
        let numbers = config.field(key).ok_or_else(|| Refusal(format!("without {key}")))?;
        Ok(Self {
            contracting: [
                numbers.ints("lhs_contracting_dimensions")?,
                numbers.ints("rhs_contracting_dimensions")?,
            ],
            batch: [numbers.ints("lhs_batch_dimensions")?, numbers.ints("rhs_batch_dimensions")?],
        })
    }

    fn dot(&self, body: &mut Body<'_>, a: InstrId, b: InstrId) -> Built {
        let [left, right] = &self.contracting;
        let [left_batch, right_batch] = &self.batch;
        body.dot(a, b, [left, right], [left_batch, right_batch], WIDE)
    }
}

/// The configuration that both directions need.
struct Attention {
    config: Json,
    scale: f64,
    causal: bool,
    /// Whether lengths are operands.
    padded: bool,
    sliding: i64,
}

impl Attention {
    fn read(body: &Body<'_>) -> Result<Self, Refusal> {
        let config = body.config.get("cudnn_fmha_backend_config").clone();
        if config.number("dropout_rate", 0.0)? != 0.0 {
            return Err(Refusal("with dropout".into()));
        }
        if config.int("max_seg_per_batch")? > 1 || config.flag("is_paged_attention") {
            return Err(Refusal("of packed or paged sequences".into()));
        }
        if !body.call.instruction.attrs.called_computations().is_empty() {
            return Err(Refusal("with a computation on the scores".into()));
        }
        let (causal, padded) = match config.word("mask_type", "NO_MASK") {
            "NO_MASK" | "0" => (false, false),
            "PADDING" | "1" => (false, true),
            "CAUSAL" | "2" => (true, false),
            "PADDING_CAUSAL" | "3" => (true, true),
            other => return Err(Refusal(format!("with mask_type {other}"))),
        };
        let causal = causal || config.flag("is_causal_mask");
        let (scale, sliding) = (config.number("fmha_scale", 0.0)?, config.int("sliding_window_length")?);
        Ok(Self { config, scale, causal, padded, sliding })
    }

    /// The scores that count, and which those are: `None` if all do.
    fn scores(
        &self,
        body: &mut Body<'_>,
        products: InstrId,
        bias: Option<InstrId>,
        lengths: Option<[InstrId; 2]>,
    ) -> Result<(InstrId, Option<InstrId>), Refusal> {
        let mut s = body.with(Opcode::Multiply, products, self.scale)?;
        if let Some(bias) = bias {
            let bias = body.convert(bias, WIDE)?;
            let bias = body.stretch(bias, s)?;
            s = body.add(s, bias)?;
        }
        let dims = body.dims(s)?;
        let rank = dims.len() as i64;
        let mut visible: Vec<InstrId> = Vec::new();
        let row = body.iota(ElementType::S32, &dims, rank - 2)?;
        let column = body.iota(ElementType::S32, &dims, rank - 1)?;
        if self.causal {
            visible.push(body.compare(Direction::Ge, row, column)?);
        }
        if self.sliding > 0 {
            let edge = body.with(Opcode::Add, column, self.sliding as f64)?;
            visible.push(body.compare(Direction::Gt, edge, row)?);
        }
        if let Some(lengths) = lengths {
            for (length, index) in lengths.into_iter().zip([row, column]) {
                let length = body.convert(length, ElementType::S32)?;
                let batch = dims.first().copied().unwrap_or(1);
                let length = body.reshape(length, &[batch])?;
                let length = body.broadcast(length, &dims, &[0])?;
                visible.push(body.compare(Direction::Lt, index, length)?);
            }
        }
        let mut all = None;
        for v in visible {
            all = Some(match all {
                None => v,
                Some(before) => body.binary(Opcode::And, before, v)?,
            });
        }
        let Some(all) = all else { return Ok((s, None)) };
        let hidden = body.scalar(f64::NEG_INFINITY, WIDE)?;
        let hidden = body.like(hidden, s)?;
        Ok((body.select(all, s, hidden)?, Some(all)))
    }
}

fn lengths(body: &Body<'_>, attention: &Attention, first: usize) -> Result<Option<[InstrId; 2]>, Refusal> {
    let all = if attention.padded { Some([body.operand(first)?, body.operand(first + 1)?]) } else { None };
    if body.operands.len() != first + if attention.padded { 2 } else { 0 } {
        return Err(Refusal(format!("with {} operands", body.operands.len())));
    }
    Ok(all)
}

/// `x` where `mask`, 0 elsewhere.
fn masked(body: &mut Body<'_>, x: InstrId, mask: Option<InstrId>) -> Built {
    let Some(mask) = mask else { return Ok(x) };
    let zero = body.scalar(0.0, WIDE)?;
    let zero = body.like(zero, x)?;
    body.select(mask, x, zero)
}

fn run_forward(body: &mut Body<'_>, has_bias: bool) -> Built {
    let attention = Attention::read(body)?;
    let [q, k, v] = [body.operand(0)?, body.operand(1)?, body.operand(2)?];
    let bias = if has_bias { Some(body.operand(3)?) } else { None };
    let lengths = lengths(body, &attention, 3 + usize::from(has_bias))?;
    let products = Numbers::read(&attention.config, "bmm1_dot_dimension_numbers")?.dot(body, q, k)?;
    let (scores, visible) = attention.scores(body, products, bias, lengths)?;
    let rank = body.dims(scores)?.len() as i64;
    let (p, logarithms) = softmax(body, scores, rank - 1)?;
    let p = masked(body, p, visible)?;
    let out = Numbers::read(&attention.config, "bmm2_dot_dimension_numbers")?.dot(body, p, v)?;
    let mut results = vec![body.convert(out, body.result(0)?.element_type)?];
    if let Ok(shape) = body.result(1)
        && shape.element_type == WIDE
    {
        results.push(body.reshape(logarithms, &shape.dims)?);
    }
    body.results(&results)
}

fn run_backward(body: &mut Body<'_>, has_bias: bool) -> Built {
    let attention = Attention::read(body)?;
    let config = &attention.config;
    let [q, k, v] = [body.operand(0)?, body.operand(1)?, body.operand(2)?];
    let (logarithms, d_out) = (body.operand(3)?, body.operand(4)?);
    let bias = if has_bias { Some(body.operand(5)?) } else { None };
    let out = body.operand(5 + usize::from(has_bias))?;
    let lengths = lengths(body, &attention, 6 + usize::from(has_bias))?;
    // d K = d S' Q, d Q = d S K, d V = P' d O, d P = d O V'.
    let to_k = Numbers::read(config, "bmm1_grad_gemm1_dot_dimension_numbers")?;
    let to_q = Numbers::read(config, "bmm1_grad_gemm2_dot_dimension_numbers")?;
    let to_v = Numbers::read(config, "bmm2_grad_gemm1_dot_dimension_numbers")?;
    let to_p = Numbers::read(config, "bmm2_grad_gemm2_dot_dimension_numbers")?;
    // Q and K are contracted over what is neither their batch nor their sequence.
    let inner = |dims: &[i64], numbers: &Numbers| -> Dims {
        let taken = |d: &i64| numbers.batch[1].contains(d) || numbers.contracting[1].contains(d);
        (0..dims.len() as i64).filter(|d| !taken(d)).collect()
    };
    let (q_dims, k_dims) = (body.dims(q)?, body.dims(k)?);
    let forward = Numbers {
        contracting: [inner(&q_dims, &to_k), inner(&k_dims, &to_q)],
        batch: [to_k.batch[1].clone(), to_q.batch[1].clone()],
    };
    let products = forward.dot(body, q, k)?;
    let (scores, visible) = attention.scores(body, products, bias, lengths)?;
    let dims = body.dims(scores)?;
    let rank = dims.len() as i64;
    let rows = body.reshape(logarithms, &dims[..dims.len() - 1])?;
    let rows = keep(body, rows, scores, &[rank - 1])?;
    let shifted = body.binary(Opcode::Subtract, scores, rows)?;
    let p = body.unary(Opcode::Exponential, shifted)?;
    let p = masked(body, p, visible)?;
    let d_v = to_v.dot(body, p, d_out)?;
    let d_p = to_p.dot(body, d_out, v)?;
    // The sum over a row of d P * P, which is that of d O * O over the features.
    let (wide_d_out, wide_out) = (body.convert(d_out, WIDE)?, body.convert(out, WIDE)?);
    let product = body.multiply(wide_d_out, wide_out)?;
    let delta = body.reduce(Opcode::Add, product, 0.0, &to_p.contracting[0])?;
    // Its dimensions are in the order of d O's; those of the scores have the batch first.
    let left: Vec<i64> =
        (0..body.dims(d_out)?.len() as i64).filter(|d| !to_p.contracting[0].contains(d)).collect();
    let rows_of = left.iter().filter(|d| !to_p.batch[0].contains(d));
    let order = to_p.batch[0].iter().chain(rows_of);
    let order: Option<Vec<i64>> = order.map(|d| left.iter().position(|l| l == d).map(|p| p as i64)).collect();
    let order = order.ok_or_else(|| Refusal("with such dimension numbers".into()))?;
    let delta = body.transpose(delta, &order)?;
    let delta = keep(body, delta, scores, &[rank - 1])?;
    let rest = body.binary(Opcode::Subtract, d_p, delta)?;
    let d_s = body.multiply(p, rest)?;
    let d_products = body.with(Opcode::Multiply, d_s, attention.scale)?;
    let (d_q, d_k) = (to_q.dot(body, d_products, k)?, to_k.dot(body, d_products, q)?);
    let mut results = Vec::new();
    for (n, gradient) in [d_q, d_k, d_v].into_iter().enumerate() {
        results.push(body.convert(gradient, body.result(n)?.element_type)?);
    }
    if let Ok(shape) = body.result(3)
        && shape.element_type.is_float()
    {
        // A bias that was repeated gets the sum.
        let wanted = shape.dims.clone();
        if wanted.len() != dims.len() {
            return Err(Refusal(format!("with the result {shape}")));
        }
        let summed: Vec<i64> = (0..rank).filter(|&d| wanted[d as usize] != dims[d as usize]).collect();
        let sum = if summed.is_empty() { d_s } else { body.reduce(Opcode::Add, d_s, 0.0, &summed)? };
        let sum = body.reshape(sum, &wanted)?;
        results.push(body.convert(sum, shape.element_type)?);
    }
    body.results(&results)
}
