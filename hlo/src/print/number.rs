//! Numbers as text, as C's `printf("%.*g")` writes them.
//!
//! The rule is XLA's (`RoundTripFpToString` in `xla/util.cc`): `f32` with 6 significant digits if those read back as the same
//! number, else with 9; `f64` with 15 or 17; narrower types with as many as tell all their values apart. This is not the shortest
//! text that reads back, which is what Rust prints.
//!
//! Digits come from one multiplication in `f64` where its error cannot change a digit, which it decides itself, and
//! from Rust's exact `{:e}` elsewhere.

use std::io::Write;

use super::text::{Text, write_digits};
use crate::small_float::{
    F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ,
    F8E8M0FNU,
};
use crate::small_int::{S1, S2, S4, U1, U2, U4};

/// Powers of ten, each the nearest `f64`; exact up to 10^22.
const POWERS: [f64; 56] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31, 1e32, 1e33, 1e34, 1e35,
    1e36, 1e37, 1e38, 1e39, 1e40, 1e41, 1e42, 1e43, 1e44, 1e45, 1e46, 1e47, 1e48, 1e49, 1e50, 1e51, 1e52,
    1e53, 1e54, 1e55,
];

/// `x * 10^k` with a relative error below 2^-51; `None` if `k` is out of the table.
#[inline]
fn scale(x: f64, k: i32) -> Option<f64> {
    let power = *POWERS.get(k.unsigned_abs() as usize)?;
    Some(if k >= 0 { x * power } else { x / power })
}

/// A decimal number `0.d1d2d3... * 10^(exponent + 1)`: significant digits as an integer, and the exponent of the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Decimal {
    digits: u64,
    exponent: i32,
}

/// `x > 0`, finite, rounded to `precision` significant digits (1 to 17), ties to even.
fn round_decimal(x: f64, precision: u32) -> Decimal {
    if precision <= 9
        && let Some(d) = round_decimal_fast(x, precision)
    {
        return d;
    }
    round_decimal_exact(x, precision)
}

fn round_decimal_fast(x: f64, precision: u32) -> Option<Decimal> {
    // floor(log10(x)) or one less, from the binary exponent: 1233/4096 is log10(2) rounded down.
    let binary = (x.to_bits() >> 52) as i32 - 1023;
    let mut exponent = (binary * 1233) >> 12;
    let mut scaled = scale(x, precision as i32 - 1 - exponent)?;
    let limit = POWERS[precision as usize];
    if scaled >= limit {
        exponent += 1;
        scaled = scale(x, precision as i32 - 1 - exponent)?;
    }
    // The error of `scaled` is below 10^9 * 2^-51 < 10^-6.
    let whole = scaled.floor();
    let fraction = scaled - whole;
    if (fraction - 0.5).abs() < 1e-5 || scaled < limit / 10.0 || scaled >= limit {
        return None;
    }
    let mut digits = whole as u64 + u64::from(fraction > 0.5);
    if digits as f64 == limit {
        digits /= 10;
        exponent += 1;
    }
    Some(Decimal { digits, exponent })
}

fn round_decimal_exact(x: f64, precision: u32) -> Decimal {
    let mut buffer = [0u8; 40];
    let mut rest = &mut buffer[..];
    write!(rest, "{:.*e}", precision as usize - 1, x).expect("invariant: 17 digits and an exponent fit");
    let used = 40 - rest.len();
    parse_scientific(&buffer[..used])
}

/// Reads `d.ddde-dd`.
fn parse_scientific(text: &[u8]) -> Decimal {
    let (mut digits, mut exponent, mut negative, mut in_exponent) = (0u64, 0, false, false);
    for &b in text {
        match b {
            b'0'..=b'9' if in_exponent => exponent = exponent * 10 + i32::from(b - b'0'),
            b'0'..=b'9' => digits = digits * 10 + u64::from(b - b'0'),
            b'e' => in_exponent = true,
            b'-' => negative = true,
            _ => {}
        }
    }
    Decimal { digits, exponent: if negative { -exponent } else { exponent } }
}

