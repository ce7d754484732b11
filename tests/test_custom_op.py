"""MXNet's CustomOp: the methods of both classes, recorded and bound, and where MXNet's own went wrong."""

import os
import textwrap
import threading

import numpy as np
import pytest
from processes import run_python

import mxop as mx
from mxop import autograd, nd, sym
from mxop.check import check_op
from mxop.operator import CustomOp, CustomOpProp, register
from mxop.records import record


class Sigmoid(CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], 1 / (1 + nd.exp(-in_data[0])))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        y = 1 / (1 + nd.exp(-in_data[0]))
        self.assign(in_grad[0], req[0], out_grad[0] * y * (1 - y))


@register("test_sigmoid")
class SigmoidProp(CustomOpProp):
    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Sigmoid()


class NumpySoftmax(CustomOp):
    """The loss of MXNet's tutorial, in NumPy."""

    def forward(self, is_train, req, in_data, out_data, aux):
        x = in_data[0].asnumpy()
        y = np.exp(x - x.max(axis=1).reshape((x.shape[0], 1)))
        y /= y.sum(axis=1).reshape((x.shape[0], 1))
        self.assign(out_data[0], req[0], mx.nd.array(y))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        label = in_data[1].asnumpy().ravel().astype(int)
        y = out_data[0].asnumpy()
        y[np.arange(label.shape[0]), label] -= 1.0
        self.assign(in_grad[0], req[0], mx.nd.array(y))


@register("test_softmax")
class SoftmaxProp(CustomOpProp):
    def __init__(self):
        super().__init__(need_top_grad=False)

    def list_arguments(self):
        return ["data", "label"]

    def list_outputs(self):
        return ["output"]

    def infer_shape(self, in_shape):
        return [in_shape[0], (in_shape[0][0],)], [in_shape[0]], []

    def infer_type(self, in_type):
        return in_type, [in_type[0]], []

    def create_operator(self, ctx, shapes, dtypes):
        return NumpySoftmax()


class Running(CustomOp):
    """Scale by a parameter, count calls in one state and sum the input in another."""

    def __init__(self, scale):
        self.scale = scale

    def forward(self, is_train, req, in_data, out_data, aux):
        if is_train:
            aux[0][:] += 1
            aux[1][:] += in_data[0]
        self.assign(out_data[0], req[0], in_data[0] * self.scale)
        self.assign(out_data[1], req[1], in_data[0] + in_data[1])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * self.scale + out_grad[1])
        self.assign(in_grad[1], req[1], out_grad[1])


@register("test_running")
class RunningProp(CustomOpProp):
    def __init__(self, scale="2"):
        assert isinstance(scale, str)
        super().__init__()
        self.scale = float(scale)

    def list_arguments(self):
        return ["a", "b"]

    def list_outputs(self):
        return ["scaled", "total"]

    def list_auxiliary_states(self):
        return ["calls", "seen"]

    def infer_shape(self, in_shape):
        return [in_shape[0]] * 2, [in_shape[0]] * 2, [(1,), in_shape[0]]

    def create_operator(self, ctx, in_shapes, in_dtypes):
        assert ctx == mx.cpu()
        return Running(self.scale)


X = np.array([[-1.0, 0.5, 2.0], [0.0, 1.0, -3.0]], "float32")


def derivatives(call, order):
    """Return the derivatives of a function of one array up to an order."""
    x = nd.array(X)
    x.attach_grad()
    found = []
    with autograd.record():
        y = call(x)
        for _ in range(order):
            found.append(y)
            y = autograd.grad(y, [x], create_graph=True)[0]
    return [f.asnumpy() for f in [*found, y]]


def test_every_order_of_an_operator_whose_backward_calls_operators():
    for mine, builtin in zip(
        derivatives(lambda x: nd.Custom(x, op_type="test_sigmoid"), 4), derivatives(nd.sigmoid, 4), strict=True
    ):
        np.testing.assert_allclose(mine, builtin, atol=1e-6)


