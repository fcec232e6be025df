//! What a text that is no HLO most likely is: said with its first syntax error, and only there.
//!
//! **Invariant:** nothing here decides what is accepted.

/// What else the text looks like, in a sentence that says what is expected instead.
pub(crate) fn what(text: &str) -> Option<&'static str> {
    if is_proto(text) {
        return Some(
            "this looks like a serialized proto, such as an HloModuleProto; HLO text is expected, as `--xla_dump_hlo_as_text` writes it",
        );
    }
    if is_proto_text(text) {
        return Some(
            "this looks like a proto in text format, such as an HloModuleProto; HLO text is expected, which begins with `HloModule`",
        );
    }
    is_mlir(text).then_some(
        "this looks like MLIR, such as StableHLO; HLO text is expected, as `--xla_dump_to` or jax's `lower(...).as_text(dialect=\"hlo\")` gives it",
    )
}

/// How many lines are looked at.
const LINES: usize = 200;

/// A proto begins with the tag of its first field of bytes, 1 or 2, and a length; both are also line breaks
/// or control characters.
fn is_proto(text: &str) -> bool {
    let bytes = text.as_bytes();
    let control = |b: &u8| b.is_ascii_control() && !b.is_ascii_whitespace();
    matches!(bytes.first(), Some(0x0a | 0x12)) && bytes.iter().skip(1).take(64).any(control)
}

/// Fields of an HloModuleProto or of an HloProto, one of which is there in any.
fn is_proto_text(text: &str) -> bool {
    const FIELDS: [&str; 4] = ["hlo_module {", "entry_computation_name:", "computations {", "instructions {"];
    let mut lines =
        text.lines().take(LINES).map(str::trim_start).filter(|l| !l.is_empty() && !l.starts_with('#'));
    let first = lines.next().unwrap_or_default();
    let begins = first.starts_with("name: \"") || FIELDS.iter().any(|f| first.starts_with(f));
    begins && std::iter::once(first).chain(lines).any(|l| l.starts_with("name: \""))
}

/// A module, a function, or an operation with its dialect before it.
fn is_mlir(text: &str) -> bool {
    const STARTS: [&str; 6] =
        ["module {", "module @", "module attributes", "builtin.module", "\"builtin.module\"", "func.func "];
    const DIALECTS: [&str; 6] = ["stablehlo.", "mhlo.", "chlo.", "vhlo.", "func.", "sdy."];
    text.lines().take(LINES).map(str::trim_start).any(|line| {
        let operation =
            line.split_once(" = ").map_or(line, |(_, operation)| operation).trim_start_matches('"');
        STARTS.iter().any(|s| line.starts_with(s)) || DIALECTS.iter().any(|d| operation.starts_with(d))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn looks_like(text: &str, kind: Option<&str>) {
        let note = what(text);
        assert_eq!(note.is_some(), kind.is_some(), "{text}: {note:?}");
        assert!(
            kind.is_none_or(|k| note.is_some_and(|n| n.starts_with(&format!("this looks like {k}")))),
            "{note:?}"
        );
    }

    #[test]
    fn other_formats_are_told_apart() {
        looks_like("module @jit_f attributes {mhlo.num_partitions = 1 : i32} {\n", Some("MLIR"));
        looks_like("// a comment\n#loc = loc(unknown)\nmodule {\n", Some("MLIR"));
        looks_like("  func.func public @main() -> tensor<f32> {\n", Some("MLIR"));
        looks_like("  %0 = stablehlo.add %a, %b : tensor<f32>\n", Some("MLIR"));
        looks_like("  %0 = \"mhlo.add\"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n", Some("MLIR"));
        looks_like("\n\u{b}jit_softmax\u{12}\u{1}e\u{1a}\u{10}", Some("a serialized proto"));
        looks_like(
            "name: \"jit_f\"\nentry_computation_name: \"main\"\ncomputations {\n",
            Some("a proto in text"),
        );
        looks_like("hlo_module {\n  name: \"jit_f\"\n", Some("a proto in text"));
    }

    #[test]
    fn broken_hlo_is_nothing_else() {
        looks_like("", None);
        looks_like("HloModule m\n\nENTRY e {\n  a = f32[] add(\n}\n", None);
        looks_like("\nHloModule m\n", None);
        looks_like("computations {\n  a = f32[] parameter(0)\n", None);
        looks_like("e {\n  a = f32[] add(b, c), metadata={op_name=\"stablehlo.add\"}\n", None);
    }
}
