"""The test utilities themselves: each check passes on what is right, and fails on what is wrong, saying where."""

import contextlib
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mxop as mx
from mxop import test_utils as tu

FLAKINESS_CHECKER = Path(__file__).resolve().parent.parent / "tools" / "flakiness_checker.py"


def _variable():
    return mx.sym.Variable("x")


def _half_gradient():
    """Return x*x with a gradient that lacks one of its two paths."""
    x = _variable()
    return mx.sym.BlockGrad(x) * x


# --------------------------------------------------------------------------------------------------------------------
# Comparing
# --------------------------------------------------------------------------------------------------------------------
def test_assert_almost_equal_tells_where_and_how_much():
    a = np.zeros((2, 3))
    b = np.array([[0, 0, 1.0], [0, 0, 5]])
    with pytest.raises(AssertionError) as caught:
        tu.assert_almost_equal(a, b, rtol=1e-2, atol=1e-3, names=("found", "wanted"))
    text = str(caught.value)
    assert "2 of 6 elements (33.33%)" in text
    assert "(1, 2): found=0.0, wanted=5.0, error 5, 98.0392 times the tolerance" in text
    assert "Maximum absolute error 5, relative 1" in text
    assert "(0, 2)" in text.split("Next worst")[1]
    assert "float64(2, 3)" in text
    assert "rtol=0.01, atol=0.001" in text


def test_assert_almost_equal_lists_only_so_many():
    with pytest.raises(AssertionError) as caught:
        tu.assert_almost_equal(np.arange(1, 101.0), np.zeros(100), mismatches=(3, 3))
    assert str(caught.value).count("times the tolerance") == 3


@pytest.mark.parametrize(
    ("dtype", "good", "bad"), [("float16", 1.1, 1.2), ("float32", 1.001, 1.01), ("float64", 1 + 1e-6, 1.0001)]
)
def test_default_tolerance_follows_the_dtype(dtype, good, bad):
    one = np.ones(3, dtype)
    tu.assert_almost_equal(one, np.array([1, good, 1], dtype))
    with pytest.raises(AssertionError, match=r"\(1,\)"):
        tu.assert_almost_equal(one, np.array([1, bad, 1], dtype))


def test_the_looser_of_two_dtypes_holds():
    tu.assert_almost_equal(np.ones(1, "float32"), np.full(1, 1.001))
    with pytest.raises(AssertionError):
        tu.assert_almost_equal(np.ones(1), np.full(1, 1.001))


@pytest.mark.parametrize("key", [np.float32, np.dtype("float32"), "float32"])
def test_tolerances_by_dtype(key):
    a, b = np.ones(1, "float32"), np.full(1, 1.5, "float32")
    tu.assert_almost_equal(a, b, rtol={key: 1.0})
    with pytest.raises(AssertionError):
        tu.assert_almost_equal(a, b, rtol={key: 1e-3})
    assert tu.get_rtol({key: 0.5}, np.float64) == 1e-5  # silent on float64


def test_tolerance_tables():
    assert tu.default_rtols()[np.dtype("float32")] == 1e-4
    assert tu.default_atols()[np.dtype("float16")] == 1e-1
    assert tu.default_numeric_eps()[np.dtype("float64")] == 2.0**-14
    assert (tu.get_rtol(), tu.get_atol(), tu.get_etol()) == (1e-5, 1e-20, 0)
    assert (tu.get_rtol(0.5), tu.get_atol(0.5), tu.get_etol(0.5)) == (0.5, 0.5, 0.5)
    assert tu.get_tolerance(np.ones(1, "float32"), None, tu.default_rtols()) == 1e-4
    assert tu.get_tols(np.float16([1]), np.float64([1]), None, 3) == (1e-2, 3)
    assert tu.default_dtype() is np.float32


def test_nan_and_infinity_equal_only_themselves():
    nan, inf = np.array([np.nan, 1]), np.array([np.inf, 1])
    tu.assert_almost_equal(nan, nan, equal_nan=True)
    tu.assert_almost_equal(inf, inf)
    for a, b in [(nan, nan), (np.ones(2), nan), (nan, np.ones(2)), (np.ones(2), inf), (inf, np.ones(2)), (inf, -inf)]:
        with pytest.raises(AssertionError, match=r"Location of maximum error: \(0,\)"):
            tu.assert_almost_equal(a, b, rtol=0.1)
    with pytest.raises(AssertionError):
        tu.assert_almost_equal(np.ones(2), nan, equal_nan=True)


