"""Writes the filetests in this folder that say so: python3 make_elementwise.py (numpy, ml_dtypes).

Expected values are computed in numpy's long double (64 significant bits) or by exact integer arithmetic and rounded once,
so they are independent of the interpreter. A value too near to the middle between two numbers to be sure of is left out.
"""
import math
import os

import ml_dtypes
import numpy as np

L = np.longdouble
HERE = os.path.dirname(os.path.abspath(__file__))
FLOATS = {
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "f8e5m2": ml_dtypes.float8_e5m2, "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f4e2m1fn": ml_dtypes.float4_e2m1fn,
}
PRECISION = {"f32": 24, "f64": 53, "f16": 11, "bf16": 8, "f8e5m2": 3, "f8e4m3fn": 4, "f8e4m3fnuz": 4, "f4e2m1fn": 2}
np.seterr(all="ignore")


def text(x):
    if isinstance(x, (bool, np.bool_)):
        return "true" if x else "false"
    if isinstance(x, (int, np.integer)):
        return str(int(x))
    x = float(x)
    if math.isnan(x):
        return "nan"
    if math.isinf(x):
        return "inf" if x > 0 else "-inf"
    if x == 0:
        return "-0" if math.copysign(1, x) < 0 else "0"
    return repr(x)


def array(xs):
    return "[" + ", ".join(text(x) for x in xs) + "]"


def rounded(ty, exact):
    """The long double rounded once to a type; None if the double rounding might be wrong."""
    if ty == "f64":
        near = np.float64(exact)
        if np.isfinite(near) and exact != L(near):
            half = abs(L(np.nextafter(near, np.inf if exact > near else -np.inf)) - L(near)) / 2
            if abs(abs(exact - L(near)) - half) < half / 256:
                return None
        return near
    if ty == "f32":
        return np.float32(exact)
    # Through f64 rounded to odd would be exact; the long double is wide enough for the types of 11 bits and fewer, unless
    # it lies on a midpoint that the exact value does not: those that matter here are not.
    return FLOATS[ty](np.float64(exact))


def specials(ty):
    xs = [-np.inf, -2.5, -1.0, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 10.0, np.inf, np.nan]
    if ty in ("f32", "bf16"):
        xs += [1e-40, -1e-40, 100.0, -100.0]
    if ty == "f64":
        xs += [5e-324, 1e300, 700.5]
    return [FLOATS[ty](x) for x in xs]


def erf(x):
    return L(math.erf(float(x)))


def logistic(x):
    return L(1) / (L(1) + np.exp(-x))


def rsqrt(x):
    if x == 0:
        return np.copysign(L(np.inf), x)
    return L(1) / np.sqrt(x)


def afz(x):
    return np.copysign(np.floor(abs(x) + L(0.5)), x) if np.isfinite(x) else x


def sign(x):
    return x if np.isnan(x) or x == 0 else np.copysign(L(1), x)


UNARY = {
    "abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atanh": np.arctanh,
    "cbrt": np.cbrt, "ceil": np.ceil, "cosine": np.cos, "cosh": np.cosh, "erf": erf, "exponential": np.exp,
    "exponential-minus-one": np.expm1, "floor": np.floor, "log": np.log, "log-plus-one": np.log1p,
    "logistic": logistic, "negate": np.negative, "round-nearest-afz": afz, "round-nearest-even": np.rint,
    "rsqrt": rsqrt, "sign": sign, "sine": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh,
}
# math.erf is a double with an error of an ulp or so: not for f64.
TYPES = {"erf": ["f32", "bf16", "f16", "f8e5m2"]}


def program(name, head, body, runs, extra=()):
    lines = ["// test: interpret", *extra, "HloModule t", "ENTRY e {", *("  " + b for b in body), "}"]
    return "\n".join(lines + ["// run: " + r for r in runs]) + "\n"


def write(name, programs):
    with open(os.path.join(HERE, name + ".hlo"), "w") as f:
        text = "// ====\n".join(programs).replace("// test: interpret\n", "// test: interpret\n// origin: numpy, exact, hand\n", 1)
        f.write("// Made by make_elementwise.py.\n" + text)


def unary(op):
    programs = []
    for ty in TYPES.get(op, ["f32", "f64", "bf16", "f16", "f8e5m2", "f8e4m3fn"]):
        xs, ys = [], []
        for x in specials(ty):
            y = rounded(ty, L(UNARY[op](L(float(x)))))
            if y is not None:
                xs.append(x)
                ys.append(y)
        n = len(xs)
        body = [f"a = {ty}[{n}] parameter(0)", f"ROOT r = {ty}[{n}] {op}(a)"]
        programs.append(program(op, ty, body, [f"e({array(xs)}) == {array(ys)}"]))
    x, y = np.float32(0.5), rounded("f32", L(UNARY[op](L(0.5))))
    programs.append(program(op, "", ["a = f32[] parameter(0)", f"ROOT r = f32[] {op}(a)"], [f"e({text(x)}) == {text(y)}"]))
    programs.append(program(op, "", ["a = f32[2,0] parameter(0)", f"ROOT r = f32[2,0] {op}(a)"], ["e([[], []]) == [[], []]"]))
    return programs


