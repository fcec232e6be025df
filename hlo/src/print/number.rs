//! Numbers as text, as C's `printf("%.*g")` writes them.
//!
//! The rule is XLA's (`RoundTripFpToString` in `xla/util.cc`): `f32` with 6 significant digits if those read
//! back as the same number, else with 9; `f64` with 15 or 17; narrower types with as many as tell all their
//! values apart. This is not the shortest text that reads back, which is what Rust prints.
//!
//! Digits come from exact integer arithmetic on the binary number, which also tells whether they read back;
//! where that would not fit 192 bits, from Rust's exact `{:e}`.

use std::cmp::Ordering;
use std::io::Write;

use super::text::{Text, write_digits};
use crate::small_float::{
    F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ,
    F8E8M0FNU,
};
use crate::small_int::{S1, S2, S4, U1, U2, U4};

/// The powers of ten that fit.
const POWERS: [u128; 39] = {
    let mut powers = [1; 39];
    let mut i = 1;
    while i < 39 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

/// A positive number `mantissa * 2^exponent`, as the format has it.
#[derive(Clone, Copy)]
struct Binary {
    mantissa: u64,
    exponent: i32,
    /// The next smaller number is half as far away as the next larger one.
    narrow_below: bool,
}

impl Binary {
    fn of_f64(x: f64) -> Self {
        let (fraction, exponent) = (x.to_bits() & ((1 << 52) - 1), (x.to_bits() >> 52) as i32 & 0x7ff);
        let normal = exponent > 0;
        Self {
            mantissa: fraction | u64::from(normal) << 52,
            exponent: exponent.max(1) - 1075,
            narrow_below: fraction == 0 && exponent > 1,
        }
    }

    fn of_f32(x: f32) -> Self {
        let (fraction, exponent) = (x.to_bits() & ((1 << 23) - 1), (x.to_bits() >> 23) as i32 & 0xff);
        let normal = exponent > 0;
        Self {
            mantissa: u64::from(fraction) | u64::from(normal) << 23,
            exponent: exponent.max(1) - 150,
            narrow_below: fraction == 0 && exponent > 1,
        }
    }
}

/// The decimal number `d.ddd * 10^exponent`, where `digits` are `dddd`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Decimal {
    digits: u64,
    exponent: i32,
}

/// Rounds to `precision` significant digits (1 to 17), ties to even, and says whether the nearest number of
/// the format to the result is the number again. `None` where that takes more than 192 bits.
fn round_decimal(x: Binary, precision: u32) -> Option<(Decimal, bool)> {
    // floor(log10(x)) or one less, from the binary exponent: 1233 / 4096 is log10(2) rounded down.
    let bits = 64 - x.mantissa.leading_zeros() as i32 + x.exponent;
    let mut exponent = ((bits - 1) * 1233) >> 12;
    let limit = POWERS[precision as usize] as u64;
    let (whole, tail) = loop {
        let (whole, tail) = scale(x, precision as i32 - 1 - exponent)?;
        if whole < limit {
            break (whole, tail);
        }
        exponent += 1;
    };
    if whole < limit / 10 {
        return None;
    }
    let up = match tail.half {
        Ordering::Less => false,
        Ordering::Equal => whole & 1 == 1,
        Ordering::Greater => true,
    };
    let distance = if up { tail.above } else { tail.below };
    // Numbers nearer than half a unit of x read back as x; at exactly half, the even mantissa wins.
    let reads_back = distance.is_some_and(|distance| {
        let distance = if x.narrow_below && !up { distance.checked_mul(2) } else { Some(distance) };
        let twice = distance.and_then(|d| d.checked_mul(2));
        twice.is_some_and(|twice| twice < tail.unit || twice == tail.unit && x.mantissa & 1 == 0)
    });
    let mut digits = whole + u64::from(up);
    if digits == limit {
        digits /= 10;
        exponent += 1;
    }
    Some((Decimal { digits, exponent }, reads_back))
}

/// What is between a scaled number and the integers around it, in units that depend on the scale.
struct Tail {
    /// The fraction compared with a half.
    half: Ordering,
    /// Distance to the integer below, if it fits.
    below: Option<u128>,
    /// Distance to the integer above, if it fits.
    above: Option<u128>,
    /// A step of the mantissa in those units.
    unit: u128,
}

