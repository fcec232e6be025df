//! Angles: their reduction by right angles for any number, sine and cosine in double-double, and the angle of
//! a point: what the interpreter computes (`hlo_arithmetic::scalar::trig`), as expressions.
//!
//! For finite arguments the relative error of each result is below 2^-95, for huge angles too.

use hlo_arithmetic::scalar::TWO_OVER_PI;

use super::super::functions;
use super::dd::{Dd, Wide};
use super::ops::{Num, Ops, first};
use super::real::{inverse_factorials, series};
use crate::{Emit, Prim, Result, Value};

const QUARTER_PI: f64 = std::f64::consts::FRAC_PI_4;
const HALF_PI: [f64; 2] = [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17];
pub(super) const PI: [f64; 2] = [std::f64::consts::PI, 1.224_646_799_147_353_2e-16];

/// `quadrant * pi/2 + rest` with `|rest| <= pi/4` or slightly more, the quadrant an integer from 0 to 3.
#[derive(Clone, Copy)]
pub(super) struct Reduced<'o, 'ctx> {
    pub(super) quadrant: Num<'o, 'ctx>,
    pub(super) rest: Dd<'o, 'ctx>,
}

/// An angle reduced.
pub(super) fn reduce<'o, 'ctx>(x: Num<'o, 'ctx>) -> Reduced<'o, 'ctx> {
    let [quadrant, hi, lo] = x.ops.call("reduced_angle", [x], reduce_body);
    Reduced { quadrant, rest: Dd { hi, lo } }
}

fn reduce_body<'p, 'ctx>(ops: Ops<'p, 'ctx>, [x]: [Num<'p, 'ctx>; 1]) -> [Num<'p, 'ctx>; 3] {
    let zero = ops.number(0.0);
    ops.branch(
        x.abs().le(QUARTER_PI),
        || [zero, x, zero],
        || {
            let [quadrant, fraction @ ..] = ops.emit_all(|e| payne_hanek(e, x.value));
            let rest = Dd::sum(&fraction) * Dd::constant(ops, HALF_PI);
            // Of a negative angle the mirror image.
            let mirrored = quadrant.eq(0.0).pick(zero, -quadrant + 4.0);
            let negative = x.is_negative();
            [
                negative.pick(mirrored, quadrant),
                negative.pick(-rest.hi, rest.hi),
                negative.pick(-rest.lo, rest.lo),
            ]
        },
    )
}

/// Payne and Hanek's reduction of `|x| > pi/4`: the quadrant of the right angle that is nearest, and `|x|`
/// less it as a fraction of a right angle, in six summands of 32 bits each.
///
/// With `|x| = M 2^k`, M an integer of 53 bits, the digits of 2/pi before the one of weight `2^(1-k)` make
/// multiples of 4. The 256 digits from there on, as an integer F, give `M F 2^-254` modulo 4, which lacks
/// less than 2^-200: as long as the 64 leading digits of the fraction may vanish, that is 130 digits.
fn payne_hanek<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<[Value<'ctx>; 7]> {
    const FRACTION_BITS: i64 = 52;
    const BIAS: i64 = 1023;
    let bits = e.and(e.bitcast(x, Prim::I64)?, e.i64(i64::MAX))?;
    let significand = e.or(e.and(bits, e.i64((1 << FRACTION_BITS) - 1))?, e.i64(1 << FRACTION_BITS))?;
    let k = e.sub(e.lshr(bits, e.i64(FRACTION_BITS))?, e.i64(BIAS + FRACTION_BITS))?;
    // Digits that do not matter: k - 2, and the 64 zeros that the table begins with. Infinities and NaN stay
    // inside the table.
    let skipped = e.add(k, e.i64(62))?;
    let most = e.i64(64 * (TWO_OVER_PI.len() as i64 - 4) - 1);
    let skipped = e.intrinsic("llvm.smin", &[e.ty(Prim::I64)], &[skipped, most])?;
    let words: Vec<u64> = std::iter::once(0).chain(TWO_OVER_PI).collect();
    let table: Value<'ctx> = e.constant_table("hlo_two_over_pi", Prim::I64, &words)?.into();
    let first = e.address(table, e.shl(e.lshr(skipped, e.i64(6))?, e.i64(3))?)?;
    let within = e.and(skipped, e.i64(63))?;
    let word = |i: u64| e.load_invariant(Prim::I64, e.address_at(first, 8 * i)?, 8);
    // Most significant first.
    let digits = (0..4)
        .map(|i| e.intrinsic("llvm.fshl", &[e.ty(Prim::I64)], &[word(i)?, word(i + 1)?, within]))
        .collect::<Result<Vec<_>>>()?;
    let wide = |x| e.zext(x, Prim::I128);
    let mut carry = e.int(Prim::I128, 0);
    let mut product = Vec::new();
    for &word in digits.iter().rev() {
        let sum = e.add(e.mul(wide(significand)?, wide(word)?)?, carry)?;
        product.push(e.trunc(sum, Prim::I64)?);
        carry = e.lshr(sum, e.int(Prim::I128, 64))?;
    }
    // The nearest right angle: half a one is added before the digits above the point are taken.
    let top = product[3];
    let quadrant = e.and(e.lshr(e.add(top, e.i64(1 << 61))?, e.i64(62))?, e.i64(3))?;
    let shifted =
        |i: usize| e.intrinsic("llvm.fshl", &[e.ty(Prim::I64)], &[product[i], product[i - 1], e.i64(2)]);
    // The fraction, signed, without its last word.
    let fraction = [shifted(3)?, shifted(2)?, shifted(1)?];
    let scaled = |x, weight: i32| e.fmul(e.sitofp(x, Prim::F64)?, e.f64(2f64.powi(weight)));
    let low = |i: usize| e.and(fraction[i], e.i64(0xffff_ffff));
    let high = |i: usize| e.lshr(fraction[i], e.i64(32));
    Ok([
        scaled(quadrant, 0)?,
        scaled(e.ashr(fraction[0], e.i64(32))?, -32)?,
        scaled(low(0)?, -64)?,
        scaled(high(1)?, -96)?,
        scaled(low(1)?, -128)?,
        scaled(high(2)?, -160)?,
        scaled(low(2)?, -192)?,
    ])
}

