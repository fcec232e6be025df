//! Sorting against the interpreter.

use hlo::{ArrayLiteral, Bits, BufferOf, ElementType, Literal, TypeClass, with_buffer, with_element_type};

use crate::testing::{Random, arguments, check, interpreted, parse, run};
use crate::{Kind, LibraryCall};

use super::By;
use super::bare::BY_DIGITS;
use super::wanted::Wanted;

/// A module that sorts arrays of these types and dimensions.
fn module(types: &[ElementType], dims: &str, dimension: usize, comparator: &str) -> String {
    let shape = |ty: &ElementType| format!("{}[{dims}]", ty.name());
    let parameters: String =
        types.iter().enumerate().map(|(i, ty)| format!("  x{i} = {} parameter({i})\n", shape(ty))).collect();
    let scalars: String = types
        .iter()
        .enumerate()
        .map(|(i, ty)| {
            let ty = ty.name();
            format!("  a{i} = {ty}[] parameter({})\n  b{i} = {ty}[] parameter({})\n", 2 * i, 2 * i + 1)
        })
        .collect();
    let operands: Vec<String> = (0..types.len()).map(|i| format!("x{i}")).collect();
    let result = match types {
        [one] => shape(one),
        several => format!("({})", several.iter().map(shape).collect::<Vec<_>>().join(", ")),
    };
    format!(
        "HloModule m\nless {{\n{scalars}{comparator}}}\nENTRY main {{\n{parameters}  ROOT s = {result} sort({}), dimensions={{{dimension}}}, to_apply=less\n}}\n",
        operands.join(", ")
    )
}

fn less(operand: usize, direction: &str, ty: &str) -> String {
    format!("  ROOT l = pred[] compare(a{operand}, b{operand}), direction={direction}{ty}\n")
}

/// JAX's comparator of a float.
fn merged(ty: ElementType, root: &str) -> String {
    let ty = ty.name();
    let side = |x: &str| {
        format!(
            "  {x}n = pred[] compare({x}0, {x}0), direction=NE\n  {x}z = pred[] compare({x}0, zero), direction=EQ\n  {x}s = {ty}[] select({x}z, zero, {x}0)\n  {x}m = {ty}[] select({x}n, nan, {x}s)\n"
        )
    };
    format!("  nan = {ty}[] constant(nan)\n  zero = {ty}[] constant(0)\n{}{}{root}", side("a"), side("b"))
}

fn by_keys(text: &str) -> bool {
    let module = parse(text);
    let call = LibraryCall::of(&module, module.root(module.entry())).unwrap().unwrap();
    matches!(&call, LibraryCall(Kind::Sort(s)) if matches!(s.by, By::Keys(_)))
}

#[test]
fn one_key_of_any_type() {
    for (seed, &ty) in (0..).zip(ElementType::ALL) {
        if ty.class() == TypeClass::Complex {
            continue;
        }
        let orders: &[&str] = if ty.is_float() { &["", ", type=TOTALORDER"] } else { &[""] };
        for order in orders {
            for (dims, dimension) in
                [("37", 0), ("5,30", 1), ("20,18", 0), ("3,20,2", 1), ("600", 0), ("1,4", 0), ("0,3", 1)]
            {
                let direction = if seed % 2 == 0 { "LT" } else { "GT" };
                let alone = module(&[ty], dims, dimension, &less(0, direction, order));
                assert!(by_keys(&alone), "{alone}");
                check(&alone, seed, true, true, &[]);
                check(&alone, seed, false, true, &[]);
                let with = module(&[ElementType::S32, ty], dims, dimension, &less(1, direction, order));
                check(&with, seed, true, true, &[]);
            }
        }
    }
}

#[test]
fn jax_comparators() {
    use ElementType::{BF16, F16, F32, F64};
    for (seed, ty) in (0..).zip([F16, BF16, F32, F64]) {
        for (dims, dimension) in [("50", 0), ("3,700", 1), ("9,20", 0)] {
            let text = module(
                &[ty],
                dims,
                dimension,
                &merged(ty, "  ROOT l = pred[] compare(am, bm), direction=LT, type=TOTALORDER\n"),
            );
            assert!(by_keys(&text), "{text}");
            check(&text, seed, true, true, &[]);
            check(&text, seed, false, true, &[]);
            let two = merged(
                ty,
                "  first = pred[] compare(am, bm), direction=LT, type=TOTALORDER\n  same = pred[] compare(am, bm), direction=EQ, type=TOTALORDER\n  second = pred[] compare(a1, b1), direction=GT\n  both = pred[] and(same, second)\n  ROOT l = pred[] or(first, both)\n",
            );
            for other in [ElementType::U8, ElementType::S32, ElementType::U64] {
                let text = module(&[ty, other, ElementType::C128], dims, dimension, &two);
                assert!(by_keys(&text), "{text}");
                check(&text, seed, true, true, &[]);
            }
        }
    }
}

