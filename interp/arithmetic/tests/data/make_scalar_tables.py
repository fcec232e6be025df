#!/usr/bin/env python3
"""Writes the expected values of the elementary functions, from mpmath (arbitrary precision), rounded here once.

    python3 make_scalar_tables.py points > elementary_points.txt    single points of f32, f64, c64 and c128
    python3 make_scalar_tables.py pairs > arithmetic_hashes.txt     operations of two operands of those types, and
                                                                    conversions from integers
    python3 make_scalar_tables.py hashes > elementary_hashes.txt    every operand of the 16-bit and narrower types
                                                                    (of those named, if any are)

needs numpy, ml_dtypes and mpmath. Lines of points: `function type operand-bits... result-bits...`; a NaN is `nan`.
Lines of hashes: `function type hash`, the FNV-1a hash of all results in the order of the operands' patterns, each
result as bytes, little-endian; a NaN is the type's canonical one (see hlo/src/small_float/format.rs).

Pairs are all of the 8-bit and narrower types (first operand outer), and 65536 of `Walk` for the 16-bit types.
Integers to convert are 20000 of `Walk`.

What a function does at zeros, infinities and outside its domain is numpy's answer; everything else is mpmath's.
"""
import random
import struct
import sys

import ml_dtypes
import mpmath as mp
import numpy as np

np.seterr(all="ignore")


def np_logistic(x):
    return 1 / (1 + np.exp(-x))


def np_rsqrt(x):
    return 1 / np.sqrt(x)


def np_erf(x):
    return np.float64(np.nan) if np.isnan(x) else np.sign(x) if abs(x) > 100 else x


def mp_cbrt(x):
    return -mp.cbrt(-x) if x < 0 else mp.cbrt(x)


# function: (mpmath, numpy)
REAL = {
    "exponential": (mp.exp, np.exp),
    "exponential_minus_one": (mp.expm1, np.expm1),
    "log": (mp.log, np.log),
    "log_plus_one": (mp.log1p, np.log1p),
    "sine": (mp.sin, np.sin),
    "cosine": (mp.cos, np.cos),
    "tan": (mp.tan, np.tan),
    "tanh": (mp.tanh, np.tanh),
    "sinh": (mp.sinh, np.sinh),
    "cosh": (mp.cosh, np.cosh),
    "asin": (mp.asin, np.arcsin),
    "acos": (mp.acos, np.arccos),
    "asinh": (mp.asinh, np.arcsinh),
    "acosh": (mp.acosh, np.arccosh),
    "atanh": (mp.atanh, np.arctanh),
    "sqrt": (mp.sqrt, np.sqrt),
    "rsqrt": (lambda x: 1 / mp.sqrt(x), np_rsqrt),
    "cbrt": (mp_cbrt, np.cbrt),
    "logistic": (lambda x: 1 / (1 + mp.exp(-x)), np_logistic),
    "erf": (mp.erf, np_erf),
}


