#!/usr/bin/env python3
"""XLA:CPU, as jaxlib carries it, as an engine of this project (docs/harness.md): `--engines interpreter,"serve:python3 xla_cpu.py"`.

Needs `pip install jax`. Reads a JSON object a line, {"module", "inputs", "output", "replicas", "partitions"}, runs the module on
arrays arg0, ... and writes out0, ...; answers {"ok": true} or {"error": why, "kind": "unsupported" | "error"}. With one argument or more
it runs once: xla_cpu.py MODULE INPUTS OUTPUT.
"""
import json
import os
import re
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_X64"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import jax
import numpy as np
from jax._src.interpreters import mlir
from jax._src.lax import linalg
from jax._src.lib import xla_client
from jaxlib.mlir import ir

linalg.initialize_lapack()  # or a lapack_*_ffi call ends the process

NATIVE = {"bool", "float16", "float32", "float64", "complex64", "complex128"}
NATIVE |= {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
NARROW = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4}

# MLIR, through which a program goes here, has no types of 1 bit but its i1, which is `pred`: `convert` to s1 arrives as a comparison with 0,
# s1[16] of a `bitcast-convert` as one pred.
ONE_BIT = re.compile(r"\b[su]1\[")


def to_file(array, dtype):
    """Types that numpy lacks are unsigned integers of the same bits; of less than a byte, the low bits."""
    array = np.asarray(array)
    # What XLA makes of `rng-bit-generator` gives unsigned bits, whatever the type of its result is.
    if array.dtype != dtype and array.dtype.kind == "u" and array.dtype.itemsize == dtype.itemsize:
        array = array.view(dtype)
    name = array.dtype.name
    if name in NATIVE:
        return array
    if name in NARROW:
        return array.astype(np.int8).view(np.uint8) & np.uint8((1 << NARROW[name]) - 1)
    return array.view(f"u{array.dtype.itemsize}")


def from_file(array, dtype):
    dtype = np.dtype(dtype)
    if array.dtype == dtype:
        return array
    if dtype.name in NARROW:
        shift = 8 - NARROW[dtype.name]
        wide = array.view(np.uint8) if dtype.name[0] == "u" else (array << shift).view(np.int8) >> shift
        return wide.astype(dtype)
    return array.view(dtype)


def leaves(shape):
    if shape.is_tuple():
        return [leaf for part in shape.tuple_shapes() for leaf in leaves(part)]
    return [shape]


def read(text):
    """A program of HLO text as XLA has it, and as MLIR, which the compiler takes."""
    module = xla_client.hlo.hlo_module_from_text(text)
    computation = xla_client.XlaComputation(module.as_serialized_hlo_module_proto())
    return computation, xla_client._xla.mlir.xla_computation_to_mlir_module(computation)


def compiled(lowered):
    """The program for one device, and the device."""
    device = jax.devices("cpu")[0]
    with mlir.make_ir_context():
        options = xla_client.CompileOptions()
        options.num_replicas = options.num_partitions = 1
        devices = xla_client.DeviceList((device,))
        return device.client.compile_and_load(ir.Module.parse(lowered), devices, options), device


def run(job):
    if job.get("replicas", 1) * job.get("partitions", 1) != 1:
        return {"error": "several devices", "kind": "unsupported"}
    try:
        text = open(job["module"]).read()
        if ONE_BIT.search(text):
            return {"error": "types of 1 bit become pred on their way through jaxlib", "kind": "unsupported"}
        computation, lowered = read(text)
        shapes = computation.program_shape().parameter_shapes()
        kinds = [np.dtype(leaf.numpy_dtype()) for leaf in leaves(computation.program_shape().result_shape())]
        if any(shape.is_tuple() for shape in shapes):
            return {"error": "tuple parameters cannot be given through jaxlib", "kind": "unsupported"}
    except Exception as e:
        return {"error": f"does not read the program: {str(e).splitlines()[0][:300]}", "kind": "unsupported"}
    try:
        program, device = compiled(lowered)
    except Exception as e:
        # A compiler that says no is not wrong; one that dies takes this process along.
        return {"error": str(e).splitlines()[0][:300], "kind": "unsupported"}
    try:
        with np.load(job["inputs"]) as arrays:
            values = [from_file(arrays[f"arg{i}"], shape.numpy_dtype()) for i, shape in enumerate(shapes)]
        results = program.execute([jax.device_put(value, device) for value in values])
        np.savez(job["output"], **{f"out{i}": to_file(*of) for i, of in enumerate(zip(results, kinds, strict=True))})
    except Exception as e:
        return {"error": str(e).splitlines()[0][:300], "kind": "error"}
    return {"ok": True}


def main():
    if len(sys.argv) == 4:
        answer = run(dict(zip(("module", "inputs", "output"), sys.argv[1:])))
        if not answer.get("ok"):
            print(answer["error"], file=sys.stderr)
        sys.exit(0 if answer.get("ok") else 5 if answer["kind"] == "unsupported" else 1)
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
