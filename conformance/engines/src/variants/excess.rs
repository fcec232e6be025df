//! Excess precision: arithmetic of `f16` and `bf16` in f32, its results rounded only where something else
//! than arithmetic looks at them, as in XLA's float normalization followed by the removal of pairs of
//! conversions.
//!
//! Operations that work on the bits of a NaN (`negate`, `abs`, `select`) are left alone: a conversion would
//! make another NaN of it, and that is no matter of precision. So are those that jump (`floor`, `sign`,
//! `remainder`).

use hlo::{ElementType, InstrId, Module, Opcode};
use hlo_opt::passes::edit::{Edit, each, folds};
use hlo_opt::passes::{Fuel, Pass};
use rustc_hash::FxHashMap;

/// The pass.
#[derive(Clone, Copy, Debug)]
pub struct Excess;

impl Pass for Excess {
    fn name(&self) -> &str {
        "excess"
    }

    fn doc(&self) -> &str {
        "keeps chains of f16 and bf16 arithmetic in f32"
    }

    fn run(&self, module: &mut Module, fuel: &mut Fuel) -> u64 {
        let folds = folds(module);
        // By the rounded value, the f32 that it was rounded from.
        let mut wide: FxHashMap<InstrId, InstrId> = FxHashMap::default();
        let applied =
            each(
                module,
                fuel,
                |e| {
                    if folds.contains(&e.at().parent()) { None } else { kept_wide(e, &mut wide) }
                },
            );
        // A rounded value beside which the wide one is used is not all that the program's instruction of its
        // name hands on: who injects a value there would not reach every user. So it has another name.
        let beside = |&(&rounded, &wide): &(&InstrId, &InstrId)| {
            !module.is_removed(rounded) && module.users(wide).iter().any(|u| u.user != rounded)
        };
        let mut bypassed: Vec<InstrId> = wide.iter().filter(beside).map(|(&rounded, _)| rounded).collect();
        bypassed.sort_unstable();
        for id in bypassed {
            let name = module.instr(id).name.clone();
            let name = module.unique_name(&name);
            module.instr_mut(id).name = name;
        }
        applied
    }
}

/// Arithmetic whose result is a rounded number, and elementary functions.
pub(super) fn is_arithmetic(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Add
            | Opcode::Subtract
            | Opcode::Multiply
            | Opcode::Divide
            | Opcode::Maximum
            | Opcode::Minimum
            | Opcode::Power
            | Opcode::Atan2
            | Opcode::Sqrt
    ) || is_elementary(opcode)
}

/// Elementary functions of one operand.
pub(super) fn is_elementary(opcode: Opcode) -> bool {
    matches!(opcode.numeric(ElementType::F32), hlo::opcode::Numeric::Ulp(_)) && opcode.is_elementwise()
}

fn kept_wide(e: &mut Edit<'_>, wide: &mut FxHashMap<InstrId, InstrId>) -> Option<InstrId> {
    let ty = e.at().shape.element_type()?;
    if e.at().opcode == Opcode::Convert {
        let f32 = *wide.get(&e.operand(0)?)?;
        return match ty {
            ElementType::F32 => Some(f32),
            ElementType::F64 => e.convert(f32, ElementType::F64),
            _ => None,
        };
    }
    let narrow = |id: InstrId| e.instr(id).shape.element_type() == Some(ty);
    if !matches!(ty, ElementType::F16 | ElementType::BF16)
        || !is_arithmetic(e.at().opcode)
        || !e.at().operands().iter().all(|&o| narrow(o))
    {
        return None;
    }
    let mut operands = Vec::new();
    for o in e.at().operands().to_vec() {
        operands.push(match wide.get(&o) {
            Some(&f32) => f32,
            None => e.convert(o, ElementType::F32)?,
        });
    }
    let attrs = e.at().attrs.clone();
    let result = e.add(e.at().opcode, &operands, attrs)?;
    let rounded = e.convert(result, ty)?;
    wide.insert(rounded, result);
    Some(rounded)
}
