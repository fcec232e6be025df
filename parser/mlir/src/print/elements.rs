//! Numbers and lists of elements as text.

use std::fmt::Write as _;

use super::Printer;
use super::attribute::is_finite;
use crate::ir::FloatType;

/// A float by its decimals if they read back as the same number, else by its bits.
pub(super) fn float(out: &mut String, ty: FloatType, bits: u64) {
    match is_finite(ty, bits) {
        Some(x) if crate::encode::float_bits(ty, x) == Some(bits) => match ty {
            FloatType::F64 => decimal(out, x),
            _ => decimal32(out, x as f32),
        },
        _ => {
            let digits = ty.bits().div_ceil(4) as usize;
            let _ = write!(out, "0x{bits:0digits$X}");
        }
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
