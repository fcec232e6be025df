//! Exponential, logarithm and hyperbolic functions in double-double: those of the interpreter
//! (`hlo_arithmetic::scalar::dd_math`), as expressions.
//!
//! For finite arguments the relative error of each result is below 2^-95. Infinities and NaN are the
//! caller's, but for `exp`, which saturates.

use super::super::functions::{self, Digits};
use super::dd::{Dd, Wide, two_product};
use super::ops::{Num, Ops, first};
use hlo::elementwise::Function;

/// Below this the reduced exponential needs no power of two: slightly less than ln(2) / 2.
const SMALL: f64 = 0.34;
/// The leading 32 bits of ln 2: a multiple by an integer below 2^21 is exact.
const LN_2_LEADING: f64 = 0.693_147_180_369_123_8;
/// ln 2 less that.
const LN_2_TRAILING: [f64; 2] = [1.908_214_929_270_587_7e-10, 1.161_222_722_936_253_2e-26];
const LN_2: [f64; 2] = [std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17];

/// `1/m` in two parts, of a number that is an `f64`.
fn inverse(m: f64) -> [f64; 2] {
    let hi = 1.0 / m;
    [hi, (-hi).mul_add(m, 1.0) / m]
}

/// `1/n!` from `n = 0` to 29. Factorials up to 22! are exact; what the others lack is below the last bit of
/// every series that they end.
pub(super) fn inverse_factorials() -> [[f64; 2]; 30] {
    let mut factorial = 1.0;
    std::array::from_fn(|n| {
        if n > 0 {
            factorial *= n as f64;
        }
        inverse(factorial)
    })
}

/// `sum of c[i] x^(i+1)`
pub(super) fn series<'o, 'ctx>(
    x: Dd<'o, 'ctx>,
    c: impl DoubleEndedIterator<Item = [f64; 2]>,
) -> Dd<'o, 'ctx> {
    let ops = x.hi.ops;
    c.rev().fold(Dd::constant(ops, [0.0, 0.0]), |sum, c| (sum + Dd::constant(ops, c)) * x)
}

/// e^x. Beyond ±100000 the exponent is clamped where every type has overflowed or underflowed.
pub(super) fn exp<'o, 'ctx>(x: Dd<'o, 'ctx>) -> Wide<'o, 'ctx> {
    Wide::of(x.hi.ops.call("dd_exp", x.flat(), exp_body))
}

fn exp_body<'p, 'ctx>(ops: Ops<'p, 'ctx>, x: [Num<'p, 'ctx>; 2]) -> [Num<'p, 'ctx>; 3] {
    let x = Dd::of(x);
    let far = x.hi.abs().gt(1e5);
    let x = far.pick(Dd::from(x.hi.clamp(-1e5, 1e5)), x);
    let k = (x.hi * (1.0 / LN_2[0])).rint();
    let reduced =
        Dd::sum(&[x.hi, -(k * LN_2_LEADING), x.lo]) - Dd::from(k) * Dd::constant(ops, LN_2_TRAILING);
    Wide { value: Dd::one(ops) + exp_minus_one_small(reduced), exponent: k }.flat()
}

/// e^x - 1 for |x| <= 0.35, by its series at x / 512 and nine doublings.
fn exp_minus_one_small<'o, 'ctx>(x: Dd<'o, 'ctx>) -> Dd<'o, 'ctx> {
    Dd::of(x.hi.ops.call("dd_expm1_small", x.flat(), expm1_small_body))
}

fn expm1_small_body<'p, 'ctx>(_: Ops<'p, 'ctx>, x: [Num<'p, 'ctx>; 2]) -> [Num<'p, 'ctx>; 2] {
    const DOUBLINGS: i32 = 9;
    let given = Dd::of(x);
    let x = given.times(f64::powi(2.0, -DOUBLINGS));
    let terms = series(x, inverse_factorials()[2..=9].iter().copied());
    let mut result = x + terms * x;
    for _ in 0..DOUBLINGS {
        result = result.times(2.0) + result * result;
    }
    given.hi.abs().lt(f64::powi(2.0, -200)).pick(given, result).flat()
}

