//! Asynchronous operations: every start has its done.
//!
//! The pairs that are opcodes of their own (`all-reduce-start`, `copy-start`, `send`, ...) have exactly one
//! user, their done. A chain `async-start`, `async-update`*, `async-done` is linear; it may pass through
//! tuples and loops.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Verifier;
use crate::attrs::AttrKey;
use crate::diag::codes;
use crate::ids::InstrId;
use crate::module::Instruction;
use crate::opcode::Opcode;

/// The done of a start that has a pair of opcodes.
fn done_of(start: Opcode) -> Option<Opcode> {
    Some(match start {
        Opcode::AllReduceStart => Opcode::AllReduceDone,
        Opcode::AllGatherStart => Opcode::AllGatherDone,
        Opcode::CopyStart => Opcode::CopyDone,
        Opcode::CollectivePermuteStart => Opcode::CollectivePermuteDone,
        Opcode::Send => Opcode::SendDone,
        Opcode::Recv => Opcode::RecvDone,
        _ => return None,
    })
}

/// The start of a done.
fn start_of(done: Opcode) -> Option<Opcode> {
    use Opcode::{AllGatherStart, AllReduceStart, CollectivePermuteStart, CopyStart, Recv, Send};
    [AllReduceStart, AllGatherStart, CopyStart, CollectivePermuteStart, Send, Recv]
        .into_iter()
        .find(|&s| done_of(s) == Some(done))
}

/// Opcodes that hand a value on as it is, so that a start and its done may stand on both sides.
fn passes_on(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Tuple
            | Opcode::GetTupleElement
            | Opcode::While
            | Opcode::Conditional
            | Opcode::Call
            | Opcode::OptBarrier
            | Opcode::Domain
            | Opcode::Parameter
            | Opcode::CustomCall
            | Opcode::AddDependency
            | Opcode::Copy
            | Opcode::Bitcast
    )
}

pub(super) fn check(v: &mut Verifier<'_>) {
    v.for_each(|v, id, instr| {
        if done_of(instr.opcode).is_some() {
            start(v, id, instr);
        } else if start_of(instr.opcode).is_some() {
            done(v, id, instr);
        }
    });
    chains(v);
}

fn start(v: &mut Verifier<'_>, id: InstrId, instr: &Instruction) {
    let module = v.module;
    let is_root = module.computation(instr.parent()).root() == Some(id);
    if is_root
        && (v.is_async_computation(instr.parent()) || matches!(instr.opcode, Opcode::Send | Opcode::Recv))
    {
        return; // Wrapped in an async-start, or the done is in another computation.
    }
    let Some(done) = done_of(instr.opcode) else { return };
    let mut users: Vec<InstrId> = module.users(id).iter().map(|u| u.user).collect();
    users.sort_unstable();
    users.dedup();
    users.retain(|&u| module.instr(u).attrs.str(AttrKey::CustomCallTarget) != Some("control_dep"));
    match users.as_slice() {
        [user] => {
            let opcode = module.instr(*user).opcode;
            if opcode != done && !passes_on(opcode) && opcode != Opcode::AsyncStart {
                v.report(
                    id,
                    codes::ASYNC_PAIR,
                    format!("its user must be a {done} and is a {opcode}"),
                    |d| d.related(module.instr(*user).span, "used here"),
                );
            }
        }
        users => {
            let message = format!("must have exactly one user, a {done}, and has {}", users.len());
            v.error(id, codes::ASYNC_PAIR, message);
        }
    }
}

fn done(v: &mut Verifier<'_>, id: InstrId, instr: &Instruction) {
    let Some(start) = start_of(instr.opcode) else { return };
    let &[operand] = instr.operands() else { return };
    let opcode = v.module.instr(operand).opcode;
    if opcode != start && !passes_on(opcode) {
        v.error(id, codes::ASYNC_PAIR, format!("its operand must be a {start} and is a {opcode}"));
    }
}

/// The instruction that an async value comes from, through whatever hands it on within its computation.
fn producer(v: &Verifier<'_>, mut id: InstrId) -> Option<InstrId> {
    let module = v.module;
    let mut path: Vec<i64> = Vec::new();
    // Every step goes to an earlier instruction, so this ends.
    loop {
        let instr = module.instr(id);
        match instr.opcode {
            Opcode::AsyncStart | Opcode::AsyncUpdate => return path.is_empty().then_some(id),
            Opcode::GetTupleElement => {
                path.push(instr.attrs.int(AttrKey::Index)?);
                id = *instr.operands().first()?;
            }
            Opcode::Tuple => {
                let index = path.pop()?;
                id = *instr.operands().get(usize::try_from(index).ok()?)?;
            }
            Opcode::OptBarrier | Opcode::Domain | Opcode::AddDependency | Opcode::Copy | Opcode::Bitcast => {
                id = *instr.operands().first()?;
            }
            _ => return None,
        }
    }
}

