#!/usr/bin/env python3
"""Writes the filetests of collectives: every collective in every group mode, form of its groups and form of itself.

The expected values are computed here with numpy, from the definitions of the group modes and of the collectives in
docs/operation_semantics.md of openxla/xla. Run it in this folder: it rewrites devices/*.hlo, but for those that are not named
below, which are written by hand.
"""
import itertools

import numpy as np

R, P = 2, 3  # replicas and partitions of most programs
DEVICES = [(r, p) for r in range(R) for p in range(P)]


def number(r, p):
    return r * P + p


# ---- groups: lists of devices for a mode and lists of ids

def groups(mode, lists):
    if mode == "replica":
        return [[number(r, p) for r in g] for g in lists for p in range(P)]
    if mode == "partition":
        return [[number(r, p) for p in g] for g in lists for r in range(R)]
    if mode == "both":
        return [[number(r, p) for r in g for p in range(P)] for g in lists]
    return [list(g) for g in lists]


# For each mode some ways to write groups: (text, ids). All of one size, unless "uneven".
WAYS = {
    "replica": [("{{1,0}}", [[1, 0]]), ("{}", [[0, 1]]), ("[1,2]<=[2]", [[0, 1]]), ("{{0},{1}}", [[0], [1]])],
    "partition": [("{{2,0,1}}", [[2, 0, 1]]), ("{}", [[0, 1, 2]]), ("[1,3]<=[3]", [[0, 1, 2]])],
    "both": [("{{1,0}}", [[1, 0]]), ("{}", [[0, 1]]), ("{{1},{0}}", [[1], [0]])],
    "flat": [("{{5,0},{2,4},{1,3}}", [[5, 0], [2, 4], [1, 3]]),
             ("[2,3]<=[6]", [[0, 1, 2], [3, 4, 5]]),
             ("[3,2]<=[2,3]T(1,0)", [[0, 3], [1, 4], [2, 5]]),
             ("mesh['x'=2,'y'=3] {'y'}", [[0, 1, 2], [3, 4, 5]]),
             ("mesh['x'=2,'y'=3] {'x'}", [[0, 3], [1, 4], [2, 5]])],
}
MODE_ATTRS = {"replica": "", "partition": ", channel_id=1", "both": ", channel_id=1",
              "flat": ", channel_id=1, use_global_device_ids=true"}
# The modes of opcodes that take use_global_device_ids, and of those that do not.
WITH_GLOBAL, WITHOUT = ["replica", "both", "flat"], ["replica", "partition"]


# ---- text

def text(a):
    a = np.asarray(a)
    if a.ndim == 0:
        v = a.item()
        if isinstance(v, complex):
            return f"({text(v.real)}, {text(v.imag)})"
        if isinstance(v, bool):
            return "true" if v else "false"
        if isinstance(v, float):
            return repr(v).removesuffix(".0")
        return str(v)
    return "[" + ", ".join(text(x) for x in a) + "]"


def shape(ty, a):
    return f"{ty}[{','.join(map(str, np.shape(a)))}]"


def per_device(values):
    """values[device] is a list of arrays; one entry if all are equal."""
    texts = [", ".join(text(a) for a in v) for v in values]
    return texts[0] if len(set(texts)) == 1 else " | ".join(texts)


TYPES = {np.dtype("int32"): "s32", np.dtype("float32"): "f32", np.dtype("uint32"): "u32", np.dtype("bool"): "pred"}
COMPUTATIONS = {
    "add": (np.add, "ROOT r = {t}[] add(a, b)"),
    "multiply": (np.multiply, "ROOT r = {t}[] multiply(a, b)"),
    "maximum": (np.maximum, "ROOT r = {t}[] maximum(a, b)"),
    "minimum": (np.minimum, "ROOT r = {t}[] minimum(b, a)"),
    "and": (np.bitwise_and, "ROOT r = {t}[] and(a, b)"),
    "or": (np.bitwise_or, "ROOT r = {t}[] or(a, b)"),
    "xor": (np.bitwise_xor, "ROOT r = {t}[] xor(a, b)"),
    # Neither commutative nor associative: shows the order.
    "twice": (lambda a, b: 2 * a + b, "d = {t}[] add(a, a)\n  ROOT r = {t}[] add(d, b)"),
}


