//! One element of a literal, for each element type.

use hlo::diag::Code;
use hlo::diag::codes::parse as codes;
use hlo::half::{bf16, f16};
use hlo::num_complex::Complex;
use hlo::small_float::{
    F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ,
    F8E8M0FNU, FloatFormat, Specials,
};
use hlo::small_int::{S1, S2, S4, U1, U2, U4};
use hlo::{Bits, Element, Span};

use super::decimal::compare_decimal;
use crate::cursor::{Cursor, Res, error, quote};

/// Reads an element at the cursor, which stands on its first byte.
pub(super) trait ScanElement: Sized {
    fn scan(c: &mut Cursor<'_>) -> Res<Self>;
}

/// The run of bytes that numbers and words consist of.
fn number<'a>(c: &Cursor<'a>) -> &'a str {
    let rest = c.rest();
    let n = rest.iter().take_while(|&&b| NUMBER[usize::from(b)]).count();
    &c.text()[c.pos()..c.pos() + n]
}

const NUMBER: [bool; 256] = {
    let mut set = [false; 256];
    let mut b = 0;
    while b < 256 {
        set[b] = (b as u8).is_ascii_alphanumeric() || matches!(b as u8, b'.' | b'+' | b'-' | b'_');
        b += 1;
    }
    set
};

#[cold]
fn bad(c: &mut Cursor<'_>, ty: &str, what: &str) -> Box<hlo::Diagnostic> {
    let word = number(c);
    if word.is_empty() {
        return c.unexpected(codes::BAD_ELEMENT, &format!("{what} ({ty})"));
    }
    let span = Span::new(c.pos(), c.pos() + word.len());
    error(
        codes::BAD_ELEMENT,
        span,
        format!("{} is not a value of {ty}", quote(word)),
        format!("expected {what}"),
    )
}

#[cold]
fn out_of_range(c: &Cursor<'_>, word: &str, ty: &str, range: &str) -> Box<hlo::Diagnostic> {
    let span = Span::new(c.pos(), c.pos() + word.len());
    let code: Code = codes::ELEMENT_OUT_OF_RANGE;
    error(code, span, format!("{} is out of the range of {ty}", quote(word)), range)
}

impl ScanElement for bool {
    fn scan(c: &mut Cursor<'_>) -> Res<bool> {
        let word = number(c);
        let value = match word {
            "0" | "false" => false,
            "1" | "true" => true,
            _ => return Err(bad(c, "pred", "`true`, `false`, 1 or 0")),
        };
        c.bump(word.len());
        Ok(value)
    }
}

/// Sign and magnitude of a decimal integer; `None` if it is none, the magnitude `None` if it does not fit.
fn integer(word: &str) -> Option<(bool, Option<u64>)> {
    let (negative, digits) = match word.strip_prefix('-') {
        Some(d) => (true, d),
        None => (false, word),
    };
    let mut value = Some(0u64);
    for b in digits.bytes() {
        let d = b.wrapping_sub(b'0');
        if d > 9 {
            return None;
        }
        value = value.and_then(|v| v.checked_mul(10)?.checked_add(u64::from(d)));
    }
    if digits.is_empty() { None } else { Some((negative, value)) }
}

fn scan_integer<T: Element>(
    c: &mut Cursor<'_>,
    range: (&dyn std::fmt::Display, &dyn std::fmt::Display),
    make: impl Fn(bool, u64) -> Option<T>,
) -> Res<T> {
    let word = number(c);
    let Some((negative, magnitude)) = integer(word) else {
        return Err(bad(c, T::TYPE.name(), "an integer"));
    };
    match magnitude.and_then(|m| make(negative, m)) {
        Some(v) => {
            c.bump(word.len());
            Ok(v)
        }
        None => Err(out_of_range(c, word, T::TYPE.name(), &format!("from {} to {}", range.0, range.1))),
    }
}

macro_rules! scan_wide_integers {
    ($($t:ty),*) => {
        $(impl ScanElement for $t {
            fn scan(c: &mut Cursor<'_>) -> Res<$t> {
                scan_integer(c, (&<$t>::MIN, &<$t>::MAX), |negative, m| {
                    let wide = if negative { -i128::from(m) } else { i128::from(m) };
                    <$t>::try_from(wide).ok()
                })
            }
        })*
    };
}
scan_wide_integers!(i8, i16, i32, i64, u8, u16, u32);

impl ScanElement for u64 {
    fn scan(c: &mut Cursor<'_>) -> Res<u64> {
        scan_integer(c, (&u64::MIN, &u64::MAX), |negative, m| {
            // As in XLA, a negative number is taken modulo 2^64, if it is one of 64 bits.
            if negative { (m <= 1 << 63).then(|| m.wrapping_neg()) } else { Some(m) }
        })
    }
}

macro_rules! scan_small_integers {
    ($($t:ty),*) => {
        $(impl ScanElement for $t {
            fn scan(c: &mut Cursor<'_>) -> Res<$t> {
                scan_integer(c, (&<$t>::MIN, &<$t>::MAX), |negative, m| {
                    let m = i64::try_from(m).ok()?;
                    <$t>::try_from(if negative { -m } else { m }).ok()
                })
            }
        })*
    };
}
scan_small_integers!(S1, S2, S4, U1, U2, U4);

