//! Row fusion: softmax, normalizations, variances and their gradients. Everything between reductions over the
//! trailing dimensions and broadcasts back, with the elementwise work before and after, as one kernel that
//! keeps a row in cache.
//!
//! A *space* is an array's dimensions and how many of them are row dimensions. Its instructions are
//! elementwise ones over `[rows.., n..]` or `[rows..]`, reductions from the former to the latter, and
//! broadcasts back. A set of them can be one kernel if no value leaves the space and comes back between them,
//! so each gets a *level*: how often a value on the way to it left the space. A connected set within a level
//! is a fusion if it holds a reduction and something computed from its result.

use hlo::attrs::{AttrKey, FusionKind};
use hlo::{Module, Opcode};
use rustc_hash::{FxHashMap, FxHashSet};

use super::folds;
use super::graph::{Graph, MAX_MEMBERS, MAX_OPERANDS, MAX_ROOTS, NodeId, NodeIndex};
use super::kinds::{Role, dims, programs};
use super::outline::Outliner;
use crate::cost_model::CostModel;
use crate::passes::PassCx;
use crate::passes::edit::{has_run_time_sizes, pinned};

/// The maximum number of spaces of a computation: a bound on the time that this takes.
const MAX_SPACES: usize = 64;

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
        for space in spaces(module, &graph, cx.cost) {
            fuse(module, &mut graph, &space, cx.cost);
        }
        applied += graph.apply(module, cx, &mut outliner, false);
    }
    outliner.finish(module);
    applied
}

/// Dimensions, of which the first `rows` are row dimensions.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Space {
    dims: Vec<i64>,
    rows: usize,
}

/// The space of a `reduce` over trailing dimensions.
fn space_of(module: &Module, graph: &Graph, n: NodeId) -> Option<Space> {
    let node = graph.node(n);
    let folds = node.role == Role::Reduce && module.instr(node.id).opcode == Opcode::Reduce;
    if !folds || !node.groups.is_empty() {
        return None;
    }
    let space = folds::space(module, node.id)?;
    let (rows, row) = space.rows()?;
    let any = !row.is_empty() && !space.dims.contains(&0);
    any.then(|| Space { dims: space.dims.to_vec(), rows: rows.len() })
}

/// The spaces of a computation for which row kernels can pay.
fn spaces(module: &Module, graph: &Graph, cost: &CostModel) -> Vec<Space> {
    let mut seen: FxHashSet<Space> = FxHashSet::default();
    let mut spaces = Vec::new();
    for n in 0..graph.nodes.len() as NodeId {
        let Some(space) = space_of(module, graph, n) else { continue };
        let product = |dims: &[i64]| dims.iter().map(|&d| d as f64).product::<f64>();
        let (rows, all) = (product(&space.dims[..space.rows]), product(&space.dims));
        let short = all <= rows * cost.max_short_reduction_len as f64 && rows >= cost.min_short_rows;
        if (rows >= cost.min_rows || all <= cost.small_elements) && !short && seen.insert(space.clone()) {
            spaces.push(space);
            if spaces.len() == MAX_SPACES {
                break;
            }
        }
    }
    spaces
}

/// The part of an instruction in a space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// One value per element of a row.
    Full,
    /// One value per row.
    Row,
    /// Not in the space.
    Other,
}

fn part(module: &Module, graph: &Graph, space: &Space, n: NodeId) -> Part {
    let node = graph.node(n);
    let instr = module.instr(node.id);
    let row_dims = &space.dims[..space.rows];
    if instr.opcode == Opcode::GetTupleElement {
        let of = node.operands[0];
        let inside = space_of(module, graph, of).as_ref() == Some(space);
        return if inside && graph.node(of).role == Role::Reduce { Part::Row } else { Part::Other };
    }
    match node.role {
        Role::Reduce if space_of(module, graph, n).as_ref() == Some(space) => Part::Row,
        Role::Loop if node.groups.is_empty() => {
            let own = dims(module, node.id);
            let is_full = own == &space.dims[..];
            if instr.opcode.is_elementwise() {
                match () {
                    () if is_full => Part::Full,
                    () if own == row_dims => Part::Row,
                    () => Part::Other,
                }
            } else if instr.opcode == Opcode::Broadcast && is_full && space.rows > 0 {
                let identity = instr.attrs.ints_or_empty(AttrKey::Dimensions).iter().enumerate();
                let of = dims(module, graph.node(node.operands[0]).id);
                if of == row_dims && identity.clone().all(|(i, &d)| d == i as i64) {
                    Part::Full
                } else {
                    Part::Other
                }
            } else if instr.opcode == Opcode::Broadcast && is_full {
                let of = graph.node(node.operands[0]);
                if of.elements == 1.0 && of.role != Role::Scalar { Part::Full } else { Part::Other }
            } else {
                Part::Other
            }
        }
        Role::Loop | Role::Reduce | Role::Update | Role::Scalar | Role::Outside => Part::Other,
    }
}

