//! Sums against arbitrary-precision integers.

use hlo::half::{bf16, f16};
use hlo::small_float::{
    F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ,
    F8E8M0FNU,
};
use proptest::prelude::*;

use super::reference::{canonical, round_sum, sum_f32, sum_f64};
use super::{Long, Rounded, Term, fast};

/// Floats that make sums difficult: any exponent, few mantissa bits (so that ties and exact cancellation
/// happen), extremes.
pub(crate) fn hard_f64() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |x| x.is_finite()),
        4 => (-8i64..8, -60..60).prop_map(|(m, e)| m as f64 * 2f64.powi(e)),
        2 => (-3i64..3, -1074..-900).prop_map(|(m, e)| m as f64 * 2f64.powi(e / 2) * 2f64.powi(e - e / 2)),
        2 => (-100i64..100).prop_map(|m| m as f64),
        2 => (any::<i64>()).prop_map(|m| m as f64 * 2f64.powi(-53)),
        1 => prop::sample::select(vec![0.0, -0.0, f64::MAX, -f64::MAX, f64::MIN_POSITIVE, 5e-324, -5e-324, 1e30, -1e30]),
    ]
}

/// The same for `f32`.
pub(crate) fn hard_f32() -> impl Strategy<Value = f32> {
    prop_oneof![
        4 => any::<u32>().prop_map(f32::from_bits).prop_filter("finite", |x| x.is_finite()),
        4 => (-8i32..8, -40..40).prop_map(|(m, e)| m as f32 * 2f32.powi(e)),
        2 => (-100i32..100).prop_map(|m| m as f32),
        2 => (-1i32..=1, 1u32..200).prop_map(|(s, m)| s as f32 * f32::from_bits(m)),
        2 => any::<i32>().prop_map(|m| m as f32 * 2f32.powi(-31)),
        1 => prop::sample::select(vec![0.0, -0.0, f32::MAX, -f32::MAX, f32::MIN_POSITIVE, 1e30, -1e30]),
    ]
}

/// Appends the negative of some of the values, shuffled in, so that much cancels.
pub(crate) fn cancelling<T: Copy + std::ops::Neg<Output = T>>(x: Vec<T>, picks: &[u8]) -> Vec<T> {
    let mut all = x.clone();
    for (at, &pick) in picks.iter().enumerate() {
        if !x.is_empty() && pick % 2 == 0 {
            let to = pick as usize % (all.len() + 1);
            all.insert(to, -x[(at * 7 + pick as usize) % x.len()]);
        }
    }
    all
}

fn ones(x: &[f64]) -> Vec<(f64, f64)> {
    x.iter().map(|&x| (x, 1.0)).collect()
}

fn long(x: &[f64]) -> Long {
    let mut long = Long::new();
    x.iter().for_each(|&x| long.add(x));
    long
}

