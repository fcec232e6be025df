//! A set of instructions moved into a computation of its own, which a `fusion` calls.

use hlo::attrs::{AttrKey, AttrValue, Attrs, FusionKind};
use hlo::{ComputationId, InstrId, Module, NewInstruction, Opcode, Shape};
use rustc_hash::{FxHashMap, FxHashSet};

/// Instructions that are to be one fusion.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// All, operands before users, in one computation. Copies are fused where something else still needs the value; what nothing uses any
    /// more is removed.
    pub(super) members: Vec<InstrId>,
    /// What is computed for the outside, in the order of the text; not empty.
    pub(super) roots: Vec<InstrId>,
    /// Which kernel.
    pub(super) kind: FusionKind,
}

/// Outlines groups of a module; [`Outliner::finish`] puts the new computations before their callers.
#[derive(Debug, Default)]
pub(super) struct Outliner {
    made: FxHashMap<ComputationId, Vec<ComputationId>>,
}

impl Outliner {
    /// Makes a fusion of a group. Its operands must come before `group.roots[0]`, or before `before` if it is given, and the users of all
    /// roots after that.
    pub(super) fn outline(&mut self, module: &mut Module, group: &Group, before: Option<InstrId>) -> InstrId {
        let first = group.roots[0];
        let parent = module.instr(first).parent();
        let name = module.unique_computation_name("fused_computation");
        let body = module.add_computation(name, module.instr(first).span);
        self.made.entry(parent).or_default().push(body);

        let mut map: FxHashMap<InstrId, InstrId> = FxHashMap::default();
        map.reserve(group.members.len() * 2);
        let mut seen: FxHashSet<InstrId> = group.members.iter().copied().collect();
        let mut operands = Vec::new();
        for &m in &group.members {
            for &o in module.instr(m).operands() {
                if seen.insert(o) {
                    operands.push(o);
                }
            }
        }
        for (n, &o) in operands.iter().enumerate() {
            let instr = module.instr(o);
            let new = NewInstruction {
                name: instr.name.clone(),
                span: instr.span,
                ..NewInstruction::new(Opcode::Parameter, instr.shape.clone(), &[])
            };
            let new = new.attr(AttrKey::ParameterNumber, AttrValue::Int(n as i64));
            map.insert(o, module.append(body, new));
        }
        for &m in &group.members {
            let instr = module.instr(m);
            let new = NewInstruction {
                opcode: instr.opcode,
                shape: instr.shape.clone(),
                name: instr.name.clone(),
                operands: instr.operands().iter().map(|o| map[o]).collect(),
                attrs: instr.attrs.clone(),
                span: instr.span,
            };
            map.insert(m, module.append(body, new));
        }
        let root = match group.roots[..] {
            [root] => map[&root],
            _ => {
                let shape = Shape::tuple(group.roots.iter().map(|&r| module.instr(r).shape.clone()));
                let roots: Vec<InstrId> = group.roots.iter().map(|r| map[r]).collect();
                let new = NewInstruction {
                    name: "tuple.roots".into(),
                    ..NewInstruction::new(Opcode::Tuple, shape, &roots)
                };
                module.append(body, new)
            }
        };
        module.set_root(body, root);
        self.call(module, group, body, root, &operands, before.unwrap_or(first))
    }

    fn call(
        &self,
        module: &mut Module,
        group: &Group,
        body: ComputationId,
        root: InstrId,
        operands: &[InstrId],
        before: InstrId,
    ) -> InstrId {
        let first = group.roots[0];
        let (name, span) = (module.instr(first).name.clone(), module.instr(first).span);
        let mut attrs = Attrs::new()
            .with(AttrKey::FusionKind, AttrValue::FusionKind(group.kind))
            .with(AttrKey::Calls, AttrValue::Computation(body));
        if let Some(metadata) = module.instr(first).attrs.get(AttrKey::Metadata) {
            attrs.set(AttrKey::Metadata, metadata.clone());
        }
        let single = group.roots.len() == 1;
        let new = NewInstruction {
            name: if single { name } else { module.unique_name("fusion") },
            attrs,
            span,
            ..NewInstruction::new(Opcode::Fusion, module.instr(root).shape.clone(), operands)
        };
        let fusion = module.insert_before(before, new);
        if single {
            module.replace_all_uses(first, fusion);
        } else {
            for (i, &r) in group.roots.iter().enumerate() {
                let (name, span, shape) = {
                    let instr = module.instr(r);
                    (instr.name.clone(), instr.span, instr.shape.clone())
                };
                let new = NewInstruction {
                    name,
                    span,
                    ..NewInstruction::new(Opcode::GetTupleElement, shape, &[fusion])
                };
                let new = new.attr(AttrKey::Index, AttrValue::Int(i as i64));
                let element = module.insert_before(before, new);
                module.replace_all_uses(r, element);
            }
        }
        // Users come after operands.
        for &m in group.members.iter().rev() {
            if module.users(m).is_empty() && module.root(module.instr(m).parent()) != m {
                module.remove(m);
            }
        }
        fusion
    }

    /// Puts the new computations before their callers.
    pub(super) fn finish(mut self, module: &mut Module) {
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
