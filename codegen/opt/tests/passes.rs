//! What passes make of small programs, as data: `cases/PASS.txt` holds cases of a pass, each a program, `//
//! becomes`, and the program that it must become (`// stays` where nothing must happen). Both are then run on
//! operands that hold NaNs with payloads, zeros of both signs, infinities and denormals, in both modes of
//! `--accumulate`, and must give the same bits (but for the passes of `--fast-math`).
//!
//! `HLO_BLESS=1` writes what passes make of the programs into the files; read the difference.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;

use hlo::elided::splitmix64;
use hlo::print::{PrintOptions, print_module};
use hlo::{ArrayLiteral, BufferOf, Literal, Module, Shape, TypeClass, with_element_type};
use hlo_interp::{Accumulate, Interpreter, Options, Value};
use hlo_opt::passes::{DECLARED, FAST_MATH, Fuel, by_name};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

fn parse(text: &str) -> Module {
    let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
    let module = parsed.module.unwrap_or_else(|| panic!("{:?}\n{text}", parsed.diagnostics));
    let found = hlo::verify::verify(&module);
    assert!(!found.has_errors(), "{found:?}\n{text}");
    module
}

fn text(module: &Module) -> String {
    let options = PrintOptions { control_predecessors: true, ..PrintOptions::SHORT_PARSABLE };
    print_module(&module.compact(), &options).trim().to_owned()
}

/// One case: what it is about, the program, and what it becomes, if anything.
struct Case {
    title: String,
    before: String,
    after: Option<String>,
}

fn cases(file: &str) -> Vec<Case> {
    let parts = file.split("// case: ").skip(1);
    parts
        .map(|part| {
            let (title, body) = part.split_once('\n').unwrap();
            let (before, after) = match body.split_once("// becomes\n") {
                Some((before, after)) => (before, Some(after.trim().to_owned())),
                None => (body.split_once("// stays").map_or(body, |(b, _)| b), None),
            };
            Case { title: title.to_owned(), before: before.trim().to_owned(), after }
        })
        .collect()
}

/// Any bits, many of them special.
fn argument(shape: &Shape, seed: u64) -> Literal {
    let Shape::Array(array) = shape else {
        let parts = shape.as_tuple().unwrap_or_default();
        return Literal::Tuple(
            parts.iter().enumerate().map(|(i, s)| argument(s, splitmix64(seed + i as u64))).collect(),
        );
    };
    let (ty, bits) = (array.element_type, array.element_type.real_part().bits());
    let special = |r: u64| -> u128 {
        let ones = u128::MAX >> (128 - bits);
        let sign = 1u128 << (bits - 1);
        match (ty.class(), r % 16) {
            (TypeClass::Pred, _) => u128::from(r & 1),
            (_, 0) => 0,
            (_, 1) => sign,
            (_, 2) => ones,
            (_, 3) => ones ^ sign,
            (_, 4) => 1,
            (_, 5) => sign | 1,
            // Infinities and NaNs with payloads, in the types that have them.
            (TypeClass::Float | TypeClass::Complex, 6) => ones ^ sign ^ (ones >> 9),
            (TypeClass::Float | TypeClass::Complex, 7) => (ones ^ (ones >> 9)) | 3,
            (_, 8..12) => u128::from(r >> 32 & 7),
            (_, _) => (u128::from(splitmix64(r)) << 64 | u128::from(splitmix64(!r))) & ones,
        }
    };
    let n = array.elements() as u64;
    let element = |i: u64| {
        let r = splitmix64(seed ^ splitmix64(i));
        let low = special(r);
        if ty.is_complex() { low | special(splitmix64(r)) << bits } else { low }
    };
    let buffer = with_element_type!(ty, T => {
        <T as BufferOf>::wrap((0..n).map(|i| <T as hlo::Bits>::from_bits(element(i))).collect())
    });
    Literal::Array(ArrayLiteral { dims: array.dims.clone(), buffer: buffer.into() })
}

fn run(module: &Module, seed: u64, accumulate: Accumulate) -> Result<Literal, String> {
    let shapes = module.program_shape(module.entry()).unwrap().parameters;
    let arguments = shapes.iter().enumerate().map(|(i, s)| argument(s, splitmix64(seed << 8 | i as u64)));
    let options = Options { accumulate, fuel: Some(1 << 14), ..Options::default() };
    Interpreter::new(module, options)
        .run(arguments.map(Value::from_literal).collect())
        .map(Value::into_literal)
        .map_err(|e| e.to_string())
}

#[test]
fn cases_become_what_they_must_and_keep_their_bits() {
    let bless = std::env::var_os("HLO_BLESS").is_some();
    let mut failures = Vec::new();
    for declared in DECLARED.iter().chain(FAST_MATH) {
        let keeps_bits = DECLARED.iter().any(|d| d.name == declared.name);
        let path = folder().join(format!("{}.txt", declared.name));
        let file = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut blessed = file.split_once("// case: ").map_or(String::new(), |(head, _)| head.to_owned());
        let all = cases(&file);
        assert!(!all.is_empty(), "{}", path.display());
        assert!(bless || all.iter().any(|c| c.after.is_some()), "{}: no case applies", path.display());
        for case in all {
            let module = parse(&case.before);
            let mut form = module.clone();
            let n = by_name(declared.name).unwrap().run(&mut form, &mut Fuel::UNLIMITED.clone());
            let found = hlo::verify::verify(&form);
            assert!(found.is_empty(), "{}: {}: {found:?}\n{}", declared.name, case.title, text(&form));
            let got = (n > 0).then(|| text(&form));
            if got != case.after {
                failures.push(format!(
                    "{}: {}:\n{}",
                    declared.name,
                    case.title,
                    got.clone().unwrap_or_default()
                ));
            }
            blessed.push_str(&format!("// case: {}\n{}\n", case.title, case.before));
            match &got {
                Some(got) => blessed.push_str(&format!("// becomes\n{got}\n\n")),
                None => blessed.push_str("// stays\n\n"),
            }
            for seed in 0..if keeps_bits { 8 } else { 0 } {
                for accumulate in [Accumulate::Exact, Accumulate::Region] {
                    let (right, got) = (run(&module, seed, accumulate), run(&form, seed, accumulate));
                    assert_eq!(
                        right,
                        got,
                        "{}: {} changes bits ({accumulate:?}, seed {seed}):\n{}",
                        declared.name,
                        case.title,
                        text(&form)
                    );
                }
            }
        }
        if bless {
            std::fs::write(&path, format!("{}\n", blessed.trim_end())).unwrap();
        }
    }
    assert!(bless || failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn fuel_ends_a_pass_after_any_number_of_applications() {
    let module = parse(
        "HloModule m
ENTRY main {
  a = f32[4] parameter(0)
  b = f32[4] copy(a)
  c = f32[4] copy(b)
  ROOT d = f32[4] copy(c)
}",
    );
    let pass = by_name("reshape-simplifier").unwrap();
    for n in 0..=3 {
        let mut form = module.clone();
        let mut fuel = Fuel::new(n);
        assert_eq!(pass.run(&mut form, &mut fuel), n);
        let copies = form.instructions(form.entry()).count();
        assert_eq!(copies, 4 - n as usize);
    }
}
