//! Conversions of one lane, by the ISA's rules of `cvt`.

use super::integer::{low, signed};
use crate::float::{
    BF16, E2M1, E2M3, E3M2, E4M3, E5M2, F16, F32, F64, Format, Number, Overflow, Special, TF32,
};
use crate::ir::{Conversion, Round};
use crate::types::{Class, Type};

/// The format of a floating-point type, or of the elements of a packed one.
fn format(ty: Type) -> Option<Format> {
    Some(match ty {
        Type::F16 | Type::F16x2 => F16,
        Type::Bf16 | Type::Bf16x2 => BF16,
        Type::F32 | Type::F32x2 => F32,
        Type::Tf32 => TF32,
        Type::F64 => F64,
        Type::E4m3 | Type::E4m3x2 => E4M3,
        Type::E5m2 | Type::E5m2x2 => E5M2,
        Type::E2m3x2 => E2M3,
        Type::E3m2x2 => E3M2,
        Type::E2m1x2 => E2M1,
        _ => return None,
    })
}

/// Bits of an element of a packed type in its register.
fn element_bits(ty: Type) -> u32 {
    match ty {
        Type::F16x2 | Type::Bf16x2 => 16,
        Type::E2m1x2 => 4,
        Type::E4m3x2 | Type::E5m2x2 | Type::E2m3x2 | Type::E3m2x2 | Type::Ue8m0x2 => 8,
        other => other.bits(),
    }
}

fn is_packed(ty: Type) -> bool {
    ty.name().ends_with("x2")
}

/// Converts one value, or each element of a packed one.
pub(crate) fn convert(c: &Conversion, x: u64) -> u64 {
    if is_packed(c.to) {
        let (from, to) = (element_bits(c.from), element_bits(c.to));
        let element = |i: u32| low(one(c, low(x >> (i * from), from)), to) << (i * to);
        return element(0) | element(1);
    }
    one(c, x)
}

/// Converts two values into a packed register: the first goes to the upper half.
pub(crate) fn convert_pair(c: &Conversion, high: u64, low_half: u64) -> u64 {
    let to = element_bits(c.to);
    low(one(c, high), to) << to | low(one(c, low_half), to)
}

fn one(c: &Conversion, x: u64) -> u64 {
    if c.to == Type::Ue8m0x2 {
        return to_scale(c, x);
    }
    if c.from == Type::Ue8m0x2 {
        // 2^(x - 127); 255 is NaN.
        let n = if x & 0xFF == 255 {
            Number::Nan
        } else {
            Number::Finite { negative: false, exponent: (x & 0xFF) as i32 - 127, mantissa: 1, sticky: false }
        };
        return BF16.round(n, Round::Nearest, Overflow::Ieee);
    }
    match (format(c.from), format(c.to)) {
        (None, None) => int_to_int(c, x),
        (None, Some(to)) => {
            let n = if c.from.is_signed() {
                Number::from_i128(i128::from(signed(x, c.from.bits())))
            } else {
                Number::from_i128(i128::from(low(x, c.from.bits())))
            };
            let r = to.round(n, c.round, Overflow::Ieee);
            if c.sat { saturate(to, r) } else { r }
        }
        (Some(from), None) => float_to_int(c, from, x),
        (Some(from), Some(to)) => float_to_float(c, from, to, x),
    }
}

fn int_to_int(c: &Conversion, x: u64) -> u64 {
    let value = if c.from.is_signed() {
        i128::from(signed(x, c.from.bits()))
    } else {
        i128::from(low(x, c.from.bits()))
    };
    let value = if c.sat { clamp(value, c.to) } else { value };
    extend(value as u64, c.to)
}

fn clamp(value: i128, to: Type) -> i128 {
    let bits = to.bits();
    if to.is_signed() {
        value.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        value.clamp(0, (1 << bits) - 1)
    }
}

