//! Attacks on the program from outside: mutants of programs, hostile files, peers, signals and limits, each
//! against the commands of `hlo` in a process of its own.
//!
//! **Invariant:** attack number I of a seed depends on the seed, I and the list of programs alone.
//! Violations: exit code 70 or an undocumented one, death by a signal, the text of a panic, more memory than
//! the limit and 256 MiB, no end within the deadline, and a compiled result that is wrong by the interpreter.

#![forbid(unsafe_code)]

mod edits;
mod hostile;
mod observed;
mod random;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::process::{Pid, Signal, kill_process};

pub use edits::numbers;
use hlo_system::process::quoted_word;
use observed::{Bounds, Observed, observe, wrong};
use random::Random;

/// Options of attacks.
#[derive(Clone, Debug)]
pub struct Attack {
    /// The program `hlo`.
    pub program: PathBuf,
    /// Files of HLO text, and folders of them.
    pub sources: Vec<PathBuf>,
    /// What a line begins with that separates the programs of a file.
    pub separator: &'static str,
    /// Which sequence of attacks.
    pub seed: u64,
    /// The number of the first one.
    pub first: u64,
    /// The number.
    pub count: u64,
    /// The number at once.
    pub jobs: usize,
    /// No attack begins after this time.
    pub max_time: Duration,
    /// The longest time of one command.
    pub deadline: Duration,
    /// The folder of violations and of attacks' files.
    pub out: PathBuf,
}

/// Texts larger than this are no sources: their mutants are slow and show nothing more.
const MAX_SOURCE_BYTES: usize = 12 << 10;
/// Files larger than this are not kept with a violation: its number makes them again.
const MAX_KEPT_BYTES: u64 = 1 << 20;
/// One of this many attacks is no mutant of a program.
const ATTACKS_PER_HOSTILE: u64 = 8;
const MEMORY_LIMIT_MIB: u64 = 256;
/// The limit on time of each command, or of each run in it, of which it has three at most.
const TIMEOUT_SECONDS: u64 = 5;
const MEMORY_SLACK_MIB: u64 = 256;

/// A violation.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The kind of a violation: `panic`, `signal`, `exit`, `memory`, `deadline`, `wrong result`, `trust`.
    pub kind: &'static str,
    /// Its signature among those of its kind.
    pub what: String,
    /// The folder of its files.
    pub folder: PathBuf,
    /// The number of the attack.
    pub number: u64,
}

/// The result of attacks.
#[derive(Debug, Default)]
pub struct Report {
    /// The number of attacks.
    pub attacks: u64,
    /// The number of commands that were started.
    pub commands: u64,
    /// The number of mutants that verify.
    pub verified: u64,
    /// The numbers of commands by exit code.
    pub codes: BTreeMap<i32, u64>,
    /// One of each signature, with how often it was seen.
    pub violations: BTreeMap<String, (Violation, u64)>,
}

/// The programs of a file of tests, which lines that begin with `separator` separate: texts without comment
/// lines.
pub fn programs(text: &str, separator: &str) -> Vec<String> {
    text.split(separator)
        .map(|part| {
            let lines = part.lines().filter(|l| !l.trim_start().starts_with("//"));
            let mut text = String::new();
            // The first line is the rest of the separator's.
            for line in lines.skip_while(|l| !l.starts_with("HloModule")) {
                let code = line.split("  // error[").next().unwrap_or(line);
                text.push_str(code);
                text.push('\n');
            }
            text
        })
        .filter(|t| t.contains("ENTRY"))
        .collect()
}

fn collect(path: &Path, into: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let mut below: Vec<PathBuf> =
            fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path()).collect();
        below.sort();
        below.iter().for_each(|p| collect(p, into));
    } else if path.extension().is_some_and(|e| e == "hlo" || e == "txt") {
        into.push(path.to_owned());
    }
}

