//! A computation as fusion sees it: instructions by their position in program order, the cost of each, and
//! groups that become fusions.
//!
//! **Invariant** that makes groups with several roots sound without a search for cycles: every group has a
//! *key*, a position in program order. A group with one root is at the position of its root. A group with
//! several roots is right after the last of its operands, and is only formed if all users of all its roots
//! come later. So in the order of keys operands come before users, whatever prefix of the groups is outlined.

use hlo::attrs::{AttrKey, FusionKind};
use hlo::{ComputationId, InstrId, Module, Opcode};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::kinds::{Role, is_view, role};
use super::outline::Outliner;
use crate::passes::PassCx;

/// An index into [`Graph::nodes`]: parameters and their parts first, then the other instructions in program
/// order.
pub(super) type NodeId = u32;

/// A position in program order after fusion: behind the instruction of the first number, and there ordered by
/// the second.
pub(super) type Key = (NodeId, u32);

/// The maximum number of instructions of a fusion.
pub(super) const MAX_MEMBERS: usize = 640;
/// The maximum number of pads and of concatenations in a fusion: each is a case distinction around everything
/// that it is made of, and LLVM's time grows faster than their number.
pub(super) const MAX_PIECES: usize = 64;
/// The maximum number of operands of a fusion, scalar constants not counted.
pub(super) const MAX_OPERANDS: usize = 28;
/// The maximum number of results of a fusion.
pub(super) const MAX_ROOTS: usize = 12;

/// An instruction.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) id: InstrId,
    pub(super) role: Role,
    /// A reshape: nothing to compute.
    pub(super) view: bool,
    /// Its elements come from one of several arrays, by their index (pad, concatenate, ...).
    pub(super) pieces: bool,
    pub(super) elements: f64,
    pub(super) bytes: f64,
    /// Arithmetic operations per element.
    pub(super) flops: f64,
    pub(super) operands: SmallVec<[NodeId; 2]>,
    pub(super) users: SmallVec<[NodeId; 2]>,
    /// It is the computation's result.
    pub(super) result: bool,
    /// It is recomputed wherever it is needed.
    again: bool,
    /// A view inside groups that is needed outside of them, too.
    pub(super) stays: bool,
    /// The groups that compute it.
    pub(super) groups: SmallVec<[u32; 1]>,
    /// Groups that recompute it, while it also remains where it is.
    copies: SmallVec<[u32; 1]>,
    /// From which position on it is in memory: its own, or that of the group of which it is a root.
    pub(super) key: Key,
}

/// A group: instructions that are to become a fusion.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) kind: FusionKind,
    pub(super) members: Vec<NodeId>,
    pub(super) roots: Vec<NodeId>,
    /// What it reads: neither members nor scalar constants.
    pub(super) operands: FxHashSet<NodeId>,
    pub(super) key: Key,
    /// Merged into another group.
    pub(super) merged: bool,
}

/// A computation.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) drafts: Vec<Draft>,
    sequence: u32,
    /// The number of leading nodes that are available from the beginning.
    sources: usize,
}

/// A reusable map from instruction ids to nodes, for all computations of a module.
#[derive(Debug)]
pub(super) struct NodeIndex(Vec<NodeId>);

impl NodeIndex {
    pub(super) fn new(module: &Module) -> Self {
        Self(vec![NodeId::MAX; module.instruction_capacity()])
    }
}

/// The cost of one element, in simple vector operations.
pub(super) fn flops(module: &Module, id: InstrId) -> f64 {
    let instr = module.instr(id);
    let opcode = instr.opcode;
    if !opcode.is_elementwise() {
        return match opcode {
            // Elements at unrelated addresses are loaded one by one.
            Opcode::Gather if instr.attrs.ints_or_empty(AttrKey::SliceSizes).last() == Some(&1) => 16.0,
            Opcode::Gather | Opcode::DynamicSlice | Opcode::Concatenate | Opcode::Pad => 2.0,
            Opcode::Iota | Opcode::Broadcast | Opcode::Reshape => 0.0,
            Opcode::Reduce => {
                crate::passes::facts::short_reduction_len(module, id).map_or(1.0, |terms| terms as f64)
            }
            Opcode::ReduceWindow | Opcode::Dot => super::maps::terms(module, id, 0),
            _ => 0.25,
        };
    }
    crate::passes::facts::element_flops(opcode)
}

