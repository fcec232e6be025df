//! All integration tests, in one binary: filetests, recorded cases, past crashers, and the command line as
//! people use it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "says what it skips")]

mod ahead;
mod attack;
mod bisect;
mod buffers;
mod certified;
mod choices;
mod cli;
mod compiled;
mod convert;
mod corpora;
mod coverage;
mod cpu;
mod crashers;
mod cuda;
mod custom_calls;
mod decided;
mod dumps;
mod engines;
mod extremes;
mod faults;
mod filetests;
mod folders;
mod fuzz;
mod generated;
mod isolate;
mod judging;
mod limits;
mod merges;
mod mlir;
mod mutated;
mod operand_types;
mod output;
mod passes;
mod pasted;
mod processes;
mod ptx;
mod reduce;
mod relations;
mod reports;
mod robust;
mod semantics;
mod stablehlo;
mod steps;
mod threads;
mod time;
mod viz;
mod watch;
mod xla_gpu;

use libtest_mimic::{Arguments, Failed, Trial};

/// A test that is a function: a panic is its failure.
fn function(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

fn main() {
    if let Some(code) = hlo_system::process::supervised() {
        std::process::exit(i32::from(code));
    }
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    trials.extend(filetests::trials());
    trials.extend(ahead::trials());
    trials.extend(coverage::trials());
    trials.extend(cpu::trials());
    trials.extend(steps::trials());
    trials.extend(compiled::trials());
    trials.extend(crashers::trials());
    trials.extend(engines::trials());
    trials.extend(fuzz::trials());
    trials.extend(corpora::trials());
    trials.extend(certified::trials());
    trials.extend(merges::trials());
    trials.extend(relations::trials());
    trials.extend(cli::trials());
    trials.extend(convert::trials());
    trials.extend(pasted::trials());
    trials.extend(folders::trials());
    trials.extend(cuda::trials());
    trials.extend(custom_calls::trials());
    trials.extend(output::trials());
    trials.extend(reduce::trials());
    trials.extend(xla_gpu::trials());
    trials.extend(ptx::trials());
    trials.extend(robust::trials());
    trials.extend(generated::trials());
    trials.extend(mlir::trials());
    trials.extend(mutated::trials());
    trials.extend(passes::trials());
    trials.extend(processes::trials());
    trials.extend(bisect::trials());
    trials.extend(buffers::trials());
    trials.extend(semantics::trials());
    trials.extend(viz::trials());
    trials.extend(decided::trials());
    trials.extend(dumps::trials());
    trials.extend(reports::trials());
    trials.extend(stablehlo::trials());
    trials.extend(watch::trials());
    trials.extend(isolate::trials());
    trials.extend(judging::trials());
    trials.extend(choices::trials());
    trials.extend(limits::trials());
    trials.extend(threads::trials());
    trials.extend(time::trials());
    trials.extend(faults::trials());
    trials.extend(attack::trials());
    trials.extend(operand_types::trials());
    trials.extend(extremes::trials());
    libtest_mimic::run(&arguments, trials).exit();
}

/// The folder of this crate.
fn crate_dir() -> &'static std::path::Path {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files below a folder with this ending, sorted.
fn files_below(folder: &std::path::Path, ending: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|e| e == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn failed(message: impl Into<String>) -> Failed {
    Failed::from(message.into())
}
