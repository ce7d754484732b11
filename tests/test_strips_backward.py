"""Row strips of a training step: gradients of normalizations, beside the tape, the same graph without strips, and NumPy."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_strips import FORMULAS, STEPS, TOLERANCE, built, close, values

import mxop as mx

S = mx.sym
LAYER_NORM, RMS_NORM, *_, SUM_OF_PRODUCT = FORMULAS


def bound(symbol, arrays, req="write", strips=True):
    """Bind a symbol to those of the arrays that it reads; gradients begin as 1."""
    args = {name: mx.nd.array(arrays[name], dtype=arrays[name].dtype) for name in symbol.list_arguments()}
    grads = {name: mx.nd.ones(a.shape, dtype=a.dtype) for name, a in args.items()}
    return symbol.bind(mx.cpu(), args, grads, req, passes={"strips": strips})


def heads(outputs):
    rng = np.random.default_rng(1)
    return [mx.nd.array(rng.normal(size=o.shape), dtype=o.dtype) for o in outputs]


def stepped(symbol, arrays, req="write", strips=True):
    """Return outputs and gradients of the second of two training steps."""
    executor = bound(symbol, arrays, req, strips)
    for _ in range(2):
        for grad in executor.grad_arrays:
            if grad is not None:
                grad[:] = 1
        executor.forward(is_train=True)
        executor.backward(heads(executor.outputs))
    return [a.asnumpy() for a in [*executor.outputs, *(g for g in executor.grad_arrays if g is not None)]]


def compare(symbol, arrays, tolerance, req="write"):
    """Look that strips change no output and no gradient."""
    found, wanted = (stepped(symbol, arrays, req, strips) for strips in (True, False))
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype
        close(a, b, tolerance * max(1, np.abs(b[np.isfinite(b)]).max(initial=0)))


def calls(symbol, arrays):
    """Return how many calls of each kind a training step makes."""
    return Counter(row.kind for row in bound(symbol, arrays).explain(is_train=True))


# ---- what joins -----------------------------------------------------------------------------------------------------
SUMS_OVER_ROWS = {"layer_norm": 2, "rms_norm": 1, "sum_of_product": 1}


@pytest.mark.parametrize("shape, axis", [((64, 33), -1), ((300, 700), -1), ((4, 20, 9), -1), ((90, 31, 12), (-2, -1))])
@pytest.mark.parametrize("formula", FORMULAS, ids=lambda f: f.__name__)
def test_a_training_step_is_two_strips_and_the_sums_over_short_rows(formula, shape, axis):
    """The gradient of what each row is multiplied with, or added to, is a sum over rows: of short ones a call of its own."""
    found = calls(built(formula, axis), values(shape, axis))
    assert found == Counter(strip=2, operator=SUMS_OVER_ROWS.get(formula.__name__, 0) * (shape[-1] < 40 and axis == -1))


def test_what_reads_a_number_of_each_row_is_computed_again():
    arrays = values((256, 512))
    explained = bound(built(LAYER_NORM), arrays).explain(is_train=True)
    assert explained.memory["planned"] < 0.1 * arrays["x"].nbytes  # no x - mean, nor what gamma's gradient adds up
    forward, backward = [row for row in explained if row.kind == "strip"]
    assert forward.nbytes < 2.1 * arrays["x"].nbytes
    assert backward.nbytes < 3.1 * arrays["x"].nbytes


WAYS_BACK = {  # from a number of each row to all its elements, where the reduction did not keep the axis
    "expand_dims": lambda F, y, x: F.expand_dims(y, axis=-1),
    "reshape": lambda F, y, x: F.reshape(y, shape=(0, 0, 1)),
    "broadcast_to": lambda F, y, x: F.broadcast_to(F.expand_dims(y, axis=-1), shape=(8, 9, 10)),
    "broadcast_axis": lambda F, y, x: F.broadcast_axis(F.reshape(y, shape=(0, 0, 1)), axis=2, size=10),
    "broadcast_like": lambda F, y, x: F.broadcast_like(F.expand_dims(y, axis=-1), x),
    "twice": lambda F, y, x: F.broadcast_like(F.broadcast_to(F.expand_dims(y, axis=2), shape=(8, 9, 10)), x),
}


@pytest.mark.parametrize("way", WAYS_BACK)
@pytest.mark.parametrize("reduce", ["mean", "sum", "max", "norm"])
def test_views_on_the_way_back_are_read_through(way, reduce):
    x = S.Variable("x")
    total = WAYS_BACK[way](S, getattr(S, reduce)(x * 0.5, axis=-1), x)
    y = S.broadcast_sub(S.tanh(x), S.tanh(total) * 0.5)
    arrays = values((8, 9, 10), dtype="float64")
    assert calls(y, arrays) == {"strip": 2}
    compare(y, arrays, 1e-12)


def test_dimensions_of_size_1_come_and_go():
    x, g = S.Variable("x"), S.Variable("g")
    y = S.expand_dims(S.broadcast_mul(S.broadcast_sub(x, S.mean(x, axis=-1, keepdims=True)), g), axis=1)
    y = S.broadcast_sub(S.tanh(y), S.max(y, axis=(1, 3), keepdims=True))
    arrays = values((20, 6, 5), dtype="float64")
    compare(S.Group([y, S.reshape(S.exp(y), shape=(20, 30))]), arrays, 1e-12)


def test_results_in_another_shape_are_views_outside():
    x = S.Variable("x")
    y = S.transpose(S.reshape(S.broadcast_sub(x, S.mean(x, axis=-1, keepdims=True)), shape=(4, 16, 9)))
    arrays = values((64, 9), dtype="float64")
    assert {row.operator for row in bound(y, arrays).explain() if row.kind == "operator"} == {"transpose"}
    compare(y, arrays, 1e-12)


# ---- sums over rows -------------------------------------------------------------------------------------------------
def scaled(x, w):
    return S.broadcast_mul(S.tanh(x), w)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(16, 64), (33, 65), (500, 300), (7, 9, 80), (3000, 64), (20, 9000)])
@pytest.mark.parametrize("lead", [0, 1, 2])
def test_rows_are_added_up_where_they_are_made(shape, lead, dtype):
    """`w` has one row, and dimensions of size 1 before it or not."""
    arrays = values(shape, dtype=dtype)
    arrays["w"] = np.random.default_rng(3).normal(size=(1,) * min(lead, len(shape) - 1) + shape[-1:]).astype(dtype)
    y = scaled(S.Variable("x"), S.Variable("w"))
    assert calls(y, arrays) == {"fused": 1, "strip": 1}
    compare(y, arrays, TOLERANCE[dtype])
    compare(S.Group([y, S.sum(y, axis=tuple(range(len(shape) - 1)))]), arrays, 4 * TOLERANCE[dtype], "add")
    x, g = arrays["x"].astype("float64"), heads([mx.nd.array(arrays["x"], dtype=dtype)])[0].asnumpy().astype("float64")
    total = (np.tanh(x) * g).reshape(-1, shape[-1]).sum(0).reshape(arrays["w"].shape)
    found = dict(zip(y.list_arguments(), stepped(y, arrays)[1:], strict=True))["w"]
    np.testing.assert_allclose(found, total, rtol=0, atol=2e-6 * np.abs(x).sum() / shape[-1] if dtype == "float32" else 1e-10)


def test_sums_over_rows_read_before_the_rows_are_done_are_not_part_of_them():
    """The mean of the columns is subtracted: what reads it goes down the same rows, once more."""
    x = S.Variable("x")
    y = S.tanh(x)
    centred = S.broadcast_sub(y, S.sum(y, axis=0, keepdims=True) * 0.01)
    both = S.broadcast_add(centred, S.sum(S.square(centred), axis=0, keepdims=True))
    for dtype in ("float32", "float64"):
        compare(both, values((120, 90), dtype=dtype), 20 * TOLERANCE[dtype])
    compare(S.broadcast_sub(both, S.mean(both, axis=1, keepdims=True)), values((120, 90), dtype="float64"), 1e-11)


def test_means_of_columns_and_what_is_made_of_them_move_the_data_alone():
    """Batch normalization of a matrix: x - mean is computed by each of those who read it, and stored by none."""
    x, names = S.Variable("x"), ("gamma", "beta")
    symbol = S.BatchNorm(x, *map(S.Variable, names), fix_gamma=False, name="bn")
    executor = symbol.simple_bind(mx.cpu(), x=(600, 500))
    told, size = executor.explain(), 4 * 600 * 500
    assert told.memory["planned"] < 0.1 * size
    assert sum(row.nbytes for row in told if row.phase == "forward") < 4.1 * size
    assert sum(row.nbytes for row in told if row.phase == "backward") < 6.1 * size
    found = []
    for strips in (True, False):
        executor = symbol.simple_bind(mx.cpu(), x=(600, 500), passes={"strips": strips})
        for k, a in enumerate(executor.arg_arrays):
            a[:] = mx.nd.array(np.random.default_rng(k).normal(size=a.shape))
        executor.forward(is_train=True)
        executor.backward(heads(executor.outputs))
        found.append([a.asnumpy() for a in (*executor.outputs, *executor.grad_arrays, *executor.aux_arrays)])
    for a, b in zip(*found, strict=True):
        close(a, b, 1e-4 * np.abs(b).max())


@pytest.mark.parametrize("threads", [2, 3, 5])
@pytest.mark.parametrize("shape", [(100, 1000), (2000, 100), (17, 70)])
def test_threads_change_no_bit_of_a_sum_over_rows(shape, threads, tune):
    tune(parallel_bytes=4096)
    arrays, symbol, found = values(shape), built(LAYER_NORM), []
    for n in (1, threads):
        mx.context.set_num_threads(n)
        found.append(stepped(symbol, arrays))
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_sums_over_rows_go_into_arrays_with_strides():
    arrays, y = values((60, 80), dtype="float64"), scaled(S.Variable("x"), S.Variable("w"))
    arrays["w"] = arrays["g"]
    room = mx.nd.zeros((80, 2), dtype="float64")
    args = {name: mx.nd.array(arrays[name], dtype="float64") for name in "xw"}
    executor = y.bind(mx.cpu(), args, {"x": mx.nd.zeros((60, 80), dtype="float64"), "w": room[:, 1]})
    executor.forward(is_train=True)
    executor.backward(heads(executor.outputs))
    wanted = dict(zip(y.list_arguments(), stepped(y, arrays)[1:], strict=True))["w"]
    np.testing.assert_array_equal(room.asnumpy(), np.stack([0 * wanted, wanted], 1))


# ---- values ---------------------------------------------------------------------------------------------------------
SHAPES = [
    ((16, 2), -1),
    ((300, 301), -1),
    ((4, 5, 33), -1),
    ((1, 64, 7), -1),
    ((20, 3, 8), (-2, -1)),
    ((18, 1, 9), (-2, -1)),
]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape, axis", SHAPES)
@pytest.mark.parametrize("formula", FORMULAS, ids=lambda f: f.__name__)
def test_gradients(formula, shape, axis, dtype):
    arrays, names = values(shape, axis, dtype), ["x", *FORMULAS[formula][1]]
    outputs = stepped(built(formula, axis), arrays)
    given = [mx.nd.array(arrays[name], dtype="float64") for name in names]
    for a in given:
        a.attach_grad()
    with mx.autograd.record():
        y = formula(mx.nd, given[0], axis, *given[1:])
    y.backward(*heads([y]))
    for found, wanted in zip(outputs, [y, *(a.grad for a in given)], strict=True):
        wanted = wanted.asnumpy()
        assert found.dtype == dtype
        close(found, wanted, 4 * TOLERANCE[dtype] * max(1, np.abs(wanted).max()))
    compare(built(formula, axis), arrays, 4 * TOLERANCE[dtype])


REQUESTS = [{"x": "add", "g": "write", "b": "null"}, {"x": "null", "g": "add", "b": "add"}, "add"]


@pytest.mark.parametrize("req", REQUESTS, ids=str)
@pytest.mark.parametrize("formula", [LAYER_NORM, RMS_NORM, SUM_OF_PRODUCT], ids=lambda f: f.__name__)
def test_gradients_that_are_added_or_not_wanted(formula, req):
    symbol = built(formula)
    wanted = req if isinstance(req, str) else {name: req[name] for name in symbol.list_arguments()}
    compare(symbol, values((60, 40), dtype="float64"), 1e-12, wanted)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 0.0])
@pytest.mark.parametrize("formula", FORMULAS, ids=lambda f: f.__name__)
def test_special_values_stay_in_their_rows(formula, special):
    arrays = values((300, 150), dtype="float64")
    symbol = built(formula)
    x = symbol.list_arguments().index("x") + 1
    usual = stepped(symbol, arrays)[x]
    arrays["x"][[3, 299]] = special
    compare(symbol, arrays, 1e-12)
    np.testing.assert_array_equal(np.delete(stepped(symbol, arrays)[x], [3, 299], 0), np.delete(usual, [3, 299], 0))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_norms_are_computed_in_float64(dtype):
    """Squares would be infinite."""
    x, arrays = S.Variable("x"), values((40, 30), dtype=dtype)
    arrays["x"] *= {"float32": 1e30, "float16": 1e3}[dtype]
    y = S.broadcast_div(x, S.norm(x, axis=-1, keepdims=True))
    assert calls(y, arrays) == {"strip": 2}
    (found, grad), plain = stepped(y, arrays), stepped(y, arrays, strips=False)
    close(found, plain[0], TOLERANCE[dtype])
    close(np.square(found.astype("float64")).sum(-1), 1, TOLERANCE[dtype])
    close(grad, plain[1], 4 * TOLERANCE[dtype])


@pytest.mark.parametrize("shape", [(64, 64), (16, 16, 16), (1, 20, 20)])
def test_rows_along_another_axis_are_no_rows(shape):
    """Numbers of rows that are read along columns: each row needs those of all."""
    x = S.Variable("x")
    mean = S.mean(S.tanh(x), axis=-1)
    ways = [mean, S.expand_dims(mean, axis=-2), S.broadcast_to(S.expand_dims(mean, axis=-2), shape=shape)]
    for turned in [*ways, S.broadcast_like(mean, x, lhs_axes=(-1,), rhs_axes=(-1,))]:
        away = S.broadcast_sub(x, S.mean(x, axis=-1, keepdims=True))
        compare(S.broadcast_mul(away, S.exp(turned)), {"x": values(shape, dtype="float64")["x"]}, 1e-12)


def test_inputs_with_strides():
    base = np.random.default_rng(0).normal(size=(40, 30, 3))
    x, scale = mx.nd.from_dlpack(base.transpose(1, 0, 2)[:, :, 1]), mx.nd.from_dlpack(base)[:, 0, 1][:30]
    assert not x._contiguous and not scale._contiguous
    symbol = S.Variable("x")
    y = S.broadcast_sub(symbol, S.mean(symbol, axis=-1, keepdims=True))
    y = S.elemwise_mul(y, S.broadcast_to(S.expand_dims(S.Variable("scale"), axis=-1), shape=(30, 40)))
    found = []
    for strips in (True, False):
        args = {"x": x, "scale": scale}
        grads = {name: mx.nd.zeros(a.shape, dtype="float64") for name, a in args.items()}
        executor = y.bind(mx.cpu(), args, grads, passes={"strips": strips})
        executor.forward(is_train=True)
        executor.backward(heads(executor.outputs))
        found.append([a.asnumpy() for a in (*executor.outputs, *executor.grad_arrays)])
    for a, b in zip(*found, strict=True):
        close(a, b, 1e-12)


FULL_STEPS = [  # of two values that have all elements
    lambda x, y: S.broadcast_mul(x, S.expand_dims(S.mean(y, axis=-1), axis=-1)),
    lambda x, y: S.elemwise_add(x, S.broadcast_like(S.max(y * 0.5, axis=-1, keepdims=True), x)) * 0.5,
    lambda x, y: S.broadcast_sub(x, S.reshape_like(S.min(y, axis=-1), S.sum(x, axis=-1, keepdims=True))) * 0.5,
    lambda x, y: S.broadcast_div(x, S.norm(y, axis=-1, keepdims=True) + 1.0),
    lambda x, y: S.softmax(x) - 0.5 * S.tanh(y),
    lambda x, y: S.broadcast_add(x, S.sum(S.tanh(y), axis=0, keepdims=True) * 0.01) * 0.5,
    lambda x, y: S.broadcast_mul(x, S.tanh(S.sum(S.tanh(x) * y, axis=0) * 0.01)),
    lambda x, y: S.flip(x, axis=0) - S.flip(y * 0.5, axis=0),  # no part of a strip: others overwrite its results
]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([*STEPS, *FULL_STEPS]), st.integers(0, 9), st.integers(0, 9)), max_size=12),
    st.integers(1, 3),
    st.sampled_from([(16, 5), (300, 70), (40, 300), (4, 5, 9), (2, 3, 3, 6), (20, 3, 64)]),
    st.sampled_from(["float32", "float64"]),
    st.sampled_from(["write", "add", ["add", "null"], ["null", "write"]]),
)
def test_random_programs(steps, n_outputs, shape, dtype, req):
    made = [S.Variable("x"), S.Variable("g")]
    for step, i, j in steps:
        x, y = made[-1 - i % len(made)], made[-1 - j % len(made)]
        if step in FULL_STEPS:
            x, y = (S.broadcast_add(a, made[0]) * 0.5 for a in (x, y))
        made.append(step(x, y))
    last = S.broadcast_add(S.broadcast_mul(made[-1], made[1]), made[0])
    symbol = S.Group([*made[2:][-n_outputs:], S.broadcast_sub(last, S.mean(last, axis=-1, keepdims=True))])
    wanted = req if isinstance(req, str) else dict(zip("xg", req, strict=True))
    compare(symbol, values(shape, dtype=dtype), 20 * TOLERANCE[dtype], wanted)


def test_channels_are_left_to_their_own_row_kernel():
    """A softmax has rows, too, those of the batch: parts of a batch normalization's gradient are no row kernels of these."""
    normed = S.Activation(S.BatchNorm(S.Variable("data"), fix_gamma=False, name="norm"), act_type="relu", name="relu")
    symbol = S.SoftmaxOutput(S.FullyConnected(normed, num_hidden=10), name="softmax")
    executor = symbol.simple_bind(mx.cpu(), data=(16, 32, 20, 20), grad_req="write")
    executor.forward(is_train=True)
    executor.backward()
    images = [row for row in executor.explain() if row.phase == "backward" and any(v.name == "relu" for v in row.inputs)]
    assert [row.kind for row in images if row.kind != "operator"] == ["strip"]
    (row,) = (row for row in images if row.kind == "strip")
    assert {"gradient of data", "gradient of norm_gamma"} <= {v.place for v in row.outputs}


