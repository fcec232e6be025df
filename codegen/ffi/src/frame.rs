//! Buffers of a call: operands and results in the layouts that the program asks for.
//!
//! Elements of 2 and 4 bits are packed, the first in the lowest bits. Their buffers have a byte for each
//! element nevertheless, since XLA:CPU's do.
//!
//! **Invariants:** memory that a handler writes is not aliased, is aligned to 64 bytes, and has the bytes
//! of its shape.

use std::alloc::Layout;
use std::ffi::c_void;
use std::ptr::{self, NonNull};

use hlo::{ArrayLiteral, ElementType, Shape};
use hlo_client::custom_call::{CallSite, Leaf};
use hlo_client::{Code, Error, buffer_of, bytes_of};

use crate::abi::{TYPE_TOKEN, XLA_FFI_Buffer};
use crate::attributes::type_number;

/// The alignment of memory of handlers.
const ALIGNMENT: usize = 64;

/// Bytes with an owner, zero at first.
struct Memory {
    start: NonNull<u8>,
    layout: Layout,
    bytes: usize,
}

impl Memory {
    fn new(bytes: usize) -> Result<Self, Error> {
        let refused =
            || Error::new(Code::ResourceExhausted, format!("there is no memory for {bytes} more bytes"));
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT).map_err(|_| refused())?;
        // SAFETY: the layout is not of size 0.
        let start = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }).ok_or_else(refused)?;
        Ok(Self { start, layout, bytes })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: `self.bytes` bytes were allocated and are initialized; handlers write to them only while
        // they run.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// An operand or a result of a call.
pub(crate) struct Operand {
    pub(crate) data: *mut c_void,
    dtype: i32,
    dims: Box<[i64]>,
    len: usize,
    memory: Option<Memory>,
}

/// How many bits an element takes in a buffer, where it takes less than a byte.
fn packed_bits(ty: ElementType) -> Option<u32> {
    let bits = ty.bits();
    (matches!(bits, 2 | 4) && ty != ElementType::Pred).then_some(bits)
}

/// The array leaves of a call's shapes must be of types that C has.
pub(crate) fn check(site: &CallSite) -> Result<(), Error> {
    for shape in site.operands.iter().chain(&site.results) {
        if let Some(array) = shape.as_array()
            && (array.element_type.bits() as usize) < 8
            && array.element_type != ElementType::Pred
            && packed_bits(array.element_type).is_none()
        {
            let message = format!("an array of {} in C", array.element_type.name());
            return Err(site.error(Code::Unimplemented, message));
        }
    }
    Ok(())
}

/// Moves elements from a byte each to the first bytes, the first element in the lowest bits.
fn pack(bytes: &mut [u8], bits: u32) {
    let per_byte = 8 / bits as usize;
    let mask = (1u8 << bits) - 1;
    for byte in 0..bytes.len() {
        // Where bytes are read is not before where they are written.
        let elements = bytes.get(byte * per_byte..).unwrap_or_default().iter().take(per_byte);
        bytes[byte] = elements.enumerate().fold(0, |all, (n, x)| all | ((x & mask) << (bits as usize * n)));
    }
}

/// The elements of packed bytes, a byte each.
fn unpack(bytes: &[u8], bits: u32) -> Vec<u8> {
    let per_byte = 8 / bits as usize;
    let mask = (1u8 << bits) - 1;
    (0..bytes.len()).map(|n| (bytes[n / per_byte] >> (bits as usize * (n % per_byte))) & mask).collect()
}

impl Operand {
    /// An operand, which is copied unless it has the layout that the handler expects.
    pub(crate) fn read(shape: &Shape, leaf: &Leaf) -> Result<Self, Error> {
        let Leaf::Array(array) = leaf else { return Ok(Self::token()) };
        let bytes = bytes_of(&array.buffer);
        let dims: Box<[i64]> = array.dims.iter().copied().collect();
        let dtype = type_number(array.buffer.element_type());
        let order = CallSite::minor_to_major(shape);
        let packed = packed_bits(array.buffer.element_type());
        if order.is_none() && packed.is_none() && bytes.as_ptr().addr().is_multiple_of(ALIGNMENT) {
            return Ok(Self {
                data: bytes.as_ptr().cast_mut().cast(),
                dtype,
                dims,
                len: bytes.len(),
                memory: None,
            });
        }
        let mut memory = Memory::new(bytes.len())?;
        match order {
            None => memory.bytes_mut().copy_from_slice(bytes),
            Some(order) => {
                let element = array.buffer.element_type().storage_bytes();
                permute(&dims, &order, element, |row_major, physical| {
                    memory.bytes_mut()[physical..physical + element]
                        .copy_from_slice(&bytes[row_major..row_major + element]);
                });
            }
        }
        if let Some(bits) = packed {
            pack(memory.bytes_mut(), bits);
        }
        Ok(Self { data: memory.start.as_ptr().cast(), dtype, dims, len: memory.bytes, memory: Some(memory) })
    }

    /// Memory for a result.
    pub(crate) fn for_result(leaf: &Leaf) -> Result<Self, Error> {
        let Leaf::Array(array) = leaf else { return Ok(Self::token()) };
        let memory = Memory::new(bytes_of(&array.buffer).len())?;
        let dims = array.dims.iter().copied().collect();
        let dtype = type_number(array.buffer.element_type());
        Ok(Self { data: memory.start.as_ptr().cast(), dtype, dims, len: memory.bytes, memory: Some(memory) })
    }

