#!/usr/bin/env python3
"""Times the programs of a folder that PyTorch or numpy have as a few calls, beside this compiler and XLA:CPU, in turns.

    operations.py [--hlo target/release/hlo] [--programs ../shared/bench] [--rounds 3] [--min-time 0.5]
                  [--threads 1 2] [--only NAME ...] [--engines hlo xla torch torch-compile numpy] [--json FILE]

Each engine has a process of its own. Times are medians over rounds of the medians of a round, in ms; results of peers
are compared with ours, and one that differs by more than a thousandth (of norms; of bf16 a hundredth) counts as none.
"""
import argparse
import importlib.util
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import measure

ENGINES = ["hlo", "xla", "torch", "torch-compile", "numpy"]
TYPES = {"f32": np.float32, "s32": np.int32, "c64": np.complex64, "bf16": np.float32}
# Ranges of the integers of a program.
BELOW = {"gather_rows_1m": 100_000, "scatter_add_1m": 100_000}


def torch_programs():
    import torch
    from torch.nn import functional as f

    def nchw(x):
        return x.permute(0, 3, 1, 2)

    def nhwc(x):
        return x.permute(0, 2, 3, 1)

    def padded(x):
        # XLA's SAME of stride 2 pads behind.
        return f.pad(x, (0, 1, 0, 1), value=-math.inf)

    def jacobi(x):
        for _ in range(100):
            inner = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
            x = f.pad(inner, (1, 1, 1, 1))
        return x

    return {
        "argmax_rows_4k": lambda x: torch.argmax(x, 1).to(torch.int32),
        "argsort_rows": lambda x: torch.argsort(x, dim=1, stable=True).to(torch.int32),
        "batch_matmul_64x128": torch.bmm,
        "bf16_chain_16m": lambda x, y: torch.exp(x) * y + x,
        "concat_pad_slice": lambda x, y: f.pad(torch.cat([x[:, ::2], y[:, 1::2]], 1), (2, 2, 1, 1)),
        "conv2d_3x3_56x56x64": lambda x, w: nhwc(f.conv2d(nchw(x), w.permute(3, 2, 0, 1), padding=1)),
        "conv2d_depthwise": lambda x, w: nhwc(f.conv2d(nchw(x), w.permute(3, 2, 0, 1), padding=1, groups=128)),
        "cumsum_1kx4k": lambda x: torch.cumsum(x, 1),
        "eltwise_tanh_16m": lambda x, y, z: torch.tanh(x * y + z),
        "fft_c64_1kx1k": lambda x: torch.fft.fft(x),
        "gather_rows_1m": lambda x, i: torch.index_select(x, 0, i),
        "gelu_erf_4k": lambda x: f.gelu(x),
        "layernorm_8kx1k": lambda x, g, b: f.layer_norm(x, (1024,), g, b, eps=1e-5),
        "matmul_bf16_1k": torch.mm,
        "matmul_bias_relu_512x2kx512": lambda x, y, b: torch.relu(torch.addmm(b, x, y)),
        "matmul_f32_1k": torch.mm,
        "matvec_4k": torch.mv,
        "maxpool_3x3": lambda x: nhwc(f.max_pool2d(padded(nchw(x)), 3, 2)),
        "reduce_cols_8kx4k": lambda x: torch.sum(x, 0),
        "reduce_sum_fma": lambda x, y, z: torch.sum(x + y * z),
        "scatter_add_1m": lambda x, i, y: torch.index_add(x, 0, i, y),
        "softmax_4k": lambda x: torch.softmax(x, 1),
        "sort_f32_1m": lambda x: torch.sort(x, stable=True)[0],
        "top_k": lambda x: torch.topk(x, 16),
        "transpose_4k": lambda x: x.t() + 1,
    }


