//! Convolutions by cuDNN (`xla/service/gpu/cublas_cudnn.h`, `gpu_conv_runner.h`, `CudnnConvBackendConfig`).
//!
//! `window`, `dim_labels` and `feature_group_count` describe the forward convolution of an input with a
//! filter whichever of the three is computed. A dimension labelled `?` is the minor part of the features. A
//! convolution with nothing after it is a `convolution` with the type of the result; otherwise the sums are
//! rounded to `f32` (`f64` for `f64`), each operation rounds there, and the last one is converted.

use hlo::attrs::{ConvDims, Window, WindowDim};
use hlo::{AttrKey, AttrValue, Attrs, ElementType, InstrId, Opcode, Shape};
use smallvec::SmallVec;

use super::Refusal;
use super::body::{Body, Built, retyped};

/// `__cudnn$convForward`: operands input, filter.
pub(super) fn forward(body: &mut Body<'_>) -> Built {
    let ty = body.result(0)?.element_type;
    let conv = Conv::read(body)?;
    let (input, filter) = (body.operand(0)?, body.operand(1)?);
    let scale = scale(body)?;
    let x = if scale == 1.0 {
        conv.forward(body, input, filter, ty)?
    } else {
        let x = conv.forward(body, input, filter, compute_type(ty))?;
        body.with(Opcode::Multiply, x, scale)?
    };
    done(body, &conv, x, &[])
}

/// `__cudnn$convBackwardInput`: operands gradient of the result, filter.
pub(super) fn backward_input(body: &mut Body<'_>) -> Built {
    unscaled(body)?;
    let conv = Conv::read(body)?;
    let (gradient, filter) = (body.operand(0)?, body.operand(1)?);
    let x = conv.backward_input(body, gradient, filter)?;
    body.results(&[x])
}

/// `__cudnn$convBackwardFilter`: operands input, gradient of the result.
pub(super) fn backward_filter(body: &mut Body<'_>) -> Built {
    unscaled(body)?;
    let conv = Conv::read(body)?;
    let (input, gradient) = (body.operand(0)?, body.operand(1)?);
    let x = conv.backward_filter(body, input, gradient)?;
    body.results(&[x])
}

/// `__cudnn$convBiasActivationForward`: operands input, filter, bias, perhaps a side input;
/// `activation(conv_result_scale * conv + side_input_scale * side + bias)`, the bias along the features.
pub(super) fn fused(body: &mut Body<'_>) -> Built {
    let ty = body.result(0)?.element_type;
    let conv = Conv::read(body)?;
    let config = config(body);
    let side_scale = config.number("side_input_scale", 0.0)?;
    let alpha = config.number("leakyrelu_alpha", 0.0)?;
    let mode = config.word("activation_mode", "kNone").to_owned();
    let wide = compute_type(ty);
    let (input, filter) = (body.operand(0)?, body.operand(1)?);
    let mut x = conv.forward(body, input, filter, wide)?;
    let scale = scale(body)?;
    if scale != 1.0 {
        x = body.with(Opcode::Multiply, x, scale)?;
    }
    if side_scale != 0.0 {
        let side = body.operand(3)?;
        let side = conv.merge(body, side, Role::Output)?;
        let side = body.convert(side, wide)?;
        let side = if side_scale == 1.0 { side } else { body.with(Opcode::Multiply, side, side_scale)? };
        x = body.add(x, side)?;
    }
    let bias = body.operand(2)?;
    let bias = body.convert(bias, wide)?;
    let dims = body.dims(x)?;
    let bias = body.broadcast(bias, &dims, &[conv.labels.output_feature])?;
    x = body.add(x, bias)?;
    x = activation(body, &mode, x, alpha)?;
    done(body, &conv, x, &[])
}

