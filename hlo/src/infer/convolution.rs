//! `convolution`.
//!
//! `convolution_kind` is a hint for code generation: as in XLA's verifier the shape is that of a forward
//! convolution whatever the kind. The element type of the result is the declared one; operands may differ in
//! type.

use super::InferError;
use super::cx::{Cx, DimList, Inferred, count, show_array, size};
use super::types::{Classes, same_size};
use super::window::placements;
use crate::attrs::{AttrKey, ConvDims, SparsitySide, Window};
use crate::diag::codes;
use crate::shape::UNBOUNDED;

/// Fails unless batch, feature and spatial dimensions name each dimension once. Gives the indices in that
/// order.
fn roles(
    cx: &Cx,
    what: &str,
    two: [i64; 2],
    spatial: &[i64],
    unknown: &[i64],
) -> Result<Vec<usize>, InferError> {
    if !unknown.is_empty() {
        return Err(cx.error(
            codes::CONV_DIMENSIONS,
            format!("dim_labels does not say what dimension {} of the {what} is", unknown[0]),
        ));
    }
    let all: Vec<i64> = two.iter().chain(spatial).copied().collect();
    let dims = cx.dimensions(&format!("dim_labels of the {what}: dimension"), &all, all.len())?;
    Ok(dims.to_vec())
}

/// A group count: absent means 1.
fn groups(cx: &Cx, key: AttrKey) -> Result<i64, InferError> {
    let n = cx.attrs.int(key).unwrap_or(1);
    if n > 0 {
        Ok(n)
    } else {
        Err(cx.error(codes::CONV_GROUPS, format!("{} {n} must be positive", key.text())))
    }
}

/// Whether a size is a multiple of a group count, as far as one knows.
fn divides(n: i64, groups: i64) -> bool {
    n == UNBOUNDED || n % groups == 0
}

/// One side's sparsity: its indices are an operand past the first two.
fn sparsity(cx: &Cx, side: &str, s: &SparsitySide) -> Result<Option<usize>, InferError> {
    let Some(idx) = s.idx else { return Ok(None) };
    let operand =
        usize::try_from(idx).ok().filter(|&i| i >= 2 && i < cx.operands.len()).ok_or_else(|| {
            cx.error(codes::CONV_SPARSITY, format!("{side} sparsity indices are operand {idx}")).label(
                format!(
                    "there are {}, indices come after the first two",
                    count(cx.operands.len(), "operand")
                ),
            )
        })?;
    cx.require_type(operand, Classes::INTEGER)?;
    Ok(Some(operand))
}

