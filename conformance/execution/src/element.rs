//! Elements as numbers: what comparison, printing, reading and input generation need of every element type.
//!
//! **Invariants:** printing is the shortest decimal that reads back to the same bits (of types of a byte and less
//! a whole number as it is), NaN payloads included;
//! reading rounds once, to nearest even; `ordinal` counts the representable numbers of the type, so that a
//! difference of ordinals is a distance in units in the last place.

use hlo::half::{bf16, f16};
use hlo::literal::BufferOf;
use hlo::num_complex::Complex;
use hlo::small_float::{
    F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ,
    F8E8M0FNU, FloatFormat,
};
use hlo::small_int::{S1, S2, S4, U1, U2, U4};
use hlo::{Bits, ElementType};

/// A real number inside an element: the element itself, or one half of a complex one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Part {
    /// An integer or a predicate.
    Int(i128),
    /// A float.
    Float {
        /// Its value; exact, every float type is part of f64.
        value: f64,
        /// Position among the numbers of its type: 0 for both zeros, 1 for the smallest positive number, -1
        /// for its negative.
        ordinal: i64,
    },
}

impl Part {
    /// As a float; integers beyond 2^53 round.
    #[inline]
    pub fn value(self) -> f64 {
        match self {
            Part::Int(i) => i as f64,
            Part::Float { value, .. } => value,
        }
    }
}

/// The real numbers of an element: one, or two of a complex type.
pub type Parts = (Part, Option<Part>);

/// Whether one of them is a NaN.
#[inline]
pub fn nan_among((re, im): Parts) -> bool {
    re.value().is_nan() || im.is_some_and(|im| im.value().is_nan())
}

/// An element of any type.
pub trait Number: BufferOf + Bits + PartialEq {
    /// The real parts: one, or two for a complex type.
    fn parts(self) -> (Part, Option<Part>);
    /// Appends the shortest text that reads back to the same bits.
    fn write(self, out: &mut String);
    /// Reads what [`Number::write`] writes, any decimal number, `0x...` as an integer, and `bits(0x...)` as
    /// raw bits.
    fn read(text: &str) -> Option<Self>;
    /// The nearest element to a number; integers round towards zero and saturate.
    fn from_f64(value: f64) -> Self;
    /// The element of an integer: wrapped to the type, or the nearest float.
    fn from_i128(value: i128) -> Self;
    /// From two real parts; of a real type the first.
    fn from_parts(re: f64, im: f64) -> Self;
}

/// The largest finite magnitude of an array's elements, of complex ones of their parts; 0 if there is none.
pub fn largest_magnitude(buffer: &hlo::Buffer) -> f64 {
    fn largest<T: Number>(elements: &[T]) -> f64 {
        let parts = elements.iter().flat_map(|x| {
            let (re, im) = x.parts();
            [Some(re), im]
        });
        parts.flatten().map(|p| p.value().abs()).filter(|x| x.is_finite()).fold(0.0, f64::max)
    }
    hlo::with_buffer!(buffer, e => largest(e))
}

fn read_bits<T: Bits>(text: &str) -> Option<T> {
    let inner = text.strip_prefix("bits(0x")?.strip_suffix(')')?;
    u128::from_str_radix(inner, 16).ok().map(T::from_bits)
}

fn read_int(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(d) => (true, d),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok()?,
        None if digits.starts_with(['+', '-']) => return None,
        None => digits.parse().ok()?,
    };
    Some(if negative { -value } else { value })
}

