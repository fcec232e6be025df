"""What each framework makes of the operations that networks.py is written in.

A backend is made of a function that gives weights as arrays of numpy, in order.
"""
import numpy as np


class Numpy:
    """numpy: for programs without convolutions. Its products are those of the BLAS that it carries."""

    def __init__(self, weights):
        self.weights = weights

    def weight(self, shape, kind):
        return self.weights(shape, kind)

    def constant(self, array):
        return array

    def take(self, words, tokens):
        return words[tokens]

    def first_rows(self, x, n):
        return x[:n]

    def constant_rows(self, x, at):
        return x[at]

    def add(self, x, y):
        return x + y

    def linear(self, x, w, b):
        return x @ w + b

    def times_transposed(self, x, w):
        return x @ w.T

    def layer_norm(self, x, g, b, eps):
        mean = x.mean(-1, keepdims=True)
        x = x - mean
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(eps)) * g + b

    def gelu(self, x, tanh):
        if tanh:
            inner = np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)
            return np.float32(0.5) * x * (1 + np.tanh(inner))
        from scipy.special import erf

        return np.float32(0.5) * x * (1 + erf(x * np.float32(0.5**0.5)))

    def split_heads(self, x, heads):
        b, s, d = x.shape
        return [t.reshape(b, s, heads, d // 3 // heads).transpose(0, 2, 1, 3) for t in np.split(x, 3, -1)]

    def attention(self, q, k, v, mask):
        s = q @ k.transpose(0, 1, 3, 2) / np.float32(np.sqrt(q.shape[-1]))
        s = s if mask is None else s + mask
        s = np.exp(s - s.max(-1, keepdims=True))
        x = (s / s.sum(-1, keepdims=True)) @ v
        b, h, n, e = x.shape
        return x.transpose(0, 2, 1, 3).reshape(b, n, h * e)

    def put(self, cache, new, at):
        cache = cache.copy()
        cache[:, :, at : at + 1] = new
        return cache


class Jax:
    """jax.numpy; weights are arguments."""

    def __init__(self, weights):
        import jax

        self.weights, self.jax, self.np = weights, jax, jax.numpy

    def weight(self, shape, kind):
        return self.weights(shape, kind)

    def constant(self, array):
        return self.np.asarray(array)

    def take(self, words, tokens):
        return words[tokens]

    def first_rows(self, x, n):
        return x[:n]

    def constant_rows(self, x, at):
        return x[at]

    def first_row(self, x):
        return x[:, 0]

    def add(self, x, y):
        return x + y

    def behind(self, x, y):
        return self.np.concatenate([self.np.broadcast_to(x, (y.shape[0], 1, y.shape[2])), y], 1)

    def relu(self, x):
        return self.jax.nn.relu(x)

    def linear(self, x, w, b):
        return x @ w + b

    def times_transposed(self, x, w):
        return x @ w.T

    def layer_norm(self, x, g, b, eps):
        mean = x.mean(-1, keepdims=True)
        x = x - mean
        return x * self.jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + eps) * g + b

    def batch_norm(self, x, g, b, m, v, eps):
        return (x - m) * (self.jax.lax.rsqrt(v + eps) * g) + b

    def gelu(self, x, tanh):
        return self.jax.nn.gelu(x, approximate=tanh)

    def split_heads(self, x, heads):
        b, s, d = x.shape
        return [t.reshape(b, s, heads, d // 3 // heads).transpose(0, 2, 1, 3) for t in self.np.split(x, 3, -1)]

    def attention(self, q, k, v, mask):
        s = self.np.einsum("bhqd,bhkd->bhqk", q, k) / np.float32(np.sqrt(q.shape[-1]))
        s = s if mask is None else s + mask
        x = self.np.einsum("bhqk,bhkd->bhqd", self.jax.nn.softmax(s, -1), v)
        b, h, n, e = x.shape
        return x.transpose(0, 2, 1, 3).reshape(b, n, h * e)

    def put(self, cache, new, at):
        return self.jax.lax.dynamic_update_slice(cache, new, (0, 0, at, 0))

    def conv(self, x, w, stride, pad):
        numbers = ("NHWC", "HWIO", "NHWC")
        return self.jax.lax.conv_general_dilated(x, w, (stride,) * 2, [(pad, pad)] * 2, dimension_numbers=numbers)

    def max_pool(self, x):
        window, strides, pad = (1, 3, 3, 1), (1, 2, 2, 1), [(0, 0), (1, 1), (1, 1), (0, 0)]
        return self.jax.lax.reduce_window(x, -np.inf, self.jax.lax.max, window, strides, pad)

    def mean_of_image(self, x):
        return x.mean((1, 2))

    def rows_of_image(self, x, n, d):
        return x.reshape(x.shape[0], n, d)


class Torch:
    """PyTorch in eval mode; images lie as channels last, which is what oneDNN likes best."""

    def __init__(self, weights):
        import torch

        self.weights, self.torch, self.nn = weights, torch, torch.nn.functional

    def weight(self, shape, kind):
        w = self.weights(shape, kind)
        if kind == "kernel":
            w = self.torch.from_numpy(np.ascontiguousarray(w.transpose(3, 2, 0, 1)))
            return w.contiguous(memory_format=self.torch.channels_last)
        return self.torch.from_numpy(w)

    def constant(self, array):
        return self.torch.from_numpy(array)

    def take(self, words, tokens):
        return self.nn.embedding(tokens, words)

    def first_rows(self, x, n):
        return x[:n]

    def constant_rows(self, x, at):
        return x[at]

    def first_row(self, x):
        return x[:, 0]

    def add(self, x, y):
        return x + y

    def behind(self, x, y):
        return self.torch.cat([x.expand(y.shape[0], 1, y.shape[2]), y], 1)

    def relu(self, x):
        return self.torch.relu(x)

    def linear(self, x, w, b):
        return self.nn.linear(x, w.t(), b)

    def times_transposed(self, x, w):
        return self.nn.linear(x, w)

    def layer_norm(self, x, g, b, eps):
        return self.nn.layer_norm(x, (x.shape[-1],), g, b, eps)

    def batch_norm(self, x, g, b, m, v, eps):
        return self.nn.batch_norm(x, m, v, g, b, False, 0.0, eps)

    def gelu(self, x, tanh):
        return self.nn.gelu(x, approximate="tanh" if tanh else "none")

    def split_heads(self, x, heads):
        b, s, d = x.shape
        return [t.reshape(b, s, heads, d // 3 // heads).transpose(1, 2) for t in x.chunk(3, -1)]

    def attention(self, q, k, v, mask):
        x = self.nn.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        b, h, n, e = x.shape
        return x.transpose(1, 2).reshape(b, n, h * e)

    def put(self, cache, new, at):
        cache = cache.clone()
        cache[:, :, at : at + 1] = new
        return cache

    def conv(self, x, w, stride, pad):
        # The image comes as NHWC, and is that still: only its dimensions are named in another order.
        x = x.permute(0, 3, 1, 2) if x.shape[-1] == 3 else x
        return self.nn.conv2d(x, w, None, stride, pad)

    def max_pool(self, x):
        return self.nn.max_pool2d(x, 3, 2, 1)

    def mean_of_image(self, x):
        return x.mean((2, 3))

    def rows_of_image(self, x, n, d):
        return x.permute(0, 2, 3, 1).reshape(x.shape[0], n, d)


class Onnx:
    """Writes a graph of ONNX; weights are its initializers, which ONNX Runtime takes for constants."""

    def __init__(self, weights):
        import onnx

        self.weights, self.onnx = weights, onnx
        self.nodes, self.initializers = [], []

    def name(self):
        return f"v{len(self.nodes) + len(self.initializers)}"

    def constant(self, array):
        name = self.name()
        self.initializers.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def weight(self, shape, kind):
        w = self.weights(shape, kind)
        return self.constant(w.transpose(3, 2, 0, 1) if kind == "kernel" else w)

    def node(self, op, *inputs, outputs=1, **attributes):
        names = [f"{self.name()}_{i}" for i in range(outputs)]
        self.nodes.append(self.onnx.helper.make_node(op, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def take(self, words, tokens):
        return self.node("Gather", words, tokens)

    def first_rows(self, x, n):
        return self.node("Slice", x, self.ints(0), self.ints(n), self.ints(0))

    def constant_rows(self, x, at):
        return self.node("Slice", x, self.ints(at), self.ints(at + 1), self.ints(0))

    def first_row(self, x):
        return self.node("Gather", x, self.constant(np.array(0, np.int64)), axis=1)

    def add(self, x, y):
        return self.node("Add", x, y)

    def behind(self, x, y):
        return self.node("Concat", x, y, axis=1)

    def relu(self, x):
        return self.node("Relu", x)

    def linear(self, x, w, b):
        return self.node("Add", self.node("MatMul", x, w), b)

    def times_transposed(self, x, w):
        return self.node("MatMul", x, self.node("Transpose", w, perm=[1, 0]))

    def layer_norm(self, x, g, b, eps):
        return self.node("LayerNormalization", x, g, b, epsilon=eps)

    def batch_norm(self, x, g, b, m, v, eps):
        return self.node("BatchNormalization", x, g, b, m, v, epsilon=eps)

    def gelu(self, x, tanh):
        return self.node("Gelu", x, approximate="tanh" if tanh else "none")

    def split_heads(self, x, heads):
        parts = self.node("Split", x, outputs=3, axis=-1, num_outputs=3)
        split = [self.node("Reshape", t, self.ints(0, 0, heads, -1)) for t in parts]
        return [self.node("Transpose", t, perm=[0, 2, 1, 3]) for t in split]

    def attention(self, q, k, v, mask):
        k = self.node("Transpose", k, perm=[0, 1, 3, 2])
        s = self.node("Mul", self.node("MatMul", q, k), self.constant(np.array(0.125, np.float32)))
        s = s if mask is None else self.node("Add", s, mask)
        x = self.node("MatMul", self.node("Softmax", s, axis=-1), v)
        return self.node("Reshape", self.node("Transpose", x, perm=[0, 2, 1, 3]), self.ints(0, 0, -1))

    def put(self, cache, new, at):
        here = np.zeros((1, 1, 512, 1), bool)
        here[:, :, at] = True
        return self.node("Where", self.constant(here), new, cache)

    def conv(self, x, w, stride, pad):
        if x == "input0":
            x = self.node("Transpose", x, perm=[0, 3, 1, 2])
        return self.node("Conv", x, w, strides=[stride] * 2, pads=[pad] * 4)

    def max_pool(self, x):
        return self.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)

    def mean_of_image(self, x):
        return self.node("Flatten", self.node("GlobalAveragePool", x))

    def rows_of_image(self, x, n, d):
        x = self.node("Reshape", x, self.ints(0, d, n))
        return self.node("Transpose", x, perm=[0, 2, 1])

    def write(self, path, function, inputs):
        helper, types = self.onnx.helper, {"int32": self.onnx.TensorProto.INT32, "float32": self.onnx.TensorProto.FLOAT}
        given = [
            helper.make_tensor_value_info(f"input{i}", types[x.dtype.name], x.shape) for i, x in enumerate(inputs)
        ]
        results = function(self, *(v.name for v in given))
        results = [helper.make_tensor_value_info(name, self.onnx.TensorProto.FLOAT, None) for name in results]
        graph = helper.make_graph(self.nodes, "model", given, results, self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
        self.onnx.save(model, path, save_as_external_data=True, location="weights", convert_attribute=False)
