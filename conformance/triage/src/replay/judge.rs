//! From what differs to divergences.

use std::sync::Arc;

use hlo::{ArrayLiteral, InstrId, Module, Opcode};
use hlo_interp::{Devices, Value};
use rustc_hash::{FxHashMap, FxHashSet};

use super::store::{self, Frame, Key};
use super::watch::{Differs, Seen, is_promised};
use super::{Divergence, How, Location, Replay, Stats};
use crate::isolate::values::arrays;
use hlo_certify::bounds::{At, Bounds, Certified, Known, Local, Scope, Tree, Visitor};
use hlo_execution::verdict::{ArrayVerdict, Class, judge, same_bits};

/// A verdict over the arrays of a value: those that differ, by number; or that it has another shape.
type Arrays = Result<Vec<(usize, ArrayVerdict)>, String>;

/// Judges the arrays of a value. `bounds` has those of each.
fn judge_value(expected: &Value, actual: &Value, bounds: &[&Bounds], nan_bits: bool) -> Arrays {
    judge_arrays(&arrays(expected), &arrays(actual), bounds, nan_bits)
}

fn judge_arrays(
    expected: &[ArrayLiteral],
    actual: &[ArrayLiteral],
    bounds: &[&Bounds],
    nan_bits: bool,
) -> Arrays {
    if expected.len() != actual.len() {
        return Err(format!("it has {} arrays, not {}", actual.len(), expected.len()));
    }
    let mut arrays = Vec::new();
    for (i, (e, a)) in expected.iter().zip(actual).enumerate() {
        if !same_bits(e, a, nan_bits) {
            let unknown;
            let bounds = match bounds.get(i) {
                Some(&bounds) => bounds,
                None => {
                    unknown = Bounds::unknown(e.buffer.len());
                    &unknown
                }
            };
            arrays.push((i, judge(e, a, bounds, nan_bits)?));
        }
    }
    Ok(arrays)
}

/// What is found, as it is found.
pub(super) struct Findings<'a> {
    pub(super) replay: Replay,
    pub(super) source: &'a Module,
    /// By instruction of the source, whether the form has it.
    pub(super) wanted: &'a [bool],
}

