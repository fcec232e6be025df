//! The rule that gives each element of an input its value. `docs/inputs.md` says the same in prose and
//! Python.

use std::fmt;

use hlo::elided::splitmix64;
use hlo::{ArrayLiteral, ArrayShape, Buffer, ElementType, Opcode};
use hlo_threads::parallel::pieces;
use rayon::slice::ParallelSliceMut;

use super::kind::{self, InputKind};
use hlo_execution::element::{Number, int_limits};

/// A rule for the elements of one array.
#[derive(Clone, PartialEq, Debug)]
pub enum Fill {
    /// Floats (both parts of complex numbers) uniform in `[low, high)`.
    Real {
        /// Least.
        low: f64,
        /// Bound.
        high: f64,
    },
    /// Numbers that reach all of several ranges, and numbers in them exactly; integers are rounded down.
    Cover(Cover),
    /// Numbers of a kind that is not gentle.
    Kind {
        /// The kind.
        kind: InputKind,
        /// Whether the program asks for numbers that are not negative.
        nonnegative: bool,
        /// The rule of gentle elements.
        gentle: Box<Fill>,
    },
    /// Floats over the whole range of exponents of their type, and now and then a zero, a one or an infinity.
    LargeReal,
    /// Integers uniform in `[low, high]`.
    Int {
        /// Least.
        low: i128,
        /// Largest.
        high: i128,
    },
    /// All bit patterns of an integer type alike.
    Bits,
    /// No two elements are equal, as far as the type has that many numbers.
    Distinct,
    /// Index vectors: component `c` of each, along dimension `dim` (or none, if that is the rank), is in
    /// `[0, maximum[c]]`. `ascending`: each vector is at least its predecessor, and greater if there are
    /// enough.
    Vectors {
        /// The dimension of the components.
        dim: usize,
        /// Largest value of each component.
        maximum: Vec<i64>,
        /// In ascending order.
        ascending: bool,
    },
    /// Every element is the identity of this operation.
    Identity(Opcode),
    /// Hermitian matrices whose diagonal dominates: positive definite, and well conditioned as triangular
    /// ones.
    Dominant,
}

/// Ranges and numbers that the elements of an array reach.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Cover {
    /// `[low, high)` each: an element is in any of them alike. Not empty.
    pub ranges: Vec<(f64, f64)>,
    /// A quarter of the elements are any of these, if there are some.
    pub points: Vec<f64>,
    /// Of the others three quarters are one of the eight multiples of an eighth of the range, so that some
    /// elements of two arrays are equal.
    pub ties: bool,
}

impl fmt::Display for Cover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges: Vec<String> = self.ranges.iter().map(|(low, high)| format!("[{low}, {high})")).collect();
        write!(f, "uniform {}", ranges.join(" or "))?;
        if !self.points.is_empty() {
            let points: Vec<String> = self.points.iter().map(f64::to_string).collect();
            write!(f, ", a quarter {}", points.join(" or "))?;
        }
        if self.ties { f.write_str(", with ties") } else { Ok(()) }
    }
}

impl Cover {
    /// The element that is generated from the bits `r`.
    fn real(&self, r: u64) -> f64 {
        let q = splitmix64(r ^ 0xc0e4);
        let any = |count: usize| (q >> 8) as usize % count.max(1);
        if q & 3 == 0
            && let Some(&point) = self.points.get(any(self.points.len()))
        {
            return point;
        }
        let (low, high) = self.ranges.get(any(self.ranges.len())).copied().unwrap_or((-1.0, 1.0));
        let tied = self.ties && q >> 2 & 3 != 0;
        // The first three of the random bits are the eighth.
        real(if tied { r >> 61 << 61 } else { r }, low, high)
    }
}

impl fmt::Display for Fill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fill::Real { low, high } => write!(f, "uniform [{low}, {high})"),
            Fill::Cover(cover) => cover.fmt(f),
            Fill::Kind { kind, .. } => write!(f, "{kind}"),
            Fill::LargeReal => f.write_str("any exponent"),
            Fill::Int { low, high } => write!(f, "integers {low} to {high}"),
            Fill::Bits => f.write_str("random bits"),
            Fill::Distinct => f.write_str("distinct"),
            Fill::Vectors { ascending: true, .. } => f.write_str("ascending indices"),
            Fill::Vectors { .. } => f.write_str("indices"),
            Fill::Identity(op) => write!(f, "the identity of {op}"),
            Fill::Dominant => f.write_str("positive definite"),
        }
    }
}

