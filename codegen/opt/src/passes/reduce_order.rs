//! Reductions in storage order.
//!
//! The loops of a reduction follow the dimensions of its operand. If that is transposed, they would be
//! strided, so the reduction is moved before the transpose, over the dimensions that the reduced ones are
//! there. Elementwise instructions between the two move along, on arrays that are transposed in the same way,
//! broadcast or iota.
//!
//! Where only the reduced dimensions, or only the kept ones, are reshaped after a transpose (patches of a
//! picture, put together), the reduction is first moved before the reshape: its terms come in the same order.
//!
//! Bit-identical in both modes of sums: the terms of each result come in the same order, or in one that is
//! not observable.

use hlo::attrs::{AttrKey, AttrValue};
use hlo::{InstrId, Opcode, Shape};
use rustc_hash::FxHashMap;

use super::edit::{Edit, ints};
use super::reduce::{inputs, is_exact, operation};

/// The maximum number of instructions between a reduction and the transpose.
const MAX_INSTRUCTIONS: usize = 64;

/// A reduction of transposed arrays, possibly reshaped afterwards.
pub(super) fn in_storage_order(e: &mut Edit<'_>) -> Option<InstrId> {
    transposed(e).or_else(|| regrouped(e))
}

/// A reduction of arrays that are reshaped after a transpose.
fn regrouped(e: &mut Edit<'_>) -> Option<InstrId> {
    let (arrays, inits) = inputs(e)?;
    let &x = arrays.first()?;
    let mut order = Order::of(Opcode::Reshape);
    arrays.iter().try_for_each(|&x| order.survey(e, x))?;
    let reduced = e.at().attrs.ints(AttrKey::Dimensions)?.to_vec();
    let dimensions = reduced_before(&order.before, &e.array(x)?.dims, &reduced)?;
    if !order.is_worth(e) {
        return None;
    }
    let mut operands = arrays.iter().map(|&x| order.before(e, x)).collect::<Option<Vec<_>>>()?;
    operands.extend(inits);
    let dims = e.at().shape.leaves().first()?.as_array()?.dims.to_vec();
    let attrs = e.at().attrs.clone().with(AttrKey::Dimensions, ints(&dimensions));
    let made = e.add(Opcode::Reduce, &operands, attrs)?;
    each_part(e, made, arrays.len(), |e, part| e.reshape(part, &dims))
}

