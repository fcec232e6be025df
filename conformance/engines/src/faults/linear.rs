//! Linear algebra, transforms, normalization, random bits.

use hlo::attrs::{AttrKey, AttrValue, FftType, PaddingDim, RngAlgorithm};
use hlo::{InstrId, Opcode};

use super::edit::{Edit, ints};
use super::{Family, Row, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "batch-norm-epsilon-dropped",
        Family::Linear,
        "`batch-norm` divides by the standard deviation without epsilon.",
        "https://github.com/tensorflow/tensorflow/issues/118701",
        &[Opcode::BatchNormTraining, Opcode::BatchNormInference, Opcode::BatchNormGrad],
        batch_norm_epsilon_dropped,
    ),
    row(
        "batch-norm-variance-unbiased",
        Family::Linear,
        "`batch-norm-training` gives the variance of a sample: it divides by one less than the number of elements.",
        "https://github.com/tensorflow/tensorflow/issues/55545",
        &[Opcode::BatchNormTraining],
        batch_norm_variance_unbiased,
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
        "https://github.com/jax-ml/jax/issues/2874",
        &[Opcode::Fft],
        irfft_odd_length_as_even,
    ),
    row(
        "threefry-halves-interleaved",
        Family::Linear,
        "The two words of each Threefry block are neighbours in the result instead of being in its two halves.",
        "https://github.com/jax-ml/jax/issues/21232",
        &[Opcode::RngBitGenerator],
        threefry_halves_interleaved,
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

fn triangular_solve_unit_diagonal_ignored(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::TriangularSolve)?;
    e.me().attrs.bool(AttrKey::UnitDiagonal).then_some(())?;
    e.with_attr(AttrKey::UnitDiagonal, AttrValue::Bool(false))
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
    let transposed = e.transpose(halves, &[1, 0])?;
    let bits = e.reshape(transposed, &shape.dims)?;
    e.tuple(&[state, bits])
}
