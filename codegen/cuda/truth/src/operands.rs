//! Bits that instructions are tried on: special values of each type, all against all, then values of several
//! distributions.

use hlo_ptx::types::{Class, Type};

/// A generator of bits: SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator of a name.
    #[must_use]
    pub fn of(name: &str) -> Self {
        // FNV-1a.
        Random(
            name.bytes()
                .fold(0xCBF2_9CE4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01B3)),
        )
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.bits() % n.max(1)
    }
}

/// Exponent and fraction bits of a floating-point format.
#[must_use]
pub fn layout(ty: Type) -> Option<(u32, u32)> {
    Some(match ty {
        Type::F16 | Type::F16x2 => (5, 10),
        Type::Bf16 | Type::Bf16x2 => (8, 7),
        Type::F32 | Type::F32x2 | Type::Tf32 => (8, 23),
        Type::F64 => (11, 52),
        Type::E4m3 | Type::E4m3x2 => (4, 3),
        Type::E5m2 | Type::E5m2x2 => (5, 2),
        _ => return None,
    })
}

/// Elements in a value of a type, and bits of each.
#[must_use]
pub fn elements(ty: Type) -> (u32, u32) {
    match ty {
        Type::F16x2 | Type::Bf16x2 | Type::U16x2 | Type::S16x2 => (2, 16),
        Type::F32x2 => (2, 32),
        Type::E4m3x2 | Type::E5m2x2 => (2, 8),
        other => (1, other.bits()),
    }
}

/// Special values of an element of a type.
#[must_use]
pub fn special(ty: Type) -> Vec<u64> {
    let (_, bits) = elements(ty);
    let mask = u64::MAX >> (64 - bits);
    let sign = 1_u64 << (bits - 1);
    if let Some((e, f)) = layout(ty) {
        let one = ((1_u64 << (e - 1)) - 1) << f;
        let infinity = ((1_u64 << e) - 1) << f;
        let quarter = 1_u64 << (f - 2);
        let positive = [
            0,
            1,
            2,
            (1 << f) - 1,
            1 << f,
            (1 << f) + 1,
            one - (1 << f),
            one - 1,
            one,
            one + 1,
            one + quarter,
            one + 2 * quarter,
            one + 3 * quarter,
            one + (1 << f),
            one + (1 << f) + quarter,
            one + (u64::from(f) << f),
            infinity - 1,
            infinity - (1 << f),
            infinity,
            infinity + 1,
            infinity + 2 * quarter,
            infinity + (1 << f) - 1,
            // 0.1 and 1/3, truncated.
            one - (4 << f) + (0x9_9999_9999_9999 >> (52 - f)),
            one - (2 << f) + (0x5_5555_5555_5555 >> (52 - f)),
        ];
        // Around the ends of integer types.
        let ends = [7, 8, 15, 16, 31, 32, 63, 64].map(|n: u64| one + (n << f));
        let ends = ends.into_iter().filter(|&v| v < infinity).flat_map(|v| [v - 1, v]);
        let all = positive.into_iter().chain(ends);
        return all.flat_map(|v| [v & mask, (v | sign) & mask]).collect();
    }
    let mut all = vec![0, 1, 2, 3, 5, 7, mask, mask - 1, sign, sign - 1, sign + 1];
    all.extend((0..bits).step_by(5).flat_map(|s| [1_u64 << s, (1_u64 << s).wrapping_neg() & mask]));
    all.sort_unstable();
    all.dedup();
    all
}

/// A value of an element of a type by one of several distributions.
pub fn element(ty: Type, random: &mut Random) -> u64 {
    let (_, bits) = elements(ty);
    let mask = u64::MAX >> (64 - bits);
    if let Some((e, f)) = layout(ty) {
        let bias = (1_u64 << (e - 1)) - 1;
        let fraction = (1_u64 << f) - 1;
        let sign = random.below(2) << (bits - 1);
        // A fraction that begins with random bits and ends in what decides roundings: nothing, a half, just
        // below or above one.
        let short = |random: &mut Random| {
            let keep = random.below(u64::from(f)) as u32;
            let head = random.bits() & fraction & !(fraction >> keep);
            let rest = fraction >> keep;
            let half = (rest >> 1) + u64::from(rest > 0);
            let tail = match random.below(6) {
                0 => 0,
                1 => half,
                2 => half.saturating_sub(1),
                3 => half + 1,
                4 => rest,
                _ => 1,
            };
            head | (tail & rest)
        };
        return match random.below(8) {
            0 => random.bits() & mask,
            1 => {
                let all = special(ty);
                all[random.below(all.len() as u64) as usize]
            }
            2 => sign | short(random) | random.below(1 << e) << f,
            3 | 4 => {
                let exponent = (bias + random.below(u64::from(f) + 4)).saturating_sub(2 + random.below(3))
                    & ((1 << e) - 1);
                sign | short(random) | exponent << f
            }
            5 => sign | (random.bits() & fraction),
            6 => {
                let spread = (bias / 2).max(1);
                sign | (random.bits() & fraction) | (bias - spread / 2 + random.below(spread)) << f
            }
            _ => sign | (random.bits() & fraction) | (bias - 1 + random.below(3)) << f,
        };
    }
    match random.below(5) {
        0 => random.bits() & mask,
        1 => {
            let all = special(ty);
            all[random.below(all.len() as u64) as usize]
        }
        2 => random.bits() & mask & (mask >> random.below(u64::from(bits))),
        3 => (random.bits() & mask & (mask >> random.below(u64::from(bits)))).wrapping_neg() & mask,
        _ => random.bits() & random.bits() & mask,
    }
}

