//! Exports what libraries with handlers of custom calls ask the program for.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        for symbol in ["XLA_FFI_GetApi", "XlaCustomCallStatusSetSuccess", "XlaCustomCallStatusSetFailure"] {
            println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol={symbol}");
        }
    }
}
