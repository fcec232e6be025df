//! Integer arithmetic of one lane, by the ISA's definitions.

use crate::ir::{CarryOp, Int1, Int2, Int3, PrmtMode};

/// The low bits.
#[inline]
pub(crate) fn low(x: u64, bits: u32) -> u64 {
    if bits >= 64 { x } else { x & ((1 << bits) - 1) }
}

/// The low bits as a signed number.
#[inline]
pub(crate) fn signed(x: u64, bits: u32) -> i64 {
    let shift = 64 - bits;
    ((x << shift) as i64) >> shift
}

#[inline]
fn wide(x: u64, bits: u32, is_signed: bool) -> i128 {
    if is_signed { i128::from(signed(x, bits)) } else { i128::from(low(x, bits)) }
}

fn min_of(bits: u32) -> i128 {
    -(1 << (bits - 1))
}

fn max_of(bits: u32) -> i128 {
    (1 << (bits - 1)) - 1
}

/// An operation of one operand.
pub(crate) fn int1(op: Int1, bits: u32, is_signed: bool, a: u64) -> u64 {
    let x = low(a, bits);
    let r = match op {
        Int1::Neg => x.wrapping_neg(),
        Int1::Abs => signed(x, bits).unsigned_abs(),
        Int1::Not => !x,
        Int1::Cnot => u64::from(x == 0),
        Int1::Popc => u64::from(x.count_ones()),
        Int1::Clz => u64::from(x.leading_zeros() - (64 - bits)),
        Int1::Brev => x.reverse_bits() >> (64 - bits),
        Int1::Bfind | Int1::BfindShift => {
            // Of negative numbers the most significant 0.
            let y = if is_signed && signed(x, bits) < 0 { low(!x, bits) } else { x };
            if y == 0 {
                return 0xFFFF_FFFF;
            }
            let at = 63 - y.leading_zeros();
            u64::from(if op == Int1::BfindShift { bits - 1 - at } else { at })
        }
    };
    low(r, bits)
}

/// An operation of two operands.
#[inline]
pub(crate) fn int2(op: Int2, bits: u32, is_signed: bool, a: u64, b: u64) -> u64 {
    let (x, y) = (low(a, bits), low(b, bits));
    let less = || if is_signed { signed(a, bits) < signed(b, bits) } else { x < y };
    let r = match op {
        Int2::Add => x.wrapping_add(y),
        Int2::Sub => x.wrapping_sub(y),
        Int2::MulLo => x.wrapping_mul(y),
        Int2::And => x & y,
        Int2::Or => x | y,
        Int2::Xor => x ^ y,
        Int2::AddSat => (wide(a, bits, true) + wide(b, bits, true)).clamp(min_of(bits), max_of(bits)) as u64,
        Int2::SubSat => (wide(a, bits, true) - wide(b, bits, true)).clamp(min_of(bits), max_of(bits)) as u64,
        Int2::MulHi => {
            let product = if is_signed {
                (wide(a, bits, true) * wide(b, bits, true)) as u128
            } else {
                u128::from(x) * u128::from(y)
            };
            (product >> bits) as u64
        }
        Int2::MulWide => {
            let product = wide(a, bits, is_signed) * wide(b, bits, is_signed);
            return low(product as u64, 2 * bits);
        }
        Int2::Mul24Lo => (wide(a, 24, is_signed) * wide(b, 24, is_signed)) as u64,
        Int2::Mul24Hi => ((wide(a, 24, is_signed) * wide(b, 24, is_signed)) >> 16) as u64,
        // Division by zero is not defined: all ones, as hardware computes it.
        Int2::Div if y == 0 => u64::MAX,
        Int2::Div if is_signed => signed(a, bits).wrapping_div(signed(b, bits)) as u64,
        Int2::Div => x / y,
        Int2::Rem if y == 0 => x,
        Int2::Rem if is_signed => signed(a, bits).wrapping_rem(signed(b, bits)) as u64,
        Int2::Rem => x % y,
        Int2::Min => {
            if less() {
                x
            } else {
                y
            }
        }
        Int2::Max => {
            if less() {
                y
            } else {
                x
            }
        }
        Int2::MinRelu => signed(if less() { x } else { y }, bits).max(0) as u64,
        Int2::MaxRelu => signed(if less() { y } else { x }, bits).max(0) as u64,
        // Shift amounts are 32 bits and are clamped.
        Int2::Shl => {
            let n = b as u32;
            if n >= bits { 0 } else { x << n }
        }
        Int2::Shr if is_signed => (signed(a, bits) >> (b as u32).min(bits - 1)) as u64,
        Int2::Shr => {
            let n = b as u32;
            if n >= bits { 0 } else { x >> n }
        }
        Int2::BmskClamp | Int2::BmskWrap => {
            let (mut start, mut n) = (a as u32, b as u32);
            if op == Int2::BmskWrap {
                (start, n) = (start & 31, n & 31);
            }
            if start >= 32 { 0 } else { low(u64::MAX, n.min(32)) << start }
        }
        Int2::SzextClamp | Int2::SzextWrap => {
            let n = if op == Int2::SzextWrap { b as u32 & 31 } else { (b as u32).min(32) };
            match n {
                0 => 0,
                _ if is_signed => signed(a, n) as u64,
                _ => low(a, n),
            }
        }
    };
    low(r, bits)
}

