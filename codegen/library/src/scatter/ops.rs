//! What updates do to the elements of one operand, one function a type and operation.

use std::marker::PhantomData;

use hlo::half::{bf16, f16};
use hlo::num_complex::Complex;
use hlo::{ElementType, Opcode, TypeClass};
use hlo_library_base::floats::{nearest_bf16, nearest_bf16_of_number};
use hlo_library_base::memory::prefetch;
use hlo_library_base::simd::{Work, vectorized};

use crate::reduce_window::fold::{
    Add, And, Function, Maximum, MaximumSigned, Minimum, MinimumSigned, Multiply, Or, Xor,
};

/// Rows of updates and their targets: `to` are offsets in the operand, `from` numbers of rows of the updates.
#[derive(Clone, Copy)]
pub(super) struct List<'a> {
    pub(super) to: &'a [u32],
    pub(super) from: &'a [u32],
    /// Elements from one row of updates to the next.
    pub(super) stride: usize,
    /// Elements of a row.
    pub(super) run: usize,
    /// Whether the operand stays in a near cache.
    pub(super) near: bool,
}

/// Updates rows, in order: operand, updates.
pub(super) type Rows = unsafe fn(*mut u8, *const u8, List<'_>);

/// The prefetch distance in updates.
const PREFETCH_UPDATES: usize = 32;

/// Updates of a sample, by which the others are expected to change nothing or something.
const SAMPLE_UPDATES: usize = 16;

struct Replace;

impl<T> Function<T> for Replace {
    #[inline(always)]
    fn of(_: T, b: T) -> T {
        b
    }
}

macro_rules! complexes {
    ($($t:ty),*) => {$(
        impl Function<Complex<$t>> for Add {
            #[inline(always)]
            fn of(a: Complex<$t>, b: Complex<$t>) -> Complex<$t> {
                Complex::new(a.re + b.re, a.im + b.im)
            }
        }
    )*};
}
complexes!(f32, f64);

/// A function whose NaNs are all the canonical one: instructions propagate any payload; elements without
/// updates keep theirs.
struct Canonical<F>(PhantomData<F>);

/// A type with a canonical NaN.
trait Number: Copy {
    /// The number, any NaN replaced by the canonical one.
    fn canonical(self) -> Self;
}

/// Decided on integers: LLVM may replace one NaN by another.
macro_rules! numbers {
    ($($t:ty: $infinity:literal, $nan:literal;)*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn canonical(self) -> Self {
                let bits = self.to_bits();
                <$t>::from_bits(if bits << 1 > $infinity << 1 { $nan } else { bits })
            }
        }
    )*};
}
numbers! {
    f32: 0x7f80_0000, 0x7fc0_0000;
    f64: 0x7ff0_0000_0000_0000, 0x7ff8_0000_0000_0000;
    bf16: 0x7f80, 0x7fc0;
    f16: 0x7c00, 0x7e00;
}

impl<T: Number> Number for Complex<T> {
    #[inline(always)]
    fn canonical(self) -> Self {
        Complex::new(self.re.canonical(), self.im.canonical())
    }
}

impl<T: Number, F: Function<T>> Function<T> for Canonical<F> {
    const LONG: bool = F::LONG;

    #[inline(always)]
    fn of(a: T, b: T) -> T {
        F::of(a, b).canonical()
    }

    #[inline(always)]
    fn keeps(a: T, b: T) -> bool {
        F::keeps(a, b)
    }

    #[inline(always)]
    fn usual(a: T, b: T) -> Option<T> {
        F::usual(a, b)
    }
}

/// A float of 16 bits. f32 has more than twice its digits, so that rounding to f32 first is innocuous double
/// rounding. Without branches, so that it is vectorized.
trait Half: Copy {
    fn widen(self) -> f32;
    /// The nearest one.
    fn narrow(x: f32) -> Self;

    /// `f` of two of them with the shortest latency, for updates that depend on the one before: the
    /// processor's conversions have a third of the latency of the others. `None`: the result is a NaN, or the
    /// processor has no conversions.
    #[inline(always)]
    fn quick(_: Self, _: Self, _: impl Fn(f32, f32) -> f32) -> Option<Self> {
        None
    }
}

impl Half for bf16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    #[inline(always)]
    fn narrow(x: f32) -> bf16 {
        nearest_bf16(x)
    }

    #[inline(always)]
    fn quick(a: bf16, b: bf16, f: impl Fn(f32, f32) -> f32) -> Option<bf16> {
        let result = f(a.widen(), b.widen());
        (!result.is_nan()).then_some(nearest_bf16_of_number(result))
    }
}

