//! Attacks that are no programs: `.npz` files, findings and cases whose JSON is nonsense, peers that answer
//! nonsense, nothing or without end, signals, and limits of the operating system.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::edits::{EXTREMES, numbers};
use crate::limits;
use crate::random::Random;

/// One command, and what happens to it.
pub(crate) struct Hostile {
    /// Arguments of the program.
    pub(crate) words: Vec<String>,
    /// Shell commands before the program replaces the shell.
    pub(crate) limits: Option<String>,
    /// A signal, and when it is sent.
    pub(crate) signal: Option<(Signal, Duration)>,
    /// A description.
    pub(crate) about: String,
}

const ADD: &str = "HloModule add\n\nENTRY e {\n  a = f32[2,3]{1,0} parameter(0)\n  b = f32[2,3]{1,0} parameter(1)\n  ROOT s = f32[2,3]{1,0} add(a, b)\n}\n";
const LOOP: &str = "HloModule loop\n\nc {\n  p = (s32[], f32[64]) parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  n = s32[] constant(2000000000)\n  ROOT t = pred[] compare(i, n), direction=LT\n}\n\nb {\n  p = (s32[], f32[64]) parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  one = s32[] constant(1)\n  j = s32[] add(i, one)\n  x = f32[64] get-tuple-element(p), index=1\n  y = f32[64] sine(x)\n  ROOT t = (s32[], f32[64]) tuple(j, y)\n}\n\nENTRY e {\n  z = s32[] constant(0)\n  a = f32[64] parameter(0)\n  s = (s32[], f32[64]) tuple(z, a)\n  ROOT w = (s32[], f32[64]) while(s), condition=c, body=b\n}\n";
const CASE: &str = r#"{
 "name": "add",
 "replicas": 1,
 "partitions": 1,
 "params": [ {"type": "f32", "shape": [2, 3]}, {"type": "f32", "shape": [2, 3]} ],
 "results": [ {"type": "f32", "shape": [2, 3], "check": {"kind": "bits"}} ]
}
"#;
const FINDING: &str = r#"{
 "hlo_finding": 1,
 "reference": "interpreter",
 "signature": {"kind": "wrong", "opcode": "add", "code": null, "engine": "passes:default"},
 "allow": {"contraction": false},
 "replicas": 1,
 "partitions": 1,
 "accumulate_region": false,
 "seed": 0,
 "nan_bits": false,
 "policy": {"allow": {}, "nan_bits": false, "max_undecided": {"count": 0}},
 "summary": "1 of 6 elements are wrong",
 "origin": "attack"
}
"#;

/// Answers of programs that should write results. `{output}` and the like are filled in by the command.
const EXEC: &[&str] = &[
    "true",
    "false",
    "exit 5",
    "exit 6",
    "exit 70",
    "kill -9 $$",
    "kill -STOP $$",
    "sleep 60",
    "sleep 60 & exit 0",
    "yes",
    "yes >&2",
    "cat /dev/zero",
    "cp {inputs} {output}",
    "echo nonsense > {output}",
    ": > {output}",
    "mkfifo {output}",
    "mkdir {output}",
    "ln -s /dev/zero {output}",
    "ln -s {inputs} {output}",
    "head -c 3000000 /dev/urandom > {output}",
    "head -c 200 {inputs} > {output}",
    "printf '\\377\\376' >&2; exit 1",
    "rm -f {module} {inputs}",
];

