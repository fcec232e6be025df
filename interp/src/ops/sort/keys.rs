//! Sorting by one key, as integers.

use hlo::half::{bf16, f16};
use hlo::num_complex::Complex;
use hlo::small_float::{
    F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ,
    F8E8M0FNU,
};
use hlo::small_int::{S1, S2, S4, U1, U2, U4};
use hlo::with_buffer;
use rayon::prelude::*;

use super::Lines;
use crate::region::{FloatOrder, Order};
use crate::scalar::{Float, Int};
use crate::value::Tensor;

/// Elements of a line from which several threads sort it.
const PARALLEL: usize = 1 << 16;

/// Which keys come first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ops) enum Direction {
    Ascending,
    Descending,
}

impl Direction {
    /// What turns keys of `bits` into keys in ascending order.
    fn flip(self, bits: u32) -> u64 {
        match self {
            Direction::Ascending => 0,
            Direction::Descending => u64::MAX >> (64 - bits),
        }
    }
}

/// A type whose order embeds in that of integers.
trait Key: Copy + Sync {
    /// Bits that keys need.
    const BITS: u32;

    /// An integer in the low bits that compares as the element does; `None` if the element does not compare.
    fn key(self, floats: FloatOrder) -> Option<u64>;
}

impl Key for bool {
    const BITS: u32 = 1;

    fn key(self, _floats: FloatOrder) -> Option<u64> {
        Some(u64::from(self))
    }
}

macro_rules! ints {
    ($($t:ty),*) => {$(
        impl Key for $t {
            const BITS: u32 = <$t as Int>::BITS;

            fn key(self, _floats: FloatOrder) -> Option<u64> {
                let top = if <$t as Int>::SIGNED { 1 << (<$t as Int>::BITS - 1) } else { 0 };
                Some(Int::bits(self) ^ top)
            }
        }
    )*};
}
ints!(i8, i16, i32, i64, u8, u16, u32, u64, S1, S2, S4, U1, U2, U4);

/// The order of floats as that of integers of one bit more than the type: `None` for a NaN that does not compare.
fn order_of_floats<T: Float>(x: T, floats: FloatOrder) -> Option<i128> {
    let total = |x: T| i128::from(x.total_order_key());
    match floats {
        FloatOrder::Total => Some(total(x)),
        FloatOrder::Partial | FloatOrder::Merged if x.is_nan() => {
            (floats == FloatOrder::Merged).then_some(1 << <T as Float>::BITS)
        }
        // Both zeros are +0.
        FloatOrder::Partial | FloatOrder::Merged if x.to_f64() == 0.0 => Some(0),
        FloatOrder::Partial | FloatOrder::Merged => Some(total(x)),
    }
}

macro_rules! floats {
    ($($t:ty),*) => {$(
        impl Key for $t {
            const BITS: u32 = if <$t as Float>::BITS < 64 { <$t as Float>::BITS } else { 64 };

            fn key(self, floats: FloatOrder) -> Option<u64> {
                // Keys are from -SIGN up to the largest pattern without sign, but for the merged NaN, which takes that
                // one: no other NaN does.
                let largest = (1 << <$t as Float>::BITS) - 1 - i128::from(<$t as Float>::SIGN);
                let key = order_of_floats(self, floats)?.min(largest);
                Some((key + i128::from(<$t as Float>::SIGN)) as u64)
            }
        }
    )*};
}
floats!(
    f16,
    bf16,
    f32,
    f64,
    F8E5M2,
    F8E4M3,
    F8E4M3FN,
    F8E4M3B11FNUZ,
    F8E3M4,
    F8E5M2FNUZ,
    F8E4M3FNUZ,
    F8E8M0FNU,
    F4E2M1FN,
    F6E3M2FN,
    F6E2M3FN
);

macro_rules! incomparable {
    ($($t:ty),*) => {$(
        impl Key for $t {
            const BITS: u32 = 64;

            fn key(self, _floats: FloatOrder) -> Option<u64> {
                None
            }
        }
    )*};
}
incomparable!(Complex<f32>, Complex<f64>);

/// For each line the indices in sorted order; `None` if some key does not compare.
pub(super) fn sort(key: &Tensor, order: Order, lines: Lines) -> Option<Vec<u32>> {
    let direction = if order.descending { Direction::Descending } else { Direction::Ascending };
    with_buffer!(key.buffer(), x => sort_by(x, order.floats, direction, lines))
}

/// For each line the indices of its first `k` elements in sorted order, floats by TOTALORDER. The keys are not complex.
pub(in crate::ops) fn top(x: &Tensor, k: usize, direction: Direction, lines: Lines) -> Option<Vec<u32>> {
    with_buffer!(x.buffer(), x => top_by(x, k, direction, lines))
}

