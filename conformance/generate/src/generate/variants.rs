//! What every variant of the interpreter keeps, on generated programs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use hlo::elided::splitmix64;
use hlo::verify::verify;
use hlo_opt::passes::Fuel;
use rustc_hash::FxHashSet;

use super::{Limits, program};
use hlo_engines::variants::all;

#[test]
fn what_variants_leave_verifies_and_keeps_the_shape_of_results() {
    let mut applied = FxHashSet::default();
    for seed in 0..300u64 {
        let bytes: Vec<u8> = (0..600).map(|i| splitmix64(seed << 20 | i) as u8).collect();
        let module = program(&bytes, Limits::default());
        for v in all() {
            let mut m = module.clone();
            let n = v.pass.run(&mut m, &mut Fuel::UNLIMITED.clone());
            let found = verify(&m);
            assert!(found.is_empty(), "{} of seed {seed}: {found:?}", v.pass.name());
            assert_eq!(m.program_shape(m.entry()), module.program_shape(module.entry()));
            if n > 0 {
                applied.insert(v.pass.name().to_owned());
            }
            // Each application is counted, and none is done without fuel.
            let mut m = module.clone();
            let mut fuel = Fuel::new(n / 2);
            assert_eq!(v.pass.run(&mut m, &mut fuel), n / 2, "{} of seed {seed}", v.pass.name());
            assert!(verify(&m).is_empty(), "{} of seed {seed} with half of the fuel", v.pass.name());
        }
    }
    assert_eq!(applied.len(), all().len(), "{applied:?}");
}
