//! Bits of NaNs that were computed.

use hlo_execution::allowances::Allowances;
use hlo_execution::verdict::Allowed;

use crate::common::certified;

const NAN_BITS: Allowances = Allowances { nan_bits: true, ..Allowances::STRICT };

/// The roots of the elements of a parameter, and what is computed of them.
fn of_roots(ty: &str, n: usize, rest: &str) -> String {
    format!(
        "HloModule m\nless {{ a = {ty}[] parameter(0)\n b = {ty}[] parameter(1)\n ROOT p = pred[] compare(a, b), direction=LT, type=TOTALORDER }}\nENTRY e {{ x = {ty}[{n}] parameter(0)\n y = {ty}[{n}] sqrt(x)\n {rest} }}"
    )
}

fn hard_of(text: &str, input: &[f32], allowances: Allowances) -> Vec<Vec<f64>> {
    let all = certified(text, &[input], allowances);
    all.iter().map(|(array, bounds)| (0..array.buffer.len()).map(|i| bounds.hard.at(i)).collect()).collect()
}

#[test]
fn bits_of_a_computed_nan_are_those_of_some_nan() {
    for (to, negative, infinite) in
        [("s32", -4_194_304.0, -8_388_608.0), ("u32", 4_290_772_992.0, 4_286_578_688.0)]
    {
        let text = of_roots("f32", 2, &format!("ROOT b = {to}[2] bitcast-convert(y)"));
        let all = certified(&text, &[&[-6.0, 4.0]], NAN_BITS);
        let bounds = &all[0].1;
        // The negative quiet NaN is explained, the pattern of an infinity or a number is wrong.
        assert!(bounds.explains(0, negative) && bounds.admits(0, negative), "{to}");
        assert!(!bounds.admits(0, infinite) && !bounds.admits(0, 0.0), "{to}");
        assert_eq!(bounds.hard(1), 0.0);
        assert!(certified(&text, &[&[-6.0, 4.0]], Allowances::STRICT)[0].1.is_exact());
    }
    // Types with few NaNs: of f8e4m3fn 0x7f and 0xff, of f8e5m2fnuz 0x80 alone.
    for (ty, others) in [("f8e4m3fn", &[127.0, 255.0][..]), ("f8e5m2fnuz", &[128.0])] {
        let all = certified(&of_roots(ty, 1, "ROOT b = u8[1] bitcast-convert(y)"), &[&[-6.0]], NAN_BITS);
        let admitted: Vec<f64> = (0..256).map(f64::from).filter(|&x| all[0].1.admits(0, x)).collect();
        assert_eq!(admitted, others, "{ty}");
    }
    // Of parts of it nothing is known.
    let parts = of_roots("f32", 2, "ROOT b = u16[2,2] bitcast-convert(y)");
    assert_eq!(hard_of(&parts, &[-6.0, 4.0], NAN_BITS), [[f64::INFINITY, f64::INFINITY, 0.0, 0.0]]);
}

#[test]
fn orders_by_bits_depend_on_the_sign_of_a_computed_nan() {
    let order = |direction: &str| {
        let rest = format!(
            "z = f32[3] constant({{1, 1, 1}})\n ROOT p = pred[3] compare(y, z), direction={direction}, type=TOTALORDER"
        );
        hard_of(&of_roots("f32", 3, &rest), &[-6.0, 4.0, 1.0], NAN_BITS)
    };
    assert_eq!(order("LT"), [[1.0, 0.0, 0.0]]);
    assert_eq!(order("EQ"), [[0.0; 3]]);
    let itself = of_roots("f32", 1, "ROOT p = pred[1] compare(y, y), direction=GE, type=TOTALORDER");
    assert_eq!(hard_of(&itself, &[-6.0], NAN_BITS), [[0.0]]);
    let sort = "z = f32[2,2] reshape(y)\n ROOT s = f32[2,2] sort(z), dimensions={1}, to_apply=less";
    let open = [f64::INFINITY, f64::INFINITY, 0.0, 0.0];
    assert_eq!(hard_of(&of_roots("f32", 4, sort), &[-6.0, 4.0, 9.0, 1.0], NAN_BITS), [open]);
    assert_eq!(hard_of(&of_roots("f32", 4, sort), &[-6.0, 4.0, 9.0, 1.0], Allowances::STRICT), [[0.0; 4]]);
    for topk in [
        "topk(z), k=1, largest=true",
        "custom-call(z), custom_call_target=\"TopK\", called_computations={less}",
    ] {
        let rest = format!("z = f32[2,2] reshape(y)\n ROOT t = (f32[2,1], s32[2,1]) {topk}");
        let found = hard_of(&of_roots("f32", 4, &rest), &[-6.0, 4.0, 9.0, 1.0], NAN_BITS);
        assert_eq!(found, [[f64::INFINITY, 0.0]; 2], "{topk}");
    }
}

