//! Sine, cosine and tangent: by the quadrant that the angle is in, and what is left of it, at most pi/4.

use hlo::elementwise::Function;

use super::{Digits, beyond, magic, polynomial};
use crate::{Emit, FloatPredicate, IntPredicate, Prim, Result, Value};

/// pi/2 in pieces, whose multiples are taken away one after the other with one rounding each. The first
/// difference is exact: what is left is less than 1 and a multiple of the last bit of the angle or of that
/// piece.
const HALF_PI_F32: [f64; 3] = [1.570_796_251_296_997, 7.549_789_415_861_596e-8, 5.390_302_858_158_119e-15];
const HALF_PI: [f64; 3] =
    [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17, -1.497_384_904_859_169_7e-33];
/// `(sin r - r) / r^3` in `r^2`, on `|r| <= 0.786`: 2^-28, 2^-57 and 2^-37.
const SINE_F32: [f64; 3] = [-0.16666654523790184, 0.008332155548010409, -0.00019514586893330273];
const SINE: [f64; 7] = [
    -0.16666666666666666,
    0.008333333333333323,
    -0.00019841269841254657,
    2.7557319213990595e-06,
    -2.5052104862261595e-08,
    1.6058360635678035e-10,
    -7.578413211971182e-13,
];
const SINE_FEW: [f64; 4] =
    [-0.16666666640599417, 0.00833332928190793, -0.00019839304881849216, 2.7180510748266563e-06];
/// `(cos r - 1 + r^2/2) / r^4` in `r^2`: 2^-33, 2^-59 and 2^-33.
const COSINE: [f64; 6] = [
    0.041666666666666595,
    -0.00138888888888729,
    2.4801587288751585e-05,
    -2.755731414974749e-07,
    2.0875696743077677e-09,
    -1.135832019147397e-11,
];
const COSINE_FEW: [f64; 3] = [0.041666645560414314, -0.0013887310159186078, 2.443244890057636e-05];

/// Beyond this angle the pieces are too few, or quadrants are not counted exactly.
pub(super) const fn limit(prim: Prim) -> f64 {
    match prim {
        Prim::F64 => 1_073_741_824.0,
        _ => 32_768.0,
    }
}

/// Argument reduction (Cody and Waite): `x` is `r + low` and `quadrant` right angles, of which the last two
/// bits count.
struct Angle<'ctx> {
    r: Value<'ctx>,
    low: Option<Value<'ctx>>,
    quadrant: Value<'ctx>,
}

fn reduce<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, digits: Digits) -> Result<Angle<'ctx>> {
    let prim = e.prim_of(x);
    let magic = e.float(prim, magic(prim));
    let sum = e.fma(x, e.float(prim, std::f64::consts::FRAC_2_PI), magic)?;
    let k = e.fneg(e.fsub(sum, magic)?)?;
    let quadrant = e.bitcast(sum, Prim::int(prim.bits()))?;
    let pieces = (if prim == Prim::F32 { HALF_PI_F32 } else { HALF_PI }).map(|piece| e.float(prim, piece));
    let first = e.fma(k, pieces[0], x)?;
    if prim == Prim::F32 || digits == Digits::Few {
        let mut r = e.fma(k, pieces[1], first)?;
        if prim == Prim::F32 {
            r = e.fma(k, pieces[2], r)?;
        }
        return Ok(Angle { r, low: None, quadrant });
    }
    // `first` is a multiple of the last bit of the product, so that what rounding takes from the sum is
    // exact.
    let product = e.fmul(k, pieces[1])?;
    let product_low = e.fma(k, pieces[1], e.fneg(product)?)?;
    let r = e.fadd(first, product)?;
    let low = e.fadd(e.fadd(e.fsub(first, r)?, product)?, product_low)?;
    Ok(Angle { r, low: Some(e.fma(k, pieces[2], low)?), quadrant })
}

/// Sine and cosine of `r + low`.
fn kernels<'ctx>(e: &Emit<'_, 'ctx>, angle: &Angle<'ctx>, digits: Digits) -> Result<[Value<'ctx>; 2]> {
    let r = angle.r;
    let prim = e.prim_of(r);
    let (sine, cosine): (&[f64], &[f64]) = match (prim, digits) {
        (Prim::F64, Digits::All) => (&SINE, &COSINE),
        (Prim::F64, Digits::Few) => (&SINE_FEW, &COSINE_FEW),
        (_, _) => (&SINE_F32, &COSINE_FEW),
    };
    let one = e.float(prim, 1.0);
    let z = e.fmul(r, r)?;
    let minus_half = e.float(prim, -0.5);
    let w = e.fma(z, minus_half, one)?;
    let cubed = e.fmul(e.fmul(r, z)?, polynomial(e, z, sine)?)?;
    let rest = e.fma(z, minus_half, e.fsub(one, w)?)?;
    let (cubed, rest) = match angle.low {
        Some(low) => (e.fma(low, w, cubed)?, e.fma(e.fneg(r)?, low, rest)?),
        None => (cubed, rest),
    };
    let fourth = e.fma(e.fmul(z, z)?, polynomial(e, z, cosine)?, rest)?;
    Ok([e.fadd(r, cubed)?, e.fadd(w, fourth)?])
}

