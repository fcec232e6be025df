"""Custom calls under JAX: callbacks into Python, LAPACK's handlers, libraries of `jax.ffi` users.

Usage: JAX_PLATFORMS=hlo,cpu python ffi.py    (HLO_CUSTOM_CALLS=registered: jaxlib's LAPACK instead of what is built in)

Callbacks need JAX's own back end beside the plugin: JAX puts their arguments there.

What a check claims is its name. Those that compile a library say that they skip without g++.
"""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile

os.environ.setdefault("JAX_ENABLE_X64", "1")

import jax
import jax.numpy as jnp
import numpy as np

from checks import check, main


def close(got, wanted, tolerance=1e-10):
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=tolerance, atol=tolerance)


@check
def pure_callbacks_give_what_python_gives():
    def host(x, n):
        return np.sin(x) * n

    @jax.jit
    def f(x):
        y = jax.pure_callback(host, jax.ShapeDtypeStruct(x.shape, x.dtype), x * 2, np.float64(3))
        return y + 1

    x = np.linspace(0, 1, 6).reshape(2, 3)
    close(f(x), np.sin(x * 2) * 3 + 1)
    close(f(x.T), np.sin(x.T * 2) * 3 + 1)


@check
def callbacks_take_and_give_elements_below_8_bits():
    import ml_dtypes

    for name in ("int2", "int4", "uint2", "uint4", "float4_e2m1fn"):
        dtype = np.dtype(getattr(ml_dtypes, name, None) or getattr(jnp, name))
        low = 0 if name.startswith("u") else -2
        x = np.arange(low, low + 4).astype(dtype)[np.array([[0, 1, 2], [3, 3, 1]])]
        seen = []

        def host(x):
            seen.append(x)
            return np.asfortranarray(np.flip(x))

        y = jax.jit(lambda x: jax.pure_callback(host, jax.ShapeDtypeStruct(x.shape, x.dtype), x))(x)
        assert seen[0].dtype == dtype, seen
        np.testing.assert_array_equal(seen[0].astype(np.float32), x.astype(np.float32))
        np.testing.assert_array_equal(np.asarray(y).astype(np.float32), np.flip(x).astype(np.float32))


@check
def buffer_callbacks_read_and_write_where_arrays_lie():
    from jax.experimental import buffer_callback

    refused = []

    def host(ctx, out, x):
        assert ctx.stage == buffer_callback.ExecutionStage.EXECUTE, ctx.stage
        try:
            ctx.stream
        except jax.errors.JaxRuntimeError as error:  # an error of this plugin, which jaxlib takes apart
            refused.append(str(error))
        assert (x.shape, x.dtype, x.writeable, out.writeable) == ((2, 3), np.float32, False, True)
        np.asarray(out)[...] = np.asarray(x) + np.from_dlpack(x)

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    f = buffer_callback.buffer_callback(host, jax.ShapeDtypeStruct(x.shape, x.dtype))
    for _ in range(3):
        np.testing.assert_array_equal(jax.jit(lambda x: f(x) + 1)(x), x * 2 + 1)
    assert refused and all("UNIMPLEMENTED" in text and "there is no stream" in text for text in refused), refused


@check
def io_callbacks_happen():
    from jax.experimental import io_callback

    seen = []
    jax.jit(lambda x: io_callback(lambda v: seen.append(float(v)), None, x))(np.float32(2.5))
    jax.effects_barrier()
    assert seen == [2.5], seen


@check
def callbacks_in_loops_happen_each_time():
    seen = []

    @jax.jit
    def f(n):
        def body(i, x):
            jax.debug.callback(lambda v: seen.append(int(v)), i)
            return x + i

        return jax.lax.fori_loop(0, n, body, 0)

    assert int(f(5)) == 10
    jax.effects_barrier()
    assert sorted(seen) == [0, 1, 2, 3, 4], seen


@check
def debug_print_prints():
    import contextlib
    import io

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        jax.jit(lambda x: jax.debug.print("x is {x}", x=x))(np.int32(5))
        jax.effects_barrier()
    assert out.getvalue() == "x is 5\n", out.getvalue()


