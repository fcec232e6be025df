//! Damaged bytecode: every truncation and every changed byte of the artifacts in the tree, and files made by
//! hand. Nothing panics, every error has a code and a location in the file, and what is still read can be
//! written.

use std::path::PathBuf;

use hlo_mlir::bytecode::{self, Version, export};

fn files(extension: &str) -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/artifacts");
    let mut all: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder is in the tree")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .map(|path| (path.display().to_string(), std::fs::read(&path).expect("the file is in the tree")))
        .collect();
    all.sort();
    assert!(!all.is_empty());
    all
}

/// Reads a damaged file, writes what was read, and checks errors.
fn read(what: &str, bytes: &[u8]) -> bool {
    match bytecode::read(bytes) {
        Ok(module) => {
            match bytecode::write(&module, Version::NEWEST) {
                Ok(again) => {
                    let read = bytecode::read(&again);
                    assert!(read.is_ok(), "{what}: what was written is not read: {read:?}");
                }
                Err(errors) => {
                    assert!(errors.iter().all(|e| e.code.as_str().starts_with('U')), "{what}: {errors:?}")
                }
            }
            true
        }
        Err(errors) => {
            for error in &errors {
                assert!(error.code.as_str().starts_with("P08"), "{what}: {error:?}");
                assert!((error.span.start as usize) <= bytes.len(), "{what}: {error:?}");
                assert!(error.span.start <= error.span.end, "{what}: {error:?}");
            }
            false
        }
    }
}

#[test]
fn every_truncation_is_refused() {
    for (name, bytes) in files("bc") {
        for length in 0..bytes.len() {
            assert!(
                !read(&format!("{name} cut to {length}"), &bytes[..length]),
                "{name} cut to {length} is read"
            );
        }
    }
}

#[test]
fn every_changed_byte_is_read_or_refused() {
    for (name, bytes) in files("bc") {
        let mut changed = bytes.clone();
        for at in 0..bytes.len() {
            for value in (0..8).map(|bit| bytes[at] ^ 1 << bit).chain([0x00, 0xFF]) {
                changed[at] = value;
                read(&format!("{name} with 0x{value:02x} at {at}"), &changed);
            }
            changed[at] = bytes[at];
        }
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ z >> 31) % limit.max(1) as u64) as usize
    }
}

/// Mutants of each file: `HLO_MUTANTS` for more.
const MUTANTS: usize = 300;

#[test]
fn mutants_are_read_or_refused() {
    let count = std::env::var("HLO_MUTANTS").ok().and_then(|n| n.parse().ok()).unwrap_or(MUTANTS);
    let all = files("bc");
    for (at, (name, bytes)) in all.iter().enumerate() {
        let mut random = Random(at as u64);
        for mutant in 0..count {
            let mut changed = bytes.clone();
            for _ in 0..=random.below(4) {
                let (from, to) = (random.below(changed.len()), random.below(changed.len()));
                let length = random.below(12).min(changed.len() - from.max(to));
                match random.below(6) {
                    0 => changed[to] = random.below(256) as u8,
                    // Small numbers, which most indices are.
                    1 => changed[to] = (random.below(64) << 1 | 1) as u8,
                    2 => drop(changed.drain(to..to + length)),
                    3 => changed.copy_within(from..from + length, to),
                    4 => {
                        let part = changed[from..from + length].to_vec();
                        drop(changed.splice(to..to, part));
                    }
                    _ => {
                        let (_, other) = &all[random.below(all.len())];
                        let start = random.below(other.len());
                        let part = other[start..other.len().min(start + length)].to_vec();
                        drop(changed.splice(to..to, part));
                    }
                }
                if changed.is_empty() {
                    break;
                }
            }
            read(&format!("mutant {mutant} of {name}"), &changed);
        }
    }
}

#[test]
fn damaged_exports_are_read_or_refused() {
    for (name, bytes) in files("bin") {
        let check = |what: &str, bytes: &[u8]| match export::read(bytes) {
            Ok(found) => assert!(found.artifact.end <= bytes.len(), "{name} {what}"),
            Err(errors) => {
                let error = errors.iter().next().expect("an error");
                assert_eq!(error.code.as_str(), "P0818", "{name} {what}");
                assert!(error.span.start as usize <= bytes.len(), "{name} {what}: {error:?}");
            }
        };
        for length in 0..bytes.len() {
            check(&format!("cut to {length}"), &bytes[..length]);
        }
        let mut changed = bytes.clone();
        for at in 0..bytes.len() {
            for value in [0x00, 0x01, 0x7F, 0x80, 0xFF, bytes[at].wrapping_add(4), bytes[at].wrapping_sub(4)]
            {
                changed[at] = value;
                check(&format!("with 0x{value:02x} at {at}"), &changed);
            }
            changed[at] = bytes[at];
        }
    }
}

