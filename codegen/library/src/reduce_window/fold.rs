//! Reducing operations as loops over rows, one function a type and operation: algorithms are written once,
//! over bytes.

use std::marker::PhantomData;

use hlo::num_complex::Complex;
use hlo::{ElementType, Opcode, TypeClass};
use hlo_arithmetic::scalar::{Number, convert};

use super::line::{self, Line};
#[cfg(target_arch = "x86_64")]
use hlo_library_base::isa::Features;

/// What elements are computed in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carrier {
    /// `pred` and integers, by their bytes; floats of 16 bits that are only compared.
    Integer {
        bytes: usize,
        signed: bool,
    },
    /// f32, and all narrower floats.
    F32,
    F64,
    C64,
    C128,
}

/// `accumulator[i] = f(... f(f(first[i], sources[0][i]), sources[1][i]) ...)` for `i < n`. `first` may be the
/// accumulator.
type Rows = unsafe fn(accumulator: *mut u8, n: usize, first: *const u8, sources: &[*const u8]);

/// `to[i] = carry = f(carry, from[i])` for `i < n`, upwards or downwards.
pub(super) type Scan = unsafe fn(from: *const u8, to: *mut u8, n: usize, carry: *mut u8, down: bool);

/// Loops over rows of elements. None has an order to keep but that of the sources and the positions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fold {
    /// Bytes of an element.
    pub(crate) bytes: usize,
    /// What [`Fold::rows`] and [`Fold::fresh`] call.
    loops: Rows,
    /// `accumulator[i * steps.0] = f(accumulator[i * steps.0], source[i * steps.1])` for `i < n`.
    pub(crate) strided: unsafe fn(accumulator: *mut u8, n: usize, source: *const u8, steps: (usize, usize)),
    /// A line of windows, on machines with vectors for it.
    pub(crate) windows: Option<unsafe fn(&Line<'_>)>,
    pub(crate) scan: Scan,
    /// As `scan`, of interleaved lines: `n` rows with one element of each line, and a carry for each line.
    pub(crate) scan_rows:
        unsafe fn(from: *const u8, to: *mut u8, rows: (usize, usize), carries: *mut u8, down: bool),
    /// As `scan`, of contiguous lines, each from the same first carry. `lines`: their number, and the
    /// elements of each.
    pub(crate) scan_each:
        unsafe fn(from: *const u8, to: *mut u8, lines: (usize, usize), first: *const u8, down: bool),
    /// The bits of an element that changes nothing, if the order of elements does not matter either.
    pub(crate) identity: Option<u128>,
}

impl Fold {
    /// `accumulator[i] = f(... f(f(accumulator[i], source 0[i]), source 1[i]) ...)` for `i < n`.
    ///
    /// # Safety
    /// All rows have `n` elements, and no other thread accesses the accumulator. A source may overlap the
    /// accumulator if it starts behind it.
    pub(crate) unsafe fn rows(&self, accumulator: *mut u8, n: usize, sources: &[*const u8]) {
        // SAFETY: as the caller says.
        unsafe { (self.loops)(accumulator, n, accumulator.cast_const(), sources) };
    }

    /// As [`Fold::rows`], but the accumulator is only written: the fold begins with `sources[0]`.
    ///
    /// # Safety
    /// As of [`Fold::rows`]; the accumulator may hold anything.
    pub(crate) unsafe fn fresh(&self, accumulator: *mut u8, n: usize, sources: &[*const u8]) {
        if let Some((&first, rest)) = sources.split_first() {
            // SAFETY: as the caller says.
            unsafe { (self.loops)(accumulator, n, first, rest) };
        }
    }

    /// `to[i] = carry = f(carry, from[i])`, upwards or downwards, of interleaved lines: rows with one element
    /// of each line.
    ///
    /// # Safety
    /// The rows are valid for their elements, and there is a carry for each line.
    pub(crate) unsafe fn scan_lines(
        &self,
        from: *const u8,
        to: *mut u8,
        rows: (usize, usize),
        carries: *mut u8,
        down: bool,
    ) {
        // SAFETY: as the caller says.
        unsafe {
            match rows {
                (n, 1) => (self.scan)(from, to, n, carries, down),
                several => (self.scan_rows)(from, to, several, carries, down),
            }
        }
    }
}

/// A function of two elements.
pub(crate) trait Function<T> {
    /// Whether one element takes so many instructions that out-of-order execution overlaps few elements.
    const LONG: bool = false;

