//! One transform of many points, on all threads (the four-step FFT). Planning is cheap: tables have the
//! square root of its length.
//!
//! A length `n = n1 n2` is a matrix: its columns are transformed, multiplied by roots of unity (twiddle
//! factors), and then its rows. In between it is stored in blocks of [`BLOCK_ROWS`] rows, so that both halves
//! move whole cache lines. A length without two such factors is a convolution with a chirp (Bluestein), of a
//! length that has them; the chirp's own transform is computed in each call, since planning it would cost
//! what it saves.

use std::fmt;
use std::sync::Arc;

use hlo::num_complex::Complex;
use num_traits::Float;
use rustfft::{Fft as Transform, FftNum};

use hlo_library_base::memory::{Layout, Shared};
use hlo_library_base::pool::Pool;
use hlo_library_base::simd::vectorized;
use hlo_library_base::workspace::with_workspace;

use super::planner::Planner;

/// Points above which a transform is split, since planning it as a whole costs too much; fewer in tests,
/// whose transforms are small.
pub(super) const LARGE_POINTS: usize = if cfg!(test) { 1 << 11 } else { 1 << 16 };

/// The same where a transform is a convolution, which costs three transforms.
const LARGE_CHIRP_POINTS: usize = LARGE_POINTS / 4 * 5;

/// Columns that are transformed together, which are the rows of a block.
pub(super) const BLOCK_ROWS: usize = 8;

/// Padding between lines: lines of a power of two would map to the same cache sets.
pub(super) const PADDING_ELEMENTS: usize = 8;

/// The maximum of the longer factor of a length, unless twice the square root is more.
const MAX_FACTOR: usize = LARGE_POINTS / 8;

/// Tasks of each half.
const TASKS: usize = 32;

/// Elements of a task where elements are changed one by one.
const PIECE_ELEMENTS: usize = 1 << 14;

/// `exp(-+ 2 pi i k / n)` for all `k < n`, from two tables.
#[derive(Clone, Debug)]
pub(super) struct Roots {
    n: u64,
    /// Powers `k < 1 << shift`, and powers `k << shift`.
    low: Arc<[Complex<f64>]>,
    high: Arc<[Complex<f64>]>,
    shift: u32,
}

impl Roots {
    pub(super) fn new(n: u64, inverse: bool) -> Self {
        let shift = n.max(1).ilog2().div_ceil(2);
        let root = |k: u64| {
            let (sin, cos) = (std::f64::consts::TAU * k as f64 / n as f64).sin_cos();
            Complex::new(cos, if inverse { sin } else { -sin })
        };
        let low = (0..1 << shift).map(root).collect();
        let high = (0..=n >> shift).map(|k| root(k << shift)).collect();
        Self { n, low, high, shift }
    }

    /// The power `k < n`.
    pub(super) fn get(&self, k: u64) -> Complex<f64> {
        let (low, high) =
            (self.low[(k & ((1 << self.shift) - 1)) as usize], self.high[(k >> self.shift) as usize]);
        times(low, high)
    }

    /// Multiplies `line[i]` by the power `step * i`.
    #[inline(always)]
    fn multiply_by_roots<T: Float>(&self, line: &mut [Complex<T>], step: u64) {
        const RUN: usize = 32;
        let (mut re, mut im) = ([0.0; RUN], [0.0; RUN]);
        for (i, (re, im)) in (0_u64..).zip(re.iter_mut().zip(&mut im)) {
            let root = self.get(step * i % self.n);
            (*re, *im) = (root.re, root.im);
        }
        for (run, line) in (0_u64..).zip(line.chunks_mut(RUN)) {
            let by = self.get(step * (run * RUN as u64) % self.n);
            for (x, (re, im)) in line.iter_mut().zip(re.iter().zip(&im)) {
                let by = Complex::new(by.re * re - by.im * im, by.re * im + by.im * re);
                *x = product(*x, narrow(by));
            }
        }
    }
}

#[inline(always)]
fn times(a: Complex<f64>, b: Complex<f64>) -> Complex<f64> {
    Complex::new(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)
}

