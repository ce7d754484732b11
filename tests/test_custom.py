"""MindSpore's Custom: NumPy functions, infos, inference, bprop; with arrays, symbols and inside rules."""

import json
import os
import textwrap
import threading
import traceback

import numpy as np
import pytest
from processes import run_python

import mxop as mx
from mxop import autograd, nd
from mxop.operator import Custom, CustomRegOp, DataType, custom_info_register


@pytest.fixture(autouse=True)
def registry_restored():
    before = set(mx.op.names())
    yield
    for name in set(mx.op.names()) - before:
        if name.startswith("_custom_"):
            mx.op.unregister(name)


def same(x):
    return x


def info(n_in=1, n_out=1, target="CPU", *types):
    reg = CustomRegOp("test")
    for k in range(n_in):
        reg.input(k, f"x{k}")
    for k in range(n_out):
        reg.output(k, f"y{k}")
    for t in types or (DataType.F32_Default,):
        reg.dtype_format(*[t] * (n_in + n_out))
    return reg.target(target).get_op_info()


# ---- seed: square ---------------------------------------------------------------------------------------------------
def square(x):
    y = output_tensor(x.shape, x.dtype)
    for i0 in range(x.shape[0]):
        y[i0] = x[i0] * x[i0]
    return y


def square_grad(x, dout):
    dx = output_tensor(x.shape, x.dtype)
    for i0 in range(x.shape[0]):
        dx[i0] = 2.0 * x[i0]
    for i0 in range(x.shape[0]):
        dx[i0] = dx[i0] * dout[i0]
    return dx


def bprop():
    op = mx.operator.Custom(square_grad, lambda x, _: x, lambda x, _: x, func_type="akg")

    def custom_bprop(x, out, dout):
        dx = op(x, dout)
        return (dx,)

    return custom_bprop


class Net:
    def __init__(self):
        self.op = mx.operator.Custom(square, lambda x: x, lambda x: x, bprop=bprop(), func_type="akg")

    def __call__(self, x):
        return self.op(x)


@pytest.mark.parametrize("as_python", [False, True])
def test_square_of_mindspores_page(as_python, monkeypatch, capsys):
    if as_python:
        monkeypatch.setenv("MXOP_HYBRID", "python")
    else:
        pytest.importorskip("numba")
    x = mx.nd.array(np.array([1.0, 4.0, 9.0]).astype(np.float32))
    x.attach_grad()
    net = Net()
    with autograd.record():
        y = net(x)
    y.backward()
    print(x.grad.asnumpy())
    assert capsys.readouterr().out == "[ 2.  8. 18.]\n"
    with autograd.record():
        (dx,) = autograd.grad(net(x), [x], create_graph=True)
        z = (dx * dx).sum()
    z.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 8 * x.asnumpy())


# ---- pyfunc ---------------------------------------------------------------------------------------------------------
def test_pyfunc():
    op = Custom(lambda x, y: x + y, lambda x, y: x, lambda x, y: x, "pyfunc")
    assert (op(nd.ones((2, 3)), nd.ones((2, 3))).asnumpy() == 2).all()


def test_pyfunc_sees_memory_that_it_may_not_write():
    seen = []
    op = Custom(lambda x: seen.append(x) or x + 1, same, same, "pyfunc")
    x = nd.arange(4)
    op(x)
    assert not seen[0].flags.writeable and not seen[0].flags.owndata
    x[:] = 7
    assert seen[0].tolist() == [7] * 4

    def writes(a):
        a[0] = 1
        return a

    with pytest.raises(ValueError, match="read-only"):
        Custom(writes, same, same, "pyfunc")(x)


def test_pyfunc_gets_any_strides():
    x = nd.arange(6).reshape((2, 3)).T
    assert Custom(same, same, same, "pyfunc")(x).asnumpy().tolist() == x.asnumpy().tolist()


def test_several_outputs_by_functions_and_by_values():
    def both(x):
        return x + 1, (x.sum(axis=0) > 0).astype("int32")

    for shape, dtype in [
        (lambda s: (s, s[1:]), lambda t: (t, np.int32)),
        (((2, 3), (3,)), ("float32", "int32")),
        ([[2, 3], [3]], [np.float32, np.dtype("int32")]),
    ]:
        a, b = Custom(both, shape, dtype, "pyfunc")(nd.ones((2, 3)))
        assert a.shape == (2, 3) and b.shape == (3,) and b.dtype == np.int32 and b.asnumpy().tolist() == [1, 1, 1]


