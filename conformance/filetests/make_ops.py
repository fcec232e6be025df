#!/usr/bin/env python3
"""Writes ops/*.hlo: for each opcode small programs with expected results that are not our own.

    make_ops.py            needs numpy, ml_dtypes, mpmath

Where the expected values come from: elementary functions from mpmath with 300 bits, rounded once; arithmetic, conversion and data
movement from numpy and ml_dtypes; contractions and windows from the loops below, in exact integers; special values (NaN,
infinities, zeros, empty arrays, integer edges) and control flow by hand, from IEEE 754-2019 and the operation's definition.
"""
import itertools, os
import ml_dtypes, mpmath
import numpy as np

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ops")
NP = dict(pred=np.bool_, s8=np.int8, s16=np.int16, s32=np.int32, s64=np.int64, u8=np.uint8, u16=np.uint16, u32=np.uint32,
          u64=np.uint64, f16=np.float16, bf16=ml_dtypes.bfloat16, f32=np.float32, f64=np.float64, c64=np.complex64,
          c128=np.complex128, s4=ml_dtypes.int4, u4=ml_dtypes.uint4, f8e4m3fn=ml_dtypes.float8_e4m3fn,
          f8e5m2=ml_dtypes.float8_e5m2, f8e4m3fnuz=ml_dtypes.float8_e4m3fnuz, f8e5m2fnuz=ml_dtypes.float8_e5m2fnuz,
          f8e4m3b11fnuz=ml_dtypes.float8_e4m3b11fnuz, f8e3m4=ml_dtypes.float8_e3m4, f8e4m3=ml_dtypes.float8_e4m3,
          f8e8m0fnu=ml_dtypes.float8_e8m0fnu, f4e2m1fn=ml_dtypes.float4_e2m1fn)
inf, nan = float("inf"), float("nan")
files = {}


class A:
    """An array with its element type."""
    def __init__(self, ty, values):
        self.ty = ty
        with np.errstate(all="ignore"):
            self.v = values.astype(NP[ty]) if isinstance(values, np.ndarray) else np.array(values, dtype=NP[ty])

    @property
    def shape(self):
        return f"{self.ty}[{','.join(map(str, self.v.shape))}]"


def real(x):
    x = x.item() if hasattr(x, "item") else x
    x = float(x)
    if x != x:
        return "nan"
    if x in (inf, -inf):
        return "inf" if x > 0 else "-inf"
    return repr(x)[:-2] if repr(x).endswith(".0") else repr(x)


def scalar(ty, x):
    if ty == "pred":
        return "true" if x else "false"
    if ty[0] == "c":
        return f"({real(x.real)}, {real(x.imag)})"
    if ty[0] in "su":
        return str(int(x))
    if ty == "f32":  # the shortest digits of the type, not of its double
        return real(x) if not np.isfinite(x) else np.format_float_scientific(x, trim="-") if abs(x) >= 1e16 or 0 < abs(x) < 1e-5 else np.format_float_positional(x, trim="-")
    return real(x)


def text(a):
    def go(v):
        return scalar(a.ty, v[()]) if v.ndim == 0 else "[" + ", ".join(go(x) for x in v) + "]"
    return go(a.v)


def test(op, what, body, args, results, before="", ulp=None, directives=(), root=None):
    """body: instructions after the parameters, using p0, p1, ..."""
    lines = [f"// ==== {what}", "// test: interpret", *(f"// {d}" for d in directives), "HloModule t", ""]
    if before:
        lines += [before.strip("\n"), ""]
    lines.append("ENTRY e {")
    lines += [f"  p{i} = {a.shape} parameter({i})" for i, a in enumerate(args)]
    lines += ["  " + l.strip() for l in body.strip().splitlines()]
    lines.append("}")
    tail = f" ~ulp({ulp})" if ulp else ""
    lines.append(f"// run: e({', '.join(map(text, args))}) == {', '.join(map(text, results))}{tail}")
    files.setdefault(op, []).append("\n".join(lines) + "\n")


def elementwise(op, args, result, what=None, attrs=""):
    names = ", ".join(f"p{i}" for i in range(len(args)))
    test(op, what or f"{op} of {args[0].ty}", f"ROOT r = {result.shape} {op}({names}){attrs}", args, [result])


# ---- elementary functions
mpmath.mp.prec = 300
DIGITS = dict(f16=11, bf16=8, f32=24, f64=53)
logistic = lambda x: 1 / (1 + mpmath.exp(-x))
UNARY = {  # function, ordinary points, special points with their values
    "acos": (mpmath.acos, [0.5, -0.75, 0.125], [(1, 0), (2, nan), (inf, nan)]),
    "acosh": (mpmath.acosh, [1.5, 10, 100], [(1, 0), (0.5, nan), (inf, inf), (-inf, nan)]),
    "asin": (mpmath.asin, [0.5, -0.75, 1], [(0, 0), (-0.0, -0.0), (1.5, nan)]),
    "asinh": (mpmath.asinh, [0.5, -2, 100], [(0, 0), (-0.0, -0.0), (inf, inf), (-inf, -inf)]),
    "atanh": (mpmath.atanh, [0.5, -0.75, 0.125], [(0, 0), (-0.0, -0.0), (1, inf), (-1, -inf), (2, nan)]),
    "cbrt": (mpmath.cbrt, [0.5, 2, 100], [(8, 2), (-8, -2), (-0.0, -0.0), (inf, inf), (-inf, -inf)]),
    "cosine": (mpmath.cos, [0.5, -2, 100], [(0, 1), (inf, nan)]),
    "cosh": (mpmath.cosh, [0.5, -2, 5], [(0, 1), (inf, inf), (-inf, inf)]),
    "erf": (mpmath.erf, [0.5, -1, 2], [(0, 0), (-0.0, -0.0), (inf, 1), (-inf, -1)]),
    "exponential": (mpmath.exp, [0.5, -2, 5], [(0, 1), (inf, inf), (-inf, 0)]),
    "exponential-minus-one": (mpmath.expm1, [0.5, -2, 0.0009765625], [(0, 0), (-0.0, -0.0), (inf, inf), (-inf, -1)]),
    "log": (mpmath.log, [0.5, 2, 100], [(1, 0), (0, -inf), (-0.0, -inf), (-1, nan), (inf, inf)]),
    "log-plus-one": (mpmath.log1p, [0.5, -0.75, 0.0009765625], [(0, 0), (-0.0, -0.0), (-1, -inf), (-2, nan), (inf, inf)]),
    "logistic": (logistic, [0.5, -2, 5], [(0, 0.5), (inf, 1), (-inf, 0)]),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), [0.5, 3, 100], [(4, 0.5), (0, inf), (-0.0, -inf), (-1, nan), (inf, 0)]),
    "sine": (mpmath.sin, [0.5, -2, 100], [(0, 0), (-0.0, -0.0), (inf, nan)]),
    "sinh": (mpmath.sinh, [0.5, -2, 5], [(0, 0), (-0.0, -0.0), (inf, inf), (-inf, -inf)]),
    "sqrt": (mpmath.sqrt, [0.5, 2, 100], [(4, 2), (0, 0), (-0.0, -0.0), (-1, nan), (inf, inf)]),
    "tan": (mpmath.tan, [0.5, -2, 1], [(0, 0), (-0.0, -0.0), (inf, nan)]),
    "tanh": (mpmath.tanh, [0.5, -2, 0.0009765625], [(0, 0), (-0.0, -0.0), (inf, 1), (-inf, -1)]),
}


