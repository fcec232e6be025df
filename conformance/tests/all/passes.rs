//! The passes that keep every bit, each by itself and all in the default pipeline, on generated programs: the
//! interpreter gives the same bits before and after, in both modes of `--accumulate`; what they leave
//! verifies and reads back.
//!
//! `HLO_PROPERTY_CASES=N` asks for more cases, `HLO_PROPERTY_SEED=S` for others.

use std::sync::Arc;

use hlo::print::{PrintOptions, print_module};
use hlo::{Literal, Module, modules_equal};
use hlo_engines::engine::interpreter::interpret;
use hlo_engines::engine::{Inputs, Limits, Outcome, RunOptions};
use hlo_engines::frontend::parse_text;
use hlo_generate::generate::{self, edge_inputs, program};
use hlo_interp::Accumulate;
use hlo_interp::device::host::NoHost;
use hlo_opt::passes::{DECLARED, Fuel, Pipeline, by_name};
use libtest_mimic::Trial;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

use crate::failed;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> =
        DECLARED.iter().map(|d| property(format!("passes/{}", d.name), d.name, 60)).collect();
    trials.push(property("passes/default".to_owned(), "default", 150));
    trials.push(property("passes/cpu".to_owned(), "cpu", 150));
    trials
}

fn pipeline(name: &str) -> Pipeline {
    match by_name(name) {
        Some(pass) => Pipeline::new().then(pass, None),
        None if name == "cpu" => Pipeline::cpu(3),
        None => Pipeline::standard(),
    }
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

fn property(trial: String, name: &'static str, cases: u32) -> Trial {
    Trial::test(trial, move || {
        let cases = u32::try_from(variable("HLO_PROPERTY_CASES", u64::from(cases))).unwrap_or(u32::MAX);
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&variable("HLO_PROPERTY_SEED", 1).to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let config = Config { cases, failure_persistence: None, max_shrink_iters: 4000, ..Config::default() };
        let strategy = (proptest::collection::vec(any::<u8>(), 0..1200), 0..u64::MAX);
        let limits = generate::Limits::default();
        let pipeline = pipeline(name);
        let result = TestRunner::new_with_rng(config, rng).run(&strategy, |(bytes, seed)| {
            holds(&program(&bytes, limits), &pipeline, seed).map_err(TestCaseError::fail)
        });
        match result {
            Ok(()) => Ok(()),
            Err(TestError::Fail(reason, (bytes, seed))) => {
                let module = program(&bytes, limits);
                let text = print_module(&module, &PrintOptions::source(&module));
                Err(failed(format!("{reason}\ninputs of seed {seed}\n{text}")))
            }
            Err(TestError::Abort(reason)) => Err(failed(reason.to_string())),
        }
    })
}

fn holds(module: &Module, pipeline: &Pipeline, seed: u64) -> Result<(), String> {
    let mut form = module.clone();
    let ran = pipeline.run(&mut form, &mut Fuel::UNLIMITED.clone()).map_err(|b| format!("{b:?}"))?;
    let found = hlo::verify::verify(&form);
    let text = |m: &Module| print_module(m, &PrintOptions::source(m));
    if !found.is_empty() {
        return Err(format!("does not verify: {found:?}\n{}", text(&form)));
    }
    let n: u64 = ran.iter().map(|r| r.applications).sum();
    if n == 0 {
        return Ok(());
    }
    let compact = form.compact();
    let (read, found) = parse_text(&text(&compact));
    let read = read.ok_or_else(|| format!("does not read back: {found:?}\n{}", text(&form)))?;
    if let Err(difference) = modules_equal(&compact, &read) {
        return Err(format!("reads back as another program: {difference:?}"));
    }
    // Half of the fuel is a program too.
    let mut half = module.clone();
    let mut fuel = Fuel::new(n / 2);
    pipeline.run(&mut half, &mut fuel).map_err(|b| format!("{b:?}"))?;
    if fuel.taken() != n / 2 || !hlo::verify::verify(&half).is_empty() {
        return Err(format!("{} applications of {n}: {}", fuel.taken(), text(&half)));
    }
    let inputs = edge_inputs(module, seed);
    for accumulate in [Accumulate::Exact, Accumulate::Region] {
        let Outcome::Finished(right) = run(module, inputs.clone(), accumulate) else { continue };
        for m in [&form, &half] {
            match run(m, inputs.clone(), accumulate) {
                Outcome::Finished(f) if f.results == right.results => {}
                Outcome::Finished(f) => {
                    let (got, wanted) = (&f.results[0], &right.results[0]);
                    let at = got.iter().zip(wanted).position(|(a, b)| a != b);
                    return Err(format!(
                        "{accumulate:?}: other bits, result {at:?}: {:?} and not {:?}\n{}",
                        at.map(|i| &got[i]),
                        at.map(|i| &wanted[i]),
                        text(m)
                    ));
                }
                other => return Err(format!("{other:?}\n{}", text(m))),
            }
        }
    }
    Ok(())
}

fn run(module: &Module, inputs: Vec<Literal>, accumulate: Accumulate) -> Outcome {
    let limits = Limits { fuel: Some(50_000_000), memory_bytes: 1 << 30 };
    let options = RunOptions { accumulate, limits, ..RunOptions::default() };
    interpret(module, Inputs { arguments: vec![inputs], host: Arc::new(NoHost) }, &options, None)
}
