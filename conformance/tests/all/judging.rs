//! One policy for every tool: what an engine may do, how much may stay open, and that the tools agree about a
//! program.

use hlo::half::f16;
use hlo::{ArrayLiteral, Buffer, Dims};
use hlo_execution::element::Number;
use hlo_system::npz;
use libtest_mimic::Trial;

use crate::cli::{Dir, ends, err, hlo, json_lines, out};
use crate::function;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        function("judging/what differs and is undecided is never ok", undecided),
        function("judging/liberties are granted, taken away and named", liberties),
        function("judging/functions have budgets that can be set", budgets),
        function("judging/run, isolate and reduce agree", agreement),
        function("judging/a program is cut where bounds blow up", pieces),
        function("judging/denormal numbers that an engine flushes decide as zeros do", flushed),
        function("judging/bits of computed NaNs are the engine's", bits_of_nans),
        function("judging/what a compiler writes out decides as its steps do", written_out),
        function("judging/what comes from a wrong value is wrong", consequences),
        function("judging/options that are wrong say so", usage),
        function("judging/a finding remembers how it was judged", findings),
        function("judging/results without elements have no shares", nothing_to_compare),
        function("judging/a substitution whose sums may overflow", overflowing_substitution),
        function("judging/bits of integers that are open are open on all devices", open_bits),
    ]
}

pub(crate) fn array(values: Buffer) -> ArrayLiteral {
    ArrayLiteral::new(Dims::from_slice(&[values.len() as i64]), values).unwrap()
}

/// Results as a file.
fn recorded(d: &Dir, name: &str, results: &[ArrayLiteral]) -> String {
    let path = d.path(name);
    let named: Vec<(String, &ArrayLiteral)> =
        results.iter().enumerate().map(|(i, a)| (format!("out{i}"), a)).collect();
    npz::write(&path, &named).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Inputs as a file.
fn inputs(d: &Dir, arrays: &[ArrayLiteral]) -> String {
    let path = d.path("inputs.npz");
    let named: Vec<(String, &ArrayLiteral)> =
        arrays.iter().enumerate().map(|(i, a)| (format!("arg{i}"), a)).collect();
    npz::write(&path, &named).unwrap();
    path.to_str().unwrap().to_owned()
}

/// This program with the platform that follows, as another program.
fn another(platform: &str) -> String {
    let hlo = env!("CARGO_BIN_EXE_hlo");
    format!(
        "exec:{hlo} run {{module}} --platform {platform} --reference-platform none --inputs {{inputs}} --output {{output}}"
    )
}

fn last(o: &std::process::Output) -> String {
    out(o).lines().last().unwrap_or_default().to_owned()
}

/// The quotient by, and a comparison with zero of, what may be flushed.
fn flushed() {
    let d = Dir::new();
    let file = d.file(
        "m.hlo",
        "HloModule m
ENTRY e {
  x = f32[3] parameter(0)
  r = f32[3] rsqrt(x)
  q = f32[3] rsqrt(r)
  z = f32[] constant(0)
  zs = f32[3] broadcast(z), dimensions={}
  c = pred[3] compare(x, zs), direction=EQ
  ROOT t = (f32[3], pred[3]) tuple(q, c)
}
",
    );
    let ins = inputs(&d, &[array(Buffer::F32(vec![1e-40, 1.0, 3e-41]))]);
    let run = |platform: &str, allow: &str| {
        hlo(&[
            "run",
            &file,
            "--inputs",
            &ins,
            "--save-mismatch",
            "none",
            "--platform",
            platform,
            "--allow",
            allow,
        ])
    };
    let flush = another("interpreter:flush");
    let o = run(&flush, "all");
    ends(&o, 0);
    assert_eq!(last(&o), "ok");
    assert!(out(&o).contains("explained 4 by another run that the liberties permit"), "{}", out(&o));
    let o = run(&flush, "none,contraction");
    ends(&o, 1);
    assert_eq!(last(&o), "mismatch");
    // Neither what the numbers give nor what zeros do.
    let q = array(Buffer::F32(vec![0.5, 1.0, 0.0]));
    let c = array(Buffer::Pred(vec![true, false, true]));
    let engine = format!("recorded:{}", recorded(&d, "out.npz", &[q, c]));
    let o = run(&engine, "all");
    ends(&o, 1);
    assert!(last(&o).starts_with("undecided: 1 element differs"), "{}", out(&o));
}

/// What looks at the bits of a NaN that is computed, by an engine whose NaNs are negative, as x86 gives them.
fn bits_of_nans() {
    let d = Dir::new();
    let file = d.file(
        "m.hlo",
        "HloModule m
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT p = pred[] compare(a, b), direction=LT, type=TOTALORDER
}
ENTRY e {
  x = f32[3] parameter(0)
  r = f32[3] sqrt(x)
  b = s32[3] bitcast-convert(r)
  c = pred[3] compare(r, x), direction=LT, type=TOTALORDER
  s = f32[3] sort(r), dimensions={0}, to_apply=less
  t = (f32[2], s32[2]) topk(r), k=2, largest=true
  i = s32[2] get-tuple-element(t), index=1
  ROOT o = (s32[3], pred[3], f32[3], s32[2]) tuple(b, c, s, i)
}
",
    );
    let ins = inputs(&d, &[array(Buffer::F32(vec![-6.0, 4.0, 9.0]))]);
    let run = |platform: &str, allow: &str| {
        let judged = ["--save-mismatch", "none", "--platform", platform, "--allow", allow];
        hlo(&[&["run", &file, "--inputs", &ins][..], &judged].concat())
    };
    let negative = another("interpreter:negative-nans");
    let o = run(&negative, "all");
    ends(&o, 0);
    assert_eq!(last(&o), "ok");
    let o = run(&negative, "none,contraction");
    ends(&o, 1);
    assert_eq!(last(&o), "mismatch");
    // The bits of a number, a number out of order, and a NaN that equals a number are wrong as before.
    let right = || {
        [
            Buffer::S32(vec![-4_194_304, 0x4000_0000, 0x4040_0000]),
            Buffer::Pred(vec![true, true, true]),
            Buffer::F32(vec![f32::NAN, 2.0, 3.0]),
            Buffer::S32(vec![2, 1]),
        ]
    };
    for (k, wrong) in [
        (None, Buffer::S32(vec![])),
        (Some(0), Buffer::S32(vec![0, 0x4000_0000, 0x4040_0000])),
        (Some(0), Buffer::S32(vec![-4_194_304, 0x4000_0001, 0x4040_0000])),
        (Some(1), Buffer::Pred(vec![true, false, true])),
    ] {
        let mut results = right();
        if let Some(k) = k {
            results[k] = wrong;
        }
        let results: Vec<ArrayLiteral> = results.into_iter().map(array).collect();
        let o = run(&format!("recorded:{}", recorded(&d, "out.npz", &results)), "all");
        assert_eq!(last(&o), if k.is_none() { "ok" } else { "mismatch" }, "{k:?}: {}", out(&o));
    }
}

