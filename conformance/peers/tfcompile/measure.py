#!/usr/bin/env python3
"""Compares objects of `hlo compile --out-object` with those of tfcompile: sizes, what programs with them need, run times in turns (docs/ahead-of-time.md, "Against tfcompile").

    measure.py [--folder target/peers/tfcompile] [--hlo target/release/hlo] [--library target/release/libhlo_ahead.a] [--models mlp cnn ...] [--cpu native] [--rounds 5] [--seconds 1]

Both get the same program: tfcompile a graph of TensorFlow, `hlo compile` what tfcompile made of it (its session module). It needs g++, binutils, 2 GB of disk and, the first time, PyPI, from
where tensorflow-cpu comes into an environment of its own in the folder; and `make ahead-library` and a release build of `hlo` before. Each program runs alone on one thread, on one core if
taskset is there; rounds alternate; a time is the median over rounds of the median of a round. Results may differ by a relative error (of norms) of a hundred-thousandth.

The peer is as fast as it gets: its library is compiled with -O3 for the same processor, in two ways where that has AVX-512: with Eigen's kernels for it and without (`plain`). Eigen's
convolutions do not compile with them (g++ 12); there libtensorflow_cc's own are called. Sizes of the peer are those of its object and of its constants; the C++ code of its header, which calls the kernels and the library, and the library come on top.
"""
import argparse
import array
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
MODELS = ["mlp", "cnn", "lstm", "transformer", "head"]
PACKAGES = ["tensorflow-cpu==2.21.0"]
SOURCES = [
    "tensorflow/compiler/tf2xla/xla_compiled_cpu_function.cc", "xla/executable_run_options.cc", "xla/tsl/framework/contraction/eigen_contraction_kernel.cc",
    "xla/backends/cpu/runtime/dot_lib_f32.cc", "xla/backends/cpu/runtime/convolution_lib_f32_2d.cc",
]
KINDS = {"avx512": [], "plain": ["-DEIGEN_USE_AVX512_GEMM_KERNELS=0"]}


def run(*words, **options):
    """Runs a command. Its output, and an exit with what it said if it fails."""
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def environment(folder):
    """A Python with TensorFlow, and where that lies."""
    python = folder / "python/bin/python"
    if not python.exists():
        run(sys.executable, "-m", "venv", folder / "python")
        run(python, "-m", "pip", "install", "--quiet", *PACKAGES)
    found = run(python, "-c", "import importlib.util; print(importlib.util.find_spec('tensorflow').submodule_search_locations[0])")
    return python, pathlib.Path(found.split()[-1])


def flags(tensorflow, march):
    return ["-std=c++17", "-O3", f"-march={march}", "-DNDEBUG", "-D_GLIBCXX_USE_CXX11_ABI=1", f"-I{tensorflow}/xla_aot_runtime_src", f"-I{tensorflow}/include", "-w"]


def library(folder, tensorflow, march, kind):
    """Compiles the peer's library. Its objects; those that do not compile are left out."""
    made = []
    (folder / f"library-{kind}-{march}").mkdir(exist_ok=True)
    for source in SOURCES:
        out = folder / f"library-{kind}-{march}" / (pathlib.Path(source).stem + ".o")
        failed = out.with_suffix(".failed")
        if not out.exists() and not failed.exists():
            words = ["g++", *flags(tensorflow, march), *KINDS[kind], "-c", tensorflow / "xla_aot_runtime_src" / source, "-o", out]
            if subprocess.run([str(w) for w in words], capture_output=True).returncode != 0:
                failed.touch()
        if out.exists():
            made.append(out)
    return made


def sections(path):
    """Bytes of code, and of everything that is loaded."""
    code = total = 0
    for line in run("size", "-A", path).splitlines():
        found = re.match(r"(\.\S+)\s+(\d+)\s", line)
        if found and not found[1].startswith((".comment", ".note", ".debug")):
            total += int(found[2])
            code += int(found[2]) if found[1].startswith(".text") else 0
    return code, total


