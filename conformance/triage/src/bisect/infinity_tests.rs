//! Forms that differ in infinities and NaNs: what is a change, and what depends on rounding or on the order
//! of a sum. Which operations overflow is from the formats' largest numbers: 65504, 3.3895e38 (bf16),
//! 3.40282347e38, 1.797e308.

use std::fs;

use super::dumps::{Report, Source, run, series};
use hlo_engines::engine::RunOptions;
use hlo_engines::inputs::InputKind;

/// What there is to say of two forms; `header` holds computations before the entry.
fn report(header: &str, forms: [&str; 2], kind: Option<InputKind>) -> Report {
    let folder = tempfile::tempdir().unwrap();
    for (name, body) in ["before_optimizations", "0001.p.after_suspect.before_dce"].iter().zip(forms) {
        let lines: Vec<&str> = body.split("; ").collect();
        let text = format!("HloModule m\n{header}\nENTRY e {{\n  {}\n}}\n", lines.join("\n  "));
        fs::write(folder.path().join(format!("module_0000.m.{name}.txt")), text).unwrap();
    }
    let all = series(folder.path()).unwrap();
    run(&all[0], &Source { file: None, seed: 0, kind }, &RunOptions::default()).unwrap()
}

/// Two forms of a type on given numbers, in both directions: whether each is called a change.
fn changed(ty: &str, numbers: &str, one: &str, other: &str) -> [bool; 2] {
    let n = numbers.split(',').count();
    let form = |body: &str| {
        let body = body.replace("ty", &format!("{ty}[{n}]"));
        format!("x = {ty}[{n}] constant({{{numbers}}}); {body}")
    };
    [[one, other], [other, one]].map(|forms| {
        let [one, other] = forms.map(form);
        let report = report("", [&one, &other], Some(InputKind::Gentle));
        assert!(report.drift.is_none(), "{report:?}");
        report.found.is_some()
    })
}

const X: &str = "ROOT r = ty copy(x)";

#[test]
fn overflows_that_come_or_go_are_changes() {
    let square = "a = ty multiply(x, x); ROOT r = ty divide(a, x)";
    let log = "a = ty exponential(x); ROOT r = ty log(a)";
    let root = "a = ty multiply(x, x); ROOT r = ty sqrt(a)";
    for (ty, numbers, one) in [
        ("f32", "1000, 0.5, 1", log),
        ("f64", "1000, 0.5, 1", log),
        ("f16", "20, 0.5, 1", log),
        ("bf16", "1000, 0.5, 1", log),
        ("f32", "1e30, 2, 0.5", square),
        ("f64", "1e200, 2, 0.5", square),
        ("f16", "1000, 2, 0.5", square),
        ("bf16", "1e30, 2, 0.5", square),
        ("f32", "1e30, 2, 0.5", root),
        ("f16", "-0.5, 2, 300", root),
        // 0 / 0 * 0 is NaN, 1e30 / 1e-30 infinite.
        ("f32", "0, 2, 0.5", "a = ty divide(x, x); ROOT r = ty multiply(a, x)"),
        ("f32", "1e30, 2, 0.5", "a = ty multiply(x, x); b = ty divide(a, x); ROOT r = ty copy(b)"),
        // (x + x) - x of nearly the largest number.
        ("f32", "3e38, 2, 0.5", "a = ty add(x, x); ROOT r = ty subtract(a, x)"),
        ("f64", "1.5e308, 2, 0.5", "a = ty add(x, x); ROOT r = ty subtract(a, x)"),
        // An infinity of the other sign, and a NaN that is lost.
        ("f32", "inf, 2, 0.5", "z = ty subtract(x, x); a = ty add(x, z); ROOT r = ty copy(a)"),
    ] {
        let root_of_square = one == root;
        let other = if root_of_square { "ROOT r = ty abs(x)" } else { X };
        assert_eq!(changed(ty, numbers, one, other), [true; 2], "{ty} {numbers} {one}");
    }
    let sign = changed("f32", "inf, 0, -0", X, "m = ty negate(x); ROOT r = ty copy(m)");
    assert_eq!(sign, [true; 2]);
    // Constants multiplied with one another: 1e-40 * 3e38 * 3e38 is finite, 1e-40 * infinity is not.
    let by = |cs: &[&str]| {
        let mut text = String::new();
        let mut last = "x".to_owned();
        for (i, c) in cs.iter().enumerate() {
            text += &format!(
                "c{i} = f32[] constant({c}); b{i} = ty broadcast(c{i}), dimensions={{}}; p{i} = ty multiply({last}, b{i}); "
            );
            last = format!("p{i}");
        }
        format!("{text}ROOT r = ty copy({last})")
    };
    assert_eq!(changed("f32", "1e-38, 0, 0", &by(&["3e38", "3e37"]), &by(&["inf"])), [true; 2]);
    assert_eq!(changed("f32", "2, 0.5, 1", &by(&["3e38", "3e-38"]), &by(&["9"])), [true; 2]);
}

