//! Names of architectures.

use hlo_gpu::arch::Arch;

#[test]
fn names_are_read_back() {
    assert!(Arch::ALL.into_iter().all(|a| a.name().parse() == Ok(a)));
    let error = "sm_20".parse::<Arch>().unwrap_err().to_string();
    assert!(error.contains("sm_20") && error.contains("sm_90"), "{error}");
}