def test_functions_get_tuples_and_dtypes():
    seen = []

    def shape(*shapes):
        seen.append(shapes)
        return shapes[0]

    def dtype(*types):
        seen.append(types)
        assert types[1] == np.int32 and types[1] == "int32" and types[0] != types[1]
        return types[0]

    op = Custom(lambda x, y: x, shape, dtype, "pyfunc")
    op(nd.ones((2, 1)), nd.ones((2, 1), dtype="int32"))
    assert ((2, 1), (2, 1)) in seen and all(type(d) is int for s in seen[0] for d in s)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool", "int64", np.float64, np.dtype("uint8"), "bfloat16"])
def test_dtypes_by_value(dtype):
    code_name = "bfloat16" if dtype == "bfloat16" else np.dtype(dtype).name
    if code_name == "bfloat16":
        pytest.importorskip("ml_dtypes")
    op = Custom(lambda x: x.astype(code_name), (3,), dtype, "pyfunc")
    assert np.dtype(op(nd.ones(3)).dtype).name == code_name


class MindSporesDtype:
    """As mindspore.float32 prints itself."""

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return self.name


@pytest.mark.parametrize("spelling", ["Float32", "float32", "mindspore.float32"])
def test_dtype_objects_of_other_frameworks(spelling):
    assert Custom(same, same, MindSporesDtype(spelling), "pyfunc")(nd.ones(2)).dtype == np.float32


def test_one_number():
    op = Custom(lambda x: x.sum(), (), "float32", "pyfunc")
    assert op(nd.ones(3)).shape == () and float(op(nd.ones(3)).asscalar()) == 3
    op = Custom(lambda x: 2.5, (1,), "float32", "pyfunc")
    assert op(nd.ones(3)).asnumpy().tolist() == [2.5]


def test_no_output():
    seen = []
    op = Custom(lambda x: seen.append(x.sum()), lambda s: None, lambda t: None, "pyfunc")
    assert op(nd.ones(3)).asnumpy().tolist() == [0] and seen == [3]


def test_any_number_of_inputs():
    op = Custom(lambda *arrays: sum(arrays), lambda *s: s[0], lambda *t: t[0], "pyfunc",
                bprop=lambda *a: tuple(a[-1] for _ in a[:-2]))  # fmt: skip
    x, y, z = (nd.ones(2) * k for k in (1, 2, 3))
    x.attach_grad()
    with autograd.record():
        total = (op(x, y) + op(x, y, z) + op(x)).sum()
    total.backward()
    assert total.asscalar() == 2 * (3 + 6 + 1) and x.grad.asnumpy().tolist() == [3, 3]
    symbols = op(mx.sym.Variable("a"), mx.sym.Variable("b"), mx.sym.Variable("c"))
    assert symbols.eval(a=x, b=y, c=z)[0].asnumpy().tolist() == [6, 6]


@pytest.mark.parametrize(
    "function, shape, dtype, problem",
    [
        (lambda x: x[:1], same, same, r"output has shape \(1,\) and dtype float32; expected shape \(3,\)"),
        (lambda x: x.astype("float64"), same, same, r"dtype float64; expected shape \(3,\) and dtype float32"),
        (lambda x: None, same, same, "returned None as output; expected a NumPy array"),
        (lambda x: [1, 2, 3], same, same, "returned a list as output"),
        (lambda x: x, lambda s: (s, s), lambda t: (t, t), "expected a tuple of 2 arrays"),
        (lambda x: (x,), lambda s: (s, s), lambda t: (t, t), "returned 1 outputs; out_shape says 2"),
        (lambda x: (x, x[1:]), lambda s: (s, s), lambda t: (t, t), r"output 1 has shape \(2,\)"),
        (lambda x: x, None, same, "out_shape is needed"),
        (lambda x: x, same, None, "out_dtype is needed"),
        (lambda x: x, lambda s: "abc", same, "out_shape gave 'abc'"),
        (lambda x: x, lambda s: (-1,), same, r"out_shape gave \(-1,\)"),
        (lambda x: x, same, lambda t: "float31", "out_dtype gave 'float31'; expected one of float32"),
        (lambda x: x, lambda a, b: a, same, "out_shape.* cannot be called with 1 inputs"),
        (
            lambda x: (x, x),
            lambda s: (s, s),
            lambda t: (t, t, t),
            "speak of 2 and of 3 outputs|2 outputs and out_dtype of 3",
        ),
    ],
)
def test_what_does_not_fit(function, shape, dtype, problem):
    with pytest.raises(mx.MXNetError, match=problem):
        Custom(function, shape, dtype, "pyfunc")(nd.ones(3))


def test_exceptions_are_the_cause_of_what_arrives():
    def fails(x):
        raise KeyError("mine")

    op = Custom(fails, same, same, "pyfunc")
    for call in (lambda: op(nd.ones(3)), lambda: op(mx.sym.Variable("x")).eval(x=nd.ones(3))):
        with pytest.raises(mx.MXNetError, match="Custom fails: the function raised KeyError: 'mine'") as found:
            call()
        assert type(found.value.__cause__) is KeyError and isinstance(found.value, KeyError)
        assert [f.name for f in traceback.extract_tb(found.value.__cause__.__traceback__)][-1] == "fails"


