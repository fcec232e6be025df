//! Folders of programs as compilers dump them, and the number of devices that programs name.

use libtest_mimic::Trial;

use crate::cli::{Dir, ends, err, hlo, json_lines, out};
use crate::function;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        function("folders/a dump of several modules", dump),
        function("folders/a form that computes something else", wrong_form),
        function("folders/what is bad says where", bad_programs),
        function("folders/inputs beside a program", inputs_beside),
        function("folders/several modules in one file", several_in_a_file),
        function("folders/without a program", none),
        function("folders/machines", json),
        function("devices/inferred", devices_inferred),
        function("devices/missing ones name the option", devices_missing),
        function("records/are compared on the compiled engine", records),
    ]
}

/// A program before optimizations and after, under XLA's names: `opcode` of the form after.
fn module(d: &Dir, folder: &str, number: u32, opcode: &str) {
    let before = format!(
        "HloModule jit_f{number}, entry_computation_layout={{(f32[4]{{0}})->f32[4]{{0}}}}\n\nENTRY main.3 {{\n  Arg_0.1 = f32[4]{{0}} parameter(0)\n  ROOT add.2 = f32[4]{{0}} add(Arg_0.1, Arg_0.1)\n}}\n"
    );
    let after = before.replace("add(Arg_0.1, Arg_0.1)", &format!("{opcode}(Arg_0.1, Arg_0.1)"));
    let name = |what: &str| format!("{folder}/module_{number:04}.jit_f{number}.{what}");
    d.file(&name("before_optimizations.txt"), &before);
    d.file(&name("0000.pipeline.after_pipeline-start.before_dce.txt"), &before);
    d.file(&name("cpu_after_optimizations.txt"), after);
    d.file(
        &name("cpu_after_optimizations-buffer-assignment.txt"),
        "BufferAssignment:\nallocation 0: size 16\n",
    );
    d.file(&name("thunk_sequence.txt"), "000: kKernel add.2\n");
    d.file(&name("ir-with-opt.ll"), "; ModuleID = 'jit_f'\nsource_filename = \"jit_f\"\n");
    d.file(&name("debug_options"), "xla_cpu_use_fusion_emitters: true\n");
}

fn text_of(folder: &Dir, name: &str) -> String {
    folder.path(name).to_string_lossy().into_owned()
}

fn dump() {
    let d = Dir::new();
    module(&d, "dump", 0, "add");
    module(&d, "dump/sub", 12, "add");
    d.file("dump/jit_f.jaxpr", "{ lambda ; a:f32[]. let  in (a,) }\n");
    d.file("dump/notes.txt", "remember the milk\n");
    let dir = text_of(&d, "dump");
    let o = hlo(&["verify", &dir]);
    ends(&o, 0);
    let lines: Vec<String> = out(&o).lines().map(str::to_owned).collect();
    assert_eq!(lines[0], format!("{dir}/module_0000.jit_f0: ok, 2 instructions, 3 forms"), "{}", out(&o));
    assert_eq!(
        lines[1],
        format!("{dir}/sub/module_0012.jit_f12: ok, 2 instructions, 3 forms"),
        "{}",
        out(&o)
    );
    assert!(lines[2].starts_with("10 files are no programs: "), "{}", lines[2]);
    for what in [
        "2 buffer assignment",
        "2 LLVM IR",
        "2 thunk sequence",
        "2 options",
        "1 jaxpr (not read yet)",
        "1 not recognized (notes.txt)",
    ] {
        assert!(lines[2].contains(what), "{what}: {}", lines[2]);
    }
    for command in ["run", "test"] {
        let o = hlo(&[command, &dir]);
        ends(&o, 0);
        assert!(out(&o).contains("10 files are no programs: "), "{}", out(&o));
    }
    let o = hlo(&["run", &dir]);
    let line = out(&o).lines().next().unwrap_or_default().to_owned();
    assert!(line.starts_with(&format!("{dir}/module_0000.jit_f0: 2 instructions, ok")), "{line}");
    assert!(line.contains("after optimizations: same bits"), "{line}");
    assert!(out(&o).ends_with("2 programs, 0 failed\n"), "{}", out(&o));
}

fn wrong_form() {
    let d = Dir::new();
    module(&d, "dump", 0, "add");
    module(&d, "dump", 1, "multiply");
    let dir = text_of(&d, "dump");
    ends(&hlo(&["verify", &dir]), 0);
    for command in ["run", "test"] {
        let o = hlo(&[command, &dir]);
        ends(&o, 1);
        assert!(out(&o).contains("module_0001.jit_f1"), "{}", out(&o));
        assert!(out(&o).contains("after optimizations: wrong result: "), "{}", out(&o));
        assert!(out(&o).contains("1 failed"), "{}", out(&o));
    }
}

