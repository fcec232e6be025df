//! Any bytes: the program that they mean verifies, and gives the same bits after the passes that keep every
//! bit.
//!
//! From `conformance/`: `cargo +nightly fuzz run differential -- -max_len=400`
#![no_main]

use hlo::ArrayLiteral;
use hlo_engines::engine::{self, Inputs, Outcome, RunOptions};
use hlo_generate::generate::{Case, Limits};
use libfuzzer_sys::fuzz_target;

/// The results, or the message that the run ended with.
fn run(name: &str, case: &Case) -> Result<Vec<Vec<ArrayLiteral>>, String> {
    let engine = engine::by_name(name).map_err(|f| f.message)?;
    let devices = engine::devices::stated(&case.module, None, None).map_err(|f| f.message)?;
    let inputs = Inputs::new(&case.module, &case.inputs).map_err(|f| f.message)?;
    match engine.run(&case.module, inputs, &RunOptions { devices, ..RunOptions::default() }) {
        Outcome::Finished(finished) => Ok(finished.results),
        Outcome::Trap(d) => Err(d.message),
        other => panic!("{name}: {other:?}"),
    }
}

fuzz_target!(|data: &[u8]| {
    let case = Case::of(data.to_vec(), data.len() as u64, Limits::small(), &[]);
    let found = hlo::verify::verify(&case.module);
    assert!(!found.has_errors(), "{found:?}");
    // What traps need not trap at the same instruction.
    if let (Ok(a), Ok(b)) = (run("interpreter", &case), run("passes:default", &case)) {
        assert!(
            a == b,
            "{}",
            hlo::print::print_module(&case.module, &hlo::print::PrintOptions::source(&case.module))
        );
    }
});
