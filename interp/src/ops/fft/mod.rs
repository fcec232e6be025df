//! `fft`: all four kinds, any length, any rank.
//!
//! A transform runs along the innermost dimensions that `fft_length` names. Parts of type f32 are computed in
//! `f64`, parts of type f64 in double-double arithmetic (106 bits), all dimensions of a transform together;
//! each part is rounded once at the end. The error before that rounding is at most a few units of the last
//! place of the wider arithmetic, times the logarithm of the number of points, times the norm of the input:
//! no claim is made of correct rounding for a part that is far smaller than the norm. A transform with an
//! element that is not finite is NaN throughout; imaginary parts that an inverse real transform of one
//! dimension ignores are no part of it, finite or not.

mod plan;

use hlo::attrs::FftType;
use hlo::num_complex::Complex as Number;
use hlo::{AttrKey, ElementType};
use hlo_arithmetic::scalar::dd::Dd;
use hlo_matrices::wide::{Complex, Field, Real};
use hlo_threads::parallel;

use self::plan::Plan;
use super::common::{arrays, dims, list};
use super::strided::{pack, strides};
use super::{Args, Cx};
use crate::error::Result;
use crate::value::{Sizes, Tensor, Value};

/// `fft(operand)`.
pub(super) fn fft(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let [x] = arrays(args);
    let lengths = list(cx, AttrKey::FftLength);
    let Some(&kind) = cx.attrs().fft_type() else { return Err(cx.unsupported("without fft_type")) };
    let mut sizes = x.sizes();
    let Some(outer) = sizes.len().checked_sub(lengths.len()) else {
        return Err(cx.unsupported("of more dimensions than the operand has"));
    };
    // What the transforms expect of the operand, and what they make of it.
    let (mut input, mut output) = (lengths.clone(), lengths.clone());
    match (kind, input.last_mut(), output.last_mut()) {
        (FftType::Rfft, _, Some(last)) | (FftType::Irfft, Some(last), _) => {
            *last = if *last == 0 { 0 } else { *last / 2 + 1 }
        }
        (FftType::Fft | FftType::Ifft | FftType::Rfft | FftType::Irfft, _, _) => {}
    }
    // An inverse real transform of length 0 may come from one element or from none; its result is empty
    // either way.
    if let (FftType::Irfft, Some(0), Some(last)) = (kind, lengths.last(), input.last_mut()) {
        *last = sizes.last().copied().unwrap_or(0).min(1);
    }
    if sizes[outer..] != input[..] {
        return Err(cx.unsupported(&format!("of lengths {lengths:?} on dimensions {:?}", &sizes[outer..])));
    }
    sizes.truncate(outer);
    sizes.extend_from_slice(&output);
    // Each volume is worked on in wider numbers, and twice at that.
    let bytes = (x.len() as u64).max(sizes.iter().product::<usize>() as u64).checked_mul(96);
    cx.session.check_memory(cx.instr, bytes)?;
    let sizes = dims(&sizes);
    let result = match (kind, x.element_type()) {
        (FftType::Fft, ElementType::C64) => {
            Tensor::from_vec(sizes, complex::<f32>(x.slice(), &lengths, false))
        }
        (FftType::Fft, ElementType::C128) => {
            Tensor::from_vec(sizes, complex::<f64>(x.slice(), &lengths, false))
        }
        (FftType::Ifft, ElementType::C64) => {
            Tensor::from_vec(sizes, complex::<f32>(x.slice(), &lengths, true))
        }
        (FftType::Ifft, ElementType::C128) => {
            Tensor::from_vec(sizes, complex::<f64>(x.slice(), &lengths, true))
        }
        (FftType::Rfft, ElementType::F32) => {
            Tensor::from_vec(sizes, real_to_complex::<f32>(x.slice(), &lengths))
        }
        (FftType::Rfft, ElementType::F64) => {
            Tensor::from_vec(sizes, real_to_complex::<f64>(x.slice(), &lengths))
        }
        (FftType::Irfft, ElementType::C64) => {
            Tensor::from_vec(sizes, complex_to_real::<f32>(x.slice(), &lengths))
        }
        (FftType::Irfft, ElementType::C128) => {
            Tensor::from_vec(sizes, complex_to_real::<f64>(x.slice(), &lengths))
        }
        (kind, ty) => return Err(cx.unsupported(&format!("of kind {} and type {ty}", kind.text()))),
    };
    Ok(result.into())
}