@pytest.mark.parametrize(
    "arguments, problem",
    [
        ({"func_type": "tbe"}, "tbe.*Ascend processors only"),
        ({"func_type": "aicpu"}, "aicpu.*Ascend"),
        ({"func_type": "julia"}, "julia.*no Julia"),
        ({"func_type": "pyfun"}, "did you mean 'pyfunc'"),
        ({"func_type": "pyfunc", "bprop": 3}, "bprop must be a function"),
        ({"func_type": "pyfunc", "reg_info": 3}, "reg_info must be a dict"),
        ({"func_type": "pyfunc", "reg_info": "{"}, "reg_info is not JSON"),
    ],
)
def test_arguments_that_do_not_fit(arguments, problem):
    with pytest.raises(mx.MXNetError, match=problem):
        Custom(same, same, same, **arguments)


@pytest.mark.parametrize("function, func_type", [(3, "pyfunc"), ("lib.so:f", "pyfunc"), (3, "hybrid"), (same, "aot")])
def test_functions_that_do_not_fit(function, func_type):
    with pytest.raises(mx.MXNetError, match=r"takes a (function|text)"):
        Custom(function, same, same, func_type)


@pytest.mark.parametrize("given", [(), (1,), (np.ones(3),), (nd.ones(3), 2), (nd.ones(3), nd.ones(3)), (None,)])
def test_calls_that_do_not_fit(given):
    def one(x):
        return x

    with pytest.raises(mx.MXNetError, match="Custom one"):
        Custom(one, same, same, "pyfunc")(*given)


def test_inputs_by_name():
    def minus(x, y):
        return x - y

    op = Custom(minus, lambda a, b: a, lambda a, b: a, "pyfunc")
    assert op(nd.ones(2), y=nd.ones(2)).asnumpy().tolist() == [0, 0]
    assert op(x=nd.ones(2) * 3, y=nd.ones(2)).asnumpy().tolist() == [2, 2]
    assert op(mx.sym.Variable("p"), y=mx.sym.Variable("q")).list_arguments() == ["p", "q"]


def test_out():
    op, y = Custom(lambda x: x + 1, same, same, "pyfunc"), nd.zeros(3)
    op(nd.ones(3), out=y)
    assert y.asnumpy().tolist() == [2, 2, 2]


# ---- bprop ----------------------------------------------------------------------------------------------------------
def cube(x):
    return x**3


def cube_bprop(x, out, dout):
    return (3 * x * x * dout,)


def test_every_order():
    op = Custom(cube, same, same, "pyfunc", bprop=cube_bprop)
    x = nd.array([1, 2, 3])
    x.attach_grad()
    with autograd.record():
        y = op(x)
        for wanted in (3 * x * x, 6 * x, nd.ones(3) * 6, nd.zeros(3)):
            (y,) = autograd.grad(y.sum(), [x], create_graph=True, retain_graph=True)
            np.testing.assert_allclose(y.asnumpy(), wanted.asnumpy(), rtol=1e-6)


def test_out_is_what_was_computed():
    op = Custom(np.exp, same, same, "pyfunc", bprop=lambda x, out, dout: (out * dout,))
    x = nd.array([0.5, 1.0])
    x.attach_grad()
    with autograd.record():
        (g,) = autograd.grad(op(x), [x], create_graph=True)
        h = g.sum()
    h.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), np.exp(x.asnumpy()), rtol=1e-6)


def test_out_and_dout_of_several_outputs_are_tuples():
    def both(x, y):
        return x * y, x + y

    def back(x, y, out, dout):
        assert type(out) is tuple and type(dout) is tuple and len(out) == len(dout) == 2
        assert (out[0].asnumpy() == (x * y).asnumpy()).all()
        return dout[0] * y + dout[1], dout[0] * x + dout[1]

    op = Custom(both, lambda a, b: (a, a), lambda a, b: (a, a), "pyfunc", bprop=back)
    x, y = nd.array([1, 2]), nd.array([3, 4])
    x.attach_grad()
    y.attach_grad()
    with autograd.record():
        a, b = op(x, y)
        total = (a * 2).sum() + b.sum()
    total.backward()
    assert x.grad.asnumpy().tolist() == [7, 9] and y.grad.asnumpy().tolist() == [3, 5]
    with autograd.record():
        a, _ = op(x, y)  # the other output's gradient is zero
    a.backward()
    assert x.grad.asnumpy().tolist() == [3, 4]