/// All programs of the sources, in an order that depends on their paths alone.
fn sources(roots: &[PathBuf], separator: &str) -> Vec<String> {
    let mut files = Vec::new();
    roots.iter().for_each(|r| collect(r, &mut files));
    let mut found = Vec::new();
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        // Of a file of many programs, each third: they differ in types and sizes.
        let all = programs(&text, separator);
        let step = if all.len() > 12 { all.len() / 6 } else { 1 };
        found.extend(all.into_iter().step_by(step).filter(|t| t.len() <= MAX_SOURCE_BYTES));
    }
    found
}

/// A command line of a mutant. `{m}` is the module's path, `{d}` the scratch folder.
type Line = &'static [&'static str];

/// Commands on what verifies, with weights.
const COMMANDS: &[(usize, Line)] = &[
    (3, &["print", "{m}", "--check-roundtrip"]),
    (1, &["print", "{m}", "--style", "default", "--nested", "--operand-shapes"]),
    (1, &["print", "{m}", "--style", "short"]),
    (1, &["print", "{m}", "--style", "canonical", "--elide"]),
    (1, &["verify", "{m}", "--json"]),
    (4, &["opt", "{m}", "--verify-each", "-o", "{d}/opt.hlo"]),
    (1, &["opt", "{m}", "--dump-to", "{d}/dumps", "-o", "{d}/opt.hlo"]),
    (2, &["opt", "{m}", "--stage", "hlo-optimized"]),
    (2, &["opt", "{m}", "--stage", "buffer-assignment"]),
    (1, &["opt", "{m}", "--stage", "llvm", "-O0"]),
    (1, &["opt", "{m}", "--stage", "asm", "-O3"]),
    (1, &["opt", "{m}", "--stage", "html", "-o", "{d}/page.html"]),
    (2, &["viz", "{m}", "-o", "{d}/viz.html"]),
    (1, &["viz", "{m}", "-o", "{d}/viz.svg"]),
    (3, &["isolate", "{m}", "--platform", "cpu", "{limits}"]),
    (2, &["isolate", "{m}", "--platform", "passes:default", "--html", "{d}/page.html", "{limits}"]),
    (
        1,
        &[
            "reduce",
            "{m}",
            "--engines",
            "interpreter,passes:default",
            "--max-candidates",
            "20",
            "--max-time",
            "4s",
            "--out",
            "{d}/r",
            "{limits}",
        ],
    ),
    (2, &["bisect", "{m}", "{limits}"]),
    (1, &["bisect", "{m}", "--passes", "cpu:O3", "{limits}"]),
    (2, &["bench", "{m}", "--min-time", "0", "{limits}"]),
    (
        1,
        &[
            "bench",
            "{m}",
            "--engine",
            "interpreter",
            "--min-time",
            "0",
            "--profile",
            "--trace",
            "{d}/t.json",
            "{limits}",
        ],
    ),
    (
        1,
        &[
            "fuzz",
            "--programs",
            "{m}",
            "--count",
            "1",
            "--no-reduce",
            "--max-time",
            "4",
            "--engines",
            "interpreter,cpu",
            "--out",
            "{d}/f",
            "{limits}",
        ],
    ),
    (
        2,
        &[
            "fuzz",
            "--mutate",
            "{m}",
            "--count",
            "6",
            "--no-reduce",
            "--max-time",
            "4",
            "--jobs",
            "1",
            "--engines",
            "interpreter,cpu",
            "--out",
            "{d}/f",
            "{limits}",
        ],
    ),
    (2, &["run", "{m}", "--platform", "interpreter", "--trace", "{d}/trace", "{limits}"]),
    (1, &["run", "{m}", "--platform", "interpreter", "--stats", "{limits}"]),
    (2, &["run", "{m}", "--input-kind", "extreme", "--save-mismatch", "none", "{limits}"]),
    (
        1,
        &[
            "run",
            "{m}",
            "--accumulate",
            "region",
            "--platform",
            "passes:default",
            "--save-mismatch",
            "none",
            "{limits}",
        ],
    ),
    (2, &["run", "{m}", "--platform", "cpu:O0", "--save-mismatch", "none", "{limits}"]),
    (1, &["run", "{m}", "--platform", "interpreter:reversed", "--save-mismatch", "none", "{limits}"]),
    (1, &["run", "{m}", "--replicas", "2", "--save-mismatch", "none", "{limits}"]),
    (
        1,
        &[
            "run",
            "{m}",
            "--json",
            "--save-inputs",
            "{d}/in.npz",
            "--output",
            "{d}/out.npz",
            "--iterations",
            "2",
            "--save-mismatch",
            "none",
            "{limits}",
        ],
    ),
    (1, &["test", "{d}", "--platform", "cpu", "--time-limit", "8", "{limits}"]),
    (1, &["filetest", "{m}"]),
    (1, &["prove", "{d}"]),
    (1, &["coverage", "{m}"]),
];

