//! Reads files of MLIR bytecode or text and prints them, or writes them as artifacts: `artifact IN`,
//! `artifact IN VERSION OUT`; `artifact --all FOLDER VERSION...` writes `X.VERSION.out` (or `X.VERSION.err`)
//! next to each `X.bc` of a folder.

use hlo_mlir::bytecode;
use hlo_mlir::print::{PrintOptions, print};
use hlo_mlir::text::{ReadOptions, parse};

#[allow(clippy::print_stdout, clippy::print_stderr, reason = "this is what the program is for")]
fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [all, folder, versions @ ..] = &*arguments
        && all == "--all"
    {
        return every_version(folder, versions);
    }
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

fn every_version(folder: &str, versions: &[String]) -> std::process::ExitCode {
    let mut files: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "bc"));
    for path in files {
        let file = std::fs::read(&path).expect("the file can be read");
        let module = bytecode::read(&file);
        for version in versions {
            let result = module.as_ref().map_err(Clone::clone).and_then(|module| {
                bytecode::write(module, version.parse().expect("a version is three numbers"))
            });
            let (extension, bytes) = match result {
                Ok(bytes) => ("out", bytes),
                Err(errors) => (
                    "err",
                    errors
                        .iter()
                        .map(|e| format!("{}: {}\n", e.code.as_str(), e.message))
                        .collect::<String>()
                        .into_bytes(),
                ),
            };
            std::fs::write(path.with_extension(format!("{version}.{extension}")), bytes)
                .expect("the file can be written");
        }
    }
    0.into()
}
