"""Where a NaN came from: `mx.autograd.detect_nan` and `Executor.detect_nan`."""

import threading

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym
from mxop.nans import NaNError
from mxop.op import F, elementwise, reduction

X = np.array([[1.0, -4.0], [0.0, 9.0]], "float32")


@pytest.mark.parametrize("size", [4, 10_000])
def test_the_first_call_is_named(size):
    x = nd.array(np.resize(X, (size // 2, 2)))
    with autograd.detect_nan():
        y = x * 2 - 1
        with pytest.raises(
            NaNError, match=r"operator sqrt produced NaN from inputs without NaN: output 0 at \(0, 1\), where input 0 is -9"
        ):
            nd.sum(nd.sqrt(y) * 0)
        nd.sqrt(nd.abs(x))
    assert np.isnan(nd.sqrt(x).asnumpy()).any()  # outside of the scope nothing is looked at


def test_every_kind_of_call():
    x, inf = nd.array(X), nd.array([np.inf, -np.inf])
    calls = {
        "_minus_scalar|elemwise_sub|broadcast_sub": lambda: inf - inf,
        "sum": lambda: nd.sum(inf),
        "dot": lambda: nd.dot(inf, nd.zeros(2)),
        "log": lambda: x.log(),
        "broadcast_div": lambda: nd.zeros((2, 2)) / nd.zeros((1, 2)),
    }
    for name, call in calls.items():
        with autograd.detect_nan(), pytest.raises(NaNError, match=f"operator ({name}) produced NaN"):
            call()


def test_what_was_given_is_told_from_what_was_made():
    x = nd.array([1.0, np.nan])
    with autograd.detect_nan(), pytest.raises(NaNError, match=r"operator exp was given NaN: input 0 at \(1,\)"):
        nd.exp(x)


def test_backward_and_composites():
    x = nd.array([4.0, 0.0])
    x.attach_grad()
    with autograd.detect_nan():
        with autograd.record():
            y = nd.sqrt(x) * nd.array([1.0, 0.0])
        with pytest.raises(NaNError, match="operator _backward_"):
            y.backward()
        with pytest.raises(
            NaNError, match=r"operator softmax_cross_entropy: its broadcast_sub of \S* of log_softmax produced NaN"
        ):
            nd.softmax_cross_entropy(nd.array([[np.inf, np.inf]]), nd.array([0.0]))


def test_it_changes_no_result():
    def third(x):
        with autograd.record():
            (g,) = autograd.grad(nd.sum(nd.tanh(x) ** 3), [x], create_graph=True)
            (h,) = autograd.grad(nd.sum(g * g), [x], create_graph=True)
        h.backward()
        return x.grad.asnumpy()

    x = nd.array([0.3, 0.7])
    x.attach_grad()
    plain = third(x)
    with autograd.detect_nan():
        np.testing.assert_array_equal(third(x), plain)
    with autograd.detect_nan(), autograd.detect_nan():
        pass
    assert np.isnan((nd.zeros(1) / nd.zeros(1)).asnumpy()).all()


def test_other_threads_go_on():
    found = []
    with autograd.detect_nan():
        other = threading.Thread(target=lambda: found.append(nd.log(nd.array([-1.0])).asnumpy()))
        other.start()
        other.join()
    assert np.isnan(found[0]).all()


def test_executors_name_node_and_line():
    x = sym.var("x")
    graph = sym.sum(sym.log(sym.sqrt(x, name="root") + 1, name="outer"))
    executor = graph.bind(mx.cpu(), {"x": nd.array(X)}, {"x": nd.zeros((2, 2))})
    with (
        executor.detect_nan(),
        pytest.raises(NaNError, match=r"operator sqrt produced NaN.*in node 'root' .*test_nans\.py"),
    ):
        executor.forward(is_train=True)
    assert np.isnan(executor.forward(is_train=True)[0].asnumpy()).all()
    executor.arg_dict["x"][:] = nd.array([[1, 4], [0, 9]])
    scaled = (sym.sqrt(x, name="root") * sym.zeros_like(x)).bind(mx.cpu(), {"x": nd.array([0.0])}, {"x": nd.zeros(1)})
    with scaled.detect_nan():
        scaled.forward(is_train=True)
        with pytest.raises(NaNError, match="root_backward"):
            scaled.backward(nd.array([1.0]))


# ---- the part of a formula ----------------------------------------------------------------------------------------------
@pytest.fixture
def focal(own):
    @elementwise
    def test_nan_focal(data, label, *, gamma: float = 2.0):
        """A focal loss without care."""
        p = 1 / (1 + F.exp(-data))
        return -label * (1 - p) ** gamma * F.log(p) - (1 - label) * p**gamma * F.log(1 - p)

    return own(test_nan_focal)


def test_the_part_of_a_formula_is_named(focal):
    x, label = nd.array([1.0, 40.0]), nd.array([1.0, 1.0])
    message = (
        r"operator test_nan_focal produced NaN from inputs without NaN: output 0 at \(1,\), where input 0 is 40.0, "
        r"input 1 is 1.0; "
        r"in its part .*log\(1 - .*\), whose operands are (-?0), -inf"
    )
    with autograd.detect_nan(), pytest.raises(NaNError, match=message):
        focal(x, label)
    executor = focal(sym.var("x"), sym.var("label")).bind(mx.cpu(), {"x": x, "label": label})
    with executor.detect_nan(), pytest.raises(NaNError, match=message):
        executor.forward()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_parts_in_every_type_with_parameters_and_broadcasting(own, dtype):
    @elementwise(broadcast=True)
    def test_nan_part(a, b, *, shift: float = 1.0):
        """A root of a difference."""
        return F.exp(a) + F.sqrt(a - b - shift)

    own(test_nan_part)
    a, b = nd.array([[3.0], [9.0]], dtype=dtype), nd.array([1.0, 4.0], dtype=dtype)
    with autograd.detect_nan():  # noqa: SIM117
        with pytest.raises(NaNError, match=r"at \(0, 1\); in its part sqrt\(a - b - 2\), whose operands are -3$"):
            test_nan_part(a, b, shift=2.0)


def test_parts_that_are_nan_in_one_type_only(own):
    @elementwise
    def test_nan_range(x):
        """A difference of large numbers."""
        return F.exp(x) - F.exp(x + 1)

    own(test_nan_range)
    with autograd.detect_nan():
        test_nan_range(nd.array([100.0], dtype="float64"))
        with pytest.raises(NaNError, match=r"in its part exp\(x\) - exp\(x \+ 1\), whose operands are inf, inf"):
            test_nan_range(nd.array([100.0]))


def test_parts_of_gradients():
    x = nd.array([0.0, 1.0])
    x.attach_grad()
    with autograd.detect_nan():
        with autograd.record():
            y = nd.sqrt(x) * nd.array([0.0, 1.0])
        with pytest.raises(NaNError, match=r"_backward_sqrt.*in its part .*, whose operands are 0, "):
            y.backward()


def test_parts_of_reductions(own):
    @reduction("add", final=lambda value, count: F.log(value / count))
    def test_nan_reduced(data):
        """Logarithm of a mean of logarithms."""
        return F.log(data)

    own(test_nan_reduced)
    cases = {
        r"at \(1, 0\), where data is -1.0$": [[1.0, 2.0], [-1.0, 3.0]],
        "in its final formula": [[0.5, 0.5], [0.5, 0.25]],
        r"in combining elements \(add\)": [[0.0, np.inf], [1.0, 1.0]],
    }
    for message, values in cases.items():
        with autograd.detect_nan(), pytest.raises(NaNError, match=message):
            nd.test_nan_reduced(nd.array(values))


def test_looking_at_a_part_is_not_looked_at(focal):
    with autograd.detect_nan():
        with pytest.raises(NaNError, match="test_nan_focal"):
            focal(nd.array([100.0]), nd.array([1.0]))
        with pytest.raises(NaNError, match="operator log"):
            nd.log(nd.array([-1.0]))
