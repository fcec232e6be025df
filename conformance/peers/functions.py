#!/usr/bin/env python3
"""How far the elementary functions of other compilers are from the correctly rounded result, in ulp (docs/functions.md).

    pip install "jax[cpu]" torch iree-base-compiler iree-base-runtime      # those that --peer names, and numpy, ml_dtypes
    functions.py --hlo target/release/hlo --peer xla-cpu --function tanh --type f32
    functions.py --hlo target/release/hlo --peer pytorch --peer iree --markdown       all functions and types, as tables

The reference is the interpreter, whose elementary functions are correctly rounded. f16 and bf16 are measured on every operand; f32
and f64 on operands that cover every exponent, dense around zeros, poles, thresholds and multiples of pi/2; and around the worst operands
that were found, once more. Real results differ by a count of representable numbers, complex ones by the error's modulus over the ulp of the result's modulus.

Counted apart, and not in the ulp figures: operands and results that are denormal (whether a peer flushes them is another liberty), and results that no budget
of ulp covers: a NaN, an infinity or a zero where the reference has another value.

A peer has two ways to compute an element, `array` (vectorized kernels) and `scalar` (arrays of one element, remainders of loops,
strided operands): both are measured. Results are deterministic: operands depend on the function's name alone.
"""
import argparse
import collections
import json
import math
import os
import subprocess
import sys
import tempfile
import zlib

import ml_dtypes
import numpy as np

DTYPES = {
    "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "f32": np.dtype(np.float32), "f64": np.dtype(np.float64),
    "c64": np.dtype(np.complex64), "c128": np.dtype(np.complex128),
}
PART = {"c64": "f32", "c128": "f64"}
# Bits of the significand, the implied one included, and the exponent of the least normal number.
PRECISION = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
MIN_EXPONENT = {"f16": -14, "bf16": -126, "f32": -126, "f64": -1022}
MAX_EXPONENT = {"f16": 15, "bf16": 127, "f32": 127, "f64": 1023}

UNARY = (
    "acos acosh asin asinh atanh cbrt cosine cosh erf exponential exponential-minus-one log log-plus-one logistic rsqrt sine sinh sqrt tan tanh"
).split()
BINARY = ["atan2", "divide", "power"]
REAL_ONLY = {"erf"}
PERIODIC = {"sine", "cosine", "tan"}

# Where an implementation changes from one formula to another, or where the function has a zero, a pole or its largest finite value.
POINTS = [0.5, 0.625, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, math.e, math.log(2), math.sqrt(2), math.sqrt(0.5)]
THRESHOLDS = {
    "exponential": [88.3762626647949, 88.72283905206835, 87.3365447505531, 103.97208, 709.782712893384, 708.3964185322641, 745.13],
    "exponential-minus-one": [88.72283905206835, 17.328679, 36.7368, 709.782712893384, 0.34657359, 1.0986123],
    "sinh": [89.41598629223294, 88.72283905206835, 710.4758600739439, 709.782712893384],
    "cosh": [89.41598629223294, 88.72283905206835, 710.4758600739439, 709.782712893384],
    "logistic": [88.72283905206835, 87.3365447505531, 16.635532, 709.782712893384, 708.3964185322641, 36.04365338911715],
    "tanh": [0.0004, 7.90531110763549, 7.99881172180175781, 9.010913, 9.0, 19.0615, 22.0, 0.2, 0.34657359],
    "erf": [0.84375, 1.25, 1 / 0.35, 3.832506856900711, 3.92, 4.0, 5.863584748755, 6.0],
    "log-plus-one": [0.41421356, 0.29289322, 0.99999],
    "atanh": [0.33333333, 0.9, 0.999, 1e-4],
    "asinh": [1e-4, 2.0**28, 2.0**12, 1e9],
    "acosh": [2.0**28, 2.0**12, 1.0001],
}


def part_type(ty):
    return PART.get(ty, ty)


def integer_type(ty):
    return np.dtype(f"u{DTYPES[ty].itemsize}")


def bits_of(values, ty):
    return values.view(integer_type(ty))


def from_bits(bits, ty):
    return bits.astype(integer_type(ty)).view(DTYPES[ty])


