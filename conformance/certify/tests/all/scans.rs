//! Scans by any computation, orders by bits, and arguments of complex numbers.

use hlo::ArrayLiteral;
use hlo_certify::bounds::Bounds;
use hlo_execution::allowances::Allowances;
use hlo_execution::verdict::{Class, judge};

use crate::common::{U, certified};

/// The class of an array beside the reference's result number `k`.
fn class(all: &[(ArrayLiteral, Bounds)], k: usize, actual: hlo::Buffer) -> Class {
    let (expected, bounds) = &all[k];
    let actual = ArrayLiteral::new(expected.dims.clone(), actual).unwrap();
    judge(expected, &actual, bounds, false).unwrap().class()
}

/// The least number so far, less the element: each step rounds once. What is denormal may be flushed, and the
/// carry goes on from there.
#[test]
fn scans_are_followed_slice_by_slice() {
    let text = "HloModule m
step { x = f32[] parameter(0)\n c = f32[] parameter(1)\n m = f32[] minimum(c, x)\n s = f32[] subtract(m, x)\n ROOT t = (f32[], f32[]) tuple(s, m) }
ENTRY e { x = f32[3] parameter(0)\n i = f32[] parameter(1)\n ROOT r = (f32[3], f32[]) scan(x, i), dimensions={0}, num_carries=1, to_apply=step }";
    let exact = certified(text, &[&[3.0, 1.0, 2.0], &[2.5]], Allowances::STRICT);
    assert!(exact.iter().all(|(_, b)| b.is_exact()));
    for allowances in [Allowances::LOOSE, Allowances { reorder_regions: false, ..Allowances::LOOSE }] {
        let all = certified(text, &[&[3.0, 1.0, 2.0], &[2.5]], allowances);
        assert_eq!(class(&all, 0, hlo::Buffer::F32(vec![-0.5, 0.0, -1.0])), Class::Same);
        assert_eq!(class(&all, 0, hlo::Buffer::F32(vec![-0.5, 0.0, -1.1])), Class::Wrong);
        assert_eq!(class(&all, 1, hlo::Buffer::F32(vec![2.0])), Class::Wrong);
        // 1e-38 less 2e-38 is denormal.
        let all = certified(text, &[&[2e-38, 1.0, 2.0], &[1e-38]], allowances);
        assert_eq!(class(&all, 0, hlo::Buffer::F32(vec![0.0, -1.0, -2.0])), Class::Explained);
        assert_eq!(class(&all, 0, hlo::Buffer::F32(vec![1e-36, -1.0, -2.0])), Class::Wrong);
    }
    // Brackets are free where the computation says that it is associative.
    let free = text.replace("num_carries=1", "num_carries=1, is_associative=true");
    let all = certified(&free, &[&[3.0, 1.0, 2.0], &[2.5]], Allowances::LOOSE);
    assert_eq!(class(&all, 0, hlo::Buffer::F32(vec![-0.5, 0.0, -1.1])), Class::Undecided);
}

/// What is sorted is not rounded, and an order by bits sees no zeros where denormal numbers are.
#[test]
fn orders_round_nothing_and_those_by_bits_flush_nothing() {
    let narrow = "HloModule m\nENTRY e { x = bf16[4] parameter(0)\n ROOT t = (bf16[2], s32[2]) topk(x), k=2, largest=true }";
    let all = certified(narrow, &[&[1.0, 3.0, 2.0, 1e-40]], Allowances::LOOSE);
    assert!(all.iter().all(|(_, b)| b.is_exact()), "{all:?}");
    let sort = |how: &str| {
        let text = format!(
            "HloModule m\no {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=LT{how} }}\nENTRY e {{ x = f32[3] parameter(0)\n ROOT s = f32[3] sort(x), dimensions={{0}}, to_apply=o }}"
        );
        certified(&text, &[&[3e-40, 1e-40, 1.0]], Allowances::LOOSE).remove(0).1
    };
    assert!(sort(", type=TOTALORDER").is_exact());
    assert!(!sort("").is_exact());
}

