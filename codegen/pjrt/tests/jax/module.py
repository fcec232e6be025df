"""The module `hlo_ref`: check, interpret, explain.

Usage: JAX_PLATFORMS=cpu python module.py
"""

import os
import sys
import tempfile

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

import hlo_ref
from checks import check, fails, main, same


def cancels(x):
    y = 1 + x
    z = y - 1
    return {"r": jnp.log(z) * 2, "s": jnp.sum(x)}


@check
def what_xla_computes_is_explained():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(12, 20)).astype(np.float32), rng.normal(size=(20, 5)).astype(np.float32)

    def layer(p, x):
        return {"y": jnp.tanh(x @ p["w"]), "norm": jnp.sqrt(jnp.sum(x * x))}

    report = hlo_ref.check(layer, {"w": b}, a, backend="cpu")
    assert report and report.ok and report.verdict in ("same bits", "explained"), str(report)
    assert sum(report.elements.values()) == 12 * 5 + 1, report.elements
    assert report.backend == "cpu" and report.blamed is None


@check
def what_no_rounding_explains_is_wrong_with_its_place():
    # XLA takes (1 + x) - 1 for x: it gathers the constants, which is a liberty. Without it no order of roundings gives that: the sum of 1 and 1e-6 in f32 is another number.
    x = np.array([1e-6, 2e-5], np.float32)
    with tempfile.TemporaryDirectory() as folder:
        assert hlo_ref.check(cancels, x, backend="cpu").verdict == "explained"
        report = hlo_ref.check(cancels, x, backend="cpu", save=folder, allow=["none"])
        assert report.verdict == "wrong" and not report, str(report)
        wrong, = [a for a in report.arrays if a.elements["wrong"]]
        assert wrong.path == "['r']" and wrong.worst[0]["class"] == "wrong", wrong
        assert os.path.exists(os.path.join(report.folder, "module.hlo")), report.folder
        try:
            hlo_ref.check(cancels, x, backend="cpu", raises=True, blame=False, allow=["none"])
        except hlo_ref.Wrong as error:
            assert error.report.verdict == "wrong" and "['r']" in str(error)
        else:
            raise AssertionError("nothing was raised")


@check
def an_instruction_that_is_wrong_by_itself_is_blamed_with_its_line():
    # With no liberties XLA's expm1, which is off by more than strict numerics allow, is what is blamed.
    x = np.linspace(-1, 1, 801).astype(np.float32)
    report = hlo_ref.check(lambda x: jnp.expm1(x) * 2, x, backend="cpu", allow=["none"], functions="table")
    assert report.verdict == "wrong" and report.blamed is not None, str(report)
    assert report.blamed.opcode == "exponential-minus-one", report.blamed
    assert report.blamed.place.file == __file__ and "jnp.expm1" in str(report.blamed.place), report.blamed
    # A function of somebody else's is of the line that has it checked.
    report = hlo_ref.check(jnp.expm1, x, backend="cpu", allow=["none"], functions="table")
    assert report.blamed.place.file == __file__, report.blamed


@check
def jitted_functions_and_keywords_and_keys():
    f = jax.jit(lambda x, *, n, key: x[:n] + jax.random.uniform(key, (3,)), static_argnames="n")
    fails(lambda: hlo_ref.check(f, jnp.ones(5), n=3, key=jax.random.key(1)), "static")
    g = lambda x, unused, key: (x[:3] + jax.random.uniform(key, (3,)), x.astype(jnp.bfloat16))
    report = hlo_ref.check(jax.jit(g), jnp.ones(5), jnp.zeros(7), key=jax.random.key(1), backend="cpu")
    assert report.ok and report.elements["same"] + report.elements["explained"] == 8, str(report)


@check
def what_cannot_be_checked_says_so():
    host = lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct((), np.float32), x)
    fails(lambda: hlo_ref.check(host, np.float32(1), backend="cpu"), "callback")
    fails(lambda: hlo_ref.interpret(host)(np.float32(1)), "Python")


@check
def interpreted_results_are_correctly_rounded():
    x = np.linspace(0.1, 3, 50, dtype=np.float32)
    got = hlo_ref.interpret(lambda x: {"a": [jnp.exp(x), jnp.sum(x)], "b": x.astype(jnp.bfloat16)})(x)
    same(got["a"][0], np.exp(x.astype(np.float64)).astype(np.float32))
    same(got["a"][1], np.float32(x.astype(np.float64).sum()))
    same(got["b"], x.astype(ml_dtypes.bfloat16))
    assert isinstance(got["a"], list)
    assert hlo_ref.interpret(lambda: ())() == ()
    key = hlo_ref.interpret(lambda k: jax.random.split(k)[0])(jax.random.key(3))
    same(jax.random.key_data(key), jax.random.key_data(jax.random.split(jax.random.key(3))[0]))


@check
def lines_that_lose_accuracy_are_named():
    found = hlo_ref.explain(cancels, np.array([1e-6, 2e-5, -1.0], np.float32))
    loss = found.losses[0]
    assert loss.instruction.opcode == "subtract" and "z = y - 1" in str(loss), str(found)
    assert loss.error_out > 1e5 > 1 > loss.error_in, loss
    birth, = [b for b in found.births if b.kind == "NaN"]
    assert birth.instruction.opcode == "log" and birth.count == 1 and "jnp.log(z)" in str(birth), str(found)
    assert len(found.results) == 2 and found.results[0] > 1e3 > 1 > found.results[1], found.results


@check
def births_in_loops_and_functions_are_found():
    def f(x):
        def body(i, c):
            return jnp.where(i == 2, c / (c - c), c * 0.5)

        return jax.lax.fori_loop(0, 5, body, x)

    found = hlo_ref.explain(f, np.float32(3))
    assert any(b.instruction.opcode == "divide" and "c / (c - c)" in str(b) for b in found.births), str(found)
    calm = hlo_ref.explain(lambda x: jnp.sin(x) * 2, np.float32(1))
    assert not calm.births and not calm.losses and "ulp" in str(calm), str(calm)


@check
def random_numbers_are_explained_too():
    found = hlo_ref.explain(lambda k: jax.random.normal(k, (4,)), jax.random.key(0))
    assert not found.unknown and not [b for b in found.births if b.kind == "NaN"], str(found)


if __name__ == "__main__":
    sys.exit(main())
