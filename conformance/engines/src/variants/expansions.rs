//! Operations with several steps written out in the operands' own type, as compilers that have no kernel for
//! them do: normalizations, Cholesky factorizations, and selections in windows.
//!
//! The reference rounds such an operation once. Written out, each step rounds, what overflows on the way
//! stays infinite, and a variance or a pivot that is 0 but for rounding has the sign that rounding gives it.
//! The formulas are those that XLA:CPU's dumps show before and after its expansion passes; they are the
//! definitions, with a choice of the order of factors.
//!
//! - **Normalization.** Training: the variance is the mean of squares less the square of the mean, 0 if that
//!   is negative. Inference: `x * w + (offset - mean * w)` with `w = scale * rsqrt(variance + epsilon)`.
//!   Gradient: `scale * rsqrt(v) / n * (dy * n - sum(dy) - c * sum(dy * c) / v)` with `c = x - mean`,
//!   `v = variance + epsilon`.
//! - **Widened.** Normalizations and factorizations of narrow floats in f16 (of `bf16` and `f8e8m0fnu` in
//!   f32), where float normalization precedes the expansion: only operands and results are rounded to the
//!   type.
//! - **Factorization.** Column by column: `l[i][j] = (a[i][j] - sum) / sqrt(a[j][j] - sum)`, the diagonal
//!   too, of complex matrices by the root of a real part; all is NaN if a root is.
//! - **Transform.** Factors of a Fourier transform whose real or imaginary part is 0 are not multiplied by:
//!   an infinity or a NaN does not reach the part of the result that it has no share in. The definition has
//!   `0 * inf` there, algorithms by additions and exchanges of parts do not.
//! - **Selection.** A `reduce-window` of elements with their indices, and a `scatter` of the sources to the
//!   indices that it gives. The scatter combines `(accumulator, source)`.

use hlo::attrs::{AttrKey, AttrValue, Attrs, Direction, FftType, WindowDim};
use hlo::builder::ComputationBuilder;
use hlo::{ComputationId, ElementType, InstrId, Module, Opcode, Shape};
use hlo_execution::allowances::normalized;
use hlo_opt::passes::edit::{Edit, each_outside_folds, ints};
use hlo_opt::passes::{Fuel, Pass};

use super::inversion;

/// The expansions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expansion {
    /// `batch-norm-*`.
    Normalization,
    /// `batch-norm-*` and `cholesky` of narrow floats in the type that these are computed in: compilers that
    /// normalize floats first write the steps out in that.
    Widened,
    /// `cholesky` of real matrices of at most [`MAX_ROWS`] rows.
    Factorization,
    /// `triangular-solve` ([`inversion`]).
    Inversion,
    /// `fft` of blocks of at most [`MAX_FFT_POINTS`] points.
    Transform,
    /// `select-and-scatter`, which goes through a window row by row.
    Selection,
    /// The same, column by column: the first dimension fastest.
    SelectionByColumns,
}

/// The maximum number of rows of a matrix that is factored or inverted row by row.
pub(super) const MAX_ROWS: i64 = 16;

/// The maximum number of points of a Fourier transform that is written out.
const MAX_FFT_POINTS: i64 = 128;

impl Pass for Expansion {
    fn name(&self) -> &str {
        match self {
            Expansion::Normalization => "normalization-steps",
            Expansion::Widened => "steps-widened",
            Expansion::Factorization => "cholesky-steps",
            Expansion::Inversion => "triangular-inverse",
            Expansion::Transform => "transform-by-parts",
            Expansion::Selection => "selection-steps",
            Expansion::SelectionByColumns => "selection-by-columns",
        }
    }

    fn doc(&self) -> &str {
        match self {
            Expansion::Normalization => {
                "the steps of batch normalizations, each rounded in the operands' type"
            }
            Expansion::Widened => {
                "batch normalizations and Cholesky factorizations of narrow floats in f16 or f32"
            }
            Expansion::Factorization => "the steps of Cholesky factorizations, each rounded in their type",
            Expansion::Inversion => "triangular systems by the inverse of the matrix",
            Expansion::Transform => {
                "Fourier transforms in which a factor of 0 hides what it is multiplied by"
            }
            Expansion::Selection => "a window's selection and a scatter for select-and-scatter",
            Expansion::SelectionByColumns => "the same, windows column by column",
        }
    }

