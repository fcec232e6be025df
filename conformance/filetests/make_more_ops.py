#!/usr/bin/env python3
"""Writes those ops/*.hlo whose expected results need more than numpy, or a definition written out.

    make_more_ops.py            needs numpy and jax

rng-bit-generator: bits and states are those of XLA:CPU. rng: Philox and the distributions written out in Python integers and numpy's
f32. ragged-dot, scaled-dot: loops over small integers, which every order and precision sums alike. batch-norm-grad: the
derivative, in exact fractions, rounded once.
"""
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax
import numpy as np
from jax._src.interpreters import mlir as jmlir
from jax._src.lib import xla_client as xc
from jaxlib.mlir import ir

jax.config.update("jax_enable_x64", True)
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ops")


def text(x):
    return str(x.item()) if x.ndim == 0 else "[" + ", ".join(map(text, x)) + "]"


def run(program, arguments):
    """The results of a program on XLA:CPU."""
    module = xc.hlo.hlo_module_from_text(program)
    computation = xc.XlaComputation(module.as_serialized_hlo_module_proto())
    stablehlo = xc._xla.mlir.xla_computation_to_mlir_module(computation)
    device = jax.devices("cpu")[0]
    with jmlir.make_ir_context():
        executable = device.client.compile_and_load(
            ir.Module.parse(stablehlo), xc.DeviceList((device,)), xc.CompileOptions())
    return [np.asarray(x) for x in executable.execute([jax.device_put(x, device) for x in arguments])]


def case(algorithm, ty, shape, state):
    state = np.array(state, np.uint64)
    dims = ",".join(map(str, shape))
    n = len(state)
    program = f"""HloModule t

ENTRY e {{
  p0 = u64[{n}] parameter(0)
  ROOT r = (u64[{n}], {ty}[{dims}]) rng-bit-generator(p0), algorithm={algorithm}
}}
"""
    new, bits = run(program, [state])
    return f"""// ==== {algorithm}, {ty}[{dims}], a state of {n}
// test: interpret
{program}// run: e({text(state)}) == {text(new)}, {text(bits)}
"""


M = 2**64 - 1
cases = []
for shape in [(), (1,), (7,), (8,), (3, 5), (3, 4), (2, 3, 2), (5, 1, 3), (0,), (3, 0)]:
    cases.append(case("rng_three_fry", "u32", shape, [0x123456789ABCDEF, 0xFFFFFFFE]))
for shape in [(), (5,), (2, 3)]:
    cases.append(case("rng_three_fry", "u64", shape, [M, M - 1]))
cases += [case("rng_three_fry", "u8", (3, 3), [1, 2]), case("rng_three_fry", "u16", (5,), [1, 2])]
for shape in [(), (3,), (4,), (9,), (2, 5), (0,)]:
    cases.append(case("rng_philox", "u32", shape, [0x0123456789ABCDEF, 0xFEDCBA9876543210, 77]))
    cases.append(case("rng_default", "u32", shape, [0x0123456789ABCDEF, 0xFEDCBA9876543210]))
cases += [
    case("rng_philox", "u32", (13,), [5, M, M]),
    case("rng_philox", "u32", (13,), [5, M - 1, 3]),
    case("rng_philox", "u64", (5,), [5, 6, 7]),
    case("rng_default", "u64", (2, 2), [M, M]),
    case("rng_philox", "u8", (6,), [5, 6, 7]),
    case("rng_default", "u16", (3, 2), [5, 6]),
]


def write(name, cases, origin="exact"):
    with open(os.path.join(HERE, name + ".hlo"), "w") as f:
        f.write("\n".join(cases).replace("// test: interpret\n", f"// test: interpret\n// origin: {origin}\n", 1))


write("rng-bit-generator", cases, "xla")


def ints(seed, *shape):
    """Small integers that look random."""
    n = int(np.prod(shape))
    return np.array([(i * i * 7 + i * 13 + seed * 5) % 11 - 5 for i in range(n)], np.int64).reshape(shape)


