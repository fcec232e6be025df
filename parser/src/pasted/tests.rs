use super::*;

const PLAIN: &str = "HloModule m\n\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n\nENTRY e {\n  x = f32[2,4]{1,0} parameter(0), sharding={devices=[2,1]<=[2]}\n  z = f32[] constant(0)\n  ROOT r = f32[2]{0} reduce(x, z), dimensions={1}, to_apply=add, metadata={op_name=\"a<b\"}\n}\n";

fn parse(text: &str) -> Parsed {
    parse_pasted(text, &ParseOptions::default(), None)
}

fn rendered(parsed: &Parsed, text: &str) -> String {
    hlo::diag::render_all(&parsed.diagnostics, "m", text, false)
}

/// The text reads as the plain program, with a warning that says `what`; spans are locations in the text.
#[track_caller]
fn reads(text: &str, what: &str) {
    let parsed = parse(text);
    let Some(module) = &parsed.module else { panic!("{text}\n{}", rendered(&parsed, text)) };
    let plain = parse(PLAIN).module.unwrap();
    assert!(
        hlo::modules_equal(&plain, module).is_ok(),
        "{}",
        hlo::print::print_module(module, &hlo::print::PrintOptions::LONG)
    );
    let warning = parsed.diagnostics.iter().find(|d| d.code == codes::PASTED_TEXT);
    let message = warning.map(|d| d.message.clone()).unwrap_or_default();
    assert!(message.contains(what), "{message}");
    for c in module.computations() {
        for id in module.instructions(*c) {
            let instr = module.instr(id);
            let shown = &text[instr.span.range()];
            assert!(shown.contains(&*instr.name), "{}: {shown}", instr.name);
        }
    }
}

fn each_line(line: impl Fn(usize, &str) -> String) -> String {
    PLAIN.lines().enumerate().map(|(i, l)| line(i, l) + "\n").collect()
}

#[test]
fn plain_text_is_taken_as_it_is() {
    let parsed = parse(PLAIN);
    assert!(parsed.module.is_some() && parsed.diagnostics.is_empty());
    let odd = PLAIN.replace("a<b", "&lt; \u{201c}x\u{201d} # \u{a0}");
    let parsed = parse(&odd);
    assert!(parsed.diagnostics.is_empty());
    assert!(
        hlo::print::print_module(&parsed.module.unwrap(), &hlo::print::PrintOptions::LONG).contains("&lt;")
    );
}

#[test]
fn prefixes_of_logs_are_left_out() {
    let glog = each_line(|i, l| format!("I0000 00:00:1700000.{i} 1234 hlo_pass.cc:{}] {l}", 44 + i));
    reads(&glog, "without the prefix of 13 lines");
    let tensorflow =
        each_line(|i, l| format!("2024-01-01 12:00:0{}.1: I xla/service/foo.cc:12] {l}", i % 10));
    reads(&tensorflow, "without the prefix of 13 lines");
    reads(&each_line(|i, l| format!("(pid={i}) {l}")), "13 lines");
    reads(&each_line(|_, l| format!("(RayTrainWorker pid=123, ip=10.0.0.1) {l}")), "13 lines");
    reads(&each_line(|_, l| format!("[rank0]: {l}")), "13 lines");
    reads(&each_line(|i, l| format!("{:>6}\t{l}", i + 1)), "13 lines");
    reads(&each_line(|_, l| format!("worker-1  | {l}")), "13 lines");
    reads(&each_line(|_, l| format!("2024-01-01T00:00:00.0000000Z {l}")), "13 lines");
    reads(&each_line(|i, l| format!("2024-08-12T10:11:0{}.12345Z stdout F {l}", i % 10)), "13 lines");
    // Only the first line of a message has it, and other messages stand between.
    reads(&format!("2024-01-01 12:00:00.1: I xla/service/foo.cc:12] {PLAIN}"), "prefix of 1 line");
    let other = tensorflow.replacen(
        '\n',
        "\n2024-01-01 12:00:00.2: W tensorflow/core/bar.cc:9] Something else = 3\n",
        3,
    );
    reads(&other, "3 other messages of the log");
}

#[test]
fn markdown_is_left_out() {
    let issue = format!("### What fails\n\nThis program (x = 3) fails:\n\n```hlo\n{PLAIN}```\n\nThanks!\n");
    reads(&issue, "1 of 1 fenced block of Markdown");
    let quoted: String = issue.lines().map(|l| format!("> {l}\n")).collect();
    reads(&quoted, "1 of 1 fenced block");
    reads(&format!("```\npip install jax\n```\nand\n~~~\n{PLAIN}"), "1 of 2 fenced blocks");
    reads(&each_line(|_, l| format!("> {l}").trim_end().to_owned()), "prefix of 13 lines");
    reads(&format!("See below, please:\n\n{PLAIN}\nIt should say ok here.\n"), "1 line before and 1 after");
    reads(&PLAIN.replace("\n}\n\nENTRY", "\n}\n# the entry\nENTRY"), "without 1 comment");
}