def neighbors(rng, values, ty, per_value, log2_distance):
    """Numbers within 2^log2_distance representable numbers of each value, more of them close by."""
    bits = bits_of(np.asarray(values).astype(DTYPES[ty]), ty).astype(np.int64)
    distance = np.floor(2.0 ** (rng.random((len(bits), per_value)) * log2_distance)).astype(np.int64) * rng.choice([-1, 1], (len(bits), per_value))
    distance[:, : min(64, per_value)] = np.arange(-32, 32)[:per_value]
    moved = bits[:, None] + distance
    if DTYPES[ty].itemsize < 8:
        moved %= 1 << (8 * DTYPES[ty].itemsize)
    return from_bits(moved.view(np.uint64).ravel(), ty)


def any_exponent(rng, count, ty):
    """Every sign and exponent equally often, denormals, infinities and NaN included."""
    return from_bits(rng.integers(0, 2 ** (8 * DTYPES[ty].itemsize), count, dtype=integer_type(ty)), ty)


def log_uniform(rng, count, low, high):
    """Of either sign, with exponents from `low` to `high`."""
    return np.ldexp(1 + rng.random(count), rng.integers(low, high, count)) * rng.choice([-1.0, 1.0], count)


def specials(ty):
    info = ml_dtypes.finfo(DTYPES[ty])
    numbers = [0.0, 1.0, 2.0, 3.0, 0.5, float(info.max), float(info.tiny), float(info.smallest_subnormal), math.inf, math.nan]
    return np.array(numbers + [-x for x in numbers]).astype(DTYPES[ty])


