//! `hlo opt --stage`: what the compilers make on their way.

mod gpu;
mod page;

use std::fmt::Write;

use clap::ValueEnum;
use hlo::print::{PrintOptions, print_module};
use hlo::{InstrId, Module};
use hlo_codegen::compilation::Compilation;
use hlo_cpu::{CompileError, Options, Stages, compile_watched};
use hlo_opt::buffers::{Assigned, report};
use hlo_opt::passes::{Pipeline, Steps};
use rustc_hash::FxHashMap;
use serde::Serialize;

use hlo_system::exit::{Exit, Failure};

/// A stage of the compiler.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Stage {
    /// The program as it was read
    Hlo,
    /// The program that is lowered: optimized, fused, scheduled
    HloOptimized,
    /// Where every value lies and when it is alive
    BufferAssignment,
    /// LLVM code as it is emitted
    Llvm,
    /// LLVM code after LLVM's passes
    LlvmOptimized,
    /// Assembly
    Asm,
    /// The program that is lowered for a GPU (sm_90)
    GpuHlo,
    /// Launches on a GPU, in order: grid, block, arguments
    GpuLaunches,
    /// How each instruction is executed: which library call or kernel, and by which strategy
    Lowering,
    /// PTX for a GPU
    Ptx,
    /// A page for a browser: the optimized program, how each instruction is lowered, memory over time
    Html,
}

struct Watcher {
    stage: Stage,
    text: String,
    /// The lowering of instructions, for the page.
    lowered: FxHashMap<InstrId, String>,
}

impl Steps for Watcher {}

impl Stages for Watcher {
    fn lowered(&mut self, compilation: &Compilation) {
        if self.stage == Stage::HloOptimized {
            let module = compilation.module();
            self.text = print_module(module, &PrintOptions::source(module));
        }
    }

    fn emitted(&mut self, compilation: &Compilation) {
        if self.stage == Stage::Html {
            let ids = compilation.lowered().decisions.keys();
            self.lowered = ids.map(|&id| (id, compilation.strategy(id))).collect();
        }
        if self.stage == Stage::Lowering {
            self.text = lowering(compilation);
        }
    }

    fn assigned(&mut self, module: &Module, assigned: &Assigned) {
        if self.stage == Stage::BufferAssignment {
            self.text = report(module, assigned);
        }
        if self.stage == Stage::Html {
            self.text = page::page(module, assigned, &self.lowered);
        }
    }

    fn wants_llvm(&self) -> [bool; 3] {
        [Stage::Llvm, Stage::LlvmOptimized, Stage::Asm].map(|s| s == self.stage)
    }

    fn llvm(&mut self, unit: usize, texts: [Option<String>; 3]) {
        let sign = if self.stage == Stage::Asm { '#' } else { ';' };
        for text in texts.into_iter().flatten() {
            let _ = writeln!(self.text, "{sign} unit {unit}\n{text}");
        }
    }
}

/// A line for each instruction that is executed, by computation.
fn lowering(compilation: &Compilation) -> String {
    let module = compilation.module();
    let mut text = String::new();
    for &computation in module.computations() {
        let lines: Vec<(InstrId, String)> = module
            .instructions(computation)
            .filter(|id| compilation.lowered().decisions.contains_key(id))
            .map(|id| (id, compilation.strategy(id)))
            .collect();
        if lines.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{}:", module.computation(computation).name);
        let width = lines.iter().map(|(id, _)| module.instr(*id).name.len()).max().unwrap_or(0).min(40);
        for (id, how) in lines {
            let _ = writeln!(text, "  {:width$}  {how}", module.instr(id).name.to_string());
        }
    }
    text
}

/// The text of a stage of a verified module. Errors: what the compiler refuses (exit code 5); defects.
pub(crate) fn text(module: &Module, stage: Stage, options: &Options) -> Result<String, Failure> {
    if stage == Stage::Hlo {
        return Ok(print_module(module, &PrintOptions::source(module)));
    }
    if let Some(text) = gpu::text(module, stage, options.opt_level) {
        return text;
    }
    let mut watcher = Watcher { stage, text: String::new(), lowered: FxHashMap::default() };
    let pipeline = Pipeline::cpu(options.opt_level);
    match compile_watched(module, options, &pipeline, &mut watcher) {
        Ok(_) => Ok(watcher.text),
        // What was made before it failed is what was asked for.
        Err(_) if !watcher.text.is_empty() => Ok(watcher.text),
        Err(e @ CompileError::Defect(_)) => Err(Failure::internal(e.to_string())),
        Err(e) => Err(Failure::new(Exit::Unsupported, e.to_string())),
    }
}