#[test]
fn infinities_that_hang_on_rounding_are_none() {
    let scaled = |c: &str| {
        format!(
            "c = f32[] constant({c}); b = ty broadcast(c), dimensions={{}}; e = ty exponential(x); ROOT r = ty multiply(e, b)"
        )
    };
    // exp(88.72283) is 3.40279854e38, and that of the next number overflows. The others are 0.
    assert_eq!(changed("f32", "88.72283, -200, -300", &scaled("1"), &scaled("1.00001")), [false; 2]);
    // By a constant, or its reciprocal: the numbers where only one of the two overflows.
    let numbers = "3.4028234e37, 3.4028236e37, 3.402823e37, 2";
    let by = |op: &str, c: &str| {
        format!("c = f32[] constant({c}); b = ty broadcast(c), dimensions={{}}; ROOT r = ty {op}(x, b)")
    };
    assert_eq!(changed("f32", numbers, &by("divide", "0.1"), &by("multiply", "10")), [false; 2]);
    assert_eq!(changed("f32", numbers, &by("divide", "0.1"), &by("multiply", "10.000001")), [false; 2]);
    // What is far from the largest number is a change all the same.
    assert_eq!(changed("f32", "3.3e37, 0, 0", &by("divide", "0.1"), &by("multiply", "10.5")), [true; 2]);
}

#[test]
fn a_conversion_left_out_is_no_change_and_a_new_one_is() {
    for (ty, numbers) in [("f16", "70000, 1, 2"), ("bf16", "3.4e38, 1, 2")] {
        let through = format!("a = {ty}[3] convert(x); ROOT r = ty convert(a)");
        assert!(!changed("f32", numbers, &through, X)[0], "{ty}");
    }
    let through = "a = f16[3] convert(x); ROOT r = ty convert(a)";
    assert_eq!(changed("f32", "70000, 1, 2", through, X), [false, true]);
    // An infinity that was one before the conversion is no overflow of it.
    let through = "e = ty exponential(x); l = ty log(e); a = f16[3] convert(l); ROOT r = ty convert(a)";
    assert_eq!(changed("f32", "1000, 1, 2", through, X), [true; 2]);
}

#[test]
fn sums_have_no_order() {
    const ADD: &str =
        "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n";
    let terms = "x = f32[4] constant({3e38, 3e38, -3e38, 1})";
    let reduce = format!(
        "{terms}; z = f32[] constant(0); ROOT r = f32[] reduce(x, z), dimensions={{0}}, to_apply=add"
    );
    let part =
        |i: usize| format!("s{i} = f32[1] slice(x), slice={{[{i}:{}]}}; t{i} = f32[] reshape(s{i})", i + 1);
    let parts: Vec<String> = (0..4).map(part).collect();
    let chain = |[a, b, c, d]: [usize; 4]| {
        let parts = parts.join("; ");
        format!(
            "{terms}; {parts}; a = f32[] add(t{a}, t{b}); b = f32[] add(a, t{c}); ROOT r = f32[] add(b, t{d})"
        )
    };
    let (overflows, fits) = (chain([0, 1, 2, 3]), chain([0, 2, 1, 3]));
    let found = |forms: [&str; 2]| report(ADD, forms, Some(InputKind::Gentle)).found.is_some();
    assert!(!found([&reduce, &overflows]) && !found([&reduce, &fits]));
    // Additions have one.
    assert!(found([&overflows, &fits]) && found([&fits, &overflows]));
}