def test_bprop_of_other_customs():
    sine = Custom(np.sin, same, same, "pyfunc", bprop=lambda x, out, dout: (cosine(x) * dout,))
    cosine = Custom(np.cos, same, same, "pyfunc", bprop=lambda x, out, dout: (-sine(x) * dout,))
    x = nd.array([0.3, 0.7])
    x.attach_grad()
    y = x
    with autograd.record():
        y = sine(x)
        for wanted in (np.cos, lambda v: -np.sin(v), lambda v: -np.cos(v)):
            (y,) = autograd.grad(y, [x], create_graph=True, retain_graph=True)
            np.testing.assert_allclose(y.asnumpy(), wanted(x.asnumpy()), rtol=1e-6)


def test_zero_gradients_and_requests():
    op = Custom(lambda x, i: x[i], lambda x, i: i, lambda x, i: x, "pyfunc",
                bprop=lambda x, i, out, dout: (nd.ones_like(x) * 2, None))  # fmt: skip
    x, i = nd.arange(4), nd.array([1, 2], dtype="int32")
    for req, wanted in (("write", 2), ("add", 4), ("add", 6)):
        x.attach_grad(req) if req == "write" or wanted == 4 else None
        if wanted == 4:
            x.grad[:] = 2
        with autograd.record():
            y = op(x, i)
        y.backward()
        assert x.grad.asnumpy().tolist() == [wanted] * 4


@pytest.mark.parametrize(
    "back, problem",
    [
        (lambda x, out, dout: dout, "returned a NDArray; expected a tuple of the gradients of 1 inputs"),
        (lambda x, out, dout: [dout], "returned a list; expected a tuple"),
        (lambda x, out, dout: None, "returned None; expected a tuple"),
        (lambda x, out, dout: (), "returned 0 gradients; expected 1"),
        (lambda x, out, dout: (dout, dout), "returned 2 gradients; expected 1"),
        (lambda x, out, dout: (dout[1:],), r"returned shape \(2,\) for input 0 of shape \(3,\)"),
        (lambda x, out, dout: (3.0,), "returned a float for input 0; expected an NDArray"),
        (lambda x, out, dout: (dout.asnumpy(),), "returned a ndarray for input 0"),
    ],
)
def test_gradients_that_do_not_fit(back, problem):
    op = Custom(cube, same, same, "pyfunc", bprop=back)
    x = nd.ones(3)
    x.attach_grad()
    with autograd.record():
        y = op(x)
    with pytest.raises(mx.MXNetError, match="Custom cube: bprop " + problem):
        y.backward()


def test_without_bprop():
    x = nd.ones(3)
    x.attach_grad()
    op = Custom(cube, same, same, "pyfunc")
    with autograd.record():
        y = op(x)
    with pytest.raises(mx.MXNetError, match=r"Custom cube has no gradient.*bprop\(\*inputs, out, dout\)"):
        y.backward()
    with autograd.record():
        z = (op(x).detach() * x).sum()  # nobody asks for it
    z.backward()
    assert x.grad.asnumpy().tolist() == [1, 1, 1]


@pytest.mark.parametrize("bprop", [None, cube_bprop])
def test_the_gradient_is_an_operator_that_can_be_looked_up(bprop):
    op = Custom(cube, same, same, "pyfunc", bprop=bprop)
    net = op(mx.sym.Variable("x"))
    (name,) = [n["op"] for n in json.loads(net.tojson())["nodes"] if n["op"] != "null"]
    assert mx.op.get(f"_backward_{name}").name == f"_backward_{name}"


def test_numpy_in_bprop_has_no_second_derivative():
    op = Custom(cube, same, same, "pyfunc", bprop=lambda x, out, dout: (nd.array(3 * x.asnumpy() ** 2) * dout,))
    x = nd.array([1, 2])
    x.attach_grad()
    with autograd.record():
        (g,) = autograd.grad(op(x), [x], create_graph=True)
        total = g.sum()
    assert g.asnumpy().tolist() == [3, 12]
    with pytest.raises(mx.MXNetError, match="handed a recorded array to NumPy"):
        total.backward()


# ---- symbols --------------------------------------------------------------------------------------------------------
def test_symbols():
    op = Custom(cube, same, same, "pyfunc", bprop=cube_bprop)
    net = op(mx.sym.Variable("x") * 2, name="mine") + 1
    assert net.list_arguments() == ["x"] and "mine_output" in net.get_internals().list_outputs()
    assert net.infer_shape(x=(2, 3))[1] == [(2, 3)] and net.infer_type(x="float64")[1] == [np.float64]
    exe = net.simple_bind(mx.cpu(), x=(3,))
    exe.arg_dict["x"][:] = nd.array([1, 2, 3])
    assert exe.forward(is_train=True)[0].asnumpy().tolist() == [9, 65, 217]
    exe.backward(nd.ones(3))
    assert exe.grad_dict["x"].asnumpy().tolist() == [24, 96, 216]


