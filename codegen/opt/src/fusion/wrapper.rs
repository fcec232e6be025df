//! Wraps every instruction that no other pass fused in a fusion of its own, so that lowering knows one form.

use hlo::attrs::FusionKind;
use hlo::{InstrId, Module, Opcode, Shape};

use super::graph::{Graph, NodeId, NodeIndex};
use super::kinds::{Role, applies_loops, programs};
use super::outline::Outliner;
use crate::passes::PassCx;
use crate::passes::edit::{has_run_time_sizes, pinned};

/// The pass.
pub fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    if has_run_time_sizes(module) {
        return 0;
    }
    let pinned = pinned(module);
    let mut outliner = Outliner::default();
    let mut index = NodeIndex::new(module);
    let mut applied = 0;
    for c in programs(module) {
        let mut graph = Graph::of(module, c, &pinned, &mut index);
        for n in 0..graph.nodes.len() as NodeId {
            let node = graph.node(n);
            let kind = match node.role {
                Role::Loop | Role::Update if !node.view => FusionKind::Loop,
                Role::Reduce => FusionKind::Input,
                Role::Outside if is_scatter(module, node.id) => FusionKind::Input,
                Role::Loop | Role::Update | Role::Scalar | Role::Outside => continue,
            };
            graph.draft(n, kind);
        }
        applied += graph.apply(module, cx, &mut outliner, true);
    }
    outliner.finish(module);
    applied
}

/// Whether it is a scatter of arrays of static dimensions.
fn is_scatter(module: &Module, id: InstrId) -> bool {
    let fixed = |shape: &Shape| shape.leaves().iter().all(|s| s.as_array().is_some_and(|a| !a.is_dynamic()));
    let instr = module.instr(id);
    instr.opcode == Opcode::Scatter
        && !applies_loops(module, id)
        && fixed(&instr.shape)
        && instr.operands().iter().all(|&o| fixed(&module.instr(o).shape))
}