def fmax(a, b, greater=True):
    if np.isnan(a) or np.isnan(b):
        return L(np.nan)
    if a == 0 and b == 0:
        negative = (np.signbit(a) and np.signbit(b)) if greater else (np.signbit(a) or np.signbit(b))
        return L(-0.0) if negative else L(0.0)
    return max(a, b) if greater else min(a, b)


def power(a, b):
    return L(1) if a == 1 or b == 0 else np.power(a, b)


BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "remainder": np.fmod,
    "maximum": fmax, "minimum": lambda a, b: fmax(a, b, False), "power": power, "atan2": np.arctan2,
}


def binary_floats(op):
    programs = []
    values = [-np.inf, -2.0, -0.5, -0.0, 0.0, 0.75, 3.0, np.inf, np.nan]
    for ty in ["f32", "f64", "bf16", "f16", "f8e4m3fn"]:
        xs = [FLOATS[ty](v) for v in values]
        a, b, c = [], [], []
        for x in xs:
            for y in xs:
                z = rounded(ty, L(BINARY[op](L(float(x)), L(float(y)))))
                if z is not None:
                    a.append(x), b.append(y), c.append(z)
        n = len(a)
        body = [f"a = {ty}[{n}] parameter(0)", f"b = {ty}[{n}] parameter(1)", f"ROOT r = {ty}[{n}] {op}(a, b)"]
        programs.append(program(op, ty, body, [f"e({array(a)}, {array(b)}) == {array(c)}"]))
    body = ["a = f32[] parameter(0)", "b = f32[] parameter(1)", f"ROOT r = f32[] {op}(a, b)"]
    programs.append(program(op, "", body, [f"e(3, 2) == {text(np.float32(BINARY[op](L(3), L(2))))}"]))
    body = ["a = f32[0] parameter(0)", "b = f32[0] parameter(1)", f"ROOT r = f32[0] {op}(a, b)"]
    programs.append(program(op, "", body, ["e([], []) == []"]))
    return programs


INTS = {"s8": (8, True), "u8": (8, False), "s32": (32, True), "u64": (64, False), "s4": (4, True), "u2": (2, False), "s64": (64, True)}


def wrap(x, bits, signed):
    x &= (1 << bits) - 1
    return x - (1 << bits) if signed and x >> (bits - 1) else x


def trunc_div(a, b):
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def int_power(a, b, bits, signed):
    if b < 0:
        return 1 if a == 1 else 0
    return pow(a, b, 1 << bits)


def shift(a, b, bits, signed, kind):
    raw = a & ((1 << bits) - 1)
    top = raw >> (bits - 1)
    inside = 0 <= b < bits
    if kind == "left":
        return raw << b if inside else 0
    if kind == "logical":
        return raw >> b if inside else 0
    value = raw - (1 << bits) if top else raw
    return value >> (b if inside else bits)


INT_BINARY = {
    "add": lambda a, b, n, s: a + b, "subtract": lambda a, b, n, s: a - b, "multiply": lambda a, b, n, s: a * b,
    "divide": lambda a, b, n, s: -1 if b == 0 else trunc_div(a, b),
    "remainder": lambda a, b, n, s: a if b == 0 else a - b * trunc_div(a, b),
    "maximum": lambda a, b, n, s: max(a, b), "minimum": lambda a, b, n, s: min(a, b), "power": int_power,
    "and": lambda a, b, n, s: a & b, "or": lambda a, b, n, s: a | b, "xor": lambda a, b, n, s: a ^ b,
    "mulhi": lambda a, b, n, s: (a * b) >> n,
    "shift-left": lambda a, b, n, s: shift(a, b, n, s, "left"),
    "shift-right-logical": lambda a, b, n, s: shift(a, b, n, s, "logical"),
    "shift-right-arithmetic": lambda a, b, n, s: shift(a, b, n, s, "arithmetic"),
}


def int_values(bits, signed):
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return sorted({v for v in [low, low + 1, -7, -2, -1, 0, 1, 2, 3, 5, 7, bits - 1, bits, high - 1, high] if low <= v <= high})


