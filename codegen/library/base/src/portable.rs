//! Kernels that are no machine code: data of this process that reads and writes a kernel's arguments through
//! [`Memory`].
//!
//! **Invariants:** what an evaluation may touch is what [`Evaluate::bytes`] says, which the loader compares
//! with the slices that it is launched on; an element is read and written through its pointer alone, so that
//! threads that evaluate other units may write other elements of the same arrays.

use std::fmt;
use std::sync::Arc;

use hlo::{Buffer, BufferOf, ElementType, with_buffer};

use crate::KernelFn;

/// A kernel that evaluates itself.
pub trait Evaluate: fmt::Debug + Send + Sync {
    /// The bytes of each argument that units before `end` need.
    fn bytes(&self, end: u64) -> Vec<u64>;

    /// Does the units `begin..end`.
    fn run(&self, memory: &Memory<'_>, begin: u64, end: u64);
}

/// What a launch calls: the code of one phase of a kernel.
#[derive(Clone, Debug)]
pub enum Function {
    /// Machine code.
    Machine(KernelFn),
    /// An evaluation.
    Evaluated(Arc<dyn Evaluate>),
}

impl Function {
    /// Does the units `begin..end`.
    ///
    /// # Safety
    /// `arguments` are those of the kernel, as [`KernelFn`] says.
    #[inline]
    pub unsafe fn call(&self, arguments: *const *mut u8, begin: u64, end: u64) {
        match self {
            // SAFETY: by the caller's word.
            Function::Machine(function) => unsafe { function(arguments, begin, end) },
            Function::Evaluated(evaluate) => {
                let bytes = evaluate.bytes(end);
                // SAFETY: there are as many arguments of that many bytes by the caller's word.
                let pointers = unsafe { std::slice::from_raw_parts(arguments, bytes.len()) };
                evaluate.run(&Memory { pointers, bytes: &bytes }, begin, end);
            }
        }
    }
}

/// The arguments of a kernel that is evaluated.
#[derive(Debug)]
pub struct Memory<'a> {
    pointers: &'a [*mut u8],
    bytes: &'a [u64],
}

impl Memory<'_> {
    /// Where an argument begins, to compare with others.
    pub fn address(&self, argument: usize) -> usize {
        self.pointers[argument].addr()
    }

    /// The bytes of an argument.
    pub fn bytes(&self, argument: usize) -> u64 {
        self.bytes[argument]
    }

    /// Whether two arguments share bytes.
    pub fn overlap(&self, a: usize, b: usize) -> bool {
        let range = |i: usize| (self.address(i), self.address(i) + self.bytes[i] as usize);
        let ((a, a_end), (b, b_end)) = (range(a), range(b));
        a < b_end && b < a_end
    }

    /// Gathers: `out[i]` is element `at[i]` of the argument, or 0 where `mask[i]` is false. Panics if an
    /// index is out of bounds.
    pub fn read(&self, argument: usize, at: &[i64], mask: Option<&[bool]>, out: &mut Buffer) {
        fn of<T: BufferOf + Default>(
            pointer: *const u8,
            count: u64,
            at: &[i64],
            mask: Option<&[bool]>,
            out: &mut [T],
        ) {
            for (i, (o, &at)) in out.iter_mut().zip(at).enumerate() {
                if mask.is_some_and(|m| !m[i]) {
                    *o = T::default();
                    continue;
                }
                let at = checked_index(at, count);
                *o = if T::TYPE.bits() < 8 {
                    // What no element of the type can be becomes one.
                    // SAFETY: inside of the argument, whose elements are bytes.
                    T::from_bits(u128::from(unsafe { pointer.add(at).read() }))
                } else {
                    // SAFETY: inside of the argument, whose elements are of this type and aligned to it; any
                    // bytes are one.
                    unsafe { pointer.cast::<T>().add(at).read() }
                };
            }
        }
        let (pointer, count) = self.argument(argument, out.element_type());
        with_buffer!(out, out => of(pointer, count, at, mask, out));
    }

    /// Writes the first elements of `values` to these numbers of an argument, where `mask` is true. Panics on
    /// an element outside of the argument.
    pub fn write(&self, argument: usize, at: &[i64], mask: Option<&[bool]>, values: &Buffer) {
        fn of<T: Copy>(pointer: *mut T, count: u64, at: &[i64], mask: Option<&[bool]>, values: &[T]) {
            for (i, (&value, &at)) in values.iter().zip(at).enumerate() {
                if mask.is_none_or(|m| m[i]) {
                    // SAFETY: inside of the argument, whose elements are of this type and aligned to it.
                    unsafe { pointer.add(checked_index(at, count)).write(value) };
                }
            }
        }
        let (pointer, count) = self.argument(argument, values.element_type());
        with_buffer!(values, values => of(pointer.cast_mut().cast(), count, at, mask, values));
    }

    /// Writes bytes to the beginning of an argument.
    pub fn write_bytes(&self, argument: usize, bytes: &[u8]) {
        assert!(bytes.len() as u64 <= self.bytes[argument], "invariant: inside of the argument");
        // SAFETY: inside of the argument, which the kernel may write.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.pointers[argument], bytes.len()) };
    }

    fn argument(&self, argument: usize, ty: ElementType) -> (*const u8, u64) {
        (self.pointers[argument].cast_const(), self.bytes[argument] / ty.storage_bytes() as u64)
    }
}

/// An element's number, which is less than `count`.
fn checked_index(at: i64, count: u64) -> usize {
    assert!((at as u64) < count, "invariant: element {at} is one of {count}");
    at as usize
}
