//! Convolutions over N-d windows, as products of gathered patches with the kernel.
//!
//! Operands are dense and row-major in one canonical order; transpose before and after the call:
//! * `lhs`: `[batch, input spatial..., channels]`,
//! * `rhs`: `[kernel spatial..., channels / feature_groups, features]`,
//! * `out`: `[batch / batch_groups, output spatial..., features]`.
//!
//! Output position `o` and window position `w` of an axis meet the input at `p = o * stride + w *
//! kernel_dilation - padding_low`; the term exists if `p` is a multiple of `input_dilation` and `p /
//! input_dilation` is inside the input. Everything else (padding, holes of dilation) is *absent*: it
//! contributes nothing, not even a NaN from `0 * inf`. The kernel element is number `w`, or `kernel - 1 - w`
//! if the axis is reversed.
//!
//! Feature `f` belongs to group `g = f / (features / groups)`: with feature groups it sees the `g`-th slice
//! of the channels, with batch groups the `g`-th slice of the batch.
//!
//! Rounding is that of [`super::gemm`] with the terms of an output in this order: window positions row-major,
//! channels inside. Integers accumulate in 64 bits, wrapping, and *saturate* to the result type at the end.

use hlo_threads::cancel;
use hlo_threads::parallel;
use num_complex::Complex;
use smallvec::SmallVec;

use super::algebra::{Algebra, RegionComplex, RegionReal, Saturating};
use super::engine::{Emit, Extents, Lhs, Output, Part, Rhs, multiply};
use super::gemm::{RealBlocks, RealRows, round_parts, store_part};
use super::{Integer, Real, SEQUENTIAL};
use crate::sum::fast::Total;
use crate::sum::{Accumulate, Rounded};

/// One spatial axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvAxis {
    /// Extent of `lhs`.
    pub input: usize,
    /// Extent of `rhs`.
    pub kernel: usize,
    /// Extent of `out`; with the other fields it implies the high padding.
    pub output: usize,
    /// Window stride.
    pub stride: usize,
    /// Padding before the (dilated) input, negative to skip some of it.
    pub padding_low: i64,
    /// Distance of input elements, at least 1.
    pub input_dilation: usize,
    /// Distance of kernel elements, at least 1.
    pub kernel_dilation: usize,
    /// The kernel is mirrored along this axis.
    pub reversed: bool,
}

/// A convolution's extents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvShape {
    /// Batch of `lhs`.
    pub batch: usize,
    /// Input features.
    pub channels: usize,
    /// Output features.
    pub features: usize,
    /// Spatial axes, the last one fastest.
    pub axes: SmallVec<[ConvAxis; 4]>,
    /// Divides `channels` and `features`; 1 if `batch_groups` is not.
    pub feature_groups: usize,
    /// Divides `batch` and `features`; 1 if `feature_groups` is not.
    pub batch_groups: usize,
}

impl ConvShape {
    fn product(&self, extent: impl Fn(&ConvAxis) -> usize) -> usize {
        self.axes.iter().map(extent).product()
    }

    /// Channels that one output sees.
    #[inline]
    fn depth(&self) -> usize {
        self.channels / self.feature_groups
    }
}

/// Offset of a window position along each axis, in units of the dilated input.
type Offsets = SmallVec<[i64; 4]>;

/// What all groups share: the window positions, and which kernel position belongs to each.
struct Windows<'a> {
    shape: &'a ConvShape,
    offsets: Vec<Offsets>,
    kernel: Vec<usize>,
}

impl<'a> Windows<'a> {
    fn new(shape: &'a ConvShape) -> Self {
        let count = shape.product(|axis| axis.kernel);
        let (mut offsets, mut kernel) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for position in 0..count {
            let (mut rest, mut offset, mut index, mut stride) = (position, Offsets::new(), 0, 1);
            for axis in shape.axes.iter().rev() {
                let w = rest % axis.kernel;
                rest /= axis.kernel;
                let reach = (w as i64).saturating_mul(axis.kernel_dilation as i64);
                offset.push(reach.saturating_sub(axis.padding_low));
                index += stride * if axis.reversed { axis.kernel - 1 - w } else { w };
                stride *= axis.kernel;
            }
            offset.reverse();
            offsets.push(offset);
            kernel.push(index);
        }
        Windows { shape, offsets, kernel }
    }
}

/// The patches of one group as rows: one for each batch element and output position.
struct Patches<'a, T> {
    data: &'a [T],
    windows: &'a Windows<'a>,
    first_batch: usize,
    first_channel: usize,
}