/// Answers of servers. Each reads its requests from standard input.
const SERVE: &[&str] = &[
    "true",
    "cat",
    "yes",
    "sleep 60",
    "exec 0<&-; sleep 60",
    "exec 1>&-; sleep 60",
    "cat /dev/zero",
    "head -c 5000000 /dev/zero",
    "tr -d '\\n' < /dev/urandom",
    "yes '{\"ok\": true}'",
    "read l; echo '{\"ok\": true}'; read l; echo '{\"ok\": true}'; sleep 60",
    "read l; echo '{\"ok\": tru'; sleep 60",
    "read l; printf '{\"ok\": true}'; sleep 60",
    "read l; echo '{\"error\": 5}'",
    "read l; echo '{\"error\": \"x\", \"kind\": \"unheard of\"}'; cat",
    "read l; echo '{\"ok\": true, \"ok\": false}'; cat",
    "read l; printf '{\"error\": \"\\377\\376\\000\"}\\n'; cat",
    "read l; printf '%0100000d\\n' 0 | tr 0 '{'; cat",
    "read l; printf '{\"ok\":%0100000d\\n' 0 | tr 0 '['; cat",
    "kill -9 $PPID; cat",
];

/// An array of a `.npz` file whose header says something else than its data, perhaps.
fn npy(random: &mut Random) -> Vec<u8> {
    let types = [
        "<f4", "<f4", "<f4", "<f8", "|O", "|V8", "<i8", "|b1", "<c8", ">f4", "<f2", "<U7", "<f16", "f", "",
        "<f4'",
    ];
    let descr = types[random.below(types.len())];
    let mut shape = "2, 3".to_owned();
    match random.below(8) {
        0 => shape = EXTREMES[random.below(EXTREMES.len())].to_owned() + ", 3",
        1 => shape = String::new(),
        2 => shape = "6,".to_owned(),
        3 => shape = vec!["1"; random.below(3000)].join(", "),
        4 => shape = "4611686018427387904, 4611686018427387904, 4".to_owned(),
        _ => {}
    }
    let fortran = ["False", "True", "None", "1"][random.below(4)];
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': ({shape}), }}");
    match random.below(10) {
        0 => header.truncate(random.below(header.len() + 1)),
        1 => header = "{".repeat(random.below(50_000)),
        2 => header.push_str(&" ".repeat(random.below(60_000))),
        3 => header = header.replace("'shape'", "'descr'"),
        4 => header = "[".repeat(random.below(50_000)) + &header,
        _ => {}
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend(if random.one_in(8) { [random.below(256) as u8, 0] } else { [1, 0] });
    let length = if random.one_in(8) { random.next() as u16 } else { header.len() as u16 };
    bytes.extend(length.to_le_bytes());
    bytes.extend(header.as_bytes());
    let data = [24, 24, 24, 24, 23, 0, 1000, 1 << 20][random.below(8)];
    bytes.extend((0..data).map(|i| (i * 37) as u8));
    if random.one_in(10) {
        bytes.truncate(random.below(bytes.len()));
    }
    bytes
}

/// A `.npz` file. Errors: it cannot be written.
fn npz(path: &Path, names: &[&str], random: &mut Random) -> std::io::Result<()> {
    let mut zip = ZipWriter::new(std::fs::File::create(path)?);
    let method =
        if random.one_in(2) { zip::CompressionMethod::Stored } else { zip::CompressionMethod::Deflated };
    for name in names {
        if random.one_in(12) {
            continue;
        }
        let odd =
            [format!("{name}.npy/"), format!("../{name}.npy"), (*name).to_owned(), format!("{name}.npy\0")];
        let name =
            if random.one_in(10) { odd[random.below(odd.len())].clone() } else { format!("{name}.npy") };
        // A name that the archive refuses is left out.
        if zip.start_file(name, SimpleFileOptions::default().compression_method(method)).is_ok() {
            if random.one_in(40) {
                let zeros = vec![0; 1 << 20];
                for _ in 0..300 {
                    zip.write_all(&zeros)?;
                }
            } else {
                zip.write_all(&npy(random))?;
            }
        }
    }
    zip.finish().map_err(std::io::Error::other)?;
    if random.one_in(3) {
        let mut bytes = std::fs::read(path)?;
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[at] = random.next() as u8,
                1 => bytes.truncate(at.max(1)),
                _ => bytes[at] ^= 1 << random.below(8),
            }
        }
        std::fs::write(path, bytes)?;
    }
    Ok(())
}

