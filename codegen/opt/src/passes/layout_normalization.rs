//! Layout normalization: afterwards every array is dense and row-major by its logical indices, and no
//! operation asks for anything else.
//!
//! Values do not change: only `bitcast` reads memory order, and it becomes what it means there, the steps
//! into the operand's memory order ([`hlo::memory_order`]), a reshape (a `bitcast-convert` if the type
//! changes) and the steps out of the result's, backwards. What remains are bitcasts of sparse layouts and of
//! run-time sizes, whose shapes keep their layouts, as do the results of library calls, which may read them.
//! `entry_computation_layout` stays: it is the layout in which a caller wants arguments.

use hlo::attrs::{AttrKey, Attrs, PaddingDim, SliceDim};
use hlo::memory_order::{self, Step};
use hlo::{ArrayShape, InstrId, Module, Opcode, Shape};

use super::PassCx;
use super::edit::{Edit, each, each_outside_folds, whole};

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    let bitcasts = each_outside_folds(module, cx.fuel, |e| match e.at().opcode {
        Opcode::Bitcast => bitcast(e),
        _ => None,
    });
    let layouts = drop_layouts(module, cx);
    let copies = each(module, cx.fuel, |e| match e.at().opcode {
        Opcode::Copy => e.operand(0),
        _ => None,
    });
    bitcasts + layouts + copies
}

fn bitcast(e: &mut Edit<'_>) -> Option<InstrId> {
    let x = e.operand(0)?;
    let (from, to) = (e.array(x)?.clone(), e.array(e.id())?.clone());
    if from.same_dims(&to) && from.layout == to.layout {
        return Some(x);
    }
    let (source, _) = memory_order::steps(from.layout.as_deref(), &from.dims).ok()?;
    let (target, shapes) = memory_order::steps(to.layout.as_deref(), &to.dims).ok()?;
    let mut at = Steps { at: x, order: (0..from.rank()).collect(), dims: from.dims.to_vec() };
    for step in &source {
        match step {
            Step::Permute(order) => at.permute(order),
            Step::Reshape(dims) => at.reshape(e, dims)?,
            Step::Pad(dims) => at.resize(e, dims)?,
        }
    }
    let physical = shapes.last()?;
    let n = elements(physical)?;
    if from.element_type != to.element_type {
        let (bits, wanted) = (i64::from(from.element_type.bits()), i64::from(to.element_type.bits()));
        let total_bits = n.checked_mul(wanted)?;
        if bits % wanted != 0 && wanted % bits != 0 {
            return None;
        }
        let count = total_bits / bits + i64::from(total_bits % bits != 0);
        let both = if wanted > bits { [n, wanted / bits] } else { [count, 1] };
        if elements(&at.dims)? != count {
            at.length(e, count)?;
        }
        at.reshape(e, if wanted > bits { &both } else { &both[..1] })?;
        let x = at.flush(e)?;
        let mut dims = vec![if wanted > bits { n } else { count }];
        if wanted < bits {
            dims.push(bits / wanted);
        }
        let x = e.shaped(Opcode::BitcastConvert, Shape::array(to.element_type, &dims), &[x], Attrs::new())?;
        at = Steps { at: x, order: (0..dims.len()).collect(), dims };
    }
    if elements(&at.dims)? != n {
        at.length(e, n)?;
    }
    at.reshape(e, physical)?;
    for (step, before) in target.iter().zip(&shapes).rev() {
        match step {
            Step::Permute(order) => {
                let mut inverse = vec![0; order.len()];
                order.iter().enumerate().for_each(|(i, &d)| inverse[d] = i);
                at.permute(&inverse);
            }
            Step::Reshape(_) => at.reshape(e, before)?,
            Step::Pad(_) => at.resize(e, before)?,
        }
    }
    let result = at.flush(e)?;
    reshaped(e, result, &to.dims)
}

fn elements(dims: &[i64]) -> Option<i64> {
    dims.iter().try_fold(1i64, |n, &d| n.checked_mul(d))
}

fn reshaped(e: &mut Edit<'_>, x: InstrId, dims: &[i64]) -> Option<InstrId> {
    if e.array(x)?.dims[..] == *dims { Some(x) } else { e.reshape(x, dims) }
}

/// A value that is `at` with its dimensions in another order.
struct Steps {
    at: InstrId,
    order: Vec<usize>,
    /// Dimensions of `at`.
    dims: Vec<i64>,
}

