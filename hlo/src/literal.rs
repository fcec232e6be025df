//! Literals: constant values.
//!
//! **Invariants:** an array literal's buffer holds exactly the product of its dimensions, in row-major order
//! of logical indices whatever the layout of the instruction that carries it; sub-byte elements take a byte
//! each, normalized (sign- or zero-extended). Clones of an array share its buffer, which is not written while
//! it is shared.

use std::sync::Arc;

use crate::element_type::{Element, ElementType};
use crate::shape::{ArrayShape, Dims, Shape};

macro_rules! define_buffer {
    ($($variant:ident $name:literal $number:literal $bits:literal $class:ident $rust:ty,)*) => {
        /// The elements of an array, typed.
        #[derive(Clone, Debug)]
        #[allow(missing_docs, reason = "one variant for each element type")]
        pub enum Buffer { $($variant(Vec<$rust>)),* }

        impl Buffer {
            /// The type of the elements.
            pub fn element_type(&self) -> ElementType {
                match self { $(Buffer::$variant(_) => ElementType::$variant),* }
            }

            /// Bytes that the elements take in memory.
            pub fn bytes(&self) -> u64 {
                self.len() as u64 * self.element_type().storage_bytes() as u64
            }

            /// Number of elements.
            pub fn len(&self) -> usize {
                match self { $(Buffer::$variant(v) => v.len()),* }
            }

            /// Whether there are none.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// `n` elements of zero (false, +0).
            pub fn zeros(ty: ElementType, n: usize) -> Buffer {
                match ty { $(ElementType::$variant => Buffer::$variant(vec![<$rust>::default(); n])),* }
            }
        }

        $(impl BufferOf for $rust {
            fn wrap(v: Vec<Self>) -> Buffer {
                Buffer::$variant(v)
            }
            fn slice(b: &Buffer) -> Option<&[Self]> {
                if let Buffer::$variant(v) = b { Some(v) } else { None }
            }
            fn slice_mut(b: &mut Buffer) -> Option<&mut Vec<Self>> {
                if let Buffer::$variant(v) = b { Some(v) } else { None }
            }
            fn unwrap(b: Buffer) -> Option<Vec<Self>> {
                if let Buffer::$variant(v) = b { Some(v) } else { None }
            }
        })*
    };
}

/// Moves between a typed vector and a [`Buffer`].
pub trait BufferOf: Element + Bits {
    /// The buffer that holds `v`.
    fn wrap(v: Vec<Self>) -> Buffer;
    /// The elements, if the buffer is of this type.
    fn slice(b: &Buffer) -> Option<&[Self]>;
    /// The elements, if the buffer is of this type.
    fn slice_mut(b: &mut Buffer) -> Option<&mut Vec<Self>>;
    /// The vector inside, if the buffer is of this type.
    fn unwrap(b: Buffer) -> Option<Vec<Self>>;
}

crate::for_each_element_type!(define_buffer);

/// Runs a block with the vector inside a [`Buffer`] bound to a name: `with_buffer!(&buffer, v => v.len())`.
/// Works on `&Buffer`, `&mut Buffer` and `Buffer`; the match is exhaustive.
#[macro_export]
macro_rules! with_buffer {
    ($buffer:expr, $v:ident => $body:expr) => {
        match $buffer {
            $crate::literal::Buffer::Pred($v) => $body,
            $crate::literal::Buffer::S1($v) => $body,
            $crate::literal::Buffer::S2($v) => $body,
            $crate::literal::Buffer::S4($v) => $body,
            $crate::literal::Buffer::S8($v) => $body,
            $crate::literal::Buffer::S16($v) => $body,
            $crate::literal::Buffer::S32($v) => $body,
            $crate::literal::Buffer::S64($v) => $body,
            $crate::literal::Buffer::U1($v) => $body,
            $crate::literal::Buffer::U2($v) => $body,
            $crate::literal::Buffer::U4($v) => $body,
            $crate::literal::Buffer::U8($v) => $body,
            $crate::literal::Buffer::U16($v) => $body,
            $crate::literal::Buffer::U32($v) => $body,
            $crate::literal::Buffer::U64($v) => $body,
            $crate::literal::Buffer::F16($v) => $body,
            $crate::literal::Buffer::BF16($v) => $body,
            $crate::literal::Buffer::F32($v) => $body,
            $crate::literal::Buffer::F64($v) => $body,
            $crate::literal::Buffer::F8E5M2($v) => $body,
            $crate::literal::Buffer::F8E4M3($v) => $body,
            $crate::literal::Buffer::F8E4M3FN($v) => $body,
            $crate::literal::Buffer::F8E4M3B11FNUZ($v) => $body,
            $crate::literal::Buffer::F8E3M4($v) => $body,
            $crate::literal::Buffer::F8E5M2FNUZ($v) => $body,
            $crate::literal::Buffer::F8E4M3FNUZ($v) => $body,
            $crate::literal::Buffer::F8E8M0FNU($v) => $body,
            $crate::literal::Buffer::F4E2M1FN($v) => $body,
            $crate::literal::Buffer::F6E3M2FN($v) => $body,
            $crate::literal::Buffer::F6E2M3FN($v) => $body,
            $crate::literal::Buffer::C64($v) => $body,
            $crate::literal::Buffer::C128($v) => $body,
        }
    };
}

