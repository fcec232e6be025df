//! Arithmetic on the bits of floating-point values, as the instructions do it.

use super::approximate::{canonical, evaluate};
use super::{BF16, F16, F32, F64, Format, Overflow};
use crate::ir::{Float1, Float2, FloatMode, FloatType, Round};

/// The format of an arithmetic type.
#[must_use]
pub fn format(ty: FloatType) -> Format {
    match ty {
        FloatType::F16 => F16,
        FloatType::Bf16 => BF16,
        FloatType::F32 => F32,
        FloatType::F64 => F64,
    }
}

fn width(ty: FloatType) -> u32 {
    match ty {
        FloatType::F16 | FloatType::Bf16 => 16,
        FloatType::F32 => 32,
        FloatType::F64 => 64,
    }
}

fn mask(ty: FloatType) -> u64 {
    u64::MAX >> (64 - width(ty))
}

/// The quiet NaN with the sign and the payload of an f64 NaN.
pub(crate) fn quiet_f64(x: u64) -> u64 {
    x | 1 << 51
}

/// The NaN that an operation makes. f32, f16 and bf16 have one NaN. The ISA leaves the bits of f64 open;
/// measured on an H100: sign and payload of the first NaN operand in the order b, c, a, quieted. `operands`
/// come in that order.
fn nan(ty: FloatType, operands: &[u64]) -> u64 {
    match ty {
        FloatType::F64 => {
            operands.iter().find(|&&x| F64.is_nan(x)).map_or(0xFFF8_0000_0000_0000, |&x| quiet_f64(x))
        }
        FloatType::F32 | FloatType::F16 | FloatType::Bf16 => format(ty).nan(),
    }
}

/// The steps behind the rounding: flush, saturation, relu.
fn finish(mode: FloatMode, bits: u64) -> u64 {
    let f = format(mode.ty);
    let mut bits = if mode.ftz { f.flush(bits) } else { bits };
    let sign = 1 << (width(mode.ty) - 1);
    if mode.sat {
        let one = f.round(super::Number::from_i128(1), Round::Nearest, Overflow::Ieee);
        bits = if f.is_nan(bits) || bits & sign != 0 { 0 } else { bits.min(one) };
    }
    if mode.relu && bits & sign != 0 && !f.is_nan(bits) {
        bits = 0;
    }
    bits
}

/// Applies an operation to each packed element.
fn each<const N: usize>(mode: FloatMode, operands: [u64; N], op: impl Fn([u64; N]) -> u64) -> u64 {
    let m = mask(mode.ty);
    let flush = |x: u64| if mode.ftz { format(mode.ty).flush(x) } else { x };
    let element = |lane: u32| {
        let shift = lane * width(mode.ty);
        op(operands.map(|x| flush((x >> shift) & m))) << shift
    };
    if mode.lanes == 2 { element(0) | element(1) } else { element(0) }
}

/// Rounds an exact number to the format of the mode. `operands`: those that may be NaN, as [`nan`] takes
/// them.
fn round(mode: FloatMode, n: super::Number, operands: &[u64]) -> u64 {
    if n == super::Number::Nan {
        return finish(mode, nan(mode.ty, operands));
    }
    let f = format(mode.ty);
    let bits = f.round(n, mode.round, Overflow::Ieee);
    if mode.ftz && is_least_normal(f, bits) && is_tiny(f, n, mode.round) {
        return finish(mode, bits & f.sign_bit());
    }
    finish(mode, bits)
}

fn is_least_normal(f: Format, bits: u64) -> bool {
    bits & !f.sign_bit() == 1 << f.fraction
}

/// Whether a number is tiny after rounding (IEEE 754, 7.5): below the smallest normal number where it is
/// rounded as if exponents had no bound. `.ftz` flushes such results although rounding to a subnormal carries
/// into the smallest normal number (measured on an H100).
fn is_tiny(f: Format, n: super::Number, round: Round) -> bool {
    let wide = Format { exponent: 15, ..f };
    let least = (wide.bias() - f.bias() + 1) as u64;
    let bits = wide.round(n, round, Overflow::Ieee);
    (bits & !wide.sign_bit()) >> f.fraction < least
}