/// Programs with what XLA:CPU gives for them, and with one element altered.
fn written_out() {
    let half = |x: &[f32]| array(Buffer::F16(x.iter().map(|&x| f16::from_f32(x)).collect()));
    let shaped = |dims: &[i64], a: ArrayLiteral| {
        ArrayLiteral::new(Dims::from_slice(dims), (*a.buffer).clone()).unwrap()
    };
    let f32s = |x: &[f32]| array(Buffer::F32(x.to_vec()));
    let c128s = |x: &[(f64, f64)]| {
        array(Buffer::C128(x.iter().map(|&(re, im)| hlo::num_complex::Complex::new(re, im)).collect()))
    };
    // The square of 300 overflows f16, and its mean less the square of the mean is no number.
    let normalization = (
        "HloModule m
ENTRY e {
  x = f16[1,2] parameter(0)
  s = f16[2] parameter(1)
  t = (f16[1,2], f16[2], f16[2]) batch-norm-training(x, s, s), epsilon=0.001, feature_index=1
  ROOT y = f16[1,2] get-tuple-element(t), index=0
}",
        vec![shaped(&[1, 2], half(&[300.0, 3.0])), half(&[1.5, 2.0])],
        shaped(&[1, 2], half(&[f32::NAN, 2.0])),
        shaped(&[1, 2], half(&[1.0, 2.0])),
    );
    // A pivot that is 0 is 0.5 - 0.70710677^2 step by step.
    let factorization = (
        "HloModule m
ENTRY e {
  x = f32[2,2] parameter(0)
  ROOT y = f32[2,2] cholesky(x), lower=true
}",
        vec![shaped(&[2, 2], f32s(&[0.5; 4]))],
        shaped(&[2, 2], f32s(&[0.70710677, 0.0, 0.70710677, 0.000_172_633_49])),
        shaped(&[2, 2], f32s(&[0.70710677, 0.0, 0.70710677, 0.5])),
    );
    // So of complex numbers, by the conjugate of the row above.
    let c64s = |x: [(f32, f32); 4]| {
        array(Buffer::C64(x.map(|(re, im)| hlo::num_complex::Complex::new(re, im)).to_vec()))
    };
    let upper =
        |last: f32| shaped(&[2, 2], c64s([(0.70710677, 0.0), (0.0, 0.70710677), (0.0, 0.0), (last, 0.0)]));
    let complex_factorization = (
        "HloModule m
ENTRY e {
  x = c64[2,2] parameter(0)
  ROOT y = c64[2,2] cholesky(x), lower=false
}",
        vec![shaped(&[2, 2], c64s([(0.5, 0.0), (0.0, 0.5), (0.0, -0.5), (0.5, 0.0)]))],
        upper(0.000_172_633_49),
        upper(0.5),
    );
    // The scatter combines (accumulator, source).
    let selection = (
        "HloModule m
f { a = s32[] parameter(0) b = s32[] parameter(1) x = s32[] xor(a, b) ROOT s = s32[] add(x, b) }
p { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE }
ENTRY e {
  x = s32[4] parameter(0)
  s = s32[2] parameter(1)
  i = s32[] constant(0)
  ROOT r = s32[4] select-and-scatter(x, s, i), window={size=2 stride=2}, select=p, scatter=f
}",
        vec![array(Buffer::S32(vec![1, 5, 7, 2])), array(Buffer::S32(vec![6, 9]))],
        array(Buffer::S32(vec![0, 12, 18, 0])),
        array(Buffer::S32(vec![0, 13, 18, 0])),
    );
    // The second element is the coefficient of i and of -i in the second result: its real part has no share
    // in it.
    let transform = (
        "HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  f = c64[3] fft(x), fft_type=RFFT, fft_length={4}
  ROOT r = f32[3] real(f)
}",
        vec![f32s(&[1.0, f32::INFINITY, 3.0, 2.0])],
        f32s(&[f32::INFINITY, -2.0, f32::NEG_INFINITY]),
        f32s(&[f32::INFINITY, -3.0, f32::NEG_INFINITY]),
    );
    // 2^-127 counts as zero in f32, whose reciprocal root f8e8m0fnu does not have.
    let scales = (
        "HloModule m
ENTRY e {
  x = f8e8m0fnu[2] parameter(0)
  r = f8e8m0fnu[2] sqrt(x)
  ROOT y = f32[2] convert(r)
}",
        vec![array(Buffer::F8E8M0FNU([2f64.powi(-127), 4.0].map(Number::from_f64).to_vec()))],
        f32s(&[f32::NAN, 2.0]),
        f32s(&[1.0, 2.0]),
    );
    // The square of the modulus overflows where the reciprocal is taken first; divided as they are they
    // are 1.
    let quotient = (
        "HloModule m
ENTRY e {
  x = c128[2] parameter(0)
  ROOT r = c128[2] divide(x, x)
}",
        vec![c128s(&[(3.75, f64::MAX), (8.987361434408772e268, -6.123503868361114e-9)])],
        c128s(&[(1.0, -0.0), (1.0, -3.0784218789458307e-294)]),
        c128s(&[(1.0, 1e-3), (1.0, -3.0784218789458307e-294)]),
    );
    // Bounds of a combiner that is not recognized, through operands and five indices, take more than a run of
    // it does.
    let of_floats = (
        "HloModule m
f { a = f32[] parameter(0) b = f32[] parameter(1) x = f32[] minimum(a, b) ROOT s = f32[] subtract(x, b) }
p { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE }
ENTRY e {
  x = f32[1,1,1,2,4] parameter(0)
  s = f32[1,1,1,2,3] parameter(1)
  i = f32[] constant(1)
  y = f32[1,1,1,2,4] select-and-scatter(x, s, i), window={size=1x1x1x1x2}, select=p, scatter=f
  ROOT r = f32[8] reshape(y)
}",
        vec![
            shaped(&[1, 1, 1, 2, 4], f32s(&[0.0, -2.0, 3.0, 1.0, 5.0, 4.0, 6.0, 7.0])),
            shaped(&[1, 1, 1, 2, 3], f32s(&[-2.0, 2.0, 4.0, 3.0, 1.0, -1.0])),
        ],
        f32s(&[0.0, 1.0, -5.0, 1.0, -2.0, 1.0, 0.0, 0.0]),
        f32s(&[0.0, 1.0, -5.0, 1.0, -2.0, 1.0, 0.0, 9.0]),
    );
    // In f16 the root of 1.001 leaves 1 - 3.5 a tie, which is -2 in f4e2m1fn.
    let quarter = |x: f64| array(Buffer::F4E2M1FN([x].map(Number::from_f64).to_vec()));
    let narrow = (
        "HloModule m
ENTRY e {
  x = f4e2m1fn[1] parameter(0)
  o = f4e2m1fn[1] parameter(1)
  m = f4e2m1fn[1] parameter(2)
  ROOT r = f4e2m1fn[1] batch-norm-inference(x, x, o, m, x), epsilon=0.001, feature_index=0
}",
        vec![quarter(1.0), quarter(-3.0), quarter(0.5)],
        quarter(-2.0),
        quarter(6.0),
    );
    // Row by row (1, 2, 3, 4) it is 88; column by column (1, 3, 2, 4) 84.
    let windows = (
        "HloModule m
f { a = u32[] parameter(0) b = u32[] parameter(1) x = u32[] multiply(a, b) ROOT s = u32[] add(x, b) }
ENTRY e {
  x = u32[2,2] parameter(0)
  i = u32[] constant(1)
  y = u32[1,1] reduce-window(x, i), window={size=2x2}, to_apply=f
  ROOT r = u32[1] reshape(y)
}",
        vec![shaped(&[2, 2], array(Buffer::U32(vec![1, 2, 3, 4])))],
        array(Buffer::U32(vec![84])),
        array(Buffer::U32(vec![85])),
    );
    // The inverse has a zero that an infinity on the right is multiplied by.
    let system = (
        "HloModule m
ENTRY e {
  a = f32[2,2] parameter(0)
  b = f32[2,1] parameter(1)
  x = f32[2,1] triangular-solve(a, b), left_side=true, lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE
  ROOT r = f32[2] reshape(x)
}",
        vec![
            shaped(&[2, 2], f32s(&[1.0, 0.0, 0.5, 1.0])),
            shaped(&[2, 1], f32s(&[2.0, f32::INFINITY])),
        ],
        f32s(&[f32::NAN, f32::INFINITY]),
        f32s(&[3.0, f32::INFINITY]),
    );
    // Step by step in their type the sums leave it; in a wider one the last is -192.
    let down: Vec<f64> =
        [16, 15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10, 10, 9, 9, 8].map(|x| -f64::from(x)).into();
    let steps = (
        "HloModule m
f { a = f8e4m3fnuz[] parameter(0) b = f8e4m3fnuz[] parameter(1) ROOT s = f8e4m3fnuz[] add(a, b) }
ENTRY e {
  x = f8e4m3fnuz[1,16] parameter(0)
  i = f8e4m3fnuz[] constant(0)
  y = f8e4m3fnuz[1] reduce(x, i), dimensions={1}, to_apply=f
  ROOT r = f32[1] convert(y)
}",
        vec![shaped(&[1, 16], array(Buffer::F8E4M3FNUZ(down.into_iter().map(Number::from_f64).collect())))],
        f32s(&[f32::NAN]),
        f32s(&[-100.0]),
    );
    // a + 2b of 1 to 40 is twice their sum; in windows of 32, four times that.
    let blocks = (
        "HloModule m
f { a = u32[] parameter(0) b = u32[] parameter(1) s = u32[] add(a, b) ROOT t = u32[] add(s, b) }
ENTRY e {
  x = u32[40] parameter(0)
  i = u32[] constant(0)
  y = u32[] reduce(x, i), dimensions={0}, to_apply=f
  ROOT r = u32[1] reshape(y)
}",
        vec![array(Buffer::U32((1..=40).collect()))],
        array(Buffer::U32(vec![3280])),
        array(Buffer::U32(vec![3281])),
    );
    // The first product is denormal, and a zero beside an infinity.
    let partial = (
        "HloModule m
f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT m = f32[] multiply(b, a) }
ENTRY e {
  x = f32[3] parameter(0)
  i = f32[] constant(1)
  ROOT r = f32[1] reduce-window(x, i), window={size=3}, to_apply=f
}",
        vec![f32s(&[1e-4, 1e-36, f32::INFINITY])],
        f32s(&[f32::NAN]),
        f32s(&[1.0]),
    );
    // In f16, with the reciprocal of 12, the variance is 2.5; it is 2.67.
    let rows = [18.0, 20.0, 22.0].iter().flat_map(|&x| [x; 4]).map(Number::from_f64).collect();
    let means = (
        "HloModule m
ENTRY e {
  x = f8e4m3b11fnuz[12,1] parameter(0)
  s = f8e4m3b11fnuz[1] constant({1.25})
  o = f8e4m3b11fnuz[1] constant({-2.5})
  t = (f8e4m3b11fnuz[12,1], f8e4m3b11fnuz[1], f8e4m3b11fnuz[1]) batch-norm-training(x, s, o), epsilon=0.001, feature_index=1
  y = f8e4m3b11fnuz[12,1] get-tuple-element(t), index=0
  z = f8e4m3b11fnuz[1,1] slice(y), slice={[11:12], [0:1]}
  w = f32[1,1] convert(z)
  ROOT r = f32[1] reshape(w)
}",
        vec![shaped(&[12, 1], array(Buffer::F8E4M3B11FNUZ(rows)))],
        f32s(&[-0.9375]),
        f32s(&[0.5]),
    );
    // The other triangle has zeros, which the type lacks.
    let two = [1.0, 1.0, 1.0, 2.0].map(Number::from_f64).to_vec();
    let triangle = (
        "HloModule m
ENTRY e {
  x = f8e8m0fnu[2,2] parameter(0)
  l = f8e8m0fnu[2,2] cholesky(x), lower=true
  y = f8e8m0fnu[4] reshape(l)
  ROOT r = f32[4] convert(y)
}",
        vec![shaped(&[2, 2], array(Buffer::F8E8M0FNU(two)))],
        f32s(&[f32::NAN; 4]),
        f32s(&[4.0, f32::NAN, 4.0, 4.0]),
    );
    // The square of 300 overflows f16, before the zero or after it.
    let overflow = (
        "HloModule m
f { a = f16[] parameter(0) b = f16[] parameter(1) ROOT m = f16[] multiply(a, b) }
ENTRY e {
  x = f16[3,2] parameter(0)
  i = f16[] constant(0)
  ROOT r = f16[2] reduce(x, i), dimensions={0}, to_apply=f
}",
        vec![shaped(&[3, 2], half(&[300.0, 2.0, 300.0, 3.0, 2.0, 5.0]))],
        half(&[f32::NAN, 0.0]),
        half(&[1.0, 0.0]),
    );
    // The imaginary part of frequency 0 has no effect, that of frequency 1 has.
    let to_real = (
        "HloModule m
ENTRY e {
  x = c128[3] parameter(0)
  f = f64[4] fft(x), fft_type=IRFFT, fft_length={4}
  ROOT r = f32[4] convert(f)
}",
        vec![c128s(&[(4.0, f64::INFINITY), (0.0, 0.0), (0.0, f64::NAN)])],
        f32s(&[1.0; 4]),
        f32s(&[1.0, 1.0, 1.5, 1.0]),
    );
    // Where the factor of an infinite part is 0 the result is finite.
    let to_real_by_parts = (
        "HloModule m
ENTRY e {
  x = c64[3] parameter(0)
  ROOT f = f32[4] fft(x), fft_type=IRFFT, fft_length={4}
}",
        vec![array(Buffer::C64(
            [(4.0, 0.0), (0.0, f32::INFINITY), (0.0, 0.0)]
                .map(|(re, im)| hlo::num_complex::Complex::new(re, im))
                .to_vec(),
        ))],
        f32s(&[1.0, f32::NEG_INFINITY, 1.0, f32::INFINITY]),
        f32s(&[2.0, f32::NEG_INFINITY, 1.0, f32::INFINITY]),
    );
    for (text, arguments, given, altered) in [
        overflow,
        to_real_by_parts,
        to_real,
        steps,
        blocks,
        partial,
        means,
        triangle,
        system,
        normalization,
        factorization,
        complex_factorization,
        selection,
        transform,
        scales,
        quotient,
        of_floats,
        narrow,
        windows,
    ] {
        let d = Dir::new();
        let file = d.file("m.hlo", text);
        let ins = inputs(&d, &arguments);
        let run = |results: ArrayLiteral, allow: &str| {
            let engine = format!("recorded:{}", recorded(&d, "out.npz", &[results]));
            let arguments =
                ["run", &file, "--inputs", &ins, "--save-mismatch", "none", "--platform", &engine];
            hlo(&[&arguments[..], &["--allow", allow]].concat())
        };
        let o = run(given.clone(), "all");
        ends(&o, 0);
        assert_eq!(last(&o), "ok", "{text}\n{}", out(&o));
        let o = run(altered, "all");
        ends(&o, 1);
        assert_ne!(last(&o), "ok", "{text}\n{}", out(&o));
    }
}