#[inline(always)]
pub(super) fn narrow<T: Float>(x: Complex<f64>) -> Complex<T> {
    let part = |x: f64| T::from(x).unwrap_or_else(T::nan);
    Complex::new(part(x.re), part(x.im))
}

#[inline(always)]
fn product<T: Float>(x: Complex<T>, by: Complex<T>) -> Complex<T> {
    Complex::new(x.re * by.re - x.im * by.im, x.re * by.im + x.im * by.re)
}

/// A transform of one long line.
#[derive(Clone)]
pub(super) struct Large<T> {
    n: usize,
    split: Split<T>,
    /// Roots of twice the length, where it is a convolution; the split is then the convolution's, and
    /// forward.
    chirp: Option<Roots>,
}

impl<T> fmt::Debug for Large<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Large({} by {} x {})", self.n, self.split.n1, self.split.n2)
    }
}

impl<T: FftNum + Float> Large<T> {
    /// `None` if no such transform can be split.
    pub(super) fn new(planner: &mut Planner<T>, n: usize, inverse: bool) -> Option<Self> {
        if n <= LARGE_POINTS || n > 1 << 32 {
            return None;
        }
        let root = n.isqrt();
        let factor = (1..=root).rev().find(|&d| n.is_multiple_of(d)).unwrap_or(1);
        if n / factor <= MAX_FACTOR.max(2 * root) {
            return Some(Self { n, split: Split::new(planner, factor, n / factor, inverse), chirp: None });
        }
        if n <= LARGE_CHIRP_POINTS {
            return None;
        }
        // The cheapest length: a power of two, or 9/16 to 15/16 of one.
        let least = 2 * n - 1;
        let power = least.next_power_of_two();
        let length = [9, 10, 12, 15, 16].iter().map(|&k| power / 16 * k).find(|&m| m >= least)?;
        let two = 1 << (length.ilog2() / 2);
        let split = Split::new(planner, two, length / two, false);
        Some(Self { n, split, chirp: Some(Roots::new(2 * n as u64, inverse)) })
    }

    /// Points.
    pub(super) fn len(&self) -> usize {
        self.n
    }

    /// Bytes of scratch memory.
    pub(super) fn scratch_bytes(&self) -> u64 {
        let mut layout = Layout::default();
        layout.add(self.split.bytes, 1);
        if self.chirp.is_some() {
            layout.add(2 * self.split.points() as u64, size_of::<Complex<T>>() as u64);
        }
        layout.bytes()
    }

    /// Transforms `from` into `to`, which may be the same memory, and scales the result.
    ///
    /// # Safety
    /// Both hold as many elements as the transform has, the scratch memory as many bytes as it says, and
    /// nothing else accesses `to` and the scratch memory.
    pub(super) unsafe fn process(
        &self,
        pool: &Pool,
        from: Shared<Complex<T>>,
        to: Shared<Complex<T>>,
        scratch: Shared<u8>,
        scale: T,
    ) {
        // SAFETY: the parts of the layout; pieces and tasks are disjoint.
        unsafe {
            let Some(chirp) = &self.chirp else {
                self.split.process(pool, from, to, scratch, scale);
                return;
            };
            let (n, m) = (self.n, self.split.points());
            let mut layout = Layout::default();
            layout.add(self.split.bytes, 1);
            let at = layout.add(2 * m as u64, size_of::<Complex<T>>() as u64) as usize;
            let a = Shared::<Complex<T>>::new(scratch.offset(at).pointer());
            let b = a.offset(m);
            let root = |k: usize| {
                let k = k as u64;
                chirp.get(k * k % (2 * n as u64))
            };
            let zero = Complex::new(T::zero(), T::zero());
            pieces(pool, m, |first, count| {
                let (x, a) =
                    (from.slice(first.min(n), count.min(n.saturating_sub(first))), a.slice_mut(first, count));
                for (k, a) in (first..).zip(&mut *a) {
                    *a = if k < n { product(x[k - first], narrow(root(k))) } else { zero };
                }
                for (k, b) in (first..).zip(b.slice_mut(first, count)) {
                    let k = k.min(m - k);
                    *b = if k < n { narrow(root(k).conj()) } else { zero };
                }
            });
            let one = T::one();
            self.split.process(pool, a, a, scratch, one);
            self.split.process(pool, b, b, scratch, one);
            // The inverse, by a forward transform of conjugates.
            pieces(pool, m, |first, count| {
                for (a, b) in a.slice_mut(first, count).iter_mut().zip(b.slice(first, count)) {
                    *a = product(*a, *b).conj();
                }
            });
            self.split.process(pool, a, a, scratch, scale / T::from(m).unwrap_or(one));
            pieces(pool, n, |first, count| {
                for ((k, to), a) in (first..).zip(to.slice_mut(first, count)).zip(a.slice(first, count)) {
                    *to = product(a.conj(), narrow(root(k)));
                }
            });
        }
    }
}

