"""Gradients that follow from a reduction's definition: element, combination and final formula; and what belongs to it."""

import math

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym
from mxop.op import F, reduction, unregister

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


# ---- several inputs, and two combinations -------------------------------------------------------------------------------
@pytest.fixture
def composed(own):
    @reduction("add", final=lambda value, count, *, shift: value / count + shift)
    def test_derived_weighted(data, weight, *, shift: float = 0.5):
        """Mean with weights."""
        return data * F.square(weight)

    @reduction("max", broadcast=True)
    def test_derived_apart(lhs, rhs):
        """Largest difference."""
        return F.abs(lhs - rhs)

    @reduction(("max", "add"), final=lambda largest, total, count: largest + F.log(total))
    def test_derived_lse(data):
        """Logarithm of the sum of exponentials, which does not overflow."""
        return data, lambda largest: F.exp(data - F.where(F.abs(largest) == math.inf, 0, largest))

    @reduction(("add", "add"), final=lambda total, squares, count, **_: squares / count - F.square(total / count))
    def test_derived_spread(data, *, scale: float = 1.0):
        """Variance."""
        return scale * data, lambda total: F.square(scale * data)

    @reduction(("max", "min"))
    def test_derived_gap(data, other):
        """The element of the other that is nearest below the largest."""
        return data, lambda largest: F.abs(largest - other)

    def axes(kw):
        return {"axis": kw.get("axis"), "keepdims": kw.get("keepdims", False)}

    cases = [{}, {"axis": 1}, {"axis": 0, "keepdims": True}, {"axis": (0,), "exclude": True}]

    def along(kw):
        return axes(kw | ({"axis": 1} if kw.get("exclude") else {}))

    two = {"params": cases, "shapes": [((3, 4), (3, 4))] * 4, "dtypes": "f"}
    one = {"params": cases, "shapes": [((3, 4),)] * 4, "dtypes": "f"}
    own(test_derived_weighted, lambda x, w, shift=0.5, **kw: np.mean(x * w**2, **along(kw)) + shift, **two)
    own(test_derived_apart, lambda x, y, **kw: np.max(np.abs(x - y), **along(kw)), distinct=True,
        **two | {"shapes": [((3, 4), (4,))] * 4})  # fmt: skip
    own(test_derived_lse, lambda x, **kw: np.log(np.sum(np.exp(x), **along(kw))), **one)
    own(test_derived_spread, lambda x, scale=1.0, **kw: np.var(scale * x, **along(kw)), **one)
    own(test_derived_gap, lambda x, y, **kw: np.min(np.abs(np.max(x, **along(kw) | {"keepdims": True}) - y), **along(kw)),
        distinct=True, **two)  # fmt: skip


@pytest.mark.parametrize("name", ["weighted", "apart", "lse", "spread", "gap"])
def test_composed_at_every_order(composed, name):
    mx.test_utils.check_op("test_derived_" + name)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_safe_log_sum_exp(composed, dtype):
    x = nd.array([[1000.0, 1000.0, 999.0], [-1000.0, 0.0, 1.0]], dtype=dtype)
    want = np.logaddexp.reduce(x.asnumpy().astype("float64"), axis=1)
    tolerance = {"float16": 1e-3, "float32": 1e-6, "float64": 1e-14}[dtype]
    x.attach_grad()
    with autograd.record():
        y = nd.test_derived_lse(x, axis=1)
    y.backward(nd.array([0.5, -0.25], dtype=dtype))
    np.testing.assert_allclose(y.asnumpy(), want, rtol=tolerance)
    slope = np.exp(x.asnumpy() - want[:, None]) * [[0.5], [-0.25]]
    np.testing.assert_allclose(x.grad.asnumpy(), slope, atol=2 * tolerance)
    executor = sym.test_derived_lse(sym.var("x"), axis=1).bind(mx.cpu(), {"x": x})
    np.testing.assert_allclose(executor.forward()[0].asnumpy(), want, rtol=tolerance)


def test_composed_reductions_are_reductions(composed):
    x = nd.array([[1.0, 2.0], [3.0, 5.0]])
    width = mx.axes.make_axis(2, name="W")
    named = mx.axes.test_derived_lse(mx.axes.tensor(x, [mx.axes.make_axis(2, name="H"), width]), reduction_axes=[width])
    np.testing.assert_allclose(named.asnumpy(), np.logaddexp.reduce(x.asnumpy(), axis=1), rtol=1e-6)
    assert "reduction" in mx.op.describe("test_derived_lse") and "exclude" in mx.op.info("test_derived_lse")["parameters"]
    graph = sym.test_derived_weighted(sym.var("x"), sym.var("w"), axis=1)
    assert graph.infer_shape(x=(2, 2))[0] == [(2, 2), (2, 2)]
    graph = sym.test_derived_apart(sym.var("x"), sym.var("w"))
    gradient = mx.graph.deriv(graph, graph.get_internals()["x"])
    again = sym.load_json(gradient.tojson())
    assert "_map_test_derived_apart" in gradient.tojson()
    values = {"x": x, "w": nd.array([1.0, 9.0])}
    found = [g.bind(mx.cpu(), values).forward()[0].asnumpy().tolist() for g in (gradient, again)]
    assert found[0] == found[1] == [[0, -1], [0, 0]]


