"""Compiled libraries, written as MXNet's documentation has users write them: everything that built-in operators do."""

import numpy as np
import pytest
from libraries_util import library, needs_compiler  # noqa: F401

import mxop as mx

pytestmark = needs_compiler


@pytest.fixture
def gemm(library):  # noqa: F811
    return library("gemm_lib.cc")


@pytest.fixture
def relu(library):  # noqa: F811
    return library("relu_lib.cc")


def matrices():
    return np.arange(6, dtype="float32").reshape(2, 3), np.arange(12, dtype="float32").reshape(3, 4)


@pytest.mark.parametrize("name", ["my_gemm", "state_gemm"])
def test_gemm_forward_and_backward(gemm, name):
    A, B = matrices()
    a, b = mx.nd.array(A), mx.nd.array(B)
    a.attach_grad()
    b.attach_grad()
    head = np.random.default_rng(0).standard_normal((2, 4)).astype("float32")
    with mx.autograd.record():
        c = getattr(mx.nd, name)(a, b)
    c.backward(mx.nd.array(head))
    np.testing.assert_array_equal(c.asnumpy(), A @ B)
    np.testing.assert_allclose(a.grad.asnumpy(), head @ B.T, rtol=1e-5)
    np.testing.assert_allclose(b.grad.asnumpy(), A.T @ head, rtol=1e-5)


@pytest.mark.parametrize("name", ["my_gemm", "state_gemm"])
@pytest.mark.parametrize("req", ["write", "add", "null"])
def test_gemm_bound(gemm, name, req):
    A, B = matrices()
    out = getattr(mx.sym, name)(mx.sym.Variable("a"), mx.sym.Variable("b"), name="g")
    assert out.list_arguments() == ["a", "b"]
    assert out.list_outputs() == ["g_output"]
    assert out.infer_shape(a=(2, 3), b=(3, 4)) == ([(2, 3), (3, 4)], [(2, 4)], [])
    grads = {"a": mx.nd.ones((2, 3)), "b": mx.nd.ones((3, 4))}
    executor = out.bind(mx.cpu(), {"a": mx.nd.array(A), "b": mx.nd.array(B)}, grads, req)
    np.testing.assert_array_equal(executor.forward(is_train=True)[0].asnumpy(), A @ B)
    executor.backward(mx.nd.ones((2, 4)))
    head = np.ones((2, 4))
    for name_, want in (("a", head @ B.T), ("b", A.T @ head)):
        want = {"write": want, "add": want + 1, "null": np.ones_like(want)}[req]
        np.testing.assert_allclose(grads[name_].asnumpy(), want, rtol=1e-6)


def test_every_namespace_has_the_operator(gemm):
    a, b = map(mx.nd.array, matrices())
    want = mx.nd.my_gemm(a, b).asnumpy()
    assert (mx.nd.op.my_gemm(a, b).asnumpy() == want).all()
    for F in (mx.sym, mx.sym.op):
        bound = F.my_gemm(mx.sym.Variable("a"), mx.sym.Variable("b")).bind(mx.cpu(), {"a": a, "b": b})
        assert (bound.forward()[0].asnumpy() == want).all()
    assert mx.nd.my_gemm.__name__ == "my_gemm"
    assert "my_gemm" in mx.nd.my_gemm.__doc__
    assert list(mx.nd.my_gemm.__signature__.parameters)[-3:] == ["out", "name", "kwargs"]
    assert "my_gemm" in mx.operator.get_all_registered_operators()


def test_symbols_from_json_and_missing_inputs(gemm):
    out = mx.sym.my_gemm(name="g", flavour="plain")
    assert out.list_arguments() == ["g_data0", "g_data1"]
    again = mx.sym.load_json(out.tojson())
    assert again.tojson() == out.tojson()
    assert out.attr_dict()["g"] == {"flavour": "plain"}


def test_out_and_strides(gemm):
    A, B = matrices()
    out = mx.nd.zeros((2, 4))
    back = mx.nd.my_gemm(mx.nd.array(A.T).T, mx.nd.array(B[::-1].copy())[::-1], out=out)
    assert back is out
    np.testing.assert_array_equal(out.asnumpy(), A @ B)
    square = mx.nd.array(np.arange(4).reshape(2, 2))
    want = square.asnumpy() @ square.asnumpy()
    mx.nd.my_gemm(square, square, out=square)  # in place
    np.testing.assert_array_equal(square.asnumpy(), want)


def test_state_lives_as_long_as_the_call(gemm, capfd):
    a, b = map(mx.nd.array, matrices())
    mx.nd.state_gemm(a, b, test_kw=5)
    said = capfd.readouterr().out
    assert "number of forward: 6" in said and "destructed MyStatefulGemm" in said
    bound = mx.sym.state_gemm(mx.sym.Variable("a"), mx.sym.Variable("b"), test_kw="10").bind(mx.cpu(), {"a": a, "b": b})
    for _ in range(3):
        bound.forward()
    said = capfd.readouterr().out
    assert "number of forward: 13" in said and "destructed" not in said
    a.attach_grad()
    with mx.autograd.record():
        c = mx.nd.state_gemm(a, b)
    assert "destructed" not in capfd.readouterr().out
    c.backward()
    del c
    assert "destructed" in capfd.readouterr().out