#[test]
fn complex_keys_and_ties_by_place() {
    let text = module(
        &[ElementType::C64, ElementType::S32],
        "4,90",
        1,
        "  ra = f32[] real(a0)\n  rb = f32[] real(b0)\n  ia = f32[] imag(a0)\n  ib = f32[] imag(b0)\n  less = pred[] compare(ra, rb), direction=GT\n  same = pred[] compare(ra, rb), direction=EQ\n  imags = pred[] compare(ia, ib), direction=LT\n  imag = pred[] compare(ia, ib), direction=EQ\n  place = pred[] compare(a1, b1), direction=LT\n  then = pred[] select(imag, place, imags)\n  ROOT l = pred[] select(same, then, less)\n",
    );
    assert!(by_keys(&text), "{text}");
    check(&text, 1, false, true, &[]);
    check(&text, 2, true, true, &[]);
}

#[test]
fn places_are_written_directly() {
    let text = "HloModule m\nless {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  c = s64[] parameter(2)\n  d = s64[] parameter(3)\n  ROOT l = pred[] compare(a, b), direction=LT, type=TOTALORDER\n}\nENTRY main {\n  x = f32[7,33] parameter(0)\n  i = s64[7] iota(), iota_dimension=0\n  p = s64[7,33] broadcast(i), dimensions={0}\n  ROOT s = (f32[7,33], s64[7,33]) sort(x, p), dimensions={0}, to_apply=less\n}\n";
    let module = parse(text);
    let call = LibraryCall::of(&module, module.root(module.entry())).unwrap().unwrap();
    assert!(matches!(&call, LibraryCall(Kind::Sort(s)) if s.operands[1].counts));
    check(text, 3, true, true, &[]);
}

#[test]
fn long_lines_are_cut_into_pieces() {
    let many = "140000";
    check(&module(&[ElementType::F32], many, 0, &less(0, "LT", ", type=TOTALORDER")), 1, true, true, &[]);
    check(&module(&[ElementType::U64], many, 0, &less(0, "GT", "")), 2, true, true, &[]);
    check(
        &module(
            &[ElementType::F32],
            many,
            0,
            &merged(ElementType::F32, "  ROOT l = pred[] compare(am, bm), direction=GT, type=TOTALORDER\n"),
        ),
        3,
        true,
        true,
        &[],
    );
    check(
        &module(&[ElementType::F64, ElementType::U8], "70000,2", 0, &less(0, "LT", "")),
        4,
        false,
        true,
        &[],
    );
}

/// `|a0| < |b0|` of f32.
unsafe extern "C" fn smaller(arguments: *const *mut u8, begin: u64, end: u64) {
    // SAFETY: the arguments are two arrays of f32 and one of bytes.
    unsafe {
        let (a, b, out) = ((*arguments).cast::<f32>(), (*arguments.add(1)).cast::<f32>(), *arguments.add(2));
        for i in begin as usize..end as usize {
            *out.add(i) = u8::from((*a.add(i)).abs() < (*b.add(i)).abs());
        }
    }
}

/// `a1 <= b1` of s16, the second of two operands.
unsafe extern "C" fn not_larger(arguments: *const *mut u8, begin: u64, end: u64) {
    // SAFETY: the arguments are four arrays, the last two of s16, and one of bytes.
    unsafe {
        let (a, b, out) =
            ((*arguments.add(2)).cast::<i16>(), (*arguments.add(3)).cast::<i16>(), *arguments.add(4));
        for i in begin as usize..end as usize {
            *out.add(i) = u8::from(*a.add(i) <= *b.add(i));
        }
    }
}

#[test]
fn any_comparator() {
    let text = |dims, dimension| {
        module(
            &[ElementType::F32],
            dims,
            dimension,
            "  x = f32[] abs(a0)\n  y = f32[] abs(b0)\n  ROOT l = pred[] compare(x, y), direction=LT\n",
        )
    };
    for (dims, dimension) in
        [("1000", 0), ("700,3", 1), ("2100,2", 0), ("2,2,2", 1), ("3,1", 1), ("65,17", 0)]
    {
        check(&text(dims, dimension), 5, true, true, &[smaller]);
        // No order at all: still a permutation, and the interpreter's.
        check(
            &module(&[ElementType::C128, ElementType::S16], dims, dimension, &less(1, "LE", "")),
            6,
            true,
            true,
            &[not_larger],
        );
    }
}

