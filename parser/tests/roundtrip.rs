//! Text to module and back: printing what was read gives the text, and reading what was printed gives the
//! module.

#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(clippy::print_stderr, reason = "says what it skips, and the figures of what it ran")]

use std::path::{Path, PathBuf};

use hlo::literal::{ArrayLiteral, Bits, BufferOf};
use hlo::print::{PrintOptions, print_literal, print_module, write_module};
use hlo::{AttrKey, ElementType, Literal, Module, fingerprint, modules_equal};
use hlo_parser::{ParseOptions, parse_module};
use proptest::prelude::*;

/// Files of the shared corpus whose text cannot come back as it is, and why. They are written by hand, not by
/// XLA.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("corpus/xla/backends__cpu__benchmarks__hlo__diffrax.b380012920.hlo", "comments"),
    ("corpus/xla/backends__cpu__benchmarks__hlo__in_place_dynamic_update_slice_fusion.hlo", "comments"),
    ("corpus/xla/backends__cpu__tests__thunk_coverage__host_offload.hlo", "instructions over several lines"),
    ("corpus/xla/tests__isolated_convolution.hlo", "a colon after the module's name"),
    ("corpus/xla/tools__data__hlo_isolation_cli_test.hlo", "signatures that name parameters differently"),
    ("corpus/xla/tools__data__must_alias.hlo", "other blanks"),
    ("corpus/xla/tools__data__must_alias_with_sharding.hlo", "other blanks"),
    ("corpus/xla/tools__multihost_hlo_runner__data__fp8_gemm_loop.hlo", "empty lines"),
    ("corpus/xla/tools__tests__data__spmd.hlo", "some names with % and some without"),
];

fn parse(name: &str, text: &str) -> Module {
    let parsed = parse_module(text, &ParseOptions::default());
    match parsed.module {
        Some(module) => module,
        None => panic!("{name}: {}", parsed.diagnostics.iter().next().unwrap().message),
    }
}

/// Reads, prints, reads again; whether the text came back. What was read again must be the same module.
fn text_comes_back(name: &str, text: &str) -> bool {
    let module = parse(name, text);
    let printed = print_module(&module, &PrintOptions::source(&module));
    let mut streamed = String::new();
    write_module(&module, &PrintOptions::source(&module), &mut streamed).unwrap();
    assert_eq!(printed, streamed, "{name}");
    if printed != text {
        let again = parse(name, &printed);
        if let Err(difference) = modules_equal(&module, &again) {
            panic!("{name}: printing lost something: {difference}");
        }
    }
    printed == text
}

/// In XLA's styles too, the module that comes back is the same but for what the style leaves out.
fn other_styles_read_back(name: &str, text: &str) {
    let module = parse(name, text);
    let long = print_module(&module, &PrintOptions::LONG);
    let again = parse(name, &long);
    assert_eq!(long, print_module(&again, &PrintOptions::LONG), "{name}: the long form is not a fixed point");
    let short = print_module(&module, &PrintOptions::SHORT_PARSABLE);
    let again = parse(name, &short);
    assert_eq!(short, print_module(&again, &PrintOptions::SHORT_PARSABLE), "{name}: nor the short form");
}

fn shared() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    if path.join("corpus").is_dir() {
        return Some(path);
    }
    eprintln!("SKIPPED: there is no ../shared/corpus beside the project");
    None
}

fn is_module(path: &Path) -> bool {
    let extension = path.extension().and_then(|e| e.to_str());
    extension == Some("hlo") || extension == Some("txt") && path.to_string_lossy().contains("passdumps")
}

fn modules_below(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            modules_below(&path, found);
        } else if is_module(&path) {
            found.push(path);
        }
    }
}

