//! Exports what libraries with handlers ask the program for, in tests; programs with this crate do the same
//! in scripts of theirs.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        for symbol in ["XLA_FFI_GetApi", "XlaCustomCallStatusSetSuccess", "XlaCustomCallStatusSetFailure"] {
            println!("cargo:rustc-link-arg-tests=-Wl,--export-dynamic-symbol={symbol}");
        }
    }
}
