//! Runs `main` of StableHLO modules that take nothing, and keeps what they give: `evaluate [--region]
//! [--runs N] FOLDER FILE...` (with sums in the order of their regions) writes the elements of each array
//! of the results, little-endian, to `FOLDER/STEM.I.bin`, and prints the stem, the seconds of the fastest
//! of `N` (20) runs of the interpreter, those of its first run with what prepares it, and those of reading
//! and converting.

use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use hlo::literal::Bits;
use hlo::{Literal, with_buffer};
use hlo_interp::{Accumulate, Interpreter, Options};
use hlo_mlir::convert::{ConvertOptions, convert};
use hlo_mlir::text::{ReadOptions, parse_part};

/// The allocator of the programs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What one module gives, and how long running it took at best and at first, and making the program.
fn evaluate(text: &str, accumulate: Accumulate, runs: u32) -> Result<(Literal, [f64; 3]), String> {
    let start = Instant::now();
    let span = hlo::Span::new(0, text.len());
    let read = parse_part(text, span, &ReadOptions::default());
    let program = read.and_then(|m| convert(&m, &ConvertOptions::default())).map_err(|d| first(&d))?;
    let made = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let interpreter = Interpreter::new(&program.module, Options { accumulate, ..Options::default() });
    let mut value = interpreter.run(Vec::new()).map_err(|e| e.to_string())?;
    let first = start.elapsed().as_secs_f64();
    let mut best = f64::INFINITY;
    // What reading the clock takes is spread over several runs, if these are short.
    let several = if first < 1e-4 { 16 } else { 1 };
    for _ in 0..runs {
        let start = Instant::now();
        for _ in 0..several {
            value = interpreter.run(Vec::new()).map_err(|e| e.to_string())?;
        }
        best = best.min(start.elapsed().as_secs_f64() / f64::from(several));
    }
    Ok((value.into_literal(), [best, first, made]))
}

fn first(found: &hlo::Diagnostics) -> String {
    found.iter().next().map_or_else(String::new, |d| d.message.clone())
}

#[allow(clippy::print_stdout, reason = "this is what the program is for")]
fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    let region = arguments.next_if(|a| a == "--region").is_some();
    let accumulate = if region { Accumulate::Region } else { Accumulate::Exact };
    let runs = arguments.next_if(|a| a == "--runs").and_then(|_| arguments.next());
    let runs = runs.map_or(20, |n| n.parse().expect("a number of runs"));
    let folder = arguments.next().expect("a folder is given");
    for path in arguments {
        let stem = Path::new(&path).file_stem().map_or_else(String::new, |s| s.to_string_lossy().into());
        let text = std::fs::read_to_string(&path).expect("the file can be read");
        match evaluate(&text, accumulate, runs) {
            Ok((value, [best, first, made])) => {
                println!("{stem}\t{best:.9}\t{first:.9}\t{made:.9}");
                for (i, array) in value.arrays().into_iter().enumerate() {
                    let width = (array.buffer.element_type().bits() as usize).div_ceil(8);
                    let mut data = Vec::new();
                    with_buffer!(&*array.buffer, values => for &x in values {
                        data.extend_from_slice(&Bits::bits(x).to_le_bytes()[..width]);
                    });
                    let mut file = std::fs::File::create(Path::new(&folder).join(format!("{stem}.{i}.bin")))
                        .expect("the file can be made");
                    file.write_all(&data).expect("the file can be written");
                }
            }
            Err(why) => println!("{stem}\tnot run: {why}"),
        }
    }
}