/// An array value. Clones share the elements.
#[derive(Clone, Debug)]
pub struct ArrayLiteral {
    /// Dimensions as declared (bounds of dynamic ones).
    pub dims: Dims,
    /// The elements; [`Arc::make_mut`] writes to them.
    pub buffer: Arc<Buffer>,
}

/// A constant value of any shape.
#[derive(Clone, Debug)]
pub enum Literal {
    /// An array.
    Array(ArrayLiteral),
    /// A tuple.
    Tuple(Vec<Literal>),
    /// A token, which carries nothing.
    Token,
}

/// What a `constant` instruction (or a custom call's `literal`) says.
#[derive(Clone, Debug)]
pub enum ConstantValue {
    /// The text gave every element.
    Given(Arc<Literal>),
    /// The text elided the value: `constant({...})`. Whoever needs one uses
    /// [`crate::elided::elided_literal`].
    Elided,
}

impl ArrayLiteral {
    /// From parts; `None` if the number of elements is not the product of the dimensions.
    pub fn new(dims: Dims, buffer: impl Into<Arc<Buffer>>) -> Option<Self> {
        let buffer = buffer.into();
        let n = ArrayShape::new(buffer.element_type(), &dims).checked_elements()?;
        (usize::try_from(n).ok()? == buffer.len()).then_some(Self { dims, buffer })
    }

    /// Its shape, without a layout.
    pub fn shape(&self) -> ArrayShape {
        ArrayShape::new(self.buffer.element_type(), &self.dims)
    }

    /// The elements; copied if somebody shares them.
    pub fn into_buffer(self) -> Buffer {
        Arc::unwrap_or_clone(self.buffer)
    }
}

impl Literal {
    /// A scalar.
    pub fn scalar<T: BufferOf>(value: T) -> Literal {
        Literal::Array(ArrayLiteral { dims: Dims::new(), buffer: T::wrap(vec![value]).into() })
    }

    /// Its shape, without layouts.
    pub fn shape(&self) -> Shape {
        match self {
            Literal::Array(a) => Shape::Array(a.shape()),
            Literal::Tuple(t) => Shape::tuple(t.iter().map(Literal::shape)),
            Literal::Token => Shape::Token,
        }
    }

    /// The array, if it is one.
    pub fn as_array(&self) -> Option<&ArrayLiteral> {
        match self {
            Literal::Array(a) => Some(a),
            Literal::Tuple(_) | Literal::Token => None,
        }
    }

    /// All arrays inside, tuples flattened in order.
    pub fn arrays(&self) -> Vec<&ArrayLiteral> {
        match self {
            Literal::Array(a) => vec![a],
            Literal::Tuple(t) => t.iter().flat_map(Literal::arrays).collect(),
            Literal::Token => Vec::new(),
        }
    }
}

/// Equal to the bit: NaNs with the same payload are equal, +0 and -0 are not.
impl PartialEq for Buffer {
    fn eq(&self, other: &Buffer) -> bool {
        self.element_type() == other.element_type()
            && self.len() == other.len()
            && crate::with_buffer!(self, a => same_bits(a, other))
    }
}

