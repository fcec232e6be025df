//! Enumerations of the C API that are numbers at the border.

use hlo::ElementType;

/// The version of the API whose structs and functions these are.
pub const API_VERSION: (i32, i32) = (0, 114);

/// `PJRT_HostBufferSemantics`: until when the caller leaves the bytes of a host buffer as they are.
pub mod semantics {
    /// The bytes are as they are during the call alone.
    pub const IMMUTABLE_ONLY_DURING_CALL: u32 = 0;
    /// Until the event says that they are not needed.
    pub const IMMUTABLE_UNTIL_TRANSFER_COMPLETES: u32 = 1;
    /// As long as the buffer lives, which may share them.
    pub const IMMUTABLE_ZERO_COPY: u32 = 2;
    /// The same, and the buffer may be given away to be written to.
    pub const MUTABLE_ZERO_COPY: u32 = 3;
}

/// `PJRT_NamedValue_Type`.
pub mod named_value {
    /// Text.
    pub const STRING: u32 = 0;
    /// A number.
    pub const INT64: u32 = 1;
    /// Numbers.
    pub const INT64_LIST: u32 = 2;
    /// A float.
    pub const FLOAT: u32 = 3;
    /// True or false.
    pub const BOOL: u32 = 4;
}

/// `PJRT_Buffer_MemoryLayout_Type`.
pub mod layout_type {
    /// An order of the dimensions, and tiles.
    pub const TILED: u32 = 0;
    /// A stride for each dimension.
    pub const STRIDES: u32 = 1;
}

/// `PJRT_Buffer_Type` of tokens, which are no arrays.
pub const TOKEN: u32 = 23;

/// `PJRT_Buffer_Type` of each element type.
const TYPES: [(u32, ElementType); 32] = [
    (1, ElementType::Pred),
    (2, ElementType::S8),
    (3, ElementType::S16),
    (4, ElementType::S32),
    (5, ElementType::S64),
    (6, ElementType::U8),
    (7, ElementType::U16),
    (8, ElementType::U32),
    (9, ElementType::U64),
    (10, ElementType::F16),
    (11, ElementType::F32),
    (12, ElementType::F64),
    (13, ElementType::BF16),
    (14, ElementType::C64),
    (15, ElementType::C128),
    (16, ElementType::F8E5M2),
    (17, ElementType::F8E4M3FN),
    (18, ElementType::F8E4M3B11FNUZ),
    (19, ElementType::F8E5M2FNUZ),
    (20, ElementType::F8E4M3FNUZ),
    (21, ElementType::S4),
    (22, ElementType::U4),
    (24, ElementType::S2),
    (25, ElementType::U2),
    (26, ElementType::F8E4M3),
    (27, ElementType::F8E3M4),
    (28, ElementType::F8E8M0FNU),
    (29, ElementType::F4E2M1FN),
    (30, ElementType::S1),
    (31, ElementType::U1),
    (32, ElementType::F6E2M3FN),
    (33, ElementType::F6E3M2FN),
];

/// The element type of a `PJRT_Buffer_Type`.
pub fn element_type(number: u32) -> Option<ElementType> {
    TYPES.iter().find(|t| t.0 == number).map(|t| t.1)
}

/// The `PJRT_Buffer_Type` of an element type.
pub fn buffer_type(ty: ElementType) -> u32 {
    TYPES.iter().find(|t| t.1 == ty).map_or(0, |t| t.0)
}

/// Bytes of an array: sub-byte types have a byte for each element.
pub fn array_bytes(shape: &hlo::ArrayShape) -> Option<usize> {
    let elements = usize::try_from(shape.checked_elements()?).ok()?;
    elements.checked_mul(shape.element_type.storage_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_type_has_a_number() {
        for &ty in ElementType::ALL {
            assert_eq!(element_type(buffer_type(ty)), Some(ty), "{}", ty.name());
        }
        assert_eq!(element_type(0), None);
        assert_eq!(element_type(TOKEN), None);
    }
}
