//! Convolutions against the interpreter.

use std::num::NonZeroU32;

use hlo::ElementType;
use hlo_library_base::configuration::Configuration;
use hlo_library_base::isa::Isa;

use crate::dot::tests::{Floats, Random, check, interpret, magnitudes, parse, random, run, run_prepared};

/// A convolution with a random window, and dimensions in a random order.
struct Case {
    lhs: Vec<usize>,
    rhs: Vec<usize>,
    out: Vec<usize>,
    attrs: String,
    terms: usize,
}

fn shape(ty: &str, dims: &[usize]) -> String {
    let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
    format!("{ty}[{}]", dims.join(","))
}

fn join(list: &[String]) -> String {
    list.join("x")
}

/// Sizes in a random order, with the labels of that order.
fn shuffled(parts: &[(char, usize)], keep: bool, r: &mut Random) -> (Vec<usize>, String) {
    let mut parts = parts.to_vec();
    if !keep {
        for i in (1..parts.len()).rev() {
            parts.swap(i, r.below(i + 1));
        }
    }
    (parts.iter().map(|p| p.1).collect(), parts.iter().map(|p| p.0).collect())
}

impl Case {
    fn random(r: &mut Random, rank: usize, largest: usize, channels: usize) -> Case {
        Case::of_kind(r, rank, largest, channels, None)
    }

    /// `Some`: windows nearly as large as inputs (or small ones) of many channels, features and examples.
    fn of_kind(r: &mut Random, rank: usize, largest: usize, channels: usize, gradient: Option<bool>) -> Case {
        loop {
            let mut lists: [Vec<String>; 6] = Default::default();
            // The verifier refuses a padded input of negative size: padding that cuts more than there is.
            let mut impossible = false;
            let (mut input, mut kernel, mut output) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..rank {
                let (n, k) = match gradient {
                    Some(true) => (4 + r.below(largest), 4 + r.below(largest)),
                    Some(false) => (4 + r.below(largest), 1 + r.below(3)),
                    None => (1 + r.below(largest), 1 + r.below(4)),
                };
                let plain = r.below(3) > 0;
                let small = |r: &mut Random, n: usize| if plain { 1 } else { 1 + r.below(n) };
                let (stride, base, dilate) = (small(r, 3), small(r, 3), small(r, 2));
                let (low, high) = (r.below(5) as i64 - 1, r.below(5) as i64 - 1);
                let slack = ((n - 1) * base + 1) as i64 + low + high - ((k - 1) * dilate + 1) as i64;
                lists[0].push(k.to_string());
                lists[1].push(stride.to_string());
                lists[2].push(format!("{low}_{high}"));
                lists[3].push(base.to_string());
                lists[4].push(dilate.to_string());
                lists[5].push(r.below(2).to_string());
                let padded = ((n - 1) * base + 1) as i64 + low + high;
                impossible |= padded < 0;
                let out = if padded > 0 && slack >= 0 { slack as usize / stride + 1 } else { 0 };
                input.push(n);
                kernel.push(k);
                output.push(out);
            }
            if impossible || output.contains(&0) && (r.below(4) > 0 || gradient.is_some()) {
                continue;
            }
            let groups = 1 + r.below(3);
            let (feature_groups, batch_groups) = [(1, 1), (groups, 1), (1, groups)][r.below(3)];
            let (mut batch, mut c, mut f) = (1 + r.below(3), 1 + r.below(channels), 1 + r.below(channels));
            match gradient {
                Some(true) => (batch, f) = (8 + r.below(channels), 8 + r.below(channels)),
                Some(false) => (c, f) = (2 + r.below(channels), 8 + r.below(channels)),
                None => {}
            }
            let keep = r.below(2) == 0;
            let spatial = |sizes: &[usize]| -> Vec<(char, usize)> {
                sizes.iter().enumerate().map(|(i, &n)| (char::from(b'0' + i as u8), n)).collect()
            };
            let both = |first: (char, usize), spatial: Vec<(char, usize)>, last: (char, usize)| {
                [vec![first], spatial, vec![last]].concat()
            };
            let all = feature_groups * batch_groups;
            let (lhs, l) = shuffled(
                &both(('b', batch * batch_groups), spatial(&input), ('f', c * feature_groups)),
                keep,
                r,
            );
            let mut k = spatial(&kernel);
            k.extend([('i', c), ('o', f * all)]);
            let (rhs, k) = shuffled(&k, keep, r);
            let (out, o) = shuffled(&both(('b', batch), spatial(&output), ('f', f * all)), keep, r);
            let window = if rank == 0 {
                String::new()
            } else {
                let [size, stride, pad, base, dilate, reversal] = lists.each_ref().map(|list| join(list));
                format!(
                    "window={{size={size} stride={stride} pad={pad} lhs_dilate={base} rhs_dilate={dilate} rhs_reversal={reversal}}}, "
                )
            };
            let attrs = format!(
                "{window}dim_labels={l}_{k}->{o}, feature_group_count={feature_groups}, batch_group_count={batch_groups}"
            );
            return Case { lhs, rhs, out, attrs, terms: c * kernel.iter().product::<usize>() };
        }
    }