def test_it_holds_a_record_like_any_operator():
    record("Custom", lambda data, op_type: 1 / (1 + np.exp(-data)), params=[{"op_type": "test_sigmoid"}], dtypes="f")
    report = check_op("Custom")
    assert report["checks"]["values"] > 0 and report["checks"]["gradient"] > 0


def test_second_order_through_other_operators():
    def call(x):
        return nd.sin(nd.Custom(x * x, op_type="test_sigmoid")) * x

    for mine, builtin in zip(derivatives(call, 3), derivatives(lambda x: nd.sin(nd.sigmoid(x * x)) * x, 3), strict=True):
        np.testing.assert_allclose(mine, builtin, rtol=1e-4, atol=1e-5)


def test_a_backward_in_numpy_has_no_second_derivative_and_says_so():
    x, label = nd.array(X), nd.array([0, 2])
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x, label, op_type="test_softmax")
        g = autograd.grad(y, [x], create_graph=True)[0]
    with pytest.raises(mx.MXNetError, match=r"_backward_Custom.*NumPy.*operators of mx\.nd"):
        g.backward()


def test_a_loss_needs_no_head_gradient_when_bound():
    loss = sym.Custom(data=sym.Variable("x"), label=sym.Variable("label"), name="softmax", op_type="test_softmax")
    assert loss.list_arguments() == ["x", "label"]
    assert loss.list_outputs() == ["softmax_output"]
    assert loss.infer_shape(x=(2, 3)) == ([(2, 3), (2,)], [(2, 3)], [])
    executor = loss.simple_bind(mx.cpu(), x=(2, 3), grad_req={"x": "write", "label": "null"})
    executor.arg_dict["x"][:] = X
    executor.arg_dict["label"][:] = [0, 2]
    y = executor.forward(is_train=True)[0].asnumpy()
    np.testing.assert_allclose(y, np.exp(X) / np.exp(X).sum(1, keepdims=True), rtol=1e-6)
    executor.backward()
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), y - np.eye(3)[[0, 2]], atol=1e-6)


def test_arguments_are_made_as_variables():
    made = sym.Custom(sym.Variable("x"), op_type="test_running", name="run")
    assert made.list_arguments() == ["x", "run_b"]
    assert made.list_auxiliary_states() == ["run_calls", "run_seen"]
    assert made.list_outputs() == ["run_scaled", "run_total"]
    assert made.infer_shape(x=(2, 3)) == ([(2, 3)] * 2, [(2, 3)] * 2, [(1,), (2, 3)])
    assert made.infer_type(x="float64")[1] == [np.float64] * 2


def test_json_keeps_parameters_and_states():
    made = sym.Custom(sym.Variable("x"), op_type="test_running", scale=3, name="run")
    again = sym.load_json(made.tojson())
    assert again.tojson() == made.tojson()
    assert again.list_auxiliary_states() == ["run_calls", "run_seen"]
    assert again.attr_dict()["run"]["scale"] == "3"


def test_parameters_are_strings_none_too():
    got = []

    class Told(SigmoidProp):
        def __init__(self, shape, limit, flag="False"):
            super().__init__()
            got.append((shape, limit, flag))

    register("test_told")(Told)
    nd.Custom(nd.ones((2,)), op_type="test_told", shape=(1, 2), limit=None, flag=True)
    net = sym.Custom(sym.Variable("x"), op_type="test_told", shape=[1], limit=None)
    assert set(got) == {("(1, 2)", "None", "True"), ("[1]", "None", "False")}
    assert net.list_attr() == {"op_type": "test_told", "shape": "[1]", "limit": "None"}


