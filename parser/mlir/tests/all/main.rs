//! Tests of reading MLIR, of printing it, and of its conversion to HLO.

mod check;
mod constraints;
mod convert;
mod diagnostics;
mod forms;
mod from_hlo;
mod robustness;
mod stablehlo;

use hlo::Span;
use hlo_mlir::ir::Module;
use hlo_mlir::print::{PrintOptions, print};
use hlo_mlir::text::{ReadOptions, parse_part};

/// The module of a text, which must be right.
fn read(text: &str) -> Module {
    match parse_part(text, Span::new(0, text.len()), &ReadOptions::default()) {
        Ok(module) => module,
        Err(found) => panic!("{}", hlo::diag::render_all(&found, "test.mlir", text, false)),
    }
}

/// The generic form of a module.
fn generic(module: &Module) -> String {
    print(module, &PrintOptions::default())
}
