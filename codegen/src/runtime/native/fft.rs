//! `fft`: all four kinds, any length, any rank, by `rustfft` on rows and on columns that are gathered into rows.
//!
//! Parts of type f32 are computed in f32, parts of type f64 in f64. Real transforms of even length take complex ones of half the length. A transform with an
//! element that is not finite is NaN throughout.

use std::fmt;
use std::sync::Arc;

use hlo::attrs::FftType;
use hlo::num_complex::Complex;
use hlo::{AttrKey, ElementType, InstrId, Module};
use num_traits::Float;
use rustfft::{Fft as Transform, FftNum, FftPlanner};
use smallvec::SmallVec;

use super::memory::{Layout, Shared};
use super::{Call, Operation};
use crate::Unsupported;

/// Columns that are gathered together.
const COLUMNS: usize = 8;

/// Tasks that work is cut into, if their scratch memory allows.
const TASKS: usize = 64;

/// Scratch memory above which there are fewer tasks.
const MUCH: u64 = 1 << 26;

/// The operation: arguments are the operand and the result.
#[derive(Clone, Debug)]
pub(crate) enum Fft {
    /// Of f32 and c64.
    Single(Volumes<f32>),
    /// Of f64 and c128.
    Double(Volumes<f64>),
}

/// A transform of one length.
#[derive(Clone)]
struct Plan<T> {
    transform: Arc<dyn Transform<T>>,
    /// For real transforms of even length: `exp(-+ 2 pi i k / n)`, `k <= n / 4`; the transform is of half the length.
    twiddles: Arc<[Complex<T>]>,
}

