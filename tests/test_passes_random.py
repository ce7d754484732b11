"""Built-in passes on random graphs: every rewriting keeps shapes, types, values and NaN, and takes linear time."""

import gc
import random
import time

import numpy as np
import pytest
from comparing import same_signs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mxop as mx
from mxop import nd, sym

a, b = sym.Variable("a"), sym.Variable("b")


# ---- every rewriting keeps shapes, types, values and NaN, proven on random graphs -----------------------------------
def _swapped(x):
    return sym.SwapAxis(sym.transpose(x) * 1.5, dim1=0, dim2=1)


LEAVES = [
    lambda: sym.ones((2, 3)), lambda: sym.full((2, 3), 2), lambda: sym.full((1, 3), -1), lambda: sym.zeros((2, 3)),
    lambda: sym.reshape(sym.arange(6), shape=(2, 3)),
]  # fmt: skip
STEPS = [
    lambda x: x * 1, lambda x: x + 0, lambda x: x - 0, lambda x: x * 0, lambda x: -x, lambda x: sym.negative(x),
    lambda x: x / 1, lambda x: x + 1, lambda x: x - 1, lambda x: x * 2, lambda x: x / 2, lambda x: 1 - x, lambda x: x**1,
    lambda x: sym.exp(x), lambda x: sym.log(x), lambda x: sym.square(x), lambda x: sym.sqrt(x),
    lambda x: 1 / x, lambda x: sym.identity(x),
    lambda x: sym.zeros_like(x), lambda x: sym.ones_like(x), lambda x: sym.transpose(sym.transpose(x)), _swapped,
    lambda x: sym.reshape(x, shape=(-1,)).reshape((2, 3)), lambda x: sym.expand_dims(x, axis=0).reshape((-3, 0)),
    lambda x: sym.broadcast_sub(x, sym.sum(sym.sigmoid(x), axis=1, keepdims=True)), lambda x: sym.relu(x),
    lambda x: sym.broadcast_mul(x, sym.ones((1, 1))), lambda x: sym.broadcast_like(sym.sum(x, axis=0, keepdims=True), x),
    lambda x: sym.cast(sym.cast(x, "float64"), "float32"), lambda x: sym.cast(x, "float32"),
    lambda x: sym.flip(sym.flip(x, axis=1), axis=1), lambda x: sym.stop_gradient(x),
    lambda x: sym.broadcast_add(x, LEAVES[2]()),
]  # fmt: skip
PAIRS = [lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x - y, lambda x, y: x / y]
#: What the passes that round differently look for; bounded where the data are.
FORMS = [
    lambda x: sym.log(sym.exp(x)), lambda x: sym.log(sym.softmax(x, axis=1)), lambda x: sym.log(1 + sym.square(x)),
    lambda x: sym.exp(sym.tanh(x)) - 1, lambda x: sym.log(1 + sym.exp(x)), lambda x: 1 / (1 + sym.exp(-x)),
    lambda x: sym.log(sym.sigmoid(x)), lambda x: sym.log(1 - sym.sigmoid(x)), lambda x: (x + 1) + 2, lambda x: (x - 3) + 3,
    lambda x: (x * 3) / 4, lambda x: sym.sqrt(sym.square(x + 5)), lambda x: x + 0, lambda x: sym.tanh(x),
    lambda x: sym.broadcast_sub(x, sym.log(sym.sum(sym.exp(x), axis=0, keepdims=True))),
    lambda x: sym.dot(sym.dot(x, sym.transpose(x)) / 4, x),
    lambda x: sym.transpose(sym.dot(sym.transpose(x), sym.dot(x, x, transpose_b=True))) * 0.1,
    lambda x: sym.broadcast_add(sym.dot(sym.tanh(x), x, transpose_b=True) * 0.5, sym.sum(x, axis=1)),
]  # fmt: skip


