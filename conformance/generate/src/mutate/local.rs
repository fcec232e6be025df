//! Mutations of one instruction: its opcode, its attributes, its operands.

use std::sync::{Arc, LazyLock};

use hlo::attrs::{AttrKey, AttrValue, CompareType, Direction, PaddingDim};
use hlo::opcode::Arity;
use hlo::{ArrayShape, Attrs, ConstantValue, InstrId, Literal, Opcode, Shape};

use super::Mutator;
use crate::generate::{Mode, array};

/// The elementwise opcodes of one and of two operands that need no attributes.
static PLAIN: LazyLock<[Vec<Opcode>; 2]> = LazyLock::new(|| {
    [1, 2].map(|n| {
        let plain = |op: &Opcode| {
            let simple = op.attrs().iter().all(|a| !a.required);
            op.flags().elementwise && op.arity() == Arity::Exactly(n) && simple && *op != Opcode::Convert
        };
        Opcode::ALL.iter().copied().filter(plain).collect()
    })
});

/// Another elementwise opcode of the same operands and result.
pub(super) fn opcode(m: &mut Mutator<'_>) -> Option<()> {
    let id = m.site(|module, id| PLAIN.iter().any(|of| of.contains(&module.instr(id).opcode)))?;
    let instr = m.module.instr(id);
    let (old, operands, shape) = (instr.opcode, instr.operands().to_vec(), instr.shape.clone());
    let list = &PLAIN[operands.len().checked_sub(1)?.min(1)];
    for _ in 0..12 {
        let new = m.choices.pick(list);
        if new != old && m.inferred(new, &operands, &Attrs::new()).is_some_and(|s| s.compatible(&shape)) {
            m.module.instr_mut(id).opcode = new;
            return Some(());
        }
    }
    None
}

/// Another direction or type of a comparison.
pub(super) fn direction(m: &mut Mutator<'_>) -> Option<()> {
    let id = m.site(|module, id| module.instr(id).opcode == Opcode::Compare)?;
    let float = m.array(*m.module.instr(id).operands().first()?)?.element_type.is_float();
    let direction = m.choices.pick(Direction::ALL);
    let total = m.choices.chance(80);
    let attrs = &mut m.module.instr_mut(id).attrs;
    if float && total {
        let known = attrs.get(AttrKey::CompareType) == Some(&AttrValue::CompareType(CompareType::TotalOrder));
        let other = if known { CompareType::Float } else { CompareType::TotalOrder };
        attrs.set(AttrKey::CompareType, AttrValue::CompareType(other));
    } else {
        attrs.set(AttrKey::Direction, AttrValue::Direction(direction));
    }
    Some(())
}

/// The attributes that can be changed, with how.
const CHANGEABLE: &[AttrKey] = &[
    AttrKey::Padding,
    AttrKey::Slice,
    AttrKey::Window,
    AttrKey::Dimensions,
    AttrKey::DynamicSliceSizes,
    AttrKey::IotaDimension,
    AttrKey::SliceSizes,
    AttrKey::ExponentBits,
    AttrKey::MantissaBits,
    AttrKey::Lower,
    AttrKey::UnitDiagonal,
    AttrKey::IsReverse,
    AttrKey::Epsilon,
    AttrKey::Largest,
    AttrKey::TransposeA,
    AttrKey::CollapsedSliceDims,
];

/// Another value of an attribute; what comes out is sliced or padded to the shape that was there.
pub(super) fn attribute(m: &mut Mutator<'_>) -> Option<()> {
    let id = m.site(|module, id| {
        let instr = module.instr(id);
        !instr.opcode.flags().collective && instr.attrs.iter().any(|(k, _)| CHANGEABLE.contains(&k))
    })?;
    let instr = m.module.instr(id);
    let keys: Vec<AttrKey> = instr.attrs.iter().map(|(k, _)| k).filter(|k| CHANGEABLE.contains(k)).collect();
    let (opcode, operands, old) = (instr.opcode, instr.operands().to_vec(), instr.shape.clone());
    let mut attrs = instr.attrs.clone();
    let key = m.choices.pick(&keys);
    let rank = operands.first().and_then(|&o| m.array(o)).map_or(0, ArrayShape::rank);
    let mut value = attrs.get(key)?.clone();
    changed(m, &mut value, rank)?;
    attrs.set(key, value);
    if opcode == Opcode::Iota {
        m.module.instr_mut(id).attrs = attrs;
        return Some(());
    }
    // Regions and dimension numbers that no longer fit are refused here.
    let new = m.inferred(opcode, &operands, &attrs)?;
    if new.compatible(&old) {
        m.module.instr_mut(id).attrs = attrs;
        return Some(());
    }
    adapt(m, id, &new, &old)?;
    m.module.instr_mut(id).attrs = attrs;
    m.module.instr_mut(id).shape = new;
    Some(())
}