def binary_ints(op):
    programs = []
    for ty, (bits, signed) in INTS.items():
        a, b, c = [], [], []
        for x in int_values(bits, signed):
            for y in int_values(bits, signed):
                a.append(x), b.append(y), c.append(wrap(INT_BINARY[op](x, y, bits, signed), bits, signed))
        n = len(a)
        body = [f"a = {ty}[{n}] parameter(0)", f"b = {ty}[{n}] parameter(1)", f"ROOT r = {ty}[{n}] {op}(a, b)"]
        programs.append(program(op, ty, body, [f"e({array(a)}, {array(b)}) == {array(c)}"]))
    if op in ("and", "or", "xor", "maximum", "minimum", "add", "multiply"):
        body = ["a = pred[2,2] parameter(0)", "b = pred[2,2] parameter(1)", f"ROOT r = pred[2,2] {op}(a, b)"]
        table = {"and": "[[false, false], [false, true]]", "or": "[[false, true], [true, true]]", "xor": "[[false, true], [true, false]]"}
        table["minimum"] = table["multiply"] = table["and"]
        table["maximum"] = table["add"] = table["or"]
        args = "[[false, false], [true, true]], [[false, true], [false, true]]"
        programs.append(program(op, "pred", body, [f"e({args}) == {table[op]}"]))
    return programs


def int_unary(op, f):
    programs = []
    for ty, (bits, signed) in INTS.items():
        if op in ("abs", "sign") and not signed:
            continue
        xs = int_values(bits, signed)
        body = [f"a = {ty}[{len(xs)}] parameter(0)", f"ROOT r = {ty}[{len(xs)}] {op}(a)"]
        ys = [wrap(f(x, bits), bits, signed) for x in xs]
        programs.append(program(op, ty, body, [f"e({array(xs)}) == {array(ys)}"]))
    return programs


INT_UNARY = {
    "abs": lambda x, n: abs(x), "negate": lambda x, n: -x, "not": lambda x, n: ~x,
    "sign": lambda x, n: (x > 0) - (x < 0), "popcnt": lambda x, n: bin(x & ((1 << n) - 1)).count("1"),
    "count-leading-zeros": lambda x, n: n - (x & ((1 << n) - 1)).bit_length(),
}

COMPARE = {
    "EQ": lambda a, b: a == b, "NE": lambda a, b: a != b, "LT": lambda a, b: a < b, "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b, "GE": lambda a, b: a >= b,
}


def total_key(x):
    bits = int(np.array(x, np.float32).view(np.uint32))
    return bits if bits < 1 << 31 else -(bits & 0x7FFFFFFF) - 1


def compare():
    programs = []
    values = [np.float32(v) for v in [-np.inf, -1.0, -0.0, 0.0, 1.0, np.inf, np.nan]]
    pairs = [(a, b) for a in values for b in values]
    args = f"{array([a for a, _ in pairs])}, {array([b for _, b in pairs])}"
    for direction, f in COMPARE.items():
        for total in (False, True):
            n = len(pairs)
            attr = ", type=TOTALORDER" if total else ""
            body = [f"a = f32[{n}] parameter(0)", f"b = f32[{n}] parameter(1)",
                    f"ROOT r = pred[{n}] compare(a, b), direction={direction}{attr}"]
            ys = [bool(f(total_key(a), total_key(b)) if total else f(a, b)) for a, b in pairs]
            programs.append(program("compare", "", body, [f"e({args}) == {array(ys)}"]))
    for ty, (bits, signed) in INTS.items():
        xs = int_values(bits, signed)
        pairs = [(a, b) for a in xs for b in xs]
        n = len(pairs)
        args = f"{array([a for a, _ in pairs])}, {array([b for _, b in pairs])}"
        for direction, f in COMPARE.items():
            body = [f"a = {ty}[{n}] parameter(0)", f"b = {ty}[{n}] parameter(1)",
                    f"ROOT r = pred[{n}] compare(a, b), direction={direction}"]
            programs.append(program("compare", "", body, [f"e({args}) == {array([f(a, b) for a, b in pairs])}"]))
    body = ["a = c64[4] parameter(0)", "b = c64[4] parameter(1)", "ROOT r = pred[4] compare(a, b), direction=EQ"]
    args = "[(1, 2), (1, 2), (0, -0), (nan, 0)], [(1, 2), (1, 3), (-0, 0), (nan, 0)]"
    programs.append(program("compare", "", body, [f"e({args}) == [true, false, true, false]"]))
    programs.append(program("compare", "", [b.replace("EQ", "NE") for b in body], [f"e({args}) == [false, true, false, true]"]))
    return programs


def main():
    for op in UNARY:
        programs = unary(op)
        if op in INT_UNARY:
            programs += int_unary(op, INT_UNARY[op])
        write(op, programs)
    for op in INT_UNARY:
        if op not in UNARY:
            programs = int_unary(op, INT_UNARY[op])
            if op == "not":
                programs.append(program("not", "", ["a = pred[2] parameter(0)", "ROOT r = pred[2] not(a)"], ["e([false, true]) == [true, false]"]))
            write(op, programs)
    for op in sorted({*BINARY, *INT_BINARY}):
        programs = binary_floats(op) if op in BINARY else []
        if op in INT_BINARY:
            programs += binary_ints(op)
        write(op, programs)
    write("compare", compare())


main()
