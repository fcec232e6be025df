//! Barriers, divergence and progress, on small kernels of their own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use hlo_ptx::report::Fault;
use hlo_ptx::{Failure, Launch, Memory, Options, Outcome, launch, lower};

fn kernel(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 x) {{\n.reg .pred %p<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<9>;\n.shared .align 4 .b8 s[1024];\n\
         ld.param.u64 %rd1, [x];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\nshl.b32 %r2, %r1, 2;\nmov.u32 %r3, s;\nadd.u32 %r4, %r3, %r2;\n{body}\nret;\n}}\n"
    )
}

fn run(body: &str, threads: u32) -> (Result<Outcome, Failure>, Vec<u32>) {
    let text = kernel(body);
    let module = lower::module(&text).unwrap_or_else(|d| panic!("{}", d[0]));
    let mut memory = Memory::default();
    let loaded = memory.load(module).unwrap();
    let x = memory.upload("x", &vec![0; 4 * threads as usize]).unwrap();
    let options = Options { fuel: 1_000_000, ..Options::default() };
    let r = launch(&loaded, "k", &Launch::new([1, 1, 1], [threads, 1, 1], 0, &[x]), &mut memory, &options);
    let out = memory.read(x, 4 * u64::from(threads)).unwrap();
    (r, out.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect())
}

fn clean(body: &str, threads: u32) -> Vec<u32> {
    let (r, out) = run(body, threads);
    let o = r.unwrap_or_else(|f| panic!("{f}"));
    assert!(o.reports.is_empty(), "{}", o.reports[0]);
    out
}

fn faults(body: &str, threads: u32) -> Vec<Fault> {
    match run(body, threads).0 {
        Ok(o) => o.reports.iter().map(|r| r.fault).collect(),
        Err(f) => f.reports.iter().map(|r| r.fault).chain([f.stop.fault]).collect(),
    }
}

#[test]
fn lanes_make_progress_independently() {
    // Lane 0 waits in a loop for what lane 1 stores behind it in the program.
    let body = "setp.ne.u32 %p1, %r1, 0; @%p1 bra STORE;\n\
        SPIN: ld.volatile.shared.u32 %r5, [s]; setp.ne.u32 %p2, %r5, 7; @%p2 bra SPIN; bra DONE;\n\
        STORE: mov.u32 %r6, 7; setp.eq.u32 %p3, %r1, 1; @%p3 st.volatile.shared.u32 [s], %r6;\n\
        DONE: st.global.u32 [%rd3], %r1;";
    // Reading what was not written yet is reported; initialize first.
    let init = format!(
        "mov.u32 %r7, 0; setp.eq.u32 %p4, %r1, 0; @%p4 st.shared.u32 [s], %r7; bar.warp.sync -1;\n{body}"
    );
    assert_eq!(clean(&init, 32), (0..32).collect::<Vec<_>>());
}

#[test]
fn named_and_counted_barriers() {
    // Warps 0 and 1 hand over on barrier 1; warps 2 and 3 on barrier 2.
    let body = "st.shared.u32 [%r4], %r1; shr.u32 %r5, %r1, 6; add.u32 %r5, %r5, 1;\n\
        barrier.sync %r5, 64; xor.b32 %r6, %r2, 128; add.u32 %r6, %r6, %r3; ld.shared.u32 %r7, [%r6]; st.global.u32 [%rd3], %r7;";
    assert_eq!(clean(body, 128), (0..128).map(|t| t ^ 32).collect::<Vec<_>>());
    // Reading from the other pair is a race.
    let wrong = body.replace("xor.b32 %r6, %r2, 128", "xor.b32 %r6, %r2, 256");
    assert!(
        faults(&wrong, 128)
            .iter()
            .any(|f| matches!(f, Fault::ReadAfterWrite | Fault::WriteAfterRead | Fault::UninitializedMemory))
    );
    // A producer arrives, a consumer syncs.
    let body = "setp.lt.u32 %p1, %r1, 32; @%p1 bra PRODUCE;\n\
        bar.sync 1, 64; sub.u32 %r5, %r4, 128; ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd3], %r6; ret;\n\
        PRODUCE: mul.lo.u32 %r7, %r1, 3; st.shared.u32 [%r4], %r7; bar.arrive 1, 64; st.global.u32 [%rd3], %r1;";
    let out = clean(body, 64);
    assert_eq!(out[32..], (0..32).map(|t| 3 * t).collect::<Vec<_>>());
    // The producer writes again without waiting for the consumer.
    let wrong = body.replace("bar.arrive 1, 64;", "bar.arrive 1, 64; st.shared.u32 [%r4], %r1;");
    assert!(faults(&wrong, 64).iter().any(|f| matches!(f, Fault::ReadAfterWrite | Fault::WriteAfterRead)));
}

