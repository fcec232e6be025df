//! How large a text with bodies in place is: each call has a copy of what it calls.

use super::MAX_NESTED_BODIES;
use crate::Module;

/// The instructions of a text of the module with bodies in place ([`super::Subcomputations::Bodies`]), copies
/// included.
pub fn nested_instructions(module: &Module) -> u64 {
    let mut sizes = vec![0_u64; module.computation_capacity()];
    // Each round follows calls one level deeper.
    for _ in 0..MAX_NESTED_BODIES {
        let mut grown = sizes.clone();
        for &c in module.computations() {
            let size = module.instructions(c).map(|id| {
                let called = module.instr(id).attrs.called_computations();
                called.iter().fold(1_u64, |n, callee| n.saturating_add(sizes[callee.index()]))
            });
            grown[c.index()] = size.fold(0, u64::saturating_add);
        }
        if grown == sizes {
            break;
        }
        sizes = grown;
    }
    module.computations().iter().fold(0, |n, c| n.saturating_add(sizes[c.index()]))
}