@pytest.mark.parametrize("grad_req", ["write", "add"])
def test_states_outputs_and_requests_when_bound(grad_req):
    made = sym.Custom(sym.Variable("a"), sym.Variable("b"), op_type="test_running", scale=3, name="run")
    args = {"a": nd.array(X), "b": nd.ones((2, 3))}
    grads = {"a": nd.ones((2, 3)), "b": nd.ones((2, 3))}
    aux = {"run_calls": nd.zeros((1,)), "run_seen": nd.zeros((2, 3))}
    executor = made.bind(mx.cpu(), args, args_grad=grads, grad_req=grad_req, aux_states=aux)
    for _ in range(2):
        scaled, total = executor.forward(is_train=True)
        executor.backward([nd.full((2, 3), 10), nd.full((2, 3), 0.5)])
    np.testing.assert_allclose(scaled.asnumpy(), 3 * X)
    np.testing.assert_allclose(total.asnumpy(), X + 1)
    first = 1.0 if grad_req == "add" else 0.0
    times = 2 if grad_req == "add" else 1
    np.testing.assert_allclose(grads["a"].asnumpy(), np.full((2, 3), first + times * 30.5))
    np.testing.assert_allclose(grads["b"].asnumpy(), np.full((2, 3), first + times * 0.5))
    assert aux["run_calls"].asscalar() == 2
    np.testing.assert_allclose(aux["run_seen"].asnumpy(), 2 * X)
    executor.forward(is_train=False)
    assert aux["run_calls"].asscalar() == 2


def test_states_when_called():
    a, b, calls, seen = nd.array(X), nd.ones((2, 3)), nd.zeros((1,)), nd.zeros((2, 3))
    a.attach_grad()
    b.attach_grad("add")
    b.grad[:] = 7
    with autograd.record():
        scaled, total = nd.Custom(a, b, calls, seen, op_type="test_running")
        loss = scaled.sum() + 2 * total.sum()
    loss.backward()
    assert calls.asscalar() == 1
    np.testing.assert_allclose(a.grad.asnumpy(), np.full((2, 3), 4.0))
    np.testing.assert_allclose(b.grad.asnumpy(), np.full((2, 3), 9.0))
    nd.Custom(a, b, calls, seen, op_type="test_running")
    assert calls.asscalar() == 1  # is_train was False


def test_out_and_overlap():
    x = nd.array(X)
    result = nd.Custom(x, op_type="test_sigmoid", out=x)
    assert result is x
    np.testing.assert_allclose(x.asnumpy(), 1 / (1 + np.exp(-X)), rtol=1e-6)
    columns = nd.array(X)[:, ::2]
    nd.Custom(columns, op_type="test_sigmoid", out=columns)
    np.testing.assert_allclose(columns.asnumpy(), 1 / (1 + np.exp(-X[:, ::2])), rtol=1e-6)


@pytest.mark.parametrize(
    "req, expected", [("null", [1, 1]), ("write", [2, 3]), ("inplace", [2, 3]), ("add", [3, 4])]
)  # fmt: skip
def test_assign(req, expected):
    target = nd.ones((2,))
    CustomOp().assign(target, req, nd.array([2, 3]))
    assert target.asnumpy().tolist() == expected
    with pytest.raises(ValueError, match="req='replace'"):
        CustomOp().assign(target, "replace", 0)


def test_the_operator_keeps_what_forward_found_for_backward():
    class Keep(CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.factor = in_data[0].asnumpy().max()
            self.assign(out_data[0], req[0], in_data[0] * float(self.factor))

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * float(self.factor))

    @register("test_keep")
    class KeepProp(CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Keep()

    a, b = nd.array([1, 2]), nd.array([5, 3])
    a.attach_grad()
    b.attach_grad()
    with autograd.record():
        y = nd.Custom(a, op_type="test_keep") + nd.Custom(b, op_type="test_keep")
    y.backward()
    assert a.grad.asnumpy().tolist() == [2, 2] and b.grad.asnumpy().tolist() == [5, 5]
    x = sym.Variable("x")
    both = sym.Custom(x, op_type="test_keep") + sym.Custom(2 * x, op_type="test_keep")
    executor = both.bind(mx.cpu(), {"x": nd.array([1, 2])}, args_grad={"x": nd.zeros((2,))})
    executor.forward(is_train=True)
    executor.backward(nd.ones((2,)))
    assert executor.grad_dict["x"].asnumpy().tolist() == [10, 10]  # 2 + 4 * 2: each node has an operator of its own


def test_the_props_own_notes_are_about_the_shapes_of_the_call():
    class Noting(CustomOp):
        def __init__(self, n):
            self.n = n

        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 0 + self.n)

    @register("test_noting")
    class NotingProp(CustomOpProp):
        def infer_shape(self, in_shape):
            self.n = in_shape[0][0]
            return in_shape, [in_shape[0]], []

        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Noting(self.n)

    for n in (2, 3, 2):
        assert nd.Custom(nd.ones((n,)), op_type="test_noting").asnumpy().tolist() == [n] * n


