//! From the IR to messages.
//!
//! What XLA writes of the same module is written: the fields that it always writes, its ids (the number of a
//! computation, and in the lower bits that of the instruction in it), elements of literals in the order of
//! their layout. Computations and instructions keep the order of the module where callees come before
//! callers, which XLA asks for; else callees move forward. **Invariant:** what a field cannot hold is an
//! error that names it, never left out in silence, but for what XLA itself derives from other fields.

mod attrs;
mod header;
pub(crate) mod literal;
mod origin;
mod shape;
mod sharding;

use hlo::diag::codes;
use hlo::{AttrValue, ComputationId, Diagnostic, Diagnostics, InstrId, Instruction, Module, Opcode};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::message::Message;
use crate::schema::modules::{
    HLO_COMPUTATION, HLO_INSTRUCTION, HLO_MODULE, HLO_SCHEDULE, HLO_SCHEDULE_INSTRUCTION_SEQUENCE,
    HLO_SCHEDULE_SEQUENCES_ENTRY, hlo_computation as c, hlo_instruction as i, hlo_module as m, hlo_schedule,
    hlo_schedule_instruction_sequence as sequence, hlo_schedule_sequences_entry as entry,
};
use crate::schema::origins::{FRONTEND_ATTRIBUTES, OP_METADATA, STATISTICS_VIZ};
use crate::tables::LOCAL_ID_BITS;
use origin::Payloads;

/// What there is no field for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Missing(pub(crate) &'static str);

/// A part of a message, if there are fields for all that it says.
pub(crate) type Written<T> = Result<T, Missing>;

/// The message of a module. Errors: all that there are no fields for.
pub(crate) fn module(module: &Module) -> Result<Message<'_>, Diagnostics> {
    let order = callees_first(module);
    let mut writer = Writer {
        module,
        numbers: vec![0; module.computation_capacity()],
        ids: vec![0; module.instruction_capacity()],
        ordinals: moved_ordinals(module),
        names: unique_names(module, &order),
        payloads: Payloads::default(),
        diagnostics: Diagnostics::new(),
    };
    for (number, &computation) in order.iter().enumerate() {
        writer.numbers[computation.index()] = number as i64;
        for (local, instruction) in module.instructions(computation).enumerate() {
            writer.ids[instruction.index()] = (number as i64) << LOCAL_ID_BITS | local as i64;
        }
    }
    let fused: FxHashSet<ComputationId> = all(module, &order)
        .filter(|i| i.opcode == Opcode::Fusion)
        .flat_map(|i| i.attrs.called_computations())
        .collect();
    let mut out = Message::new(&HLO_MODULE);
    out.text(m::NAME, &*module.name);
    out.text(m::ENTRY_COMPUTATION_NAME, &*module.computation(module.entry()).name);
    let computations = order.iter().map(|&id| writer.computation(id, fused.contains(&id))).collect();
    out.messages(m::COMPUTATIONS, computations);
    out.int(m::ENTRY_COMPUTATION_ID, writer.numbers[module.entry().index()]);
    if module.header.is_scheduled == Some(true) {
        let scheduled = order.iter().filter(|id| !fused.contains(id));
        let sequences = scheduled.map(|&id| writer.sequence(id)).collect();
        let mut schedule = Message::new(&HLO_SCHEDULE);
        schedule.messages(hlo_schedule::SEQUENCES, sequences);
        out.message(m::SCHEDULE, schedule);
    }
    header::write(module, &mut out);
    header::payloads(writer.payloads.list, &mut out);
    if writer.diagnostics.has_errors() { Err(writer.diagnostics) } else { Ok(out) }
}

fn all<'m>(module: &'m Module, order: &[ComputationId]) -> impl Iterator<Item = &'m Instruction> {
    order.iter().flat_map(move |&c| module.instructions(c)).map(move |i| module.instr(i))
}

/// The computations in their order, but callees before callers.
fn callees_first(module: &Module) -> Vec<ComputationId> {
    let mut order = Vec::with_capacity(module.computations().len());
    let mut seen = vec![false; module.computation_capacity()];
    for &computation in module.computations() {
        if std::mem::replace(&mut seen[computation.index()], true) {
            continue;
        }
        // Not recursive, so that no depth of calls matters. A module that calls itself does not verify; here
        // it ends all the same.
        let mut open = vec![(computation, callees(module, computation), 0)];
        while let Some((computation, called, next)) = open.last_mut() {
            match called.get(*next) {
                Some(&callee) => {
                    *next += 1;
                    if !std::mem::replace(&mut seen[callee.index()], true) {
                        open.push((callee, callees(module, callee), 0));
                    }
                }
                None => {
                    order.push(*computation);
                    open.pop();
                }
            }
        }
    }
    order
}

fn callees(module: &Module, computation: ComputationId) -> Vec<ComputationId> {
    module.instructions(computation).flat_map(|i| module.instr(i).attrs.called_computations()).collect()
}

/// The random instructions whose ordinal is not their rank: see [`hlo::rng_ordinal`].
fn moved_ordinals(module: &Module) -> FxHashMap<InstrId, i64> {
    let mut moved = FxHashMap::default();
    for opcode in [Opcode::Rng, Opcode::RngGetAndUpdateState] {
        let every = module.computations().iter().flat_map(|&c| module.instructions(c));
        let random = every.filter(|&id| module.instr(id).opcode == opcode);
        for (rank, id) in (0..).zip(random) {
            if let Some(ordinal) = module.instr(id).attrs.int(hlo::AttrKey::RngOrdinal).filter(|&o| o != rank)
            {
                moved.insert(id, ordinal);
            }
        }
    }
    moved
}