/// Puts a pad behind an instruction whose shape becomes `new`, which gives all users `old` again.
fn adapt(m: &mut Mutator<'_>, id: InstrId, new: &Shape, old: &Shape) -> Option<()> {
    let (from, to) = (new.as_array()?, old.as_array()?);
    let same = from.element_type == to.element_type && from.rank() == to.rank() && !from.is_dynamic();
    let small = from.checked_elements().is_some_and(|n| n <= 1 << 20);
    (same && small && !to.is_dynamic()).then_some(())?;
    let padding: Vec<PaddingDim> = from
        .dims
        .iter()
        .zip(&to.dims)
        .map(|(&from, &to)| PaddingDim { low: 0, high: to - from, interior: 0 })
        .collect();
    let zero = array(&ArrayShape::new(from.element_type, &[]), Mode::Small, 4);
    let shape = Shape::array(from.element_type, &[]);
    let zero = AttrValue::Literal(ConstantValue::Given(Arc::new(Literal::Array(zero))));
    let zero =
        m.before_shaped(id, Opcode::Constant, shape, &[], Attrs::new().with(AttrKey::ConstantValue, zero));
    let name = m.module.unique_name("pad");
    let parent = m.module.instr(id).parent();
    let attrs = Attrs::new().with(AttrKey::Padding, AttrValue::Padding(padding.into()));
    let new = hlo::NewInstruction {
        name,
        attrs,
        ..hlo::NewInstruction::new(Opcode::Pad, old.without_layout(), &[])
    };
    let pad = m.module.insert_after(parent, Some(id), new);
    m.module.replace_all_uses(id, pad);
    m.module.set_operands(pad, &[id, zero]);
    Some(())
}

/// Changes a number or two of a value.
fn changed(m: &mut Mutator<'_>, value: &mut AttrValue, rank: usize) -> Option<()> {
    let c = &mut m.choices;
    if let AttrValue::Padding(dims) = value {
        let p = &mut dims[c.below(dims.len().max(1)).min(dims.len().checked_sub(1)?)];
        let by = c.pick(&[1, -1, 2, -2]);
        match c.below(3) {
            0 => p.low += by,
            1 => p.high += by,
            _ => p.interior = (p.interior + by).max(0),
        }
    } else if let AttrValue::Slices(dims) = value {
        (!dims.is_empty()).then_some(())?;
        let at = c.below(dims.len());
        let s = &mut dims[at];
        match c.below(4) {
            0 => s.start = (s.start + 1).min(s.limit),
            1 => s.start = (s.start - 1).max(0),
            2 => s.limit = (s.limit - 1).max(s.start),
            _ => s.stride = c.pick(&[2, 3, 1]),
        }
    } else if let AttrValue::Window(window) = value {
        (!window.dims.is_empty()).then_some(())?;
        let at = c.below(window.dims.len());
        let w = &mut window.dims[at];
        match c.below(6) {
            0 => w.stride = c.pick(&[2, 1, 3]),
            1 => w.pad_low += c.pick(&[1, -1, 2]),
            2 => w.pad_high += c.pick(&[1, -1, 2]),
            3 => w.base_dilation = c.pick(&[2, 1, 3]),
            4 => w.window_dilation = c.pick(&[2, 1, 3]),
            _ => w.reversal = !w.reversal,
        }
    } else if let AttrValue::Ints(list) = value {
        if list.is_empty() {
            list.push(c.int(0, (rank as i64 - 1).max(0)));
        } else if list.len() > 1 && c.chance(128) {
            let (a, b) = (c.below(list.len()), c.below(list.len()));
            list.swap(a, b);
        } else {
            let at = c.below(list.len());
            list[at] = (list[at] + c.pick(&[1, -1])).max(0);
        }
    } else if let AttrValue::Int(n) = value {
        *n = (*n + c.pick(&[1, -1, 2])).max(0);
    } else if let AttrValue::Bool(b) = value {
        *b = !*b;
    } else if let AttrValue::Float(x) = value {
        *x = c.pick(&[0.5, 0.0, 1e-3]);
    } else if let AttrValue::Transpose(t) = value {
        *t = c.pick(hlo::attrs::Transpose::ALL);
    } else {
        return None;
    }
    Some(())
}