/// A sum that is exactly zero: -0 if there is an addend and all are -0.
fn zero(x: &[f64]) -> f64 {
    if !x.is_empty() && x.iter().all(|x| x.to_bits() == (-0.0f64).to_bits()) { -0.0 } else { 0.0 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn long_sums_are_exact(x in prop::collection::vec(hard_f64(), 0..12), picks in prop::collection::vec(any::<u8>(), 0..8)) {
        let x = cancelling(x, &picks);
        let expected = round_sum(&ones(&x), 53, -1074, f64::MAX).unwrap_or(zero(&x));
        prop_assert_eq!(long(&x).to_f64().to_bits(), expected.to_bits(), "{:?}", x);
        let narrow = round_sum(&ones(&x), 24, -149, f64::from(f32::MAX)).unwrap_or(zero(&x)) as f32;
        prop_assert_eq!(long(&x).to_f32().to_bits(), narrow.to_bits(), "{:?}", x);
    }

    #[test]
    fn long_products_are_exact(x in prop::collection::vec((hard_f64(), hard_f64()), 0..12)) {
        let mut sum = Long::new();
        sum.add(0.0);
        x.iter().for_each(|&(a, b)| sum.add_product(a, b));
        prop_assert_eq!(sum.to_f64().to_bits(), sum_f64(&x).to_bits(), "{:?}", x);
        prop_assert_eq!(sum.to_f32().to_bits(), sum_f32(&x).to_bits(), "{:?}", x);
    }

    #[test]
    fn long_sums_merge(x in prop::collection::vec(hard_f64(), 0..12), cut in 0usize..12) {
        let cut = cut.min(x.len());
        let mut a = long(&x[..cut]);
        a.merge(&long(&x[cut..]));
        prop_assert_eq!(a.to_f64().to_bits(), long(&x).to_f64().to_bits());
    }

    #[test]
    fn long_subtraction_undoes_addition(x in prop::collection::vec(hard_f64(), 1..12), keep in 0usize..12) {
        let keep = keep.min(x.len() - 1);
        let mut all = long(&x);
        x.iter().enumerate().filter(|&(at, _)| at != keep).for_each(|(_, &x)| all.sub(x));
        prop_assert_eq!(all.to_f64(), x[keep]);
    }

    /// The quick sums agree with the long accumulator in every result type, whatever the order.
    #[test]
    fn quick_f64_sums_are_exact(x in prop::collection::vec(hard_f64(), 0..40), picks in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut x = cancelling(x, &picks);
        for _ in 0..2 {
            every_result_type(-0.0, &x)?;
            every_small_type(-0.0, &x)?;
            x.sort_by(f64::total_cmp);
        }
    }

    #[test]
    fn quick_f32_sums_are_exact(x in prop::collection::vec(hard_f32(), 0..40), picks in prop::collection::vec(any::<u8>(), 0..40), init in hard_f32()) {
        let mut x = cancelling(x, &picks);
        for _ in 0..2 {
            every_result_type(f64::from(init), &x)?;
            every_small_type(f64::from(init), &x)?;
            x.sort_by(f32::total_cmp);
        }
    }

    #[test]
    fn settle_never_decides_wrongly(s in hard_f64(), e in hard_f64(), at in -1.0f64..=1.0) {
        let e = e.abs();
        // Any real number within e of s, here one that is a sum of two floats.
        let mut exact = Long::new();
        exact.add(s);
        if e * at != 0.0 {
            exact.add_product(e, at);
        }
        if let Some(value) = fast::settle::<f32>(s, e) {
            prop_assert_eq!(value.to_bits(), f32::from_long(&exact).to_bits());
        }
        if let Some(value) = fast::settle::<bf16>(s, e) {
            prop_assert_eq!(value.to_bits(), bf16::from_long(&exact).to_bits());
        }
        let partial = fast::Partial { s, c: e * 0.5, err: e };
        if e != 0.0 {
            exact.add(e * 0.5);
        }
        if let Some(value) = partial.settle::<f64>() {
            prop_assert_eq!(value.to_bits(), exact.to_f64().to_bits());
        }
        if let Some(value) = partial.settle::<f32>() {
            prop_assert_eq!(value.to_bits(), exact.to_f32().to_bits());
        }
    }

    #[test]
    fn halves_round_once(x in hard_f64()) {
        let one = [(x, 1.0)];
        let zero = if x.is_sign_negative() { -0.0 } else { 0.0 };
        let expected = round_sum(&one, 11, -24, 65504.0).unwrap_or(zero);
        prop_assert_eq!(f16::to_f64(<f16 as Rounded>::from_f64(x)).to_bits(), expected.to_bits());
        let expected = round_sum(&one, 8, -133, 3.3895313892515355e38).unwrap_or(zero);
        prop_assert_eq!(bf16::to_f64(<bf16 as Rounded>::from_f64(x)).to_bits(), expected.to_bits());
    }
}

/// Checks one sum in `f64`, `f32`, `f16`, `bf16` and two 8-bit formats.
fn every_result_type<T: Term>(init: f64, x: &[T]) -> Result<(), TestCaseError> {
    let wide: Vec<f64> = std::iter::once(init).chain(x.iter().map(|x| x.widen())).collect();
    let terms = ones(&wide);
    let expected = |precision, least, largest| {
        round_sum(&terms, precision, least, largest).unwrap_or(zero(&wide)).to_bits()
    };
    prop_assert_eq!(fast::sum::<T, f64>(init, x).to_bits(), expected(53, -1074, f64::MAX));
    prop_assert_eq!(
        f64::from(fast::sum::<T, f32>(init, x)).to_bits(),
        expected(24, -149, f64::from(f32::MAX))
    );
    prop_assert_eq!(f64::from(fast::sum::<T, f16>(init, x)).to_bits(), expected(11, -24, 65504.0));
    prop_assert_eq!(
        f64::from(fast::sum::<T, bf16>(init, x)).to_bits(),
        expected(8, -133, 3.3895313892515355e38)
    );
    prop_assert_eq!(f64::from(fast::sum::<T, F8E5M2>(init, x)).to_bits(), expected(3, -16, 57344.0));
    prop_assert_eq!(f64::from(fast::sum::<T, F8E4M3>(init, x)).to_bits(), expected(4, -9, 240.0));
    Ok(())
}

/// Checks one sum in every type of 8 bits and fewer against the long accumulator.
fn every_small_type<T: Term>(init: f64, x: &[T]) -> Result<(), TestCaseError> {
    let mut long = Long::new();
    long.add(init);
    x.iter().for_each(|x| long.add(x.widen()));
    macro_rules! check {
        ($($t:ident),*) => { $(
            let (quick, exact) = (fast::sum::<T, $t>(init, x), <$t as Rounded>::from_long(&long));
            prop_assert_eq!(quick.to_bits(), exact.to_bits(), "{:?} in {}", x.iter().map(|x| x.widen()).collect::<Vec<_>>(), $t::NAME);
        )* };
    }
    check!(
        F8E5M2,
        F8E4M3,
        F8E4M3FN,
        F8E4M3B11FNUZ,
        F8E3M4,
        F8E5M2FNUZ,
        F8E4M3FNUZ,
        F8E8M0FNU,
        F4E2M1FN,
        F6E3M2FN,
        F6E2M3FN
    );
    Ok(())
}

#[test]
fn overflow_to_nan_decides_nothing_across_zero() {
    // The bound of the quick sum reaches beyond the largest number on both sides, where these types have the
    // same NaN.
    every_small_type(0.0, &[1e38f32, 1.0, -1e38]).unwrap();
    every_small_type(0.0, &[1e300f64, 1e270, 1.5, -1e270, -1e300]).unwrap();
}

#[track_caller]
fn check(x: &[f64], expected: f64) {
    for reverse in [false, true] {
        let mut x = x.to_vec();
        if reverse {
            x.reverse();
        }
        assert_eq!(canonical(long(&x).to_f64()), canonical(expected), "long sum of {x:?}");
        assert_eq!(canonical(fast::sum(-0.0, &x)), canonical(expected), "quick sum of {x:?}");
    }
}

#[test]
fn sums_by_hand() {
    check(&[1e30, 1.0, -1e30], 1.0);
    check(&[1e308, 1e308, -1e308], 1e308);
    check(&[f64::MAX, f64::MAX], f64::INFINITY);
    // Half an ulp more than the largest number is the first that rounds to infinity.
    check(&[f64::MAX, 2f64.powi(969)], f64::MAX);
    check(&[f64::MAX, 2f64.powi(970)], f64::INFINITY);
    check(&[f64::MAX, 2f64.powi(970), -5e-324], f64::MAX);
    // Ties go to even; the lowest bit beyond decides.
    check(&[1.0, 2f64.powi(-53)], 1.0);
    check(&[1.0, 2f64.powi(-53), 5e-324], 1.0 + f64::EPSILON);
    check(&[1.0 + f64::EPSILON, 2f64.powi(-53)], 1.0 + 2.0 * f64::EPSILON);
    check(&[1.0 + f64::EPSILON, 2f64.powi(-53), -5e-324], 1.0 + f64::EPSILON);
    check(&[5e-324, 5e-324, -5e-324], 5e-324);
}

#[test]
fn specials() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    check(&[inf, 1.0, -1e308], inf);
    check(&[-inf, f64::MAX, f64::MAX], -inf);
    check(&[inf, -inf], nan);
    check(&[nan, inf], nan);
    check(&[nan, 0.0], nan);
    check(&[-nan], nan);
    let mut product = Long::new();
    product.add_product(inf, 0.0);
    assert_eq!(product.to_f64().to_bits(), f64::NAN.to_bits());
}

