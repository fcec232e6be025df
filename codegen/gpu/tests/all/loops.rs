//! Loop fusions, data movement, control flow, in-place updates.

use crate::support::{EXACT, check};

#[test]
fn elementwise_and_movement() {
    check(
        "HloModule m\nENTRY e {\n  x = f32[7,33] parameter(0)\n  y = f32[33,7] parameter(1)\n  t = f32[7,33] transpose(y), dimensions={1,0}\n  ROOT s = f32[7,33] add(x, t)\n}\n",
        EXACT,
    );
    check(
        "HloModule m\nENTRY e {\n  x = s32[4,5] parameter(0)\n  z = s32[] constant(7)\n  p = s32[6,11] pad(x, z), padding=1_1x0_2_1\n  r = s32[6,11] reverse(p), dimensions={1}\n  c = s32[12,11] concatenate(p, r), dimensions={0}\n  ROOT b = s32[132] reshape(c)\n}\n",
        EXACT,
    );
}

#[test]
fn four_elements_a_thread() {
    let program = check(
        "HloModule m\nENTRY e {\n  x = f32[2097152] parameter(0)\n  y = f32[2097152] parameter(1)\n  ROOT s = f32[2097152] multiply(x, y)\n}\n",
        EXACT,
    );
    assert!(program.ptx.iter().any(|p| p.contains("ld.global.v4")), "{}", program.ptx.join("\n"));
}

#[test]
fn loops_and_branches() {
    check(
        "HloModule m\nbody {\n  p = (s32[], s32[5]) parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  x = s32[5] get-tuple-element(p), index=1\n  one = s32[] constant(1)\n  j = s32[] add(i, one)\n  y = s32[5] multiply(x, x)\n  ROOT t = (s32[], s32[5]) tuple(j, y)\n}\ncond {\n  p = (s32[], s32[5]) parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  n = s32[] constant(3)\n  ROOT l = pred[] compare(i, n), direction=LT\n}\nENTRY e {\n  x = s32[5] parameter(0)\n  z = s32[] constant(0)\n  t = (s32[], s32[5]) tuple(z, x)\n  w = (s32[], s32[5]) while(t), condition=cond, body=body\n  ROOT r = s32[5] get-tuple-element(w), index=1\n}\n",
        EXACT,
    );
    check(
        "HloModule m\na {\n  x = s32[5] parameter(0)\n  ROOT n = s32[5] negate(x)\n}\nb {\n  x = s32[5] parameter(0)\n  ROOT n = s32[5] add(x, x)\n}\nENTRY e {\n  i = s32[] parameter(0)\n  x = s32[5] parameter(1)\n  ROOT r = s32[5] conditional(i, x, x), branch_computations={a, b}\n}\n",
        EXACT,
    );
}

#[test]
fn updates_in_place() {
    check(
        "HloModule m\nENTRY e {\n  x = f32[10] parameter(0)\n  u = f32[3] parameter(1)\n  i = s32[] parameter(2)\n  y = f32[10] negate(x)\n  ROOT d = f32[10] dynamic-update-slice(y, u, i)\n}\n",
        EXACT,
    );
}