class Format:
    """A binary format by its parameters; kind as in hlo::small_float::Specials."""

    def __init__(self, name, exponent_bits, mantissa_bits, bias, kind, dtype):
        self.name, self.m, self.bias, self.kind, self.dtype = name, mantissa_bits, bias, kind, dtype
        self.e = exponent_bits
        self.bits = exponent_bits + mantissa_bits + (kind != "scale")
        self.bytes = max(1, self.bits // 8)
        self.sign = 0 if kind == "scale" else 1 << (self.bits - 1)
        all_ones = (1 << (exponent_bits + mantissa_bits)) - 1
        self.max = {
            "ieee": all_ones - (1 << mantissa_bits),
            "fn": all_ones - 1,
            "scale": all_ones - 1,
            "fnuz": all_ones,
            "numbers": all_ones,
        }[kind]
        self.nan = {
            "ieee": self.max + 1 + (1 << (mantissa_bits - 1)) if mantissa_bits else 0,
            "fn": all_ones,
            "scale": all_ones,
            "fnuz": self.sign,
            "numbers": self.sign,
        }[kind]
        self.overflow = self.max + 1 if kind == "ieee" else self.max if kind == "numbers" else self.nan

    def round(self, x):
        """The pattern for an mpf, a float or numpy's special value."""
        if not isinstance(x, mp.mpf) or not mp.isfinite(x):
            x = float(x)
            if x != x:
                return self.nan
            if x in (float("inf"), float("-inf")):
                if self.kind == "scale":
                    return self.nan
                sign = self.sign if x < 0 else 0
                return self.nan if self.overflow == self.nan else sign | self.overflow
            negative = np.signbit(x)
            x = mp.mpf(x)
        else:
            negative = x < 0
        if self.kind == "scale":
            return self.round_scale(x)
        sign = self.sign if negative else 0
        if x == 0:
            return 0 if self.kind == "fnuz" else sign
        if abs(mp.mag(x)) > 5000:  # far outside: keep the integers short
            x = mp.ldexp(1, 5000 if mp.mag(x) > 0 else -5000)
        man, exp = (abs(x).man_exp)  # x = man * 2**exp exactly
        man = int(man)
        low = 1 - self.bias - self.m  # exponent of the smallest unit
        unit = max(exp + man.bit_length() - 1 - self.m, low)
        shift = unit - exp
        if shift <= 0:
            q = man << -shift
        else:
            q, r = man >> shift, man & ((1 << shift) - 1)
            half = 1 << (shift - 1)
            q += r > half or (r == half and q & 1)
        # q * 2**unit, q < 2**(m+1) or just that
        if q == 1 << (self.m + 1):
            q, unit = q >> 1, unit + 1
        magnitude = q if q < 1 << self.m else ((unit - low) << self.m) + q
        if magnitude > self.max:
            if self.overflow == self.nan:
                return self.nan
            magnitude = self.overflow
        return 0 if magnitude == 0 and self.kind == "fnuz" else sign | magnitude

    def round_scale(self, x):
        if x <= 0:
            return self.nan
        e = int(mp.floor(mp.log(x, 2))) if x != 1 else 0
        while mp.ldexp(1, e) > x:
            e -= 1
        while mp.ldexp(1, e + 1) <= x:
            e += 1
        if e < -127:
            return 0
        fraction = mp.ldexp(x, -e) - 1
        e += bool(fraction > 0 if e == -127 else fraction >= 0.5)
        return self.nan if e > 127 else e + 127

    def value(self, bits):
        if self.name == "f64":
            return np.float64(struct.unpack("<d", struct.pack("<Q", bits))[0])
        raw = np.array([bits], {1: np.uint8, 2: np.uint16, 4: np.uint32}[self.bytes])
        return raw.view(self.dtype).astype(np.float64)[0]


FORMATS = {
    f.name: f
    for f in [
        Format("f16", 5, 10, 15, "ieee", np.float16),
        Format("bf16", 8, 7, 127, "ieee", ml_dtypes.bfloat16),
        Format("f32", 8, 23, 127, "ieee", np.float32),
        Format("f64", 11, 52, 1023, "ieee", np.float64),
        Format("f8e5m2", 5, 2, 15, "ieee", ml_dtypes.float8_e5m2),
        Format("f8e4m3", 4, 3, 7, "ieee", ml_dtypes.float8_e4m3),
        Format("f8e4m3fn", 4, 3, 7, "fn", ml_dtypes.float8_e4m3fn),
        Format("f8e4m3b11fnuz", 4, 3, 11, "fnuz", ml_dtypes.float8_e4m3b11fnuz),
        Format("f8e3m4", 3, 4, 3, "ieee", ml_dtypes.float8_e3m4),
        Format("f8e5m2fnuz", 5, 2, 16, "fnuz", ml_dtypes.float8_e5m2fnuz),
        Format("f8e4m3fnuz", 4, 3, 8, "fnuz", ml_dtypes.float8_e4m3fnuz),
        Format("f8e8m0fnu", 8, 0, 127, "scale", ml_dtypes.float8_e8m0fnu),
        Format("f4e2m1fn", 2, 1, 1, "numbers", ml_dtypes.float4_e2m1fn),
        Format("f6e3m2fn", 3, 2, 3, "numbers", ml_dtypes.float6_e3m2fn),
        Format("f6e2m3fn", 2, 3, 1, "numbers", ml_dtypes.float6_e2m3fn),
    ]
}


def real(function, x):
    exact, special = REAL[function]
    approximate = special(x)
    if x == 0 or not np.isfinite(x) or np.isnan(approximate):
        return approximate
    if abs(x) > 2000 and function in ("exponential", "exponential_minus_one", "sinh", "cosh", "tanh", "logistic", "erf"):
        # The value over- or underflows every type here, or is nearest to a number that numpy gives.
        return approximate
    try:
        return exact(mp.mpf(float(x)))
    except (ZeroDivisionError, ValueError):
        return approximate  # a pole


def points_of(f, rng):
    """Ordinary, extreme and random patterns."""
    special = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, 0.1, 0.7, -0.9, 1.1, 10.0, -10.0, 20.5, 88.0, -88.0,
               100.0, -104.0, 700.0, -745.0, 1e10, 1e22, -1e30, 1e-10, -1e-30, 1e-40, 1e-310, 0.99999994, 1.0000001,
               3.1415927410125732, 3.141592653589793, 1.5707963267948966, float("inf"), float("-inf"), float("nan")]
    out = {f.round(mp.mpf(x) if x == x and abs(x) != float("inf") and x != 0 else x) for x in special}
    bias = f.bias
    for _ in range(24):  # random exponents near 0, then anywhere
        e = rng.randrange(bias - 12, bias + 8)
        out.add(rng.getrandbits(1) << (f.bits - 1) | e << f.m | rng.getrandbits(f.m))
    for _ in range(16):
        out.add(rng.getrandbits(f.bits))
    out.add(f.max)
    out.add(1)
    return sorted(out)


