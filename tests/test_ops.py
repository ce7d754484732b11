"""Every operator of the registry against its record, and what the registry as a whole promises."""

import numpy as np
import pytest

import mxop as mx
from mxop import dtypes, nd
from mxop.check import cases, check_op, find_record, running
from mxop.graph.lowering import lower_training
from mxop.op import Composite, elementwise, kernel
from mxop.records import record

#: How the names of operators begin that reductions are made of.
PARTS = ("_map_", "_final_", "_combined_", "_second_map_", "_second_")
#: Made by mx.graph.assign alone, which test_computation.py is about, and by the functions of test_control_flow.py.
IN_GRAPHS_ONLY = {"_assign_variable", "_cond", "_foreach", "_loop", "_while_loop"}
OPERATORS = [
    op.name
    for op in mx.op.operators()
    # the first are made when first differentiated; the second are what their parameters say (see test_custom_op.py)
    if not op.name.startswith("_map_")
    and not op.open_inputs
    and op.name not in IN_GRAPHS_ONLY
    and op.module.startswith("mxop.")  # other files of tests define some when they are read
]

#: Hidden operators that cannot be checked by a record, and why.
EXEMPT: dict[str, str] = dict.fromkeys(
    (
        "_draw_key",
        "_uniform_of",
        "_normal_of",
        "_exponential_of",
        "_integers_of",
        "_ranged_of",
        "_dropped",
        "_dropping",
        "_gamma_of",
        "_poisson_of",
        "_mixed_poisson_of",
        "_bits_as",
        "_uniform_from",
        "_normal_from",
        "_exponential_from",
        "_gamma_from",
        "_poisson_from",
        "_negative_binomial_from",
        "_generalized_negative_binomial_from",
        "_unit_from",
        "_unique_zipfian_of",
    ),
    "takes a key or makes one: checked by the operators that are made of it, and in test_random.py",
)


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_holds_its_record(name):
    if name in EXEMPT:
        assert mx.op.namespace_of(name)[0] == "_internal", "only hidden operators may be exempt"
        return
    report = check_op(name)
    assert report["checks"]["values"] > 0
    assert set(report["unchecked"]) == {what for what, n in report["checks"].items() if not n}
    assert all(report["unchecked"].values()), "a check that did not run says why"


@pytest.mark.gpu
@pytest.mark.parametrize("name", OPERATORS)
def test_operator_holds_its_record_on_gpu(name):
    if name not in EXEMPT:
        check_op(name, device="gpu")


def test_exemptions_are_needed():
    assert set(EXEMPT) <= set(OPERATORS)
    assert not [name for name in EXEMPT if find_record(mx.op.get(name)) is not None]


@pytest.mark.parametrize("name", OPERATORS)
def test_gradient_is_defined_or_declared_zero(name):
    """Closure: what is used in a rule has a rule; `check_op` runs them to order 3, here the declaration is held.

    Composites have what they call, so that is looked at, in each of their cases.
    """
    op = mx.op.get(name)
    called = [op]
    if isinstance(op, Composite):
        all_cases = cases.cases(op, find_record(op), np.random.default_rng(0))
        called = [inner for case in all_cases for inner in running.calls_of(case)]
        assert called and not any(isinstance(inner, Composite) and inner._gradient is None for inner in called)
    assert not running.without_gradient(called), "neither a gradient rule nor a statement that it is zero"


def gradient_graph(case):
    """Return the graph of a call and of its gradients, in which composites and rules are what they call; None without any."""
    types = case.codes("float64")
    inputs = [mx.graph.variable(f"in{k}") for k in range(len(types))]
    given = dict(zip(inputs, zip(case.shapes, types, strict=True), strict=True))
    train = bool(case.train or False)
    attrs = case.attrs.training(train)
    call = mx.graph.Node(case.op, attrs, tuple((v, 0) for v in inputs), "call")
    found = case.op.infer_outputs(attrs, list(case.shapes), types)[1]
    heads = [(call, k) for k, t in enumerate(found[: case.op.num_visible_outputs(attrs, len(inputs))]) if t in dtypes.FLOATS]
    wanted = [v for k, v in enumerate(inputs) if types[k] in dtypes.FLOATS and k in case.variables]
    return lower_training(mx.graph.Graph(heads), given, wanted, train).graph if heads and wanted else None