def test_integers_are_compared_exactly():
    tu.assert_almost_equal(np.array([2**62]), np.array([2**62]))
    with pytest.raises(AssertionError, match="error 1"):
        tu.assert_almost_equal(np.array([2**62]), np.array([2**62 + 1]))
    with pytest.raises(AssertionError, match="error 255"):
        tu.assert_almost_equal(np.array([255], "uint8"), np.array([0], "uint8"))


def test_shapes():
    tu.assert_almost_equal(np.ones(3), np.ones((2, 3)))
    tu.assert_almost_equal(np.ones(1), np.array(1.0))
    tu.assert_almost_equal(np.ones((0, 3)), np.ones((0, 3)))
    with pytest.raises(AssertionError, match=r"\(3,\).*\(2, 3\)"):
        tu.assert_almost_equal(np.ones(3), np.ones((2, 3)), use_broadcast=False)
    with pytest.raises(AssertionError, match=r"\(2, 3\).*\(3, 2\)"):
        tu.assert_almost_equal(mx.nd.ones((2, 3)), np.ones((3, 2)))


def test_almost_equal_and_same():
    a, b = mx.nd.array([1, 2]), np.array([1, 2], "float32")
    assert tu.almost_equal(a, b)
    assert not tu.almost_equal(a, b + 1)
    assert tu.same(a, b)
    assert not tu.same(a, b + np.float32(1e-6))
    assert not tu.same(np.ones(2), np.ones((1, 2)))


def test_find_max_violation():
    at, violation = tu.find_max_violation(np.array([[1.0, 2], [3, 4]]), np.array([[1.0, 2.5], [3, 4.1]]), 0, 0.1)
    assert at == (0, 1)
    assert violation == pytest.approx(5)


def test_assert_almost_equal_with_err():
    a, b = np.zeros(10), np.array([1.0] + [0] * 9)
    tu.assert_almost_equal_with_err(a, b, etol=0.1)
    with pytest.raises(AssertionError, match="1 of 10"):
        tu.assert_almost_equal_with_err(a, b, etol=0.05)


def test_assert_almost_equal_ignore_nan():
    a, b = np.array([np.nan, 1, 2]), np.array([1, np.nan, 2])
    tu.assert_almost_equal_ignore_nan(a, b)
    assert np.isnan(a[0])  # not changed
    with pytest.raises(AssertionError, match=r"\(2,\)"):
        tu.assert_almost_equal_ignore_nan(a, b + 1)


def test_assert_allclose():
    tu.assert_allclose(np.array([np.nan, 1]), np.array([np.nan, 1 + 1e-8]))
    with pytest.raises(AssertionError):
        tu.assert_allclose(np.ones(1), np.ones(1) + 1e-6)


def test_compare_ndarray_tuple():
    one = mx.nd.ones((2,))
    tu.compare_ndarray_tuple((one, (one, None)), (one, (one, None)))
    with pytest.raises(AssertionError):
        tu.compare_ndarray_tuple((one, (one, None)), (one, (one + 1, None)))


def test_same_array():
    a = mx.nd.ones((2, 2))
    assert tu.same_array(a, a)
    assert not tu.same_array(a, a.copy())
    assert not tu.same_array(a, a + 1)
    assert a.asnumpy().tolist() == [[1, 1], [1, 1]]


# --------------------------------------------------------------------------------------------------------------------
# Generating
# --------------------------------------------------------------------------------------------------------------------
@tu.with_seed()
def test_rand_shapes():
    shapes = [tu.rand_shape_nd(3, 4) for _ in range(200)]
    assert {size for shape in shapes for size in shape} == {1, 2, 3, 4}
    assert all(isinstance(size, int) for shape in shapes for size in shape)
    assert any(0 in tu.rand_shape_nd(3, 4, allow_zero_size=True) for _ in range(200))
    assert tu.rand_shape_nd(0) == ()
    for shape in (tu.rand_shape_2d(1, 2) for _ in range(50)):
        assert shape in {(1, 1), (1, 2)}
    assert len(tu.rand_shape_3d()) == 3
    assert all(tu.rand_coord_2d(0, 2, 5, 6) in {(0, 5), (1, 5)} for _ in range(20))


