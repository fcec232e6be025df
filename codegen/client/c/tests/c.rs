//! Compiles a C program that uses every function of the header, and runs it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "says what it skips")]

use std::path::Path;
use std::process::Command;

/// The folder of this build, where the library lies beside the test.
fn build_folder() -> std::path::PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().map(Path::to_owned).unwrap()
}

#[test]
fn c_programs_use_the_library() {
    if Command::new("cc").arg("--version").output().is_err() {
        eprintln!("skipped: there is no C compiler");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("use");
    let library = build_folder();
    let compiled = Command::new("cc")
        .args([
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-O1",
            "-D_POSIX_C_SOURCE=200809L",
            "-Iinclude",
            "tests/use.c",
        ])
        .arg(format!("-L{}", library.display()))
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .args(["-lhlo_c", "-o"])
        .arg(&program)
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let ran = Command::new(&program).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.ends_with("ok\n"), "{said}{}", String::from_utf8_lossy(&ran.stderr));
}