/// Judges results of a program of one argument: each with what the last line is to say.
pub(crate) fn judged(text: &str, argument: ArrayLiteral, results: Vec<(Vec<ArrayLiteral>, &str)>) {
    let d = Dir::new();
    let file = d.file("m.hlo", text);
    let ins = inputs(&d, &[argument]);
    for (results, verdict) in results {
        let engine = format!("recorded:{}", recorded(&d, "out.npz", &results));
        let o = hlo(&["run", &file, "--inputs", &ins, "--save-mismatch", "none", "--platform", &engine]);
        assert_eq!(last(&o), verdict, "{text}\n{results:?}\n{}", out(&o));
    }
}

/// `and` of integers is not monotone: of 1 that may be 0 and of 0 that may be 1 it is either.
fn open_bits() {
    let d = Dir::new();
    let file = d.file(
        "m.hlo",
        "HloModule m, replica_count=2
f { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] and(a, b) }
ENTRY e {
  x = f32[1] parameter(0)
  z = f32[1] constant({0})
  c = pred[1] compare(z, x), direction=GE
  i = s32[1] convert(c)
  ROOT r = s32[1] all-reduce(i), replica_groups={}, to_apply=f
}
",
    );
    let path = d.path("inputs.npz");
    let (a, b) = (array(Buffer::F32(vec![-1e-40])), array(Buffer::F32(vec![1e-40])));
    npz::write(&path, &[("d0.arg0".to_owned(), &a), ("d1.arg0".to_owned(), &b)]).unwrap();
    let ins = path.to_str().unwrap();
    let open = ["--max-undecided", "100%", "--save-mismatch", "none"];
    let run = ["run", &file, "--inputs", ins, "--platform", "interpreter:flush"];
    ends(&hlo(&[&run[..], &open].concat()), 0);
}

