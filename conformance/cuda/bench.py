#!/usr/bin/env python3
"""Times programs on a GPU: this compiler beside XLA:GPU, in turn, on the same inputs, and compares what they compute.

    cuda.py --hlo ./hlo --compiled DIR [--json FILE] M.hlo...

DIR has for each M.hlo the program that `hlo compile --target` made of it, M.hloexe. Needs jax with CUDA. Times are of the device in steady state: so many runs are
launched one after the other that they take a while, and the time of all is divided by their number; `on device`: how long XLA's kernels were at work, by jax's profiler, without
the gaps between them (ours has its gaps). `tf32`: XLA with the precision that the program asks for, which
lets it multiply f32 in tf32; `f32`: the same with operand_precision=highest. An `inputs.json` beside a program gives ranges of integers, {"name": [low, high)},
a `scales.json` standard deviations of floats.
"""
import argparse, glob, gzip, json, math, os, re, statistics, subprocess, sys, tempfile, time

ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument("programs", nargs="+")
ap.add_argument("--hlo", default="hlo", help="this project's program")
ap.add_argument("--compiled", required=True, help="folder of compiled programs")
ap.add_argument("--json", help="write everything there")
ap.add_argument("--seconds", type=float, default=0.2, help="of timed runs of each side")
ap.add_argument("--budget", type=float, default=240, help="seconds after which no program begins")
ap.add_argument("--no-xla", action="store_true", help="time this compiler alone")
args = ap.parse_args()

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import ml_dtypes
import numpy as np
from jax._src.interpreters import mlir as jmlir
from jax._src.lib import xla_client as xc
from jaxlib.mlir import ir

DEVICE = jax.devices("cuda")[0]


def compile_(text):
    module = xc.hlo.hlo_module_from_text(text)
    stablehlo = xc._xla.mlir.xla_computation_to_mlir_module(xc.XlaComputation(module.as_serialized_hlo_module_proto()))
    with jmlir.make_ir_context():
        options = xc.CompileOptions()
        options.num_replicas = options.num_partitions = 1
        return DEVICE.client.compile_and_load(ir.Module.parse(stablehlo), xc.DeviceList((DEVICE,)), options)


def shapes(text):
    module = xc.hlo.hlo_module_from_text(text)
    return xc.XlaComputation(module.as_serialized_hlo_module_proto()).program_shape().parameter_shapes()


def beside(path, name):
    file = os.path.join(os.path.dirname(path), name)
    return json.load(open(file)).get(os.path.basename(path).removesuffix(".hlo")) if os.path.exists(file) else None


def made(rng, shape, ints, scale):
    dtype, dims = np.dtype(shape.numpy_dtype()), shape.dimensions()
    if dtype == np.bool_:
        return rng.random(dims) < 0.5
    if dtype.kind in "iu":
        return rng.integers(*(ints or ((0, 16) if dtype.kind == "u" else (-8, 8))), dims).astype(dtype)
    if dtype.kind == "c":
        return (scale * (rng.standard_normal(dims) + 1j * rng.standard_normal(dims))).astype(dtype)
    return (scale * rng.standard_normal(dims, np.float32)).astype(dtype)


def bits(a):
    known = a.dtype.kind in "biufc" and a.dtype.name not in ("bfloat16",) and not a.dtype.name.startswith(("float8", "int4", "uint4", "int2", "uint2"))
    return a if known else a.view(f"u{a.dtype.itemsize}")


def time_xla(exe, buffers):
    """Microseconds of a run, and the results of one."""
    results = exe.execute(buffers)
    jax.block_until_ready(results)
    runs, best = 1, []
    while True:
        start = time.perf_counter()
        for _ in range(runs):
            last = exe.execute(buffers)
        jax.block_until_ready(last)
        taken = time.perf_counter() - start
        if taken > args.seconds / 5:
            break
        runs = min(max(runs + 1, int(runs * args.seconds / 4 / max(taken, 1e-6))), 20000)
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(runs):
            last = exe.execute(buffers)
        jax.block_until_ready(last)
        best.append((time.perf_counter() - start) / runs * 1e6)
    return statistics.median(best), results


def device_time(exe, buffers, runs=10):
    """Microseconds of a run on the device, as jax's profiler saw its kernels: without what the host takes to launch them. None: the profiler has none."""
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for _ in range(runs):
                last = exe.execute(buffers)
            jax.block_until_ready(last)
        traces = glob.glob(os.path.join(folder, "**", "*.trace.json.gz"), recursive=True)
        if not traces:
            return None
        events = json.loads(gzip.open(traces[0]).read())["traceEvents"]
    device = {e["pid"] for e in events if e.get("name") == "process_name" and "/device:GPU" in e["args"].get("name", "")}
    streams = {(e["pid"], e["tid"]) for e in events if e.get("name") == "thread_name" and e["pid"] in device and "Stream" in e["args"].get("name", "")}
    spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e.get("ph") == "X" and (e["pid"], e.get("tid")) in streams)
    busy, end = 0.0, -1.0
    for a, b in spans:
        busy += max(0.0, b - max(a, end))
        end = max(end, b)
    return busy / runs if spans else None


