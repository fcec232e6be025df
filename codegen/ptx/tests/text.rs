//! Texts that are truncated, mutated or hostile: a diagnostic with a code and a position, or a module that
//! runs or stops with a report; never a panic.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use hlo_ptx::report::Fault;
use hlo_ptx::{Launch, Memory, Options, diag, launch, lex, lower, parse, print};

const TEXT: &str = include_str!("data/cuda.ptx");

fn codes(text: &str) -> Vec<(&'static str, u32)> {
    lower::module(text).err().unwrap_or_default().iter().map(|d| (d.code, d.line)).collect()
}

fn module(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 x) {{\n.reg .pred %p<9>;\n.reg .b32 %r<9>;\n.reg .f32 %f<9>;\n.reg .b64 %rd<9>;\n{body}\n}}\n"
    )
}

#[test]
fn faults_have_code_and_line() {
    // The body begins at line 9.
    let cases = [
        ("frob.u32 %r1, %r2;", "X0101"),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1}, %rd1, %rd2, 1, 1, 1, 0, 0;", "X0101"),
        ("add.q32 %r1, %r2, %r3;", "X0102"),
        ("add.rn.s32 %r1, %r2, %r3;", "X0102"),
        ("mul.u32 %r1, %r2, %r3;", "X0102"),
        ("cvt.f32.s32 %f1, %r1;", "X0102"),
        ("cvt.s32.f32 %r1, %f1;", "X0102"),
        ("setp.lt.b32 %p1, %r1, %r2;", "X0102"),
        ("add.u32 %r1, %r2;", "X0103"),
        ("add.u32 %rd1, %r2, %r3;", "X0103"),
        ("add.f32 %f1, %f2, 1;", "X0103"),
        ("add.s32 %r1, %f2, %r3;", "X0103"),
        ("ld.global.v2.u32 %r1, [%rd1];", "X0103"),
        ("ld.shared.u32 %r1, [x];", "X0103"),
        ("bar.sync 16;", "X0103"),
        ("bar.sync 0, 33;", "X0103"),
        ("cp.async.cg.shared.global [%r1], [%rd1], 8;", "X0103"),
        ("@%r1 bra L; L:", "X0103"),
        ("bra NOWHERE;", "X0104"),
        ("add.u32 %r1, %r2, %q1;", "X0104"),
        ("add.u32 %r1, %r2, %r9;", "X0104"),
        ("L: L:", "X0105"),
        (".shared .align 3 .b8 s[4];", "X0106"),
        ("call nothing, ();", "X0104"),
        ("add.u32 %r1 %r2, %r3;", "X0002"),
        ("add.u32 %r1, %r2, 99999999999999999999;", "X0103"),
    ];
    for (body, code) in cases {
        assert_eq!(codes(&module(body)).first(), Some(&(code, 9)), "{body}");
    }
    // All faults of a text are found.
    assert_eq!(
        codes(&module("frob;\nadd.u32 %r1, %r2;\nbra X;")),
        [("X0101", 9), ("X0103", 10), ("X0104", 11)]
    );
    let known = |c: &str| diag::CODES.iter().any(|k| k.0 == c);
    assert!(cases.iter().all(|c| known(c.1)));
}

#[test]
fn headers() {
    assert_eq!(codes(""), [("X0004", 1), ("X0005", 1)]);
    assert_eq!(codes(".version 9.9\n.target sm_90\n"), [("X0004", 1)]);
    assert_eq!(codes(".version 10.0\n.target sm_90\n"), [("X0004", 1)]);
    assert_eq!(codes(".version 8.0\n.target sm_99\n"), [("X0005", 2)]);
    assert_eq!(codes(".version 8.0\n.target sm_90x\n"), [("X0005", 2)]);
    assert!(codes(".version 8.0\n.target sm_90a\n.address_size 64\n").is_empty());
    // The newest that Triton 3.9 writes, and that ptxas 13.5 takes.
    assert!(codes(".version 9.5\n.target sm_100a\n.address_size 64\n").is_empty());
}

