//! Slices whose start indices are constants. Indices are clamped so that the slice is inside, as the dynamic
//! operation does, and elements are copied either way.

use hlo::attrs::SliceDim;
use hlo::{InstrId, Module, Opcode};

use super::PassCx;
use super::edit::{Edit, each_outside_folds};
use super::facts::integer;

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_outside_folds(module, cx.fuel, |e| match e.at().opcode {
        Opcode::DynamicSlice => slice(e),
        Opcode::DynamicUpdateSlice => update(e),
        _ => None,
    })
}

/// The start of a box of `sizes`, from the operands from `slot` on: one constant scalar per dimension.
fn starts(e: &Edit<'_>, slot: usize, dims: &[i64], sizes: &[i64]) -> Option<Vec<i64>> {
    let indices = e.at().operands().get(slot..)?;
    if indices.len() != dims.len() || indices.iter().any(|&i| !e.instr(i).shape.is_scalar()) {
        return None;
    }
    indices
        .iter()
        .zip(dims.iter().zip(sizes))
        .map(|(&index, (&dim, &size))| {
            let max_start = i128::from(dim - size).max(0);
            // Only one start is possible, whatever the index.
            let at = if max_start == 0 { 0 } else { integer(e.module, index)?.clamp(0, max_start) };
            i64::try_from(at).ok()
        })
        .collect()
}

fn slice(e: &mut Edit<'_>) -> Option<InstrId> {
    let x = e.operand(0)?;
    let (dims, sizes) = (e.array(x)?.dims.clone(), e.array(e.id())?.dims.clone());
    let starts = starts(e, 1, &dims, &sizes)?;
    if dims == sizes {
        return Some(x);
    }
    let slices: Vec<SliceDim> = starts
        .iter()
        .zip(&sizes)
        .map(|(&start, &size)| SliceDim { start, limit: start + size, stride: 1 })
        .collect();
    e.slice(x, &slices)
}

/// The update alone if it covers everything; a concatenation of what is before it, the update, and what is
/// after it, if it covers all dimensions but one.
fn update(e: &mut Edit<'_>) -> Option<InstrId> {
    let (x, update) = (e.operand(0)?, e.operand(1)?);
    let (dims, sizes) = (e.array(x)?.dims.clone(), e.array(update)?.dims.clone());
    if e.array(x)?.element_type != e.array(update)?.element_type || dims.len() != sizes.len() {
        return None;
    }
    let starts = starts(e, 2, &dims, &sizes)?;
    let mut partial = (0..dims.len()).filter(|&d| sizes[d] != dims[d]);
    let Some(d) = partial.next() else { return Some(update) };
    if partial.next().is_some() {
        return None;
    }
    if sizes[d] == 0 {
        return Some(x);
    }
    let mut parts = Vec::new();
    if starts[d] > 0 {
        parts.push(e.cut(x, d, 0, starts[d])?);
    }
    parts.push(update);
    if starts[d] + sizes[d] < dims[d] {
        parts.push(e.cut(x, d, starts[d] + sizes[d], dims[d])?);
    }
    e.concatenate(&parts, d as i64)
}