    fn text(&self, lhs: &str, rhs: &str, out: &str) -> String {
        let (l, r, o) = (shape(lhs, &self.lhs), shape(rhs, &self.rhs), shape(out, &self.out));
        format!(
            "HloModule m\n\nENTRY e {{\n  a = {l} parameter(0)\n  b = {r} parameter(1)\n  ROOT d = {o} convolution(a, b), {}\n}}\n",
            self.attrs
        )
    }

    fn check(&self, lhs: ElementType, rhs: ElementType, out: ElementType, floats: Floats, r: &mut Random) {
        let args = [random(lhs, &self.lhs, floats, r), random(rhs, &self.rhs, floats, r)];
        check(&self.text(lhs.name(), rhs.name(), out.name()), &args, self.terms, || {
            interpret(&parse(&self.text("f64", "f64", "f64")), &[magnitudes(&args[0]), magnitudes(&args[1])])
        });
    }
}

#[test]
fn random_windows() {
    let mut r = Random(11);
    for i in 0..120 {
        let floats = [Floats::Plain, Floats::Special][i % 2];
        let ty = ElementType::F32;
        Case::random(&mut r, i % 4, 7, 5).check(ty, ty, ty, floats, &mut r);
    }
}

#[test]
fn all_types() {
    let mut r = Random(12);
    for &ty in ElementType::ALL {
        let other = ElementType::ALL[r.below(ElementType::ALL.len())];
        for (lhs, rhs, out) in [(ty, ty, ty), (ty, other, ty), (ty, ty, other)] {
            for _ in 0..2 {
                Case::random(&mut r, 2, 5, 3).check(lhs, rhs, out, Floats::Plain, &mut r);
            }
        }
    }
}

#[test]
fn larger() {
    use ElementType::{BF16, C64, F32, S8, S32};
    let mut r = Random(13);
    for i in 0..24 {
        let (ty, out) = [(F32, F32), (F32, F32), (BF16, F32), (S8, S32), (C64, C64), (BF16, BF16)][i % 6];
        Case::random(&mut r, 2, 20, 20).check(ty, ty, out, Floats::Plain, &mut r);
    }
}

#[test]
fn many_channels() {
    use ElementType::{BF16, F16, F32};
    let mut r = Random(15);
    for i in 0..24 {
        let (ty, out) = [(F32, F32), (F32, F32), (BF16, F32), (F16, F16)][i % 4];
        let floats = [Floats::Plain, Floats::Special][i / 4 % 2];
        let (rank, largest) = [(1, 16), (2, 4), (3, 1)][i % 3];
        Case::of_kind(&mut r, rank, largest, 6, Some(i % 2 == 0)).check(ty, ty, out, floats, &mut r);
    }
}

