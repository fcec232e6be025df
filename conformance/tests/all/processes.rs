//! Other programs, signals and surroundings that do what they should not: nothing is left behind, nothing
//! waits for ever, nothing that a file says is started, and what the environment lacks is no verdict.

use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::Value;

use crate::cli::{Dir, ends, err, hlo, out};
use crate::function;

const ADD: &str = "HloModule add\n\nENTRY e {\n  a = f32[2]{0} parameter(0)\n  b = f32[2]{0} parameter(1)\n  ROOT s = f32[2]{0} add(a, b)\n}\n";
const LOOP: &str = "HloModule m\n\nc {\n  p = f32[] parameter(0)\n  ROOT t = pred[] constant(true)\n}\n\nb {\n  p = f32[] parameter(0)\n  ROOT n = f32[] negate(p)\n}\n\nENTRY e {\n  p = f32[] parameter(0)\n  ROOT w = f32[] while(p), condition=c, body=b\n}\n";
const HLO: &str = env!("CARGO_BIN_EXE_hlo");

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        function("processes/engines end when the program is killed", engines_end),
        function("processes/commands of reduce end when the program is killed", commands_end),
        function("processes/what a command leaves in the background ends with it", background_ends),
        function("processes/what was left is swept", litter_is_swept),
        function("processes/outputs that are no files", outputs_that_are_no_files),
        function("processes/peers that never answer", peers_that_never_answer),
        function("processes/peers that print without end", peers_without_end),
        function("processes/no folder for temporary files", no_temporary_folder),
        function("processes/full disks", full_disks),
        function("processes/no files and no proc", no_files_and_no_proc),
        function("processes/folders start nothing", folders_start_nothing),
        function("processes/odd names", odd_names),
        function("processes/traces are complete or absent", traces),
        function("processes/arrays that do not fit", arrays_that_do_not_fit),
        function("processes/more threads than cores", more_threads_than_cores),
        function("processes/a killed hunt goes on", killed_hunts),
    ]
}

/// Long enough for a loaded machine.
const LONG: Duration = Duration::from_secs(60);

