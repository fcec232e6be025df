//! Runs StableHLO's own tests: `tests FILE...`. Each function that checks something is a case.

use hlo::diag::render_all;
use hlo_interp::{Accumulate, Interpreter, Options, Value};
use hlo_mlir::check::compare;
use hlo_mlir::convert::{ConvertOptions, convert, functions, is_test};
use hlo_mlir::text::{ReadOptions, parse_part, split};

#[allow(clippy::print_stdout, reason = "this is what the program is for")]
fn main() {
    let (mut cases, mut converted, mut verified, mut ran, mut passed) = (0, 0, 0, 0, 0);
    for path in std::env::args().skip(1) {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let short = path.rsplit('/').next().unwrap_or(&path);
        for part in split(&text) {
            let Ok(module) = parse_part(&text, part, &ReadOptions::default()) else {
                cases += 1;
                println!("PARSE {short}");
                continue;
            };
            for (op, name) in functions(&module) {
                if !is_test(&module, op) {
                    continue;
                }
                cases += 1;
                let options = ConvertOptions { function: Some(name.to_owned()), checks: true };
                let program = match convert(&module, &options) {
                    Ok(program) => program,
                    Err(d) => {
                        println!("CONVERT {short} @{name}: {}", first(&render_all(&d, &path, &text, false)));
                        continue;
                    }
                };
                converted += 1;
                let found = hlo::verify::verify(&program.module);
                if found.has_errors() {
                    println!("VERIFY {short} @{name}: {}", first(&render_all(&found, &path, &text, false)));
                    continue;
                }
                verified += 1;
                // A sum is right in either order that the project knows.
                let mut outcome = Err(String::new());
                for accumulate in [Accumulate::Exact, Accumulate::Region] {
                    let options = Options { accumulate, ..Options::default() };
                    let result = match Interpreter::new(&program.module, options).run(Vec::new()) {
                        Ok(value) => value,
                        Err(e) => {
                            println!("RUN {short} @{name}: {e}");
                            break;
                        }
                    };
                    let parts: Vec<Value> = result.expect_tuple().to_vec();
                    let wrong = program.checks.iter().find_map(|c| {
                        let [a, b] = c.results.map(|i| parts[i].expect_array().to_literal());
                        compare(c.kind, &a, &b).err()
                    });
                    match wrong {
                        None => {
                            outcome = Ok(());
                            break;
                        }
                        Some(why) => outcome = Err(why),
                    }
                }
                ran += 1;
                let wrong = outcome.err();
                match wrong {
                    None => passed += 1,
                    Some(why) => println!("WRONG {short} @{name}: {why}"),
                }
            }
        }
    }
    println!("{cases} cases, {converted} converted, {verified} verified, {ran} ran, {passed} passed");
}

fn first(text: &str) -> String {
    text.lines().take(1).map(|l| l.chars().take(220).collect::<String>()).collect()
}
