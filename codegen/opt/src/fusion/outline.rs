//! Outlining: groups of instructions moved into computations of their own, called by `fusion` instructions.

use hlo::attrs::{AttrKey, AttrValue, Attrs};
use hlo::{ComputationId, InstrId, Module, NewInstruction, Opcode, Shape};
use rustc_hash::{FxHashMap, FxHashSet};

use super::graph::{Draft, Graph, NodeId};

/// Outlines groups of a module; [`Outliner::finish`] removes what they replaced.
#[derive(Debug, Default)]
pub(super) struct Outliner {
    /// New computations, by their caller's computation.
    made: FxHashMap<ComputationId, Vec<ComputationId>>,
    replaced: Vec<InstrId>,
}

impl Outliner {
    /// Outlines a group as a fusion before an instruction. `members` are in program order; `now` maps each
    /// value to what stands for it by now.
    pub(super) fn outline(
        &mut self,
        module: &mut Module,
        graph: &Graph,
        draft: &Draft,
        members: &[NodeId],
        now: &mut [InstrId],
        before: InstrId,
    ) {
        let first = graph.node(draft.roots[0]).id;
        let parent = module.instr(before).parent();
        let name = module.unique_computation_name("fused_computation");
        let body = module.add_computation(name, module.instr(first).span);
        self.made.entry(parent).or_default().push(body);

        let mut map: FxHashMap<NodeId, InstrId> = FxHashMap::default();
        map.reserve(members.len() * 2);
        let mut seen: FxHashSet<NodeId> = members.iter().copied().collect();
        let mut operands = Vec::new();
        for &m in members {
            for &o in &graph.node(m).operands {
                if seen.insert(o) {
                    let instr = module.instr(graph.node(o).id);
                    let new = NewInstruction {
                        name: instr.name.clone(),
                        span: instr.span,
                        ..NewInstruction::new(Opcode::Parameter, instr.shape.clone(), &[])
                    };
                    let number = AttrValue::Int(operands.len() as i64);
                    map.insert(o, module.append(body, new.attr(AttrKey::ParameterNumber, number)));
                    operands.push(now[o as usize]);
                }
            }
        }
        for &m in members {
            let node = graph.node(m);
            let instr = module.instr(node.id);
            let new = NewInstruction {
                opcode: instr.opcode,
                shape: instr.shape.clone(),
                name: instr.name.clone(),
                operands: node.operands.iter().map(|o| map[o]).collect(),
                attrs: instr.attrs.clone(),
                span: instr.span,
            };
            map.insert(m, module.append(body, new));
            self.replaced.push(node.id);
        }
        let root = match draft.roots[..] {
            [root] => map[&root],
            _ => {
                let roots: Vec<InstrId> = draft.roots.iter().map(|r| map[r]).collect();
                let shape = Shape::tuple(roots.iter().map(|&r| module.instr(r).shape.clone()));
                let new = NewInstruction::new(Opcode::Tuple, shape, &roots);
                let name = module.unique_name("results");
                module.append(body, new.named(name))
            }
        };
        module.set_root(body, root);

        let (name, span) = (module.instr(first).name.clone(), module.instr(first).span);
        let mut attrs = Attrs::new()
            .with(AttrKey::FusionKind, AttrValue::FusionKind(draft.kind))
            .with(AttrKey::Calls, AttrValue::Computation(body));
        if let Some(metadata) = module.instr(first).attrs.get(AttrKey::Metadata) {
            attrs.set(AttrKey::Metadata, metadata.clone());
        }
        let single = draft.roots.len() == 1;
        let new = NewInstruction {
            name: if single { name } else { module.unique_name("fusion") },
            attrs,
            span,
            ..NewInstruction::new(Opcode::Fusion, module.instr(root).shape.clone(), &operands)
        };
        let fusion = module.insert_before(before, new);
        for (i, &r) in draft.roots.iter().enumerate() {
            let old = graph.node(r).id;
            let new = if single {
                fusion
            } else {
                let instr = module.instr(old);
                let new = NewInstruction {
                    name: instr.name.clone(),
                    span: instr.span,
                    ..NewInstruction::new(Opcode::GetTupleElement, instr.shape.clone(), &[fusion])
                };
                module.insert_before(before, new.attr(AttrKey::Index, AttrValue::Int(i as i64)))
            };
            module.replace_all_uses(old, new);
            now[r as usize] = new;
        }
    }

    /// Removes the instructions that nothing uses any more, and puts the new computations before their
    /// callers.
    pub(super) fn finish(mut self, module: &mut Module) {
        let replaced: FxHashSet<InstrId> = self.replaced.iter().copied().collect();
        let mut pending = self.replaced;
        while let Some(id) = pending.pop() {
            if module.is_removed(id)
                || !module.users(id).is_empty()
                || module.root(module.instr(id).parent()) == id
            {
                continue;
            }
            pending.extend(module.instr(id).operands().iter().filter(|o| replaced.contains(o)));
            module.remove(id);
        }
        if self.made.is_empty() {
            return;
        }
        let new: FxHashSet<ComputationId> = self.made.values().flatten().copied().collect();
        let mut order = Vec::with_capacity(module.computations().len());
        for &c in module.computations() {
            if new.contains(&c) {
                continue;
            }
            order.extend(self.made.remove(&c).unwrap_or_default());
            order.push(c);
        }
        module.set_computation_order(order);
    }
}
