"""Arrays in the `.npz` files that the program `hlo` reads and writes: types that numpy lacks are unsigned integers of the same bits; of less than a byte, the low bits."""

import numpy as np

_NATIVE = {"bool", "float16", "float32", "float64", "complex64", "complex128"}
_NATIVE |= {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_NARROW = {"int1": 1, "uint1": 1, "int2": 2, "uint2": 2, "int4": 4, "uint4": 4}


def to_file(array):
    array = np.asarray(array)
    name = array.dtype.name
    if name in _NATIVE:
        return array
    if name in _NARROW:
        return array.astype(np.int8).view(np.uint8) & np.uint8((1 << _NARROW[name]) - 1)
    return array.view(f"u{array.dtype.itemsize}")


def from_file(array, dtype):
    dtype = np.dtype(dtype)
    if array.dtype == dtype:
        return array
    if dtype.name in _NARROW:
        shift = 8 - _NARROW[dtype.name]
        wide = array.view(np.uint8) if dtype.name[0] == "u" else (array << shift).view(np.int8) >> shift
        return wide.astype(dtype)
    return array.view(dtype)


def save(path, prefix, arrays):
    np.savez(path, **{f"{prefix}{n}": to_file(array) for n, array in enumerate(arrays)})