/// An operation of three operands.
pub(crate) fn int3(op: Int3, bits: u32, is_signed: bool, a: u64, b: u64, c: u64) -> u64 {
    let r = match op {
        Int3::MadLo => a.wrapping_mul(b).wrapping_add(c),
        Int3::MadHi => int2(Int2::MulHi, bits, is_signed, a, b).wrapping_add(c),
        Int3::MadHiSat => {
            let high = signed(int2(Int2::MulHi, bits, true, a, b), bits);
            (i128::from(high) + wide(c, bits, true)).clamp(min_of(bits), max_of(bits)) as u64
        }
        Int3::MadWide => return low(int2(Int2::MulWide, bits, is_signed, a, b).wrapping_add(c), 2 * bits),
        Int3::Mad24Lo => int2(Int2::Mul24Lo, 32, is_signed, a, b).wrapping_add(c),
        Int3::Mad24Hi => int2(Int2::Mul24Hi, 32, is_signed, a, b).wrapping_add(c),
        Int3::Mad24HiSat => {
            let high = signed(int2(Int2::Mul24Hi, 32, is_signed, a, b), 32);
            (i128::from(high) + wide(c, 32, true)).clamp(min_of(32), max_of(32)) as u64
        }
        Int3::Sad => {
            let distance = (wide(a, bits, is_signed) - wide(b, bits, is_signed)).unsigned_abs() as u64;
            distance.wrapping_add(low(c, bits))
        }
        Int3::Bfe => bfe(bits, is_signed, a, b, c),
        Int3::ShfLeftClamp | Int3::ShfLeftWrap => {
            let n = shift(c, op == Int3::ShfLeftWrap);
            let pair = low(b, 32) << 32 | low(a, 32);
            (pair << n) >> 32
        }
        Int3::ShfRightClamp | Int3::ShfRightWrap => {
            let n = shift(c, op == Int3::ShfRightWrap);
            let pair = low(b, 32) << 32 | low(a, 32);
            pair >> n
        }
        Int3::Prmt(mode) => prmt(mode, a, b, c),
        Int3::Lop3(lut) => lop3(lut, a, b, c),
        Int3::Fns => fns(a as u32, b as u32, c as u32 as i32),
        Int3::Dp4a(sa, sb) => {
            let sum: i64 = (0..4).map(|i| byte(a, i, sa) * byte(b, i, sb)).sum();
            (sum as u64).wrapping_add(c)
        }
        Int3::Dp2a(sa, sb, lo) => {
            let half = |i: u32| if sa { signed(a >> (16 * i), 16) } else { low(a >> (16 * i), 16) as i64 };
            let offset = if lo { 0 } else { 2 };
            let sum: i64 = (0..2).map(|i| half(i) * byte(b, i + offset, sb)).sum();
            (sum as u64).wrapping_add(c)
        }
    };
    low(r, bits)
}

fn byte(x: u64, i: u32, is_signed: bool) -> i64 {
    if is_signed { signed(x >> (8 * i), 8) } else { low(x >> (8 * i), 8) as i64 }
}

fn shift(c: u64, wrap: bool) -> u32 {
    if wrap { c as u32 & 31 } else { (c as u32).min(32) }
}

/// Bit field extract: position and length are 8 bits; a signed field is extended by its top bit, or by bit
/// `bits - 1`.
fn bfe(bits: u32, is_signed: bool, a: u64, b: u64, c: u64) -> u64 {
    let (start, length) = ((b & 0xFF) as u32, (c & 0xFF) as u32);
    let x = low(a, bits);
    if length == 0 {
        return 0;
    }
    let sign = if is_signed { x >> (start + length - 1).min(bits - 1) & 1 } else { 0 };
    let field = if start >= bits { 0 } else { x >> start };
    let have = bits.saturating_sub(start).min(length);
    let kept = low(field, have);
    if sign == 1 { kept | !low(u64::MAX, have) } else { kept }
}

