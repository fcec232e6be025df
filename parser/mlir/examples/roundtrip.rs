//! HLO to StableHLO and back: `roundtrip FILE...` says of how many programs the results have the same bits.
//! `--emit FOLDER` before the files writes each as `FOLDER/N.mlir` and, for each `--target VERSION`, as
//! `FOLDER/N.VERSION.bc`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hlo::literal::{Bits, BufferOf};
use hlo::{ArrayLiteral, Buffer, Dims, ElementType, Literal, Module, Shape, with_element_type};
use hlo_interp::{Interpreter, Options, Value};
use hlo_mlir::bytecode;
use hlo_mlir::convert::{ConvertOptions, convert};
use hlo_mlir::from_hlo::from_hlo;
use hlo_mlir::print::{PrintOptions, print};
use hlo_mlir::text::{ReadOptions, parse};

#[allow(clippy::print_stdout, reason = "this is what the program is for")]
fn main() {
    let (mut emit, mut targets, mut files) = (None, Vec::new(), Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--emit" => emit = arguments.next().map(PathBuf::from),
            "--target" => targets.extend(arguments.next()),
            _ => files.push(argument),
        }
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (n, path) in files.iter().enumerate() {
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        let outcome = case(&text, n, emit.as_deref(), &targets);
        let key = outcome.as_ref().err().map_or("same", |e| e.0);
        *counts.entry(key.to_owned()).or_default() += 1;
        if let Err((kind, why)) = outcome
            && kind != "input"
        {
            println!("{kind} {path}: {why}");
        }
    }
    println!("{} files: {counts:?}", files.len());
}

type Outcome = Result<(), (&'static str, String)>;

fn case(text: &str, n: usize, emit: Option<&std::path::Path>, targets: &[String]) -> Outcome {
    let first = |d: &hlo::Diagnostics| {
        d.iter().next().map(|d| format!("{} {}", d.code.as_str(), d.message)).unwrap_or_default()
    };
    let input = |why: &str| Err(("input", why.to_owned()));
    let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
    let Some(module) = parsed.module.filter(|_| !parsed.diagnostics.has_errors()) else {
        return input("does not parse");
    };
    if hlo::verify::verify(&module).has_errors() {
        return input("does not verify");
    }
    let exported = from_hlo(&module).map_err(|d| ("refused", first(&d)))?;
    let mlir = print(&exported.module, &PrintOptions::default());
    if let Some(folder) = emit {
        std::fs::write(folder.join(format!("{n}.mlir")), &mlir).expect("the file can be written");
        for target in targets {
            let version = target.parse().expect("a version is three numbers");
            match bytecode::write(&exported.module, version) {
                Ok(bytes) => std::fs::write(folder.join(format!("{n}.{target}.bc")), bytes)
                    .expect("the file can be written"),
                Err(d) => std::fs::write(folder.join(format!("{n}.{target}.err")), first(&d))
                    .expect("the file can be written"),
            }
        }
    }
    let read = parse(&mlir, &ReadOptions::default()).map_err(|d| ("reread", first(&d)))?;
    let again = convert(&read, &ConvertOptions::default()).map_err(|d| ("converted", first(&d)))?;
    let found = hlo::verify::verify(&again.module);
    if found.has_errors() {
        return Err(("verify", first(&found)));
    }
    if emit.is_some() {
        return Ok(());
    }
    let before = match run(&module) {
        Ok(value) => value,
        Err(why) => return Err(("not run", why)),
    };
    let after = run(&again.module).map_err(|why| ("run", why))?;
    if before == after { Ok(()) } else { Err(("differ", String::new())) }
}

fn run(module: &Module) -> Result<Vec<ArrayLiteral>, String> {
    let shapes = module.program_shape(module.entry()).expect("it has an entry").parameters;
    let arguments = shapes.iter().enumerate().map(|(n, s)| Value::from_literal(made(s, n as u64))).collect();
    let options = Options { fuel: Some(20_000_000), memory_limit_bytes: 1 << 30, ..Options::default() };
    let value = Interpreter::new(module, options).run(arguments).map_err(|e| e.to_string())?;
    Ok(value.into_literal().arrays().into_iter().cloned().collect())
}

fn made(shape: &Shape, seed: u64) -> Literal {
    match shape {
        Shape::Array(a) => {
            let n = a.elements();
            let buffer: Buffer =
                with_element_type!(a.element_type, T => numbers::<T>(a.element_type, n, seed));
            Literal::Array(
                ArrayLiteral::new(Dims::from_slice(&a.dims), buffer).expect("as many as its dimensions say"),
            )
        }
        Shape::Tuple(parts) => Literal::Tuple(parts.iter().map(|p| made(p, seed)).collect()),
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => Literal::Token,
    }
}

/// Small numbers; of integers the bits are theirs.
fn numbers<T: BufferOf>(ty: ElementType, n: usize, seed: u64) -> Buffer {
    let bits = |i: usize| -> u128 {
        let h = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(seed.wrapping_mul(77)) >> 40;
        let small = (h % 13) as f64 / 4.0 - 1.0;
        match ty {
            ElementType::F32 | ElementType::C64 => (small as f32).to_bits().into(),
            ElementType::F64 | ElementType::C128 => small.to_bits().into(),
            ElementType::F16 => hlo::half::f16::from_f64(small).to_bits().into(),
            ElementType::BF16 => hlo::half::bf16::from_f64(small).to_bits().into(),
            _ => u128::from(h % 5),
        }
    };
    T::wrap((0..n).map(|i| <T as Bits>::from_bits(bits(i))).collect())
}