/// `x * 10^power` as an integer and what remains.
#[inline]
fn scale(x: Binary, power: i32) -> Option<(u64, Tail)> {
    let ten = *POWERS.get(power.unsigned_abs() as usize)?;
    let m = x.mantissa;
    if power < 0 {
        // m * 2^e / 10^k; with a negative e the denominator takes it.
        let (numerator, denominator, unit) = if x.exponent >= 0 {
            (shift_left(u128::from(m), x.exponent)?, ten, shift_left(1, x.exponent)?)
        } else {
            (u128::from(m), shift_left(ten, -x.exponent)?, 1)
        };
        let (whole, rest) = (numerator / denominator, numerator % denominator);
        let above = denominator - rest;
        let tail = Tail { half: rest.cmp(&above), below: Some(rest), above: Some(above), unit };
        return Some((u64::try_from(whole).ok()?, tail));
    }
    // The product in 192 bits: high * 2^64 + low.
    let low_part = u128::from(m) * (ten & u128::from(u64::MAX));
    let high = u128::from(m) * (ten >> 64) + (low_part >> 64);
    let low = low_part as u64;
    if x.exponent >= 0 {
        // An integer.
        let whole = shift_left(u128::from(low), x.exponent).filter(|_| high == 0)?;
        let tail = Tail { half: Ordering::Less, below: Some(0), above: None, unit: ten };
        return Some((u64::try_from(whole).ok()?, tail));
    }
    let shift = x.exponent.unsigned_abs();
    let (whole, rest_high, rest_low) = if shift < 64 {
        if high.leading_zeros() < 64 - shift {
            return None;
        }
        let whole = (high << (64 - shift)) | u128::from(low >> shift);
        (whole, 0, low & ((1 << shift) - 1))
    } else if shift < 192 {
        (high >> (shift - 64), high & ((1 << (shift - 64)) - 1), low)
    } else {
        return None;
    };
    let whole = u64::try_from(whole).ok()?;
    // 2^shift minus the rest, in the same two pieces.
    let (above_high, above_low) = if shift < 64 {
        (0, (1 << shift) - rest_low)
    } else {
        ((1u128 << (shift - 64)) - rest_high - u128::from(rest_low > 0), rest_low.wrapping_neg())
    };
    let join = |high: u128, low: u64| (high >> 64 == 0).then(|| high << 64 | u128::from(low));
    let tail = Tail {
        half: (rest_high, rest_low).cmp(&(above_high, above_low)),
        below: join(rest_high, rest_low),
        above: join(above_high, above_low),
        unit: ten,
    };
    Some((whole, tail))
}

/// `n * 2^shift`, if that fits.
fn shift_left(n: u128, shift: i32) -> Option<u128> {
    let shift = shift.unsigned_abs();
    (shift <= n.leading_zeros()).then(|| n.checked_shl(shift).unwrap_or(0))
}

/// `x` rounded like [`round_decimal`] does, without a limit.
fn round_decimal_slowly(x: f64, precision: u32) -> Decimal {
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
        let x = x.abs();
        let decimal = match round_decimal(Binary::of_f64(x), precision) {
            Some((decimal, _)) => decimal,
            None => round_decimal_slowly(x, precision),
        };
        push_decimal(out, decimal, precision);
    }
}

/// Appends `x > 0` with `short` digits if they read back, else with `long`.
fn push_round_trip(
    out: &mut Text<'_>,
    x: f64,
    binary: Binary,
    short: u32,
    long: u32,
    same: impl Fn(&str) -> bool,
) {
    let (decimal, reads_back) = round_decimal(binary, short).unwrap_or_else(|| {
        let decimal = round_decimal_slowly(x, short);
        let mut text = Text::new();
        push_decimal(&mut text, decimal, short);
        (decimal, same(&text.into_string()))
    });
    if reads_back {
        push_decimal(out, decimal, short);
    } else {
        let long_decimal = match round_decimal(binary, long) {
            Some((decimal, _)) => decimal,
            None => round_decimal_slowly(x, long),
        };
        push_decimal(out, long_decimal, long);
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
    push_round_trip(out, f64::from(x), Binary::of_f32(x), 6, 9, |text| {
        text.parse::<f32>().is_ok_and(|y| y == x)
    });
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
    push_round_trip(out, x, Binary::of_f64(x), 15, 17, |text| text.parse::<f64>().is_ok_and(|y| y == x));
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

// Digits that tell all values apart (`max_digits10` in ml_dtypes), and fraction bits of those whose NaNs
// carry a payload.
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
