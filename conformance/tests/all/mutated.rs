//! Mutants of recorded programs: the interpreter runs them, on one and two threads to the same bits.
//!
//! `HLO_PROPERTY_CASES=N` asks for more of them, `HLO_PROPERTY_SEED=S` for others; then those of `../shared`
//! are taken, too.

use std::panic::AssertUnwindSafe;
use std::path::Path;

use hlo::Module;
use hlo::print::{PrintOptions, print_module};
use hlo_conformance::folder::find_cases;
use hlo_engines::engine::Inputs;
use hlo_engines::frontend;
use hlo_engines::inputs;
use hlo_generate::mutate::{Mutant, mutate};
use hlo_interp::Accumulate;
use hlo_triage::case::Case;
use libtest_mimic::{Failed, Trial};

use crate::generated::{POOLS, run, variable};
use crate::{crate_dir, failed};

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::test("mutants of recorded programs", mutants)]
}

struct Source {
    name: String,
    module: Module,
    inputs: Vec<Vec<hlo::ArrayLiteral>>,
}

/// The program of a case that is small enough, with its inputs.
fn source(folder: &Path) -> Option<Source> {
    let case = Case::open(folder).ok()?;
    let devices = case.devices().ok()?;
    let module = frontend::load(&case.program(false)?.to_string_lossy()).ok()?.module;
    let small =
        inputs::parameter_arrays(&module).iter().all(|a| a.checked_elements().is_some_and(|n| n <= 4096));
    (small && frontend::instruction_count(&module) <= 600).then_some(())?;
    let inputs = inputs::read(&module, &mut case.inputs(1 << 30).ok()?, devices).ok()?;
    Some(Source { name: folder.file_name()?.to_string_lossy().into_owned(), module, inputs })
}

fn mutants() -> Result<(), Failed> {
    let cases = variable("HLO_PROPERTY_CASES", 0);
    let first = variable("HLO_PROPERTY_SEED", 1) << 32;
    let (step, count) = if cases == 0 { (23, 80) } else { (1, cases) };
    let mut roots = vec![crate_dir().join("corpus")];
    let shared = crate_dir().join("../../shared/corpus");
    if cases > 0 && shared.is_dir() {
        roots.extend(["jax", "multi", "linalg"].map(|f| shared.join(f)));
    }
    let roots: Vec<String> = roots.iter().map(|r| r.to_string_lossy().into_owned()).collect();
    let folders = find_cases(&roots).map_err(|f| failed(f.message))?;
    let sources: Vec<Source> = folders.iter().step_by(step).filter_map(|f| source(f)).collect();
    let donors: Vec<&Module> = sources.iter().map(|s| &s.module).collect();
    let (mut ran, mut refused) = (0u64, 0u64);
    for seed in first..first + count {
        let source = &sources[(hlo::elided::splitmix64(seed) % sources.len() as u64) as usize];
        let Some(mutant) = mutate(&source.module, &source.inputs, &donors, seed) else { continue };
        ran += 1;
        if std::env::var_os("HLO_PROPERTY_SHOW").is_some() {
            eprintln!("{seed} {} {:?}", source.name, mutant.steps);
        }
        let tried = std::panic::catch_unwind(AssertUnwindSafe(|| runs(&mutant)));
        let message = match tried {
            Ok(Ok(())) => continue,
            // Some targets of custom calls take constants, or certain layouts, alone.
            Ok(Err(message)) if message.starts_with("unsupported") => {
                refused += 1;
                if refused * 50 <= count.max(100) {
                    continue;
                }
                format!("more than one in fifty is refused; {message}")
            }
            Ok(Err(message)) => message,
            Err(_) => "a panic".to_owned(),
        };
        let text = print_module(&mutant.module, &PrintOptions::source(&mutant.module));
        let steps = mutant.steps.join(", ");
        return Err(failed(format!("{message}\nseed {seed}: {} after {steps}\n{text}", source.name)));
    }
    if ran * 10 < count * 8 {
        return Err(failed(format!("of {count} seeds {ran} give a mutant")));
    }
    Ok(())
}

fn runs(mutant: &Mutant) -> Result<(), String> {
    let once = |threads: usize| {
        let inputs = Inputs::new(&mutant.module, &mutant.inputs).map_err(|f| f.message)?;
        POOLS[threads].install(|| run(&mutant.module, inputs, Accumulate::Exact))
    };
    if once(0)? == once(1)? { Ok(()) } else { Err("two threads compute other results".into()) }
}
