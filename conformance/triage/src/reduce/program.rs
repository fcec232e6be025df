//! Programs under reduction: edits leave dead code behind and keep ids; [`finished`] makes of that the
//! program that is tried.

use std::sync::Arc;

use hlo::attrs::{AttrKey, AttrValue};
use hlo::print::{PrintOptions, print_module};
use hlo::{
    ArrayLiteral, Attrs, ComputationId, ConstantValue, InstrId, Literal, Module, Name, NewInstruction,
    Opcode, ProgramShape, Shape, Span, TextStyle,
};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::Candidate;

/// How much is tidied up in a program that is tried. A failure may depend on what tidying takes away, so less
/// is tried too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Tidy {
    /// Nothing: ids are renumbered, and that is all.
    Nothing,
    /// What no result depends on goes, and computations that nothing calls; names become short.
    Code,
    /// Parameters that nothing uses go too.
    Parameters,
}

impl Tidy {
    /// In descending order.
    pub(crate) const ALL: [Tidy; 3] = [Tidy::Parameters, Tidy::Code, Tidy::Nothing];
}

/// The text of a program: short, with everything that the module says.
pub fn text(module: &Module) -> String {
    print_module(
        module,
        &PrintOptions::with_style(TextStyle { layouts: has_layouts(module), ..TextStyle::SHORT }),
    )
}

fn has_layouts(module: &Module) -> bool {
    fn any(shape: &Shape) -> bool {
        shape.leaves().iter().any(|s| match s {
            Shape::Array(a) => a.layout.is_some(),
            Shape::Buffer(inner) => any(inner),
            Shape::Tuple(_) | Shape::Token | Shape::Opaque => false,
        })
    }
    all_instructions(module).any(|id| any(&module.instr(id).shape))
}

/// All instructions, in the order of the text.
pub(crate) fn all_instructions(module: &Module) -> impl Iterator<Item = InstrId> + '_ {
    module.computations().iter().flat_map(|&c| module.instructions(c))
}

/// How many arrays a parameter of this shape consumes of the inputs.
pub fn arrays_of(shape: &Shape) -> usize {
    match shape {
        Shape::Array(_) => 1,
        Shape::Tuple(t) => t.iter().map(arrays_of).sum(),
        Shape::Buffer(inner) => arrays_of(inner),
        Shape::Token | Shape::Opaque => 0,
    }
}

/// For each parameter of the entry computation, where its arrays begin.
pub(crate) fn input_offsets(module: &Module) -> FxHashMap<InstrId, usize> {
    let mut at = 0;
    let mut offsets = FxHashMap::default();
    for &p in module.computation(module.entry()).parameters().iter().flatten() {
        offsets.insert(p, at);
        at += arrays_of(&module.instr(p).shape);
    }
    offsets
}

impl Candidate {
    /// Whether the instruction is (still) in the module and not removed.
    pub fn alive(&self, id: InstrId) -> bool {
        id.index() < self.module.instruction_capacity() && !self.module.is_removed(id)
    }

    /// Adds a parameter to the entry computation; `values` has an array for each device.
    pub(crate) fn add_parameter(&mut self, values: Vec<ArrayLiteral>) -> Option<InstrId> {
        let shape = Shape::Array(values.first()?.shape());
        let entry = self.module.entry();
        let number = self.module.computation(entry).parameters().len();
        for (device, value) in self.inputs.iter_mut().zip(values) {
            device.push(value);
        }
        let attrs = Attrs::new().with(AttrKey::ParameterNumber, AttrValue::Int(number as i64));
        let new = NewInstruction { attrs, ..NewInstruction::new(Opcode::Parameter, shape, &[]) };
        let name = self.module.unique_name("p");
        Some(self.module.insert_after(entry, None, new.named(name)))
    }

    /// Adds an instruction before another one.
    pub(crate) fn add_before(
        &mut self,
        anchor: InstrId,
        opcode: Opcode,
        shape: Shape,
        operands: &[InstrId],
        attrs: Attrs,
    ) -> InstrId {
        let name = self.module.unique_name(opcode.name());
        let span = self.module.instr(anchor).span;
        let new = NewInstruction { attrs, span, ..NewInstruction::new(opcode, shape, operands) };
        self.module.insert_before(anchor, new.named(name))
    }