def rounded(f, ty, *xs):
    """f of exact numbers, rounded once to a type (results here are all normal numbers)."""
    y = f(*(mpmath.mpf(float(x)) for x in xs))
    with mpmath.workprec(DIGITS[ty]):
        return float(+y)


for op, (f, points, special) in UNARY.items():
    for ty in DIGITS:
        x = A(ty, points + [p for p, _ in special] + [nan])
        ys = [rounded(f, ty, p) for p in x.v[:len(points)]] + [y for _, y in special] + [nan]
        elementwise(op, [x], A(ty, ys))
    elementwise(op, [A("f32", 1)], A("f32", dict(special).get(1.0, rounded(f, "f32", 1))), f"{op} of a scalar")
    elementwise(op, [A("f32", np.zeros((0, 3)))], A("f32", np.zeros((0, 3))), f"{op} of nothing")

for ty in DIGITS:
    pairs = [(1, 1), (1, -2), (-0.5, 3), (3, 0.125)]
    special = [((0.0, 1.0), 0), ((-0.0, 1.0), -0.0), ((nan, 1.0), nan), ((1.0, inf), 0), ((-1.0, inf), -0.0)]
    y, x = (A(ty, [p[i] for p in pairs + [p for p, _ in special]]) for i in (0, 1))
    elementwise("atan2", [y, x], A(ty, [rounded(mpmath.atan2, ty, *p) for p in pairs] + [y for _, y in special]))
    pairs = [(2, 0.5), (3, -2), (0.75, 3.5), (10, 3)]
    special = [((0, 0), 1), ((nan, 0), 1), ((1, nan), 1), ((-8, 3), -512), ((-8, 0.5), nan), ((inf, -1), 0), ((0, -1), inf), ((-0.0, -1), -inf), ((2, inf), inf), ((0.5, inf), 0)]
    b, e = (A(ty, [p[i] for p in pairs + [p for p, _ in special]]) for i in (0, 1))
    elementwise("power", [b, e], A(ty, [rounded(mpmath.power, ty, *p) for p in pairs] + [y for _, y in special]))
elementwise("power", [A("s32", [2, -3, 0, 5, 2]), A("s32", [10, 3, 0, 1, 31])], A("s32", [1024, -27, 1, 5, -2**31]))

# ---- arithmetic
F = [1.5, -2.5, 0.0, -0.0, inf, -inf, nan, 3.0]
G = [2.25, 0.5, -0.0, 0.0, -inf, 2.0, 1.0, 0.1]
for op, f in dict(add=np.add, subtract=np.subtract, multiply=np.multiply, divide=np.divide).items():
    for ty in ("f16", "bf16", "f32", "f64"):
        a, b = A(ty, F), A(ty, G)
        with np.errstate(all="ignore"):
            elementwise(op, [a, b], A(ty, f(a.v, b.v)))
    elementwise(op, [A("f32", np.zeros((2, 0)))] * 2, A("f32", np.zeros((2, 0))), f"{op} of nothing")
    elementwise(op, [A("f32", 3), A("f32", 2)], A("f32", f(3, 2)), f"{op} of scalars")
for op, f in dict(add=np.add, subtract=np.subtract, multiply=np.multiply).items():
    for ty in ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"):
        i = np.iinfo(NP[ty])
        a, b = A(ty, [i.max, i.min, 7, 5]), A(ty, [1, 1, 3, i.max])
        with np.errstate(all="ignore"):
            elementwise(op, [a, b], A(ty, f(a.v, b.v)))
    a, b = A("c64", [1 + 2j, -1.5 + 0j, 3j]), A("c64", [2 - 1j, 0.5j, 4 + 0j])
    elementwise(op, [a, b], A("c64", f(a.v, b.v)))
