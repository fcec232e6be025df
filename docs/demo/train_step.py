"""Makes train_step.hlo and its recorded inputs and results: one step of training a small digit classifier in JAX.

    python3 train_step.py        (needs jax; the files beside this one are what it wrote)
"""
import os

import jax
import jax.numpy as jnp
import numpy as np


def init(key, sizes):
    keys = jax.random.split(key, len(sizes))
    return [(jax.random.normal(k, (m, n)) / np.sqrt(m), jnp.zeros(n)) for k, m, n in zip(keys, sizes, sizes[1:])]


def logits(params, x):
    for w, b in params[:-1]:
        x = jax.nn.gelu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def loss(params, x, labels):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits(params, x)) * jax.nn.one_hot(labels, 10), axis=-1))


@jax.jit
def train_step(params, velocity, x, labels):
    value, grads = jax.value_and_grad(loss)(params, x, labels)
    velocity = jax.tree.map(lambda v, g: 0.9 * v - 0.05 * g, velocity, grads)
    params = jax.tree.map(lambda p, v: p + v, params, velocity)
    accuracy = jnp.mean(jnp.argmax(logits(params, x), axis=-1) == labels)
    return value, accuracy, params, velocity


params = init(jax.random.key(0), [64, 48, 10])
velocity = jax.tree.map(jnp.zeros_like, params)
x = jax.random.uniform(jax.random.key(1), (32, 64))
labels = jax.random.randint(jax.random.key(2), (32,), 0, 10)
arguments = (params, velocity, x, labels)
lowered = train_step.lower(*arguments)
text = lowered.compiler_ir("hlo").as_hlo_module().to_string()
open("train_step.hlo", "w").write(text.replace(os.path.dirname(os.path.abspath(__file__)) + "/", ""))
np.savez_compressed("inputs.npz", **{f"arg{i}": np.asarray(a) for i, a in enumerate(jax.tree.leaves(arguments))})
results = lowered.compile()(*arguments)
np.savez_compressed("expected.npz", **{f"out{i}": np.asarray(a) for i, a in enumerate(jax.tree.leaves(results))})
print("loss", results[0], "accuracy", results[1])