    fn run(&self, module: &mut Module, fuel: &mut Fuel) -> u64 {
        each_outside_folds(module, fuel, |e| match (self, e.at().opcode) {
            (Expansion::Normalization, Opcode::BatchNormTraining) => Steps::of(e)?.training(e),
            (Expansion::Normalization, Opcode::BatchNormInference) => Steps::of(e)?.inference(e),
            (Expansion::Normalization, Opcode::BatchNormGrad) => Steps::of(e)?.gradients(e),
            (
                Expansion::Widened,
                Opcode::BatchNormTraining
                | Opcode::BatchNormInference
                | Opcode::BatchNormGrad
                | Opcode::Cholesky,
            ) => widened(e),
            (Expansion::Factorization, Opcode::Cholesky) => factored(e),
            (Expansion::Inversion, Opcode::TriangularSolve) => inversion::solved(e),
            (Expansion::Transform, Opcode::Fft) => transformed(e),
            (Expansion::Selection, Opcode::SelectAndScatter) => selected(e, false),
            (Expansion::SelectionByColumns, Opcode::SelectAndScatter) => selected(e, true),
            (_, _) => None,
        })
    }
}

/// The operation on operands that are converted to the type they are computed in, and its results converted
/// back.
fn widened(e: &mut Edit<'_>) -> Option<InstrId> {
    let narrow = |ty: ElementType| ty.is_float() && normalized(ty) != ty;
    let mut operands = e.at().operands().to_vec();
    if !operands.iter().all(|&x| e.array(x).is_some_and(|a| narrow(a.element_type))) {
        return None;
    }
    let wide = operands
        .iter()
        .filter_map(|&x| Some(normalized(e.array(x)?.element_type)))
        .max_by_key(|t| t.bits())?;
    for x in &mut operands {
        *x = e.convert(*x, wide)?;
    }
    let (opcode, attrs, shape) = (e.at().opcode, e.at().attrs.clone(), e.at().shape.clone());
    let result = e.add(opcode, &operands, attrs)?;
    let Shape::Tuple(parts) = shape else { return e.convert(result, shape.element_type()?) };
    let mut results = Vec::new();
    for (index, part) in (0..).zip(parts.iter()) {
        let element = e.get(result, index)?;
        results.push(e.convert(element, part.element_type()?)?);
    }
    e.tuple(&results)
}

/// 0 of a type that has it.
fn zero(e: &mut Edit<'_>, ty: ElementType) -> Option<InstrId> {
    let zero = e.scalar_bits(ElementType::S32, 0);
    (ty != ElementType::F8E8M0FNU).then_some(())?;
    e.convert(zero, ty)
}

/// The state that all steps of a normalization share.
struct Steps {
    ty: ElementType,
    dims: Vec<i64>,
    feature: i64,
}

impl Steps {
    fn of(e: &Edit<'_>) -> Option<Steps> {
        let first = e.array(e.operand(0)?)?;
        let (ty, dims) = (first.element_type, first.dims.to_vec());
        let same = |&o: &InstrId| e.array(o).is_some_and(|a| a.element_type == ty);
        let results = e.at().shape.leaves().iter().all(|s| s.element_type() == Some(ty));
        let feature = e.at().attrs.int(AttrKey::FeatureIndex)?;
        let fits = usize::try_from(feature).is_ok_and(|f| f < dims.len());
        let real = ty.is_float() && ty != ElementType::F8E8M0FNU;
        (real && fits && results && e.at().operands().iter().all(same)).then_some(Steps { ty, dims, feature })
    }

    /// A value of each feature, at all of its elements.
    fn spread(&self, e: &mut Edit<'_>, x: InstrId) -> Option<InstrId> {
        e.broadcast(x, &self.dims, &[self.feature])
    }

    /// The number of elements of a feature, at each element of `like`.
    fn count(&self, e: &mut Edit<'_>, like: InstrId) -> Option<InstrId> {
        let others = (0i64..).zip(&self.dims).filter(|(d, _)| *d != self.feature).map(|(_, &n)| n);
        let n = u32::try_from(others.product::<i64>()).ok()?;
        let n = e.scalar_bits(ElementType::U32, n.into());
        let n = e.convert(n, self.ty)?;
        e.fill(n, like)
    }