def test_autograd_inside_forward_leaves_the_outer_recording_alone():
    class Inner(CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            x = in_data[0]
            x.attach_grad()
            with autograd.record():
                y = x * x * x
            y.backward()
            assert np.asarray(x.grad).shape == x.shape
            self.assign(out_data[0], req[0], x.grad)  # 3 x^2

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], 6 * in_data[0] * out_grad[0])

    @register("test_inner")
    class InnerProp(CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Inner()

    for mine, right in zip(
        derivatives(lambda x: nd.Custom(x, op_type="test_inner"), 2), [3 * X**2, 6 * X, np.full_like(X, 6)], strict=True
    ):
        np.testing.assert_allclose(mine, right)
    x = nd.array(X)
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(2 * x, op_type="test_inner")
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 24 * X)


def test_sixteen_threads():
    failures = []

    def work(n):
        try:
            x = nd.full((n + 1, 3), 0.1 * n)
            x.attach_grad()
            for _ in range(50):
                with autograd.record():
                    y = nd.Custom(x, op_type="test_sigmoid").sum()
                y.backward()
                s = 1 / (1 + np.exp(-0.1 * n))
                np.testing.assert_allclose(x.grad.asnumpy(), s * (1 - s), rtol=1e-4)
        except Exception as problem:
            failures.append(problem)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_after_a_fork():
    program = """
        import os, numpy as np, mxop as mx
        class Twice(mx.operator.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                self.assign(out_data[0], req[0], mx.nd.array(2 * in_data[0].asnumpy()))
        @mx.operator.register("twice")
        class TwiceProp(mx.operator.CustomOpProp):
            def create_operator(self, ctx, s, d):
                return Twice()
        x = mx.nd.ones((1000, 1000))
        assert mx.nd.Custom(x, op_type="twice").sum().asscalar() == 2e6
        child = os.fork()
        if child == 0:
            os._exit(0 if mx.nd.Custom(x, op_type="twice").sum().asscalar() == 2e6 else 1)
        assert os.waitpid(child, 0)[1] == 0
        print("done")
    """
    assert run_python(textwrap.dedent(program)) == "done"


def test_lists_of_operators():
    names = mx.operator.get_all_registered_operators()
    assert {"Custom", "test_sigmoid", "elemwise_add", "_plus"} <= set(names)
    grouped = mx.operator.get_all_registered_operators_grouped()
    assert "_plus" in grouped["elemwise_add"] and grouped["test_sigmoid"] == ["test_sigmoid"]
    found = mx.operator.get_operator_arguments("elemwise_add")
    assert (found.narg, found.names) == (2, ["lhs", "rhs"])
    assert mx.operator.get_operator_arguments("sum").names == ["data", "axis", "keepdims", "exclude"]
    assert mx.operator.get_operator_arguments("Custom").names == ["data", "op_type"]
    found = mx.operator.get_operator_arguments("test_running")
    assert found.names == ["a", "b", "calls", "seen", "scale"] and found.types[-1] == "string, optional, default='2'"
    with pytest.raises(mx.MXNetError, match="no_such"):
        mx.operator.get_operator_arguments("no_such_operator")


