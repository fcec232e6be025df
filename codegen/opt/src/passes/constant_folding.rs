//! Constant folding: small instructions on constants become the constants that the interpreter computes.
//!
//! How a sum rounds depends on `--accumulate`, which a pass does not know: the instruction is run in both
//! modes, and stays where they differ (what applies no computation and is no sum is run once). It also stays
//! where running it takes too long or fails, and where the result is large: a broadcast scalar says more than
//! an array, and costs less.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use hlo::opcode::Numeric;
use hlo::{ArrayLiteral, Buffer, ComputationId, InstrId, Literal, Module, NewInstruction, Opcode, Span};
use hlo_interp::{Accumulate, Interpreter, Options};
use rustc_hash::{FxHashMap, FxHashSet};

use super::PassCx;
use super::edit::{Edit, each_outside_folds};
use super::facts::literal;

/// The maximum number of elements of a result and of all operands, and of instructions that may run for it.
const MAX_RESULT: i64 = 1024;
const MAX_OPERANDS: usize = 1 << 14;
const MAX_FUEL: u64 = 100_000;
const MAX_BYTES: u64 = 64 << 20;

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_outside_folds(module, cx.fuel, folded)
}

fn folded(e: &mut Edit<'_>) -> Option<InstrId> {
    let instr = e.at();
    let array = e.array(e.id())?;
    let elements = array.checked_elements()?;
    let operands: Vec<InstrId> = instr.operands().to_vec();
    let constants: Option<Vec<Arc<Literal>>> =
        operands.iter().map(|&o| literal(e.module, o).cloned()).collect();
    let constants = constants.filter(|c| !c.is_empty())?;
    let sizes = constants.iter().map(|c| c.as_array().map_or(usize::MAX, |a| a.buffer.len()));
    let in_bounds =
        sizes.fold(0usize, usize::saturating_add) <= MAX_OPERANDS && (1..=MAX_RESULT).contains(&elements);
    // A broadcast scalar says more than an array.
    let repeats = instr.opcode == Opcode::Broadcast && e.instr(operands[0]).shape.is_scalar();
    if !in_bounds || repeats || instr.opcode == Opcode::CustomCall || e.has_effect() {
        return None;
    }
    let alone = extracted(e.module, e.id())?;
    let value = |accumulate| {
        let options =
            Options { accumulate, fuel: Some(MAX_FUEL), memory_limit_bytes: MAX_BYTES, ..Options::default() };
        Interpreter::new(&alone, options).run(Vec::new()).ok().map(hlo_interp::Value::into_literal)
    };
    let result = value(Accumulate::Exact)?;
    // Elementwise operations and movements are no sums in either mode.
    let may_sum = !instr.attrs.called_computations().is_empty()
        || matches!(
            instr.opcode.numeric(array.element_type),
            Numeric::Sum | Numeric::Region | Numeric::Called
        );
    if may_sum && value(Accumulate::Region)? != result || result.shape() != e.at().shape.without_layout() {
        return None;
    }
    Some(e.constant(result))
}

/// A module that consists of one instruction on constant operands.
fn extracted(module: &Module, id: InstrId) -> Option<Module> {
    let mut alone = Module::new("folded");
    let mut reached: FxHashSet<ComputationId> = FxHashSet::default();
    let mut pending: Vec<ComputationId> = module.instr(id).attrs.called_computations().to_vec();
    while let Some(c) = pending.pop() {
        if reached.insert(c) {
            pending.extend(module.instructions(c).flat_map(|i| module.instr(i).attrs.called_computations()));
        }
    }
    let mut computations: FxHashMap<ComputationId, ComputationId> = FxHashMap::default();
    for &c in module.computations().iter().filter(|c| reached.contains(c)) {
        computations.insert(c, alone.add_computation(module.computation(c).name.clone(), Span::NONE));
    }
    let copy = |alone: &mut Module, into, id, map: &FxHashMap<InstrId, InstrId>| {
        let instr = module.instr(id);
        let mut attrs = instr.attrs.clone();
        attrs.map_computations(|c| computations.get(&c).copied().unwrap_or(c));
        let operands = instr.operands().iter().map(|o| map.get(o).copied()).collect::<Option<_>>()?;
        let new = NewInstruction {
            opcode: instr.opcode,
            shape: instr.shape.clone(),
            name: instr.name.clone(),
            operands,
            attrs,
            span: Span::NONE,
        };
        Some(alone.append(into, new))
    };
    for &c in module.computations().iter().filter(|c| reached.contains(c)) {
        let into = computations[&c];
        let mut map: FxHashMap<InstrId, InstrId> = FxHashMap::default();
        for i in module.instructions(c) {
            let new = copy(&mut alone, into, i, &map)?;
            map.insert(i, new);
        }
        alone.set_root(into, *map.get(&module.root(c))?);
    }
    let name = alone.unique_computation_name("main");
    let entry = alone.add_computation(name, Span::NONE);
    let mut map: FxHashMap<InstrId, InstrId> = FxHashMap::default();
    for &o in module.instr(id).operands() {
        if let Entry::Vacant(new) = map.entry(o) {
            new.insert(copy(&mut alone, entry, o, &FxHashMap::default())?);
        }
    }
    let root = copy(&mut alone, entry, id, &map)?;
    alone.set_root(entry, root);
    alone.set_entry(entry);
    Some(alone)
}

/// Arrays without elements are equal, whatever computes them.
pub(super) fn empty(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_outside_folds(module, cx.fuel, |e| {
        let array = e.array(e.id())?;
        let stays = matches!(
            e.at().opcode,
            Opcode::Constant
                | Opcode::Parameter
                | Opcode::While
                | Opcode::Call
                | Opcode::Conditional
                | Opcode::Fusion
                | Opcode::CustomCall
                | Opcode::GetTupleElement
        );
        if stays || array.checked_elements() != Some(0) || e.has_effect() {
            return None;
        }
        let literal =
            ArrayLiteral { dims: array.dims.clone(), buffer: Buffer::zeros(array.element_type, 0).into() };
        Some(e.constant(Literal::Array(literal)))
    })
}
