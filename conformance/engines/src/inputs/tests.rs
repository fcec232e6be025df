//! What is asked of parameters, and that the arrays that are generated show what programs do with them.

use super::*;

fn fills(computations: &str, body: &str) -> Vec<Fill> {
    let text = format!("HloModule m\n\n{computations}\n\nENTRY e {{\n{body}\n}}\n");
    let (module, found) = crate::frontend::parse_text(&text);
    let module = module.unwrap_or_else(|| panic!("{}", hlo::diag::render_all(&found, "m", &text, false)));
    let found = hlo::verify::verify(&module);
    assert!(!found.has_errors(), "{}", hlo::diag::render_all(&found, "m", &text, false));
    plan(&module, None).unwrap().leaves.into_iter().map(|l| l.fill).collect()
}

const ADD: &str = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}";

#[test]
fn indices_are_in_range() {
    let gather = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}";
    let body = |attrs: &str| {
        format!(
            "  t = f32[7,3] parameter(0)\n  i = s32[5,1] parameter(1)\n  ROOT g = f32[5,3] gather(t, i), {gather}{attrs}"
        )
    };
    assert_eq!(fills("", &body(""))[1], Fill::Vectors { dim: 1, maximum: vec![6], ascending: false });
    assert_eq!(
        fills("", &body(", indices_are_sorted=true"))[1],
        Fill::Vectors { dim: 1, maximum: vec![6], ascending: true }
    );
    // Behind moves and a select, as JAX writes x[i]: a plain range.
    let jax = "  t = f32[7,3] parameter(0)\n  i = s32[5] parameter(1)\n  z = s32[] constant(0)\n  zs = s32[5] broadcast(z), dimensions={}\n  n = s32[] constant(7)\n  ns = s32[5] broadcast(n), dimensions={}\n  c = pred[5] compare(i, zs), direction=LT\n  j = s32[5] add(i, ns)\n  k = s32[5] select(c, j, i)\n  r = s32[5,1] reshape(k)\n";
    let jax = format!("{jax}  ROOT g = f32[5,3] gather(t, r), {gather}");
    assert_eq!(fills("", &jax)[1], Fill::Int { low: 0, high: 6 });
    let slice = "  t = f32[7,3] parameter(0)\n  i = s32[] parameter(1)\n  j = u8[] parameter(2)\n  k = s32[] convert(j)\n  ROOT d = f32[2,2] dynamic-slice(t, i, k), dynamic_slice_sizes={2,2}";
    assert_eq!(fills("", slice)[1..], [Fill::Int { low: 0, high: 5 }, Fill::Int { low: 0, high: 1 }]);
}

#[test]
fn demands_cross_calls_loops_and_tuples() {
    let callee = "f {\n  t = f32[7] parameter(0)\n  i = s32[] parameter(1)\n  ROOT d = f32[2] dynamic-slice(t, i), dynamic_slice_sizes={2}\n}";
    let call = "  t = f32[7] parameter(0)\n  p = (f32[], s32[]) parameter(1)\n  i = s32[] get-tuple-element(p), index=1\n  ROOT r = f32[2] fusion(t, i), kind=kLoop, calls=f";
    assert_eq!(
        fills(callee, call)[1..],
        [Fill::Real { low: -1.0, high: 1.0 }, Fill::Int { low: 0, high: 5 }]
    );
    let looped = "c {\n  p = (s32[], f32[9]) parameter(0)\n  ROOT t = pred[] constant(false)\n}\n\nb {\n  p = (s32[], f32[9]) parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  x = f32[9] get-tuple-element(p), index=1\n  s = f32[4] dynamic-slice(x, i), dynamic_slice_sizes={4}\n  u = f32[9] dynamic-update-slice(x, s, i)\n  ROOT t = (s32[], f32[9]) tuple(i, u)\n}";
    let entry = "  i = s32[] parameter(0)\n  x = f32[9] parameter(1)\n  t = (s32[], f32[9]) tuple(i, x)\n  ROOT w = (s32[], f32[9]) while(t), condition=c, body=b";
    assert_eq!(fills(looped, entry)[0], Fill::Int { low: 0, high: 5 });
}

