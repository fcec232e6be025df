#!/usr/bin/env python3
"""XLA:GPU's compiler for a machine without a GPU: what it makes of HLO programs, in folders (docs/xla-gpu.md).

    xla_gpu.py OUT M...         each program's dump in a folder OUT/M; programs are HLO text or XLA's HloModuleProto (*.pb)
    xla_gpu.py --serve          reads a JSON object a line, {"module": PATH, "out": FOLDER}; answers each with a line {"ok": true} or
                                {"error": why, "kind": "unsupported"}; ends with its standard input

`hlo ... --platform xla-gpu` runs it with --serve. Needs jax's CUDA plugin, ptxas and libdevice, from PyPI:
    pip install numpy ml_dtypes opt_einsum scipy
    pip install --no-deps jax==0.11.2 jaxlib==0.11.2 jax-cuda13-pjrt==0.11.2 jax-cuda13-plugin==0.11.2 nvidia-cuda-nvcc==13.* nvidia-nvvm==13.*
CUDA names another folder of `bin/ptxas` and `nvvm/libdevice/libdevice.10.bc` than that of the wheels. The device is an H100 (sm_90a); nothing is tuned.
"""
import itertools
import json
import os
import re
import sys
import sysconfig

# What XLA and its libraries print goes to standard error; answers have the standard output to themselves.
answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)

cuda = os.environ.get("CUDA") or os.path.join(sysconfig.get_paths()["purelib"], "nvidia", "cu13")
for part in ("bin/ptxas", "nvvm/libdevice/libdevice.10.bc"):
    if not os.path.isfile(os.path.join(cuda, part)):
        sys.exit(f"there is no {os.path.join(cuda, part)}: install nvidia-cuda-nvcc and nvidia-nvvm, or set CUDA")
os.environ["PATH"] = os.path.join(cuda, "bin") + os.pathsep + os.environ.get("PATH", "")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"  # or the plugin refuses without libcudart
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["XLA_FLAGS"] = " ".join([
    f"--xla_gpu_cuda_data_dir={cuda}", "--xla_gpu_autotune_level=0", "--xla_dump_emitter_re=ptx",
    "--xla_dump_large_constants=true", os.environ.get("XLA_FLAGS", "")])

from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jax.experimental import topologies
from jaxlib.mlir import ir

H100 = """gpu_device_info { threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535 memory_bandwidth: 3352320000000
  l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: 84929347584 shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 } registers_per_core_limit: 65536 registers_per_block_limit: 65536 }
platform_name: "CUDA" dnn_version_info { major: 9 minor: 10 } device_description_str: "NVIDIA H100 80GB HBM3\""""
topology = topologies.get_topology_desc(platform="cuda", target_config=H100, topology="1x1x1")
device = topology.devices[0]


def physical(layout):
    """The dimensions of a layout, which is given minor to major, from the major one to the minor one."""
    return list(ir.DenseIntElementsAttr(layout))[::-1]


def as_stablehlo(op):
    """Writes what StableHLO lacks otherwise: `copy`, `domain` and `add-dependency` as their operands, a `bitcast` to elements of the same type as
    transposes and a reshape."""
    for block in (block for region in op.regions for block in region):
        for inner in list(block):
            as_stablehlo(inner.operation)
            if inner.operation.name in ("mhlo.copy", "mhlo.domain", "mhlo.add_dependency"):
                inner.operation.results[0].replace_all_uses_with(inner.operation.operands[0])
                inner.operation.erase()
            elif inner.operation.name == "mhlo.bitcast":
                without_bitcast(inner.operation)


def without_bitcast(op):
    (result,), (value,) = op.results, op.operands
    before, after = ir.RankedTensorType(value.type), ir.RankedTensorType(result.type)
    if before.element_type != after.element_type:
        return  # XLA refuses it
    layouts = [op.attributes[name] for name in ("source_layout", "result_layout") if name in op.attributes]
    if len(layouts) != 2:
        return
    source, target = map(physical, layouts)
    shaped = lambda dims: ir.RankedTensorType.get(dims, before.element_type, loc=op.location)

    def become(name, dims, **attributes):
        nonlocal value
        if shaped(dims) != value.type or attributes:
            made = ir.Operation.create(name, results=[shaped(dims)], operands=[value], attributes=attributes,
                                       loc=op.location, ip=ir.InsertionPoint(op))
            value = made.results[0]

    def transpose(dims, permutation):
        if permutation != sorted(permutation):
            become("stablehlo.transpose", dims, permutation=ir.DenseI64ArrayAttr.get(permutation))

    transpose([before.shape[d] for d in source], source)
    become("stablehlo.reshape", [after.shape[d] for d in target])
    transpose(after.shape, [target.index(d) for d in range(after.rank)])
    result.replace_all_uses_with(value)
    op.erase()


def why(error):
    """The first lines of an error, without the program in MLIR."""
    text = str(error)
    found = re.search(r"error: (?:loc\(.*?\): )?(.{1,200}?)(?: that was explicitly marked illegal|\n|$)", text)
    return f"{text.splitlines()[0][:300]} {found[1]}" if found else text[:600]


def dump(path, out):
    """Compiles the program in a file, HLO text or XLA's HloModuleProto (*.pb); XLA leaves its parts in the folder `out`."""
    with open(path, "rb") as file:
        message = file.read()
    if not path.endswith(".pb"):
        message = xla_client.hlo.hlo_module_from_text(message.decode()).as_serialized_hlo_module_proto()
    computation = xla_client.XlaComputation(message)
    text = xla_client._xla.mlir.xla_computation_to_mlir_module(computation)
    options = xla_client.CompileOptions()
    options.num_replicas = options.num_partitions = 1
    options.env_option_overrides = [("xla_dump_to", out)]
    with mlir.make_ir_context():
        program = ir.Module.parse(text)
        as_stablehlo(program.operation)
        device.client.compile(program, xla_client.DeviceList((device,)), options)


def serve():
    for line in sys.stdin:
        ask = json.loads(line)
        try:
            dump(ask["module"], ask["out"])
            answer = {"ok": True}
        except Exception as error:  # whatever XLA refuses: a server goes on
            answer = {"error": why(error), "kind": "unsupported"}
        print(json.dumps(answer), file=answers, flush=True)


def main():
    if sys.argv[1:] == ["--serve"]:
        return serve()
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    failed = False
    for path in sys.argv[2:]:
        name = out = os.path.join(sys.argv[1], os.path.splitext(os.path.basename(path))[0])
        for n in itertools.count(2):
            if not os.path.exists(out):
                break
            out = f"{name}.{n}"
        try:
            dump(path, out)
            print(out, file=answers, flush=True)
        except Exception as error:
            failed = True
            print(f"{path}: {why(error)}", file=answers, flush=True)
    sys.exit(failed)


main()