impl Half for f16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        let bits = u32::from(self.to_bits());
        let (sign, rest) = ((bits & 0x8000) << 16, (bits & 0x7fff) << 13);
        // The bias of the exponent is 112 less than that of f32: times 2^112, exact of what is subnormal,
        // too. What is not finite has the largest exponent.
        let finite = (f32::from_bits(rest) * f32::from_bits((127 + 112) << 23)).to_bits();
        f32::from_bits(sign | if rest >= 0x1f << 23 { rest | 0xff << 23 } else { finite })
    }

    #[inline(always)]
    fn narrow(x: f32) -> f16 {
        let bits = x.to_bits();
        let (sign, rest) = (bits >> 16 & 0x8000, bits & 0x7fff_ffff);
        // Below 2^-14 a unit is that of numbers from 0.5 on in f32.
        let subnormal = (f32::from_bits(rest) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
        let normal = rest.wrapping_add(0xfff + (rest >> 13 & 1)).wrapping_sub(112 << 23) >> 13;
        let near = if rest < 113 << 23 { subnormal } else { normal };
        let far = if rest > 0xff << 23 { 0x7e00 } else { 0x7c00 };
        f16::from_bits((sign | if rest >= 143 << 23 { far } else { near }) as u16)
    }

    #[cfg(all(target_arch = "x86_64", target_feature = "f16c"))]
    #[inline(always)]
    fn quick(a: f16, b: f16, f: impl Fn(f32, f32) -> f32) -> Option<f16> {
        use std::arch::x86_64::{
            _MM_FROUND_TO_NEAREST_INT, _mm_cvtph_ps, _mm_cvtps_ph, _mm_cvtsi32_si128, _mm_cvtsi128_si32,
            _mm_cvtss_f32, _mm_set_ss,
        };
        // SAFETY: this is compiled only for processors that have the instructions.
        unsafe {
            let wide = |x: f16| _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(i32::from(x.to_bits()))));
            let result = f(wide(a), wide(b));
            let narrow = _mm_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm_set_ss(result));
            (!result.is_nan()).then_some(f16::from_bits(_mm_cvtsi128_si32(narrow) as u16))
        }
    }
}

macro_rules! halves {
    ($($f:ident),*) => {$(
        impl<H: Half> Function<H> for $f {
            const LONG: bool = true;

            #[inline(always)]
            fn of(a: H, b: H) -> H {
                H::narrow(<$f as Function<f32>>::of(a.widen(), b.widen()))
            }

            #[inline(always)]
            fn usual(a: H, b: H) -> Option<H> {
                H::quick(a, b, <$f as Function<f32>>::of)
            }
        }
    )*};
}
halves!(Add, Maximum, Minimum);

/// Updates of rows that are longer than a vector of the baseline, in a function of their own, since LLVM
/// would not inline a closure of that size.
struct Runs<'a, T, F> {
    to: *mut T,
    from: *const T,
    list: List<'a>,
    by: PhantomData<F>,
}

impl<T: Copy, F: Function<T>> Work for Runs<'_, T, F> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Runs { to, from, list, .. } = self;
        // SAFETY: as who makes them says.
        unsafe {
            // Blocks of 32 bytes where rows are soon updated again: loads from wider stores that are still in
            // the store buffer stall on some processors.
            match size_of::<T>() {
                1 => runs::<T, F, 32>(to, from, list),
                2 => runs::<T, F, 16>(to, from, list),
                4 if list.near => runs::<T, F, 8>(to, from, list),
                4 => runs::<T, F, 16>(to, from, list),
                8 if list.near => runs::<T, F, 4>(to, from, list),
                8 => runs::<T, F, 8>(to, from, list),
                _ => runs::<T, F, 2>(to, from, list),
            }
        }
    }
}

/// # Safety
/// All rows are in the arrays, which are of `T`; the operand's are not aliased.
unsafe fn rows<T: Copy, F: Function<T>>(to: *mut u8, from: *const u8, list: List<'_>) {
    let (to, from) = (to.cast::<T>(), from.cast::<T>());
    // SAFETY: the caller's.
    unsafe {
        match list.run {
            1 if idle::<T, F>(to, from, list) => elements::<T, F, true>(to, from, list),
            1 => elements::<T, F, false>(to, from, list),
            2 => few::<T, F, 2>(to, from, list),
            3 => few::<T, F, 3>(to, from, list),
            4 => few::<T, F, 4>(to, from, list),
            8 if size_of::<T>() <= 4 => few::<T, F, 8>(to, from, list),
            16 if size_of::<T>() <= 2 => few::<T, F, 16>(to, from, list),
            _ => vectorized(Runs { to, from, list, by: PhantomData::<F> }),
        }
    }
}

