//! HLO as StableHLO and back: the same bits, and `hlo convert` and `hlo reduce` between them.

use std::collections::BTreeMap;
use std::path::Path;

use hlo::print::{PrintOptions, print_module};
use hlo::{Diagnostics, Module};
use hlo_engines::engine::Inputs;
use hlo_engines::frontend::parse_text;
use hlo_generate::generate;
use hlo_interp::Accumulate;
use hlo_mlir::bytecode::{self, Version};
use hlo_mlir::convert::{ConvertOptions, convert};
use hlo_mlir::from_hlo::from_hlo;
use hlo_mlir::ir;
use hlo_mlir::print::{self as mlir, print};
use hlo_mlir::text::{ReadOptions, parse};
use libtest_mimic::{Failed, Trial};

use crate::cli::{Dir, ends, err, hlo, json_lines, out};
use crate::generated::{run, variable};
use crate::{failed, function};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("stablehlo/generated programs", generated_programs),
        function("stablehlo/the corpus", corpus),
        function("stablehlo/convert", conversions),
        function("stablehlo/convert refuses", refusals),
        function("stablehlo/reduce", reductions),
        function("stablehlo/fuzz", hunts),
        function("stablehlo/isolate", isolation),
    ]
}

fn first(found: &Diagnostics) -> String {
    found.iter().next().map(|d| format!("{} {}", d.code.as_str(), d.message)).unwrap_or_default()
}

/// The HLO of a tree.
fn hlo_of(tree: &ir::Module) -> Result<Module, String> {
    let module = convert(tree, &ConvertOptions::default()).map_err(|d| first(&d))?.module;
    let found = hlo::verify::verify(&module);
    if found.has_errors() { Err(first(&found)) } else { Ok(module) }
}

/// A program as it comes back from StableHLO in text, in the generic form, and in bytecode. `None` with the
/// reason: it has no StableHLO.
fn there_and_back(module: &Module) -> Result<Result<Vec<Module>, String>, String> {
    let tree = match from_hlo(module) {
        Ok(exported) => exported.module,
        Err(found) => return Ok(Err(first(&found))),
    };
    let mut back = Vec::new();
    for options in [mlir::PrintOptions::PRETTY, mlir::PrintOptions::default()] {
        let text = print(&tree, &options);
        let read = parse(&text, &ReadOptions::default()).map_err(|d| format!("{}\n{text}", first(&d)))?;
        back.push(hlo_of(&read).map_err(|e| format!("{e}\n{text}"))?);
    }
    // CHLO is no part of artifacts.
    if let Ok(bytes) = bytecode::write(&tree, Version::NEWEST) {
        let read = bytecode::read(&bytes).map_err(|d| format!("bytecode: {}", first(&d)))?;
        back.push(hlo_of(&read).map_err(|e| format!("bytecode: {e}"))?);
    }
    Ok(Ok(back))
}

/// Generated programs of consecutive seeds. What has no StableHLO (elements of one bit, floats of several
/// formats in one operation, a few opcodes) is refused by the name of an instruction.
fn generated_programs() -> Result<(), Failed> {
    let first_seed = variable("HLO_PROPERTY_SEED", 1) << 32;
    let count = variable("HLO_PROPERTY_CASES", 300);
    let (mut refused, mut kinds) = (0, BTreeMap::<String, usize>::new());
    for seed in first_seed..first_seed + count {
        let limits = if seed % 2 == 0 { generate::Limits::small() } else { generate::Limits::default() };
        let case = generate::case(seed, limits);
        let shown = || print_module(&case.module, &PrintOptions::source(&case.module));
        let back =
            there_and_back(&case.module).map_err(|e| failed(format!("seed {seed}: {e}\n{}", shown())))?;
        let back = match back {
            Ok(back) => back,
            Err(why) => {
                refused += 1;
                let (_, kind) = why.split_once(" = ").unwrap_or(("", &why));
                *kinds.entry(kind.to_owned()).or_default() += 1;
                continue;
            }
        };
        let results = |module: &Module| {
            let inputs = Inputs::new(module, &case.inputs).map_err(|f| f.message)?;
            run(module, inputs, Accumulate::Exact)
        };
        let expected = results(&case.module);
        for module in &back {
            if results(module) != expected {
                let text = print_module(module, &PrintOptions::source(module));
                return Err(failed(format!("seed {seed}: other results\n{}\n{text}", shown())));
            }
        }
    }
    if std::env::var_os("HLO_PROPERTY_SHOW").is_some() || refused * 2 > count {
        return Err(failed(format!("of {count} programs {refused} have no StableHLO: {kinds:#?}")));
    }
    Ok(())
}