    fn sum(&self, e: &mut Edit<'_>, x: InstrId) -> Option<InstrId> {
        let wide = normalized(self.ty);
        let (x, zero) = (e.convert(x, wide)?, zero(e, wide)?);
        let add = e.region(Opcode::Add, wide)?;
        let dims: Vec<i64> = (0..self.dims.len() as i64).filter(|&d| d != self.feature).collect();
        let attrs = Attrs::new()
            .with(AttrKey::Dimensions, ints(&dims))
            .with(AttrKey::ToApply, AttrValue::Computation(add));
        let sum = e.add(Opcode::Reduce, &[x, zero], attrs)?;
        e.convert(sum, self.ty)
    }

    fn mean(&self, e: &mut Edit<'_>, x: InstrId) -> Option<InstrId> {
        let sum = self.sum(e, x)?;
        let n = self.count(e, sum)?;
        e.binary(Opcode::Divide, sum, n)
    }

    /// `variance + epsilon`
    fn denominator(&self, e: &mut Edit<'_>, variance: InstrId) -> Option<InstrId> {
        let epsilon = e.at().attrs.float(AttrKey::Epsilon)? as f32;
        let epsilon = e.scalar_bits(ElementType::F32, epsilon.to_bits().into());
        let epsilon = e.convert(epsilon, self.ty)?;
        let epsilon = e.fill(epsilon, variance)?;
        e.binary(Opcode::Add, variance, epsilon)
    }

    fn training(&self, e: &mut Edit<'_>) -> Option<InstrId> {
        let [x, scale, offset] = e.operands()?;
        let mean = self.mean(e, x)?;
        let square = e.binary(Opcode::Multiply, x, x)?;
        let squares = self.mean(e, square)?;
        let square = e.binary(Opcode::Multiply, mean, mean)?;
        let difference = e.binary(Opcode::Subtract, squares, square)?;
        let zero = zero(e, self.ty)?;
        let zeros = e.fill(zero, difference)?;
        let variance = e.binary(Opcode::Maximum, difference, zeros)?;
        let denominator = self.denominator(e, variance)?;
        let factor = e.unary(Opcode::Rsqrt, denominator)?;
        let [factor, scale, offset, center] = [factor, scale, offset, mean].map(|v| self.spread(e, v));
        let centered = e.binary(Opcode::Subtract, x, center?)?;
        let normalized = e.binary(Opcode::Multiply, centered, factor?)?;
        let scaled = e.binary(Opcode::Multiply, normalized, scale?)?;
        let moved = e.binary(Opcode::Add, scaled, offset?)?;
        e.tuple(&[moved, mean, variance])
    }

    fn inference(&self, e: &mut Edit<'_>) -> Option<InstrId> {
        let [x, scale, offset, mean, variance] = e.operands()?;
        let denominator = self.denominator(e, variance)?;
        let root = e.unary(Opcode::Rsqrt, denominator)?;
        let factor = e.binary(Opcode::Multiply, scale, root)?;
        let center = e.binary(Opcode::Multiply, mean, factor)?;
        let offset = e.binary(Opcode::Subtract, offset, center)?;
        let [factor, offset] = [factor, offset].map(|v| self.spread(e, v));
        let scaled = e.binary(Opcode::Multiply, x, factor?)?;
        e.binary(Opcode::Add, scaled, offset?)
    }

    fn gradients(&self, e: &mut Edit<'_>) -> Option<InstrId> {
        let [x, scale, mean, variance, dy] = e.operands()?;
        let denominator = self.denominator(e, variance)?;
        let root = e.unary(Opcode::Rsqrt, denominator)?;
        let factor = e.binary(Opcode::Multiply, scale, root)?;
        let factor = self.spread(e, factor)?;
        let n = self.count(e, factor)?;
        let factor = e.binary(Opcode::Divide, factor, n)?;
        let center = self.spread(e, mean)?;
        let centered = e.binary(Opcode::Subtract, x, center)?;
        let total = self.sum(e, dy)?;
        let product = e.binary(Opcode::Multiply, dy, centered)?;
        let correlation = self.sum(e, product)?;
        let [spread, denominators, totals] = [correlation, denominator, total].map(|v| self.spread(e, v));
        let third = e.binary(Opcode::Multiply, spread?, centered)?;
        let third = e.binary(Opcode::Divide, third, denominators?)?;
        let first = e.binary(Opcode::Multiply, dy, n)?;
        let inner = e.binary(Opcode::Subtract, first, totals?)?;
        let inner = e.binary(Opcode::Subtract, inner, third)?;
        let dx = e.binary(Opcode::Multiply, factor, inner)?;
        let of_scale = e.binary(Opcode::Multiply, correlation, root)?;
        e.tuple(&[dx, of_scale, total])
    }
}

