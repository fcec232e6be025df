//! No text makes the parser panic, overflow the stack, or take more than linear time and memory.

use hlo_parser::{ParseOptions, parse_module};
use proptest::prelude::*;

use crate::codes;

/// Parses, and checks what holds for every text.
fn check(text: &str) {
    let parsed = parse_module(text, &ParseOptions::default());
    assert_eq!(parsed.module.is_some(), !parsed.diagnostics.has_errors(), "{text:?}");
    for d in &parsed.diagnostics {
        assert!(d.span.is_none() || d.span.end as usize <= text.len(), "{text:?}");
        assert!(
            d.span.is_none() || text.get(d.span.range()).is_some(),
            "a span cuts a character in {text:?}"
        );
    }
    hlo::diag::render_all(&parsed.diagnostics, "x", text, false);
}

/// Programs that hold every kind of construct, for mutation.
const SEEDS: [&str; 4] = [
    include_str!("../data/forms.hlo"),
    "HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }, entry_computation_layout={(f32[2]{0})->f32[2]{0}}\n\nFileNames\n1 \"a.py\"\n\nENTRY %e (p: f32[2]) -> f32[2] {\n  %p = f32[2]{0:T(8)S(1)} parameter(0), sharding={devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate metadata={op_name=\"x\"}}\n  ROOT %n = f32[2]{0} negate(%p), metadata={op_name=\"a\\\"b\" source_line=3}, backend_config={\"a\":[1,{}]}\n}\n",
    "c = (f32[2,2], s4[], c64[1]) constant(({ { 1, -0 }, { nan(0x400001), -inf } }, -8, {(1, nan)}))",
    "I0521 12:04:45.883509 1509 service.cc:186] ENTRY e {\nI0521 12:04:45.883509 1509 service.cc:186] ROOT x = f32[] add(f32[] constant(1), f32[] constant(2)) }",
];

#[test]
fn seeds_are_right() {
    for seed in SEEDS {
        // A field of the header that nobody knows is warned of.
        let others: Vec<String> =
            codes(seed).into_iter().map(String::from).filter(|c| c != "P0301").collect();
        assert_eq!(others, [""; 0], "{seed}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn random_text(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn random_tokens(picks in prop::collection::vec(0..TOKENS.len(), 0..60)) {
        let text: String = picks.iter().map(|&i| TOKENS[i]).collect();
        check(&text);
    }

    #[test]
    fn mutated_programs(
        seed in 0..SEEDS.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0u8..4, 0..TOKENS.len()), 1..6),
    ) {
        let mut text = SEEDS[seed].to_owned();
        for (at, kind, token) in edits {
            let mut at = at.index(text.len() + 1);
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            match kind {
                0 => text.insert_str(at, TOKENS[token]),
                1 => text.truncate(at),
                2 => {
                    let mut end = (at + 1 + token % 12).min(text.len());
                    while !text.is_char_boundary(end) {
                        end += 1;
                    }
                    text.replace_range(at..end, "");
                }
                _ => {
                    let mut end = (at + 1).min(text.len());
                    while !text.is_char_boundary(end) {
                        end += 1;
                    }
                    text.replace_range(at..end, TOKENS[token]);
                }
            }
            if text.is_empty() {
                text.push(' ');
            }
        }
        check(&text);
    }

    #[test]
    fn pieces(text in "[-0-9a-zA-Z_{}\\[\\]()<>=,:;?*#+~.'\" \n/%x]{0,40}") {
        let _ = hlo_parser::parse_shape(&text);
        let _ = hlo_parser::parse_layout(&text);
        let _ = hlo_parser::parse_sharding(&text);
        let _ = hlo_parser::parse_replica_groups(&text);
        let _ = hlo_parser::parse_window(&text);
        let _ = hlo_parser::parse_conv_dims(&text);
        let _ = hlo_parser::parse_padding(&text);
        let _ = hlo_parser::parse_frontend_attributes(&text);
        let _ = hlo_parser::parse_original_value(&text);
        let _ = hlo_parser::parse_statistics(&text);
        let _ = hlo_parser::parse_shaped_literal(&text);
        let _ = hlo_parser::parse_shape_list(&text);
    }
}

const TOKENS: [&str; 56] = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ",",
    "=",
    " = ",
    "->",
    "<=",
    "?",
    "#0",
    "%",
    "\"",
    "'",
    "\\",
    "/*",
    "*/",
    "//",
    "\n",
    " ",
    "HloModule m",
    "ENTRY ",
    "ROOT ",
    "a",
    "%b",
    "e {",
    "f32[2]",
    "f32[]",
    "{0}",
    "(f32[], s32[])",
    "parameter(0)",
    "constant(",
    "1",
    "-1.5e3",
    "nan(0x1)",
    "{...}",
    "add(a, b)",
    ", to_apply=",
    ", to_apply={",
    "dimensions={0}",
    "metadata={op_name=\"x\"}",
    "sharding={",
    "mesh['x'=2]",
    "calls=",
    "branch_computations={",
    "é",
    "\u{0}",
    "FileNames",
    "1 \"a\"",
    "dot-start(",
    "dot-done(a)",
    "x: f32[]",
    "999999999999999999999",
    "custom-call(), literal=s32[] 1",
];