class Program:
    """One test: operands of each device and results of each device."""

    def __init__(self, title, operands, computation=None):
        self.title, self.operands, self.computation = title, operands, computation
        self.lines, self.header = [], f", replica_count={R}, num_partitions={P}"

    def text(self, body, results, directives=""):
        types = [shape(TYPES[a.dtype], a) for a in self.operands[0]]
        out = f"// ==== {self.title}\n// test: interpret\n{directives}HloModule t{self.header}\n\n"
        if self.computation:
            ty = TYPES[self.operands[0][0].dtype]
            body_of = COMPUTATIONS[self.computation][1].format(t=ty)
            out += f"f {{\n  a = {ty}[] parameter(0)\n  b = {ty}[] parameter(1)\n  {body_of}\n}}\n\n"
        for name, lines in self.lines:
            out += f"{name} {{\n" + "".join(f"  {l}\n" for l in lines) + "}\n\n"
        out += "ENTRY e {\n"
        out += "".join(f"  p{i} = {t} parameter({i})\n" for i, t in enumerate(types))
        out += "".join(f"  {l}\n" for l in body)
        return out + "}\n// run: e(" + per_device(self.operands) + ") == " + per_device(results) + "\n"


def tuple_or_one(types):
    return types[0] if len(types) == 1 else "(" + ", ".join(types) + ")"


def forms(opcode, operands, results, attrs, native):
    """The bodies of one collective: synchronous, by its own start and done, by sugar, by async-start of a computation."""
    args = ", ".join(f"p{i}" for i in range(len(operands)))
    ins = [shape(TYPES[a.dtype], a) for a in operands]
    outs = [shape(TYPES[a.dtype], a) for a in results]
    out = tuple_or_one(outs)
    yield "", [], [f"ROOT r = {out} {opcode}({args}){attrs}"]
    if native == "own":
        state = out if opcode == "all-reduce" else f"({tuple_or_one(ins)}, {out})"
        yield " start and done", [], [f"s = {state} {opcode}-start({args}){attrs}", f"ROOT r = {out} {opcode}-done(s)"]
        return
    state = f"(({', '.join(ins)}), {out})"
    yield " sugar", [], [f"s = {state} {opcode}-start({args}){attrs}", f"ROOT r = {out} {opcode}-done(s)"]
    wrapped = [f"q{i} = {t} parameter({i})" for i, t in enumerate(ins)]
    inner = ", ".join(f"q{i}" for i in range(len(operands)))
    wrapped.append(f"ROOT w = {out} {opcode}({inner}){attrs}")
    yield " wrapped", [("wrapped", wrapped)], [
        f"s = {state} async-start({args}), calls=wrapped", f"ROOT r = {out} async-done(s)"]


def write(name, programs):
    with open(f"devices/{name}.hlo", "w") as f:
        first, rest = programs[0].split("\n", 1)
        f.write("\n".join([f"{first}\n// origin: numpy\n{rest}"] + programs[1:]))


def operands(*shapes, dtype=np.int32, scale=100):
    """Arrays in which device and place can be read off."""
    return [[(np.arange(np.prod(s, dtype=int)).reshape(s) + 10 * i + scale * d).astype(dtype)
             for i, s in enumerate(shapes)] for d in range(len(DEVICES))]


def member(gs, device):
    return next((g for g in gs if device in g), None)


def by_group(gs, given, result):
    """result(values of the group in order, rank) for each device; None outside of all groups."""
    out = []
    for d in range(len(given)):
        g = member(gs, d)
        out.append(None if g is None else result([given[m] for m in g], g.index(d)))
    return out


def all_programs(opcode, modes, given, make, more, computation=None, native="async", even=True, ways=None):
    """Every mode, every way to write its groups; all forms for the first way, one form for the others."""
    programs = []
    for mode in modes:
        for n, (written, ids) in enumerate((ways or WAYS)[mode]):
            gs = groups(mode, ids)
            if even and len({len(g) for g in gs}) != 1:
                continue
            data = given(len(gs[0])) if callable(given) else given
            results = by_group(gs, data, make)
            attrs = f"{MODE_ATTRS[mode]}, replica_groups={written}{more}"
            if computation:
                attrs += ", to_apply=f"
            bodies = list(forms(opcode, data[0], results[0], attrs, native))
            for form, lines, body in bodies if n == 0 else bodies[:1]:
                program = Program(f"{opcode}{form}, {mode}, {written}", data, computation)
                program.lines = lines
                programs.append(program.text(body, results))
    return programs


# ---- the collectives

def concatenated(axis):
    return lambda values, rank: [np.concatenate([v[i] for v in values], axis) for i in range(len(values[0]))]