/// A Cholesky factorization column by column.
fn factored(e: &mut Edit<'_>) -> Option<InstrId> {
    let [x] = e.operands()?;
    let array = e.array(x)?;
    let (ty, dims) = (array.element_type, array.dims.to_vec());
    let rank = dims.len();
    let &[.., n, _] = dims.as_slice() else { return None };
    if !(ty.is_float() || ty.is_complex()) || n > MAX_ROWS || dims.contains(&0) {
        return None;
    }
    let lower = e.at().attrs.bool(AttrKey::Lower);
    let (rows, columns) = (rank as i64 - 2, rank as i64 - 1);
    let mut transposed: Vec<i64> = (0..rank as i64).collect();
    transposed.swap(rank - 2, rank - 1);
    let adjoint = |e: &mut Edit<'_>, x: InstrId| {
        let x = e.transpose(x, &transposed)?;
        conjugate(e, x)
    };
    let a = if lower { x } else { adjoint(e, x)? };
    // Of f8e8m0fnu a NaN, as is all that is computed from it.
    let zero = e.scalar_bits(ElementType::S32, 0);
    let zero = e.convert(zero, ty)?;
    let zeros = e.fill_dims(zero, &dims)?;
    let index = |e: &mut Edit<'_>, dimension: i64| {
        let attrs = Attrs::new().with(AttrKey::IotaDimension, AttrValue::Int(dimension));
        e.shaped(Opcode::Iota, Shape::array(ElementType::S32, &dims), &[], attrs)
    };
    let (row, column) = (index(e, rows)?, index(e, columns)?);
    let below = e.compare(Direction::Ge, row, column)?;
    let batch: Vec<i64> = (0..rows).collect();
    let contraction = Attrs::new()
        .with(AttrKey::LhsContractingDims, ints(&[columns]))
        .with(AttrKey::RhsContractingDims, ints(&[columns]))
        .with(AttrKey::LhsBatchDims, ints(&batch))
        .with(AttrKey::RhsBatchDims, ints(&batch));
    let of_batch = &dims[..rank - 2];
    let (mut factor, mut failed) = (zeros, None);
    for j in 0..n {
        let other = conjugate(e, factor)?;
        let sums = e.shaped(Opcode::Dot, Shape::array(ty, &dims), &[factor, other], contraction.clone())?;
        let left = e.binary(Opcode::Subtract, a, sums)?;
        let pivot = e.cut(left, rank - 2, j, j + 1)?;
        let pivot = e.cut(pivot, rank - 1, j, j + 1)?;
        let pivot = e.reshape(pivot, of_batch)?;
        let pivot = if ty.is_complex() { e.unary(Opcode::Real, pivot)? } else { pivot };
        let root = e.unary(Opcode::Sqrt, pivot)?;
        let divisor = e.broadcast(root, &dims, &batch)?;
        let quotient = if ty.is_complex() {
            let [re, im] = [e.unary(Opcode::Real, left)?, e.unary(Opcode::Imag, left)?];
            let (re, im) = (e.binary(Opcode::Divide, re, divisor)?, e.binary(Opcode::Divide, im, divisor)?);
            e.binary(Opcode::Complex, re, im)?
        } else {
            e.binary(Opcode::Divide, left, divisor)?
        };
        let this = e.scalar_bits(ElementType::S32, u32::try_from(j).ok()?.into());
        let this = e.fill_dims(this, &dims)?;
        let here = e.compare(Direction::Eq, column, this)?;
        let here = e.binary(Opcode::And, here, below)?;
        factor = e.select(here, quotient, factor)?;
        let fails = e.compare(Direction::Ne, root, root)?;
        failed = Some(match failed {
            Some(before) => e.binary(Opcode::Or, before, fails)?,
            None => fails,
        });
    }
    let failed = e.broadcast(failed?, &dims, &batch)?;
    let nan = e.scalar_bits(ElementType::F32, f32::NAN.to_bits().into());
    let nan = e.convert(nan, ty)?;
    let nans = e.fill_dims(nan, &dims)?;
    let result = e.select(failed, nans, factor)?;
    if lower { Some(result) } else { adjoint(e, result) }
}