macro_rules! integers {
    ($($t:ty: |$x:ident| $wide:expr, |$w:ident| $wrap:expr, $low:expr, $high:expr;)*) => {$(
        impl Number for $t {
            #[inline]
            fn parts(self) -> (Part, Option<Part>) {
                let $x = self;
                (Part::Int($wide), None)
            }
            fn write(self, out: &mut String) {
                let $x = self;
                let wide: i128 = $wide;
                out.push_str(&wide.to_string());
            }
            fn read(text: &str) -> Option<Self> {
                if let Some(v) = read_bits(text) {
                    return Some(v);
                }
                let $w = read_int(text)?;
                ($low..=$high).contains(&$w).then(|| $wrap)
            }
            #[inline]
            fn from_f64(value: f64) -> Self {
                let $w = (value as i128).clamp($low, $high);
                $wrap
            }
            #[inline]
            fn from_i128($w: i128) -> Self {
                $wrap
            }
            #[inline]
            fn from_parts(re: f64, _im: f64) -> Self {
                Self::from_f64(re)
            }
        }
    )*};
}

macro_rules! plain_integers {
    ($($t:ty),*) => {
        integers! { $($t: |x| i128::from(x), |w| w as $t, i128::from(<$t>::MIN), i128::from(<$t>::MAX);)* }
    };
}
plain_integers!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! small_integers {
    ($($t:ty),*) => {
        integers! { $($t: |x| i128::from(x.get()), |w| <$t>::from_bits(w as u8), i128::from(<$t>::MIN.get()), i128::from(<$t>::MAX.get());)* }
    };
}
small_integers!(S1, S2, S4, U1, U2, U4);

impl Number for bool {
    #[inline]
    fn parts(self) -> (Part, Option<Part>) {
        (Part::Int(i128::from(self)), None)
    }
    fn write(self, out: &mut String) {
        out.push_str(if self { "true" } else { "false" });
    }
    fn read(text: &str) -> Option<Self> {
        match text {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        }
    }
    #[inline]
    fn from_f64(value: f64) -> Self {
        value != 0.0
    }
    #[inline]
    fn from_i128(value: i128) -> Self {
        value != 0
    }
    #[inline]
    fn from_parts(re: f64, _im: f64) -> Self {
        re != 0.0
    }
}

/// The format of a float type.
trait Real: Number {
    const WIDTH: u32;
    const SIGNED: bool;
    const NAN_BITS: Option<u64>;
    fn wide(self) -> f64;
    /// The nearest number to a decimal; `None` if it is not one.
    fn decimal(text: &str) -> Option<Self>;
}

fn real_part<T: Real>(x: T) -> Part {
    let bits = x.bits() as u64;
    let sign = if T::SIGNED { 1u64 << (T::WIDTH - 1) } else { 0 };
    let magnitude = (bits & !sign) as i64;
    Part::Float { value: x.wide(), ordinal: if bits & sign == 0 { magnitude } else { -magnitude } }
}

fn write_real<T: Real>(x: T, out: &mut String) {
    let value = x.wide();
    if value.is_nan() {
        let bits = x.bits() as u64;
        if Some(bits) == T::NAN_BITS {
            out.push_str("nan");
        } else if T::SIGNED && T::NAN_BITS.is_some_and(|nan| bits == nan | 1 << (T::WIDTH - 1) && bits != nan)
        {
            out.push_str("-nan");
        } else {
            out.push_str(&format!("bits(0x{bits:x})"));
        }
        return;
    }
    if value.is_infinite() {
        out.push_str(if value > 0.0 { "inf" } else { "-inf" });
        return;
    }
    // Of a type of few numbers, decimals far from a number come back to it (30 is 28 in a type that ends
    // there): whole numbers are written as they are.
    const MAX_WHOLE: f64 = 1e6;
    if T::WIDTH <= 8 && value.fract() == 0.0 && value != 0.0 && value.abs() < MAX_WHOLE {
        out.push_str(&format!("{value:.0}"));
        return;
    }
    // Fewest digits that come back: a decimal of 17 digits always does.
    let text = (0..17)
        .map(|digits| format!("{value:.digits$e}"))
        .find(|t| T::decimal(t).is_some_and(|y| y.bits() == x.bits()))
        .unwrap_or_else(|| format!("{value:e}"));
    out.push_str(&plain(&text));
}

