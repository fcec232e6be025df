//! Modules, computations and instructions, and their mutation.
//!
//! One arena a module holds all instructions; the order of the instructions of a computation is a linked list
//! through them, so that inserting and removing are O(1) and the arena's order means nothing.
//!
//! **Invariants** (kept by the methods here; fields with invariants are private):
//! - an operand is an instruction that is not removed; [`Module::users`] lists exactly the operand slots that
//!   name it;
//! - an instruction stands in the order of exactly one computation, its `parent`;
//! - a computation's `parameters()[n]` is its `parameter(n)` instruction; its root is one of its
//!   instructions;
//! - names of computations are unique in the module, names of instructions in their computation, as in text
//!   (which may break this; the verifier says so). [`Module::unique_name`] makes names that are unique in the
//!   whole module.
//! - a removed entity leaves a tombstone; [`Module::compact`] drops those and renumbers.
//!
//! Not kept here, but by the verifier: operands come before users in the order and are of the same
//! computation, shapes fit, computations are called without cycles.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::attrs::{AliasEntry, AttrKey, AttrValue, Attrs, BufferDonor, FrontendAttributes, StackTables};
use crate::ids::{ComputationId, InstrId};
use crate::opcode::Opcode;
use crate::shape::{ProgramShape, Shape};
use crate::span::Span;

/// A name of an instruction, computation or module, without `%`.
pub type Name = Arc<str>;

/// Where an operand is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Use {
    /// The user.
    pub user: InstrId,
    /// Which of its operands.
    pub operand: u32,
}

/// An instruction as a caller describes it; the module adds it to a computation.
#[derive(Clone, Debug)]
pub struct NewInstruction {
    /// Operation.
    pub opcode: Opcode,
    /// Result.
    pub shape: Shape,
    /// Name; made unique if it is taken.
    pub name: Name,
    /// Operands.
    pub operands: SmallVec<[InstrId; 2]>,
    /// Attributes.
    pub attrs: Attrs,
    /// Location in the text.
    pub span: Span,
}

/// An instruction of a module.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// Operation.
    pub opcode: Opcode,
    /// Result.
    pub shape: Shape,
    /// Name, without `%`.
    pub name: Name,
    /// Attributes.
    pub attrs: Attrs,
    /// Location in the text of the definition, or of the one it was made from.
    pub span: Span,
    /// Instructions that must run before this one.
    pub control_predecessors: Vec<InstrId>,
    operands: SmallVec<[InstrId; 2]>,
    /// For each operand, the position of this use in the operand's use list.
    use_positions: SmallVec<[u32; 2]>,
    parent: ComputationId,
    previous: Option<InstrId>,
    next: Option<InstrId>,
    removed: bool,
}

impl Instruction {
    /// Operands, in order.
    pub fn operands(&self) -> &[InstrId] {
        &self.operands
    }

    /// The computation that it is in.
    pub fn parent(&self) -> ComputationId {
        self.parent
    }

    /// The number of a `parameter`.
    pub fn parameter_number(&self) -> Option<i64> {
        self.attrs.int(AttrKey::ParameterNumber)
    }
}

/// A computation of a module.
#[derive(Clone, Debug)]
pub struct Computation {
    /// Name, without `%`.
    pub name: Name,
    /// `execution_thread`, if it is not the main one.
    pub execution_thread: Option<Box<str>>,
    /// Location in the text: the name.
    pub span: Span,
    /// The program shape in the text's header, if it has one (the instructions say what it really is).
    pub declared: Option<Arc<DeclaredSignature>>,
    first: Option<InstrId>,
    last: Option<InstrId>,
    len: usize,
    root: Option<InstrId>,
    parameters: Vec<Option<InstrId>>,
    removed: bool,
}

/// The header of a computation in text: `(a: f32[2], b: s32[]) -> f32[2]`.
#[derive(Clone, PartialEq, Debug)]
pub struct DeclaredSignature {
    /// Names and shapes of parameters.
    pub parameters: Vec<(Name, Shape)>,
    /// Result.
    pub result: Shape,
}

impl Computation {
    /// Number of instructions.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no instructions.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The result. `None` only while it is being built.
    pub fn root(&self) -> Option<InstrId> {
        self.root
    }

    /// The `parameter` instructions by number; a hole (`None`) is for the verifier to report.
    pub fn parameters(&self) -> &[Option<InstrId>] {
        &self.parameters
    }
}