#[test]
fn initial_values_divisors_and_domains() {
    let reduce = "  x = f32[4] parameter(0)\n  z = f32[] parameter(1)\n  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add";
    assert_eq!(fills(ADD, reduce)[1], Fill::Identity(Opcode::Add));
    let divide = "  a = s32[4] parameter(0)\n  b = s32[4] parameter(1)\n  ROOT r = s32[4] divide(a, b)";
    assert_eq!(fills("", divide)[1], Fill::Int { low: 1, high: 8 });
    let log = "  a = f32[4] parameter(0)\n  ROOT r = f32[4] log(a)";
    assert_eq!(fills("", log)[0], Fill::Real { low: 0.015625, high: 4.0 });
    // sqrt(0.5 * v + m): both terms must not be negative.
    let adam = "  v = f32[] parameter(0)\n  m = f32[] parameter(1)\n  h = f32[] constant(0.5)\n  w = f32[] multiply(h, v)\n  s = f32[] add(w, m)\n  ROOT r = f32[] sqrt(s)";
    assert_eq!(fills("", adam), [Fill::Real { low: 0.0, high: 4.0 }, Fill::Real { low: 0.0, high: 2.0 }]);
    let shift = "  a = u8[4] parameter(0)\n  b = u8[4] parameter(1)\n  ROOT r = u8[4] shift-left(a, b)";
    assert_eq!(fills("", shift)[1], Fill::Int { low: 0, high: 7 });
}

#[test]
fn conflicting_uses_are_resolved() {
    // A divisor (1 to 8) and a start index of a slice that only fits at 0.
    let body = "  t = f32[2] parameter(0)\n  i = s32[] parameter(1)\n  d = f32[2] dynamic-slice(t, i), dynamic_slice_sizes={2}\n  q = s32[] divide(i, i)\n  ROOT r = (f32[2], s32[]) tuple(d, q)";
    assert_eq!(fills("", body)[1], Fill::Int { low: 0, high: 0 });
}

#[test]
fn keys_of_a_sort_with_values_are_distinct() {
    let lt = "lt {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  c = s32[] parameter(2)\n  d = s32[] parameter(3)\n  ROOT e = pred[] compare(a, b), direction=LT\n}";
    let body = "  k = f32[9] parameter(0)\n  v = s32[9] parameter(1)\n  ROOT s = (f32[9], s32[9]) sort(k, v), dimensions={0}, to_apply=lt";
    assert_eq!(fills(lt, body), [Fill::Distinct, Fill::Int { low: -8, high: 7 }]);
}

#[test]
fn ranges_beside_a_program() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("m.hlo");
    let program = program.to_str().unwrap();
    assert_eq!(range_beside(program).unwrap(), None);
    std::fs::write(dir.path().join("inputs.json"), r#"{"m": [3, 9], "n": 4}"#).unwrap();
    assert_eq!(range_beside(program).unwrap(), Some((3, 9)));
    assert_eq!(range_beside(&program.replace("m.hlo", "n.hlo")).unwrap_err().exit, Exit::Usage);
    assert_eq!(range_beside(&program.replace("m.hlo", "o.hlo")).unwrap(), None);
}

/// The numbers of the generated arrays of a program, of seed 0.
fn numbers(computations: &str, body: &str, kind: InputKind) -> Vec<Vec<f64>> {
    let text = format!("HloModule m\n\n{computations}\n\nENTRY e {{\n{body}\n}}\n");
    let module = crate::frontend::parse_text(&text).0.unwrap();
    let found = hlo::verify::verify(&module);
    assert!(!found.has_errors(), "{}", hlo::diag::render_all(&found, "m", &text, false));
    let plan = plan(&module, None).unwrap().of_kind(kind);
    let arrays = generate(&plan, 0, Devices::ONE, 1 << 30).unwrap().remove(0);
    arrays.iter().map(hlo_execution::element::numbers).collect()
}

fn gentle(body: &str) -> Vec<Vec<f64>> {
    numbers("", body, InputKind::Gentle)
}

/// Whether there are numbers below, above and equal to one.
fn sides(x: &[f64], of: f64) -> [bool; 3] {
    [x.iter().any(|&x| x < of), x.iter().any(|&x| x > of), x.contains(&of)]
}