/// A JSON text, changed.
fn json(text: &str, random: &mut Random) -> Vec<u8> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..1 + random.below(3) {
        let i = random.below(lines.len());
        let found = numbers(&lines[i], &(0..lines[i].len()));
        match (random.below(8), random.index(&found)) {
            (0, _) if lines.len() > 1 => drop(lines.remove(i)),
            (1, _) => lines.insert(i, lines[i].clone()),
            (2, _) => lines[i] = lines[i].replace("true", "1").replace("false", "null"),
            (3, _) => lines[i] = lines[i].replace(": \"", ": [\"").replace("\",", "\"],"),
            (4, _) => {
                let engines = [
                    "exec:touch started",
                    "serve:touch started",
                    "child:exec:touch started",
                    "recorded:/dev/zero",
                    "faulty:x",
                    "passes:",
                    "\\u0000",
                    "cpu:O9",
                ];
                let at = engines[random.below(engines.len())];
                lines[i] =
                    lines[i].replace("passes:default", at).replace("\"interpreter\"", &format!("\"{at}\""));
            }
            (5, _) if random.one_in(4) => lines[i].push_str(&"[".repeat(100_000)),
            (_, Some(k)) => {
                let new = [EXTREMES[random.below(EXTREMES.len())], "1e999", "-0.5", "\"x\"", "null", "{}"]
                    [random.below(6)];
                lines[i].replace_range(found[k].clone(), new);
            }
            (_, None) => {
                let end = random.below(lines[i].len() + 1);
                if lines[i].is_char_boundary(end) && random.one_in(3) {
                    lines[i].truncate(end);
                }
            }
        }
    }
    let mut bytes = lines.join("\n").into_bytes();
    if random.one_in(8) && !bytes.is_empty() {
        let at = random.below(bytes.len());
        bytes[at] = random.next() as u8;
    }
    bytes
}

/// Creates something odd where a file is expected.
fn odd_file(path: &Path, random: &mut Random) {
    let path_text = path.to_string_lossy();
    let made = match random.below(4) {
        0 => Command::new("mkfifo").arg(path).status(),
        1 => Command::new("mkdir").arg(path).status(),
        2 => Command::new("ln").args(["-s", "/dev/zero", &path_text]).status(),
        _ => Command::new("ln").args(["-s", &path_text, &path_text]).status(),
    };
    // If it cannot be made, there is none, which is odd as well.
    drop(made);
}

