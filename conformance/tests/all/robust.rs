//! Hostile programs, made here because they are large: each ends quickly, in an error or a verified program.

use libtest_mimic::Trial;

use crate::crashers::survive;
use crate::failed;

fn entry(body: &str) -> String {
    format!("HloModule m\n\nENTRY e {{\n{body}\n}}\n")
}

/// Names and texts.
fn programs() -> Vec<(&'static str, String)> {
    let deep = 10_000;
    let mut chain = String::from("  a0 = f32[] parameter(0)\n");
    for i in 1..50_000 {
        chain.push_str(&format!("  a{i} = f32[] add(a{}, a{})\n", i - 1, i - 1));
    }
    chain.push_str("  ROOT r = f32[] negate(a49999)");
    let nested_calls: String = (0..2_000)
        .map(|i| {
            let body = if i == 0 { "negate(p)".into() } else { format!("call(p), to_apply=c{}", i - 1) };
            format!("c{i} {{\n  p = f32[] parameter(0)\n  ROOT r = f32[] {body}\n}}\n\n")
        })
        .collect();
    let doubling: String = (0..64)
        .map(|i| {
            let body = if i == 0 {
                "  ROOT r = f32[] add(p, p)".into()
            } else {
                let c = i - 1;
                format!("  a = f32[] call(p), to_apply=d{c}\n  ROOT r = f32[] call(a), to_apply=d{c}")
            };
            format!("d{i} {{\n  p = f32[] parameter(0)\n{body}\n}}\n\n")
        })
        .collect();
    vec![
        ("empty", String::new()),
        ("only a header", "HloModule m\n".into()),
        ("nul bytes", "\0\0\0\0".into()),
        ("deep tuple shape", entry(&format!("  ROOT p = {}f32[]{} parameter(0)", "(".repeat(deep), ")".repeat(deep)))),
        ("deep parentheses", entry(&format!("  ROOT p = f32[] negate{}{}", "(".repeat(deep), ")".repeat(deep)))),
        ("deep literal braces", entry(&format!("  ROOT p = f32[1] constant({}{})", "{".repeat(deep), "}".repeat(deep)))),
        ("deep attribute braces", entry(&format!("  ROOT p = f32[] parameter(0), frontend_attributes={}{}", "{".repeat(deep), "}".repeat(deep)))),
        ("deep operands", entry(&format!("  ROOT p = f32[] {}f32[] constant(1){}", "negate(f32[] ".repeat(deep), ")".repeat(deep)))),
        ("largest dimension", entry("  ROOT p = f32[9223372036854775807] parameter(0)")),
        ("overflowing product", entry("  ROOT p = f32[4611686018427387904,4611686018427387904,4] parameter(0)")),
        ("dimension beyond 64 bits", entry("  ROOT p = f32[99999999999999999999999] parameter(0)")),
        ("negative dimension", entry("  ROOT p = f32[-1] parameter(0)")),
        ("petabyte broadcast", entry("  c = f32[] constant(1)\n  ROOT b = f32[1073741824,1048576] broadcast(c), dimensions={}")),
        ("petabyte iota", entry("  ROOT b = s64[1099511627776] iota(), iota_dimension=0")),
        ("rank 1000", entry(&format!("  ROOT p = f32[{}] parameter(0)", vec!["1"; 1000].join(",")))),
        ("huge padding", entry("  p = f32[1] parameter(0)\n  c = f32[] constant(0)\n  ROOT r = f32[9223372036854775807] pad(p, c), padding=9223372036854775806_0")),
        ("huge window", entry("  p = f32[4] parameter(0)\n  c = f32[] constant(0)\n  ROOT r = f32[1] reduce-window(p, c), window={size=9223372036854775807 pad=4611686018427387904_4611686018427387904}, to_apply=e")),
        ("huge channel and device numbers", entry("  p = f32[4] parameter(0)\n  ROOT r = f32[4] all-reduce(p), replica_groups=[9223372036854775807,9223372036854775807]<=[9223372036854775807], channel_id=9223372036854775807, to_apply=e")),
        ("parameter number", entry("  ROOT p = f32[] parameter(9223372036854775807)")),
        ("parameter number, large", entry("  ROOT p = f32[] parameter(1000000000)")),
        ("self call", entry("  p = f32[] parameter(0)\n  ROOT r = f32[] call(p), to_apply=e")),
        ("own operand", entry("  ROOT r = f32[] negate(r)")),
        ("missing computation", entry("  p = f32[] parameter(0)\n  ROOT r = f32[] call(p), to_apply=nowhere")),
        ("long chain", entry(&chain)),
        ("calls 2000 deep", format!("HloModule m\n\n{nested_calls}ENTRY e {{\n  p = f32[] parameter(0)\n  ROOT r = f32[] call(p), to_apply=c1999\n}}\n")),
        ("calls that double 64 times", format!("HloModule m\n\n{doubling}ENTRY e {{\n  p = f32[] parameter(0)\n  ROOT r = f32[] call(p), to_apply=d63\n}}\n")),
        ("endless loop", "HloModule m\n\nc {\n  p = f32[] parameter(0)\n  ROOT t = pred[] constant(true)\n}\n\nb {\n  ROOT p = f32[] parameter(0)\n}\n\nENTRY e {\n  p = f32[] parameter(0)\n  ROOT w = f32[] while(p), condition=c, body=b\n}\n".into()),
        ("duplicate names", entry("  p = f32[] parameter(0)\n  p = f32[] parameter(1)\n  ROOT r = f32[] add(p, p)")),
        ("unterminated string", entry("  ROOT p = f32[] parameter(0), metadata={op_name=\"abc")),
        ("unterminated comment", "HloModule m /* abc".into()),
        ("no root", "HloModule m\n\nENTRY e {\n}\n".into()),
        ("two entries", "HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n\nENTRY f {\n  ROOT p = f32[] parameter(0)\n}\n".into()),
        ("a million digits", entry(&format!("  ROOT p = f32[] constant({})", "9".repeat(1_000_000)))),
        ("a million elements, wrong number", entry(&format!("  ROOT p = s8[3] constant({{{}}})", vec!["1"; 1_000_000].join(",")))),
    ]
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> = programs()
        .into_iter()
        .map(|(name, text)| Trial::test(format!("robust/{name}"), move || survive(&text).map_err(failed)))
        .collect();
    trials.push(Trial::test("robust/truncated anywhere", || {
        let text = "HloModule m, entry_computation_layout={(f32[2]{0})->f32[2]{0}}\n\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n\nENTRY e {\n  p = f32[2]{0} parameter(0), metadata={op_name=\"x\" source_line=3}\n  z = f32[] constant(-0)\n  r = f32[] reduce(p, z), dimensions={0}, to_apply=add\n  ROOT o = f32[2]{0} broadcast(r), dimensions={}\n}\n";
        (0..text.len()).try_for_each(|n| survive(&text[..n]).map_err(|e| failed(format!("cut at {n}: {e}"))))
    }));
    trials
}
