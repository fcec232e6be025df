"""A back end of JAX as an engine of the program `hlo`: `--platform 'serve:python -m hlo_ref.peer cuda'`.

Reads a JSON object a line, {"module", "inputs", "output", "replicas", "partitions"}, runs the HLO module on arrays arg0, ... and writes out0, ...; answers {"ok": true} or {"error": why, "kind": "unsupported" | "error"}.
"""

import json
import os
import sys

import numpy as np


def _leaves(shape):
    if shape.is_tuple():
        return [leaf for part in shape.tuple_shapes() for leaf in _leaves(part)]
    return [shape]


def _first_line(error):
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


def run(job, device):
    import jax
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jaxlib.mlir import ir

    from .arrays import from_file, to_file

    if job.get("replicas", 1) * job.get("partitions", 1) != 1:
        return {"error": "several devices", "kind": "unsupported"}
    try:
        with open(job["module"]) as file:
            module = xla_client.hlo.hlo_module_from_text(file.read())
        computation = xla_client.XlaComputation(module.as_serialized_hlo_module_proto())
        shapes = computation.program_shape().parameter_shapes()
        kinds = [np.dtype(leaf.numpy_dtype()) for leaf in _leaves(computation.program_shape().result_shape())]
        if any(shape.is_tuple() for shape in shapes):
            return {"error": "tuple parameters cannot be given through jaxlib", "kind": "unsupported"}
        lowered = xla_client._xla.mlir.xla_computation_to_mlir_module(computation)
        with mlir.make_ir_context():
            options = xla_client.CompileOptions()
            options.num_replicas = options.num_partitions = 1
            devices = xla_client.DeviceList((device,))
            program = device.client.compile_and_load(ir.Module.parse(lowered), devices, options)
    except Exception as error:
        return {"error": _first_line(error), "kind": "unsupported"}
    try:
        with np.load(job["inputs"]) as arrays:
            values = [from_file(arrays[f"arg{n}"], shape.numpy_dtype()) for n, shape in enumerate(shapes)]
        results = program.execute([jax.device_put(value, device) for value in values])
        given = {}
        for n, (array, kind) in enumerate(zip(results, kinds, strict=True)):
            array = np.asarray(array)
            if array.dtype != kind and array.dtype.kind == "u" and array.dtype.itemsize == kind.itemsize:
                array = array.view(kind)
            given[f"out{n}"] = to_file(array)
        np.savez(job["output"], **given)
    except Exception as error:
        return {"error": _first_line(error), "kind": "error"}
    return {"ok": True}


def main():
    backend = sys.argv[1]
    os.environ["JAX_ENABLE_X64"] = "1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    # The peer is what is judged, so it does not judge itself.
    if os.environ.get("HLO_MODE") == "check":
        os.environ["HLO_MODE"] = "compile"
    import jax

    device = jax.devices(backend)[0]
    if backend == "cpu":
        from jax._src.lax import linalg

        linalg.initialize_lapack()
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line), device)), flush=True)


if __name__ == "__main__":
    main()