/// Everything in the header of a module but its name.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ModuleHeader {
    /// `is_scheduled`: the order of instructions is a schedule.
    pub is_scheduled: Option<bool>,
    /// `input_output_alias`.
    pub input_output_alias: Vec<AliasEntry>,
    /// `buffer_donor`.
    pub buffer_donor: Vec<BufferDonor>,
    /// `alias_passthrough_params`.
    pub alias_passthrough_params: Option<bool>,
    /// `entry_computation_layout`.
    pub entry_computation_layout: Option<ProgramShape>,
    /// `allow_spmd_sharding_propagation_to_parameters`: as many as written.
    pub spmd_propagation_to_parameters: Option<PropagationFlags>,
    /// `allow_spmd_sharding_propagation_to_output`.
    pub spmd_propagation_to_output: Option<PropagationFlags>,
    /// `replica_count`.
    pub replica_count: Option<i64>,
    /// `num_partitions`.
    pub num_partitions: Option<i64>,
    /// `frontend_attributes`.
    pub frontend_attributes: Option<FrontendAttributes>,
    /// `origin_recovery_table`, verbatim.
    pub origin_recovery_table: Option<Box<str>>,
    /// `debug_attributes`, verbatim.
    pub debug_attributes: Option<Box<str>>,
    /// Other fields, verbatim and in order.
    pub custom: Vec<(Box<str>, Box<str>)>,
}

/// `true` or `{true,false}`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PropagationFlags {
    /// One for all.
    All(bool),
    /// One each.
    Each(Vec<bool>),
}

/// The choices of a printer. Read from text, they are what the text had; so a dump prints back as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TextStyle {
    /// The `HloModule` line is there.
    pub header: bool,
    /// Names begin with `%`.
    pub percent: bool,
    /// Operands carry their shapes.
    pub operand_shapes: bool,
    /// `/*index=5*/` stands before every fifth operand.
    pub operand_indices: bool,
    /// Computations show their signature.
    pub program_shape: bool,
    /// Shapes show their layouts.
    pub layouts: bool,
    /// `} // name` after computations of more than five instructions.
    pub name_after_brace: bool,
    /// `%t#1` for get-tuple-element.
    pub compact_gte: bool,
    /// `negate-start(..)` for an `async-start` of a computation that holds one instruction.
    pub async_sugar: bool,
    /// The text ends with an empty line, as XLA writes it (and not where somebody stripped it).
    pub final_blank_line: bool,
}

impl TextStyle {
    /// XLA's default: what `--xla_dump_to` writes.
    pub const DUMP: TextStyle = TextStyle {
        header: true,
        percent: true,
        operand_shapes: false,
        operand_indices: true,
        program_shape: true,
        layouts: true,
        name_after_brace: false,
        compact_gte: false,
        async_sugar: true,
        final_blank_line: true,
    };
    /// XLA's `HloPrintOptions::ShortParsable`.
    pub const SHORT: TextStyle = TextStyle {
        header: true,
        percent: false,
        operand_shapes: false,
        operand_indices: false,
        program_shape: false,
        layouts: true,
        name_after_brace: false,
        compact_gte: false,
        async_sugar: true,
        final_blank_line: true,
    };
}

/// A program: computations, one of which is the entry.
#[derive(Clone, Debug)]
pub struct Module {
    /// Name.
    pub name: Name,
    /// The rest of the header line.
    pub header: ModuleHeader,
    /// Tables of source locations.
    pub stack_tables: StackTables,
    /// How the text it was read from looked.
    pub text_style: TextStyle,
    instructions: Vec<Instruction>,
    users: Vec<Vec<Use>>,
    computations: Vec<Computation>,
    order: Vec<ComputationId>,
    entry: Option<ComputationId>,
    names: crate::names::NameTable,
    /// More than any [ordinal](crate::rng_ordinal), for each opcode that has such.
    next_rng: [i64; 2],
}