/// A fold that may be done in any order says nothing of its result; of an operand that is wrong it is wrong
/// with it, of the right one it is not.
fn consequences() {
    let d = Dir::new();
    let file = d.file(
        "m.hlo",
        "HloModule m
f { a = s32[] parameter(0) b = s32[] parameter(1) p = s32[] multiply(a, b) ROOT r = s32[] subtract(p, b) }
ENTRY e {
  x = s32[4] parameter(0)
  one = s32[] constant(1)
  p = s32[6] pad(x, one), padding=2_0
  r = s32[] reduce(p, one), dimensions={0}, to_apply=f
  q = s32[] reduce(x, one), dimensions={0}, to_apply=f
  ROOT t = (s32[], s32[], s32[6]) tuple(r, q, p)
}
",
    );
    let ins = inputs(&d, &[array(Buffer::S32(vec![7, 5, 4, 3]))]);
    let run = |platform: &str| {
        let of = ["run", &file, "--inputs", &ins, "--save-mismatch", "none", "--allow", "all"];
        hlo(&[&of[..], &["--platform", platform]].concat())
    };
    let o = run(&another("faulty:pad-low-sign"));
    ends(&o, 1);
    assert_eq!(last(&o), "mismatch", "{}", out(&o));
    assert!(out(&o).contains("undecided 0"), "{}", out(&o));
    // Recorded results are of one program: nothing more can be asked.
    let results = [
        ArrayLiteral::new(Dims::from_slice(&[]), Buffer::S32(vec![12])).unwrap(),
        ArrayLiteral::new(Dims::from_slice(&[]), Buffer::S32(vec![13])).unwrap(),
        array(Buffer::S32(vec![1, 1, 7, 5, 4, 3])),
    ];
    let o = run(&format!("recorded:{}", recorded(&d, "out.npz", &results)));
    ends(&o, 1);
    assert!(last(&o).starts_with("undecided: 2 elements differ"), "{}", out(&o));
}

