//! Parameters and constants: merged, and exchanged for each other.

use std::sync::Arc;

use hlo::attrs::{AttrKey, AttrValue};
use hlo::{ArrayLiteral, Attrs, ConstantValue, InstrId, Literal, Module, NewInstruction, Opcode, Shape};

use super::Edit;
use crate::reduce::Candidate;
use crate::reduce::program::{Live, Tidy, all_instructions, arrays_of, input_offsets};
use crate::reduce::search::Context;

fn is_source(module: &Module, id: InstrId) -> bool {
    matches!(module.instr(id).opcode, Opcode::Parameter | Opcode::Constant | Opcode::Iota)
}

/// Each parameter or constant by an earlier one of the same shape, in every computation.
pub(super) fn merge(context: &Context<'_>) -> Vec<Edit> {
    let module = &context.program.module;
    let mut edits: Vec<Edit> = Vec::new();
    for &computation in module.computations() {
        let sources: Vec<InstrId> =
            module.instructions(computation).filter(|&id| is_source(module, id)).collect();
        for (n, &id) in sources.iter().enumerate() {
            // The first of the same shape, and the one just before: enough to find chains, and linear.
            let same = |&&o: &&InstrId| module.instr(o).shape.compatible(&module.instr(id).shape);
            let first = sources[..n].iter().find(same).copied();
            let last = sources[..n].iter().rev().find(same).copied().filter(|l| Some(*l) != first);
            for other in first.into_iter().chain(last) {
                edits.push(Box::new(move |c| {
                    let fits = c.alive(id) && c.alive(other) && !c.module.users(id).is_empty();
                    if fits {
                        c.replace(id, other);
                    }
                    fits
                }));
            }
        }
    }
    edits
}

/// Each parameter as a constant, each constant as a parameter, and each tuple parameter as one for each
/// element.
pub(super) fn exchange(context: &Context<'_>) -> Vec<Edit> {
    let module = &context.program.module;
    let entry = module.entry();
    let mut edits: Vec<Edit> = Vec::new();
    for id in module.instructions(entry) {
        let i = module.instr(id);
        match i.opcode {
            Opcode::Parameter if i.shape.as_tuple().is_some() => edits.push(Box::new(move |c| split(c, id))),
            Opcode::Parameter => edits.push(Box::new(move |c| to_constant(c, id))),
            Opcode::Constant | Opcode::Iota => edits.push(Box::new(move |c| to_parameter(c, id))),
            _ => {}
        }
    }
    edits
}

/// The arrays of a parameter of the entry computation on each device.
pub(crate) fn values_of(c: &Candidate, parameter: InstrId) -> Option<Vec<Vec<ArrayLiteral>>> {
    let at = *input_offsets(&c.module).get(&parameter)?;
    let n = arrays_of(&c.module.instr(parameter).shape);
    c.inputs.iter().map(|device| device.get(at..at + n).map(<[ArrayLiteral]>::to_vec)).collect()
}

fn to_constant(c: &mut Candidate, id: InstrId) -> bool {
    if !c.alive(id) || c.module.instr(id).shape.as_array().is_none() || c.module.users(id).is_empty() {
        return false;
    }
    let Some(values) = values_of(c, id) else { return false };
    let first = values[0][0].clone();
    if first.buffer.len() > 64 || values.iter().any(|v| v[0] != first) {
        return false;
    }
    let literal = AttrValue::Literal(ConstantValue::Given(Arc::new(Literal::Array(first))));
    let attrs = Attrs::new().with(AttrKey::ConstantValue, literal);
    let shape = c.module.instr(id).shape.clone();
    let name = c.module.unique_name("constant");
    let entry = c.module.entry();
    let new = NewInstruction { attrs, ..NewInstruction::new(Opcode::Constant, shape, &[]) };
    let constant = c.module.insert_after(entry, None, new.named(name));
    c.replace(id, constant);
    true
}

fn to_parameter(c: &mut Candidate, id: InstrId) -> bool {
    if !c.alive(id) || c.module.users(id).is_empty() {
        return false;
    }
    let i = c.module.instr(id);
    let shape = i.shape.clone();
    let value = match i.attrs.constant_value() {
        Some(ConstantValue::Given(literal)) => literal.as_array().cloned(),
        Some(ConstantValue::Elided) => None,
        None => iota(&shape, i.attrs.int(AttrKey::IotaDimension)),
    };
    let Some(value) = value else { return false };
    let devices = c.inputs.len();
    let Some(p) = c.add_parameter(vec![value; devices]) else { return false };
    c.module.instr_mut(p).shape = shape;
    c.replace(id, p);
    true
}

