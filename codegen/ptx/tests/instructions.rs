//! Single instructions with expected values from elsewhere: `data/instructions.txt` (by hand),
//! `data/h100.txt` (recorded on a device).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use hlo_ptx::{Launch, Memory, Options, launch, lower};

/// Type and bits of `b32:7fffffff`.
fn value(s: &str) -> (&str, u64) {
    let (ty, bits) = s.split_once(':').unwrap();
    (ty, u64::from_str_radix(bits, 16).unwrap())
}

#[test]
fn instructions_give_the_expected_bits() {
    check(include_str!("data/instructions.txt"), "sm_100a", 170);
}

#[test]
fn instructions_give_the_bits_of_an_h100() {
    check(include_str!("data/h100.txt"), "sm_90", 600);
}

/// Executes each line, and compares. `pred:` values are 0 or 1.
fn check(data: &str, target: &str, least: usize) {
    let (mut count, mut wrong) = (0, Vec::new());
    for line in data.lines().filter(|l| !l.starts_with('#') && !l.is_empty()) {
        let parts: Vec<&str> = line.split('|').map(str::trim).collect();
        let [instruction, inputs, output] = parts.as_slice() else { panic!("{line}") };
        let (out_type, want) = value(output);
        let mut body = format!(".reg .{out_type} $d;\n");
        let (stored, stored_type) = match out_type {
            "pred" => ("%vs", "b32"),
            _ => ("%vd", out_type),
        };
        let mut text = instruction.to_string();
        for (name, v) in ["$a", "$b", "$c", "$e"].iter().zip(inputs.split_whitespace()) {
            let (ty, bits) = value(v);
            body += &match ty {
                "pred" => format!(".reg .pred {name};\nsetp.ne.u32 {name}, {bits}, 0;\n"),
                _ => format!(".reg .{ty} {name};\nmov.{ty} {name}, {bits:#x};\n"),
            };
        }
        text.push(';');
        if out_type == "pred" {
            text += " .reg .b32 $s; selp.b32 $s, 1, 0, $d;";
        }
        let name = |s: &str| s.replace('$', "%v");
        let text = format!(
            ".version 8.8\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 x) {{\n.reg .b64 %x;\nld.param.u64 %x, [x];\n{}{}\nst.global.{stored_type} [%x], {stored};\nret;\n}}\n",
            name(&body),
            name(&text)
        );
        let module = lower::module(&text).unwrap_or_else(|d| panic!("{line}\n{}", d[0]));
        let mut memory = Memory::default();
        let loaded = memory.load(module).unwrap();
        let x = memory.allocate("x", 8).unwrap();
        let o = launch(
            &loaded,
            "k",
            &Launch::new([1, 1, 1], [1, 1, 1], 0, &[x]),
            &mut memory,
            &Options::default(),
        );
        let o = o.unwrap_or_else(|f| panic!("{line}\n{f}"));
        assert!(o.reports.is_empty(), "{line}\n{}", o.reports[0]);
        let width = stored_type[1..].parse::<u64>().unwrap() / 8;
        let got = memory.read(x, width).unwrap().iter().rev().fold(0, |v, &b| v << 8 | u64::from(b));
        if got != want {
            wrong.push(format!("{line}: {got:x}"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > least, "{count}");
}