/// `__cudnn$convForwardGraph`: the operations after the convolution are in `serialized_graph`:
/// `id:[type]op(ids);...`. The second operand of a binary one is the next operand of the call if no id names
/// it. Results are what nothing in the graph uses.
pub(super) fn graph(body: &mut Body<'_>) -> Built {
    let conv = Conv::read(body)?;
    let graph = config(body).word("serialized_graph", "").to_owned();
    let (input, filter) = (body.operand(0)?, body.operand(1)?);
    let mut external = body.operands.iter().skip(2).copied().collect::<Vec<_>>().into_iter();
    let bad = || Refusal(format!("with the serialized_graph {graph:?}"));
    let mut values: Vec<(i64, InstrId, bool)> = Vec::new();
    for step in graph.split_terminator(';') {
        let (id, rest) = step.split_once(":[").ok_or_else(bad)?;
        let (ty, rest) = rest.split_once(']').ok_or_else(bad)?;
        let (op, ids) = rest.strip_suffix(')').and_then(|r| r.split_once('(')).ok_or_else(bad)?;
        let id: i64 = id.parse().map_err(|_| bad())?;
        let ty = ElementType::from_name(ty).ok_or_else(bad)?;
        let mut operands: SmallVec<[InstrId; 2]> = SmallVec::new();
        for operand in ids.split_terminator(',') {
            let operand: i64 = operand.parse().map_err(|_| bad())?;
            let value = values.iter_mut().find(|(id, ..)| *id == operand).ok_or_else(bad)?;
            value.2 = true;
            operands.push(value.1);
        }
        let binary = match op {
            "add" => Some(Opcode::Add),
            "min" => Some(Opcode::Minimum),
            "max" => Some(Opcode::Maximum),
            "scale" => Some(Opcode::Multiply),
            "invscale" => Some(Opcode::Divide),
            _ => None,
        };
        if binary.is_some() && operands.len() == 1 {
            let next = external.next().ok_or_else(bad)?;
            operands.push(next);
        }
        let value = match (op, binary, &operands[..]) {
            ("conv", None, []) if values.is_empty() => conv.forward(body, input, filter, compute_type(ty))?,
            (_, Some(opcode), &[a, b]) => {
                let (a, b) = (body.convert(a, compute_type(ty))?, body.convert(b, compute_type(ty))?);
                let b = conv.merge_if_ranked(body, b, a)?;
                body.binary(opcode, a, b)?
            }
            ("relu", None, &[a]) => body.with(Opcode::Maximum, a, 0.0)?,
            ("elu", None, &[a]) => activation(body, "kElu", a, 0.0)?,
            ("amax", None, &[a]) => {
                let moduli = body.unary(Opcode::Abs, a)?;
                let all: Vec<i64> = (0..body.dims(a)?.len() as i64).collect();
                body.reduce(Opcode::Maximum, moduli, 0.0, &all)?
            }
            _ => return Err(bad()),
        };
        let value = narrow(body, value, ty)?;
        values.push((id, value, false));
    }
    if external.next().is_some() || values.is_empty() {
        return Err(bad());
    }
    let mut results = values.iter().filter(|(.., used)| !used).map(|&(_, value, _)| value);
    let first = results.next().ok_or_else(bad)?;
    let others: Vec<InstrId> = results.collect();
    done(body, &conv, first, &others)
}

fn config<'b>(body: &'b Body<'_>) -> &'b super::config::Json {
    body.config.field("cudnn_conv_backend_config").unwrap_or(&body.config)
}

/// `conv_result_scale`; hand-written calls leave the configuration out.
fn scale(body: &Body<'_>) -> Result<f64, Refusal> {
    config(body).number("conv_result_scale", 1.0)
}

fn unscaled(body: &Body<'_>) -> Result<(), Refusal> {
    match scale(body)? {
        1.0 => Ok(()),
        other => Err(Refusal(format!("with conv_result_scale {other}"))),
    }
}

/// `f32`, or `f64` for itself: integer convolutions with an epilogue are computed in `f32`, too.
fn compute_type(ty: ElementType) -> ElementType {
    if ty == ElementType::F64 { ElementType::F64 } else { ElementType::F32 }
}

/// Conversion to a result type; 8-bit ones saturate.
fn narrow(body: &mut Body<'_>, x: InstrId, ty: ElementType) -> Built {
    if ty.is_float() && ty.bits() == 8 && body.ty(x)? != ty {
        let clamped = body.clamp_to(x, ty)?;
        return body.convert(clamped, ty);
    }
    body.convert(x, ty)
}

fn done(body: &mut Body<'_>, conv: &Conv, x: InstrId, others: &[InstrId]) -> Built {
    let x = narrow(body, x, body.result(0)?.element_type)?;
    let mut results = vec![conv.split(body, x)?];
    results.extend(others);
    body.results(&results)
}

/// An activation of `xla/tsl/protobuf/dnn.proto`.
fn activation(body: &mut Body<'_>, mode: &str, x: InstrId, alpha: f64) -> Built {
    match mode {
        "kNone" | "0" => Ok(x),
        "kSigmoid" | "1" => body.unary(Opcode::Logistic, x),
        "kRelu" | "2" => body.with(Opcode::Maximum, x, 0.0),
        "kRelu6" | "3" => {
            let x = body.with(Opcode::Maximum, x, 0.0)?;
            body.with(Opcode::Minimum, x, 6.0)
        }
        "kTanh" | "5" => body.unary(Opcode::Tanh, x),
        "kElu" | "7" => {
            let low = body.unary(Opcode::ExponentialMinusOne, x)?;
            body.where_positive(x, x, low)
        }
        "kLeakyRelu" | "8" => {
            let low = body.with(Opcode::Multiply, x, alpha)?;
            body.where_positive(x, x, low)
        }
        other => Err(Refusal(format!("with activation_mode {other}"))),
    }
}

