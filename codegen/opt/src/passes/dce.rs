//! Dead code elimination: instructions without users and effects, and computations that nothing calls. The
//! interpreter does not run these either, so no result, trap or random number depends on them.

use hlo::{ComputationId, InstrId, Module};
use rustc_hash::FxHashSet;

use super::PassCx;
use super::edit::Survey;

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    let survey = Survey::of(module);
    let mut applied = 0;
    for c in module.computations().to_vec() {
        // Users come after operands.
        let ids: Vec<InstrId> = module.instructions(c).collect();
        for id in ids.into_iter().rev() {
            if module.users(id).is_empty()
                && module.root(c) != id
                && !survey.pinned.contains(&id)
                && survey.effects.removable(module, id)
            {
                if !cx.fuel.take() {
                    return applied;
                }
                module.remove(id);
                applied += 1;
            }
        }
    }
    let mut called: FxHashSet<ComputationId> = FxHashSet::default();
    let mut pending: Vec<ComputationId> = module.entry_or_none().into_iter().collect();
    if pending.is_empty() {
        return applied;
    }
    while let Some(c) = pending.pop() {
        if called.insert(c) {
            let ids: Vec<InstrId> = module.instructions(c).collect();
            pending.extend(ids.iter().flat_map(|&id| module.instr(id).attrs.called_computations()));
        }
    }
    for c in module.computations().to_vec() {
        if !called.contains(&c) {
            if !cx.fuel.take() {
                break;
            }
            module.remove_computation(c);
            applied += 1;
        }
    }
    applied
}
