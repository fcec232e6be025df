//! Windows over an operand, one axis at a time.

use hlo::attrs::WindowDim;
use hlo::{InstrId, Module};
use smallvec::SmallVec;

use hlo_library_base::Unsupported;

/// One axis. Output position `o` and window position `w` meet the operand at
/// `p = o * stride + w * window_dilation - padding_low`, an element if `p` is a multiple of `base_dilation`
/// and `p / base_dilation` is inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) input: usize,
    pub(super) window: usize,
    pub(super) output: usize,
    stride: usize,
    padding_low: i64,
    base_dilation: usize,
    window_dilation: usize,
}

/// Outputs `first`, `first + step`, ... and their elements at some window position: `element`,
/// `element + distance`, ...
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: usize,
    pub(super) step: usize,
    pub(super) count: usize,
    pub(super) element: usize,
    pub(super) distance: usize,
}

impl Run {
    /// Whether there is an element for each output, and elements are as far apart as outputs.
    pub(super) fn is_dense(&self) -> bool {
        self.step == 1 && self.distance == 1
    }

    /// The part of it in a range of outputs.
    pub(super) fn within(&self, range: &std::ops::Range<usize>) -> Option<Run> {
        let skipped = range.start.saturating_sub(self.first).div_ceil(self.step);
        let first = self.first + skipped * self.step;
        let count =
            range.end.saturating_sub(first).div_ceil(self.step).min(self.count.saturating_sub(skipped));
        (count > 0).then(|| Run { first, count, element: self.element + skipped * self.distance, ..*self })
    }
}

/// The greatest common divisor of two sizes, of which one is not 0.
fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Goes on to the next output, along the last axis first; from the last one to the first.
pub(super) fn advance(axes: &[Axis], output: &mut [usize]) {
    for (at, axis) in output.iter_mut().zip(axes).rev() {
        *at += 1;
        if *at < axis.output {
            break;
        }
        *at = 0;
    }
}

/// The axis that is not the identity, if there is just one, and the sizes around it.
pub(super) fn single(axes: &[Axis]) -> Option<(Axis, [usize; 2])> {
    let mut busy = (0..axes.len()).filter(|&i| !axes[i].is_identity());
    let (i, None) = (busy.next()?, busy.next()) else { return None };
    let size = |axes: &[Axis]| axes.iter().map(|a| a.input).product();
    Some((axes[i], [size(&axes[..i]), size(&axes[i + 1..])]))
}

/// Neighbours of an element below which they are too few for rows.
pub const FEW_NEIGHBOURS: i64 = 48;

/// The same windows with the neighbours merged into the last axis that has windows, if they are fewer than
/// `few` and can be merged.
pub(super) fn without_few_neighbours(axes: &[Axis], few: usize) -> Axes {
    let busy = axes.iter().rposition(|a| !a.is_identity());
    let one = busy.and_then(|busy| {
        let inner: usize = axes[busy + 1..].iter().map(|a| a.input).product();
        axes[busy].with_neighbours(inner).filter(|_| inner > 1 && inner < few).map(|one| (busy, one))
    });
    match one {
        Some((busy, one)) => axes[..busy].iter().copied().chain([one]).collect(),
        None => axes.into(),
    }
}

/// The axes of an array.
pub(super) type Axes = SmallVec<[Axis; 6]>;

/// What the windows of an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Each element itself.
    Identity,
    /// Window `o` is `0..=o`.
    Prefix,
    /// Window `o` is `o..`.
    Suffix,
    /// Each window begins at the first element.
    Growing,
    /// Anything.
    Any,
}

impl Axis {
    pub(super) fn identity(extent: usize) -> Axis {
        let (input, output) = (extent, extent);
        Axis { input, window: 1, output, stride: 1, padding_low: 0, base_dilation: 1, window_dilation: 1 }
    }

    fn new(w: &WindowDim, input: usize, output: usize) -> Axis {
        let size = |x: i64| usize::try_from(x).unwrap_or(0);
        Axis {
            input,
            window: size(w.size),
            output,
            stride: size(w.stride).max(1),
            padding_low: w.pad_low,
            base_dilation: size(w.base_dilation).max(1),
            window_dilation: size(w.window_dilation).max(1),
        }
    }

    pub(super) fn is_identity(&self) -> bool {
        *self == Axis::identity(self.input)
    }

    /// Nothing is dilated.
    pub(super) fn is_plain(&self) -> bool {
        self.base_dilation == 1 && self.window_dilation == 1
    }

    /// Whether no element is in two windows.
    pub(super) fn is_apart(&self) -> bool {
        self.is_plain() && self.stride >= self.window
    }

