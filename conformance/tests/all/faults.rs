//! Seeded faults: each changes the results of its program in `conformance/faults/` by more than rounding,
//! changes nothing where it does not apply, and leaves programs that verify and end.
//!
//! `HLO_FAULT_STATISTICS=N` also counts, over N generated programs, how many each fault applies to and how
//! many it changes.

use hlo::{ArrayLiteral, Module};
use hlo_engines::engine::{Engine, Inputs, InterpreterEngine, Limits, Outcome, RunOptions, devices};
use hlo_engines::faults::{Fault, all};
use hlo_engines::frontend::parse_text;
use hlo_execution::element::{Number, Part};
use hlo_generate::generate::{self, edge_inputs, program};
use hlo_interp::device::host::NoHost;
use hlo_opt::passes::Fuel;
use libtest_mimic::{Failed, Trial};
use rustc_hash::FxHashSet;

use crate::{failed, function};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> = all()
        .into_iter()
        .map(|fault| Trial::test(format!("faults/{}", fault.pass().name()), move || shows(&fault)))
        .collect();
    trials.push(function("faults/table", table));
    trials.push(function("faults/leave_alone_what_they_do_not_match", leave_alone));
    trials.push(Trial::test("faults/leave_programs_that_verify", || verify_and_end(60)));
    trials.push(Trial::test("faults/documentation", documentation));
    if let Some(n) = std::env::var("HLO_FAULT_STATISTICS").ok().and_then(|v| v.parse().ok()) {
        trials.push(Trial::test("faults/statistics", move || {
            statistics(n);
            Ok(())
        }));
    }
    trials
}

fn folder() -> std::path::PathBuf {
    crate::crate_dir().join("faults")
}

fn load(name: &str) -> Result<Module, Failed> {
    let path = folder().join(format!("{name}.hlo"));
    let text = std::fs::read_to_string(&path).map_err(|e| failed(format!("{}: {e}", path.display())))?;
    let (module, found) = parse_text(&text);
    let module = module.ok_or_else(|| failed(format!("{name}: {found:?}")))?;
    let found = hlo::verify::verify(&module);
    if found.has_errors() {
        return Err(failed(format!("{name}: {found:?}")));
    }
    Ok(module)
}

/// What a fault makes of a program, and how often it applied. Errors: what it leaves does not verify.
fn broken(fault: &Fault, module: &Module) -> Result<(Module, u64), String> {
    let mut other = module.clone();
    let mut fuel = Fuel::UNLIMITED;
    let applied = fault.pass.run(&mut other, &mut fuel);
    assert_eq!(applied, fuel.taken(), "{} counts otherwise than its fuel", fault.pass().name());
    let found = hlo::verify::verify(&other);
    if found.has_errors() {
        let text = hlo::print::print_module(&other, &hlo::print::PrintOptions::source(&other));
        return Err(format!("{} leaves what does not verify: {found:?}\n{text}", fault.pass().name()));
    }
    Ok((other, applied))
}

fn run(module: &Module, inputs: Vec<hlo::Literal>) -> Result<Vec<ArrayLiteral>, String> {
    let devices = devices::stated(module, None, None).map_err(|f| f.message)?;
    let limits = Limits { fuel: Some(300_000), memory_bytes: 1 << 30 };
    let options = RunOptions { limits, devices, ..RunOptions::default() };
    let arguments = vec![inputs; devices.count() as usize];
    match InterpreterEngine.run(module, Inputs { arguments, host: std::sync::Arc::new(NoHost) }, &options) {
        Outcome::Finished(finished) => Ok(finished.results.concat()),
        other => Err(format!("{other:?}")),
    }
}

