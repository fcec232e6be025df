"""A published library of XLA's FFI under JAX: jax-finufft (nonuniform FFT, compiled against headers of 0.1), as its wheel has it.

Usage: JAX_PLATFORMS=hlo,cpu python published.py    (skips where jax_finufft is not installed)
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

from checks import check, main

try:
    from jax_finufft import nufft1, nufft2, nufft3
except ImportError as error:
    print(f"skipped: {error} (pip install jax-finufft)")
    sys.exit(0)

POINTS, MODES, TOLERANCE = 1000, 32, 1e-6
RANDOM = np.random.default_rng(1)
X, Y = (2 * np.pi * RANDOM.random((2, POINTS))).astype(np.float32)
C = (RANDOM.normal(size=POINTS) + 1j * RANDOM.normal(size=POINTS)).astype(np.complex64)
K = np.arange(-MODES // 2, MODES // 2)


def near(got, wanted, within=2e-5):
    error = np.abs(np.asarray(got) - wanted).max() / np.abs(wanted).max()
    assert error < within, error


def phases(k, x, sign):
    return np.exp(sign * 1j * np.outer(k, x.astype(np.float64)))


@check
def points_to_modes():
    near(jax.jit(lambda c, x: nufft1(MODES, c, x, eps=TOLERANCE, iflag=1))(C, X), phases(K, X, 1) @ C)


@check
def points_to_modes_of_two_dimensions():
    got = jax.jit(lambda c, x, y: nufft1((MODES, MODES), c, x, y, eps=TOLERANCE, iflag=-1))(C, X, Y)
    near(got, np.einsum("kn,ln,n->kl", phases(K, X, -1), phases(K, Y, -1), C))


@check
def modes_to_points():
    modes = (phases(K, X, 1) @ C).astype(np.complex64)
    near(jax.jit(lambda f, x: nufft2(f, x, eps=TOLERANCE, iflag=-1))(modes, X), phases(X, K, -1) @ modes)


@check
def points_to_points():
    s = np.linspace(-5, 5, 40).astype(np.float32)
    near(jax.jit(lambda c, x, s: nufft3(c, x, s, eps=TOLERANCE, iflag=1))(C, X, s), phases(s, X, 1) @ C)


@check
def gradients():
    power = lambda x: jnp.sum(jnp.abs(nufft1(MODES, C, x, eps=TOLERANCE, iflag=1)) ** 2)
    modes = phases(K, X, 1) @ C
    wanted = 2 * np.real(np.conj(modes) @ (1j * K[:, None] * phases(K, X, 1) * C))
    near(jax.jit(jax.grad(power))(X), wanted, within=1e-4)


if __name__ == "__main__":
    sys.exit(main())
