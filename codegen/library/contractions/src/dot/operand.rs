//! What is known of the operands and the result of a product when a program is compiled.

use hlo::{ElementType, TypeClass};

use super::convert::Conversion;
use super::steps::Steps;

/// The numbers that products are computed in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Field {
    /// Floats of at most 32 bits.
    F32,
    /// Floats of which one is `f64`; those that become `f8e8m0fnu`, where what is too small for `f32` is no
    /// zero but the smallest number.
    F64,
    /// Integers modulo 2^32.
    I32,
    /// Integers modulo 2^64.
    I64,
    /// `c64`.
    C64,
    /// `c128`.
    C128,
}

impl Field {
    /// For operands and result of these types, and the type that operands are converted to first if they are
    /// not of the result's class.
    pub(crate) fn of(lhs: ElementType, rhs: ElementType, result: ElementType) -> (Field, ElementType) {
        // Sums of floats that are wanted as integers are sums in f32.
        let ty =
            if lhs.is_float() && rhs.is_float() && result.is_integer() { ElementType::F32 } else { result };
        let field = match ty.class() {
            TypeClass::Float => {
                let wide = [ty, lhs, rhs].contains(&ElementType::F64) || ty == ElementType::F8E8M0FNU;
                if wide { Field::F64 } else { Field::F32 }
            }
            TypeClass::Pred => Field::I32,
            TypeClass::Signed | TypeClass::Unsigned => {
                if ty.bits() == 64 {
                    Field::I64
                } else {
                    Field::I32
                }
            }
            TypeClass::Complex => {
                if ty.bits() == 64 {
                    Field::C64
                } else {
                    Field::C128
                }
            }
        };
        (field, ty)
    }

    /// The element type that words of one term are.
    pub(crate) fn word(self) -> ElementType {
        match self {
            Field::F32 => ElementType::F32,
            Field::F64 => ElementType::F64,
            Field::I32 => ElementType::S32,
            Field::I64 => ElementType::S64,
            Field::C64 => ElementType::C64,
            Field::C128 => ElementType::C128,
        }
    }

    /// How an operand of a type comes into a sum of type `ty`: `None` if its elements can be packed as they
    /// are.
    pub(crate) fn conversion(self, from: ElementType, ty: ElementType) -> Option<Conversion> {
        let float = from.is_float() && ty.is_float();
        let through = if float { from } else { ty };
        (!self.packs(from, ty)).then_some(Conversion { from, through, to: self.word() })
    }

    /// Whether elements of a type can be packed as they are in a sum of type `ty`.
    fn packs(self, from: ElementType, ty: ElementType) -> bool {
        match self {
            Field::F32 => from.is_float() && from != ElementType::F64,
            Field::F64 => from == ElementType::F64 || from == ElementType::F32,
            // Words are taken modulo 2^32, whichever integer type is between.
            Field::I32 if ty == ElementType::Pred => from == ElementType::Pred,
            Field::I32 => (from.is_integer() || from == ElementType::Pred) && from.bits() <= 32,
            Field::I64 => from == ElementType::S64 || from == ElementType::U64,
            Field::C64 | Field::C128 => from == self.word(),
        }
    }

    /// How an operand that is seen as another, wider type than it has in memory comes into a sum of type
    /// `ty`. `Err`: in more steps than one.
    pub(crate) fn seen(
        self,
        memory: ElementType,
        seen: ElementType,
        ty: ElementType,
    ) -> Result<Option<Conversion>, ()> {
        let plain = self.conversion(seen, ty);
        if memory == seen {
            return Ok(plain);
        }
        let to = self.word();
        match plain {
            None if self.packs(memory, ty) => Ok(None),
            None => Ok(Some(Conversion { from: memory, through: seen, to })),
            Some(_) => Err(()),
        }
    }
}

/// An operand as matrices.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    /// Its element type in memory.
    pub(crate) ty: ElementType,
    /// Whether and how it is converted first.
    pub(crate) conversion: Option<Conversion>,
    /// Number of elements.
    pub(crate) elements: usize,
    /// Where its first one is.
    pub(crate) offset: isize,
    pub(crate) batch: Steps,
    /// What is neither batch nor summed over.
    pub(crate) rows: Steps,
    pub(crate) terms: Steps,
}

impl Operand {
    /// The type of the elements that are packed.
    pub(crate) fn packed_type(&self) -> ElementType {
        self.conversion.map_or(self.ty, |c| c.to)
    }

    /// Bytes of scratch memory for its converted elements.
    pub(crate) fn scratch(&self) -> usize {
        self.conversion.map_or(0, |c| c.to.storage_bytes().saturating_mul(self.elements)).next_multiple_of(64)
    }
}