write("all-gather", all_programs("all-gather", WITH_GLOBAL, operands((2,)), concatenated(0), ", dimensions={0}", native="own")
      + all_programs("all-gather", ["flat"], operands((2, 2)), concatenated(1), ", dimensions={1}", native="own")
      + all_programs("all-gather", ["flat"], operands((1, 2), (1, 1)), concatenated(0), ", dimensions={0}, constrain_layout=true",
                     native="own")
      + all_programs("all-gather", ["flat"], operands((2, 0)), concatenated(0), ", dimensions={0}", native="own"))


def folded(name):
    f = COMPUTATIONS[name][0]

    def fold(values, rank):
        out = []
        for i in range(len(values[0])):
            acc = values[0][i]
            for v in values[1:]:
                acc = f(acc, v[i])
            out.append(np.asarray(acc, values[0][i].dtype))
        return out
    return fold


UNEVEN = {"flat": [("{{5,0,2},{4},{1,3}}", [[5, 0, 2], [4], [1, 3]])]}
reduces = all_programs("all-reduce", WITH_GLOBAL, operands((2,)), folded("add"), "", "add", native="own")
reduces += all_programs("all-reduce", ["flat"], operands((2,)), folded("twice"), "", "twice", native="own")
reduces += all_programs("all-reduce", ["flat"], operands((2,)), folded("twice"), "", "twice", native="own", even=False, ways=UNEVEN)
reduces += all_programs("all-reduce", ["both"], operands((2,), (1, 2)), folded("add"), "", "add", native="own")
reduces += all_programs("all-reduce", ["both"], operands((2,), (1, 2)), folded("twice"), "", "twice", native="own")
for name in ["multiply", "maximum", "minimum", "and", "or", "xor"]:
    reduces += all_programs("all-reduce", ["flat"], operands((3,), scale=7), folded(name), "", name, native="own")[:1]
truth = [[np.array([d % 2 == 0, d % 3 == 0, True, False])] for d in range(6)]
for name in ["and", "or", "xor"]:
    reduces += all_programs("all-reduce", ["flat"], truth, folded(name), "", name, native="own")[:1]
write("all-reduce", reduces)


def scattered(name, axis):
    def part(values, rank):
        return [np.split(x, len(values), axis)[rank] for x in folded(name)(values, rank)]
    return part


write("reduce-scatter",
      all_programs("reduce-scatter", WITH_GLOBAL, operands((12,)), scattered("add", 0), ", dimensions={0}", "add")
      + all_programs("reduce-scatter", ["flat"], operands((2, 6)), scattered("twice", 1), ", dimensions={1}", "twice")
      + all_programs("reduce-scatter", ["flat"], operands((6,), (6, 1)), scattered("add", 0), ", dimensions={0}", "add"))


def exchanged(axis):
    def blocks(values, rank):
        return [np.concatenate([np.split(v[0], len(values), axis)[rank] for v in values], axis)]
    return blocks


write("all-to-all",
      all_programs("all-to-all", WITHOUT, operands((6,)), exchanged(0), ", dimensions={0}")
      + all_programs("all-to-all", WITHOUT, operands((2, 6)), exchanged(1), ", dimensions={1}")
      + all_programs("all-to-all", WITHOUT, lambda n: operands(*[(2,)] * n),
                     lambda values, rank: [v[rank] for v in values], "", even=True,
                     ways={"replica": WAYS["replica"][:3], "partition": WAYS["partition"]}))

# Broadcast: groups may leave devices out, which get zeros.
BROADCAST = {"replica": [("{{1,0}}", [[1, 0]]), ("{{1}}", [[1]])], "partition": [("{{2,0}}", [[2, 0]]), ("{{0,1,2}}", [[0, 1, 2]])]}


def broadcasts(given, roots=None):
    programs = []
    for mode in WITHOUT:
        for n, (written, ids) in enumerate(BROADCAST[mode]):
            gs = groups(mode, ids)
            count = len(given[0]) - (1 if roots else 0)
            if roots and max(given[0][-1]) >= len(gs[0]):
                continue
            results = by_group(gs, given, lambda values, rank: [
                values[given[0][-1][i] if roots else 0][i] for i in range(count)])
            zero = [np.zeros_like(a) for a in given[0][:count]]
            results = [zero if r is None else r for r in results]
            attrs = f"{MODE_ATTRS[mode]}, replica_groups={written}" + (", has_dynamic_root=true" if roots else "")
            bodies = list(forms("collective-broadcast", given[0], results[0], attrs, "async"))
            for form, lines, body in bodies if n == 0 else bodies[:1]:
                program = Program(f"collective-broadcast{form}, {mode}, {written}", given)
                program.lines = lines
                programs.append(program.text(body, results))
    return programs