def test_symbol_of_several_outputs():
    op = Custom(lambda x: (x, x + 1), lambda s: (s, s), lambda t: (t, t), "pyfunc")
    net = op(mx.sym.Variable("x"))
    assert len(net.list_outputs()) == 2
    a, b = net
    assert (a + b).eval(x=nd.ones(2))[0].asnumpy().tolist() == [3, 3]


def test_number_of_outputs_is_found_out_without_shapes():
    def rows(s):
        return (s[:1], s[1:], s)

    by_shape = Custom(lambda x: (x[:, 0], x[0], x), rows, "float32", "pyfunc")
    assert len(by_shape(mx.sym.Variable("x")).list_outputs()) == 3
    a, b, c = by_shape(nd.ones((2, 3)))
    assert a.shape == (2,) and b.shape == (3,) and c.shape == (2, 3)


def test_json_within_the_process():
    op = Custom(cube, same, same, "pyfunc", bprop=cube_bprop)
    text = op(mx.sym.Variable("x")).tojson()
    assert mx.sym.load_json(text).eval(x=nd.array([2]))[0].asnumpy().tolist() == [8]
    name = json.loads(text)["nodes"][1]["op"]
    found = mx.op.info(name)
    assert found["FListInputNames"] == ["x"] and found["kind"] == "external" and name.startswith("_custom_cube_")
    assert getattr(mx.nd._internal, name)(nd.array([2])).asnumpy().tolist() == [8]
    assert mx.op.describe(name)


def test_objects_are_operators_of_their_own():
    a, b = (Custom(lambda x, k=k: x + k, same, same, "pyfunc") for k in (1, 2))
    x = mx.sym.Variable("x")
    net = mx.sym.Group([a(x), b(x)])
    assert [o.asnumpy().tolist() for o in net.eval(x=nd.zeros(1))] == [[1], [2]]
    names = {n["op"] for n in json.loads(net.tojson())["nodes"]}
    assert len(names) == 3


def test_inside_a_composite():
    op = Custom(cube, same, same, "pyfunc", bprop=cube_bprop)

    @mx.op.composite(override=True)
    def test_custom_twice(F, data):
        """Twice the cube."""
        return op(data) * 2

    x = nd.array([1, 2])
    x.attach_grad()
    with autograd.record():
        y = mx.nd.test_custom_twice(x)
    y.backward()
    assert y.asnumpy().tolist() == [2, 16] and x.grad.asnumpy().tolist() == [6, 24]
    exe = mx.sym.test_custom_twice(mx.sym.Variable("x")).simple_bind(mx.cpu(), x=(2,))
    exe.arg_dict["x"][:] = x
    assert exe.forward(is_train=True)[0].asnumpy().tolist() == [2, 16]
    exe.backward(nd.ones(2))
    assert exe.grad_dict["x"].asnumpy().tolist() == [6, 24]
    mx.op.unregister("test_custom_twice")


# ---- infos ----------------------------------------------------------------------------------------------------------
def test_info_as_a_dict():
    found = (CustomRegOp("op").fusion_type("ELEMWISE").input(0, "x", "required", shape="all").input(1, "y", "optional")
             .output(0, "z").attr("k", "required", "int", default_value="3").attr("f", "optional", "listFloat", value=[1.0])
             .dtype_format(DataType.F32_NCHW, DataType.I32_Default, DataType.F16_5HD).target("GPU").get_op_info())  # fmt: skip
    assert found == {
        "op_name": "op",
        "inputs": [{"index": 0, "name": "x", "paramType": "required", "shape": "all"},
                   {"index": 1, "name": "y", "paramType": "optional"}],
        "outputs": [{"index": 0, "name": "z", "paramType": "required"}],
        "attr": [{"name": "k", "paramType": "required", "type": "int", "defaultValue": "3"},
                 {"name": "f", "paramType": "optional", "type": "listFloat", "value": [1.0]}],
        "fusion_type": "ELEMWISE",
        "dtype_format": [(("float32", "NCHW"), ("int32", "DefaultFormat"), ("float16", "NC1HWC0"))],
        "target": "GPU",
    }  # fmt: skip
    assert json.loads(json.dumps(found))["op_name"] == "op"


@pytest.mark.parametrize(
    "dtype", ["BOOL", "I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64", "F16", "F32", "F64", "C64", "C128", "None"]
)
def test_every_data_type(dtype):
    for layout in [
        "None",
        "Default",
        "NCHW",
        "NHWC",
        "HWCN",
        "NDHWC",
        "NCDHW",
        "ChannelLast",
        "5HD",
        "FracZ",
        "FracNZ",
    ]:
        pair = getattr(DataType, f"{dtype}_{layout}")
        assert len(pair) == 2 and all(isinstance(p, str) for p in pair)
    assert getattr(DataType, f"{dtype}_Default_Tuple")[2] == "tuple" and getattr(DataType, f"{dtype}_Default_List")[2] == "list"
    assert DataType.F32_Default == ("float32", "DefaultFormat") and DataType.None_None == ("", "")


