//! Every opcode on every element type.

use std::sync::Arc;

use hlo::{Buffer, Opcode, Shape};
use hlo_conformance::coverage::{Coverage, Key, Legal, key_of, probe};
use hlo_engines::engine::{Engine, Inputs, InterpreterEngine, RunOptions, devices};
use hlo_engines::frontend::parse_text;
use hlo_engines::inputs::{generate, plan};
use hlo_interp::device::host::Host;
use hlo_interp::{Tensor, Value};
use libtest_mimic::Trial;

use crate::cli::{Dir, ends, err, hlo, out};
use crate::{crate_dir, files_below, function};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        function("coverage/the verifier accepts the legal pairs and no others", verifier_agrees),
        function("coverage/every legal pair runs", everything_runs),
        function("coverage/a filetest runs every legal pair", no_holes),
        function("coverage/what counts", what_counts),
    ]
}

/// Parses and verifies a probe.
fn accepted(opcode: Opcode, key: Key) -> Result<(), String> {
    let text = probe(opcode, key).ok_or("no probe")?;
    let (module, mut found) = parse_text(&text);
    if let Some(module) = &module
        && !found.has_errors()
    {
        found.append(hlo::verify::verify(module));
        let used = module
            .computations()
            .iter()
            .flat_map(|&c| module.instructions(c))
            .any(|i| module.instr(i).opcode == opcode && key_of(module, module.instr(i)) == key);
        assert!(used, "the probe of {opcode} on {key} is of something else");
    }
    if found.has_errors() {
        return Err(found.iter().map(|d| d.message.clone()).collect::<Vec<_>>().join("; "));
    }
    Ok(())
}

