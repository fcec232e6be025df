use num_complex::Complex;
use proptest::prelude::*;
use smallvec::SmallVec;

use super::{Random, bits32, on_any_threads};
use crate::kernels::conv::{self, ConvAxis, ConvShape};
use crate::sum::reference::{canonical, canonical_f32, sum_f32, sum_f64};
use crate::sum::tests::{hard_f32, hard_f64};
use crate::sum::{Accumulate, Long};

/// The terms of one output, straight from the definition in the module's text; indices by plain loops.
fn terms<T: Copy>(s: &ConvShape, lhs: &[T], rhs: &[T], at: usize) -> Vec<(T, T)> {
    let (f, mut rest) = (at % s.features, at / s.features);
    let rank = s.axes.len();
    let mut o = vec![0; rank];
    for d in (0..rank).rev() {
        o[d] = rest % s.axes[d].output;
        rest /= s.axes[d].output;
    }
    let group = f / (s.features / (s.feature_groups * s.batch_groups));
    let depth = s.channels / s.feature_groups;
    let batch = if s.batch_groups > 1 { group * (s.batch / s.batch_groups) + rest } else { rest };
    let first = if s.feature_groups > 1 { group * depth } else { 0 };
    let windows: usize = s.axes.iter().map(|a| a.kernel).product();
    let mut found = Vec::new();
    'window: for position in 0..windows {
        let mut w = vec![0; rank];
        let mut rest = position;
        for d in (0..rank).rev() {
            w[d] = rest % s.axes[d].kernel;
            rest /= s.axes[d].kernel;
        }
        let (mut input, mut kernel) = (batch, 0);
        for (d, a) in s.axes.iter().enumerate() {
            let p = o[d] as i64 * a.stride as i64 + w[d] as i64 * a.kernel_dilation as i64 - a.padding_low;
            if p < 0 || p % a.input_dilation as i64 != 0 || p / a.input_dilation as i64 >= a.input as i64 {
                continue 'window;
            }
            input = input * a.input + (p / a.input_dilation as i64) as usize;
            kernel = kernel * a.kernel + if a.reversed { a.kernel - 1 - w[d] } else { w[d] };
        }
        for c in 0..depth {
            found.push((lhs[input * s.channels + first + c], rhs[(kernel * depth + c) * s.features + f]));
        }
    }
    found
}

fn axis() -> impl Strategy<Value = ConvAxis> {
    (1usize..6, 1usize..4, 0usize..5, 1usize..4, -2i64..4, 1usize..4, 1usize..3, any::<bool>()).prop_map(
        |(input, kernel, output, stride, padding_low, input_dilation, kernel_dilation, reversed)| ConvAxis {
            input,
            kernel,
            output,
            stride,
            padding_low,
            input_dilation,
            kernel_dilation,
            reversed,
        },
    )
}

fn shape() -> impl Strategy<Value = ConvShape> {
    let groups = prop_oneof![Just((1usize, 1usize)), Just((2, 1)), Just((3, 1)), Just((1, 2))];
    (prop::collection::vec(axis(), 0..3), groups, 1usize..3, 1usize..4, 1usize..3).prop_map(
        |(axes, (feature_groups, batch_groups), batch, channels, features)| ConvShape {
            batch: batch * batch_groups,
            channels: channels * feature_groups,
            features: features * feature_groups * batch_groups,
            axes: SmallVec::from_vec(axes),
            feature_groups,
            batch_groups,
        },
    )
}

fn results(s: &ConvShape) -> usize {
    s.batch / s.batch_groups * s.axes.iter().map(|a| a.output).product::<usize>() * s.features
}

fn operands<T: std::fmt::Debug>(
    element: impl Strategy<Value = T> + Clone,
) -> impl Strategy<Value = (ConvShape, Vec<T>, Vec<T>)> {
    shape().prop_flat_map(move |s| {
        let inputs = s.batch * s.axes.iter().map(|a| a.input).product::<usize>() * s.channels;
        let kernels =
            s.axes.iter().map(|a| a.kernel).product::<usize>() * s.channels / s.feature_groups * s.features;
        let lhs = prop::collection::vec(element.clone(), inputs);
        let rhs = prop::collection::vec(element.clone(), kernels);
        (Just(s), lhs, rhs)
    })
}

