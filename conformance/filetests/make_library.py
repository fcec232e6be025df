#!/usr/bin/env python3
"""Writes library/*.hlo: library calls with expected results that are not our own.

    make_library.py            needs numpy, ml_dtypes, mpmath

Products and convolutions are loops over small integers, exact in every order. Epilogues are numpy in the compute type, one
rounding an operation, their elementary functions mpmath rounded once. Normalization and attention are written out in numpy's
f32, sums exact (math.fsum) and rounded once.
"""
import itertools, json, math, os
import ml_dtypes, mpmath
import numpy as np

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "library")
NP = dict(s8=np.int8, s32=np.int32, s64=np.int64, u8=np.uint8, u16=np.uint16, u32=np.uint32, f16=np.float16, bf16=ml_dtypes.bfloat16, f32=np.float32,
          f64=np.float64, c64=np.complex64, f8e4m3fn=ml_dtypes.float8_e4m3fn, f8e5m2=ml_dtypes.float8_e5m2,
          f8e8m0fnu=ml_dtypes.float8_e8m0fnu, f4e2m1fn=ml_dtypes.float4_e2m1fn)
f32 = np.float32
mpmath.mp.prec = 200
files = {}
rng = np.random.default_rng(7)


class A:
    def __init__(self, ty, values):
        self.ty, self.v = ty, np.asarray(values).astype(NP[ty])

    @property
    def shape(self):
        return f"{self.ty}[{','.join(map(str, self.v.shape))}]"


def ints(*shape, low=-3, high=4):
    return rng.integers(low, high, shape)


def number(ty, x):
    if ty == "c64":
        return f"({number('f32', x.real)}, {number('f32', x.imag)})"
    if ty[0] in "su":
        return str(int(x))
    x = float(x)
    if x != x or abs(x) == float("inf"):
        return "nan" if x != x else "inf" if x > 0 else "-inf"
    if ty == "f32":
        return np.format_float_scientific(f32(x), trim="-") if abs(x) >= 1e16 or 0 < abs(x) < 1e-5 else np.format_float_positional(f32(x), trim="-")
    return repr(x)[:-2] if repr(x).endswith(".0") else repr(x)


def text(a):
    go = lambda v: number(a.ty, v[()]) if v.ndim == 0 else "[" + ", ".join(map(go, v)) + "]"
    return go(a.v)


def flat(results):
    return [a.shape for a in results]


def test(name, what, target, args, results, config=None, attrs="", scratch=True, before="", ulp=None, body=None, nested=True):
    """One call; `scratch` adds a byte of it, and the results are taken out of the tuple."""
    ps = ", ".join(f"p{i}" for i in range(len(args)))
    conf = "" if config is None else f", backend_config={json.dumps(config)}"
    lines = [f"// ==== {what}", "// test: interpret", "HloModule t", ""] + ([before, ""] if before else []) + ["ENTRY e {"]
    lines += [f"  p{i} = {a.shape} parameter({i})" for i, a in enumerate(args)]
    shapes = flat(results)
    if body:
        lines += ["  " + line for line in body.splitlines()]
    elif scratch:
        lines.append(f"  c = ({', '.join(shapes)}, u8[1]) custom-call({ps}){attrs}, custom_call_target=\"{target}\"{conf}")
        lines += [f"  r{i} = {s} get-tuple-element(c), index={i}" for i, s in enumerate(shapes)]
        lines.append(f"  ROOT r = ({', '.join(shapes)}) tuple({', '.join(f'r{i}' for i in range(len(shapes)))})")
    else:
        shape = shapes[0] if len(shapes) == 1 else f"({', '.join(shapes)})"
        lines.append(f"  ROOT c = {shape} custom-call({ps}){attrs}, custom_call_target=\"{target}\"{conf}")
    lines.append("}")
    lines.append(f"// run: e({', '.join(map(text, args))}) == {', '.join(map(text, results))}" + (f" ~ulp({ulp})" if ulp else ""))
    files.setdefault(name, []).append("\n".join(lines) + "\n")


def refuse(name, what, target, args, shape, why, config=None, attrs=""):
    ps = ", ".join(f"p{i}" for i in range(len(args)))
    conf = "" if config is None else f", backend_config={config if isinstance(config, str) else json.dumps(config)}"
    lines = [f"// ==== {what}", "// test: interpret", "HloModule t", "", "ENTRY e {"]
    lines += [f"  p{i} = {a.shape} parameter({i})" for i, a in enumerate(args)]
    lines += [f"  ROOT c = {shape} custom-call({ps}){attrs}, custom_call_target=\"{target}\"{conf}", "}"]
    lines.append(f"// run: e({', '.join(map(text, args))}) fails[U0002]: {why}")
    files.setdefault(name, []).append("\n".join(lines) + "\n")


def once(f, *xs):
    """A function of numbers, rounded once to f32."""
    y = f(*(mpmath.mpf(float(x)) for x in xs))
    with mpmath.workprec(24):
        return f32(float(+y))


each = lambda f, x: np.vectorize(lambda v: once(f, v), otypes=[f32])(x)
logistic = lambda x: 1 / (1 + mpmath.exp(-x))


def gelu_tanh(x):
    inner = (x + x * x * x * f32(0.044715)) * f32(np.sqrt(2 / np.pi))
    return (x * f32(0.5)) * (each(mpmath.tanh, inner) + f32(1))


def gelu_erf(x):
    return (x * f32(0.5)) * (each(mpmath.erf, x * f32(np.sqrt(0.5))) + f32(1))


# ---- cuBLAS
def gemm(lhs=(1,), rhs=(0,), batch=((), ()), **more):
    numbers = {"lhs_contracting_dimensions": list(map(str, lhs)), "rhs_contracting_dimensions": list(map(str, rhs)),
               "lhs_batch_dimensions": list(map(str, batch[0])), "rhs_batch_dimensions": list(map(str, batch[1]))}
    return {"gemm_backend_config": {"alpha_real": 1, "alpha_imag": 0, "beta": 0, "dot_dimension_numbers": numbers,
                                    "precision_config": {"operand_precision": ["DEFAULT", "DEFAULT"], "algorithm": "ALG_UNSET"},
                                    "epilogue": "DEFAULT", **more}}


