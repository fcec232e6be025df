//! Which kernels the pipeline of the CPU compiler makes of programs, as data: `kernels.txt` holds programs,
//! each followed by `// kernels` and a line for each instruction that does something, in the order in which
//! it is called. What every pass of it leaves must verify.
//!
//! `HLO_BLESS=1` rewrites the lines; read the difference. `HLO_KERNELS=FOLDER` prints the same of all
//! programs of a folder, and how long passes took. Programs of filetests and the corpus in the tree, and of
//! the folder that `HLO_PROGRAMS` names, must keep their bits.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use hlo::attrs::AttrKey;
use hlo::elided::splitmix64;
use hlo::{ArrayLiteral, BufferOf, Literal, Module, Opcode, Shape, TypeClass, with_element_type};
use hlo_interp::{Accumulate, Interpreter, Options, Value};
use hlo_opt::fusion::kinds::{is_view, programs};
use hlo_opt::passes::{Fuel, Pass, Pipeline, Steps};

fn parse(text: &str) -> Module {
    let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
    let module = parsed.module.unwrap_or_else(|| panic!("{:?}\n{text}", parsed.diagnostics));
    let found = hlo::verify::verify(&module);
    assert!(!found.has_errors(), "{found:?}\n{text}");
    module
}

/// A line for each instruction that does something.
fn kernels(module: &Module) -> String {
    let mut out = String::new();
    for c in programs(module) {
        for id in module.instructions(c) {
            let instr = module.instr(id);
            if matches!(
                instr.opcode,
                Opcode::Parameter | Opcode::Constant | Opcode::Tuple | Opcode::GetTupleElement
            ) || is_view(module, id)
            {
                continue;
            }
            let shape = instr.shape.without_layout();
            let kind = instr.attrs.fusion_kind().map_or("", |k| k.text());
            let inside: Vec<&str> = instr
                .attrs
                .computation(AttrKey::Calls)
                .into_iter()
                .flat_map(|c| module.instructions(c))
                .map(|id| module.instr(id).opcode)
                .filter(|o| {
                    !matches!(o, Opcode::Parameter | Opcode::Constant | Opcode::Tuple | Opcode::Reshape)
                })
                .map(Opcode::name)
                .collect();
            let mut line = format!("{} {kind} {shape}: {}", instr.opcode, inside.join(" "));
            if c != module.entry() {
                line = format!("  {line}");
            }
            writeln!(out, "{}", line.trim_end_matches([' ', ':'])).unwrap();
        }
    }
    out.trim_end().to_owned()
}

fn optimized(module: &Module) -> Module {
    let mut form = module.clone();
    Pipeline::cpu(3).verified().run(&mut form, &mut Fuel::UNLIMITED.clone()).unwrap();
    form
}

#[test]
fn programs_become_these_kernels() {
    let bless = std::env::var_os("HLO_BLESS").is_some();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/kernels.txt");
    let file = std::fs::read_to_string(&path).unwrap();
    let mut blessed = file.split_once("// case: ").map_or(String::new(), |(head, _)| head.to_owned());
    let mut failures = String::new();
    for part in file.split("// case: ").skip(1) {
        let (title, body) = part.split_once('\n').unwrap();
        let (program, wanted) = body.split_once("// kernels\n").unwrap();
        let got = kernels(&optimized(&parse(program)));
        if got != wanted.trim_end() {
            writeln!(failures, "{title}:\n{got}\n").unwrap();
        }
        write!(blessed, "// case: {title}\n{}\n\n// kernels\n{got}\n\n", program.trim_end()).unwrap();
    }
    if bless {
        std::fs::write(&path, format!("{}\n", blessed.trim_end())).unwrap();
    } else {
        assert!(failures.is_empty(), "{failures}");
    }
}

struct Times(Instant, Vec<(String, f64)>);

impl Steps for Times {
    fn before(&mut self, _: usize, _: &dyn Pass, _: &Module) {
        self.0 = Instant::now();
    }
    fn after(&mut self, _: usize, pass: &dyn Pass, _: &Module, _: u64) {
        self.1.push((pass.name().to_owned(), self.0.elapsed().as_secs_f64()));
    }
}

#[test]
fn kernels_of_a_folder() {
    let Some(folder) = std::env::var_os("HLO_KERNELS") else { return };
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "hlo"));
    files.sort();
    for file in files {
        let module = parse(&std::fs::read_to_string(&file).unwrap());
        let mut form = module.clone();
        let mut times = Times(Instant::now(), Vec::new());
        let began = Instant::now();
        Pipeline::cpu(3).run_watched(&mut form, &mut Fuel::UNLIMITED.clone(), &mut times).unwrap();
        let took = began.elapsed().as_secs_f64();
        assert!(!hlo::verify::verify(&form).has_errors(), "{:?}", hlo::verify::verify(&form));
        let lines = kernels(&form);
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        println!("== {name}: {} kernels, {:.2} ms", lines.lines().count(), took * 1e3);
        times.1.sort_by(|a, b| b.1.total_cmp(&a.1));
        let slow: Vec<String> = times.1.iter().take(6).map(|(n, t)| format!("{n} {:.2}", t * 1e3)).collect();
        println!("   {}\n{lines}\n", slow.join(", "));
    }
}

