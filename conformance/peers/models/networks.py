"""Whole models, written once over the operations that each framework gives (backends.py): weights are random, shapes
those of the published ones.

A network is a function of a backend `o` and of its inputs; it asks `o.weight(shape, kind)` for weights in a fixed order.
Images are NHWC, kernels HWIO.
"""
import numpy as np


def transformer_block(o, x, d, heads, mask, norm_first, tanh, eps, cache=None):
    def linear(x, i, n):
        return o.linear(x, o.weight((i, n), "matrix"), o.weight((n,), "bias"))

    def norm(x):
        return o.layer_norm(x, o.weight((d,), "scale"), o.weight((d,), "bias"), eps)

    def attend(x):
        q, k, v = o.split_heads(linear(x, d, 3 * d), heads)
        if cache is not None:
            k, v = cache(k, v)
        return linear(o.attention(q, k, v, mask), d, d)

    def feed_forward(x):
        return linear(o.gelu(linear(x, d, 4 * d), tanh), 4 * d, d)

    if norm_first:
        x = o.add(x, attend(norm(x)))
        return o.add(x, feed_forward(norm(x)))
    x = norm(o.add(x, attend(x)))
    return norm(o.add(x, feed_forward(x)))


def gpt2_forward(o, tokens):
    d, length = 768, 128
    words, places = o.weight((50257, d), "matrix"), o.weight((1024, d), "matrix")
    x = o.add(o.take(words, tokens), o.first_rows(places, length))
    mask = o.constant(np.where(np.tril(np.ones((length, length), bool)), 0, -1e9).astype(np.float32))
    for _ in range(12):
        x = transformer_block(o, x, d, 12, mask, True, True, 1e-5)
    x = o.layer_norm(x, o.weight((d,), "scale"), o.weight((d,), "bias"), 1e-5)
    return [o.times_transposed(x, words)]


DECODED = 400


def gpt2_decode(o, tokens, *caches):
    d, room = 768, 512
    words, places = o.weight((50257, d), "matrix"), o.weight((1024, d), "matrix")
    x = o.add(o.take(words, tokens), o.constant_rows(places, DECODED))
    mask = o.constant(np.where(np.arange(room) <= DECODED, 0, -1e9).astype(np.float32)[None])
    results = []
    for layer in range(12):
        def update(k, v, layer=layer):
            both = [o.put(caches[2 * layer + i], new, DECODED) for i, new in enumerate((k, v))]
            results.extend(both)
            return both

        x = transformer_block(o, x, d, 12, mask, True, True, 1e-5, update)
    x = o.layer_norm(x, o.weight((d,), "scale"), o.weight((d,), "bias"), 1e-5)
    return [o.times_transposed(x, words), *results]


def bert(o, x):
    for _ in range(12):
        x = transformer_block(o, x, 768, 12, None, False, False, 1e-12)
    return [x]


def vit(o, image):
    d = 768
    x = o.conv(image, o.weight((16, 16, 3, d), "kernel"), 16, 0)
    x = o.add(o.rows_of_image(x, 196, d), o.weight((d,), "bias"))
    x = o.add(o.behind(o.weight((1, 1, d), "matrix"), x), o.weight((1, 197, d), "matrix"))
    for _ in range(12):
        x = transformer_block(o, x, d, 12, None, True, False, 1e-6)
    x = o.layer_norm(x, o.weight((d,), "scale"), o.weight((d,), "bias"), 1e-6)
    return [o.linear(o.first_row(x), o.weight((d, 1000), "matrix"), o.weight((1000,), "bias"))]


def resnet50(o, image):
    def conv(x, i, n, k, stride=1):
        x = o.conv(x, o.weight((k, k, i, n), "kernel"), stride, (k - 1) // 2)
        g, b, m, v = (o.weight((n,), kind) for kind in ("scale", "bias", "bias", "variance"))
        return o.batch_norm(x, g, b, m, v, 1e-5)

    x = o.max_pool(o.relu(conv(image, 3, 64, 7, 2)))
    channels = 64
    for stage, (n, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            stride = 2 if stage and block == 0 else 1
            h = o.relu(conv(x, channels, n, 1))
            h = o.relu(conv(h, n, n, 3, stride))
            h = conv(h, n, 4 * n, 1)
            beside = conv(x, channels, 4 * n, 1, stride) if block == 0 else x
            x = o.relu(o.add(h, beside))
            channels = 4 * n
    x = o.mean_of_image(x)
    return [o.linear(x, o.weight((2048, 1000), "matrix"), o.weight((1000,), "bias"))]


NETWORKS = {
    "resnet50_b1": (resnet50, [((1, 224, 224, 3), "normal")]),
    "resnet50_b8": (resnet50, [((8, 224, 224, 3), "normal")]),
    "gpt2_forward_128": (gpt2_forward, [((1, 128), "tokens")]),
    "gpt2_decode_512": (gpt2_decode, [((1, 1), "tokens")] + [((1, 12, 512, 64), "normal")] * 24),
    "bert_base_b8_128": (bert, [((8, 128, 768), "normal")]),
    "vit_b16_b1": (vit, [((1, 224, 224, 3), "normal")]),
}


def random_weight(generator, shape, kind):
    x = generator.standard_normal(shape, dtype=np.float32)
    if kind == "matrix":
        return x * np.float32(0.02)
    if kind == "kernel":
        return x * np.float32((2 / np.prod(shape[:3])) ** 0.5)
    return {"bias": 0.1 * x, "scale": 1 + 0.1 * x, "variance": 1 + 0.1 * np.abs(x)}[kind].astype(np.float32)


def random_input(generator, shape, kind):
    if kind == "tokens":
        return generator.integers(0, 50257, shape).astype(np.int32)
    return generator.standard_normal(shape, dtype=np.float32)


class Weights:
    """Gives the weights of a network in the order in which it asks for them; the same for every backend."""

    def __init__(self, seed=0):
        self.generator, self.arrays = np.random.default_rng(seed), []

    def __call__(self, shape, kind):
        self.arrays.append(random_weight(self.generator, shape, kind))
        return self.arrays[-1]


def inputs_of(name):
    generator = np.random.default_rng(1)
    return [random_input(generator, shape, kind) for shape, kind in NETWORKS[name][1]]
