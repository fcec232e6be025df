//! Stages of the compiler for GPUs.

use std::fmt::Write;

use hlo::Module;
use hlo::print::{PrintOptions, print_module};
use hlo_codegen::compilation::Assemble as _;
use hlo_gpu::arch::Arch;
use hlo_gpu::program::{Action, Argument, Plan};

use super::Stage;
use hlo_engines::engine::gpu::{compiled, failure};
use hlo_system::exit::Failure;

/// The text of a stage; `None`: it is none of this compiler's.
pub(super) fn text(module: &Module, stage: Stage, opt_level: u8) -> Option<Result<String, Failure>> {
    match stage {
        Stage::GpuHlo | Stage::GpuLaunches | Stage::Ptx => {}
        Stage::Hlo
        | Stage::HloOptimized
        | Stage::BufferAssignment
        | Stage::Llvm
        | Stage::LlvmOptimized
        | Stage::Asm
        | Stage::Lowering
        | Stage::Html => return None,
    }
    let compiled = match compiled(module, Arch::default(), opt_level) {
        Ok(compiled) => compiled,
        Err(e) => return Some(Err(failure(&e))),
    };
    Some(match stage {
        Stage::GpuHlo => Ok(print_module(compiled.module(), &PrintOptions::source(compiled.module()))),
        Stage::Ptx => Ok(compiled.ptx().join("\n")),
        _ => compiled.assemble(true, &mut |_, _| {}).map_err(|e| failure(&e.into())).map(|program| {
            let mut text = String::new();
            plan(&program.plan, 0, &mut text);
            text
        }),
    })
}

fn argument(argument: &Argument) -> String {
    match argument {
        Argument::Slice(s) => format!("{}+{}:{}", s.allocation, s.offset, s.bytes),
        Argument::Word(word) => format!("{word:#x}"),
    }
}

/// A line a step; a slice is `allocation+offset:bytes`.
fn plan(of: &Plan, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    for step in &of.steps {
        let name = &step.name;
        let _ = match &step.action {
            Action::Launch(l) => {
                let arguments: Vec<String> = l.arguments.iter().map(argument).collect();
                let [[x, y, z], [a, b, c]] = [l.grid, l.block];
                let shared =
                    if l.shared_bytes > 0 { format!(" shared={}", l.shared_bytes) } else { String::new() };
                let arguments = arguments.join(" ");
                writeln!(
                    text,
                    "{indent}{name}: {} grid={x},{y},{z} block={a},{b},{c}{shared} {arguments}",
                    l.symbol
                )
            }
            Action::Copy { from, to } => {
                let [from, to] = [from, to].map(|&s| argument(&Argument::Slice(s)));
                writeln!(text, "{indent}{name}: copy {from} to {to}")
            }
            Action::Fill { to, byte } => {
                writeln!(text, "{indent}{name}: fill {} with {byte:#x}", argument(&Argument::Slice(*to)))
            }
            Action::While { condition, predicate, body, iterations } => {
                match iterations {
                    Some(n) => {
                        let _ = writeln!(text, "{indent}{name}: {n} times");
                    }
                    None => {
                        let _ = writeln!(
                            text,
                            "{indent}{name}: while {}",
                            argument(&Argument::Slice(*predicate))
                        );
                        plan(condition, depth + 1, text);
                    }
                }
                let done = writeln!(text, "{indent}do");
                plan(body, depth + 1, text);
                done
            }
            Action::Conditional { selector, branches, .. } => {
                let done =
                    writeln!(text, "{indent}{name}: conditional {}", argument(&Argument::Slice(*selector)));
                for branch in branches {
                    let _ = writeln!(text, "{indent}branch");
                    plan(branch, depth + 1, text);
                }
                done
            }
        };
    }
}