a, b, c = ints(2, 3), ints(3, 4), ints(2, 4)
ab = a @ b
test("cublas", "a product", "__cublas$gemm", [A("f32", a), A("f32", b)], [A("f32", ab)], gemm())
test("cublas", "a product without scratch", "__cublas$gemm", [A("f32", a), A("f32", b)], [A("f32", ab)], gemm(), scratch=False)
test("cublas", "alpha and beta", "__cublas$gemm", [A("f32", a), A("f32", b), A("f32", c)], [A("f32", 2 * ab + 0.5 * c)], gemm(alpha_real=2, beta=0.5))
test("cublas", "alpha and beta, older text", "__cublas$gemm", [A("f32", a), A("f32", b), A("f32", c)], [A("f32", 2 * ab + 0.5 * c)],
     json.dumps(gemm(alpha_real=2, beta=0.5)["gemm_backend_config"]))
test("cublas", "a complex alpha", "__cublas$gemm", [A("c64", a + 1j * a), A("c64", b)], [A("c64", (1 + 2j) * (a + 1j * a) @ b)], gemm(alpha_real=1, alpha_imag=2))
test("cublas", "integers", "__cublas$gemm", [A("s8", a), A("s8", b), A("s32", c)], [A("s32", ab + c)], gemm(beta=1))
x, y = ints(2, 3, 2), ints(2, 4, 3)
test("cublas", "a batch, transposed", "__cublas$gemm", [A("f64", x), A("f64", y)], [A("f64", np.einsum("bki,bjk->bij", x, y))],
     gemm((1,), (2,), ((0,), (0,))))
# 1 + 2^-12 + 2^-24 has more bits than f32; one rounding to f16, which f32 in between would spoil.
test("cublas", "one rounding", "__cublas$gemm", [A("f16", [[1, 2.0**-11, 2.0**-24]]), A("f16", [[1], [1], [1]])], [A("f16", [[1 + 2.0**-10]])], gemm())
bias = ints(4)
for name, f in (("DEFAULT", lambda x: x), ("RELU", lambda x: np.maximum(x, 0)), ("GELU", gelu_tanh), ("SILU", lambda x: x * each(logistic, x))):
    for with_bias in (False, True):
        z = (ab + bias if with_bias else ab).astype(f32)
        epilogue = ("BIAS_" + name if with_bias else name).replace("BIAS_DEFAULT", "BIAS")
        extra = [A("f32", bias)] if with_bias else []
        test("cublas", epilogue, "__cublas$lt$matmul", [A("f32", a), A("f32", b), *extra], [A("f32", f(z))], gemm(epilogue=epilogue))
        if name == "GELU":
            test("cublas", epilogue + "_AUX", "__cublas$lt$matmul", [A("f32", a), A("f32", b), *extra], [A("f32", f(z)), A("f32", z)], gemm(epilogue=epilogue + "_AUX"))
test("cublas", "matrix and vector bias", "__cublas$lt$matmul", [A("bf16", a), A("bf16", b), A("bf16", c), A("bf16", bias)],
     [A("bf16", np.maximum(3 * ab + 2 * c + bias, 0))], gemm(alpha_real=3, beta=2, epilogue="BIAS_RELU"))
z = np.maximum(f32(0.5) * (0.25 * 8 * ab).astype(f32), 0)
test("cublas", "8-bit floats with scales, and the largest modulus", "__cublas$lt$matmul$f8",
     [A("f8e4m3fn", a), A("f8e4m3fn", b), A("f32", 0.25), A("f32", 8), A("f32", 100)],
     [A("f8e4m3fn", np.clip(np.maximum(2 * ab, 0) * 100.0, -448, 448)), A("f32", np.abs(np.maximum(2 * ab, 0)).max())],
     gemm(epilogue="RELU", damax_output=True))
test("cublas", "8-bit floats with C", "__cublas$lt$matmul$f8", [A("f8e5m2", a), A("f8e4m3fn", b), A("bf16", c), A("f32", 2), A("f32", 3)],
     [A("bf16", 6 * ab + c)], gemm(beta=1))
groups = [1, 0, 2]
lhs, rhs = ints(4, 3), ints(3, 3, 2)
out = np.zeros((4, 2), int)
row = 0
for g, n in enumerate(groups):
    out[row:row + n] = lhs[row:row + n] @ rhs[g]
    row += n
ragged = {"dot_dimension_numbers": {"lhs_contracting_dimensions": ["1"], "rhs_contracting_dimensions": ["1"]},
          "lhs_ragged_dimensions": ["0"], "rhs_group_dimensions": ["0"]}
grouped = {"grouped_gemm_backend_config": {"gemm_backend_config": gemm(alpha_real=2, epilogue="BIAS")["gemm_backend_config"], "ragged_dot_dimension_numbers": ragged}}
test("cublas", "a product in groups", "__cublas$lt$groupedMatmul", [A("f32", lhs), A("f32", rhs), A("s32", groups), A("f32", [10, 20])],
     [A("f32", 2 * out + [10, 20])], grouped)
t = np.array([[2, 0], [3, 4]])
test("cublas", "a triangular system", "__cublas$triangularSolve", [A("f32", t), A("f32", [[4, 2], [14, 7]])], [A("f32", [[2, 1], [2, 1]])],
     {"left_side": True, "lower": True, "transpose_a": "NO_TRANSPOSE"})
refuse("cublas", "an unknown epilogue", "__cublas$lt$matmul", [A("f32", a), A("f32", b)], "f32[2,4]", "with epilogue SOFTMAX", gemm(epilogue="SOFTMAX"))
refuse("cublas", "an operand too many", "__cublas$gemm", [A("f32", a), A("f32", b), A("f32", c)], "f32[2,4]", "with 3 operands", gemm())
refuse("cublas", "C is missing", "__cublas$gemm", [A("f32", a), A("f32", b)], "f32[2,4]", "with too few operands", gemm(beta=1))
refuse("cublas", "another shape", "__cublas$gemm", [A("f32", a), A("f32", b)], "f32[4,2]", "shall be f32[4,2]", gemm())
refuse("cublas", "no dimension numbers", "__cublas$gemm", [A("f32", a), A("f32", b)], "f32[2,4]", "whose value", {})
refuse("cublas", "no JSON", "__cublas$gemm", [A("f32", a), A("f32", b)], "f32[2,4]", "no JSON", '"{beta"')

