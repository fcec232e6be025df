//! `fft`: all four kinds, any length, any rank, by `rustfft` on rows and on columns that are gathered into
//! rows.
//!
//! Transforms of many points are split into smaller ones ([`large`]): planning them as wholes takes longer
//! than the transforms. Parts of type f32 are computed in f32, parts of type f64 in f64. Real transforms of
//! even length are complex ones of half the length. A transform with an element that is not finite is NaN
//! throughout, but for imaginary parts that an inverse real transform of one dimension ignores.

mod large;
mod planner;
mod real;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use hlo::attrs::FftType;
use hlo::num_complex::Complex;
use hlo::{AttrKey, ElementType, InstrId, Module};
use hlo_library_base::memory::{Layout, Shared};
use hlo_library_base::pool::Pool;
use hlo_library_base::workspace::with_workspace;
use hlo_library_base::{Call, Operation, Unsupported, sizes};
use num_traits::Float;
use rustfft::{Fft as Transform, FftNum};
use smallvec::SmallVec;

use self::large::{BLOCK_ROWS, LARGE_POINTS, Large, PADDING_ELEMENTS, Roots, narrow, pieces, transpose};
use self::planner::Planner;
use self::real::Twiddles;

/// Points of short lines that are transformed by one call, at most.
const BATCHED_POINTS: usize = 1 << 10;

/// Parts of complex numbers that are tested for finiteness at a time.
const SCANNED_PARTS: usize = 1 << 15;

/// The maximum of tasks, if their scratch memory allows.
const TASKS: usize = 64;

/// The maximum of scratch memory of a task that is a thread's workspace.
const MAX_WORKSPACE_BYTES: u64 = 1 << 19;

/// Scratch memory above which there are fewer tasks.
const MAX_SCRATCH_BYTES: u64 = 1 << 26;

/// The operation: arguments are the operand and the result.
#[derive(Clone, Debug)]
pub(crate) enum Fft {
    /// Of f32 and c64.
    Single(Volumes<f32>),
    /// Of f64 and c128.
    Double(Volumes<f64>),
}

/// A transform of one length.
#[derive(Clone, Debug)]
struct Plan<T> {
    transform: Line<T>,
    /// For real transforms of even length: `exp(-+ 2 pi i k / n)`, `k <= n / 4`; the transform is of half the
    /// length.
    twiddles: Twiddles<T>,
}

/// How a line is transformed.
#[derive(Clone)]
enum Line<T> {
    /// On one thread.
    Whole(Arc<dyn Transform<T>>),
    /// On all threads.
    Large(Large<T>),
}

impl<T> fmt::Debug for Line<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Line::Whole(transform) => write!(f, "Whole({})", transform.len()),
            Line::Large(large) => large.fmt(f),
        }
    }
}

impl<T: FftNum + Float> Line<T> {
    /// Bytes of scratch memory beside the lines.
    fn scratch_bytes(&self) -> u64 {
        match self {
            Line::Whole(transform) => {
                let elements =
                    transform.get_inplace_scratch_len().max(transform.get_immutable_scratch_len()) as u64;
                elements.saturating_mul(size_of::<Complex<T>>() as u64)
            }
            Line::Large(large) => large.scratch_bytes(),
        }
    }

    /// Transforms lines in place and scales them.
    fn process(&self, pool: &Pool, lines: &mut [Complex<T>], inner: Shared<u8>, scale: T) {
        match self {
            Line::Whole(transform) => {
                // SAFETY: the caller's memory is as large as `scratch_bytes` said; all bits are numbers.
                let inner = unsafe {
                    Shared::<Complex<T>>::new(inner.pointer())
                        .slice_mut(0, transform.get_inplace_scratch_len())
                };
                transform.process_with_scratch(lines, inner);
                scaled(lines, scale);
            }
            Line::Large(large) => {
                for line in lines.chunks_exact_mut(large.len()) {
                    let line = Shared::new(line.as_mut_ptr().cast());
                    // SAFETY: as above; the line is borrowed for this.
                    unsafe { large.process(pool, line, line, inner, scale) };
                }
            }
        }
    }