impl<T> fmt::Debug for Plan<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plan({})", self.transform.len())
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
    /// Where in the scratch memory: a copy of the operand (an inverse real transform of several dimensions), flags of volumes, memory of tasks.
    copy: u64,
    flags: u64,
    tasks_at: u64,
    task_bytes: u64,
    tasks: usize,
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
        let mut planner = FftPlanner::<T>::new();
        let inverse = matches!(kind, FftType::Ifft | FftType::Irfft);
        let last = lengths.len() - 1;
        let plan = |(i, &n): (usize, &usize)| {
            let halved =
                i == last && matches!(kind, FftType::Rfft | FftType::Irfft) && n > 0 && n.is_multiple_of(2);
            let length = if halved { n / 2 } else { n };
            let transform =
                if inverse { planner.plan_fft_inverse(length) } else { planner.plan_fft_forward(length) };
            let twiddle = |k: usize| {
                let (sin, cos) = (std::f64::consts::TAU * k as f64 / n as f64).sin_cos();
                let sin = if inverse { sin } else { -sin };
                let part = |x: f64| T::from_f64(x).unwrap_or_else(T::zero);
                Complex::new(part(cos), part(sin))
            };
            let twiddles = if halved { (0..=n / 4).map(twiddle).collect() } else { Arc::default() };
            Plan { transform, twiddles }
        };
        let plans: Vec<Plan<T>> =
            if count == 0 { Vec::new() } else { lengths.iter().enumerate().map(plan).collect() };

        let element = size_of::<Complex<T>>() as u64;
        let mut layout = Layout::default();
        let copied =
            if kind == FftType::Irfft && lengths.len() > 1 { count * complex_volume(&lengths) } else { 0 };
        let copy = layout.add(copied as u64, element);
        let flags = layout.add(count as u64, 1);
        let tasks_at = layout.bytes();
        let longest = lengths.iter().copied().max().unwrap_or(0) as u64;
        let inner = |p: &Plan<T>| {
            p.transform.get_inplace_scratch_len().max(p.transform.get_immutable_scratch_len()) as u64
        };
        let mut task = Layout::default();
        task.add(longest * COLUMNS as u64, element);
        task.add(plans.iter().map(inner).max().unwrap_or(0), element);
        let tasks = (MUCH / task.bytes().max(1)).clamp(4, TASKS as u64) as usize;
        Self { kind, lengths, plans, count, copy, flags, tasks_at, task_bytes: task.bytes(), tasks }
    }

    fn scratch_bytes(&self) -> u64 {
        self.tasks_at.saturating_add(self.task_bytes.saturating_mul(self.tasks as u64))
    }

    fn volume(&self) -> usize {
        self.lengths.iter().product()
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
        // SAFETY: the layout has these places.
        let scratch = |at: u64| unsafe { Shared::<u8>::new(call.scratch).offset(at as usize) };
        let (x, out) = (call.arguments[0], call.arguments[1]);
        let last = self.lengths.len() - 1;
        let rows: usize = self.count * self.lengths[..last].iter().product::<usize>();
        let (n, kept) = (self.lengths[last], self.lengths[last] / 2 + 1);
        let work = Work { volumes: self, call, flags: scratch(self.flags), scratch: scratch(self.tasks_at) };
        let one = T::one();
        let points = || one / T::from_usize(self.volume()).unwrap_or(one);
        if self.volume() == 1 {
            // Of one point: itself, exactly.
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
                    let finite = x.re.is_finite() && x.im.is_finite();
                    let x = if finite { x } else { Complex::new(T::nan(), T::nan()) };
                    if self.kind == FftType::Irfft {
                        Shared::<T>::new(out).slice_mut(i, 1)[0] = x.re;
                    } else {
                        Shared::<Complex<T>>::new(out).slice_mut(i, 1)[0] = x;
                    }
                }
            }
            return;
        }
        // SAFETY: operand, result and copy have the sizes of the dimensions, and do not overlap.
        unsafe {
            match self.kind {
                FftType::Fft | FftType::Ifft => {
                    let (x, out) = (Shared::<Complex<T>>::new(x), Shared::<Complex<T>>::new(out));
                    let parts = Shared::<T>::new(x.pointer().cast());
                    if last > 0 {
                        work.look_for_numbers(parts, 2 * self.volume());
                    }
                    let scale = if self.kind == FftType::Ifft { points() } else { one };
                    work.rows(rows, &|scratch, row| {
                        let (from, to) = (x.slice(row * n, n), out.slice_mut(row * n, n));
                        self.plans[last].transform.process_immutable_with_scratch(from, to, scratch.inner);
                        if last == 0 {
                            scaled(to, scale);
                            if !all_finite(parts.slice(row * 2 * n, 2 * n)) {
                                to.fill(Complex::new(T::nan(), T::nan()));
                            }
                        }
                    });
                    if last > 0 {
                        work.columns(out, n, scale);
                        work.spoil(Shared::new(out.pointer().cast()), 2 * self.volume());
                    }
                }
                FftType::Rfft => {
                    let (x, out) = (Shared::<T>::new(x), Shared::<Complex<T>>::new(out));
                    work.look_for_numbers(x, self.volume());
                    work.rows(rows, &|scratch, row| {
                        let (from, to) = (x.slice(row * n, n), out.slice_mut(row * kept, kept));
                        self.plans[last].real(from, to, scratch);
                    });
                    work.columns(out, kept, one);
                    work.spoil(Shared::new(out.pointer().cast()), 2 * complex_volume(&self.lengths));
                }
                FftType::Irfft => {
                    let (x, out) = (Shared::<Complex<T>>::new(x), Shared::<T>::new(out));
                    let parts = Shared::<T>::new(x.pointer().cast());
                    work.look_for_numbers(parts, 2 * complex_volume(&self.lengths));
                    let mut from = x;
                    if last > 0 {
                        from = Shared::new(scratch(self.copy).pointer());
                        work.rows(rows, &|_, row| {
                            from.slice_mut(row * kept, kept).copy_from_slice(x.slice(row * kept, kept))
                        });
                        work.columns(from, kept, one);
                    }
                    let scale = points();
                    work.rows(rows, &|scratch, row| {
                        let (from, to) = (from.slice(row * kept, kept), out.slice_mut(row * n, n));
                        self.plans[last].to_real(from, to, scratch, scale);
                    });
                    work.spoil(out, self.volume());
                }
            }
        }
    }
}

/// Elements of a volume of which the innermost dimension is a real transform's.
fn complex_volume(lengths: &[usize]) -> usize {
    let (last, outer) = lengths.split_last().unwrap_or((&1, &[]));
    outer.iter().product::<usize>() * (last / 2 + 1)
}

