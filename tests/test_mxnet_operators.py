"""Attention, CTC, Hawkes processes, quantization and other operators against MXNet's answers, and what those do not tell."""

import json

import mxnet_operators
import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd
from mxop.test_utils import check_op

CASES = json.loads(mxnet_operators.DATA.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted({case[0] for _, case, _ in CASES}))
def test_mxnets_answers(name):
    """See ``mxnet_operators.py``: results and gradients for random parameters."""
    asked = [row for row in CASES if row[1][0] == name]
    assert len(asked) == 8
    for seed, case, answer in asked:
        found = mxnet_operators.run(mx, seed, case)
        assert [part[:2] for part in found] == [part[:2] for part in answer], case
        for ours, theirs in zip(found, answer, strict=True):
            np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-4, atol=1e-5, err_msg=str(case))


def test_random_slopes_while_training():
    x = nd.array(np.full((100, 100), -1.0))
    x.attach_grad()
    with autograd.record():
        y, drawn = nd.LeakyReLU(x, act_type="rrelu", lower_bound=0.25, upper_bound=0.75)
    y.backward()
    slopes = -y.asnumpy()
    np.testing.assert_array_equal(drawn.asnumpy(), slopes)
    assert slopes.min() >= 0.25
    assert slopes.max() < 0.75
    assert abs(slopes.mean() - 0.5) < 0.01
    np.testing.assert_allclose(x.grad.asnumpy(), slopes)  # backward knows what was drawn
    assert set(nd.LeakyReLU(x, act_type="rrelu", lower_bound=0.25, upper_bound=0.75)[0].asnumpy().ravel()) == {-0.5}
    assert (nd.LeakyReLU(-x, act_type="rrelu")[0].asnumpy() == 1).all()


def test_random_slopes_in_executors():
    net = mx.sym.LeakyReLU(mx.sym.Variable("x"), act_type="rrelu")[0]
    executor = net.bind(mx.cpu(), {"x": -nd.ones((50,))}, {"x": nd.zeros((50,))})
    first = executor.forward(is_train=True)[0].asnumpy()
    executor.backward(nd.ones((50,)))
    np.testing.assert_allclose(executor.grad_arrays[0].asnumpy(), -first, rtol=1e-6)
    assert (executor.forward(is_train=True)[0].asnumpy() != first).any()
    np.testing.assert_allclose(executor.forward(is_train=False)[0].asnumpy(), -(0.125 + 0.334) / 2, rtol=1e-6)


def test_loss_of_labels_that_do_not_fit():
    x = nd.array(np.random.default_rng(0).normal(size=(2, 1, 3)))
    x.attach_grad()
    with autograd.record():
        loss = nd.ctc_loss(x, nd.array([[1, 1]]))  # needs a blank between them: three steps
    loss.backward()
    assert loss.item() == 0
    assert (x.grad.asnumpy() == 0).all()


def test_penalty_of_activations():
    """The answer of MXNet's executor: gradient and moving average of one step."""
    net = mx.sym.IdentityAttachKLSparseReg(mx.sym.Variable("x"), name="k", penalty=0.1)
    assert net.list_auxiliary_states() == ["k_moving_avg"]
    executor = net.simple_bind(mx.cpu(), x=(3, 2))
    executor.arg_dict["x"][:] = np.array([[0.2, 0.5], [0.3, 0.4], [0.9, 0.1]])
    executor.aux_dict["k_moving_avg"][:] = np.array([0.3, 0.6])
    executor.forward(is_train=True)
    executor.backward(nd.ones((3, 2)))
    np.testing.assert_allclose(executor.grad_arrays[0].asnumpy(), [[1.1001284, 1.1934956]] * 3, rtol=1e-6)
    np.testing.assert_allclose(executor.aux_arrays[0].asnumpy(), [0.3166667, 0.5733334], rtol=1e-6)
    executor.forward(is_train=False)
    np.testing.assert_allclose(executor.aux_arrays[0].asnumpy(), [0.3166667, 0.5733334], rtol=1e-6)


def test_values_survive_eight_bits():
    x = nd.array(np.linspace(-2, 2, 1001))
    found = nd.contrib.dequantize(*nd.contrib.quantize_v2(x))
    assert abs(found - x).max().item() <= 2 / 127.5
    levels, scale, shift = nd.contrib.quantize_asym(x)
    assert (
        abs((levels.astype("float32") - shift) / scale - x).max().item() <= 2.001 / 255
    )  # of 256 levels, the middle is between two
    assert nd.contrib.quantize_v2(nd.zeros((3,)))[0].asnumpy().tolist() == [0, 0, 0]


def test_unique_classes():
    classes, tries = nd._internal._sample_unique_zipfian(range_max=50, shape=(20, 30))
    rows = classes.asnumpy()
    assert all(len(set(row)) == 30 for row in rows.tolist())
    assert rows.min() >= 0
    assert rows.max() < 50
    assert (tries.asnumpy() >= 30).all()


@pytest.mark.parametrize("bins", [3, nd.array([0, 1, 5])])
def test_histogram_of_python(bins):
    x = np.array([0, 0.5, 1, 4, 5])
    counts, edges = nd.histogram(nd.array(x), bins)
    want = np.histogram(x, bins if isinstance(bins, int) else bins.asnumpy())
    assert counts.asnumpy().tolist() == want[0].tolist()
    np.testing.assert_allclose(edges.asnumpy(), want[1], rtol=1e-6)
    assert sum(nd.histogram(nd.ones((4,)))[0].asnumpy()) == 4


