#!/usr/bin/env python3
"""Twelve models under JAX: this compiler's plugin and XLA:CPU (jaxlib's own back end), in turns.

    measure.py [--only NAME ...] [--engines hlo xla [xla-plugin]] [--rounds 3] [--turns 3] [--min-time 1]
               [--xla-plugin pjrt_c_api_cpu_plugin.so] [--json FILE] [--folder DIR] [--programs DIR]

In each round each engine has a new process for each model. It is asked for the first result (traced, lowered,
compiled, run; weights and inputs are on the device, imports are over), and then, in turns with the others, which wait,
for runs of `--min-time` seconds. Weights are arguments. What is trained, cached or stepped is donated, and is the next
run's argument. Results of the first run are compared: the largest difference of an array by its largest magnitude, of
all arrays, must be at most a thousandth (integers: equal). Where it is more, XLA computes the model in f64, and hlo may
be at most twice as far from that as XLA in f32 is, by norms of the parts of the result (gradients of networks with ReLU
jump where a sum is on another side of zero).

Times are medians: of a turn's runs, of all turns; of all rounds for first results. `best` is the shortest run of all,
and `cpu` processor time of a run: other work on the machine changes both less. Ratios above 1 mean that `hlo` takes less. `dispatch` is a call of
`jit(lambda x: x + 1)` on a scalar; `--xla-plugin` adds XLA:CPU through PJRT's C API to that, as hlo is.
`--programs` writes the models as StableHLO and runs nothing.

Needs jax, flax, equinox, optax, and `hlo_ref` installed or codegen/pjrt/python on PYTHONPATH.
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

TOLERANCE = 1e-3
DISPATCH = "dispatch"
KEYS = {"ms": "ms", "best_ms": "best ms", "cpu_ms": "cpu ms", "first": "first s", "compile": "compile s"}
STAGES = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}


def models():
    import networks
    import science
    import transformers

    order = ["mlp_train", "resnet50_train", "gpt2_forward", "gpt2_train", "gpt2_decode", "bert_forward", "vit_forward"]
    order += ["unet_forward", "lstm_forward", "gaussian_process", "molecular_dynamics", "reaction_diffusion"]
    known = {**networks.MODELS, **transformers.MODELS, **science.MODELS}
    return {name: known[name] for name in order}


# The process of an engine: it answers a line of JSON on its standard output for each line of its standard input.


def wide(x):
    x = np.asarray(x)
    return x.astype(np.float64) if np.issubdtype(x.dtype, np.floating) else x


def prepared(name, in_f64=False):
    """The model, its function under jit, and its arguments on the device."""
    import jax

    if name == DISPATCH:
        return 0, jax.jit(lambda x: x + 1), (jax.device_put(np.float32(1)),)
    model = models()[name]()
    jax.config.update("jax_enable_x64", model.x64 or in_f64)
    function = jax.jit(model.function, donate_argnums=tuple(range(model.carried)))
    arguments = jax.tree.map(lambda x: jax.device_put(wide(x) if in_f64 else np.array(x)), model.arguments)
    return model.carried, function, jax.block_until_ready(arguments)


def serve(name, in_f64):
    import jax

    stages = dict.fromkeys(STAGES.values(), 0.0)

    def listen(event, seconds, **_):
        if event in STAGES:
            stages[STAGES[event]] += seconds

    carried, function, arguments = prepared(name, in_f64)
    jax.monitoring.register_event_duration_secs_listener(listen)
    results = None

    def run():
        nonlocal arguments, results
        results = jax.block_until_ready(function(*arguments))
        if carried:
            arguments = (*results[:carried], *arguments[carried:])

    for line in sys.stdin:
        asked, *rest = json.loads(line)
        if asked == "first":
            start = time.perf_counter()
            run()
            answer = {"first": time.perf_counter() - start, **stages}
        elif asked == "save":
            parts = enumerate(results if isinstance(results, (tuple, list)) else [results])
            named = {f"{part}.{i}": np.asarray(x) for part, r in parts for i, x in enumerate(jax.tree.leaves(r))}
            np.savez(rest[0], **named)
            answer = {}
        elif asked == "run":
            answer = timed(run, rest[0])
        else:
            answer = dispatched(function, *arguments)
        print(json.dumps(answer), flush=True)


def timed(run, min_time):
    """After one run that does not count: times of runs, for so long and three at least, and the mean processor time."""
    run()
    times, before, end = [], os.times(), time.perf_counter() + min_time
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    user, system = (now - then for now, then in zip(os.times()[:2], before[:2], strict=True))
    per_run = 1e3 / len(times)
    wall = {"ms": statistics.median(times) * 1e3, "best_ms": min(times) * 1e3}
    return {**wall, "cpu_ms": (user + system) * per_run, "system_ms": system * per_run}


def dispatched(function, x, calls=2000, batches=20):
    """Microseconds of a call, each awaited, and of one in a row of which the last is: medians of batches."""
    found = {"awaited": [], "row": []}
    for _ in range(batches):
        start = time.perf_counter()
        for _ in range(calls):
            function(x).block_until_ready()
        middle = time.perf_counter()
        y = x
        for _ in range(calls):
            y = function(y)
        y.block_until_ready()
        found["awaited"].append(middle - start)
        found["row"].append(time.perf_counter() - middle)
    return {key: statistics.median(times) / calls * 1e6 for key, times in found.items()}


# The process that asks.


class Failed(Exception):
    """An engine ended, or said no."""


class Engine:
    """A process of an engine with a model."""

    def __init__(self, engine, name, args):
        settings = {"hlo": {"JAX_PLATFORMS": "hlo"}, "xla": {"JAX_PLATFORMS": "cpu"}}
        settings["reference"] = settings["xla"]
        settings["xla-plugin"] = {
            "JAX_PLATFORMS": "xla_plugin",
            "PJRT_NAMES_AND_LIBRARY_PATHS": f"xla_plugin:{args.xla_plugin}",
        }
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", name, *(["--f64"] if engine == "reference" else [])],
            env={**os.environ, **settings[engine]},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )

    def ask(self, *question):
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.process.wait()
            self.errors.seek(0)
            lines = [line.strip() for line in self.errors.read().splitlines() if line.strip()]
            said = [line for line in lines if "Error" in line] or lines or [f"ended with {self.process.returncode}"]
            raise Failed(said[-1][:300])
        return json.loads(line)

    def end(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.errors.close()


def difference(given, expected):
    """The largest difference in an array by the largest magnitude there, of all arrays."""
    with np.load(given) as a, np.load(expected) as b:
        if a.files != b.files or any(a[key].dtype != b[key].dtype for key in b.files):
            return math.inf
        worst = 0.0
        for key in b.files:
            x, y = a[key], b[key]
            if x.shape != y.shape:
                return math.inf
            if not np.issubdtype(y.dtype, np.floating):
                worst = max(worst, 0.0 if np.array_equal(x, y) else math.inf)
            elif y.size:
                error = float(np.abs(x - y).max()) / (float(np.abs(y).max()) or 1.0)
                worst = max(worst, error if math.isfinite(error) else math.inf)
        return worst


def distance(given, reference):
    """The largest distance of a part of the result (all arrays of it) from that in f64, by the norm of that."""
    squares = {}
    with np.load(given) as a, np.load(reference) as b:
        for key in b.files:
            of = squares.setdefault(key.split(".")[0], [0.0, 0.0])
            y = b[key].astype(np.float64)
            of[0] += float(((a[key] - y) ** 2).sum())
            of[1] += float((y**2).sum())
    return max(math.sqrt(off / (norm or 1.0)) for off, norm in squares.values())


def judged(name, args, kept):
    """Whether the results of hlo are right: the error, the distances of both from f64 if it is large, what is wrong."""
    error = difference(kept["hlo"], kept["xla"])
    if error <= TOLERANCE:
        return error, None, None
    path = args.folder / "reference.npz"
    reference = Engine("reference", name, args)
    try:
        reference.ask("first")
        reference.ask("save", str(path))
        off = [distance(kept[engine], path) for engine in ("hlo", "xla")]
    finally:
        reference.end()
        path.unlink(missing_ok=True)
    wrong = None if off[0] <= 2 * off[1] else f"results differ by {error:.1e}; from f64 by {off[0]:.1e}, XLA by {off[1]:.1e}"
    return error, off, wrong


def measured(name, args):
    """The medians of each engine with a model, the error against XLA's results, and what failed."""
    firsts, turns = {e: [] for e in args.engines}, {e: [] for e in args.engines}
    failed, error, off = {}, None, None
    for number in range(args.rounds):
        running = {}
        try:
            for engine in args.engines if number % 2 == 0 else args.engines[::-1]:
                if engine in failed:
                    continue
                try:
                    running[engine] = Engine(engine, name, args)
                    firsts[engine].append(running[engine].ask("first"))
                    if number == 0 and "xla" in args.engines:
                        running[engine].ask("save", str(args.folder / f"{engine}.npz"))
                except Failed as reason:
                    failed[engine] = str(reason)
            for turn in range(args.turns):
                for engine in list(running) if turn % 2 == 0 else list(running)[::-1]:
                    if engine not in failed:
                        try:
                            turns[engine].append(running[engine].ask("run", args.min_time))
                        except Failed as reason:
                            failed[engine] = str(reason)
        finally:
            for process in running.values():
                process.end()
        kept = {engine: args.folder / f"{engine}.npz" for engine in args.engines}
        if number == 0 and {"hlo", "xla"} <= running.keys() - failed.keys():
            try:
                error, off, wrong = judged(name, args, kept)
            except Failed as reason:
                wrong = f"results differ, and the model in f64: {reason}"
            if wrong:
                failed["hlo"] = wrong
        for path in kept.values():
            path.unlink(missing_ok=True)
    found = {}
    for engine in args.engines:
        rounds = [(firsts[engine], "first trace lower compile".split()), (turns[engine], ["ms", "cpu_ms", "system_ms"])]
        if all(kept for kept, _ in rounds):
            found[engine] = {key: statistics.median(r[key] for r in kept) for kept, keys in rounds for key in keys}
            found[engine]["best_ms"] = min(r["best_ms"] for r in turns[engine])
            found[engine]["spread_ms"] = [f(r["ms"] for r in turns[engine]) for f in (min, max)]
    return {"engines": found, "error": error, "from_f64": off, "failed": failed, "load": os.getloadavg()[0]}


