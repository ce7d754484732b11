"""Operators of users that are wrong: they say so, and name themselves, instead of giving wrong numbers."""

import re
from typing import Annotated

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym
from mxop.op import F, Range, composite, elementwise, kernel, reduction
from mxop.opdef.rules import check_rule

X = np.array([1.0, 2.0], "float32")


def kernel_with(own, **parts):
    """Make the operator ``test_mistake`` of one input."""

    @kernel
    def test_mistake(x):
        """An operator."""

    test_mistake.shape(parts.get("shape", lambda x: x))
    test_mistake.cpu(parts.get("cpu", lambda inputs, outputs: outputs[0].__setitem__(slice(None), inputs[0])))
    if "gradient" in parts:
        test_mistake.gradient(parts["gradient"])
    return own(test_mistake)


# ---- gradients by NumPy -------------------------------------------------------------------------------------------------
def by_numpy(F, heads, inputs, outputs):
    return [nd.array(heads[0].asnumpy() * 2 * inputs[0].asnumpy())]


class Square(autograd.Function):
    def forward(self, x):
        self.save_for_backward(x)
        return nd.square(x)

    def backward(self, head):
        (x,) = self.saved_tensors
        return nd.array(head.asnumpy() * 2 * x.asnumpy())


@pytest.mark.parametrize("kind", ["rule", "Function"])
@pytest.mark.parametrize("around", [lambda y, x: y, lambda y, x: y + x**3, lambda y, x: y * x])
def test_a_gradient_by_numpy_has_no_gradient(own, kind, around):
    """At first order it is right; at second it was 0, beside whatever had one."""
    square = lambda x: x * x  # noqa: E731
    if kind == "rule":
        kernel_with(own, cpu=lambda i, o: o[0].__setitem__(slice(None), i[0].asnumpy() ** 2), gradient=by_numpy)
        function, name = (lambda x: nd.test_mistake(x)), "operator test_mistake"
    else:
        function, name = (lambda x: Square()(x)), "Square"
    x, same = nd.array(X), nd.array(X)
    x.attach_grad()
    same.attach_grad()
    with autograd.record():
        y, want = around(function(x), x), around(square(same), same)
    y.backward(retain_graph=True)
    want.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), same.grad.asnumpy(), rtol=1e-6)
    with autograd.record():
        (g,) = autograd.grad(around(function(x), x), [x], create_graph=True)
    np.testing.assert_allclose(g.asnumpy(), same.grad.asnumpy(), rtol=1e-6)
    with pytest.raises(mx.MXNetError, match=f"the gradient of {name} cannot be differentiated.*NumPy"):
        g.backward()


def test_a_rule_may_look_at_one_number(own):
    def rule(F, heads, inputs, outputs):
        return [heads[0] * inputs[0] * (2 if inputs[0][0].asscalar() > 0 else 3)]

    kernel_with(own, cpu=lambda i, o: o[0].__setitem__(slice(None), i[0].asnumpy() ** 2), gradient=rule)
    x = nd.array(X)
    x.attach_grad()
    with autograd.record():
        (g,) = autograd.grad(nd.test_mistake(x), [x], create_graph=True)
    g.backward()
    assert x.grad.asnumpy().tolist() == [2, 2]


# ---- outputs ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("count", [0, 2, 3])
def test_a_composite_returns_what_it_has(own, count):
    @composite
    def test_mistake(F, x):
        """Returns several arrays."""
        return [F.square(x)] * count

    own(test_mistake)
    with pytest.raises(mx.MXNetError, match=f"test_mistake returned {count} arrays, but has 1 output"):
        nd.test_mistake(nd.array(X))
    with pytest.raises(mx.MXNetError, match="test_mistake"):
        sym.test_mistake(sym.var("x")).bind(mx.cpu(), {"x": nd.array(X)})


def test_a_composite_returns_arrays(own):
    @composite
    def test_mistake(F, x):
        """Returns a NumPy array."""
        return np.ones(2)

    own(test_mistake)
    with pytest.raises(mx.MXNetError, match="test_mistake returned a ndarray; expected what operators return"):
        nd.test_mistake(nd.array(X))


