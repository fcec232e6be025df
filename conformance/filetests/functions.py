"""The elementwise operations on the values of exact.py: what each gives exactly, or to 400 bits where it is irrational.

A result is a value of exact.py, to be rounded once by `exact.encode`. Conventions at zeros, infinities and NaN: IEEE 754-2019,
section 9.2, and SEMANTICS.md.
"""
from fractions import Fraction as Q

import mpmath as mp

from exact import INF, NAN, NEG0, NINF, is_number

mp.mp.prec = 400
HUGE, TINY = Q(2) ** 3000, Q(1, 2**3000)


def number(x):
    """A real mpmath number as a value: far outside of every type where it is far outside."""
    if mp.isnan(x):
        return NAN
    if mp.isinf(x):
        return INF if x > 0 else NINF
    if x == 0:
        return Q(0)
    if abs(mp.mag(x)) > 2900:
        far = HUGE if mp.mag(x) > 0 else TINY
        return far if x > 0 else -far
    man, exp = abs(x).man_exp
    q = Q(int(man)) * Q(2) ** int(exp)
    return q if x > 0 else -q


def big(q):
    return mp.mpf(q.numerator) / mp.mpf(q.denominator)


def sign_of(v):
    """-1 or 1; zeros have signs."""
    return -1 if v in (NEG0, NINF) or is_number(v) and v < 0 else 1


def negate(v):
    return {INF: NINF, NINF: INF, NAN: NAN, NEG0: Q(0)}.get(v) if isinstance(v, str) else NEG0 if v == 0 else -v


def absolute(v):
    return v if v == NAN else negate(v) if sign_of(v) < 0 else v


def signed_zero(v):
    return NEG0 if sign_of(v) < 0 else Q(0)


def is_zero(v):
    return v == NEG0 or v == 0


def odd(f, at_infinity):
    """An odd function with f(0) = 0, -0 at -0."""
    def g(v):
        if v in (INF, NINF):
            y = at_infinity
            return y if sign_of(v) > 0 or y == NAN else negate(y)
        return v if is_zero(v) else number(f(big(v)))
    return g


def plain(f, at_zero, at_infinity, at_minus, domain=lambda q: True):
    def g(v):
        if v in (INF, NINF):
            return at_infinity if v == INF else at_minus
        if is_zero(v):
            return at_zero(v) if callable(at_zero) else at_zero
        return number(f(big(v))) if domain(v) else NAN
    return g


def log(v):
    if is_zero(v):
        return NINF
    return v if v == INF else NAN if sign_of(v) < 0 else number(mp.log(big(v)))


def log1p(v):
    if v == INF or is_zero(v):
        return v
    if v == NINF or v < -1:
        return NAN
    return NINF if v == -1 else number(mp.log1p(big(v)))


def atanh(v):
    if is_zero(v):
        return v
    if v in (INF, NINF) or abs(v) > 1:
        return NAN
    return (INF if v == 1 else NINF) if abs(v) == 1 else number(mp.atanh(big(v)))


def rsqrt(v):
    if is_zero(v):
        return NINF if v == NEG0 else INF
    return Q(0) if v == INF else NAN if sign_of(v) < 0 else number(1 / mp.sqrt(big(v)))


def sqrt(v):
    if is_zero(v) or v == INF:
        return v
    return NAN if sign_of(v) < 0 else number(mp.sqrt(big(v)))


def cbrt(x):
    return mp.cbrt(x) if x > 0 else -mp.cbrt(-x)


def rounding(f):
    def g(v):
        if isinstance(v, str) or v == 0:
            return v
        y = Q(f(v))
        return signed_zero(v) if y == 0 else y
    return g


def afz(q):
    y = int(abs(q) + Q(1, 2))
    return y if q > 0 else -y


def half_even(q):
    return round(q)  # of a Fraction: to even


def exp(x):
    return mp.exp(min(max(x, -10**5), 10**5))


def bounded(f):
    """A function that is far outside of every type beyond 10^5."""
    return lambda x: f(min(max(x, -10**5), 10**5))