/// Ten tenths: 1 but for rounding, so that its integer part depends on the order of the sum.
const TENTHS: &str = "HloModule tenths

ENTRY e {
  a = f32[3,10] parameter(0)
  b = f32[10] parameter(1)
  d = f32[3] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = s32[3] convert(d)
}
";

fn undecided() {
    let d = Dir::new();
    let file = d.file("tenths.hlo", TENTHS);
    let mut rows = vec![0.1f32; 20];
    rows.extend([0.7f32; 10]);
    let a = ArrayLiteral::new(Dims::from_slice(&[3, 10]), Buffer::F32(rows)).unwrap();
    let ins = inputs(&d, &[a, array(Buffer::F32(vec![1.0; 10]))]);
    // The exact sum is above 1: one row is as the reference has it, one depends on rounding, and 7 is as
    // near.
    let engine = |values: &[i32]| {
        format!("recorded:{}", recorded(&d, "out.npz", &[array(Buffer::S32(values.to_vec()))]))
    };
    let run = |values: &[i32], more: &[&str]| {
        let engine = engine(values);
        hlo(&[&["run", &file, "--inputs", &ins, "--save-mismatch", "none", "--platform", &engine], more]
            .concat())
    };
    let o = run(&[1, 1, 7], &[]);
    ends(&o, 0);
    assert_eq!(last(&o), "ok");
    let o = run(&[1, 0, 7], &[]);
    ends(&o, 1);
    assert_eq!(
        last(&o),
        "undecided: 1 element differs and is not decided (0 allowed by --max-undecided)",
        "{}",
        out(&o)
    );
    assert!(
        out(&o)
            .contains("a decision hangs on rounding: the same bits if it falls alike, within 1.00e0 if not"),
        "{}",
        out(&o)
    );
    for (most, code) in [("1", 0), ("34%", 0), ("33%", 1), ("0%", 1)] {
        let o = run(&[1, 0, 7], &["--max-undecided", most]);
        ends(&o, code);
        assert!(last(&o).starts_with("undecided: 1 element differs"), "{}", out(&o));
    }
    // Further away than any rounding is wrong, whatever is allowed.
    let o = run(&[1, 3, 7], &["--max-undecided", "100%"]);
    ends(&o, 1);
    assert_eq!(last(&o), "mismatch");
}