/// Calls `each` for pieces of `n` elements: the first element and the number of them.
pub(super) fn pieces(pool: &Pool, n: usize, each: impl Fn(usize, usize) + Sync) {
    pool.run(n.div_ceil(PIECE_ELEMENTS), &|piece| {
        let first = piece * PIECE_ELEMENTS;
        each(first, PIECE_ELEMENTS.min(n - first));
    });
}

/// Processes a group of lines: memory for the lines, scratch memory of a transform, and the number of the
/// group.
type Group<'a, T> = &'a (dyn Fn(&mut [Complex<T>], &mut [Complex<T>], usize) + Sync);

/// A transform of a length as a matrix of `n1` rows and `n2` columns.
#[derive(Clone)]
struct Split<T> {
    n1: usize,
    n2: usize,
    columns: Arc<dyn Transform<T>>,
    rows: Arc<dyn Transform<T>>,
    roots: Roots,
    /// Bytes of scratch memory, and of the workspace of a task.
    bytes: u64,
    task: u64,
}

impl<T: FftNum + Float> Split<T> {
    fn new(planner: &mut Planner<T>, n1: usize, n2: usize, inverse: bool) -> Self {
        let (columns, rows) = (planner.plan(n1, inverse), planner.plan(n2, inverse));
        let element = size_of::<Complex<T>>() as u64;
        let mut task = Layout::default();
        task.add((BLOCK_ROWS * (n1.max(n2) + PADDING_ELEMENTS)) as u64, element);
        task.add(columns.get_inplace_scratch_len().max(rows.get_inplace_scratch_len()) as u64, element);
        let mut layout = Layout::default();
        layout.add((n1.next_multiple_of(BLOCK_ROWS) * n2) as u64, element);
        let roots = Roots::new((n1 * n2) as u64, inverse);
        Self { n1, n2, columns, rows, roots, bytes: layout.bytes(), task: task.bytes() }
    }

    fn points(&self) -> usize {
        self.n1 * self.n2
    }

    /// Calls `each` for all of `n` groups with lines and memory of a transform.
    fn tasks(&self, pool: &Pool, n: usize, each: Group<'_, T>) {
        let tasks = TASKS.min(n);
        let lines = BLOCK_ROWS * (self.n1.max(self.n2) + PADDING_ELEMENTS);
        let inner_at = (lines * size_of::<Complex<T>>()).next_multiple_of(64);
        pool.run(tasks, &|task| {
            with_workspace(self.task as usize, |workspace| {
                // SAFETY: a workspace has space for these, and is one thread's own; all bits are numbers.
                let (lines, inner) = unsafe {
                    let inner = (self.task as usize - inner_at) / size_of::<Complex<T>>();
                    (
                        Shared::<Complex<T>>::new(workspace).slice_mut(0, lines),
                        Shared::<Complex<T>>::new(workspace.add(inner_at)).slice_mut(0, inner),
                    )
                };
                (n * task / tasks..n * (task + 1) / tasks).for_each(|i| each(lines, inner, i));
            });
        });
    }

