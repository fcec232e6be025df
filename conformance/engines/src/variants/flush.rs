//! Denormals as zeros: operands and results of arithmetic, comparisons and conversions on `f32`, `f64` and
//! `bf16` (which processors compute in f32) that are denormal count as zero of the same sign. Data movement
//! keeps them, and so do computations that are applied to elements by anything but a map: which element a
//! comparison there chooses is no matter of rounding. Conversions from `f8e8m0fnu` keep them as well: they
//! are no arithmetic.

use hlo::attrs::Direction;
use hlo::{ComputationId, ElementType, InstrId, Module, Opcode};
use hlo_opt::passes::edit::{Edit, each, folds};
use hlo_opt::passes::{Fuel, Pass};
use rustc_hash::FxHashSet;

use super::excess::is_elementary;

/// The pass.
#[derive(Clone, Copy, Debug)]
pub struct Flush;

impl Pass for Flush {
    fn name(&self) -> &str {
        "flush"
    }

    fn doc(&self) -> &str {
        "takes denormal operands and results of arithmetic as zeros"
    }

    fn run(&self, module: &mut Module, fuel: &mut Fuel) -> u64 {
        let mut stay = folds(module);
        stay.extend(called(module, compares_or_scatters));
        each(module, fuel, |e| if stay.contains(&e.at().parent()) { None } else { arithmetic(e) })
    }
}

/// The same within computations that fold: operands and results of additions, products and quotients, which a
/// denormal operand or partial result makes another number or a NaN. What compares and chooses stays.
#[derive(Clone, Copy, Debug)]
pub struct FlushFolds;

impl Pass for FlushFolds {
    fn name(&self) -> &str {
        "flush-folds"
    }

    fn doc(&self) -> &str {
        "takes denormal operands and partial results of folds as zeros"
    }

    fn run(&self, module: &mut Module, fuel: &mut Fuel) -> u64 {
        let mut folds = folds(module);
        folds.extend(called(module, |o| matches!(o, Opcode::Scatter | Opcode::SelectAndScatter)));
        let within = |e: &mut Edit<'_>| {
            let computes =
                matches!(e.at().opcode, Opcode::Add | Opcode::Subtract | Opcode::Multiply | Opcode::Divide);
            let own = e.at().shape.element_type().and_then(least_normal);
            if !computes || own.is_none() || !folds.contains(&e.at().parent()) {
                return None;
            }
            flushed_throughout(e)
        };
        each(module, fuel, within)
    }
}

/// The same within computations that are applied to elements: comparisons of folds and sorts see zeros, and what
/// is chosen by them is not flushed; in those of maps, and in steps of scans, all arithmetic flushes.
#[derive(Clone, Copy, Debug)]
pub struct FlushRegions;

impl Pass for FlushRegions {
    fn name(&self) -> &str {
        "flush-regions"
    }

    fn doc(&self) -> &str {
        "takes denormal numbers as zeros where folds compare them, and in the arithmetic of maps and scans"
    }

    fn run(&self, module: &mut Module, fuel: &mut Fuel) -> u64 {
        let mut choose = folds(module);
        choose.extend(called(module, compares_or_scatters));
        let programs = called(module, |o| matches!(o, Opcode::Map | Opcode::Scan));
        let within = |e: &mut Edit<'_>| {
            let of = e.at().parent();
            if programs.contains(&of) {
                return arithmetic(e);
            }
            let values = !e.at().attrs.is_total_order();
            if e.at().opcode != Opcode::Compare || !values || !choose.contains(&of) {
                return None;
            }
            let operands = e.at().operands().to_vec();
            if !operands.iter().any(|&o| e.array(o).is_some_and(|a| least_normal(a.element_type).is_some())) {
                return None;
            }
            with_flushed_operands(e)
        };
        each(module, fuel, within)
    }
}

/// The computations that instructions of some opcodes call.
pub(super) fn called(module: &Module, calls: fn(Opcode) -> bool) -> FxHashSet<ComputationId> {
    let all = module.computations().iter().flat_map(|&c| module.instructions(c));
    let callers = all.map(|id| module.instr(id)).filter(|instr| calls(instr.opcode));
    callers.flat_map(|instr| instr.attrs.called_computations()).collect()
}

fn compares_or_scatters(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Sort | Opcode::SelectAndScatter | Opcode::Scatter)
}

/// The bits of the smallest normal number.
fn least_normal(ty: ElementType) -> Option<u128> {
    match ty {
        ElementType::F32 => Some(0x0080_0000),
        ElementType::BF16 => Some(0x0080),
        ElementType::F64 => Some(0x0010 << 48),
        _ => None,
    }
}

fn arithmetic(e: &mut Edit<'_>) -> Option<InstrId> {
    let opcode = e.at().opcode;
    let flushes = matches!(
        opcode,
        Opcode::Add
            | Opcode::Subtract
            | Opcode::Multiply
            | Opcode::Divide
            | Opcode::Maximum
            | Opcode::Minimum
            | Opcode::Compare
            | Opcode::Convert
            | Opcode::Sqrt
            | Opcode::Sign
            | Opcode::Ceil
            | Opcode::Floor
    ) || is_elementary(opcode);
    // A comparison of bits is none of values.
    let total = e.at().attrs.is_total_order();
    let ty = |id: InstrId, e: &Edit<'_>| e.instr(id).shape.element_type();
    let own = e.at().shape.element_type()?;
    let same = e.at().operands().iter().all(|&o| ty(o, e) == Some(own));
    if !flushes || total || opcode == Opcode::Convert && same {
        return None;
    }
    // The exponent goes into the other type as it is, without arithmetic.
    if opcode == Opcode::Convert && ty(e.at().operands()[0], e) == Some(ElementType::F8E8M0FNU) {
        return None;
    }
    let operands = e.at().operands().to_vec();
    let any = operands.iter().any(|&o| ty(o, e).is_some_and(|t| least_normal(t).is_some()));
    if !any && least_normal(own).is_none() {
        return None;
    }
    flushed_throughout(e)
}

/// The instruction on flushed operands, and its result flushed.
fn flushed_throughout(e: &mut Edit<'_>) -> Option<InstrId> {
    let result = with_flushed_operands(e)?;
    flushed(e, result)
}

/// The instruction on flushed operands.
fn with_flushed_operands(e: &mut Edit<'_>) -> Option<InstrId> {
    let operands = e.at().operands().to_vec();
    let operands: Option<Vec<InstrId>> = operands.into_iter().map(|o| flushed(e, o)).collect();
    e.again(&operands?)
}

fn flushed(e: &mut Edit<'_>, x: InstrId) -> Option<InstrId> {
    let ty = e.array(x)?.element_type;
    let Some(bits) = least_normal(ty) else { return Some(x) };
    let (least, zero) = (e.scalar_bits(ty, bits), e.scalar_bits(ty, 0));
    let (least, zero) = (e.fill(least, x)?, e.fill(zero, x)?);
    let size = e.unary(Opcode::Abs, x)?;
    let denormal = e.compare(Direction::Lt, size, least)?;
    let signed_zero = e.binary(Opcode::Multiply, x, zero)?;
    e.select(denormal, signed_zero, x)
}
