//! Loop and reduction fusion: producers move into the kernels of their consumers.
//!
//! From the last instruction to the first, each is fused into the groups of all its users (producer-consumer
//! fusion) if that saves more memory traffic than it costs in recomputation; what is left begins a group of
//! its own. Groups over the same space that read the same values, or of which one reads what the other
//! computes, become one group with several roots (multi-output fusion).

use std::cell::RefCell;

use hlo::attrs::FusionKind;
use hlo::{InstrId, Module, Opcode};
use rustc_hash::{FxHashMap, FxHashSet};

use super::folds::{self, Space};
use super::graph::{Draft, Graph, MAX_MEMBERS, MAX_OPERANDS, MAX_PIECES, NodeId, NodeIndex};
use super::index_map::Forms;
use super::kinds::{Role, dims, programs};
use super::maps::{Maps, pads_between, terms};
use super::outline::Outliner;
use crate::cost_model::CostModel;
use crate::passes::PassCx;
use crate::passes::edit::{has_run_time_sizes, pinned};
use crate::passes::facts::{MAX_SHORT_REDUCTION_LEN, MIN_PART_WIDTH, has_narrow_concat_parts};

pub(crate) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    if has_run_time_sizes(module) {
        return 0;
    }
    let pinned = pinned(module);
    let mut outliner = Outliner::default();
    let mut index = NodeIndex::new(module);
    let mut applied = 0;
    for c in programs(module) {
        let graph = Graph::of(module, c, &pinned, &mut index);
        let mut planner = Planner {
            module,
            cost: cx.cost,
            work: Vec::new(),
            ops: Vec::new(),
            expressions: Vec::new(),
            closed: Vec::new(),
            forms: RefCell::new(Forms::new(module, true)),
            graph,
        };
        planner.plan();
        let graph = planner.graph;
        applied += graph.apply(module, cx, &mut outliner, false);
    }
    outliner.finish(module);
    applied
}

struct Planner<'m> {
    module: &'m Module,
    /// The target's costs.
    cost: &'m CostModel,
    graph: Graph,
    /// For each group: the work that it does for each member.
    work: Vec<FxHashMap<NodeId, Work>>,
    /// For each group: the number of operations of all members.
    ops: Vec<f64>,
    /// For each group: the number of expressions of all members.
    expressions: Vec<f64>,
    /// Groups that nothing may join.
    closed: Vec<bool>,
    /// The index maps so far.
    forms: RefCell<Forms<'m>>,
}

/// The work that a group does for one member.
#[derive(Clone, PartialEq, Debug)]
struct Work {
    /// Its index maps, and how many elements each computes.
    maps: Maps,
    /// Every element is computed at the loop's own index.
    aligned: bool,
    /// Below an interior padding, or a concatenation whose elements a gather picks: the source alternates
    /// from one element to the next, so loops are not partitioned there, and every side is computed for every
    /// element.
    alternates: bool,
    /// Below a gather.
    picked: bool,
    /// Below a reshape that splits the innermost dimension, or overlapping windows: neighbouring lanes are
    /// not contiguous, so each element is gathered.
    gathered: bool,
}

impl Work {
    /// The work for a root: each element once, at the loop's index.
    fn of_root(elements: f64, aligned: bool) -> Self {
        Self { maps: Maps::here(elements), aligned, alternates: false, picked: false, gathered: false }
    }

    /// Its code size, in expressions on contiguous lanes.
    fn size(&self, cost: &CostModel) -> f64 {
        self.maps.count() * if self.gathered { cost.gather_factor } else { 1.0 }
    }
}

/// Whether elements of a result come from one of several sources.
fn selects_source(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Concatenate | Opcode::Pad)
}

/// The maximum number of groups that read a value and are tried for merging.
const MAX_TRIED: usize = 16;