fn all_finite<T: Float>(x: &[T]) -> bool {
    // A number times 0 is 0, anything else NaN.
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
    lines: &'a mut [Complex<T>],
    inner: &'a mut [Complex<T>],
}

impl<T: FftNum + Float> Plan<T> {
    /// A forward transform of real numbers: the first half of the frequencies.
    fn real(&self, x: &[T], out: &mut [Complex<T>], scratch: Scratch<'_, T>) {
        let n = x.len();
        let zero = T::zero();
        if self.twiddles.is_empty() {
            let line = &mut scratch.lines[..n];
            line.iter_mut().zip(x).for_each(|(to, &x)| *to = Complex::new(x, zero));
            self.transform.process_with_scratch(line, scratch.inner);
            out.copy_from_slice(&line[..out.len()]);
            return;
        }
        // Even and odd elements as real and imaginary parts; then the two transforms are taken apart.
        let m = n / 2;
        let line = &mut scratch.lines[..m];
        line.iter_mut().zip(x.chunks_exact(2)).for_each(|(to, x)| *to = Complex::new(x[0], x[1]));
        self.transform.process_with_scratch(line, scratch.inner);
        let half = T::from_f64(0.5).unwrap_or_else(T::one);
        let first = line[0];
        out[0] = Complex::new(first.re + first.im, zero);
        out[m] = Complex::new(first.re - first.im, zero);
        for k in 1..=m / 2 {
            let (a, b, w) = (line[k], line[m - k], self.twiddles[k]);
            let even = Complex::new((a.re + b.re) * half, (a.im - b.im) * half);
            let odd = Complex::new((a.im + b.im) * half, (b.re - a.re) * half);
            let turned = Complex::new(odd.re * w.re - odd.im * w.im, odd.re * w.im + odd.im * w.re);
            out[k] = Complex::new(even.re + turned.re, even.im + turned.im);
            out[m - k] = Complex::new(even.re - turned.re, turned.im - even.im);
        }
    }

    /// The inverse: the missing frequencies are the conjugates, the result is the real part.
    fn to_real(&self, x: &[Complex<T>], out: &mut [T], scratch: Scratch<'_, T>, scale: T) {
        let n = out.len();
        let zero = T::zero();
        if self.twiddles.is_empty() {
            let line = &mut scratch.lines[..n];
            line[..x.len()].copy_from_slice(x);
            line[0] = Complex::new(x[0].re, zero);
            for k in x.len()..n {
                line[k] = x[n - k].conj();
            }
            self.transform.process_with_scratch(line, scratch.inner);
            out.iter_mut().zip(&*line).for_each(|(to, x)| *to = x.re * scale);
            return;
        }
        let m = n / 2;
        let line = &mut scratch.lines[..m];
        // Of frequencies 0 and m the real parts alone count.
        line[0] = Complex::new(x[0].re + x[m].re, x[0].re - x[m].re);
        for k in 1..=m / 2 {
            let (a, b, w) = (x[k], x[m - k], self.twiddles[k]);
            let even = Complex::new(a.re + b.re, a.im - b.im);
            let odd = Complex::new(a.re - b.re, a.im + b.im);
            let turned = Complex::new(odd.re * w.re - odd.im * w.im, odd.re * w.im + odd.im * w.re);
            line[k] = Complex::new(even.re - turned.im, even.im + turned.re);
            line[m - k] = Complex::new(even.re + turned.im, turned.re - even.im);
        }
        self.transform.process_with_scratch(line, scratch.inner);
        for (to, x) in out.chunks_exact_mut(2).zip(&*line) {
            to[0] = x.re * scale;
            to[1] = x.im * scale;
        }
    }
}

/// A call under way.
struct Work<'a, T> {
    volumes: &'a Volumes<T>,
    call: &'a Call<'a>,
    /// For each volume whether something in it is not finite.
    flags: Shared<u8>,
    scratch: Shared<u8>,
}