def program(title, result, call, operands, expected, run="e"):
    lines = [f"// ==== {title}", "// test: interpret", "HloModule t", "", "ENTRY e {"]
    lines += [f"  p{i} = {shape} parameter({i})" for i, (shape, _) in enumerate(operands)]
    names = ", ".join(f"p{i}" for i in range(len(operands)))
    op, attrs = call
    lines.append(f"  ROOT r = {result} {op}({names}), {attrs}")
    lines.append("}")
    lines.append(f"// run: e({', '.join(text(x) for _, x in operands)}) == {expected}")
    return "\n".join(lines) + "\n"


def shape(ty, x):
    return f"{ty}[{','.join(map(str, x.shape))}]"


# ragged-dot
ragged = []
for title, sizes in [("all rows", [2, 0, 3]), ("fewer", [1, 2, 0]), ("more than there are", [4, 4, 4])]:
    lhs, rhs, sizes = ints(1, 5, 3), ints(2, 3, 3, 2), np.array(sizes)
    out = np.zeros((5, 2), np.int64)
    end = 0
    for g, size in enumerate(sizes):
        for row in range(end, min(end + size, 5)):
            out[row] = lhs[row] @ rhs[g]
        end += size
    for ty in ["f32", "s32", "bf16"]:
        ragged.append(program(
            f"free: {title}, {ty}", shape(ty, out),
            ("ragged-dot", "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}"),
            [(shape(ty, lhs), lhs), (shape(ty, rhs), rhs), (shape("s32", sizes), sizes)], text(out)))
# A batch with sizes of its own; the ragged dimension before another free one.
lhs, rhs, sizes = ints(3, 2, 4, 2, 3), ints(4, 2, 2, 3, 2), np.array([[1, 2], [3, 1]])
out = np.zeros((2, 4, 2, 2), np.int64)
for b in range(2):
    end = 0
    for g in range(2):
        for row in range(end, end + sizes[b, g]):
            out[b, row] = lhs[b, row] @ rhs[b, g]
        end += sizes[b, g]
ragged.append(program(
    "free: sizes for each batch", shape("f32", out),
    ("ragged-dot", "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={3}, rhs_contracting_dims={2}, "
     "lhs_ragged_dims={1}, rhs_group_dims={1}"),
    [(shape("f32", lhs), lhs), (shape("f32", rhs), rhs), (shape("s64", sizes), sizes)], text(out)))
for title, sizes in [("parts", [2, 0, 2]), ("beyond the end", [3, 5, 1])]:
    lhs, rhs, sizes = ints(5, 2, 5), ints(6, 5, 3), np.array(sizes)
    out, start = np.zeros((3, 2, 3), np.int64), 0
    for g, size in enumerate(sizes):
        rows = slice(min(start, 5), min(start + size, 5))
        out[g] = lhs[:, rows] @ rhs[rows]
        start += size
    ragged.append(program(
        f"contracting: {title}", shape("f32", out),
        ("ragged-dot", "lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}"),
        [(shape("f32", lhs), lhs), (shape("f32", rhs), rhs), (shape("s32", sizes), sizes)], text(out)))
lhs, rhs, sizes = ints(7, 4, 2, 3), ints(8, 4, 3, 2), np.array([1, 2])
out = lhs @ rhs
out[3:] = 0
ragged.append(program(
    "batch: the last in no group", shape("f32", out),
    ("ragged-dot", "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={0}"),
    [(shape("f32", lhs), lhs), (shape("f32", rhs), rhs), (shape("s32", sizes), sizes)], text(out)))
write("ragged-dot", ragged)

