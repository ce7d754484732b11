"""What a compiled library may do: parameters, states, outputs, types, inference, gradients of gradients; and what it may do
wrong, which becomes an error and leaves everything as it was."""

import numpy as np
import pytest
from libraries_util import library, needs_compiler  # noqa: F401

import mxop as mx

pytestmark = needs_compiler


@pytest.fixture(autouse=True)
def kinds(library):  # noqa: F811
    return library("kinds_lib.cc")


def x3():
    return mx.nd.array([1, 2, 3])


def test_parameters_arrive_as_text():
    x = x3()
    assert mx.nd.lib_sum(x, x).asnumpy().tolist() == [2, 4, 6]
    assert mx.nd.lib_sum(x, x, x, num_args=3, scale=0.5).asnumpy().tolist() == [1.5, 3, 4.5]
    assert mx.nd.lib_sum([x, x], scale="2").asnumpy().tolist() == [4, 8, 12]
    for scale in (1, 1.0, True, "1", -1, 0.0, -0.0, 2):  # equal keys of a dictionary, some of them, but not equal text
        if scale is True:
            with pytest.raises(mx.MXNetError, match=r"stof"):
                mx.nd.lib_sum(x, x, scale=scale)
        else:
            assert mx.nd.lib_sum(x, x, scale=scale).asnumpy().tolist() == [float(scale) * v for v in (2, 4, 6)]
    assert mx.nd.lib_sum(x, num_args=1, out=x) is x
    out = mx.sym.lib_sum(mx.sym.Variable("a"), mx.sym.Variable("b"), num_args=2, scale=3)
    bound = out.bind(mx.cpu(), {"a": x, "b": x})
    assert bound.forward()[0].asnumpy().tolist() == [6, 12, 18]
    with pytest.raises(mx.MXNetError, match=r"zero character"):
        mx.nd.lib_sum(x, x, scale="1\0")


def test_several_outputs():
    x = x3()
    x.attach_grad()
    with mx.autograd.record():
        a, b = mx.nd.lib_pair(x)
        (3 * a + 5 * b).backward()
    assert a.asnumpy().tolist() == [2, 3, 4] and b.asnumpy().tolist() == [2, 4, 6]
    assert x.grad.asnumpy().tolist() == [13, 13, 13]
    with mx.autograd.record():
        mx.nd.lib_pair(x)[1].backward()
    assert x.grad.asnumpy().tolist() == [2, 2, 2]
    out = mx.sym.lib_pair(mx.sym.Variable("x"), name="p")
    assert out.list_outputs() == ["p_output0", "p_output1"]
    got = [o.asnumpy().tolist() for o in out.bind(mx.cpu(), {"x": x}).forward()]
    assert got == [[2, 3, 4], [2, 4, 6]]


def test_states_are_written():
    count, x = mx.nd.array([10]), x3()
    assert mx.nd.lib_counter(x, count, x).asnumpy().tolist() == [12, 14, 16]
    assert mx.nd.lib_counter(x, count, x).asnumpy().tolist() == [13, 15, 17]
    assert count.asnumpy().tolist() == [12]
    out = mx.sym.lib_counter(mx.sym.Variable("x"), name="c")
    assert out.list_arguments() == ["x", "c_b"] and out.list_auxiliary_states() == ["c_count"]
    assert out.infer_shape(x=(3,)) == ([(3,), (3,)], [(3,)], [(1,)])
    executor = out.simple_bind(mx.cpu(), x=(3,))
    executor.arg_dict["x"][:] = x
    executor.forward(is_train=True)
    executor.forward(is_train=True)
    assert executor.outputs[0].asnumpy().tolist() == [2, 3, 4]
    assert executor.aux_dict["c_count"].asnumpy().tolist() == [2]
    executor.backward(mx.nd.ones((3,)))
    assert executor.grad_dict["x"].asnumpy().tolist() == [1, 1, 1]
    assert executor.grad_dict["c_b"].asnumpy().tolist() == [3, 3, 3]
    assert "one more in count" in mx.nd.lib_counter.__doc__
    strided = mx.nd.zeros((4,))
    mx.nd.lib_counter(x, strided[1:2], x)
    assert strided.asnumpy().tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "uint8", "int8", "int32", "int64", "bool"])
