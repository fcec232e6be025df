//! The storage of elements of dense attributes.

use super::{Module, Type, TypeId};

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