    /// Adds a constant before an instruction.
    pub(crate) fn add_constant(&mut self, anchor: InstrId, value: Literal) -> InstrId {
        let shape = value.shape();
        let value = AttrValue::Literal(ConstantValue::Given(Arc::new(value)));
        self.add_before(
            anchor,
            Opcode::Constant,
            shape,
            &[],
            Attrs::new().with(AttrKey::ConstantValue, value),
        )
    }

    /// Makes all users of an instruction use another one, and that the root where the first was. Users that
    /// come before `new` must not exist.
    pub fn replace(&mut self, old: InstrId, new: InstrId) {
        self.module.replace_all_uses(old, new);
    }

    /// The elements of a value of tuple shape as instructions, or the value itself: get-tuple-elements are
    /// added before `anchor`.
    pub fn elements(&mut self, value: InstrId, anchor: InstrId) -> Vec<InstrId> {
        if self.module.instr(value).opcode == Opcode::Tuple {
            return self.module.instr(value).operands().to_vec();
        }
        let Some(shapes) = self.module.instr(value).shape.as_tuple().map(<[Shape]>::to_vec) else {
            return vec![value];
        };
        (0..).zip(shapes).map(|(i, shape)| self.element(value, i, shape, anchor)).collect()
    }

    /// One element of a tuple value.
    pub fn element(&mut self, value: InstrId, index: i64, shape: Shape, anchor: InstrId) -> InstrId {
        if self.module.instr(value).opcode == Opcode::Tuple
            && let Some(&operand) =
                usize::try_from(index).ok().and_then(|i| self.module.instr(value).operands().get(i))
        {
            return operand;
        }
        let attrs = Attrs::new().with(AttrKey::Index, AttrValue::Int(index));
        self.add_before(anchor, Opcode::GetTupleElement, shape, &[value], attrs)
    }

    /// Adds a tuple before an instruction.
    pub(crate) fn add_tuple(&mut self, anchor: InstrId, elements: &[InstrId]) -> InstrId {
        let shape = Shape::tuple(elements.iter().map(|&e| self.module.instr(e).shape.clone()));
        self.add_before(anchor, Opcode::Tuple, shape, elements, Attrs::new())
    }
}

/// Which instructions of which computations are needed for the result of the entry computation.
#[derive(Debug)]
pub struct Live {
    instructions: Vec<bool>,
    /// Computations that are called, callees before callers; the entry is the last.
    pub computations: Vec<ComputationId>,
}

impl Live {
    /// Whether an instruction is needed.
    pub fn has(&self, id: InstrId) -> bool {
        self.instructions.get(id.index()).copied().unwrap_or(false)
    }

    /// What is needed in a module. With [`Tidy::Nothing`], everything; unused parameters of entry, calls and
    /// fusions are needed unless [`Tidy::Parameters`].
    pub(crate) fn of(module: &Module, tidy: Tidy) -> Live {
        let mut live = Live {
            instructions: vec![false; module.instruction_capacity()],
            computations: if tidy == Tidy::Nothing {
                module.computations().to_vec()
            } else {
                called(module, |_| true)
            },
        };
        let droppable = droppable_parameters(module, tidy);
        for c in live.computations.clone() {
            let ids: Vec<InstrId> = module.instructions(c).collect();
            for &id in ids.iter().rev() {
                let instr = module.instr(id);
                let needed = live.has(id)
                    || tidy == Tidy::Nothing
                    || module.computation(c).root() == Some(id)
                    || instr.opcode.flags().side_effect
                    || instr.opcode == Opcode::Parameter && !droppable.contains(&c);
                if !needed {
                    continue;
                }
                live.instructions[id.index()] = true;
                let callee = called_like_a_function(module, id).filter(|c| droppable.contains(c));
                for (slot, &operand) in instr.operands().iter().enumerate() {
                    let wanted = match callee {
                        None => true,
                        Some(callee) => module
                            .computation(callee)
                            .parameters()
                            .get(slot)
                            .is_none_or(|p| p.is_none_or(|p| live.has(p))),
                    };
                    if wanted {
                        live.instructions[operand.index()] = true;
                    }
                }
                for p in &instr.control_predecessors {
                    live.instructions[p.index()] = true;
                }
            }
        }
        if tidy != Tidy::Nothing {
            live.computations = called(module, |id| live.has(id));
        }
        live
    }
}

