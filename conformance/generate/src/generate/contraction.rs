//! `dot` and `convolution`.

use hlo::attrs::{AttrKey, AttrValue, ConvDims, PaddingDim, Window, WindowDim};
use hlo::{ArrayShape, Attrs, ElementType, InstrId, Opcode, Shape};

use super::Generator;
use super::body::{Body, ints};
use super::movement::permutation;

/// The result may be of a wider type than the operands.
fn accumulates(g: &mut Generator<'_>, ty: ElementType) -> ElementType {
    let wider = match ty {
        ElementType::F16 | ElementType::BF16 => ElementType::F32,
        ElementType::S8 | ElementType::U8 | ElementType::S4 => ElementType::S32,
        same => same,
    };
    if g.choices.chance(90) { wider } else { ty }
}

pub(super) fn dot(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let a = g.ranked(body, 1);
    dotted(g, body, a)
}

/// A product of a value and something that fits.
pub(super) fn dotted(g: &mut Generator<'_>, body: &mut Body, a: InstrId) -> Option<InstrId> {
    let shape = g.array(a);
    let rank = shape.rank();
    (rank > 0).then_some(())?;
    let batch_rank = if rank > 1 { g.choices.below(rank.min(3)) } else { 0 };
    let contracted = 1 + g.choices.below((rank - batch_rank).min(2));
    let order = permutation(g, rank);
    let (batch, rest) = order.split_at(batch_rank);
    let contracting = &rest[..contracted.min(rest.len())];
    // The right operand: batch, contracted and its own free dimensions, in some order.
    let mut own: Vec<i64> = batch.iter().chain(contracting).map(|&d| shape.dims[d as usize]).collect();
    for _ in 0..g.choices.below(3) {
        // As large as a dimension of the other operand now and then: then a mistaken dimension still fits.
        let size = if g.choices.chance(100) { g.choices.pick(&shape.dims) } else { g.size() };
        own.push(size);
    }
    let right_order = permutation(g, own.len());
    let mut dims = vec![0; own.len()];
    right_order.iter().zip(&own).for_each(|(&at, &d)| dims[at as usize] = d);
    let right = ArrayShape::new(shape.element_type, &dims);
    g.fits(&Shape::Array(right.clone())).then_some(())?;
    let b = g.of_shape(body, &right);
    let attrs = Attrs::new()
        .with(AttrKey::LhsBatchDims, ints(batch))
        .with(AttrKey::LhsContractingDims, ints(contracting))
        .with(AttrKey::RhsBatchDims, ints(&right_order[..batch.len()]))
        .with(AttrKey::RhsContractingDims, ints(&right_order[batch.len()..batch.len() + contracting.len()]));
    wide(g, body, Opcode::Dot, [a, b], attrs)
}

/// Adds a contraction, its result perhaps in a wider type.
fn wide(
    g: &mut Generator<'_>,
    body: &Body,
    opcode: Opcode,
    operands: [InstrId; 2],
    attrs: Attrs,
) -> Option<InstrId> {
    let shapes: Vec<&Shape> = operands.iter().map(|&o| &g.module.instr(o).shape).collect();
    let shape = hlo::infer::infer(&g.module, opcode, &shapes, &attrs).ok()?.expect_array().clone();
    let ty = accumulates(g, shape.element_type);
    g.add_shaped(body, opcode, Shape::Array(shape.with_type(ty)), &operands, attrs)
}

pub(super) fn convolution(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let ty = g.type_of(&[
        ElementType::F32,
        ElementType::BF16,
        ElementType::F64,
        ElementType::S32,
        ElementType::S8,
        ElementType::F16,
        ElementType::C64,
        ElementType::F8E4M3FN,
    ]);
    let spatial = g.choices.pick(&[2, 1, 0, 3]);
    let (feature_groups, batch_groups) = match g.choices.below(4) {
        0 => (g.choices.int(1, 3), 1),
        1 => (1, g.choices.int(1, 3)),
        _ => (1, 1),
    };
    let batch = g.choices.int(1, 2) * batch_groups;
    let kernel_features = g.choices.int(1, 3);
    let features = kernel_features * feature_groups;
    let outputs = g.choices.int(1, 3) * feature_groups * batch_groups;
    let mut window = Window::default();
    let (mut image, mut kernel) = (Vec::new(), Vec::new());
    for _ in 0..spatial {
        let size = g.choices.int(1, 3);
        let mut w = WindowDim { size, ..WindowDim::default() };
        if g.choices.chance(128) {
            w.stride = g.choices.int(1, 3);
            w.pad_low = g.choices.int(-1, 2);
            w.pad_high = g.choices.int(-1, 2);
        }
        if g.choices.chance(80) {
            w.base_dilation = g.choices.int(1, 3);
            w.window_dilation = g.choices.int(1, 3);
            w.reversal = g.choices.chance(100);
        }
        window.dims.push(w);
        image.push(g.choices.pick(&[4, 3, 5, 1, 6]));
        kernel.push(size);
    }
    let rank = spatial + 2;
    let (lhs, rhs, out) = (permutation(g, rank), permutation(g, rank), permutation(g, rank));
    let dims = |order: &[i64], first: [i64; 2], rest: &[i64]| {
        let mut dims = vec![0; rank];
        order.iter().zip(first.iter().chain(rest)).for_each(|(&at, &d)| dims[at as usize] = d);
        ArrayShape::new(ty, &dims)
    };
    let x = dims(&lhs, [batch, features], &image);
    let k = dims(&rhs, [kernel_features, outputs], &kernel);
    (g.fits(&Shape::Array(x.clone())) && g.fits(&Shape::Array(k.clone()))).then_some(())?;
    let labels = ConvDims {
        input_batch: lhs[0],
        input_feature: lhs[1],
        input_spatial: lhs[2..].into(),
        kernel_input_feature: rhs[0],
        kernel_output_feature: rhs[1],
        kernel_spatial: rhs[2..].into(),
        output_batch: out[0],
        output_feature: out[1],
        output_spatial: out[2..].into(),
        ..ConvDims::default()
    };
    let operands = [image_of(g, body, &x, &lhs[2..]), g.of_shape(body, &k)];
    let mut attrs = Attrs::new()
        .with(AttrKey::DimLabels, AttrValue::ConvDims(Box::new(labels)))
        .with(AttrKey::FeatureGroupCount, AttrValue::Int(feature_groups))
        .with(AttrKey::BatchGroupCount, AttrValue::Int(batch_groups));
    if spatial > 0 {
        attrs.set(AttrKey::Window, AttrValue::Window(Box::new(window)));
    }
    wide(g, body, Opcode::Convolution, operands, attrs)
}

