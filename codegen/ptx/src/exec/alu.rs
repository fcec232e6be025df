//! Arithmetic of a warp: 32 lanes of one instruction.

use super::integer::{bfi, carry, int1, int2, int3, lop3, low};
use super::warp::{Lanes, lanes};
use super::{Machine, Warp};
use crate::float::approximate::canonical;
use crate::float::ops::{float1, float2, fma, format};
use crate::float::{F32, Overflow};
use crate::ir::{Float2, FloatMode, FloatType, Int2, Logic, Op, Round};

/// Whether a mode is plain: nearest, no modifier, one element.
fn is_plain(mode: &FloatMode, ty: FloatType) -> bool {
    mode.ty == ty && mode.lanes == 1 && mode.round == Round::Nearest && !mode.ftz && !mode.sat && !mode.relu
}

#[inline]
fn single(op: impl Fn(f32, f32) -> f32) -> impl Fn(u64, u64) -> u64 {
    move |x, y| u64::from(canonical(op(f32::from_bits(x as u32), f32::from_bits(y as u32))).to_bits())
}

impl Warp {
    pub(super) fn arithmetic(&mut self, m: &mut Machine<'_>, i: usize, op: &Op, active: u32) {
        let f = self.fragments[i];
        match op {
            Op::Int1 { op, bits, signed, d, a } => {
                self.map1(m, i, *d, *a, active, |x| int1(*op, *bits, *signed, x))
            }
            Op::Int2 { op, bits: 32, packed: false, d, a, b, signed } => {
                let (d, a, b) = (*d, *a, *b);
                let mask = u64::from(u32::MAX);
                // The frequent ones have loops of their own.
                match op {
                    Int2::Add => self.map2(m, i, d, a, b, active, |x, y| x.wrapping_add(y) & mask),
                    Int2::Sub => self.map2(m, i, d, a, b, active, |x, y| x.wrapping_sub(y) & mask),
                    Int2::MulLo => {
                        self.map2(m, i, d, a, b, active, |x, y| u64::from((x as u32).wrapping_mul(y as u32)))
                    }
                    Int2::And => self.map2(m, i, d, a, b, active, |x, y| x & y & mask),
                    Int2::Or => self.map2(m, i, d, a, b, active, |x, y| (x | y) & mask),
                    Int2::Xor => self.map2(m, i, d, a, b, active, |x, y| (x ^ y) & mask),
                    other => self.map2(m, i, d, a, b, active, |x, y| int2(*other, 32, *signed, x, y)),
                }
            }
            Op::Int2 { op: Int2::Add, bits: 64, packed: false, d, a, b, .. } => {
                self.map2(m, i, *d, *a, *b, active, u64::wrapping_add);
            }
            Op::Int2 { op, bits, packed: true, signed, d, a, b } => {
                self.map2(m, i, *d, *a, *b, active, |x, y| {
                    let half = |s: u32| low(int2(*op, *bits, *signed, x >> s, y >> s), 16) << s;
                    half(0) | half(16)
                })
            }
            Op::Int2 { op, bits, signed, d, a, b, .. } => {
                self.map2(m, i, *d, *a, *b, active, |x, y| int2(*op, *bits, *signed, x, y));
            }
            Op::Int3 { op, bits, signed, d, a, b, c } => {
                self.map3(m, i, *d, (*a, *b, *c), active, |x, y, z| int3(*op, *bits, *signed, x, y, z));
            }
            Op::Bfi { bits, d, a, b, start, length } => {
                let n = *self.get(m, &f, *length);
                let defined = self.defined(&f, *a)
                    & self.defined(&f, *b)
                    & self.defined(&f, *start)
                    & self.defined(&f, *length);
                let (x, y, s) = (self.get(m, &f, *a), self.get(m, &f, *b), self.get(m, &f, *start));
                let mut out = [0; 32];
                for (lane, o) in out.iter_mut().enumerate() {
                    *o = bfi(*bits, x[lane], y[lane], s[lane], n[lane]);
                }
                self.set(&f, *d, active, defined, &out);
            }
            Op::Carry { op, bits, signed, read, write, d, a, b, c } => {
                let defined = self.defined(&f, *a) & self.defined(&f, *b);
                let (x, y, z) = (self.get(m, &f, *a), self.get(m, &f, *b), self.get(m, &f, *c));
                let (mut out, mut flags): (Lanes, u32) = ([0; 32], 0);
                for (lane, o) in out.iter_mut().enumerate() {
                    let flag = *read && self.carry >> lane & 1 == 1;
                    let (v, c) = carry(*op, *bits, *signed, (x[lane], y[lane], z[lane]), flag);
                    *o = v;
                    flags |= u32::from(c) << lane;
                }
                if *write {
                    self.carry = (self.carry & !active) | (flags & active);
                }
                self.set(&f, *d, active, defined, &out);
            }
            Op::Lop3Pred { lut, logic, d, p, a, b, c, q } => {
                let defined = self.defined(&f, *a) & self.defined(&f, *b) & self.defined(&f, *c);
                let (x, y, z) = (self.get(m, &f, *a), self.get(m, &f, *b), self.get(m, &f, *c));
                let (mut out, mut truth): (Lanes, u32) = ([0; 32], 0);
                for (lane, o) in out.iter_mut().enumerate() {
                    *o = lop3(*lut, x[lane], y[lane], z[lane]);
                    truth |= u32::from(*o != 0) << lane;
                }
                let with = self.pred_src(&f, *q);
                let truth = match logic {
                    Logic::And => truth & with,
                    Logic::Or => truth | with,
                    Logic::Xor => truth ^ with,
                };
                if let Some(d) = d {
                    self.set(&f, *d, active, defined, &out);
                }
                self.set_pred(&f, *p, active, defined & self.pred_defined(&f, *q), truth);
            }
            Op::Float1 { op, mode, d, a } => {
                // Elementary functions of lanes that do not execute are not worth their time.
                let defined = self.defined(&f, *a);
                let x = *self.get(m, &f, *a);
                let mut out = [0; 32];
                for lane in lanes(active) {
                    out[lane as usize] = float1(*op, *mode, x[lane as usize]);
                }
                self.set(&f, *d, active, defined, &out);
            }
            Op::Float2 { op, mode, d, a, b } if is_plain(mode, FloatType::F32) => {
                let (d, a, b) = (*d, *a, *b);
                match op {
                    Float2::Add => self.map2(m, i, d, a, b, active, single(|x, y| x + y)),
                    Float2::Sub => self.map2(m, i, d, a, b, active, single(|x, y| x - y)),
                    Float2::Mul => self.map2(m, i, d, a, b, active, single(|x, y| x * y)),
                    other => self.map2(m, i, d, a, b, active, |x, y| float2(*other, *mode, x, y)),
                }
            }
            Op::Float2 { op, mode, d, a, b } => {
                self.map2(m, i, *d, *a, *b, active, |x, y| float2(*op, *mode, x, y))
            }
            Op::Fma { mode, d, a, b, c } if is_plain(mode, FloatType::F32) => {
                self.map3(m, i, *d, (*a, *b, *c), active, |x, y, z| {
                    let f = |v: u64| f32::from_bits(v as u32);
                    u64::from(canonical(fused(f(x), f(y), f(z))).to_bits())
                });
            }
            Op::Fma { mode, d, a, b, c } => {
                self.map3(m, i, *d, (*a, *b, *c), active, |x, y, z| fma(*mode, x, y, z));
            }
            Op::Widen { from, d, a } => {
                let from = format(*from);
                self.map1(m, i, *d, *a, active, |x| {
                    F32.round(from.unpack(x), Round::Nearest, Overflow::Ieee)
                });
            }
            // An instruction that did nothing here would be a wrong result that goes unnoticed.
            elsewhere => unreachable!("{elsewhere:?} is executed elsewhere"),
        }
    }
}