/// Recorded programs: their StableHLO is read back as the program with the same results.
fn corpus() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/jax");
    let mut cases: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    cases.sort();
    let mut compared = 0;
    for case in cases.iter().step_by(3) {
        let Ok(text) = std::fs::read_to_string(case.join("module.hlo")) else { continue };
        let Some(module) = parse_text(&text).0 else { continue };
        let Ok(back) = there_and_back(&module).unwrap_or_else(|e| panic!("{}: {e}", case.display())) else {
            continue;
        };
        let inputs = generate::inputs(&module, 1);
        let results = |m: &Module| run(m, Inputs::new(m, &inputs).unwrap(), Accumulate::Exact).unwrap();
        let expected = results(&module);
        for module in &back {
            assert_eq!(results(module), expected, "{}", case.display());
        }
        compared += 1;
    }
    assert!(compared > 3, "{compared} programs");
}

const PROGRAM: &str = "HloModule m\n\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n\nENTRY main \
                       {\n  x = f32[2,3] parameter(0)\n  z = f32[] constant(0)\n  r = f32[2] reduce(x, z), dimensions={1}, \
                       to_apply=sum\n  c = f32[2,3] copy(x), control-predecessors={r}\n  ROOT t = (f32[2], f32[2,3]) tuple(r, c)\n}\n";

/// The StableHLO of that program as MLIR prints it (jaxlib 0.10.2 prints the same).
const PRETTY: &str = "module @m {\n  func.func public @main(%arg0: tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2x3xf32>) {\n    %cst = \
                      stablehlo.constant dense<0.000000e+00> : tensor<f32>\n    %0 = stablehlo.reduce(%arg0 init: %cst) applies \
                      stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>\n    return %0, %arg0 : \
                      tensor<2xf32>, tensor<2x3xf32>\n  }\n}\n";

/// All directions: text and messages of HLO, text and bytecode of StableHLO.
fn conversions() {
    let d = Dir::new();
    let file = d.file("m.hlo", PROGRAM);
    let path = |name: &str| d.path(name).to_str().unwrap().to_owned();
    let o = hlo(&["convert", &file, "--to", "stablehlo"]);
    ends(&o, 0);
    assert_eq!(out(&o), PRETTY);
    // What is left out is said.
    let o = hlo(&["convert", &file, "-o", &path("m.mlir")]);
    ends(&o, 0);
    let said = format!("{}{}", out(&o), err(&o));
    assert!(said.contains("control-predecessors"), "{said}");
    let steps = [
        ("m.mlir", "m.mlirbc", &["--target-version", "1.0.0"][..]),
        ("m.mlirbc", "again.mlir", &[]),
        ("again.mlir", "m.pb", &[]),
        ("m.pb", "last.bc", &["--target-version", "0.14.0"]),
        ("last.bc", "last.mlir", &[]),
        ("last.bc", "last.hlo", &[]),
    ];
    for (from, to, more) in steps {
        ends(&hlo(&[&["convert", &path(from), "-o", &path(to)], more].concat()), 0);
    }
    for name in ["again.mlir", "last.mlir"] {
        assert_eq!(std::fs::read_to_string(path(name)).unwrap(), PRETTY, "{name}");
    }
    assert!(std::fs::read(path("m.mlirbc")).unwrap().starts_with(b"ML\xefR"));
    let text = std::fs::read_to_string(path("last.hlo")).unwrap();
    assert!(text.contains("f32[2] reduce(%parameter"), "{text}");
    // Bytecode is run as it is, and its errors have spans in its printed text.
    ends(&hlo(&["run", &path("m.mlirbc")]), 0);
}