/// Names for the instructions whose names others of the module have, which text allows in other computations
/// and XLA's messages do not.
fn unique_names(module: &Module, order: &[ComputationId]) -> FxHashMap<InstrId, String> {
    let mut taken: FxHashSet<&str> = FxHashSet::default();
    let mut again = Vec::new();
    for id in order.iter().flat_map(|&c| module.instructions(c)) {
        if !taken.insert(&module.instr(id).name) {
            again.push(id);
        }
    }
    let mut made: FxHashSet<String> = FxHashSet::default();
    let mut next: FxHashMap<&str, u64> = FxHashMap::default();
    let mut names = FxHashMap::default();
    for id in again {
        let base = &*module.instr(id).name;
        let number = next.entry(base).or_insert(1);
        let name = loop {
            let name = format!("{base}.{number}");
            *number += 1;
            if !taken.contains(name.as_str()) && made.insert(name.clone()) {
                break name;
            }
        };
        names.insert(id, name);
    }
    names
}

struct Writer<'m> {
    module: &'m Module,
    /// By index of the computation.
    numbers: Vec<i64>,
    /// By index of the instruction.
    ids: Vec<i64>,
    ordinals: FxHashMap<InstrId, i64>,
    /// Names of those that share theirs.
    names: FxHashMap<InstrId, String>,
    payloads: Payloads<'m>,
    diagnostics: Diagnostics,
}

impl<'m> Writer<'m> {
    fn computation(&mut self, id: ComputationId, fused: bool) -> Message<'m> {
        let module = self.module;
        let computation = module.computation(id);
        let mut out = Message::new(&HLO_COMPUTATION);
        out.text(c::NAME, &*computation.name);
        let instructions = module.instructions(id).map(|i| self.instruction(i)).collect();
        out.messages(c::INSTRUCTIONS, instructions);
        if let Some(signature) = header::signature(module, id) {
            out.message(c::PROGRAM_SHAPE, signature);
        }
        out.int(c::ID, self.numbers[id.index()]);
        if let Some(root) = computation.root() {
            out.int(c::ROOT_ID, self.ids[root.index()]);
        }
        out.bool(c::IS_FUSION_COMPUTATION, fused);
        out.text(c::EXECUTION_THREAD, computation.execution_thread.as_deref().unwrap_or(""));
        out
    }

    fn sequence(&self, id: ComputationId) -> Message<'m> {
        let mut ids = Message::new(&HLO_SCHEDULE_INSTRUCTION_SEQUENCE);
        ids.ints(sequence::INSTRUCTION_IDS, self.module.instructions(id).map(|i| self.ids[i.index()]));
        let mut out = Message::new(&HLO_SCHEDULE_SEQUENCES_ENTRY);
        // Entries of maps always have both.
        out.put_int(entry::KEY, self.numbers[id.index()]);
        out.message(entry::VALUE, ids);
        out
    }

    fn instruction(&mut self, id: InstrId) -> Message<'m> {
        let module = self.module;
        let instruction = module.instr(id);
        let mut out = Message::new(&HLO_INSTRUCTION);
        match self.names.remove(&id) {
            Some(unique) => {
                out.text(i::NAME, unique);
                out.text(i::HLO_REFERENCE_NAME, &*instruction.name);
            }
            None => out.text(i::NAME, &*instruction.name),
        }
        out.text(i::OPCODE, instruction.opcode.name());
        out.message(i::SHAPE, shape::shape(&instruction.shape));
        // XLA writes these of every instruction.
        out.message(i::METADATA, Message::new(&OP_METADATA));
        out.int(i::ID, self.ids[id.index()]);
        out.ints(i::OPERAND_IDS, instruction.operands().iter().map(|o| self.ids[o.index()]));
        out.ints(
            i::CONTROL_PREDECESSOR_IDS,
            instruction.control_predecessors.iter().map(|p| self.ids[p.index()]),
        );
        out.ints(i::CALLED_COMPUTATION_IDS, called(instruction).into_iter().map(|c| self.numbers[c.index()]));
        out.message(i::FRONTEND_ATTRIBUTES, Message::new(&FRONTEND_ATTRIBUTES));
        out.message(i::STATISTICS_VIZ, Message::new(&STATISTICS_VIZ));
        for (key, value) in instruction.attrs.iter() {
            if let Err(Missing(what)) =
                attrs::attribute(key, value, instruction, &mut self.payloads, &mut out)
            {
                let message =
                    format!("{}: there is no field for {what}, in `{}`", instruction.name, key.text());
                self.diagnostics.push(Diagnostic::error(
                    codes::UNSUPPORTED_IN_PROTO,
                    instruction.span,
                    message,
                ));
            }
        }
        attrs::assumed(module, instruction, &mut out);
        if let Some(&ordinal) = self.ordinals.get(&id) {
            out.message(i::FRONTEND_ATTRIBUTES, attrs::with_ordinal(&instruction.attrs, ordinal));
        }
        out
    }
}

/// The computations that an instruction calls, in the order in which XLA numbers them.
fn called(instruction: &Instruction) -> Vec<ComputationId> {
    use hlo::AttrKey::{Body, Condition};
    let attrs = &instruction.attrs;
    if let (Some(AttrValue::Computation(body)), Some(AttrValue::Computation(condition))) =
        (attrs.get(Body), attrs.get(Condition))
    {
        return vec![*body, *condition];
    }
    attrs.called_computations().into_vec()
}
