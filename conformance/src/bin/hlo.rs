//! The program `hlo`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(hlo_conformance::cli::main())
}