fn verifier_agrees() {
    let legal = Legal::table();
    let mut wrong = Vec::new();
    for &opcode in Opcode::ALL {
        for key in legal.conceivable(opcode) {
            match (legal.contains(opcode, key), accepted(opcode, key)) {
                (true, Err(e)) => wrong.push(format!("{opcode} on {key} is rejected: {e}")),
                (false, Ok(())) => wrong.push(format!("{opcode} on {key} is accepted")),
                (true, Ok(())) | (false, Err(_)) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{} pairs:\n{}", wrong.len(), wrong.join("\n"));
}

/// Runs a probe on generated inputs.
fn runs(opcode: Opcode, key: Key) -> Result<(), String> {
    let text = probe(opcode, key).ok_or("no probe")?;
    let module = parse_text(&text).0.ok_or("does not parse")?;
    let devices = devices::stated(&module, None, None).map_err(|f| f.message)?;
    let inputs = plan(&module, None)
        .and_then(|p| generate(&p, 0, devices, 1 << 20))
        .and_then(|arrays| Inputs::new(&module, &arrays))
        .map_err(|f| f.message)?;
    let options = RunOptions { devices, ..RunOptions::default() };
    let inputs = Inputs { host: Arc::new(Zeros), ..inputs };
    let outcome = InterpreterEngine.run(&module, inputs, &options);
    outcome.into_results().map(|_| ()).map_err(|(_, d)| format!("{}: {}", d.code.as_str(), d.message))
}

/// A host that gives zeros.
#[derive(Debug)]
struct Zeros;

fn zeros(shape: &Shape) -> Value {
    match shape {
        Shape::Array(a) => {
            let n = a.checked_elements().unwrap_or(0) as usize;
            Tensor::new(a.dims.clone(), Buffer::zeros(a.element_type, n)).into()
        }
        Shape::Tuple(t) => Value::tuple(t.iter().map(zeros)),
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => Value::Token,
    }
}

impl Host for Zeros {
    fn infeed(&self, _: u32, shape: &Shape, _: &str) -> Result<Value, String> {
        Ok(zeros(shape))
    }

    fn outfeed(&self, _: u32, _: &Value, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn receive(&self, _: u32, _: i64, shape: &Shape) -> Result<Value, String> {
        Ok(zeros(shape))
    }

    fn send(&self, _: u32, _: i64, _: &Value) -> Result<(), String> {
        Ok(())
    }
}

fn everything_runs() {
    let legal = Legal::table();
    let mut wrong = Vec::new();
    for &opcode in Opcode::ALL {
        for &key in legal.keys(opcode) {
            if let Err(e) = runs(opcode, key) {
                wrong.push(format!("{opcode} on {key}: {e}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} pairs:\n{}", wrong.len(), wrong.join("\n"));
}

/// Filetests whose expected values come from elsewhere execute every legal pair.
fn no_holes() {
    let root = crate_dir().join("filetests");
    let mut files = files_below(&root, "hlo");
    files.retain(|f| !f.starts_with(root.join("verify")));
    let coverage = Coverage::measure(&files).unwrap();
    assert!(coverage.failed.is_empty(), "{}", coverage.failed.join("\n"));
    let holes: Vec<String> = coverage.holes().iter().map(|(opcode, key)| format!("{opcode} {key}")).collect();
    assert!(holes.is_empty(), "{} holes:\n{}", holes.len(), holes.join("\n"));
}

/// Only what ran on an element, in a run that passed, with values from a named origin.
fn what_counts() {
    let program =
        |body: &str, run: &str| format!("// test: interpret\nHloModule t\n{body}\n// run: e({run}\n");
    let unary = |op: &str, n: u32, run: &str| {
        program(&format!("ENTRY e {{ a = f32[{n}] parameter(0) ROOT r = f32[{n}] {op}(a) }}"), run)
    };
    let reduce = "max { x = u8[] parameter(0) y = u8[] parameter(1) ROOT z = u8[] maximum(x, y) }\n\
        ENTRY e { a = u8[2] parameter(0) b = u8[] parameter(1) ROOT r = u8[] reduce(a, b), dimensions={0}, to_apply=max }";
    let dir = Dir::new();
    let counted = format!(
        "// origin: hand\n{}// ====\n{}// ====\n{}",
        unary("negate", 1, "[1]) == [-1]"),
        unary("sqrt", 0, "[]) == []"),
        program(reduce, "[1, 7], 3) == 7"),
    );
    dir.file("tests/counted.hlo", counted);
    dir.file("tests/no_origin.hlo", unary("ceil", 1, "[1]) == [1]"));
    dir.file("tests/wrong.hlo", format!("// origin: hand\n{}", unary("floor", 1, "[1]) == [2]")));
    dir.file("tests/verify/not_a_test.hlo", "nonsense");
    let ran = hlo(&["coverage", "--json", dir.path("tests").to_str().unwrap()]);
    ends(&ran, 1);
    assert!(err(&ran).contains("wrong.hlo:1: line 5: result 0 differs"), "{}", err(&ran));
    let text = out(&ran);
    let row = |opcode: &str, ty: &str| {
        let start = format!("{{\"opcode\":\"{opcode}\",\"type\":\"{ty}\",");
        text.lines()
            .find(|l| l.starts_with(&start))
            .unwrap_or_else(|| panic!("no row of {opcode} {ty}"))
            .to_owned()
    };
    let run = "\"legal\":true,\"verified\":true,\"interpreted\":true";
    let not_run = "\"legal\":true,\"verified\":true,\"interpreted\":false,\"test\":null";
    assert!(row("negate", "f32").contains(run) && row("negate", "f32").contains("counted.hlo:5\""));
    assert!(row("reduce", "u8").contains(run) && row("maximum", "u8").contains(run));
    for opcode in ["sqrt", "ceil", "floor"] {
        assert!(row(opcode, "f32").contains(not_run), "{}", row(opcode, "f32"));
    }
    assert!(row("abs", "u8").contains("\"legal\":false,\"verified\":false,\"interpreted\":false"));
    assert!(row("convert", "s8 -> f32").contains(not_run));
    assert!(row("after-all", "-").contains(not_run));
}
