"""Small modules of MXNet's: base, util, engine, runtime, log, libinfo, registry, contrib; operators as objects."""

import logging
import os
import pickle

import numpy as np
import pytest

import mxop as mx
from mxop.cli import main
from mxop.errors import OpLookupError, OpTypeError


def test_base(monkeypatch):
    from mxop.base import _as_list, _Null

    assert _as_list(3) == [3] and _as_list((3,)) == (3,) and repr(_Null) == "_Null" and mx.base.py_str(b"x") == "x"
    monkeypatch.setenv("MXNET_HOME", "/somewhere")
    assert mx.base.data_dir() == "/somewhere"
    monkeypatch.delenv("MXNET_HOME")
    assert mx.base.data_dir() == os.path.join(os.path.expanduser("~"), ".mxnet") == mx.base.data_dir_default()
    error = mx.base.NotSupportedForSparseNDArray(test_base, "+", 3)
    assert isinstance(error, mx.MXNetError) and "test_base" in str(error) and "SparseNDArray" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_util(monkeypatch):
    monkeypatch.delenv("MXOP_TEST", raising=False)
    mx.util.setenv("MXOP_TEST", "3")
    assert mx.util.getenv("MXOP_TEST") == "3"
    mx.util.setenv("MXOP_TEST", None)
    assert mx.util.getenv("MXOP_TEST") is None and mx.util.is_np_array() is mx.is_np_array() is False
    with mx.util.np_shape():
        mx.util.reset_np()
        assert not mx.util.is_np_shape()


def test_engine_and_runtime(capsys):
    before = mx.engine.set_bulk_size(7)
    with mx.engine.bulk(3):
        assert mx.engine.set_bulk_size(3) == 3
    assert mx.engine.set_bulk_size(before) == 7
    features = mx.runtime.Features()
    assert features.is_enabled("lapack") and features["CUDA"].enabled == bool(mx.num_gpus())
    assert repr(features["LAPACK"]) == "✔ LAPACK" and "✖ MKLDNN" in repr(features)
    main(["doctor"])
    assert features.is_enabled("openmp") == ("without OpenMP" not in capsys.readouterr().out)
    with pytest.raises(OpLookupError, match="did you mean 'CUDA'"):
        features.is_enabled("CUDAA")


def test_log(tmp_path, capsys):
    file = tmp_path / "x.log"
    logger = mx.log.get_logger("test_log", str(file), level=mx.log.INFO)
    assert mx.log.get_logger("test_log") is logger and len(logger.handlers) == 1
    logger.info("hello")
    assert file.read_text().startswith("I") and file.read_text().endswith("] hello\n")
    with pytest.warns(DeprecationWarning):
        assert mx.log.getLogger() is logging.getLogger()


def test_libinfo():
    assert mx.libinfo.__version__ == "1.9.1" and os.path.isdir(mx.libinfo.find_include_path())


def test_registry():
    class Base:
        def __init__(self, x=0):
            self.x = x

    register = mx.registry.get_register_func(Base, "thing")
    alias = mx.registry.get_alias_func(Base, "thing")
    create = mx.registry.get_create_func(Base, "thing")

    @register
    @alias("other", "third")
    class One(Base):
        pass

    assert set(mx.registry.get_registry(Base)) == {"one", "other", "third"}
    for made in (create("ONE", 3), create(thing="other", x=3), create('["third", {"x": 3}]'), create({"thing": "one", "x": 3}),
                 create('{"thing": "one", "x": 3}'), create(One(3))):  # fmt: skip
        assert type(made) is One and made.x == 3
    with pytest.warns(UserWarning, match="thing 'one' is now"):
        register(type("One", (Base,), {}))
    for wrong in (lambda: create(), lambda: create(3), lambda: create(One(), 3), lambda: register(int)):
        with pytest.raises(OpTypeError):
            wrong()
    with pytest.raises(OpLookupError, match="did you mean 'other'"):
        create("othr")


