//! A computation of another program, called on values of this one.

use std::sync::Arc;

use hlo::attrs::{AttrKey, AttrValue};
use hlo::{Attrs, ComputationId, ConstantValue, InstrId, Literal, Module, NewInstruction, Opcode, Shape};
use rustc_hash::FxHashMap;

use super::Mutator;
use crate::generate::{Mode, array};

/// Instructions that a computation may have, callees included.
const MAX_INSTRUCTIONS: usize = 200;

/// Elements that an array for a parameter that nothing here fits may have.
const MAX_PARAMETER_ELEMENTS: i64 = 1 << 14;

/// Adds a computation of a donor: its parameters are values of the entry computation where the shapes fit,
/// and constants elsewhere; its result becomes a part of the program's.
pub(super) fn splice(m: &mut Mutator<'_>) -> Option<()> {
    let donors = m.donors;
    (!donors.is_empty()).then_some(())?;
    let donor = donors[m.choices.below(donors.len())];
    let fits: Vec<ComputationId> =
        donor.computations().iter().copied().filter(|&c| usable(donor, c)).collect();
    (!fits.is_empty()).then_some(())?;
    let source = m.choices.pick(&fits);
    let mut copies = FxHashMap::default();
    let callee = imported(&mut m.module, donor, source, &mut copies);
    let entry = m.module.entry();
    let root = m.module.root(entry);
    let shapes: Vec<Shape> = m.module.program_shape(callee)?.parameters;
    let mut operands = Vec::new();
    for shape in &shapes {
        let wanted = shape.as_array()?;
        let mut known = m.earlier(root, |a| a.same_dims(wanted));
        known.retain(|&id| m.module.instr(id).opcode != Opcode::Tuple);
        operands.push(if known.is_empty() {
            let literal = Literal::Array(array(&wanted.without_layout(), Mode::Moderate, 3));
            let value = AttrValue::Literal(ConstantValue::Given(Arc::new(literal)));
            let attrs = Attrs::new().with(AttrKey::ConstantValue, value);
            m.before_shaped(root, Opcode::Constant, shape.without_layout(), &[], attrs)
        } else {
            m.choices.pick(&known)
        });
    }
    let attrs = Attrs::new().with(AttrKey::ToApply, AttrValue::Computation(callee));
    let made = m.before(root, Opcode::Call, &operands, attrs)?;
    extend(m, entry, root, made)
}

/// Makes a value a part of the program's result.
fn extend(m: &mut Mutator<'_>, entry: ComputationId, root: InstrId, made: InstrId) -> Option<()> {
    let parts = if m.module.instr(root).opcode == Opcode::Tuple {
        m.module.instr(root).operands().iter().copied().chain([made]).collect()
    } else {
        vec![root, made]
    };
    let shape =
        Shape::tuple(parts.iter().map(|&p| m.module.instr(p).shape.without_layout()).collect::<Vec<_>>());
    let name = m.module.unique_name("tuple");
    let new = NewInstruction { name, ..NewInstruction::new(Opcode::Tuple, shape, &parts) };
    let whole = m.module.append(entry, new);
    m.module.set_root(entry, whole);
    m.prune(entry);
    // They speak of another result.
    m.module.header.entry_computation_layout = None;
    m.module.header.input_output_alias.clear();
    m.module.header.spmd_propagation_to_output = None;
    m.module.computation_mut(entry).declared = None;
    Some(())
}

/// Whether a computation takes and gives arrays, is small, and does not communicate; what it calls too.
fn usable(donor: &Module, computation: ComputationId) -> bool {
    let Some(shape) = donor.program_shape(computation) else { return false };
    let small = |s: &Shape| {
        s.as_array().is_some_and(|a| {
            !a.is_dynamic() && a.checked_elements().is_some_and(|n| n <= MAX_PARAMETER_ELEMENTS)
        })
    };
    if !shape.parameters.iter().all(small) || !shape.result.leaves().into_iter().all(small) {
        return false;
    }
    let mut pending = vec![computation];
    let mut count = 0;
    while let Some(c) = pending.pop() {
        for id in donor.instructions(c) {
            let instr = donor.instr(id);
            let flags = instr.opcode.flags();
            let alone = matches!(instr.opcode, Opcode::PartitionId | Opcode::ReplicaId | Opcode::Domain);
            if flags.side_effect || flags.collective || alone {
                return false;
            }
            count += 1;
            if count > MAX_INSTRUCTIONS {
                return false;
            }
            pending.extend(instr.attrs.called_computations());
        }
    }
    count > 1
}

/// A copy of a computation and what it calls.
fn imported(
    module: &mut Module,
    donor: &Module,
    source: ComputationId,
    copies: &mut FxHashMap<ComputationId, ComputationId>,
) -> ComputationId {
    if let Some(&copy) = copies.get(&source) {
        return copy;
    }
    // Callees first; what `usable` counted bounds the depth.
    let called: Vec<ComputationId> =
        donor.instructions(source).flat_map(|id| donor.instr(id).attrs.called_computations()).collect();
    for c in called {
        imported(module, donor, c, copies);
    }
    let name = module.unique_computation_name(&donor.computation(source).name);
    let copy = module.add_computation(name, hlo::Span::NONE);
    let mut known: FxHashMap<InstrId, InstrId> = FxHashMap::default();
    for id in donor.instructions(source) {
        let instr = donor.instr(id);
        let mut attrs = instr.attrs.clone();
        attrs.map_computations(|c| copies[&c]);
        // They speak of the donor's devices and source files.
        for key in [AttrKey::Sharding, AttrKey::Metadata, AttrKey::Origin] {
            attrs.remove(key);
        }
        let operands: Vec<InstrId> = instr.operands().iter().map(|o| known[o]).collect();
        let name = module.unique_name(&instr.name);
        let new = NewInstruction {
            name,
            attrs,
            ..NewInstruction::new(instr.opcode, instr.shape.clone(), &operands)
        };
        known.insert(id, module.append(copy, new));
    }
    if let Some(root) = donor.computation(source).root() {
        module.set_root(copy, known[&root]);
    }
    copies.insert(source, copy);
    copy
}
