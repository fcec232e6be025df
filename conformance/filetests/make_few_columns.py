"""Writes ops/few-columns.hlo: reductions over rows next to few columns, which compiled code takes a column or a register at a time, and columns that come from several places (`python3 make_few_columns.py > ops/few-columns.hlo`; needs numpy)."""
import random
import numpy as np

COMBINE = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum, "apart": lambda p, q: abs(p - q)}
START = {"add": 0, "maximum": -1000, "minimum": 1000, "apart": 3}


HEAD = "HloModule m\nsum {\n  p = s32[] parameter(0)\n  q = s32[] parameter(1)\n  ROOT r = s32[] add(p, q)\n}"


def put_together(seed):
    """Columns of rows from several places: rows that are rolled, padded or reversed, each a column; and columns at known indices."""
    r = random.Random(seed)
    ty = r.choice(["f32", "f32", "s32", "u8", "f64", "bf16"])
    rows, width, parts = r.choice([20, 64, 300]), r.choice([1, 3, 16, 17]), r.choice([2, 3, 5, 8, 9, 11])
    lines = []
    def emit(text):
        lines.append(f"  v{len(lines)} = {text}")
        return f"v{len(lines) - 1}"
    def shape(d, t=ty): return f"{t}[{','.join(map(str, d))}]"
    n = rows * width
    i = emit(f"s32[{n}] iota(), iota_dimension=0")
    m = emit("s32[] constant(101)")
    m = emit(f"s32[{n}] broadcast({m}), dimensions={{}}")
    i = emit(f"s32[{n}] remainder({i}, {m})")
    x = emit(f"{ty}[{n}] convert({i})")
    x = emit(f"{ty}[{n}] opt-barrier({x})")
    x, a = emit(f"{shape([rows, width])} reshape({x})"), (np.arange(n) % 101).reshape(rows, width)
    zero = emit(f"{ty}[] constant(0)")
    made = []
    for k in range(parts):
        what, s = r.choice(["roll", "roll", "roll", "plain", "pad", "reverse"]), r.randint(1, min(rows - 1, 8))
        if what == "roll":
            p = emit(f"{shape([s, width])} slice({x}), slice={{[{rows - s}:{rows}], [0:{width}]}}")
            q = emit(f"{shape([rows - s, width])} slice({x}), slice={{[0:{rows - s}], [0:{width}]}}")
            y, b = emit(f"{shape([rows, width])} concatenate({p}, {q}), dimensions={{0}}"), np.roll(a, s, 0)
        elif what == "pad":
            p = emit(f"{shape([rows - s, width])} slice({x}), slice={{[{s}:{rows}], [0:{width}]}}")
            y, b = emit(f"{shape([rows, width])} pad({p}, {zero}), padding=0_{s}x0_0"), np.pad(a[s:], ((0, s), (0, 0)))
        elif what == "reverse":
            y, b = emit(f"{shape([rows, width])} reverse({x}), dimensions={{{s % 2}}}"), np.flip(a, s % 2)
        else:
            y, b = x, a
        made.append((emit(f"{shape([rows, width, 1])} reshape({y})"), b))
    y = emit(f"{shape([rows, width, parts])} concatenate({', '.join(p for p, _ in made)}), dimensions={{2}}")
    a = np.stack([b for _, b in made], -1)
    if seed % 4 == 0:
        # Rows of an array as columns.
        y, a = emit(f"{shape([parts, rows * width])} reshape({y})"), a.reshape(parts, rows * width)
        y = emit(f"{shape([parts, rows * width])} opt-barrier({y})")
        y, a = emit(f"{shape([rows * width, parts])} transpose({y}), dimensions={{1,0}}"), a.T
        y, a = emit(f"{shape([rows, width, parts])} reshape({y})"), a.reshape(rows, width, parts)
    if seed % 2:
        count = r.choice([1, 2, 5, 8, 9, 10])
        wanted = [r.randint(-2, parts + 1) for _ in range(count)]
        i = emit(f"s32[{count},1] constant({{ {', '.join('{ %d }' % w for w in wanted)} }})")
        y = emit(
            f"{shape([rows, width, count])} gather({y}, {i}), offset_dims={{0,1}}, collapsed_slice_dims={{2}}, "
            f"start_index_map={{2}}, index_vector_dim=1, slice_sizes={{{rows},{width},1}}"
        )
        a = a[..., np.clip(wanted, 0, parts - 1)]
    y = emit(f"{shape(a.shape)} opt-barrier({y})")
    flat = emit(f"{ty}[{a.size}] reshape({y})")
    i = emit(f"s32[{a.size}] convert({flat})")
    places = emit(f"s32[{a.size}] iota(), iota_dimension=0")
    i = emit(f"s32[{a.size}] multiply({i}, {places})")
    z = emit("s32[] constant(0)")
    emit(f"s32[] reduce({i}, {z}), dimensions={{0}}, to_apply=sum")
    lines[-1] = lines[-1].replace("  v", "  ROOT v", 1)
    check = (int((a.reshape(-1).astype(np.int64) * np.arange(a.size)).sum()) + 2**31) % 2**32 - 2**31
    print(f"// ==== {ty}[{rows},{width},{parts}] put together, {seed}\n// test: interpret\n// origin: hand\n// run: e() == {check}")
    print(HEAD + "\nENTRY e {\n" + "\n".join(lines) + "\n}\n")