/// Commands on what does not.
const REFUSED: &[(usize, Line)] = &[
    (4, &["print", "{m}"]),
    (4, &["run", "{m}", "--no-verify", "--save-mismatch", "none", "{limits}"]),
    (4, &["opt", "{m}", "--no-verify", "-o", "{d}/opt.hlo"]),
    (2, &["viz", "{m}", "--no-verify", "-o", "{d}/viz.html"]),
    (1, &["verify", "{m}", "--json"]),
    (1, &["run", "{m}", "{limits}"]),
    (1, &["isolate", "{m}", "--platform", "cpu", "{limits}"]),
    (1, &["filetest", "{m}"]),
    (1, &["coverage", "{m}"]),
    (1, &["test", "{d}", "{limits}"]),
    (1, &["bench", "{m}", "{limits}"]),
    (1, &["fuzz", "--programs", "{m}", "--count", "1", "--max-time", "4", "--out", "{d}/f", "{limits}"]),
];

fn weighted(random: &mut Random, from: &'static [(usize, Line)]) -> Line {
    let mut at = random.below(from.iter().map(|c| c.0).sum());
    for (weight, line) in from {
        if at < *weight {
            return line;
        }
        at -= weight;
    }
    from[0].1
}

/// The limits of a command that runs programs.
fn limits() -> [String; 4] {
    let memory = format!("{MEMORY_LIMIT_MIB}MiB");
    ["--fuel", "100000", "--memory-limit", &memory].map(str::to_owned)
}

fn filled(line: Line, module: &Path, folder: &Path) -> Vec<String> {
    let mut words = Vec::new();
    for word in line {
        if *word == "{limits}" {
            words.extend(limits());
            // Fuel bounds no single instruction, and mutants have large ones.
            words.extend(["--timeout".to_owned(), format!("{TIMEOUT_SECONDS}s")]);
        } else {
            words.push(
                word.replace("{m}", &module.to_string_lossy()).replace("{d}", &folder.to_string_lossy()),
            );
        }
    }
    words
}

struct Hunt<'a> {
    attack: &'a Attack,
    sources: Vec<String>,
    next: AtomicU64,
    start: Instant,
    report: Mutex<Report>,
    progress: &'a (dyn Fn(&str) + Sync),
}

/// The command of an attack, and its subject.
struct Start<'a> {
    number: u64,
    words: Vec<String>,
    limits: Option<&'a str>,
    signal: Option<(Signal, Duration)>,
    about: &'a str,
}