@tu.with_seed()
def test_random_arrays():
    one = tu.random_arrays((2, 3))
    assert (one.shape, one.dtype) == ((2, 3), np.float32)
    assert [array.shape for array in tu.random_arrays((2,), (), (0, 3))] == [(2,), (), (0, 3)]
    uniform = tu.random_uniform_arrays((1000,), low=2, high=3, dtype="float64")
    assert uniform[0].dtype == np.float64
    assert 2 <= uniform[0].min() < 2.1 < 2.9 < uniform[0].max() <= 3
    assert sorted(tu.random_sample(range(9), 9)) == list(range(9))
    assert len(set(tu.random_sample("abc", 2))) == 2


@tu.with_seed()
@pytest.mark.parametrize("dtype", [None, "float16", "float64", "int32"])
def test_rand_ndarray(dtype):
    array = tu.rand_ndarray((50, 4), dtype=dtype)
    assert array.shape == (50, 4)
    assert np.dtype(array.dtype) == np.dtype(dtype or "float32")
    assert array.context == tu.default_context()
    assert array.asnumpy().min() < 0 < array.asnumpy().max()


def test_fixed_arrays():
    assert tu.create_vector(3).asnumpy().tolist() == [0, 1, 2]
    assert tu.create_vector(3).dtype == np.int64
    assert tu.create_2d_tensor(3, 2).asnumpy().tolist() == [[0, 0], [1, 1], [2, 2]]


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), [1]])
@pytest.mark.parametrize("keepdims", [False, True])
def test_np_reduce(axis, keepdims):
    data = np.random.rand(2, 3, 4)
    axes = tuple(axis) if isinstance(axis, list) else axis
    wanted = np.max(data, axis=axes, keepdims=keepdims)
    assert tu.same(tu.np_reduce(data, axis, keepdims, np.max), wanted)


def test_assign_each_and_collapse():
    assert tu.assign_each(np.array([1.0, 2]), lambda x: x + 1).tolist() == [2, 3]
    assert tu.assign_each2(np.array([1.0, 2]), np.array([3.0, 4]), lambda x, y: x * y).tolist() == [3, 8]
    assert tu.collapse_sum_like(np.ones((4, 2, 3)), (2, 1)).tolist() == [[12], [12]]


def test_contexts():
    assert tu.default_context() == mx.current_context()
    before = tu.default_context()
    try:
        tu.set_default_context(mx.cpu(1))
        assert tu.default_context() == mx.cpu(1)
        assert mx.nd.zeros((1,)).context == mx.cpu(1)
    finally:
        tu.set_default_context(before)
    assert tu.list_gpus() == list(range(mx.context.num_gpus()))


# --------------------------------------------------------------------------------------------------------------------
# Checking symbols
# --------------------------------------------------------------------------------------------------------------------
def test_simple_forward():
    x = _variable()
    assert tu.simple_forward(x * 2, x=np.ones(2)).tolist() == [2, 2]
    several = tu.simple_forward(mx.sym.Group([x * 2, x * 3]), x=np.ones(2))
    assert [output.tolist() for output in several] == [[2, 2], [3, 3]]


@pytest.mark.parametrize("as_ndarray", [False, True])
@pytest.mark.parametrize("as_dict", [False, True])
def test_check_symbolic_forward(as_dict, as_ndarray):
    sym = _variable() * 2
    (name,) = sym.list_outputs()
    x = mx.nd.array([1, 2, 3]) if as_ndarray else np.array([1, 2, 3])
    location = {"x": x} if as_dict else [x]

    def expect(*values):
        return {name: np.array(values)} if as_dict else [np.array(values)]

    outputs = tu.check_symbolic_forward(sym, location, expect(2, 4, 6))
    assert outputs[0].asnumpy().tolist() == [2, 4, 6]
    with pytest.raises(AssertionError, match=rf"\(1,\): EXPECTED_{name}=5.*FORWARD_{name}=4"):
        tu.check_symbolic_forward(sym, location, expect(2, 5, 6))