/// Sources (parameters, constants, their elements and views, wherever in the text) and all other
/// instructions.
fn sources(module: &Module, c: ComputationId, pinned: &FxHashSet<InstrId>) -> (Vec<InstrId>, Vec<InstrId>) {
    let mut known: FxHashSet<InstrId> = FxHashSet::default();
    let is_source = |id: &InstrId| {
        let instr = module.instr(*id);
        let source = !pinned.contains(id)
            && (matches!(instr.opcode, Opcode::Parameter | Opcode::Constant)
                || (instr.opcode == Opcode::GetTupleElement || is_view(module, *id))
                    && instr.operands().iter().all(|o| known.contains(o)));
        if source {
            known.insert(*id);
        }
        source
    };
    module.instructions(c).partition(is_source)
}

impl Graph {
    /// The graph of a computation. Pinned instructions stay outside of all fusions.
    pub(super) fn of(
        module: &Module,
        c: ComputationId,
        pinned: &FxHashSet<InstrId>,
        node_of: &mut NodeIndex,
    ) -> Graph {
        let (sources, rest) = sources(module, c, pinned);
        let count = sources.len();
        let mut nodes: Vec<Node> = Vec::with_capacity(module.computation(c).len());
        node_of.0.resize(module.instruction_capacity(), NodeId::MAX);
        for id in sources.into_iter().chain(rest) {
            let at = nodes.len() as NodeId;
            node_of.0[id.index()] = at;
            let instr = module.instr(id);
            let operands: SmallVec<[NodeId; 2]> =
                instr.operands().iter().map(|o| node_of.0[o.index()]).collect();
            for &o in &operands {
                nodes[o as usize].users.push(at);
            }
            let role = if pinned.contains(&id) { Role::Outside } else { role(module, id) };
            let array = instr.shape.as_array();
            let elements = match array {
                Some(a) => a.checked_elements().unwrap_or(0),
                None => instr
                    .shape
                    .as_tuple()
                    .and_then(|t| t.first()?.as_array()?.checked_elements())
                    .unwrap_or(0),
            };
            nodes.push(Node {
                id,
                role,
                view: role == Role::Loop && is_view(module, id),
                pieces: matches!(instr.opcode, Opcode::Pad | Opcode::Concatenate),
                elements: elements as f64,
                bytes: instr.shape.checked_bytes().unwrap_or(0) as f64,
                flops: flops(module, id),
                operands,
                users: SmallVec::new(),
                result: module.root(c) == id,
                again: false,
                stays: false,
                groups: SmallVec::new(),
                copies: SmallVec::new(),
                key: (at, 0),
            });
        }
        Graph { nodes, drafts: Vec::new(), sequence: 0, sources: count }
    }

    pub(super) fn node(&self, n: NodeId) -> &Node {
        &self.nodes[n as usize]
    }

    /// Whether a value is available from the beginning.
    pub(super) fn is_source(&self, n: NodeId) -> bool {
        (n as usize) < self.sources
    }

    /// Whether a value has a user outside of the groups that compute it, or is in no group.
    pub(super) fn is_needed(&self, n: NodeId) -> bool {
        let node = self.node(n);
        node.result || node.users.iter().any(|&u| self.node(u).groups.is_empty() || self.node(u).stays)
    }

    /// The groups of the users of a value, each once, in order.
    pub(super) fn user_groups(&self, n: NodeId) -> SmallVec<[u32; 4]> {
        let mut groups: SmallVec<[u32; 4]> = SmallVec::new();
        for &u in &self.node(n).users {
            for &g in &self.node(u).groups {
                if !groups.contains(&g) {
                    groups.push(g);
                }
            }
        }
        groups
    }