/// What the text of a float is.
enum FloatText<'a> {
    /// A decimal, with its sign.
    Decimal(&'a str),
    Infinity {
        negative: bool,
    },
    Nan {
        negative: bool,
        /// Of `nan(0x...)`.
        payload: Option<u64>,
    },
}

/// Reads a float's text and moves past it.
fn float_text<'a>(c: &mut Cursor<'a>, ty: &str) -> Res<FloatText<'a>> {
    let word = number(c);
    let (negative, body) = match word.strip_prefix('-') {
        Some(b) => (true, b),
        None => (false, word),
    };
    match body.as_bytes().first() {
        Some(b'0'..=b'9' | b'.') => {
            // What std accepts other than decimals starts with a letter.
            c.bump(word.len());
            Ok(FloatText::Decimal(word))
        }
        _ if body == "inf" => {
            c.bump(word.len());
            Ok(FloatText::Infinity { negative })
        }
        _ if body == "nan" => {
            let start = c.pos();
            c.bump(word.len());
            let payload = if c.peek_raw() == b'(' { Some(nan_payload(c, start)?) } else { None };
            Ok(FloatText::Nan { negative, payload })
        }
        _ => Err(bad(c, ty, "a number, `inf` or `nan`")),
    }
}

fn nan_payload(c: &mut Cursor<'_>, start: usize) -> Res<u64> {
    c.bump(1);
    let word = number(c);
    let value = word.strip_prefix("0x").and_then(|d| u64::from_str_radix(d, 16).ok());
    let Some(value) = value else {
        return Err(c.unexpected(codes::BAD_NAN_PAYLOAD, "a payload `0x...`"));
    };
    c.bump(word.len());
    if c.peek_raw() != b')' {
        return Err(c.unexpected(codes::BAD_NAN_PAYLOAD, "`)`"));
    }
    c.bump(1);
    if value == 0 {
        let message = "NaN payload 0, which would be an infinity";
        return Err(error(codes::BAD_NAN_PAYLOAD, c.span_from(start), message, "not 0"));
    }
    Ok(value)
}

/// The bits of a NaN of an IEEE format.
fn nan_bits(
    c: &Cursor<'_>,
    start: usize,
    negative: bool,
    payload: Option<u64>,
    (width, mantissa): (u32, u32),
    ty: &str,
) -> Res<u64> {
    let largest = (1u64 << mantissa) - 1;
    let payload = payload.unwrap_or(1 << (mantissa - 1));
    if payload > largest {
        let message = format!("NaN payload {payload:#x} does not fit the {mantissa} bits of {ty}");
        return Err(error(
            codes::BAD_NAN_PAYLOAD,
            c.span_from(start),
            message,
            format!("at most {largest:#x}"),
        ));
    }
    let exponent = ((1u64 << (width - 1 - mantissa)) - 1) << mantissa;
    Ok(u64::from(negative) << (width - 1) | exponent | payload)
}

macro_rules! scan_wide_floats {
    ($($t:ty, $bits:ty, $width:literal, $mantissa:literal;)*) => {
        $(impl ScanElement for $t {
            fn scan(c: &mut Cursor<'_>) -> Res<$t> {
                let start = c.pos();
                let ty = <$t as Element>::TYPE.name();
                match float_text(c, ty)? {
                    FloatText::Decimal(word) => match word.parse::<$t>() {
                        Ok(v) if v.is_finite() => Ok(v),
                        Ok(_) => {
                            *c = at(c, start);
                            Err(out_of_range(c, word, ty, &format!("at most {:e}", <$t>::MAX)))
                        }
                        Err(_) => {
                            *c = at(c, start);
                            Err(bad(c, ty, "a decimal number"))
                        }
                    },
                    FloatText::Infinity { negative } => Ok(if negative { -<$t>::INFINITY } else { <$t>::INFINITY }),
                    FloatText::Nan { negative, payload } => {
                        let bits = nan_bits(c, start, negative, payload, ($width, $mantissa), ty)?;
                        Ok(<$t>::from_bits(bits as $bits))
                    }
                }
            }
        })*
    };
}
scan_wide_floats! {
    f32, u32, 32, 23;
    f64, u64, 64, 52;
}

/// The cursor moved back to `pos`.
fn at<'a>(c: &Cursor<'a>, pos: usize) -> Cursor<'a> {
    Cursor::new(c.text(), Span::new(pos, c.text().len()), c.depth)
}

