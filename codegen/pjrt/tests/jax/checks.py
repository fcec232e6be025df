"""What the tests under JAX share: functions that are checks, whose names say what they claim, and running them."""

import sys
import traceback

import numpy as np

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def same(got, wanted):
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.dtype == wanted.dtype, (got.dtype, wanted.dtype)
    assert got.shape == wanted.shape, (got.shape, wanted.shape)
    assert got.tobytes() == wanted.tobytes(), (got, wanted)


def fails(function, *words):
    try:
        function()
    except Exception as error:  # whatever it is, it is none of Python's own
        text = str(error)
        for word in words:
            assert word in text, (word, text)
        return error
    raise AssertionError("no error")


def main():
    """Runs all checks, or those that are named; the exit code is the number of those that fail."""
    chosen, failed, ran = sys.argv[1:], 0, 0
    for function in CHECKS:
        if chosen and function.__name__ not in chosen:
            continue
        ran += 1
        try:
            function()
            print("ok    ", function.__name__, flush=True)
        except BaseException:
            failed += 1
            print("FAILED", function.__name__, flush=True)
            traceback.print_exc()
    print(f"{ran - failed} of {ran} passed")
    return min(failed, 100)