    /// As [`Large::process`].
    unsafe fn process(
        &self,
        pool: &Pool,
        from: Shared<Complex<T>>,
        to: Shared<Complex<T>>,
        scratch: Shared<u8>,
        scale: T,
    ) {
        let (n1, n2) = (self.n1, self.n2);
        let blocks = n1.div_ceil(BLOCK_ROWS);
        let middle = Shared::<Complex<T>>::new(scratch.pointer());
        // SAFETY: groups of columns, and of the rows of the middle, are disjoint; `from` is read wholly
        // before `to` is written.
        unsafe {
            self.tasks(pool, n2.div_ceil(BLOCK_ROWS), &|lines, inner, group| {
                let first = group * BLOCK_ROWS;
                let count = BLOCK_ROWS.min(n2 - first);
                let apart = n1 + PADDING_ELEMENTS;
                transpose(from.pointer().add(first), n2, lines.as_mut_ptr(), apart, n1, count);
                for c in 0..count {
                    let line = &mut lines[c * apart..][..n1];
                    self.columns.process_with_scratch(line, inner);
                    vectorized(
                        #[inline(always)]
                        || self.roots.multiply_by_roots(line, (first + c) as u64),
                    );
                }
                for block in 0..blocks {
                    let rows = BLOCK_ROWS.min(n1 - block * BLOCK_ROWS);
                    let to = middle.slice_mut((block * n2 + first) * BLOCK_ROWS, count * BLOCK_ROWS);
                    for (c, to) in to.as_chunks_mut::<BLOCK_ROWS>().0.iter_mut().enumerate() {
                        let line = &lines[c * apart + block * BLOCK_ROWS..];
                        match line.first_chunk::<BLOCK_ROWS>() {
                            Some(all) if rows == BLOCK_ROWS => *to = *all,
                            Some(_) | None => to[..rows].copy_from_slice(&line[..rows]),
                        }
                    }
                }
            });
            self.tasks(pool, blocks, &|lines, inner, block| {
                let count = BLOCK_ROWS.min(n1 - block * BLOCK_ROWS);
                let apart = n2 + PADDING_ELEMENTS;
                let from = middle.offset(block * n2 * BLOCK_ROWS);
                transpose(from.pointer(), BLOCK_ROWS, lines.as_mut_ptr(), apart, n2, count);
                for c in 0..count {
                    let line = &mut lines[c * apart..][..n2];
                    self.rows.process_with_scratch(line, inner);
                    super::scaled(line, scale);
                }
                let to = to.offset(block * BLOCK_ROWS).pointer();
                for row in (0..n2).step_by(BLOCK_ROWS) {
                    let rows = BLOCK_ROWS.min(n2 - row);
                    transpose(lines.as_ptr().add(row), apart, to.add(row * n1), n1, count, rows);
                }
            });
        }
    }
}

/// Moves `count <= BLOCK_ROWS` columns of an array of rows `apart` elements from one another to rows that are
/// `to_apart` elements from one another.
///
/// # Safety
/// Both are there, do not overlap, and nothing else accesses the second.
pub(super) unsafe fn transpose<T: Copy>(
    from: *const Complex<T>,
    apart: usize,
    to: *mut Complex<T>,
    to_apart: usize,
    rows: usize,
    count: usize,
) {
    let whole = if count == BLOCK_ROWS { rows / BLOCK_ROWS * BLOCK_ROWS } else { 0 };
    // SAFETY: the caller's.
    unsafe {
        for first in (0..whole).step_by(BLOCK_ROWS) {
            let mut block = [[*from; BLOCK_ROWS]; BLOCK_ROWS];
            for (k, row) in block.iter_mut().enumerate() {
                *row = *from.add((first + k) * apart).cast::<[Complex<T>; BLOCK_ROWS]>();
            }
            let columns: [[Complex<T>; BLOCK_ROWS]; BLOCK_ROWS] =
                std::array::from_fn(|c| std::array::from_fn(|k| block[k][c]));
            for (c, column) in columns.into_iter().enumerate() {
                *to.add(c * to_apart + first).cast::<[Complex<T>; BLOCK_ROWS]>() = column;
            }
        }
        for k in whole..rows {
            for c in 0..count {
                *to.add(c * to_apart + k) = *from.add(k * apart + c);
            }
        }
    }
}
