//! What a run took: time of each instruction, and live bytes over time. Of the interpreter, which is watched
//! while it runs; of a compiled program, whose runtime counts the times of its steps.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hlo::{InstrId, Module, Opcode};
use hlo_codegen::runtime::executable::StepInfo;
use hlo_interp::Value;
use hlo_interp::observe::{Flow, Observer, Site};
use rustc_hash::FxHashMap;

use super::memory::Point;

/// Points that are kept while a program runs; of more, each second one is merged into its neighbour.
const MAX_POINTS: usize = 1 << 14;

/// Of one instruction in all its executions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spent {
    /// Executions.
    pub executions: u64,
    /// Time, with what it called.
    pub time: Duration,
}

/// The profile of a run.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// By instruction; of what is applied to elements the time is its caller's.
    pub spent: FxHashMap<InstrId, Spent>,
    /// Live bytes of arrays in the order of the run.
    pub memory: Vec<Point>,
    /// The time of the entry computation's instructions.
    pub total: Duration,
}

impl Profile {
    /// Of a compiled program, by instructions of the lowered module: the time of each step, loops and calls
    /// included, and its executions. Memory is assigned at compile time, and not measured.
    pub fn of_steps(module: &Module, steps: &[StepInfo], times: &[(Duration, u64)]) -> Profile {
        let instructions = module.computations().iter().flat_map(|&c| module.instructions(c));
        let by_name: FxHashMap<&str, InstrId> =
            instructions.map(|id| (&*module.instr(id).name, id)).collect();
        let mut profile = Profile::default();
        for (step, &(time, executions)) in steps.iter().zip(times) {
            if let Some(&id) = by_name.get(&*step.name) {
                if module.instr(id).parent() == module.entry() {
                    profile.total += time;
                }
                let spent = profile.spent.entry(id).or_default();
                spent.time += time;
                spent.executions = spent.executions.max(executions);
            }
        }
        profile
    }
}

/// Takes the times of one device's run.
#[derive(Debug, Default)]
pub struct Recorder {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    running: Vec<Instant>,
    profile: Profile,
    /// The number of events of one point.
    stride: u64,
    events: u64,
}

impl Default for State {
    fn default() -> Self {
        Self { running: Vec::new(), profile: Profile::default(), stride: 1, events: 0 }
    }
}

impl Recorder {
    /// The events.
    pub fn profile(self) -> Profile {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).profile
    }
}

impl State {
    fn memory(&mut self, point: Point) {
        let points = &mut self.profile.memory;
        if self.events.is_multiple_of(self.stride) {
            points.push(point);
        } else if let Some(last) = points.last_mut()
            && last.bytes < point.bytes
        {
            *last = point;
        }
        self.events += 1;
        if points.len() >= MAX_POINTS {
            *points = super::memory::thinned(points, MAX_POINTS / 2);
            self.stride *= 2;
        }
    }
}

impl Observer for Recorder {
    fn only_looks_on(&self) -> bool {
        true
    }

    fn enter(&self, site: &Site<'_>, _operands: &[Value]) {
        if site.nesting == 0 {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).running.push(Instant::now());
        }
    }

    fn leave(&self, site: &Site<'_>, _result: &Value) -> Flow {
        if site.nesting > 0 {
            return Flow::Continue;
        }
        let now = Instant::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.memory(Point { after: site.id, bytes: site.live_bytes });
        // A parameter is bound, not executed: nothing was entered.
        if site.instr().opcode != Opcode::Parameter
            && let Some(since) = state.running.pop()
        {
            let time = now.duration_since(since);
            if state.running.is_empty() {
                state.profile.total += time;
            }
            let spent = state.profile.spent.entry(site.id).or_default();
            spent.executions += 1;
            spent.time += time;
        }
        Flow::Continue
    }
}