/// `1.25e2` as `125`, unless that would be long.
fn plain(scientific: &str) -> String {
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific.to_owned() };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(m) => ("-", m),
        None => ("", mantissa),
    };
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        d => d,
    };
    let count = digits.len() as i32;
    if !(-5..16).contains(&exponent) {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{first}{point}{rest}e{exponent}");
    }
    if exponent < 0 {
        format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize))
    } else if count <= exponent + 1 {
        format!("{sign}{digits}{}", "0".repeat((exponent + 1 - count) as usize))
    } else {
        let (whole, fraction) = digits.split_at((exponent + 1) as usize);
        format!("{sign}{whole}.{fraction}")
    }
}

fn read_real<T: Real>(text: &str) -> Option<T> {
    if let Some(v) = read_bits(text) {
        return Some(v);
    }
    match text {
        "nan" => T::NAN_BITS.map(|b| T::from_bits(u128::from(b))),
        "-nan" => {
            T::NAN_BITS.filter(|_| T::SIGNED).map(|b| T::from_bits(u128::from(b | 1 << (T::WIDTH - 1))))
        }
        "inf" | "-inf" => {
            let value = T::from_f64(if text == "inf" { f64::INFINITY } else { f64::NEG_INFINITY });
            value.wide().is_infinite().then_some(value)
        }
        _ if text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) => {
            T::decimal(text)
        }
        _ => None,
    }
}

macro_rules! reals {
    ($($t:ty: $width:expr, $signed:expr, $nan:expr, |$x:ident| $wide:expr, |$v:ident| $narrow:expr, |$s:ident| $decimal:expr;)*) => {$(
        impl Real for $t {
            const WIDTH: u32 = $width;
            const SIGNED: bool = $signed;
            const NAN_BITS: Option<u64> = $nan;
            fn wide(self) -> f64 {
                let $x = self;
                $wide
            }
            fn decimal($s: &str) -> Option<Self> {
                $decimal
            }
        }
        impl Number for $t {
            #[inline]
            fn parts(self) -> (Part, Option<Part>) {
                (real_part(self), None)
            }
            fn write(self, out: &mut String) {
                write_real(self, out);
            }
            fn read(text: &str) -> Option<Self> {
                read_real(text)
            }
            #[inline]
            fn from_f64($v: f64) -> Self {
                $narrow
            }
            #[inline]
            fn from_i128(value: i128) -> Self {
                <Self as Number>::from_f64(value as f64)
            }
            #[inline]
            fn from_parts(re: f64, _im: f64) -> Self {
                <Self as Number>::from_f64(re)
            }
        }
    )*};
}

/// Digits that were parsed as f64 and fall exactly between two narrower numbers may not be where the decimal
/// is; no decimal that people write is so long that this matters, and none that [`write_real`] writes.
fn narrow<T>(text: &str, from: impl FnOnce(f64) -> T) -> Option<T> {
    text.parse().ok().map(from)
}

reals! {
    f32: 32, true, Some(0x7fc0_0000), |x| f64::from(x), |v| v as f32, |s| s.parse().ok();
    f64: 64, true, Some(0x7ff8_0000_0000_0000), |x| x, |v| v, |s| s.parse().ok();
    f16: 16, true, Some(0x7e00), |x| x.to_f64(), |v| f16::from_bits(FloatFormat::F16.encode(v) as u16), |s| narrow(s, <Self as Number>::from_f64);
    bf16: 16, true, Some(0x7fc0), |x| x.to_f64(), |v| bf16::from_bits(FloatFormat::BF16.encode(v) as u16), |s| narrow(s, <Self as Number>::from_f64);
}

