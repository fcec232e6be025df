//! Limits on time and size of output: what takes too long ends in whatever instruction it is, and no message
//! or text is larger than its limit.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use hlo::Module;
use hlo::cost::{applied_cost, module_cost};
use hlo_engines::engine::{InterpreterEngine, by_name, with_timeout};
use hlo_engines::frontend::parse_text;
use hlo_engines::inputs;
use hlo_interp::Devices;
use hlo_triage::differential::differ_within;
use hlo_triage::differential::{Kind, Settings, Subject, reference_run};
use libtest_mimic::Trial;

use crate::cli::{Dir, ends, err, hlo, out};
use crate::function;

/// Far less than any of the programs takes.
const SHORT: &str = "200ms";

fn program(body: &str) -> String {
    format!(
        "HloModule m\n\nadd {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}}\n\n\
         most {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] maximum(a, b)\n}}\n\n\
         odd {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  d = f32[] sine(b)\n  ROOT c = f32[] atan2(a, d)\n}}\n\n\
         sines {{\n  a = f32[] parameter(0)\n{}}}\n\nENTRY e {{\n{body}}}\n",
        chain("sine", "a", 2000)
    )
}

fn chain(opcode: &str, first: &str, count: usize) -> String {
    let mut text = String::new();
    for i in 0..count {
        let from = if i == 0 { first.to_owned() } else { format!("s{}", i - 1) };
        let root = if i + 1 == count { "ROOT " } else { "" };
        writeln!(text, "  {root}s{i} = f32[] {opcode}({from})").unwrap();
    }
    text
}

/// `n` dimensions of 2.
fn twos(n: usize) -> String {
    vec!["2"; n].join(",")
}

/// One instruction each, which takes minutes or more.
fn long_instructions() -> Vec<(&'static str, String)> {
    let windows = |to_apply: &str| {
        let (dims, size, pad) = (twos(22), vec!["2"; 22].join("x"), vec!["0_1"; 22].join("x"));
        format!(
            "  x = f32[{dims}] parameter(0)\n  z = f32[] constant(0)\n  \
             ROOT r = f32[{dims}] reduce-window(x, z), window={{size={size} pad={pad}}}, to_apply={to_apply}\n"
        )
    };
    let unary = |ty: &str, rest: &str| format!("  x = {ty} parameter(0)\n  ROOT r = {ty} {rest}\n");
    vec![
        ("reduce-window-sum", windows("add")),
        ("reduce-window-maximum", windows("most")),
        ("reduce-window-of-any", windows("odd")),
        (
            "dot",
            "  x = f32[3000,3000] parameter(0)\n  ROOT r = f32[3000,3000] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                .to_owned(),
        ),
        (
            "convolution",
            "  x = f32[8,128,128,64] parameter(0)\n  k = f32[15,15,64,64] parameter(1)\n  ROOT r = f32[8,114,114,64] convolution(x, k), window={size=15x15}, dim_labels=b01f_01io->b01f\n"
                .to_owned(),
        ),
        ("cholesky", unary("f32[2500,2500]", "cholesky(x), lower=true")),
        (
            "triangular-solve",
            "  x = f32[2000,2000] parameter(0)\n  ROOT r = f32[2000,2000] triangular-solve(x, x), left_side=true, lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE\n"
                .to_owned(),
        ),
        ("fft", unary("c64[4194319]", "fft(x), fft_type=FFT, fft_length={4194319}")),
        ("map", unary("f32[1000000]", "map(x), dimensions={0}, to_apply=sines")),
        (
            "scatter",
            "  x = f32[4000000] parameter(0)\n  i = s32[4000000] iota(), iota_dimension=0\n  ROOT r = f32[4000000] scatter(x, i, x), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=odd\n"
                .to_owned(),
        ),
        ("reduce", "  x = f32[4000000] parameter(0)\n  z = f32[] constant(0)\n  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=odd\n".to_owned()),
    ]
}

