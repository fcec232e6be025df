#!/usr/bin/env python3
"""Writes types/OPCODE.hlo: each opcode on every element type that ../coverage/legal.txt says it takes.

    make_types.py [OPCODE ...]          needs numpy, ml_dtypes, mpmath
    make_types.py show OPCODE TYPE      the table of one operation: operands, result, as bits and as values

Expected values come from exact.py and functions.py: fractions, mpmath with 400 bits, rounded once. Arithmetic and functions of
the types of up to 8 bits are on every element and every pair of elements (digests, which `show` expands), those of 16 bits
on every element; wider types, and pairs of wide types, on values at the edges. What only moves elements is tried on bit patterns.
"""
import os
import sys
from fractions import Fraction as Q

import exact
import functions as fn
import make_types_more
from exact import COMPLEX, FLOATS, INF, INTS, NAN, NEG0, NINF, SIGNED, TYPES, bits_of, decode, encode, largest, patterns_of

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "coverage"))
import tables

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "types")
LEGAL = tables.legal()
REALS = ["pred", *INTS, *FLOATS]


def types_of(op):
    return [ty for ty in TYPES if ty in LEGAL[op]]


def part_of(ty):
    return COMPLEX.get(ty, ty)


class Program:
    """One program: parameters, instructions, and the results that are expected."""

    def __init__(self, *directives):
        self.directives, self.before, self.body = directives, [], []
        self.arguments, self.results, self.expected, self.parameters = [], [], [], 0

    def parameter(self, shape, value):
        name = f"p{self.parameters}"
        self.body.append(f"{name} = {shape} parameter({self.parameters})")
        self.parameters += 1
        self.arguments.append(value)
        return name

    def do(self, shape, text):
        """An instruction; its name."""
        name = f"v{len(self.body)}"
        self.body.append(f"{name} = {shape} {text}")
        return name

    def result(self, name, shape, *expected):
        self.results.append((name, shape))
        self.expected += expected

    def text(self, origin):
        lines = ["// test: interpret", f"// origin: {origin}", *(f"// {d}" for d in self.directives), "HloModule t", *self.before, "ENTRY e {"]
        lines += ["  " + b for b in self.body]
        names, shapes = ", ".join(n for n, _ in self.results), ", ".join(s for _, s in self.results)
        lines.append(f"  ROOT r = ({shapes}) tuple({names})")
        return "\n".join([*lines, "}", f"// run: e({', '.join(self.arguments)}) == {', '.join(self.expected)}", ""])


files = {}


def emit(op, program, origin="exact, ml_dtypes, mpmath"):
    files.setdefault(op, []).append(program.text(origin))


# ---- values

def edges(ty):
    """Bit patterns of a type where something may go wrong."""
    n = bits_of(ty)
    if ty == "pred" or n <= 4:
        return list(patterns_of(ty))
    if ty in INTS:
        top = 1 << (n - 1)
        some = [0, 1, 2, 3, 7, n - 1, n, n + 1, top - 1, top, top + 1, 2 * top - 1, 2 * top - 2, 2 * top - 7, 0x5555555555555555 & (2 * top - 1)]
        return list(dict.fromkeys(x & (2 * top - 1) for x in some))
    e, m, bias, kind = FLOATS[ty]
    top, nan = largest(ty)[0], exact.canonical_nan(ty)
    some = [0, 1, (1 << m) - 1, 1 << m, top]
    some += [encode(ty, x) for x in (Q(1), Q(1, 2), Q(3, 2), Q(5, 2), Q(3), Q(1, 3), Q(700), 1 - Q(1, 2 ** (m + 1)))]
    if kind == "ieee":
        some.append(((1 << e) - 1) << m)
    some += [x | 1 << (n - 1) for x in some] if kind != "scale" else []
    return list(dict.fromkeys([*some, nan]))


