//! Layouts taken out: afterwards every array lies dense and row-major by its logical indices, and no operation asks for anything else.
//!
//! Values are what they were: only `bitcast` reads memory order, and it becomes what it means there, a permutation into the operand's memory order,
//! a reshape (a `bitcast-convert` if the type changes) and a permutation out of the result's. What remains are bitcasts between
//! layouts with tiles, whose shapes keep their layouts, as do the results of library calls, which may read them. `entry_computation_layout` stays: it
//! says how a caller wanted arguments to lie.

use hlo::attrs::{AttrKey, Attrs};
use hlo::{ArrayShape, InstrId, Layout, Module, Opcode, Shape};

use super::Fuel;
use super::edit::{Edit, each, each_outside_folds};

pub(super) fn run(module: &mut Module, fuel: &mut Fuel) -> u64 {
    let bitcasts = each_outside_folds(module, fuel, |e| match e.at().opcode {
        Opcode::Bitcast => bitcast(e),
        _ => None,
    });
    let layouts = drop_layouts(module, fuel);
    let copies = each(module, fuel, |e| match e.at().opcode {
        Opcode::Copy => e.operand(0),
        _ => None,
    });
    bitcasts + layouts + copies
}

/// The dimensions from the slowest to the fastest in memory; `None` if there is more to a layout than an order.
fn major_to_minor(a: &ArrayShape) -> Option<Vec<usize>> {
    let rank = a.rank();
    let Some(layout) = a.layout.as_deref() else { return Some((0..rank).collect()) };
    let Layout { minor_to_major, dim_levels, tiles, physical_shape, split_configs, .. } = layout;
    let plain =
        dim_levels.is_empty() && tiles.is_empty() && physical_shape.is_none() && split_configs.is_empty();
    let order: Vec<usize> =
        minor_to_major.iter().rev().map(|&d| usize::try_from(d)).collect::<Result<_, _>>().ok()?;
    (plain && order.len() == rank && order.iter().all(|&d| d < rank)).then_some(order)
}

fn bitcast(e: &mut Edit<'_>) -> Option<InstrId> {
    let x = e.operand(0)?;
    let (from, to) = (e.array(x)?.clone(), e.array(e.id())?.clone());
    if from.same_dims(&to) && from.layout == to.layout {
        return Some(x);
    }
    let (source, target) = (major_to_minor(&from)?, major_to_minor(&to)?);
    let mut steps = Steps { at: x, order: (0..from.rank()).collect(), dims: from.dims.to_vec() };
    steps.permute(&source);
    let memory: Vec<i64> = target.iter().map(|&d| to.dims[d]).collect();
    if from.element_type != to.element_type {
        let (bits, wanted) = (i64::from(from.element_type.bits()), i64::from(to.element_type.bits()));
        let n = to.checked_elements()?;
        // Only of sizes that fit: memory is neither cut nor filled up.
        if from.checked_elements()?.checked_mul(bits)? != n.checked_mul(wanted)? {
            return None;
        }
        let x = steps.flush(e)?;
        let mut before = vec![n];
        if wanted > bits {
            before.push(wanted / bits);
        } else if wanted < bits {
            before[0] = from.checked_elements()?;
        }
        let x = reshaped(e, x, &before)?;
        let mut dims = vec![before[0]];
        if wanted < bits {
            dims.push(bits / wanted);
        }
        let x = e.shaped(Opcode::BitcastConvert, Shape::array(to.element_type, &dims), &[x], Attrs::new())?;
        steps = Steps { at: x, order: (0..dims.len()).collect(), dims };
    }
    steps.reshape(e, &memory)?;
    let mut inverse = vec![0; target.len()];
    target.iter().enumerate().for_each(|(i, &d)| inverse[d] = i);
    steps.permute(&inverse);
    let result = steps.flush(e)?;
    reshaped(e, result, &to.dims)
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

    /// The value itself. Where only dimensions of one element move, the order of the elements stays, and so does the operand.
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

fn drop_layouts(module: &mut Module, fuel: &mut Fuel) -> u64 {
    let mut applied = 0;
    let all: Vec<InstrId> = module.computations().iter().flat_map(|&c| module.instructions(c)).collect();
    for id in all {
        let instr = module.instr(id);
        let read = matches!(instr.opcode, Opcode::Bitcast | Opcode::CustomCall)
            || module.users(id).iter().any(|u| module.instr(u.user).opcode == Opcode::Bitcast);
        if read || !has_layout(&instr.shape) {
            continue;
        }
        if !fuel.take() {
            break;
        }
        let shape = instr.shape.without_layout();
        module.instr_mut(id).shape = shape;
        applied += 1;
    }
    applied
}

/// Constants of elided text as what they stand for: their values hang on their names, so that nothing else may move them.
pub(super) fn elided(module: &mut Module, fuel: &mut Fuel) -> u64 {
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
        if !fuel.take() {
            break;
        }
        let value = hlo::attrs::AttrValue::Literal(hlo::ConstantValue::Given(std::sync::Arc::new(literal)));
        module.instr_mut(id).attrs.set(AttrKey::ConstantValue, value);
        applied += 1;
    }
    applied
}