fn bad_programs() {
    let d = Dir::new();
    let good = "HloModule m\n\nENTRY e {\n  ROOT a = f32[2] parameter(0)\n}\n";
    d.file("dir/a.hlo", good);
    d.file("dir/b.hlo", good.replace("}\n", ""));
    d.file(
        "dir/c.hlo",
        good.replace("ROOT a = f32[2] parameter(0)", "a = f32[2] parameter(0)\n  ROOT n = f32[3] negate(a)"),
    );
    let dir = text_of(&d, "dir");
    let o = hlo(&["verify", &dir]);
    ends(&o, 3);
    let text = out(&o);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("{dir}/a.hlo: ok, 1 instruction"));
    assert_eq!(lines[1], format!("{dir}/b.hlo: cannot be parsed"));
    assert_eq!(lines[2], format!("{dir}/c.hlo: does not verify"));
    assert!(err(&o).contains("b.hlo:") && err(&o).contains("c.hlo:"), "{}", err(&o));
    let o = hlo(&["run", &dir]);
    ends(&o, 3);
    assert!(out(&o).contains("3 programs, 2 failed"), "{}", out(&o));
    // A program with inputs of one's own takes one program.
    ends(&hlo(&["run", &dir, "--inputs", "x.npz"]), 2);
}

fn inputs_beside() {
    let d = Dir::new();
    let one = "HloModule m\n\nENTRY e {\n  a = f32[2] parameter(0)\n  ROOT n = f32[2] negate(a)\n}\n";
    let file = d.file("one.hlo", one);
    let (inputs, results) = (text_of(&d, "p/inputs.npz"), text_of(&d, "p/expected.npz"));
    d.file("p/program.hlo", one);
    ends(&hlo(&["run", &file, "--seed", "5", "--save-inputs", &inputs, "--output", &results]), 0);
    let dir = text_of(&d, "p");
    let o = hlo(&["run", &dir]);
    ends(&o, 0);
    assert!(out(&o).contains("recorded results: same bits"), "{}", out(&o));
    // The results are those of another program.
    d.file("p/program.hlo", one.replace("negate", "exponential"));
    ends(&hlo(&["run", &dir]), 1);
    // The inputs do not fit the only program.
    d.file("p/program.hlo", one.replace("f32[2]", "f32[3]"));
    ends(&hlo(&["run", &dir]), 2);
}

fn several_in_a_file() {
    let d = Dir::new();
    let one = |name: &str| {
        format!(
            "## BEGIN_GRAPH\nHloModule {name}\n\nENTRY e {{\n  ROOT a = f32[2] parameter(0)\n}}\n## END_GRAPH\n\n"
        )
    };
    d.file("dir/graphs.txt", format!("[Sync]\n{}{}", one("first"), one("second")));
    let dir = text_of(&d, "dir");
    for command in ["verify", "run"] {
        let o = hlo(&[command, &dir]);
        ends(&o, 0);
        assert!(out(&o).contains("graphs.txt#1 first: "), "{}", out(&o));
        assert!(out(&o).contains("graphs.txt#2 second: "), "{}", out(&o));
    }
}

fn none() {
    let d = Dir::new();
    d.file("empty/readme.txt", "nothing here\n");
    d.file("other/a.jaxpr", "{ lambda ; a:f32[]. let  in (a,) }\n");
    for command in ["verify", "run", "test"] {
        let o = hlo(&[command, &text_of(&d, "empty")]);
        ends(&o, 2);
        assert!(err(&o).contains("no program in"), "{}", err(&o));
        let o = hlo(&[command, &text_of(&d, "other")]);
        ends(&o, 5);
        assert!(err(&o).contains("1 jaxpr (not read yet)"), "{}", err(&o));
    }
}

fn json() {
    let d = Dir::new();
    module(&d, "dump", 0, "multiply");
    d.file("dump/a.jaxpr", "{ lambda ; a:f32[]. let  in (a,) }\n");
    let dir = text_of(&d, "dump");
    let o = hlo(&["verify", "--json", &dir]);
    ends(&o, 0);
    let lines = json_lines(&o);
    assert_eq!((lines[0]["ok"].as_bool(), lines[0]["instructions"].as_u64()), (Some(true), Some(2)));
    assert_eq!(lines[0]["forms"].as_array().map(Vec::len), Some(3));
    let unread = lines.iter().find(|l| l["what"] == "jaxpr").unwrap();
    assert_eq!(unread["read"].as_bool(), Some(false));
    let o = hlo(&["run", "--json", &dir]);
    ends(&o, 1);
    let lines = json_lines(&o);
    assert_eq!((lines[0]["ok"].as_bool(), lines[0]["exit"].as_u64()), (Some(false), Some(1)));
    assert!(lines[0]["reason"].as_str().is_some_and(|r| r.contains("wrong result")), "{}", lines[0]);
}

