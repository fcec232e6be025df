//! The data of constants: from the bytes of the file to those of the tree.
//!
//! Elements are stored in both as in memory, so that data is copied once and whole. Different are booleans,
//! which the file packs into bits; and integers narrower than a byte, whose unused bits the tree fills with
//! the sign.

use std::sync::Arc;

use super::super::cursor::Fallible;
use super::super::decode::Decoder;
use super::entries::Entries;
use crate::ir::{Attribute, DYNAMIC, Module, Signedness, Type, TypeId, element_bytes, storage_bits};

/// The element type and the number of elements of a tensor or vector type.
pub(in crate::bytecode) fn shape(m: &Module, ty: TypeId) -> Option<(TypeId, usize)> {
    let (dims, element) = match m.get_type(ty) {
        Type::Tensor { dims, element, .. } | Type::Vector { dims, element, .. } => (dims, *element),
        _ => return None,
    };
    let mut count = 1usize;
    for &n in dims {
        if n == DYNAMIC {
            return None;
        }
        count = count.checked_mul(usize::try_from(n).ok()?)?;
    }
    Some((element, count))
}

/// The bytes of an element in a file: bits rounded up to bytes, each part of a complex number by itself.
/// `None` of booleans, which are packed, and of what is no number.
pub(in crate::bytecode) fn file_bytes(m: &Module, element: TypeId) -> Option<usize> {
    match m.get_type(element) {
        Type::Complex(part) => Some(2 * storage_bits(m, *part)?.div_ceil(8) as usize),
        _ => match storage_bits(m, element)? {
            1 => None,
            bits => Some(bits.div_ceil(8) as usize),
        },
    }
}

/// A tensor of a type and a blob.
pub(super) fn dense(e: &Entries<'_, '_>, d: &Decoder<'_>) -> Fallible<Attribute> {
    let ty = e.ty(d.ty(0));
    let m = &e.module;
    let Some((element, count)) = shape(m, ty) else {
        return Err(
            d.error("its type is no tensor whose sizes are known, or one of more elements than memory has")
        );
    };
    let (start, end) = d.blob(1);
    let bytes = d.cursor.over(start, end).bytes((end - start) as u64)?;
    let wrong = |expected: String| d.error(format!("{} bytes of data for {expected}", bytes.len()));
    if storage_bits(m, element) == Some(1) {
        let (data, splat) = booleans(bytes, count).ok_or_else(|| wrong(format!("{count} booleans")))?;
        return Ok(Attribute::Elements { ty, splat, data });
    }
    let (Some(width), Some(tree_width)) = (file_bytes(m, element), element_bytes(m, element)) else {
        return Err(d.error("its elements are no numbers"));
    };
    // A type without elements may have one for all of them, too.
    let splat = bytes.len() == width;
    if !splat && count.checked_mul(width) != Some(bytes.len()) {
        return Err(wrong(format!("{count} elements of {width} bytes")));
    }
    let bits = storage_bits(m, element).unwrap_or(0);
    let data: Arc<[u8]> = if width != tree_width {
        widened(m, element, bytes, width, tree_width)
    } else if bits < 8 {
        let signed = is_signed(m, element);
        bytes.iter().map(|&b| narrow(b, bits, signed)).collect()
    } else {
        Arc::from(bytes)
    };
    Ok(Attribute::Elements { ty, splat, data })
}

/// Whether the unused bits of elements take the sign.
fn is_signed(m: &Module, element: TypeId) -> bool {
    match m.get_type(element) {
        Type::Integer { sign, .. } => *sign != Signedness::Unsigned,
        Type::Quantized(q) => q.signed,
        _ => false,
    }
}

fn narrow(byte: u8, bits: u32, signed: bool) -> u8 {
    let unused = 8 - bits;
    match signed {
        true => ((byte << unused) as i8 >> unused) as u8,
        false => byte << unused >> unused,
    }
}

/// Elements of 3, 5, 6 or 7 bytes and the like, which take 4 or 8 in the tree.
fn widened(m: &Module, element: TypeId, bytes: &[u8], width: usize, tree_width: usize) -> Arc<[u8]> {
    let (parts, width, tree_width) = match m.get_type(element) {
        Type::Complex(_) => (2, width / 2, tree_width / 2),
        _ => (1, width, tree_width),
    };
    let signed = parts == 1 && is_signed(m, element);
    let mut data = Vec::with_capacity(bytes.len() / width * tree_width);
    for part in bytes.chunks_exact(width) {
        let fill = if signed && part.last().is_some_and(|b| b >> 7 == 1) { 0xFF } else { 0 };
        data.extend_from_slice(part);
        data.resize(data.len() + tree_width - width, fill);
    }
    data.into()
}

/// The bits of each byte, the least significant first.
const BITS: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            table[byte][bit] = (byte >> bit & 1) as u8;
            bit += 1;
        }
        byte += 1;
    }
    table
};