elementwise("add", [A("s4", [7, -8, 3]), A("s4", [1, -1, -4])], A("s4", [-8, 7, -1]))
elementwise("multiply", [A("f8e4m3fn", [1.5, 448, nan]), A("f8e4m3fn", [1.125, 2, 1])], A("f8e4m3fn", [1.75, nan, nan]), "multiply of f8e4m3fn: 1.6875 is a tie and goes to even, overflow is NaN")
elementwise("add", [A("f8e5m2", [57344, 1, -0.0]), A("f8e5m2", [57344, 0.25, -0.0])], A("f8e5m2", [inf, 1.25, -0.0]))
elementwise("divide", [A("s32", [7, -7, 7, -7, 5, -2**31]), A("s32", [2, 2, -2, -2, 0, -1])], A("s32", [3, -3, -3, 3, -1, -2**31]), "divide of s32: towards zero; by zero -1; the least by -1 itself")
elementwise("divide", [A("u8", [7, 255, 5]), A("u8", [2, 16, 0])], A("u8", [3, 15, 255]), "divide of u8: by zero all ones")
elementwise("remainder", [A("s32", [7, -7, 7, -7, 5, -2**31]), A("s32", [2, 2, -2, -2, 0, -1])], A("s32", [1, -1, 1, -1, 5, 0]), "remainder of s32: sign of the dividend; by zero the dividend")
elementwise("remainder", [A("u8", [7, 255, 5]), A("u8", [2, 16, 0])], A("u8", [1, 15, 5]))
a, b = A("f32", [5.5, -5.5, 5.5, 1, 0, -0.0, inf, 3, nan]), A("f32", [2, 2, -2, 0.1, 1, 1, 2, inf, 1])
with np.errstate(all="ignore"):
    elementwise("remainder", [a, b], A("f32", np.fmod(a.v, b.v)))
elementwise("maximum", [A("f32", [1, nan, -0.0, 0.0, -inf]), A("f32", [2, 1, 0.0, -0.0, 5])], A("f32", [2, nan, 0.0, 0.0, 5]), "maximum: NaN wins, -0 is less than 0")
elementwise("minimum", [A("f32", [1, nan, -0.0, 0.0, -inf]), A("f32", [2, 1, 0.0, -0.0, 5])], A("f32", [1, nan, -0.0, -0.0, -inf]), "minimum: NaN wins, -0 is less than 0")
elementwise("maximum", [A("u32", [1, 2**32 - 1]), A("u32", [2, 0])], A("u32", [2, 2**32 - 1]))
elementwise("minimum", [A("s8", [-128, 127]), A("s8", [0, -1])], A("s8", [-128, -1]))
elementwise("maximum", [A("pred", [False, True]), A("pred", [False, False])], A("pred", [False, True]))
elementwise("abs", [A("f32", [-1.5, -0.0, -inf, nan])], A("f32", [1.5, 0.0, inf, nan]))
elementwise("abs", [A("s8", [-5, 5, -128])], A("s8", [5, 5, -128]), "abs of s8: of the least itself")
elementwise("abs", [A("c64", [3 + 4j, -5 + 0j])], A("f32", [5, 5]), "abs of c64: the modulus")
elementwise("negate", [A("f32", [1.5, 0.0, -0.0, inf])], A("f32", [-1.5, -0.0, 0.0, -inf]))
elementwise("negate", [A("s8", [5, -128])], A("s8", [-5, -128]))
elementwise("sign", [A("f32", [2.5, -3, 0.0, -0.0, inf, nan])], A("f32", [1, -1, 0.0, -0.0, 1, nan]))
elementwise("sign", [A("s32", [5, 0, -7])], A("s32", [1, 0, -1]))
elementwise("sign", [A("u8", [5, 0])], A("u8", [1, 0]))
X = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.3, -0.3, -0.0, inf, nan]
elementwise("floor", [A("f32", X)], A("f32", np.floor(np.float32(X))))
elementwise("ceil", [A("f32", X)], A("f32", np.ceil(np.float32(X))))
elementwise("round-nearest-even", [A("f32", X)], A("f32", np.rint(np.float32(X))))
elementwise("round-nearest-afz", [A("f32", X)], A("f32", [1, 2, 3, -1, -2, -3, 0, -0.0, -0.0, inf, nan]))
elementwise("round-nearest-afz", [A("f32", [0.49999997, 8388609])], A("f32", [0, 8388609]), "round-nearest-afz where adding a half would be wrong")
elementwise("is-finite", [A("f32", [1, inf, -inf, nan])], A("pred", [True, False, False, False]))
elementwise("real", [A("c64", [1 + 2j])], A("f32", [1]))
elementwise("imag", [A("c64", [1 + 2j])], A("f32", [2]))
elementwise("real", [A("f32", [1.5])], A("f32", [1.5]))
elementwise("imag", [A("f32", [1.5])], A("f32", [0]))
elementwise("complex", [A("f32", [1, -0.0]), A("f32", [2, 3])], A("c64", [1 + 2j, complex(-0.0, 3)]))

# ---- bits
elementwise("not", [A("s8", [0, 5, -1])], A("s8", [-1, -6, 0]))
elementwise("not", [A("pred", [True, False])], A("pred", [False, True]))
elementwise("popcnt", [A("u8", [0, 7, 255])], A("u8", [0, 3, 8]))
elementwise("popcnt", [A("s32", [-1])], A("s32", [32]))
elementwise("count-leading-zeros", [A("u8", [0, 1, 255])], A("u8", [8, 7, 0]))
elementwise("count-leading-zeros", [A("s32", [0, -1, 1 << 20])], A("s32", [32, 0, 11]))
for op, f in {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}.items():
    for ty in ("s32", "u8", "pred"):
        a, b = (A(ty, [0, 0, 1, 1]), A(ty, [0, 1, 0, 1])) if ty == "pred" else (A(ty, [12, 7, 0]), A(ty, [10, 1, 99]))
        elementwise(op, [a, b], A(ty, f(a.v, b.v)))