/// Deep nesting is refused or works; neither needs stack. (Tests run on threads with small stacks.)
#[test]
fn deep_nesting() {
    const N: usize = 10_000;
    let rep = |s: &str| s.repeat(N);
    let nested = |inner: &str| format!("HloModule m\nENTRY e {{\n  {inner}\n}}\n");
    let refused = [
        nested(&format!("ROOT a = {}f32[]{} parameter(0)", rep("("), rep(")"))),
        nested(&format!("ROOT a = {}f32[]{} parameter(0)", rep("b("), rep(")"))),
        nested(&format!("ROOT a = f32[1]{}{} parameter(0)", rep("{0:P(f32[1]"), rep(")}"))),
        nested(&format!("ROOT a = f32[] parameter(0), origin={{{}{{}}{}}}", rep("("), rep(")"))),
    ];
    for text in &refused {
        assert_eq!(codes(text), ["P0005"]);
    }
    let wrong = [
        rep("("),
        rep("{"),
        rep("["),
        rep("a {"),
        rep("f32["),
        nested(&rep("a = f32[] add(")),
        nested(&format!("ROOT a = f32[] parameter(0), sharding={}{}", rep("{"), rep("}"))),
        nested(&format!("ROOT a = f32[] parameter(0), replica_groups={}{}", rep("{"), rep("}"))),
        nested(&format!("ROOT a = f32[1] constant({}1{})", rep("{"), rep("}"))),
        nested(&format!("ROOT a = f32[] call(), to_apply={}", rep("{ a = f32[] call(), to_apply="))),
        rep("ENTRY e { ROOT a = f32[] call(), branch_computations={"),
    ];
    for text in &wrong {
        assert!(!codes(text).is_empty());
        check(text);
    }
    // Operands and computations in attributes are flat in the tree: depth costs nothing.
    let operands = format!("ROOT a = f32[] {}f32[] parameter(0){}", rep("negate("), rep(")"));
    assert_eq!(codes(&nested(&operands)), [""; 0]);
    let computations =
        format!("ROOT a = f32[] {}constant(1){}", rep("call(), to_apply={ ROOT a = f32[] "), rep("}"));
    assert_eq!(codes(&nested(&computations)), [""; 0]);
    let braces = format!("ROOT a = f32[] parameter(0), backend_config={}{}", rep("{"), rep("}"));
    assert_eq!(codes(&nested(&braces)), [""; 0]);
}

/// Fifty kilobytes of each must not take quadratic time: the test takes seconds, or else minutes.
#[test]
fn linear_time_on_hostile_text() {
    const SIZE: usize = 400_000;
    let patterns = [
        "((\n",
        "{\n",
        "a(\n",
        "a = f32[\n",
        "a = (\n",
        "constant(\n",
        "a = f32[] constant(\n",
        "/*",
        "\"",
        "'\n",
        "x={\n",
        ", x={\n",
        ", x={/*\n",
        "a = b()\n",
        "a = b(c)\n",
        "a = f32[] negate(z)\n",
        "FileNames 1 \"\n",
        "a = f32[] add(a), x=1\n",
        "a {\n",
        "a { a = f32[] negate(a)\n",
        "}\n",
        "\u{0}",
        "é",
        ", a=1",
        "a: ",
        "[",
        "-",
        "%",
        "1 ",
        "a#0 ",
        "k[\n",
        "a = f32[] k(), x={[\n",
    ];
    for pattern in patterns {
        for prefix in [
            "",
            "HloModule m",
            "HloModule m\nENTRY e {\n",
            "HloModule m\nENTRY e {\n  a = f32[] parameter(0)",
        ] {
            let mut text = prefix.to_owned();
            text.push_str(&pattern.repeat((SIZE / 8).div_ceil(pattern.len())));
            check(&text);
            // A bracket of another kind at the end is one that every line looks for.
            text.push_str("\n)}]\n");
            check(&text);
        }
    }
}

/// Literals that are not closed end at the next line; looking for their ends costs later values nothing.
#[test]
fn literals_that_are_not_closed_hide_no_later_value() {
    let broken: String = (0..40).map(|i| format!("  c{i} = f32[] constant(1\n")).collect();
    let config = "x".repeat(600);
    let text = format!(
        "HloModule m\nENTRY e {{\n{broken}  p = f32[] parameter(0)\n  ROOT r = f32[] negate(p), metadata={{op_name=\"{config}\"}}\n}}\n"
    );
    let found = codes(&text);
    assert_eq!(found.len(), 40, "{found:?}");
}