/// The bits of an integer in a register that may be wider: extended as its type says.
fn extend(x: u64, ty: Type) -> u64 {
    if ty.is_signed() { signed(x, ty.bits()) as u64 } else { low(x, ty.bits()) }
}

fn float_to_int(c: &Conversion, from: Format, x: u64) -> u64 {
    let x = if c.ftz { from.flush(low(x, c.from.bits())) } else { low(x, c.from.bits()) };
    let n = from.unpack(x);
    let value = match n {
        // The ISA: NaN is 0, or the integer with the top bit alone where a side has 64 bits.
        Number::Nan => {
            let wide = c.from == Type::F64 || c.to.bits() == 64;
            return if wide { extend(1 << (c.to.bits() - 1), c.to) } else { 0 };
        }
        Number::Infinite(negative) => {
            if negative {
                i128::MIN
            } else {
                i128::MAX
            }
        }
        Number::Finite { .. } => n.to_integer(c.round).unwrap_or(0),
    };
    extend(clamp(value, c.to) as u64, c.to)
}

fn float_to_float(c: &Conversion, from: Format, to: Format, x: u64) -> u64 {
    let bits = element_bits(c.from);
    let x = low(x, bits);
    // Measured on an H100: conversions to f16 do not flush their operand.
    let x = if c.ftz && from == F32 && to != F16 { from.flush(x) } else { x };
    let mut n = from.unpack(x);
    if let Some(bits) = nan_bits(c, from, to, x) {
        return bits;
    }
    if c.integral
        && let Number::Finite { negative, exponent, .. } = n
        && exponent < 0
    {
        let i = n.to_integer(c.round).unwrap_or(0);
        n = Number::Finite { negative, exponent: 0, mantissa: i.unsigned_abs(), sticky: false };
    }
    let overflow = if c.satfinite { Overflow::Saturate } else { Overflow::Ieee };
    let mut r = to.round(n, c.round, overflow);
    // e5m2 has more than one NaN; the ISA's is 0x7F, as `Format::nan` gives.
    let width = to.exponent + to.fraction + 1;
    if c.ftz && (to == F32 || from == F32 && c.to == Type::F32) {
        r = to.flush(r);
    }
    let sign = 1_u64 << (width - 1);
    if c.sat {
        r = saturate(to, r);
    }
    if c.relu && r & sign != 0 && !to.is_nan(r) {
        r = 0;
    }
    if c.to == Type::Tf32 { r << 13 } else { r }
}

/// `.sat`: clamps to [0, 1]; NaN becomes zero.
fn saturate(to: Format, r: u64) -> u64 {
    let sign = 1_u64 << (to.exponent + to.fraction);
    let one = to.round(Number::from_i128(1), Round::Nearest, Overflow::Ieee);
    if to.is_nan(r) || r & sign != 0 { 0 } else { r.min(one) }
}

/// The result of a NaN (of `.rna.tf32`: of an infinity, too) where it is not the canonical NaN of the
/// destination. The ISA leaves it open; these are the bits of an H100. What is no floating-point instruction
/// there keeps all bits: a move, the shift that widens bf16 to f32, the mask that narrows f32 to tf32.
/// Conversions from and to f64 keep sign and the upper bits of the payload, quieted.
fn nan_bits(c: &Conversion, from: Format, to: Format, x: u64) -> Option<u64> {
    if c.to == Type::Tf32 && c.round == Round::NearestAway && low(x, 31) >= F32.infinity() {
        // The low 13 bits are truncated; `.satfinite` subtracts a unit in the last place from infinities and
        // NaNs alike.
        let kept = x & !0x1FFF;
        return Some(if c.satfinite { kept - 0x2000 } else { kept });
    }
    if !from.is_nan(x) || c.sat || c.relu {
        return None;
    }
    let is_move = c.from == c.to && !c.integral && !c.ftz && matches!(c.to, Type::F32 | Type::F64);
    if is_move {
        return Some(x);
    }
    if c.from == Type::Bf16 && c.to == Type::F32 && !c.ftz {
        return Some(x << 16);
    }
    if (c.from == Type::F64 || c.to == Type::F64)
        && from.special == Special::Ieee
        && to.special == Special::Ieee
    {
        // `.ftz` makes the operand canonical first.
        let x = if c.ftz && from == F32 { from.nan() } else { x };
        let sign = x >> (from.exponent + from.fraction) & 1;
        let payload = x & ((1 << from.fraction) - 1);
        let payload = if to.fraction >= from.fraction {
            payload << (to.fraction - from.fraction)
        } else {
            payload >> (from.fraction - to.fraction)
        };
        return Some(sign << (to.exponent + to.fraction) | to.infinity() | 1 << (to.fraction - 1) | payload);
    }
    None
}

