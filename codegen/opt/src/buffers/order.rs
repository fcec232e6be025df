//! Linearization: a program's execution as one line of events, where the computations that control flow calls
//! stand between the events of their caller.
//!
//! The index of an event is its *position*; it reads at tick `2 * position`, and its results are live from
//! that same tick, so that nothing is written over what the event reads, except by agreement
//! ([`super::in_place`]). A loop is in the line once: first its condition, then its body. The branches of a
//! conditional are in the line one after the other, but one of them runs: each is a *region* of its own, and
//! liveness in one says nothing about the others.

use hlo::attrs::AttrKey;
use hlo::{ComputationId, InstrId, InstructionIter, Module, Opcode};
use hlo_library_base::Unsupported;

use super::When;

/// An event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// An instruction is executed (or it is an alias or parameter, and nothing happens).
    Do(InstrId),
    /// A `while` takes its operand as state.
    EnterWhile(InstrId),
    /// The condition of a `while` is known.
    Decide(InstrId),
    /// The body of a `while` computed the next state.
    Repeat(InstrId),
    /// A `conditional` reads its selector.
    EnterConditional(InstrId),
    /// A branch computed its result.
    LeaveBranch(InstrId, u32),
    /// A `conditional` is done.
    LeaveConditional(InstrId),
    /// A `call` begins.
    EnterCall(InstrId),
    /// A `call` is done.
    LeaveCall(InstrId),
    /// The program is done.
    End,
}

impl Event {
    /// When the copies of an event are made, if it may have any.
    pub(super) fn copies(self) -> Option<When> {
        match self {
            Event::Do(id) | Event::EnterWhile(id) => Some(When::Before(id)),
            Event::Repeat(id) => Some(When::AfterBody(id)),
            Event::LeaveBranch(id, n) => Some(When::AfterBranch(id, n)),
            Event::End => Some(When::AtEnd),
            Event::Decide(_)
            | Event::EnterConditional(_)
            | Event::LeaveConditional(_)
            | Event::EnterCall(_)
            | Event::LeaveCall(_) => None,
        }
    }
}

/// The whole program, or a branch of a conditional.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    /// The enclosing region; itself for the whole program.
    pub(super) parent: u32,
    /// The nesting depth.
    pub(super) depth: u32,
    /// The position at which its conditional begins.
    pub(super) enter: u32,
    /// Its first position.
    pub(super) first: u32,
}

/// All events of a program.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) events: Vec<Event>,
    /// The region of each position.
    pub(super) region_of: Vec<u32>,
    /// The loop depth of each position.
    pub(super) loops: Vec<u32>,
    pub(super) regions: Vec<Region>,
}

/// What a computation is called for.
#[derive(Clone, Copy)]
enum Caller {
    Nobody,
    Condition(InstrId),
    Body(InstrId),
    Branch(InstrId, u32),
    Call(InstrId),
}

/// A computation that is being linearized.
struct Frame<'m> {
    rest: InstructionIter<'m>,
    caller: Caller,
}

/// The computations that an instruction calls as control flow, in their order in the line.
pub fn control(module: &Module, id: InstrId) -> Vec<ComputationId> {
    let instr = module.instr(id);
    let one = |key| instr.attrs.computation(key);
    match instr.opcode {
        Opcode::While => one(AttrKey::Condition).into_iter().chain(one(AttrKey::Body)).collect(),
        Opcode::Call => one(AttrKey::ToApply).into_iter().collect(),
        Opcode::Conditional => match instr.attrs.computations(AttrKey::BranchComputations) {
            Some(branches) => branches.to_vec(),
            None => {
                [AttrKey::TrueComputation, AttrKey::FalseComputation].into_iter().filter_map(one).collect()
            }
        },
        _ => Vec::new(),
    }
}

struct Builder<'m> {
    module: &'m Module,
    order: Order,
    frames: Vec<Frame<'m>>,
    seen: Vec<bool>,
    region: u32,
    loops: u32,
}