def with_roots(given, roots):
    return [v + [np.array(roots, np.int32)] for v in given]


write("collective-broadcast", broadcasts(operands((2,))) + broadcasts(operands((2,), (1, 2)))
      + broadcasts(with_roots(operands((2,)), [1]), True) + broadcasts(with_roots(operands((2,), (2,)), [1, 0]), True))


# Reduce: onto the first of each group, or the root; zeros elsewhere.
def onto(name, roots=None):
    def result(values, rank):
        data = [v[:len(v) - (1 if roots else 0)] for v in values]
        all_folded = folded(name)(data, rank)
        return [x if rank == (roots[i] if roots else 0) else np.zeros_like(x) for i, x in enumerate(all_folded)]
    return result


write("collective-reduce",
      all_programs("collective-reduce", WITH_GLOBAL, operands((2,)), onto("add"), "", "add")
      + all_programs("collective-reduce", ["flat"], operands((2,), (1,)), onto("twice"), "", "twice")
      + all_programs("collective-reduce", ["flat"], with_roots(operands((2,)), [1]), onto("twice", [1]),
                     ", has_dynamic_root=true", "twice"))


# ---- permutes

def permuted(mode, pairs, given):
    out = []
    for r, p in DEVICES:
        source = None
        for s, t in pairs:
            if mode == "replica" and t == r:
                source = number(s, p)
            if mode == "partition" and t == p:
                source = number(r, s)
        out.append([np.zeros_like(a) for a in given[0]] if source is None else given[source])
    return out


permutes = []
for mode, pairs in [("replica", [(0, 1)]), ("replica", [(0, 1), (1, 0)]), ("replica", [(1, 1)]), ("replica", []),
                    ("partition", [(0, 2), (2, 1)]), ("partition", [(0, 1), (1, 2), (2, 0)]), ("partition", [(0, 0), (1, 2)])]:
    written = "{" + ",".join(f"{{{s},{t}}}" for s, t in pairs) + "}"
    for given in [operands((2,)), operands((2,), (1, 2))]:
        results = permuted(mode, pairs, given)
        attrs = f"{MODE_ATTRS[mode]}, source_target_pairs={written}"
        for form, lines, body in forms("collective-permute", given[0], results[0], attrs, "own"):
            program = Program(f"collective-permute{form}, {mode}, {written}", given)
            program.lines = lines
            permutes.append(program.text(body, results))
# Contexts of a start.
given = operands((2,))
results = permuted("replica", [(0, 1), (1, 0)], given)
permutes.append(Program("contexts", given).text(
    ["s = (s32[2], s32[2], u32[], u32[]) collective-permute-start(p0), source_target_pairs={{0,1},{1,0}}",
     "ROOT r = s32[2] collective-permute-done(s)"], results))
write("collective-permute", permutes)


# ---- ragged all-to-all: rows of run-time counts

def ragged(mode, written, ids, updates, flat, form):
    """Every participant sends some rows to every other; the sizes differ."""
    gs = groups(mode, ids)
    n = len(gs[0])
    rng = np.random.default_rng(7 * updates + len(ids[0]))
    rows = 4 * n * updates
    given = [None] * len(DEVICES)
    for g in gs:
        sizes = rng.integers(0, 4, (n, n, updates))  # sender, receiver, update
        # Each sender takes rows from the beginning on; each receiver gets them one after the other.
        taken = np.zeros(n, int)
        starts, targets = np.zeros_like(sizes), np.zeros_like(sizes)
        filled = np.zeros(n, int)
        for s, t, u in itertools.product(range(n), range(n), range(updates)):
            starts[s, t, u], targets[s, t, u] = taken[s], filled[t]
            taken[s] += sizes[s, t, u]
            filled[t] += sizes[s, t, u]
        for rank, device in enumerate(g):
            size = (n * updates,) if flat else (n, updates)
            if updates == 1 and flat:
                size = (n,)
            part = [x.astype(np.int32).reshape(size) for x in
                    (starts[rank], sizes[rank], targets[rank], sizes[:, rank])]
            data = (np.arange(rows * 2).reshape(rows, 2) + 1000 * device).astype(np.int32)
            given[device] = [data, np.full((rows, 2), -1, np.int32)] + part
    def received(values, rank):
        out = values[rank][1].copy()
        for v in values:
            data, _, starts, sizes, targets, _ = v
            for u in range(updates):
                i = rank * updates + u
                k, a, b = sizes.ravel()[i], starts.ravel()[i], targets.ravel()[i]
                out[b:b + k] = data[a:a + k]
        return [out]
    results = by_group(gs, given, received)
    attrs = f"{MODE_ATTRS[mode]}, replica_groups={written}"
    bodies = list(forms("ragged-all-to-all", given[0], results[0], attrs, "async"))
    for title, lines, body in bodies if form else bodies[:1]:
        program = Program(f"ragged-all-to-all{title}, {mode}, {written}, {updates} updates", given)
        program.lines = lines
        yield program.text(body, results)


