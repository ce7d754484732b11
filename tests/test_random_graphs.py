"""Random graphs: what executors compute, with passes on and off, beside NumPy in float64.

Values are matrices, columns (what a reduction of rows leaves) or rows; so regions of formulas, reductions within strips,
products and views meet in every combination.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mxop as mx
from mxop import nd


class Numpy:
    """The operators that the programs use, in NumPy."""

    sin, tanh, square, exp = np.sin, np.tanh, np.square, np.exp
    broadcast_add, broadcast_sub, broadcast_mul = np.add, np.subtract, np.multiply
    broadcast_maximum = np.maximum

    @staticmethod
    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    @staticmethod
    def relu(x):
        return np.maximum(x, 0)

    @staticmethod
    def sum(x, axis, keepdims):
        return x.sum(axis=axis, keepdims=keepdims)

    @staticmethod
    def mean(x, axis, keepdims):
        return x.mean(axis=axis, keepdims=keepdims)

    @staticmethod
    def max(x, axis, keepdims):
        return x.max(axis=axis, keepdims=keepdims)

    @staticmethod
    def softmax(x, axis):
        e = np.exp(x - x.max(axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)

    @staticmethod
    def log_softmax(x, axis):
        return np.log(Numpy.softmax(x, axis))

    @staticmethod
    def dot(x, y, transpose_a=False):
        return (x.T if transpose_a else x) @ y

    @staticmethod
    def broadcast_like(x, y):
        return np.broadcast_to(x, y.shape)

    @staticmethod
    def flip(x, axis):
        return np.flip(x, axis)

    @staticmethod
    def zeros_like(x):
        return np.zeros_like(x)


UNARY = [
    lambda F, x: F.sin(x), lambda F, x: F.tanh(x * 1.5), lambda F, x: F.square(x) * 0.5, lambda F, x: F.sigmoid(x) - 0.25,
    lambda F, x: F.relu(x + 0.125), lambda F, x: (1.0 - x) * 0.5, lambda F, x: F.exp(F.square(x) * -1.0),
    lambda F, x: x / 1.0 + 0.0, lambda F, x: F.flip(F.flip(x, axis=1), axis=1), lambda F, x: F.flip(x, axis=0),
    lambda F, x: F.broadcast_add(x, F.zeros_like(x)),
]  # fmt: skip
ROWS = [
    lambda F, x: F.sum(x, axis=1, keepdims=True) * 0.125, lambda F, x: F.mean(x, axis=1, keepdims=True),
    lambda F, x: F.max(x, axis=1, keepdims=True), lambda F, x: F.mean(F.square(x), axis=1, keepdims=True),
    lambda F, x: F.mean(x, axis=0, keepdims=True), lambda F, x: F.sum(F.tanh(x) * 0.25, axis=1, keepdims=True),
    lambda F, x: F.broadcast_sub(x, F.mean(x, axis=1, keepdims=True)), lambda F, x: F.softmax(x, axis=1),
    lambda F, x: F.log_softmax(x, axis=1) * 0.125, lambda F, x: F.dot(x, F.dot(x, x, transpose_a=True)) * 0.01,
    lambda F, x: F.broadcast_mul(x, F.sigmoid(F.sum(F.square(x), axis=1, keepdims=True) * -0.5)),
]  # fmt: skip
BINARY = [
    lambda F, x, y: F.broadcast_add(x, y) * 0.5, lambda F, x, y: F.broadcast_sub(x, y), lambda F, x, y: F.broadcast_mul(x, y),
    lambda F, x, y: F.broadcast_maximum(x, y + 0.0625), lambda F, x, y: F.broadcast_mul(F.broadcast_add(x, y), x),
]  # fmt: skip
TABLE = [(f, 1) for f in (*UNARY, *ROWS)] + [(f, 2) for f in BINARY]
N_FIRST = len(UNARY) + len(ROWS)

STEPS = st.lists(
    st.tuples(
        st.one_of(st.integers(0, len(UNARY) - 1), st.integers(len(UNARY), N_FIRST - 1), st.integers(N_FIRST, len(TABLE) - 1)),
        st.integers(0, 30),
        st.integers(0, 30),
    ),
    min_size=1,
    max_size=16,
)
SWITCHES = st.dictionaries(
    st.sampled_from([p.name for p in mx.graph.list_passes()]), st.booleans(), max_size=len(mx.graph.list_passes())
)


def run(F, steps, inputs):
    """Apply steps, each to results of earlier ones (from the last back); return the last two, as matrices."""
    values = list(inputs)
    for number, *at in steps:
        function, n = TABLE[number]
        values.append(function(F, *(values[-1 - i % len(values)] for i in at[:n])))
    shape = inputs[0]
    return [F.broadcast_add(v, F.zeros_like(shape)) for v in values[-2:]]


def check(steps, rows, columns, seed, switches):
    rng = np.random.default_rng(seed)
    x = [rng.uniform(-1, 1, (rows, columns)) for _ in range(2)]
    heads = [rng.uniform(-1, 1, (rows, columns)) for _ in range(2)]
    with np.errstate(all="ignore"):
        wanted = run(Numpy, steps, x)
    symbol = mx.sym.Group(run(mx.sym, steps, [mx.sym.Variable("a"), mx.sym.Variable("b")]))
    plain = None
    for dtype, tolerance in (("float64", 1e-8), ("float32", 1e-3)):
        for passes in ([], {}, {"algebra": True, "mirror": True}, switches):
            outputs, inference, grads = executed(symbol, x, heads, dtype, passes)
            if plain is None:
                plain = grads
            for found in (outputs, inference):
                for have, want in zip(found, wanted, strict=True):
                    np.testing.assert_allclose(have, want, rtol=tolerance, atol=tolerance, err_msg=f"{dtype} {passes}")
            for have, want in zip(grads, plain, strict=True):
                scale = max(1.0, np.abs(want).max())
                np.testing.assert_allclose(have / scale, want / scale, rtol=tolerance, atol=tolerance,
                                           err_msg=f"gradient, {dtype} {passes}")  # fmt: skip


def executed(symbol, x, heads, dtype, passes):
    """Return the outputs of training and of inference, and the gradients."""
    names = symbol.list_arguments()
    values = dict(zip("ab", x, strict=True))
    args = {n: nd.array(values[n], dtype=dtype) for n in names}
    grads = {n: nd.zeros(x[0].shape, dtype=dtype) for n in names}
    executor = symbol.bind(mx.cpu(), args, grads, passes=passes)
    inference = [o.asnumpy() for o in executor.forward()]
    outputs = [o.asnumpy() for o in executor.forward(is_train=True)]
    executor.backward([nd.array(h, dtype=dtype) for h in heads])
    return outputs, inference, [grads[n].asnumpy() for n in names]


CASES = (STEPS, st.sampled_from([3, 16, 40]), st.integers(2, 9), st.integers(0, 2**16), SWITCHES)
QUIET = [HealthCheck.too_slow]


@settings(max_examples=40, deadline=None, suppress_health_check=QUIET)
@given(*CASES)
def test_passes_on_and_off_and_numpy_agree(steps, rows, columns, seed, switches):
    check(steps, rows, columns, seed, switches)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None, suppress_health_check=QUIET)
@given(*CASES)
def test_passes_on_and_off_and_numpy_agree_ten_thousand_times(steps, rows, columns, seed, switches):
    check(steps, rows, columns, seed, switches)


def test_strips_are_among_them():
    steps = [(len(UNARY) + 6, 0, 0), (0, 0, 0), (len(UNARY) + 1, 0, 0)]
    symbol = mx.sym.Group(run(mx.sym, steps, [mx.sym.Variable("a"), mx.sym.Variable("b")]))
    executor = symbol.simple_bind(mx.cpu(), "null", **dict.fromkeys(symbol.list_arguments(), (40, 9)))
    assert any("_strip" in row._node.op.name for row in executor.explain().rows if row._node is not None)