def numpy_programs():
    def top_k(x):
        at = np.argpartition(-x, 16, axis=1)[:, :16]
        values = np.take_along_axis(x, at, 1)
        order = np.argsort(-values, axis=1, kind="stable")
        return np.take_along_axis(values, order, 1), np.take_along_axis(at, order, 1).astype(np.int32)

    def softmax(x):
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    return {
        "argmax_rows_4k": lambda x: np.argmax(x, 1).astype(np.int32),
        "argsort_rows": lambda x: np.argsort(x, axis=1, kind="stable").astype(np.int32),
        "batch_matmul_64x128": np.matmul,
        "concat_pad_slice": lambda x, y: np.pad(np.concatenate([x[:, ::2], y[:, 1::2]], 1), ((1, 1), (2, 2))),
        "cumsum_1kx4k": lambda x: np.cumsum(x, 1),
        "eltwise_tanh_16m": lambda x, y, z: np.tanh(x * y + z),
        "fft_c64_1kx1k": lambda x: np.fft.fft(x),
        "gather_rows_1m": lambda x, i: np.take(x, i, 0),
        "matmul_bias_relu_512x2kx512": lambda x, y, b: np.maximum(x @ y + b, 0),
        "matmul_f32_1k": np.matmul,
        "matvec_4k": np.matmul,
        "reduce_cols_8kx4k": lambda x: np.sum(x, 0),
        "reduce_sum_fma": lambda x, y, z: np.sum(x + y * z),
        "softmax_4k": softmax,
        "sort_f32_1m": np.sort,
        "top_k": top_k,
        "transpose_4k": lambda x: x.T + np.float32(1),
    }


def parameters(text):
    """Types and dimensions of the parameters, in order."""
    entry = text[text.index("\nENTRY") :]
    found = re.findall(r"= (\w+)\[([\d,]*)\]\S* parameter\((\d+)\)", entry)
    by_number = sorted(found, key=lambda p: int(p[2]))
    return [(ty, [int(n) for n in dims.split(",") if n]) for ty, dims, _ in by_number]


def inputs(name, text):
    rng = np.random.default_rng(1)
    arrays = []
    for ty, dims in parameters(text):
        if ty == "s32":
            arrays.append(rng.integers(0, BELOW[name], dims).astype(np.int32))
        elif ty == "c64":
            arrays.append((rng.standard_normal(dims) + 1j * rng.standard_normal(dims)).astype(np.complex64))
        else:
            arrays.append(rng.standard_normal(dims).astype(TYPES[ty]))
    return arrays


def serve(args):
    """One engine in this process."""
    measure.pin(args.count)
    text = (args.programs / f"{args.name}.hlo").read_text()
    arrays, types = inputs(args.name, text), [ty for ty, _ in parameters(text)]
    if args.engine == "numpy":
        function = numpy_programs()[args.name]
        run = lambda: function(*arrays)
    elif args.engine == "xla":
        import xla_cpu  # before JAX, which it configures
        import jax
        import ml_dtypes

        _, lowered = xla_cpu.read(text)
        compiled, _ = xla_cpu.compiled(lowered)
        given = [jax.device_put(x.astype(ml_dtypes.bfloat16) if ty == "bf16" else x) for x, ty in zip(arrays, types)]
        run = lambda: [r.block_until_ready() for r in compiled.execute(given)]
    else:
        import torch

        torch.set_num_threads(args.count)
        function = torch_programs()[args.name]
        if args.engine == "torch-compile":
            function = torch.compile(function)
        given = [torch.from_numpy(x) for x in arrays]
        given = [x.to(torch.bfloat16) if ty == "bf16" else x for x, ty in zip(given, types)]

        def run():
            with torch.inference_mode():
                return function(*given)

    results, ms, cpu_ms = measure.timed(run, args.min_time)
    results = results if isinstance(results, (tuple, list)) else [results]
    wide = [x.float() if "bfloat16" in str(getattr(x, "dtype", "")) and hasattr(x, "float") else x for x in results]
    np.savez(args.output, **{f"out{i}": np.asarray(x).astype(np.complex128) for i, x in enumerate(wide)})
    return {"ms": ms, "cpu_ms": cpu_ms}


def to_file(x, ty):
    """As `--inputs` takes it: numpy's files have no bf16 but as two bytes."""
    if ty != "bf16":
        return x
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16).view("V2")


def ours(args):
    """This compiler, in a process of its own."""
    program = args.programs / f"{args.name}.hlo"
    text = program.read_text()
    types = [ty for ty, _ in parameters(text)]
    with tempfile.NamedTemporaryFile(suffix=".npz") as file:
        np.savez(file, **{f"arg{i}": to_file(x, ty) for i, (x, ty) in enumerate(zip(inputs(args.name, text), types))})
        file.flush()
        return measure.bench(args.hlo, program, file.name, args)


