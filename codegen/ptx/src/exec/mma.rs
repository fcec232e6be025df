//! The arithmetic of `mma.sync`.
//!
//! The ISA leaves order, rounding and alignment of floating-point products open. What is computed here is the
//! published bit-accurate model of the hardware (MMA-Sim, arXiv 2511.10909; Khattak and Mikaitis, arXiv
//! 2512.07004): an instruction sums blocks of products and the accumulator in fixed point, every term aligned
//! to the largest exponent and truncated at F fraction bits, and truncates the sum to f32 (or rounds it to
//! nearest in f16).

use super::integer::signed;
use super::matrix::Matrix;
use crate::float::ops::{float2, fma};
use crate::float::{BF16, E4M3, E5M2, F16, F32, Format, Number, Overflow, TF32};
use crate::ir::{Float2, FloatMode, FloatType, Mma, Round};
use crate::types::{Class, Type};

/// Fraction bits of the fixed-point sum, and bytes of A that one block takes, by architecture.
fn model(arch: u32, a: Type) -> (i32, u32) {
    let f8 = matches!(a, Type::E4m3 | Type::E5m2);
    match arch {
        ..=74 => (23, 8),
        75..=88 => (24, 16),
        89 => (if f8 { 13 } else { 24 }, 16),
        _ => (25, 32),
    }
}

/// A * B + C.
pub(super) fn multiply(s: &Mma, arch: u32, a: &Matrix, b: &Matrix, c: &Matrix) -> Matrix {
    let (rows, columns, k) = (usize::from(s.m), usize::from(s.n), usize::from(s.k));
    let mut d = Matrix::new(rows, columns);
    for i in 0..rows {
        for j in 0..columns {
            let x: Vec<u64> = (0..k).map(|n| a.at(i, n)).collect();
            let y: Vec<u64> = (0..k).map(|n| b.at(n, j)).collect();
            d.elements[i * columns + j] = dot(s, arch, &x, &y, c.at(i, j));
        }
    }
    d
}

fn dot(s: &Mma, arch: u32, x: &[u64], y: &[u64], c: u64) -> u64 {
    match s.a {
        Type::F64 => {
            let mode = mode(FloatType::F64, s.round);
            x.iter().zip(y).fold(c, |c, (&x, &y)| fma(mode, x, y, c))
        }
        Type::B1 => {
            let ones = x.iter().zip(y).filter(|(x, y)| if s.xor { x != y } else { **x & **y == 1 }).count();
            u64::from((c as u32).wrapping_add(ones as u32))
        }
        _ if s.a.class() != Class::Float => {
            let value = |v: u64, t: Type| if t.is_signed() { signed(v, t.bits()) } else { v as i64 };
            let sum: i64 =
                x.iter().zip(y).map(|(&x, &y)| value(x, s.a) * value(y, s.b)).sum::<i64>() + signed(c, 32);
            let sum = if s.satfinite { sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) } else { sum };
            u64::from(sum as u32)
        }
        Type::E4m3 | Type::E5m2 if (90..120).contains(&arch) => converted(s, arch, x, y, c),
        _ => {
            let (fraction, bytes) = model(arch, s.a);
            let block = (bytes * 8 / s.a.bits()).max(1) as usize;
            let narrow = fraction == 13;
            let mut acc = if s.c == Type::F16 { F16.unpack(c) } else { F32.unpack(c) };
            let mut bits = c;
            for (x, y) in x.chunks(block).zip(y.chunks(block)) {
                let sum = fused(s, x, y, acc, fraction);
                bits = if s.d == Type::F16 {
                    F16.round(sum, Round::Nearest, Overflow::Ieee)
                } else if narrow {
                    let kept = Format { exponent: 8, fraction: 13, special: crate::float::Special::Ieee };
                    kept.round(sum, Round::Zero, Overflow::Ieee) << 10
                } else {
                    truncate(sum)
                };
                // Measured on an H100: zero has no sign, whatever the terms' are.
                if is_zero(s.d, bits) {
                    bits = 0;
                }
                acc = if s.d == Type::F16 { F16.unpack(bits) } else { F32.unpack(bits) };
            }
            bits
        }
    }
}

/// The mode of an operation without modifiers.
fn mode(ty: FloatType, round: Round) -> FloatMode {
    FloatMode {
        ty,
        lanes: 1,
        round,
        ftz: false,
        sat: false,
        relu: false,
        nan: false,
        abs: false,
        xorsign: false,
    }
}