UNARY = {
    "abs": absolute, "negate": negate,
    "sign": lambda v: v if is_zero(v) else Q(sign_of(v)),
    "ceil": rounding(lambda q: -(-q.numerator // q.denominator)), "floor": rounding(lambda q: q.numerator // q.denominator),
    "round-nearest-afz": rounding(afz), "round-nearest-even": rounding(half_even),
    "acos": plain(mp.acos, number(mp.pi / 2), NAN, NAN, lambda q: abs(q) <= 1),
    "acosh": plain(mp.acosh, NAN, INF, NAN, lambda q: q >= 1),
    "asin": lambda v: NAN if v in (INF, NINF) or is_number(v) and abs(v) > 1 else odd(mp.asin, NAN)(v),
    "asinh": odd(mp.asinh, INF), "atanh": atanh, "cbrt": odd(cbrt, INF),
    "cosine": plain(mp.cos, Q(1), NAN, NAN), "cosh": plain(bounded(mp.cosh), Q(1), INF, INF),
    "erf": odd(mp.erf, Q(1)), "exponential": plain(exp, Q(1), INF, Q(0)),
    "exponential-minus-one": plain(bounded(mp.expm1), lambda v: v, INF, Q(-1)), "log": log, "log-plus-one": log1p,
    "logistic": plain(lambda x: 1 / (1 + exp(-x)), Q(1, 2), Q(1), Q(0)), "rsqrt": rsqrt,
    "sine": odd(mp.sin, NAN), "sinh": odd(bounded(mp.sinh), INF), "sqrt": sqrt, "tan": odd(mp.tan, NAN), "tanh": odd(mp.tanh, Q(1)),
}


def unary(op, v):
    return NAN if v == NAN else UNARY[op](v)


def add(a, b):
    if NAN in (a, b) or {a, b} == {INF, NINF}:
        return NAN
    for v in (a, b):
        if v in (INF, NINF):
            return v
    if is_zero(a) and is_zero(b):
        return NEG0 if a == b == NEG0 else Q(0)
    return (Q(0) if a == NEG0 else a) + (Q(0) if b == NEG0 else b)


def multiply(a, b):
    if NAN in (a, b):
        return NAN
    positive = sign_of(a) == sign_of(b)
    if a in (INF, NINF) or b in (INF, NINF):
        return NAN if is_zero(a) or is_zero(b) else INF if positive else NINF
    if is_zero(a) or is_zero(b):
        return Q(0) if positive else NEG0
    return a * b


def divide(a, b):
    if NAN in (a, b) or is_zero(a) and is_zero(b) or a in (INF, NINF) and b in (INF, NINF):
        return NAN
    positive = sign_of(a) == sign_of(b)
    if a in (INF, NINF) or is_zero(b):
        return INF if positive else NINF
    if is_zero(a) or b in (INF, NINF):
        return Q(0) if positive else NEG0
    return a / b


def remainder(a, b):
    if NAN in (a, b) or a in (INF, NINF) or is_zero(b):
        return NAN
    if b in (INF, NINF) or is_zero(a):
        return a
    r = abs(a) - abs(b) * (abs(a) // abs(b))
    return signed_zero(a) if r == 0 else r if a > 0 else -r


def order(v):
    return (-1 if v == NINF else 1 if v == INF else 0, v if is_number(v) else Q(0), v != NEG0)


def maximum(a, b):
    return NAN if NAN in (a, b) else max(a, b, key=order)


def minimum(a, b):
    return NAN if NAN in (a, b) else min(a, b, key=order)


def is_odd(v):
    return is_number(v) and v.denominator == 1 and v.numerator % 2 == 1


def power(a, b):
    if is_zero(b) or a == 1:
        return Q(1)
    if NAN in (a, b):
        return NAN
    if b in (INF, NINF):
        size = INF if a in (INF, NINF) else Q(0) if is_zero(a) else abs(a)
        if size == 1:
            return Q(1)
        return INF if (size == INF or size > 1) == (b == INF) else Q(0)
    if is_zero(a) or a in (INF, NINF):
        grows = (b > 0) == (a in (INF, NINF))
        negative = sign_of(a) < 0 and is_odd(b)
        return (NINF if negative else INF) if grows else NEG0 if negative else Q(0)
    if a < 0 and b.denominator != 1:
        return NAN
    log2 = mp.log(big(abs(a)), 2) * big(b)
    if abs(log2) > 2900:
        y = HUGE if log2 > 0 else TINY
    elif b.denominator == 1 and abs(b) * max(a.numerator.bit_length(), a.denominator.bit_length()) < 20000:
        y = abs(a) ** int(b)
    else:
        y = number(mp.power(big(abs(a)), big(b)))
    return -y if a < 0 and is_odd(b) else y


def atan2(y, x):
    if NAN in (x, y):
        return NAN
    negative = sign_of(y) < 0
    side = lambda v: v if not negative else negate(v)
    if is_zero(y):
        return side(number(mp.pi) if sign_of(x) < 0 else Q(0))
    if y in (INF, NINF):
        angle = mp.pi / 2 if x not in (INF, NINF) else mp.pi / 4 if x == INF else 3 * mp.pi / 4
        return side(number(angle))
    if x in (INF, NINF):
        return side(Q(0) if x == INF else number(mp.pi))
    if is_zero(x):
        return side(number(mp.pi / 2))
    return number(mp.atan2(big(y), big(x)))


BINARY = {
    "add": add, "subtract": lambda a, b: add(a, negate(b) if b != NAN else b), "multiply": multiply, "divide": divide,
    "remainder": remainder, "maximum": maximum, "minimum": minimum, "power": power, "atan2": atan2,
}


def total_key(ty, bits, n, nan):
    """TOTALORDER of bit patterns; the only NaN of a type without NaN signs is last, in fnuz types first."""
    if ty == "f8e8m0fnu":
        return bits
    if "fnuz" in ty and bits == nan:
        return -(1 << n)
    top = 1 << (n - 1)
    return -(bits - top) - 1 if bits >= top else bits


# ---- integers of n bits as Python ints, in range

def wrap(x, n, signed):
    x &= (1 << n) - 1
    return x - (1 << n) if signed and x >> (n - 1) else x


def int_divide(a, b):
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def shift(kind):
    def f(a, b, n, signed):
        raw, inside = a & ((1 << n) - 1), 0 <= b < n
        if kind == "left":
            return raw << b if inside else 0
        if kind == "logical":
            return raw >> b if inside else 0
        return (raw - ((raw >> (n - 1)) << n)) >> (b if inside else n)
    return f


def int_power(a, b, n, signed):
    return pow(a, b, 1 << n) if b >= 0 else int(a == 1)


INT_BINARY = {
    "add": lambda a, b, n, s: a + b, "subtract": lambda a, b, n, s: a - b, "multiply": lambda a, b, n, s: a * b,
    "divide": lambda a, b, n, s: int_divide(a, b) if b else -1, "remainder": lambda a, b, n, s: a - b * int_divide(a, b) if b else a,
    "maximum": lambda a, b, n, s: max(a, b), "minimum": lambda a, b, n, s: min(a, b), "power": int_power,
    "and": lambda a, b, n, s: a & b, "or": lambda a, b, n, s: a | b, "xor": lambda a, b, n, s: a ^ b,
    "mulhi": lambda a, b, n, s: a * b >> n, "shift-left": shift("left"), "shift-right-logical": shift("logical"),
    "shift-right-arithmetic": shift("arithmetic"),
}
INT_UNARY = {
    "abs": lambda a, n: abs(a), "negate": lambda a, n: -a, "not": lambda a, n: ~a, "sign": lambda a, n: (a > 0) - (a < 0),
    "popcnt": lambda a, n: bin(a & ((1 << n) - 1)).count("1"), "count-leading-zeros": lambda a, n: n - (a & ((1 << n) - 1)).bit_length(),
}
PRED_BINARY = {
    "add": lambda a, b: a | b, "multiply": lambda a, b: a & b, "maximum": lambda a, b: a | b, "minimum": lambda a, b: a & b,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
}

# ---- complex numbers that are finite and off the axes: pairs of fractions


def complex_mp(z):
    return mp.mpc(big(z[0]), big(z[1]))


def pair(w):
    w = mp.mpmathify(w)
    return number(mp.re(w)), number(mp.im(w))


def complex_divide(a, b):
    square = b[0] * b[0] + b[1] * b[1]
    return (a[0] * b[0] + a[1] * b[1]) / square, (a[1] * b[0] - a[0] * b[1]) / square


COMPLEX_UNARY = {
    "acos": mp.acos, "acosh": mp.acosh, "asin": mp.asin, "asinh": mp.asinh, "atanh": mp.atanh, "cosine": mp.cos, "cosh": mp.cosh,
    "sine": mp.sin, "sinh": mp.sinh, "tan": mp.tan, "tanh": mp.tanh, "exponential": mp.exp, "exponential-minus-one": mp.expm1,
    "log": mp.log, "log-plus-one": mp.log1p, "logistic": lambda z: 1 / (1 + mp.exp(-z)), "rsqrt": lambda z: 1 / mp.sqrt(z), "sqrt": mp.sqrt,
    "sign": lambda z: z / abs(z), "negate": lambda z: -z,
}
COMPLEX_BINARY = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]), "subtract": lambda a, b: (a[0] - b[0], a[1] - b[1]),
    "multiply": lambda a, b: (a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]), "divide": complex_divide,
    "maximum": max, "minimum": min, "power": lambda a, b: pair(mp.power(complex_mp(a), complex_mp(b))),
    "atan2": lambda y, x: pair(-1j * mp.log((complex_mp(x) + 1j * complex_mp(y)) / mp.sqrt(complex_mp(x) ** 2 + complex_mp(y) ** 2))),
}
