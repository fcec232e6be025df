"""JAX through the plugin, against numpy: what a user does first, and what goes wrong first.

Usage: PJRT_NAMES_AND_LIBRARY_PATHS=hlo:PLUGIN.so JAX_PLATFORMS=hlo python check.py

`HLO_MODE` may be set. What a check claims is its name.
"""

import ctypes
import os
import sys
import tempfile

os.environ.setdefault("JAX_ENABLE_X64", "1")

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax.experimental import serialize_executable
from jax.experimental.layout import Format, Layout

from checks import check, fails, main, same


@check
def devices_are_listed():
    device, = jax.devices()
    assert device.id == 0 and device.process_index == 0
    assert jax.default_backend() == "hlo" or jax.default_backend() == "cpu"
    assert device.default_memory().kind == "device"
    assert [m.kind for m in device.addressable_memories()] == ["device", "pinned_host", "unpinned_host"]


@check
def a_scalar_is_added_to():
    same(jax.jit(lambda x: x + 1)(np.float32(1)), np.float32(2))


@check
def several_results():
    a, b = jax.jit(lambda x, y: (x + y, x * y))(np.arange(3.0), np.full(3, 2.0))
    same(a, [2.0, 3.0, 4.0])
    same(b, [0.0, 2.0, 4.0])


@check
def every_dtype_goes_there_and_back():
    names = (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 bfloat16 "
        "float8_e4m3fn float8_e5m2 float8_e4m3b11fnuz float8_e4m3fnuz float8_e5m2fnuz float8_e3m4 float8_e4m3 "
        "float8_e8m0fnu float4_e2m1fn int4 uint4 int2 uint2"
    )
    for name in names.split():
        dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
        x = np.array([[0, 1], [1, 0], [1, 1]], np.int8).astype(dtype)
        if name.startswith("float8_e8m0"):
            x = np.array([[1, 2], [4, 0.5], [1, 1]], np.float32).astype(dtype)
        try:
            same(jax.device_put(x), x)
            same(jax.jit(lambda x: x.T)(x), np.ascontiguousarray(x.T))
        except Exception as error:
            raise AssertionError(name) from error


@check
def strided_arrays_are_gathered():
    x = np.arange(24, dtype=np.int32).reshape(4, 6)
    for view in [x.T, x[::2], x[:, ::-1], x[1:, 1:3], np.broadcast_to(x[0], (3, 6)), x[:0], x[2, 3]]:
        same(jax.device_put(view), np.array(view))


@check
def numpy_views_share_memory_and_outlive_the_array():
    x = jnp.arange(1000.0) * 2
    view = np.asarray(x)
    assert view.ctypes.data == x.unsafe_buffer_pointer()
    del x
    same(view, np.arange(1000.0) * 2)


@check
def aligned_numpy_arrays_are_not_copied():
    room = np.zeros(4096 + 64, np.uint8)
    start = -room.ctypes.data % 64
    x = room[start : start + 4096].view(np.float32)
    assert x.ctypes.data % 64 == 0
    y = jax.device_put(x, may_alias=True)
    assert y.unsafe_buffer_pointer() == x.ctypes.data
    same(jax.jit(lambda y: y + 1)(y), x + 1)


@check
def donated_arrays_are_gone():
    step = jax.jit(lambda x, g: x - 0.5 * g, donate_argnums=0)
    x = jnp.full(100, 4.0)
    y = step(x, jnp.full(100, 2.0))
    same(y, np.full(100, 3.0))
    assert x.is_deleted()
    fails(lambda: x + 1, "deleted")


@check
def what_is_donated_is_used_once():
    x, y = jnp.zeros(10), jnp.ones(10)
    add = jax.jit(lambda x, y: x + y, donate_argnums=0)
    fails(lambda: add(x, x), "cannot be donated")
    both = jax.jit(lambda x, y: (x + 1, y + 2), donate_argnums=(0, 1))
    fails(lambda: both(x, x), "cannot be donated")
    same(add(x, y), np.ones(10))


@check
def results_have_bytes_of_their_own():
    address = lambda x: x.unsafe_buffer_pointer()
    x, y = jnp.array([1, 2]), jnp.array([2, 3])
    a, b, c = jax.jit(lambda x, y: (y, x, x))(x, y)
    assert len({address(x), address(y), address(a), address(b), address(c)}) == 5
    same(a, [2, 3]), same(b, [1, 2]), same(c, [1, 2])