elementwise("shift-left", [A("u8", [1, 255, 1, 3])] + [A("u8", [3, 4, 8, 200])], A("u8", [8, 240, 0, 0]), "shift-left: all bits out is 0")
elementwise("shift-right-logical", [A("s8", [-1, 64, -128, -1]), A("s8", [1, 3, 7, 8])], A("s8", [127, 8, 1, 0]))
elementwise("shift-right-arithmetic", [A("s8", [-1, 64, -128, -5]), A("s8", [1, 3, 7, 99])], A("s8", [-1, 8, -1, -1]), "shift-right-arithmetic: all bits out leaves the sign")
elementwise("mulhi", [A("u32", [2**32 - 1, 1 << 16, 3]), A("u32", [2**32 - 1, 1 << 16, 5])], A("u32", [2**32 - 2, 1, 0]), "mulhi of u32: the high half of the product")
elementwise("mulhi", [A("s32", [-2**31, -1, 1 << 20]), A("s32", [-2**31, 5, 1 << 20])], A("s32", [1 << 30, -1, 256]), "mulhi of s32")

# ---- comparison and selection
a, b = A("f32", [1, 2, nan, 0.0, inf]), A("f32", [1, 3, nan, -0.0, inf])
for d, f in dict(EQ=np.equal, NE=np.not_equal, LT=np.less, LE=np.less_equal, GT=np.greater, GE=np.greater_equal).items():
    elementwise("compare", [a, b], A("pred", f(a.v, b.v)), f"compare {d}", f", direction={d}")
elementwise("compare", [A("f32", [-0.0, 0.0, nan, -inf]), A("f32", [0.0, -0.0, inf, nan])], A("pred", [True, False, False, True]), "compare LT in the total order", ", direction=LT, type=TOTALORDER")
elementwise("compare", [A("u8", [200, 1]), A("u8", [100, 2])], A("pred", [False, True]), "compare of u8", ", direction=LT")
elementwise("compare", [A("c64", [1 + 2j, 1 + 0j]), A("c64", [1 + 2j, 1 + 1j])], A("pred", [True, False]), "compare of c64", ", direction=EQ")
test("select", "select by element", "ROOT r = f32[3] select(p0, p1, p2)", [A("pred", [True, False, True]), A("f32", [1, 2, nan]), A("f32", [4, 5, 6])], [A("f32", [1, 5, nan])])
test("select", "select by one predicate", "ROOT r = f32[2] select(p0, p1, p2)", [A("pred", False), A("f32", [1, 2]), A("f32", [4, -0.0])], [A("f32", [4, -0.0])])
test("clamp", "clamp between scalars", "ROOT r = f32[4] clamp(p0, p1, p2)", [A("f32", 0), A("f32", [-1, 0.5, 7, nan]), A("f32", 1)], [A("f32", [0, 0.5, 1, nan])])
test("clamp", "clamp of s32", "ROOT r = s32[3] clamp(p0, p1, p2)", [A("s32", [0, 0, 0]), A("s32", [-5, 3, 50]), A("s32", [9, 9, 9])], [A("s32", [0, 3, 9])])