@pytest.mark.parametrize(
    "make, error, problem",
    [
        (lambda: CustomRegOp(""), ValueError, "op_name is empty"),
        (lambda: CustomRegOp(3), TypeError, "op_name must be of type str"),
        (lambda: CustomRegOp().input("0", "x"), TypeError, "input: index must be of type int"),
        (lambda: CustomRegOp().input(0, 3), TypeError, "input: name must be of type str"),
        (
            lambda: CustomRegOp().output(0, "x", "never"),
            ValueError,
            "param_type must be one of required, dynamic, optional",
        ),
        (lambda: CustomRegOp().attr("k", "required", "integer"), ValueError, "value_type must be one of int"),
        (lambda: CustomRegOp().attr(3), TypeError, "attr: name must be"),
        (lambda: CustomRegOp().attr("k").attr("k"), ValueError, "'k' is declared twice"),
        (lambda: CustomRegOp().input(0, "x").dtype_format(), ValueError, "1; 0 given|that is 1; 0 given"),
        (lambda: CustomRegOp().input(0, "x").dtype_format("float32"), TypeError, "pairs such as DataType"),
        (lambda: CustomRegOp().input(0, "x").dtype_format(("f32", "")), TypeError, "pairs such as DataType"),
        (lambda: CustomRegOp().target("TPU"), ValueError, "target must be one of CPU, GPU, Ascend"),
        (lambda: CustomRegOp().fusion_type(3), TypeError, "fusion_type must be"),
        (lambda: custom_info_register(), TypeError, "at least one info"),
        (lambda: custom_info_register(3), TypeError, "reg_info must be a dict"),
    ],
)
def test_infos_that_do_not_fit(make, error, problem):
    with pytest.raises(error, match=problem) as found:
        make()
    assert isinstance(found.value, mx.MXNetError)


def test_dtypes_are_checked_against_the_info():
    reg = (CustomRegOp().input(0, "x").input(1, "y").output(0, "z")
           .dtype_format(DataType.F32_None, DataType.F32_None, DataType.F32_None)
           .dtype_format(DataType.F64_None, DataType.None_None, DataType.F64_None).target("CPU").get_op_info())  # fmt: skip
    for given in (reg, json.dumps(reg), [reg], (reg,)):
        op = Custom(lambda x, y: x + y, lambda x, y: x, lambda x, y: x, "pyfunc", reg_info=given)
        assert op.reg_info["op_name"] == "Custom" and op.get_op_info() == op.reg_info
        op(nd.ones(2), nd.ones(2))
        op(nd.ones(2, dtype="float64"), nd.ones(2, dtype="int32"))
        listed = r"\(float32, float32\) -> \(float32\); \(float64, any\) -> \(float64\)"
        with pytest.raises(TypeError, match=rf"\(float32, int32 -> float32\) are not among those supported: {listed}"):
            op(nd.ones(2), nd.ones(2, dtype="int32"))


def test_number_of_inputs_is_checked_against_the_info():
    with pytest.raises(TypeError, match=r"takes 2 inputs|takes 1 input"):
        Custom(lambda x: x, same, same, "pyfunc", reg_info=info(2))(nd.ones(2))
    optional = CustomRegOp().input(0, "x").input(1, "y", "optional").output(0, "z").target("CPU").get_op_info()
    op = Custom(lambda *a: sum(a), lambda *s: s[0], lambda *t: t[0], "pyfunc", reg_info=optional)
    assert op(nd.ones(1)).asscalar() == 1 and op(nd.ones(1), nd.ones(1)).asscalar() == 2
    assert op(nd.ones(1), None).asscalar() == 1
    with pytest.raises(TypeError, match="takes 2 inputs"):
        op(nd.ones(1), nd.ones(1), nd.ones(1))
    dynamic = (CustomRegOp().input(0, "x", "dynamic").output(0, "z").dtype_format(DataType.F32_None, DataType.F32_None)
               .target("CPU").get_op_info())  # fmt: skip
    op = Custom(lambda *a: sum(a), lambda *s: s[0], lambda *t: t[0], "pyfunc", reg_info=dynamic)
    assert op(*[nd.ones(1)] * 5).asscalar() == 5
    with pytest.raises(TypeError, match="not among those supported"):
        op(nd.ones(1), nd.ones(1, dtype="int32"))


