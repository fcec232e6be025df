"""A multilayer perceptron, ResNet-50, a U-Net and an LSTM: in flax where there is state, in equinox the others."""

import functools

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import made
import optax


def mlp_train():
    """MLP 784-512-512-10, a step of Adam on 128 images"""
    shapes = eqx.filter_eval_shape(lambda: eqx.nn.MLP(784, 10, 512, 2, key=jax.random.key(0)))
    taken, static = eqx.partition(shapes, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    weights, optimizer = made.filled(taken), optax.adam(1e-3)

    def loss_of(weights, images, labels):
        logits = jax.vmap(eqx.combine(weights, static))(images)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    def train_step(weights, state, images, labels):
        loss, gradients = jax.value_and_grad(loss_of)(weights, images, labels)
        updates, state = optimizer.update(gradients, state, weights)
        return eqx.apply_updates(weights, updates), state, loss

    state = made.filled(jax.eval_shape(optimizer.init, weights), seed=2)
    batch = (made.normal(128, 784), made.integers(10, 128))
    return made.Model(train_step, (weights, state, *batch), carried=2)


class Bottleneck(nn.Module):
    features: int
    stride: int

    @nn.compact
    def __call__(self, x):
        norm = functools.partial(nn.BatchNorm, use_running_average=False, momentum=0.9)
        conv = functools.partial(nn.Conv, use_bias=False)
        y = nn.relu(norm()(conv(self.features, (1, 1))(x)))
        y = nn.relu(norm()(conv(self.features, (3, 3), strides=self.stride)(y)))
        y = norm(name="last")(conv(4 * self.features, (1, 1))(y))
        if x.shape != y.shape:
            x = norm()(conv(4 * self.features, (1, 1), strides=self.stride)(x))
        return nn.relu(x + y)


class ResNet50(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Conv(64, (7, 7), strides=2, padding=3, use_bias=False)(x)
        x = nn.relu(nn.BatchNorm(use_running_average=False, momentum=0.9)(x))
        x = nn.max_pool(x, (3, 3), strides=(2, 2), padding="SAME")
        for stage, blocks in enumerate((3, 4, 6, 3)):
            for block in range(blocks):
                x = Bottleneck(64 << stage, 2 if stage and not block else 1)(x)
        return nn.Dense(1000)(x.mean((1, 2)))


def resnet50_train():
    """ResNet-50, a step of SGD with momentum on 2 images of 112 x 112"""
    images, labels = made.normal(2, 112, 112, 3), made.integers(1000, 2)
    model, optimizer = ResNet50(), optax.sgd(1e-3, momentum=0.9)
    variables = made.filled(jax.eval_shape(lambda: model.init(jax.random.key(0), images)))

    def loss_of(weights, statistics, images, labels):
        given = {"params": weights, "batch_stats": statistics}
        logits, changed = model.apply(given, images, mutable=["batch_stats"])
        loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
        return loss, changed["batch_stats"]

    def train_step(weights, statistics, state, images, labels):
        gradient = jax.value_and_grad(loss_of, has_aux=True)
        (loss, statistics), gradients = gradient(weights, statistics, images, labels)
        updates, state = optimizer.update(gradients, state, weights)
        return optax.apply_updates(weights, updates), statistics, state, loss

    # As training begins with zeros there. With scales of 1 the gradients of XLA itself in f32 are 4% off those in f64.
    for name, block in variables["params"].items():
        if name.startswith("Bottleneck"):
            block["last"]["scale"] *= 0.1
    state = made.filled(jax.eval_shape(optimizer.init, variables["params"]), seed=2)
    return made.Model(train_step, (variables["params"], variables["batch_stats"], state, images, labels), carried=3)


class Double(eqx.Module):
    """Twice: convolution 3 x 3, group normalization, SiLU."""

    convs: list
    norms: list

    def __init__(self, inputs, outputs, key):
        sizes = [(inputs, outputs), (outputs, outputs)]
        self.convs = [eqx.nn.Conv2d(*size, 3, padding=1, key=key) for size in sizes]
        self.norms = [eqx.nn.GroupNorm(8, outputs) for _ in sizes]

    def __call__(self, x):
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = jax.nn.silu(norm(conv(x)))
        return x


class UNet(eqx.Module):
    down: list
    up: list
    grow: list
    last: eqx.nn.Conv2d

    def __init__(self, key, widths=(32, 64, 128, 256)):
        pairs = list(zip(widths, widths[1:], strict=False))
        self.down = [Double(3, widths[0], key)] + [Double(a, b, key) for a, b in pairs]
        self.grow = [eqx.nn.ConvTranspose2d(b, a, 2, stride=2, key=key) for a, b in pairs]
        self.up = [Double(2 * a, a, key) for a, _ in pairs]
        self.last = eqx.nn.Conv2d(widths[0], 3, 1, key=key)

    def __call__(self, x):
        kept = []
        for level, double in enumerate(self.down):
            x = double(eqx.nn.MaxPool2d(2, 2)(x) if level else x)
            kept.append(x)
        for level in reversed(range(len(self.up))):
            x = self.up[level](jnp.concatenate([kept[level], self.grow[level](x)]))
        return self.last(x)


def unet_forward():
    """U-Net of 32 to 256 features, 2 images of 128 x 128"""
    shapes = eqx.filter_eval_shape(lambda: UNet(jax.random.key(0)))
    taken, static = eqx.partition(shapes, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))

    def forward(weights, images):
        return jax.vmap(eqx.combine(weights, static))(images)

    return made.Model(forward, (made.filled(taken), made.normal(2, 3, 128, 128)))


def lstm_forward():
    """LSTM of 256 units, 128 steps, 32 sequences (scan)"""
    shapes = eqx.filter_eval_shape(lambda: eqx.nn.LSTMCell(128, 256, key=jax.random.key(0)))
    taken, static = eqx.partition(shapes, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))

    def forward(weights, sequences):
        cell = jax.vmap(eqx.combine(weights, static))

        def step(state, x):
            state = cell(x, state)
            return state, state[0]

        start = (jnp.zeros((sequences.shape[1], 256)),) * 2
        return jax.lax.scan(step, start, sequences)

    return made.Model(forward, (made.filled(taken), made.normal(128, 32, 128)))


MODELS = {
    "mlp_train": mlp_train,
    "resnet50_train": resnet50_train,
    "unet_forward": unet_forward,
    "lstm_forward": lstm_forward,
}
