//! The error function.

use super::pieces::{Row, pick};
use super::{Digits, at_most, exponential, fabs, magic, polynomial};
use crate::scalar::float::copysign;
use crate::{Emit, FloatPredicate, Prim, Result, Value};

/// Pieces are around its multiples. Those have few bits, and of the first three the error function is nearly
/// a number of `f32`.
const STEP: f64 = 556_845.0 / 1_048_576.0;
/// From the end of the last piece on the result is 1.
const END: f64 = 7.4999 * STEP;
/// What `2/sqrt(pi)` lacks as a number of `f32`.
const SLOPE_LOW: f32 = -5.863_538_4e-8;
/// `erf(STEP i + d)`, power by power of `d`, each piece by its relative error: 2^-27.5 and less.
const ROWS: [Row; 8] = [
    [0.0, 0.547_357_2, 0.866_911_35, 0.975_743_95, 0.997_336_03, 0.999_826_7, 0.999_993_4, 0.999_999_9],
    [
        std::f32::consts::FRAC_2_SQRT_PI,
        0.851_095_86,
        0.365_215_03,
        0.089_159_09,
        0.012_383_101_5,
        0.000_978_453_2,
        4.398_423_7e-5,
        1.124_859_6e-6,
    ],
    [
        0.0,
        -0.451_972_84,
        -0.387_894_33,
        -0.142_043_53,
        -0.026_304_033,
        -0.002_598_031_2,
        -0.000_140_153_05,
        -4.182_397e-6,
    ],
    [
        -0.376_126_05,
        -0.123_689_46,
        0.152_915_84,
        0.121_144_794,
        0.033_122_26,
        0.004_272_757_6,
        0.000_283_042_93,
        9.989_307e-6,
    ],
    [
        0.0,
        0.183_449_88,
        0.048_122_168,
        -0.049_147_27,
        -0.026_418_783,
        -0.004_806_652_7,
        -0.000_403_664_57,
        -1.709_518_3e-5,
    ],
    [
        0.112_809_12,
        -0.001_750_689,
        -0.066_303_335,
        -0.005_038_202_3,
        0.012_507_943,
        0.003_824_602_8,
        0.000_430_000_33,
        2.246_391_5e-5,
    ],
    [
        0.0,
        -0.047_362_81,
        0.009_907_256,
        0.015_639_09,
        -0.001_624_042_9,
        -0.002_101_871_9,
        -0.000_362_343_85,
        -2.515_810_8e-5,
    ],
    [
        -0.026_164_506,
        0.006_610_551,
        0.012_435_241,
        -0.005_707_856_7,
        -0.001_933_077_9,
        0.000_661_782_75,
        0.000_219_913_5,
        2.064_909_3e-5,
    ],
];

/// `erf x`: a polynomial in how far `|x|` is from the nearest multiple of a step.
pub(super) fn erf<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let magnitude = at_most(e, fabs(e, x)?, END)?;
    let magic = e.f32(magic(Prim::F32) as f32);
    let sum = e.fma(magnitude, e.f32((1.0 / STEP) as f32), magic)?;
    let piece = e.bitcast(sum, Prim::I32)?;
    let d = e.fma(e.fsub(sum, magic)?, e.f32(-STEP as f32), magnitude)?;
    let [first, rows @ .., last] = &ROWS;
    // The product is too small to move what a piece begins with, but 0.
    let first = e.fma(d, e.f32(SLOPE_LOW), pick(e, first, piece)?)?;
    let last = pick(e, last, piece)?;
    let slope = rows.iter().rev().try_fold(last, |slope, row| e.fma(slope, d, pick(e, row, piece)?))?;
    copysign(e, e.fma(slope, d, first)?, x)
}

/// Of `f64`: 2/sqrt(pi) in two pieces, then `(erf(x)/x - 2/sqrt(pi)) / x^2` in `x^2` up to 1, 2^-62.
const SLOPE_F64: [f64; 2] = [std::f64::consts::FRAC_2_SQRT_PI, 1.533_545_961_316_588e-17];
const SMALL_F64: [f64; 12] = [
    -0.3761263890318375,
    0.11283791670954851,
    -0.02686617064506859,
    0.005223977624720871,
    -0.0008548326974582675,
    0.0001205533086585287,
    -1.4925589030414807e-05,
    1.6460896202425977e-06,
    -1.6349170247835632e-07,
    1.4651883532606201e-08,
    -1.1341666750300939e-09,
    5.90345156682471e-11,
];
/// `-ln(1 - erf(x))` in `x - 2` on `[0.99, 5.93]`; `erf` has a relative error of 2^-59.
const LARGE_F64: [f64; 19] = [
    5.364941264616638,
    4.418160805994416,
    0.9237508418237783,
    0.016465118136827165,
    -0.003570756345882253,
    0.0007323993864112109,
    -0.00013530933549485142,
    2.0706429431371367e-05,
    -1.9521936308454067e-06,
    -2.0363606730261252e-07,
    1.7320676023636401e-07,
    -5.780430150707387e-08,
    1.3948053743844987e-08,
    -2.5344882664177256e-09,
    2.7552913500491216e-10,
    4.127980412373387e-11,
    -3.744766700187576e-11,
    1.0444221073304908e-11,
    -1.1023615212030825e-12,
];

/// The same of `f64`: `x P(x^2)` up to 1, beyond it `1 - e^-Q(|x|)`, which is 1 from 5.93 on.
pub(super) fn erf_f64<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let one = e.f64(1.0);
    let magnitude = at_most(e, fabs(e, x)?, 5.93)?;
    let square = e.fmul(magnitude, magnitude)?;
    let tail = e.fma(polynomial(e, square, &SMALL_F64)?, square, e.f64(SLOPE_F64[1]))?;
    let small = e.fma(magnitude, e.f64(SLOPE_F64[0]), e.fmul(magnitude, tail)?)?;
    let exponent = e.fneg(polynomial(e, e.fsub(magnitude, e.f64(2.0))?, &LARGE_F64)?)?;
    let large = e.fsub(one, exponential::exp(e, exponent, Digits::All)?)?;
    let is_large = e.fcmp(FloatPredicate::OGE, magnitude, one)?;
    copysign(e, e.select(is_large, large, small)?, x)
}