/// The attack of these random numbers, in a folder of its own. Errors: the folder cannot be written.
pub(crate) fn hostile(folder: &Path, random: &mut Random) -> std::io::Result<Hostile> {
    std::fs::write(folder.join("module.hlo"), ADD)?;
    std::fs::write(folder.join("loop.hlo"), LOOP)?;
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let one_of = |lines: &[&str], random: &mut Random| words(lines[random.below(lines.len())]);
    let mut made = Hostile { words: Vec::new(), limits: None, signal: None, about: String::new() };
    match random.below(6) {
        0 => {
            made.about = "arrays".to_owned();
            let path = folder.join("in.npz");
            if random.one_in(10) {
                odd_file(&path, random)
            } else {
                npz(&path, &["arg0", "arg1"], random)?
            }
            let path = folder.join("out.npz");
            if random.one_in(10) {
                odd_file(&path, random)
            } else {
                npz(&path, &["out0"], random)?
            }
            let lines = [
                "run module.hlo --inputs in.npz --save-mismatch none",
                "run module.hlo --expected out.npz --save-mismatch none",
                "run module.hlo --platform recorded:out.npz --save-mismatch none",
                "run module.hlo --save-inputs in.npz --output out.npz",
                "isolate module.hlo --platform cpu --inputs in.npz",
                "bench module.hlo --inputs in.npz --min-time 0",
                "bisect module.hlo --inputs in.npz",
                "run module.hlo --custom-call x=out.npz",
            ];
            made.words = one_of(&lines, random);
            made.words.extend(limits());
        }
        1 => {
            made.about = "a finding".to_owned();
            std::fs::write(folder.join("finding.json"), json(FINDING, random))?;
            npz(&folder.join("inputs.npz"), &["arg0", "arg1"], &mut Random::of(0, random.next() % 3))?;
            if random.one_in(6) {
                std::fs::remove_file(folder.join("module.hlo"))?;
            }
            let lines = [
                "run . --save-mismatch none",
                "isolate .",
                "bisect .",
                "reduce . --max-candidates 3 --max-time 3s --out r",
            ];
            made.words = one_of(&lines, random);
            made.words.extend(limits());
        }
        2 => {
            made.about = "a case".to_owned();
            std::fs::write(folder.join("case.json"), json(CASE, random))?;
            npz(&folder.join("inputs.npz"), &["arg0", "arg1"], random)?;
            npz(&folder.join("expected.npz"), &["out0"], random)?;
            let lines = [
                "run . --save-mismatch none",
                "test . --time-limit 5",
                "isolate . --platform cpu",
                "prove .",
                "test . --form both",
            ];
            made.words = one_of(&lines, random);
            if made.words[0] != "prove" {
                made.words.extend(limits());
            }
        }
        3 => {
            let (kind, peers) = if random.one_in(2) { ("exec", EXEC) } else { ("serve", SERVE) };
            let peer = format!("{kind}:{}", peers[random.below(peers.len())]);
            made.about = peer.clone();
            made.words = match random.below(4) {
                0 => words("isolate module.hlo --timeout 2 --platform"),
                1 => words(
                    "fuzz --count 2 --no-reduce --max-time 6 --timeout 2 --jobs 1 --size small --out f --engines",
                ),
                2 => words(
                    "reduce module.hlo --timeout 2s --max-time 6s --repeat 1 --max-candidates 3 --out r --engines",
                ),
                _ => words("run module.hlo --timeout 2s --save-mismatch none --platform"),
            };
            let pair = made.words[0] == "fuzz" || made.words[0] == "reduce";
            made.words.push(if pair { format!("interpreter,{peer}") } else { peer });
            made.words.extend(limits());
        }
        4 => {
            let signals = [Signal::INT, Signal::TERM, Signal::HUP];
            let signal = signals[random.below(signals.len())];
            let lines = [
                "run loop.hlo --platform cpu --reference-platform none",
                "run loop.hlo --platform interpreter",
                "bench loop.hlo",
                "fuzz --count 100000 --jobs 1 --out f",
                "reduce loop.hlo --out r --command false",
                "run module.hlo --platform exec:sleep\u{a0}60 --timeout 50s",
                "isolate loop.hlo --platform cpu",
            ];
            made.words = one_of(&lines, random);
            for word in &mut made.words {
                *word = word.replace('\u{a0}', " ");
            }
            made.signal = Some((signal, Duration::from_millis(random.below(500) as u64)));
            write!(made.about, "{signal:?}").map_err(std::io::Error::other)?;
        }
        _ => {
            let limit = match random.below(5) {
                0 => format!("ulimit -v {}", 1_000_000 << random.below(4)),
                // With 3 the system cannot load the libraries of any program.
                1 => format!("ulimit -n {}", 4 + random.below(40)),
                2 => format!("ulimit -f {}", random.below(3)),
                3 => "ulimit -s 1024".to_owned(),
                _ => "TMPDIR=/nowhere; export TMPDIR; exec 1> /dev/full".to_owned(),
            };
            let lines = [
                "run module.hlo --output out.npz --save-mismatch none",
                "verify module.hlo",
                "isolate module.hlo --platform cpu",
                "fuzz --count 2 --no-reduce --jobs 1 --out f",
                "run module.hlo --platform exec:false --save-mismatch none",
                "run module.hlo --platform interpreter --trace t",
                "opt module.hlo -o o.hlo",
                "bench module.hlo --min-time 0",
            ];
            made.words = one_of(&lines, random);
            made.about.clone_from(&limit);
            made.limits = Some(limit);
        }
    }
    Ok(made)
}