def functions_on(op, ty, values):
    """Results of an operation on lists of bit patterns, one list an operand."""
    n = bits_of(ty)
    if ty == "pred":
        return [fn.PRED_BINARY[op](a, b) if len(values) == 2 else 1 - a for a, *b in zip(*values) for b in (b[0] if b else None,)]
    if ty in INTS:
        signed = ty in SIGNED
        ints = [[int(decode(ty, b)) for b in v] for v in values]
        f = (lambda a: fn.INT_UNARY[op](a, n)) if len(values) == 1 else (lambda a, b: fn.INT_BINARY[op](a, b, n, signed))
        return [f(*v) & ((1 << n) - 1) for v in zip(*ints)]
    reals = [[decode(ty, b) for b in v] for v in values]
    f = (lambda a: fn.unary(op, a)) if len(values) == 1 else fn.BINARY[op]
    if op in ("abs", "negate"):  # on the sign bit, NaN or not
        return [sign_bit(op, ty, b) for b in values[0]]
    return [rounded(op, ty, f(*v)) for v in zip(*reals)]


def sign_bit(op, ty, bits):
    kind, top = FLOATS[ty][3], 1 << (bits_of(ty) - 1)
    if kind == "scale":
        return bits if op == "abs" else 0xff
    if kind == "fnuz" and bits & ~top == 0:
        return bits
    return bits & ~top if op == "abs" else bits ^ top


ELEMENTARY = {"power", "atan2", "acos", "acosh", "asin", "asinh", "atanh", "cbrt", "cosine", "cosh", "erf", "exponential",
              "exponential-minus-one", "log", "log-plus-one", "logistic", "rsqrt", "sine", "sinh", "sqrt", "tan", "tanh"}


def rounded(op, ty, value):
    """One rounding; the steps of f8e8m0fnu are taken from the f64, which is part of its definition."""
    if ty == "f8e8m0fnu":
        value = decode("f64", encode("f64", value))
    return encode(ty, value)


def patterns(ty, count, seed=1):
    """Bit patterns for what only moves elements: all different where the type allows it, NaNs with payloads among them."""
    n, out, x = bits_of(ty), [], seed * 0x9E3779B97F4A7C15
    for i in range(count):
        x = x * 6364136223846793005 + 1442695040888963407 & (1 << 128) - 1
        out.append((x >> 40 & 1) if ty == "pred" else (x >> 7 ^ x >> 64) & ((1 << n) - 1))
    return out


# ---- elementwise

def unary_program(op, ty):
    n = bits_of(ty)
    every = n <= 16
    values = list(patterns_of(ty)) if every else edges(ty)
    shape = f"{ty}[{len(values)}]"
    p = Program("nan-bits: true")
    a = p.parameter(shape, "patterns(0)" if every else exact.raw(ty, values))
    results = functions_on(op, ty, [values])
    p.result(p.do(shape, f"{op}({a})"), shape, exact.digest(ty, results, 16) if n == 16 else exact.raw(ty, results))
    emit(op, p)


def grid(p, ty):
    """Two operands in which every element meets every other: names, shape, and their patterns."""
    every = bits_of(ty) <= 8
    values = list(patterns_of(ty)) if every else edges(ty)
    k = len(values)
    a = p.parameter(f"{ty}[{k}]", "patterns(0)" if every else exact.raw(ty, values))
    shape = f"[{k},{k}]"
    x, y = (p.do(ty + shape, f"broadcast({a}), dimensions={{{d}}}") for d in (0, 1))
    return (x, y), shape, [[u for u in values for _ in values], values * k]


def grid_result(ty, results, k):
    """A table, or a digest of each 16th of the rows."""
    if k < 64:
        small = len(results) <= 256 or ty != "pred" and bits_of(ty) * len(results) < 1 << 13
        return exact.raw(ty, results) if small else exact.digest(ty, results, k)
    return exact.digest(ty, results, 16)


def binary_program(op, ty):
    p = Program("nan-bits: true")
    (x, y), shape, values = grid(p, ty)
    results = functions_on(op, ty, values)
    p.result(p.do(ty + shape, f"{op}({x}, {y})"), ty + shape, grid_result(ty, results, int(len(results) ** 0.5)))
    emit(op, p)


def points(ty, count=10):
    """Complex numbers off the axes, as bit patterns."""
    part = COMPLEX[ty]
    parts = [Q(3, 4), Q(-5, 4), Q(1, 3), Q(-2), Q(7, 5), Q(1, 100), Q(-9, 8), Q(5, 2), Q(-1, 7), Q(3)]
    n = bits_of(part)
    return [encode(part, parts[i]) | encode(part, parts[(i * 7 + 3) % 10] + Q(i, 16)) << n for i in range(count)]


