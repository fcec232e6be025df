//! Verdicts on recorded results: `ok` where a liberty permits the result, `mismatch` where none does.

use hlo::half::f16;
use hlo::{ArrayLiteral, Buffer, Dims};
use hlo_execution::element::Number;
use libtest_mimic::Trial;

use crate::function;
use crate::judging::{array, judged};

pub(crate) fn trials() -> Vec<Trial> {
    vec![function("judging/what no liberty leaves open is right or wrong", decided)]
}

/// What no liberty leaves open is right or wrong.
fn decided() {
    let halves = |x: &[f32]| array(Buffer::F16(x.iter().map(|&x| f16::from_f32(x)).collect()));
    let half = |x: f32| halves(&[x]);
    let complex = |re: f64, im: f64| array(Buffer::C128(vec![hlo::num_complex::Complex::new(re, im)]));
    let twice = |re: f64, im: f64| array(Buffer::C128(vec![hlo::num_complex::Complex::new(re, im); 2]));
    let c64s = |x: [(f32, f32); 3]| {
        array(Buffer::C64(x.map(|(re, im)| hlo::num_complex::Complex::new(re, im)).to_vec()))
    };
    let tiny = |x: f64| array(Buffer::F6E2M3FN(vec![Number::from_f64(x)]));
    let scale = |x: f64| array(Buffer::F8E8M0FNU(vec![Number::from_f64(x)]));
    let cases = [
        // A product overflows in every order.
        (
            "HloModule m
f { a = f16[] parameter(0) b = f16[] parameter(1) ROOT m = f16[] multiply(a, b) }
ENTRY e {
  x = f16[4] parameter(0)
  i = f16[] constant(-435.8)
  ROOT r = f16[1] reduce-window(x, i), window={size=4}, to_apply=f
}",
            halves(&[64100.0, 0.5, 0.25, 40.0]),
            vec![(half(f32::NEG_INFINITY), "ok"), (half(-64100.0), "mismatch"), (half(f32::NAN), "mismatch")],
        ),
        // In one order a partial product overflows, in the other the product is a number.
        (
            "HloModule m
f { a = f64[] parameter(0) b = f64[] parameter(1) ROOT m = f64[] multiply(a, b) }
ENTRY e {
  x = f64[2] parameter(0)
  i = f64[] constant(1e200)
  ROOT r = f64[1] reduce-window(x, i), window={size=2}, to_apply=f
}",
            array(Buffer::F64(vec![1e200, 1e-100])),
            vec![(array(Buffer::F64(vec![f64::INFINITY])), "ok"), (array(Buffer::F64(vec![1e300])), "ok")],
        ),
        // A flushed imaginary part is a zero on its own side of the cut.
        (
            "HloModule m
ENTRY e {
  x = c128[1] parameter(0)
  ROOT r = c128[1] sqrt(x)
}",
            complex(-4.0, 5e-324),
            vec![(complex(0.0, 2.0), "ok"), (complex(1e-16, 2.0), "ok"), (complex(0.0, -2.0), "mismatch")],
        ),
        // A zero among factors has the sign that a formula gives it.
        (
            "HloModule m
ENTRY e {
  x = c128[1,1] parameter(0)
  z = c128[1,1] constant({ { (0, 0) } })
  upper = c128[1,2] concatenate(x, z), dimensions={1}
  lower = c128[1,2] concatenate(z, x), dimensions={1}
  a = c128[2,2] concatenate(upper, lower), dimensions={0}
  l = c128[2,2] cholesky(a), lower=true
  u = c128[2,2] cholesky(a), lower=false
  below = c128[1,1] slice(l), slice={[1:2], [0:1]}
  other = c128[1,1] slice(u), slice={[1:2], [0:1]}
  both = c128[2,1] concatenate(below, other), dimensions={0}
  ROOT r = c128[2] reshape(both)
}",
            ArrayLiteral::new(Dims::from_slice(&[1, 1]), (*complex(4.0, 0.0).buffer).clone()).unwrap(),
            vec![(twice(0.0, 0.0), "ok"), (twice(0.0, -0.0), "ok"), (twice(0.0, 1e-200), "mismatch")],
        ),
        // The greatest of the initial value and one element, beside a NaN.
        (
            "HloModule m
f { a = c128[] parameter(0) b = c128[] parameter(1) ROOT m = c128[] maximum(b, a) }
ENTRY e {
  x = c128[1,1] parameter(0)
  n = c128[1,1] constant({ { (nan, 0) } })
  y = c128[1,2] concatenate(x, n), dimensions={1}
  i = c128[] constant((0, 0))
  m = c128[2] reduce(y, i), dimensions={0}, to_apply=f
  ROOT r = c128[1] slice(m), slice={[0:1]}
}",
            ArrayLiteral::new(Dims::from_slice(&[1, 1]), (*complex(-1.875, -0.0).buffer).clone()).unwrap(),
            vec![(complex(0.0, 0.0), "ok"), (complex(-1.875, -0.0), "ok"), (complex(2.0, 0.0), "mismatch")],
        ),
        // A sum of the initial value and one element: 8.5 rounds to 8, and the initial value may be left out.
        (
            "HloModule m
f { a = f8e8m0fnu[] parameter(0) b = f8e8m0fnu[] parameter(1) ROOT m = f8e8m0fnu[] add(a, b) }
ENTRY e {
  x = f8e8m0fnu[1] parameter(0)
  i = f8e8m0fnu[] constant(8)
  ROOT r = f8e8m0fnu[1] reduce(x, i), dimensions={}, to_apply=f
}",
            scale(0.5),
            vec![(scale(8.0), "ok"), (scale(0.5), "ok"), (scale(16.0), "mismatch")],
        ),
        // It may enter once in each window of 32, but is not lost where there are several elements.
        (
            "HloModule m
f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT m = f32[] add(a, b) }
ENTRY e {
  x = f32[1] parameter(0)
  y = f32[1,64] broadcast(x), dimensions={0}
  i = f32[] constant(4)
  ROOT r = f32[1] reduce(y, i), dimensions={1}, to_apply=f
}",
            array(Buffer::F32(vec![1.0])),
            vec![
                (array(Buffer::F32(vec![68.0])), "ok"),
                (array(Buffer::F32(vec![76.0])), "ok"),
                (array(Buffer::F32(vec![72.0])), "mismatch"),
                (array(Buffer::F32(vec![64.0])), "mismatch"),
            ],
        ),
        // Or in the fold of each operand of a concatenation, unless that is of one element.
        (
            "HloModule m
f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT m = f32[] add(a, b) }
ENTRY e {
  x = f32[1] parameter(0)
  o = f32[1,1] reshape(x)
  y = f32[1,2] broadcast(x), dimensions={0}
  z = f32[1,5] concatenate(y, y, o), dimensions={1}
  i = f32[] constant(4)
  ROOT r = f32[1] reduce(z, i), dimensions={1}, to_apply=f
}",
            array(Buffer::F32(vec![1.0])),
            vec![
                (array(Buffer::F32(vec![9.0])), "ok"),
                (array(Buffer::F32(vec![17.0])), "ok"),
                (array(Buffer::F32(vec![13.0])), "ok"),
                (array(Buffer::F32(vec![21.0])), "mismatch"),
                (array(Buffer::F32(vec![5.0])), "mismatch"),
            ],
        ),
        // With an identity of the computation how often shows nowhere.
        (
            "HloModule m
f { a = s32[] parameter(0) b = s32[] parameter(1) ROOT m = s32[] add(a, b) }
ENTRY e {
  x = s32[1] parameter(0)
  y = s32[1,64] broadcast(x), dimensions={0}
  i = s32[] constant(0)
  ROOT r = s32[1] reduce(y, i), dimensions={1}, to_apply=f
}",
            array(Buffer::S32(vec![1])),
            vec![(array(Buffer::S32(vec![64])), "ok"), (array(Buffer::S32(vec![76])), "mismatch")],
        ),
        (
            "HloModule m
f { a = s32[] parameter(0) b = s32[] parameter(1) ROOT m = s32[] minimum(a, b) }
ENTRY e {
  x = s32[2] parameter(0)
  i = s32[] constant(0)
  ROOT r = s32[2] reduce(x, i), dimensions={}, to_apply=f
}",
            array(Buffer::S32(vec![1, -3])),
            vec![
                (array(Buffer::S32(vec![0, -3])), "ok"),
                (array(Buffer::S32(vec![1, -3])), "ok"),
                (array(Buffer::S32(vec![2, -3])), "mismatch"),
                (array(Buffer::S32(vec![0, -2])), "mismatch"),
            ],
        ),
        // The greatest number by 0 overflows nowhere: -0 as the only term, 0 added to another.
        (
            "HloModule m
ENTRY e {
  x = f64[1] parameter(0)
  y = f64[1] constant({1.7976931348623157e308})
  ROOT r = f64[1] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}
}",
            array(Buffer::F64(vec![-0.0])),
            [(0.0, "ok"), (-0.0, "ok"), (1.0, "mismatch")]
                .map(|(x, v)| (array(Buffer::F64(vec![x])), v))
                .to_vec(),
        ),
        // Keys that are denormal parts are equal to a comparison that flushes, and rows stay as they are.
        (
            "HloModule m
less {
  a = c64[] parameter(0)
  b = c64[] parameter(1)
  x = f32[] real(a)
  y = f32[] real(b)
  ROOT c = pred[] compare(x, y), direction=LT
}
ENTRY e {
  x = c64[3] parameter(0)
  ROOT s = c64[3] sort(x), dimensions={0}, is_stable=true, to_apply=less
}",
            c64s([(3e-40, 1.0), (1e-40, 2.0), (-4.0, 3.0)]),
            vec![
                (c64s([(-4.0, 3.0), (1e-40, 2.0), (3e-40, 1.0)]), "ok"),
                (c64s([(-4.0, 3.0), (3e-40, 1.0), (1e-40, 2.0)]), "ok"),
            ],
        ),
        // A denormal operand of a scatter's product is 0 where it is flushed, and 0 times infinity is NaN.
        (
            "HloModule m
mul {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] multiply(a, b)
}
ENTRY e {
  x = f32[3] parameter(0)
  i = s32[1] constant({0})
  d = f32[1] slice(x), slice={[0:1]}
  u = f32[1] slice(x), slice={[1:2]}
  ROOT s = f32[1] scatter(d, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=mul
}",
            array(Buffer::F32(vec![-1e-40, f32::INFINITY, 1.0])),
            vec![
                (array(Buffer::F32(vec![f32::NAN])), "ok"),
                (array(Buffer::F32(vec![f32::NEG_INFINITY])), "ok"),
            ],
        ),
        // Denormal numbers flushed in the steps of a scan: 2^-127 becomes 0 in f32, and f8e8m0fnu has no zero,
        // so that the result is NaN.
        (
            "HloModule m
f {
  a = f8e8m0fnu[1] parameter(0)
  b = f8e8m0fnu[1] parameter(1)
  m = f8e8m0fnu[1] multiply(b, a)
  n = f8e8m0fnu[1] minimum(b, a)
  ROOT t = (f8e8m0fnu[1], f8e8m0fnu[1]) tuple(n, m)
}
ENTRY e {
  x = f8e8m0fnu[1,1] parameter(0)
  i = f8e8m0fnu[1] constant({2})
  s = (f8e8m0fnu[1,1], f8e8m0fnu[1]) scan(x, i), dimensions={0}, num_carries=1, to_apply=f
  ROOT g = f8e8m0fnu[1] get-tuple-element(s), index=1
}",
            ArrayLiteral::new(Dims::from_slice(&[1, 1]), (*scale(2f64.powi(-127)).buffer).clone()).unwrap(),
            vec![
                (scale(2f64.powi(-126)), "ok"),
                (array(Buffer::F8E8M0FNU(vec![Number::from_f64(f64::NAN)])), "ok"),
            ],
        ),
        // 0 / 0 is a NaN, which the type makes a zero, of either sign; and 0 by that again.
        (
            "HloModule m
ENTRY e {
  x = f6e2m3fn[1] parameter(0)
  d = f6e2m3fn[1] divide(x, x)
  ROOT r = f6e2m3fn[1] divide(x, d)
}",
            tiny(0.0),
            vec![(tiny(0.0), "ok"), (tiny(-0.0), "ok"), (tiny(1.0), "mismatch")],
        ),
    ];
    for (text, argument, results) in cases {
        let results = results.into_iter().map(|(result, verdict)| (vec![result], verdict));
        judged(text, argument, results.collect());
    }
}