/// e^x - 1.
pub(super) fn exp_minus_one<'o, 'ctx>(x: Dd<'o, 'ctx>) -> Wide<'o, 'ctx> {
    let small = x.hi.abs().lt(SMALL);
    let zero = Dd::from(x.hi.ops.number(0.0));
    let near = Wide::from_dd(exp_minus_one_small(small.pick(x, zero)));
    let power = exp(x);
    let less = Wide::from_dd(power.to_dd() - Dd::one(x.hi.ops));
    // From there on 1 is far below the last bit.
    first(&[(small, near), (power.exponent.gt(200.0), power)], less)
}

/// sinh x and cosh x.
pub(super) fn sinh_cosh<'o, 'ctx>(x: Num<'o, 'ctx>) -> [Wide<'o, 'ctx>; 2] {
    let [a, b, c, d, e, f] = x.ops.call("dd_sinh_cosh", [x], sinh_cosh_body);
    [Wide::of([a, b, c]), Wide::of([d, e, f])]
}

fn sinh_cosh_body<'p, 'ctx>(ops: Ops<'p, 'ctx>, [x]: [Num<'p, 'ctx>; 1]) -> [Num<'p, 'ctx>; 6] {
    let magnitude = x.abs();
    let one = Dd::one(ops);
    let half = exp(Dd::from(magnitude)).shift(-1.0); // e^-2x is below the last bit
    let reduced = exp_minus_one(Dd::from(magnitude)).to_dd();
    let power = one + reduced;
    let sinh = Wide::from_dd((reduced + reduced / power).times(0.5));
    // The next term, x^3/6, is below the last bit.
    let sinh = magnitude.lt(f64::powi(2.0, -60)).pick(Wide::from(magnitude), sinh);
    let cosh = Wide::from_dd((power + one / power).times(0.5));
    let large = magnitude.gt(80.0);
    let (sinh, cosh) = (large.pick(half, sinh), large.pick(half, cosh));
    let sinh = x.is_negative().pick(-sinh, sinh);
    let ([a, b, c], [d, e, f]) = (sinh.flat(), cosh.flat());
    [a, b, c, d, e, f]
}

/// ln(1 + x) for x > -1.
pub(super) fn log_plus_one<'o, 'ctx>(x: Dd<'o, 'ctx>) -> Dd<'o, 'ctx> {
    Dd::of(x.hi.ops.call("dd_log_plus_one", x.flat(), log_plus_one_body))
}

fn log_plus_one_body<'p, 'ctx>(ops: Ops<'p, 'ctx>, x: [Num<'p, 'ctx>; 2]) -> [Num<'p, 'ctx>; 2] {
    let x = Dd::of(x);
    let large = x.hi.abs().ge(0.125);
    ops.branch(
        large,
        || log(Wide::from_dd(Dd::one(ops) + x)).flat(),
        || {
            let near = log_near_one(x);
            x.hi.abs().lt(f64::powi(2.0, -110)).pick(x, near).flat()
        },
    )
}

/// ln(1 + x) for |x| < 1/8: 2 atanh(x / (2 + x)).
fn log_near_one<'o, 'ctx>(x: Dd<'o, 'ctx>) -> Dd<'o, 'ctx> {
    Dd::of(x.hi.ops.call("dd_log_near_one", x.flat(), log_near_one_body))
}

fn log_near_one_body<'p, 'ctx>(ops: Ops<'p, 'ctx>, x: [Num<'p, 'ctx>; 2]) -> [Num<'p, 'ctx>; 2] {
    let x = Dd::of(x);
    let ratio = x / (Dd::constant(ops, [2.0, 0.0]) + x);
    let inverse_odd = (1..16).map(|k| inverse(f64::from(2 * k + 1)));
    (ratio + series(ratio * ratio, inverse_odd) * ratio).times(2.0).flat()
}

/// ln x for x > 0.
pub(super) fn log<'o, 'ctx>(x: Wide<'o, 'ctx>) -> Dd<'o, 'ctx> {
    Dd::of(x.exponent.ops.call("dd_log", x.flat(), log_body))
}