impl Hunt<'_> {
    fn over(&self) -> bool {
        self.start.elapsed() > self.attack.max_time
    }

    fn report(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawned(&self, start: &Start<'_>, folder: &Path) -> Command {
        let mut command = match start.limits {
            None => Command::new(&self.attack.program),
            Some(limits) => {
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(format!("{limits}; exec \"$0\" \"$@\"")).arg(&self.attack.program);
                shell
            }
        };
        command.args(&start.words).args(["--threads", "2"]).current_dir(folder).stdin(Stdio::null());
        command
    }

    fn observed(&self, start: &Start<'_>, bounds: Bounds, folder: &Path) -> Option<Observed> {
        let mut signal = start.signal;
        let mut send = |pid: u32, running: Duration| {
            if let Some((name, _)) = signal.take_if(|(_, when)| running >= *when)
                && let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw)
            {
                // It may have ended already.
                let _ = kill_process(pid, name);
            }
        };
        observe(&mut self.spawned(start, folder), bounds, &mut send).ok()
    }

    /// Runs one command. Returns its exit code, if it had one.
    fn command(&self, start: &Start<'_>, folder: &Path) -> Option<i32> {
        let bounds = Bounds {
            deadline: self.attack.deadline,
            resident_bytes: (MEMORY_LIMIT_MIB + MEMORY_SLACK_MIB) << 20,
        };
        let mut seen = self.observed(start, bounds, folder)?;
        if seen.status.is_none() && seen.peak_bytes <= bounds.resident_bytes {
            // On a machine that has other things to do a command may be late once.
            let longer = Bounds { deadline: bounds.deadline * 2, ..bounds };
            seen = self.observed(start, longer, folder)?;
        }
        // Whoever limits the size of files is sent this one, which safe code cannot ignore.
        let limited = start.limits.filter(|l| l.contains("ulimit -f")).map(|_| Signal::XFSZ.as_raw());
        let sent = start.signal.map(|(name, _)| name.as_raw()).or(limited);
        let mut found = wrong(&seen, bounds, sent);
        let code = seen.status.and_then(|s| s.code());
        let differs = code == Some(1) && start.words[0] == "run" && start.limits.is_none();
        if found.is_none() && start.compares() && differs && seen.text.lines().any(|l| l.trim() == "mismatch")
        {
            found = Some(("wrong result", start.about.to_owned()));
        }
        if found.is_none() && folder.join("started").exists() {
            found = Some(("trust", "a file started a program".to_owned()));
        }
        let mut report = self.report();
        report.commands += 1;
        *report.codes.entry(code.unwrap_or(-1)).or_default() += 1;
        if let Some((kind, what)) = found {
            self.keep(&mut report, start, &seen, (kind, what), folder);
        }
        code
    }

    /// Counts a violation, and keeps the first one of each signature on disk.
    fn keep(
        &self,
        report: &mut Report,
        start: &Start<'_>,
        seen: &Observed,
        (kind, what): (&'static str, String),
        folder: &Path,
    ) {
        let signature = if kind == "panic" {
            format!("{kind}: {what}")
        } else {
            format!("{kind} of {}: {what}", start.words[0])
        };
        if let Some((_, times)) = report.violations.get_mut(&signature) {
            *times += 1;
            return;
        }
        let at = self.attack.out.join(format!("{:03}-{}", report.violations.len(), kind.replace(' ', "-")));
        let line: Vec<String> =
            start.words.iter().map(|w| quoted_word(&w.replace(&*folder.to_string_lossy(), "."))).collect();
        let limits = start.limits.map_or_else(String::new, |l| format!("{l}; "));
        let signal =
            start.signal.map_or_else(String::new, |(name, when)| format!("\n# {name:?} after {when:?}"));
        let about = format!("seed {} attack {}: {}", self.attack.seed, start.number, start.about);
        (self.progress)(&format!(
            "{signature}\n  {about}, after {} ms: {}",
            seen.time.as_millis(),
            at.display()
        ));
        let command = format!("# {about}{signal}\n{limits}hlo {} --threads 2\n", line.join(" "));
        // What cannot be kept can be made again from its number.
        let kept = fs::create_dir_all(&at)
            .and_then(|()| fs::write(at.join("command.txt"), command))
            .and_then(|()| fs::write(at.join("output.txt"), &seen.text))
            .and_then(|()| copy_files(folder, &at));
        if let Err(e) = kept {
            (self.progress)(&format!("  it could not be kept: {e}"));
        }
        report.violations.insert(signature, (Violation { kind, what, folder: at, number: start.number }, 1));
    }

    fn one(&self, number: u64, folder: &Path) -> io::Result<()> {
        let mut random = Random::of(self.attack.seed, number);
        if number % ATTACKS_PER_HOSTILE == ATTACKS_PER_HOSTILE - 1 {
            let hostile = hostile::hostile(folder, &mut random)?;
            let start = Start {
                number,
                words: hostile.words,
                limits: hostile.limits.as_deref(),
                signal: hostile.signal.map(|(signal, when)| (heard(signal), when)),
                about: &hostile.about,
            };
            self.command(&start, folder);
            return Ok(());
        }
        let source = &self.sources[random.below(self.sources.len())];
        let (text, steps) = edits::mutant(source, &self.sources, &mut random);
        let module = folder.join("module.hlo");
        fs::write(&module, &text)?;
        let about = steps.join(", ");
        let go = |line: Line| {
            let start = Start {
                number,
                words: filled(line, &module, folder),
                limits: None,
                signal: None,
                about: &about,
            };
            self.command(&start, folder)
        };
        if go(&["verify", "{m}"]) == Some(0) {
            self.report().verified += 1;
            go(&["run", "{m}", "--save-mismatch", "none", "{limits}"]);
            go(weighted(&mut random, COMMANDS));
        } else if random.one_in(3) {
            go(weighted(&mut random, REFUSED));
        }
        Ok(())
    }
}