/// A softmax and a log-sum-exp that lose the maximum that was subtracted overflow, and no order of their sums
/// does.
#[test]
fn a_maximum_that_is_no_longer_subtracted_is_a_change() {
    let header = |ty: &str| {
        ["add", "maximum"].map(|op| {
            format!("{op}_ {{\n  a = {ty}[] parameter(0)\n  b = {ty}[] parameter(1)\n  ROOT s = {ty}[] {op}(a, b)\n}}\n")
        })
        .concat()
    };
    for ty in ["f32", "bf16", "f64", "f16"] {
        let large = match ty {
            "f64" => "800",
            "f16" => "13",
            "bf16" => "300",
            _ => "100",
        };
        let form = |largest: &str, result: &str| {
            format!(
                "x = ty[2,3] constant({{{{{large}, 1, 2}}, {{0.5, 1, 2}}}}); least = ty[] constant(-inf); zero = ty[] constant(0); {largest}; ml = ty[2,3] broadcast(m), dimensions={{0}}; d = ty[2,3] subtract(x, ml); e = ty[2,3] exponential(d); s = ty[2] reduce(e, zero), dimensions={{1}}, to_apply=add_; {result}"
            )
            .replace("ty[", &format!("{ty}["))
        };
        let largest = "m = ty[2] reduce(x, least), dimensions={1}, to_apply=maximum_";
        let none = "m = ty[2] broadcast(zero), dimensions={}";
        for result in [
            "sl = ty[2,3] broadcast(s), dimensions={0}; ROOT r = ty[2,3] divide(e, sl)",
            "l = ty[2] log(s); ROOT r = ty[2] add(l, m)",
        ] {
            let found = |forms: [&str; 2]| {
                let forms = [form(forms[0], result), form(forms[1], result)];
                report(&header(ty), [&forms[0], &forms[1]], Some(InputKind::Gentle)).found.is_some()
            };
            assert!(found([largest, none]) && found([none, largest]), "{ty} {result}");
            assert!(!found([largest, largest]), "{ty} {result}");
        }
    }
}

#[test]
fn extreme_inputs_are_tried_where_gentle_ones_show_nothing() {
    let given = "y = f32[64] parameter(0)";
    let one = format!("{given}; a = f32[64] exponential(y); ROOT b = f32[64] log(a)");
    let other = format!("{given}; ROOT b = f32[64] copy(y)");
    let gentle = report("", [&one, &other], Some(InputKind::Gentle));
    assert!(gentle.found.is_none(), "{gentle:?}");
    let tried = report("", [&one, &other], None);
    let found = tried.found.as_ref().unwrap();
    assert_eq!((found.pass.as_deref(), tried.input_kind), (Some("suspect"), Some(InputKind::Large)));
    assert!(tried.inputs.starts_with("made, seed 0, large"), "{}", tried.inputs);
    assert!(found.results[0].contains("inf, then") && tried.also.len() == 1, "{tried:?}");
    // NaNs of special numbers.
    let one = format!("{given}; ROOT b = f32[64] subtract(y, y)");
    let zero = format!("{given}; z = f32[] constant(0); ROOT b = f32[64] broadcast(z), dimensions={{}}");
    let tried = report("", [&one, &zero], None);
    assert_eq!((tried.found.is_some(), tried.input_kind), (true, Some(InputKind::Special)));
    assert!(tried.found.unwrap().results[0].contains("NaN, then 0.0"));
}

/// What compilers rightly do keeps what it computes on all kinds of inputs, but for rounding.
#[test]
fn roundings_are_no_changes_on_any_inputs() {
    let given = "y = f32[64] parameter(0); z = f32[64] parameter(1); c = f32[] constant(3); b = f32[64] broadcast(c), dimensions={}; d = f32[] constant(0.33333334); t = f32[64] broadcast(d), dimensions={}; i = f32[] constant(1); o = f32[64] broadcast(i), dimensions={}";
    for (one, other) in [
        ("ROOT r = f32[64] divide(y, b)", "ROOT r = f32[64] multiply(y, t)"),
        (
            "ROOT r = f32[64] logistic(y)",
            "n = f32[64] negate(y); e = f32[64] exponential(n); s = f32[64] add(e, o); ROOT r = f32[64] divide(o, s)",
        ),
        ("s = f32[64] sqrt(z); ROOT r = f32[64] divide(o, s)", "ROOT r = f32[64] rsqrt(z)"),
        ("ROOT r = f32[64] add(y, z)", "ROOT r = f32[64] add(z, y)"),
        (
            "p = f32[64] add(y, y); ROOT r = f32[64] copy(p)",
            "w = f32[] constant(2); v = f32[64] broadcast(w), dimensions={}; ROOT r = f32[64] multiply(y, v)",
        ),
    ] {
        let forms = [one, other].map(|body| format!("{given}; {body}"));
        for kind in
            [InputKind::Gentle, InputKind::Large, InputKind::Tiny, InputKind::Special, InputKind::Extreme]
        {
            let report = report("", [&forms[0], &forms[1]], Some(kind));
            assert!(report.found.is_none() && report.drift.is_none(), "{kind} {one}: {report:?}");
        }
    }
}
