"""The part of make_types.py for what is not elementwise: one program an opcode, with an instruction for each type.

What moves elements is tried on bit patterns; sums and products on small numbers, in exact arithmetic, rounded once; linear algebra and
normalization on numbers whose results are exact before that rounding; random bits by Philox written out.
"""
from fractions import Fraction as Q

import numpy as np

import exact
import functions as fn
from exact import COMPLEX, FLOATS, INF, INTS, NAN, NEG0, NINF, SIGNED, bits_of, decode, encode

M64, M32 = (1 << 64) - 1, (1 << 32) - 1


# ---- rings: exact values of a type, and back

def numbers(ty, count, seed=0):
    """Small numbers that the type has, as exact values."""
    if ty == "pred":
        some = [1, 0, 1, 1, 0]
    elif ty in INTS:
        some = [1, 2, -1, 3, 0, -2, 5, 7] if ty in SIGNED else [1, 2, 0, 3, 5, 7]
    elif ty in COMPLEX:
        return [(Q(1 + (seed + 3 * i) % 5), Q((seed + i) % 3 - 4)) for i in range(count)]
    elif ty == "f8e8m0fnu":
        some = [Q(1), Q(2), Q(1, 2), Q(4)]
    else:
        some = [Q(1), Q(2), Q(1, 2), Q(3), Q(-1), Q(3, 2), Q(4), Q(-2), Q(-1, 2)]
    values = [some[(seed + i * 3 + i * i) % len(some)] for i in range(count)]
    return [value(ty, bits(ty, v)) for v in values]


def bits(ty, v):
    """One rounding; modulo 2^n."""
    if ty == "pred":
        return int(v != 0)
    if ty in INTS:
        return int(v) & (1 << INTS[ty]) - 1
    if ty in COMPLEX:
        part = COMPLEX[ty]
        return encode(part, v[0]) | encode(part, v[1]) << bits_of(part)
    return encode(ty, v)


def value(ty, b):
    v = decode(ty, b)
    zero = lambda x: Q(0) if x == NEG0 else x
    return tuple(map(zero, v)) if ty in COMPLEX else zero(v)


def plus(a, b):
    return (a[0] + b[0], a[1] + b[1]) if isinstance(a, tuple) else a + b


def times(a, b):
    return fn.COMPLEX_BINARY["multiply"](a, b) if isinstance(a, tuple) else a * b


def total(values):
    values = list(values)
    out = values[0]
    for v in values[1:]:
        out = plus(out, v)
    return out


def raw(ty, values):
    return exact.raw(ty, [bits(ty, v) for v in values])


def flat(a):
    return [int(x) for x in np.array(a, object).ravel()]


