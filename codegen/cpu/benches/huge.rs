//! How long huge programs take to compile, stage by stage, at a size and at half of it (a stage whose time
//! doubles is linear), and how much memory.
//!
//! `cargo bench -p hlo-cpu --bench huge [-- PROGRAM [SIZE]]`

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "a benchmark")]

fn main() {
    huge::main();
}

mod huge {
    use std::fmt::Write;
    use std::sync::Arc;
    use std::time::Instant;

    use hlo_codegen::runtime::executable::{Executable, LoadOptions};
    use hlo_cpu::{Options, compile};
    use hlo_library_base::pool::Pool;
    use hlo_parser::{ParseOptions, parse_module};

    fn root(last: bool) -> &'static str {
        if last { "ROOT " } else { "" }
    }

    fn entry(name: &str) -> String {
        format!("HloModule {name}\n\nENTRY main {{\n")
    }

    /// A chain of elementwise instructions, a third of them with an operand of long ago.
    fn chain(n: usize) -> String {
        let mut text = entry("chain") + "  v0 = f32[64] parameter(0)\n";
        for i in 1..=n {
            let far = if i % 3 == 0 { i / 2 } else { i - 1 };
            let opcode = ["add", "multiply", "subtract"][i % 3];
            writeln!(text, "  {}v{i} = f32[64] {opcode}(v{}, v{far})", root(i == n), i - 1).unwrap();
        }
        text + "}\n"
    }

    /// A chain that fuses as far as fusions go, no two operations after each other alike.
    fn straight(n: usize) -> String {
        let mut text = entry("straight") + "  v0 = f32[64] parameter(0)\n  c = f32[64] parameter(1)\n";
        let mut state = 1u32;
        for i in 1..=n {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let opcode = ["add", "multiply", "maximum", "subtract"][(state >> 30) as usize];
            writeln!(text, "  {}v{i} = f32[64] {opcode}(v{}, c)", root(i == n), i - 1).unwrap();
        }
        text + "}\n"
    }

    /// A chain in which no instruction may write over its operand.
    fn reversals(n: usize) -> String {
        let mut text = entry("reversals") + "  v0 = f32[64,2] parameter(0)\n";
        for i in 1..=n {
            let dim = i % 2;
            writeln!(text, "  {}v{i} = f32[64,2] reverse(v{}), dimensions={{{dim}}}", root(i == n), i - 1)
                .unwrap();
        }
        text + "}\n"
    }

    fn list(text: &mut String, n: usize, name: &str, operand: &str) {
        let shapes = vec!["f32[8]"; n].join(", ");
        let operands: Vec<String> = (0..n).map(|i| format!("{operand}{i}")).collect();
        writeln!(text, "  {name} = ({shapes}) tuple({})", operands.join(", ")).unwrap();
    }

    /// A tuple of n results.
    fn tuple(n: usize) -> String {
        let mut text = entry("tuple");
        for i in 0..n {
            writeln!(text, "  p{i} = f32[8] parameter({i})\n  v{i} = f32[8] sine(p{i})").unwrap();
        }
        list(&mut text, n, "ROOT t", "v");
        text + "}\n"
    }

    /// Kernels, each of other sizes than all others.
    fn kernels(n: usize) -> String {
        let mut text = entry("kernels");
        for i in 0..n {
            let size = i + 8;
            writeln!(text, "  p{i} = f32[{size}] parameter({i})\n  v{i} = f32[{size}] multiply(p{i}, p{i})")
                .unwrap();
        }
        let shapes: Vec<String> = (0..n).map(|i| format!("f32[{}]", i + 8)).collect();
        let operands: Vec<String> = (0..n).map(|i| format!("v{i}")).collect();
        writeln!(text, "  ROOT t = ({}) tuple({})", shapes.join(", "), operands.join(", ")).unwrap();
        text + "}\n"
    }

    /// The sum of n parameters, pair by pair.
    fn parameters(n: usize) -> String {
        let mut text = entry("parameters");
        for i in 0..n {
            writeln!(text, "  s{i} = f32[8] parameter({i})").unwrap();
        }
        for i in n..2 * n - 1 {
            let (a, b) = (2 * (i - n), 2 * (i - n) + 1);
            writeln!(text, "  {}s{i} = f32[8] add(s{a}, s{b})", root(i == 2 * n - 2)).unwrap();
        }
        text + "}\n"
    }

    /// Products one after the other, each with an epilogue.
    fn products(n: usize) -> String {
        let mut text = entry("products") + "  v0 = f32[8,8] parameter(0)\n  w = f32[8,8] parameter(1)\n";
        for i in 1..=n / 2 {
            writeln!(
                text,
                "  d{i} = f32[8,8] dot(v{}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n  {}v{i} = f32[8,8] negate(d{i})",
                i - 1,
                root(i == n / 2)
            )
            .unwrap();
        }
        text + "}\n"
    }

    /// Computations that call one another, n deep.
    fn calls(n: usize) -> String {
        let mut text = String::from(
            "HloModule calls\n\nc0 {\n  x = f32[64] parameter(0)\n  ROOT y = f32[64] negate(x)\n}\n\n",
        );
        for i in 1..n {
            let before = i - 1;
            writeln!(
                text,
                "c{i} {{\n  x = f32[64] parameter(0)\n  k = f32[64] call(x), to_apply=c{before}\n  ROOT y = f32[64] add(k, x)\n}}\n"
            )
            .unwrap();
        }
        let last = n - 1;
        text + &format!(
            "ENTRY main {{\n  x = f32[64] parameter(0)\n  ROOT k = f32[64] call(x), to_apply=c{last}\n}}\n"
        )
    }

    /// n loops one after the other.
    fn loops(n: usize) -> String {
        let mut text = String::from("HloModule loops\n\n");
        for i in 0..n {
            let trips = 3 + i % 7;
            writeln!(
                text,
                "cond{i} {{\n  s = (s32[], f32[64]) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  k = s32[] constant({trips})\n  \
                 ROOT r = pred[] compare(i, k), direction=LT\n}}\n\nbody{i} {{\n  s = (s32[], f32[64]) parameter(0)\n  \
                 i = s32[] get-tuple-element(s), index=0\n  x = f32[64] get-tuple-element(s), index=1\n  o = s32[] constant(1)\n  \
                 j = s32[] add(i, o)\n  y = f32[64] reverse(x), dimensions={{0}}\n  z = f32[64] add(x, y)\n  ROOT t = (s32[], f32[64]) tuple(j, z)\n}}\n"
            )
            .unwrap();
        }
        text += "ENTRY main {\n  x0 = f32[64] parameter(0)\n  z = s32[] constant(0)\n";
        for i in 0..n {
            writeln!(
                text,
                "  t{i} = (s32[], f32[64]) tuple(z, x{i})\n  w{i} = (s32[], f32[64]) while(t{i}), condition=cond{i}, body=body{i}\n  \
                 {}x{} = f32[64] get-tuple-element(w{i}), index=1",
                root(i == n - 1),
                i + 1
            )
            .unwrap();
        }
        text + "}\n"
    }

    /// A loop over n arrays, each of which it changes, and all alive at once in between.
    fn state(n: usize) -> String {
        let shapes = vec!["f32[8]"; n].join(", ");
        let mut text = format!(
            "HloModule state\n\ncond {{\n  s = ({shapes}) parameter(0)\n  x = f32[8] get-tuple-element(s), index=0\n  \
             o = f32[1] slice(x), slice={{[0:1]}}\n  r = f32[] reshape(o)\n  z = f32[] constant(0)\n  \
             ROOT lt = pred[] compare(r, z), direction=LT\n}}\n\nbody {{\n  s = ({shapes}) parameter(0)\n"
        );
        for i in 0..n {
            writeln!(text, "  g{i} = f32[8] get-tuple-element(s), index={i}").unwrap();
        }
        for i in 0..n {
            writeln!(text, "  v{i} = f32[8] reverse(g{i}), dimensions={{0}}").unwrap();
        }
        list(&mut text, n, "ROOT t", "v");
        text += "}\n\nENTRY main {\n";
        for i in 0..n {
            writeln!(text, "  p{i} = f32[8] parameter({i})").unwrap();
        }
        list(&mut text, n, "t", "p");
        writeln!(text, "  ROOT w = ({shapes}) while(t), condition=cond, body=body\n}}").unwrap();
        text
    }

    /// Milliseconds of each stage; peak memory in MB.
    #[derive(Default)]
    struct Stages {
        times: Vec<(String, f64)>,
        peak: f64,
    }

    impl Stages {
        fn time<T>(&mut self, name: &str, f: impl FnOnce() -> T) -> T {
            let start = Instant::now();
            let value = f();
            self.add(name, start.elapsed().as_secs_f64() * 1e3);
            value
        }

        fn add(&mut self, name: &str, ms: f64) {
            match self.times.iter_mut().find(|s| s.0 == name) {
                Some(s) => s.1 += ms,
                None => self.times.push((name.to_owned(), ms)),
            }
        }

        fn all(&self) -> f64 {
            self.times.iter().map(|s| s.1).sum()
        }

        fn of(&self, name: &str) -> f64 {
            self.times.iter().find(|s| s.0 == name).map_or(0.0, |s| s.1)
        }
    }

    /// The largest resident memory since the last call, in MB; 0 where the system does not say.
    fn peak() -> f64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        let kb = line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<f64>().ok());
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        kb.unwrap_or(0.0) / 1024.0
    }

    fn run(text: &str) -> Stages {
        let mut s = Stages::default();
        peak();
        let module = s.time("parse", || parse_module(text, &ParseOptions::default()).module.unwrap());
        assert!(!s.time("verify", || hlo::verify::verify(&module)).has_errors());
        let compiled = match compile(&module, &Options::default()) {
            Ok(compiled) => compiled,
            Err(why) => {
                println!("  {why}");
                return s;
            }
        };
        compiled.times.iter().for_each(|(name, _, time)| s.add(name, time.as_secs_f64() * 1e3));
        let options = LoadOptions::new(Arc::new(Pool::new(1)));
        let executable = s.time("load", || Executable::load(compiled.program, &options).unwrap());
        s.peak = peak();
        drop(executable);
        s
    }

    /// Name, the text of that many instructions, how many.
    type Kind = (&'static str, fn(usize) -> String, usize);

    const PROGRAMS: &[Kind] = &[
        ("chain", chain, 100_000),
        ("straight", straight, 100_000),
        ("reversals", reversals, 100_000),
        ("tuple", tuple, 20_000),
        ("kernels", kernels, 20_000),
        ("parameters", parameters, 5_000),
        ("products", products, 20_000),
        ("calls", calls, 5_000),
        ("loops", loops, 1_000),
        ("state", state, 20_000),
    ];

    pub(super) fn main() {
        let mut wanted = std::env::args().skip(1).filter(|a| !a.starts_with('-'));
        let (name, size) = (wanted.next(), wanted.next().and_then(|n| n.parse::<usize>().ok()));
        for &(program, make, n) in PROGRAMS {
            if name.as_deref().is_some_and(|w| w != program) {
                continue;
            }
            let n = size.unwrap_or(n);
            let (half, whole) = (run(&make(n / 2)), run(&make(n)));
            println!(
                "{program}, {n}: {:.0} ms, {:.2} times those of half; peak {:.0} MB",
                whole.all(),
                whole.all() / half.all(),
                whole.peak
            );
            for (stage, ms) in whole.times.iter().filter(|s| s.1 > whole.all() / 200.0) {
                println!("  {stage:28} {ms:9.1} ms  {:5.2} times", ms / half.of(stage));
            }
        }
    }
}
