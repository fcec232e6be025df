//! Scans of a line within registers: all that is before each element of one is folded in as many steps as its number has digits, then what is before the register.
//!
//! Any order is as good for these operations. What needs care, NaNs among which the greatest is looked for, is left to one element at a time from there on.

use std::arch::x86_64::*;

use hlo::Opcode;

use super::fold::{Carrier, Function, scan};

/// An operation on registers of 64 bytes.
trait Wide {
    /// Bytes of an element.
    const BYTES: usize;
    /// Twice the same element, or two of them, that change nothing.
    const NOTHING: u64;

    unsafe fn of(a: __m512i, b: __m512i) -> __m512i;

    /// Whether there is an element on which the operation is more than this.
    #[inline(always)]
    unsafe fn is_special(_x: __m512i) -> bool {
        false
    }
}

macro_rules! wides {
    ($($name:ident $bytes:literal $nothing:expr, |$a:ident, $b:ident| $of:expr $(, special $special:ident)?;)*) => {$(
        struct $name;

        impl Wide for $name {
            const BYTES: usize = $bytes;
            const NOTHING: u64 = $nothing;

            #[inline(always)]
            unsafe fn of($a: __m512i, $b: __m512i) -> __m512i {
                // SAFETY: the caller's: the instructions exist.
                unsafe { $of }
            }

            $(
                #[inline(always)]
                unsafe fn is_special(x: __m512i) -> bool {
                    // SAFETY: the caller's: the instructions exist.
                    unsafe { $special(x) }
                }
            )?
        }
    )*};
}

/// Of `f32`, `f64`.
macro_rules! f32s {
    ($f:expr, $a:ident, $b:ident) => {
        _mm512_castps_si512($f(_mm512_castsi512_ps($a), _mm512_castsi512_ps($b)))
    };
}
macro_rules! f64s {
    ($f:expr, $a:ident, $b:ident) => {
        _mm512_castpd_si512($f(_mm512_castsi512_pd($a), _mm512_castsi512_pd($b)))
    };
}

/// Selectors of `vrange`: -0 < +0, and the sign is that of the result.
const MAXIMUM: i32 = 0b0101;
const MINIMUM: i32 = 0b0100;

#[inline(always)]
unsafe fn has_nan_f32(x: __m512i) -> bool {
    // SAFETY: the caller's: the instructions exist.
    unsafe {
        let x = _mm512_castsi512_ps(x);
        _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x) != 0
    }
}

#[inline(always)]
unsafe fn has_nan_f64(x: __m512i) -> bool {
    // SAFETY: the caller's: the instructions exist.
    unsafe {
        let x = _mm512_castsi512_pd(x);
        _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(x, x) != 0
    }
}

/// An element of 4 bytes twice.
const fn both(x: u32) -> u64 {
    (x as u64) << 32 | x as u64
}

wides! {
    // -0 changes no number, +0 would change -0.
    AddF32 4 both((-0.0_f32).to_bits()), |a, b| f32s!(_mm512_add_ps, a, b);
    AddF64 8 (-0.0_f64).to_bits(), |a, b| f64s!(_mm512_add_pd, a, b);
    LargestF32 4 both(f32::NEG_INFINITY.to_bits()), |a, b| f32s!(_mm512_range_ps::<MAXIMUM>, a, b), special has_nan_f32;
    LargestF64 8 f64::NEG_INFINITY.to_bits(), |a, b| f64s!(_mm512_range_pd::<MAXIMUM>, a, b), special has_nan_f64;
    SmallestF32 4 both(f32::INFINITY.to_bits()), |a, b| f32s!(_mm512_range_ps::<MINIMUM>, a, b), special has_nan_f32;
    SmallestF64 8 f64::INFINITY.to_bits(), |a, b| f64s!(_mm512_range_pd::<MINIMUM>, a, b), special has_nan_f64;
    Add32 4 0, |a, b| _mm512_add_epi32(a, b);
    Add64 8 0, |a, b| _mm512_add_epi64(a, b);
    Multiply32 4 both(1), |a, b| _mm512_mullo_epi32(a, b);
    Multiply64 8 1, |a, b| _mm512_mullo_epi64(a, b);
    LargestS32 4 both(i32::MIN.cast_unsigned()), |a, b| _mm512_max_epi32(a, b);
    LargestS64 8 i64::MIN.cast_unsigned(), |a, b| _mm512_max_epi64(a, b);
    SmallestS32 4 both(i32::MAX.cast_unsigned()), |a, b| _mm512_min_epi32(a, b);
    SmallestS64 8 i64::MAX.cast_unsigned(), |a, b| _mm512_min_epi64(a, b);
    LargestU32 4 0, |a, b| _mm512_max_epu32(a, b);
    LargestU64 8 0, |a, b| _mm512_max_epu64(a, b);
    SmallestU32 4 u64::MAX, |a, b| _mm512_min_epu32(a, b);
    SmallestU64 8 u64::MAX, |a, b| _mm512_min_epu64(a, b);
    And32 4 u64::MAX, |a, b| _mm512_and_si512(a, b);
    And64 8 u64::MAX, |a, b| _mm512_and_si512(a, b);
    Or32 4 0, |a, b| _mm512_or_si512(a, b);
    Or64 8 0, |a, b| _mm512_or_si512(a, b);
    Xor32 4 0, |a, b| _mm512_xor_si512(a, b);
    Xor64 8 0, |a, b| _mm512_xor_si512(a, b);
}

