//! Reads a file of MLIR bytecode and prints it as text, or writes it again: `artifact IN [VERSION OUT]`.

use hlo_mlir::bytecode;
use hlo_mlir::print::{PrintOptions, print};
use hlo_mlir::text::{ReadOptions, parse};

#[allow(clippy::print_stdout, clippy::print_stderr, reason = "this is what the program is for")]
fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(path) = arguments.first() else { return 2.into() };
    let Ok(file) = std::fs::read(path) else { return 2.into() };
    let read = match std::str::from_utf8(&file) {
        Ok(text) if !bytecode::is_bytecode(&file) => parse(text, &ReadOptions::default()),
        _ => bytecode::read(&file),
    };
    let result = read.and_then(|module| match arguments.get(1..) {
        Some([version, out]) => {
            let version = version.parse().expect("a version is three numbers");
            let bytes = bytecode::write(&module, version)?;
            std::fs::write(out, bytes).expect("the file can be written");
            Ok(())
        }
        _ => {
            println!("{}", print(&module, &PrintOptions::default()));
            Ok(())
        }
    });
    match result {
        Ok(()) => 0.into(),
        Err(errors) => {
            for error in &errors {
                eprintln!("{} {:?}: {} {:?}", error.code.as_str(), error.span, error.message, error.notes);
            }
            3.into()
        }
    }
}
