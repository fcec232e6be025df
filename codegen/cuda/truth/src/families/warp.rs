//! What the threads of a warp and of a block do together: shuffles, votes, matches, reductions, matrices in
//! shared memory, barriers.

use hlo_ptx::spell::{Operand, spellings};
use hlo_ptx::types::Type;

use super::Scale;
use crate::case::{Array, Case, Judge, prologue};
use crate::operands::{Random, element, to_bytes};

fn bytes(n: usize, mut f: impl FnMut(usize) -> u64) -> Vec<u8> {
    to_bytes(&(0..n).map(&mut f).collect::<Vec<_>>(), 4)
}

fn word(name: &str, n: usize, f: impl FnMut(usize) -> u64) -> Array {
    Array::input(name, Type::B32, 4, bytes(n, f))
}

/// All cases of warps and blocks.
#[must_use]
pub fn cases(scale: Scale) -> Vec<Case> {
    let mut all = Vec::new();
    all.extend(shuffles(scale));
    all.extend(votes(scale));
    all.extend(matrices(scale));
    all.extend(barriers(scale));
    all.push(registers());
    all
}

fn case(
    family: &'static str,
    instruction: &str,
    body: String,
    blocks: usize,
    threads: usize,
    fill: crate::case::Fill,
) -> Case {
    Case {
        family,
        instruction: instruction.to_owned(),
        body,
        variables: String::new(),
        blocks: blocks as u32,
        threads: threads as u32,
        fill,
        judge: Judge::Bits,
    }
}

fn shuffles(scale: Scale) -> Vec<Case> {
    let n = scale.results;
    let mut all = Vec::new();
    for mode in ["up", "down", "bfly", "idx"] {
        let name = format!("shfl.sync.{mode}.b32");
        let body = format!(
            "{}.reg .b32 %x, %b, %c, %d, %e; .reg .pred %p;\nld.global.b32 %x, [%a0]; ld.global.b32 %b, [%a1]; ld.global.b32 %c, [%a2];\n\
             {name} %d|%p, %x, %b, %c, 0xffffffff;\nselp.b32 %e, 1, 0, %p; st.global.b32 [%a3], %d; st.global.b32 [%a4], %e;\nret;\n}}",
            prologue(&[4, 4, 4, 4, 4])
        );
        let fill = {
            let name = name.clone();
            move || {
                let mut random = Random::of(&name);
                let clamps = [0, 31, 0x1F, 0x181F, 0x1800, 0x1807, 0x1C03, 0x1E01, 0x1000, 0x100F];
                vec![
                    word("a", n, |_| random.bits() & 0xFFFF_FFFF),
                    word("b", n, |_| {
                        if random.below(8) == 0 { random.bits() & 0xFFFF_FFFF } else { random.below(40) }
                    }),
                    word("c", n, |_| match random.below(8) {
                        0 => random.bits() & 0x1F1F,
                        _ => clamps[random.below(clamps.len() as u64) as usize],
                    }),
                    Array::output("d", Type::B32, 4, n),
                    Array::output("p", Type::Pred, 4, n),
                ]
            }
        };
        all.push(case("warp", &name, body, n / 256, 256, Box::new(fill)));
    }
    all
}

