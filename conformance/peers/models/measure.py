#!/usr/bin/env python3
"""Times whole models: this compiler, XLA:CPU, PyTorch, ONNX Runtime and numpy, in turns, each in a process of its own,
on the same random weights and inputs; results are checked.

    measure.py [--hlo target/release/hlo] [--folder target/peers/models] [--rounds 3] [--min-time 2]
               [--threads 1 2] [--models NAME ...] [--engines NAME ...] [--json FILE] [--keep]

`hlo` is given the weights as constants (`--constant-args`), `hlo-arguments` as arguments; so are those of XLA:CPU.
PyTorch and ONNX Runtime have them as constants. Engines that are not installed are left out, and named. Times are
medians over rounds of the medians of a round, in ms; a ratio above 1 means that `hlo` is faster. `cpu` is processor
time of a run, which other work on the machine changes less. A peer counts whose results are those of XLA:CPU up to a
relative error (of norms) of a thousandth.
"""
import argparse
import importlib.util
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import backends
import networks

ENGINES = ["hlo", "hlo-arguments", "xla", "torch", "torch-compile", "onnxruntime", "numpy"]
NEEDS = {"xla": "jax", "torch": "torch", "torch-compile": "torch", "onnxruntime": "onnxruntime"}
FEW_CONVOLUTIONS = ("gpt2_forward_128", "gpt2_decode_512", "bert_base_b8_128")


def timed(run, min_time):
    """Runs it until it is warm, then for so long: the result, the median time in ms and the mean processor time."""
    result = run()
    run()
    times, before, end = [], time.process_time(), time.perf_counter() + min_time
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    cpu = (time.process_time() - before) / len(times)
    return result, statistics.median(times) * 1e3, cpu * 1e3


def weights_of(folder, name):
    """The weights that `prepare` wrote, in order."""
    with np.load(folder / f"{name}.npz") as file:
        return [file[f"arg{i}"] for i in range(len(file.files) - len(networks.NETWORKS[name][1]))]


def in_order(arrays):
    """What a backend asks for weights."""
    left = iter(arrays)
    return lambda shape, kind: next(left)


def prepare(folder, name):
    """Writes the program as HLO with its weights and inputs, and as ONNX."""
    import jax

    if (folder / f"{name}.onnx").exists():
        return
    network, inputs, weights = networks.NETWORKS[name][0], networks.inputs_of(name), networks.Weights()
    network_shapes = []

    def recorded(shape, kind):
        network_shapes.append((shape, kind))
        return jax.numpy.zeros(shape, np.float32)

    jax.eval_shape(lambda *x: network(backends.Jax(recorded), *x), *inputs)
    arrays = [weights(shape, kind) for shape, kind in network_shapes]
    np.savez(folder / f"{name}.npz", **{f"arg{i}": x for i, x in enumerate(arrays + inputs)})

    def program(arrays, *inputs):
        return network(backends.Jax(in_order(arrays)), *inputs)

    program.__name__ = name
    lowered = jax.jit(program, keep_unused=True).lower(arrays, *inputs)
    (folder / f"{name}.hlo").write_text(lowered.compiler_ir("hlo").as_hlo_text(True))
    (folder / name).mkdir(exist_ok=True)
    backends.Onnx(in_order(arrays)).write(folder / name / "model.onnx", network, inputs)
    (folder / f"{name}.onnx").write_text(f"{name}/model.onnx\n")


def bench(hlo, program, inputs, args, *more):
    """This compiler on a program and a file of inputs, with these threads, for so long."""
    limits = ["--threads", args.count, "--min-time", args.min_time, "--output", args.output]
    command = [hlo, "bench", program, "--inputs", inputs, *more, *limits, "--json"]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return {"ms": found["run_us"] / 1e3, "cpu_ms": found["cpu_us"] / 1e3, "prepare_s": found["compile_ms"] / 1e3}


def pin(count):
    """Limits this process, which has not imported any engine yet, to so many cores and threads."""
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:count]))
    os.environ.update(OMP_NUM_THREADS=str(count), OPENBLAS_NUM_THREADS=str(count), JAX_PLATFORMS="cpu")


def run_hlo(engine, args):
    count = len(np.load(args.folder / f"{args.name}.npz").files)
    weights = count - len(networks.NETWORKS[args.name][1])
    frozen = ["--constant-args", f"0-{weights - 1}"] if engine == "hlo" else []
    program, inputs = (args.folder / f"{args.name}.{kind}" for kind in ("hlo", "npz"))
    return bench(args.hlo, program, inputs, args, *frozen)


def run_peer(engine, args):
    """One engine in this process."""
    pin(args.count)
    name, inputs = args.name, networks.inputs_of(args.name)
    network = networks.NETWORKS[name][0]
    start = time.perf_counter()
    if engine == "xla":
        import jax

        taken = [jax.device_put(x) for x in weights_of(args.folder, name)]

        def program(arrays, *inputs):
            return network(backends.Jax(in_order(arrays)), *inputs)

        given = [jax.device_put(x) for x in inputs]
        compiled = jax.jit(program, keep_unused=True).lower(taken, *given).compile()
        run = lambda: jax.block_until_ready(compiled(taken, *given))
    elif engine == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = args.count, 1
        session = onnxruntime.InferenceSession(args.folder / name / "model.onnx", options, ["CPUExecutionProvider"])
        given = {f"input{i}": x for i, x in enumerate(inputs)}
        run = lambda: session.run(None, given)
    elif engine == "numpy":
        arrays = weights_of(args.folder, name)
        run = lambda: network(backends.Numpy(in_order(arrays)), *inputs)
    else:
        import torch

        torch.set_num_threads(args.count)
        given = [torch.from_numpy(x) for x in inputs]
        weights = weights_of(args.folder, name)

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.taken = torch.nn.ParameterList()
                made = backends.Torch(in_order(weights))

                class Recorder(backends.Torch):
                    def weight(recorder, shape, kind):
                        self.taken.append(torch.nn.Parameter(made.weight(shape, kind), requires_grad=False))
                        return self.taken[-1]

                with torch.inference_mode():
                    network(Recorder(None), *given)

            def forward(self, *inputs):
                taken = iter(list(self.taken))

                class Given(backends.Torch):
                    def weight(_, shape, kind):
                        return next(taken)

                return network(Given(None), *inputs)

        model = Model().eval()
        if engine == "torch-compile":
            import torch._inductor.config as inductor

            inductor.freezing = True
            model = torch.compile(model)

        def run():
            with torch.no_grad():
                return model(*given)

    prepared = time.perf_counter() - start
    results, ms, cpu_ms = timed(run, args.min_time)
    np.savez(args.output, **{f"out{i}": np.asarray(x) for i, x in enumerate(results)})
    return {"ms": ms, "cpu_ms": cpu_ms, "prepare_s": prepared}