    /// Transforms lines into others and scales those.
    fn transfer(&self, pool: &Pool, from: &[Complex<T>], to: &mut [Complex<T>], inner: Shared<u8>, scale: T) {
        match self {
            Line::Whole(transform) => {
                // SAFETY: the caller's memory is as large as `scratch_bytes` said; all bits are numbers.
                let inner = unsafe {
                    Shared::<Complex<T>>::new(inner.pointer())
                        .slice_mut(0, transform.get_immutable_scratch_len())
                };
                transform.process_immutable_with_scratch(from, to, inner);
                scaled(to, scale);
            }
            Line::Large(large) => {
                let n = large.len();
                for (from, to) in from.chunks_exact(n).zip(to.chunks_exact_mut(n)) {
                    let (from, to) =
                        (Shared::new(from.as_ptr().cast_mut().cast()), Shared::new(to.as_mut_ptr().cast()));
                    // SAFETY: as above; the first is only read.
                    unsafe { large.process(pool, from, to, inner, scale) };
                }
            }
        }
    }
}

/// Transforms of the innermost dimensions.
#[derive(Clone, Debug)]
pub(crate) struct Volumes<T> {
    kind: FftType,
    lengths: SmallVec<[usize; 4]>,
    plans: Vec<Plan<T>>,
    /// Number of volumes.
    count: usize,
    /// Offsets in the scratch memory: of a copy of the operand (an inverse real transform of several
    /// dimensions), of flags of volumes, of memory of tasks.
    copy: u64,
    flags: u64,
    tasks_at: u64,
    tasks: Tasks,
}

/// Memory of tasks: for lines, and for what transforms need beside them.
#[derive(Clone, Copy, Debug)]
struct Tasks {
    /// Of a task with lines on one thread each: bytes of the lines, and in all; the number of tasks.
    lines: u64,
    bytes: u64,
    tasks: usize,
    /// Bytes of lines on all threads.
    large_lines: u64,
    /// Bytes in all.
    all: u64,
}

impl Fft {
    /// For an `fft` instruction.
    pub(super) fn of(module: &Module, id: InstrId) -> Result<Fft, Unsupported> {
        let unsupported = |why: &str| Unsupported::new(module, id, why);
        let instr = module.instr(id);
        let operand = instr.operands().first().and_then(|&o| module.instr(o).shape.as_array());
        let (Some(x), Some(out), Some(&kind)) = (operand, instr.shape.as_array(), instr.attrs.fft_type())
        else {
            return Err(unsupported("without an array or a kind"));
        };
        if x.is_dynamic() || out.is_dynamic() {
            return Err(unsupported("of dynamic sizes"));
        }
        let lengths: Option<SmallVec<[usize; 4]>> =
            instr.attrs.ints_or_empty(AttrKey::FftLength).iter().map(|&n| usize::try_from(n).ok()).collect();
        let lengths = lengths
            .filter(|l| !l.is_empty() && l.len() <= x.rank())
            .ok_or_else(|| unsupported("of no dimension"))?;
        // What the transforms expect of the operand.
        let mut input = lengths.clone();
        if let (FftType::Irfft, Some(last)) = (kind, input.last_mut()) {
            *last = if *last == 0 { 0 } else { *last / 2 + 1 };
        }
        let given = x.dims[x.rank() - lengths.len()..].iter().map(|&d| usize::try_from(d).unwrap_or(0));
        let empty = out.elements() == 0;
        if !given.eq(input.iter().copied()) && !empty {
            return Err(unsupported("of other lengths than the operand's"));
        }
        // A transform of one point leaves it as it is; of the innermost dimension it may change the type.
        let last = lengths.len() - 1;
        let lengths: SmallVec<[usize; 4]> =
            lengths.into_iter().enumerate().filter(|&(i, n)| i == last || n != 1).map(|(_, n)| n).collect();
        let count = if empty { 0 } else { x.elements().checked_div(input.iter().product()).unwrap_or(0) };
        let fits = |complex: ElementType, real: ElementType| match kind {
            FftType::Fft | FftType::Ifft => x.element_type == complex && out.element_type == complex,
            FftType::Rfft => x.element_type == real && out.element_type == complex,
            FftType::Irfft => x.element_type == complex && out.element_type == real,
        };
        if fits(ElementType::C64, ElementType::F32) {
            Ok(Fft::Single(Volumes::new(kind, lengths, count)))
        } else if fits(ElementType::C128, ElementType::F64) {
            Ok(Fft::Double(Volumes::new(kind, lengths, count)))
        } else {
            Err(unsupported(&format!("of type {}", x.element_type)))
        }
    }
}