#[test]
fn differences_are_read_on_their_newer_side() {
    reads(&each_line(|_, l| format!("+{l}")), "newer side");
    reads(&each_line(|_, l| format!("+ {l}")), "newer side");
    let changed = each_line(|i, l| match i {
        5 => format!("-  ROOT s = f32[] multiply(a, b)\n+{l}"),
        _ => format!(" {l}"),
    });
    reads(&format!("--- a/m.hlo\n+++ b/m.hlo\n@@ -1,13 +1,13 @@\n{changed}"), "newer side");
}

#[test]
fn characters_of_other_media_are_read() {
    let html = PLAIN.replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    reads(&html, "4 HTML entities decoded");
    reads(&PLAIN.replace('"', "&#34;"), "2 HTML entities");
    reads(&PLAIN.replacen('"', "\u{201c}", 1).replacen('"', "\u{201d}", 1), "2 typographic characters");
    reads(&PLAIN.replace("  ROOT", "\u{a0} ROOT"), "typographic");
    reads(&PLAIN.replace("ROOT", "\u{1b}[1;32mROOT\u{1b}[0m"), "4 terminal codes");
    reads(&format!("\u{feff}{}", PLAIN.replace('\n', "\r\n")), "typographic");
    reads(&format!("<pre><code>{PLAIN}</code></pre>\n"), "without 4 HTML tags");
    reads(&each_line(|_, l| format!("<span class=\"pl-s1\">{}</span>", l.replace('<', "&lt;"))), "HTML tags");
    reads(&format!("<p>{}</p>\n", each_line(|_, l| format!("{l}<br />"))), "HTML tags");
    let literals = each_line(|_, l| format!("    \"{}\\n\"", l.replace('"', "\\\"")));
    reads(&format!("const char* kModule =\n{literals};\n"), "13 string literals decoded");
    let test = format!("TEST(A, B) {{\n  auto hlo = R\"(\n{PLAIN})\";\n  auto m = Parse(hlo);\n}}\n");
    reads(&test, "2 lines before");
    reads(&each_line(|_, l| format!("E       {l}")), "prefix of 13 lines");
    reads(
        &format!("text = \"{}\"\n", PLAIN.replace('"', "\\\"").replace('\n', "\\n")),
        "escapes of a string",
    );
    reads(&format!("const char* const kModule = R\"(\n{PLAIN})\";\n"), "1 line before");
    reads(&format!("hlo = \"\"\"{PLAIN}\"\"\"\n"), "prefix of 1 line");
}

#[test]
fn errors_are_found_where_they_were_pasted() {
    let text = format!("Look at `this`:\n\n```hlo\n{}```\n", PLAIN.replace("add(a, b)", "add(a, c)"));
    let parsed = parse(&text);
    let error = parsed.diagnostics.iter().find(|d| d.code == codes::UNKNOWN_INSTRUCTION).unwrap();
    assert_eq!(&text[error.span.range()], "c");
    assert_eq!(hlo::LineIndex::new(&text).line_column(&text, error.span.start), (9, 25));
    let coded = PLAIN.replace("  ROOT s", "  \u{1b}[1mROOT\u{1b}[0m s").replace("add(a, b)", "add(a, c)");
    let parsed = parse(&coded);
    let error = parsed.diagnostics.iter().find(|d| d.code == codes::UNKNOWN_INSTRUCTION).unwrap();
    assert_eq!(&coded[error.span.range()], "c");
}

#[test]
fn mistakes_are_no_prose() {
    for broken in [
        PLAIN.replace("HloModule", "HloModul"),
        PLAIN.replace("ENTRY e {", "ENTRY e"),
        PLAIN.replace("add(a, b)", "add(a, b"),
        format!("{PLAIN}junk\n"),
    ] {
        let parsed = parse(&broken);
        assert!(parsed.module.is_none(), "{broken}");
        assert!(parsed.diagnostics.has_errors(), "{broken}");
    }
}

#[test]
fn one_of_several_modules_is_chosen() {
    let second = PLAIN.replace("HloModule m", "HloModule second, num_partitions=2");
    let text = format!(
        "[ScheduleSyncTensorsGraph]\n## BEGIN_GRAPH\n{PLAIN}\n## END_GRAPH\n\n[Graph]\nRoot Hashes: (1f)\n{second}"
    );
    let parsed = parse(&text);
    let error = parsed.diagnostics.iter().next().unwrap();
    assert_eq!((error.code, &*error.message), (codes::SEVERAL_MODULES, "the text holds 2 modules"));
    assert!(error.notes[0].contains("1 m, 2 second"), "{:?}", error.notes);
    assert_eq!(module_names(&text), ["m", "second"]);
    let pick = |pick: &str| parse_pasted(&text, &ParseOptions::default(), Some(&pick.parse().unwrap()));
    for (choice, name) in [("1", "m"), ("2", "second"), ("second", "second")] {
        let parsed = pick(choice);
        let module = parsed.module.as_ref().unwrap_or_else(|| panic!("{}", rendered(&parsed, &text)));
        assert_eq!(&*module.name, name);
        let entry = module.computation(module.entry()).span;
        assert_eq!(&text[entry.range()], "e");
    }
    for missing in ["0", "3", "third"] {
        let parsed = pick(missing);
        assert!(parsed.module.is_none());
        assert!(rendered(&parsed, &text).contains("they are: 1 m, 2 second"), "{}", rendered(&parsed, &text));
    }
}
