//! Literals of every element type. Expected bits are those of IEEE 754 and of the types' definitions, by
//! hand.

use hlo::half::{bf16, f16};
use hlo::num_complex::Complex;
use hlo::small_float::{
    F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ,
    F8E8M0FNU,
};
use hlo::small_int::{S1, S2, S4, U1, U2, U4};
use hlo::{Bits, BufferOf, ConstantValue, Literal, Shape};
use hlo_parser::{parse_literal, parse_shape, parse_shaped_literal};

fn literal(shape: &str, text: &str) -> Literal {
    let shape = parse_shape(shape).unwrap();
    match parse_literal(text, &shape) {
        Ok(ConstantValue::Given(v)) => Literal::clone(&v),
        Ok(ConstantValue::Elided) => panic!("{text} is elided"),
        Err(e) => panic!("{shape} {text}: {}", e.message),
    }
}

/// The bits of the elements.
fn bits<T: BufferOf + Bits>(shape: &str, text: &str) -> Vec<u128> {
    let l = literal(shape, text);
    let a = l.as_array().unwrap();
    T::slice(&a.buffer).unwrap().iter().map(|&x| x.bits()).collect()
}

#[track_caller]
fn check<T: BufferOf + Bits>(cases: &[(&str, u128)]) {
    let name = T::TYPE.name();
    for &(text, expected) in cases {
        assert_eq!(bits::<T>(&format!("{name}[]"), text), [expected], "{name} {text}");
    }
}

/// The code of the error.
fn refused(shape: &str, text: &str) -> &'static str {
    parse_literal(text, &parse_shape(shape).unwrap()).unwrap_err().code.as_str()
}

#[test]
fn integers() {
    check::<bool>(&[("true", 1), ("false", 0), ("1", 1), ("0", 0)]);
    check::<S1>(&[("0", 0), ("-1", 1)]);
    check::<S2>(&[("1", 1), ("-2", 2)]);
    check::<S4>(&[("7", 7), ("-8", 8), ("-1", 15), ("-0", 0)]);
    check::<U1>(&[("1", 1)]);
    check::<U2>(&[("3", 3)]);
    check::<U4>(&[("15", 15)]);
    check::<i8>(&[("-128", 0x80), ("127", 0x7f)]);
    check::<i16>(&[("-32768", 0x8000), ("0032767", 0x7fff)]);
    check::<i32>(&[("-2147483648", 0x8000_0000), ("2147483647", 0x7fff_ffff)]);
    check::<i64>(&[("-9223372036854775808", 1 << 63), ("9223372036854775807", (1 << 63) - 1)]);
    check::<u8>(&[("255", 255)]);
    check::<u16>(&[("65535", 65535)]);
    check::<u32>(&[("4294967295", 0xffff_ffff)]);
    // As in XLA, negative 64-bit numbers are taken modulo 2^64.
    check::<u64>(&[("18446744073709551615", u64::MAX.into()), ("-1", u64::MAX.into()), ("0", 0)]);
    for (shape, text) in [
        ("s1[]", "1"),
        ("s2[]", "2"),
        ("s4[]", "-9"),
        ("u1[]", "2"),
        ("u2[]", "4"),
        ("u4[]", "-1"),
        ("s8[]", "128"),
        ("s16[]", "40000"),
        ("s32[]", "2147483648"),
        ("s64[]", "9223372036854775808"),
        ("u8[]", "-1"),
        ("u16[]", "65536"),
        ("u32[]", "4294967296"),
        ("u64[]", "18446744073709551616"),
        ("u64[]", "-9223372036854775809"),
        ("s32[]", "99999999999999999999999999"),
    ] {
        assert_eq!(refused(shape, text), "P0504", "{shape} {text}");
    }
    for (shape, text) in
        [("s32[]", "1e3"), ("s32[]", "true"), ("u8[]", "-"), ("pred[]", "yes"), ("s32[]", "+1")]
    {
        assert_eq!(refused(shape, text), "P0503", "{shape} {text}");
    }
}