#[test]
fn arrays_without_elements() {
    for (dims, dimension) in
        [("0,0", 0), ("0,0", 1), ("1,0", 0), ("1,0", 1), ("0,3", 0), ("3,0", 0), ("4,0,2", 0), ("0", 0)]
    {
        check(&module(&[ElementType::F32], dims, dimension, &less(0, "LT", "")), 1, true, true, &[]);
        check(
            &module(&[ElementType::C128, ElementType::S16], dims, dimension, &less(1, "LE", "")),
            6,
            true,
            true,
            &[not_larger],
        );
    }
}

/// Sorts of which slices read `start..limit` of each line: those elements are the interpreter's, and others
/// were not sorted if `wanted` says so.
fn ends(
    (types, dims, dimension): (&[ElementType], &[usize], usize),
    comparator: &str,
    specials: bool,
    (start, limit): (usize, usize),
    wanted: Wanted,
) {
    let named = |dims: &[usize]| dims.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let text = module(types, &named(dims), dimension, comparator);
    let mut cut = dims.to_vec();
    cut[dimension] = limit - start;
    let slices: Vec<String> = (0..dims.len())
        .map(|d| if d == dimension { format!("[{start}:{limit}]") } else { format!("[0:{}]", dims[d]) })
        .collect();
    let slice = |k: usize, of: &str| {
        format!(
            "  c{k} = {}[{}] slice({of}), slice={{{}}}\n",
            types[k].name(),
            named(&cut),
            slices.join(", ")
        )
    };
    let mut sliced = text.replace("ROOT s =", "s =").trim_end().trim_end_matches('}').to_owned();
    if types.len() == 1 {
        sliced += &slice(0, "s").replace("c0", "ROOT c0");
    } else {
        for (k, ty) in types.iter().enumerate() {
            sliced += &format!("  e{k} = {}[{}] get-tuple-element(s), index={k}\n", ty.name(), named(dims));
            sliced += &slice(k, &format!("e{k}"));
        }
        let all: Vec<String> = (0..types.len()).map(|k| format!("c{k}")).collect();
        let shapes: Vec<String> = types.iter().map(|ty| format!("{}[{}]", ty.name(), named(&cut))).collect();
        sliced += &format!("  ROOT t = ({}) tuple({})\n", shapes.join(", "), all.join(", "));
    }
    let sliced = parse(&(sliced + "}\n"));
    let sort = sliced.instructions(sliced.entry()).find(|&i| *sliced.instr(i).name == *"s").unwrap();
    let call = LibraryCall::of(&sliced, sort).unwrap().unwrap();
    let found = matches!(&call, LibraryCall(Kind::Sort(s)) if s.wanted == wanted);
    assert!(found, "{wanted:?}, not {call:?}\n{text}");
    let whole = parse(&text);
    let stride: usize = dims[dimension + 1..].iter().product();
    for seed in 0..3 {
        let arguments = arguments(&whole, &Random::new(seed), specials);
        let expected = interpreted(&whole, &arguments);
        for threads in 1..=3 {
            let got = run(&whole, &call, &arguments, &[], threads);
            for (got, expected) in got.iter().zip(&expected) {
                let bits = |b: &hlo::Buffer| -> Vec<u128> {
                    with_buffer!(b, v => v.iter().map(|x| x.bits()).collect())
                };
                let taken = |i: &usize| (start..limit).contains(&(i / stride % dims[dimension]));
                let (got, expected) = (bits(got), bits(expected));
                let differs = (0..got.len()).filter(taken).find(|&i| got[i] != expected[i]);
                assert_eq!(differs, None, "seed {seed}, {threads} threads, {start}..{limit}\n{text}");
            }
        }
    }
}

