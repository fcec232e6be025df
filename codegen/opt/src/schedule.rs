//! Instruction scheduling within computations, for low peak memory.
//!
//! As a pass: it reorders instructions, and nothing else. **Invariants:** operands and control predecessors
//! come before; what has effects keeps its order; the same module gives the same order; a scheduled module
//! stays as it is.
//!
//! Three orders are tried for each computation: the given one, a greedy list schedule that runs at each step
//! what frees most (or allocates least), and a depth-first one, largest operand first. The one with the
//! lowest peak memory is taken, counting the copies that in-place updates then need, and of several the one
//! that copies least; the given one, if none is better.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hlo::attrs::FusionKind;
use hlo::{ComputationId, InstrId, Module, Opcode};
use rustc_hash::FxHashMap;

use crate::buffers::{alias_of, control_computations, element_starts, for_each_array};
use crate::csr::Csr;
use crate::passes::PassCx;
use crate::passes::effects::Effects;

/// The index of an instruction in its computation.
type Node = u32;

/// Runs the pass.
pub(crate) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    if module.header.is_scheduled == Some(true) {
        return 0;
    }
    let mut reached = vec![module.entry()];
    let mut seen: rustc_hash::FxHashSet<ComputationId> = reached.iter().copied().collect();
    let mut next = 0;
    while let Some(&c) = reached.get(next) {
        next += 1;
        for id in module.instructions(c) {
            reached.extend(control_computations(module, id).into_iter().filter(|&c| seen.insert(c)));
        }
    }
    // Callees first: their peak is what their callers need meanwhile.
    let order: Vec<ComputationId> =
        module.computations().iter().copied().filter(|c| seen.contains(c)).collect();
    let mut inner: FxHashMap<ComputationId, u64> = FxHashMap::default();
    let effects = Effects::default();
    let mut applied = 0;
    for c in order {
        let graph = Graph::new(module, c, &inner, &effects);
        let (best, peak) = graph.best();
        inner.insert(c, peak);
        if let Some(order) = best {
            if !cx.fuel.take() {
                return applied;
            }
            applied += 1;
            let mut previous = None;
            for node in order {
                let id = graph.ids[node as usize];
                module.move_after(id, previous);
                previous = Some(id);
            }
        }
    }
    module.header.is_scheduled = Some(true);
    applied
}

/// The dependence graph. Nodes are instructions; values are the arrays that they define.
struct Graph {
    ids: Vec<InstrId>,
    /// The size of each value in bytes.
    sizes: Vec<u64>,
    /// The bytes that each value takes here: none for what is given from outside.
    bytes: Vec<u64>,
    /// The number of nodes that read each value; results of the computation have one more reader.
    readers: Vec<u32>,
    /// The values that each node defines.
    makes: Csr,
    /// The values that each node reads, each once.
    reads: Csr,
    /// The nodes that read each value.
    readers_of: Csr,
    /// The successors of each node.
    after: Csr,
    /// The number of predecessors of each node.
    before: Vec<u32>,
    /// For each node the value that it changes in place, and whether the alternative is a copy.
    in_place: Vec<Option<(u32, bool)>>,
    /// The bytes that each node needs while it runs.
    inner: Vec<u64>,
}