def test_errors_name_operator_and_reason(gemm):
    a, b = map(mx.nd.array, matrices())
    with pytest.raises(mx.MXNetError, match=r"my_gemm(.|\n)*Exected first input axis 1 equals.*but got 4 and 2"):
        mx.nd.my_gemm(b, a)
    with pytest.raises(mx.MXNetError, match=r"my_gemm(.|\n)*Expected input 0 to have float32 type"):
        mx.nd.my_gemm(a.astype("float64"), b.astype("float64"))
    with pytest.raises(mx.MXNetError, match=r"my_gemm takes 2 inputs.*data1"):
        mx.nd.my_gemm(a)
    with pytest.raises(mx.MXNetError, match=r"my_gemm"):
        mx.nd.my_gemm(a, b, a)


def test_second_order_says_what_is_missing(gemm):
    a, b = map(mx.nd.array, matrices())
    a.attach_grad()
    with mx.autograd.record():
        c = mx.nd.my_gemm(a, b)
        (da,) = mx.autograd.grad(c, [a], create_graph=True)
        total = (da * da).sum()
    with pytest.raises(mx.MXNetError, match=r"my_gemm.*once.*_backward_my_gemm.*setGradient"):
        total.backward()


@pytest.mark.parametrize("name", ["my_relu", "my_state_relu"])
def test_relu(relu, name):
    x = np.array([[-2, -1, 0, 1], [3, -4, 5, 6]], "float32")
    f = getattr(mx.nd, name)
    np.testing.assert_array_equal(f(mx.nd.array(x)).asnumpy(), np.maximum(x, 0))
    v = mx.nd.array(x)
    v.attach_grad("add")
    for _ in range(2):
        with mx.autograd.record():
            y = f(v) * 3
        y.backward()
    np.testing.assert_array_equal(v.grad.asnumpy(), 6 * (x > 0))
    sym = getattr(mx.sym, name)(mx.sym.Variable("data"))
    mx.test_utils.check_symbolic_forward(sym, [x], [np.maximum(x, 0)])
    mx.test_utils.check_symbolic_backward(sym, [x], [np.ones_like(x)], [(x > 0).astype("float32")])
    shapes = [(0,), (0, 3), (), (1,), (2, 3, 4), (1, 1, 2, 1, 2, 1, 3)]
    for shape in shapes:
        x = np.random.default_rng(1).standard_normal(shape).astype("float32")
        got = f(mx.nd.array(x, dtype="float32"))
        assert got.shape == shape
        np.testing.assert_array_equal(got.asnumpy(), np.maximum(x, 0))


def test_noise_follows_the_seed(relu):
    x = mx.nd.ones((2000,)) * 100
    mx.library.seed(7)
    first, second = mx.nd.my_noisy_relu(x).asnumpy(), mx.nd.my_noisy_relu(x).asnumpy()
    mx.library.seed(7)
    assert (mx.nd.my_noisy_relu(x).asnumpy() == first).all()
    mx.library.seed(8)
    assert not (mx.nd.my_noisy_relu(x).asnumpy() == first).any()
    noise = np.concatenate([first, second]) - 100
    assert not (first == second).any()
    assert abs(noise.mean()) < 0.1 and abs(noise.std() - 1) < 0.1


def test_a_call_of_eight_elements_takes_the_short_way(relu):
    """Calls of one signature infer once; another shape, type or layout is noticed."""
    f = mx.nd.my_relu
    for shape in [(8,), (8,), (2, 4), (4, 2), (8,), (8, 1), (3, 3, 3)] * 3:
        x = np.random.default_rng(len(shape)).standard_normal(shape).astype("float32")
        got = f(mx.nd.array(x))
        assert got.shape == shape
        np.testing.assert_array_equal(got.asnumpy(), np.maximum(x, 0))
    x = np.random.default_rng(0).standard_normal((4, 4)).astype("float32")
    np.testing.assert_array_equal(f(mx.nd.array(x).T).asnumpy(), np.maximum(x.T, 0))
    np.testing.assert_array_equal(f(mx.nd.array(x)[1:3]).asnumpy(), np.maximum(x[1:3], 0))


def test_the_profiler_counts_every_call_once(gemm, tmp_path):
    a, b = map(mx.nd.array, matrices())
    executor = mx.sym.my_gemm(mx.sym.Variable("a"), mx.sym.Variable("b")).bind(mx.cpu(), {"a": a, "b": b})
    mx.profiler.set_config(filename=str(tmp_path / "x.json"), aggregate_stats=True)
    mx.profiler.dumps(reset=True)
    mx.profiler.set_state("run")
    mx.nd.my_gemm(a, b)  # the short way
    mx.nd.my_gemm(a, b.T.copy().T)
    executor.forward()
    mx.profiler.dump()
    table = mx.profiler.dumps(reset=True)
    assert [line.split()[1] for line in table.splitlines() if line.startswith("my_gemm ")] == ["3"]
    mx.profiler.set_config()