    /// Whether each element is a call: then loops gain nothing from blocks of elements, vectors or constant
    /// strides, and none are compiled.
    const CALLED: bool = false;

    /// Its value.
    fn of(a: T, b: T) -> T;

    /// Whether the value is `a`; implemented where that is likely and cheap to decide.
    #[inline(always)]
    fn keeps(_a: T, _b: T) -> bool {
        false
    }

    /// The value by a faster path for the usual case, no NaN, which is a branch, so of one element at a time.
    /// It does not branch on which operand is the result, which is not predictable.
    #[inline(always)]
    fn usual(_a: T, _b: T) -> Option<T> {
        None
    }
}

pub(crate) struct Add;
pub(crate) struct Multiply;
pub(crate) struct Maximum;
pub(crate) struct Minimum;
pub(crate) struct MaximumSigned;
pub(crate) struct MinimumSigned;
pub(crate) struct And;
pub(crate) struct Or;
pub(crate) struct Xor;
/// The maximum of two floats of 16 bits, compared as integers, negative ones in reverse; bits above those of
/// an infinity are a NaN.
struct LargerHalf<const INFINITY: u16>;
/// The minimum.
struct SmallerHalf<const INFINITY: u16>;
/// A product rounded to a narrower type.
struct Rounded<T>(PhantomData<T>);

/// The maximum and the minimum of two numbers. Where the processor has an instruction for it, the intrinsic
/// is called: LLVM compiles a maximum written as a comparison to a branch, which is not predictable.
trait Extreme {
    fn larger(self, other: Self) -> Self;
    fn smaller(self, other: Self) -> Self;
}

macro_rules! extremes {
    ($($t:ty, $set:ident, $first:ident: $($name:ident $instruction:ident $otherwise:ident),*;)*) => {$(
        impl Extreme for $t {$(
            #[inline(always)]
            fn $name(self, other: $t) -> $t {
                #[cfg(target_arch = "x86_64")]
                {
                    use std::arch::x86_64::{$first, $instruction, $set};
                    // SAFETY: every such processor has SSE2.
                    unsafe { $first($instruction($set(self), $set(other))) }
                }
                #[cfg(not(target_arch = "x86_64"))]
                self.$otherwise(other)
            }
        )*}
    )*};
}
extremes! {
    f32, _mm_set_ss, _mm_cvtss_f32: larger _mm_max_ss max, smaller _mm_min_ss min;
    f64, _mm_set_sd, _mm_cvtsd_f64: larger _mm_max_sd max, smaller _mm_min_sd min;
}

macro_rules! integers {
    ($($t:ty, $s:ty);*) => {$(
        integers!(@ $t; Add |a, b| a.wrapping_add(b); Multiply |a, b| a.wrapping_mul(b); Maximum |a, b| a.max(b); Minimum |a, b| a.min(b);
            MaximumSigned |a, b| (a as $s).max(b as $s) as $t; MinimumSigned |a, b| (a as $s).min(b as $s) as $t;
            And |a, b| a & b; Or |a, b| a | b; Xor |a, b| a ^ b);
    )*};
    (@ $t:ty; $($f:ident |$a:ident, $b:ident| $value:expr);*) => {$(
        impl Function<$t> for $f {
            #[inline(always)]
            fn of($a: $t, $b: $t) -> $t {
                $value
            }
        }
    )*};
}
integers!(u8, i8; u16, i16; u32, i32; u64, i64);

macro_rules! floats {
    ($($t:ty),*) => {$(
        impl Function<$t> for Add {
            #[inline(always)]
            fn of(a: $t, b: $t) -> $t {
                a + b
            }
        }
        impl Function<$t> for Multiply {
            #[inline(always)]
            fn of(a: $t, b: $t) -> $t {
                a * b
            }
        }
        // IEEE 754-2019: a NaN wins (one in `b` makes both comparisons false), -0 < +0.
        impl Function<$t> for Maximum {
            const LONG: bool = true;

            #[inline(always)]
            fn of(a: $t, b: $t) -> $t {
                let larger = if a > b { a } else { b };
                let larger = if a == b { <$t>::from_bits(a.to_bits() & b.to_bits()) } else { larger };
                if a.is_nan() { a } else { larger }
            }

            #[inline(always)]
            fn keeps(a: $t, b: $t) -> bool {
                a > b
            }

            #[inline(always)]
            fn usual(a: $t, b: $t) -> Option<$t> {
                ((a < b) | (a > b)).then_some(a.larger(b))
            }
        }
        impl Function<$t> for Minimum {
            const LONG: bool = true;

            #[inline(always)]
            fn of(a: $t, b: $t) -> $t {
                let smaller = if a < b { a } else { b };
                let smaller = if a == b { <$t>::from_bits(a.to_bits() | b.to_bits()) } else { smaller };
                if a.is_nan() { a } else { smaller }
            }

            #[inline(always)]
            fn keeps(a: $t, b: $t) -> bool {
                a < b
            }

            #[inline(always)]
            fn usual(a: $t, b: $t) -> Option<$t> {
                ((a < b) | (a > b)).then_some(a.smaller(b))
            }
        }
    )*};
}
floats!(f32, f64);

