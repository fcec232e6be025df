//! The second run of the reference, in which denormal numbers count as zeros.

use hlo::ArrayLiteral;
use hlo_certify::bounds::{Bounds, certify_flushed};
use hlo_execution::allowances::Allowances;
use hlo_execution::format::power_of_two;
use hlo_execution::number;
use hlo_execution::run::RunOptions;

use crate::common::{certified, given, parse_text};

/// The results of that run and their bounds. `None`: nothing is flushed in it.
fn flushed(text: &str, inputs: &[&[f32]]) -> Option<Vec<(ArrayLiteral, Bounds)>> {
    let (module, found) = parse_text(text);
    let module = module.unwrap_or_else(|| panic!("{found:?}"));
    let allowances = Allowances::named("flush-denormals").unwrap();
    let given = given(&module, inputs);
    let mut all = certify_flushed(&module, given, &RunOptions::default(), allowances, u64::MAX).unwrap()?;
    all.results.pop()
}

/// Values and soft radii of each result.
fn values(results: &[(ArrayLiteral, Bounds)]) -> Vec<(Vec<f64>, Vec<f64>)> {
    let numbers = |a: &ArrayLiteral| number::Numbers::of(&hlo_interp::Tensor::from_literal(a.clone())).re;
    results.iter().map(|(a, b)| (numbers(a), (0..a.buffer.len()).map(|i| b.soft.at(i)).collect())).collect()
}

/// A pole and a decision at zero: bounds of the reference cannot tell which side of them an engine is on;
/// those of the other run can.
#[test]
fn poles_and_decisions_are_those_of_zeros() {
    let text = "HloModule m\nENTRY e { x = f32[3] parameter(0)\n z = f32[] constant(0)\n zs = f32[3] broadcast(z), dimensions={}\n r = f32[3] rsqrt(x)\n q = f32[3] rsqrt(r)\n c = pred[3] compare(x, zs), direction=EQ\n l = f32[3] log(x)\n n = f32[3] negate(x)\n ROOT t = (f32[3], pred[3], f32[3], f32[3]) tuple(q, c, l, n) }";
    let x = [1e-40, 1.0, 4.0];
    let allowances = Allowances::named("flush-denormals").unwrap();
    let open = certified(text, &[&x], allowances);
    assert!(open[0].1.soft.at(0).is_infinite() && open[1].1.hard.at(0) > 0.0, "{open:?}");
    let found = values(&flushed(text, &[&x]).unwrap());
    let (q, c, l, n) = (&found[0], &found[1], &found[2], &found[3]);
    assert_eq!((q.0[0], q.1[0]), (0.0, 0.0));
    // What is no denormal number has the bounds that it had.
    assert_eq!((q.1[1], q.1[2]), (open[0].1.soft.at(1), open[0].1.soft.at(2)));
    assert_eq!((&c.0[..], &c.1[..]), (&[1.0, 0.0, 0.0][..], &[0.0; 3][..]));
    assert_eq!((l.0[0], l.1[0]), (f64::NEG_INFINITY, 0.0));
    // A sign is no arithmetic.
    assert_eq!(n.0[0], -f64::from(1e-40f32));
}

/// The exponential of -100 is 4e-44 within some units: in arithmetic a zero, and nothing else.
#[test]
fn results_that_can_only_be_denormal_are_zeros() {
    let text = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n e = f32[2] exponential(x)\n one = f32[] constant(1)\n o = f32[2] broadcast(one), dimensions={}\n ROOT q = f32[2] divide(o, e) }";
    let found = values(&flushed(text, &[&[-100.0, 0.0]]).unwrap());
    assert_eq!((found[0].0[0], found[0].1[0]), (f64::INFINITY, 0.0));
    assert!(found[0].1[1] > 0.0);
}