#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process runs; one that nobody has waited for does not.
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([format!("-{name}"), pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

/// A folder for temporary files, and a command that starts others in the background, in other sessions too,
/// and sleeps.
struct Sleeper {
    dir: Dir,
    temporary: PathBuf,
}

impl Sleeper {
    fn new() -> Self {
        let dir = Dir::new();
        let temporary = dir.path("tmp");
        fs::create_dir(&temporary).unwrap();
        dir.file("add.hlo", ADD);
        let pids = dir.path("pids");
        let pids = pids.display();
        let script = format!(
            "sleep 1000 & echo $! >> {pids}\nsetsid sleep 1000 & echo $! >> {pids}\n\
             (setsid sh -c 'sleep 1000 & echo $! >> {pids}; sleep 1000' & )\n\
             trap '' INT TERM HUP\necho $$ >> {pids}\nsleep 1000\n"
        );
        dir.file("sleeper.sh", script);
        Self { dir, temporary }
    }

    fn script(&self) -> String {
        format!("sh {}", self.dir.path("sleeper.sh").display())
    }

    fn start(&self, args: &[&str]) -> Child {
        Command::new(HLO)
            .args(args)
            .current_dir(self.dir.path("")) // where SIGINT is ignored, the engine's limit ends it, and a finding is kept
            .env("TMPDIR", &self.temporary)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Ends the program, and looks whether anything is left.
    fn ends_with(&self, mut program: Child, name: &str) {
        let pids = || fs::read_to_string(self.dir.path("pids")).unwrap_or_default();
        wait_until("all four processes run", || {
            pids().matches('\n').count() == 4 && pids().lines().all(runs)
        });
        let pids = pids();
        signal(program.id(), name);
        assert!(!program.wait().unwrap().success());
        wait_until(&format!("after {name} there are still {pids}"), || !pids.lines().any(runs));
        wait_until(&format!("after {name} there are still files"), || {
            fs::read_dir(&self.temporary).unwrap().count() == 0
        });
    }
}

fn engines_end() {
    // Each in its own thread: they mostly sleep.
    std::thread::scope(|scope| {
        let all = [("exec:", "INT"), ("exec:", "KILL"), ("serve:", "TERM"), ("child:exec:", "KILL")];
        let all = all.map(|(kind, name)| {
            scope.spawn(move || {
                let s = Sleeper::new();
                let engine = format!("{kind}{} #", s.script());
                let program = s.dir.path("add.hlo");
                s.ends_with(s.start(&["run", program.to_str().unwrap(), "--platform", &engine]), name);
            })
        });
        for one in all {
            one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
}

fn commands_end() {
    let s = Sleeper::new();
    let program = s.dir.path("add.hlo");
    let command = format!("{} #", s.script());
    s.ends_with(s.start(&["reduce", program.to_str().unwrap(), "--command", &command]), "KILL");
}

/// A command that runs this project's program as an engine.
fn ours(before: &str) -> String {
    format!(
        "exec:{before} {HLO} run {{module}} --platform interpreter --inputs {{inputs}} --output {{output}} --quiet"
    )
}

fn background_ends() {
    let d = Dir::new();
    let file = d.file("add.hlo", ADD);
    let pid = d.path("pid");
    let engine = ours(&format!("setsid sleep 1000 & echo $! > {};", pid.display()));
    ends(&hlo(&["run", &file, "--platform", &engine]), 0);
    assert!(!runs(fs::read_to_string(pid).unwrap().trim()));
}

fn litter_is_swept() {
    let d = Dir::new();
    let file = d.file("add.hlo", ADD);
    d.file("tmp/hlo-run-left/.lock", "");
    d.file("tmp/hlo-run-left/x/inputs.npz", "half");
    d.file("tmp/hlo-run-mine/notes", "no lock: not known to be left");
    let run = Command::new(HLO)
        .args(["run", &file, "--platform", &ours("")])
        .env("TMPDIR", d.path("tmp"))
        .output()
        .unwrap();
    ends(&run, 0);
    let left: Vec<_> = fs::read_dir(d.path("tmp")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["hlo-run-mine"]);
}

/// Runs a program on an engine, within a time, and says how it ends.
#[track_caller]
fn on(engine: &str, code: i32, says: &str) {
    let d = Dir::new();
    let file = d.file("add.hlo", ADD);
    let start = Instant::now();
    let saved = d.path("saved");
    let save = saved.to_str().unwrap();
    let o = hlo(&["run", &file, "--timeout", "2s", "--platform", engine, "--save-mismatch", save]);
    ends(&o, code);
    assert!(err(&o).contains(says), "{engine}: {}", err(&o));
    assert!(start.elapsed() < Duration::from_secs(50), "{engine}: {:?}", start.elapsed());
    assert!(saved.exists(), "a finding is saved of what an engine does");
}

fn outputs_that_are_no_files() {
    on("exec:mkfifo {output}", 1, "is not a file");
    on("exec:ln -s /dev/zero {output}", 1, "is not a file");
    on("exec:mkdir {output}", 1, "is a folder");
    on("exec:ln -s {output} {output}", 1, "symbolic link");
    on("exec:truncate -s 1T {output}", 1, "not an .npz file");
}

fn peers_that_never_answer() {
    on("exec:sleep 1000 #", 6, "took longer than 2 s");
    on("exec:trap '' TERM INT; while true; do sleep 1; done #", 6, "took longer than 2 s");
    on("serve:sleep 1000", 6, "took longer than 2 s");
    on("serve:sh -c 'exec >&-; sleep 1000'", 6, "took longer than 2 s");
    on("serve:yes not an answer", 6, "took longer than 2 s");
}

fn peers_without_end() {
    on("serve:tr '\\0' x < /dev/zero", 1, "more than the 1048576 bytes");
    on("serve:sh -c 'printf {; tr \"\\0\" x < /dev/zero'", 1, "more than the 1048576 bytes");
    on("exec:yes error >&2 #", 6, "took longer than 2 s");
    on("serve:yes '{\"error\": \"no\", \"kind\": \"trap\"}'", 6, "no");
    // Much of it is no failure.
    let d = Dir::new();
    let file = d.file("add.hlo", ADD);
    let engine = ours("head -c 5000000 /dev/zero >&2;");
    ends(&hlo(&["run", &file, "--platform", &engine]), 0);
}

fn no_temporary_folder() {
    let d = Dir::new();
    let file = d.file("add.hlo", ADD);
    let (found, out_dir) = (d.path("found"), d.path("out"));
    let (found, out_dir) = (found.to_str().unwrap(), out_dir.to_str().unwrap());
    for temporary in [d.path("nowhere"), PathBuf::from(&file)] {
        let run = |args: &[&str]| Command::new(HLO).args(args).env("TMPDIR", &temporary).output().unwrap();
        for engine in ["exec:true", "serve:cat", "child:interpreter"] {
            let o = run(&["run", &file, "--platform", engine, "--save-mismatch", found]);
            ends(&o, 6);
            assert!(err(&o).contains("R0043") && err(&o).contains("TMPDIR"), "{}", err(&o));
            let engines = format!("interpreter,{engine}");
            let o = run(&["fuzz", "--engines", &engines, "--count", "20", "--out", out_dir]);
            ends(&o, 6);
            assert!(err(&o).contains("TMPDIR"), "{}", err(&o));
            ends(&run(&["isolate", &file, "--platform", engine]), 6);
            ends(&run(&["reduce", &file, "--engines", &engines]), 6);
        }
        let o = run(&["reduce", &file, "--command", "false"]);
        ends(&o, 6);
        assert!(err(&o).contains("TMPDIR"), "{}", err(&o));
    }
    assert!(!Path::new(found).exists());
    let folders = fs::read_dir(out_dir).unwrap().filter(|e| e.as_ref().unwrap().path().is_dir());
    assert_eq!(folders.count(), 0, "no finding");
}

/// Runs a line of the shell in name spaces of its own; `None` where that is not allowed.
fn unshared(line: &str) -> Option<Output> {
    let run = |line: &str| Command::new("unshare").args(["-rm", "sh", "-c", line]).output();
    let allowed = run("mount -t tmpfs none /mnt").is_ok_and(|o| o.status.success());
    if !allowed {
        eprintln!("skipped: no name spaces of one's own here");
        return None;
    }
    Some(run(line).unwrap())
}

fn full_disks() {
    let d = Dir::new();
    let big =
        "HloModule m\n\nENTRY e {\n  a = f32[4096]{0} parameter(0)\n  ROOT n = f32[4096]{0} negate(a)\n}\n";
    let file = d.file("big.hlo", big);
    let small = d.file("add.hlo", ADD);
    let found = d.path("found");
    let run = |size: &str, file: &str, engine: &str| {
        unshared(&format!(
            "mount -t tmpfs -o size={size} none /mnt; TMPDIR=/mnt {HLO} run {file} --platform '{engine}' --save-mismatch {}",
            found.display()
        ))
    };
    // The inputs do not fit; they do, and the results do not; the command fills the disk.
    let fills = "exec:cat /dev/zero > /mnt/fill; exit 1 #";
    for (size, file, engine) in
        [("12k", &file, "exec:true"), ("36k", &file, "child:interpreter"), ("64k", &small, fills)]
    {
        let Some(o) = run(size, file, engine) else { return };
        ends(&o, 6);
        assert!(!err(&o).contains("ZipWriter") && err(&o).contains("no space left"), "{}", err(&o));
    }
    assert!(!found.exists());
    // Compiled programs that cannot be kept are said, and run.
    let line = format!(
        "mount -t tmpfs -o size=8k,mode=700 none /mnt; cat /dev/zero > /mnt/fill; {HLO} run {small} --platform cpu --cache /mnt"
    );
    let o = unshared(&line).unwrap();
    ends(&o, 0);
    assert!(err(&o).contains("could not be kept") && err(&o).contains("No space left"), "{}", err(&o));
    let line = format!("mount -t tmpfs -o size=4k none /mnt; {HLO} run {file} --output /mnt/out.npz -q");
    let o = unshared(&line).unwrap();
    ends(&o, 2);
    assert!(!err(&o).contains("ZipWriter") && err(&o).contains("no space left"), "{}", err(&o));
}

fn no_files_and_no_proc() {
    let d = Dir::new();
    let file = d.file("add.hlo", ADD);
    let found = d.path("found");
    for limit in [4, 6, 8, 10, 12, 14] {
        for engine in ["exec:true", "serve:cat", "child:interpreter"] {
            let line = format!(
                "ulimit -n {limit}; exec {HLO} run {file} --platform '{engine}' --save-mismatch {}",
                found.display()
            );
            let o = Command::new("sh").args(["-c", &line]).output().unwrap();
            // With enough of them the engine has its say.
            let code = o.status.code().unwrap();
            assert!([0, 1, 2, 6].contains(&code), "{limit} {engine}: {}", err(&o));
            let says_engine = err(&o).contains("results than the program has")
                || err(&o).contains("answered neither")
                || err(&o).contains("no array out0");
            assert!(code != 1 || says_engine, "{limit} {engine}: {}", err(&o));
        }
    }
    let line = format!("mount -t tmpfs none /proc; exec {HLO} run {file} --platform '{}'", ours(""));
    if let Some(o) = unshared(&line) {
        ends(&o, 0);
    }
}

/// Writes a folder of a finding with these engines.
fn finding(d: &Dir, reference: &str, engine: &str) -> String {
    let folder = d.path("mailed");
    let _ = fs::remove_dir_all(&folder);
    let json = serde_json::json!({
        "hlo_finding": 1, "reference": reference, "signature": {"kind": "wrong", "engine": engine},
    });
    d.file("mailed/finding.json", json.to_string());
    d.file("mailed/module.hlo", ADD);
    folder.to_str().unwrap().to_owned()
}

fn folders_start_nothing() {
    let d = Dir::new();
    let marker = d.path("marker");
    let evil = format!("touch {} #\u{1b}[2J", marker.display());
    for kind in ["exec:", "EXEC:", "serve:", "child:exec:", "child:Child:serve:"] {
        let engine = format!("{kind}{evil}");
        for (reference, engine) in [("interpreter", &*engine), (&*engine, "interpreter")] {
            let folder = finding(&d, reference, engine);
            let reduced = d.path("reduced");
            let reduced = reduced.to_str().unwrap();
            let isolates = engine != "interpreter";
            let commands: &[&[&str]] = &[
                &["run", &folder, "--timeout", "2"],
                &[
                    "reduce",
                    &folder,
                    "--out",
                    reduced,
                    "--timeout",
                    "2",
                    "--repeat",
                    "1",
                    "--max-candidates",
                    "1",
                ],
                &["isolate", &folder, "--timeout", "2"],
            ];
            for args in commands.iter().filter(|args| isolates || args[0] != "isolate") {
                let o = hlo(args);
                ends(&o, 2);
                assert!(err(&o).contains("--trust") && err(&o).contains("touch"), "{}", err(&o));
                assert!(!err(&o).contains('\u{1b}'), "{}", err(&o));
                assert!(!marker.exists(), "{args:?}");
            }
            if kind != "exec:" {
                continue;
            }
            for args in commands.iter().filter(|args| isolates || args[0] != "isolate") {
                let o = hlo(&[args, &["--trust"][..]].concat());
                assert!(err(&o).contains(&format!("runs `{kind}touch")), "{}", err(&o));
                assert!(marker.exists(), "{args:?}: {}", err(&o));
                fs::remove_file(&marker).unwrap();
            }
        }
    }
    // Whoever names engines has them.
    let folder = finding(&d, "interpreter", &format!("exec:{evil}"));
    ends(&hlo(&["run", &folder, "--platform", "interpreter:tree"]), 0);
    assert!(!marker.exists());
    ends(&hlo(&["run", &finding(&d, "interpreter", "form:/dev/zero")]), 2);
    // What is saved of an engine that is a command says how to repeat it, quoted.
    let file = d.file("add.hlo", ADD);
    let saved = d.path("saved");
    let o = hlo(&[
        "run",
        &file,
        "--platform",
        "exec:true it's $HOME #",
        "--save-mismatch",
        saved.to_str().unwrap(),
    ]);
    ends(&o, 1);
    let folder = fs::read_dir(&saved).unwrap().next().unwrap().unwrap().path();
    let command = fs::read_to_string(folder.join("command.txt")).unwrap();
    let quoted = r" --platform 'exec:true it'\''s $HOME #'";
    assert!(
        command.starts_with("hlo run hlo-mismatch-") && command.ends_with(&format!("{quoted}\n")),
        "{command}"
    );
    assert!(out(&o).contains(quoted), "{}", out(&o));
}

fn odd_names() {
    let d = Dir::new();
    let file = d.file("add.hlo", ADD);
    // Placeholders, quotes and bytes that are no text in the folder of temporary files.
    for name in [&b"a{output}b"[..], b"it's {inputs}", b"no\xfftext"] {
        let temporary = d.path("x").with_file_name(std::ffi::OsStr::from_bytes(name));
        fs::create_dir(&temporary).unwrap();
        let run = |engine: &str| {
            let args = ["run", &*file, "--platform", engine, "--save-mismatch", "none"];
            Command::new(HLO).args(args).env("TMPDIR", &temporary).output().unwrap()
        };
        ends(&run("child:interpreter"), if name.contains(&0xff) { 6 } else { 0 });
        ends(&run("exec:cp {inputs} {output} #"), 1);
        let o = run("serve:cat");
        ends(&o, if name.contains(&0xff) { 6 } else { 1 });
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
    }
    // Terminals are told nothing by names.
    let bad = d.file("\u{1b}[2J\u{9b}5m\u{202e}.hlo", "nonsense");
    for args in [&["verify", &*bad][..], &["run", &bad], &["print", &bad], &["run", "\u{1b}[2J"]] {
        let o = hlo(args);
        let said = out(&o) + &err(&o);
        assert!(
            !said.contains(['\u{1b}', '\u{9b}', '\u{202e}']) && said.contains("\\u{1b}"),
            "{args:?}: {said}"
        );
    }
    for program in [HLO, env!("CARGO_BIN_EXE_run_hlo_module")] {
        let o = Command::new(program)
            .args(["run"].iter().filter(|_| program == HLO))
            .arg(std::ffi::OsString::from_vec(b"no\xfftext.hlo".to_vec()))
            .output()
            .unwrap();
        ends(&o, 2);
    }
}

fn traces() {
    let d = Dir::new();
    let (file, endless) = (d.file("add.hlo", ADD), d.file("loop.hlo", LOOP));
    let trace = d.path("trace");
    let folder = trace.to_str().unwrap();
    let names = || {
        let mut names: Vec<_> = fs::read_dir(&trace).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    ends(&hlo(&["run", &file, "--trace", folder]), 0);
    let both = || ["index.jsonl", "values.npz"].map(|name| fs::read(trace.join(name)).unwrap());
    let before = both();
    let mut program =
        Command::new(HLO).args(["run", &endless, "--trace", folder]).stdout(Stdio::null()).spawn().unwrap();
    wait_until("a trace is begun", || names().len() > 2);
    std::thread::sleep(Duration::from_millis(300));
    assert!(program.try_wait().unwrap().is_none());
    signal(program.id(), "KILL");
    program.wait().unwrap();
    assert!(both() == before, "the older trace is as it was");
    ends(&hlo(&["diff-trace", folder, folder]), 0);
    ends(&hlo(&["run", &file, "--trace", folder, "--seed", "3"]), 0);
    assert_eq!(names(), ["index.jsonl", "values.npz"]);
    assert!(both() != before);
}

fn arrays_that_do_not_fit() {
    let d = Dir::new();
    let file = d.file("add.hlo", ADD);
    let three = d.file("three.hlo", "HloModule m\n\nENTRY e {\n  a = f32[2] parameter(0)\n  b = f32[2] parameter(1)\n  c = f32[2] parameter(2)\n  ROOT t = (f32[2], f32[2]) tuple(a, b)\n}\n");
    let [inputs, outputs, twice] =
        ["in.npz", "out.npz", "twice.npz"].map(|n| d.path(n).to_str().unwrap().to_owned());
    ends(&hlo(&["run", &three, "--save-inputs", &inputs, "--output", &outputs]), 0);
    for args in [["--inputs", &inputs], ["--expected", &outputs]] {
        let o = hlo(&["run", &file, args[0], args[1]]);
        ends(&o, 2);
        let name = if args[0] == "--inputs" { "has arg2, " } else { "has out1, " };
        assert!(err(&o).contains(name), "{}", err(&o));
    }
    // The last byte of a member's name, in its own head and in the directory.
    let mut bytes = fs::read(&inputs).unwrap();
    let at: Vec<usize> = (0..bytes.len() - 8).filter(|&i| bytes[i..].starts_with(b"arg2.npy")).collect();
    assert_eq!(at.len(), 2);
    at.iter().for_each(|&i| bytes[i + 3] = b'1');
    fs::write(&twice, bytes).unwrap();
    let o = hlo(&["run", &file, "--inputs", &twice]);
    ends(&o, 2);
    assert!(err(&o).contains("there twice"), "{}", err(&o));
}

fn more_threads_than_cores() {
    let d = Dir::new();
    let file = d.file("add.hlo", ADD);
    let o = hlo(&["run", &file, "--threads", "1024"]);
    ends(&o, 0);
    // As many as are of use are started, and no more.
    let start = |n: &str| {
        let mut program = Command::new(HLO)
            .args(["run", &d.file("loop.hlo", LOOP), "--platform", "interpreter", "--threads", n])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let tasks = format!("/proc/{}/task", program.id());
        std::thread::sleep(Duration::from_millis(1500));
        let count = fs::read_dir(tasks).map_or(0, Iterator::count);
        program.kill().unwrap();
        program.wait().unwrap();
        count
    };
    let cores = std::thread::available_parallelism().unwrap().get();
    assert!(start("1024") <= 16.max(4 * cores) + 16);
}

fn killed_hunts() {
    let d = Dir::new();
    let engines = "interpreter,faulty:broadcast-strides-swapped";
    let args = |out: &str, count: u64| {
        let text =
            format!("fuzz --engines {engines} --size small --jobs 2 --no-reduce --count {count} --out {out}");
        text.split(' ').map(str::to_owned).collect::<Vec<_>>()
    };
    let [killed, whole] = ["killed", "whole"].map(|n| d.path(n).to_str().unwrap().to_owned());
    let state = Path::new(&killed).join("hunt.json");
    let read = |file: &Path| -> Value { serde_json::from_slice(&fs::read(file).unwrap()).unwrap() };
    let found = |folder: &str| {
        let folders = fs::read_dir(folder).unwrap().filter(|e| e.as_ref().unwrap().path().is_dir());
        folders.count()
    };
    let (mut done, mut last) = (0, 0);
    for _ in 0..2 {
        let mut program =
            Command::new(HLO).args(args(&killed, 1_000_000)).stdout(Stdio::null()).spawn().unwrap();
        wait_until("a hunt is written down", || {
            state.exists()
                && found(&killed) > 0
                && read(&state)["progress"]["below"].as_u64() > Some(done + 5)
        });
        signal(program.id(), "KILL");
        program.wait().unwrap();
        let now = read(&state);
        assert_eq!(now["findings"].as_array().unwrap().len(), found(&killed), "what was found is there");
        assert!(read(&Path::new(&killed).join("totals.json"))["programs"].as_u64() > Some(0));
        done = now["progress"]["below"].as_u64().unwrap();
        // Programs behind the first that is not done: the other thread went ahead.
        let beyond = now["progress"]["beyond"].as_array().unwrap().iter();
        last = beyond.filter_map(Value::as_u64).max().unwrap_or(done);
    }
    let count = last.max(done) + 20;
    let run = |out: &str| Command::new(HLO).args(args(out, count)).output().unwrap();
    let o = run(&killed);
    ends(&o, 1);
    assert!(out(&o).contains("goes on behind"), "{}", out(&o));
    ends(&run(&whole), 1);
    let [killed_totals, whole_totals] = [&killed, &whole].map(|f| read(&Path::new(f).join("totals.json")));
    for field in ["programs", "skipped", "fuel", "findings", "engines", "coverage"] {
        assert_eq!(killed_totals[field], whole_totals[field], "{field}");
    }
    assert!(!state.exists(), "a hunt that is over begins anew");
}
