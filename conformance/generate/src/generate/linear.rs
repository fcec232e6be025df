//! Linear algebra, transforms, normalization and random bits.

use hlo::attrs::{AttrKey, AttrValue, Direction, FftType, RngAlgorithm, RngDistribution, Transpose};
use hlo::{ArrayShape, Attrs, ElementType, InstrId, Literal, Opcode, Shape};

use super::Generator;
use super::body::{Body, ints};

fn field(ty: ElementType) -> bool {
    matches!(ty, ElementType::F32 | ElementType::F64 | ElementType::C64 | ElementType::C128)
}

pub(super) fn fft(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.value(body, |a| a.rank() >= 1 && field(a.element_type));
    let shape = g.array(x);
    let rank = 1 + g.choices.below(shape.rank().min(3));
    let mut lengths = shape.dims[shape.rank() - rank..].to_vec();
    let kind = if shape.element_type.is_complex() {
        g.choices.pick(&[FftType::Fft, FftType::Ifft, FftType::Irfft])
    } else {
        FftType::Rfft
    };
    if kind == FftType::Irfft {
        let last = lengths.last_mut()?;
        *last = (*last - 1) * 2 + i64::from(g.choices.chance(100));
    }
    let attrs = Attrs::new()
        .with(AttrKey::FftType, AttrValue::FftType(kind))
        .with(AttrKey::FftLength, ints(&lengths));
    g.add(body, Opcode::Fft, &[x], attrs)
}

/// A batch of square matrices.
fn matrices(g: &mut Generator<'_>, body: &mut Body) -> (InstrId, ArrayShape) {
    let ty = g.type_of(&[ElementType::F32, ElementType::F64, ElementType::C64, ElementType::C128]);
    let n = g.choices.pick(&[2, 3, 1, 4, 5, 0]);
    let mut dims = vec![n, n];
    if g.choices.chance(80) {
        dims.insert(0, g.choices.int(1, 3));
    }
    let shape = ArrayShape::new(ty, &dims);
    let definite = !g.choices.chance(80);
    if definite {
        // Definite, so that not everything is NaN.
        let key = u64::from(g.choices.bits());
        let a = hlo_engines::inputs::fill_array(&shape, &hlo_engines::inputs::Fill::Dominant, key);
        return (g.at(body).constant(Literal::Array(a)), shape);
    }
    (g.of_shape(body, &shape), shape)
}

/// A matrix with something else on one side of its diagonal, which a factorization may not read.
fn asymmetric(g: &mut Generator<'_>, body: &mut Body, a: InstrId, shape: &ArrayShape) -> Option<InstrId> {
    let whole = Shape::array(ElementType::S32, &shape.dims);
    let rank = shape.rank() as i64;
    let row = g.at(body).iota(whole.clone(), rank - 2).ok()?;
    let column = g.at(body).iota(whole, rank - 1).ok()?;
    let direction = g.choices.pick(&[Direction::Ge, Direction::Le]);
    let kept = g.at(body).compare(direction, row, column).ok()?;
    let other = g.of_shape(body, shape);
    g.at(body).select(kept, a, other).ok()
}

pub(super) fn cholesky(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (mut a, shape) = matrices(g, body);
    let lower = AttrValue::Bool(g.choices.chance(128));
    if g.choices.chance(128) {
        a = asymmetric(g, body, a, &shape).unwrap_or(a);
    }
    g.add(body, Opcode::Cholesky, &[a], Attrs::new().with(AttrKey::Lower, lower))
}

pub(super) fn triangular_solve(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (a, shape) = matrices(g, body);
    let left = g.choices.chance(128);
    let mut right = shape.clone();
    let at = right.rank() - if left { 1 } else { 2 };
    right.dims[at] = g.choices.int(0, 4);
    let b = g.of_shape(body, &right);
    let attrs = Attrs::new()
        .with(AttrKey::LeftSide, AttrValue::Bool(left))
        .with(AttrKey::Lower, AttrValue::Bool(g.choices.chance(128)))
        .with(AttrKey::UnitDiagonal, AttrValue::Bool(g.choices.chance(128)))
        .with(AttrKey::TransposeA, AttrValue::Transpose(g.choices.pick(Transpose::ALL)));
    g.add(body, Opcode::TriangularSolve, &[a, b], attrs)
}

pub(super) fn batch_norm(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.value(body, |a| a.rank() >= 1 && a.element_type.is_float());
    let shape = g.array(x);
    let feature = g.choices.below(shape.rank());
    let per_feature = ArrayShape::new(shape.element_type, &[shape.dims[feature]]);
    let attrs = Attrs::new()
        .with(AttrKey::Epsilon, AttrValue::Float(0.001))
        .with(AttrKey::FeatureIndex, AttrValue::Int(feature as i64));
    let mut operands = vec![x];
    let opcode = g.opcode(&[Opcode::BatchNormTraining, Opcode::BatchNormInference, Opcode::BatchNormGrad]);
    let vectors = if opcode == Opcode::BatchNormTraining {
        2
    } else if opcode == Opcode::BatchNormInference {
        4
    } else {
        3
    };
    for _ in 0..vectors {
        operands.push(g.of_shape(body, &per_feature));
    }
    if opcode == Opcode::BatchNormGrad {
        operands.push(g.of_shape(body, &shape));
    }
    let id = g.add(body, opcode, &operands, attrs)?;
    g.unpack(body, id)
}

pub(super) fn random_bits(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (algorithm, words) =
        g.choices.pick(&[(RngAlgorithm::ThreeFry, 2), (RngAlgorithm::Philox, 3), (RngAlgorithm::Philox, 2)]);
    let state = g.of_shape(body, &ArrayShape::new(ElementType::U64, &[words]));
    let ty =
        g.type_of(&[ElementType::U32, ElementType::U64, ElementType::U8, ElementType::U16, ElementType::S32]);
    let rank = g.choices.below(3);
    let bits = Shape::array(ty, &g.dims(rank));
    let shape = Shape::tuple([Shape::array(ElementType::U64, &[words]), bits]);
    let attrs = Attrs::new().with(AttrKey::RngAlgorithm, AttrValue::RngAlgorithm(algorithm));
    let id = g.add_shaped(body, Opcode::RngBitGenerator, shape, &[state], attrs)?;
    g.unpack(body, id)
}

/// Numbers that no specification fixes, where programs may draw such.
pub(super) fn random(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    g.limits.open_random.then_some(())?;
    if g.either(Opcode::RngGetAndUpdateState, 60) {
        let attrs = Attrs::new().with(AttrKey::Delta, AttrValue::Int(g.choices.int(1, 9)));
        return g.add(body, Opcode::RngGetAndUpdateState, &[], attrs);
    }
    let ty = g.type_of(&[ElementType::F32, ElementType::S32, ElementType::F64, ElementType::BF16]);
    let rank = g.choices.below(3);
    let dims = g.dims(rank);
    let (low, high) = (g.number(body, ty, 0), g.number(body, ty, 1));
    let kind = if ty.is_float() && g.choices.chance(100) {
        RngDistribution::Normal
    } else {
        RngDistribution::Uniform
    };
    let attrs = Attrs::new().with(AttrKey::Distribution, AttrValue::RngDistribution(kind));
    g.add_shaped(body, Opcode::Rng, Shape::array(ty, &dims), &[low, high], attrs)
}
