use hlo::{Buffer, Literal};

use crate::testing::{Random, arguments, called, close, interpreted, parse};

const TYPES: [(&str, &str, &str); 4] =
    [("f32", "f32", "s"), ("f64", "f64", "d"), ("c64", "f32", "c"), ("c128", "f64", "z")];

/// A batch of matrices without ties: parameter x, whose elements are rotated by an angle that depends on the
/// index.
fn uneven(ty: &str, part: &str, dims: &str) -> String {
    let real = |name: &str| format!("  {name} = {ty}[{dims}] convert(u)\n");
    let complex = format!("  v = {part}[{dims}] cosine(u)\n  w = {ty}[{dims}] complex(u, v)\n");
    let rank = dims.split(',').count();
    format!(
        "  x = {ty}[{dims}] parameter(0)\n  i = {part}[{dims}] iota(), iota_dimension={}\n  j = {part}[{dims}] iota(), iota_dimension={}\n  \
         c = {part}[] constant(1.7)\n  cb = {part}[{dims}] broadcast(c), dimensions={{}}\n  jj = {part}[{dims}] multiply(j, j)\n  t = {part}[{dims}] multiply(cb, jj)\n  \
         ij = {part}[{dims}] multiply(i, i)\n  s = {part}[{dims}] add(t, ij)\n  u = {part}[{dims}] sine(s)\n{}  a = {ty}[{dims}] add(x, w)\n",
        rank - 2,
        rank - 1,
        if ty == part { real("w") } else { complex },
    )
}

/// `odd`: which elements are those of every other matrix of a batch.
fn odd(dims: &str) -> String {
    format!(
        "  number = s32[{dims}] iota(), iota_dimension=0\n  bit = s32[] constant(1)\n  bits = s32[{dims}] broadcast(bit), dimensions={{}}\n  \
         last = s32[{dims}] and(number, bits)\n  odd = pred[{dims}] convert(last)\n"
    )
}

/// `p` = a a^H + n on the diagonal, for a batch of one dimension.
fn positive(ty: &str, part: &str, batch: usize, n: usize) -> String {
    let dims = format!("{batch},{n},{n}");
    let conjugate = if ty == part {
        format!("  ac = {ty}[{dims}] copy(a)\n")
    } else {
        format!(
            "  re = {part}[{dims}] real(a)\n  im = {part}[{dims}] imag(a)\n  mi = {part}[{dims}] negate(im)\n  ac = {ty}[{dims}] complex(re, mi)\n"
        )
    };
    format!(
        "{}{conjugate}  q = {ty}[{dims}] dot(a, ac), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}\n  \
         k = {ty}[] constant({})\n  kb = {ty}[{dims}] broadcast(k), dimensions={{}}\n  on = pred[{dims}] compare(i, j), direction=EQ\n  \
         z = {ty}[] constant({})\n  zb = {ty}[{dims}] broadcast(z), dimensions={{}}\n  e = {ty}[{dims}] select(on, kb, zb)\n  p = {ty}[{dims}] add(q, e)\n",
        uneven(ty, part, &dims),
        if ty == part { format!("{n}") } else { format!("({n}, 0)") },
        if ty == part { "0" } else { "(0, 0)" },
    )
}

fn module(body: &str) -> String {
    format!("HloModule m\nENTRY main {{\n{body}}}\n")
}

#[test]
fn factors_of_positive_matrices() {
    for (seed, (ty, part, letter)) in (1..).zip(TYPES) {
        for (batch, n) in [(3, 1), (5, 7), (2, 48), (1, 49), (1, 130), (0, 4), (3, 0)] {
            for lower in [true, false] {
                let head = positive(ty, part, batch, n);
                let dims = format!("{batch},{n},{n}");
                let own = format!("  ROOT l = {ty}[{dims}] cholesky(p), lower={lower}\n");
                close(&module(&format!("{head}{own}")), seed, 100.0);
                let uplo = if lower { 76 } else { 85 };
                let call = format!(
                    "  ROOT l = ({ty}[{dims}], s32[{batch}]) custom-call(p), custom_call_target=\"lapack_{letter}potrf_ffi\", \
                     api_version=API_VERSION_TYPED_FFI, backend_config={{uplo = {uplo} : ui8}}\n"
                );
                close(&module(&format!("{head}{call}")), seed, 100.0);
            }
        }
    }
}