/// Every file of a folder comes back, the exceptions aside, and those do not.
fn corpus(folder: &str, at_least: usize) {
    let Some(shared) = shared() else { return };
    let mut files = Vec::new();
    modules_below(&shared.join(folder), &mut files);
    assert!(files.len() >= at_least, "{folder}: only {} files", files.len());
    let (mut wrong, mut exact) = (Vec::new(), 0);
    for path in &files {
        let name = path.strip_prefix(&shared).unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        let back = text_comes_back(name, &text);
        exact += usize::from(back);
        let exception = EXCEPTIONS.iter().find(|e| e.0 == name);
        match (back, exception) {
            (true, None) | (false, Some(_)) => {}
            (true, Some((_, reason))) => wrong.push(format!("{name} comes back in spite of {reason}")),
            (false, None) => wrong.push(format!("{name} does not come back")),
        }
    }
    eprintln!("{folder}: {exact} of {} byte for byte", files.len());
    assert!(wrong.is_empty(), "{} of {folder}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn jax() {
    corpus("corpus/jax", 1800);
}

#[test]
fn stablehlo() {
    corpus("corpus/stablehlo", 890);
}

#[test]
fn the_other_folders() {
    corpus("corpus/linalg", 182);
    corpus("corpus/multi", 81);
    corpus("corpus/passdumps", 182);
    corpus("corpus/xla", 28);
    corpus("bench", 33);
}

#[test]
fn other_styles_of_large_programs() {
    let Some(shared) = shared() else { return };
    let mut files = Vec::new();
    modules_below(&shared.join("corpus/xla"), &mut files);
    modules_below(&shared.join("corpus/multi"), &mut files);
    for path in &files {
        other_styles_read_back(path.to_str().unwrap(), &std::fs::read_to_string(path).unwrap());
    }
}

/// Texts as XLA prints them, with what the corpus does not have.
#[test]
fn rare_forms() {
    let mut files = Vec::new();
    modules_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/roundtrip"), &mut files);
    assert!(files.len() >= 4);
    for path in files {
        let name = path.to_str().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let module = parse(name, &text);
        assert_eq!(print_module(&module, &PrintOptions::source(&module)), text, "{name}");
        other_styles_read_back(name, &text);
    }
}

/// The fingerprint forgets names and style, and nothing else.
#[test]
fn fingerprints() {
    let a = "HloModule m\n\nENTRY %e (p: f32[2]) -> f32[2] {\n  %p = f32[2] parameter(0)\n  ROOT %n = f32[2] negate(%p)\n}\n\n";
    let b = "HloModule other\n\nENTRY f {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] negate(x), metadata={op_name=\"o\"}\n}\n";
    let c = b.replace("negate", "abs");
    assert_eq!(fingerprint(&parse("a", a)), fingerprint(&parse("b", b)));
    assert_ne!(fingerprint(&parse("b", b)), fingerprint(&parse("c", &c)));
    // The value of an elided constant follows from its name.
    let d = "HloModule m\n\nENTRY e {\n  ROOT c = f32[20] constant({...})\n}\n";
    let e = d.replace(" c =", " d =");
    assert_ne!(fingerprint(&parse("d", d)), fingerprint(&parse("e", &e)));
}

fn literal<T: BufferOf + Bits>(dims: &[i64], bits: impl FnMut(usize) -> u128) -> Literal {
    let n = dims.iter().product::<i64>() as usize;
    let buffer = T::wrap((0..n).map(bits).map(T::from_bits).collect());
    Literal::Array(ArrayLiteral { dims: dims.iter().copied().collect(), buffer: buffer.into() })
}

fn bits_of(literal: &Literal) -> Vec<u128> {
    hlo::with_buffer!(&*literal.arrays()[0].buffer, v => v.iter().map(|x| x.bits()).collect())
}

fn element_type() -> impl Strategy<Value = ElementType> {
    proptest::sample::select(ElementType::ALL)
}

/// Arbitrary bits, often with few of them set, so that NaNs, denormals and small integers are not rare.
fn pattern() -> impl Strategy<Value = u128> {
    let ones = u128::MAX;
    prop_oneof![
        4 => any::<u128>(),
        1 => (0u32..128).prop_map(|n| 1 << n),
        1 => (0u32..128).prop_map(move |n| ones << n),
        1 => (0u32..127).prop_map(move |n| ones >> n),
        1 => any::<f32>().prop_map(|x| u128::from(x.to_bits()) << 32 | u128::from(x.to_bits())),
        1 => any::<f64>().prop_map(|x| u128::from(x.to_bits())),
        1 => (-1000i64..1000).prop_map(|x| u128::from((x as f32 / 100.0).to_bits())),
        1 => (-1000i64..1000).prop_map(|x| u128::from((x as f64 / 100.0).to_bits())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn literals_read_back_to_the_bit(
        ty in element_type(),
        dims in proptest::collection::vec(0i64..4, 0..6),
        patterns in proptest::collection::vec(pattern(), 16),
    ) {
        let value = hlo::with_element_type!(ty, T => literal::<T>(&dims, |i| patterns[i % 16].rotate_left(i as u32 / 16)));
        let shape: Vec<String> = dims.iter().map(i64::to_string).collect();
        let text = format!("HloModule m\n\nENTRY e {{\n  ROOT c = {ty}[{}] constant({})\n}}\n", shape.join(","), print_literal(&value));
        let module = parse(&text, &text);
        let read = module.instr(module.root(module.entry())).attrs.constant_value().unwrap();
        let hlo::ConstantValue::Given(read) = read else { panic!("elided: {text}") };
        prop_assert_eq!(bits_of(read), bits_of(&value), "{}", text);
        prop_assert_eq!(&print_module(&module, &PrintOptions::source(&module)), &text);
        prop_assert!(module.instr(module.root(module.entry())).attrs.get(AttrKey::ConstantValue).is_some());
    }
}