def join(ty, pair):
    part = COMPLEX[ty]
    return encode(part, pair[0]) | encode(part, pair[1]) << bits_of(part)


def complex_unary(op, ty):
    values = points(ty)
    shape = f"{ty}[{len(values)}]"
    p = Program()
    a = p.parameter(shape, exact.raw(ty, values))
    if op == "abs":
        part = COMPLEX[ty]
        moduli = [encode(part, fn.number(abs(fn.complex_mp(decode(ty, b))))) for b in values]
        p.result(p.do(f"{part}[{len(values)}]", f"abs({a})"), f"{part}[{len(values)}]", exact.raw(part, moduli))
    else:
        results = [join(ty, fn.pair(fn.COMPLEX_UNARY[op](fn.complex_mp(decode(ty, b))))) for b in values]
        p.result(p.do(shape, f"{op}({a})"), shape, exact.raw(ty, results))
    emit(op, p, "mpmath")


def complex_binary(op, ty):
    left, right = points(ty), points(ty)[3:] + points(ty)[:3]
    shape = f"{ty}[{len(left)}]"
    p = Program()
    a, b = (p.parameter(shape, exact.raw(ty, v)) for v in (left, right))
    results = [join(ty, fn.COMPLEX_BINARY[op](decode(ty, x), decode(ty, y))) for x, y in zip(left, right)]
    p.result(p.do(shape, f"{op}({a}, {b})"), shape, exact.raw(ty, results))
    emit(op, p, "mpmath" if op in ELEMENTARY else "exact")


def elementwise():
    for op in [*fn.UNARY, "not", "popcnt", "count-leading-zeros"]:
        for ty in types_of(op):
            yield op, ty, complex_unary if ty in COMPLEX else unary_program
    for op in [*fn.BINARY, "and", "or", "xor", "mulhi", "shift-left", "shift-right-arithmetic", "shift-right-logical"]:
        for ty in types_of(op):
            yield op, ty, complex_binary if ty in COMPLEX else binary_program


DIRECTIONS = {"EQ": lambda a, b: a == b, "NE": lambda a, b: a != b, "LT": lambda a, b: a < b, "LE": lambda a, b: a <= b,
              "GT": lambda a, b: a > b, "GE": lambda a, b: a >= b}


def compare(op, ty):
    p = Program()
    if ty in COMPLEX:
        values = points(ty, 4) + [join(ty, v) for v in ((Q(1), Q(2)), (Q(1), NEG0), (NEG0, Q(0)), (Q(0), NEG0), (NAN, Q(0)), (Q(1), NAN))]
        k = len(values)
        a = p.parameter(f"{ty}[{k}]", exact.raw(ty, values))
        shape = f"[{k},{k}]"
        x, y = (p.do(ty + shape, f"broadcast({a}), dimensions={{{d}}}") for d in (0, 1))
        same = lambda a, b: NAN not in (a, b) and (a == b or fn.is_zero(a) and fn.is_zero(b))
        equal = [int(all(same(u, v) for u, v in zip(decode(ty, a), decode(ty, b)))) for a in values for b in values]
        for direction, results in (("EQ", equal), ("NE", [1 - e for e in equal])):
            p.result(p.do("pred" + shape, f"compare({x}, {y}), direction={direction}"), "pred" + shape, exact.raw("pred", results))
        return emit(op, p, "exact")
    (x, y), shape, (left, right) = grid(p, ty)
    k = int(len(left) ** 0.5)
    for direction, f in DIRECTIONS.items():
        if ty in FLOATS:
            def holds(a, b):
                return direction == "NE" if NAN in (a, b) else f(value_order(a), value_order(b))
        else:
            holds = f
        results = [int(holds(decode(ty, a), decode(ty, b))) for a, b in zip(left, right)]
        p.result(p.do("pred" + shape, f"compare({x}, {y}), direction={direction}"), "pred" + shape, grid_result("pred", results, k))
        if ty in FLOATS:
            nan, n = exact.canonical_nan(ty), bits_of(ty)
            key = lambda b: fn.total_key(ty, b, n, nan)
            results = [int(f(key(a), key(b))) for a, b in zip(left, right)]
            p.result(p.do("pred" + shape, f"compare({x}, {y}), direction={direction}, type=TOTALORDER"), "pred" + shape, grid_result("pred", results, k))
    emit(op, p, "exact")


