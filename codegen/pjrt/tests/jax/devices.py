"""Eight devices under JAX: shardings, collectives, pmap and shard_map, against numpy.

Usage: HLO_NUM_DEVICES=8 JAX_PLATFORMS=hlo python devices.py
"""

import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.layout import Format, Layout
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from checks import check, main, same

try:
    from jax.experimental.shard_alike import shard_alike
except ImportError:  # JAX 0.12 has it no more
    shard_alike = None

DEVICES = jax.devices()
MESH = Mesh(np.array(DEVICES[:8]).reshape(4, 2), ("x", "y"))


def put(array, *spec, mesh=MESH):
    return jax.device_put(array, NamedSharding(mesh, P(*spec)))


@check
def devices_are_eight_with_memories_of_their_own():
    assert [d.id for d in DEVICES] == list(range(8))
    memories = [m for d in DEVICES for m in d.addressable_memories()]
    assert len({id(m) for m in memories}) == 24
    assert all(d.default_memory().kind == "device" for d in DEVICES)


@check
def arrays_move_between_devices():
    x = jax.device_put(np.arange(4.0, dtype=np.float32), DEVICES[3])
    assert x.devices() == {DEVICES[3]}
    y = jax.jit(lambda x: x * 2)(x)
    assert y.devices() == {DEVICES[3]}
    same(jax.device_put(y, DEVICES[5]), np.arange(4, dtype=np.float32) * 2)


@check
def sharded_arguments_give_whole_results():
    a = np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32)
    for spec in [("x", "y"), ("x", None), (None, "y"), (None, None), (("x", "y"), None), ("y", "x")]:
        x = put(a, *spec)
        y = jax.jit(lambda x: (x * 2 + 1, x.sum(axis=0), x.T))(x)
        same(y[0], a * 2 + 1)
        np.testing.assert_allclose(y[1], a.sum(axis=0), rtol=1e-5)
        same(y[2], np.ascontiguousarray(a.T))


@check
def shardings_of_results_are_kept():
    a = np.arange(64, dtype=np.float32).reshape(8, 8)
    wanted = NamedSharding(MESH, P("y", "x"))
    y = jax.jit(lambda x: x + 1, out_shardings=wanted)(put(a, "x", "y"))
    assert y.sharding.is_equivalent_to(wanted, 2), y.sharding
    same(y, a + 1)
    for shard in y.addressable_shards:
        same(shard.data, (a + 1)[shard.index])


@check
def shardings_that_nobody_says_follow_the_arguments():
    a = np.ones((8, 8), np.float32)
    x = put(a, "x", "y")
    y = jax.jit(lambda x: jnp.sin(x) + x.mean())(x)
    assert y.sharding.is_equivalent_to(NamedSharding(MESH, P("x", "y")), 2), y.sharding
    z = jax.jit(lambda x, w: x @ w)(put(a, "x", None), put(a, None, "y"))
    assert z.sharding.is_equivalent_to(NamedSharding(MESH, P("x", "y")), 2), z.sharding
    t = jax.jit(lambda x: x.T)(x)
    assert t.sharding.is_equivalent_to(NamedSharding(MESH, P("y", "x")), 2), t.sharding
    for array, whole in ((y, np.sin(a) + 1), (z, a @ a), (t, a)):
        for shard in array.addressable_shards:
            np.testing.assert_allclose(shard.data, whole[shard.index], rtol=1e-6)


@check
def constraints_are_obeyed():
    a = np.arange(32, dtype=np.float32).reshape(8, 4)

    @jax.jit
    def f(x):
        return jax.lax.with_sharding_constraint(x * 2, NamedSharding(MESH, P(None, "x")))

    y = f(put(a, "x", None))
    assert y.sharding.is_equivalent_to(NamedSharding(MESH, P(None, "x")), 2), y.sharding
    same(y, a * 2)


@check
def shard_map_with_collectives():
    a = np.arange(32, dtype=np.float32).reshape(8, 4)

    @jax.jit
    @functools.partial(jax.shard_map, mesh=MESH, in_specs=P("x", "y"), out_specs=(P("x", None), P(None, "y"), P("x", "y"), P("x", "y")))
    def f(x):
        i = jax.lax.axis_index("x").astype(np.float32)
        shifted = jax.lax.ppermute(x, "x", [(k, (k + 1) % 4) for k in range(4)])
        return jax.lax.psum(x, "y"), jax.lax.psum(x, "x"), x + i, shifted

    rows, columns, indexed, shifted = f(put(a, "x", "y"))
    same(rows, a[:, :2] + a[:, 2:])
    same(columns, a.reshape(4, 2, 4).sum(axis=0))
    same(indexed, a + np.repeat(np.arange(4, dtype=np.float32), 2)[:, None])
    same(shifted, np.roll(a, 2, axis=0))


