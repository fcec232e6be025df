//! Programs as StableHLO: what was given as such stays the tree that it was, HLO is converted.

use hlo::{Diagnostic, Diagnostics, Module, Span};
use hlo_mlir::bytecode::{self, Version};
use hlo_mlir::from_hlo::{Exported, from_hlo};
use hlo_mlir::ir;
use hlo_mlir::print::{PrintOptions, print};
use hlo_mlir::text::ReadOptions;
use hlo_parser::Pick;

use super::{choose, is_mlir, tree_of_bytecode};

/// A form in which StableHLO is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// MLIR text.
    Text,
    /// A portable artifact for readers from a version of StableHLO on.
    Bytecode(Version),
}

/// The module of a file in MLIR, text or bytecode. `None`: it is neither. Errors with the text that their
/// spans are in.
pub fn tree_of(
    file: &[u8],
    pick: Option<&Pick>,
    memory_bytes: u64,
) -> Option<Result<ir::Module, (Diagnostics, String)>> {
    if let Some(read) = tree_of_bytecode(file) {
        return Some(read.map_err(|found| (found, String::new())));
    }
    let text = std::str::from_utf8(file).ok().filter(|text| is_mlir(text))?;
    let chosen = choose(text, pick, &ReadOptions { memory_bytes });
    Some(chosen.map(|chosen| chosen.module).map_err(|found| (found, text.to_owned())))
}

/// The StableHLO of a program, and what it cannot say (nothing of which changes a result). Errors: an
/// instruction has none.
pub fn tree_of_hlo(module: &Module) -> Result<(ir::Module, Vec<&'static str>), Diagnostics> {
    let Exported { module, left_out } = from_hlo(module)?;
    Ok((module, left_out.into_iter().collect()))
}

/// A module in a form. Errors: the version has no operation or attribute for it.
pub fn written(tree: &ir::Module, form: Form) -> Result<Vec<u8>, Diagnostics> {
    match form {
        Form::Text => Ok(print(tree, &PrintOptions::PRETTY).into_bytes()),
        Form::Bytecode(version) => bytecode::write(tree, version),
    }
}

/// The StableHLO text of a program, or why there is none, in a line each.
pub fn text_of_hlo(module: &Module) -> Result<String, String> {
    match tree_of_hlo(module) {
        Ok((tree, _)) => Ok(print(&tree, &PrintOptions::PRETTY)),
        Err(found) => Err(found
            .iter()
            .map(|d| format!("{}: {}", d.code.as_str(), d.message))
            .collect::<Vec<_>>()
            .join("\n")),
    }
}

/// Findings without spans: of a tree that was read from bytecode, whose offsets are in no text.
pub fn without_spans(found: Diagnostics) -> Diagnostics {
    let mut bare = Diagnostics::new();
    for d in &found {
        bare.push(Diagnostic { span: Span::NONE, ..d.clone() });
    }
    bare
}