/// The key of one array: every argument is mixed in by a step of SplitMix64.
pub fn key(seed: u64, device: u64, parameter: u64, leaf: u64) -> u64 {
    [device, parameter, leaf].iter().fold(splitmix64(seed), |k, &x| splitmix64(k.wrapping_add(x)))
}

/// The 64 bits that element `i` is generated from.
pub fn draw(key: u64, i: u64) -> u64 {
    splitmix64(key.wrapping_add(i))
}

/// Uniform in `[low, high)`: one product and one sum in f64, each rounded.
fn real(r: u64, low: f64, high: f64) -> f64 {
    let unit = (r >> 11) as f64 / (1u64 << 53) as f64;
    low + unit * (high - low)
}

/// Exponents of the normal numbers that [`Fill::LargeReal`] makes.
fn exponents(ty: ElementType) -> (i128, i128) {
    match ty {
        ElementType::F64 => (-1022, 1023),
        ElementType::F32 | ElementType::BF16 | ElementType::F8E8M0FNU => (-126, 126),
        ElementType::F16 | ElementType::F8E5M2 | ElementType::F8E5M2FNUZ => (-14, 14),
        ElementType::F8E4M3B11FNUZ => (-10, 3),
        ElementType::F8E4M3 | ElementType::F8E4M3FN | ElementType::F8E4M3FNUZ => (-6, 6),
        ElementType::F8E3M4 | ElementType::F4E2M1FN | ElementType::F6E3M2FN | ElementType::F6E2M3FN => {
            (-1, 1)
        }
        // Not floats: never asked for.
        ElementType::Pred
        | ElementType::S1
        | ElementType::S2
        | ElementType::S4
        | ElementType::S8
        | ElementType::S16
        | ElementType::S32
        | ElementType::S64
        | ElementType::U1
        | ElementType::U2
        | ElementType::U4
        | ElementType::U8
        | ElementType::U16
        | ElementType::U32
        | ElementType::U64
        | ElementType::C64
        | ElementType::C128 => (0, 0),
    }
}

/// A number of uniform exponent and fraction; one in 2^17 is special.
fn large(r: u64, minimum: i128, maximum: i128) -> f64 {
    let sign = if r & 1 == 0 { 1.0 } else { -1.0 };
    let magnitude = match r >> 1 & 0x1_ffff {
        0 => [0.0, 1.0, f64::INFINITY][(r >> 18) as usize % 3],
        _ => {
            let exponent = int(splitmix64(r ^ 0x5a5a), minimum, maximum) as i32;
            (1.0 + (r >> 18) as f64 / (1u64 << 46) as f64) * 2f64.powi(exponent)
        }
    };
    sign * magnitude
}

/// Uniform in `[low, high]`.
pub(super) fn int(r: u64, low: i128, high: i128) -> i128 {
    let span = (high - low + 1).max(1) as u128;
    // The high part of a 64 by 65 bit product.
    let scaled = if span > u128::from(u64::MAX) { u128::from(r) } else { (u128::from(r) * span) >> 64 };
    low + scaled as i128
}

/// Makes an array.
pub fn fill_array(shape: &ArrayShape, fill: &Fill, key: u64) -> ArrayLiteral {
    let n = shape.checked_elements().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let buffer = hlo::with_element_type!(shape.element_type, T => fill_typed::<T>(shape, n, fill, key));
    ArrayLiteral { dims: shape.dims.clone(), buffer: buffer.into() }
}

/// Elements that a thread computes at a time; shorter arrays are not worth waking the threads for.
const PIECE_ELEMENTS: usize = 1 << 14;

/// The numbers below `n` in the order of what is drawn for them. Not part of [`fill_typed`], which is
/// compiled for each element type.
fn shuffled(n: usize, key: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..n as u64).collect();
    order.par_sort_unstable_by_key(|&i| (draw(key, i), i));
    order
}