impl Findings<'_> {
    /// Judges an execution by its operands; false: these do not decide.
    pub(super) fn decided(
        &mut self,
        local: &mut Local<'_>,
        key: Key,
        differs: &Differs,
        nan_bits: bool,
    ) -> bool {
        match local.judge(key.id, &differs.operands, &differs.expected, &differs.actual) {
            Known::Nothing => return false,
            Known::Explained(worst) => {
                let stats = self.replay.stats.entry(key.id).or_default();
                stats.explained += 1;
                stats.worst_ulp = stats.worst_ulp.zip(worst.ulp).map(|(a, b)| a.max(b));
                stats.worst_ratio = stats.worst_ratio.max(worst.ratio);
                self.replay.explained += 1;
            }
            Known::Bounds(bounds) => {
                let bounds: Vec<&Bounds> = bounds.iter().collect();
                let arrays = judge_value(&differs.expected, &differs.actual, &bounds, nan_bits);
                self.executed(key, differs.order, &differs.calls, differs.execution, arrays);
            }
        }
        true
    }

    /// The verdict over an execution whose bits differ.
    fn executed(&mut self, key: Key, order: u64, calls: &[(InstrId, u64)], execution: u64, arrays: Arrays) {
        let stats = self.replay.stats.entry(key.id).or_default();
        let (how, arrays) = match arrays {
            Ok(arrays) => (How::Value, arrays),
            Err(what) => (How::Shape(what), Vec::new()),
        };
        let class = match how {
            How::Shape(_) => Class::Wrong,
            How::Value | How::Operands | How::Calls | How::Result => {
                arrays.iter().map(|(_, v)| v.class()).max().unwrap_or(Class::Same)
            }
        };
        note(stats, class, &arrays);
        let location = match (self.source.instr(key.id).opcode, calls.split_last()) {
            // A parameter has what the caller passes.
            (Opcode::Parameter, Some((&(caller, iteration), outer))) => {
                let mut location = Location::new(self.source, caller, key.device, 0, outer);
                if location.opcode == Opcode::While {
                    location.iteration = Some(iteration);
                }
                return self.add(location, How::Operands, class, arrays, order);
            }
            (_, _) => Location::new(self.source, key.id, key.device, execution, calls),
        };
        self.add(location, how, class, arrays, order);
    }

    /// Compares which computations were called. What is left out after the run `ended` early says nothing.
    pub(super) fn calls(&mut self, seen: &Seen, frames: &[Frame], ended: bool) {
        let mut divergent: Vec<(u64, Frame)> = seen.extra.clone();
        // By caller and computation: when it was last called.
        let mut called = FxHashMap::default();
        for (frame, &order) in &seen.frames {
            let last = called.entry((frame.device, frame.caller, frame.computation)).or_insert(order);
            *last = order.max(*last);
        }
        if !ended {
            for frame in frames.iter().filter(|f| !seen.frames.contains_key(f)) {
                if let Some(&order) = called.get(&(frame.device, frame.caller, frame.computation)) {
                    divergent.push((order, *frame));
                }
            }
        }
        divergent.sort_by_key(|(order, f)| (*order, f.device, f.iteration));
        let mut known = FxHashSet::default();
        for (order, frame) in divergent {
            let Some((caller, path)) = frame.caller.filter(|c| known.insert((frame.device, *c))) else {
                continue;
            };
            // The calls to the caller: those of some run of its computation.
            let calls = self.calls_of(seen, frame.device, path);
            let mut location = Location::new(self.source, caller, frame.device, 0, &calls);
            if location.opcode == Opcode::While {
                location.iteration = Some(frame.iteration);
            }
            self.replay.stats.entry(caller).or_default().wrong += 1;
            self.add(location, How::Calls, Class::Wrong, Vec::new(), order);
        }
    }

    /// The calls that a path stands for.
    fn calls_of(&self, seen: &Seen, device: u32, mut path: u64) -> Vec<(InstrId, u64)> {
        let mut calls = Vec::new();
        let known: FxHashMap<u64, &Frame> = seen
            .frames
            .keys()
            .filter(|f| f.device == device)
            .filter_map(|f| f.caller.map(|(c, p)| (store::extend(p, (c, f.iteration)), f)))
            .collect();
        while let Some(frame) = known.get(&path)
            && let Some((caller, outer)) = frame.caller
        {
            calls.push((caller, frame.iteration));
            path = outer;
        }
        calls.reverse();
        calls
    }

    /// Compares the results of the programs. `certified` has the bounds of each result of a device.
    pub(super) fn results(
        &mut self,
        expected: &[Vec<ArrayLiteral>],
        actual: &[Vec<ArrayLiteral>],
        certified: Option<&Certified>,
        nan_bits: bool,
    ) {
        let root = self.source.root(self.source.entry());
        for (device, (e, a)) in (0u32..).zip(expected.iter().zip(actual)) {
            let bounds: Vec<&Bounds> = certified
                .and_then(|c| c.results.get(device as usize))
                .map_or_else(Vec::new, |of_device| of_device.iter().map(|(_, b)| b).collect());
            let (how, class, arrays) = match judge_arrays(e, a, &bounds, nan_bits) {
                Ok(arrays) if arrays.is_empty() => continue,
                Ok(arrays) => {
                    let class = arrays.iter().map(|(_, v)| v.class()).max().unwrap_or(Class::Same);
                    (How::Result, class, arrays)
                }
                Err(what) => (How::Shape(what), Class::Wrong, Vec::new()),
            };
            note(self.replay.stats.entry(root).or_default(), class, &arrays);
            let location = Location::new(self.source, root, device, 0, &[]);
            self.add(location, how, class, arrays, u64::MAX);
        }
    }

    fn add(
        &mut self,
        location: Location,
        how: How,
        class: Class,
        arrays: Vec<(usize, ArrayVerdict)>,
        order: u64,
    ) {
        match class {
            Class::Same => return,
            Class::Explained => {
                self.replay.explained += 1;
                return;
            }
            Class::Undecided => self.replay.undecided += 1,
            Class::Wrong => self.replay.wrong += 1,
        }
        let covers = self.lost_before(location.id);
        self.replay.divergences.push(Divergence { location, how, class, arrays, covers, order });
        // Wrong ones are kept before undecided ones, so that the first of each stays.
        if self.replay.divergences.len() >= 2 * Replay::MAX_KEPT_DIVERGENCES {
            self.cut();
        }
    }

    /// Puts the divergences in order and drops those that are too many.
    pub(super) fn cut(&mut self) {
        let divergences = &mut self.replay.divergences;
        let order = |d: &Divergence| (d.order, d.location.device, d.location.id);
        divergences.sort_by_key(|d| (d.class != Class::Wrong, order(d)));
        divergences.truncate(Replay::MAX_KEPT_DIVERGENCES);
        divergences.sort_by_key(order);
    }

    /// The instructions that the form does not have between an instruction and those that were injected, in
    /// order of the text.
    fn lost_before(&self, id: InstrId) -> Vec<InstrId> {
        let mut lost = FxHashSet::default();
        let mut todo = vec![id];
        while let Some(id) = todo.pop() {
            for &operand in self.source.instr(id).operands() {
                if !self.wanted[operand.index()] && lost.insert(operand) {
                    todo.push(operand);
                }
            }
        }
        let mut lost: Vec<InstrId> = lost.into_iter().collect();
        lost.sort_unstable();
        lost
    }
}

