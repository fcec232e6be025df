"""`interpret`: a function computed by the reference interpreter, in this process."""

import functools

import jax
import numpy as np

from . import lowering, places

_NAME = "hlo_interpreter"


@functools.cache
def _client():
    """A client of the plugin that interprets, beside whatever JAX runs on."""
    from jax._src.lib import xla_client

    if not xla_client.pjrt_plugin_loaded(_NAME):
        xla_client.load_pjrt_plugin_dynamically(_NAME, places.library())
    if not xla_client.pjrt_plugin_initialized(_NAME):
        xla_client.initialize_pjrt_plugin(_NAME)
    return xla_client.make_c_api_client(_NAME, {"mode": "interpret", "num_devices": 1}, None)


@functools.lru_cache(maxsize=256)
def _compiled(text):
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jaxlib.mlir import ir

    client = _client()
    with mlir.make_ir_context():
        devices = xla_client.DeviceList(tuple(client.local_devices()[:1]))
        return client.compile_and_load(ir.Module.parse(text), devices, xla_client.CompileOptions())


def interpret(f):
    """A function that computes `f`: every elementwise operation is correctly rounded, every sum is the exact sum rounded once.

    Arguments and results are those of `f`, with their structure; results are arrays of JAX's default back end. Functions that call back into Python are refused.
    """

    @functools.wraps(f)
    def interpreted(*args, **kwargs):
        lowered = lowering.lower(f, args, kwargs)
        if lowered.host_callbacks:
            raise NotImplementedError("functions that call back into Python cannot be interpreted here")
        program = _compiled(lowered.text)
        device = _client().local_devices()[0]
        given = [jax.device_put(array, device) for array in lowered.arguments]
        outputs = program.execute_sharded(given).disassemble_into_single_device_arrays() if given or lowered.num_outputs else []
        leaves = []
        for output, aval in zip(outputs, lowered.out_avals, strict=True):
            array = jax.numpy.asarray(np.asarray(output[0]))
            if jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key):
                array = jax.random.wrap_key_data(array, impl=aval.dtype._impl.name)
            leaves.append(array)
        return jax.tree.unflatten(lowered.out_tree, leaves)

    return interpreted