impl<T: FftNum + Float> Volumes<T> {
    fn new(kind: FftType, lengths: SmallVec<[usize; 4]>, count: usize) -> Self {
        let mut planner = Planner::<T>::new();
        let inverse = matches!(kind, FftType::Ifft | FftType::Irfft);
        let last = lengths.len() - 1;
        let mut plan = |(i, &n): (usize, &usize)| {
            let halved =
                i == last && matches!(kind, FftType::Rfft | FftType::Irfft) && n > 0 && n.is_multiple_of(2);
            let length = if halved { n / 2 } else { n };
            let large = (length > LARGE_POINTS).then(|| Large::new(&mut planner, length, inverse)).flatten();
            let transform = match large {
                Some(large) => Line::Large(large),
                None => Line::Whole(planner.plan(length, inverse)),
            };
            let roots = || Roots::new(n as u64, inverse);
            let twiddles = match &transform {
                _ if !halved => Twiddles::None,
                Line::Large(_) => Twiddles::Roots(roots()),
                Line::Whole(_) => {
                    let roots = roots();
                    Twiddles::Table((0..=n / 4).map(|k| narrow(roots.get(k as u64))).collect())
                }
            };
            Plan { transform, twiddles }
        };
        let plans: Vec<Plan<T>> =
            if count == 0 { Vec::new() } else { lengths.iter().enumerate().map(&mut plan).collect() };

        let element = size_of::<Complex<T>>() as u64;
        let mut layout = Layout::default();
        let copied =
            if kind == FftType::Irfft && lengths.len() > 1 { count * complex_volume(&lengths) } else { 0 };
        let copy = layout.add(copied as u64, element);
        let flags = layout.add(count as u64, 1);
        let tasks_at = layout.bytes();
        // Lines on one thread each: tasks of them have memory of their own. Lines on all threads: one task
        // has all of it.
        let kept =
            if matches!(kind, FftType::Fft | FftType::Ifft) { lengths[last] } else { lengths[last] / 2 + 1 };
        let longest = |large: bool| {
            let bytes =
                plans.iter().enumerate().filter(|(_, p)| matches!(p.transform, Line::Large(_)) == large);
            let bytes = bytes.map(|(axis, p)| {
                let stride = lengths[axis + 1..].iter().rev().skip(1).fold(kept, |a, b| a.saturating_mul(*b));
                let lines = match (axis == last, kind, &p.twiddles) {
                    (false, ..) => (lengths[axis] + PADDING_ELEMENTS).saturating_mul(BLOCK_ROWS.min(stride)),
                    (true, FftType::Fft | FftType::Ifft, _) => 0,
                    (true, FftType::Rfft | FftType::Irfft, Twiddles::None) => {
                        lengths[last].saturating_mul(together(lengths[last]))
                    }
                    (true, FftType::Rfft | FftType::Irfft, _halved) => {
                        lengths[last] / 2 * together(lengths[last])
                    }
                };
                let mut task = Layout::default();
                task.add(lines as u64, element);
                let lines = task.bytes();
                task.add(p.transform.scratch_bytes(), 1);
                (lines, task.bytes() - lines)
            });
            bytes.fold((0, 0), |a, b| (a.0.max(b.0), a.1.max(b.1)))
        };
        let (small, large) = (longest(false), longest(true));
        let bytes = small.0 + small.1;
        // Tasks that need few bytes use the workspaces of their threads.
        let tasks = (MAX_SCRATCH_BYTES / bytes.max(1)).clamp(4, TASKS as u64) as usize;
        let apart = if bytes <= MAX_WORKSPACE_BYTES { 0 } else { bytes.saturating_mul(tasks as u64) };
        let all = apart.max(large.0.saturating_add(large.1));
        let tasks = Tasks { lines: small.0, bytes, tasks, large_lines: large.0, all };
        Self { kind, lengths, plans, count, copy, flags, tasks_at, tasks }
    }

    fn scratch_bytes(&self) -> u64 {
        self.tasks_at.saturating_add(self.tasks.all)
    }

    fn volume(&self) -> usize {
        self.lengths.iter().product()
    }

    /// Whether a part of an operand's volume, by its offset, is an imaginary part that has no effect: that of
    /// frequency 0 or n/2 of an inverse real transform of one dimension.
    fn is_ignored(&self, part: usize) -> bool {
        let Some(&n) = self.lengths.last() else { return false };
        let (frequency, imaginary) = (part / 2, part % 2 == 1);
        self.kind == FftType::Irfft
            && imaginary
            && self.volume() == n
            && (frequency == 0 || 2 * frequency == n)
    }