const FMA: &str = "HloModule fma

ENTRY e {
  a = f32[2] parameter(0)
  b = f32[2] parameter(1)
  c = f32[2] parameter(2)
  m = f32[2] multiply(a, b)
  ROOT r = f32[2] add(m, c)
}
";

fn liberties() {
    let d = Dir::new();
    let file = d.file("fma.hlo", FMA);
    // (1 + 2^-12)^2 - 1: 2^-11 after two roundings, 2^-11 + 2^-24 after one.
    let x = 1.0 + f32::EPSILON * 2048.0;
    let [a, b, c] = [vec![x, 2.0], vec![x, 3.0], vec![-1.0, 1.0]].map(|v| array(Buffer::F32(v)));
    let ins = inputs(&d, &[a, b, c]);
    let fused = array(Buffer::F32(vec![x.mul_add(x, -1.0), 7.0]));
    assert_ne!(x.mul_add(x, -1.0), x * x - 1.0);
    let engine = format!("recorded:{}", recorded(&d, "out.npz", &[fused]));
    let run = |more: &[&str]| {
        hlo(&[&["run", &file, "--inputs", &ins, "--save-mismatch", "none", "--platform", &engine], more]
            .concat())
    };
    let o = run(&[]);
    ends(&o, 0);
    let granted = "  granted  contraction, excess-precision, flush-denormals, narrow-accumulator, reorder-regions, decompositions, reciprocals, one-term-sums, affine-batch-norm, nan-bits, initial-values, functions of xla-cpu (`--allow none` grants none)";
    assert!(out(&o).contains(granted), "{}", out(&o));
    ends(&run(&["--allow", "none"]), 1);
    ends(&run(&["--allow", "none,flush-denormals"]), 1);
    let o = run(&["--allow", "none,contraction"]);
    ends(&o, 0);
    assert!(out(&o).contains("  granted  contraction ("), "{}", out(&o));
    let json = run(&["--json", "--allow", "none,contraction"]);
    assert_eq!(json_lines(&json)[0]["comparison"]["liberties"], "contraction");
    // Our own compiler has none, unless it is given some.
    let o =
        hlo(&["run", &file, "--inputs", &ins, "--platform", "interpreter:fma", "--save-mismatch", "none"]);
    ends(&o, 0);
    let o = hlo(&[
        "run",
        &file,
        "--inputs",
        &ins,
        "--platform",
        "interpreter:fma",
        "--allow",
        "none",
        "--save-mismatch",
        "none",
    ]);
    ends(&o, 1);
}

