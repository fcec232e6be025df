//! The check itself, without a device: the interpreter stands for one, as it is and with faults.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "says what is skipped")]

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use hlo_truth::families::{Scale, all};
use hlo_truth::run::{End, Row, Settings, run, summary};
use hlo_truth::target::{Interpreter, Module, Refusal, Target};

/// The interpreter, of a text in which something is replaced.
struct Faulty {
    from: &'static str,
    to: &'static str,
}

impl Target for Faulty {
    fn load(&self, ptx: &str) -> Result<Box<dyn Module + '_>, Refusal> {
        Interpreter.load(&ptx.replace(self.from, self.to))
    }
}

fn wrong(rows: &[Row]) -> Vec<String> {
    rows.iter().filter(|r| r.is_wrong()).map(|r| format!("{r:?}")).collect()
}

#[test]
fn the_interpreter_agrees_with_itself() {
    let cases = all(Scale::SMALL);
    let rows = run(&cases, &Interpreter, &Interpreter, &Settings::new(90));
    // Approximations are judged by functions of f64, not by the interpreter's bits.
    assert_eq!(wrong(&rows), Vec::<String>::new());
    let counts: BTreeMap<String, u64> =
        summary(&rows).into_iter().map(|f| (f.family, f.instructions)).collect();
    for (family, least) in [
        ("approximate", 20),
        ("atomic", 80),
        ("barrier", 25),
        ("compare", 700),
        ("convert", 600),
        ("float", 200),
        ("integer", 100),
        ("logic", 40),
        ("matrix", 10),
        ("memory", 150),
        ("mma", 25),
        ("warp", 20),
    ] {
        let got = counts.get(family).copied().unwrap_or(0);
        assert!(got >= least, "{family}: {got} instructions");
    }
    if std::env::var_os("HLO_TRUTH_LIST").is_some() {
        eprintln!("{counts:#?}");
        for r in &rows {
            if !matches!(r.end, End::Compared(_)) {
                eprintln!("{} {} {:?}", r.family, r.instruction, r.end);
            }
        }
    }
}

/// A fault a family: what is executed instead of what.
const FAULTS: &[(&str, &str, &str, &str)] = &[
    ("integer", "mul.hi.s32", "mul.hi.s32 ", "mul.hi.u32 "),
    ("float", "add.rn.f32", "add.rn.f32 ", "add.rz.f32 "),
    ("float", "fma.rn.f64", "fma.rn.f64 ", "fma.rm.f64 "),
    ("float", "mul.rn.ftz.f32", "mul.rn.ftz.f32 ", "mul.rn.f32 "),
    ("convert", "cvt.rni.s32.f32", "cvt.rni.s32.f32 ", "cvt.rzi.s32.f32 "),
    ("convert", "cvt.rn.bf16.f32", "cvt.rn.bf16.f32 ", "cvt.rz.bf16.f32 "),
    ("compare", "setp.lt.f32", "setp.lt.f32 ", "setp.ltu.f32 "),
    ("logic", "shf.l.clamp.b32", "shf.l.clamp.b32 ", "shf.l.wrap.b32 "),
    ("approximate", "ex2.approx.ftz.f32", "ex2.approx.ftz.f32 ", "ex2.approx.f32 "),
    ("approximate", "rcp.approx.f32", "rcp.approx.f32 ", "rsqrt.approx.f32 "),
    // Another generation's sums.
    ("mma", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", ".target sm_90", ".target sm_80"),
    ("warp", "shfl.sync.up.b32", "shfl.sync.up.b32 ", "shfl.sync.down.b32 "),
    ("warp", "redux.sync.max.s32", "redux.sync.max.s32 ", "redux.sync.max.u32 "),
    ("matrix", "ldmatrix.sync.aligned.m8n8.x4.shared.b16", ".x4.shared.b16 ", ".x4.trans.shared.b16 "),
    ("barrier", "bar.red.popc.u32 %d, 0, %q", "bar.red.popc.u32 %d, 0, %q", "bar.red.popc.u32 %d, 0, !%q"),
    ("atomic", "atom.global.max.s32", "atom.global.max.s32 ", "atom.global.max.u32 "),
    ("atomic", "atom.shared.add.f32", "atom.shared.add.f32 ", "atom.shared.exch.b32 "),
    ("memory", "ld.global.s16", "ld.global.s16 ", "ld.global.u16 "),
];

#[test]
fn a_fault_of_each_family_is_caught() {
    let cases = all(Scale { results: 2048, products: 56 });
    for &(family, instruction, from, to) in FAULTS {
        let settings = Settings {
            families: vec![family.to_owned()],
            filter: instruction.to_owned(),
            ..Settings::new(90)
        };
        let rows = run(&cases, &Interpreter, &Interpreter, &settings);
        assert!(!rows.is_empty() && wrong(&rows).is_empty(), "{instruction}: {:?}", wrong(&rows));
        let rows = run(&cases, &Faulty { from, to }, &Interpreter, &settings);
        let caught =
            rows.iter().any(|r| matches!(&r.end, End::Compared(v) if v.wrong > 0 && !v.first.is_empty()));
        assert!(caught, "{from} as {to} is not caught: {rows:?}");
    }
}

#[test]
fn without_time_cases_are_skipped_and_that_is_said() {
    let cases = all(Scale::SMALL);
    let settings = Settings { time: Duration::ZERO, families: vec!["mma".to_owned()], ..Settings::new(90) };
    let rows = run(&cases, &Interpreter, &Interpreter, &settings);
    assert!(!rows.is_empty() && rows.iter().all(|r| r.end == End::Skipped));
}

/// NVIDIA's assembler, named by `PTXAS`, on the texts; kernels run in the interpreter.
struct Ptxas {
    program: std::ffi::OsString,
    folder: tempfile::TempDir,
}

impl Target for Ptxas {
    fn load(&self, ptx: &str) -> Result<Box<dyn Module + '_>, Refusal> {
        let name = format!("{:?}.ptx", std::thread::current().id());
        let file = self.folder.path().join(name);
        std::fs::write(&file, ptx).unwrap();
        let out = Command::new(&self.program)
            .arg("-arch=sm_90")
            .arg(&file)
            .arg("-o")
            .arg("/dev/null")
            .output()
            .unwrap();
        if out.status.success() {
            return Interpreter.load(ptx);
        }
        let log = String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout);
        let number = |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
        let lines: Vec<u32> = log.split("line ").skip(1).filter_map(number).collect();
        let first = lines.first().and_then(|l| ptx.lines().nth(*l as usize - 1)).unwrap_or_default();
        Err(Refusal::Text(format!("{first}: {}", log.lines().next().unwrap_or_default()), lines))
    }
}

/// What the interpreter's verifier takes and the assembler refuses, by opcode: forms of other architectures
/// than sm_90 alone.
#[test]
fn ptxas_takes_the_kernels() {
    let Some(program) = std::env::var_os("PTXAS") else {
        eprintln!("skipped: PTXAS names no ptxas");
        return;
    };
    let target = Ptxas { program, folder: tempfile::tempdir().unwrap() };
    let cases = all(Scale::SMALL);
    let rows = run(&cases, &target, &Interpreter, &Settings::new(90));
    assert_eq!(wrong(&rows), Vec::<String>::new());
    for r in &rows {
        if let End::Refused(message) = &r.end {
            eprintln!("refused: {} {}: {message}", r.family, r.instruction);
        }
    }
    eprintln!("{:#?}", summary(&rows));
}
