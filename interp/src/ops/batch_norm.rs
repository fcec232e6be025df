//! `batch-norm-training`, `batch-norm-inference`, `batch-norm-grad`: computed as mathematics has them, in
//! arithmetic wider than the element types ([`hlo_matrices::wide`]), each element of the results rounded
//! once.
//!
//! Mean and variance are those of what is left of the elements of a feature less its first one, K: the sums
//! of (x - K) and of (x - K)^2 need one look at the array, and as K is one of n elements, (mean - K)^2 is at
//! most n times the variance, so that subtracting it costs no more than log2(n) bits. (XLA's expansion takes
//! the mean of squares minus the square of the mean in the element type, and rounds each.)
//!
//! Double-double arithmetic has the range of f64: features whose squares could leave it are scaled down by a
//! power of two first ([`scales`]).

use hlo::{AttrKey, ElementType};
use hlo_arithmetic::scalar::dd::Dd;
use hlo_arithmetic::sum::{self, Accumulate};
use hlo_matrices::wide::Real;
use hlo_threads::parallel;

use super::common::{dims, number};
use super::elementwise::{chunks_mut, convert};
use super::{Args, Cx};
use crate::error::Result;
use crate::value::{Tensor, Value};

/// `batch-norm-training(operand, scale, offset)`: (normalized operand, mean, variance).
pub(super) fn training(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let input = Input::new(cx, args)?;
    let [x, scale, offset] = input.take()?;
    input.reserve_terms(x.len())?;
    let outputs = if input.wide {
        train::<Dd>(&input, x, scale, offset)
    } else {
        train::<f64>(&input, x, scale, offset)
    };
    input.results(outputs)
}

/// `batch-norm-inference(operand, scale, offset, mean, variance)`.
pub(super) fn inference(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let input = Input::new(cx, args)?;
    let [x, scale, offset, mean, variance] = input.take()?;
    let out = if input.wide {
        normalize::<Dd>(&input, x, &input.unscaled(), scale, offset, &widened(mean), &widened(variance))
    } else {
        normalize::<f64>(&input, x, &input.unscaled(), scale, offset, &widened(mean), &widened(variance))
    };
    input.results(vec![out])
}

/// `batch-norm-grad(operand, scale, mean, variance, gradient of the output)`: gradients of operand, scale and
/// offset.
pub(super) fn grad(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let input = Input::new(cx, args)?;
    let [x, scale, mean, variance, gradient] = input.take()?;
    input.reserve_terms(x.len())?;
    let outputs = if input.wide {
        gradients::<Dd>(&input, x, scale, mean, variance, gradient)
    } else {
        gradients::<f64>(&input, x, scale, mean, variance, gradient)
    };
    input.results(outputs)
}

/// The operands as f64, and the layout of the features in the first.
struct Input<'a> {
    cx: &'a Cx<'a>,
    operands: Vec<Tensor>,
    /// Whether f64 is not wide enough.
    wide: bool,
    features: usize,
    /// Elements of a feature that are next to each other.
    inner: usize,
    epsilon: f64,
}

impl<'a> Input<'a> {
    fn new(cx: &'a Cx<'a>, args: Args) -> Result<Self> {
        let operands: Vec<Tensor> = args.into_iter().map(Value::into_array).collect();
        let feature = number(cx, AttrKey::FeatureIndex)?;
        let sizes = operands.first().map(Tensor::sizes).unwrap_or_default();
        let Some(&features) = sizes.get(feature) else {
            return Err(cx.unsupported("without such a dimension"));
        };
        let epsilon = cx.attrs().float(AttrKey::Epsilon).ok_or_else(|| cx.unsupported("without epsilon"))?;
        let wide = operands.iter().any(|x| x.element_type() == ElementType::F64);
        if let Some(x) = operands.iter().find(|x| !x.element_type().is_float()) {
            return Err(cx.unsupported(&format!("of type {}", x.element_type())));
        }
        let operands =
            operands.into_iter().map(|x| convert(cx, x, ElementType::F64)).collect::<Result<_>>()?;
        let inner = sizes[feature + 1..].iter().product();
        // XLA keeps epsilon as an f32.
        Ok(Self { cx, operands, wide, features, inner, epsilon: f64::from(epsilon as f32) })
    }

