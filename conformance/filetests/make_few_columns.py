"""Writes ops/few-columns.hlo: reductions over rows next to few columns, which compiled code takes a column or a register at a time (`python3 make_few_columns.py > ops/few-columns.hlo`; needs numpy)."""
import random
import numpy as np

COMBINE = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum, "apart": lambda p, q: abs(p - q)}
START = {"add": 0, "maximum": -1000, "minimum": 1000, "apart": 3}


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
    print("HloModule m\nsum {\n  p = s32[] parameter(0)\n  q = s32[] parameter(1)\n  ROOT r = s32[] add(p, q)\n}")
    print("\n".join(regions) + "\nENTRY e {\n" + "\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    import sys
    first, count = (int(x) for x in sys.argv[1:]) if len(sys.argv) > 1 else (0, 60)
    for seed in range(first, first + count):
        program(seed)