MISTAKES = {
    "writes nothing": (lambda inputs, outputs: None, "wrote nothing into output 0"),
    "writes into a copy": (lambda inputs, outputs: outputs[0].asnumpy().fill(3), "wrote nothing into output 0"),
    "returns": (lambda inputs, outputs: inputs[0] * 2, "returned a NDArray, which nobody reads"),
    "writes its input": (lambda inputs, outputs: inputs[0].__setitem__(slice(None), 7), "read-only"),
    "writes its input's buffer": (lambda inputs, outputs: np.asarray(inputs[0]).fill(7), "read-only"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("bound", [False, True])
def test_a_cpu_function_that_is_wrong(own, mistake, bound):
    run, message = MISTAKES[mistake]
    kernel_with(own, cpu=run)
    x = nd.array(X)
    with pytest.raises(mx.MXNetError, match=f"(?s)test_mistake.*{message}"):
        if bound:
            sym.test_mistake(sym.var("x")).bind(mx.cpu(), {"x": x}).forward()
        else:
            nd.test_mistake(x)
    assert x.asnumpy().tolist() == X.tolist()


@pytest.mark.parametrize("shape", [(-1,), (2.5,), (True, 2), ("2",)])
def test_a_shape_rule_that_returns_no_shape(own, shape):
    kernel_with(own, shape=lambda x: shape)
    with pytest.raises(mx.MXNetError, match=r"test_mistake, .*: its shape rule returned"):
        nd.test_mistake(nd.array(X))
    with pytest.raises(mx.MXNetError, match=r"test_mistake, .*: its shape rule returned"):
        sym.test_mistake(sym.var("x")).infer_shape(x=(2,))


# ---- definitions --------------------------------------------------------------------------------------------------------
HERE = re.escape(__file__)


def f1(data):
    return data


def f2(data, label, *, gamma: float = 2.0):
    return data


DEFINITIONS = {
    "an unknown option": (lambda: elementwise(nam="x")(f1), f"f1, {HERE}:.*no option 'nam'.*did you mean 'name'"),
    "an option of another kind": (lambda: kernel(broadcast=True)(f1), "@kernel has no option 'broadcast'"),
    "an option of a reduction": (lambda: reduction("add", finl=1)(f1), "no option 'finl'.*did you mean 'final'"),
    "aliases as one name": (lambda: elementwise(aliases="abc")(f1), "f1, .*aliases='abc' is not a tuple of names"),
    "a name that is none": (lambda: elementwise(name=3)(f1), "name=3 is not a name that Python can write"),
    "a name with a space": (lambda: elementwise(name="f 1")(f1), "name='f 1' is not a name"),
    "a number as text": (lambda: kernel(num_outputs="2")(f1), "f1, .*num_outputs='2' is not a number from 1 on"),
    "a truth as text": (lambda: elementwise(broadcast="no")(f1), "f1, .*broadcast='no' is not True or False"),
    "a combination that is none": (lambda: reduction("plus"), "combine='plus' is not one of add"),
    "a reduction without one": (lambda: reduction(f1), r"f1.*@reduction\('add'\)"),
    "no input": (lambda: elementwise(lambda: 1, name="f0"), "f0.*it has no input"),
    "a composite without F": (lambda: composite(lambda: None, name="f0"), r"f0.*a function of F .*def f\(F, data\)"),
    "integers that are no input": (lambda: elementwise(integers=["lable"])(f2), "f2: integers=.*names 'lable'.*data, label"),
    "out_dtype of too few": (lambda: elementwise(out_dtype=lambda data: data)(f2), r"f2.*rule\(data, label, \*, gamma\)"),
    "a rule of too few": (lambda: elementwise(rule=lambda g, x: g)(f1), r"f1, .*rule\(g, data, output\)"),
    "final without count": (lambda: reduction("add", final=lambda v: v)(f1), r"f1, .*final.*rule\(value, count\)"),
    "a parameter that the kind has": (
        lambda: reduction("add")(axis_of_its_own), "axis_of_its_own.*'axis' belongs to every reduction"),
    "num_outputs of too few": (lambda: kernel(num_outputs=lambda: 2)(f2), r"f2, .*num_outputs is called as rule\(\*, gamma\)"),
    "states beyond the outputs": (
        lambda: composite(lambda F, data: data, name="f0", writes={"data": 1}), "f0, .*: writes=.* 1 outputs: declare num_out"),
    "states beyond the formulas": (
        lambda: elementwise(lambda data: (data, data), name="f0", writes={"data": 2}), "f0, .*: writes=.* 2 outputs"),
    "a parameter of unknown kind": (lambda: elementwise(unknown_kind), "unknown_kind.*parameter 'a'.*complex.*expected float"),
    "a parameter of unknown name": (lambda: elementwise(unknown_name), "unknown_name.*parameter 'a'.*NotThere"),
    "a default that does not fit": (
        lambda: elementwise(wrong_default), "wrong_default.*parameter 'a'.*default 'x', which is not a number"),
    "a default out of range": (lambda: elementwise(wrong_range), "wrong_range.*parameter 'a'.*default 9, .*from 1 to 8"),
}  # fmt: skip


def axis_of_its_own(data, *, axis: int = 1):
    return data


def unknown_kind(data, *, a: complex):
    return data


def unknown_name(data, *, a: "NotThere"):  # noqa: F821
    return data


def wrong_default(data, *, a: float = "x"):
    return data


def wrong_range(data, *, a: Annotated[int, Range(1, 8)] = 9):
    return data


def test_a_formula_may_use_what_its_module_defines_further_down(own):
    @elementwise
    def test_mistake(data):
        """Uses a function of which the module says later what it is."""
        return later(data)  # noqa: F821

    own(test_mistake)
    with pytest.raises(NameError, match="later"):
        test_mistake(nd.array(X))
    globals()["later"] = lambda data: data * 3
    assert test_mistake(nd.array(X)).asnumpy().tolist() == [3, 6]
    del globals()["later"]


@pytest.mark.parametrize("what", DEFINITIONS)
def test_a_definition_that_is_wrong(what):
    make, message = DEFINITIONS[what]
    before = mx.op.names()
    with pytest.raises(mx.MXNetError, match=f"(?s){message}"):
        make()
    assert mx.op.names() == before


RULES = {
    "shape": (lambda op, rule: op.shape(rule), lambda data: data, r"shape rule is called as rule\(data, label, \*, gamma\)"),
    "dtype": (lambda op, rule: op.dtype(rule), lambda data, label: data, r"dtype rule"),
    "infer": (lambda op, rule: op.infer(rule), lambda ins, *, gamma: ins, r"infer rule .* rule\(ins, outs, \*, gamma\)"),
    "size": (lambda op, rule: op.size(rule), lambda data, *, gamma: 1, "size rule"),
    "gradient": (lambda op, rule: op.gradient(rule), lambda heads, inputs, outputs, *, gamma: [],
                 r"gradient rule is called as rule\(F, heads, inputs, outputs, \*, gamma\)"),
    "cpu": (lambda op, rule: op.cpu(rule), lambda inputs, outputs: None, r"CPU function .*\(inputs, outputs, \*, gamma\)"),
    "prepared": (lambda op, rule: op.cpu(prepared=True)(rule), lambda inputs, outputs, *, gamma: None,
                 r"CPU function .*\(steps, inputs, outputs, \*, gamma\)"),
    "gpu": (lambda op, rule: op.gpu(rule), lambda inputs, outputs, *, gamma: None, r"\(xp, inputs, outputs, \*, gamma\)"),
    "rearrange": (lambda op, rule: op.rearrange(rule), lambda inputs, outputs, *, gamma: None, r"\(xp, inputs, outputs"),
    "view": (lambda op, rule: op.view(rule), lambda shape, strides, *, gamma: None,
             r"\(shape, strides, shape_label, \*, gamma\)"),
    "no function": (lambda op, rule: op.shape(rule), (2, 3), r"shape rule is \(2, 3\); expected a function"),
}  # fmt: skip


@pytest.mark.parametrize("what", RULES)
def test_a_rule_with_a_wrong_signature(own, what):
    give, rule, message = RULES[what]
    test_mistake = own(kernel(name="test_mistake")(f2))
    with pytest.raises(mx.MXNetError, match=f"operator test_mistake.*{message}") as told:
        give(test_mistake, rule)
    assert callable(rule) is False or __file__ in str(told.value)


@pytest.mark.parametrize("table", [
    None, [("n", "m"), ("m",)], {"data": ("n", "m"), "w": ("m",)}, {"data": ("n", "m"), "w": None, "output": ("n", "m")},
])  # fmt: skip
def test_a_table_of_dimensions_that_is_none(own, table):
    @composite
    def test_mistake(F, data, w):
        """A weighted table."""
        return F.broadcast_mul(data, F.expand_dims(w, axis=0))

    own(test_mistake).dims(lambda: table)
    told = f"test_mistake, {re.escape(__file__)}:.*its table of dimensions is .*for each of data, w, output"
    with pytest.raises(mx.MXNetError, match=told):
        nd.test_mistake(nd.ones((2, 3)), nd.ones(3))
    with pytest.raises(mx.MXNetError, match=told):
        sym.test_mistake(sym.var("data"), sym.var("w")).infer_shape(data=(2, 3))


@pytest.mark.parametrize("kind", [kernel, composite])
def test_types_that_a_rule_demands_are_demanded_of_a_call(own, kind):
    """A symbol refused what the call took."""

    def of_kernel(data, index):
        """Rows."""

    def of_composite(F, data, index):
        """Rows."""
        return F.take(data, index)

    op = own(kind(name="test_mistake")(of_kernel if kind is kernel else of_composite))
    if kind is kernel:
        op.shape(lambda data, index: (*index, *data[1:]))
        op.both(lambda xp, inputs, outputs: outputs[0].__setitem__(..., inputs[0][inputs[1].astype("int64")]))
    op.infer_types(lambda ins, outs: ([ins[0], "int32"], [ins[0]]))
    data, index = nd.array([[1, 2], [3, 4]]), nd.array([1, 0], dtype="int32")
    assert op(data, index).asnumpy().tolist() == [[3, 4], [1, 2]]
    with pytest.raises(mx.MXNetError, match="test_mistake: its rule of types has dtype int32 but index has dtype float32"):
        op(data, index.astype("float32"))


def test_the_rules_of_the_package_fit():
    """What users are told is what holds."""
    rules = {"_shape": ("*shape",), "_dtype": ("*type",), "_infer": ("ins", "outs"), "sized_by": ("*array",),
             "_gradient": ("F", "heads", "inputs", "outputs"), "run_gpu": ("xp", "inputs", "outputs")}  # fmt: skip
    for op in mx.op.operators():
        module, op.module = op.module, "a.user"
        try:
            op.check_definition()
            for name, expected in rules.items():
                if getattr(op, name, None) is not None:
                    check_rule(op, name, getattr(op, name), expected)
            for way in getattr(op, "ways", ()):
                check_rule(op, "cpu", way.run, ("steps", "inputs", "outputs") if way.prepared else ("inputs", "outputs"))
        finally:
            op.module = module


@pytest.mark.parametrize("given", ["int64", np.int64, np.dtype("int64"), 6, [np.int64], ("int64",)])
def test_a_dtype_rule_may_give_names_types_and_codes(own, given):
    op = kernel_with(own, cpu=lambda i, o: o[0].__setitem__(slice(None), i[0].asnumpy()))
    op.dtype(lambda x: given)
    assert nd.test_mistake(nd.array(X)).dtype == np.int64
    assert sym.test_mistake(sym.var("x")).infer_type(x="float32")[1] == [np.int64]
    other = own(elementwise(name="test_mistake_typed", out_dtype=lambda x: given)(f1))
    assert other(nd.array(X)).dtype == np.int64


@pytest.mark.parametrize("given", ["int65", None, ["int64", "int64"], object()])
def test_a_dtype_rule_that_gives_no_type(own, given):
    op = kernel_with(own)
    op.dtype(lambda x: given)
    with pytest.raises(mx.MXNetError, match=r"operator test_mistake, .*: its dtype rule returned"):
        nd.test_mistake(nd.array(X))
    op.dtype(lambda x: "int32")  # and mended it works
    assert nd.test_mistake(nd.array(X)).dtype == np.int32


def test_a_gradient_rule_that_returns_no_list(own):
    kernel_with(own, gradient=lambda F, heads, inputs, outputs: heads[0] * 2)
    x = nd.array(X)
    x.attach_grad()
    with autograd.record():
        y = nd.test_mistake(x)
    with pytest.raises(mx.MXNetError, match=r"gradient rule of operator test_mistake, .* returned a NDArray; expected a list"):
        y.backward()


def test_truth_values_in_a_formula(own):
    @elementwise
    def test_mistake_truth(x, *, both: bool = True):
        """Where x is between, or is not."""
        inside = (x > 0) & (x < 2)
        return F.where(inside | ~(x < 5), x // 2, 7.0) * ((x > 0) ^ (x > 100)) * (both & (x == x))

    own(test_mistake_truth)
    x = np.array([-3, 0.5, 1.5, 3, 6, 101.0])
    want = np.where(((x > 0) & (x < 2)) | ~(x < 5), x // 2, 7.0) * ((x > 0) ^ (x > 100))
    assert nd.test_mistake_truth(nd.array(x)).asnumpy().tolist() == want.tolist()


# ---- labels -------------------------------------------------------------------------------------------------------------
@pytest.fixture
def loss(own):
    @elementwise(integers=("label",))
    def test_labelled(data, label, *, gamma: float = 2.0):
        """Weighted error."""
        return label * F.exp(-gamma * data) - (1 - label) * F.sin(data)

    def reference(data, label, gamma=2.0):
        return label * np.exp(-gamma * data) - (1 - label) * np.sin(data)

    return own(test_labelled, reference, domain=(0.1, 0.9), dtypes="f", params=[{}, {"gamma": 1.5}])


@pytest.mark.parametrize("label", ["int32", "int64", "uint8", "int8", "bool"])
@pytest.mark.parametrize("data", ["float16", "float32", "float64"])
def test_integer_labels_are_taken_as_the_data(loss, label, data):
    """As if they had been cast: in calls, records, symbols and their derivatives."""
    x = nd.array([0.25, 0.5, 0.75], dtype=data)
    y = nd.array([0, 1, 1], dtype=label)
    grads = []
    for labels in (y, y.astype(data)):
        x.attach_grad()
        with autograd.record():
            out = loss(x, labels, gamma=3.0)
            (g,) = autograd.grad(out, [x], create_graph=True)
        g.backward()
        grads.append([out.asnumpy(), g.asnumpy(), x.grad.asnumpy()])
        assert out.dtype == g.dtype == np.dtype(data)
    np.testing.assert_array_equal(grads[0], grads[1])
    variable = sym.var("x")
    net = loss(variable, sym.var("y"), gamma=3.0)
    assert net.infer_type(x=data, y=label)[:2] == ([np.dtype(data), np.dtype(label)], [np.dtype(data)])
    for graph, want in ((net, grads[0][0]), (mx.graph.deriv(net, variable), grads[0][1])):
        found = graph.bind(mx.cpu(), {"x": x, "y": y}).forward()[0]
        np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-3 if data == "float16" else 1e-6)
    executor = net.simple_bind(
        mx.cpu(), x=(3,), y=(3,), type_dict={"x": data, "y": label}, grad_req={"x": "write", "y": "null"}
    )
    executor.forward(is_train=True, x=x, y=y)
    executor.backward(nd.ones(3, dtype=data))
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), grads[0][1], rtol=1e-3 if data == "float16" else 1e-6)


def test_labels_of_the_data_s_type_are_as_ever(loss):
    mx.test_utils.check_op("test_labelled")
    x, y = nd.array([0.25, 0.5]), nd.array([0.0, 1.0])
    y.attach_grad()
    with autograd.record():
        out = loss(x, y)
    out.backward()
    np.testing.assert_allclose(y.grad.asnumpy(), np.exp(-2 * x.asnumpy()) + np.sin(x.asnumpy()), rtol=1e-5)
    with pytest.raises(mx.MXNetError, match="test_labelled: data has dtype int32 but label has dtype float32"):
        loss(x.astype("int32"), y)


@pytest.mark.parametrize("label", ["int32", "uint8"])
def test_integer_labels_hold_a_record(own, label):
    @elementwise(integers=("label",), broadcast=True)
    def test_labelled_broadcast(data, label):
        """A product with a label for each row."""
        return F.tanh(data) * label

    own(test_labelled_broadcast, lambda data, label: np.tanh(data) * label, dtypes="f", input_types={1: label},
        shapes=[((2, 3), (2, 1))], whole=(1,), domain=((-1, 1), (0, 5)), grad_inputs=(0,))  # fmt: skip
    mx.test_utils.check_op("test_labelled_broadcast")


def test_integer_labels_on_a_gpu(loss, simulated_gpu):
    x, y = nd.array([0.25, 0.5], ctx=simulated_gpu), nd.array([0, 1], dtype="int32", ctx=simulated_gpu)
    want = loss(x.as_in_context(mx.cpu()), y.as_in_context(mx.cpu())).asnumpy()
    np.testing.assert_allclose(loss(x, y).asnumpy(), want, rtol=1e-6)
    bound = loss(sym.var("x"), sym.var("y")).bind(simulated_gpu, {"x": x, "y": y})
    np.testing.assert_allclose(bound.forward()[0].asnumpy(), want, rtol=1e-6)


def test_integer_labels_inside_composites_and_saved_graphs(own, loss):
    @composite
    def test_labelled_mean(F, data, label):
        """Mean loss."""
        return F.mean(F.test_labelled(data, label))

    own(test_labelled_mean)
    x, y = nd.array([0.25, 0.5]), nd.array([0, 1], dtype="int8")
    want = loss(x, y).asnumpy().mean()
    x.attach_grad()
    with autograd.record():
        found = test_labelled_mean(x, y)
    found.backward()
    np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-6)
    np.testing.assert_allclose(x.grad.asnumpy(), [-0.5 * np.cos(0.25), -np.exp(-1.0)], rtol=1e-5)
    net = sym.load_json(test_labelled_mean(sym.var("x"), sym.var("y")).tojson())
    np.testing.assert_allclose(net.bind(mx.cpu(), {"x": x, "y": y}).forward()[0].asnumpy(), want, rtol=1e-6)


