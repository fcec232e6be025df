//! Operands that count along the sorted dimension (iota), as `argsort` sorts beside the keys. Their elements
//! are indices.

use hlo::{AttrKey, ElementType, InstrId, Module, Opcode};

/// The element of an iota at an index.
pub(super) trait Count: Copy {
    fn count(index: usize) -> Self;
}

macro_rules! counts {
    ($($t:ty => |$i:ident| $value:expr;)*) => {
        $(impl Count for $t {
            #[inline(always)]
            fn count($i: usize) -> Self {
                $value
            }
        })*
    };
}
counts! {
    u8 => |i| i as u8;
    u16 => |i| i as u16;
    u32 => |i| i as u32;
    u64 => |i| i as u64;
    [u64; 2] => |i| [i as u64, 0];
}

/// Operands whose elements are known from their indices and never moved: each may share the memory of its
/// result.
pub(crate) fn known(module: &Module, id: InstrId) -> impl Iterator<Item = usize> {
    let instr = module.instr(id);
    let dimension = instr.attrs.ints_or_empty(AttrKey::Dimensions).first().map(|&d| usize::try_from(d));
    // A single operand is sorted in the memory of the result.
    let several = instr.operands().len() > 1;
    let known = move |o: InstrId| several && matches!(dimension, Some(Ok(d)) if counts(module, o, d));
    instr.operands().iter().enumerate().filter(move |&(_, &o)| known(o)).map(|(k, _)| k)
}

/// Whether an operand counts along the sorted dimension.
pub(super) fn counts(module: &Module, id: InstrId, dimension: usize) -> bool {
    let ty = module.instr(id).shape.as_array().map(|s| s.element_type);
    matches!(ty, Some(ElementType::S32 | ElementType::U32 | ElementType::S64 | ElementType::U64))
        && counts_along(module, id, dimension, 8)
}

/// Whether an array counts 0, 1, ... along a dimension and is the same along all others.
fn counts_along(module: &Module, id: InstrId, dimension: usize, depth: usize) -> bool {
    let instr = module.instr(id);
    let operand = |dimension: usize| {
        depth > 0 && instr.operands().first().is_some_and(|&o| counts_along(module, o, dimension, depth - 1))
    };
    // Not a dispatch: other operations are not recognized.
    match instr.opcode {
        Opcode::Iota => {
            instr.attrs.int(AttrKey::IotaDimension).and_then(|d| usize::try_from(d).ok()) == Some(dimension)
        }
        Opcode::Broadcast => {
            let dims = instr.attrs.ints_or_empty(AttrKey::Dimensions);
            dims.iter().position(|&d| usize::try_from(d) == Ok(dimension)).is_some_and(operand)
        }
        Opcode::Copy => operand(dimension),
        Opcode::Fusion => instr
            .attrs
            .computation(AttrKey::Calls)
            .is_some_and(|c| depth > 0 && counts_along(module, module.root(c), dimension, depth - 1)),
        _unknown => false,
    }
}