/// Bit field insert: `length` bits of `a` at `start` of `b`.
pub(crate) fn bfi(bits: u32, a: u64, b: u64, start: u64, length: u64) -> u64 {
    let (start, length) = ((start & 0xFF) as u32, (length & 0xFF) as u32);
    if start >= bits || length == 0 {
        return low(b, bits);
    }
    let mask = low(low(u64::MAX, length.min(64)) << start, bits);
    low((b & !mask) | (a << start & mask), bits)
}

pub(crate) fn lop3(lut: u8, a: u64, b: u64, c: u64) -> u64 {
    let mut r = 0;
    for i in 0..8 {
        if lut >> i & 1 == 1 {
            let pick = |x: u64, bit: u8| if i >> bit & 1 == 1 { x } else { !x };
            r |= pick(a, 2) & pick(b, 1) & pick(c, 0);
        }
    }
    low(r, 32)
}

fn prmt(mode: PrmtMode, a: u64, b: u64, c: u64) -> u64 {
    let pair = low(b, 32) << 32 | low(a, 32);
    let pick = |n: u64| pair >> (8 * (n & 7)) & 0xFF;
    let s = c & 3;
    let selectors: [u64; 4] = match mode {
        PrmtMode::Default => {
            let mut r = 0;
            for i in 0..4 {
                let sel = c >> (4 * i) & 0xF;
                let byte = pick(sel);
                // The top bit of the selector replicates the byte's sign.
                let byte = match (sel & 8, byte & 0x80) {
                    (0, _) => byte,
                    (_, 0) => 0,
                    _ => 0xFF,
                };
                r |= byte << (8 * i);
            }
            return r;
        }
        PrmtMode::F4e => [s, s + 1, s + 2, s + 3],
        PrmtMode::B4e => [s, s + 7, s + 6, s + 5],
        PrmtMode::Rc8 => [s; 4],
        PrmtMode::Ecl => [s, s.max(1), s.max(2), s.max(3)],
        PrmtMode::Ecr => [0, s.min(1), s.min(2), s.min(3)],
        PrmtMode::Rc16 => {
            let half = (s & 1) * 2;
            [half, half + 1, half, half + 1]
        }
    };
    selectors.iter().enumerate().fold(0, |r, (i, &n)| r | pick(n) << (8 * i))
}

/// The n-th set bit from a base, downwards for negative n.
fn fns(mask: u32, base: u32, offset: i32) -> u64 {
    let none = 0xFFFF_FFFF;
    if base > 31 {
        return none;
    }
    if offset == 0 {
        return if mask >> base & 1 == 1 { u64::from(base) } else { none };
    }
    let (mut at, mut left, step) = (base as i32, offset.unsigned_abs(), offset.signum());
    while (0..32).contains(&at) {
        if mask >> at & 1 == 1 {
            left -= 1;
            if left == 0 {
                return at as u64;
            }
        }
        at += step;
    }
    none
}

