//! The bytes of typed arrays.

use hlo::{Buffer, ElementType, with_buffer};

/// The bytes of an array's elements, as kernels see them.
pub fn bytes_of(buffer: &Buffer) -> &[u8] {
    fn bytes<T>(v: &[T]) -> &[u8] {
        // SAFETY: element types are plain numbers without padding (newtypes and pairs of such are transparent
        // or of C's layout), so all of their bytes are initialized.
        unsafe { std::slice::from_raw_parts(v.as_ptr().cast(), std::mem::size_of_val(v)) }
    }
    with_buffer!(buffer, v => bytes(v))
}

/// The array of these bytes, whole elements of the type. What no element of the type can be (a `pred` that is
/// neither 0 nor 1, high bits of sub-byte types) becomes one.
pub fn buffer_of(ty: ElementType, bytes: &[u8]) -> Buffer {
    fn copy<T: Copy>(into: &mut [T], bytes: &[u8]) {
        assert_eq!(std::mem::size_of_val(into), bytes.len(), "invariant: whole elements");
        // SAFETY: the lengths are the same; `into` is ours; any bytes are a value of the types that this is
        // called for.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), into.as_mut_ptr().cast(), bytes.len()) }
    }
    let mut buffer = Buffer::zeros(ty, bytes.len() / ty.storage_bytes());
    match &mut buffer {
        Buffer::Pred(v) => v.iter_mut().zip(bytes).for_each(|(v, &b)| *v = b != 0),
        Buffer::S1(v) => v.iter_mut().zip(bytes).for_each(|(v, &b)| *v = hlo::small_int::S1::from_bits(b)),
        Buffer::S2(v) => v.iter_mut().zip(bytes).for_each(|(v, &b)| *v = hlo::small_int::S2::from_bits(b)),
        Buffer::S4(v) => v.iter_mut().zip(bytes).for_each(|(v, &b)| *v = hlo::small_int::S4::from_bits(b)),
        Buffer::U1(v) => v.iter_mut().zip(bytes).for_each(|(v, &b)| *v = hlo::small_int::U1::from_bits(b)),
        Buffer::U2(v) => v.iter_mut().zip(bytes).for_each(|(v, &b)| *v = hlo::small_int::U2::from_bits(b)),
        Buffer::U4(v) => v.iter_mut().zip(bytes).for_each(|(v, &b)| *v = hlo::small_int::U4::from_bits(b)),
        Buffer::S8(_)
        | Buffer::S16(_)
        | Buffer::S32(_)
        | Buffer::S64(_)
        | Buffer::U8(_)
        | Buffer::U16(_)
        | Buffer::U32(_)
        | Buffer::U64(_)
        | Buffer::F16(_)
        | Buffer::BF16(_)
        | Buffer::F32(_)
        | Buffer::F64(_)
        | Buffer::F8E5M2(_)
        | Buffer::F8E4M3(_)
        | Buffer::F8E4M3FN(_)
        | Buffer::F8E4M3B11FNUZ(_)
        | Buffer::F8E3M4(_)
        | Buffer::F8E5M2FNUZ(_)
        | Buffer::F8E4M3FNUZ(_)
        | Buffer::F8E8M0FNU(_)
        | Buffer::F4E2M1FN(_)
        | Buffer::F6E3M2FN(_)
        | Buffer::F6E2M3FN(_)
        | Buffer::C64(_)
        | Buffer::C128(_) => with_buffer!(&mut buffer, v => copy(v, bytes)),
    }
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::Element as _;

    #[test]
    fn arrays_come_back_from_their_bytes() {
        let f = Buffer::F32(vec![1.5, -0.0, f32::NAN]);
        assert_eq!(buffer_of(ElementType::F32, bytes_of(&f)), f);
        let c = Buffer::C128(vec![hlo::num_complex::Complex::new(1.0, -2.0)]);
        assert_eq!(bytes_of(&c).len(), 16);
        assert_eq!(buffer_of(ElementType::C128, bytes_of(&c)), c);
        assert_eq!(buffer_of(ElementType::Pred, &[0, 1, 7]), Buffer::Pred(vec![false, true, true]));
        let s = buffer_of(ElementType::S4, &[0x0f, 0xff, 7]);
        assert_eq!(bytes_of(&s), [0xff, 0xff, 7]);
        assert_eq!(<bool as hlo::Element>::TYPE, bool::TYPE);
    }
}