/// A constant with other elements: all of another mode.
pub(super) fn constant(m: &mut Mutator<'_>) -> Option<()> {
    let id = m.site(|module, id| {
        let instr = module.instr(id);
        let given = matches!(
            instr.attrs.get(AttrKey::ConstantValue),
            Some(AttrValue::Literal(ConstantValue::Given(l))) if matches!(**l, Literal::Array(_))
        );
        instr.opcode == Opcode::Constant && given
    })?;
    let shape = m.array(id)?.without_layout();
    const MODES: &[Mode] =
        &[Mode::Small, Mode::Edge, Mode::Moderate, Mode::Distinct, Mode::Few, Mode::Eighths, Mode::Wild];
    // Indices and sizes stay small.
    let modes = if shape.element_type.is_integer() { &MODES[..1] } else { MODES };
    let mode = m.choices.pick(modes);
    let literal = array(&shape, mode, u64::from(m.choices.bits()));
    let value = AttrValue::Literal(ConstantValue::Given(Arc::new(Literal::Array(literal))));
    m.module.instr_mut(id).attrs.set(AttrKey::ConstantValue, value);
    Some(())
}

/// Two operands of one shape are exchanged.
pub(super) fn swap(m: &mut Mutator<'_>) -> Option<()> {
    let pairs = |module: &hlo::Module, id: InstrId| -> Vec<(usize, usize)> {
        let instr = module.instr(id);
        let shape = |i: usize| &module.instr(instr.operands()[i]).shape;
        let n = instr.operands().len().min(8);
        let all = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
        all.filter(|&(i, j)| instr.operands()[i] != instr.operands()[j] && shape(i).compatible(shape(j)))
            .collect()
    };
    let id =
        m.site(|module, id| !module.instr(id).opcode.flags().commutative && !pairs(module, id).is_empty())?;
    let (i, j) = m.choices.pick(&pairs(&m.module, id));
    let (a, b) = (m.module.instr(id).operands()[i], m.module.instr(id).operands()[j]);
    (m.free(a) && m.free(b)).then_some(())?;
    m.module.set_operand(id, i, b);
    m.module.set_operand(id, j, a);
    Some(())
}

/// Another value of the same shape as an operand.
pub(super) fn rewire(m: &mut Mutator<'_>) -> Option<()> {
    let id = m.site(|module, id| {
        let instr = module.instr(id);
        !instr.operands().is_empty() && !instr.opcode.flags().side_effect
    })?;
    let slot = m.choices.below(m.module.instr(id).operands().len());
    let old = m.module.instr(id).operands()[slot];
    m.free(old).then_some(())?;
    let shape = m.array(old)?.clone();
    let mut others = m.earlier(id, |a| a.same_dims(&shape));
    others.retain(|&o| o != old);
    (!others.is_empty()).then_some(())?;
    let new = m.choices.pick(&others);
    m.module.set_operand(id, slot, new);
    let computation = m.module.instr(id).parent();
    m.prune(computation);
    Some(())
}

/// The same instruction again, for some of the users.
pub(super) fn duplicate(m: &mut Mutator<'_>) -> Option<()> {
    let id = m.site(|module, id| {
        let instr = module.instr(id);
        let flags = instr.opcode.flags();
        let calls = !instr.attrs.called_computations().is_empty() && instr.opcode == Opcode::Fusion;
        let plain = !flags.side_effect && !flags.collective && instr.opcode != Opcode::Parameter && !calls;
        plain && instr.shape.as_array().is_some() && module.users(id).len() > 1
    })?;
    let instr = m.module.instr(id);
    let (opcode, shape, operands, attrs) =
        (instr.opcode, instr.shape.clone(), instr.operands().to_vec(), instr.attrs.clone());
    let copy = m.before_shaped(id, opcode, shape, &operands, attrs);
    let uses = m.module.users(id).to_vec();
    for u in uses {
        if m.choices.chance(128) {
            m.module.set_operand(u.user, u.operand as usize, copy);
        }
    }
    let computation = m.module.instr(id).parent();
    if m.module.users(copy).is_empty() {
        m.module.remove(copy);
        return None;
    }
    m.prune(computation);
    Some(())
}
