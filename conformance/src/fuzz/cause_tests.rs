//! The instructions that undecided elements come down to.

use std::sync::Arc;

use hlo::{ArrayLiteral, Buffer};
use hlo_certify::bounds::certify;
use hlo_engines::engine::{Allowances, Inputs, RunOptions};
use hlo_engines::frontend::parse_text;

use super::cause::Causes;

/// The causes of the results of a program on arrays of f32.
fn causes(text: &str, inputs: &[&[f32]]) -> Vec<Option<String>> {
    let (module, found) = parse_text(text);
    let module = module.unwrap_or_else(|| panic!("{found:?}"));
    let mut causes = Causes::default();
    let parameters = module.computation(module.entry()).parameters().iter().zip(inputs);
    let arguments = parameters.map(|(p, x)| {
        let dims = module.instr(p.unwrap()).shape.expect_array().dims.clone();
        hlo::Literal::Array(ArrayLiteral { dims, buffer: Buffer::F32(x.to_vec()).into() })
    });
    let host = Arc::new(hlo_interp::device::host::NoHost);
    let given = Inputs { arguments: vec![arguments.collect()], host };
    let all = certify(&module, given, &RunOptions::default(), Allowances::STRICT, &mut causes);
    let arrays = all.unwrap().results[0].len();
    (0..arrays).map(|k| causes.of_result(&module, k).map(|kind| kind.to_string())).collect()
}

/// A number below 1 by rounding alone has another floor; what reads that inherits it, and what does not is
/// decided.
#[test]
fn a_decision_is_found_behind_what_follows_from_it() {
    let text = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n y = f32[2] exponential(x)\n f = f32[2] floor(y)\n z = f32[2] add(f, y)\n r = f32[2] reverse(z), dimensions={0}\n ROOT t = (f32[2], f32[2]) tuple(y, r) }";
    assert_eq!(causes(text, &[&[0.0, 1.0]]), [None, Some("floor f32".to_owned())]);
}

/// A quotient by what may be 0 has no bound, in a loop and a call as well.
#[test]
fn a_lost_bound_is_found_in_calls_and_loops() {
    let text = "HloModule m\ncalled { a = f32[2] parameter(0)\n s = f32[2] sine(a)\n ROOT q = f32[2] divide(a, s) }
next { p = (s32[], f32[2]) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n x = f32[2] get-tuple-element(p), index=1\n one = s32[] constant(1)\n j = s32[] add(i, one)\n c = f32[2] call(x), to_apply=called\n n = f32[2] negate(c)\n ROOT t = (s32[], f32[2]) tuple(j, n) }
goes { p = (s32[], f32[2]) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n two = s32[] constant(2)\n ROOT l = pred[] compare(i, two), direction=LT }
ENTRY e { x = f32[2] parameter(0)\n zero = s32[] constant(0)\n s = (s32[], f32[2]) tuple(zero, x)\n w = (s32[], f32[2]) while(s), condition=goes, body=next\n i = s32[] get-tuple-element(w), index=0\n v = f32[2] get-tuple-element(w), index=1\n b = f32[2] abs(v)\n ROOT t = (s32[], f32[2]) tuple(i, b) }";
    assert_eq!(causes(text, &[&[std::f32::consts::PI, 1.0]]), [None, Some("divide f32".to_owned())]);
}

/// A loop whose end hangs on rounding is undecided because of the comparison.
#[test]
fn the_end_of_a_loop_comes_down_to_its_condition() {
    let text = "HloModule m
next { p = f32[] parameter(0)\n c = f32[] constant(0.5)\n ROOT q = f32[] subtract(p, c) }
goes { p = f32[] parameter(0)\n one = f32[] constant(1)\n e = f32[] exponential(p)\n ROOT l = pred[] compare(e, one), direction=GT }
ENTRY e { x = f32[] parameter(0)\n ROOT w = f32[] while(x), condition=goes, body=next }";
    assert_eq!(causes(text, &[&[1.0]]), [Some("compare pred".to_owned())]);
}
