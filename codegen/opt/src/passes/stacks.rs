//! Stacks that are folded over the stacking dimension: selections by the first of several conditions, the
//! maximum of several arrays.
//!
//! The fold is done part by part, in order, and the stack is not materialized. Between the stack and the fold
//! there may be elementwise instructions and prefix scans (whose order is not observable). Sums of floats are
//! exact before they are rounded, so they stay.

use hlo::attrs::AttrKey;
use hlo::{ElementType, InstrId, Opcode, Shape};
use rustc_hash::FxHashMap;

use super::calls::lanes;
use super::edit::Edit;
use super::facts::{counts_along, splat};
use super::reduce::{inputs, is_exact, operation, result};

/// The maximum number of parts of a stack, and of instructions that they may become.
const MAX_CONCAT_PARTS: usize = 16;
const MAX_FOLDED: usize = 160;

/// A reduction over the dimension along which arrays of size 1 there are concatenated.
pub(super) fn folded(e: &mut Edit<'_>) -> Option<InstrId> {
    let (arrays, inits) = inputs(e)?;
    let &[along] = e.at().attrs.ints(AttrKey::Dimensions)? else { return None };
    let dim = usize::try_from(along).ok()?;
    let dims = e.array(*arrays.first()?)?.dims.clone();
    let callee = e.at().attrs.computation(AttrKey::ToApply)?;
    let count = usize::try_from(dims[dim]).ok().filter(|n| (2..=MAX_CONCAT_PARTS).contains(n))?;
    // Sums of floats are exact before they are rounded.
    let adds = |id: InstrId| {
        let instr = e.instr(id);
        matches!(instr.opcode, Opcode::Add | Opcode::Multiply | Opcode::Subtract)
            && instr.shape.element_type().is_none_or(|ty| !ty.is_integer() && ty != ElementType::Pred)
    };
    if e.module.instructions(callee).any(adds) {
        return None;
    }
    let kept: Vec<i64> = (0..dims.len()).filter(|&d| d != dim).map(|d| dims[d]).collect();
    let mut stack = Stack { dim, kept, of: FxHashMap::default(), work: e.module.computation(callee).len() };
    let mut stacked = false;
    for &x in &arrays {
        stacked |= stack.survey(e, x, e.id())?;
    }
    if !stacked || stack.work * count > MAX_FOLDED {
        return None;
    }
    let mut folded = Vec::with_capacity(inits.len());
    for &init in &inits {
        folded.push(e.fill_dims(init, &stack.kept)?);
    }
    for n in 0..count {
        let mut operands = folded;
        for &x in &arrays {
            operands.push(stack.part(e, x, n)?);
        }
        folded = lanes(e, callee, &operands, &stack.kept)?;
    }
    result(e, &folded)
}

struct Stack {
    /// The stacking dimension, and all others.
    dim: usize,
    kept: Vec<i64>,
    /// Parts that have been built.
    of: FxHashMap<(InstrId, usize), InstrId>,
    /// Instructions per part.
    work: usize,
}

impl Stack {
    /// Whether an array is computed from a stack; `None` if something has no parts, or is needed by others
    /// than `user`.
    fn survey(&mut self, e: &Edit<'_>, x: InstrId, user: InstrId) -> Option<bool> {
        if counts_along(e.module, x, self.dim) || splat(e.module, x).is_some() {
            return Some(false);
        }
        let instr = e.instr(x);
        self.work += 1;
        let alone = e.module.users(x).iter().all(|u| u.user == user);
        if !alone || self.work > MAX_FOLDED || !instr.control_predecessors.is_empty() {
            return None;
        }
        match instr.opcode {
            Opcode::Concatenate => {
                let along = instr.attrs.ints(AttrKey::Dimensions) == Some(&[self.dim as i64][..]);
                let single = |&o: &InstrId| e.array(o).is_some_and(|a| a.dims.get(self.dim) == Some(&1));
                (along && instr.operands().iter().all(single)).then_some(true)
            }
            Opcode::ReduceWindow => {
                let &[of, _] = instr.operands() else { return None };
                self.is_running(e, x).then_some(())?;
                self.survey(e, of, x)
            }
            _ if instr.opcode.is_elementwise() => {
                let mut stacked = false;
                for &o in instr.operands() {
                    stacked |= self.survey(e, o, x)?;
                }
                Some(stacked)
            }
            _ => None,
        }
    }

    /// Whether a `reduce-window` is a prefix scan along the dimension.
    fn is_running(&self, e: &Edit<'_>, x: InstrId) -> bool {
        let instr = e.instr(x);
        let (Some(window), Some(callee)) = (instr.attrs.window(), instr.attrs.computation(AttrKey::ToApply))
        else {
            return false;
        };
        let Some((opcode, ty)) = operation(e.module, callee) else { return false };
        let typed = instr.operands().iter().all(|&o| e.array(o).is_some_and(|a| a.element_type == ty));
        let Some(size) = e.array(x).and_then(|a| a.dims.get(self.dim).copied()) else { return false };
        let running = window.dims.iter().enumerate().all(|(d, w)| {
            let low = if d == self.dim { size - 1 } else { 0 };
            (w.size, w.pad_low, w.pad_high, w.stride) == (low + 1, low, 0, 1)
                && w.window_dilation == 1
                && w.base_dilation == 1
        });
        typed && running && is_exact(opcode, ty)
    }

    /// Part `n` of an array that [`Stack::survey`] accepted.
    fn part(&mut self, e: &mut Edit<'_>, x: InstrId, n: usize) -> Option<InstrId> {
        if let Some(&known) = self.of.get(&(x, n)) {
            return Some(known);
        }
        if let Some(part) = known_part(e, x, self.dim, n as i64, &self.kept) {
            self.of.insert((x, n), part);
            return Some(part);
        }
        let ty = e.array(x)?.element_type;
        let instr = e.instr(x);
        let (opcode, operands, attrs) = (instr.opcode, instr.operands().to_vec(), instr.attrs.clone());
        let part = match opcode {
            Opcode::Concatenate => e.reshape(*operands.get(n)?, &self.kept)?,
            Opcode::ReduceWindow => {
                let before = match n.checked_sub(1) {
                    Some(before) => self.part(e, x, before)?,
                    None => e.fill_dims(operands[1], &self.kept)?,
                };
                let own = self.part(e, operands[0], n)?;
                let callee = attrs.computation(AttrKey::ToApply)?;
                *lanes(e, callee, &[before, own], &self.kept)?.first()?
            }
            _ => {
                let parts = operands.iter().map(|&o| self.part(e, o, n)).collect::<Option<Vec<_>>>()?;
                e.shaped(opcode, Shape::array(ty, &self.kept), &parts, attrs)?
            }
        };
        self.of.insert((x, n), part);
        Some(part)
    }
}

/// Element `n` of one dimension, as [`Edit::part`], of a splat or of an iota along the dimension.
pub(super) fn known_part(e: &mut Edit<'_>, x: InstrId, dim: usize, n: i64, kept: &[i64]) -> Option<InstrId> {
    let bits = match splat(e.module, x) {
        Some((_, bits)) => bits,
        None => u128::try_from(n).ok().filter(|_| counts_along(e.module, x, dim))?,
    };
    let one = e.scalar_bits(e.array(x)?.element_type, bits);
    e.fill_dims(one, kept)
}
