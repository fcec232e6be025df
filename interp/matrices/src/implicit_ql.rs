//! The implicit QL and QR iteration on a symmetric tridiagonal matrix: `steqr`.

use hlo_threads::cancel;

use super::Matrix;
use super::chase::{self, Iteration};
use super::eigen_symmetric::take_signs;
use super::matrix::hypotenuse;
use super::rotation::rotation;
use super::rotations::Rotations;
use crate::wide::{Real, abs};

/// A tridiagonal matrix that is being diagonalized down to off-diagonal elements below `ulp`; the columns of
/// `z` are rotated with it.
pub(super) struct TridiagonalIteration<R> {
    pub(super) d: Vec<R>,
    e: Vec<R>,
    pub(super) z: Rotations<R>,
    ulp: f64,
    /// Rounds that are left.
    budget: usize,
    /// The blocks that end before this row are done.
    start: usize,
    /// What is left of the block that is not.
    block: Option<Block>,
}

/// The rows from `at` to `end`: eigenvalues split off at `at`, which goes towards `end` (downwards if that is
/// before it).
#[derive(Clone, Copy)]
struct Block {
    at: usize,
    end: usize,
}

impl<R: Real> TridiagonalIteration<R> {
    pub(super) fn new(d: Vec<R>, e: Vec<R>, z: Rotations<R>, ulp: f64) -> Self {
        let budget = 30 * d.len();
        Self { d, e, z, ulp, budget, start: 0, block: None }
    }

    /// Eigenvalues, ascending, and `z` with its columns rotated; with the signs that there are up to what is
    /// below `coarse`, or, if that finds nothing, not: whether it does. The error is how many off-diagonal
    /// elements are left.
    pub(super) fn diagonalized(mut self, coarse: Option<f64>) -> Result<(Vec<R>, Matrix<R>, bool), usize> {
        let Some(coarse) = coarse else {
            chase::run(&mut self)?;
            return Ok((self.d, self.z.finish(), true));
        };
        let mut rough = Self::new(self.d.clone(), self.e.clone(), self.z.clone(), coarse);
        let [done, roughly] = chase::run_both(&mut self, &mut rough);
        done?;
        let mut z = self.z.finish();
        if roughly.is_ok() {
            take_signs(&mut z, &rough.z.finish());
        }
        Ok((self.d, z, roughly.is_ok()))
    }

    /// The next block of more than one row, up to the next element that is negligible.
    fn next_block(&mut self) -> Option<Block> {
        let Self { d, e, start, ulp, .. } = self;
        let n = d.len();
        let epsilon = R::from_f64(*ulp / 2.0);
        while *start < n {
            if let Some(before) = start.checked_sub(1) {
                e[before] = R::default();
            }
            let end = (*start..n - 1)
                .find(|&m| {
                    let limit = abs(d[m]).root() * abs(d[m + 1]).root() * epsilon;
                    abs(e[m]) <= limit
                })
                .unwrap_or(n - 1);
            if end < n - 1 {
                e[end] = R::default();
            }
            let first = std::mem::replace(start, end + 1);
            if end > first {
                // From the end that has the larger diagonal element towards the other.
                let reversed = abs(d[end]) < abs(d[first]);
                return Some(if reversed { Block { at: end, end: first } } else { Block { at: first, end } });
            }
        }
        None
    }

    /// Splits eigenvalues off the block: one or two of what needs no chase. Returns the next chase, or `None`
    /// if the block is done or the budget spent.
    fn split(&mut self, Block { mut at, end }: Block) -> Option<Chase<R>> {
        let up = at < end;
        // The next row towards the end, and the off-diagonal element between both.
        let next = |i: usize| if up { i + 1 } else { i - 1 };
        let between = |i: usize| if up { i } else { i - 1 };
        let past = |i: usize, by: usize| if up { Some(i + by) } else { i.checked_sub(by) };
        let within = |i: usize| if up { i <= end } else { i >= end };
        let mut now = Some(at);
        while let Some(l) = now.filter(|&l| within(l)) {
            at = l;
            let Self { d, e, ulp, .. } = &mut *self;
            let mut m = at;
            while m != end && !negligible(e[between(m)], d[m], d[next(m)], *ulp) {
                m = next(m);
            }
            if m != end {
                e[between(m)] = R::default();
            }
            if m == at {
                now = past(at, 1);
                continue;
            }
            if m == next(at) {
                let low = at.min(m);
                let Pair { larger, smaller, c, s } = pair(d[low], e[low], d[low + 1]);
                self.z.rotate(low, c, s);
                (self.d[low], self.d[low + 1], self.e[low]) = (larger, smaller, R::default());
                now = past(at, 2);
                continue;
            }
            if self.budget == 0 {
                self.block = None;
                return None;
            }
            self.budget -= 1;
            self.block = Some(Block { at, end });
            let (d, e) = (&self.d, &self.e);
            let g = d[m] - d[at] + shift(d[next(at)] - d[at], e[between(at)]);
            return Some(Chase { g, s: R::one(), c: R::one(), p: R::default(), first: m, at: m, end: at });
        }
        self.block = None;
        None
    }
}