def real_operands(function, ty, count):
    if ty in ("f16", "bf16"):
        return [from_bits(np.arange(65536, dtype=np.uint16), ty)]
    rng = np.random.default_rng(zlib.crc32(function.encode()))
    points = np.array(POINTS + THRESHOLDS.get(function, []))
    multiples = np.arange(1, 257) * (math.pi / 2)
    groups = [specials(ty), any_exponent(rng, count // 2, ty)]
    groups.append(neighbors(rng, np.concatenate([points, -points]), ty, max(64, count // 8 // (2 * len(points))), PRECISION[ty] - 2))
    if function in PERIODIC:
        groups.append(neighbors(rng, np.concatenate([multiples, -multiples]), ty, max(64, count // 8 // 512), PRECISION[ty] - 8))
        groups.append(((rng.random(count // 8) * 2 - 1) * 8192).astype(DTYPES[ty]))
    for scale in (1, 10, 100, 800):
        groups.append(((rng.random(count // 16) * 2 - 1) * scale).astype(DTYPES[ty]))
    return [np.concatenate(groups)]


def pair_operands(function, ty, count):
    """Operands of a binary function. Half of the pairs have a result in range."""
    rng = np.random.default_rng(zlib.crc32(function.encode()))
    low, high = MIN_EXPONENT[ty], MAX_EXPONENT[ty]
    every = np.repeat(specials(ty), len(specials(ty))), np.tile(specials(ty), len(specials(ty)))
    pairs = [every, (any_exponent(rng, count // 8, ty), any_exponent(rng, count // 8, ty))]
    n = count // 2
    x = log_uniform(rng, n, low, high)
    if function == "power":
        x[: n * 3 // 4] = np.abs(x[: n * 3 // 4])
        near_one = slice(n // 4, n // 2)
        x[near_one] = 1 + log_uniform(rng, near_one.stop - near_one.start, 2 - PRECISION[ty], -1)
        with np.errstate(all="ignore"):
            y = rng.uniform(low, high, n) / np.log2(np.abs(x))
        y[n * 3 // 4 :] = np.rint(y[n * 3 // 4 :])
    else:
        y = np.ldexp(x * rng.uniform(0.5, 2, n), np.clip(rng.integers(-40, 40, n), -high, high)) * rng.choice([-1.0, 1.0], n)
    m = count // 4
    gentle = [rng.uniform(-4, 4, m), rng.uniform(-4, 4, m)]
    if function == "power":
        gentle = [rng.uniform(0, 4, m), np.where(rng.random(m) < 0.25, rng.integers(-8, 9, m), rng.uniform(-16, 16, m))]
    with np.errstate(all="ignore"):
        pairs += [tuple(v.astype(DTYPES[ty]) for v in (x, y)), tuple(v.astype(DTYPES[ty]) for v in gentle)]
    return [np.concatenate(side) for side in zip(*pairs)]


def complex_numbers(rng, ty, count):
    """Parts of moderate and of any exponent, on the axes, and near the branch points and zeros: 0, 1, -1, i, -i."""
    part = DTYPES[part_type(ty)]
    moderate = log_uniform(rng, count // 2, -20, 20).astype(part), log_uniform(rng, count // 2, -20, 20).astype(part)
    anywhere = any_exponent(rng, count // 8, part_type(ty)), any_exponent(rng, count // 8, part_type(ty))
    axis = log_uniform(rng, count // 16, -20, 20).astype(part)
    near = log_uniform(rng, count // 16, 2 - PRECISION[part_type(ty)], -1)
    center = rng.choice([1, -1, 1j, -1j], count // 16) + near * np.exp(2j * np.pi * rng.random(count // 16))
    uniform = rng.uniform(-4, 4, count // 8).astype(part), rng.uniform(-4, 4, count // 8).astype(part)
    zero = np.zeros_like(axis)
    special = specials(part_type(ty))
    groups = [moderate, anywhere, (axis, zero), (zero, axis), (center.real.astype(part), center.imag.astype(part)), uniform,
              (np.repeat(special, len(special)), np.tile(special, len(special)))]
    value = np.empty(sum(len(g[0]) for g in groups), DTYPES[ty])
    value.real, value.imag = (np.concatenate(side) for side in zip(*groups))
    return value


def operands(function, ty, count):
    if ty in PART:
        rng = np.random.default_rng(zlib.crc32(function.encode()))
        first = complex_numbers(rng, ty, count)
        if function not in BINARY:
            return [first]
        second = complex_numbers(rng, ty, count)
        if function == "power":  # results in range
            half = len(second) // 2
            second[:half] = (rng.uniform(-4, 4, half) + 1j * rng.uniform(-4, 4, half)).astype(DTYPES[ty])
        return [rng.permutation(first), second]
    return pair_operands(function, ty, count) if function in BINARY else real_operands(function, ty, count)


# ---- Engines --------------------------------------------------------------------------------------------------------


def to_file(array):
    return array.view(np.uint16) if array.dtype == DTYPES["bf16"] else array


def hlo_text(function, ty, counts, scalar):
    """One instruction over the whole array; or a loop over its elements, each a program's scalar."""
    n, names = counts, ["a", "b"][: 2 if function in BINARY else 1]
    if not scalar:
        parameters = "".join(f"  {x} = {ty}[{n}] parameter({i})\n" for i, x in enumerate(names))
        return f"HloModule {function}\n\nENTRY e {{\n{parameters}  ROOT r = {ty}[{n}] {function}({', '.join(names)})\n}}\n"
    arrays = ", ".join([f"{ty}[{n}]"] * (len(names) + 1))
    state = f"(s32[], {arrays})"
    body = "".join(
        f"  {x} = {ty}[{n}] get-tuple-element(s), index={i + 1}\n  {x}1 = {ty}[1] dynamic-slice({x}, i), dynamic_slice_sizes={{1}}\n"
        f"  {x}0 = {ty}[] reshape({x}1)\n"
        for i, x in enumerate(names)
    )
    return f"""HloModule {function}

body {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
{body}  o = {ty}[{n}] get-tuple-element(s), index={len(names) + 1}
  r = {ty}[] {function}({", ".join(x + "0" for x in names)})
  r1 = {ty}[1] reshape(r)
  u = {ty}[{n}] dynamic-update-slice(o, r1, i)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = {state} tuple(j, {", ".join(names)}, u)
}}

condition {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({n})
  ROOT c = pred[] compare(i, n), direction=LT
}}

ENTRY e {{
{"".join(f"  {x} = {ty}[{n}] parameter({i})" + chr(10) for i, x in enumerate(names))}  zero = s32[] constant(0)
  f = {ty}[] constant({"(0, 0)" if ty in PART else "0"})
  o = {ty}[{n}] broadcast(f), dimensions={{}}
  s = {state} tuple(zero, {", ".join(names)}, o)
  w = {state} while(s), condition=condition, body=body
  ROOT r = {ty}[{n}] get-tuple-element(w), index={len(names) + 1}
}}
"""


class Unsupported(Exception):
    pass


class Reference:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def run(self, function, ty, values):
        module, inputs, output = (os.path.join(self.folder, f"reference{end}") for end in (".hlo", ".in.npz", ".out.npz"))
        with open(module, "w") as file:
            file.write(hlo_text(function, ty, len(values[0]), False))
        np.savez(inputs, **{f"arg{i}": to_file(v) for i, v in enumerate(values)})
        command = [self.program, "run", module, "--platform", "interpreter", "--inputs", inputs, "--output", output, "-q"]
        ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=500)
        if ended.returncode:
            raise Unsupported(f"reference: {ended.stderr.strip().splitlines()[0] if ended.stderr.strip() else ended.returncode}")
        with np.load(output) as arrays:
            return arrays["out0"].view(DTYPES[ty])


class XlaCpu:
    """XLA:CPU with its default flags, through xla_cpu.py beside this file. Where the compiler refuses an opcode in HLO text, what JAX lowers the function to."""

    JAX = {"acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atanh": "atanh", "cosh": "cosh", "sinh": "sinh", "erf": "erf", "tan": "tan", "cbrt": "cbrt"}

    def __init__(self, folder):
        self.folder, self.server = folder, None

    def version(self):
        import importlib.metadata as m

        return f"jaxlib {m.version('jaxlib')}"

    def serve(self, job):
        if self.server is None or self.server.poll() is not None:
            script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "xla_cpu.py")
            code = f"import sys, runpy; sys.argv = [{script!r}]; runpy.run_path({script!r}, run_name='__main__')"
            self.server = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.server.stdin.write(json.dumps(job) + "\n")
        self.server.stdin.flush()
        answer = self.server.stdout.readline()
        if not answer:
            raise Unsupported("the process died")
        return json.loads(answer)

    def run(self, function, ty, values, scalar):
        module, inputs, output = (os.path.join(self.folder, f"xla{end}") for end in (".hlo", ".in.npz", ".out.npz"))
        with open(module, "w") as file:
            file.write(hlo_text(function, ty, len(values[0]), scalar))
        np.savez(inputs, **{f"arg{i}": to_file(v) for i, v in enumerate(values)})
        answer = self.serve({"module": module, "inputs": inputs, "output": output})
        if answer.get("ok"):
            with np.load(output) as arrays:
                return arrays["out0"].view(DTYPES[ty]), ""
        if function not in self.JAX:
            raise Unsupported(answer["error"])
        return self.lax(function, values, scalar), "as JAX lowers it"

    def lax(self, function, values, scalar):
        os.environ["JAX_PLATFORMS"] = "cpu"
        import jax

        jax.config.update("jax_enable_x64", True)
        apply = getattr(jax.lax, self.JAX[function])
        if scalar:
            return np.asarray(jax.jit(lambda *v: jax.lax.map(lambda x: apply(*x), v))(*values))
        return np.asarray(jax.jit(apply)(*values))


class PyTorch:
    """PyTorch on CPU, eager. Contiguous operands take vectorized kernels, strided ones scalar code."""

    NAMES = {
        "cosine": "cos", "exponential": "exp", "exponential-minus-one": "expm1", "log-plus-one": "log1p", "logistic": "sigmoid",
        "sine": "sin", "divide": "true_divide", "power": "pow", "cbrt": None,
    }

    def __init__(self, _folder):
        pass

    def version(self):
        import torch

        return f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"

    def run(self, function, ty, values, scalar):
        import torch

        torch.set_num_threads(1)
        name = self.NAMES.get(function, function)
        if name is None:
            raise Unsupported("no such function")

        def tensor(v):
            t = torch.from_numpy(np.ascontiguousarray(v.view(np.int16) if ty == "bf16" else v))
            t = t.view(torch.bfloat16) if ty == "bf16" else t
            return torch.stack([t, t], 1)[:, 0] if scalar else t

        try:
            result = getattr(torch, name)(*map(tensor, values))
        except (RuntimeError, NotImplementedError) as e:
            raise Unsupported(str(e).splitlines()[0])
        result = result.contiguous()
        return (result.view(torch.int16).numpy() if ty == "bf16" else result.numpy()).view(DTYPES[ty]), ""


class Iree:
    """IREE, llvm-cpu, local-sync, for the host's processor."""

    CHLO = {"acos", "acosh", "asin", "asinh", "atanh", "cosh", "sinh", "erf"}
    NAMES = {"exponential-minus-one": "exponential_minus_one", "log-plus-one": "log_plus_one"}
    TYPES = {"c64": "complex<f32>", "c128": "complex<f64>"}
    SCALAR = 4096  # calls of a program over one element

    def __init__(self, _folder):
        self.programs = {}

    def version(self):
        import importlib.metadata as m

        return f"iree-base-compiler {m.version('iree-base-compiler')}"

    def compile(self, function, ty, n):
        from iree import compiler, runtime

        element = self.TYPES.get(ty, ty)
        tensor = f"tensor<{n}x{element}>"
        outer = f"tensor<{n}xi16>" if ty == "bf16" else tensor
        names = ["%a", "%b"][: 2 if function in BINARY else 1]
        operation = f"chlo.{function}" if function in self.CHLO else f"stablehlo.{self.NAMES.get(function, function)}"
        if function in self.CHLO:
            kind = f"{tensor} -> {tensor}"
        else:
            kind = tensor
        lines = [f"func.func @main({', '.join(f'{x}: {outer}' for x in names)}) -> {outer} {{"]
        used = names
        if ty == "bf16":
            used = [x + "0" for x in names]
            lines += [f"  {x}0 = stablehlo.bitcast_convert {x} : ({outer}) -> {tensor}" for x in names]
        lines.append(f"  %r = {operation} {', '.join(used)} : {kind}")
        if ty == "bf16":
            lines.append(f"  %o = stablehlo.bitcast_convert %r : ({tensor}) -> {outer}")
        lines.append(f"  return {'%o' if ty == 'bf16' else '%r'} : {outer}\n}}")
        try:
            binary = compiler.compile_str(
                "\n".join(lines), target_backends=["llvm-cpu"], input_type="stablehlo",
                extra_args=["--iree-llvmcpu-target-cpu=host", "--iree-input-demote-f64-to-f32=false"],
            )
        except compiler.CompilerToolError as e:
            reasons = [line for line in str(e).splitlines() if "error:" in line]
            raise Unsupported((reasons or ["does not compile"])[0].split("error:")[-1].strip()[:120])
        config = runtime.Config("local-sync")
        context = runtime.SystemContext(config=config)
        context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, binary))
        return context.modules.module.main

    def run(self, function, ty, values, scalar):
        values = [v.view(np.int16) if ty == "bf16" else v for v in values]
        n = 1 if scalar else len(values[0])
        key = function, ty, n
        if key not in self.programs:
            self.programs[key] = self.compile(*key)
        main = self.programs[key]
        if scalar:
            result = np.concatenate([np.asarray(main(*(v[i : i + 1] for v in values)).to_host()) for i in range(len(values[0]))])
        else:
            result = np.asarray(main(*values).to_host())
        return result.view(DTYPES[ty]), ""


PEERS = {"xla-cpu": XlaCpu, "pytorch": PyTorch, "iree": Iree}
SCALARS = {"xla-cpu": 1 << 17, "pytorch": 1 << 24, "iree": Iree.SCALAR}

# ---- Comparison -----------------------------------------------------------------------------------------------------


def ordinal(values, ty):
    """Representable numbers counted from 0."""
    bits = bits_of(values, ty).astype(np.int64)
    sign = np.int64(1) << (8 * DTYPES[ty].itemsize - 1) if DTYPES[ty].itemsize < 8 else None
    if sign is None:
        magnitude = bits & np.int64(2**63 - 1)
        return np.where(bits < 0, -magnitude, magnitude)
    magnitude = bits & (sign - 1)
    return np.where(bits & sign, -magnitude, magnitude)


def is_denormal(values, ty):
    if ty in PART:
        return is_denormal(values.real, PART[ty]) | is_denormal(values.imag, PART[ty])
    wide = np.abs(np.asarray(values, np.float64))
    return (wide != 0) & (wide < 2.0 ** MIN_EXPONENT[ty])


def condition(reference, function, ty, values, expected):
    """Condition numbers of complex functions, |z f'(z) / f(z)|, the larger of two operands', from a difference quotient of the reference's."""
    step = 2.0 ** -(PRECISION[PART[ty]] // 2)
    wide = expected.astype(np.complex128)
    numbers = np.zeros(len(wide))
    for k in range(len(values)):
        moved = [(v * (1 + step)).astype(v.dtype) if i == k else v for i, v in enumerate(values)]
        change = np.abs(reference.run(function, ty, moved).astype(np.complex128) - wide) / np.abs(wide)
        numbers = np.fmax(numbers, change / step)
    return numbers


WELL_CONDITIONED = 8


def region(function, ty, values, conditions):
    """Parts of the operands' range that have figures of their own: names, and the number of each element's. Complex operands with a part
    other than 0 and 2^-20 to 2^20 in magnitude are `extreme`; where the others' condition number is over 8 the function has a zero, a pole, or turns fast."""
    if ty in PART:
        ordinary = np.ones(len(values[0]), bool)
        for v in values:
            for part in (v.real, v.imag):
                magnitude = np.abs(part.astype(np.float64))
                ordinary &= (magnitude == 0) | ((magnitude >= 2.0**-20) & (magnitude <= 2.0**20))
        return ["well-conditioned", "ill-conditioned", "extreme"], np.where(~ordinary, 2, np.where(conditions <= WELL_CONDITIONED, 0, 1))
    x = np.abs(values[0].astype(np.float64))
    if function in PERIODIC:
        return ["|x| <= 2^13", "|x| > 2^13"], np.where(x <= 8192, 0, 1)
    return ["all"], np.zeros(len(x), int)


def distances(expected, actual, ty):
    """Distance in ulp; what no ulp covers is a class of its own."""
    if ty in PART:
        wide = np.complex128 if ty == "c64" else np.clongdouble
        finite = np.isfinite(expected)
        special = np.full(len(expected), "", object)
        special[finite & ~np.isfinite(actual)] = "finite became infinite or NaN"
        special[~finite & np.isfinite(actual)] = "infinite or NaN became finite"
        with np.errstate(all="ignore"):
            modulus = np.abs(expected.astype(wide))
            _, exponent = np.frexp(modulus)
            # Of a modulus below the least normal number the ulp is that of denormals.
            unit = np.ldexp(modulus.dtype.type(1), np.maximum(exponent - 1, MIN_EXPONENT[PART[ty]]) - (PRECISION[PART[ty]] - 1))
            error = np.abs(actual.astype(wide) - expected.astype(wide)) / unit
        special[(modulus == 0) & (actual != 0)] = "0 became another"
        mirrored = [np.conj(actual), -actual, -np.conj(actual)]
        other_side = np.min([np.abs(m.astype(wide) - expected.astype(wide)) for m in mirrored], 0) / unit
        special[(special == "") & (error > 1024) & (other_side <= LARGE_ULP)] = "other side of a branch cut"
        error = np.where((special != "") | ~finite, 0, error)
        return error.astype(np.float64), special, is_result_denormal(modulus, ty)
    e, a = expected.astype(np.float64), actual.astype(np.float64)
    special = np.full(len(e), "", object)
    special[np.isnan(e) & ~np.isnan(a)] = "NaN became a number"
    special[~np.isnan(e) & np.isnan(a)] = "a number became NaN"
    special[np.isfinite(e) & np.isinf(a)] = "finite became infinite"
    special[np.isinf(e) & np.isfinite(a)] = "infinite became finite"
    special[np.isinf(e) & np.isinf(a) & (e != a)] = "infinity of the other sign"
    special[(e == 0) & np.isfinite(a) & (a != 0)] = "0 became another"
    special[(e == 0) & (a == 0) & (np.signbit(e) != np.signbit(a))] = "zero of the other sign"
    denormal = is_denormal(expected, ty)
    special[np.isfinite(e) & (e != 0) & (a == 0) & ~denormal] = "a normal number became 0"
    error = np.abs(ordinal(actual, ty) - ordinal(expected, ty)).astype(np.float64)
    return np.where((special != "") | np.isnan(e), 0, error), special, denormal


def is_result_denormal(modulus, ty):
    return (modulus != 0) & (modulus < 2.0 ** MIN_EXPONENT[PART[ty]])


def show(values, i):
    def one(x):
        if np.iscomplexobj(x):
            return f"{one(x.real)}{'' if str(one(x.imag)).startswith('-') else '+'}{one(x.imag)}i"
        if not np.isfinite(x):
            return str(float(x))
        text = float(x).hex()
        short = repr(float(str(x)))
        mantissa, power = text.split("p")
        return short if len(short) <= 12 else f"{mantissa.rstrip('0').rstrip('.')}p{power}"

    return ", ".join(one(v[i]) for v in values)


LARGE_ULP = 16


def large(values, error, finite):
    """Where errors are large: the share of elements beyond LARGE_ULP, and the range of their operands' magnitudes."""
    beyond = finite & (error > LARGE_ULP)
    if not beyond.any():
        return None
    ranges = [[float(m.min()), float(m.max())] for m in (np.abs(v[beyond].astype(np.complex128)) for v in values)]
    return dict(share=float(beyond.sum() / finite.sum()), magnitudes=ranges)


def measure(function, ty, peer, path, values, expected, actual, conditions):
    """Rows: a dictionary for each region."""
    names, number = region(function, ty, values, conditions)
    error, special, denormal_result = distances(expected, actual, ty)
    denormal_operand = np.any([is_denormal(v, ty) for v in values], 0)
    excluded = denormal_operand | denormal_result
    rows = []
    for k, name in enumerate(names):
        here = (number == k) & ~excluded & (special == "")
        finite = here & np.isfinite(np.abs(expected.astype(np.complex128))) if ty in PART else here & np.isfinite(expected.astype(np.float64))
        if not finite.any():
            continue
        worst = int(np.argmax(np.where(finite, error, -1)))
        kinds = collections.OrderedDict()
        for kind in sorted(set(special[(number == k) & ~excluded]) - {""}):
            which = np.flatnonzero((special == kind) & (number == k) & ~excluded)
            kinds[kind] = (len(which), [show(values, i) for i in which[:: max(1, len(which) // 4)][:4]], show([expected], which[0]), show([actual], which[0]))
        rows.append(dict(
            peer=peer, function=function, type=ty, path=path, region=name, max_ulp=float(error[worst]), at=show(values, worst),
            expected=show([expected], worst), actual=show([actual], worst), above_1=float((error[finite] > 1).mean()), elements=int(finite.sum()), special=kinds, large=large(values, error, finite),
        ))
    flush = {}
    tiny = denormal_result & ~denormal_operand & (special == "") if ty in PART else denormal_result & ~denormal_operand
    if tiny.any():
        flush["results"] = float((actual[tiny] == 0).mean())
        kept = tiny & (actual != 0)
        flush["results_ulp"] = float(error[kept].max()) if kept.any() else 0.0
    if denormal_operand.any() and ty not in PART:
        one = denormal_operand
        flush["operands_differ"] = float((error[one] > 4).mean() + (special[one] != "").mean())
    if rows:
        rows[0]["flush"] = flush
    return rows, np.where(excluded | (special != ""), -1, error)


def refine(function, ty, values, error, count):
    """Operands around the worst ones."""
    if ty in ("f16", "bf16") and function not in BINARY:
        return None
    worst = np.argsort(error)[::-1][:64]
    worst = worst[error[worst] > 0]
    if not len(worst):
        return None
    rng = np.random.default_rng(1)
    per = max(64, count // 8 // len(worst))
    moved = []
    for v in values:
        if ty in PART:
            parts = [neighbors(rng, p[worst], PART[ty], per, PRECISION[PART[ty]] - 6) for p in (v.real, v.imag)]
            z = np.empty(len(parts[0]), DTYPES[ty])
            z.real, z.imag = parts[0], rng.permutation(parts[1].reshape(len(worst), per), axis=1).ravel()
            moved.append(z)
        elif function in BINARY:
            near = neighbors(rng, v[worst], ty, per, PRECISION[ty] - 4).reshape(len(worst), per)
            moved.append(rng.permuted(near, axis=1).ravel())
        else:
            moved.append(neighbors(rng, v[worst], ty, per, PRECISION[ty] - 4))
    return moved


def subset(values, error, limit):
    """The worst operands of the arrays' measurement and an even choice of the others."""
    n = len(values[0])
    if n <= limit:
        return np.arange(n)
    worst = np.argsort(error)[::-1][: limit // 4]
    return np.unique(np.concatenate([worst, np.arange(0, n, -(-n // (limit * 3 // 4)))]))


def join(rows):
    """Rows of the same function, type, path and region are one, the worst of them."""
    merged = collections.OrderedDict()
    for row in rows:
        key = row["peer"], row["function"], row["type"], row["path"], row["region"]
        old = merged.get(key)
        if old is None:
            merged[key] = row
            continue
        for kind, found in row["special"].items():
            old["special"].setdefault(kind, found)
        old["large"] = old["large"] or row["large"]
        if row["max_ulp"] > old["max_ulp"]:
            old.update({k: row[k] for k in ("max_ulp", "at", "expected", "actual")})
    return list(merged.values())


def default_count(ty):
    return {"f32": 1 << 22, "f64": 1 << 20, "c64": 1 << 18, "c128": 1 << 18}.get(ty, 1 << 20)


def measure_function(reference, peers, function, ty, count, report):
    def prepared(values):
        expected = reference.run(function, ty, values)
        return values, expected, condition(reference, function, ty, values, expected) if ty in PART else None

    try:
        values, expected, conditions = prepared(operands(function, ty, count))
    except Unsupported as e:
        return report(dict(peer="all", function=function, type=ty, unsupported=str(e)))
    for name, peer in peers.items():
        rows = []
        try:
            actual, note = peer.run(function, ty, values, False)
            found, error = measure(function, ty, name, "array", values, expected, actual, conditions)
            rows += found
            closer = refine(function, ty, values, np.where(conditions > WELL_CONDITIONED, -1, error) if ty in PART else error, count)
            if closer:
                closer, expected_closer, conditions_closer = prepared(closer)
                actual, _ = peer.run(function, ty, closer, False)
                rows += measure(function, ty, name, "array", closer, expected_closer, actual, conditions_closer)[0]
            chosen = subset(values, error, SCALARS[name])
            few = [v[chosen] for v in values]
            actual, _ = peer.run(function, ty, few, True)
            rows += measure(function, ty, name, "scalar", few, expected[chosen], actual, None if conditions is None else conditions[chosen])[0]
        except Unsupported as e:
            report(dict(peer=name, function=function, type=ty, unsupported=str(e)))
            continue
        for row in join(rows):
            row["note"] = note
            report(row)


def line(row, markdown):
    if "unsupported" in row:
        cells = [row["function"], row["type"], "", "", "-", "", "", row["unsupported"]]
    else:
        cells = [row["function"], row["type"], row["path"], row["region"], f"{row['max_ulp']:.3g}" if row["type"] in PART else f"{row['max_ulp']:.0f}",
                 row["at"], f"{100 * row['above_1']:.2g}%", "; ".join(f"{kind} ({n}: {where[0]})" for kind, (n, where, _, _) in row["special"].items())]
    return "| " + " | ".join(cells) + " |" if markdown else f"{cells[0]:22}{cells[1]:5}{cells[2]:7}{cells[3]:34}{cells[4]:>10}  {cells[6]:>8}  {cells[5]:40} {cells[7]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hlo", default="hlo", help="this project's program, for the reference")
    parser.add_argument("--peer", action="append", choices=sorted(PEERS), required=True)
    parser.add_argument("--function", action="append", choices=UNARY + BINARY)
    parser.add_argument("--type", action="append", choices=sorted(DTYPES))
    parser.add_argument("--count", type=int, help="operands, if not 2^22 (f32), 2^20 (f64), 2^18 (complex)")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--json", help="a file to add a JSON object a row to")
    args = parser.parse_args()
    types = args.type or list(DTYPES)
    np.seterr(all="ignore")
    with tempfile.TemporaryDirectory() as folder:
        reference = Reference(args.hlo, folder)
        peers = {name: PEERS[name](folder) for name in args.peer}
        for name, peer in peers.items():
            print(f"{name}: {peer.version()}")
        if args.markdown:
            print("| function | type | path | operands | max ulp | at | above 1 ulp | results no ulp covers (how many: for example) |\n|" + "---|" * 8)

        def report(row):
            prefix = f"{row['peer']:8}" if len(peers) > 1 and not args.markdown else ""
            print(prefix + line(row, args.markdown), flush=True)
            if args.json:
                with open(args.json, "a") as file:
                    file.write(json.dumps(row) + "\n")

        for function in args.function or UNARY + BINARY:
            for ty in types:
                if ty in PART and function in REAL_ONLY:
                    continue
                measure_function(reference, peers, function, ty, args.count or default_count(ty), report)


if __name__ == "__main__":
    main()
