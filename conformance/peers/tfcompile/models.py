#!/usr/bin/env python3
"""Five models as graphs of TensorFlow, with their weights as constants, and what tfcompile makes of them.

    models.py MODEL CPU FOLDER

writes to FOLDER what tfcompile writes of MODEL for the processor CPU (an object, one of constants, one of metadata, a header), the program that it compiled, as HloSnapshot, the
names of arguments and results (config.pbtxt), and random arguments, one after another (arguments.bin).
"""
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
# As `saved_model_cli aot_compile_cpu` sets them: one thread, and no fusions that objects cannot have.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false --xla_cpu_experimental_ynn_fusion_type= "

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla import tf2xla_pb2
from tensorflow.python import _pywrap_tfcompile
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

RANDOM = np.random.default_rng(51)


def normal(*shape, scale=None):
    """Random numbers, of about the size of a layer's weights."""
    return (RANDOM.standard_normal(shape) * (scale or 1 / np.sqrt(shape[0]))).astype(np.float32)


def mlp():
    w0, b0, w1, b1 = normal(784, 128), normal(128), normal(128, 10), normal(10)

    def run(x):
        return tf.matmul(tf.nn.relu(tf.matmul(x, w0) + b0), w1) + b1

    return run, [(32, 784)]


def cnn():
    k0, b0, k1, b1 = normal(3, 3, 1, 16, scale=0.3), normal(16), normal(3, 3, 16, 32, scale=0.1), normal(32)
    w, b = normal(7 * 7 * 32, 10), normal(10)

    def run(x):
        x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, k0, 1, "SAME") + b0), 2, 2, "VALID")
        x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, k1, 1, "SAME") + b1), 2, 2, "VALID")
        return tf.nn.softmax(tf.matmul(tf.reshape(x, [8, 7 * 7 * 32]), w) + b)

    return run, [(8, 28, 28, 1)]


def lstm():
    w, u, b = normal(128, 512), normal(128, 512), normal(512)

    def run(x, h, c):
        i, f, g, o = tf.split(tf.matmul(x, w) + tf.matmul(h, u) + b, 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        return tf.sigmoid(o) * tf.tanh(c), c

    return run, [(8, 128)] * 3


def transformer():
    """A block of an encoder: 64 positions of 128 features, 4 heads, 512 features inside."""
    n, d, heads, inner = 64, 128, 4, 512
    q, k, v, out, up, down = (normal(*s) for s in [(d, d)] * 4 + [(d, inner), (inner, d)])
    b_up, b_down = normal(inner), normal(d)
    scales, offsets = [1 + normal(d) for _ in range(2)], [normal(d) for _ in range(2)]

    def norm(x, scale, offset):
        mean = tf.reduce_mean(x, -1, keepdims=True)
        variance = tf.reduce_mean(tf.square(x - mean), -1, keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-5) * scale + offset

    def split(x):
        return tf.transpose(tf.reshape(x, [n, heads, d // heads]), [1, 0, 2])

    def run(x):
        y = norm(x, scales[0], offsets[0])
        scores = tf.matmul(split(tf.matmul(y, q)), split(tf.matmul(y, k)), transpose_b=True) / np.float32(np.sqrt(d // heads))
        mixed = tf.matmul(tf.nn.softmax(scores), split(tf.matmul(y, v)))
        x = x + tf.matmul(tf.reshape(tf.transpose(mixed, [1, 0, 2]), [n, d]), out)
        y = norm(x, scales[1], offsets[1])
        y = tf.matmul(y, up) + b_up
        y = 0.5 * y * (1 + tf.tanh(np.float32(np.sqrt(2 / np.pi)) * (y + 0.044715 * y * y * y)))
        return x + tf.matmul(y, down) + b_down

    return run, [(n, d)]


def head():
    """What stands behind the last product of a classifier: scales, probabilities, their entropy, the best class."""
    scale, offset = 1 + normal(1000), normal(1000)

    def run(x):
        x = tf.tanh(x / 30) * 30 * scale + offset
        p = tf.nn.softmax(x)
        return p, -tf.reduce_sum(p * tf.nn.log_softmax(x), -1), tf.reduce_max(p, -1)

    return run, [(64, 1000)]


MODELS = {f.__name__: f for f in [mlp, cnn, lstm, transformer, head]}


def main():
    name, cpu, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    run, shapes = MODELS[name]()
    specs = [tf.TensorSpec(s, tf.float32, name=f"x{n}") for n, s in enumerate(shapes)]
    frozen = convert_variables_to_constants_v2(tf.function(run).get_concrete_function(*specs))
    config = tf2xla_pb2.Config()
    for n, tensor in enumerate(frozen.inputs):
        feed = config.feed.add(name=f"x{n}", shape=tensor.shape.as_proto(), type=tensor.dtype.as_datatype_enum)
        feed.id.node_name = tensor.op.name
    for n, tensor in enumerate(frozen.outputs):
        fetch = config.fetch.add(name=f"y{n}", shape=tensor.shape.as_proto(), type=tensor.dtype.as_datatype_enum)
        fetch.id.node_name, fetch.id.output_index = tensor.op.name, tensor.value_index
    (folder / "graph.pb").write_bytes(frozen.graph.as_graph_def().SerializeToString())
    (folder / "config.pbtxt").write_text(str(config))
    (folder / "arguments.bin").write_bytes(b"".join(RANDOM.standard_normal(s).astype(np.float32).tobytes() for s in shapes))
    _pywrap_tfcompile.Compile(
        graph=str(folder / "graph.pb"), config=str(folder / "config.pbtxt"), cpp_class="peer::Model", target_triple="x86_64-pc-linux", target_cpu=cpu, entry_point="peer",
        out_function_object=str(folder / "model.o"), out_header=str(folder / "model.h"), out_metadata_object=str(folder / "model_metadata.o"),
        out_constant_buffers_object=str(folder / "model_constants.o"), out_session_module=str(folder / "model.snapshot.pb"), gen_name_to_index=True, gen_program_shape=False)


if __name__ == "__main__":
    main()