def difference(a, b):
    """The greatest difference, relative to the greatest magnitude of the array."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind not in "fc" and a.dtype.name != "bfloat16":
        return float((a != b).mean())
    a, b = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64), b.astype(np.complex128 if b.dtype.kind == "c" else np.float64)
    scale = np.max(np.abs(b[np.isfinite(b)]), initial=0.0) or 1.0
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return float(np.max(np.where(same, 0.0, np.abs(a - b)), initial=0.0) / scale)


HIGHEST = re.compile(r"^(.*= \S+ (?:dot|convolution)\(.*)$", re.M)
begin, rows = time.time(), []
print(f"{DEVICE.device_kind}\n{'program':34} {'ours us':>10} {'XLA us':>10} {'XLA f32':>10} {'on device':>10} {'ratio':>7} {'device':>7} {'kernels':>7} {'difference':>10}", flush=True)
for path in args.programs:
    name = os.path.basename(path).removesuffix(".hlo")
    row = {"program": name}
    rows.append(row)
    if time.time() - begin > args.budget:
        row["error"] = "no time left"
        print(f"{name:34} no time left", flush=True)
        continue
    try:
        text = open(path).read()
        rng = np.random.default_rng(0)
        values = [made(rng, s, beside(path, "inputs.json"), beside(path, "scales.json") or 1.0) for s in shapes(text)]
        with tempfile.TemporaryDirectory() as tmp:
            given, out = os.path.join(tmp, "in.npz"), os.path.join(tmp, "out.npz")
            np.savez(given, **{f"arg{i}": bits(v) for i, v in enumerate(values)})
            compiled = os.path.join(args.compiled, name + ".hloexe")
            if os.path.exists(compiled):
                ran = subprocess.run([args.hlo, "exec", compiled, "--inputs", given, "--output", out, "--iterations", "20", "--json"], capture_output=True, text=True, timeout=60)
                if ran.returncode == 0:
                    row.update(json.loads(ran.stdout.splitlines()[0]))
                    with np.load(out) as z:
                        ours = [z[f"out{i}"] for i in range(len(z.files))]
                else:
                    row["error"] = (ran.stderr or ran.stdout).strip().splitlines()[0][:200] if (ran.stderr or ran.stdout).strip() else f"exit {ran.returncode}"
            else:
                row["error"] = "not compiled"
        if not args.no_xla:
            buffers = [jax.device_put(v, DEVICE) for v in values]
            exe = compile_(text)
            row["xla_us"], theirs = time_xla(exe, buffers)
            row["xla_device_us"] = device_time(exe, buffers)
            strict = HIGHEST.sub(lambda m: m[1] if "operand_precision" in m[1] else m[1] + ", operand_precision={highest,highest}", text)
            if strict != text and "f32[" in text:
                exe = compile_(strict)
                row["xla_f32_us"], theirs = time_xla(exe, buffers)
                row["xla_device_us"] = device_time(exe, buffers)
            if "median_us" in row:
                pairs = [(o.view(np.asarray(t).dtype) if o.dtype != np.asarray(t).dtype else o, t) for o, t in zip(ours, theirs)]
                row["difference"] = max(difference(o.reshape(np.asarray(t).shape), t) for o, t in pairs)
                row["ratio"] = row.get("xla_f32_us", row["xla_us"]) / row["steady_us"]
                if row["xla_device_us"]:
                    row["device_ratio"] = row["xla_device_us"] / row["steady_us"]
    except Exception as e:  # one program must not hide the others
        row["error"] = f"{row.get('error', '')} {type(e).__name__}: {str(e).splitlines()[0][:200] if str(e) else ''}".strip()
    number = lambda key, form="10.1f": format(row[key], form) if row.get(key) is not None else " " * int(form.split(".")[0])
    print(f"{name:34} {number('steady_us')} {number('xla_us')} {number('xla_f32_us')} {number('xla_device_us')} {number('ratio', '7.2f')} {number('device_ratio', '7.2f')} {row.get('launches', ''):>7} {number('difference', '10.1e')} {row.get('error', '')}", flush=True)
for key, what in (("ratio", "as its caller sees it"), ("device_ratio", "its kernels alone, without gaps between them")):
    ratios = [r[key] for r in rows if r.get(key)]
    if ratios:
        print(f"geometric mean of {len(ratios)}: XLA takes {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f} times as long, {what} (f32 where both are)")
if args.json:
    json.dump(rows, open(args.json, "w"), indent=1)
