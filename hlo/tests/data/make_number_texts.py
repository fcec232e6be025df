"""Writes number_texts.txt: bit patterns and the text that C's printf gives them by XLA's rule (xla/util.cc, RoundTripFpToString).

One line a number: type, bits in hexadecimal, text. Needs numpy and ml_dtypes. The formatting is Python's '%.*g', which is C's.
"""

import random
import struct

import ml_dtypes
import numpy as np

random.seed(20)
lines = []


def unpack(fmt, raw):
    return struct.unpack(fmt, raw)[0]


def special(x, bits, fraction):
    """NaN with the payload, if it is not the plain quiet one; None for numbers."""
    if x == x:
        return None
    payload = bits & ((1 << fraction) - 1)
    sign = "-" if bits >> fraction_top(fraction) & 1 else ""
    return sign + "nan" + ("" if payload == 1 << (fraction - 1) else "(0x%x)" % payload)


def fraction_top(fraction):
    return {23: 31, 52: 63, 10: 15, 7: 15, 2: 7, 3: 7, 4: 7}[fraction]


def f32(bits):
    x = unpack("<f", struct.pack("<I", bits))
    text = special(x, bits, 23)
    if text is None:
        text = "%.6g" % x
        if np.float32(text) != np.float32(x):
            text = "%.9g" % x
    lines.append(f"f32 {bits:x} {text}")


def f64(bits):
    x = unpack("<d", struct.pack("<Q", bits))
    text = special(x, bits, 52)
    if text is None:
        text = "%.15g" % x
        if float(text) != x:
            text = "%.17g" % x
    lines.append(f"f64 {bits:x} {text}")


def small(name, dtype, bits, digits, fraction, raw):
    x = float(np.array([bits], dtype=raw).view(dtype)[0])
    if x != x and fraction == 0:
        text = "-nan" if bits >> 7 & 1 and name != "f8e8m0fnu" else "nan"
    else:
        text = special(x, bits, fraction) if x != x else "%.*g" % (digits, x)
    lines.append(f"{name} {bits:x} {text}")


def bits32(x):
    return unpack("<I", struct.pack("<f", x))


def bits64(x):
    return unpack("<Q", struct.pack("<d", x))


values = [0.0, 1.0, 0.1, 0.5, 1 / 3, 2 / 3, 1e5, 123456.0, 999999.0, 1e6, 1234567.0, 1e7, 16777216.0, 16777215.0, 33554433.0,
          1e-4, 0.0001234567, 9.9999e-5, 1e-5, 1e10, 1.5e10, 123456500000.0, 1e15, 1e16, 123456789012345.0, 999999999999999.0,
          1e17, 1.1920929e-07, 2.220446049250313e-16, 3.14159274, 3.141592653589793, 2.718281828459045, 0.3, 0.7, 100.0, 1e22,
          1e23, 1e37, 3.4028234e38, 1.17549435e-38, 1.4e-45, 0.1 + 0.2, 999999.5, 9999995.0, 99999.95, 1234565.0, 1234575.0]
for v in values:
    for s in (v, -v):
        f32(bits32(s))
        f64(bits64(s))
for v in [5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 4.9e-320, 1.5e-310, 1e300, 1e-300]:
    f64(bits64(v))
for bits in [0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7FC00001, 0x7F800001, 0xFFFFFFFF, 0x80000000, 1, 2, 9, 0x7FFFFF]:
    f32(bits)
for bits in [0x7FF0 << 48, 0xFFF0 << 48, 0x7FF8 << 48, 0xFFF8 << 48, 0x7FF8 << 48 | 5, 0x7FF0 << 48 | 1, 1 << 63, 1, (1 << 52) - 1]:
    f64(bits)
for _ in range(900):
    f32(random.getrandbits(32))
    f64(random.getrandbits(64))
for _ in range(300):
    # Decimals of few digits, as programs have them.
    v = random.randrange(1, 10 ** random.randrange(1, 10)) * 10.0 ** random.randrange(-12, 6)
    f32(bits32(v))
    f64(bits64(v))
    f64(bits64(float(np.float32(v))))
for bits in sorted({random.getrandbits(16) for _ in range(500)} | {0x7C00, 0xFC00, 0x7E00, 0xFE00, 0x7E01, 0x7C01, 0x8000, 1, 0x3FF}):
    small("f16", np.float16, bits, 5, 10, np.uint16)
for bits in sorted({random.getrandbits(16) for _ in range(500)} | {0x7F80, 0xFF80, 0x7FC0, 0xFFC0, 0x7FC1, 0x7F81, 0x8000, 1, 0x7F}):
    small("bf16", ml_dtypes.bfloat16, bits, 4, 7, np.uint16)
for name, dtype, digits, fraction, width in [
    ("f8e5m2", ml_dtypes.float8_e5m2, 2, 2, 8),
    ("f8e4m3", ml_dtypes.float8_e4m3, 3, 3, 8),
    ("f8e4m3fn", ml_dtypes.float8_e4m3fn, 3, 0, 8),
    ("f8e4m3b11fnuz", ml_dtypes.float8_e4m3b11fnuz, 3, 0, 8),
    ("f8e3m4", ml_dtypes.float8_e3m4, 3, 4, 8),
    ("f8e5m2fnuz", ml_dtypes.float8_e5m2fnuz, 2, 0, 8),
    ("f8e4m3fnuz", ml_dtypes.float8_e4m3fnuz, 3, 0, 8),
    ("f8e8m0fnu", ml_dtypes.float8_e8m0fnu, 2, 0, 8),
    ("f4e2m1fn", ml_dtypes.float4_e2m1fn, 2, 0, 4),
    ("f6e3m2fn", ml_dtypes.float6_e3m2fn, 2, 0, 6),
    ("f6e2m3fn", ml_dtypes.float6_e2m3fn, 3, 0, 6),
]:
    for bits in range(1 << width):
        small(name, dtype, bits, digits, fraction, np.uint8)

with open("number_texts.txt", "w") as out:
    out.write("\n".join(lines) + "\n")
