//! Rewritings that change bits, each under its own name, on request ([`super::FAST_MATH`]). None of them is
//! part of any pipeline otherwise.
//!
//! Contraction and flushing of denormals are no rewritings of HLO, which has no operation for either: they
//! are matters of code generation.

use hlo::attrs::{AttrKey, AttrValue, FrontendValue};
use hlo::{InstrId, Module, Opcode};

use super::PassCx;
use super::edit::{Edit, each_outside_folds};
use super::facts::{float_bits, is_ieee, splat};
use hlo_library::lapack::{self, LIBRARY};

/// `x / y` as `x * (1 / y)` where `y` is a splat or a broadcast of few values: up to 1.5 units in the last
/// place instead of a half, and an infinity or zero where `1 / y` leaves the range.
pub(super) fn reciprocal(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_outside_folds(module, cx.fuel, |e| {
        if e.at().opcode != Opcode::Divide {
            return None;
        }
        let [x, y] = e.operands()?;
        let ty = e.array(e.id())?.element_type;
        if !is_ieee(ty) || [x, y].iter().any(|&o| e.array(o).map(|a| a.element_type) != Some(ty)) {
            return None;
        }
        let few = *e.instr(y).operands().first().filter(|_| e.instr(y).opcode == Opcode::Broadcast)?;
        // The reciprocal that it would become.
        let one = float_bits(ty, 1.0)?;
        if e.array(few)?.checked_elements()? >= e.array(e.id())?.checked_elements()?
            || splat(e.module, x) == Some((ty, one))
        {
            return None;
        }
        let one = e.scalar_bits(ty, one);
        e.times_reciprocal(x, y, one)
    })
}

/// Factorizations and decompositions by an external library: signs, pivots and the order of close values
/// depend on its rounding, so that the interpreter's result bounds none of it. Calls say so by a frontend
/// attribute, which only lowering reads.
pub(super) fn decompositions(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    let all: Vec<InstrId> = module.computations().iter().flat_map(|&c| module.instructions(c)).collect();
    let mut applied = 0;
    for id in all {
        let attrs = &module.instr(id).attrs;
        let target = attrs.str(AttrKey::CustomCallTarget).unwrap_or_default();
        let routine = lapack::routine(target).map(|(_, name)| name);
        let mut given = attrs.frontend_attributes().cloned().unwrap_or_default();
        let concerned = routine.is_some_and(|name| lapack::DECOMPOSITIONS.contains(&name));
        if !concerned || given.get(LIBRARY.0).is_some() || !cx.fuel.take() {
            continue;
        }
        given.entries.push((LIBRARY.0.into(), FrontendValue::Str(LIBRARY.1.into())));
        module
            .instr_mut(id)
            .attrs
            .set(AttrKey::FrontendAttributes, AttrValue::FrontendAttributes(Box::new(given)));
        applied += 1;
    }
    applied
}

/// Reassociation of constants: `(x + a) + b` and `(x * a) * b` as `x + (a + b)` and `x * (a * b)`: rounds
/// once less, and differs where the first step loses `x` or overflows.
pub(super) fn reassociate(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_outside_folds(module, cx.fuel, |e| {
        let opcode = e.at().opcode;
        let ty = e.array(e.id())?.element_type;
        if !matches!(opcode, Opcode::Add | Opcode::Multiply) || !is_ieee(ty) {
            return None;
        }
        let constant = |e: &Edit<'_>, id: InstrId| splat(e.module, id).is_some_and(|(t, _)| t == ty);
        let split = |e: &Edit<'_>, id: InstrId| {
            let &[a, b] = e.instr(id).operands() else { return None };
            match (constant(e, a), constant(e, b)) {
                (false, true) => Some([a, b]),
                (true, false) => Some([b, a]),
                (_, _) => None,
            }
        };
        let [inner, b] = split(e, e.id())?;
        if e.instr(inner).opcode != opcode || e.array(inner)?.element_type != ty {
            return None;
        }
        let [x, a] = split(e, inner)?;
        if e.array(x)?.element_type != ty {
            return None;
        }
        let both = e.binary(opcode, a, b)?;
        e.binary(opcode, x, both)
    })
}
