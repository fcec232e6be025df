//! Library calls: custom calls that a compiler substituted for HLO, their meaning in the target's name and in
//! `backend_config`.
//!
//! A family of targets is a file that writes the HLO which a call stands for ([`Body`]); the interpreter runs
//! that like any other HLO, so its bits are those of the operations, and another engine may run the same.
//! **Invariant:** an expansion depends on the call alone, holds no custom call that itself stands for HLO,
//! and refuses ([`Refusal`]) what it does not know rather than guess.

mod attention;
mod block_scale;
mod body;
mod config;
mod cub;
mod cublas;
mod cudnn_conv;
mod dynamic;
mod jax;
mod neuron;
mod norm;
mod onednn;
mod solver;

use hlo::infer::InferError;
use hlo::{Module, Shape, UNBOUNDED};

use self::Meaning::{Direct, Expansion};
use self::body::{Body, Built};
use super::{Args, Cx};
use crate::custom_call::Call;
use crate::error::{Result, RunError};
use crate::value::Value;

/// Why a call has no expansion: goes on from the name of its target.
#[derive(Debug)]
struct Refusal(String);

impl From<InferError> for Refusal {
    fn from(error: InferError) -> Self {
        Refusal(format!("whose operands do not fit: {}", error.message))
    }
}

/// The meaning of a target.
enum Meaning {
    /// HLO: the function writes it and gives its result.
    Expansion(fn(&mut Body<'_>) -> Built),
    /// The meaning has no HLO: what refuses a call by its shapes, and what runs one.
    Direct(fn(&Call<'_>) -> Result<()>, fn(&Cx<'_>, &Call<'_>, &[Value]) -> Result<Value>),
}

const TARGETS: &[(&str, Meaning)] = &[
    ("AwsNeuronArgMax", Expansion(neuron::argmax)),
    ("AwsNeuronArgMin", Expansion(neuron::argmin)),
    ("AwsNeuronErf", Expansion(neuron::erf)),
    ("AwsNeuronGelu", Expansion(neuron::gelu)),
    ("AwsNeuronGeluApprxTanh", Expansion(neuron::gelu_tanh)),
    ("AwsNeuronGeluBackward", Expansion(neuron::gelu_derivative)),
    ("AwsNeuronRmsNorm", Expansion(neuron::rms_norm)),
    ("AwsNeuronSilu", Expansion(neuron::silu)),
    ("AwsNeuronSiluBackward", Expansion(neuron::silu_derivative)),
    ("AwsNeuronSoftmax", Expansion(neuron::softmax)),
    ("AwsNeuronSoftmaxBackward", Expansion(neuron::softmax_gradient)),
    ("AwsNeuronTopK", Expansion(neuron::top_k)),
    ("Eigh", Expansion(solver::eigh)),
    ("LuDecomposition", Expansion(solver::lu)),
    ("PadToStatic", Direct(dynamic::check_pad, dynamic::pad_to_static)),
    ("ProductOfElementaryHouseholderReflectors", Expansion(solver::orgqr)),
    ("Qr", Expansion(solver::geqrf)),
    ("ResizeNearest", Expansion(neuron::resize_nearest)),
    ("ResizeNearestGrad", Expansion(neuron::resize_nearest_gradient)),
    ("SliceToDynamic", Direct(dynamic::check_slice, dynamic::slice_to_dynamic)),
    ("__cublas$gemm", Expansion(cublas::gemm)),
    ("__cublas$lt$groupedMatmul", Expansion(cublas::grouped)),
    ("__cublas$lt$matmul", Expansion(cublas::matmul)),
    ("__cublas$lt$matmul$f8", Expansion(cublas::matmul_f8)),
    ("__cublas$lt$matmul$mx", Expansion(block_scale::swizzled_dot)),
    ("__cublas$triangularSolve", Expansion(cublas::triangular_solve)),
    ("__cudnn$blockScaledDot", Expansion(block_scale::swizzled_dot)),
    ("__cudnn$convBackwardFilter", Expansion(cudnn_conv::backward_filter)),
    ("__cudnn$convBackwardInput", Expansion(cudnn_conv::backward_input)),
    ("__cudnn$convBiasActivationForward", Expansion(cudnn_conv::fused)),
    ("__cudnn$convForward", Expansion(cudnn_conv::forward)),
    ("__cudnn$convForwardGraph", Expansion(cudnn_conv::graph)),
    ("__cudnn$fmhaScaleBiasSoftmax", Expansion(attention::forward_bias)),
    ("__cudnn$fmhaScaleBiasSoftmaxBackward", Expansion(attention::backward_bias)),
    ("__cudnn$fmhaSoftmax", Expansion(attention::forward)),
    ("__cudnn$fmhaSoftmaxBackward", Expansion(attention::backward)),
    ("__cudnn$norm", Expansion(norm::cudnn)),
    ("__onednn$convolution", Expansion(onednn::convolution)),
    ("__onednn$layernorm", Expansion(norm::onednn_layer)),
    ("__onednn$matmul", Expansion(onednn::matmul)),
    ("__onednn$softmax", Expansion(norm::onednn_softmax)),
    ("__op$block_scaled_dot", Expansion(block_scale::dot)),
    ("__op$dequantize", Expansion(block_scale::dequantize)),
    ("__op$quantize", Expansion(block_scale::quantize)),
    ("__xla_gpu_assert", Direct(jax::check_assertion, jax::assertion)),
    ("__xla_gpu_debug_print", Direct(jax::check_silent, jax::silent)),
    ("chlo.acos", Expansion(jax::unary)),
    ("chlo.acosh", Expansion(jax::unary)),
    ("chlo.asin", Expansion(jax::unary)),
    ("chlo.asinh", Expansion(jax::unary)),
    ("chlo.atanh", Expansion(jax::unary)),
    ("chlo.cosh", Expansion(jax::unary)),
    ("chlo.erf", Expansion(jax::unary)),
    ("chlo.sinh", Expansion(jax::unary)),
    ("chlo.tan", Expansion(jax::unary)),
    ("cu_lu_pivots_to_permutation", Direct(jax::check_pivots, jax::lu_pivots_to_permutation)),
    ("cu_threefry2x32_ffi", Expansion(jax::threefry2x32)),
    ("cusolver_geqrf_ffi", Expansion(solver::geqrf)),
    ("cusolver_gesvd_ffi", Expansion(solver::gesvd)),
    ("cusolver_getrf_ffi", Expansion(solver::getrf)),
    ("cusolver_orgqr_ffi", Expansion(solver::orgqr)),
    ("cusolver_ormqr_ffi", Expansion(solver::ormqr)),
    ("cusolver_potrf_ffi", Expansion(solver::potrf)),
    ("cusolver_syevd_ffi", Expansion(solver::syevd)),
    ("cusolver_sytrd_ffi", Expansion(solver::sytrd)),
    ("hip_lu_pivots_to_permutation", Direct(jax::check_pivots, jax::lu_pivots_to_permutation)),
    ("hip_threefry2x32_ffi", Expansion(jax::threefry2x32)),
    ("hipsolver_geqrf_ffi", Expansion(solver::geqrf)),
    ("hipsolver_gesvd_ffi", Expansion(solver::gesvd)),
    ("hipsolver_getrf_ffi", Expansion(solver::getrf)),
    ("hipsolver_orgqr_ffi", Expansion(solver::orgqr)),
    ("hipsolver_ormqr_ffi", Expansion(solver::ormqr)),
    ("hipsolver_potrf_ffi", Expansion(solver::potrf)),
    ("hipsolver_syevd_ffi", Expansion(solver::syevd)),
    ("hipsolver_sytrd_ffi", Expansion(solver::sytrd)),
    ("mhlo.acos", Expansion(jax::unary)),
    ("mhlo.acosh", Expansion(jax::unary)),
    ("mhlo.asin", Expansion(jax::unary)),
    ("mhlo.asinh", Expansion(jax::unary)),
    ("mhlo.atanh", Expansion(jax::unary)),
    ("mhlo.cosh", Expansion(jax::unary)),
    ("mhlo.erf", Expansion(jax::unary)),
    ("mhlo.sinh", Expansion(jax::unary)),
    ("mhlo.tan", Expansion(jax::unary)),
    ("shape_assertion", Direct(jax::check_assertion, jax::assertion)),
    ("xla.gpu.ext.cub_scan", Expansion(cub::scan)),
    ("xla.gpu.ext.cub_scan_unassigned_scratch_size", Expansion(cub::scan)),
    ("xla.gpu.ext.cub_sort_keys", Expansion(cub::sort)),
    ("xla.gpu.ext.cub_sort_pairs", Expansion(cub::sort)),
    ("xla.gpu.ext.cub_sort_unassigned_scratch_size", Expansion(cub::sort)),
];

/// Whether a target is one of those here.
pub(crate) fn is_known(target: &str) -> bool {
    TARGETS.iter().any(|(name, _)| *name == target)
}

/// The meaning of a target.
fn meaning_of(target: &str) -> Option<&'static Meaning> {
    TARGETS.iter().find(|(name, _)| *name == target).map(|(_, meaning)| meaning)
}

/// The HLO that a call stands for.
fn written(call: &Call<'_>, expand: fn(&mut Body<'_>) -> Built) -> Result<Module, Refusal> {
    let mut module = Module::new("library");
    let mut body = Body::new(*call, &mut module)?;
    let root = expand(&mut body)?;
    let entry = body.finish(root);
    module.set_entry(entry);
    check_sizes(call, &module)?;
    Ok(module)
}

/// Refuses sizes that come of numbers of a configuration and are none: inference takes [`UNBOUNDED`] for a
/// size that is not known, which it is only in shapes, and here only where the call has such.
fn check_sizes(call: &Call<'_>, module: &Module) -> std::result::Result<(), Refusal> {
    let has = |shape: &Shape, size: &dyn Fn(i64) -> bool| {
        shape.leaves().iter().any(|s| s.as_array().is_some_and(|a| a.dims.iter().any(|&d| size(d))))
    };
    let unbounded = |shape: &Shape| has(shape, &|d| d == UNBOUNDED);
    let given = call.instruction.operands().iter().map(|&o| &call.module.instr(o).shape);
    if given.chain([&call.instruction.shape]).any(unbounded) {
        return Ok(());
    }
    let mut all = module.computations().iter().flat_map(|&c| module.instructions(c));
    if all.any(|id| has(&module.instr(id).shape, &|d| d < 0)) {
        return Err(Refusal("of sizes that are negative".into()));
    }
    Ok(())
}

/// The HLO that a call stands for; `None` if that is not HLO, or not of these operands.
pub(crate) fn expansion(call: &Call<'_>) -> Option<Module> {
    match meaning_of(call.target())? {
        Expansion(expand) => written(call, *expand).ok(),
        Direct(..) => None,
    }
}

/// Refuses a call whose target is none of those here, or of a form that a run refuses.
pub(super) fn check(call: &Call<'_>) -> Result<()> {
    match meaning_of(call.target()) {
        Some(Expansion(expand)) => {
            let module = written(call, *expand).map_err(|refusal| call.unsupported(&refusal.0))?;
            call.gives(&module.instr(module.root(module.entry())).shape)
        }
        Some(Direct(check, _)) => check(call),
        None => Err(unknown(call)),
    }
}

/// The error that a target is unknown.
pub(super) fn unknown(call: &Call<'_>) -> RunError {
    call.unsupported("(no such target is known)")
}

/// Runs a call; `None` if its target is none of those here.
pub(super) fn run(cx: &Cx<'_>, call: &Call<'_>, args: Args) -> Result<Option<Value>> {
    let expand = match meaning_of(call.target()) {
        None => return Ok(None),
        Some(Direct(_, run)) => return run(cx, call, &args).map(Some),
        Some(Expansion(expand)) => expand,
    };
    let module = written(call, *expand).map_err(|refusal| call.unsupported(&refusal.0))?;
    let result = cx.session.run_library(&module, args, cx.depth);
    let here = |error| RunError { instruction: cx.instr.name.clone(), span: cx.instr.span, ..error };
    result.map(Some).map_err(here)
}