@check
def ordered_callbacks_happen_in_order():
    from jax.experimental import io_callback

    seen = []
    note = lambda v: seen.append(int(v)) or np.int32(len(seen))

    @jax.jit
    def f(x):
        first = io_callback(note, jax.ShapeDtypeStruct((), np.int32), x, ordered=True)
        second = io_callback(note, jax.ShapeDtypeStruct((), np.int32), x + 10, ordered=True)
        return first, second

    for n in range(3):
        assert [int(r) for r in f(np.int32(n))] == [2 * n + 1, 2 * n + 2]
    jax.effects_barrier()
    assert seen == [0, 10, 1, 11, 2, 12], seen


@check
def ordered_prints_keep_their_order():
    import contextlib
    import io

    @jax.jit
    def f(n):
        def body(i, x):
            jax.debug.print("step {i}", i=i, ordered=True)
            return x + i

        return jax.lax.fori_loop(0, n, body, 0)

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert int(f(4)) == 6
        jax.jit(lambda x: jax.debug.print("then {x}", x=x, ordered=True))(np.int32(7))
        jax.effects_barrier()
    assert out.getvalue() == "step 0\nstep 1\nstep 2\nstep 3\nthen 7\n", out.getvalue()


@check
def ordered_callbacks_in_shard_map():
    """Tokens are among what a computation of Shardy's takes and gives: the one type that programs have in StableHLO's own encoding."""
    from jax.experimental import io_callback
    from jax.sharding import Mesh, PartitionSpec as P

    seen = []

    def note(x):
        seen.append(x.tolist())

    def f(x):
        io_callback(note, None, x, ordered=True)
        io_callback(note, None, x + 1, ordered=True)
        return x * 2

    mesh = Mesh(np.array(jax.devices()), ("x",))
    y = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x")))(np.arange(2.0))
    jax.effects_barrier()
    close(y, [0, 2])
    assert seen == [[0, 1], [1, 2]], seen


@check
def exceptions_in_callbacks_are_errors():
    def wrong(x):
        raise RuntimeError("nothing of the kind")

    f = jax.jit(lambda x: jax.pure_callback(wrong, jax.ShapeDtypeStruct((), np.float32), x))
    try:
        np.asarray(f(np.float32(1)))
    except Exception as error:
        assert "nothing of the kind" in str(error), error
    else:
        raise AssertionError("no error")
    assert float(jax.jit(lambda x: x + 1)(np.float32(1))) == 2.0


@check
def decompositions_are_right():
    rng = np.random.default_rng(0)
    for dtype, tolerance in ((np.float64, 1e-9), (np.float32, 1e-3), (np.complex128, 1e-9)):
        a = rng.standard_normal((2, 5, 5)).astype(dtype)
        if np.iscomplexobj(a):
            a = a + 1j * rng.standard_normal((2, 5, 5))
        h = a @ np.conj(np.swapaxes(a, -1, -2)) + 5 * np.eye(5, dtype=dtype)
        low = np.asarray(jnp.linalg.cholesky(h))
        close(low @ np.conj(np.swapaxes(low, -1, -2)), h, tolerance)
        q, r = jax.jit(jnp.linalg.qr)(a)
        close(q @ r, a, tolerance)
        u, s, v = jnp.linalg.svd(a)
        close((u * np.asarray(s)[:, None, :]) @ v, a, tolerance)
        w, e = jnp.linalg.eigh(h)
        close((e * np.asarray(w)[:, None, :]) @ np.conj(np.swapaxes(e, -1, -2)), h, tolerance)
        close(a @ jnp.linalg.solve(a, h), h, tolerance)


