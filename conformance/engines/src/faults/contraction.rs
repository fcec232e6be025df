//! Dots and convolutions.

use hlo::attrs::{AttrKey, Window};
use hlo::{ElementType, InstrId, Opcode, Shape};

use super::edit::{Edit, ints};
use super::movement::inverse;
use super::reduction::with_window;
use super::{Family, Needs, Row, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "dot-operand-not-transposed",
        Family::Contraction,
        "An operand of a `dot` whose dimensions are not in the order batch, free, contracting is taken for one that has them so.",
        "https://github.com/jax-ml/jax/pull/6344",
        &[Opcode::Dot],
        dot_operand_not_transposed,
    ),
    row(
        "dot-contracts-other-dimension",
        Family::Contraction,
        "A `dot` contracts the other dimension of a matrix that is square.",
        "https://github.com/jax-ml/jax/issues/11678",
        &[Opcode::Dot],
        dot_contracts_other_dimension,
    ),
    row(
        "dot-operands-in-bfloat16",
        Family::Contraction,
        "The operands of an `f32` `dot` are rounded to `bf16`.",
        "https://github.com/jax-ml/jax/issues/9973",
        &[Opcode::Dot],
        dot_operands_in_bfloat16,
    ),
    row(
        "dot-accumulates-narrow",
        Family::Contraction,
        "A `dot` of narrow integers with a wider result accumulates in the narrow type.",
        "https://github.com/tensorflow/tensorflow/issues/102043",
        &[Opcode::Dot],
        dot_accumulates_narrow,
    ),
    row(
        "convolution-dilations-swapped",
        Family::Contraction,
        "A `convolution` swaps the dilations of its operands.",
        "https://github.com/jax-ml/jax/pull/567",
        &[Opcode::Convolution],
        convolution_dilations_swapped,
    ),
    row(
        "convolution-negative-padding-ignored",
        Family::Contraction,
        "A `convolution` that cuts elements at the low edge does not.",
        "https://github.com/openxla/xla/issues/48713",
        &[Opcode::Convolution],
        convolution_negative_padding_ignored,
    ),
    row(
        "convolution-groups-interleaved",
        Family::Contraction,
        "The output features of a grouped `convolution` belong to its groups in turn instead of in blocks.",
        "https://github.com/openxla/xla/issues/49123",
        &[Opcode::Convolution],
        convolution_groups_interleaved,
    ),
    row(
        "dot-of-transpose-folded-twice",
        Family::Contraction,
        "A transpose of a square matrix is folded into a `dot` without changing what the dot contracts.",
        "https://github.com/tensorflow/tensorflow/pull/28583",
        &[Opcode::Dot],
        dot_of_transpose_folded_twice,
    )
    .needing(Needs::CHAIN),
];

fn dims_of(e: &Edit<'_>, key: AttrKey) -> Vec<i64> {
    e.me().attrs.ints_or_empty(key).to_vec()
}

const SIDES: [(AttrKey, AttrKey); 2] = [
    (AttrKey::LhsBatchDims, AttrKey::LhsContractingDims),
    (AttrKey::RhsBatchDims, AttrKey::RhsContractingDims),
];

fn dot_operand_not_transposed(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Dot)?;
    let (mut operands, attrs) = (e.operands(), e.attrs());
    let (side, order) = SIDES.iter().enumerate().find_map(|(side, &(batch, contracting))| {
        let (batch, contracting) = (dims_of(e, batch), dims_of(e, contracting));
        let rank = e.array(operands[side])?.rank() as i64;
        let free = (0..rank).filter(|d| !batch.contains(d) && !contracting.contains(d));
        let order: Vec<i64> = batch.iter().copied().chain(free).chain(contracting.iter().copied()).collect();
        (!order.is_sorted()).then_some((side, order))
    })?;
    let dims = e.array(operands[side])?.dims;
    let moved: Vec<i64> = order.iter().map(|&d| dims[d as usize]).collect();
    let other = e.reshape(operands[side], &moved)?;
    operands[side] = e.transpose(other, &inverse(&order))?;
    e.again(&operands, attrs)
}