/// sin x and cos x.
pub(super) fn sin_cos<'o, 'ctx>(x: Num<'o, 'ctx>) -> [Dd<'o, 'ctx>; 2] {
    let [a, b, c, d] = x.ops.call("dd_sin_cos", [x], |_, [x]| in_quadrant(reduce(x)));
    [Dd { hi: a, lo: b }, Dd { hi: c, lo: d }]
}

/// sin x and cos x of an angle of more than f64 precision.
fn sin_cos_dd<'o, 'ctx>(x: Dd<'o, 'ctx>) -> [Dd<'o, 'ctx>; 2] {
    let [a, b, c, d] = x.hi.ops.call("dd_sin_cos_of_dd", x.flat(), sin_cos_dd_body);
    [Dd { hi: a, lo: b }, Dd { hi: c, lo: d }]
}

fn sin_cos_dd_body<'p, 'ctx>(ops: Ops<'p, 'ctx>, [hi, lo]: [Num<'p, 'ctx>; 2]) -> [Num<'p, 'ctx>; 4] {
    let (high, low) = (reduce(hi), reduce(lo));
    let (quadrant, rest) = (high.quadrant + low.quadrant, high.rest + low.rest);
    let half_pi = Dd::constant(ops, HALF_PI);
    let (above, below) = (rest.hi.gt(QUARTER_PI), rest.hi.lt(-QUARTER_PI));
    let rest = first(&[(above, rest - half_pi), (below, rest + half_pi)], rest);
    let quadrant = first(&[(above, quadrant + 1.0), (below, quadrant + 3.0)], quadrant);
    in_quadrant(Reduced { quadrant: modulo_4(quadrant), rest })
}

/// Of an integer.
fn modulo_4<'o, 'ctx>(n: Num<'o, 'ctx>) -> Num<'o, 'ctx> {
    (n * 0.25).floor().fma(-4.0, n)
}

/// sin and cos of a number of right angles; 0 and ±1 where they are.
pub(super) fn sin_cos_pi<'o, 'ctx>(halves: Num<'o, 'ctx>) -> [Dd<'o, 'ctx>; 2] {
    let ops = halves.ops;
    // The remainder by 4 and the difference from an integer are exact.
    let within = (halves * 0.25).trunc().fma(-4.0, halves);
    let nearest = within.rint();
    let rest = Dd::from(within - nearest) * Dd::constant(ops, HALF_PI);
    let zero = Dd::from(ops.number(0.0));
    let [a, b, c, d] = in_quadrant(Reduced { quadrant: modulo_4(nearest), rest });
    // No negative zero.
    [Dd { hi: a, lo: b } + zero, Dd { hi: c, lo: d } + zero]
}