fn top_by<K: Key>(x: &[K], k: usize, direction: Direction, lines: Lines) -> Option<Vec<u32>> {
    let flip = direction.flip(K::BITS);
    let mut out = vec![0u32; k * lines.count];
    if k == 0 {
        return Some(out);
    }
    let each = |pairs: &mut Vec<(u64, u32)>, (line, out): (usize, &mut [u32])| -> Option<()> {
        pairs.clear();
        for i in 0..lines.len {
            let key = x[lines.start(line) + i * lines.stride].key(FloatOrder::Total)?;
            pairs.push((key ^ flip, i as u32));
        }
        if k < pairs.len() {
            pairs.select_nth_unstable(k);
            pairs.truncate(k);
        }
        pairs.sort_unstable();
        out.iter_mut().zip(pairs).for_each(|(out, pair)| *out = pair.1);
        Some(())
    };
    let least = (super::SEQUENTIAL / 8 / lines.len.max(1)).max(1);
    let lines = out.par_chunks_exact_mut(k).enumerate().with_min_len(least);
    lines.map_init(Vec::new, each).collect::<Option<()>>()?;
    Some(out)
}

fn sort_by<K: Key>(x: &[K], floats: FloatOrder, direction: Direction, lines: Lines) -> Option<Vec<u32>> {
    let flip = direction.flip(K::BITS);
    let mut out = vec![0u32; lines.len * lines.count];
    let key = |line: usize, i: usize| Some(x[lines.start(line) + i * lines.stride].key(floats)? ^ flip);
    // An index in the low bits makes keys different and the sort stable.
    let each = |(line, out): (usize, &mut [u32])| -> Option<()> {
        if K::BITS <= 32 {
            let mut pairs: Vec<u64> =
                (0..lines.len).map(|i| Some(key(line, i)? << 32 | i as u64)).collect::<Option<_>>()?;
            if lines.len < PARALLEL {
                pairs.sort_unstable()
            } else {
                pairs.par_sort_unstable()
            }
            out.iter_mut().zip(pairs).for_each(|(out, pair)| *out = pair as u32);
        } else {
            let mut pairs: Vec<(u64, u32)> =
                (0..lines.len).map(|i| Some((key(line, i)?, i as u32))).collect::<Option<_>>()?;
            if lines.len < PARALLEL {
                pairs.sort_unstable()
            } else {
                pairs.par_sort_unstable()
            }
            out.iter_mut().zip(pairs).for_each(|(out, pair)| *out = pair.1);
        }
        Some(())
    };
    let least = (super::SEQUENTIAL / 8 / lines.len).max(1);
    out.par_chunks_exact_mut(lines.len).enumerate().with_min_len(least).map(each).collect::<Option<()>>()?;
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order_of(x: &[f32], floats: FloatOrder, direction: Direction) -> Option<Vec<u32>> {
        sort_by(x, floats, direction, Lines { len: x.len(), stride: 1, count: 1 })
    }

    #[test]
    fn float_orders() {
        let x = [f32::NAN, 0.0, -0.0, 1.0, -f32::NAN, f32::NEG_INFINITY, f32::INFINITY, -1.0];
        let ascending = |floats| order_of(&x, floats, Direction::Ascending);
        assert_eq!(ascending(FloatOrder::Total), Some(vec![4, 5, 7, 2, 1, 3, 6, 0]));
        assert_eq!(ascending(FloatOrder::Merged), Some(vec![5, 7, 1, 2, 3, 6, 0, 4]));
        assert_eq!(ascending(FloatOrder::Partial), None);
        assert_eq!(
            order_of(&x, FloatOrder::Merged, Direction::Descending),
            Some(vec![0, 4, 6, 3, 1, 2, 7, 5])
        );
        assert_eq!(order_of(&x[1..4], FloatOrder::Partial, Direction::Descending), Some(vec![2, 0, 1]));
    }

    #[test]
    fn integer_keys() {
        let lines = Lines { len: 4, stride: 1, count: 1 };
        let sort = |x: &[i64]| sort_by(x, FloatOrder::Total, Direction::Ascending, lines);
        assert_eq!(sort(&[3, i64::MIN, i64::MAX, 3]), Some(vec![1, 0, 3, 2]));
        let small = [S4::from_i64(7), S4::from_i64(-8), S4::from_i64(0), S4::from_i64(-1)];
        assert_eq!(sort_by(&small, FloatOrder::Total, Direction::Ascending, lines), Some(vec![1, 3, 2, 0]));
    }

    #[test]
    fn strided_lines() {
        // Two columns of three rows.
        let lines = Lines { len: 3, stride: 2, count: 2 };
        let sorted = sort_by(&[3u8, 1, 2, 2, 1, 3], FloatOrder::Total, Direction::Ascending, lines);
        assert_eq!(sorted, Some(vec![2, 1, 0, 0, 1, 2]));
    }
}