/// In whatever instruction it is.
fn the_interpreter_ends_in_time() {
    let d = Dir::new();
    for (name, body) in long_instructions() {
        let file = d.file(&format!("{name}.hlo"), program(&body));
        let o = hlo(&["run", &file, "-q", "--platform", "interpreter", "--timeout", SHORT]);
        assert_eq!(o.status.code(), Some(6), "{name}: {}", err(&o));
        assert!(err(&o).contains("error[R0041]: interpreter took longer than 0.2 s"), "{name}: {}", err(&o));
    }
}

/// Loops whose ends are not known, of instructions that are short.
fn loops_end_in_time() {
    let d = Dir::new();
    let text = "HloModule m\n\nc {\n  p = (s32[], f32[8]) parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  n = s32[] constant(2000000000)\n  ROOT l = pred[] compare(i, n), direction=LT\n}\n\n\
                b {\n  p = (s32[], f32[8]) parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  o = s32[] constant(1)\n  j = s32[] add(i, o)\n  x = f32[8] get-tuple-element(p), index=1\n  y = f32[8] sine(x)\n  ROOT t = (s32[], f32[8]) tuple(j, y)\n}\n\n\
                ENTRY e {\n  z = s32[] constant(0)\n  x = f32[8] parameter(0)\n  t = (s32[], f32[8]) tuple(z, x)\n  ROOT w = (s32[], f32[8]) while(t), condition=c, body=b\n}\n";
    let file = d.file("loop.hlo", text);
    for platform in ["interpreter", "cpu", "passes:default"] {
        let o = hlo(&[
            "run",
            &file,
            "-q",
            "--platform",
            platform,
            "--reference-platform",
            "none",
            "--timeout",
            "1s",
        ]);
        assert_eq!(o.status.code(), Some(6), "{platform}: {}", err(&o));
        assert!(err(&o).contains(&format!("error[R0041]: {platform} took longer than 1 s")), "{}", err(&o));
    }
}

fn module(text: &str) -> Module {
    parse_text(text).0.expect("a program")
}

/// Two engines ran, and whether their difference is explained was not found out in time: nothing is said of
/// either.
fn judging_ends_in_time() {
    let m = module(&program(
        "  x = f32[64,64] parameter(0)\n  ROOT r = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n",
    ));
    let inputs = inputs::generate(&inputs::plan(&m, None).unwrap(), 0, Devices::ONE, 1 << 30).unwrap();
    let subject = Subject::new(&m, &inputs);
    let settings = Settings::default();
    let expected = reference_run(&InterpreterEngine, &subject, &settings);
    let engine = by_name("interpreter:reversed").unwrap();
    let judged = |limit| differ_within(limit, &expected, &*engine, &subject, &settings);
    assert_eq!(judged(Some(Duration::from_secs(3600))).kind, judged(None).kind);
    let late = judged(Some(Duration::ZERO));
    assert_eq!(late.kind, Kind::Exhausted);
    let failure = late.failure.expect("says why");
    assert_eq!(
        (failure.code.as_str(), &*failure.message),
        ("R0044", "judging interpreter:reversed took longer than 0 s")
    );
    // The same program on the same engine in time: a limit leaves nothing behind.
    let timed = with_timeout("interpreter:reversed", Duration::from_secs(3600)).unwrap();
    let again = differ_within(None, &expected, &*timed, &subject, &settings);
    assert_eq!(again.kind, judged(None).kind);
    let timed: Arc<_> = with_timeout("interpreter", Duration::ZERO).unwrap();
    assert_eq!(differ_within(None, &expected, &*timed, &subject, &settings).kind, Kind::Timeout);
}