/// Whether an async value leaves its computation, or enters it: through a loop, a call, a parameter or the
/// root.
fn crosses(v: &Verifier<'_>, id: InstrId) -> bool {
    let module = v.module;
    let mut seen = FxHashSet::default();
    let mut work = vec![id];
    while let Some(id) = work.pop() {
        if !seen.insert(id) {
            continue;
        }
        if module.computation(module.instr(id).parent()).root() == Some(id) {
            return true;
        }
        for u in module.users(id) {
            let opcode = module.instr(u.user).opcode;
            if matches!(opcode, Opcode::While | Opcode::Call | Opcode::Conditional | Opcode::CustomCall) {
                return true;
            }
            if passes_on(opcode) {
                work.push(u.user);
            }
        }
    }
    false
}

fn chains(v: &mut Verifier<'_>) {
    let module = v.module;
    let mut starts = Vec::new();
    let mut updates = Vec::new();
    let mut dones = Vec::new();
    v.for_each(|v, id, instr| {
        match instr.opcode {
            Opcode::AsyncStart => starts.push(id),
            Opcode::AsyncUpdate => updates.push(id),
            Opcode::AsyncDone => dones.push(id),
            _ => {}
        }
        for (n, &operand) in instr.operands().iter().enumerate() {
            if !matches!(module.instr(operand).opcode, Opcode::AsyncStart | Opcode::AsyncUpdate) {
                continue;
            }
            let continues = matches!(instr.opcode, Opcode::AsyncUpdate | Opcode::AsyncDone);
            if continues && n != 0 || !continues && !passes_on(instr.opcode) {
                let message = format!(
                    "operand {n}, %{}, is an asynchronous operation that is not done; only an async-update or async-done may use it",
                    module.instr(operand).name
                );
                v.error(id, codes::ASYNC_CHAIN, message);
            }
        }
    });
    let mut start_to_done: FxHashMap<InstrId, InstrId> = FxHashMap::default();
    let mut visited: FxHashSet<InstrId> = FxHashSet::default();
    for &done in &dones {
        let Some(&operand) = module.instr(done).operands().first() else { continue };
        let mut current = operand;
        loop {
            let Some(p) = producer(v, current) else {
                // It may come in through a parameter: then the other side is checked.
                if !comes_from_outside(v, current) {
                    v.error(done, codes::ASYNC_CHAIN, "does not lead back to an async-start");
                }
                break;
            };
            if module.instr(p).opcode == Opcode::AsyncStart {
                gives_what_is_computed(v, p, done);
                if let Some(first) = start_to_done.insert(p, done) {
                    let message = format!(
                        "%{} is done already, by %{}",
                        module.instr(p).name,
                        module.instr(first).name
                    );
                    v.report(done, codes::ASYNC_CHAIN, message, |d| {
                        d.related(module.instr(first).span, "done here")
                    });
                }
                break;
            }
            if !visited.insert(p) {
                let message = format!("%{} is part of more than one chain", module.instr(p).name);
                v.error(done, codes::ASYNC_CHAIN, message);
                break;
            }
            let Some(&next) = module.instr(p).operands().first() else { break };
            current = next;
        }
    }
    for id in starts {
        if !start_to_done.contains_key(&id) && !crosses(v, id) && !feeds_update_that_crosses(v, id) {
            v.error(id, codes::ASYNC_CHAIN, "is never done: no async-done leads back to it");
        }
    }
    for id in updates {
        if !visited.contains(&id) && !crosses(v, id) && !feeds_update_that_crosses(v, id) {
            v.error(id, codes::ASYNC_CHAIN, "is never done: no async-done leads back to it");
        }
    }
}

/// Reports a done whose result has another shape than the computation's. Starts and updates do not decide
/// it, because a start may leave its output open.
fn gives_what_is_computed(v: &mut Verifier<'_>, start: InstrId, done: InstrId) {
    let module = v.module;
    let Some(callee) = module.instr(start).attrs.computation(AttrKey::Calls) else { return };
    let (computed, declared) = (&module.instr(module.root(callee)).shape, &module.instr(done).shape);
    if !computed.compatible(declared) {
        let message = format!(
            "the result is {}, but %{} computes {}",
            declared.without_layout(),
            module.computation(callee).name,
            computed.without_layout()
        );
        v.error(done, codes::ASYNC_SHAPE, message);
    }
}

fn feeds_update_that_crosses(v: &Verifier<'_>, id: InstrId) -> bool {
    let mut work = vec![id];
    while let Some(id) = work.pop() {
        for u in v.module.users(id) {
            if v.module.instr(u.user).opcode == Opcode::AsyncUpdate {
                if crosses(v, u.user) {
                    return true;
                }
                work.push(u.user);
            }
        }
    }
    false
}

fn comes_from_outside(v: &Verifier<'_>, mut id: InstrId) -> bool {
    loop {
        let instr = v.module.instr(id);
        match instr.opcode {
            Opcode::Parameter | Opcode::While | Opcode::Call | Opcode::Conditional | Opcode::CustomCall => {
                return true;
            }
            Opcode::AsyncUpdate
            | Opcode::GetTupleElement
            | Opcode::OptBarrier
            | Opcode::Domain
            | Opcode::AddDependency
            | Opcode::Copy
            | Opcode::Bitcast => match instr.operands().first() {
                Some(&o) => id = o,
                None => return false,
            },
            _ => return false,
        }
    }
}