/// Which of the three arrays of a convolution.
#[derive(Clone, Copy)]
enum Role {
    Input,
    Filter,
    Output,
}

/// A forward convolution.
struct Conv {
    /// Without `?`.
    labels: ConvDims,
    /// As written.
    written: ConvDims,
    window: Window,
    groups: i64,
    precision: Option<AttrValue>,
}

/// Labels of the arrays without the dimensions labelled `?`.
fn without_unknown(written: &ConvDims) -> ConvDims {
    let moved =
        |role: usize, d: i64| d - written.unknown[role].iter().filter(|&&gone| gone < d).count() as i64;
    let all = |role: usize, dims: &[i64]| dims.iter().map(|&d| moved(role, d)).collect();
    ConvDims {
        input_batch: moved(0, written.input_batch),
        input_feature: moved(0, written.input_feature),
        input_spatial: all(0, &written.input_spatial),
        kernel_input_feature: moved(1, written.kernel_input_feature),
        kernel_output_feature: moved(1, written.kernel_output_feature),
        kernel_spatial: all(1, &written.kernel_spatial),
        output_batch: moved(2, written.output_batch),
        output_feature: moved(2, written.output_feature),
        output_spatial: all(2, &written.output_spatial),
        unknown: Default::default(),
    }
}

impl Conv {
    fn read(body: &Body<'_>) -> Result<Self, Refusal> {
        let attrs = &body.call.instruction.attrs;
        let written = attrs.conv_dims().ok_or_else(|| Refusal("without dim_labels".into()))?.clone();
        let spatial = written.input_spatial.len();
        let window = attrs.window().cloned().unwrap_or_default();
        let forward = |d: &WindowDim| d.base_dilation == 1 && d.stride >= 1 && d.window_dilation >= 1;
        if window.dims.len() != spatial || !window.dims.iter().all(forward) {
            return Err(Refusal("with such a window".into()));
        }
        if written.unknown.iter().any(|u| u.len() > 1) {
            return Err(Refusal("with more than one dimension labelled ?".into()));
        }
        let groups = attrs.int(AttrKey::FeatureGroupCount).unwrap_or(1);
        if groups < 1 || attrs.int(AttrKey::BatchGroupCount).unwrap_or(1) != 1 {
            return Err(Refusal("with such groups".into()));
        }
        if config(body).flag("reordered_int8_nchw_vect") {
            return Err(Refusal("with a reordered filter".into()));
        }
        let labels = without_unknown(&written);
        let precision = attrs.get(AttrKey::OperandPrecision).cloned();
        Ok(Self { labels, written, window, groups, precision })
    }

    /// The dimension labelled `?` and that of the features whose minor part it is.
    fn vector(&self, role: Role) -> Option<(i64, i64)> {
        let (unknown, feature) = match role {
            Role::Input => (&self.written.unknown[0], self.written.input_feature),
            Role::Filter => (&self.written.unknown[1], self.written.kernel_input_feature),
            Role::Output => (&self.written.unknown[2], self.written.output_feature),
        };
        unknown.first().map(|&unknown| (unknown, feature))
    }

    /// Joins the two parts of the features.
    fn merge(&self, body: &mut Body<'_>, x: InstrId, role: Role) -> Built {
        let Some((unknown, feature)) = self.vector(role) else { return Ok(x) };
        let dims = body.dims(x)?;
        let size = |d: i64| usize::try_from(d).ok().and_then(|d| dims.get(d)).copied();
        let (Some(minor), Some(major)) = (size(unknown), size(feature)) else {
            return Err(Refusal("with dim_labels of another rank".into()));
        };
        let order: Vec<i64> = (0..dims.len() as i64)
            .filter(|&d| d != unknown)
            .flat_map(|d| if d == feature { vec![d, unknown] } else { vec![d] })
            .collect();
        let x = body.transpose(x, &order)?;
        let merged: Vec<i64> = (0..dims.len() as i64)
            .filter(|&d| d != unknown)
            .map(|d| if d == feature { major.saturating_mul(minor) } else { dims[d as usize] })
            .collect();
        body.reshape(x, &merged)
    }