/// Every operand of [`Random`] is far from positive: NaN, and the step where it fails.
#[test]
fn what_is_not_positive_fails() {
    for (ty, _, letter) in TYPES {
        let own =
            format!("  x = {ty}[4,60,60] parameter(0)\n  ROOT l = {ty}[4,60,60] cholesky(x), lower=true\n");
        close(&module(&own), 3, 0.0);
        let call = format!(
            "  x = {ty}[4,60,60] parameter(0)\n  l = ({ty}[4,60,60], s32[4]) custom-call(x), custom_call_target=\"lapack_{letter}potrf_ffi\", \
             api_version=API_VERSION_TYPED_FFI, backend_config={{uplo = 76 : ui8}}\n  ROOT g = s32[4] get-tuple-element(l), index=1\n"
        );
        let text = parse(&module(&call));
        let given = arguments(&text, &Random::new(3), false);
        let expected = interpreted(&text, &given);
        let direct = module(
            &call
                .replace("  l = (", "  ROOT l = (")
                .replace("  ROOT g = s32[4] get-tuple-element(l), index=1\n", ""),
        );
        let got = called(&parse(&direct), &given, &[], 2);
        assert_eq!(got[1], expected[0], "{ty}");
    }
}

#[test]
fn triangular_systems() {
    for (seed, (ty, part, letter)) in (1..).zip(TYPES) {
        for (batch, n, others) in [(3, 1, 4), (2, 7, 5), (1, 60, 3), (1, 100, 33), (2, 30, 300), (2, 5, 0)] {
            for (case, (left, lower, unit)) in
                [(true, true, false), (true, false, true), (false, true, true), (false, false, false)]
                    .into_iter()
                    .enumerate()
            {
                let transpose = ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"][(case + n) % 3];
                let (side, uplo, diag, trans) = (
                    if left { 76 } else { 82 },
                    if lower { 76 } else { 85 },
                    if unit { 85 } else { 78 },
                    [78, 84, 67][(case + n) % 3],
                );
                let b = if left { format!("{batch},{n},{others}") } else { format!("{batch},{others},{n}") };
                // A small triangle and a large diagonal: the solution does not grow.
                let head = positive(ty, part, batch, n);
                let scaled = if unit {
                    let number = if ty == part { format!("{}", 9 * n) } else { format!("({}, 0)", 9 * n) };
                    format!(
                        "  h = {ty}[] constant({number})\n  hb = {ty}[{batch},{n},{n}] broadcast(h), dimensions={{}}\n  m = {ty}[{batch},{n},{n}] divide(p, hb)\n"
                    )
                } else {
                    format!("  m = {ty}[{batch},{n},{n}] copy(p)\n")
                };
                let right = format!("  b = {ty}[{b}] parameter(1)\n");
                let own = format!(
                    "  ROOT o = {ty}[{b}] triangular-solve(m, b), left_side={left}, lower={lower}, unit_diagonal={unit}, transpose_a={transpose}\n"
                );
                close(&module(&format!("{head}{scaled}{right}{own}")), seed, 400.0);
                let call = format!(
                    "  ROOT o = {ty}[{b}] custom-call(m, b), custom_call_target=\"lapack_{letter}trsm_ffi\", api_version=API_VERSION_TYPED_FFI, \
                     backend_config={{diag = {diag} : ui8, side = {side} : ui8, trans_x = {trans} : ui8, uplo = {uplo} : ui8}}\n"
                );
                close(&module(&format!("{head}{scaled}{right}{call}")), seed, 400.0);
            }
        }
    }
}

