//! `hlo bisect` and `hlo opt` as people use them; XLA's own dumps, where `../shared` has them.

use std::fs;
use std::path::{Path, PathBuf};

use hlo_engines::engine::RunOptions;
use hlo_engines::inputs::InputKind;
use hlo_triage::bisect::dumps::{Source, Status, run, series};
use libtest_mimic::Trial;

use crate::{crate_dir, failed};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        Trial::test("bisect/commands", || {
            commands();
            Ok(())
        }),
        Trial::test("bisect/infinities", || {
            infinities();
            Ok(())
        }),
        Trial::test("bisect/conversions that are left out", || {
            conversions();
            Ok(())
        }),
    ];
    let folder = crate_dir().join("../../shared/corpus/passdumps");
    let Ok(entries) = fs::read_dir(&folder) else {
        eprintln!("skipped: no {}", folder.display());
        return trials;
    };
    for path in entries.flatten().map(|e| e.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        trials.push(Trial::test(format!("bisect/dumps/{name}"), move || dumps(&path)));
    }
    trials
}

fn dumps(folder: &Path) -> Result<(), libtest_mimic::Failed> {
    let inputs = folder.join("inputs.npz").to_string_lossy().into_owned();
    for file in [Some(&*inputs), None] {
        for series in series(folder).map_err(|f| failed(f.message))? {
            let source = Source { file, seed: 1, kind: file.map(|_| InputKind::Gentle) };
            let report = run(&series, &source, &RunOptions::default()).map_err(|f| failed(f.message))?;
            if report.found.is_some() || report.drift.is_some() {
                return Err(failed(format!("{report:#?}")));
            }
            if let Some(step) = report.steps.iter().find(|s| matches!(s.status, Status::Skipped { .. })) {
                return Err(failed(format!("{step:?}")));
            }
        }
    }
    alterations(folder, &inputs)
}

/// One file of the middle with the first of these changed that it has, of each kind.
fn alterations(folder: &Path, inputs: &str) -> Result<(), libtest_mimic::Failed> {
    const KINDS: &[(&str, &str)] = &[
        (" tanh(", " sine("),
        (" exponential(", " exponential-minus-one("),
        (" rsqrt(", " sqrt("),
        ("stride=2x2 pad=0_1x0_1", "stride=2x2 pad=1_0x1_0"),
        ("reverse(%sort.3), dimensions={0}", "reverse(%sort.3), dimensions={1}"),
        ("constant(12)", "constant(11)"),
    ];
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?.flatten().map(|e| e.path()).collect();
    files.retain(|p| p.to_string_lossy().contains("after_"));
    files.sort();
    let middle = &files[files.len() / 2];
    let text = fs::read_to_string(middle)?;
    let mut tried = 0;
    for (from, to) in KINDS.iter().filter(|(from, _)| text.contains(from)) {
        let copy = tempfile::tempdir()?;
        for entry in fs::read_dir(folder)?.flatten() {
            fs::copy(entry.path(), copy.path().join(entry.file_name()))?;
        }
        let name = middle.file_name().unwrap_or_default();
        fs::remove_file(copy.path().join(name))?;
        fs::write(copy.path().join(name), text.replacen(from, to, 1))?;
        let all = series(copy.path()).map_err(|f| failed(f.message))?;
        let source = Source { file: Some(inputs), seed: 1, kind: Some(InputKind::Gentle) };
        let report = run(&all[0], &source, &RunOptions::default()).map_err(|f| failed(f.message))?;
        let step = report.found.map(|f| f.step.file);
        if step.as_deref() != name.to_str() {
            return Err(failed(format!("{from} to {to} in {name:?}: found {step:?}")));
        }
        tried += 1;
    }
    if tried == 0 { Err(failed(format!("nothing to alter in {}", middle.display()))) } else { Ok(()) }
}