def random_symbol(steps, pairs, leaf, program):
    values = [a, sym.broadcast_mul(a, LEAVES[leaf]())]
    for step, i, j in program:
        i, j = i % len(values), j % len(values)
        if step % (len(steps) + len(pairs)) < len(steps):
            found = steps[step % (len(steps) + len(pairs))](values[i])
        else:
            found = pairs[step % (len(steps) + len(pairs)) - len(steps)](values[i], values[j])
        if found is not None:
            values.append(found)
    return values[-1] + values[len(values) // 2]


def results(y, x, passes):
    """Return output and gradient, bound for training, and the output bound without gradients."""
    x = nd.array(np.reshape(x, (2, 3)), dtype="float32")
    grad = nd.zeros((2, 3))
    executor = y.bind(mx.cpu(), {"a": x}, {"a": grad}, passes=passes)
    executor.forward(is_train=True)
    executor.backward(nd.array(np.linspace(-1, 1, executor.outputs[0].size).reshape(executor.outputs[0].shape)))
    inference = y.bind(mx.cpu(), {"a": x}, passes=passes).forward()[0]
    assert inference.shape == executor.outputs[0].shape and inference.dtype == np.float32
    return executor.outputs[0].asnumpy(), grad.asnumpy(), inference.asnumpy()


PROGRAMS = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=10)
SPECIAL = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.nan, np.inf, -np.inf, 1e-40])
EXACT = ["fold_constants", "simplify", "common_subexpressions", "dead_nodes", "recompute", "fuse", "share_memory"]
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", EXACT)
@QUICK
@given(PROGRAMS, st.integers(0, len(LEAVES) - 1), st.lists(SPECIAL, min_size=6, max_size=6))
def test_exact_passes_keep_every_bit(name, program, leaf, x):
    y = random_symbol(STEPS, PAIRS, leaf, program)
    for want, have in zip(results(y, x, []), results(y, x, [name]), strict=True):
        np.testing.assert_array_equal(have, want)
        same_signs(have, want)


@pytest.mark.parametrize("name", ["transposes_into_products", "scale_and_bias_into_products", "algebra", "stable", None])
@QUICK
@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=4),
    st.integers(0, len(LEAVES) - 1),
    st.lists(st.integers(-16, 16), min_size=6, max_size=6),
)
def test_other_passes_keep_values(name, program, leaf, x):
    square = [f for f in FORMS if f is not FORMS[-1]]
    y = random_symbol(square, PAIRS[:3], leaf, program)
    if program[0][0] % 2:
        y = FORMS[-1](y)
    x = np.array(x) / 8
    for want, have in zip(results(y, x, []), results(y, x, None if name is None else [name]), strict=True):
        assert have.dtype == want.dtype and have.shape == want.shape
        if np.isfinite(want).all() and np.abs(want).max() < 1e3:
            np.testing.assert_allclose(have, want, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", ["algebra", "stable", "transposes_into_products", "scale_and_bias_into_products"])
@QUICK
@given(PROGRAMS, st.integers(0, len(LEAVES) - 1))
def test_nan_stays(name, program, leaf):
    """Where every element is NaN, what was NaN still is."""
    y = random_symbol(STEPS + FORMS[:-1], PAIRS, leaf, program)
    plain, done = results(y, [np.nan] * 6, []), results(y, [np.nan] * 6, [name])
    np.testing.assert_array_equal(np.isnan(done[0]), np.isnan(plain[0]))


# ---- time -----------------------------------------------------------------------------------------------------------
def tangle(n, seed):
    """Return `n` elementwise operators of which no two pieces are alike."""
    draw = random.Random(seed)
    values = [a, b]
    for _ in range(n):
        x, kind = values[-1], draw.random()
        if kind < 0.4:
            x = getattr(sym, draw.choice(("elemwise_add", "elemwise_mul")))(x, draw.choice(values[-40:]))
        else:
            x = x * draw.random() if kind < 0.6 else getattr(sym, draw.choice(("sin", "tanh", "square")))(x)
        values.append(x)
    return values[-1]


def test_passes_take_linear_time():
    """The processor's time, without collections of garbage: those grow with what other tests left behind."""
    chosen = [p.name for p in mx.graph.list_passes() if p.automatic and p.stage != "plan"]
    seconds = []
    for length in (2_000, 8_000):
        tries = []
        for seed in range(3):  # each graph is new to all caches
            graph = mx.graph.Graph(tangle(length, seed)._entries)
            known = mx.graph.Known.solve(graph, dict.fromkeys(graph.variables, ((8,), 0)))
            gc.collect()
            gc.disable()
            start = time.process_time()
            try:
                mx.graph.optimize(graph, known, chosen)
            finally:
                tries.append(time.process_time() - start)
                gc.enable()
        seconds.append(min(tries))
    assert seconds[1] < 8 * seconds[0]  # four times the nodes; machines are noisy
