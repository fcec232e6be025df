//! Faults that are seeded into correct kernels, each of which the checker or the results must show.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use hlo_ptx::report::Fault::{self, *};
use hlo_ptx::{Launch, Memory, Options, launch, lower};

/// How a fault shows.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Shows {
    /// One of these is reported, or stops the kernel.
    As(&'static [Fault]),
    /// The results differ.
    Values,
}
use Shows::{As, Values};

const RACE: &[Fault] = &[WriteAfterWrite, WriteAfterRead, ReadAfterWrite];

/// Kernel, the text and its occurrence (from 0) in the kernel, what it becomes, how it shows.
type Seed = (&'static str, &'static str, &'static str, usize, &'static str, Shows);

const SEEDS: &[Seed] = &[
    ("missing guard", "saxpy", "@%p1 bra", 0, "@!%p1 bra $L__BB3_3; $L__BB3_3: // ", As(&[OutOfBounds])),
    ("guard off by one", "saxpy", "setp.ge.s32", 0, "setp.gt.s32", As(&[OutOfBounds])),
    (
        "wrong element size",
        "saxpy",
        "mul.wide.s32 %rd5, %r1, 4",
        0,
        "mul.wide.s32 %rd5, %r1, 8",
        As(&[OutOfBounds]),
    ),
    ("misaligned store", "saxpy", "[%rd7], %f4", 0, "[%rd7+2], %f4", As(&[Misaligned])),
    ("blocks overlap", "saxpy", "%r3, %r4, %r5", 0, "%r3, 16, %r5", As(RACE)),
    ("wrong operand", "saxpy", "%f2, %f1, %f3", 0, "%f2, %f3, %f1", Values),
    ("dropped first barrier", "reduce", "bar.sync 0;", 0, "", As(RACE)),
    ("dropped barrier between warps", "reduce", "bar.sync 0;", 2, "", As(RACE)),
    ("dropped barrier in a warp", "reduce", "bar.sync 0;", 5, "", As(RACE)),
    (
        "shared stride too small",
        "reduce",
        "shl.b32 %r11, %r1, 2",
        0,
        "shl.b32 %r11, %r1, 1",
        As(&[Misaligned]),
    ),
    (
        "shared stride too large",
        "reduce",
        "shl.b32 %r11, %r1, 2",
        0,
        "shl.b32 %r11, %r1, 3",
        As(&[OutOfBounds]),
    ),
    (
        "barrier in divergent code",
        "reduce",
        "bar.sync 0;",
        5,
        "@!%p6 bar.sync 0;",
        As(&[DivergentWarp, DivergentBlock]),
    ),
    (
        "missing store to shared memory",
        "reduce",
        "st.shared.f32 [%r6], %f34;",
        0,
        "",
        As(&[UninitializedMemory]),
    ),
    (
        "atomic as load and store",
        "reduce",
        "atom.global.add.f32 %f32, [%rd6], %f31;",
        0,
        "ld.global.f32 %f32, [%rd6]; add.f32 %f32, %f32, %f31; st.global.f32 [%rd6], %f32;",
        As(RACE),
    ),
    (
        "atomic of too small a scope",
        "reduce",
        "atom.global.add.f32",
        0,
        "atom.relaxed.cta.global.add.f32",
        As(RACE),
    ),
    ("loop without end", "reduce", "add.s32 %r13, %r13, %r3", 0, "add.s32 %r13, %r13, 0", As(&[OutOfFuel])),
    ("wrong lane", "wreduce", "mov.u32 %r8, 8", 0, "mov.u32 %r8, 4", Values),
    ("shuffle up", "wreduce", "shfl.sync.bfly", 0, "shfl.sync.up", Values),
    ("wrong member mask", "wreduce", "mov.u32 %r5, -1", 0, "mov.u32 %r5, 0x7FFFFFFF", As(&[InvalidMask])),
    ("register without value", "wreduce", "mov.u32 %r1, %tid.x;", 0, "", As(&[UninitializedRegister])),
    (
        "shuffle of some lanes",
        "wreduce",
        "shfl.sync.bfly.b32 %r18",
        0,
        "@%p6 shfl.sync.bfly.b32 %r18",
        As(&[InvalidMask, UninitializedRegister]),
    ),
    (
        "shared atomic as load and store",
        "hist",
        "atom.shared.add.u32 %r26, [%r25], 1;",
        0,
        "ld.shared.u32 %r26, [%r25]; add.u32 %r26, %r26, 1; st.shared.u32 [%r25], %r26;",
        As(RACE),
    ),
    ("counters not zeroed", "hist", "st.shared.u32 [%r2], %r15;", 0, "", As(&[UninitializedMemory])),
    ("dropped barrier before the result", "hist", "bar.sync 0;", 1, "", As(RACE)),
    (
        "index beyond the table",
        "hist",
        "mul.wide.u16 %r19, %rs1, 4",
        0,
        "mul.wide.u16 %r19, %rs1, 16",
        As(&[OutOfBounds]),
    ),
    ("dropped barrier behind the tiles' loads", "matmul", "bar.sync 0;", 0, "", As(RACE)),
    ("dropped barrier before the next tiles", "matmul", "bar.sync 0;", 1, "", As(RACE)),
    (
        "wrong stride of a padded tile",
        "matmul",
        "%r2, 68, %r27",
        0,
        "%r2, 64, %r27",
        As(&[UninitializedMemory, WriteAfterWrite]),
    ),
    ("row beyond the tile", "matmul", "[%r7+1020]", 0, "[%r7+1088]", As(&[OutOfBounds])),
    ("wrong step of the tile", "matmul", "add.s32 %r35, %r35, %r9", 0, "add.s32 %r35, %r35, 16", Values),
    ("dropped barrier between read and write", "scan", "bar.sync 0;", 1, "", As(RACE)),
    ("dropped barrier between write and read", "scan", "bar.sync 0;", 2, "", As(RACE)),
    ("missing guard of the first element", "scan", "@%p1 bra $L__BB8_2;", 0, "", As(&[OutOfBounds])),
    (
        "waits for too few copies",
        "pipe",
        "cp.async.wait_group 1",
        0,
        "cp.async.wait_group 2",
        As(&[UninitializedMemory]),
    ),
    (
        "dropped barrier behind a copy",
        "pipe",
        "bar.sync 0;",
        0,
        "",
        As(&[UninitializedMemory, ReadAfterWrite]),
    ),
    ("missing fence before the counter", "lastblock", "membar.gl;", 0, "", As(RACE)),
    ("vote of half a warp", "votes", "mov.u32 %r4, -1", 0, "mov.u32 %r4, 0xFFFF", As(&[InvalidMask])),
    ("lock never released", "sem", "atom.global.exch.b32", 0, "atom.global.or.b32", As(&[OutOfFuel])),
    ("missing fence of a lock", "sem", "membar.gl;", 0, "", As(RACE)),
    (
        "recursion without end",
        "fib",
        "setp.lt.s32 %p1, %r8, 2",
        0,
        "setp.lt.s32 %p1, %r8, -1073741824",
        As(&[InvalidCall]),
    ),
];