/// Whether two elements differ by more than rounding: other integers; floats more than one part in a thousand
/// apart, or apart in class.
fn far(a: Part, b: Part) -> bool {
    match (a, b) {
        (Part::Int(a), Part::Int(b)) => a != b,
        (Part::Float { value: a, .. }, Part::Float { value: b, .. }) => {
            if a.is_nan() || b.is_nan() {
                return a.is_nan() != b.is_nan();
            }
            let finite = a.is_finite() && b.is_finite();
            a != b && (!finite || (a - b).abs() > 1e-3 * a.abs().max(b.abs()))
                || a == 0.0 && b == 0.0 && a.is_sign_negative() != b.is_sign_negative()
        }
        (Part::Int(_) | Part::Float { .. }, _) => true,
    }
}

fn differ(a: &ArrayLiteral, b: &ArrayLiteral) -> bool {
    fn elements<T: Number>(a: &[T], b: &[T]) -> bool {
        a.iter().zip(b).any(|(&a, &b)| {
            let ((a, a2), (b, b2)) = (a.parts(), b.parts());
            far(a, b) || a2.zip(b2).is_some_and(|(a, b)| far(a, b))
        })
    }
    hlo::with_buffer!(&*a.buffer, v => match hlo::BufferOf::slice(&b.buffer) {
        Some(w) => a.dims != b.dims || elements(v, w),
        None => true,
    })
}

fn shows(fault: &Fault) -> Result<(), Failed> {
    let module = load(fault.pass().name())?;
    let (other, applied) = broken(fault, &module).map_err(failed)?;
    if applied == 0 {
        return Err(failed("does not apply to its program".to_owned()));
    }
    let (right, wrong) =
        (run(&module, Vec::new()).map_err(failed)?, run(&other, Vec::new()).map_err(failed)?);
    if !right.iter().zip(&wrong).any(|(a, b)| differ(a, b)) {
        let text = hlo::print::print_module(&other, &hlo::print::PrintOptions::source(&other));
        return Err(failed(format!("gives the same: {right:?}\n{text}")));
    }
    // One application less is the program as it was.
    let mut same = module.clone();
    assert_eq!(fault.pass.run(&mut same, &mut Fuel::new(0)), 0);
    hlo::modules_equal(&module, &same).map_err(|d| failed(format!("changed without fuel: {d:?}")))?;
    Ok(())
}

fn table() {
    let faults = all();
    assert!(faults.len() >= 64, "{} faults", faults.len());
    let mut seen = FxHashSet::default();
    for fault in &faults {
        let pass = fault.pass();
        for text in [pass.name(), pass.doc(), fault.source] {
            assert!(
                !text.is_empty() && seen.insert(text.to_owned()),
                "`{text}` of {} is there twice",
                pass.name()
            );
        }
        let of = ["openxla/xla", "tensorflow/tensorflow", "jax-ml/jax", "pytorch/xla", "llvm/llvm-project"];
        let known = of.iter().any(|r| {
            let rest = fault.source.strip_prefix(&format!("https://github.com/{r}/"));
            rest.is_some_and(|r| r.starts_with("issues/") || r.starts_with("pull/"))
        });
        assert!(known, "{}: {}", pass.name(), fault.source);
    }
    let programs: FxHashSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|f| f.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let names: FxHashSet<String> = faults.iter().map(|f| f.pass().name().to_owned()).collect();
    assert_eq!(programs, names);
}

/// A program without anything that a fault is about.
const UNRELATED: &str = "HloModule unrelated

ENTRY main {
  a = f32[3] parameter(0)
  b = f32[3] parameter(1)
  sum = f32[3] add(a, b)
  root = f32[3] ceil(sum)
  ROOT t = (f32[3], f32[3]) tuple(root, sum)
}
";

fn leave_alone() {
    let (module, found) = parse_text(UNRELATED);
    let module = module.unwrap_or_else(|| panic!("{found:?}"));
    for fault in all() {
        let (other, applied) = broken(&fault, &module).unwrap();
        assert_eq!(applied, 0, "{}", fault.pass().name());
        assert!(hlo::modules_equal(&module, &other).is_ok(), "{}", fault.pass().name());
    }
}

