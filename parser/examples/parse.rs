//! Parses files and says what was wrong with them: `parse [-q] FILE...`; with `-t`, how fast.
#![allow(clippy::print_stdout, reason = "a program")]

use std::time::Instant;

fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let quiet = args.iter().position(|a| a == "-q").map(|i| args.remove(i)).is_some();
    let timed = args.iter().position(|a| a == "-t").map(|i| args.remove(i)).is_some();
    if let Some(list) = args.first().and_then(|a| a.strip_prefix('@')) {
        args =
            std::fs::read_to_string(list).expect("the list is readable").lines().map(str::to_owned).collect();
    }
    let options = hlo_parser::ParseOptions::default();
    let (mut bytes, mut seconds, mut failed) = (0usize, 0f64, 0);
    let verify = std::env::var_os("VERIFY").is_some();
    for file in &args {
        let Ok(text) = std::fs::read_to_string(file) else {
            println!("{file}: cannot be read");
            failed += 1;
            continue;
        };
        let start = Instant::now();
        let mut parsed = hlo_parser::parse_module(&text, &options);
        let mut best = start.elapsed().as_secs_f64();
        if timed {
            for _ in 0..20 {
                let start = Instant::now();
                parsed = hlo_parser::parse_module(&text, &options);
                best = best.min(start.elapsed().as_secs_f64());
            }
            println!("{:8.1} MB/s {:9} bytes {file}", text.len() as f64 / best / 1e6, text.len());
        }
        if verify && let Some(module) = &parsed.module {
            let found = hlo::verify::verify(module);
            if found.has_errors() {
                parsed.module = None;
                parsed.diagnostics.append(found);
            }
        }
        seconds += best;
        bytes += text.len();
        if parsed.module.is_none() {
            failed += 1;
            let shown = hlo::diag::render_all(&parsed.diagnostics, file, &text, false);
            if quiet {
                println!("{file}: {}", shown.lines().next().unwrap_or("no module and no error"));
            } else {
                println!("{shown}");
            }
        }
    }
    println!("{} files, {failed} failed, {:.1} MB/s", args.len(), bytes as f64 / seconds / 1e6);
}
