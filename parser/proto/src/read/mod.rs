//! From messages to the IR.
//!
//! **What holds for any input, however broken:** no panic; no stack that grows with the nesting of the input
//! beyond the limit; memory linear in the input and within [`ReadOptions::memory_bytes`](crate::ReadOptions).
//! Ids are resolved as XLA does it: operands and control predecessors stand before what uses them, and so do
//! called computations, so that a cycle is an id that names nothing yet. The first error ends reading.
//! Whether the module makes sense is for the verifier to judge, as with text.

mod attrs;
mod header;
pub(crate) mod literal;
mod origin;
pub(crate) mod shape;
mod sharding;

use hlo::diag::codes::{parse::*, proto::*};
use hlo::elided::ElidedConstants;
use hlo::{
    AttrKey, AttrValue, Attrs, ComputationId, ConstantValue, Diagnostic, Diagnostics, InstrId,
    MAX_PARAMETERS, Module, Name, NewInstruction, Opcode, Span,
};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::message::{Message, Value};
use crate::names::sanitized;
use crate::node::Node;
use crate::schema::MessageType;
use crate::schema::modules::{
    HLO_COMPUTATION, HLO_INSTRUCTION, hlo_computation as c, hlo_instruction as i, hlo_module as m,
};
use crate::wire::{Decoder, Res};
use attrs::Around;

/// Reads a module.
pub(crate) fn module(n: Node<'_>, decoder: &mut Decoder, diagnostics: &mut Diagnostics) -> Res<Module> {
    let mut module = Module::new(&sanitized(n.text(m::NAME)));
    header::read(n, &mut module, diagnostics)?;
    let mut reader = Reader {
        diagnostics,
        module,
        payloads: n.bytes_list(m::PAYLOADS).into_iter().map(origin::string_of).collect(),
        computations: FxHashMap::default(),
        names: FxHashSet::default(),
        opcodes: Opcode::ALL.iter().map(|&op| (op.name(), op)).collect(),
        schedule: header::schedule(n)?,
        elided: ElidedConstants::default(),
    };
    for index in 0..n.count(m::COMPUTATIONS) {
        nth(n, m::COMPUTATIONS, index, &HLO_COMPUTATION, decoder, |n, _, decoder| {
            reader.computation(n, decoder)
        })?;
    }
    reader.finish(n)
}

/// What `read` makes of one of repeated messages, and of its size in bytes; it is decoded for that if it is
/// not yet.
fn nth<T>(
    n: Node<'_>,
    number: u32,
    index: usize,
    ty: &'static MessageType,
    decoder: &mut Decoder,
    read: impl FnOnce(Node<'_>, usize, &mut Decoder) -> Res<T>,
) -> Res<T> {
    let path = n.path.field(n.name(number), Some(index));
    match n.m.get(number) {
        // What was parsed from text stays as long as the module is read, and was counted.
        Some(Value::Messages(list)) => read(Node::new(&list[index], &path), 0, decoder),
        Some(Value::Encoded(list)) => {
            let left = decoder.left();
            let decoded = decoder.decode(ty, list[index], &path)?;
            let result = read(Node::new(&decoded, &path), list[index].len(), decoder);
            // What was decoded is gone; what the module keeps of it was taken for good.
            decoder.restore(left);
            result
        }
        _ => Err(n.missing(number)),
    }
}

/// What an instruction of a module takes at least.
const KEPT_BYTES: usize = 512;
/// What a module keeps of a byte of a message, at most, elements of literals aside: an integer of a list.
const KEPT_PER_BYTE: usize = 8;

/// The bytes of a literal's elements in its message.
fn element_bytes(literal: &Message<'_>) -> usize {
    let each = literal.fields().iter().map(|(_, value)| match value {
        Value::Packed(b) | Value::Bytes(b) => b.len(),
        Value::Messages(parts) => parts.iter().map(element_bytes).sum(),
        Value::Number(_)
        | Value::Text(_)
        | Value::Texts(_)
        | Value::BytesList(_)
        | Value::Message(_)
        | Value::Encoded(_) => 0,
    });
    each.sum()
}

/// The bytes of the elements of a constant in a module.
fn stored_bytes(attrs: &Attrs) -> u64 {
    let literals =
        [AttrKey::ConstantValue, AttrKey::Literal].into_iter().filter_map(|key| match attrs.get(key) {
            Some(AttrValue::Literal(ConstantValue::Given(literal))) => Some(literal),
            _ => None,
        });
    literals.flat_map(|l| l.arrays()).map(|a| a.buffer.bytes()).sum()
}

/// What a module keeps of the message of an instruction, of that many bytes, that has these attributes.
fn kept_bytes(n: Node<'_>, message_bytes: usize, attrs: &Attrs) -> usize {
    // Of payloads, which many instructions may share, each holds a copy.
    let payload = attrs.metadata().and_then(|m| m.payload.as_deref()).map_or(0, str::len);
    let config = attrs.backend_config().map_or(0, |b| b.text().len());
    let stored = usize::try_from(stored_bytes(attrs)).unwrap_or(usize::MAX);
    let elements = n.child(i::LITERAL, |n| element_bytes(n.m)).unwrap_or(0);
    let other = message_bytes.saturating_sub(elements).saturating_mul(KEPT_PER_BYTE);
    [KEPT_BYTES, other, stored, payload, config].into_iter().fold(0, usize::saturating_add)
}

struct Reader<'d> {
    diagnostics: &'d mut Diagnostics,
    module: Module,
    payloads: Vec<Box<str>>,
    computations: FxHashMap<i64, ComputationId>,
    names: FxHashSet<Name>,
    opcodes: FxHashMap<&'static str, Opcode>,
    schedule: FxHashMap<i64, Vec<i64>>,
    elided: ElidedConstants,
}