# ---- conversion
V = [0, 1, -1, 1.5, 2.5, -2.75, 300, 65504, 1e10, inf, -inf, nan]
for ty in ("f16", "bf16", "f64", "f8e4m3fn", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz", "f8e4m3b11fnuz", "f8e3m4", "f8e4m3"):
    with np.errstate(all="ignore"):
        elementwise("convert", [A("f32", V)], A(ty, np.float32(V).astype(NP[ty])), f"convert f32 to {ty}")
elementwise("convert", [A("f32", [1.9, -1.9, 1e10, -1e10, nan, inf])], A("s32", [1, -1, 2**31 - 1, -2**31, 0, 2**31 - 1]), "convert f32 to s32: towards zero, saturating, NaN to 0")
elementwise("convert", [A("f32", [-3, 300, 7.5])], A("u8", [0, 255, 7]), "convert f32 to u8 saturates")
elementwise("convert", [A("f32", [0, -0.0, 0.5, nan])], A("pred", [False, False, True, True]), "convert f32 to pred: not zero")
elementwise("convert", [A("s32", [300, -1, 2**31 - 1])], A("s8", [44, -1, -1]), "convert s32 to s8 wraps")
elementwise("convert", [A("s32", [16777217, -16777219])], A("f32", [16777216, -16777220]), "convert s32 to f32: ties to even")
elementwise("convert", [A("pred", [True, False])], A("f32", [1, 0]), "convert pred to f32")
elementwise("convert", [A("u64", [2**64 - 1])], A("f64", [2.0**64]), "convert u64 to f64")
elementwise("convert", [A("f32", [1.5, -2])], A("c64", [1.5, -2]), "convert f32 to c64")
elementwise("bitcast-convert", [A("f32", [1.0, -0.0])], A("u32", [0x3F800000, 0x80000000]), "bitcast-convert f32 to u32")
elementwise("bitcast-convert", [A("u32", [0x7FC00000, 0xFF800000])], A("f32", [nan, -inf]), "bitcast-convert u32 to f32")
elementwise("bitcast-convert", [A("u32", [0x04030201, 0xFF])], A("u8", [[1, 2, 3, 4], [255, 0, 0, 0]]), "bitcast-convert to a narrower type adds a dimension")
elementwise("bitcast-convert", [A("u8", [[1, 2, 3, 4]])], A("u32", [0x04030201]), "bitcast-convert to a wider type takes a dimension")
for e, m, xs, ys in ((5, 10, [1.0001, 65536, 1e-8], [1, inf, 0]), (8, 7, [1.00390625, 3.14159], [1, 3.140625]), (5, 2, [1.1, -3], [1, -3])):
    elementwise("reduce-precision", [A("f32", xs)], A("f32", ys), f"reduce-precision to {e} and {m} bits", f", exponent_bits={e}, mantissa_bits={m}")

# ---- data movement, through numpy
M = np.arange(6, dtype=np.float32).reshape(2, 3)
move = lambda op, what, body, args, result: test(op, what, body.replace("@", result.shape), args, [result])
move("broadcast", "a scalar", "ROOT r = @ broadcast(p0), dimensions={}", [A("f32", 1.5)], A("f32", np.full((2, 2), 1.5)))
move("broadcast", "a row to rows", "ROOT r = @ broadcast(p0), dimensions={1}", [A("f32", [1, 2, 3])], A("f32", np.tile(np.float32([1, 2, 3]), (2, 1))))
move("broadcast", "a column, into nothing", "ROOT r = @ broadcast(p0), dimensions={0}", [A("f32", [1, 2])], A("f32", np.zeros((2, 0))))
move("reshape", "to other dimensions", "ROOT r = @ reshape(p0)", [A("f32", M)], A("f32", M.reshape(3, 2)))
move("reshape", "nothing", "ROOT r = @ reshape(p0)", [A("f32", np.zeros((0, 4)))], A("f32", np.zeros((2, 0, 5))))
move("transpose", "a matrix", "ROOT r = @ transpose(p0), dimensions={1,0}", [A("f32", M)], A("f32", M.T))
C = np.arange(24).reshape(2, 3, 4)
move("transpose", "three dimensions", "ROOT r = @ transpose(p0), dimensions={2,0,1}", [A("s32", C)], A("s32", C.transpose(2, 0, 1)))
move("copy", "from row-major to column-major", "ROOT r = @{0,1} copy(p0)", [A("f32", M)], A("f32", M))
move("bitcast", "reads memory order", "c = f32[2,3]{0,1} copy(p0)\nROOT r = @{0} bitcast(c)", [A("f32", M)], A("f32", M.T.reshape(6)))
move("slice", "with a step", "ROOT r = @ slice(p0), slice={[0:2:1], [0:3:2]}", [A("f32", M)], A("f32", M[:, ::2]))
move("slice", "nothing", "ROOT r = @ slice(p0), slice={[1:1], [0:3]}", [A("f32", M)], A("f32", M[1:1]))
move("reverse", "both dimensions", "ROOT r = @ reverse(p0), dimensions={0,1}", [A("f32", M)], A("f32", M[::-1, ::-1]))
move("concatenate", "along columns", "ROOT r = @ concatenate(p0, p1), dimensions={1}", [A("f32", M), A("f32", [[9], [8]])], A("f32", np.concatenate([M, [[9], [8]]], 1)))
move("concatenate", "with nothing", "ROOT r = @ concatenate(p0, p1), dimensions={0}", [A("f32", [1]), A("f32", [])], A("f32", [1]))
move("pad", "edges and between", "ROOT r = @ pad(p0, p1), padding=1_2_1", [A("f32", [1, 2, 3]), A("f32", -0.0)], A("f32", [-0.0, 1, -0.0, 2, -0.0, 3, -0.0, -0.0]))
move("pad", "negative", "ROOT r = @ pad(p0, p1), padding=-1_1x0_-2", [A("f32", M), A("f32", 9)], A("f32", [[3], [9]]))
move("iota", "along the second dimension", "ROOT r = @ iota(), iota_dimension=1", [], A("s32", [[0, 1, 2], [0, 1, 2]]))
move("iota", "of floats", "ROOT r = @ iota(), iota_dimension=0", [], A("bf16", [0, 1, 2]))
move("dynamic-slice", "starts are clamped", "ROOT r = @ dynamic-slice(p0, p1, p2), dynamic_slice_sizes={1,2}", [A("f32", M), A("s32", 7), A("s32", -3)], A("f32", M[1:2, 0:2]))
U = M.copy(); U[1, 1:] = [8, 9]
move("dynamic-update-slice", "starts are clamped", "ROOT r = @ dynamic-update-slice(p0, p1, p2, p3)", [A("f32", M), A("f32", [[8, 9]]), A("s32", 1), A("s32", 5)], A("f32", U))
move("gather", "rows", "ROOT r = @ gather(p0, p1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}", [A("f32", M), A("s32", [[1], [0], [5]])], A("f32", M[[1, 0, 1]]))
move("gather", "points", "ROOT r = @ gather(p0, p1), offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1}", [A("f32", M), A("s32", [[1, 2], [0, 1]])], A("f32", [5, 1]))
move("gather", "with batching dimensions", "ROOT r = @ gather(p0, p1), offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=1, slice_sizes={1,1}", [A("f32", M), A("s32", [[2], [0]])], A("f32", [2, 3]))
move("get-dimension-size", "of a static dimension", "ROOT r = @ get-dimension-size(p0), dimensions={1}", [A("f32", M)], A("s32", 3))

# ---- computations on elements
ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}"
MAX = "max {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] maximum(a, b)\n}"
MUL = "mul {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT s = s32[] multiply(a, b)\n}"
SUB = "sub {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] subtract(a, b)\n}"
test("map", "a computation of two", "ROOT r = f32[2] map(p0, p1), dimensions={0}, to_apply=sub", [A("f32", [5, 7]), A("f32", [1, 9])], [A("f32", [4, -2])], SUB)
test("reduce", "rows", "z = f32[] constant(0)\nROOT r = f32[2] reduce(p0, z), dimensions={1}, to_apply=add", [A("f32", M)], [A("f32", [3, 12])], ADD)
test("reduce", "all", "ROOT r = s32[] reduce(p0, p1), dimensions={0,1}, to_apply=mul", [A("s32", [[1, 2], [3, 4]]), A("s32", 10)], [A("s32", 240)], MUL)
test("reduce", "nothing gives the initial value", "ROOT r = f32[2] reduce(p0, p1), dimensions={1}, to_apply=max", [A("f32", np.zeros((2, 0))), A("f32", -inf)], [A("f32", [-inf, -inf])], MAX)
test("reduce", "maximum keeps NaN", "ROOT r = f32[] reduce(p0, p1), dimensions={0}, to_apply=max", [A("f32", [1, nan, 3]), A("f32", -inf)], [A("f32", nan)], MAX)
test("reduce", "sums are exact, whatever the order", "z = f32[] constant(0)\nROOT r = f32[] reduce(p0, z), dimensions={0}, to_apply=add", [A("f32", [1e30, 1, -1e30, 2.0**-24])], [A("f32", 1)], ADD)
test("reduce", "literal sums round at each step", "z = f32[] constant(0)\nROOT r = f32[] reduce(p0, z), dimensions={0}, to_apply=add", [A("f32", [1e30, 1, -1e30, 0.5])], [A("f32", 0.5)], ADD, directives=["accumulate: region"])
ARGMAX = """argmax {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  c = pred[] compare(a, b), direction=GE
  v = f32[] select(c, a, b)
  k = s32[] select(c, i, j)
  ROOT t = (f32[], s32[]) tuple(v, k)
}"""
test("reduce", "two operands", "n = f32[] constant(-inf)\nz = s32[] constant(0)\nROOT r = (f32[2], s32[2]) reduce(p0, p1, n, z), dimensions={1}, to_apply=argmax",
     [A("f32", [[1, 5, 5], [7, 2, 3]]), A("s32", [[0, 1, 2], [0, 1, 2]])], [A("f32", [5, 7]), A("s32", [1, 0])], ARGMAX)