/// Infinities included, so that a hole that is multiplied shows.
fn element_f32() -> impl Strategy<Value = f32> + Clone {
    prop_oneof![10 => hard_f32().boxed(), 1 => Just(f32::INFINITY).boxed(), 1 => Just(f32::NAN).boxed()]
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn exact_f32((s, lhs, rhs) in operands(element_f32())) {
        let mut out = vec![0.0f32; results(&s)];
        conv::real(Accumulate::Exact, &s, &lhs, &rhs, &mut out);
        for (at, x) in out.into_iter().enumerate() {
            let terms: Vec<_> =
                terms(&s, &lhs, &rhs, at).into_iter().map(|(a, b)| (f64::from(a), f64::from(b))).collect();
            prop_assert_eq!(x.to_bits(), canonical_f32(sum_f32(&terms)), "{:?} at {}", s, at);
        }
    }

    #[test]
    fn region_is_literal((s, lhs, rhs) in operands(element_f32())) {
        let mut out = vec![0.0f32; results(&s)];
        conv::real(Accumulate::Region, &s, &lhs, &rhs, &mut out);
        for (at, x) in out.into_iter().enumerate() {
            let expected = terms(&s, &lhs, &rhs, at).into_iter().fold(0.0f32, |acc, (a, b)| acc + a * b);
            prop_assert_eq!(x.to_bits(), canonical_f32(expected), "{:?} at {}", s, at);
        }
    }

    #[test]
    fn exact_f64((s, lhs, rhs) in operands(hard_f64().boxed())) {
        let mut out = vec![0.0f64; results(&s)];
        conv::real(Accumulate::Exact, &s, &lhs, &rhs, &mut out);
        for (at, x) in out.into_iter().enumerate() {
            prop_assert_eq!(x.to_bits(), canonical(sum_f64(&terms(&s, &lhs, &rhs, at))), "{:?} at {}", s, at);
        }
    }

    #[test]
    fn exact_complex((s, lhs, rhs) in operands((hard_f64(), hard_f64()).prop_map(|(re, im)| Complex { re, im }).boxed())) {
        let mut out = vec![Complex::<f64>::default(); results(&s)];
        conv::complex(Accumulate::Exact, &s, &lhs, &rhs, &mut out);
        for (at, x) in out.into_iter().enumerate() {
            let terms = terms(&s, &lhs, &rhs, at);
            let re: Vec<_> = terms.iter().flat_map(|(a, b)| [(a.re, b.re), (a.im, -b.im)]).collect();
            let im: Vec<_> = terms.iter().flat_map(|(a, b)| [(a.re, b.im), (a.im, b.re)]).collect();
            prop_assert_eq!(x.re.to_bits(), canonical(sum_f64(&re)));
            prop_assert_eq!(x.im.to_bits(), canonical(sum_f64(&im)));
        }
    }

    #[test]
    fn integers_saturate((s, lhs, rhs) in operands(any::<i8>())) {
        let mut out = vec![0i8; results(&s)];
        conv::int(&s, &lhs, &rhs, &mut out);
        for (at, x) in out.into_iter().enumerate() {
            let sum: i64 = terms(&s, &lhs, &rhs, at).into_iter().map(|(a, b)| i64::from(a) * i64::from(b)).sum();
            prop_assert_eq!(x, sum.clamp(-128, 127) as i8);
        }
    }
}

#[test]
fn padding_by_hand() {
    // A 1-d convolution of 1 2 3 with 1 10 100, one zero on either side.
    let axis = ConvAxis {
        input: 3,
        kernel: 3,
        output: 3,
        stride: 1,
        padding_low: 1,
        input_dilation: 1,
        kernel_dilation: 1,
        reversed: false,
    };
    let shape = |reversed| ConvShape {
        batch: 1,
        channels: 1,
        features: 1,
        axes: SmallVec::from_slice(&[ConvAxis { reversed, ..axis }]),
        feature_groups: 1,
        batch_groups: 1,
    };
    let mut out = [0i32; 3];
    conv::int(&shape(false), &[1, 2, 3], &[1, 10, 100], &mut out);
    assert_eq!(out, [210, 321, 32]);
    conv::int(&shape(true), &[1, 2, 3], &[1, 10, 100], &mut out);
    assert_eq!(out, [12, 123, 230]);
}

#[test]
fn large_convolutions_do_not_depend_on_threads() {
    let axis = |input: usize| ConvAxis {
        input,
        kernel: 3,
        output: input.div_ceil(2),
        stride: 2,
        padding_low: 1,
        input_dilation: 1,
        kernel_dilation: 1,
        reversed: false,
    };
    let mut random = Random(3);
    for feature_groups in [1, 8] {
        let s = ConvShape {
            batch: 2,
            channels: 16,
            features: 24,
            axes: SmallVec::from_slice(&[axis(25), axis(17)]),
            feature_groups,
            batch_groups: 1,
        };
        let lhs = random.units_f32(2 * 25 * 17 * 16);
        let rhs = random.units_f32(9 * 16 / feature_groups * 24);
        let out = on_any_threads(|| {
            let mut out = vec![0.0f32; results(&s)];
            conv::real(Accumulate::Exact, &s, &lhs, &rhs, &mut out);
            bits32(&out)
        });
        for (at, x) in out.into_iter().enumerate() {
            let mut long = Long::new();
            for (a, b) in terms(&s, &lhs, &rhs, at) {
                long.add_product(f64::from(a), f64::from(b));
            }
            assert_eq!(x, long.to_f32().to_bits());
        }
    }
}