/// The complex conjugate; what is real is its own.
fn conjugate(e: &mut Edit<'_>, x: InstrId) -> Option<InstrId> {
    if !e.array(x)?.element_type.is_complex() {
        return Some(x);
    }
    let [re, im] = [e.unary(Opcode::Real, x)?, e.unary(Opcode::Imag, x)?];
    let im = e.unary(Opcode::Negate, im)?;
    e.binary(Opcode::Complex, re, im)
}

/// For each point of the operand and each of the result whether the factor's cosine, or its sine, is
/// positive, and whether it is negative: 1 or 0, by operand and result.
struct Signs {
    points: [i64; 2],
    /// Of the cosine and of minus the sine of the angle, positive and negative ones.
    each: [[Vec<f32>; 2]; 2],
}

impl Signs {
    /// Of a transform of these lengths whose operand has `taken` and whose result has `given` points along each
    /// dimension. `inverse`: the angles have the other sign.
    fn of(lengths: &[i64], taken: &[i64], given: &[i64], inverse: bool) -> Signs {
        let block: i64 = lengths.iter().product();
        let points: i64 = taken.iter().product();
        let results: i64 = given.iter().product();
        let mut each: [[Vec<f32>; 2]; 2] = Default::default();
        let coordinates = |mut n: i64, sizes: &[i64]| {
            let mut at = vec![0; sizes.len()];
            for (at, size) in at.iter_mut().zip(sizes).rev() {
                (*at, n) = (n % size, n / size);
            }
            at
        };
        for from in 0..points {
            let j = coordinates(from, taken);
            for to in 0..results {
                let k = coordinates(to, given);
                // The angle is this multiple of `2 pi / block`.
                let angle: i64 =
                    (0..lengths.len()).map(|d| j[d] * k[d] % lengths[d] * (block / lengths[d])).sum();
                let angle = if inverse { -angle } else { angle }.rem_euclid(block);
                // The sign of the cosine of the angle `quarters / block * pi / 2`.
                let sign = |quarters: i64| match quarters.rem_euclid(4 * block) {
                    q if q == block || q == 3 * block => 0,
                    q if q < block || q > 3 * block => 1,
                    _ => -1,
                };
                // -sin(t) = cos(t + a quarter)
                for (part, quarters) in [(0, 4 * angle), (1, 4 * angle + block)] {
                    let sign = sign(quarters);
                    each[part][0].push(f32::from(u8::from(sign > 0)));
                    each[part][1].push(f32::from(u8::from(sign < 0)));
                }
            }
        }
        Signs { points: [points, results], each }
    }
}

