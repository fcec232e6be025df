//! Limits of memory, stacks and files: what a process takes stays within them, or it ends with exit code 6.

use std::fmt::Write;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use hlo_system::resident::peak_of;
use libtest_mimic::Trial;

use crate::cli::{Dir, ends, err, hlo};
use crate::function;

const HLO: &str = env!("CARGO_BIN_EXE_hlo");

/// What a process may take beside `--memory-limit`.
const BESIDE_MIB: u64 = 256;

/// Runs a command and says how many MiB it took at most, as far as somebody who looks every millisecond sees.
fn resident(args: &[&str]) -> (Output, u64) {
    let mut child =
        Command::new(HLO).args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        most = most.max(peak_of(child.id()).unwrap_or(0));
        std::thread::sleep(Duration::from_millis(1));
    }
    (child.wait_with_output().unwrap(), most >> 20)
}

/// The array once, and a tuple of it that many times: 4 MB, and 1.6 GB if each were an array of its own.
fn repeated(times: usize) -> String {
    let shapes = vec!["f32[1000000]"; times].join(", ");
    let operands = vec!["r"; times].join(", ");
    format!(
        "HloModule m\n\nENTRY e {{\n  r = f32[1000000] iota(), iota_dimension=0\n  ROOT t = ({shapes}) tuple({operands})\n}}\n"
    )
}

/// `tuple(t, t)` of `tuple(t, t)`, without shapes.
fn nested(levels: usize) -> String {
    let mut text = "HloModule m\n\nENTRY e {\n  t0 = f32[100000] iota(), iota_dimension=0\n".to_owned();
    for i in 1..=levels {
        let root = if i == levels { "ROOT " } else { "" };
        writeln!(text, "  {root}t{i} = tuple(t{0}, t{0})", i - 1).unwrap();
    }
    text + "}\n"
}

fn shared_leaves_are_held_once() {
    let d = Dir::new();
    for (name, text) in [("repeated.hlo", repeated(400)), ("nested.hlo", nested(10))] {
        let file = d.file(name, &text);
        for platform in ["interpreter", "cpu"] {
            let (o, mib) = resident(&["run", &file, "-q", "--platform", platform, "--memory-limit", "64MiB"]);
            ends(&o, 0);
            assert!(mib <= 64 + BESIDE_MIB, "{name} on {platform}: {mib} MiB");
        }
    }
    // What is too deep is refused at once.
    ends(&hlo(&["run", &d.file("deep.hlo", nested(60)), "-q"]), 6);
}

fn inputs_and_results_count_together() {
    let d = Dir::new();
    let mib_of = |n: u64| n << 18;
    let identity = |n: u64| format!("HloModule m\n\nENTRY e {{\n  ROOT p = f32[{n}] parameter(0)\n}}\n");
    let file = d.file("identity.hlo", identity(mib_of(100)));
    for platform in ["interpreter", "cpu"] {
        let (o, mib) = resident(&["run", &file, "-q", "--platform", platform, "--memory-limit", "128MiB"]);
        // The interpreter's result is its input; a compiled program's is another array.
        ends(&o, if platform == "cpu" { 6 } else { 0 });
        assert!(mib <= 128 + BESIDE_MIB, "{platform}: {mib} MiB");
    }
}

fn texts_count() {
    let d = Dir::new();
    let mut text = "HloModule m\n\nENTRY e {\n  p = f32[] parameter(0)\n  a0 = f32[] add(p, p)\n".to_owned();
    for i in 1..200_000 {
        writeln!(text, "  a{i} = f32[] add(a{}, p)", i - 1).unwrap();
    }
    let instructions = d.file("instructions.hlo", text + "}\n");
    let elements = vec!["0"; 20_000_000].join(",");
    let text = format!("HloModule m\n\nENTRY e {{\n  ROOT c = f64[20000000] constant({{{elements}}})\n}}\n");
    let constant = d.file("constant.hlo", &text);
    for file in [instructions, constant] {
        // Commands that only read have a limit too.
        for command in [&["run", "-q"][..], &["verify"], &["print"], &["opt"]] {
            let (o, mib) = resident(&[command, &[&file, "--memory-limit", "16MiB"]].concat());
            ends(&o, 6);
            assert!(err(&o).contains("R0002"), "{command:?}: {}", err(&o));
            assert!(mib <= 16 + BESIDE_MIB, "{command:?}: {mib} MiB");
        }
    }
    // A device may have no end.
    for command in ["run", "verify", "print", "opt", "convert", "viz"] {
        let o = hlo(&[command, "/dev/zero"]);
        ends(&o, 2);
        assert!(err(&o).contains("is a device"), "{command}: {}", err(&o));
    }
}

fn limits_of_the_shell() {
    let d = Dir::new();
    let file = d.file(
        "add.hlo",
        "HloModule m\n\nENTRY e {\n  p = f32[8] parameter(0)\n  ROOT a = f32[8] add(p, p)\n}\n",
    );
    let within = |limit: &str| {
        let line = format!("ulimit {limit} && exec {HLO} run {file} -q");
        Command::new("sh").args(["-c", &line]).output().unwrap()
    };
    // Stacks are our own.
    for stack in ["-s 64", "-s 128", "-s 8192"] {
        ends(&within(stack), 0);
    }
    // A small limit is enough or leads to exit code 6, and a larger one is no worse.
    let mut enough = false;
    for mib in [400u64, 600, 900, 1400, 2000, 4000] {
        let o = within(&format!("-v {}", mib << 10));
        ends(&o, if enough || o.status.success() { 0 } else { 6 });
        enough |= o.status.success();
    }
    assert!(enough);
}

pub(crate) fn trials() -> Vec<Trial> {
    if !cfg!(target_os = "linux") {
        return Vec::new();
    }
    vec![
        function("limits::shared_leaves_are_held_once", shared_leaves_are_held_once),
        function("limits::inputs_and_results_count_together", inputs_and_results_count_together),
        function("limits::texts_count", texts_count),
        function("limits::limits_of_the_shell", limits_of_the_shell),
    ]
}