/// Votes, matches and reductions among the members of a mask.
fn votes(scale: Scale) -> Vec<Case> {
    let n = scale.results;
    let mut all = Vec::new();
    for opcode in ["vote", "match", "redux", "elect"] {
        for s in spellings(opcode).into_iter().filter(|s| s.has("sync")) {
            let wide = s.types.first().is_some_and(|t| t.bits() == 64);
            let (load, is_vote) = (if wide { 8 } else { 4 }, opcode == "vote");
            let value = if is_vote { "%q" } else { "%x" };
            let (target, results) = match s.operands[0] {
                Operand::Predicate { .. } => ("%p", 1),
                Operand::Free => ("%d|%p", 2),
                _ => ("%d", 0),
            };
            let operands =
                if opcode == "elect" { format!("{target}, %m") } else { format!("{target}, {value}, %m") };
            let mut body = prologue(&[load, 4, 4, 4]);
            body += &format!(
                ".reg .b{} %x; .reg .b32 %m, %d, %e, %l, %t; .reg .pred %p, %q, %in;\n\
                 ld.global.b{} %x, [%a0]; ld.global.b32 %m, [%a1]; mov.u32 %l, %laneid; mov.b32 %d, 0; mov.b32 %e, 0;\n\
                 shr.u32 %t, %m, %l; and.b32 %t, %t, 1; setp.ne.u32 %in, %t, 0;\n",
                load * 8,
                load * 8
            );
            if is_vote {
                body += "and.b32 %t, %x, 1; setp.ne.u32 %q, %t, 0;\n";
            }
            body += &format!("@!%in bra SKIP;\n{s} {operands};\n");
            if results > 0 {
                body += "selp.b32 %e, 1, 0, %p;\n";
            }
            body += "SKIP:\nst.global.b32 [%a2], %d; st.global.b32 [%a3], %e;\nret;\n}";
            let name = s.to_string();
            let ty = s.types.first().copied().unwrap_or(Type::B32);
            let fill = {
                let name = name.clone();
                move || {
                    let mut random = Random::of(&name);
                    let masks: Vec<u64> = (0..n.div_ceil(32))
                        .map(|_| match random.below(4) {
                            0 => 0xFFFF_FFFF,
                            1 => 1 << random.below(32),
                            2 => random.bits() & 0xFFFF_FFFF,
                            _ => (random.bits() | random.bits()) & 0xFFFF_FFFF,
                        })
                        .map(|m| if m == 0 { 1 } else { m })
                        .collect();
                    let kinds: Vec<u64> = masks.iter().map(|_| random.below(4)).collect();
                    let common = random.bits();
                    let values: Vec<u64> = (0..n)
                        .map(|i| match kinds[i / 32] {
                            0 => common,
                            1 => random.below(3),
                            2 if random.below(16) > 0 => common,
                            _ => element(ty, &mut random),
                        })
                        .collect();
                    vec![
                        Array::input("x", ty, load, to_bytes(&values, load)),
                        word("m", n, |i| masks[i / 32]),
                        Array::output("d", if opcode == "redux" { ty } else { Type::B32 }, 4, n),
                        Array::output("p", Type::Pred, 4, n),
                    ]
                }
            };
            all.push(case("warp", &name, body, n / 256, 256, Box::new(fill)));
        }
    }
    all
}

/// `ldmatrix`, `stmatrix`, `movmatrix`: a warp a block.
fn matrices(scale: Scale) -> Vec<Case> {
    let warps = (scale.results / 64).max(2);
    let n = warps * 32;
    let mut all = Vec::new();
    for opcode in ["ldmatrix", "stmatrix"] {
        for s in spellings(opcode) {
            let count = if s.has("x4") {
                4
            } else if s.has("x2") {
                2
            } else {
                1
            };
            let names: Vec<String> = (0..count).map(|i| format!("%r{i}")).collect();
            let list = format!("{{{}}}", names.join(", "));
            let mut variables = ".shared .align 16 .b8 $K_s[512];\n".to_owned();
            let generic = !s.has("shared") && !s.has("shared::cta");
            let address = if generic { "[%g]" } else { "[%s]" };
            let mut body = prologue(&[16, 4, 16, if opcode == "stmatrix" { 16 } else { 4 * count }]);
            body += ".reg .b32 %v<4>, %w<4>, %r<4>, %s, %t, %row; .reg .b64 %g;\n\
                     mov.u32 %s, $K_s; mov.u32 %t, %tid.x; shl.b32 %t, %t, 4; add.u32 %t, %s, %t;\n\
                     ld.global.b32 %row, [%a1]; shl.b32 %row, %row, 4; add.u32 %s, %s, %row;\n\
                     cvt.u64.u32 %g, %s; cvta.shared.u64 %g, %g;\n\
                     ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%a0]; ld.global.v4.b32 {%w0, %w1, %w2, %w3}, [%a2];\n";
            if opcode == "ldmatrix" {
                body += &format!(
                    "st.shared.v4.b32 [%t], {{%v0, %v1, %v2, %v3}}; bar.sync 0;\n{s} {list}, {address};\n"
                );
                for (i, r) in names.iter().enumerate() {
                    body += &format!("st.global.b32 [%a3+{}], {r};\n", 4 * i);
                }
            } else {
                let list = list.replace("%r", "%v");
                body += &format!(
                    "st.shared.v4.b32 [%t], {{%w0, %w1, %w2, %w3}}; bar.sync 0;\n{s} {address}, {list}; bar.sync 0;\n\
                     ld.shared.v4.b32 {{%r0, %r1, %r2, %r3}}, [%t]; st.global.v4.b32 [%a3], {{%r0, %r1, %r2, %r3}};\n"
                );
            }
            body += "ret;\n}";
            let name = s.to_string();
            let is_store = opcode == "stmatrix";
            let fill = {
                let name = name.clone();
                move || {
                    let mut random = Random::of(&name);
                    let mut rows = Vec::new();
                    for _ in 0..warps {
                        // Distinct rows, so that stores do not meet.
                        let mut order: Vec<u64> = (0..32).collect();
                        (1..32).rev().for_each(|i| order.swap(i, random.below(i as u64 + 1) as usize));
                        rows.extend(order);
                    }
                    let mut data = |name: &str| {
                        Array::input(name, Type::B32, 4, bytes(4 * n, |_| random.bits() & 0xFFFF_FFFF))
                    };
                    let (x, y) = (data("x"), data("y"));
                    vec![
                        x,
                        word("row", n, |i| rows[i]),
                        y,
                        Array::output("d", Type::B32, 4, n * if is_store { 4 } else { count }),
                    ]
                }
            };
            let mut case = case("matrix", &name, body, warps, 32, Box::new(fill));
            std::mem::swap(&mut case.variables, &mut variables);
            all.push(case);
        }
    }
    let name = "movmatrix.sync.aligned.m8n8.trans.b16";
    let body = format!(
        "{}.reg .b32 %x, %d;\nld.global.b32 %x, [%a0];\n{name} %d, %x;\nst.global.b32 [%a1], %d;\nret;\n}}",
        prologue(&[4, 4])
    );
    let fill = move || {
        let mut random = Random::of("movmatrix");
        vec![word("x", n, |_| random.bits() & 0xFFFF_FFFF), Array::output("d", Type::B32, 4, n)]
    };
    all.push(case("matrix", name, body, warps, 32, Box::new(fill)));
    all
}