def test_a_composed_reduction_defined_again(own):
    def define(power):
        @reduction("add")
        def test_derived_twice(data, weight):
            """Weighted powers."""
            return data**power * weight

        return test_derived_twice

    own(define(2))
    for power in (2, 3):
        define(power)
        x = nd.array([1.0, 2.0])
        x.attach_grad()
        with autograd.record():
            y = nd.test_derived_twice(x, nd.ones(2))
        y.backward()
        assert y.item() == 1 + 2**power and x.grad.asnumpy().tolist() == [power, power * 2 ** (power - 1)]


def test_parts_that_a_reduction_does_not_have(composed):
    assert mx.op.find("_second_map_test_derived_lse") is not None and mx.op.find("_second_test_derived_lse") is not None
    for name in (
        "_second_map_sum",
        "_second_sum",
        "_final_sum",
        "_second_test_derived_apart",
        "_final_test_derived_apart",
    ):
        assert mx.op.find(name) is None


def test_a_pair_that_is_none():
    with pytest.raises(mx.MXNetError, match=r"operator not_a_pair, .*returns a pair: the element of the first"):

        @reduction(("max", "add"))
        def not_a_pair(data):
            return data

    with pytest.raises(mx.MXNetError, match=r"not_final.*final formula is called as rule\(first, second, count\)"):

        @reduction(("max", "add"), final=lambda value, count: value)
        def not_final(data):
            return data, lambda largest: data

    with pytest.raises(mx.MXNetError, match="one combination or a pair"):
        reduction(("max", "add", "mul"))


def test_what_is_between_the_parts_is_not_cut_to_integers():
    @reduction(("max", "add"), final=lambda largest, total, count: largest + F.log(total))
    def whole_log_sum_exp(data):
        """Logarithm of the sum of exponentials."""
        return data, lambda largest: F.exp(data - largest)

    @reduction("add")
    def whole_half_product(data, weight):
        """Half the sum of products."""
        return data * weight * 0.5

    try:
        data = nd.array([[1, 2, 3, 1, 2, 3]] * 2, dtype="int32")
        wanted = int(np.log(np.exp([1, 2, 3, 1, 2, 3.0]).sum()))
        assert whole_log_sum_exp(data, axis=1).asnumpy().tolist() == [wanted] * 2
        x = mx.sym.var("x")
        assert mx.sym.whole_log_sum_exp(x, axis=1).eval(x=data)[0].asnumpy().tolist() == [wanted] * 2
        assert whole_half_product(data, data, axis=1).asnumpy().tolist() == [14] * 2
    finally:
        for op in (whole_log_sum_exp, whole_half_product):
            unregister(op.name)


def test_records_that_cannot_be_meant():
    for details, match in (
        ({}, "reference= is missing"),
        ({"reference": abs, "input_types": {"label": "int32"}}, "by position"),
        ({"reference": abs, "dtype": "f"}, "no field 'dtype'"),
    ):
        with pytest.raises(mx.MXNetError, match=match):
            mx.records.record("whatever", **details)


# ---- results where the data lie ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", ["sum", "max", "prod", "norm", "mean"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((2, 3), 1), ((1, 3), 0), ((4, 3), 0), ((2, 3, 4), 1), ((300, 7), 1), ((7, 300), 0)]
)
def test_results_that_overlap_what_is_reduced(name, shape, axis, threads, tune):
    """Whichever elements they take the place of, these are read first."""
    tune(parallel_bytes=256)
    mx.context.set_num_threads(threads)
    values = np.random.default_rng(0).uniform(0.9, 1.1, np.prod(shape))
    function = getattr(nd, name)
    expected = function(nd.array(values.reshape(shape), dtype="float64"), axis=axis).asnumpy()
    for at in {*range(20), values.size // 2, values.size - 1} & {*range(values.size)}:
        memory = nd.array(np.append(values, np.zeros(expected.size)), dtype="float64")
        out = memory[at : at + expected.size].reshape(expected.shape)
        function(memory[: values.size].reshape(shape), axis=axis, out=out)
        np.testing.assert_array_equal(out.asnumpy(), expected, err_msg=f"from element {at} on")
