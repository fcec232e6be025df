//! Epilogue fusion: contractions with what is done to each element of their result (bias, activation,
//! residual, conversion).
//!
//! From a `dot` or `convolution` (the *hero*) on, elementwise instructions over its dimensions are fused in
//! program order, as long as everything else that they read is computed before anything outside reads a
//! result. The hero's own result stays inside: only its group reads it.

use hlo::attrs::FusionKind;
use hlo::{Module, Opcode};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

use super::graph::{Graph, Key, MAX_MEMBERS, MAX_OPERANDS, MAX_ROOTS, NodeId, NodeIndex};
use super::kinds::{Role, dims, programs};
use super::outline::Outliner;
use crate::passes::PassCx;
use crate::passes::edit::{has_run_time_sizes, pinned};

/// How far operands that are cheaper to recompute than to read are followed.
const MAX_DEPTH: u32 = 6;

pub(crate) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    if has_run_time_sizes(module) {
        return 0;
    }
    let pinned = pinned(module);
    let mut outliner = Outliner::default();
    let mut index = NodeIndex::new(module);
    let mut applied = 0;
    for c in programs(module) {
        let mut graph = Graph::of(module, c, &pinned, &mut index);
        let is_hero = |&n: &NodeId| {
            let id = graph.node(n).id;
            matches!(module.instr(id).opcode, Opcode::Dot | Opcode::Convolution)
                && graph.node(n).role == Role::Outside
                && !pinned.contains(&id)
                && module.instr(id).operands().len() == 2
                && graph.node(n).operands.iter().all(|&o| graph.node(o).role != Role::Scalar)
                && module.instr(id).shape.as_array().is_some()
        };
        let mut heroes: Vec<NodeId> = (0..graph.nodes.len() as NodeId).filter(is_hero).collect();
        // If two heroes are added, the other one is computed first: what it reads then need not stay in
        // memory for longer.
        heroes.sort_by_key(|&n| !graph.node(n).operands.iter().all(|&o| graph.is_source(o)));
        for hero in heroes {
            fuse(module, &mut graph, hero);
        }
        applied += graph.apply(module, cx, &mut outliner, false);
    }
    outliner.finish(module);
    applied
}

/// Looks through what is free to compute anywhere: broadcasts, reshapes, iota. Gives the first position at
/// which everything is available, and adds what has to be computed; `None` if that is too much.
fn reach(
    module: &Module,
    graph: &Graph,
    n: NodeId,
    depth: u32,
    free: &mut Vec<NodeId>,
    around: (NodeId, &FxHashSet<NodeId>),
) -> Option<Key> {
    let node = graph.node(n);
    let (hero, members) = around;
    if members.contains(&n) {
        return None;
    }
    let opcode = module.instr(node.id).opcode;
    let spread = node.role == Role::Loop
        && node.groups.is_empty()
        && (node.view || matches!(opcode, Opcode::Broadcast | Opcode::Iota));
    if node.role == Role::Scalar {
        return Some((0, 0));
    }
    if !spread || depth == 0 || graph.node(hero).operands.contains(&n) {
        return Some(node.key);
    }
    let mut last = (0, 0);
    for &o in &node.operands {
        last = last.max(reach(module, graph, o, depth - 1, free, around)?);
    }
    if !free.contains(&n) {
        free.push(n);
    }
    Some(last)
}

fn fuse(module: &Module, graph: &mut Graph, hero: NodeId) {
    let own = dims(module, graph.node(hero).id).to_vec();
    let mut members: FxHashSet<NodeId> = [hero].into_iter().collect();
    // Recomputed here, whoever else computes it too.
    let mut free: Vec<NodeId> = Vec::new();
    let mut pending: BTreeSet<NodeId> = graph.node(hero).users.iter().copied().collect();
    // The first reader of a member outside.
    let mut first_user: Key = (graph.nodes.len() as NodeId, 0);
    let mut last: Key = graph.node(hero).operands.iter().map(|&o| graph.node(o).key).max().unwrap_or((0, 0));
    while let Some(n) = pending.pop_first() {
        let node = graph.node(n);
        let opcode = module.instr(node.id).opcode;
        let mut more = Vec::new();
        let fits = node.role == Role::Loop
            && node.groups.is_empty()
            && opcode.is_elementwise()
            && dims(module, node.id) == &own[..]
            && members.len() < MAX_MEMBERS / 2;
        let last_operand = if fits {
            let mut last_operand = Some(last);
            for &o in node.operands.iter().filter(|o| !members.contains(o)) {
                let there = reach(module, graph, o, MAX_DEPTH, &mut more, (hero, &members));
                last_operand = last_operand.zip(there).map(|(a, b)| a.max(b));
            }
            last_operand.filter(|&p| (p.0, u32::MAX) < first_user)
        } else {
            None
        };
        match last_operand {
            Some(p) => {
                last = p;
                members.insert(n);
                free.extend(more.into_iter().filter(|m| !free.contains(m)).collect::<Vec<_>>());
                pending.extend(graph.node(n).users.iter().copied());
            }
            None => first_user = first_user.min(graph.node(n).key),
        }
    }
    let looked_at = |n: NodeId| {
        let node = graph.node(n);
        node.result || node.users.iter().any(|u| !members.contains(u))
    };
    if members.len() < 2 || looked_at(hero) {
        return;
    }
    let mut roots: Vec<NodeId> = members.iter().copied().filter(|&n| looked_at(n)).collect();
    roots.sort_unstable();
    let roots = graph.slim(module, &members, roots);
    let mut inside: FxHashSet<NodeId> = members.into_iter().chain(free).collect();
    // The hero reads its operands from memory.
    let operands = graph.node(hero).operands.clone();
    graph.absorb(module, &mut inside, &operands);
    if operands.iter().any(|o| inside.contains(o)) {
        return;
    }
    let mut all: Vec<NodeId> = inside.iter().copied().collect();
    all.sort_unstable();
    if roots.len() <= MAX_ROOTS && graph.loads(&graph.operands_of(&inside)) <= MAX_OPERANDS {
        let _ = graph.draft_of(&all, &roots, FusionKind::Output);
    }
}