# scaled-dot: blocks of 2 along the contracting dimension
lhs, rhs = ints(1, 3, 4).clip(-3, 4), ints(2, 4, 2).clip(-3, 4)
lhs_scale, rhs_scale = np.array([[1, 2], [0.5, 4], [2, 1]]), np.array([[2, 1], [0.25, 2]])
out = (lhs * lhs_scale.repeat(2, 1)) @ (rhs * rhs_scale.repeat(2, 0))
attrs = ("scaled-dot", "lhs_contracting_dims={1}, rhs_contracting_dims={0}")
scaled = []
for ty, scale, result in [("f8e4m3fn", "f8e8m0fnu", "f32"), ("f8e5m2", "f8e8m0fnu", "bf16"), ("f4e2m1fn", "f8e8m0fnu", "f32"),
                          ("bf16", "bf16", "f32")]:
    scaled.append(program(
        f"{ty} by {scale}", shape(result, out), attrs,
        [(shape(ty, lhs), lhs), (shape(ty, rhs), rhs), (shape(scale, lhs_scale), lhs_scale),
         (shape(scale, rhs_scale), rhs_scale)], text(out)))
one = (lhs * lhs_scale.repeat(2, 1)) @ rhs
scaled.append(program(
    "no scale is a scalar of bf16", shape("f32", one), attrs,
    [(shape("f8e4m3fn", lhs), lhs), (shape("bf16", rhs), rhs), (shape("f8e8m0fnu", lhs_scale), lhs_scale),
     ("bf16[]", np.array(1.0))], text(one)))
write("scaled-dot", scaled)

# batch-norm-grad: chosen so that sqrt(variance + epsilon) is 2
from fractions import Fraction as F

x, g = ints(3, 2, 3, 2), ints(9, 2, 3, 2)
scale, mean, variance = np.array([2, -1, 3]), np.array([1, 0, -2]), np.array([3, 3, 3])
n, d = 4, 2
of_scale, of_offset, of_x = [], [], np.empty(x.shape, object)
for f in range(3):
    centered = x[:, f, :] - mean[f]
    correlation = int((g[:, f, :] * centered).sum())
    total = int(g[:, f, :].sum())
    of_scale.append(F(correlation, d))
    of_offset.append(F(total))
    for i in range(2):
        for j in range(2):
            inner = n * int(g[i, f, j]) - total - F(int(centered[i, j]) * correlation, d * d)
            of_x[i, f, j] = F(int(scale[f]), d * n) * inner
rounded = lambda x: np.array([float(v) for v in np.array(x, object).ravel()]).reshape(np.array(x, object).shape)
grads = []
for ty in ["f32", "f64", "bf16"]:
    results = [rounded(of_x), rounded(of_scale), rounded(of_offset)]
    vector = f"{ty}[3]"
    grads.append(program(
        ty, f"({shape(ty, x)}, {vector}, {vector})", ("batch-norm-grad", "epsilon=1, feature_index=1"),
        [(shape(ty, x), x), (vector, scale), (vector, mean), (vector, variance), (shape(ty, g), g)],
        ", ".join(map(text, results))))
write("batch-norm-grad", grads)

# rng: the scheme of SEMANTICS.md, written out. Seed 0, one device, ordinal 2.
import math

import ml_dtypes