#[test]
fn elimination_and_reflectors() {
    for (seed, (ty, part, letter)) in (1..).zip(TYPES) {
        for (batch, m, n) in
            [(2, 1, 1), (2, 5, 5), (1, 9, 33), (1, 70, 40), (1, 40, 70), (1, 100, 100), (2, 0, 3), (2, 3, 0)]
        {
            let order = m.min(n);
            let dims = format!("{batch},{m},{n}");
            let head = uneven(ty, part, &dims);
            let lu = format!(
                "  ROOT l = ({ty}[{dims}], s32[{batch},{order}], s32[{batch}]) custom-call(a), custom_call_target=\"lapack_{letter}getrf_ffi\", frontend_attributes={{decompositions=\"library\"}}, \
                 api_version=API_VERSION_TYPED_FFI, backend_config={{}}\n"
            );
            close(&module(&format!("{head}{lu}")), seed, 4000.0);
            let qr = format!(
                "({ty}[{dims}], {ty}[{batch},{order}]) custom-call(a), custom_call_target=\"lapack_{letter}geqrf_ffi\", frontend_attributes={{decompositions=\"library\"}}, \
                 api_version=API_VERSION_TYPED_FFI, backend_config={{}}\n"
            );
            close(&module(&format!("{head}  ROOT l = {qr}")), seed, 4000.0);
            let name = if ty == part { "or" } else { "un" };
            let parts = format!(
                "{head}  l = {qr}  f = {ty}[{dims}] get-tuple-element(l), index=0\n  tau = {ty}[{batch},{order}] get-tuple-element(l), index=1\n"
            );
            let short = format!("{batch},{m},{order}");
            let form = format!(
                "  g = {ty}[{short}] slice(f), slice={{[0:{batch}], [0:{m}], [0:{order}]}}\n  \
                 ROOT r = {ty}[{short}] custom-call(g, tau), custom_call_target=\"lapack_{letter}{name}gqr_ffi\", frontend_attributes={{decompositions=\"library\"}}, \
                 api_version=API_VERSION_TYPED_FFI, backend_config={{}}\n"
            );
            close(&module(&format!("{parts}{form}")), seed, 4000.0);
            for (left, adjoint) in [(true, true), (true, false), (false, true), (false, false)] {
                let c = if left { format!("{batch},{m},6") } else { format!("{batch},6,{m}") };
                let multiply = format!(
                    "  o = {ty}[{c}] parameter(1)\n  ROOT r = {ty}[{c}] custom-call(f, tau, o), custom_call_target=\"lapack_{letter}{name}mqr_ffi\", frontend_attributes={{decompositions=\"library\"}}, \
                     api_version=API_VERSION_TYPED_FFI, backend_config={{left = {left}, transpose = {adjoint}}}\n"
                );
                close(&module(&format!("{parts}{multiply}")), seed, 4000.0);
            }
        }
    }
}

/// Of f64 and c128, in their own arithmetic: the interpreter's pivots, numbers close by; where equal elements
/// make rounding decide, its bits.
#[test]
fn pivots_in_doubt_are_the_interpreters() {
    for (seed, (ty, part, letter)) in (1..).zip(TYPES) {
        for (batch, m, n) in [(7, 5, 5), (3, 24, 30), (2, 40, 40), (4, 1, 3), (2, 3, 0)] {
            let order = m.min(n);
            let dims = format!("{batch},{m},{n}");
            let signs = if ty == part {
                format!("  g = {ty}[{dims}] sign(x)\n")
            } else {
                format!(
                    "  xr = {part}[{dims}] real(x)\n  gr = {part}[{dims}] sign(xr)\n  g = {ty}[{dims}] convert(gr)\n"
                )
            };
            // Every other matrix is of signs alone.
            let text = module(&format!(
                "{}{signs}{}  e = {ty}[{dims}] select(odd, a, g)\n  \
                 ROOT l = ({ty}[{dims}], s32[{batch},{order}], s32[{batch}]) custom-call(e), custom_call_target=\"lapack_{letter}getrf_ffi\", \
                 api_version=API_VERSION_TYPED_FFI, backend_config={{}}\n",
                uneven(ty, part, &dims),
                odd(&dims)
            ));
            close(&text, seed, 4000.0);
            let program = parse(&text);
            let given = arguments(&program, &Random::new(seed), false);
            let (got, expected) = (called(&program, &given, &[], 2), interpreted(&program, &given));
            let one = m * n;
            for i in 0..batch {
                let factors = |of: &[Buffer]| numbers(&of[0])[i * one..][..one].to_vec();
                // f32 is factored in f64, which is fast.
                if i % 2 == 0 || part == "f32" {
                    assert_eq!(factors(&got), factors(&expected), "{ty} {dims}: {i}");
                }
            }
            assert_eq!((&got[1], &got[2]), (&expected[1], &expected[2]), "{ty} {dims}");
        }
    }
}

