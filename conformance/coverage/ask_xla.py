#!/usr/bin/env python3
"""What XLA itself says of every pair of legal.txt, and of all others: run by hand, needs jaxlib.

    ask_xla.py > said.txt       a line for each pair: opcode, type, ok | parse | compile, legal or not, and XLA's message

`parse` is refused by the parser, shape inference included; `compile` by the verifier or because XLA:CPU has no code for it.
Each program is tried in a process of its own where XLA crashes.
"""
import os
import subprocess
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tables


def ask(text, ty):
    import jax
    from jax._src.interpreters import mlir as jmlir
    from jax._src.lib import xla_client as xc
    from jaxlib.mlir import ir
    try:
        module = xc.hlo.hlo_module_from_text(text)
        computation = xc.XlaComputation(module.as_serialized_hlo_module_proto())
    except Exception as e:
        return "parse", str(e)
    if "f6e" in " ".join(ty):
        return "parsed", "XLA:CPU crashes on f6"
    try:
        stable = xc._xla.mlir.xla_computation_to_mlir_module(computation)
    except Exception as e:
        return "stablehlo", str(e)
    try:
        device = jax.devices("cpu")[0]
        with jmlir.make_ir_context():
            options = xc.CompileOptions()
            options.num_replicas = options.num_partitions = 1
            device.client.compile_and_load(ir.Module.parse(stable), xc.DeviceList((device,)), options)
    except Exception as e:
        return "compile", str(e)
    return "ok", ""


def main():
    legal = tables.legal()
    all_programs = list(tables.programs())
    if len(sys.argv) == 2:  # a worker: from this index on
        for op, ty, text in all_programs[int(sys.argv[1]):]:
            verdict, message = ask(text, ty if isinstance(ty, tuple) else (ty,))
            print(verdict, " ".join(message.split())[:200], sep="\t", flush=True)
        return
    start = 0
    while start < len(all_programs):
        worker = subprocess.run([sys.executable, __file__, str(start)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        said = worker.stdout.splitlines()
        if start + len(said) < len(all_programs):
            said.append("crash\t")
        for (op, ty, _), line in zip(all_programs[start:], said):
            pair = " ".join(ty) if isinstance(ty, tuple) else ty
            print(op, pair, "legal" if ty in legal[op] else "illegal", line, sep="\t", flush=True)
        start += len(said)


main()