/// Whether most updates are likely to change nothing: none of a sample does.
#[inline(always)]
unsafe fn idle<T: Copy, F: Function<T>>(to: *mut T, from: *const T, list: List<'_>) -> bool {
    let n = list.to.len().min(list.from.len());
    let (offsets, updates) = (list.to.as_ptr(), list.from.as_ptr());
    n >= SAMPLE_UPDATES
        // Branch-free over the whole sample, since a branch would be unpredictable.
        && (0..SAMPLE_UPDATES).map(|i| i * (n / SAMPLE_UPDATES)).fold(true, |all, i| {
            // SAFETY: the caller's: both lists have `n` entries.
            all & unsafe {
                F::keeps(*to.add(*offsets.add(i) as usize), *from.add(*updates.add(i) as usize * list.stride))
            }
        })
}

/// `IDLE`: most updates are expected to change nothing. Then whether one does is a branch, which is
/// predicted, so that updates do not depend on the one before.
#[inline(always)]
unsafe fn elements<T: Copy, F: Function<T>, const IDLE: bool>(to: *mut T, from: *const T, list: List<'_>) {
    let (stride, n) = (list.stride, list.to.len().min(list.from.len()));
    let (offsets, updates) = (list.to.as_ptr(), list.from.as_ptr());
    let mut i = 0;
    // SAFETY: the caller's: both lists have `n` entries.
    unsafe {
        let one = |i: usize| {
            let (at, update) =
                (to.add(*offsets.add(i) as usize), *from.add(*updates.add(i) as usize * stride));
            let old = *at;
            if !(IDLE && F::keeps(old, update)) {
                *at = F::usual(old, update).unwrap_or_else(|| F::of(old, update));
            }
        };
        // Updates take so many instructions that out-of-order execution does not reach later loads.
        while i + 4 <= n {
            if F::LONG && !list.near {
                for ahead in i + PREFETCH_UPDATES..i + PREFETCH_UPDATES + 4 {
                    prefetch(to.add(*offsets.add(ahead.min(n - 1)) as usize).cast());
                }
            }
            one(i);
            one(i + 1);
            one(i + 2);
            one(i + 3);
            i += 4;
        }
        while i < n {
            one(i);
            i += 1;
        }
    }
}

/// Rows of `N` elements. These are read and written one by one, which LLVM vectorizes: it loads whole arrays
/// of few bytes as integers and extracts from them, and does not vectorize loops over slices.
#[inline(always)]
unsafe fn few<T: Copy, F: Function<T>, const N: usize>(to: *mut T, from: *const T, list: List<'_>) {
    let (stride, n) = (list.stride, list.to.len().min(list.from.len()));
    let (offsets, updates) = (list.to.as_ptr(), list.from.as_ptr());
    // SAFETY: the caller's: both lists have `n` entries, rows `N` elements.
    unsafe {
        for i in 0..n {
            if !list.near {
                prefetch(to.add(*offsets.add((i + PREFETCH_UPDATES).min(n - 1)) as usize).cast());
            }
            let (row, update) =
                (to.add(*offsets.add(i) as usize), from.add(*updates.add(i) as usize * stride));
            let (mut old, mut more) = ([*row; N], [*update; N]);
            for k in 0..N {
                (old[k], more[k]) = (*row.add(k), *update.add(k));
            }
            for k in 0..N {
                *row.add(k) = F::of(old[k], more[k]);
            }
        }
    }
}

/// Rows of several elements: a row of `PIECE` to twice as many is one piece and a remainder, which are loaded
/// before any is stored.
#[inline(always)]
unsafe fn runs<T: Copy, F: Function<T>, const PIECE: usize>(to: *mut T, from: *const T, list: List<'_>) {
    let (stride, run, n) = (list.stride, list.run, list.to.len().min(list.from.len()));
    let (offsets, updates) = (list.to.as_ptr(), list.from.as_ptr());
    // SAFETY: the caller's: both lists have `n` entries.
    unsafe {
        for i in 0..n {
            let ahead = (i + PREFETCH_UPDATES).min(n - 1);
            prefetch(to.add(*offsets.add(ahead) as usize).cast());
            prefetch(from.add(*updates.add(ahead) as usize * stride).cast());
            let (row, update) =
                (to.add(*offsets.add(i) as usize), from.add(*updates.add(i) as usize * stride));
            let j = run - run % PIECE;
            if j == PIECE {
                let piece = row.cast::<[T; PIECE]>();
                let (mut sum, more) = (*piece, *update.cast::<[T; PIECE]>());
                for k in 0..PIECE {
                    sum[k] = F::of(sum[k], more[k]);
                }
                *piece = sum;
            } else {
                combine::<T, F>(row, update, j);
            }
            match run - j {
                0 => {}
                1 => *row.add(j) = F::of(*row.add(j), *update.add(j)),
                2..4 => ends::<T, F, 2>(row, update, j, run),
                4..8 => ends::<T, F, 4>(row, update, j, run),
                8..16 => ends::<T, F, 8>(row, update, j, run),
                _ => ends::<T, F, 16>(row, update, j, run),
            }
        }
    }
}

