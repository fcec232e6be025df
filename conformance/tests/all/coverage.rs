//! Every opcode on every element type.

use hlo::Opcode;
use hlo_conformance::coverage::{Coverage, Key, Legal, key_of, probe};
use hlo_conformance::engine::{Engine, InterpreterEngine, RunOptions};
use hlo_conformance::frontend::parse_text;
use hlo_conformance::inputs::{generate, plan, to_parameters};
use libtest_mimic::Trial;

use crate::{crate_dir, files_below, function};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        function("coverage/the verifier accepts the legal pairs and no others", verifier_agrees),
        function("coverage/every legal pair runs", everything_runs),
        function("coverage/a filetest runs every legal pair", no_holes),
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

/// Runs a probe on made inputs.
fn runs(opcode: Opcode, key: Key) -> Result<(), String> {
    let text = probe(opcode, key).ok_or("no probe")?;
    let module = parse_text(&text).0.ok_or("does not parse")?;
    let inputs = plan(&module, None)
        .and_then(|p| generate(&p, 0, 0, 1 << 20))
        .and_then(|arrays| to_parameters(&module, arrays))
        .map_err(|f| f.message)?;
    let outcome = InterpreterEngine.run(&module, inputs, &RunOptions::default());
    outcome.into_results().map(|_| ()).map_err(|(_, d)| format!("{}: {}", d.code.as_str(), d.message))
}

/// The opcodes that are known not to run: see `coverage/missing.txt`.
fn missing() -> Vec<String> {
    let text = include_str!("../../coverage/missing.txt");
    let rows = text.lines().filter(|l| !l.starts_with('#'));
    rows.map(|l| l.split('|').next().unwrap_or("").trim().to_owned()).collect()
}

fn everything_runs() {
    let (legal, missing) = (Legal::table(), missing());
    let mut wrong = Vec::new();
    for &opcode in Opcode::ALL {
        for &key in legal.keys(opcode) {
            if let Err(e) = runs(opcode, key)
                && !(missing.iter().any(|m| m == opcode.name()) && e.starts_with("U0001"))
            {
                wrong.push(format!("{opcode} on {key}: {e}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} pairs:\n{}", wrong.len(), wrong.join("\n"));
}

/// Filetests whose expected values come from elsewhere execute every legal pair, but for the opcodes of `coverage/missing.txt`.
fn no_holes() {
    let root = crate_dir().join("filetests");
    let mut files = files_below(&root, "hlo");
    files.retain(|f| !f.starts_with(root.join("verify")));
    let coverage = Coverage::measure(&files).unwrap();
    assert!(coverage.failed.is_empty(), "{}", coverage.failed.join("\n"));
    let missing = missing();
    let (known, holes): (Vec<_>, Vec<_>) =
        coverage.holes().into_iter().partition(|(opcode, _)| missing.iter().any(|m| m == opcode.name()));
    let holes: Vec<String> = holes.iter().map(|(opcode, key)| format!("{opcode} {key}")).collect();
    assert!(holes.is_empty(), "{} holes:\n{}", holes.len(), holes.join("\n"));
    for name in &missing {
        let stale = !known.iter().any(|(opcode, _)| opcode.name() == name);
        assert!(!stale, "coverage/missing.txt names {name}, which tests run on every type");
    }
}
