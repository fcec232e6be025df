//! Names of dumps, dumps of our own with alterations by hand, and passes that fail in every way.

use std::fs;
use std::path::{Path, PathBuf};

use hlo::{ArrayLiteral, Module, Opcode};
use hlo_opt::passes::edit::each;
use hlo_opt::passes::{Fuel, Pass, Pipeline, by_name};

use super::dumps::{Report, Source, Status, run, series};
use super::names::{DumpName, Stage};
use super::passes::{Question, run as run_passes};
use crate::differential::{Settings, Subject};
use hlo_engines::engine::{Allowances, RunOptions};
use hlo_engines::frontend::parse_text;
use hlo_engines::inputs;

#[test]
fn names_of_dumps_are_taken_apart() {
    let stage = |counter, pipeline: &str, after: &str, before: Option<&str>| Stage::Pass {
        counter,
        pipeline: pipeline.into(),
        after: after.into(),
        before: before.map(str::to_owned),
    };
    for (file, expected) in [
        ("module_0002.jit_f.before_optimizations.txt", Some((2, "jit_f", Stage::Before))),
        ("module_0002.jit_f.cpu_after_optimizations.txt", Some((2, "jit_f", Stage::After))),
        (
            "module_12345.SyncTensorsGraph.17.sm_9.0_gpu_after_optimizations.txt",
            Some((12345, "SyncTensorsGraph.17.sm_9", Stage::After)),
        ),
        (
            "module_0002.jit_f.0033.HLO_passes.after_fusion.before_fusion-wrapper.txt",
            Some((2, "jit_f", stage(33, "HLO_passes", "fusion", Some("fusion-wrapper")))),
        ),
        (
            "module_0002.jit_f.0041.copy-insertion.after_adding_copies.txt",
            Some((2, "jit_f", stage(41, "copy-insertion", "adding_copies", None))),
        ),
        (
            "module_0001.a.1234.b.0007.after_layout_assignment.after_pipeline-start.before_x.txt",
            Some((1, "a.1234.b", stage(7, "after_layout_assignment", "pipeline-start", Some("x")))),
        ),
        ("module_0002.jit_f.cpu_after_optimizations-buffer-assignment.txt", None),
        ("module_0002.jit_f.ir-with-opt.ll", None),
        ("module_0002.jit_f.cpu_after_optimizations.dot", None),
        ("inputs.npz", None),
        ("notes.txt", None),
    ] {
        let got = DumpName::parse(file);
        let expected =
            expected.map(|(number, module, stage)| DumpName { number, module: module.into(), stage });
        assert_eq!(got, expected, "{file}");
    }
}

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/passdumps")
}

/// What there is to say of module 3 in a folder.
fn report(folder: &Path) -> Report {
    let all = series(folder).unwrap();
    let of = all.iter().find(|s| s.number == 3).unwrap();
    run(of, &Source { file: None, seed: 0, kind: None }, &RunOptions::default()).unwrap()
}

#[test]
fn forms_that_mean_the_same_are_not_called_changed() {
    let all = series(&sample()).unwrap();
    assert_eq!(
        all.iter().map(|s| (s.number, &*s.name)).collect::<Vec<_>>(),
        [(3, "jit_demo"), (4, "jit__lambda")]
    );
    let report = report(&sample());
    assert!(report.found.is_none() && report.drift.is_none(), "{report:?}");
    assert_eq!(report.missing, [5]);
    let status = |i: usize| &report.steps[i].status;
    assert_eq!((status(0), status(1)), (&Status::First, &Status::Same));
    // A division became a multiplication; a library call is known to nobody; a parameter became flat.
    assert!(matches!(status(2), Status::Rounding { share } if *share < 0.5), "{:?}", status(2));
    assert!(matches!(status(6), Status::Skipped { why } if why.contains("__some_library$matmul")));
    assert_eq!((report.steps.len(), report.compared()), (9, 8));
    assert_eq!(status(8), &Status::Same);
}

/// The sample with one file altered.
fn altered(counter: &str, from: &str, to: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut found = false;
    for entry in fs::read_dir(sample()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let mut text = fs::read_to_string(&path).unwrap();
        if name.contains(counter) {
            assert_eq!(text.matches(from).count(), 1, "{from} in {name}");
            text = text.replace(from, to);
            found = true;
        }
        fs::write(folder.path().join(name), text).unwrap();
    }
    assert!(found, "{counter}");
    folder
}

#[test]
fn an_altered_form_names_its_pass() {
    for (counter, from, to, pass, value) in [
        (
            ".0001.",
            "multiply(%centered, %centered)",
            "add(%centered, %centered)",
            Some("algsimp"),
            "square = f32[2,8] add(",
        ),
        (".0001.", "constant(0.024390243)", "constant(0.0244)", Some("algsimp"), "sevenths"),
        (".0002.", "constant(1e-05)", "constant(0.001)", Some("dce"), "epsilon = f32[] constant(0.001)"),
        (".0002.", "padding=0_0x2_1", "padding=0_0x1_2", Some("dce"), "padding=0_0x1_2"),
        (".0002.", "direction=LT", "direction=LE", Some("dce"), "compare(i.1, turns), direction=LE"),
        (
            ".0003.",
            "dimensions={0}\n  %normal",
            "dimensions={0}\n  %unnormal = f32[2,8]{1,0} multiply(%centered, %mean_all)\n  %normal",
            None,
            "",
        ),
        (
            ".0003.",
            "multiply(%centered, %scale_all)",
            "multiply(%scale_all, %scale_all)",
            Some("layout-assignment"),
            "normal",
        ),
        (".0004.", "rsqrt(%safe.1)", "sqrt(%safe.1)", Some("fusion"), "sqrt"),
        (
            ".0004.",
            "dynamic-slice(%padded, %first, %at)",
            "dynamic-slice(%padded, %first, %first)",
            Some("fusion"),
            "dynamic-slice",
        ),
        (".cpu_after_optimizations.txt", "tanh(%x.2)", "sine(%x.2)", None, "sine"),
    ] {
        let folder = altered(counter, from, to);
        let report = report(folder.path());
        if value.is_empty() {
            assert!(report.found.is_none(), "{from}: {report:?}");
            continue;
        }
        let found = report.found.unwrap_or_else(|| panic!("{from} to {to} in {counter}: {:?}", report.steps));
        assert!(found.step.file.contains(counter), "{found:?}");
        assert_eq!(found.pass.as_deref(), pass, "{found:?}");
        let shown = found.value.as_ref().unwrap();
        let mut lines = vec![shown.after.clone()];
        lines.extend(shown.changes.added.clone());
        assert!(lines.iter().any(|l| l.contains(value)), "{value}: {shown:?}");
        assert!(found.undone.is_some() == counter.starts_with(".0"), "{found:?}");
    }
}