/// Few channels, and features, that are not contiguous; windows whose elements are far apart.
#[test]
fn planes_of_few_channels() {
    let mut r = Random(17);
    for c in [1, 2, 3, 4, 5] {
        for (input, size, out, window) in [
            ([19, 37], [3, 3], [19, 37], "size=3x3 pad=1_1x1_1"),
            ([20, 36], [8, 8], [4, 8], "size=8x8 stride=4x4"),
            ([9, 104], [2, 5], [8, 100], "size=2x5"),
            ([23, 40], [3, 4], [9, 16], "size=3x4 rhs_dilate=7x8"),
            ([1, 220], [1, 40], [1, 19], "size=1x40 stride=1x10"),
        ] {
            let case = Case {
                lhs: vec![2, c, input[0], input[1]],
                rhs: vec![35, c, size[0], size[1]],
                out: vec![2, 35, out[0], out[1]],
                attrs: format!("window={{{window}}}, dim_labels=bf01_oi01->bf01"),
                terms: size[0] * size[1] * c,
            };
            for ty in [ElementType::F32, ElementType::BF16] {
                case.check(ty, ty, ty, Floats::Plain, &mut r);
            }
        }
    }
}

/// Groups of a few channels and features, and vectors along the last axis.
#[test]
fn small_groups() {
    let mut r = Random(16);
    for (c, f) in [(1, 1), (4, 4), (1, 2), (2, 8), (16, 16), (3, 2), (2, 4)] {
        for (labels, order) in [("b01f_01io->b01f", [0, 1, 2, 3]), ("bf01_oi01->bf01", [0, 3, 1, 2])] {
            for (window, out) in [
                ("size=1x3 pad=0_0x1_1", [1, 35]),
                ("size=1x3 stride=1x2 pad=0_0x1_0", [1, 17]),
                ("size=2x3 pad=2_2x2_2 stride=1x3 rhs_dilate=2x1 rhs_reversal=1x0", [3, 13]),
            ] {
                let size: Vec<usize> =
                    window[5..].split(' ').next().unwrap().split('x').map(|n| n.parse().unwrap()).collect();
                let groups = 3;
                let ordered = |all: [usize; 4]| order.map(|d| all[d]).to_vec();
                let kernel = if order[1] == 1 {
                    vec![size[0], size[1], c, f * groups]
                } else {
                    vec![f * groups, c, size[0], size[1]]
                };
                let case = Case {
                    lhs: ordered([1, 1, 35, c * groups]),
                    rhs: kernel,
                    out: ordered([1, out[0], out[1], f * groups]),
                    attrs: format!("window={{{window}}}, dim_labels={labels}, feature_group_count={groups}"),
                    terms: size[0] * size[1] * c,
                };
                for (ty, floats) in [
                    (ElementType::F32, Floats::Plain),
                    (ElementType::F32, Floats::Special),
                    (ElementType::BF16, Floats::Plain),
                    (ElementType::F16, Floats::Special),
                ] {
                    case.check(ty, ty, ty, floats, &mut r);
                }
            }
        }
    }
}

