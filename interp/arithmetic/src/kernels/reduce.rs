//! Sums along the middle axis of a dense row-major `[outer, reduced, inner]` view: `inner == 1` sums rows,
//! `outer == 1` columns, both everything. A reduction over several axes that does not collapse to this form
//! is transposed first.
//!
//! * [`Accumulate::Exact`]: the exact value of `init + sum x`, rounded once into the result type. Exactly
//!   zero is -0 only if `init` and all elements are -0.
//! * [`Accumulate::Region`]: `acc = init`, then in increasing order of the reduced index `acc = fl(acc + x)`
//!   in the *result* type.
//!
//! For complex numbers real and imaginary parts are sums of their own in both modes.

use hlo_threads::parallel;
use num_complex::Complex;

use super::SEQUENTIAL;
use crate::sum::fast::{self, Columns, Partial};
use crate::sum::{Accumulate, Long, Rounded, Term};

/// Extents of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduce {
    /// Slowest axis.
    pub outer: usize,
    /// The axis that is summed.
    pub reduced: usize,
    /// Fastest axis.
    pub inner: usize,
}

/// Elements that one task sums.
const CHUNK: usize = 1 << 16;
/// Columns that one task sums, where there are many.
const COLUMNS: usize = 512;

/// Sums real numbers: `out[o][i] = init + sum_r x[o][r][i]`.
///
/// `init` is rounded to `O` by [`Accumulate::Region`] and taken as it is by [`Accumulate::Exact`].
pub fn real<T: Term, O: Rounded>(mode: Accumulate, shape: Reduce, init: f64, x: &[T], out: &mut [O]) {
    let Reduce { outer, reduced, inner } = shape;
    assert_eq!(x.len(), outer * reduced * inner, "operand of {shape:?}");
    assert_eq!(out.len(), outer * inner, "result of {shape:?}");
    if out.is_empty() {
        return;
    }
    let slice = |o: usize| &x[o * reduced * inner..(o + 1) * reduced * inner];
    let each = |(o, out): (usize, &mut [O])| match mode {
        Accumulate::Region => literal(slice(o), inner, init, out),
        Accumulate::Exact => exact(slice(o), inner, init, out, false),
    };
    let threads = rayon::current_num_threads();
    if x.len() < SEQUENTIAL || threads == 1 {
        out.chunks_mut(inner).enumerate().for_each(each);
    } else if mode == Accumulate::Exact && outer < 4 * threads && reduced * inner >= SEQUENTIAL {
        out.chunks_mut(inner).enumerate().for_each(|(o, out)| exact(slice(o), inner, init, out, true));
    } else {
        let least = SEQUENTIAL.div_ceil(4 * (reduced * inner).max(1));
        parallel::pieces(out, inner, least, &|o, out| each((o, out)));
    }
}

/// Sums complex numbers; see [`real`].
pub fn complex<T: Term, O: Rounded>(
    mode: Accumulate,
    shape: Reduce,
    init: Complex<f64>,
    x: &[Complex<T>],
    out: &mut [Complex<O>],
) {
    let mut part = vec![O::default(); out.len()];
    let re: Vec<T> = x.iter().map(|x| x.re).collect();
    real(mode, shape, init.re, &re, &mut part);
    out.iter_mut().zip(&part).for_each(|(out, &re)| out.re = re);
    let im: Vec<T> = x.iter().map(|x| x.im).collect();
    real(mode, shape, init.im, &im, &mut part);
    out.iter_mut().zip(&part).for_each(|(out, &im)| out.im = im);
}

/// Element by element, row by row.
fn literal<T: Term, O: Rounded>(x: &[T], inner: usize, init: f64, out: &mut [O]) {
    out.fill(O::from_f64(init));
    for row in x.chunks_exact(inner) {
        for (acc, &x) in out.iter_mut().zip(row) {
            // For a type of at most 25 significant bits the sum rounds in f64 first, which is innocuous: 53
            // bits are two more than twice as many (Figueroa, "When is double rounding innocuous?", 1995).
            *acc = O::from_f64(acc.to_f64() + x.widen());
        }
    }
}