def windows(x, size, stride, pad, base, dilation):
    """Index lists of each window of one dimension; None is padding."""
    length = (len(x) - 1) * base + 1 if len(x) else 0
    padded = [None] * pad[0] + [i // base if i % base == 0 else None for i in range(length)] + [None] * pad[1]
    span = (size - 1) * dilation + 1
    return [[padded[s + k * dilation] for k in range(size)] for s in range(0, len(padded) - span + 1, stride)]


row = [1, 2, 3, 4, 5]
for what, attrs, w in [
    ("plain", "size=2", (2, 1, (0, 0), 1, 1)), ("strided and padded", "size=3 stride=2 pad=1_1", (3, 2, (1, 1), 1, 1)),
    ("dilated base", "size=2 lhs_dilate=2", (2, 1, (0, 0), 2, 1)), ("dilated window", "size=2 rhs_dilate=3", (2, 1, (0, 0), 1, 3)),
]:
    ys = [sum(row[i] for i in win if i is not None) for win in windows(row, *w)]
    test("reduce-window", what, f"z = f32[] constant(0)\nROOT r = f32[{len(ys)}] reduce-window(p0, z), window={{{attrs}}}, to_apply=add", [A("f32", row)], [A("f32", ys)], ADD)
test("reduce-window", "maximum in two dimensions", "n = f32[] constant(-inf)\nROOT r = f32[1,2] reduce-window(p0, n), window={size=2x2}, to_apply=max", [A("f32", M)], [A("f32", [[4, 5]])], MAX)
GE = "ge {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction=GE\n}"
test("select-and-scatter", "gradient of a maximum over windows", "z = f32[] constant(0)\nROOT r = f32[4] select-and-scatter(p0, p1, z), window={size=2 stride=2}, select=ge, scatter=add", [A("f32", [1, 3, 5, 2]), A("f32", [10, 20])], [A("f32", [0, 10, 20, 0])], GE + "\n\n" + ADD)
test("scatter", "adds rows; out of bounds is dropped", "ROOT r = f32[2,3] scatter(p0, p1, p2), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
     [A("f32", M), A("s32", [[1], [1], [7]]), A("f32", [[1, 1, 1], [10, 10, 10], [99, 99, 99]])], [A("f32", [[0, 1, 2], [14, 15, 16]])], ADD)
SET = "set {\n  a = f32[] parameter(0)\n  ROOT b = f32[] parameter(1)\n}"
test("scatter", "points, the last update wins", "ROOT r = f32[3] scatter(p0, p1, p2), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=set",
     [A("f32", [0, 0, 0]), A("s32", [[2], [0], [2]]), A("f32", [1, 2, 3])], [A("f32", [2, 0, 3])], SET)
LT = "lt {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction=LT\n}"
test("sort", "numbers", "ROOT r = f32[5] sort(p0), dimensions={0}, to_apply=lt", [A("f32", [3, -1, inf, 2, -inf])], [A("f32", [-inf, -1, 2, 3, inf])], LT)
test("sort", "the first dimension", "ROOT r = f32[2,3] sort(p0), dimensions={0}, to_apply=lt", [A("f32", [[3, 1, 2], [1, 5, 0]])], [A("f32", [[1, 1, 0], [3, 5, 2]])], LT)
LT2 = "lt {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  c = f32[] parameter(2)\n  d = f32[] parameter(3)\n  ROOT e = pred[] compare(a, b), direction=LT\n}"
test("sort", "stable, with a second operand", "ROOT r = (s32[5], f32[5]) sort(p0, p1), dimensions={0}, is_stable=true, to_apply=lt", [A("s32", [2, 1, 2, 1, 0]), A("f32", [1, 2, 3, 4, 5])], [A("s32", [0, 1, 1, 2, 2]), A("f32", [5, 2, 4, 1, 3])], LT2)
test("topk", "largest", "ROOT r = (f32[2,2], s32[2,2]) topk(p0), k=2, largest=true", [A("f32", [[1, 5, 3], [7, 2, 7]])], [A("f32", [[5, 3], [7, 7]]), A("s32", [[1, 2], [0, 2]])])
test("scan", "running sum with its total", "z = f32[] constant(0)\nROOT r = (f32[4], f32[]) scan(p0, z), dimensions={0}, num_carries=1, to_apply=step", [A("f32", [1, 2, 3, 4])], [A("f32", [1, 3, 6, 10]), A("f32", 10)],
     "step {\n  x = f32[] parameter(0)\n  c = f32[] parameter(1)\n  s = f32[] add(x, c)\n  ROOT t = (f32[], f32[]) tuple(s, s)\n}")

# ---- contractions, in exact integers
rng = np.random.default_rng(0)
ints = lambda *d: rng.integers(-4, 5, d)
a, b = ints(3, 4), ints(4, 2)
for ty in ("f32", "s32", "bf16", "f64", "c64"):
    test("dot", f"matrix product of {ty}", f"ROOT r = {ty}[3,2] dot(p0, p1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}", [A(ty, a), A(ty, b)], [A(ty, a @ b)])
a, b = ints(2, 3, 4), ints(2, 4, 5)
test("dot", "batched", "ROOT r = f32[2,3,5] dot(p0, p1), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}", [A("f32", a), A("f32", b)], [A("f32", a @ b)])
test("dot", "of nothing", "ROOT r = f32[2,2] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}", [A("f32", np.zeros((2, 0))), A("f32", np.zeros((0, 2)))], [A("f32", np.zeros((2, 2)))])
test("dot", "to a wider type", "ROOT r = s32[] dot(p0, p1), lhs_contracting_dims={0}, rhs_contracting_dims={0}", [A("s8", [100, 100]), A("s8", [100, -100])], [A("s32", 0)])
test("dot", "the exact sum, rounded once", "ROOT r = f32[] dot(p0, p1), lhs_contracting_dims={0}, rhs_contracting_dims={0}", [A("f32", [1e20, 1, -1e20]), A("f32", [1e10, 3, 1e10])], [A("f32", 3)])


def conv(x, k, stride=1, pad=(0, 0), base=1, dilation=1, groups=1):
    """b0f_0io->b0f by its definition, in integers."""
    B, _, FI = x.shape
    size, fi, FO = k.shape
    wins = windows(list(range(x.shape[1])), size, stride, pad, base, dilation)
    out = np.zeros((B, len(wins), FO), np.int64)
    for n, (w, win), o in itertools.product(range(B), enumerate(wins), range(FO)):
        g = o // (FO // groups)
        out[n, w, o] = sum(int(x[n, i, g * fi + c]) * int(k[s, c, o]) for s, i in enumerate(win) if i is not None for c in range(fi))
    return out


for what, attrs, more, groups in [
    ("plain", "size=2", {}, 1), ("padded and strided", "size=3 stride=2 pad=1_1", dict(stride=2, pad=(1, 1)), 1),
    ("dilated", "size=2 pad=1_0 lhs_dilate=2 rhs_dilate=3", dict(pad=(1, 0), base=2, dilation=3), 1), ("grouped", "size=2", dict(groups=2), 2),
]:
    size = 3 if "size=3" in attrs else 2
    x, k = ints(2, 5, 4), ints(size, 4 // groups, 2)
    y = conv(x, k, **more)
    group = f", feature_group_count={groups}" if groups > 1 else ""
    test("convolution", what, f"ROOT r = f32[{','.join(map(str, y.shape))}] convolution(p0, p1), window={{{attrs}}}, dim_labels=b0f_0io->b0f{group}", [A("f32", x), A("f32", k)], [A("f32", y)])
test("convolution", "reversed window", "ROOT r = f32[1,2,1] convolution(p0, p1), window={size=2 rhs_reversal=1}, dim_labels=b0f_0io->b0f", [A("f32", [[[1], [2], [3]]]), A("f32", [[[10]], [[1]]])], [A("f32", [[[1 * 1 + 2 * 10], [2 * 1 + 3 * 10]]])])

# ---- linear algebra and transforms
test("cholesky", "lower", "l = f32[2,2] cholesky(p0), lower=true\nROOT s = f32[2,1] slice(l), slice={[0:2], [0:1]}", [A("f32", [[4, 2], [2, 5]])], [A("f32", [[2], [1]])])
test("triangular-solve", "lower, from the left", "ROOT r = f32[2,1] triangular-solve(p0, p1), left_side=true, lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE", [A("f32", [[2, 0], [1, 4]]), A("f32", [[6], [11]])], [A("f32", [[3], [2]])])
test("fft", "four points", "ROOT r = c64[4] fft(p0), fft_type=FFT, fft_length={4}", [A("c64", [1, 2, 3, 4])], [A("c64", [10, -2 + 2j, -2, -2 - 2j])])
test("fft", "of real numbers", "ROOT r = c64[3] fft(p0), fft_type=RFFT, fft_length={4}", [A("f32", [1, 2, 3, 4])], [A("c64", [10, -2 + 2j, -2])])
test("fft", "back to real numbers", "ROOT r = f32[4] fft(p0), fft_type=IRFFT, fft_length={4}", [A("c64", [10, -2 + 2j, -2])], [A("f32", [1, 2, 3, 4])])
test("batch-norm-inference", "exact numbers", "ROOT r = f32[2,2] batch-norm-inference(p0, p1, p2, p3, p4), epsilon=0, feature_index=1", [A("f32", [[3, 10], [5, 30]]), A("f32", [2, 1]), A("f32", [1, -1]), A("f32", [1, 10]), A("f32", [4, 0.25])], [A("f32", [[3, -1], [5, 39]])])
test("batch-norm-training", "mean and variance", "t = (f32[2,1], f32[1], f32[1]) batch-norm-training(p0, p1, p2), epsilon=0, feature_index=1\nROOT r = (f32[2,1], f32[1], f32[1]) copy(t)", [A("f32", [[1], [5]]), A("f32", [3]), A("f32", [10])], [A("f32", [[7], [13]]), A("f32", [3]), A("f32", [4])])

# ---- control flow and the rest, by hand
test("call", "a computation", "ROOT r = f32[2] call(p0), to_apply=twice", [A("f32", [1, 2])], [A("f32", [2, 4])], "twice {\n  a = f32[2] parameter(0)\n  ROOT s = f32[2] add(a, a)\n}")
test("fusion", "of two operations", "ROOT r = f32[2] fusion(p0), kind=kLoop, calls=f", [A("f32", [1, -2])], [A("f32", [2, 4])], "f {\n  a = f32[2] parameter(0)\n  s = f32[2] add(a, a)\n  ROOT b = f32[2] abs(s)\n}")
BODY = """cond {
  p = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT
}

body {
  p = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[] add(x, x)
  ROOT t = (s32[], f32[]) tuple(j, y)
}"""
test("while", "five doublings", "t = (s32[], f32[]) tuple(p0, p1)\nROOT w = (s32[], f32[]) while(t), condition=cond, body=body", [A("s32", 0), A("f32", 3)], [A("s32", 5), A("f32", 96)], BODY)
test("while", "not at all", "t = (s32[], f32[]) tuple(p0, p1)\nROOT w = (s32[], f32[]) while(t), condition=cond, body=body", [A("s32", 9), A("f32", 3)], [A("s32", 9), A("f32", 3)], BODY)
BRANCHES = "\n\n".join(f"b{i} {{\n  a = f32[] parameter(0)\n  k = f32[] constant({i + 1})\n  ROOT m = f32[] multiply(a, k)\n}}" for i in range(3))
for i, y in ((0, 10), (1, 20), (2, 30), (-1, 30), (7, 30)):
    test("conditional", f"branch {i}", "ROOT r = f32[] conditional(p0, p1, p1, p1), branch_computations={b0, b1, b2}", [A("s32", i), A("f32", 10)], [A("f32", y)], BRANCHES)
for c, y in ((True, 10), (False, 20)):
    test("conditional", f"{c}", "ROOT r = f32[] conditional(p0, p1, p1), true_computation=b0, false_computation=b1", [A("pred", c), A("f32", 10)], [A("f32", y)], BRANCHES)
test("tuple", "nested, flattened", "t = (f32[], (s32[], f32[])) tuple(p0, u)\nROOT r = (f32[], (s32[], f32[])) copy(t)".replace("t =", "u = (s32[], f32[]) tuple(p1, p0)\nt =", 1), [A("f32", 1), A("s32", 2)], [A("f32", 1), A("s32", 2), A("f32", 1)])
test("get-tuple-element", "of a tuple", "t = (f32[], s32[]) tuple(p0, p1)\nROOT r = s32[] get-tuple-element(t), index=1", [A("f32", 1), A("s32", 2)], [A("s32", 2)])
test("constant", "special values", "ROOT c = f32[6] constant({0, -0, inf, -inf, nan, 1e-40})", [], [A("f32", [0, -0.0, inf, -inf, nan, 1e-40])])
test("constant", "of every shape", "a = s4[2] constant({-8, 7})\nb = pred[] constant(true)\nc = c64[1] constant({(1, -2)})\nROOT t = (s4[2], pred[], c64[1]) tuple(a, b, c)", [], [A("s4", [-8, 7]), A("pred", True), A("c64", [1 - 2j])])
test("parameter", "returned as it is", "ROOT r = f32[2] copy(p0)", [A("f32", [nan, -0.0])], [A("f32", [nan, -0.0])])
test("opt-barrier", "changes nothing", "ROOT r = f32[2] opt-barrier(p0)", [A("f32", [1, 2])], [A("f32", [1, 2])])
test("after-all", "a token orders and has no value", "t = token[] after-all()\nROOT r = f32[] add-dependency(p0, t)", [A("f32", 1)], [A("f32", 1)])
test("add-dependency", "changes nothing", "t = token[] after-all()\nROOT r = f32[2] add-dependency(p0, t)", [A("f32", [1, nan])], [A("f32", [1, nan])])
test("copy-start", "and done", "c = (f32[2], f32[2], u32[]) copy-start(p0)\nROOT r = f32[2] copy-done(c)", [A("f32", [1, 2])], [A("f32", [1, 2])])
test("copy-done", "of a start", "c = (f32[2], f32[2], u32[]) copy-start(p0)\nROOT r = f32[2] copy-done(c)", [A("f32", [3, 4])], [A("f32", [3, 4])])
for name, middle, last in (("async-start", "", "s"), ("async-update", "u = ((f32[2]), f32[2], s32[]) async-update(s)\n", "u"), ("async-done", "", "s")):
    test(name, "a computation apart", f"s = ((f32[2]), f32[2], s32[]) async-start(p0), calls=c\n{middle}ROOT r = f32[2] async-done({last})", [A("f32", [1, 2])], [A("f32", [-1, -2])], "c {\n  a = f32[2] parameter(0)\n  ROOT n = f32[2] negate(a)\n}")
test("partition-id", "of one device", "ROOT r = u32[] partition-id()", [], [A("u32", 0)])
test("replica-id", "of one device", "ROOT r = u32[] replica-id()", [], [A("u32", 0)])
test("custom-call", "an annotation is the identity", 'ROOT r = f32[2] custom-call(p0), custom_call_target="Sharding", sharding={replicated}', [A("f32", [1, 2])], [A("f32", [1, 2])])
test("custom-call", "TopK", 'ROOT r = (f32[2], s32[2]) custom-call(p0), custom_call_target="TopK", called_computations={gt}', [A("f32", [1, 9, 4])], [A("f32", [9, 4]), A("s32", [1, 2])],
     "gt {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  i = s32[] parameter(2)\n  j = s32[] parameter(3)\n  ROOT c = pred[] compare(a, b), direction=GT, type=TOTALORDER\n}")
test("set-dimension-size", "and what it was set to", "s = f32[<=3] set-dimension-size(p0, p1), dimensions={0}\nROOT r = s32[] get-dimension-size(s), dimensions={0}", [A("f32", [1, 2, 3]), A("s32", 2)], [A("s32", 2)])
test("set-dimension-size", "a sum sees only what is there", "s = f32[<=3] set-dimension-size(p0, p1), dimensions={0}\nz = f32[] constant(0)\nROOT r = f32[] reduce(s, z), dimensions={0}, to_apply=add", [A("f32", [1, 2, 4]), A("s32", 2)], [A("f32", 3)], ADD)

os.makedirs(HERE, exist_ok=True)
for op, chunks in files.items():
    with open(os.path.join(HERE, f"{op}.hlo"), "w") as f:
        origin = "// origin: numpy, ml_dtypes, mpmath, exact, hand\n"
        f.write("\n".join(chunks).replace("// test: interpret\n", "// test: interpret\n" + origin, 1))
print(f"{len(files)} opcodes, {sum(map(len, files.values()))} programs")
