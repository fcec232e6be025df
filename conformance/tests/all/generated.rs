//! Properties of generated programs: they verify, their text reads back, and their results are the same bits
//! on any number of threads and after printing and parsing.
//!
//! A failure is shrunk by proptest and shown as a program. `HLO_PROPERTY_CASES=N` asks for more cases,
//! `HLO_PROPERTY_SEED=S` for others.

use std::sync::LazyLock;

use hlo::print::{PrintOptions, print_module};
use hlo::{ArrayLiteral, Module, modules_equal};
use hlo_engines::engine::{self, Engine, Inputs, InterpreterEngine, Limits, Outcome, RunOptions};
use hlo_engines::frontend::parse_text;
use hlo_execution::element;
use hlo_generate::generate::{self, program};
use hlo_interp::Accumulate;
use libtest_mimic::Trial;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::failed;

/// Pools of 1, 2 and 8 threads.
pub(crate) static POOLS: LazyLock<Vec<ThreadPool>> = LazyLock::new(|| {
    let pool = |n| ThreadPoolBuilder::new().num_threads(n).stack_size(16 << 20).build();
    [1, 2, 8].into_iter().map(|n| pool(n).expect("threads can be started")).collect()
});

pub(crate) fn trials() -> Vec<Trial> {
    let small = generate::Limits::default();
    // Large enough that kernels partition their work.
    let large = generate::Limits { elements: 40_000, instructions: 6, nesting: 1, devices: 1, ..small };
    vec![
        property("generated/small", 1200, 500, small),
        property("generated/large", 60, 60, large),
        Trial::test("generated/cases", cases),
    ]
}

/// Cases of consecutive seeds, of small and of ordinary limits: results, on one and two threads the same, and
/// seldom NaN throughout. `HLO_PROPERTY_CASES` and `HLO_PROPERTY_SEED` as above.
fn cases() -> Result<(), libtest_mimic::Failed> {
    let first = variable("HLO_PROPERTY_SEED", 1) << 32;
    let count = variable("HLO_PROPERTY_CASES", 300);
    let (mut finished, mut dull) = (0u64, 0u64);
    for seed in first..first + count {
        let limits = if seed % 2 == 0 { generate::Limits::small() } else { generate::Limits::default() };
        let case = generate::case(seed, limits);
        let shown = || {
            let text = print_module(&case.module, &PrintOptions::source(&case.module));
            format!("seed {seed} of {limits:?}\n{text}")
        };
        let found = hlo::verify::verify(&case.module);
        if found.has_errors() {
            return Err(failed(format!("does not verify: {found:?}\n{}", shown())));
        }
        let once = |threads: usize| {
            let inputs = Inputs::new(&case.module, &case.inputs).map_err(|f| f.message)?;
            POOLS[threads].install(|| run(&case.module, inputs, Accumulate::Exact))
        };
        let results = [once(0), once(1)];
        match &results {
            [Ok(a), Ok(b)] if a == b => {
                let Ok(arrays) = a else { continue };
                finished += 1;
                dull += u64::from(arrays.iter().all(no_number));
            }
            [Err(e), _] | [_, Err(e)] => return Err(failed(format!("{e}\n{}", shown()))),
            [Ok(_), Ok(_)] => return Err(failed(format!("two threads compute other results\n{}", shown()))),
        }
    }
    if finished * 100 < count * 97 || dull * 100 > count * 5 {
        return Err(failed(format!("of {count} programs {finished} finish and {dull} give no numbers")));
    }
    Ok(())
}

/// Whether an array has elements, all of them NaN.
fn no_number(a: &ArrayLiteral) -> bool {
    hlo::with_buffer!(&*a.buffer, v => !v.is_empty() && v.iter().all(|&x| element::is_nan(x)))
}

pub(crate) fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

fn property(name: &str, bytes: usize, cases: u32, limits: generate::Limits) -> Trial {
    Trial::test(name, move || {
        let cases = u32::try_from(variable("HLO_PROPERTY_CASES", u64::from(cases))).unwrap_or(u32::MAX);
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&variable("HLO_PROPERTY_SEED", 1).to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let config = Config { cases, failure_persistence: None, max_shrink_iters: 4000, ..Config::default() };
        let strategy = (proptest::collection::vec(any::<u8>(), 0..bytes), 0..u64::MAX);
        let result = TestRunner::new_with_rng(config, rng).run(&strategy, |(bytes, seed)| {
            holds(&program(&bytes, limits), seed).map_err(TestCaseError::fail)
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

/// Everything that must be true of a program.
fn holds(module: &Module, seed: u64) -> Result<(), String> {
    let found = hlo::verify::verify(module);
    if found.has_errors() {
        return Err(format!("does not verify: {found:?}"));
    }
    let text = print_module(module, &PrintOptions::source(module));
    let (read, found) = parse_text(&text);
    let read = read.ok_or_else(|| format!("does not read back: {found:?}"))?;
    if let Err(difference) = modules_equal(module, &read) {
        return Err(format!("reads back as another program: {difference:?}"));
    }
    let inputs = Inputs::new(module, &generate::inputs(module, seed)).map_err(|f| f.message)?;
    for accumulate in [Accumulate::Exact, Accumulate::Region] {
        let mut first: Option<Result<Vec<ArrayLiteral>, String>> = None;
        for pool in POOLS.iter() {
            for m in [module, &read] {
                let result = pool.install(|| run(m, inputs.clone(), accumulate))?;
                match &first {
                    None => first = Some(result),
                    Some(expected) if *expected == result => {}
                    Some(_) => {
                        let threads = pool.current_num_threads();
                        let which = if std::ptr::eq(m, module) { "program" } else { "text" };
                        return Err(format!(
                            "other results of the {which} with {threads} threads, {accumulate:?}"
                        ));
                    }
                }
            }
        }
    }
    Ok(())
}

/// The results, or the message of a trap. Errors: what a generated program must not come to.
pub(crate) fn run(
    module: &Module,
    inputs: Inputs,
    accumulate: Accumulate,
) -> Result<Result<Vec<ArrayLiteral>, String>, String> {
    // A mutant's loop may have lost its end.
    let limits = Limits { fuel: Some(200_000), memory_bytes: 1 << 30 };
    let devices = engine::devices::stated(module, None, None).map_err(|f| f.message)?;
    let options = RunOptions { accumulate, limits, devices, ..RunOptions::default() };
    match InterpreterEngine.run(module, inputs, &options) {
        Outcome::Finished(finished) => Ok(Ok(finished.results.concat())),
        Outcome::Trap(d) => Ok(Err(d.message)),
        Outcome::Unsupported(d) => Err(format!("unsupported: {}", d.message)),
        Outcome::WrongInputs(d) => Err(format!("wrong inputs: {}", d.message)),
        Outcome::Crashed(d) | Outcome::TimedOut(d) => Err(d.message),
    }
}
