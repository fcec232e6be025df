//! One-dimensional discrete Fourier transforms of any length, in `f64` or double-double arithmetic.
//!
//! Lengths whose prime factors are small go through Stockham's self-sorting mixed-radix scheme; others
//! through Bluestein's convolution, which takes three transforms of a power of two. Twiddle factors come from
//! a double-double Taylor series, so nothing here asks the host for a sine; each plan computes them once.

use hlo_arithmetic::scalar::dd::Dd;
use hlo_matrices::wide::{Complex, Field, Real};
use hlo_threads::cancel;

/// Cosine and sine of `2 pi k / n` for `8 k <= n`: Taylor series on an angle of at most pi/4.
fn cos_sin(k: usize, n: usize, inverse_factorials: &[Dd]) -> (Dd, Dd) {
    // 2 pi to 106 bits.
    const TAU: Dd = Dd::new(f64::from_bits(0x4019_21fb_5444_2d18), f64::from_bits(0x3cb1_a626_3314_5c07));
    let angle = TAU * Dd::from(k as f64) / Dd::from(n as f64);
    let square = angle * angle;
    let series = |first: usize| {
        let terms = inverse_factorials.iter().skip(first).step_by(2);
        let mut sum = Dd::ZERO;
        // Horner's scheme on alternating signs, from the smallest term.
        for &term in terms.rev() {
            sum = term - sum * square;
        }
        sum
    };
    (series(0), series(1) * angle)
}

/// `exp(-2 pi i k / n)` for `k` in `0..n`, by symmetry from the first octant.
fn roots<R: Real>(n: usize) -> Vec<Complex<R>> {
    const TERMS: usize = 30;
    let mut inverse_factorials = vec![Dd::ONE];
    for i in 1..TERMS {
        inverse_factorials.push(inverse_factorials[i - 1] / Dd::from(i as f64));
    }
    let octant: Vec<(Dd, Dd)> =
        cancel::polled(0..n / 8 + 1).map(|k| cos_sin(k, n, &inverse_factorials)).collect();
    // Angles in units of 1/(8n) of 2 pi would be needed to mirror exactly: k/n mirrors to (n/4 - k)/n only if
    // 4 divides n; otherwise the mirrored angle is computed itself, as (n - 4k)/(4n).
    let root = |k: usize| -> (Dd, Dd) {
        if 8 * k <= n {
            octant[k]
        } else if n.is_multiple_of(4) {
            let (c, s) = octant[n / 4 - k];
            (s, c)
        } else {
            let (c, s) = cos_sin(n - 4 * k, 4 * n, &inverse_factorials);
            (s, c)
        }
    };
    cancel::polled(0..n)
        .map(|k| {
            // The quadrant 0..=n/4 is computed, the others by rotations: k = q n/4 + r needs 4 | n, so
            // reflect instead.
            let half = if 2 * k <= n { k } else { n - k };
            let (c, s) = if 4 * half <= n {
                root(half)
            } else {
                // cos(pi - x) = -cos x; pi - 2 pi h/n = 2 pi (n - 2h) / (2n).
                let (c, s) = if n.is_multiple_of(2) {
                    root(n / 2 - half)
                } else {
                    first_quadrant(n - 2 * half, 2 * n, &inverse_factorials)
                };
                (-c, s)
            };
            let sin = if 2 * k <= n { -s } else { s };
            Complex { re: R::from_dd(c), im: R::from_dd(sin) }
        })
        .collect()
}

/// Cosine and sine of `2 pi k / n` for `4 k <= n`.
fn first_quadrant(k: usize, n: usize, inverse_factorials: &[Dd]) -> (Dd, Dd) {
    if 8 * k <= n {
        cos_sin(k, n, inverse_factorials)
    } else {
        let (c, s) = cos_sin(n - 4 * k, 4 * n, inverse_factorials);
        (s, c)
    }
}

/// The largest prime factor that the mixed-radix scheme takes; a butterfly costs its square.
const LARGEST_RADIX: usize = 31;

/// How to transform one length.
pub(super) struct Plan<R> {
    n: usize,
    roots: Vec<Complex<R>>,
    factors: Vec<usize>,
    bluestein: Option<Box<Bluestein<R>>>,
}

struct Bluestein<R> {
    inner: Plan<R>,
    /// `exp(-pi i k^2 / n)`.
    chirp: Vec<Complex<R>>,
    /// The transform of the conjugate chirp, divided by the inner length.
    kernel: Vec<Complex<R>>,
}

