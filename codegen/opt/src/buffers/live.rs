//! Liveness of values.
//!
//! A value is live in *spans* of ticks: from the event that defines it to the last one that uses it. Two
//! things split it into several spans: state of a loop is dead between its last use in the body and the end
//! of the body, which redefines it; and what is used in branches of a conditional but not after it is live in
//! each branch up to its last use there.

use hlo::{Module, Opcode};
use smallvec::SmallVec;

use super::order::{Event, Order, control};
use super::values::{Origin, ValueId, Values, alias_of};
use crate::csr::Csr;

/// From the first tick to before the second.
pub(super) type Span = (u32, u32);

/// Disjoint spans, in order.
pub(super) type Spans = SmallVec<[Span; 2]>;

/// The tick at which an event reads.
pub(super) fn tick(position: u32) -> u32 {
    2 * position
}

/// The positions of the events that read a value.
type Uses<'a> = &'a [u32];

/// The values that an event defines, and those that it uses.
pub(super) struct Effects {
    pub(super) makes: Vec<ValueId>,
    pub(super) reads: Vec<ValueId>,
}

/// Whether nothing is executed for an instruction: it is an alias, or a value that exists already.
pub(super) fn is_name(module: &Module, values: &Values, id: hlo::InstrId) -> bool {
    let opcode = module.instr(id).opcode;
    matches!(opcode, Opcode::Parameter | Opcode::Constant | Opcode::Tuple | Opcode::GetTupleElement)
        || alias_of(module, id).is_some()
        || opcode == Opcode::AfterAll && values.leaves(id).len() == 0
}

/// The pairs (from, to) of values that an event copies, for events that move values to where others expect
/// them.
pub(super) fn transfers(module: &Module, values: &Values, event: Event) -> Vec<(ValueId, ValueId)> {
    let moved = |from: hlo::InstrId, to: hlo::InstrId| -> Vec<(ValueId, ValueId)> {
        // What resolves to the same value needs no copy.
        values
            .leaves(from)
            .zip(values.own_leaves(to))
            .filter(|&(f, t)| values.resolve(t) == t && f != t)
            .collect()
    };
    match event {
        Event::EnterWhile(id) => module.instr(id).operands().first().map_or_else(Vec::new, |&o| moved(o, id)),
        Event::Repeat(id) => match *control(module, id) {
            // State that swaps elements is moved, too: only a value that stays in its own location is not.
            [_, body] => moved(module.root(body), id),
            _ => Vec::new(),
        },
        Event::LeaveBranch(id, n) => {
            control(module, id).get(n as usize).map_or_else(Vec::new, |&c| moved(module.root(c), id))
        }
        Event::Do(_)
        | Event::Decide(_)
        | Event::EnterConditional(_)
        | Event::LeaveConditional(_)
        | Event::EnterCall(_)
        | Event::LeaveCall(_)
        | Event::End => Vec::new(),
    }
}

impl Effects {
    /// Of an event.
    pub(super) fn of(module: &Module, values: &Values, event: Event) -> Effects {
        let mut e = Effects { makes: Vec::new(), reads: Vec::new() };
        match event {
            Event::Do(id) => {
                if !is_name(module, values, id) {
                    e.reads.extend(values.operands(module, id).map(|(_, _, v)| v));
                    e.makes.extend(values.leaves(id));
                }
            }
            Event::EnterWhile(_) | Event::LeaveBranch(..) => {
                for (from, to) in transfers(module, values, event) {
                    e.reads.push(from);
                    e.makes.push(to);
                }
            }
            Event::Decide(id) => {
                if let Some(&condition) = control(module, id).first() {
                    e.reads.extend(values.leaves(module.root(condition)));
                }
                // When the loop ends here, its state is its result.
                e.reads.extend(values.leaves(id));
            }
            Event::Repeat(id) => {
                // Invariant state is used in the next iteration.
                e.reads.extend(handed_on(values, id));
                for (from, to) in transfers(module, values, event) {
                    e.reads.push(from);
                    e.makes.push(to);
                }
            }
            Event::EnterConditional(id) => {
                if let Some(&selector) = module.instr(id).operands().first() {
                    e.reads.extend(values.leaves(selector));
                }
            }
            Event::LeaveConditional(id) => {
                // What all branches hand on is part of the result, whether or not that is used.
                e.reads.extend(handed_on(values, id));
                e.makes.extend(values.leaves(id).filter(|&v| values.get(v).instr == id));
            }
            Event::End => e.reads.extend(values.leaves(module.root(module.entry()))),
            Event::EnterCall(_) | Event::LeaveCall(_) => {}
        }
        e
    }
}

