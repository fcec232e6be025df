//! Exact sums of exact products.

use super::{Algebra, pack_columns, pack_row, plain_step};
use crate::sum::Long;
use crate::sum::fast::{Partial, Total, U, halves, two_product, two_sum};

/// Exponent of the lowest set bit of a finite nonzero `x`.
#[inline]
fn lowest_bit(x: f64) -> Option<i32> {
    if x == 0.0 || !x.is_finite() {
        return None;
    }
    let bits = x.to_bits();
    let field = ((bits >> 52) & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    Some(match (field, fraction) {
        (0, fraction) => fraction.trailing_zeros() as i32 - 1074,
        (field, fraction) => (fraction | 1 << 52).trailing_zeros() as i32 + field - 1075,
    })
}

/// Upper bound of `sum|a b|` by Cauchy and Schwarz, from computed sums of squares of `k` elements.
///
/// Computing a sum of squares loses at most a relative `(k + 1) u` and, below the normal range, `k` times
/// `eta / 2`.
#[inline]
fn bound(k: usize, (a, b): (f64, f64)) -> f64 {
    let tiny = k as f64 * f64::from_bits(1);
    (a + tiny).sqrt() * (b + tiny).sqrt() * 1.001
}

/// The exact sum of products of two `f64` (or narrower), beginning with +0.
fn long_dot(terms: impl Iterator<Item = (f64, f64)>) -> Total {
    let mut long = Box::new(Long::new());
    long.add(0.0);
    terms.for_each(|(a, b)| long.add_product(a, b));
    Total::Exactly(long)
}

/// Exact products and sums of `f32`.
///
/// A product of two `f32` is exact in `f64` (48 bits, exponents -298 to 256), so only the additions round:
/// with `k` terms added in any order to a zero, at most `(k - 1) u sum|a b|`. No finite operands can
/// overflow, so the computed sum is final if it is not finite.
pub struct ExactF32;

/// Columns of a tile of [`ExactF32`]: as many sums as keep the multipliers busy and fit the registers.
const WIDTH: usize = if cfg!(target_feature = "avx2") { 8 } else { 4 };

impl Algebra for ExactF32 {
    type In = f32;
    type Word = f64;
    const W: usize = 1;
    type Tile = [[f64; WIDTH]; 4];
    type Sum = Total;
    const MR: usize = 4;
    const NR: usize = WIDTH;
    const NORMS: bool = true;

    #[inline]
    fn zero() -> Self::Tile {
        [[0.0; WIDTH]; 4]
    }

    #[inline(always)]
    fn pack_row(terms: &[f32], lane: usize, panel: &mut [f64]) {
        pack_row::<_, _, 4>(terms, lane, panel, f64::from);
    }

    #[inline(always)]
    fn pack_columns(columns: &[f32], words: &mut [f64], panel: usize) {
        pack_columns::<_, _, WIDTH>(columns, words, panel, f64::from);
    }

    #[inline(always)]
    fn square(x: f32) -> f64 {
        f64::from(x) * f64::from(x)
    }

    #[inline]
    fn step(a: &[f64], b: &[f64], tile: &mut Self::Tile) {
        // The products are exact, so it is the same whether the sum is fused with them.
        plain_step(
            a,
            b,
            tile,
            |acc, a, b| {
                if cfg!(target_feature = "fma") { a.mul_add(b, acc) } else { acc + a * b }
            },
        );
    }

    #[inline]
    fn sum(tile: &Self::Tile, i: usize, j: usize, k: usize, squares: (f64, f64)) -> Total {
        plain_sum(tile[i][j], k, bound(0, squares))
    }

    #[inline]
    fn sum_on_grid(
        tile: &Self::Tile,
        (i, j): (usize, usize),
        quantum: Option<i32>,
        squares: (f64, f64),
    ) -> Option<Total> {
        on_grid(quantum, squares).then(|| Total::of(tile[i][j]))
    }

    #[inline]
    fn lowest_bit(x: f32) -> Option<i32> {
        lowest_bit(f64::from(x))
    }

    const THIN: bool = true;

    #[inline]
    fn line(a: &[f32], b: &[f32]) -> Total {
        const LANES: usize = 16;
        let (mut s, mut abs) = ([0.0f64; LANES], [0.0f64; LANES]);
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
        for (a, b) in a.iter().zip(b) {
            for lane in 0..LANES {
                let p = f64::from(a[lane]) * f64::from(b[lane]);
                s[lane] += p;
                abs[lane] += p.abs();
            }
        }
        for (lane, (&a, &b)) in a_rest.iter().zip(b_rest).enumerate() {
            let p = f64::from(a) * f64::from(b);
            s[lane] += p;
            abs[lane] += p.abs();
        }
        let k = a.len() * LANES + a_rest.len();
        plain_sum(s.iter().sum(), k + LANES, abs.iter().sum::<f64>() * 1.001)
    }

    #[inline]
    fn across(a: &[f32], b: f32, s: &mut [f64], abs: &mut [f64]) {
        let b = f64::from(b);
        for ((s, abs), &a) in s.iter_mut().zip(abs).zip(a) {
            let p = f64::from(a) * b;
            *s += p;
            *abs += p.abs();
        }
    }

    #[inline]
    fn across_sum(s: f64, abs: f64, k: usize) -> Total {
        plain_sum(s, k, abs * 1.001)
    }

    /// Products are exact, so this is a compensated sum ([`crate::sum::fast`]): off by at most `k^2 u^2 sum|a
    /// b|`.
    #[inline]
    fn closely(terms: &[(f32, f32)]) -> Option<Total> {
        let (mut s, mut c, mut abs, mut exact) = (0.0, 0.0, 0.0, true);
        for &(a, b) in terms {
            let p = f64::from(a) * f64::from(b);
            let (sum, sigma) = two_sum(s, p);
            exact &= sigma == 0.0;
            (s, c, abs) = (sum, c + sigma, abs + p.abs());
        }
        let k = terms.len() as f64;
        // Ties are common where nothing is lost at all.
        let err = if exact { 0.0 } else { 1.01 * k * k * (U * U) * abs };
        (s.is_finite() && c.is_finite() && err.is_finite()).then_some(Total::Near(Partial { s, c, err }))
    }

    /// The sum and that of absolute values.
    type Acc = (f64, f64);

    #[inline(always)]
    fn empty() -> Self::Acc {
        (0.0, 0.0)
    }

    #[inline(always)]
    fn add((s, abs): Self::Acc, a: f32, b: f32) -> Self::Acc {
        let p = f64::from(a) * f64::from(b);
        (s + p, abs + p.abs())
    }

    #[inline]
    fn finish((s, abs): Self::Acc, k: usize) -> Total {
        plain_sum(s, k, abs * 1.001)
    }

    fn slowly(terms: impl Iterator<Item = (f32, f32)>) -> Total {
        long_dot(terms.map(|(a, b)| (f64::from(a), f64::from(b))))
    }
}

/// `k` products of `f32` summed to `s`, with this bound of the sum of their absolute values.
#[inline]
fn plain_sum(s: f64, k: usize, abs: f64) -> Total {
    let err = if s.is_finite() { k.saturating_sub(1) as f64 * U * abs } else { 0.0 };
    Total::Near(Partial { s, c: 0.0, err })
}

/// Whether `f64` arithmetic on multiples of 2^`quantum`, of bounded absolute sum, is exact throughout: all
/// partial sums are multiples, and below 2^53 times the quantum. The products of halves of operands are
/// multiples as well.
#[inline]
fn on_grid(quantum: Option<i32>, squares: (f64, f64)) -> bool {
    match quantum {
        // No nonzero product at all.
        None => true,
        Some(quantum) => (-1022..=900).contains(&quantum) && bound(0, squares) < 2.0f64.powi(quantum + 52),
    }
}

/// Exact products and sums of `f64`: a compensated dot product (Ogita, Rump, Oishi: `Dot2`).
///
/// `a_i b_i = p_i + pi_i` up to `5 eta` and `s_i + sigma_i = s_(i-1) + p_i` exactly. With `T = sum|a b|`:
/// `|pi_i| <= u |a_i b_i|`, `|sigma_i| <= u |s_i| <= 1.001 u T`, so `sum|pi + sigma| <= 1.001 (k + 1) u T`;
/// `c` sums `fl(pi_i + sigma_i)` along a tree of height `k + 1`, hence is off by at most `1.01 (k + 1)^2 u^2
/// T`. Underflow adds `5 eta` for each product; the bound has 16.
pub struct ExactF64;

/// The bound in the text of [`ExactF64`], for a `T` that may have lost `eta` for each term by underflow.
#[inline]
fn compensated_bound(k: usize, t: f64) -> f64 {
    let terms = k as f64;
    let n = terms + 1.0;
    1.01 * n * n * (U * U) * t + terms * f64::from_bits(16)
}

/// Rows of a tile of [`ExactF64`].
const ROWS: usize = 2;
/// Columns of a tile of [`ExactF64`].
const COLUMNS: usize = 4;

/// Accumulators of [`ExactF64`].
#[derive(Clone, Copy)]
pub struct Compensated {
    s: [[f64; COLUMNS]; ROWS],
    c: [[f64; COLUMNS]; ROWS],
}

impl Algebra for ExactF64 {
    type In = f64;
    type Word = f64;
    /// The value and its halves.
    const W: usize = 3;
    type Tile = Compensated;
    type Sum = Total;
    const MR: usize = ROWS;
    const NR: usize = COLUMNS;
    const NORMS: bool = true;

    #[inline]
    fn zero() -> Self::Tile {
        Compensated { s: [[0.0; COLUMNS]; ROWS], c: [[0.0; COLUMNS]; ROWS] }
    }

    #[inline(always)]
    fn pack_row(terms: &[f64], lane: usize, panel: &mut [f64]) {
        for (words, &x) in panel.as_chunks_mut::<{ 3 * ROWS }>().0.iter_mut().zip(terms) {
            let (high, low) = halves(x);
            words[lane] = x;
            words[ROWS + lane] = high;
            words[2 * ROWS + lane] = low;
        }
    }

    #[inline(always)]
    fn pack_columns(columns: &[f64], words: &mut [f64], panel: usize) {
        for (chunk, words) in columns.chunks(COLUMNS).zip(words.chunks_mut(panel)) {
            for (lane, &x) in chunk.iter().enumerate() {
                let (high, low) = halves(x);
                words[lane] = x;
                words[COLUMNS + lane] = high;
                words[2 * COLUMNS + lane] = low;
            }
        }
    }

    #[inline(always)]
    fn square(x: f64) -> f64 {
        x * x
    }

    #[inline]
    fn step(a: &[f64], b: &[f64], tile: &mut Self::Tile) {
        let Compensated { mut s, mut c } = *tile;
        let b = b.as_chunks::<{ 3 * COLUMNS }>().0;
        for (a, b) in a.as_chunks::<{ 3 * ROWS }>().0.iter().zip(b) {
            for i in 0..ROWS {
                let (ai, ai_halves) = (a[i], (a[ROWS + i], a[2 * ROWS + i]));
                for j in 0..COLUMNS {
                    let (p, pi) = two_product(ai, ai_halves, b[j], (b[COLUMNS + j], b[2 * COLUMNS + j]));
                    let (sum, sigma) = two_sum(s[i][j], p);
                    s[i][j] = sum;
                    c[i][j] += pi + sigma;
                }
            }
        }
        *tile = Compensated { s, c };
    }

    #[inline]
    fn sum(tile: &Self::Tile, i: usize, j: usize, k: usize, squares: (f64, f64)) -> Total {
        let err = compensated_bound(k, bound(k, squares));
        Total::Near(Partial { s: tile.s[i][j], c: tile.c[i][j], err })
    }

    #[inline]
    fn sum_on_grid(
        tile: &Self::Tile,
        (i, j): (usize, usize),
        quantum: Option<i32>,
        squares: (f64, f64),
    ) -> Option<Total> {
        // Sums of squares that have underflowed bound nothing; the quantum keeps them apart from 0.
        let normal = squares.0 > 1e-290 && squares.1 > 1e-290;
        let exact = quantum.is_none() || (normal && on_grid(quantum, squares));
        (exact && tile.s[i][j].is_finite() && tile.c[i][j].is_finite()).then(|| Total::of(tile.s[i][j]))
    }

    #[inline]
    fn lowest_bit(x: f64) -> Option<i32> {
        lowest_bit(x)
    }

    /// The sum, its correction, and the sum of absolute values.
    type Acc = (f64, f64, f64);

    #[inline(always)]
    fn empty() -> Self::Acc {
        (0.0, 0.0, 0.0)
    }

    #[inline(always)]
    fn add((s, c, abs): Self::Acc, a: f64, b: f64) -> Self::Acc {
        let (p, pi) = two_product(a, halves(a), b, halves(b));
        let (sum, sigma) = two_sum(s, p);
        (sum, c + (pi + sigma), abs + p.abs())
    }

    #[inline]
    fn finish((s, c, abs): Self::Acc, k: usize) -> Total {
        Total::Near(Partial { s, c, err: compensated_bound(k, abs * 1.001) })
    }

    fn slowly(terms: impl Iterator<Item = (f64, f64)>) -> Total {
        long_dot(terms)
    }
}
