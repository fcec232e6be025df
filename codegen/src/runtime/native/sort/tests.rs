//! Sorting against the interpreter.

use hlo::{ElementType, TypeClass};

use crate::runtime::native::testing::{check, parse};
use crate::runtime::native::{Kind, Native};

use super::By;

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
    let native = Native::of(&module, module.root(module.entry())).unwrap().unwrap();
    matches!(&native, Native(Kind::Sort(s)) if matches!(s.by, By::Keys(_)))
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
    let native = Native::of(&module, module.root(module.entry())).unwrap().unwrap();
    assert!(matches!(&native, Native(Kind::Sort(s)) if s.operands[1].counts));
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