/// The computation that is being read.
struct Scope {
    computation: ComputationId,
    /// Its number in the message.
    id: i64,
    /// How many instructions it has.
    len: usize,
    instructions: FxHashMap<i64, InstrId>,
    names: FxHashSet<Name>,
}

impl Scope {
    /// An instruction's number within its computation. XLA puts the number of the computation into the upper
    /// 32 bits of an instruction's id, and in what names instructions of the same computation leaves it in
    /// (since 2025) or out (`XlaBuilder`).
    fn local(&self, id: i64) -> i64 {
        if id >> 32 == self.id { id & i64::from(u32::MAX) } else { id }
    }

    /// The instruction that an id names.
    fn find(&self, id: i64) -> Option<InstrId> {
        self.instructions.get(&self.local(id)).copied()
    }
}

impl Reader<'_> {
    fn computation(&mut self, n: Node<'_>, decoder: &mut Decoder) -> Res<()> {
        let name: Name = sanitized(n.text(c::NAME)).as_ref().into();
        if name.is_empty() {
            return Err(n.missing(c::NAME));
        }
        if !self.names.insert(name.clone()) {
            return Err(n.error(
                DUPLICATE_COMPUTATION,
                c::NAME,
                format_args!("there are two computations `{name}`"),
            ));
        }
        let len = n.count(c::INSTRUCTIONS);
        if len == 0 {
            return Err(n.error(
                EMPTY_COMPUTATION,
                c::INSTRUCTIONS,
                format_args!("computation `{name}` has no instructions"),
            ));
        }
        let computation = self.module.add_computation(name, Span::NONE);
        let thread = n.given_text(c::EXECUTION_THREAD);
        self.module.computation_mut(computation).execution_thread = thread;
        let (instructions, names) = (FxHashMap::default(), FxHashSet::default());
        let id = n.int(c::ID);
        let mut scope = Scope { computation, id, len, instructions, names };
        for index in 0..len {
            nth(n, c::INSTRUCTIONS, index, &HLO_INSTRUCTION, decoder, |n, size, decoder| {
                self.instruction(n, size, &mut scope, decoder)
            })?;
        }
        let root = n.int(c::ROOT_ID);
        let Some(root) = scope.find(root) else {
            return Err(n.error(
                PROTO_BAD_ID,
                c::ROOT_ID,
                format_args!("the computation has no instruction {}", n.int(c::ROOT_ID)),
            ));
        };
        self.module.set_root(computation, root);
        if let Some(order) = self.schedule.remove(&id) {
            self.reorder(n, &scope, &order)?;
        }
        // Known from here on only, so that none calls itself.
        if self.computations.insert(id, computation).is_some() {
            return Err(n.error(PROTO_BAD_ID, c::ID, format_args!("there are two computations {id}")));
        }
        Ok(())
    }

    /// Puts the instructions of a computation in the order of its schedule.
    fn reorder(&mut self, n: Node<'_>, scope: &Scope, order: &[i64]) -> Res<()> {
        let wrong = |what: String| {
            Err(n.error_here(PROTO_BAD_ID, format_args!("the schedule of the computation {what}")))
        };
        if order.len() != scope.len {
            return wrong(format!("has {} of its {} instructions", order.len(), scope.len));
        }
        let mut seen = FxHashSet::default();
        let mut previous = None;
        for id in order {
            let Some(instruction) = scope.find(*id) else {
                return wrong(format!("names instruction {id}, which it does not have"));
            };
            if !seen.insert(instruction) {
                return wrong(format!("names instruction {id} twice"));
            }
            self.module.move_after(instruction, previous);
            previous = Some(instruction);
        }
        Ok(())
    }

    fn instruction(&mut self, n: Node<'_>, size: usize, scope: &mut Scope, decoder: &mut Decoder) -> Res<()> {
        let word = n.text(i::OPCODE);
        let Some(&opcode) = self.opcodes.get(word) else {
            if word.is_empty() {
                return Err(n.missing(i::OPCODE));
            }
            let near = hlo::diag::suggest::did_you_mean(word, Opcode::ALL.iter().map(|o| o.name()));
            let error = n.error(
                UNKNOWN_OPCODE,
                i::OPCODE,
                format_args!("there is no opcode \"{}\"", word.escape_debug()),
            );
            return Err(match near {
                Some(near) => Box::new(error.note(format!("did you mean {near}?"))),
                None => error,
            });
        };
        // As text has it, or else as XLA does.
        let field = if n.has(i::HLO_REFERENCE_NAME) { i::HLO_REFERENCE_NAME } else { i::NAME };
        let name: Name = sanitized(n.text(field)).as_ref().into();
        if name.is_empty() {
            return Err(n.missing(i::NAME));
        }
        if !scope.names.insert(name.clone()) {
            let message = format!("there are two instructions `{name}` in this computation");
            return Err(n.error(DUPLICATE_INSTRUCTION, i::NAME, message));
        }
        let shape = n.required(i::SHAPE, shape::shape)?;
        let operands: SmallVec<[InstrId; 2]> = self.instructions(n, i::OPERAND_IDS, scope)?;
        let called = n.int_list(i::CALLED_COMPUTATION_IDS)?;
        let called = called.into_iter().map(|id| {
            let message = || format!("there is no computation {id} before this one");
            self.computations
                .get(&id)
                .copied()
                .ok_or_else(|| n.error(PROTO_BAD_ID, i::CALLED_COMPUTATION_IDS, message()))
        });
        let called: Vec<ComputationId> = called.collect::<Res<_>>()?;
        let operand_type = operands.first().and_then(|&o| self.module.instr(o).shape.element_type());
        let around =
            Around { opcode, shape: &shape, operand_type, called: &called, payloads: &self.payloads };
        let mut attrs = Attrs::new();
        for slot in opcode.attrs() {
            match attrs::attribute(slot.key, n, &around)? {
                Some(value) => attrs.set(slot.key, value),
                None if slot.required => {
                    let message = format!("{opcode} needs the attribute `{}`", slot.key.text());
                    return Err(n.error_here(PROTO_MISSING_FIELD, message));
                }
                None => {}
            }
        }
        for &key in hlo::attrs::COMMON {
            if let Some(value) = attrs::attribute(key, n, &around)? {
                attrs.set(key, value);
            }
        }
        if attrs.called_computations().len() != called.len() {
            let message = format!("{opcode} does not call {} computations", called.len());
            return Err(n.error(PROTO_BAD_VALUE, i::CALLED_COMPUTATION_IDS, message));
        }
        if opcode == Opcode::Parameter {
            self.check_parameter(n, &attrs, scope)?;
        }
        self.note_elided(n, &name, &attrs);
        decoder.take_for_good(kept_bytes(n, size, &attrs))?;
        let control_predecessors = self.instructions(n, i::CONTROL_PREDECESSOR_IDS, scope)?;
        let new = NewInstruction { opcode, shape, name, operands, attrs, span: Span::NONE };
        let instruction = self.module.append(scope.computation, new);
        if !control_predecessors.is_empty() {
            self.module.instr_mut(instruction).control_predecessors = control_predecessors.into_vec();
        }
        let id = n.int(i::ID);
        if scope.instructions.insert(scope.local(id), instruction).is_some() {
            return Err(n.error(
                PROTO_BAD_ID,
                i::ID,
                format_args!("there are two instructions {id} in this computation"),
            ));
        }
        Ok(())
    }

    /// The instructions that a field names.
    fn instructions(&self, n: Node<'_>, number: u32, scope: &Scope) -> Res<SmallVec<[InstrId; 2]>> {
        let ids = n.int_list(number)?.into_iter().map(|id| {
            let message = || format!("there is no instruction {id} before this one in its computation");
            scope.find(id).ok_or_else(|| n.error(PROTO_BAD_ID, number, message()))
        });
        ids.collect()
    }

    /// That a parameter has a number of its own, within the range of its computation.
    fn check_parameter(&self, n: Node<'_>, attrs: &Attrs, scope: &Scope) -> Res<()> {
        let number = attrs.int(AttrKey::ParameterNumber).unwrap_or(0);
        // Numbers are 0, 1, 2, ...: none is as large as the number of instructions.
        let most = scope.len.min(MAX_PARAMETERS);
        let Some(index) = usize::try_from(number).ok().filter(|&n| n < most) else {
            let message = format!("parameter {number} in a computation of {most} instructions");
            return Err(n.error(PROTO_BAD_VALUE, i::PARAMETER_NUMBER, message));
        };
        let known = self.module.computation(scope.computation).parameters().get(index).copied().flatten();
        if known.is_some() {
            let message = format!("the computation has two parameters {number}");
            return Err(n.error(PROTO_BAD_VALUE, i::PARAMETER_NUMBER, message));
        }
        Ok(())
    }

    /// Warns of a constant whose value is left out.
    fn note_elided(&mut self, n: Node<'_>, name: &str, attrs: &Attrs) {
        let elided = attrs.get(AttrKey::ConstantValue) == Some(&AttrValue::Literal(ConstantValue::Elided));
        if elided && self.elided.count() {
            let message = format!("{}: the value of `{name}` is left out, and made up from the name", n.path);
            self.diagnostics.push(Diagnostic::warning(ELIDED_CONSTANT, Span::NONE, message));
        }
    }

    fn finish(mut self, n: Node<'_>) -> Res<Module> {
        if let Some(count) = self.elided.total() {
            let named = ElidedConstants::MAX_NAMED;
            let message =
                format!("the values of {count} constants are left out, of which the first {named} are named");
            self.diagnostics.push(Diagnostic::warning(ELIDED_CONSTANT, Span::NONE, message));
        }
        if let Some(id) = self.schedule.keys().min() {
            let message = format!("there is a schedule of computation {id}, and no such computation");
            return Err(n.error(PROTO_BAD_ID, m::SCHEDULE, message));
        }
        if self.computations.is_empty() {
            return Err(n.missing(m::COMPUTATIONS));
        }
        let id = n.int(m::ENTRY_COMPUTATION_ID);
        let Some(&entry) = self.computations.get(&id) else {
            return Err(n.error(
                PROTO_BAD_ID,
                m::ENTRY_COMPUTATION_ID,
                format_args!("there is no computation {id}"),
            ));
        };
        self.module.set_entry(entry);
        hlo::rng_ordinal::assign(&mut self.module);
        Ok(self.module)
    }
}
