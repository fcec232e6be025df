//! How long a start takes to its first result, with a cold cache and with a warm one:
//! `cargo run --release -p hlo-client --example first_result -- PROGRAM.hlo...`
//!
//! A start reads the text, compiles it or loads what was compiled, and executes it once on inputs that are
//! there. Each is a new client, of one process: what a process does once is done before.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

use std::path::Path;
use std::time::{Duration, Instant};

use hlo::Literal;
use hlo_client::{Buffer, Client, ClientOptions, CompileOptions, Error};

struct Start {
    to_program: Duration,
    to_result: Duration,
    compilations: u64,
}

fn start(text: &str, folder: &Path, inputs: &[Literal]) -> Result<Start, Error> {
    let client =
        Client::cpu(ClientOptions { cache_directory: Some(folder.to_owned()), ..Default::default() })?;
    let arrays = inputs.iter().flat_map(Literal::arrays);
    let buffers: Vec<Buffer> = arrays.map(|array| client.buffer(array)).collect::<Result<_, _>>()?;
    let arguments: Vec<&Buffer> = buffers.iter().collect();
    let began = Instant::now();
    let program = client.compile(&client.parse(text)?, &CompileOptions::default())?;
    let to_program = began.elapsed();
    let results = program.execute(&arguments)?;
    let to_result = began.elapsed();
    drop(results);
    Ok(Start { to_program, to_result, compilations: client.cache_statistics().compilations })
}

fn measure(path: &str) -> Result<[f64; 2], Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(path)?;
    let folder = tempfile::tempdir()?;
    let client = Client::interpreter(ClientOptions::default())?;
    let module = client.parse(&text)?;
    let signature = hlo_client::artifact::Signature::of(module.module());
    let of = |(n, shape)| hlo::elided::elided_literal(&format!("argument{n}"), shape);
    let inputs: Vec<Literal> = signature.parameters.iter().enumerate().filter_map(of).collect();
    let cold = start(&text, folder.path(), &inputs)?;
    let warm: Vec<Start> = (0..3).map(|_| start(&text, folder.path(), &inputs)).collect::<Result<_, _>>()?;
    let best = |of: fn(&Start) -> Duration| warm.iter().map(of).min().unwrap_or_default();
    let compiled: u64 = warm.iter().map(|w| w.compilations).sum();
    let (program, result) = (best(|w| w.to_program), best(|w| w.to_result));
    let ratios = [(cold.to_program, program), (cold.to_result, result)]
        .map(|(cold, warm)| cold.as_secs_f64() / warm.as_secs_f64());
    let ms = |d: Duration| d.as_secs_f64() * 1e3;
    println!(
        "{:<44} program {:>9.2} / {:>7.2} ms = {:>6.1}   first result {:>9.2} / {:>7.2} ms = {:>6.1}   warm starts compiled {compiled}",
        Path::new(path).file_name().unwrap_or_default().display(),
        ms(cold.to_program),
        ms(program),
        ratios[0],
        ms(cold.to_result),
        ms(result),
        ratios[1],
    );
    Ok(ratios)
}

fn main() {
    let mut logs = [0.0; 2];
    let mut count = 0.0;
    for path in std::env::args().skip(1) {
        match measure(&path) {
            Ok(ratios) => {
                logs.iter_mut().zip(ratios).for_each(|(sum, ratio)| *sum += ratio.ln());
                count += 1.0;
            }
            Err(error) => eprintln!("{path}: {error}"),
        }
    }
    let [program, result] = logs.map(|sum| (sum / f64::max(count, 1.0)).exp());
    println!("geometric mean of {count} programs: program {program:.1}, first result {result:.1}");
}