#[test]
fn huge_shapes_allocate_nothing() {
    for (shape, literal) in [
        ("f32[9223372036854775807]", "{1}"),
        ("f32[9223372036854775807]", "1"),
        ("f32[3037000499,3037000499]", "{ {1} }"),
        ("f32[1000000000000]", "{}"),
        ("c128[1000000000000]", "{(1, 2)}"),
    ] {
        let text = format!("HloModule m\nENTRY e {{\n  ROOT c = {shape} constant({literal})\n}}\n");
        assert_eq!(codes(&text).len(), 1, "{text}");
    }
    let text = "HloModule m\nENTRY e {\n  ROOT c = f32[9223372036854775807] constant({...})\n}\n";
    assert_eq!(codes(text), ["P0508"]);
}

/// A few lines cannot make something huge.
#[test]
fn small_texts_stay_small() {
    let doubling: String = (1..64).map(|i| format!("  t{i} = tuple(t{0}, t{0})\n", i - 1)).collect();
    let text = format!("HloModule m\nENTRY e {{\n  t0 = f32[] parameter(0)\n{doubling}}}\n");
    assert_eq!(codes(&text), ["R0002"]);
    let deepening: String = (1..2000).map(|i| format!("  t{i} = tuple(t{})\n", i - 1)).collect();
    let text = format!("HloModule m\nENTRY e {{\n  t0 = f32[] parameter(0)\n{deepening}}}\n");
    assert_eq!(codes(&text), ["R0002"]);
    let computation = |i: usize| format!("f{i} {{\n  ROOT p = f32[] parameter(1048575)\n}}\n");
    let text: String = (0..2000).map(computation).collect();
    assert_eq!(codes(&text)[0], "P0116");
    let value = |i: usize| format!("  c{i} = f32[16777216] constant(1)\n");
    let values: String = (0..6).map(value).collect();
    assert!(codes(&format!("HloModule m\nENTRY e {{\n{values}}}\n")).contains(&"P0502"));
    let parameters: String = (0..500).map(|i| format!("  p{i} = f32[] parameter({i})\n")).collect();
    let start = |i: usize| format!("  s{i} = ((), (), u32[]) call-start(), to_apply=f\n");
    let starts: String = (0..1000).map(start).collect();
    let text =
        format!("HloModule m\nf {{\n{parameters}  ROOT r = f32[] negate(p0)\n}}\nENTRY e {{\n{starts}}}\n");
    assert!(codes(&text).contains(&"P0118"));
    let elided: String = (0..2000).map(|i| format!("  c{i} = f32[100] constant({{...}})\n")).collect();
    let found = codes(&format!("HloModule m\nENTRY e {{\n{elided}  ROOT x = f32[] negat(c0)\n}}\n"));
    assert_eq!((found.len(), found.contains(&"P0112")), (12, true), "an error is not lost among warnings");
}

/// Every prefix of a program is refused, or is a program.
#[test]
fn truncated_anywhere() {
    let text = SEEDS[1];
    for end in (0..text.len()).filter(|&i| text.is_char_boundary(i)) {
        check(&text[..end]);
    }
}

#[test]
fn bytes_that_are_no_text() {
    assert_eq!(hlo_parser::decode(b"HloModule m").unwrap(), "HloModule m");
    assert_eq!(hlo_parser::decode(b"\xEF\xBB\xBFHloModule m").unwrap(), "HloModule m");
    let e = hlo_parser::decode(b"Hlo\xffModule").unwrap_err();
    assert_eq!((e.code.as_str(), e.message.as_str()), ("P0011", "byte 3 is not UTF-8 text"));
}

/// What would take more memory than it may is refused before it is read.
#[test]
fn memory_is_limited() {
    let codes_within = |text: &str, memory_bytes: u64| {
        let options = hlo_parser::ParseOptions { memory_bytes, ..Default::default() };
        let parsed = hlo_parser::parse_module(text, &options);
        assert_eq!(parsed.module.is_none(), !parsed.diagnostics.is_empty());
        parsed.diagnostics.iter().map(|d| d.code.as_str()).collect::<Vec<_>>()
    };
    let add = |i: usize| format!("  a{} = f32[] add(a{i}, a{i})\n", i + 1);
    let text: String = (0..1000).map(add).collect();
    let text = format!("HloModule m\nENTRY e {{\n  a0 = f32[] parameter(0)\n{text}}}\n");
    assert_eq!(codes_within(&text, 100_000), ["R0002"]);
    assert!(codes_within(&text, 10_000_000).is_empty());
    let elements = vec!["0"; 10_000].join(",");
    let text = format!("HloModule m\nENTRY e {{\n  ROOT c = f64[10000] constant({{{elements}}})\n}}\n");
    assert_eq!(codes_within(&text, 70_000), ["R0002"]);
    assert!(codes_within(&text, 90_000).is_empty());
    let one = "HloModule m\nENTRY e {\n  ROOT c = f64[10000] constant(1)\n}\n";
    assert_eq!(codes_within(one, 70_000), ["R0002"]);
}
