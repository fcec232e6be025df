"""GPT-2 (124M), BERT-base and ViT-B/16, in flax."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import made
import numpy as np
import optax

WIDTH, HEADS, LAYERS, VOCABULARY, POSITIONS = 768, 12, 12, 50257, 1024


class Attention(nn.Module):
    """With a cache (keys and values, [batch, length, heads, size]) the tokens are written there at `position`."""

    @nn.compact
    def __call__(self, x, mask, cache=None, position=None):
        q, k, v = (a.reshape(*a.shape[:2], HEADS, -1) for a in jnp.split(nn.Dense(3 * WIDTH, name="qkv")(x), 3, axis=-1))
        if cache is not None:
            k, v = cache = tuple(
                jax.lax.dynamic_update_slice(old, new, (0, position, 0, 0)) for old, new in zip(cache, (k, v), strict=True)
            )
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
        if mask is not None:
            scores = jnp.where(mask, scores, jnp.finfo(scores.dtype).min)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores), v)
        return nn.Dense(WIDTH, name="out")(mixed.reshape(x.shape)), cache


class Mlp(nn.Module):
    approximate: bool = True

    @nn.compact
    def __call__(self, x):
        return nn.Dense(WIDTH)(nn.gelu(nn.Dense(4 * WIDTH)(x), approximate=self.approximate))


class Block(nn.Module):
    """Normalized before (GPT-2, ViT)."""

    approximate: bool = True

    @nn.compact
    def __call__(self, x, mask=None, cache=None, position=None):
        mixed, cache = Attention()(nn.LayerNorm(epsilon=1e-5)(x), mask, cache, position)
        x = x + mixed
        return x + Mlp(self.approximate)(nn.LayerNorm(epsilon=1e-5)(x)), cache


class Gpt2(nn.Module):
    layers: int = LAYERS

    @nn.compact
    def __call__(self, tokens, cache=None, position=0):
        embed = nn.Embed(VOCABULARY, WIDTH, name="embedding")
        places = position + jnp.arange(tokens.shape[1])
        x = embed(tokens) + nn.Embed(POSITIONS, WIDTH, name="positions")(places)
        length = tokens.shape[1] if cache is None else cache[0][0].shape[1]
        mask = jnp.arange(length)[None, :] <= places[:, None]
        caches = []
        for i in range(self.layers):
            x, kept = Block()(x, mask, None if cache is None else cache[i], position)
            caches.append(kept)
        return embed.attend(nn.LayerNorm(epsilon=1e-5)(x)), caches


class Bert(nn.Module):
    """Normalized after, with GELU by the error function."""

    @nn.compact
    def __call__(self, tokens, kinds, present):
        x = nn.Embed(30522, WIDTH, name="word_embedding")(tokens)
        x = x + nn.Embed(512, WIDTH, name="position_embedding")(jnp.arange(tokens.shape[1]))
        x = nn.LayerNorm(epsilon=1e-12)(x + nn.Embed(2, WIDTH, name="kind_embedding")(kinds))
        mask = present[:, None, None, :]
        for _ in range(LAYERS):
            x = nn.LayerNorm(epsilon=1e-12)(x + Attention()(x, mask)[0])
            x = nn.LayerNorm(epsilon=1e-12)(x + Mlp(approximate=False)(x))
        return x, jnp.tanh(nn.Dense(WIDTH)(x[:, 0]))


class Vit(nn.Module):
    @nn.compact
    def __call__(self, images):
        x = nn.Conv(WIDTH, (16, 16), strides=(16, 16), padding="VALID")(images)
        x = x.reshape(x.shape[0], -1, WIDTH)
        token = self.param("token", nn.initializers.zeros, (1, 1, WIDTH))
        x = jnp.concatenate([jnp.broadcast_to(token, (x.shape[0], 1, WIDTH)), x], axis=1)
        x = x + self.param("position_embedding", nn.initializers.normal(), (1, x.shape[1], WIDTH))
        for _ in range(LAYERS):
            x, _ = Block(approximate=False)(x)
        return nn.Dense(1000)(nn.LayerNorm(epsilon=1e-6)(x)[:, 0])


def _initialized(module, *inputs):
    return made.filled(jax.eval_shape(lambda: module.init(jax.random.key(0), *inputs)))


def gpt2_forward():
    """GPT-2 124M, logits of 1 x 128 tokens"""
    tokens = made.integers(VOCABULARY, 1, 128)
    model = Gpt2()
    return made.Model(lambda weights, tokens: model.apply(weights, tokens)[0], (_initialized(model, tokens), tokens))


def gpt2_train():
    """GPT-2 with 4 of 12 layers (67M), a step of AdamW on 2 x 64 tokens"""
    tokens = made.integers(VOCABULARY, 2, 65)
    model, optimizer = Gpt2(layers=4), optax.adamw(1e-4, weight_decay=0.1)
    weights = _initialized(model, tokens[:, :-1])

    def loss_of(weights, tokens):
        logits = model.apply(weights, tokens[:, :-1])[0]
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    def train_step(weights, state, tokens):
        loss, gradients = jax.value_and_grad(loss_of)(weights, tokens)
        updates, state = optimizer.update(gradients, state, weights)
        return optax.apply_updates(weights, updates), state, loss

    state = made.filled(jax.eval_shape(optimizer.init, weights), seed=2)
    return made.Model(train_step, (weights, state, tokens), carried=2)


def gpt2_decode():
    """GPT-2 124M, the 401st token with a cache of 512"""
    token, position = made.integers(VOCABULARY, 1, 1), np.int32(400)
    model = Gpt2()
    weights = _initialized(model, token)
    size = (1, 512, HEADS, WIDTH // HEADS)
    cache = [(made.normal(*size, seed=i), made.normal(*size, seed=100 + i)) for i in range(LAYERS)]

    def decode(cache, weights, token, position):
        logits, cache = model.apply(weights, token, cache, position)
        return cache, jnp.argmax(logits[:, -1], axis=-1), logits

    return made.Model(decode, (cache, weights, token, position), carried=1)


def bert_forward():
    """BERT-base, 2 x 128 tokens"""
    tokens, kinds = made.integers(30522, 2, 128), made.integers(2, 2, 128)
    present = np.arange(128)[None, :] < np.array([[128], [100]])
    model = Bert()
    return made.Model(model.apply, (_initialized(model, tokens, kinds, present), tokens, kinds, present))


def vit_forward():
    """ViT-B/16, 1 image of 224 x 224"""
    image = made.normal(1, 224, 224, 3)
    model = Vit()
    return made.Model(model.apply, (_initialized(model, image), image))


MODELS = {
    "gpt2_forward": gpt2_forward,
    "gpt2_train": gpt2_train,
    "gpt2_decode": gpt2_decode,
    "bert_forward": bert_forward,
    "vit_forward": vit_forward,
}
