//! Integer arithmetic: every pair of operands of the types of 8 bits and fewer against formulas in `i128`,
//! and chosen operands of the wider ones.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use hlo::small_int::*;
use hlo_arithmetic::scalar::{Int, Number};

/// The value as a mathematical integer.
fn value<T: Int>(x: T) -> i128 {
    if T::SIGNED { x.extend().into() } else { x.bits().into() }
}

/// The number of the type congruent to `x`.
fn wrapped<T: Int>(x: i128) -> i128 {
    let modulus = 1i128 << T::BITS;
    let least = x.rem_euclid(modulus);
    if T::SIGNED && least >= modulus / 2 { least - modulus } else { least }
}

fn check_pair<T: Int + Number>(a: T, b: T) {
    let (x, y) = (value(a), value(b));
    let width = i128::from(T::BITS);
    let modulus = 1i128 << T::BITS;
    let unsigned = x.rem_euclid(modulus);
    let shift_in_range = (0..width).contains(&y);
    let as_signed = if unsigned >= modulus / 2 { unsigned - modulus } else { unsigned };
    let wide =
        |got: T, expected: i128, what: &str| assert_eq!(value(got), wrapped::<T>(expected), "{x} {what} {y}");
    wide(a.add(b), x + y, "+");
    wide(a.subtract(b), x - y, "-");
    if T::BITS < 64 {
        wide(a.multiply(b), x * y, "*");
        wide(a.multiply_high(b), (x * y).div_euclid(modulus), "mulhi");
    }
    wide(a.divide(b), if y == 0 { -1 } else { x / y }, "/");
    wide(a.remainder(b), if y == 0 { x } else { x % y }, "%");
    wide(a.and(b), x & y, "and");
    wide(a.or(b), x | y, "or");
    wide(a.xor(b), x ^ y, "xor");
    wide(a.shift_left(b), if shift_in_range { unsigned << y } else { 0 }, "<<");
    wide(a.shift_right_logical(b), if shift_in_range { unsigned >> y } else { 0 }, ">>>");
    let sign_fill = if as_signed < 0 { -1 } else { 0 };
    wide(a.shift_right_arithmetic(b), if shift_in_range { as_signed >> y } else { sign_fill }, ">>");
    wide(Int::maximum(a, b), x.max(y), "max");
    wide(Int::minimum(a, b), x.min(y), "min");
    let power = if y < 0 {
        i128::from(x == 1)
    } else {
        // Multiplied out, at most 256 times.
        if y <= 256 {
            (0..y).fold(1u128, |product, _| (product * unsigned as u128) % modulus as u128) as i128
        } else {
            value(a.power(b))
        }
    };
    wide(a.power(b), power, "^");
}

fn check_single<T: Int + Number>(a: T) {
    let x = value(a);
    let unsigned = x.rem_euclid(1i128 << T::BITS);
    let bits = (0..T::BITS).map(|i| unsigned >> i & 1);
    let wide =
        |got: T, expected: i128, what: &str| assert_eq!(value(got), wrapped::<T>(expected), "{what} {x}");
    wide(a.negate(), -x, "-");
    wide(a.abs(), x.abs(), "abs");
    wide(a.not(), -1 - x, "not");
    wide(a.sign(), x.signum(), "sign");
    wide(a.popcnt(), bits.clone().sum(), "popcnt");
    let zeros = (0..T::BITS).rev().take_while(|i| unsigned >> i & 1 == 0).count();
    wide(a.count_leading_zeros(), zeros as i128, "clz");
}

fn check_all<T: Int + Number>() {
    let all = || (0..1i64 << T::BITS).map(T::wrap);
    for a in all() {
        check_single(a);
        for b in all() {
            check_pair(a, b);
        }
    }
}

fn check_some<T: Int + Number>() {
    let mut some: Vec<i64> = (-20..=70).collect();
    for shift in 0..64 {
        some.extend([
            1i64 << shift,
            (1i64 << shift).wrapping_sub(1),
            (-1i64) << shift,
            0x1234_5678_9abc_def0 >> shift,
        ]);
    }
    for &a in &some {
        check_single(T::wrap(a));
        for &b in &some {
            check_pair(T::wrap(a), T::wrap(b));
        }
    }
}

#[test]
fn every_pair_of_narrow_operands() {
    check_all::<i8>();
    check_all::<u8>();
    check_all::<S1>();
    check_all::<S2>();
    check_all::<S4>();
    check_all::<U1>();
    check_all::<U2>();
    check_all::<U4>();
}

#[test]
fn wide_operands() {
    check_some::<i16>();
    check_some::<u16>();
    check_some::<i32>();
    check_some::<u32>();
    check_some::<i64>();
    check_some::<u64>();
}

#[test]
fn stated_edges() {
    assert_eq!(7i32.divide(0), -1);
    assert_eq!(Number::divide(7u32, 0), u32::MAX);
    assert_eq!(i32::MIN.divide(-1), i32::MIN);
    assert_eq!(Number::divide(i64::MIN, -1), i64::MIN);
    assert_eq!((7i32.remainder(0), i32::MIN.remainder(-1), (-7i32).remainder(3)), (7, 0, -1));
    assert_eq!((1i32.shift_left(32), 1i32.shift_left(-1), (-8i32).shift_right_arithmetic(99)), (0, 0, -1));
    assert_eq!((0x80u8.shift_right_arithmetic(2), 0x80u8.shift_right_arithmetic(9)), (0xe0, 0xff));
    assert_eq!(((-1i32).power(-1), 1i32.power(-5), 0i32.power(-1), 0i32.power(0)), (0, 1, 0, 1));
    assert_eq!(Number::power(3u64, 41), 3u64.wrapping_pow(41));
    assert_eq!((S4::from_i64(-1).popcnt().to_i64(), S4::from_i64(-1).count_leading_zeros().to_i64()), (4, 0));
    assert_eq!(U4::from_i64(1).count_leading_zeros().to_i64(), 3);
    assert_eq!(u64::MAX.multiply_high(u64::MAX), u64::MAX - 1);
    assert_eq!(i64::MIN.multiply_high(i64::MIN), 1 << 62);
    assert_eq!(Number::multiply(i64::MAX, 3), i64::MAX.wrapping_mul(3));
    assert_eq!(5i32.clamp_between(9, 3), 3, "the upper bound wins");
    assert_eq!((Int::abs(i8::MIN), Int::abs(200u8)), (i8::MIN, 200));
}

#[test]
fn pred_is_arithmetic_on_0_and_1() {
    for a in [false, true] {
        for b in [false, true] {
            let nonzero = |x: i32| x != 0;
            let (x, y) = (i32::from(a), i32::from(b));
            assert_eq!(a.add(b), nonzero(x + y));
            assert_eq!(a.multiply(b), nonzero(x * y));
            assert_eq!(a.subtract(b), nonzero(x - y));
            assert_eq!(Number::power(a, b), nonzero(x.pow(y as u32)));
            assert_eq!(a.remainder(b), if b { nonzero(x % y) } else { a });
            assert_eq!(a.divide(b), if b { nonzero(x / y) } else { true });
        }
        assert_eq!((a.negate(), Number::sign(a)), (a, a));
    }
}
