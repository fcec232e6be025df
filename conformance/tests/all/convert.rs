//! Programs in XLA's protocol buffers, as people convert and use them.

use std::fs;

use hlo::ArrayLiteral;
use hlo_system::npz;
use libtest_mimic::Trial;

use crate::cli::{Dir, ends, err, hlo, out};
use crate::function;

const ADD: &str = "HloModule add, entry_computation_layout={(f32[2]{0}, f32[2]{0})->f32[2]{0}}\n\nENTRY %e (a: f32[2], b: f32[2]) -> f32[2] {\n  %a = f32[2]{0} parameter(0)\n  %b = f32[2]{0} parameter(1)\n  ROOT %s = f32[2]{0} add(%a, %b)\n}\n\n";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        function("convert/every format and back", every_format),
        function("convert/commands take every format", commands),
        function("convert/snapshots bring their arguments and result", snapshots),
        function("convert/nothing is written of what cannot be", nothing_half_written),
        function("convert/bad messages", bad_messages),
        function("convert/names and flags that say no format", usage),
    ]
}

fn every_format() {
    let d = Dir::new();
    let text = d.file("add.hlo", ADD);
    let mut last = text.clone();
    for (i, suffix) in [
        "pb",
        "pbtxt",
        "hlo.pb",
        "hlo.pbtxt",
        "snapshot.pb",
        "snapshot.pbtxt",
        "unoptimized_snapshot.pb",
        "unoptimized_snapshot.pbtxt",
        "pb",
        "hlo",
    ]
    .into_iter()
    .enumerate()
    {
        let next = d.path(&format!("add{i}.{suffix}")).to_str().unwrap().to_owned();
        let o = hlo(&["convert", &last, "-o", &next]);
        ends(&o, 0);
        assert_eq!((out(&o), err(&o)), (String::new(), String::new()), "{suffix}");
        last = next;
    }
    assert_eq!(fs::read_to_string(&last).unwrap(), ADD);
    // The first and the last binary one, with all others between.
    assert_eq!(fs::read(d.path("add0.pb")).unwrap(), fs::read(d.path("add8.pb")).unwrap());
    // To standard output, and from another style of text.
    let short = d.file("short.hlo", "HloModule m\n\nENTRY e {\n  ROOT x = f32[2] parameter(0)\n}\n");
    let pb = d.path("short.pb").to_str().unwrap().to_owned();
    ends(&hlo(&["convert", &short, "-o", &pb]), 0);
    let o = hlo(&["convert", &pb]);
    ends(&o, 0);
    assert_eq!(out(&o), fs::read_to_string(&short).unwrap());
    let o = hlo(&["convert", &pb, "--to", "pbtxt"]);
    assert!(
        out(&o).starts_with("name: \"m\"\nentry_computation_name: \"e\"\ncomputations {\n"),
        "{}",
        out(&o)
    );
}

fn commands() {
    let d = Dir::new();
    let text = d.file("add.hlo", ADD);
    // Told by content, whatever the name.
    for (name, to) in [
        ("a.bin", "pb"),
        ("b.txt", "pbtxt"),
        ("c", "hlo-pb"),
        ("d.pb", "snapshot-pbtxt"),
        ("e.hlo", "unoptimized-snapshot-pb"),
    ] {
        let file = d.path(name).to_str().unwrap().to_owned();
        ends(&hlo(&["convert", &text, "--to", to, "-o", &file]), 0);
        let o = hlo(&["verify", &file]);
        ends(&o, 0);
        assert_eq!(out(&o), format!("{file}: ok, 3 instructions\n"));
        let o = hlo(&["print", &file]);
        assert_eq!(out(&o), ADD);
        let o = hlo(&["run", &file, "--platform", "interpreter", "-q"]);
        ends(&o, 0);
        ends(&hlo(&["opt", &file, "-o", d.path("opt.hlo").to_str().unwrap()]), 0);
        ends(&hlo(&["bench", &file, "--engine", "interpreter", "--min-time", "0"]), 0);
        ends(&hlo(&["print", "--check-roundtrip", &file]), 2);
        ends(&hlo(&["verify", "--module", "1", &file]), 2);
    }
    let o = hlo(&["run", d.path("").to_str().unwrap(), "--platform", "interpreter"]);
    ends(&o, 0);
    assert!(out(&o).contains("7 programs, 0 failed"), "{}", out(&o));
}

fn array(values: &[f32]) -> ArrayLiteral {
    ArrayLiteral::new([values.len() as i64].as_slice().into(), hlo::Buffer::F32(values.to_vec())).unwrap()
}