#[test]
fn depthwise() {
    let mut r = Random(14);
    for (window, out, channels) in [
        ("size=3x3 pad=1_1x1_1", [2, 9, 11], 19),
        ("size=3x3 stride=2x2 pad=0_1x1_0", [2, 4, 5], 64),
        ("size=3x5 pad=2_2x2_2 rhs_dilate=2x1 rhs_reversal=1x0", [2, 9, 11], 5),
        ("size=1x20 pad=0_0x9_10", [2, 9, 11], 5),
        ("size=3x3 lhs_dilate=2x2 pad=2_1x2_1", [2, 18, 22], 19),
        ("size=2x4 lhs_dilate=3x2 pad=1_3x0_5 rhs_reversal=0x1", [2, 28, 23], 33),
    ] {
        let size: Vec<usize> =
            window[5..].split(' ').next().unwrap().split('x').map(|n| n.parse().unwrap()).collect();
        let case = Case {
            lhs: vec![2, 9, 11, channels],
            rhs: vec![size[0], size[1], 1, channels],
            out: [&out[..], &[channels]].concat(),
            attrs: format!("window={{{window}}}, dim_labels=b01f_01io->b01f, feature_group_count={channels}"),
            terms: size[0] * size[1],
        };
        for ty in [ElementType::F32, ElementType::BF16, ElementType::F16] {
            for floats in [Floats::Plain, Floats::Special] {
                case.check(ty, ty, ty, floats, &mut r);
            }
        }
    }
}

fn sizes(window: &str) -> Vec<usize> {
    window[5..].split(' ').next().unwrap().split('x').map(|n| n.parse().unwrap()).collect()
}

/// Vectors of positions, whichever dimension is the last one.
#[test]
fn few_features() {
    use ElementType::{BF16, F16, F32};
    let mut r = Random(17);
    for (i, (c, f)) in [(9, 3), (20, 1), (8, 7), (33, 5)].into_iter().enumerate() {
        for (labels, order) in [("b01f_01io->b01f", [0, 1, 2, 3]), ("bf01_oi01->bf01", [0, 3, 1, 2])] {
            for (window, out) in [
                ("size=2x3 pad=1_0x1_1", [3, 75]),
                ("size=1x1", [3, 75]),
                ("size=3x2 pad=0_1x9_0 stride=2x2", [1, 42]),
                ("size=2x4 pad=1_1x2_2 stride=1x3 rhs_dilate=2x2 rhs_reversal=0x1", [3, 25]),
            ] {
                let size = sizes(window);
                let ordered = |all: [usize; 4]| order.map(|d| all[d]).to_vec();
                let kernel =
                    if order[1] == 1 { vec![size[0], size[1], c, f] } else { vec![f, c, size[0], size[1]] };
                let case = Case {
                    lhs: ordered([1, 3, 75, c]),
                    rhs: kernel,
                    out: ordered([1, out[0], out[1], f]),
                    attrs: format!("window={{{window}}}, dim_labels={labels}"),
                    terms: size[0] * size[1] * c,
                };
                let ty = [F32, F32, BF16, F16][i % 4];
                for floats in [Floats::Plain, Floats::Special] {
                    case.check(ty, ty, ty, floats, &mut r);
                }
            }
        }
    }
}

/// Gradients of kernels over images of few channels.
#[test]
fn gradients_of_few_channels() {
    let mut r = Random(18);
    for (window, out, kernel) in [
        ("size=9x12 pad=1_1x1_1", [3, 3], [9, 12]),
        ("size=5x6 pad=2_2x2_2 rhs_dilate=2x2", [5, 6], [5, 6]),
        ("size=8x11 pad=0_0x0_0 stride=1x1", [2, 2], [8, 11]),
    ] {
        let case = Case {
            lhs: vec![3, 9, 12, 4],
            rhs: vec![3, kernel[0], kernel[1], 40],
            out: vec![out[0], out[1], 4, 40],
            attrs: format!("window={{{window}}}, dim_labels=f01b_i01o->01bf"),
            terms: 3 * kernel[0] * kernel[1],
        };
        for floats in [Floats::Plain, Floats::Special] {
            case.check(ElementType::F32, ElementType::F32, ElementType::F32, floats, &mut r);
        }
    }
}