/// A file of version 6 by hand.
struct File {
    strings: Vec<Vec<u8>>,
    dialects: Vec<u8>,
    lengths: Vec<u8>,
    entries: Vec<u8>,
    ir: Vec<u8>,
    properties: Vec<u8>,
}

fn varint(out: &mut Vec<u8>, value: u64) {
    match value {
        0..128 => out.push((value << 1 | 1) as u8),
        _ => {
            out.push(0);
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

fn varints(values: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    values.iter().for_each(|&value| varint(&mut out, value));
    out
}

impl File {
    /// An empty module: attribute 0 is the unknown location, type 0 is f32.
    fn new() -> Self {
        Self {
            strings: vec![b"builtin".to_vec(), b"module".to_vec(), b"vhlo".to_vec()],
            // Two dialects without versions; one operation name, of dialect 0, registered.
            dialects: varints(&[2, 0, 2 << 1, 1, 0, 1, 1 << 1 | 1]),
            lengths: varints(&[1, 1, 0, 1, 1 << 1 | 1, 0, 1, 1 << 1 | 1]),
            entries: varints(&[15, 5]),
            ir: Self::module(&[]),
            properties: varints(&[1, 2, 0, 0]),
        }
    }

    /// A module whose region has these bytes; of none, an empty block.
    fn module(region: &[u8]) -> Vec<u8> {
        let mut ir = varints(&[1 << 1, 0]);
        // It has properties and regions.
        ir.push(1 << 6 | 1 << 4);
        ir.extend(varints(&[0, 0, 1 << 1]));
        ir.extend(if region.is_empty() { varints(&[1, 0, 0]) } else { region.to_vec() });
        ir
    }

    fn bytes(&self) -> Vec<u8> {
        let mut strings = varints(&[self.strings.len() as u64]);
        self.strings.iter().rev().for_each(|s| varint(&mut strings, s.len() as u64 + 1));
        for s in &self.strings {
            strings.extend_from_slice(s);
            strings.push(0);
        }
        let mut out = b"ML\xEFR".to_vec();
        varint(&mut out, 6);
        out.extend_from_slice(b"by hand\0");
        let sections = [
            (1, &self.dialects),
            (3, &self.lengths),
            (2, &self.entries),
            (4, &self.ir),
            (0, &strings),
            (8, &self.properties),
        ];
        for (id, section) in sections {
            out.push(id);
            varint(&mut out, section.len() as u64);
            out.extend_from_slice(section);
        }
        out
    }

    /// Attributes and types of their encodings, of dialects by number.
    fn entries(mut self, attributes: &[(u64, Vec<u8>)], types: &[(u64, Vec<u8>)]) -> Self {
        self.lengths = varints(&[attributes.len() as u64, types.len() as u64]);
        self.entries.clear();
        for (dialect, bytes) in attributes.iter().chain(types) {
            self.lengths.extend(varints(&[*dialect, 1, (bytes.len() as u64) << 1 | 1]));
            self.entries.extend_from_slice(bytes);
        }
        self
    }
}

/// The code and message of the error of a file.
fn refused(file: &File) -> (&'static str, String) {
    let bytes = file.bytes();
    let errors = bytecode::read(&bytes).expect_err("the file is damaged");
    let error = errors.iter().next().expect("an error");
    assert!(error.notes.iter().any(|note| note.contains("of the file")), "{error:?}");
    (error.code.as_str(), error.message.clone())
}

#[test]
fn a_file_by_hand_is_read() {
    let module = bytecode::read(&File::new().bytes()).expect("a module");
    assert_eq!(module.operation_count(), 1);
}

/// The unknown location, and what follows it: attribute 0 is needed by the module.
fn unknown() -> (u64, Vec<u8>) {
    (0, varints(&[15]))
}

/// Makes the attribute at an index part of the module, as its dictionary.
fn with_dictionary(mut file: File, index: u64) -> File {
    let mut ir = varints(&[1 << 1, 0]);
    ir.push(1 << 6 | 1 << 4 | 1);
    ir.extend(varints(&[0, index, 0, 1 << 1, 1, 0, 0]));
    file.ir = ir;
    file
}

#[test]
fn attributes_that_contain_themselves_are_refused() {
    // An array of itself; two arrays of each other; a dictionary through a type.
    let itself = File::new().entries(&[unknown(), (0, varints(&[0, 1, 1]))], &[]);
    assert_eq!(refused(&with_dictionary(itself, 1)), ("P0809", "attribute 1 contains itself".to_owned()));
    let pair = File::new().entries(&[unknown(), (0, varints(&[0, 1, 2])), (0, varints(&[0, 1, 1]))], &[]);
    assert_eq!(refused(&with_dictionary(pair, 2)), ("P0809", "attribute 2 contains itself".to_owned()));
    // type attribute -> tensor with an encoding -> type attribute
    let through = File::new()
        .entries(&[unknown(), (0, varints(&[6, 0]))], &[(0, varints(&[14, 1, 0, 1])), (0, varints(&[5]))]);
    assert_eq!(refused(&with_dictionary(through, 1)), ("P0809", "attribute 1 contains itself".to_owned()));
    // A function type of itself.
    let ty = File::new().entries(&[unknown(), (0, varints(&[6, 0]))], &[(1, varints(&[8, 1, 0, 0]))]);
    assert_eq!(refused(&with_dictionary(ty, 1)), ("P0809", "type 0 contains itself".to_owned()));
}

#[test]
fn deep_attributes_are_refused_without_deep_stacks() {
    let mut attributes = vec![unknown(), (0, varints(&[7]))];
    for n in 2..100_000 {
        attributes.push((0, varints(&[0, 1, n - 1])));
    }
    let file = with_dictionary(File::new().entries(&attributes, &[]), 99_999);
    let (code, message) = refused(&file);
    assert_eq!((code, &*message), ("P0810", "array is nested more than 256 levels deep"));
    // The same, the other way around in the table.
    let mut attributes = vec![unknown()];
    for n in 1..50_000 {
        attributes.push((0, varints(&[0, 1, n + 1])));
    }
    attributes.push((0, varints(&[7])));
    assert_eq!(refused(&with_dictionary(File::new().entries(&attributes, &[]), 1)).0, "P0810");
    // Locations, too.
    let mut attributes = vec![unknown()];
    for n in 1..50_000 {
        attributes.push((0, varints(&[10, n - 1, 0])));
    }
    let mut file = File::new().entries(&attributes, &[]);
    file.ir = {
        let mut ir = varints(&[1 << 1, 0]);
        ir.push(1 << 6);
        ir.extend(varints(&[49_999, 0]));
        ir
    };
    assert_eq!(refused(&file).0, "P0810");
}

#[test]
fn operations_may_be_nested_deeply() {
    // Modules in modules, not isolated: each is a name, a mask, a location, properties and one region of one
    // block.
    let depth = 100_000;
    let mut region = Vec::new();
    for _ in 0..depth {
        region.extend(varints(&[1, 0, 1 << 1, 0]));
        region.push(1 << 6 | 1 << 4);
        region.extend(varints(&[0, 0, 1 << 1]));
    }
    region.extend(varints(&[0]));
    let mut file = File::new();
    file.ir = File::module(&region);
    let module = bytecode::read(&file.bytes()).expect("modules in modules");
    assert_eq!(module.operation_count(), depth + 1);
    let again = bytecode::write(&module, Version::NEWEST).expect("it can be written");
    assert_eq!(bytecode::read(&again).expect("it is read again").operation_count(), depth + 1);
}

#[test]
fn announced_values_and_blocks_are_bounded_by_the_file() {
    for (blocks, values) in
        [(1u64 << 40, 1u64), (1, 1 << 40), (u64::MAX, 0), (1, u64::MAX), (200, 1), (1, 200)]
    {
        let mut file = File::new();
        file.ir = File::module(&varints(&[blocks, values, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(refused(&file).0, "P0803", "{blocks} {values}");
    }
    // Regions in regions that each announce as many values as bytes follow: together more than the file has.
    let mut nested = Vec::new();
    for _ in 0..1000 {
        let mut region = varints(&[1, 5000, 1 << 1, 0]);
        region.push(1 << 6 | 1 << 4);
        region.extend(varints(&[0, 0, 1 << 1]));
        nested.extend(region);
    }
    nested.extend(varints(&[0]));
    let mut file = File::new();
    file.ir = File::module(&nested);
    assert_eq!(refused(&file).0, "P0803");
}

#[test]
fn what_is_out_of_range_is_said() {
    let mut file = File::new();
    file.ir = File::module(&varints(&[1, 0, 1 << 1, 9]));
    assert_eq!(
        refused(&file),
        ("P0805", "name of an operation 9 is named, but the last one is 0".to_owned())
    );
    let mut file = File::new();
    // An operation with an operand, where there is no value.
    let mut region = varints(&[1, 0, 1 << 1, 0]);
    region.push(1 << 2);
    region.extend(varints(&[0, 1, 0]));
    file.ir = File::module(&region);
    assert_eq!(refused(&file), ("P0805", "value 0 is named, but there is none".to_owned()));
    // A value that is announced and not defined.
    let mut region = varints(&[1, 1, 1 << 1, 0]);
    region.push(1 << 2);
    region.extend(varints(&[0, 1, 0]));
    file.ir = File::module(&region);
    assert_eq!(refused(&file), ("P0813", "value 0 is used, and nothing defines it".to_owned()));
    // A successor where there is no such block.
    let mut region = varints(&[1, 0, 1 << 1, 0]);
    region.push(1 << 3);
    region.extend(varints(&[0, 1, 7]));
    file.ir = File::module(&region);
    assert_eq!(refused(&file), ("P0805", "block 7 is named, but the last one is 0".to_owned()));
    // A region without the operations that it announces, and one with more.
    file.ir = File::module(&varints(&[1, 0, 5 << 1]));
    assert_eq!(refused(&file).0, "P0803");
    file.ir = File::module(&varints(&[1, 0, 0, 0, 0]));
    assert_eq!(refused(&file), ("P0812", "2 bytes are left after the module".to_owned()));
}

#[test]
fn unknown_dialects_codes_and_versions_are_named() {
    let mut file = File::new().entries(&[unknown(), (1, varints(&[99]))], &[]);
    file.strings[2] = b"vhlo".to_vec();
    let file = with_dictionary(file, 1);
    assert_eq!(
        refused(&file),
        ("P0807", "99 is the code of no attribute of dialect vhlo that is known".to_owned())
    );
    let mut file = with_dictionary(File::new().entries(&[unknown(), (1, varints(&[1, 0]))], &[]), 1);
    file.strings[2] = b"other".to_vec();
    assert_eq!(refused(&file), ("P0811", "the encodings of dialect other are not known".to_owned()));
    let mut file = File::new();
    file.dialects = varints(&[2, 0, 2 << 1, 2, 0, 1, 1 << 1 | 1, 1, 1, 1 << 1 | 1]);
    assert_eq!(
        refused(&file),
        ("P0816", "vhlo.module is no operation of VHLO up to version 1.20.0".to_owned())
    );
    let mut bytes = File::new().bytes();
    bytes[4] = 7 << 1 | 1;
    let errors = bytecode::read(&bytes).expect_err("an unknown version");
    let error = errors.iter().next().expect("an error");
    assert_eq!(error.message, "the bytecode is of version 7, and the newest known is 6");
    assert_eq!((error.code.as_str(), error.span.start), ("P0802", 4));
}

#[test]
fn constants_fit_their_types() {
    // dense: a tensor type and a blob.
    let tensor = |dims: &[u64]| {
        let mut bytes = varints(&[13, dims.len() as u64]);
        dims.iter().for_each(|&n| varint(&mut bytes, n << 1));
        varint(&mut bytes, 1);
        (0, bytes)
    };
    let dense = |bytes: usize| {
        let mut entry = varints(&[18, 0, bytes as u64]);
        entry.extend(vec![0; bytes]);
        (0, entry)
    };
    let with = |dims: &[u64], bytes: usize| {
        with_dictionary(
            File::new().entries(&[unknown(), dense(bytes)], &[tensor(dims), (0, varints(&[5]))]),
            1,
        )
    };
    // Read, but no dictionary.
    assert_eq!(refused(&with(&[2], 8)).0, "P0812");
    assert_eq!(refused(&with(&[1 << 40, 1 << 20], 4)).0, "P0812");
    assert_eq!(
        refused(&with(&[2], 7)),
        ("P0808", "dense elements: 7 bytes of data for 2 elements of 4 bytes".to_owned())
    );
    assert_eq!(refused(&with(&[1 << 40, 1 << 20], 8)).0, "P0808");
    assert_eq!(refused(&with(&[1 << 40, 1 << 40], 4)).0, "P0808");
}