def test_an_output_that_is_an_input_is_not_copied():
    """The gradient of a difference is, for its first operand, that of the difference: what reads the one reads the other."""
    a, b, v, w = map(S.Variable, "abvw")
    difference = S.broadcast_sub(S.dot(a, v), b, name="difference")
    executor = S.dot(difference, w).simple_bind(mx.cpu(), a=(8, 5), b=(1, 40), v=(5, 40), w=(40, 3), grad_req="write")
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones((8, 3)))
    read = [v.name for row in executor.explain() for v in row.inputs]
    assert "difference_backward[1]" in read
    assert "difference_backward[0]" not in read


# ---- in place -------------------------------------------------------------------------------------------------------
BETWEEN = {  # two layers
    "channels": lambda x: S.relu(S.BatchNorm(x, fix_gamma=False, name="norm")),
    "rows": lambda x: S.broadcast_div(x, S.sqrt(S.mean(x * x, axis=-1, keepdims=True) + 1)),
    "softmax": lambda x: S.softmax(S.softmax(x) * x),
    "added_up": lambda x: S.LayerNorm(x),
}
LAYERS = {
    "channels": lambda x, name: S.Convolution(x, num_filter=33, kernel=(3, 3), pad=(1, 1), no_bias=True, name=name),
    "rows": lambda x, name: S.FullyConnected(x, num_hidden=301, no_bias=True, name=name),
}


