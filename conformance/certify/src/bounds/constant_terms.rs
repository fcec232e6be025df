//! Constant terms that a compiler may gather: `(x + b) + c` as `x + (b + c)`, and so with differences.
//!
//! The reference rounds `x + b` and its sum with `c`, an engine `b + c` and its sum with `x`: each way has two
//! roundings, of half a unit in the last place of what it rounds. So results are at most a unit of the
//! result, half a unit of the inner sum and half a unit of the constants' sum apart, and what flushing the
//! latter loses; [`widened`] takes twice that. Where the inner sum overflows, the engine's need not.
//!
//! **Invariant:** bounds of the inner sum already hold what `x` may be off by; what is added here is for an
//! engine that never makes that sum.

use hlo::{ConstantValue, InstrId, Module, Opcode};
use hlo_execution::format::Format;

use super::Radii;
use super::limits::Limits;
use super::number::Numbers;
use super::rules::{Case, Mode, moves};

/// How many moves are looked through.
const MAX_MOVES: usize = 16;

/// A sum or difference of a constant and another one of something and a constant.
struct Gathered {
    /// Of the operands, the one that is a sum.
    inner: usize,
    /// At most the magnitudes of both constants together.
    constants: f64,
}

/// Whether an instruction is one whose constant terms may be gathered.
pub(super) fn applies(case: &Case<'_>) -> bool {
    gathered(case).is_some()
}

fn gathered(case: &Case<'_>) -> Option<Gathered> {
    let sum = |opcode| matches!(opcode, Opcode::Add | Opcode::Subtract);
    let &[a, b] = case.instr.operands() else { return None };
    let float = case.results.first().is_some_and(|t| Format::of(t.element_type()).is_some());
    if !(case.settings.allowances.reciprocals && sum(case.opcode()) && float) {
        return None;
    }
    let module = case.module;
    [(0, a, b), (1, b, a)].into_iter().find_map(|(inner, x, c)| {
        let outer = magnitude(module, c)?;
        let instr = module.instr(behind(module, x));
        let constant = instr.operands().iter().find_map(|&o| magnitude(module, o));
        let constants = outer + constant.filter(|_| sum(instr.opcode))?;
        Some(Gathered { inner, constants })
    })
}

/// What is moved to become this value.
fn behind(module: &Module, mut id: InstrId) -> InstrId {
    for _ in 0..MAX_MOVES {
        let instr = module.instr(id);
        match *instr.operands() {
            [from] if moves(instr.opcode) => id = from,
            _ => break,
        }
    }
    id
}

/// The largest magnitude among the elements of a constant, moved perhaps; `None` of what is none.
fn magnitude(module: &Module, id: InstrId) -> Option<f64> {
    let instr = module.instr(behind(module, id));
    let ConstantValue::Given(literal) = instr.attrs.constant_value()? else { return None };
    let buffer = &literal.as_array()?.buffer;
    let largest = hlo_execution::element::largest_magnitude(buffer);
    Some(largest * std::f64::consts::SQRT_2)
}

/// The radii of sums whose constant terms may be gathered.
pub(super) fn widened(case: &Case<'_>, radii: &[Radii], sums: Radii, mode: Mode) -> Radii {
    let (Some(of), [result]) = (gathered(case), &case.results[..]) else { return sums };
    let (Some(format), v) = (Format::of(result.element_type()), Numbers::of(result)) else { return sums };
    let inner = Numbers::of(case.args[of.inner].tensor);
    let flushes = case.settings.allowances.flush_denormals;
    sums.mapped(v.len(), |i, r, limits| {
        let k = if inner.len() == 1 { 0 } else { i };
        let size = v.modulus(i) + r;
        let within = inner.modulus(k) + radii[of.inner].at(k);
        let finite = size.is_finite() && within.is_finite();
        let units =
            if finite { format.ulp(size) + format.ulp(within) + format.ulp(of.constants) } else { 0.0 };
        // Of a finite number a sum with less than half a unit of the greatest one is no infinity.
        let overflows = match finite {
            true => of.constants >= format.max || size + units > format.max,
            false => of.constants >= format.ulp(format.max) / 4.0,
        };
        if overflows && mode == Mode::Hard {
            return (f64::INFINITY, Limits::NONE);
        }
        if !finite {
            return (r, limits);
        }
        let off = 2.0 * (units + if flushes { format.flushes_below() } else { 0.0 });
        ((r + off).next_up(), limits.wider(|_| 2.0 * off))
    })
}
