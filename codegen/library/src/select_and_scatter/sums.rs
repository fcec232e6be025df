//! Maxima or minima of floats into which sources are added, as in gradients of pooling: a row of neighbours
//! at a time. Where neighbours are few, the windows of a line are computed together (`lines`); where lines
//! are short, too, small contiguous arrays are interleaved (`sides`), so that elements at the same index of
//! sixteen arrays are neighbours.
//!
//! **Invariant:** each sum is rounded to the element type, windows in row-major order.

use hlo::attrs::Direction;
use hlo::half::{bf16, f16};
use hlo::{ComputationId, ElementType, Module, Opcode};
use hlo_library_base::floats::Half;
use hlo_library_base::memory::Shared;
use hlo_library_base::simd::{Work, vectorized, vectorized_or};
use hlo_library_base::{Call, Sent};
use smallvec::SmallVec;

use super::super::region::{Node, Scalars};
use super::super::window::{Axis, advance, locate, outputs, positions};
use super::TASKS;

/// Neighbours that select together.
pub(super) const BLOCK_NEIGHBOURS: usize = 64;

/// Windows from which on a line is faster than interleaved arrays, and from which on it is faster than one
/// window after the other.
#[cfg(target_arch = "x86_64")]
const LONG_LINE_WINDOWS: usize = 16;
const SHORT_LINE_WINDOWS: usize = 4;

/// The maximum of elements of windows for which sums are computed at every element of the window.
const FEW_ELEMENTS: usize = 16;

/// How the selected element compares with a later one that does not replace it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stays {
    Ge,
    Gt,
    Le,
    Lt,
}

impl Stays {
    /// If the computation is such a comparison of the selected element (parameter 0) with a later one.
    fn of(s: &Scalars) -> Option<Stays> {
        let &[result] = &s.results[..] else { return None };
        let &Node::Compare(direction, false, a, b) = s.get(result) else { return None };
        let [as_is, swapped] = match direction {
            Direction::Ge => [Stays::Ge, Stays::Le],
            Direction::Gt => [Stays::Gt, Stays::Lt],
            Direction::Le => [Stays::Le, Stays::Ge],
            Direction::Lt => [Stays::Lt, Stays::Gt],
            Direction::Eq | Direction::Ne => return None,
        };
        match (s.parameter(a), s.parameter(b)) {
            (Some(0), Some(1)) => Some(as_is),
            (Some(1), Some(0)) => Some(swapped),
            (_, _) => None,
        }
    }

    /// Whether the selected element stays if it is less than the later one, equal to it, or greater.
    pub(super) fn of_order(self) -> [bool; 3] {
        match self {
            Stays::Ge => [false, true, true],
            Stays::Gt => [false, false, true],
            Stays::Le => [true, true, false],
            Stays::Lt => [true, false, false],
        }
    }
}

/// Runs code that takes the comparison as a closure. GE, which frameworks' max pooling has, is a type of its
/// own and one instruction; the other three share a type and, after `else`, may have code that is specialized
/// less.
macro_rules! with_comparison {
    ($stays:expr, $compare:ident => $run:expr, else $other:expr) => {
        match $stays {
            Stays::Ge => {
                let $compare = |a, b| a >= b;
                $run
            }
            other => {
                let [less, equal, greater] = other.of_order();
                let $compare = move |a, b| (less & (a < b)) | (equal & (a == b)) | (greater & (a > b));
                $other
            }
        }
    };
}

pub(super) use with_comparison;

/// The element types.
#[derive(Clone, Copy, Debug)]
enum Float {
    F16,
    Bf16,
    F32,
    F64,
}

/// What is computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    ty: Float,
    stays: Stays,
}

impl Sums {
    /// If the computations are a comparison and a sum of floats of 16 bits or more.
    pub(super) fn new(
        module: &Module,
        [select, scatter]: [ComputationId; 2],
        ty: ElementType,
    ) -> Option<Sums> {
        let ty = match ty {
            ElementType::F16 => Float::F16,
            ElementType::BF16 => Float::Bf16,
            ElementType::F32 => Float::F32,
            ElementType::F64 => Float::F64,
            _other => return None,
        };
        let stays = Scalars::of(module, select).and_then(|s| Stays::of(&s))?;
        let sums = Scalars::of(module, scatter).and_then(|s| s.reducer()) == Some(Opcode::Add);
        sums.then_some(Sums { ty, stays })
    }