@check
def shard_map_gathers_and_scatters():
    a = np.random.default_rng(1).normal(size=(8, 16)).astype(np.float32)

    @jax.jit
    @functools.partial(jax.shard_map, mesh=MESH, in_specs=P("x"), out_specs=(P("x"), P("x"), P("x")), check_vma=False)
    def f(x):
        whole = jax.lax.all_gather(x, "x", tiled=True)
        parts = jax.lax.psum_scatter(whole, "x", scatter_dimension=0, tiled=True)
        turned = jax.lax.all_to_all(x, "x", split_axis=1, concat_axis=1, tiled=True)
        return whole.sum(keepdims=True), parts, turned

    whole, parts, turned = f(a)
    np.testing.assert_allclose(np.asarray(whole).ravel(), np.full(4, a.sum()), rtol=1e-5)
    np.testing.assert_allclose(parts, a * 4, rtol=1e-6)
    # Device i has block i of each device's columns.
    blocks = a.reshape(4, 2, 4, 4).transpose(2, 1, 0, 3).reshape(8, 16)
    same(turned, blocks)


@check
def shard_map_inside_of_automatic_sharding():
    a = np.arange(32, dtype=np.float32).reshape(8, 4)

    @jax.jit
    def f(x):
        y = x * 2
        z = jax.shard_map(lambda s: s - jax.lax.pmean(s, "x"), mesh=MESH, in_specs=P("x", None), out_specs=P("x", None))(y)
        return z.sum(), z

    total, z = f(put(a, "x", "y"))
    wanted = a * 2 - (a * 2).reshape(4, 2, 4).mean(axis=0)[None].repeat(4, 0).reshape(8, 4)
    np.testing.assert_allclose(z, wanted, rtol=1e-6)
    np.testing.assert_allclose(total, wanted.sum(), atol=1e-4)


@check
def pmap_runs_on_each_device():
    x = np.arange(16, dtype=np.float32).reshape(8, 2)
    y = jax.pmap(lambda x: x / jax.lax.psum(x, "i"), axis_name="i")(x + 1)
    np.testing.assert_allclose(y, (x + 1) / (x + 1).sum(axis=0), rtol=1e-6)


@check
def meshes_in_any_order_of_devices():
    order = np.array([DEVICES[n] for n in (5, 2, 7, 0, 3, 6, 1, 4)]).reshape(2, 4)
    mesh = Mesh(order, ("a", "b"))
    a = np.arange(64, dtype=np.float32).reshape(8, 8)
    x = put(a, "b", "a", mesh=mesh)
    y = jax.jit(lambda x: x * 3, out_shardings=NamedSharding(mesh, P("a", None)))(x)
    same(y, a * 3)
    for shard in y.addressable_shards:
        same(shard.data, (a * 3)[shard.index])
    z = jax.jit(jax.shard_map(lambda s: s + jax.lax.axis_index("a").astype(np.float32), mesh=mesh, in_specs=P("a"), out_specs=P("a")))(a)
    same(z, a + np.repeat([0, 1], 4).astype(np.float32)[:, None])


@check
def some_of_the_devices():
    mesh = Mesh(np.array(DEVICES[2:6]), ("z",))
    a = np.arange(8, dtype=np.float32)
    y = jax.jit(lambda x: x + 1)(put(a, "z", mesh=mesh))
    same(y, a + 1)
    assert y.devices() == set(DEVICES[2:6])


@check
def unreduced_arrays_add_up():
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    with jax.set_mesh(mesh):
        a = jax.device_put(np.arange(32.0, dtype=np.float32).reshape(8, 4), P("x", "y"))
        b = jax.device_put(np.arange(8.0, dtype=np.float32).reshape(4, 2), P("y", None))
        c = jax.jit(lambda a, b: jnp.einsum("ab,bc->ac", a, b, out_sharding=P("x", None, unreduced={"y"})))(a, b)
        assert c.sharding.spec == P("x", None, unreduced={"y"}), c.sharding
        parts = [np.asarray(s.data) for s in c.addressable_shards]
        # Each device has its own term.
        for n in range(4):
            for k in range(2):
                same(parts[2 * n + k], np.asarray(a)[2 * n : 2 * n + 2, 2 * k : 2 * k + 2] @ np.asarray(b)[2 * k : 2 * k + 2])
        same(np.concatenate([parts[2 * n] + parts[2 * n + 1] for n in range(4)]), np.asarray(a) @ np.asarray(b))
        same(jax.jit(lambda c: jax.reshard(c, P()) * 2)(c), np.asarray(a) @ np.asarray(b) * 2)


