//! Singular values of a bidiagonal matrix without vectors: differential quotients and differences with shifts
//! (`dqds`: Fernando and Parlett, "Accurate singular values and differential qd algorithms", 1994; Parlett
//! and Marques, "An implementation of the dqds algorithm", 2000).
//!
//! The matrix is the squares of its elements: `q` on its diagonal, `e` off it, all positive. A step makes
//! those of a matrix whose squared singular values are all less by a shift, with one division an element,
//! where the iteration with rotations takes four and two roots. A shift beyond the smallest of them shows as
//! a negative number, and the step is done again with a smaller one. Nothing is subtracted but the shift, so
//! that small values are as precise as large ones.
//!
//! **Invariant:** steps are limited; who asks has another iteration for what is left then, and for elements
//! whose squares are out of range.

use crate::wide::{Real, abs, larger, smaller};

/// Steps for each value, on average.
const STEPS: usize = 30;
/// Off-diagonal elements of up to this many units of rounding of those on the diagonal are negligible.
const UNITS: f64 = 8.0;
/// Elements below have no square of full precision.
const LEAST: f64 = 1e-140;

/// The singular values of the bidiagonal matrix with this diagonal and off-diagonal, in descending order.
/// `None`: elements are 0, or tiny, or there were too many steps.
pub(super) fn singular_values<R: Real>(d: &[R], e: &[R]) -> Option<Vec<R>> {
    let n = d.len();
    let plain = |x: &R| abs(*x).to_f64() >= LEAST;
    let beside = |x: &R| x.is_zero() || plain(x);
    if n == 0 || e.len() + 1 != n || !d.iter().all(plain) || !e.iter().all(beside) {
        return None;
    }
    let square = |x: &R| *x * *x;
    let mut quotients =
        Quotients { q: d.iter().map(square).collect(), e: e.iter().map(square).collect(), next: Vec::new() };
    let mut squares = Vec::with_capacity(n);
    let mut budget = STEPS * n;
    // Blocks that are left, with what was subtracted from all of their values.
    let mut blocks = vec![(0, n - 1, R::default())];
    while let Some((low, high, shifted)) = blocks.pop() {
        quotients.block(low, high, shifted, &mut squares, &mut blocks, &mut budget)?;
    }
    if squares.iter().any(|x| x.to_f64() < LEAST * LEAST) {
        return None;
    }
    let mut values: Vec<R> = squares.into_iter().map(R::root).collect();
    values.sort_by(|a, b| b.partial_cmp(a).unwrap_or(std::cmp::Ordering::Equal));
    Some(values)
}

/// The squares, and a buffer for those of the next matrix.
struct Quotients<R> {
    q: Vec<R>,
    e: Vec<R>,
    next: Vec<(R, R)>,
}

/// What a step went through on the diagonal before it added the off-diagonal: how near the shift is to the
/// least value.
#[derive(Clone, Copy)]
struct Gone<R> {
    /// The last three, the last one first.
    last: [R; 3],
    /// The smallest of all, of all but the last, and of all but the last two.
    least: [R; 3],
}

impl<R: Real> Quotients<R> {
    /// The squared values of a block, or of its lower part: what splits off above is a block of its own.
    fn block(
        &mut self,
        mut low: usize,
        mut high: usize,
        mut shifted: R,
        squares: &mut Vec<R>,
        blocks: &mut Vec<(usize, usize, R)>,
        budget: &mut usize,
    ) -> Option<()> {
        let unit = R::from_f64(UNITS * R::ULP);
        let nothing = unit * unit;
        // Small values come off at the end.
        if self.q[low] < self.q[high] {
            self.q[low..=high].reverse();
            self.e[low..high].reverse();
        }
        let mut gone: Option<Gone<R>> = None;
        let mut share = 0.25;
        loop {
            let split = (low..high).rev().find(|&i| self.e[i] <= nothing * self.q[i]);
            if let Some(split) = split.filter(|split| split + 1 < high) {
                blocks.push((low, split, shifted));
                (low, gone) = (split + 1, None);
                continue;
            }
            let Some(before) = high.checked_sub(1).filter(|_| high > low) else {
                squares.push(shifted + self.q[high]);
                return Some(());
            };
            let off = self.e[before];
            // Without it, the matrix whose values these are is another one by `off`, and by the root of this
            // product off the diagonal.
            let rounding = R::from_f64(R::ULP / 4.0) * shifted;
            let lost = off <= rounding && off * self.q[high] <= rounding * rounding;
            if lost || off <= nothing * (shifted + self.q[high]) || off <= nothing * self.q[before] {
                squares.push(shifted + self.q[high]);
                high = before;
                gone = gone.map(Gone::without_last);
                continue;
            }
            if before == low || {
                let off = self.e[before - 1];
                off <= nothing * shifted || off <= nothing * self.q[before - 1]
            } {
                let both = pair(self.q[before], off, self.q[high], nothing);
                squares.extend(both.map(|square| shifted + square));
                if before == low {
                    return Some(());
                }
                high = before - 1;
                gone = gone.map(Gone::without_last).map(Gone::without_last);
                continue;
            }
            let mut shift = match gone {
                Some(gone) => self.shift(low, high, gone, &mut share),
                None => R::default(),
            };
            let mut tries = 0;
            gone = loop {
                *budget = budget.checked_sub(1)?;
                let next = self.step(low, high, shift);
                // Not a number neither.
                if next.least[0] >= R::default() {
                    break Some(next);
                }
                tries += 1;
                shift = if tries > 3 || shift.is_zero() {
                    R::default()
                } else if next.least[1] > R::default() {
                    // Only the last one is negative: it is by how much.
                    let less = (shift + next.least[0]) * R::from_f64(1.0 - 2.0 * R::ULP);
                    larger(less, R::default())
                } else {
                    shift * R::from_f64(0.25)
                };
            };
            shifted = shifted + shift;
            self.take(low, high);
        }
    }

