//! Floats of 16 bits and fewer as f32, which holds all of them, and back.

use hlo::half::slice::HalfFloatSliceExt;
use hlo::half::{bf16, f16};
use hlo::{Bits, ElementType, with_element_type};
use hlo_interp::scalar::convert;

use super::memory::Shared;

/// How elements of a type become f32.
#[derive(Clone, Debug)]
pub(super) struct Narrow {
    ty: ElementType,
    /// The numbers of all bytes, for types of one.
    table: Vec<f32>,
}

impl Narrow {
    /// For a type of floats of 16 bits or fewer.
    pub(super) fn new(ty: ElementType) -> Narrow {
        let number = |bits: u8| with_element_type!(ty, T => convert::<T, f32>(<T as Bits>::from_bits(u128::from(bits))));
        let table = if ty.storage_bytes() == 1 { (0..=u8::MAX).map(number).collect() } else { Vec::new() };
        Narrow { ty, table }
    }

    /// Reads as many elements as there is room for.
    ///
    /// # Safety
    /// `from` has elements `at..at + to.len()` of the type.
    pub(super) unsafe fn widen(&self, from: *const u8, at: usize, to: &mut [f32]) {
        let from = from.cast_mut();
        // SAFETY: as the caller says.
        unsafe {
            if self.ty == ElementType::BF16 {
                let from = Shared::<u16>::new(from).slice(at, to.len());
                to.iter_mut().zip(from).for_each(|(to, &x)| *to = f32::from_bits(u32::from(x) << 16));
            } else if self.ty == ElementType::F16 {
                Shared::<f16>::new(from).slice(at, to.len()).convert_to_f32_slice(to);
            } else {
                let from = Shared::<u8>::new(from).slice(at, to.len());
                to.iter_mut().zip(from).for_each(|(to, &x)| *to = self.table[usize::from(x)]);
            }
        }
    }

    /// Rounds and writes.
    ///
    /// # Safety
    /// `to` has room for elements `at..at + from.len()` of the type, which nobody else uses.
    pub(super) unsafe fn narrow(&self, from: &[f32], to: *mut u8, at: usize) {
        // SAFETY: as the caller says.
        unsafe {
            if self.ty == ElementType::BF16 {
                let to = Shared::<bf16>::new(to).slice_mut(at, from.len());
                to.iter_mut().zip(from).for_each(|(to, &x)| *to = bf16::from_f32(x));
            } else if self.ty == ElementType::F16 {
                Shared::<f16>::new(to).slice_mut(at, from.len()).convert_from_f32_slice(from);
            } else {
                let to = Shared::<u8>::new(to).slice_mut(at, from.len());
                with_element_type!(self.ty, T => {
                    to.iter_mut().zip(from).for_each(|(to, &x)| *to = convert::<f32, T>(x).bits() as u8);
                });
            }
        }
    }
}
