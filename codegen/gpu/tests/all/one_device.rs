//! Collectives, device numbers and annotations where there is one device.

use crate::support::{EXACT, check};

#[test]
fn collectives_of_one_participant() {
    let add = "f {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n";
    for body in [
        "  ROOT r = f32[4,6] all-reduce(x), replica_groups={}, to_apply=f",
        "  ROOT r = (f32[4,6], f32[4,6]) all-reduce(x, n), replica_groups={{0}}, to_apply=f",
        "  s = f32[4,6] all-reduce-start(x), replica_groups={}, to_apply=f\n  ROOT r = f32[4,6] all-reduce-done(s)",
        "  ROOT r = f32[4,6] all-gather(x), dimensions={0}, replica_groups={{0}}",
        "  s = (f32[4,6], f32[4,6]) all-gather-start(x), dimensions={0}, replica_groups={{0}}\n  ROOT r = f32[4,6] all-gather-done(s)",
        "  ROOT r = f32[4,6] reduce-scatter(x), dimensions={1}, replica_groups={{0}}, to_apply=f",
        "  ROOT r = f32[4,6] all-to-all(x), dimensions={0}, replica_groups={{0}}",
        "  ROOT r = f32[4,6] collective-broadcast(x), replica_groups={{0}}",
        "  ROOT r = f32[4,6] collective-permute(x), source_target_pairs={{0,0}}",
        "  ROOT r = f32[4,6] collective-permute(x), source_target_pairs={}",
        "  s = (f32[4,6], f32[4,6]) collective-permute-start(x), source_target_pairs={{0,0}}\n  d = f32[4,6] collective-permute-done(s)\n  ROOT r = f32[4,6] add(d, d)",
    ] {
        check(
            &format!(
                "HloModule m\n{add}ENTRY e {{\n  x = f32[4,6] parameter(0)\n  n = f32[4,6] negate(x)\n{body}\n}}\n"
            ),
            EXACT,
        );
    }
}

#[test]
fn device_numbers_and_annotations() {
    check(
        "HloModule m\nENTRY e {\n  p = u32[] partition-id()\n  r = u32[] replica-id()\n  x = u32[5] parameter(0)\n  s = u32[] add(p, r)\n  b = u32[5] broadcast(s), dimensions={}\n  ROOT a = u32[5] add(x, b)\n}\n",
        EXACT,
    );
    check(
        "HloModule m\nENTRY e {\n  x = f32[5] parameter(0)\n  n = f32[5] negate(x)\n  s = f32[5] custom-call(n), custom_call_target=\"Sharding\", sharding={replicated}\n  ROOT a = f32[5] add(s, x)\n}\n",
        EXACT,
    );
}
