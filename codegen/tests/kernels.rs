//! Which kernels the pipeline of the CPU compiler makes of programs, as data: `kernels.txt` holds programs, each followed by `// kernels` and a line
//! for each instruction that does something, in the order in which it is called. What every pass of it leaves must verify.
//!
//! `HLO_BLESS=1` rewrites the lines; read the difference. `HLO_KERNELS=FOLDER` prints the same of all programs of a folder, and how long passes took.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use hlo::attrs::AttrKey;
use hlo::{Module, Opcode};
use hlo_codegen::fusion::kinds::{is_view, programs};
use hlo_codegen::passes::{Fuel, Pass, Pipeline, Steps};

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