#[test]
fn conversions_to_integers_meet_every_integer_and_both_ends() {
    for (ty, least, maximum) in
        [("s8", -128, 127), ("u8", 0, 255), ("s4", -8, 7), ("u4", 0, 15), ("s2", -2, 1), ("u2", 0, 3)]
    {
        let body = format!("  x = f32[8192] parameter(0)\n  ROOT r = {ty}[8192] convert(x)");
        let x = &gentle(&body)[0];
        for i in least..=maximum {
            assert!(x.iter().any(|x| x.trunc() == f64::from(i)), "{ty} {i}");
        }
        assert!(sides(x, f64::from(least) - 1.0)[0] && sides(x, f64::from(maximum) + 1.0)[1], "{ty}");
        assert!(x.iter().all(|x| x.abs() < 300.0), "{ty}");
    }
    for (ty, least, maximum) in [
        ("s16", -32768.0, 32767.0),
        ("s32", -2147483648.0, 2147483647.0),
        ("u32", 0.0, 4294967295.0),
        ("s64", -9.223_372_036_854_776e18, 9.223_372_036_854_776e18),
    ] {
        let x = &gentle(&format!("  x = f64[4096] parameter(0)\n  ROOT r = {ty}[4096] convert(x)"))[0];
        assert!(sides(x, least)[0] && sides(x, maximum)[1], "{ty}");
        // Small ones too.
        (0..8).for_each(|i| assert!(x.iter().any(|x| x.trunc() == f64::from(i)), "{ty} {i}"));
    }
    // What a narrow float holds of a wide integer is finite.
    let x = &gentle("  x = f16[4096] parameter(0)\n  ROOT r = s32[4096] convert(x)")[0];
    assert!(x.iter().all(|x| x.is_finite()) && sides(x, -60000.0)[0] && sides(x, 60000.0)[1]);
    let x = &gentle("  x = f32[64] parameter(0)\n  ROOT r = pred[64] convert(x)")[0];
    assert_eq!(sides(x, 0.0), [true; 3]);
}

#[test]
fn conversions_are_met_behind_arithmetic_calls_and_moves() {
    // 127 x, rounded, clamped and converted: what quantizes.
    let quantized = "  x = f32[4096] parameter(0)\n  c = f32[] constant(127)\n  b = f32[4096] broadcast(c), dimensions={}\n  m = f32[4096] multiply(x, b)\n  n = f32[4096] round-nearest-even(m)\n  l = f32[] constant(-128)\n  h = f32[] constant(127)\n  k = f32[4096] clamp(l, n, h)\n  ROOT r = s8[4096] convert(k)";
    let rounded: Vec<f64> = gentle(quantized)[0].iter().map(|x| (x * 127.0).round()).collect();
    (-128..=127).for_each(|i| assert!(rounded.contains(&f64::from(i)), "{i}"));
    assert!(sides(&rounded, -128.0)[0] && sides(&rounded, 127.0)[1]);
    let product = "  x = f32[4096] parameter(0)\n  y = f32[4096] parameter(1)\n  m = f32[4096] multiply(x, y)\n  ROOT r = s8[4096] convert(m)";
    let both = gentle(product);
    let products: Vec<f64> = both[0].iter().zip(&both[1]).map(|(x, y)| x * y).collect();
    assert!(sides(&products, -120.0)[0] && sides(&products, 120.0)[1]);
    // Through a tuple, a fusion, a call, a reshape and a branch.
    let computations = "f {\n  p = f32[4096] parameter(0)\n  ROOT r = s8[4096] convert(p)\n}\n\ng {\n  p = f32[64,64] parameter(0)\n  q = f32[4096] reshape(p)\n  ROOT r = s8[4096] fusion(q), kind=kLoop, calls=f\n}\n\nh {\n  p = f32[64,64] parameter(0)\n  q = f32[64,64] abs(p)\n  ROOT r = s8[4096] call(q), to_apply=g\n}";
    let body = "  c = pred[] parameter(0)\n  t = (f32[64,64], f32[64,64]) parameter(1)\n  a = f32[64,64] get-tuple-element(t), index=0\n  b = f32[64,64] get-tuple-element(t), index=1\n  ROOT r = s8[4096] conditional(c, a, b), true_computation=g, false_computation=h";
    let made = numbers(computations, body, InputKind::Gentle);
    for x in &made[1..] {
        assert!(sides(x, -128.0)[0] && sides(x, 127.0)[1]);
    }
    // A loop's counter is not made huge.
    let computations = "c {\n  p = (s32[], s32[]) parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  n = s32[] get-tuple-element(p), index=1\n  ROOT r = pred[] compare(i, n), direction=LT\n}\n\nb {\n  p = (s32[], s32[]) parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  n = s32[] get-tuple-element(p), index=1\n  o = s32[] constant(1)\n  j = s32[] add(i, o)\n  ROOT r = (s32[], s32[]) tuple(j, n)\n}";
    let body = "  x = f32[] parameter(0)\n  n = s32[] convert(x)\n  z = s32[] constant(0)\n  t = (s32[], s32[]) tuple(z, n)\n  ROOT w = (s32[], s32[]) while(t), condition=c, body=b";
    assert_eq!(fills(computations, body), [Fill::Real { low: -16.0, high: 16.0 }]);
}

