//! The small floating-point types against ml_dtypes (`data/make_small_float_tables.py`) and against the
//! definition of rounding to nearest.
//!
//! Where this project differs from ml_dtypes on purpose: a NaN that a conversion gives is the canonical one,
//! whatever the sign of the operand; in a type without NaN it is -0, as in XLA:CPU (ml_dtypes: +0 if the sign
//! bit is set).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use hlo::small_float::*;

const TABLES: &str = include_str!("data/small_float_tables.txt");

fn words(name: &str, kind: &str) -> impl Iterator<Item = &'static str> {
    let line = TABLES
        .lines()
        .find(|line| {
            line.strip_prefix(name).and_then(|l| l.strip_prefix(' ')).is_some_and(|l| l.starts_with(kind))
        })
        .expect("a line per type and kind");
    line.split(' ').skip(2)
}

fn hex(text: &str) -> u32 {
    u32::from_str_radix(text, 16).expect("hexadecimal")
}

fn runs(name: &str, kind: &str) -> Vec<(u32, u8)> {
    words(name, kind)
        .map(|word| {
            let (start, code) = word.split_once(':').expect("start:code");
            (hex(start), hex(code) as u8)
        })
        .collect()
}

/// The three ways into a type, and the way out, as plain functions.
struct Type {
    name: &'static str,
    format: FloatFormat,
    from_f32: fn(f32) -> u8,
    from_f64: fn(f64) -> u8,
    to_f32: fn(u8) -> f32,
}

macro_rules! types {
    ($($name:ident)*) => {
        [$(Type {
            name: $name::NAME,
            format: $name::FORMAT,
            from_f32: |x| $name::from_f32(x).to_bits(),
            from_f64: |x| $name::from_f64(x).to_bits(),
            to_f32: |bits| $name::from_bits(bits).to_f32(),
        }),*]
    };
}

fn types() -> [Type; 11] {
    types! { F8E5M2 F8E4M3 F8E4M3FN F8E4M3B11FNUZ F8E3M4 F8E5M2FNUZ F8E4M3FNUZ F8E8M0FNU F4E2M1FN F6E3M2FN F6E2M3FN }
}

#[test]
fn decoding_is_that_of_ml_dtypes() {
    for t in types() {
        let mut count = 0;
        for (code, word) in words(t.name, "decode").enumerate() {
            let value = (t.to_f32)(code as u8);
            match word {
                "nan" => assert!(value.is_nan() && t.format.is_nan(code as u32), "{} {code:x}", t.name),
                bits => assert_eq!(value.to_bits(), hex(bits), "{} {code:x}", t.name),
            }
            assert_eq!(t.format.decode(code as u32).to_bits(), f64::from(value).to_bits());
            count += 1;
        }
        assert_eq!(count, 1 << t.format.bits(), "{}", t.name);
    }
}

/// All 65536 patterns of a 16-bit type, expanded from the runs.
fn every_16_bit_pattern(kind: &str, widen: fn(u16) -> f32) {
    for t in types() {
        let runs = runs(t.name, kind);
        let mut next = 0;
        let mut code = 0;
        for pattern in 0..=u16::MAX {
            if runs.get(next).is_some_and(|run| run.0 == u32::from(pattern)) {
                code = runs[next].1;
                next += 1;
            }
            let x = widen(pattern);
            let is_nan = x.is_nan() || t.format.is_nan(code.into());
            let expected = if is_nan { t.format.converted_nan_bits() as u8 } else { code };
            assert_eq!((t.from_f32)(x), expected, "{} from {kind} {pattern:x} = {x:e}", t.name);
            assert_eq!((t.from_f64)(f64::from(x)), expected);
        }
        assert_eq!(next, runs.len());
    }
}

#[test]
fn encoding_of_every_f16_is_that_of_ml_dtypes() {
    every_16_bit_pattern("f16", |bits| half::f16::from_bits(bits).to_f32());
}

#[test]
fn encoding_of_every_bf16_is_that_of_ml_dtypes() {
    every_16_bit_pattern("bf16", |bits| half::bf16::from_bits(bits).to_f32());
}