/// Sums the columns of `x`, whose rows have `inner` elements.
fn exact<T: Term, O: Rounded>(x: &[T], inner: usize, init: f64, out: &mut [O], parallel: bool) {
    if inner == 1 {
        let total = if parallel {
            let parts = parallel::collect(x.len().div_ceil(CHUNK), &|i| {
                fast::partial(&x[i * CHUNK..x.len().min((i + 1) * CHUNK)])
            });
            parts.into_iter().fold(Partial::EMPTY, Partial::plus)
        } else {
            fast::partial(x)
        };
        out[0] = settle(total, x, 1, 0, init);
        return;
    }
    let rows = x.len() / inner;
    let tasks = 4 * rayon::current_num_threads();
    if parallel && rows < 16 * tasks && inner >= 2 * COLUMNS {
        parallel::pieces(out, COLUMNS, 1, &|strip, out| {
            let mut sums = vec![Partial::EMPTY; out.len()];
            columns(x, inner, strip * COLUMNS, &mut sums);
            for (j, (out, sum)) in out.iter_mut().zip(sums).enumerate() {
                *out = settle(sum, x, inner, strip * COLUMNS + j, init);
            }
        });
        return;
    }
    let mut sums = vec![Partial::EMPTY; inner];
    if parallel {
        let chunk = rows.div_ceil(tasks).max(1) * inner;
        let parts: Vec<Vec<Partial>> = parallel::collect(x.len().div_ceil(chunk), &|i| {
            let mut sums = vec![Partial::EMPTY; inner];
            columns(&x[i * chunk..x.len().min((i + 1) * chunk)], inner, 0, &mut sums);
            sums
        });
        for part in parts {
            sums.iter_mut().zip(part).for_each(|(sum, part)| *sum = sum.plus(part));
        }
    } else {
        columns(x, inner, 0, &mut sums);
    }
    for (j, (out, sum)) in out.iter_mut().zip(sums).enumerate() {
        *out = settle(sum, x, inner, j, init);
    }
}

/// Adds columns `first..first + sums.len()` of `x` to `sums`.
fn columns<T: Term>(x: &[T], inner: usize, first: usize, sums: &mut [Partial]) {
    let mut strip = Columns::default();
    for (index, sums) in sums.chunks_mut(2 * COLUMNS).enumerate() {
        let first = first + index * 2 * COLUMNS;
        strip.reset(sums.len());
        for row in x.chunks_exact(inner) {
            strip.add(0, &row[first..first + sums.len()]);
            if strip.full() {
                strip.flush::<T>(sums);
            }
        }
        strip.flush::<T>(sums);
    }
}

/// Rounds `init` plus the sum of column `j`.
fn settle<T: Term, O: Rounded>(sum: Partial, x: &[T], inner: usize, j: usize, init: f64) -> O {
    sum.plus(Partial::exactly(init)).settle().unwrap_or_else(|| slowly(x, inner, j, init))
}

#[cold]
fn slowly<T: Term, O: Rounded>(x: &[T], inner: usize, j: usize, init: f64) -> O {
    let sum = |x: &[T]| {
        let mut long = Long::new();
        x.iter().skip(j).step_by(inner).for_each(|&x| long.add(x.widen()));
        long
    };
    // Chunks of whole rows; merging is exact, so neither their number nor their order matters.
    let mut long = if x.len() / inner < SEQUENTIAL {
        sum(x)
    } else {
        let chunk = CHUNK * inner;
        let parts =
            parallel::collect(x.len().div_ceil(chunk), &|i| sum(&x[i * chunk..x.len().min((i + 1) * chunk)]));
        parts.into_iter().fold(Long::new(), |mut a, b| {
            a.merge(&b);
            a
        })
    };
    long.add(init);
    O::from_long(&long)
}
