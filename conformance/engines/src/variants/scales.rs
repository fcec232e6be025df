//! Arithmetic of `f8e8m0fnu` in f32: operands are converted, and the result is converted back.
//!
//! That is how processors compute it, and it matters where denormal numbers are flushed: 2^-127 is denormal
//! in f32, a flushed operand is a zero there, which the type itself does not have. Conversions alone do not
//! flush it. What collectives fold goes to f32 and back, even where one device takes part.

use hlo::{ComputationId, ElementType, InstrId, Module, Opcode};
use hlo_opt::passes::edit::{Edit, each, folds};
use hlo_opt::passes::{Fuel, Pass};
use rustc_hash::FxHashSet;

use super::excess::is_arithmetic;
use super::flush::called;

/// The pass.
#[derive(Clone, Copy, Debug)]
pub struct Scales;

impl Pass for Scales {
    fn name(&self) -> &str {
        "scales-in-f32"
    }

    fn doc(&self) -> &str {
        "computes f8e8m0fnu in f32"
    }

    fn run(&self, module: &mut Module, fuel: &mut Fuel) -> u64 {
        let folds = folds(module);
        outside(&folds, module, fuel)
    }
}

/// The same in steps of scans as well. Each step rounds in the type; the reference may round a sum once.
#[derive(Clone, Copy, Debug)]
pub struct ScalesInScans;

impl Pass for ScalesInScans {
    fn name(&self) -> &str {
        "scales-in-scans"
    }

    fn doc(&self) -> &str {
        "computes f8e8m0fnu in f32, in steps of scans as well"
    }

    fn run(&self, module: &mut Module, fuel: &mut Fuel) -> u64 {
        let mut folds = folds(module);
        let steps = called(module, |o| o == Opcode::Scan);
        let regions = called(module, |o| o != Opcode::Scan);
        folds.retain(|c| regions.contains(c) || !steps.contains(c));
        outside(&folds, module, fuel)
    }
}

fn outside(folds: &FxHashSet<ComputationId>, module: &mut Module, fuel: &mut Fuel) -> u64 {
    each(module, fuel, |e| if folds.contains(&e.at().parent()) { None } else { in_f32(e) })
}

fn in_f32(e: &mut Edit<'_>) -> Option<InstrId> {
    let opcode = e.at().opcode;
    if matches!(opcode, Opcode::AllReduce | Opcode::ReduceScatter) {
        return by_way_of_f32(e);
    }
    // Those that jump, too: where operands are flushed, they jump elsewhere.
    let arithmetic = is_arithmetic(opcode)
        || matches!(
            opcode,
            Opcode::Remainder
                | Opcode::Clamp
                | Opcode::Sign
                | Opcode::Floor
                | Opcode::Ceil
                | Opcode::RoundNearestAfz
                | Opcode::RoundNearestEven
        );
    let scale = |id: InstrId| e.instr(id).shape.element_type() == Some(ElementType::F8E8M0FNU);
    if !arithmetic || !scale(e.id()) || !e.at().operands().iter().all(|&o| scale(o)) {
        return None;
    }
    let mut operands = Vec::new();
    for o in e.at().operands().to_vec() {
        operands.push(e.convert(o, ElementType::F32)?);
    }
    let attrs = e.at().attrs.clone();
    let result = e.add(opcode, &operands, attrs)?;
    e.convert(result, ElementType::F8E8M0FNU)
}

/// A collective whose scales were converted to f32 and back.
fn by_way_of_f32(e: &mut Edit<'_>) -> Option<InstrId> {
    let operands = e.at().operands().to_vec();
    let mut new = Vec::new();
    for &x in &operands {
        new.push(match e.array(x)?.element_type {
            ElementType::F8E8M0FNU => {
                let wide = e.convert(x, ElementType::F32)?;
                e.convert(wide, ElementType::F8E8M0FNU)?
            }
            _ => x,
        });
    }
    if new == operands { None } else { e.again(&new) }
}