/// Gradients of the kernels of depthwise convolutions: examples, groups, examples and features of a group;
/// vectors of groups, or of positions in the window along the last axis.
#[test]
fn gradients_of_depthwise() {
    use ElementType::{BF16, F16, F32};
    let mut r = Random(19);
    for [n, groups, b, f] in [[3, 19, 1, 1], [1, 40, 1, 1], [2, 3, 2, 2], [2, 9, 1, 3]] {
        for (window, input, out) in [
            ("size=5x28 pad=1_1x1_1", [5, 28], [3, 3]),
            ("size=3x35 pad=0_0x3_3", [3, 35], [1, 7]),
            ("size=4x17 pad=1_1x1_1 rhs_dilate=2x2", [8, 34], [4, 4]),
            ("size=4x9 pad=1_0x2_4 rhs_dilate=1x3 stride=2x3", [6, 30], [2, 4]),
            ("size=6x12 pad=-1_0x-2_-1 rhs_reversal=1x0", [9, 17], [3, 3]),
            ("size=6x5 pad=0_0x2_0 rhs_reversal=1x1", [7, 7], [2, 5]),
        ] {
            let size = sizes(window);
            let contiguous = Case {
                lhs: vec![n, input[0], input[1], groups * b],
                rhs: vec![n, size[0], size[1], groups * f],
                out: vec![out[0], out[1], b, groups * f],
                attrs: format!("window={{{window}}}, dim_labels=f01b_i01o->01bf, batch_group_count={groups}"),
                terms: n * size[0] * size[1],
            };
            let apart = Case {
                lhs: vec![n, groups * b, input[0], input[1]],
                rhs: vec![n, groups * f, size[0], size[1]],
                out: vec![groups * f, b, out[0], out[1]],
                attrs: format!("window={{{window}}}, dim_labels=fb01_io01->fb01, batch_group_count={groups}"),
                terms: contiguous.terms,
            };
            // Each window meets both orders of dimensions and all types, each number of groups half of that.
            for (case, more) in [contiguous, apart].into_iter().zip([0, 1]) {
                let all = [
                    (F32, Floats::Plain),
                    (BF16, Floats::Plain),
                    (F32, Floats::Special),
                    (F16, Floats::Special),
                ];
                for &(ty, floats) in all.iter().skip((groups + b + more) % 2).step_by(2) {
                    case.check(ty, ty, ty, floats, &mut r);
                }
            }
        }
    }
}

/// Positions of many channels, each by itself, whose lines are short or long, and whose strides are not 1.
#[test]
fn depthwise_of_positions() {
    use ElementType::{BF16, F16, F32};
    let mut r = Random(20);
    for (window, input, out) in [
        ("size=3x3 pad=1_1x1_1", [7, 7], [7, 7]),
        ("size=3x3 pad=1_1x1_1", [3, 300], [3, 300]),
        ("size=3x3 pad=1_1x1_1 stride=2x2", [14, 14], [7, 7]),
        ("size=5x5 pad=2_2x2_2 stride=2x2", [6, 97], [3, 49]),
        ("size=3x3 pad=0_1x0_1 stride=3x3", [9, 60], [3, 20]),
        ("size=3x4 pad=2_2x3_3 rhs_dilate=2x2 rhs_reversal=0x1", [5, 40], [5, 40]),
        ("size=1x40 pad=0_0x39_0", [1, 90], [1, 90]),
        ("size=3x3 lhs_dilate=2x2 pad=2_1x2_1", [4, 40], [8, 80]),
        ("size=4x2 lhs_dilate=1x3 pad=3_0x2_4 rhs_reversal=1x0", [5, 20], [5, 63]),
    ] {
        let size = sizes(window);
        for (groups, f) in [(5, 1), (2, 3)] {
            let case = Case {
                lhs: vec![2, groups, input[0], input[1]],
                rhs: vec![groups * f, 1, size[0], size[1]],
                out: vec![2, groups * f, out[0], out[1]],
                attrs: format!(
                    "window={{{window}}}, dim_labels=bf01_oi01->bf01, feature_group_count={groups}"
                ),
                terms: size[0] * size[1],
            };
            for (ty, floats) in
                [(F32, Floats::Plain), (F32, Floats::Special), (BF16, Floats::Plain), (F16, Floats::Special)]
            {
                case.check(ty, ty, ty, floats, &mut r);
            }
        }
    }
}

