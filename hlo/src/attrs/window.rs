//! Windows, convolution dimension labels, padding and slices.

use smallvec::SmallVec;

/// One dimension of a window.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WindowDim {
    /// Number of positions in the window.
    pub size: i64,
    /// Distance between two placements.
    pub stride: i64,
    /// Elements added before; negative cuts.
    pub pad_low: i64,
    /// Elements added after; negative cuts.
    pub pad_high: i64,
    /// Factor by which the base (left) operand is spread.
    pub base_dilation: i64,
    /// Factor by which the window (right operand) is spread.
    pub window_dilation: i64,
    /// Whether the window is read backwards.
    pub reversal: bool,
}

impl Default for WindowDim {
    fn default() -> Self {
        Self {
            size: 1,
            stride: 1,
            pad_low: 0,
            pad_high: 0,
            base_dilation: 1,
            window_dilation: 1,
            reversal: false,
        }
    }
}

impl WindowDim {
    /// The size of a dimension of `size` elements after base dilation and padding; negative if padding cuts
    /// off more than there is. `None`: beyond 64 bits.
    pub fn padded(&self, size: i64) -> Option<i64> {
        dilated(size, self.base_dilation)?.checked_add(self.pad_low)?.checked_add(self.pad_high)
    }

    /// The number of placements of the window in a dimension of `size` elements (XLA:
    /// `InferWindowOutputShape`). The stride is positive. `None`: a size is beyond 64 bits.
    pub fn placements(&self, size: i64) -> Option<i64> {
        let (padded, window) = (self.padded(size)?, dilated(self.size, self.window_dilation)?);
        Some(if padded <= 0 || window > padded { 0 } else { (padded - window) / self.stride + 1 })
    }
}

/// The extent of `n` elements spread `dilation` apart.
fn dilated(n: i64, dilation: i64) -> Option<i64> {
    if n == 0 { Some(0) } else { (n - 1).checked_mul(dilation)?.checked_add(1) }
}

/// `{size=3x3 stride=2x2 pad=1_1x1_1 lhs_dilate=1x1 rhs_dilate=1x1 rhs_reversal=0x0}`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Window {
    /// One entry a dimension.
    pub dims: SmallVec<[WindowDim; 2]>,
}

/// Which dimension of each operand and of the result plays which part in a convolution: `b01f_01io->b01f`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ConvDims {
    /// `b` of the left operand.
    pub input_batch: i64,
    /// `f` of the left operand.
    pub input_feature: i64,
    /// `0`, `1`, ... of the left operand.
    pub input_spatial: SmallVec<[i64; 2]>,
    /// `i` of the right operand.
    pub kernel_input_feature: i64,
    /// `o` of the right operand.
    pub kernel_output_feature: i64,
    /// `0`, `1`, ... of the right operand.
    pub kernel_spatial: SmallVec<[i64; 2]>,
    /// `b` of the result.
    pub output_batch: i64,
    /// `f` of the result.
    pub output_feature: i64,
    /// `0`, `1`, ... of the result.
    pub output_spatial: SmallVec<[i64; 2]>,
    /// Dimensions written `?` in each of the three (newer dumps of layout-normalized convolutions): operand
    /// 0, 1, result.
    pub unknown: [SmallVec<[i64; 1]>; 3],
}

/// `low_high_interior` of one dimension of a `pad`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PaddingDim {
    /// Before; negative cuts.
    pub low: i64,
    /// After; negative cuts.
    pub high: i64,
    /// Between elements.
    pub interior: i64,
}

/// `[start:limit:stride]` of one dimension of a `slice`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SliceDim {
    /// First index.
    pub start: i64,
    /// One past the last index.
    pub limit: i64,
    /// Step.
    pub stride: i64,
}