fn fill_typed<T: Number>(shape: &ArrayShape, n: usize, fill: &Fill, key: u64) -> Buffer {
    let each = |f: &(dyn Fn(u64) -> T + Sync)| -> Buffer {
        let mut values = vec![T::default(); n];
        pieces(&mut values, PIECE_ELEMENTS, 1, &|piece, values| {
            (piece * PIECE_ELEMENTS..).zip(values).for_each(|(i, value)| *value = f(i as u64));
        });
        T::wrap(values)
    };
    let uniform =
        |r: u64, low: f64, high: f64| T::from_parts(real(r, low, high), real(splitmix64(r), low, high));
    match fill {
        Fill::Real { low, high } => each(&|i| uniform(draw(key, i), *low, *high)),
        Fill::Cover(cover) => {
            let whole = T::TYPE.is_integer();
            each(&|i| {
                let x = cover.real(draw(key, i));
                T::from_parts(if whole { x.floor() } else { x }, 0.0)
            })
        }
        Fill::Kind { kind, nonnegative, gentle } => {
            let gentle =
                T::slice(&fill_typed::<T>(shape, n, gentle, key)).map(<[T]>::to_vec).unwrap_or_default();
            each(&|i| {
                let kept = gentle.get(i as usize).copied().unwrap_or_default();
                kind::element(*kind, *nonnegative, draw(key, i)).unwrap_or(kept)
            })
        }
        Fill::LargeReal => {
            let (minimum, maximum) = exponents(T::TYPE.real_part());
            each(&|i| {
                let r = draw(key, i);
                T::from_parts(large(r, minimum, maximum), large(splitmix64(r), minimum, maximum))
            })
        }
        Fill::Int { low, high } => each(&|i| T::from_i128(int(draw(key, i), *low, *high))),
        Fill::Bits => each(&|i| T::from_bits(u128::from(draw(key, i)))),
        Fill::Identity(op) => {
            let value = identity::<T>(*op);
            each(&|_| value)
        }
        Fill::Vectors { dim, maximum, ascending } => {
            let inner: u64 = shape.dims[(dim + 1).min(shape.rank())..].iter().map(|&d| d as u64).product();
            let components = shape.dims.get(*dim).map_or(1, |&d| d as u64).max(1);
            let inner = inner.max(1);
            let vectors = (n as u64 / components).max(1);
            each(&|i| {
                let component = i / inner % components;
                let vector = i / (inner * components) * inner + i % inner;
                let span = |c: u64| maximum.get(c as usize).map_or(1, |&g| g.max(0) as u128 + 1);
                let value = if *ascending {
                    // The vectors, as numbers of mixed radix with the first component most significant, climb
                    // evenly.
                    let total = (0..components).fold(1u128, |t, c| t.saturating_mul(span(c)));
                    let below = (component + 1..components).fold(1u128, |t, c| t.saturating_mul(span(c)));
                    let at = scale(u128::from(vector), total, u128::from(vectors));
                    at / below % span(component)
                } else {
                    (u128::from(draw(key, i)) * span(component)) >> 64
                };
                T::from_i128(value as i128)
            })
        }
        Fill::Dominant => {
            let (rows, columns) = match shape.dims[..] {
                [.., r, c] => (r as u64, c as u64),
                [_] | [] => (1, 1),
            };
            each(&|i| {
                let (base, row, column) =
                    (i / (rows * columns) * rows * columns, i / columns % rows, i % columns);
                let r = draw(key, base + row.max(column) * columns + row.min(column));
                let (re, im) = (real(r, -1.0, 1.0), real(splitmix64(r), -1.0, 1.0));
                match row.cmp(&column) {
                    std::cmp::Ordering::Equal => T::from_parts(re + rows as f64, 0.0),
                    std::cmp::Ordering::Less => T::from_parts(re, -im),
                    std::cmp::Ordering::Greater => T::from_parts(re, im),
                }
            })
        }
        Fill::Distinct => {
            let order = shuffled(n, key);
            let mut values = vec![T::default(); n];
            for (rank, &i) in order.iter().enumerate() {
                values[i as usize] = distinct::<T>(rank as u64, n as u64);
            }
            T::wrap(values)
        }
    }
}

/// floor(a * total / n) without overflow for `a < n`; exact where the product fits, and monotone always.
fn scale(a: u128, total: u128, n: u128) -> u128 {
    match a.checked_mul(total) {
        Some(p) => p / n,
        None => total / n * a,
    }
}