    /// Buffers of the operands and results of a call. Results that are an operand's memory share it.
    pub(crate) fn of_call(
        site: &CallSite,
        operands: &[Leaf],
        results: &[Leaf],
    ) -> Result<(Vec<Self>, Vec<Self>), Error> {
        let given = site.operands.iter().zip(operands);
        let mut given = given.map(|(shape, leaf)| Self::read(shape, leaf)).collect::<Result<Vec<_>, _>>()?;
        let mut outputs = results.iter().map(Self::for_result).collect::<Result<Vec<_>, _>>()?;
        for &(result, operand) in &site.aliases {
            let shapes = (site.results.get(result), site.operands.get(operand));
            let (Some(of_result), Some(of_operand)) = shapes else { continue };
            let copy = Self::read(of_result, &operands[operand])?;
            let (Some(output), Some(given)) = (outputs.get_mut(result), given.get_mut(operand)) else {
                continue;
            };
            if let Some(memory) = &mut output.memory {
                memory.bytes_mut().copy_from_slice(copy.bytes());
            }
            if CallSite::minor_to_major(of_result) == CallSite::minor_to_major(of_operand) {
                given.data = output.data;
            }
        }
        Ok((given, outputs))
    }

    /// The bytes, as they lie.
    fn bytes(&self) -> &[u8] {
        match &self.memory {
            Some(memory) => memory.bytes(),
            None => {
                // SAFETY: it is in an operand, which outlives the call, and has the bytes of its elements.
                unsafe { std::slice::from_raw_parts(self.data.cast_const().cast(), self.len) }
            }
        }
    }

    /// What a handler has written to a result.
    pub(crate) fn written(&self, shape: &Shape, result: &mut Leaf) {
        let (Leaf::Array(array), Some(memory)) = (result, &self.memory) else { return };
        let ty = array.buffer.element_type();
        let element = ty.storage_bytes();
        let unpacked = packed_bits(ty).map(|bits| unpack(memory.bytes(), bits));
        let written = unpacked.as_deref().unwrap_or_else(|| memory.bytes());
        let buffer = match CallSite::minor_to_major(shape) {
            None => buffer_of(ty, written),
            Some(order) => {
                let mut bytes = vec![0; memory.bytes];
                permute(&self.dims, &order, element, |row_major, physical| {
                    bytes[row_major..row_major + element]
                        .copy_from_slice(&written[physical..physical + element]);
                });
                buffer_of(ty, &bytes)
            }
        };
        *array = ArrayLiteral { dims: array.dims.clone(), buffer: buffer.into() };
    }

    fn token() -> Self {
        Self {
            data: ptr::dangling_mut::<u8>().cast(),
            dtype: TYPE_TOKEN,
            dims: [].into(),
            len: 0,
            memory: None,
        }
    }

    pub(crate) fn buffer(&mut self) -> XLA_FFI_Buffer {
        XLA_FFI_Buffer {
            struct_size: size_of::<XLA_FFI_Buffer>(),
            extension_start: ptr::null_mut(),
            dtype: self.dtype,
            data: self.data,
            rank: self.dims.len() as i64,
            dims: self.dims.as_mut_ptr(),
        }
    }
}

/// Calls `visit` with the offsets in bytes of every element, in row-major order and in the order of a layout.
fn permute(dims: &[i64], minor_to_major: &[usize], element: usize, mut visit: impl FnMut(usize, usize)) {
    let sizes: Vec<usize> = dims.iter().map(|&d| usize::try_from(d).unwrap_or(0)).collect();
    let mut strides = vec![0; sizes.len()];
    let mut stride = element;
    for &d in minor_to_major {
        strides[d] = stride;
        stride *= sizes[d];
    }
    let elements: usize = sizes.iter().product();
    let mut index = vec![0; sizes.len()];
    let mut physical = 0;
    for n in 0..elements {
        visit(n * element, physical);
        for d in (0..sizes.len()).rev() {
            index[d] += 1;
            physical += strides[d];
            if index[d] < sizes[d] {
                break;
            }
            physical -= strides[d] * sizes[d];
            index[d] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::Buffer;

    #[test]
    fn packed_elements_begin_with_the_lowest_bits() {
        let mut bytes = [1, 2, 0xff, 0, 5];
        pack(&mut bytes, 4);
        assert_eq!(bytes, [0x21, 0x0f, 5, 0, 0]);
        assert_eq!(unpack(&bytes, 4), [1, 2, 15, 0, 5]);
        let mut bytes = [1, 2, 3, 0, 1];
        pack(&mut bytes, 2);
        assert_eq!(bytes, [0x39, 1, 0, 0, 0]);
        assert_eq!(unpack(&bytes, 2), [1, 2, 3, 0, 1]);
        pack(&mut [], 2);
    }

    #[test]
    fn layouts_are_those_that_the_program_asks_for() {
        let dims = [2, 3].as_slice().into();
        let array = ArrayLiteral::new(dims, Buffer::F32(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])).unwrap();
        let layout = hlo::Layout::from_minor_to_major([0, 1]);
        let shape = Shape::Array(hlo::ArrayShape { layout: Some(layout.into()), ..array.shape() });
        let operand = Operand::read(&shape, &Leaf::Array(array.clone())).unwrap();
        let columns = bytes_of(&Buffer::F32(vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0])).to_vec();
        assert_eq!(operand.memory.as_ref().unwrap().bytes(), columns);
        let mut result = Leaf::Array(array.clone());
        operand.written(&shape, &mut result);
        let Leaf::Array(back) = result else { panic!() };
        assert_eq!(*back.buffer, *array.buffer);
        let empty = ArrayLiteral::new([0, 3].as_slice().into(), Buffer::F32(vec![])).unwrap();
        Operand::read(&shape, &Leaf::Array(empty)).unwrap();
    }
}