/// The exponent of a power of two, rounded towards zero or up.
fn to_scale(c: &Conversion, x: u64) -> u64 {
    let from = format(c.from).unwrap_or(F32);
    match from.unpack(low(x, element_bits(c.from))) {
        Number::Nan => 0xFF,
        Number::Infinite(_) => {
            if c.satfinite {
                0xFE
            } else {
                0xFF
            }
        }
        Number::Finite { mantissa: 0, .. } => 0,
        Number::Finite { exponent, mantissa, .. } => {
            let top = 127 - mantissa.leading_zeros() as i32;
            let exact = mantissa == 1 << top;
            let e = exponent + top + i32::from(!exact && c.round == Round::Up);
            match e + 127 {
                ..=0 => 0,
                v @ 1..=254 => v as u64,
                _ if c.satfinite => 0xFE,
                _ => 0xFF,
            }
        }
    }
}

/// `cvt.pack.sat`: two saturated values, below them the low bits of the third.
pub(crate) fn pack(to: Type, a: u64, b: u64, c: Option<u64>) -> u64 {
    let bits = to.bits();
    let part = |x: u64| low(clamp(i128::from(signed(x, 32)), to) as u64, bits);
    let pair = part(a) << bits | part(b);
    match c {
        Some(c) => low(c << (2 * bits) | pair, 32),
        None => low(pair, 32),
    }
}

