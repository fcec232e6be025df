"""Check mode: what is right is let through, what is wrong is found, blamed and saved; and the plugin for pytest.

Usage: python checked.py

What is wrong here is a Cholesky factorization of the user's own, which is registered under the name of LAPACK's: with HLO_CUSTOM_CALLS=registered it takes the place of the one that is built in, against which it is judged.
Every check runs in a process of its own, since JAX has one platform a process.
"""

import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import hlo_ref
from checks import check, main

HERE = pathlib.Path(__file__).resolve().parent

WRONG_CHOLESKY = '''
import ctypes
import numpy as np
import hlo_ref
import jax_plugins.hlo
from jax_plugins.hlo import frames

jax_plugins.hlo._forward = lambda handlers: None  # no handlers but this one
API = frames.Api(hlo_ref.library())

def factor(frame):
    frame = frame.contents
    if frame.extension_start:
        version = frames.MetadataExtension.from_address(frame.extension_start).metadata.contents.version
        version.major, version.minor = 0, 3
        return None
    array = lambda b, t: np.frombuffer((ctypes.c_char * (4 * int(np.prod(b.dims[:b.rank])))).from_address(b.data), t).reshape(b.dims[:b.rank])
    x, out, info = frame.args.values[0].contents, frame.rets.values[0].contents, frame.rets.values[1].contents
    array(out, np.float32)[...] = np.linalg.cholesky(array(x, np.float32)) * np.float32(1.001)
    ctypes.c_int.from_address(info.data).value = 0
    return None

KEPT = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(frames.Frame))(factor)
API.register("lapack_spotrf_ffi", frames.Bundle(execute=ctypes.cast(KEPT, ctypes.c_void_p)))

import jax
import jax.numpy as jnp

def f(a):
    b = a @ a.T + 3 * jnp.eye(3)
    low = jax.lax.linalg.cholesky(b, symmetrize_input=False)  # this line
    return low * 2
'''


REGISTERED = {"HLO_CUSTOM_CALLS": "registered"}


def python(code, **settings):
    env = {**os.environ, "JAX_PLATFORMS": "hlo", "HLO_MODE": "check", **settings}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)


@check
def what_is_right_is_let_through():
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log.jsonl")
        code = """
import jax, jax.numpy as jnp, numpy as np
x = np.random.default_rng(0).normal(size=(30, 20)).astype(np.float32)
step = jax.jit(lambda w, x: (jnp.tanh(x @ w).sum(0), w * 0.5), donate_argnums=0)
w = jnp.asarray(x.T[:, :4])
for _ in range(3):
    y, w = step(w, x)
jax.jit(lambda x: jnp.sort(jnp.exp(x), axis=0))(x)
print("done")
"""
        done = python(code, HLO_CHECK_LOG=log)
        assert done.stdout == "done\n", done.stderr
        records = [json.loads(line) for line in open(log)]
        judged = [r for r in records if r["program"] == "jit__lambda"]
        assert len(judged) == 4 and all(r["verdict"] in ("same bits", "explained") for r in records), records
        assert sum(judged[0]["elements"].values()) == 4 + 80, judged[0]
        # A sample: the first execution of three, of the other program its only one.
        os.unlink(log)
        python(code, HLO_CHECK_LOG=log, HLO_CHECK="1/3")
        assert sum(json.loads(line)["program"] == "jit__lambda" for line in open(log)) == 2


@check
def what_is_wrong_is_raised_with_its_line_and_saved():
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "script.py")
        with open(script, "w") as file:
            file.write(WRONG_CHOLESKY + "\njax.jit(f)(np.arange(9, dtype=np.float32).reshape(3, 3) / 8)\n")
        env = {**os.environ, **REGISTERED, "JAX_PLATFORMS": "hlo", "HLO_MODE": "check", "HLO_CHECK_SAVE": folder}
        done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, check=False)
        line = 1 + (WRONG_CHOLESKY[: WRONG_CHOLESKY.index("# this line")]).count("\n")
        assert done.returncode, done.stdout
        for word in ("hlo check:", "elements of result 0", "are wrong", f"{script}:{line}", "saved:"):
            assert word in done.stderr, (word, done.stderr[-2000:])
        saved, = pathlib.Path(folder).glob("hlo-mismatch-*")
        assert sorted(p.name for p in saved.iterdir()) == ["actual.npz", "expected.npz", "finding.json", "inputs.npz", "module.hlo"]
        # The folder says what was recorded; the compiler by itself, with the factorization that is built in, is right.
        recorded = subprocess.run(
            [hlo_ref.program(), "run", str(saved / "module.hlo"), "--inputs", str(saved / "inputs.npz"), "--platform", f"recorded:{saved / 'actual.npz'}", "--allow", "none", "--save-mismatch", "none"],
            capture_output=True, text=True, check=False,
        )
        assert recorded.returncode == 1 and "WRONG" in recorded.stdout, recorded.stdout + recorded.stderr
        repeated = subprocess.run([hlo_ref.program(), "run", str(saved)], capture_output=True, text=True, check=False)
        assert repeated.returncode == 0, repeated.stdout + repeated.stderr