def between_layers(between, dtype):
    """Return the calls of a training step of two layers with something between, and its results with strips and without."""
    layer, shape = LAYERS.get(between, LAYERS["rows"]), (5, 3, 37, 31) if between == "channels" else (331, 70)
    symbol = layer(BETWEEN[between](layer(S.Variable("x", dtype=dtype), "first")), "second")
    rows, found = [], []
    for strips in (True, False):
        with mx.graph.switch_passes(strips=strips):
            executor = symbol.simple_bind(mx.cpu(), x=shape, grad_req="write")
        for array in executor.arg_arrays:
            array[:] = np.random.default_rng(array.size).normal(size=array.shape)
        executor.forward(is_train=True)
        executor.backward(heads(executor.outputs))
        executor.backward(heads(executor.outputs))  # what the first one overwrote is no value that is kept
        found.append([a.asnumpy() for a in [*executor.outputs, *executor.grad_arrays]])
        rows = rows or executor.explain(is_train=True).rows
    for a, b in zip(*found, strict=True):
        close(a, b, TOLERANCE[dtype] * max(1, np.abs(b).max()))
    return rows


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("between", ["channels", "rows", "softmax"])
def test_a_gradient_overwrites_the_one_that_it_is_computed_from(between, dtype):
    rows = between_layers(between, dtype)
    shape = next(v.shape for row in rows for v in row.outputs if v.name == "first")
    strip = next(row for row in rows if row.kind == "strip" and row.phase == "backward")
    read, made = ({v.place for v in values if v.shape == shape} for values in (strip.inputs, strip.outputs))
    assert len(made) == 1 and made <= read


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_what_is_added_up_over_rows_is_not_overwritten(dtype):
    """It is read once several blocks of rows are done: here the gradient that is the sum of those of all rows."""
    between_layers("added_up", dtype)
