//! Elementwise operations on complex numbers.
//!
//! A radius bounds each part, so an operand is within `sqrt(2)` times that of its value in modulus, and a
//! part of the result is off by no more than its modulus. An implementation is within some units in the last
//! place of the modulus.
//!
//! Limits ([`super::limits`]) of a complex element are those of its real part: a logarithm has one that is no
//! more than the logarithm of the largest modulus that the operand may have, where the operand may be 0 or
//! the cut is near, and `atan2` one of at most pi.

use hlo::{ElementType, Opcode};
use hlo_arithmetic::scalar::Elementary;
use hlo_execution::format::Format;
use hlo_perturbation::disc::{self, Axis, Disc, SQRT_2};

use super::limits::Limits;
use super::number::Numbers;
use super::rules::{Case, Found, Mode};
use super::{Radii, elementwise};

/// Elementwise bounds of what has complex operands or results.
pub(super) fn bounds(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Found {
    let [result] = case.results[..] else { return None };
    let opcode = case.opcode();
    match opcode {
        Opcode::Select => return elementwise::bounds(case, radii, mode),
        Opcode::Real => return Some(vec![radii[0].clone()]),
        Opcode::Imag => return Some(vec![radii[0].without_limits()]),
        Opcode::Negate => return Some(vec![radii[0].negated()]),
        Opcode::Complex => {
            let (re, im) = (&radii[0], radii[1].without_limits());
            return Some(vec![re.mapped(result.len(), |i, r, limits| {
                let im = im.at(i);
                // Limits say nothing beside what is exact.
                (r.max(im), if r == 0.0 { Limits::NONE } else { limits })
            })]);
        }
        _ => {}
    }
    let n = result.len();
    if case.args.iter().any(|a| a.tensor.len() != n && a.tensor.len() != 1) {
        return None;
    }
    let operands: Vec<Numbers> = case.args.iter().map(|a| Numbers::of(a.tensor)).collect();
    let value = Numbers::of(result);
    let format = Format::of(result.element_type());
    let ulps = case.ulps(result.element_type());
    let to_real = opcode == Opcode::Convert && !result.element_type().is_complex();
    let discs = |i: usize| -> Vec<Disc> {
        let at = |k: usize| if operands[k].len() == 1 { 0 } else { i };
        let flushes = case.settings.allowances.flush_denormals;
        (0..operands.len())
            .map(|k| {
                let mut r = radii[k].at(at(k));
                let (re, im) = operands[k].at(at(k));
                // A conversion to a real number takes the real part alone.
                let im = if to_real { 0.0 } else { im };
                let known = r == 0.0;
                if flushes
                    && let Some(f) = Format::of(operands[k].ty)
                    && [re, im].iter().any(|part| *part != 0.0 && part.abs() - r < f.flushes_below())
                {
                    r += f.flushes_below();
                }
                let m = if to_real { re.abs() } else { operands[k].modulus(at(k)) };
                Disc { re, im, part: r, r: r * SQRT_2, m, known }
            })
            .collect()
    };
    let each = (0..n).map(|i| {
        let xs = discs(i);
        let exact = xs.iter().all(|x| x.r == 0.0);
        if opcode == Opcode::Compare {
            let [x, y] = &xs[..] else { return f64::INFINITY };
            let nan = xs.iter().any(|x| x.part == 0.0 && x.m.is_nan());
            let apart = (x.re - y.re).abs().max((x.im - y.im).abs()) > x.part + y.part;
            return if exact || nan || apart || mode == Mode::Soft { 0.0 } else { 1.0 };
        }
        let Some(format) = format else { return if exact { 0.0 } else { f64::INFINITY } };
        let (re, im) = value.at(i);
        let v = value.modulus(i);
        let ulps = match opcode {
            Opcode::Power if ulps > 0.0 => ulps + ULPS_OF_EXPONENT * exponent(&xs),
            _ => ulps,
        };
        if exact && (ulps == 0.0 || opcode == Opcode::Multiply && scales(&xs)) {
            // A zero beside a product has the sign that the formula gives it.
            let signs = ulps > 0.0 && (re == 0.0 || im == 0.0);
            let flushed = case.settings.allowances.flush_denormals && v < 2.0 * format.flushes_below();
            return if flushed { v } else { 0.0 }.max(if signs { format.min_positive() } else { 0.0 });
        }
        let is_extreme = matches!(opcode, Opcode::Maximum | Opcode::Minimum | Opcode::Clamp);
        if !(re.is_finite() && im.is_finite()) {
            // Infinities and NaNs of products and quotients depend on the formula. An extreme of a NaN that is
            // certain is one, whether the other part is flushed or not.
            let is_nan = |re: f64, im: f64| re.is_nan() || im.is_nan();
            let certain = is_extreme && is_nan(re, im) && xs.iter().any(|x| x.known && is_nan(x.re, x.im));
            return if certain || mode == Mode::Soft && exact { 0.0 } else { f64::INFINITY };
        }
        // Of a number below zero a type without a sign makes a NaN.
        let signless = result.element_type() == ElementType::F8E8M0FNU;
        if !exact && signless && xs.iter().any(|x| x.re - x.part < 0.0) {
            return f64::INFINITY;
        }
        let change = match opcode {
            _ if exact => 0.0,
            _ if is_extreme => chosen(case, &xs, (re, im), format, mode),
            opcode => change(opcode, &xs, v, mode),
        };
        let change = match opcode {
            Opcode::Atan2 => {
                let off = change + by_logarithm(case, &xs, format);
                // Next to the cut the argument may be on its other side.
                let crosses = off > 0.0 && re.abs() + off >= std::f64::consts::PI * (1.0 - 1e-6);
                if mode == Mode::Hard && crosses { f64::INFINITY } else { off }
            }
            _ => change,
        };
        if change.is_nan() {
            return f64::INFINITY;
        }
        let reached = v + change;
        let roundings = if change > 0.0 { ulps + 1.0 } else { ulps };
        let mut r = (change + roundings * format.ulp(reached + ulps * format.ulp(reached)))
            * (1.0 + 8.0 * f64::EPSILON);
        if case.settings.allowances.flush_denormals {
            // What is flushed is no larger than the products of the parts.
            let largest = match (opcode, &xs[..]) {
                (Opcode::Multiply, [x, y]) => (x.m + x.r) * (y.m + y.r),
                (_, _) => f64::INFINITY,
            };
            r += 4.0 * largest.min(format.flushes_below());
        }
        if re.abs().max(im.abs()) + r > format.max && !format.saturates { f64::INFINITY } else { r }
    });
    let each: Vec<f64> = each.collect();
    let limited = matches!(opcode, Opcode::Log | Opcode::LogPlusOne | Opcode::Atan2);
    let Some(format) = format.filter(|_| limited) else { return Some(vec![Radii::new(each)]) };
    let limits = each.iter().enumerate().map(|(i, &r)| match opcode {
        _ if r.is_finite() => Limits::NONE,
        Opcode::Atan2 => of_angle(&discs(i), value.at(i), ulps, format),
        _ => of_logarithm(opcode, &discs(i)[0], ulps, format),
    });
    let limits = limits.collect();
    Some(vec![Radii::limited(each, limits)])
}

/// Conditioning of a power, `exp(y log x)`: ulps of its modulus for each unit of `|y log x|`. A relative
/// error `u` of `y log x` is an absolute one of `u |y log x|`, and `exp` makes that its relative one.
const ULPS_OF_EXPONENT: f64 = 2.0;

/// The modulus of `y log x` where that is finite.
fn exponent(xs: &[Disc]) -> f64 {
    let [x, y] = xs else { return 0.0 };
    let size = y.m * super::number::modulus(Elementary::log(x.m), x.im.atan2(x.re));
    if size.is_finite() { size } else { 0.0 }
}

/// Limits of the real part of a logarithm whose radius is infinite, because the operand may be 0 or on the
/// other side of the cut. The real part is the logarithm of the modulus, and an engine's is off by units of
/// the last place of the result's modulus.
fn of_logarithm(opcode: Opcode, x: &Disc, ulps: f64, format: Format) -> Limits {
    let (m, slack) = match opcode {
        Opcode::LogPlusOne => (super::number::modulus(x.re + 1.0, x.im), format.ulp(1.0)),
        _ => (x.m, 0.0),
    };
    if !(m.is_finite() && x.r.is_finite()) {
        return Limits::NONE;
    }
    // Of the modulus, and of the function of f64.
    let wider = |end: f64, towards: f64| {
        let off = 4.0 * (ulps + 1.0) * format.ulp(end.abs() + std::f64::consts::PI)
            + 4.0 * f64::EPSILON * end.abs();
        if end.is_infinite() { end } else { end + towards * off }
    };
    // The modulus and the radius are rounded before they cancel.
    const SLACK: f64 = 1e-12;
    let least = m * (1.0 - SLACK) - x.r * (1.0 + SLACK) - slack * f64::EPSILON;
    let low = if least > 0.0 { wider(Elementary::log(least), -1.0) } else { f64::NEG_INFINITY };
    let high = wider(Elementary::log((m + x.r) * (1.0 + SLACK)), 1.0);
    Limits::new(low, high)
}

/// Limits of the real part of `atan2(y, x)`, an angle of at most pi, whose radius is infinite. At the poles,
/// where `y` is `x` times `i` or `-i`, nothing is known, so operands are to be away from them. Parts that are
/// flushed make no pole but the origin, where the angle is defined, if those that are left are larger than all
/// that the other operand may be, or if both operands are known.
fn of_angle(xs: &[Disc], value: (f64, f64), ulps: f64, format: Format) -> Limits {
    let [y, x] = xs else { return Limits::NONE };
    let finite = [value.0, value.1, y.m, x.m, y.r, x.r].iter().all(|v| v.is_finite());
    let pole = |sign: f64| y.distance(-sign * x.im, sign * x.re) <= y.r + x.r;
    let larger = |a: &Disc, b: &Disc| {
        a.known && [a.re, a.im].iter().all(|&part| part == 0.0 || part.abs() > b.m + b.r)
    };
    let off_poles = y.known && x.known || larger(y, x) || larger(x, y) || !pole(1.0) && !pole(-1.0);
    if !(finite && off_poles) {
        return Limits::NONE;
    }
    let most = std::f64::consts::PI + 4.0 * (ulps + 1.0) * format.ulp(std::f64::consts::PI);
    Limits::new(-most, most)
}

/// Whether each part of a product is a single product of parts, beside a 0: one factor is real or imaginary,
/// and all parts are finite. Its rounding is the only one in any formula.
fn scales(xs: &[Disc]) -> bool {
    let finite = xs.iter().all(|x| x.re.is_finite() && x.im.is_finite());
    finite && xs.iter().any(|x| x.re == 0.0 || x.im == 0.0)
}

/// The radius of a maximum, a minimum or a clamp. `value` is the reference's: which operand an engine chooses
/// may hang on what these are off by.
fn chosen(case: &Case<'_>, xs: &[Disc], value: (f64, f64), format: Format, mode: Mode) -> f64 {
    let is = |disc: &&Disc| disc.re == value.0 && disc.im == value.1;
    // Those that the value may be.
    let moved = xs.iter().filter(is).map(|x| x.part).fold(0.0, f64::max);
    let apart = |x: &Disc, y: &Disc| (x.re - y.re).abs() > x.part + y.part;
    let pairs = || xs.iter().enumerate().flat_map(|(i, x)| xs[i + 1..].iter().map(move |y| (x, y)));
    let same = xs.len() == 2 && case.args[0].from == case.args[1].from;
    let far = |x: &Disc| (x.re - value.0).abs().max((x.im - value.1).abs()) + x.part;
    match mode {
        _ if xs.iter().any(|x| x.m.is_nan()) => f64::INFINITY,
        Mode::Soft => moved,
        Mode::Hard if same || pairs().all(|(x, y)| apart(x, y)) => moved,
        // A comparison flushes all parts of its operands, or none.
        Mode::Hard if xs.iter().all(|x| x.known) && choice(case.opcode(), xs, format) == Some(value) => moved,
        Mode::Hard => xs.iter().map(far).fold(0.0, f64::max),
    }
}

/// What a maximum, a minimum or a clamp chooses by comparisons, in lexicographic order, in which denormal
/// numbers are zeros.
fn choice(opcode: Opcode, xs: &[Disc], format: Format) -> Option<(f64, f64)> {
    let flushed = |x: f64| if x.abs() < format.flushes_below() { 0.0 } else { x };
    let before = |a: &Disc, b: &Disc| {
        let part = |a: f64, b: f64| flushed(a).partial_cmp(&flushed(b));
        Some(part(a.re, b.re)?.then(part(a.im, b.im)?).is_lt())
    };
    // The first of equals.
    let greatest = |a, b| Some(if before(a, b)? { b } else { a });
    let least = |a, b| Some(if before(b, a)? { b } else { a });
    let chosen = match (opcode, xs) {
        (Opcode::Maximum, [a, b]) => greatest(a, b),
        (Opcode::Minimum, [a, b]) => least(a, b),
        (Opcode::Clamp, [low, x, high]) => least(greatest(low, x)?, high),
        (_, _) => None,
    }?;
    Some((chosen.re, chosen.im))
}

/// `|tanh(z + h) - tanh(z)|` and the same of the tangent, of `|h| <= r`, where the function is at most `v` in
/// modulus: with `t` that of `h`, which is at most `tan(r)`, it is `t (1 - f^2) / (1 + f t)` by the addition
/// theorem.
fn tangent(r: f64, v: f64) -> f64 {
    // tan(r) <= r / (1 - r^2) below 0.8.
    let t = if r < 0.8 { r / (1.0 - r * r) } else { f64::INFINITY };
    // The reference's modulus is rounded.
    let v = v * (1.0 + 1e-6);
    if v * t < 0.5 { t * (1.0 + v * v) / (1.0 - v * t) } else { f64::INFINITY }
}

/// How far a function may move whose derivative is at most `1 / sqrt(|z - a| |z - b|)`, of distances to `a`
/// and `b`.
fn inverse(r: f64, distances: [f64; 2]) -> f64 {
    let [a, b] = distances.map(|d| d - r);
    if a > 0.0 && b > 0.0 { r / (a * b).sqrt() } else { f64::INFINITY }
}

/// How far the exact result may move with the operands; `v` is the modulus of the result.
fn change(opcode: Opcode, xs: &[Disc], v: f64, mode: Mode) -> f64 {
    const UNKNOWN: f64 = f64::INFINITY;
    let x = &xs[0];
    // Relative to the operand; beyond a half, derivatives are no bound.
    let relative = x.r / x.m;
    match (opcode, xs) {
        (Opcode::Add | Opcode::Subtract, [x, y]) => x.part + y.part,
        (Opcode::Multiply, [x, y]) => x.m * y.r + y.m * x.r + x.r * y.r,
        (Opcode::Divide, [x, y]) if y.m > y.r => (x.r + v * y.r) / (y.m - y.r),
        (Opcode::Power, [x, y]) => disc::power(x, y, v, mode == Mode::Hard),
        (Opcode::Atan2, [y, x]) if mode == Mode::Hard && meets_cut_of_root(y, x) => UNKNOWN,
        (Opcode::Atan2, [y, x]) => angle(y, x),
        (Opcode::Abs, _) => x.r,
        (Opcode::Convert, _) => x.part,
        (Opcode::Sign, _) if x.m > 2.0 * x.r => 2.0 * x.r / (x.m - x.r),
        // |e^(z + h) - e^z| <= |e^z| (e^|h| - 1)
        (Opcode::Exponential, _) if x.r < 1.0 => v * (x.r + x.r * x.r),
        (Opcode::ExponentialMinusOne, _) if x.r < 1.0 => (v + 1.0) * (x.r + x.r * x.r),
        (Opcode::Log, _) if relative <= 0.5 => {
            if x.meets_cut() && mode == Mode::Hard {
                UNKNOWN
            } else {
                2.0 * relative
            }
        }
        (Opcode::Sqrt, _) if relative <= 0.5 => {
            if x.meets_cut() && mode == Mode::Hard {
                UNKNOWN
            } else {
                v * relative
            }
        }
        (Opcode::Rsqrt, _) if relative <= 0.5 => {
            if x.meets_cut() && mode == Mode::Hard {
                UNKNOWN
            } else {
                2.0 * v * relative
            }
        }
        (Opcode::Cbrt, _) if relative <= 0.5 => {
            if x.meets_cut() && mode == Mode::Hard {
                UNKNOWN
            } else {
                2.0 * v * relative
            }
        }
        // Derivatives are below cosh of the imaginary (real) part.
        (Opcode::Sine | Opcode::Cosine, _) if x.r < 100.0 => x.r * cosh(x.im.abs() + x.r),
        (Opcode::Sinh | Opcode::Cosh, _) if x.r < 100.0 => x.r * cosh(x.re.abs() + x.r),
        (Opcode::Tanh | Opcode::Tan, _) => tangent(x.r, v),
        // (1 + tanh(z / 2)) / 2
        (Opcode::Logistic, _) => 0.5 * tangent(0.5 * x.r, 1.0 + 2.0 * v),
        (Opcode::LogPlusOne, _) if mode == Mode::Hard && x.reaches(|re, _| re <= -1.0, Axis::Real) => UNKNOWN,
        (Opcode::LogPlusOne, _) => {
            let far = x.distance(-1.0, 0.0) - x.r;
            if far > 0.0 { x.r / far } else { UNKNOWN }
        }
        (Opcode::Asin | Opcode::Acos | Opcode::Atanh, _)
            if mode == Mode::Hard && x.reaches(|low, high| low <= -1.0 || high >= 1.0, Axis::Real) =>
        {
            UNKNOWN
        }
        (Opcode::Acosh, _) if mode == Mode::Hard && x.reaches(|low, _| low <= 1.0, Axis::Real) => UNKNOWN,
        (Opcode::Asinh, _)
            if mode == Mode::Hard && x.reaches(|low, high| low <= -1.0 || high >= 1.0, Axis::Imaginary) =>
        {
            UNKNOWN
        }
        (Opcode::Asin | Opcode::Acos | Opcode::Acosh, _) => {
            inverse(x.r, [x.distance(1.0, 0.0), x.distance(-1.0, 0.0)])
        }
        (Opcode::Asinh, _) => inverse(x.r, [x.distance(0.0, 1.0), x.distance(0.0, -1.0)]),
        (Opcode::Atanh, _) => {
            let of = |d: f64| inverse(x.r, [d, d]);
            let [a, b] = [x.distance(1.0, 0.0), x.distance(-1.0, 0.0)];
            // 1 / |1 - z^2| is the product of both, and each is inverse(r, [d, d]) / r.
            if x.r > 0.0 { of(a) * of(b) / x.r } else { 0.0 }
        }
        (_, _) => UNKNOWN,
    }
}

/// `|x^2 + y^2|`, at most what it is over both discs, and `|x|^2 + |y|^2`, at least that.
fn squares(y: &Disc, x: &Disc) -> (f64, f64) {
    let sum = super::number::modulus(
        (x.re - x.im) * (x.re + x.im) + (y.re - y.im) * (y.re + y.im),
        2.0 * (x.re * x.im + y.re * y.im),
    );
    let size = x.m * x.m + y.m * y.m;
    let off = x.r * (2.0 * x.m + x.r) + y.r * (2.0 * y.m + y.r);
    // The sum of squares here is rounded itself.
    (sum - off - 16.0 * f64::EPSILON * size, size + off)
}

/// Branch cut: whether the disc of `x^2 + y^2`, whose square root `atan2(y, x)` takes, may meet the negative
/// real axis. Beyond that axis the root has the other sign.
fn meets_cut_of_root(y: &Disc, x: &Disc) -> bool {
    let (re, im) =
        ((x.re - x.im) * (x.re + x.im) + (y.re - y.im) * (y.re + y.im), 2.0 * (x.re * x.im + y.re * y.im));
    let off = x.r * (2.0 * x.m + x.r) + y.r * (2.0 * y.m + y.r);
    let off = off + 16.0 * f64::EPSILON * (x.m * x.m + y.m * y.m);
    // Numbers that are not finite have no side.
    let clear = im.abs() > off || re - off > 0.0;
    !(clear || x.known && y.known)
}

/// How far `atan2(y, x)` may move, whose derivatives are `x` and `-y` over `x^2 + y^2`.
fn angle(y: &Disc, x: &Disc) -> f64 {
    let (sum, _) = squares(y, x);
    let slope = (x.m + x.r) * y.r + (y.m + y.r) * x.r;
    if sum > 0.0 { slope / sum } else { f64::INFINITY }
}

/// What `atan2` of complex numbers as `-i log((x + i y) / sqrt(x^2 + y^2))` is off by beside units of the
/// result, where engines may compute it so. Each of a square, their sum, its root, the numerator and the
/// quotient rounds; relative to the quotient that is at most that many units times the condition of the sum,
/// and the logarithm turns it into an absolute error.
fn by_logarithm(case: &Case<'_>, xs: &[Disc], format: Format) -> f64 {
    const ROUNDINGS: f64 = 4.0;
    let (Opcode::Atan2, [y, x]) = (case.opcode(), xs) else { return 0.0 };
    if !case.settings.allowances.functions.has_complex_angles_by_logarithms() {
        return 0.0;
    }
    let (sum, size) = squares(y, x);
    // A formula that overflows or underflows on the way is wrong there, as it is where logarithms take it.
    if !(size > 4.0 * format.flushes_below() && 4.0 * size < format.max) {
        return 0.0;
    }
    if sum <= 0.0 {
        return f64::INFINITY;
    }
    ROUNDINGS * format.ulp(1.0) * (1.0 + size / sum)
}

fn cosh(x: f64) -> f64 {
    Elementary::cosh(x) * (1.0 + 4.0 * f64::EPSILON)
}