impl Planner<'_> {
    fn plan(&mut self) {
        for n in (0..self.graph.nodes.len() as NodeId).rev() {
            let role = self.graph.node(n).role;
            match role {
                Role::Scalar => {}
                Role::Outside => self.share(n),
                Role::Loop | Role::Update | Role::Reduce => {
                    if !self.join_users(n) && !self.graph.node(n).view {
                        self.begin(n);
                    }
                }
            }
        }
    }

    fn begin(&mut self, n: NodeId) {
        let node = self.graph.node(n);
        let (role, elements) = (node.role, node.elements);
        if role == Role::Loop {
            let groups = self.similar(n, &self.graph.user_groups(n));
            if let Some(g) = self.merged(&groups)
                && self.demand(n, g).is_some_and(|w| w.aligned && w.maps.elements() <= elements)
                && self.graph.join_as_root(n, g)
            {
                self.does(g, n, Work::of_root(elements, true));
                return;
            }
        }
        let kind = if role == Role::Reduce { FusionKind::Input } else { FusionKind::Loop };
        let g = self.graph.draft(n, kind);
        debug_assert_eq!(g as usize, self.work.len());
        let own = if role == Role::Update { self.operand_elements(n, 1) } else { elements };
        self.work.push(FxHashMap::default());
        self.ops.push(0.0);
        self.expressions.push(0.0);
        let closed = role == Role::Update && self.reads_what_it_updates(n);
        self.closed.push(closed);
        self.does(g, n, Work::of_root(own, role != Role::Reduce));
        self.share(n);
    }

    /// Whether the update of an in-place slice update depends on the array that it overwrites: then it is
    /// computed first, in a loop of its own.
    fn reads_what_it_updates(&self, n: NodeId) -> bool {
        let operands = &self.graph.node(n).operands;
        let Some((&buffer, rest)) = operands.split_first() else { return false };
        let mut pending: Vec<NodeId> = rest.to_vec();
        let mut seen: rustc_hash::FxHashSet<NodeId> = rest.iter().copied().collect();
        while let Some(o) = pending.pop() {
            if o == buffer || seen.len() > MAX_MEMBERS {
                return true;
            }
            if self.is_computed(o) {
                pending.extend(self.graph.node(o).operands.iter().filter(|x| seen.insert(**x)));
            }
        }
        false
    }

    /// Sets the work that a group does for a member.
    fn does(&mut self, g: u32, n: NodeId, work: Work) {
        self.ops[g as usize] += work.maps.elements() * self.graph.node(n).flops;
        self.expressions[g as usize] += work.size(self.cost);
        self.work[g as usize].insert(n, work);
    }

    fn operand_elements(&self, n: NodeId, slot: usize) -> f64 {
        self.graph.node(n).operands.get(slot).map_or(0.0, |&o| self.graph.node(o).elements)
    }

    /// Those groups that are loops over the dimensions of the value and read it at the loop's own index
    /// alone.
    fn similar(&self, n: NodeId, groups: &[u32]) -> Vec<u32> {
        let own = dims(self.module, self.graph.node(n).id);
        let fits = |&&g: &&u32| {
            let draft = &self.graph.drafts[g as usize];
            draft.kind == FusionKind::Loop
                && draft.roots.iter().all(|&r| {
                    let root = self.graph.node(r);
                    root.role == Role::Loop && dims(self.module, root.id) == own
                })
                && self.is_aligned(n, &self.work[g as usize])
        };
        groups.iter().filter(fits).copied().collect()
    }

    /// Whether the users in a group read a value at the loop's own index alone.
    fn is_aligned(&self, n: NodeId, work: &FxHashMap<NodeId, Work>) -> bool {
        self.graph.node(n).users.iter().all(|u| {
            work.get(u).is_none_or(|w| {
                w.aligned && self.module.instr(self.graph.node(*u).id).opcode.is_elementwise()
            })
        })
    }

    /// Merges as many of these groups as possible into the first one.
    fn merged(&mut self, groups: &[u32]) -> Option<u32> {
        let (&first, rest) = groups.split_first()?;
        for &g in rest.iter().take(MAX_TRIED) {
            self.merge(first, g);
        }
        Some(first)
    }

    fn merge(&mut self, a: u32, b: u32) -> bool {
        let around = self.looks_around(a, b) || self.looks_around(b, a);
        let again = if around { self.merged_work(a, b) } else { None };
        if around && again.is_none() || !self.graph.merge(a, b) {
            return false;
        }
        let other = std::mem::take(&mut self.work[b as usize]);
        // The work of the merged group was computed anew.
        if let Some(work) = again {
            (self.ops[a as usize], self.expressions[a as usize]) = self.cost(&work);
            self.work[a as usize] = work;
            return true;
        }
        for (n, w) in other {
            let Some(mine) = self.work[a as usize].get_mut(&n) else {
                self.work[a as usize].insert(n, w);
                continue;
            };
            mine.maps.include(&w.maps);
            mine.aligned &= w.aligned;
            mine.alternates |= w.alternates;
            mine.picked |= w.picked;
            mine.gathered |= w.gathered;
        }
        self.ops[a as usize] += self.ops[b as usize];
        self.expressions[a as usize] += self.expressions[b as usize];
        true
    }

    /// Whether a group reads what the other computes at another index than its own. Merged, it would
    /// recompute that for each map, with everything that it is made of: the composition of maps, up to the
    /// product of both numbers.
    fn looks_around(&self, reader: u32, other: u32) -> bool {
        let read = &self.graph.drafts[reader as usize].operands;
        let work = &self.work[reader as usize];
        self.graph.drafts[other as usize]
            .roots
            .iter()
            .any(|&r| read.contains(&r) && !self.is_aligned(r, work))
    }

    /// The work of two groups as one, where one reads what the other computes; `None` if that does not pay.
    fn merged_work(&self, a: u32, b: u32) -> Option<FxHashMap<NodeId, Work>> {
        let (x, y) = (&self.graph.drafts[a as usize], &self.graph.drafts[b as usize]);
        let is_root = |n: NodeId| x.roots.contains(&n) || y.roots.contains(&n);
        let mut members: Vec<NodeId> = x.members.iter().chain(&y.members).copied().collect();
        members.sort_unstable();
        members.dedup();
        let mut work: FxHashMap<NodeId, Work> = FxHashMap::default();
        for &n in members.iter().rev() {
            let mut own = self.asked(n, &work, &is_root)?;
            if is_root(n) {
                own.maps.include(&Maps::here(self.graph.node(n).elements));
            }
            work.insert(n, own);
        }
        let (ops, expressions) = self.cost(&work);
        let apart = |of: &[f64]| of[a as usize] + of[b as usize];
        let extra = ops - apart(&self.ops)
            + (expressions - apart(&self.expressions)).max(0.0) * self.cost.expression_ops;
        // What both read, and what one reads of the other.
        let of_other = |n: &NodeId, other: &Draft| other.operands.contains(n);
        let both = x.operands.iter().filter(|n| of_other(n, y));
        let between =
            x.roots.iter().filter(|n| of_other(n, y)).chain(y.roots.iter().filter(|n| of_other(n, x)));
        let saved: f64 = both.chain(between).map(|&n| self.graph.node(n).bytes).sum();
        (expressions <= self.cost.max_expressions
            && extra <= saved * self.cost.ops_per_byte + self.cost.launch_ops)
            .then_some(work)
    }

    /// The arithmetic of all members, and the number of their expressions.
    fn cost(&self, work: &FxHashMap<NodeId, Work>) -> (f64, f64) {
        work.iter().fold((0.0, 0.0), |(ops, expressions), (&n, w)| {
            (ops + w.maps.elements() * self.graph.node(n).flops, expressions + w.size(self.cost))
        })
    }

    /// Merges groups that read the same large value in the same way (sibling fusion).
    fn share(&mut self, n: NodeId) {
        let node = self.graph.node(n);
        if node.bytes < self.cost.near_cache_bytes || node.users.len() < 2 {
            return;
        }
        let groups = self.graph.user_groups(n);
        let loops = self.similar(n, &groups);
        self.merged(&loops);
        // Reductions over the same dimensions of the same space.
        let spaces: Vec<(u32, Space)> =
            groups.iter().filter_map(|&g| Some((g, self.reduction_space(g)?))).collect();
        let own = dims(self.module, self.graph.node(n).id);
        let mut done: Vec<(u32, Space)> = Vec::new();
        for (g, space) in spaces.into_iter().filter(|(_, s)| s.dims[..] == *own).take(MAX_TRIED) {
            match done.iter().find(|(_, s)| *s == space) {
                // Run one after the other, they would read their operand twice.
                Some(&(first, _)) => {
                    let _ = !self.feeds(first, g) && self.merge(first, g);
                }
                None => done.push((g, space)),
            }
        }
    }

    /// The operand and reduced dimensions of a group of reductions.
    fn reduction_space(&self, g: u32) -> Option<Space> {
        let draft = &self.graph.drafts[g as usize];
        if draft.merged || draft.kind != FusionKind::Input {
            return None;
        }
        let mut reductions = draft.members.iter().filter(|&&m| self.graph.node(m).role == Role::Reduce);
        let space = self.space_of(*reductions.next()?)?;
        let same = reductions.all(|&m| self.space_of(m).as_ref() == Some(&space));
        let transpose = draft.members.iter().any(|&m| self.transpose_of(m, g).is_some());
        (same && !transpose).then_some(space)
    }

    fn space_of(&self, reduction: NodeId) -> Option<Space> {
        folds::space(self.module, self.graph.node(reduction).id)
    }

    /// The only reader of a contraction that is evaluated as a reduction, if it is a transpose in the same
    /// group: results are then stored in the transposed order.
    fn transpose_of(&self, reduction: NodeId, g: u32) -> Option<NodeId> {
        let node = self.graph.node(reduction);
        let &[user] = &node.users[..] else { return None };
        let is = |n: NodeId, opcode: Opcode| self.module.instr(self.graph.node(n).id).opcode == opcode;
        let here = self.graph.drafts[g as usize].members.contains(&user);
        let transposes =
            node.role == Role::Reduce && is(reduction, Opcode::Dot) && is(user, Opcode::Transpose);
        (here && transposes).then_some(user)
    }

    /// Whether one of two groups reads what the other computes.
    fn feeds(&self, a: u32, b: u32) -> bool {
        let (a, b) = (&self.graph.drafts[a as usize], &self.graph.drafts[b as usize]);
        a.roots.iter().any(|r| b.operands.contains(r)) || b.roots.iter().any(|r| a.operands.contains(r))
    }

    /// Fuses a value into the groups of all its users, if that pays. `true`: nothing else needs it.
    fn join_users(&mut self, n: NodeId) -> bool {
        let mut groups = self.graph.user_groups(n);
        if groups.is_empty() || self.graph.node(n).role == Role::Update {
            return false;
        }
        let needed = self.graph.is_needed(n);
        let node = self.graph.node(n);
        if node.view && !node.operands.iter().any(|&o| self.is_computed(o)) {
            return false;
        }
        if groups.len() > 1 && !needed {
            // What only loops over its own space read is computed once if these become one loop.
            let similar = self.similar(n, &groups);
            if similar.len() == groups.len() {
                self.merged(&similar);
                groups = self.graph.user_groups(n);
            }
        }
        let works: Option<Vec<Work>> = groups.iter().map(|&g| self.demand(n, g)).collect();
        let Some(works) = works else { return false };
        let node = self.graph.node(n);
        if node.role == Role::Reduce && (needed || groups.len() > 1) {
            return false;
        }
        if !self.is_profitable(n, &groups, &works, needed) {
            return false;
        }
        for (&g, w) in groups.iter().zip(works) {
            self.graph.join(n, g);
            self.does(g, n, w);
            if self.graph.node(n).role == Role::Reduce {
                self.graph.drafts[g as usize].kind = FusionKind::Input;
            }
        }
        self.graph.nodes[n as usize].stays = needed && self.graph.node(n).view;
        !needed
    }

    /// Whether a value is computed by a loop rather than read from memory.
    fn is_computed(&self, n: NodeId) -> bool {
        let node = self.graph.node(n);
        matches!(node.role, Role::Loop | Role::Reduce)
    }

    fn is_profitable(&self, n: NodeId, groups: &[u32], works: &[Work], needed: bool) -> bool {
        let node = self.graph.node(n);
        let count = groups.len() as f64;
        let demand: f64 = works.iter().map(|w| w.maps.elements()).sum();
        let chooses = selects_source(self.module.instr(node.id).opcode);
        let apart = works.iter().any(|w| w.alternates || w.gathered || w.picked && chooses);
        let dearer = match apart {
            true => self.cost.strided_factor,
            false if chooses && self.is_narrow(node.id) => self.cost.narrow_concat_factor,
            false => 1.0,
        };
        let extra = (demand + if needed { node.elements } else { 0.0 } - node.elements).max(0.0)
            * node.flops
            * dearer;
        let code = if node.flops > 0.0 {
            works.iter().map(|w| w.size(self.cost) - 1.0).sum::<f64>() * self.cost.expression_ops
        } else {
            0.0
        };
        // Its operands are then recomputed as often, or stored instead.
        let evaluations =
            works.iter().fold(0.0f64, |most, w| most.max(w.maps.elements())) / node.elements.max(1.0);
        let extra = if evaluations > self.cost.recompute_index_maps {
            extra.max(self.again(n, evaluations - 1.0))
        } else {
            extra
        };
        let extra = extra + code;
        let saved = node.bytes * if needed { count } else { count + 1.0 };
        // What is read instead.
        let mut read = 0.0;
        for o in node.operands.iter().map(|&o| self.repeated(o)) {
            let operand = self.graph.node(o);
            if operand.role == Role::Scalar {
                continue;
            }
            let new =
                groups.iter().filter(|&&g| !self.graph.drafts[g as usize].operands.contains(&o)).count();
            let per = if operand.elements > 0.0 { operand.bytes / operand.elements } else { 0.0 };
            let widest = works.iter().fold(0.0f64, |a, w| a.max(w.maps.elements()));
            read += new as f64 * operand.bytes.min(per * widest);
            if !needed {
                read -= operand.bytes;
            }
        }
        let benefit = (saved - read.max(0.0)) * self.cost.ops_per_byte
            + if needed { 0.0 } else { self.cost.launch_ops };
        let ops: f64 = groups.iter().map(|&g| self.ops[g as usize]).sum();
        benefit > 0.0 && (extra <= benefit || extra <= ops * 0.1 && !needed)
    }

    /// Whether a concatenation or padding has parts along rows that are too narrow for loops of their own.
    fn is_narrow(&self, id: InstrId) -> bool {
        let Some(padding) = self.module.instr(id).attrs.padding() else {
            return has_narrow_concat_parts(self.module, id);
        };
        let inner = dims(self.module, id).iter().rposition(|&n| n != 1);
        let narrow = |n: i64| (1..MIN_PART_WIDTH).contains(&n);
        inner.and_then(|d| padding.get(d)).is_some_and(|p| narrow(p.low) || narrow(p.high))
    }

    /// The operand of a broadcast, which is what is read: no broadcast is materialized for a loop.
    fn repeated(&self, n: NodeId) -> NodeId {
        let node = self.graph.node(n);
        match (self.module.instr(node.id).opcode, node.operands.first()) {
            (Opcode::Broadcast, Some(&o)) => self.repeated(o),
            _ => n,
        }
    }

    /// The cost of computing a value that many times more: its own arithmetic, and for each operand the
    /// cheaper of recomputing and of storing it.
    fn again(&self, n: NodeId, times: f64) -> f64 {
        let mut seen = FxHashSet::default();
        self.again_of(n, times, f64::INFINITY, &mut seen, self.cost.max_recompute_chain)
    }

    /// The same, without values seen before; anything above `limit` if it is more.
    fn again_of(&self, n: NodeId, times: f64, limit: f64, seen: &mut FxHashSet<NodeId>, depth: u32) -> f64 {
        let node = self.graph.node(n);
        let mut cost = times * node.elements * node.flops;
        for &o in &node.operands {
            let operand = self.graph.node(o);
            if depth == 0 || cost > limit || operand.role != Role::Loop || !seen.insert(o) {
                continue;
            }
            let stored = 2.0 * operand.bytes * self.cost.ops_per_byte;
            cost += self.again_of(o, times, stored, seen, depth - 1).min(stored);
        }
        cost
    }

    /// The work that a group does for a value; `None` if the value cannot be computed there.
    fn demand(&self, n: NodeId, g: u32) -> Option<Work> {
        let draft = &self.graph.drafts[g as usize];
        let node = self.graph.node(n);
        if draft.members.len() >= MAX_MEMBERS || self.closed[g as usize] {
            return None;
        }
        if node.pieces && self.graph.pieces(&draft.members) >= MAX_PIECES {
            return None;
        }
        let more = node.operands.iter().filter(|o| !draft.operands.contains(o)).count();
        if more > 0 && self.graph.loads(&draft.operands) + more > MAX_OPERANDS + 1 {
            return None;
        }
        let work = &self.work[g as usize];
        // What is updated in place has no other reader.
        for &r in &draft.roots {
            let root = self.graph.node(r);
            if root.role == Role::Update
                && (root.operands[0] == n || node.operands.contains(&root.operands[0]))
            {
                return None;
            }
        }
        if node.role == Role::Reduce && !self.is_epilogue(n, g) {
            return None;
        }
        let own = self.asked(n, work, &|u| draft.roots.contains(&u))?;
        // A value that is the same everywhere is no expression of its own.
        let same = self.module.instr(node.id).opcode == Opcode::Broadcast
            && node.operands.iter().all(|&o| self.graph.node(o).role == Role::Scalar);
        let fits = same
            || own.maps.count() <= 1.0
            || self.expressions[g as usize] + own.size(self.cost) <= self.cost.max_expressions;
        fits.then_some(own)
    }

    /// The work that the users of a value in a group with these roots need of it; `None` if it would be too
    /// many expressions.
    fn asked(
        &self,
        n: NodeId,
        work: &FxHashMap<NodeId, Work>,
        is_root: &dyn Fn(NodeId) -> bool,
    ) -> Option<Work> {
        let node = self.graph.node(n);
        let mut maps = Maps::none();
        let (mut alternating, mut picked, mut gathered) = (false, false, false);
        for &u in &node.users {
            let Some(used) = work.get(&u) else { continue };
            let user = self.graph.node(u);
            gathered |= used.gathered || self.cuts_lanes(user.id) || self.shares_windows(user.id);
            let opcode = self.module.instr(user.id).opcode;
            picked |= used.picked || opcode == Opcode::Gather && user.operands[0] == n;
            let alternates = used.alternates
                || used.picked && selects_source(opcode)
                || pads_between(self.module, user.id);
            alternating |= alternates;
            if opcode == Opcode::Concatenate
                && user.operands.len() > self.cost.max_inline_concat_parts
                && !is_root(u)
            {
                return None;
            }
            // A user is listed once for each operand slot: the same map each time, or one map per slot.
            for slot in (0..user.operands.len()).filter(|&slot| user.operands[slot] == n) {
                let terms = if user.role == Role::Reduce { 1.0 } else { terms(self.module, user.id, slot) };
                if used.maps.count() * terms > self.cost.max_expressions {
                    return None;
                }
                if user.role == Role::Reduce {
                    let weighs = self.module.instr(user.id).opcode == Opcode::Dot;
                    let looked = if weighs { self.operand_elements_of(user) } else { node.elements };
                    used.maps.iter().for_each(|(map, _)| maps.look(map, looked));
                } else {
                    let forms = &mut self.forms.borrow_mut();
                    maps.look_from(forms, user.id, slot, &used.maps, terms as usize, alternates);
                }
            }
        }
        let aligned = self.is_aligned(n, work);
        Some(Work { maps, aligned, alternates: alternating, picked, gathered })
    }

    /// Whether an instruction is a reshape to longer rows.
    fn cuts_lanes(&self, id: InstrId) -> bool {
        let instr = self.module.instr(id);
        let row = |id: InstrId| dims(self.module, id).iter().rev().find(|&&n| n != 1).copied().unwrap_or(1);
        instr.opcode == Opcode::Reshape && row(id) > row(instr.operands()[0])
    }

    /// Whether an instruction has strided, overlapping windows: what it reads is recomputed for lanes that
    /// are not contiguous.
    fn shares_windows(&self, id: InstrId) -> bool {
        let instr = self.module.instr(id);
        let Some(window) = instr.attrs.window().filter(|_| instr.opcode == Opcode::ReduceWindow) else {
            return false;
        };
        window.dims.iter().any(|w| w.stride > 1 && w.size > w.stride)
    }

    /// Whether a group is elementwise work on results like this reduction's, which can be its epilogue.
    fn is_epilogue(&self, n: NodeId, g: u32) -> bool {
        let draft = &self.graph.drafts[g as usize];
        let node = self.graph.node(n);
        let Some(own) = self.module.instr(node.id).shape.as_array() else { return false };
        let transpose = self.transpose_of(n, g);
        let over = self.space_of(n);
        let after = transpose.map_or(&own.dims[..], |t| dims(self.module, self.graph.node(t).id));
        // A reduction to almost as many elements as it reads is a different kind of work.
        let read = self.operand_elements_of(node);
        let elements = own.checked_elements().map_or(f64::INFINITY, |n| n as f64);
        // So is work on all elements of short rows.
        let short = elements * MAX_SHORT_REDUCTION_LEN as f64 >= read;
        (transpose.is_some() || elements * 4.0 <= read)
            && draft.members.iter().all(|&m| {
                let member = self.graph.node(m);
                let id = member.id;
                match member.role {
                    Role::Reduce => transpose.is_none() && self.space_of(m) == over,
                    _ if transpose == Some(m) => true,
                    _ if self.in_space_of_operand(m, n) => {
                        self.feeds_reductions_only(m, g) && !(short && draft.roots.contains(&m))
                    }
                    _ => {
                        let opcode = self.module.instr(id).opcode;
                        let scalar_broadcast = opcode == Opcode::Broadcast
                            && member.operands.iter().all(|&o| self.graph.node(o).elements == 1.0);
                        dims(self.module, id) == after && (opcode.is_elementwise() || scalar_broadcast)
                    }
                }
            })
    }

    fn operand_elements_of(&self, node: &super::graph::Node) -> f64 {
        let operand = node.operands.get(folds::operand(self.module, node.id));
        operand.map_or(0.0, |&o| self.graph.node(o).elements)
    }

    fn in_space_of_operand(&self, m: NodeId, reduction: NodeId) -> bool {
        let node = self.graph.node(reduction);
        let operand = node.operands[folds::operand(self.module, node.id)];
        dims(self.module, self.graph.node(m).id) == dims(self.module, self.graph.node(operand).id)
            && !self.graph.node(operand).view
    }

    fn feeds_reductions_only(&self, m: NodeId, g: u32) -> bool {
        let node = self.graph.node(m);
        node.users
            .iter()
            .filter(|&&u| self.graph.node(u).groups.contains(&g))
            .all(|&u| self.graph.node(u).role == Role::Reduce || self.graph.node(u).elements == node.elements)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;
    use crate::fusion::maps::again;

    /// A sorting network: each step reads its operand at the same and at another index, so composed steps
    /// read the first operand by a number of maps that doubles with each step.
    fn network(n: i64) -> String {
        let mut text = format!(
            "HloModule m\nENTRY e {{ x0 = f32[{n}] parameter(0)\n i = s32[{n}] iota(), iota_dimension=0\n z = s32[] constant(0)\n zb = s32[{n}] broadcast(z), dimensions={{}}\n"
        );
        let (mut step, mut k) = (0, 2);
        while k <= n {
            let mut j = k / 2;
            while j > 0 {
                let next = step + 1;
                for (name, bit) in [("k", k), ("j", j)] {
                    let _ = write!(
                        text,
                        " {name}c{next} = s32[] constant({bit})\n {name}b{next} = s32[{n}] broadcast({name}c{next}), dimensions={{}}\n \
                         {name}a{next} = s32[{n}] and(i, {name}b{next})\n {name}{next} = pred[{n}] compare({name}a{next}, zb), direction=EQ\n"
                    );
                }
                let _ = write!(
                    text,
                    " s{next} = pred[{n}] compare(k{next}, j{next}), direction=EQ\n a{next} = f32[{0},2,{j}] reshape(x{step})\n \
                     b{next} = f32[{0},2,{j}] reverse(a{next}), dimensions={{1}}\n c{next} = f32[{n}] reshape(b{next})\n \
                     l{next} = f32[{n}] minimum(x{step}, c{next})\n h{next} = f32[{n}] maximum(x{step}, c{next})\n \
                     x{next} = f32[{n}] select(s{next}, l{next}, h{next})\n",
                    n / 2 / j
                );
                (step, j) = (next, j / 2);
            }
            k *= 2;
        }
        let _ = write!(text, " ROOT r = f32[{n}] negate(x{step}) }}");
        text
    }

    #[test]
    fn groups_that_read_each_other_by_many_maps_stay_apart() {
        let parsed = hlo_parser::parse_module(&network(4096), &hlo_parser::ParseOptions::default());
        let mut module = parsed.module.expect("the text above is a module");
        let cse = crate::passes::by_name("cse").expect("a pass");
        let mut fuel = crate::passes::Fuel::UNLIMITED;
        crate::passes::Pipeline::new().then(cse, None).run(&mut module, &mut fuel).expect("no pass fails");
        assert!(run(&mut module, &mut PassCx::cpu(&mut fuel)) > 0);
        let calls = |id: InstrId| module.instr(id).attrs.computation(hlo::AttrKey::Calls);
        let fusions: Vec<_> = module.instructions(module.entry()).filter_map(calls).collect();
        assert!(!fusions.is_empty());
        for c in fusions {
            let (all, once) = again(&module, c);
            assert!(all <= once * 20.0, "{} times", all / once);
        }
    }

    /// Steps of a 7-point stencil with periodic boundaries.
    fn stencil(n: i64, steps: u32) -> String {
        let mut text = format!(
            "HloModule m\nENTRY e {{ x0 = f32[{n},{n},{n}] parameter(0)\n c = f32[] constant(0.5)\n cb = f32[{n},{n},{n}] broadcast(c), dimensions={{}}\n"
        );
        for step in 0..steps {
            let (mut sum, next) = (format!("x{step}"), step + 1);
            for d in 0..3 {
                for (side, cut) in [("l", 1), ("r", n - 1)] {
                    let part = |low: i64, high: i64| {
                        let of = |e: usize, all: i64, cut: i64| if e == d { cut } else { all };
                        let shape: Vec<String> = (0..3).map(|e| of(e, n, high - low).to_string()).collect();
                        let ranges: Vec<String> =
                            (0..3).map(|e| format!("[{}:{}]", of(e, 0, low), of(e, n, high))).collect();
                        (shape.join(","), ranges.join(", "))
                    };
                    let (name, (s, at), (t, from)) =
                        (format!("{side}{d}s{step}"), part(cut, n), part(0, cut));
                    let _ = write!(
                        text,
                        " a{name} = f32[{s}] slice(x{step}), slice={{{at}}}\n b{name} = f32[{t}] slice(x{step}), slice={{{from}}}\n \
                         k{name} = f32[{n},{n},{n}] concatenate(a{name}, b{name}), dimensions={{{d}}}\n n{name} = f32[{n},{n},{n}] add({sum}, k{name})\n"
                    );
                    sum = format!("n{name}");
                }
            }
            let _ = writeln!(text, " x{next} = f32[{n},{n},{n}] multiply({sum}, cb)");
        }
        let _ = write!(text, " ROOT r = f32[{n},{n},{n}] negate(x{steps}) }}");
        text
    }

    #[test]
    fn steps_of_a_stencil_are_a_loop_each() {
        let parsed = hlo_parser::parse_module(&stencil(96, 4), &hlo_parser::ParseOptions::default());
        let mut module = parsed.module.expect("the text above is a module");
        let mut fuel = crate::passes::Fuel::UNLIMITED;
        assert_eq!(run(&mut module, &mut PassCx::cpu(&mut fuel)), 4);
    }
}
