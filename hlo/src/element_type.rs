//! Element types of arrays: one table, from which names, numbers, widths, storage types and literals follow.

use crate::small_float::{self as sf, FloatFormat};

/// Calls `$callback!` with the table of element types: variant, text name, number in XLA's `PrimitiveType`,
/// bits, class, Rust type that stores one element.
#[macro_export]
macro_rules! for_each_element_type {
    ($callback:ident) => {
        $callback! {
            Pred "pred" 1 8 Pred bool,
            S1 "s1" 30 1 Signed $crate::small_int::S1,
            S2 "s2" 26 2 Signed $crate::small_int::S2,
            S4 "s4" 21 4 Signed $crate::small_int::S4,
            S8 "s8" 2 8 Signed i8,
            S16 "s16" 3 16 Signed i16,
            S32 "s32" 4 32 Signed i32,
            S64 "s64" 5 64 Signed i64,
            U1 "u1" 31 1 Unsigned $crate::small_int::U1,
            U2 "u2" 27 2 Unsigned $crate::small_int::U2,
            U4 "u4" 22 4 Unsigned $crate::small_int::U4,
            U8 "u8" 6 8 Unsigned u8,
            U16 "u16" 7 16 Unsigned u16,
            U32 "u32" 8 32 Unsigned u32,
            U64 "u64" 9 64 Unsigned u64,
            F16 "f16" 10 16 Float $crate::half::f16,
            BF16 "bf16" 16 16 Float $crate::half::bf16,
            F32 "f32" 11 32 Float f32,
            F64 "f64" 12 64 Float f64,
            F8E5M2 "f8e5m2" 19 8 Float $crate::small_float::F8E5M2,
            F8E4M3 "f8e4m3" 28 8 Float $crate::small_float::F8E4M3,
            F8E4M3FN "f8e4m3fn" 20 8 Float $crate::small_float::F8E4M3FN,
            F8E4M3B11FNUZ "f8e4m3b11fnuz" 23 8 Float $crate::small_float::F8E4M3B11FNUZ,
            F8E3M4 "f8e3m4" 29 8 Float $crate::small_float::F8E3M4,
            F8E5M2FNUZ "f8e5m2fnuz" 24 8 Float $crate::small_float::F8E5M2FNUZ,
            F8E4M3FNUZ "f8e4m3fnuz" 25 8 Float $crate::small_float::F8E4M3FNUZ,
            F8E8M0FNU "f8e8m0fnu" 33 8 Float $crate::small_float::F8E8M0FNU,
            F4E2M1FN "f4e2m1fn" 32 4 Float $crate::small_float::F4E2M1FN,
            F6E3M2FN "f6e3m2fn" 35 6 Float $crate::small_float::F6E3M2FN,
            F6E2M3FN "f6e2m3fn" 36 6 Float $crate::small_float::F6E2M3FN,
            C64 "c64" 15 64 Complex $crate::num_complex::Complex<f32>,
            C128 "c128" 18 128 Complex $crate::num_complex::Complex<f64>,
        }
    };
}

/// What kind of number an element type holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TypeClass {
    /// `pred`.
    Pred,
    /// Two's complement integers.
    Signed,
    /// Unsigned integers.
    Unsigned,
    /// Real floating point.
    Float,
    /// Pairs of floats.
    Complex,
}

macro_rules! define_element_type {
    ($($variant:ident $name:literal $number:literal $bits:literal $class:ident $rust:ty,)*) => {
        /// The type of one element of an array (XLA: `PrimitiveType`, `xla/xla_data.proto`).
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[allow(missing_docs, reason = "the variants are XLA's own names; the table above says what each is")]
        pub enum ElementType { $($variant),* }

        impl ElementType {
            /// All of them, in the order of the table.
            pub const ALL: &'static [ElementType] = &[$(ElementType::$variant),*];

            /// The name in HLO text.
            pub const fn name(self) -> &'static str {
                match self { $(ElementType::$variant => $name),* }
            }

            /// The number in XLA's `PrimitiveType`.
            pub const fn xla_number(self) -> u8 {
                match self { $(ElementType::$variant => $number),* }
            }

            /// Bits of one element; `pred` occupies a byte.
            pub const fn bits(self) -> u32 {
                match self { $(ElementType::$variant => $bits),* }
            }

            /// Its class.
            pub const fn class(self) -> TypeClass {
                match self { $(ElementType::$variant => TypeClass::$class),* }
            }

            /// Bytes that one element takes in a [`Buffer`](crate::literal::Buffer) (sub-byte types are not
            /// packed).
            pub const fn storage_bytes(self) -> usize {
                match self { $(ElementType::$variant => size_of::<$rust>()),* }
            }

            /// The type with this text name.
            pub fn from_name(name: &str) -> Option<Self> {
                Some(match name { $($name => ElementType::$variant,)* _ => return None })
            }
        }

        $(impl Element for $rust {
            const TYPE: ElementType = ElementType::$variant;
        })*
    };
}