/// A value of a type; packed ones have each element by itself.
pub fn value(ty: Type, random: &mut Random) -> u64 {
    let (count, bits) = elements(ty);
    (0..count).fold(0, |v, i| v | element(ty, random) << (i * bits))
}

/// Values of several operands, `n` of each: first all combinations of special values, then random ones. In
/// some distributions the operands are correlated.
#[must_use]
pub fn columns(types: &[Type], n: usize, random: &mut Random) -> Vec<Vec<u64>> {
    let mut out: Vec<Vec<u64>> = types.iter().map(|_| Vec::with_capacity(n)).collect();
    let (count, bits) = types.first().map_or((1, 32), |&t| elements(t));
    // Of one narrow operand every value.
    if types.len() == 1 && bits * count <= 16 {
        let all = 1_usize << (bits * count);
        // An odd stride visits each once, and of fewer a sample of all.
        out[0] = (0..n).map(|i| (i.wrapping_mul(40_503) % all) as u64).collect();
        return out;
    }
    let lists: Vec<Vec<u64>> = types.iter().map(|&t| special(t)).collect();
    let every: usize = lists.iter().map(Vec::len).product();
    let crossed = every.min(n / 2);
    // A stride that has no factor in common with the number of combinations visits different ones.
    let stride = if crossed < every { (every / crossed.max(1)) | 1 } else { 1 };
    for i in 0..crossed {
        let mut at = i * stride % every;
        for (column, (list, &ty)) in out.iter_mut().zip(lists.iter().zip(types)) {
            let v = list[at % list.len()];
            at /= list.len();
            let (count, bits) = elements(ty);
            // Both halves of packed values are special, and different.
            let other = list[(at + i) % list.len()];
            column.push(if count == 2 { v | other << bits } else { v });
        }
    }
    for _ in crossed..n {
        let row: Vec<u64> = types.iter().map(|&t| value(t, random)).collect();
        let row = related(types, row, random);
        for (column, v) in out.iter_mut().zip(row) {
            column.push(v);
        }
    }
    out
}

/// Relates operands of floating point: cancellation, equal ones, sums that are ties.
fn related(types: &[Type], mut row: Vec<u64>, random: &mut Random) -> Vec<u64> {
    let is_float = types.iter().all(|t| t.class() == Class::Float && *t == types[0]);
    if types.len() < 2 || !is_float {
        if types.len() == 2 && types[0] == types[1] && random.below(8) == 0 {
            row[1] = row[0];
        }
        return row;
    }
    let (_, bits) = elements(types[0]);
    let Some((_, f)) = layout(types[0]) else { return row };
    let sign = 1_u64 << (bits - 1);
    let last = row.len() - 1;
    match random.below(8) {
        0 => row[last] = row[0],
        1 => row[last] = row[0] ^ sign,
        // Almost the negative.
        2 => {
            row[last] = (row[0] ^ sign).wrapping_add(random.below(5)).wrapping_sub(2)
                & (u64::MAX >> (64 - types[0].bits()))
        }
        // About an ulp of the first: ties and sticky bits.
        3 => {
            let exponent = row[0] & (sign - 1) & !((1 << f) - 1);
            let down = u64::from(f) + random.below(3);
            row[last] =
                exponent.saturating_sub(down << f) | (random.below(2) * sign) | (random.below(4) == 0) as u64;
        }
        // The third is the negative product of the first two, roughly: what is left is what one rounding
        // loses.
        4 if row.len() == 3 && types[0] == Type::F32 => {
            let p = f32::from_bits(row[0] as u32) * f32::from_bits(row[1] as u32);
            row[2] = u64::from((-p).to_bits());
        }
        4 if row.len() == 3 && types[0] == Type::F64 => {
            row[2] = (-(f64::from_bits(row[0]) * f64::from_bits(row[1]))).to_bits();
        }
        _ => {}
    }
    row
}

/// Values as memory: `width` bytes each.
#[must_use]
pub fn to_bytes(values: &[u64], width: usize) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes().into_iter().take(width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_values_are_of_the_type() {
        for &ty in Type::ALL {
            let (_, bits) = elements(ty);
            if !(8..=64).contains(&bits) || ty.bits() < 8 {
                continue;
            }
            let all = special(ty);
            assert!(all.iter().all(|v| bits == 64 || *v >> bits == 0), "{ty:?}");
            if ty == Type::F32 {
                for want in [
                    0,
                    0x8000_0000,
                    1,
                    0x3F80_0000,
                    0x7F80_0000,
                    0x7F7F_FFFF,
                    0x7F80_0001,
                    0x7FFF_FFFF,
                    0x3EAA_AAAA,
                ] {
                    assert!(all.contains(&want), "{want:x}");
                }
            }
        }
    }

    #[test]
    fn narrow_operands_are_exhausted_and_columns_depend_on_the_name_alone() {
        let all = columns(&[Type::F16], 1 << 16, &mut Random::of("x"));
        let mut values = all[0].clone();
        values.sort_unstable();
        assert!((0..1 << 16).all(|v| values[v as usize] == v));
        let make = || columns(&[Type::F32, Type::F32, Type::F32], 1 << 12, &mut Random::of("fma"));
        assert_eq!(make(), make());
        assert!(make().iter().all(|c| c.len() == 1 << 12));
    }
}
