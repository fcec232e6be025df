//! Formats, exact numbers, and rounding from one to the other.

use crate::ir::Round;

/// What the largest exponent field means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Special {
    /// Infinities and NaNs.
    Ieee,
    /// Numbers, but for all ones, which is NaN.
    NanOnly,
    /// Numbers.
    Finite,
}

/// A binary format: sign, exponent, fraction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// Bits of the exponent field.
    pub exponent: u32,
    /// Bits of the fraction field.
    pub fraction: u32,
    /// The largest exponent field.
    pub special: Special,
}

/// What a value beyond the largest finite one becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overflow {
    /// What IEEE 754 says for the rounding; without infinities NaN.
    Ieee,
    /// The largest finite value.
    Saturate,
}

/// A number: magnitude `mantissa * 2^exponent`, plus less than one unit of the mantissa where `sticky`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Number {
    /// Not a number.
    Nan,
    /// An infinity; `true` is negative.
    Infinite(bool),
    /// A finite number.
    Finite {
        /// Negative, of zero too.
        negative: bool,
        /// Power of two of the lowest bit.
        exponent: i32,
        /// Magnitude; 0 is zero.
        mantissa: u128,
        /// The magnitude is larger by less than one in the lowest bit. Only with 64 significant bits or more.
        sticky: bool,
    },
}

/// The top bit of a normalized mantissa: one below the top, so that sums do not overflow.
const TOP: u32 = 126;

impl Format {
    pub(crate) fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    pub(crate) fn sign_bit(self) -> u64 {
        1 << (self.exponent + self.fraction)
    }

    /// The largest finite magnitude.
    #[must_use]
    pub fn max_finite(self) -> u64 {
        let all = self.sign_bit() - 1;
        match self.special {
            Special::Ieee => (((1 << self.exponent) - 1) << self.fraction) - 1,
            Special::NanOnly => all - 1,
            Special::Finite => all,
        }
    }

    /// The positive infinity.
    #[must_use]
    pub fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    /// The canonical NaN of the ISA: all ones below the sign.
    #[must_use]
    pub fn nan(self) -> u64 {
        self.sign_bit() - 1
    }

    /// Whether the bits are a subnormal number.
    #[must_use]
    pub fn is_subnormal(self, bits: u64) -> bool {
        let magnitude = bits & (self.sign_bit() - 1);
        magnitude != 0 && magnitude < 1 << self.fraction
    }

    /// A subnormal number becomes a zero of its sign.
    #[must_use]
    pub fn flush(self, bits: u64) -> u64 {
        if self.is_subnormal(bits) { bits & self.sign_bit() } else { bits }
    }

    /// Whether the bits are NaN.
    #[must_use]
    pub fn is_nan(self, bits: u64) -> bool {
        let magnitude = bits & (self.sign_bit() - 1);
        match self.special {
            Special::Ieee => magnitude > self.infinity(),
            Special::NanOnly => magnitude == self.nan(),
            Special::Finite => false,
        }
    }

    /// The value of bits. Bits above the format are ignored.
    #[must_use]
    pub fn unpack(self, bits: u64) -> Number {
        let negative = bits & self.sign_bit() != 0;
        let magnitude = bits & (self.sign_bit() - 1);
        if self.is_nan(bits) {
            return Number::Nan;
        }
        if self.special == Special::Ieee && magnitude == self.infinity() {
            return Number::Infinite(negative);
        }
        let (field, fraction) = (magnitude >> self.fraction, magnitude & ((1 << self.fraction) - 1));
        let lowest = 1 - self.bias() - self.fraction as i32;
        let (mantissa, exponent) = if field == 0 {
            (fraction, lowest)
        } else {
            (fraction | (1 << self.fraction), lowest + field as i32 - 1)
        };
        Number::Finite { negative, exponent, mantissa: u128::from(mantissa), sticky: false }
    }

    /// The bits of a number, rounded.
    #[must_use]
    pub fn round(self, number: Number, round: Round, overflow: Overflow) -> u64 {
        match number {
            Number::Nan if self.special == Special::Finite => self.max_finite(),
            Number::Nan => self.nan(),
            Number::Infinite(negative) => {
                let sign = if negative { self.sign_bit() } else { 0 };
                sign | match (self.special, overflow) {
                    (Special::Ieee, Overflow::Ieee) => self.infinity(),
                    (Special::NanOnly, Overflow::Ieee) => self.nan(),
                    (Special::Finite, Overflow::Ieee) | (_, Overflow::Saturate) => self.max_finite(),
                }
            }
            Number::Finite { negative, exponent, mantissa, sticky } => {
                self.round_finite(negative, exponent, mantissa, sticky, round, overflow)
            }
        }
    }

