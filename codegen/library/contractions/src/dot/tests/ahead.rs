//! Products whose right operand is packed ahead of runs, and the order in which terms are added.

use hlo::ElementType;
use hlo_interp::Tensor;

use super::{Floats, Random, parse, random, run, run_prepared};

/// Shapes of all ways in which a product reads its right operand, and a few that have nothing to pack.
#[test]
fn what_is_packed_ahead_gives_the_same_bits() {
    let mut r = Random(56);
    let mut packed = 0;
    for (ty, m, n, k) in [
        ("f32", 3, 300, 40),
        ("f32", 20, 1000, 300),
        ("f32", 30, 1100, 260),
        ("f32", 70, 96, 1500),
        ("f32", 200, 33, 130),
        ("f32", 410, 70, 9),
        ("f64", 40, 37, 700),
        ("f16", 40, 90, 50),
        ("bf16", 33, 70, 90),
        ("bf16", 130, 40, 65),
    ] {
        for transposed in [false, true] {
            let (right, dim) = if transposed { (format!("{n},{k}"), 1) } else { (format!("{k},{n}"), 0) };
            for result in ["f32", ty] {
                let text = format!(
                    "HloModule m\nENTRY e {{\n  a = {ty}[{m},{k}] parameter(0)\n  b = {ty}[{right}] parameter(1)\n  ROOT r = {result}[{m},{n}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{{dim}}}\n}}\n"
                );
                let module = parse(&text);
                let parameters = module.computation(module.entry()).parameters();
                let args: Vec<Tensor> = parameters
                    .iter()
                    .map(|p| {
                        let shape = module.instr(p.unwrap()).shape.expect_array();
                        let dims: Vec<usize> = shape.dims.iter().map(|&d| d as usize).collect();
                        random(shape.element_type, &dims, Floats::Plain, &mut r)
                    })
                    .collect();
                let plain = run(&module, &args, 1, true);
                for threads in 1..=3 {
                    let Some(ahead) = run_prepared(&module, &args, threads, true, true) else { continue };
                    assert!(ahead.buffer() == plain.buffer(), "{threads} threads: {text}");
                    packed += 1;
                }
            }
        }
    }
    assert!(packed > 60, "{packed}");
}

/// One chain of multiply-adds is what an element is, whatever the blocks of terms and however the right
/// operand is read.
#[test]
fn terms_are_added_one_after_the_other() {
    let mut r = Random(7);
    for (m, n, k) in [(2, 40, 2500), (30, 600, 1300), (300, 40, 1100)] {
        let text = format!(
            "HloModule m\nENTRY e {{\n  a = f32[{m},{k}] parameter(0)\n  b = f32[{k},{n}] parameter(1)\n  ROOT r = f32[{m},{n}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n}}\n"
        );
        let module = parse(&text);
        let args = [
            random(ElementType::F32, &[m, k], Floats::Plain, &mut r),
            random(ElementType::F32, &[k, n], Floats::Plain, &mut r),
        ];
        let (a, b) = (args[0].slice::<f32>(), args[1].slice::<f32>());
        let found = run(&module, &args, 2, false);
        for (i, &x) in found.slice::<f32>().iter().enumerate().step_by(37) {
            let (row, column) = (i / n, i % n);
            let chain = (0..k).fold(0f32, |sum, t| a[row * k + t].mul_add(b[t * n + column], sum));
            assert_eq!(x, chain, "{m} x {n} x {k}, element {i}");
        }
    }
}
