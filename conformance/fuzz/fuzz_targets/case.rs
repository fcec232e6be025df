//! Any bytes as the `case.json` of a folder: it is read as a case or refused, and a case's devices, inputs
//! and expected results too.
//!
//! From `conformance/`: `cargo +nightly fuzz run case -- -max_len=4096 folder-of-cases/`
#![no_main]

use hlo_triage::case::Case;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(folder) = tempfile::tempdir() else { return };
    if std::fs::write(folder.path().join("case.json"), data).is_err() {
        return;
    }
    let Ok(case) = Case::open(folder.path()) else { return };
    std::hint::black_box(case.program(false));
    if let Ok(devices) = case.devices() {
        std::hint::black_box(case.expected(1 << 20, devices).is_ok());
    }
    std::hint::black_box(case.inputs(1 << 20).is_ok());
});