/// The `rank`-th of `n` different numbers.
fn distinct<T: Number>(rank: u64, n: u64) -> T {
    if let Some((low, high)) = int_limits(T::TYPE) {
        let first = if low < 0 { -(i128::from(n) / 2) } else { 0 }.max(low);
        let span = (high - first + 1) as u128;
        return T::from_i128(first + (u128::from(rank) % span) as i128);
    }
    let spread = -1.0 + (2.0 * rank as f64 + 1.0) / n as f64;
    if T::TYPE.real_part().bits() >= 32 {
        return T::from_f64(spread);
    }
    // A narrow type has too few numbers for even spacing: count through its numbers from -1 to 1 instead.
    let one = T::from_f64(1.0).bits() as i128;
    let signed = T::TYPE != ElementType::F8E8M0FNU;
    let (low, high) = if signed { (-one, one) } else { (0, one) };
    let ordinal = low + scale(u128::from(rank), (high - low + 1) as u128, u128::from(n)) as i128;
    let sign = if ordinal < 0 { 1u128 << (T::TYPE.bits() - 1) } else { 0 };
    T::from_bits(ordinal.unsigned_abs() | sign)
}

/// The identity of a binary operation in a type; zero for operations that have none.
fn identity<T: Number>(op: Opcode) -> T {
    let limits = int_limits(T::TYPE);
    if op == Opcode::Multiply {
        T::from_f64(1.0)
    } else if op == Opcode::And {
        match limits {
            Some((low, high)) => T::from_i128(if low < 0 { -1 } else { high }),
            None => T::default(),
        }
    } else if op == Opcode::Minimum || op == Opcode::Maximum {
        let largest = op == Opcode::Minimum;
        match limits {
            Some((low, high)) => T::from_i128(if largest { high } else { low }),
            None => {
                let infinity = T::from_f64(if largest { f64::INFINITY } else { f64::NEG_INFINITY });
                let wide = infinity.parts().0.value();
                // A type without infinities has a largest number instead.
                if wide.is_infinite() || T::TYPE.is_complex() { infinity } else { extreme(largest) }
            }
        }
    } else if T::TYPE.is_float() || T::TYPE.is_complex() {
        T::from_f64(0.0)
    } else {
        T::default()
    }
}