/// The result of a variadic reduction, with something done to each part.
fn each_part(
    e: &mut Edit<'_>,
    made: InstrId,
    count: usize,
    mut then: impl FnMut(&mut Edit<'_>, InstrId) -> Option<InstrId>,
) -> Option<InstrId> {
    if count == 1 {
        return then(e, made);
    }
    let parts = (0..count as i64).map(|i| {
        let part = e.get(made, i)?;
        then(e, part)
    });
    let parts = parts.collect::<Option<Vec<_>>>()?;
    e.tuple(&parts)
}

/// The reduced dimensions before the reshape; those of size 1 are not. `None`: a group is reduced only in
/// part.
fn reduced_before(before: &[i64], dims: &[i64], reduced: &[i64]) -> Option<Vec<i64>> {
    let long = |dims: &[i64]| -> Vec<(i64, i64)> {
        (0..).zip(dims.iter().copied()).filter(|&(_, size)| size != 1).collect()
    };
    let mut finer = long(before).into_iter();
    let mut coarser = long(dims).into_iter();
    let mut dimensions = Vec::new();
    while let Some((d, size)) = coarser.next() {
        let whether = reduced.contains(&d);
        let (mut of_finer, mut of_coarser) = (1i64, size);
        // The shortest groups with equal numbers of elements.
        while of_finer != of_coarser {
            if of_finer < of_coarser {
                let (b, size) = finer.next()?;
                of_finer = of_finer.checked_mul(size)?;
                dimensions.extend(whether.then_some(b));
            } else {
                let (_, size) = coarser.next().filter(|(d, _)| reduced.contains(d) == whether)?;
                of_coarser = of_coarser.checked_mul(size)?;
            }
        }
    }
    (!dimensions.is_empty()).then_some(dimensions)
}

fn transposed(e: &mut Edit<'_>) -> Option<InstrId> {
    let (arrays, inits) = inputs(e)?;
    let &x = arrays.first()?;
    let mut order = Order::of(Opcode::Transpose);
    arrays.iter().try_for_each(|&x| order.survey(e, x))?;
    let dims = e.array(x)?.dims.clone();
    let memory_order: Option<Vec<usize>> =
        order.permutation.iter().map(|&d| usize::try_from(d).ok()).collect();
    let memory_order = memory_order.filter(|memory_order| memory_order.len() == dims.len())?;
    // If rows stay rows, elements are as close to each other in either order.
    let last = (0..dims.len()).rev().find(|&d| dims[d] != 1)?;
    let mut before = vec![0; dims.len()];
    memory_order.iter().zip(&dims).for_each(|(&d, &size)| before[d] = size);
    if before.iter().rposition(|&size| size != 1) == Some(memory_order[last]) {
        return None;
    }
    order.before = before;
    if !order.is_worth(e) {
        return None;
    }
    let mut reduced = e.at().attrs.ints(AttrKey::Dimensions)?.to_vec();
    reduced.sort_unstable();
    let position = |d: i64| Some(*memory_order.get(usize::try_from(d).ok()?)? as i64);
    let mut dimensions: Vec<i64> = reduced.iter().map(|&d| position(d)).collect::<Option<_>>()?;
    // Dimensions of size 1 have no part in the order of the terms.
    let long = dimensions.iter().filter(|&&d| order.before[d as usize] != 1);
    if !long.is_sorted() && !hides_order(e) {
        return None;
    }
    dimensions.sort_unstable();
    // Where the kept dimensions were before, in the order of the result.
    let kept: Vec<i64> =
        (0..dims.len() as i64).filter(|d| !reduced.contains(d)).map(position).collect::<Option<_>>()?;
    let mut sorted = kept.clone();
    sorted.sort_unstable();
    let mut operands = arrays.iter().map(|&x| order.before(e, x)).collect::<Option<Vec<_>>>()?;
    operands.extend(inits);
    let attrs = e.at().attrs.clone().with(AttrKey::Dimensions, ints(&dimensions));
    let result = e.add(Opcode::Reduce, &operands, attrs)?;
    if sorted == kept {
        return Some(result);
    }
    let permutation: Vec<i64> =
        kept.iter().map(|d| Some(sorted.iter().position(|s| s == d)? as i64)).collect::<Option<_>>()?;
    each_part(e, result, arrays.len(), |e, part| e.transpose(part, &permutation))
}

/// Whether the order of the terms is observable.
fn hides_order(e: &Edit<'_>) -> bool {
    let operation = e.at().attrs.computation(AttrKey::ToApply).and_then(|c| operation(e.module, c));
    let typed = |ty| e.array(e.id()).is_some_and(|a| a.element_type == ty);
    operation.is_some_and(|(opcode, ty)| typed(ty) && is_exact(opcode, ty))
}

/// The expression that a reduction's operand is computed by.
struct Order {
    /// What is moved past: transposes, or reshapes of transposed arrays.
    undone: Opcode,
    /// The common permutation of all transposed arrays.
    permutation: Vec<i64>,
    /// The dimensions before it.
    before: Vec<i64>,
    /// The instructions in between, in any order, and what replaces them.
    between: Vec<InstrId>,
    made: FxHashMap<InstrId, InstrId>,
}

impl Order {
    fn of(undone: Opcode) -> Self {
        Self {
            undone,
            permutation: Vec::new(),
            before: Vec::new(),
            between: Vec::new(),
            made: FxHashMap::default(),
        }
    }

    /// Finds what can be moved past. `None`: some array cannot be had in the other order.
    fn survey(&mut self, e: &Edit<'_>, x: InstrId) -> Option<()> {
        if self.between.contains(&x) {
            return Some(());
        }
        let instr = e.instr(x);
        e.array(x)?;
        // Whether elements are moved and not converted.
        let moves = || {
            let of = instr.operands().first().and_then(|&o| e.array(o));
            of.map(|a| a.element_type) == instr.shape.element_type()
        };
        match instr.opcode {
            Opcode::Reshape if self.undone == Opcode::Reshape => {
                let of = *instr.operands().first()?;
                let dims = &e.array(of)?.dims;
                let known = !self.before.is_empty() && self.before[..] != dims[..];
                if known || !moves() || e.instr(of).opcode != Opcode::Transpose {
                    return None;
                }
                self.before = dims.to_vec();
                Some(())
            }
            Opcode::Broadcast if self.undone == Opcode::Reshape => {
                (moves() && e.array(*instr.operands().first()?)?.dims.is_empty()).then_some(())
            }
            Opcode::Transpose if self.undone == Opcode::Transpose => {
                let permutation = instr.attrs.ints(AttrKey::Dimensions)?;
                if !moves() || !self.permutation.is_empty() && self.permutation != permutation {
                    return None;
                }
                self.permutation = permutation.to_vec();
                Some(())
            }
            Opcode::Iota if self.undone == Opcode::Transpose => Some(()),
            Opcode::Broadcast => moves().then_some(()),
            opcode if opcode.is_elementwise() => {
                self.between.push(x);
                if self.between.len() > MAX_INSTRUCTIONS || !instr.control_predecessors.is_empty() {
                    return None;
                }
                instr.operands().iter().try_for_each(|&o| self.survey(e, o))
            }
            _ => None,
        }
    }

    /// Whether nothing expensive would be computed twice: what is not only used by reductions stays.
    fn is_worth(&self, e: &Edit<'_>) -> bool {
        let inside = |user: InstrId| self.between.contains(&user) || e.instr(user).opcode == Opcode::Reduce;
        let alone = |id: InstrId| e.module.users(id).iter().all(|u| inside(u.user));
        self.between.iter().all(|&id| is_quick(e.instr(id).opcode) || alone(id))
    }

    /// An array of the survey in the order before.
    fn before(&mut self, e: &mut Edit<'_>, x: InstrId) -> Option<InstrId> {
        if let Some(&made) = self.made.get(&x) {
            return Some(made);
        }
        let instr = e.instr(x);
        let (opcode, operands, attrs) = (instr.opcode, instr.operands().to_vec(), instr.attrs.clone());
        let shape = Shape::array(e.array(x)?.element_type, &self.before);
        let permuted = |d: &i64| self.permutation.get(usize::try_from(*d).ok()?).copied();
        let made = match opcode {
            Opcode::Transpose | Opcode::Reshape => *operands.first()?,
            Opcode::Iota => {
                let along = permuted(&attrs.int(AttrKey::IotaDimension)?)?;
                e.shaped(opcode, shape, &[], attrs.with(AttrKey::IotaDimension, AttrValue::Int(along)))?
            }
            Opcode::Broadcast => {
                let mapping = attrs.ints_or_empty(AttrKey::Dimensions);
                let mapping: Vec<i64> = mapping.iter().map(permuted).collect::<Option<_>>()?;
                // The broadcast dimensions keep their order, so the operand is transposed first.
                let mut permutation: Vec<i64> = (0..mapping.len() as i64).collect();
                permutation.sort_by_key(|&d| mapping[d as usize]);
                let mut sorted = mapping.clone();
                sorted.sort_unstable();
                let of = *operands.first()?;
                let of = if sorted == mapping { of } else { e.transpose(of, &permutation)? };
                e.broadcast(of, &self.before, &sorted)?
            }
            _ => {
                let operands: Vec<InstrId> =
                    operands.iter().map(|&o| self.before(e, o)).collect::<Option<_>>()?;
                e.shaped(opcode, shape, &operands, attrs)?
            }
        };
        self.made.insert(x, made);
        Some(made)
    }
}

/// Cheaper to compute than to read the operands.
fn is_quick(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Abs
            | Opcode::Add
            | Opcode::And
            | Opcode::Compare
            | Opcode::Convert
            | Opcode::Maximum
            | Opcode::Minimum
            | Opcode::Multiply
            | Opcode::Negate
            | Opcode::Not
            | Opcode::Or
            | Opcode::Select
            | Opcode::Subtract
            | Opcode::Xor
    )
}
