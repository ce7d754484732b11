"""Strips of channels: reductions that keep an axis from the middle, and the formulas around them, as one call."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_strips import FORMULAS, TOLERANCE, close, kinds

import mxop as mx

S = mx.sym
X = S.Variable("x")
SHAPES = [  # and the axis that is kept; parts of rows are whole blocks, some of them, no number of them, or short
    ((3, 16, 256), 1), ((5, 24, 300), 1), ((2, 17, 20, 31), 1), ((2, 18, 4, 9, 11), 1),
    ((2, 16, 3, 5003), 1), ((16, 16, 16, 16), 1), ((2, 3, 16, 320), 2), ((16, 2, 16, 272), 2), ((1, 16, 4096), 1),
    ((2, 2, 2, 20, 512), 3), ((64, 16, 7, 7), 1), ((30, 17, 14, 14), 1),
]  # fmt: skip


def rest(shape, axis):
    return tuple(i for i in range(len(shape)) if i != axis)


def values(shape, axis, dtype="float32"):
    rng, vector = np.random.default_rng(0), tuple(d if i == axis else 1 for i, d in enumerate(shape))
    return {
        name: rng.normal(size=s).astype(dtype) for name, s in (("x", shape), ("g", vector), ("b", vector), ("v", shape[axis]))
    }


def bound(symbol, arrays, strips=True, req="null"):
    args = {k: mx.nd.array(arrays[k], dtype=arrays[k].dtype) for k in symbol.list_arguments()}
    grads = None if req == "null" else {k: mx.nd.ones(a.shape, dtype=a.dtype) for k, a in args.items()}
    return symbol.bind(mx.cpu(), args, grads, req, passes={"strips": strips})


def both(symbol, arrays):
    return [[o.asnumpy() for o in bound(symbol, arrays, strips).forward()] for strips in (True, False)]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape, axis", SHAPES)
@pytest.mark.parametrize("formula", FORMULAS, ids=lambda f: f.__name__)
def test_formulas(formula, shape, axis, dtype):
    arrays, axes = values(shape, axis, dtype), rest(shape, axis)
    function, names = FORMULAS[formula]
    symbol = formula(S, X, axes, *map(S.Variable, names))
    assert kinds(bound(symbol, arrays)) == ["strip"]
    (found,), (plain,) = both(symbol, arrays)
    wanted = function(arrays["x"].astype("float64"), axes, *(arrays[name].astype("float64") for name in names))
    assert found.dtype == dtype and found.shape == wanted.shape
    for other in (wanted, plain):
        close(found, other, TOLERANCE[dtype] * max(1, np.abs(wanted).max()))


@pytest.mark.parametrize("req", ["write", "add"])
@pytest.mark.parametrize("shape, axis", SHAPES)
@pytest.mark.parametrize("formula", FORMULAS, ids=lambda f: f.__name__)
def test_gradients(formula, shape, axis, req):
    arrays, axes = values(shape, axis, "float64"), rest(shape, axis)
    symbol, found = formula(S, X, axes, *map(S.Variable, FORMULAS[formula][1])), []
    for strips in (True, False):
        executor = bound(symbol, arrays, strips, req)
        (out,) = executor.forward(is_train=True)
        executor.backward(mx.nd.array(np.random.default_rng(1).normal(size=out.shape), dtype="float64"))
        assert ("strip" in kinds(executor)) is strips
        found.append([g.asnumpy() for g in executor.grad_arrays])
    for a, b in zip(*found, strict=True):
        close(a, b, 1e-11)


@pytest.mark.parametrize("shape", [(4, 20, 17, 16), (2, 16, 300), (3, 64, 9, 9, 9)])
def test_batch_norm_goes_over_its_data_once(shape):
    names = ("data", "gamma", "beta", "mean", "var")
    symbol = mx.sym.BatchNorm(*map(S.Variable, names), fix_gamma=False, eps=1e-3)
    x = np.random.default_rng(0).normal(2, 3, shape).astype("float32")
    given = {"data": x} | {n: np.linspace(1, 2, shape[1], dtype="float32") for n in names[1:]}
    head, found = mx.nd.array(np.cos(x)), []
    for strips in (True, False):
        args = {n: mx.nd.array(given[n]) for n in names[:3]}
        states = {n: mx.nd.array(given[n]) for n in names[3:]}
        executor = symbol.bind(
            mx.cpu(), args, {n: a.zeros_like() for n, a in args.items()}, aux_states=states, passes={"strips": strips}
        )
        (out,) = executor.forward(is_train=True)
        executor.backward(head)
        found.append([a.asnumpy() for a in (out, *executor.grad_arrays, *executor.aux_arrays)])
        large = [row for row in executor.explain() if row.nbytes > x.nbytes]
        assert not strips or [row.kind for row in large] == [
            "strip",
            "strip",
        ]  # forward and backward, gradient of beta and all
    for a, b in zip(*found, strict=True):
        close(a, b, 2e-5)
    axes = (0, *range(2, len(shape)))
    m, v = x.mean(axes, dtype="float64", keepdims=True), x.var(axes, dtype="float64", keepdims=True)
    across = (1, -1, *(1,) * (len(shape) - 2))
    close(found[0][0], (x - m) / np.sqrt(v + 1e-3) * given["gamma"].reshape(across) + given["beta"].reshape(across), 1e-5)


@pytest.mark.parametrize("shape, axes", [((40, 300), 1), ((5, 24, 300), (0, 2)), ((20, 3, 50), (1, 2))])
def test_reductions_of_one_array_are_one_pass(shape, axes):
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    symbol = S.Group(
        [S.sum(X, axis=axes), S.max(X, axis=axes), S.mean(S.square(X), axis=axes), S.min(X, axis=axes, keepdims=True)]
    )
    assert kinds(bound(symbol, {"x": x})) == ["strip"]
    wanted = [x.sum(axes), x.max(axes), (x * x).mean(axes), x.min(axes, keepdims=True)]
    for found, want in zip(both(symbol, {"x": x})[0], wanted, strict=True):
        close(found, want, 1e-5)


def test_what_a_strip_needs_is_not_made_by_it():
    w = np.eye(40, dtype="float32") * 0.5
    total = S.sum(X, axis=1)
    half = S.dot(S.Variable("w"), S.reshape(total, shape=(-1, 1)))  # goes down no rows
    away = S.broadcast_sub(X, half)
    symbol = S.Group([S.broadcast_sub(away, S.max(away, axis=1, keepdims=True)), S.min(X, axis=1), total])
    x = np.random.default_rng(0).normal(size=(40, 300)).astype("float32")
    found, plain = both(symbol, {"x": x, "w": w})
    for a, b, want in zip(found, plain, (x - x.max(1, keepdims=True), x.min(1), x.sum(1)), strict=True):
        close(a, want, 1e-4)
        close(a, b, 1e-4)


def test_rows_in_memory_that_is_not_in_order():
    x = np.random.default_rng(0).normal(size=(20, 18, 6, 50)).astype("float32")
    formula = next(f for f in FORMULAS if f.__name__ == "layer_norm")
    symbol = formula(S, X, (0, 2, 3), S.Variable("g"), S.Variable("b"))
    vector = np.arange(36, dtype="float32").reshape(1, 36, 1, 1)
    for view in (x, x.transpose(0, 1, 3, 2), x.transpose(2, 1, 0, 3), x[::2], x[:, :, ::-1], x[..., :49]):
        args = {
            "x": mx.nd.from_dlpack(view),
            "g": mx.nd.from_dlpack(vector)[:, ::2],
            "b": mx.nd.from_dlpack(vector)[:, 1::2],
        }
        executor = symbol.bind(mx.cpu(), args)
        want = FORMULAS[formula][0](view.astype("float64"), (0, 2, 3), vector[:, ::2], vector[:, 1::2])
        close(executor.forward()[0].asnumpy(), want, 1e-4)
        assert kinds(executor) == ["strip"]


def test_threads_change_no_bit(tune):
    tune(parallel_bytes=4096, stream_bytes=4096)
    arrays, found = values((6, 40, 333), 1), []
    formula = next(f for f in FORMULAS if f.__name__ == "layer_norm")
    symbol = formula(S, X, (0, 2), S.Variable("g"), S.Variable("b"))
    for threads in (1, 2, 3):
        mx.context.set_num_threads(threads)
        found += [bound(symbol, arrays).forward()[0].asnumpy() for _ in range(3)]
    assert all((f == found[0]).all() for f in found)


STEPS = [  # none makes values large; some have other axes, or axes that look alike
    lambda x, y, a: S.tanh(x), lambda x, y, a: S.broadcast_add(x, y) * 0.5, lambda x, y, a: S.broadcast_mul(x, S.sigmoid(y)),
    lambda x, y, a: S.broadcast_sub(y, S.tanh(x)), lambda x, y, a: S.mean(x, axis=a, keepdims=True),
    lambda x, y, a: S.max(x * 0.5, axis=a, keepdims=True), lambda x, y, a: S.min(x, axis=a, keepdims=True),
    lambda x, y, a: S.mean(x, axis=-1, keepdims=True),
    lambda x, y, a: S.mean(S.broadcast_mul(S.tanh(x), S.tanh(y)), axis=a, keepdims=True),
    lambda x, y, a: S.broadcast_add(x, S.mean(S.broadcast_like(y, X), axis=a) * 0.5),
    lambda x, y, a: S.transpose(S.broadcast_like(x, X), axes=(1, 0, 2)),
    lambda x, y, a: S.reshape(S.mean(S.broadcast_like(x, X), axis=a), shape=(1, -1, 1)),
]  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9), st.integers(0, 9)), max_size=12),
    st.integers(1, 3),
    st.sampled_from([(16, 16, 256), (16, 16, 16)]),
    st.sampled_from(["float32", "float64"]),
)
def test_random_programs(steps, n_outputs, shape, dtype):
    made, axes, arrays = [X, S.Variable("g")], (0, 2), values(shape, 1, dtype)

    def fits(symbol):
        try:
            return all(d > 0 for out in symbol.infer_shape_partial(x=shape, g=arrays["g"].shape)[1] for d in out)
        except mx.MXNetError:
            return False

    for step, i, j in steps:
        new = step(made[-1 - i % len(made)], made[-1 - j % len(made)], axes)
        made += [new] * fits(new)
    last = S.broadcast_add(made[-1], X) if fits(S.broadcast_add(made[-1], X)) else X * 2
    symbol = S.Group([*made[2:][-n_outputs:], S.broadcast_sub(last, S.mean(last, axis=axes, keepdims=True))])
    if not fits(symbol):
        return  # the mean of what has other dimensions
    for found, plain in zip(*both(symbol, arrays), strict=True):
        close(found, plain, 10 * TOLERANCE[dtype])
