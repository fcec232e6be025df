//! Scans of a line within registers: the prefix of each lane in `log2(lanes)` steps (Hillis and Steele),
//! which is then combined with the carry from before the register.
//!
//! The operations may be taken in any order. From the first register with a special element on (a NaN in a
//! maximum or minimum), the scan goes on one element at a time.

use std::arch::x86_64::*;

use hlo::Opcode;

use super::fold::{
    Add, And, Carrier, Function, Maximum, MaximumSigned, Minimum, MinimumSigned, Multiply, Or, RANGE_MAXIMUM,
    RANGE_MINIMUM, Scan, Xor, scan,
};

/// The same operation on registers of 64 bytes.
trait Wide<T>: Function<T> {
    /// The identity of the operation in 64 bits: one element, or two of 32 bits.
    const NOTHING: u64;

    unsafe fn of_all(a: __m512i, b: __m512i) -> __m512i;

    /// Whether some element is special: `of_all` is not the operation on it.
    #[inline(always)]
    unsafe fn is_special(_x: __m512i) -> bool {
        false
    }
}

macro_rules! wides {
    ($($function:ident $t:ty, $nothing:expr, |$a:ident, $b:ident| $of:expr $(, special $special:ident)?;)*) => {$(
        impl Wide<$t> for $function {
            const NOTHING: u64 = $nothing;

            #[inline(always)]
            unsafe fn of_all($a: __m512i, $b: __m512i) -> __m512i {
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
    Add f32, both((-0.0_f32).to_bits()), |a, b| f32s!(_mm512_add_ps, a, b);
    Add f64, (-0.0_f64).to_bits(), |a, b| f64s!(_mm512_add_pd, a, b);
    Maximum f32, both(f32::NEG_INFINITY.to_bits()), |a, b| f32s!(_mm512_range_ps::<RANGE_MAXIMUM>, a, b), special has_nan_f32;
    Maximum f64, f64::NEG_INFINITY.to_bits(), |a, b| f64s!(_mm512_range_pd::<RANGE_MAXIMUM>, a, b), special has_nan_f64;
    Minimum f32, both(f32::INFINITY.to_bits()), |a, b| f32s!(_mm512_range_ps::<RANGE_MINIMUM>, a, b), special has_nan_f32;
    Minimum f64, f64::INFINITY.to_bits(), |a, b| f64s!(_mm512_range_pd::<RANGE_MINIMUM>, a, b), special has_nan_f64;
    Add u32, 0, |a, b| _mm512_add_epi32(a, b);
    Add u64, 0, |a, b| _mm512_add_epi64(a, b);
    Multiply u32, both(1), |a, b| _mm512_mullo_epi32(a, b);
    Multiply u64, 1, |a, b| _mm512_mullo_epi64(a, b);
    MaximumSigned u32, both(i32::MIN.cast_unsigned()), |a, b| _mm512_max_epi32(a, b);
    MaximumSigned u64, i64::MIN.cast_unsigned(), |a, b| _mm512_max_epi64(a, b);
    MinimumSigned u32, both(i32::MAX.cast_unsigned()), |a, b| _mm512_min_epi32(a, b);
    MinimumSigned u64, i64::MAX.cast_unsigned(), |a, b| _mm512_min_epi64(a, b);
    Maximum u32, 0, |a, b| _mm512_max_epu32(a, b);
    Maximum u64, 0, |a, b| _mm512_max_epu64(a, b);
    Minimum u32, u64::MAX, |a, b| _mm512_min_epu32(a, b);
    Minimum u64, u64::MAX, |a, b| _mm512_min_epu64(a, b);
    And u32, u64::MAX, |a, b| _mm512_and_si512(a, b);
    And u64, u64::MAX, |a, b| _mm512_and_si512(a, b);
    Or u32, 0, |a, b| _mm512_or_si512(a, b);
    Or u64, 0, |a, b| _mm512_or_si512(a, b);
    Xor u32, 0, |a, b| _mm512_xor_si512(a, b);
    Xor u64, 0, |a, b| _mm512_xor_si512(a, b);
}

/// `fold::Fold::scan` of whole registers, from the beginning or from the end, as long as none has a special
/// element. Returns the number of elements done.
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn registers<T, F: Wide<T>, const DOWN: bool>(
    from: *const u8,
    to: *mut u8,
    n: usize,
    carry: *mut u8,
) -> usize {
    // SAFETY: the caller says that there are `n` elements.
    unsafe {
        let nothing = _mm512_set1_epi64(F::NOTHING.cast_signed());
        // The end of a register that is reached last, in all of its elements.
        let last = match (size_of::<T>(), DOWN) {
            (4, false) => _mm512_set1_epi32(15),
            (4, true) => _mm512_setzero_si512(),
            (_, false) => _mm512_set1_epi64(15 << 32 | 14),
            (_, true) => _mm512_set1_epi64(1 << 32),
        };
        let mut before = match size_of::<T>() {
            4 => _mm512_set1_epi32(carry.cast::<i32>().read_unaligned()),
            _ => _mm512_set1_epi64(carry.cast::<i64>().read_unaligned()),
        };
        // Each element with the one `n` words of 4 bytes before it.
        macro_rules! with_before {
            ($x:expr, $by:literal) => {
                if size_of::<T>() <= 4 * $by {
                    let moved = if DOWN {
                        _mm512_alignr_epi32::<$by>(nothing, $x)
                    } else {
                        _mm512_alignr_epi32::<{ 16 - $by }>($x, nothing)
                    };
                    F::of_all($x, moved)
                } else {
                    $x
                }
            };
        }
        let each = 64 / size_of::<T>();
        let mut done = 0;
        while done + each <= n && !F::is_special(before) {
            let at = size_of::<T>() * if DOWN { n - done - each } else { done };
            let x = _mm512_loadu_si512(from.add(at).cast());
            if F::is_special(x) {
                break;
            }
            let x = with_before!(x, 1);
            let x = with_before!(x, 2);
            let x = with_before!(x, 4);
            let x = with_before!(x, 8);
            _mm512_storeu_si512(to.add(at).cast(), F::of_all(before, x));
            before = F::of_all(before, _mm512_permutexvar_epi32(last, x));
            done += each;
        }
        carry.copy_from_nonoverlapping((&raw const before).cast(), size_of::<T>());
        done
    }
}

/// `fold::Fold::scan`.
unsafe fn run<T: Copy, F: Wide<T>>(from: *const u8, to: *mut u8, n: usize, carry: *mut u8, down: bool) {
    // SAFETY: the machine has the instructions ([`of`]); as the caller says.
    unsafe {
        let done = match down {
            false => registers::<T, F, false>(from, to, n, carry),
            true => registers::<T, F, true>(from, to, n, carry),
        };
        let rest = if down { 0 } else { done * size_of::<T>() };
        scan::<T, F>(from.add(rest), to.add(rest), n - done, carry, down);
    }
}

/// The scan by an operation, on machines with AVX-512. `None`: of other elements, or of products whose order
/// is that of the elements.
pub(super) fn of(carrier: Carrier, op: Opcode) -> Option<Scan> {
    // Not a dispatch over all opcodes: anything but a reducer has no answer here.
    macro_rules! integer {
        ($t:ty, $signed:expr) => {
            match op {
                Opcode::Add => run::<$t, Add>,
                Opcode::Multiply => run::<$t, Multiply>,
                Opcode::Maximum if $signed => run::<$t, MaximumSigned>,
                Opcode::Maximum => run::<$t, Maximum>,
                Opcode::Minimum if $signed => run::<$t, MinimumSigned>,
                Opcode::Minimum => run::<$t, Minimum>,
                Opcode::And => run::<$t, And>,
                Opcode::Or => run::<$t, Or>,
                Opcode::Xor => run::<$t, Xor>,
                _other => return None,
            }
        };
    }
    macro_rules! float {
        ($t:ty) => {
            match op {
                Opcode::Add => run::<$t, Add>,
                Opcode::Maximum => run::<$t, Maximum>,
                Opcode::Minimum => run::<$t, Minimum>,
                _other => return None,
            }
        };
    }
    Some(match carrier {
        Carrier::F32 => float!(f32),
        Carrier::F64 => float!(f64),
        Carrier::Integer { bytes: 4, signed } => integer!(u32, signed),
        Carrier::Integer { bytes: 8, signed } => integer!(u64, signed),
        Carrier::Integer { .. } | Carrier::C64 | Carrier::C128 => return None,
    })
}
