"""Element types in exact arithmetic: what the bits of an element are worth, and which bits a number rounds to.

Written from the formats' definitions (IEEE 754, the OCP microscaling formats, XLA's xla_data.proto), with `fractions.Fraction` alone.
`check_formats()` compares it with ml_dtypes and numpy; the generators beside this file call that before they write anything.

A value is a `Fraction`, `NEG0` (the negative zero), `INF`, `NINF` or `NAN`; a complex value a pair of these.
"""
from fractions import Fraction as Q

NEG0, INF, NINF, NAN = "-0", "inf", "-inf", "nan"

# Exponent bits, fraction bits, bias, kind. Kinds: ieee; fn: finite with NaN in all ones; fnuz: the pattern of -0 is the NaN;
# finite: numbers only; scale: powers of two and a NaN.
FLOATS = {
    "f16": (5, 10, 15, "ieee"), "bf16": (8, 7, 127, "ieee"), "f32": (8, 23, 127, "ieee"), "f64": (11, 52, 1023, "ieee"),
    "f8e5m2": (5, 2, 15, "ieee"), "f8e4m3": (4, 3, 7, "ieee"), "f8e3m4": (3, 4, 3, "ieee"), "f8e4m3fn": (4, 3, 7, "fn"),
    "f8e4m3b11fnuz": (4, 3, 11, "fnuz"), "f8e5m2fnuz": (5, 2, 16, "fnuz"), "f8e4m3fnuz": (4, 3, 8, "fnuz"),
    "f8e8m0fnu": (8, 0, 127, "scale"), "f4e2m1fn": (2, 1, 1, "finite"), "f6e3m2fn": (3, 2, 3, "finite"), "f6e2m3fn": (2, 3, 1, "finite"),
}
SIGNED = {f"s{n}": n for n in (1, 2, 4, 8, 16, 32, 64)}
UNSIGNED = {f"u{n}": n for n in (1, 2, 4, 8, 16, 32, 64)}
INTS = {**SIGNED, **UNSIGNED}
COMPLEX = {"c64": "f32", "c128": "f64"}
TYPES = ["pred", *INTS, *FLOATS, *COMPLEX]


def bits_of(ty):
    if ty == "pred":
        return 8
    if ty in INTS:
        return INTS[ty]
    if ty in COMPLEX:
        return 2 * bits_of(COMPLEX[ty])
    e, m, _, kind = FLOATS[ty]
    return e + m + (kind != "scale")


def patterns_of(ty):
    """All bit patterns that an element can have."""
    return range(2 if ty == "pred" else 1 << bits_of(ty))


def is_number(v):
    return isinstance(v, Q)


def decode(ty, bits):
    """The value of an element."""
    if ty == "pred":
        return Q(bits & 1)
    if ty in INTS:
        n = INTS[ty]
        return Q(bits - (1 << n) if ty in SIGNED and bits >> (n - 1) else bits)
    if ty in COMPLEX:
        part = COMPLEX[ty]
        n = bits_of(part)
        return decode(part, bits & ((1 << n) - 1)), decode(part, bits >> n)
    e, m, bias, kind = FLOATS[ty]
    if kind == "scale":
        return NAN if bits == 0xff else Q(2) ** (bits - bias)
    negative = bits >> (e + m)
    field, fraction = bits >> m & ((1 << e) - 1), bits & ((1 << m) - 1)
    if kind == "ieee" and field == (1 << e) - 1:
        return NAN if fraction else NINF if negative else INF
    if kind == "fn" and field == (1 << e) - 1 and fraction == (1 << m) - 1:
        return NAN
    if kind == "fnuz" and negative and field == fraction == 0:
        return NAN
    if field == fraction == 0:
        return NEG0 if negative else Q(0)
    value = Q(fraction, 1 << m) * Q(2) ** (1 - bias) if field == 0 else (1 + Q(fraction, 1 << m)) * Q(2) ** (field - bias)
    return -value if negative else value


def canonical_nan(ty):
    """The bits of the NaN that arithmetic makes, or of what stands for it."""
    e, m, _, kind = FLOATS[ty]
    return {"ieee": (((1 << e) - 1) << m) | 1 << max(m - 1, 0), "fn": (1 << (e + m)) - 1, "fnuz": 1 << (e + m),
            "finite": 1 << (e + m), "scale": 0xff}[kind]


_largest = {}


def largest(ty):
    """Bits and value of the largest number of a float type."""
    if ty not in _largest:
        e, m, _, kind = FLOATS[ty]
        top = (1 << (e + m)) - 1
        bits = {"ieee": (((1 << e) - 1) << m) - 1, "fn": top - 1, "fnuz": top, "finite": top, "scale": 0xfe}[kind]
        _largest[ty] = bits, decode(ty, bits)
    return _largest[ty]


def floor_log2(q):
    """The exponent of the largest power of two that is not above a positive number."""
    e = q.numerator.bit_length() - q.denominator.bit_length()
    return e if Q(2) ** e <= q else e - 1


def encode_scale(value):
    if value in (NAN, INF, NINF, NEG0) or value <= 0:
        return 0xff
    if value <= Q(2) ** -127:
        return 0
    if value < Q(2) ** -126:
        return 1
    e = floor_log2(value)
    e += value >= Q(3, 2) * Q(2) ** e
    return 0xff if e > 127 else e + 127