    fn cost(&self) -> (u64, u64) {
        let (points, size) = ((self.count * self.volume()) as u64, size_of::<Complex<T>>() as u64);
        let real = matches!(self.kind, FftType::Rfft | FftType::Irfft);
        let n = u64::from(self.volume().max(2).ilog2());
        if real { (points * size, points * n * 5 / 2) } else { (2 * points * size, points * n * 5) }
    }

    /// # Safety
    /// As [`Operation::run`].
    unsafe fn run(&self, call: &Call<'_>) {
        if self.count == 0 || self.volume() == 0 {
            return;
        }
        // SAFETY: the layout has these parts.
        let scratch = |at: u64| unsafe { Shared::<u8>::new(call.scratch).offset(at as usize) };
        let (x, out) = (call.arguments[0], call.arguments[1]);
        let last = self.lengths.len() - 1;
        let rows: usize = self.count * self.lengths[..last].iter().product::<usize>();
        let (n, kept) = (self.lengths[last], self.lengths[last] / 2 + 1);
        let work = Work {
            volumes: self,
            pool: call.pool,
            flags: scratch(self.flags),
            scratch: scratch(self.tasks_at),
        };
        let one = T::one();
        let points = || one / T::from_usize(self.volume()).unwrap_or(one);
        if self.volume() == 1 {
            // A transform of one point is the point itself, exactly.
            let zero = T::zero();
            for i in 0..self.count {
                let number = |x: T| if x.is_finite() { x } else { T::nan() };
                // SAFETY: operand and result have an element a volume.
                unsafe {
                    if self.kind == FftType::Rfft {
                        let x = number(Shared::<T>::new(x).slice(i, 1)[0]);
                        let im = if x.is_nan() { x } else { zero };
                        Shared::<Complex<T>>::new(out).slice_mut(i, 1)[0] = Complex::new(x, im);
                        continue;
                    }
                    let x = Shared::<Complex<T>>::new(x).slice(i, 1)[0];
                    if self.kind == FftType::Irfft {
                        Shared::<T>::new(out).slice_mut(i, 1)[0] = number(x.re);
                        continue;
                    }
                    let finite = x.re.is_finite() && x.im.is_finite();
                    let x = if finite { x } else { Complex::new(T::nan(), T::nan()) };
                    Shared::<Complex<T>>::new(out).slice_mut(i, 1)[0] = x;
                }
            }
            return;
        }
        // SAFETY: operand, result and copy have the sizes of the dimensions, and do not overlap.
        unsafe {
            match self.kind {
                FftType::Fft | FftType::Ifft => {
                    let (x, out) = (Shared::<Complex<T>>::new(x), Shared::<Complex<T>>::new(out));
                    let (parts, made) = (Shared::new(x.pointer().cast()), Shared::new(out.pointer().cast()));
                    work.look_for_numbers(parts, 2 * self.volume());
                    let scale = if self.kind == FftType::Ifft { points() } else { one };
                    work.rows(rows, &|scratch, some @ Rows { first, count }| {
                        let from = x.slice(first * n, count * n);
                        let to = out.slice_mut(first * n, count * n);
                        let by = if last == 0 { scale } else { one };
                        self.plans[last].transform.transfer(scratch.pool, from, to, scratch.inner, by);
                        work.spoil_rows(some, (parts, 2 * n), (made, 2 * n));
                    });
                    if last > 0 {
                        work.columns(out, n, scale);
                    }
                    work.spoil(made, 2 * self.volume());
                }
                FftType::Rfft => {
                    let (x, out) = (Shared::<T>::new(x), Shared::<Complex<T>>::new(out));
                    let made = Shared::new(out.pointer().cast());
                    work.look_for_numbers(x, self.volume());
                    work.rows(rows, &|scratch, some @ Rows { first, count }| {
                        let from = x.slice(first * n, count * n);
                        let to = out.slice_mut(first * kept, count * kept);
                        self.plans[last].real(n, from, to, scratch);
                        work.spoil_rows(some, (x, n), (made, 2 * kept));
                    });
                    work.columns(out, kept, one);
                    work.spoil(made, 2 * complex_volume(&self.lengths));
                }
                FftType::Irfft => {
                    let (x, out) = (Shared::<Complex<T>>::new(x), Shared::<T>::new(out));
                    let parts = Shared::<T>::new(x.pointer().cast());
                    work.look_for_numbers(parts, 2 * complex_volume(&self.lengths));
                    let mut from = x;
                    if last > 0 {
                        from = Shared::new(scratch(self.copy).pointer());
                        pieces(work.pool, rows * kept, |first, count| {
                            from.slice_mut(first, count).copy_from_slice(x.slice(first, count));
                        });
                        work.columns(from, kept, one);
                    }
                    let scale = points();
                    work.rows(rows, &|scratch, some @ Rows { first, count }| {
                        let from = from.slice(first * kept, count * kept);
                        let to = out.slice_mut(first * n, count * n);
                        self.plans[last].to_real(n, from, to, scratch, scale);
                        work.spoil_rows(some, (parts, 2 * kept), (out, n));
                    });
                    work.spoil(out, self.volume());
                }
            }
        }
    }
}

