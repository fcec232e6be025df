//! Bounds that rest on relations between arrays, and engines that take liberties.

use std::sync::Arc;

use hlo::Module;
use hlo_certify::bounds::certify;
use hlo_engines::engine::{self, Inputs, Outcome, RunOptions};
use hlo_engines::frontend::parse_text;
use hlo_execution::element::numbers;
use hlo_execution::verdict::{Class, judge};
use hlo_interp::device::host::NoHost;
use hlo_interp::{Tensor, Value};
use libtest_mimic::{Failed, Trial};

use crate::failed;

#[expect(dead_code, reason = "the tests of bounds use its other forms")]
#[path = "../../certify/tests/all/logits.rs"]
mod logits;

use logits::{Form, inputs};

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::test("certified/liberties_reach_across_relations", liberties_reach_across_relations)]
}

/// Engines that take liberties are inside, and would not be inside of what strict ones are allowed.
fn liberties_reach_across_relations() -> Result<(), Failed> {
    let mut above = 0;
    for (name, ty, scale) in [
        ("interpreter:fma", "f32", 4e5),
        ("interpreter:fma", "f32", 1e7),
        ("interpreter:fma", "f64", 1e16),
        ("interpreter:excess", "bf16", 1e2),
        ("interpreter:excess", "f16", 1e3),
        ("interpreter:reversed", "f32", 4e5),
        ("interpreter:tree", "f32", 1e7),
        ("interpreter:ulp-up", "f32", 4e5),
        ("interpreter:ulp-down", "bf16", 1e2),
        ("interpreter:flush", "f32", 4e5),
    ] {
        let engine = engine::by_name(name).unwrap();
        for seed in 0..4 {
            let arguments = inputs(seed);
            let (module, found) = parse_text(&logits::logits(ty, scale, Form::Plain));
            let module = module.unwrap_or_else(|| panic!("{found:?}"));
            let Outcome::Finished(finished) =
                engine.run(&module, given(&module, &arguments), &RunOptions::default())
            else {
                return Err(failed(format!("{name} does not run")));
            };
            let allowances = engine.allowances();
            let certified =
                certify(&module, given(&module, &arguments), &RunOptions::default(), allowances, &mut ())
                    .unwrap();
            let actual = &finished.results[0];
            for (k, ((expected, bounds), actual)) in certified.results[0].iter().zip(actual).enumerate() {
                let verdict = judge(expected, actual, bounds, false).unwrap();
                if verdict.class() >= Class::Wrong {
                    return Err(failed(format!("{name} {ty} {scale} result {k}: {verdict:?}")));
                }
            }
            above +=
                usize::from(name != "interpreter:ulp-up" && numbers(&actual[0]).iter().any(|&e| e > 1.0));
        }
    }
    if above > 8 { Ok(()) } else { Err(failed(format!("no engine has anything above the maximum: {above}"))) }
}

/// Arrays of f32 for the parameters of a program of one device.
fn given(module: &Module, arrays: &[Vec<f32>]) -> Inputs {
    let parameters = module.computation(module.entry()).parameters();
    let arguments = parameters.iter().zip(arrays).map(|(p, x)| {
        let dims = &module.instr(p.unwrap()).shape.expect_array().dims;
        Value::Array(Tensor::from_vec(&**dims, x.clone())).into_literal()
    });
    Inputs { arguments: vec![arguments.collect()], host: Arc::new(NoHost) }
}
