//! Bounds worked out by hand.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::frontend::parse_text;

/// Runs a program of one device on arrays of f32 (dimensions from the parameters), and gives bounds and values.
fn certified(text: &str, inputs: &[&[f32]], allowances: Allowances) -> Vec<(ArrayLiteral, Bounds)> {
    let (module, found) = parse_text(text);
    let module = module.unwrap_or_else(|| panic!("{found:?}"));
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
    let inputs =
        Inputs { arguments: vec![arguments.collect()], host: Arc::new(hlo_interp::device::host::NoHost) };
    let mut all = certify(&module, &inputs, &RunOptions::default(), allowances, &mut ()).unwrap();
    all.results.pop().unwrap()
}

fn one(text: &str, inputs: &[&[f32]]) -> Bounds {
    let mut all = certified(text, inputs, Allowances::STRICT);
    all.remove(0).1
}

const U: f64 = f32::EPSILON as f64;

#[test]
fn exact_operations_have_no_radius() {
    let b = one(
        "HloModule m\nENTRY e { x = f32[3] parameter(0)\n y = f32[3] multiply(x, x)\n z = f32[3] add(y, x)\n ROOT r = f32[3] reverse(z), dimensions={0} }",
        &[&[1.1, -2.3, 1e30]],
    );
    assert!(b.is_exact());
}

#[test]
fn elementary_functions_have_ulps_that_arithmetic_carries() {
    // exp(0) = 1 within 2 ulp of 2^-23; times 3 that and a rounding.
    let b = one("HloModule m\nENTRY e { x = f32[] parameter(0)\n ROOT y = f32[] exponential(x) }", &[&[0.0]]);
    assert_eq!(b.soft, Radii::Each(vec![(2.0 * U).next_up()]));
    assert_eq!(b.hard, b.soft);
    let b = one(
        "HloModule m\nENTRY e { x = f32[] parameter(0)\n c = f32[] constant(3)\n y = f32[] exponential(x)\n ROOT z = f32[] multiply(y, c) }",
        &[&[0.0]],
    );
    let r = b.soft.at(0);
    assert!((6.0 * U..=8.0 * U).contains(&r), "{r}");
}

#[test]
fn decisions_are_soft_zero_and_hard_what_they_make() {
    // 1 within 2 ulp: below 1 floor gives 0.
    let text = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n y = f32[2] exponential(x)\n ROOT z = f32[2] floor(y) }";
    let b = one(text, &[&[0.0, 1.0]]);
    assert!(b.soft.is_zero());
    assert_eq!((b.hard.at(0).round(), b.hard.at(1)), (1.0, 0.0));
    let text = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n one = f32[] constant(1)\n ones = f32[2] broadcast(one), dimensions={}\n y = f32[2] exponential(x)\n p = pred[2] compare(y, ones), direction=LT\n ROOT z = f32[2] select(p, x, ones) }";
    let b = one(text, &[&[0.0, 5.0]]);
    assert!(b.soft.is_zero());
    assert_eq!((b.hard.at(0).round(), b.hard.at(1)), (1.0, 0.0));
}

#[test]
fn sums_are_bounded_by_their_magnitudes() {
    // 1000 terms of magnitude 1 that cancel: 1000 * 2^-24 * 1000 at most, about.
    let text = "HloModule m\nENTRY e { x = f32[1000] parameter(0)\n y = f32[1000] parameter(1)\n ROOT z = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0} }";
    let x: Vec<f32> = (0..1000).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let b = one(text, &[&x, &[1.0; 1000]]);
    let r = b.soft.at(0);
    assert!((1000.0 * 1000.0 * U / 2.0..1.1 * 1000.0 * 1000.0 * U / 2.0).contains(&r), "{r}");
    // One product is rounded once.
    let text = "HloModule m\nENTRY e { x = f32[1] parameter(0)\n y = f32[1] parameter(1)\n ROOT z = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0} }";
    assert!(one(text, &[&[0.1], &[0.3]]).is_exact());
    // A sum that an f32 holds is rounded to bf16 once, whatever the order.
    let text = "HloModule m\nadd { a = bf16[] parameter(0)\n b = bf16[] parameter(1)\n ROOT c = bf16[] add(a, b) }\nENTRY e { x = bf16[64] parameter(0)\n z = bf16[] constant(0)\n ROOT s = bf16[] reduce(x, z), dimensions={0}, to_apply=add }";
    assert!(one(text, &[&[1.0; 64]]).is_exact());
    let narrow = Allowances { narrow_accumulator: true, ..Allowances::STRICT };
    let r = certified(text, &[&[1.0; 64]], narrow)[0].1.soft.at(0);
    assert!(r >= 64.0 * 64.0 / 256.0, "{r}");
}

#[test]
fn what_may_overflow_or_cross_a_pole_is_undecided() {
    let text = "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\nENTRY e { x = f32[3] parameter(0)\n z = f32[] constant(0)\n ROOT s = f32[] reduce(x, z), dimensions={0}, to_apply=add }";
    let b = one(text, &[&[3e38, 3e38, -3e38]]);
    assert!(b.soft.at(0).is_finite() && b.hard.at(0).is_infinite());
    let text = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n one = f32[] constant(1)\n ones = f32[2] broadcast(one), dimensions={}\n y = f32[2] exponential(x)\n d = f32[2] subtract(y, ones)\n ROOT q = f32[2] divide(ones, d) }";
    let b = one(text, &[&[0.0, 1.0]]);
    assert!(b.hard.at(0).is_infinite() && b.hard.at(1) < 1e-5);
}

