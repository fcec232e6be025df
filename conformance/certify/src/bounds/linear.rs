//! Fourier transforms, linear algebra and batch normalization: the error recurrences of their algorithms.
//!
//! The reference is the exact result, rounded once. Engines round each step in the type itself, and may sum
//! in any order; so an element is off by what its recurrence says, with the roundings of every step and the
//! errors of the elements that it is computed from.

use hlo::attrs::{FftType, Transpose};
use hlo::num_complex::Complex;
use hlo::{AttrKey, ElementType, Opcode};
use hlo_execution::format::{Format, rounded};
use hlo_perturbation::balls::{Ball, Row, Unit};
use hlo_perturbation::factors::{self, Substitution};
use hlo_perturbation::inverse::Inverse;
use hlo_perturbation::{UNKNOWN, gamma};

use super::Radii;
use super::number::{Numbers, modulus};
use super::rules::{Case, Found, Mode};
use hlo_perturbation::disc::SQRT_2;

type C = Complex<f64>;

/// Steps in a type; those of complex numbers are several.
pub(super) fn unit(case: &Case<'_>, ty: ElementType) -> Option<Unit> {
    Unit::of(ty, case.settings.allowances.flush_denormals)
}

/// The type whose units an instruction's results are off by: its operand's, in which it is computed, or that
/// of the results, which those are then converted to.
fn coarser(operand: ElementType, result: ElementType) -> ElementType {
    let unit = |ty| Format::of(ty).map_or(0.0, Format::unit_roundoff);
    if unit(operand) > unit(result) { operand } else { result }
}

/// The radii of results, from the errors `off` of the values before the last rounding; the reference rounds
/// exact values.
pub(super) fn settled(case: &Case<'_>, k: usize, off: &[f64], mode: Mode) -> Radii {
    let v = Numbers::of(case.results[k]);
    let Some(format) = Format::of(v.ty) else { return Radii::unknown(v.len()) };
    let each = off.iter().enumerate().map(|(i, &off)| {
        if !v.is_finite(i) {
            return if mode == Mode::Soft { 0.0 } else { UNKNOWN };
        }
        if off == 0.0 {
            return 0.0;
        }
        // A modulus beyond the greatest number is that of parts that are not.
        let size = v.modulus(i).min(format.max);
        let r = off + format.ulp((size + off).min(format.max));
        if off.is_nan() || mode == Mode::Hard && size + r > format.max { UNKNOWN } else { r.next_up() }
    });
    Radii::new(each.collect())
}

/// The same of factors and solutions: a zero has the sign that a formula gives it, by the terms that it adds and
/// the conjugates that it takes, in the other triangle too.
fn with_signs_of_zeros(case: &Case<'_>, radii: &Radii) -> Radii {
    let v = Numbers::of(case.results[0]);
    let least = Format::of(v.ty).map_or(0.0, Format::min_positive);
    let zero = |i: usize| v.re[i] == 0.0 || v.im.as_ref().is_some_and(|im| im[i] == 0.0);
    radii.mapped(v.len(), |i, r, limits| (if zero(i) { r.max(least) } else { r }, limits))
}

/// What magnitudes are scaled by while they are added up, so that those of f64 do not overflow.
pub(super) const SCALED: f64 = 1.0 / (1u64 << 40) as f64;

/// The sum of the moduli of some elements, times `scale`.
pub(super) fn scaled_norm(x: &Numbers, elements: std::ops::Range<usize>, scale: f64) -> f64 {
    let scaled = |i: usize| {
        let (re, im) = x.at(i);
        modulus(re * scale, im * scale)
    };
    elements.map(scaled).sum()
}