impl<T> Patches<'_, T> {
    /// Batch element and window origin of a row.
    fn origin(&self, row: usize) -> (usize, Offsets) {
        let mut rest = row;
        let mut origin = Offsets::new();
        for axis in self.windows.shape.axes.iter().rev() {
            origin.push((rest % axis.output).saturating_mul(axis.stride) as i64);
            rest /= axis.output;
        }
        origin.reverse();
        (rest, origin)
    }

    /// Where the channels of a window position begin, or `None` if it is absent.
    #[inline]
    fn locate(&self, batch: usize, origin: &Offsets, position: usize) -> Option<usize> {
        let mut at = self.first_batch + batch;
        for ((axis, &from), &offset) in
            self.windows.shape.axes.iter().zip(origin).zip(&self.windows.offsets[position])
        {
            let mut p = usize::try_from(from.saturating_add(offset)).ok()?;
            if axis.input_dilation > 1 {
                if p % axis.input_dilation != 0 {
                    return None;
                }
                p /= axis.input_dilation;
            }
            if p >= axis.input {
                return None;
            }
            at = at * axis.input + p;
        }
        Some(at * self.windows.shape.channels + self.first_channel)
    }
}

impl<T: Copy + Default + Sync> Lhs<T> for Patches<'_, T> {
    #[inline]
    fn holes(&self) -> bool {
        true
    }

    fn fill(&self, row: usize, k: usize, out: &mut [T]) {
        let depth = self.windows.shape.depth();
        let (batch, origin) = self.origin(row);
        let (mut position, mut channel) = (k / depth, k % depth);
        let mut out = out;
        while !out.is_empty() {
            let (run, rest) = out.split_at_mut((depth - channel).min(out.len()));
            match self.locate(batch, &origin, position) {
                Some(at) => run.copy_from_slice(&self.data[at + channel..][..run.len()]),
                None => run.fill(T::default()),
            }
            out = rest;
            (position, channel) = (position + 1, 0);
        }
    }

    #[inline]
    fn present(&self, row: usize, k: usize) -> bool {
        let (batch, origin) = self.origin(row);
        self.locate(batch, &origin, k / self.windows.shape.depth()).is_some()
    }
}

/// The kernel of one group, its positions in window order.
struct Kernel<'a, T> {
    data: &'a [T],
    windows: &'a Windows<'a>,
    first_feature: usize,
}

impl<T> Kernel<'_, T> {
    #[inline]
    fn at(&self, k: usize, column: usize) -> usize {
        let shape = self.windows.shape;
        let depth = shape.depth();
        (self.windows.kernel[k / depth] * depth + k % depth) * shape.features + self.first_feature + column
    }
}

impl<T: Copy + Sync> Rhs<T> for Kernel<'_, T> {
    fn fill(&self, _batch: usize, k: usize, column: usize, out: &mut [T]) {
        out.copy_from_slice(&self.data[self.at(k, column)..][..out.len()]);
    }

    fn get(&self, _batch: usize, k: usize, column: usize) -> T {
        self.data[self.at(k, column)]
    }
}

/// Panics where a shape does not fit its slices.
fn check(shape: &ConvShape, lhs: usize, rhs: usize, results: usize) {
    let ConvShape { batch, channels, features, feature_groups, batch_groups, .. } = *shape;
    assert!(feature_groups == 1 || batch_groups == 1, "at most one kind of group");
    let groups = feature_groups * batch_groups;
    assert!(
        groups > 0 && channels % feature_groups == 0 && batch % batch_groups == 0 && features % groups == 0,
        "groups divide what they group: {shape:?}"
    );
    assert_eq!(lhs, batch * shape.product(|axis| axis.input) * channels, "lhs of {shape:?}");
    assert_eq!(rhs, shape.product(|axis| axis.kernel) * shape.depth() * features, "rhs of {shape:?}");
    let rows = batch / batch_groups * shape.product(|axis| axis.output);
    assert_eq!(results, rows * features, "result of {shape:?}");
}

/// Runs `product` for each group, with the number of its first feature.
fn groups<T>(
    shape: &ConvShape,
    lhs: &[T],
    rhs: &[T],
    results: usize,
    mut product: impl FnMut(Extents, Patches<T>, Kernel<T>, usize),
) {
    check(shape, lhs.len(), rhs.len(), results);
    let ConvShape { batch, features, feature_groups, batch_groups, .. } = *shape;
    let groups = feature_groups * batch_groups;
    if results == 0 {
        return;
    }
    let windows = Windows::new(shape);
    let extents = Extents {
        batch: 1,
        m: results / features,
        k: shape.product(|axis| axis.kernel) * shape.depth(),
        n: features / groups,
    };
    for group in 0..groups {
        let patches = Patches {
            data: lhs,
            windows: &windows,
            first_batch: if batch_groups > 1 { group * (batch / batch_groups) } else { 0 },
            first_channel: if feature_groups > 1 { group * shape.depth() } else { 0 },
        };
        let first_feature = group * extents.n;
        product(extents, patches, Kernel { data: rhs, windows: &windows, first_feature }, first_feature);
    }
}