def test_shapes_broadcast_as_in_mxnet():
    sym, two = _variable() * 2, np.full((2, 3), 2.0)
    for location, expected in [(np.ones((2, 3)), 2), (np.ones(1), np.array(2)), (np.ones(1), two), (np.ones((3, 1)), two[0]),
                               (np.ones((2, 3)), mx.nd.array([2.0]))]:  # fmt: skip
        tu.check_symbolic_forward(sym, [location], [expected])
        with pytest.raises(AssertionError, match="EXPECTED"):
            tu.check_symbolic_forward(sym, [location], [expected + 1])
    with pytest.raises(AssertionError, match="do not broadcast"):
        tu.check_symbolic_forward(sym, [np.ones(3)], [np.ones(2)])
    for expected in (2, two[:1], two):
        tu.check_symbolic_backward(sym, [np.ones((2, 3))], [np.ones((2, 3))], [expected])
        with pytest.raises(AssertionError, match="EXPECTED_x"):
            tu.check_symbolic_backward(sym, [np.ones((2, 3))], [np.ones((2, 3))], [expected + np.float64(1)])


def test_what_there_is_beyond_the_visible_outputs_is_passed_over():
    net = mx.sym.BatchNorm(_variable(), fix_gamma=False, name="bn")
    x, head, one = np.random.RandomState(0).rand(4, 3), np.arange(12.0).reshape(4, 3), np.ones(3)
    given = {"location": {"x": x, "bn_gamma": one, "bn_beta": one}, "aux_states": [0 * one, one]}
    beta = {"bn_beta": head.sum(0)}
    for heads in ([head], [head, one, one], {"bn_output": head, "bn_mean": one}):
        tu.check_symbolic_backward(net, out_grads=heads, expected=beta, **given)
        with pytest.raises(AssertionError, match="EXPECTED_bn_beta"):
            tu.check_symbolic_backward(net, out_grads=heads, expected={"bn_beta": head.sum(0) + 1}, **given)
    shared = _variable()
    both = mx.sym.Group([shared * 2, shared * 3])
    tu.check_symbolic_forward(both, [one], [2 * one, 3 * one, one])
    tu.check_symbolic_forward(both, [one], [2 * one])
    with pytest.raises(AssertionError, match="EXPECTED"):
        tu.check_symbolic_forward(both, [one], [2 * one, 2 * one, one])
    tu.check_symbolic_backward(mx.sym.MakeLoss(_variable()), [one], [], [one])
    with pytest.raises(mx.MXNetError):
        tu.check_symbolic_backward(both, [one], [one], [5 * one])
    with pytest.raises(ValueError, match="out_grads"):
        tu.check_symbolic_backward(both, [one], {both.list_outputs()[1]: one}, [5 * one])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, "asnumpy"])
def test_the_dtype_of_the_inputs(dtype):
    outputs = tu.check_symbolic_forward(_variable() * 2, [np.ones(2, "float64")], [np.full(2, 2)], dtype=dtype)
    assert outputs[0].dtype == (np.float64 if dtype == "asnumpy" else dtype)


def test_locations_that_do_not_fit():
    sym = _variable() * mx.sym.Variable("y")
    one = np.ones(2)
    for location in ({"x": one}, {"x": one, "y": one, "z": one}, [one], [one, one, one]):
        with pytest.raises(ValueError, match=r"location.*'y'"):
            tu.check_symbolic_forward(sym, location, [one])
    with pytest.raises(ValueError, match="expected"):
        tu.check_symbolic_forward(sym, [one, one], [])


def test_the_inputs_are_not_changed():
    x = mx.nd.array([1, 2, 3])
    tu.check_numeric_gradient(_variable() * 2, [x])
    assert x.asnumpy().tolist() == [1, 2, 3]
    assert x.grad is None


@tu.with_seed()
@pytest.mark.parametrize("grad_req", ["write", "add", "null", ["add", "write"], {"x": "null", "y": "add"}])
def test_check_symbolic_backward(grad_req):
    sym = _variable() * mx.sym.Variable("y")
    x, y, head = np.random.randn(3, 2, 3)
    location = {"x": x, "y": y}
    tu.check_symbolic_backward(sym, location, [head], [y * head, x * head], 1e-4, 1e-4, grad_req=grad_req)


@tu.with_seed()
@pytest.mark.parametrize("grad_req", ["write", "add"])
def test_check_symbolic_backward_catches(grad_req):
    x, head = np.random.uniform(1, 2, (2, 3))
    grad = 2 * x * head
    tu.check_symbolic_backward(mx.sym.square(_variable()), [x], [head], [grad], grad_req=grad_req)
    wrong = grad + np.array([0, 0.5, 0])
    with pytest.raises(AssertionError, match=r"Location of maximum error: \(1,\): EXPECTED_x"):
        tu.check_symbolic_backward(mx.sym.square(_variable()), [x], [head], [wrong], grad_req=grad_req)
    with pytest.raises(AssertionError, match="3 of 3"):
        tu.check_symbolic_backward(_half_gradient(), [x], [head], [grad], grad_req=grad_req)