/// An array of this shape, which may be a smaller one padded in these dimensions.
fn image_of(g: &mut Generator<'_>, body: &mut Body, shape: &ArrayShape, spatial: &[i64]) -> InstrId {
    if !g.choices.chance(50) {
        return g.of_shape(body, shape);
    }
    let mut inner = shape.clone();
    let mut padding = vec![PaddingDim::default(); shape.rank()];
    for &d in spatial {
        let d = d as usize;
        let p = &mut padding[d];
        (p.low, p.high) = (g.choices.int(0, 2), g.choices.int(0, 1));
        inner.dims[d] -= p.low + p.high;
        if inner.dims[d] < 1 {
            (inner.dims[d], *p) = (shape.dims[d], PaddingDim::default());
        }
    }
    let x = g.of_shape(body, &inner);
    let value = if g.choices.chance(160) {
        g.number(body, shape.element_type, 0)
    } else {
        g.of_shape(body, &ArrayShape::new(shape.element_type, &[]))
    };
    let padded = g.at(body).pad(x, value, &padding);
    padded.expect("invariant: the padding gives the shape that was asked for")
}

/// The sizes of `groups` groups of `n` rows; a few rows may belong to none.
fn partition(g: &mut Generator<'_>, n: i64, groups: i64) -> Vec<i32> {
    let mut left = n;
    (0..groups)
        .map(|i| {
            let rows = if i + 1 == groups && !g.choices.chance(60) { left } else { g.choices.int(0, left) };
            left -= rows;
            rows as i32
        })
        .collect()
}

/// A dot whose left operand's free, contracting or batch dimension is divided into groups.
pub(super) fn ragged_dot(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let ty = g.type_of(&[ElementType::F32, ElementType::BF16, ElementType::S32, ElementType::F64]);
    let (m, k, n) = (g.choices.int(1, 6), g.choices.int(1, 5), g.choices.int(1, 4));
    let groups = g.choices.int(1, 3);
    let batch = g.choices.int(1, 2);
    let array = |dims: &[i64]| ArrayShape::new(ty, dims);
    let (left, right, cut, lhs, rhs, ragged, group): (_, _, _, [i64; 2], [i64; 2], _, &[i64]) =
        match g.choices.below(3) {
            0 => (array(&[batch, m, k]), array(&[groups, batch, k, n]), m, [0, 2], [1, 2], 1, &[0]),
            1 => (array(&[batch, m, k]), array(&[batch, k, n]), k, [0, 2], [0, 1], 2, &[]),
            _ => (array(&[batch, m, k]), array(&[batch, k, n]), batch, [0, 2], [0, 1], 0, &[]),
        };
    let sizes = partition(g, cut, groups);
    let (a, b, sizes) = (g.of_shape(body, &left), g.of_shape(body, &right), g.numbers(body, &sizes));
    let attrs = Attrs::new()
        .with(AttrKey::LhsBatchDims, ints(&lhs[..1]))
        .with(AttrKey::LhsContractingDims, ints(&lhs[1..]))
        .with(AttrKey::RhsBatchDims, ints(&rhs[..1]))
        .with(AttrKey::RhsContractingDims, ints(&rhs[1..]))
        .with(AttrKey::LhsRaggedDims, ints(&[ragged]))
        .with(AttrKey::RhsGroupDims, ints(group));
    g.add(body, Opcode::RaggedDot, &[a, b, sizes], attrs)
}

/// A dot of operands that are scaled in blocks.
pub(super) fn scaled_dot(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let ty = g.type_of(&[ElementType::F8E4M3FN, ElementType::BF16, ElementType::F4E2M1FN, ElementType::F32]);
    let (m, n, blocks, block) =
        (g.choices.int(1, 5), g.choices.int(1, 5), g.choices.int(1, 3), g.choices.pick(&[2, 1, 4]));
    let scale = ElementType::F8E8M0FNU;
    let shapes = [
        ArrayShape::new(ty, &[m, blocks * block]),
        ArrayShape::new(ty, &[blocks * block, n]),
        ArrayShape::new(scale, &[m, blocks]),
        ArrayShape::new(scale, &[blocks, n]),
    ];
    let operands = shapes.map(|shape| g.of_shape(body, &shape));
    let attrs = Attrs::new()
        .with(AttrKey::LhsContractingDims, ints(&[1]))
        .with(AttrKey::RhsContractingDims, ints(&[0]));
    g.add_shaped(body, Opcode::ScaledDot, Shape::array(ElementType::F32, &[m, n]), &operands, attrs)
}
