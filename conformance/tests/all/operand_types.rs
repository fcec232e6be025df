//! Every operand of every opcode on every element type: either the verifier refuses it, or the interpreter
//! and the compiled program compute the same.
//!
//! A rule that assumes an element type without asking for it shows here: what reads the operand as integers,
//! predicates or tokens gets something else. The programs are data: `coverage/probes.hlo` and
//! `coverage/operands.hlo`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use hlo::{ElementType, Opcode};
use hlo_conformance::coverage::{Key, Legal, probe};
use hlo_engines::engine::{self, InterpreterEngine, Limits, Outcome, RunOptions};
use hlo_engines::frontend::parse_text;
use hlo_engines::inputs::{generate, plan};
use hlo_system::guard::{guarded, on_deep_stack};
use hlo_triage::differential::{Kind, Settings, Subject, differ};
use libtest_mimic::Trial;
use rustc_hash::FxHashSet;

use crate::function;

pub(crate) fn trials() -> Vec<Trial> {
    if engine::by_name("cpu").is_err() {
        return Vec::new();
    }
    vec![function("operand types/refused, or computed alike", alike)]
}

const OPERANDS: &str = include_str!("../../coverage/operands.hlo");

/// A program for each opcode, on the first of some types that are legal for it, and those of
/// `coverage/operands.hlo`.
fn programs() -> Vec<String> {
    let legal = Legal::table();
    let usual = [ElementType::F32, ElementType::S32, ElementType::Pred, ElementType::C64];
    let mut all: Vec<String> = Vec::new();
    for &opcode in Opcode::ALL {
        let pairs =
            usual.iter().flat_map(|&t| [Key::On(t), Key::FromTo(t, t), Key::FromTo(t, ElementType::F64)]);
        let key = pairs.chain([Key::Nothing]).find(|&key| legal.contains(opcode, key));
        all.extend(key.or_else(|| legal.keys(opcode).first().copied()).and_then(|key| probe(opcode, key)));
    }
    let more = OPERANDS.split("// ==== ").skip(1);
    all.extend(more.filter_map(|p| Some(format!("HloModule t\n{}", p.split_once('\n')?.1))));
    all
}

/// The name of the element type that ends before byte `end` of a text.
fn type_before(text: &str, end: usize) -> &str {
    let start = text[..end].rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |n| n + 1);
    &text[start..end]
}

/// `old[` as `new[` in a text, where it is no part of another type.
fn retyped(text: &str, old: &str, new: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(n) = rest.find('[') {
        let ty = type_before(rest, n);
        out.push_str(&rest[..n - ty.len()]);
        out.push_str(if ty == old { new } else { ty });
        out.push('[');
        rest = &rest[n + 1..];
    }
    out + rest
}

/// The program with another type of each parameter and constant of its entry, one at a time: with the shapes
/// of results as they were, with the type where the old one stood in them, and without that of the root.
fn variants(program: &str) -> Vec<String> {
    let Some(entry) = program.find("ENTRY") else { return Vec::new() };
    let (before, entry) = program.split_at(entry);
    let lines: Vec<&str> = entry.lines().collect();
    let parameters = lines.iter().filter(|l| l.contains(" parameter(")).count();
    let mut made = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let constant = line.contains(" constant(");
        if !constant && !line.contains(" parameter(") {
            continue;
        }
        let Some(old) = line.find('[').map(|n| type_before(line, n).to_owned()) else { continue };
        for name in ElementType::ALL.iter().map(|t| t.name()).filter(|&name| name != old) {
            let mut changed = vec![retyped(line, &old, name)];
            // A size that is made may be beyond its bound: then the interpreter traps where a call of
            // `PadToStatic` looks at the array, the compiled program not.
            if constant
                && !program.contains("SliceToDynamic")
                && let Some(at) = changed[0].find("constant(")
            {
                // Not every type has the value: as a parameter it has some.
                changed.push(format!("{}parameter({parameters})", &changed[0][..at]));
            }
            for changed in changed {
                let with = |other: &dyn Fn(&str) -> String| {
                    let all = lines.iter().enumerate();
                    let all = all.map(|(j, l)| if j == i { changed.clone() } else { other(l) });
                    format!("{before}{}\n", all.collect::<Vec<_>>().join("\n"))
                };
                let computed = |l: &str| !l.contains(" parameter(") && !l.contains(" constant(");
                made.push(with(&str::to_owned));
                made.push(with(&|l| if computed(l) { retyped(l, &old, name) } else { l.to_owned() }));
                made.push(with(&|l| match l.split_once("ROOT r = ") {
                    Some((indent, rest)) if !rest.starts_with('(') => {
                        let behind = rest.split_once(' ').map_or(rest, |(_, r)| r);
                        format!("{indent}ROOT r = {behind}")
                    }
                    _ => l.to_owned(),
                }));
            }
        }
    }
    made
}

