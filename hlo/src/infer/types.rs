//! Element types and dimensions compared the way XLA compares them.

use std::fmt;

use crate::element_type::{ElementType, TypeClass};
use crate::shape::{ArrayShape, Shape, UNBOUNDED};

/// A set of classes of element types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Classes(u8);

impl Classes {
    pub(super) const PRED: Classes = Classes(1);
    pub(super) const SIGNED: Classes = Classes(2);
    pub(super) const UNSIGNED: Classes = Classes(4);
    pub(super) const FLOAT: Classes = Classes(8);
    pub(super) const COMPLEX: Classes = Classes(16);
    pub(super) const INTEGER: Classes = Classes::SIGNED.or(Classes::UNSIGNED);
    pub(super) const REAL: Classes = Classes::INTEGER.or(Classes::FLOAT);
    pub(super) const NUMBER: Classes = Classes::REAL.or(Classes::COMPLEX);
    pub(super) const ORDERED: Classes = Classes::PRED.or(Classes::REAL);
    pub(super) const ANY: Classes = Classes::PRED.or(Classes::NUMBER);

    pub(super) const fn or(self, other: Classes) -> Classes {
        Classes(self.0 | other.0)
    }

    pub(super) const fn contains(self, ty: ElementType) -> bool {
        let bit = match ty.class() {
            TypeClass::Pred => Classes::PRED,
            TypeClass::Signed => Classes::SIGNED,
            TypeClass::Unsigned => Classes::UNSIGNED,
            TypeClass::Float => Classes::FLOAT,
            TypeClass::Complex => Classes::COMPLEX,
        };
        self.0 & bit.0 != 0
    }
}

/// `pred or an integer`
impl fmt::Display for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        let has = |c: Classes| self.0 & c.0 == c.0;
        if has(Classes::PRED) {
            words.push("pred");
        }
        if has(Classes::INTEGER) {
            words.push("an integer");
        } else if has(Classes::SIGNED) {
            words.push("a signed integer");
        } else if has(Classes::UNSIGNED) {
            words.push("an unsigned integer");
        }
        if has(Classes::FLOAT) {
            words.push("a float");
        }
        if has(Classes::COMPLEX) {
            words.push("complex");
        }
        match words.split_last() {
            None => Ok(()),
            Some((last, [])) => f.write_str(last),
            Some((last, rest)) => write!(f, "{} or {last}", rest.join(", ")),
        }
    }
}

/// Equal, or both floats.
pub(super) fn same_ignoring_precision(a: ElementType, b: ElementType) -> bool {
    a == b || a.is_float() && b.is_float()
}

/// Whether two sizes may be the same at run time.
pub(super) fn same_size(a: i64, b: i64) -> bool {
    a == b || a == UNBOUNDED || b == UNBOUNDED
}

/// [`same_size`] of all dimensions.
pub(super) fn same_dims(a: &[i64], b: &[i64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| same_size(a, b))
}

/// Equal to a scalar of `ty`, but for the width of floats.
pub(super) fn is_scalar_of(shape: &Shape, ty: ElementType) -> bool {
    shape.as_array().is_some_and(|a| a.dims.is_empty() && same_ignoring_precision(a.element_type, ty))
}

/// Range and precision of a float type: one past the largest exponent, significant bits.
const fn float_rank(ty: ElementType) -> (i32, i32) {
    match ty {
        ElementType::F64 => (1024, 53),
        ElementType::F32 => (128, 24),
        ElementType::BF16 => (128, 8),
        ElementType::F8E8M0FNU => (128, 1),
        ElementType::F16 => (16, 11),
        ElementType::F8E5M2 | ElementType::F8E5M2FNUZ => (16, 3),
        ElementType::F8E4M3FN => (9, 4),
        ElementType::F8E4M3 | ElementType::F8E4M3FNUZ => (8, 4),
        ElementType::F8E4M3B11FNUZ => (5, 4),
        ElementType::F6E3M2FN => (5, 3),
        ElementType::F8E3M4 => (4, 5),
        ElementType::F6E2M3FN => (3, 4),
        ElementType::F4E2M1FN => (3, 2),
        ElementType::Pred
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
        | ElementType::C128 => (-1, -1),
    }
}

/// The type that holds more: complex before real, then the wider range, the greater precision, the greater
/// width, the signed one (XLA: `primitive_util::HigherPrecisionType`). `a` where that does not decide.
pub(super) fn higher_precision(a: ElementType, b: ElementType) -> ElementType {
    let key = |ty: ElementType| {
        let part = ty.real_part();
        (ty.is_complex(), float_rank(part), part.bits(), part.is_signed_integer())
    };
    if key(b) > key(a) { b } else { a }
}

/// Which differences between two shapes do not matter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Match {
    /// Layouts and dynamism do not.
    Strict,
    /// Neither do the widths of floats: mixed precision.
    MixedPrecision,
}

fn arrays_match(a: &ArrayShape, b: &ArrayShape, how: Match) -> bool {
    let types = match how {
        Match::Strict => a.element_type == b.element_type,
        Match::MixedPrecision => same_ignoring_precision(a.element_type, b.element_type),
    };
    types && same_dims(&a.dims, &b.dims)
}

/// Whether two shapes are the same (XLA: `ShapeUtil::Compatible`, `CompatibleIgnoringFpPrecision`).
pub(super) fn shapes_match(a: &Shape, b: &Shape, how: Match) -> bool {
    match (a, b) {
        (Shape::Array(a), Shape::Array(b)) => arrays_match(a, b, how),
        (Shape::Tuple(a), Shape::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| shapes_match(a, b, how))
        }
        (Shape::Token, Shape::Token) | (Shape::Opaque, Shape::Opaque) => true,
        (Shape::Buffer(a), Shape::Buffer(b)) => shapes_match(a, b, how),
        (Shape::Array(_) | Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_), _) => false,
    }
}

/// The dimension where two sizes meet in an elementwise operation: a known size wins over an unbounded one,
/// and the result is dynamic where either is. One unbounded size against 1 stays unbounded, because the other
/// may be broadcast.
pub(super) fn merge(a: &ArrayShape, b: &ArrayShape, i: usize) -> (i64, bool) {
    let (m, n) = (a.dims[i], b.dims[i]);
    match (m == UNBOUNDED, n == UNBOUNDED) {
        (false, false) | (true, true) => (m, a.is_dynamic_dim(i) || b.is_dynamic_dim(i)),
        (true, false) if n == 1 => (m, true),
        (false, true) if m == 1 => (n, true),
        (true, false) => (n, b.is_dynamic_dim(i)),
        (false, true) => (m, a.is_dynamic_dim(i)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn higher_precision_prefers_range_then_precision() {
        use ElementType::*;
        for (a, b, expected) in [
            (F16, BF16, BF16),
            (BF16, F32, F32),
            (F32, F64, F64),
            (F32, S64, F32),
            (S32, U32, S32),
            (U64, S32, U64),
            (C64, F64, C64),
            (C64, C128, C128),
            (F8E4M3FN, F8E5M2, F8E5M2),
            (F8E8M0FNU, F32, F32),
        ] {
            assert_eq!(higher_precision(a, b), expected, "{a} {b}");
            assert_eq!(higher_precision(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn classes_read_as_english() {
        assert_eq!(Classes::ANY.to_string(), "pred, an integer, a float or complex");
        assert_eq!(Classes::PRED.or(Classes::INTEGER).to_string(), "pred or an integer");
        assert_eq!(Classes::FLOAT.to_string(), "a float");
    }
}