#[test]
fn floats_are_on_both_sides_of_what_they_are_compared_with() {
    let by = |rest: &str| format!("  x = f32[512] parameter(0)\n{rest}");
    let constant = "  c = f32[] constant(100)\n  b = f32[512] broadcast(c), dimensions={}\n";
    let body = by(&format!("{constant}  ROOT r = pred[512] compare(x, b), direction=LT"));
    assert_eq!(sides(&gentle(&body)[0], 100.0), [true; 3]);
    // Behind x - 20, and -x.
    let body = by(&format!(
        "{constant}  t = f32[] constant(20)\n  u = f32[512] broadcast(t), dimensions={{}}\n  y = f32[512] subtract(x, u)\n  z = f32[512] negate(y)\n  ROOT r = pred[512] compare(b, z), direction=GE"
    ));
    assert_eq!(sides(&gentle(&body)[0], -80.0), [true; 3]);
    // Two constants, of an array.
    let body = "  x = f32[2,256] parameter(0)\n  d = f32[2] constant({-7, 30})\n  e = f32[2,256] broadcast(d), dimensions={0}\n  ROOT r = pred[2,256] compare(x, e), direction=GT";
    let x = &gentle(body)[0];
    assert_eq!((sides(x, -7.0), sides(x, 30.0)), ([true; 3], [true; 3]));
    let clamp = by("  l = f32[] constant(0)\n  h = f32[] constant(6)\n  ROOT r = f32[512] clamp(l, x, h)");
    let x = &gentle(&clamp)[0];
    assert!(sides(x, 0.0)[0] && sides(x, 6.0)[1]);
    let clamp = by("  l = f32[] constant(-3)\n  h = f32[] constant(6)\n  ROOT r = f32[512] clamp(l, x, h)");
    let x = &gentle(&clamp)[0];
    assert!(sides(x, -3.0)[0] && sides(x, 6.0)[1] && x.iter().any(|x| (-3.0..6.0).contains(x)));
    // ReLU6: on both sides of 0 and of 6.
    let relu6 = by(
        "  z = f32[] constant(0)\n  a = f32[512] broadcast(z), dimensions={}\n  h = f32[] constant(6)\n  b = f32[512] broadcast(h), dimensions={}\n  m = f32[512] maximum(x, a)\n  ROOT r = f32[512] minimum(m, b)",
    );
    let x = &gentle(&relu6)[0];
    assert!(
        x.iter().any(|&x| x < 0.0) && x.iter().any(|&x| x > 6.0) && x.iter().any(|&x| x > 1.0 && x < 6.0)
    );
    // With each other: some equal.
    let body = by("  y = f32[512] parameter(1)\n  ROOT r = pred[512] compare(x, y), direction=LT");
    let both = gentle(&body);
    let pairs = || both[0].iter().zip(&both[1]);
    assert!(
        pairs().any(|(x, y)| x < y)
            && pairs().any(|(x, y)| x > y)
            && pairs().filter(|(x, y)| x == y).count() > 8
    );
    // Of which one has a range of its own.
    let body = by(
        "  y = f32[512] parameter(1)\n  a = f32[512] acosh(y)\n  p = pred[512] compare(x, y), direction=LT\n  ROOT r = (f32[512], pred[512]) tuple(a, p)",
    );
    let both = gentle(&body);
    let pairs = || both[0].iter().zip(&both[1]);
    assert!(pairs().any(|(x, y)| x < y) && pairs().any(|(x, y)| x > y) && pairs().any(|(x, y)| x == y));
    assert!(both[1].iter().all(|y| (1.0..4.0).contains(y)));
    // Within the domain of a function.
    let beside = |function: &str| {
        let body = by(&format!(
            "{constant}  l = f32[512] {function}(x)\n  p = pred[512] compare(x, b), direction=LT\n  ROOT r = (f32[512], pred[512]) tuple(l, p)"
        ));
        gentle(&body).remove(0)
    };
    let x = beside("log");
    assert!(sides(&x, 100.0) == [true; 3] && x.iter().all(|x| (0.015625..200.0).contains(x)));
    assert!(beside("acos").iter().all(|x| (-1.0..1.0).contains(x)));
}

