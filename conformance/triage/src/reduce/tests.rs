//! Reduction with made-up failures: what is left, that it is minimal, and that nothing depends on threads or
//! on being stopped.

mod dims;
mod moves;

use std::sync::atomic::{AtomicU32, Ordering};

use hlo::verify::verify;
use hlo::{ArrayLiteral, Buffer, Module, Opcode};
use hlo_interp::{Devices, Interpreter, Value};

use super::program::{all_instructions, finished};
use super::search::Report;
use super::*;
use hlo_engines::frontend::parse_text;
use hlo_engines::inputs::{generate as made, plan};
use hlo_execution::run::to_parameters;
use hlo_generate::generate;

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

pub(super) fn run(c: &Candidate) -> Option<Vec<ArrayLiteral>> {
    let arguments = to_parameters(&c.module, c.inputs.first()?.clone()).ok()?;
    let arguments: Vec<Value> = arguments.into_iter().map(Value::from_literal).collect();
    let options =
        hlo_interp::Options { fuel: Some(1 << 22), memory_limit_bytes: 1 << 28, ..Default::default() };
    let value = Interpreter::new(&c.module, options).run(arguments).ok()?;
    let mut out = Vec::new();
    hlo_engines::engine::flatten(value.into_literal(), &mut out);
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
    let Buffer::F32(values) = &*report.best.inputs[0][0].buffer else { panic!("{:?}", report.best.inputs) };
    assert_eq!(values, &[0.0, 1.0]);
}

/// A generated program with inputs.
pub(super) fn generated(seed: u64, limits: generate::Limits) -> Candidate {
    let bytes: Vec<u8> = (0..600).map(|i| hlo::elided::splitmix64(seed << 20 | i) as u8).collect();
    let module = generate::program(&bytes, limits);
    let mut inputs = Vec::new();
    for literal in generate::edge_inputs(&module, seed) {
        hlo_engines::engine::flatten(literal, &mut inputs);
    }
    let devices = (module.replica_count() * module.num_partitions()) as usize;
    Candidate { module, inputs: vec![inputs; devices] }
}

/// The opcodes of a program but for those that any program has.
fn opcodes(c: &Candidate) -> Vec<Opcode> {
    let mut opcodes: Vec<Opcode> = all_instructions(&c.module).map(|id| c.module.instr(id).opcode).collect();
    opcodes.sort();
    opcodes.dedup();
    opcodes.retain(|op| !matches!(op, Opcode::Parameter | Opcode::Tuple));
    opcodes
}

#[test]
fn generated_programs_are_cut_down_to_the_opcode_that_fails() {
    let mut sizes = Vec::new();
    for seed in 0..4 {
        let c = generated(seed, generate::Limits::default());
        for op in opcodes(&c) {
            let (text, report) = minimal(&c, &has(move |m| any(m, |m, id| m.instr(id).opcode == op)));
            assert!(report.metric.instructions <= 12, "{op}:\n{text}");
            sizes.push(report.metric.instructions);
        }
    }
    let small = sizes.iter().filter(|&&n| n <= 3).count();
    assert!(sizes.len() > 20 && small * 10 >= sizes.len() * 7, "{sizes:?}");
}

#[test]
fn a_dot_with_a_long_contraction() {
    let oracle = has(|m| {
        any(m, |m, id| {
            let i = m.instr(id);
            let contracted = i.attrs.ints_or_empty(hlo::AttrKey::LhsContractingDims);
            i.opcode == Opcode::Dot
                && contracted
                    .iter()
                    .any(|&d| m.instr(i.operands()[0]).shape.expect_array().dims[d as usize] >= 2)
        })
    });
    let text = "HloModule m
        ENTRY e {
          p = f64[3,17,5] parameter(0)
          q = f64[3,5,9] parameter(1)
          n = f64[3,17,5] sine(p)
          ROOT d = f64[3,17,9] dot(n, q), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
        }";
    let (text, _) = minimal(&candidate(text), &oracle);
    assert_eq!(
        text,
        "HloModule reduced\n\nENTRY main {\n  p0 = f32[2] parameter(0)\n  ROOT dot = f32[] dot(p0, p0), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n}\n\n"
    );
}