impl Module {
    /// A module without computations.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            header: ModuleHeader::default(),
            stack_tables: StackTables::default(),
            text_style: TextStyle::DUMP,
            instructions: Vec::new(),
            users: Vec::new(),
            computations: Vec::new(),
            order: Vec::new(),
            entry: None,
            names: crate::names::NameTable::default(),
            next_rng: [0; 2],
        }
    }

    // ---- reading

    /// The instruction with this id.
    pub fn instr(&self, id: InstrId) -> &Instruction {
        &self.instructions[id.index()]
    }

    /// The instruction with this id, to change its attributes, shape, name or span in place.
    pub fn instr_mut(&mut self, id: InstrId) -> &mut Instruction {
        &mut self.instructions[id.index()]
    }

    /// The computation with this id.
    pub fn computation(&self, id: ComputationId) -> &Computation {
        &self.computations[id.index()]
    }

    /// The computation with this id, to change its name, thread or span.
    pub fn computation_mut(&mut self, id: ComputationId) -> &mut Computation {
        &mut self.computations[id.index()]
    }

    /// All computations, in the order of the text (callees before callers in dumps).
    pub fn computations(&self) -> &[ComputationId] {
        &self.order
    }

    /// The entry computation. Panics on a module that is still being built and has none.
    pub fn entry(&self) -> ComputationId {
        self.entry.expect("invariant: a finished module has an entry computation")
    }

    /// The entry computation, if there is one yet.
    pub fn entry_or_none(&self) -> Option<ComputationId> {
        self.entry
    }

    /// The instructions of a computation, in order.
    pub fn instructions(&self, computation: ComputationId) -> InstructionIter<'_> {
        InstructionIter { module: self, next: self.computation(computation).first }
    }

    /// Number of ids that were ever given out: the length that a side table indexed by [`InstrId::index`]
    /// needs.
    pub fn instruction_capacity(&self) -> usize {
        self.instructions.len()
    }

    /// Like [`Module::instruction_capacity`] for computations.
    pub fn computation_capacity(&self) -> usize {
        self.computations.len()
    }

    /// Where an instruction is used as an operand, in no particular but a deterministic order.
    pub fn users(&self, id: InstrId) -> &[Use] {
        &self.users[id.index()]
    }

    /// Whether an id names a removed instruction.
    pub fn is_removed(&self, id: InstrId) -> bool {
        self.instr(id).removed
    }

    /// The root of a finished computation.
    pub fn root(&self, computation: ComputationId) -> InstrId {
        self.computation(computation).root.expect("invariant: a finished computation has a root")
    }

    /// Shapes of a computation's parameters (of those that exist) and of its root; `None` without a root.
    pub fn program_shape(&self, computation: ComputationId) -> Option<ProgramShape> {
        let c = self.computation(computation);
        let parameters = c.parameters.iter().flatten().map(|&p| self.instr(p).shape.clone()).collect();
        Some(ProgramShape { parameters, result: self.instr(c.root?).shape.clone() })
    }

    /// The computation of this name.
    pub fn find_computation(&self, name: &str) -> Option<ComputationId> {
        self.order.iter().copied().find(|&c| &*self.computation(c).name == name)
    }

    /// `replica_count`, at least 1.
    pub fn replica_count(&self) -> i64 {
        self.header.replica_count.unwrap_or(1).max(1)
    }

    /// `num_partitions`, at least 1.
    pub fn num_partitions(&self) -> i64 {
        self.header.num_partitions.unwrap_or(1).max(1)
    }

    /// Reserves capacity for that many more instructions.
    pub fn reserve(&mut self, instructions: usize) {
        self.instructions.reserve(instructions);
        self.users.reserve(instructions);
        self.names.reserve(instructions);
    }

    // ---- names

    /// `base` if no instruction of the module has that name, else `base.N` with the smallest free N.
    pub fn unique_name(&mut self, base: &str) -> Name {
        self.names.unique_instruction(base)
    }

    /// The same for computations.
    pub fn unique_computation_name(&mut self, base: &str) -> Name {
        self.names.unique_computation(base)
    }

    // ---- computations

    /// Adds an empty computation at the end of the order, under exactly this name.
    pub fn add_computation(&mut self, name: Name, span: Span) -> ComputationId {
        let id = ComputationId::from_index(self.computations.len());
        self.names.reserve_computation(&name);
        self.computations.push(Computation {
            name,
            execution_thread: None,
            span,
            declared: None,
            first: None,
            last: None,
            len: 0,
            root: None,
            parameters: Vec::new(),
            removed: false,
        });
        self.order.push(id);
        id
    }

    /// Makes a computation the entry.
    pub fn set_entry(&mut self, computation: ComputationId) {
        self.entry = Some(computation);
    }

    /// Puts computations in another order. `order` must be a permutation of [`Module::computations`].
    pub fn set_computation_order(&mut self, order: Vec<ComputationId>) {
        debug_assert_eq!(order.len(), self.order.len());
        self.order = order;
    }

    /// Removes a computation and its instructions. Nothing may call it any more.
    pub fn remove_computation(&mut self, computation: ComputationId) {
        let ids: Vec<InstrId> = self.instructions(computation).collect();
        for &id in ids.iter().rev() {
            self.clear_operands(id);
            self.instructions[id.index()].removed = true;
        }
        let c = &mut self.computations[computation.index()];
        (c.first, c.last, c.len, c.root, c.removed) = (None, None, 0, None, true);
        c.parameters.clear();
        self.order.retain(|&c| c != computation);
    }

    // ---- instructions

    /// Adds an instruction at the end of a computation.
    pub fn append(&mut self, computation: ComputationId, new: NewInstruction) -> InstrId {
        let last = self.computation(computation).last;
        self.insert_after(computation, last, new)
    }

    /// Adds an instruction before another one, in the same computation.
    pub fn insert_before(&mut self, anchor: InstrId, new: NewInstruction) -> InstrId {
        let (computation, previous) = (self.instr(anchor).parent, self.instr(anchor).previous);
        self.insert_after(computation, previous, new)
    }

    /// Adds an instruction after `previous`, or first in the computation if that is `None`.
    pub fn insert_after(
        &mut self,
        computation: ComputationId,
        previous: Option<InstrId>,
        new: NewInstruction,
    ) -> InstrId {
        let id = InstrId::from_index(self.instructions.len());
        self.names.reserve_instruction(&new.name);
        let mut attrs = new.attrs;
        if let Some(counted) = crate::rng_ordinal::COUNTED.iter().position(|&opcode| opcode == new.opcode) {
            // A copy keeps its ordinal.
            let next = &mut self.next_rng[counted];
            let ordinal = attrs.int(AttrKey::RngOrdinal).unwrap_or(*next);
            attrs.set(AttrKey::RngOrdinal, AttrValue::Int(ordinal));
            *next = (*next).max(ordinal.saturating_add(1));
        }
        let parameter =
            if new.opcode == Opcode::Parameter { attrs.int(AttrKey::ParameterNumber) } else { None };
        self.instructions.push(Instruction {
            opcode: new.opcode,
            shape: new.shape,
            name: new.name,
            attrs,
            span: new.span,
            control_predecessors: Vec::new(),
            operands: SmallVec::new(),
            use_positions: SmallVec::new(),
            parent: computation,
            previous: None,
            next: None,
            removed: false,
        });
        self.users.push(Vec::new());
        self.link(id, computation, previous);
        self.set_operands(id, &new.operands);
        if let Some(n) = parameter.and_then(|n| usize::try_from(n).ok()).filter(|&n| n < MAX_PARAMETERS) {
            let parameters = &mut self.computations[computation.index()].parameters;
            if parameters.len() <= n {
                parameters.resize(n + 1, None);
            }
            if parameters[n].is_none() {
                parameters[n] = Some(id);
            }
        }
        id
    }

    /// Makes an instruction of the computation its root.
    pub fn set_root(&mut self, computation: ComputationId, root: InstrId) {
        self.computations[computation.index()].root = Some(root);
    }

    /// Replaces all operands.
    pub fn set_operands(&mut self, id: InstrId, operands: &[InstrId]) {
        self.clear_operands(id);
        for &operand in operands {
            self.push_operand(id, operand);
        }
    }

    /// Adds an operand at the end.
    pub fn push_operand(&mut self, id: InstrId, operand: InstrId) {
        let slot = self.instr(id).operands.len() as u32;
        let position = self.add_use(operand, Use { user: id, operand: slot });
        let instr = self.instr_mut(id);
        instr.operands.push(operand);
        instr.use_positions.push(position);
    }

    /// Replaces one operand.
    pub fn set_operand(&mut self, id: InstrId, slot: usize, operand: InstrId) {
        self.remove_use(id, slot);
        let position = self.add_use(operand, Use { user: id, operand: slot as u32 });
        let instr = self.instr_mut(id);
        instr.operands[slot] = operand;
        instr.use_positions[slot] = position;
    }

    /// Makes every user of `old` use `new` instead, and `new` the root where `old` was. Control edges stay
    /// with `old`.
    pub fn replace_all_uses(&mut self, old: InstrId, new: InstrId) {
        if old == new {
            return;
        }
        for u in std::mem::take(&mut self.users[old.index()]) {
            let position = self.add_use(new, u);
            let instr = self.instr_mut(u.user);
            instr.operands[u.operand as usize] = new;
            instr.use_positions[u.operand as usize] = position;
        }
        let parent = self.instr(old).parent;
        let c = &mut self.computations[parent.index()];
        if c.root == Some(old) {
            c.root = Some(new);
        }
    }

    /// Removes an instruction that nothing uses. Panics if something does, or if it is the root.
    pub fn remove(&mut self, id: InstrId) {
        assert!(self.users(id).is_empty(), "removing {}, which is used", self.instr(id).name);
        let parent = self.instr(id).parent;
        assert!(self.computation(parent).root != Some(id), "removing the root {}", self.instr(id).name);
        self.clear_operands(id);
        self.unlink(id);
        let number = self.instr(id).parameter_number().and_then(|n| usize::try_from(n).ok());
        let is_parameter = self.instr(id).opcode == Opcode::Parameter;
        let parameters = &mut self.computations[parent.index()].parameters;
        match number.and_then(|n| parameters.get_mut(n)) {
            Some(p) if *p == Some(id) => *p = None,
            // Its number was changed, or another one has it.
            _ if is_parameter => parameters.iter_mut().filter(|p| **p == Some(id)).for_each(|p| *p = None),
            Some(_) | None => {}
        }
        self.instr_mut(id).removed = true;
    }

    /// Moves an instruction after another one of the same computation (or first, if `None`).
    pub fn move_after(&mut self, id: InstrId, previous: Option<InstrId>) {
        let parent = self.instr(id).parent;
        self.unlink(id);
        self.link(id, parent, previous);
    }

    /// A copy without tombstones, with new ids in the order of the text.
    #[must_use]
    pub fn compact(&self) -> Module {
        crate::clone::clone_module(self)
    }

    // ---- internals

    fn link(&mut self, id: InstrId, computation: ComputationId, previous: Option<InstrId>) {
        let c = &mut self.computations[computation.index()];
        c.len += 1;
        let next = match previous {
            Some(p) => self.instructions[p.index()].next.replace(id),
            None => c.first.replace(id),
        };
        match next {
            Some(n) => self.instructions[n.index()].previous = Some(id),
            None => c.last = Some(id),
        }
        let instr = &mut self.instructions[id.index()];
        (instr.previous, instr.next, instr.parent) = (previous, next, computation);
    }

    fn unlink(&mut self, id: InstrId) {
        let (previous, next, parent) = {
            let i = self.instr(id);
            (i.previous, i.next, i.parent)
        };
        let c = &mut self.computations[parent.index()];
        c.len -= 1;
        match previous {
            Some(p) => self.instructions[p.index()].next = next,
            None => c.first = next,
        }
        match next {
            Some(n) => self.instructions[n.index()].previous = previous,
            None => c.last = previous,
        }
    }

    fn clear_operands(&mut self, id: InstrId) {
        for slot in 0..self.instr(id).operands.len() {
            self.remove_use(id, slot);
        }
        let instr = self.instr_mut(id);
        instr.operands.clear();
        instr.use_positions.clear();
    }

    fn add_use(&mut self, operand: InstrId, u: Use) -> u32 {
        let list = &mut self.users[operand.index()];
        list.push(u);
        list.len() as u32 - 1
    }

    fn remove_use(&mut self, id: InstrId, slot: usize) {
        let (operand, position) = {
            let i = self.instr(id);
            (i.operands[slot], i.use_positions[slot])
        };
        let list = &mut self.users[operand.index()];
        list.swap_remove(position as usize);
        if let Some(&moved) = list.get(position as usize) {
            self.instructions[moved.user.index()].use_positions[moved.operand as usize] = position;
        }
    }
}