write("ragged-all-to-all", [p for mode in WITHOUT for n, (written, ids) in enumerate(WAYS[mode][:3])
                            for updates, flat in [(1, True), (2, False), (2, True)]
                            for p in ragged(mode, written, ids, updates, flat, n == 0 and updates == 1)])

# ---- every element type

import ml_dtypes

ALL = {"pred": np.bool_, "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64, "u8": np.uint8, "u16": np.uint16,
       "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64, "c64": np.complex64,
       "c128": np.complex128, "bf16": ml_dtypes.bfloat16, "s4": ml_dtypes.int4, "u4": ml_dtypes.uint4, "s2": ml_dtypes.int2,
       "u2": ml_dtypes.uint2, "f8e5m2": ml_dtypes.float8_e5m2, "f8e4m3": ml_dtypes.float8_e4m3,
       "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz, "f8e3m4": ml_dtypes.float8_e3m4,
       "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f4e2m1fn": ml_dtypes.float4_e2m1fn,
       "f6e2m3fn": ml_dtypes.float6_e2m3fn, "f6e3m2fn": ml_dtypes.float6_e3m2fn, "f8e8m0fnu": ml_dtypes.float8_e8m0fnu}


def plain(a):
    """As something that text() knows."""
    a = np.asarray(a)
    return a if a.dtype == object or a.dtype.kind in "biuc" and a.dtype.isbuiltin == 1 else a.astype(np.float64)


types = []
for ty, dtype in ALL.items():
    rng = np.random.default_rng(len(ty) + sum(map(ord, ty)))
    if ty == "f8e8m0fnu":
        x = 2.0 ** rng.integers(-3, 4, (3, 4))
    elif ty in ("u2", "s2", "pred"):
        x = rng.integers(0, 2, (3, 4))
    else:
        x = rng.integers(0, 4, (3, 4)) * (1 if ty.startswith(("u", "s4")) else 0.5 if ty[0] in "fbc" else 1)
    if ty[0] == "c":
        x = x + 1j * x[::-1]
    given = x.astype(dtype)
    wide = given.astype(np.complex128 if ty[0] == "c" else np.float64)
    # Sums of small halves: exact in every type that is wide enough, rounded once where it is not; integers wrap.
    if ty == "pred":
        total = given.any(axis=0)
    elif ty[0] in "su":
        total = given.astype(np.int64).sum(axis=0)
        bits = int(ty[1:])
        total = np.array([int(t) & (2**bits - 1) for t in total], object)
        if ty[0] == "s":
            total = np.array([t - 2**bits if t >= 2**(bits - 1) else t for t in total], object)
    elif ty == "f8e8m0fnu":
        continue
    else:
        total = wide.sum(axis=0).astype(dtype)
    rows = " | ".join(text(plain(row)) for row in given)
    gathered = text(plain(given.reshape(-1)))
    shifted = " | ".join(text(plain(given[i - 1] if i else np.zeros_like(given[0]))) for i in range(3))
    types.append(f"""// ==== {ty}
// test: interpret
HloModule t, num_partitions=3

f {{
  a = {ty}[] parameter(0)
  b = {ty}[] parameter(1)
  ROOT r = {ty}[] add(a, b)
}}

ENTRY e {{
  x = {ty}[4] parameter(0)
  g = {ty}[12] all-gather(x), channel_id=1, replica_groups={{{{0,1,2}}}}, dimensions={{0}}, use_global_device_ids=true
  s = {ty}[4] all-reduce(x), channel_id=2, replica_groups={{{{0,1,2}}}}, use_global_device_ids=true, to_apply=f
  p = {ty}[4] collective-permute(x), channel_id=3, source_target_pairs={{{{0,1}},{{1,2}}}}
  ROOT t = ({ty}[12], {ty}[4], {ty}[4]) tuple(g, s, p)
}}
// run: e({rows}) == """ + " | ".join(
        f"{gathered}, {text(plain(total))}, {s}" for s in shifted.split(" | ")) + "\n")
write("types", types)
