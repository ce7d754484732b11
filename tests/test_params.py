"""Parameters of operators: kinds beyond single numbers, and many of them."""

import numpy as np
import pytest

import mxop as mx
from mxop import nd, sym
from mxop.op import composite, elementwise
from mxop.opdef import registry
from mxop.opdef.params import Floats


@pytest.fixture
def scaled():
    def params_scaled(
        F, data, *, sizes: tuple[float, ...] = (1.0,), more: Floats = (), counts: tuple[int, ...] = (2, 3)
    ):
        for size in (*sizes, *more):
            data = data * size
        return data * len(counts)

    op = composite(params_scaled)
    yield op
    registry.unregister("params_scaled")


@pytest.mark.parametrize(
    "sizes", [(0.5, 0.25), [0.5, 0.25], np.array([0.5, 0.25]), "(0.5, 0.25)", "[0.5, .25]", 0.125, "0.125"]
)
def test_a_tuple_of_real_numbers(scaled, sizes):
    assert nd.params_scaled(nd.array([8.0]), sizes=sizes).item() == 2
    net = sym.params_scaled(sym.Variable("x"), sizes=sizes, more=(2,))
    again = mx.sym.load_json(net.tojson())
    assert again.eval(x=nd.array([8.0]))[0].asscalar() == 4
    assert nd.params_scaled(nd.array([8.0]), sizes=()).item() == 16


@pytest.mark.parametrize("sizes", ["a", ("a", 1), None, object(), {"a": 1}, "(1, 'a')", [[1, 2]], 1j])
def test_what_is_no_tuple_of_numbers(scaled, sizes):
    with pytest.raises(
        mx.MXNetError, match=r"operator params_scaled: parameter sizes=.*expected a tuple of numbers|tuple of <float>"
    ):
        nd.params_scaled(nd.array([8.0]), sizes=sizes)


def test_other_tuples_are_refused():
    with pytest.raises(mx.MXNetError, match=r"operator params_named, .*parameter 'names' needs a type"):

        @composite
        def params_named(F, data, *, names: tuple[str, ...] = ()):
            return data


def test_sixteen_numbers():
    names = [f"p{k}" for k in range(16)]
    scope = {}
    exec(
        f"def params_many(data, *, {', '.join(f'{n}: float = {k}' for k, n in enumerate(names))}):\n"
        f"    return data + {' + '.join(f'{k + 1} * {n}' for k, n in enumerate(names))}",
        scope,
    )
    elementwise(scope["params_many"])
    try:
        want = sum((k + 1) * k for k in range(16))
        x = nd.array([1.0])
        x.attach_grad()
        with mx.autograd.record():
            y = nd.params_many(x)
        y.backward()
        assert (y.item(), x.grad.item()) == (1 + want, 1)
        assert nd.params_many(x, p15=0, p0=5).item() == 1 + want - 16 * 15 + 5
    finally:
        registry.unregister("params_many")


def test_no_shape_is_the_default():
    """As in MXNet, where None is a shape that is not known."""
    x, y = nd.ones((3, 4)), nd.ones((2, 2))
    assert nd.slice_like(x, y, axes=None).shape == nd.slice_like(x, y, axes="None").shape == (2, 2)
    assert mx.sym.Dropout(mx.sym.Variable("x"), axes=None).list_arguments() == ["x"]
    with pytest.raises(mx.MXNetError, match="reps=None"):
        nd.tile(x, reps=None)
