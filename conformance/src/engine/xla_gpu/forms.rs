//! Which kernels execute the instructions of a program.
//!
//! **Invariant:** an instruction has kernels only if it computes what the dump's instruction of its name does: the same program of it alone, but for names.

use hlo::{InstrId, Module, ProgramShape, Shape, fingerprint};
use rustc_hash::FxHashMap;

use super::dump::Dump;
use crate::isolate::{alone, why_not};

/// The kernels of the dump's own instructions, by instruction.
pub(super) fn own(dump: &Dump) -> Vec<Option<InstrId>> {
    let mut launches = vec![None; dump.module.instruction_capacity()];
    for id in dump.module.computations().iter().flat_map(|&c| dump.module.instructions(c)) {
        if dump.kernels[id.index()].is_some() {
            launches[id.index()] = Some(id);
        }
    }
    launches
}

/// By instruction of a program, that of the dump whose kernels it launches; `None`: it is none of instructions of the dump.
pub(super) fn launches(dump: &Dump, module: &Module) -> Option<Vec<Option<InstrId>>> {
    let mut named: FxHashMap<&str, InstrId> = FxHashMap::default();
    for id in dump.module.computations().iter().flat_map(|&c| dump.module.instructions(c)) {
        if dump.kernels[id.index()].is_some() {
            named.insert(&dump.module.instr(id).name, id);
        }
    }
    let mut launches = vec![None; module.instruction_capacity()];
    let mut found = false;
    for id in module.computations().iter().flat_map(|&c| module.instructions(c)) {
        let Some(&of) = named.get(&*module.instr(id).name) else { continue };
        if is_same(module, id, &dump.module, of) {
            launches[id.index()] = Some(of);
            found = true;
        }
    }
    // A dump without kernels has its own module all the same.
    (found || named.is_empty() && fingerprint(module) == fingerprint(&dump.module)).then_some(launches)
}

fn is_same(module: &Module, id: InstrId, dump: &Module, of: InstrId) -> bool {
    let (here, there) = (module.instr(id), dump.instr(of));
    let shapes = |m: &Module, id: InstrId| -> Vec<Shape> {
        m.instr(id).operands().iter().map(|&o| m.instr(o).shape.clone()).collect()
    };
    here.opcode == there.opcode
        && here.shape == there.shape
        && shapes(module, id) == shapes(dump, of)
        && why_not(module, id).is_none()
        && fingerprint(&alone(module, &[id]).module) == fingerprint(&alone(dump, &[of]).module)
}

/// Whether a program is of instructions of the dump, or takes and gives what the dumped program does. Errors: why not.
pub(super) fn fits(dump: &Dump, module: &Module) -> Result<(), String> {
    let [here, there] = [module, &dump.module].map(|m| m.program_shape(m.entry()));
    let same = here.zip(there).is_some_and(|(here, there)| takes_and_gives_the_same(&here, &there));
    if same || launches(dump, module).is_some() {
        return Ok(());
    }
    Err(format!(
        "{} has other parameters or results than the program, and none of its instructions",
        dump.file
    ))
}

fn takes_and_gives_the_same(here: &ProgramShape, there: &ProgramShape) -> bool {
    let leaves = |shapes: &[Shape]| {
        shapes.iter().flat_map(|s| s.leaves().into_iter().cloned()).collect::<Vec<Shape>>()
    };
    let equal =
        |a: Vec<Shape>, b: Vec<Shape>| a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.compatible(b));
    equal(leaves(&here.parameters), leaves(&there.parameters))
        && equal(leaves(std::slice::from_ref(&here.result)), leaves(std::slice::from_ref(&there.result)))
}
