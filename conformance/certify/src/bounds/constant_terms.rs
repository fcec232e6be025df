//! Constant terms that a compiler may gather: `(x + b) + c` as `x + (b + c)`, and so with differences.
//!
//! The reference rounds `x + b` and its sum with `c`, an engine `b + c` and its sum with `x`: each way has two
//! roundings, of half a unit in the last place of what it rounds. So results are at most a unit of the
//! result, half a unit of the inner sum and half a unit of the constants' sum apart, and what flushing the
//! latter loses; [`widened`] takes twice that. Where the inner sum overflows, the engine's need not.
//!
//! **Invariant:** bounds of the inner sum already hold what `x` may be off by; what is added here is for an
//! engine that never makes that sum.

use hlo::{Buffer, ConstantValue, InstrId, Module, Opcode};
use hlo_execution::element::largest_magnitude;
use hlo_execution::format::Format;

use super::Radii;
use super::limits::Limits;
use super::number::Numbers;
use super::reciprocals::origin;
use super::rules::{Case, Mode};

/// A sum or difference of a constant and another one of something and a constant.
struct Gathered<'a> {
    /// Of the operands, the one that is a sum.
    inner: usize,
    /// The elements of the constants.
    constants: [&'a Buffer; 2],
}

impl Gathered<'_> {
    /// At least the magnitude of any sum or difference of both constants' elements.
    fn magnitude(&self) -> f64 {
        // What is largest of a complex element is a part.
        self.constants.map(|buffer| largest_magnitude(buffer) * std::f64::consts::SQRT_2).iter().sum()
    }
}

/// Whether an instruction is one whose constant terms may be gathered.
pub(super) fn applies(case: &Case<'_>) -> bool {
    gathered(case).is_some()
}

fn gathered<'a>(case: &Case<'a>) -> Option<Gathered<'a>> {
    let sum = |opcode| matches!(opcode, Opcode::Add | Opcode::Subtract);
    let &[a, b] = case.instr.operands() else { return None };
    let float = case.results.first().is_some_and(|t| Format::of(t.element_type()).is_some());
    if !(case.settings.allowances.reciprocals && sum(case.opcode()) && float) {
        return None;
    }
    let module = case.module;
    [(0, a, b), (1, b, a)].into_iter().find_map(|(inner, x, c)| {
        let outer = constant(module, c)?;
        let instr = module.instr(origin(module, x, true)?);
        let mut terms = instr.operands().iter().filter(|_| sum(instr.opcode));
        let inner_constant = terms.find_map(|&term| constant(module, term))?;
        Some(Gathered { inner, constants: [outer, inner_constant] })
    })
}

/// The elements of a constant, moved perhaps; `None` of what is none.
fn constant(module: &Module, id: InstrId) -> Option<&Buffer> {
    let instr = module.instr(origin(module, id, true)?);
    let ConstantValue::Given(literal) = instr.attrs.constant_value()? else { return None };
    Some(&literal.as_array()?.buffer)
}

/// The radii of sums whose constant terms may be gathered.
pub(super) fn widened(case: &Case<'_>, radii: &[Radii], sums: Radii, mode: Mode) -> Radii {
    let (Some(of), [result]) = (gathered(case), &case.results[..]) else { return sums };
    let (Some(format), v) = (Format::of(result.element_type()), Numbers::of(result)) else { return sums };
    let inner = Numbers::of(case.args[of.inner].tensor);
    let constants = of.magnitude();
    let flushes = case.settings.allowances.flush_denormals;
    sums.mapped(v.len(), |i, r, limits| {
        let k = if inner.len() == 1 { 0 } else { i };
        let size = v.modulus(i) + r;
        let within = inner.modulus(k) + radii[of.inner].at(k);
        let finite = size.is_finite() && within.is_finite();
        let units = if finite { format.ulp(size) + format.ulp(within) + format.ulp(constants) } else { 0.0 };
        // Of a finite number a sum with less than half a unit of the greatest one is no infinity.
        let overflows = match finite {
            true => constants >= format.max || size + units > format.max,
            false => constants >= format.ulp(format.max) / 4.0,
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
