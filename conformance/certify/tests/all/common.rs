//! Programs of one device with bounds.

use std::sync::Arc;

use hlo::{ArrayLiteral, Module};
use hlo_certify::bounds::{Bounds, certify};
use hlo_execution::allowances::Allowances;
use hlo_execution::number;
use hlo_execution::run::{Inputs, RunOptions};
use hlo_interp::Value;
use hlo_interp::device::host::NoHost;

pub(crate) fn parse_text(text: &str) -> (Option<Module>, hlo::Diagnostics) {
    let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
    (parsed.module, parsed.diagnostics)
}

/// Arrays of f32 for the parameters of a program of one device, converted to their types.
pub(crate) fn given(module: &Module, inputs: &[&[f32]]) -> Inputs {
    let parameters = module.computation(module.entry()).parameters();
    let arguments = parameters.iter().zip(inputs).map(|(p, x)| {
        let shape = module.instr(p.unwrap()).shape.expect_array();
        let tensor = number::tensor(
            shape.element_type,
            &shape.dims,
            &x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>(),
        );
        Value::Array(tensor).into_literal()
    });
    Inputs { arguments: vec![arguments.collect()], host: Arc::new(NoHost) }
}

/// Runs a program of one device on arrays of f32 (dimensions from the parameters), and gives bounds and
/// values.
pub(crate) fn certified(
    text: &str,
    inputs: &[&[f32]],
    allowances: Allowances,
) -> Vec<(ArrayLiteral, Bounds)> {
    let (module, found) = parse_text(text);
    let module = module.unwrap_or_else(|| panic!("{found:?}"));
    let inputs = given(&module, inputs);
    let mut all = certify(&module, inputs, &RunOptions::default(), allowances, &mut ()).unwrap();
    all.results.pop().unwrap()
}

pub(crate) fn one(text: &str, inputs: &[&[f32]]) -> Bounds {
    let mut all = certified(text, inputs, Allowances::STRICT);
    all.remove(0).1
}

pub(crate) const U: f64 = f32::EPSILON as f64;