    /// A new group with one root.
    pub(super) fn draft(&mut self, root: NodeId, kind: FusionKind) -> u32 {
        let g = self.drafts.len() as u32;
        let operands = self.node(root).operands.iter().copied().collect();
        let key = self.node(root).key;
        self.nodes[root as usize].groups.push(g);
        self.drafts.push(Draft {
            kind,
            members: vec![root],
            roots: vec![root],
            operands,
            key,
            merged: false,
        });
        g
    }

    /// A group of these members and roots; `None` if no position is valid for it.
    pub(super) fn draft_of(&mut self, members: &[NodeId], roots: &[NodeId], kind: FusionKind) -> Option<u32> {
        // Keeps only what the roots need: a value that its readers recompute need not be a member.
        let given: FxHashSet<NodeId> = members.iter().copied().collect();
        let mut inside: FxHashSet<NodeId> = roots.iter().copied().collect();
        let mut pending: Vec<NodeId> = roots.to_vec();
        while let Some(n) = pending.pop() {
            let operands = self.node(n).operands.iter();
            pending.extend(operands.filter(|o| given.contains(o) && inside.insert(**o)));
        }
        let mut members: Vec<NodeId> = inside.iter().copied().collect();
        members.sort_unstable();
        let key = self.position(&inside, roots, &[])?;
        let g = self.drafts.len() as u32;
        let stay = self.staying(&inside, roots);
        for &m in &members {
            let node = &mut self.nodes[m as usize];
            if stay.contains(&m) { node.copies.push(g) } else { node.groups.push(g) }
        }
        self.drafts.push(Draft {
            kind,
            members,
            roots: roots.to_vec(),
            operands: self.operands_of(&inside),
            key,
            merged: false,
        });
        roots.iter().for_each(|&r| self.nodes[r as usize].key = key);
        Some(g)
    }

    /// What these instructions read from outside.
    pub(super) fn operands_of(&self, inside: &FxHashSet<NodeId>) -> FxHashSet<NodeId> {
        let all = inside.iter().flat_map(|&m| self.node(m).operands.iter().copied());
        all.filter(|o| !inside.contains(o)).collect()
    }

    /// How many of these values are loaded from memory.
    pub(super) fn loads(&self, operands: &FxHashSet<NodeId>) -> usize {
        operands.iter().filter(|&&o| self.node(o).role != Role::Scalar).count()
    }

    /// How many pads and concatenations there are.
    pub(super) fn pieces(&self, members: &[NodeId]) -> usize {
        members.iter().filter(|&&m| self.node(m).pieces).count()
    }

    /// Whether a group computes a value.
    fn is_in(&self, n: NodeId, g: u32) -> bool {
        let node = self.node(n);
        node.groups.contains(&g) || node.copies.contains(&g)
    }

    /// Merges two groups, if there is a valid position and the result is not too large.
    pub(super) fn merge(&mut self, a: u32, b: u32) -> bool {
        let (x, y) = (&self.drafts[a as usize], &self.drafts[b as usize]);
        let mut roots: Vec<NodeId> = x.roots.clone();
        roots.extend(y.roots.iter().filter(|r| !x.roots.contains(r)));
        roots.sort_unstable();
        let (large, id, small) = if x.members.len() < y.members.len() { (y, b, x) } else { (x, a, y) };
        let capacity = MAX_MEMBERS.saturating_sub(large.members.len());
        let new = small.members.iter().filter(|&&m| !self.is_in(m, id));
        if roots.len() > MAX_ROOTS || new.clone().take(capacity + 1).count() > capacity {
            return false;
        }
        let pieces = self.pieces(&large.members) + new.filter(|&&m| self.node(m).pieces).count();
        if pieces > MAX_PIECES {
            return false;
        }
        // Operands of either group that the other does not compute.
        let read = |of: &Draft, other: u32| -> Vec<NodeId> {
            let outside = |o: &&NodeId| self.node(**o).role != Role::Scalar && !self.is_in(**o, other);
            of.operands.iter().filter(outside).copied().collect()
        };
        let mut loads = read(x, b);
        loads.extend(read(y, a).iter().filter(|o| !x.operands.contains(o)));
        if loads.len() > MAX_OPERANDS || !self.may_stand(&loads, &roots, [a, b]) {
            return false;
        }
        let inside: FxHashSet<NodeId> = x.members.iter().chain(&y.members).copied().collect();
        let operands = self.operands_of(&inside);
        let Some(key) = self.position(&inside, &roots, &[a, b]) else { return false };
        let mut members: Vec<NodeId> = inside.into_iter().collect();
        members.sort_unstable();
        for &m in &members {
            let groups = &mut self.nodes[m as usize].groups;
            groups.retain(|g| *g != a && *g != b);
            groups.push(a);
        }
        roots.iter().for_each(|&r| self.nodes[r as usize].key = key);
        self.drafts[b as usize].merged = true;
        let draft = &mut self.drafts[a as usize];
        (draft.members, draft.roots, draft.operands, draft.key) = (members, roots, operands, key);
        true
    }