/// The computation whose parameters are the operands of an instruction, one for one.
pub(crate) fn called_like_a_function(module: &Module, id: InstrId) -> Option<ComputationId> {
    let instr = module.instr(id);
    match instr.opcode {
        Opcode::Call | Opcode::Map => instr.attrs.computation(AttrKey::ToApply),
        Opcode::Fusion => instr.attrs.computation(AttrKey::Calls),
        _ => None,
    }
}

/// Computations all of whose uses are calls and fusions, and the entry: their parameters may go.
fn droppable_parameters(module: &Module, tidy: Tidy) -> FxHashSet<ComputationId> {
    if tidy != Tidy::Parameters {
        return FxHashSet::default();
    }
    let mut droppable: FxHashSet<ComputationId> = module.computations().iter().copied().collect();
    for id in all_instructions(module) {
        let instr = module.instr(id);
        if !matches!(instr.opcode, Opcode::Call | Opcode::Fusion) {
            for c in instr.attrs.called_computations() {
                droppable.remove(&c);
            }
        }
    }
    droppable
}

/// Computations that the entry reaches through these instructions, callees before callers.
fn called(module: &Module, through: impl Fn(InstrId) -> bool) -> Vec<ComputationId> {
    let mut order = Vec::new();
    let mut done: FxHashSet<ComputationId> = FxHashSet::default();
    // A computation is pushed twice: to visit its callees, and then to be emitted behind them (postorder).
    let mut pending = vec![(module.entry(), false)];
    while let Some((c, seen)) = pending.pop() {
        if done.contains(&c) {
            continue;
        }
        if seen {
            done.insert(c);
            order.push(c);
            continue;
        }
        pending.push((c, true));
        let ids: Vec<InstrId> = module.instructions(c).collect();
        for id in ids.into_iter().rev().filter(|&id| through(id)) {
            let callees = module.instr(id).attrs.called_computations();
            pending.extend(callees.into_iter().rev().map(|callee| (callee, false)));
        }
    }
    order
}