#[test]
fn hostile_nesting_and_sizes() {
    let deep = format!("{}{}", "{".repeat(100_000), "}".repeat(100_000));
    assert_eq!(codes(&module(&deep)).first().map(|c| c.0), Some("X0003"));
    let deep = format!("mov.u32 %r1, {}1{};", "{".repeat(100_000), "}".repeat(100_000));
    assert_eq!(codes(&module(&deep)).first().map(|c| c.0), Some("X0003"));
    let deep = format!("setp.eq.u32 %p1{}, %r1, %r2;", "|%p1".repeat(100_000));
    assert_eq!(codes(&module(&deep)).first().map(|c| c.0), Some("X0003"));
    assert_eq!(codes(&module(".shared .b8 s[99999999999999];")).first().map(|c| c.0), Some("X0003"));
    assert_eq!(codes(&module(".local .b8 s[99999999];")).first().map(|c| c.0), Some("X0003"));
    // A range of registers costs nothing until they are named.
    assert!(codes(&module(".reg .b32 %many<4000000000>; mov.u32 %many3999999999, 1;")).is_empty());
}

#[test]
fn launches_that_do_not_fit() {
    let text = module(".shared .align 4 .b8 s[240000];\nret;");
    let mut memory = Memory::default();
    let loaded = memory.load(lower::module(&text).unwrap()).unwrap();
    let mut stop = |l: Launch| {
        let f = launch(&loaded, "k", &l, &mut memory, &Options::default()).unwrap_err();
        (f.stop.fault, f.stop.message.clone())
    };
    let (fault, message) = stop(Launch::new([1, 1, 1], [1, 1, 1], 0, &[0]));
    assert!(fault == Fault::InvalidLaunch && message.contains("240000 bytes of static"), "{message}");
    assert!(stop(Launch::new([1, 1, 1], [1025, 1, 1], 0, &[0])).1.contains("1024"));
    assert!(stop(Launch::new([0, 1, 1], [1, 1, 1], 0, &[0])).1.contains("at least one block"));
    assert!(stop(Launch::new([1, 1, 1], [1, 1, 1], 0, &[])).1.contains("1 parameters"));
    let f = launch(&loaded, "missing", &Launch::default(), &mut memory, &Options::default()).unwrap_err();
    assert!(f.stop.message.contains("no kernel `missing`; the module has k"));
}

