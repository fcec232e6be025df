//! Asynchronous computations that involve nothing else become calls; asynchronous copies become copies.
//!
//! Before its done a start has no effect except on the other end: devices, feeds, hosts. A computation
//! without any of these gives the same result whenever it runs, so it may run where it is started. Execution
//! threads say where, not what.

use hlo::attrs::{AttrKey, AttrValue};
use hlo::{InstrId, Module, NewInstruction, Opcode};

use super::PassCx;
use super::edit::{Survey, same_but_layout};
use super::effects::Effects;

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    let survey = Survey::of(module);
    if survey.run_time_sizes {
        return 0;
    }
    let starts: Vec<InstrId> = module
        .computations()
        .iter()
        .flat_map(|&c| module.instructions(c))
        .filter(|&id| matches!(module.instr(id).opcode, Opcode::AsyncStart | Opcode::CopyStart))
        .collect();
    let mut applied = 0;
    for start in starts {
        let Some(chain) = chain(module, start) else { continue };
        if chain.iter().any(|id| survey.pinned.contains(id)) || !alone(module, &survey.effects, start) {
            continue;
        }
        let Some(new) = synchronous(module, start, &chain) else { continue };
        if !cx.fuel.take() {
            break;
        }
        // What updates bind is not there before them.
        let done = chain[chain.len() - 1];
        let bound_later = new.operands.len() > module.instr(start).operands().len();
        let new = module.insert_before(if bound_later { done } else { start }, new);
        module.replace_all_uses(done, new);
        let (name, span) = (module.instr(done).name.clone(), module.instr(done).span);
        for &id in chain.iter().rev() {
            module.remove(id);
        }
        let new = module.instr_mut(new);
        (new.name, new.span) = (name, span);
        applied += 1;
    }
    applied
}

/// The chain from the start to the done; `None` if anything else reads what is in between.
fn chain(module: &Module, start: InstrId) -> Option<Vec<InstrId>> {
    let mut chain = vec![start];
    loop {
        let last = chain[chain.len() - 1];
        let [only] = module.users(last) else { return None };
        if module.root(module.instr(last).parent()) == last {
            return None;
        }
        chain.push(only.user);
        match (module.instr(start).opcode, module.instr(only.user).opcode) {
            (Opcode::AsyncStart, Opcode::AsyncDone) | (Opcode::CopyStart, Opcode::CopyDone) => {
                return Some(chain);
            }
            (Opcode::AsyncStart, Opcode::AsyncUpdate) if module.instr(only.user).operands()[0] == last => {}
            _ => return None,
        }
    }
}

/// Whether what is started involves no other device or host.
fn alone(module: &Module, effects: &Effects, start: InstrId) -> bool {
    let called = module.instr(start).attrs.called_computations();
    called.iter().all(|&c| module.instructions(c).all(|id| !effects.has(module, id)))
}

/// What computes the result of the done in one step.
fn synchronous(module: &Module, start: InstrId, chain: &[InstrId]) -> Option<NewInstruction> {
    let (instr, done) = (module.instr(start), module.instr(chain[chain.len() - 1]));
    let (operands, shape) = (instr.operands(), done.shape.clone());
    match instr.opcode {
        Opcode::AsyncStart => {
            let callee = instr.attrs.computation(AttrKey::Calls)?;
            let c = module.computation(callee);
            let steps = chain.iter().filter(|&&id| module.instr(id).opcode == Opcode::AsyncUpdate);
            let later = steps.flat_map(|&id| &module.instr(id).operands()[1..]);
            let operands: Vec<InstrId> = operands.iter().chain(later).copied().collect();
            let bound = |(p, &o): (&Option<InstrId>, &InstrId)| {
                p.is_some_and(|p| module.instr(p).shape == module.instr(o).shape)
            };
            let fits = c.execution_thread.is_none()
                && c.parameters().len() == operands.len()
                && c.parameters().iter().zip(&operands).all(bound)
                && module.instr(module.root(callee)).shape == shape;
            let call = NewInstruction::new(Opcode::Call, shape, &operands)
                .attr(AttrKey::ToApply, AttrValue::Computation(callee));
            fits.then_some(call)
        }
        Opcode::CopyStart => {
            let operand = *operands.first()?;
            let fits = same_but_layout(&module.instr(operand).shape, &shape);
            fits.then(|| NewInstruction::new(Opcode::Copy, shape, operands))
        }
        _ => None,
    }
}