/// Encoding is monotone, so both ends of each run decide every f32.
#[test]
fn encoding_of_f32_changes_where_that_of_ml_dtypes_does() {
    for t in types() {
        let runs = runs(t.name, "f32");
        for (i, &(start, code)) in runs.iter().enumerate() {
            let end = match runs.get(i + 1) {
                Some(&(0x8000_0000, _)) => 0x7f80_0000,
                Some(&(next, _)) => next - 1,
                None => 0xff80_0000,
            };
            for pattern in [start, start + (end - start) / 2, end] {
                let x = f32::from_bits(pattern);
                let code =
                    if t.format.is_nan(code.into()) { t.format.converted_nan_bits() as u8 } else { code };
                assert_eq!((t.from_f32)(x), code, "{} from {pattern:x} = {x:e}", t.name);
            }
        }
    }
}

/// Around each midpoint of adjacent numbers the nearest f64s decide rounding to nearest, ties to the even
/// code: no double rounding through f32. (The power-of-two type has other rules: next test.)
#[test]
fn one_rounding_from_f64() {
    for f in types().map(|t| t.format).into_iter().chain([FloatFormat::F16, FloatFormat::BF16]) {
        if f.specials == Specials::Scale {
            continue;
        }
        let check = |x: f64, expected: u32| {
            assert_eq!(f.encode(x), expected, "{f:?} from {x:e}");
            let negative = match expected {
                0 if !f.has_negative_zero() => 0,
                magnitude if f.is_nan(magnitude) => magnitude,
                magnitude => magnitude | f.sign_mask(),
            };
            assert_eq!(f.encode(-x), negative, "{f:?} from {:e}", -x);
        };
        for code in 0..f.max_bits() {
            let (low, high) = (f.decode(code), f.decode(code + 1));
            let middle = low + (high - low) / 2.0;
            check(low, code);
            check(low.next_up(), code);
            check(middle.next_down(), code);
            check(middle, if code % 2 == 0 { code } else { code + 1 });
            check(middle.next_up(), code + 1);
            check(high, code + 1);
        }
        // Overflow begins half a unit above the largest number, where the tie goes to the even of the two.
        let top = f.max_bits();
        let (below, max) = (f.decode(top - 1), f.decode(top));
        let limit = max + (max - below) / 2.0;
        let overflow = f.infinity_bits().or(f.nan_bits()).unwrap_or(top);
        check(limit.next_down(), top);
        check(limit, if top % 2 == 0 { top } else { overflow });
        check(limit.next_up(), overflow);
        check(f64::MAX, overflow);
        check(f64::INFINITY, overflow);
    }
}

#[test]
fn power_of_two_type() {
    let code = |x: f64| F8E8M0FNU::from_f64(x).to_bits();
    let two = |e: i32| f64::powi(2.0, e);
    for e in -126..=127 {
        assert_eq!(code(two(e)), (e + 127) as u8);
        assert_eq!(code((1.5 * two(e)).next_down()), (e + 127) as u8);
        assert_eq!(code(1.5 * two(e)), (e + 128) as u8, "ties go up, past the largest to NaN (0xff)");
    }
    assert_eq!(code(two(-127)), 0);
    assert_eq!(code(two(-127).next_up()), 1, "between the two smallest, up");
    assert_eq!([code(two(-128)), code(f64::from_bits(1))], [0, 0]);
    for x in [0.0, -0.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, two(128)] {
        assert_eq!(code(x), 0xff);
    }
}

#[test]
fn facts() {
    let facts = |f: FloatFormat| {
        (
            f.decode(f.max_bits()),
            f.decode(f.min_positive_normal_bits()),
            f.decode(f.min_positive_bits()),
            f.epsilon(),
        )
    };
    let two = |e: i32| f64::powi(2.0, e);
    assert_eq!(facts(F8E5M2::FORMAT), (57344.0, two(-14), two(-16), 0.25));
    assert_eq!(facts(F8E4M3::FORMAT), (240.0, two(-6), two(-9), 0.125));
    assert_eq!(facts(F8E4M3FN::FORMAT), (448.0, two(-6), two(-9), 0.125));
    assert_eq!(facts(F8E4M3B11FNUZ::FORMAT), (30.0, two(-10), two(-13), 0.125));
    assert_eq!(facts(F8E3M4::FORMAT), (15.5, 0.25, two(-6), 0.0625));
    assert_eq!(facts(F8E5M2FNUZ::FORMAT), (57344.0, two(-15), two(-17), 0.25));
    assert_eq!(facts(F8E4M3FNUZ::FORMAT), (240.0, two(-7), two(-10), 0.125));
    assert_eq!(facts(F8E8M0FNU::FORMAT), (two(127), two(-127), two(-127), 1.0));
    assert_eq!(facts(F4E2M1FN::FORMAT), (6.0, 1.0, 0.5, 0.5));
    assert_eq!(facts(F6E3M2FN::FORMAT), (28.0, 0.25, 0.0625, 0.25));
    assert_eq!(facts(F6E2M3FN::FORMAT), (7.5, 1.0, 0.125, 0.125));
    assert_eq!(F8E5M2::INFINITY.map(F8E5M2::to_bits), Some(0x7c));
    assert_eq!(F8E4M3FN::INFINITY.map(F8E4M3FN::to_bits), None);
    assert_eq!(
        [F8E5M2::NAN.to_bits(), F8E4M3FN::NAN.to_bits(), F8E5M2FNUZ::NAN.to_bits()],
        [0x7e, 0x7f, 0x80]
    );
    assert_eq!([F4E2M1FN::NAN.to_bits(), F6E3M2FN::NAN.to_bits()], [0x08, 0x20]);
    for negative_nan in [-f64::NAN, f64::from_bits(0xfff0_0000_0000_0001)] {
        assert_eq!(F8E4M3FN::from_f64(negative_nan).to_bits(), 0x7f);
        assert_eq!(F4E2M1FN::from_f64(negative_nan).to_bits(), 0x08);
    }
}