def test_contrib_autograd():
    old, x = mx.contrib.autograd, mx.nd.array([1, 2])
    grads, loss = old.grad_and_loss(lambda a, b: (a * a * b).sum(), argnum=1)(x, mx.nd.array([3, 4]))
    assert grads[0].asnumpy().tolist() == [1, 4] and loss.item() == 19
    assert old.grad(lambda a: a * a)(x)[0].asnumpy().tolist() == [2, 4]
    gradient = mx.nd.zeros((2,))
    old.mark_variables([x], [gradient])
    with old.train_section():
        assert mx.autograd.is_recording() and mx.autograd.is_training()
        y = x * 3
        with old.test_section():
            assert not mx.autograd.is_recording() and not mx.autograd.is_training()
        assert mx.autograd.is_recording()
    old.compute_gradient([y])
    assert gradient.asnumpy().tolist() == [3, 3] and not mx.autograd.is_recording()
    assert old.set_is_training(False) is False
    with pytest.raises(OpTypeError):
        old.grad(lambda a: a)(3)
    assert mx.contrib.nd is mx.nd.contrib and mx.contrib.symbol is mx.sym.contrib


class Softmax(mx.operator.NumpyOp):
    """A loss: its gradient needs no head gradient."""

    def __init__(self):
        super().__init__(need_top_grad=False)

    def list_arguments(self):
        return ["data", "label"]

    def infer_shape(self, in_shape):
        return [in_shape[0], (in_shape[0][0],)], [in_shape[0]]

    def forward(self, in_data, out_data):
        out_data[0][:] = np.exp(in_data[0] - in_data[0].max(axis=1, keepdims=True))
        out_data[0][:] /= out_data[0].sum(axis=1, keepdims=True)

    def backward(self, out_grad, in_data, out_data, in_grad):
        in_grad[0][:] = out_data[0]
        in_grad[0][np.arange(len(in_data[1])), in_data[1].astype(int)] -= 1
        in_grad[1][:] = 0


class Square(mx.operator.NDArrayOp):
    def forward(self, in_data, out_data):
        out_data[0][:] = in_data[0] * in_data[0]

    def backward(self, out_grad, in_data, out_data, in_grad):
        in_grad[0][:] = 2 * in_data[0] * out_grad[0]