impl Start<'_> {
    /// Whether only the program's own engines are compared, without variants, so that a mismatch is wrong.
    fn compares(&self) -> bool {
        let platform = self.words.iter().position(|w| w == "--platform").and_then(|i| self.words.get(i + 1));
        let own = platform.is_none_or(|p| p.starts_with("cpu") || p.starts_with("passes:"));
        own && !self.words.iter().any(|w| w == "--expected" || w == ".")
    }
}

/// A signal that commands are sent. One that this process was started with as ignored, as `nohup` does with
/// `SIGHUP`, they inherit as ignored, and rightly go on: `SIGTERM` instead of it.
fn heard(signal: Signal) -> Signal {
    let ignored = hlo_system::resident::ignored_signals().unwrap_or(0);
    if ignored >> (signal.as_raw() - 1) & 1 == 1 { Signal::TERM } else { signal }
}

/// The files of a folder that are not too large, without those of folders in it.
fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)?.flatten() {
        let small = entry.metadata().is_ok_and(|m| m.is_file() && m.len() <= MAX_KEPT_BYTES);
        if small {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Attacks, and reports violations and progress. Errors: there is nothing to change, or no folder to work in.
pub fn run(attack: &Attack, progress: &(dyn Fn(&str) + Sync)) -> Result<Report, String> {
    let sources = sources(&attack.sources, attack.separator);
    if sources.is_empty() {
        return Err("there are no programs to change".to_owned());
    }
    fs::create_dir_all(&attack.out).map_err(|e| format!("{}: {e}", attack.out.display()))?;
    let out = fs::canonicalize(&attack.out).map_err(|e| format!("{}: {e}", attack.out.display()))?;
    let attack = &Attack { out, ..attack.clone() };
    let hunt = Hunt {
        attack,
        sources,
        next: AtomicU64::new(0),
        start: Instant::now(),
        report: Mutex::default(),
        progress,
    };
    let failure: Mutex<Option<String>> = Mutex::default();
    let work = |job: usize| {
        let scratch = attack.out.join(format!("scratch-{job}"));
        while !hunt.over() {
            let i = hunt.next.fetch_add(1, Ordering::Relaxed);
            if i >= attack.count {
                break;
            }
            // There is none the first time.
            drop(fs::remove_dir_all(&scratch));
            let tried = fs::create_dir_all(&scratch).and_then(|()| hunt.one(attack.first + i, &scratch));
            if let Err(e) = tried {
                *failure.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(format!("{}: {e}", scratch.display()));
                break;
            }
            let mut report = hunt.report();
            report.attacks += 1;
            if report.attacks.is_multiple_of(500) {
                let Report { attacks, verified, commands, codes, .. } = &*report;
                progress(&format!(
                    "{attacks} attacks, {verified} programs verify, {commands} commands, exit codes {codes:?}"
                ));
            }
        }
        drop(fs::remove_dir_all(&scratch));
    };
    std::thread::scope(|scope| {
        for job in 0..attack.jobs.max(1) {
            let work = &work;
            scope.spawn(move || work(job));
        }
    });
    if let Some(why) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(why);
    }
    Ok(hunt.report.into_inner().unwrap_or_else(PoisonError::into_inner))
}