/// What is wrong with a program, if it verifies: `Ok(true)` if both engines ran it, `Ok(false)` if it is
/// refused.
fn outcome(text: &str) -> Result<bool, String> {
    let (Some(module), found) = parse_text(text) else { return Ok(false) };
    if found.has_errors() || hlo::verify::verify(&module).has_errors() {
        return Ok(false);
    }
    let devices = engine::devices::stated(&module, None, None).map_err(|f| f.message)?;
    let arrays =
        plan(&module, None).and_then(|p| generate(&p, 0, devices, 1 << 20)).map_err(|f| f.message)?;
    let limits = Limits { fuel: Some(10_000), memory_bytes: 64 << 20 };
    let run = RunOptions { limits, devices, ..RunOptions::default() };
    let subject = Subject::new(&module, &arrays);
    let compiled = engine::by_name("cpu:O0").map_err(|f| f.message)?;
    let settings = Settings { run, replay: false, ..Settings::default() };
    let difference = differ(&InterpreterEngine, &*compiled, &subject, &settings);
    let said = difference.failure.as_ref().map_or("", |d| &d.message);
    match difference.kind {
        Kind::Same | Kind::Explained => Ok(true),
        // The interpreter stopped: then the compiled program stops as well, or is refused.
        Kind::NoReference if NOT_INTERPRETED.iter().any(|reason| said.contains(reason)) => Ok(true),
        Kind::NoReference => {
            let inputs = subject.inputs().map_err(|o| format!("{o:?}"))?;
            match compiled.run(&module, inputs, &run) {
                Outcome::Trap(_) | Outcome::Unsupported(_) => Ok(true),
                other => Err(format!(
                    "the interpreter stops ({said}), the compiled program ends otherwise: {other:?}"
                )),
            }
        }
        Kind::Unsupported if NOT_COMPILED.iter().any(|end| said.ends_with(end)) => Ok(true),
        kind => Err(format!("{}: {said}", kind.describe())),
    }
}

/// What the interpreter refuses of these, with a message that says so: computations whose floats are of other
/// types than what they are applied to.
const NOT_INTERPRETED: &[&str] = &["with a computation of other types"];

/// What the compiler refuses of these (see `coverage/not_compiled.txt`).
const NOT_COMPILED: &[&str] =
    &["an array whose size is known only at run time", "sparsity_config", "a mutable buffer"];

fn alike() {
    let mut seen = FxHashSet::default();
    let mut texts: Vec<String> = Vec::new();
    for program in programs() {
        texts.extend(variants(&program).into_iter().filter(|v| seen.insert(v.clone())));
    }
    let (next, ran) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let wrong: Mutex<Vec<String>> = Mutex::default();
    let work = || {
        while let Some(text) = texts.get(next.fetch_add(1, Ordering::Relaxed)) {
            match guarded("changing an operand's type", || Ok(outcome(text))) {
                Ok(Ok(true)) => drop(ran.fetch_add(1, Ordering::Relaxed)),
                Ok(Ok(false)) => {}
                Ok(Err(what)) => wrong.lock().unwrap().push(format!("{what}\n{text}")),
                Err(panic) => wrong.lock().unwrap().push(format!("{}\n{text}", panic.message)),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| on_deep_stack(work));
        }
    });
    let wrong = wrong.into_inner().unwrap();
    let shown: Vec<&str> = wrong.iter().take(400).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} of {} programs:\n{}", wrong.len(), texts.len(), shown.join("\n\n"));
    assert!(texts.len() > 5_000 && ran.into_inner() > 500, "the table is not what it was");
}
