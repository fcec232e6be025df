"""Writes ops/short-dims.hlo: chains of movement over short dimensions, which compiled code goes over in registers (`python3 make_short_dims.py > ops/short-dims.hlo`; needs numpy)."""
import random
import numpy as np

import summed

PART = {"c64": "f32", "c128": "f64"}

def program(seed):
    r = random.Random(seed)
    ty = r.choice(["f32", "f32", "s32", "u8", "s16", "f64", "c64", "c128"])
    total = r.choice([512, 1024, 2048, 96 * 8, 80 * 16])
    lines, n = [], 0
    def emit(text):
        nonlocal n
        n += 1
        lines.append(f"  v{n} = {text}")
        return f"v{n}"
    def shape(d, t=ty): return f"{t}[{','.join(map(str, d))}]"
    def filled(m, c, q, t):
        i = emit(f"s32[{total}] iota(), iota_dimension=0")
        for op, x in (("multiply", m), ("add", c), ("remainder", q)):
            k = emit(f"s32[] constant({x})")
            b = emit(f"s32[{total}] broadcast({k}), dimensions={{}}")
            i = emit(f"s32[{total}] {op}({i}, {b})")
        return emit(f"{t}[{total}] convert({i})"), ((np.arange(total, dtype=np.int64) * m + c) % q)
    def operand(m):
        # Behind a barrier, or no kernel would load anything.
        x, a = made(m)
        return emit(f"{ty}[{total}] opt-barrier({x})"), a
    def made(m):
        if ty not in PART: return filled(m, 1, 29, ty)
        (a, x), (b, y) = filled(m, 1, 29, PART[ty]), filled(m + 2, 3, 23, PART[ty])
        return emit(f"{ty}[{total}] complex({a}, {b})"), x + 1j * y
    (x, a), (y, b) = operand(7), operand(5)
    def sizes():
        left, d = total, []
        while left > 1 and len(d) < 6:
            options = [k for k in (2, 2, 4, 4, 8, 16, 3, 5) if left % k == 0]
            if not options: break
            k = r.choice(options)
            d.insert(0, k); left //= k
        return [left] + d if left > 1 else d
    for _ in range(r.randint(3, 7)):
        d = sizes()
        x, a = emit(f"{shape(d)} reshape({x})"), a.reshape(d)
        y, b = emit(f"{shape(d)} reshape({y})"), b.reshape(d)
        what = r.choice(["transpose", "reverse", "stack", "halves", "combine", "turn", "pad"])
        axis = r.randrange(len(d))
        if what == "transpose":
            p = list(range(len(d))); r.shuffle(p)
            e = [d[i] for i in p]
            x, a = emit(f"{shape(e)} transpose({x}), dimensions={{{','.join(map(str, p))}}}"), a.transpose(p)
        elif what == "reverse":
            x, a = emit(f"{shape(d)} reverse({x}), dimensions={{{axis}}}"), np.flip(a, axis)
        elif what in ("halves", "stack") and d[axis] % 2 == 0:
            def part(v, lo, step):
                lim = d[axis] if step == 2 else lo + d[axis] // 2
                e = d[:]; e[axis] //= 2
                s = ", ".join(f"[{lo}:{lim}:{step}]" if i == axis else f"[0:{k}]" for i, k in enumerate(d))
                return emit(f"{shape(e)} slice({v}), slice={{{s}}}"), e
            step = r.choice([1, 2])
            los = (0, 1) if step == 2 else (0, d[axis] // 2)
            cut = lambda v, lo: np.take(v, range(lo, d[axis], 2) if step == 2 else range(lo, lo + d[axis] // 2), axis)
            (p, e), (q, _) = part(x, los[0], step), part(y, los[1], step)
            u, w = cut(a, los[0]), cut(b, los[1])
            s1, s2 = emit(f"{shape(e)} add({p}, {q})"), emit(f"{shape(e)} subtract({p}, {q})")
            u, w = u + w, u - w
            if what == "halves":
                x, a = emit(f"{shape(d)} concatenate({s1}, {s2}), dimensions={{{axis}}}"), np.concatenate([u, w], axis)
            else:
                f = e[:axis + 1] + [1] + e[axis + 1:]
                g = e[:axis + 1] + [2] + e[axis + 1:]
                r1, r2 = emit(f"{shape(f)} reshape({s1})"), emit(f"{shape(f)} reshape({s2})")
                x, a = emit(f"{shape(g)} concatenate({r1}, {r2}), dimensions={{{axis + 1}}}"), np.stack([u, w], axis + 1)
        elif what == "combine":
            x, a = emit(f"{shape(d)} add({x}, {y})"), a + b
        elif what == "turn":
            x, y, a, b = y, x, b, a
        elif what == "pad" and d[axis] > 2:
            e = d[:]; e[axis] -= 2
            s = ", ".join(f"[1:{k - 1}]" if i == axis else f"[0:{k}]" for i, k in enumerate(d))
            c = emit(f"{shape(e)} slice({x}), slice={{{s}}}")
            z = emit(f"{ty}[] constant({'(1, 0)' if ty in PART else 1})")
            pads = "x".join("1_1" if i == axis else "0_0" for i in range(len(d)))
            x = emit(f"{shape(d)} pad({c}, {z}), padding={pads}")
            a = np.pad(np.take(a, range(1, d[axis] - 1), axis), [(1, 1) if i == axis else (0, 0) for i in range(len(d))], constant_values=1)
        x, a = emit(f"{ty}[{total}] reshape({x})"), a.reshape(-1)
        y, b = emit(f"{ty}[{total}] reshape({y})"), b.reshape(-1)
    wide = {"u8": 8, "s16": 16}.get(ty)
    if wide:
        a = np.asarray(a).astype(np.int64) & ((1 << wide) - 1)
        if ty == "s16": a = np.where(a >= 32768, a - 65536, a)
    w, weights = filled(3, 2, 17, "s32")
    if ty in PART:
        re, im = emit(f"{PART[ty]}[{total}] real({x})"), emit(f"{PART[ty]}[{total}] imag({x})")
        x = emit(f"{PART[ty]}[{total}] subtract({re}, {im})")
        a = (a.real - a.imag).astype(np.int64)
    if seed % 3:
        x = emit(f"{PART.get(ty, ty)}[{total}] opt-barrier({x})")
    s = emit(f"s32[{total}] convert({x})")
    m = emit(f"s32[{total}] multiply({s}, {w})")
    z = emit("s32[] constant(0)")
    lines.append(f"  ROOT total = s32[] reduce({m}, {z}), dimensions={{0}}, to_apply=add")
    expected = int((np.asarray(a, dtype=np.int64) * weights).sum())
    assert abs(expected) < 2**31
    return summed.case(f"{ty}: {total} elements, {seed}", "e()", expected, "\n".join(lines) + "\n")

print("\n".join(program(seed) for seed in range(60)), end="")
