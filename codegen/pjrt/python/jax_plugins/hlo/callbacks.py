"""The handler of callbacks into Python: `jax.pure_callback`, `io_callback`, `debug.callback`, `debug.print`.

jaxlib has one, too, but hands out no more than one of its two stages, so this one takes the call frame apart by itself (docs/custom-calls.md says how it lies). JAX gives an execution its callables as user data.
"""

import ctypes

import ml_dtypes
import numpy as np

from . import frames

_TOKEN, _INTERNAL = 17, 13

_NAMES = {
    1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32", 9: "uint64",
    10: "float16", 11: "float32", 12: "float64", 15: "complex64", 18: "complex128",
}
_NARROW = {
    16: "bfloat16", 19: "float8_e5m2", 20: "float8_e4m3fn", 23: "float8_e4m3b11fnuz", 24: "float8_e5m2fnuz",
    25: "float8_e4m3fnuz", 28: "float8_e4m3", 29: "float8_e3m4", 33: "float8_e8m0fnu",
}
# Elements of 2 and 4 bits, which are packed in a buffer, the first in the lowest bits, and a byte each in numpy.
_PACKED = {21: ("int4", 4, True), 22: ("uint4", 4, False), 26: ("int2", 2, True), 27: ("uint2", 2, False), 32: ("float4_e2m1fn", 4, False)}
_DTYPES = {number: np.dtype(name) for number, name in _NAMES.items()}
_DTYPES |= {n: np.dtype(getattr(ml_dtypes, name)) for n, name in _NARROW.items() if hasattr(ml_dtypes, name)}
_DTYPES |= {n: np.dtype(getattr(ml_dtypes, name)) for n, (name, _, _) in _PACKED.items() if hasattr(ml_dtypes, name)}


def _memory(buffer, dtype):
    """The array that lies in a buffer, whose elements are whole bytes."""
    shape = buffer.dims[: buffer.rank] if buffer.rank else []
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if not size:
        return np.empty(shape, dtype)
    return np.frombuffer((ctypes.c_char * size).from_address(buffer.data), dtype=dtype).reshape(shape)


def _read(buffer):
    """A copy: callees keep what they are given, and the memory is the program's."""
    dtype = _DTYPES[buffer.dtype]
    memory = _memory(buffer, dtype)
    if buffer.dtype not in _PACKED:
        return memory.copy()
    _, bits, signed = _PACKED[buffer.dtype]
    packed = memory.view(np.uint8).reshape(-1)
    per_byte = 8 // bits
    number = np.arange(packed.size)
    elements = packed[number // per_byte] >> (bits * (number % per_byte)).astype(np.uint8) & np.uint8((1 << bits) - 1)
    if signed:
        shift = np.uint8(8 - bits)
        elements = ((elements << shift).view(np.int8) >> shift.view(np.int8)).view(np.uint8)
    return elements.view(dtype).reshape(memory.shape)


def _write(buffer, result):
    dtype = _DTYPES[buffer.dtype]
    memory = _memory(buffer, dtype)
    if buffer.dtype not in _PACKED:
        memory[...] = np.asarray(result).reshape(memory.shape)
        return
    _, bits, _ = _PACKED[buffer.dtype]
    elements = np.ascontiguousarray(np.asarray(result).astype(dtype, copy=False)).reshape(-1).view(np.uint8)
    per_byte = 8 // bits
    rows = np.zeros((-(-elements.size // per_byte), per_byte), np.uint8)
    rows.reshape(-1)[: elements.size] = elements & np.uint8((1 << bits) - 1)
    packed = np.bitwise_or.reduce(rows << (bits * np.arange(per_byte)).astype(np.uint8), axis=1)
    memory.view(np.uint8).reshape(-1)[: packed.size] = packed


def _call(api, frame):
    index = frame.attrs.values[0].contents.value.contents.value
    callbacks = frames.Callbacks.from_address(api.user_data(frame.ctx))
    if index >= callbacks.count:
        raise RuntimeError(f"there is no callback {index}: there are {callbacks.count}")
    callback = ctypes.cast(callbacks.callables[index], ctypes.py_object).value
    operands = []
    for n in range(frame.args.size):
        buffer = frame.args.values[n].contents
        operand = None
        if buffer.dtype != _TOKEN:
            operand = _read(buffer)
            operand.flags.writeable = False
        operands.append(operand)
    results = callback(*operands)
    for n in range(frame.rets.size):
        buffer = frame.rets.values[n].contents
        if buffer.dtype != _TOKEN:
            _write(buffer, results[n])


def handler(api):
    """The handler as a function of ctypes, which somebody has to keep: it may be called at any time."""

    def handle(frame):
        try:
            frame = frame.contents
            if not frames.answer_version(frame):
                _call(api, frame)
            return None
        except BaseException as error:
            return api.error(_INTERNAL, f"a callback into Python failed: {type(error).__name__}: {error}")

    return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(frames.Frame))(handle)