def value_order(v):
    return fn.order(v)[:2]


def real_imag(op, ty):
    p = Program("nan-bits: true")
    part = part_of(ty)
    values = points(ty) + [join(ty, v) for v in ((NEG0, INF), (NAN, NEG0))] if ty in COMPLEX else edges(ty)
    a = p.parameter(f"{ty}[{len(values)}]", exact.raw(ty, values))
    n = bits_of(part)
    if ty in COMPLEX:
        results = [b & (1 << n) - 1 if op == "real" else b >> n for b in values]
    else:  # zero; f8e8m0fnu has none, and NaN in its place
        results = values if op == "real" else [encode(ty, Q(0))] * len(values)
    p.result(p.do(f"{part}[{len(values)}]", f"{op}({a})"), f"{part}[{len(values)}]", exact.raw(part, results))
    emit(op, p, "exact")


def complex_(op, ty):
    p = Program("nan-bits: true")
    values = edges(ty)
    other = values[::-1]
    to, n = {"f32": "c64", "f64": "c128"}[ty], bits_of(ty)
    a, b = (p.parameter(f"{ty}[{len(v)}]", exact.raw(ty, v)) for v in (values, other))
    p.result(p.do(f"{to}[{len(values)}]", f"complex({a}, {b})"), f"{to}[{len(values)}]", exact.raw(to, [x | y << n for x, y in zip(values, other)]))
    emit(op, p, "exact")


def is_finite(op, ty):
    n = bits_of(ty)
    values = list(patterns_of(ty)) if n <= 16 else edges(ty)
    p = Program()
    a = p.parameter(f"{ty}[{len(values)}]", "patterns(0)" if n <= 16 else exact.raw(ty, values))
    results = [int(decode(ty, b) not in (NAN, INF, NINF)) for b in values]
    p.result(p.do(f"pred[{len(values)}]", f"is-finite({a})"), f"pred[{len(values)}]", exact.digest("pred", results, 16) if n == 16 else exact.raw("pred", results))
    emit(op, p, "exact")


def reduced(ty, bits, exponent_bits, mantissa_bits):
    """reduce-precision as SEMANTICS.md states it."""
    value = decode(ty, bits)
    if value == NAN:
        return ((1 << FLOATS[ty][0]) - 1) << FLOATS[ty][1] if mantissa_bits == 0 and FLOATS[ty][3] == "ieee" else bits
    own = ty if bits_of(ty) >= 16 else "f32" if ty == "f8e8m0fnu" else "f16"
    e, m, bias, _ = FLOATS[own]
    y = encode(own, value)
    sign, magnitude = y & 1 << (e + m), y & (1 << (e + m)) - 1
    if mantissa_bits < m and magnitude < ((1 << e) - 1) << m:
        unit = 1 << (m - mantissa_bits)
        magnitude = round(Q(magnitude, unit)) * unit
    v = decode(own, magnitude)
    if exponent_bits < e:
        reach = (1 << (exponent_bits - 1)) - 1
        if v == INF or v >= Q(2) ** (reach + 1):
            v = INF
        elif v < Q(2) ** (1 - reach):
            v = Q(0)
    return encode(ty, fn.negate(v) if sign else v)


def reduce_precision(op, ty):
    n = bits_of(ty)
    values = list(patterns_of(ty)) if n <= 8 else edges(ty)
    shape = f"{ty}[{len(values)}]"
    p = Program("nan-bits: true")
    a = p.parameter(shape, "patterns(0)" if n <= 8 else exact.raw(ty, values))
    for e, m in ((5, 10), (8, 7), (3, 2), (11, 52), (4, 1)):
        results = [reduced(ty, b, e, m) for b in values]
        p.result(p.do(shape, f"reduce-precision({a}), exponent_bits={e}, mantissa_bits={m}"), shape, exact.raw(ty, results))
    emit(op, p, "exact")