/// Small numbers, and some special ones: what indices, masks and functions can do something with.
fn argument(shape: &Shape, seed: u64) -> Literal {
    let Shape::Array(array) = shape else {
        let parts = shape.as_tuple().unwrap_or_default();
        let part = |(i, s)| argument(s, splitmix64(seed + i as u64));
        return Literal::Tuple(parts.iter().enumerate().map(part).collect());
    };
    let ty = array.element_type;
    let element = |i: u64| -> u128 {
        let r = splitmix64(seed ^ splitmix64(i));
        let bits = ty.real_part().bits();
        let ones = u128::MAX >> (128 - bits);
        match ty.class() {
            TypeClass::Pred => u128::from(r & 1),
            TypeClass::Signed | TypeClass::Unsigned => u128::from(r >> 40 & 7) & ones,
            TypeClass::Float | TypeClass::Complex => match r % 16 {
                0 => 0,
                1 => 1 << (bits - 1),
                2 => ones,
                3 => 1,
                // Around one: the exponent's ones below its highest bit.
                _ => {
                    (u128::from(splitmix64(r)) << 64 | u128::from(r)) & (ones >> 2)
                        | (ones >> 2 & !(ones >> 7))
                }
            },
        }
    };
    let n = array.elements() as u64;
    let buffer = with_element_type!(ty, T => {
        <T as BufferOf>::wrap((0..n).map(|i| <T as hlo::Bits>::from_bits(element(i))).collect())
    });
    Literal::Array(ArrayLiteral { dims: array.dims.clone(), buffer: buffer.into() })
}

fn run(module: &Module, accumulate: Accumulate, fuel: u64) -> Result<Literal, String> {
    let shapes = module.program_shape(module.entry()).unwrap().parameters;
    let arguments = shapes.iter().enumerate().map(|(i, s)| argument(s, i as u64));
    let options = Options { accumulate, fuel: Some(fuel), ..Options::default() };
    Interpreter::new(module, options)
        .run(arguments.map(Value::from_literal).collect())
        .map(Value::into_literal)
        .map_err(|e| e.to_string())
}

/// Programs small enough to be run by an unoptimized interpreter.
fn is_small(module: &Module) -> bool {
    let all = module.computations().iter().flat_map(|&c| module.instructions(c));
    let mut leaves = 0i64;
    for id in all {
        let shape = &module.instr(id).shape;
        let plain = shape.leaves().iter().all(|s| s.as_array().is_some_and(|a| !a.is_dynamic()));
        if !plain {
            return false;
        }
        leaves = leaves.saturating_add(shape.checked_bytes().unwrap_or(i64::MAX));
    }
    leaves < 1 << 18
}

#[test]
fn programs_keep_their_bits() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let mut pending = vec![root.join("filetests"), root.join("corpus")];
    pending.extend(std::env::var_os("HLO_PROGRAMS").map(PathBuf::from));
    let (mut ran, mut changed) = (0, 0);
    let only = std::env::var("HLO_PROGRAM").ok();
    while let Some(folder) = pending.pop() {
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                pending.push(path);
                continue;
            }
            let name = path.display().to_string();
            if path.extension().is_none_or(|e| e != "hlo") || only.as_ref().is_some_and(|o| !name.contains(o))
            {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for part in text.split("\n// ==== ").filter(|p| p.contains("HloModule")) {
                let start = part.find("HloModule").unwrap();
                let parsed = hlo_parser::parse_module(&part[start..], &hlo_parser::ParseOptions::default());
                let Some(module) = parsed.module else { continue };
                if hlo::verify::verify(&module).has_errors() || !is_small(&module) {
                    continue;
                }
                for level in [0, 3] {
                    let mut form = module.clone();
                    let done = Pipeline::cpu(level).verified().run(&mut form, &mut Fuel::UNLIMITED.clone());
                    done.unwrap_or_else(|b| panic!("{name}: {b:?}\n{part}"));
                    for accumulate in [Accumulate::Exact, Accumulate::Region] {
                        let Ok(right) = run(&module, accumulate, 1 << 14) else { continue };
                        ran += 1;
                        changed += usize::from(form.computations().len() != module.computations().len());
                        let got = run(&form, accumulate, 1 << 18);
                        assert!(
                            got.as_ref() == Ok(&right),
                            "{name}, O{level}, {accumulate:?}:\n{part}\n{got:?}\n{right:?}"
                        );
                    }
                }
            }
        }
    }
    assert!(only.is_some() || ran > 1000 && changed > 500, "{ran} ran, {changed} changed");
}