def philox(key, counter):
    x = [counter >> (32 * i) & 0xFFFFFFFF for i in range(4)]
    k = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        p0, p1 = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57
        x = [p1 >> 32 ^ x[1] ^ k[0], p1 & 0xFFFFFFFF, p0 >> 32 ^ x[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return x


KEY = (2 * 0x9E3779B97F4A7C15 & M) >> 32


def words32(n, first=0x7012395):
    return [w for i in range(-(-n // 4)) for w in philox(KEY, first + i)][:n]


def words64(n, first=0x7012395):
    blocks = [philox(KEY, first + i) for i in range(-(-n // 2))]
    return [w for b in blocks for w in (b[0] | b[1] << 32, b[2] | b[3] << 32)][:n]


def uniform(ty, words, bits, low, high):
    return [ty(ty(ty(w >> (words_bits - bits)) * ty(2.0**-bits)) * ty(ty(high) - ty(low))) + ty(low)
            for w in words for words_bits in [32 if bits == 23 else 64]]


def normal(n, mean, deviation):
    f = np.float32
    u = uniform(f, words32(n), 23, 0, 1)
    out = []
    for a, b in zip(u[::2], u[1::2]):
        angle, radius2 = f(2 * np.pi) * b, f(-2) * f(math.log(float(max(a, f(1e-7)))))
        radius = np.sqrt(radius2)
        for part in (math.sin, math.cos):
            out.append(f(mean) + f(deviation) * (f(part(float(angle))) * radius))
    return out


def rng(title, ty, n, distribution, a, b, values):
    values = "[" + ", ".join(str(int(v)) if isinstance(v, int) else repr(float(v)) for v in values) + "]"
    return f"""// ==== {title}
// test: interpret
HloModule t

ENTRY e {{
  a = {ty}[] constant({a})
  b = {ty}[] constant({b})
  ROOT r = {ty}[{n}] rng(a, b), distribution=rng_{distribution}, frontend_attributes={{rng_ordinal="2"}}
}}
// run: e() == {values}
"""


half = [float(ml_dtypes.bfloat16(v)) for v in uniform(np.float32, words32(5), 23, -1, 1)]
write("rng", [
    rng("uniform f32", "f32", 6, "uniform", -1, 3, uniform(np.float32, words32(6), 23, -1, 3)),
    rng("uniform f64", "f64", 3, "uniform", 0.5, 0.75, uniform(np.float64, words64(3), 52, 0.5, 0.75)),
    rng("uniform bf16, through f32", "bf16", 5, "uniform", -1, 1, half),
    rng("uniform s32", "s32", 7, "uniform", -5, 6, [-5 + w % 11 for w in words32(7)]),
    rng("uniform u64", "u64", 3, "uniform", 10, 1000000000000, [10 + w % (10**12 - 10) for w in words64(3)]),
    rng("uniform u8", "u8", 5, "uniform", 3, 200, [3 + w % 197 for w in words32(5)]),
    rng("an empty range", "u32", 3, "uniform", 7, 7, [(7 + w) & 0xFFFFFFFF for w in words32(3)]),
    rng("normal f32", "f32", 6, "normal", 1, 2, normal(6, 1, 2)),
    # Two executions of one instruction go on where it stopped.
    f"""// ==== a loop
// test: interpret
HloModule t

body {{
  zero = f32[] constant(0)
  one = f32[] constant(1)
  r = f32[1] rng(zero, one), distribution=rng_uniform, frontend_attributes={{rng_ordinal="2"}}
  p = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[2] get-tuple-element(p), index=1
  y = f32[2] dynamic-update-slice(x, r, i)
  step = s32[] constant(1)
  n = s32[] add(i, step)
  ROOT t = (s32[], f32[2]) tuple(n, y)
}}

condition {{
  p = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  two = s32[] constant(2)
  ROOT c = pred[] compare(i, two), direction=LT
}}

ENTRY e {{
  i = s32[] constant(0)
  x = f32[2] constant({{0, 0}})
  s = (s32[], f32[2]) tuple(i, x)
  w = (s32[], f32[2]) while(s), condition=condition, body=body
  ROOT r = f32[2] get-tuple-element(w), index=1
}}
// run: e() == [{float(uniform(np.float32, words32(1), 23, 0, 1)[0])!r}, {float(uniform(np.float32, words32(1, 0x7012396), 23, 0, 1)[0])!r}]
""",
])
write("rng-get-and-update-state", ["""// ==== one state for each instruction
// test: interpret
HloModule t

ENTRY e {
  a = u64[2] rng-get-and-update-state(), delta=3
  b = u64[2] rng-get-and-update-state(), delta=3
  ROOT t = (u64[2], u64[2]) tuple(a, b)
}
// run: e() == [117515157, 0], [117515157, 0]
"""])