@pytest.mark.parametrize("label", ["int32", "int64", "uint8", "int8", "bool"])
@pytest.mark.parametrize("data", ["float16", "float32", "float64"])
def test_integer_labels_keep_their_type_in_symbols_of_every_order(loss, label, data):
    x, y = nd.array([0.25, 0.5, 0.75], dtype=data), nd.array([0, 1, 1], dtype=label)
    v, u = mx.sym.Variable("v"), mx.sym.Variable("u")
    s = mx.sym.test_labelled(v, u)
    for _ in range(4):
        s = mx.graph.deriv(s, v)
        want = s.eval(v=x, u=y.astype(data))[0]
        found = s.eval(v=x, u=y)[0]
        bound = s.simple_bind(mx.cpu(), "null", type_dict={"u": label, "v": data}, v=(3,)).forward(v=x, u=y)[0]
        inferred = s.infer_type(u=label, v=data)
        assert inferred[1] == [np.dtype(data).type]
        for result in (found, bound):
            assert result.dtype == np.dtype(data) and result.asnumpy().tolist() == want.asnumpy().tolist()


@pytest.mark.parametrize("how", ["keyword", "place", "computed", "composite", "operator"])
def test_a_recorded_array_is_no_parameter(own, how):
    @elementwise
    def test_scaled(data, *, beta: float = 1.0):
        return data * beta

    @composite
    def test_scaled_inside(F, data, *, beta: float = 1.0):
        return data * beta

    own(test_scaled), own(test_scaled_inside)
    x, b = nd.array([3.0]), nd.array([2.0])
    x.attach_grad(), b.attach_grad()
    calls = {
        "keyword": lambda b: test_scaled(x, beta=b), "place": lambda b: test_scaled(x, b),
        "computed": lambda b: test_scaled(x, beta=b * 1), "composite": lambda b: test_scaled_inside(x, beta=b),
        "operator": lambda b: nd.smooth_l1(x, scalar=b),
    }  # fmt: skip
    with autograd.record():
        with pytest.raises(mx.MXNetError, match=r"parameter (beta|scalar)=.*not recorded: no gradient would reach"):
            calls[how](b)
        for plain in (b.detach(), b.item(), b.asscalar()):
            y = calls["keyword"](plain)
    y.backward()
    assert x.grad.item() == 2
    assert calls["keyword"](b).item() == 6  # nothing is recorded
