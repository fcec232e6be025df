"""What a model is here, and how it gets its random weights: by numpy, so that nothing is compiled before the clock runs."""

import dataclasses
from collections.abc import Callable

import jax
import numpy as np


@dataclasses.dataclass
class Model:
    """`function(*arguments)`; its first `carried` arguments are donated, and its first results are those of the next call."""

    function: Callable
    arguments: tuple
    carried: int = 0
    x64: bool = False


def _values(rng, name, shape, dtype):
    """Weights as training would leave them, by the name of the leaf: `scale`, `bias`, moments of optimizers, and so on."""
    if np.issubdtype(dtype, np.integer):
        return np.full(shape, 1000, dtype)  # the count of an optimizer: in the midst of training
    values = rng.standard_normal(shape, dtype=np.float32)
    if name in ("nu", "var"):
        values = np.abs(values) * (1e-4 if name == "nu" else 0.1) + (1e-4 if name == "nu" else 1)
    elif name in ("mu", "trace"):
        values *= 1e-3
    elif name == "scale" or (name == "weight" and len(shape) == 1):
        values = 1 + 0.1 * values
    elif len(shape) < 2 or "bias" in name or "embedding" in name or "token" in name:
        values *= 0.02
    else:  # output features come first in equinox, last in flax
        inputs = np.prod(shape) / (shape[0] if name.startswith("weight") else shape[-1])
        values *= inputs**-0.5
    return values.astype(dtype)


def filled(shapes, seed=0):
    """A tree of arrays for a tree of shapes. The moments of optimizers are of the size that goes with gradients of 1e-2."""
    rng = np.random.default_rng(seed)

    def fill(path, leaf):
        names = [str(getattr(key, "name", getattr(key, "key", ""))) for key in path]
        moment = next((name for name in names if name in ("mu", "nu", "trace")), names[-1] if names else "")
        return _values(rng, moment, leaf.shape, leaf.dtype)

    return jax.tree_util.tree_map_with_path(fill, shapes)


def normal(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def integers(limit, *shape, seed=1):
    return np.random.default_rng(seed).integers(0, limit, shape, dtype=np.int32)
