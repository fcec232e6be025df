//! Any bytes as a message of each kind and encoding: reading ends without a panic and within its limit; what
//! is read and verifies is written, and read back as the same module; conversions from message to message
//! end.
//!
//! From `conformance/`: `cargo +nightly fuzz run proto -- -max_len=8192 corpus-of-messages/`, which
//! `hlo convert` makes. The first byte chooses the kind and encoding.
#![no_main]

use hlo_proto::{Contents, Encoding, Kind, ReadOptions};
use libfuzzer_sys::fuzz_target;

/// The maximum number of bytes that reading may take.
const LIMIT: u64 = 1 << 26;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, data)) = data.split_first() else { return };
    std::hint::black_box(hlo_proto::sniff(data));
    let kind = Kind::ALL[usize::from(choice >> 1) % Kind::ALL.len()];
    let encoding = if choice & 1 == 0 { Encoding::Binary } else { Encoding::Text };
    let options = ReadOptions { memory_bytes: LIMIT, ..ReadOptions::default() };
    for to in [(Kind::Module, Encoding::Text), (Kind::Snapshot, Encoding::Binary)] {
        let _ = hlo_proto::convert(data, (kind, encoding), to, &options, &mut std::io::sink());
    }
    let found = hlo_proto::read(data, kind, encoding, &options);
    let text = std::str::from_utf8(data).unwrap_or("");
    std::hint::black_box(hlo::diag::render_all(&found.diagnostics, "fuzz.pb", text, false));
    let Some(document) = found.document else { return };
    if hlo::verify::verify(&document.module).has_errors() {
        return;
    }
    let mut bytes = Vec::new();
    if hlo_proto::write(&Contents::of(&document.module), Kind::Module, Encoding::Binary, &mut bytes).is_err() {
        return;
    }
    let again = hlo_proto::read(&bytes, Kind::Module, Encoding::Binary, &ReadOptions::default());
    let Some(again) = again.document else { panic!("what was written is not read: {:?}", again.diagnostics) };
    if let Err(difference) = hlo::equal::modules_equal(&document.module, &again.module) {
        panic!("writing changed the module: {difference:?}");
    }
});