const TANH: &str = "HloModule m

ENTRY e {
  x = f32[64] parameter(0)
  t = f32[64] tanh(x)
  c = f32[] constant(1)
  b = f32[64] broadcast(c), dimensions={}
  ROOT s = f32[64] subtract(t, b)
}
";

fn budgets() {
    let d = Dir::new();
    let file = d
        .file("t.hlo", "HloModule t\n\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT t = f32[2] tanh(x)\n}\n");
    let ins = inputs(&d, &[array(Buffer::F32(vec![0.5, -0.25]))]);
    let exact = [0.5f32, -0.25].map(|x| f64::from(x).tanh() as f32);
    let off = |ulps: u32| {
        let values = vec![f32::from_bits(exact[0].to_bits() + ulps), exact[1]];
        format!("recorded:{}", recorded(&d, &format!("{ulps}.npz"), &[array(Buffer::F32(values))]))
    };
    let run = |ulps: u32, more: &[&str]| {
        let engine = off(ulps);
        let o =
            hlo(&[&["run", &file, "--inputs", &ins, "--save-mismatch", "none", "--platform", &engine], more]
                .concat());
        o.status.code()
    };
    assert_eq!(run(3, &[]), Some(0), "what XLA on the CPU may do");
    assert_eq!(run(200, &[]), Some(1));
    assert_eq!((run(2, &["--functions", "table"]), run(3, &["--functions", "table"])), (Some(0), Some(1)));
    assert_eq!((run(7, &["--ulp", "tanh=7"]), run(8, &["--ulp", "tanh=7"])), (Some(0), Some(1)));
    assert_eq!(run(1, &["--ulp", "log=9,tanh=0"]), Some(1), "a number may be less than the table's");
    assert_eq!(run(3, &["--allow", "none"]), Some(1), "budgets are among what is taken away");
}

fn agreement() {
    let d = Dir::new();
    let file = d.file("tanh.hlo", TANH);
    let engine = another("interpreter:ulp-up");
    let reduced = d.path("reduced");
    for (more, fails) in
        [(&[][..], false), (&["--ulp", "tanh=0"][..], true), (&["--ulp", "tanh=1"][..], false)]
    {
        let with = |args: &[&str]| hlo(&[args, more].concat());
        let run = with(&["run", &file, "--platform", &engine, "--save-mismatch", "none"]);
        ends(&run, i32::from(fails));
        let isolate = with(&["isolate", &file, "--platform", &engine]);
        ends(&isolate, i32::from(fails));
        let engines = format!("interpreter,{engine}");
        let out_dir = reduced.join(format!("{}", more.len()) + more.last().unwrap_or(&""));
        let reduce = with(&[
            "reduce",
            &file,
            "--engines",
            &engines,
            "--out",
            out_dir.to_str().unwrap(),
            "--repeat",
            "1",
        ]);
        ends(&reduce, i32::from(!fails));
        if fails {
            let text = out(&isolate);
            let blame = text.lines().position(|l| l.starts_with("  blame    tanh (e.t)")).unwrap();
            assert_eq!(blame, 2, "it comes right after the verdict:\n{text}");
            assert!(out(&reduce).contains("tanh(p0)"), "{}", out(&reduce));
        } else {
            assert!(
                !out(&isolate).contains("blame") && out(&isolate).contains("  whole    ok"),
                "{}",
                out(&isolate)
            );
            assert!(err(&reduce).contains("does not fail"), "{}", err(&reduce));
        }
    }
}

/// A sine of large sums: what is left of the bounds of the sums says nothing of it.
const SINES: &str = "HloModule sines

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

inner {
  d = f32[19] parameter(0)
  c = f32[] constant(3e7)
  b = f32[19] broadcast(c), dimensions={}
  x = f32[19] multiply(d, b)
  s = f32[19] sine(x)
  z = f32[] constant(0)
  zb = f32[19] broadcast(z), dimensions={}
  p = pred[19] compare(s, zb), direction=GT
  q = f32[19] select(p, s, zb)
  i = f32[] constant(7)
  ROOT r = f32[] reduce(q, i), dimensions={0}, to_apply=add
}