/// Products of f8 on sm_90 and sm_100, whose tensor cores have no `mma.sync` of f8. The assembler converts
/// the operands to f16, multiplies the lower half of each register (k mod 4 in 0, 1) and then the upper half
/// (2, 3) as products of f16 that start from zero, and adds C to the end, rounded to nearest.
fn converted(s: &Mma, arch: u32, x: &[u64], y: &[u64], c: u64) -> u64 {
    let half = |v: &[u64], ty: Type, upper: bool| -> Vec<u64> {
        let format = if ty == Type::E4m3 { E4M3 } else { E5M2 };
        let elements = v.iter().enumerate().filter(|(k, _)| (k % 4 >= 2) == upper);
        elements.map(|(_, &bits)| F16.round(format.unpack(bits), Round::Nearest, Overflow::Ieee)).collect()
    };
    let products = Mma { k: s.k / 2, a: Type::F16, b: Type::F16, c: s.d, ..*s };
    let sum = [false, true]
        .into_iter()
        .fold(0, |sum, upper| dot(&products, arch, &half(x, s.a, upper), &half(y, s.b, upper), sum));
    let ty = if s.d == Type::F16 { FloatType::F16 } else { FloatType::F32 };
    float2(Float2::Add, mode(ty, Round::Nearest), c, sum)
}

/// A sum truncated to f32. Measured on an H100: beyond the largest number it is infinity, although it is
/// truncated.
fn truncate(sum: Number) -> u64 {
    let bits = F32.round(sum, Round::Zero, Overflow::Ieee);
    match sum {
        Number::Finite { negative, exponent, mantissa, .. }
            if mantissa != 0 && exponent + 127 - mantissa.leading_zeros() as i32 > 127 =>
        {
            F32.infinity() | u64::from(negative) << 31
        }
        Number::Nan | Number::Infinite(_) | Number::Finite { .. } => bits,
    }
}

/// Whether bits of a result are a zero.
fn is_zero(ty: Type, bits: u64) -> bool {
    bits & ((1 << (ty.bits() - 1)) - 1) == 0
}

fn operand(ty: Type, v: u64) -> (Number, i32) {
    let (format, bits) = match ty {
        Type::F16 => (F16, v),
        Type::Bf16 => (BF16, v),
        // The low bits of tf32 operands take no part.
        Type::Tf32 | Type::F32 => (TF32, v >> 13),
        Type::E4m3 => (E4M3, v),
        _ => (E5M2, v),
    };
    (format.unpack(bits), exponent(format, bits))
}

/// The exponent of the significand's first bit; of subnormals and zero the smallest.
fn exponent(format: Format, bits: u64) -> i32 {
    let bias = (1 << (format.exponent - 1)) - 1;
    let field = (bits >> format.fraction) as i32 & ((1 << format.exponent) - 1);
    field.max(1) - bias
}