    /// Whether windows partition the elements.
    pub(super) fn is_cut(&self) -> bool {
        self.is_plain()
            && self.padding_low == 0
            && self.stride == self.window
            && self.output * self.window == self.input
    }

    /// There is nothing between elements of the operand.
    pub(super) fn is_dense(&self) -> bool {
        self.base_dilation == 1
    }

    /// The outputs within `range` whose windows are whole, where the axis is dense.
    pub(super) fn whole(&self, range: &std::ops::Range<usize>) -> std::ops::Range<usize> {
        let last = (self.window.max(1) as i64 - 1).saturating_mul(self.window_dilation as i64);
        let stride = self.stride as i64;
        // The first output that does not begin before the elements, and the last one that does not end behind
        // them.
        let first = self.padding_low.max(0).unsigned_abs() as usize;
        let first = first.div_ceil(self.stride).clamp(range.start, range.end);
        let last_start = (self.input as i64 - 1).saturating_add(self.padding_low).saturating_sub(last);
        let end = if last_start < 0 { 0 } else { (last_start / stride).unsigned_abs() as usize + 1 };
        first..end.clamp(first, range.end)
    }

    /// `lines` of these axes concatenated, with outputs for `pitch` positions in each. Windows whose elements
    /// are all in one line are the same.
    pub(super) fn joined(&self, lines: usize, pitch: usize) -> Axis {
        Axis { input: lines * self.input, output: lines * pitch, ..*self }
    }

    pub(super) fn form(&self) -> Form {
        let last =
            i64::try_from(self.output.saturating_sub(1).saturating_mul(self.stride)).unwrap_or(i64::MAX);
        let whole =
            self.is_plain() && self.stride == 1 && self.output == self.input && self.window >= self.input;
        if self.is_identity() {
            Form::Identity
        } else if whole && self.padding_low.checked_add(1) == i64::try_from(self.window).ok() {
            Form::Prefix
        } else if whole && self.padding_low == 0 {
            Form::Suffix
        } else if self.is_plain() && last <= self.padding_low {
            Form::Growing
        } else {
            Form::Any
        }
    }

    /// This axis and the `inner` neighbours of each of its elements as one axis, if the elements of windows
    /// are as far apart as results.
    fn with_neighbours(&self, inner: usize) -> Option<Axis> {
        let even = self.stride == 1 && self.base_dilation == 1;
        Some(Axis {
            input: self.input.checked_mul(inner)?,
            window: self.window,
            output: self.output.checked_mul(inner)?,
            stride: 1,
            padding_low: self.padding_low.checked_mul(i64::try_from(inner).ok()?)?,
            base_dilation: 1,
            window_dilation: self.window_dilation.checked_mul(inner)?,
        })
        .filter(|_| even)
    }

    /// The element at window position `w` of output `o`.
    #[inline]
    pub(super) fn locate(&self, o: usize, w: usize) -> Option<usize> {
        let reach = (w as i64).saturating_mul(self.window_dilation as i64).saturating_sub(self.padding_low);
        let p = usize::try_from((o as i64).saturating_mul(self.stride as i64).saturating_add(reach)).ok()?;
        (p.is_multiple_of(self.base_dilation) && p / self.base_dilation < self.input)
            .then_some(p / self.base_dilation)
    }

    /// The elements of output `o`, where nothing is dilated.
    pub(super) fn range(&self, o: usize) -> std::ops::Range<usize> {
        let start = (o as i64).saturating_mul(self.stride as i64).saturating_sub(self.padding_low);
        let end = start.saturating_add(self.window as i64).clamp(0, self.input as i64);
        (start.clamp(0, end) as usize)..end as usize
    }

    /// The distance of the first positions of windows, and the first position of output 0; where nothing is
    /// dilated.
    pub(super) fn placement(&self) -> (usize, i64) {
        (self.stride, self.padding_low.saturating_neg())
    }

    /// The outputs within `range` that have an element at window position `w`; they, and their elements, are
    /// equally far apart.
    pub(super) fn run(&self, w: usize, range: &std::ops::Range<usize>) -> Option<Run> {
        // Output o meets element (o * stride - start) / base_dilation, if that is one.
        let start = self.padding_low.saturating_sub((w as i64).saturating_mul(self.window_dilation as i64));
        let reach = |bound: i64| bound.clamp(0, i64::MAX).unsigned_abs() as usize;
        let extent = (self.input as i64).saturating_sub(1).saturating_mul(self.base_dilation as i64);
        let mut first = reach(start).div_ceil(self.stride).max(range.start);
        let end = reach(start.saturating_add(extent).saturating_add(1)).div_ceil(self.stride).min(range.end);
        let step = self.base_dilation / gcd(self.stride, self.base_dilation);
        let element = |o: usize| self.locate(o, w);
        let last = first.saturating_add(step).min(end);
        while first < last && element(first).is_none() {
            first += 1;
        }
        if self.input == 0 || first >= last {
            return None;
        }
        let distance = step * self.stride / self.base_dilation;
        Some(Run { first, step, count: (end - first).div_ceil(step), element: element(first)?, distance })
    }