/// A NaN that was given becomes one that was computed where a comparator converts it.
#[test]
fn a_comparator_may_compute_the_nans_that_it_orders() {
    let text = |key: &str| {
        let of = |operand: &str| key.replace('#', operand);
        format!(
            "HloModule m\nless {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n x = {}\n y = {}\n ROOT l = pred[] compare(x, y), direction=LT, type=TOTALORDER }}\nENTRY e {{ x = f32[2,2] parameter(0)\n ROOT s = f32[2,2] sort(x), dimensions={{1}}, to_apply=less }}",
            of("a"),
            of("b")
        )
    };
    let topk = text("f16[] convert(#)").replace(
        "ROOT s = f32[2,2] sort(x), dimensions={1}, to_apply=less",
        "ROOT s = (f32[2,1], s32[2,1]) custom-call(x), custom_call_target=\"TopK\", called_computations={less}",
    );
    let x = [f32::NAN, 4.0, 9.0, 1.0];
    assert_eq!(hard_of(&topk, &x, NAN_BITS), [[f64::INFINITY, 0.0]; 2]);
    let (open, closed) = (f64::INFINITY, 0.0);
    for (key, expected) in [
        ("f32[] copy(#)", [closed; 4]),
        ("f16[] convert(#)", [open, open, closed, closed]),
        ("f32[] log(#)", [open; 4]),
    ] {
        assert_eq!(hard_of(&text(key), &x, NAN_BITS), [expected], "{key}");
        assert_eq!(
            hard_of(&text(key), &x, Allowances::STRICT)[0][0],
            if key.contains("log") { open } else { closed }
        );
    }
}

#[test]
fn nans_that_are_moved_keep_their_bits() {
    for moved in ["x", "constant({nan, 1})"] {
        let text = format!(
            "HloModule m\nENTRY e {{ x = f32[2] parameter(0)\n c = f32[2] {}\n y = f32[2] reverse(c), dimensions={{0}}\n ROOT b = s32[2] bitcast-convert(y) }}",
            if moved == "x" { "copy(x)" } else { moved }
        );
        assert_eq!(hard_of(&text, &[f32::NAN, 1.0], NAN_BITS), [[0.0; 2]], "{moved}");
    }
    let moved =
        of_roots("f32", 2, "r = f32[2] reverse(y), dimensions={0}\n ROOT b = s32[2] bitcast-convert(r)");
    assert_eq!(hard_of(&moved, &[-6.0, 4.0], NAN_BITS), [[0.0, f64::INFINITY]]);
}

#[test]
fn maps_look_at_bits_of_what_they_compute() {
    let text = "HloModule m\nf { a = f32[] parameter(0)\n r = f32[] sqrt(a)\n ROOT b = s32[] bitcast-convert(r) }\nENTRY e { x = f32[2] parameter(0)\n ROOT m = s32[2] map(x), dimensions={0}, to_apply=f }";
    assert_eq!(hard_of(text, &[-6.0, 4.0], NAN_BITS), [[f64::INFINITY, 0.0]]);
    assert_eq!(hard_of(text, &[-6.0, 4.0], Allowances::STRICT), [[0.0; 2]]);
}