#[test]
fn a_change_behind_a_gap_names_the_gap() {
    let folder = altered(".0007.", "tanh(%x.2)", "sine(%x.2)");
    let found = report(folder.path()).found.unwrap();
    assert_eq!(found.gap, ["0006 dot-library-rewriter (dot-library-passes)"]);
    assert!(found.before.file.contains(".0004."), "{found:?}");
}

#[test]
fn what_cannot_be_read_or_compared_is_skipped() {
    for (from, to) in [
        ("subtract(%x, %mean_all)", "subtract(%x, %nobody)"),
        ("%at = s32[] parameter(2)", "%at = s32[] parameter(3)"),
    ] {
        let folder = altered(".0002.", from, to);
        let report = report(folder.path());
        assert!(report.found.is_none());
        assert!(matches!(report.steps[3].status, Status::Skipped { .. }), "{:?}", report.steps[3]);
    }
    let empty = tempfile::tempdir().unwrap();
    assert!(series(empty.path()).unwrap_err().message.contains("holds no dumps"));
}

/// Does to additions what `what` says, from the first: a letter for each, `+` adds, `-` subtracts, `x` makes
/// what does not verify, `!` panics.
#[derive(Debug)]
struct Additions {
    name: &'static str,
    what: &'static str,
}

impl Pass for Additions {
    fn name(&self) -> &str {
        self.name
    }

    fn doc(&self) -> &str {
        "for tests"
    }

    fn run(&self, module: &mut Module, fuel: &mut Fuel) -> u64 {
        let mut next = self.what.chars();
        each(module, fuel, |e| {
            if !matches!(e.at().opcode, Opcode::Add | Opcode::Subtract) {
                return None;
            }
            let [a, b] = e.operands()?;
            match next.next()? {
                '+' => e.binary(Opcode::Add, a, b),
                '-' => e.binary(Opcode::Subtract, a, b),
                'x' => {
                    let wrong = e.binary(Opcode::Add, a, b)?;
                    // Something that only the verifier notices.
                    e.module.instr_mut(wrong).opcode = Opcode::Not;
                    Some(wrong)
                }
                _ => panic!("a pass that panics"),
            }
        })
    }
}

const SUM: &str = "HloModule sums
ENTRY main {
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  one = f32[4] add(a, b)
  two = f32[4] add(one, b)
  three = f32[4] add(two, a)
  ROOT four = f32[4] add(three, b)
}
";

fn bisected(pipeline: &Pipeline) -> super::passes::Report {
    let module = parse_text(SUM).0.unwrap();
    let plan = inputs::plan(&module, None).unwrap();
    let options = RunOptions::default();
    let arrays: Vec<Vec<ArrayLiteral>> =
        inputs::generate(&plan, 0, options.devices, options.limits.memory_bytes).unwrap();
    run_passes(&Question {
        subject: Subject::new(&module, &arrays),
        pipeline,
        settings: Settings { run: options, ..Settings::default() },
        allowances: Allowances::STRICT,
        accumulate: None,
    })
    .unwrap()
}

#[test]
fn the_first_bad_pass_and_application_are_found_whatever_comes_later() {
    let pass = |name: &'static str, what: &'static str| Box::new(Additions { name, what });
    for (what, later, failure, application) in [
        ("++-+", "++++", "wrong result", 3),
        ("-", "!", "wrong result", 1),
        ("+++x", "++++", "does not verify", 4),
        ("++!", "++++", "pass crashed", 3),
        ("+-+-", "x", "wrong result", 2),
    ] {
        let pipeline = Pipeline::new()
            .then(by_name("cse").unwrap(), None)
            .then(pass("fine", "++++"), None)
            .then(pass("suspect", what), None)
            .then(pass("later", later), None);
        let found = bisected(&pipeline).found.unwrap_or_else(|| panic!("{what}"));
        assert_eq!((found.step, &*found.pass), (2, "suspect"), "{what}");
        assert_eq!((found.bad.what, found.application), (failure, application), "{what}: {found:?}");
        if failure == "wrong result" {
            let name = ["one", "two", "three", "four"][application as usize - 1];
            assert!(found.changes.removed[0].contains(&format!("{name} = f32[4] add(")), "{found:?}");
            assert!(found.changes.added[0].contains(&format!("{name} = f32[4] subtract(")), "{found:?}");
        }
        assert_eq!(bisected(&pipeline).found, Some(found), "the same question has the same answer");
    }
    let fine = Pipeline::standard().then(pass("fine", "++++"), None);
    let report = bisected(&fine);
    assert!(report.found.is_none() && report.steps.iter().all(|s| s.fine), "{report:?}");
}
