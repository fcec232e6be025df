//! Transforms of real numbers, and to them: of even length by complex ones of half the length, whose points
//! are then combined in pairs from both ends.
//!
//! **Invariant:** each point is computed by the same operations whichever vectors the machine has.

use std::sync::Arc;

use hlo::num_complex::Complex;
use hlo_library_base::simd::vectorized;
use num_traits::Float;
use rustfft::FftNum;

use super::large::{Roots, narrow};
use super::{Plan, Scratch};

/// Points of a real transform that are computed together, which LLVM vectorizes; of short lines fewer.
const BLOCK_POINTS: usize = 16;
const SHORT_LINE_POINTS: usize = 4;

/// Roots of unity for a real transform.
#[derive(Clone, Debug)]
pub(super) enum Twiddles<T> {
    /// The transform is complex, or of odd length.
    None,
    Table(Arc<[Complex<T>]>),
    Roots(Roots),
}

impl<T: Float> Twiddles<T> {
    fn get(&self, k: usize) -> Complex<T> {
        match self {
            Twiddles::None => Complex::new(T::one(), T::zero()),
            Twiddles::Table(table) => table[k],
            Twiddles::Roots(roots) => narrow(roots.get(k as u64)),
        }
    }

    /// Computes two points of each line, `k` and `m - k` for `0 < k <= m / 2`, from those two of another line
    /// and a root. Given are where lines begin and how far apart they are.
    #[inline(always)]
    fn mirrored(
        &self,
        m: usize,
        (from, from_pitch): (&[Complex<T>], usize),
        (to, to_pitch): (&mut [Complex<T>], usize),
        each: impl Fn(Complex<T>, Complex<T>, Complex<T>) -> [Complex<T>; 2],
    ) {
        vectorized(|| {
            for (from, to) in from.chunks_exact(from_pitch).zip(to.chunks_exact_mut(to_pitch)) {
                let mut k = 1;
                if let Twiddles::Table(table) = self {
                    blocks::<T, BLOCK_POINTS>(&mut k, m, from, to, table, &each);
                    blocks::<T, SHORT_LINE_POINTS>(&mut k, m, from, to, table, &each);
                }
                for k in k..=m / 2 {
                    [to[k], to[m - k]] = each(from[k], from[m - k], self.get(k));
                }
            }
        });
    }
}

/// Computes points from the `k`-th on by blocks, while a block and its mirror image are disjoint.
#[inline(always)]
fn blocks<T: Float, const N: usize>(
    k: &mut usize,
    m: usize,
    from: &[Complex<T>],
    to: &mut [Complex<T>],
    roots: &[Complex<T>],
    each: &impl Fn(Complex<T>, Complex<T>, Complex<T>) -> [Complex<T>; 2],
) {
    while 2 * (*k + N - 1) < m {
        let other = m - *k - (N - 1);
        let (Some(a), Some(b), Some(w)) =
            (from[*k..].first_chunk::<N>(), from[other..].first_chunk::<N>(), roots[*k..].first_chunk::<N>())
        else {
            return;
        };
        let mut low = [Complex::new(T::zero(), T::zero()); N];
        let mut high = low;
        for i in 0..N {
            [low[i], high[N - 1 - i]] = each(a[i], b[N - 1 - i], w[i]);
        }
        to[*k..][..N].copy_from_slice(&low);
        to[other..][..N].copy_from_slice(&high);
        *k += N;
    }
}

impl<T: FftNum + Float> Plan<T> {
    /// Forward transforms of lines of `n` real numbers: the first half of the frequencies.
    pub(super) fn real(&self, n: usize, x: &[T], out: &mut [Complex<T>], scratch: Scratch<'_, T>) {
        let (zero, m) = (T::zero(), n / 2);
        if matches!(self.twiddles, Twiddles::None) {
            let lines = &mut scratch.lines[..x.len()];
            lines.iter_mut().zip(x).for_each(|(to, &x)| *to = Complex::new(x, zero));
            self.transform.process(scratch.pool, lines, scratch.inner, T::one());
            for (to, line) in out.chunks_exact_mut(m + 1).zip(lines.chunks_exact(n)) {
                to.copy_from_slice(&line[..=m]);
            }
            return;
        }
        // Even and odd elements are the real and imaginary parts; then the two transforms are separated.
        let lines = &mut scratch.lines[..x.len() / 2];
        lines.iter_mut().zip(x.as_chunks::<2>().0).for_each(|(to, &[re, im])| *to = Complex::new(re, im));
        self.transform.process(scratch.pool, lines, scratch.inner, T::one());
        let half = T::from_f64(0.5).unwrap_or_else(T::one);
        for (to, line) in out.chunks_exact_mut(m + 1).zip(lines.chunks_exact(m)) {
            to[0] = Complex::new(line[0].re + line[0].im, zero);
            to[m] = Complex::new(line[0].re - line[0].im, zero);
        }
        self.twiddles.mirrored(m, (lines, m), (out, m + 1), |a, b, w| {
            let even = Complex::new((a.re + b.re) * half, (a.im - b.im) * half);
            let odd = Complex::new((a.im + b.im) * half, (b.re - a.re) * half);
            let product = Complex::new(odd.re * w.re - odd.im * w.im, odd.re * w.im + odd.im * w.re);
            [
                Complex::new(even.re + product.re, even.im + product.im),
                Complex::new(even.re - product.re, product.im - even.im),
            ]
        });
    }

    /// The inverse, to lines of `n`: the missing frequencies are the conjugates, the result is the real part.
    pub(super) fn to_real(
        &self,
        n: usize,
        x: &[Complex<T>],
        out: &mut [T],
        scratch: Scratch<'_, T>,
        scale: T,
    ) {
        let (zero, m) = (T::zero(), n / 2);
        if matches!(self.twiddles, Twiddles::None) {
            let lines = &mut scratch.lines[..out.len()];
            for (line, x) in lines.chunks_exact_mut(n).zip(x.chunks_exact(m + 1)) {
                line[..=m].copy_from_slice(x);
                line[0] = Complex::new(x[0].re, zero);
                for k in m + 1..n {
                    line[k] = x[n - k].conj();
                }
            }
            self.transform.process(scratch.pool, lines, scratch.inner, T::one());
            out.iter_mut().zip(&*lines).for_each(|(to, x)| *to = x.re * scale);
            return;
        }
        let lines = &mut scratch.lines[..out.len() / 2];
        // Of frequencies 0 and m only the real parts are used.
        for (line, x) in lines.chunks_exact_mut(m).zip(x.chunks_exact(m + 1)) {
            line[0] = Complex::new(x[0].re + x[m].re, x[0].re - x[m].re);
        }
        self.twiddles.mirrored(m, (x, m + 1), (lines, m), |a, b, w| {
            let even = Complex::new(a.re + b.re, a.im - b.im);
            let odd = Complex::new(a.re - b.re, a.im + b.im);
            let product = Complex::new(odd.re * w.re - odd.im * w.im, odd.re * w.im + odd.im * w.re);
            [
                Complex::new(even.re - product.im, even.im + product.re),
                Complex::new(even.re + product.im, product.re - even.im),
            ]
        });
        self.transform.process(scratch.pool, lines, scratch.inner, T::one());
        for (to, x) in out.as_chunks_mut::<2>().0.iter_mut().zip(&*lines) {
            *to = [x.re * scale, x.im * scale];
        }
    }
}
