//! Linear algebra, transforms, normalization, random bits.

use hlo::attrs::{AttrKey, AttrValue, FftType, PaddingDim, RngAlgorithm, Transpose};
use hlo::{InstrId, Opcode};

use super::edit::{Edit, ints};
use super::{Family, Row, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "batch-norm-epsilon-dropped",
        Family::Linear,
        "`batch-norm` divides by the standard deviation without epsilon.",
        "@bneps",
        &[Opcode::BatchNormTraining, Opcode::BatchNormInference, Opcode::BatchNormGrad],
        batch_norm_epsilon_dropped,
    ),
    row(
        "batch-norm-variance-unbiased",
        Family::Linear,
        "`batch-norm-training` gives the variance of a sample: it divides by one less than the number of elements.",
        "@bnvar",
        &[Opcode::BatchNormTraining],
        batch_norm_variance_unbiased,
    ),
    row(
        "triangular-solve-adjoint-not-conjugated",
        Family::Linear,
        "A `triangular-solve` with the adjoint of a complex matrix uses its transpose.",
        "@tsadj",
        &[Opcode::TriangularSolve],
        triangular_solve_adjoint_not_conjugated,
    ),
    row(
        "triangular-solve-unit-diagonal-ignored",
        Family::Linear,
        "A `triangular-solve` of a matrix with a unit diagonal divides by what is stored there.",
        "https://github.com/tensorflow/tensorflow/issues/79090",
        &[Opcode::TriangularSolve],
        triangular_solve_unit_diagonal_ignored,
    ),
    row(
        "triangular-solve-transpose-keeps-triangle",
        Family::Linear,
        "A `triangular-solve` transposes its matrix and then reads the triangle that it was told to read before.",
        "@tstri",
        &[Opcode::TriangularSolve],
        triangular_solve_transpose_keeps_triangle,
    ),
    row(
        "cholesky-reads-other-triangle",
        Family::Linear,
        "`cholesky` reads the triangle that it should not.",
        "@chol",
        &[Opcode::Cholesky],
        cholesky_reads_other_triangle,
    ),
    row(
        "inverse-fft-not-scaled",
        Family::Linear,
        "An inverse `fft` is not divided by the number of points of its last dimension.",
        "https://github.com/openxla/xla/issues/45009",
        &[Opcode::Fft],
        inverse_fft_not_scaled,
    ),
    row(
        "irfft-odd-length-as-even",
        Family::Linear,
        "An inverse real `fft` of an odd length is done in the even length below, with a zero at the end.",
        "@irfft",
        &[Opcode::Fft],
        irfft_odd_length_as_even,
    ),
    row(
        "threefry-halves-interleaved",
        Family::Linear,
        "The two words of each Threefry block are neighbours in the result instead of being in its two halves.",
        "@threefry",
        &[Opcode::RngBitGenerator],
        threefry_halves_interleaved,
    ),
    row(
        "random-state-not-advanced",
        Family::Linear,
        "`rng-bit-generator` gives back the state that it was given.",
        "@rngstate",
        &[Opcode::RngBitGenerator],
        random_state_not_advanced,
    ),
];

fn batch_norm_epsilon_dropped(e: &mut Edit<'_>) -> Option<InstrId> {
    e.one_of(&[Opcode::BatchNormTraining, Opcode::BatchNormInference, Opcode::BatchNormGrad])?;
    (e.me().attrs.float(AttrKey::Epsilon)? != 0.0).then_some(())?;
    e.with_attr(AttrKey::Epsilon, AttrValue::Float(0.0))
}

fn batch_norm_variance_unbiased(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::BatchNormTraining)?;
    let (operands, attrs) = (e.operands(), e.attrs());
    let shape = e.array(operands[0])?;
    let feature = usize::try_from(attrs.int(AttrKey::FeatureIndex)?).ok()?;
    let n = shape.checked_elements()? / shape.dims[feature].max(1);
    (n > 1).then_some(())?;
    let all = e.again(&operands, attrs)?;
    let (result, mean, variance) = (e.get(all, 0)?, e.get(all, 1)?, e.get(all, 2)?);
    let factor = e.number(variance, n as f64 / (n - 1) as f64)?;
    let variance = e.bin(Opcode::Multiply, variance, factor)?;
    e.tuple(&[result, mean, variance])
}

