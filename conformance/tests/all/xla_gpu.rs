//! XLA's GPU compiler as an engine: a dump written by hand, right, wrong in one instruction, and damaged; and
//! XLA's own dumps, where `../shared` has them.

use std::fs;
use std::path::PathBuf;

use hlo_engines::engine::xla_gpu::XlaGpuEngine;
use hlo_engines::engine::{InterpreterEngine, by_name};
use hlo_engines::frontend;
use hlo_execution::verdict::Class;
use hlo_system::npz::Npz;
use hlo_triage::differential::{Kind, Settings, Subject, differ};
use hlo_triage::replay::replay;
use libtest_mimic::{Failed, Trial};

use crate::cli::{Dir, ends, err, hlo, out};
use crate::function;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        function("xla-gpu/a folder is run and judged", whole),
        function("xla-gpu/a kernel is judged alone", alone),
        function("xla-gpu/what the checker finds names instruction, kernel and line", faults),
        function("xla-gpu/dumps that are damaged", damaged),
        function("xla-gpu/loops run their kernels again and again", loops),
        function("xla-gpu/without what it needs it is refused", refused),
        function("xla-gpu/one compiler serves many programs", served),
        function("ptx/mutants of XLA's kernels are found", mutants),
        function("ptx/run, check and print", ptx),
    ];
    trials.extend(corpus());
    trials
}

/// The program: `(x + 1) * 2` of 100 elements.
const SOURCE: &str = "\
HloModule m, entry_computation_layout={(f32[100]{0})->f32[100]{0}}

ENTRY main {
  x = f32[100]{0} parameter(0)
  one = f32[] constant(1)
  ones = f32[100]{0} broadcast(one), dimensions={}
  a = f32[100]{0} add(x, ones)
  ROOT r = f32[100]{0} add(a, a)
}
";

/// What XLA might make of it: two kernels.
const OPTIMIZED: &str = "\
HloModule m, is_scheduled=true, entry_computation_layout={(f32[100]{0})->f32[100]{0}}

%fused_add (p: f32[100]) -> f32[100] {
  %p = f32[100]{0} parameter(0)
  %one = f32[] constant(1)
  %ones = f32[100]{0} broadcast(%one), dimensions={}
  ROOT %s = f32[100]{0} add(%p, %ones)
}

%fused_double (q: f32[100]) -> f32[100] {
  %q = f32[100]{0} parameter(0)
  ROOT %t = f32[100]{0} add(%q, %q)
}

ENTRY %main (x: f32[100]) -> f32[100] {
  %x = f32[100]{0} parameter(0)
  %loop_add_fusion = f32[100]{0} fusion(%x), kind=kLoop, calls=%fused_add
  ROOT %loop_add_fusion.1 = f32[100]{0} fusion(%loop_add_fusion), kind=kLoop, calls=%fused_double
}
";

/// The second kernel works in place.
const ASSIGNMENT: &str = "\
BufferAssignment:
allocation 0: size 400, page 0, output shape is |f32[100]|, maybe-live-out:
 value: <1 loop_add_fusion @0> (size=400,offset=0): f32[100]{0}
 value: <2 loop_add_fusion.1 @0> (size=400,offset=0): f32[100]{0}
allocation 1: size 400, page 0, parameter 0, shape |f32[100]| at ShapeIndex {}:
 value: <0 x @0> (size=400,offset=0): f32[100]{0}
";

const THUNKS: &str = "\
001: kCustomKernel [source       | next=002 (1)] loop_add_fusion grid: [4, 1, 1] threads: [32, 1, 1]  shared_memory: 0 bytes
002: kCustomKernel [prev=001 (1) | sink        ] loop_add_fusion_1 grid: [4, 1, 1] threads: [32, 1, 1]  shared_memory: 0 bytes
";

