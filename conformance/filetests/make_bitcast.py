#!/usr/bin/env python3
"""Writes movement/bitcast-tiled.hlo: bitcasts between tiled layouts.

    make_bitcast.py            needs numpy

Expected values come from the linear index formula of openxla/xla's docs/tiled_layout.md, element by element.
"""
import os
import numpy as np

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "movement", "bitcast-tiled.hlo")


def linear(index, dims):
    at = 0
    for i, n in zip(index, dims):
        at = at * n + i
    return at


def position(index, dims, minor_to_major, tiles):
    """Where an element is in memory, and how many elements memory has."""
    order = minor_to_major[::-1]
    e, d = [index[k] for k in order], [dims[k] for k in order]
    for tile in tiles:
        missing = max(len(tile) - len(e), 0)
        e, d = [0] * missing + e, [1] * missing + d
        first = len(e) - len(tile)
        inner_e, inner_d, sizes, joined_e, joined_d = [], [], [], 0, 1
        for i, n, size in zip(e[first:], d[first:], tile):
            joined_e, joined_d = joined_e * n + i, joined_d * n
            if size != "*":
                inner_e.append(joined_e), inner_d.append(joined_d), sizes.append(size)
                joined_e, joined_d = 0, 1
        e = e[:first] + [i // s for i, s in zip(inner_e, sizes)] + [i % s for i, s in zip(inner_e, sizes)]
        d = d[:first] + [-(-n // s) for n, s in zip(inner_d, sizes)] + sizes
    return linear(e, d), int(np.prod(d))


assert position((2, 3), (3, 5), [1, 0], [[2, 2]])[0] == 17  # the example of the document


def memory(x, *layout):
    out = np.zeros(position((0,) * x.ndim, x.shape, *layout)[1], x.dtype)
    for i in np.ndindex(x.shape):
        out[position(i, x.shape, *layout)[0]] = x[i]
    return out


def read(memory, shape, *layout):
    out = np.zeros(shape, memory.dtype)
    for i in np.ndindex(*shape):
        at = position(i, shape, *layout)[0]
        out[i] = memory[at] if at < len(memory) else 0
    return out


def layout(minor_to_major, tiles):
    tiled = "".join("(" + ",".join(map(str, t)) + ")" for t in tiles)
    return "{" + ",".join(map(str, minor_to_major)) + (":T" + tiled if tiles else "") + "}"


def text(v):
    return str(int(v)) if v.ndim == 0 else "[" + ", ".join(map(text, v)) + "]"


def shape(ty, dims):
    return f"{ty}[{','.join(map(str, dims))}]"


CASES = [
    ((3, 5), ([1, 0], [[2, 2]]), (24,), ([0], [])),
    ((24,), ([0], []), (3, 5), ([1, 0], [[2, 2]])),
    ((4, 8), ([1, 0], [[2, 4], [2, 1]]), (32,), ([0], [])),
    ((2, 3, 5), ([2, 1, 0], [[2, 2]]), (2, 5, 3), ([1, 2, 0], [[2, 2]])),
    ((3, 5), ([0, 1], [[2, 4]]), (5, 3), ([1, 0], [[2, 4]])),
    ((2, 3, 4), ([2, 1, 0], [["*", 4]]), (6, 4), ([1, 0], [[4]])),
    ((2, 3), ([1, 0], [[4, 4]]), (2, 3), ([1, 0], [[2, 2]])),
    ((6,), ([0], [[4]]), (2, 3), ([1, 0], [])),
    ((2, 3), ([1, 0], []), (3, 2), ([1, 0], [[2, 8]])),
    ((), ([], [[4]]), (1, 2), ([1, 0], [[2]])),
    ((3,), ([0], [[2, 2]]), (5,), ([0], [])),
]
chunks = []
for a, from_, b, to in CASES:
    x = np.arange(1, 1 + np.prod(a), dtype=np.int32).reshape(a)
    y = read(memory(x, *from_), b, *to)
    chunks.append(f"""// ==== {layout(*from_)} as {layout(*to)}
// test: interpret
HloModule t
ENTRY e {{
  a = {shape('s32', a)}{layout(*from_)} parameter(0)
  ROOT r = {shape('s32', b)}{layout(*to)} bitcast(a)
}}
// run: e({text(x)}) == {text(y)}
""")
x = np.array([0x11223344, 0x55667788, -1], np.int32)
y = read(memory(x, [0], [[2]]).view(np.uint16), (3, 2), [1, 0], [[2, 2]])
chunks.append(f"""// ==== words of half the width, in tiles
// test: interpret
HloModule t
ENTRY e {{
  a = s32[3]{{0:T(2)}} parameter(0)
  ROOT r = u16[3,2]{{1,0:T(2,2)}} bitcast(a)
}}
// run: e({text(x)}) == {text(y)}
""")
chunks.append("""// ==== a sparse layout
// test: interpret
HloModule t
ENTRY e {
  a = f32[2]{0:D(C)} parameter(0)
  ROOT r = f32[2,1] bitcast(a)
}
// run: e([1, 2]) fails[U0001]: of a sparse layout
""")
chunks.append("""// ==== run-time sizes, as reshape
// test: interpret
HloModule t
ENTRY e {
  a = s32[<=4,2] parameter(0)
  ROOT r = s32[<=8] bitcast(a)
}
// run: e([[1, 2], [3, 4]]) == [1, 2, 3, 4]
""")
with open(OUT, "w") as f:
    f.write("\n".join(chunks))
print(f"{len(chunks)} programs")