/// A type narrower than f32. The decimal is read to the nearest f64 and that is rounded to the type: twice
/// rounded, which differs from rounding once only if the f64 is halfway between two values of the type and is
/// not the decimal itself. Then the decimal is compared with it exactly.
fn scan_narrow<T: Element + Bits>(c: &mut Cursor<'_>, format: FloatFormat) -> Res<T> {
    let start = c.pos();
    let ty = T::TYPE.name();
    let bits = match float_text(c, ty)? {
        FloatText::Decimal(word) => {
            let Ok(value) = word.parse::<f64>() else {
                *c = at(c, start);
                return Err(bad(c, ty, "a decimal number"));
            };
            let bits = round_once(word, value, format);
            if !value.is_finite() || !in_range(value, bits, format) {
                *c = at(c, start);
                let max = format.decode(format.max_bits());
                let range = match format.specials {
                    Specials::Scale => format!("powers of two, at most {max:e}"),
                    Specials::Ieee
                    | Specials::FiniteNan
                    | Specials::NanIsNegativeZero
                    | Specials::NumbersOnly => {
                        format!("at most {max:e}")
                    }
                };
                return Err(out_of_range(c, word, ty, &range));
            }
            bits
        }
        FloatText::Infinity { negative } => {
            // As XLA converts it: to NaN or to the largest number in types without infinity.
            format.encode(if negative { f64::NEG_INFINITY } else { f64::INFINITY })
        }
        FloatText::Nan { negative, payload } => match (format.specials, payload) {
            (Specials::Ieee, _) => {
                let layout = (format.bits(), format.mantissa_bits);
                nan_bits(c, start, negative, payload, layout, ty)? as u32
            }
            (_, Some(_)) => {
                let message = format!("NaN payload of {ty}");
                return Err(error(
                    codes::BAD_NAN_PAYLOAD,
                    c.span_from(start),
                    message,
                    "this type has a single NaN",
                ));
            }
            (Specials::FiniteNan, None) => {
                format.encode(f64::NAN) | if negative { format.sign_mask() } else { 0 }
            }
            (Specials::NanIsNegativeZero | Specials::NumbersOnly | Specials::Scale, None) => {
                format.encode(f64::NAN)
            }
        },
    };
    Ok(T::from_bits(u128::from(bits)))
}

/// Whether a finite value became one, and was not saturated at the largest.
fn in_range(value: f64, bits: u32, format: FloatFormat) -> bool {
    if format.is_nan(bits) || format.is_infinite(bits) {
        return false;
    }
    let max = format.decode(format.max_bits());
    let step = max - format.decode(format.max_bits() - 1);
    !matches!(format.specials, Specials::NumbersOnly) || value.abs() < max + step / 2.0
}

fn round_once(word: &str, value: f64, format: FloatFormat) -> u32 {
    // Conversions round everything between the two smallest powers of two up, as XLA's do; text would then
    // not read back (2^-127 is printed as 5.9e-39), so here it is the nearest.
    if matches!(format.specials, Specials::Scale) && value > 0.0 && value < 1.5 * format.decode(0) {
        return 0;
    }
    // Halfway points have at most 12 significant bits, so the low 40 of 53 are zero.
    if value.to_bits() & ((1 << 40) - 1) != 0 || value == 0.0 || !value.is_finite() {
        return format.encode(value);
    }
    let (below, above) = (format.encode(value.next_down()), format.encode(value.next_up()));
    if below == above {
        return format.encode(value);
    }
    match compare_decimal(word, value) {
        std::cmp::Ordering::Less => below,
        std::cmp::Ordering::Equal => format.encode(value),
        std::cmp::Ordering::Greater => above,
    }
}

macro_rules! scan_narrow_floats {
    ($($t:ty = $format:expr;)*) => {
        $(impl ScanElement for $t {
            fn scan(c: &mut Cursor<'_>) -> Res<$t> {
                scan_narrow(c, $format)
            }
        })*
    };
}
scan_narrow_floats! {
    f16 = FloatFormat::F16;
    bf16 = FloatFormat::BF16;
    F8E5M2 = F8E5M2::FORMAT;
    F8E4M3 = F8E4M3::FORMAT;
    F8E4M3FN = F8E4M3FN::FORMAT;
    F8E4M3B11FNUZ = F8E4M3B11FNUZ::FORMAT;
    F8E3M4 = F8E3M4::FORMAT;
    F8E5M2FNUZ = F8E5M2FNUZ::FORMAT;
    F8E4M3FNUZ = F8E4M3FNUZ::FORMAT;
    F8E8M0FNU = F8E8M0FNU::FORMAT;
    F4E2M1FN = F4E2M1FN::FORMAT;
    F6E3M2FN = F6E3M2FN::FORMAT;
    F6E2M3FN = F6E2M3FN::FORMAT;
}

impl<T> ScanElement for Complex<T>
where
    T: ScanElement,
    Complex<T>: Element,
{
    fn scan(c: &mut Cursor<'_>) -> Res<Complex<T>> {
        if c.peek_raw() != b'(' {
            return Err(bad(c, <Complex<T> as Element>::TYPE.name(), "`(real, imaginary)`"));
        }
        c.bump(1);
        c.skip();
        let re = T::scan(c)?;
        c.expect(b',', codes::BAD_ELEMENT)?;
        c.skip();
        let im = T::scan(c)?;
        c.expect(b')', codes::BAD_ELEMENT)?;
        Ok(Complex::new(re, im))
    }
}
