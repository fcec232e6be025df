//! How many of the MLIR files given as arguments are read, and print to the same module, in the generic form
//! and in those of operations: `rates FILE...`. `--out FOLDER` writes the latter, without locations, to
//! `FOLDER/N.mlir`, N being the position among the files.

use hlo_mlir::ir::{Module, OpId};
use hlo_mlir::print::{PrintOptions, print};
use hlo_mlir::text::{ReadOptions, parse_part, split};

/// Properties and other attributes of each operation, together and sorted: older texts do not tell them
/// apart.
fn together(mut m: Module) -> Module {
    for index in 0..m.operation_count() {
        let op = OpId::from_index(index);
        let mut all = std::mem::take(&mut m.op_mut(op).properties).to_vec();
        all.extend(m.op(op).attributes.iter().copied());
        all.sort_by(|a, b| m.text(a.name).cmp(m.text(b.name)));
        m.op_mut(op).attributes = all.into();
    }
    m
}

#[allow(clippy::print_stdout, reason = "this is what the program is for")]
fn main() {
    let (mut files, mut modules, mut read, mut same, mut pretty) = (0, 0, 0, 0, 0);
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut folder = None;
    if let [option, to, ..] = &arguments[..]
        && option == "--out"
    {
        folder = Some(std::path::PathBuf::from(to));
        arguments.drain(..2);
    }
    for path in arguments {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        files += 1;
        for part in split(&text) {
            modules += 1;
            let module = match parse_part(&text, part, &ReadOptions::default()) {
                Ok(module) => module,
                Err(d) => {
                    println!("{}", hlo::diag::render_all(&d, &path, &text, false));
                    continue;
                }
            };
            read += 1;
            let once = print(&module, &PrintOptions::default());
            let own = print(&module, &PrintOptions::PRETTY);
            if let Some(folder) = &folder {
                let options = PrintOptions { locations: false, ..PrintOptions::PRETTY };
                std::fs::write(folder.join(format!("{files}.mlir")), print(&module, &options))
                    .expect("the file can be written");
            }
            let merged = print(&together(module), &PrintOptions::default());
            for (form, text) in [("generic", &once), ("pretty", &own)] {
                match parse_part(text, hlo::Span::new(0, text.len()), &ReadOptions::default()) {
                    Ok(again) => {
                        let twice = print(&together(again), &PrintOptions::default());
                        if merged == twice {
                            *(if form == "pretty" { &mut pretty } else { &mut same }) += 1;
                        } else {
                            let differ = merged.lines().zip(twice.lines()).find(|(a, b)| a != b);
                            println!("{path}: {form}: another module: {differ:?}");
                        }
                    }
                    Err(d) => {
                        println!("{path}: {form}: {}", hlo::diag::render_all(&d, &path, text, false))
                    }
                }
            }
        }
    }
    println!(
        "{files} files, {modules} modules, {read} read, {same} the same in the generic form, {pretty} in their own"
    );
}