    /// An operand of a fused operation that has the form of the result.
    fn merge_if_ranked(&self, body: &mut Body<'_>, x: InstrId, like: InstrId) -> Built {
        let rank = body.dims(x)?.len();
        if self.vector(Role::Output).is_some() && rank == body.dims(like)?.len() + 1 {
            return self.merge(body, x, Role::Output);
        }
        Ok(x)
    }

    /// Undoes [`Conv::merge`] of the result.
    fn split(&self, body: &mut Body<'_>, x: InstrId) -> Built {
        let Some((unknown, feature)) = self.vector(Role::Output) else { return Ok(x) };
        let wanted = body.result(0)?.dims.clone();
        let order: Vec<i64> = (0..wanted.len() as i64)
            .filter(|&d| d != unknown)
            .flat_map(|d| if d == feature { vec![d, unknown] } else { vec![d] })
            .collect();
        let dimension = |d: i64| usize::try_from(d).ok().and_then(|d| wanted.get(d)).copied();
        let sizes: Option<Vec<i64>> = order.iter().map(|&d| dimension(d)).collect();
        let sizes = sizes.ok_or_else(|| Refusal("with dim_labels of another rank".into()))?;
        let x = body.reshape(x, &sizes)?;
        let mut inverse = vec![0; order.len()];
        order.iter().enumerate().for_each(|(from, &to)| inverse[to as usize] = from as i64);
        body.transpose(x, &inverse)
    }

    fn attrs(&self, labels: ConvDims, window: SmallVec<[WindowDim; 2]>) -> Attrs {
        let mut attrs = Attrs::new()
            .with(AttrKey::DimLabels, AttrValue::ConvDims(Box::new(labels)))
            .with(AttrKey::Window, AttrValue::Window(Box::new(Window { dims: window })));
        if let Some(precision) = &self.precision {
            attrs.set(AttrKey::OperandPrecision, precision.clone());
        }
        attrs
    }

    fn convolve(&self, body: &mut Body<'_>, a: InstrId, b: InstrId, attrs: Attrs, ty: ElementType) -> Built {
        let shape: Shape = retyped(body.infer(Opcode::Convolution, &[a, b], &attrs)?, ty);
        body.shaped(Opcode::Convolution, shape, &[a, b], attrs)
    }

    /// The convolution itself.
    fn forward(&self, body: &mut Body<'_>, input: InstrId, filter: InstrId, ty: ElementType) -> Built {
        let input = self.merge(body, input, Role::Input)?;
        let filter = self.merge(body, filter, Role::Filter)?;
        let attrs = self.attrs(self.labels.clone(), self.window.dims.clone());
        let attrs = attrs.with(AttrKey::FeatureGroupCount, AttrValue::Int(self.groups));
        self.convolve(body, input, filter, attrs, ty)
    }

    /// Its transpose in the input: `d[i] = sum of gradient[o] * filter[k]` where `i = stride o + dilation k -
    /// padding`.
    fn backward_input(&self, body: &mut Body<'_>, gradient: InstrId, filter: InstrId) -> Built {
        self.plain()?;
        let result = body.result(0)?;
        let (ty, wanted) = (result.element_type, result.dims.clone());
        let l = &self.labels;
        let filter_dims = body.dims(filter)?;
        // With groups, a filter's output features are (group, feature); those of the transpose are its input
        // features.
        let (i, o) = (l.kernel_input_feature, l.kernel_output_feature);
        let size =
            |dims: &[i64], d: i64| usize::try_from(d).ok().and_then(|d| dims.get(d)).copied().unwrap_or(0);
        let (inputs, outputs) = (size(&filter_dims, i), size(&filter_dims, o));
        let filter = if self.groups > 1 {
            if outputs % self.groups != 0 {
                return Err(Refusal("with such groups".into()));
            }
            let rank = filter_dims.len() as i64;
            let grouped: Vec<i64> = (0..rank)
                .flat_map(|d| {
                    if d == o {
                        vec![self.groups, outputs / self.groups]
                    } else {
                        vec![filter_dims[d as usize]]
                    }
                })
                .collect();
            let filter = body.reshape(filter, &grouped)?;
            // Where a dimension of the filter is now; `o` itself is the group, the feature stands behind it.
            let now = |d: i64| if d > o { d + 1 } else { d };
            let order: Vec<i64> = (0..rank)
                .flat_map(|d| {
                    if d == i {
                        vec![now(o), now(i)]
                    } else if d == o {
                        vec![o + 1]
                    } else {
                        vec![now(d)]
                    }
                })
                .collect();
            let filter = body.transpose(filter, &order)?;
            let merged: Vec<i64> = (0..rank)
                .map(|d| match d {
                    d if d == i => inputs.saturating_mul(self.groups),
                    d if d == o => outputs / self.groups,
                    d => filter_dims[d as usize],
                })
                .collect();
            body.reshape(filter, &merged)?
        } else {
            filter
        };
        let gradient_dims = body.dims(gradient)?;
        let window = self
            .window
            .dims
            .iter()
            .enumerate()
            .map(|(k, w)| {
                let input = size(&wanted, l.input_spatial[k]);
                let output = size(&gradient_dims, l.output_spatial[k]);
                let reach = w.window_dilation.saturating_mul(w.size.saturating_sub(1));
                let pad_low = reach.saturating_sub(w.pad_low);
                let spread = output.saturating_sub(1).saturating_mul(w.stride).saturating_add(1);
                let pad_high = input.saturating_sub(spread).saturating_sub(pad_low).saturating_add(reach);
                WindowDim {
                    size: w.size,
                    stride: 1,
                    pad_low,
                    pad_high,
                    base_dilation: w.stride,
                    window_dilation: w.window_dilation,
                    reversal: !w.reversal,
                }
            })
            .collect();
        let labels = ConvDims {
            input_batch: l.output_batch,
            input_feature: l.output_feature,
            input_spatial: l.output_spatial.clone(),
            kernel_input_feature: o,
            kernel_output_feature: i,
            kernel_spatial: l.kernel_spatial.clone(),
            output_batch: l.input_batch,
            output_feature: l.input_feature,
            output_spatial: l.input_spatial.clone(),
            unknown: Default::default(),
        };
        let attrs = self.attrs(labels, window).with(AttrKey::FeatureGroupCount, AttrValue::Int(self.groups));
        self.convolve(body, gradient, filter, attrs, ty)
    }