def test_check_symbolic_backward_of_some_arguments():
    sym = _variable() * mx.sym.Variable("y")
    x, y = np.array([1.0, 2]), np.array([3.0, 4])
    grads = tu.check_symbolic_backward(sym, [x, y], [np.ones(2)], {"y": x})
    assert grads["y"].asnumpy().tolist() == [1, 2]
    with pytest.raises(ValueError, match="expected"):
        tu.check_symbolic_backward(sym, [x, y], [np.ones(2)], {"z": x})
    with pytest.raises(ValueError, match="grad_req"):
        tu.check_symbolic_backward(sym, [x, y], [np.ones(2)], {"y": x}, grad_req="wirte")


def test_numeric_grad():
    x = mx.nd.array([1, 2, 3])
    executor = mx.sym.square(_variable()).bind(mx.cpu(), {"x": x})
    grads = tu.numeric_grad(executor, {"x": np.array([1, 2, 3], "float32")}, eps=2.0**-9)
    tu.assert_almost_equal(grads["x"], np.array([2, 4, 6]), rtol=1e-3)
    assert grads["x"].dtype == np.float32
    assert x.asnumpy().tolist() == [1, 2, 3]  # put back


@tu.with_seed()
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_check_numeric_gradient(dtype):
    x = np.random.uniform(0.5, 2, (3, 2))
    tu.check_numeric_gradient(mx.sym.square(_variable()), [x], dtype=dtype)
    tu.check_numeric_gradient(mx.sym.sin(_variable()), {"x": x}, dtype=dtype)
    with pytest.raises(AssertionError, match=r"NUMERICAL_x.*BACKWARD_x"):
        tu.check_numeric_gradient(_half_gradient(), [x], atol=1e-2, dtype=dtype)


@tu.with_seed()
@pytest.mark.parametrize("grad_nodes", [["x"], ["y"], {"x": "add"}, {"x": "null"}, {"x": "add", "y": "null"}])
def test_check_numeric_gradient_of_some_arguments(grad_nodes):
    sym = _variable() * mx.sym.Variable("y")
    tu.check_numeric_gradient(sym, list(np.random.randn(2, 4)), grad_nodes=grad_nodes)


@tu.with_seed()
def test_check_numeric_gradient_sees_only_the_nodes_it_is_given():
    x, y = _variable(), mx.sym.Variable("y")
    wrong_in_x = mx.sym.BlockGrad(x) * y
    location = list(np.random.uniform(1, 2, (2, 4)))
    tu.check_numeric_gradient(wrong_in_x, location, grad_nodes=["y"])
    with pytest.raises(AssertionError, match="4 of 4"):
        tu.check_numeric_gradient(wrong_in_x, location)


@tu.with_seed()
def test_check_numeric_gradient_with_several_outputs():
    x = _variable()
    location = [np.random.uniform(1, 2, 3)]
    tu.check_numeric_gradient(mx.sym.Group([x * 2, mx.sym.exp(x)]), location)
    with pytest.raises(AssertionError):
        tu.check_numeric_gradient(mx.sym.Group([x * 2, mx.sym.BlockGrad(x)]), location)


@tu.with_seed()
def test_check_numeric_gradient_finds_one_wrong_element():
    """A single element in a thousand, and only slightly off."""
    x = _variable()
    mask = np.zeros(1000)
    mask[617] = 0.05
    sym = mx.sym.square(x) + mx.sym.BlockGrad(x) * mx.sym.Variable("mask")
    location = {"x": np.random.uniform(1, 2, 1000), "mask": mask}
    with pytest.raises(AssertionError, match=r"1 of 1000 .*\n.*\(617,\)"):
        tu.check_numeric_gradient(sym, location, grad_nodes=["x"])


SETTINGS = [{"ctx": mx.cpu(), "x": (2, 3), "type_dict": {"x": dtype}} for dtype in (np.float16, np.float64, np.float32)]