fn bytes(seed: u64) -> Vec<u8> {
    (0..700).map(|i| hlo::elided::splitmix64(seed << 20 | i) as u8).collect()
}

fn verify_and_end(programs: u64) -> Result<(), Failed> {
    let faults = all();
    // Not on rayon's threads: several devices wait for each other, and their kernels need those.
    for seed in 0..programs {
        let module = program(&bytes(seed), generate::Limits::default());
        for fault in &faults {
            let (other, applied) = broken(fault, &module).map_err(|e| failed(format!("seed {seed}: {e}")))?;
            if applied == 0 {
                continue;
            }
            // Some programs trap by themselves; none may be refused, panic or go on for ever.
            if let Err(message) = run(&other, edge_inputs(&module, seed))
                && run(&module, edge_inputs(&module, seed)).is_ok()
            {
                return Err(failed(format!("seed {seed}, {}: {message}", fault.pass().name())));
            }
        }
    }
    Ok(())
}

/// The table for people.
fn documentation() -> Result<(), Failed> {
    let mut text = String::from(
        "# Seeded faults\n\nWrong passes, each modelled on a thread about a compiler that did the same. `--engines faulty:NAME` runs the interpreter on what the pass\nmakes of a program; `conformance/faults/NAME.hlo` is a program that it breaks. The table is written by a test (`HLO_BLESS=1`).\n",
    );
    let faults = all();
    let mut families: Vec<_> = Vec::new();
    for fault in &faults {
        if !families.contains(&fault.family) {
            families.push(fault.family);
        }
    }
    for family in families {
        text.push_str(&format!(
            "\n## {}\n\n| name | what is wrong | in | needs | modelled on |\n|---|---|---|---|---|\n",
            family.name()
        ));
        for fault in faults.iter().filter(|f| f.family == family) {
            let opcodes: Vec<&str> = fault.opcodes.iter().map(|o| o.name()).collect();
            let thread = fault.source.trim_start_matches("https://github.com/");
            text.push_str(&format!(
                "| `{}` | {} | {} | {} | [{thread}]({}) |\n",
                fault.pass().name(),
                fault.pass().doc(),
                if opcodes.is_empty() { "any".to_owned() } else { opcodes.join(", ") },
                fault.needs.describe(),
                fault.source
            ));
        }
    }
    let path = crate::crate_dir().join("../docs/faults.md");
    if std::env::var_os("HLO_BLESS").is_some_and(|v| v == "1") {
        assert!(std::env::var_os("CI").is_none(), "HLO_BLESS is refused where CI is set");
        return std::fs::write(path, text).map_err(|e| failed(e.to_string()));
    }
    if std::fs::read_to_string(path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    Err(failed("docs/faults.md is not what the table says; HLO_BLESS=1 writes it"))
}

/// Counts, printed as a table: programs that a fault applies to, programs whose results it changes by more
/// than rounding.
fn statistics(programs: u64) {
    let faults = all();
    let mut counts = vec![(0, 0); faults.len()];
    for seed in 0..programs {
        let module = program(&bytes(seed), generate::Limits::default());
        let inputs = edge_inputs(&module, seed);
        let mut right = None;
        for (fault, count) in faults.iter().zip(&mut counts) {
            let Ok((other, applied)) = broken(fault, &module) else { continue };
            if applied == 0 {
                continue;
            }
            count.0 += 1;
            let right = right.get_or_insert_with(|| run(&module, inputs.clone()));
            if let (Ok(right), Ok(wrong)) = (right, run(&other, inputs.clone()))
                && right.iter().zip(&wrong).any(|(a, b)| differ(a, b))
            {
                count.1 += 1;
            }
        }
    }
    for (fault, (applied, changed)) in faults.iter().zip(counts) {
        eprintln!("{applied:7} {changed:7} {}", fault.pass().name());
    }
}