def test_bad_calls():
    x = nd.ones((2,))
    with pytest.raises(mx.MXNetError, match=r"op_type='test_sigmoyd' is not registered.*did you mean 'test_sigmoid'"):
        nd.Custom(x, op_type="test_sigmoyd")
    with pytest.raises(mx.MXNetError, match="required parameter 'op_type'"):
        nd.Custom(x)
    with pytest.raises(TypeError, match=r"SigmoidProp \(op_type='test_sigmoid'\) does not take the parameters"):
        nd.Custom(x, op_type="test_sigmoid", speed=3)
    with pytest.raises(TypeError, match=r"takes 1 input \(data\)"):
        nd.Custom(x, x, op_type="test_sigmoid")
    with pytest.raises(TypeError, match=r"argument data must be an NDArray, got 1"):
        nd.Custom([1, 2], op_type="test_sigmoid")
    with pytest.raises(TypeError, match="missing: label"):
        nd.Custom(x, op_type="test_softmax")
    with pytest.raises(TypeError, match=r"no input 'labels'.*did you mean 'label'"):
        nd.Custom(x, labels=x, op_type="test_softmax")
    with pytest.raises(TypeError, match="argument data must be an NDArray"):
        nd.Custom(np.ones(2), op_type="test_sigmoid")
    with pytest.raises(TypeError, match="not a subclass of CustomOpProp"):
        register("test_bad")(Sigmoid)


def test_registering_a_name_again_replaces_the_class():
    for factor in (2, 3):

        class Times(CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux, factor=factor):
                self.assign(out_data[0], req[0], in_data[0] * factor)

        @register("test_times")
        class TimesProp(CustomOpProp):
            def create_operator(self, ctx, in_shapes, in_dtypes, op=Times):
                return op()

        assert nd.Custom(nd.ones((2,)), op_type="test_times").asnumpy().tolist() == [factor] * 2


def test_equal_calls_both_run():
    calls = []

    class Counting(CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            calls.append(1)
            self.assign(out_data[0], req[0], in_data[0])

    @register("test_counting")
    class CountingProp(CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Counting()

    x = sym.Variable("x")
    both = sym.Custom(x, op_type="test_counting") + sym.Custom(x, op_type="test_counting")
    both.bind(mx.cpu(), [nd.ones((2,))]).forward()
    assert len(calls) == 2


def test_a_composite_may_call_it():
    @mx.op.composite(name="test_custom_inside")
    def inside(F, data):
        """A custom operator within."""
        return F.Custom(F.square(data), op_type="test_sigmoid")

    try:
        x = nd.array(X)
        expected = 1 / (1 + np.exp(-(X**2)))
        np.testing.assert_allclose(nd.test_custom_inside(x).asnumpy(), expected, rtol=1e-6)
        bound = sym.test_custom_inside(sym.Variable("x")).bind(mx.cpu(), {"x": x}, args_grad={"x": nd.zeros((2, 3))})
        np.testing.assert_allclose(bound.forward(is_train=True)[0].asnumpy(), expected, rtol=1e-6)
        bound.backward(nd.ones((2, 3)))
        np.testing.assert_allclose(bound.grad_dict["x"].asnumpy(), 2 * X * expected * (1 - expected), rtol=1e-5, atol=1e-7)
    finally:
        mx.op.unregister("test_custom_inside")


def test_an_operator_without_inputs():
    class Fill(CustomOp):
        def __init__(self, shape):
            self.values = np.full(shape, 3, "float32")

        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], self.values)

    @register("test_fill")
    class FillProp(CustomOpProp):
        def __init__(self, rows, columns):
            super().__init__()
            self.shape = (int(rows), int(columns))

        def list_arguments(self):
            return []

        def infer_shape(self, in_shape):
            return [], [self.shape], []

        def infer_type(self, in_type):
            return [], [np.float32], []

        def create_operator(self, ctx, in_shapes, in_dtypes):
            assert ctx == mx.cpu()
            return Fill(self.shape)

    with autograd.record():
        assert nd.Custom(rows=2, columns=3, op_type="test_fill").asnumpy().tolist() == [[3] * 3] * 2
    made = sym.Custom(rows=2, columns=3, op_type="test_fill")
    assert made.list_arguments() == [] and made.infer_shape() == ([], [(2, 3)], [])
    assert made.bind(mx.cpu(), {}).forward()[0].asnumpy().tolist() == [[3] * 3] * 2