/// Appends a decimal of `precision` digits as `%.*g` lays it out.
fn push_decimal(out: &mut Text<'_>, d: Decimal, precision: u32) {
    let mut buffer = [0u8; 20];
    let first = write_digits(&mut buffer, d.digits);
    let mut last = buffer.len();
    while last > first + 1 && buffer[last - 1] == b'0' {
        last -= 1;
    }
    let digits = &buffer[first..last];
    let exponent = d.exponent;
    if exponent < -4 || exponent >= precision as i32 {
        out.byte(digits[0]);
        if digits.len() > 1 {
            out.byte(b'.');
            out.ascii(&digits[1..]);
        }
        out.byte(b'e');
        out.byte(if exponent < 0 { b'-' } else { b'+' });
        if exponent.abs() < 10 {
            out.byte(b'0');
        }
        out.uint(u64::from(exponent.unsigned_abs()));
    } else if exponent < 0 {
        out.ascii(&b"0.000"[..1 + exponent.unsigned_abs() as usize]);
        out.ascii(digits);
    } else {
        let whole = exponent as usize + 1;
        if digits.len() <= whole {
            out.ascii(digits);
            out.ascii(&b"0000000000000000"[..whole - digits.len()]);
        } else {
            out.ascii(&digits[..whole]);
            out.byte(b'.');
            out.ascii(&digits[whole..]);
        }
    }
}

/// Appends the sign, and all of a number that is not finite or is zero; whether that was all.
fn push_special(out: &mut Text<'_>, x: f64) -> bool {
    if x.is_sign_negative() {
        out.byte(b'-');
    }
    if x.is_nan() {
        out.str("nan");
    } else if x.is_infinite() {
        out.str("inf");
    } else if x == 0.0 {
        out.byte(b'0');
    } else {
        return false;
    }
    true
}

/// Appends `x` as `%.{precision}g` does; `precision` is 1 to 17.
pub(crate) fn push_general(out: &mut Text<'_>, x: f64, precision: u32) {
    if !push_special(out, x) {
        push_decimal(out, round_decimal(x.abs(), precision), precision);
    }
}

/// Appends the digits of a NaN's fraction if they are not those of the plain quiet NaN.
fn push_payload(out: &mut Text<'_>, payload: u64, fraction_bits: u32) {
    if payload == 1 << (fraction_bits - 1) {
        return;
    }
    out.str("(0x");
    let digits = (64 - payload.leading_zeros()).div_ceil(4).max(1);
    for i in (0..digits).rev() {
        out.byte(b"0123456789abcdef"[(payload >> (4 * i) & 15) as usize]);
    }
    out.byte(b')');
}

/// Appends an `f32` as XLA's literals have it.
pub(crate) fn push_f32(out: &mut Text<'_>, x: f32) {
    if push_special(out, f64::from(x)) {
        if x.is_nan() {
            push_payload(out, u64::from(x.to_bits() & 0x007f_ffff), 23);
        }
        return;
    }
    let x = x.abs();
    if x < 1e6 && x.trunc() == x {
        out.uint(x as u64);
        return;
    }
    let wide = f64::from(x);
    let short = round_decimal(wide, 6);
    if reads_back_f32(short, x) {
        push_decimal(out, short, 6);
    } else {
        push_decimal(out, round_decimal(wide, 9), 9);
    }
}

/// Whether the nearest `f32` to a decimal of 6 digits is `x`.
fn reads_back_f32(d: Decimal, x: f32) -> bool {
    if let Some(near) = scale(d.digits as f64, d.exponent - 5) {
        // The true value is within these two, closer together than any two f32s.
        let low = (near * (1.0 - 1e-15)) as f32 == x;
        let high = (near * (1.0 + 1e-15)) as f32 == x;
        if low == high {
            return low;
        }
    }
    let mut text = Text::new();
    push_decimal(&mut text, d, 6);
    text.into_string().parse::<f32>().is_ok_and(|y| y == x)
}

