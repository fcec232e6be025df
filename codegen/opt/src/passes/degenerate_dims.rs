//! Elementwise work and broadcasts without dimensions of size 1 (degenerate dimensions).
//!
//! `f32[8192,1]` holds what `f32[8192]` holds, in the same order, so elementwise instructions, broadcasts and
//! reductions that keep such dimensions are done without them, between reshapes. Adjacent reshapes cancel
//! here already (the operand of a reshape is used, not its result), so that what a normalization computes per
//! row has the dimensions of its reductions.

use hlo::attrs::{AttrKey, Attrs};
use hlo::{ArrayShape, InstrId, Module, Opcode, Shape};

use super::PassCx;
use super::edit::{Edit, each_outside_folds, ints};

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_outside_folds(module, cx.fuel, |e| {
        let opcode = e.at().opcode;
        match opcode {
            Opcode::Broadcast => broadcast(e),
            Opcode::Reduce => reduce(e),
            _ if opcode.is_elementwise() => elementwise(e),
            _ => None,
        }
    })
}

fn long(dims: &[i64]) -> Vec<i64> {
    dims.iter().copied().filter(|&d| d != 1).collect()
}

/// `x` without dimensions of size 1.
fn squeezed(e: &mut Edit<'_>, x: InstrId) -> Option<InstrId> {
    let shape = e.array(x)?;
    if !shape.dims.contains(&1) {
        return Some(x);
    }
    let (ty, dims) = (shape.element_type, long(&shape.dims));
    // The value before dimensions were added.
    let instr = e.instr(x);
    if let (Opcode::Reshape, &[y]) = (instr.opcode, instr.operands()) {
        let before = e.array(y)?;
        if before.element_type == ty && before.dims[..] == dims[..] {
            return Some(y);
        }
    }
    e.reshape(x, &dims)
}

/// The instruction without dimensions of size 1, reshaped back.
fn elementwise(e: &mut Edit<'_>) -> Option<InstrId> {
    let shape: ArrayShape = e.array(e.id())?.clone();
    if !shape.dims.contains(&1) {
        return None;
    }
    let operands = e.at().operands().to_vec();
    let mut with = Vec::with_capacity(operands.len());
    for o in operands {
        with.push(squeezed(e, o)?);
    }
    let (opcode, attrs) = (e.at().opcode, e.at().attrs.clone());
    let result = e.shaped(opcode, Shape::array(shape.element_type, &long(&shape.dims)), &with, attrs)?;
    e.reshape(result, &shape.dims)
}

fn broadcast(e: &mut Edit<'_>) -> Option<InstrId> {
    let x = e.operand(0)?;
    let (from, to) = (e.array(x)?.clone(), e.array(e.id())?.clone());
    if from.element_type != to.element_type || !(from.dims.contains(&1) || to.dims.contains(&1)) {
        return None;
    }
    // The dimension that each dimension of the result becomes.
    let mut new_dims = Vec::with_capacity(to.rank());
    let mut next = 0i64;
    for &d in &to.dims {
        new_dims.push(next);
        next += i64::from(d != 1);
    }
    let mapping = e.at().attrs.ints_or_empty(AttrKey::Dimensions).to_vec();
    let mut new = Vec::new();
    for (&d, &m) in from.dims.iter().zip(&mapping) {
        if d != 1 {
            new.push(*new_dims.get(usize::try_from(m).ok()?)?);
        }
    }
    let x = squeezed(e, x)?;
    let dims = long(&to.dims);
    let same = new.len() == dims.len() && new.is_sorted();
    let result = if same { x } else { e.broadcast(x, &dims, &new)? };
    if dims.len() == to.rank() { Some(result) } else { e.reshape(result, &to.dims) }
}

/// A reduction of an operand with dimensions of size 1, which are kept or reduced: they change neither the
/// elements nor their order.
fn reduce(e: &mut Edit<'_>) -> Option<InstrId> {
    let shape: ArrayShape = e.array(e.id())?.clone();
    let [x, init] = e.operands()?;
    let from = e.array(x)?.clone();
    if !from.dims.contains(&1) {
        return None;
    }
    let over = e.at().attrs.ints(AttrKey::Dimensions)?.to_vec();
    let size = |d: &i64| usize::try_from(*d).ok().and_then(|d| from.dims.get(d)).copied();
    let mut new = Vec::new();
    for d in &over {
        if size(d)? != 1 {
            let before = from.dims[..usize::try_from(*d).ok()?].iter().filter(|&&d| d != 1).count();
            new.push(before as i64);
        }
    }
    if new.is_empty() {
        return None;
    }
    let x = squeezed(e, x)?;
    let attrs: Attrs = e.at().attrs.clone().with(AttrKey::Dimensions, ints(&new));
    let result =
        e.shaped(Opcode::Reduce, Shape::array(shape.element_type, &long(&shape.dims)), &[x, init], attrs)?;
    if shape.dims.contains(&1) { e.reshape(result, &shape.dims) } else { Some(result) }
}