@tu.with_seed()
@pytest.mark.parametrize("grad_req", ["write", "add", "null"])
@pytest.mark.parametrize("use_uniform", [False, True])
def test_check_consistency(grad_req, use_uniform):
    x = _variable()
    truth = tu.check_consistency(mx.sym.sin(x), SETTINGS, grad_req=grad_req, use_uniform=use_uniform)
    assert all(array.dtype == np.float64 for array in truth.values())
    assert ("x" in truth) == (grad_req != "null")
    tu.check_consistency([x * 2, x + x, 2 * x], SETTINGS, grad_req=grad_req)


@tu.with_seed()
def test_check_consistency_catches(capsys):
    x = _variable()
    inputs = {"x": np.ones((2, 3))}
    with pytest.raises(AssertionError, match=r"predict: .* setting 2 \(cpu\(0\)\) differs from setting 1"):
        tu.check_consistency([x * 2, x * 2, x * 3], SETTINGS, arg_params=inputs)
    with pytest.raises(AssertionError, match="train: x of setting 0"):
        tu.check_consistency([_half_gradient(), mx.sym.square(x), mx.sym.square(x)], SETTINGS, arg_params=inputs)
    tu.check_consistency([x * 2, x * 2, x * 3], SETTINGS, arg_params=inputs, grad_req="null", raise_on_err=False)
    assert "setting 2" in capsys.readouterr().err
    tu.check_consistency(x * 2, SETTINGS, arg_params=inputs, ground_truth={"x": np.full((2, 3), 4)})
    with pytest.raises(AssertionError, match="ground truth"):
        tu.check_consistency(x * 2, SETTINGS, arg_params=inputs, ground_truth={"x": np.full((2, 3), 5)})
    with pytest.raises(ValueError, match="2 symbols for 3 settings"):
        tu.check_consistency([x, x], SETTINGS)


@pytest.mark.parametrize("typ", ["whole", "forward"])
def test_check_speed(typ):
    sym = mx.sym.square(_variable())
    assert 0 < tu.check_speed(sym, {"x": np.ones((2, 3))}, N=3, typ=typ) < 10
    assert 0 < tu.check_speed(sym, N=3, typ=typ, x=(2, 3)) < 10
    with pytest.raises(ValueError, match="whole or forward"):
        tu.check_speed(sym, x=(2,), typ="backward")


# --------------------------------------------------------------------------------------------------------------------
# Running
# --------------------------------------------------------------------------------------------------------------------
def _draw():
    return float(np.random.rand()), random.random()


def test_with_seed_fixes_and_restores():
    state = np.random.get_state()[1].copy()
    fixed = tu.with_seed(7)(_draw)
    assert fixed() == fixed()
    assert fixed.__name__ == "_draw"
    with tu.environment({"MXOP_TEST_SEED": None, "MXNET_TEST_SEED": None}):
        free = tu.with_seed()(_draw)
        assert free() != free()
    assert np.array_equal(state, np.random.get_state()[1])


@pytest.mark.parametrize("variable", ["MXOP_TEST_SEED", "MXNET_TEST_SEED"])
def test_with_seed_from_the_environment(variable):
    with tu.environment({"MXOP_TEST_SEED": None, "MXNET_TEST_SEED": None, variable: "7"}):
        assert tu.with_seed()(_draw)() == tu.with_seed(7)(_draw)() != tu.with_seed(8)(_draw)()


def test_with_seed_tells_the_seed_of_a_failure(capsys):
    @tu.with_seed(1234)
    def failing():
        raise AssertionError("wrong")

    with pytest.raises(AssertionError) as caught:
        failing()
    assert "MXOP_TEST_SEED=1234" in capsys.readouterr().err
    assert any("MXOP_TEST_SEED=1234" in note for note in caught.value.__notes__)


def test_retry():
    calls = []

    @tu.retry(3)
    def flaky(good):
        calls.append(1)
        assert len(calls) >= good

    flaky(3)
    assert len(calls) == 3
    calls.clear()
    with pytest.raises(AssertionError):
        flaky(4)
    assert len(calls) == 3
    with pytest.raises(ValueError, match="0 times"):
        tu.retry(0)