#[test]
fn numbers_behind_functions_are_on_both_sides_of_what_these_are_compared_with() {
    type Function = fn(f64) -> f64;
    let all: [(&str, f64, Function); 8] = [
        ("log", 5.0, f64::ln),
        ("log-plus-one", 3.0, f64::ln_1p),
        ("sqrt", 30.0, f64::sqrt),
        ("rsqrt", 7.0, |x| 1.0 / x.sqrt()),
        ("cbrt", -9.0, f64::cbrt),
        ("exponential-minus-one", 20.0, f64::exp_m1),
        ("tanh", 0.75, f64::tanh),
        ("logistic", 0.875, |x| 1.0 / (1.0 + (-x).exp())),
    ];
    for (name, constant, function) in all {
        let body = format!(
            "  x = f32[512] parameter(0)\n  y = f32[512] {name}(x)\n  c = f32[] constant({constant})\n  b = f32[512] broadcast(c), dimensions={{}}\n  ROOT r = pred[512] compare(y, b), direction=LT"
        );
        let y: Vec<f64> = gentle(&body)[0].iter().map(|&x| function(x)).collect();
        let below = y.iter().filter(|&&y| y < constant).count();
        assert!((32..480).contains(&below) && y.iter().all(|y| y.is_finite()), "{name} {below}");
    }
}

#[test]
fn integers_are_on_both_sides_of_what_they_are_compared_with() {
    let compared = |ty: &str, constant: i64, more: &str| {
        format!(
            "  x = {ty}[512] parameter(0)\n{more}  c = {ty}[] constant({constant})\n  b = {ty}[512] broadcast(c), dimensions={{}}\n  ROOT r = pred[512] compare({}, b), direction=EQ",
            if more.is_empty() { "x" } else { "y" }
        )
    };
    for (ty, constant) in
        [("s32", 1000), ("s32", -100), ("s64", 1 << 40), ("s8", 100), ("u8", 200), ("u32", 77)]
    {
        let x = &gentle(&compared(ty, constant, ""))[0];
        assert_eq!(sides(x, constant as f64), [true; 3], "{ty} {constant}");
    }
    // Behind x + 50, and cut off.
    let shifted =
        "  d = s32[] constant(50)\n  e = s32[512] broadcast(d), dimensions={}\n  y = s32[512] add(x, e)\n";
    assert_eq!(sides(&gentle(&compared("s32", 1000, shifted))[0], 950.0), [true; 3]);
    let clamp = "  x = s32[512] parameter(0)\n  l = s32[] constant(0)\n  h = s32[] constant(255)\n  ROOT r = s32[512] clamp(l, x, h)";
    let x = &gentle(clamp)[0];
    assert!(sides(x, 0.0)[0] && sides(x, 255.0)[1] && x.iter().any(|x| (16.0..240.0).contains(x)));
    // The largest number of a type, and what is near.
    let x = &gentle(&compared("s32", i64::from(i32::MAX), ""))[0];
    assert!(x.contains(&f64::from(i32::MAX)) && sides(x, 1e9)[0]);
    // Those that the program needs are what they were, and those that a loop may count.
    let index = "  t = f32[7] parameter(0)\n  i = s32[] parameter(1)\n  c = s32[] constant(1000)\n  p = pred[] compare(i, c), direction=LT\n  d = f32[2] dynamic-slice(t, i), dynamic_slice_sizes={2}\n  ROOT r = (pred[], f32[2]) tuple(p, d)";
    assert_eq!(fills("", index)[1], Fill::Int { low: 0, high: 5 });
    let computations = "c {\n  i = s32[] parameter(0)\n  n = s32[] constant(1000)\n  ROOT r = pred[] compare(i, n), direction=NE\n}\n\nb {\n  i = s32[] parameter(0)\n  o = s32[] constant(1)\n  ROOT r = s32[] add(i, o)\n}";
    let body = "  i = s32[] parameter(0)\n  ROOT w = s32[] while(i), condition=c, body=b";
    assert_eq!(fills(computations, body), [Fill::Int { low: -8, high: 7 }]);
}