/// From row `at` to `end`, back to where eigenvalues split off.
pub(super) struct Chase<R> {
    g: R,
    s: R,
    c: R,
    p: R,
    first: usize,
    at: usize,
    end: usize,
}

impl<R: Real> Iteration for TridiagonalIteration<R> {
    type Chase = Chase<R>;

    fn begin(&mut self) -> Result<Option<Chase<R>>, usize> {
        cancel::poll();
        loop {
            if self.block.is_none() {
                if self.budget == 0 {
                    let left = self.e.iter().filter(|e| !e.is_zero()).count();
                    if left > 0 {
                        return Err(left);
                    }
                }
                self.block = self.next_block();
            }
            let Some(block) = self.block else { return Ok(None) };
            if let Some(chase) = self.split(block) {
                return Ok(Some(chase));
            }
        }
    }

    fn left(chase: &Chase<R>) -> usize {
        chase.at.abs_diff(chase.end)
    }

    #[inline(always)]
    fn step(&mut self, chase: &mut Chase<R>) {
        let TridiagonalIteration { d, e, z, .. } = self;
        let &mut Chase { g, s, c, p, first, at, end } = chase;
        let down = at > end;
        let (next, low) = if down { (at - 1, at - 1) } else { (at + 1, at) };
        let (f, b) = (s * e[low], c * e[low]);
        let rotated = rotation(g, f);
        let (c, s) = (rotated.c, rotated.s);
        if at != first {
            e[if down { at } else { at - 1 }] = rotated.r;
        }
        let g = d[at] - p;
        let r = (d[next] - g) * s + (c * b) + (c * b);
        let p = s * r;
        d[at] = g + p;
        z.rotate(low, c, if down { -s } else { s });
        *chase = Chase { g: c * r - b, s, c, p, first, at: next, end };
    }

    fn end(&mut self, Chase { g, p, first, end, .. }: Chase<R>) {
        self.d[end] = self.d[end] - p;
        self.e[if first > end { end } else { end - 1 }] = g;
    }

    /// Ascending, by selection.
    fn sort(&mut self) {
        let Self { d, z, .. } = self;
        for i in 0..d.len() {
            let mut least = i;
            for j in i + 1..d.len() {
                if d[j] < d[least] {
                    least = j;
                }
            }
            d.swap(i, least);
            z.swap(i, least);
        }
    }
}

/// Whether an off-diagonal element is negligible.
fn negligible<R: Real>(e: R, d: R, next: R, ulp: f64) -> bool {
    let epsilon = ulp / 2.0;
    let limit = (abs(d) * R::from_f64(epsilon * epsilon)) * abs(next) + R::from_f64(R::TINY);
    e * e <= limit
}

/// Wilkinson's shift, from the difference of two diagonal elements and the off-diagonal element, without
/// adding the diagonal element.
fn shift<R: Real>(difference: R, e: R) -> R {
    let g = difference / (e + e);
    let r = hypotenuse(g, R::one());
    e / (g + r.with_sign_of(g))
}

/// The eigenvalues of a symmetric matrix of order 2, and (c, s), the eigenvector of the one of larger
/// magnitude.
struct Pair<R> {
    larger: R,
    smaller: R,
    c: R,
    s: R,
}

fn pair<R: Real>(a: R, b: R, c: R) -> Pair<R> {
    let half = R::from_f64(0.5);
    let (sum, difference, twice) = (a + c, a - c, b + b);
    let root = hypotenuse(difference, twice);
    let (big, small) = if abs(a) > abs(c) { (a, c) } else { (c, a) };
    let zero = R::default();
    let (larger, smaller, first) = if sum < zero {
        let larger = (sum - root) * half;
        (larger, (big / larger) * small - (b / larger) * b, false)
    } else if sum > zero {
        let larger = (sum + root) * half;
        (larger, (big / larger) * small - (b / larger) * b, true)
    } else {
        (root * half, -(root * half), true)
    };
    let second = difference >= zero;
    let cosine = if second { difference + root } else { difference - root };
    let (mut cs, mut sn) = if abs(cosine) > abs(twice) {
        let cotangent = -(twice / cosine);
        let sn = R::one() / hypotenuse(R::one(), cotangent);
        (cotangent * sn, sn)
    } else if twice.is_zero() {
        (R::one(), zero)
    } else {
        let tangent = -(cosine / twice);
        let cs = R::one() / hypotenuse(R::one(), tangent);
        (cs, tangent * cs)
    };
    if first == second {
        (cs, sn) = (-sn, cs);
    }
    Pair { larger, smaller, c: cs, s: sn }
}
