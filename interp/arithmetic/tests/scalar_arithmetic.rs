//! Real arithmetic and conversion: hashes of results from exact arithmetic in Python
//! (`data/make_scalar_tables.py pairs`), every pair of operands of the 8-bit and narrower floats; and rules
//! stated here once more in another way.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use half::{bf16, f16};
use hlo::{small_float::*, small_int::*};
use hlo_arithmetic::scalar::{Elementary, Float, Int, Number, convert, reduce_precision, stochastic_convert};
use num_complex::Complex;

const HASHES: &str = include_str!("data/arithmetic_hashes.txt");

/// The generator of the Python script.
struct Walk(u64);

impl Walk {
    fn half(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 32
    }

    fn next(&mut self) -> u64 {
        self.half() << 32 | self.half()
    }

    fn integer(&mut self) -> u64 {
        let (word, shape) = (self.next(), self.next());
        let length = shape & 63;
        let x = word >> (63 - length);
        if shape >> 6 & 1 != 0 && length > 12 {
            let dropped = length + 1 - (1 + (shape >> 8) % 12);
            return (x >> dropped << dropped).wrapping_add(shape >> 16 & 3).wrapping_sub(1);
        }
        x
    }
}

struct Hash(u64);

impl Hash {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add<T: Float>(&mut self, x: T) {
        for byte in &x.to_raw().to_le_bytes()[..T::BITS.div_ceil(8) as usize] {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

fn pairs<T: Float>(mut each: impl FnMut(T, T)) {
    if T::BITS <= 8 {
        for a in 0..1 << T::BITS {
            for b in 0..1 << T::BITS {
                each(T::from_raw(a), T::from_raw(b));
            }
        }
    } else {
        let mut walk = Walk(1);
        for i in 0..1 << 16 {
            let word = walk.next();
            let (a, b) = (word & 0xffff, word >> 16 & 0xffff);
            each(T::from_raw(a), T::from_raw(if i % 2 == 0 { b } else { a ^ b & 0x87ff }));
        }
    }
}

fn hash<T: Float + Elementary>(function: &str) -> u64 {
    let mut hash = Hash::new();
    let mut binary = |f: fn(T, T) -> T| pairs(|a, b| hash.add(f(a, b)));
    match function {
        "add" => binary(T::add),
        "subtract" => binary(T::subtract),
        "multiply" => binary(T::multiply),
        "divide" => binary(T::divide),
        "remainder" => binary(T::remainder),
        "maximum" => binary(T::maximum),
        "minimum" => binary(T::minimum),
        "power" => binary(T::power),
        "atan2" => binary(T::atan2),
        "from_s64" => {
            let mut walk = Walk(1);
            (0..20000).for_each(|_| hash.add(convert::<i64, T>(walk.integer() as i64)));
        }
        "from_u64" => {
            let mut walk = Walk(1);
            (0..20000).for_each(|_| hash.add(convert::<u64, T>(walk.integer())));
        }
        _ => panic!("unknown {function}"),
    }
    hash.0
}

#[test]
fn hashes() {
    let mut count = 0;
    for line in HASHES.lines() {
        let [function, ty, expected] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("malformed: {line}")
        };
        macro_rules! dispatch {
            ($($name:literal $type:ident)*) => {
                match ty {
                    $($name => hash::<$type>(function),)*
                    _ => panic!("malformed: {line}"),
                }
            };
        }
        let got = dispatch! {
            "f16" f16 "bf16" bf16 "f32" f32 "f64" f64 "f8e5m2" F8E5M2 "f8e4m3" F8E4M3 "f8e4m3fn" F8E4M3FN
            "f8e4m3b11fnuz" F8E4M3B11FNUZ "f8e3m4" F8E3M4 "f8e5m2fnuz" F8E5M2FNUZ "f8e4m3fnuz" F8E4M3FNUZ
            "f8e8m0fnu" F8E8M0FNU "f4e2m1fn" F4E2M1FN "f6e3m2fn" F6E3M2FN "f6e2m3fn" F6E2M3FN
        };
        assert_eq!(format!("{got:016x}"), expected, "{line}");
        count += 1;
    }
    assert_eq!(count, 13 * 9 + 15 * 2);
}

/// For each real type: a function of it, called with every pattern of the narrow types and some of the wide
/// ones.
macro_rules! for_each_float {
    ($check:ident) => {
        $check::<f16>();
        $check::<bf16>();
        $check::<f32>();
        $check::<f64>();
        $check::<F8E5M2>();
        $check::<F8E4M3>();
        $check::<F8E4M3FN>();
        $check::<F8E4M3B11FNUZ>();
        $check::<F8E3M4>();
        $check::<F8E5M2FNUZ>();
        $check::<F8E4M3FNUZ>();
        $check::<F8E8M0FNU>();
        $check::<F4E2M1FN>();
        $check::<F6E3M2FN>();
        $check::<F6E2M3FN>();
    };
}

fn patterns<T: Float>() -> Vec<T> {
    if T::BITS <= 16 {
        return (0..1 << T::BITS).map(T::from_raw).collect();
    }
    let mut walk = Walk(7);
    let mut all: Vec<T> = (0..4000).map(|_| T::from_raw(walk.next())).collect();
    for x in
        [0.0, -0.0, 0.5, 1.5, 2.5, -0.3, -0.5, -1.5, 1e9, 4503599627370497.5, f64::INFINITY, -f64::INFINITY]
    {
        all.push(T::from_f64(x));
    }
    all.extend([T::NAN, T::MAX, T::from_raw(1)]);
    all
}

fn same<T: Float>(got: T, expected: f64, of: T, what: &str) {
    assert_eq!(
        got.to_raw(),
        T::from_f64(expected).to_raw(),
        "{what} of {of:?}: {got:?} instead of {expected:?}"
    );
}

fn check_unary<T: Float>() {
    for x in patterns::<T>() {
        let v = x.to_f64();
        // Rounding to an integer through comparison with the truncated value.
        let whole = if v.abs() < 9e15 { (v as i64 as f64).copysign(v) } else { v };
        let (fraction, sign) = ((v - whole).abs(), 1f64.copysign(v));
        same(x.floor(), if v < whole { whole - 1.0 } else { whole }, x, "floor");
        same(x.ceil(), if v > whole { whole + 1.0 } else { whole }, x, "ceil");
        same(x.round_nearest_afz(), if fraction >= 0.5 { whole + sign } else { whole }, x, "afz");
        let up = fraction > 0.5 || (fraction == 0.5 && whole % 2.0 != 0.0);
        same(x.round_nearest_even(), if up { whole + sign } else { whole }, x, "even");
        same(x.sign(), if v == 0.0 || v.is_nan() { v } else { sign }, x, "sign");
        assert_eq!(Float::is_finite(x), v * 0.0 == 0.0);

        let fnuz = T::SPECIALS == Specials::NanIsNegativeZero;
        if T::SIGN == 0 {
            assert_eq!((x.abs().to_raw(), x.negate().to_raw()), (x.to_raw(), T::NAN.to_raw()));
        } else if fnuz && (v == 0.0 || v.is_nan()) {
            assert_eq!((x.abs().to_raw(), x.negate().to_raw()), (x.to_raw(), x.to_raw()));
        } else {
            let flipped = x.to_raw() ^ T::SIGN;
            assert_eq!(x.negate().to_raw(), flipped, "a NaN keeps its payload");
            assert_eq!(x.abs().to_raw(), x.to_raw().min(flipped));
        }
    }
}

#[test]
fn unary_operations() {
    for_each_float!(check_unary);
}

fn check_order<T: Float>() {
    let mut all = patterns::<T>();
    all.sort_by_key(|x| x.total_order_key());
    all.dedup_by_key(|x| x.to_raw());
    // NaN, numbers in order, NaN; of equal numbers only -0 before +0.
    let numbers: Vec<T> = all.iter().copied().filter(|x| !Float::is_nan(*x)).collect();
    let negative_nans = all.iter().take_while(|x| Float::is_nan(**x)).count();
    assert!(all[..negative_nans].iter().all(|x| x.is_negative()));
    assert!(all[negative_nans + numbers.len()..].iter().all(|x| Float::is_nan(*x) && !x.is_negative()));
    for pair in numbers.windows(2) {
        let zeros = pair[0].to_f64() == 0.0 && pair[0].is_negative() && pair[1].to_f64() == 0.0;
        assert!(pair[0] < pair[1] || zeros, "{pair:?}");
        if T::BITS <= 16 && !zeros {
            assert_eq!(pair[0].next_up().to_f64(), pair[1].to_f64(), "{pair:?}");
            assert_eq!(pair[1].next_down().to_f64(), pair[0].to_f64(), "{pair:?}");
        }
    }
    let last = *numbers.last().expect("not empty");
    assert_eq!(last.next_up().to_raw(), last.to_raw());
}

#[test]
fn total_order_and_neighbours() {
    for_each_float!(check_order);
}

/// Every NaN that arithmetic makes is canonical, whatever the hardware's is.
fn check_nan<T: Float + Elementary>() {
    let nan = T::NAN.to_raw();
    let payloads: Vec<T> = patterns::<T>().into_iter().filter(|x| Float::is_nan(*x)).take(300).collect();
    let one = T::one();
    for x in payloads {
        for y in [
            x.add(one),
            one.subtract(x),
            x.multiply(x),
            x.divide(one),
            one.remainder(x),
            x.maximum(one),
            one.minimum(x),
            x.sign(),
            x.floor(),
            x.sqrt(),
            x.exponential(),
            x.erf(),
            one.clamp_between(x, one),
            one.clamp_between(one, x),
            x.atan2(one),
            x.power(x),
            x.logistic(),
            x.rsqrt(),
            x.tanh(),
        ] {
            assert_eq!(y.to_raw(), nan);
        }
        assert_eq!(one.power(x).to_raw(), one.to_raw());
        if T::SPECIALS != Specials::Scale {
            assert_eq!(x.power(T::zero()).to_raw(), one.to_raw());
        }
        assert_eq!(convert::<T, T>(x).to_raw(), x.to_raw(), "a copy");
        assert_eq!(convert::<T, F8E5M2>(x).to_bits() & 0x7c, 0x7c, "still a NaN");
        if T::BITS != 64 {
            assert_eq!(convert::<T, f64>(x).to_bits(), 0x7ff8_0000_0000_0000);
        }
    }
    if let Some(infinity) = T::INFINITY {
        let zero = T::zero();
        for y in [
            infinity.subtract(infinity),
            infinity.negate().add(infinity),
            zero.multiply(infinity),
            zero.divide(zero),
            infinity.divide(infinity),
            infinity.remainder(one),
            one.remainder(zero),
            one.negate().sqrt(),
            one.negate().log(),
            infinity.sine(),
            one.negate().power(T::from_f64(0.5)),
            one.negate().rsqrt(),
        ] {
            assert_eq!(y.to_raw(), nan);
        }
    }
}

#[test]
fn nan_is_canonical() {
    for_each_float!(check_nan);
}

#[test]
fn special_values() {
    let inf = f64::INFINITY;
    let bits = |x: f64| x.to_bits();
    for (got, expected) in [
        (0.0f64.rsqrt(), inf),
        ((-0.0f64).rsqrt(), -inf),
        (inf.rsqrt(), 0.0),
        (Elementary::log(0.0f64), -inf),
        (Elementary::log(-0.0f64), -inf),
        ((-1.0f64).log_plus_one(), -inf),
        ((-inf).exponential_minus_one(), -1.0),
        ((-inf).exponential(), 0.0),
        ((-inf).logistic(), 0.0),
        (inf.logistic(), 1.0),
        (0.0f64.logistic(), 0.5),
        (Number::power(-0.0f64, -3.0), -inf),
        (Number::power(-2.0f64, 3.0), -8.0),
        (Number::power(0.0f64, 0.0), 1.0),
        (Number::power(-1.0f64, inf), 1.0),
        (Number::power(f64::from_bits(0x7ff0_0000_0000_0001), 0.0), 1.0),
        (Number::power(1.0f64, f64::from_bits(0x7ff0_0000_0000_0001)), 1.0),
        (Number::remainder(-0.0f64, 3.0), -0.0),
        (Number::remainder(-6.0f64, 3.0), -0.0),
        (Number::remainder(5.5f64, -inf), 5.5),
        (Float::hypot(inf, f64::NAN), inf),
        (Elementary::atan2(0.0f64, -0.0), std::f64::consts::PI),
        (Elementary::atan2(-0.0f64, -1.0), -std::f64::consts::PI),
        (Float::maximum(-0.0f64, 0.0), 0.0),
        (Float::maximum(0.0f64, -0.0), 0.0),
        (Float::minimum(-0.0f64, 0.0), -0.0),
        (Float::minimum(0.0f64, -0.0), -0.0),
        (1.0f64.clamp_between(3.0, 2.0), 2.0),
        ((-0.0f64).clamp_between(0.0, 1.0), 0.0),
    ] {
        assert_eq!(bits(got), bits(expected), "{got} instead of {expected}");
    }
    // NaN wins against infinity and on either side.
    assert!(Float::maximum(inf, f64::NAN).is_nan() && Float::minimum(f64::NAN, -inf).is_nan());
}

fn check_from_float<F: Float>() {
    let mut all = patterns::<F>();
    if F::BITS >= 32 {
        for x in [
            127.5,
            128.0,
            -128.9,
            -129.0,
            255.9,
            256.0,
            2147483647.0,
            2147483648.0,
            -2147483649.0,
            9.3e18,
            1.9e19,
        ] {
            all.push(F::from_f64(x));
        }
    }
    for x in all {
        fn expected<I: Int>(v: f64) -> i128 {
            let (min, max) = if I::SIGNED {
                (-(1i128 << (I::BITS - 1)), (1i128 << (I::BITS - 1)) - 1)
            } else {
                (0, (1i128 << I::BITS) - 1)
            };
            if v.is_nan() { 0 } else { (v.trunc().clamp(-1e20, 1e20) as i128).clamp(min, max) }
        }
        fn value<I: Int>(x: I) -> i128 {
            if I::SIGNED { x.extend().into() } else { x.bits().into() }
        }
        macro_rules! check {
            ($($int:ty)*) => {$(
                assert_eq!(value(convert::<F, $int>(x)), expected::<$int>(x.to_f64()), "{x:?}");
            )*};
        }
        check!(i8 i16 i32 i64 u8 u16 u32 u64 S1 S2 S4 U1 U2 U4);
        assert_eq!(convert::<F, bool>(x), x.to_f64() != 0.0);
        assert_eq!(convert::<F, Complex<f64>>(x).re.to_bits(), Number::add(x.to_f64(), -0.0).to_bits());
        assert_eq!(convert::<F, Complex<f64>>(x).im.to_bits(), 0);
        let z = Complex::new(convert::<F, f64>(x), 7.0);
        assert_eq!(convert::<Complex<f64>, F>(z).to_raw(), F::from_f64(z.re).to_raw());
    }
}

#[test]
fn float_to_integer() {
    for_each_float!(check_from_float);
}

#[test]
fn integer_to_integer_and_pred() {
    for x in [i64::MIN, -300, -129, -128, -9, -1, 0, 1, 2, 7, 8, 127, 128, 255, 256, 70000, i64::MAX] {
        assert_eq!(convert::<i64, i8>(x), x as i8);
        assert_eq!(convert::<i64, u64>(x), x as u64);
        assert_eq!(convert::<i64, S4>(x).to_i64(), ((i128::from(x) + 8).rem_euclid(16) - 8) as i64);
        assert_eq!(convert::<i64, U2>(x).to_i64(), x.rem_euclid(4));
        assert_eq!(convert::<i64, bool>(x), x != 0);
    }
    assert_eq!(convert::<S4, i64>(S4::from_i64(-3)), -3);
    assert_eq!(convert::<S4, u8>(S4::from_i64(-3)), 253);
    assert_eq!(convert::<U4, i8>(U4::from_i64(13)), 13);
    assert_eq!(convert::<u64, i32>(u64::MAX), -1);
    assert_eq!(convert::<bool, f32>(true), 1.0);
    assert_eq!(convert::<bool, S1>(true).to_i64(), -1);
    assert_eq!(convert::<bool, F8E8M0FNU>(false).to_bits(), 0xff);
    assert_eq!(convert::<u64, f32>(u64::MAX), 18446744073709551616.0);
    // One rounding, up; in f64 the last 1 would be lost, and the tie would go down.
    assert_eq!(convert::<i64, f32>((1 << 60) + (1 << 36) + 1), 1152921642045800448.0);
    assert!(!convert::<Complex<f32>, bool>(Complex::new(0.0, 1.0)));
    assert!(convert::<Complex<f32>, bool>(Complex::new(0.5, 0.0)));
    assert!(convert::<f64, bool>(f64::NAN) && !convert::<f64, bool>(-0.0));
    assert_eq!(
        convert::<Complex<f64>, Complex<f32>>(Complex::new(0.1, -1e300)),
        Complex::new(0.1f32, -f32::INFINITY)
    );
}

/// Recorded from XLA:CPU (jaxlib 0.10.2); a NaN is not part of it.
#[test]
fn reduce_precision_as_xla_cpu() {
    let f16s = [0x3, 0x13, 0x3ff, 0x401, 0x8003, 0x7bff, 0x7c00];
    for ((e, m), expected) in [
        ((8, 1), [0x0, 0x0, 0x400, 0x400, 0x8000, 0x7c00, 0x7c00]),
        ((8, 10), f16s),
        ((5, 10), f16s),
        ((5, 5), [0x0, 0x20, 0x400, 0x400, 0x8000, 0x7c00, 0x7c00]),
        ((5, 0), [0x0, 0x0, 0x400, 0x400, 0x8000, 0x7c00, 0x7c00]),
        ((4, 10), [0x0, 0x0, 0x0, 0x0, 0x8000, 0x7c00, 0x7c00]),
    ] {
        assert_eq!(
            f16s.map(|bits| reduce_precision(f16::from_bits(bits), e, m).to_bits()),
            expected,
            "{e} {m}"
        );
    }
    let bf16s = [0x3, 0x13, 0x7f, 0x81, 0x8003, 0x7f7f, 0x7f80];
    for ((e, m), expected) in [
        ((8, 1), [0x0, 0x0, 0x80, 0x80, 0x8000, 0x7f80, 0x7f80]),
        ((8, 3), [0x0, 0x10, 0x80, 0x80, 0x8000, 0x7f80, 0x7f80]),
        ((5, 2), [0x0, 0x0, 0x0, 0x0, 0x8000, 0x7f80, 0x7f80]),
    ] {
        assert_eq!(
            bf16s.map(|bits| reduce_precision(bf16::from_bits(bits), e, m).to_bits()),
            expected,
            "{e} {m}"
        );
    }
    let f8s = [0x1, 0x3, 0x5, 0x7, 0x9, 0x83, 0x7e, 0x38, 0x3b];
    for ((e, m), expected) in [
        ((8, 1), [0x1, 0x3, 0x4, 0x8, 0x8, 0x83, 0x7f, 0x38, 0x3c]),
        ((4, 3), [0x0, 0x0, 0x0, 0x0, 0x9, 0x80, 0x7f, 0x38, 0x3b]),
        ((4, 1), [0x0, 0x0, 0x0, 0x8, 0x8, 0x80, 0x7f, 0x38, 0x3c]),
        ((3, 3), [0x0, 0x0, 0x0, 0x0, 0x0, 0x80, 0x7f, 0x38, 0x3b]),
        ((5, 2), [0x1, 0x3, 0x5, 0x7, 0x8, 0x83, 0x7e, 0x38, 0x3c]),
    ] {
        assert_eq!(
            f8s.map(|bits| reduce_precision(F8E4M3FN::from_bits(bits), e, m).to_bits()),
            expected,
            "{e} {m}"
        );
    }
    let f8s = [0x1, 0x3, 0x5, 0x7, 0x9, 0x83, 0x7c, 0x7b, 0x38, 0x3b];
    for ((e, m), expected) in [
        ((8, 1), [0x0, 0x4, 0x4, 0x8, 0x8, 0x84, 0x7c, 0x7c, 0x38, 0x3c]),
        ((5, 2), f8s),
        ((4, 1), [0x0, 0x0, 0x0, 0x0, 0x0, 0x80, 0x7c, 0x7c, 0x38, 0x3c]),
    ] {
        assert_eq!(
            f8s.map(|bits| reduce_precision(F8E5M2::from_bits(bits), e, m).to_bits()),
            expected,
            "{e} {m}"
        );
    }
}

#[test]
fn reduce_precision_of_nan_and_wide_types() {
    let payload = f32::from_bits(0xffc0_1234);
    assert_eq!(reduce_precision(payload, 5, 2).to_bits(), payload.to_bits());
    assert_eq!(reduce_precision(payload, 5, 0), f32::INFINITY);
    assert_eq!(reduce_precision(1.0f64 + f64::EPSILON, 11, 51), 1.0, "tie to even");
    assert_eq!(reduce_precision(1e-40f32, 8, 23), 1e-40);
    // As bf16, but for subnormals: there reduce-precision (7, 7) has none.
    for bits in (0..u32::MAX).step_by(99991) {
        let x = f32::from_bits(bits);
        if !x.is_nan() {
            let expected = bf16::from_bits(hlo::small_float::FloatFormat::BF16.encode(x.into()) as u16);
            assert_eq!(reduce_precision(x, 8, 7).to_bits(), expected.to_f32().to_bits(), "{x:e}");
        }
    }
    assert_eq!(reduce_precision(65519.0f32, 5, 10), 65504.0);
    assert_eq!(reduce_precision(65520.0f32, 5, 10), f32::INFINITY);
    assert_eq!(reduce_precision(6.0e-5f32, 5, 10), 0.0, "2^-14 and more are normal");
    assert_eq!(reduce_precision(-6.0e-5f32, 5, 10).to_bits(), (-0.0f32).to_bits());
}

#[test]
fn stochastic_conversion() {
    let convert = |x: f32, random: u32| stochastic_convert::<f32, u32, i8>(x, random);
    assert_eq!([convert(1.25, 0), convert(1.25, (1 << 30) - 1), convert(1.25, 1 << 30)], [2, 2, 1]);
    assert_eq!([convert(-1.25, 0), convert(-1.25, 1 << 30)], [-2, -1]);
    assert_eq!([convert(3.0, 0), convert(-0.0, 0), convert(f32::NAN, 0)], [3, 0, 0]);
    assert_eq!([convert(f32::INFINITY, 0), convert(-f32::INFINITY, 0), convert(127.5, 0)], [127, -128, 127]);
    assert_eq!([convert(-127.5, 0), convert(-127.5, u32::MAX), convert(126.5, 0)], [-128, -127, 127]);
    assert_eq!(stochastic_convert::<f64, u64, i64>(-0.5, u64::MAX >> 1), 0i64.wrapping_sub(1));
    assert_eq!(stochastic_convert::<f64, u64, i64>(-0.5, u64::MAX / 2 + 1), 0);
    assert_eq!(stochastic_convert::<F8E5M2, u8, S4>(F8E5M2::from_f32(2.5), 127).to_i64(), 3);
    assert_eq!(stochastic_convert::<F8E5M2, u8, S4>(F8E5M2::from_f32(2.5), 128).to_i64(), 2);
    assert_eq!(stochastic_convert::<f16, u16, i32>(f16::from_f32(-7.75), 0xbfff), -8);
    assert_eq!(stochastic_convert::<f16, u16, i32>(f16::from_f32(-7.75), 0xc000), -7);
}
