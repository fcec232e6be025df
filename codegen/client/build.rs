//! Gives the crate a name of the sources that it is built of, so that what another build compiled is told
//! apart.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let here = PathBuf::from(
        std::env::var_os("CARGO_MANIFEST_DIR").expect("invariant: cargo says where the crate is"),
    );
    let workspace = here.join("../..");
    let mut files = Vec::new();
    for part in [
        "hlo/src",
        "interp",
        "codegen/src",
        "codegen/ahead/src",
        "codegen/client/src",
        "codegen/cpu/src",
        "codegen/gpu/src",
        "codegen/library",
        "codegen/linalg/src",
        "codegen/llvm/src",
        "codegen/opt/src",
    ] {
        let folder = workspace.join(part);
        println!("cargo:rerun-if-changed={}", folder.display());
        collect(&folder, &mut files);
    }
    let lock = workspace.join("Cargo.lock");
    println!("cargo:rerun-if-changed={}", lock.display());
    files.push(lock);
    files.sort();
    let hash = files.iter().fold(0xcbf2_9ce4_8422_2325, |hash, file| {
        let name = file.strip_prefix(&workspace).unwrap_or(file);
        let text = fs::read(file).unwrap_or_default();
        fnv1a(fnv1a(hash, name.as_os_str().as_encoded_bytes()), &text)
    });
    println!("cargo:rustc-env=HLO_SOURCE_HASH={hash:016x}");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// The 64-bit FNV-1a hash, continued.
fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}