/// The sum of the products and the accumulator, in fixed point with `fraction` bits below the largest
/// exponent.
fn fused(s: &Mma, x: &[u64], y: &[u64], acc: Number, fraction: i32) -> Number {
    /// Exponent of terms that are zero.
    const ZERO: i32 = -126;
    let mut terms: Vec<(Number, i32)> = Vec::with_capacity(x.len() + 1);
    for (&x, &y) in x.iter().zip(y) {
        let ((m, e), (n, f)) = (operand(s.a, x), operand(s.b, y));
        terms.push((m.product(n), e + f));
    }
    let top = match acc {
        Number::Finite { exponent, mantissa, .. } if mantissa != 0 => {
            let least = if s.c == Type::F16 { -14 } else { -126 };
            (exponent + 127 - mantissa.leading_zeros() as i32).max(least)
        }
        _ => ZERO,
    };
    terms.push((acc, top));
    let (mut positive, mut negative) = (false, false);
    for (n, _) in &terms {
        match n {
            Number::Nan => return Number::Nan,
            Number::Infinite(sign) => {
                positive |= !sign;
                negative |= *sign;
            }
            Number::Finite { .. } => {}
        }
    }
    if positive || negative {
        return if positive && negative { Number::Nan } else { Number::Infinite(negative) };
    }
    let exponent_of = |t: &(Number, i32)| match t.0 {
        Number::Finite { mantissa: 0, .. } => ZERO,
        _ => t.1,
    };
    let largest = terms.iter().map(exponent_of).max().unwrap_or(ZERO);
    let lowest = largest - fraction;
    let (mut sum, mut all_negative) = (0_i128, true);
    for (n, _) in &terms {
        let Number::Finite { negative, exponent, mantissa, .. } = *n else { continue };
        let shift = exponent - lowest;
        // Terms are below 4 * 2^largest, so that a shift to the left stays small.
        let magnitude = if shift >= 0 {
            mantissa << shift.min(100)
        } else {
            mantissa.checked_shr(shift.unsigned_abs()).unwrap_or(0)
        };
        sum += if negative { -(magnitude as i128) } else { magnitude as i128 };
        all_negative &= negative;
    }
    Number::Finite {
        negative: sum < 0 || (sum == 0 && all_negative),
        exponent: lowest,
        mantissa: sum.unsigned_abs(),
        sticky: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(a: Type, k: u16) -> Mma {
        Mma {
            m: 16,
            n: 8,
            k,
            a,
            b: a,
            c: Type::F32,
            d: Type::F32,
            round: Round::Nearest,
            satfinite: false,
            xor: false,
            transposed: (false, false),
        }
    }

    fn f(x: f32) -> u64 {
        u64::from(x.to_bits())
    }

    /// Small integers are exact in every model.
    #[test]
    fn exact_sums() {
        let h = |x: f32| u64::from(half::f16::from_f32(x).to_bits());
        let x: Vec<u64> = (1..=16).map(|v| h(v as f32)).collect();
        let want = (1..=16).map(|v| v * v).sum::<i32>() as f32 + 0.5;
        for arch in [75, 80, 89, 90, 100] {
            assert_eq!(dot(&shape(Type::F16, 16), arch, &x, &x, f(0.5)), f(want));
        }
        let s = Mma { c: Type::S32, d: Type::S32, ..shape(Type::S8, 32) };
        assert_eq!(dot(&s, 80, &[0xFF; 32], &[2; 32], 5), u64::from((-64_i32 + 5) as u32));
        let s = Mma { satfinite: true, ..s };
        assert_eq!(dot(&s, 80, &[0x80; 32], &[0x80; 32], 0x7FFF_FFFF), 0x7FFF_FFFF);
    }

    /// Known answers of the published models: 1 + 2^-24 * n is truncated where an aligned term falls below F
    /// bits.
    #[test]
    fn truncation_by_architecture() {
        let bf = |x: f32| u64::from(half::bf16::from_f32(x).to_bits());
        let (one, tiny) = (bf(1.0), bf(2f32.powi(-24)));
        // 1 * 1 and four products of 2^-24, with accumulator 0: the terms have bit 2^-24 below exponent 0.
        let x = [one, tiny, tiny, tiny, tiny, 0, 0, 0];
        let y = [one; 8];
        // F = 24 keeps 2^-24: the sum is 1 + 2^-22. F = 23 drops all.
        assert_eq!(dot(&shape(Type::Bf16, 8), 80, &x, &y, 0), f(1.0 + 2f32.powi(-22)));
        assert_eq!(dot(&shape(Type::F16, 8), 70, &[0x3C00, 1, 1, 1, 1, 0, 0, 0], &[0x3C00; 8], 0), f(1.0));
        // 2^-25 is kept by Hopper alone.
        let tiny = bf(2f32.powi(-25));
        let x = [one, tiny, tiny, tiny, tiny, 0, 0, 0];
        assert_eq!(dot(&shape(Type::Bf16, 8), 80, &x, &y, 0), f(1.0));
        assert_eq!(dot(&shape(Type::Bf16, 8), 90, &x, &y, 0), f(1.0 + 2f32.powi(-23)));
        // Rounding is towards zero: -(1 + 2^-23 + 2^-24).
        let x = [bf(-1.0), bf(-(2f32.powi(-23))), bf(-(2f32.powi(-24))), 0, 0, 0, 0, 0];
        assert_eq!(dot(&shape(Type::Bf16, 8), 80, &x, &y, 0), f(-(1.0 + 2f32.powi(-23))));
    }

    #[test]
    fn specials() {
        let (inf, ninf, nan) = (0x7F80, 0xFF80, 0x7FC0);
        let one = 0x3F80;
        assert_eq!(dot(&shape(Type::Bf16, 8), 80, &[inf], &[one], 0), f(f32::INFINITY));
        assert_eq!(dot(&shape(Type::Bf16, 8), 80, &[inf, ninf], &[one, one], 0), 0x7FFF_FFFF);
        assert_eq!(dot(&shape(Type::Bf16, 8), 80, &[nan], &[one], 0), 0x7FFF_FFFF);
        assert_eq!(dot(&shape(Type::Tf32, 8), 80, &[f(1.0) | 0x1FFF], &[f(1.0)], 0), f(1.0));
    }

    /// Rows and columns recorded on an H100.
    #[test]
    fn products_of_an_h100() {
        let numbers = |list: &str| -> Vec<u64> {
            list.split(',').map(|v| u64::from_str_radix(v.trim(), 16).unwrap()).collect()
        };
        let (mut count, mut wrong) = (0, Vec::new());
        let data = include_str!("../../tests/data/h100-mma.txt");
        for line in data.lines().filter(|l| !l.starts_with('#')) {
            let fields: Vec<&str> = line.split('|').map(str::trim).collect();
            let [instruction, a, b, c, d] = fields[..] else { panic!("{line}") };
            let mut words: Vec<&str> = instruction.split('.').skip(6).collect();
            let round = match words[0] {
                "rz" => Round::Zero,
                "rm" => Round::Down,
                "rp" => Round::Up,
                _ => Round::Nearest,
            };
            if matches!(words[0], "rn" | "rz" | "rm" | "rp") {
                words.remove(0);
            }
            let types: Vec<Type> = words.iter().map(|w| Type::from_name(w).unwrap()).collect();
            let (x, y) = (numbers(a), numbers(b));
            let s = Mma {
                a: types[1],
                b: types[2],
                c: types[3],
                d: types[0],
                round,
                ..shape(types[1], x.len() as u16)
            };
            let got = dot(&s, 90, &x, &y, numbers(c)[0]);
            if got != numbers(d)[0] {
                wrong.push(format!("{line}: {got:x}"));
            }
            count += 1;
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(count > 160, "{count}");
    }
}
