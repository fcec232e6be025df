//! Any bytes as the `finding.json` of a folder: it is read as a finding or refused, and what is read is
//! written and read alike.
//!
//! From `conformance/`: `cargo +nightly fuzz run finding -- -max_len=4096 folder-of-findings/`
#![no_main]

use hlo_triage::artifact;
use hlo_engines::engine::Limits;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(folder) = tempfile::tempdir() else { return };
    let path = folder.path().join("finding.json");
    if std::fs::write(&path, data).is_err() {
        return;
    }
    let Ok(Some(finding)) = artifact::finding(folder.path()) else { return };
    std::hint::black_box((finding.policy(), finding.named(), finding.settings(Limits::default()).is_ok()));
    let text = serde_json::to_string(&finding).expect("a finding is JSON");
    std::fs::write(&path, text).expect("it was written before");
    let again = artifact::finding(folder.path()).ok().flatten();
    assert_eq!(again.as_ref(), Some(&finding));
});