/// A kernel that gives each of 100 elements to a thread.
fn kernel(name: &str, compute: &str) -> String {
    format!(
        "\
.version 8.0
.target sm_90a
.address_size 64

.visible .entry {name}(
    .param .u64 {name}_param_0,
    .param .u64 {name}_param_1
)
.reqntid 32, 1, 1
{{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    ld.param.b64 %rd1, [{name}_param_0];
    ld.param.b64 %rd2, [{name}_param_1];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.s32 %r3, %r1, 32, %r2;
    setp.ge.u32 %p1, %r3, 100;
    @%p1 bra $done;
    mul.wide.u32 %rd3, %r3, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.b32 %r4, [%rd4];
    {compute}
    st.global.b32 [%rd5], %r5;
$done:
    ret;
}}
"
    )
}

/// A dump in a folder, some of its parts changed.
fn dump(d: &Dir, name: &str, change: impl Fn(&str, String) -> Option<String>) -> String {
    let parts = [
        ("sm_9.0a_gpu_after_optimizations.txt", OPTIMIZED.to_owned()),
        ("sm_9.0a_gpu_after_optimizations-buffer-assignment.txt", ASSIGNMENT.to_owned()),
        ("thunk_sequence.txt", THUNKS.to_owned()),
        ("1.ptx", kernel("loop_add_fusion", "add.rn.f32 %r5, %r4, 0f3F800000;")),
        ("3.ptx", kernel("loop_add_fusion_1", "add.rn.f32 %r5, %r4, %r4;")),
    ];
    fs::create_dir_all(d.path(name)).unwrap();
    for (file, text) in parts {
        if let Some(text) = change(file, text) {
            d.file(&format!("{name}/{file}"), text);
        }
    }
    d.path(name).to_str().unwrap().to_owned()
}

fn same(_: &str, text: String) -> Option<String> {
    Some(text)
}

/// One file changed.
fn changed<'a>(which: &'a str, from: &'a str, to: &'a str) -> impl Fn(&str, String) -> Option<String> + 'a {
    move |file, text| {
        if file != which {
            return Some(text);
        }
        assert!(text.contains(from), "{from}");
        Some(text.replacen(from, to, 1))
    }
}

fn run_on(d: &Dir, program: &str, folder: &str) -> std::process::Output {
    run_with(d, program, folder, &[])
}

/// In the folder of the test, where findings are saved.
fn run_with(d: &Dir, program: &str, folder: &str, options: &[&str]) -> std::process::Output {
    let platform = format!("xla-gpu:{folder}");
    std::process::Command::new(env!("CARGO_BIN_EXE_hlo"))
        .args(["run", program, "--platform", &platform])
        .args(options)
        .current_dir(d.path(""))
        .output()
        .unwrap()
}

fn whole() {
    let d = Dir::new();
    let source = d.file("m.hlo", SOURCE);
    let folder = dump(&d, "right", same);
    let o = run_on(&d, &source, &folder);
    ends(&o, 0);
    assert!(out(&o).contains("same bits 100.0%") && out(&o).contains("2 kernels"), "{}", out(&o));
    // The files may have the name of a program before theirs, beside those of others.
    let prefixed = dump(&d, "prefixed", |_, _| None);
    for (file, text) in fs::read_dir(&folder).unwrap().map(|f| f.unwrap()).map(|f| (f.file_name(), f.path()))
    {
        let text = fs::read(text).unwrap();
        for prefix in ["module_0001.jit_m.", "module_0002.jit_n."] {
            fs::write(d.path("prefixed").join(format!("{prefix}{}", file.to_str().unwrap())), &text).unwrap();
        }
    }
    let o = run_on(&d, &source, &prefixed);
    ends(&o, 2);
    assert!(err(&o).contains("has several programs"), "{}", err(&o));
    ends(&run_on(&d, &source, &format!("{prefixed}/module_0002.jit_n.")), 0);
    // Another program is not what was compiled.
    let other = d.file("other.hlo", SOURCE.replace("100", "99"));
    let o = run_on(&d, &other, &folder);
    ends(&o, 5);
    assert!(err(&o).contains("other parameters or results"), "{}", err(&o));
    // XLA takes tuples of parameters apart.
    let tuple = SOURCE.replace("{(f32[100]{0})->", "{((f32[100]{0}))->").replace(
        "x = f32[100]{0} parameter(0)",
        "t = (f32[100]{0}) parameter(0)\n  x = f32[100]{0} get-tuple-element(t), index=0",
    );
    ends(&run_on(&d, &d.file("tuple.hlo", tuple), &folder), 0);
    // A value that the dump leaves out.
    let elided = |file: &str, text: String| {
        let text = text.replace("%one = f32[] constant(1)", "%one = f32[] constant({...})");
        same(file, text)
    };
    let elided = dump(&d, "elided", elided);
    let o = run_on(&d, &source, &elided);
    ends(&o, 5);
    assert!(format!("{}{}", out(&o), err(&o)).contains("leaves out the value of `one`"), "{}", err(&o));
    let wrong = dump(&d, "wrong", changed("3.ptx", "%r4, %r4", "%r4, 0f00000000"));
    ends(&run_on(&d, &source, &wrong), 1);
}