@check
def tokens_are_no_arrays():
    token = jax.jit(lambda: jax.lax.create_token())()
    fails(lambda: np.asarray(token._buf), "token")


@check
def a_donated_array_that_numpy_sees_is_not_overwritten():
    x = jnp.arange(100.0)
    view = np.asarray(x)
    jax.jit(lambda x: x * 2, donate_argnums=0)(x)
    same(view, np.arange(100.0))


@check
def deleted_arrays_say_so():
    x = jnp.arange(3.0)
    x.delete()
    fails(lambda: np.asarray(x), "deleted")


@check
def control_flow_and_gradients():
    def loop(x):
        return jax.lax.fori_loop(0, 10, lambda i, c: c * 1.5, x)

    same(jax.jit(jax.grad(loop))(1.0), 1.5**10)
    same(jax.jit(lambda x: jax.lax.cond(x > 0, lambda: x, lambda: -x))(-3.0), 3.0)
    _, ys = jax.jit(lambda xs: jax.lax.scan(lambda c, x: (c + x, c), 0.0, xs))(np.arange(4.0))
    same(ys, [0.0, 0.0, 1.0, 3.0])


@check
def a_layer_is_trained():
    rng = np.random.default_rng(0)
    x, w0 = rng.normal(size=(32, 8)), rng.normal(size=(8, 3))
    target = x @ w0

    def loss(w):
        return jnp.mean((x @ w - target) ** 2)

    step = jax.jit(lambda w: w - 0.1 * jax.grad(loss)(w), donate_argnums=0)
    w = jnp.zeros((8, 3))
    for _ in range(200):
        w = step(w)
    assert loss(w) < 1e-3, loss(w)


@check
def random_numbers_are_those_of_threefry():
    same(jax.random.bits(jax.random.key(0), (2,), "uint32"), np.array([0xF29A4FA7, 0xFA843692], np.uint32))


@check
def programs_tell_of_themselves():
    compiled = jax.jit(lambda x: jnp.dot(x, x)).lower(np.zeros((8, 8), np.float32)).compile()
    assert "dot" in compiled.as_text()
    cost = compiled.cost_analysis()
    assert cost["flops"] == 2 * 8 * 8 * 8, cost
    memory = compiled.memory_analysis()
    assert (memory.argument_size_in_bytes, memory.output_size_in_bytes) == (256, 256), memory


@check
def programs_are_dumped_where_options_of_xla_say():
    with tempfile.TemporaryDirectory() as folder:
        options = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True, "xla_dump_hlo_as_proto": True}
        jax.jit(lambda x: x * 3, compiler_options=options)(np.float32(2))
        names = sorted(os.listdir(folder))
        ends = [name.split("jit__lambda")[-1].strip("_.") for name in names]
        compiled = ["cpu_after_optimizations.hlo.pb", "cpu_after_optimizations.txt"] if os.environ.get("HLO_MODE") != "interpret" else []
        assert ends == ["before_optimizations.hlo.pb", "before_optimizations.txt", *compiled], names
        text = open(os.path.join(folder, names[1])).read()
        assert text.startswith("HloModule jit__lambda") and "multiply(" in text, text
        # Of other modules nothing.
        other = {**options, "xla_dump_hlo_module_re": "another"}
        jax.jit(lambda x: x * 4, compiler_options=other)(np.float32(2))
        assert sorted(os.listdir(folder)) == names


@check
def executables_are_serialized():
    from jax.experimental import serialize_executable

    compiled = jax.jit(lambda x: jnp.sin(x) + 1).lower(np.zeros(5)).compile()
    loaded = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    x = np.linspace(0, 1, 5)
    same(loaded(x), compiled(x))


@check
def exports_are_called():
    from jax import export

    exported = export.export(jax.jit(lambda x: x * 2))(np.zeros(3))
    same(export.deserialize(exported.serialize()).call(np.arange(3.0)), [0.0, 2.0, 4.0])


@check
def unknown_custom_calls_are_refused_by_name():
    call = jax.ffi.ffi_call("no_such_function", jax.ShapeDtypeStruct((3,), np.float32))
    fails(lambda: jax.jit(call)(np.zeros(3, np.float32)), "no_such_function")