#[test]
fn wide_floats() {
    check::<f32>(&[
        ("0", 0),
        ("-0", 0x8000_0000),
        ("-0.0", 0x8000_0000),
        ("1", 0x3f80_0000),
        ("1.", 0x3f80_0000),
        (".5", 0x3f00_0000),
        ("1e-45", 1),
        ("1.17549435e-38", 0x0080_0000),
        ("3.40282347e+38", 0x7f7f_ffff),
        // The largest decimal that is rounded to a finite number is just below the middle to the next power
        // of two.
        ("3.4028235677973366e38", 0x7f7f_ffff),
        ("16777217", 0x4b80_0000),
        ("18446744073709551616", 0x5f80_0000),
        ("inf", 0x7f80_0000),
        ("-inf", 0xff80_0000),
        ("nan", 0x7fc0_0000),
        ("-nan", 0xffc0_0000),
        ("nan(0x1)", 0x7f80_0001),
        ("-nan(0x7fffff)", 0xffff_ffff),
        // Read through f64 it would be rounded twice, to 0x3f800000.
        ("1.00000005960464477539062500000000000000000000000001", 0x3f80_0001),
    ]);
    check::<f64>(&[
        ("-0", 1 << 63),
        ("4.9406564584124654e-324", 1),
        ("1.7976931348623157e308", 0x7fef_ffff_ffff_ffff),
        ("nan", 0x7ff8_0000_0000_0000),
        ("-nan(0xfffffffffffff)", u64::MAX.into()),
    ]);
    for (shape, text) in
        [("f32[]", "3.4028236e38"), ("f32[]", "-1e39"), ("f64[]", "1e309"), ("c64[]", "(0, 1e39)")]
    {
        assert_eq!(refused(shape, text), "P0504", "{shape} {text}");
    }
    for text in ["infinity", "NaN", "0x1p3", "1e", "--1", "1.2.3", "+1", "e5", "", "1_000"] {
        assert_eq!(refused("f32[]", text), "P0503", "{text}");
    }
    for text in ["nan(0x0)", "nan(0x800000)", "nan(1)", "nan(0x)"] {
        assert_eq!(refused("f32[]", text), "P0505", "{text}");
    }
    // The imaginary part's NaN is its own (XLA's parser takes it from the real part).
    assert_eq!(bits::<Complex<f32>>("c64[]", "(1, nan)"), [0x7fc0_0000_3f80_0000]);
    assert_eq!(
        bits::<Complex<f32>>("c64[2]", "{(-0, 2), (nan(0x1), -inf)}"),
        [0x4000_0000_8000_0000, 0xff80_0000_7f80_0001]
    );
    assert_eq!(bits::<Complex<f64>>("c128[]", "( 1 , -0 )"), [0x8000_0000_0000_0000_3ff0_0000_0000_0000]);
}

#[test]
fn narrow_floats_are_rounded_once() {
    check::<f16>(&[
        ("1", 0x3c00),
        ("65504", 0x7bff),
        ("65519.99999999999999999999", 0x7bff),
        ("5.9604645e-08", 1),
        ("2.98023223876953125e-8", 0),
        ("2.98023223876953125000000000000001e-8", 1),
        ("-inf", 0xfc00),
        ("nan", 0x7e00),
        ("-nan(0x1)", 0xfc01),
        // Halfway between 1 and the next number, 1 + 2^-10: to even; a hair above it: up. The hair is lost in
        // f64.
        ("1.00048828125", 0x3c00),
        ("1.00048828125000000000000000000000000000001", 0x3c01),
        ("1.00048828124999999999999999999999999999999", 0x3c00),
        ("1.00146484375", 0x3c02),
        ("1.00146484374999999999999999999999999999999", 0x3c01),
        ("-1.00146484374999999999999999999999999999999", 0xbc01),
    ]);
    check::<bf16>(&[
        ("1", 0x3f80),
        ("3.39e38", 0x7f7f),
        ("1.00390625", 0x3f80),
        ("1.003906250000000000000000000001", 0x3f81),
        ("-0", 0x8000),
        ("nan", 0x7fc0),
        ("9.2e-41", 1),
    ]);
    check::<F8E5M2>(&[
        ("57344", 0x7b),
        ("inf", 0x7c),
        ("nan", 0x7e),
        ("-nan(0x1)", 0xfd),
        ("1", 0x3c),
        ("-0", 0x80),
    ]);
    check::<F8E4M3>(&[("240", 0x77), ("-inf", 0xf8), ("nan", 0x7c), ("1", 0x38)]);
    check::<F8E4M3FN>(&[
        ("448", 0x7e),
        ("464", 0x7e),
        ("nan", 0x7f),
        ("-nan", 0xff),
        ("1", 0x38),
        ("0.001953125", 1),
    ]);
    check::<F8E4M3B11FNUZ>(&[("30", 0x7f), ("nan", 0x80), ("1", 0x58), ("-0", 0)]);
    check::<F8E3M4>(&[("15.5", 0x6f), ("inf", 0x70), ("nan", 0x78), ("1", 0x30)]);
    check::<F8E5M2FNUZ>(&[("57344", 0x7f), ("nan", 0x80), ("1", 0x40)]);
    check::<F8E4M3FNUZ>(&[("240", 0x7f), ("nan", 0x80), ("1", 0x40)]);
    check::<F8E8M0FNU>(&[("1", 127), ("nan", 255), ("2", 128), ("5.877471754111438e-39", 0)]);
    check::<F4E2M1FN>(&[("6", 7), ("-0.5", 9), ("1", 2), ("0", 0), ("-0", 8)]);
    check::<F6E3M2FN>(&[("28", 0x1f), ("1", 0x0c), ("-1", 0x2c)]);
    check::<F6E2M3FN>(&[("7.5", 0x1f), ("1", 0x08)]);
    for (shape, text) in [
        ("f16[]", "65520"),
        ("bf16[]", "3.4e38"),
        ("f8e5m2[]", "61440"),
        ("f8e4m3[]", "248"),
        ("f8e4m3fn[]", "465"),
        ("f8e4m3fnuz[]", "-500"),
        ("f8e8m0fnu[]", "0"),
        ("f8e8m0fnu[]", "-1"),
        ("f4e2m1fn[]", "7"),
        ("f6e2m3fn[]", "-8"),
        ("f16[]", "1e400"),
    ] {
        assert_eq!(refused(shape, text), "P0504", "{shape} {text}");
    }
    for shape in ["f8e4m3fn[]", "f8e5m2fnuz[]", "f8e8m0fnu[]", "f4e2m1fn[]"] {
        assert_eq!(refused(shape, "nan(0x1)"), "P0505", "{shape}");
    }
}

