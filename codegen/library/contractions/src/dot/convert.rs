//! Elements on their way into words, and sums on their way out.
//!
//! Operands whose elements cannot be packed as they are (integers in a product of floats, floats in one of
//! integers, ...) are converted to the result's type first, as SEMANTICS.md says ("Sums"), by a pass over
//! them into scratch memory.

use hlo::half::bf16;
use hlo::half::slice::HalfFloatSliceExt;
use hlo::num_complex::Complex;
use hlo::{ElementType, TypeClass, with_element_type};
use hlo_arithmetic::scalar::{Carrier, Scalar};
use hlo_library_base::floats::nearest_bf16;
use hlo_library_base::pool::Pool;

use super::product::Narrow;

/// Elements that are in a carrier at a time.
const BLOCK_ELEMENTS: usize = 256;
/// Elements of a chunk.
const CHUNK_ELEMENTS: usize = 1 << 14;

/// A conversion of the elements of an operand: from their type to `through` and from that to `to`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Conversion {
    pub(crate) from: ElementType,
    pub(crate) through: ElementType,
    pub(crate) to: ElementType,
}

/// Values on their way: a block of each carrier.
struct Carried {
    signed: [i64; BLOCK_ELEMENTS],
    unsigned: [u64; BLOCK_ELEMENTS],
    real: [f64; BLOCK_ELEMENTS],
    complex: [Complex<f64>; BLOCK_ELEMENTS],
}

/// A carrier that has a block in [`Carried`].
trait Block: Carrier + Sized + 'static {
    fn of(carried: &mut Carried) -> &mut [Self; BLOCK_ELEMENTS];
}

macro_rules! blocks {
    ($($t:ty: $field:ident),*) => {$(
        impl Block for $t {
            fn of(carried: &mut Carried) -> &mut [Self; BLOCK_ELEMENTS] {
                &mut carried.$field
            }
        }
    )*};
}
blocks!(i64: signed, u64: unsigned, f64: real, Complex<f64>: complex);

/// Which carrier the elements of a type are in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Signed,
    Unsigned,
    Real,
    Complex,
}

fn kind(ty: ElementType) -> Kind {
    match ty.class() {
        TypeClass::Signed => Kind::Signed,
        TypeClass::Pred | TypeClass::Unsigned => Kind::Unsigned,
        TypeClass::Float => Kind::Real,
        TypeClass::Complex => Kind::Complex,
    }
}

/// Elements into their carrier.
unsafe fn enter<T: Scalar<Carrier: Block>>(from: *const u8, n: usize, carried: &mut Carried) {
    let block = <T::Carrier as Block>::of(carried);
    for (i, to) in block[..n].iter_mut().enumerate() {
        // SAFETY: the caller's: `n` elements are there.
        *to = unsafe { *from.cast::<T>().add(i) }.carrier();
    }
}

/// From a carrier into elements.
unsafe fn leave<T: Scalar>(carried: &mut Carried, kind: Kind, n: usize, to: *mut u8) {
    unsafe fn each<C: Block, T: Scalar>(carried: &mut Carried, n: usize, to: *mut u8) {
        for (i, x) in C::of(carried)[..n].iter().enumerate() {
            // SAFETY: the caller's: space for `n` elements is there.
            unsafe { *to.cast::<T>().add(i) = x.into_scalar::<T>() };
        }
    }
    // SAFETY: the caller's.
    unsafe {
        match kind {
            Kind::Signed => each::<i64, T>(carried, n, to),
            Kind::Unsigned => each::<u64, T>(carried, n, to),
            Kind::Real => each::<f64, T>(carried, n, to),
            Kind::Complex => each::<Complex<f64>, T>(carried, n, to),
        }
    }
}