/// Signs of reflectors that depend on rounding, and vectors of values that are the same, are the
/// interpreter's to the bit; of other matrices of f64 and c128 numbers are close by, signs the same.
#[test]
fn what_rounding_decides_is_the_interpreters() {
    for (seed, (ty, part, letter)) in (1..).zip(TYPES) {
        let hermitian = if ty == part { "sy" } else { "he" };
        for (batch, m, n) in [(5, 6, 6), (2, 30, 30), (3, 34, 29), (3, 8, 20), (2, 1, 3)] {
            let order = m.min(n);
            let (dims, ffi) = (format!("{batch},{m},{n}"), "api_version=API_VERSION_TYPED_FFI");
            let zero = if ty == part { "0" } else { "(0, 0)" };
            let one = if ty == part { "1" } else { "(1, 0)" };
            // Every other matrix has ones on its diagonal alone.
            let head = format!(
                "{}{}  on = pred[{dims}] compare(i, j), direction=EQ\n  \
                 z = {ty}[] constant({zero})\n  r = {ty}[] constant({one})\n  zb = {ty}[{dims}] broadcast(z), dimensions={{}}\n  ob = {ty}[{dims}] broadcast(r), dimensions={{}}\n  \
                 d = {ty}[{dims}] select(on, ob, zb)\n  e = {ty}[{dims}] select(odd, a, d)\n",
                uneven(ty, part, &dims),
                odd(&dims)
            );
            let mut calls = vec![
                format!(
                    "({ty}[{dims}], {ty}[{batch},{order}]) custom-call(e), custom_call_target=\"lapack_{letter}geqrf_ffi\", {ffi}, backend_config={{}}"
                ),
                format!(
                    "({ty}[{dims}], {part}[{batch},{order}], {ty}[{batch},{m},{order}], {ty}[{batch},{order},{n}], s32[{batch}]) custom-call(e), \
                     custom_call_target=\"lapack_{letter}gesdd_ffi\", {ffi}, backend_config={{mode = 83 : ui8}}"
                ),
            ];
            if m == n {
                calls.push(format!(
                    "({ty}[{dims}], {part}[{batch},{n}], s32[{batch}]) custom-call(e), custom_call_target=\"lapack_{letter}{hermitian}evd_ffi\", {ffi}, \
                     backend_config={{mode = 86 : ui8, uplo = 76 : ui8}}"
                ));
            }
            for call in calls {
                let text = module(&format!("{head}  ROOT l = {call}\n"));
                let program = parse(&text);
                let given = arguments(&program, &Random::new(seed), false);
                let (got, expected) = (called(&program, &given, &[], 2), interpreted(&program, &given));
                assert_eq!(got, called(&program, &given, &[], 1), "{ty} {call}");
                for (k, (got, expected)) in got.iter().zip(&expected).enumerate() {
                    let (Buffer::F32(_) | Buffer::F64(_) | Buffer::C64(_) | Buffer::C128(_)) = got else {
                        assert_eq!(got, expected, "{ty} {call}: {k}");
                        continue;
                    };
                    let (got, expected) = (numbers(got), numbers(expected));
                    let size = got.len() / batch;
                    for i in 0..batch {
                        let (got, expected) = (&got[i * size..][..size], &expected[i * size..][..size]);
                        let near = got.iter().zip(expected).all(|(x, y)| (x.0 - y.0).hypot(x.1 - y.1) < 1e-9);
                        let same = i % 2 == 0 || part == "f32";
                        assert!(if same { got == expected } else { near }, "{ty} {call}: {k} of {i}");
                    }
                }
            }
        }
    }
}

