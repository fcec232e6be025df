//! The memory that bounds occupy, on the account of the run that they belong to.
//!
//! **Invariants:** what is kept (a leaf's radii) counts beside the values of the run until it is dropped, so
//! values and bounds together stay within the limit; what a rule needs while it works is asked for before
//! ([`Account::ask`]). Whoever is refused fails the whole certification: bounds that are missing for want of
//! memory would pass for bounds that nobody knows.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use hlo::diag::codes;
use hlo::opcode::Numeric;
use hlo::{AttrKey, ComputationId, ElementType, InstrId, Instruction, Module, Opcode};
use hlo_execution::allowances::Allowances;
use hlo_interp::{Beside, ErrorKind, Held, Options, RunError};

use hlo_system::memory_budget::MemoryBudget;
use rustc_hash::{FxHashMap, FxHashSet};

use super::rules::{self, Case, Kind, kind};

/// The account of one certification.
#[derive(Debug)]
pub(super) struct Account {
    budget: MemoryBudget,
    devices: u64,
    /// Bytes of bounds.
    beside: Beside,
    /// Bytes of values, where the run was seen last.
    live: AtomicU64,
    failure: Mutex<Option<RunError>>,
    /// Elements whose bounds may still be worked out.
    effort: AtomicU64,
    exceeded: AtomicBool,
    /// How many numbers were given ([`Account::number`]).
    numbers: AtomicU32,
}

/// The least memory of any rule, in elements.
const RULE_ELEMENTS: u64 = 64;

impl Account {
    /// Of a run on `devices` devices, each with this memory.
    pub(super) fn new(budget: MemoryBudget, devices: u32) -> Account {
        let (beside, live) = (Beside::default(), AtomicU64::new(0));
        Account {
            budget,
            devices: u64::from(devices.max(1)),
            beside,
            live,
            failure: Mutex::default(),
            effort: AtomicU64::new(u64::MAX),
            exceeded: AtomicBool::new(false),
            numbers: AtomicU32::new(0),
        }
    }

    /// The same, that ends after this many elements whose bounds were found.
    pub(super) fn limited(mut self, max_elements: u64) -> Account {
        self.effort = AtomicU64::new(max_elements);
        self
    }