/// An integer whose order is that of numbers, -0 before +0.
#[inline(always)]
fn half_order(x: u16) -> i16 {
    let x = x.cast_signed();
    x ^ ((x >> 15) & i16::MAX)
}

/// `number`, or a NaN if either operand is one.
#[inline(always)]
fn half_or_nan<const INFINITY: u16>(a: u16, b: u16, number: u16) -> u16 {
    let is_nan = |x: u16| x & 0x7fff > INFINITY;
    let quiet = INFINITY | (INFINITY & INFINITY.wrapping_neg()) >> 1;
    if is_nan(a) | is_nan(b) { quiet } else { number }
}

impl<const INFINITY: u16> Function<u16> for LargerHalf<INFINITY> {
    #[inline(always)]
    fn of(a: u16, b: u16) -> u16 {
        half_or_nan::<INFINITY>(a, b, if half_order(a) > half_order(b) { a } else { b })
    }
}

impl<const INFINITY: u16> Function<u16> for SmallerHalf<INFINITY> {
    #[inline(always)]
    fn of(a: u16, b: u16) -> u16 {
        half_or_nan::<INFINITY>(a, b, if half_order(a) < half_order(b) { a } else { b })
    }
}

macro_rules! complexes {
    ($($t:ty),*) => {$(
        impl Function<Complex<$t>> for Multiply {
            fn of(a: Complex<$t>, b: Complex<$t>) -> Complex<$t> {
                Number::multiply(a, b)
            }
        }
    )*};
}
complexes!(f32, f64);

impl<T: hlo::Element + hlo_arithmetic::scalar::Scalar> Function<f32> for Rounded<T> {
    const CALLED: bool = true;

    // Never inlined: the conversions are long compared with a call, and there are five loops for each of
    // thirteen types.
    #[inline(never)]
    fn of(a: f32, b: f32) -> f32 {
        // One rounding: the product is exact in f32, which has at least twice the digits of any such type,
        // and what overflows there overflows in T as well.
        convert::<T, f32>(convert::<f64, T>(f64::from(a) * f64::from(b)))
    }
}

/// `N` elements from `at` on, folded.
///
/// # Safety
/// All rows have the elements.
#[inline(always)]
unsafe fn block<T: Copy, F: Function<T>, const N: usize>(
    at: usize,
    first: *const u8,
    sources: &[*const u8],
) -> [T; N] {
    // SAFETY: as the caller says.
    unsafe {
        let elements = |row: *const u8| row.cast::<T>().add(at).cast::<[T; N]>();
        let mut block = *elements(first);
        for &source in sources {
            let source = &*elements(source);
            for i in 0..N {
                block[i] = F::of(block[i], source[i]);
            }
        }
        block
    }
}

