//! Which kernels execute the instructions of a program.
//!
//! **Invariant:** an instruction has kernels only if it computes what the dump's instruction of its name does: the same program of it alone, but for names.

use hlo::{InstrId, Module, Shape, fingerprint};
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

/// Whether a program takes and gives the arrays that the dumped one does. Errors: it does not.
pub(super) fn takes_and_gives_the_same(dump: &Dump, module: &Module) -> Result<(), String> {
    let leaves = |shape: &Shape| shape.leaves().into_iter().cloned().collect::<Vec<Shape>>();
    let of = |m: &Module| {
        let shape = m.program_shape(m.entry())?;
        Some((shape.parameters.iter().flat_map(leaves).collect::<Vec<Shape>>(), leaves(&shape.result)))
    };
    let equal = |a: &[Shape], b: &[Shape]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.compatible(b));
    match of(module).zip(of(&dump.module)) {
        Some((here, there)) if equal(&here.0, &there.0) && equal(&here.1, &there.1) => Ok(()),
        Some(_) | None => {
            Err(format!("{} has other parameters or results than the program, and none of its instructions", dump.file))
        }
    }
}
