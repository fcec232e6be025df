//! Any bytes as a compiled program, for a CPU or a GPU, with a checksum that fits: reading ends in a program
//! or an error. Nothing is executed, since a program is code.
//!
//! From `conformance/`: `cargo +nightly fuzz run artifact -- -max_len=65536 folder-of-programs/`;
//! `hlo compile` makes programs.
#![no_main]

use hlo_client::{artifact, gpu_artifact};
use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};

/// Where the checksum is, of all that follows (codegen/client/src/container.rs).
const CHECKSUM: std::ops::Range<usize> = 16..48;

fuzz_target!(|data: &[u8]| {
    let mut bytes = data.to_vec();
    if let Some(contents) = data.get(CHECKSUM.end..) {
        bytes[CHECKSUM].copy_from_slice(&Sha256::digest(contents));
    }
    let _ = artifact::info(&bytes);
    let _ = artifact::read(&bytes);
    let _ = gpu_artifact::info(&bytes);
    let _ = gpu_artifact::read(&bytes);
});
