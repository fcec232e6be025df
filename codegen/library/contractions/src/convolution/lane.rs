//! The axes of a convolution: a spatial one as all three arrays see it, and those that are not spatial. A
//! dilated input is taken apart here.

use smallvec::SmallVec;

use super::patches::Axis;

/// One spatial axis with the strides of kernel and result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    pub(super) axis: Axis,
    pub(super) kernel_stride: isize,
    pub(super) kernel_offset: isize,
    pub(super) result_stride: isize,
    pub(super) result_offset: isize,
}

impl Lane {
    /// A dimension of size 1.
    pub(super) fn one() -> Lane {
        let axis = Axis {
            input: 1,
            input_stride: 0,
            kernel: 1,
            output: 1,
            stride: 1,
            padding: 0,
            input_dilation: 1,
            kernel_dilation: 1,
        };
        Lane { axis, kernel_stride: 0, kernel_offset: 0, result_stride: 0, result_offset: 0 }
    }

    /// The lanes that together are this one, each without dilation of the input if that is possible.
    pub(super) fn phases(self) -> SmallVec<[Lane; 4]> {
        let axis = self.axis;
        let d = axis.input_dilation;
        if d == 1 || axis.stride != 1 || axis.kernel_dilation != 1 {
            return SmallVec::from_slice(&[self]);
        }
        let phase = |r: isize| {
            let first = (axis.padding - r).rem_euclid(d);
            let count = |n: usize, first: isize| (n as isize - first + d - 1).max(0) as usize / d as usize;
            Lane {
                axis: Axis {
                    kernel: count(axis.kernel, first),
                    output: count(axis.output, r),
                    padding: (axis.padding - r - first) / d,
                    input_dilation: 1,
                    ..axis
                },
                kernel_stride: self.kernel_stride * d,
                kernel_offset: self.kernel_offset + first * self.kernel_stride,
                result_stride: self.result_stride * d,
                result_offset: self.result_offset + r * self.result_stride,
            }
        };
        (0..d.min(axis.output as isize)).map(phase).collect()
    }
}

/// Sizes and strides of the dimensions that are not spatial.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outer {
    pub(super) feature_groups: usize,
    pub(super) batch_groups: usize,
    pub(super) batch: usize,
    pub(super) batch_stride: isize,
    pub(super) channels: usize,
    pub(super) channel_stride: isize,
    pub(super) kernel_channel_stride: isize,
    pub(super) features: usize,
    pub(super) kernel_feature_stride: isize,
    pub(super) result_batch_stride: isize,
    pub(super) result_feature_stride: isize,
}
