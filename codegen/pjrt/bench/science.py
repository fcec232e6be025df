"""A Gaussian process, molecular dynamics with neighbour lists, and a reaction-diffusion equation, in plain JAX."""

import jax
import jax.numpy as jnp
import made
import numpy as np
from jax.scipy.linalg import solve_triangular


def gaussian_process():
    """Gaussian process, 512 points in f64: marginal likelihood, its gradient, and 128 predictions"""
    rng = np.random.default_rng(1)
    points, queries = rng.uniform(-2, 2, (512, 3)), rng.uniform(-2, 2, (128, 3))
    values = np.sin(2 * points).sum(1) + 0.1 * rng.standard_normal(512)
    logs = {"scales": np.zeros(3), "amplitude": np.zeros(()), "noise": np.array(-2.0)}

    def kernel(logs, a, b):
        a, b = a / jnp.exp(logs["scales"]), b / jnp.exp(logs["scales"])
        squares = ((a[:, None, :] - b[None, :, :]) ** 2).sum(-1)
        return jnp.exp(logs["amplitude"] - squares / 2)

    def solved(logs, points, values):
        covariance = kernel(logs, points, points) + jnp.exp(2 * logs["noise"]) * jnp.eye(len(points))
        factor = jnp.linalg.cholesky(covariance)
        return factor, solve_triangular(factor, values, lower=True)

    def loss(logs, points, values):
        factor, white = solved(logs, points, values)
        return (white**2).sum() / 2 + jnp.log(jnp.diag(factor)).sum() + len(points) * np.log(2 * np.pi) / 2

    def fit_and_predict(logs, points, values, queries):
        likelihood, gradient = jax.value_and_grad(loss)(logs, points, values)
        factor, white = solved(logs, points, values)
        cross = solve_triangular(factor, kernel(logs, points, queries), lower=True)
        variance = jnp.exp(logs["amplitude"]) - (cross**2).sum(0)
        return likelihood, gradient, cross.T @ white, variance

    return made.Model(fit_and_predict, (logs, points, values, queries), x64=True)


# Lennard-Jones particles in units of their size: cut off at 2.5, lists up to 2.8, cells of at least that.
CUT, REACH, DENSITY = 2.5, 2.8, 0.8
SIDE, CELLS, PER_CELL, NEIGHBOURS = 16, 6, 48, 112
COUNT = SIDE**3
BOX = (COUNT / DENSITY) ** (1 / 3)


def _apart(a, b):
    """From b to a by the shortest way in the periodic box."""
    d = a - b
    return d - BOX * jnp.round(d / BOX)


def _lists(positions):
    """Of each particle the others within `REACH`, [COUNT, NEIGHBOURS], filled up with COUNT; and the most that one has."""
    cell = jnp.minimum((positions * (CELLS / BOX)).astype(jnp.int32), CELLS - 1)
    flat = (cell[:, 0] * CELLS + cell[:, 1]) * CELLS + cell[:, 2]
    order = jnp.argsort(flat)
    sorted_cells = flat[order]
    rank = jnp.arange(COUNT) - jnp.searchsorted(sorted_cells, sorted_cells)
    members = jnp.full((CELLS**3, PER_CELL), COUNT).at[sorted_cells, rank].set(order, mode="drop")
    steps = np.stack(np.meshgrid(*[[-1, 0, 1]] * 3, indexing="ij"), -1).reshape(-1, 3)
    around = (cell[:, None, :] + steps) % CELLS
    near = members[(around[..., 0] * CELLS + around[..., 1]) * CELLS + around[..., 2]].reshape(COUNT, -1)
    far = jnp.concatenate([positions, jnp.full((1, 3), jnp.inf)])[near]
    squares = (_apart(positions[:, None], jnp.where(jnp.isinf(far), 0, far)) ** 2).sum(-1)
    taken = (near < COUNT) & (near != jnp.arange(COUNT)[:, None]) & (squares < REACH**2)
    slot = jnp.where(taken, jnp.cumsum(taken, axis=1) - 1, NEIGHBOURS)
    rows = jnp.broadcast_to(jnp.arange(COUNT)[:, None], slot.shape)
    lists = jnp.full((COUNT, NEIGHBOURS), COUNT).at[rows, slot].set(near, mode="drop")
    return lists, taken.sum(1).max()


def _energy(positions, lists):
    there = lists < COUNT
    d = _apart(positions[:, None], positions[jnp.where(there, lists, 0)])
    squares = jnp.where(there, (d**2).sum(-1), 2 * CUT**2)
    sixth = squares**-3
    return jnp.where(squares < CUT**2, 2 * (sixth**2 - sixth), 0).sum()


def molecular_dynamics():
    """Lennard-Jones liquid, 4,096 particles: neighbour lists by cells, then 10 steps of velocity Verlet"""
    grid = np.stack(np.meshgrid(*[np.arange(SIDE)] * 3, indexing="ij"), -1).reshape(-1, 3)
    positions = ((grid + 0.5) * (BOX / SIDE) + 0.05 * made.normal(COUNT, 3)).astype(np.float32)
    positions %= np.float32(BOX)
    velocities = made.normal(COUNT, 3, seed=2)
    velocities -= velocities.mean(0)
    step = 0.002

    def advance(positions, velocities):
        lists, most = _lists(positions)
        force = lambda positions: -jax.grad(_energy)(positions, lists)

        def verlet(_, state):
            positions, velocities, forces = state
            velocities = velocities + step / 2 * forces
            positions = (positions + step * velocities) % BOX
            forces = force(positions)
            return positions, velocities + step / 2 * forces, forces

        positions, velocities, _ = jax.lax.fori_loop(0, 10, verlet, (positions, velocities, force(positions)))
        energy = _energy(positions, lists) + (velocities**2).sum() / 2
        return positions, velocities, energy, most

    return made.Model(advance, (positions, velocities), carried=2)


def reaction_diffusion():
    """Gray-Scott equation on 512 x 512, 100 steps (fori_loop)"""
    u, v = np.ones((512, 512), np.float32), np.zeros((512, 512), np.float32)
    u[192:320, 192:320], v[192:320, 192:320] = 0.5, 0.25
    u, v = u + 0.01 * made.normal(512, 512), v + 0.01 * np.abs(made.normal(512, 512, seed=2))

    def laplacian(x):
        return jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + jnp.roll(x, 1, 1) + jnp.roll(x, -1, 1) - 4 * x

    def advance(u, v):
        def step(_, state):
            u, v = state
            reaction = u * v * v
            return u + 0.16 * laplacian(u) - reaction + 0.035 * (1 - u), v + 0.08 * laplacian(v) + reaction - 0.095 * v

        return jax.lax.fori_loop(0, 100, step, (u, v))

    return made.Model(advance, (u, v), carried=2)


MODELS = {
    "gaussian_process": gaussian_process,
    "molecular_dynamics": molecular_dynamics,
    "reaction_diffusion": reaction_diffusion,
}
