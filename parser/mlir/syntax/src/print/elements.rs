//! Numbers and lists of elements as text.

use std::fmt::Write as _;

use super::Printer;
use super::attribute::is_finite;
use crate::ir::FloatType;

/// A float by its decimals if they read back as the same number, else by its bits.
pub(super) fn float(out: &mut String, ty: FloatType, bits: u64) {
    if let Some(x) = is_finite(ty, bits) {
        let mut text = String::new();
        match ty {
            FloatType::F64 => decimal(&mut text, x),
            _ => decimal32(&mut text, x as f32),
        }
        if text.parse().ok().and_then(|x: f64| crate::encode::float_bits(ty, x)) == Some(bits) {
            out.push_str(&text);
            return;
        }
    }
    let digits = ty.bits().div_ceil(4) as usize;
    let _ = write!(out, "0x{bits:0digits$X}");
}

/// A float as MLIR's own printer writes it: six significant digits if they read back as the same number, else
/// as many as the format may need, else its bits.
pub(super) fn float_as_mlir(out: &mut String, ty: FloatType, bits: u64) {
    let reads_back =
        |text: &str| text.parse().ok().and_then(|x: f64| crate::encode::float_bits(ty, x)) == Some(bits);
    if let Some(x) = is_finite(ty, bits) {
        let text = scientific(x);
        if reads_back(&text) {
            out.push_str(&text);
            return;
        }
        let text = significant(x, ty);
        // A whole number has no point, and would be an integer.
        if text.contains('.') && reads_back(&text) {
            out.push_str(&text);
            return;
        }
    }
    let digits = ty.bits().div_ceil(4) as usize;
    let _ = write!(out, "0x{bits:0digits$X}");
}

/// The first significant digits of a finite number that is not zero, rounded half up by the digit after them
/// as LLVM's `APFloat` does, without zeros at their end, and the power of ten of the last one.
fn digits(x: f64, count: usize) -> (Vec<u8>, i32) {
    // The number is an odd significand times a power of two, an integer times a power of ten.
    let bits = x.abs().to_bits();
    let (fraction, biased) = (bits & ((1 << 52) - 1), (bits >> 52) as i32);
    let (mut significand, mut power) =
        if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
    let zeros = significand.trailing_zeros();
    significand >>= zeros;
    power += zeros as i32;
    let tens = (-power).max(0);
    let width = (significand as f64).log2() + f64::from(power.max(0)) + f64::from(tens) * 5f64.log2();
    // Digits of that integer that cannot matter are truncated first, without rounding.
    let needed = (count as i64 * 196 + 58) / 59;
    let cut = ((width.floor() as i64 + 1 - needed).max(0) * 59) / 196;
    let text = format!("{:.*e}", count + 24, x.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mut exponent: i32 = exponent.parse().unwrap_or(0);
    let mut all: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).map(|b| b - b'0').collect();
    let kept = i64::from(exponent) + i64::from(tens) + 1 - cut;
    all.truncate(usize::try_from(kept).unwrap_or(1).max(1));
    let up = all.get(count).is_some_and(|&d| d >= 5);
    all.truncate(count);
    if up {
        match all.iter().rposition(|&d| d < 9) {
            Some(at) => {
                all.truncate(at + 1);
                all[at] += 1;
            }
            None => {
                all = vec![1];
                exponent += 1;
            }
        }
    }
    while all.len() > 1 && all.last() == Some(&0) {
        all.pop();
    }
    let last = exponent - (all.len() as i32 - 1);
    (all, last)
}