/// Runs the command; its exit code, output and errors.
fn hlo(arguments: &[&str]) -> (i32, String, String) {
    let output =
        std::process::Command::new(env!("CARGO_BIN_EXE_hlo")).args(arguments).output().expect("it runs");
    let text = |b: Vec<u8>| String::from_utf8(b).expect("UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// A pass that leaves out conversions to a narrower type and back moves every element by a rounding of that type,
/// whichever random errors say so.
fn conversions() {
    let temporary = tempfile::tempdir().unwrap();
    let program = |convert: &str, of: &str| {
        format!(
            "HloModule m\nENTRY e {{\n x = f32[4096] parameter(0)\n c = f32[] constant(40)\n cb = f32[4096] broadcast(c), dimensions={{}}\n y = f32[4096] multiply(x, cb)\n {convert}\n ROOT r = f32[4096] exponential({of})\n}}\n"
        )
    };
    let narrow = program("h = bf16[4096] convert(y)\n k = f32[4096] convert(h)", "k");
    for (name, text) in [
        ("module_0000.m.before_optimizations.txt", &narrow),
        ("module_0000.m.0001.p.after_simplify-fp-conversions.before_dce.txt", &program("", "y")),
    ] {
        fs::write(temporary.path().join(name), text).unwrap();
    }
    let dumps = temporary.path().to_string_lossy();
    let (code, out, _) = hlo(&["bisect", "--dumps", &dumps, "--input-kind", "gentle"]);
    assert_eq!(code, 0, "{out}");
}

/// Two forms that only differ where an exponential overflows: on gentle inputs, on extreme ones, on given
/// ones.
fn infinities() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let dumps = at("dumps");
    fs::create_dir(&dumps).expect("made");
    let form = |body: &str| format!("HloModule m\n\nENTRY e {{\n  y = f32[64] parameter(0)\n{body}\n}}\n");
    let log = form("  a = f32[64] exponential(y)\n  ROOT b = f32[64] log(a)");
    let plain = form("  ROOT b = f32[64] copy(y)");
    let write = |name: &str, text: &str| {
        fs::write(format!("{dumps}/module_0000.m.{name}.txt"), text).expect("written")
    };
    write("before_optimizations", &plain);
    write("0000.p.after_algsimp.before_dce", &log);
    write("cpu_after_optimizations", &plain);

    let (code, out, err) = hlo(&["bisect", "--dumps", &dumps]);
    assert!(code == 1 && out.contains("module 0 m: changed by algsimp"), "{out}{err}");
    assert!(
        out.contains("then inf (no rounding explains that)") && out.contains("on inputs made, seed 0, large"),
        "{out}"
    );
    assert!(out.contains("nothing was found on inputs made, seed 0, gentle"), "{out}");
    let (code, out, _) = hlo(&["bisect", "--dumps", &dumps, "--input-kind", "gentle"]);
    assert!(code == 0 && out.contains("no pass changes what it computes"), "{out}");
    let (code, out, _) =
        hlo(&["bisect", "--dumps", &dumps, "--input-kind", "extreme", "--seed", "3", "--json"]);
    assert!(code == 1 && out.contains("\"input_kind\":\"extreme\"") && out.contains("seed 3"), "{out}");
    // Recorded inputs that show nothing do not keep it from trying others, given ones do.
    let (program, npz) = (at("plain.hlo"), format!("{dumps}/inputs.npz"));
    fs::write(&program, &plain).expect("written");
    assert_eq!(hlo(&["run", &program, "--platform", "interpreter", "--save-inputs", &npz]).0, 0);
    assert_eq!(hlo(&["bisect", "--dumps", &dumps]).0, 1);
    assert_eq!(hlo(&["bisect", "--dumps", &dumps, "--inputs", &npz]).0, 0);
    let (code, _, err) = hlo(&["bisect", "--dumps", &dumps, "--inputs", &npz, "--input-kind", "large"]);
    assert!(code == 2 && err.contains("cannot be used with"), "{err}");
    let large = at("large.npz");
    let saved =
        ["run", &program, "--platform", "interpreter", "--input-kind", "large", "--save-inputs", &large];
    let (code, out, _) = hlo(&saved);
    assert!(code == 0 && out.contains("arg0: large"), "{out}");
    let (code, out, _) = hlo(&["bisect", "--dumps", &dumps, "--inputs", &large]);
    assert!(code == 1 && out.contains("on inputs ") && out.contains("large.npz"), "{out}");
}

fn commands() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (program, small, dumps) = (at("program.hlo"), at("small.hlo"), at("dumps"));
    let text = "HloModule m\n\nENTRY main {\n  a = f32[4] parameter(0)\n  b = f32[4] copy(a)\n  c = f32[4] sine(b)\n  d = f32[4] sine(a)\n  ROOT e = f32[4] add(c, d)\n}\n";
    fs::write(&program, text).expect("written");

    let (code, out, _) = hlo(&["opt", &program]);
    assert_eq!(code, 0);
    assert!(out.contains("add(c, c)"), "{out}");
    let (code, out, _) = hlo(&["opt", &program, "--passes", "cse"]);
    assert!(code == 0 && out.contains("add(c, d)"), "{out}");
    let (code, out, _) = hlo(&["opt", &program, "--fuel-passes", "1"]);
    assert!(code == 0 && out.contains("sine(a)") && out.contains("add(c, d)"), "{out}");
    let (code, out, _) = hlo(&["opt", &program, "--passes-fuel", "cse=0"]);
    assert!(code == 0 && out.contains("add(c, d)"), "{out}");
    let (code, _, err) = hlo(&["opt", &program, "--passes", "ces"]);
    assert!(code == 2 && err.contains("did you mean `cse`?"), "{err}");
    let (code, _, err) = hlo(&["opt", &program, "--passes-fuel", "nothing=3"]);
    assert!(code == 2 && err.contains("no pass `nothing`"), "{err}");
    let (code, out, _) = hlo(&["opt", &program, "-o", &small, "--dump-to", &dumps, "--verify-each"]);
    assert!(code == 0 && out.contains("2 applications of"), "{out}");
    assert_eq!(hlo(&["verify", &small]).0, 0);
    let (code, out, _) = hlo(&["bisect", "--dumps", &dumps]);
    assert!(code == 0 && out.contains("no pass changes what it computes (4 forms)"), "{out}");
    for (stage, part) in [
        ("html", "<rect x="),
        ("hlo", "ENTRY"),
        ("hlo-optimized", "is_scheduled=true"),
        ("buffer-assignment", "lower bound"),
        ("asm", ".globl"),
    ] {
        let (code, out, _) = hlo(&["opt", &program, "--stage", stage]);
        assert!(code == 0 && out.contains(part), "{stage}: {out}");
    }
    let (code, out, _) = hlo(&["opt", "--list-passes"]);
    assert!(code == 0 && out.contains("algebraic-simplifier") && out.contains("variant:tree"), "{out}");

    let (code, out, _) = hlo(&["bisect", &program]);
    assert!(code == 0 && out.contains("every pass keeps what the program computes"), "{out}");
    let (code, out, _) = hlo(&["bisect", &program, "--passes", "dce,variant:ulp-up,cse", "--json"]);
    assert!(code == 0 && out.contains("\"ok\":true"), "{out}");
    // The folder of a finding says the engine and the inputs.
    let engine = "passes:dce,faulty:negate-as-subtraction,cse";
    let (zero, found) = (at("zero.hlo"), at("found"));
    let text = "HloModule m\n\nENTRY main {\n  a = f32[2] constant({0, 1})\n  ROOT b = f32[2] negate(a)\n}\n";
    fs::write(&zero, text).expect("written");
    let (code, out, err) = hlo(&["run", &zero, "--platform", engine, "--save-mismatch", &found]);
    assert!(code == 1, "{out}{err}");
    let found = fs::read_dir(&found).expect("a finding").flatten().next().expect("a finding").path();
    let found = found.to_string_lossy();
    let (code, out, err) = hlo(&["bisect", &found]);
    assert!(code == 1 && out.contains("pass 1 `negate-as-subtraction`"), "{out}{err}");
    let (code, out, err) = hlo(&["reduce", &found]);
    assert!(code == 0 && out.contains("negate("), "{out}{err}");
    let (code, _, err) = hlo(&["reduce", &zero]);
    assert!(code == 2 && err.contains("--engines A,B"), "{err}");
    let (code, out, err) = hlo(&["bisect", &zero, "--platform", engine]);
    assert!(code == 1 && out.contains("pass 1 `negate-as-subtraction`"), "{out}{err}");
    let (code, out, err) = hlo(&["bisect", &program, "--platform", "cpu"]);
    assert!(code == 0 && out.contains("every pass keeps what the program computes"), "{out}{err}");
    let (code, _, err) = hlo(&["bisect", &program, "--platform", "serve:nothing"]);
    assert!(code == 2 && err.contains("--passes"), "{err}");

    let (code, _, err) = hlo(&["bisect", "--dumps", &at("")]);
    assert!(code == 2 && err.contains("holds no dumps"), "{err}");

    let altered = fs::read_dir(&dumps).expect("dumps").flatten().map(|e| e.path());
    let altered = altered.into_iter().find(|p| p.to_string_lossy().contains("after_cse")).expect("a dump");
    let text = fs::read_to_string(&altered).expect("text").replace("add(c, c)", "multiply(c, c)");
    fs::write(&altered, text).expect("written");
    let (code, out, _) = hlo(&["bisect", "--dumps", &dumps]);
    assert!(
        code == 1 && out.contains("changed by cse") && out.contains("+ e = f32[4] multiply(c, c)"),
        "{out}"
    );
    let (code, out, _) = hlo(&["bisect", "--dumps", &dumps, "--json"]);
    assert!(code == 1 && out.contains("\"pass\":\"cse\""), "{out}");
}
