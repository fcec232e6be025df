//! The check as a small program of its own, without XLA's kernels: what `hlo ptx truth` does, built in a
//! minute.
//!
//! `truth [--report FILE] [--family NAME]... [--only TEXT] [--results N] [--products N] [--seconds N] [--jobs
//! N] [--device N|interpreter]`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use hlo_cuda::Driver;
use hlo_truth::families::{Scale, all};
use hlo_truth::report::{Report, approximations, differences, table};
use hlo_truth::run::{Row, Settings, run};
use hlo_truth::target::{Cuda, Interpreter, Target};

fn main() -> ExitCode {
    match check() {
        Ok(code) => ExitCode::from(code),
        Err((code, message)) => {
            eprintln!("error: {message}");
            ExitCode::from(code)
        }
    }
}

fn check() -> Result<u8, (u8, String)> {
    let start = Instant::now();
    let mut settings = Settings { time: Duration::from_secs(150), ..Settings::new(90) };
    let mut scale = Scale::FULL;
    let (mut report, mut ordinal) = (None, Some(0));
    let mut args = std::env::args().skip(1);
    while let Some(option) = args.next() {
        let value = args.next().ok_or((2, format!("{option}: a value is missing")))?;
        let number = || value.parse::<usize>().map_err(|_| (2, format!("{option}: `{value}` is no number")));
        match option.as_str() {
            "--report" => report = Some(value),
            "--family" => settings.families.push(value),
            "--only" => settings.filter = value,
            "--results" => scale.results = number()?.next_multiple_of(256),
            "--products" => scale.products = number()?.next_multiple_of(4),
            "--seconds" => settings.time = Duration::from_secs(number()? as u64),
            "--jobs" => settings.threads = number()?,
            "--device" if value == "interpreter" => ordinal = None,
            "--device" => ordinal = Some(number()?),
            _ => return Err((2, format!("no option {option}"))),
        }
    }
    let failed = |e: hlo_cuda::Error| (if e.is_absent() { 5 } else { 6 }, e.to_string());
    let (target, name): (Box<dyn Target>, String) = match ordinal {
        None => (Box::new(Interpreter), "the interpreter itself".to_owned()),
        Some(ordinal) => {
            let device =
                Driver::load().and_then(|d| d.open(ordinal, Duration::from_secs(20))).map_err(failed)?;
            settings.arch = device.info().sm();
            let name = format!("{}, sm_{}", device.info().name, settings.arch);
            (Box::new(Cuda::new(device)), name)
        }
    };
    let rows = run(&all(scale), &*target, &Interpreter, &settings);
    let seconds = start.elapsed().as_secs_f64();
    if let Some(path) = report {
        let text = serde_json::to_string_pretty(&Report::new(&name, seconds, &rows))
            .map_err(|e| (70, e.to_string()))?;
        std::fs::write(&path, text).map_err(|e| (2, format!("{path}: {e}")))?;
    }
    println!("{name}, compared with the interpreter in {seconds:.1} s");
    for line in table(&rows).into_iter().chain(approximations(&rows)).chain(differences(&rows)) {
        println!("{line}");
    }
    Ok(u8::from(rows.iter().any(Row::is_wrong)))
}
