#!/usr/bin/env python3
"""Writes devices/all-types.hlo: what moves values between devices and hosts, on every element type.

Two values A and B of each type, two replicas; which value goes where follows from the definitions, so the expected
results are written down here by hand, for all types alike. Run it in this folder.
"""
TYPES = {ty: ("1", "2", "2", "0") for ty in
         "s4 s8 s16 s32 s64 u2 u4 u8 u16 u32 u64 f16 bf16 f32 f64 f8e5m2 f8e4m3 f8e4m3fn f8e4m3b11fnuz f8e3m4 f8e5m2fnuz "
         "f8e4m3fnuz f8e8m0fnu f4e2m1fn f6e3m2fn f6e2m3fn".split()}
# A, B, the larger one, and the element whose bits are all 0.
TYPES |= {
    "pred": ("false", "true", "true", "false"),
    "s1": ("0", "-1", "0", "0"),
    "s2": ("1", "-2", "1", "0"),
    "u1": ("0", "1", "1", "0"),
    "c64": ("(1, 2)", "(3, -4)", "(3, -4)", "(0, 0)"),
    "c128": ("(1, 2)", "(3, -4)", "(3, -4)", "(0, 0)"),
}
# The type has no zero: the pattern of no bits is its smallest number.
TYPES["f8e8m0fnu"] = ("1", "2", "2", "bits(0x0)")

PROGRAM = """// ==== {ty}
{origin}// test: interpret
// infeed: [{b}, {a}] | [{a}, {a}]
// outfeed: [{a}, {b}] | [{b}, {b}]
HloModule t, replica_count=2

f {{
  a = {ty}[] parameter(0)
  b = {ty}[] parameter(1)
  ROOT r = {ty}[] maximum(a, b)
}}

ENTRY e {{
  x = {ty}[2] parameter(0)
  places = s32[2] parameter(1)
  t = token[] after-all()
  i = ({ty}[2], token[]) infeed(t)
  id = {ty}[2] get-tuple-element(i), index=0
  it = token[] get-tuple-element(i), index=1
  o = token[] outfeed(x, it), outfeed_shape={ty}[2]
  r = ({ty}[2], u32[], token[]) recv(t), frontend_attributes={{_xla_send_recv_source_target_pairs="{{{{0,1}},{{1,0}}}}"}}
  s = ({ty}[2], u32[], token[]) send(x, t), frontend_attributes={{_xla_send_recv_source_target_pairs="{{{{0,1}},{{1,0}}}}"}}
  rd = ({ty}[2], token[]) recv-done(r)
  sd = token[] send-done(s)
  rv = {ty}[2] get-tuple-element(rd), index=0
  p = {ty}[2] collective-permute(x), source_target_pairs={{{{0,1}},{{1,0}}}}
  ps = ({ty}[2], {ty}[2]) collective-permute-start(x), source_target_pairs={{{{0,1}},{{1,0}}}}
  pd = {ty}[2] collective-permute-done(ps)
  c = {ty}[2] collective-reduce(x), replica_groups={{{{0,1}}}}, to_apply=f
  from = s32[2] constant({{0, 1}})
  sizes = s32[2] constant({{1, 1}})
  ra = {ty}[2] ragged-all-to-all(x, id, from, sizes, places, sizes), replica_groups={{{{0,1}}}}
  ROOT z = ({ty}[2], {ty}[2], {ty}[2], {ty}[2], {ty}[2], {ty}[2]) tuple(id, rv, p, pd, c, ra)
}}
// run: e([{a}, {b}], [0, 0] | [{b}, {b}], [1, 1]) == [{b}, {a}], [{b}, {b}], [{b}, {b}], [{b}, {b}], [{m}, {b}], [{a}, {b}] | [{a}, {a}], [{a}, {b}], [{a}, {b}], [{a}, {b}], [{z}, {z}], [{b}, {b}]
"""

if __name__ == "__main__":
    texts = []
    for n, (ty, (a, b, m, z)) in enumerate(TYPES.items()):
        origin = "// origin: hand\n" if n == 0 else ""
        texts.append(PROGRAM.format(ty=ty, a=a, b=b, m=m, z=z, origin=origin))
    open("devices/all-types.hlo", "w").write("\n".join(texts))
