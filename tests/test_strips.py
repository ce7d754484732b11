"""Row strips: reductions of rows and the formulas around them as one call, beside the same graph without it and NumPy."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mxop as mx
from mxop.graph import rowwise, strips

S = mx.sym
TOLERANCE = {"float16": 1e-2, "float32": 1e-5, "float64": 1e-12}


def layer_norm(F, x, axis, gamma, beta):
    away = F.broadcast_sub(x, F.mean(x, axis=axis, keepdims=True))
    deviation = F.sqrt(F.mean(F.square(away), axis=axis, keepdims=True) + 1e-3)
    return F.broadcast_add(F.broadcast_mul(F.broadcast_div(away, deviation), gamma), beta)


def rms_norm(F, x, axis, gamma):
    return F.broadcast_mul(F.broadcast_mul(x, F.rsqrt(F.mean(F.square(x), axis=axis, keepdims=True) + 1e-3)), gamma)


def softmax(F, x, axis):
    e = F.exp(F.broadcast_sub(x, F.max(x, axis=axis, keepdims=True)))
    return F.broadcast_div(e, F.sum(e, axis=axis, keepdims=True))


def log_softmax(F, x, axis):
    away = F.broadcast_sub(x, F.max(x, axis=axis, keepdims=True))
    return F.broadcast_sub(away, F.log(F.sum(F.exp(away), axis=axis, keepdims=True)))


def l2_normalized(F, x, axis):
    return F.broadcast_div(x, F.sqrt(F.sum(F.square(x), axis=axis, keepdims=True)))


def sum_of_product(F, x, axis, weights):
    return F.sum(F.broadcast_mul(x, weights), axis=axis) * 0.5


def np_softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


FORMULAS = {  # what is built from small operators, the same in NumPy, and what it reads beside x: a row
    layer_norm: (lambda x, ax, g, b: (x - x.mean(ax, keepdims=True)) / np.sqrt(x.var(ax, keepdims=True) + 1e-3) * g + b, "gb"),
    rms_norm: (lambda x, ax, g: x / np.sqrt((x * x).mean(ax, keepdims=True) + 1e-3) * g, "g"),
    softmax: (np_softmax, ""),
    log_softmax: (lambda x, ax: np.log(np_softmax(x, ax)), ""),
    l2_normalized: (lambda x, ax: x / np.sqrt((x * x).sum(ax, keepdims=True)), ""),
    sum_of_product: (lambda x, ax, w: (x * w).sum(ax) * 0.5, "g"),
}  # fmt: skip
SHAPES = [  # the larger ones are several blocks of rows
    ((16, 2), -1), ((500, 301), -1), ((4, 5, 33), -1), ((1, 64, 7), -1), ((2, 3, 4, 16), -1),
    ((16, 30001), -1), ((20, 3, 8), (-2, -1)), ((90, 31, 12), (-2, -1)), ((3, 6, 2, 9), (-2, -1)),
]  # fmt: skip


def values(shape, axis=-1, dtype="float32"):
    rng = np.random.default_rng(0)
    row = shape[-np.size(axis) :]
    return {name: rng.normal(size=s).astype(dtype) for name, s in (("x", shape), ("g", row), ("b", row))}


def built(formula, axis=-1):
    return formula(S, S.Variable("x"), axis, *map(S.Variable, FORMULAS[formula][1]))


def bound(symbol, arrays, strips=True, req="null"):
    """Bind a symbol to those of the arrays that it reads; look that strips were made, or not."""
    given = {name: arrays[name] for name in symbol.list_arguments()}
    args = {k: a if isinstance(a, mx.nd.NDArray) else mx.nd.array(a, dtype=a.dtype) for k, a in given.items()}
    grads = None if req == "null" else {k: mx.nd.zeros(a.shape, dtype=a.dtype) for k, a in args.items()}
    executor = symbol.bind(mx.cpu(), args, grads, req, passes={"strips": strips})
    assert ("strip" in kinds(executor)) is strips
    return executor


def kinds(executor):
    return [row.kind for row in executor.explain()]


def both(symbol, arrays):
    """Return the outputs with strips and without."""
    return [[o.asnumpy() for o in bound(symbol, arrays, strips).forward()] for strips in (True, False)]


def close(found, wanted, tolerance):
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape, axis", SHAPES)
@pytest.mark.parametrize("formula", FORMULAS, ids=lambda f: f.__name__)
def test_formulas(formula, shape, axis, dtype):
    arrays, symbol = values(shape, axis, dtype), built(formula, axis)
    assert kinds(bound(symbol, arrays)) == ["strip"]
    (found,), (plain,) = both(symbol, arrays)
    function, names = FORMULAS[formula]
    x, *rows = (arrays[name].astype("float64") for name in ("x", *names))
    wanted = function(x, axis, *rows)
    assert found.dtype == dtype and found.shape == wanted.shape
    close(found, wanted, TOLERANCE[dtype] * max(1, np.abs(wanted).max()))
    close(found, plain, TOLERANCE[dtype] * max(1, np.abs(wanted).max()))


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_special_values_stay_in_their_rows(formula, special):
    arrays = values((300, 150))
    usual = both(built(formula), arrays)[0][0]
    arrays["x"][[3, 299], [0, 149]] = special
    (found,), (plain,) = both(built(formula), arrays)
    close(found, plain, 1e-5)  # NaN and infinities where those are
    if np.isnan(special):
        assert np.isnan(found[[3, 299]]).all()
    np.testing.assert_array_equal(np.delete(found, [3, 299], 0), np.delete(usual, [3, 299], 0))


@pytest.mark.parametrize("symbol", [*map(built, FORMULAS), S.softmax(S.Variable("x")) * 2], ids=lambda s: s.name)
def test_gradients_are_added_and_forward_runs_again(symbol):
    """The gradient of the operator softmax is a strip itself."""
    arrays = values((300, 150), dtype="float64")
    plain, written, added = (bound(symbol, arrays, *how) for how in ((False, "write"), (True, "write"), (True, "add")))
    head = mx.nd.array(np.random.default_rng(1).normal(size=plain.forward()[0].shape), dtype="float64")
    for _ in range(2):
        for executor in (plain, written, added):
            outputs = executor.forward(is_train=True)
            close(outputs[0].asnumpy(), plain.outputs[0].asnumpy(), 1e-12)
            executor.backward(head)
    for grads in zip(plain.grad_arrays, written.grad_arrays, added.grad_arrays, strict=True):
        a, b, c = (g.asnumpy() for g in grads)
        close(b, a, 1e-10)
        np.testing.assert_array_equal(c, 2 * b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(40, 9), (400, 100), (4, 6, 5)])
def test_gradient_of_layer_norm(shape, dtype):
    arrays = values(shape, dtype=dtype)
    executor = built(layer_norm).simple_bind(
        mx.cpu(), type_dict=dict.fromkeys(arrays, dtype), x=shape, g=shape[-1:], b=shape[-1:]
    )
    assert "strip" in kinds(executor)
    given = {name: mx.nd.array(a, dtype=dtype) for name, a in arrays.items()}
    for name, a in given.items():
        a.attach_grad()
        executor.arg_dict[name][:] = a
    head = mx.nd.array(np.random.default_rng(1).normal(size=shape), dtype=dtype)
    with mx.autograd.record():
        y = layer_norm(mx.nd, given["x"], -1, given["g"], given["b"])
    y.backward(head)
    executor.forward(is_train=True)
    executor.backward(head)
    for name, a in given.items():
        wanted = a.grad.asnumpy()
        close(executor.grad_dict[name].asnumpy(), wanted, TOLERANCE[dtype] * max(1, np.abs(wanted).max()))


def test_values_in_between_are_outputs_too():
    x = S.Variable("x")
    mean = S.mean(x, axis=-1, keepdims=True)
    away = S.broadcast_sub(x, mean)
    variance = S.mean(S.square(away), axis=-1)
    parts = [mean, away, variance, S.broadcast_mul(away, S.exp(mean)), x, away, S.exp(variance), S.zeros_like(away)]
    arrays = values((300, 150), dtype="float64")
    for found, plain in zip(*both(S.Group(parts), arrays), strict=True):
        close(found, plain, 1e-12)


@pytest.mark.parametrize("name", [p.name for p in mx.graph.list_passes()])
def test_strips_beside_every_pass_that_is_left_out(name):
    """Without `simplify`, casts to a type that is there already are formulas that read one of their two inputs."""
    x = mx.nd.array(np.random.default_rng(0).normal(size=(17, 33)))
    symbol = S.LayerNorm(S.Variable("x"), S.ones((33,)), S.zeros((33,))) * S.L2Normalization(S.Variable("x"))
    found = []
    for passes in (None, {name: False}):
        gradient = x.zeros_like()
        executor = symbol.bind(mx.cpu(), {"x": x}, {"x": gradient}, passes=passes)
        found.append(executor.forward(is_train=True)[0].asnumpy())
        executor.backward(mx.nd.sin(x))
        found.append(gradient.asnumpy())
    for with_it, without in zip(found[:2], found[2:], strict=True):
        np.testing.assert_allclose(without, with_it, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(256, 256), (16, 16, 16, 16), (300, 5, 300)])
def test_rows_along_another_axis_are_no_rows(shape):
    """Sums of rows that are added to columns: each row needs the sums of all."""
    x, reduced = S.Variable("x"), tuple(range(len(shape) // 2, len(shape)))
    away = S.broadcast_sub(x, S.mean(x, axis=reduced, keepdims=True))
    y = S.broadcast_add(away, S.exp(S.sum(x, axis=reduced) * 0.01))
    a = np.random.default_rng(0).normal(size=shape)
    wanted = a - a.mean(reduced, keepdims=True) + np.exp(a.sum(reduced) * 0.01)
    for found in both(y, {"x": a}):
        close(found[0], wanted, 1e-12)


LONGEST = 65536  # bytes of a row, where the real limit would make large arrays
NO_STRIPS = [
    ((15, 8), "float32"), ((3, 5, 8), "float64"), ((16, LONGEST // 4 + 1), "float32"),
    ((16, LONGEST // 8 + 1), "float64"), ((40, 1), "float32"), ((0, 8), "float32"), ((40, 0), "float32"),
    ((0, 0), "float64"), ((4, 0, 8), "float32"), ((40, 8), "int32"), ((40, 8), "int64"),
]  # fmt: skip


@pytest.mark.parametrize("shape, dtype", NO_STRIPS)
def test_what_is_not_worth_a_strip_or_has_no_rows(shape, dtype, monkeypatch):
    for module in (rowwise, strips):
        monkeypatch.setattr(module, "LONGEST_ROW", LONGEST)
    x, a = S.Variable("x"), np.random.default_rng(0).integers(-9, 9, shape).astype(dtype)
    y = S.broadcast_sub(x, S.sum(S.square(x), axis=-1, keepdims=True))
    executor = y.bind(mx.cpu(), {"x": mx.nd.array(a, dtype=dtype)})
    assert "strip" not in kinds(executor)
    found, wanted = executor.forward()[0].asnumpy(), a - np.square(a).sum(-1, keepdims=True, dtype=dtype)
    assert found.dtype == dtype
    close(found, wanted, 1e-6)


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (0, 2, 1), (1, 2, 0)])
def test_inputs_with_strides(order):
    x = values((20, 30, 40))["x"].transpose(order)
    b = np.arange(x.shape[2], dtype="float32")
    arrays = {"x": mx.nd.from_dlpack(x), "g": mx.nd.from_dlpack(x)[1, 1], "b": mx.nd.array(np.repeat(b, 2))[::2]}
    assert not arrays["x"]._contiguous and not arrays["b"]._contiguous
    (found,), (plain,) = both(built(layer_norm), arrays)
    close(found, FORMULAS[layer_norm][0](x, -1, x[1, 1], b), 1e-5)
    close(found, plain, 1e-5)


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda f: f.__name__)
def test_threads_change_no_bit(formula, tune):
    tune(parallel_bytes=4096)
    arrays, found = values((700, 130)), []
    for threads in (1, 2, 3):
        mx.context.set_num_threads(threads)
        found += [bound(built(formula), arrays).forward()[0].asnumpy() for _ in range(3)]
    assert all((f == found[0]).all() for f in found)


STEPS = [  # none makes values large, which a later difference would turn into noise
    lambda x, y: S.tanh(x), lambda x, y: S.square(S.tanh(x)) - 0.25, lambda x, y: S.exp(S.square(x) * -1.0),
    lambda x, y: S.broadcast_add(x, y) * 0.5, lambda x, y: S.broadcast_mul(x, S.sigmoid(y)),
    lambda x, y: S.broadcast_maximum(x, y), lambda x, y: S.broadcast_sub(y, S.tanh(x)),
    lambda x, y: S.mean(x, axis=-1, keepdims=True), lambda x, y: S.max(x * 0.5, axis=-1, keepdims=True),
    lambda x, y: S.sum(S.broadcast_mul(S.tanh(x), S.tanh(y)), axis=-1, keepdims=True) * 0.125,
]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9), st.integers(0, 9)), max_size=14),
    st.integers(1, 3),
    st.sampled_from([(16, 5), (300, 70), (60, 130), (40, 300), (4, 5, 9), (2, 3, 3, 6), (3, 8, 200)]),
    st.sampled_from(["float32", "float64"]),
)
def test_random_programs(steps, n_outputs, shape, dtype):
    made = [S.Variable("x"), S.Variable("g")]
    for step, i, j in steps:
        made.append(step(made[-1 - i % len(made)], made[-1 - j % len(made)]))
    last = S.broadcast_add(made[-1], made[0])
    symbol = S.Group([*made[2:][-n_outputs:], S.broadcast_sub(last, S.mean(last, axis=-1, keepdims=True))])
    for found, plain in zip(*both(symbol, values(shape, dtype=dtype)), strict=True):
        close(found, plain, 10 * TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("inner", [20, 300, 1000])
@pytest.mark.parametrize("shape", list(itertools.product((1, 4), (1, 8), (True, False))))
def test_what_some_rows_share_is_read_for_each_of_them(shape, inner, dtype):
    x, y, z = (mx.sym.Variable(n) for n in "xyz")
    centred = mx.sym.broadcast_sub(x, mx.sym.mean(x, axis=2, keepdims=True))
    out = mx.sym.broadcast_add(mx.sym.broadcast_mul(centred, y), z)
    sizes = {"x": (4, 8, inner), "y": (*shape[:2], inner if shape[2] else 1), "z": (1, 8, 1)}
    arrays = {n: np.random.default_rng(k).standard_normal(s).astype(dtype) for k, (n, s) in enumerate(sizes.items())}
    results = []
    for passes in (None, {"strips": False}):
        bound = {n: mx.nd.array(a, dtype=dtype) for n, a in arrays.items()}
        gradients = {n: mx.nd.zeros(a.shape, dtype=dtype) for n, a in arrays.items()}
        executor = out.bind(mx.cpu(), bound, gradients, passes=passes)
        y_ = executor.forward(is_train=True)[0].asnumpy()
        executor.backward(mx.nd.array(arrays["x"], dtype=dtype))
        results.append([y_, *(g.asnumpy() for g in gradients.values())])
        if passes is None and dtype != "float16":
            assert any(row.kind == "strip" for row in executor.explain().rows)
    exact = (arrays["x"] - arrays["x"].astype("f8").mean(2, keepdims=True)) * arrays["y"].astype("f8") + arrays["z"]
    np.testing.assert_allclose(results[0][0], exact, *((2e-2, 2e-2) if dtype == "float16" else (1e-4, 1e-4)))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, *((2e-2, 0.3) if dtype == "float16" else (1e-5, 1e-3)))


@pytest.mark.parametrize("shape, axes, y", [((4, 5, 20, 40), (0, 1, 3), (5, 20, 40)), ((2, 24, 1, 48), (0, 2, 3), (24, 1, 48)),
                                            ((3, 20, 40), (0, 2), (20, 1)), ((32, 32, 40), (0, 2), (32, 40))])  # fmt: skip
def test_channels_beside_an_array_of_fewer_dimensions(shape, axes, y):
    """What broadcasts is aligned at the end before the channels are put first."""
    rng = np.random.default_rng(2)
    arrays = {"x": rng.normal(size=shape), "y": rng.normal(size=y)}
    e = S.exp(S.broadcast_mul(S.Variable("x"), S.Variable("y")))
    (found,) = bound(S.broadcast_div(e, S.sum(e, axis=axes, keepdims=True)), arrays).forward()
    e = np.exp(arrays["x"] * arrays["y"])
    close(found.asnumpy(), e / e.sum(axis=axes, keepdims=True), 1e-12)


def test_channels_seen_with_another_number_of_dimensions():
    """Its rows would be those of another axis, which has as many elements by chance."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(32, 32, 40))
    away = S.broadcast_sub(S.Variable("x"), S.mean(S.Variable("x"), axis=(0, 2), keepdims=True))
    (found,) = bound(S.exp(S.expand_dims(away, 1)) * 2, {"x": x}).forward()
    close(found.asnumpy(), 2 * np.exp(x - x.mean(axis=(0, 2), keepdims=True))[:, None], 1e-12)


def test_gradients_of_channels_whose_images_have_one_line():
    """The output gradient is read as images of fewer dimensions, whose channels are put first."""
    rng = np.random.default_rng(2)
    x, head = rng.normal(size=(2, 24, 1, 48)), rng.normal(size=(2, 24, 1, 48))
    args = {n: mx.nd.array(a, dtype="float64") for n, a in (("x", x), ("g", np.ones(24)), ("b", np.ones(24)))}
    grad = mx.nd.zeros((24,), dtype="float64")
    net = S.InstanceNorm(*map(S.Variable, "xgb"), eps=0.1)
    executor = net.bind(mx.cpu(), args, {"g": grad}, {"x": "null", "g": "write", "b": "null"})
    executor.forward(is_train=True)
    executor.backward([mx.nd.array(head, dtype="float64")])
    normal = (x - x.mean((2, 3), keepdims=True)) / np.sqrt(x.var((2, 3), keepdims=True) + 0.1)
    close(grad.asnumpy(), (head * normal).sum((0, 2, 3)), 1e-12)
