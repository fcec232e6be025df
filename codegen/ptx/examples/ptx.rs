//! Checks, prints and runs PTX files.
//!
//! ```text
//! ptx check FILE...
//! ptx print FILE
//! ptx run FILE KERNEL GRID BLOCK [--shared BYTES] [--fast] [--fuel N] ARGUMENT...
//! ```
//! GRID and BLOCK are `X` or `X,Y,Z`. An argument is a value (`u32=5`, `f32=1.5`, `u64=1`), a buffer with contents
//! (`f32[]=1,2,3`), or a buffer of which nothing is written (`out=BYTES`). Buffers are printed behind the run.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

use hlo_ptx::{Launch, Memory, Options, launch, lower, parse, print};
use std::process::ExitCode;

fn dims(s: &str) -> Option<[u32; 3]> {
    let v: Vec<u32> = s.split(',').map(|x| x.parse().ok()).collect::<Option<_>>()?;
    Some([*v.first()?, v.get(1).copied().unwrap_or(1), v.get(2).copied().unwrap_or(1)])
}

fn value(ty: &str, s: &str) -> Option<Vec<u8>> {
    Some(match ty {
        "u8" => s.parse::<u8>().ok()?.to_le_bytes().to_vec(),
        "u16" => s.parse::<u16>().ok()?.to_le_bytes().to_vec(),
        "u32" => s.parse::<u32>().ok()?.to_le_bytes().to_vec(),
        "s32" => s.parse::<i32>().ok()?.to_le_bytes().to_vec(),
        "u64" => s.parse::<u64>().ok()?.to_le_bytes().to_vec(),
        "s64" => s.parse::<i64>().ok()?.to_le_bytes().to_vec(),
        "f32" => s.parse::<f32>().ok()?.to_le_bytes().to_vec(),
        "f64" => s.parse::<f64>().ok()?.to_le_bytes().to_vec(),
        _ => return None,
    })
}

fn show(ty: &str, bytes: &[u8]) -> String {
    let word = |b: &[u8]| b.iter().rev().fold(0_u64, |v, &b| v << 8 | u64::from(b));
    let (width, text): (usize, fn(u64) -> String) = match ty {
        "f32" => (4, |w| f32::from_bits(w as u32).to_string()),
        "f64" => (8, |w| f64::from_bits(w).to_string()),
        "s32" => (4, |w| (w as u32 as i32).to_string()),
        "s64" => (8, |w| (w as i64).to_string()),
        "u64" => (8, |w| w.to_string()),
        "u16" => (2, |w| w.to_string()),
        "u8" => (1, |w| w.to_string()),
        _ => (4, |w| w.to_string()),
    };
    bytes.chunks(width).map(|b| text(word(b))).collect::<Vec<_>>().join(" ")
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["check", files @ ..] if !files.is_empty() => {
            let mut bad = false;
            for file in files {
                let Ok(text) = std::fs::read_to_string(file) else {
                    eprintln!("{file}: cannot be read");
                    return ExitCode::from(2);
                };
                match lower::module(&text) {
                    Ok(m) => println!(
                        "{file}: {} functions, {} instructions",
                        m.functions.len(),
                        m.functions.iter().map(|f| f.code.len()).sum::<usize>()
                    ),
                    Err(all) => {
                        bad = true;
                        all.iter().for_each(|d| eprintln!("{file}: {d}"));
                    }
                }
            }
            ExitCode::from(if bad { 4 } else { 0 })
        }
        ["print", file] => {
            let Ok(text) = std::fs::read_to_string(file) else { return ExitCode::from(2) };
            match parse::parse(&text) {
                Ok(tree) => {
                    print!("{}", print::print(&tree));
                    ExitCode::SUCCESS
                }
                Err(all) => {
                    all.iter().for_each(|d| eprintln!("{d}"));
                    ExitCode::from(3)
                }
            }
        }
        ["run", file, kernel, grid, block, rest @ ..] => run(file, kernel, grid, block, rest),
        _ => {
            eprintln!(
                "usage: ptx check FILE... | ptx print FILE | ptx run FILE KERNEL GRID BLOCK [--shared BYTES] [--fast] [--fuel N] ARGUMENT..."
            );
            ExitCode::from(2)
        }
    }
}

fn run(file: &str, kernel: &str, grid: &str, block: &str, rest: &[&str]) -> ExitCode {
    let (Ok(text), Some(grid), Some(block)) = (std::fs::read_to_string(file), dims(grid), dims(block)) else {
        eprintln!("the file, the grid or the block cannot be read");
        return ExitCode::from(2);
    };
    let module = match lower::module(&text) {
        Ok(m) => m,
        Err(all) => {
            all.iter().for_each(|d| eprintln!("{d}"));
            return ExitCode::from(4);
        }
    };
    let mut memory = Memory::default();
    let mut options = Options::default();
    let (mut call, mut shown) = (Launch { grid, block, ..Launch::default() }, Vec::new());
    let Ok(loaded) = memory.load(module) else { return ExitCode::from(6) };
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        let number = |w: Option<&&str>| w.and_then(|w| w.parse::<u64>().ok());
        match *word {
            "--fast" => options = Options { fuel: options.fuel, ..Options::fast() },
            "--shared" => call.shared_bytes = number(words.next()).unwrap_or(0),
            "--fuel" => options.fuel = number(words.next()).unwrap_or(options.fuel),
            argument => {
                let made = argument.split_once('=').and_then(|(ty, v)| {
                    if ty == "out" {
                        let a = memory.allocate("out", v.parse().ok()?).ok()?;
                        shown.push(("u32".to_owned(), a, v.parse().ok()?));
                        return Some(a.to_le_bytes().to_vec());
                    }
                    let Some(ty) = ty.strip_suffix("[]") else { return value(ty, v) };
                    let bytes: Vec<u8> =
                        v.split(',').map(|x| value(ty, x)).collect::<Option<Vec<_>>>()?.concat();
                    let a = memory.upload(ty, &bytes).ok()?;
                    shown.push((ty.to_owned(), a, bytes.len() as u64));
                    Some(a.to_le_bytes().to_vec())
                });
                let Some(bytes) = made else {
                    eprintln!("`{argument}` is no argument");
                    return ExitCode::from(2);
                };
                call.arguments.push(bytes);
            }
        }
    }
    let start = std::time::Instant::now();
    let result = launch(&loaded, kernel, &call, &mut memory, &options);
    let seconds = start.elapsed().as_secs_f64();
    let reports = match &result {
        Ok(o) => {
            eprintln!(
                "{} instructions of threads, {:.3e} a second",
                o.thread_instructions,
                o.thread_instructions as f64 / seconds
            );
            &o.reports
        }
        Err(f) => &f.reports,
    };
    reports.iter().for_each(|r| println!("{r}"));
    if let Err(f) = &result {
        println!("{f}");
        return ExitCode::from(6);
    }
    for (ty, at, bytes) in shown {
        if let Ok(b) = memory.read(at, bytes) {
            println!("{}", show(&ty, b));
        }
    }
    ExitCode::from(u8::from(!reports.is_empty()))
}