    /// The next matrix, into its buffer.
    fn step(&mut self, low: usize, high: usize, shift: R) -> Gone<R> {
        let (q, e) = (&self.q[low..=high], &self.e[low..high]);
        self.next.clear();
        let mut d = q[0] - shift;
        let (mut last, mut least) = ([d; 3], [d; 3]);
        for (&off, &following) in e.iter().zip(&q[1..]) {
            let sum = d + off;
            let ratio = following / sum;
            self.next.push((sum, off * ratio));
            d = d * ratio - shift;
            last = [d, last[0], last[1]];
            least = [smaller(least[0], d), least[0], least[1]];
        }
        self.next.push((d, R::default()));
        Gone { last, least }
    }

    /// Goes on with the next matrix.
    fn take(&mut self, low: usize, high: usize) {
        for (i, &(q, e)) in self.next.iter().enumerate() {
            self.q[low + i] = q;
            if low + i < high {
                self.e[low + i] = e;
            }
        }
    }

    /// A shift that is less than the smallest value, by all one can tell, and near to it.
    fn shift(&self, low: usize, high: usize, gone: Gone<R>, share: &mut f64) -> R {
        let (q, e) = (&self.q, &self.e);
        let of = R::from_f64;
        let Gone { last, least } = gone;
        if least[0] <= R::default() {
            return R::default();
        }
        if least[0] != last[0] {
            // Somewhere else: part of a bound from above, more of it as long as that goes well.
            let part = least[0] * of(*share);
            *share += (1.0 - *share) / 3.0;
            return part;
        }
        *share = 0.25;
        if least[1] == last[1] {
            // The last rows are apart from the others: what couples them bounds what they have in common.
            let (b1, b2) = ((q[high] * e[high - 1]).root(), (q[high - 1] * e[high - 2]).root());
            let a = q[high - 1] + e[high - 1];
            let outer = least[2] * of(0.75) - a;
            let inner = if outer > b2 { a - last[0] - (b2 / outer) * b2 } else { a - last[0] - (b1 + b2) };
            if inner > b1 {
                return larger(last[0] - (b1 / inner) * b1, least[0] * of(0.5));
            }
            let near = if last[0] > b1 { last[0] - b1 } else { R::default() };
            let near = if a > b1 + b2 { smaller(near, a - (b1 + b2)) } else { near };
            return larger(near, least[0] * of(1.0 / 3.0));
        }
        // The quotient of Rayleigh of a vector that is almost that of the last row, from how fast its
        // elements decay.
        let (mut product, mut norm) = (R::one(), R::default());
        for i in (low..high).rev() {
            if e[i] > q[i] {
                return least[0] * of(0.25);
            }
            product = product * (e[i] / q[i]);
            norm = norm + product;
            if product * of(100.0) < norm || norm > of(0.5) {
                break;
            }
        }
        let norm = norm * of(1.05);
        if norm < of(0.5) {
            last[0] * ((R::one() - norm.root()) / (R::one() + norm))
        } else {
            least[0] * of(0.25)
        }
    }
}

impl<R: Real> Gone<R> {
    fn without_last(self) -> Self {
        let Gone { last: [_, a, b], least: [_, c, d] } = self;
        Gone { last: [a, b, b], least: [c, d, d] }
    }
}