@check
def what_lapack_has_beside_runs():
    a = np.random.default_rng(1).standard_normal((4, 4))
    values, vectors = jnp.linalg.eig(a)
    close(a @ np.asarray(vectors), np.asarray(vectors) * np.asarray(values), 1e-9)
    t, q = jax.scipy.linalg.schur(a)
    close(np.asarray(q) @ np.asarray(t) @ np.asarray(q).T, a, 1e-9)
    h, q = jax.scipy.linalg.hessenberg(a, calc_q=True)
    close(np.asarray(q) @ np.asarray(h) @ np.asarray(q).T, a, 1e-9)


@check
def each_of_jaxlibs_lapack_handlers_runs():
    """All handlers that jaxlib registers for its LAPACK are called, in each type that they are there for."""
    from jax.lax import linalg
    from jaxlib.cpu import _lapack

    dagger = lambda x: np.conj(np.swapaxes(np.asarray(x), -1, -2))
    called = set()

    def run(f, *args):
        called.update(re.findall(r"@(\w+_ffi)\b", jax.jit(f).lower(*args).as_text()))
        return jax.tree.map(np.asarray, jax.jit(f)(*args))

    rng = np.random.default_rng(2)
    for dtype, tolerance in ((np.float32, 1e-3), (np.float64, 1e-9), (np.complex64, 1e-3), (np.complex128, 1e-9)):
        near = lambda got, wanted: close(got, wanted, tolerance)
        a = rng.standard_normal((2, 4, 4))
        if np.issubdtype(dtype, np.complexfloating):
            a = a + 1j * rng.standard_normal((2, 4, 4))
        a = a.astype(dtype)
        h = (a @ dagger(a) + 4 * np.eye(4)).astype(dtype)
        low = run(lambda x: linalg.cholesky(x), h)
        near(low @ dagger(low), h)
        near(low @ run(lambda l, b: linalg.triangular_solve(l, b, left_side=True, lower=True), low, h), h)
        lu, _, order = run(lambda x: linalg.lu(x), a)
        unit = np.tril(lu, -1) + np.eye(4, dtype=dtype)
        near(unit @ np.triu(lu), np.take_along_axis(a, order[..., None], -2))
        q, r = run(lambda x: linalg.qr(x, full_matrices=False), a)
        near(q @ r, a)
        q, r, order = run(lambda x: linalg.qr(x, pivoting=True), a)
        near(q @ r, np.take_along_axis(a, order[:, None, :], -1))
        for algorithm in (linalg.SvdAlgorithm.DEFAULT, linalg.SvdAlgorithm.QR):
            u, s, v = run(lambda x: linalg.svd(x, full_matrices=False, algorithm=algorithm), a)
            near((u * s[:, None, :]) @ v, a)
        e, w = run(lambda x: linalg.eigh(x, symmetrize_input=False), h)
        near((e * w[:, None, :]) @ dagger(e), h)
        w, _, e = run(lambda x: linalg.eig(x), a)
        near(a @ e, e * w[:, None, :])
        t, q = run(lambda x: linalg.schur(x), a)
        near(q @ t @ dagger(q), a)
        packed, taus = run(lambda x: linalg.hessenberg(x), a)
        q = np.zeros_like(a)
        q[:, 0, 0] = 1
        q[:, 1:, 1:] = run(lambda x, t: linalg.householder_product(x, t), packed[:, 1:, :-1], taus)
        near(q @ np.triu(packed, -1) @ dagger(q), a)
        _, diagonal, beside, _ = run(lambda x: linalg.tridiagonal(x), h)
        near(diagonal.sum(-1) + 0j, np.trace(h, axis1=-2, axis2=-1) + 0j)
        near((diagonal**2).sum(-1) + 2 * (np.abs(beside) ** 2).sum(-1), (np.abs(h) ** 2).sum((-2, -1)))
        below, middle, above = (np.copy(np.diagonal(np.roll(h, shift, -1), axis1=-2, axis2=-1)) for shift in (1, 0, -1))
        below[:, 0], above[:, -1] = 0, 0
        x = run(lambda *args: linalg.tridiagonal_solve(*args), below, middle, above, a)
        matrix = np.zeros_like(a)
        for i in range(4):
            matrix[:, i, i] = middle[:, i]
            if i > 0:
                matrix[:, i, i - 1], matrix[:, i - 1, i] = below[:, i], above[:, i - 1]
        near(matrix @ x, a)
        if not np.issubdtype(dtype, np.complexfloating):
            x = run(lambda *args: linalg.tridiagonal_solve(*args, perturb_singular=True), below, middle, above, a)
            near(matrix @ x, a)
        packed, taus = run(lambda x: jnp.linalg.qr(x, mode="raw"), a)
        packed = np.swapaxes(packed, -1, -2)
        q = run(lambda x, t: linalg.householder_product(x, t), packed, taus)
        near(run(lambda p, t, c: linalg.ormqr(p, t, c), packed, taus, h), q @ h)
    missing = set(_lapack.registrations()) - called
    assert not missing, sorted(missing)