def answer(args, engine, name, count, folder):
    """Times of an engine, or why it failed; its results are in the folder."""
    command = [sys.executable, __file__, "--serve", "--engine", engine, "--name", name, "--count", count]
    command += ["--hlo", args.hlo, "--programs", args.programs, "--min-time", args.min_time]
    command += ["--output", folder / f"{engine}.npz"]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["died"])[-1][:200]}
    return json.loads(done.stdout.splitlines()[-1])


def number(x):
    """An array of ours as numbers: those of two bytes that numpy does not know are bf16."""
    if x.dtype.kind == "V" or x.dtype == np.uint16:
        return (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return x


def differ(given, expected):
    with np.load(given) as a, np.load(expected) as b:
        pairs = [(a[key], number(b[key]).astype(np.complex128)) for key in b.files]
        # Positions of equal elements are the engine's to choose: values alone.
        return max(float(np.linalg.norm(x.reshape(y.shape) - y) / max(np.linalg.norm(y), 1e-30)) for x, y in pairs[:1])


def compared(args, name, count, peers, folder):
    """A program on all engines: their times with the ratios of the best peer's to ours, and the same in words."""
    found = {engine: [] for engine in ("hlo", *peers)}
    for _ in range(args.rounds):
        for engine, answers in found.items():
            answers.append(answer(args, engine, name, count, folder))
    row, said = {"name": name, "threads": count}, []
    for engine, answers in found.items():
        wrong = next((a["failed"] for a in answers if "failed" in a), None)
        if not wrong and engine != "hlo" and "hlo" in row:
            error = differ(folder / f"{engine}.npz", folder / "hlo.npz")
            if not error < (1e-2 if "bf16" in name else 1e-3):
                wrong = f"differs by {error:.1e}"
        if not wrong:
            row[engine] = {key: statistics.median(a[key] for a in answers) for key in ("ms", "cpu_ms")}
        said.append(f"{engine} {wrong or format(row[engine]['ms'], '.3f')}")
    for key in ("ms", "cpu_ms"):
        if "hlo" in row and any(e in row for e in peers):
            row[f"{key}_ratio"] = min(row[e][key] for e in peers if e in row) / row["hlo"][key]
    return row, said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hlo", type=pathlib.Path, default="target/release/hlo")
    parser.add_argument("--programs", type=pathlib.Path, default="../shared/bench")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--min-time", type=float, default=0.5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--engines", nargs="+", default=ENGINES, choices=ENGINES)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    for hidden in ["engine", "name", "output"]:
        parser.add_argument(f"--{hidden}", help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=1, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        print(json.dumps(ours(args) if args.engine == "hlo" else serve(args)))
        return
    if not args.programs.is_dir():
        print(f"skipped: no folder {args.programs}")
        return
    has_torch = importlib.util.find_spec("torch") is not None
    peers = [e for e in args.engines if e != "hlo" and (has_torch or not e.startswith("torch"))]
    known = {"numpy": set(numpy_programs())}
    if has_torch:
        known["torch"] = known["torch-compile"] = set(torch_programs())
    names = args.only or sorted(known.get("torch", known["numpy"]))
    known["xla"] = set(names)
    rows = []
    print(f"machine: {measure.machine()}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for count in args.threads:
            ratios = {"ms": [], "cpu_ms": []}
            for name in names:
                row, said = compared(args, name, count, [e for e in peers if name in known[e]], folder)
                for key, all_ in ratios.items():
                    if f"{key}_ratio" in row:
                        all_.append(row[f"{key}_ratio"])
                rows.append(row)
                ratio = f"{row['ms_ratio']:.2f}" if "ms_ratio" in row else "-"
                print(f"{name}, {count} thr.: {', '.join(said)}; best peer by ours {ratio}", flush=True)
            for key, all_ in ratios.items():
                if all_:
                    mean = math.exp(sum(map(math.log, all_)) / len(all_))
                    print(f"{count} threads, {key}: geometric mean {mean:.2f}, least {min(all_):.2f}, of {len(all_)}")
    if args.json:
        args.json.write_text(json.dumps({"machine": measure.machine(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
