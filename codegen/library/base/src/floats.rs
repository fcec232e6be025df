//! Floats of 16 bits and fewer as f32, which holds all of them, and back.

use hlo::half::slice::HalfFloatSliceExt;
use hlo::half::{bf16, f16};
use hlo::{Bits, ElementType, with_element_type};
use hlo_arithmetic::scalar::convert;

use super::memory::Shared;

/// Rounds by integer arithmetic: subnormals are kept, whatever the machine has for it.
#[inline(always)]
pub fn nearest_bf16(x: f32) -> bf16 {
    let bits = x.to_bits();
    let nan = bf16::from_bits((bits >> 16) as u16 | 0x40);
    if bits & 0x7fff_ffff > 0x7f80_0000 { nan } else { nearest_bf16_of_number(x) }
}

/// The same of what is no NaN.
#[inline(always)]
pub fn nearest_bf16_of_number(x: f32) -> bf16 {
    let bits = x.to_bits();
    bf16::from_bits((bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16)
}

/// A float of 16 bits.
pub trait Half: Copy + Default + Send + Sync + 'static {
    /// Widens as many as there are.
    fn to_wide(from: &[Self], to: &mut [f32]);

    /// Rounds.
    fn from_wide(from: &[f32], to: &mut [Self]);
}

impl Half for bf16 {
    #[inline(always)]
    fn to_wide(from: &[bf16], to: &mut [f32]) {
        to.iter_mut().zip(from).for_each(|(to, x)| *to = f32::from_bits(u32::from(x.to_bits()) << 16));
    }

    #[inline(always)]
    fn from_wide(from: &[f32], to: &mut [bf16]) {
        to.iter_mut().zip(from).for_each(|(to, &x)| *to = bf16::from_f32(x));
    }
}

impl Half for f16 {
    #[inline(always)]
    fn to_wide(from: &[f16], to: &mut [f32]) {
        from.convert_to_f32_slice(to);
    }

    #[inline(always)]
    fn from_wide(from: &[f32], to: &mut [f16]) {
        to.convert_from_f32_slice(from);
    }
}

/// How elements of a type become f32.
#[derive(Clone, Debug)]
pub struct Narrow {
    ty: ElementType,
    /// The numbers of all bytes, for types of one.
    table: Vec<f32>,
}

impl Narrow {
    /// For a type of floats of 16 bits or fewer.
    pub fn new(ty: ElementType) -> Narrow {
        let number = |bits: u8| with_element_type!(ty, T => convert::<T, f32>(<T as Bits>::from_bits(u128::from(bits))));
        let table = if ty.storage_bytes() == 1 { (0..=u8::MAX).map(number).collect() } else { Vec::new() };
        Narrow { ty, table }
    }

    /// Reads as many elements as there is space for.
    ///
    /// # Safety
    /// `from` has elements `at..at + to.len()` of the type.
    #[inline]
    pub unsafe fn widen(&self, from: *const u8, at: usize, to: &mut [f32]) {
        let from = from.cast_mut();
        // SAFETY: as the caller says.
        unsafe {
            if self.ty == ElementType::BF16 {
                bf16::to_wide(Shared::new(from).slice(at, to.len()), to);
            } else if self.ty == ElementType::F16 {
                f16::to_wide(Shared::new(from).slice(at, to.len()), to);
            } else {
                let from = Shared::<u8>::new(from).slice(at, to.len());
                to.iter_mut().zip(from).for_each(|(to, &x)| *to = self.table[usize::from(x)]);
            }
        }
    }

    /// Rounds and writes.
    ///
    /// # Safety
    /// `to` points at an array of the type with elements `at..at + from.len()`, which no other thread
    /// accesses.
    #[inline]
    pub unsafe fn narrow(&self, from: &[f32], to: *mut u8, at: usize) {
        // SAFETY: as the caller says.
        unsafe {
            if self.ty == ElementType::BF16 {
                bf16::from_wide(from, Shared::new(to).slice_mut(at, from.len()));
            } else if self.ty == ElementType::F16 {
                f16::from_wide(from, Shared::new(to).slice_mut(at, from.len()));
            } else {
                let to = Shared::<u8>::new(to).slice_mut(at, from.len());
                with_element_type!(self.ty, T => {
                    to.iter_mut().zip(from).for_each(|(to, &x)| *to = convert::<f32, T>(x).bits() as u8);
                });
            }
        }
    }
}