fn refusals() {
    let d = Dir::new();
    let file = d.file(
        "m.hlo",
        "HloModule m\n\nENTRY main {\n  x = f32[4] parameter(0)\n  b = u32[4] parameter(1)\n  ROOT r = s8[4] stochastic-convert(x, b)\n}\n",
    );
    let o = hlo(&["convert", &file, "--to", "bytecode"]);
    ends(&o, 5);
    assert!(err(&o).contains("U0006") && err(&o).contains("%r = stochastic-convert"), "{}", err(&o));
    assert!(out(&o).is_empty());
    for version in ["0.8.0", "1.21.0", "1.0"] {
        ends(&hlo(&["convert", &file, "--to", "bytecode", "--target-version", version]), 2);
    }
    ends(&hlo(&["convert", &file, "--to", "hlo", "--target-version", "1.0.0"]), 2);
    let broken = d.file("broken.mlir", "module {\n");
    ends(&hlo(&["convert", &broken, "--to", "bytecode"]), 3);
}

/// A program that the fault `pad-low-sign` computes wrongly.
const PADDED: &str = "func.func @main(%x: tensor<16x8xf32>) -> tensor<16x8xf32> {\n  %z = stablehlo.constant dense<1.0> : tensor<f32>\n  %s = \
     stablehlo.sine %x : tensor<16x8xf32>\n  %y = stablehlo.pad %s, %z, low = [8, 0], high = [-8, 0], interior = [0, 0] : \
     (tensor<16x8xf32>, tensor<f32>) -> tensor<16x8xf32>\n  %c = stablehlo.cosine %y : tensor<16x8xf32>\n  return %c : \
     tensor<16x8xf32>\n}\n";

fn reductions() {
    let d = Dir::new();
    let file = d.file("m.mlir", PADDED);
    let folder = d.path("out");
    let o = hlo(&[
        "reduce",
        &file,
        "--engines",
        "interpreter,faulty:pad-low-sign",
        "--out",
        folder.to_str().unwrap(),
    ]);
    ends(&o, 0);
    assert!(out(&o).contains("stablehlo.pad %"), "{}", out(&o));
    assert!(!out(&o).contains("sine"), "{}", out(&o));
    let text = std::fs::read_to_string(folder.join("module.mlir")).unwrap();
    assert!(out(&o).contains(text.trim_end()), "{}", out(&o));
    ends(&hlo(&["verify", folder.join("module.mlir").to_str().unwrap()]), 0);
    assert!(folder.join("module.hlo").exists());
}

/// Findings in StableHLO are StableHLO, too, changed and reduced.
fn hunts() {
    let d = Dir::new();
    let file = d.file("m.mlir", PADDED);
    for (from, count) in [("--programs", "1"), ("--mutate", "8")] {
        let found = d.path(from);
        let engines = "interpreter,faulty:pad-low-sign";
        let found = found.to_str().unwrap();
        let o = hlo(&[
            "fuzz",
            "--engines",
            engines,
            from,
            &file,
            "--count",
            count,
            "--max-findings",
            "1",
            "--out",
            found,
            "--json",
        ]);
        ends(&o, 1);
        let folder = json_lines(&o)[0]["folder"].as_str().unwrap().to_owned();
        let reduced = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).find(|p| p.is_dir());
        for folder in [Path::new(&folder), &reduced.unwrap()] {
            let file = folder.join("module.mlir");
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text.contains("stablehlo.pad %"), "{text}");
            ends(&hlo(&["verify", file.to_str().unwrap()]), 0);
            // The folder is still one program.
            ends(&hlo(&["run", folder.to_str().unwrap()]), 1);
        }
    }
}

/// Who is to blame is shown as the operation that was given.
fn isolation() {
    let d = Dir::new();
    let o = hlo(&["isolate", &d.file("m.mlir", PADDED), "--platform", "faulty:pad-low-sign"]);
    ends(&o, 1);
    assert!(out(&o).contains("  source   line 4: %y = stablehlo.pad %s, %z, low = [8, 0]"), "{}", out(&o));
}
