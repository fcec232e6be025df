//! Threads and processes that share a cache, and processes that are killed while they write to it. In short
//! here; `make stress` is the long form: a thousand programs, two hundred kills.
//!
//! The other processes are this program again, told by the environment what to do.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking; processes tell each other by their output"
)]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use hlo::{ArrayLiteral, Buffer};
use hlo_client::{Client, ClientOptions, Code, CompileOptions, DiskCache, Verdict};

/// Where the cache is: tells a process that it is one of several.
const FOLDER: &str = "HLO_STRESS_FOLDER";
/// How many programs there are, and with which the process begins.
const PROGRAMS: &str = "HLO_STRESS_PROGRAMS";
const FIRST: &str = "HLO_STRESS_FIRST";
/// Where the cache is of the process that may write nothing.
const FULL_FOLDER: &str = "HLO_STRESS_FULL_FOLDER";

const THREADS: u32 = 8;
const PROCESSES: u32 = 3;

/// Program `n`: what it computes of `x` is `x * x + n`, on its own number of elements.
fn text(n: u32) -> String {
    let elements = 1 + n % 7;
    format!(
        "HloModule program{n}\nENTRY e {{ x = f32[{elements}] parameter(0)  xx = f32[{elements}] multiply(x, x)
           c = f32[] constant({n})  cs = f32[{elements}] broadcast(c), dimensions={{}}  ROOT r = f32[{elements}] add(xx, cs) }}"
    )
}

fn check(client: &Client, n: u32) {
    let options = CompileOptions { opt_level: 0, ..CompileOptions::default() };
    let program = client.compile(&client.parse(&text(n)).unwrap(), &options).unwrap();
    let values: Vec<f32> = (0..1 + n % 7).map(|i| i as f32).collect();
    let expected: Vec<f32> = values.iter().map(|x| x * x + n as f32).collect();
    let x = ArrayLiteral::new([values.len() as i64].as_slice().into(), Buffer::F32(values)).unwrap();
    let result = program.execute(&[&client.buffer(&x).unwrap()]).unwrap().remove(0);
    assert_eq!(*result.to_literal().unwrap().buffer, Buffer::F32(expected), "program {n}");
}

fn client(folder: &Path) -> Client {
    let options =
        ClientOptions { cache_directory: Some(folder.to_owned()), threads: 1, ..Default::default() };
    Client::cpu(options).unwrap()
}

fn number(name: &str) -> u32 {
    std::env::var(name).unwrap().parse().unwrap()
}

/// One of the processes: eight threads that run all programs, each in another order. Says when one is done,
/// and at the end what its cache did.
#[test]
fn process() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let (programs, first) = (number(PROGRAMS), number(FIRST));
    let client = client(Path::new(&folder));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let client = &client;
            scope.spawn(move || {
                for k in 0..programs {
                    check(client, (first + thread * programs / THREADS + k) % programs);
                    // Who is killed has a broken pipe at worst.
                    let _ = writeln!(std::io::stdout(), "done");
                }
            });
        }
    });
    let statistics = client.cache_statistics();
    println!(
        "compiled {} loaded {} dropped {}",
        statistics.compilations, statistics.disk_hits, statistics.disk_dropped
    );
}

