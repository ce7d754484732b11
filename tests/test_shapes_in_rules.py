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
            F.slice_axis(F.concat(heads[0], *[F.zeros_like(heads[0])] * (parts - 1), dim=0), axis=0, begin=0, end=x.shape[0])
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


def symbols(x, w):
    """What reads shapes in its function, in its rule, or in the rule of a built-in; each by name, with two variables."""
    return {
        "composite": sym.test_shapes_scaled(x * x * w),
        "rule": sym.test_shapes_first(x * x * w, rows=2),
        "reduction": sym.norm(x * w, axis=1),
        "two outputs": sym.Group([sym.test_shapes_scaled(sym.sin(x)), sym.test_shapes_first(x * w * w, rows=1)]),
    }


@pytest.mark.parametrize("name", ["composite", "rule", "reduction", "two outputs"])
@pytest.mark.parametrize("shape", [None, (3, 4)])
def test_symbolic_derivatives_of_every_order(name, shape):
    """They are what calls on arrays give, whether a variable has a shape or first gets one when it is bound."""
    x, w = sym.var("x", shape=shape), sym.var("w", shape=shape)
    y = symbols(x, w)[name]
    first = mx.graph.deriv(y, [x, w])
    second = mx.graph.deriv(sym.sum(sym.square(first[0])) + sym.sum(first[1] * x), [x, w])
    host = {"x": HOST, "w": HOST[::-1] + 1}
    found = sym.load_json(sym.Group([*first, *second]).tojson()).bind(mx.cpu(), {k: nd.array(v) for k, v in host.items()})

    xs, ws = variable(host["x"]), variable(host["w"])
    with autograd.record():
        if name == "composite":
            total = nd.test_shapes_scaled(xs * xs * ws).sum()
        elif name == "rule":
            total = nd.test_shapes_first(xs * xs * ws, rows=2).sum()
        elif name == "reduction":
            total = nd.norm(xs * ws, axis=1).sum()
        else:
            total = nd.test_shapes_scaled(nd.sin(xs)).sum() + nd.test_shapes_first(xs * ws * ws, rows=1).sum()
        one = autograd.grad(total, [xs, ws], create_graph=True)
        two = autograd.grad((one[0] * one[0]).sum() + (one[1] * xs).sum(), [xs, ws])
    for got, want in zip(found.forward(), [*one, *two], strict=True):
        np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=2e-5, atol=1e-6)


def test_a_deferred_derivative_is_a_symbol_like_any_other():
    x, e = sym.var("x"), sym.var("e")
    middle = x * x
    found = mx.graph.deriv(sym.test_shapes_first(middle, rows=2), [middle, x], error=e)
    graph = sym.Group(found)
    assert graph.list_arguments() == ["x", "e"]
    assert graph.infer_shape(x=(3, 4))[:2] == ([(3, 4), (2, 4)], [(3, 4), (3, 4)])
    assert graph.infer_type(x="float64")[1] == [np.float64, np.float64]
    weights = HOST[:2] + 2
    by_middle, by_x = (a.asnumpy() for a in graph.eval(x=nd.array(HOST), e=nd.array(weights)))
    want = np.concatenate([weights, np.zeros((1, 4))])
    np.testing.assert_allclose(by_middle, want, rtol=1e-6)
    np.testing.assert_allclose(by_x, want * 2 * HOST, rtol=1e-6)
    executor = found[1].simple_bind(mx.cpu(), x=(3, 4), e=(2, 4))
    executor.forward(is_train=True, x=nd.array(HOST), e=nd.array(weights))
    executor.backward(nd.array(HOST))  # its gradient is of second order
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), 2 * want * HOST, rtol=1e-6)
    by_name = sym.test_shapes_scaled(x).gradient(["x"])
    assert by_name.eval(x=nd.array(HOST))[0].asnumpy().tolist() == [[12] * 4] * 3
    with pytest.raises(mx.MXNetError, match=r"x: \(unknown\); give them as keyword arguments"):
        by_name.simple_bind(mx.cpu())


def test_a_derivative_that_waits_for_shapes_must_not_draw(own):
    @composite(random=True)
    def test_shapes_drawn(F, x):
        return F.reshape(x * F.random.uniform_like(x), shape=(x.size,))

    own(test_shapes_drawn)
    x = sym.var("x")
    with pytest.raises(mx.MXNetError, match="depends on the mode of a run, or draws numbers"):
        mx.graph.deriv(sym.test_shapes_drawn(x), x)


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