/// `x` with its sign flipped by bit `bit` of `quadrant`.
fn flip_sign<'ctx>(
    e: &Emit<'_, 'ctx>,
    x: Value<'ctx>,
    quadrant: Value<'ctx>,
    bit: u32,
) -> Result<Value<'ctx>> {
    let prim = e.prim_of(x);
    let int = Prim::int(prim.bits());
    let top = prim.bits() - 1;
    let sign = e.and(e.shl(quadrant, e.int(int, u64::from(top - bit)))?, e.int(int, 1 << top))?;
    e.bitcast(e.xor(e.bitcast(x, int)?, sign)?, prim)
}

fn odd<'ctx>(e: &Emit<'_, 'ctx>, quadrant: Value<'ctx>) -> Result<Value<'ctx>> {
    let int = e.prim_of(quadrant);
    e.icmp(IntPredicate::NE, e.and(quadrant, e.int(int, 1))?, e.int(int, 0))
}

fn next<'ctx>(e: &Emit<'_, 'ctx>, quadrant: Value<'ctx>) -> Result<Value<'ctx>> {
    e.add(quadrant, e.int(e.prim_of(quadrant), 1))
}

/// `fast`, but `x` where that is a zero, whose sign it has.
fn keep_zero<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, fast: Value<'ctx>) -> Result<Value<'ctx>> {
    e.select(e.fcmp(FloatPredicate::OEQ, x, e.float(e.prim_of(x), 0.0))?, x, fast)
}

/// Sine and cosine of angles up to the limit.
pub(super) fn sine_cosine<'ctx>(
    e: &Emit<'_, 'ctx>,
    x: Value<'ctx>,
    digits: Digits,
) -> Result<[Value<'ctx>; 2]> {
    let [sine, cosine] = both(e, &reduce(e, x, digits)?, digits)?;
    Ok([keep_zero(e, x, sine)?, cosine])
}

fn both<'ctx>(e: &Emit<'_, 'ctx>, angle: &Angle<'ctx>, digits: Digits) -> Result<[Value<'ctx>; 2]> {
    let [sine, cosine] = kernels(e, angle, digits)?;
    let quadrant = angle.quadrant;
    let odd = odd(e, quadrant)?;
    Ok([
        flip_sign(e, e.select(odd, cosine, sine)?, quadrant, 1)?,
        flip_sign(e, e.select(odd, sine, cosine)?, next(e, quadrant)?, 1)?,
    ])
}

/// `sin x`
pub(super) fn sine<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let [sine, _] = sine_cosine(e, x, Digits::All)?;
    beyond(e, Function::Sine, x, limit(e.prim_of(x)), sine)
}

/// `cos x`
pub(super) fn cosine<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let [_, cosine] = sine_cosine(e, x, Digits::All)?;
    beyond(e, Function::Cosine, x, limit(e.prim_of(x)), cosine)
}

/// `tan x`, of angles up to the limit.
pub(super) fn tan<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, digits: Digits) -> Result<Value<'ctx>> {
    keep_zero(e, x, tangent(e, &reduce(e, x, digits)?, digits)?)
}

fn tangent<'ctx>(e: &Emit<'_, 'ctx>, angle: &Angle<'ctx>, digits: Digits) -> Result<Value<'ctx>> {
    let [sine, cosine] = kernels(e, angle, digits)?;
    let odd = odd(e, angle.quadrant)?;
    let quotient = e.fdiv(e.select(odd, cosine, sine)?, e.select(odd, sine, cosine)?)?;
    flip_sign(e, quotient, angle.quadrant, 0)
}

/// Sine, cosine or tangent of an `f64` angle that was reduced already: its rest, at most pi/4, in two parts,
/// and the number of right angles.
pub(in super::super) fn of_reduced_angle<'ctx>(
    e: &Emit<'_, 'ctx>,
    function: Function,
    [r, low]: [Value<'ctx>; 2],
    quadrant: Value<'ctx>,
    digits: Digits,
) -> Result<Value<'ctx>> {
    let angle = Angle { r, low: Some(low), quadrant };
    if function == Function::Tan {
        return tangent(e, &angle, digits);
    }
    let [sine, cosine] = both(e, &angle, digits)?;
    Ok(if function == Function::Sine { sine } else { cosine })
}