    /// The first element of output `o` and how many it has, [`Axis::distance`] apart.
    pub(super) fn first_and_count(&self, o: usize) -> (usize, usize) {
        let step = self.base_dilation / gcd(self.window_dilation, self.base_dilation);
        let start = (o as i64).saturating_mul(self.stride as i64).saturating_sub(self.padding_low);
        let mut w = if start < 0 {
            usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX).div_ceil(self.window_dilation)
        } else {
            0
        };
        let end = w.saturating_add(step).min(self.window);
        while w < end {
            if let Some(element) = self.locate(o, w) {
                let elements = (self.input - element).div_ceil(self.distance());
                return (element, elements.min((self.window - w).div_ceil(step)));
            }
            w += 1;
        }
        (0, 0)
    }

    /// Distance of the elements of a window.
    pub(super) fn distance(&self) -> usize {
        self.window_dilation / gcd(self.window_dilation, self.base_dilation)
    }

    /// The elements between the first and the last of these outputs' positions.
    pub(super) fn span(&self, outputs: &std::ops::Range<usize>) -> std::ops::Range<usize> {
        let base = self.base_dilation as i64;
        let start = |o: usize| (o as i64).saturating_mul(self.stride as i64).saturating_sub(self.padding_low);
        let last = (self.window.max(1) as i64 - 1).saturating_mul(self.window_dilation as i64);
        let last = start(outputs.end.max(1) - 1).saturating_add(last);
        let end = (last.div_euclid(base).saturating_add(1)).clamp(0, self.input as i64);
        let first = start(outputs.start).saturating_add(base - 1).div_euclid(base).clamp(0, end);
        first as usize..end as usize
    }

    /// An upper bound of the elements that the windows of `outputs` neighbouring outputs span.
    pub(super) fn reach(&self, outputs: usize) -> usize {
        let positions = (outputs.max(1) - 1)
            .saturating_mul(self.stride)
            .saturating_add((self.window.max(1) - 1).saturating_mul(self.window_dilation));
        (positions / self.base_dilation).saturating_add(2).min(self.input)
    }

    /// Whether windows share elements.
    pub(super) fn overlaps(&self) -> bool {
        self.window > 1 && (self.window - 1).saturating_mul(self.window_dilation) >= self.stride
    }
}

/// The axes of a window on an operand, with these sizes of the results.
pub(super) fn axes(
    module: &Module,
    id: InstrId,
    operand: &[i64],
    result: &[i64],
) -> Result<Axes, Unsupported> {
    let size = |&n: &i64| usize::try_from(n).unwrap_or(0);
    let window = module.instr(id).attrs.window().map_or(&[][..], |w| &w.dims);
    if window.is_empty() {
        return Ok(operand.iter().map(|n| Axis::identity(size(n))).collect());
    }
    if window.len() != operand.len() || result.len() != operand.len() {
        return Err(Unsupported::new(module, id, "with a window of another rank"));
    }
    Ok(window
        .iter()
        .zip(operand)
        .zip(result)
        .map(|((w, input), output)| Axis::new(w, size(input), size(output)))
        .collect())
}

/// The coordinates of position `index` of dimensions `sizes`.
pub(super) fn coordinates(
    sizes: impl DoubleEndedIterator<Item = usize> + ExactSizeIterator,
    mut index: usize,
) -> SmallVec<[usize; 6]> {
    let mut at: SmallVec<[usize; 6]> = SmallVec::from_elem(0, sizes.len());
    for (at, size) in at.iter_mut().rev().zip(sizes.rev()) {
        *at = index % size.max(1);
        index /= size.max(1);
    }
    at
}

/// Sizes of the results.
pub(super) fn outputs(axes: &[Axis]) -> usize {
    axes.iter().map(|axis| axis.output).product()
}

/// Positions of a window; saturates.
pub(super) fn positions(axes: &[Axis]) -> usize {
    axes.iter().fold(1usize, |n, axis| n.saturating_mul(axis.window))
}

/// The element at window position `w` of the output at `output`, if there is one.
pub(super) fn locate(axes: &[Axis], output: &[usize], mut w: usize) -> Option<usize> {
    let (mut at, mut scale) = (0, 1);
    for (axis, &o) in axes.iter().zip(output).rev() {
        at += axis.locate(o, w % axis.window.max(1))? * scale;
        w /= axis.window.max(1);
        scale *= axis.input;
    }
    Some(at)
}