    fn take<const N: usize>(&self) -> Result<[&[f64]; N]> {
        let operands: Vec<&[f64]> = self.operands.iter().map(Tensor::slice).collect();
        operands.try_into().map_err(|_| self.cx.unsupported("with such operands"))
    }

    /// The scales of features whose elements are taken as they are.
    fn unscaled(&self) -> Vec<f64> {
        vec![1.0; self.features]
    }

    /// The feature of an element.
    fn feature(&self, i: usize) -> usize {
        i / self.inner % self.features
    }

    /// Asks for the memory in which [`Input::sums`] has terms.
    fn reserve_terms(&self, n: usize) -> Result<()> {
        self.cx.reserve::<f64>(if self.wide { n.saturating_mul(2) } else { n })
    }

    /// For each feature the sum of what `term` makes of it and of the index of each of its elements.
    fn sums<R: Summed>(&self, n: usize, term: &(dyn Fn(usize, usize) -> R + Sync)) -> Vec<R> {
        let plane = self.features * self.inner;
        parallel::collect(self.features, &|feature| {
            let first = feature * self.inner;
            let runs = (0..n.checked_div(plane).unwrap_or(0)).map(|outer| outer * plane + first);
            let terms = runs.flat_map(|run| run..run + self.inner).map(|i| term(feature, i));
            let mut sized = Vec::with_capacity(n.checked_div(self.features).unwrap_or(0));
            sized.extend(terms);
            R::sum(sized, self.cx.accumulate())
        })
    }

    /// The results in the types and dimensions that the instruction says.
    fn results(&self, outputs: Vec<Vec<f64>>) -> Result<Value> {
        let shapes = self.cx.instr.shape.leaves();
        let mut values = Vec::with_capacity(outputs.len());
        for (i, (out, shape)) in outputs.into_iter().zip(shapes).enumerate() {
            let sizes = if i == 0 { self.operands[0].sizes() } else { [self.features].as_slice().into() };
            let out = Tensor::from_vec(dims(&sizes), out);
            values.push(convert(self.cx, out, shape.expect_array().element_type)?.into());
        }
        Ok(super::common::results(self.cx, values))
    }
}

/// Arithmetic in which features are summed.
trait Summed: Real + Send {
    fn sum(terms: Vec<Self>, accumulate: Accumulate) -> Self;
}

/// As a `reduce` sums.
impl Summed for f64 {
    fn sum(terms: Vec<f64>, accumulate: Accumulate) -> f64 {
        match accumulate {
            Accumulate::Exact => sum::fast::sum(0.0, &terms),
            Accumulate::Region => terms.into_iter().fold(0.0, |sum, x| sum + x),
        }
    }
}

/// In order.
impl Summed for Dd {
    fn sum(terms: Vec<Dd>, _accumulate: Accumulate) -> Dd {
        terms.into_iter().fold(Dd::default(), |sum, x| sum + x)
    }
}

fn widened<R: Real>(x: &[f64]) -> Vec<R> {
    x.iter().map(|&x| R::from_f64(x)).collect()
}

fn narrowed<R: Real>(x: Vec<R>) -> Vec<f64> {
    x.into_iter().map(Real::to_f64).collect()
}

/// `f` of `0..n`, on several threads.
fn each(n: usize, f: &(dyn Fn(usize) -> f64 + Sync)) -> Vec<f64> {
    let mut out = vec![0.0; n];
    chunks_mut(&mut out, &|start, out| out.iter_mut().enumerate().for_each(|(i, o)| *o = f(start + i)));
    out
}

/// The number of elements of a feature.
fn count<R: Real>(input: &Input<'_>, n: usize) -> R {
    R::from_f64(n.checked_div(input.features).unwrap_or(0) as f64)
}