def test_operators_that_are_objects():
    net = Softmax()(mx.sym.Variable("data"), name="softmax")
    assert net.list_arguments() == ["data", "softmax_label"] and net.list_outputs() == ["softmax_output"]
    x, y = np.random.RandomState(0).normal(size=(3, 4)).astype("float32"), np.array([0, 3, 1], "float32")
    executor = net.simple_bind(mx.cpu(), data=(3, 4))
    (out,) = executor.forward(is_train=True, data=x, softmax_label=y)
    executor.backward()
    reference = mx.sym.SoftmaxOutput(mx.sym.Variable("data"), name="softmax").simple_bind(mx.cpu(), data=(3, 4))
    np.testing.assert_allclose(out.asnumpy(), reference.forward(True, data=x, softmax_label=y)[0].asnumpy(), rtol=1e-6)
    reference.backward()
    gradients = executor.grad_dict["data"].asnumpy(), reference.grad_dict["data"].asnumpy()
    np.testing.assert_allclose(*gradients, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("req, expected", [("write", [2, 8]), ("add", [3, 9]), ("null", None)])
def test_array_operators_and_requests(req, expected):
    square = Square()
    net = square(data=mx.sym.Variable("x")) * mx.sym.Variable("h")
    x, h, g = mx.nd.array([1, 2]), mx.nd.array([1, 2]), mx.nd.ones((2,))
    executor = net.bind(mx.cpu(), {"x": x, "h": h}, {"x": g}, {"x": req, "h": "null"})
    assert executor.forward(is_train=True)[0].asnumpy().tolist() == [1, 8]
    executor.backward(mx.nd.ones((2,)))
    assert g.asnumpy().tolist() == (expected or [1, 1])
    assert square.get_symbol(mx.sym.Variable("y")).eval(y=mx.nd.array([3]))[0].item() == 9


def test_operators_without_methods():
    with pytest.raises(NotImplementedError, match="derive from one of these"):
        mx.operator.PythonOp()(mx.sym.Variable("x"))
    for kind in (mx.operator.NumpyOp, mx.operator.NDArrayOp):  # copy, with the gradient 1, as MXNet's
        x, grad = mx.nd.array([3, 4]), mx.nd.zeros(2)
        executor = kind()(mx.sym.Variable("x")).bind(mx.cpu(), [x], [grad])
        assert executor.forward(is_train=True)[0].asnumpy().tolist() == [3, 4]
        executor.backward(mx.nd.array([5, 6]))
        assert grad.asnumpy().tolist() == [1, 1]


def test_null_is_not_given():
    from mxop.base import _Null

    x, s = mx.nd.arange(6).reshape((2, 3)), mx.sym.Variable("s")
    assert mx.nd.sum(x, axis=_Null).item() == 15 and mx.nd.softmax(x, temperature=_Null).shape == (2, 3)
    assert mx.nd.random.uniform(0, 1, _Null, _Null).shape == (1,)
    total = mx.sym.sum(s, axis=_Null, keepdims=True)
    assert total.eval(s=x)[0].shape == (1, 1) and "_Null" not in total.tojson()
    assert mx.nd.random.normal(mx.nd.zeros((2,)), mx.nd.ones((2,)), _Null).shape == (2,)


SHAPES = [np.array([2, 3]), [np.int64(2), 3], (np.int32(2), np.int64(3)), mx.nd.array([2, 3], dtype="int64"), [2, 3],
          np.array([2, 3], dtype="uint8")]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=[type(s).__name__ for s in SHAPES])
def test_shapes_are_arrays_and_lists_of_any_integers(shape):
    x, s = mx.nd.arange(6), mx.sym.Variable("s")
    for found in (
        mx.nd.zeros(shape), mx.nd.full(shape, 3), mx.nd.empty(shape), x.reshape(shape), mx.nd.reshape(x, shape=shape),
        mx.nd.random.uniform(0, 1, shape), mx.random.randint(0, 3, shape), mx.nd.random_normal(shape=shape),
        mx.sym.zeros(shape).eval()[0], mx.sym.reshape(s, shape=shape).eval(s=x)[0], mx.sym.random.normal(shape=shape).eval()[0],
        mx.sym.exp(s).simple_bind(mx.cpu(), s=shape).forward()[0], mx.nd.ones((1, 1)).broadcast_to(shape),
        mx.nd.zeros(mx.sym.Variable("q", shape=shape).infer_shape()[0][0]),
    ):  # fmt: skip
        assert found.shape == (2, 3)


# ---- names that programs import --------------------------------------------------------------------------------------------
def test_options_of_numpys_functions():
    legal = mx.util.np_ufunc_legal_option
    assert [legal("where", 3), legal("casting", "safe"), legal("order", "C"), legal("dtype", "int8"),
            legal("dtype", np.float32), legal("subok", True)] == [True] * 6  # fmt: skip
    assert [legal("casting", "x"), legal("order", 3), legal("dtype", "uint16"), legal("dtype", np.uint16), legal("subok", 1),
            legal("axis", 0)] == [False] * 6  # fmt: skip
    add = mx.util.wrap_np_binary_func(lambda x1, x2, out: x1 + x2)
    up = mx.util.wrap_np_unary_func(lambda x, out: x + 1)
    assert up(1, None, where=True, casting="same_kind", order="K", dtype=None, subok=True) == 2 and up(x=3) == 4
    assert add(1, x2=2, where=True) == 3
    for call, kind in ((lambda: up(1, where=False), NotImplementedError),
                       (lambda: up(1, axis=0), TypeError), (lambda: up(1, dtype="uint16"), TypeError),
                       (lambda: add(1, 2, dtype="int8"), NotImplementedError)):  # fmt: skip
        with pytest.raises(kind) as caught:
            call()
        assert isinstance(caught.value, mx.MXNetError)