    /// Computes it.
    ///
    /// # Safety
    /// As [`super::Operation::run`]; the arrays are of this element type, and each has less than 2^32
    /// elements.
    pub(super) unsafe fn run(&self, axes: &[Axis], call: &Call<'_>) {
        let leading = axes.iter().take_while(|a| a.is_identity()).count();
        let (leading, axes) = axes.split_at(leading);
        let trailing = axes.iter().rev().take_while(|a| a.is_identity()).count();
        let (axes, trailing) = axes.split_at(axes.len() - trailing);
        let size = |axes: &[Axis]| axes.iter().map(|a| a.input).product::<usize>();
        let (outer, inner) = (size(leading), size(trailing));
        let (elements, windows) = (size(axes) * inner, outputs(axes) * inner);
        let planes = Planes { axes, outer, inner, elements, windows, stays: self.stays };
        #[cfg(target_arch = "x86_64")]
        let sides =
            !matches!(self.ty, Float::F64) && planes.fit_sides() && !planes.fit_lines(LONG_LINE_WINDOWS);
        #[cfg(not(target_arch = "x86_64"))]
        let sides = false;
        let lines = !sides && planes.fit_lines(SHORT_LINE_WINDOWS);
        // SAFETY: as the caller says.
        unsafe {
            match self.ty {
                #[cfg(target_arch = "x86_64")]
                Float::F16 if sides => planes.run_sides::<f16>(call),
                #[cfg(target_arch = "x86_64")]
                Float::Bf16 if sides => planes.run_sides::<bf16>(call),
                #[cfg(target_arch = "x86_64")]
                Float::F32 if sides => planes.run_sides::<f32>(call),
                Float::F16 if lines => planes.run_lines::<f16>(call),
                Float::Bf16 if lines => planes.run_lines::<bf16>(call),
                Float::F32 if lines => planes.run_lines::<f32>(call),
                Float::F64 if lines => planes.run_lines::<f64>(call),
                Float::F16 => planes.run::<f16>(call),
                Float::Bf16 => planes.run::<bf16>(call),
                Float::F32 => planes.run::<f32>(call),
                Float::F64 => planes.run::<f64>(call),
            }
        }
    }
}

/// An element as it is stored.
pub(super) trait Number: Copy + Default + Send + Sync + 'static {
    /// What is compared.
    type Wide: Copy + Default + PartialOrd;

    /// A row of at most [`BLOCK_NEIGHBOURS`], perhaps in the memory for it.
    fn widen<'a>(row: &'a [Self], memory: &'a mut [Self::Wide; BLOCK_NEIGHBOURS]) -> &'a [Self::Wide];

    /// Whether adding whole rows costs no more than loading and storing each sum at its own index.
    const IN_ROWS: bool;

    /// Adds each of at most [`BLOCK_NEIGHBOURS`] sources to the element that was selected for it.
    fn add(source: &[Self], to: &mut [Self]);
}

macro_rules! as_they_are {
    ($($t:ty),*) => {
        $(impl Number for $t {
            type Wide = $t;
            const IN_ROWS: bool = true;

            #[inline(always)]
            fn widen<'a>(row: &'a [$t], _: &'a mut [$t; BLOCK_NEIGHBOURS]) -> &'a [$t] {
                row
            }

            #[inline(always)]
            fn add(source: &[$t], to: &mut [$t]) {
                for (to, x) in to.iter_mut().zip(source) {
                    // Operands in this order: the first NaN is the sum.
                    let sum = x + *to;
                    *to = sum;
                }
            }
        })*
    };
}
as_they_are!(f32, f64);

// Sums of two halves in `f32` are rounded as exact ones would be.
macro_rules! halves {
    ($($t:ty),*) => {
        $(impl Number for $t {
            type Wide = f32;
            const IN_ROWS: bool = false;

            #[inline(always)]
            fn widen<'a>(row: &'a [$t], memory: &'a mut [f32; BLOCK_NEIGHBOURS]) -> &'a [f32] {
                <$t as Half>::to_wide(row, &mut memory[..row.len()]);
                &memory[..row.len()]
            }

            #[inline(always)]
            fn add(source: &[$t], to: &mut [$t]) {
                let (mut a, mut b) = ([0f32; BLOCK_NEIGHBOURS], [0f32; BLOCK_NEIGHBOURS]);
                let n = to.len();
                <$t as Half>::to_wide(source, &mut a[..n]);
                <$t as Half>::to_wide(to, &mut b[..n]);
                a.iter_mut().zip(&b).for_each(|(a, b)| *a += b);
                <$t as Half>::from_wide(&a[..n], to);
            }
        })*
    };
}
halves!(bf16, f16);