/// Whether a type's class is floating point.
pub(crate) fn is_float(ty: Type) -> bool {
    ty.class() == Class::Float
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cvt(to: Type, from: Type, round: Round, integral: bool) -> Conversion {
        Conversion { to, from, round, integral, ftz: false, sat: false, satfinite: false, relu: false }
    }

    #[test]
    fn every_16_bit_integer_and_half() {
        for v in 0..=u16::MAX {
            let x = u64::from(v);
            let to_f16 = cvt(Type::F16, Type::U16, Round::Nearest, false);
            assert_eq!(convert(&to_f16, x) as u16, half::f16::from_f64(f64::from(v)).to_bits());
            let to_bf16 = cvt(Type::Bf16, Type::S16, Round::Nearest, false);
            assert_eq!(convert(&to_bf16, x) as u16, half::bf16::from_f64(f64::from(v as i16)).to_bits());
            let h = half::f16::from_bits(v);
            // Rust's casts from floating point saturate, and NaN is 0.
            let to_s16 = cvt(Type::S16, Type::F16, Round::Zero, true);
            assert_eq!(convert(&to_s16, x) as i16, h.to_f32() as i16);
            let to_u8 = cvt(Type::U8, Type::F16, Round::Nearest, true);
            assert_eq!(convert(&to_u8, x) as u8, h.to_f32().round_ties_even() as u8);
            let floor = cvt(Type::F16, Type::F16, Round::Down, true);
            if !h.is_nan() {
                assert_eq!(
                    convert(&floor, x) as u16,
                    half::f16::from_f32(h.to_f32().floor()).to_bits(),
                    "{h}"
                );
            }
        }
    }

    #[test]
    fn every_f8_to_f16_and_back() {
        for v in 0..=255_u64 {
            for (ty, format) in [(Type::E4m3x2, E4M3), (Type::E5m2x2, E5M2)] {
                let up = cvt(Type::F16x2, ty, Round::Nearest, false);
                let wide = convert(&up, v << 8 | v);
                assert_eq!(wide >> 16, wide & 0xFFFF);
                let down = Conversion { satfinite: true, ..cvt(ty, Type::F16x2, Round::Nearest, false) };
                let back = convert(&down, wide);
                let expected = if format.is_nan(v) {
                    0x7F
                } else if format == E5M2 && v & 0x7F == 0x7C {
                    // Infinity saturates.
                    v & 0x80 | 0x7B
                } else {
                    v
                };
                assert_eq!(back, expected << 8 | expected, "{ty:?} {v:x}");
            }
        }
    }

    /// Every f16 to e4m3 against a search for the nearest value.
    #[test]
    fn every_f16_to_e4m3_is_nearest() {
        let values: Vec<(f64, u64)> = (0..0x7F_u64)
            .map(|v| (f64::from_bits(F64.round(E4M3.unpack(v), Round::Nearest, Overflow::Ieee)), v))
            .collect();
        let c = Conversion { satfinite: true, ..cvt(Type::E4m3x2, Type::F16x2, Round::Nearest, false) };
        for h in 0..0x7C00_u64 {
            let x = half::f16::from_bits(h as u16).to_f64();
            let key = |v: &(f64, u64)| ((v.0 - x).abs(), v.1 & 1);
            let best = values.iter().copied().min_by(|a, b| key(a).partial_cmp(&key(b)).unwrap()).unwrap();
            assert_eq!(convert(&c, h) & 0xFF, best.1, "{x}");
        }
    }

    #[test]
    fn nan_infinity_and_range() {
        let f = |x: f32| u64::from(x.to_bits());
        assert_eq!(convert(&cvt(Type::S32, Type::F32, Round::Zero, true), f(f32::NAN)), 0);
        assert_eq!(convert(&cvt(Type::S64, Type::F32, Round::Zero, true), f(f32::NAN)), 1 << 63);
        assert_eq!(convert(&cvt(Type::S32, Type::F32, Round::Zero, true), f(3e9)), 0x7FFF_FFFF);
        assert_eq!(convert(&cvt(Type::U32, Type::F32, Round::Zero, true), f(-1.0)), 0);
        assert_eq!(convert(&cvt(Type::S8, Type::S32, Round::Nearest, false), 0x1FF), u64::MAX);
        assert_eq!(
            convert(&Conversion { sat: true, ..cvt(Type::S8, Type::S32, Round::Nearest, false) }, 0x1FF),
            127
        );
        assert_eq!(convert(&cvt(Type::F32, Type::F32, Round::Down, true), f(-0.5)), f(-1.0));
        assert_eq!(convert(&cvt(Type::F32, Type::F32, Round::Zero, true), f(-0.5)), f(-0.0));
        assert_eq!(
            convert(&Conversion { sat: true, ..cvt(Type::F32, Type::F32, Round::Nearest, false) }, f(7.0)),
            f(1.0)
        );
        // tf32: 1 + 2^-11 is a tie, away from zero.
        assert_eq!(convert(&cvt(Type::Tf32, Type::F32, Round::NearestAway, false), 0x3F80_1000), 0x3F80_2000);
        assert_eq!(convert(&cvt(Type::Tf32, Type::F32, Round::Nearest, false), 0x3F80_1000), 0x3F80_0000);
        assert_eq!(
            convert_pair(&cvt(Type::Bf16x2, Type::F32, Round::Nearest, false), f(1.0), f(2.0)),
            0x3F80_4000
        );
        assert_eq!(pack(Type::U8, 300, 0xFFFF_FFFF, Some(0x1234)), 0x1234_FF00);
    }
}