    /// Makes a value that members of a group read a root of that group, if there is a valid position.
    pub(super) fn join_as_root(&mut self, n: NodeId, g: u32) -> bool {
        let draft = &self.drafts[g as usize];
        if draft.members.len() >= MAX_MEMBERS || draft.roots.len() >= MAX_ROOTS {
            return false;
        }
        let more = self.node(n).operands.iter().filter(|&&o| {
            self.node(o).role != Role::Scalar && !draft.operands.contains(&o) && !self.is_in(o, g)
        });
        let known = draft.operands.iter().filter(|&&o| o != n && self.node(o).role != Role::Scalar).count();
        if known + more.count() > MAX_OPERANDS {
            return false;
        }
        let mut inside: FxHashSet<NodeId> = draft.members.iter().copied().collect();
        inside.insert(n);
        let mut roots = vec![n];
        roots.extend(&draft.roots);
        let operands = self.operands_of(&inside);
        if self.loads(&operands) > MAX_OPERANDS {
            return false;
        }
        let Some(key) = self.position(&inside, &roots, &[g]) else { return false };
        roots.iter().for_each(|&r| self.nodes[r as usize].key = key);
        let draft = &mut self.drafts[g as usize];
        if !self.nodes[n as usize].groups.contains(&g) {
            self.nodes[n as usize].groups.push(g);
            draft.members.push(n);
        }
        (draft.roots, draft.operands, draft.key) = (roots, operands, key);
        true
    }

    /// Adds a member whose only readers are members, or a copy of it.
    pub(super) fn join(&mut self, n: NodeId, g: u32) {
        let operands = self.node(n).operands.clone();
        let draft = &mut self.drafts[g as usize];
        draft.members.push(n);
        draft.operands.remove(&n);
        draft.operands.extend(operands);
        self.nodes[n as usize].groups.push(g);
    }

    /// A quick necessary condition for a valid position of the merge of two groups with these operands and
    /// roots.
    fn may_stand(&self, operands: &[NodeId], roots: &[NodeId], own: [u32; 2]) -> bool {
        if roots.len() < 2 {
            return true;
        }
        let last = operands.iter().map(|&o| self.node(o).key.0).max().unwrap_or(0);
        let key: Key = (last, self.sequence + 1);
        roots.iter().flat_map(|&r| &self.node(r).users).all(|&u| {
            let user = self.node(u);
            let inside = own.iter().any(|&g| self.is_in(u, g));
            let mut groups = user.groups.iter().chain(&user.copies).filter(|g| !own.contains(g));
            (inside || key < user.key) && groups.all(|&g| key < self.drafts[g as usize].key)
        })
    }

    /// A valid position for a group of these members, or `None`. `own` are the groups that are merged.
    fn position(&mut self, inside: &FxHashSet<NodeId>, roots: &[NodeId], own: &[u32]) -> Option<Key> {
        if let [root] = roots {
            return Some(self.node(*root).key);
        }
        let mut last: Key = (0, 0);
        for &m in inside {
            for &o in &self.node(m).operands {
                if !inside.contains(&o) && self.node(o).role != Role::Scalar {
                    last = last.max(self.node(o).key);
                }
            }
        }
        self.sequence += 1;
        let key = (last.0, self.sequence);
        (key < self.first_user(inside, roots, own)).then_some(key)
    }