/// An element type of the parts, and the arithmetic that its transforms use.
trait Part: Copy + Default + Send + Sync + num_traits::Float + Into<f64> {
    /// Wider.
    type Wide: Real;

    /// One rounding.
    fn rounded(x: f64) -> Self;
}

impl Part for f32 {
    type Wide = f64;

    fn rounded(x: f64) -> Self {
        x as f32
    }
}

impl Part for f64 {
    type Wide = Dd;

    fn rounded(x: f64) -> Self {
        x
    }
}

/// A complex transform of every volume of `lengths` in `x`, forward or inverse.
fn complex<P: Part>(x: &[Number<P>], lengths: &[usize], inverse: bool) -> Vec<Number<P>> {
    let plans = Plans::<P>::new(lengths);
    let n: usize = lengths.iter().product();
    let mut out = vec![Number::default(); x.len()];
    plans.volumes(x, n, &mut out, n, |x, out| {
        let scale = plans.load(x.iter().copied());
        let Some((volume, scale)) = scale else { return out.fill(Number::new(P::nan(), P::nan())) };
        let volume = plans.sweep(volume, lengths, inverse, lengths.len());
        for (out, x) in out.iter_mut().zip(volume) {
            *out = plans.round(x, scale);
        }
    });
    out
}

/// A forward transform of real volumes; of the innermost dimension the first `n / 2 + 1` frequencies are
/// kept.
fn real_to_complex<P: Part>(x: &[P], lengths: &[usize]) -> Vec<Number<P>> {
    let plans = Plans::<P>::new(lengths);
    let (Some(&last), n) = (lengths.last(), lengths.iter().product::<usize>()) else {
        return x.iter().map(|&x| Number::new(x, P::zero())).collect();
    };
    let kept = last / 2 + 1;
    let volume_out = n.checked_div(last).unwrap_or(0) * kept;
    let mut out = vec![Number::default(); x.len().checked_div(n).unwrap_or(0) * volume_out];
    plans.volumes(x, n, &mut out, volume_out, |x, out| {
        let Some((volume, scale)) = plans.load(x.iter().map(|&x| Number::new(x, P::zero()))) else {
            return out.fill(Number::new(P::nan(), P::nan()));
        };
        let volume = plans.sweep(volume, lengths, false, lengths.len());
        for (out, x) in out.chunks_exact_mut(kept).zip(volume.chunks_exact(last)) {
            for (out, &x) in out.iter_mut().zip(x) {
                *out = plans.round(x, scale);
            }
        }
    });
    out
}

/// The inverse of [`real_to_complex`]: the missing frequencies are the conjugates, the result is the real
/// part.
fn complex_to_real<P: Part>(x: &[Number<P>], lengths: &[usize]) -> Vec<P> {
    let plans = Plans::<P>::new(lengths);
    let (Some(&last), n) = (lengths.last(), lengths.iter().product::<usize>()) else {
        return x.iter().map(|x| x.re).collect();
    };
    let kept = last / 2 + 1;
    let volume_in = n.checked_div(last).unwrap_or(0) * kept;
    let mut out = vec![P::zero(); x.len().checked_div(volume_in).unwrap_or(0) * n];
    // Along one dimension nothing mixes the parts of frequencies 0 and n/2 before their real parts are taken.
    let one_dimension = n == last;
    plans.volumes(x, volume_in, &mut out, n, |x, out| {
        let used = x.iter().enumerate().map(|(k, &x)| {
            let real = one_dimension && (k == 0 || 2 * k == last);
            if real { Number::new(x.re, P::zero()) } else { x }
        });
        let Some((volume, scale)) = plans.load(used) else { return out.fill(P::nan()) };
        let mut dims = Sizes::from_slice(lengths);
        dims[lengths.len() - 1] = kept;
        // The outer dimensions first: along them the kept frequencies are whole.
        let volume = plans.sweep(volume, &dims, true, lengths.len() - 1);
        let plan = &plans.plans[lengths.len() - 1];
        let lines = out.chunks_exact_mut(last).zip(volume.chunks_exact(kept));
        let (mut line, mut scratch) = (Vec::new(), Vec::new());
        for (out, x) in lines {
            line.clear();
            line.extend_from_slice(x);
            line.extend((kept..last).map(|k| x[last - k].conj()));
            plan.inverse(&mut line, &mut scratch);
            for (out, &x) in out.iter_mut().zip(&line) {
                *out = plans.round(x, scale).re;
            }
        }
    });
    out
}