ENTRY e {
  w = f32[19,100] parameter(0)
  v = f32[100] parameter(1)
  d = f32[19] dot(w, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[] call(d), to_apply=inner
}
";

fn pieces() {
    let d = Dir::new();
    let file = d.file("sines.hlo", SINES);
    let run = |platform: &str| {
        let engine = another(platform);
        hlo(&["run", &file, "--platform", &engine, "--save-mismatch", "none"])
    };
    let o = run("interpreter:reversed");
    ends(&o, 0);
    let text = out(&o);
    assert!(
        text.contains("  pieces   the program cut at ") && text.contains("every difference is explained"),
        "{text}"
    );
    assert_eq!(last(&o), "ok");
    // A fault behind the cut is found, which the bounds over the whole program would never show.
    let o = run("faulty:reduce-init-dropped");
    ends(&o, 1);
    assert!(out(&o).contains("WRONG at a reduce") && last(&o) == "mismatch", "{}", out(&o));
}

fn usage() {
    let d = Dir::new();
    let file = d.file("tanh.hlo", TANH);
    for (more, message) in [
        (["--allow", "contractions"], "did you mean `contraction`?"),
        (["--functions", "xla"], "there is no library of functions `xla`"),
        (["--ulp", "tanh"], "is not FUNCTION=N"),
        (["--ulp", "tanhh=3"], "did you mean `tanh`?"),
        (["--ulp", "dot=3"], "there is no elementary function `dot`"),
        (["--ulp", "tanh=70000"], "the number of ulp is 0 to 65534"),
        (
            ["--max-undecided", "0.01"],
            "neither a count of elements, such as 3, nor a share of them, such as 0.1%",
        ),
    ] {
        for command in ["run", "isolate", "reduce"] {
            let engines: &[&str] = match command {
                "reduce" => &["--engines", "interpreter,passes:default"],
                _ => &["--platform", "passes:default"],
            };
            let o = hlo(&[&[command, &file], engines, &more].concat());
            ends(&o, 2);
            assert!(err(&o).contains(message), "{command}: {}", err(&o));
        }
    }
}

fn findings() {
    let d = Dir::new();
    let file = d.file("tanh.hlo", TANH);
    let found = d.path("found");
    let folder = found.to_str().unwrap();
    let engine = "interpreter:ulp-up";
    let o = hlo(&["run", &file, "--platform", engine, "--ulp", "tanh=0", "--save-mismatch", folder]);
    ends(&o, 1);
    let saved = std::fs::read_dir(&found).unwrap().next().unwrap().unwrap().path();
    let saved = saved.to_str().unwrap();
    for command in ["run", "isolate"] {
        ends(&hlo(&[command, saved]), 1);
        ends(&hlo(&[command, saved, "--ulp", "tanh=1"]), 0);
    }
}

fn nothing_to_compare() {
    let d = Dir::new();
    let text = "HloModule m\n\nENTRY e {\n  x = f32[0,3] parameter(0)\n  ROOT r = f32[0,3] negate(x)\n}\n";
    let file = d.file("m.hlo", text);
    let o = hlo(&["run", &file]);
    ends(&o, 0);
    assert!(out(&o).contains(": 0 elements") && !out(&o).contains('%'), "{}", out(&o));
    assert_eq!(last(&o), "ok");
    let npz = d.path("out.npz");
    let npz = npz.to_str().unwrap();
    ends(&hlo(&["run", &file, "--output", npz]), 0);
    let o = hlo(&["run", &file, "--expected", npz]);
    ends(&o, 0);
    assert!(!out(&o).contains('%'), "{}", out(&o));
}

/// The last unknown is `3e38 + 3e38 - 3e38`: exact arithmetic gives a number, arithmetic of the type an
/// infinity, and a solver that subtracts before it adds a number again.
fn overflowing_substitution() {
    let d = Dir::new();
    let program = d.file(
        "solve.hlo",
        "HloModule solve\n\nENTRY e {\n  a = f32[3,3] parameter(0)\n  b = f32[3,1] parameter(1)\n  ROOT x = f32[3,1] triangular-solve(a, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE\n}\n",
    );
    let big = 3e38;
    let of = |dims: &[i64], values: &[f32]| {
        ArrayLiteral::new(Dims::from_slice(dims), Buffer::F32(values.to_vec())).unwrap()
    };
    let matrix = of(&[3, 3], &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, -1.0, 1.0, 1.0]);
    let given = inputs(&d, &[matrix, of(&[3, 1], &[big; 3])]);
    for (third, verdict) in [(f32::INFINITY, "undecided"), (big, "ok")] {
        let results = recorded(&d, "out.npz", &[of(&[3, 1], &[big, big, third])]);
        let platform = format!("recorded:{results}");
        let o =
            hlo(&["run", &program, "--inputs", &given, "--platform", &platform, "--save-mismatch", "none"]);
        assert!(last(&o).starts_with(verdict), "{}", out(&o));
    }
}