@pytest.mark.parametrize("behind", [np.nan, np.inf, -1e30])
def test_ctc_reads_nothing_behind_the_ends(behind):
    data, labels, lengths = (
        np.random.default_rng(3).normal(size=(4, 2, 5)),
        nd.array([[1, 2], [1, 0]]),
        nd.array([3, 2]),
    )
    found = []
    for rest in (0, behind):
        data[3:, 0] = data[2:, 1] = rest
        x = nd.array(data)
        x.attach_grad()
        with autograd.record():
            loss = nd.CTCLoss(x, labels, lengths, use_data_lengths=True)
        loss.backward()
        found.append((loss.asnumpy(), x.grad.asnumpy()))
        assert not x.grad.asnumpy()[3:, 0].any()
        assert not x.grad.asnumpy()[2:, 1].any()
    for clean, other in zip(*found, strict=True):
        np.testing.assert_array_equal(clean, other)


def test_histogram_between_the_least_and_the_largest():
    """As in MXNet it is of float32, also of integers, whose bins need not end at whole numbers."""
    found = nd.histogram(nd.array([1, 2, 2, 5], dtype="int64"), 3)
    assert [a.dtype for a in found] == [np.float32] * 2
    np.testing.assert_allclose(found[0].asnumpy() / 4, [0.75, 0, 0.25])
    np.testing.assert_allclose(found[1].asnumpy(), [1, 7 / 3, 11 / 3, 5], rtol=1e-6)


def test_arrays_without_elements_are_close():
    with mx.np_shape():
        assert nd.contrib.allclose(nd.zeros((0, 2)), nd.zeros((0, 2))).item() == 1


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_levels_keep_the_limits_that_are_given(dtype):
    levels = nd.array([1, 2], dtype=dtype)
    found, low, high = nd.contrib.quantize_v2(levels, min_calib_range=-2.0, max_calib_range=1.5)
    assert (found.asnumpy().tolist(), low.item(), high.item()) == ([1, 2], -2, 1.5)


@pytest.mark.parametrize(
    ("name", "dtypes"),
    [
        ("_contrib_interleaved_matmul_selfatt_valatt", ["float64"]), ("_ctc_paths", ["float64"]), ("_ctc_start", None),
        ("CTCLoss", ["float64"]), ("_contrib_hawkesll", ["float64"]), ("_contrib_quantize_v2", None),
        ("_contrib_dequantize", None), ("_contrib_calibrate_entropy", None), ("_histogram", ["float64", "int32"]),
        ("_contrib_allclose", ["float64"]),
        ("_contrib_count_sketch", ["float64"]), ("IdentityAttachKLSparseReg", ["float64"]), ("_csr_dot", ["float64"]),
        ("_sparse_retain", ["float64"]), ("_scatter_set_nd", ["float64"]), ("fill_element_0index", ["float64"]),
    ],
)  # fmt: skip
def test_on_a_simulated_gpu(name, dtypes, simulated_gpu):
    check_op(name, device="gpu", dtypes=dtypes, orders=2)


@pytest.mark.parametrize(
    ("name", "params", "outputs"),
    [
        ("CTCLoss", {}, ["output0"]),  # MXNet computes more than it shows, so that the one has a number
        ("sort", {}, ["output0"]),
        ("linalg_det", {}, ["output0"]),
        ("topk", {}, ["output"]),
        ("_internal._histogram", {"bin_cnt": 2, "range": (0, 1)}, ["output0", "output1"]),
        ("contrib.quantize_v2", {}, ["output0", "output1", "output2"]),
        ("contrib.hawkesll", {}, ["output", "out_state"]),
        ("contrib.calibrate_entropy", {}, ["threshold", "divergence"]),
    ],
)
def test_outputs_have_mxnets_names(name, params, outputs):
    """``symbol['loss_output0']`` and ``get_internals()`` of programs name them."""
    function = mx.sym
    for part in name.split("."):
        function = getattr(function, part)
    net = function(name="z", **params)
    assert net.list_outputs() == [f"z_{output}" for output in outputs]


@pytest.mark.parametrize(
    ("data", "gamma", "as_if"),
    [
        ((3, 4, 2, 5), (3, 4), (3, 4, 1, 1)), ((3, 4, 2), (1, 4), (1, 4, 1)), ((3, 4, 2), (3, 1), (3, 1, 1)),
        ((3, 4), (3,), (3, 1)),
    ],
)  # fmt: skip
def test_prelu_with_a_slope_for_each_sample(data, gamma, as_if):
    x, slope = nd.random.normal(shape=data), nd.random.uniform(shape=gamma)
    slope.attach_grad()
    with autograd.record():
        y = nd.LeakyReLU(x, slope, act_type="prelu")
    y.backward()
    below = np.minimum(x.asnumpy(), 0)
    np.testing.assert_allclose(y.asnumpy(), np.maximum(x.asnumpy(), 0) + below * slope.asnumpy().reshape(as_if), rtol=1e-6)
    summed = tuple(a for a, size in enumerate(as_if) if size == 1)
    np.testing.assert_allclose(slope.grad.asnumpy(), below.sum(summed).reshape(gamma), rtol=1e-5)