fn same_bits<T: BufferOf + Bits>(a: &[T], other: &Buffer) -> bool {
    T::slice(other).is_some_and(|b| a.iter().zip(b).all(|(&a, &b)| a.bits() == b.bits()))
}

/// The raw bits of an element, zero-extended; sub-byte types in the low bits.
pub trait Bits: Copy {
    /// As an integer.
    fn bits(self) -> u128;
    /// From the low bits of an integer; higher bits are ignored.
    fn from_bits(bits: u128) -> Self;
}

macro_rules! bits_of {
    ($($t:ty => |$x:ident| $to:expr, |$b:ident| $from:expr;)*) => {
        $(impl Bits for $t {
            fn bits(self) -> u128 { let $x = self; $to }
            fn from_bits($b: u128) -> Self { $from }
        })*
    };
}

bits_of! {
    bool => |x| x as u128, |b| b & 1 == 1;
    i8 => |x| x as u8 as u128, |b| b as i8;
    i16 => |x| x as u16 as u128, |b| b as i16;
    i32 => |x| x as u32 as u128, |b| b as i32;
    i64 => |x| x as u64 as u128, |b| b as i64;
    u8 => |x| x as u128, |b| b as u8;
    u16 => |x| x as u128, |b| b as u16;
    u32 => |x| x as u128, |b| b as u32;
    u64 => |x| x as u128, |b| b as u64;
    half::f16 => |x| x.to_bits() as u128, |b| half::f16::from_bits(b as u16);
    half::bf16 => |x| x.to_bits() as u128, |b| half::bf16::from_bits(b as u16);
    f32 => |x| x.to_bits() as u128, |b| f32::from_bits(b as u32);
    f64 => |x| x.to_bits() as u128, |b| f64::from_bits(b as u64);
    num_complex::Complex<f32> => |x| x.re.to_bits() as u128 | (x.im.to_bits() as u128) << 32,
        |b| num_complex::Complex::new(f32::from_bits(b as u32), f32::from_bits((b >> 32) as u32));
    num_complex::Complex<f64> => |x| x.re.to_bits() as u128 | (x.im.to_bits() as u128) << 64,
        |b| num_complex::Complex::new(f64::from_bits(b as u64), f64::from_bits((b >> 64) as u64));
}

macro_rules! bits_of_small {
    ($($t:ident),*) => {
        $(impl Bits for crate::small_float::$t {
            fn bits(self) -> u128 { self.to_bits() as u128 }
            fn from_bits(b: u128) -> Self { crate::small_float::$t::from_bits(b as u8) }
        })*
    };
}
bits_of_small!(
    F8E5M2,
    F8E4M3,
    F8E4M3FN,
    F8E4M3B11FNUZ,
    F8E3M4,
    F8E5M2FNUZ,
    F8E4M3FNUZ,
    F8E8M0FNU,
    F4E2M1FN,
    F6E3M2FN,
    F6E2M3FN
);

macro_rules! bits_of_small_int {
    ($($t:ident),*) => {
        $(impl Bits for crate::small_int::$t {
            fn bits(self) -> u128 { self.to_bits() as u128 }
            fn from_bits(b: u128) -> Self { crate::small_int::$t::from_bits(b as u8) }
        })*
    };
}
bits_of_small_int!(S1, S2, S4, U1, U2, U4);

impl PartialEq for ArrayLiteral {
    fn eq(&self, other: &Self) -> bool {
        self.dims == other.dims && (Arc::ptr_eq(&self.buffer, &other.buffer) || self.buffer == other.buffer)
    }
}

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Literal::Array(a), Literal::Array(b)) => a == b,
            (Literal::Tuple(a), Literal::Tuple(b)) => a == b,
            (Literal::Token, Literal::Token) => true,
            (Literal::Array(_) | Literal::Tuple(_) | Literal::Token, _) => false,
        }
    }
}

impl PartialEq for ConstantValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (ConstantValue::Given(a), ConstantValue::Given(b)) => Arc::ptr_eq(a, b) || a == b,
            (ConstantValue::Elided, ConstantValue::Elided) => true,
            (ConstantValue::Given(_) | ConstantValue::Elided, _) => false,
        }
    }
}