/// Some rows of the innermost dimension.
#[derive(Clone, Copy)]
struct Rows {
    first: usize,
    count: usize,
}

/// The number of lines of `length` points that are transformed together.
fn together(length: usize) -> usize {
    (BATCHED_POINTS / length.max(1)).max(1)
}

/// Elements of a volume of which the innermost dimension is a real transform's.
fn complex_volume(lengths: &[usize]) -> usize {
    let (last, outer) = lengths.split_last().unwrap_or((&1, &[]));
    outer.iter().product::<usize>() * (last / 2 + 1)
}

fn all_finite<T: Float>(x: &[T]) -> bool {
    // A finite number times 0 is 0, anything else NaN.
    let zero = T::zero();
    let (blocks, rest) = x.as_chunks::<16>();
    let mut sums = [zero; 16];
    for block in blocks {
        sums.iter_mut().zip(block).for_each(|(sum, &x)| *sum = *sum + x * zero);
    }
    rest.iter().map(|&x| x * zero).chain(sums).fold(zero, |a, b| a + b).is_finite()
}

fn scaled<T: FftNum>(x: &mut [Complex<T>], scale: T) {
    if scale != T::one() {
        x.iter_mut().for_each(|x| *x = Complex::new(x.re * scale, x.im * scale));
    }
}

/// Memory of a task.
struct Scratch<'a, T> {
    pool: &'a Pool,
    lines: &'a mut [Complex<T>],
    /// What the transform needs.
    inner: Shared<u8>,
}

/// A call under way.
struct Work<'a, T> {
    volumes: &'a Volumes<T>,
    pool: &'a Pool,
    /// For each volume whether something in it is not finite.
    flags: Shared<u8>,
    scratch: Shared<u8>,
}