#[test]
fn reductions_over_a_barrier() {
    let body = "setp.lt.u32 %p1, %r1, 40; bar.red.popc.u32 %r5, 0, %p1; bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 0, %p1;\n\
        selp.u32 %r6, 100, 0, %p2; selp.u32 %r7, 1000, 0, %p3; add.u32 %r5, %r5, %r6; add.u32 %r5, %r5, %r7; st.global.u32 [%rd3], %r5;";
    assert_eq!(clean(body, 64), vec![1040; 64]);
}

#[test]
fn threads_that_ended_are_not_waited_for() {
    let body = "setp.ge.u32 %p1, %r1, 40; @%p1 ret; st.global.u32 [%rd3], %r1; bar.sync 0;";
    assert_eq!(clean(body, 64)[..40], (0..40).collect::<Vec<_>>());
}

#[test]
fn barriers_that_never_complete() {
    let body = "setp.ge.u32 %p1, %r1, 32; @%p1 bra B; bar.sync 0; ret; B: bar.sync 1; ret;";
    assert_eq!(faults(body, 64).last(), Some(&Fault::DivergentBlock));
    let body = "bar.sync 3, 96;";
    assert_eq!(faults(body, 64).last(), Some(&Fault::DivergentBlock));
    let body = "setp.ge.u32 %p1, %r1, 16; @%p1 bra B; bar.warp.sync -1; ret; B: bar.sync 0; ret;";
    assert!(matches!(faults(body, 32).last(), Some(Fault::DivergentBlock | Fault::InvalidMask)));
    assert_eq!(faults("mov.u32 %r5, 33; bar.sync 0, %r5;", 64).last(), Some(&Fault::InvalidBarrier));
}

#[test]
fn divergent_lanes_meet_at_the_post_dominator() {
    // Each lane has its own number of iterations; behind the loop all vote together.
    let body = "mov.u32 %r5, 0; LOOP: add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r1; @%p1 bra LOOP;\n\
        activemask.b32 %r6; vote.sync.ballot.b32 %r7, %p1, -1; add.u32 %r7, %r7, %r5; setp.eq.u32 %p2, %r6, -1; selp.u32 %r8, %r7, 0, %p2; st.global.u32 [%rd3], %r8;";
    assert_eq!(clean(body, 32), (0..32).map(|t: u32| t.max(1)).collect::<Vec<_>>());
    // Nested, with shuffles that both sides execute for the whole warp at different instructions.
    let body = "and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 0; @%p1 bra EVEN;\n\
        shfl.sync.bfly.b32 %r6, %r1, 1, 31, -1; bra JOIN;\n\
        EVEN: shfl.sync.bfly.b32 %r6, %r1, 1, 31, -1;\nJOIN: st.global.u32 [%rd3], %r6;";
    assert_eq!(clean(body, 32), (0..32).map(|t| t ^ 1).collect::<Vec<_>>());
}

#[test]
fn races_between_lanes_of_a_warp() {
    let body = "st.shared.u32 [%r4], %r1; xor.b32 %r5, %r2, 4; add.u32 %r5, %r5, %r3; SYNC ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd3], %r6;";
    assert_eq!(faults(&body.replace("SYNC", ""), 32), [Fault::ReadAfterWrite]);
    assert_eq!(
        clean(&body.replace("SYNC", "bar.warp.sync -1;"), 32),
        (0..32).map(|t| t ^ 1).collect::<Vec<_>>()
    );
    assert_eq!(clean(&body.replace("SYNC", "bar.sync 0;"), 32)[5], 4);
    // A shuffle orders no memory.
    assert_eq!(
        faults(&body.replace("SYNC", "shfl.sync.idx.b32 %r9, %r1, 0, 31, -1;"), 32),
        [Fault::ReadAfterWrite]
    );
    // Lanes that store the same value to one address are no race; different values are.
    assert!(faults("mov.u32 %r5, 3; st.shared.u32 [s], %r5;", 32).is_empty());
    assert_eq!(faults("st.shared.u32 [s], %r1;", 32), [Fault::WriteAfterWrite]);
    // Bytes of one word are different addresses.
    assert!(faults("add.u32 %r5, %r3, %r1; st.shared.u8 [%r5], %r1;", 32).is_empty());
}

#[test]
fn mbarriers() {
    let body = "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY; mbarrier.init.shared.b64 [s+512], 64; READY: bar.sync 0;\n\
        st.shared.u32 [%r4], %r1; mbarrier.arrive.shared.b64 %rd5, [s+512];\n\
        WAIT: mbarrier.try_wait.shared.b64 %p2, [s+512], %rd5; @!%p2 bra WAIT;\n\
        xor.b32 %r5, %r2, 128; add.u32 %r5, %r5, %r3; ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd3], %r6;";
    assert_eq!(clean(body, 64), (0..64).map(|t| t ^ 32).collect::<Vec<_>>());
    assert!(faults("mbarrier.arrive.shared.b64 %rd5, [s];", 1).contains(&Fault::InvalidMbarrier));
}
