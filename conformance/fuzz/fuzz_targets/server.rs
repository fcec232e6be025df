//! Any bytes as what a server prints: its lines are bounded, and each is an answer or a failure of the
//! engine.
//!
//! From `conformance/`: `cargo +nightly fuzz run server -- -max_len=8192`
#![no_main]

use std::io::Cursor;
use std::time::Duration;

use hlo_engines::engine::external::answered;
use hlo_system::process::Lines;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(lines) = Lines::of(Cursor::new(data.to_vec())) else { return };
    while let Ok(line) = lines.next(Duration::from_secs(10)) {
        // A byte that is no UTF-8 becomes three.
        assert!(line.len() <= 3 * Lines::MAX_BYTES);
        std::hint::black_box(answered("server", &line).is_ok());
    }
});
