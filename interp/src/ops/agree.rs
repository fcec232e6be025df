//! Run-time sizes that must agree.
//!
//! The dimensions of several operands that an operation takes together have one size: that of those which are
//! dynamic. A static dimension that meets a dynamic one is sliced to it. If dynamic ones differ, one of size
//! 1 is repeated where the operation is elementwise, and otherwise all are sliced to the smallest: the rules
//! of XLA's `DynamicDimensionInference` and `DynamicPadder` (without shape checks, their default).

use hlo::{AttrKey, Dims, InstrId, Opcode};

use super::movement;
use super::movement::strided::StridedView;
use super::{Args, Cx};
use crate::error::Result;
use crate::value::{Tensor, Value};

/// Dimensions (operand, dimension) that have one size.
type Group = Vec<(usize, usize)>;

/// Brings operands to sizes that agree. Costs a comparison of dimensions if no run-time size is below its
/// bound.
pub(super) fn agree(cx: &Cx<'_>, args: &mut Args) -> Result<()> {
    let below = |(arg, &id): (&Value, &InstrId)| match (arg, cx.module().instr(id).shape.as_array()) {
        (Value::Array(x), Some(shape)) => *x.dims() != *shape.dims,
        (_, _) => false,
    };
    if !args.iter().zip(cx.instr.operands()).any(below) {
        return Ok(());
    }
    let elementwise = hlo::elementwise::kind(cx.instr.opcode).is_some() || cx.instr.opcode == Opcode::Map;
    for group in groups(cx, args) {
        let size = |&(n, d): &(usize, usize)| args[n].expect_array().dims()[d];
        let dynamic = |&&(n, d): &&(usize, usize)| cx.operand_shape(n).is_dynamic_dim(d);
        let least = group.iter().filter(dynamic).map(size).min();
        let Some(least) = least.or_else(|| group.iter().map(size).min()) else { continue };
        let repeated = group.iter().filter(dynamic).map(size).filter(|&s| s != 1).min();
        let wanted = match repeated {
            Some(larger) if elementwise && least == 1 => larger,
            Some(_) | None => least,
        };
        for (n, d) in group {
            let x = args[n].expect_array();
            if x.dims()[d] == wanted {
                continue;
            }
            let mut dims: Dims = x.dims().into();
            dims[d] = wanted;
            let x =
                if x.dims()[d] == 1 { repeat(cx, x, d, &dims)? } else { movement::resized(cx, x, &dims)? };
            args[n] = x.into();
        }
    }
    Ok(())
}

/// Repeats a dimension of size 1.
fn repeat(cx: &Cx<'_>, x: &Tensor, d: usize, dims: &[i64]) -> Result<Tensor> {
    let mut view = StridedView::dense(&x.sizes());
    view.strides[d] = 0;
    movement::gather_box(cx, x, dims, &view)
}

/// The dimensions that must agree, of operands that are arrays.
fn groups(cx: &Cx<'_>, args: &Args) -> Vec<Group> {
    let attrs = cx.attrs();
    let rank = |n: usize| args.get(n).and_then(Value::as_array).map_or(0, Tensor::rank);
    let list = |key| super::common::list(cx, key);
    // Corresponding dimensions of operands of one rank; of `clamp` and `select` a scalar has none.
    let each = |operands: std::ops::Range<usize>, skip: Option<usize>| -> Vec<Group> {
        let most = operands.clone().map(rank).max().unwrap_or(0);
        let of = |d: usize| operands.clone().filter(|&n| rank(n) == most).map(|n| (n, d)).collect();
        (0..most).filter(|&d| Some(d) != skip).map(of).collect()
    };
    let pairs = |left: &[usize], right: &[usize]| -> Vec<Group> {
        left.iter().zip(right).map(|(&l, &r)| vec![(0, l), (1, r)]).collect()
    };
    let inputs = args.len() / 2;
    let opcode = cx.instr.opcode;
    if matches!(opcode, Opcode::Map | Opcode::Sort) || hlo::elementwise::kind(opcode).is_some() {
        return each(0..args.len(), None);
    }
    if opcode == Opcode::Concatenate {
        return each(0..args.len(), list(AttrKey::Dimensions).first().copied());
    }
    if matches!(opcode, Opcode::Reduce | Opcode::ReduceWindow) {
        return each(0..inputs, None);
    }
    if opcode == Opcode::Dot {
        let batch = pairs(&list(AttrKey::LhsBatchDims), &list(AttrKey::RhsBatchDims));
        let contracting = pairs(&list(AttrKey::LhsContractingDims), &list(AttrKey::RhsContractingDims));
        return batch.into_iter().chain(contracting).collect();
    }
    if opcode == Opcode::Convolution
        && attrs.int(AttrKey::FeatureGroupCount).unwrap_or(1) == 1
        && let Some(labels) = attrs.conv_dims()
    {
        let dimension = |d: i64| usize::try_from(d).expect("invariant: the verifier checked dim_labels");
        return pairs(&[dimension(labels.input_feature)], &[dimension(labels.kernel_input_feature)]);
    }
    if opcode == Opcode::Scatter {
        let window = list(AttrKey::UpdateWindowDims);
        let along = usize::try_from(attrs.int(AttrKey::IndexVectorDim).unwrap_or(-1)).ok();
        let updates = super::common::others(rank(inputs + 1), &[&window]);
        let indices = (0..rank(inputs)).filter(|&d| Some(d) != along);
        let together = indices.zip(updates).map(|(i, u)| {
            std::iter::once((inputs, i)).chain((inputs + 1..args.len()).map(|n| (n, u))).collect()
        });
        return each(0..inputs, None).into_iter().chain(together).collect();
    }
    Vec::new()
}