@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (5,), (2, 3), (1,) * 8])
def test_every_type(dtype, shape):
    x = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    got = mx.nd.lib_copy(mx.nd.array(x, dtype=dtype))
    assert got.dtype == np.dtype(dtype).type and got.shape == shape
    np.testing.assert_array_equal(got.asnumpy(), x)


def test_bfloat16():
    pytest.importorskip("ml_dtypes")
    x = mx.nd.array([1, 2, 3], dtype="bfloat16")
    assert mx.nd.lib_copy(x).astype("float32").asnumpy().tolist() == [1, 2, 3]


def test_types_and_scalars():
    got = mx.nd.lib_total(mx.nd.array([1, 2, 3], dtype="int32"))
    assert got.dtype == np.float64 and got.shape == () and got.asscalar() == 6
    assert mx.nd.lib_total(mx.nd.ones((2, 3, 4))).asscalar() == 24
    assert mx.nd.lib_rank(mx.nd.ones((1, 2, 3))).shape == (3,)
    out = mx.sym.lib_total(mx.sym.Variable("x"))
    assert out.infer_type(x="int32")[1] == [np.float64]


def test_shapes_are_inferred_in_both_directions():
    out = mx.sym.lib_dense(mx.sym.Variable("x"), hidden=7, name="d")
    assert out.list_arguments() == ["x", "d_weight"]
    assert out.infer_shape(x=(2, 3)) == ([(2, 3), (7, 3)], [(2, 7)], [])
    assert out.infer_shape_partial(d_weight=(7, 5))[0] == [(0, 5), (7, 5)]
    with_known_output = out + mx.sym.Variable("y", shape=(4, 7))
    assert with_known_output.infer_shape(d_weight=(7, 5))[0] == [(4, 5), (7, 5), (4, 7)]
    executor = out.simple_bind(mx.cpu(), "null", x=(2, 3))
    assert executor.arg_dict["d_weight"].shape == (7, 3)
    partial = mx.sym.lib_dense(mx.sym.Variable("x"), hidden=7).infer_shape_partial()
    assert partial[1] == [()]  # nothing is known: the library is not asked
    with pytest.raises(mx.MXNetError, match=r"lib_dense"):
        out.infer_shape(x=(2, 3), d_weight=(7, 4))


@pytest.mark.parametrize("name", ["lib_cube", "lib_cube2"])
def test_gradients_of_gradients(name):
    x = np.array([1, -2, 3], "float32")
    v = mx.nd.array(x)
    v.attach_grad()
    with mx.autograd.record():
        y = getattr(mx.nd, name)(v)
        (first,) = mx.autograd.grad(y, [v], create_graph=True)
        total = (first * first).sum()
    np.testing.assert_allclose(first.asnumpy(), 3 * x**2)
    total.backward()
    np.testing.assert_allclose(v.grad.asnumpy(), 2 * (3 * x**2) * 6 * x)
    y.attach_grad()
    bound = getattr(mx.sym, name)(mx.sym.Variable("x")).bind(mx.cpu(), {"x": v}, {"x": mx.nd.zeros((3,))})
    bound.forward(is_train=True)
    bound.backward(mx.nd.ones((3,)))
    np.testing.assert_allclose(bound.grad_dict["x"].asnumpy(), 3 * x**2)