def test_the_decorators_info_and_the_argument():
    @custom_info_register(info(1, 1, "CPU", DataType.F64_Default), info(1, 1, "GPU"))
    def f(x):
        return x

    by_decorator = Custom(f, same, same, "pyfunc")
    assert [i["target"] for i in by_decorator.reg_info] == ["CPU", "GPU"]
    by_decorator(nd.ones(1, dtype="float64"))
    with pytest.raises(TypeError, match=r"supported: \(float64\) -> \(float64\)"):
        by_decorator(nd.ones(1))
    by_argument = Custom(f, same, same, "pyfunc", reg_info=info())
    by_argument(nd.ones(1))
    with pytest.raises(TypeError, match=r"supported: \(float32\) -> \(float32\)"):
        by_argument(nd.ones(1, dtype="float64"))
    assert f(3) == 3


def test_one_registration_for_a_target():
    from mxop.operator import reg_info

    def f(x):
        return x

    before = len(reg_info._registered)
    for _ in range(3):
        Custom(f, same, same, "pyfunc", reg_info=[info(), info(1, 1, "GPU")])
    assert [target for _, target in list(reg_info._registered)[before:]] == ["CPU", "GPU"]
    Custom(f, same, same, "pyfunc", reg_info=[info(), info()])  # the same one twice is one
    with pytest.raises(ValueError, match="two different infos for target CPU"):
        Custom(f, same, same, "pyfunc", reg_info=[info(), info(1, 1, "CPU", DataType.I32_Default)])


@pytest.mark.parametrize("targets, problem", [(["GPU"], "registered for GPU, but its inputs are on CPU"),
                                              (["Ascend"], "mxop has no Ascend devices"),
                                              (["Ascend", "GPU"], "registered for Ascend, GPU")])  # fmt: skip
def test_other_targets(targets, problem):
    op = Custom(same, same, same, "pyfunc", reg_info=[info(1, 1, t) for t in targets])  # accepted
    with pytest.raises(mx.errors.DeviceError, match=problem):
        op(nd.ones(1))


def test_derived_info():
    op = Custom(lambda x, y: x, lambda x, y: x, lambda x, y: x, "pyfunc")
    assert op.reg_info is None
    op(nd.ones(1), nd.ones(1, dtype="int32"))
    assert op.reg_info["inputs"] == [{"index": 0, "name": "x", "paramType": "required"},
                                     {"index": 1, "name": "y", "paramType": "required"}]  # fmt: skip
    assert op.reg_info["dtype_format"] == [
        (("float32", "DefaultFormat"), ("int32", "DefaultFormat"), ("float32", "DefaultFormat"))
    ]
    assert op.get_op_info()["target"] == "CPU"


ATTRS = (
    CustomRegOp().input(0, "x").output(0, "y").attr("scale", "required", "float").attr("offset", "optional", "int", "2")
    .attr("axes", "optional", "listInt", value=(0,)).attr("mode", "optional", "str", default_value="plus").target("CPU")
    .get_op_info()
)  # fmt: skip


def test_attributes():
    seen = []

    def f(x, scale, offset, axes, mode):
        seen.append((scale, offset, axes, mode))
        return x * np.float32(scale)

    op = Custom(f, same, same, "pyfunc", reg_info=ATTRS)
    x = nd.ones(2)
    assert op(x, 3).asnumpy().tolist() == [3, 3]
    op(x, scale=2.5, offset=7, mode="minus")
    op(x, 1, 2, [1, 2], "m")
    assert seen == [(3.0, 2, (0,), "plus"), (2.5, 7, (0,), "minus"), (1.0, 2, (1, 2), "m")]
    for call, problem in [
        (lambda: op(x), "'scale'.*missing"),
        (lambda: op(x, "abc"), "scale='abc' is not allowed; expected a number"),
        (lambda: op(x, 1, offset=2.5), "offset=2.5 is not allowed; expected an integer"),
        (lambda: op(x, 1, scale=2), "'scale' is given twice"),
        (lambda: op(x, 1, sale=2), "no parameter 'sale'"),
        (
            lambda: op(x, 1, 2, (0,), "m", 5),
            "Custom f: argument 1 is 1; expected an input of type NDArray or the attributes",
        ),
    ]:
        with pytest.raises(mx.MXNetError, match=problem):
            call()


def test_attributes_in_symbols_and_bprop():
    def f(x, scale, offset, axes, mode):
        return x * np.float32(scale)

    def back(x, scale, offset, axes, mode, out, dout):
        assert (offset, axes, mode) == (5, (0,), "plus")
        return (dout * scale,)

    op = Custom(f, lambda s: s, lambda t: t, "pyfunc", bprop=back, reg_info=ATTRS)
    net = mx.sym.load_json(op(mx.sym.Variable("x"), 3.5, offset=5).tojson())
    exe = net.simple_bind(mx.cpu(), x=(2,))
    exe.arg_dict["x"][:] = 2
    assert exe.forward(is_train=True)[0].asnumpy().tolist() == [7, 7]
    exe.backward(nd.ones(2))
    assert exe.grad_dict["x"].asnumpy().tolist() == [3.5, 3.5]