impl<R: Real> Plan<R> {
    pub(super) fn new(n: usize) -> Self {
        let (mut rest, mut factors) = (n.max(1), Vec::new());
        for factor in [4, 2, 3, 5, 7].into_iter().chain((11..=LARGEST_RADIX).step_by(2)) {
            while rest % factor == 0 {
                factors.push(factor);
                rest /= factor;
            }
        }
        if rest == 1 {
            return Self { n, roots: roots(n), factors, bluestein: None };
        }
        let inner = Plan::new((2 * n - 1).next_power_of_two());
        let double: Vec<Complex<R>> = roots(2 * n);
        let chirp: Vec<Complex<R>> =
            (0..n).map(|k| double[(k as u128 * k as u128 % (2 * n as u128)) as usize]).collect();
        let mut kernel = vec![Complex::default(); inner.n];
        for (k, w) in chirp.iter().enumerate() {
            kernel[k] = w.conj();
            if k > 0 {
                kernel[inner.n - k] = w.conj();
            }
        }
        let mut scratch = Vec::new();
        inner.forward(&mut kernel, &mut scratch);
        // A power of two: exact.
        let scale = R::from_f64(1.0 / inner.n as f64);
        kernel.iter_mut().for_each(|x| *x = x.scaled(scale));
        Self {
            n,
            roots: Vec::new(),
            factors: Vec::new(),
            bluestein: Some(Box::new(Bluestein { inner, chirp, kernel })),
        }
    }

    /// `X[k] = sum x[j] exp(-2 pi i j k / n)`, in place.
    pub(super) fn forward(&self, x: &mut Vec<Complex<R>>, scratch: &mut Vec<Complex<R>>) {
        debug_assert_eq!(x.len(), self.n);
        match &self.bluestein {
            Some(b) => b.forward(x),
            None => {
                scratch.clear();
                scratch.resize(self.n, Complex::default());
                self.stockham(x, scratch);
            }
        }
    }

    /// `x[j] = 1/n sum X[k] exp(2 pi i j k / n)`, in place.
    pub(super) fn inverse(&self, x: &mut Vec<Complex<R>>, scratch: &mut Vec<Complex<R>>) {
        x.iter_mut().for_each(|x| *x = x.conj());
        self.forward(x, scratch);
        let n = Dd::from(self.n as f64);
        if self.n.is_power_of_two() {
            let scale = R::from_f64(1.0 / self.n as f64);
            x.iter_mut().for_each(|x| *x = x.conj().scaled(scale));
        } else {
            let scale = R::from_dd(Dd::ONE / n);
            x.iter_mut().for_each(|x| *x = x.conj().scaled(scale));
        }
    }

    fn stockham(&self, x: &mut Vec<Complex<R>>, y: &mut Vec<Complex<R>>) {
        // `length` of the transforms still to do, `stride` of them interleaved.
        let (mut length, mut stride) = (self.n, 1);
        for &p in &self.factors {
            let m = length / p;
            let step = self.n / length;
            cancel::poll();
            for q in cancel::polled(0..m) {
                let inputs = |r: usize| stride * (q + m * r)..stride * (q + m * r) + stride;
                let out = &mut y[stride * p * q..stride * p * (q + 1)];
                let twiddle = |j: usize| self.roots[q * j * step];
                match p {
                    2 => {
                        let (a, b, w) = (&x[inputs(0)], &x[inputs(1)], twiddle(1));
                        let (out0, out1) = out.split_at_mut(stride);
                        for k in 0..stride {
                            out0[k] = a[k] + b[k];
                            out1[k] = (a[k] - b[k]) * w;
                        }
                    }
                    4 => {
                        let (a, b, c, d) = (&x[inputs(0)], &x[inputs(1)], &x[inputs(2)], &x[inputs(3)]);
                        let w = [twiddle(1), twiddle(2), twiddle(3)];
                        let (low, high) = out.split_at_mut(2 * stride);
                        let (out0, out1) = low.split_at_mut(stride);
                        let (out2, out3) = high.split_at_mut(stride);
                        for k in 0..stride {
                            let (even, odd) = (a[k] + c[k], b[k] + d[k]);
                            let (even2, odd2) = (a[k] - c[k], (b[k] - d[k]).times_minus_i());
                            out0[k] = even + odd;
                            out1[k] = (even2 + odd2) * w[0];
                            out2[k] = (even - odd) * w[1];
                            out3[k] = (even2 - odd2) * w[2];
                        }
                    }
                    _ => {
                        for j in 0..p {
                            let w = twiddle(j);
                            for k in 0..stride {
                                let mut sum = x[stride * q + k];
                                for r in 1..p {
                                    sum = sum
                                        + x[stride * (q + m * r) + k] * self.roots[r * j % p * (self.n / p)];
                                }
                                out[stride * j + k] = if j == 0 { sum } else { sum * w };
                            }
                        }
                    }
                }
            }
            std::mem::swap(x, y);
            length = m;
            stride *= p;
        }
    }
}