@check
def hostile_programs_are_errors():
    backend = jax.devices()[0].client
    from jax._src.lib import xla_client
    from jaxlib import _jax

    options = _jax.CompileOptions()
    devices = _jax.DeviceList(tuple(jax.devices()))
    module = jax.jit(lambda x: x + 1).lower(np.zeros(3)).compiler_ir("stablehlo")
    text = str(module)
    for program in [b"", b"ML\xefR", b"ML\xefR\x0d\x00" + b"\xff" * 50, b"module {", text.encode()[:-20]]:
        fails(lambda: backend.compile_and_load(program, devices, options))


@check
def arrays_lie_as_their_layout_says():
    a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    for order in [(0, 1, 2), (2, 1, 0), (1, 2, 0)]:
        x = jax.device_put(a, Format(Layout(order), device))
        assert x.format.layout.major_to_minor == order, x.format
        same(x, a)
        y = jax.jit(lambda x: x + 1)(x)
        same(y, a + 1)
        # The bytes themselves.
        memory = (ctypes.c_float * a.size).from_address(x.unsafe_buffer_pointer())
        same(np.array(memory, np.float32), a.transpose(order).ravel())
        same(jax.device_put(x, Format(Layout((0, 1, 2)), device)), a)


@check
def programs_take_and_give_layouts():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    turned = Format(Layout((1, 0)), device)
    f = jax.jit(lambda x, y: (x + y, x.T), in_shardings=(turned, None), out_shardings=(turned, None))
    x = jax.device_put(a, turned)
    total, transposed = f(x, a)
    assert total.format.layout.major_to_minor == (1, 0) and transposed.format.layout.major_to_minor == (0, 1)
    same(total, a + a)
    same(transposed, np.ascontiguousarray(a.T))
    # Left to the compiler, a transpose moves nothing.
    compiled = jax.jit(lambda x: x.T * 2, out_shardings=Format(Layout.AUTO)).lower(a).compile()
    assert compiled.output_formats.layout.major_to_minor == (1, 0), compiled.output_formats
    same(compiled(a), a.T * 2)
    loaded = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    assert loaded(a).format.layout.major_to_minor == (1, 0)
    same(loaded(a), a.T * 2)
    # In place, where both lie alike.
    given = jax.device_put(a, turned)
    same(jax.jit(lambda x: x * 2, in_shardings=turned, out_shardings=turned, donate_argnums=0)(given), a * 2)
    assert given.is_deleted()
    fails(lambda: jax.jit(lambda x: x, out_shardings=Format(Layout((0, 1), ((8, 128),)), device))(a), "layout")


@check
def more_than_there_is_memory_for_is_an_error():
    statistics = jax.devices()[0].memory_stats()
    assert 0 < statistics["bytes_reservable_limit"] <= statistics["bytes_limit"], statistics
    fails(lambda: jnp.zeros(statistics["bytes_limit"] // 4 + 1, np.float32), "RESOURCE_EXHAUSTED")
    fails(lambda: jnp.zeros(1 << 45, np.float32), "RESOURCE_EXHAUSTED")
    same(jax.jit(lambda x: x + 1)(np.float32(1)), np.float32(2))


@check
def devices_are_named_by_their_platform():
    device = jax.devices()[0]
    assert str(device) == f"{device.platform}:0" and repr(device) == f"{device.platform.capitalize()}Device(id=0)"


@check
def constants_without_elements():
    """Writers leave the element of a splat in the data of a constant that has none."""
    from jaxlib import _jax
    from jaxlib.mlir._mlir_libs import _stablehlo

    for element, value in [("f32", "1.0"), ("i1", "true")]:
        text = f"""func.func @main() -> tensor<0x3x{element}> {{
          %0 = stablehlo.constant dense<{value}> : tensor<0x3x{element}>
          return %0 : tensor<0x3x{element}> }}"""
        code = _stablehlo.serialize_portable_artifact_str(text, "1.13.0")
        devices = _jax.DeviceList(tuple(jax.devices()))
        loaded = jax.devices()[0].client.compile_and_load(code, devices, _jax.CompileOptions())
        result, = loaded.execute_sharded([]).disassemble_into_single_device_arrays()
        assert result[0].shape == (0, 3), result


if __name__ == "__main__":
    sys.exit(main())
