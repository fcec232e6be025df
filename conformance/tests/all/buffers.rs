//! Buffers of generated programs, of filetests and of recorded cases: each assignment is checked on runs of
//! its program ([`hlo_opt::buffers::check`]), of the program as it is, scheduled, and as it is compiled.
//!
//! `HLO_PROPERTY_CASES=N` asks for more cases, `HLO_PROPERTY_SEED=S` for others.

use std::path::{Path, PathBuf};

use hlo::print::{PrintOptions, print_module};
use hlo::{InstrId, Module, Opcode};
use hlo_engines::frontend::parse_file;
use hlo_generate::generate::{self, program};
use hlo_opt::buffers::{Questions, assign, check};
use hlo_opt::passes::{Fuel, Pipeline, by_name};
use libtest_mimic::Trial;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

use crate::{crate_dir, failed, files_below};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![Trial::test("buffers/generated", || property(200).map_err(failed))];
    let mut folder = |name: String, folder: PathBuf| {
        let files: Vec<PathBuf> = files_below(&folder, "hlo");
        trials.push(Trial::test(name, move || all(&files).map_err(failed)));
    };
    folder("buffers/filetests".to_owned(), crate_dir().join("filetests"));
    let shared = crate_dir().join("../../shared");
    for name in ["corpus/jax", "corpus/stablehlo", "corpus/linalg", "corpus/xla", "bench"] {
        if shared.join(name).is_dir() {
            folder(format!("buffers/shared/{name}"), shared.join(name));
        } else {
            eprintln!("NOTE: ../shared/{name} is not beside this checkout: its cases are SKIPPED");
        }
    }
    trials
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

fn property(cases: u32) -> Result<(), String> {
    let cases = u32::try_from(variable("HLO_PROPERTY_CASES", u64::from(cases))).unwrap_or(u32::MAX);
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&variable("HLO_PROPERTY_SEED", 1).to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 4000, ..Config::default() };
    let limits = generate::Limits::default();
    let result = TestRunner::new_with_rng(config, rng)
        .run(&proptest::collection::vec(any::<u8>(), 0..1600), |bytes| {
            holds(&program(&bytes, limits)).map(|_| ()).map_err(TestCaseError::fail)
        });
    result.map_err(|e| match e {
        TestError::Fail(reason, bytes) => {
            let module = program(&bytes, limits);
            format!("{reason}\n{}", print_module(&module, &PrintOptions::source(&module)))
        }
        TestError::Abort(reason) => reason.to_string(),
    })
}

/// The program as it is, scheduled, and as it is compiled. Returns how many of these have buffers; errors: an
/// assignment that is wrong.
fn holds(module: &Module) -> Result<usize, String> {
    let mut found = 0;
    let with = |pipeline: Pipeline, names: &[&str]| {
        names.iter().fold(pipeline, |p, name| p.then(by_name(name).unwrap(), None))
    };
    let forms = [
        with(Pipeline::new(), &["flatten-call-graph"]),
        with(Pipeline::new(), &["flatten-call-graph", "schedule"]),
        with(Pipeline::cpu(2), &["flatten-call-graph", "schedule"]),
    ];
    for pipeline in forms {
        let mut form = module.clone();
        pipeline.run(&mut form, &mut Fuel::UNLIMITED.clone()).map_err(|b| format!("{b:?}"))?;
        // Some memory for what is not elementwise.
        let scratch = |id: InstrId| {
            let opcode = form.instr(id).opcode;
            let plain = opcode.is_elementwise() || opcode == Opcode::Fusion;
            if plain { 0 } else { form.instr(id).shape.checked_bytes().map_or(0, |b| b as u64 / 2) }
        };
        let questions = Questions { scratch: &scratch, whole: &|_| false, epilogue_in_place: &|_| true };
        match assign(&form, &questions) {
            Ok(assigned) => {
                found += 1;
                check::check(&form, &assigned, &questions)
                    .map_err(|e| format!("{e}\n{}", print_module(&form, &PrintOptions::source(&form))))?;
                let a = &assigned.assignment;
                if a.peak_bytes < a.lower_bound_bytes {
                    return Err(format!("{} bytes are less than {}", a.peak_bytes, a.lower_bound_bytes));
                }
            }
            Err(e)
                if e.reason.contains("unbounded")
                    || e.reason.contains("called from elsewhere")
                    || e.reason.contains("another float type") => {}
            Err(e) => return Err(format!("refused: {e:?}")),
        }
    }
    Ok(found)
}

fn all(files: &[PathBuf]) -> Result<(), String> {
    let (mut programs, mut assigned) = (0, 0);
    for file in files {
        let Some(module) = module(file) else { continue };
        programs += 3;
        assigned += holds(&module).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    if programs == 0 || assigned * 100 < programs * 98 {
        return Err(format!("{assigned} of {programs} programs have buffers"));
    }
    Ok(())
}

fn module(file: &Path) -> Option<Module> {
    let (_, module, ..) = parse_file(&file.to_string_lossy(), None).ok()?;
    (!hlo::verify::verify(&module).has_errors()).then_some(module)
}
