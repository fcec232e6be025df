//! Reduction with made-up failures: what is left, that it is minimal, and that nothing depends on threads or on being stopped.

use hlo::verify::verify;
use hlo::{ArrayLiteral, Buffer, Module, Opcode};
use hlo_interp::{Devices, Interpreter, Value};

use super::program::{all_instructions, finished};
use super::search::Report;
use super::*;
use crate::frontend::parse_text;
use crate::generate;
use crate::inputs::{generate as made, plan, to_parameters};

/// A program with inputs of seed 1.
pub(super) fn candidate(text: &str) -> Candidate {
    let (module, found) = parse_text(text);
    let module = module.unwrap_or_else(|| panic!("{}", hlo::diag::render_all(&found, "m", text, false)));
    let found = verify(&module);
    assert!(!found.has_errors(), "{}", hlo::diag::render_all(&found, "m", text, false));
    let plan = plan(&module, None).unwrap();
    let devices = Devices::new(module.replica_count(), module.num_partitions()).unwrap();
    let inputs = made(&plan, 1, devices, 1 << 30).unwrap();
    Candidate { module, inputs }
}

fn wrong() -> Signature {
    Signature { kind: Kind::Wrong, opcode: None, code: None, engine: "made up".into() }
}

/// Fails where a program has something.
fn has(f: impl Fn(&Module) -> bool + Sync) -> impl Oracle {
    move |c: &Candidate| f(&c.module).then(wrong)
}

fn any(module: &Module, f: impl Fn(&Module, hlo::InstrId) -> bool) -> bool {
    all_instructions(module).any(|id| f(module, id))
}

fn run(c: &Candidate) -> Option<Vec<ArrayLiteral>> {
    let arguments = to_parameters(&c.module, c.inputs.first()?.clone()).ok()?;
    let arguments: Vec<Value> = arguments.into_iter().map(Value::from_literal).collect();
    let options =
        hlo_interp::Options { fuel: Some(1 << 22), memory_limit_bytes: 1 << 28, ..Default::default() };
    let value = Interpreter::new(&c.module, options).run(arguments).ok()?;
    let mut out = Vec::new();
    crate::engine::flatten(value.into_literal(), &mut out);
    Some(out)
}

/// Fails where an optimizer that drops all instructions of an opcode would change the results.
fn dropped(opcode: Opcode) -> impl Oracle {
    move |c: &Candidate| {
        let mut other = c.clone();
        let ids: Vec<_> =
            all_instructions(&other.module).filter(|&id| other.module.instr(id).opcode == opcode).collect();
        if ids.is_empty() {
            return None;
        }
        for id in ids {
            let operand = *other.module.instr(id).operands().first()?;
            other.module.replace_all_uses(id, operand);
        }
        let other = finished(&other, super::program::Tidy::Code);
        if verify(&other.module).has_errors() {
            return None;
        }
        (run(c)? != run(&other)?).then(wrong)
    }
}

/// Endless loops are given up soon.
fn quick() -> Options {
    Options { fuel: 100_000, ..Options::default() }
}

fn reduced(c: &Candidate, oracle: &dyn Oracle) -> Report {
    reduced_with(c, oracle, &quick())
}

fn reduced_with(c: &Candidate, oracle: &dyn Oracle, options: &Options) -> Report {
    let report = reduce(c, oracle, options, &mut |_, _| {}).unwrap();
    assert!(!verify(&report.best.module).has_errors());
    assert_eq!(oracle.check(&report.best), Some(report.signature.clone()));
    report
}

/// Reduces, and checks that nothing is left to do: reducing again changes nothing.
fn minimal(c: &Candidate, oracle: &dyn Oracle) -> (String, Report) {
    let report = reduced(c, oracle);
    assert!(report.fixpoint);
    let text = super::text(&report.best.module);
    let again = reduced(&report.best, oracle);
    assert_eq!(super::text(&again.best.module), text, "reducing again changes something");
    assert!(again.steps.is_empty(), "{:?}", again.steps);
    (text, report)
}