def test_shapes_of_attributes():
    reg = CustomRegOp().input(0, "x").output(0, "y").attr("n", "required", "int").target("CPU").get_op_info()
    op = Custom(lambda x, n: np.tile(x, n), lambda s, n: (s[0] * n,), same, "pyfunc", reg_info=reg)
    assert op(nd.ones(2), 3).shape == (6,) and op(nd.ones(2), n=4).shape == (8,)
    assert op(mx.sym.Variable("x"), n=2).infer_shape(x=(5,))[1] == [(10,)]


# ---- kernels ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "shape, dtype, problem",
    [
        (
            lambda s: (s[0] * 2,),
            same,
            r"has shape \(3,\) and dtype float32; out_shape and out_dtype say \(6,\) and float32",
        ),
        (None, "float64", r"say \(3,\) and float64"),
        ((2,), None, r"say \(2,\) and float32"),
        (lambda s: (s, s), same, "speak of 1 and of 2 outputs"),
    ],
)
def test_a_kernel_and_what_is_said_of_it(shape, dtype, problem):
    with pytest.raises(mx.MXNetError, match=problem):
        Custom(square, shape, dtype)(nd.ones(3))


def test_a_kernel_without_inputs():
    pytest.importorskip("numba")

    def counting(n):
        y = output_tensor((n + 1,), "int32")
        for i in parallel(n):
            t = allocate((2,), "int32")
            t[1] = i
            y[i] = t[1]
        return y

    assert Custom(counting)(3).asnumpy().tolist() == [0, 1, 2, 0]


def test_a_guess_of_the_number_of_outputs_that_was_wrong():
    op = Custom(lambda x: (x, x), lambda s: {(7,): (s, s)}[s], "float32", "pyfunc")
    net = op(mx.sym.Variable("x"))
    with pytest.raises(mx.MXNetError, match="out_shape gives 2 outputs for these shapes, the symbol has 1"):
        net.infer_shape(x=(7,))


# ---- where and when -------------------------------------------------------------------------------------------------
def test_many_threads():
    op, problems = Custom(lambda x: x + 1, same, same, "pyfunc", bprop=lambda x, out, dout: (dout,)), []

    def work():
        for _ in range(50):
            x = nd.ones(3)
            x.attach_grad()
            with autograd.record():
                y = op(op(x)).sum()
            y.backward()
            if y.asscalar() != 9 or x.grad.asnumpy().tolist() != [1, 1, 1]:
                problems.append(1)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_after_a_fork():
    program = """
        import os
        import mxop as mx

        op = mx.operator.Custom(lambda x: x + 1, lambda s: s, lambda t: t, "pyfunc")
        assert op(mx.nd.ones(3)).asnumpy().sum() == 6
        child = os.fork()
        if child == 0:
            os._exit(0 if op(mx.nd.ones(3)).asnumpy().sum() == 6 else 1)
        assert os.waitpid(child, 0)[1] == 0
    """
    run_python(textwrap.dedent(program))


def test_autograd_inside_the_function():
    def f(x):
        y = nd.array(x)
        y.attach_grad()
        with autograd.record():
            z = (y * y).sum()
        z.backward()
        return y.grad.asnumpy()

    op = Custom(f, same, same, "pyfunc", bprop=lambda x, out, dout: (2 * dout,))
    x = nd.array([1, 2])
    x.attach_grad()
    with autograd.record():
        y = op(x)
    y.backward()
    assert y.asnumpy().tolist() == [2, 4] and x.grad.asnumpy().tolist() == [2, 2]


# ---- the checks that every operator passes ---------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["pyfunc", "hybrid"])
def test_check_op(kind):
    from mxop.records import record

    def product_by_loops(x, y):
        z = output_tensor(x.shape, x.dtype)
        for arg in grid(x.shape):
            z[arg] = x[arg] * y[arg] + x[arg]
        return z

    if kind == "hybrid":
        pytest.importorskip("numba")
        op = Custom(product_by_loops)  # its gradient is derived
    else:
        op = Custom(lambda x, y: x * y + x, lambda x, y: x, lambda x, y: x, "pyfunc",
                    bprop=lambda x, y, out, dout: (dout * (y + 1), dout * x))  # fmt: skip
    op(mx.sym.Variable("x"), mx.sym.Variable("y"))  # registers it
    name = op.operator(2).name
    record(name, lambda x, y: x * y + x, dtypes="f")
    done = mx.test_utils.check_op(name, orders=2)["checks"]
    assert done["req"] and done["strides"] and done["gradient"] and done["executor"]