def needs(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", path))


def build(options, name, python, tensorflow, libraries):
    """Compiles a model on both sides: sizes, and the programs to run."""
    folder = options.folder / f"{name}-{options.cpu}"
    if not (folder / "model.h").exists():
        run(python, HERE / "models.py", name, options.peer_cpu, folder)
    ours = folder / "ours"
    ours.mkdir(exist_ok=True)
    run(options.hlo, "compile", folder / "model.snapshot.pb", "--entry-point", "ours", "--cpp-class", "ours::Model", "--target-cpu", options.cpu,
        "--out-object", ours / "ours.o", "--out-header", ours / "ours.h", "--out-metadata-object", ours / "metadata.o")
    define = lambda header, cls: [f'-DMODEL_HEADER="{header}"', f"-DMODEL_CLASS={cls}", HERE / "main.cc"]
    run("g++", "-std=c++17", "-O3", *define(ours / "ours.h", "ours::Model"), ours / "ours.o", options.library, "-lm", "-o", ours / "main")
    # What C programs need: the standard library of C++ is nobody's here.
    (ours / "main.c").write_text('#include "ours.h"\nint main(void) { return ours_run(0, 0, 0, 0); }\n')
    run("gcc", "-std=c11", ours / "main.c", ours / "ours.o", options.library, "-lm", "-o", ours / "main-c")
    programs = {"ours": ours / "main"}
    for kind, objects in libraries.items():
        out = folder / f"main-{kind}"
        words = ["g++", *flags(tensorflow, options.march), *KINDS[kind], "-DPEER", *define(folder / "model.h", "peer::Model"), *folder.glob("model*.o"), *objects,
                 f"-L{tensorflow}", "-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2", f"-Wl,-rpath,{tensorflow}", "-o", out]
        if subprocess.run([str(w) for w in words], capture_output=True).returncode == 0:
            programs[kind] = out
    if len(programs) == 1:
        sys.exit(f"{name}: no library of the peer links")
    row = {"model": name, "ours": {}, "tfcompile": {}}
    row["ours"]["code"], whole = sections(ours / "ours.o")
    row["ours"]["other"] = whole - row["ours"]["code"]
    row["ours"]["metadata"] = sections(ours / "metadata.o")[1]
    row["ours"]["needs"] = needs(ours / "main-c")
    row["tfcompile"]["code"], whole = sections(folder / "model.o")
    row["tfcompile"]["other"] = whole - row["tfcompile"]["code"] + sections(folder / "model_constants.o")[1]
    row["tfcompile"]["metadata"] = sections(folder / "model_metadata.o")[1]
    row["tfcompile"]["needs"] = needs(next(p for kind, p in programs.items() if kind != "ours"))
    return row, folder, programs


def distance(a, b):
    """The relative error between two files of f32."""
    a, b = (array.array("f", p.read_bytes()) for p in (a, b))
    if len(a) != len(b):
        return math.inf
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)) / max(sum(y * y for y in b), 1e-300))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("target/peers/tfcompile"))
    parser.add_argument("--hlo", type=pathlib.Path, default=pathlib.Path("target/release/hlo"))
    parser.add_argument("--library", type=pathlib.Path, default=pathlib.Path("target/release/libhlo_ahead.a"))
    parser.add_argument("--models", nargs="*", default=MODELS, choices=MODELS)
    parser.add_argument("--cpu", default="native", help="the processor, as hlo compile has it: native, or x86-64-v3")
    parser.add_argument("--peer-cpu", help="the same as LLVM has it, if it is another name (of native: what hlo says)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    options.march = options.cpu
    if options.peer_cpu is None:
        probe = options.folder / "probe.hlo"
        probe.write_text("HloModule probe\nENTRY e { ROOT x = f32[] parameter(0) }\n")
        said = json.loads(run(options.hlo, "compile", probe, "--target-cpu", options.cpu, "--out-object", options.folder / "probe.o", "--json"))
        options.peer_cpu = said["target"].split(",")[0]
    python, tensorflow = environment(options.folder)
    avx512 = "avx512f" in pathlib.Path("/proc/cpuinfo").read_text() and options.march == "native"
    libraries = {kind: library(options.folder, tensorflow, options.march, kind) for kind in (KINDS if avx512 else ["plain"])}
    alone = ["taskset", "-c", str(max(os.sched_getaffinity(0)))] if shutil.which("taskset") else []
    rows = []
    for name in options.models:
        row, folder, programs = build(options, name, python, tensorflow, libraries)
        times = {kind: [] for kind in programs}
        for _ in range(options.rounds):
            for kind, program in programs.items():
                lines = run(*alone, program, folder / "arguments.bin", folder / f"results-{kind}.bin", options.seconds).split()
                times[kind].append(statistics.median(map(float, lines)) / 1e3)
        row["microseconds"] = {kind: round(statistics.median(t), 1) for kind, t in times.items()}
        for kind in programs:
            error = distance(folder / f"results-{kind}.bin", folder / "results-ours.bin")
            if error > 1e-5:
                sys.exit(f"{name}: results of {kind} differ by {error}")
        best = min(t for kind, t in row["microseconds"].items() if kind != "ours")
        row["ratio"] = round(row["microseconds"]["ours"] / best, 2)
        rows.append(row)
        size = lambda what: "{code}+{other}, {metadata}".format(**row[what])
        print(f"{name:12} ours {size('ours')}  tfcompile {size('tfcompile')} bytes (code+other, metadata)  us {row['microseconds']}  ratio {row['ratio']}", flush=True)
        print(f"{'':12} ours needs {' '.join(row['ours']['needs'])}; tfcompile {' '.join(row['tfcompile']['needs'])}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