const CHAIN: &str = "HloModule m
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT s = f32[] add(a, b) }
ENTRY e {
  p = f32[8,16] parameter(0)
  q = f32[8,16] parameter(1)
  n = f32[8,16] negate(p)
  m = f32[8,16] multiply(n, q)
  t = f32[16,8] transpose(m), dimensions={1,0}
  v = f32[16,8] reverse(t), dimensions={0}
  x = f32[16,8] exponential(v)
  z = f32[] constant(0)
  r = f32[16] reduce(x, z), dimensions={1}, to_apply=add
  c = f32[16] cosine(r)
  d = f32[8] slice(c), slice={[4:12]}
  ROOT o = (f32[16], f32[8], f32[8,16]) tuple(c, d, m)
}";

#[test]
fn structure_is_cut_down_to_what_fails() {
    let (text, _) =
        minimal(&candidate(CHAIN), &has(|m| any(m, |m, id| m.instr(id).opcode == Opcode::Transpose)));
    assert_eq!(
        text,
        "HloModule reduced\n\nENTRY main {\n  p0 = f32[] parameter(0)\n  ROOT transpose = f32[] transpose(p0), dimensions={}\n}\n\n"
    );
}

#[test]
fn values_decide_about_what_is_left() {
    let (text, report) = minimal(&candidate(CHAIN), &dropped(Opcode::Reverse));
    assert_eq!(
        text,
        "HloModule reduced\n\nENTRY main {\n  p0 = f32[2] parameter(0)\n  ROOT reverse = f32[2] reverse(p0), dimensions={0}\n}\n\n"
    );
    let Buffer::F32(values) = &report.best.inputs[0][0].buffer else { panic!("{:?}", report.best.inputs) };
    assert_eq!(values, &[0.0, 1.0]);
}

/// A generated program with inputs.
fn generated(seed: u64, limits: generate::Limits) -> Candidate {
    let bytes: Vec<u8> = (0..600).map(|i| hlo::elided::splitmix64(seed << 20 | i) as u8).collect();
    let module = generate::program(&bytes, limits);
    let mut inputs = Vec::new();
    for literal in generate::edge_inputs(&module, seed) {
        crate::engine::flatten(literal, &mut inputs);
    }
    let devices = (module.replica_count() * module.num_partitions()) as usize;
    Candidate { module, inputs: vec![inputs; devices] }
}

#[test]
#[ignore = "explores"]
fn explore() {
    let from: u64 = std::env::var("FROM").ok().and_then(|s| s.parse().ok()).unwrap_or(0);
    let upto: u64 = std::env::var("UPTO").ok().and_then(|s| s.parse().ok()).unwrap_or(10);
    for seed in from..upto {
        let c = generated(seed, generate::Limits::default());
        let mut opcodes: Vec<Opcode> =
            all_instructions(&c.module).map(|id| c.module.instr(id).opcode).collect();
        opcodes.sort();
        opcodes.dedup();
        for op in opcodes {
            if matches!(op, Opcode::Parameter | Opcode::Tuple) {
                continue;
            }
            if std::env::var("ONLY").is_ok_and(|o| o != op.name()) {
                continue;
            }
            let oracle = has(move |m| any(m, |m, id| m.instr(id).opcode == op));
            eprint!("seed {seed} {op}: ");
            let mut steps = |_: &Signature, s: &Step| {
                if std::env::var("STEPS").is_ok() {
                    eprintln!("  {s:?}");
                }
            };
            let r = reduce(&c, &oracle, &quick(), &mut steps).unwrap();
            let t = super::text(&r.best.module);
            let again = reduced(&r.best, &oracle);
            let same = super::text(&again.best.module) == t;
            eprintln!(
                "{} -> {} instr, {} elements, tried {}, {:?}{}",
                r.original.instructions,
                r.metric.instructions,
                r.metric.elements,
                r.tried,
                r.time,
                if same { "" } else { " NOT A FIXPOINT" }
            );
            if r.metric.instructions > 3 || r.metric.elements > 4 || !same {
                eprintln!("{t}");
            }
            if !same {
                eprintln!("AGAIN {:?}\n{}", again.steps, super::text(&again.best.module));
            }
        }
    }
}
