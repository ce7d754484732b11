"""Rules of authors that lead from inputs to outputs, and what follows for the other way; formulas whose types differ."""

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym
from mxop.op import F, Range, composite, elementwise, kernel


def kernel_of(own, shape, dtype=None, count=1):
    op = own(kernel(name="test_two_way", num_outputs=count)(lambda data, other: None))
    op.shape(shape)
    if dtype is not None:
        op.dtype(dtype)
    return op


# ---- shapes -------------------------------------------------------------------------------------------------------------
def test_an_output_made_like_an_input_says_its_shape(own):
    op = kernel_of(own, lambda data, other: [other, data], count=2)
    net = op(sym.var("a"), sym.var("b"))
    assert op.infer_shape(op.parse({}), [None, (2, None)], [(None, 5), (4,)]) == ([(4,), (2, 5)], [(2, 5), (4,)])
    with pytest.raises(mx.MXNetError, match=r"test_two_way.*other has shape \(2,\) but output0 has shape \(3,\)"):
        op.infer_shape(op.parse({}), [None, (2,)], [(3,), None])
    assert net.infer_shape(a=(4,), b=(2, 5))[1] == [(2, 5), (4,)]


LOOKING = {
    "a part": lambda data, other: data[:-1],
    "all sizes": lambda data, other: (*data,),
    "its truth": lambda data, other: data or other,
    "equality": lambda data, other: data if data == other else other,
    "its length": lambda data, other: (len(data),),
}


@pytest.mark.parametrize("shape", LOOKING.values(), ids=LOOKING)
def test_a_rule_that_looks_at_a_shape_says_nothing_of_it(own, shape):
    op = kernel_of(own, shape)
    assert op.infer_shape(op.parse({}), [None, (2,)], [(2,)])[0] == [None, (2,)]


@pytest.mark.parametrize("kind", ["kernel", "composite"])
def test_an_infer_rule_does_not_decide_against_what_is_known(own, kind):
    if kind == "kernel":
        op = kernel_of(own, lambda data, other: data)
    else:
        op = own(composite(name="test_two_way")(lambda F, data, other: data + other))
    for rule in (lambda ins, outs: (ins, outs), lambda ins, outs: (ins, [ins[0]])):
        op.infer(rule)
        with pytest.raises(mx.MXNetError, match=r"(test_two_way|_plus)"):
            op.infer_shape(op.parse({}), [(2,), (2,)], [(3,)])


@pytest.mark.parametrize("found", [None, [[(2,)], [(2,)]], [(2,), (2,)], ([(2,), (2,)], (2,)), ([(2,), 2], [None]),
                                   ([(2,), (-2,)], [None]), ([(2,), (2.5,)], [None])])  # fmt: skip
@pytest.mark.parametrize("kind", ["kernel", "composite"])
def test_an_infer_rule_that_returns_no_shapes(own, found, kind):
    if kind == "kernel":
        op = kernel_of(own, lambda data, other: data)
    else:
        op = own(composite(name="test_two_way")(lambda F, data, other: data + other))
    op.infer(lambda ins, outs: found)
    with pytest.raises(mx.MXNetError, match=r"operator test_two_way, .*: its infer rule returned"):
        op(sym.var("a"), sym.var("b")).infer_shape(a=(2,))


# ---- types --------------------------------------------------------------------------------------------------------------
def test_types_of_inputs_follow_where_one_fits(own):
    kernel_of(own, lambda data, other: [data, data], lambda data, other: [data, "int64"], count=2)
    net = sym.test_two_way(sym.var("a"), sym.var("b"))
    op = mx.op.get("test_two_way")
    f16, i64 = mx.dtypes.FLOAT16, mx.dtypes.INT64
    assert op.infer_type(op.parse({}), [-1, -1], [f16, i64]) == ([f16, -1], [f16, i64])
    assert op.infer_type(op.parse({}), [-1, -1], [-1, i64])[0] == [-1, -1]
    assert net.infer_type(a="float64", b="int8")[1] == [np.float64, np.int64]