impl Steps {
    fn permute(&mut self, order: &[usize]) {
        self.order = order.iter().map(|&d| self.order[d]).collect();
    }

    /// The value itself. Where only dimensions of size 1 move, the order of the elements stays, and so does
    /// the operand.
    fn flush(&mut self, e: &mut Edit<'_>) -> Option<InstrId> {
        let dims: Vec<i64> = self.order.iter().map(|&d| self.dims[d]).collect();
        let long = self.order.iter().filter(|&&d| self.dims[d] != 1);
        self.at = if long.is_sorted() {
            reshaped(e, self.at, &dims)?
        } else {
            let order: Vec<i64> = self.order.iter().map(|&d| d as i64).collect();
            e.transpose(self.at, &order)?
        };
        self.order = (0..dims.len()).collect();
        self.dims = dims;
        Some(self.at)
    }

    fn reshape(&mut self, e: &mut Edit<'_>, dims: &[i64]) -> Option<()> {
        if self.order.iter().map(|&d| self.dims[d]).eq(dims.iter().copied()) {
            return Some(());
        }
        let x = self.flush(e)?;
        self.at = reshaped(e, x, dims)?;
        self.order = (0..dims.len()).collect();
        self.dims = dims.to_vec();
        Some(())
    }

    /// Collapsed to one dimension of that many elements: truncated, or padded with zeros.
    fn length(&mut self, e: &mut Edit<'_>, n: i64) -> Option<()> {
        let all = elements(&self.dims)?;
        self.reshape(e, &[all])?;
        self.resize(e, &[n])
    }

    /// Other sizes: truncated at the ends, or padded with zeros.
    fn resize(&mut self, e: &mut Edit<'_>, dims: &[i64]) -> Option<()> {
        let mut x = self.flush(e)?;
        if self.dims.iter().zip(dims).any(|(now, then)| then < now) {
            let kept: Vec<SliceDim> =
                self.dims.iter().zip(dims).map(|(now, then)| whole(*now.min(then))).collect();
            x = e.slice(x, &kept)?;
        }
        if self.dims.iter().zip(dims).any(|(now, then)| then > now) {
            let more = self.dims.iter().zip(dims).map(|(&now, &then)| PaddingDim {
                low: 0,
                high: (then - now).max(0),
                interior: 0,
            });
            let zero = e.scalar_bits(e.array(x)?.element_type, 0);
            x = e.pad(x, zero, &more.collect::<Vec<_>>())?;
        }
        self.at = x;
        self.dims = dims.to_vec();
        Some(())
    }
}

/// Whether a shape says anything about layouts.
fn has_layout(shape: &Shape) -> bool {
    match shape {
        Shape::Array(a) => a.layout.is_some(),
        Shape::Tuple(t) => t.iter().any(has_layout),
        Shape::Token | Shape::Opaque => false,
        Shape::Buffer(s) => has_layout(s),
    }
}

fn drop_layouts(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    let mut applied = 0;
    let all: Vec<InstrId> = module.computations().iter().flat_map(|&c| module.instructions(c)).collect();
    for id in all {
        let instr = module.instr(id);
        let read = matches!(instr.opcode, Opcode::Bitcast | Opcode::CustomCall)
            || module.users(id).iter().any(|u| module.instr(u.user).opcode == Opcode::Bitcast);
        if read || !has_layout(&instr.shape) {
            continue;
        }
        if !cx.fuel.take() {
            break;
        }
        let shape = instr.shape.without_layout();
        module.instr_mut(id).shape = shape;
        applied += 1;
    }
    applied
}

/// Elided constants as literals: their values depend on their names, so that nothing else may move them.
pub(super) fn elided(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    let mut applied = 0;
    let all: Vec<InstrId> = module.computations().iter().flat_map(|&c| module.instructions(c)).collect();
    for id in all {
        if !super::facts::is_elided(module, id) {
            continue;
        }
        let instr = module.instr(id);
        let dynamic = instr.shape.leaves().iter().any(|s| s.as_array().is_none_or(ArrayShape::is_dynamic));
        let Some(literal) =
            (!dynamic).then(|| hlo::elided::elided_literal(&instr.name, &instr.shape)).flatten()
        else {
            continue;
        };
        if !cx.fuel.take() {
            break;
        }
        let value = hlo::attrs::AttrValue::Literal(hlo::ConstantValue::Given(std::sync::Arc::new(literal)));
        module.instr_mut(id).attrs.set(AttrKey::ConstantValue, value);
        applied += 1;
    }
    applied
}
