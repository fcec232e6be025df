//! Pairs of instructions that give back what they were given, put between a value and one of its users.

use std::sync::Arc;

use hlo::attrs::{AttrKey, AttrValue, Direction, PaddingDim, SliceDim};
use hlo::{
    ArrayShape, Attrs, ConstantValue, ElementType, InstrId, Layout, Literal, Opcode, Shape, TypeClass,
};

use super::Mutator;
use crate::generate::{Mode, array};

/// Arrays larger than this are only handed on, not computed with.
const MAX_ELEMENTS: i64 = 1 << 16;

/// A pair: `x`, before a user, and what stands for it.
type Pair = fn(&mut Mutator<'_>, InstrId, InstrId, &ArrayShape) -> Option<InstrId>;

const PAIRS: &[Pair] = &[
    reshapes,
    transposes,
    reverses,
    converts,
    bits,
    slice_of_concatenate,
    slice_of_pad,
    update_of_itself,
    select,
    barrier,
    copy,
    negations,
    neutral,
    reduce_of_broadcast,
    tuple,
    maximum_of_itself,
    concatenate_of_slices,
];

fn ints(values: &[i64]) -> AttrValue {
    AttrValue::Ints(values.into())
}

/// Puts a pair between a value and one of its users.
pub(super) fn insert(m: &mut Mutator<'_>) -> Option<()> {
    let user = m.site(|module, id| {
        let instr = module.instr(id);
        // An asynchronous operation's operands are its done's, too; a parameter of an alias stays itself.
        let apart = matches!(
            instr.opcode,
            Opcode::AsyncUpdate | Opcode::AsyncDone | Opcode::CopyDone | Opcode::SendDone | Opcode::RecvDone
        );
        !apart && instr.operands().iter().any(|&o| module.instr(o).shape.as_array().is_some())
    })?;
    let operands = m.module.instr(user).operands();
    let fits = |&i: &usize| m.free(operands[i]) && m.array(operands[i]).is_some_and(|a| !a.is_dynamic());
    let slots: Vec<usize> = (0..operands.len()).filter(fits).collect();
    (!slots.is_empty()).then_some(())?;
    let slot = m.choices.pick(&slots);
    let x = m.module.instr(user).operands()[slot];
    let shape = m.array(x)?.without_layout();
    let large = shape.checked_elements().is_none_or(|n| n > MAX_ELEMENTS);
    let pair = if large { m.choices.pick(&[barrier as Pair, copy, reshapes]) } else { m.choices.pick(PAIRS) };
    let y = pair(m, user, x, &shape)?;
    m.array(y).is_some_and(|a| a.same_dims(&shape)).then_some(())?;
    // For one user, or for all that come after it.
    m.module.set_operand(user, slot, y);
    Some(())
}

fn constant(m: &mut Mutator<'_>, user: InstrId, shape: &ArrayShape, mode: Mode, key: u64) -> InstrId {
    let value = Arc::new(Literal::Array(array(shape, mode, key)));
    let attrs = Attrs::new().with(AttrKey::ConstantValue, AttrValue::Literal(ConstantValue::Given(value)));
    m.before_shaped(user, Opcode::Constant, Shape::Array(shape.clone()), &[], attrs)
}

/// A scalar constant of a small number.
fn number(m: &mut Mutator<'_>, user: InstrId, ty: ElementType, value: f64) -> InstrId {
    let value = Arc::new(Literal::Array(crate::generate::number(ty, value)));
    let attrs = Attrs::new().with(AttrKey::ConstantValue, AttrValue::Literal(ConstantValue::Given(value)));
    m.before_shaped(user, Opcode::Constant, Shape::scalar(ty), &[], attrs)
}

fn everywhere(m: &mut Mutator<'_>, user: InstrId, shape: &ArrayShape, value: f64) -> InstrId {
    let one = number(m, user, shape.element_type, value);
    if shape.rank() == 0 {
        return one;
    }
    let attrs = Attrs::new().with(AttrKey::Dimensions, ints(&[]));
    m.before_shaped(user, Opcode::Broadcast, Shape::Array(shape.clone()), &[one], attrs)
}

fn reshapes(m: &mut Mutator<'_>, user: InstrId, x: InstrId, shape: &ArrayShape) -> Option<InstrId> {
    let n = shape.checked_elements()?;
    let dims: Vec<i64> = match m.choices.below(3) {
        0 => vec![n],
        1 => std::iter::once(1).chain(shape.dims.iter().copied()).collect(),
        _ => shape.dims.iter().rev().copied().collect(),
    };
    let there = Shape::array(shape.element_type, &dims);
    let y = m.before_shaped(user, Opcode::Reshape, there, &[x], Attrs::new());
    Some(m.before_shaped(user, Opcode::Reshape, Shape::Array(shape.clone()), &[y], Attrs::new()))
}

fn transposes(m: &mut Mutator<'_>, user: InstrId, x: InstrId, shape: &ArrayShape) -> Option<InstrId> {
    let rank = shape.rank();
    (rank >= 2).then_some(())?;
    let by = 1 + m.choices.below(rank - 1);
    let mut there: Vec<i64> = (0..rank as i64).collect();
    there.rotate_left(by);
    let mut back = vec![0; rank];
    there.iter().zip(0..).for_each(|(&d, i)| back[d as usize] = i);
    let y = m.before(user, Opcode::Transpose, &[x], Attrs::new().with(AttrKey::Dimensions, ints(&there)))?;
    m.before(user, Opcode::Transpose, &[y], Attrs::new().with(AttrKey::Dimensions, ints(&back)))
}

fn reverses(m: &mut Mutator<'_>, user: InstrId, x: InstrId, shape: &ArrayShape) -> Option<InstrId> {
    let dims: Vec<i64> = (0..shape.rank() as i64).filter(|_| m.choices.chance(150)).collect();
    let attrs = Attrs::new().with(AttrKey::Dimensions, ints(&dims));
    let y = m.before(user, Opcode::Reverse, &[x], attrs.clone())?;
    m.before(user, Opcode::Reverse, &[y], attrs)
}

/// To a wider type and back, or to a narrower one, which rounds.
fn converts(m: &mut Mutator<'_>, user: InstrId, x: InstrId, shape: &ArrayShape) -> Option<InstrId> {
    use ElementType::{BF16, C64, C128, F16, F32, F64, S8, S32, S64, U64};
    let types: &[ElementType] = match shape.element_type.class() {
        TypeClass::Pred => &[S8, S32, F32],
        TypeClass::Signed | TypeClass::Unsigned => &[S64, S32, U64],
        TypeClass::Float => &[F64, F32, BF16, F16],
        TypeClass::Complex => &[C128, C64],
    };
    let ty = m.choices.pick(types);
    let there = Shape::array(ty, &shape.dims);
    let y = m.before_shaped(user, Opcode::Convert, there, &[x], Attrs::new());
    Some(m.before_shaped(user, Opcode::Convert, Shape::Array(shape.clone()), &[y], Attrs::new()))
}

/// Its bits as an unsigned number and back.
fn bits(m: &mut Mutator<'_>, user: InstrId, x: InstrId, shape: &ArrayShape) -> Option<InstrId> {
    let ty = ElementType::from_name(&format!("u{}", shape.element_type.bits()))?;
    (shape.element_type != ElementType::Pred).then_some(())?;
    let there = Shape::array(ty, &shape.dims);
    let y = m.before_shaped(user, Opcode::BitcastConvert, there, &[x], Attrs::new());
    Some(m.before_shaped(user, Opcode::BitcastConvert, Shape::Array(shape.clone()), &[y], Attrs::new()))
}

fn whole(shape: &ArrayShape) -> Vec<SliceDim> {
    shape.dims.iter().map(|&d| SliceDim { start: 0, limit: d, stride: 1 }).collect()
}

fn slice(m: &mut Mutator<'_>, user: InstrId, x: InstrId, slices: Vec<SliceDim>) -> Option<InstrId> {
    m.before(user, Opcode::Slice, &[x], Attrs::new().with(AttrKey::Slice, AttrValue::Slices(slices.into())))
}

fn dimension(m: &mut Mutator<'_>, shape: &ArrayShape) -> Option<usize> {
    (shape.rank() > 0).then(|| m.choices.below(shape.rank()))
}

fn slice_of_concatenate(
    m: &mut Mutator<'_>,
    user: InstrId,
    x: InstrId,
    shape: &ArrayShape,
) -> Option<InstrId> {
    let d = dimension(m, shape)?;
    let others = m.earlier(user, |a| a.same_dims(shape));
    let other = m.choices.pick(&others);
    let first = m.choices.chance(128);
    let parts = if first { [other, x] } else { [x, other] };
    let attrs = Attrs::new().with(AttrKey::Dimensions, ints(&[d as i64]));
    let joined = m.before(user, Opcode::Concatenate, &parts, attrs)?;
    let mut slices = whole(shape);
    if first {
        slices[d].start = shape.dims[d];
        slices[d].limit = 2 * shape.dims[d];
    }
    slice(m, user, joined, slices)
}

fn concatenate_of_slices(
    m: &mut Mutator<'_>,
    user: InstrId,
    x: InstrId,
    shape: &ArrayShape,
) -> Option<InstrId> {
    let d = dimension(m, shape)?;
    let at = m.choices.int(0, shape.dims[d]);
    let (mut a, mut b) = (whole(shape), whole(shape));
    a[d].limit = at;
    b[d].start = at;
    let parts = [slice(m, user, x, a)?, slice(m, user, x, b)?];
    m.before(user, Opcode::Concatenate, &parts, Attrs::new().with(AttrKey::Dimensions, ints(&[d as i64])))
}

/// Padded outside and between, and sliced out again.
fn slice_of_pad(m: &mut Mutator<'_>, user: InstrId, x: InstrId, shape: &ArrayShape) -> Option<InstrId> {
    let d = dimension(m, shape)?;
    let mut padding = vec![PaddingDim::default(); shape.rank()];
    let p = &mut padding[d];
    (p.low, p.high, p.interior) = (m.choices.int(0, 2), m.choices.int(0, 2), m.choices.int(0, 2));
    let (low, interior) = (p.low, p.interior);
    let value = number(m, user, shape.element_type, 1.0);
    let attrs = Attrs::new().with(AttrKey::Padding, AttrValue::Padding(padding.into()));
    let padded = m.before(user, Opcode::Pad, &[x, value], attrs)?;
    let mut slices = whole(shape);
    let n = shape.dims[d];
    slices[d] =
        SliceDim { start: low, limit: low + (n * (interior + 1) - interior).max(0), stride: interior + 1 };
    slice(m, user, padded, slices)
}

/// A part of it written where it was read.
fn update_of_itself(m: &mut Mutator<'_>, user: InstrId, x: InstrId, shape: &ArrayShape) -> Option<InstrId> {
    let sizes: Vec<i64> = shape.dims.iter().map(|&d| m.choices.int(d.min(1), d)).collect();
    let mut operands = vec![x];
    for _ in &sizes {
        let at = m.choices.pick(&[1.0, 0.0, 2.0, -1.0, 9.0]);
        operands.push(number(m, user, ElementType::S32, at));
    }
    let attrs = Attrs::new().with(AttrKey::DynamicSliceSizes, ints(&sizes));
    let part = m.before(user, Opcode::DynamicSlice, &operands, attrs)?;
    operands.insert(1, part);
    m.before(user, Opcode::DynamicUpdateSlice, &operands, Attrs::new())
}

/// Itself whatever a predicate says, or in part itself and in part something else.
fn select(m: &mut Mutator<'_>, user: InstrId, x: InstrId, shape: &ArrayShape) -> Option<InstrId> {
    let p = constant(m, user, &ArrayShape::new(ElementType::Pred, &shape.dims), Mode::Small, 7);
    let others = m.earlier(user, |a| a.same_dims(shape));
    let other = if m.choices.chance(128) { m.choices.pick(&others) } else { x };
    m.before(user, Opcode::Select, &[p, x, other], Attrs::new())
}

fn barrier(m: &mut Mutator<'_>, user: InstrId, x: InstrId, _: &ArrayShape) -> Option<InstrId> {
    m.before(user, Opcode::OptBarrier, &[x], Attrs::new())
}

/// A copy in another layout and one back.
fn copy(m: &mut Mutator<'_>, user: InstrId, x: InstrId, shape: &ArrayShape) -> Option<InstrId> {
    let mut there = shape.clone();
    there.layout = Some(Arc::new(Layout::from_minor_to_major(0..shape.rank() as i64)));
    let y = m.before_shaped(user, Opcode::Copy, Shape::Array(there), &[x], Attrs::new());
    let mut back = shape.clone();
    back.layout = Some(Arc::new(Layout::row_major(shape.rank())));
    Some(m.before_shaped(user, Opcode::Copy, Shape::Array(back), &[y], Attrs::new()))
}

fn negations(m: &mut Mutator<'_>, user: InstrId, x: InstrId, _: &ArrayShape) -> Option<InstrId> {
    let opcode = m.choices.pick(&[Opcode::Negate, Opcode::Not]);
    let y = m.before(user, opcode, &[x], Attrs::new())?;
    m.before(user, opcode, &[y], Attrs::new())
}

/// Plus zero, times one, and so on.
fn neutral(m: &mut Mutator<'_>, user: InstrId, x: InstrId, shape: &ArrayShape) -> Option<InstrId> {
    let (opcode, value) = m.choices.pick(&[
        (Opcode::Add, 0.0),
        (Opcode::Multiply, 1.0),
        (Opcode::Subtract, 0.0),
        (Opcode::Divide, 1.0),
        (Opcode::Power, 1.0),
        (Opcode::Add, -0.0),
        (Opcode::Or, 0.0),
        (Opcode::Xor, 0.0),
        (Opcode::ShiftLeft, 0.0),
    ]);
    let c = everywhere(m, user, shape, value);
    m.before(user, opcode, &[x, c], Attrs::new())
}

/// The maximum of equal copies.
fn reduce_of_broadcast(
    m: &mut Mutator<'_>,
    user: InstrId,
    x: InstrId,
    shape: &ArrayShape,
) -> Option<InstrId> {
    let mut dims = shape.dims.to_vec();
    let at = m.choices.below(shape.rank() + 1);
    dims.insert(at, m.choices.int(1, 3));
    let mapping: Vec<i64> = (0..dims.len() as i64).filter(|&d| d != at as i64).collect();
    let spread = Shape::array(shape.element_type, &dims);
    let attrs = Attrs::new().with(AttrKey::Dimensions, ints(&mapping));
    let y = m.before_shaped(user, Opcode::Broadcast, spread, &[x], attrs);
    let opcode = m.choices.pick(&[Opcode::Maximum, Opcode::Minimum, Opcode::Add]);
    let region = hlo::builder::scalar_region(&mut m.module, "fold", opcode, shape.element_type).ok()?;
    let init = number(m, user, shape.element_type, 0.0);
    let attrs = Attrs::new()
        .with(AttrKey::Dimensions, ints(&[at as i64]))
        .with(AttrKey::ToApply, AttrValue::Computation(region));
    m.before(user, Opcode::Reduce, &[y, init], attrs)
}

fn tuple(m: &mut Mutator<'_>, user: InstrId, x: InstrId, _: &ArrayShape) -> Option<InstrId> {
    let others = m.earlier(user, |_| true);
    let other = m.choices.pick(&others);
    let at = m.choices.below(2);
    let pair = if at == 0 { [x, other] } else { [other, x] };
    let mut whole = m.before(user, Opcode::Tuple, &pair, Attrs::new())?;
    if m.choices.chance(128) {
        whole = m.before(user, Opcode::OptBarrier, &[whole], Attrs::new())?;
    }
    let attrs = Attrs::new().with(AttrKey::Index, AttrValue::Int(at as i64));
    m.before(user, Opcode::GetTupleElement, &[whole], attrs)
}

/// `max(x, x)`, `x & x`, or the greater of it and something by comparison.
fn maximum_of_itself(m: &mut Mutator<'_>, user: InstrId, x: InstrId, shape: &ArrayShape) -> Option<InstrId> {
    if m.choices.chance(100) {
        let opcode = m.choices.pick(&[Opcode::Maximum, Opcode::Minimum, Opcode::And, Opcode::Or]);
        return m.before(user, opcode, &[x, x], Attrs::new());
    }
    let others = m.earlier(user, |a| a.same_dims(shape));
    let other = m.choices.pick(&others);
    let direction = m.choices.pick(&[Direction::Gt, Direction::Ge, Direction::Lt, Direction::Eq]);
    let attrs = Attrs::new().with(AttrKey::Direction, AttrValue::Direction(direction));
    let p = m.before(user, Opcode::Compare, &[x, other], attrs)?;
    m.before(user, Opcode::Select, &[p, x, other], Attrs::new())
}