fn alone() {
    let d = Dir::new();
    let isolate = |folder: &str| {
        let platform = format!("xla-gpu:{folder}");
        hlo(&["isolate", &format!("{folder}/sm_9.0a_gpu_after_optimizations.txt"), "--platform", &platform])
    };
    let o = isolate(&dump(&d, "right", same));
    ends(&o, 0);
    assert!(out(&o).contains("0 FAILURE, 2 SUCCESS"), "{}", out(&o));
    // The first is wrong: the second is judged on the right operands, not on what the first left.
    let o = isolate(&dump(&d, "first", changed("1.ptx", "0f3F800000", "0f3F800001")));
    ends(&o, 1);
    let text = out(&o);
    assert!(text.contains("1 FAILURE, 1 SUCCESS") && text.contains("main.loop_add_fusion "), "{text}");
    let o = isolate(&dump(&d, "second", changed("3.ptx", "add.rn.f32", "mul.rn.f32")));
    ends(&o, 1);
    let text = out(&o);
    assert!(text.contains("1 FAILURE, 1 SUCCESS") && text.contains("main.loop_add_fusion.1 "), "{text}");
    // Reduced, it is the wrong kernel's instruction alone.
    let engines = format!("interpreter,xla-gpu:{}", d.path("second").display());
    let optimized = d.path("second/sm_9.0a_gpu_after_optimizations.txt");
    let (optimized, small) = (optimized.to_str().unwrap(), d.path("small"));
    ends(&hlo(&["reduce", optimized, "--engines", &engines, "--out", small.to_str().unwrap()]), 0);
    let text = fs::read_to_string(small.join("module.hlo")).unwrap();
    assert!(text.contains("loop_add_fusion.1") && !text.contains("fused_add"), "{text}");
}

fn faults() {
    let d = Dir::new();
    let source = d.file("m.hlo", SOURCE);
    // What is changed, and what is said of it. The kernel's guard is on line 19 of its file.
    let cases = [
        ("setp.ge.u32 %p1, %r3, 100", "setp.ge.u32 %p1, %r3, 200", "Invalid __global__ read of size 4 bytes"),
        (
            "setp.ge.u32 %p1, %r3, 100",
            "setp.ge.u32 %p1, %r3, 99",
            "leaves 4 of the 400 bytes of the result unwritten",
        ),
        ("add.s64 %rd5, %rd2, %rd3", "add.s64 %rd5, %rd2, 4", "race"),
        ("mul.wide.u32 %rd3, %r3, 4", "mul.wide.u32 %rd3, %r3, 2", "misaligned"),
        ("ld.global.b32 %r4, [%rd4]", "ld.global.b32 %r4, [%rd5]", "ninitialized"),
        ("@%p1 bra $done", "@!%p1 bra $done", "Invalid __global__ read"),
    ];
    for (from, to, said) in cases {
        let folder = dump(&d, "faulty", changed("1.ptx", from, to));
        let o = run_on(&d, &source, &folder);
        ends(&o, 1);
        let text = format!("{}{}", out(&o), err(&o));
        assert!(text.to_lowercase().contains(&said.to_lowercase()), "{to}: {text}");
        assert!(text.contains("kernel `loop_add_fusion` of `loop_add_fusion`"), "{to}: {text}");
        assert!(
            said.contains("unwritten") || text.contains("1.ptx") && text.contains(", line "),
            "{to}: {text}"
        );
    }
    // A kernel without end stops at its fuel.
    let folder = dump(&d, "endless", changed("1.ptx", "$done:\n", "$done:\n    bra $done;\n"));
    let o = run_with(&d, &source, &folder, &["--fuel", "100000"]);
    ends(&o, 6);
    assert!(format!("{}{}", out(&o), err(&o)).contains("did not end"), "{}{}", out(&o), err(&o));
    let o = run_with(&d, &source, &folder, &["--timeout", "1"]);
    ends(&o, 6);
}