/// Booleans are packed into bits; a splat is a byte of all ones or none. Old writers did not pack them. Of up
/// to 8 elements one byte of all ones can only be a splat, as unused bits are 0.
fn booleans(bytes: &[u8], count: usize) -> Option<(Arc<[u8]>, bool)> {
    let packed = count.div_ceil(8);
    match bytes {
        [one] if count == 0 => Some((Arc::from([u8::from(*one != 0)]), true)),
        [0xFF] if count > 0 => Some((Arc::from([1u8]), true)),
        [0] if count > 0 => Some((Arc::from([0u8]), true)),
        [one] if count == 1 => Some((Arc::from([one & 1]), true)),
        [one] if count > 8 => Some((Arc::from([u8::from(*one != 0)]), true)),
        _ if bytes.len() == packed && packed != count => {
            // An exact size: the elements are written where they stay.
            let mut data: Arc<[u8]> = std::iter::repeat_n(0, count).collect();
            let elements = Arc::get_mut(&mut data).expect("invariant: nobody else has it yet");
            for (group, &byte) in elements.chunks_mut(8).zip(bytes) {
                let bits = &BITS[usize::from(byte)];
                group.copy_from_slice(&bits[..group.len()]);
            }
            Some((data, false))
        }
        _ if bytes.len() == count => Some((bytes.iter().map(|&b| u8::from(b != 0)).collect(), false)),
        _ => None,
    }
}

/// `array<i64: 1, 2>`: a type, a number of elements and a blob.
pub(super) fn dense_array(e: &Entries<'_, '_>, d: &Decoder<'_>) -> Fallible<Attribute> {
    let element = e.ty(d.ty(0));
    let (start, end) = d.blob(2);
    let data = d.cursor.over(start, end).bytes((end - start) as u64)?;
    let width = match e.module.get_type(element) {
        Type::Integer { .. } | Type::Float(_) => element_bytes(&e.module, element).unwrap_or(1),
        _ => return Err(d.error("its elements are neither integers nor floats")),
    };
    if d.number(1).checked_mul(width as u64) != Some(data.len() as u64) {
        let message = format!("{} bytes of data for {} elements of {width} bytes", data.len(), d.number(1));
        return Err(d.error(message));
    }
    Ok(Attribute::DenseArray { element, data: data.into() })
}

/// `dense<...>` of strings: a type, whether one stands for all, and the strings.
pub(super) fn strings(e: &Entries<'_, '_>, d: &Decoder<'_>) -> Fallible<Attribute> {
    let ty = e.ty(d.ty(0));
    let dims = match e.module.get_type(ty) {
        Type::Tensor { dims, .. } | Type::Vector { dims, .. } => dims,
        _ => return Err(d.error("its type is no tensor")),
    };
    let count = dims.iter().try_fold(1u64, |n, &dim| n.checked_mul(u64::try_from(dim).ok()?));
    let texts = d.texts(2);
    let expected = if d.number(1) != 0 { Some(1) } else { count };
    if expected != Some(texts.len() as u64) {
        return Err(d.error(format!("{} strings do not fit its type", texts.len())));
    }
    let texts = texts
        .iter()
        .map(|&t| match std::str::from_utf8(e.bytes(t)) {
            Ok(text) => Ok(text.into()),
            Err(_) => Err(d.error("a string that is not UTF-8")),
        })
        .collect::<Fallible<_>>()?;
    Ok(Attribute::Strings { ty, texts })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand from what jaxlib writes: least bits first, unused ones 0.
    #[test]
    fn booleans_are_packed_or_one_for_all() {
        let unpacked =
            |bytes: &[u8], count| booleans(bytes, count).map(|(data, splat)| (data.to_vec(), splat));
        assert_eq!(unpacked(&[0x01], 2), Some((vec![1, 0], false)));
        assert_eq!(unpacked(&[0xFF], 5), Some((vec![1], true)));
        assert_eq!(unpacked(&[0xF7, 0x03], 10), Some((vec![1, 1, 1, 0, 1, 1, 1, 1, 1, 1], false)));
        assert_eq!(unpacked(&[0x01], 1), Some((vec![1], true)));
        assert_eq!(unpacked(&[1, 0, 1], 3), Some((vec![1, 0, 1], false)));
        assert_eq!(unpacked(&[], 0), Some((vec![], false)));
        assert_eq!(unpacked(&[0], 0), Some((vec![0], true)));
        assert_eq!(unpacked(&[1, 1], 40), None);
    }

    #[test]
    fn narrow_integers_take_their_sign() {
        assert_eq!(narrow(0x0F, 4, true), 0xFF);
        assert_eq!(narrow(0x0F, 4, false), 0x0F);
        assert_eq!(narrow(0x02, 2, true), 0xFE);
    }
}