fn extreme<T: Number>(largest: bool) -> T {
    let all =
        (0..1u128 << T::TYPE.bits().min(8)).map(T::from_bits).filter(|x| !hlo_execution::element::is_nan(*x));
    let key = |x: &T| x.parts().0.value();
    let found = if largest {
        all.max_by(|a, b| key(a).total_cmp(&key(b)))
    } else {
        all.min_by(|a, b| key(a).total_cmp(&key(b)))
    };
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(fill: &Fill, n: i64) -> Vec<f32> {
        match fill_array(&ArrayShape::new(ElementType::F32, &[n]), fill, key(0, 0, 0, 0)).into_buffer() {
            Buffer::F32(v) => v,
            other => panic!("{other:?}"),
        }
    }

    /// Values printed by the Python program in docs/inputs.md.
    #[test]
    fn values_of_the_written_rule() {
        assert_eq!(key(0, 0, 0, 0), 0x2130_748a_aac8_0268);
        assert_eq!(key(7, 1, 2, 3), 0xe9fb_a137_853d_ae22);
        assert_eq!(draw(key(0, 0, 0, 0), 5), 0xdfcf_eefc_51b2_e6c2);
        assert_eq!(
            f32s(&Fill::Real { low: -1.0, high: 1.0 }, 4).iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
            [0xbd6a_34ad, 0x3e97_4dd6, 0xbf76_06dd, 0x3e44_bb33]
        );
        let ints = fill_array(
            &ArrayShape::new(ElementType::S32, &[8]),
            &Fill::Int { low: -8, high: 7 },
            key(0, 0, 1, 0),
        );
        assert_eq!(*ints.buffer, Buffer::S32(vec![7, 5, 7, 3, 0, -4, -5, 3]));
    }

    /// Values printed by the Python program in docs/inputs.md.
    #[test]
    fn values_of_the_written_kinds() {
        let gentle = Box::new(Fill::Real { low: -1.0, high: 1.0 });
        let bits = |kind| {
            let fill = Fill::Kind { kind, nonnegative: false, gentle: gentle.clone() };
            f32s(&fill, 6).iter().map(|x| x.to_bits()).collect::<Vec<_>>()
        };
        let large = [0x713c_572d, 0x67d2_e9bb, 0xf582_7e49, 0x7f4c_4bb3, 0x7ee2_c71a, 0x6cef_e7f7];
        let tiny = [0x0047_3ade, 0x0022_f1a7, 0x805a_43d9, 0x0039_3fd8, 0x0006_7a77, 0x0036_e459];
        let special = [0x0080_0000, 0xff80_0000, 0x7f80_0000, 0xff80_0000, 0x7fc0_0000, 0xff80_0000];
        let extreme = [0x001b_d9c4, 0x8069_ab19, 0xff80_0000, 0x3e44_bb33, 0x3f0b_1c67, 0x8071_022c];
        assert_eq!(bits(InputKind::Large), large);
        assert_eq!(bits(InputKind::Tiny), tiny);
        assert_eq!(bits(InputKind::Special), special);
        assert_eq!(bits(InputKind::Extreme), extreme);
        let cover = Cover { ranges: vec![(0.0, 10.0)], points: vec![5.0], ties: true };
        assert_eq!(f32s(&Fill::Cover(cover), 8), [3.75, 6.477_578_6, 0.0, 5.0, 5.0, 7.5, 8.75, 0.0]);
        let ranges = vec![(-2_415_919_104.0, 2_415_919_104.0), (-16.0, 16.0)];
        let cover = Cover { ranges, ..Cover::default() };
        let two = [-138_140_176.0, 713_942_080.0, -2_321_800_192.0, 3.073_925_7];
        assert_eq!(f32s(&Fill::Cover(cover), 4), two);
    }

    #[test]
    fn distinct_values_are_distinct_in_every_type_that_has_enough() {
        fn count<T: Number>(n: usize) -> usize {
            let shape = ArrayShape::new(T::TYPE, &[n as i64]);
            let array = fill_array(&shape, &Fill::Distinct, 5);
            let mut bits: Vec<u128> = T::slice(&array.buffer).unwrap().iter().map(|x| x.bits()).collect();
            bits.sort_unstable();
            bits.dedup();
            bits.len()
        }
        for &ty in ElementType::ALL {
            let n = match ty.bits() {
                ..8 => 2,
                8 if ty == ElementType::Pred => 2,
                8 => 40,
                _ => 3000,
            };
            let n = if ty == ElementType::S1 || ty == ElementType::U1 || ty.bits() > 4 || ty.bits() == 2 {
                n
            } else {
                4
            };
            assert_eq!(hlo::with_element_type!(ty, T => count::<T>(n)), n, "{ty}");
        }
    }

    #[test]
    fn ascending_vectors_climb_and_stay_in_range() {
        let shape = ArrayShape::new(ElementType::S32, &[6, 2]);
        let fill = Fill::Vectors { dim: 1, maximum: vec![2, 3], ascending: true };
        let Buffer::S32(v) = fill_array(&shape, &fill, 1).into_buffer() else { panic!("s32") };
        let vectors: Vec<(i32, i32)> = v.chunks(2).map(|c| (c[0], c[1])).collect();
        assert_eq!(vectors, [(0, 0), (0, 2), (1, 0), (1, 2), (2, 0), (2, 2)]);
    }

    #[test]
    fn identities() {
        assert_eq!(identity::<f32>(Opcode::Add).to_bits(), 0);
        assert_eq!(identity::<f32>(Opcode::Maximum), f32::NEG_INFINITY);
        assert_eq!(identity::<i8>(Opcode::Minimum), 127);
        assert_eq!(identity::<u8>(Opcode::And), 255);
        assert_eq!(identity::<hlo::small_float::F8E4M3FN>(Opcode::Maximum).to_f64(), -448.0);
        assert!(!identity::<bool>(Opcode::Maximum));
        assert!(identity::<bool>(Opcode::Multiply));
    }

    #[test]
    fn full_ranges_do_not_overflow() {
        assert_eq!(int(u64::MAX, i128::from(i64::MIN), i128::from(i64::MAX)), i128::from(i64::MAX));
        assert_eq!(int(0, i128::from(i64::MIN), i128::from(i64::MAX)), i128::from(i64::MIN));
        assert_eq!(int(u64::MAX, 0, i128::from(u64::MAX)), i128::from(u64::MAX));
    }
}