fn iota(shape: &Shape, dimension: Option<i64>) -> Option<ArrayLiteral> {
    use crate::reduce::values::{Scalar, from_scalars};
    let a = shape.as_array()?;
    let d = usize::try_from(dimension?).ok()?;
    let n = usize::try_from(a.checked_elements()?).ok().filter(|&n| n <= 1 << 20)?;
    let inner: i64 = a.dims.get(d + 1..)?.iter().product();
    let numbers: Vec<Scalar> = (0..n as i64)
        .map(|i| i / inner.max(1) % a.dims[d])
        .map(|i| i as i128)
        .map(|i| if a.element_type.is_integer() { Scalar::Int(i) } else { Scalar::Real(i as f64, 0.0) })
        .collect();
    ArrayLiteral::new(a.dims.clone(), from_scalars(a.element_type, &numbers))
}

/// A tuple parameter that is only taken apart, as parameters.
fn split(c: &mut Candidate, id: InstrId) -> bool {
    if !c.alive(id) {
        return false;
    }
    let users: Vec<InstrId> = c.module.users(id).iter().map(|u| u.user).collect();
    let (Some(values), Some(shapes)) =
        (values_of(c, id), c.module.instr(id).shape.as_tuple().map(<[Shape]>::to_vec))
    else {
        return false;
    };
    let mut applied = false;
    for u in users {
        let i = c.module.instr(u);
        let Some(k) = i.attrs.int(AttrKey::Index).filter(|_| i.opcode == Opcode::GetTupleElement) else {
            continue;
        };
        let Some(k) =
            usize::try_from(k).ok().filter(|&k| shapes.get(k).is_some_and(|s| s.as_array().is_some()))
        else {
            continue;
        };
        let at: usize = shapes[..k].iter().map(arrays_of).sum();
        let value = values.iter().map(|v| v[at].clone()).collect();
        if let Some(p) = c.add_parameter(value) {
            c.replace(u, p);
            applied = true;
        }
    }
    applied
}

/// Each instruction, parameter and computation that nothing needs; where a failure depends on some of them,
/// the others go.
pub(super) fn dead(context: &Context<'_>) -> Vec<Edit> {
    let module = &context.program.module;
    let live = Live::of(module, Tidy::Parameters);
    let mut edits: Vec<Edit> = Vec::new();
    for &computation in module.computations() {
        if !live.computations.contains(&computation) {
            edits.push(Box::new(move |c| {
                let called = all_instructions(&c.module)
                    .any(|id| c.module.instr(id).attrs.called_computations().contains(&computation));
                let there = c.module.computations().contains(&computation);
                if there && !called {
                    c.module.remove_computation(computation);
                }
                there && !called
            }));
        }
    }
    let idle = |&id: &InstrId| !live.has(id) || module.instr(id).opcode.flags().side_effect;
    let mut ids: Vec<InstrId> = all_instructions(module).filter(idle).collect();
    ids.reverse();
    for id in ids {
        edits.push(Box::new(move |c| remove(c, id)));
    }
    edits
}

fn remove(c: &mut Candidate, id: InstrId) -> bool {
    if !c.alive(id) || !c.module.users(id).is_empty() {
        return false;
    }
    let i = c.module.instr(id);
    let (parent, entry) = (i.parent(), c.module.entry());
    let orders = |o: InstrId| c.module.instr(o).control_predecessors.contains(&id);
    if c.module.root(parent) == id || c.module.instructions(parent).any(orders) {
        return false;
    }
    if i.opcode == Opcode::Parameter {
        if parent != entry {
            return false;
        }
        let Some(&at) = input_offsets(&c.module).get(&id) else { return false };
        let n = arrays_of(&c.module.instr(id).shape);
        for device in &mut c.inputs {
            device.drain(at..at + n);
        }
    }
    let operands = c.module.instr(id).operands().to_vec();
    c.module.remove(id);
    // What was started for this one goes with it.
    for o in operands {
        if c.alive(o) && c.module.instr(o).opcode.flags().side_effect {
            remove(c, o);
        }
    }
    true
}