/// The described wider formats agree with the hardware and with `half` (whose own `from_f64` rounds twice).
#[test]
fn wider_formats() {
    for pattern in 0..=u16::MAX {
        let (f16, bf16) = (half::f16::from_bits(pattern), half::bf16::from_bits(pattern));
        for (format, value, is_nan) in [
            (FloatFormat::F16, f16.to_f64(), f16.is_nan()),
            (FloatFormat::BF16, bf16.to_f64(), bf16.is_nan()),
        ] {
            assert_eq!(format.is_nan(pattern.into()), is_nan);
            if !is_nan {
                assert_eq!(format.decode(pattern.into()).to_bits(), value.to_bits());
                assert_eq!(format.encode(value), pattern.into());
            }
        }
    }
    // A linear congruential walk over f64 patterns, most of them in the range of f32.
    let mut state = 1u64;
    for _ in 0..200_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let exponent = 860 + (state >> 40) % 300;
        let x = f64::from_bits(state & 0x800f_ffff_ffff_ffff | exponent << 52);
        assert_eq!(FloatFormat::F32.encode(x), (x as f32).to_bits(), "{x:e}");
    }
}

#[test]
fn comparison_is_by_value() {
    assert_eq!(F8E5M2::from_bits(0x80), F8E5M2::from_bits(0));
    assert_ne!(F8E5M2::NAN, F8E5M2::NAN);
    assert!(F8E4M3FN::from_f32(-1.0) < F8E4M3FN::from_f32(2.0));
    assert_eq!(F8E4M3FN::NAN.partial_cmp(&F8E4M3FN::NAN), None);
    assert_eq!(F4E2M1FN::from_bits(0xf7).to_bits(), 7);
    assert_eq!(format!("{} {:?}", F8E4M3FN::from_f32(-1.5), F8E4M3FN::from_f32(-1.5)), "-1.5 -1.5_f8e4m3fn");
}

/// Against the definition: every value of the one, encoded in the other, comes back with its sign.
#[test]
fn what_a_format_holds_comes_back() {
    let formats: Vec<FloatFormat> =
        types().iter().map(|t| t.format).chain([FloatFormat::F16, FloatFormat::BF16]).collect();
    for (i, &to) in formats.iter().chain(&[FloatFormat::F32]).enumerate() {
        for (j, &from) in formats.iter().enumerate() {
            let comes_back = |bits: u32| {
                let x = from.decode(bits);
                let y = to.decode(to.encode(x));
                x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan()
            };
            assert_eq!(to.holds(from), (0..1 << from.bits()).all(comes_back), "{i} of {j}");
        }
    }
    use hlo::ElementType::{BF16, C64, C128, F8E8M0FNU, F16, F32, F64, Pred, S8, S16, U8, U16};
    for (a, b, holding) in [
        (F16, BF16, F32),
        (F16, F8E8M0FNU, F32),
        (BF16, F8E8M0FNU, BF16),
        (F32, F64, F64),
        (C128, C64, C128),
        (U8, S16, S16),
        (Pred, Pred, Pred),
    ] {
        assert_eq!((a.holding(b), b.holding(a)), (holding, holding), "{a} {b}");
    }
    assert!(!U8.holds(S8) && !U16.holds(S8) && !S8.holds(U8) && !F64.holds(S8) && !F32.holds(F64));
}