#[test]
fn truncated_texts() {
    for end in (0..TEXT.len()).step_by(61) {
        let _ = lower::module(&TEXT[..end]);
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

/// Tokens deleted, doubled, swapped and replaced by others of the text. What still verifies is run with a
/// small limit of fuel.
#[test]
fn mutated_texts() {
    let tokens: Vec<&str> = lex::tokens(TEXT).unwrap().iter().map(|t| t.text(TEXT)).collect();
    let numbers = ["0", "1", "-1", "4", "31", "32", "0xFFFFFFFF", "0x7FFFFFFFFFFFFFFF", "65536"];
    let mut random = Random(1);
    let (mut verified, mut ended) = (0, 0);
    // PTX_MUTANTS asks for a longer hunt.
    let count = std::env::var("PTX_MUTANTS").ok().and_then(|n| n.parse().ok()).unwrap_or(400);
    for _ in 0..count {
        let mut mutant = tokens.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(mutant.len());
            match random.below(5) {
                0 => {
                    mutant.remove(at);
                }
                1 => mutant.insert(at, mutant[at]),
                2 => mutant[at] = tokens[random.below(tokens.len())],
                3 => {
                    let other = random.below(mutant.len());
                    mutant.swap(at, other);
                }
                _ => {
                    let digit =
                        (at..mutant.len()).find(|&i| mutant[i].starts_with(|c: char| c.is_ascii_digit()));
                    if let Some(i) = digit {
                        mutant[i] = numbers[random.below(numbers.len())];
                    }
                }
            }
        }
        let text = mutant.join(" ").replace(" . ", ".");
        let Ok(tree) = parse::parse(&text) else { continue };
        assert!(parse::parse(&print::print(&tree)).is_ok());
        let Ok(module) = lower::module(&text) else { continue };
        verified += 1;
        let mut memory = Memory::with_limit(1 << 20);
        let Ok(loaded) = memory.load(module) else { continue };
        let names: Vec<String> = loaded.module.kernels().map(str::to_owned).collect();
        let options = Options { fuel: 20_000, memory_limit: 1 << 26, ..Options::default() };
        for name in names {
            let f = &loaded.module.functions[loaded.module.kernel(&name).unwrap()];
            let buffers: Vec<Vec<u8>> = f
                .params
                .iter()
                .map(|p| {
                    let a = memory.upload("b", &[1; 1024]).map_or(0, |a| a);
                    a.to_le_bytes().iter().copied().cycle().take(p.bytes as usize).collect()
                })
                .collect();
            let call = Launch { grid: [2, 1, 1], block: [40, 1, 1], shared_bytes: 64, arguments: buffers };
            ended += usize::from(launch(&loaded, &name, &call, &mut memory, &options).is_ok());
        }
    }
    assert!(verified > 40 && ended > 40, "{verified} {ended}");
}

/// Conversions that ptxas refuses, and forms that need a newer target.
#[test]
fn forms_that_no_target_or_not_this_one_has() {
    let of = |target: &str, registers: &str, instruction: &str| {
        let text = format!(
            ".version 8.8\n.target {target}\n.address_size 64\n.visible .entry k() {{\n{registers}\n{instruction}\nret;\n}}\n"
        );
        hlo_ptx::lower::module(&text).err().map(|all| all[0].message.clone())
    };
    let registers = ".reg .b16 %h<4>; .reg .b32 %r<4>; .reg .b64 %d<4>;";
    for (instruction, says) in [
        ("cvt.sat.u16.u16 %h0, %h1;", "`.sat` has no effect"),
        ("cvt.sat.s64.u32 %d0, %r1;", "`.sat` has no effect"),
        ("cvt.rn.sat.bf16.f32 %h0, %r1;", "`.sat` does not go"),
        ("cvt.rni.u8.bf16 %r0, %h1;", "no conversion"),
        ("cvt.rn.relu.ftz.f16.f32 %h0, %r1;", "`.relu` does not go with `.ftz`"),
        ("cvt.rm.satfinite.f16.f32 %h0, %r1;", "`.rn` and `.rz`"),
        ("cvt.rna.relu.tf32.f32 %r0, %r1;", "`.rna.tf32`"),
        ("mad24.lo.sat.s32 %r0, %r1, %r2, %r3;", "no form"),
    ] {
        let message = of("sm_100a", registers, instruction).unwrap();
        assert!(message.contains(says), "{instruction}: {message}");
    }
    for instruction in [
        "min.f32 %r0, %r1, %r2, %r3;",
        "add.rn.f32x2 %d0, %d1, %d2;",
        "fma.rn.f32.bf16 %r0, %h1, %h2, %r3;",
        "redux.sync.max.f32 %r0, %r1, %r2;",
        "cvt.rn.satfinite.tf32.f32 %r0, %r1;",
    ] {
        let message = of("sm_90", registers, instruction).unwrap();
        assert!(message.contains("needs `.target sm_100`"), "{instruction}: {message}");
        assert_eq!(of("sm_100a", registers, instruction), None);
    }
    // As ptxas takes them: the kind of proxy is one word, what it is of another.
    for (instruction, is_known) in [
        ("fence.proxy.async;", true),
        ("fence.proxy.async.global;", true),
        ("fence.proxy.async.shared::cta;", true),
        ("fence.proxy.async.shared::cluster;", true),
        ("fence.proxy.async::shared::cta;", false),
    ] {
        assert_eq!(of("sm_90", registers, instruction).is_none(), is_known, "{instruction}");
    }
    // What has something to clamp stays.
    assert_eq!(of("sm_90", registers, "cvt.sat.s16.u16 %h0, %h1; cvt.sat.u8.u16 %r0, %h1;"), None);
}