/// Arithmetic with carry: the result and the carry (for subtraction the borrow).
pub(crate) fn carry(
    op: CarryOp,
    bits: u32,
    is_signed: bool,
    (a, b, c): (u64, u64, u64),
    carry: bool,
) -> (u64, bool) {
    let (x, y, z) = (low(a, bits), low(b, bits), low(c, bits));
    let add = |x: u64, y: u64| {
        let sum = u128::from(x) + u128::from(y) + u128::from(carry);
        (low(sum as u64, bits), sum >> bits & 1 == 1)
    };
    match op {
        CarryOp::Add => add(x, y),
        CarryOp::Sub => {
            let d = u128::from(x).wrapping_sub(u128::from(y)).wrapping_sub(u128::from(carry));
            (low(d as u64, bits), d >> bits & 1 == 1)
        }
        CarryOp::MadLo => add(int2(Int2::MulLo, bits, is_signed, a, b), z),
        CarryOp::MadHi => add(int2(Int2::MulHi, bits, is_signed, a, b), z),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values by the ISA's definitions and CUDA's intrinsics, worked out by hand.
    #[test]
    fn bit_operations() {
        assert_eq!(int1(Int1::Clz, 32, false, 0), 32);
        assert_eq!(int1(Int1::Clz, 64, false, 1), 63);
        assert_eq!(int1(Int1::Bfind, 32, false, 0x10), 4);
        assert_eq!(int1(Int1::Bfind, 32, true, 0xFFFF_FFFF), 0xFFFF_FFFF);
        assert_eq!(int1(Int1::BfindShift, 32, false, 1), 31);
        assert_eq!(int1(Int1::Brev, 32, false, 1), 0x8000_0000);
        assert_eq!(int1(Int1::Abs, 16, true, 0x8000), 0x8000);
        assert_eq!(bfe(32, true, 0xF0, 4, 4), u64::MAX);
        assert_eq!(int3(Int3::Bfe, 32, false, 0xABCD_1234, 8, 8), 0x12);
        assert_eq!(int3(Int3::Bfe, 32, true, 0x8000_0000, 28, 8), 0xFFFF_FFF8);
        assert_eq!(bfi(32, 0xF, 0, 4, 4), 0xF0);
        assert_eq!(bfi(32, 0xFF, 0x1234_5678, 28, 8), 0xF234_5678);
        assert_eq!(lop3(0x80, 0b1100, 0b1010, 0b1111), 0b1000);
        assert_eq!(lop3(0xFE, 1, 2, 4), 7);
        // prmt: __byte_perm(0x33221100, 0x77665544, s)
        let (a, b) = (0x3322_1100, 0x7766_5544);
        assert_eq!(prmt(PrmtMode::Default, a, b, 0x7531), 0x7755_3311);
        assert_eq!(prmt(PrmtMode::Default, 0x80, 0, 0x8888), 0xFFFF_FFFF);
        assert_eq!(prmt(PrmtMode::F4e, a, b, 2), 0x5544_3322);
        assert_eq!(prmt(PrmtMode::B4e, a, b, 2), 0x7700_1122);
        assert_eq!(prmt(PrmtMode::Rc8, a, b, 1), 0x1111_1111);
        assert_eq!(prmt(PrmtMode::Ecl, a, b, 2), 0x3322_2222);
        assert_eq!(prmt(PrmtMode::Ecr, a, b, 2), 0x2222_1100);
        assert_eq!(prmt(PrmtMode::Rc16, a, b, 1), 0x3322_3322);
        assert_eq!(fns(0b1011_0000, 0, 1), 4);
        assert_eq!(fns(0b1011_0000, 31, -1), 7);
        assert_eq!(fns(0b1011_0000, 4, 3), 7);
        assert_eq!(fns(0b1, 0, 2), 0xFFFF_FFFF);
    }

    #[test]
    fn shifts_clamp_and_wrap() {
        assert_eq!(int2(Int2::Shl, 32, false, 1, 32), 0);
        assert_eq!(int2(Int2::Shl, 16, false, 1, 15), 0x8000);
        assert_eq!(int2(Int2::Shr, 32, true, 0x8000_0000, 40), 0xFFFF_FFFF);
        assert_eq!(int2(Int2::Shr, 32, false, 0x8000_0000, 31), 1);
        assert_eq!(int3(Int3::ShfLeftWrap, 32, false, 0x8000_0000, 1, 33), 3);
        assert_eq!(int3(Int3::ShfLeftClamp, 32, false, 0x1234, 1, 40), 0x1234);
        assert_eq!(int3(Int3::ShfRightClamp, 32, false, 1, 0x1234, 40), 0x1234);
        assert_eq!(int3(Int3::ShfRightWrap, 32, false, 1, 3, 1), 0x8000_0000);
    }

    #[test]
    fn products_and_carries() {
        assert_eq!(int2(Int2::MulHi, 32, true, 0xFFFF_FFFF, 2), 0xFFFF_FFFF);
        assert_eq!(int2(Int2::MulHi, 32, false, 0xFFFF_FFFF, 2), 1);
        assert_eq!(int2(Int2::MulHi, 64, true, u64::MAX, u64::MAX), 0);
        assert_eq!(int2(Int2::MulWide, 32, true, 0xFFFF_FFFF, 2), (-2_i64) as u64);
        assert_eq!(int2(Int2::Div, 32, true, 0x8000_0000, 0xFFFF_FFFF), 0x8000_0000);
        assert_eq!(int2(Int2::Div, 32, true, (-7_i64) as u64, 2), 0xFFFF_FFFD);
        assert_eq!(int2(Int2::AddSat, 32, true, 0x7FFF_FFFF, 1), 0x7FFF_FFFF);
        assert_eq!(carry(CarryOp::Add, 32, false, (0xFFFF_FFFF, 1, 0), false), (0, true));
        assert_eq!(carry(CarryOp::Sub, 32, false, (0, 1, 0), false), (0xFFFF_FFFF, true));
        assert_eq!(carry(CarryOp::MadHi, 32, false, (0xFFFF_FFFF, 0xFFFF_FFFF, 1), true), (0, true));
        assert_eq!(int3(Int3::Dp4a(true, true), 32, true, 0x0102_03FF, 0x0101_0101, 10), 15);
        assert_eq!(int3(Int3::Sad, 32, true, 5, (-5_i64) as u64, 1), 11);
    }
}
