//! The arithmetic that the routines need of an element type.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

use faer::MatMut;
use faer::traits::ComplexField;
use faer::traits::RealField;
use num_complex::Complex;
use num_traits::Float;

/// The parts of an element.
pub trait Part: RealField + Float + Send + Sync {
    /// As an f64.
    fn wide(self) -> f64;
    /// Rounded.
    fn narrow(x: f64) -> Self;
}

/// The arithmetic of an element type.
pub trait Field:
    ComplexField<Real = Self::Part>
    + Copy
    + Default
    + PartialEq
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
{
    /// The type of its parts.
    type Part: Part;
    /// The number 1.
    fn one() -> Self;
    /// Of parts; a real type has the first alone.
    fn of(re: Self::Part, im: Self::Part) -> Self;
    /// The real part.
    fn re(self) -> Self::Part;
    /// The imaginary part.
    fn im(self) -> Self::Part;
    /// The conjugate.
    fn conjugate(self) -> Self;
    /// The sum of the magnitudes of the parts, by which LAPACK compares pivots.
    fn size(self) -> Self::Part;

    /// The quotient, also where squares of parts would leave the range.
    fn over(self, divisor: Self) -> Self;
    /// The quotient by a real number.
    fn over_real(self, divisor: Self::Part) -> Self;

    /// A number without an imaginary part.
    fn real(re: Self::Part) -> Self {
        Self::of(re, num_traits::zero())
    }

    /// Whether its parts are.
    fn finite(self) -> bool {
        self.re().is_finite() && self.im().is_finite()
    }
}

macro_rules! fields {
    ($($t:ident),*) => {$(
        impl Part for $t {
            fn wide(self) -> f64 {
                f64::from(self)
            }

            fn narrow(x: f64) -> Self {
                x as $t
            }
        }

        impl Field for $t {
            type Part = $t;

            fn one() -> Self {
                1.0
            }

            fn of(re: $t, _: $t) -> Self {
                re
            }

            fn re(self) -> $t {
                self
            }

            fn im(self) -> $t {
                0.0
            }

            fn conjugate(self) -> Self {
                self
            }

            fn size(self) -> $t {
                self.abs()
            }

            fn over(self, divisor: $t) -> $t {
                self / divisor
            }

            fn over_real(self, divisor: $t) -> $t {
                self / divisor
            }
        }

        impl Field for Complex<$t> {
            type Part = $t;

            fn one() -> Self {
                Complex::new(1.0, 0.0)
            }

            fn of(re: $t, im: $t) -> Self {
                Complex::new(re, im)
            }

            fn re(self) -> $t {
                self.re
            }

            fn im(self) -> $t {
                self.im
            }

            fn conjugate(self) -> Self {
                self.conj()
            }

            fn size(self) -> $t {
                self.re.abs() + self.im.abs()
            }

            fn over(self, divisor: Self) -> Self {
                // The smaller part of the divisor relative to the larger.
                let Complex { re: c, im: d } = divisor;
                if c.abs() >= d.abs() {
                    let r = d / c;
                    let q = c + d * r;
                    Complex::new((self.re + self.im * r) / q, (self.im - self.re * r) / q)
                } else {
                    let r = c / d;
                    let q = c * r + d;
                    Complex::new((self.re * r + self.im) / q, (self.im * r - self.re) / q)
                }
            }

            fn over_real(self, divisor: $t) -> Self {
                Complex::new(self.re / divisor, self.im / divisor)
            }
        }
    )*};
}
fields!(f32, f64);

/// A row-major matrix.
pub(crate) fn matrix<T>(a: &mut [T], rows: usize, columns: usize) -> MatMut<'_, T> {
    MatMut::from_row_major_slice_mut(&mut a[..rows * columns], rows, columns)
}

/// `y -= f x`.
pub(crate) fn subtract<T: Field>(y: &mut [T], f: T, x: &[T]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y -= f * x;
    }
}

/// The sum of `conj(x) y`, in eight strands.
pub(crate) fn dot<T: Field>(x: &[T], y: &[T]) -> T {
    let (x, y) = (&x[..x.len().min(y.len())], &y[..x.len().min(y.len())]);
    let ((xs, x_rest), (ys, y_rest)) = (x.as_chunks::<8>(), y.as_chunks::<8>());
    let mut sums = [T::default(); 8];
    for (x, y) in xs.iter().zip(ys) {
        for ((sum, &x), &y) in sums.iter_mut().zip(x).zip(y) {
            *sum += x.conjugate() * y;
        }
    }
    let [a, b, c, d, e, f, g, h] = sums;
    let rest = x_rest.iter().zip(y_rest).fold(T::default(), |sum, (&x, &y)| sum + x.conjugate() * y);
    ((a + e) + (b + f)) + ((c + g) + (d + h)) + rest
}

/// The Euclidean norm: the sum of squares in f64, scaled if it leaves the range.
pub(crate) fn norm<T: Field>(x: &[T]) -> f64 {
    let squares = |scale: f64| {
        let mut sums = [0.0f64; 8];
        for x in x.chunks(8) {
            for (sum, &x) in sums.iter_mut().zip(x) {
                let (re, im) = (x.re().wide() * scale, x.im().wide() * scale);
                *sum += re * re + im * im;
            }
        }
        sums.iter().sum::<f64>()
    };
    let sum = squares(1.0);
    if (1e-280..1e280).contains(&sum) || sum.is_nan() {
        return sum.sqrt();
    }
    let largest = x.iter().fold(0.0f64, |m, &x| m.max(x.re().wide().abs()).max(x.im().wide().abs()));
    if largest == 0.0 || largest.is_infinite() {
        return largest;
    }
    // A power of two near the largest part: products with it are exact but for what is negligible.
    let scale = 2f64.powi(-(largest.log2() as i32).clamp(-1000, 1000));
    squares(scale).sqrt() / scale
}

/// A transposed copy: `to` (columns by rows) of `from` (rows by columns, its rows `stride` apart).
pub(crate) fn transpose<T: Field>(from: &[T], stride: usize, rows: usize, columns: usize, to: &mut [T]) {
    const TILE: usize = 16;
    for i0 in (0..rows).step_by(TILE) {
        let i1 = (i0 + TILE).min(rows);
        for j0 in (0..columns).step_by(TILE) {
            for j in j0..(j0 + TILE).min(columns) {
                let row = &mut to[j * rows + i0..j * rows + i1];
                for (out, i) in row.iter_mut().zip(i0..i1) {
                    *out = from[i * stride + j];
                }
            }
        }
    }
}
