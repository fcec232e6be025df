//! Buffers of small programs, as data: `buffers/NAME.hlo` holds programs, each after a line `// case: title`
//! and lines that say what must be true of its assignment; each is checked on runs of the program
//! ([`hlo_opt::buffers::check`]).
//!
//! `// copies N`: so many copies in all; `// arena N` and `// frame N`: bytes; `// result K parameter N`, `//
//! result K constant`, `// result K result N`: where leaf K of the result is; `// same A B`: instructions in
//! one slice (`name#leaf`); `// apart A B`; `// scratch NAME N`: it asks for N bytes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use hlo::{InstrId, Module};
use hlo_opt::buffers::{AllocationKind, Questions, Slice, assign, check, copies_of};
use rustc_hash::FxHashMap;

fn parse(text: &str) -> Module {
    let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
    let module = parsed.module.unwrap_or_else(|| panic!("{:?}\n{text}", parsed.diagnostics));
    let found = hlo::verify::verify(&module);
    assert!(!found.has_errors(), "{found:?}\n{text}");
    module
}

fn find(module: &Module, name: &str) -> (InstrId, usize) {
    let (name, leaf) = name.split_once('#').unwrap_or((name, "0"));
    let all = || module.computations().iter().flat_map(|&c| module.instructions(c));
    let id = all().find(|&id| &*module.instr(id).name == name).unwrap_or_else(|| panic!("no {name}"));
    (id, leaf.parse().unwrap())
}

fn case(title: &str, text: &str) {
    let module = parse(text);
    let facts: Vec<Vec<&str>> =
        text.lines().filter_map(|l| Some(l.strip_prefix("// ")?.split_whitespace().collect())).collect();
    let mut scratch: FxHashMap<InstrId, u64> = FxHashMap::default();
    for fact in &facts {
        if let ["scratch", name, bytes] = fact[..] {
            scratch.insert(find(&module, name).0, bytes.parse().unwrap());
        }
    }
    let questions = Questions {
        scratch: &|id| scratch.get(&id).copied().unwrap_or(0),
        whole: &|_| false,
        epilogue_in_place: &|_| true,
    };
    let assigned = assign(&module, &questions).unwrap();
    check::check(&module, &assigned, &questions).unwrap_or_else(|e| panic!("{title}: {e}"));
    let a = &assigned.assignment;
    let slice = |name: &str| -> Slice {
        let (id, leaf) = find(&module, name);
        assigned.slice_of(id, leaf)
    };
    let of = |kind| a.allocations.iter().find(|a| a.kind == kind).map_or(0, |a| a.bytes);
    for fact in &facts {
        let said = fact.join(" ");
        match fact[..] {
            ["copies", n] => assert_eq!(copies_of(&assigned), n.parse::<usize>().unwrap(), "{title}: {said}"),
            ["arena", n] => {
                assert_eq!(of(AllocationKind::Arena), n.parse::<u64>().unwrap(), "{title}: {said}")
            }
            ["frame", n] => {
                assert_eq!(of(AllocationKind::Frame), n.parse::<u64>().unwrap(), "{title}: {said}")
            }
            ["result", k, ref rest @ ..] => {
                let kind = a.allocations[a.results[k.parse::<usize>().unwrap()].allocation as usize].kind;
                let found = match kind {
                    AllocationKind::Parameter { leaf, .. } => format!("parameter {leaf}"),
                    AllocationKind::Constant { .. } => "constant".to_owned(),
                    AllocationKind::Result { leaf } => format!("result {leaf}"),
                    AllocationKind::Arena => "arena".to_owned(),
                    AllocationKind::Frame => "frame".to_owned(),
                };
                assert_eq!(found, rest.join(" "), "{title}: {said}");
            }
            ["same", x, y] => assert_eq!(slice(x), slice(y), "{title}: {said}"),
            ["apart", x, y] => assert_ne!(slice(x), slice(y), "{title}: {said}"),
            ["scratch", ..] => {}
            _ => panic!("{title}: what is `{said}`?"),
        }
    }
}

#[test]
fn buffers_of_small_programs() {
    let folder = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/buffers");
    let mut n = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for part in text.split("// case: ").skip(1) {
            let (title, body) = part.split_once('\n').unwrap();
            case(title, body);
            n += 1;
        }
    }
    assert!(n > 20, "{n} cases");
}