class Maker:
    def __init__(self, chosen, types_of, Program, emit, patterns, edges):
        self.chosen, self.types_of, self.Program, self.emit = chosen, types_of, Program, emit
        self.patterns, self.edges = patterns, edges

    def each(self, op, f, origin="exact", *directives):
        """One program in which f puts an instruction for each type."""
        if self.chosen and op not in self.chosen:
            return
        p = self.Program(*directives)
        for ty in self.types_of(op):
            f(p, ty)
        self.emit(op, p, origin)

    def moved(self, op, shape, to, text, f, *more):
        """An opcode that only moves bits: f on an array of patterns; `more` are further operands as (shape, seed)."""
        def one(p, ty):
            n = int(np.prod(shape))
            x = np.array(self.patterns(ty, n), object).reshape(shape)
            names = [p.parameter(f"{ty}[{','.join(map(str, shape))}]", exact.raw(ty, flat(x)))]
            arrays = [x]
            for extra, seed in more:
                y = np.array(self.patterns(ty, int(np.prod(extra, dtype=int)), seed), object).reshape(extra)
                names.append(p.parameter(f"{ty}[{','.join(map(str, extra))}]", exact.raw(ty, flat(y)) if extra else exact.raw(ty, flat(y))))
                arrays.append(y)
            result = f"{ty}[{to}]"
            p.result(p.do(result, text.format(*names)), result, exact.raw(ty, flat(f(*arrays))))
        self.each(op, one, "exact", "nan-bits: true")

    def movement(self):
        self.moved("bitcast", (2, 3), "6", "bitcast({})", lambda x: x)
        self.moved("broadcast", (3,), "2,3", "broadcast({}), dimensions={{1}}", lambda x: np.array([x, x]))
        self.moved("concatenate", (2, 3), "2,5", "concatenate({}, {}), dimensions={{1}}", lambda x, y: np.concatenate([x, y], 1), ((2, 2), 5))
        self.moved("copy", (2, 3), "2,3", "copy({})", lambda x: x)
        self.moved("reshape", (2, 6), "3,4", "reshape({})", lambda x: x)
        self.moved("reverse", (2, 3), "2,3", "reverse({}), dimensions={{1}}", lambda x: x[:, ::-1])
        self.moved("slice", (2, 9), "1,3", "slice({}), slice={{[1:2], [2:8:2]}}", lambda x: x[1:2, 2:8:2])
        self.moved("transpose", (2, 3), "3,2", "transpose({}), dimensions={{1,0}}", lambda x: x.T)

        def pad(x, y):
            out = np.full((7,), y[()], object)
            out[[1, 3, 5]] = x
            return out[:6]
        self.moved("pad", (3,), "6", "pad({}, {}), padding=1_0_1", pad, ((), 5))

        def indexed(op, shape, to, text, f, indices, *more):
            """The same with operands of indices before the text's names."""
            def one(p, ty):
                x = np.array(self.patterns(ty, int(np.prod(shape))), object).reshape(shape)
                names, arrays = [p.parameter(f"{ty}[{','.join(map(str, shape))}]", exact.raw(ty, flat(x)))], [x]
                for extra, seed in more:
                    y = np.array(self.patterns(ty, int(np.prod(extra)), seed), object).reshape(extra)
                    names.append(p.parameter(f"{ty}[{','.join(map(str, extra))}]", exact.raw(ty, flat(y))))
                    arrays.append(y)
                names += [p.do(s, f"constant({v})") for s, v in indices]
                p.result(p.do(f"{ty}[{to}]", text.format(*names)), f"{ty}[{to}]", exact.raw(ty, flat(f(*arrays))))
            self.each(op, one, "exact", "nan-bits: true")

        two = [("s32[]", "1"), ("s32[]", "2")]
        indexed("dynamic-slice", (3, 4), "1,2", "dynamic-slice({}, {}, {}), dynamic_slice_sizes={{1,2}}", lambda x: x[1:2, 2:4], two)

        def update(x, y):
            out = x.copy()
            out[1:2, 2:4] = y
            return out
        indexed("dynamic-update-slice", (3, 4), "3,4", "dynamic-update-slice({}, {}, {}, {})", update, two, ((1, 2), 9))
        indexed("gather", (4, 2), "3,2", "gather({}, {}), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, "
                "index_vector_dim=1, slice_sizes={{1,2}}", lambda x: x[[0, 3, 1]], [("s32[3]", "{0, 9, 1}")])
        indexed("set-dimension-size", (4,), "<=4", "set-dimension-size({}, {}), dimensions={{0}}", lambda x: x[:3], [("s32[]", "3")])
        indexed("dynamic-reshape", (6,), "<=2,<=3", "dynamic-reshape({}, {}, {})", lambda x: x, [("s32[]", "2"), ("s32[]", "3")])

        def dimension_size(p, ty):
            a = p.parameter(f"{ty}[5]", exact.raw(ty, self.patterns(ty, 5)))
            p.result(p.do("s32[]", f"get-dimension-size({a}), dimensions={{0}}"), "s32[]", "5")
        self.each("get-dimension-size", dimension_size)

        def select(p, ty):
            x, y, c = self.patterns(ty, 6), self.patterns(ty, 6, 5), [1, 0, 0, 1, 1, 0]
            b = p.parameter("pred[6]", exact.raw("pred", c))
            a = [p.parameter(f"{ty}[6]", exact.raw(ty, v)) for v in (x, y)]
            p.result(p.do(f"{ty}[6]", f"select({b}, {a[0]}, {a[1]})"), f"{ty}[6]", exact.raw(ty, [u if k else v for u, v, k in zip(x, y, c)]))
        self.each("select", select, "exact", "nan-bits: true")

        def iota(p, ty):
            n = 20
            index = [((Q(i), Q(0)) if ty in COMPLEX else Q(i)) for i in range(n)]
            p.result(p.do(f"{ty}[{n}]", "iota(), iota_dimension=0"), f"{ty}[{n}]", raw(ty, index))
        self.each("iota", iota)

        def constant(p, ty):
            values = [decode(ty, b) for b in (self.edges(ty) if ty not in COMPLEX else [])]
            values = [v for v in values if v != NAN] or [(Q(1, 2), NEG0), (INF, Q(-3))]
            word = lambda v: ("true" if v else "false") if ty == "pred" else v if isinstance(v, str) else str(v) if ty in INTS else repr(float(v))
            texts = [f"({word(v[0])}, {word(v[1])})" if ty in COMPLEX else word(v) for v in values]
            shape = f"{ty}[{len(values)}]"
            p.result(p.do(shape, f"constant({{{', '.join(texts)}}})"), shape, raw(ty, values))
        self.each("constant", constant)

        def reinterpret(op="bitcast-convert"):
            if self.chosen and op not in self.chosen:
                return
            pairs = sorted(self.types_of(op, pairs=True))
            for source in dict.fromkeys(a for a, _ in pairs):
                p = self.Program("nan-bits: true")
                for to in [b for a, b in pairs if a == source]:
                    n, m = bits_of(source), bits_of(to)
                    narrow, wide = min(n, m), max(n, m)
                    count, k = 3, wide // narrow
                    x = self.patterns(source, count * (k if n < m else 1))
                    word = 0
                    for i, b in enumerate(x):
                        word |= b << (i * n)
                    y = [word >> (i * m) & (1 << m) - 1 for i in range(count * (k if m < n else 1))]
                    if to == "pred":  # any bits but 0 are true, and stored as 1
                        continue_with = [b & 1 for b in y]
                        x = [b for b in x]
                        y = continue_with
                    dims = lambda split: f"{count},{k}" if split and k > 1 else f"{count}"
                    a = p.parameter(f"{source}[{dims(n < m)}]", exact.raw(source, x))
                    result = f"{to}[{dims(m < n)}]"
                    p.result(p.do(result, f"{op}({a})"), result, exact.raw(to, y))
                self.emit(op, p, "exact")
        reinterpret()

    # ---- sums, products, computations

    def sums(self):
        def adder(p, ty):
            name, op = f"add_{ty}", "or" if ty == "pred" else "add"
            p.before.append(f"{name} {{ x = {ty}[] parameter(0) y = {ty}[] parameter(1) ROOT z = {ty}[] {op}(x, y) }}")
            return name

        def array(p, ty, values, shape):
            return p.parameter(f"{ty}[{shape}]", raw(ty, values))

        def dot(p, ty):
            a, b = numbers(ty, 6), numbers(ty, 6, 2)
            x, y = array(p, ty, a, "2,3"), array(p, ty, b, "3,2")
            out = [total(times(a[i * 3 + k], b[k * 2 + j]) for k in range(3)) for i in range(2) for j in range(2)]
            p.result(p.do(f"{ty}[2,2]", f"dot({x}, {y}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"), f"{ty}[2,2]", raw(ty, out))
        self.each("dot", dot)

        def ragged(p, ty):
            a, b = numbers(ty, 6), numbers(ty, 8, 2)
            x, y = array(p, ty, a, "3,2"), array(p, ty, b, "2,2,2")
            n = p.do("s32[2]", "constant({1, 2})")
            group = [0, 1, 1]
            out = [total(times(a[i * 2 + k], b[group[i] * 4 + k * 2 + j]) for k in range(2)) for i in range(3) for j in range(2)]
            p.result(p.do(f"{ty}[3,2]", f"ragged-dot({x}, {y}, {n}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}, lhs_ragged_dims={{0}}, "
                          "rhs_group_dims={0}"), f"{ty}[3,2]", raw(ty, out))
        self.each("ragged-dot", ragged)

        def scaled(p, ty):
            a, b = numbers(ty, 8), numbers(ty, 8, 2)
            s, t = numbers("f8e8m0fnu", 4), numbers("f8e8m0fnu", 4, 1)
            x, y = array(p, ty, a, "2,4"), array(p, ty, b, "4,2")
            u, v = array(p, "f8e8m0fnu", s, "2,2"), array(p, "f8e8m0fnu", t, "2,2")
            out = [sum(a[i * 4 + k] * s[i * 2 + k // 2] * b[k * 2 + j] * t[k // 2 * 2 + j] for k in range(4)) for i in range(2) for j in range(2)]
            p.result(p.do("f32[2,2]", f"scaled-dot({x}, {y}, {u}, {v}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"), "f32[2,2]", raw("f32", out))
        self.each("scaled-dot", scaled)

        def convolution(p, ty):
            a, b = numbers(ty, 5), numbers(ty, 2, 2)
            x, y = array(p, ty, a, "1,5,1"), array(p, ty, b, "2,1,1")
            out = [total(times(a[i + k], b[k]) for k in range(2)) for i in range(4)]
            if ty in INTS:  # saturates
                low, high = (-(1 << (INTS[ty] - 1)), (1 << (INTS[ty] - 1)) - 1) if ty in SIGNED else (0, (1 << INTS[ty]) - 1)
                out = [max(low, min(high, v)) for v in out]
            p.result(p.do(f"{ty}[1,4,1]", f"convolution({x}, {y}), window={{size=2}}, dim_labels=b0f_0io->b0f"), f"{ty}[1,4,1]", raw(ty, out))
        self.each("convolution", convolution)

        def reduce(p, ty):
            a, i = numbers(ty, 6), numbers(ty, 1, 1)
            x, z = array(p, ty, a, "2,3"), array(p, ty, i, "")
            out = [total([i[0], *a[r * 3:r * 3 + 3]]) for r in range(2)]
            p.result(p.do(f"{ty}[2]", f"reduce({x}, {z}), dimensions={{1}}, to_apply={adder(p, ty)}"), f"{ty}[2]", raw(ty, out))
        self.each("reduce", reduce)

        def window(p, ty):
            a, i = numbers(ty, 5), numbers(ty, 1, 1)
            x, z = array(p, ty, a, "5"), array(p, ty, i, "")
            out = [total([i[0], a[r], a[r + 1]]) for r in range(4)]
            p.result(p.do(f"{ty}[4]", f"reduce-window({x}, {z}), window={{size=2}}, to_apply={adder(p, ty)}"), f"{ty}[4]", raw(ty, out))
        self.each("reduce-window", window)

        def scan(p, ty):
            a, i = numbers(ty, 4), numbers(ty, 1, 1)
            x, z = array(p, ty, a, "4"), array(p, ty, i, "")
            op = "or" if ty == "pred" else "add"
            p.before.append(f"step_{ty} {{ x = {ty}[] parameter(0) c = {ty}[] parameter(1) s = {ty}[] {op}(x, c) ROOT t = ({ty}[], {ty}[]) tuple(s, s) }}")
            out = [total([i[0], *a[:k + 1]]) for k in range(4)]
            shape = f"({ty}[4], {ty}[])"
            name = p.do(shape, f"scan({x}, {z}), dimensions={{0}}, num_carries=1, to_apply=step_{ty}")
            p.result(name, shape, raw(ty, out), raw(ty, out[-1:]))
        self.each("scan", scan)

        def map_(p, ty):
            a, b = numbers(ty, 4), numbers(ty, 4, 1)
            x, y = array(p, ty, a, "4"), array(p, ty, b, "4")
            p.result(p.do(f"{ty}[4]", f"map({x}, {y}), dimensions={{0}}, to_apply={adder(p, ty)}"), f"{ty}[4]", raw(ty, [plus(*v) for v in zip(a, b)]))
        self.each("map", map_)

        def scatter(p, ty):
            a, u = numbers(ty, 4), numbers(ty, 3, 1)
            x, y = array(p, ty, a, "4"), array(p, ty, u, "3")
            i = p.do("s32[3]", "constant({3, 9, 1})")
            out = [a[0], plus(a[1], u[2]), a[2], plus(a[3], u[0])]
            p.result(p.do(f"{ty}[4]", f"scatter({x}, {i}, {y}), update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, "
                          f"index_vector_dim=1, to_apply={adder(p, ty)}"), f"{ty}[4]", raw(ty, out))
        self.each("scatter", scatter)

        def chooser(p, ty, direction):
            part = COMPLEX.get(ty)
            inside = f"u = {part}[] real(x) v = {part}[] real(y) ROOT z = pred[] compare(u, v)" if part else "ROOT z = pred[] compare(x, y)"
            p.before.append(f"first_{ty} {{ x = {ty}[] parameter(0) y = {ty}[] parameter(1) {inside}, direction={direction} }}")
            return f"first_{ty}"

        key = lambda v: v[0] if isinstance(v, tuple) else v

        def select_and_scatter(p, ty):
            a, s, i = numbers(ty, 4), numbers(ty, 2, 1), numbers(ty, 1, 2)
            x, y, z = array(p, ty, a, "4"), array(p, ty, s, "2"), array(p, ty, i, "")
            out = [i[0]] * 4
            for w in range(2):
                k = 2 * w if key(a[2 * w]) >= key(a[2 * w + 1]) else 2 * w + 1
                out[k] = plus(i[0], s[w])
            p.result(p.do(f"{ty}[4]", f"select-and-scatter({x}, {y}, {z}), window={{size=2 stride=2}}, select={chooser(p, ty, 'GE')}, "
                          f"scatter={adder(p, ty)}"), f"{ty}[4]", raw(ty, out))
        self.each("select-and-scatter", select_and_scatter)

        def distinct(ty):
            values = [value(ty, b) for b in self.edges(ty)] if ty not in COMPLEX else numbers(ty, 6)
            return [v for v in dict.fromkeys(values) if v not in (NAN, NEG0)][::-1]

        def order(v):
            return key(v) if ty_is_number(v) else v

        def ty_is_number(v):
            return not isinstance(v, str)

        rank = lambda v: (-1 if v == NINF else 1 if v == INF else 0, key(v) if ty_is_number(v) else Q(0))

        def sort(p, ty):
            a = distinct(ty)
            shape = f"{ty}[{len(a)}]"
            x = p.parameter(shape, raw(ty, a))
            p.result(p.do(shape, f"sort({x}), dimensions={{0}}, to_apply={chooser(p, ty, 'LT')}"), shape, raw(ty, sorted(a, key=rank)))
        self.each("sort", sort)

        def topk(p, ty):
            a = distinct(ty)
            k = min(3, len(a))
            x = p.parameter(f"{ty}[{len(a)}]", raw(ty, a))
            best = sorted(range(len(a)), key=lambda i: rank(a[i]), reverse=True)[:k]
            shape = f"({ty}[{k}], s32[{k}])"
            name = p.do(shape, f"topk({x}), k={k}, largest=true")
            p.result(name, shape, raw(ty, [a[i] for i in best]), str(best))
        self.each("topk", topk)

    # ---- linear algebra, normalization

    def linear(self):
        def cholesky(p, ty):
            if ty == "f8e8m0fnu":
                a, l, n = [Q(4)], [Q(2)], 1
            elif ty in COMPLEX:
                a, l, n = [(Q(4), Q(0)), (Q(2), Q(-2)), (Q(2), Q(2)), (Q(6), Q(0))], [(Q(2), Q(0)), (Q(0), Q(0)), (Q(1), Q(1)), (Q(2), Q(0))], 2
            else:
                a, l, n = [Q(4), Q(2), Q(2), Q(2)], [Q(2), Q(0), Q(1), Q(1)], 2
            shape = f"{ty}[{n},{n}]"
            x = p.parameter(shape, raw(ty, a))
            p.result(p.do(shape, f"cholesky({x}), lower=true"), shape, raw(ty, l))
        self.each("cholesky", cholesky, "hand")

        def solve(p, ty):
            if ty == "f8e8m0fnu":
                a, b, x, n, m = [Q(2)], [Q(4)], [Q(2)], 1, 1
            elif ty in COMPLEX:
                c = lambda re, im=0: (Q(re), Q(im))
                a, b, x, n, m = [c(2), c(0), c(1, 1), c(1)], [c(2), c(4), c(2, 1), c(3, 2)], [c(1), c(2), c(1), c(1)], 2, 2
            else:
                a, b, x, n, m = [Q(2), Q(0), Q(1), Q(1)], [Q(2), Q(4), Q(2), Q(3)], [Q(1), Q(2), Q(1), Q(1)], 2, 2
            u, v = p.parameter(f"{ty}[{n},{n}]", raw(ty, a)), p.parameter(f"{ty}[{n},{m}]", raw(ty, b))
            p.result(p.do(f"{ty}[{n},{m}]", f"triangular-solve({u}, {v}), left_side=true, lower=true, transpose_a=NO_TRANSPOSE"), f"{ty}[{n},{m}]", raw(ty, x))
        self.each("triangular-solve", solve, "hand")

        def operands(p, ty, *columns):
            return [p.parameter(f"{ty}[{','.join(map(str, s))}]", raw(ty, map(Q, v))) for s, v in columns]

        def training(p, ty):
            scale = ty == "f8e8m0fnu"
            x = [1, 4] if scale else [1, 3]
            eps, mean, variance = (4, Q(5, 2), Q(9, 4)) if scale else (3, Q(2), Q(1))
            deviation = Q(5, 2) if scale else Q(2)
            names = operands(p, ty, ((2, 1), x), ((1,), [2]), ((1,), [2]))
            shape = f"({ty}[2,1], {ty}[1], {ty}[1])"
            name = p.do(shape, f"batch-norm-training({', '.join(names)}), epsilon={eps}, feature_index=1")
            p.result(name, shape, raw(ty, [(v - mean) / deviation * 2 + 2 for v in x]), raw(ty, [mean]), raw(ty, [variance]))
        self.each("batch-norm-training", training)

        def inference(p, ty):
            x = [4, 1] if ty == "f8e8m0fnu" else [3, 1]
            names = operands(p, ty, ((2, 1), x), ((1,), [2]), ((1,), [1]), ((1,), [1]), ((1,), [1]))
            p.result(p.do(f"{ty}[2,1]", f"batch-norm-inference({', '.join(names)}), epsilon=3, feature_index=1"), f"{ty}[2,1]",
                     raw(ty, [Q(v - 1, 2) * 2 + 1 for v in x]))
        self.each("batch-norm-inference", inference)

        def grad(p, ty):
            x, g = [1, 4] if ty == "f8e8m0fnu" else [1, 3], [1, 2]
            names = operands(p, ty, ((2, 1), x), ((1,), [2]), ((1,), [2]), ((1,), [1]), ((2, 1), g))
            correlation = sum(b * (a - 2) for a, b in zip(x, g))
            of_x = [Q(2, 2 * 2) * (2 * b - sum(g) - Q((a - 2) * correlation, 4)) for a, b in zip(x, g)]
            shape = f"({ty}[2,1], {ty}[1], {ty}[1])"
            name = p.do(shape, f"batch-norm-grad({', '.join(names)}), epsilon=3, feature_index=1")
            p.result(name, shape, raw(ty, of_x), raw(ty, [Q(correlation, 2)]), raw(ty, [Q(sum(g))]))
        self.each("batch-norm-grad", grad)

        def fft(p, ty):
            c = lambda re, im=0: (Q(re), Q(im))
            if ty in COMPLEX:
                x, y, of = [c(1, 1), c(2, 1), c(3), c(5, 1)], [c(11, 3), c(-2, 4), c(-3, -1), c(-2, -2)], ty
            else:
                x, y, of = [Q(1), Q(2), Q(3), Q(5)], [c(11), c(-2, 3), c(-3)], {"f32": "c64", "f64": "c128"}[ty]
            a = p.parameter(f"{ty}[4]", raw(ty, x))
            shape = f"{of}[{len(y)}]"
            p.result(p.do(shape, f"fft({a}), fft_type={'FFT' if ty in COMPLEX else 'RFFT'}, fft_length={{4}}"), shape, raw(of, y))
        self.each("fft", fft, "hand")

    # ---- random numbers

    def random(self):
        def philox(key, counter):
            x = [counter >> (32 * i) & M32 for i in range(4)]
            k = [key & M32, key >> 32]
            for _ in range(10):
                a, b = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57
                x = [b >> 32 ^ x[1] ^ k[0], b & M32, a >> 32 ^ x[3] ^ k[1], a & M32]
                k = [(k[0] + 0x9E3779B9) & M32, (k[1] + 0xBB67AE85) & M32]
            return x

        def words(key, first, n, width):
            blocks = -(-n * width // 128)
            w = [w for i in range(blocks) for w in philox(key, first + i)]
            return (w[:n] if width == 32 else [w[2 * i] | w[2 * i + 1] << 32 for i in range(n)]), blocks

        def generator(p, ty):
            n = 6
            key, low, high = 5, M64, 3
            w, blocks = words(key, low | high << 64, n, 64 if bits_of(ty) == 64 else 32)
            after = (low | high << 64) + blocks
            s = p.parameter("u64[3]", exact.raw("u64", [key, low, high]))
            shape = f"(u64[3], {ty}[{n}])"
            name = p.do(shape, f"rng-bit-generator({s}), algorithm=rng_philox")
            p.result(name, shape, exact.raw("u64", [key, after & M64, after >> 64]), exact.raw(ty, [x & (1 << bits_of(ty)) - 1 for x in w]))
        self.each("rng-bit-generator", generator, "exact", "nan-bits: true")

        def state(p, ty):
            name = p.do("u64[2]", "rng-get-and-update-state(), delta=3")
            p.result(name, "u64[2]", exact.raw("u64", [0x7012395, 0]))
        self.each("rng-get-and-update-state", state, "xla")

        op = "rng"
        if not self.chosen or op in self.chosen:
            for ty in self.types_of(op):  # a program each: the key holds the instruction's ordinal, 2
                p, n, width = self.Program(), 6, 64 if bits_of(ty) == 64 else 32
                w, _ = words(2 * 0x9E3779B97F4A7C15 % (1 << 64) >> 32, 0x7012395, n, width)
                if ty in FLOATS:
                    low, high = Q(1), Q(2)
                    if ty == "f64":
                        out = [float(x >> 12) * 2.0**-52 * (2.0 - 1.0) + 1.0 for x in w]
                    else:
                        f = np.float32
                        out = [f(f(x >> 9) * f(2.0**-23)) * f(f(2) - f(1)) + f(1) for x in w]
                    out = [encode(ty, Q(float(x))) for x in out]
                else:
                    low, high = {"pred": (0, 1), "s1": (-1, 0), "u1": (0, 1), "s2": (-2, 1), "u2": (0, 3), "s4": (-7, 6), "u4": (1, 12)}.get(ty, (-100, 27) if ty in SIGNED else (3, 120))
                    out = [bits(ty, low + x % (high - low + (ty == "pred"))) for x in w]
                a, b = (p.parameter(f"{ty}[]", raw(ty, [v])) for v in (low, high))
                p.result(p.do(f"{ty}[{n}]", f"rng({a}, {b}), distribution=rng_uniform, frontend_attributes={{rng_ordinal=\"2\"}}"), f"{ty}[{n}]", exact.raw(ty, out))
                self.emit(op, p, "exact, numpy")

    # ---- structure, control, devices

    def control(self):
        def passed(op, f):
            """f(p, ty, name of T[4]) gives the name of a T[4] with the elements reversed, or as they are, or what it says."""
            def one(p, ty):
                x = self.patterns(ty, 4)
                a = p.parameter(f"{ty}[4]", exact.raw(ty, x))
                name, expected = f(p, ty, a, x)
                p.result(name, f"{ty}[4]", exact.raw(ty, expected))
            self.each(op, one, "exact", "nan-bits: true")

        def backwards(p, ty, name="back"):
            p.before.append(f"{name}_{ty} {{ x = {ty}[4] parameter(0) ROOT y = {ty}[4] reverse(x), dimensions={{0}} }}")
            return f"{name}_{ty}"

        def simple(text):
            return lambda p, ty, a, x: (p.do(f"{ty}[4]", text.format(a)), x)

        passed("opt-barrier", simple("opt-barrier({})"))
        passed("domain", simple('domain({}), domain={{kind="sharding", entry={{maximal device=0}}, exit={{maximal device=1}}}}'))
        passed("custom-call", simple('custom-call({}), custom_call_target="Sharding"'))
        passed("parameter", lambda p, ty, a, x: (a, x))
        passed("add-dependency", lambda p, ty, a, x: (p.do(f"{ty}[4]", f"add-dependency({a}, {p.do('token[]', 'after-all()')})"), x))
        passed("call", lambda p, ty, a, x: (p.do(f"{ty}[4]", f"call({a}), to_apply={backwards(p, ty)}"), x[::-1]))
        passed("fusion", lambda p, ty, a, x: (p.do(f"{ty}[4]", f"fusion({a}), kind=kLoop, calls={backwards(p, ty)}"), x[::-1]))

        def conditional(p, ty, a, x):
            p.before.append(f"same_{ty} {{ ROOT x = {ty}[4] parameter(0) }}")
            c = p.do("pred[]", f"constant({'false' if ty in INTS else 'true'})")
            name = p.do(f"{ty}[4]", f"conditional({c}, {a}, {a}), true_computation={backwards(p, ty)}, false_computation=same_{ty}")
            return name, x if ty in INTS else x[::-1]
        passed("conditional", conditional)

        def tuples(p, ty, a, x):
            return p.do(f"{ty}[4]", f"get-tuple-element({p.do(f'({ty}[4])', f'tuple({a})')}), index=0"), x
        passed("tuple", tuples)
        passed("get-tuple-element", tuples)

        def copies(p, ty, a, x):
            s = p.do(f"({ty}[4], {ty}[4], u32[])", f"copy-start({a})")
            return p.do(f"{ty}[4]", f"copy-done({s})"), x
        passed("copy-start", copies)
        passed("copy-done", copies)

        def asynchronous(p, ty, a, x):
            shape = f"(({ty}[4]), {ty}[4], s32[])"
            s = p.do(shape, f"async-start({a}), calls={backwards(p, ty)}")
            u = p.do(shape, f"async-update({s})")
            return p.do(f"{ty}[4]", f"async-done({u})"), x[::-1]
        for op in ("async-start", "async-update", "async-done"):
            passed(op, asynchronous)

        def loop(p, ty, a, x):
            state = f"({ty}[4], s32[])"
            p.before.append(f"condition_{ty} {{ s = {state} parameter(0) i = s32[] get-tuple-element(s), index=1 n = s32[] constant(3) "
                            "ROOT c = pred[] compare(i, n), direction=LT }")
            p.before.append(f"body_{ty} {{ s = {state} parameter(0) x = {ty}[4] get-tuple-element(s), index=0 i = s32[] get-tuple-element(s), index=1 "
                            f"y = {ty}[4] reverse(x), dimensions={{0}} one = s32[] constant(1) j = s32[] add(i, one) ROOT t = {state} tuple(y, j) }}")
            s = p.do(state, f"tuple({a}, {p.do('s32[]', 'constant(0)')})")
            w = p.do(state, f"while({s}), condition=condition_{ty}, body=body_{ty}")
            return p.do(f"{ty}[4]", f"get-tuple-element({w}), index=0"), x[::-1]
        passed("while", loop)

        def token(p, ty):
            t = p.do("token[]", "after-all()")
            t = p.do("token[]", f"after-all({t}, {t})")
            a = p.parameter("s32[]", "7")
            p.result(p.do("s32[]", f"add-dependency({a}, {t})"), "s32[]", "7")
        self.each("after-all", token, "hand")
        for op in ("partition-id", "replica-id"):
            self.each(op, lambda p, ty: p.result(p.do("u32[]", f"{op}()"), "u32[]", "0"), "hand")

    def devices(self):
        """On one device: everything is its own, once."""
        def alone(op, f):
            def one(p, ty):
                x = numbers(ty, 4)
                name = f(p, ty, p.parameter(f"{ty}[4]", raw(ty, x)))
                p.result(name, f"{ty}[4]", raw(ty, x))
            self.each(op, one, "hand")

        def adder(p, ty):
            p.before.append(f"add_{ty} {{ x = {ty}[] parameter(0) y = {ty}[] parameter(1) ROOT z = {ty}[] add(x, y) }}")
            return f"add_{ty}"

        def halves(p, ty, start, done, pair=True):
            s = p.do(f"({ty}[4], {ty}[4])" if pair else f"{ty}[4]", start)
            return p.do(f"{ty}[4]", f"{done}({s})")

        gather = "({}), replica_groups={{}}, dimensions={{0}}"
        alone("all-gather", lambda p, ty, a: p.do(f"{ty}[4]", "all-gather" + gather.format(a)))
        for op in ("all-gather-start", "all-gather-done"):
            alone(op, lambda p, ty, a: halves(p, ty, "all-gather-start" + gather.format(a), "all-gather-done"))
        alone("all-reduce", lambda p, ty, a: p.do(f"{ty}[4]", f"all-reduce({a}), replica_groups={{}}, to_apply={adder(p, ty)}"))
        for op in ("all-reduce-start", "all-reduce-done"):
            alone(op, lambda p, ty, a: halves(p, ty, f"all-reduce-start({a}), replica_groups={{}}, to_apply={adder(p, ty)}", "all-reduce-done", False))
        alone("reduce-scatter", lambda p, ty, a: p.do(f"{ty}[4]", f"reduce-scatter({a}), replica_groups={{}}, dimensions={{0}}, to_apply={adder(p, ty)}"))
        alone("all-to-all", lambda p, ty, a: p.do(f"{ty}[4]", f"all-to-all({a}), replica_groups={{{{0}}}}, dimensions={{0}}"))
        alone("collective-broadcast", lambda p, ty, a: p.do(f"{ty}[4]", f"collective-broadcast({a}), replica_groups={{{{0}}}}"))
        alone("collective-permute", lambda p, ty, a: p.do(f"{ty}[4]", f"collective-permute({a}), source_target_pairs={{{{0,0}}}}"))
        for op in ("collective-permute-start", "collective-permute-done"):
            alone(op, lambda p, ty, a: halves(p, ty, f"collective-permute-start({a}), source_target_pairs={{{{0,0}}}}", "collective-permute-done"))
        alone("collective-reduce", lambda p, ty, a: p.do(f"{ty}[4]", f"collective-reduce({a}), replica_groups={{}}, to_apply={adder(p, ty)}"))

        def ragged(p, ty, a):
            b = p.parameter(f"{ty}[4]", raw(ty, numbers(ty, 4, 2)))
            i, n = p.do("s32[1]", "constant({0})"), p.do("s32[1]", "constant({4})")
            return p.do(f"{ty}[4]", f"ragged-all-to-all({a}, {b}, {i}, {n}, {i}, {n}), replica_groups={{{{0}}}}")
        alone("ragged-all-to-all", ragged)

    def transfers(self, emit_text):
        """Feeds on one device; sends and receives between two that change places."""
        for ty in self.types_of("infeed"):
            if self.chosen and "infeed" not in self.chosen:
                break
            x = exact.raw(ty, self.patterns(ty, 4))
            emit_text("infeed", f"""// test: interpret
// origin: exact
// nan-bits: true
// infeed: {x}
// outfeed: {x}
HloModule t
ENTRY e {{
  t = token[] after-all()
  i = ({ty}[4], token[]) infeed(t)
  x = {ty}[4] get-tuple-element(i), index=0
  u = token[] get-tuple-element(i), index=1
  o = token[] outfeed(x, u), outfeed_shape={ty}[4]
  ROOT r = {ty}[4] copy(x)
}}
// run: e() == {x}
""")
        for ty in self.types_of("send"):
            if self.chosen and "send" not in self.chosen:
                break
            x, y = (exact.raw(ty, self.patterns(ty, 4, seed)) for seed in (1, 5))
            pairs = 'channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1},{1,0}}"}'
            emit_text("send", f"""// test: interpret
// origin: exact
// nan-bits: true
HloModule t, num_partitions=2
ENTRY e {{
  x = {ty}[4] parameter(0)
  t = token[] after-all()
  r = ({ty}[4], u32[], token[]) recv(t), {pairs}
  s = ({ty}[4], u32[], token[]) send(x, t), {pairs}
  d = ({ty}[4], token[]) recv-done(r), channel_id=1
  e = token[] send-done(s), channel_id=1
  ROOT y = {ty}[4] get-tuple-element(d), index=0
}}
// run: e({x} | {y}) == {y} | {x}
""")

    def make(self):
        self.movement()
        self.sums()
        self.linear()
        self.random()
        self.control()
        self.devices()
