//! Reductions and windows.

use hlo::half::f16;
use num_complex::Complex;
use proptest::prelude::*;

use super::{Random, bits32, bits64, on_any_threads};
use crate::kernels::reduce::{self, Reduce};
use crate::kernels::window::{self, WindowAxis};
use crate::sum::tests::{cancelling, hard_f32, hard_f64};
use crate::sum::{Accumulate, Long, Rounded, Term};

fn exactly<T: Term, O: Rounded>(init: f64, x: impl Iterator<Item = T>) -> O {
    let mut long = Long::new();
    long.add(init);
    x.for_each(|x| long.add(x.widen()));
    O::from_long(&long)
}

fn special_f64() -> impl Strategy<Value = f64> {
    prop_oneof![
        20 => hard_f64(),
        1 => prop::sample::select(vec![f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MAX])
    ]
}

fn special_f32() -> impl Strategy<Value = f32> {
    prop_oneof![20 => hard_f32(), 1 => prop::sample::select(vec![f32::INFINITY, f32::NEG_INFINITY, f32::NAN])]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn reductions_are_exact(outer in 0usize..4, inner in 0usize..5, x in prop::collection::vec(special_f64(), 0..120), init in special_f64()) {
        let reduced = x.len().checked_div(outer * inner).unwrap_or(3);
        let shape = Reduce { outer, reduced, inner };
        let x = &x[..outer * reduced * inner];
        let narrow: Vec<f32> = x.iter().map(|&x| x as f32).collect();
        let mut out = vec![0.0f64; outer * inner];
        let mut half = vec![f16::default(); outer * inner];
        reduce::real(Accumulate::Exact, shape, init, x, &mut out);
        reduce::real(Accumulate::Exact, shape, init, &narrow, &mut half);
        for o in 0..outer {
            for i in 0..inner {
                let at = |r: usize| (o * reduced + r) * inner + i;
                let expected: f64 = exactly(init, (0..reduced).map(|r| x[at(r)]));
                prop_assert_eq!(out[o * inner + i].to_bits(), expected.to_bits());
                let expected: f16 = exactly(init, (0..reduced).map(|r| narrow[at(r)]));
                prop_assert_eq!(half[o * inner + i].to_bits(), expected.to_bits());
            }
        }
    }

    #[test]
    fn region_reductions_are_literal(inner in 1usize..4, x in prop::collection::vec(special_f32(), 0..40), init in hard_f32()) {
        let reduced = x.len() / inner;
        let shape = Reduce { outer: 1, reduced, inner };
        let x = &x[..reduced * inner];
        let mut out = vec![0.0f32; inner];
        reduce::real(Accumulate::Region, shape, f64::from(init), x, &mut out);
        let mut half = vec![f16::default(); inner];
        let fine: Vec<f32> = x.iter().map(|&x| f16::from_f32(x).to_f32()).collect();
        reduce::real(Accumulate::Region, shape, f64::from(f16::from_f32(init)), &fine, &mut half);
        for i in 0..inner {
            let column = || (0..reduced).map(|r| r * inner + i);
            let expected = column().fold(init, |acc, at| acc + x[at]);
            prop_assert_eq!(<f32 as Rounded>::from_f64(f64::from(expected)).to_bits(), out[i].to_bits());
            // A sum of two f16 is exact in f32 but for what one rounding to f16 loses anyway (24 >= 2 * 11 +
            // 2).
            let expected = column().fold(f16::from_f32(init), |acc, at| f16::from_f32(acc.to_f32() + fine[at]));
            prop_assert_eq!(<f16 as Rounded>::from_f64(expected.to_f64()).to_bits(), half[i].to_bits());
        }
    }

    #[test]
    fn windows_are_exact(
        axes in prop::collection::vec((1usize..6, 1usize..4, 0usize..5, 1usize..3, -2i64..3, 1usize..3, 1usize..3), 0..3),
        pool in prop::collection::vec(special_f32(), 36), init in hard_f32(),
    ) {
        let axes: Vec<WindowAxis> = axes
            .into_iter()
            .map(|(input, window, output, stride, padding_low, base_dilation, window_dilation)| WindowAxis {
                input, window, output, stride, padding_low, base_dilation, window_dilation,
            })
            .collect();
        compare(&axes, f64::from(init), &pool)?;
    }

    #[test]
    fn long_windows_are_exact(
        n in 1usize..90, window in 16usize..100, stride in 1usize..4, padding_low in -5i64..100, output in 0usize..120,
        around in (1usize..3, 1usize..3), pool in prop::collection::vec(special_f64(), 0..60), picks in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let pool = cancelling(pool, &picks);
        let axis = WindowAxis { input: n, window, output, stride, padding_low, base_dilation: 1, window_dilation: 1 };
        let axes = [WindowAxis::identity(around.0), axis, WindowAxis::identity(around.1)];
        compare(&axes, 0.0, &pool)?;
        for reverse in [false, true] {
            compare(&[WindowAxis::identity(around.0), WindowAxis::cumulative(n, reverse)], -0.0, &pool)?;
        }
    }
}