#[test]
fn ends_of_lines_are_selected() {
    use ElementType::{BF16, F32, F64, S8, S32, U64};
    let total = |operand, direction| less(operand, direction, ", type=TOTALORDER");
    let jax = |ty, direction: &str| {
        merged(ty, &format!("  ROOT l = pred[] compare(am, bm), direction={direction}, type=TOTALORDER\n"))
    };
    let (first, last) = (Wanted::First(5), Wanted::Last(5));
    for (range, wanted) in [((0, 5), first), ((195, 200), last)] {
        ends((&[F32], &[200], 0), &total(0, "LT"), true, range, wanted);
        ends((&[F32, S32], &[3, 200], 1), &jax(F32, "LT"), true, range, wanted);
        ends((&[F64, S32], &[3, 200], 1), &jax(F64, "GT"), true, range, wanted);
        ends((&[BF16], &[200, 5], 0), &jax(BF16, "LT"), true, range, wanted);
        ends((&[S8, F32, U64], &[2, 200, 3], 1), &less(0, "GT", ""), true, range, wanted);
        ends((&[F32, U64], &[2, 200, 3], 1), &less(1, "LT", ""), true, range, wanted);
        // Without NaNs, and where there are some.
        ends((&[F32, S32], &[4, 200], 1), &less(0, "GT", ""), false, range, wanted);
        ends((&[F32, S32], &[4, 200], 1), &less(0, "GT", ""), true, range, wanted);
    }
    ends((&[F32, S32], &[2, 3000], 1), &jax(F32, "LT"), true, (0, 300), Wanted::First(300));
    ends((&[F32, S32], &[2, 3000], 1), &jax(F32, "LT"), true, (2500, 2600), Wanted::Last(500));
    ends((&[F32, S32], &[100_000], 0), &jax(F32, "GT"), true, (2, 40), Wanted::First(40));
    ends((&[S8], &[100_000], 0), &less(0, "LT", ""), true, (99_990, 100_000), Wanted::Last(10));
    ends((&[F64], &[100_000], 0), &less(0, "LT", ""), true, (0, 10), Wanted::First(10));
    // Too many, too short, in the middle.
    ends((&[F32], &[200], 0), &total(0, "LT"), true, (0, 51), Wanted::All);
    ends((&[F32], &[63], 0), &total(0, "LT"), true, (0, 1), Wanted::All);
    ends((&[F32], &[200], 0), &total(0, "LT"), true, (100, 101), Wanted::All);
}

/// An integer in the order of a comparator: of elements of `size` bytes by `<` or `>`, where floats have no
/// NaN; by TOTALORDER; or by JAX's comparator.
fn rank(ty: ElementType, order: &str, bits: u64) -> i128 {
    let width = ty.bits();
    let (top, bits) = (1i128 << (width - 1), i128::from(bits));
    let magnitude = bits & (top - 1);
    match (ty.class(), order) {
        (TypeClass::Signed, _) => bits - if bits & top != 0 { 2 * top } else { 0 },
        (TypeClass::Float, "total") => {
            if bits & top != 0 {
                -1 - magnitude
            } else {
                magnitude
            }
        }
        (TypeClass::Float, "jax") if magnitude > special(ty, 0) => top,
        (TypeClass::Float, _) => {
            if bits & top != 0 {
                -magnitude
            } else {
                magnitude
            }
        }
        (_, _) => bits,
    }
}

/// The bits of infinity plus `more`.
fn special(ty: ElementType, more: i128) -> i128 {
    let infinity = |ty: ElementType| match ty.bits() {
        16 if ty == ElementType::BF16 => 0x7f80,
        16 => 0x7c00,
        32 => 0x7f80_0000,
        _wide => 0x7ff0_0000_0000_0000,
    };
    infinity(ty) + more
}

/// The bits of element `i` of `n`, which are truncated to the size of an element.
type Hold = fn(&Random, usize, usize) -> u64;

/// What an array holds.
const HELD: [(&str, Hold); 9] = [
    ("random", |random, _, _| random.next()),
    ("ascending", |_, i, _| i as u64),
    ("descending", |_, i, n| (n - i) as u64),
    ("few", |random, _, _| random.below(5).wrapping_sub(2)),
    ("equal", |_, _, _| 0x3f80),
    ("organ pipe", |_, i, n| i.min(n - i) as u64 * 5),
    ("all ones and zeros", |random, _, _| 0u64.wrapping_sub(random.below(2))),
    ("specials", |random, _, _| random.next()),
    ("denormals", |random, _, _| random.below(9) << 63 | random.below(9)),
];

