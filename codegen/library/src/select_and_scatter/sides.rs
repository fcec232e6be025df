//! Contiguous arrays of floats of at most 32 bits with few neighbours: sixteen of them are interleaved as
//! `f32`.

use std::marker::PhantomData;

use hlo::half::{bf16, f16};
use hlo_library_base::floats::Half;
use hlo_library_base::isa::Features;
use hlo_library_base::memory::Shared;
use hlo_library_base::workspace::with_workspace;
use hlo_library_base::{Call, Sent, transpose};
use smallvec::SmallVec;

use super::sums::{BLOCK_NEIGHBOURS, Lanes, Number, Planes, Stays, with_comparison};

/// Arrays that are interleaved, and the maximum of their elements.
const INTERLEAVED_ARRAYS: usize = 16;
const MAX_ELEMENTS: usize = 1 << 16;

/// The maximum of neighbours that are interleaved as arrays of their own.
const MAX_NEIGHBOURS: usize = 8;

/// An element type whose arrays can be interleaved.
pub(super) trait Side: Number {
    /// The element in 32 bits.
    type Held: Number;

    /// Whether it has 32 bits as it is.
    const AS_IS: bool;

    fn hold(self) -> Self::Held;

    /// Widens elements that are `stride` apart.
    ///
    /// # Safety
    /// There is an element for each one of the copy.
    unsafe fn copy(from: *const Self, stride: usize, copy: &mut [f32]);

    /// Stores results that are `stride` apart.
    ///
    /// # Safety
    /// there is space for each one of the copy.
    unsafe fn put(copy: &[f32], stride: usize, to: *mut Self);
}

impl Side for f32 {
    type Held = f32;
    const AS_IS: bool = true;

    fn hold(self) -> f32 {
        self
    }

    unsafe fn copy(from: *const f32, stride: usize, copy: &mut [f32]) {
        // SAFETY: the caller's.
        copy.iter_mut().enumerate().for_each(|(i, to)| *to = unsafe { *from.add(i * stride) });
    }

    unsafe fn put(copy: &[f32], stride: usize, to: *mut f32) {
        // SAFETY: the caller's.
        copy.iter().enumerate().for_each(|(i, &x)| unsafe { *to.add(i * stride) = x });
    }
}

/// A float of 16 bits as `f32`.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub(super) struct Held<T>(f32, PhantomData<T>);

impl<T: Half> Number for Held<T> {
    type Wide = f32;
    const IN_ROWS: bool = true;

    #[inline(always)]
    fn widen<'a>(row: &'a [Held<T>], memory: &'a mut [f32; BLOCK_NEIGHBOURS]) -> &'a [f32] {
        memory.iter_mut().zip(row).for_each(|(to, x)| *to = x.0);
        &memory[..row.len()]
    }

    #[inline(always)]
    fn add(source: &[Held<T>], to: &mut [Held<T>]) {
        let (mut sums, mut narrow) = ([0f32; BLOCK_NEIGHBOURS], [T::default(); BLOCK_NEIGHBOURS]);
        let n = to.len();
        sums.iter_mut().zip(source).zip(&*to).for_each(|((sum, x), y)| *sum = x.0 + y.0);
        T::from_wide(&sums[..n], &mut narrow[..n]);
        T::to_wide(&narrow[..n], &mut sums[..n]);
        to.iter_mut().zip(sums).for_each(|(to, sum)| to.0 = sum);
    }
}

macro_rules! halves {
    ($($t:ty),*) => {
        $(impl Side for $t {
            type Held = Held<$t>;
            const AS_IS: bool = false;

            fn hold(self) -> Held<$t> {
                let mut held = Held::default();
                <$t as Half>::to_wide(&[self], std::slice::from_mut(&mut held.0));
                held
            }

            unsafe fn copy(from: *const $t, stride: usize, copy: &mut [f32]) {
                let mut some = [<$t>::default(); BLOCK_NEIGHBOURS];
                for (at, copy) in (0..).step_by(BLOCK_NEIGHBOURS).zip(copy.chunks_mut(BLOCK_NEIGHBOURS)) {
                    let some = &mut some[..copy.len()];
                    // SAFETY: the caller's.
                    some.iter_mut().zip(at..).for_each(|(x, i)| *x = unsafe { *from.add(i * stride) });
                    <$t as Half>::to_wide(some, copy);
                }
            }

            unsafe fn put(copy: &[f32], stride: usize, to: *mut $t) {
                let mut some = [<$t>::default(); BLOCK_NEIGHBOURS];
                for (at, copy) in (0..).step_by(BLOCK_NEIGHBOURS).zip(copy.chunks(BLOCK_NEIGHBOURS)) {
                    let some = &mut some[..copy.len()];
                    <$t as Half>::from_wide(copy, some);
                    // SAFETY: the caller's.
                    some.iter().zip(at..).for_each(|(&x, i): (&$t, usize)| unsafe { *to.add(i * stride) = x });
                }
            }
        })*
    };
}
halves!(bf16, f16);