fn triangular_solve_adjoint_not_conjugated(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::TriangularSolve)?;
    e.complex(e.operand(0)?)?;
    (e.me().attrs.transpose() == Some(&Transpose::Adjoint)).then_some(())?;
    e.with_attr(AttrKey::TransposeA, AttrValue::Transpose(Transpose::Transpose))
}

fn triangular_solve_unit_diagonal_ignored(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::TriangularSolve)?;
    e.me().attrs.bool(AttrKey::UnitDiagonal).then_some(())?;
    e.with_attr(AttrKey::UnitDiagonal, AttrValue::Bool(false))
}

/// A permutation that swaps the last two of `rank` dimensions.
fn matrix_transpose(rank: usize) -> Option<Vec<i64>> {
    let mut order: Vec<i64> = (0..rank as i64).collect();
    order.swap(rank.checked_sub(1)?, rank.checked_sub(2)?);
    Some(order)
}

fn triangular_solve_transpose_keeps_triangle(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::TriangularSolve)?;
    let (a, b) = e.pair()?;
    (e.me().attrs.transpose() == Some(&Transpose::Transpose)).then_some(())?;
    let attrs = e.attrs().with(AttrKey::TransposeA, AttrValue::Transpose(Transpose::No));
    let a = e.transpose(a, &matrix_transpose(e.array(a)?.rank())?)?;
    e.again(&[a, b], attrs)
}

fn cholesky_reads_other_triangle(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Cholesky)?;
    let a = e.operand(0)?;
    let attrs = e.attrs();
    let shape = e.array(a)?;
    (*shape.dims.last()? > 1).then_some(())?;
    let a = e.transpose(a, &matrix_transpose(shape.rank())?)?;
    e.again(&[a], attrs)
}

fn inverse_fft_not_scaled(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Fft)?;
    let inverse = matches!(e.me().attrs.fft_type()?, FftType::Ifft | FftType::Irfft);
    let (operands, attrs) = (e.operands(), e.attrs());
    let n = *attrs.ints(AttrKey::FftLength)?.last()?;
    (inverse && n > 1).then_some(())?;
    let result = e.again(&operands, attrs)?;
    let n = e.number(result, n as f64)?;
    e.bin(Opcode::Multiply, result, n)
}

fn irfft_odd_length_as_even(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Fft)?;
    (e.me().attrs.fft_type() == Some(&FftType::Irfft)).then_some(())?;
    let (operands, attrs) = (e.operands(), e.attrs());
    let mut lengths = attrs.ints(AttrKey::FftLength)?.to_vec();
    let shape = e.result()?;
    let last = lengths.last_mut()?;
    (*last % 2 == 1 && *last > 1).then_some(())?;
    *last -= 1;
    // An even length needs one frequency more for its highest.
    let even = e.add(Opcode::Fft, &operands, attrs.with(AttrKey::FftLength, ints(&lengths)))?;
    let mut padding = vec![PaddingDim::default(); shape.rank()];
    padding.last_mut()?.high = 1;
    let zero = e.scalar(shape.element_type, 0.0);
    e.pad(even, zero, &padding)
}

fn threefry_halves_interleaved(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::RngBitGenerator)?;
    (e.me().attrs.rng_algorithm() == Some(&RngAlgorithm::ThreeFry)).then_some(())?;
    let (operands, attrs) = (e.operands(), e.attrs());
    let all = e.again(&operands, attrs)?;
    let (state, bits) = (e.get(all, 0)?, e.get(all, 1)?);
    let shape = e.array(bits)?;
    let n = shape.checked_elements()?;
    (n % 2 == 0 && n > 2 && shape.element_type.bits() == 32).then_some(())?;
    let halves = e.reshape(bits, &[2, n / 2])?;
    let turned = e.transpose(halves, &[1, 0])?;
    let bits = e.reshape(turned, &shape.dims)?;
    e.tuple(&[state, bits])
}

fn random_state_not_advanced(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::RngBitGenerator)?;
    let (operands, attrs) = (e.operands(), e.attrs());
    let all = e.again(&operands, attrs)?;
    let bits = e.get(all, 1)?;
    e.tuple(&[operands[0], bits])
}