/// `c0` in `c1` twice, `c1` in `c2` twice, ...
fn doubling(levels: usize, entry: &str) -> String {
    let mut text = "HloModule m\n\nc0 {\n  p = f32[] parameter(0)\n  q = f32[] parameter(1)\n  ROOT r = f32[] atan2(p, q)\n}\n\n".to_owned();
    for i in 1..=levels {
        let c = i - 1;
        write!(text, "c{i} {{\n  p = f32[] parameter(0)\n  q = f32[] parameter(1)\n  a = f32[] call(p, q), to_apply=c{c}\n  ROOT b = f32[] call(a, q), to_apply=c{c}\n}}\n\n").unwrap();
    }
    text + entry
}

/// Calls that double at each level are no program of 2^40 instructions anywhere.
fn calls_that_double_are_refused_where_each_would_be_a_copy() {
    let d = Dir::new();
    for levels in [14, 40] {
        let c = format!("c{levels}");
        let reduce = format!(
            "ENTRY e {{\n  x = f32[8,4] parameter(0)\n  z = f32[] constant(0)\n  ROOT r = f32[8] reduce(x, z), dimensions={{1}}, to_apply={c}\n}}\n"
        );
        let windows = format!(
            "ENTRY e {{\n  x = f32[8] parameter(0)\n  z = f32[] constant(0)\n  ROOT r = f32[8] reduce-window(x, z), window={{size=2 pad=0_1}}, to_apply={c}\n}}\n"
        );
        for (name, entry) in [("reduce", reduce), ("reduce-window", windows)] {
            let file = d.file("m.hlo", doubling(levels, &entry));
            let o = hlo(&["run", &file, "-q", "--platform", "cpu", "--reference-platform", "none"]);
            ends(&o, 5);
            let why = format!(
                "does not support `{name}`: with a computation of more than 8192 operations for each element"
            );
            assert!(err(&o).contains(&why), "{}", err(&o));
        }
    }
    let map = "ENTRY e {\n  x = f32[8] parameter(0)\n  ROOT r = f32[8] map(x, x), dimensions={0}, to_apply=c40\n}\n";
    let file = d.file("m.hlo", doubling(40, map));
    let o = hlo(&["run", &file, "-q", "--platform", "cpu", "--reference-platform", "none"]);
    ends(&o, 5);
    assert!(err(&o).contains("more than 1048576 instructions, a copy for each call of it"), "{}", err(&o));
    for style in [&["--nested"][..], &["--style", "canonical"]] {
        let o = hlo(&[&["print", &*file][..], style].concat());
        ends(&o, 5);
        assert!(
            err(&o).contains("in its place the text would have 23,089,744,183,123 instructions"),
            "{}",
            err(&o)
        );
        assert!(o.stdout.is_empty());
    }
    ends(&hlo(&["print", &file]), 0);
    let file = d.file("small.hlo", doubling(6, map.replace("c40", "c6").as_str()));
    let o = hlo(&["print", &file, "--nested"]);
    ends(&o, 0);
    // In each of the computations, and in what the map applies.
    assert_eq!(out(&o).matches("atan2").count(), 127 + 64);
}

/// A message repeats no list of a million.
fn messages_are_short() {
    let d = Dir::new();
    let million = |item: &str| vec![item; 1_000_000].join(",");
    let texts = [
        format!(
            "  x = f32[2] parameter(0)\n  ROOT r = f32[2,2] broadcast(x), dimensions={{{}}}\n",
            million("0")
        ),
        format!(
            "  x = f32[2] parameter(0)\n  ROOT r = f32[2,2] transpose(x), dimensions={{{}}}\n",
            million("1")
        ),
        format!("  x = f32[2] parameter(0)\n  ROOT r = ({}) tuple(x)\n", million("f32[2]")),
        format!("  x = f32[2] parameter(0)\n  ROOT r = f32[2] {}(x)\n", "y".repeat(1_000_000)),
        format!("  x = f32[{}] parameter(0)\n  ROOT r = f32[2] negate(x)\n", million("1")),
        format!("  x = f32[2] parameter(0)\n  ROOT r = f32[2] add(x, {})\n", "y".repeat(1_000_000)),
    ];
    for (i, text) in texts.iter().enumerate() {
        let file = d.file("m.hlo", format!("HloModule m\n\nENTRY e {{\n{text}}}\n"));
        for more in [&[][..], &["--json"]] {
            let o = hlo(&[&["verify", &*file][..], more].concat());
            assert!(matches!(o.status.code(), Some(3 | 4)), "{i}: {:?}", o.status);
            let said = o.stdout.len() + o.stderr.len();
            assert!(said < 64 << 10, "{i}: {said} bytes");
        }
    }
}