/// The windows of contiguous arrays of rows of neighbours.
pub(super) struct Planes<'a> {
    pub(super) axes: &'a [Axis],
    pub(super) outer: usize,
    pub(super) inner: usize,
    /// Elements and windows of one.
    pub(super) elements: usize,
    pub(super) windows: usize,
    pub(super) stays: Stays,
}

impl Planes<'_> {
    /// Rows of neighbours, in the arrays.
    ///
    /// # Safety
    /// As [`Sums::run`].
    unsafe fn run<T: Number>(&self, call: &Call<'_>) {
        let &Planes { axes, outer, inner, elements, windows, stays } = self;
        let blocks = inner.div_ceil(BLOCK_NEIGHBOURS);
        let items = outer * blocks;
        let tasks = items.min(4 * TASKS);
        let sent = Sent(*call);
        call.pool.run(tasks, &|task| {
            let call = sent.get();
            for item in items * task / tasks..items * (task + 1) / tasks {
                let (o, first) = (item / blocks, item % blocks * BLOCK_NEIGHBOURS);
                let n = BLOCK_NEIGHBOURS.min(inner - first);
                let part = |i: usize, n: usize| {
                    // SAFETY: `o` is below the number of such parts of the array.
                    unsafe { Shared::<T>::new(call.arguments[i]).offset(o * n) }
                };
                let arrays = [part(0, elements), part(1, windows), part(3, elements)];
                // SAFETY: the initial value is one element.
                let init = unsafe { *call.arguments[2].cast::<T>() };
                // SAFETY: as the caller says; items have different offsets in the result.
                unsafe {
                    with_comparison!(stays,
                        stays => Lanes { axes, arrays, init, inner, first, n, stays }.run_specialized(),
                        else Lanes { axes, arrays, init, inner, first, n, stays }.run());
                }
            }
        });
    }
}

/// The windows of one array, of neighbours.
///
/// **Invariant:** the arrays, whose innermost dimension is `inner`, have the elements and windows of the
/// axes, nothing else accesses these neighbours of the result, and there are at most [`BLOCK_NEIGHBOURS`] of
/// them.
#[derive(Clone, Copy)]
pub(super) struct Lanes<'a, T, C> {
    pub(super) axes: &'a [Axis],
    /// The operand, the source, the result.
    pub(super) arrays: [Shared<T>; 3],
    pub(super) init: T,
    pub(super) inner: usize,
    /// The first of the neighbours, and how many there are.
    pub(super) first: usize,
    pub(super) n: usize,
    /// Whether the selected element stays before a later one.
    pub(super) stays: C,
}

impl<T: Number, C: Fn(T::Wide, T::Wide) -> bool + Copy> Lanes<'_, T, C> {
    /// Computes them.
    ///
    /// # Safety
    /// The invariant.
    pub(super) unsafe fn run(self) {
        vectorized(Known::<_, 0>(self));
    }

    /// As [`Lanes::run`], by code for as many neighbours where that is compiled.
    ///
    /// # Safety
    /// The invariant.
    pub(super) unsafe fn run_specialized(self) {
        let any = || self.run_baseline();
        match self.n {
            16 => vectorized_or(Known::<_, 16>(self), any),
            32 => vectorized_or(Known::<_, 32>(self), any),
            64 => vectorized_or(Known::<_, 64>(self), any),
            _ => vectorized_or(Known::<_, 0>(self), any),
        }
    }

    /// As [`Lanes::run`], for machines without the widest vectors. Compiled once for all specializations.
    #[inline(never)]
    fn run_baseline(self) {
        Known::<_, 0>(self).run();
    }

    /// As [`Lanes::run`], of `N` neighbours on machines with the widest vectors.
    ///
    /// # Safety
    /// The invariant; there are `N`.
    #[cfg(target_arch = "x86_64")]
    pub(super) unsafe fn run_wide<const N: usize>(self) {
        vectorized_or(Known::<_, N>(self), || unreachable!("invariant: the widest vectors were asked for"));
    }
}

/// `N` lanes; 0: any number of them.
struct Known<L, const N: usize>(L);

