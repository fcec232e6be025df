//! Any bytes as MLIR bytecode, or as an export of JAX: they are read or refused with a position, and what is
//! read is printed, and written and read again.
//!
//! From `conformance/`: `cargo +nightly fuzz run bytecode -- -max_len=4096 ../parser/mlir/tests/artifacts/`
#![no_main]

use hlo_mlir::bytecode::{self, Version, export};
use hlo_mlir::print::{PrintOptions, print};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(found) = export::read(data) {
        std::hint::black_box(bytecode::read(&data[found.artifact]).is_ok());
    }
    match bytecode::read(data) {
        Ok(module) => {
            std::hint::black_box(print(&module, &PrintOptions::default()));
            if let Ok(again) = bytecode::write(&module, Version::NEWEST) {
                let read = bytecode::read(&again).expect("what was written is read");
                assert_eq!(read.operation_count(), module.operation_count());
            }
        }
        Err(errors) => assert!(errors.iter().all(|e| e.span.start as usize <= data.len()), "{errors:?}"),
    }
});