/// Folds rows by blocks of one register or several. Where the elements are no multiple of the smallest block,
/// the last block overlaps the one before it: it is folded first and stored last, so that the elements in
/// both get the same bits twice.
///
/// # Safety
/// All rows have `n` elements. That of the accumulator is not aliased; a source may be a later part of it.
#[inline(always)]
unsafe fn rows<T: Copy, F: Function<T>>(
    accumulator: *mut u8,
    n: usize,
    first: *const u8,
    sources: &[*const u8],
) {
    let accumulator = accumulator.cast::<T>();
    let mut at = 0;
    macro_rules! blocks {
        ($size:expr) => {
            while n - at >= $size {
                *accumulator.add(at).cast::<[T; $size]>() = block::<T, F, { $size }>(at, first, sources);
                at += $size;
            }
        };
    }
    macro_rules! ending {
        ($size:expr; $($before:expr),*) => {
            if n >= $size {
                let last = block::<T, F, { $size }>(n - $size, first, sources);
                $(blocks!($before);)*
                blocks!($size);
                *accumulator.add(n - $size).cast::<[T; $size]>() = last;
                return;
            }
        };
    }
    // SAFETY: as the caller says.
    unsafe {
        if F::CALLED {
            blocks!(1);
            return;
        }
        match size_of::<T>() {
            1 => {
                ending!(64; 256);
                ending!(16;);
            }
            2 => {
                ending!(32; 128);
                ending!(16;);
                ending!(8;);
            }
            4 => {
                ending!(16; 64);
                ending!(8;);
            }
            8 => ending!(8; 32),
            _ => ending!(4; 16),
        }
        ending!(4;);
        ending!(1;);
    }
}

#[inline(always)]
unsafe fn strided<T: Copy, F: Function<T>>(
    accumulator: *mut u8,
    n: usize,
    source: *const u8,
    (to, from): (usize, usize),
) {
    let (accumulator, source) = (accumulator.cast::<T>(), source.cast::<T>());
    macro_rules! steps {
        ($to:expr, $from:expr) => {
            for i in 0..n {
                // SAFETY: the caller's: `n` elements at these steps are valid.
                unsafe {
                    let to = accumulator.add(i * $to);
                    *to = F::of(*to, *source.add(i * $from));
                }
            }
        };
    }
    match (to, from) {
        (1, 1) if !F::CALLED => steps!(1, 1),
        (1, 2) if !F::CALLED => steps!(1, 2),
        (1, 3) if !F::CALLED => steps!(1, 3),
        (1, 4) if !F::CALLED => steps!(1, 4),
        _ => steps!(to, from),
    }
}

/// [`Fold::scan`], one element after the other.
#[inline(always)]
pub(super) unsafe fn scan<T: Copy, F: Function<T>>(
    from: *const u8,
    to: *mut u8,
    n: usize,
    carry: *mut u8,
    down: bool,
) {
    let (from, to, carry) = (from.cast::<T>(), to.cast::<T>(), carry.cast::<T>());
    // SAFETY: the caller's: `n` elements are valid.
    unsafe {
        let mut sum = *carry;
        for i in 0..n {
            let i = if down { n - 1 - i } else { i };
            sum = F::of(sum, *from.add(i));
            *to.add(i) = sum;
        }
        *carry = sum;
    }
}

unsafe fn scan_rows<T: Copy, F: Function<T>>(
    from: *const u8,
    to: *mut u8,
    (n, width): (usize, usize),
    carries: *mut u8,
    down: bool,
) {
    let (from, to, carries) = (from.cast::<T>(), to.cast::<T>(), carries.cast::<T>());
    let row = |i: usize| (if down { n - 1 - i } else { i }) * width;
    // Carries in registers.
    macro_rules! few {
        ($width:literal) => {{
            // SAFETY: the caller's: `n` elements are valid.
            unsafe {
                let mut sums: [T; $width] = std::array::from_fn(|j| *carries.add(j));
                for i in 0..n {
                    let at = row(i);
                    for j in 0..$width {
                        sums[j] = F::of(sums[j], *from.add(at + j));
                        *to.add(at + j) = sums[j];
                    }
                }
                sums.into_iter().enumerate().for_each(|(j, sum)| *carries.add(j) = sum);
            }
        }};
    }
    match width {
        2 if !F::CALLED => few!(2),
        3 if !F::CALLED => few!(3),
        4 if !F::CALLED => few!(4),
        _more => {
            for i in 0..n {
                let at = row(i);
                for j in 0..width {
                    // SAFETY: as above.
                    unsafe {
                        let sum = F::of(*carries.add(j), *from.add(at + j));
                        *carries.add(j) = sum;
                        *to.add(at + j) = sum;
                    }
                }
            }
        }
    }
}

