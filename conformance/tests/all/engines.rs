//! Engines that are other programs: whatever they do, the run ends with an outcome that says so.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use hlo_engines::engine::{self, InterpreterEngine};
use hlo_engines::frontend::parse_text;
use hlo_generate::generate::inputs;
use hlo_system::exit::Exit;
use hlo_triage::differential::{Kind, Settings, Subject, differ};
use libtest_mimic::Trial;

use crate::cli::Dir;
use crate::function;

const PROGRAM: &str = "HloModule m\n\nENTRY e {\n  a = f32[3]{0} parameter(0)\n  b = bf16[2]{0} parameter(1)\n  n = f32[3]{0} negate(a)\n  ROOT t = (f32[3]{0}, bf16[2]{0}) tuple(n, b)\n}\n";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        function("engines/a child gives the same bits", child),
        function("engines/recorded results", recorded),
        function("engines/commands end in every way", commands),
        function("engines/a server serves, crashes and is started again", server),
        function("engines/hlo serves what others ask for", serve),
        function("engines/time limits", time_limits),
    ]
}

/// How `engine` compares with the interpreter on [`PROGRAM`], and why if it failed.
fn compare(engine: &str, timeout: Duration) -> (Kind, String) {
    let (module, found) = parse_text(PROGRAM);
    assert!(found.is_empty());
    let module = module.unwrap();
    let arrays = inputs(&module, 1);
    let engine = engine::with_timeout(engine, timeout).unwrap();
    let d = differ(&InterpreterEngine, &*engine, &Subject::new(&module, &arrays), &Settings::default());
    (d.kind, d.failure.map_or(String::new(), |d| d.message))
}

const LONG: Duration = Duration::from_secs(60);

/// A command that runs this project's program as an engine.
fn ours(more: &str) -> String {
    let hlo = env!("CARGO_BIN_EXE_hlo");
    format!("{hlo} run {{module}} --inputs {{inputs}} --output {{output}} --quiet {more}")
}

fn child() {
    // `child:` starts the program that it is part of, which a test binary is not; a command does the same.
    assert_eq!(compare(&format!("exec:{}", ours("")), LONG), (Kind::Same, String::new()));
}

fn serve() {
    let hlo = env!("CARGO_BIN_EXE_hlo");
    assert_eq!(compare(&format!("serve:{hlo} serve interpreter"), LONG), (Kind::Same, String::new()));
    let (kind, why) = compare(&format!("serve:{hlo} serve pjrt:none.so"), LONG);
    assert_eq!(kind, Kind::Unsupported, "{why}");
    assert!(why.contains("the plugin cannot be used: none.so"), "{why}");
    // Lines that ask for nothing are answered, and the next is read.
    let mut child = Command::new(hlo)
        .args(["serve", "interpreter"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let asked = b"{}\nnonsense\n{\"module\": \"/nonexistent\", \"inputs\": \"/nonexistent\", \"output\": \"/nonexistent\"}\n";
    child.stdin.take().unwrap().write_all(asked).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    let answers = String::from_utf8(ended.stdout).unwrap();
    let answers: Vec<&str> = answers.lines().collect();
    assert_eq!(answers.len(), 3, "{answers:?}");
    assert!(answers[..2].iter().all(|a| a.contains("the line asks for no run")), "{answers:?}");
    assert!(answers[2].contains("cannot be read"), "{answers:?}");
    let mut long = Command::new(hlo).args(["serve", "interpreter"]).stdin(Stdio::piped()).spawn().unwrap();
    // It ends before it has read all.
    let _ = long.stdin.take().unwrap().write_all(&vec![b'x'; 1 << 20]);
    assert_eq!(long.wait().unwrap().code(), Some(2));
}

fn recorded() {
    let dir = Dir::new();
    let out = dir.path("out.npz");
    let keep = format!("exec:{} && cp {{output}} {}", ours(""), out.display());
    assert_eq!(compare(&keep, LONG).0, Kind::Same);
    assert_eq!(compare(&format!("recorded:{}", out.display()), LONG).0, Kind::Same);
    // A file that is not there is refused before anything runs.
    let why = engine::with_timeout("recorded:nowhere.npz", LONG).err().expect("there is no such file");
    assert!(why.exit == Exit::Usage && why.message.contains("nowhere.npz"), "{}", why.message);
}

fn commands() {
    let ends = |command: &str| compare(&format!("exec:{command}"), LONG);
    let (kind, why) = ends("true");
    assert!(kind == Kind::Crash && why.contains("other results"), "{why}");
    let (kind, why) = ends("echo it broke >&2; exit 3 #");
    assert!(kind == Kind::Crash && why.contains("it broke"), "{why}");
    assert_eq!(ends("exit 5 #").0, Kind::Unsupported);
    assert_eq!(ends("exit 6 #").0, Kind::Trap);
    let (kind, why) = ends("kill -SEGV $$ #");
    assert!(kind == Kind::Crash && why.contains("signal"), "{why}");
    assert_eq!(ends("/nowhere/at/all").0, Kind::Crash);
}

fn server() {
    let dir = Dir::new();
    // Serves by this project's program; crashes at every second run.
    let script = dir.file(
        "serve.sh",
        format!(
            "while read -r line; do\n  field() {{ printf '%s' \"$line\" | sed \"s/.*\\\"$1\\\":\\\"\\([^\\\"]*\\)\\\".*/\\1/\"; }}\n  \
             if {} run \"$(field module)\" --inputs \"$(field inputs)\" --output \"$(field output)\" --quiet; then echo '{{\"ok\": true}}'; \
             else echo '{{\"error\": \"no\", \"kind\": \"unsupported\"}}'; fi\n  echo noise\n  read -r line && kill -KILL $$\ndone\n",
            env!("CARGO_BIN_EXE_hlo")
        ),
    );
    let (module, _) = parse_text(PROGRAM);
    let module = module.unwrap();
    let arrays = inputs(&module, 1);
    let engine = engine::by_name(&format!("serve:sh {script}")).unwrap();
    let kinds: Vec<Kind> = (0..4)
        .map(|_| {
            differ(&InterpreterEngine, &*engine, &Subject::new(&module, &arrays), &Settings::default()).kind
        })
        .collect();
    assert_eq!(kinds, [Kind::Same, Kind::Crash, Kind::Same, Kind::Crash]);
}

fn time_limits() {
    let short = Duration::from_millis(300);
    assert_eq!(compare("exec:sleep 30 #", short).0, Kind::Timeout);
    assert_eq!(compare("serve:sleep 30", short).0, Kind::Timeout);
}