/// Two channels a word, with groups, holes and channels enough or too odd for it.
#[test]
fn integers_in_pairs() {
    use ElementType::{S8, S16, S32, U8};
    let mut r = Random(23);
    for (window, out) in [
        ("size=3x3 pad=1_1x1_1", [9, 11]),
        ("size=1x1", [9, 11]),
        ("size=2x3 stride=2x1 pad=3_0x2_4 rhs_dilate=1x2 rhs_reversal=1x0", [6, 13]),
        ("size=3x2 lhs_dilate=2x2 pad=1_1x1_0", [17, 21]),
    ] {
        for (groups, channels, features) in [(1, 32, 33), (2, 6, 16), (1, 6, 18), (1, 7, 40)] {
            let size = sizes(window);
            let case = Case {
                lhs: vec![2, 9, 11, channels * groups],
                rhs: vec![size[0], size[1], channels, features * groups],
                out: vec![2, out[0], out[1], features * groups],
                attrs: format!(
                    "window={{{window}}}, dim_labels=b01f_01io->b01f, feature_group_count={groups}"
                ),
                terms: size[0] * size[1] * channels,
            };
            for (lhs, rhs) in [(S8, S8), (U8, S8), (S8, U8), (U8, U8), (S8, S16), (S16, U8), (S16, S16)] {
                case.check(lhs, rhs, S32, Floats::Plain, &mut r);
            }
        }
    }
}

#[test]
fn kernels_that_are_packed_ahead_give_the_same_bits() {
    let mut r = Random(56);
    let mut packed = 0;
    for (ty, size, channels, features, window, stride) in [
        ("f32", 7, 20, 140, 3, 1),
        ("f32", 9, 33, 200, 1, 1),
        ("f32", 9, 16, 150, 3, 2),
        ("f32", 12, 8, 40, 3, 1),
        ("bf16", 8, 12, 70, 3, 1),
        ("f16", 8, 12, 70, 5, 2),
    ] {
        let pad = (window - 1) / 2;
        let out = (size + 2 * pad - window) / stride + 1;
        let text = format!(
            "HloModule m\nENTRY e {{\n  a = {ty}[2,{size},{size},{channels}] parameter(0)\n  b = {ty}[{window},{window},{channels},{features}] parameter(1)\n  ROOT r = {ty}[2,{out},{out},{features}] convolution(a, b), window={{size={window}x{window} stride={stride}x{stride} pad={pad}_{pad}x{pad}_{pad}}}, dim_labels=b01f_01io->b01f\n}}\n"
        );
        let module = parse(&text);
        for floats in [Floats::Plain, Floats::Special] {
            let ty = ElementType::ALL.iter().copied().find(|t| t.name() == ty).unwrap();
            let args = [
                random(ty, &[2, size, size, channels], Floats::Plain, &mut r),
                random(ty, &[window, window, channels, features], floats, &mut r),
            ];
            let plain = run(&module, &args, 1, true);
            for threads in 1..=3 {
                let Some(ahead) = run_prepared(&module, &args, threads, true, true) else { continue };
                let bits = |x: &hlo_interp::Tensor| format!("{:?}", x.buffer());
                assert!(bits(&ahead) == bits(&plain), "{threads} threads, {floats:?}: {text}");
                packed += 1;
            }
        }
    }
    if hlo_library_base::isa::Features::here().avx512 {
        assert!(packed >= 30, "{packed}");
    }
}

