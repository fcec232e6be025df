#!/usr/bin/env python3
"""Writes regress/control-edges-of-fusions.hlo: fusions of every kind of library operation between control edges.

    make_control_edges.py            needs numpy

Each fusion comes after `n`, on which it does not depend, and before `s`, which does not depend on it; edges are in the entry, in a
loop, a called computation, a branch, and inside of fusions. Expected values are numpy's, on small integers.
"""
import os

import numpy as np

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "regress", "control-edges-of-fusions.hlo")
f32 = np.float32
programs = []
MAX = "max {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] maximum(a, b)\n}\n\n"
ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n\n"
LESS = "less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction=LT\n}\n\n"
GE = "ge {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction=GE\n}\n\n"


def shape(a):
    name = {"float32": "f32", "complex64": "c64", "int32": "s32"}[str(a.dtype)]
    return f"{name}[{','.join(map(str, a.shape))}]"


def text(a):
    if a.ndim:
        return "[" + ", ".join(map(text, a)) + "]"
    v = a[()]
    if isinstance(v, complex) or a.dtype == np.complex64:
        return f"({text(np.real(a))}, {text(np.imag(a))})"
    return repr(v.item()).removesuffix(".0")


def fused(name, args, lines, before="", attrs=", kind=kCustom"):
    body = [f"  p{i} = {shape(a)} parameter({i})" for i, a in enumerate(args)] + ["  " + line for line in lines]
    return before + name + " {\n" + "\n".join(body) + "\n}\n\n"


def test(what, args, lines, results, before="", kind="kCustom"):
    """The lines of a fusion, whose operands are `p0`, ...; `results` those of its root."""
    args, results = [np.asarray(a) for a in args], [np.asarray(r) for r in results]
    out = shape(results[0]) if len(results) == 1 else "(" + ", ".join(map(shape, results)) + ")"
    ps = ", ".join(f"p{i}" for i in range(len(args)))
    x = shape(args[0])
    entry = [f"  p{i} = {shape(a)} parameter({i})" for i, a in enumerate(args)]
    entry += [f"  n = {x} negate(p0)",
              f"  f = {out} fusion({ps}), kind={kind}, calls=fused, control-predecessors={{n}}",
              f"  s = {x} add(n, n), control-predecessors={{f}}",
              f"  ROOT t = ({out}, {x}, {x}) tuple(f, n, s)"]
    programs.append(f"// ==== {what}\n// test: interpret\nHloModule t\n\n" + fused("fused", args, lines, before) + "ENTRY e {\n" + "\n".join(entry) + "\n}\n"
                    + f"// run: e({', '.join(map(text, args))}) == {', '.join(map(text, results + [-args[0], -args[0] - args[0]]))}\n")


x = np.arange(12, dtype=f32).reshape(1, 4, 3) - 5
w = np.array([[[1], [2], [-1]], [[0], [1], [3]]], f32)  # window, features in, features out
conv = np.array([[[sum((x[0, i + k] * w[k, :, 0]).sum() for k in range(2))] for i in range(3)]], f32)
test("convolution", [x, w], ["c = f32[1,3,1] convolution(p0, p1), window={size=2}, dim_labels=b0f_0io->b0f", "ROOT r = f32[1,3,1] negate(c)"], [-conv])
v = np.array([3, -1, 2, 0], f32)
test("sort", [v], ["s = f32[4] sort(p0), dimensions={0}, to_apply=less", "ROOT r = f32[4] add(s, s)"], [2 * np.sort(v)], before=LESS)
c = np.array([1 + 2j, -1, 3, 2 - 1j], np.complex64)
test("fft", [c], ["ROOT r = c64[4] fft(p0), fft_type=FFT, fft_length={4}"], [np.fft.fft(c).astype(np.complex64)])
spd = np.array([[4, 2], [2, 10]], f32)
test("cholesky", [spd], ["l = f32[2,2] cholesky(p0), lower=true", "z = f32[] constant(0)", "i = s32[2,2] iota(), iota_dimension=0", "j = s32[2,2] iota(), iota_dimension=1",
                         "m = pred[2,2] compare(i, j), direction=GE", "b = f32[2,2] broadcast(z), dimensions={}", "ROOT r = f32[2,2] select(m, l, b)"], [np.array([[2, 0], [1, 3]], f32)])
low, rhs = np.array([[2, 0], [1, 4]], f32), np.array([[2], [9]], f32)
test("triangular-solve", [low, rhs], ["ROOT r = f32[2,1] triangular-solve(p0, p1), left_side=true, lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE"], [np.array([[1], [2]], f32)])
y = np.array([1, 5, -2, 4, 0, 3], f32)
test("reduce-window of several elements", [y], ["z = f32[] constant(0)", "ROOT r = f32[4] reduce-window(p0, z), window={size=3}, to_apply=add"], [y[:4] + y[1:5] + y[2:]], before=ADD)
test("topk", [np.array([1, 5, -2, 4], f32)], ["t = (f32[2], s32[2]) topk(p0), k=2, largest=true", "a = f32[2] get-tuple-element(t), index=0", "b = s32[2] get-tuple-element(t), index=1",
                                              "n = f32[2] negate(a)", "ROOT r = (f32[2], s32[2]) tuple(n, b)"], [np.array([-5, -4], f32), np.array([1, 3], np.int32)])
test("select-and-scatter", [np.array([1, 5, 7, 4], f32), np.array([10, 20], f32)], ["z = f32[] constant(0)", "ROOT r = f32[4] select-and-scatter(p0, p1, z), window={size=2 stride=2}, select=ge, scatter=add"],
     [np.array([0, 10, 20, 0], f32)], before=GE + ADD)