def differ(given, expected):
    """The largest relative error of a result, by norms."""
    with np.load(given) as a, np.load(expected) as b:
        if len(a.files) != len(b.files):
            return math.inf
        pairs = [(a[f"out{i}"], b[f"out{i}"]) for i in range(len(b.files))]
        return max(float(np.linalg.norm(x.reshape(y.shape) - y) / np.linalg.norm(y)) for x, y in pairs)


def machine():
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    return f"{model}, {len(os.sched_getaffinity(0))} cores"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hlo", type=pathlib.Path, default="target/release/hlo")
    parser.add_argument("--folder", type=pathlib.Path, default="target/peers/models")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--min-time", type=float, default=2)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--models", nargs="+", default=list(networks.NETWORKS), choices=networks.NETWORKS)
    parser.add_argument("--engines", nargs="+", default=ENGINES, choices=ENGINES)
    parser.add_argument("--json")
    kept = "keep the programs and weights (a gigabyte for each of the larger models)"
    parser.add_argument("--keep", action="store_true", help=kept)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--name", help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--output", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps((run_hlo if args.one.startswith("hlo") else run_peer)(args.one, args)))
        return
    args.folder.mkdir(parents=True, exist_ok=True)
    missing = {e for e in args.engines if e in NEEDS and importlib.util.find_spec(NEEDS[e]) is None}
    engines = [e for e in args.engines if e not in missing]
    print(f"machine: {machine()}")
    if missing:
        print(f"not installed, so not measured: {', '.join(sorted(missing))}")
    table, logs = {}, {}
    for name in args.models:
        prepare(args.folder, name)
        those = [e for e in engines if e != "numpy" or name in FEW_CONVOLUTIONS]
        for threads in args.threads:
            rounds, wrong = {e: [] for e in those}, {}
            for _ in range(args.rounds):
                for engine in those:
                    output = args.folder / f"{engine}.out.npz"
                    command = [sys.executable, __file__, "--one", engine, "--name", name, "--count", threads]
                    command += ["--hlo", args.hlo, "--folder", args.folder]
                    command += ["--min-time", args.min_time, "--output", output]
                    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
                    if done.returncode:
                        wrong[engine] = (done.stderr.strip().splitlines() or ["failed"])[-1][:100]
                    else:
                        rounds[engine].append(json.loads(done.stdout.splitlines()[-1]))
            for engine in those:
                output = args.folder / f"{engine}.out.npz"
                if engine != "xla" and "xla" in those and not wrong.keys() & {engine, "xla"}:
                    error = differ(output, args.folder / "xla.out.npz")
                    if not error < 1e-3:
                        wrong[engine] = f"results differ by {error:.1e}"
            report(name, threads, those, rounds, wrong, table, logs)
            for engine in those:
                (args.folder / f"{engine}.out.npz").unlink(missing_ok=True)
        if not args.keep:
            shutil.rmtree(args.folder / name)
            for kind in ("npz", "hlo", "onnx"):
                (args.folder / f"{name}.{kind}").unlink()
    for key, values in logs.items():
        least = min(values)
        print(f"{key}: geometric mean {math.exp(statistics.mean(values)):.2f}, least {math.exp(least):.2f}")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"machine": machine(), "table": table}, indent=1))


def report(name, threads, engines, rounds, wrong, table, logs):
    cells, row = [], {}
    for engine in engines:
        if engine in wrong or not rounds[engine]:
            cells.append(f"{engine} failed: {wrong.get(engine)}")
            continue
        middle = {key: statistics.median(r[key] for r in rounds[engine]) for key in rounds[engine][0]}
        spread = [min(r["ms"] for r in rounds[engine]), max(r["ms"] for r in rounds[engine])]
        row[engine] = {**middle, "spread": spread}
        cells.append(f"{engine} {middle['ms']:.1f} ({spread[0]:.1f}-{spread[1]:.1f}; cpu {middle['cpu_ms']:.1f})")
    print(f"{name}, {threads} thread{'s' if threads > 1 else ''}: " + ", ".join(cells))
    peers = [e for e in row if not e.startswith("hlo")]
    for figure in ("ms", "cpu_ms"):
        if "hlo" in row and peers:
            best = min(peers, key=lambda e: row[e][figure])
            ratio = row[best][figure] / row["hlo"][figure]
            logs.setdefault(f"{threads} threads, best peer by {figure}", []).append(math.log(ratio))
            print(f"    {figure}: best peer {best}, ratio {ratio:.2f}", flush=True)
    table[f"{name}/{threads}"] = row


if __name__ == "__main__":
    main()