def program(seed):
    r = random.Random(seed)
    ty = r.choice(["f32", "f32", "f32", "s32", "u8", "s16", "f64", "bf16", "s64"])
    columns = r.choice([2, 3, 4, 3, 5, 6, 7, 8, 9, 16, 17, 24, 31, 33, 50, 64, 65])
    rows = r.choice([[63], [64], [67], [8, 9], [200], [5, 20], [3], [333], [1000], [64, 1]])
    outer = r.choice([[], [1], [3], [2, 3], [7]])
    dims = outer + rows + [columns]
    reduced = list(range(len(outer), len(outer) + len(rows)))
    if len(outer) == 2 and r.random() < 0.3:
        reduced = [0] + reduced
    kept = [d for i, d in enumerate(dims) if i not in reduced]
    if ty in ("u8", "bf16") and np.prod([dims[i] for i in reduced]) > 250:
        ty = "f32"
    lines = []
    def emit(text):
        lines.append(f"  v{len(lines)} = {text}")
        return f"v{len(lines) - 1}"
    def shape(d, t=ty): return f"{t}[{','.join(map(str, d))}]"
    def constant(t, x): return emit(f"{t}[] constant({x})")
    def all_of(d, t, x): return emit(f"{shape(d, t)} broadcast({constant(t, x)}), dimensions={{}}")
    def filled(d, m, q):
        n = int(np.prod(d))
        i = emit(f"s32[{n}] iota(), iota_dimension=0")
        for op, x in (("multiply", m), ("remainder", q)):
            i = emit(f"s32[{n}] {op}({i}, {all_of([n], 's32', x)})")
        x = emit(f"{ty}[{n}] convert({i})")
        # Behind a barrier, or no kernel would load anything.
        x = emit(f"{ty}[{n}] opt-barrier({x})")
        return emit(f"{shape(d)} reshape({x})"), (np.arange(n, dtype=np.int64) * m % q).reshape(d)
    terms = np.prod([dims[i] for i in reduced])
    few = ty in ("u8", "bf16")
    q = 2 if few and terms > 50 else 5
    x, a = filled(dims, 7, q)
    for _ in range(r.randint(0, 3)):
        what = r.choice(["row", "column", "outer", "turned"])
        if what == "turned":
            p = list(range(len(dims)))
            r.shuffle(p)
            y, b = filled([dims[i] for i in p], 3, q)
            back = [p.index(i) for i in range(len(p))]
            y, b = emit(f"{shape(dims)} transpose({y}), dimensions={{{','.join(map(str, back))}}}"), b.transpose(back)
        else:
            at = {"row": list(range(len(dims) - 1)), "column": [len(dims) - 1], "outer": list(range(len(outer)))}[what]
            y, b = filled([dims[i] for i in at], 5, q)
            y = emit(f"{shape(dims)} broadcast({y}), dimensions={{{','.join(map(str, at))}}}")
            b = np.broadcast_to(b.reshape([d if i in at else 1 for i, d in enumerate(dims)]), dims)
        op = r.choice(["maximum", "minimum", "multiply" if q == 2 else "maximum"])
        x, a = emit(f"{shape(dims)} {op}({x}, {y})"), {"maximum": np.maximum, "minimum": np.minimum, "multiply": np.multiply}[op](a, b)
    total, check, regions = constant("s32", 0), 0, []
    for number in range(r.choice([1, 1, 2])):
        kind = r.choice(["add", "add", "maximum", "minimum", "apart" if ty[0] != "u" else "add"])
        body = f"r = {ty}[] {kind}(p, q)" if kind != "apart" else f"d = {ty}[] subtract(p, q)\n  ROOT r = {ty}[] abs(d)"
        body = body if kind == "apart" else "ROOT " + body
        regions.append(f"combine{number} {{\n  p = {ty}[] parameter(0)\n  q = {ty}[] parameter(1)\n  {body}\n}}")
        start = START[kind] if not few else max(0, min(START[kind], 100))
        init = constant(ty, start)
        y = emit(f"{shape(kept)} reduce({x}, {init}), dimensions={{{','.join(map(str, reduced))}}}, to_apply=combine{number}")
        order = reduced + [i for i in range(len(dims)) if i not in reduced]
        b = np.full(kept, start)
        for row in a.transpose(order).reshape([-1] + kept):
            b = COMBINE[kind](b, row)
        if r.random() < 0.5:
            y, b = emit(f"{shape(kept)} maximum({y}, {all_of(kept, ty, 2)})"), np.maximum(b, 2)
        assert not few or 0 <= b.min() and b.max() < 256, (ty, b.min(), b.max())
        # Where each result is counts.
        n = int(np.prod(kept))
        flat = emit(f"{ty}[{n}] reshape({y})")
        i = emit(f"s32[{n}] convert({flat})")
        places = emit(f"s32[{n}] iota(), iota_dimension=0")
        weights = emit(f"s32[{n}] add({places}, {all_of([n], 's32', 1)})")
        i = emit(f"s32[{n}] multiply({i}, {weights})")
        part = emit(f"s32[] reduce({i}, {constant('s32', 0)}), dimensions={{0}}, to_apply=sum")
        total, check = emit(f"s32[] add({total}, {part})"), check + int((b.reshape(-1) * np.arange(1, n + 1)).sum())
    lines[-1] = lines[-1].replace("  v", "  ROOT v", 1)
    check = (check + 2**31) % 2**32 - 2**31
    title = f"{ty}[{','.join(map(str, dims))}] over {','.join(map(str, reduced))}, {seed}"
    print(f"// ==== {title}\n// test: interpret\n// origin: hand\n// run: e() == {check}")
    print(HEAD)
    print("\n".join(regions) + "\nENTRY e {\n" + "\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    import sys
    first, count = (int(x) for x in sys.argv[1:]) if len(sys.argv) > 1 else (0, 60)
    for seed in range(first, first + count):
        program(seed)
        if seed % 3 == 0:
            put_together(seed)
