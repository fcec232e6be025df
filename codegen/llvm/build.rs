//! Compiles what needs LLVM's C++ interface, against the headers of the LLVM that `llvm-sys` links.

use std::process::Command;

/// Where `llvm-sys` looks for LLVM, too.
const PREFIX: &str = "LLVM_SYS_221_PREFIX";

fn main() {
    println!("cargo:rerun-if-changed=src/split_dwarf.cpp");
    println!("cargo:rerun-if-env-changed={PREFIX}");
    // The LLVM that is found is the host's, so programs for another target cannot be linked anyway; checking
    // them needs no C++ compiler.
    let of = |name: &str| std::env::var(name).unwrap_or_default();
    if of("TARGET") != of("HOST") {
        return;
    }
    let config = match std::env::var(PREFIX) {
        Ok(prefix) => format!("{prefix}/bin/llvm-config"),
        Err(_) => "llvm-config".to_owned(),
    };
    let output = Command::new(&config).arg("--includedir").output();
    let output = output.unwrap_or_else(|e| panic!("{config} does not run: {e}"));
    let include = String::from_utf8_lossy(&output.stdout);
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").file("src/split_dwarf.cpp");
    // As LLVM itself is built.
    build.flag_if_supported("-fno-exceptions").flag_if_supported("-fno-rtti");
    // Its headers are not ours to warn about.
    build.flag(format!("-isystem{}", include.trim())).warnings(false);
    build.compile("hlo_split_dwarf");
}