def test_bound_calls_fail_and_go_on():
    x = x3()
    executor = mx.sym.lib_bad(mx.sym.Variable("x"), forward="throw").bind(mx.cpu(), {"x": x})
    for _ in range(3):
        with pytest.raises(mx.MXNetError, match=r"lib_bad.*thrown by the library"):
            executor.forward()
    data = mx.sym.Variable("x")
    both = mx.sym.lib_sum(data, data, scale=3, name="s")  # one array as both inputs
    grad = mx.nd.ones((3,))
    executor = both.bind(mx.cpu(), {"x": x}, {"x": grad}, {"x": "add"})
    for turn in range(1, 4):
        assert executor.forward(is_train=True)[0].asnumpy().tolist() == [6, 12, 18]
        executor.backward(mx.nd.ones((3,)))
        assert grad.asnumpy().tolist() == [1 + 6 * turn] * 3
    x[:] = 2  # the arrays stay the same, what is in them does not
    assert executor.forward()[0].asnumpy().tolist() == [12] * 3
    strided = mx.nd.array([[1, 9], [2, 9], [3, 9]])[:, 0]
    assert both.bind(mx.cpu(), {"x": strided}).forward()[0].asnumpy().tolist() == [6, 12, 18]


def test_recorded_calls_keep_their_own_state():
    x = mx.nd.array([[1, 9], [-2, 9], [3, 9]])
    x.attach_grad()
    with mx.autograd.record():
        outs = [mx.nd.lib_sum(x[:, 0], x[:, 0], scale=k) for k in (1, 2, 3)]  # strided inputs
    mx.autograd.backward(outs)
    assert x.grad.asnumpy().tolist() == [[12, 0]] * 3


def test_the_end_of_the_chain_is_told():
    v = x3()
    v.attach_grad()
    with mx.autograd.record():
        y = mx.nd.lib_cube(v)
        (first,) = mx.autograd.grad(y, [v], create_graph=True)
        (second,) = mx.autograd.grad(first, [v], create_graph=True)
        total = second.sum()
    assert second.asnumpy().tolist() == [6, 12, 18]
    with pytest.raises(mx.MXNetError, match=r"lib_cube_second.*no gradient.*setBackward"):
        total.backward()


FAILURES = [
    ({"parse": "throw"}, "parsing its parameters failed.*thrown by the library"),
    ({"parse": "fail"}, r"first reason 1\n.*second reason"),
    ({"parse": "silent"}, "gave no reason"),
    ({"num_in": "x"}, "stoi"),
    ({"type": "throw int"}, "inferring types failed"),
    ({"shape": "out of range"}, "inferring shapes failed"),
    ({"dim": -3}, "negative dimension, -3"),
    ({"rank": 33}, "shape of 33 dimensions"),
    ({"rank": 100}, "shape of 100 dimensions"),
    ({"more_shapes": 1}, "changed the number of inputs or outputs"),
    ({"more_types": 1}, "changed the number of inputs or outputs"),
    ({"unset": 1}, "the shape of output 0 does not follow"),
    ({"other_input": 1}, r"data has shape \(3,\), but the library infers \(12345,\)"),
    ({"dtype": 77}, "type 77"),
    ({"num_in": -1}, "-1 inputs and 1 outputs"),
    ({"num_in": 10**6}, "1000000 inputs"),
    ({"num_out": 0}, "0 outputs"),
    ({"mutate": 5}, "writes 1 inputs"),
    ({"mutate": -1}, "writes 1 inputs"),
    ({"mutate_many": 1}, "more inputs than there are"),
    ({"mutates": "fail"}, "listing the inputs that it writes failed"),
    ({"alloc": -1}, "-1 bytes"),
    ({"alloc": 10**16}, "no memory for 10000000000000000 bytes"),
    ({"sparse": 1}, "dense arrays only"),
    ({"forward": "throw"}, "forward function failed.*thrown by the library"),
    ({"forward": "fail"}, r"first reason 1\n.*second reason"),
]


@pytest.mark.parametrize("params, message", FAILURES, ids=[str(p) for p, _ in FAILURES])
def test_failures_become_errors(params, message):
    for _ in range(2):
        with pytest.raises(mx.MXNetError, match=f"(?s)lib_bad.*{message}"):
            mx.nd.lib_bad(x3(), **params)
    assert mx.nd.lib_bad(x3()).asnumpy().tolist() == [1, 2, 3]
    with pytest.raises(mx.MXNetError):
        mx.sym.lib_bad(mx.sym.Variable("x"), **params).bind(mx.cpu(), {"x": x3()}).forward()