fn dot_contracts_other_dimension(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Dot)?;
    let operands = e.operands();
    SIDES.iter().enumerate().find_map(|(side, &(batch, contracting))| {
        let dims = e.array(operands[side])?.dims;
        let (batch, mut contracted) = (dims_of(e, batch), dims_of(e, contracting));
        let &old = contracted.last()?;
        let other = (0..dims.len() as i64).find(|d| {
            !batch.contains(d) && !contracted.contains(d) && dims[*d as usize] == dims[old as usize]
        })?;
        (dims[old as usize] > 1).then_some(())?;
        *contracted.last_mut()? = other;
        e.with_attr(contracting, ints(&contracted))
    })
}

fn dot_operands_in_bfloat16(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Dot)?;
    let (a, b) = e.pair()?;
    (e.ty(a)? == ElementType::F32 && e.ty(b)? == ElementType::F32).then_some(())?;
    let attrs = e.attrs();
    let mut rounded = Vec::new();
    for x in [a, b] {
        let narrow = e.convert(x, ElementType::BF16)?;
        rounded.push(e.convert(narrow, ElementType::F32)?);
    }
    e.again(&rounded, attrs)
}

fn dot_accumulates_narrow(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Dot)?;
    let (a, b) = e.pair()?;
    let (ty, shape) = (e.integer(a)?, e.result()?);
    (e.ty(b)? == ty && shape.element_type.is_integer() && ty.bits() < shape.element_type.bits())
        .then_some(())?;
    let attrs = e.attrs();
    let narrow = e.shaped(Opcode::Dot, Shape::Array(shape.with_type(ty)), &[a, b], attrs)?;
    e.convert(narrow, shape.element_type)
}

/// The window of a convolution and the sizes of the dimensions that it moves over.
fn convolution(e: &Edit<'_>) -> Option<(Vec<i64>, Window)> {
    e.is(Opcode::Convolution)?;
    let dims = e.array(e.operand(0)?)?.dims;
    let labels = e.me().attrs.conv_dims()?;
    let base = labels.input_spatial.iter().map(|&d| dims[d as usize]).collect();
    Some((base, e.me().attrs.window()?.clone()))
}

fn convolution_dilations_swapped(e: &mut Edit<'_>) -> Option<InstrId> {
    let (base, mut window) = convolution(e)?;
    for w in &mut window.dims {
        std::mem::swap(&mut w.base_dilation, &mut w.window_dilation);
    }
    with_window(e, &base, &window)
}

fn convolution_negative_padding_ignored(e: &mut Edit<'_>) -> Option<InstrId> {
    let (base, mut window) = convolution(e)?;
    window.dims.iter_mut().for_each(|w| w.pad_low = w.pad_low.max(0));
    with_window(e, &base, &window)
}

fn convolution_groups_interleaved(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Convolution)?;
    let groups = e.me().attrs.int(AttrKey::FeatureGroupCount).unwrap_or(1);
    let feature = usize::try_from(e.me().attrs.conv_dims()?.kernel_output_feature).ok()?;
    let (x, kernel) = e.pair()?;
    let attrs = e.attrs();
    let dims = e.array(kernel)?.dims;
    let each = dims[feature] / groups.max(1);
    (groups > 1 && each > 1 && each * groups == dims[feature]).then_some(())?;
    let mut split = dims.to_vec();
    split[feature] = each;
    split.insert(feature + 1, groups);
    let mut order: Vec<i64> = (0..split.len() as i64).collect();
    order.swap(feature, feature + 1);
    let parts = e.reshape(kernel, &split)?;
    let transposed = e.transpose(parts, &order)?;
    let kernel = e.reshape(transposed, &dims)?;
    e.again(&[x, kernel], attrs)
}

fn dot_of_transpose_folded_twice(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Dot)?;
    let (mut operands, attrs) = (e.operands(), e.attrs());
    let side = (0..2).find(|&side| {
        let moved = operands[side];
        let source = e.operands_of(moved, Opcode::Transpose);
        let same = source.and_then(|s| Some(e.array(s[0])?.same_dims(&e.array(moved)?)));
        same == Some(true)
    })?;
    operands[side] = e.instr(operands[side]).operands()[0];
    e.again(&operands, attrs)
}