impl<T: FftNum + Float> Work<'_, T> {
    /// Cuts `n` things into tasks.
    fn tasks(&self, n: usize, size: usize, each: &(dyn Fn(Scratch<'_, T>, usize) + Sync)) {
        let volumes = self.volumes;
        let tasks = (n.saturating_mul(size) / 2048).clamp(1, volumes.tasks).min(n);
        let (scratch, bytes) = (self.scratch, volumes.task_bytes as usize);
        let run = |task: usize| {
            let lines = volumes.lengths.iter().copied().max().unwrap_or(0) * COLUMNS;
            let at = (lines * size_of::<Complex<T>>()).next_multiple_of(64);
            for i in n * task / tasks..n * (task + 1) / tasks {
                // SAFETY: each task has its own part of the memory, with room for these; all bits are numbers.
                let (lines, inner) = unsafe {
                    (
                        Shared::<Complex<T>>::new(scratch.offset(task * bytes).pointer()).slice_mut(0, lines),
                        Shared::<Complex<T>>::new(scratch.offset(task * bytes + at).pointer())
                            .slice_mut(0, (bytes - at) / size_of::<Complex<T>>()),
                    )
                };
                each(Scratch { lines, inner }, i);
            }
        };
        if tasks == 1 { run(0) } else { self.call.pool.run(tasks, &run) }
    }

    /// Calls `each` for every row of the innermost dimension.
    fn rows(&self, rows: usize, each: &(dyn Fn(Scratch<'_, T>, usize) + Sync)) {
        let length = self.volumes.lengths.last().copied().unwrap_or(1);
        self.tasks(rows, length, each);
    }

    /// Transforms in place along all dimensions but the innermost, which has `inner` elements; the last result is scaled.
    ///
    /// # Safety
    /// `x` holds the volumes, and nobody else uses it.
    unsafe fn columns(&self, x: Shared<Complex<T>>, inner: usize, scale: T) {
        let lengths = &self.volumes.lengths;
        let mut stride = inner;
        for axis in (0..lengths.len() - 1).rev() {
            let n = lengths[axis];
            let outer = self.volumes.count * lengths[..axis].iter().product::<usize>();
            let groups = stride.div_ceil(COLUMNS);
            let plan = &self.volumes.plans[axis];
            let scale = if axis == 0 { scale } else { T::one() };
            self.tasks(outer * groups, n * COLUMNS, &|scratch, i| {
                let first = i / groups * n * stride + i % groups * COLUMNS;
                let count = COLUMNS.min(stride - i % groups * COLUMNS);
                let lines = &mut scratch.lines[..n * count];
                for k in 0..n {
                    // SAFETY: elements of the array; tasks have different columns.
                    let row = unsafe { x.slice(first + k * stride, count) };
                    row.iter().enumerate().for_each(|(c, &x)| lines[c * n + k] = x);
                }
                plan.transform.process_with_scratch(lines, scratch.inner);
                scaled(lines, scale);
                for k in 0..n {
                    // SAFETY: as above.
                    let row = unsafe { x.slice_mut(first + k * stride, count) };
                    row.iter_mut().enumerate().for_each(|(c, x)| *x = lines[c * n + k]);
                }
            });
            stride *= n;
        }
    }

    /// Notes the volumes of `size` parts in which one is not finite.
    ///
    /// # Safety
    /// `x` holds the volumes.
    unsafe fn look_for_numbers(&self, x: Shared<T>, size: usize) {
        let flags = self.flags;
        self.tasks(self.volumes.count, size, &|_, volume| {
            // SAFETY: the volume's parts and its flag.
            let (x, flag) = unsafe { (x.slice(volume * size, size), flags.slice_mut(volume, 1)) };
            flag[0] = u8::from(!all_finite(x));
        });
    }

    /// Makes the volumes that were noted NaN.
    ///
    /// # Safety
    /// `x` holds volumes of `size` parts.
    unsafe fn spoil(&self, x: Shared<T>, size: usize) {
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
    use crate::runtime::native::testing::{check, check_not_finite, close};

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

    #[test]
    fn what_is_not_finite_spoils_its_volume() {
        check_not_finite(&text("FFT", ("c64", "c64"), ("4,2,8", "4,2,8"), "2,8"), 1);
        check_not_finite(&text("RFFT", ("f32", "c64"), ("4,8", "4,5"), "8"), 2);
        check_not_finite(&text("IRFFT", ("c128", "f64"), ("4,5", "4,8"), "8"), 3);
    }
}