impl Conversion {
    /// Converts `n` elements.
    ///
    /// # Safety
    /// They are there, and so is space for as many.
    pub(crate) unsafe fn run(&self, from: *const u8, n: usize, to: *mut u8, pool: &Pool) {
        let (from, to) = (from.expose_provenance(), to.expose_provenance());
        pool.run(n.div_ceil(CHUNK_ELEMENTS), &|chunk| {
            let first = chunk * CHUNK_ELEMENTS;
            // SAFETY: the caller's, of a part.
            unsafe {
                let from =
                    std::ptr::with_exposed_provenance::<u8>(from).add(first * self.from.storage_bytes());
                let to = std::ptr::with_exposed_provenance_mut::<u8>(to).add(first * self.to.storage_bytes());
                self.chunk(from, CHUNK_ELEMENTS.min(n - first), to);
            }
        });
    }

    unsafe fn chunk(&self, from: *const u8, n: usize, to: *mut u8) {
        // What a loop of one instruction does needs no carrier.
        if self.to == ElementType::S16 && self.through == ElementType::S16 {
            // SAFETY: the caller's.
            unsafe {
                if self.from == ElementType::S8 {
                    return widen(from.cast::<i8>(), n, to.cast());
                } else if self.from == ElementType::U8 {
                    return widen(from, n, to.cast());
                }
            }
        }
        let mut carried = Carried {
            signed: [0; BLOCK_ELEMENTS],
            unsigned: [0; BLOCK_ELEMENTS],
            real: [0.0; BLOCK_ELEMENTS],
            complex: [Complex { re: 0.0, im: 0.0 }; BLOCK_ELEMENTS],
        };
        let mut middle = [0u128; BLOCK_ELEMENTS];
        let middle = middle.as_mut_ptr().cast::<u8>();
        for first in (0..n).step_by(BLOCK_ELEMENTS) {
            let count = BLOCK_ELEMENTS.min(n - first);
            // SAFETY: the caller's; the largest elements are of 16 bytes.
            unsafe {
                let from = from.add(first * self.from.storage_bytes());
                with_element_type!(self.from, T => enter::<T>(from, count, &mut carried));
                if self.through != self.from && self.through != self.to {
                    with_element_type!(self.through, T => leave::<T>(&mut carried, kind(self.from), count, middle));
                    with_element_type!(self.through, T => enter::<T>(middle, count, &mut carried));
                }
                let entered = if self.through != self.to { kind(self.through) } else { kind(self.from) };
                let to = to.add(first * self.to.storage_bytes());
                with_element_type!(self.to, T => leave::<T>(&mut carried, entered, count, to));
            }
        }
    }
}

/// Bytes as integers of 16 bits.
unsafe fn widen<T: Copy + Into<i16>>(from: *const T, n: usize, to: *mut i16) {
    // SAFETY: the caller's: `n` elements are there, and space for as many.
    let (from, to) = unsafe { (std::slice::from_raw_parts(from, n), std::slice::from_raw_parts_mut(to, n)) };
    for (to, from) in to.iter_mut().zip(from) {
        *to = (*from).into();
    }
}

/// Sums of `f32` into a type; `None`: they are its elements.
pub(crate) fn from_f32(ty: ElementType) -> Option<Narrow<f32>> {
    unsafe fn into<T: Scalar>(from: *const f32, n: usize, to: *mut u8, step: isize) {
        for i in 0..n {
            // SAFETY: the caller's.
            unsafe { *to.cast::<T>().offset(i as isize * step) = T::from_f64(f64::from(*from.add(i))) };
        }
    }
    unsafe fn into_f16(from: *const f32, n: usize, to: *mut u8, step: isize) {
        if step == 1 {
            // SAFETY: the caller's.
            let (from, to) = unsafe {
                let to = std::slice::from_raw_parts_mut(to.cast::<hlo::half::f16>(), n);
                (std::slice::from_raw_parts(from, n), to)
            };
            return to.convert_from_f32_slice(from);
        }
        for i in 0..n {
            // SAFETY: the caller's.
            unsafe {
                *to.cast::<hlo::half::f16>().offset(i as isize * step) =
                    hlo::half::f16::from_f32(*from.add(i))
            };
        }
    }
    unsafe fn into_bf16(from: *const f32, n: usize, to: *mut u8, step: isize) {
        for i in 0..n {
            // SAFETY: the caller's.
            unsafe { *to.cast::<bf16>().offset(i as isize * step) = nearest_bf16(*from.add(i)) };
        }
    }
    if ty == ElementType::F32 {
        return None;
    }
    if ty == ElementType::BF16 {
        return Some(into_bf16);
    }
    if ty == ElementType::F16 {
        return Some(into_f16);
    }
    Some(with_element_type!(ty, T => into::<T>))
}