/// What becomes of a part of a dump; `None`: it is not there.
type Change<'a> = &'a dyn Fn(&str, String) -> Option<String>;

fn damaged() {
    let d = Dir::new();
    let source = d.file("m.hlo", SOURCE);
    let cases: [(&str, Change<'_>, i32, &str); 16] = [
        ("no list", &|f, t| (f != "thunk_sequence.txt").then_some(t), 2, "there is no launch list"),
        (
            "no hlo",
            &|f, t| (f != "sm_9.0a_gpu_after_optimizations.txt").then_some(t),
            2,
            "there is no optimized HLO",
        ),
        ("no buffers", &|f, t| (!f.contains("assignment")).then_some(t), 2, "there is no buffer assignment"),
        (
            "no ptx",
            &|f, t| (!f.contains("ptx")).then_some(t),
            4,
            "line 1: the kernel `loop_add_fusion` of `loop_add_fusion` is in no PTX file",
        ),
        ("one ptx", &|f, t| (f != "3.ptx").then_some(t), 4, "line 2: the kernel `loop_add_fusion_1`"),
        ("cut", &|f, t| Some(if f == "1.ptx" { t[..400].to_owned() } else { t }), 3, "1.ptx: error[X"),
        ("unknown", &changed("1.ptx", "mul.wide.u32", "mulwide.u32"), 4, "line 21"),
        ("future", &changed("1.ptx", ".version 8.0", ".version 99.0"), 3, "line 1"),
        (
            "twice",
            &|f, t| Some(if f == "3.ptx" { kernel("loop_add_fusion", "mov.b32 %r5, %r4;") } else { t }),
            4,
            "is in 1.ptx too",
        ),
        (
            "parameters",
            &changed("1.ptx", ",\n    .param .u64 loop_add_fusion_param_1", ""),
            4,
            "loop_add_fusion_param_1",
        ),
        ("short list", &changed("thunk_sequence.txt", "002: ", "\n# "), 3, "thunk_sequence.txt: line 3"),
        (
            "long list",
            &|f, t| Some(if f == "thunk_sequence.txt" { format!("{t}{t}") } else { t }),
            4,
            "line 3: kCustomKernel of `loop_add_fusion`: no instruction",
        ),
        (
            "block",
            &changed("thunk_sequence.txt", "threads: [32, 1, 1]", "threads: [0, 1, 1]"),
            4,
            "at least one block and one thread",
        ),
        (
            "required",
            &changed("thunk_sequence.txt", "threads: [32, 1, 1]", "threads: [64, 1, 1]"),
            4,
            "requires blocks of [32, 1, 1] threads",
        ),
        (
            "shared",
            &changed("thunk_sequence.txt", "shared_memory: 0 bytes", "shared_memory: 999999 bytes"),
            4,
            "bytes of dynamic shared memory",
        ),
        (
            "assignment",
            &changed("sm_9.0a_gpu_after_optimizations-buffer-assignment.txt", "(size=400,offset=0)", "(400)"),
            3,
            "line 3",
        ),
    ];
    for (name, change, code, said) in cases {
        let folder = dump(&d, name, change);
        let o = run_on(&d, &source, &folder);
        let text = format!("{}{}", out(&o), err(&o));
        assert!(o.status.code() == Some(code) && text.contains(said), "{name}: {:?} {text}", o.status.code());
    }
    let o = run_on(&d, &source, d.path("nowhere/at/all").to_str().unwrap());
    ends(&o, 2);
}

/// The first kernel in the body of a loop, ten times.
fn loops() {
    const LOOP: &str = "\
HloModule m, is_scheduled=true

%fused_add (p: f32[100]) -> f32[100] {
  %p = f32[100]{0} parameter(0)
  %one = f32[] constant(1)
  %ones = f32[100]{0} broadcast(%one), dimensions={}
  ROOT %s = f32[100]{0} add(%p, %ones)
}

%body (b: (s32[], f32[100])) -> (s32[], f32[100]) {
  %b = (s32[], f32[100]{0}) parameter(0)
  %i = s32[] get-tuple-element(%b), index=0
  %step = s32[] constant(1)
  %next = s32[] add(%i, %step)
  %loop_add_fusion = f32[100]{0} fusion(%b#1), kind=kLoop, calls=%fused_add
  ROOT %bt = (s32[], f32[100]{0}) tuple(%next, %loop_add_fusion)
}

%condition (c: (s32[], f32[100])) -> pred[] {
  %c = (s32[], f32[100]{0}) parameter(0)
  %ci = s32[] get-tuple-element(%c), index=0
  %ten = s32[] constant(10)
  ROOT %less = pred[] compare(%ci, %ten), direction=LT
}

ENTRY %main (x: f32[100]) -> f32[100] {
  %x = f32[100]{0} parameter(0)
  %zero = s32[] constant(0)
  %start = (s32[], f32[100]{0}) tuple(%zero, %x)
  %w = (s32[], f32[100]{0}) while(%start), condition=%condition, body=%body
  ROOT %r = f32[100]{0} get-tuple-element(%w), index=1
}
";
    const LIST: &str = "\
001: kWhile [source | sink]
condition:
    002: kCopy [source | sink] kCopy
  body:
    003: kCopy [source | sink] kCopy
    004: kCustomKernel [source | sink] loop_add_fusion grid: [4, 1, 1] threads: [32, 1, 1]  shared_memory: 0 bytes
";
    let d = Dir::new();
    let folder = dump(&d, "loop", |file, text| match file {
        "thunk_sequence.txt" => Some(LIST.to_owned()),
        "sm_9.0a_gpu_after_optimizations.txt" => Some(LOOP.to_owned()),
        _ => Some(text),
    });
    let program = format!("{folder}/sm_9.0a_gpu_after_optimizations.txt");
    let o = run_on(&d, &program, &folder);
    ends(&o, 0);
    assert!(out(&o).contains("10 kernels") && out(&o).contains("same bits 100.0%"), "{}", out(&o));
}

fn refused() {
    let d = Dir::new();
    let source = d.file("m.hlo", SOURCE);
    let o = std::process::Command::new(env!("CARGO_BIN_EXE_hlo"))
        .args(["run", &source, "--platform", "xla-gpu"])
        .env_remove("HLO_XLA_GPU_PYTHON")
        .output()
        .unwrap();
    ends(&o, 5);
    assert!(err(&o).contains("HLO_XLA_GPU_PYTHON") && err(&o).contains("pip install"), "{}", err(&o));
}

/// A script that stands in for the compiler: it counts how often it is started, returns a recorded dump,
/// refuses one program, and crashes on another.
const COMPILER: &str = r#"
echo started >> "$STARTS"
while read -r line; do
  # The module's path and the folder that it wants, out of {"module":PATH,"out":PATH}.
  module=$(printf '%s' "$line" | cut -d'"' -f4)
  out=$(printf '%s' "$line" | cut -d'"' -f8)
  if grep -q refused "$module"; then
    echo '{"error": "no such luck", "kind": "unsupported"}'
  elif grep -q deadly "$module"; then
    echo "F0000 00:00:17.5    99 literal.cc:7] Check failed: luck" >&2
    exit 6
  else
    cp -r "$DUMP" "$out"
    echo '{"ok": true}'
  fi
done
"#;

fn served() {
    let d = Dir::new();
    let folder = dump(&d, "right", same);
    let script = d.file("compiler.sh", COMPILER);
    let programs = d.path("programs");
    fs::create_dir_all(&programs).unwrap();
    let named = |name: &str| SOURCE.replace("HloModule m", &format!("HloModule {name}"));
    for (i, name) in ["fine", "refused", "fine", "deadly", "fine"].iter().enumerate() {
        d.file(&format!("programs/{i}.hlo"), named(name));
    }
    // Of another program than it was asked for.
    d.file("programs/5.hlo", named("fine").replace("100", "99"));
    let o = std::process::Command::new(env!("CARGO_BIN_EXE_hlo"))
        .args(["fuzz", "--programs", programs.to_str().unwrap(), "--engines", "interpreter,xla-gpu"])
        .args(["--count", "6", "--jobs", "1", "--no-reduce", "--out", d.path("found").to_str().unwrap()])
        .env("HLO_XLA_GPU_PYTHON", "sh")
        .env("HLO_XLA_GPU_SCRIPT", &script)
        .env("STARTS", d.path("starts"))
        .env("DUMP", &folder)
        .output()
        .unwrap();
    ends(&o, 1);
    let text = format!("{}{}", out(&o), err(&o));
    assert!(text.contains("same bits 3,") && text.contains("failed 1, unsupported 2"), "{text}");
    assert!(text.contains("no such luck") && text.contains("literal.cc:7: Check failed: luck"), "{text}");
    // One process for all programs, and another one after the one that died.
    let starts = fs::read_to_string(d.path("starts")).unwrap();
    assert!((2..=4).contains(&starts.lines().count()), "{starts}");
}

/// The short form of what `hlo ptx mutants` measures.
fn mutants() {
    let shared = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let (dumps, cases) = (shared.join("gpu/jax"), shared.join("jax"));
    if !dumps.is_dir() || !cases.is_dir() {
        return;
    }
    let (dumps, cases) = (dumps.to_str().unwrap(), cases.to_str().unwrap());
    let o = hlo(&["ptx", "mutants", dumps, "--cases", cases, "--seed", "7", "--count", "20", "--json"]);
    ends(&o, 0);
    let text = out(&o);
    let summary: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert!(summary["effective"] == 20 && summary["found"].as_u64() >= Some(19), "{text}");
    let o = hlo(&["ptx", "mutants", dumps, "--only", "no such program"]);
    ends(&o, 2);
}

fn ptx() {
    let d = Dir::new();
    let file = d.file("add.ptx", kernel("add_one", "add.rn.f32 %r5, %r4, 0f3F800000;"));
    let npz = d.path("out.npz").to_str().unwrap().to_owned();
    ends(&hlo(&["ptx", "check", &file]), 0);
    let o = hlo(&["ptx", "print", &file]);
    ends(&o, 0);
    let printed = d.file("printed.ptx", out(&o));
    ends(&hlo(&["ptx", "check", &printed]), 0);
    let run = |grid: &str, args: &[&str]| {
        let mut all = vec!["ptx", "run", &file, "--grid", grid, "--block", "32", "--output", &npz, "--args"];
        all.extend(args);
        hlo(&all)
    };
    ends(&run("4", &["zeros:f32[100]", "empty:f32[100]"]), 0);
    let shape = hlo::ArrayShape::new(hlo::ElementType::F32, &[100]);
    let result = Npz::open(&npz, 1 << 20).unwrap().array("arg1", &shape).unwrap();
    assert_eq!(*result.buffer, hlo::Buffer::F32(vec![1.0; 100]));
    // Its own result goes in again.
    let from = format!("{npz}:arg1");
    ends(&run("4", &[&from, "empty:f32[100]"]), 0);
    let result = Npz::open(&npz, 1 << 20).unwrap().array("arg1", &shape).unwrap();
    assert_eq!(*result.buffer, hlo::Buffer::F32(vec![2.0; 100]));
    for (args, code, said) in [
        (&["zeros:f32[100]", "empty:f32[99]"][..], 6, "Invalid __global__ write"),
        (&["zeros:f32[100]"][..], 2, "the kernel has 2 parameters, the launch 1"),
        (&["zeros:f32[100]", "u32=7"][..], 2, "has 8 bytes, the argument 4"),
        (&["empty:f32[100]", "empty:f32[100]"][..], 1, "ninitialized"),
        (&["zeros:f32[100]", "nothing"][..], 2, "is no argument"),
        (&["zeros:f32[100]", "none.npz:x"][..], 2, "none.npz"),
        (&["zeros:f32[100]", "zeros:f32[9000000000]"][..], 6, "memory limit"),
    ] {
        let o = run("4", args);
        let text = format!("{}{}", out(&o), err(&o));
        assert!(
            o.status.code() == Some(code) && text.contains(said),
            "{args:?}: {:?} {text}",
            o.status.code()
        );
    }
    let o = hlo(&["ptx", "run", &file, "--kernel", "sub", "--args", "zeros:f32[100]"]);
    ends(&o, 2);
    assert!(err(&o).contains("no kernel `sub`; it has add_one"), "{}", err(&o));
    let cut = d.file("cut.ptx", &kernel("k", "")[..300]);
    ends(&hlo(&["ptx", "check", &cut]), 3);
    let unknown = d.file("unknown.ptx", kernel("k", "frobnicate.f32 %r5, %r4;"));
    let o = hlo(&["ptx", "check", &file, &unknown]);
    ends(&o, 4);
    assert!(err(&o).contains("frobnicate") && err(&o).contains("line 25"), "{}", err(&o));
    ends(&hlo(&["ptx", "run", &unknown, "--block", "32"]), 4);
}

/// Every so manieth program of XLA's dumps.
const EVERY: usize = 12;

/// A sample of XLA's own dumps of JAX programs: whole, and kernel by kernel.
fn corpus() -> Vec<Trial> {
    let shared = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let (gpu, jax) = (shared.join("gpu/jax"), shared.join("jax"));
    if !gpu.is_dir() || !jax.is_dir() {
        eprintln!("NOTE: ../shared/corpus/gpu is not beside this checkout: its programs are SKIPPED");
        return Vec::new();
    }
    let mut names: Vec<String> =
        fs::read_dir(&gpu).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let one = |name: String| {
        let (dump, case) = (gpu.join(&name), jax.join(&name));
        Trial::test(format!("shared/gpu/{name}"), move || {
            kernel_by_kernel(dump.to_str().unwrap(), case.to_str().unwrap()).map_err(Failed::from)
        })
    };
    names.into_iter().step_by(EVERY).map(one).collect()
}

fn kernel_by_kernel(dump: &str, case: &str) -> Result<(), String> {
    let program = frontend::load(&format!("{case}/module.hlo")).map_err(|r| format!("{r:?}"))?;
    let engine = by_name(&format!("xla-gpu:{dump}")).map_err(|f| f.to_string())?;
    let mut npz = Npz::open(format!("{case}/inputs.npz"), 1 << 32).map_err(|f| f.to_string())?;
    let module = &program.module;
    let parameters = module.program_shape(module.entry()).ok_or("no program")?.parameters;
    let shapes: Vec<_> =
        parameters.iter().flat_map(|s| s.leaves()).filter_map(|s| s.as_array().cloned()).collect();
    let named = shapes.iter().enumerate().map(|(i, s)| (format!("arg{i}"), s));
    let inputs = vec![npz.arrays(named).map_err(|f| f.to_string())?];
    let settings = Settings::default();
    let whole = differ(&InterpreterEngine, &*engine, &Subject::new(module, &inputs), &settings);
    if !matches!(whole.kind, Kind::Same | Kind::Explained) {
        return Err(format!("whole: {:?} {:?}", whole.kind, whole.failure));
    }
    let engine = XlaGpuEngine::folder(dump).map_err(|f| f.to_string())?;
    let subject = Subject::new(engine.optimized(), &inputs);
    let executable = hlo_engines::engine::Engine::compile(&engine, engine.optimized());
    let executable = executable.map_err(|o| format!("{:?}", o.diagnostic()))?;
    let allowances = settings.policy.allowances(&engine);
    let found =
        replay(&subject, &*executable, allowances, &settings).map_err(|o| format!("{:?}", o.diagnostic()))?;
    match found.class() {
        Class::Same | Class::Explained => Ok(()),
        Class::Undecided | Class::Wrong => Err(format!("{:?} {:?}", found.first(), found.ended)),
    }
}
