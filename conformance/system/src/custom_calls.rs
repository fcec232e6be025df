//! Values for unknown custom calls, as given on the command line (`--custom-call NAME=WHAT`).
//!
//! The calls are rewritten to HLO before any engine sees the program, so that all engines agree on what they
//! are compared on: a copy, zeros, or recorded constants. **Invariant:** what is left verifies, and no call
//! of a target that was named is left.

use std::collections::BTreeSet;

use hlo::attrs::{AttrKey, AttrValue, COMMON};
use hlo::literal::{ArrayLiteral, Buffer};
use hlo::{ArrayShape, InstrId, Literal, Module, NewInstruction, Opcode, Shape};

use crate::exit::Failure;
use crate::npz::Npz;

/// The results of a target's calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Substitute {
    /// Their operands.
    Identity,
    /// Zeros.
    Zeros,
    /// The arrays `out0`, `out1`, ... of a file, on every execution and every device.
    Recorded(String),
}

/// `NAME=WHAT`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Substitution {
    /// The `custom_call_target`.
    pub target: String,
    /// The results of its calls.
    pub gives: Substitute,
}

impl std::str::FromStr for Substitution {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let forms = "expected NAME=identity, NAME=zeros or NAME=FILE.npz (functions of libraries: --load LIBRARY.so:NAME=SYMBOL)";
        let (target, what) = text.split_once('=').ok_or(forms)?;
        let gives = match what {
            "identity" => Substitute::Identity,
            "zeros" => Substitute::Zeros,
            file if file.ends_with(".npz") => Substitute::Recorded(file.to_owned()),
            _ => return Err(forms.to_owned()),
        };
        if target.is_empty() {
            return Err(forms.to_owned());
        }
        Ok(Substitution { target: target.to_owned(), gives })
    }
}

/// The targets that a program calls.
pub fn targets(module: &Module) -> BTreeSet<String> {
    let all = module.computations().iter().flat_map(|&c| module.instructions(c)).map(|id| module.instr(id));
    all.filter(|instr| instr.opcode == Opcode::CustomCall)
        .filter_map(|instr| Some(instr.attrs.str(AttrKey::CustomCallTarget)?.to_owned()))
        .collect()
}

/// Rewrites all calls of the targets that are named, and marks those that loaded libraries implement
/// ([`crate::loaded`]); `limit` is the maximum number of bytes of an array that is read. A program without
/// such calls stays as it is.
///
/// Errors: [`crate::exit::Exit::Usage`] if operands and results do not fit together, or a file does not.
pub fn apply(substitutions: &[Substitution], module: &mut Module, limit: u64) -> Result<(), Failure> {
    let mut changed = false;
    for s in substitutions {
        let all = module.computations().iter().flat_map(|&c| module.instructions(c));
        let is_named = |id: &InstrId| {
            let instr = module.instr(*id);
            instr.opcode == Opcode::CustomCall
                && instr.attrs.str(AttrKey::CustomCallTarget) == Some(&s.target)
        };
        let calls: Vec<InstrId> = all.filter(is_named).collect();
        for call in calls {
            let new = match &s.gives {
                Substitute::Identity => identity(module, call, &s.target)?,
                Substitute::Zeros => value(module, call, &mut |module, shape| zeros(module, call, shape))?,
                Substitute::Recorded(path) => {
                    let (mut file, mut next) = (Npz::open(path, limit)?, 0);
                    value(module, call, &mut |module, shape| {
                        let array = file.array(&format!("out{next}"), shape)?;
                        next += 1;
                        Ok(constant(module, call, shape.clone(), array))
                    })?
                }
            };
            take_over(module, call, new);
            changed = true;
        }
    }
    crate::loaded::mark(module);
    if !changed {
        return Ok(());
    }
    let found = hlo::verify::verify(module);
    match found.iter().find(|d| d.severity == hlo::diag::Severity::Error) {
        Some(d) => {
            Err(Failure::usage(format!("--custom-call makes a program that does not verify: {}", d.message)))
        }
        None => Ok(()),
    }
}

fn misfit(module: &Module, call: InstrId, why: &str) -> Failure {
    let instr = module.instr(call);
    let target = instr.attrs.str(AttrKey::CustomCallTarget).unwrap_or_default();
    Failure::usage(format!("--custom-call {target}: %{} {why}", instr.name))
}

/// Puts a part of what a call gives before it.
fn insert(module: &mut Module, call: InstrId, new: NewInstruction) -> InstrId {
    let name = module.unique_name(new.opcode.name());
    module.insert_before(call, new.named(name))
}