fn train<R: Summed>(input: &Input<'_>, x: &[f64], scale: &[f64], offset: &[f64]) -> Vec<Vec<f64>> {
    let n: R = count(input, x.len());
    let scales = scales(input, x);
    // K is 0 where there is no element, or the first is not finite.
    let finite = |feature: usize| x.get(feature * input.inner).copied().filter(|k| k.is_finite());
    let first: Vec<R> =
        (0..input.features).map(|f| R::from_f64(finite(f).unwrap_or(0.0) * scales[f])).collect();
    let left = |feature: usize, i: usize| R::from_f64(x[i] * scales[feature]) - first[feature];
    let sums = input.sums(x.len(), &left);
    let squares = input.sums(x.len(), &|feature, i| left(feature, i).norm());
    let from_first: Vec<R> = sums.iter().map(|&sum| sum / n).collect();
    let mean: Vec<R> = first.iter().zip(&from_first).map(|(&k, &x)| k + x).collect();
    let variance = squares.iter().zip(&from_first).map(|(&sum, &x)| sum / n - x * x);
    let variance: Vec<R> = variance.map(|v| if v < R::default() { R::default() } else { v }).collect();
    let normalized = normalize(input, x, &scales, scale, offset, &mean, &variance);
    let mean = narrowed(mean).into_iter().zip(&scales).map(|(mean, s)| mean / s);
    let variance = narrowed(variance).into_iter().zip(&scales).map(|(variance, s)| variance / s / s);
    vec![normalized, mean.collect(), variance.collect()]
}

/// For each feature the power of two that its elements are multiplied by: 2^-600 if an element is 2^450 or
/// more, since sums of squares could leave the range of f64, otherwise 1.
fn scales(input: &Input<'_>, x: &[f64]) -> Vec<f64> {
    const LARGE: f64 = f64::from_bits((1023 + 450) << 52);
    const DOWN: f64 = f64::from_bits((1023 - 600) << 52);
    let mut scales = input.unscaled();
    if input.wide {
        for (i, x) in x.iter().enumerate() {
            if x.abs() >= LARGE {
                scales[input.feature(i)] = DOWN;
            }
        }
    }
    scales
}

/// Normalizes elements. Mean and variance are those of elements times `scales`, a power of two for each
/// feature.
fn normalize<R: Real>(
    input: &Input<'_>,
    x: &[f64],
    scales: &[f64],
    scale: &[f64],
    offset: &[f64],
    mean: &[R],
    variance: &[R],
) -> Vec<f64> {
    let factor: Vec<R> = deviations(input, scales, variance)
        .into_iter()
        .zip(scale)
        .map(|(d, &s)| R::from_f64(s) / d)
        .collect();
    each(x.len(), &|i| {
        let f = input.feature(i);
        ((R::from_f64(x[i] * scales[f]) - mean[f]) * factor[f] + R::from_f64(offset[f])).to_f64()
    })
}

/// `sqrt(variance + epsilon)`, of elements that are scaled.
fn deviations<R: Real>(input: &Input<'_>, scales: &[f64], variance: &[R]) -> Vec<R> {
    let epsilon = R::from_f64(input.epsilon);
    let deviation = |(&variance, &scale): (&R, &f64)| {
        if scale == 1.0 {
            (variance + epsilon).root()
        } else if variance == R::default() {
            epsilon.root() * R::from_f64(scale)
        } else {
            // Epsilon, an f32, is rounded away: unequal elements of 2^450 differ by 2^397 at least, and the
            // variance has 106 bits.
            variance.root()
        }
    };
    variance.iter().zip(scales).map(deviation).collect()
}

fn gradients<R: Summed>(
    input: &Input<'_>,
    x: &[f64],
    scale: &[f64],
    mean: &[f64],
    variance: &[f64],
    gradient: &[f64],
) -> Vec<Vec<f64>> {
    let n: R = count(input, x.len());
    let mean: Vec<R> = widened(mean);
    let deviation = deviations(input, &input.unscaled(), &widened::<R>(variance));
    let centered = |feature: usize, i: usize| R::from_f64(x[i]) - mean[feature];
    let of_offset = input.sums(x.len(), &|_, i| R::from_f64(gradient[i]));
    let correlation = input.sums(x.len(), &|feature, i| R::from_f64(gradient[i]) * centered(feature, i));
    let of_scale: Vec<R> = correlation.iter().zip(&deviation).map(|(&c, &d)| c / d).collect();
    let by_variance: Vec<R> = correlation.iter().zip(&deviation).map(|(&c, &d)| c / d.norm()).collect();
    let factor: Vec<R> = deviation.iter().zip(scale).map(|(&d, &s)| R::from_f64(s) / d / n).collect();
    let of_operand = each(x.len(), &|i| {
        let f = input.feature(i);
        let sum = n * R::from_f64(gradient[i]) - of_offset[f] - centered(f, i) * by_variance[f];
        (factor[f] * sum).to_f64()
    });
    vec![of_operand, narrowed(of_scale), narrowed(of_offset)]
}