@check
def terms_of_manual_computations_are_their_devices():
    a, b = np.arange(8.0, dtype=np.float32).reshape(2, 4), np.arange(8.0, dtype=np.float32).reshape(4, 2)
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    with jax.set_mesh(mesh):
        # JAX 0.12 wants it said that what devices have are terms.
        term = (lambda t: jax.lax.pcast(t, "y", to="unreduced")) if jax.__version_info__ >= (0, 12) else lambda t: t
        f = jax.shard_map(lambda a, b: term(a @ b), in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None, unreduced={"y"}))
        out = jax.jit(f)(jax.device_put(a, P("x", "y")), jax.device_put(b, P("y", None)))
        for n, shard in enumerate(out.addressable_shards):
            x, y = divmod(n, 2)
            same(shard.data, a[x : x + 1, 2 * y : 2 * y + 2] @ b[2 * y : 2 * y + 2])
        # Twice, by one program that adds up.
        for _ in range(2):
            same(jax.reshard(out, P("x", None)), a @ b)


@check
def terms_go_through_manual_computations_as_they_are():
    mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
    with jax.set_mesh(mesh):
        x = jax.device_put(np.arange(4, dtype=np.float32), P("x"))
        terms = jax.jit(jax.shard_map(lambda x: x, in_specs=P("x"), out_specs=P(unreduced={"x"}), check_vma=False))(x)
        assert terms.shape == (2,), terms.shape
        back = jax.jit(jax.shard_map(lambda x: x, in_specs=P(unreduced={"x"}), out_specs=P("x"), check_vma=False))(terms)
        same(back, np.arange(4, dtype=np.float32))


@check
def terms_are_taken_as_they_are_whatever_constrains_them():
    mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
    unreduced = P(None, unreduced={"x"})
    with jax.set_mesh(mesh):
        x = np.arange(8, dtype=np.float32)
        terms = jax.jit(jax.shard_map(lambda x: x, in_specs=P(), out_specs=P(unreduced={"x"}), check_vma=False))(jax.device_put(x, P()))
        take = jax.shard_map(lambda x: x, in_specs=unreduced, out_specs=P(), check_vma=False)
        for f in (take, lambda t: take(jax.reshard(t, unreduced))):
            for shard in jax.jit(f)(terms).addressable_shards:
                same(shard.data, x)
        total = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "x"), in_specs=unreduced, out_specs=P(), check_vma=False))(terms)
        same(total, x * 2)