    /// Its transpose in the filter: `d[k] = sum over the batch and o of input[stride o + dilation k -
    /// padding] * gradient[o]`.
    fn backward_filter(&self, body: &mut Body<'_>, input: InstrId, gradient: InstrId) -> Built {
        self.plain()?;
        let ty = body.result(0)?.element_type;
        let l = &self.labels;
        let (input_dims, gradient_dims) = (body.dims(input)?, body.dims(gradient)?);
        let size =
            |dims: &[i64], d: i64| usize::try_from(d).ok().and_then(|d| dims.get(d)).copied().unwrap_or(0);
        let window = self
            .window
            .dims
            .iter()
            .enumerate()
            .map(|(k, w)| {
                let input = size(&input_dims, l.input_spatial[k]);
                let output = size(&gradient_dims, l.output_spatial[k]);
                let reach = w.stride.saturating_mul(output.saturating_sub(1));
                let last = w.window_dilation.saturating_mul(w.size.saturating_sub(1));
                // The last placement ends where the padding does.
                let pad_high = reach.saturating_add(last).saturating_add(1);
                let pad_high = pad_high.saturating_sub(input).saturating_sub(w.pad_low);
                WindowDim {
                    size: output,
                    stride: w.window_dilation,
                    pad_low: w.pad_low,
                    pad_high,
                    base_dilation: 1,
                    window_dilation: w.stride,
                    reversal: false,
                }
            })
            .collect();
        let labels = ConvDims {
            input_batch: l.input_feature,
            input_feature: l.input_batch,
            input_spatial: l.input_spatial.clone(),
            kernel_input_feature: l.output_batch,
            kernel_output_feature: l.output_feature,
            kernel_spatial: l.output_spatial.clone(),
            output_batch: l.kernel_input_feature,
            output_feature: l.kernel_output_feature,
            output_spatial: l.kernel_spatial.clone(),
            unknown: Default::default(),
        };
        let attrs = self.attrs(labels, window).with(AttrKey::BatchGroupCount, AttrValue::Int(self.groups));
        let x = self.convolve(body, input, gradient, attrs, ty)?;
        let reversed: Vec<i64> = self
            .window
            .dims
            .iter()
            .zip(&l.kernel_spatial)
            .filter(|(w, _)| w.reversal)
            .map(|(_, &d)| d)
            .collect();
        if reversed.is_empty() {
            return Ok(x);
        }
        body.instr(
            Opcode::Reverse,
            &[x],
            Attrs::new().with(AttrKey::Dimensions, AttrValue::Ints(reversed.into())),
        )
    }

    fn plain(&self) -> Result<(), Refusal> {
        if self.written.unknown.iter().any(|u| !u.is_empty()) {
            return Err(Refusal("with dimensions labelled ?".into()));
        }
        Ok(())
    }
}