@check
def what_is_wrong_is_logged():
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log.jsonl")
        code = WRONG_CHOLESKY + "\nprint(jax.jit(f)(np.eye(3, dtype=np.float32)).shape)\n"
        done = python(code, **REGISTERED, HLO_CHECK_ACTION="log", HLO_CHECK_SAVE="none", HLO_CHECK_LOG=log)
        assert done.stdout == "(3, 3)\n" and "hlo: check:" in done.stderr, done.stderr
        wrong, = [r for r in map(json.loads, open(log)) if r["verdict"] == "wrong"]
        assert wrong["elements"]["wrong"] >= 3 and "saved" not in wrong, wrong


@check
def callbacks_are_not_judged_and_said_to_be():
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log.jsonl")
        code = """
import jax, numpy as np
seen = []
def host(x):
    seen.append(1)
    return np.sin(x)
print(jax.jit(lambda x: jax.pure_callback(host, jax.ShapeDtypeStruct((), np.float32), x))(np.float32(0)), len(seen))
"""
        done = python(code, JAX_PLATFORMS="hlo,cpu", HLO_CHECK_LOG=log)
        assert done.stdout == "0.0 1\n", done.stdout + done.stderr
        assert any(r["verdict"] == "not judged" and "xla_ffi_python_cpu_callback" in r["reason"] for r in map(json.loads, open(log)))


@check
def several_devices_are_judged():
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log.jsonl")
        code = """
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), ("x",))
a = jax.device_put(np.arange(8, dtype=np.float32), NamedSharding(mesh, P("x")))
jax.jit(lambda a: a * 3 + a.sum())(a)
jax.jit(jax.shard_map(lambda s: s / jax.lax.psum(s, "x"), mesh=mesh, in_specs=P("x"), out_specs=P("x")))(a)
print("done")
"""
        done = python(code, HLO_NUM_DEVICES="4", HLO_CHECK_LOG=log)
        assert done.stdout == "done\n", done.stderr
        judged = [r for r in map(json.loads, open(log)) if r["program"] == "jit__lambda"]
        assert [sum(r["elements"].values()) for r in judged] == [8, 32], judged
        assert all(r["verdict"] in ("same bits", "explained") for r in judged), judged


@check
def settings_that_are_none_are_refused():
    for settings, word in (({"HLO_MODE": "chek"}, "chek"), ({"HLO_CHECK": "2/3"}, "HLO_CHECK"), ({"HLO_CHECK_ACTION": "cry"}, "raise")):
        done = python("import jax; jax.devices()", **settings)
        assert done.returncode and word in done.stderr, (settings, done.stderr[-500:])


@check
def pytest_judges_a_suite():
    with tempfile.TemporaryDirectory() as folder:
        test = pathlib.Path(folder) / "test_numbers.py"
        test.write_text("""
import os
import jax, jax.numpy as jnp, numpy as np

def test_right():
    assert jax.default_backend() == "cpu" and os.environ["HLO_MODE"] == "check"
    assert float(jnp.exp(jnp.float32(0))) == 1

def test_more():
    jax.jit(lambda x: jnp.sum(jnp.tanh(x)))(np.ones(10, np.float32))
""")
        # Where the package is not installed, there are no entry points, and the plugin is named.
        is_known = any(entry.value == "hlo_ref.pytest_plugin" for entry in importlib.metadata.entry_points(group="pytest11"))
        named = [] if is_known else ["-p", "hlo_ref.pytest_plugin"]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *named, str(test)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env={**os.environ, "JAX_PLATFORMS": "cpu"})
        assert "hlo-check" not in done.stdout, done.stdout
        env = {k: v for k, v in os.environ.items() if k != "JAX_PLATFORMS"}
        done = subprocess.run([*command, "--hlo-check"], capture_output=True, text=True, check=False, cwd=folder, env=env)
        assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr
        assert "executions judged of" in done.stdout and "wrong" in done.stdout, done.stdout


if __name__ == "__main__":
    sys.exit(main())