/// The squared values of two rows, the larger one first.
fn pair<R: Real>(a: R, off: R, b: R, nothing: R) -> [R; 2] {
    let (a, b) = (larger(a, b), smaller(a, b));
    if off <= b * nothing {
        return [a, b];
    }
    let half = ((a - b) + off) * R::from_f64(0.5);
    let s = b * (off / half);
    let s = if s <= half {
        b * (off / (half * (R::one() + (R::one() + s / half).root())))
    } else {
        b * (off / (half + half.root() * (half + s).root()))
    };
    let most = a + (s + off);
    [most, b * (a / most)]
}

#[cfg(test)]
mod tests {
    use hlo_arithmetic::scalar::dd::Dd;

    use super::super::chase;
    use super::super::implicit_qr::BidiagonalIteration;
    use super::super::rotations::Rotations;
    use super::super::tests::matrices::Numbers;
    use super::*;

    /// Numbers between 0 and 1, the same ones each time.
    fn numbers(n: usize, seed: u64) -> Vec<f64> {
        let mut numbers = Numbers(seed);
        (0..n).map(|_| numbers.next().abs()).collect()
    }

    /// Values are those of the iteration with rotations, each to its own size.
    fn check<R: Real>(name: &str, d: &[f64], e: &[f64]) {
        let of = |x: &[f64]| -> Vec<R> { x.iter().map(|&x| R::from_f64(x)).collect() };
        let found = singular_values::<R>(&of(d), &of(e)).unwrap_or_else(|| panic!("{name}: none"));
        let n = d.len();
        let none = || Rotations::identity(0, n);
        let mut iterated = BidiagonalIteration::<R>::new((of(d), of(e)), false, (none(), none()), R::ULP);
        chase::run(&mut iterated).unwrap();
        assert_eq!(found.len(), n, "{name}");
        for (x, y) in found.iter().zip(&iterated.d) {
            let error = abs(*x - *y).to_f64() / y.to_f64();
            assert!(error <= 150.0 * n as f64 * R::ULP, "{name}: {x:?} for {y:?}");
        }
    }

    #[test]
    fn values_are_those_of_the_iteration() {
        for n in [1usize, 2, 3, 4, 5, 8, 13, 40, 100] {
            let (d, e) = (numbers(n, n as u64), numbers(n - 1, 7 + n as u64));
            let graded: Vec<f64> = (0..n).map(|i| 0.5f64.powi(i as i32) * (1.0 + d[i])).collect();
            let small: Vec<f64> = (1..n).map(|i| graded[i] * e[i - 1]).collect();
            let (mut up, mut small_up) = (graded.clone(), small.clone());
            up.reverse();
            small_up.reverse();
            let apart: Vec<f64> =
                e.iter().enumerate().map(|(i, x)| if i % 3 == 1 { 0.0 } else { *x }).collect();
            let faint: Vec<f64> = e.iter().map(|x| x * 1e-9).collect();
            let ones = (vec![1.0; n], vec![1.0; n - 1]);
            let signs: Vec<f64> = d.iter().map(|x| if *x < 0.5 { -x } else { *x }).collect();
            let far: Vec<f64> =
                d.iter().enumerate().map(|(i, x)| x * 10f64.powi(-((i * 7 % 8) as i32))).collect();
            for (name, d, e) in [
                ("random", &d, &e),
                ("graded down", &graded, &small),
                ("graded up", &up, &small_up),
                ("falls apart", &d, &apart),
                ("almost diagonal", &d, &faint),
                ("ones", &ones.0, &ones.1),
                ("almost equal", &ones.0, &faint),
                ("signs", &signs, &e),
                ("of all sizes", &far, &e),
            ] {
                if name == "of all sizes" && n > 13 {
                    // The smallest has no square.
                    continue;
                }
                check::<f64>(&format!("{name}, {n}"), d, e);
                check::<Dd>(&format!("{name}, {n}"), d, e);
            }
        }
    }

    #[test]
    fn zeros_and_what_has_no_square_are_left_to_others() {
        assert!(singular_values(&[1.0, 0.0], &[1.0]).is_none());
        assert!(singular_values(&[1.0, 1e-200], &[1.0]).is_none());
        assert!(singular_values(&[1.0, 1.0], &[1e-200]).is_none());
        assert!(singular_values(&[1.0, f64::NAN], &[1.0]).is_none());
        // Its smallest value has no square.
        assert!(singular_values(&[1e-100, 1e-100, 1e-100], &[1.0, 1.0]).is_none());
        assert!(singular_values::<f64>(&[], &[]).is_none());
        assert_eq!(singular_values(&[2.0, -3.0], &[0.0]).unwrap(), [3.0, 2.0]);
    }
}