/// Grid, block, arguments, and address and size of the results.
type Setup = ([u32; 3], [u32; 3], Vec<Vec<u8>>, (u64, u64));

fn text() -> String {
    let t = include_str!("data/cuda.ptx").replace('\t', " ");
    let mut out = String::new();
    for line in t.lines() {
        out.push_str(&line.split_whitespace().collect::<Vec<_>>().join(" "));
        out.push('\n');
    }
    out
}

fn edited(text: &str, kernel: &str, from: &str, nth: usize, to: &str) -> String {
    // Kernels are `.entry NAME(`; device functions have mangled names.
    let header = format!(".entry {kernel}(");
    let start = text.find(&header).or_else(|| text.find(&format!(") _Z3{kernel}i("))).unwrap();
    let mut at = start;
    for n in 0..=nth {
        at += text[at..].find(from).unwrap_or_else(|| panic!("{kernel} has no {n} of {from}"));
        if n < nth {
            at += from.len();
        }
    }
    format!("{}{to}{}", &text[..at], &text[at + from.len()..])
}

/// Runs a kernel of the text; the classes that were reported and the results.
fn run(text: &str, kernel: &str) -> (Vec<Fault>, Vec<u8>) {
    let module = lower::module(text).unwrap_or_else(|d| panic!("{kernel}: {}", d[0]));
    let mut memory = Memory::default();
    let loaded = memory.load(module).unwrap();
    let words = |n: u32, f: &dyn Fn(u32) -> u32| (0..n).flat_map(|i| f(i).to_le_bytes()).collect::<Vec<u8>>();
    let floats = |n: u32| words(n, &|i| ((i * 7 % 23) as f32).to_bits());
    let mut put = |b: &[u8]| (memory.upload("buffer", b).unwrap(), b.len() as u64);
    let value = |v: u32| v.to_le_bytes().to_vec();
    let zero = |n: u32| words(n, &|_| 0);
    let (grid, block, arguments, out): Setup;
    let p = |a: (u64, u64)| a.0.to_le_bytes().to_vec();
    match kernel {
        "saxpy" => {
            let (x, y) = (put(&floats(100)), put(&floats(100)));
            (grid, block, arguments, out) =
                ([4, 1, 1], [32, 1, 1], vec![value(100), value(2f32.to_bits()), p(x), p(y)], y);
        }
        "reduce" => {
            let (x, y) = (put(&floats(1500)), put(&zero(1)));
            (grid, block, arguments, out) = ([3, 1, 1], [256, 1, 1], vec![p(x), p(y), value(1500)], y);
        }
        "wreduce" => {
            let (x, y) = (put(&floats(256)), put(&zero(8)));
            (grid, block, arguments, out) = ([1, 1, 1], [256, 1, 1], vec![p(x), p(y)], y);
        }
        "hist" => {
            let (x, y) = (put(&floats(1250)), put(&zero(256)));
            (grid, block, arguments, out) = ([1, 1, 1], [256, 1, 1], vec![p(x), value(5000), p(y)], y);
        }
        "matmul" => {
            let (a, b, c) = (put(&floats(1024)), put(&floats(1024)), put(&zero(1024)));
            (grid, block, arguments, out) = ([2, 2, 1], [16, 16, 1], vec![p(a), p(b), p(c), value(32)], c);
        }
        "scan" => {
            let x = put(&words(64, &|i| i));
            (grid, block, arguments, out) = ([1, 1, 1], [64, 1, 1], vec![p(x)], x);
        }
        "pipe" => {
            let (x, y) = (put(&words(512, &|i| i)), put(&zero(512)));
            (grid, block, arguments, out) = ([1, 1, 1], [64, 1, 1], vec![p(x), p(y)], y);
        }
        "lastblock" => {
            let (x, part, count, y) = (put(&floats(256)), put(&zero(8)), put(&zero(1)), put(&zero(1)));
            (grid, block, arguments, out) = ([8, 1, 1], [32, 1, 1], vec![p(x), p(part), p(count), p(y)], y);
        }
        "votes" => {
            let x = put(&words(32, &|i| i % 5));
            (grid, block, arguments, out) = ([1, 1, 1], [32, 1, 1], vec![p(x)], x);
        }
        "sem" => {
            let (l, x) = (put(&zero(1)), put(&zero(1)));
            (grid, block, arguments, out) = ([4, 1, 1], [32, 1, 1], vec![p(l), p(x)], x);
        }
        _ => {
            let x = put(&words(32, &|i| i % 11));
            (grid, block, arguments, out) = ([1, 1, 1], [32, 1, 1], vec![p(x)], x);
        }
    }
    let kernel = if kernel == "fib" { "recurse" } else { kernel };
    let options = Options { fuel: 5_000_000, ..Options::default() };
    let call = Launch { grid, block, shared_bytes: 0, arguments };
    let mut faults: Vec<Fault> = match launch(&loaded, kernel, &call, &mut memory, &options) {
        Ok(o) => o.reports.iter().map(|r| r.fault).collect(),
        Err(f) => f.reports.iter().map(|r| r.fault).chain([f.stop.fault]).collect(),
    };
    faults.dedup();
    (faults, memory.read(out.0, out.1).unwrap().to_vec())
}

#[test]
fn every_seeded_fault_shows() {
    let text = text();
    let mut missed = Vec::new();
    for &(name, kernel, from, nth, to, shows) in SEEDS {
        let (clean, right) = run(&text, kernel);
        assert!(clean.is_empty(), "{kernel}: {clean:?}");
        let (found, results) = run(&edited(&text, kernel, from, nth, to), kernel);
        let caught = match shows {
            As(classes) => found.iter().any(|f| classes.contains(f)),
            Values => results != right,
        };
        if !caught {
            missed.push(format!(
                "{name} ({kernel}): {found:?}, results {}",
                if results == right { "equal" } else { "differ" }
            ));
        }
    }
    assert!(SEEDS.len() >= 30);
    assert!(missed.is_empty(), "{missed:#?}");
}