def test_what_is_no_failure():
    assert mx.nd.lib_bad(x3(), forward="warn").asnumpy().tolist() == [1, 2, 3]
    assert mx.nd.lib_bad(x3(), alloc=0).asnumpy().tolist() == [1, 2, 3]
    assert mx.nd.lib_bad(x3(), alloc=10**6).asnumpy().tolist() == [1, 2, 3]
    with pytest.raises(mx.MXNetError) as caught:
        mx.nd.lib_bad(x3(), forward="throw")
    assert "not an error" not in str(caught.value)  # a message of an earlier call
    for _ in range(4):
        assert mx.nd.lib_bad(x3(), disturb=1).asnumpy().tolist() == [1, 2, 3]


def test_backward_fails():
    v = x3()
    v.attach_grad()
    with mx.autograd.record():
        y = mx.nd.lib_bad(v, backward="throw")
    with pytest.raises(mx.MXNetError, match=r"lib_bad: its backward function failed.*thrown by the library"):
        y.backward()
    with mx.autograd.record():
        y = mx.nd.lib_copy(v)
    with pytest.raises(mx.MXNetError, match=r"lib_copy.*no gradient.*setBackward"):
        y.backward()
    with mx.autograd.record():
        y = mx.nd.lib_shifter(v)
    with pytest.raises(mx.MXNetError, match=r"lib_shifter(.|\n)*does not support backward"):
        y.backward()


def test_states():
    assert mx.nd.lib_shifter(x3()).asnumpy().tolist() == [2, 3, 4]
    assert mx.nd.lib_short_state(x3()).asnumpy().tolist() == [1.5, 2.5, 3.5]
    with mx.autograd.train_mode():
        assert mx.nd.lib_shifter(x3()).asnumpy().tolist() == [1002, 1003, 1004]
    with pytest.raises(mx.MXNetError, match=r"lib_shifter.*returned no object"):
        mx.nd.lib_shifter(x3(), state="none")
    for how in ("throw", "fail"):
        with pytest.raises(mx.MXNetError, match=r"lib_shifter.*making its state failed"):
            mx.nd.lib_shifter(x3(), state=how)


def test_sparse_and_other_devices_are_refused():
    with pytest.raises(mx.MXNetError, match=r"lib_csr(.|\n)*no others(.|\n)*Expected csr storage"):
        mx.nd.lib_csr(x3())
    assert mx.nd.lib_any_storage(x3()).asnumpy().tolist() == [1, 2, 3]
    with pytest.raises(mx.MXNetError, match=r"lib_any_storage.*sparse"):
        mx.nd.lib_any_storage(x3(), sparse=1)
    with pytest.raises(mx.errors.DeviceError, match=r"lib_gpu_only.*no forward function for the CPU"):
        mx.nd.lib_gpu_only(x3())


def test_shapes_too_large_for_unsigned_int():
    out = mx.sym.lib_dense(mx.sym.Variable("x"), hidden=7, name="d")
    with pytest.raises(mx.MXNetError, match=r"lib_dense(.|\n)*int64_t"):
        out.infer_shape(x=(2**33, 1), d_weight=(7, 1))
    assert mx.sym.lib_rank(mx.sym.Variable("x")).infer_shape(x=(2**40, 3))[1] == [(2,)]


def test_numeric_gradients():
    x = mx.sym.Variable("x")
    rng = np.random.default_rng(3)
    data = rng.uniform(-1, 1, (3, 4))
    for out in (mx.sym.lib_cube(x), mx.sym.lib_pair(x)[0] * 2, mx.sym.lib_sum(x, x * 2, scale=3)):
        mx.test_utils.check_numeric_gradient(out, [data], rtol=1e-2, atol=1e-2)