fn log_body<'p, 'ctx>(ops: Ops<'p, 'ctx>, x: [Num<'p, 'ctx>; 3]) -> [Num<'p, 'ctx>; 2] {
    let Wide { value, exponent } = Wide::of(x).normalize();
    let halved = value.hi.gt(std::f64::consts::SQRT_2);
    let value = halved.pick(value.times(0.5), value);
    let exponent = halved.pick(exponent + 1.0, exponent);
    let one = Dd::one(ops);
    let near = (value.hi - 1.0).abs().lt(0.125);
    let log = Dd::of(ops.branch(
        near,
        || log_near_one(value - one).flat(),
        || {
            // One step of Newton's method of third order from the f64 logarithm.
            let start =
                Dd::from(ops.emit(|e| functions::unary(e, Function::Log, value.hi.value, Digits::All)));
            let error = value * exp(-start).to_dd() - one;
            (start + (error - (error * error).times(0.5))).flat()
        },
    ));
    let whole = Dd::from(exponent) * Dd::constant(ops, LN_2) + log;
    exponent.eq(0.0).pick(log, whole).flat()
}

/// asinh x, with the sign of x.
pub(super) fn asinh<'o, 'ctx>(x: Dd<'o, 'ctx>) -> Dd<'o, 'ctx> {
    Dd::of(x.hi.ops.call("dd_asinh", x.flat(), asinh_body))
}

fn asinh_body<'p, 'ctx>(ops: Ops<'p, 'ctx>, x: [Num<'p, 'ctx>; 2]) -> [Num<'p, 'ctx>; 2] {
    let x = Dd::of(x);
    let one = Dd::one(ops);
    let magnitude = x.abs();
    let (large, small) = (magnitude.hi.gt(f64::powi(2.0, 60)), magnitude.hi.lt(f64::powi(2.0, -60)));
    // ln 2x; the next term, 1/(4x^2), is below the last bit.
    let of_large = || log(Wide::from_dd(magnitude).shift(1.0)).flat();
    let of_others = || {
        let square = magnitude * magnitude;
        let sum = magnitude + square / (one + (one + square).sqrt());
        // The next term is x^3/6.
        small.pick(magnitude, log_plus_one(sum)).flat()
    };
    let result = Dd::of(ops.branch(large, of_large, of_others));
    x.hi.is_negative().pick(-result, result).flat()
}

/// |x + iy| for parts that are not both 0 and finite.
pub(super) fn modulus<'o, 'ctx>(x: Dd<'o, 'ctx>, y: Dd<'o, 'ctx>) -> Wide<'o, 'ctx> {
    let ([a, b], [c, d]) = (x.flat(), y.flat());
    Wide::of(a.ops.call("dd_modulus", [a, b, c, d], modulus_body))
}

fn modulus_body<'p, 'ctx>(_: Ops<'p, 'ctx>, [a, b, c, d]: [Num<'p, 'ctx>; 4]) -> [Num<'p, 'ctx>; 3] {
    let (x, y) = (Dd { hi: a, lo: b }, Dd { hi: c, lo: d });
    let n = x.hi.abs().max(y.hi.abs()).exponent();
    let (x, y) = (x.scale(-n), y.scale(-n));
    Wide { value: (x * x + y * y).sqrt(), exponent: n }.flat()
}

/// |x + iy| in f64: infinite if a part is, even with a NaN; of zeros 0.
pub(super) fn hypot<'o, 'ctx>(x: Num<'o, 'ctx>, y: Num<'o, 'ctx>) -> Num<'o, 'ctx> {
    let ops = x.ops;
    let value = modulus(Dd::from(x), Dd::from(y)).to_f64();
    let cases = [
        (x.is_infinite() | y.is_infinite(), ops.infinity()),
        (x.eq(0.0) & y.eq(0.0), ops.number(0.0)),
        (x.is_nan() | y.is_nan(), ops.nan()),
    ];
    first(&cases, value)
}

/// -2|x|, exactly.
pub(super) fn minus_twice<'o, 'ctx>(x: Num<'o, 'ctx>) -> Dd<'o, 'ctx> {
    two_product(x.abs(), x.ops.number(-2.0))
}