@check
def greatest_and_least_are_unreduced():
    try:
        from jax.sharding import UnreducedKind
    except ImportError:  # since JAX 0.12
        return
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    a = np.array([[0, 7], [6, 1], [2, 5], [4, 3]], np.float32)
    with jax.set_mesh(mesh):
        x = jax.device_put(a, P("x", "y"))
        for kind, whole, reduce in ((UnreducedKind.max, np.max, jax.lax.reduce_max), (UnreducedKind.min, np.min, jax.lax.reduce_min)):
            spec = P("y", unreduced={"x"}, unreduced_kind=kind)
            out = jax.jit(lambda x: reduce(x, axes=(0,), out_sharding=spec))(x)
            assert out.sharding == NamedSharding(mesh, spec), out.sharding
            for n, shard in enumerate(out.addressable_shards):
                i, j = divmod(n, 2)
                same(shard.data, whole(a[2 * i : 2 * i + 2, j : j + 1], axis=0))
            same(jax.reshard(out, P()), whole(a, axis=0))
            # Along both axes, and then along one of them alone.
            both, one = (P(unreduced=axes, unreduced_kind=kind) for axes in ({"x", "y"}, {"x"}))
            out = jax.jit(lambda x: jax.reshard(reduce(x, axes=(0, 1), out_sharding=both), one))(x)
            assert out.sharding == NamedSharding(mesh, one), out.sharding
            for n, shard in enumerate(out.addressable_shards):
                same(shard.data, whole(a[n // 2 * 2 : n // 2 * 2 + 2]))
            # What devices have is what manual computations take.
            taken = jax.jit(jax.shard_map(lambda x: x, in_specs=one, out_specs=P(), check_vma=False))(out)
            for shard, term in zip(taken.addressable_shards, out.addressable_shards):
                same(shard.data, np.asarray(term.data))


@check
def results_lie_in_the_memory_that_is_asked_for():
    a = np.arange(8, dtype=np.float32)
    for mesh in (MESH, Mesh(np.array(DEVICES[:1]), ("x",))):
        of = lambda kind: NamedSharding(mesh, P("x"), memory_kind=kind)
        f = jax.jit(lambda x: (x * 2, x + 1), out_shardings=(of("pinned_host"), of("device")))
        x = jax.device_put(a, of("device"))
        for _ in range(2):
            far, near = f(x)
            assert (far.sharding.memory_kind, near.sharding.memory_kind) == ("pinned_host", "device")
            same(far, a * 2)
            same(near, a + 1)
            x = jax.device_put(far, of("device")) / 2


@check
def shardings_are_inspected():
    a = np.arange(8, dtype=np.float32)
    seen = []

    @jax.jit
    def f(x):
        y = x * 2
        jax.debug.inspect_array_sharding(y, callback=seen.append)
        return y + 1

    with MESH:
        same(f(put(a, "x")), a * 2 + 1)
    assert len(seen) == 1 and seen[0].is_equivalent_to(NamedSharding(MESH, P("x")), 1), seen


@check
def values_of_a_group_are_cut_alike():
    if shard_alike is None:
        return
    x = put(np.arange(64, dtype=np.float32).reshape(8, 8), "x", "y")
    y = jax.jit(lambda x: shard_alike(x, jnp.arange(64, dtype=np.float32).reshape(8, 8))[1])(x)
    assert y.sharding == NamedSharding(MESH, P("x", "y")), y.sharding
    same(y, x)
    z, w = jax.jit(lambda x: shard_alike(x @ x.T, jnp.ones((8, 8))))(x)
    assert z.sharding == w.sharding == NamedSharding(MESH, P("x")), (z.sharding, w.sharding)


@check
def parts_lie_as_their_layout_says():
    a = np.arange(64, dtype=np.float32).reshape(16, 4)
    turned = Format(Layout((1, 0)), NamedSharding(MESH, P("x", "y")))
    x = jax.device_put(a, turned)
    same(x, a)
    f = jax.jit(lambda x: x * 2, in_shardings=turned, out_shardings=turned)
    y = f(x)
    assert y.sharding == turned.sharding, y.sharding
    assert all(array.format.layout.major_to_minor == (1, 0) for array in [y, *(s.data for s in y.addressable_shards)])
    same(y, a * 2)
    for shard in y.addressable_shards:
        same(shard.data, (a * 2)[shard.index])


@check
def what_no_result_can_take_is_not_donated():
    mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    x = jax.device_put(np.arange(16.0).reshape(8, 2), jax.NamedSharding(mesh, P("x")))
    jax.jit(lambda x: x @ x.T, donate_argnums=0)(x)
    assert not x.is_deleted()


@check
def donated_shards_are_gone():
    x = put(np.ones((8, 8), np.float32), "x", "y")
    y = jax.jit(lambda x: x * 2, donate_argnums=0)(x)
    assert x.is_deleted()
    same(y, np.full((8, 8), 2, np.float32))


@check
def programs_of_several_devices_are_kept():
    from jax.experimental import serialize_executable

    a = np.arange(64, dtype=np.float32).reshape(8, 8)
    x = put(a, "x", "y")
    compiled = jax.jit(lambda x: x.T + 1).lower(x).compile()
    loaded = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    same(loaded(x), np.ascontiguousarray(a.T) + 1)
    assert compiled(x).sharding == loaded(x).sharding


@check
def a_step_of_training_with_data_and_model_parallelism():
    rng = np.random.default_rng(0)
    x, w0 = rng.normal(size=(16, 8)).astype(np.float32), rng.normal(size=(8, 4)).astype(np.float32)
    target = x @ w0

    def loss(w, x, t):
        return jnp.mean((x @ w - t) ** 2)

    @functools.partial(jax.jit, donate_argnums=0)
    def step(w, x, t):
        value, gradient = jax.value_and_grad(loss)(w, x, t)
        return w - 0.2 * gradient, value

    w = put(np.zeros((8, 4), np.float32), None, "y")
    xs, ts = put(x, "x", None), put(target, "x", "y")
    first = None
    for _ in range(50):
        w, value = step(w, xs, ts)
        first = first if first is not None else float(value)
    assert float(value) < first / 20, (first, float(value))
    assert w.sharding.is_equivalent_to(NamedSharding(MESH, P(None, "y")), 2), w.sharding


if __name__ == "__main__":
    sys.exit(main())
