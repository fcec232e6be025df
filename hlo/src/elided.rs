//! Values for constants whose text was elided, `constant({...})`.
//!
//! A dump without its large constants can still be run: each elided constant gets values that depend on its
//! name and shape alone, so that they are the same in every run, on every machine, and in any order of
//! parsing.
//!
//! The rule, for another program to make the same values: `h` is the 64-bit FNV-1a hash of the constant's
//! name (UTF-8); element `i` (row-major; leaves of a tuple in order continue the count) draws `r =
//! splitmix64(h + i)`, where `splitmix64(x)` adds `0x9E3779B97F4A7C15` and applies that generator's
//! finalizer. Predicates take bit 63. Integers take `r >> 61` (0 to 7), so that they are harmless as indices;
//! types too narrow wrap. Floats take `(r >> 40) / 2^24 - 0.5` rounded to the type; complex numbers take that
//! for the real and `splitmix64(r)` likewise for the imaginary part.

use crate::diag::Diagnostic;
use crate::diag::codes::parse::ELIDED_CONSTANT;
use crate::literal::{ArrayLiteral, Bits, Buffer, BufferOf, Literal};
use crate::shape::Shape;
use crate::small_float::{
    F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ,
    F8E8M0FNU, FloatFormat,
};
use crate::small_int::{S1, S2, S4, U1, U2, U4};
use crate::span::Span;

/// The elided constants of a program, counted for warnings: each of the first has one, the others have one
/// together, because a dump may have thousands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ElidedConstants(usize);

impl ElidedConstants {
    /// Constants that have a warning of their own.
    pub const MAX_NAMED: usize = 10;

    /// Counts one; whether it has a warning of its own.
    pub fn count(&mut self) -> bool {
        self.0 += 1;
        self.0 <= Self::MAX_NAMED
    }

    /// How many there are, if not each has a warning of its own.
    pub fn total(self) -> Option<usize> {
        (self.0 > Self::MAX_NAMED).then_some(self.0)
    }

    /// The warning of all that a text leaves out, if not each has one of its own.
    pub fn warning(self) -> Option<Diagnostic> {
        let message = format!("the text leaves out the values of {} constants", self.total()?);
        let note = format!("the first {} are shown above", Self::MAX_NAMED);
        Some(Diagnostic::warning(ELIDED_CONSTANT, Span::NONE, message).note(note))
    }
}

/// The 64-bit FNV-1a hash.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// One step of the SplitMix64 generator (Steele, Lea, Flood 2014), as a function of its state.
pub fn splitmix64(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

trait Draw {
    fn draw(r: u64) -> Self;
}

fn unit(r: u64) -> f64 {
    (r >> 40) as f64 / (1u64 << 24) as f64 - 0.5
}

macro_rules! draw {
    ($($t:ty = |$r:ident| $e:expr;)*) => { $(impl Draw for $t { fn draw($r: u64) -> Self { $e } })* };
}
macro_rules! draw_bits { ($($t:ty),*) => { $(impl Draw for $t { fn draw(r: u64) -> Self { <$t>::from_bits(u128::from(r >> 61)) } })* }; }
macro_rules! draw_small_int { ($($t:ty),*) => { $(impl Draw for $t { fn draw(r: u64) -> Self { <$t as Bits>::from_bits(u128::from(r >> 61)) } })* }; }
macro_rules! draw_float { ($($t:ty),*) => { $(impl Draw for $t { fn draw(r: u64) -> Self { <$t>::from_f64(unit(r)) } })* }; }

draw! {
    // Not by `half`'s conversions, which may round twice.
    half::f16 = |r| half::f16::from_bits(FloatFormat::F16.encode(unit(r)) as u16);
    half::bf16 = |r| half::bf16::from_bits(FloatFormat::BF16.encode(unit(r)) as u16);
    bool = |r| r >> 63 == 1;
    f32 = |r| unit(r) as f32;
    f64 = |r| unit(r);
    num_complex::Complex<f32> = |r| num_complex::Complex::new(unit(r) as f32, unit(splitmix64(r)) as f32);
    num_complex::Complex<f64> = |r| num_complex::Complex::new(unit(r), unit(splitmix64(r)));
}
draw_bits!(i8, i16, i32, i64, u8, u16, u32, u64);
draw_small_int!(S1, S2, S4, U1, U2, U4);
draw_float!(
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

fn fill<T: BufferOf + Draw>(hash: u64, first: u64, n: usize) -> Buffer {
    T::wrap((0..n as u64).map(|i| T::draw(splitmix64(hash.wrapping_add(first + i)))).collect())
}

/// The value of an elided constant; `None` if the shape has no values (opaque, unbounded, too large for
/// memory).
pub fn elided_literal(name: &str, shape: &Shape) -> Option<Literal> {
    let mut count = 0;
    build(fnv1a(name.as_bytes()), shape, &mut count)
}

fn build(hash: u64, shape: &Shape, count: &mut u64) -> Option<Literal> {
    Some(match shape {
        Shape::Array(a) => {
            let n = usize::try_from(a.checked_elements()?).ok()?;
            let buffer = crate::with_element_type!(a.element_type, T => fill::<T>(hash, *count, n));
            *count += n as u64;
            Literal::Array(ArrayLiteral { dims: a.dims.clone(), buffer: buffer.into() })
        }
        Shape::Tuple(t) => Literal::Tuple(t.iter().map(|s| build(hash, s, count)).collect::<Option<_>>()?),
        Shape::Token => Literal::Token,
        Shape::Opaque | Shape::Buffer(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element_type::ElementType;

    /// Values worked out by another program from the rule above.
    #[test]
    fn the_written_rule_gives_these_values() {
        let literal = elided_literal("constant.1", &Shape::array(ElementType::S32, &[4])).unwrap();
        let expected: Vec<i32> = EXPECTED.iter().map(|r| (r >> 61) as i32).collect();
        assert_eq!(
            literal,
            Literal::Array(ArrayLiteral { dims: [4].as_slice().into(), buffer: i32::wrap(expected).into() })
        );
        let literal = elided_literal("constant.1", &Shape::array(ElementType::F32, &[4])).unwrap();
        let expected: Vec<f32> = EXPECTED.iter().map(|r| (r >> 40) as f32 / 16_777_216.0 - 0.5).collect();
        assert_eq!(
            literal,
            Literal::Array(ArrayLiteral { dims: [4].as_slice().into(), buffer: f32::wrap(expected).into() })
        );
    }

    /// The first four draws for the name `constant.1`.
    const EXPECTED: [u64; 4] =
        [0x5dcc_ceb9_c42b_e63b, 0x8192_62fe_f1cf_2388, 0xffd7_c3e1_97ca_c2db, 0xcbb7_f5e7_da4c_de0f];
}