def show(f, bits):
    v = f.value(bits)
    return "nan" if np.isnan(v) else f"{bits:x}"


def mp_rsqrt(z):
    return 1 / mp.sqrt(z)


def mp_sign(z):
    return z / abs(z)


COMPLEX = {
    "exponential": mp.exp, "exponential_minus_one": mp.expm1, "log": mp.log, "log_plus_one": lambda z: mp.log(1 + z),
    "sine": mp.sin, "cosine": mp.cos, "tan": mp.tan, "tanh": mp.tanh, "sinh": mp.sinh, "cosh": mp.cosh,
    "asin": mp.asin, "acos": mp.acos, "asinh": mp.asinh, "acosh": mp.acosh, "atanh": mp.atanh, "sqrt": mp.sqrt,
    "rsqrt": mp_rsqrt, "cbrt": lambda z: mp.exp(mp.log(z) / 3), "logistic": lambda z: 1 / (1 + mp.exp(-z)),
    "sign": mp_sign,
}
COMPLEX2 = {
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "power": lambda a, b: mp.exp(b * mp.log(a)),
    "atan2": lambda y, x: -1j * mp.log((x + 1j * y) / mp.sqrt(x * x + y * y)),
}


def exact_parts(f, *bits):
    return [mp.mpf(float(f.value(b))) for b in bits]


def complex_points(f, rng, count):
    def one():
        kind = rng.randrange(6)
        if kind == 0:
            return f.round(mp.mpf(rng.choice([1, -1, 2, -2, 3, 0.5, -0.5, 1.5, 4])))
        if kind == 1:
            return f.round(mp.mpf(1) + mp.ldexp(rng.uniform(-1, 1), -rng.randrange(1, f.m)))
        spread = 3 if kind < 4 else 6
        e = rng.randrange(f.bias - 2 * spread, f.bias + spread)
        return rng.getrandbits(1) << (f.bits - 1) | e << f.m | rng.getrandbits(f.m)
    return [(one(), one()) for _ in range(count)]


def print_points():
    rng = random.Random(20240229)
    for f in (FORMATS["f32"], FORMATS["f64"]):
        for function in REAL:
            for bits in points_of(f, rng):
                x = f.value(bits)
                mp.mp.prec = 2600 if abs(x) < 1e-60 or abs(x) > 1e60 else 700
                print(function, f.name, show(f, bits), show(f, f.round(real(function, x))))
        for _ in range(60):
            a, b = (rng.getrandbits(1) << (f.bits - 1) | rng.randrange(f.bias - 9, f.bias + 5) << f.m
                    | rng.getrandbits(f.m) for _ in range(2))
            mp.mp.prec = 700
            x, y = exact_parts(f, a, b)
            print("atan2", f.name, show(f, a), show(f, b), show(f, f.round(mp.atan2(x, y))))
            print("hypot", f.name, show(f, a), show(f, b), show(f, f.round(mp.hypot(x, y))))
            print("power", f.name, show(f, a & ~f.sign), show(f, b), show(f, f.round(mp.power(abs(x), y))))
            print("remainder", f.name, show(f, a), show(f, b), show(f, f.round(mp.sign(x) * mp.fmod(abs(x), abs(y)))))
    for f, name in ((FORMATS["f32"], "c64"), (FORMATS["f64"], "c128")):
        for function, exact in COMPLEX.items():
            for re, im in complex_points(f, rng, 50):
                mp.mp.prec = 1500
                z = mp.mpc(*exact_parts(f, re, im))
                try:
                    w = exact(z)
                except (ZeroDivisionError, ValueError):
                    continue
                print(function, name, f"{re:x} {im:x}", show(f, f.round(w.real)), show(f, f.round(w.imag)))
        for function, exact in COMPLEX2.items():
            for (a, b), (c, d) in zip(complex_points(f, rng, 60), complex_points(f, rng, 60)):
                mp.mp.prec = 1500
                z, w = mp.mpc(*exact_parts(f, a, b)), mp.mpc(*exact_parts(f, c, d))
                r = exact(z, w)
                print(function, name, f"{a:x} {b:x} {c:x} {d:x}", show(f, f.round(r.real)), show(f, f.round(r.imag)))


