#!/usr/bin/env python3
"""Writes conversions/*.hlo: `convert` between all pairs of element types, to the bit.

    make_conversions.py                   needs numpy, ml_dtypes
    make_conversions.py show FROM TO      the table of a pair: bits, value, bits, value

Sources of up to 8 bits: every element, the results as tables. Sources of 16 bits: every element, 16 digests of each
result (`show` writes the table that a digest is of). Wider sources: for each target the values where something changes, and
those beside them. The expected bits come from exact.py (fractions, one rounding), which agrees with ml_dtypes on every
element of the narrow types; ml_dtypes itself rounds f64 twice on the way to 8 bits, and XLA:CPU to bf16.
"""
import os
import sys
from fractions import Fraction as Q

import exact
from exact import COMPLEX, FLOATS, INF, INTS, NAN, NEG0, NINF, SIGNED, TYPES, bits_of, convert, decode, encode, largest, patterns_of

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "conversions")


def chunk(what, inputs, outputs, run, origin):
    """inputs: (type, count) of each parameter; outputs: (parameter, type) of each conversion."""
    lines = [f"// {what[0].upper() + what[1:]}.", "// test: interpret", f"// origin: {origin}", "// nan-bits: true", "HloModule convert", "ENTRY e {"]
    lines += [f"  a{i} = {ty}[{n}] parameter({i})" for i, (ty, n) in enumerate(inputs)]
    lines += [f"  r{i} = {ty}[{inputs[p][1]}] convert(a{p})" for i, (p, ty) in enumerate(outputs)]
    shape = ", ".join(f"{ty}[{inputs[p][1]}]" for p, ty in outputs)
    lines.append(f"  ROOT t = ({shape}) tuple({', '.join(f'r{i}' for i in range(len(outputs)))})")
    return "\n".join([*lines, "}", f"// run: {run}", ""])


def narrow(source):
    all_bits = list(patterns_of(source))
    results = [exact.raw(ty, [convert(source, ty, b) for b in all_bits]) for ty in TYPES]
    run = f"e(patterns(0)) == {', '.join(results)}"
    return chunk(f"every {source}", [(source, len(all_bits))], [(0, ty) for ty in TYPES], run, "exact, ml_dtypes")


def digests(source):
    all_bits = range(1 << 16)
    results = [exact.digest(ty, [convert(source, ty, b) for b in all_bits], 16) for ty in TYPES]
    run = f"e(patterns(0)) == {', '.join(results)}"
    return chunk(f"every {source}", [(source, 1 << 16)], [(0, ty) for ty in TYPES], run, "exact, ml_dtypes")


def interesting(target):
    """Numbers where rounding into a type changes, or saturation begins."""
    if target == "pred":
        return [Q(1), Q(2), Q(1, 2)]
    if target in INTS:
        n = INTS[target]
        ends = [-(1 << (n - 1)), (1 << (n - 1)) - 1] if target in SIGNED else [0, (1 << n) - 1]
        return sorted({Q(x) + d for x in ends for d in (-1, Q(-1, 2), 0, Q(1, 2), 1)} | {Q(1, 2), Q(-1, 2), Q(1 << n), Q(3 << n)})
    part = COMPLEX.get(target, target)
    e, m, bias, kind = FLOATS[part]
    top = largest(part)[0]
    fields = {0, 1, 2, 1 << m, (1 << m) - 1, (1 << m) + 1, bias << m, (bias << m) + 1, (bias << m) - 1, top, top - 1, top // 2, top // 3}
    fields = [f for f in sorted(fields) if 0 <= f <= top]
    numbers = []
    for f in fields:
        a = decode(part, f)
        a = Q(0) if a == NEG0 else a
        up = decode(part, f + 1) if f < top else a * 2 - (decode(part, f - 1) if f else 0)
        numbers += [a, (a + up) / 2]
    return sorted({s * x for x in numbers if x != 0 for s in (1, -1)})


def neighbours(source, number):
    """The elements of a source type at a number and beside it."""
    if source in INTS:
        n = INTS[source]
        low, high = (-(1 << (n - 1)), (1 << (n - 1)) - 1) if source in SIGNED else (0, (1 << n) - 1)
        whole = number.numerator // number.denominator
        return [x & ((1 << n) - 1) for x in (whole - 1, whole, whole + 1) if low <= x <= high]
    at = encode(source, number)
    e, m, _, _ = FLOATS[source]
    infinity = ((1 << e) - 1) << m
    magnitude, sign = at & ((1 << (e + m)) - 1), at & (1 << (e + m))
    return [sign | x for x in (magnitude - 1, magnitude, magnitude + 1) if 0 <= x <= infinity]


def always(source):
    """Elements that every conversion of a wide type is tried on."""
    n = bits_of(source)
    if source in INTS:
        return [0, 1, 2, (1 << n) - 1, 1 << (n - 1), (1 << (n - 1)) - 1, (1 << n) - 2, 0x5555555555555555 & ((1 << n) - 1)]
    e, m, _, _ = FLOATS[source]
    nan = exact.canonical_nan(source)
    some = [0, 1, (1 << m) - 1, 1 << m, largest(source)[0], ((1 << e) - 1) << m, nan, nan | 5, (((1 << e) - 1) << m) | 1]
    some += [encode(source, x) for x in (Q(1), Q(3, 2), Q(5, 2), Q(1, 3), Q(100), Q(10) ** 10)]
    return some + [x | 1 << (n - 1) for x in some]


def wide(source):
    inputs, outputs, arguments, results = [], [], [], []
    for i, target in enumerate(TYPES):
        if source in COMPLEX:
            part = COMPLEX[source]
            parts = sorted({b for x in interesting(target) for b in neighbours(part, x)})
            parts = parts[:: max(1, len(parts) // 12)]
            base, n = always(part), bits_of(part)
            elements = [re | im << n for k, re in enumerate(base + parts) for im in (base[k % len(base)], 0)]
        else:
            elements = always(source) + sorted({b for x in interesting(target) for b in neighbours(source, x)})
        elements = list(dict.fromkeys(elements))
        inputs.append((source, len(elements)))
        outputs.append((i, target))
        arguments.append(exact.raw(source, elements))
        results.append(exact.raw(target, [convert(source, target, b) for b in elements]))
    return chunk(f"points of {source}", inputs, outputs, f"e({', '.join(arguments)}) == {', '.join(results)}", "exact")


def show(source, target):
    assert bits_of(source) <= 16
    for b in patterns_of(source):
        y = convert(source, target, b)
        value = lambda v: v if isinstance(v, (str, tuple)) else float(v)
        print(exact.hexadecimal(source, b), value(decode(source, b)), exact.hexadecimal(target, y), value(decode(target, y)))


def main():
    if sys.argv[1:2] == ["show"]:
        return show(*sys.argv[2:4])
    exact.check_formats()
    os.makedirs(HERE, exist_ok=True)
    for source in TYPES:
        n = bits_of(source)
        text = narrow(source) if n <= 8 else digests(source) if n == 16 else wide(source)
        with open(os.path.join(HERE, source + ".hlo"), "w") as f:
            f.write("// Made by make_conversions.py.\n" + text)


main()