@pytest.mark.parametrize("name", [n for n in OPERATORS if n not in EXEMPT])
def test_what_gradients_call_has_a_gradient(name):
    """Any order: what a rule calls has a rule, or declares zero, and is walked itself; so gradients exist at every order."""
    op = mx.op.get(name)
    for case in cases.cases(op, find_record(op), np.random.default_rng(0)):
        graph = gradient_graph(case)
        called = [node.op for node in graph.nodes if node.op is not None] if graph is not None else []
        assert not running.without_gradient(called)
        given = [o.name for o in called if not o.is_backward and not o.name.startswith(PARTS)]
        assert set(given) <= {*OPERATORS, *IN_GRAPHS_ONLY}


@pytest.mark.parametrize("name", [n for n in OPERATORS if not n.startswith("_")])
def test_public_operators_are_documented(name):
    op = mx.op.get(name)
    assert op.doc.strip(), f"{name} has no documentation"
    assert ">>>" in op.doc, f"{name} has no example"


# ---- operators of one's own ------------------------------------------------------------------------------------------
def test_operator_without_record_fails(own):
    @elementwise(name="test_ops_unrecorded")
    def unrecorded(data):
        return data + 1

    own(unrecorded)
    with pytest.raises(AssertionError, match="test_ops_unrecorded has no test record"):
        check_op("test_ops_unrecorded")


def test_own_operator_is_checked(own):
    @elementwise(name="test_ops_cube", aliases=("test_ops_cube_alias",))
    def cube(data, *, shift: float = 0.0):
        return data * data * data + shift

    own(cube, lambda x, shift=0.0: x**3 + shift, params=[{}, {"shift": 2.0}])
    report = check_op("test_ops_cube_alias")
    assert report["name"] == "test_ops_cube" and report["cases"] == 2
    for what in ("values", "req", "strides", "special", "inference", "gradient", "grad_req"):
        assert report["checks"][what] > 0, what


def test_types_can_be_chosen(own):
    assert check_op("exp", dtypes=["float32", np.float16])["dtypes"] == ["float32", "float16"]


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        (lambda x: x**2 + 1e-5, "values: float64: output 0"),
        (lambda x: np.stack([x, x]), "shape"),
        (lambda x: (x**2, x), "1 outputs, the reference has 2"),
    ],
)
def test_wrong_values_are_found(own, reference, says):
    @elementwise(name="test_ops_wrong")
    def wrong(data):
        return data * data

    own(wrong, reference)
    with pytest.raises(AssertionError, match="operator test_ops_wrong, case 0") as caught:
        check_op("test_ops_wrong")
    assert says in str(caught.value)


def test_wrong_gradient_is_found(own):
    @elementwise(name="test_ops_slope", rule=lambda g, data, out: g * data)
    def slope(data):
        return data * data

    own(slope, np.square)
    with pytest.raises(AssertionError, match="gradient: order 1 of the gradient with respect to input 0"):
        check_op("test_ops_slope")


@pytest.mark.parametrize(("order", "factor"), [(2, "g * g"), (2, "dropped")])
def test_wrong_second_gradient_is_found(own, order, factor):
    """The two bugs that MXNet had: the head gradient squared in ``log``'s, or its gradient dropped."""
    from mxop.op import kernel

    @kernel(name="test_ops_second")
    def second(data):
        """Square, with a hidden backward."""

    @kernel(name="_test_ops_second_backward")
    def backward(head, data):
        """Gradient of the square."""

    for op in (second, backward):
        op.shape(lambda *shapes: shapes[0])
        own(op)

    @second.cpu
    def _(inputs, outputs):
        np.multiply(*[np.asarray(inputs[0])] * 2, out=np.asarray(outputs[0]))

    @backward.cpu
    def _(inputs, outputs):
        np.asarray(outputs[0])[...] = 2 * np.asarray(inputs[0]) * np.asarray(inputs[1])

    @second.gradient
    def _(F, heads, inputs, outputs):
        return [F._test_ops_second_backward(heads[0], inputs[0])]

    @backward.gradient
    def _(F, heads, inputs, outputs):
        head, data = inputs
        if factor == "dropped":
            return [None, 2.0 * F.elemwise_mul(heads[0], head)]
        return [2.0 * F.elemwise_mul(heads[0], data), 2.0 * F.elemwise_mul(heads[0], F.elemwise_mul(head, head))]

    record("test_ops_second", np.square, dtypes="f")
    with pytest.raises(AssertionError, match="order 2 of the gradient"):
        check_op("test_ops_second")