/// a * b + c, rounded once.
#[must_use]
pub fn fma(mode: FloatMode, a: u64, b: u64, c: u64) -> u64 {
    each(mode, [a, b, c], |[a, b, c]| {
        let nearest = mode.round == Round::Nearest;
        let exact = || {
            let f = format(mode.ty);
            round(mode, f.unpack(a).product(f.unpack(b)).sum(f.unpack(c), mode.round), &[b, c, a])
        };
        match mode.ty {
            FloatType::F32 if nearest => {
                let x = f32::from_bits(a as u32).mul_add(f32::from_bits(b as u32), f32::from_bits(c as u32));
                let bits = u64::from(canonical(x).to_bits());
                // A result that `.ftz` may flush is rounded again from its exact value.
                if mode.ftz && is_least_normal(F32, bits) { exact() } else { finish(mode, bits) }
            }
            FloatType::F64 if nearest && ![a, b, c].iter().any(|&x| F64.is_nan(x)) => {
                let x = f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c));
                if x.is_nan() { nan(mode.ty, &[]) } else { x.to_bits() }
            }
            FloatType::F32 | FloatType::F64 | FloatType::F16 | FloatType::Bf16 => exact(),
        }
    })
}

/// An operation of two operands.
#[must_use]
pub fn float2(op: Float2, mode: FloatMode, a: u64, b: u64) -> u64 {
    each(mode, [a, b], |[a, b]| {
        let f = format(mode.ty);
        match op {
            Float2::Min | Float2::Max => finish(mode, minmax(op == Float2::Max, mode, a, b)),
            Float2::Copysign => {
                // The ISA: the sign of a, the magnitude of b.
                let sign = 1 << (width(mode.ty) - 1);
                (b & (sign - 1)) | (a & sign)
            }
            Float2::DivApprox => {
                let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
                let q = x / y;
                // The ISA: of divisors beyond 2^126 zero, of infinity by them NaN.
                let huge = y.abs() > f32::from_bits(0x7E80_0000) && y.is_finite();
                let q = if huge && !x.is_finite() {
                    f32::NAN
                } else if huge {
                    0.0_f32.copysign(q)
                } else {
                    q
                };
                finish(mode, u64::from(canonical(q).to_bits()))
            }
            Float2::Add | Float2::Sub | Float2::Mul | Float2::Div | Float2::DivFull => {
                if mode.ty == FloatType::F32 && mode.round == Round::Nearest {
                    let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
                    let r = match op {
                        Float2::Add => x + y,
                        Float2::Sub => x - y,
                        Float2::Mul => x * y,
                        Float2::Div | Float2::DivFull | Float2::DivApprox => x / y,
                        Float2::Min | Float2::Max | Float2::Copysign => f32::NAN,
                    };
                    let bits = u64::from(canonical(r).to_bits());
                    // A result that `.ftz` may flush is rounded again from its exact value.
                    if !(mode.ftz && is_least_normal(f, bits)) {
                        return finish(mode, bits);
                    }
                }
                let (m, n) = (f.unpack(a), f.unpack(b));
                let r = match op {
                    Float2::Add => m.sum(n, mode.round),
                    Float2::Sub => m.sum(n.negate(), mode.round),
                    Float2::Mul => m.product(n),
                    Float2::Div | Float2::DivFull | Float2::DivApprox => m.quotient(n),
                    Float2::Min | Float2::Max | Float2::Copysign => super::Number::Nan,
                };
                // The device divides f64 in software, which looks at the dividend first.
                let nans = if op == Float2::Div { [a, b] } else { [b, a] };
                round(mode, r, &nans)
            }
        }
    })
}

fn minmax(max: bool, mode: FloatMode, a: u64, b: u64) -> u64 {
    let f = format(mode.ty);
    let sign = 1_u64 << (width(mode.ty) - 1);
    let xor = (a ^ b) & sign;
    let (a, b) = if mode.abs { (a & !sign, b & !sign) } else { (a, b) };
    // Magnitude order of bits, with -0 below +0, as the ISA orders them.
    let key = |x: u64| if x & sign != 0 { !x & (sign | (sign - 1)) } else { x | sign };
    let r = match (f.is_nan(a), f.is_nan(b)) {
        (true, true) => return nan(mode.ty, &[b, a]),
        (true, false) | (false, true) if mode.nan => return nan(mode.ty, &[b, a]),
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            if (key(a) >= key(b)) == max {
                a
            } else {
                b
            }
        }
    };
    if mode.xorsign { (r & !sign) | xor } else { r }
}

