//! Hoists elementwise work out of broadcasts: it is done once on the operand and then broadcast. The same
//! operation on the same operands gives the same bits wherever it stands in an array.

use hlo::attrs::{AttrKey, AttrValue, Attrs};
use hlo::{InstrId, Module, Opcode, Shape};

use super::PassCx;
use super::edit::{Edit, each_outside_folds};

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_outside_folds(module, cx.fuel, |e| match e.at().opcode {
        Opcode::Broadcast => counted(e),
        opcode if opcode.is_elementwise() => once(e),
        _ => None,
    })
}

fn once(e: &mut Edit<'_>) -> Option<InstrId> {
    let out = e.array(e.id())?;
    let (dims, ty) = (out.dims.clone(), out.element_type);
    if dims.is_empty() || e.at().operands().is_empty() || !e.at().attrs.called_computations().is_empty() {
        return None;
    }
    // The broadcast operands and their common mapping; scalars fit any.
    let mut source: Option<(Vec<i64>, Vec<i64>)> = None;
    let mut inner = Vec::with_capacity(e.at().operands().len());
    for &o in e.at().operands() {
        let instr = e.instr(o);
        if instr.shape.is_scalar() {
            // The predicate of a selection, a bound of `clamp`: a scalar.
            inner.push((o, true));
            continue;
        }
        let x = *instr.operands().first().filter(|_| instr.opcode == Opcode::Broadcast)?;
        let array = e.array(x)?;
        if array.element_type != instr.shape.element_type()? || e.array(o)?.dims != dims {
            return None;
        }
        if array.dims.is_empty() {
            inner.push((x, true));
            continue;
        }
        let how = (array.dims.to_vec(), instr.attrs.ints_or_empty(AttrKey::Dimensions).to_vec());
        if *source.get_or_insert_with(|| how.clone()) != how {
            return None;
        }
        inner.push((x, false));
    }
    let (small, mapping) = source.unwrap_or_default();
    let elements = |d: &[i64]| d.iter().try_fold(1i64, |n, &d| n.checked_mul(d));
    if elements(&small)? >= elements(&dims)? {
        return None;
    }
    let mut operands = Vec::with_capacity(inner.len());
    for (x, scalar) in inner {
        operands.push(if scalar { e.fill_dims(x, &small)? } else { x });
    }
    let (opcode, attrs) = (e.at().opcode, e.at().attrs.clone());
    let result = e.shaped(opcode, Shape::array(ty, &small), &operands, attrs)?;
    e.broadcast(result, &dims, &mapping)
}

/// An iota broadcast along other dimensions is an iota along a dimension of the result.
fn counted(e: &mut Edit<'_>) -> Option<InstrId> {
    let iota = e.instr(e.operand(0)?);
    if iota.opcode != Opcode::Iota || iota.shape.element_type() != e.at().shape.element_type() {
        return None;
    }
    let along = usize::try_from(iota.attrs.int(AttrKey::IotaDimension)?).ok()?;
    let dim = *e.at().attrs.ints(AttrKey::Dimensions)?.get(along)?;
    let shape = Shape::Array(e.array(e.id())?.without_layout());
    e.shaped(Opcode::Iota, shape, &[], Attrs::new().with(AttrKey::IotaDimension, AttrValue::Int(dim)))
}