unsafe fn scan_each<T: Copy, F: Function<T>>(
    from: *const u8,
    to: *mut u8,
    (lines, n): (usize, usize),
    first: *const u8,
    down: bool,
) {
    let (from, to) = (from.cast::<T>(), to.cast::<T>());
    // Lines of a constant length are unrolled.
    macro_rules! lines {
        ($n:expr) => {
            for line in 0..lines {
                // SAFETY: the caller's: `n` elements are valid.
                unsafe {
                    let (from, to) = (from.add(line * $n), to.add(line * $n));
                    let mut sum = *first.cast::<T>();
                    for i in 0..$n {
                        let i = if down { $n - 1 - i } else { i };
                        sum = F::of(sum, *from.add(i));
                        *to.add(i) = sum;
                    }
                }
            }
        };
    }
    // Such lines of narrow elements are rare, and there are many types and operations to compile them for.
    let unrolled = size_of::<T>() >= 4 && !F::CALLED;
    match n {
        2 if unrolled => lines!(2),
        3 if unrolled => lines!(3),
        4 if unrolled => lines!(4),
        _more => lines!(n),
    }
}

/// The functions of a fold, compiled for the baseline.
fn baseline<T: Copy + 'static, F: Function<T>>(identity: Option<u128>) -> Fold {
    unsafe fn plain_rows<T: Copy, F: Function<T>>(
        accumulator: *mut u8,
        n: usize,
        first: *const u8,
        sources: &[*const u8],
    ) {
        // SAFETY: as the caller says.
        unsafe { rows::<T, F>(accumulator, n, first, sources) }
    }
    unsafe fn plain_strided<T: Copy, F: Function<T>>(
        accumulator: *mut u8,
        n: usize,
        source: *const u8,
        steps: (usize, usize),
    ) {
        // SAFETY: as the caller says.
        unsafe { strided::<T, F>(accumulator, n, source, steps) }
    }
    unsafe fn plain_windows<T: Copy, F: Function<T>>(line: &Line<'_>) {
        // SAFETY: as the caller says.
        unsafe { line::windows::<T, F>(line) }
    }
    let bytes = size_of::<T>();
    // The sixteen vector registers of x86-64-v3 do not hold a block of neighbours; those of other machines
    // do.
    let windows = cfg!(not(target_arch = "x86_64")).then_some(plain_windows::<T, F> as unsafe fn(&Line<'_>));
    Fold {
        bytes,
        loops: plain_rows::<T, F>,
        strided: plain_strided::<T, F>,
        scan: scan::<T, F>,
        scan_rows: scan_rows::<T, F>,
        scan_each: scan_each::<T, F>,
        windows,
        identity,
    }
}

/// The functions of a fold, compiled for this machine's widest vectors.
fn fold<T: Copy + 'static, F: Function<T>>(identity: Option<u128>) -> Fold {
    let plain = baseline::<T, F>(identity);
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
        unsafe fn wide_rows<T: Copy, F: Function<T>>(
            accumulator: *mut u8,
            n: usize,
            first: *const u8,
            sources: &[*const u8],
        ) {
            // SAFETY: as the caller says.
            unsafe { rows::<T, F>(accumulator, n, first, sources) }
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
        unsafe fn wide_strided<T: Copy, F: Function<T>>(
            accumulator: *mut u8,
            n: usize,
            source: *const u8,
            steps: (usize, usize),
        ) {
            // SAFETY: as the caller says.
            unsafe { strided::<T, F>(accumulator, n, source, steps) }
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
        unsafe fn wide_windows<T: Copy, F: Function<T>>(line: &Line<'_>) {
            // SAFETY: as the caller says.
            unsafe { line::windows::<T, F>(line) }
        }
        if Features::here().avx512 {
            let windows = Some(wide_windows::<T, F> as unsafe fn(&Line<'_>));
            return Fold { loops: wide_rows::<T, F>, strided: wide_strided::<T, F>, windows, ..plain };
        }
    }
    plain
}

/// The immediates of `vrange`: -0 < +0, and the sign is that of the result.
#[cfg(target_arch = "x86_64")]
pub(super) const RANGE_MAXIMUM: i32 = 0b0101;
#[cfg(target_arch = "x86_64")]
pub(super) const RANGE_MINIMUM: i32 = 0b0100;

/// Maxima (or minima) of rows of f32: `vrange` on numbers, and masks of the NaNs.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn extreme_rows<const LARGEST: bool>(
    accumulator: *mut u8,
    n: usize,
    first: *const u8,
    sources: &[*const u8],
) {
    // SAFETY: as the caller says.
    unsafe {
        let at = extreme_blocks::<LARGEST, 4>(accumulator, 0, n, first, sources);
        extreme_blocks::<LARGEST, 1>(accumulator, at, n, first, sources);
    }
}

/// Folds elements from `at` on, `VECTORS` vectors at a time, as long as the last of those has an element.
/// Returns the index behind the last one.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn extreme_blocks<const LARGEST: bool, const VECTORS: usize>(
    accumulator: *mut u8,
    mut at: usize,
    n: usize,
    first: *const u8,
    sources: &[*const u8],
) -> usize {
    use std::arch::x86_64::{
        _CMP_UNORD_Q, _mm512_cmp_ps_mask, _mm512_mask_blend_ps, _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps,
        _mm512_range_ps, _mm512_set1_ps,
    };
    let nan = _mm512_set1_ps(f32::NAN);
    let (row, first) = (accumulator.cast::<f32>(), first.cast::<f32>());
    // SAFETY: all rows have `n` elements, that of the accumulator is not aliased; elements beyond `n` are
    // masked.
    unsafe {
        while at + 16 * (VECTORS - 1) < n {
            let last = ((1u32 << (n - at - 16 * (VECTORS - 1)).min(16)) - 1) as u16;
            let mask = |k: usize| if k + 1 == VECTORS { last } else { u16::MAX };
            let mut best = [nan; VECTORS];
            let mut nans = [0u16; VECTORS];
            for k in 0..VECTORS {
                best[k] = _mm512_maskz_loadu_ps(mask(k), first.add(at + 16 * k));
                nans[k] = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(best[k], best[k]);
            }
            for source in sources {
                for k in 0..VECTORS {
                    let x = _mm512_maskz_loadu_ps(mask(k), source.cast::<f32>().add(at + 16 * k));
                    nans[k] |= _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
                    best[k] = if LARGEST {
                        _mm512_range_ps::<RANGE_MAXIMUM>(best[k], x)
                    } else {
                        _mm512_range_ps::<RANGE_MINIMUM>(best[k], x)
                    };
                }
            }
            for k in 0..VECTORS {
                let best = _mm512_mask_blend_ps(nans[k], best[k], nan);
                _mm512_mask_storeu_ps(row.add(at + 16 * k), mask(k), best);
            }
            at += 16 * VECTORS;
        }
    }
    at
}

/// The fold of maxima (or minima) of f32.
fn extremes<const LARGEST: bool>() -> Fold {
    let identity = Some(u128::from(if LARGEST { f32::NEG_INFINITY } else { f32::INFINITY }.to_bits()));
    let fold = if LARGEST { fold::<f32, Maximum>(identity) } else { fold::<f32, Minimum>(identity) };
    #[cfg(target_arch = "x86_64")]
    if Features::here().avx512 {
        let windows = Some(line::extremes::<LARGEST> as unsafe fn(&Line<'_>));
        return Fold { loops: extreme_rows::<LARGEST>, windows, ..fold };
    }
    fold
}

/// The type in which an operation computes elements of a type, and its fold; `None`: the type has no such
/// operation.
pub(crate) fn of(ty: ElementType, op: Opcode) -> Option<(Carrier, Fold)> {
    let signed = ty.class() == TypeClass::Signed;
    let carrier = match ty.class() {
        TypeClass::Pred | TypeClass::Signed | TypeClass::Unsigned => {
            Carrier::Integer { bytes: ty.storage_bytes(), signed }
        }
        TypeClass::Float if ty == ElementType::F64 => Carrier::F64,
        TypeClass::Float => Carrier::F32,
        TypeClass::Complex if ty == ElementType::C64 => Carrier::C64,
        TypeClass::Complex => Carrier::C128,
    };
    if matches!(op, Opcode::Maximum | Opcode::Minimum) && matches!(ty, ElementType::BF16 | ElementType::F16) {
        return Some((Carrier::Integer { bytes: 2, signed: false }, half_extreme(ty, op)));
    }
    // Arithmetic of predicates is on 0 and 1 with a result of "not zero".
    let op = match (ty, op) {
        (ElementType::Pred, Opcode::Add | Opcode::Maximum) => Opcode::Or,
        (ElementType::Pred, Opcode::Multiply | Opcode::Minimum) => Opcode::And,
        (_, op) => op,
    };
    let f32_bits = |x: f32| Some(u128::from(x.to_bits()));
    let f64_bits = |x: f64| Some(u128::from(x.to_bits()));
    macro_rules! integer {
        ($t:ty, $s:ty) => {
            // Not a dispatch over all opcodes: anything but a reducer has no answer here.
            match op {
                Opcode::Add => fold::<$t, Add>(Some(0)),
                Opcode::Multiply => fold::<$t, Multiply>(Some(1)),
                Opcode::Maximum if signed => fold::<$t, MaximumSigned>(Some(<$s>::MIN as $t as u128)),
                Opcode::Maximum => fold::<$t, Maximum>(Some(0)),
                Opcode::Minimum if signed => fold::<$t, MinimumSigned>(Some(<$s>::MAX as u128)),
                Opcode::Minimum => fold::<$t, Minimum>(Some(<$t>::MAX as u128)),
                Opcode::And => fold::<$t, And>(Some(<$t>::MAX as u128)),
                Opcode::Or => fold::<$t, Or>(Some(0)),
                Opcode::Xor => fold::<$t, Xor>(Some(0)),
                _other => return None,
            }
        };
    }
    let fold = match carrier {
        Carrier::Integer { bytes: 1, .. } => integer!(u8, i8),
        Carrier::Integer { bytes: 2, .. } => integer!(u16, i16),
        Carrier::Integer { bytes: 4, .. } => integer!(u32, i32),
        Carrier::Integer { .. } => integer!(u64, i64),
        Carrier::F32 => match op {
            Opcode::Add => fold::<f32, Add>(f32_bits(-0.0)),
            Opcode::Multiply if ty == ElementType::F32 => fold::<f32, Multiply>(None),
            Opcode::Multiply => product(ty)?,
            Opcode::Maximum => extremes::<true>(),
            Opcode::Minimum => extremes::<false>(),
            _other => return None,
        },
        Carrier::F64 => match op {
            Opcode::Add => fold::<f64, Add>(f64_bits(-0.0)),
            Opcode::Multiply => fold::<f64, Multiply>(None),
            Opcode::Maximum => fold::<f64, Maximum>(f64_bits(f64::NEG_INFINITY)),
            Opcode::Minimum => fold::<f64, Minimum>(f64_bits(f64::INFINITY)),
            _other => return None,
        },
        // Real and imaginary parts are sums of their own: the parts are one more dimension.
        Carrier::C64 => match op {
            Opcode::Add => fold::<f32, Add>(f32_bits(-0.0)),
            Opcode::Multiply => fold::<Complex<f32>, Multiply>(None),
            _other => return None,
        },
        Carrier::C128 => match op {
            Opcode::Add => fold::<f64, Add>(f64_bits(-0.0)),
            Opcode::Multiply => fold::<Complex<f64>, Multiply>(None),
            _other => return None,
        },
    };
    #[cfg(target_arch = "x86_64")]
    if let Some(scan) = super::prefix::of(carrier, op).filter(|_| Features::here().avx512) {
        return Some((carrier, Fold { scan, ..fold }));
    }
    Some((carrier, fold))
}

/// Maxima and minima of floats of 16 bits.
fn half_extreme(ty: ElementType, op: Opcode) -> Fold {
    const BF16: u16 = 0x7f80;
    const F16: u16 = 0x7c00;
    let (largest, negative) = (op == Opcode::Maximum, |bits: u16| Some(u128::from(bits | 1 << 15)));
    match (ty == ElementType::BF16, largest) {
        (true, true) => fold::<u16, LargerHalf<BF16>>(negative(BF16)),
        (true, false) => fold::<u16, SmallerHalf<BF16>>(Some(u128::from(BF16))),
        (false, true) => fold::<u16, LargerHalf<F16>>(negative(F16)),
        (false, false) => fold::<u16, SmallerHalf<F16>>(Some(u128::from(F16))),
    }
}

/// Products in a float type of 16 bits or fewer.
fn product(ty: ElementType) -> Option<Fold> {
    use hlo::half::{bf16, f16};
    use hlo::small_float::{
        F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2,
        F8E5M2FNUZ, F8E8M0FNU,
    };
    macro_rules! types {
        ($($t:ty),*) => {{
            $(if ty == <$t as hlo::Element>::TYPE {
                return Some(baseline::<f32, Rounded<$t>>(None));
            })*
        }};
    }
    types!(
        f16,
        bf16,
        F8E5M2,
        F8E4M3,
        F8E4M3FN,
        F8E4M3B11FNUZ,
        F8E3M4,
        F8E5M2FNUZ,
        F8E4M3FNUZ,
        F8E8M0FNU,
        F4E2M1FN,
        F6E3M2FN,
        F6E2M3FN
    );
    None
}
