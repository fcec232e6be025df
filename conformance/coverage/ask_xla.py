#!/usr/bin/env python3
"""What XLA itself says of the pairs of legal.txt, and of all others: run by hand, needs jaxlib.

    ask_xla.py [OPCODE ...] > said.txt      a line for each pair: opcode, type, legal or not, what XLA says, and its message

`parse`: the parser refuses it, shape inference included. `stablehlo`: it has no form there. `compile`: the verifier refuses it, or
XLA:CPU has no code for it. `crash`: the process ended. XLA:CPU crashes on f6 types, so these are only parsed.
"""
import os
import subprocess
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tables


def ask(text, types):
    import jax
    from jax._src.interpreters import mlir as jmlir
    from jax._src.lib import xla_client as xc
    from jaxlib.mlir import ir
    try:
        module = xc.hlo.hlo_module_from_text(text)
        computation = xc.XlaComputation(module.as_serialized_hlo_module_proto())
    except Exception as e:
        return "parse", str(e)
    if "f6e" in " ".join(types):
        return "parsed", ""
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
    worker = sys.argv[1:2] == ["--from"]
    chosen = set(sys.argv[3:] if worker else sys.argv[1:])
    programs = [p for p in tables.programs() if not chosen or p[0] in chosen]
    if worker:
        for _, ty, text in programs[int(sys.argv[2]):]:
            verdict, message = ask(text, ty if isinstance(ty, tuple) else (ty,))
            print(verdict, " ".join(message.split())[:200], sep="\t", flush=True)
        return
    legal, done = tables.legal(), 0
    while done < len(programs):
        command = [sys.executable, __file__, "--from", str(done), *sorted(chosen)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            def say(line):
                op, ty, _ = programs[done]
                pair = " ".join(ty) if isinstance(ty, tuple) else ty
                print(op, pair, "legal" if ty in legal[op] else "illegal", line.rstrip("\n"), sep="\t", flush=True)
            for line in process.stdout:
                say(line)
                done += 1
        if done < len(programs):
            say("crash")
            done += 1


main()