test("a custom call that is known", [np.array([1, 4, 4, 2], f32).reshape(1, 4)], ["c = (f32[1,2], u32[1,2]) custom-call(p0), custom_call_target=\"AwsNeuronTopK\", backend_config=\"2\"",
                                                         "ROOT r = f32[1,2] get-tuple-element(c), index=0"], [np.array([[4, 4]], f32)])
test("a custom call that is an annotation", [y], ["c = f32[6] custom-call(p0), custom_call_target=\"Sharding\"", "ROOT r = f32[6] add(c, p0)"], [2 * y])
test("dot", [spd, low], ["d = f32[2,2] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "ROOT r = f32[2,2] subtract(d, p0)"], [spd @ low - spd], kind="kOutput")
test("reduce", [x], ["z = f32[] constant(0)", "s = f32[1,4] reduce(p0, z), dimensions={2}, to_apply=add", "ROOT r = f32[1,4] negate(s)"], [-x.sum(2)], before=ADD, kind="kInput")
test("several elementwise results", [y], ["a = f32[6] add(p0, p0)", "b = f32[6] negate(a)", "ROOT r = (f32[6], f32[6], f32[6]) tuple(a, b, p0)"], [2 * y, -2 * y, y], kind="kLoop")
test("nothing but its operand", [y], ["ROOT r = f32[6] bitcast(p0)"], [y], kind="kLoop")
programs.append("""// ==== in a loop, a call and a branch
// test: interpret
HloModule t

""" + LESS + """sorted {
  p0 = f32[4] parameter(0)
  ROOT s = f32[4] sort(p0), dimensions={0}, to_apply=less
}

sorted.1 {
  p0 = f32[4] parameter(0)
  ROOT s = f32[4] sort(p0), dimensions={0}, to_apply=less
}

sorted.2 {
  p0 = f32[4] parameter(0)
  ROOT s = f32[4] sort(p0), dimensions={0}, to_apply=less
}

body {
  t = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[4] get-tuple-element(t), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  n = f32[4] negate(x)
  f = f32[4] fusion(x), kind=kCustom, calls=sorted, control-predecessors={n}
  y = f32[4] add(n, f)
  z = f32[4] add(y, n), control-predecessors={f}
  ROOT r = (s32[], f32[4]) tuple(next, z)
}

condition {
  t = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  two = s32[] constant(2)
  ROOT c = pred[] compare(i, two), direction=LT
}

callee {
  x = f32[4] parameter(0)
  n = f32[4] negate(x)
  f = f32[4] fusion(x), kind=kCustom, calls=sorted.1, control-predecessors={n}
  ROOT r = f32[4] subtract(f, n), control-predecessors={f}
}

yes {
  x = f32[4] parameter(0)
  n = f32[4] negate(x)
  f = f32[4] fusion(n), kind=kCustom, calls=sorted.2, control-predecessors={n}
  ROOT r = f32[4] add(f, x), control-predecessors={f}
}

no {
  ROOT x = f32[4] parameter(0)
}

ENTRY e {
  x = f32[4] parameter(0)
  p = pred[] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[4]) tuple(zero, x)
  w = (s32[], f32[4]) while(t), condition=condition, body=body
  l = f32[4] get-tuple-element(w), index=1
  c = f32[4] call(x), to_apply=callee
  b = f32[4] conditional(p, x, x), true_computation=yes, false_computation=no
  ROOT r = (f32[4], f32[4], f32[4]) tuple(l, c, b)
}
""")
loop = v
for _ in range(2):
    loop = -loop + np.sort(loop) - loop
for p in (True, False):
    programs[-1] += f"// run: e({text(v)}, {str(p).lower()}) == {text(loop)}, {text(np.sort(v) + v)}, {text(np.sort(-v) + v if p else v)}\n"
programs.append("""// ==== inside of fusions, which are in fusions
// test: interpret
HloModule t

""" + LESS + """inner {
  x = f32[4] parameter(0)
  ROOT s = f32[4] sort(x), dimensions={0}, to_apply=less
}

outer {
  x = f32[4] parameter(0)
  n = f32[4] negate(x)
  f = f32[4] fusion(x), kind=kCustom, calls=inner, control-predecessors={n}
  m = f32[4] add(n, n), control-predecessors={f}
  ROOT r = f32[4] add(f, m)
}

ENTRY e {
  x = f32[4] parameter(0)
  ROOT f = f32[4] fusion(x), kind=kCustom, calls=outer
}
""" + f"// run: e({text(v)}) == {text(np.sort(v) - 2 * v)}\n")
programs.append("""// ==== a scheduled chain
// test: interpret
HloModule t, is_scheduled=true

""" + ADD + LESS + """a {
  x = f32[4] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[3] reduce-window(x, z), window={size=2}, to_apply=add
}

b {
  x = f32[4] parameter(0)
  ROOT r = f32[4] sort(x), dimensions={0}, to_apply=less
}

c {
  x = f32[4] parameter(0)
  y = f32[3] parameter(1)
  z = f32[] constant(0)
  p = f32[4] pad(y, z), padding=0_1
  ROOT r = f32[4] add(x, p)
}

ENTRY e {
  x = f32[4] parameter(0)
  one = f32[3] fusion(x), kind=kCustom, calls=a
  two = f32[4] fusion(x), kind=kCustom, calls=b, control-predecessors={one}
  three = f32[4] fusion(two, one), kind=kLoop, calls=c, control-predecessors={one, two}
  ROOT r = (f32[4], f32[4]) tuple(three, two), control-predecessors={three}
}
""" + f"// run: e({text(v)}) == {text(np.sort(v) + np.append(v[:3] + v[1:], f32(0)))}, {text(np.sort(v))}\n")

with open(HERE, "w") as f:
    f.write("\n".join(programs).replace("// test:", "// origin: numpy\n// test:", 1))