# ---- blocks with scales
x = ints(2, 64, low=-2, high=3)
scales = np.array([[2.0, 0.5], [1, 4]])
test("block_scale", "dequantize", "__op$dequantize", [A("f8e4m3fn", x[:, :4]), A("f8e8m0fnu", scales)], [A("f32", x[:, :4] * scales.repeat(2, 1))], scratch=False)
q = np.array([[1.0, -448 * 2, 3, 0.5], [0, 0, 6, 1000]])
amax = np.abs(q.reshape(2, 2, 2)).max(2)
sc = (amax / 256).astype(f32).astype(ml_dtypes.float8_e8m0fnu).astype(f32)
test("block_scale", "quantize", "__op$quantize", [A("f32", q[:1])], [A("f8e4m3fn", (q / sc.repeat(2, 1))[:1]), A("f8e8m0fnu", sc[:1])], scratch=False)
y = ints(3, 64, low=-2, high=3)
sy = np.array([[1, 2.0], [0.25, 1], [1, 1]])
full = (x * scales.repeat(32, 1)) @ (y * sy.repeat(32, 1)).T
test("block_scale", "a dot of scaled blocks", "__op$block_scaled_dot", [A("f8e4m3fn", x), A("f8e4m3fn", y), A("f8e8m0fnu", scales), A("f8e8m0fnu", sy)], [A("f32", full)], scratch=False)
test("block_scale", "one side scaled", "__op$block_scaled_dot", [A("f8e4m3fn", x), A("f8e4m3fn", y), A("f8e8m0fnu", scales)], [A("f32", (x * scales.repeat(32, 1)) @ y.T)], scratch=False)
pad = lambda s, r: np.pad(s, ((0, r - s.shape[0]), (0, 4 - s.shape[1])), constant_values=1)
test("block_scale", "padded scales and a factor", "__op$block_scaled_dot",
     [A("f8e4m3fn", x), A("f8e4m3fn", y), A("f8e8m0fnu", pad(scales, 4)), A("f8e8m0fnu", pad(sy, 4)), A("f32", 2)], [A("f32", 2 * full)],
     {"block_scaled_dot_backend_config": {"block_size": 32}}, scratch=False)


def swizzled(s):
    """Scales in tiles of 128 rows and 4 columns: row 32 i + j at (j, i)."""
    s = pad(s, 128)
    return s.reshape(1, 4, 32, 1, 4).transpose(0, 3, 2, 1, 4).reshape(128, 4)


for target in ("__cudnn$blockScaledDot", "__cublas$lt$matmul$mx"):
    s1, s2 = (s[:, :1].repeat(4, 1) for s in (scales, sy))
    xs, ys = (v * s[:, :1] for v, s in ((x, scales), (y, sy)))
    # Constants keep the text short: one scale a row.
    body = f'''one = f8e8m0fnu[] constant(1)
s0 = f8e8m0fnu[128,4] pad(p2, one), padding=0_126x0_0
s1 = f8e8m0fnu[128,4] pad(p3, one), padding=0_125x0_0
t0 = f8e8m0fnu[1,4,32,1,4] reshape(s0)
t1 = f8e8m0fnu[1,4,32,1,4] reshape(s1)
u0 = f8e8m0fnu[1,1,32,4,4] transpose(t0), dimensions={{0,3,2,1,4}}
u1 = f8e8m0fnu[1,1,32,4,4] transpose(t1), dimensions={{0,3,2,1,4}}
v0 = f8e8m0fnu[128,4] reshape(u0)
v1 = f8e8m0fnu[128,4] reshape(u1)
c = (f32[2,3], u8[1]) custom-call(p0, p1, v0, v1), custom_call_target="{target}"
ROOT r = f32[2,3] get-tuple-element(c), index=0'''
    test("block_scale", f"scales in tiles, {target[2:7].strip('$')}", target, [A("f8e4m3fn", x), A("f8e4m3fn", y), A("f8e8m0fnu", s1), A("f8e8m0fnu", s2)],
         [A("f32", xs @ ys.T)], body=body)

# ---- cuDNN convolutions