def print_hashes():
    for f in FORMATS.values():
        if f.bits > 16 or len(sys.argv) > 2 and f.name not in sys.argv[2:]:
            continue
        for function in REAL:
            state = 0xCBF29CE484222325
            for bits in range(1 << f.bits):
                x = f.value(bits)
                mp.mp.prec = 450 if abs(x) < 1e-8 else 200
                y = real(function, x)
                if f.kind == "scale":  # its steps are no rounding to nearest: by definition through f64
                    y = FORMATS["f64"].value(FORMATS["f64"].round(y))
                y = f.round(y)
                for byte in y.to_bytes(f.bytes, "little"):
                    state = (state ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
            print(function, f.name, f"{state:016x}", flush=True)


class Walk:
    """A sequence of 64-bit numbers that the test makes too (Knuth's MMIX generator, upper half twice)."""

    def __init__(self):
        self.state = 1

    def half(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        return self.state >> 32

    def next(self):
        return self.half() << 32 | self.half()


def fnv(state, bits, size):
    for byte in bits.to_bytes(size, "little"):
        state = (state ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return state


def maximum(x, y):
    if np.isnan(x) or np.isnan(y):
        return np.float64(np.nan)
    return max(x, y, key=lambda v: (v, not np.signbit(v)))


def minimum(x, y):
    return -maximum(-x, -y)


def power(x, y):
    if x == 1 or y == 0:
        return np.float64(1)
    if y == 0.5 and x in (0, -np.inf):  # where numpy takes a square root
        return abs(x)
    return np.power(x, y)


# operation: (exact, for finite operands other than 0; f64's answer)
BINARY = {
    "add": (lambda x, y: x + y, np.add),
    "subtract": (lambda x, y: x - y, np.subtract),
    "multiply": (lambda x, y: x * y, np.multiply),
    "divide": (lambda x, y: x / y, np.divide),
    "remainder": (None, np.fmod),
    "maximum": (None, maximum),
    "minimum": (None, minimum),
    "power": (mp.power, power),
    "atan2": (mp.atan2, np.arctan2),
}


def two_operands(function, x, y):
    exact, special = BINARY[function]
    approximate = special(x, y)
    if exact is None or x == 0 or y == 0 or not np.isfinite(x) or not np.isfinite(y) or np.isnan(approximate):
        return approximate
    if function == "power" and abs(y * np.log2(abs(x))) > 1e5:
        return approximate
    result = exact(mp.mpf(float(x)), mp.mpf(float(y)))
    return approximate if result == 0 else result  # the sign of zero


def pairs(f):
    if f.bits <= 8:
        for a in range(1 << f.bits):
            for b in range(1 << f.bits):
                yield a, b
    else:
        walk = Walk()
        for i in range(1 << 16):
            word = walk.next()
            a, b = word & 0xFFFF, word >> 16 & 0xFFFF
            yield a, b if i % 2 == 0 else a ^ b & 0x87FF  # every other pair is of similar magnitude


def print_pairs():
    mp.mp.prec = 700
    for f in FORMATS.values():
        if f.bits > 16 or len(sys.argv) > 2 and f.name not in sys.argv[2:]:
            continue
        values = [f.value(bits) for bits in range(1 << f.bits)]
        for function in BINARY:
            state, memo = 0xCBF29CE484222325, {}
            for a, b in pairs(f):
                y = two_operands(function, values[a], values[b])
                if f.kind == "scale":
                    y = FORMATS["f64"].value(FORMATS["f64"].round(y))
                if isinstance(y, mp.mpf):
                    code = f.round(y)
                else:
                    key = (float(y), bool(np.signbit(y))) if y == y else None
                    code = memo[key] if key in memo else memo.setdefault(key, f.round(y))
                state = fnv(state, code, f.bytes)
            print(function, f.name, f"{state:016x}", flush=True)
    for f in FORMATS.values():
        for name, signed in (("from_s64", True), ("from_u64", False)):
            state, walk = 0xCBF29CE484222325, Walk()
            for i in range(20000):
                x = integer(walk)
                if signed and x >> 63:
                    x -= 1 << 64
                state = fnv(state, f.round(mp.mpf(x) if x else 0.0), f.bytes)
            print(name, f.name, f"{state:016x}", flush=True)


def integer(walk):
    """A number of any length, often close to the middle between two floats: few bits, and perhaps one far below."""
    word, shape = walk.next(), walk.next()
    length = shape & 63
    x = word >> (63 - length)
    if shape >> 6 & 1 and length > 12:
        keep = 1 + (shape >> 8) % 12
        x = (x >> (length + 1 - keep) << (length + 1 - keep)) + (shape >> 16 & 3) - 1
    return x & 0xFFFFFFFFFFFFFFFF


if __name__ == "__main__":
    {"pairs": print_pairs, "points": print_points, "hashes": print_hashes}[sys.argv[1]]()