/// A Fourier transform of what is finite, and what is not added where it has a share.
fn transformed(e: &mut Edit<'_>) -> Option<InstrId> {
    let [x] = e.operands()?;
    let (from, to) = (e.array(x)?.clone(), e.array(e.id())?.clone());
    let inverse = match e.at().attrs.fft_type()? {
        FftType::Fft | FftType::Rfft => false,
        FftType::Ifft | FftType::Irfft => true,
    };
    let lengths = e.at().attrs.ints(AttrKey::FftLength)?.to_vec();
    let outer = from.dims.len().checked_sub(lengths.len())?;
    let block: i64 = from.dims[outer..].iter().product();
    if lengths.iter().product::<i64>() > MAX_FFT_POINTS || from.dims.contains(&0) || to.dims.contains(&0) {
        return None;
    }
    let signs = Signs::of(&lengths, &from.dims[outer..], &to.dims[outer..], inverse);
    let batch: i64 = from.dims[..outer].iter().product();
    let complex = from.element_type.is_complex();
    let real = if complex { from.element_type.real_part() } else { from.element_type };
    let zero = zero(e, real)?;
    let zeros = e.fill_dims(zero, &from.dims)?;
    let inputs = if complex { vec![e.unary(Opcode::Real, x)?, e.unary(Opcode::Imag, x)?] } else { vec![x] };
    let mut finite = Vec::new();
    for &part in &inputs {
        let is = e.unary(Opcode::IsFinite, part)?;
        finite.push(e.select(is, part, zeros)?);
    }
    let finite = match finite[..] {
        [re, im] => e.binary(Opcode::Complex, re, im)?,
        _ => finite[0],
    };
    let whole = e.again(&[finite])?;
    let mut parts = Vec::new();
    // A real result has the real part alone; those of the conjugates that are left out are the same.
    let outputs: &[Option<Opcode>] =
        if to.element_type.is_complex() { &[Some(Opcode::Real), Some(Opcode::Imag)] } else { &[None] };
    for (output, opcode) in outputs.iter().enumerate() {
        let own = opcode.map_or(Some(whole), |part| e.unary(part, whole))?;
        // Of each input the factor of this part: (cos, -sin) of a real part, (sin, cos) of an imaginary one.
        let mut counts: [Option<InstrId>; 3] = [None; 3];
        for (input, &part) in inputs.iter().enumerate() {
            let of = &signs.each[usize::from(input != output)];
            // sin is minus that.
            let [positive, negative] =
                if input == 1 && output == 0 { [&of[1], &of[0]] } else { [&of[0], &of[1]] };
            let [positive, negative] = [positive, negative].map(|signs_of| {
                let literal = hlo::ArrayLiteral::new(
                    hlo::Dims::from_slice(&signs.points),
                    hlo::Buffer::F32(signs_of.clone()),
                );
                literal.map(|l| e.constant(hlo::Literal::Array(l)))
            });
            let (positive, negative) = (positive?, negative?);
            let [up, down, nan] = kinds(e, part, real, [batch, block])?;
            let shares = [
                [(up, positive), (down, negative)],
                [(up, negative), (down, positive)],
                [(nan, positive), (nan, negative)],
            ];
            for (count, shares) in counts.iter_mut().zip(shares) {
                for (elements, factors) in shares {
                    let attrs = Attrs::new()
                        .with(AttrKey::LhsContractingDims, ints(&[1]))
                        .with(AttrKey::RhsContractingDims, ints(&[0]));
                    let share = e.add(Opcode::Dot, &[elements, factors], attrs)?;
                    *count = Some(match *count {
                        Some(before) => e.binary(Opcode::Add, before, share)?,
                        None => share,
                    });
                }
            }
        }
        let mut has = Vec::new();
        for count in counts {
            let count = e.reshape(count?, &to.dims)?;
            let none = e.scalar_bits(ElementType::F32, 0);
            let none = e.fill(none, count)?;
            has.push(e.compare(Direction::Gt, count, none)?);
        }
        let [plus, minus, nan] = has[..] else { return None };
        let both = e.binary(Opcode::And, plus, minus)?;
        let nan = e.binary(Opcode::Or, nan, both)?;
        let mut value = own;
        for (has, x) in [(plus, f32::INFINITY), (minus, f32::NEG_INFINITY), (nan, f32::NAN)] {
            let x = e.scalar_bits(ElementType::F32, x.to_bits().into());
            let x = e.convert(x, real)?;
            let x = e.fill(x, own)?;
            value = e.select(has, x, value)?;
        }
        parts.push(value);
    }
    match parts[..] {
        [re, im] => e.binary(Opcode::Complex, re, im),
        _ => parts.pop(),
    }
}

/// Where an array of real numbers is plus infinity, minus infinity and NaN: 1 there, 0 elsewhere, in these
/// dimensions.
fn kinds(e: &mut Edit<'_>, x: InstrId, ty: ElementType, dims: [i64; 2]) -> Option<[InstrId; 3]> {
    let infinity = e.scalar_bits(ElementType::F32, f32::INFINITY.to_bits().into());
    let infinity = e.convert(infinity, ty)?;
    let infinity = e.fill(infinity, x)?;
    let negative = e.unary(Opcode::Negate, infinity)?;
    let all = [
        e.compare(Direction::Eq, x, infinity)?,
        e.compare(Direction::Eq, x, negative)?,
        e.compare(Direction::Ne, x, x)?,
    ];
    let mut kinds = [x; 3];
    for (kind, is) in kinds.iter_mut().zip(all) {
        let is = e.convert(is, ElementType::F32)?;
        *kind = e.reshape(is, &dims)?;
    }
    Some(kinds)
}