/// A depthwise convolution: every output sees one channel, so there is nothing to share between outputs and
/// everything runs along the features.
fn depthwise<A: Algebra>(shape: &ConvShape, lhs: &[A::In], rhs: &[A::In], mut parts: Vec<Part<A::Sum>>) {
    let (features, multiplier) = (shape.features, shape.features / shape.channels);
    let windows = Windows::new(shape);
    let patches = Patches { data: lhs, windows: &windows, first_batch: 0, first_channel: 0 };
    let kernel = |position: usize| &rhs[windows.kernel[position] * features..][..features];
    let row = |present: &mut Vec<_>, sums: &mut Vec<_>, row: usize, emit: &mut Emit<A::Sum>| {
        let (batch, origin) = patches.origin(row);
        present.clear();
        present.extend(
            (0..windows.kernel.len()).filter_map(|at| Some((patches.locate(batch, &origin, at)?, at))),
        );
        sums.clear();
        sums.resize(features, A::empty());
        for &(at, position) in present.iter() {
            let (input, kernel) = (&lhs[at..at + shape.channels], kernel(position));
            if multiplier == 1 {
                for ((sum, &a), &b) in sums.iter_mut().zip(input).zip(kernel) {
                    *sum = A::add(*sum, a, b);
                }
            } else {
                let inputs = input.iter().flat_map(|a| std::iter::repeat_n(a, multiplier));
                for ((sum, &a), &b) in sums.iter_mut().zip(inputs).zip(kernel) {
                    *sum = A::add(*sum, a, b);
                }
            }
        }
        for (feature, &sum) in sums.iter().enumerate() {
            if !emit(row, feature, &A::finish(sum, present.len())) {
                let term = |&(at, position): &(usize, usize)| {
                    (lhs[at + feature / multiplier], kernel(position)[feature])
                };
                let decided = emit(row, feature, &A::slowly(present.iter().map(term)));
                debug_assert!(decided, "the terms themselves decide");
            }
        }
    };
    parallel::pieces(&mut parts, 1, 1, &|_, parts| {
        let (mut present, mut sums) = (Vec::new(), Vec::new());
        for part in parts {
            part.rows.clone().for_each(|at| {
                cancel::poll();
                row(&mut present, &mut sums, at, &mut *part.emit);
            });
        }
    });
}

/// All groups with an algebra on the elements themselves.
fn run<A: Algebra, O: Send>(
    shape: &ConvShape,
    lhs: &[A::In],
    rhs: &[A::In],
    out: &mut [O],
    round: impl Fn(&A::Sum) -> Option<O> + Sync,
) {
    if shape.feature_groups > 1 && shape.feature_groups == shape.channels && !out.is_empty() {
        check(shape, lhs.len(), rhs.len(), out.len());
        let output = Output {
            round,
            store: |row: &mut [O], column: usize, x| row[column] = x,
            stride: shape.features,
        };
        let rows = out.len() / shape.features;
        let work = out.len().saturating_mul(shape.product(|axis| axis.kernel));
        let tasks = if work < SEQUENTIAL { 1 } else { 4 * rayon::current_num_threads() };
        let parts = output.bands(out, rows.div_ceil(tasks), shape.features);
        return depthwise::<A>(shape, lhs, rhs, parts);
    }
    groups(shape, lhs, rhs, out.len(), |extents, patches, kernel, first| {
        let store = move |row: &mut [O], column: usize, x: O| row[first + column] = x;
        let output = Output { round: &round, store, stride: shape.features };
        multiply::<A, _, _>(extents, &patches, &kernel, out, &output);
    });
}

/// A convolution of real numbers.
pub fn real<T: Real, O: Rounded>(mode: Accumulate, shape: &ConvShape, lhs: &[T], rhs: &[T], out: &mut [O]) {
    match mode {
        Accumulate::Region => run::<RegionReal<T>, _>(shape, lhs, rhs, out, Total::settle),
        Accumulate::Exact if O::WIDE && T::NARROW => {
            let (lhs, rhs): (Vec<f64>, Vec<f64>) =
                (lhs.iter().map(|x| x.widen()).collect(), rhs.iter().map(|x| x.widen()).collect());
            real(mode, shape, &lhs, &rhs, out);
        }
        Accumulate::Exact => run::<T::Exact, _>(shape, lhs, rhs, out, Total::settle),
    }
}

/// A convolution of complex numbers.
pub fn complex<T: Real, O: Rounded>(
    mode: Accumulate,
    shape: &ConvShape,
    lhs: &[Complex<T>],
    rhs: &[Complex<T>],
    out: &mut [Complex<O>],
) {
    match mode {
        Accumulate::Region => run::<RegionComplex<T>, _>(shape, lhs, rhs, out, round_parts),
        Accumulate::Exact => groups(shape, lhs, rhs, out.len(), |extents, patches, kernel, first| {
            let extents = Extents { k: 2 * extents.k, n: 2 * extents.n, ..extents };
            let store =
                move |row: &mut [Complex<O>], column: usize, x: O| store_part(&mut row[first..], column, x);
            let output = Output { round: Total::settle, store, stride: shape.features };
            multiply::<T::Exact, _, _>(extents, &RealRows(patches), &RealBlocks(kernel), out, &output);
        }),
    }
}

/// A convolution of integers: 64-bit accumulation, saturated to the result type.
pub fn int<T: Integer>(shape: &ConvShape, lhs: &[T], rhs: &[T], out: &mut [T]) {
    run::<Saturating<T>, _>(shape, lhs, rhs, out, |&x: &T| Some(x));
}
