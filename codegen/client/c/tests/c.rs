//! Compiles a C program that uses every function of the header, and runs it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "says what it skips")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The folder of this build, where the library is beside the test.
fn build_folder() -> std::path::PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().map(Path::to_owned).unwrap()
}

/// Compiles the program and runs it; what it said.
fn run(flags: &[&str]) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("use");
    let library = build_folder();
    let compiled = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-D_POSIX_C_SOURCE=200809L"])
        .args(flags)
        .args(["-Iinclude", "tests/use.c"])
        .arg(format!("-L{}", library.display()))
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .args(["-lhlo_c", "-o"])
        .arg(&program)
        .output();
    let Ok(compiled) = compiled else {
        eprintln!("skipped: there is no C compiler");
        return None;
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    // Cargo puts the folder above in front of that of this build, where a library of an earlier one may lie.
    let ran = Command::new(&program).env_remove("LD_LIBRARY_PATH").output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    Some(said)
}

#[test]
fn c_programs_use_the_library() {
    let Some(said) = run(&[]) else { return };
    assert!(said.ends_with("ok\n"), "{said}");
}

/// The same under AddressSanitizer: the library's memory comes from the program's allocator, so what either
/// side frees twice, uses after it was freed, or leaks, is reported. (What is compiled in Rust is not
/// instrumented itself; its allocations are.)
#[test]
fn c_programs_use_the_library_under_address_sanitizer() {
    let mut probe = Command::new("cc");
    probe.args(["-fsanitize=address", "-x", "c", "-o", "/dev/null", "-"]);
    if !probe_compiles(&mut probe) {
        eprintln!("skipped: there is no C compiler with AddressSanitizer");
        return;
    }
    let Some(said) = run(&["-fsanitize=address", "-g", "-fno-omit-frame-pointer"]) else { return };
    assert!(said.ends_with("ok\n"), "{said}");
}

/// Whether a compiler makes a program of an empty function.
fn probe_compiles(command: &mut Command) -> bool {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(mut child) = child else { return false };
    let written =
        child.stdin.take().is_some_and(|mut to| to.write_all(b"int main(void) { return 0; }\n").is_ok());
    written && child.wait().is_ok_and(|status| status.success())
}
