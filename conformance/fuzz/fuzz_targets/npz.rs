//! Any bytes as an archive of arrays: reading ends within its limit, in arrays of what was asked for or in a
//! failure.
//!
//! From `conformance/`: `cargo +nightly fuzz run npz -- -max_len=8192 folder-of-archives/`
#![no_main]

use hlo::{ArrayShape, ElementType};
use hlo_system::npz::Npz;
use libfuzzer_sys::fuzz_target;

/// The maximum number of bytes of arrays.
const LIMIT: u64 = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let Ok(folder) = tempfile::tempdir() else { return };
    let path = folder.path().join("arrays.npz");
    if std::fs::write(&path, data).is_err() {
        return;
    }
    let Ok(mut archive) = Npz::open(&path, LIMIT) else { return };
    for name in archive.names() {
        for (ty, dims) in [(ElementType::F32, &[2, 3][..]), (ElementType::S4, &[5]), (ElementType::C128, &[])] {
            let shape = ArrayShape::new(ty, dims);
            if let Ok(array) = archive.array(&name, &shape) {
                assert_eq!(array.buffer.len(), shape.elements());
            }
        }
    }
});
