//! Runs kernels on arrays, for tests.

use hlo::{Buffer, ElementType};

use crate::runtime::object::{Code, externals};
use crate::runtime::raw::{buffer_of, bytes_of};

/// Object code that was loaded.
pub(crate) struct Kernels(Code);

impl Kernels {
    pub(crate) fn load(object: &[u8]) -> Self {
        Self(Code::load(object, &externals).unwrap())
    }

    /// Calls a kernel on `units` units; it reads `inputs` and writes `elements` elements of a type.
    pub(crate) fn run(
        &self,
        symbol: &str,
        inputs: &[Buffer],
        ty: ElementType,
        elements: usize,
        units: u64,
    ) -> Buffer {
        let mut output = vec![0u128; (elements * ty.storage_bytes()).div_ceil(16)];
        let mut arguments: Vec<*mut u8> = inputs.iter().map(|b| bytes_of(b).as_ptr().cast_mut()).collect();
        arguments.push(output.as_mut_ptr().cast());
        // SAFETY: the tests make kernels that read and write as many elements as there are units.
        unsafe { (self.0.kernel(symbol).unwrap())(arguments.as_ptr(), 0, units) };
        // SAFETY: plain bytes of a vector that is as long.
        let bytes = unsafe {
            std::slice::from_raw_parts(output.as_ptr().cast::<u8>(), elements * ty.storage_bytes())
        };
        buffer_of(ty, bytes)
    }
}
