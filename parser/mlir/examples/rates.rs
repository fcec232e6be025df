//! How many of the MLIR files given as arguments are read, and print to the same module: `rates FILE...`.

use hlo_mlir::print::{PrintOptions, print};
use hlo_mlir::text::{ReadOptions, parse_part, split};

#[allow(clippy::print_stdout, reason = "this is what the program is for")]
fn main() {
    let (mut files, mut modules, mut read, mut same) = (0, 0, 0, 0);
    for path in std::env::args().skip(1) {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        files += 1;
        for part in split(&text) {
            modules += 1;
            match parse_part(&text, part, &ReadOptions::default()) {
                Ok(module) => {
                    read += 1;
                    let once = print(&module, &PrintOptions::default());
                    match parse_part(&once, hlo::Span::new(0, once.len()), &ReadOptions::default()) {
                        Ok(again) if print(&again, &PrintOptions::default()) == once => same += 1,
                        Ok(_) => println!("{path}: prints differently the second time"),
                        Err(d) => {
                            println!("{path}: reread: {}", hlo::diag::render_all(&d, &path, &once, false))
                        }
                    }
                }
                Err(d) => println!("{}", hlo::diag::render_all(&d, &path, &text, false)),
            }
        }
    }
    println!("{files} files, {modules} modules, {read} read, {same} the same printed");
}