/// A conversion that rounds nothing leaves nothing out, infinities that are known convert to what they
/// convert to beside a denormal number, and a rounding that is asked for is done.
#[test]
fn what_is_not_rounded_is_not_left_unrounded() {
    let one = |text: &str, x: &[f32]| certified(text, &[x], Allowances::LOOSE).remove(0).1;
    let to = |ty: &str| {
        format!("HloModule m\nENTRY e {{ x = f32[4] parameter(0)\n ROOT y = {ty}[4] convert(x) }}")
    };
    let b = one(&to("bf16"), &[1.0, f32::INFINITY, 0.0, 1.001]);
    assert_eq!([b.hard.at(0), b.hard.at(1), b.hard.at(2)], [0.0; 3]);
    assert!(b.hard.at(3) > 0.0);
    let b = one(&to("s8"), &[f32::INFINITY, f32::NAN, 1e-40, 1.5]);
    assert!([0, 1, 3].iter().all(|&i| b.hard.at(i) == 0.0), "{b:?}");
    let text = "HloModule m\nENTRY e { x = bf16[2] parameter(0)\n ROOT y = bf16[2] reduce-precision(x), exponent_bits=5, mantissa_bits=0 }";
    let b = one(text, &[f32::NAN, 3.0]);
    assert_eq!([b.hard.at(0), b.hard.at(1)], [0.0; 2]);
}

/// `-i log((x + i y) / sqrt(x^2 + y^2))` has an absolute error, times the condition of the sum of squares.
#[test]
fn arguments_of_complex_numbers_by_logarithms_have_absolute_errors() {
    let text = "HloModule m\nENTRY e { a = f32[1] parameter(0)\n b = f32[1] parameter(1)\n c = f32[1] parameter(2)\n d = f32[1] parameter(3)\n y = c64[1] complex(a, b)\n x = c64[1] complex(c, d)\n ROOT r = c64[1] atan2(y, x) }";
    let of = |y: (f32, f32), x: (f32, f32), functions| {
        let allowances = Allowances { functions, ..Allowances::STRICT };
        let all = certified(text, &[&[y.0], &[y.1], &[x.0], &[x.1]], allowances);
        all[0].1.soft.at(0)
    };
    let (strict, loose) =
        (hlo_execution::functions::Functions::TABLE, hlo_execution::functions::Functions::XLA_CPU);
    // The argument of 1 + 1e-6 i is 1e-6, within 4 units of that, or of 1.
    assert!(of((1e-6, 0.0), (1.0, 0.0), strict) < 1e-12);
    let r = of((1e-6, 0.0), (1.0, 0.0), loose);
    assert!((8.0 * U..9.0 * U).contains(&r), "{r}");
    // x^2 + y^2 is a thousandth of |x|^2 + |y|^2 for y = i (1 - 1e-3) x.
    let r = of((0.0, 0.999), (1.0, 0.0), loose);
    assert!((4000.0 * U..4100.0 * U).contains(&r), "{r}");
    assert!(of((0.0, 1.0 - 1e-7), (1.0, 1e-7), loose) > 1.0);
    // Squares that are no normal numbers are no excuse.
    assert!(of((1e-30, 0.0), (1e-30, 0.0), loose) < 20.0 * U);
    assert!(of((1e30, 0.0), (1e30, 0.0), loose) < 20.0 * U);
    // An operand that is off by some units moves the result by that over its modulus.
    let text =
        text.replace("y = c64[1] complex(a, b)", "g = f32[1] exponential(a)\n y = c64[1] complex(g, b)");
    let all = certified(&text, &[&[0.0], &[0.0], &[1.0], &[0.0]], Allowances::STRICT);
    let r = all[0].1.soft.at(0);
    assert!((2.0 * U..12.0 * U).contains(&r), "{r}");
}