impl Planes<'_> {
    /// Whether they can be interleaved: each of a few neighbours is an array of its own.
    pub(super) fn fit_sides(&self) -> bool {
        self.inner <= MAX_NEIGHBOURS
            && self.outer * self.inner > 1
            && self.elements.max(self.windows) <= MAX_ELEMENTS * self.inner
            && Features::here().avx512
    }

    /// Interleaves them and computes their windows.
    ///
    /// # Safety
    /// As [`Planes::run`].
    pub(super) unsafe fn run_sides<T: Side>(&self, call: &Call<'_>) {
        let &Planes { axes, outer, inner, stays, .. } = self;
        let (elements, windows) = (self.elements / inner, self.windows / inner);
        // SAFETY: the initial value is one element.
        let init = unsafe { *call.arguments[2].cast::<T>() }.hold();
        let as_is = T::AS_IS && inner == 1;
        let copied = if as_is { 0 } else { elements.max(windows) };
        let pitch = INTERLEAVED_ARRAYS * size_of::<f32>();
        let sent = Sent(*call);
        call.pool.run((outer * inner).div_ceil(INTERLEAVED_ARRAYS), &|group| {
            let call = sent.get();
            let sides = group * INTERLEAVED_ARRAYS..(outer * inner).min((group + 1) * INTERLEAVED_ARRAYS);
            with_workspace((2 * elements + windows + copied) * pitch, |memory| {
                let x = Shared::<T::Held>::new(memory);
                // SAFETY: arrays are in the arguments, those of the result are this task's, and there is
                // memory for them and for a copy of each.
                unsafe {
                    let out = x.offset(elements * INTERLEAVED_ARRAYS);
                    let source = out.offset(elements * INTERLEAVED_ARRAYS);
                    let copies = Shared::<f32>::new(source.offset(windows * INTERLEAVED_ARRAYS).pointer().cast());
                    let copies = |i: usize| copies.offset((i - sides.start) * copied);
                    let of = |k: usize, n: usize, i: usize| {
                        Shared::<T>::new(call.arguments[k])
                            .offset(i / inner * n * inner + i % inner)
                            .pointer()
                    };
                    for (k, n, to) in [(0, elements, x), (1, windows, source)] {
                        let held = |i: usize| {
                            if as_is {
                                return of(k, n, i).cast_const().cast::<u8>();
                            }
                            T::copy(of(k, n, i), inner, copies(i).slice_mut(0, n));
                            copies(i).pointer().cast_const().cast()
                        };
                        let mut parts: SmallVec<[*const u8; INTERLEAVED_ARRAYS]> = sides.clone().map(held).collect();
                        // Where there are fewer arrays, the other lanes repeat one.
                        parts.resize(INTERLEAVED_ARRAYS, parts[0]);
                        transpose::columns(&parts, n, to.pointer().cast(), pitch);
                    }
                    let arrays = [x, source, out];
                    let (row, n) = (INTERLEAVED_ARRAYS, INTERLEAVED_ARRAYS);
                    with_comparison!(stays,
                        stays => Lanes { axes, arrays, init, inner: row, first: 0, n, stays }.run_wide::<INTERLEAVED_ARRAYS>(),
                        else Lanes { axes, arrays, init, inner: row, first: 0, n, stays }.run_wide::<INTERLEAVED_ARRAYS>());
                    let buffer = |i| if as_is { of(3, elements, i).cast() } else { copies(i).pointer().cast() };
                    let parts: SmallVec<[*mut u8; INTERLEAVED_ARRAYS]> = sides.clone().map(buffer).collect();
                    transpose::apart(out.pointer().cast_const().cast(), pitch, elements, &parts);
                    if !as_is {
                        sides.clone().for_each(|i| {
                            T::put(copies(i).slice(0, elements), inner, of(3, elements, i));
                        });
                    }
                }
            });
        });
    }
}
