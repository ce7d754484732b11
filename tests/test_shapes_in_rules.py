"""Composites and gradient rules that read shapes and types: the same in calls on arrays, in plans and in what is bound."""

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym
from mxop.op import composite, kernel

HOST = np.arange(1, 13, dtype="float32").reshape(3, 4) / 10


@pytest.fixture(autouse=True)
def operators(own):
    """A composite whose function, and a kernel whose gradient rule, ask for shape, number of dimensions, size and type."""

    @composite
    def test_shapes_scaled(F, x):
        """``x * size``, seen as a row, in the type of ``x``."""
        assert x.ndim == len(x.shape)
        row = F.reshape(x * float(x.size), shape=(1, x.shape[0] * x.shape[1]))
        return F.Cast(row, dtype=np.dtype(x.dtype).name)

    @kernel
    def test_shapes_first(x, *, rows: int):
        """The first rows."""

    test_shapes_first.shape(lambda x, *, rows: (min(rows, x[0]), *x[1:]))

    @test_shapes_first.rearrange
    def _(xp, inputs, outputs, *, rows):
        outputs[0][...] = inputs[0][:rows]

    @test_shapes_first.gradient
    def _(F, heads, inputs, outputs, *, rows):
        (x,) = inputs
        rows = min(rows, x.shape[0])
        assert heads[0].shape == outputs[0].shape == (rows, *x.shape[1:]) and heads[0].dtype is x.dtype
        if rows == 0:
            return [F.zeros_like(x)]
        parts = -(-x.shape[0] // rows)
        return [
            F.slice_axis(
                F.concat(heads[0], *[F.zeros_like(heads[0])] * (parts - 1), dim=0), axis=0, begin=0, end=x.shape[0]
            )
        ]

    own(
        test_shapes_scaled,
        lambda x: (x * x.size).reshape(1, -1),
        shapes=[((3, 4),), ((2, 0),)],
        unchecked={"types back": "its function asks for the type of its input"},
    )
    own(
        test_shapes_first,
        lambda x, *, rows: x[:rows],
        params=[{"rows": 2}],
        shapes=[((3, 4),), ((5, 2),)],
    )


def variable(values=HOST, dtype="float32"):
    x = nd.array(values, dtype=dtype)
    x.attach_grad()
    return x


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_on_arrays(dtype):
    x = variable(dtype=dtype)
    with autograd.record():
        y = nd.test_shapes_scaled(nd.test_shapes_first(x, rows=2))
    assert y.shape == (1, 8) and y.dtype is np.dtype(dtype).type
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), np.repeat([[8.0], [8], [0]], 4, axis=1))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_bound(dtype):
    graph = sym.test_shapes_scaled(sym.test_shapes_first(sym.var("x"), rows=2))
    executor = graph.simple_bind(mx.cpu(), x=(3, 4), type_dict={"x": dtype})
    executor.arg_dict["x"][:] = HOST
    found = executor.forward(is_train=True)[0]
    want = nd.test_shapes_scaled(nd.test_shapes_first(nd.array(HOST, dtype=dtype), rows=2))
    assert found.dtype is np.dtype(dtype).type
    np.testing.assert_array_equal(found.asnumpy(), want.asnumpy())
    executor.backward(nd.ones((1, 8), dtype=dtype))
    np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), np.repeat([[8.0], [8], [0]], 4, axis=1))
    other = graph.simple_bind(mx.cpu(), x=(5, 2), type_dict={"x": dtype})
    assert other.forward()[0].shape == (1, 4)


def test_inference():
    graph = sym.test_shapes_scaled(sym.var("x"))
    assert graph.infer_shape(x=(3, 4))[1] == [(1, 12)]
    assert graph.infer_shape_partial(x=(0, 4))[1] in ([None], [()])
    both = graph + sym.var("w")
    assert both.infer_shape(x=(3, 4))[0] == [(3, 4), (1, 12)]
    executor = both.simple_bind(mx.cpu(), x=(3, 4), type_dict={"x": "float16"})  # the type of w follows
    assert executor.arg_dict["w"].dtype is executor.outputs[0].dtype is np.float16


def test_every_order():
    x = variable()
    with autograd.record():
        y = nd.sum(nd.square(nd.test_shapes_first(x, rows=2)) * nd.test_shapes_first(x, rows=2))
        (g,) = autograd.grad(y, [x], create_graph=True)
        (h,) = autograd.grad(g, [x], create_graph=True)
    h.backward()
    want = np.zeros_like(HOST)
    want[:2] = 6
    np.testing.assert_allclose(x.grad.asnumpy(), want, rtol=1e-5)


def test_compiled_functions():
    asked = []

    @mx.graph.compiled
    def rows(x):
        asked.append(x.shape)
        return x / x.shape[0]

    for shape in ((3, 4), (3, 4), (2, 2)):
        assert rows(nd.ones(shape)).asnumpy()[0, 0] == np.float32(1) / shape[0]
    assert asked == [(3, 4), (2, 2)]  # by placeholders: a plan for each


def test_the_tape_keeps_what_is_read():
    x = variable(np.ones((1000, 1000)))
    with autograd.record():
        between = x * 2
        y = nd.test_shapes_first(between, rows=2)
    import gc
    import weakref

    gone = weakref.ref(between)
    del between
    gc.collect()
    assert gone() is None  # of its input the rule reads the shape only
    y.backward()
    assert x.grad.asnumpy()[:3, 0].tolist() == [2, 2, 0]


def test_what_has_no_shapes_says_so():
    x = sym.var("x")
    with pytest.raises(mx.MXNetError, match=r"\.ndim of 'x' is not known yet.*in what is bound"):
        mx.graph.deriv(sym.test_shapes_scaled(x), x)


def test_what_f_has_is_the_same():
    """``F`` of arrays and ``F`` of graphs: functions of ``mx.nd`` that are no operators of that name."""

    @composite
    def test_shapes_names(F, x):
        return F.maximum(x, 0.5) + F.zeros(shape=x.shape) + F.arange(start=0, stop=x.shape[-1])

    try:
        want = np.maximum(HOST, 0.5) + np.arange(4)
        np.testing.assert_allclose(nd.test_shapes_names(nd.array(HOST)).asnumpy(), want)
        with mx.graph.traced.planned(False):
            np.testing.assert_allclose(nd.test_shapes_names(nd.array(HOST)).asnumpy(), want)
        executor = sym.test_shapes_names(sym.var("x")).bind(mx.cpu(), {"x": nd.array(HOST)})
        np.testing.assert_allclose(executor.forward()[0].asnumpy(), want)
    finally:
        mx.op.unregister("test_shapes_names")


@pytest.mark.parametrize("name", ["test_shapes_scaled", "test_shapes_first"])
def test_check_op(name):
    mx.test_utils.check_op(name)