/// A parameter number at or above this is not entered in [`Computation::parameters`]; the verifier reports
/// it.
pub const MAX_PARAMETERS: usize = 1 << 20;

/// Iterates over the instructions of a computation in order.
#[derive(Clone, Debug)]
pub struct InstructionIter<'m> {
    module: &'m Module,
    next: Option<InstrId>,
}

impl Iterator for InstructionIter<'_> {
    type Item = InstrId;

    fn next(&mut self) -> Option<InstrId> {
        let id = self.next?;
        self.next = self.module.instr(id).next;
        Some(id)
    }
}

/// A fresh instruction without attributes or name; fill in with struct update syntax or
/// [`NewInstruction::attr`].
impl NewInstruction {
    /// Opcode, shape, operands; the name is the opcode's until [`Module::unique_name`] gives one.
    pub fn new(opcode: Opcode, shape: Shape, operands: &[InstrId]) -> Self {
        Self {
            opcode,
            shape,
            name: opcode.name().into(),
            operands: operands.into(),
            attrs: Attrs::new(),
            span: Span::NONE,
        }
    }

    /// With an attribute.
    #[must_use]
    pub fn attr(mut self, key: AttrKey, value: AttrValue) -> Self {
        self.attrs.set(key, value);
        self
    }

    /// With a name.
    #[must_use]
    pub fn named(mut self, name: impl Into<Name>) -> Self {
        self.name = name.into();
        self
    }
}