/// Elements as complex numbers in f64.
fn numbers(buffer: &Buffer) -> Vec<(f64, f64)> {
    match buffer {
        Buffer::F32(v) => v.iter().map(|&x| (f64::from(x), 0.0)).collect(),
        Buffer::F64(v) => v.iter().map(|&x| (x, 0.0)).collect(),
        Buffer::C64(v) => v.iter().map(|x| (f64::from(x.re), f64::from(x.im))).collect(),
        Buffer::C128(v) => v.iter().map(|x| (x.re, x.im)).collect(),
        other => panic!("{:?}", other.element_type()),
    }
}

/// The largest element of `a - u diag(s) v` for matrices of these sizes; v has `size` rows.
fn residual(
    a: &[(f64, f64)],
    u: &[(f64, f64)],
    s: &[(f64, f64)],
    v: &[(f64, f64)],
    (m, n): (usize, usize),
    of_u: usize,
) -> f64 {
    let mut worst = 0.0f64;
    for i in 0..m {
        for j in 0..n {
            let (mut re, mut im) = a[i * n + j];
            for (k, &(s, _)) in s.iter().enumerate() {
                let ((a, b), (c, d)) = (u[i * of_u + k], v[k * n + j]);
                re -= (a * c - b * d) * s;
                im -= (a * d + b * c) * s;
            }
            worst = worst.max(re.hypot(im));
        }
    }
    worst
}