impl Graph {
    fn new(
        module: &Module,
        c: ComputationId,
        inner: &FxHashMap<ComputationId, u64>,
        effects: &Effects,
    ) -> Graph {
        let ids: Vec<InstrId> = module.instructions(c).collect();
        let n = ids.len();
        let node: FxHashMap<InstrId, Node> = ids.iter().zip(0..).map(|(&id, i)| (id, i)).collect();
        let mut leaves = Leaves::default();
        let (mut makes, mut reads) = (Csr::begin(n), Csr::begin(n));
        let mut edges: Vec<(u32, u32)> = Vec::new();
        let (mut in_place, mut needs) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let mut effect: Option<Node> = None;
        for (i, &id) in ids.iter().enumerate() {
            let i = i as u32;
            let instr = module.instr(id);
            for before in instr.operands().iter().chain(&instr.control_predecessors) {
                // Control edges to other computations mean nothing here.
                edges.extend(node.get(before).map(|&b| (b, i)));
            }
            if effects.has(module, id) {
                edges.extend(effect.map(|e| (e, i)));
                effect = Some(i);
            }
            let given = matches!(instr.opcode, Opcode::Parameter | Opcode::Constant);
            let name = leaves.add(module, id, i, &node, given);
            if !name {
                makes.all.extend(leaves.of(i));
                let from = reads.all.len();
                for o in instr.operands().iter().filter_map(|o| node.get(o)) {
                    reads.all.extend(leaves.of(*o).iter().copied().filter(|&v| leaves.sizes[v as usize] > 0));
                }
                reads.all[from..].sort_unstable();
                let mut kept = from;
                for k in from..reads.all.len() {
                    if kept == from || reads.all[kept - 1] != reads.all[k] {
                        reads.all[kept] = reads.all[k];
                        kept += 1;
                    }
                }
                reads.all.truncate(kept);
            }
            makes.end();
            reads.end();
            in_place.push(if name {
                None
            } else {
                changed(module, id, |o| leaves.of(node[&o]), leaves.of(i), &leaves.sizes)
            });
            let called = control_computations(module, id);
            needs.push(called.iter().filter_map(|c| inner.get(c)).copied().max().unwrap_or(0));
        }
        edges.sort_unstable();
        edges.dedup();
        let mut before = vec![0; n];
        edges.iter().for_each(|e| before[e.1 as usize] += 1);
        let after = Csr::grouped(n, &edges);
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for i in 0..n as u32 {
            pairs.extend(reads.of(i).iter().map(|&v| (v, i)));
        }
        let values = leaves.sizes.len();
        let readers_of = Csr::grouped(values, &pairs);
        let mut readers: Vec<u32> = (0..values as u32).map(|v| readers_of.of(v).len() as u32).collect();
        for &v in leaves.of(node[&module.root(c)]) {
            readers[v as usize] += 1;
        }
        let Leaves { sizes, bytes, .. } = leaves;
        Graph { ids, sizes, bytes, readers, makes, reads, readers_of, after, before, in_place, inner: needs }
    }

    /// The best order, if it is better than the given one, and its peak in bytes.
    fn best(&self) -> (Option<Vec<Node>>, u64) {
        let text: Vec<Node> = (0..self.ids.len() as u32).collect();
        let (mut best, (mut cost, mut peak)) = (None, self.cost(&text));
        // No order has a lower peak than the instruction that needs most, with no copies.
        if cost.0 > self.at_least() {
            for order in [self.greedy(), self.depth_first()] {
                let (c, p) = self.cost(&order);
                if c < cost {
                    (best, cost, peak) = (Some(order), c, p);
                }
            }
        }
        (best, peak)
    }

    /// The memory that some instruction needs by itself.
    fn at_least(&self) -> u64 {
        let own = |i: u32| {
            let sum = |list: &[u32]| list.iter().map(|&v| self.bytes[v as usize]).sum::<u64>();
            let shared = self.in_place[i as usize].map_or(0, |(v, _)| self.bytes[v as usize]);
            (sum(self.makes.of(i)) + sum(self.reads.of(i)) + self.inner[i as usize]).saturating_sub(shared)
        };
        (0..self.ids.len() as u32).map(own).max().unwrap_or(0)
    }

    /// The cost of an order, to be compared: peak bytes including copies, then bytes of copies; and the peak
    /// alone.
    fn cost(&self, order: &[Node]) -> ((u64, u64), u64) {
        let mut left = self.readers.clone();
        let (mut alive, mut most, mut copied) = (0u64, 0u64, 0u64);
        for &i in order {
            let made: u64 = self.makes.of(i).iter().map(|&v| self.bytes[v as usize]).sum();
            let mut shared = 0;
            if let Some((v, must)) = self.in_place[i as usize] {
                if left[v as usize] == 1 {
                    shared = self.bytes[v as usize];
                } else if must {
                    copied += self.sizes[v as usize];
                }
            }
            most = most.max((alive + made + self.inner[i as usize]).saturating_sub(shared));
            alive += made;
            for &v in self.reads.of(i) {
                left[v as usize] -= 1;
                if left[v as usize] == 0 {
                    alive -= self.bytes[v as usize];
                }
            }
            for &v in self.makes.of(i) {
                if left[v as usize] == 0 {
                    alive -= self.bytes[v as usize];
                }
            }
        }
        ((most.saturating_add(copied), copied), most)
    }