/// A sum is one chain of multiply-adds, window position by window position, whatever reads the input and
/// however long vectors are: of few features and of many, with a last panel and tiles that are not whole.
#[test]
fn sums_are_chains_with_vectors_of_either_length() {
    let mut r = Random(77);
    let (height, width, channels) = (5, 15, 3);
    for features in [1, 2, 3, 4, 5, 6, 7, 9, 16, 23, 37] {
        let (l, k) = ([1, height, width, channels], [3, 3, channels, features]);
        let text = format!(
            "HloModule m\nENTRY e {{\n  a = {} parameter(0)\n  b = {} parameter(1)\n  ROOT c = f32[1,{height},{width},{features}] convolution(a, b), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f\n}}\n",
            shape("f32", &l),
            shape("f32", &k),
        );
        let module = parse(&text);
        let args = [
            random(ElementType::F32, &l, Floats::Plain, &mut r),
            random(ElementType::F32, &k, Floats::Plain, &mut r),
        ];
        let (a, b) = (args[0].slice::<f32>(), args[1].slice::<f32>());
        for isa in [Isa::Avx2, Isa::Avx512] {
            let found =
                Configuration::new(Some(isa), None, NonZeroU32::MIN).with(|| run(&module, &args, 2, false));
            for (i, &x) in found.slice::<f32>().iter().enumerate() {
                let (feature, x0, y0) = (i % features, i / features % width, i / features / width);
                let mut sum = 0f32;
                for (dy, dx) in (0..3).flat_map(|dy| (0..3).map(move |dx| (dy, dx))) {
                    let (y, x) = (y0 + dy, x0 + dx);
                    if !(1..=height).contains(&y) || !(1..=width).contains(&x) {
                        continue;
                    }
                    for channel in 0..channels {
                        let weight = b[((dy * 3 + dx) * channels + channel) * features + feature];
                        sum = a[((y - 1) * width + x - 1) * channels + channel].mul_add(weight, sum);
                    }
                }
                assert_eq!(x, sum, "{isa:?}, {features} features, element {i}");
            }
        }
    }
}

/// Depthwise convolutions by vectors of channels and of positions, of either length: the same bits.
#[test]
fn depthwise_with_vectors_of_either_length() {
    let mut r = Random(78);
    for (channels, width, stride, per_group, labels) in [
        (21_usize, 13_usize, 1_usize, 1_usize, "b01f_01io->b01f"),
        (16, 9, 2, 1, "b01f_01io->b01f"),
        (24, 11, 1, 2, "b01f_01io->b01f"),
        (3, 41, 1, 1, "bf01_oi01->bf01"),
        (5, 37, 2, 1, "bf01_oi01->bf01"),
        (2, 6, 1, 1, "bf01_oi01->bf01"),
    ] {
        let out = usize::div_ceil(width, stride);
        let high = (out - 1) * stride + 3 - width - 1;
        let groups = channels / per_group;
        let (l, k, o) = if labels.starts_with("b01f") {
            ([2, width, width, channels], [3, 3, per_group, channels], [2, out, out, channels])
        } else {
            ([2, channels, width, width], [channels, per_group, 3, 3], [2, channels, out, out])
        };
        for ty in [ElementType::F32, ElementType::BF16, ElementType::F16] {
            let text = format!(
                "HloModule m\nENTRY e {{\n  a = {} parameter(0)\n  b = {} parameter(1)\n  ROOT c = {} convolution(a, b), window={{size=3x3 stride={stride}x{stride} pad=1_{high}x1_{high}}}, dim_labels={labels}, feature_group_count={groups}\n}}\n",
                shape(ty.name(), &l),
                shape(ty.name(), &k),
                shape(ty.name(), &o),
            );
            let module = parse(&text);
            let args = [random(ty, &l, Floats::Plain, &mut r), random(ty, &k, Floats::Plain, &mut r)];
            let [narrow, wide] = [Isa::Avx2, Isa::Avx512].map(|isa| {
                Configuration::new(Some(isa), None, NonZeroU32::MIN).with(|| run(&module, &args, 2, false))
            });
            assert!(narrow.buffer() == wide.buffer(), "{text}");
        }
    }
}
