//! Which products a convolution adds up.

use hlo::attrs::WindowDim;
use hlo::{AttrKey, Instruction};
use hlo_interp::Tensor;

use super::super::folds::window_element;
use super::products::Products;

/// One spatial dimension.
struct Axis {
    /// Sizes of the left operand, the right one, the result.
    sizes: [usize; 3],
    /// Strides in elements, of the same.
    strides: [usize; 3],
    window: WindowDim,
}

/// The operands of a `convolution` without groups of batches.
pub(super) struct Windows {
    axes: Vec<Axis>,
    /// Of the result's batches and features the size and the distance of neighbours.
    output: [(usize, usize); 2],
    results: usize,
    /// Input features that a result adds up, and the distances of neighbours in both operands.
    channels: usize,
    channel_strides: [usize; 2],
    /// Distances of neighbouring batches on the left, features on the right.
    batch_stride: usize,
    feature_stride: usize,
    /// Output features of a group.
    group: usize,
    terms: usize,
}

impl Windows {
    pub(super) fn new(instr: &Instruction, lhs: &Tensor, rhs: &Tensor, result: &Tensor) -> Option<Windows> {
        let dims = instr.attrs.conv_dims()?;
        let window = instr.attrs.window()?;
        let of_groups = instr.attrs.int(AttrKey::BatchGroupCount).unwrap_or(1);
        if of_groups != 1 || dims.unknown.iter().any(|u| !u.is_empty()) {
            return None;
        }
        if [lhs, rhs, result].iter().any(|t| t.is_empty()) {
            return None;
        }
        let of = |t: &Tensor, d: i64| -> Option<(usize, usize)> {
            let (sizes, d) = (t.sizes(), usize::try_from(d).ok()?);
            Some((*sizes.get(d)?, sizes[d + 1..].iter().product()))
        };
        let mut axes = Vec::new();
        for (k, w) in window.dims.iter().enumerate() {
            let of = [
                of(lhs, *dims.input_spatial.get(k)?)?,
                of(rhs, *dims.kernel_spatial.get(k)?)?,
                of(result, *dims.output_spatial.get(k)?)?,
            ];
            axes.push(Axis {
                sizes: of.map(|(size, _)| size),
                strides: of.map(|(_, stride)| stride),
                window: *w,
            });
        }
        if axes.len() != dims.output_spatial.len() || axes.iter().any(|a| a.window.base_dilation < 1) {
            return None;
        }
        let (channels, right) = of(rhs, dims.kernel_input_feature)?;
        let (all, left) = of(lhs, dims.input_feature)?;
        let (features, feature_stride) = of(rhs, dims.kernel_output_feature)?;
        let output = [of(result, dims.output_batch)?, of(result, dims.output_feature)?];
        let groups = all / channels;
        let group = features.checked_div(groups)?;
        if groups * channels != all || group * groups != features || output[1].0 != features {
            return None;
        }
        Some(Windows {
            axes,
            output,
            results: result.len(),
            channels,
            channel_strides: [left, right],
            batch_stride: of(lhs, dims.input_batch)?.1,
            feature_stride,
            group,
            terms: rhs.len() / features,
        })
    }
}

impl Products for Windows {
    fn results(&self) -> usize {
        self.results
    }

    fn terms(&self) -> usize {
        self.terms
    }

    fn each(&self, result: usize, mut add: impl FnMut(usize, usize)) {
        let coordinate = |(size, stride): (usize, usize)| result / stride % size;
        let (batch, feature) = (coordinate(self.output[0]), coordinate(self.output[1]));
        let first = [
            batch * self.batch_stride + feature / self.group * self.channels * self.channel_strides[0],
            feature * self.feature_stride,
        ];
        let outputs: Vec<usize> = self.axes.iter().map(|a| coordinate((a.sizes[2], a.strides[2]))).collect();
        let positions: usize = self.axes.iter().map(|a| a.sizes[1]).product();
        'positions: for position in 0..positions {
            let ([mut left, mut right], mut rest) = (first, position);
            for (axis, &output) in self.axes.iter().zip(&outputs).rev() {
                let at = rest % axis.sizes[1];
                rest /= axis.sizes[1];
                let input = window_element(&axis.window, axis.sizes[0], output, at);
                let Some(input) = input else { continue 'positions };
                left += input * axis.strides[0];
                right += at * axis.strides[1];
            }
            for c in 0..self.channels {
                add(left + c * self.channel_strides[0], right + c * self.channel_strides[1]);
            }
        }
    }
}