#[test]
fn threads_change_nothing() {
    let oracle = dropped(Opcode::Reverse);
    let one = reduced(&candidate(CHAIN), &oracle);
    for jobs in [2, 5] {
        let more = reduced_with(&candidate(CHAIN), &oracle, &Options { jobs, ..quick() });
        assert_eq!(super::text(&more.best.module), super::text(&one.best.module));
        assert_eq!((more.tried, more.metric), (one.tried, one.metric));
    }
}

#[test]
fn a_reduction_that_was_stopped_goes_on() {
    let oracle = dropped(Opcode::Reverse);
    let whole = reduced(&candidate(CHAIN), &oracle);
    let folder = tempfile::tempdir().unwrap();
    let options =
        |max: Option<u64>| Options { max_candidates: max, store: Some(folder.path().to_owned()), ..quick() };
    let mut last = 0;
    let mut ends = None;
    for n in 1..100 {
        let report = reduced_with(&candidate(CHAIN), &oracle, &options(Some(5 * n)));
        assert!(report.tried >= last, "goes on counting");
        last = report.tried;
        if report.fixpoint {
            ends = Some(report);
            break;
        }
    }
    let ends = ends.expect("it ends");
    assert_eq!(super::text(&ends.best.module), super::text(&whole.best.module));
    // Nothing is left to try: everything is known.
    let before = ends.tried;
    let again = reduced_with(&candidate(CHAIN), &oracle, &options(None));
    assert_eq!((again.tried, again.fixpoint), (before, true));
    // Another program in the same folder begins anew.
    let other = candidate(&CHAIN.replace("cosine", "sine"));
    let report = reduced_with(&other, &oracle, &options(Some(1)));
    assert!(report.tried <= 2 && report.metric.instructions > 4, "{report:?}");
}

#[test]
fn failures_that_come_and_go_are_found_out() {
    let calls = AtomicU32::new(0);
    let oracle = |c: &Candidate| {
        let n = calls.fetch_add(1, Ordering::Relaxed);
        (n.is_multiple_of(2) && any(&c.module, |m, id| m.instr(id).opcode == Opcode::Reverse)).then(wrong)
    };
    let report = reduce(&candidate(CHAIN), &oracle, &quick(), &mut |_, _| {}).unwrap();
    assert_eq!(report.flaky, Some((2, 3)));
    assert_eq!(report.metric.instructions, 2, "{}", super::text(&report.best.module));
}

#[test]
fn what_fails_once_and_not_again_is_not_kept() {
    // A program fails the first time only, unless it is the original.
    let seen = std::sync::Mutex::new(rustc_hash::FxHashSet::default());
    let original = finished(&candidate(CHAIN), super::program::Tidy::Parameters);
    let size = Metric::of(&original).instructions;
    let oracle = |c: &Candidate| {
        let first = seen.lock().unwrap().insert(super::program::fingerprint(c));
        (first || Metric::of(c).instructions == size).then(wrong)
    };
    let report = reduce(&original, &oracle, &quick(), &mut |_, _| {}).unwrap();
    assert_eq!(report.metric.instructions, size);
    assert!(report.unsteady > 0 && report.fixpoint);
}

#[test]
fn programs_that_do_not_fail_or_verify_are_refused() {
    let never = |_: &Candidate| None;
    assert_eq!(
        reduce(&candidate(CHAIN), &never, &quick(), &mut |_, _| {}).unwrap_err(),
        NotReduced::NoFailure
    );
    let mut broken = candidate(CHAIN);
    let root = broken.module.root(broken.module.entry());
    broken.module.instr_mut(root).shape = hlo::Shape::Token;
    assert_eq!(reduce(&broken, &never, &quick(), &mut |_, _| {}).unwrap_err(), NotReduced::Invalid);
}

#[test]
fn a_failure_in_dead_code_is_kept() {
    let text = "HloModule m
        f { p = f32[4] parameter(0)\n ROOT n = f32[4] negate(p) }
        ENTRY e { p = f32[4] parameter(0)\n q = f32[4] parameter(1)\n c = f32[4] cosine(q)\n d = f32[4] call(c), to_apply=f\n ROOT n = f32[4] sine(p) }";
    let (text, _) = minimal(&candidate(text), &has(|m| any(m, |m, id| m.instr(id).opcode == Opcode::Cosine)));
    assert!(text.contains("cosine(") && !text.contains("negate"), "{text}");
}
