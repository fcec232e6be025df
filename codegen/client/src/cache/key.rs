//! What a compiled program is found by.

use std::fmt;

use hlo::Module;
use hlo::print::{Names, PrintOptions, write_module};
use sha2::{Digest, Sha256};

use crate::options::CompileOptions;

/// Names a compiled program: SHA-256 of the program's canonical text (neither names nor metadata count;
/// shapes, layouts and constants do), of the options and of what the back end says of itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; 32]);

struct Hash(Sha256);

impl fmt::Write for Hash {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.0.update(s.as_bytes());
        Ok(())
    }
}

impl Key {
    /// Of a program, options and the fingerprint of a back end.
    pub fn new(module: &Module, options: &CompileOptions, backend: &str) -> Self {
        // Exhaustive, so that a new option is not forgotten here. The mode says when to compile, not what;
        // constants are in the module by now.
        let CompileOptions { opt_level, fallback, mode: _, constant_arguments: _, cpu, features } = options;
        let mut hash = Hash(Sha256::new());
        let settings = format!("{backend}\0{opt_level}\0{fallback}\0{cpu}\0{features}\0");
        hash.0.update((settings.len() as u64).to_le_bytes());
        hash.0.update(settings.as_bytes());
        let canonical = PrintOptions {
            names: Names::Canonical,
            control_predecessors: true,
            backend_config: true,
            ..PrintOptions::SHORT_PARSABLE
        };
        write_module(module, &canonical, &mut hash).expect("invariant: hashing does not fail");
        Self(hash.0.finalize().into())
    }

    /// In hexadecimal.
    pub fn hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// From what [`Key::hex`] gives.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        let mut key = [0; 32];
        if digits.len() != 64 || !digits.iter().all(|d| matches!(d, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        for (byte, pair) in key.iter_mut().zip(digits.chunks(2)) {
            let digit = |d: u8| if d.is_ascii_digit() { d - b'0' } else { d - b'a' + 10 };
            *byte = digit(pair[0]) << 4 | digit(pair[1]);
        }
        Some(Self(key))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}