/// The operands as the result.
fn identity(module: &mut Module, call: InstrId, target: &str) -> Result<InstrId, Failure> {
    let shape = module.instr(call).shape.clone();
    let operands = module.instr(call).operands().to_vec();
    let of = |id: InstrId| &module.instr(id).shape;
    let opcode = match (operands.as_slice(), &shape) {
        (&[only], Shape::Array(a)) if of(only).as_array().is_some_and(|b| a.same_dims(b)) => Opcode::Copy,
        (&[only], Shape::Tuple(_)) if of(only).compatible(&shape) => Opcode::OptBarrier,
        (&[only], Shape::Token) if *of(only) == Shape::Token => Opcode::AfterAll,
        (several, Shape::Tuple(parts))
            if several.len() == parts.len()
                && several.iter().zip(parts.iter()).all(|(&o, part)| of(o).compatible(part)) =>
        {
            Opcode::Tuple
        }
        _ => {
            let shown: Vec<String> = operands.iter().map(|&o| of(o).without_layout().to_string()).collect();
            let why = format!(
                "gives {} of ({}): {target}=identity needs operands and results of the same shapes",
                shape.without_layout(),
                shown.join(", ")
            );
            return Err(misfit(module, call, &why));
        }
    };
    Ok(insert(module, call, NewInstruction::new(opcode, shape, &operands)))
}

/// A value of the call's shape, made of its arrays in order.
fn value(
    module: &mut Module,
    call: InstrId,
    array: &mut dyn FnMut(&mut Module, &ArrayShape) -> Result<InstrId, Failure>,
) -> Result<InstrId, Failure> {
    let shape = module.instr(call).shape.clone();
    of_shape(module, call, &shape, array)
}

/// As deep as shapes nest, which the parser bounds.
fn of_shape(
    module: &mut Module,
    call: InstrId,
    shape: &Shape,
    array: &mut dyn FnMut(&mut Module, &ArrayShape) -> Result<InstrId, Failure>,
) -> Result<InstrId, Failure> {
    let new = match shape {
        Shape::Array(a) if a.is_dynamic() => {
            return Err(misfit(module, call, "gives an array whose size is known only at run time"));
        }
        Shape::Array(a) => return array(module, a),
        Shape::Tuple(parts) => {
            let parts: Vec<InstrId> =
                parts.iter().map(|p| of_shape(module, call, p, array)).collect::<Result<_, _>>()?;
            NewInstruction::new(Opcode::Tuple, shape.clone(), &parts)
        }
        Shape::Token => NewInstruction::new(Opcode::AfterAll, Shape::Token, &[]),
        Shape::Opaque | Shape::Buffer(_) => {
            return Err(misfit(
                module,
                call,
                &format!("gives {}, which is no array", shape.without_layout()),
            ));
        }
    };
    Ok(insert(module, call, new))
}

fn constant(module: &mut Module, call: InstrId, shape: ArrayShape, array: ArrayLiteral) -> InstrId {
    let value = hlo::ConstantValue::Given(std::sync::Arc::new(Literal::Array(array)));
    let new = NewInstruction::new(Opcode::Constant, Shape::Array(shape), &[])
        .attr(AttrKey::ConstantValue, AttrValue::Literal(value));
    insert(module, call, new)
}

fn zeros(module: &mut Module, call: InstrId, shape: &ArrayShape) -> Result<InstrId, Failure> {
    let ty = shape.element_type;
    let zero = ArrayLiteral::new(hlo::Dims::new(), Buffer::zeros(ty, 1));
    let zero = zero.ok_or_else(|| Failure::internal("a scalar is no array"))?;
    let scalar = ArrayShape::new(ty, &[]);
    let zero = constant(module, call, scalar, zero);
    let none = AttrValue::Ints([].as_slice().into());
    let new = NewInstruction::new(Opcode::Broadcast, Shape::Array(shape.clone()), &[zero])
        .attr(AttrKey::Dimensions, none);
    Ok(insert(module, call, new))
}

/// Replaces a call by an instruction: its name, span, common attributes and control edges.
fn take_over(module: &mut Module, call: InstrId, new: InstrId) {
    module.replace_all_uses(call, new);
    let old = module.instr(call).clone();
    let successors: Vec<InstrId> = module
        .instructions(old.parent())
        .filter(|&id| module.instr(id).control_predecessors.contains(&call))
        .collect();
    for id in successors {
        for before in &mut module.instr_mut(id).control_predecessors {
            if *before == call {
                *before = new;
            }
        }
    }
    module.remove(call);
    let instr = module.instr_mut(new);
    (instr.name, instr.span, instr.control_predecessors) = (old.name, old.span, old.control_predecessors);
    for &key in COMMON.iter().filter(|key| **key != AttrKey::BackendConfig) {
        if let Some(value) = old.attrs.get(key) {
            instr.attrs.set(key, value.clone());
        }
    }
}