/// A Rust type that stores one element of an array of type [`Element::TYPE`].
pub trait Element: Copy + Default + Send + Sync + std::fmt::Debug + 'static {
    /// The element type that it stores.
    const TYPE: ElementType;
}

for_each_element_type!(define_element_type);

/// Evaluates an expression with a type alias bound to the Rust type of an [`ElementType`] value:
/// `with_element_type!(ty, T => foo::<T>())`. The match is exhaustive.
#[macro_export]
macro_rules! with_element_type {
    ($ty:expr, $T:ident => $body:expr) => {
        match $ty {
            $crate::ElementType::Pred => {
                type $T = bool;
                $body
            }
            $crate::ElementType::S1 => {
                type $T = $crate::small_int::S1;
                $body
            }
            $crate::ElementType::S2 => {
                type $T = $crate::small_int::S2;
                $body
            }
            $crate::ElementType::S4 => {
                type $T = $crate::small_int::S4;
                $body
            }
            $crate::ElementType::S8 => {
                type $T = i8;
                $body
            }
            $crate::ElementType::S16 => {
                type $T = i16;
                $body
            }
            $crate::ElementType::S32 => {
                type $T = i32;
                $body
            }
            $crate::ElementType::S64 => {
                type $T = i64;
                $body
            }
            $crate::ElementType::U1 => {
                type $T = $crate::small_int::U1;
                $body
            }
            $crate::ElementType::U2 => {
                type $T = $crate::small_int::U2;
                $body
            }
            $crate::ElementType::U4 => {
                type $T = $crate::small_int::U4;
                $body
            }
            $crate::ElementType::U8 => {
                type $T = u8;
                $body
            }
            $crate::ElementType::U16 => {
                type $T = u16;
                $body
            }
            $crate::ElementType::U32 => {
                type $T = u32;
                $body
            }
            $crate::ElementType::U64 => {
                type $T = u64;
                $body
            }
            $crate::ElementType::F16 => {
                type $T = $crate::half::f16;
                $body
            }
            $crate::ElementType::BF16 => {
                type $T = $crate::half::bf16;
                $body
            }
            $crate::ElementType::F32 => {
                type $T = f32;
                $body
            }
            $crate::ElementType::F64 => {
                type $T = f64;
                $body
            }
            $crate::ElementType::F8E5M2 => {
                type $T = $crate::small_float::F8E5M2;
                $body
            }
            $crate::ElementType::F8E4M3 => {
                type $T = $crate::small_float::F8E4M3;
                $body
            }
            $crate::ElementType::F8E4M3FN => {
                type $T = $crate::small_float::F8E4M3FN;
                $body
            }
            $crate::ElementType::F8E4M3B11FNUZ => {
                type $T = $crate::small_float::F8E4M3B11FNUZ;
                $body
            }
            $crate::ElementType::F8E3M4 => {
                type $T = $crate::small_float::F8E3M4;
                $body
            }
            $crate::ElementType::F8E5M2FNUZ => {
                type $T = $crate::small_float::F8E5M2FNUZ;
                $body
            }
            $crate::ElementType::F8E4M3FNUZ => {
                type $T = $crate::small_float::F8E4M3FNUZ;
                $body
            }
            $crate::ElementType::F8E8M0FNU => {
                type $T = $crate::small_float::F8E8M0FNU;
                $body
            }
            $crate::ElementType::F4E2M1FN => {
                type $T = $crate::small_float::F4E2M1FN;
                $body
            }
            $crate::ElementType::F6E3M2FN => {
                type $T = $crate::small_float::F6E3M2FN;
                $body
            }
            $crate::ElementType::F6E2M3FN => {
                type $T = $crate::small_float::F6E2M3FN;
                $body
            }
            $crate::ElementType::C64 => {
                type $T = $crate::num_complex::Complex<f32>;
                $body
            }
            $crate::ElementType::C128 => {
                type $T = $crate::num_complex::Complex<f64>;
                $body
            }
        }
    };
}

impl ElementType {
    /// `s1` to `u64`; not `pred`.
    pub const fn is_integer(self) -> bool {
        matches!(self.class(), TypeClass::Signed | TypeClass::Unsigned)
    }

    /// Signed integers.
    pub const fn is_signed_integer(self) -> bool {
        matches!(self.class(), TypeClass::Signed)
    }

    /// Unsigned integers.
    pub const fn is_unsigned_integer(self) -> bool {
        matches!(self.class(), TypeClass::Unsigned)
    }

