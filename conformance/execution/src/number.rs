//! Tensors as `f64` numbers.
//!
//! **Invariant:** every float of every type is an `f64`, so reading is exact; integers beyond 2^53 round,
//! which callers that depend on them must ask for.

use crate::element::{Number, Part};
use crate::format::Format;
use hlo::num_complex::Complex;
use hlo::{BufferOf, ElementType, with_buffer, with_element_type};
use hlo_interp::Tensor;
use rayon::prelude::*;

/// Elements of a task of a parallel pass.
const PARALLEL: usize = 1 << 14;

/// The elements of a tensor.
#[derive(Clone, Debug)]
pub struct Numbers {
    /// Their type.
    pub ty: ElementType,
    /// Real numbers, or real parts.
    pub re: Vec<f64>,
    /// The imaginary parts, of a complex type.
    pub im: Option<Vec<f64>>,
}

impl Numbers {
    /// Those of a tensor.
    pub fn of(tensor: &Tensor) -> Numbers {
        let ty = tensor.element_type();
        let (mut re, mut im) = (Vec::with_capacity(tensor.len()), None);
        if ty.is_complex() {
            im = Some(Vec::with_capacity(tensor.len()));
        }
        if im.is_none() && tensor.len() >= PARALLEL {
            re.resize(tensor.len(), 0.0);
            with_buffer!(tensor.buffer(), v => {
                let parts = re.par_chunks_mut(PARALLEL).zip(v.par_chunks(PARALLEL));
                parts.for_each(|(re, v)| {
                    re.iter_mut().zip(v).for_each(|(to, &x)| *to = Number::parts(x).0.value());
                });
            });
            return Numbers { ty, re, im };
        }
        with_buffer!(tensor.buffer(), v => for &x in v {
            let (a, b) = Number::parts(x);
            re.push(a.value());
            if let (Some(im), Some(b)) = (&mut im, b) {
                im.push(b.value());
            }
        });
        Numbers { ty, re, im }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.re.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.re.is_empty()
    }

    /// Both parts of an element.
    pub fn at(&self, i: usize) -> (f64, f64) {
        (self.re[i], self.im.as_ref().map_or(0.0, |im| im[i]))
    }

    /// An element.
    pub fn complex(&self, i: usize) -> Complex<f64> {
        let (re, im) = self.at(i);
        Complex::new(re, im)
    }

    /// Whether no part of an element is an infinity or NaN.
    pub fn is_finite(&self, i: usize) -> bool {
        let (re, im) = self.at(i);
        re.is_finite() && im.is_finite()
    }

    /// At least the modulus of an element; NaN if it is not a number.
    pub fn modulus(&self, i: usize) -> f64 {
        let (re, im) = self.at(i);
        if self.im.is_none() { re.abs() } else { modulus(re, im) }
    }
}

/// At least `sqrt(re^2 + im^2)`, and hardly more.
pub fn modulus(re: f64, im: f64) -> f64 {
    let (a, b) = (re.abs(), im.abs());
    let (large, small) = if a >= b { (a, b) } else { (b, a) };
    if small == 0.0 || !large.is_finite() || small.is_nan() {
        return large + small;
    }
    let q = small / large;
    (large * (1.0 + q * q).sqrt() * (1.0 + 4.0 * f64::EPSILON)).next_up()
}

/// A tensor of real numbers, each rounded into the type (integers: towards zero, saturating).
pub fn tensor(ty: ElementType, dims: &[i64], numbers: &[f64]) -> Tensor {
    let buffer = with_element_type!(ty, T => {
        <T as BufferOf>::wrap(numbers.iter().map(|&x| <T as Number>::from_parts(x, 0.0)).collect())
    });
    Tensor::new(dims, buffer)
}

/// Whether a part of an element may be flushed.
pub fn is_denormal(part: f64, format: Format) -> bool {
    part != 0.0 && part.abs() < format.flushes_below()
}

/// An array with zeros of the same signs for its denormal numbers; `None`: it has none.
pub fn flushed(t: &Tensor) -> Option<Tensor> {
    let format = Format::of(t.element_type())?;
    let denormal = |part: &Part| is_denormal(part.value(), format);
    let zero = |part: f64| if is_denormal(part, format) { 0f64.copysign(part) } else { part };
    let buffer = with_buffer!(t.buffer(), v => {
        let parts = |x| {
            let (re, im) = Number::parts(x);
            denormal(&re) || im.as_ref().is_some_and(denormal)
        };
        if !v.iter().any(|&x| parts(x)) {
            return None;
        }
        let each = v.iter().map(|&x| {
            let (re, im) = Number::parts(x);
            if parts(x) { Number::from_parts(zero(re.value()), im.map_or(0.0, |im| zero(im.value()))) } else { x }
        });
        BufferOf::wrap(each.collect())
    });
    Some(Tensor::new(t.dims(), buffer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modulus_is_bounded_from_above() {
        assert!((5.0..5.0 + 1e-13).contains(&modulus(3.0, -4.0)));
        assert!(modulus(1e308, 1e308) > 1.4e308 && modulus(0.0, 2.0) == 2.0);
        assert!(modulus(f64::NAN, 1.0).is_nan() && modulus(1.0, f64::INFINITY) == f64::INFINITY);
    }
}