impl<R: Real> Bluestein<R> {
    fn forward(&self, x: &mut [Complex<R>]) {
        let mut scratch = Vec::new();
        let mut work = vec![Complex::default(); self.inner.n];
        for (work, (&x, &w)) in work.iter_mut().zip(x.iter().zip(&self.chirp)) {
            *work = x * w;
        }
        self.inner.forward(&mut work, &mut scratch);
        // The inverse transform is the conjugate of the transform of the conjugate.
        for (work, &kernel) in work.iter_mut().zip(&self.kernel) {
            *work = (*work * kernel).conj();
        }
        self.inner.forward(&mut work, &mut scratch);
        for (x, (&work, &w)) in x.iter_mut().zip(work.iter().zip(&self.chirp)) {
            *x = work.conj() * w;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, term by term, in double-double; the angles by the same series but from another
    /// reduction.
    fn definition(x: &[Complex<Dd>]) -> Vec<Complex<Dd>> {
        let n = x.len();
        (0..n)
            .map(|k| {
                x.iter().enumerate().fold(Complex::default(), |sum, (j, &x)| {
                    let a = std::f64::consts::TAU * ((j * k % n) as f64) / n as f64;
                    sum + x * Complex { re: Dd::from(a.cos()), im: Dd::from(-a.sin()) }
                })
            })
            .collect()
    }

    #[test]
    fn all_small_lengths_agree_with_the_definition() {
        for n in (1..=70).chain([74, 127, 128, 243, 256, 509, 1000, 1021]) {
            let x: Vec<Complex<Dd>> = (0..n)
                .map(|i| Complex {
                    re: Dd::from(((i * 37 + 11) % 64) as f64 - 31.0),
                    im: Dd::from(((i * 29) % 53) as f64),
                })
                .collect();
            let expected = definition(&x);
            let mut wide = x.clone();
            Plan::<Dd>::new(n).forward(&mut wide, &mut Vec::new());
            let mut narrow: Vec<Complex<f64>> =
                x.iter().map(|x| Complex { re: x.re.hi, im: x.im.hi }).collect();
            let plan = Plan::<f64>::new(n);
            plan.forward(&mut narrow, &mut Vec::new());
            let scale = 64.0 * n as f64;
            for k in 0..n {
                let close =
                    |a: f64, b: f64| assert!((a - b).abs() < 1e-14 * scale, "length {n}, {k}: {a} {b}");
                close(wide[k].re.hi, expected[k].re.hi);
                close(wide[k].im.hi, expected[k].im.hi);
                close(narrow[k].re, expected[k].re.hi);
                close(narrow[k].im, expected[k].im.hi);
            }
            plan.inverse(&mut narrow, &mut Vec::new());
            for k in 0..n {
                assert!((narrow[k].re - x[k].re.hi).abs() < 1e-13 * 64.0, "length {n}");
                assert!((narrow[k].im - x[k].im.hi).abs() < 1e-13 * 64.0, "length {n}");
            }
        }
    }

    /// In double-double a transform and its inverse give integers back to far below `f64`.
    #[test]
    fn wide_transforms_are_wide() {
        for n in [8, 12, 31, 37, 64, 97, 100] {
            let x: Vec<Complex<Dd>> = (0..n)
                .map(|i| Complex { re: Dd::from((i * i % 17) as f64), im: Dd::from((i % 5) as f64) })
                .collect();
            let plan = Plan::<Dd>::new(n);
            let (mut y, mut scratch) = (x.clone(), Vec::new());
            plan.forward(&mut y, &mut scratch);
            plan.inverse(&mut y, &mut scratch);
            for (x, y) in x.iter().zip(&y) {
                assert!((x.re - y.re).hi.abs() < 1e-28 && (x.im - y.im).hi.abs() < 1e-28, "length {n}");
            }
        }
    }
}