/// An operation of one operand.
#[must_use]
pub fn float1(op: Float1, mode: FloatMode, a: u64) -> u64 {
    each(mode, [a], |[a]| {
        let f = format(mode.ty);
        let sign = 1_u64 << (width(mode.ty) - 1);
        match op {
            // NaN: measured on an H100, where both are additions to zero. The ISA leaves the bits open.
            Float1::Neg | Float1::Abs if f.is_nan(a) => nan(mode.ty, &[a]),
            Float1::Neg => a ^ sign,
            Float1::Abs => a & !sign,
            Float1::Rcp => {
                let one = super::Number::from_i128(1);
                round(mode, one.quotient(f.unpack(a)), &[a])
            }
            Float1::Sqrt => round(mode, f.unpack(a).sqrt(), &[a]),
            Float1::RcpApprox
            | Float1::RcpApproxFtz64
            | Float1::RsqrtApproxFtz64
            | Float1::SqrtApprox
            | Float1::RsqrtApprox
            | Float1::Sin
            | Float1::Cos
            | Float1::Lg2
            | Float1::Ex2
            | Float1::Tanh => finish(mode, evaluate(op, mode.ty, a)),
        }
    })
}

/// Whether a comparison holds.
#[must_use]
pub fn compare(op: crate::ir::Compare, ty: FloatType, ftz: bool, a: u64, b: u64) -> bool {
    use crate::ir::Compare;
    use std::cmp::Ordering;
    let f = format(ty);
    let m = mask(ty);
    let (a, b) = if ftz { (f.flush(a & m), f.flush(b & m)) } else { (a & m, b & m) };
    let sign = 1_u64 << (width(ty) - 1);
    let nan = f.is_nan(a) || f.is_nan(b);
    let key = |x: u64| {
        let magnitude = (x & (sign - 1)) as i64;
        if x & sign != 0 { -magnitude } else { magnitude }
    };
    // f64: the magnitude has 63 bits, so its negation fits.
    let order = key(a).cmp(&key(b));
    match op {
        Compare::Eq => !nan && order == Ordering::Equal,
        Compare::Ne => !nan && order != Ordering::Equal,
        Compare::Lt => !nan && order == Ordering::Less,
        Compare::Le => !nan && order != Ordering::Greater,
        Compare::Gt => !nan && order == Ordering::Greater,
        Compare::Ge => !nan && order != Ordering::Less,
        Compare::Equ => nan || order == Ordering::Equal,
        Compare::Neu => nan || order != Ordering::Equal,
        Compare::Ltu => nan || order == Ordering::Less,
        Compare::Leu => nan || order != Ordering::Greater,
        Compare::Gtu => nan || order == Ordering::Greater,
        Compare::Geu => nan || order != Ordering::Less,
        Compare::Num => !nan,
        Compare::Nan => nan,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Compare;

    fn mode(ty: FloatType) -> FloatMode {
        FloatMode {
            ty,
            lanes: 1,
            round: Round::Nearest,
            ftz: false,
            sat: false,
            relu: false,
            nan: false,
            abs: false,
            xorsign: false,
        }
    }

    const F: FloatType = FloatType::F32;

    fn bits(x: f32) -> u64 {
        u64::from(x.to_bits())
    }

    #[test]
    fn min_and_max_order_zeros_and_skip_nan() {
        let (p, n, nan) = (bits(0.0), bits(-0.0), 0x7FC0_0001);
        assert_eq!(float2(Float2::Max, mode(F), n, p), p);
        assert_eq!(float2(Float2::Min, mode(F), p, n), n);
        assert_eq!(float2(Float2::Max, mode(F), nan, n), n);
        assert_eq!(float2(Float2::Max, mode(F), nan, nan), 0x7FFF_FFFF);
        assert_eq!(float2(Float2::Max, FloatMode { nan: true, ..mode(F) }, nan, n), 0x7FFF_FFFF);
        let m = FloatMode { abs: true, xorsign: true, ..mode(F) };
        assert_eq!(float2(Float2::Max, m, bits(-3.0), bits(2.0)), bits(-3.0));
        assert_eq!(float2(Float2::Max, m, bits(-3.0), bits(-2.0)), bits(3.0));
    }

    #[test]
    fn saturation_and_flush() {
        let sat = FloatMode { sat: true, ..mode(F) };
        assert_eq!(float2(Float2::Add, sat, bits(0.75), bits(0.75)), bits(1.0));
        assert_eq!(float2(Float2::Add, sat, bits(-0.75), bits(0.25)), 0);
        assert_eq!(float2(Float2::Add, sat, 0x7FC0_0000, bits(0.25)), 0);
        let ftz = FloatMode { ftz: true, ..mode(F) };
        assert_eq!(float2(Float2::Add, ftz, 1, 0), 0);
        assert_eq!(float2(Float2::Mul, ftz, bits(-1e-20), bits(1e-20)), bits(-0.0));
    }

    #[test]
    fn directed_f32() {
        // 1 + 2^-24: down is 1, up the next number; 1/3 likewise.
        let tiny = bits(2f32.powi(-24));
        let r = |round| float2(Float2::Add, FloatMode { round, ..mode(F) }, bits(1.0), tiny);
        assert_eq!((r(Round::Down), r(Round::Up), r(Round::Zero)), (0x3F80_0000, 0x3F80_0001, 0x3F80_0000));
        let r = |round| float2(Float2::Div, FloatMode { round, ..mode(F) }, bits(1.0), bits(3.0));
        assert_eq!(
            (r(Round::Down), r(Round::Up), r(Round::Nearest)),
            (0x3EAA_AAAA, 0x3EAA_AAAB, 0x3EAA_AAAB)
        );
        let r = |round| float1(Float1::Sqrt, FloatMode { round, ..mode(F) }, bits(2.0));
        assert_eq!((r(Round::Down), r(Round::Up)), (0x3FB5_04F3, 0x3FB5_04F4));
    }

    #[test]
    fn packed_halves() {
        let m = FloatMode { lanes: 2, ..mode(FloatType::F16) };
        // (1, 2) + (3, 65504)
        assert_eq!(float2(Float2::Add, m, 0x4000_3C00, 0x7BFF_4200), 0x7BFF_4400);
        assert_eq!(fma(m, 0x4000_3C00, 0x4000_3C00, 0x3C00_3C00), 0x4500_4000);
    }

    #[test]
    fn comparisons_with_nan_and_zeros() {
        assert!(compare(Compare::Eq, F, false, bits(0.0), bits(-0.0)));
        assert!(!compare(Compare::Ne, F, false, 0x7FC0_0000, bits(0.0)));
        assert!(compare(Compare::Neu, F, false, 0x7FC0_0000, bits(0.0)));
        assert!(compare(Compare::Lt, F, false, bits(-1.0), bits(1e-45)));
        assert!(!compare(Compare::Lt, F, true, bits(0.0), 1));
        assert!(compare(Compare::Nan, F, false, 0x7FC0_0000, 0) && compare(Compare::Num, F, false, 0, 0));
        assert!(compare(Compare::Gt, FloatType::F64, false, 2f64.to_bits(), (-3f64).to_bits()));
    }

    /// Division and square root of f16 and bf16 operands of every mantissa, against f64 rounded once.
    #[test]
    fn every_f16_product_with_a_few() {
        for a in 0..=u16::MAX {
            for b in [0x0001_u16, 0x3C01, 0x7BFF, 0x8401, 0xC2A5] {
                let (x, y) = (half::f16::from_bits(a), half::f16::from_bits(b));
                if x.is_nan() {
                    continue;
                }
                let exact = x.to_f64() * y.to_f64();
                let want = half::f16::from_f64(exact);
                let got = float2(Float2::Mul, mode(FloatType::F16), u64::from(a), u64::from(b)) as u16;
                assert!(
                    got == want.to_bits() || want.is_nan() && got == 0x7FFF,
                    "{a:x} {b:x}: {got:x} {:x}",
                    want.to_bits()
                );
                let want = half::f16::from_f64(x.to_f64() + y.to_f64());
                let got = float2(Float2::Add, mode(FloatType::F16), u64::from(a), u64::from(b)) as u16;
                assert!(got == want.to_bits() || want.is_nan() && got == 0x7FFF, "{a:x} {b:x}");
            }
        }
    }
}