#[test]
fn nesting() {
    assert_eq!(bits::<i32>("s32[2,3]", "{ { 1, 2, 3 }, { 4, 5, 6 } }"), [1, 2, 3, 4, 5, 6]);
    assert_eq!(bits::<i32>("s32[2,1,2]", "{{{1,2}},{{3,4}}}"), [1, 2, 3, 4]);
    assert_eq!(bits::<i32>("s32[1,1,1,2]", "{ { /*i0=0*/ { /*i1=0*/ { 1, 2 } } } }"), [1, 2]);
    assert_eq!(bits::<i32>("s32[3]", "\n{ 1, // one\n 2,\n 3 }"), [1, 2, 3]);
    assert_eq!(
        bits::<i32>("s32[2,2]", "{ {1, 2} {3, 4} }"),
        [1, 2, 3, 4],
        "XLA does not insist on these commas"
    );
    for (shape, text) in
        [("f32[0]", "{}"), ("f32[0,2]", "{  }"), ("f32[2,0]", "{ {}, {} }"), ("f32[2,0,3]", "{ {}, { } }")]
    {
        assert_eq!(bits::<f32>(shape, text), [0; 0], "{shape}");
    }
    for (shape, text, code) in [
        ("s32[2]", "{1}", "P0501"),
        ("s32[2]", "{1,2,3}", "P0501"),
        ("s32[2,2]", "{{1,2}}", "P0501"),
        ("s32[0]", "{1}", "P0501"),
        ("s32[1,2]", "{{1,2},{3,4}}", "P0501"),
        ("s32[2,2]", "{1,2}", "P0502"),
        ("s32[2]", "{{1,2}}", "P0502"),
        ("s32[2]", "{1,2", "P0503"),
        ("s32[2]", "{1,,2}", "P0503"),
        ("s32[2]", "{1 2}", "P0503"),
        ("s32[]", "{1}", "P0503"),
        ("s32[2]", "{1,2}}", "P0226"),
        ("s32[2]", "{...", "P0503"),
        ("s32[2,2]", "{{1,2},{...}}", "P0503"),
        ("s32[?]", "{1}", "P0506"),
        ("opaque[]", "1", "P0509"),
        ("b(f32[])", "1", "P0509"),
    ] {
        assert_eq!(refused(shape, text), code, "{shape} {text}");
    }
    // XLA reads a value without braces as the first element.
    assert_eq!(bits::<i32>("s32[1]", "7"), [7]);
    assert_eq!(bits::<i32>("s32[2,2]", "7"), [7, 0, 0, 0]);
}

#[test]
fn tuples_and_what_is_left_out() {
    let l = literal("(f32[], (s32[2], token[]), ())", "( 1.5, ( {1, 2}, token ), ( ) )");
    let Literal::Tuple(elements) = &l else { panic!("no tuple") };
    assert_eq!(elements[0], Literal::scalar(1.5f32));
    assert_eq!(l.arrays().len(), 2);
    let elided = |shape: &str, text: &str| {
        let shape = parse_shape(shape).unwrap();
        parse_literal(text, &shape).unwrap() == ConstantValue::Elided
    };
    assert!(elided("f32[100]", "{...}"));
    assert!(elided("f32[10,10]", " { ... } "));
    assert!(elided("(f32[100], s32[])", "{...}"));
    assert!(elided("(f32[100], s32[])", "({...}, 1)"));
    assert_eq!(refused("(f32[], s32[])", "(1)"), "P0507");
    assert_eq!(refused("(f32[], s32[])", "(1, 2, 3)"), "P0507");
}

#[test]
fn with_their_shapes() {
    let (shape, value) = parse_shaped_literal("s32[2]{0} {1, 2}").unwrap();
    assert_eq!(shape, parse_shape("s32[2]{0}").unwrap());
    assert_eq!(value, parse_literal("{1,2}", &shape).unwrap());
    let (shape, _) = parse_shaped_literal("(f32[], s32[]) (1, 2)").unwrap();
    assert_eq!(shape, parse_shape("(f32[], s32[])").unwrap());
    let (inside, value) = parse_shaped_literal("(f32[] 1, s32[2]{0} {2, 3})").unwrap();
    assert_eq!(inside, parse_shape("(f32[], s32[2]{0})").unwrap());
    assert_eq!(value, parse_literal("(1, {2,3})", &inside).unwrap());
    assert!(matches!(inside, Shape::Tuple(_)));
    let (_, value) = parse_shaped_literal("f32[<=3] (3) {1, 2, 3}").unwrap();
    assert_eq!(value, parse_literal("{1, 2, 3}", &parse_shape("f32[<=3]").unwrap()).unwrap());
}