/// The program that results from edits, as it is tried: without what is not needed, parameters numbered
/// without gaps, short names, ids in the order of the text.
pub(crate) fn finished(raw: &Candidate, tidy: Tidy) -> Candidate {
    let source = &raw.module;
    let live = Live::of(source, tidy);
    let keep_names = tidy == Tidy::Nothing;
    let mut module = Module::new(if keep_names { &source.name } else { "reduced" });
    module.header = source.header.clone();
    module.stack_tables = source.stack_tables.clone();
    module.text_style = TextStyle { layouts: has_layouts(source), ..TextStyle::SHORT };
    let mut computations: FxHashMap<ComputationId, ComputationId> = FxHashMap::default();
    let mut instructions: FxHashMap<InstrId, InstrId> = FxHashMap::default();
    let offsets = input_offsets(source);
    let mut inputs: Vec<Vec<ArrayLiteral>> = vec![Vec::new(); raw.inputs.len()];
    for &old in &live.computations {
        let c = source.computation(old);
        let name = if keep_names {
            c.name.clone()
        } else {
            module.unique_computation_name(&computation_name(source, old))
        };
        let new = module.add_computation(name, if keep_names { c.span } else { Span::NONE });
        module.computation_mut(new).execution_thread.clone_from(&c.execution_thread);
        computations.insert(old, new);
        let mut parameters: FxHashMap<InstrId, i64> = FxHashMap::default();
        for &p in c.parameters().iter().flatten().filter(|&&p| live.has(p)) {
            parameters.insert(p, parameters.len() as i64);
            if old == source.entry() {
                let (at, n) = (offsets[&p], arrays_of(&source.instr(p).shape));
                for (to, from) in inputs.iter_mut().zip(&raw.inputs) {
                    to.extend(from.iter().skip(at).take(n).cloned());
                }
            }
        }
        let mut names: FxHashMap<String, usize> = FxHashMap::default();
        for id in source.instructions(old).filter(|&id| live.has(id)) {
            let i = source.instr(id);
            let mut attrs = i.attrs.clone();
            attrs.map_computations(|c| computations[&c]);
            if let Some(&number) = parameters.get(&id) {
                attrs.set(AttrKey::ParameterNumber, AttrValue::Int(number));
            }
            let name: Name = if keep_names {
                i.name.clone()
            } else if let Some(number) = parameters.get(&id) {
                format!("p{number}").into()
            } else {
                let n = names.entry(i.opcode.name().to_owned()).or_insert(0);
                *n += 1;
                if *n == 1 {
                    i.opcode.name().into()
                } else {
                    format!("{}.{}", i.opcode.name(), *n - 1).into()
                }
            };
            let callee = called_like_a_function(source, id).filter(|_| i.opcode != Opcode::Map);
            let operands: SmallVec<[InstrId; 2]> = (i.operands().iter().enumerate())
                .filter(|&(slot, _)| {
                    let parameter =
                        callee.and_then(|c| source.computation(c).parameters().get(slot).copied().flatten());
                    parameter.is_none_or(|p| live.has(p))
                })
                .filter_map(|(_, o)| instructions.get(o).copied())
                .collect();
            let span = if keep_names { i.span } else { Span::NONE };
            let instr =
                NewInstruction { opcode: i.opcode, shape: i.shape.clone(), name, operands, attrs, span };
            let copy = module.append(new, instr);
            module.instr_mut(copy).control_predecessors =
                i.control_predecessors.iter().filter_map(|p| instructions.get(p).copied()).collect();
            instructions.insert(id, copy);
        }
        if let Some(root) = c.root().and_then(|r| instructions.get(&r)) {
            module.set_root(new, *root);
        }
    }
    module.set_entry(computations[&source.entry()]);
    fit_entry_layout(&mut module);
    Candidate { module, inputs }
}

/// A name for a computation that says what it does: its root's opcode.
fn computation_name(module: &Module, c: ComputationId) -> String {
    if c == module.entry() {
        return "main".into();
    }
    match module.computation(c).root().map(|r| module.instr(r).opcode) {
        Some(Opcode::Tuple | Opcode::Parameter) | None => "f".into(),
        Some(opcode) => format!("{opcode}_f"),
    }
}

/// The layout in the header follows the program where that has changed.
fn fit_entry_layout(module: &mut Module) {
    let Some(declared) = &module.header.entry_computation_layout else { return };
    let Some(actual) = module.program_shape(module.entry()) else { return };
    let same = declared.parameters.len() == actual.parameters.len()
        && declared.result.compatible(&actual.result)
        && declared.parameters.iter().zip(&actual.parameters).all(|(a, b)| a.compatible(b));
    if !same {
        let parameters = actual.parameters.iter().map(Shape::without_layout).collect();
        let result = actual.result.without_layout();
        module.header.entry_computation_layout = Some(ProgramShape { parameters, result });
    }
}

/// A number for a program and its inputs: equal ones are not tried twice.
pub(crate) fn fingerprint(candidate: &Candidate) -> u128 {
    let mut hash = hlo::fingerprint(&candidate.module);
    let mut mix =
        |x: u64| hash = (hash ^ u128::from(x)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    for device in &candidate.inputs {
        mix(device.len() as u64);
        for array in device {
            mix(array.buffer.element_type() as u64);
            array.dims.iter().for_each(|&d| mix(d as u64));
            super::values::for_each_bits(&array.buffer, &mut |bits| {
                mix(bits as u64);
                if bits >> 64 != 0 {
                    mix((bits >> 64) as u64);
                }
            });
        }
    }
    hash
}