/// Appends an `f64` as XLA's literals have it.
pub(crate) fn push_f64(out: &mut Text<'_>, x: f64) {
    if push_special(out, x) {
        if x.is_nan() {
            push_payload(out, x.to_bits() & ((1 << 52) - 1), 52);
        }
        return;
    }
    let x = x.abs();
    if x < 1e15 && x.trunc() == x {
        out.uint(x as u64);
        return;
    }
    let mut buffer = [0u8; 40];
    let mut rest = &mut buffer[..];
    write!(rest, "{x:e}").expect("invariant: the shortest digits and an exponent fit");
    let used = 40 - rest.len();
    let mut shortest = parse_scientific(&buffer[..used]);
    let length = shortest.digits.ilog10() + 1;
    // A decimal of up to 15 digits survives the way to f64 and back (of normal numbers), so the 15 digits are the shortest
    // ones with zeros, or do not read back.
    if x >= f64::MIN_POSITIVE {
        if length <= 15 {
            shortest.digits *= 10u64.pow(15 - length);
            push_decimal(out, shortest, 15);
            return;
        }
    } else {
        let short = round_decimal_exact(x, 15);
        let mut text = Text::new();
        push_decimal(&mut text, short, 15);
        if text.into_string().parse::<f64>().is_ok_and(|y| y == x) {
            push_decimal(out, short, 15);
            return;
        }
    }
    push_decimal(out, round_decimal_exact(x, 17), 17);
}

/// An element of a literal, as text.
pub(crate) trait PushElement: Copy {
    /// Appends it as it stands inside an array.
    fn push(self, out: &mut Text<'_>);
}

macro_rules! push_elements {
    ($($t:ty = |$x:ident, $out:ident| $e:expr;)*) => {
        $(impl PushElement for $t {
            #[inline]
            fn push(self, $out: &mut Text<'_>) { let $x = self; $e }
        })*
    };
}

push_elements! {
    // In arrays predicates are 0 and 1; a scalar is for the caller.
    bool = |x, out| out.byte(b'0' + u8::from(x));
    i8 = |x, out| out.int(i64::from(x));
    i16 = |x, out| out.int(i64::from(x));
    i32 = |x, out| out.int(i64::from(x));
    i64 = |x, out| out.int(x);
    u8 = |x, out| out.uint(u64::from(x));
    u16 = |x, out| out.uint(u64::from(x));
    u32 = |x, out| out.uint(u64::from(x));
    u64 = |x, out| out.uint(x);
    S1 = |x, out| out.int(x.to_i64());
    S2 = |x, out| out.int(x.to_i64());
    S4 = |x, out| out.int(x.to_i64());
    U1 = |x, out| out.int(x.to_i64());
    U2 = |x, out| out.int(x.to_i64());
    U4 = |x, out| out.int(x.to_i64());
    f32 = |x, out| push_f32(out, x);
    f64 = |x, out| push_f64(out, x);
    half::f16 = |x, out| {
        push_general(out, x.to_f64(), 5);
        if x.is_nan() {
            push_payload(out, u64::from(x.to_bits() & 0x3ff), 10);
        }
    };
    half::bf16 = |x, out| {
        push_general(out, x.to_f64(), 4);
        if x.is_nan() {
            push_payload(out, u64::from(x.to_bits() & 0x7f), 7);
        }
    };
    num_complex::Complex<f32> = |x, out| {
        out.byte(b'(');
        push_f32(out, x.re);
        out.str(", ");
        push_f32(out, x.im);
        out.byte(b')');
    };
    num_complex::Complex<f64> = |x, out| {
        out.byte(b'(');
        push_f64(out, x.re);
        out.str(", ");
        push_f64(out, x.im);
        out.byte(b')');
    };
}

macro_rules! push_small_floats {
    ($($t:ident $precision:literal $payload_bits:literal;)*) => {
        $(impl PushElement for $t {
            fn push(self, out: &mut Text<'_>) {
                if self.is_nan() {
                    // The conversion to f64 forgets the sign.
                    out.str(if self.is_sign_negative() { "-nan" } else { "nan" });
                    if $payload_bits > 0 {
                        push_payload(out, u64::from(self.to_bits()) & ((1 << $payload_bits) - 1), $payload_bits);
                    }
                    return;
                }
                push_general(out, self.to_f64(), $precision);
            }
        })*
    };
}

// Digits that tell all values apart (`max_digits10` in ml_dtypes), and fraction bits of those whose NaNs carry a payload.
push_small_floats! {
    F8E5M2 2 2;
    F8E4M3 3 3;
    F8E4M3FN 3 0;
    F8E4M3B11FNUZ 3 0;
    F8E3M4 3 4;
    F8E5M2FNUZ 2 0;
    F8E4M3FNUZ 3 0;
    F8E8M0FNU 2 0;
    F4E2M1FN 2 0;
    F6E3M2FN 2 0;
    F6E2M3FN 3 0;
}