/// The operand of an `fft`, with zeros for imaginary parts that have no effect: of frequencies 0 and n/2 of an
/// inverse real transform of one dimension.
pub(super) fn transform_operand(case: &Case<'_>) -> Option<Numbers> {
    let [arg] = &case.args[..] else { return None };
    let mut x = Numbers::of(arg.tensor);
    let lengths = case.instr.attrs.ints(AttrKey::FftLength)?;
    let (&n, outer) = lengths.split_last()?;
    if let (FftType::Irfft, Some(im)) = (case.instr.attrs.fft_type()?, &mut x.im)
        && outer.iter().all(|&n| n == 1)
    {
        let n = usize::try_from(n).ok()?;
        for line in im.chunks_exact_mut(n / 2 + 1) {
            line[0] = 0.0;
            if n.is_multiple_of(2) {
                line[n / 2] = 0.0;
            }
        }
    }
    Some(x)
}

/// `fft`: each element is a sum of all elements times numbers of modulus 1.
pub(super) fn fft(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Found {
    let [result] = case.results[..] else { return None };
    let [arg] = &case.args[..] else { return None };
    let x = transform_operand(case)?;
    let lengths = case.instr.attrs.ints(AttrKey::FftLength)?;
    let points = lengths.iter().map(|&n| n as f64).product::<f64>().max(1.0);
    let kind = *case.instr.attrs.fft_type()?;
    let rank = arg.tensor.rank();
    let block = |dims: &[i64]| dims.iter().skip(rank - lengths.len()).product::<i64>().max(1) as usize;
    let (taken, given) = (block(arg.tensor.dims()), block(result.dims()));
    let format = Format::of(coarser(x.ty, result.element_type()))?;
    let flush =
        if case.settings.allowances.flush_denormals { format.flushes_below() } else { format.min_positive() };
    // The definition, or a fast transform of a larger length; each step rounds the factor and the product.
    let stages = points.log2().ceil() + 2.0;
    let steps = if points <= 256.0 { 2.0 * points + 16.0 * stages } else { 48.0 * stages };
    let scale = match kind {
        FftType::Fft | FftType::Rfft => 1.0,
        FftType::Ifft => 1.0 / points,
        // Half of the elements are given, and stand for the others too.
        FftType::Irfft => 2.0 / points,
    };
    let blocks = x.len() / taken.max(1);
    let mut off = Vec::with_capacity(result.len());
    let limit = format.max * SCALED;
    for b in 0..blocks {
        let elements = b * taken..(b + 1) * taken;
        // Without large numbers nothing overflows, and small ones that are scaled would be lost: errors of
        // numbers near the least normal one, and of their sums, are normal multiples of the least denormal
        // one.
        let large = |i: usize| {
            let (re, im) = x.at(i);
            re.abs().max(im.abs()).max(radii[0].at(i)) > 1.0
        };
        let down = if elements.clone().any(large) { SCALED } else { 1.0 };
        let size = scaled_norm(&x, elements.clone(), down);
        let moved: f64 = elements.clone().map(|i| radii[0].at(i) * down * SQRT_2).sum();
        let e = (moved + gamma(steps, format.unit_roundoff()) * (size + moved)) * scale * (1.0 + 1e-9) / down;
        // Zeros of both signs meet in the sums: which sign comes out depends on their order.
        let nothing = if points > 1.0 { format.min_positive() } else { 0.0 };
        let some = elements.clone().any(|i| x.at(i) != (0.0, 0.0) || radii[0].at(i) > 0.0);
        let e = if some { e + flush * steps * points } else { e + nothing };
        let overflows = down == SCALED && size + moved >= limit / 4.0 && mode == Mode::Hard;
        off.extend(std::iter::repeat_n(if overflows || e.is_nan() { UNKNOWN } else { e }, given));
    }
    (off.len() == result.len()).then(|| vec![settled(case, 0, &off, mode)])
}

/// `cholesky`: column by column, or all at once ([`factors::cholesky`]), whichever says more.
pub(super) fn cholesky(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Found {
    let [result] = case.results[..] else { return None };
    let [arg] = &case.args[..] else { return None };
    let (a, v) = (Numbers::of(arg.tensor), Numbers::of(result));
    let n = usize::try_from(*result.dims().last()?).ok()?;
    let lower = case.instr.attrs.bool(AttrKey::Lower);
    let unit = unit(case, coarser(a.ty, v.ty))?;
    let root = if v.im.is_some() { SQRT_2 } else { 1.0 };
    let mut off = vec![0.0; v.len()];
    for m in 0..v.len() / (n * n).max(1) {
        let at = |i: usize, j: usize| m * n * n + if lower { i * n + j } else { j * n + i };
        // The factor by rows, whichever half it is in.
        let mut factor = Row::zeros(n * n);
        for (i, j) in (0..n).flat_map(|i| (0..=i).map(move |j| (i, j))) {
            factor.size[i * n + j] = v.modulus(at(i, j));
        }
        for j in 0..n {
            let dot = |factor: &Row, i: usize| factor.part(i * n, j).times(factor.part(j * n, j));
            // From elements of the first column nothing but zeros is subtracted.
            let steps = unit.steps(if j == 0 { 2.0 } else { j as f64 + 3.0 });
            let start = |i: usize| Ball::new(a.modulus(at(i, j)), radii[0].at(at(i, j)) * root);
            let pivot = start(j).plus(dot(&factor, j), Unit::NONE).rounded(steps).off;
            let d = factor.size[j * n + j];
            // The root of what is less by that is farther off than that of what is more; both roots are
            // rounded.
            let least = d * (1.0 - unit.relative).max(0.0);
            let less = least * least - pivot;
            let e =
                if less > 0.0 { pivot / (least + less.sqrt()) + 2.0 * unit.relative * d } else { UNKNOWN };
            factor.off[j * n + j] = e;
            for i in j + 1..n {
                let above = start(i).plus(dot(&factor, i), Unit::NONE).rounded(steps).off;
                let size = factor.size[i * n + j];
                let quotient = (above + size * e) / (d - e) + 2.0 * unit.relative * size + unit.absolute;
                factor.off[i * n + j] = if d > e && !quotient.is_nan() { quotient } else { UNKNOWN };
            }
        }
        for (i, j) in (0..n).flat_map(|i| (0..=i).map(move |j| (i, j))) {
            off[at(i, j)] = factor.off[i * n + j];
        }
        let complex = |i: usize, j: usize| v.complex(at(i, j));
        let given = |i: usize, j: usize| radii[0].at(at(i, j)) * root;
        let diagonal = |i: usize| a.re[at(i, i)].abs();
        if let Some(found) = factors::cholesky(n, complex, diagonal, given, unit) {
            for (i, j) in (0..n).flat_map(|i| (0..=i).map(move |j| (i, j))) {
                // What is not a number says nothing.
                off[at(i, j)] = off[at(i, j)].min(found[i * n + j]);
            }
        }
        // Where rounding decides whether a pivot is negative, it decides whether there are factors at all. If
        // there are, as in the reference, the columns before that pivot are what they are.
        if mode == Mode::Hard && (0..n).any(|j| off[at(j, j)] == UNKNOWN) {
            off[m * n * n..][..n * n].fill(UNKNOWN);
        }
    }
    Some(vec![with_signs_of_zeros(case, &settled(case, 0, &off, mode))])
}

/// `triangular-solve`: step by step, or all at once ([`Substitution`]), whichever says more.
pub(super) fn triangular_solve(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Found {
    let [result] = case.results[..] else { return None };
    let [a_arg, b_arg] = &case.args[..] else { return None };
    let (a, b, v) = (Numbers::of(a_arg.tensor), Numbers::of(b_arg.tensor), Numbers::of(result));
    let n = usize::try_from(*a_arg.tensor.dims().last()?).ok()?;
    let attrs = &case.instr.attrs;
    let left = attrs.bool_or(AttrKey::LeftSide, false);
    let lower = attrs.bool_or(AttrKey::Lower, false);
    let one = attrs.bool_or(AttrKey::UnitDiagonal, false);
    let transposed = attrs.transpose().is_some_and(|t| *t != Transpose::No);
    // On the right, rows of X are solutions for the transposed matrix.
    let swapped = transposed == left;
    let forward = lower != swapped;
    let computed = coarser(a.ty, v.ty);
    let unit = unit(case, computed)?;
    // Parts of products of complex numbers are sums of two.
    let format = Format::of(computed)?;
    let most = format.max / if v.im.is_some() { 4.0 } else { 1.0 };
    let root = if v.im.is_some() { SQRT_2 } else { 1.0 };
    let (matrix, block) = (n * n, v.len() / (a.len() / (n * n).max(1)).max(1));
    if n == 0 || block == 0 {
        return Some(vec![Radii::Zero]);
    }
    let columns = block / n;
    let mut off = vec![0.0; v.len()];
    for m in 0..a.len() / matrix {
        let entry = |i: usize, j: usize| m * matrix + if swapped { j * n + i } else { i * n + j };
        let offset = |i: usize, c: usize| m * block + if left { i * columns + c } else { c * n + i };
        // A system that is lower triangular: backwards, if it is not.
        let line = |i: usize| if forward { i } else { n - 1 - i };
        let diagonal = |i: usize, j: usize| one && i == j;
        let whole = Substitution::new(
            n,
            |i, j| if diagonal(i, j) { C::ONE } else { a.complex(entry(line(i), line(j))) },
            |i, j| if diagonal(i, j) { 0.0 } else { radii[0].at(entry(line(i), line(j))) * root },
            unit,
        );
        // By rows, in the order of the steps.
        let mut matrix_rows = Row::zeros(matrix);
        for (i, j) in (0..n).flat_map(|i| (0..i).map(move |j| (i, j))) {
            let from = entry(line(i), line(j));
            (matrix_rows.size[i * n + j], matrix_rows.off[i * n + j]) =
                (a.modulus(from), radii[0].at(from) * root);
        }
        let diagonals: Vec<Ball> = (0..n)
            .map(line)
            .map(|i| match one {
                true => Ball::new(1.0, 0.0),
                false => Ball::new(a.modulus(entry(i, i)), radii[0].at(entry(i, i)) * root),
            })
            .collect();
        // The inverse has zeros.
        let inverts = case.settings.allowances.decompositions && format.has_zero();
        let inverse = inverts.then(|| Inverse::new(n, &matrix_rows, &diagonals, unit, most));
        for c in 0..columns {
            let mut solved = Row::zeros(n);
            let mut overflows = n;
            for step in 0..n {
                let i = line(step);
                let given = Ball::new(b.modulus(offset(i, c)), radii[1].at(offset(i, c)) * root);
                let terms = matrix_rows.part(step * n, step).times(solved.part(0, step));
                let sum = given.plus(terms, Unit::NONE);
                // Some part of the sum may be too large for the type, and what is computed with it.
                if sum.size + sum.off >= most {
                    overflows = overflows.min(step);
                }
                let above = sum.rounded(unit.steps(step as f64 + 3.0)).off;
                let x = v.modulus(offset(i, c));
                let (d, e) =
                    if one { (1.0, 0.0) } else { (a.modulus(entry(i, i)), radii[0].at(entry(i, i)) * root) };
                let quotient = (above + x * e) / (d - e) + 2.0 * unit.relative * x + unit.absolute;
                let found = if d > e && quotient.is_finite() { quotient } else { UNKNOWN };
                (solved.size[step], solved.off[step]) = (x, found);
                off[offset(i, c)] = found;
            }
            if let Some(whole) = &whole {
                let x: Vec<f64> = (0..n).map(|i| v.modulus(offset(line(i), c))).collect();
                let given: Vec<f64> = (0..n).map(|i| radii[1].at(offset(line(i), c)) * root).collect();
                for (i, found) in whole.radii(&x, &given).into_iter().enumerate() {
                    off[offset(line(i), c)] = off[offset(line(i), c)].min(found);
                }
            }
            if let Some(inverse) = &inverse {
                let given: Vec<f64> = (0..n)
                    .map(|i| offset(line(i), c))
                    .map(|at| b.modulus(at) + radii[1].at(at) * root)
                    .collect();
                for (i, found) in inverse.off(&given, most).into_iter().enumerate() {
                    // Whether it overflows is a decision.
                    if mode == Mode::Hard || found.is_finite() {
                        off[offset(line(i), c)] += found;
                    }
                }
            }
            if mode == Mode::Hard {
                (overflows..n).for_each(|step| off[offset(line(step), c)] = UNKNOWN);
            }
        }
    }
    Some(vec![with_signs_of_zeros(case, &settled(case, 0, &off, mode))])
}

/// What batch normalization knows of its operands: the arrays in order, by feature.
struct Batch<'a> {
    case: &'a Case<'a>,
    arrays: Vec<Numbers>,
    radii: &'a [Radii],
    /// Of each element of the first operand its feature.
    feature: Vec<usize>,
    features: usize,
    /// Elements of a feature.
    count: f64,
    epsilon: f64,
    unit: Unit,
}

impl<'a> Batch<'a> {
    fn new(case: &'a Case<'a>, radii: &'a [Radii]) -> Option<Batch<'a>> {
        let x = case.args.first()?.tensor;
        let index = usize::try_from(case.instr.attrs.int(AttrKey::FeatureIndex)?).ok()?;
        let features = usize::try_from(*x.dims().get(index)?).ok()?;
        let inner: usize = x.sizes().iter().skip(index + 1).product();
        let feature = (0..x.len()).map(|i| i / inner.max(1) % features.max(1)).collect();
        let epsilon = case.instr.attrs.float(AttrKey::Epsilon)?;
        Some(Batch {
            case,
            arrays: case.args.iter().map(|a| Numbers::of(a.tensor)).collect(),
            radii,
            feature,
            features,
            count: x.len() as f64 / features.max(1) as f64,
            epsilon: rounded(ElementType::F32, &[epsilon])[0],
            unit: unit(case, x.element_type())?,
        })
    }

    /// An element of an operand; one that is denormal may count as zero.
    fn ball(&self, array: usize, i: usize) -> Ball {
        let (size, off) = (self.arrays[array].modulus(i), self.radii[array].at(i));
        let flushes = self.case.settings.allowances.flush_denormals
            && Format::of(self.arrays[array].ty).is_some_and(|f| size < f.flushes_below());
        Ball::new(size, if flushes { off + size } else { off })
    }

    /// The product of factors in any order. A partial product that underflows is off by a least number, times
    /// all factors above 1; one that may overflow makes the product unknown.
    fn product(&self, factors: &[Ball], unit: Unit, mode: Mode) -> Ball {
        let one = Ball::new(1.0, 0.0);
        let Some((&first, rest)) = factors.split_first() else { return one };
        let product = rest.iter().fold(first, |product, &x| product.times(x, unit));
        let above: f64 = factors.iter().map(|x| (x.size + x.off).max(1.0)).product();
        if mode == Mode::Hard && self.overflows(Ball::new(above, 0.0)) {
            return Ball { off: UNKNOWN, ..product };
        }
        Ball { off: product.off + rest.len() as f64 * unit.absolute * above, ..product }
    }

    /// The sum over each feature of what an element gives.
    fn sums(&self, mode: Mode, of: impl Fn(usize) -> Ball) -> Vec<Ball> {
        let mut sums = vec![Ball::new(0.0, 0.0); self.features];
        for (i, &f) in self.feature.iter().enumerate() {
            sums[f] = sums[f].plus(of(i), Unit::NONE);
        }
        let steps = self.unit.steps(self.count + 4.0);
        let sums = sums.into_iter().map(|s| s.rounded(steps));
        sums.map(|s| if mode == Mode::Hard && self.overflows(s) { Ball { off: UNKNOWN, ..s } } else { s })
            .collect()
    }

    /// `1 / sqrt(variance + epsilon)` with what the variance may be off by.
    fn scale(&self, variance: f64, off: f64) -> Ball {
        let q = variance + self.epsilon;
        let off = off + 4.0 * self.unit.relative * (variance.abs() + self.epsilon.abs()) + self.unit.absolute;
        if q.is_nan() || off.is_nan() || q <= 2.0 * off {
            return Ball::new(UNKNOWN, UNKNOWN);
        }
        let (g, most) = (1.0 / q.sqrt(), 1.0 / (q - off).sqrt());
        Ball::new(g, (most - g) * (1.0 + 1e-9)).rounded(self.unit.times(6.0))
    }

    /// Whether each step may be one of the operands' type.
    fn by_steps(&self) -> bool {
        let allowed = &self.case.settings.allowances;
        allowed.affine_batch_norm && allowed.narrow_accumulator
    }

    /// The quotient by the number of elements of a feature, which steps in the type have as one of its numbers.
    fn over(&self, b: Ball, mode: Mode) -> Ball {
        let quotient = Ball { size: b.size / self.count, off: b.off / self.count };
        if !self.by_steps() {
            return quotient.rounded(self.unit.times(2.0));
        }
        if mode == Mode::Hard && self.overflows(Ball::new(self.count, self.unit.relative * self.count)) {
            return Ball { off: UNKNOWN, ..quotient };
        }
        quotient.rounded(self.unit.steps(3.0))
    }

    /// Whether an intermediate value may be too large for the type.
    fn overflows(&self, ball: Ball) -> bool {
        let max = Format::of(self.arrays[0].ty).map_or(f64::INFINITY, |f| f.max);
        ball.size + ball.off >= max
    }

    fn results(&self, off: &[Vec<f64>], mode: Mode) -> Found {
        // What is a zero, or less, before the last rounding is a NaN in a type that has neither.
        let each = off.iter().enumerate().map(|(k, off)| {
            let v = Numbers::of(self.case.results[k]);
            let signless = Format::of(v.ty).is_some_and(|f| !f.has_zero());
            if mode == Mode::Soft || !signless {
                return settled(self.case, k, off, mode);
            }
            let of = |(i, &off): (usize, &f64)| if off >= v.modulus(i) { UNKNOWN } else { off };
            settled(self.case, k, &off.iter().enumerate().map(of).collect::<Vec<f64>>(), mode)
        });
        Some(each.collect())
    }
}

/// Of an inference or a gradient, for each element of result `k`: whether the variance and epsilon, each and
/// their sum rounded in the operands' type, are a zero. An engine that computes in that type multiplies by an
/// infinity there.
pub(super) fn zero_denominators(case: &Case<'_>, k: usize) -> Option<Vec<bool>> {
    let variance = match (case.opcode(), k) {
        (Opcode::BatchNormInference, 0) => 4,
        (Opcode::BatchNormGrad, 0 | 1) => 3,
        (_, _) => return None,
    };
    let radii = case.radii(Mode::Soft);
    let batch = Batch::new(case, &radii)?;
    let ty = case.args[0].tensor.element_type();
    let epsilon = rounded(ty, &[batch.epsilon])[0];
    let sums: Vec<f64> = batch.arrays[variance].re.iter().map(|v| v + epsilon).collect();
    let zero: Vec<bool> = rounded(ty, &sums).iter().map(|&s| s == 0.0).collect();
    let of = |f: &usize| zero.get(*f).copied().unwrap_or(false);
    Some(if k == 0 {
        batch.feature.iter().map(of).collect()
    } else {
        (0..batch.features).map(|f| of(&f)).collect()
    })
}

/// `batch-norm-*`. Operands: training (x, scale, offset), inference (x, scale, offset, mean, variance),
/// gradient (x, scale, mean, variance, dy).
pub(super) fn batch_norm(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Found {
    let batch = Batch::new(case, radii)?;
    let u = batch.unit;
    let n = batch.feature.len();
    let over = |b: Ball| batch.over(b, mode);
    // The distance of an element from a mean that is an operand.
    let from_mean = |mean: usize, i: usize| {
        let (x, m) = (batch.ball(0, i), batch.ball(mean, batch.feature[i]));
        let distance = batch.arrays[0].re[i] - batch.arrays[mean].re[batch.feature[i]];
        let distance = Ball::new(distance, x.off + m.off).rounded(u.times(2.0));
        // Times a zero it is a NaN then.
        let overflows = mode == Mode::Hard && batch.overflows(distance);
        if overflows { Ball { off: UNKNOWN, ..distance } } else { distance }
    };
    let normalized = |centered: &dyn Fn(usize) -> Ball, g: &[Ball]| -> Vec<f64> {
        let element = |i: usize| {
            let f = batch.feature[i];
            let product = batch.product(&[centered(i), g[f], batch.ball(1, f)], u.times(2.0), mode);
            product.plus(batch.ball(2, f), u.times(2.0)).off
        };
        (0..n).map(element).collect()
    };
    if case.opcode() == Opcode::BatchNormInference {
        // The product of the operand and that of the mean, each by itself, are no larger than that of the sum
        // of both magnitudes.
        let apart = |i: usize| batch.ball(0, i).plus(batch.ball(3, batch.feature[i]), u.times(2.0));
        let near = |i: usize| from_mean(3, i);
        let centered: &dyn Fn(usize) -> Ball =
            if case.settings.allowances.affine_batch_norm { &apart } else { &near };
        let g = (0..batch.features).map(|f| batch.scale(batch.arrays[4].re[f], batch.radii[4].at(f)));
        return batch.results(&[normalized(centered, &g.collect::<Vec<_>>())], mode);
    }
    if case.opcode() == Opcode::BatchNormTraining {
        let mean: Vec<Ball> = batch.sums(mode, |i| batch.ball(0, i)).into_iter().map(over).collect();
        let squares = batch.sums(mode, |i| batch.ball(0, i).times(batch.ball(0, i), u));
        // The mean of squares less the square of the mean, at the worst.
        let variance: Vec<f64> = squares
            .into_iter()
            .map(over)
            .zip(&mean)
            .map(|(s, &m)| s.plus(m.times(m, u.times(2.0)), u.times(2.0)).off)
            .collect();
        let v = Numbers::of(case.results.get(2)?);
        let g: Vec<Ball> =
            variance.iter().zip(&v.re).map(|(&off, &v)| batch.scale(v, off + u.relative * v.abs())).collect();
        let centered = |i: usize| batch.ball(0, i).plus(mean[batch.feature[i]], u.times(2.0));
        let y = normalized(&centered, &g);
        let mean = mean.into_iter().map(|m| m.off).collect();
        return batch.results(&[y, mean, variance], mode);
    }
    let features = batch.features;
    let g: Vec<Ball> =
        (0..features).map(|f| batch.scale(batch.arrays[3].re[f], batch.radii[3].at(f))).collect();
    let centered = |i: usize| from_mean(2, i);
    let offset = batch.sums(mode, |i| batch.ball(4, i));
    let product = batch.sums(mode, |i| batch.ball(4, i).times(centered(i), u.times(2.0)));
    let scale = (0..features).map(|f| batch.product(&[product[f], g[f]], u.times(2.0), mode).off);
    let scale: Vec<f64> = scale.collect();
    let dx = (0..n).map(|i| {
        let f = batch.feature[i];
        let third = [centered(i), g[f], g[f], over(product[f])];
        let third = batch.product(&third, u.times(4.0), mode);
        let inner = batch.ball(4, i).plus(over(offset[f]), u.times(4.0)).plus(third, u.times(4.0));
        let off = batch.product(&[inner, g[f], batch.ball(1, f)], u.times(4.0), mode).off;
        if !batch.by_steps() {
            return off;
        }
        // All but the factor multiplied with the number of elements, by which the factor is divided.
        let count = Ball::new(batch.count, 0.0).rounded(u.times(2.0));
        let first = batch.product(&[batch.ball(4, i), count], u.times(2.0), mode);
        let third = batch.product(&[centered(i), g[f], g[f], product[f]], u.times(4.0), mode);
        let inner = first.plus(offset[f], u.times(2.0)).plus(third, u.times(2.0));
        let one = over(Ball::new(1.0, 0.0));
        off.max(batch.product(&[inner, g[f], batch.ball(1, f), one], u.times(4.0), mode).off)
    });
    let dx: Vec<f64> = dx.collect();
    batch.results(&[dx, scale, offset.into_iter().map(|o| o.off).collect()], mode)
}