fn snapshots() {
    let d = Dir::new();
    let text = d.file("add.hlo", ADD);
    let inputs = d.path("in.npz");
    let (a, b) = (array(&[1.0, 2.0]), array(&[0.5, f32::NAN]));
    npz::write(&inputs, &[("arg0".into(), &a), ("arg1".into(), &b)]).unwrap();
    let inputs = inputs.to_str().unwrap();
    let snapshot = d.path("run.snapshot.pb").to_str().unwrap().to_owned();
    ends(&hlo(&["convert", &text, "--inputs", inputs, "--with-result", "-o", &snapshot]), 0);
    let o = hlo(&["run", &snapshot, "--platform", "interpreter", "-v"]);
    ends(&o, 0);
    let said = out(&o);
    for line in ["inputs   those of the snapshot", "against the snapshot's result: 2 elements", "[1.5, nan]"]
    {
        assert!(said.contains(line), "{line}: {said}");
    }
    // Its arguments and result survive the text format, and a folder of programs uses them.
    let words = d.file("folder/x", "");
    ends(&hlo(&["convert", &snapshot, "--to", "snapshot-pbtxt", "-o", &words]), 0);
    let o = hlo(&["run", d.path("folder").to_str().unwrap(), "--platform", "interpreter"]);
    ends(&o, 0);
    assert!(out(&o).contains("recorded results: same bits"), "{}", out(&o));
    // A result that is not the program's is a mismatch.
    let wrong = fs::read_to_string(&words).unwrap().replace("f32s: 1.5", "f32s: 1.75");
    let wrong = d.file("wrong.pbtxt", wrong);
    ends(&hlo(&["run", &wrong, "--platform", "interpreter"]), 1);
    // Other inputs: the recorded result says nothing of them.
    ends(&hlo(&["run", &wrong, "--platform", "interpreter", "--inputs", inputs]), 0);
    // Arguments of another program.
    let misfit = fs::read_to_string(&words).unwrap().replacen(
        "arguments {",
        "execution_platform: \"x\"\narguments {",
        1,
    );
    let start = misfit.find("execution_platform").unwrap();
    let end = misfit[start + 30..].find("\narguments {").unwrap() + start + 30;
    let misfit = d.file("misfit.pbtxt", format!("{}{}", &misfit[..start], &misfit[end..]));
    let o = hlo(&["run", &misfit]);
    ends(&o, 2);
    assert!(
        err(&o).contains(
            "the snapshot's arguments (f32[2]) do not fit the program's parameters (f32[2], f32[2])"
        ),
        "{}",
        err(&o)
    );
    // To a kind without space for them.
    let o = hlo(&["convert", &snapshot, "--to", "pb", "-o", d.path("plain.pb").to_str().unwrap()]);
    ends(&o, 0);
    assert!(err(&o).contains("left out, because the other kind of message has no field for it: result, execution_platform, the arguments"), "{}", err(&o));
}

fn nothing_half_written() {
    let d = Dir::new();
    let text = d.file(
        "root.hlo",
        "HloModule m, num_partitions=2\n\nENTRY e {\n  p = f32[2]{0} parameter(0)\n  r = s32[1]{0} parameter(1)\n  ROOT c = f32[2]{0} collective-broadcast(p, r), replica_groups={{0,1}}, channel_id=1, has_dynamic_root=true\n}\n",
    );
    let there = d.file("out.pb", "before");
    let o = hlo(&["convert", &text, "-o", &there]);
    ends(&o, 5);
    assert!(
        err(&o).contains(
            "error[U0005]: c: there is no field for a root that is chosen at run time, in `has_dynamic_root`"
        ),
        "{}",
        err(&o)
    );
    assert!(err(&o).contains("root.hlo:6:"), "{}", err(&o));
    assert_eq!(fs::read(&there).unwrap(), b"before");
    let wrong = d.file("wrong.hlo", ADD.replace("b = f32[2]{0}", "b = f32[3]{0}"));
    ends(&hlo(&["convert", &wrong, "-o", &there]), 4);
    assert_eq!(fs::read(&there).unwrap(), b"before");
    let names: Vec<_> = fs::read_dir(d.path("")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    // At one's own risk.
    ends(&hlo(&["convert", &wrong, "--no-verify", "-o", &there]), 4);
    let o = hlo(&["verify", &there]);
    ends(&o, 4);
    // Places are in the program as text.
    assert!(err(&o).contains("out.pb:6:"), "{}", err(&o));
}

fn bad_messages() {
    let d = Dir::new();
    let text = d.file("add.hlo", ADD);
    let pb = d.path("add.pb").to_str().unwrap().to_owned();
    ends(&hlo(&["convert", &text, "-o", &pb]), 0);
    let whole = fs::read(&pb).unwrap();
    let cut = d.file("cut.pb", &whole[..whole.len() / 2]);
    let to = d.path("to.pbtxt").to_str().unwrap().to_owned();
    for args in [&["verify", &cut][..], &["run", &cut], &["convert", &cut, "-o", &to]] {
        let o = hlo(args);
        ends(&o, 3);
        assert!(err(&o).contains("error[P0901]: computations[0]: a length of "), "{}", err(&o));
    }
    assert!(!d.path("to.pbtxt").exists());
    let o = hlo(&["convert", &pb, "--to", "pbtxt"]);
    let bad = d.file("bad.pbtxt", out(&o).replace("opcode: \"add\"", "opcodes: \"add\""));
    let o = hlo(&["verify", &bad]);
    ends(&o, 3);
    assert!(
        err(&o).contains("error[P0902]: HloInstructionProto has no field \"opcodes\"")
            && err(&o).contains("did you mean opcode?"),
        "{}",
        err(&o)
    );
    let o = hlo(&["convert", &pb, "--to", "pbtxt"]);
    let bad = d.file("id.pbtxt", out(&o).replace("operand_ids: 1", "operand_ids: 9"));
    let o = hlo(&["verify", "--json", &bad]);
    ends(&o, 3);
    assert!(
        out(&o).contains(
            "computations[0].instructions[2].operand_ids: there is no instruction 9 before this one"
        ),
        "{}",
        out(&o)
    );
}

fn usage() {
    let d = Dir::new();
    let text = d.file("add.hlo", ADD);
    let o = hlo(&["convert", &text, "-o", d.path("add.xyz").to_str().unwrap()]);
    ends(&o, 2);
    assert!(err(&o).contains("the name says no format; say one with --to"), "{}", err(&o));
    let o = hlo(&["convert", &text, "--with-result", "-o", d.path("add.pb").to_str().unwrap()]);
    ends(&o, 2);
    let o = hlo(&["convert", &text, "--with-result", "-o", d.path("add.snapshot.pb").to_str().unwrap()]);
    ends(&o, 2);
    assert!(err(&o).contains("--with-result needs arguments"), "{}", err(&o));
    assert!(!d.path("add.snapshot.pb").exists());
}