/// Leaves of a loop or conditional that are values from before it, handed on unchanged.
fn handed_on(values: &Values, id: hlo::InstrId) -> impl Iterator<Item = ValueId> + '_ {
    values.leaves(id).zip(values.own_leaves(id)).filter(|(value, own)| value != own).map(|pair| pair.0)
}

/// The spans of all values.
pub(super) fn spans(module: &Module, order: &Order, values: &Values) -> Vec<Spans> {
    let n = values.all.len();
    let mut makes: Vec<(ValueId, u32)> = Vec::new();
    let mut reads: Vec<(ValueId, u32)> = Vec::new();
    for (position, &event) in order.events.iter().enumerate() {
        let e = Effects::of(module, values, event);
        makes.extend(e.makes.into_iter().map(|v| (v, position as u32)));
        reads.extend(e.reads.into_iter().map(|v| (v, position as u32)));
    }
    let (makes, reads) = (Csr::grouped(n, &makes), Csr::grouped(n, &reads));
    let mut spans = vec![Spans::new(); n];
    for (v, spans) in (0..).zip(&mut spans) {
        let (makes, mut reads) = (makes.of(v), reads.of(v));
        // Parameters and constants are live from the beginning.
        let given = matches!(values.get(v).origin, Origin::Parameter(_) | Origin::Constant(_));
        let given: &[u32] = if given { &[0] } else { &[] };
        let births: SmallVec<[u32; 2]> = given.iter().chain(makes).copied().collect();
        for (i, &birth) in births.iter().enumerate() {
            // An event uses the old value before it defines the new one.
            let until = births.get(i + 1).copied().unwrap_or(u32::MAX);
            let split = reads.partition_point(|&r| r <= until);
            let (now, later) = reads.split_at(split);
            reads = later;
            life(order, birth, now, spans);
        }
        normalize(spans);
    }
    spans
}

/// The spans of a value that is defined at `birth` and used at `uses`.
fn life(order: &Order, birth: u32, uses: Uses<'_>, spans: &mut Spans) {
    let mut pending: Vec<(u32, u32, Uses<'_>)> = vec![(birth, order.region_of[birth as usize], uses)];
    while let Some((from, region, uses)) = pending.pop() {
        // An unused value is live while it is defined.
        let Some(&last) = uses.last() else {
            spans.push((tick(from), tick(from) + 2));
            continue;
        };
        let mut inner = order.region_of[last as usize];
        if inner == region {
            spans.push((tick(from), (tick(last) + 1).max(tick(from) + 2)));
            continue;
        }
        // The branch of this region's own conditional that holds the last use.
        let depth = order.regions[region as usize].depth;
        while order.regions[inner as usize].depth > depth + 1 {
            inner = order.regions[inner as usize].parent;
        }
        let enter = order.regions[inner as usize].enter;
        spans.push((tick(from), (tick(enter) + 1).max(tick(from) + 2)));
        let mut rest = &uses[uses.partition_point(|&u| u <= enter)..];
        while let Some(&first) = rest.first() {
            let mut branch = order.region_of[first as usize];
            while order.regions[branch as usize].depth > depth + 1 {
                branch = order.regions[branch as usize].parent;
            }
            let end = rest.partition_point(|&u| within(order, u, branch, depth + 1));
            let (here, later) = rest.split_at(end);
            pending.push((order.regions[branch as usize].first, branch, here));
            rest = later;
        }
    }
}

/// Whether a position is in a branch of this depth; branches of a conditional are consecutive.
fn within(order: &Order, position: u32, branch: u32, depth: u32) -> bool {
    let mut region = order.region_of[position as usize];
    while order.regions[region as usize].depth > depth {
        region = order.regions[region as usize].parent;
    }
    region <= branch
}

/// Sorts and merges spans.
pub(super) fn normalize(spans: &mut Spans) {
    if spans.len() < 2 {
        return;
    }
    // Mostly two sorted runs, which are merged: a value of many branches grows by one of them at a time.
    spans.sort();
    let mut kept = 0;
    for i in 1..spans.len() {
        let (from, to) = spans[i];
        if from <= spans[kept].1 {
            spans[kept].1 = spans[kept].1.max(to);
        } else {
            kept += 1;
            spans[kept] = (from, to);
        }
    }
    spans.truncate(kept + 1);
}
