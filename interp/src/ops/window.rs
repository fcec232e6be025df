//! Windows over an operand: `reduce-window` and `select-and-scatter`.

use hlo_arithmetic::kernels::window::{POLL_AXES, WindowAxis};
use hlo_threads::cancel;

use super::Cx;
use super::convolution::{dilated, placements};
use crate::error::Result;
use crate::value::Sizes;

/// The axes of an instruction's window on an operand.
pub(super) fn axes(cx: &Cx<'_>, operand: &[usize]) -> Result<Vec<WindowAxis>> {
    let window = cx.attrs().window().map_or(&[][..], |w| &w.dims);
    if window.is_empty() {
        return Ok(operand.iter().map(|&n| WindowAxis::identity(n)).collect());
    }
    if window.len() != operand.len() {
        return Err(cx.unsupported("with a window of another rank"));
    }
    let size = |x: i64| usize::try_from(x).unwrap_or(0);
    let axis = |(w, &input): (&hlo::attrs::WindowDim, &usize)| {
        let (stride, base_dilation) = (size(w.stride).max(1), size(w.base_dilation).max(1));
        let (window, window_dilation) = (size(w.size), size(w.window_dilation).max(1));
        let padded = dilated(input, base_dilation).saturating_add(w.pad_low).saturating_add(w.pad_high);
        let output = placements(padded, dilated(window, window_dilation), stride);
        WindowAxis { input, window, output, stride, padding_low: w.pad_low, base_dilation, window_dilation }
    };
    Ok(window.iter().zip(operand).map(axis).collect())
}

/// Sizes of the results.
pub(super) fn outputs(axes: &[WindowAxis]) -> Sizes {
    axes.iter().map(|axis| axis.output).collect()
}

/// The coordinates of result number `index`.
pub(super) fn coordinates(axes: &[WindowAxis], mut index: usize) -> Sizes {
    let mut at = Sizes::from_elem(0, axes.len());
    for (at, axis) in at.iter_mut().zip(axes).rev() {
        *at = index % axis.output;
        index /= axis.output;
    }
    at
}

/// Calls `each` with the index of every element of a window that exists, row-major. `base` is 0; the
/// recursion is as deep as the rank.
pub(super) fn visit(axes: &[WindowAxis], output: &[usize], base: usize, each: &mut impl FnMut(usize)) {
    let (Some((axis, axes)), Some((&o, output))) = (axes.split_first(), output.split_first()) else {
        return each(base);
    };
    if axes.len() == POLL_AXES {
        cancel::poll();
    }
    if axis.base_dilation == 1 && axis.window_dilation == 1 {
        for p in axis.range(o) {
            visit(axes, output, base * axis.input + p, each);
        }
    } else {
        for p in axis.present(o) {
            visit(axes, output, base * axis.input + p, each);
        }
    }
}

/// All positions of a window, row-major.
pub(super) fn positions(axes: &[WindowAxis]) -> impl Iterator<Item = Sizes> + '_ {
    let count = axes.iter().fold(1usize, |n, axis| n.saturating_mul(axis.window));
    (0..count).map(move |mut index| {
        let mut at = Sizes::from_elem(0, axes.len());
        for (at, axis) in at.iter_mut().zip(axes).rev() {
            *at = index % axis.window;
            index /= axis.window;
        }
        at
    })
}

/// The element at a position of a window, if there is one.
pub(super) fn locate(axes: &[WindowAxis], output: &[usize], position: &[usize]) -> Option<usize> {
    let mut at = 0;
    for ((axis, &o), &w) in axes.iter().zip(output).zip(position) {
        at = at * axis.input + axis.locate(o, w)?;
    }
    Some(at)
}

/// The dimensions around one axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    /// Product of those before.
    pub(super) outer: usize,
    /// Product of those after.
    pub(super) inner: usize,
}

/// If just one axis is more than the elements themselves: its number and surroundings.
pub(super) fn single(axes: &[WindowAxis]) -> Option<(usize, Around)> {
    let mut busy = (0..axes.len()).filter(|&i| axes[i] != WindowAxis::identity(axes[i].input));
    let axis = busy.next()?;
    let product = |axes: &[WindowAxis]| axes.iter().map(|axis| axis.input).product();
    busy.next()
        .is_none()
        .then(|| (axis, Around { outer: product(&axes[..axis]), inner: product(&axes[axis + 1..]) }))
}

/// Whether every window of an axis begins at the first element, so that each contains the one before it.
pub(super) fn is_prefix(axis: &WindowAxis) -> bool {
    axis.base_dilation == 1
        && axis.window_dilation == 1
        && i64::try_from(axis.output.saturating_sub(1).saturating_mul(axis.stride))
            .is_ok_and(|o| o <= axis.padding_low)
}