    fn round_finite(
        self,
        negative: bool,
        exponent: i32,
        mantissa: u128,
        sticky: bool,
        round: Round,
        overflow: Overflow,
    ) -> u64 {
        let sign = if negative { self.sign_bit() } else { 0 };
        if mantissa == 0 && !sticky {
            return sign;
        }
        // Normalized: the top bit is bit TOP.
        let (mantissa, exponent) = normalize(mantissa, exponent);
        let top = exponent + TOP as i32;
        let least = 1 - self.bias();
        let quantum = top.max(least) - self.fraction as i32;
        let shift = (quantum - exponent) as u32;
        let (kept, half, rest) = if shift > TOP + 1 {
            (0, false, true)
        } else {
            let half = mantissa >> (shift - 1) & 1 == 1;
            let kept = if shift > TOP { 0 } else { mantissa >> shift };
            (kept as u64, half, sticky || mantissa & ((1 << (shift - 1)) - 1) != 0)
        };
        let up = match round {
            Round::Nearest => half && (rest || kept & 1 == 1),
            Round::NearestAway => half,
            Round::Zero => false,
            Round::Down => negative && (half || rest),
            Round::Up => !negative && (half || rest),
        };
        let kept = kept + u64::from(up);
        // A carry out of the fraction goes into the exponent by itself.
        let magnitude = if top < least {
            kept
        } else {
            let field = (top + self.bias()) as u64;
            if field > 1 << self.exponent {
                u64::MAX >> 1
            } else {
                (field << self.fraction) + kept - (1 << self.fraction)
            }
        };
        if magnitude <= self.max_finite() {
            return sign | magnitude;
        }
        let to_infinity = match round {
            Round::Nearest | Round::NearestAway => true,
            Round::Zero => false,
            Round::Down => negative,
            Round::Up => !negative,
        };
        if overflow == Overflow::Saturate || !to_infinity || self.special == Special::Finite {
            return sign | self.max_finite();
        }
        sign | if self.special == Special::Ieee { self.infinity() } else { self.nan() }
    }
}

fn normalize(mantissa: u128, exponent: i32) -> (u128, i32) {
    let lead = mantissa.leading_zeros();
    if lead == 0 {
        // Bit 127 is set: one bit is lost into the lowest.
        return ((mantissa >> 1) | (mantissa & 1), exponent + 1);
    }
    (mantissa << (lead - 1), exponent - (lead as i32 - 1))
}

impl Number {
    /// A signed integer.
    #[must_use]
    pub fn from_i128(v: i128) -> Self {
        Number::Finite { negative: v < 0, exponent: 0, mantissa: v.unsigned_abs(), sticky: false }
    }

    /// The number with its sign changed.
    #[must_use]
    pub fn negate(self) -> Self {
        match self {
            Number::Nan => Number::Nan,
            Number::Infinite(n) => Number::Infinite(!n),
            Number::Finite { negative, exponent, mantissa, sticky } => {
                Number::Finite { negative: !negative, exponent, mantissa, sticky }
            }
        }
    }

    /// The product, exact for mantissas of at most 64 bits.
    #[must_use]
    pub fn product(self, rhs: Self) -> Self {
        use Number::{Finite, Infinite, Nan};
        match (self, rhs) {
            (Nan, _) | (_, Nan) => Nan,
            (Infinite(a), Infinite(b)) => Infinite(a != b),
            (Infinite(a), Finite { negative, mantissa, .. })
            | (Finite { negative, mantissa, .. }, Infinite(a)) => {
                if mantissa == 0 {
                    Nan
                } else {
                    Infinite(a != negative)
                }
            }
            (
                Finite { negative: a, exponent: e, mantissa: m, .. },
                Finite { negative: b, exponent: f, mantissa: n, .. },
            ) => Finite { negative: a != b, exponent: e + f, mantissa: m * n, sticky: false },
        }
    }