@pytest.mark.parametrize("key, whole", [
    (np.s_[2, 1, 1], (2, 1, 1)), (np.s_[0], (0, slice(None), slice(None))), (np.s_[0, ...], (0, slice(None), slice(None))),
    (np.s_[:2, None, 0, ...], (slice(None, 2), None, 0, slice(None))), (np.s_[..., 1], (slice(None), slice(None), 1)),
    (np.s_[()], (slice(None),) * 3),
])  # fmt: skip
def test_keys_that_name_every_axis(key, whole):
    assert mx.nd.ndarray.indexing_key_expand_implicit_axes(key, (3, 4, 5)) == (whole, -1)


def test_kinds_of_keys():
    get_indexing_dispatch_code = mx.nd.ndarray.get_indexing_dispatch_code
    get_oshape_of_gather_nd_op = mx.nd.ndarray.get_oshape_of_gather_nd_op
    indexing_key_expand_implicit_axes = mx.nd.ndarray.indexing_key_expand_implicit_axes
    assert indexing_key_expand_implicit_axes((0, True), (3, 4)) == ((0, slice(None)), 1)
    mask = indexing_key_expand_implicit_axes(mx.nd.array([[1, 0], [1, 1]], dtype="bool"), (2, 2))[0]
    assert [m.tolist() for m in mask] == [[0, 1, 1], [0, 0, 1]]
    assert [get_indexing_dispatch_code(key) for key in ((1, 2), (slice(1), None), ([1],), (1, mx.nd.ones(1)), ((),))] == [
        0, 0, 1, 1, 2,
    ]  # fmt: skip
    with pytest.raises(ValueError, match="'a' is not an index"):
        get_indexing_dispatch_code((1, "a"))
    assert (
        get_oshape_of_gather_nd_op((3, 4, 5), (1, 2, 6)) == mx.nd.gather_nd(mx.nd.ones((3, 4, 5)), mx.nd.zeros((1, 2, 6))).shape
    )


def test_first_schedulers():
    rate = mx.misc.FactorScheduler(3, 0.5)
    assert [rate(n) for n in range(7)] == [0.01] * 3 + [0.005] * 3 + [0.0025]
    rate.base_lr = 1.0
    assert rate(9) == 0.125
    for step, factor in ((0, 0.5), (1, 1.0)):
        with pytest.raises(ValueError, match="FactorScheduler"):
            mx.misc.FactorScheduler(step, factor)


def test_registered_errors():
    @mx.error.register
    class FirstError(RuntimeError):
        pass

    @mx.base.register_error("Another")
    class SecondError(RuntimeError):
        pass

    assert mx.base.error_types["FirstError"] is FirstError and mx.base.error_types["Another"] is SecondError
    assert issubclass(mx.error.InternalError, mx.MXNetError) and mx.base.error_types["ValueError"] is ValueError


def test_names_that_modules_hand_on():
    from mxop.attribute import string_types
    from mxop.lr_scheduler import pi
    from mxop.metric import numeric_types
    from mxop.model import SKLEARN_INSTALLED
    from mxop.random import integer_types
    from mxop.rnn.rnn_cell import numeric_types as again

    assert string_types is mx.base.string_types and numeric_types is again is mx.base.numeric_types
    assert integer_types is mx.base.integer_types and SKLEARN_INSTALLED is False and round(pi, 2) == 3.14


def test_what_bindings_are_written_with():
    import array

    base = mx.base
    assert base.c_str("ä").value == "ä".encode() and list(base.c_str_array(["a", "b"])) == [b"a", b"b"]
    assert list(base.c_array(base.mx_uint, [1, 2])) == [1, 2]
    memory = array.array("f", [1, 2])
    seen = base.c_array_buf(base.mx_float, memory)
    seen[1] = 5
    assert list(memory) == [1, 5] and base.mx_int(3).value == 3