impl Order {
    /// The events of the entry computation. `whole` says which loops are executed as one instruction. Errors:
    /// a computation with two callers.
    pub(super) fn new(module: &Module, whole: &dyn Fn(InstrId) -> bool) -> Result<Order, Unsupported> {
        let root = Region { parent: 0, depth: 0, enter: 0, first: 0 };
        let order =
            Order { events: Vec::new(), region_of: Vec::new(), loops: Vec::new(), regions: vec![root] };
        let seen = vec![false; module.computation_capacity()];
        let mut b = Builder { module, order, frames: Vec::new(), seen, region: 0, loops: 0 };
        b.enter(module.entry(), Caller::Nobody);
        while let Some(frame) = b.frames.last_mut() {
            match frame.rest.next() {
                Some(id) if !whole(id) => b.instruction(id)?,
                Some(id) => b.event(Event::Do(id)),
                None => b.leave()?,
            }
        }
        Ok(b.order)
    }
}

impl<'m> Builder<'m> {
    fn event(&mut self, event: Event) {
        self.order.events.push(event);
        self.order.region_of.push(self.region);
        self.order.loops.push(self.loops);
    }

    fn enter(&mut self, computation: ComputationId, caller: Caller) {
        self.seen[computation.index()] = true;
        self.frames.push(Frame { rest: self.module.instructions(computation), caller });
    }

    fn call(
        &mut self,
        id: InstrId,
        computation: Option<&ComputationId>,
        caller: Caller,
    ) -> Result<(), Unsupported> {
        let Some(&computation) = computation else {
            return Err(Unsupported::new(self.module, id, "it calls nothing"));
        };
        if self.seen[computation.index()] {
            let name = &self.module.computation(computation).name;
            let reason = format!("`{name}` is called from elsewhere too (see the pass flatten-call-graph)");
            return Err(Unsupported::new(self.module, id, reason));
        }
        self.enter(computation, caller);
        Ok(())
    }

    fn branch(&mut self, id: InstrId, n: u32, enter: u32, parent: u32) -> Result<(), Unsupported> {
        let region = Region {
            parent,
            depth: self.order.regions[parent as usize].depth + 1,
            enter,
            first: self.order.events.len() as u32,
        };
        self.region = self.order.regions.len() as u32;
        self.order.regions.push(region);
        let branches = control(self.module, id);
        self.call(id, branches.get(n as usize), Caller::Branch(id, n))
    }

    fn instruction(&mut self, id: InstrId) -> Result<(), Unsupported> {
        match self.module.instr(id).opcode {
            Opcode::While => {
                self.event(Event::EnterWhile(id));
                self.loops += 1;
                self.call(id, control(self.module, id).first(), Caller::Condition(id))
            }
            Opcode::Conditional => {
                let enter = self.order.events.len() as u32;
                self.event(Event::EnterConditional(id));
                self.branch(id, 0, enter, self.region)
            }
            Opcode::Call => {
                self.event(Event::EnterCall(id));
                self.call(id, control(self.module, id).first(), Caller::Call(id))
            }
            _ => {
                self.event(Event::Do(id));
                Ok(())
            }
        }
    }

    fn leave(&mut self) -> Result<(), Unsupported> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        match frame.caller {
            Caller::Nobody => self.event(Event::End),
            Caller::Condition(id) => {
                self.event(Event::Decide(id));
                return self.call(id, control(self.module, id).get(1), Caller::Body(id));
            }
            Caller::Body(id) => {
                self.event(Event::Repeat(id));
                self.loops -= 1;
            }
            Caller::Branch(id, n) => {
                self.event(Event::LeaveBranch(id, n));
                let Region { parent, enter, .. } = self.order.regions[self.region as usize];
                if (n as usize) + 1 < control(self.module, id).len() {
                    return self.branch(id, n + 1, enter, parent);
                }
                self.region = parent;
                self.event(Event::LeaveConditional(id));
            }
            Caller::Call(id) => self.event(Event::LeaveCall(id)),
        }
        Ok(())
    }
}