/// Selection by a fold of elements and their indices, and a scatter.
fn selected(e: &mut Edit<'_>, by_columns: bool) -> Option<InstrId> {
    let [x, source, init] = e.operands()?;
    let attrs = e.at().attrs.clone();
    let (select, scatter) = (attrs.computation(AttrKey::Select)?, attrs.computation(AttrKey::Scatter)?);
    let array = e.array(x)?;
    let (ty, dims) = (array.element_type, array.dims.to_vec());
    let windows = e.array(source)?.dims.to_vec();
    let window = attrs.window()?.clone();
    let rank = dims.len();
    // One dimension alone has one order.
    let longer = window.dims.iter().filter(|w: &&WindowDim| w.size > 1).count();
    let typed = [source, init].iter().all(|&o| e.array(o).is_some_and(|a| a.element_type == ty));
    if rank == 0 || !typed || by_columns && longer < 2 {
        return None;
    }
    let region = selection(e, select, ty, rank)?;
    let reversed: Vec<i64> = (0..rank as i64).rev().collect();
    let transpose =
        |e: &mut Edit<'_>, x: InstrId| if by_columns { e.transpose(x, &reversed) } else { Some(x) };
    let mut operands = vec![transpose(e, x)?];
    for d in 0..rank as i64 {
        let attrs = Attrs::new().with(AttrKey::IotaDimension, AttrValue::Int(d));
        let index = e.shaped(Opcode::Iota, Shape::array(ElementType::S64, &dims), &[], attrs)?;
        operands.push(transpose(e, index)?);
    }
    let none = e.scalar_bits(ElementType::S64, u128::from(u64::MAX));
    operands.push(init);
    operands.extend(std::iter::repeat_n(none, rank));
    let mut over = window;
    if by_columns {
        over.dims.reverse();
    }
    let fold = Attrs::new()
        .with(AttrKey::Window, AttrValue::Window(Box::new(over)))
        .with(AttrKey::ToApply, AttrValue::Computation(region));
    let found = e.add(Opcode::ReduceWindow, &operands, fold)?;
    let mut with_one = windows.clone();
    with_one.push(1);
    let mut parts = Vec::new();
    for d in 0..rank as i64 {
        let index = e.get(found, d + 1)?;
        let index = transpose(e, index)?;
        parts.push(e.reshape(index, &with_one)?);
    }
    let indices = e.concatenate(&parts, rank as i64)?;
    let start = e.fill_dims(init, &dims)?;
    let all: Vec<i64> = (0..rank as i64).collect();
    let to = Attrs::new()
        .with(AttrKey::UpdateWindowDims, ints(&[]))
        .with(AttrKey::InsertedWindowDims, ints(&all))
        .with(AttrKey::ScatterDimsToOperandDims, ints(&all))
        .with(AttrKey::IndexVectorDim, AttrValue::Int(rank as i64))
        .with(AttrKey::ToApply, AttrValue::Computation(scatter));
    e.add(Opcode::Scatter, &[start, indices, source], to)
}

/// Of two elements with their indices the one that `select` keeps; one without an index (-1) gives way.
fn selection(e: &mut Edit<'_>, select: ComputationId, ty: ElementType, rank: usize) -> Option<ComputationId> {
    let mut b = ComputationBuilder::new(e.module, "selection");
    let (element, index) = (Shape::scalar(ty), Shape::scalar(ElementType::S64));
    let side = |b: &mut ComputationBuilder<'_>| {
        let x = b.parameter("element", element.clone());
        let indices: Vec<InstrId> = (0..rank).map(|_| b.parameter("index", index.clone())).collect();
        (x, indices)
    };
    let ((x, from), (y, to)) = (side(&mut b), side(&mut b));
    let built = (|| {
        let keeps = b.call(select, &[x, y])?;
        let none = b.scalar(-1i64);
        let is = b.compare(Direction::Ne, from[0], none)?;
        let other = b.compare(Direction::Eq, to[0], none)?;
        let keeps = b.binary(Opcode::And, keeps, is)?;
        let keeps = b.binary(Opcode::Or, keeps, other)?;
        let mut kept = vec![b.select(keeps, x, y)?];
        for (from, to) in from.into_iter().zip(to) {
            kept.push(b.select(keeps, from, to)?);
        }
        b.tuple(&kept)
    })();
    let computation = b.finish();
    e.before_caller(computation);
    built.ok().map(|_| computation)
}