def conv(x, w, stride, pad, dilation=(1, 1), groups=1, reverse=False):
    """b01f, 01io -> b01f"""
    n, h, wd, _ = x.shape
    kh, kw, ci, co = w.shape
    oh, ow = ((s + 2 * p - d * (k - 1) - 1) // st + 1 for s, p, d, k, st in zip((h, wd), pad, dilation, (kh, kw), stride))
    out = np.zeros((n, oh, ow, co), x.dtype)
    for b, i, j, o in np.ndindex(out.shape):
        for k, l, c in itertools.product(range(kh), range(kw), range(ci)):
            y, z = i * stride[0] + k * dilation[0] - pad[0], j * stride[1] + l * dilation[1] - pad[1]
            if 0 <= y < h and 0 <= z < wd:
                kk, ll = (kh - 1 - k, kw - 1 - l) if reverse else (k, l)
                out[b, i, j, o] += x[b, y, z, o // (co // groups) * ci + c] * w[kk, ll, c, o]
    return out


def gradients(x, w, g, **how):
    """Of sum(g * conv(x, w)): linear in each, so by unit vectors."""
    unit = lambda shape, at: (lambda u: (u.__setitem__(at, 1), u)[1])(np.zeros(shape, int))
    dx = np.array([(g * conv(unit(x.shape, at), w, **how)).sum() for at in np.ndindex(x.shape)]).reshape(x.shape)
    dw = np.array([(g * conv(x, unit(w.shape, at), **how)).sum() for at in np.ndindex(w.shape)]).reshape(w.shape)
    return dx, dw


def window(w, stride, pad, dilation=(1, 1), reverse=False):
    pair = lambda v: f"{v[0]}x{v[1]}"
    return (f"window={{size={w.shape[0]}x{w.shape[1]} stride={pair(stride)} pad={pad[0]}_{pad[0]}x{pad[1]}_{pad[1]} rhs_dilate={pair(dilation)}"
            + (" rhs_reversal=1x1" if reverse else "") + "}")


CASES = [dict(stride=(1, 1), pad=(0, 0)), dict(stride=(2, 1), pad=(1, 0), dilation=(1, 2)), dict(stride=(1, 2), pad=(1, 1), groups=2), dict(stride=(1, 1), pad=(1, 0), reverse=True)]
for how in CASES:
    groups = how.get("groups", 1)
    x, w = ints(2, 4, 5, 2), ints(2, 2, 2 // groups, 4)
    y = conv(x, w, **how)
    g = ints(*y.shape)
    dx, dw = gradients(x, w, g, **how)
    attrs = f", {window(w, **{k: v for k, v in how.items() if k != 'groups'})}, dim_labels=b01f_01io->b01f" + (f", feature_group_count={groups}" if groups > 1 else "")
    what = f"stride {how['stride']}, padding {how['pad']}" + "".join(f", {k}" for k in ("dilation", "groups", "reverse") if k in how)
    config = {"cudnn_conv_backend_config": {"activation_mode": "kNone", "conv_result_scale": 1, "side_input_scale": 0}}
    test("cudnn_conv", "forward, " + what, "__cudnn$convForward", [A("f32", x), A("f32", w)], [A("f32", y)], config, attrs)
    test("cudnn_conv", "gradient of the input, " + what, "__cudnn$convBackwardInput", [A("f32", g), A("f32", w)], [A("f32", dx)], config, attrs)
    test("cudnn_conv", "gradient of the filter, " + what, "__cudnn$convBackwardFilter", [A("f32", x), A("f32", g)], [A("f32", dw)], config, attrs)
x, w = ints(1, 3, 3, 2), ints(2, 2, 2, 3)
y = conv(x, w, stride=(1, 1), pad=(0, 0))
plain = f", {window(w, (1, 1), (0, 0))}, dim_labels=b01f_01io->b01f"
test("cudnn_conv", "another order of dimensions", "__cudnn$convForward", [A("f32", x.transpose(0, 3, 1, 2)), A("f32", w.transpose(3, 2, 0, 1))], [A("f32", y.transpose(0, 3, 1, 2))],
     None, plain.replace("b01f_01io->b01f", "bf01_oi01->bf01"))
test("cudnn_conv", "lenient JSON and a scale", "__cudnn$convForward", [A("f32", x), A("f32", w)], [A("f32", y * 0.5)], "{conv_result_scale:0.5}", plain)
test("cudnn_conv", "integers", "__cudnn$convForward", [A("s8", x), A("s8", w)], [A("s32", y)], None, plain)
bias, side = ints(3), ints(*y.shape)
for mode, f in (("kNone", lambda z: z), ("kRelu", lambda z: np.maximum(z, 0)), ("kRelu6", lambda z: np.clip(z, 0, 6)), ("kTanh", lambda z: each(mpmath.tanh, z)),
                ("kSigmoid", lambda z: each(logistic, z)), ("kElu", lambda z: np.where(z > 0, z, each(mpmath.expm1, z))), ("kLeakyRelu", lambda z: np.where(z > 0, z, z * f32(0.25)))):
    config = {"cudnn_conv_backend_config": {"activation_mode": mode, "conv_result_scale": 2, "side_input_scale": 0.5, "leakyrelu_alpha": 0.25}}
    z = (2 * y + 0.5 * side + bias).astype(f32)
    test("cudnn_conv", f"bias, side input, {mode}", "__cudnn$convBiasActivationForward", [A("f32", x), A("f32", w), A("f32", bias), A("f32", side)], [A("f32", f(z))], config, plain)
test("cudnn_conv", "8-bit results saturate", "__cudnn$convBiasActivationForward", [A("s8", x * 9), A("s8", w * 9), A("f32", bias)],
     [A("s8", np.clip(81 * y + bias, -128, 127))], {"cudnn_conv_backend_config": {"activation_mode": "kNone", "conv_result_scale": 1}}, plain)
graph = "28:[f32]conv();30:[f32]scale(28);32:[f32]relu(30);16:[f8e4m3fn]scale(32);25:[f32]amax(32);"
z = np.maximum(y * 0.5, 0)
test("cudnn_conv", "a graph", "__cudnn$convForwardGraph", [A("f8e4m3fn", x), A("f8e4m3fn", w), A("f32", 0.5), A("f32", 100)],
     [A("f8e4m3fn", np.clip(z * 100, -448, 448)), A("f32", z.max())], {"cudnn_conv_backend_config": {"conv_result_scale": 1, "serialized_graph": graph}}, plain)
test("cudnn_conv", "a graph that uses a value twice", "__cudnn$convForwardGraph", [A("f32", x), A("f32", w), A("f32", side)],
     [A("f32", np.minimum(y + side, y))], {"cudnn_conv_backend_config": {"conv_result_scale": 1, "serialized_graph": "1:[f32]conv();2:[f32]add(1);3:[f32]min(2,1);"}}, plain)
xv, wv = ints(1, 8, 2, 2), ints(4, 8, 1, 1)  # bf01, oi01; features 8 = 2 * 4
yv = conv(xv.transpose(0, 2, 3, 1), wv.transpose(2, 3, 1, 0), stride=(1, 1), pad=(0, 0)).transpose(0, 3, 1, 2)
vec = lambda v: v.reshape(v.shape[0], -1, 4, *v.shape[2:]).transpose(0, 1, 3, 4, 2)
test("cudnn_conv", "features in vectors of 4", "__cudnn$convForward", [A("s8", vec(xv)), A("s8", vec(wv))], [A("s8", np.clip(vec(yv), -128, 127))], None,
     ", window={size=1x1}, dim_labels=bf01?_oi01?->bf01?")
refuse("cudnn_conv", "no labels", "__cudnn$convForward", [A("f32", x), A("f32", w)], "(f32[1,2,2,3], u8[0])", "without dim_labels")
refuse("cudnn_conv", "an activation of another kind", "__cudnn$convBiasActivationForward", [A("f32", x), A("f32", w), A("f32", bias)], "(f32[1,2,2,3], u8[0])", "with activation_mode kBandPass",
       {"cudnn_conv_backend_config": {"activation_mode": "kBandPass", "conv_result_scale": 1}}, plain)
refuse("cudnn_conv", "a graph that names what is not there", "__cudnn$convForwardGraph", [A("f32", x), A("f32", w)], "(f32[1,2,2,3], u8[0])", "serialized_graph",
       {"cudnn_conv_backend_config": {"conv_result_scale": 1, "serialized_graph": "1:[f32]conv();2:[f32]relu(7);"}}, plain)

# ---- normalization: all in f32, sums exact and rounded once
def total(x, axis):
    return np.apply_along_axis(lambda row: f32(math.fsum(map(float, row))), axis, x)


def dot(a, b):
    """Matrices in the last two dimensions; products of f32 are exact in f64."""
    terms = a.astype(float)[..., :, None, :] * b.astype(float).swapaxes(-1, -2)[..., None, :, :]
    return np.apply_along_axis(lambda row: f32(math.fsum(row)), -1, terms)


rsqrt = lambda x: each(lambda v: 1 / mpmath.sqrt(v), x)
x = rng.standard_normal((3, 4)).astype(f32)
scale, shift = (rng.standard_normal(4).astype(f32) for _ in range(2))
eps = 0.001


def layer(x):
    mean = total(x, 1) / f32(4)
    centred = x - mean[:, None]
    variance = total(centred * centred, 1) / f32(4)
    factor = rsqrt(variance + f32(eps))
    return centred * factor[:, None], mean, factor


normal, mean, factor = layer(x)
four = lambda v: A("f32", v.reshape(*v.shape, *[1] * (4 - v.ndim)) if v.shape[0] == 3 else v.reshape(1, 4, 1, 1))
stat = lambda v: A("f32", v.reshape(3, 1, 1, 1))
norm = lambda kind: {"cudnn_norm_backend_config": {"epsilon": eps, "kind": kind}}
y = normal * scale + shift
test("norm", "cuDNN forward", "__cudnn$norm", [four(x), four(scale), four(shift)], [four(y)], norm("LAYER_FWD_INFER"))
test("norm", "cuDNN forward for training", "__cudnn$norm", [four(x), four(scale), four(shift)], [four(y), stat(mean), stat(factor)], norm("LAYER_FWD_TRAIN"))
dy = rng.standard_normal(x.shape).astype(f32)
normal2 = (x - mean[:, None]) * factor[:, None]
g = dy * scale
along = total(g * normal2, 1) / f32(4)
dx = (g - (total(g, 1) / f32(4))[:, None] - normal2 * along[:, None]) * factor[:, None]
test("norm", "cuDNN backward", "__cudnn$norm", [four(x), four(scale), four(dy), stat(mean), stat(factor)],
     [four(dx), four(total(dy * normal2, 0)), four(total(dy, 0))], norm("LAYER_BWD"))
bits = int(np.array(eps, f32).view(np.int32))
test("norm", "oneDNN", "__onednn$layernorm", [A("f32", x), A("f32", scale), A("f32", shift)], [A("f32", y)],
     {"onednn_layer_norm_config": {"rescale": "SCALE_AND_SHIFT", "epsilon_typecast": bits}}, scratch=False)


def softmax(x, axis):
    """With the logarithm of the sum, for what is not -inf throughout."""
    top = x.max(axis, keepdims=True)
    e = each(mpmath.exp, x - top)
    s = total(e, axis)
    return e / np.expand_dims(s, axis), top.squeeze(axis) + each(mpmath.log, s)


test("norm", "oneDNN softmax", "__onednn$softmax", [A("f32", x)], [A("f32", softmax(x, 0)[0])], {"onednn_softmax_config": {"softmax_axis": 0}}, scratch=False)
refuse("norm", "no rescaling", "__onednn$layernorm", [A("f32", x), A("f32", scale), A("f32", shift)], "f32[3,4]", "with rescale SCALE", {"onednn_layer_norm_config": {"rescale": "SCALE"}})

# ---- attention: q, k, v are batch, head, sequence, feature
numbers = lambda l, r: {"lhs_contracting_dimensions": [l], "rhs_contracting_dimensions": [r], "lhs_batch_dimensions": ["0", "1"], "rhs_batch_dimensions": ["0", "1"]}
FWD = {"bmm1_dot_dimension_numbers": numbers("3", "3"), "bmm2_dot_dimension_numbers": numbers("3", "2")}
BWD = {"bmm1_grad_gemm1_dot_dimension_numbers": numbers("2", "2"), "bmm1_grad_gemm2_dot_dimension_numbers": numbers("3", "2"),
       "bmm2_grad_gemm1_dot_dimension_numbers": numbers("2", "2"), "bmm2_grad_gemm2_dot_dimension_numbers": numbers("3", "3")}
mha = lambda **more: {"cudnn_fmha_backend_config": {"fmha_scale": 0.5, "dropout_rate": 0, "mask_type": "NO_MASK", **more}}
q, k, v, do = (rng.standard_normal((2, 1, 3, 2)).astype(f32) for _ in range(4))
bias = rng.standard_normal((1, 1, 3, 3)).astype(f32)
turn = lambda t: t.swapaxes(-1, -2)
i, j = np.indices((3, 3))
qlen, klen = np.array([3, 2]), np.array([2, 3])
pads = (i < qlen[:, None, None, None]) & (j < klen[:, None, None, None])
true = np.ones((2, 1, 3, 3), bool)
for what, mask, more, extra in (("", true, {}, []), (", causal", true & (i >= j), {"mask_type": "CAUSAL"}, []),
                                (", causal within 2", true & (i >= j) & (j > i - 2), {"mask_type": "CAUSAL", "sliding_window_length": 2}, []),
                                (", of lengths", pads, {"mask_type": "PADDING"}, [A("s32", qlen), A("s32", klen)])):
    for has_bias in (False, True):
        s = dot(q, turn(k)) * f32(0.5)
        s = np.where(mask, s + bias if has_bias else s, f32(-np.inf))
        rows = mask.any(-1, keepdims=True)
        p, log = softmax(np.where(rows, s, f32(0)), -1)
        p = np.where(mask, p, f32(0))
        out = dot(p, v)
        target = "__cudnn$fmhaScaleBiasSoftmax" if has_bias else "__cudnn$fmhaSoftmax"
        first = [A("f32", q), A("f32", k), A("f32", v), *([A("f32", bias)] if has_bias else [])]
        what2 = what + (", biased" if has_bias else "")
        test("attention", "forward" + what2, target, first + extra, [A("f32", out)], mha(**FWD, **more))
        if extra:
            continue
        test("attention", "forward with logarithms" + what2, target, first, [A("f32", out), A("f32", log)], mha(**FWD, **more))
        p = np.where(mask, each(mpmath.exp, np.where(mask, s, f32(0)) - log[..., None]), f32(0))
        ds = p * (dot(do, turn(v)) - total(do * out, -1)[..., None])
        dp = ds * f32(0.5)
        results = [A("f32", dot(dp, k)), A("f32", dot(turn(dp), q)), A("f32", dot(turn(p), do))]
        args = [A("f32", q), A("f32", k), A("f32", v), A("f32", log), A("f32", do), *([A("f32", bias)] if has_bias else []), A("f32", out)]
        if has_bias:
            results.append(A("f32", total(ds, 0)[None]))
        test("attention", "backward" + what2, target + "Backward", args, results, mha(**BWD, **more))
refuse("attention", "dropout", "__cudnn$fmhaSoftmax", [A("f32", q), A("f32", k), A("f32", v)], "(f32[2,1,3,2], u8[0])", "with dropout", mha(**FWD, dropout_rate=0.1))

# ---- oneDNN
x, y = ints(2, 3, 4), ints(1, 4, 2)
xy = x @ y
mm = lambda **more: {"onednn_matmul_config": more}
test("onednn", "a product, one side repeated", "__onednn$matmul", [A("f32", x), A("f32", y)], [A("f32", xy)], mm(), scratch=False)
test("onednn", "both transposed", "__onednn$matmul", [A("f32", x.transpose(0, 2, 1)), A("f32", y.transpose(0, 2, 1))], [A("f32", xy)], mm(transpose_a=True, transpose_b=True), scratch=False)
axes = lambda *dims: {"tensor": {"dimensions": [str(d + 1) for d in dims]}}
test("onednn", "folded transposes", "__onednn$matmul", [A("f32", x.transpose(1, 0, 2)), A("f32", y)], [A("f32", xy.transpose(2, 0, 1))],
     mm(lhs=axes(1, 0, 2), result=axes(1, 2, 0)), scratch=False)
bias, more = ints(2), ints(2, 3, 2)
z = (xy + bias).astype(f32)
for ops, f in ((["BIAS"], lambda z: z), (["BIAS", "RELU"], lambda z: np.maximum(z, 0)), (["BIAS", "TANH"], lambda z: each(mpmath.tanh, z)), (["BIAS", "GELU_ERF"], gelu_erf),
               (["BIAS", "GELU_TANH"], gelu_tanh), (["BIAS", "ELU"], lambda z: np.where(z > 0, z, each(mpmath.expm1, z))), (["BIAS", "RELU6"], lambda z: np.clip(z, 0, 6)),
               (["BIAS", "SIGMOID"], lambda z: each(logistic, z)), (["BIAS", "SWISH"], lambda z: z * each(logistic, z)), (["BIAS", "LINEAR"], lambda z: z * f32(0.25))):
    test("onednn", " ".join(ops), "__onednn$matmul", [A("f32", x), A("f32", y), A("f32", bias)], [A("f32", f(z))], mm(fusions={"ops": ops, "alpha": [0.25]}), scratch=False)
test("onednn", "two addends, 16 bits, scratch", "__onednn$matmul", [A("bf16", x), A("bf16", y), A("bf16", bias), A("bf16", more)], [A("bf16", np.maximum(xy + bias, 0) + more)],
     mm(fusions={"ops": ["BIAS", "RELU", "BINARY_ADD"]}, optimization_config={"user_scratchpad": True}))
x, w = ints(1, 4, 4, 2), ints(3, 2, 2, 4)
y = conv(x, w, stride=(1, 2), pad=(1, 0))
layout = {"dims": "4", "feature_groups": "1", "input": {"data": {"batch_dim": "0", "feature_dim": "3", "spatial_dims": ["1", "2"]}},
          "kernel": {"filter": {"input_feature_dim": "2", "output_feature_dim": "3", "spatial_dims": ["0", "1"]}},
          "output": {"data": {"batch_dim": "0", "feature_dim": "3", "spatial_dims": ["1", "2"]}},
          "window": {"pad_left": ["1", "0"], "pad_right": ["1", "0"], "strides": ["1", "2"], "window_dilations": ["1", "1"]}}
test("onednn", "a convolution", "__onednn$convolution", [A("f32", x), A("f32", w)], [A("f32", y)], {"onednn_conv_config": layout}, scratch=False)
bias = ints(4)
test("onednn", "a convolution with bias", "__onednn$convolution", [A("f32", x), A("f32", w), A("f32", bias)], [A("f32", np.maximum(y + bias, 0))],
     {"onednn_conv_config": {**layout, "fusions": {"ops": ["BIAS", "RELU"]}}}, scratch=False)
refuse("onednn", "prepacked weights", "__onednn$matmul", [A("f32", x), A("f32", x)], "f32[1,4,4,4]", "prepacked", mm(optimization_config={"weights_prepacked": True}))

# ---- CUB
keys = np.array([[3, -0.0, 1], [float("nan"), 0, -2]], f32)
test("cub", "keys of floats", "xla.gpu.ext.cub_sort_unassigned_scratch_size", [A("f32", [[3, 2, 1], [float("nan"), 0, -2]])], [A("f32", [[1, 2, 3], [-2, 0, float("nan")]])], {"descending": False})
test("cub", "keys and values, equal zeros, descending", "xla.gpu.ext.cub_sort_pairs", [A("f32", [-0.0, 0.0, 5, 7]), A("u16", [1, 2, 3, 4])],
     [A("f32", [7, 5, -0.0, 0.0]), A("u16", [4, 3, 1, 2])], {"descending": True})
test("cub", "keys of integers", "xla.gpu.ext.cub_sort_keys", [A("u8", [200, 3, 100])], [A("u8", [3, 100, 200])], {"descending": False})
x = ints(2, 4, 3)
for reverse in (False, True):
    s = x[:, ::-1].cumsum(1)[:, ::-1] if reverse else x.cumsum(1)
    test("cub", "running sums" + (", from the end" if reverse else ""), "xla.gpu.ext.cub_scan", [A("f32", x)], [A("f32", s)],
         {"vector_length": 3, "row_length": 4, "column_length": 2, "kind": 1, "is_reverse": reverse})
refuse("cub", "another scan", "xla.gpu.ext.cub_scan", [A("f32", [1, 2])], "(f32[2], u8[1])", "of kind 0", {"row_length": 2})

# ---- run-time sizes
dyn = "s = f32[<=3,2] set-dimension-size(p0, p1), dimensions={0}\n"
test("dynamic", "PadToStatic", "PadToStatic", [A("f32", [[1, 2], [3, 4], [5, 6]]), A("s32", 2)], [A("f32", [[1, 2], [3, 4], [0, 0]]), A("s32", 2), A("s32", 2)],
     body=dyn + 'ROOT r = (f32[3,2], s32[], s32[]) custom-call(s), custom_call_target="PadToStatic"')
test("dynamic", "SliceToDynamic and PadToStatic", "SliceToDynamic", [A("f32", [[1, 2], [3, 4]]), A("s32", 1)], [A("f32", [[1, 2], [0, 0]]), A("s32", 1), A("s32", 2)],
     body='two = s32[] constant(2)\nd = f32[<=2,2] custom-call(p0, p1, two), custom_call_target="SliceToDynamic"\nROOT r = (f32[2,2], s32[], s32[]) custom-call(d), custom_call_target="PadToStatic"')
for size in (-1, 3):
    files["dynamic"].append(f'''// ==== a size of {size}
// test: interpret
HloModule t

ENTRY e {{
  p0 = f32[2] parameter(0)
  p1 = s32[] parameter(1)
  ROOT d = f32[<=2] custom-call(p0, p1), custom_call_target="SliceToDynamic"
}}
// run: e([1, 2], {size}) fails[R0005]: size {size} of dimension 0, whose bound is 2
''')

# ---- JAX and solvers: integers, or factors that are exact
M32 = (1 << 32) - 1


def threefry(k0, k1, x, y):
    keys = [k0, k1, k0 ^ k1 ^ 0x1BD11BDA]
    x, y = (x + k0) & M32, (y + k1) & M32
    for r in range(5):
        for d in ((13, 15, 26, 6), (17, 29, 16, 24))[r % 2]:
            x = (x + y) & M32
            y = ((y << d | y >> (32 - d)) & M32) ^ x
        x, y = (x + keys[(r + 1) % 3]) & M32, (y + keys[(r + 2) % 3] + r + 1) & M32
    return x, y


# The known answers of Random123.
assert threefry(0, 0, 0, 0) == (0x6B200159, 0x99BA4EFE) and threefry(M32, M32, M32, M32) == (0x1CB996FC, 0xBB002BE7)
words = [[0, M32, 0x13198A2E], [0, M32, 0x03707344], [0, M32, 0x243F6A88], [0, M32, 0x85A308D3]]
both = np.array([threefry(*column) for column in zip(*words)], np.uint32).T
test("jax", "threefry", "cu_threefry2x32_ffi", [A("u32", w) for w in words], [A("u32", both[0]), A("u32", both[1])], scratch=False)
test("jax", "pivots as a permutation", "cu_lu_pivots_to_permutation", [A("s32", [[2, 2], [0, 1]])], [A("s32", [[2, 0, 1], [0, 1, 2]])], scratch=False)
for condition in (True, False):
    end = "== 7" if condition else "fails[R0006]: the assertion does not hold"
    files["jax"].append(f"""// ==== an assertion, {str(condition).lower()}
// test: interpret
HloModule t

ENTRY e {{
  p0 = pred[] parameter(0)
  c = () custom-call(p0), custom_call_target="shape_assertion", custom_call_has_side_effect=true, api_version=API_VERSION_STATUS_RETURNING
  ROOT r = s32[] constant(7)
}}
// run: e({str(condition).lower()}) {end}
""")
test("jax", "a function under another name", "mhlo.erf", [A("f32", [0.5, -1])], [A("f32", each(mpmath.erf, np.array([0.5, -1])))], scratch=False)
a = np.array([[1, 2], [4, 6]])
test("solver", "LU", "cusolver_getrf_ffi", [A("f32", a)], [A("f32", [[4, 6], [0.25, 0.5]]), A("s32", [2, 2]), A("s32", 0)], scratch=False)
test("solver", "LuDecomposition", "LuDecomposition", [A("f32", a)], [A("f32", [[4, 6], [0.25, 0.5]]), A("s32", [1, 1]), A("s32", [1, 0])], scratch=False)
# A column (3, 4) is reflected to (-5, 0): tau = 1.6, v = (1, 0.5).
test("solver", "reflectors", "Qr", [A("f64", [[3.0], [4]])], [A("f64", [[-5.0], [0.5]]), A("f64", [1.6])], scratch=False)
test("solver", "their product", "ProductOfElementaryHouseholderReflectors", [A("f64", [[-5.0], [0.5]]), A("f64", [1.6])], [A("f64", [[1 - 1.6], [-0.8]])], scratch=False)
files["solver"].append("""// ==== Cholesky by cuSOLVER
// test: interpret
HloModule t

ENTRY e {
  a = f32[2,2] parameter(0)
  c = (f32[2,2], s32[]) custom-call(a), custom_call_target="cusolver_potrf_ffi", api_version=API_VERSION_TYPED_FFI, backend_config={lower = true}
  f = f32[2,2] get-tuple-element(c), index=0
  z = f32[] constant(0)
  l = f32[2,1] slice(f), slice={[0:2], [0:1]}
  d = f32[1,1] slice(f), slice={[1:2], [1:2]}
  i = s32[] get-tuple-element(c), index=1
  ROOT r = (f32[2,1], f32[1,1], s32[]) tuple(l, d, i)
}
// run: e([[4, 2], [2, 10]]) == [[2], [1]], [[3]], 0
""")
for target, config, info in (("cusolver_syevd_ffi", "{algorithm = 0 : ui8, lower = true}", ", s32[]"), ("Eigh", '"1,1,100,1e-6"', "")):
    files["solver"].append(f"""// ==== eigenvalues, {target}
// test: interpret
HloModule t

ENTRY e {{
  a = f32[2,2] parameter(0)
  c = (f32[2,2], f32[2]{info}) custom-call(a), custom_call_target="{target}", backend_config={config}
  ROOT w = f32[2] get-tuple-element(c), index=1
}}
// run: e([[2, 1], [1, 2]]) == [1, 3]
""")
refuse("solver", "another type", "cusolver_getrf_ffi", [A("f16", a)], "(f16[2,2], s32[2], s32[])", "of f16")

# ---- AWS Neuron
x = np.array([[-3, -0.5, 0], [0.25, 1, 4]], f32)
erf32 = lambda v: each(mpmath.erf, v * f32(np.sqrt(0.5)))


def gelu_slope(x):
    density = each(mpmath.exp, x * x * f32(-0.5)) * f32(1 / math.sqrt(2 * math.pi))
    return (erf32(x) + f32(1)) * f32(0.5) + x * density


def silu_slope(x):
    gate = each(logistic, x)
    return gate * (x * (f32(1) - gate) + f32(1))


for target, f in (("AwsNeuronErf", lambda x: each(mpmath.erf, x)), ("AwsNeuronGelu", gelu_erf), ("AwsNeuronGeluApprxTanh", gelu_tanh), ("AwsNeuronGeluBackward", gelu_slope),
                  ("AwsNeuronSilu", lambda x: x * each(logistic, x)), ("AwsNeuronSiluBackward", silu_slope)):
    test("neuron", target, target, [A("f32", x)], [A("f32", f(x))], scratch=False, attrs="", body=None)
    test("neuron", f"{target} of bf16", target, [A("bf16", x)], [A("bf16", f(A("bf16", x).v.astype(f32)))], scratch=False)
total = lambda x, axis: np.apply_along_axis(lambda v: f32(math.fsum(map(float, v))), axis, x)[(slice(None),) * axis + (None,)]


def softmax_of(x, axis):
    powers = each(mpmath.exp, x - x.max(axis, keepdims=True))
    return powers / total(powers, axis)


for axis in (0, 1):
    y, dy = softmax_of(x, axis), f32(x * 2 + 1)
    test("neuron", f"AwsNeuronSoftmax along {axis}", "AwsNeuronSoftmax", [A("f32", x)], [A("f32", y)], config=str(axis), scratch=False)
    test("neuron", f"AwsNeuronSoftmaxBackward along {axis}", "AwsNeuronSoftmaxBackward", [A("f32", dy), A("f32", y)], [A("f32", y * (dy - total(dy * y, axis)))], config=str(axis), scratch=False)
    # Squares whose mean and epsilon make a square: factors are exact.
    v = np.array([[1, 7], [5, 5]], f32) if axis else np.array([[1, 5], [7, 5]], f32)
    weight = np.array([2, -4], f32)
    spread = weight if axis else weight[:, None]
    factor = f32(1) / np.sqrt(total(v * v, axis) / f32(2) + f32(11))
    test("neuron", f"AwsNeuronRmsNorm along {axis}", "AwsNeuronRmsNorm", [A("f32", v), A("f32", weight), A("f32", 11)], [A("f32", v * factor * spread)], config=str(axis), scratch=False)
ties = np.array([[3, 3, 1], [0, 2, 2]])
for target, f in (("AwsNeuronArgMax", np.argmax), ("AwsNeuronArgMin", np.argmin)):
    for axis in (0, 1):
        test("neuron", f"{target} along {axis}", target, [A("s32", ties)], [A("s64", f(ties, axis))], config=str(axis), scratch=False)
    # As torch has it, and numpy: the first NaN.
    nans = np.array([1, np.nan, 5, np.nan, -5])
    test("neuron", f"{target} of NaNs", target, [A("f32", nans)], [A("u32", f(nans))], config="0", scratch=False)
test("neuron", "AwsNeuronTopK", "AwsNeuronTopK", [A("f32", [[1, 4, 4, 2]])], [A("f32", [[4, 4, 2]]), A("u32", [[1, 2, 3]])], config="3", scratch=False)
pixels = np.arange(1, 9).reshape(1, 2, 2, 2)
large = pixels.repeat(2, 1).repeat(3, 2)
test("neuron", "ResizeNearest", "ResizeNearest", [A("f32", pixels)], [A("f32", large)], config='"00"', scratch=False)
test("neuron", "ResizeNearestGrad", "ResizeNearestGrad", [A("f32", large)], [A("f32", pixels * 6)], config='"00"', scratch=False)
for target in ("AwsNeuronTransferWithStaticRing", "AwsNeuronModuleMarkerStart-Forward", "AwsNeuronModuleMarkerEnd-Backward", "NeuronBoundaryMarker-Start"):
    test("neuron", target, target, [A("f32", [1, 2])], [A("f32", [1, 2])], scratch=False)
refuse("neuron", "what nobody has defined", "AwsNeuronDropout", [A("f32", [1, 2])], "f32[2]", '"AwsNeuronDropout" (no such target is known)')
refuse("neuron", "a dimension that there is not", "AwsNeuronSoftmax", [A("f32", [1, 2])], "f32[2]", "of dimension 1, for an operand of rank 1", config='"1"')
refuse("neuron", "a gradient in two operands", "AwsNeuronSiluBackward", [A("f32", [1, 2]), A("f32", [1, 2])], "f32[2]", "with 2 operands")

# ---- annotations and what nobody has written yet
one = A("f32", [1, 2])
for target in ("ShardBarrierFrom", "ShardBarrierTo", "AssumeGatherIndicesInBound", "LayoutConstraint", "MoveToHost"):
    test("annotation", target, target, [one], [one], scratch=False)
test("annotation", "SetBound", "SetBound", [one], [one], attrs="", scratch=False, body='ROOT r = f32[2] custom-call(p0), custom_call_target="SetBound", literal=s32[] 1')
test("annotation", "a marker of one operand", "", [one], [one], body='m = (f32[2]) custom-call(p0), custom_call_target="__xla_internal_call_marker_before", custom_call_has_side_effect=true\nROOT r = f32[2] get-tuple-element(m), index=0')
test("annotation", "a buffer", "", [one], [one], body='b = b(f32[2]) custom-call(p0), custom_call_target="Pin", output_to_operand_aliasing={{}: (0, {})}, api_version=API_VERSION_TYPED_FFI\n'
     'ROOT r = f32[2] custom-call(b), custom_call_target="Unpin", output_to_operand_aliasing={{}: (0, {})}, api_version=API_VERSION_TYPED_FFI')
test("annotation", "room is zeros", "", [], [A("f32", [0, 0])], body='ROOT r = f32[2] custom-call(), custom_call_target="AllocateBuffer"')
test("annotation", "a computation on the host", "", [one], [A("f32", [-1, -2])], before="host {\n  a = f32[2] parameter(0)\n  ROOT n = f32[2] negate(a)\n}",
     body='ROOT r = f32[2] custom-call(p0), custom_call_target="HostExecute", called_computations={host}')
refuse("annotation", "unknown targets are named", "no_such_call", [one], "f32[2]", '"no_such_call" (no such target is known)')

os.makedirs(HERE, exist_ok=True)
for name, chunks in files.items():
    with open(os.path.join(HERE, f"{name}.hlo"), "w") as f:
        f.write("\n".join(chunks))
print(f"{len(files)} families, {sum(map(len, files.values()))} programs")
