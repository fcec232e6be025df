//! Computations, order, names, the call graph.

use rustc_hash::FxHashMap;

use super::{Verifier, count};
use crate::diag::{Diagnostic, codes};
use crate::ids::{ComputationId, InstrId};
use crate::opcode::Opcode;

pub(super) fn check(v: &mut Verifier<'_>) {
    let module = v.module;
    if module.name.is_empty() {
        v.diagnostics.push(Diagnostic::error(
            codes::EMPTY_MODULE_NAME,
            crate::Span::NONE,
            "the module has no name",
        ));
    }
    let Some(entry) = module.entry_or_none() else {
        v.diagnostics.push(Diagnostic::error(
            codes::NO_ENTRY,
            crate::Span::NONE,
            "the module has no entry computation",
        ));
        return;
    };
    for &c in module.computations() {
        for (n, id) in module.instructions(c).enumerate() {
            v.position[id.index()] = n as u32;
            for called in module.instr(id).attrs.called_computations() {
                v.callers[called.index()].push(id);
            }
        }
    }
    for &c in module.computations() {
        computation(v, c);
    }
    if let Some(&caller) = v.callers[entry.index()].first() {
        v.error(caller, codes::ENTRY_CALLED, "calls the entry computation, which is for the outside to call");
    }
    call_cycles(v);
    signatures(v);
}

fn computation(v: &mut Verifier<'_>, c: ComputationId) {
    let module = v.module;
    let comp = module.computation(c);
    if comp.is_empty() {
        let message = format!("computation %{} has no instructions", comp.name);
        v.diagnostics.push(Diagnostic::error(codes::EMPTY_COMPUTATION, comp.span, message));
        return;
    }
    if comp.root().is_none_or(|r| module.is_removed(r) || module.instr(r).parent() != c) {
        let message = format!("computation %{} has no root", comp.name);
        v.diagnostics.push(Diagnostic::error(codes::EMPTY_COMPUTATION, comp.span, message));
    }
    let mut names: FxHashMap<&str, InstrId> = FxHashMap::default();
    for id in module.instructions(c) {
        let instr = module.instr(id);
        if let Some(&first) = names.get(&*instr.name) {
            let first = module.instr(first).span;
            let message = format!("the name %{} is given twice in computation %{}", instr.name, comp.name);
            v.report(id, codes::DUPLICATE_NAME, message, |d| d.related(first, "first given here"));
        } else {
            names.insert(&instr.name, id);
        }
        for (n, &operand) in instr.operands().iter().enumerate() {
            before(v, id, operand, &format!("operand {n}"));
        }
        for &p in &instr.control_predecessors {
            before(v, id, p, "control predecessor");
        }
    }
    parameters(v, c);
}

/// `operand` must be of the computation of `id` and come before it.
fn before(v: &mut Verifier<'_>, id: InstrId, operand: InstrId, what: &str) {
    let module = v.module;
    let (user, def) = (module.instr(id), module.instr(operand));
    if module.is_removed(operand) || def.parent() != user.parent() {
        let message = format!(
            "{what}, %{}, is in computation %{}, not in this one",
            def.name,
            module.computation(def.parent()).name
        );
        v.report(id, codes::OPERAND_ORDER, message, |d| d.related(def.span, "defined here"));
    } else if v.position[operand.index()] >= v.position[id.index()] {
        let message = format!("{what}, %{}, is defined only later", def.name);
        v.report(id, codes::OPERAND_ORDER, message, |d| d.related(def.span, "defined here"));
    }
}

fn parameters(v: &mut Verifier<'_>, c: ComputationId) {
    let module = v.module;
    let mut by_number: FxHashMap<i64, InstrId> = FxHashMap::default();
    let all: Vec<(InstrId, i64)> = module
        .instructions(c)
        .filter(|&id| module.instr(id).opcode == Opcode::Parameter)
        .map(|id| (id, module.instr(id).parameter_number().unwrap_or(-1)))
        .collect();
    for &(id, n) in &all {
        if n < 0 || n >= all.len() as i64 {
            let message = format!(
                "parameter number {n} of a computation with {}; numbers run from 0 without a gap",
                count(all.len(), "parameter")
            );
            v.error(id, codes::PARAMETER_NUMBERS, message);
        } else if let Some(&first) = by_number.get(&n) {
            let first = module.instr(first).span;
            let message = format!("parameter number {n} is given twice");
            v.report(id, codes::PARAMETER_NUMBERS, message, |d| d.related(first, "first given here"));
        } else {
            by_number.insert(n, id);
        }
    }
}

/// A depth-first search with a stack of its own: chains of calls may be as long as the text.
fn call_cycles(v: &mut Verifier<'_>) {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let module = v.module;
    let callees = |c: ComputationId| -> Vec<(ComputationId, InstrId)> {
        module
            .instructions(c)
            .flat_map(|id| {
                module.instr(id).attrs.called_computations().into_iter().map(move |called| (called, id))
            })
            .collect()
    };
    let mut state = vec![State::New; module.computation_capacity()];
    for &start in module.computations() {
        if state[start.index()] != State::New {
            continue;
        }
        let mut stack = vec![(start, callees(start), 0)];
        state[start.index()] = State::Open;
        while let Some((c, calls, next)) = stack.last_mut() {
            let Some(&(called, at)) = calls.get(*next) else {
                state[c.index()] = State::Done;
                stack.pop();
                continue;
            };
            *next += 1;
            match state[called.index()] {
                State::New => {
                    state[called.index()] = State::Open;
                    stack.push((called, callees(called), 0));
                }
                State::Open => {
                    let name = &module.computation(called).name;
                    v.error(
                        at,
                        codes::CALL_CYCLE,
                        format!("computation %{name} calls itself through this instruction"),
                    );
                }
                State::Done => {}
            }
        }
    }
}

/// The result of a signature in the text must be the root's. Parameters that it states otherwise are only
/// warned about, as XLA does not read them.
fn signatures(v: &mut Verifier<'_>) {
    let module = v.module;
    for &c in module.computations() {
        let comp = module.computation(c);
        let (Some(declared), Some(actual)) = (&comp.declared, module.program_shape(c)) else { continue };
        let message = |what: String| format!("the signature of computation %{} is wrong: {what}", comp.name);
        if declared.parameters.len() != actual.parameters.len() {
            let what = format!(
                "it declares {}, the computation has {}",
                count(declared.parameters.len(), "parameter"),
                actual.parameters.len()
            );
            v.diagnostics.push(Diagnostic::warning(codes::SIGNATURE, comp.span, message(what)));
        }
        for (n, ((_, shape), real)) in declared.parameters.iter().zip(&actual.parameters).enumerate() {
            if !shape.compatible(real) {
                let what = format!("it declares parameter {n} as {shape}, which is {real}");
                v.diagnostics.push(Diagnostic::warning(codes::SIGNATURE, comp.span, message(what)));
            }
        }
        if !declared.result.compatible(&actual.result) {
            let what =
                format!("it declares the result as {}, the root is {}", declared.result, actual.result);
            v.diagnostics.push(Diagnostic::error(codes::SIGNATURE, comp.span, message(what)));
        }
    }
}
