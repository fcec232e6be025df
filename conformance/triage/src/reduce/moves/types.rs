//! Simpler element types, in the whole program at once.

use std::sync::Arc;

use hlo::attrs::{AttrKey, AttrValue};
use hlo::{ConstantValue, ElementType, InstrId, Literal, Shape, TypeClass};

use super::Edit;
use crate::reduce::Candidate;
use crate::reduce::metric::type_cost;
use crate::reduce::program::all_instructions;
use crate::reduce::search::Context;
use crate::reduce::values::retyped;

/// What may stand for a type, the best first.
fn simpler_types(ty: ElementType) -> &'static [ElementType] {
    match ty.class() {
        TypeClass::Float => &[ElementType::F32, ElementType::F64],
        TypeClass::Signed | TypeClass::Unsigned => {
            &[ElementType::S32, ElementType::F32, ElementType::S64, ElementType::U32, ElementType::U8]
        }
        TypeClass::Complex => &[ElementType::F32, ElementType::C64],
        TypeClass::Pred => &[ElementType::S32, ElementType::F32],
    }
}

/// Each type, by each that may stand for it.
pub(super) fn simpler(context: &Context<'_>) -> Vec<Edit> {
    let module = &context.program.module;
    let mut types: Vec<ElementType> = Vec::new();
    for id in all_instructions(module) {
        module.instr(id).shape.for_each_leaf(&mut |leaf| types.extend(leaf.element_type()));
    }
    types.sort_unstable();
    types.dedup();
    let mut edits: Vec<Edit> = Vec::new();
    for &from in types.iter().rev() {
        for &to in simpler_types(from) {
            if from != to && (type_cost(to) < type_cost(from) || types.contains(&to)) {
                edits.push(Box::new(move |c| substitute(c, from, to)));
            }
        }
    }
    edits
}

fn new_shape(shape: &Shape, from: ElementType, to: ElementType) -> Shape {
    match shape {
        Shape::Array(a) if a.element_type == from => Shape::Array(a.with_type(to)),
        Shape::Tuple(t) => Shape::tuple(t.iter().map(|s| new_shape(s, from, to))),
        Shape::Buffer(inner) => Shape::Buffer(Arc::new(new_shape(inner, from, to))),
        Shape::Array(_) | Shape::Token | Shape::Opaque => shape.clone(),
    }
}

fn new_literal(literal: &Literal, from: ElementType, to: ElementType) -> Literal {
    match literal {
        Literal::Array(a) if a.buffer.element_type() == from => Literal::Array(retyped(a, to)),
        Literal::Tuple(t) => Literal::Tuple(t.iter().map(|l| new_literal(l, from, to)).collect()),
        Literal::Array(_) | Literal::Token => literal.clone(),
    }
}

fn substitute(c: &mut Candidate, from: ElementType, to: ElementType) -> bool {
    let ids: Vec<InstrId> = all_instructions(&c.module).collect();
    let mut changed = false;
    for id in ids {
        let i = c.module.instr(id);
        let shape = new_shape(&i.shape, from, to);
        if shape == i.shape {
            continue;
        }
        let value = match i.attrs.constant_value() {
            Some(ConstantValue::Given(literal)) => Some(Arc::new(new_literal(literal, from, to))),
            Some(ConstantValue::Elided) | None => None,
        };
        let i = c.module.instr_mut(id);
        i.shape = shape;
        if let Some(value) = value {
            i.attrs.set(AttrKey::ConstantValue, AttrValue::Literal(ConstantValue::Given(value)));
        }
        changed = true;
    }
    if !changed {
        return false;
    }
    // Results whose type follows in another way (`real`, `compare`, ...) are what the verifier is for; inputs
    // follow.
    for array in c.inputs.iter_mut().flatten() {
        if array.buffer.element_type() == from {
            *array = retyped(array, to);
        }
    }
    true
}