#[test]
fn liberties_widen() {
    let text = "HloModule m\nENTRY e { x = f32[] parameter(0)\n y = f32[] multiply(x, x)\n ROOT z = f32[] subtract(y, x) }";
    let with = |allowances| certified(text, &[&[1.1]], allowances)[0].1.soft.at(0);
    assert_eq!(with(Allowances::STRICT), 0.0);
    let contraction = Allowances { contraction: true, ..Allowances::STRICT };
    assert!((U / 2.0..2.0 * U).contains(&with(contraction)));
    let text = "HloModule m\nENTRY e { x = f32[] parameter(0)\n ROOT y = f32[] add(x, x) }";
    let flush = Allowances { flush_denormals: true, ..Allowances::STRICT };
    assert!(certified(text, &[&[1e-40]], flush)[0].1.soft.at(0) > 1.99e-40);
    assert_eq!(certified(text, &[&[1.0]], flush)[0].1.soft.at(0), 0.0);
    let text = "HloModule m\nENTRY e { x = bf16[] parameter(0)\n ROOT y = bf16[] divide(x, x) }";
    let excess = Allowances { excess_precision: true, ..Allowances::STRICT };
    assert_eq!(certified(text, &[&[3.0]], excess)[0].1.soft.at(0), 2f64.powi(-8));
}

#[test]
fn loops_and_branches_carry_bounds() {
    let text = "HloModule m
cond { s = (s32[], f32[]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n n = s32[] constant(3)\n ROOT p = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n one = s32[] constant(1)\n j = s32[] add(i, one)\n x = f32[] get-tuple-element(s), index=1\n y = f32[] exponential(x)\n ROOT t = (s32[], f32[]) tuple(j, y) }
ENTRY e { x = f32[] parameter(0)\n i = s32[] constant(0)\n t = (s32[], f32[]) tuple(i, x)\n ROOT w = (s32[], f32[]) while(t), condition=cond, body=body }";
    let all = certified(text, &[&[0.0]], Allowances::STRICT);
    assert!(all[0].1.is_exact());
    // exp(exp(exp(0))) = e^e: 2 ulp each, carried by derivatives e^e * e and e^e.
    let r = all[1].1.soft.at(0);
    let carried = 41.19 * 2.0 * U + 15.154 * 4.0 * U + 16.0 * U;
    assert!((0.8 * carried..1.5 * carried).contains(&r) && all[1].1.hard == all[1].1.soft, "{r} {carried}");
    // A condition on what may be 1 or less decides the rest.
    let text = "HloModule m
yes { x = f32[] parameter(0)\n ROOT y = f32[] negate(x) }
no { x = f32[] parameter(0)\n ROOT y = f32[] copy(x) }
ENTRY e { x = f32[] parameter(0)\n y = f32[] exponential(x)\n one = f32[] constant(1)\n p = pred[] compare(y, one), direction=LT\n ROOT c = f32[] conditional(p, x, x), true_computation=yes, false_computation=no }";
    let b = one(text, &[&[0.0]]);
    assert!(b.soft.is_zero() && b.hard.at(0).is_infinite());
    assert!(one(text, &[&[1.0]]).is_exact());
}

#[test]
fn a_visitor_sees_every_value_and_resets_bounds() {
    struct Reset(Vec<(String, u64, usize)>, String);
    let (module, _) = parse_text(
        "HloModule m\nf { x = f32[] parameter(0)\n ROOT y = f32[] exponential(x) }\nENTRY e { x = f32[] parameter(0)\n a = f32[] call(x), to_apply=f\n b = f32[] call(a), to_apply=f\n ROOT n = f32[] negate(b) }",
    );
    let module = module.unwrap();
    struct Named<'a>(&'a Module, Reset);
    impl Visitor for Named<'_> {
        fn value(&mut self, at: &At, value: &Value, bounds: &Tree) -> bool {
            assert_eq!(value.arrays().len(), bounds.arrays().len());
            let name = self.0.instr(at.instr).name.to_string();
            let reset = name == self.1.1;
            self.1.0.push((name, at.execution, at.calls.len()));
            reset
        }
    }
    let inputs = Inputs {
        arguments: vec![vec![hlo::Literal::scalar(0.5f32)]],
        host: Arc::new(hlo_interp::device::host::NoHost),
    };
    let run = |name: &str| {
        let mut visitor = Named(&module, Reset(Vec::new(), name.to_owned()));
        let options = RunOptions::default();
        let c = certify(&module, &inputs, &options, Allowances::STRICT, &mut visitor).unwrap();
        (c.results[0][0].1.soft.at(0), visitor.1.0)
    };
    let (carried, seen) = run("");
    let names: Vec<(&str, u64, usize)> = seen.iter().map(|(n, e, d)| (&**n, *e, *d)).collect();
    assert_eq!(
        names,
        [
            ("x", 0, 0),
            ("x", 0, 1),
            ("y", 0, 1),
            ("a", 0, 0),
            ("x", 1, 1),
            ("y", 1, 1),
            ("b", 0, 0),
            ("n", 0, 0)
        ]
    );
    let (local, _) = run("a");
    assert!(local > 0.0 && local < carried);
    assert_eq!(run("n").0, 0.0);
}
