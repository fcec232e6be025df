//! Sine, cosine and angle in double-double.
//!
//! Invariant: for finite arguments the relative error of each result is below 2^-96, for huge angles too.

use super::{
    constants::{HALF_PI, INVERSE_FACTORIAL, PI, QUARTER_PI, TWO_OVER_PI},
    dd::{Dd, Wide, exponent_of, power_of_two, scale},
};

/// An angle as `quadrant * pi/2 + rest` with |rest| <= pi/4 or slightly more, the quadrant modulo 4.
struct Reduced {
    quadrant: u8,
    rest: Dd,
}

/// sin x and cos x.
pub(super) fn sin_cos(x: f64) -> (Dd, Dd) {
    let Reduced { quadrant, rest } = reduce(x);
    in_quadrant(quadrant, rest)
}

/// sin x and cos x of an angle of more than f64 precision.
pub(super) fn sin_cos_dd(x: Dd) -> (Dd, Dd) {
    let (high, low) = (reduce(x.hi), reduce(x.lo));
    let mut quadrant = high.quadrant + low.quadrant;
    let mut rest = high.rest + low.rest;
    if rest.hi > QUARTER_PI.hi {
        rest = rest - HALF_PI;
        quadrant += 1;
    } else if rest.hi < -QUARTER_PI.hi {
        rest = rest + HALF_PI;
        quadrant += 3;
    }
    in_quadrant(quadrant % 4, rest)
}

/// sin and cos of a number of right angles; 0 and ±1 where they are.
pub(super) fn sin_cos_pi(halves: f64) -> (Dd, Dd) {
    // `halves` counts right angles; its remainder and the difference from an integer are exact.
    let within = halves % 4.0;
    let nearest = within.round_ties_even();
    let (sin, cos) = in_quadrant((nearest as i32).rem_euclid(4) as u8, Dd::from(within - nearest) * HALF_PI);
    (sin + Dd::ZERO, cos + Dd::ZERO) // no negative zero
}

fn in_quadrant(quadrant: u8, rest: Dd) -> (Dd, Dd) {
    let (sin, cos) = kernel(rest);
    match quadrant {
        0 => (sin, cos),
        1 => (cos, -sin),
        2 => (-sin, -cos),
        _ => (-cos, sin),
    }
}

/// Both series, for |x| <= 0.8.
fn kernel(x: Dd) -> (Dd, Dd) {
    let square = -(x * x);
    let terms = |first: usize| {
        INVERSE_FACTORIAL[first..].iter().step_by(2).rev().fold(Dd::ZERO, |sum, &term| (sum + term) * square)
    };
    (x + terms(3) * x, Dd::ONE + terms(2))
}

/// Payne and Hanek's reduction: the product with as many bits of 2/pi as matter, in integers.
fn reduce(x: f64) -> Reduced {
    const WORDS: usize = 5;
    if x.abs() <= QUARTER_PI.hi {
        return Reduced { quadrant: 0, rest: Dd::from(x) };
    }
    // |x| = significand * 2^exponent, and the exponent is at least -53.
    let exponent = exponent_of(x) - 52;
    let significand = (x.to_bits() & ((1 << 52) - 1)) | 1 << 52;
    // The leading words of 2/pi whose products are multiples of 4 do not matter.
    let skip = if exponent >= 2 { (exponent as usize - 2) / 64 } else { 0 };
    // product = significand * the next words, least significant word first; its unit is 2^-point.
    let point = (64 * (skip + WORDS)) as i64 - i64::from(exponent);
    let mut product = [0u64; WORDS + 1];
    let mut carry = 0u64;
    for (word, digit) in TWO_OVER_PI[skip..skip + WORDS].iter().rev().zip(&mut product) {
        let sum = u128::from(significand) * u128::from(*word) + u128::from(carry);
        *digit = sum as u64;
        carry = (sum >> 64) as u64;
    }
    product[WORDS] = carry;
    // Keep the two bits above the point and the fraction, at the top of the array: the quadrant is then its
    // top bits.
    let keep = point as u32 + 2;
    shift_left(&mut product, 64 * (WORDS as u32 + 1) - keep);
    let mut quadrant = (product[WORDS] >> 62) as u8;
    shift_left(&mut product, 2);
    // A fraction of a half or more belongs to the next quadrant, and its complement is what is left.
    let negative = product[WORDS] >> 63 != 0;
    if negative {
        quadrant += 1;
        product.iter_mut().for_each(|word| *word = !*word); // one unit off, far below the precision
    }
    let rest = fraction(&mut product) * HALF_PI;
    let rest = if negative { -rest } else { rest };
    if x < 0.0 {
        Reduced { quadrant: (8 - quadrant) % 4, rest: -rest }
    } else {
        Reduced { quadrant: quadrant % 4, rest }
    }
}

/// Shifts a little-endian number left; what leaves at the top is lost.
fn shift_left(words: &mut [u64], amount: u32) {
    let (whole, part) = ((amount / 64) as usize, amount % 64);
    for i in (0..words.len()).rev() {
        let word = |j: usize| if j <= i { words[i - j] } else { 0 };
        let (high, low) = (word(whole), word(whole + 1));
        words[i] = if part == 0 { high } else { high << part | low >> (64 - part) };
    }
}

/// The value of a fraction below 1, its point above the top word, to the precision of a [`Dd`].
fn fraction(words: &mut [u64]) -> Dd {
    let Some(top) = words.iter().rposition(|&word| word != 0) else { return Dd::ZERO };
    let zeros = 64 * (words.len() - 1 - top) as u32 + words[top].leading_zeros();
    shift_left(words, zeros);
    let [.., low, high] = *words else { return Dd::ZERO };
    let hi = (high >> 11) as f64 * power_of_two(-53);
    let lo = (u128::from(high & 0x7ff) << 64 | u128::from(low)) as f64 * power_of_two(-128);
    (Dd::from(hi) + Dd::from(lo)).scale(power_of_two(-(zeros as i32)))
}

/// The angle of the point (x, y), as C's `atan2` for zeros. Not for infinities or NaN.
pub(super) fn atan2(y: Dd, x: Dd) -> Wide {
    let negative = x.hi.is_sign_negative();
    if y.hi == 0.0 {
        let angle = if negative { PI } else { Dd::ZERO };
        return Wide::from(if y.hi.is_sign_negative() { -angle } else { angle });
    }
    let scaled = |part: Dd, e: i32| Dd::new(scale(part.hi, -e), scale(part.lo, -e));
    let ratio = Wide::from(y) / Wide::from(x);
    if !negative && x.hi != 0.0 && ratio.normalize().value.hi.is_finite() {
        let ratio = ratio.normalize();
        if ratio.exponent < -60 {
            return ratio; // the next term, ratio^3/3, is below the last bit
        }
    }
    let e = exponent_of(if x.hi.abs() > y.hi.abs() { x.hi } else { y.hi });
    let (y, x) = (scaled(y, e), scaled(x, e));
    // One step of Newton's method from the f64 angle: rotate the point back by it; what is left is almost 0.
    let start = core_math::atan2(y.hi, x.hi);
    let (sin, cos) = sin_cos(start);
    let rest = (y * cos - x * sin) / (x * cos + y * sin);
    Wide::from(Dd::from(start) + rest)
}
