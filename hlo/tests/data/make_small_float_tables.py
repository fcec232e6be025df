#!/usr/bin/env python3
"""Writes small_float_tables.txt from ml_dtypes, the C++ library that XLA itself uses for these types.

    python3 make_small_float_tables.py > small_float_tables.txt        (needs numpy and ml_dtypes >= 0.6)

Per type, one line each (numbers in hexadecimal, runs as `start:code`, a run lasts until the next start):
    NAME decode BITS...      the f32 pattern of each code; NaN as `nan`
    NAME f16 RUNS...         the code of every f16 pattern, run-length encoded
    NAME bf16 RUNS...        the code of every bf16 pattern
    NAME f32 RUNS...         the code of every f32 pattern: between two adjacent bf16 patterns that differ, the exact
                             place is found by bisection; inside a bf16 interval with equal ends a monotone conversion
                             cannot change. Patterns that are NaN are left out.
"""
import ml_dtypes
import numpy as np

TYPES = {
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e4m3": ml_dtypes.float8_e4m3,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz,
    "f8e3m4": ml_dtypes.float8_e3m4,
    "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "f8e8m0fnu": ml_dtypes.float8_e8m0fnu,
    "f4e2m1fn": ml_dtypes.float4_e2m1fn,
    "f6e3m2fn": ml_dtypes.float6_e3m2fn,
    "f6e2m3fn": ml_dtypes.float6_e2m3fn,
}


def runs(codes):
    starts = [0] + [i for i in range(1, len(codes)) if codes[i] != codes[i - 1]]
    return " ".join(f"{i:x}:{codes[i]:x}" for i in starts)


def encode_f32(dtype, patterns):
    return np.asarray(patterns, np.uint32).view(np.float32).astype(dtype).view(np.uint8)


def f32_runs(dtype):
    out = []
    for sign in (0, 0x80000000):
        grid = np.arange(0, 0x7F800001, 0x10000, dtype=np.uint64) + sign
        codes = encode_f32(dtype, grid.astype(np.uint32))
        out.append((int(grid[0]), int(codes[0])))
        for i in np.nonzero(codes[1:] != codes[:-1])[0]:
            low, high = int(grid[i]), int(grid[i + 1])
            while int(codes[i + 1]) != out[-1][1]:  # several codes may begin between two bf16 patterns
                below, above = low, high
                while above - below > 1:
                    middle = (below + above) // 2
                    if int(encode_f32(dtype, [middle])[0]) == out[-1][1]:
                        below = middle
                    else:
                        above = middle
                out.append((above, int(encode_f32(dtype, [above])[0])))
                low = above
    return " ".join(f"{start:x}:{code:x}" for start, code in out)


with np.errstate(all="ignore"):
    for name, dtype in TYPES.items():
        bits = ml_dtypes.finfo(dtype).bits
        values = np.arange(1 << bits, dtype=np.uint8).view(dtype).astype(np.float32)
        patterns = values.view(np.uint32)
        print(name, "decode", *("nan" if np.isnan(v) else f"{p:x}" for v, p in zip(values, patterns)))
        every = np.arange(1 << 16, dtype=np.uint16)
        print(name, "f16", runs(every.view(np.float16).astype(dtype).view(np.uint8)))
        print(name, "bf16", runs(every.view(ml_dtypes.bfloat16).astype(dtype).view(np.uint8)))
        print(name, "f32", f32_runs(dtype))