#[test]
fn zeros() {
    assert_eq!(Long::new().to_f64().to_bits(), 0);
    check(&[0.0, -0.0], 0.0);
    check(&[1.0, -1.0], 0.0);
    check(&[-0.0, 1.0, -1.0, -0.0], 0.0);
    check(&[5e-324, -5e-324], 0.0);
    let mut sum = Long::new();
    sum.add(-0.0);
    sum.add_product(-0.0, 3.0);
    assert_eq!(sum.to_f64().to_bits(), (-0.0f64).to_bits());
    assert_eq!(fast::sum::<f64, f64>(-0.0, &[-0.0, -0.0]).to_bits(), (-0.0f64).to_bits());
    assert_eq!(fast::sum::<f32, f32>(-0.0, &[-0.0; 100]).to_bits(), (-0.0f32).to_bits());
}

#[test]
fn products_beyond_the_range() {
    let mut sum = Long::new();
    sum.add_product(f64::MAX, f64::MAX);
    sum.add_product(5e-324, 5e-324);
    sum.add_product(-f64::MAX, f64::MAX);
    sum.add_product(5e-324, 2f64.powi(1000));
    assert_eq!(sum.to_f64(), 2f64.powi(-74));
    sum.add_product(-5e-324, 2f64.powi(1000));
    // 2^-2148 is left: nothing to nearest, the smallest subnormal to odd.
    assert_eq!(sum.to_f64().to_bits(), 0);
    assert_eq!(sum.to_odd_f64(), 5e-324);
}

#[test]
fn many_additions_carry() {
    // More additions than a digit takes without resolving carries, through merging with itself.
    let mut sum = Long::new();
    for _ in 0..3 {
        sum.add(f64::MAX);
        sum.add(-5e-324);
    }
    for _ in 0..40 {
        let copy = sum.clone();
        sum.merge(&copy);
    }
    let mut back = Long::new();
    back.merge(&sum);
    back.sub(f64::MAX);
    assert_eq!(sum.to_f64(), f64::INFINITY);
    assert_eq!(sum.to_odd_f64(), f64::MAX);
    assert_eq!(back.to_f64(), f64::INFINITY);
}