/// a * b + c of f32, rounded once, without a call of the host's library where the processor has no such
/// instruction: the product is exact in f64, and the sum there is rounded to odd before it is rounded to f32
/// (Boldo and Melquiond).
#[inline]
fn fused(a: f32, b: f32, c: f32) -> f32 {
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    if !sum.is_finite() {
        return sum as f32;
    }
    let virtual_c = sum - product;
    let error = (product - (sum - virtual_c)) + (c - virtual_c);
    if error == 0.0 || sum.to_bits() & 1 == 1 {
        return sum as f32;
    }
    // Away from zero where the error has the sign of the sum, towards it otherwise; the even result becomes
    // odd.
    let bits = sum.to_bits();
    f64::from_bits(if (error > 0.0) == (sum > 0.0) { bits + 1 } else { bits - 1 }) as f32
}

#[cfg(test)]
mod tests {
    use super::fused;

    #[test]
    fn fused_agrees_with_ieee() {
        let mut s = 3_u64;
        let mut next = || {
            s = s.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (s >> 32) as u32
        };
        for i in 0..2_000_000 {
            let (a, mut b, mut c) = (next(), next(), next());
            if i % 2 == 0 {
                // The product close to the addend.
                let e = (((a >> 23) & 0xFF).wrapping_add((b >> 23) & 0xFF).wrapping_sub(127) & 0xFF) << 23;
                c = (c & 0x807F_FFFF) | e;
            }
            if i % 5 == 0 {
                b &= 0xFFFF_F000;
            }
            let (x, y, z) = (f32::from_bits(a), f32::from_bits(b), f32::from_bits(c));
            let (got, want) = (fused(x, y, z), x.mul_add(y, z));
            assert!(
                got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(),
                "{x:e} {y:e} {z:e}: {got:e} {want:e}"
            );
        }
    }
}