/// The plans of a transform's dimensions.
struct Plans<P: Part> {
    plans: Vec<Plan<P::Wide>>,
}

impl<P: Part> Plans<P> {
    fn new(lengths: &[usize]) -> Self {
        Self { plans: lengths.iter().map(|&n| Plan::new(n)).collect() }
    }

    /// Calls `each` for the volumes of input and output, in parallel if there are several.
    fn volumes<A: Sync, B: Send>(
        &self,
        x: &[A],
        n: usize,
        out: &mut [B],
        m: usize,
        each: impl Fn(&[A], &mut [B]) + Sync,
    ) {
        if n != 0 && m != 0 {
            parallel::pieces(out, m, 1, &|i, out| each(&x[i * n..][..n], out));
        }
    }

    /// The elements divided by a power of two, such that nothing overflows or gets lost; `None` if one is not
    /// finite.
    #[allow(clippy::type_complexity, reason = "a pair, taken apart at once")]
    fn load(&self, x: impl Iterator<Item = Number<P>> + Clone) -> Option<(Vec<Complex<P::Wide>>, f64)> {
        let mut largest = 0.0f64;
        for x in x.clone() {
            if !x.re.is_finite() || !x.im.is_finite() {
                return None;
            }
            largest = largest.max(x.re.into().abs()).max(x.im.into().abs());
        }
        let extreme = largest != 0.0 && !(1e-150..1e150).contains(&largest);
        // Within 2^-1000 to 2^1000, so that its inverse is a number too.
        let scale =
            if extreme { f64::from_bits((largest.to_bits() >> 52).clamp(23, 2023) << 52) } else { 1.0 };
        let part = |x: P| P::Wide::from_f64(x.into() / scale);
        Some((x.map(|x| Complex { re: part(x.re), im: part(x.im) }).collect(), scale))
    }

    fn round(&self, x: Complex<P::Wide>, scale: f64) -> Number<P> {
        Number::new(P::rounded(x.re.to_f64() * scale), P::rounded(x.im.to_f64() * scale))
    }

    /// Transforms along the first `count` dimensions of a volume of dimensions `dims`, the innermost first.
    fn sweep(
        &self,
        mut volume: Vec<Complex<P::Wide>>,
        dims: &[usize],
        inverse: bool,
        count: usize,
    ) -> Vec<Complex<P::Wide>> {
        // The current dimension is last; afterwards it goes to the front, so that after all of them the order
        // is as before.
        let mut dims = Sizes::from_slice(dims);
        for axis in (0..dims.len()).rev() {
            let length = dims[dims.len() - 1];
            if axis < count {
                let plan = &self.plans[axis];
                let transform = |scratch: &mut (Vec<_>, Vec<_>), x: &mut [Complex<P::Wide>]| {
                    let (line, scratch) = scratch;
                    line.clear();
                    line.extend_from_slice(x);
                    if inverse {
                        plan.inverse(line, scratch);
                    } else {
                        plan.forward(line, scratch);
                    }
                    x.copy_from_slice(line);
                };
                if volume.len() == length {
                    transform(&mut Default::default(), &mut volume);
                } else {
                    let lines = volume.len() / length;
                    let group = lines.div_ceil(8 * rayon::current_num_threads()) * length;
                    parallel::pieces(&mut volume, group, 1, &|_, lines| {
                        let mut scratch = Default::default();
                        lines.chunks_mut(length).for_each(|line| transform(&mut scratch, line));
                    });
                }
            }
            if dims.len() > 1 {
                let mut strides = strides(&dims);
                dims.rotate_right(1);
                strides.rotate_right(1);
                volume = pack(&volume, &dims, &strides);
            }
        }
        volume
    }
}