/// Sorts `n` elements by a comparator as this module does, in both ways, with one thread and several, and as
/// the standard library does.
fn alone(ty: ElementType, order: &str, direction: &str, held: usize, n: usize, seed: u64) {
    let comparator = match order {
        "total" => less(0, direction, ", type=TOTALORDER"),
        "jax" => merged(
            ty,
            &format!("  ROOT l = pred[] compare(am, bm), direction={direction}, type=TOTALORDER\n"),
        ),
        _partial => less(0, direction, ""),
    };
    let text = module(&[ty], &n.to_string(), 0, &comparator);
    let (random, mask) = (Random::new(seed), u64::MAX >> (64 - ty.bits()));
    let (what, hold) = HELD[held];
    let top = 1 << (ty.bits() - 1);
    let element = |i: usize| {
        let mut bits = hold(&random, i, n) & mask;
        if what == "denormals" && random.below(2) == 0 {
            bits ^= top;
        }
        if what == "specials" && ty.is_float() {
            // Zeros, infinities, NaNs of several payloads, of either sign.
            let magnitude =
                [0, special(ty, 0), special(ty, 1), special(ty, 7), 1, 0x3f80][random.below(6) as usize];
            bits = magnitude as u64 | (top * random.below(2));
        }
        let nan = ty.is_float() && i128::from(bits & (top - 1)) > special(ty, 0);
        if nan && order == "partial" { bits & (top >> 3) } else { bits }
    };
    let given: Vec<u64> = (0..n).map(element).collect();
    let mut expected = given.clone();
    let rank = |&bits: &u64| rank(ty, order, bits) * if direction == "LT" { 1 } else { -1 };
    expected.sort_by_key(rank);
    let parsed = parse(&text);
    let call = LibraryCall::of(&parsed, parsed.root(parsed.entry())).unwrap().unwrap();
    fn wrap<T: BufferOf>(bits: &[u64]) -> hlo::Buffer {
        T::wrap(bits.iter().map(|&b| T::from_bits(u128::from(b))).collect())
    }
    let buffer = with_element_type!(ty, T => wrap::<T>(&given));
    let arguments =
        [Literal::Array(ArrayLiteral { dims: smallvec::smallvec![n as i64], buffer: buffer.into() })];
    let threads = if n < 1 << 15 { &[1, 2][..] } else { &[1, 2, 3, 5] };
    for (by_digits, &threads) in [true, false].into_iter().flat_map(|by| threads.iter().map(move |n| (by, n)))
    {
        BY_DIGITS.set(by_digits);
        let got = run(&parsed, &call, &arguments, &[], threads);
        BY_DIGITS.set(false);
        let got: Vec<u64> = with_buffer!(&got[0], v => v.iter().map(|x| x.bits() as u64).collect());
        assert_eq!(got.len(), n);
        let differs = got.iter().zip(&expected).position(|(a, b)| a != b);
        let how = format!("{order}, {direction}, {what}, {threads} threads, by digits: {by_digits}");
        assert_eq!(differs, None, "{n} of {}, {how}", ty.name());
    }
}

#[test]
fn keys_alone_of_all_lengths() {
    use ElementType::{BF16, F16, F32, F64, S16, S32, S64, U16, U32, U64};
    let types = [F32, S32, BF16, F64, U32, S16, S64, F16, U64, U16];
    let around = |n: usize| n - 1..=n + 1;
    let lengths = (0..=1100).chain([2048, 4096, 5000].into_iter().flat_map(around));
    for n in lengths {
        // Something else with each length; f32 more often.
        for step in 0..2 {
            let ty = if step == 0 { types[n % types.len()] } else { F32 };
            let order = ["total", "jax", "partial"][if ty.is_float() { (n + step) % 3 } else { 2 }];
            let direction = ["LT", "GT"][n / 3 % 2];
            alone(ty, order, direction, (n / 7 + step) % HELD.len(), n, n as u64);
        }
    }
    for ty in types {
        for order in if ty.is_float() { &["total", "jax", "partial"][..] } else { &["partial"] } {
            for (held, direction) in (0..HELD.len()).flat_map(|held| [(held, "LT"), (held, "GT")]) {
                alone(ty, order, direction, held, 333, 1);
            }
        }
    }
}

#[test]
fn many_keys_alone() {
    use ElementType::{BF16, F32, F64, S32};
    for ty in [F32, F64, BF16, S32] {
        for held in 0..HELD.len() {
            let order = ["total", "jax", "partial"][if ty.is_float() { held % 3 } else { 2 }];
            let direction = ["LT", "GT"][held / 3 % 2];
            alone(ty, order, direction, held, (1 << 15) + 1000 * held, 2);
        }
    }
}

#[test]
fn nans_that_do_not_compare() {
    for (ty, dims) in [
        (ElementType::F32, "700"),
        (ElementType::F64, "3,300"),
        (ElementType::BF16, "40,17"),
        (ElementType::F32, "33000"),
    ] {
        let dimension = usize::from(dims.contains(','));
        check(&module(&[ty], dims, dimension, &less(0, "LT", "")), 7, true, true, &[]);
        check(&module(&[ty], dims, dimension, &less(0, "GT", "")), 8, true, true, &[]);
    }
}