    /// The sum; `round` says the sign of an exact zero.
    #[must_use]
    pub fn sum(self, rhs: Self, round: Round) -> Self {
        use Number::{Finite, Infinite, Nan};
        match (self, rhs) {
            (Nan, _) | (_, Nan) => Nan,
            (Infinite(a), Infinite(b)) => {
                if a == b {
                    Infinite(a)
                } else {
                    Nan
                }
            }
            (Infinite(a), Finite { .. }) | (Finite { .. }, Infinite(a)) => Infinite(a),
            (
                Finite { negative: a, exponent: e, mantissa: m, .. },
                Finite { negative: b, exponent: f, mantissa: n, .. },
            ) => {
                if m == 0 || n == 0 {
                    if m == 0 && n == 0 {
                        let negative = if a == b { a } else { round == Round::Down };
                        return Finite { negative, exponent: 0, mantissa: 0, sticky: false };
                    }
                    return if m == 0 { rhs } else { self };
                }
                let ((m, e), (n, f)) = (normalize(m, e), normalize(n, f));
                // The larger magnitude first.
                let swap = (e, m) < (f, n);
                let ((na, m, e), (nb, n, f)) =
                    if swap { ((b, n, f), (a, m, e)) } else { ((a, m, e), (b, n, f)) };
                let distance = (e - f) as u32;
                let (aligned, lost) = if distance > TOP + 1 {
                    (0, true)
                } else {
                    let lost = n & ((1_u128 << distance) - 1) != 0;
                    (n >> distance, lost)
                };
                if na == nb {
                    return Finite { negative: na, exponent: e, mantissa: m + aligned, sticky: lost };
                }
                // What was truncated makes the difference smaller by less than one in the lowest bit.
                let difference = m - aligned - u128::from(lost);
                if difference == 0 && !lost {
                    return Finite {
                        negative: round == Round::Down,
                        exponent: 0,
                        mantissa: 0,
                        sticky: false,
                    };
                }
                Finite { negative: na, exponent: e, mantissa: difference, sticky: lost }
            }
        }
    }

    /// The quotient, of mantissas of at most 53 bits.
    #[must_use]
    pub fn quotient(self, rhs: Self) -> Self {
        use Number::{Finite, Infinite, Nan};
        match (self, rhs) {
            (Nan, _) | (_, Nan) | (Infinite(_), Infinite(_)) => Nan,
            (Infinite(a), Finite { negative, .. }) => Infinite(a != negative),
            (Finite { negative, .. }, Infinite(b)) => {
                Finite { negative: negative != b, exponent: 0, mantissa: 0, sticky: false }
            }
            (
                Finite { negative: a, exponent: e, mantissa: m, .. },
                Finite { negative: b, exponent: f, mantissa: n, .. },
            ) => {
                if n == 0 {
                    return if m == 0 { Nan } else { Infinite(a != b) };
                }
                if m == 0 {
                    return Finite { negative: a != b, exponent: 0, mantissa: 0, sticky: false };
                }
                let (m, e) = normalize(m, e);
                Finite { negative: a != b, exponent: e - f, mantissa: m / n, sticky: m % n != 0 }
            }
        }
    }

    /// The square root.
    #[must_use]
    pub fn sqrt(self) -> Self {
        match self {
            Number::Nan | Number::Infinite(true) => Number::Nan,
            Number::Infinite(false) => self,
            Number::Finite { mantissa: 0, .. } => self,
            Number::Finite { negative: true, .. } => Number::Nan,
            Number::Finite { exponent, mantissa, .. } => {
                let (mut m, mut e) = normalize(mantissa, exponent);
                if e % 2 != 0 {
                    (m, e) = (m << 1, e - 1);
                }
                let root = m.isqrt();
                // The root has 64 bits; two more are not needed, because the sticky bit says what is left.
                Number::Finite { negative: false, exponent: e / 2, mantissa: root, sticky: root * root != m }
            }
        }
    }

