"""Reads legal.txt and probes.hlo; what coverage.rs does, once more for the scripts beside this one."""
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
BITS = {"pred": 8, "bf16": 16, "c64": 64, "c128": 128}
TYPES = ("pred s1 s2 s4 s8 s16 s32 s64 u1 u2 u4 u8 u16 u32 u64 f16 bf16 f32 f64 f8e5m2 f8e4m3 f8e4m3fn f8e4m3b11fnuz f8e3m4 f8e5m2fnuz "
         "f8e4m3fnuz f8e8m0fnu f4e2m1fn f6e3m2fn f6e2m3fn c64 c128").split()
PAIRS = {"convert", "bitcast-convert"}


def bits(ty):
    return BITS.get(ty) or int(re.match(r"[a-z](\d+)", ty)[1])


def legal():
    """{opcode: set of types, or of pairs (from, to), or {"-"}}"""
    classes, rows = {}, {}

    def types(words):
        out = []
        for w in words.split():
            if w[0] == "!":
                out = [t for t in out if t not in types(w[1:])]
            else:
                out += classes.get(w, [w])
        assert all(t in TYPES or t == "-" for t in out), words
        return out

    for line in open(os.path.join(HERE, "legal.txt")):
        line = line.split("#")[0].strip()
        if line.startswith("class "):
            name, words = line[6:].split("=")
            classes[name.strip()] = types(words)
        elif line:
            ops, what, _ = line.split("|", 2)
            for op in ops.split():
                if "->" in what:
                    a, b = what.split("->")
                    rows.setdefault(op, set()).update((x, y) for x in types(a) for y in types(b))
                else:
                    rows.setdefault(op, set()).update(types(what))
    return rows


def probes():
    """{opcode: text of its program}"""
    out = {}
    for chunk in open(os.path.join(HERE, "probes.hlo")).read().split("// ==== ")[1:]:
        ops, body = chunk.split("\n", 1)
        out.update((op, body) for op in ops.split())
    return out


def program(op, body, ty, to=None):
    part = {"c64": "f32", "c128": "f64"}.get(ty, ty)
    of = {"f32": "c64", "f64": "c128"}.get(ty, "c64")
    word = f"u{bits(ty)}" if f"u{bits(ty)}" in TYPES and ty != "pred" else "u8"
    fft = (f"{of}[3]", "RFFT") if ty in ("f32", "f64") else (f"{ty}[4]", "FFT")
    number = "(1, 1)" if ty[0] == "c" else "-1" if ty == "s1" else "1"
    before, after = "4", "4"
    if to and bits(ty) % bits(to) == 0 and bits(ty) > bits(to):
        after = f"4,{bits(ty) // bits(to)}"
    elif to and bits(to) % bits(ty) == 0 and bits(to) > bits(ty):
        before = f"4,{bits(to) // bits(ty)}"
    text = "HloModule probe\n" + body
    for name, value in dict(OP=op, T=ty, R=part, C=of, W=word, U=to or "", B=before, A=after, F=fft[0], K=fft[1], Z=number).items():
        text = re.sub(rf"\${name}\b", value, text)
    return text


def programs():
    """(opcode, type or pair, text) of all pairs, legal or not."""
    for op, body in probes().items():
        for ty in TYPES:
            if op in PAIRS:
                yield from ((op, (ty, to), program(op, body, ty, to)) for to in TYPES)
            elif "$T" in body:
                yield op, ty, program(op, body, ty)
            else:
                yield op, "-", program(op, body, ty)
                break
