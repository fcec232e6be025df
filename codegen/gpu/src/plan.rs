//! The launch plan: the steps of a program, in order, with control flow.

use std::cell::Cell;

use hlo::attrs::AttrKey;
use hlo::{ComputationId, ElementType, InstrId, Module};
use hlo_opt::buffers::{Assigned, Copy, Slice, When, control_computations};
use hlo_opt::passes::trip_count::known_trip_count;
use rustc_hash::FxHashMap;

use crate::kernel::{self, Kernel, Stage};
use crate::lower::{Lowered, Lowering};
use crate::program::{Action, Argument, Launch, Plan, Step};

/// Writes the steps of the entry. `kernels` are those of [`Lowered::kernels`], by instruction.
pub fn write(
    module: &Module,
    lowered: &Lowered,
    assigned: &Assigned,
    kernels: &FxHashMap<InstrId, Kernel>,
) -> Plan {
    let writer = Writer { module, lowered, assigned, kernels, plans: Cell::new(0) };
    let mut plan = writer.computation(module.entry());
    plan.steps.extend(writer.copies(When::AtEnd, "end"));
    plan
}

struct Writer<'a> {
    module: &'a Module,
    lowered: &'a Lowered,
    assigned: &'a Assigned,
    kernels: &'a FxHashMap<InstrId, Kernel>,
    /// The number of plans so far.
    plans: Cell<u32>,
}

/// A copy, unless both slices are the same.
fn copy(name: &str, from: Slice, to: Slice) -> Option<Step> {
    let same = from.allocation == to.allocation && from.offset == to.offset;
    (!same && to.bytes > 0).then(|| Step { name: name.to_owned(), action: Action::Copy { from, to } })
}

impl Writer<'_> {
    fn copies(&self, when: When, name: &str) -> Vec<Step> {
        self.assigned.copies(when).iter().filter_map(|&Copy { from, to }| copy(name, from, to)).collect()
    }

    fn computation(&self, computation: ComputationId) -> Plan {
        let ordinal = self.plans.get();
        self.plans.set(ordinal + 1);
        let mut steps = Vec::new();
        for id in self.module.instructions(computation) {
            if !self.assigned.is_name(self.module, id) {
                self.instruction(id, &mut steps);
            }
        }
        Plan { ordinal, steps }
    }

    /// Appends a computation's steps, and the copies that follow it.
    fn part(&self, computation: Option<ComputationId>, after: Option<When>) -> Plan {
        let mut plan = computation.map(|c| self.computation(c)).unwrap_or_default();
        if let Some(after) = after {
            plan.steps.extend(self.copies(after, "copy of state"));
        }
        plan
    }

    fn instruction(&self, id: InstrId, steps: &mut Vec<Step>) {
        let instr = self.module.instr(id);
        let name = instr.name.to_string();
        steps.extend(self.copies(When::Before(id), &name));
        let computation = |key| instr.attrs.computation(key);
        let action = match self.lowered.decisions.get(&id) {
            None | Some(Lowering::Nothing) => return,
            Some(Lowering::Kernel(_)) => {
                self.kernel(id, &name, steps);
                return;
            }
            Some(Lowering::Copy) => {
                let from = self.assigned.slice_of(instr.operands()[0], 0);
                steps.extend(copy(&name, from, self.assigned.slice_of(id, 0)));
                return;
            }
            Some(Lowering::While) => {
                let condition = self.part(computation(AttrKey::Condition), None);
                let root = computation(AttrKey::Condition).map(|c| self.module.root(c));
                let predicate = root.map(|root| self.assigned.slice_of(root, 0)).unwrap_or_default();
                let body = self.part(computation(AttrKey::Body), Some(When::AfterBody(id)));
                let iterations = known_trip_count(self.module, id);
                Action::While { condition, predicate, body, iterations }
            }
            Some(Lowering::Conditional) => {
                let branches = control_computations(self.module, id).into_iter().zip(0..);
                let branches =
                    branches.map(|(c, n)| self.part(Some(c), Some(When::AfterBranch(id, n)))).collect();
                let selector = instr.operands()[0];
                let is_predicate =
                    self.module.instr(selector).shape.element_type() == Some(ElementType::Pred);
                Action::Conditional { selector: self.assigned.slice_of(selector, 0), is_predicate, branches }
            }
            Some(Lowering::Call) => {
                let callee = computation(AttrKey::ToApply).map(|c| self.computation(c).steps);
                steps.extend(callee.into_iter().flatten());
                return;
            }
        };
        steps.push(Step { name, action });
    }

    fn kernel(&self, id: InstrId, name: &str, steps: &mut Vec<Step>) {
        let Some(kernel) = self.kernels.get(&id) else { return };
        let mut arrays = self.assigned.arguments(self.module, id);
        if kernel.scratch_bytes > 0 {
            arrays.extend(self.assigned.scratch_of(id));
        }
        let slice = |n: u32| arrays.get(n as usize).copied().unwrap_or_default();
        for stage in &kernel.stages {
            let action = match stage {
                Stage::Copy { from, to } => {
                    steps.extend(copy(name, slice(*from), slice(*to)));
                    continue;
                }
                Stage::Fill { array, byte } => Action::Fill { to: slice(*array), byte: *byte },
                Stage::Launch(launch) => {
                    let argument = |a: &kernel::Argument| match *a {
                        kernel::Argument::Array(n) => Argument::Slice(slice(n)),
                        kernel::Argument::Word(word) => Argument::Word(word),
                    };
                    Action::Launch(Launch {
                        symbol: launch.symbol.clone(),
                        grid: launch.grid,
                        block: launch.block,
                        shared_bytes: launch.shared_bytes,
                        arguments: launch.arguments.iter().map(argument).collect(),
                    })
                }
            };
            steps.push(Step { name: name.to_owned(), action });
        }
    }
}
