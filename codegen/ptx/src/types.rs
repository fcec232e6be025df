//! Types of PTX: what a register or an element of memory may be.

/// Whether values of a type are bits, integers, floating-point numbers or truth values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// `.b8` to `.b128`: no interpretation.
    Bits,
    /// `.u8` to `.u64`, and packed
    Unsigned,
    /// `.s8` to `.s64`, and packed
    Signed,
    /// Floating point, and packed
    Float,
    /// `.pred`
    Predicate,
}

macro_rules! types {
    ($($variant:ident $name:literal $bits:literal $class:ident $doc:literal;)*) => {
        /// A type of the ISA.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        pub enum Type { $(#[doc = $doc] $variant,)* }

        impl Type {
            /// Every type.
            pub const ALL: &'static [Type] = &[$(Type::$variant,)*];

            /// The type of a name without dot.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Type> {
                match name { $($name => Some(Type::$variant),)* _ => None }
            }

            /// The name without dot.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Type::$variant => $name,)* }
            }

            /// The width in bits; of a predicate 1.
            #[must_use]
            pub fn bits(self) -> u32 {
                match self { $(Type::$variant => $bits,)* }
            }

            /// The class.
            #[must_use]
            pub fn class(self) -> Class {
                match self { $(Type::$variant => Class::$class,)* }
            }
        }
    };
}

types! {
    B8 "b8" 8 Bits "8 bits"; B16 "b16" 16 Bits "16 bits"; B32 "b32" 32 Bits "32 bits"; B64 "b64" 64 Bits "64 bits";
    B128 "b128" 128 Bits "128 bits"; B1 "b1" 1 Bits "one bit, of matrices";
    U4 "u4" 4 Unsigned "4 bits, of matrices"; S4 "s4" 4 Signed "4 bits, of matrices";
    U8 "u8" 8 Unsigned "unsigned"; U16 "u16" 16 Unsigned "unsigned"; U32 "u32" 32 Unsigned "unsigned"; U64 "u64" 64 Unsigned "unsigned";
    S8 "s8" 8 Signed "signed"; S16 "s16" 16 Signed "signed"; S32 "s32" 32 Signed "signed"; S64 "s64" 64 Signed "signed";
    U16x2 "u16x2" 32 Unsigned "two packed"; S16x2 "s16x2" 32 Signed "two packed";
    F16 "f16" 16 Float "IEEE half"; F16x2 "f16x2" 32 Float "two packed";
    Bf16 "bf16" 16 Float "bfloat16"; Bf16x2 "bf16x2" 32 Float "two packed";
    Tf32 "tf32" 32 Float "10 fraction bits in 32"; F32 "f32" 32 Float "IEEE single"; F32x2 "f32x2" 64 Float "two packed";
    F64 "f64" 64 Float "IEEE double";
    E4m3 "e4m3" 8 Float "8 bits, no infinities"; E5m2 "e5m2" 8 Float "8 bits";
    E4m3x2 "e4m3x2" 16 Float "two packed"; E5m2x2 "e5m2x2" 16 Float "two packed";
    E2m3x2 "e2m3x2" 16 Float "two packed, each in the low 6 bits of a byte"; E3m2x2 "e3m2x2" 16 Float "two packed, each in the low 6 bits of a byte";
    E2m1x2 "e2m1x2" 8 Float "two packed in a byte"; Ue8m0x2 "ue8m0x2" 16 Float "two packed exponents";
    Pred "pred" 1 Predicate "a truth value";
    TexRef "texref" 64 Bits "opaque"; SamplerRef "samplerref" 64 Bits "opaque"; SurfRef "surfref" 64 Bits "opaque";
}

impl Type {
    /// Whether a register of this type may hold an operand of type `want`, at equal width: bits go with
    /// everything, signed and unsigned with each other, floating-point types with themselves.
    #[must_use]
    pub fn agrees(self, want: Type) -> bool {
        use Class::{Bits, Float, Predicate, Signed, Unsigned};
        match (self.class(), want.class()) {
            (Predicate, Predicate) => true,
            (Predicate, Bits | Unsigned | Signed | Float) | (Bits | Unsigned | Signed | Float, Predicate) => {
                false
            }
            (Bits, Bits | Unsigned | Signed | Float) | (Unsigned | Signed | Float, Bits) => true,
            (Unsigned | Signed, Unsigned | Signed) => true,
            (Unsigned | Signed, Float) | (Float, Unsigned | Signed) => false,
            // Narrow and packed formats have no registers of their own.
            (Float, Float) => self == want,
        }
    }

    /// Bytes of an element in memory.
    #[must_use]
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Whether the type is signed.
    #[must_use]
    pub fn is_signed(self) -> bool {
        self.class() == Class::Signed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_read_back() {
        for &t in Type::ALL {
            assert_eq!(Type::from_name(t.name()), Some(t));
        }
        assert_eq!(Type::from_name("f128"), None);
    }

    #[test]
    fn agreement() {
        assert!(Type::B32.agrees(Type::F32) && Type::U32.agrees(Type::S32) && Type::F32.agrees(Type::B32));
        assert!(!Type::F32.agrees(Type::S32) && !Type::Pred.agrees(Type::B32));
    }
}