    /// The greedy list schedule: at each step what frees most; among equals the first in the text. What
    /// changes a value in place waits for others that read it, as long as something else can run.
    fn greedy(&self) -> Vec<Node> {
        let mut left = self.readers.clone();
        let mut before = self.before.clone();
        let gain = |i: Node, left: &[u32]| -> i64 {
            let made: u64 = self.makes.of(i).iter().map(|&v| self.bytes[v as usize]).sum();
            let freed =
                self.reads.of(i).iter().filter(|&&v| left[v as usize] == 1).map(|&v| self.bytes[v as usize]);
            freed.sum::<u64>() as i64 - made as i64
        };
        let mut order = Vec::with_capacity(self.ids.len());
        let mut current: Vec<Option<i64>> = vec![None; self.ids.len()];
        let mut ready: BinaryHeap<(i64, Reverse<Node>)> = BinaryHeap::new();
        let mut waiting: BinaryHeap<Reverse<Node>> = BinaryHeap::new();
        let add = |i: Node, left: &[u32], ready: &mut BinaryHeap<_>, current: &mut [Option<i64>]| {
            let g = gain(i, left);
            current[i as usize] = Some(g);
            ready.push((g, Reverse(i)));
        };
        for i in 0..self.ids.len() as u32 {
            if before[i as usize] == 0 {
                add(i, &left, &mut ready, &mut current);
            }
        }
        let mut done = vec![false; self.ids.len()];
        loop {
            let i = match ready.pop() {
                Some((g, Reverse(i))) => {
                    // An outdated entry of the queue: it frees more by now, and was queued again.
                    if done[i as usize] || current[i as usize] != Some(g) {
                        continue;
                    }
                    if let Some((v, true)) = self.in_place[i as usize]
                        && left[v as usize] > 1
                    {
                        current[i as usize] = None;
                        waiting.push(Reverse(i));
                        continue;
                    }
                    i
                }
                None => match waiting.pop() {
                    Some(Reverse(i)) if done[i as usize] => continue,
                    Some(Reverse(i)) => i,
                    None => break,
                },
            };
            done[i as usize] = true;
            order.push(i);
            for &v in self.reads.of(i) {
                left[v as usize] -= 1;
                if left[v as usize] != 1 {
                    continue;
                }
                // Its last reader frees it now.
                for &r in self.readers_of.of(v) {
                    if !done[r as usize] && before[r as usize] == 0 {
                        add(r, &left, &mut ready, &mut current);
                    }
                }
            }
            for &next in self.after.of(i) {
                before[next as usize] -= 1;
                if before[next as usize] == 0 {
                    add(next, &left, &mut ready, &mut current);
                }
            }
        }
        order
    }

    /// The depth-first order: everything that an instruction needs right before it, the largest first.
    fn depth_first(&self) -> Vec<Node> {
        let n = self.ids.len();
        let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(self.after.all.len());
        for i in 0..n as u32 {
            pairs.extend(self.after.of(i).iter().map(|&next| (next, i)));
        }
        let needed = Csr::grouped(n, &pairs);
        let size = |i: u32| self.makes.of(i).iter().map(|&v| self.bytes[v as usize]).sum::<u64>();
        let sizes: Vec<u64> = (0..n as u32).map(size).collect();
        let mut seen = vec![false; n];
        let mut order = Vec::with_capacity(n);
        // Nodes without successors, in program order: the result, and what has effects.
        let ends = (0..n as u32).filter(|&i| self.after.of(i).is_empty());
        let mut stack: Vec<(Node, bool)> = Vec::new();
        for end in ends {
            stack.push((end, false));
            while let Some((i, left)) = stack.pop() {
                if left {
                    order.push(i);
                } else if !seen[i as usize] {
                    seen[i as usize] = true;
                    stack.push((i, true));
                    let mut first: Vec<Node> =
                        needed.of(i).iter().copied().filter(|&p| !seen[p as usize]).collect();
                    first.sort_by_key(|&p| (Reverse(sizes[p as usize]), p));
                    stack.extend(first.into_iter().rev().map(|p| (p, false)));
                }
            }
        }
        order
    }
}