/// `1.500000e+00`
fn scientific(x: f64) -> String {
    const DIGITS: usize = 6;
    let sign = if x.is_sign_negative() { "-" } else { "" };
    if x == 0.0 {
        return format!("{sign}0.000000e+00");
    }
    let (all, last) = digits(x, DIGITS);
    let exponent = last + all.len() as i32 - 1;
    let mut text = format!("{sign}{}.", all[0]);
    text.extend(all[1..].iter().map(|d| char::from(b'0' + d)));
    for _ in all.len() - 1..DIGITS {
        text.push('0');
    }
    let _ = write!(text, "e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs());
    text
}

/// As many digits as a format of that many bits may need, with a point where only few zeros are next to it,
/// else with an exponent.
fn significant(x: f64, ty: FloatType) -> String {
    const MAX_ZEROS: i32 = 3;
    let (all, last) = digits(x, 2 + precision(ty) as usize * 59 / 196);
    let sign = if x.is_sign_negative() { "-" } else { "" };
    let written = |d: &[u8]| d.iter().map(|d| char::from(b'0' + d)).collect::<String>();
    let first = last + all.len() as i32 - 1;
    if (0..=MAX_ZEROS).contains(&last) {
        return format!("{sign}{}{}", written(&all), "0".repeat(last as usize));
    }
    if last < 0 && first >= 0 {
        let (whole, part) = all.split_at(first as usize + 1);
        return format!("{sign}{}.{}", written(whole), written(part));
    }
    if last < 0 && -first <= MAX_ZEROS {
        return format!("{sign}0.{}{}", "0".repeat((-first - 1) as usize), written(&all));
    }
    let rest = if all.len() == 1 { "0".to_owned() } else { written(&all[1..]) };
    format!("{sign}{}.{rest}E{}{}", all[0], if first < 0 { '-' } else { '+' }, first.abs())
}

/// Bits of the significand, the hidden one too.
fn precision(ty: FloatType) -> u32 {
    match ty {
        FloatType::F16 | FloatType::TF32 => 11,
        FloatType::BF16 => 8,
        FloatType::F32 => 24,
        FloatType::F64 => 53,
        FloatType::F80 => 64,
        FloatType::F128 => 113,
        FloatType::F8E5M2 | FloatType::F8E5M2FNUZ | FloatType::F6E3M2FN => 3,
        FloatType::F8E4M3
        | FloatType::F8E4M3FN
        | FloatType::F8E4M3FNUZ
        | FloatType::F8E4M3B11FNUZ
        | FloatType::F6E2M3FN => 4,
        FloatType::F8E3M4 => 5,
        FloatType::F4E2M1FN => 2,
        FloatType::F8E8M0FNU => 1,
    }
}

/// The shortest decimals, with the point that MLIR wants.
pub(super) fn decimal(out: &mut String, x: f64) {
    pointed(out, &format!("{x:?}"));
}

fn decimal32(out: &mut String, x: f32) {
    pointed(out, &format!("{x:?}"));
}

fn pointed(out: &mut String, text: &str) {
    match text.split_once('e') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => {
            let _ = write!(out, "{mantissa}.0e{exponent}");
        }
        _ => out.push_str(text),
    }
}

/// Two digits a byte.
pub(super) fn hex(out: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.reserve(2 * bytes.len());
    for b in bytes {
        out.push(DIGITS[usize::from(b >> 4)] as char);
        out.push(DIGITS[usize::from(b & 15)] as char);
    }
}

/// Nested lists as dimensions say; `one` prints the element at an index.
pub(super) fn nested(p: &mut Printer<'_>, dims: &[i64], mut one: impl FnMut(&mut Printer<'_>, usize)) {
    let count: usize = dims.iter().map(|&d| d.max(0) as usize).product();
    let mut index = vec![0i64; dims.len()];
    for i in 0..count {
        if i > 0 {
            p.out.push_str(", ");
        }
        for _ in index.iter().rev().take_while(|&&n| n == 0) {
            p.out.push('[');
        }
        one(p, i);
        // Counts up, closing what is complete.
        for (n, &d) in index.iter_mut().zip(dims).rev() {
            *n += 1;
            if *n < d {
                break;
            }
            *n = 0;
            p.out.push(']');
        }
    }
}