const SUM: &str = "HloModule m\n\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT r = f32[2] all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=add\n}\n";

fn devices_inferred() {
    let d = Dir::new();
    let file = d.file("sum.hlo", SUM);
    let o = hlo(&["run", &file]);
    ends(&o, 0);
    assert!(out(&o).contains("devices  4 replicas (inferred from the replica groups of %r)"), "{}", out(&o));
    let o = hlo(&["run", "--json", &file]);
    let devices = &json_lines(&o)[0]["devices"];
    assert_eq!((devices["replicas"].as_u64(), devices["partitions"].as_u64()), (Some(4), Some(1)));
    assert_eq!(devices["inferred"].as_str(), Some("inferred from the replica groups of %r"));
    let o = hlo(&[
        "run",
        "--replicas",
        "8",
        "--partitions",
        "1",
        &d.file("id.hlo", "HloModule m\n\nENTRY e {\n  ROOT r = u32[] replica-id()\n}\n"),
    ]);
    ends(&o, 0);
    assert!(!out(&o).contains("inferred"), "{}", out(&o));
    let sharded = "HloModule m\n\nENTRY e {\n  x = f32[2] parameter(0), sharding={devices=[2]<=[2]}\n  ROOT n = f32[2] negate(x)\n}\n";
    let file = d.file("sharded.hlo", sharded);
    let o = hlo(&["run", &file]);
    ends(&o, 0);
    assert!(out(&o).contains("devices  2 partitions (inferred from the sharding of %x)"), "{}", out(&o));
    let o = hlo(&["isolate", &file, "--platform", "interpreter:tree"]);
    assert!(out(&o).contains("2 partitions (inferred"), "{}{}", out(&o), err(&o));
    let o = hlo(&["run", "--partitions", "1", &file]);
    ends(&o, 0);
    assert!(!out(&o).contains("inferred"), "{}", out(&o));
    // What bisects and reduces takes the same devices, and keeps them when the collective that names them
    // goes.
    let sum = d.file("sum.hlo", SUM);
    let o = hlo(&["bisect", &sum]);
    ends(&o, 0);
    assert!(out(&o).contains("4 replicas (inferred"), "{}", out(&o));
    let smaller = text_of(&d, "smaller");
    let engines = "interpreter,faulty:all-reduce-groups-ignored";
    let o = hlo(&["reduce", &sum, "--engines", engines, "--out", &smaller, "--max-candidates", "50"]);
    ends(&o, 0);
    assert!(out(&o).contains("replica_count=4"), "{}", out(&o));
}

fn devices_missing() {
    let d = Dir::new();
    let file = d.file("sum.hlo", SUM);
    let o = hlo(&["run", "--replicas", "2", &file]);
    ends(&o, 2);
    assert!(err(&o).contains("there is no replica 3") && err(&o).contains("`--replicas 4`"), "{}", err(&o));
    let permute = "HloModule m, num_partitions=1\n\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT r = f32[2] collective-permute(x), channel_id=1, source_target_pairs={{0,1}}\n}\n";
    let o = hlo(&["run", &d.file("permute.hlo", permute)]);
    ends(&o, 2);
    assert!(err(&o).contains("`--partitions 2`"), "{}", err(&o));
    ends(&hlo(&["run", "--partitions", "2", &d.file("permute.hlo", permute)]), 0);
}

fn records() {
    let d = Dir::new();
    let tanh = "HloModule m\n\nENTRY e {\n  x = f32[64] parameter(0)\n  ROOT r = f32[64] tanh(x)\n}\n";
    let file = d.file("tanh.hlo", tanh);
    let (inputs, results) = (text_of(&d, "in.npz"), text_of(&d, "out.npz"));
    let made = ["run", &file, "--platform", "interpreter", "--save-inputs", &inputs, "--output", &results];
    ends(&hlo(&made), 0);
    let o = hlo(&["run", &file, "--inputs", &inputs, "--expected", &results]);
    ends(&o, 0);
    if cfg!(feature = "llvm") {
        assert!(out(&o).contains("compile  cpu"), "{}", out(&o));
        assert!(out(&o).contains("the interpreter gives what is recorded; against it: "), "{}", out(&o));
    }
    assert!(out(&o).ends_with("ok\n"), "{}", out(&o));
    // A wrong record is told.
    let other = d.file("other.hlo", tanh.replace("tanh", "sine"));
    ends(&hlo(&["run", &other, "--inputs", &inputs, "--expected", &results]), 1);
}