#[test]
fn floats_that_become_indices_cover_the_dimension_and_more() {
    let body = "  t = f32[32] parameter(0)\n  x = f32[512,1] parameter(1)\n  i = s32[512,1] convert(x)\n  ROOT g = f32[512] gather(t, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}";
    let x = &gentle(body)[1];
    (0..32).for_each(|i| assert!(x.iter().any(|x| x.floor() == f64::from(i)), "{i}"));
    assert!(sides(x, -1.0)[0] && sides(x, 33.0)[1] && x.iter().all(|x| (-8.0..40.0).contains(x)));
    let body = "  t = f32[32] parameter(0)\n  x = f32[] parameter(1)\n  f = f32[] floor(x)\n  i = s32[] convert(f)\n  ROOT g = f32[2] dynamic-slice(t, i), dynamic_slice_sizes={2}";
    assert_eq!(fills("", body)[1], Fill::Real { low: -4.0, high: 35.0 });
    // Sizes are nothing else than sizes.
    let body = "  t = f32[32] parameter(0)\n  x = f32[] parameter(1)\n  n = s32[] convert(x)\n  ROOT g = f32[<=32] set-dimension-size(t, n), dimensions={0}";
    assert_eq!(fills("", body)[1], Fill::Real { low: 1.0, high: 32.5 });
}

#[test]
fn what_asks_for_nothing_of_that_has_the_inputs_it_had() {
    let relu = "  x = f32[4] parameter(0)\n  z = f32[] constant(0)\n  b = f32[4] broadcast(z), dimensions={}\n  m = f32[4] maximum(x, b)\n  h = f32[] constant(0.5)\n  c = f32[4] clamp(z, m, h)\n  e = f32[4] exponential(c)\n  n = pred[4] compare(x, x), direction=NE\n  ROOT t = (f32[4], pred[4]) tuple(e, n)";
    assert_eq!(fills("", relu), [Fill::Real { low: -1.0, high: 1.0 }]);
    let integers = "  x = s32[4] parameter(0)\n  y = s32[4] parameter(1)\n  f = f32[4] convert(x)\n  ROOT p = pred[4] compare(x, y), direction=LT";
    assert_eq!(fills("", integers), [Fill::Int { low: -8, high: 7 }, Fill::Int { low: -8, high: 7 }]);
}

#[test]
fn kinds_leave_what_the_program_needs() {
    let gather = "  t = f32[32] parameter(0)\n  i = s32[64,1] parameter(1)\n  n = s32[64] parameter(2)\n  s = s32[] parameter(3)\n  z = f32[<=32] set-dimension-size(t, s), dimensions={0}\n  g = f32[64] gather(t, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}\n  ROOT r = (f32[64], s32[64], f32[<=32]) tuple(g, n, z)";
    let made = |kind| numbers("", gather, kind);
    let plain = made(InputKind::Gentle);
    for kind in [InputKind::Large, InputKind::Special, InputKind::Extreme] {
        let made = made(kind);
        assert!(made[0] != plain[0] && made[2] != plain[2], "{kind}");
        assert_eq!((&made[1], &made[3]), (&plain[1], &plain[3]), "{kind}");
    }
    let x = "  x = f16[512] parameter(0)\n  y = f16[512] parameter(1)\n  l = f16[512] log(y)\n  ROOT a = f16[512] add(x, l)";
    let large = numbers("", x, InputKind::Large);
    assert!(large.iter().flatten().all(|x| x.abs() >= 128.0 && x.abs() <= 65504.0));
    assert!(
        large[0].iter().filter(|x| x.abs() >= 16384.0).count() > 200 && large[1].iter().all(|&x| x > 0.0)
    );
    let tiny = numbers("", x, InputKind::Tiny);
    assert!(tiny.iter().flatten().all(|x| *x != 0.0 && x.abs() <= 2f64.powi(-14)));
    let special = numbers("", x, InputKind::Special);
    for x in [f64::INFINITY, f64::NEG_INFINITY, 0.0, 65504.0, -65504.0, 2f64.powi(-24)] {
        assert!(special[1].contains(&x), "{x}");
    }
    assert!(
        special[0].iter().any(|x| x.is_nan())
            && special[0].iter().any(|x| x.to_bits() == (-0.0f64).to_bits())
    );
    let extreme = &numbers("", x, InputKind::Extreme)[0];
    assert!(extreme.iter().any(|x| x.is_nan()) && extreme.iter().any(|x| (0.1..1.0).contains(x)));
    assert!(
        extreme.iter().any(|&x| x > 1000.0 && x < 65504.0) && extreme.iter().any(|&x| x > 0.0 && x < 1e-5)
    );
}