/// Sums of `f64` into a type; integers through `f32`.
pub(crate) fn from_f64(ty: ElementType) -> Option<Narrow<f64>> {
    unsafe fn into<T: Scalar>(from: *const f64, n: usize, to: *mut u8, step: isize) {
        for i in 0..n {
            // SAFETY: the caller's.
            unsafe { *to.cast::<T>().offset(i as isize * step) = T::from_f64(*from.add(i)) };
        }
    }
    unsafe fn through_f32<T: Scalar>(from: *const f64, n: usize, to: *mut u8, step: isize) {
        for i in 0..n {
            // SAFETY: the caller's.
            unsafe {
                *to.cast::<T>().offset(i as isize * step) = T::from_f64(f64::from(*from.add(i) as f32))
            };
        }
    }
    if ty == ElementType::F64 {
        None
    } else if ty.is_float() {
        Some(with_element_type!(ty, T => into::<T>))
    } else {
        Some(with_element_type!(ty, T => through_f32::<T>))
    }
}

/// Sums modulo 2^32 into an integer type of at most as many bits, or `pred`: whether they are not 0.
pub(crate) fn from_i32(ty: ElementType) -> Option<Narrow<i32>> {
    unsafe fn into<T: Scalar>(from: *const i32, n: usize, to: *mut u8, step: isize) {
        for i in 0..n {
            // SAFETY: the caller's.
            unsafe { *to.cast::<T>().offset(i as isize * step) = T::from_i64(i64::from(*from.add(i))) };
        }
    }
    if ty == ElementType::S32 || ty == ElementType::U32 {
        None
    } else {
        Some(with_element_type!(ty, T => into::<T>))
    }
}

/// Sums of integers in 64 bits into a type, saturated; `None`: they are its elements.
pub(crate) fn saturating(ty: ElementType) -> Option<Narrow<i64>> {
    unsafe fn signed<T: Scalar>(from: *const i64, n: usize, to: *mut u8, step: isize) {
        let most = i64::MAX >> (64 - bits::<T>());
        for i in 0..n {
            // SAFETY: the caller's.
            unsafe {
                *to.cast::<T>().offset(i as isize * step) = T::from_i64((*from.add(i)).clamp(-most - 1, most))
            };
        }
    }
    unsafe fn unsigned<T: Scalar>(from: *const i64, n: usize, to: *mut u8, step: isize) {
        let most = u64::MAX >> (64 - bits::<T>());
        for i in 0..n {
            // SAFETY: the caller's.
            unsafe {
                *to.cast::<T>().offset(i as isize * step) = T::from_u64((*from.add(i) as u64).min(most))
            };
        }
    }
    fn bits<T: Scalar>() -> u32 {
        T::TYPE.bits().min(64)
    }
    if ty.bits() == 64 {
        None
    } else if ty.is_signed_integer() {
        Some(with_element_type!(ty, T => signed::<T>))
    } else {
        Some(with_element_type!(ty, T => unsigned::<T>))
    }
}

/// Whether an element of a float type is finite.
///
/// # Safety
/// It is there.
pub(crate) unsafe fn is_finite(ty: ElementType, x: *const u8) -> bool {
    unsafe fn of<T: Scalar>(x: *const u8) -> bool {
        // SAFETY: the caller's.
        unsafe { *x.cast::<T>() }.carrier().into_scalar::<f64>().is_finite()
    }
    // SAFETY: the caller's.
    unsafe { with_element_type!(ty, T => of::<T>(x)) }
}