fn in_quadrant<'o, 'ctx>(Reduced { quadrant, rest }: Reduced<'o, 'ctx>) -> [Num<'o, 'ctx>; 4] {
    let [a, b, c, d] = quadrant.ops.call("dd_sin_cos_kernel", rest.flat(), kernel);
    let (sin, cos) = (Dd { hi: a, lo: b }, Dd { hi: c, lo: d });
    let odd = quadrant.eq(1.0) | quadrant.eq(3.0);
    let (left, down) = (quadrant.eq(1.0) | quadrant.eq(2.0), quadrant.ge(2.0));
    let (s, c) = (odd.pick(cos, sin), odd.pick(sin, cos));
    let ([a, b], [c, d]) = (down.pick(-s, s).flat(), left.pick(-c, c).flat());
    [a, b, c, d]
}

/// Both series, for |x| <= 0.8.
fn kernel<'p, 'ctx>(ops: Ops<'p, 'ctx>, x: [Num<'p, 'ctx>; 2]) -> [Num<'p, 'ctx>; 4] {
    let x = Dd::of(x);
    let square = -(x * x);
    let all = inverse_factorials();
    let terms = |from: usize| series(square, (from..all.len()).step_by(2).map(|n| all[n]));
    let (sin, cos) = (x + terms(3) * x, Dd::one(ops) + terms(2));
    let ([a, b], [c, d]) = (sin.flat(), cos.flat());
    [a, b, c, d]
}

/// cos and sin.
pub(super) fn direction<'o, 'ctx>(angle: Wide<'o, 'ctx>) -> [Wide<'o, 'ctx>; 2] {
    let angle = angle.normalize();
    let [sin, cos] = sin_cos_dd(angle.to_dd()).map(Wide::from_dd);
    // The next terms, a^2/2 and a^3/6, are below the last bit.
    let one = Wide::from(angle.exponent.ops.number(1.0));
    angle.exponent.lt(-60.0).pick([one, angle], [cos, sin])
}

/// The angle of the point (x, y), as C's `atan2` for zeros. Not for infinities or NaN.
pub(super) fn atan2<'o, 'ctx>(y: Dd<'o, 'ctx>, x: Dd<'o, 'ctx>) -> Wide<'o, 'ctx> {
    let ([a, b], [c, d]) = (y.flat(), x.flat());
    Wide::of(a.ops.call("dd_atan2", [a, b, c, d], atan2_body))
}

fn atan2_body<'p, 'ctx>(ops: Ops<'p, 'ctx>, [a, b, c, d]: [Num<'p, 'ctx>; 4]) -> [Num<'p, 'ctx>; 3] {
    let (given_y, given_x) = (Dd { hi: a, lo: b }, Dd { hi: c, lo: d });
    let negative = given_x.hi.is_negative();
    let flat = negative.pick(Dd::constant(ops, PI), Dd::constant(ops, [0.0, 0.0]));
    let on_axis = Wide::from_dd(given_y.hi.is_negative().pick(-flat, flat));
    let ratio = (Wide::from_dd(given_y) / Wide::from_dd(given_x)).normalize();
    // The next term, ratio^3/3, is below the last bit.
    let shallow = !negative & !given_x.hi.eq(0.0) & ratio.value.hi.is_finite() & ratio.exponent.lt(-60.0);
    let n = -given_x.hi.abs().max(given_y.hi.abs()).exponent();
    let (y, x) = (given_y.scale(n), given_x.scale(n));
    // One step of Newton's method from the f64 angle: rotate the point back by it; what is left is almost 0.
    let start = atan2_f64(y.hi, x.hi);
    let [sin, cos] = sin_cos(start);
    let rest = (y * cos - x * sin) / (x * cos + y * sin);
    let other = Wide::from_dd(Dd::from(start) + rest);
    first(&[(given_y.hi.eq(0.0), on_axis), (shallow, ratio)], other).flat()
}

/// The same of any numbers, in f64.
pub(super) fn atan2_f64<'o, 'ctx>(y: Num<'o, 'ctx>, x: Num<'o, 'ctx>) -> Num<'o, 'ctx> {
    y.ops.call("atan2_f64", [y, x], |ops, [y, x]| [ops.emit(|e| functions::atan2(e, y.value, x.value))])[0]
}
