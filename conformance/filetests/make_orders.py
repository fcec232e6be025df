#!/usr/bin/env python3
"""Writes orders/*.hlo: reductions, windows, scatters and sorts by computations for which order matters, in the order that
SEMANTICS.md states, and long windows that are computed by shortcuts. Expected values come from the loops below, in Python's
integers wrapped to 32 bits.

    make_orders.py            needs numpy
"""
import itertools
import os

import numpy as np

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "orders")
os.makedirs(HERE, exist_ok=True)


def wrap(x):
    return (int(x) + 2**31) % 2**32 - 2**31


def text(x):
    x = np.asarray(x)
    return str(int(x)) if x.ndim == 0 else "[" + ", ".join(map(text, x)) + "]"


def ints(seed, *shape, span=19):
    n = int(np.prod(shape))
    return np.array([(i * i * 31 + i * 17 + seed * 101) % 1009 % span - span // 2 for i in range(n)], np.int64).reshape(shape)


def shape(x):
    return "s32[" + ",".join(map(str, np.asarray(x).shape)) + "]"


# 3 a + b: neither associative nor commutative.
MIX = """mix {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  three = s32[] constant(3)
  t = s32[] multiply(a, three)
  ROOT r = s32[] add(t, b)
}
"""
mix = lambda a, b: wrap(3 * int(a) + int(b))


def simple(op):
    return f"{op} {{\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT r = s32[] {op}(a, b)\n}}\n"


OPS = {"mix": (MIX, mix), "maximum": (simple("maximum"), max), "minimum": (simple("minimum"), min),
       "multiply": (simple("multiply"), lambda a, b: wrap(int(a) * int(b))), "add": (simple("add"), lambda a, b: wrap(int(a) + int(b))),
       "xor": (simple("xor"), lambda a, b: wrap(int(a) ^ int(b)))}


def case(title, computations, call, operands, results):
    lines = [f"// ==== {title}", "// test: interpret", "HloModule t", "", computations + "", "ENTRY e {"]
    lines += [f"  p{i} = {shape(x)} parameter({i})" for i, x in enumerate(operands)]
    op, attrs = call
    of = shape(results[0]) if len(results) == 1 else "(" + ", ".join(map(shape, results)) + ")"
    lines += [f"  ROOT r = {of} {op}({', '.join(f'p{i}' for i in range(len(operands)))}), {attrs}", "}"]
    lines.append(f"// run: e({', '.join(map(text, operands))}) == {', '.join(map(text, results))}")
    return "\n".join(lines) + "\n"


def write(name, cases):
    with open(os.path.join(HERE, name + ".hlo"), "w") as f:
        f.write("\n".join(cases).replace("// test: interpret\n", "// test: interpret\n// origin: exact\n", 1))


# reduce
cases = []
for name, sizes, dims in [("mix", (2, 3, 4), d) for r in range(4) for d in itertools.combinations(range(3), r)] + [
        ("mix", (3, 1, 5, 2), (0, 2)), ("xor", (3, 1, 5, 2), (1, 3)), ("multiply", (4, 5, 3), (0, 2)), ("maximum", (4, 37), (1,)),
        ("minimum", (37, 4), (0,)), ("mix", (40,), (0,)), ("mix", (3, 0, 2), (1,)), ("mix", (0, 3), (1,)), ("add", (70,), (0,))]:
    text_of, f = OPS[name]
    x, init = ints(len(cases), *sizes), np.int64(5)
    kept = [d for d in range(len(sizes)) if d not in dims]
    out = np.full([sizes[d] for d in kept], init, np.int64)
    for index in np.ndindex(*sizes):
        at = tuple(index[d] for d in kept)
        out[at] = f(out[at], x[index])
    cases.append(case(f"{name} over {set(dims) or '{}'} of {sizes}", text_of,
                      ("reduce", f"dimensions={{{','.join(map(str, dims))}}}, to_apply={name}"), [x, init], [out]))
# Two operands in step: the place of the largest, the first of equals.
ARG = """arg {
  a = s32[] parameter(0)
  ai = s32[] parameter(1)
  b = s32[] parameter(2)
  bi = s32[] parameter(3)
  keep = pred[] compare(a, b), direction=GE
  v = s32[] select(keep, a, b)
  i = s32[] select(keep, ai, bi)
  ROOT r = (s32[], s32[]) tuple(v, i)
}
"""
x = ints(4, 6, 9, span=5)
i = np.arange(54).reshape(6, 9)
for dims in [(0,), (1,), (0, 1)]:
    kept = [d for d in range(2) if d not in dims]
    best, place = np.full([x.shape[d] for d in kept], -99), np.full([x.shape[d] for d in kept], -1)
    for index in np.ndindex(*x.shape):
        at = tuple(index[d] for d in kept)
        if not best[at] >= x[index]:
            best[at], place[at] = x[index], i[index]
    cases.append(case(f"the largest and its place over {set(dims)}", ARG,
                      ("reduce", f"dimensions={{{','.join(map(str, dims))}}}, to_apply=arg"),
                      [x, i, np.int64(-99), np.int64(-1)], [best, place]))
write("reduce", cases)


# reduce-window
def windows(sizes, axes):
    """For each output index the operand's indices, in order. An axis: size, stride, low, high, base and window dilation."""
    def dilated(n, d):
        return (n - 1) * d + 1 if n else 0
    outs = []
    for n, (w, s, lo, hi, bd, wd) in zip(sizes, axes):
        room = dilated(n, bd) + lo + hi - dilated(w, wd)
        outs.append(room // s + 1 if room >= 0 and dilated(n, bd) + lo + hi > 0 else 0)
    places = {}
    for o in np.ndindex(*outs):
        places[o] = []
        for w in np.ndindex(*[a[0] for a in axes]):
            p = [oi * a[1] + wi * a[5] - a[2] for oi, wi, a in zip(o, w, axes)]
            if all(q >= 0 and q % a[4] == 0 and q // a[4] < n for q, a, n in zip(p, axes, sizes)):
                places[o].append(tuple(q // a[4] for q, a in zip(p, axes)))
    return outs, places


def window_text(axes):
    x = lambda f: "x".join(f(a) for a in axes)
    return (f"window={{size={x(lambda a: str(a[0]))} stride={x(lambda a: str(a[1]))} pad={x(lambda a: f'{a[2]}_{a[3]}')} "
            f"lhs_dilate={x(lambda a: str(a[4]))} rhs_dilate={x(lambda a: str(a[5]))}}}")


cases = []
ONE = (1, 1, 0, 0, 1, 1)
for sizes, axes in [((7,), [(3, 1, 0, 0, 1, 1)]), ((7,), [(3, 2, 2, 2, 1, 1)]), ((5,), [(3, 1, 1, 2, 3, 2)]),
                    ((9,), [(9, 1, 8, 0, 1, 1)]), ((9,), [(9, 1, 0, 8, 1, 1)]), ((40,), [(7, 1, 3, 3, 1, 1)]),
                    ((41,), [(40, 1, 39, 39, 1, 1)]), ((41,), [(6, 3, 10, 9, 1, 1)]), ((30,), [(5, 1, -2, -3, 1, 1)]),
                    ((4, 5), [(2, 1, 1, 0, 1, 1), (3, 2, 1, 1, 1, 1)]), ((4, 5), [(2, 1, 1, 0, 2, 1), (2, 2, 1, 1, 1, 2)]),
                    ((12, 11), [(8, 2, 3, 4, 1, 1), (7, 1, 6, 0, 1, 1)]), ((3, 8, 2), [ONE, (8, 1, 7, 0, 1, 1), ONE]),
                    ((3, 8, 2), [ONE, (3, 2, 1, 1, 1, 1), ONE]), ((2, 0, 3), [ONE, (2, 1, 1, 1, 1, 1), ONE]),
                    ((3,), [(2, 1, 4, 4, 1, 1)]), ((16, 3), [(9, 1, 4, 4, 2, 3), ONE])]:
    for name in ["mix", "maximum", "multiply", "minimum"]:
        text_of, f = OPS[name]
        x, init = ints(len(cases), *sizes), np.int64(2 if name != "maximum" else -4)
        outs, places = windows(sizes, axes)
        out = np.zeros(outs, np.int64)
        for o, elements in places.items():
            acc = init
            for p in elements:
                acc = f(acc, x[p])
            out[o] = acc
        cases.append(case(f"{name}, {window_text(axes)} on {sizes}", text_of,
                          ("reduce-window", f"{window_text(axes)}, to_apply={name}"), [x, init], [out]))
x, i = ints(8, 5, 6, span=4), np.arange(30).reshape(5, 6)
axes = [(3, 2, 1, 1, 1, 1), (2, 1, 0, 1, 1, 1)]
outs, places = windows(x.shape, axes)
best, place = np.full(outs, -99), np.full(outs, -1)
for o, elements in places.items():
    for p in elements:
        if not best[o] >= x[p]:
            best[o], place[o] = x[p], i[p]
cases.append(case("two operands", ARG, ("reduce-window", f"{window_text(axes)}, to_apply=arg"),
                  [x, i, np.int64(-99), np.int64(-1)], [best, place]))
write("reduce-window", cases)

# select-and-scatter
SELECT = "ge {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction=GE\n}\n"
cases = []
for sizes, axes in [((4, 6), [(2, 2, 0, 0, 1, 1), (3, 1, 1, 1, 1, 1)]), ((7,), [(3, 2, 1, 1, 1, 1)]), ((3,), [(2, 1, 3, 1, 1, 1)])]:
    for name in ["add", "mix", "maximum"]:
        text_of, f = OPS[name]
        x = ints(len(cases) + 3, *sizes, span=6)
        outs, places = windows(sizes, axes)
        source, init = ints(len(cases) + 9, *outs), np.int64(1)
        out = np.full(sizes, init, np.int64)
        for o in np.ndindex(*outs):
            chosen = None
            for p in places[o]:
                if chosen is None or not x[chosen] >= x[p]:
                    chosen = p
            if chosen is not None:
                out[chosen] = f(source[o], out[chosen])
        cases.append(case(f"{name}, {window_text(axes)} on {sizes}", SELECT + "\n" + text_of,
                          ("select-and-scatter", f"{window_text(axes).split(' lhs_')[0]}}}, select=ge, scatter={name}"),
                          [x, source, init], [out]))
write("select-and-scatter", cases)

# scatter: many updates of the same places
cases = []
for name in ["mix", "add", "multiply", "minimum"]:
    text_of, f = OPS[name]
    for n, k in [(5, 40), (40, 9)]:
        x, updates = ints(1, n), ints(2, k)
        index = (np.arange(k) * 7) % (n + 1) - (np.arange(k) % 4 == 3) * 2
        out = x.copy()
        for u, at in zip(updates, index):
            if 0 <= at < n:
                out[at] = f(out[at], u)
        cases.append(case(f"{name}: {k} updates of {n}", text_of,
                          ("scatter", "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
                           f"index_vector_dim=1, to_apply={name}"), [x, index, updates], [out]))
    # Windows of rows, dropped whole where they reach outside.
    x, updates = ints(3, 6, 4), ints(4, 5, 2, 3)
    index = np.array([[0, 0], [1, 1], [5, 0], [4, 1], [1, 2]])
    out = x.copy()
    for u, (r, c) in zip(updates, index):
        if 0 <= r <= 4 and 0 <= c <= 1:
            for i in range(2):
                for j in range(3):
                    out[r + i, c + j] = f(out[r + i, c + j], u[i, j])
    cases.append(case(f"{name}: windows", text_of,
                      ("scatter", "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, "
                       f"index_vector_dim=1, to_apply={name}"), [x, index, updates], [out]))
    # The batch dimension of the updates last, and a batching dimension of the operand.
    x, updates = ints(5, 2, 5, 3), ints(6, 3, 2, 4)
    index = np.array([[0, 3, 3, 9], [4, 4, 4, 0]])
    out = x.copy()
    for b in range(2):
        for u in range(4):
            at = index[b, u]
            if 0 <= at < 5:
                for j in range(3):
                    out[b, at, j] = f(out[b, at, j], updates[j, b, u])
    cases.append(case(f"{name}: batching", text_of,
                      ("scatter", "update_window_dims={0}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, "
                       f"input_batching_dims={{0}}, scatter_indices_batching_dims={{0}}, index_vector_dim=2, to_apply={name}"),
                      [x, index, updates], [out]))
write("scatter", cases)


# sort: comparators that are no order
def merge_sort(rows, before):
    order, width = list(range(len(rows))), 1
    while width < len(order):
        merged = []
        for at in range(0, len(order), 2 * width):
            left, right = order[at:at + width], order[at + width:at + 2 * width]
            while left and right:
                merged.append((right if before(rows[right[0]], rows[left[0]]) else left).pop(0))
            merged += left + right
        order, width = merged, 2 * width
    return order


COMPARE = "c {{\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n{}\n}}\n"
CYCLE = """  three = s32[] constant(3)
  d = s32[] subtract(b, a)
  m = s32[] remainder(d, three)
  one = s32[] constant(1)
  ROOT r = pred[] compare(m, one), direction=EQ"""
cases = []
for title, body, before in [
        ("less", "  ROOT r = pred[] compare(a, b), direction=LT", lambda a, b: a < b),
        ("greater", "  ROOT r = pred[] compare(a, b), direction=GT", lambda a, b: a > b),
        ("swapped", "  ROOT r = pred[] compare(b, a), direction=GT", lambda a, b: b > a),
        ("less or equal", "  ROOT r = pred[] compare(a, b), direction=LE", lambda a, b: a <= b),
        ("different", "  ROOT r = pred[] compare(a, b), direction=NE", lambda a, b: a != b),
        ("always", "  ROOT r = pred[] constant(true)", lambda a, b: True),
        ("never", "  ROOT r = pred[] constant(false)", lambda a, b: False),
        ("a cycle", CYCLE, lambda a, b: np.fmod(b - a, 3) == 1)]:
    for sizes, dim in [((23,), 0), ((5, 7), 0), ((5, 7), 1), ((2, 3, 4), 1)]:
        x = ints(len(cases), *sizes, span=7)
        out = np.zeros_like(x)
        for line in np.ndindex(*[n for d, n in enumerate(sizes) if d != dim]):
            at = line[:dim] + (slice(None),) + line[dim:]
            out[at] = x[at][merge_sort(list(x[at]), before)]
        cases.append(case(f"{title}, along {dim} of {sizes}", COMPARE.format(body),
                          ("sort", f"dimensions={{{dim}}}, to_apply=c"), [x], [out]))
# The second key first, then the first; a third operand goes along.
TWO = """c {
  a0 = s32[] parameter(0)
  b0 = s32[] parameter(1)
  a1 = s32[] parameter(2)
  b1 = s32[] parameter(3)
  a2 = s32[] parameter(4)
  b2 = s32[] parameter(5)
  lt = pred[] compare(a1, b1), direction=LT
  eq = pred[] compare(a1, b1), direction=EQ
  gt0 = pred[] compare(a0, b0), direction=GT
  both = pred[] and(eq, gt0)
  ROOT r = pred[] or(lt, both)
}
"""
x, y, z = ints(1, 3, 20, span=4), ints(2, 3, 20, span=5), np.arange(60).reshape(3, 20)
outs = [np.zeros_like(v) for v in (x, y, z)]
for line in range(3):
    order = sorted(range(20), key=lambda i: (y[line, i], -x[line, i]))
    for out, v in zip(outs, (x, y, z)):
        out[line] = v[line][order]
cases.append(case("two keys of three operands", TWO, ("sort", "dimensions={1}, to_apply=c"), [x, y, z], outs))
write("sort", cases)

# gather: every placement of the result's dimensions
cases = []
x = ints(1, 5, 4, 3)
index = np.array([[[0, 1], [-3, 2]], [[9, 3], [4, 0]], [[2, 2], [1, 9]]])
for offset in itertools.combinations(range(4), 2):
    window = (2, 1, 3)
    taken = np.zeros((3, 2, 2, 3), np.int64)
    for b in np.ndindex(3, 2):
        r, c = index[b]
        r, c = min(max(r, 0), 3), min(max(c, 0), 3)
        taken[b] = x[r:r + 2, c, :]
    batch = [d for d in range(4) if d not in offset]
    out = np.empty([0] * 4)
    perm = [0] * 4
    for from_, to in enumerate(batch + list(offset)):
        perm[to] = from_
    out = taken.transpose(perm)
    cases.append(case(f"offset dimensions {offset}", "",
                      ("gather", f"offset_dims={{{offset[0]},{offset[1]}}}, collapsed_slice_dims={{1}}, start_index_map={{0,1}}, "
                       "index_vector_dim=2, slice_sizes={2,1,3}"), [x, index], [out]))
# The vectors along the first dimension, and components in another order.
moved = np.moveaxis(index[..., ::-1], 2, 0)
out = np.zeros((3, 2, 2, 3), np.int64)
for b in np.ndindex(3, 2):
    c, r = moved[:, b[0], b[1]]
    out[b] = x[min(max(r, 0), 3):, min(max(c, 0), 3), :][:2]
cases.append(case("vectors first", "", ("gather", "offset_dims={2,3}, collapsed_slice_dims={1}, start_index_map={1,0}, "
                                        "index_vector_dim=0, slice_sizes={2,1,3}"), [x, moved], [out]))
x, index = ints(2, 3, 5, 2), np.array([[4, 0], [1, 7], [2, 2]])
out = np.array([[x[b, min(i, 4)] for i in index[b]] for b in range(3)])
cases.append(case("batching", "", ("gather", "offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, "
                                   "start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,2}"), [x, index], [out]))
write("gather", cases)