impl<T: FftNum + Float> Work<'_, T> {
    /// Divides `n` items of `size` points, to be transformed by a plan, into tasks.
    fn tasks(&self, plan: &Plan<T>, n: usize, size: usize, each: &(dyn Fn(Scratch<'_, T>, usize) + Sync)) {
        let memory = &self.volumes.tasks;
        let (tasks, lines, bytes) = match plan.transform {
            Line::Whole(_) => {
                let tasks = (n.saturating_mul(size) / 2048).clamp(1, memory.tasks).min(n);
                (tasks, memory.lines as usize, memory.bytes as usize)
            }
            Line::Large(_) => (1, memory.large_lines as usize, memory.all as usize),
        };
        let (pool, scratch) = (self.pool, self.scratch);
        let with = |task: usize, at: Shared<u8>| {
            for i in n * task / tasks..n * (task + 1) / tasks {
                // SAFETY: each task has its own part of the memory, as large as these; all bits are numbers.
                let (lines, inner) = unsafe {
                    let count = lines / size_of::<Complex<T>>();
                    (Shared::<Complex<T>>::new(at.pointer()).slice_mut(0, count), at.offset(lines))
                };
                each(Scratch { pool, lines, inner }, i);
            }
        };
        let kept = matches!(plan.transform, Line::Whole(_)) && memory.bytes <= MAX_WORKSPACE_BYTES;
        let run = |task: usize| {
            if kept {
                with_workspace(bytes, |workspace| with(task, Shared::new(workspace)));
            } else {
                // SAFETY: the scratch memory is as large as all tasks'.
                with(task, unsafe { scratch.offset(task * bytes) });
            }
        };
        if tasks == 1 { run(0) } else { pool.run(tasks, &run) }
    }

    /// Calls `each` for all rows of the innermost dimension, [`together`] for as many at a time.
    fn rows(&self, rows: usize, each: &(dyn Fn(Scratch<'_, T>, Rows) + Sync)) {
        let last = self.volumes.lengths.len() - 1;
        let n = self.volumes.lengths[last];
        let most = together(n);
        self.tasks(&self.volumes.plans[last], rows.div_ceil(most), n * most, &|scratch, block| {
            let first = block * most;
            each(scratch, Rows { first, count: most.min(rows - first) });
        });
    }

    /// Transforms in place along all dimensions but the innermost, which has `inner` elements; the last
    /// result is scaled.
    ///
    /// # Safety
    /// `x` holds the volumes, and nothing else accesses it.
    unsafe fn columns(&self, x: Shared<Complex<T>>, inner: usize, scale: T) {
        let lengths = &self.volumes.lengths;
        let mut stride = inner;
        for axis in (0..lengths.len() - 1).rev() {
            let n = lengths[axis];
            let outer = self.volumes.count * lengths[..axis].iter().product::<usize>();
            let groups = stride.div_ceil(BLOCK_ROWS);
            let apart = n + PADDING_ELEMENTS;
            let plan = &self.volumes.plans[axis];
            let scale = if axis == 0 { scale } else { T::one() };
            self.tasks(plan, outer * groups, n * BLOCK_ROWS, &|scratch, i| {
                let first = i / groups * n * stride + i % groups * BLOCK_ROWS;
                let count = BLOCK_ROWS.min(stride - i % groups * BLOCK_ROWS);
                let lines = &mut scratch.lines[..apart * count];
                // SAFETY: elements of the array; tasks have different columns.
                let columns = unsafe { x.offset(first) }.pointer();
                // SAFETY: as above; there is space for as many lines.
                unsafe { transpose(columns, stride, lines.as_mut_ptr(), apart, n, count) };
                for line in lines.chunks_exact_mut(apart) {
                    plan.transform.process(scratch.pool, &mut line[..n], scratch.inner, scale);
                }
                for row in (0..n).step_by(BLOCK_ROWS) {
                    let rows = BLOCK_ROWS.min(n - row);
                    // SAFETY: as above.
                    unsafe {
                        let to = columns.add(row * stride);
                        transpose(lines.as_ptr().add(row), apart, to, stride, count, rows);
                    }
                }
            });
            stride *= n;
        }
    }

    /// Whether a row is a whole volume and has one task: then rows that are not finite become NaN as soon as
    /// they are transformed ([`Self::spoil_rows`]). Otherwise volumes are tested before the transforms
    /// ([`Self::look_for_numbers`]) and become NaN behind them ([`Self::spoil`]).
    fn are_rows_alone(&self) -> bool {
        matches!(&self.volumes.plans[..], [Plan { transform: Line::Whole(_), .. }])
    }

    /// Makes rows NaN whose source has an element that is not finite, if rows are whole volumes. The numbers
    /// are the parts of a row.
    ///
    /// # Safety
    /// The rows are there, and nothing else accesses the second ones.
    unsafe fn spoil_rows(
        &self,
        Rows { first, count }: Rows,
        (from, each): (Shared<T>, usize),
        (to, made): (Shared<T>, usize),
    ) {
        if !self.are_rows_alone() {
            return;
        }
        // SAFETY: the caller's.
        let (from, to) =
            unsafe { (from.slice(first * each, count * each), to.slice_mut(first * made, count * made)) };
        if all_finite(from) {
            return;
        }
        for (from, to) in from.chunks_exact(each).zip(to.chunks_exact_mut(made)) {
            if self.spoils(from, 0) {
                to.fill(T::nan());
            }
        }
    }

    /// Whether one of some parts of a volume, from the `first` on, is not finite and has an effect.
    fn spoils(&self, parts: &[T], first: usize) -> bool {
        let counts = |(i, x): (usize, &T)| !x.is_finite() && !self.volumes.is_ignored(first + i);
        !all_finite(parts) && parts.iter().enumerate().any(counts)
    }

    /// Flags the volumes of `size` parts in which one is not finite, unless rows are whole volumes.
    ///
    /// # Safety
    /// `x` holds the volumes.
    unsafe fn look_for_numbers(&self, x: Shared<T>, size: usize) {
        if self.are_rows_alone() {
            return;
        }
        let flags = self.flags;
        // SAFETY: the flags; bytes are atomic ones.
        let flags = unsafe {
            flags.slice_mut(0, self.volumes.count).fill(0);
            Shared::<AtomicU8>::new(flags.pointer()).slice(0, self.volumes.count)
        };
        let part = sizes::from(SCANNED_PARTS);
        if size >= part {
            let parts = size.div_ceil(part);
            self.pool.run(self.volumes.count * parts, &|i| {
                let (volume, first) = (i / parts, i % parts * part);
                // SAFETY: a part of the volume.
                let x = unsafe { x.slice(volume * size + first, part.min(size - first)) };
                if self.spoils(x, first) {
                    flags[volume].store(1, Ordering::Relaxed);
                }
            });
            return;
        }
        let some = part / size.max(1);
        self.pool.run(self.volumes.count.div_ceil(some), &|i| {
            for (volume, flag) in flags.iter().enumerate().skip(i * some).take(some) {
                // SAFETY: the volume's parts.
                let x = unsafe { x.slice(volume * size, size) };
                flag.store(u8::from(self.spoils(x, 0)), Ordering::Relaxed);
            }
        });
    }

    /// Makes the volumes that were flagged NaN, unless rows are whole volumes.
    ///
    /// # Safety
    /// `x` holds volumes of `size` parts.
    unsafe fn spoil(&self, x: Shared<T>, size: usize) {
        if self.are_rows_alone() {
            return;
        }
        for volume in 0..self.volumes.count {
            // SAFETY: the volume's flag and parts; no task runs.
            unsafe {
                if self.flags.slice(volume, 1)[0] != 0 {
                    x.slice_mut(volume * size, size).fill(T::nan());
                }
            }
        }
    }
}

impl Operation for Fft {
    fn strategy(&self) -> &'static str {
        "mixed-radix FFT"
    }

    fn scratch_bytes(&self) -> u64 {
        match self {
            Fft::Single(v) => v.scratch_bytes(),
            Fft::Double(v) => v.scratch_bytes(),
        }
    }

    fn cost(&self) -> (u64, u64) {
        match self {
            Fft::Single(v) => v.cost(),
            Fft::Double(v) => v.cost(),
        }
    }

    unsafe fn run(&self, call: Call<'_>) {
        // SAFETY: as the caller says.
        unsafe {
            match self {
                Fft::Single(v) => v.run(&call),
                Fft::Double(v) => v.run(&call),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{check, check_not_finite, close, close_but_for_signs_of_zeros};

    fn text(
        kind: &str,
        (given, made): (&str, &str),
        (operand, result): (&str, &str),
        lengths: &str,
    ) -> String {
        format!(
            "HloModule m\nENTRY main {{\n  x = {given}[{operand}] parameter(0)\n  ROOT f = {made}[{result}] fft(x), fft_type={kind}, fft_length={{{lengths}}}\n}}\n"
        )
    }

    #[test]
    fn all_kinds_and_ranks() {
        for (real, complex) in [("f32", "c64"), ("f64", "c128")] {
            for kind in ["FFT", "IFFT"] {
                let types = (complex, complex);
                for (dims, lengths) in [
                    ("16", "16"),
                    ("3,37", "37"),
                    ("2,5,12", "5,12"),
                    ("2,3,4,5", "3,4,5"),
                    ("1,1", "1"),
                    ("3,20,3", "20,3"),
                ] {
                    close(&text(kind, types, (dims, dims), lengths), 1, 60.0);
                }
            }
            for (operand, result, lengths) in [
                ("16", "9", "16"),
                ("3,37", "3,19", "37"),
                ("2,5,12", "2,5,7", "5,12"),
                ("4,3,9", "4,3,5", "4,3,9"),
                ("2,2", "2,2", "2"),
                ("3,1", "3,1", "1"),
                ("2,6", "2,4", "6"),
                ("30", "16", "30"),
            ] {
                close(&text("RFFT", (real, complex), (operand, result), lengths), 2, 60.0);
                close(&text("IRFFT", (complex, real), (result, operand), lengths), 3, 60.0);
            }
        }
        close(&text("FFT", ("c64", "c64"), ("40,257", "40,257"), "257"), 4, 100.0);
        close(&text("FFT", ("c64", "c64"), ("0,4", "0,4"), "4"), 4, 100.0);
    }

    /// Square lengths and others, primes (convolutions), of one line and of several, in the first of two
    /// dimensions, halves of real ones.
    #[test]
    fn many_points() {
        let both = |complex: &str, n: usize| {
            let n = n.to_string();
            close(&text("FFT", (complex, complex), (&n, &n), &n), 5, 100.0);
            close(&text("IFFT", (complex, complex), (&n, &n), &n), 6, 100.0);
        };
        for n in [4_096, 5_000, 4_099, 2 * 2_053, 16_384] {
            both("c64", n);
        }
        both("c128", 6_144);
        both("c128", 4_111);
        close(&text("FFT", ("c64", "c64"), ("2,4100", "2,4100"), "4100"), 7, 100.0);
        close(&text("FFT", ("c64", "c64"), ("4096,3", "4096,3"), "4096,3"), 8, 100.0);
        close(&text("IFFT", ("c64", "c64"), ("3,4110", "3,4110"), "3,4110"), 9, 100.0);
        for (real, complex) in [("8192", "4097"), ("4111", "2056"), ("3,8202", "3,4102")] {
            close(&text("RFFT", ("f32", "c64"), (real, complex), real), 10, 100.0);
            close(&text("IRFFT", ("c64", "f32"), (complex, real), real), 11, 100.0);
        }
        check_not_finite(&text("FFT", ("c64", "c64"), ("2,4096", "2,4096"), "4096"), 12);
        check_not_finite(&text("FFT", ("c64", "c64"), ("2,16,4096", "2,16,4096"), "16,4096"), 13);
    }

    /// Several lines at a time, and the remainder.
    #[test]
    fn many_short_lines() {
        let close = close_but_for_signs_of_zeros;
        for (real, complex) in [("f32", "c64"), ("f64", "c128")] {
            for kind in ["FFT", "IFFT"] {
                for (dims, lengths) in [("300,6", "6"), ("120,35", "35"), ("7,1000", "1000")] {
                    close(&text(kind, (complex, complex), (dims, dims), lengths), 1, 60.0);
                }
            }
            for (operand, result, lengths) in [
                ("300,8", "300,5", "8"),
                ("999,7", "999,4", "7"),
                ("70,100", "70,51", "100"),
                ("5,2,66", "5,2,34", "2,66"),
                ("9,514", "9,258", "514"),
                ("600,2", "600,2", "2"),
            ] {
                close(&text("RFFT", (real, complex), (operand, result), lengths), 2, 60.0);
                close(&text("IRFFT", (complex, real), (result, operand), lengths), 3, 60.0);
            }
        }
    }

    #[test]
    fn one_point_is_itself() {
        for (kind, types) in [
            ("FFT", ("c64", "c64")),
            ("IFFT", ("c128", "c128")),
            ("RFFT", ("f32", "c64")),
            ("IRFFT", ("c128", "f64")),
        ] {
            for (dims, lengths) in [("60,1", "1"), ("40,1,1", "1,1")] {
                check(&text(kind, types, (dims, dims), lengths), 5, false, false, &[]);
            }
        }
    }

    /// Frequency 0 of each line has an infinite imaginary part, whatever dimensions of one point are beside it.
    #[test]
    fn an_imaginary_part_that_is_ignored_may_be_infinite() {
        for (dims, result, lengths) in [("3,1,2", "3,1,3", "1,3"), ("3,1,1,3", "3,1,1,4", "1,1,4")] {
            let text = format!(
                "HloModule m\nENTRY main {{\n  re = f64[{dims}] parameter(0)\n  k = s32[{dims}] iota(), iota_dimension={last}\n  \
                 zero = s32[{dims}] subtract(k, k)\n  first = pred[{dims}] compare(k, zero), direction=EQ\n  inf = f64[] constant(inf)\n  \
                 infs = f64[{dims}] broadcast(inf), dimensions={{}}\n  im = f64[{dims}] select(first, infs, re)\n  x = c128[{dims}] complex(re, im)\n  \
                 ROOT y = f64[{result}] fft(x), fft_type=IRFFT, fft_length={{{lengths}}}\n}}\n",
                last = dims.split(',').count() - 1,
            );
            close(&text, 7, 60.0);
        }
    }

    #[test]
    fn what_is_not_finite_spoils_its_volume() {
        check_not_finite(&text("FFT", ("c64", "c64"), ("4,2,8", "4,2,8"), "2,8"), 1);
        check_not_finite(&text("RFFT", ("f32", "c64"), ("4,8", "4,5"), "8"), 2);
        check_not_finite(&text("RFFT", ("f32", "c64"), ("400,8", "400,5"), "8"), 2);
        check_not_finite(&text("IRFFT", ("c64", "f32"), ("400,5", "400,8"), "8"), 2);
        check_not_finite(&text("FFT", ("c64", "c64"), ("400,6", "400,6"), "6"), 2);
        check_not_finite(&text("IRFFT", ("c128", "f64"), ("4,5", "4,8"), "8"), 3);
    }
}