/// Movement keeps what it moves, in and behind loops and calls arithmetic is flushed, and what is applied to
/// elements follows its operands.
#[test]
fn what_moves_elements_keeps_them() {
    let text = "HloModule m\nf { a = f32[2] parameter(0)\n ROOT m = f32[2] add(a, a) }\nleast { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT m = f32[] minimum(a, b) }\nENTRY e { x = f32[2] parameter(0)\n y = f32[2] reverse(x), dimensions={0}\n one = f32[] constant(1)\n c = f32[2] call(x), to_apply=f\n r = f32[] reduce(x, one), dimensions={0}, to_apply=least\n ROOT t = (f32[2], f32[2], f32[]) tuple(y, c, r) }";
    let x = [1e-40, 1.0];
    let found = values(&flushed(text, &[&x]).unwrap());
    assert_eq!(found[0].0, [1.0, f64::from(1e-40f32)]);
    assert_eq!(found[1].0, [0.0, 2.0]);
    assert_eq!(found[2].0, [0.0]);
}

/// What a fold compares is flushed, and an index follows from it; so are updates that a scatter computes
/// with, but not what lies where none goes.
#[test]
fn what_folds_compare_and_scatters_compute_with_is_flushed() {
    let text = "HloModule m
least { v = f32[] parameter(0)\n i = s32[] parameter(1)\n w = f32[] parameter(2)\n j = s32[] parameter(3)\n c = pred[] compare(v, w), direction=LE\n a = f32[] select(c, v, w)\n b = s32[] select(c, i, j)\n ROOT t = (f32[], s32[]) tuple(a, b) }
max { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT m = f32[] maximum(a, b) }
ENTRY e { x = f32[3] parameter(0)\n n = s32[3] iota(), iota_dimension=0\n inf = f32[] constant(inf)\n none = s32[] constant(-1)\n r = (f32[], s32[]) reduce(x, n, inf, none), dimensions={0}, to_apply=least\n j = s32[] get-tuple-element(r), index=1
 y = f32[2] parameter(1)\n at = s32[1,1] constant({{1}})\n u = f32[1] slice(x), slice={[0:1]}\n s = f32[2] scatter(y, at, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=max
 ROOT t = (s32[], f32[2]) tuple(j, s) }";
    let found = values(&flushed(text, &[&[3e-41, 2e-41, 1e-41], &[5e-42, 0.0]]).unwrap());
    assert_eq!(found[0].0, [0.0]);
    assert_eq!(found[1].0, [f64::from(5e-42f32), 0.0]);
}

/// Smaller types are computed in f32, where their denormal numbers are normal; of complex numbers each part
/// is flushed.
#[test]
fn types_without_flushed_numbers_stay() {
    let text = |ty: &str| {
        format!("HloModule m\nENTRY e {{ x = {ty}[1] parameter(0)\n ROOT y = {ty}[1] add(x, x) }}")
    };
    assert!(flushed(&text("f16"), &[&[1e-7]]).is_none());
    assert!(flushed(&text("f32"), &[&[1e-37]]).is_none());
    for ty in ["bf16", "f32", "c64"] {
        let found = values(&flushed(&text(ty), &[&[1e-40]]).unwrap());
        assert_eq!(found[0], (vec![0.0], vec![0.0]), "{ty}");
    }
}

/// 2^-127 is denormal in f32, in which such numbers are computed, and becomes a zero that their type lacks.
#[test]
fn the_least_scale_becomes_nan_where_it_is_computed() {
    let text = "HloModule m\nENTRY e { x = f8e8m0fnu[2] parameter(0)\n y = f8e8m0fnu[2] multiply(x, x)\n z = f8e8m0fnu[2] copy(x)\n ROOT t = (f8e8m0fnu[2], f8e8m0fnu[2]) tuple(y, z) }";
    let found = values(&flushed(text, &[&[power_of_two(-64) as f32, 2.0]]).unwrap());
    assert!(found[0].0[0].is_nan() && found[0].0[1] == 4.0, "{found:?}");
    assert_eq!(found[0].1[0], 0.0);
    let least = power_of_two(-127) as f32;
    let found = values(&flushed(text, &[&[least, 2.0]]).unwrap());
    assert_eq!(found[1].0, [f64::from(least), 2.0]);
}