    /// Members that also remain outside of the group, because something outside reads them.
    fn staying(&self, inside: &FxHashSet<NodeId>, roots: &[NodeId]) -> FxHashSet<NodeId> {
        let mut members: Vec<NodeId> = inside.iter().copied().collect();
        members.sort_unstable();
        let mut stay = FxHashSet::default();
        for &m in members.iter().rev() {
            let node = self.node(m);
            let looked_at = node.result || node.users.iter().any(|u| !inside.contains(u) || stay.contains(u));
            if looked_at && !roots.contains(&m) {
                stay.insert(m);
            }
        }
        stay
    }

    /// The first position at which something outside of the group reads one of its roots.
    pub(super) fn first_user(&self, inside: &FxHashSet<NodeId>, roots: &[NodeId], own: &[u32]) -> Key {
        let mut first: Key = (self.nodes.len() as NodeId, 0);
        let stay = self.staying(inside, roots);
        for &r in roots {
            for &u in &self.node(r).users {
                let user = self.node(u);
                if !inside.contains(&u) || stay.contains(&u) {
                    first = first.min(user.key);
                }
                for g in user.groups.iter().chain(&user.copies).filter(|g| !own.contains(g)) {
                    first = first.min(self.drafts[*g as usize].key);
                }
            }
        }
        first
    }

    /// Absorbs producers that are cheaper to recompute than to read: broadcasts and iota, and cheap
    /// elementwise work that only the group reads or that is recomputed (`again`) wherever it is needed.
    pub(super) fn absorb(&self, module: &Module, members: &mut FxHashSet<NodeId>, kept: &[NodeId]) {
        let mut pending: Vec<NodeId> = members.iter().copied().collect();
        // In a fixed order, from last to first.
        pending.sort_unstable();
        while let Some(n) = pending.pop() {
            if members.len() >= MAX_MEMBERS {
                return;
            }
            for &o in &self.node(n).operands {
                let operand = self.node(o);
                if members.contains(&o)
                    || operand.role != Role::Loop
                    || !operand.groups.is_empty()
                    || kept.contains(&o)
                {
                    continue;
                }
                let opcode = module.instr(operand.id).opcode;
                let own = !operand.result && operand.users.iter().all(|u| members.contains(u));
                let spread = matches!(opcode, Opcode::Broadcast | Opcode::Iota);
                let shifts = matches!(opcode, Opcode::Slice | Opcode::Reverse | Opcode::DynamicSlice);
                let moved = own && (shifts || operand.view);
                // A producer of smaller dimensions would be recomputed for every row.
                let cheap = opcode.is_elementwise()
                    && operand.elements * 8.0 >= self.node(n).elements
                    && (own && operand.flops < 8.0 || operand.again);
                if (spread || moved || cheap) && members.insert(o) {
                    pending.push(o);
                }
            }
        }
    }

    /// Removes roots that their readers can recompute from other roots for a few operations, instead of a
    /// store and a load. `small` values may become roots for that.
    pub(super) fn slim(
        &mut self,
        module: &Module,
        members: &FxHashSet<NodeId>,
        roots: Vec<NodeId>,
    ) -> Vec<NodeId> {
        let mut kept: FxHashSet<NodeId> = roots.iter().copied().collect();
        for &r in &roots {
            let node = self.node(r);
            let only_loops = !node.result
                && node
                    .users
                    .iter()
                    .filter(|u| !members.contains(u))
                    .all(|&u| matches!(self.node(u).role, Role::Loop | Role::Reduce));
            if !only_loops {
                continue;
            }
            kept.remove(&r);
            let mut again = Again {
                members,
                kept: &kept,
                small: node.elements / 8.0,
                steps: Vec::new(),
                roots: Vec::new(),
                bytes: Vec::new(),
            };
            let works = self.again(module, r, &mut again);
            let Again { steps, roots: more, bytes, .. } = again;
            let read: f64 = bytes.iter().map(|&o| self.node(o).bytes).sum();
            if works && read <= 2.1 * self.node(r).bytes {
                kept.extend(more);
                for n in steps {
                    self.nodes[n as usize].again = true;
                }
            } else {
                kept.insert(r);
            }
        }
        let mut kept: Vec<NodeId> = kept.into_iter().collect();
        kept.sort_unstable();
        kept
    }

