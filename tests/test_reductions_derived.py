"""Gradients that follow from a reduction's definition: element, combination and final formula; and what belongs to it."""

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym
from mxop.op import F, reduction

POSITIVE = {"domain": (0.3, 2.0), "dtypes": "f"}


@pytest.fixture
def operators(own):
    @reduction("add", final=lambda value, count: F.sqrt(value / count))
    def test_derived_rms(data):
        """Root of the mean of squares."""
        return F.square(data)

    @reduction("add", final=lambda value, count, *, power, shift: (value + shift) ** (1 / power))
    def test_derived_power(data, *, power: float = 3.0, shift: float = 0.5):
        """Norm of any order."""
        return F.abs(data) ** power

    @reduction("max")
    def test_derived_farthest(data, *, centre: float = 0.25):
        """Largest square of a distance."""
        return F.square(data - centre)

    @reduction("min", final=lambda value, count: F.log(value) * count)
    def test_derived_least(data):
        """Logarithm of the smallest cube."""
        return data**3

    @reduction("mul", final=lambda value, count: value - 1)
    def test_derived_growth(data):
        """Growth over periods."""
        return 1 + data

    @reduction("hypot", wide=True)
    def test_derived_length(data):
        """Length of a vector of exponentials."""
        return F.exp(data)

    def axes(kw):
        return {"axis": kw.get("axis"), "keepdims": kw.get("keepdims", False)}

    cases = [{}, {"axis": 1}, {"axis": 0, "keepdims": True}]
    smooth = {"params": cases, "shapes": [((3, 4),)] * 3}
    own(test_derived_rms, lambda x, **kw: np.sqrt(np.mean(x**2, **axes(kw))), **smooth, **POSITIVE)
    own(test_derived_power,
        lambda x, power=3.0, shift=0.5, **kw: (np.sum(np.abs(x) ** power, **axes(kw)) + shift) ** (1 / power),
        params=[{}, {"power": 2.0, "axis": 1}, {"shift": 1.5, "axis": 0}], shapes=[((3, 4),)] * 3, **POSITIVE)  # fmt: skip
    own(
        test_derived_farthest,
        lambda x, centre=0.25, **kw: np.max((x - centre) ** 2, **axes(kw)),
        distinct=True,
        **smooth,
    )
    own(test_derived_least,
        lambda x, **kw: np.log(np.min(x**3, **axes(kw))) * (x.size if kw.get("axis") is None else x.shape[kw["axis"]]),
        distinct=True, **smooth, **POSITIVE)  # fmt: skip
    own(test_derived_growth, lambda x, **kw: np.prod(1 + x, **axes(kw)) - 1, **smooth, **POSITIVE)
    own(test_derived_length, lambda x, **kw: np.sqrt(np.sum(np.exp(2 * x), **axes(kw))), **smooth, **POSITIVE)
    return mx.op


NAMES = ["rms", "power", "farthest", "least", "growth", "length"]


@pytest.mark.parametrize("name", NAMES)
def test_every_order(operators, name):
    mx.test_utils.check_op("test_derived_" + name)


def test_slopes_that_are_read_off_the_element(own):
    """The derivative of exp is exp: what a sum's gradient reads is computed again."""

    @reduction("add")
    def test_derived_exp(data):
        """Sum of exponentials."""
        return F.exp(data)

    own(test_derived_exp, lambda x, axis=None: np.sum(np.exp(x), axis=axis), params=[{}, {"axis": 1}], dtypes="f")
    mx.test_utils.check_op("test_derived_exp")


def test_nothing_is_computed_that_the_gradient_does_not_read(operators):
    """Of a mean's final formula the slope is a number: the combined value is not found again."""

    @reduction("add", final=lambda value, count: value / count)
    def test_derived_mean(data):
        """The mean."""
        return data

    try:
        executor = sym.test_derived_mean(sym.var("x")).simple_bind(mx.cpu(), x=(4, 5))
        executor.forward(is_train=True)
        executor.backward(nd.array([2.0]))
        np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), np.full((4, 5), 0.1), rtol=1e-6)
        assert "_combined_" not in executor.debug_str()
    finally:
        mx.op.unregister("test_derived_mean")


def gradient_of(function):
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = function(x)
    y.backward()
    return x.grad.asnumpy().tolist()


def test_a_reduction_defined_again_has_its_own_derivative(own):
    def define(factor):
        @reduction("add")
        def test_derived_again(data):
            """Sum of multiples."""
            return factor * data * data

        return test_derived_again

    op = own(define(1))
    assert gradient_of(nd.test_derived_again) == [2, 4]
    old = sym.test_derived_again(sym.var("x"))
    define(3)
    assert gradient_of(nd.test_derived_again) == gradient_of(mx.op.get("test_derived_again")) == [6, 12]
    assert op is not mx.op.get("test_derived_again")
    for graph, want in ((old, [2, 4]), (sym.test_derived_again(sym.var("x")), [6, 12])):
        executor = graph.bind(mx.cpu(), {"x": nd.array([1.0, 2.0])}, {"x": nd.zeros(2)})
        executor.forward(is_train=True)
        executor.backward(nd.ones(1))
        assert executor.grad_dict["x"].asnumpy().tolist() == want


def test_names_that_differ_by_underscores_are_two(own):
    @reduction("add", name="test_derived_under")
    def one(data):
        """Sum of squares."""
        return data * data

    @reduction("add", name="_test_derived_under")
    def other(data):
        """Sum of cubes."""
        return data * data * data

    own(one), own(other)
    assert gradient_of(nd.test_derived_under) == [2, 4]
    assert gradient_of(nd._internal._test_derived_under) == [3, 12]


def test_a_saved_gradient_finds_its_parts(operators):
    x = sym.var("x")
    graph = mx.graph.deriv(sym.test_derived_farthest(x, centre=1.0), x)
    assert "_map_test_derived_farthest" in graph.tojson()
    again = sym.load_json(graph.tojson())
    value = nd.array([[1.5, -3.0]])
    found = [g.bind(mx.cpu(), {"x": value}).forward()[0].asnumpy().tolist() for g in (graph, again)]
    assert found == [[[0, -8]]] * 2


def test_unregistered_parts_are_gone(own):
    @reduction("mul", name="test_derived_gone")
    def gone(data):
        """Product of doubles."""
        return 2 * data

    assert gradient_of(nd.test_derived_gone) == [8, 4]
    assert mx.op.find("_map_test_derived_gone") is not None
    mx.op.unregister("test_derived_gone")
    assert mx.op.find("_map_test_derived_gone") is None
