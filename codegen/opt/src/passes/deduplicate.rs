//! Deduplication of structurally identical computations that are applied to elements: reducers, combiners,
//! comparators. So instructions that apply them become equal, and code generation sees each once.
//!
//! The instructions are the same one by one, in the same order, except for names and metadata, so whatever is
//! read off the text of a computation (whether it is a sum) holds for both. Random numbers and elided
//! constants depend on names and on the instruction: such computations stay.

use std::hash::{Hash, Hasher};

use hlo::attrs::Attrs;
use hlo::{ComputationId, InstrId, Module, Opcode};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use super::PassCx;
use super::cse::same_attributes;
use super::edit::Survey;
use super::facts::is_elided;

/// Longer computations are hardly equal.
const MAX_INSTRUCTIONS: usize = 64;

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    let applies = |opcode: Opcode| {
        matches!(
            opcode,
            Opcode::Reduce
                | Opcode::ReduceWindow
                | Opcode::Scatter
                | Opcode::SelectAndScatter
                | Opcode::Sort
                | Opcode::Map
        )
    };
    let mut callers: FxHashMap<ComputationId, Vec<InstrId>> = FxHashMap::default();
    let mut others: FxHashSet<ComputationId> = FxHashSet::default();
    for id in module.computations().iter().flat_map(|&c| module.instructions(c)) {
        let instr = module.instr(id);
        let called = instr.attrs.called_computations();
        if applies(instr.opcode) {
            called.iter().for_each(|&c| callers.entry(c).or_default().push(id));
        } else {
            others.extend(called);
        }
    }
    if callers.len() < 2 {
        return 0;
    }
    let pinned = Survey::of(module).pinned;
    let mut known: FxHashMap<u64, Vec<ComputationId>> = FxHashMap::default();
    let mut applied = 0;
    for c in module.computations().to_vec() {
        let Some(users) = callers.get(&c) else { continue };
        let Some(key) = key(module, c) else { continue };
        let same = known.entry(key).or_default();
        let Some(first) = same.iter().copied().find(|&other| alike(module, c, other)) else {
            same.push(c);
            continue;
        };
        if others.contains(&c) {
            continue;
        }
        for &user in users.iter().filter(|u| !pinned.contains(u)) {
            if !cx.fuel.take() {
                return applied;
            }
            module.instr_mut(user).attrs.map_computations(|called| if called == c { first } else { called });
            applied += 1;
        }
    }
    applied
}

/// Whether attributes are equal, called computations by structure: those of equal loops and branches, which
/// have one caller each.
pub(super) fn same_but_who_is_called(module: &Module, a: &Attrs, b: &Attrs) -> bool {
    let (mut called, other) = (a.called_computations().into_iter(), b.called_computations());
    let says_the_same = |c: ComputationId, other: ComputationId| {
        c == other || key(module, c).is_some_and(|k| key(module, other) == Some(k)) && alike(module, c, other)
    };
    if called.len() != other.len() || !called.clone().zip(&other).all(|(c, &other)| says_the_same(c, other)) {
        return false;
    }
    if other.is_empty() {
        return same_attributes(a, b);
    }
    let mut renamed = b.clone();
    renamed.map_computations(|c| called.next().unwrap_or(c));
    same_attributes(a, &renamed)
}

/// A hash of what is compared; `None` where a computation is not determined by its text.
fn key(module: &Module, c: ComputationId) -> Option<u64> {
    let computation = module.computation(c);
    if computation.len() > MAX_INSTRUCTIONS || computation.execution_thread.is_some() {
        return None;
    }
    let mut hasher = FxHasher::default();
    for id in module.instructions(c) {
        let instr = module.instr(id);
        let flags = instr.opcode.flags();
        if flags.side_effect
            || flags.collective
            || is_elided(module, id)
            || !instr.control_predecessors.is_empty()
        {
            return None;
        }
        (instr.opcode, &instr.shape, instr.operands().len()).hash(&mut hasher);
    }
    Some(hasher.finish())
}

fn alike(module: &Module, a: ComputationId, b: ComputationId) -> bool {
    let mut map: FxHashMap<InstrId, InstrId> = FxHashMap::default();
    let mut others = module.instructions(b);
    for x in module.instructions(a) {
        let Some(y) = others.next() else { return false };
        map.insert(x, y);
        let (x, y) = (module.instr(x), module.instr(y));
        let operands = x.operands().iter().map(|o| map.get(o).copied());
        if x.opcode != y.opcode
            || x.shape != y.shape
            || !operands.eq(y.operands().iter().map(|&o| Some(o)))
            || !same_but_who_is_called(module, &x.attrs, &y.attrs)
        {
            return false;
        }
    }
    others.next().is_none() && map.get(&module.root(a)) == Some(&module.root(b))
}
