//! Which bounds a certification works out, where only those of some instructions are asked for.
//!
//! A replay injects the reference's values: bounds start afresh behind every injected instruction, and those
//! of one whose value has the reference's bits are never looked at. Needed are the bounds of the instructions
//! that differ, and what these follow from: operands back to those that are injected, results of called
//! computations, and what decides which computations run.
//!
//! **Invariant:** what is not needed counts as exact, and influences nothing that is.

use hlo::{ComputationId, InstrId, Module, Opcode};
use hlo_execution::allowances::Allowances;

use super::devices;

/// Instructions by number.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Their bounds are worked out.
    needed: Vec<bool>,
    /// The visitor is told of them.
    visited: Vec<bool>,
    /// They count as exact once they have run.
    injected: Vec<bool>,
}

impl Scope {
    /// What the bounds of the instructions `visited` follow from, and those of the module's result if
    /// `results`. `None`: bounds live on behind an injected value (products that are added unrounded, excess
    /// precision, what a collective only promises), so all are needed.
    pub fn new(
        module: &Module,
        visited: Vec<bool>,
        injected: Vec<bool>,
        results: bool,
        allowances: &Allowances,
    ) -> Option<Scope> {
        let promises = |id: InstrId| {
            let instr = module.instr(id);
            devices::synchronous(module, instr).is_some()
                || matches!(instr.opcode, Opcode::AsyncStart | Opcode::AsyncUpdate)
        };
        let computations = module.computations();
        if allowances.contraction
            || allowances.excess_precision
            || computations.iter().any(|&c| module.instructions(c).any(promises))
        {
            return None;
        }
        let mut callers: Vec<Vec<InstrId>> = vec![Vec::new(); module.computation_capacity()];
        for &c in computations {
            for id in module.instructions(c) {
                let called = module.instr(id).attrs.called_computations();
                called.iter().for_each(|called| callers[called.index()].push(id));
            }
        }
        let mut search = Search {
            module,
            injected: &injected,
            callers,
            needed: vec![false; module.instruction_capacity()],
            entered: vec![false; module.computation_capacity()],
            todo: Vec::new(),
        };
        for &c in computations {
            module.instructions(c).filter(|id| visited[id.index()]).for_each(|id| search.need(id));
        }
        if results {
            search.value(module.root(module.entry()));
        }
        let needed = search.all();
        Some(Scope { needed, visited, injected })
    }

    pub(super) fn needs(&self, id: InstrId) -> bool {
        self.needed[id.index()]
    }

    pub(super) fn visits(&self, id: InstrId) -> bool {
        self.visited[id.index()]
    }

    pub(super) fn injects(&self, id: InstrId) -> bool {
        self.injected[id.index()]
    }
}

struct Search<'a> {
    module: &'a Module,
    injected: &'a [bool],
    /// By computation, who calls it.
    callers: Vec<Vec<InstrId>>,
    needed: Vec<bool>,
    /// By computation, whether something in it is needed.
    entered: Vec<bool>,
    todo: Vec<InstrId>,
}

impl Search<'_> {
    fn need(&mut self, id: InstrId) {
        if !self.needed[id.index()] {
            self.needed[id.index()] = true;
            self.todo.push(id);
        }
    }

    /// The bounds of a value behind its instruction: none are needed of one that is injected.
    fn value(&mut self, id: InstrId) {
        if !self.injected[id.index()] {
            self.need(id);
        }
    }

    fn all(mut self) -> Vec<bool> {
        while let Some(id) = self.todo.pop() {
            let module = self.module;
            let instr = module.instr(id);
            instr.operands().iter().for_each(|&o| self.value(o));
            instr.attrs.called_computations().iter().for_each(|&c| self.value(module.root(c)));
            self.enter(instr.parent(), instr.opcode == Opcode::Parameter);
        }
        self.needed
    }

    /// Something in a computation is needed, perhaps a parameter: what its callers pass on, and what decides
    /// that they call it.
    fn enter(&mut self, computation: ComputationId, parameter: bool) {
        let mut entered = vec![(computation, parameter)];
        while let Some((computation, parameter)) = entered.pop() {
            let first = !std::mem::replace(&mut self.entered[computation.index()], true);
            if !first && !parameter {
                continue;
            }
            for caller in self.callers[computation.index()].clone() {
                let instr = self.module.instr(caller);
                if parameter {
                    instr.operands().iter().for_each(|&o| self.value(o));
                }
                if instr.opcode == Opcode::While {
                    let called = instr.attrs.called_computations();
                    called.iter().for_each(|&c| self.value(self.module.root(c)));
                } else if instr.opcode == Opcode::Conditional {
                    self.value(instr.operands()[0]);
                }
                entered.push((instr.parent(), false));
            }
        }
    }
}
