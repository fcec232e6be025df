//! Any bytes: parsing, verifying and printing must end without a panic, and what verifies must survive a
//! round trip.
//!
//! From `conformance/`:
//! `cargo +nightly fuzz run parse_verify -- -dict=fuzz/hlo.dict -max_len=8192 corpus-of-texts/`
//! A crash, minimized (`cargo fuzz tmin`), goes to `conformance/crashers/`, which an ordinary test runs.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
    let rendered = hlo::diag::render_all(&parsed.diagnostics, "fuzz.hlo", text, false);
    std::hint::black_box(rendered);
    let Some(module) = parsed.module else { return };
    let found = hlo::verify::verify(&module);
    std::hint::black_box(hlo::diag::render_all(&found, "fuzz.hlo", text, false));
    if found.has_errors() || parsed.diagnostics.has_errors() {
        return;
    }
    let printed = hlo::print::print_module(&module, &hlo::print::PrintOptions::source(&module));
    let again = hlo_parser::parse_module(&printed, &hlo_parser::ParseOptions::default());
    let again = match again.module {
        Some(m) if !again.diagnostics.has_errors() => m,
        _ => panic!("what was printed does not parse:\n{printed}"),
    };
    if let Err(difference) = hlo::equal::modules_equal(&module, &again) {
        panic!("printing changed the module: {difference:?}\n{printed}");
    }
});