def test_types_of_a_composite_that_asks_for_them(own):
    @composite
    def test_two_way(F, data, label):
        """A product with labels of any type."""
        return data * F.cast(label, dtype=data.dtype)

    op, f64, i8 = own(test_two_way), mx.dtypes.FLOAT64, mx.dtypes.INT8
    op.infer_shape(op.parse({}), [(2,), (2,)], [None])  # shapes come first, as in graphs
    assert op.infer_type(op.parse({}), [-1, i8], [f64]) == ([f64, i8], [f64])


# ---- formulas whose types differ ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("types", [("float32", "float64"), ("float64", "float16"), ("float16", "float32")])
@pytest.mark.parametrize("bound", [False, True])
def test_a_formula_of_several_types_has_a_gradient(own, types, bound):
    """Each gradient has its input's type, at every order."""

    @elementwise(broadcast=True, out_dtype=lambda data, scale: data)
    def test_two_way(data, scale):
        """A product of the data's type."""
        return data * scale * scale

    own(test_two_way)
    x, s = np.arange(1.0, 7).reshape(2, 3), np.array([0.5, 2.0, 1.5])
    given = [nd.array(x, dtype=types[0]), nd.array(s, dtype=types[1])]
    if bound:
        variables = [sym.var("x"), sym.var("s")]
        net = test_two_way(*variables)
        first = [mx.graph.deriv(net, v) for v in variables]
        wanted = sym.Group([*first, *(mx.graph.deriv(first[1], v) for v in variables)])
        found = wanted.bind(mx.cpu(), dict(zip("xs", given, strict=True))).forward()
    else:
        for a in given:
            a.attach_grad()
        with autograd.record():
            found = autograd.grad(test_two_way(*given), given, create_graph=True)
        found[1].backward()
        found = [*found, *(a.grad for a in given)]
    want = [np.tile(s * s, (2, 1)), (2 * x * s).sum(0), np.tile(2 * s, (2, 1)), 2 * x.sum(0)]
    for got, expected, kind in zip(found, want, types * 2, strict=True):
        assert got.dtype == np.dtype(kind)
        np.testing.assert_allclose(got.asnumpy(), expected, rtol=1e-6)


def test_a_formula_of_another_type_has_a_gradient(own):
    @elementwise(out_dtype=lambda data: "float64")
    def test_two_way(data):
        """A square, converted to float64."""
        return data * data

    own(test_two_way, np.square, returns="float64", dtypes="f", unchecked={
        "types back": "every type gives float64", "special": "computed in float32"})  # fmt: skip
    mx.test_utils.check_op("test_two_way", orders=2)
    x = nd.array([1e15])
    x.attach_grad()
    with autograd.record():
        y = test_two_way(x)
    y.backward()
    assert y.dtype == np.float64 and x.grad.dtype == np.float32 and x.grad.item() == np.float32(2e15)


# ---- what else the page's readers met -----------------------------------------------------------------------------------
@pytest.mark.parametrize("bounds", [(1, None), (None, 8), ("1", 2), (3, 1)])
def test_bounds_that_are_none(bounds):
    with pytest.raises(mx.MXNetError, match=r"Range\(.*expected two numbers"):
        Range(*bounds)


def test_a_formula_without_gradient_needs_no_other_word(own):
    @elementwise(differentiable=False)
    def test_two_way(data):
        """Signs."""
        return F.sign(data)

    own(test_two_way, np.sign, dtypes="f")
    assert mx.test_utils.check_op("test_two_way")["unchecked"]["gradient"] == "it says that it has no gradient"


def test_labels_meet_no_infinities(own):
    @elementwise(integers=("label",))
    def test_two_way(data, label):
        """A signed margin."""
        return (2 * label - 1) * data

    own(test_two_way, lambda x, y: (2 * y - 1) * x, input_types={1: "int32"}, domain=((-1, 1), (0, 1)), grad_inputs=(0,),
        dtypes="f")  # fmt: skip
    mx.test_utils.check_op("test_two_way")