def encode(ty, value):
    """The bits of a value in a float type, rounded once: to nearest, ties to even."""
    e, m, bias, kind = FLOATS[ty]
    if kind == "scale":
        return encode_scale(value)
    if value == NAN:
        return canonical_nan(ty)
    sign = 1 << (e + m)
    infinity = {"ieee": ((1 << e) - 1) << m, "finite": largest(ty)[0]}.get(kind)
    overflow = lambda negative: canonical_nan(ty) if infinity is None else infinity | (sign if negative else 0)
    if value in (INF, NINF):
        return overflow(value == NINF)
    if value == NEG0 or value == 0:
        return sign if value == NEG0 and kind != "fnuz" else 0
    negative, a = value < 0, abs(value)
    exponent = max(floor_log2(a), 1 - bias)
    scaled = a / Q(2) ** (exponent - m)  # a whole number of units in the last place
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    if rest > Q(1, 2) or rest == Q(1, 2) and whole & 1:
        whole += 1
    # The fraction carries into the exponent field by itself.
    bits = whole if exponent == 1 - bias and whole < 1 << m else ((exponent + bias - 1) << m) + whole
    if bits > largest(ty)[0]:
        return overflow(negative)
    if bits == 0 and kind == "fnuz":
        return 0
    return bits | (sign if negative else 0)


def truncate(value):
    return int(value)  # Fraction truncates towards zero


def convert(source, target, bits):
    """HLO's convert, as SEMANTICS.md states it."""
    if source == target:
        return bits
    value = decode(source, bits)
    if source in COMPLEX:
        if target in COMPLEX:
            part = COMPLEX[target]
            return encode(part, value[0]) | encode(part, value[1]) << bits_of(part)
        value = value[0]
    if target == "pred":
        return int(value not in (Q(0), NEG0))
    if target in COMPLEX:
        return encode(COMPLEX[target], value)
    if target in FLOATS:
        return encode(target, value)
    n = INTS[target]
    if source in INTS or source == "pred":
        return int(value) & ((1 << n) - 1)
    low, high = (-(1 << (n - 1)), (1 << (n - 1)) - 1) if target in SIGNED else (0, (1 << n) - 1)
    if value in (NAN, NEG0):
        whole = 0
    elif value in (INF, NINF):
        whole = high if value == INF else low
    else:
        whole = max(low, min(high, truncate(value)))
    return whole & ((1 << n) - 1)


def hexadecimal(ty, bits):
    return f"{bits:0{-(-bits_of(ty) // 4)}x}"


def raw(ty, elements):
    return "raw(" + "".join(hexadecimal(ty, b) for b in elements) + ")"


def fnv(ty, elements):
    h, n = 0xcbf29ce484222325, -(-bits_of(ty) // 8)
    for bits in elements:
        for byte in bits.to_bytes(n, "little"):
            h = (h ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return f"{h:016x}"


def digest(ty, elements, parts):
    n = len(elements) // parts
    assert n * parts == len(elements)
    return "digest(" + " ".join(fnv(ty, elements[i * n:(i + 1) * n]) for i in range(parts)) + ")"


def numpy_types():
    import ml_dtypes
    import numpy as np
    names = dict(f16=np.float16, f32=np.float32, f64=np.float64, bf16=ml_dtypes.bfloat16, f4e2m1fn=ml_dtypes.float4_e2m1fn,
                 f6e3m2fn=ml_dtypes.float6_e3m2fn, f6e2m3fn=ml_dtypes.float6_e2m3fn)
    for ty in FLOATS:
        if ty.startswith("f8"):
            names[ty] = getattr(ml_dtypes, "float8_" + ty[2:])
    return names


def as_value(x):
    """The value of a Python float."""
    if x != x:
        return NAN
    if x in (float("inf"), float("-inf")):
        return INF if x > 0 else NINF
    if x == 0 and str(x)[0] == "-":
        return NEG0
    return Q(x)


def check_formats():
    """Every pattern of the narrow types is worth what ml_dtypes says; rounding from f32 is ml_dtypes' and numpy's."""
    import random
    import numpy as np
    types = numpy_types()
    for ty, np_ty in types.items():
        n = bits_of(ty)
        word = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[max(8, -(-n // 8) * 8)]
        if n <= 16:
            values = np.arange(1 << n, dtype=word).view(np_ty).astype(np.float64)
            for bits, x in enumerate(values):
                assert decode(ty, bits) == as_value(float(x)), (ty, bits, x)
                if decode(ty, bits) != NAN:
                    assert encode(ty, decode(ty, bits)) == bits, (ty, bits)
        r = random.Random(7)
        words = [r.getrandbits(32) for _ in range(3000)]
        if n <= 16:  # numbers, the middles between them, and their neighbours
            numbers = sorted({decode(ty, b) for b in range(1 << n)} - {NAN, INF, NINF, NEG0})
            middles = [(a + b) / 2 for a, b in zip(numbers, numbers[1:])]
            some = r.sample(middles, min(len(middles), 500)) + [largest(ty)[1] * Q(33, 32)]
            words += [encode("f32", v) + d for v in some for d in (-1, 0, 1)]
        words += [0, 1 << 31, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f7fffff, 1]
        floats = np.array([w & 0xffffffff for w in words], np.uint32).view(np.float32)
        with np.errstate(all="ignore"):
            rounded = floats.astype(np_ty).view(word)
        for w, x, y in zip(words, floats, rounded):
            value = decode("f32", w & 0xffffffff)
            if value != NAN:  # ml_dtypes keeps signs of NaNs, and has none in the numbers-only types
                mine = encode(ty, value)
                same = mine == int(y) or decode(ty, mine) == decode(ty, int(y)) == NAN
                assert same, (ty, hex(w), x, hex(mine), hex(int(y)))