/// Counts an execution.
fn note(stats: &mut Stats, class: Class, arrays: &[(usize, ArrayVerdict)]) {
    match class {
        Class::Same => {}
        Class::Explained => stats.explained += 1,
        Class::Undecided => stats.undecided += 1,
        Class::Wrong => stats.wrong += 1,
    }
    for worst in arrays.iter().flat_map(|(_, v)| &v.worst) {
        stats.worst_ulp = stats.worst_ulp.zip(worst.ulp).map(|(a, b)| a.max(b));
        let ratio = match (worst.error, worst.bound) {
            (Some(e), Some(b)) if b > 0.0 => e / b,
            (_, Some(_)) => f64::INFINITY,
            (_, None) => 0.0,
        };
        stats.worst_ratio = stats.worst_ratio.max(ratio);
    }
}

/// Judges executions while bounds are worked out.
pub(super) struct Judge<'a, 'b> {
    pub(super) findings: &'a mut Findings<'b>,
    /// What differs and has not been judged.
    pub(super) differing: FxHashMap<Key, Differs>,
    /// Instructions whose values were injected.
    pub(super) injected: Vec<bool>,
    /// What bounds are needed, if not all.
    pub(super) scope: Option<Arc<Scope>>,
    pub(super) devices: Devices,
    pub(super) nan_bits: bool,
}

impl Visitor for Judge<'_, '_> {
    fn scope(&self) -> Option<Arc<Scope>> {
        self.scope.clone()
    }

    fn value(&mut self, at: &At, value: &Value, bounds: &Tree) -> bool {
        let device = at.device.replica * self.devices.partitions() + at.device.partition;
        let calls: Vec<(InstrId, u64)> = at.calls.iter().map(|c| (c.caller, c.iteration)).collect();
        let path = calls.iter().copied().fold(0, store::extend);
        let key = Key { device, id: at.instr, path };
        if let Some(differs) = self.differing.remove(&key) {
            let bounds = bounds.arrays();
            let arrays = judge_value(value, &differs.actual, &bounds, self.nan_bits);
            self.findings.executed(key, differs.order, &calls, at.execution, arrays);
        }
        self.injected[at.instr.index()] && !is_promised(value)
    }
}

/// What differs where nothing is known of any bound.
pub(super) fn without_bounds(findings: &mut Findings<'_>, key: Key, differs: &Differs, nan_bits: bool) {
    let unknown: Vec<Bounds> = differs.expected.arrays().iter().map(|t| Bounds::unknown(t.len())).collect();
    let bounds: Vec<&Bounds> = unknown.iter().collect();
    let arrays = judge_value(&differs.expected, &differs.actual, &bounds, nan_bits);
    findings.executed(key, differs.order, &differs.calls, differs.execution, arrays);
}
