//! An array in a few numbers.
//!
//! **The hash**, for another program to make the same: with `splitmix64` as in [`hlo::elided`], and `b(i)`
//! the bits of element `i` in row-major order as an unsigned integer (a `c128` element `k` counts as the two
//! elements `2k` and `2k + 1`, its real and its imaginary part; a `c64` element is one, its imaginary part in
//! the upper half; narrow types have zeros above their bits), it is the sum of
//! `splitmix64(splitmix64(i) ^ b(i))` over all `i`, modulo 2^64. Dimensions and type are not part of it.

use hlo::elided::splitmix64;
use hlo::{Buffer, ElementType};
use serde::{Deserialize, Serialize};

use hlo_execution::element::{Number, Part};

/// What is kept of an array.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// The smallest number that is no NaN, as text that reads back; absent if there is none. Of complex
    /// numbers the smallest part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<String>,
    /// The largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<String>,
    /// Elements that are, or contain, a NaN.
    pub nan: u64,
    /// Elements that are, or contain, an infinity.
    pub inf: u64,
    /// Elements that are zero, of either sign.
    pub zeros: u64,
    /// The hash of the bits, 16 hexadecimal digits.
    pub hash: String,
}

impl Summary {
    /// Of a buffer.
    pub fn of(buffer: &Buffer) -> Self {
        hlo::with_buffer!(buffer, v => summary(v))
    }
}

fn summary<T: Number>(values: &[T]) -> Summary {
    let mut found = Summary::default();
    let mut range: Option<(Part, Part)> = None;
    let wide = T::TYPE == ElementType::C128;
    let mut hash = 0u64;
    let mut word = |i: u64, bits: u64| hash = hash.wrapping_add(splitmix64(splitmix64(i) ^ bits));
    for (i, &x) in (0u64..).zip(values) {
        let bits = x.bits();
        if wide {
            word(2 * i, bits as u64);
            word(2 * i + 1, (bits >> 64) as u64);
        } else {
            word(i, bits as u64);
        }
        let (re, im) = x.parts();
        let parts = || [Some(re), im].into_iter().flatten();
        let any = |f: fn(f64) -> bool| parts().any(|p| matches!(p, Part::Float { value, .. } if f(value)));
        found.nan += u64::from(any(f64::is_nan));
        found.inf += u64::from(any(f64::is_infinite));
        found.zeros += u64::from(parts().all(|p| p.value() == 0.0));
        for part in parts().filter(|p| !p.value().is_nan()) {
            range = Some(match range {
                None => (part, part),
                Some((low, high)) => {
                    (if less(part, low) { part } else { low }, if less(high, part) { part } else { high })
                }
            });
        }
    }
    found.hash = format!("{hash:016x}");
    (found.min, found.max) = range.map(|(low, high)| (text::<T>(low), text::<T>(high))).unzip();
    found
}

fn less(a: Part, b: Part) -> bool {
    match (a, b) {
        (Part::Int(a), Part::Int(b)) => a < b,
        (Part::Int(_) | Part::Float { .. }, _) => a.value() < b.value(),
    }
}

/// A part as elements of the type are printed; of a complex type as its real type's.
fn text<T: Number>(part: Part) -> String {
    fn of<T: Number>(value: f64) -> String {
        hlo_execution::element::text_of(T::from_f64(value))
    }
    match part {
        Part::Int(i) => hlo_execution::element::text_of(T::from_i128(i)),
        Part::Float { value, .. } => hlo::with_element_type!(T::TYPE.real_part(), R => of::<R>(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::num_complex::Complex;

    #[test]
    fn numbers_of_every_class() {
        let s = Summary::of(&Buffer::F32(vec![f32::NAN, -0.0, 2.5, f32::NEG_INFINITY, 0.1]));
        assert_eq!((s.nan, s.inf, s.zeros), (1, 1, 1));
        assert_eq!((s.min.as_deref(), s.max.as_deref()), (Some("-inf"), Some("2.5")));
        let s = Summary::of(&Buffer::S64(vec![i64::MAX, i64::MAX - 1, 0]));
        assert_eq!(
            (s.min.as_deref(), s.max.as_deref(), s.zeros),
            (Some("0"), Some("9223372036854775807"), 1)
        );
        let s = Summary::of(&Buffer::C64(vec![Complex::new(1.0, -2.0), Complex::new(0.0, f32::NAN)]));
        assert_eq!((s.min.as_deref(), s.max.as_deref(), s.nan, s.zeros), (Some("-2"), Some("1"), 1, 0));
        let s = Summary::of(&Buffer::F64(vec![]));
        assert_eq!((s.min, s.max, &*s.hash), (None, None, "0000000000000000"));
    }

    /// By the rule in the module's documentation, with numpy:
    /// `m = lambda x: ...splitmix64...; sum(m(m(i) ^ b) for i, b in enumerate(x.view('u4')))`.
    #[test]
    fn the_hash_is_the_documented_one() {
        let hash = |b: Buffer| Summary::of(&b).hash;
        assert_eq!(hash(Buffer::F32(vec![1.0, -2.0, 0.5])), "e02956c385b5df8a");
        assert_eq!(hash(Buffer::C128(vec![Complex::new(1.0, -2.0)])), "8fdde29cb727ec3c");
        assert_eq!(hash(Buffer::S8(vec![-1, 1])), "d477cefa41b48c03");
        assert_ne!(hash(Buffer::F32(vec![0.0])), hash(Buffer::F32(vec![-0.0])));
        assert_ne!(hash(Buffer::S8(vec![1, 2])), hash(Buffer::S8(vec![2, 1])));
    }
}
