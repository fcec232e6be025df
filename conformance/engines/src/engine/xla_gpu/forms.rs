//! Which kernels execute the instructions of a program.
//!
//! **Invariant:** an instruction has kernels only if it computes what the dump's instruction of its name
//! does: the same program of it alone, but for names.

use std::sync::Arc;

use hlo::{ArrayShape, ConstantValue, InstrId, Layout, Module, Shape, fingerprint};
use rustc_hash::FxHashMap;

use super::dump::Dump;
use crate::alone::{alone, why_not};

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

/// By instruction of a program, that of the dump whose kernels it launches; `None`: it is none of
/// instructions of the dump.
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
    module.instr(id).opcode == dump.instr(of).opcode
        && why_not(module, id).is_none()
        && fingerprint(&by_itself(module, id)) == fingerprint(&by_itself(dump, of))
}

/// The program of an instruction alone, where arrays without a layout have the one that this means.
fn by_itself(module: &Module, id: InstrId) -> Module {
    let mut alone = alone(module, &[id]).module;
    let all: Vec<InstrId> = alone.computations().iter().flat_map(|&c| alone.instructions(c)).collect();
    for id in all {
        let shape = laid_out(&alone.instr(id).shape);
        alone.instr_mut(id).shape = shape;
    }
    alone
}

fn laid_out(shape: &Shape) -> Shape {
    match shape {
        Shape::Array(array) => {
            let layout = array.layout.clone().unwrap_or_else(|| Arc::new(Layout::row_major(array.rank())));
            Shape::Array(ArrayShape { layout: Some(layout), ..array.clone() })
        }
        Shape::Tuple(parts) => Shape::tuple(parts.iter().map(laid_out)),
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => shape.clone(),
    }
}

/// A constant whose value the dump's text does not have.
pub(super) fn left_out(dump: &Dump) -> Option<&str> {
    let mut all = dump.module.computations().iter().flat_map(|&c| dump.module.instructions(c));
    let elided =
        |id: &InstrId| matches!(dump.module.instr(*id).attrs.constant_value(), Some(ConstantValue::Elided));
    all.find(elided).map(|id| &*dump.module.instr(id).name)
}

/// That nothing can be said of the results.
pub(super) fn left_out_message(dump: &Dump, name: &str) -> String {
    format!(
        "{} leaves out the value of `{name}`, so that its results are not known; dump with --xla_dump_large_constants, or judge it \
         kernel by kernel, by `hlo isolate` of that file",
        dump.file
    )
}

/// Whether the shapes of a program's parameters and results are those of the dumped one. Errors: they are
/// not.
pub(super) fn takes_and_gives_the_same(dump: &Dump, module: &Module) -> Result<(), String> {
    let leaves = |shape: &Shape| shape.leaves().into_iter().cloned().collect::<Vec<Shape>>();
    let of = |m: &Module| {
        let shape = m.program_shape(m.entry())?;
        Some((shape.parameters.iter().flat_map(leaves).collect::<Vec<Shape>>(), leaves(&shape.result)))
    };
    let equal =
        |a: &[Shape], b: &[Shape]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.compatible(b));
    match of(module).zip(of(&dump.module)) {
        Some((here, there)) if equal(&here.0, &there.0) && equal(&here.1, &there.1) => Ok(()),
        Some(_) | None => Err(format!(
            "{} has other parameters or results than the program, and none of its instructions",
            dump.file
        )),
    }
}