    /// Counts what a rule works on. False: that is more than was granted, and the certification has ended.
    pub(super) fn spend(&self, case: &Case<'_>) -> bool {
        let elements: usize =
            case.results.iter().map(|t| t.len()).chain(case.args.iter().map(|a| a.tensor.len())).sum();
        let wanted = RULE_ELEMENTS.max(elements as u64);
        let spent =
            self.effort.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(wanted));
        if spent.is_err() {
            self.exceeded.store(true, Ordering::Relaxed);
        }
        spent.is_ok()
    }

    /// A number that nothing else in the certification has.
    pub(super) fn number(&self) -> u32 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether it ended because it took more effort than was granted.
    pub(super) fn exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Relaxed)
    }

    /// Whether nothing more is to be worked out.
    pub(super) fn has_ended(&self) -> bool {
        self.exceeded() || self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// How the run that is watched is held to the account, and runs that a rule makes beside it.
    pub(super) fn bound(&self, options: Options) -> Options {
        Options {
            memory_limit_bytes: self.budget.bytes.saturating_sub(self.live.load(Ordering::Relaxed)),
            memory_limit_of: self.budget.of,
            beside: self.beside.clone(),
            ..options
        }
    }

    /// Says how many bytes of values are alive.
    pub(super) fn saw(&self, live: u64) {
        self.live.store(live, Ordering::Relaxed);
    }

    /// Counts bytes that are kept until what this gives is dropped.
    pub(super) fn hold(&self, bytes: u64) -> Held {
        self.beside.hold(bytes.div_ceil(self.devices))
    }

    /// Whether a rule's memory is within the budget; if not, the certification has failed.
    pub(super) fn ask(&self, case: &Case<'_>) -> bool {
        let (live, kept) = (self.live.load(Ordering::Relaxed), self.beside.bytes());
        let wanted = need(case);
        if live.saturating_add(kept).saturating_add(wanted) <= self.budget.bytes {
            return true;
        }
        let (opcode, limit) = (case.opcode(), self.budget.describe());
        let message = format!(
            "the bounds of the check want {wanted} bytes at a {opcode}; {live} of values and {kept} of bounds are alive, and the limit is {limit}"
        );
        self.fail(exhausted(case.instr, message));
        false
    }

    /// The certification fails, if this is for want of memory.
    pub(super) fn fail(&self, error: RunError) {
        if error.kind == ErrorKind::OutOfMemory {
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }

    /// Why the certification has failed.
    pub(super) fn failure(&self) -> Option<RunError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// About the least effort that the bounds of a program take: that of what its entry computation and what this
/// calls execute once, where something is not exact whatever its operands are, or works on what is not.
pub(super) fn least_effort(module: &Module, allowances: &Allowances) -> u64 {
    let mut effort = Effort { module, allowances, known: FxHashMap::default() };
    effort.of(module.entry(), 0)
}

/// Computations called within each other that are looked into: the rest of a program counts as exact.
const MAX_LOOKED_INTO: usize = 64;

struct Effort<'a> {
    module: &'a Module,
    allowances: &'a Allowances,
    /// Of computations called.
    known: FxHashMap<ComputationId, u64>,
}

impl Effort<'_> {
    fn elements(&self, id: InstrId) -> u64 {
        let leaves = self.module.instr(id).shape.leaves();
        let fixed =
            leaves.iter().filter_map(|s| s.as_array().filter(|a| !a.is_dynamic())?.checked_elements());
        fixed.map(|n| n as u64).sum::<u64>()
    }

    /// Whether an instruction of floats is not exact, whatever its operands are.
    fn is_inexact(&self, id: InstrId) -> bool {
        let instr = self.module.instr(id);
        let Some(ty) = instr.shape.element_type().filter(|ty| ty.is_float()) else { return false };
        match kind(instr.opcode) {
            Kind::Elementwise | Kind::Sum => {
                matches!(self.allowances.numeric(instr.opcode, ty), Numeric::Ulp(1..) | Numeric::Sum)
            }
            Kind::Region => {
                let region = instr.attrs.computation(AttrKey::ToApply);
                region.and_then(|c| rules::monoid(self.module, c)) == Some(Opcode::Add)
            }
            _ => false,
        }
    }

    fn of(&mut self, computation: ComputationId, depth: usize) -> u64 {
        if let Some(&known) = self.known.get(&computation) {
            return known;
        }
        let module = self.module;
        let order: Vec<InstrId> = module.instructions(computation).collect();
        let mut live = FxHashSet::from_iter([module.root(computation)]);
        for &id in order.iter().rev() {
            let instr = module.instr(id);
            if live.contains(&id) || instr.opcode.flags().side_effect {
                live.extend(instr.operands());
            }
        }
        let mut effort = 0u64;
        let mut inexact: FxHashSet<InstrId> = FxHashSet::default();
        for &id in order.iter().filter(|id| live.contains(id)) {
            let instr = module.instr(id);
            if matches!(instr.opcode, Opcode::Call | Opcode::Fusion) && depth < MAX_LOOKED_INTO {
                let called = instr.attrs.called_computations();
                let within = called.iter().map(|&c| self.of(c, depth + 1)).fold(0, u64::saturating_add);
                effort = effort.saturating_add(within);
                if within > 0 {
                    inexact.insert(id);
                }
                continue;
            }
            let float = instr.shape.element_type().is_some_and(ElementType::is_float);
            let handed_on = match kind(instr.opcode) {
                Kind::Elementwise | Kind::Movement(_) | Kind::Sum => {
                    float && instr.operands().iter().any(|o| inexact.contains(o))
                }
                _ => instr.opcode == Opcode::GetTupleElement && inexact.contains(&instr.operands()[0]),
            };
            if !handed_on && !self.is_inexact(id) {
                continue;
            }
            inexact.insert(id);
            if instr.opcode != Opcode::GetTupleElement {
                let operands = instr.operands().iter().map(|&o| self.elements(o)).sum::<u64>();
                effort = effort.saturating_add(self.elements(id).saturating_add(operands).max(RULE_ELEMENTS));
            }
        }
        self.known.insert(computation, effort);
        effort
    }
}

fn exhausted(instr: &Instruction, message: String) -> RunError {
    RunError::at(instr, ErrorKind::OutOfMemory, codes::OUT_OF_MEMORY, message)
}

/// An upper bound of a rule's memory while it works, its result included, in bytes: proportional to the
/// elements of operands and results.
fn need(case: &Case<'_>) -> u64 {
    let (operand, result) = match kind(case.opcode()) {
        // In blocks: no more than two radii an element.
        Kind::Elementwise => (0, 16),
        // Numbers and radii of elements, before and behind the movement.
        Kind::Movement(_) | Kind::Bits => (12, 24),
        // A number, its radius and its magnitude, and the instruction on two of them.
        Kind::Sum | Kind::Region | Kind::CollectiveFold => (48, 64),
        // Factors of matrices, and what bounds them by way of inverses.
        Kind::CustomCall => (160, 160),
        _ => (96, 96),
    };
    let operands: usize = case.args.iter().map(|a| a.tensor.len()).sum();
    let results: usize = case.results.iter().map(|t| t.len()).sum();
    operand * operands as u64 + result * results as u64
}
