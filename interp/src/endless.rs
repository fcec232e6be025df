//! Infinite loops, recognized while they run (cycle detection).
//!
//! A `while` without effects is endless if its condition, once true, reads only loop invariants, or if its
//! state repeats an earlier one bit for bit: from equal states come equal iterations. The state is compared
//! within a window after each power of two of iterations (R. P. Brent, An improved Monte Carlo factorization
//! algorithm, BIT 20, 1980), so that a cycle of at most [`LONGEST_CYCLE`] iterations is found, and a loop
//! that terminates pays for few comparisons.
//!
//! **Invariant:** a loop that would terminate is never called endless; one with effects (random numbers,
//! feeds, collectives, calls out) is not judged at all, because its environment may change.

use hlo::diag::codes;
use hlo::{AttrKey, ComputationId, InstrId, Instruction, Module, Opcode};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{ErrorKind, RunError};
use crate::value::Value;

/// The longest cycle of states that is recognized, in iterations.
pub(crate) const LONGEST_CYCLE: u64 = 64;
/// Iterations before the first check: most loops are shorter, or end soon after.
const FIRST_LOOK: u64 = 16;

/// Whether the condition is checked after that many iterations.
pub(crate) fn looks_at_condition(iterations: u64) -> bool {
    iterations == FIRST_LOOK
}

/// Whether the state after that many iterations is kept, to be compared with later ones.
pub(crate) fn is_anchor(iterations: u64) -> bool {
    iterations >= FIRST_LOOK && iterations.is_power_of_two()
}

/// Whether the state after that many iterations is compared with the one kept.
pub(crate) fn is_compared(iterations: u64) -> bool {
    iterations > FIRST_LOOK && {
        let anchor = 1 << iterations.ilog2();
        iterations > anchor && iterations - anchor <= LONGEST_CYCLE
    }
}

/// The error of a loop whose state repeats, or (`None`) whose condition never changes.
pub(crate) fn error(instr: &Instruction, iterations: u64, cycle: Option<u64>) -> RunError {
    let why = match cycle {
        Some(1) => "an iteration leaves its state as it was".to_owned(),
        Some(n) => format!("its state repeats every {n} iterations"),
        None => "its condition is true and reads nothing that an iteration changes".to_owned(),
    };
    let message = format!("{} never ends: {why} (found after {iterations} iterations)", instr.name);
    RunError::at(instr, ErrorKind::Trap, codes::ENDLESS_LOOP, message)
}

/// Whether two states are bit-identical. Pending values are not compared: not identical.
pub(crate) fn same_state(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => a.dims() == b.dims() && a.buffer() == b.buffer(),
        (Value::Tuple(a), Value::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same_state(a, b))
        }
        (Value::Token, Value::Token) => true,
        (Value::Array(_) | Value::Tuple(_) | Value::Token | Value::Pending(_), _) => false,
    }
}

/// Whether computations are pure: the same results for the same operands whenever they are run.
pub fn repeats(module: &Module, computations: &[ComputationId]) -> bool {
    let mut seen: FxHashSet<ComputationId> = computations.iter().copied().collect();
    let mut pending = computations.to_vec();
    while let Some(c) = pending.pop() {
        for id in module.instructions(c) {
            let instr = module.instr(id);
            let flags = instr.opcode.flags();
            if flags.side_effect || flags.collective {
                return false;
            }
            pending.extend(instr.attrs.called_computations().into_iter().filter(|&c| seen.insert(c)));
        }
    }
    true
}

/// Whether the condition is loop invariant: it reads only elements of the state that the body passes on.
pub(crate) fn condition_is_fixed(module: &Module, condition: ComputationId, body: ComputationId) -> bool {
    let Some(&Some(state)) = module.computation(condition).parameters().first() else { return false };
    let mut read: FxHashSet<i64> = FxHashSet::default();
    let mut seen: FxHashSet<InstrId> = FxHashSet::default();
    let mut pending = vec![module.root(condition)];
    while let Some(id) = pending.pop() {
        if !seen.insert(id) {
            continue;
        }
        if id == state {
            // The state as a whole.
            return module.computation(body).parameters().first() == Some(&Some(module.root(body)));
        }
        let instr = module.instr(id);
        match (instr.opcode, instr.operands(), instr.attrs.int(AttrKey::Index)) {
            (Opcode::GetTupleElement, [of], Some(index)) if *of == state => {
                read.insert(index);
            }
            (_, operands, _) => pending.extend(operands),
        }
    }
    let passed = passed_on(module, body);
    read.iter().all(|index| passed.get(index).copied().unwrap_or(false))
}

/// For each element of the state, whether the body passes it on unchanged.
fn passed_on(module: &Module, body: ComputationId) -> FxHashMap<i64, bool> {
    let root = module.instr(module.root(body));
    let Some(&Some(state)) = module.computation(body).parameters().first() else {
        return FxHashMap::default();
    };
    if root.opcode != Opcode::Tuple {
        return FxHashMap::default();
    }
    let passes = |index: i64, id: InstrId| {
        let instr = module.instr(id);
        instr.opcode == Opcode::GetTupleElement
            && instr.operands() == [state]
            && instr.attrs.int(AttrKey::Index) == Some(index)
    };
    (0..).zip(root.operands()).map(|(index, &id)| (index, passes(index, id))).collect()
}