/// Residuals, orthogonality by a second residual (`u u^H = 1`), and the interpreter's values.
#[test]
fn decompositions() {
    for (seed, (ty, part, letter)) in (1..).zip(TYPES) {
        let epsilon = if part == "f32" { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let n = 40;
        let head = positive(ty, part, 2, n);
        let name = if ty == part { "syevd" } else { "heevd" };
        for uplo in [76, 85] {
            let call = format!(
                "  ROOT l = ({ty}[2,{n},{n}], {part}[2,{n}], s32[2]) custom-call(p), custom_call_target=\"lapack_{letter}{name}_ffi\", frontend_attributes={{decompositions=\"library\"}}, \
                 api_version=API_VERSION_TYPED_FFI, backend_config={{mode = 86 : ui8, uplo = {uplo} : ui8}}\n"
            );
            let program = parse(&module(&format!("{head}{call}")));
            let given = arguments(&program, &Random::new(seed), false);
            let (got, expected) = (called(&program, &given, &[], 2), interpreted(&program, &given));
            let operand = operand(&program, &given);
            let largest = operand.iter().fold(0.0f64, |m, x| m.max(x.0.hypot(x.1)));
            let (z, w) = (numbers(&got[0]), numbers(&got[1]));
            for (w, e) in w.iter().zip(numbers(&expected[1])) {
                assert!((w.0 - e.0).abs() < 100.0 * epsilon * largest * n as f64, "{ty}: {w:?} {e:?}");
            }
            let z = &z[..n * n];
            let adjoint: Vec<_> = (0..n * n).map(|i| z[i % n * n + i / n]).map(|(a, b)| (a, -b)).collect();
            let off = residual(&operand, z, &w[..n], &adjoint, (n, n), n);
            assert!(off < 100.0 * epsilon * largest * n as f64, "{ty}: {off:e}");
            assert!(unitary(z, &adjoint, n) < 100.0 * epsilon * n as f64, "{ty}");
            assert_eq!(got[2], Buffer::S32(vec![0; 2]));
        }
        for (m, n) in [(40, 30), (30, 70), (33, 33)] {
            let order = m.min(n);
            let dims = format!("1,{m},{n}");
            for (mode, of_u, of_v) in [(65, m, n), (83, order, order), (78, m, n)] {
                let call = format!(
                    "  ROOT l = ({ty}[{dims}], {part}[1,{order}], {ty}[1,{m},{of_u}], {ty}[1,{of_v},{n}], s32[1]) custom-call(a), \
                     custom_call_target=\"lapack_{letter}gesdd_ffi\", frontend_attributes={{decompositions=\"library\"}}, api_version=API_VERSION_TYPED_FFI, backend_config={{mode = {mode} : ui8}}\n"
                );
                let program = parse(&module(&format!("{}{call}", uneven(ty, part, &dims))));
                let given = arguments(&program, &Random::new(seed), false);
                let (got, expected) = (called(&program, &given, &[], 2), interpreted(&program, &given));
                let operand = operand(&program, &given);
                let (s, u, vt) = (numbers(&got[1]), numbers(&got[2]), numbers(&got[3]));
                let limit = 100.0 * epsilon * s[0].0 * (m + n) as f64;
                for (s, e) in s.iter().zip(numbers(&expected[1])) {
                    assert!((s.0 - e.0).abs() < limit, "{ty}: {s:?} {e:?}");
                }
                if mode == 78 {
                    assert_eq!((&got[2], &got[3]), (&expected[2], &expected[3]), "{ty}");
                    continue;
                }
                let off = residual(&operand, &u, &s, &vt, (m, n), of_u);
                assert!(off < limit, "{ty} {m} {n} {mode}: {off:e}");
                let adjoint: Vec<_> =
                    (0..of_v * n).map(|i| vt[i % of_v * n + i / of_v]).map(|(a, b)| (a, -b)).collect();
                // Rows of vt, columns of u.
                if of_v == n {
                    assert!(unitary(&vt, &adjoint, n) < 100.0 * epsilon * n as f64, "{ty}");
                }
                if of_u == m {
                    let adjoint: Vec<_> =
                        (0..m * m).map(|i| u[i % m * m + i / m]).map(|(a, b)| (a, -b)).collect();
                    assert!(unitary(&u, &adjoint, m) < 100.0 * epsilon * m as f64, "{ty}");
                }
            }
        }
    }
}

/// How far `z z^H` is from 1.
fn unitary(z: &[(f64, f64)], adjoint: &[(f64, f64)], n: usize) -> f64 {
    let one: Vec<_> = (0..n * n).map(|i| (f64::from(u8::from(i % n == i / n)), 0.0)).collect();
    residual(&one, z, &vec![(1.0, 0.0); n], adjoint, (n, n), n)
}

/// The first operand of the root.
fn operand(program: &hlo::Module, given: &[Literal]) -> Vec<(f64, f64)> {
    let mut upto = program.clone();
    let operand = program.instr(program.root(program.entry())).operands()[0];
    upto.set_root(program.entry(), operand);
    numbers(&interpreted(&upto, given)[0])
}

/// An eigenvalue of what is not finite is NaN, and `info` says so, as the interpreter has it.
#[test]
fn what_is_not_finite_has_no_decomposition() {
    let text = module(
        "  x = f32[2,30,30] parameter(0)\n  ROOT l = (f32[2,30,30], f32[2,30], s32[2]) custom-call(x), custom_call_target=\"lapack_ssyevd_ffi\", frontend_attributes={decompositions=\"library\"}, \
         api_version=API_VERSION_TYPED_FFI, backend_config={mode = 86 : ui8, uplo = 76 : ui8}\n",
    );
    let program = parse(&text);
    let mut values = vec![1.0f32; 1800];
    values[31] = f32::INFINITY;
    let array = hlo::ArrayLiteral::new([2, 30, 30].into_iter().collect(), Buffer::F32(values)).unwrap();
    let given = [Literal::Array(array)];
    let (got, expected) = (called(&program, &given, &[], 2), interpreted(&program, &given));
    assert_eq!(got[2], expected[2]);
    let nans = |b: &Buffer| numbers(b).iter().map(|x| x.0.is_nan()).collect::<Vec<_>>();
    assert_eq!((nans(&got[0]), nans(&got[1])), (nans(&expected[0]), nans(&expected[1])));
}
