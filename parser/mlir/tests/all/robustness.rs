//! What holds for any input: no panic, no deep stack, memory within what is allowed.

use hlo::Span;
use hlo::diag::codes;
use hlo_mlir::convert::{ConvertOptions, convert};
use hlo_mlir::text::{ReadOptions, parse_part};

/// A program with much of what texts have.
const PROGRAM: &str = include_str!("../data/forms.mlir");

fn attempt(text: &str) {
    let Ok(module) = parse_part(text, Span::new(0, text.len()), &ReadOptions::default()) else { return };
    if let Ok(converted) = convert(&module, &ConvertOptions::default()) {
        let _ = hlo::verify::verify(&converted.module);
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ z >> 31) % n.max(1) as u64) as usize
    }
}

#[test]
fn the_program_itself_is_right() {
    let module = crate::read(PROGRAM);
    let printed = crate::generic(&module);
    assert_eq!(crate::generic(&crate::read(&printed)), printed);
    let converted = convert(&module, &ConvertOptions::default());
    let module = converted
        .unwrap_or_else(|d| panic!("{}", hlo::diag::render_all(&d, "forms.mlir", PROGRAM, false)))
        .module;
    let found = hlo::verify::verify(&module);
    assert!(!found.has_errors(), "{}", hlo::diag::render_all(&found, "forms.mlir", PROGRAM, false));
}

#[test]
fn every_prefix_is_read_or_refused() {
    for end in (0..PROGRAM.len()).filter(|&i| PROGRAM.is_char_boundary(i)) {
        attempt(&PROGRAM[..end]);
    }
}

/// A text with up to three small changes.
fn mutant(text: &str, random: &mut Random) -> String {
    const PIECES: [&str; 24] = [
        "-1",
        "9223372036854775807",
        "?",
        "tensor<",
        ">",
        "dense<",
        "%x",
        "#stablehlo.",
        "!quant.",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "\"",
        "0x",
        "i1",
        "f8E4M3FN",
        ", ",
        "@main",
        "^bb0",
        "-> ",
        "18446744073709551616",
    ];
    let mut text = text.to_owned();
    for _ in 0..1 + random.below(3) {
        let at = random.below(text.len());
        let end = (at + random.below(12)).min(text.len());
        if text.is_char_boundary(at) && text.is_char_boundary(end) {
            let piece = PIECES[random.below(PIECES.len())];
            match random.below(3) {
                0 => text.replace_range(at..end, ""),
                1 => text.replace_range(at..end, piece),
                _ => text.insert_str(at, piece),
            }
        }
    }
    text
}

#[test]
fn mutants_are_read_or_refused() {
    let generic = crate::generic(&crate::read(PROGRAM));
    let mut random = Random(7);
    for round in 0..4000 {
        attempt(&mutant(if round % 2 == 0 { PROGRAM } else { &generic }, &mut random));
    }
}

/// Of StableHLO's own tests, where they are found.
#[test]
fn mutants_of_test_programs_are_read_or_refused() {
    let Some(folder) = crate::stablehlo::folder() else { return };
    let mut random = Random(11);
    let mut files: Vec<_> = ["tests", "tests/interpret", "tests/interpret/chlo"]
        .iter()
        .filter_map(|below| std::fs::read_dir(folder.join(below)).ok())
        .flat_map(|entries| entries.flatten().map(|e| e.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "mlir"))
        .collect();
    files.sort();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        for part in hlo_mlir::text::split(&text) {
            for _ in 0..4 {
                attempt(&mutant(&text[part.range()], &mut random));
            }
        }
    }
}

#[test]
fn depth_is_refused_or_needs_no_stack() {
    for (open, close) in
        [("tuple<", ">"), ("complex<", ">"), ("[", "]"), ("{a = ", "}"), ("loc(fused[", "])")]
    {
        let text = format!("\"a.b\"() {{x = {}{}}} : () -> ()", open.repeat(100_000), close.repeat(100_000));
        let found =
            parse_part(&text, Span::new(0, text.len()), &ReadOptions::default()).expect_err("too deep");
        assert!(
            found
                .iter()
                .any(|d| d.code == codes::parse::NESTING_TOO_DEEP || d.code == codes::mlir::MLIR_SYNTAX)
        );
    }
    let depth = 100_000;
    let text = format!("{}{}", "\"a.b\"() ({\n".repeat(depth), "}) : () -> ()\n".repeat(depth));
    let module = crate::read(&text);
    assert_eq!(module.operation_count(), depth + 1);
    assert!(crate::generic(&module).len() > text.len());
}

#[test]
fn memory_is_bounded() {
    let text = "\"a.b\"() {x = dense<1> : tensor<4xi32>} : () -> ()\n".repeat(1000);
    let options = ReadOptions { memory_bytes: 100_000 };
    let found = parse_part(&text, Span::new(0, text.len()), &options).expect_err("too much");
    assert_eq!(found.iter().next().expect("an error").code, codes::OUT_OF_MEMORY);
}

/// Replicas in groups times partitions of the module: more devices than an integer holds.
#[test]
fn numbers_of_devices_do_not_overflow() {
    attempt(
        "module @m attributes {mhlo.num_replicas = 4 : i32, mhlo.num_partitions = 4611686018427387904 : i64} {
  func.func @main(%a0: tensor<2x2xf32>) -> (tensor<2x?xf32>) {
    %r = \"stablehlo.all_gather\"(%a0) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<2x2xf32>) -> tensor<2x?xf32>
    return %r : tensor<2x?xf32>
  }
}",
    );
}