fn start(folder: &Path, programs: u32, first: u32) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["process", "--exact", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .env(PROGRAMS, programs.to_string())
        .env(FIRST, first.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What a process says at its end: programs compiled, loaded, dropped.
fn outcome(child: Child) -> [u64; 3] {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let last = said.lines().find(|line| line.contains("compiled ")).expect("its statistics");
    let numbers: Vec<u64> = last.split(' ').filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().unwrap()
}

/// Eight threads in each of three processes run all programs: each is compiled once, and every result is
/// right.
fn each_is_compiled_once(programs: u32) {
    let folder = tempfile::tempdir().unwrap();
    let all: Vec<Child> =
        (0..PROCESSES).map(|p| start(folder.path(), programs, p * programs / PROCESSES)).collect();
    let outcomes: Vec<[u64; 3]> = all.into_iter().map(outcome).collect();
    let sum = |k: usize| outcomes.iter().map(|o| o[k]).sum::<u64>();
    eprintln!("{PROCESSES} processes of {THREADS} threads, {programs} programs: {outcomes:?}");
    assert_eq!(sum(0), u64::from(programs), "compiled");
    assert_eq!(sum(1), u64::from(programs) * u64::from(PROCESSES - 1), "loaded");
    assert_eq!(sum(2), 0, "dropped");
}

/// Processes are killed at points that a seed chooses; after each the cache is whole.
fn kills(count: u32, programs: u32) {
    let folder = tempfile::tempdir().unwrap();
    let mut random = 1;
    let mut entries = 0;
    for n in 0..count {
        random = hlo::elided::splitmix64(random);
        let mut child = start(folder.path(), programs, (random >> 32) as u32 % programs);
        // So many programs further on, wherever its other threads are then.
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let until = random % 12;
        (0..until).for_each(|_| drop(lines.next()));
        child.kill().unwrap();
        child.wait().unwrap();
        let all = DiskCache::open(folder.path(), None).unwrap().verify();
        for (entry, verdict) in &all {
            assert!(
                matches!(verdict, Verdict::Whole(_)),
                "after kill {n}: {}: {verdict:?}",
                entry.path.display()
            );
        }
        assert!(all.len() >= entries, "after kill {n} entries are gone");
        entries = all.len();
    }
    let client = client(folder.path());
    (0..programs).for_each(|n| check(&client, n));
    let statistics = client.cache_statistics();
    eprintln!("{count} kills left {entries} of {programs} programs: {statistics:?}");
    assert_eq!((statistics.disk_hits, statistics.disk_dropped), (entries as u64, 0));
    assert_eq!(statistics.compilations, u64::from(programs) - entries as u64);
}

/// The process that may write no files of more than 512 bytes, as on a full disk: every program runs, and
/// nothing is left in the folder.
#[test]
fn process_on_a_full_disk() {
    let Some(folder) = std::env::var_os(FULL_FOLDER) else { return };
    let folder = Path::new(&folder);
    let client = client(folder);
    (0..3).for_each(|n| check(&client, n));
    assert_eq!(client.cache_statistics().disk_failures, 3);
    let error = client.cache_error().unwrap();
    assert_eq!(error.code(), Code::Unavailable);
    assert!(error.to_string().contains(&format!("{}", folder.display())), "{error}");
    assert!(error.to_string().contains("File too large"), "{error}");
}

#[test]
fn a_full_disk_is_said_and_costs_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let limited = "trap '' XFSZ; ulimit -f 1; exec \"$0\" process_on_a_full_disk --exact --test-threads=1";
    let run = Command::new("sh")
        .args(["-c", limited])
        .arg(std::env::current_exe().unwrap())
        .env(FULL_FOLDER, folder.path())
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
    assert!(String::from_utf8_lossy(&run.stdout).contains("1 passed"), "the process ran its test");
    let cache = DiskCache::open(folder.path(), None).unwrap();
    assert!(cache.entries().is_empty());
    let left = std::fs::read_dir(folder.path())
        .unwrap()
        .flatten()
        .filter(|file| file.file_name().to_string_lossy().starts_with(".tmp-"));
    assert_eq!(left.count(), 0);
}

#[test]
fn three_processes_compile_each_program_once() {
    each_is_compiled_once(40);
}

#[test]
fn a_process_that_is_killed_leaves_the_cache_right() {
    kills(8, 40);
}

#[test]
#[ignore = "the long form: make stress"]
fn three_processes_compile_each_of_a_thousand_programs_once() {
    each_is_compiled_once(1000);
}

#[test]
#[ignore = "the long form: make stress"]
fn two_hundred_kills_leave_the_cache_right() {
    kills(200, 2000);
}
