//! Exact comparison of decimals with floats.

use std::cmp::Ordering;

/// Compares the decimal `word` (`-1.25e-3`) with `value`, a finite float that is not zero, exactly. `word`
/// must have been parsed as a float before.
pub(super) fn compare_decimal(word: &str, value: f64) -> Ordering {
    let (negative, word) = match word.strip_prefix('-') {
        Some(w) => (true, w),
        None => (false, word),
    };
    if negative != value.is_sign_negative() {
        // The nearest float has another sign only if it is zero, which is excluded.
        return if negative { Ordering::Less } else { Ordering::Greater };
    }
    // A float is a dyadic fraction: 1100 digits after the point are more than any has, so this is exact.
    let exact = format!("{:.1100}", value.abs());
    let magnitude = compare_magnitudes(&Digits::new(word), &Digits::new(&exact));
    if negative { magnitude.reverse() } else { magnitude }
}

/// `0.d1d2d3... * 10^point`, without leading and trailing zeros.
struct Digits {
    digits: Vec<u8>,
    point: i64,
}

impl Digits {
    fn new(word: &str) -> Self {
        let (mantissa, exponent) = match word.find(['e', 'E']) {
            Some(i) => (&word[..i], exponent(&word[i + 1..])),
            None => (word, 0),
        };
        let integer = mantissa.find('.').unwrap_or(mantissa.len());
        let mut digits: Vec<u8> = mantissa.bytes().filter(|&b| b != b'.').collect();
        let leading = digits.iter().take_while(|&&b| b == b'0').count();
        digits.drain(..leading);
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        Self { digits, point: (integer as i64 - leading as i64).saturating_add(exponent) }
    }
}

/// Saturates: what does not fit is far out of range of any float anyway.
fn exponent(text: &str) -> i64 {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let value = digits.bytes().fold(0i64, |n, b| n.saturating_mul(10).saturating_add(i64::from(b - b'0')));
    if negative { -value } else { value }
}

fn compare_magnitudes(a: &Digits, b: &Digits) -> Ordering {
    match (a.digits.is_empty(), b.digits.is_empty()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => a.point.cmp(&b.point).then_with(|| a.digits.cmp(&b.digits)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_decimals_exactly() {
        assert_eq!(compare_decimal("1.5", 1.5), Ordering::Equal);
        assert_eq!(compare_decimal("15e-1", 1.5), Ordering::Equal);
        assert_eq!(compare_decimal("0.00150e+3", 1.5), Ordering::Equal);
        assert_eq!(compare_decimal("1.50000000000000000000000001", 1.5), Ordering::Greater);
        assert_eq!(compare_decimal("1.49999999999999999999999999", 1.5), Ordering::Less);
        assert_eq!(compare_decimal("-1.49999999999999999999999999", -1.5), Ordering::Greater);
        assert_eq!(compare_decimal("5e-324", 5e-324), Ordering::Greater, "the least float is below 5e-324");
        assert_eq!(compare_decimal("1e308", 1e308), Ordering::Less, "1e308 is rounded up");
    }
}