def dispatch(args):
    engines = args.engines + (["xla-plugin"] if args.xla_plugin and "xla-plugin" not in args.engines else [])
    running, found, failed = {}, {}, {}
    try:
        for engine in engines:
            running[engine] = Engine(engine, DISPATCH, args)
        for _ in range(args.rounds):
            for engine in engines:
                try:
                    found.setdefault(engine, []).append(running[engine].ask("dispatch"))
                except Failed as reason:
                    failed[engine] = str(reason)
    finally:
        for process in running.values():
            process.end()
    medians = {e: {key: statistics.median(r[key] for r in rs) for key in ("awaited", "row")} for e, rs in found.items() if rs}
    return {"engines": medians, "failed": failed, "load": os.getloadavg()[0]}


def ratio(row, key):
    engines = row["engines"]
    return engines["xla"][key] / engines["hlo"][key] if {"hlo", "xla"} <= engines.keys() else None


def line(name, what, row):
    engines = row["engines"]
    if row["failed"] or not {"hlo", "xla"} <= engines.keys():
        return f"| {name} | {what} | " + "; ".join(f"{e}: {why}" for e, why in row["failed"].items()) + " |"
    of = lambda key: [f"{engines[e][key]:.3g}" if engines[e][key] < 100 else f"{engines[e][key]:.0f}" for e in ("hlo", "xla")]
    error = f"{row['error']:.0e}"
    if row["from_f64"]:
        error += " (from f64 {:.1e}, XLA {:.1e})".format(*row["from_f64"])
    cells = [what]
    for key in KEYS:
        cells += [*of(key), f"{ratio(row, key):.2f}"]
    return f"| {name} | " + " | ".join([*cells, error]) + " |"