/// By hand: what each instruction does with its elements.
fn costs_are_counted() {
    let none = |_| None;
    let cost = |body: &str| module_cost(&module(&program(body)), &none).operations;
    // Parameters count 1.
    assert_eq!(cost("  x = f32[10,20] parameter(0)\n  ROOT r = f32[10,20] negate(x)\n"), 1 + 200);
    assert_eq!(cost("  x = f32[10,20] parameter(0)\n  ROOT r = f32[10,20] sine(x)\n"), 1 + 200 * 16);
    let dot = "  x = f32[10,20] parameter(0)\n  y = f32[20,30] parameter(1)\n  ROOT r = f32[10,30] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n";
    assert_eq!(cost(dot), 2 + 2 * 10 * 30 * 20);
    // `add` costs 3: two parameters and the addition.
    let reduce = "  x = f32[10,20] parameter(0)\n  z = f32[] constant(0)\n  ROOT r = f32[10] reduce(x, z), dimensions={1}, to_apply=add\n";
    assert_eq!(cost(reduce), 2 + 200 * 3);
    let m = module(&doubling(
        40,
        "ENTRY e {\n  x = f32[] parameter(0)\n  ROOT r = f32[] call(x, x), to_apply=c40\n}\n",
    ));
    let whole = module_cost(&m, &none);
    // 2^40 times atan2 with two parameters; each of 2^40 - 1 calls of two computations has two parameters and
    // two calls.
    let levels: u64 = 2 + (1 << 40) * (2 + 16) + ((1 << 40) - 1) * 4;
    assert_eq!(whole.operations, levels);
    let (id, most) = whole.largest.expect("an instruction");
    assert_eq!((&*m.instr(id).name, most), ("r", 16 << 40));
    // What cannot be counted is more than anything.
    let m = module(&doubling(
        90,
        "ENTRY e {\n  x = f32[] parameter(0)\n  ROOT r = f32[] call(x, x), to_apply=c90\n}\n",
    ));
    assert_eq!(module_cost(&m, &none).operations, u64::MAX);
    let c = m.computations().iter().copied().find(|&c| *m.computation(c).name == *"c3").unwrap();
    assert_eq!(applied_cost(&m, c), 8 * 18 + 7 * 4);
}

/// Before it runs, if it is expensive, and with its most expensive instructions.
fn what_a_program_costs_is_said_before() {
    let d = Dir::new();
    let (_, body) = long_instructions().swap_remove(0);
    let file = d.file("m.hlo", program(&body));
    let o = hlo(&["run", &file, "--platform", "interpreter", "--timeout", "50ms"]);
    ends(&o, 6);
    // 2^22 results of 2^22 elements, 3 operations for each.
    let said =
        "this may take long: about 52776.6G operations on elements; 100% of them in %r, a reduce-window";
    assert!(err(&o).contains(said), "{}", err(&o));
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        function("time::interpreter", the_interpreter_ends_in_time),
        function("time::loops", loops_end_in_time),
        function("time::judging", judging_ends_in_time),
        function("time::doubling", calls_that_double_are_refused_where_each_would_be_a_copy),
        function("time::messages", messages_are_short),
        function("time::costs", costs_are_counted),
        function("time::estimate", what_a_program_costs_is_said_before),
    ]
}
