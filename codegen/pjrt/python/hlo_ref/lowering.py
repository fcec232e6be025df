"""Functions of JAX as programs: StableHLO with the places of its operations, and the arrays that it takes.

The program is what JAX lowers for its processor's back end, whatever runs the function: the same mathematics, without calls into another platform's libraries.
"""

import dataclasses
import os
from typing import Any

import jax
import numpy as np
from jax._src import source_info_util

# What is traced from here is of the line that called this package.
source_info_util.register_exclusion(os.path.dirname(os.path.abspath(__file__)) + os.sep)


@dataclasses.dataclass
class Lowered:
    text: str
    arguments: list  # numpy arrays, those that the program takes
    kept: list  # their positions among all leaves of the arguments
    out_tree: Any
    out_avals: list
    host_callbacks: list
    num_outputs: int


def jitted(f):
    return f if hasattr(f, "trace") and hasattr(f, "lower") else jax.jit(f, keep_unused=True)


def data(leaf):
    """A leaf of arguments or results as the array that programs have."""
    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return leaf


def lower(f, args, kwargs):
    lowered = jitted(f).trace(*args, **kwargs).lower(lowering_platforms=("cpu",))
    leaves = jax.tree.leaves((args, kwargs))
    if lowered.in_tree.num_leaves != len(leaves):
        raise TypeError(
            f"the function takes {lowered.in_tree.num_leaves} arrays of {len(leaves)} arguments: static arguments are to be bound before, by functools.partial"
        )
    known = lowered._lowering.compile_args
    kept = sorted(known["kept_var_idx"])
    if known["ordered_effects"]:
        raise NotImplementedError("functions with ordered effects (io_callback, debug.print) cannot be checked")
    infos = jax.tree.leaves(lowered.args_info)
    arrays = [np.asarray(data(leaf), data(leaf).dtype if hasattr(leaf, "dtype") else infos[n].dtype) for n, leaf in enumerate(leaves)]
    # JAX narrows what it is given, unless it was told to keep 64 bits.
    arrays = [a if a.dtype == want else a.astype(want) for a, want in ((a, jax.dtypes.canonicalize_dtype(a.dtype)) for a in arrays)]
    out_avals = known["global_out_avals"]
    return Lowered(
        text=lowered.as_text(debug_info=True),
        arguments=[arrays[n] for n in kept],
        kept=kept,
        out_tree=lowered.out_tree,
        out_avals=list(out_avals),
        host_callbacks=list(known["host_callbacks"]),
        num_outputs=len(out_avals),
    )
