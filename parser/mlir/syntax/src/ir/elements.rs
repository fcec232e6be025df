//! The storage of elements of dense attributes.

use super::{AttrId, Attribute, Module, Signedness, Type, TypeId};

/// Bits of a value of a type of numbers: of `complex<f32>` 64, of `index` 64; `None` of what is no number.
pub fn storage_bits(m: &Module, ty: TypeId) -> Option<u32> {
    match m.get_type(ty) {
        Type::Index => Some(64),
        Type::Integer { width, .. } => Some(*width),
        Type::Float(f) => Some(f.bits()),
        Type::Quantized(q) => Some(q.storage_bits),
        Type::Complex(part) => Some(2 * 8 * element_bytes(m, *part)? as u32),
        Type::None
        | Type::Vector { .. }
        | Type::Tensor { .. }
        | Type::UnrankedTensor(_)
        | Type::Tuple(_)
        | Type::Function { .. }
        | Type::Dialect { .. }
        | Type::Opaque(_) => None,
    }
}

/// Bytes that an element takes in the data of an attribute: the bits, rounded up to 1, 2, 4, 8 or 16 bytes.
pub fn element_bytes(m: &Module, ty: TypeId) -> Option<usize> {
    Some((storage_bits(m, ty)?.div_ceil(8).max(1) as usize).next_power_of_two())
}

/// Integers of `array<...>` or of elements.
pub fn ints(m: &Module, attribute: AttrId) -> Option<Vec<i64>> {
    let (element, data, count) = match m.get_attribute(attribute) {
        Attribute::DenseArray { element, data } => (*element, &data[..], None),
        Attribute::Elements { ty, splat, data } => match m.get_type(*ty) {
            Type::Tensor { dims, element, .. } => {
                let count = dims.iter().try_fold(1usize, |n, &d| n.checked_mul(usize::try_from(d).ok()?))?;
                (*element, &data[..], splat.then_some(count))
            }
            _ => return None,
        },
        // `[1, 2]` of integers.
        Attribute::Array(parts) => {
            return parts
                .iter()
                .map(|&p| match m.get_attribute(p) {
                    Attribute::Integer { value, .. } => i64::try_from(*value).ok(),
                    _ => None,
                })
                .collect();
        }
        _ => return None,
    };
    let unsigned = match m.get_type(element) {
        Type::Integer { width: 1, .. } => true,
        Type::Integer { sign, .. } => *sign == Signedness::Unsigned,
        Type::Index => false,
        _ => return None,
    };
    let width = element_bytes(m, element).filter(|&w| w <= 8)?;
    let mut values: Vec<i64> = data
        .chunks_exact(width)
        .map(|chunk| {
            let mut bytes = [0; 8];
            bytes[..width].copy_from_slice(chunk);
            let unused = 64 - 8 * width as u32;
            let n = u64::from_le_bytes(bytes);
            if unsigned { n as i64 } else { ((n << unused) as i64) >> unused }
        })
        .collect();
    const MAX_SPLAT_ELEMENTS: usize = 1 << 16;
    if let (Some(count), [one]) = (count, &values[..]) {
        values = vec![*one; Some(count).filter(|&n| n <= MAX_SPLAT_ELEMENTS)?];
    }
    Some(values)
}