fn fuse(module: &Module, graph: &mut Graph, space: &Space, cost: &CostModel) {
    let parts: Vec<Part> = (0..graph.nodes.len() as NodeId).map(|n| part(module, graph, space, n)).collect();
    let inside = |n: NodeId| parts[n as usize] != Part::Other;
    let levels = levels(graph, &parts);

    // Connected components (union-find) within a level.
    let mut leader: Vec<NodeId> = (0..graph.nodes.len() as NodeId).collect();
    fn find(leader: &mut [NodeId], mut n: NodeId) -> NodeId {
        while leader[n as usize] != n {
            leader[n as usize] = leader[leader[n as usize] as usize];
            n = leader[n as usize];
        }
        n
    }
    // Readers of the same large value belong together, too.
    let mut reader: FxHashMap<(NodeId, u32), NodeId> = FxHashMap::default();
    for n in (0..graph.nodes.len() as NodeId).filter(|&n| inside(n)) {
        for &o in &graph.node(n).operands {
            let level = levels[n as usize];
            let other = if inside(o) && levels[o as usize] == level {
                o
            } else if !inside(o)
                && parts[n as usize] == Part::Full
                && dims(module, graph.node(o).id) == &space.dims[..]
            {
                *reader.entry((o, level)).or_insert(n)
            } else {
                continue;
            };
            let (a, b) = (find(&mut leader, n), find(&mut leader, other));
            leader[a.max(b) as usize] = a.min(b);
        }
    }
    let mut sets: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
    let mut order = Vec::new();
    for n in (0..graph.nodes.len() as NodeId).filter(|&n| inside(n)) {
        let first = find(&mut leader, n);
        let set = sets.entry(first).or_default();
        if set.is_empty() {
            order.push(first);
        }
        set.push(n);
    }
    for first in order {
        let Some(set) = sets.remove(&first) else { continue };
        // Segments in program order: a path between two values of a segment that stays in the set stays in
        // the segment.
        let size = if set.len() > 2 * MAX_MEMBERS { MAX_MEMBERS / 2 } else { set.len() };
        for piece in set.chunks(size) {
            // What is cut off from a set can be a fusion of its own.
            let mut pending = vec![piece.to_vec()];
            while let Some(set) = pending.pop() {
                if set.iter().any(|&n| graph.node(n).role == Role::Reduce) {
                    make(module, graph, space, cost, &parts, set, &mut pending);
                }
            }
        }
    }
}

/// The level of each instruction of the space: how often a value on the way to it left the space; as late as
/// its readers allow.
fn levels(graph: &Graph, parts: &[Part]) -> Vec<u32> {
    let inside = |n: NodeId| parts[n as usize] != Part::Other;
    let count = graph.nodes.len();
    let mut levels = vec![0u32; count];
    for n in 0..count as NodeId {
        let from = |&o: &NodeId| levels[o as usize] + u32::from(inside(o) && !inside(n));
        levels[n as usize] = graph.node(n).operands.iter().map(from).max().unwrap_or(0);
    }
    let mut late = vec![u32::MAX; count];
    for n in (0..count as NodeId).rev() {
        let to = |&u: &NodeId| {
            late[u as usize]
                .saturating_sub(u32::from(inside(n) && !inside(u) && late[u as usize] != u32::MAX))
        };
        late[n as usize] = graph.node(n).users.iter().map(to).min().unwrap_or(u32::MAX);
        // A value that nothing in the space reads keeps its earliest level.
        if inside(n) && late[n as usize] == u32::MAX {
            late[n as usize] = levels[n as usize];
        }
        if inside(n) {
            late[n as usize] = late[n as usize].max(levels[n as usize]);
        }
    }
    late
}