def test_missing_rule_is_found(own):
    @kernel(name="test_ops_no_rule")
    def no_rule(data):
        """Copy without a gradient rule."""

    no_rule.shape(lambda shape: shape)

    @no_rule.cpu
    def _(inputs, outputs):
        np.copyto(np.asarray(outputs[0]), np.asarray(inputs[0]))

    @elementwise(name="test_ops_uses_it")
    def uses_it(data):
        return data * 1.0

    @uses_it.gradient
    def _(F, heads, inputs, outputs):
        return [F.test_ops_no_rule(heads[0])]

    own(no_rule)
    own(uses_it, lambda x: x * 1.0, dtypes="f", order=1)
    with pytest.raises(AssertionError, match="test_ops_no_rule"):
        check_op("test_ops_uses_it")


def test_kernel_that_forgets_strides_is_found(own):
    """A kernel gets contiguous arrays unless it says that it takes any: saying so without doing so is found."""

    @kernel(name="test_ops_flat", strided=True)
    def flat(data):
        """Copy that reads the memory as if it were contiguous."""

    flat.shape(lambda shape: shape)
    flat.gradient(lambda F, heads, inputs, outputs: [heads[0]])

    @flat.cpu
    def _(inputs, outputs):
        a = np.asarray(inputs[0])
        np.asarray(outputs[0])[...] = np.lib.stride_tricks.as_strided(a, a.shape, np.empty(a.shape, a.dtype).strides)

    own(flat, np.copy, dtypes="f", order=1)
    with pytest.raises(AssertionError, match="strides: float32, input 0 transposed"):
        check_op("test_ops_flat")


# ---- promises about families -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_sums_accumulate_wider(dtype):
    """A million ones, and numbers whose sum overflows the type although their mean does not."""
    assert nd.sum(nd.ones((1_000_000,), dtype="float32")).asscalar() == 1e6
    many = nd.full((100_000,), 60000.0, dtype="float16")
    assert nd.mean(many).asscalar() == 60000.0
    tenth = nd.full((1 << 20,), 0.1, dtype=dtype)
    assert abs(nd.mean(tenth).asscalar() / np.dtype(dtype).type(0.1) - 1) < 1e-3


@pytest.mark.parametrize("name", ["relu", "broadcast_maximum", "broadcast_minimum", "max", "min", "sum", "clip"])
@pytest.mark.parametrize("at", [0, 7, 8, 15, 16, 31, 32])
def test_nan_is_kept_in_every_lane(name, at):
    x = np.ones(33, np.float32)
    x[at] = np.nan
    a = nd.array(x)
    if name.startswith("broadcast"):
        for found in (getattr(nd, name)(a, nd.ones((33,))), getattr(nd, name)(nd.ones((33,)), a)):
            assert np.flatnonzero(np.isnan(found.asnumpy())).tolist() == [at]
    elif name == "clip":
        assert np.flatnonzero(np.isnan(nd.clip(a, a_min=0, a_max=2).asnumpy())).tolist() == [at]
    elif name == "relu":
        assert np.flatnonzero(np.isnan(nd.relu(a).asnumpy())).tolist() == [at]
    else:
        assert np.isnan(getattr(nd, name)(a).asscalar())


def test_sizes_do_not_wrap():
    """Inference in 64 bits: shapes whose sizes pass 2**31 and 2**40."""
    op = mx.op.get("broadcast_add")
    shape = (1 << 20, 1 << 20)
    assert op.infer_shape(op.parse({}), [shape, (1, 1 << 20)], [None])[1] == [shape]
    op = mx.op.get("Reshape")
    assert op.infer_shape(op.parse({"shape": (-1,)}), [shape], [None])[1] == [(1 << 40,)]
    with pytest.raises((mx.MXNetError, MemoryError)):
        nd.zeros((1 << 40, 1 << 40))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(8, 5), (21, 300), (3, 1000), (40, 1)])
def test_gradients_of_products_of_many_rows(shape, dtype):
    """Rows are gone through abreast, what is left of them alone; one has a zero, one has two."""
    x = np.random.default_rng(0).uniform(0.9, 1.1, shape)
    x[1, 0] = x[-1, 0] = x[-1, -1] = 0
    a = nd.array(x, dtype=dtype)
    a.attach_grad()
    with mx.autograd.record():
        y = nd.prod(a, axis=1)
    y.backward()
    wanted = np.stack([np.prod(np.delete(x, k, 1), 1) for k in range(shape[1])], 1)
    np.testing.assert_allclose(a.grad.asnumpy(), wanted, 1e-4 if dtype == "float32" else 1e-12)
