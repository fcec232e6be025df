//! The operands that functions are checked on: all patterns of bits, or points that hurt.

use hlo::elided::splitmix64;
use hlo::{Bits, ElementType, with_element_type};

use hlo_execution::element::Number;

/// Numbers around which functions change: zeros, ends of domains, thresholds of overflow and underflow in f32
/// and f64, and multiples of pi/2 next to floats.
const LANDMARKS: &[f64] = &[
    0.0,
    0.5,
    1.0,
    2.0,
    std::f64::consts::FRAC_PI_4,
    std::f64::consts::FRAC_PI_2,
    std::f64::consts::PI,
    std::f64::consts::E,
    std::f64::consts::LN_2,
    16.635532333438686,
    17.328679513998633,
    36.7368005696771,
    88.02969193111305,
    88.72283905206835,
    103.97207708399179,
    104.0,
    709.782712893384,
    710.4758600739439,
    745.1332191019412,
    5.863584748755168,
    3.919205904006958,
    5.319372648326541e255,
    6_381_956_970_095_103.0,
    1e22,
    3.4028234663852886e38,
    1.1754943508222875e-38,
    2.2250738585072014e-308,
];

/// The bits of operand number `i` of a sample. Complex types get two parts of their real type.
pub(super) fn sampled(ty: ElementType, seed: u64, i: u64) -> u128 {
    let r = |n: u64| splitmix64(splitmix64(seed ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(i));
    if ty.is_complex() {
        let width = ty.real_part().bits();
        let part = |n| moderate(ty.real_part(), r(n), r(n + 1), r(n + 2));
        return part(10) | part(20) << width;
    }
    match i % 4 {
        // Any pattern.
        0 => u128::from(r(1)) & mask(ty.bits()),
        1 | 2 => moderate(ty, r(1), r(2), r(3)),
        // Next to a landmark, or to a multiple of one.
        _ => {
            let landmark = LANDMARKS[(r(1) % LANDMARKS.len() as u64) as usize];
            let times = if r(2).is_multiple_of(3) { (r(3) % 1000 + 1) as f64 } else { 1.0 };
            let sign = if r(4) & 1 == 0 { 1.0 } else { -1.0 };
            let near = bits_of(ty, sign * landmark * times);
            let step = u128::from(r(5) % 9);
            // Steps in the pattern are neighbours in magnitude.
            let moved = if r(6) & 1 == 0 { near + step } else { near.saturating_sub(step) };
            moved & mask(ty.bits())
        }
    }
}

fn mask(bits: u32) -> u128 {
    (1u128 << bits) - 1
}

/// Either sign, all fractions alike, exponents of everyday.
fn moderate(ty: ElementType, r: u64, s: u64, t: u64) -> u128 {
    let exponent = (s % 24) as i32 - 14 + if t.is_multiple_of(16) { (t >> 8) as i32 % 60 } else { 0 };
    let magnitude = (1.0 + (r >> 12) as f64 / (1u64 << 52) as f64) * 2f64.powi(exponent);
    bits_of(ty, if t & 32 == 0 { magnitude } else { -magnitude })
}

fn bits_of(ty: ElementType, x: f64) -> u128 {
    with_element_type!(ty, T => <T as Number>::from_f64(x).bits())
}