/// One fusion of a set within a level, as far as there is a valid position for it and live rows stay small;
/// `rest` gets what is left.
fn make(
    module: &Module,
    graph: &mut Graph,
    space: &Space,
    cost: &CostModel,
    parts: &[Part],
    mut set: Vec<NodeId>,
    rest: &mut Vec<Vec<NodeId>>,
) {
    loop {
        if !is_chain(graph, parts, &set) {
            return;
        }
        let mut members: FxHashSet<NodeId> = set.iter().copied().collect();
        let roots: Vec<NodeId> = set.iter().copied().filter(|&n| is_looked_at(graph, &members, n)).collect();
        let roots = graph.slim(module, &members, roots);
        graph.absorb(module, &mut members, &[]);
        let operands = graph.operands_of(&members);
        let row: f64 = space.dims[space.rows..].iter().map(|&d| d as f64).product();
        let full = |n: &&NodeId| dims(module, graph.node(**n).id) == &space.dims[..];
        let width = |n: &NodeId| graph.node(*n).bytes / graph.node(*n).elements.max(1.0);
        let live: f64 =
            operands.iter().filter(full).chain(roots.iter().filter(full)).map(|n| width(n) * row).sum();
        let fits = members.len() <= MAX_MEMBERS
            && roots.len() <= MAX_ROOTS
            && graph.loads(&operands) <= MAX_OPERANDS
            && live <= cost.l2_row_bytes;
        if fits {
            let mut all: Vec<NodeId> = members.iter().copied().collect();
            all.sort_unstable();
            if graph.draft_of(&all, &roots, FusionKind::Custom).is_some() {
                return;
            }
        }
        // Drop what waits for another operand, or else what comes last.
        let first_user = graph.first_user(&members, &roots, &[]);
        let waits = |n: &NodeId| {
            let mut operands = graph.node(*n).operands.iter().filter(|o| !members.contains(o));
            operands.any(|&o| graph.node(o).role != Role::Scalar && graph.node(o).key.0 >= first_user.0)
        };
        let late = if fits { set.iter().copied().find(|n| waits(n)) } else { None };
        let Some(cut) = late.or_else(|| set.last().copied()) else { return };
        let mut gone: FxHashSet<NodeId> = [cut].into_iter().collect();
        let (cut_off, kept) = set.iter().partition(|n| {
            let goes = gone.contains(n) || graph.node(**n).operands.iter().any(|o| gone.contains(o));
            if goes {
                gone.insert(**n);
            }
            goes
        });
        rest.push(cut_off);
        let mut parts = connected(graph, kept);
        set = parts.pop().unwrap_or_default();
        rest.extend(parts);
    }
}

/// The connected components of a set, the largest last.
fn connected(graph: &Graph, set: Vec<NodeId>) -> Vec<Vec<NodeId>> {
    let inside: FxHashSet<NodeId> = set.iter().copied().collect();
    let mut seen: FxHashSet<NodeId> = FxHashSet::default();
    let mut parts: Vec<Vec<NodeId>> = Vec::new();
    for &n in &set {
        if !seen.insert(n) {
            continue;
        }
        let (mut part, mut at) = (vec![n], 0);
        while at < part.len() {
            let node = graph.node(part[at]);
            at += 1;
            for &x in node.operands.iter().chain(&node.users) {
                if inside.contains(&x) && seen.insert(x) {
                    part.push(x);
                }
            }
        }
        part.sort_unstable();
        parts.push(part);
    }
    parts.sort_by_key(Vec::len);
    parts
}

fn is_looked_at(graph: &Graph, members: &FxHashSet<NodeId>, n: NodeId) -> bool {
    let node = graph.node(n);
    // Results of a variadic reduction are the elements of its tuple.
    let several = node.role == Role::Reduce && node.users.iter().all(|u| members.contains(u));
    !several && (node.result || node.users.iter().any(|u| !members.contains(u)))
}

/// Whether a set does more than reduce: something per element depends on a reduction's result, or there are
/// several reductions.
fn is_chain(graph: &Graph, parts: &[Part], set: &[NodeId]) -> bool {
    let reductions = set.iter().filter(|&&n| graph.node(n).role == Role::Reduce).count();
    let inside: FxHashSet<NodeId> = set.iter().copied().collect();
    let back = set.iter().any(|&n| {
        parts[n as usize] == Part::Full
            && graph.node(n).operands.iter().any(|o| inside.contains(o) && parts[*o as usize] == Part::Row)
    });
    reductions > 0 && (back || reductions > 1)
}