def stochastic_convert(op, ty):
    n = bits_of(ty)
    word = f"u{n}"
    values = edges(ty) + [encode(ty, x) for x in (Q(5, 4), Q(-5, 4), Q(3, 4), Q(-7, 2))]
    draws = [0, 1 << (n - 2), (1 << (n - 1)) - 1, 1 << (n - 1), (1 << n) - 1]
    pairs = [(b, r) for b in values for r in draws]
    p = Program()
    a = p.parameter(f"{ty}[{len(pairs)}]", exact.raw(ty, [b for b, _ in pairs]))
    r = p.parameter(f"{word}[{len(pairs)}]", exact.raw(word, [r for _, r in pairs]))
    for to in SIGNED:
        k = SIGNED[to]
        low, high = -(1 << (k - 1)), (1 << (k - 1)) - 1

        def one(b, draw):
            v = decode(ty, b)
            if v in (NAN, NEG0):
                return 0
            if v in (INF, NINF):
                return high if v == INF else low
            if v >= high or v <= low:
                return high if v >= high else low
            whole = abs(v) // 1
            whole += draw < int((abs(v) - whole) * (1 << n))
            return int(whole if v > 0 else -whole)
        shape = f"{to}[{len(pairs)}]"
        p.result(p.do(shape, f"stochastic-convert({a}, {r})"), shape, exact.raw(to, [one(*x) & (1 << k) - 1 for x in pairs]))
    emit(op, p, "exact")


def clamp(op, ty):
    p = Program()
    if ty in COMPLEX:
        values = [decode(ty, b) for b in points(ty)]
        value, f = (lambda z: join(ty, z)), lambda lo, x, hi: min(hi, max(x, lo))
    elif ty in FLOATS:
        values = [decode(ty, b) for b in edges(ty)[::2]]
        value, f = (lambda v: encode(ty, v)), lambda lo, x, hi: fn.minimum(hi, fn.maximum(lo, x))
    else:
        values = [decode(ty, b) for b in edges(ty)[:12]]
        n = bits_of(ty)
        value, f = (lambda v: int(v) & (1 << n) - 1), lambda lo, x, hi: min(hi, max(lo, x))
    triples = [(lo, x, hi) for lo in values[::3] for x in values for hi in values[1::3]]
    shape = f"{ty}[{len(triples)}]"
    names = [p.parameter(shape, exact.raw(ty, [value(t[i]) for t in triples])) for i in range(3)]
    p.result(p.do(shape, f"clamp({', '.join(names)})"), shape, exact.raw(ty, [value(f(*t)) for t in triples]))
    emit(op, p, "exact")


SPECIAL = {"compare": compare, "real": real_imag, "imag": real_imag, "complex": complex_, "is-finite": is_finite,
           "reduce-precision": reduce_precision, "stochastic-convert": stochastic_convert, "clamp": clamp}


def show(op, ty):
    n = bits_of(ty)
    two = op in fn.BINARY or op in fn.INT_BINARY and op not in fn.INT_UNARY
    values = list(patterns_of(ty)) if n <= (8 if two else 16) else edges(ty)
    operands = [[u for u in values for _ in values], values * len(values)] if two else [values]
    word = lambda b: f"{exact.hexadecimal(ty, b)} {decode(ty, b) if isinstance(decode(ty, b), str) else float(decode(ty, b))}"
    for *xs, y in zip(*operands, functions_on(op, ty, operands)):
        print(", ".join(map(word, xs)), "->", word(y))


def write(chosen):
    os.makedirs(HERE, exist_ok=True)
    for op, chunks in files.items():
        if not chosen or op in chosen:
            with open(os.path.join(HERE, op + ".hlo"), "w") as f:
                f.write("// Made by make_types.py.\n" + "// ====\n".join(chunks))


def main():
    if sys.argv[1:2] == ["show"]:
        return show(*sys.argv[2:4])
    chosen = set(sys.argv[1:])
    exact.check_formats()
    jobs = list(elementwise()) + [(op, ty, make) for op, make in SPECIAL.items() for ty in types_of(op)]
    for op, ty, make in jobs if not chosen or any(op in chosen for op, _, _ in jobs) else []:
        if not chosen or op in chosen:
            make(op, ty)
    types = lambda op, pairs=False: LEGAL[op] if pairs else [None] if "-" in LEGAL[op] else types_of(op)
    maker = make_types_more.Maker(chosen, types, Program, emit, patterns, edges)
    maker.make()
    maker.transfers(lambda op, text: files.setdefault(op, []).append(text))
    write(chosen)


if __name__ == "__main__":
    main()
