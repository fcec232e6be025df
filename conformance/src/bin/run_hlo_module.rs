//! The program `run_hlo_module`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(hlo_conformance::run_hlo_module::main())
}