    /// The integer that the number rounds to, and whether it is one.
    #[must_use]
    pub fn to_integer(self, round: Round) -> Option<i128> {
        let Number::Finite { negative, exponent, mantissa, .. } = self else { return None };
        let magnitude = if exponent >= 0 {
            if mantissa == 0 {
                0
            } else if exponent as u32 >= mantissa.leading_zeros().saturating_sub(1) {
                return Some(if negative { i128::MIN } else { i128::MAX });
            } else {
                mantissa << exponent
            }
        } else {
            let shift = exponent.unsigned_abs();
            let (kept, half, rest) = if shift >= 128 {
                (0, false, mantissa != 0)
            } else {
                (
                    mantissa >> shift,
                    mantissa >> (shift - 1) & 1 == 1,
                    mantissa & ((1 << (shift - 1)) - 1) != 0,
                )
            };
            let up = match round {
                Round::Nearest => half && (rest || kept & 1 == 1),
                Round::NearestAway => half,
                Round::Zero => false,
                Round::Down => negative && (half || rest),
                Round::Up => !negative && (half || rest),
            };
            kept + u128::from(up)
        };
        Some(if negative { -(magnitude as i128) } else { magnitude as i128 })
    }

    /// Whether the sign is negative; of NaN no.
    #[must_use]
    pub fn is_negative(self) -> bool {
        match self {
            Number::Nan => false,
            Number::Infinite(n) | Number::Finite { negative: n, .. } => n,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BF16, E2M1, E2M3, E3M2, E4M3, E5M2, F16, F32, F64, TF32};
    use super::*;

    const ROUNDS: [Round; 4] = [Round::Nearest, Round::Zero, Round::Down, Round::Up];

    #[test]
    fn every_value_of_narrow_formats_reads_back() {
        for (f, bits) in
            [(F16, 16), (BF16, 16), (TF32, 19), (E4M3, 8), (E5M2, 8), (E2M3, 6), (E3M2, 6), (E2M1, 4)]
        {
            for v in 0..1_u64 << bits {
                let expected = if f.is_nan(v) { f.nan() } else { v };
                for r in ROUNDS {
                    assert_eq!(f.round(f.unpack(v), r, Overflow::Ieee), expected, "{f:?} {v:x}");
                }
            }
        }
    }

    /// `half` is an independent implementation of both formats.
    #[test]
    fn every_f16_and_bf16_agrees_with_half() {
        for v in 0..=u16::MAX {
            let x = half::f16::from_bits(v);
            if !x.is_nan() {
                assert_eq!(
                    F32.round(F16.unpack(u64::from(v)), Round::Nearest, Overflow::Ieee) as u32,
                    x.to_f32().to_bits()
                );
            }
            let x = half::bf16::from_bits(v);
            if !x.is_nan() {
                assert_eq!(
                    F32.round(BF16.unpack(u64::from(v)), Round::Nearest, Overflow::Ieee) as u32,
                    x.to_f32().to_bits()
                );
            }
        }
        // Every f32 whose low bits are a pattern around the halves, through to f16 and bf16.
        for high in 0..=u16::MAX {
            for low in [
                0_u32, 1, 0x7FF, 0x800, 0xFFF, 0x1000, 0x1001, 0x2000, 0x3000, 0x7FFF, 0x8000, 0x8001, 0xFFFF,
            ] {
                let bits = (u32::from(high) << 16) | low;
                let x = f32::from_bits(bits);
                if x.is_nan() {
                    continue;
                }
                let n = F32.unpack(u64::from(bits));
                assert_eq!(
                    F16.round(n, Round::Nearest, Overflow::Ieee) as u16,
                    half::f16::from_f32(x).to_bits(),
                    "{x:e}"
                );
                assert_eq!(
                    BF16.round(n, Round::Nearest, Overflow::Ieee) as u16,
                    half::bf16::from_f32(x).to_bits(),
                    "{x:e}"
                );
            }
        }
    }

    #[test]
    fn e4m3_by_the_open_compute_table() {
        // OCP 8-bit floating point, E4M3: largest 448, smallest normal 2^-6, smallest subnormal 2^-9.
        let value = |v: u64| f64::from_bits(F64.round(E4M3.unpack(v), Round::Nearest, Overflow::Ieee));
        assert_eq!((value(0x7E), value(0x08), value(0x01)), (448.0, 0.015625, 0.001953125));
        let from = |x: f64| E4M3.round(F64.unpack(x.to_bits()), Round::Nearest, Overflow::Saturate);
        assert_eq!(
            (from(464.0), from(1e9), from(-1e9), from(17.0), from(19.0)),
            (0x7E, 0x7E, 0xFE, 0x58, 0x5A)
        );
        // E5M2: largest 57344, smallest normal 2^-14, smallest subnormal 2^-16. E2M1: 0 0.5 1 1.5 2 3 4 6.
        let value = |v: u64| f64::from_bits(F64.round(E5M2.unpack(v), Round::Nearest, Overflow::Ieee));
        assert_eq!((value(0x7B), value(0x04), value(0x01)), (57344.0, 6.103515625e-5, 1.52587890625e-5));
        let values: Vec<f64> = (0..8)
            .map(|v| f64::from_bits(F64.round(E2M1.unpack(v), Round::Nearest, Overflow::Ieee)))
            .collect();
        assert_eq!(values, [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]);
    }

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// The host's arithmetic is IEEE 754's to nearest.
    #[test]
    fn arithmetic_agrees_with_the_host() {
        let mut s = 1;
        for i in 0..200_000 {
            let (mut a, mut b, mut c) = (random(&mut s), random(&mut s), random(&mut s));
            if i % 2 == 0 {
                // Exponents close to each other.
                b = (b & !(0x7FF << 52)) | ((((a >> 52) & 0x7FF).wrapping_add(b % 5)) & 0x7FF) << 52;
                c = (c & !(0x7FF << 52))
                    | ((((a >> 52) & 0x7FF).wrapping_mul(2).wrapping_sub(1021).wrapping_add(c % 70)) & 0x7FF)
                        << 52;
            }
            if i % 7 == 0 {
                a &= !0xFFFF_FFFF;
            }
            let (x, y, z) = (f64::from_bits(a), f64::from_bits(b), f64::from_bits(c));
            let (m, n, k) = (F64.unpack(a), F64.unpack(b), F64.unpack(c));
            let check = |got: Number, want: f64, what: &str| {
                let got = f64::from_bits(F64.round(got, Round::Nearest, Overflow::Ieee));
                assert!(
                    got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()),
                    "{what} {x:e} {y:e} {z:e}: {got:e} {want:e}"
                );
            };
            check(m.sum(n, Round::Nearest), x + y, "add");
            check(m.product(n), x * y, "mul");
            check(m.quotient(n), x / y, "div");
            check(m.sqrt(), x.sqrt(), "sqrt");
            check(m.product(n).sum(k, Round::Nearest), x.mul_add(y, z), "fma");
            let (x, y, z) = (f32::from_bits(a as u32), f32::from_bits(b as u32), f32::from_bits(c as u32));
            let (m, n, k) =
                (F32.unpack(a & 0xFFFF_FFFF), F32.unpack(b & 0xFFFF_FFFF), F32.unpack(c & 0xFFFF_FFFF));
            let check = |got: Number, want: f32, what: &str| {
                let got = f32::from_bits(F32.round(got, Round::Nearest, Overflow::Ieee) as u32);
                assert!(
                    got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()),
                    "{what} {x:e} {y:e} {z:e}: {got:e} {want:e}"
                );
            };
            check(m.product(n).sum(k, Round::Nearest), x.mul_add(y, z), "fma f32");
            check(m.quotient(n), x / y, "div f32");
            check(m.sqrt(), x.sqrt(), "sqrt f32");
        }
    }

    /// Directed roundings enclose the value, and are equal exactly where it is exact.
    #[test]
    fn directed_roundings_are_neighbours() {
        let mut s = 7;
        for _ in 0..50_000 {
            let (a, b) = (random(&mut s) & 0x7FFF_FFFF, random(&mut s) & 0x7FFF_FFFF);
            let n = F32.unpack(a).sum(F32.unpack(b).negate(), Round::Nearest);
            if n == Number::Nan || matches!(n, Number::Infinite(_)) {
                continue;
            }
            // The difference of two f32 as a sum of two f64, exactly.
            let (x, y) = (f64::from(f32::from_bits(a as u32)), -f64::from(f32::from_bits(b as u32)));
            let sum = x + y;
            let virtual_y = sum - x;
            let error = (x - (sum - virtual_y)) + (y - virtual_y);
            let down = f64::from(f32::from_bits(F32.round(n, Round::Down, Overflow::Ieee) as u32));
            let up = f64::from(f32::from_bits(F32.round(n, Round::Up, Overflow::Ieee) as u32));
            assert!(down < sum || (down == sum && error >= 0.0), "{x:e} {y:e}");
            assert!(up > sum || (up == sum && error <= 0.0), "{x:e} {y:e}");
            assert!(
                down == up
                    || f32::from_bits((down as f32).to_bits()).next_up() == up as f32
                    || down == 0.0
                    || up == 0.0
            );
        }
    }
}