    /// The least and the greatest number of a type of integers, which `pred` is not.
    pub const fn integer_limits(self) -> Option<(i128, i128)> {
        let bits = self.bits();
        match self.class() {
            TypeClass::Unsigned => Some((0, (1 << bits) - 1)),
            TypeClass::Signed => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
            TypeClass::Pred | TypeClass::Float | TypeClass::Complex => None,
        }
    }

    /// Real floating point.
    pub const fn is_float(self) -> bool {
        matches!(self.class(), TypeClass::Float)
    }

    /// `c64` and `c128`.
    pub const fn is_complex(self) -> bool {
        matches!(self.class(), TypeClass::Complex)
    }

    /// The type of the real and imaginary parts; a non-complex type is its own.
    pub const fn real_part(self) -> ElementType {
        match self.class() {
            TypeClass::Complex => match self.bits() {
                64 => ElementType::F32,
                _ => ElementType::F64,
            },
            TypeClass::Pred | TypeClass::Signed | TypeClass::Unsigned | TypeClass::Float => self,
        }
    }

    /// The complex type whose parts are this type, for `f32` and `f64`.
    pub fn complex_of(self) -> Option<ElementType> {
        if self == ElementType::F32 {
            Some(ElementType::C64)
        } else if self == ElementType::F64 {
            Some(ElementType::C128)
        } else {
            None
        }
    }

    /// The format of a float of at most 32 bits.
    pub const fn float_format(self) -> Option<FloatFormat> {
        match self {
            ElementType::F32 => Some(FloatFormat::F32),
            ElementType::F16 => Some(FloatFormat::F16),
            ElementType::BF16 => Some(FloatFormat::BF16),
            ElementType::F8E5M2 => Some(sf::F8E5M2::FORMAT),
            ElementType::F8E4M3 => Some(sf::F8E4M3::FORMAT),
            ElementType::F8E4M3FN => Some(sf::F8E4M3FN::FORMAT),
            ElementType::F8E4M3B11FNUZ => Some(sf::F8E4M3B11FNUZ::FORMAT),
            ElementType::F8E3M4 => Some(sf::F8E3M4::FORMAT),
            ElementType::F8E5M2FNUZ => Some(sf::F8E5M2FNUZ::FORMAT),
            ElementType::F8E4M3FNUZ => Some(sf::F8E4M3FNUZ::FORMAT),
            ElementType::F8E8M0FNU => Some(sf::F8E8M0FNU::FORMAT),
            ElementType::F4E2M1FN => Some(sf::F4E2M1FN::FORMAT),
            ElementType::F6E3M2FN => Some(sf::F6E3M2FN::FORMAT),
            ElementType::F6E2M3FN => Some(sf::F6E2M3FN::FORMAT),
            ElementType::F64
            | ElementType::Pred
            | ElementType::S1
            | ElementType::S2
            | ElementType::S4
            | ElementType::S8
            | ElementType::S16
            | ElementType::S32
            | ElementType::S64
            | ElementType::U1
            | ElementType::U2
            | ElementType::U4
            | ElementType::U8
            | ElementType::U16
            | ElementType::U32
            | ElementType::U64
            | ElementType::C64
            | ElementType::C128 => None,
        }
    }

    /// Whether every value of another type of the same kind (integers, floats, complex numbers) is one of
    /// this type, so that a conversion to this type changes nothing but bits of NaNs. More bits do not say
    /// so: `f16` holds neither the numbers of `bf16` nor those of `f8e8m0fnu`.
    pub fn holds(self, other: ElementType) -> bool {
        if self == other {
            return true;
        }
        if self.is_complex() || other.is_complex() {
            return self.is_complex() && other.is_complex() && self.real_part().holds(other.real_part());
        }
        if self.is_float() && other.is_float() {
            return match (self.float_format(), other.float_format()) {
                (Some(own), Some(other)) => own.holds(other),
                // `f64`.
                (own, _) => own.is_none(),
            };
        }
        match (self.integer_limits(), other.integer_limits()) {
            (Some(own), Some(other)) => own.0 <= other.0 && other.1 <= own.1,
            (_, _) => false,
        }
    }

    /// The type in which values of two types of the same kind are compared: one of them, or `f32` where
    /// neither float holds the other, as it holds all that are narrower.
    pub fn holding(self, other: ElementType) -> ElementType {
        if self.holds(other) {
            self
        } else if other.holds(self) || !(self.is_float() && other.is_float()) {
            other
        } else {
            ElementType::F32
        }
    }

    /// Whether an element is narrower than a byte.
    pub const fn is_sub_byte(self) -> bool {
        self.bits() < 8
    }
}

impl std::fmt::Display for ElementType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