/// The first `n` elements. As slices: loops over pieces LLVM vectorizes by gathers and scatters of elements
/// that are a piece apart.
#[inline(always)]
unsafe fn combine<T: Copy, F: Function<T>>(row: *mut T, update: *const T, n: usize) {
    // SAFETY: the caller's: operand and updates are different arrays.
    let (row, update) =
        unsafe { (std::slice::from_raw_parts_mut(row, n), std::slice::from_raw_parts(update, n)) };
    for (sum, &more) in row.iter_mut().zip(update) {
        *sum = F::of(*sum, more);
    }
}

/// The elements from `first` to `end`, at least `N` and less than twice as many: the first and the last `N`.
/// Those in both get the same bits twice.
#[inline(always)]
unsafe fn ends<T: Copy, F: Function<T>, const N: usize>(
    row: *mut T,
    update: *const T,
    first: usize,
    end: usize,
) {
    // SAFETY: the caller's: the elements are valid. All are read before any is written, one by one as in
    // [`few`].
    unsafe {
        let last = end - N;
        let (mut sums, mut others) = ([*row; N], [*row; N]);
        for (k, sum) in sums.iter_mut().enumerate() {
            *sum = F::of(*row.add(first + k), *update.add(first + k));
        }
        for (k, sum) in others.iter_mut().enumerate() {
            *sum = F::of(*row.add(last + k), *update.add(last + k));
        }
        for (k, sum) in sums.into_iter().enumerate() {
            *row.add(first + k) = sum;
        }
        for (k, sum) in others.into_iter().enumerate() {
            *row.add(last + k) = sum;
        }
    }
}

/// The function that replaces elements of `bytes` bytes by updates.
pub(super) fn replace(bytes: usize) -> Rows {
    match bytes {
        1 => rows::<u8, Replace>,
        2 => rows::<u16, Replace>,
        4 => rows::<u32, Replace>,
        8 => rows::<u64, Replace>,
        _ => rows::<[u64; 2], Replace>,
    }
}

/// The function that combines elements with updates by an operation; `None`: this type has no such operation
/// here.
pub(super) fn of(ty: ElementType, op: Opcode) -> Option<Rows> {
    let signed = ty.class() == TypeClass::Signed;
    // Arithmetic of predicates is on 0 and 1 with a result of "not zero".
    let op = match (ty, op) {
        (ElementType::Pred, Opcode::Add | Opcode::Maximum) => Opcode::Or,
        (ElementType::Pred, Opcode::Multiply | Opcode::Minimum) => Opcode::And,
        (_, op) => op,
    };
    macro_rules! integer {
        ($t:ty) => {
            // Not a dispatch over all opcodes: anything but a reducer has no answer here.
            match op {
                Opcode::Add => rows::<$t, Add>,
                Opcode::Multiply => rows::<$t, Multiply>,
                Opcode::Maximum if signed => rows::<$t, MaximumSigned>,
                Opcode::Maximum => rows::<$t, Maximum>,
                Opcode::Minimum if signed => rows::<$t, MinimumSigned>,
                Opcode::Minimum => rows::<$t, Minimum>,
                Opcode::And => rows::<$t, And>,
                Opcode::Or => rows::<$t, Or>,
                Opcode::Xor => rows::<$t, Xor>,
                _other => return None,
            }
        };
    }
    macro_rules! float {
        ($t:ty) => {
            match op {
                Opcode::Add => rows::<$t, Canonical<Add>>,
                Opcode::Maximum => rows::<$t, Canonical<Maximum>>,
                Opcode::Minimum => rows::<$t, Canonical<Minimum>>,
                _other => return None,
            }
        };
    }
    Some(match ty.class() {
        // Elements of fewer bits than their bytes would have to be wrapped.
        TypeClass::Signed | TypeClass::Unsigned if ty.bits() < 8 => return None,
        TypeClass::Pred | TypeClass::Signed | TypeClass::Unsigned => match ty.storage_bytes() {
            1 => integer!(u8),
            2 => integer!(u16),
            4 => integer!(u32),
            _ => integer!(u64),
        },
        TypeClass::Float => match ty {
            ElementType::F32 if op == Opcode::Multiply => rows::<f32, Canonical<Multiply>>,
            ElementType::F64 if op == Opcode::Multiply => rows::<f64, Canonical<Multiply>>,
            ElementType::F32 => float!(f32),
            ElementType::F64 => float!(f64),
            ElementType::BF16 => float!(bf16),
            ElementType::F16 => float!(f16),
            _narrower => return None,
        },
        TypeClass::Complex if op != Opcode::Add => return None,
        TypeClass::Complex if ty == ElementType::C64 => rows::<Complex<f32>, Canonical<Add>>,
        TypeClass::Complex => rows::<Complex<f64>, Canonical<Add>>,
    })
}