/// Checks both modes against the definition in the module's text.
fn compare<T: Term + std::fmt::Debug>(
    axes: &[WindowAxis],
    init: f64,
    pool: &[T],
) -> Result<(), TestCaseError> {
    let n: usize = axes.iter().map(|a| a.input).product();
    let x: Vec<T> = (0..n).map(|at| pool.get(at % pool.len().max(1)).copied().unwrap_or_default()).collect();
    let mut exact = vec![0.0f64; axes.iter().map(|a| a.output).product()];
    let mut narrow = vec![0.0f32; exact.len()];
    let mut region = exact.clone();
    window::real(Accumulate::Exact, axes, init, &x, &mut exact);
    window::real(Accumulate::Exact, axes, init, &x, &mut narrow);
    window::real(Accumulate::Region, axes, init, &x, &mut region);
    for at in 0..exact.len() {
        let terms = terms(axes, &x, at);
        prop_assert_eq!(exact[at].to_bits(), exactly::<T, f64>(init, terms.iter().copied()).to_bits());
        prop_assert_eq!(narrow[at].to_bits(), exactly::<T, f32>(init, terms.iter().copied()).to_bits());
        let literal = terms.iter().fold(init, |acc, x| acc + x.widen());
        prop_assert_eq!(region[at].to_bits(), <f64 as Rounded>::from_f64(literal).to_bits());
    }
    Ok(())
}

/// The terms of one output, in order.
fn terms<T: Copy>(axes: &[WindowAxis], x: &[T], at: usize) -> Vec<T> {
    let mut found = vec![0];
    let mut outputs: Vec<usize> = Vec::new();
    let mut rest = at;
    for axis in axes.iter().rev() {
        outputs.insert(0, rest % axis.output);
        rest /= axis.output;
    }
    for (axis, &o) in axes.iter().zip(&outputs) {
        let mut next = Vec::new();
        for base in found {
            for w in 0..axis.window {
                let p =
                    o as i64 * axis.stride as i64 + w as i64 * axis.window_dilation as i64 - axis.padding_low;
                let d = axis.base_dilation as i64;
                if p >= 0 && p % d == 0 && p / d < axis.input as i64 {
                    next.push(base * axis.input + (p / d) as usize);
                }
            }
        }
        found = next;
    }
    found.into_iter().map(|at| x[at]).collect()
}

#[test]
fn cumulative_sums_by_hand() {
    let x = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1e30, -1e30, 0.5, 0.25, 1.0, 1.0, 1.0, 1.0];
    let mut out = [0.0f32; 17];
    window::real(Accumulate::Exact, &[WindowAxis::cumulative(17, false)], 0.0, &x, &mut out);
    assert_eq!(out[..9], [1.0, 3.0, 6.0, 10.0, 15.0, 21.0, 28.0, 36.0, 45.0]);
    assert_eq!(out[9..], [1e30, 45.0, 45.5, 45.75, 46.75, 47.75, 48.75, 49.75]);
    window::real(Accumulate::Exact, &[WindowAxis::cumulative(17, true)], 0.0, &x, &mut out);
    assert_eq!(out[0], 49.75);
    assert_eq!(out[16], 1.0);
}

#[test]
fn complex_parts_are_sums_of_their_own() {
    let x = [Complex::new(1e30f32, 1.0), Complex::new(1.0, f32::NAN), Complex::new(-1e30, 2.0)];
    let mut out = [Complex::<f32>::default()];
    let shape = Reduce { outer: 1, reduced: 3, inner: 1 };
    reduce::complex(Accumulate::Exact, shape, Complex::new(0.5, 0.0), &x, &mut out);
    assert_eq!(out[0].re, 1.5);
    assert_eq!(out[0].im.to_bits(), f32::NAN.to_bits());
}

#[test]
fn negative_zero_survives_only_among_its_own() {
    let mut out = [1.0f32; 2];
    let shape = Reduce { outer: 1, reduced: 2, inner: 2 };
    for mode in [Accumulate::Exact, Accumulate::Region] {
        reduce::real(mode, shape, -0.0, &[-0.0f32, -0.0, -0.0, 0.0], &mut out);
        assert_eq!(bits32(&out), [0x8000_0000, 0]);
    }
}

#[test]
fn large_reductions_do_not_depend_on_threads() {
    let mut random = Random(4);
    for (outer, reduced, inner) in
        [(1, 300_000, 1), (300, 1000, 1), (1, 3000, 70), (1, 70, 3000), (40, 100, 30)]
    {
        let shape = Reduce { outer, reduced, inner };
        let mut x = random.units(outer * reduced * inner);
        // One column is left to the long accumulator.
        let at = |r: usize| r * inner;
        for r in 0..reduced / 2 {
            x[at(reduced - 1 - r)] = -x[at(r)];
        }
        x[at(0)] += 2f64.powi(-40);
        let out = on_any_threads(|| {
            let mut out = vec![0.0f64; outer * inner];
            reduce::real(Accumulate::Exact, shape, 0.0, &x, &mut out);
            bits64(&out)
        });
        for (index, sum) in out.into_iter().enumerate() {
            let (o, i) = (index / inner, index % inner);
            let expected: f64 = exactly(0.0, (0..reduced).map(|r| x[(o * reduced + r) * inner + i]));
            assert_eq!(sum, expected.to_bits(), "{shape:?} at {index}");
        }
    }
}