macro_rules! small_reals {
    ($($t:ident),*) => {
        reals! { $(
            $t: $t::BITS, $t::FORMAT.has_sign(),
                match $t::FORMAT.nan_bits() { Some(b) => Some(b as u64), None => None },
                |x| x.to_f64(), |v| $t::from_f64(v), |s| narrow(s, $t::from_f64);
        )* }
    };
}
small_reals!(
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

macro_rules! complexes {
    ($($t:ty),*) => {$(
        impl Number for Complex<$t> {
            #[inline]
            fn parts(self) -> (Part, Option<Part>) {
                (real_part(self.re), Some(real_part(self.im)))
            }
            fn write(self, out: &mut String) {
                out.push('(');
                write_real(self.re, out);
                out.push_str(", ");
                write_real(self.im, out);
                out.push(')');
            }
            fn read(text: &str) -> Option<Self> {
                match text.strip_prefix('(') {
                    Some(inner) => {
                        let (re, im) = inner.strip_suffix(')')?.split_once(',')?;
                        Some(Complex::new(read_real(re.trim())?, read_real(im.trim())?))
                    }
                    None => Some(Complex::new(read_real(text)?, 0.0)),
                }
            }
            #[inline]
            fn from_f64(value: f64) -> Self {
                Complex::new(value as $t, 0.0)
            }
            #[inline]
            fn from_i128(value: i128) -> Self {
                Complex::new(value as $t, 0.0)
            }
            #[inline]
            fn from_parts(re: f64, im: f64) -> Self {
                Complex::new(re as $t, im as $t)
            }
        }
    )*};
}
complexes!(f32, f64);

/// Whether an element is, or contains, a NaN.
pub fn is_nan<T: Number>(x: T) -> bool {
    nan_among(x.parts())
}

/// The smallest and largest integer of an integer type; 0 and 1 of `pred`; `None` of floats.
pub fn int_limits(ty: ElementType) -> Option<(i128, i128)> {
    if ty == ElementType::Pred { Some((0, 1)) } else { ty.integer_limits() }
}

/// The numbers of an array: two for each complex element.
pub fn numbers(array: &hlo::ArrayLiteral) -> Vec<f64> {
    hlo::with_buffer!(&*array.buffer, v => v
        .iter()
        .flat_map(|x| {
            let (re, im) = x.parts();
            std::iter::once(re.value()).chain(im.map(|p| p.value()))
        })
        .collect())
}

/// The multi-dimensional index of a row-major position.
pub fn index_of(mut position: usize, dims: &[i64]) -> Vec<i64> {
    let mut index = vec![0; dims.len()];
    for (i, &d) in index.iter_mut().zip(dims).rev() {
        let d = usize::try_from(d).unwrap_or(1).max(1);
        *i = (position % d) as i64;
        position /= d;
    }
    index
}

/// An element as text that reads back.
pub fn text_of<T: Number>(x: T) -> String {
    let mut text = String::new();
    x.write(&mut text);
    text
}

/// Element `i` of an array as text that reads back.
pub fn text_at(array: &hlo::ArrayLiteral, i: usize) -> String {
    hlo::with_buffer!(&*array.buffer, elements => text_of(elements[i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trips<T: Number>(bits: impl Iterator<Item = u128>) {
        for b in bits {
            let x = T::from_bits(b);
            let mut text = String::new();
            x.write(&mut text);
            assert_eq!(T::read(&text).map(Bits::bits), Some(x.bits()), "{} {b:#x} {text}", T::TYPE);
        }
    }

    /// A conversion that rounds from the leading bits of an f64 alone mistakes what is near a midpoint for
    /// one.
    #[test]
    fn numbers_beside_the_middle_are_rounded_to_the_nearer_one() {
        fn beside<T: Number>(low: f64, high: f64) {
            let middle = f64::midpoint(low, high);
            for (x, nearest) in [(middle.next_down(), low), (middle.next_up(), high)] {
                assert_eq!(
                    T::from_parts(x, 0.0).bits(),
                    T::from_parts(nearest, 0.0).bits(),
                    "{} {x:e}",
                    T::TYPE
                );
                assert_eq!(
                    T::read(&format!("{x}")).map(Bits::bits),
                    Some(T::from_parts(nearest, 0.0).bits())
                );
            }
        }
        for n in 0..128 {
            let at = |n: i32| 1.0 + f64::from(n) / 128.0;
            beside::<bf16>(at(n), at(n + 1));
            beside::<f16>(at(n), at(n) + 1.0 / 1024.0);
            beside::<F8E5M2>(1.0, 1.25);
        }
        let nearest = <bf16 as Number>::from_f64(44_302_336.0);
        assert_eq!(<bf16 as Number>::from_i128(44_171_265), nearest);
    }

    #[test]
    fn every_narrow_element_reads_back() {
        for &ty in ElementType::ALL {
            if ty.bits() <= 16 {
                let all = 0..1u128 << ty.bits().min(if ty == ElementType::Pred { 1 } else { 16 });
                hlo::with_element_type!(ty, T => round_trips::<T>(all));
            }
        }
    }

    #[test]
    fn wide_elements_read_back() {
        let spread = |n: u128| (0..n).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835));
        for &ty in ElementType::ALL {
            if ty.bits() > 16 {
                hlo::with_element_type!(ty, T => round_trips::<T>(spread(5000)));
            }
        }
        round_trips::<f32>(
            [0u32, 1, 0x7f80_0000, 0xff80_0000, 0x7fc0_0000, 0xffc0_0001, 0x8000_0000, 0x7f7f_ffff]
                .map(u128::from)
                .into_iter(),
        );
    }

    #[test]
    fn numbers_look_as_people_write_them() {
        let text = |x: f32| {
            let mut s = String::new();
            x.write(&mut s);
            s
        };
        let cases: &[(f32, &str)] = &[
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (1.5, "1.5"),
            (125.0, "125"),
            (1e15, "1000000000000000"),
            (1e16, "1e16"),
            (3.4028235e38, "3.4028235e38"),
            (0.1, "0.1"),
            (1.5e-5, "0.000015"),
            (1.5e-6, "1.5e-6"),
            (-2.25, "-2.25"),
            (f32::INFINITY, "inf"),
            (f32::NEG_INFINITY, "-inf"),
        ];
        for (x, expected) in cases {
            assert_eq!(text(*x), *expected);
        }
        // 30 is 28 as well, and no number of the type.
        let mut s = String::new();
        <hlo::small_float::F6E3M2FN as Number>::from_f64(28.0).write(&mut s);
        assert_eq!(s, "28");
        let mut s = String::new();
        Complex::new(1.5f32, -0.0).write(&mut s);
        assert_eq!(s, "(1.5, -0)");
    }

    #[test]
    fn reading_refuses_what_does_not_fit() {
        assert_eq!(<i8 as Number>::read("128"), None);
        assert_eq!(<i8 as Number>::read("-128"), Some(-128));
        assert_eq!(<u8 as Number>::read("0xff"), Some(255));
        assert_eq!(<u8 as Number>::read("-1"), None);
        assert_eq!(<i32 as Number>::read("1.5"), None);
        assert_eq!(<f32 as Number>::read("one"), None);
        assert_eq!(<f32 as Number>::read("infinity"), None);
        assert_eq!(F8E4M3FN::read("inf"), None, "the type has no infinity");
        assert_eq!(F4E2M1FN::read("nan"), None, "the type has no NaN");
        assert_eq!(<f32 as Number>::read("bits(0x7f800001)").map(f32::to_bits), Some(0x7f80_0001));
    }

    #[test]
    fn ordinals_count_numbers() {
        let ordinal = |x: f32| match x.parts().0 {
            Part::Float { ordinal, .. } => ordinal,
            Part::Int(_) => panic!("a float"),
        };
        assert_eq!(ordinal(0.0), 0);
        assert_eq!(ordinal(-0.0), 0);
        assert_eq!(ordinal(f32::from_bits(1)) - ordinal(-f32::from_bits(1)), 2);
        assert_eq!(ordinal(1.0 + f32::EPSILON) - ordinal(1.0), 1);
        assert_eq!(ordinal(2.0) - ordinal(1.0), 1 << 23);
    }
}