impl<T: Number, C: Fn(T::Wide, T::Wide) -> bool + Copy, const N: usize> Work for Known<Lanes<'_, T, C>, N> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Lanes { axes, arrays: [x, source, out], init, inner, first, n, stays } = self.0;
        let n = if N == 0 { n } else { N };
        let sizes: usize = axes.iter().map(|a| a.input).product();
        let few = positions(axes) <= FEW_ELEMENTS;
        let (apart, partitioned) =
            (few && axes.iter().all(Axis::is_apart), few && axes.iter().all(Axis::is_cut));
        // SAFETY: the invariant of lanes, here and below.
        unsafe {
            let offset_of = |i: usize| i * inner + first;
            if !partitioned {
                (0..sizes).for_each(|i| out.slice_mut(offset_of(i), n).fill(init));
            }
            let mut at: SmallVec<[usize; 6]> = SmallVec::from_elem(0, axes.len());
            let (mut best, mut index) = ([T::Wide::default(); BLOCK_NEIGHBOURS], [0u32; BLOCK_NEIGHBOURS]);
            let (mut memory, mut sums) = ([T::Wide::default(); BLOCK_NEIGHBOURS], [init; BLOCK_NEIGHBOURS]);
            let mut elements: SmallVec<[usize; 64]> = SmallVec::new();
            for window in 0..outputs(axes) {
                elements.clear();
                visit(axes, &at, 0, &mut |i| elements.push(i));
                if let Some((&i, later)) = elements.split_first() {
                    best[..n].copy_from_slice(T::widen(x.slice(offset_of(i), n), &mut memory));
                    index[..n].fill(i as u32);
                    for &i in later {
                        let row = T::widen(x.slice(offset_of(i), n), &mut memory);
                        select(&mut best[..n], &mut index[..n], row, i as u32, stays);
                    }
                    let source = source.slice(offset_of(window), n);
                    if apart {
                        sums[..n].fill(init);
                        T::add(source, &mut sums[..n]);
                        for &i in &elements {
                            put(out.slice_mut(offset_of(i), n), &sums[..n], init, &index[..n], i as u32);
                        }
                    } else if few && T::IN_ROWS {
                        for &i in &elements {
                            let to = out.slice_mut(offset_of(i), n);
                            sums[..n].copy_from_slice(to);
                            T::add(source, &mut sums[..n]);
                            keep(to, &sums[..n], &index[..n], i as u32);
                        }
                    } else {
                        let to = |l: usize| out.pointer().add(index[l] as usize * inner + first + l);
                        (0..n).for_each(|l| sums[l] = *to(l));
                        T::add(source, &mut sums[..n]);
                        (0..n).for_each(|l| *to(l) = sums[l]);
                    }
                }
                advance(axes, &mut at);
            }
        }
    }
}

/// Selects between the elements selected so far, with their indices, and those at a later index.
#[inline(always)]
fn select<W: Copy>(
    best: &mut [W],
    indices: &mut [u32],
    row: &[W],
    index: u32,
    stays: impl Fn(W, W) -> bool + Copy,
) {
    for ((best, at), &x) in best.iter_mut().zip(indices).zip(row) {
        let keep = stays(*best, x);
        *best = if keep { *best } else { x };
        *at = if keep { *at } else { index };
    }
}

/// Stores sums in the lanes that selected this index, and the initial value in others.
#[inline(always)]
fn put<T: Copy>(to: &mut [T], sums: &[T], init: T, indices: &[u32], index: u32) {
    for ((to, &sum), &at) in to.iter_mut().zip(sums).zip(indices) {
        *to = if at == index { sum } else { init };
    }
}

/// Stores sums in the lanes that selected this index.
#[inline(always)]
fn keep<T: Copy>(to: &mut [T], sums: &[T], indices: &[u32], index: u32) {
    for ((to, &sum), &at) in to.iter_mut().zip(sums).zip(indices) {
        if at == index {
            *to = sum;
        }
    }
}

/// Calls `each` with the index of every element of a window that exists, row-major.
#[inline(always)]
fn visit(axes: &[Axis], output: &[usize], base: usize, each: &mut impl FnMut(usize)) {
    match (axes, output) {
        ([a], [o]) if a.is_plain() => a.range(*o).for_each(|p| each(base * a.input + p)),
        ([a, b], [o, q]) if a.is_plain() && b.is_plain() => {
            for p in a.range(*o) {
                b.range(*q).for_each(|r| each((base * a.input + p) * b.input + r));
            }
        }
        (axes, output) => (0..positions(axes)).filter_map(|w| locate(axes, output, w)).for_each(each),
    }
}
