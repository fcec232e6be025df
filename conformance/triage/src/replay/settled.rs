//! Whose values are the reference's in a replay.
//!
//! **Invariant:** a value is settled if it was injected, or is given to the program, or is made of settled
//! ones by what only passes values on: calls, tuples, what moves elements. What an engine computes without
//! anybody looking, and what may be passed on by another decision than the reference's, is open.

use hlo::{InstrId, Module, Opcode};

use hlo_certify::bounds::only_passes_on;

/// By instruction, whether its value is settled.
pub(super) fn settled(module: &Module, injected: &[bool]) -> Vec<bool> {
    let computations = module.computations();
    let mut callers: Vec<Vec<InstrId>> = vec![Vec::new(); module.computation_capacity()];
    for &c in computations {
        for id in module.instructions(c) {
            let called = module.instr(id).attrs.called_computations();
            called.iter().for_each(|called| callers[called.index()].push(id));
        }
    }
    let mut open = vec![false; module.instruction_capacity()];
    let is_open = |id: InstrId, open: &[bool]| {
        let instr = module.instr(id);
        let any = |ids: &[InstrId]| ids.iter().any(|o| open[o.index()]);
        let roots = |id: InstrId| {
            let called = module.instr(id).attrs.called_computations();
            called.iter().any(|&c| open[module.root(c).index()])
        };
        match instr.opcode {
            Opcode::Parameter => callers[instr.parent().index()].iter().any(|&caller| {
                let of = module.instr(caller);
                any(of.operands()) || of.opcode == Opcode::While && roots(caller)
            }),
            Opcode::Call | Opcode::While | Opcode::Conditional => any(instr.operands()) || roots(id),
            _ => !only_passes_on(module, id) || any(instr.operands()),
        }
    };
    loop {
        let mut changed = false;
        for &c in computations {
            for id in module.instructions(c) {
                if !injected[id.index()] && !open[id.index()] && is_open(id, &open) {
                    open[id.index()] = true;
                    changed = true;
                }
            }
        }
        if !changed {
            return open.into_iter().map(|open| !open).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use hlo_engines::frontend::parse_text;

    #[test]
    fn what_nobody_saw_is_open_wherever_it_goes() {
        let (module, _) = parse_text(
            "HloModule m
            less { s = (f32[], f32[]) parameter(0)\n a = f32[] get-tuple-element(s), index=0
            one = f32[] constant(1)\n ROOT c = pred[] compare(a, one), direction=LT }
            body { t = (f32[], f32[]) parameter(0)\n b = f32[] get-tuple-element(t), index=0
            d = f32[] get-tuple-element(t), index=1\n e = f32[] exponential(b)\n f = f32[] tanh(d)
            ROOT r = (f32[], f32[]) tuple(e, f) }
            ENTRY main { x = f32[] parameter(0)\n s2 = (f32[], f32[]) tuple(x, x)
            w = (f32[], f32[]) while(s2), condition=less, body=body
            g = f32[] get-tuple-element(w), index=1\n h = f32[1] reshape(g)\n ROOT i = f32[1] negate(h) }",
        );
        let module = module.unwrap();
        let all: Vec<InstrId> = module.computations().iter().flat_map(|&c| module.instructions(c)).collect();
        let id = |name: &str| *all.iter().find(|&&id| *module.instr(id).name == *name).unwrap();
        let of = |names: &[&str]| {
            let mut injected = vec![false; module.instruction_capacity()];
            names.iter().for_each(|n| injected[id(n).index()] = true);
            settled(&module, &injected)
        };
        // All that computes was seen.
        let all_seen = of(&["c", "e", "f", "i"]);
        assert!(all.iter().all(|id| all_seen[id.index()]));
        // Tuples are not told apart.
        let one_unseen = of(&["c", "e", "i"]);
        for (name, is_settled) in [("x", true), ("b", false), ("h", false), ("e", true), ("i", true)] {
            assert_eq!(one_unseen[id(name).index()], is_settled, "{name}");
        }
        // Another decision may pass on other values.
        assert!(!of(&["e", "f", "i"])[id("d").index()]);
    }
}