/// `convolution`
pub(super) fn convolution(cx: &Cx) -> Inferred {
    let (lhs, rhs) = (cx.array(0)?, cx.array(1)?);
    let dims: &ConvDims = cx.required(cx.attrs.conv_dims(), AttrKey::DimLabels)?;
    let none = Window::default();
    let window = cx.attrs.window().unwrap_or(&none);
    let (features, batches) =
        (groups(cx, AttrKey::FeatureGroupCount)?, groups(cx, AttrKey::BatchGroupCount)?);
    if features > 1 && batches > 1 {
        return Err(cx.error(
            codes::CONV_GROUPS,
            format!(
                "feature_group_count {features} and batch_group_count {batches} cannot both be greater than 1"
            ),
        ));
    }
    let spatial = dims.input_spatial.len();
    if dims.kernel_spatial.len() != spatial || dims.output_spatial.len() != spatial {
        return Err(cx.error(
            codes::CONV_DIMENSIONS,
            format!(
                "dim_labels has {spatial}, {} and {} spatial dimensions",
                dims.kernel_spatial.len(),
                dims.output_spatial.len()
            ),
        ));
    }
    if window.dims.len() != spatial {
        return Err(cx.error(
            codes::WINDOW,
            format!(
                "the window has {}, dim_labels {spatial} spatial ones",
                count(window.dims.len(), "dimension")
            ),
        ));
    }
    for (i, x) in [(0, lhs), (1, rhs)] {
        if x.rank() != spatial + 2 {
            return Err(cx
                .error(
                    codes::RANK,
                    format!(
                        "operand {i} must have {} as in dim_labels, not {}",
                        count(spatial + 2, "dimension"),
                        x.rank()
                    ),
                )
                .at(i, format!("this is {}", show_array(x))));
        }
    }
    let input = roles(
        cx,
        "left operand",
        [dims.input_batch, dims.input_feature],
        &dims.input_spatial,
        &dims.unknown[0],
    )?;
    let kernel = roles(
        cx,
        "right operand",
        [dims.kernel_input_feature, dims.kernel_output_feature],
        &dims.kernel_spatial,
        &dims.unknown[1],
    )?;
    let output = roles(
        cx,
        "result",
        [dims.output_batch, dims.output_feature],
        &dims.output_spatial,
        &dims.unknown[2],
    )?;

    let (batch, channels) = (lhs.dims[input[0]], lhs.dims[input[1]]);
    let (mut kernel_channels, results) = (rhs.dims[kernel[0]], rhs.dims[kernel[1]]);
    let mut indices = [None; 2];
    if let Some(config) = cx.attrs.sparsity() {
        let side = |name, s: &Option<SparsitySide>| s.as_ref().map_or(Ok(None), |s| sparsity(cx, name, s));
        let (l, r) = (side("left", &config.lhs)?, side("right", &config.rhs)?);
        if l.is_some() && l == r {
            return Err(cx.error(codes::CONV_SPARSITY, "both sides have the same sparsity indices"));
        }
        indices = [l, r];
        if let Some(s) = &config.rhs {
            if s.num_non_zero != 1 {
                return Err(cx.error(
                    codes::CONV_SPARSITY,
                    format!("{} of {} elements kept, only 1 of n is defined", s.num_non_zero, s.block_size),
                ));
            }
            kernel_channels = kernel_channels
                .checked_mul(s.block_size)
                .ok_or_else(|| cx.overflow("the number of input features"))?;
        }
    }
    if let Some(extra) = (2..cx.operands.len()).find(|&k| !indices.contains(&Some(k))) {
        let message = format!("operand {extra} holds sparsity indices of neither side");
        return Err(cx.error(codes::CONV_SPARSITY, message));
    }
    for (what, n, key, count) in [
        ("output features", results, AttrKey::BatchGroupCount, batches),
        ("output features", results, AttrKey::FeatureGroupCount, features),
        ("examples in the batch", batch, AttrKey::BatchGroupCount, batches),
        ("input features", channels, AttrKey::FeatureGroupCount, features),
    ] {
        if !divides(n, count) {
            return Err(cx
                .error(codes::CONV_GROUPS, format!("{n} {what} are no multiple of {} {count}", key.text()))
                .at(0, format!("this is {}", show_array(lhs)))
                .at(1, format!("this is {}", show_array(rhs))));
        }
    }
    if channels != UNBOUNDED && !same_size(channels / features, kernel_channels) {
        return Err(cx
            .error(
                codes::CONV_FEATURES,
                format!(
                    "{channels} input features in {}, but the kernel takes {kernel_channels} in each",
                    count(usize::try_from(features).unwrap_or(usize::MAX), "group")
                ),
            )
            .at(0, format!("dimension {} of {} has size {channels}", input[1], show_array(lhs)))
            .at(
                1,
                format!("dimension {} of {} has size {}", kernel[0], show_array(rhs), rhs.dims[kernel[0]]),
            ));
    }
    if rhs.is_dynamic_dim(kernel[1]) {
        return Err(cx
            .error(codes::CONV_FEATURES, "the number of output features cannot be dynamic")
            .at(1, format!("this is {}", show_array(rhs))));
    }
    let mut sizes = vec![(0, false); spatial + 2];
    sizes[output[0]] =
        (if batch == UNBOUNDED { batch } else { batch / batches }, lhs.is_dynamic_dim(input[0]));
    sizes[output[1]] = (results, false);
    for (i, w) in window.dims.iter().enumerate() {
        let (from, by) = (input[i + 2], kernel[i + 2]);
        if !same_size(rhs.dims[by], w.size) {
            return Err(cx
                .error(
                    codes::WINDOW,
                    format!(
                        "spatial dimension {i} of the kernel has size {}, that of the window {}",
                        size(rhs.dims[by]),
                        w.size
                    ),
                )
                .at(1, format!("dimension {by} of {} has size {}", show_array(rhs), size(rhs.dims[by]))));
        }
        let n = placements(cx, i, lhs.dims[from], w)?;
        sizes[output[i + 2]] = (n, lhs.is_dynamic_dim(from) || rhs.is_dynamic_dim(by));
    }
    let mut out = DimList::new();
    sizes.into_iter().for_each(|(n, dynamic)| out.push(n, dynamic));
    cx.build(super::dot::result_type(cx)?, out)
}