SOURCE = r"""
#include <memory>
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;
static ffi::Error Scale(float by, ffi::Buffer<ffi::F32> x, ffi::Result<ffi::Buffer<ffi::F32>> y) {
  if (by == 0) return ffi::Error::InvalidArgument("by nothing");
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = by * x.typed_data()[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(scale, Scale, ffi::Ffi::Bind().Attr<float>("by").Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
struct Count { static ffi::TypeId id; static ffi::TypeInfo info; int n = 0; };
ffi::TypeId Count::id = {};
ffi::TypeInfo Count::info = ffi::MakeTypeInfo<Count>();
static ffi::ErrorOr<std::unique_ptr<Count>> Make() { return std::make_unique<Count>(); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(make, Make, ffi::Ffi::BindInstantiate());
static ffi::Error Next(Count* count, ffi::ResultBufferR0<ffi::S32> n) { *n->typed_data() = count->n++; return ffi::Error::Success(); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(next, Next, ffi::Ffi::Bind().Ctx<ffi::State<Count>>().Ret<ffi::BufferR0<ffi::S32>>());
extern "C" XLA_FFI_TypeId* count_id() { return &Count::id; }
extern "C" const XLA_FFI_TypeInfo* count_info() { return &Count::info; }
"""


def capsule(address):
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make(address, None, None)


@check
def libraries_of_users_run():
    if not shutil.which("g++"):
        print("skipped: there is no g++")
        return
    with tempfile.TemporaryDirectory() as folder:
        source, library = os.path.join(folder, "f.cc"), os.path.join(folder, "f.so")
        with open(source, "w") as file:
            file.write(SOURCE)
        command = ["g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-I" + jax.ffi.include_dir(), source, "-o", library]
        subprocess.run(command, check=True)
        loaded = ctypes.CDLL(library)
        jax.ffi.register_ffi_target("users_scale", jax.ffi.pycapsule(loaded.scale), platform="cpu")
        call = jax.ffi.ffi_call("users_scale", jax.ShapeDtypeStruct((3,), np.float32))
        x = np.array([1, 2, 3], np.float32)
        close(jax.jit(lambda x: call(x, by=np.float32(2.5)) + 1)(x), x * 2.5 + 1)
        try:
            np.asarray(jax.jit(lambda x: call(x, by=np.float32(0)))(x))
        except Exception as error:
            assert "by nothing" in str(error), error
        else:
            raise AssertionError("no error")

        loaded.count_id.restype = loaded.count_info.restype = ctypes.c_void_p
        of_type = {"type_id": capsule(loaded.count_id()), "type_info": capsule(loaded.count_info())}
        jax.ffi.register_ffi_type("users_count", of_type, platform="cpu")
        stages = {"instantiate": jax.ffi.pycapsule(loaded.make), "execute": jax.ffi.pycapsule(loaded.next)}
        jax.ffi.register_ffi_target("users_next", stages, platform="cpu")
        count = jax.jit(lambda: jax.ffi.ffi_call("users_next", jax.ShapeDtypeStruct((), np.int32), has_side_effect=True)())
        assert [int(count()) for _ in range(3)] == [0, 1, 2]


if __name__ == "__main__":
    sys.exit(main())