def test_environment():
    with tu.environment("MXOP_A_TEST", "1"):
        assert os.environ["MXOP_A_TEST"] == "1"
        with contextlib.suppress(KeyError), tu.environment({"MXOP_A_TEST": None, "MXOP_ANOTHER": 2}):
            assert "MXOP_A_TEST" not in os.environ
            assert os.environ["MXOP_ANOTHER"] == "2"
            raise KeyError
        assert os.environ["MXOP_A_TEST"] == "1"
    assert "MXOP_A_TEST" not in os.environ
    assert "MXOP_ANOTHER" not in os.environ
    with pytest.raises(ValueError, match="name and a value"), tu.environment("MXOP_A_TEST"):
        pass


def test_discard_stderr(capfd):
    with tu.discard_stderr():
        os.write(2, b"from compiled code")
        print("from Python", file=sys.stderr)
    os.write(2, b"afterwards")
    assert capfd.readouterr().err == "afterwards"


def test_assert_exception():
    tu.assert_exception(int, ValueError, "x")
    with pytest.raises(AssertionError, match="did not raise ValueError"):
        tu.assert_exception(int, ValueError, "1")
    with pytest.raises(TypeError):
        tu.assert_exception(int, ValueError, None)


# --------------------------------------------------------------------------------------------------------------------
# The flakiness checker
# --------------------------------------------------------------------------------------------------------------------
def _check_flakiness(folder, test, *options):
    command = [sys.executable, str(FLAKINESS_CHECKER), test, *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.fixture
def flaky_tests(tmp_path):
    (tmp_path / "test_sample.py").write_text(
        "import os, numpy as np, pytest\n"
        "def test_good(tmp_path): print('x' * 1000)\n"
        "def test_flaky(): assert np.random.rand() < 0.8\n"
        "def test_even(): assert int(os.environ['MXOP_TEST_SEED']) % 2\n"
        "def test_crash():\n    if os.environ['MXOP_TEST_SEED'] == '12': os.kill(os.getpid(), 9)\n"
        "def test_skipped(): pytest.skip()\n"
        "class TestClass:\n    @pytest.mark.parametrize('p', [1.5, 2.5])\n    def test_method(self, p): pass\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    ("test", "trials"),
    [
        ("test_sample.test_good", 20),
        ("test_sample.py:test_good", 20),
        ("test_sample.py::test_good", 20),
        ("test_sample.TestClass.test_method", 40),
        ("test_sample.TestClass.test_method[1.5]", 20),
    ],
)
def test_flakiness_checker_passes(flaky_tests, test, trials):
    done = _check_flakiness(flaky_tests, test, "-n", "20")
    assert (done.returncode, done.stderr.count("Error")) == (0, 0), done.stdout + done.stderr
    assert f"All {trials} trials passed" in done.stdout


def test_flakiness_checker_finds_failures(flaky_tests):
    done = _check_flakiness(flaky_tests, "test_sample.test_even", "-n", "10", "-s", "11")
    assert done.returncode == 1
    assert "5 of 10 trials failed (50%)" in done.stdout
    assert "Failing seeds: 12, 14, 16, 18, 20\n" in done.stdout
    assert "-n 1 -s 12" in done.stdout
    done = _check_flakiness(flaky_tests, "test_sample.test_even", "-n", "10", "-s", "11", "-x", "-v")
    assert "1 of 2 trials failed" in done.stdout
    assert "seed 11: passed" in done.stdout
    assert "seed 12: failed" in done.stdout


def test_flakiness_checker_reproduces_by_seed(flaky_tests):
    """A test without ``with_seed`` is seeded too."""
    done = _check_flakiness(flaky_tests, "test_sample.test_flaky", "-n", "100")
    assert done.returncode == 1
    seed = done.stdout.split("-n 1 -s ")[1].split()[0]
    assert _check_flakiness(flaky_tests, "test_sample.test_flaky", "-n", "1", "-s", seed).returncode == 1


def test_flakiness_checker_survives_a_crash(flaky_tests):
    done = _check_flakiness(flaky_tests, "test_sample.test_crash", "-n", "10", "-s", "5")
    assert done.returncode == 1
    assert "SIGKILL" in done.stdout
    assert "seed 12" in done.stdout


def test_flakiness_checker_without_a_test(flaky_tests):
    assert _check_flakiness(flaky_tests, "test_sample.test_none", "-n", "2").returncode == 2
    assert "no file" in _check_flakiness(flaky_tests, "test_nowhere.test_none").stderr
    assert _check_flakiness(flaky_tests, "test_sample.test_skipped", "-n", "2").returncode == 2
    assert _check_flakiness(flaky_tests, "test_sample.test_good", "-n", "0").returncode == 2