def machine():
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    return f"{model}, {len(os.sched_getaffinity(0))} cores"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", help="names of models, or `dispatch`")
    parser.add_argument("--engines", nargs="+", default=["hlo", "xla"], choices=["hlo", "xla", "xla-plugin"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--min-time", type=float, default=1)
    parser.add_argument("--xla-plugin", help="the shared library of XLA:CPU as a PJRT plugin")
    parser.add_argument("--json")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()), help="for results, while compared")
    parser.add_argument("--programs", type=pathlib.Path, help="writes NAME.mlir there, and runs nothing")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--f64", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args.serve, args.f64)
        return 0
    known = models()
    names = args.only or [*known, DISPATCH]
    if wrong := [name for name in names if name not in known and name != DISPATCH]:
        parser.error(f"no such model: {', '.join(wrong)}; there are {', '.join(known)}, {DISPATCH}")
    if args.programs:
        args.programs.mkdir(parents=True, exist_ok=True)
        for name in names:
            _, function, arguments = prepared(name)
            (args.programs / f"{name}.mlir").write_text(function.lower(*arguments).as_text())
        return 0
    print(f"machine: {machine()}; load {os.getloadavg()[0]:.1f}; {args.rounds} rounds of {args.turns} turns\n")
    heads = [f"{what}{who}" for what in KEYS.values() for who in ("", " XLA", " ratio")]
    heads = ["model", "what", *heads, "error"]
    table = {}
    for number, name in enumerate(n for n in names if n != DISPATCH):
        if number == 0:
            print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|", flush=True)
        table[name] = measured(name, args)
        print(line(name, known[name].__doc__, table[name]), flush=True)
    means = {}
    for key in KEYS:
        ratios = [r for row in table.values() if not row["failed"] and (r := ratio(row, key)) is not None]
        if ratios:
            means[key] = {"mean": math.exp(statistics.mean(map(math.log, ratios))), "least": min(ratios)}
            print(f"\n{key}: geometric mean of ratios {means[key]['mean']:.2f}, least {means[key]['least']:.2f}, of {len(ratios)}")
    if DISPATCH in names:
        table[DISPATCH] = dispatch(args)
        for engine, times in table[DISPATCH]["engines"].items():
            print(f"dispatch, {engine}: {times['awaited']:.2f} us awaited, {times['row']:.2f} us in a row")
        for engine, why in table[DISPATCH]["failed"].items():
            print(f"dispatch, {engine}: {why}")
    if args.json:
        found = {"machine": machine(), "load": os.getloadavg(), "means": means, "table": table}
        pathlib.Path(args.json).write_text(json.dumps(found, indent=1))
    return int(any(row["failed"] for row in table.values()))


if __name__ == "__main__":
    sys.exit(main())