/// The values of the leaves of the nodes so far.
#[derive(Default)]
struct Leaves {
    pool: Vec<u32>,
    ranges: Vec<(u32, u32)>,
    elements: FxHashMap<Node, Vec<u32>>,
    /// The size of each value, as in [`Graph`].
    sizes: Vec<u64>,
    bytes: Vec<u64>,
}

impl Leaves {
    fn of(&self, node: Node) -> &[u32] {
        let (from, to) = self.ranges[node as usize];
        &self.pool[from as usize..to as usize]
    }

    /// Adds the leaves of the next node. Returns whether it is an alias. What is `given` takes no memory
    /// here.
    fn add(
        &mut self,
        module: &Module,
        id: InstrId,
        own: Node,
        node: &FxHashMap<InstrId, Node>,
        given: bool,
    ) -> bool {
        let instr = module.instr(id);
        let first = self.pool.len() as u32;
        debug_assert_eq!(own as usize, self.ranges.len());
        let operand = |slot: usize| instr.operands().get(slot).and_then(|o| node.get(o)).copied();
        if instr.opcode == Opcode::Tuple {
            for slot in 0..instr.operands().len() {
                let (from, to) = operand(slot).map_or((0, 0), |o| self.ranges[o as usize]);
                self.pool.extend_from_within(from as usize..to as usize);
            }
            self.ranges.push((first, self.pool.len() as u32));
            return true;
        }
        if instr.opcode == Opcode::GetTupleElement
            && let Some(o) = operand(0)
        {
            let index = instr.attrs.int(hlo::AttrKey::Index).and_then(|i| usize::try_from(i).ok());
            let tuple = &module.instr(instr.operands()[0]).shape;
            let starts = self.elements.entry(o).or_insert_with(|| element_starts(tuple));
            let base = self.ranges[o as usize].0;
            let range = match index.and_then(|i| starts.get(i..i + 2)) {
                Some(&[a, b]) => (base + a, base + b),
                _ => (base, base),
            };
            self.ranges.push(range);
            return true;
        }
        if let Some(o) = alias_of(module, id).and_then(|o| node.get(&o)) {
            self.ranges.push(self.ranges[*o as usize]);
            return true;
        }
        for_each_array(&instr.shape, &mut |shape| {
            let size = shape.checked_bytes().and_then(|b| u64::try_from(b).ok()).unwrap_or(0);
            self.pool.push(self.sizes.len() as u32);
            self.sizes.push(size);
            self.bytes.push(if given { 0 } else { size });
        });
        self.ranges.push((first, self.pool.len() as u32));
        given
    }
}

/// The value that an instruction writes its result over if it dies there, and whether it copies it otherwise:
/// an estimate of what [`crate::buffers::in_place`] decides.
fn changed<'a>(
    module: &Module,
    id: InstrId,
    leaves: impl Fn(InstrId) -> &'a [u32],
    own: &[u32],
    sizes: &[u64],
) -> Option<(u32, bool)> {
    let instr = module.instr(id);
    let fits =
        |o: &&InstrId| matches!((leaves(**o), own), (&[a], &[b]) if sizes[a as usize] == sizes[b as usize]);
    let slot = |o: &InstrId| leaves(*o).first().copied();
    let updates = || {
        let c = instr.attrs.called_computations();
        let root = c.first().map(|&c| module.instr(module.root(c)).opcode);
        matches!(root, Some(Opcode::DynamicUpdateSlice | Opcode::Scatter))
    };
    match instr.opcode {
        Opcode::DynamicUpdateSlice | Opcode::Scatter => Some((slot(instr.operands().first()?)?, true)),
        Opcode::Fusion if updates() => Some((slot(instr.operands().iter().find(fits)?)?, true)),
        Opcode::Fusion if instr.attrs.fusion_kind() == Some(&FusionKind::Loop) => {
            Some((slot(instr.operands().iter().find(fits)?)?, false))
        }
        opcode if opcode.is_elementwise() => Some((slot(instr.operands().iter().find(fits)?)?, false)),
        _ => None,
    }
}
