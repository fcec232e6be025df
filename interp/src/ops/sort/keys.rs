//! Sorting by one key, as integers.

use hlo::half::{bf16, f16};
use hlo::num_complex::Complex;
use hlo::small_float::{
    F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ,
    F8E8M0FNU,
};
use hlo::small_int::{S1, S2, S4, U1, U2, U4};
use hlo::with_buffer;
use hlo_arithmetic::scalar::{Float, Int};
use hlo_threads::parallel;
use rayon::slice::ParallelSliceMut;

use super::Lines;
use crate::region::{FloatOrder, Order};
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
    /// The mask that maps keys of `bits` to keys in ascending order.
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

/// The order of floats as that of integers of one bit more than the type: `None` for a NaN that does not
/// compare.
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
                // Keys are from -SIGN up to the largest pattern without sign, but for the merged NaN, which
                // takes that one: no other NaN does.
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
    let (bits, keys) = with_buffer!(key.buffer(), x => (bits_of(x), keys(x, order.floats, direction)));
    Some(sort_by(&keys?, bits, lines))
}

/// For each line the indices of its first `k` elements in sorted order, floats by TOTALORDER. The keys are
/// not complex.
pub(in crate::ops) fn top(x: &Tensor, k: usize, direction: Direction, lines: Lines) -> Option<Vec<u32>> {
    let keys = with_buffer!(x.buffer(), x => keys(x, FloatOrder::Total, direction))?;
    Some(top_by(&keys, k, lines))
}

fn bits_of<K: Key>(_: &[K]) -> u32 {
    K::BITS
}

/// The keys of all elements, mapped so that they ascend; `None` if some element does not compare.
fn keys<K: Key>(x: &[K], floats: FloatOrder, direction: Direction) -> Option<Vec<u64>> {
    let flip = direction.flip(K::BITS);
    x.iter().map(|x| Some(x.key(floats)? ^ flip)).collect()
}

fn top_by(keys: &[u64], k: usize, lines: Lines) -> Vec<u32> {
    let mut out = vec![0u32; k * lines.count];
    let least = (super::SEQUENTIAL / 8 / lines.len.max(1)).max(1);
    parallel::pieces(&mut out, k, least, &|line, out| {
        let key = |i: usize| (keys[lines.start(line) + i * lines.stride], i as u32);
        let mut pairs: Vec<(u64, u32)> = (0..lines.len).map(key).collect();
        if k < pairs.len() {
            pairs.select_nth_unstable(k);
            pairs.truncate(k);
        }
        pairs.sort_unstable();
        out.iter_mut().zip(pairs).for_each(|(out, pair)| *out = pair.1);
    });
    out
}

fn sort_by(keys: &[u64], bits: u32, lines: Lines) -> Vec<u32> {
    let mut out = vec![0u32; lines.len * lines.count];
    let least = (super::SEQUENTIAL / 8 / lines.len.max(1)).max(1);
    parallel::pieces(&mut out, lines.len, least, &|line, out| {
        let key = |i: usize| keys[lines.start(line) + i * lines.stride];
        // An index in the low bits makes keys different and the sort stable.
        if bits <= 32 {
            let mut pairs: Vec<u64> = (0..lines.len).map(|i| key(i) << 32 | i as u64).collect();
            if lines.len < PARALLEL {
                pairs.sort_unstable()
            } else {
                pairs.par_sort_unstable()
            }
            out.iter_mut().zip(pairs).for_each(|(out, pair)| *out = pair as u32);
        } else {
            let mut pairs: Vec<(u64, u32)> = (0..lines.len).map(|i| (key(i), i as u32)).collect();
            if lines.len < PARALLEL {
                pairs.sort_unstable()
            } else {
                pairs.par_sort_unstable()
            }
            out.iter_mut().zip(pairs).for_each(|(out, pair)| *out = pair.1);
        }
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted<K: Key>(x: &[K], floats: FloatOrder, direction: Direction, lines: Lines) -> Option<Vec<u32>> {
        Some(sort_by(&keys(x, floats, direction)?, K::BITS, lines))
    }

    fn order_of(x: &[f32], floats: FloatOrder, direction: Direction) -> Option<Vec<u32>> {
        sorted(x, floats, direction, Lines { len: x.len(), stride: 1, count: 1 })
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
        let sort = |x: &[i64]| sorted(x, FloatOrder::Total, Direction::Ascending, lines);
        assert_eq!(sort(&[3, i64::MIN, i64::MAX, 3]), Some(vec![1, 0, 3, 2]));
        let small = [S4::from_i64(7), S4::from_i64(-8), S4::from_i64(0), S4::from_i64(-1)];
        assert_eq!(sorted(&small, FloatOrder::Total, Direction::Ascending, lines), Some(vec![1, 3, 2, 0]));
    }

    #[test]
    fn strided_lines() {
        // Two columns of three rows.
        let lines = Lines { len: 3, stride: 2, count: 2 };
        let found = sorted(&[3u8, 1, 2, 2, 1, 3], FloatOrder::Total, Direction::Ascending, lines);
        assert_eq!(found, Some(vec![2, 1, 0, 0, 1, 2]));
    }
}