/// `fold::Fold::scan` of whole registers, from the beginning or from the end, as long as none holds anything special; how many elements that were.
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn registers<W: Wide, const DOWN: bool>(
    from: *const u8,
    to: *mut u8,
    n: usize,
    carry: *mut u8,
) -> usize {
    // SAFETY: the caller says that there are `n` elements.
    unsafe {
        let nothing = _mm512_set1_epi64(W::NOTHING.cast_signed());
        // The end of a register that is reached last, in all of its elements.
        let last = match (W::BYTES, DOWN) {
            (4, false) => _mm512_set1_epi32(15),
            (4, true) => _mm512_setzero_si512(),
            (_, false) => _mm512_set1_epi64(15 << 32 | 14),
            (_, true) => _mm512_set1_epi64(1 << 32),
        };
        let mut before = match W::BYTES {
            4 => _mm512_set1_epi32(carry.cast::<i32>().read_unaligned()),
            _ => _mm512_set1_epi64(carry.cast::<i64>().read_unaligned()),
        };
        // Each element with the one that is so many words before it.
        macro_rules! with_before {
            ($x:expr, $by:literal) => {
                if W::BYTES <= 4 * $by {
                    let moved = if DOWN {
                        _mm512_alignr_epi32::<$by>(nothing, $x)
                    } else {
                        _mm512_alignr_epi32::<{ 16 - $by }>($x, nothing)
                    };
                    W::of($x, moved)
                } else {
                    $x
                }
            };
        }
        let each = 64 / W::BYTES;
        let mut done = 0;
        while done + each <= n && !W::is_special(before) {
            let at = W::BYTES * if DOWN { n - done - each } else { done };
            let x = _mm512_loadu_si512(from.add(at).cast());
            if W::is_special(x) {
                break;
            }
            let x = with_before!(x, 1);
            let x = with_before!(x, 2);
            let x = with_before!(x, 4);
            let x = with_before!(x, 8);
            _mm512_storeu_si512(to.add(at).cast(), W::of(before, x));
            before = W::of(before, _mm512_permutexvar_epi32(last, x));
            done += each;
        }
        carry.copy_from_nonoverlapping((&raw const before).cast(), W::BYTES);
        done
    }
}

/// `fold::Fold::scan`.
unsafe fn run<T: Copy, F: Function<T>, W: Wide>(
    from: *const u8,
    to: *mut u8,
    n: usize,
    carry: *mut u8,
    down: bool,
) {
    // SAFETY: the machine has the instructions ([`of`]); as the caller says.
    unsafe {
        let done = match down {
            false => registers::<W, false>(from, to, n, carry),
            true => registers::<W, true>(from, to, n, carry),
        };
        let rest = if down { 0 } else { done * W::BYTES };
        scan::<T, F>(from.add(rest), to.add(rest), n - done, carry, down);
    }
}

/// The scan by an operation, on machines with AVX-512. `None`: of other elements, or of products whose order is that of the elements.
pub(super) fn of(carrier: Carrier, op: Opcode) -> Option<super::fold::Scan> {
    use super::fold::{Add, And, Maximum, MaximumSigned, Minimum, MinimumSigned, Multiply, Or, Xor};
    // Not a dispatch over all opcodes: anything but a reducer has no answer here.
    Some(match (carrier, op) {
        (Carrier::F32, Opcode::Add) => run::<f32, Add, AddF32>,
        (Carrier::F32, Opcode::Maximum) => run::<f32, Maximum, LargestF32>,
        (Carrier::F32, Opcode::Minimum) => run::<f32, Minimum, SmallestF32>,
        (Carrier::F64, Opcode::Add) => run::<f64, Add, AddF64>,
        (Carrier::F64, Opcode::Maximum) => run::<f64, Maximum, LargestF64>,
        (Carrier::F64, Opcode::Minimum) => run::<f64, Minimum, SmallestF64>,
        (Carrier::Integer { bytes: 4, signed }, op) => match op {
            Opcode::Add => run::<u32, Add, Add32>,
            Opcode::Multiply => run::<u32, Multiply, Multiply32>,
            Opcode::Maximum if signed => run::<u32, MaximumSigned, LargestS32>,
            Opcode::Maximum => run::<u32, Maximum, LargestU32>,
            Opcode::Minimum if signed => run::<u32, MinimumSigned, SmallestS32>,
            Opcode::Minimum => run::<u32, Minimum, SmallestU32>,
            Opcode::And => run::<u32, And, And32>,
            Opcode::Or => run::<u32, Or, Or32>,
            Opcode::Xor => run::<u32, Xor, Xor32>,
            _other => return None,
        },
        (Carrier::Integer { bytes: 8, signed }, op) => match op {
            Opcode::Add => run::<u64, Add, Add64>,
            Opcode::Multiply => run::<u64, Multiply, Multiply64>,
            Opcode::Maximum if signed => run::<u64, MaximumSigned, LargestS64>,
            Opcode::Maximum => run::<u64, Maximum, LargestU64>,
            Opcode::Minimum if signed => run::<u64, MinimumSigned, SmallestS64>,
            Opcode::Minimum => run::<u64, Minimum, SmallestU64>,
            Opcode::And => run::<u64, And, And64>,
            Opcode::Or => run::<u64, Or, Or64>,
            Opcode::Xor => run::<u64, Xor, Xor64>,
            _other => return None,
        },
        (Carrier::Integer { .. } | Carrier::F32 | Carrier::F64 | Carrier::C64 | Carrier::C128, _other) => {
            return None;
        }
    })
}