    /// Whether a member can be recomputed from what is in memory after the group.
    fn again(&self, module: &Module, n: NodeId, a: &mut Again<'_>) -> bool {
        if a.steps.contains(&n) {
            return true;
        }
        let node = self.node(n);
        let opcode = module.instr(node.id).opcode;
        let cheap = node.role == Role::Loop
            && (node.view
                || matches!(opcode, Opcode::Broadcast | Opcode::Iota)
                || opcode.is_elementwise() && node.flops <= 1.0);
        if !cheap || a.steps.len() > 8 {
            return false;
        }
        a.steps.push(n);
        node.operands.iter().all(|&o| {
            let operand = self.node(o);
            if operand.role == Role::Scalar {
                return true;
            }
            let in_memory = !a.members.contains(&o) || a.kept.contains(&o);
            let small = operand.elements <= a.small && matches!(operand.role, Role::Loop | Role::Reduce);
            let array = module.instr(operand.id).shape.as_array().is_some();
            if in_memory || small && array && !self.is_free(module, o) {
                if !in_memory {
                    a.roots.push(o);
                }
                if operand.elements > a.small && !a.bytes.contains(&o) {
                    a.bytes.push(o);
                }
                return true;
            }
            self.again(module, o, a)
        })
    }

    fn is_free(&self, module: &Module, n: NodeId) -> bool {
        let node = self.node(n);
        node.view || matches!(module.instr(node.id).opcode, Opcode::Broadcast | Opcode::Iota)
    }

    /// Outlines the groups as fusions, in the order of their keys, while the fuel lasts; groups of one
    /// instruction only with `alone`.
    pub(super) fn apply(
        &self,
        module: &mut Module,
        cx: &mut PassCx<'_>,
        outliner: &mut Outliner,
        alone: bool,
    ) -> u64 {
        let mut order: Vec<&Draft> =
            self.drafts.iter().filter(|d| !d.merged && (alone || self.is_worth_it(d))).collect();
        order.sort_by_key(|d| d.key);
        let mut now: Vec<InstrId> = self.nodes.iter().map(|n| n.id).collect();
        if !order.is_empty() && !cx.fuel.is_empty() {
            let mut previous = None;
            for node in &self.nodes[..self.sources] {
                module.move_after(node.id, previous);
                previous = Some(node.id);
            }
        }
        let mut applied = 0;
        for draft in order {
            if !cx.fuel.take() {
                break;
            }
            // Every fusion has its own copy of scalar constants.
            let constants = draft.operands.iter().filter(|&&o| self.node(o).role == Role::Scalar);
            let mut members: Vec<NodeId> = draft.members.iter().chain(constants).copied().collect();
            members.sort_unstable();
            let before = match draft.roots[..] {
                [root] => root,
                _ => draft.key.0 + 1,
            };
            outliner.outline(module, self, draft, &members, &mut now, self.node(before).id);
            applied += 1;
        }
        applied
    }

    /// Whether a group differs from what the fusion wrapper would make of its one instruction.
    fn is_worth_it(&self, draft: &Draft) -> bool {
        draft.members.iter().filter(|&&m| !self.node(m).view).count() > 1
    }
}

/// The search for what recomputing a value takes.
struct Again<'a> {
    members: &'a FxHashSet<NodeId>,
    kept: &'a FxHashSet<NodeId>,
    /// Values up to this many elements are free to store.
    small: f64,
    steps: Vec<NodeId>,
    /// Values that have to become roots.
    roots: Vec<NodeId>,
    /// Values that are read.
    bytes: Vec<NodeId>,
}
