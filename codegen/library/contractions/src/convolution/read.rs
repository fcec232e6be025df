//! Operands of floats of at most 32 bits, read as `f32`.

use hlo::ElementType;
use hlo::half::slice::HalfFloatSliceExt;
use hlo::half::{bf16, f16};

/// Reads elements that are so far apart as `f32`.
pub(super) type Read = unsafe fn(from: *const u8, at: isize, step: isize, n: usize, to: *mut f32);

unsafe fn read<T: Copy>(
    from: *const u8,
    at: isize,
    step: isize,
    n: usize,
    to: *mut f32,
    f32: impl Fn(T) -> f32,
) {
    // SAFETY: the caller says that the elements are there.
    unsafe {
        let from = from.cast::<T>().offset(at);
        if step == 1 {
            for i in 0..n {
                *to.add(i) = f32(*from.add(i));
            }
        } else {
            for i in 0..n {
                *to.add(i) = f32(*from.offset(i as isize * step));
            }
        }
    }
}

/// What reads elements of a type.
pub(super) fn reads(ty: ElementType) -> Option<Read> {
    // SAFETY: the caller's, in all three.
    let f32s: Read = |from, at, step, n, to| unsafe { read::<f32>(from, at, step, n, to, |x| x) };
    // SAFETY: as above.
    let bf16s: Read = |from, at, step, n, to| unsafe { read::<bf16>(from, at, step, n, to, bf16::to_f32) };
    // SAFETY: as above.
    let f16s: Read = |from, at, step, n, to| unsafe {
        if step == 1 {
            let (from, to) = (
                std::slice::from_raw_parts(from.cast::<f16>().offset(at), n),
                std::slice::from_raw_parts_mut(to, n),
            );
            return from.convert_to_f32_slice(to);
        }
        read::<f16>(from, at, step, n, to, f16::to_f32);
    };
    match ty {
        ElementType::F32 => Some(f32s),
        ElementType::BF16 => Some(bf16s),
        ElementType::F16 => Some(f16s),
        _other => None,
    }
}

/// Elements of a type as `f32`, if [`reads`] knows it.
///
/// # Safety
/// They are there, and so is space for as many.
pub(super) unsafe fn widen(ty: ElementType, from: *const u8, n: usize, to: *mut f32) {
    if let Some(read) = reads(ty) {
        // SAFETY: the caller's.
        unsafe { read(from, 0, 1, n, to) };
    }
}