/// Barriers of blocks, and what goes through shared memory with them; asynchronous copies.
fn barriers(scale: Scale) -> Vec<Case> {
    let blocks = (scale.results / 512).clamp(1, 64);
    let n = blocks * 128;
    let shared = "mov.u32 %s, $K_s; mov.u32 %t, %tid.x; shl.b32 %u, %t, 2; add.u32 %u, %s, %u; \
                  mov.u32 %v, 127; sub.u32 %v, %v, %t; shl.b32 %v, %v, 2; add.u32 %v, %s, %v;\n";
    let exchange = |sync: &str| format!("st.shared.b32 [%u], %x;\n{sync}\nld.shared.b32 %d, [%v];\n");
    let reduce = |text: &str, is_count: bool| {
        let tail = if is_count { "" } else { "selp.b32 %d, 1, 0, %p;" };
        format!("and.b32 %e, %x, 1; setp.ne.u32 %q, %e, 0;\n{text}\n{tail}\n")
    };
    let mut list: Vec<(String, String)> = Vec::new();
    for sync in [
        "bar.sync 0;",
        "bar.sync 15;",
        "bar.sync 3, 128;",
        "barrier.sync 1;",
        "barrier.sync 2, 128;",
        "barrier.sync.aligned 4;",
        "bar.cta.sync 5;",
        "barrier.cta.sync.aligned 6, 128;",
        "membar.cta; bar.sync 0;",
        "fence.acq_rel.cta; bar.sync 0;",
        "fence.sc.gpu; bar.sync 0;",
        "barrier.cluster.arrive; barrier.cluster.wait;",
        "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;",
    ] {
        list.push((sync.to_owned(), exchange(sync)));
    }
    // Two warps write and arrive, the other two wait and read; then the other way round.
    list.push((
        "bar.arrive and bar.sync".to_owned(),
        "setp.lt.u32 %q, %t, 64; mov.b32 %d, %x;\n@%q bra FIRST;\nbar.sync 1, 128;\nld.shared.b32 %d, [%v];\nbra.uni END;\n\
         FIRST:\nst.shared.b32 [%u], %x;\nbar.arrive 1, 128;\nEND:\n"
            .to_owned(),
    ));
    for (text, is_count) in [
        ("bar.red.popc.u32 %d, 0, %q;", true),
        ("bar.red.popc.u32 %d, 1, 128, !%q;", true),
        ("bar.red.and.pred %p, 0, %q;", false),
        ("bar.red.or.pred %p, 2, !%q;", false),
        ("barrier.red.popc.u32 %d, 3, %q;", true),
        ("barrier.cta.red.and.aligned.pred %p, 4, 128, %q;", false),
    ] {
        list.push((text.to_owned(), reduce(text, is_count)));
    }
    for (mode, bytes) in [("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)] {
        for (wait, end) in
            [("cp.async.commit_group; cp.async.wait_group 0;", ""), ("cp.async.wait_all;", "bar.sync 0;")]
        {
            // Threads whose element is at a multiple copy for their neighbours.
            let text = format!(
                "mov.b32 %e, {}; and.b32 %e, %t, %e; setp.eq.u32 %q, %e, 0;\n@%q cp.async.{mode}.shared.global [%u], [%a0], {bytes};\n{wait}\nbar.sync 0;\nld.shared.b32 %d, [%v];\n{end}\n",
                bytes / 4 - 1
            );
            list.push((format!("cp.async.{mode} {bytes} {wait}"), text));
        }
    }
    for size in [0, 4, 12] {
        let text = format!(
            "mov.b32 %e, 3; and.b32 %e, %t, %e; setp.eq.u32 %q, %e, 0;\n@%q cp.async.ca.shared.global [%u], [%a0], 16, {size};\ncp.async.wait_all;\nbar.sync 0;\nld.shared.b32 %d, [%v];\n"
        );
        list.push((format!("cp.async.ca 16, {size}"), text));
    }
    // An mbarrier that all threads arrive at and wait for.
    for (arrive, wait) in [
        ("mbarrier.arrive.shared.b64 %g, [$K_m];", "mbarrier.test_wait.shared.b64 %p, [$K_m], %g;"),
        ("mbarrier.arrive.shared::cta.b64 %g, [$K_m];", "mbarrier.try_wait.shared::cta.b64 %p, [$K_m], %g;"),
        (
            "mbarrier.arrive.release.cta.shared::cta.b64 _, [$K_m];",
            "mbarrier.try_wait.parity.shared::cta.b64 %p, [$K_m], 0;",
        ),
        ("mbarrier.arrive.shared.b64 %g, [$K_m];", "mbarrier.test_wait.parity.shared.b64 %p, [$K_m], 0;"),
    ] {
        let text = format!(
            "setp.ne.u32 %q, %t, 0; @!%q mbarrier.init.shared.b64 [$K_m], 128;\nbar.sync 0;\nst.shared.b32 [%u], %x;\n{arrive}\n\
             WAIT:\n{wait}\n@!%p bra WAIT;\nld.shared.b32 %d, [%v];\n"
        );
        list.push((format!("{arrive} {wait}").replace("$K_m", "m"), text));
    }
    list.into_iter()
        .map(|(name, text)| {
            let body = format!(
                "{}.reg .b32 %x, %d, %e, %s, %t, %u, %v; .reg .pred %p, %q; .reg .b64 %g;\nld.global.b32 %x, [%a0]; mov.b32 %d, 0;\n{shared}{text}st.global.b32 [%a1], %d;\nret;\n}}",
                prologue(&[4, 4])
            );
            let fill = {
                let name = name.clone();
                move || {
                    let mut random = Random::of(&name);
                    let density: Vec<u64> = (0..blocks).map(|_| random.below(4)).collect();
                    let x = |i: usize| {
                        let v = random.bits() & 0xFFFF_FFFE;
                        v | match density[i / 128] {
                            0 => 0,
                            1 => 1,
                            2 => random.below(2),
                            _ => u64::from(random.below(64) > 0),
                        }
                    };
                    vec![word("x", n, x), Array::output("d", Type::B32, 4, n)]
                }
            };
            let mut case = case("barrier", &name, body, blocks, 128, Box::new(fill));
            case.variables = ".shared .align 16 .b8 $K_s[512];\n.shared .align 8 .b64 $K_m;\n".to_owned();
            case
        })
        .collect()
}

/// Registers that say who a thread is.
fn registers() -> Case {
    let names = [
        "tid.x",
        "tid.y",
        "tid.z",
        "ntid.x",
        "ntid.y",
        "ntid.z",
        "ctaid.x",
        "ctaid.y",
        "ctaid.z",
        "nctaid.x",
        "nctaid.y",
        "nctaid.z",
        "laneid",
        "lanemask_eq",
        "lanemask_le",
        "lanemask_lt",
        "lanemask_ge",
        "lanemask_gt",
    ];
    let n = 512;
    let mut body = prologue(&[4 * names.len()]);
    body += ".reg .b32 %d;\n";
    for (i, name) in names.iter().enumerate() {
        body += &format!("mov.u32 %d, %{name}; st.global.b32 [%a0+{}], %d;\n", 4 * i);
    }
    body += "ret;\n}";
    let fill = move || vec![Array::output("d", Type::B32, 4, n * names.len())];
    case("warp", "special registers", body, n / 128, 128, Box::new(fill))
}
