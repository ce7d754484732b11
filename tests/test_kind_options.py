"""Each option with each kind: it does what the page of the kinds says, or is refused where it is given."""

import re
from typing import Annotated, Literal

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym
from mxop.op import AnyValue, DType, F, Range, composite, elementwise, kernel, reduction

HERE = re.escape(__file__)
X = nd.array([1.0, 2, 3])


def bound(symbol, is_train=False, **arrays):
    return [o.asnumpy().tolist() for o in symbol.bind(mx.cpu(), arrays).forward(is_train=is_train)]


def definer(kind):
    """Return what makes an operator of a kind, by its function."""
    return {"elementwise": elementwise, "composite": composite, "kernel": kernel}.get(kind) or (
        lambda **options: reduction(("max", "add") if kind == "pair" else "add", **options)
    )


def f(x):
    return x


REFUSED = [
    *(("reduction", option, value) for option, value in (
        ("num_outputs", 2), ("visible_outputs", 1), ("writes", {"x": 1}), ("aux", ("x",)), ("num_args_param", "n"))),
    ("pair", "num_outputs", 2), ("elementwise", "aux", ("x",)), ("composite", "aux", ("x",)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "option", "value"), REFUSED)
def test_what_a_kind_does_not_have(kind, option, value):
    with pytest.raises(mx.MXNetError, match=rf"operator test_option, {HERE}:\d+: @\w+ has no option '{option}'"):
        definer(kind)(name="test_option", **{option: value})(f)


@pytest.mark.parametrize("kind", ["elementwise", "composite", "kernel"])
def test_options_that_name_what_is_not_there(kind):
    for options, says in (
        ({"num_args_param": "n"}, "num_args_param='n'.*no parameter"),
        ({"shape_only": (3,)}, "shape_only=.*1 input"),
    ):
        function = (lambda F, x: x) if kind == "composite" else f
        with pytest.raises(mx.MXNetError, match=f"test_option, .*: {says}"):
            definer(kind)(name="test_option", **options)(function)


def test_outputs_of_a_formula_are_those_that_it_has():
    with pytest.raises(mx.MXNetError, match=r"test_option, .*: num_outputs=3, but its function returns 2"):
        elementwise(name="test_option", num_outputs=3)(lambda x: (x, x * 2))


def test_a_formula_shows_its_first_outputs(own):
    op = own(elementwise(name="test_option", visible_outputs=1)(lambda x: (x * 2, x * 3)))
    out = nd.zeros(3)
    x = X.copy()
    x.attach_grad()
    with autograd.record():
        y = op(x)
    y.backward()
    assert op(X, out=out) is out
    for found in (y, op(X), out, sym.test_option(sym.var("x")).eval(x=X)[0]):
        assert found.asnumpy().tolist() == [2, 4, 6]
    assert x.grad.asnumpy().tolist() == [2, 2, 2]


@pytest.mark.parametrize("combine", ["add", ("max", "add")])
@pytest.mark.parametrize("inputs", [1, 2])
def test_a_reduction_is_told_the_mode(own, combine, inputs):
    def element(x, is_train):
        x = x * 2 if is_train else x
        return (x, lambda largest: x - 0 * largest) if combine != "add" else x

    if inputs == 1:
        op = own(reduction(combine, name="test_option")(lambda x, *, is_train: element(x, is_train)))
    else:
        op = own(reduction(combine, name="test_option")(lambda x, y, *, is_train: element(x + 0 * y, is_train)))
    arrays = [X] * inputs
    names = "xy"[:inputs]
    net = sym.load_json(op(*map(sym.var, names)).tojson())
    for training, want in ((False, 6), (True, 12), (False, 6)):
        with autograd.record(train_mode=training):
            assert op(*arrays).item() == want
        assert bound(net, training, **dict(zip(names, arrays, strict=True))) == [[want]]
    x = X.copy()
    x.attach_grad()
    with autograd.record():
        y = op(*[x, *arrays[1:]])
    y.backward()
    assert x.grad.asnumpy().tolist() == [2, 2, 2]


@pytest.mark.parametrize("value", [{"a": 1}, [1, 2], np.ones(2)])
def test_a_parameter_of_any_kind_is_one_that_can_be_told_from_others(own, value):

    @kernel(name="test_option")
    def op(x, *, v: AnyValue = None):
        """Takes anything."""

    own(op)
    op.shape(lambda x, *, v: x)
    op.both(lambda xp, inputs, outputs, *, v: outputs[0].__setitem__(..., inputs[0]))
    assert op(X, v=(1, "b")).asnumpy().tolist() == [1, 2, 3]
    with pytest.raises(mx.MXNetError, match=r"operator test_option: parameter v=.*a hashable value"):
        op(X, v=value)


def test_what_is_said_to_have_no_gradient_says_so(own):
    op = own(elementwise(name="test_option", differentiable=False)(lambda x: x * 2))
    x = X.copy()
    x.attach_grad()
    with autograd.record():
        y = op(x)
    with pytest.raises(mx.MXNetError, match="operator test_option is not differentiable: its definition says so"):
        y.backward()


def test_what_folds_takes_any_number_of_inputs(own):
    def largest(*args):
        found = args[0]
        for arg in args[1:]:
            found = F.maximum(found, arg)
        return found

    op = own(elementwise(name="test_option", folds=True)(largest))
    arrays = [nd.array([i, -i]) for i in range(600)]
    arrays[-1].attach_grad()
    with autograd.record():
        y = op(*arrays)
    y.backward()
    variables = [sym.var(f"v{i}") for i in range(600)]
    assert y.asnumpy().tolist() == bound(op(*variables), **{f"v{i}": a for i, a in enumerate(arrays)})[0] == [599, 0]
    assert arrays[-1].grad.asnumpy().tolist() == [1, 0]
    with pytest.raises(mx.MXNetError, match=r"test_other.*folds=True is for a function of"):
        own(elementwise(name="test_other", folds=True)(lambda a, b: a + b))
    plain = own(elementwise(name="test_other")(largest))
    with pytest.raises(mx.MXNetError, match="300 inputs and 1 outputs; at most 240"):
        plain(*arrays[:300])


# ---- memory -------------------------------------------------------------------------------------------------------------
VIEWS = {
    "beyond": (lambda shape, strides: ((shape[0] + 1,), strides, 0), r"reads elements 0 to 3.*are 0 to 2"),
    "before": (lambda shape, strides: (shape, (-strides[0],), 0), r"reads elements -2 to 0.*are 0 to 2"),
    "with an offset": (lambda shape, strides: (shape, strides, 1), r"reads elements 1 to 3"),
    "of other strides": (lambda shape, strides: (shape, (2,), 0), r"reads elements 0 to 4"),
    "of too few strides": (lambda shape, strides: (shape, (), 0), "expected a shape, as many strides"),
    "of no pair": (lambda shape, strides: shape, "its view rule: not enough values"),
    "of half a stride": (lambda shape, strides: (shape, (0.5,), 0), "its view rule: 'float' object"),
    "of a negative size": (lambda shape, strides: ((-1,), strides, 0), r"its view rule returned \(-1,\)"),
}


@pytest.mark.parametrize("what", VIEWS)
def test_a_view_lies_within_its_input(own, what):
    make, says = VIEWS[what]
    op = own(kernel(name="test_option")(lambda x: None))
    op.view(make)
    for run in (lambda: op(X), lambda: op(sym.var("x")).eval(x=X), lambda: op((X * 1)[::-1])):
        with pytest.raises(mx.MXNetError, match=rf"operator test_option, {HERE}:\d+: {says}|test_option.*{says}"):
            run()


def test_views_that_lie_within(own):
    op = own(kernel(name="test_option")(lambda x: None))
    op.view(lambda shape, strides: ((2, *shape), (0, -strides[0]), (shape[0] - 1) * strides[0]))
    for x in (X, (X * 1)[::-1], nd.empty((0,))):
        want = np.stack([x.asnumpy()[::-1]] * 2)
        assert op(x).asnumpy().tolist() == want.tolist() == op(sym.var("x")).eval(x=x)[0].asnumpy().tolist()


STEPS = {
    "a move": lambda steps, inputs, outputs: steps.move(inputs[0], outputs[0]),
    "a call": lambda steps, inputs, outputs: steps.call("exp", {}, inputs, outputs),
    "a call of two": lambda steps, inputs, outputs: steps.call("broadcast_add", {}, inputs, outputs),
}


@pytest.mark.parametrize("what", STEPS)
@pytest.mark.parametrize("shape", [(2,), (4,), (3, 1), ()])
def test_steps_of_other_shapes(own, shape, what):
    op = own(kernel(name="test_option")(lambda x: None))
    op.shape(lambda x: shape)
    op.cpu(prepared=True)(STEPS[what])
    with pytest.raises(mx.MXNetError, match=rf"(steps\.|broadcast_add takes 2).*in operator test_option, {HERE}:\d+"):
        op(X)


def test_steps_that_fit(own):
    def run(steps, inputs, outputs):
        between = steps.temporary(inputs[0].shape, inputs[0].dtype_code)
        steps.call("exp", {}, inputs, [between])
        steps.move(between, outputs[0])

    op = own(kernel(name="test_option")(lambda x: None))
    op.shape(lambda x: x)
    op.cpu(prepared=True)(run)
    np.testing.assert_allclose(op(X).asnumpy(), np.exp(X.asnumpy()), rtol=1e-6)


# ---- rules that are wrong -----------------------------------------------------------------------------------------------
def of_kernel(shape=lambda x: x, **options):
    op = kernel(name="test_option", **options)(f)
    op.shape(shape)
    op.both(lambda xp, inputs, outputs: [o.__setitem__(..., 1) for o in outputs].clear())
    return op


@pytest.mark.parametrize("ask", [lambda op: op(X), lambda op: op(sym.var("x")).eval(x=X)])
def test_an_infer_rule_that_says_something_else_of_inputs(own, ask):
    op = own(of_kernel())
    op.infer(lambda ins, outs: ([(7,)], outs))
    with pytest.raises(mx.MXNetError, match=r"test_option.*(have shapes|expected) .*\(7,\)"):
        ask(op)


@pytest.mark.parametrize("shape", [(9,), (2,), (3, 1)])
def test_an_infer_rule_of_a_composite_that_says_something_else_of_outputs(own, shape):
    op = own(composite(name="test_option")(lambda F, x: F.exp(x)))
    op.infer(lambda ins, outs: (ins, [shape]))
    for ask in (lambda: op(sym.var("x")).infer_shape(x=(3,)), lambda: op(sym.var("x")).eval(x=X)):
        with pytest.raises(mx.MXNetError, match="test_option"):
            ask()


def test_a_condition_that_raises(own):
    op = own(of_kernel())
    op.cpu(when=lambda inputs, outputs: inputs[5])(lambda inputs, outputs: None)
    with pytest.raises(mx.MXNetError, match=rf"test_option: the condition of a CPU function: .*{HERE}:\d+"):
        op(X)


@pytest.mark.parametrize("count", ["2", 2.0, 0, None])
def test_numbers_of_outputs_that_are_none(own, count):
    def test_option(x, *, n: int = 2):
        """Of as many outputs as a function says."""

    with pytest.raises(mx.MXNetError, match=rf"test_option, {HERE}:\d+ has .* outputs.*from 1 on"):
        op = own(kernel(num_outputs=lambda *, n: count)(test_option))
        op(X)


@pytest.mark.parametrize("option", [
    {"active_inputs": lambda: ("z",)}, {"active_inputs": lambda: "x"}, {"active_inputs": lambda: None},
    {"active_inputs": lambda: ("x", "x")}, {"visible_outputs": 3}, {"aux": ("z",)},
])  # fmt: skip
def test_inputs_and_outputs_that_are_not_there(option):
    with pytest.raises(mx.MXNetError, match=rf"test_option, {HERE}:\d+: {next(iter(option))}"):
        kernel(name="test_option", **option)(f)


def test_bounds_of_what_is_no_number():
    for kind, default in ((str, "a"), (tuple[int, ...], (1,)), (DType, "float32"), (Literal["a", "b"], "a")):

        def test_option(x, *, how: Annotated[kind, Range(0, 1)] = default):
            return x

        with pytest.raises(mx.MXNetError, match=r"test_option.*'how' has bounds.*not a number"):
            elementwise(test_option)


@pytest.mark.parametrize("kind", [Annotated[int, Range(1, 3)] | None, Annotated[int | None, Range(1, 3)]])
def test_bounds_of_a_number_or_none(own, kind):
    def test_option(F, x, *, n: kind = None):
        return x if n is None else x * n

    op = own(composite(test_option))
    assert [op(X, n=n).asnumpy()[0] for n in (None, 3)] == [1, 3]
    with pytest.raises(mx.MXNetError, match="n=4 is not allowed; expected a value from 1 to 3 or None"):
        op(X, n=4)


def test_formulas_that_are_too_large(own):
    with pytest.raises(mx.MXNetError, match="test_option: 1 inputs and 300 outputs"):
        own(elementwise(name="test_option")(lambda x: tuple(x * k for k in range(300))))(X)

    def long(x):
        for _ in range(3000):
            x = F.sin(x)
        return x

    op = own(elementwise(name="test_option_long")(long))
    x = X.copy()
    x.attach_grad()
    with autograd.record():
        y = op(x)
    with pytest.raises(mx.MXNetError, match="_backward_test_option_long: its formula is too long"):
        y.backward()


@pytest.mark.parametrize("form", [list, tuple])
def test_a_call_returns_the_out_that_it_was_given(form):
    given = form([nd.zeros((2,))])
    weights = form([nd.ones((2,))])
    assert nd.exp(nd.zeros((2,)), out=given) is given and given[0].asnumpy().tolist() == [1, 1]
    assert nd.concat(nd.ones((1,)), nd.ones((1,)), dim=0, out=given) is given
    assert nd.multi_sgd_update(weights[0], nd.ones((2,)), lrs=(0.5,), wds=(0,), num_weights=1, out=weights) is weights
    assert weights[0].asnumpy().tolist() == [0.5, 0.5]
    halves = form([nd.zeros((1,)), nd.zeros((1,))])
    assert nd.split(nd.array([1, 2]), num_outputs=2, axis=0, out=halves) is halves


# ---- types in both directions, names of outputs, heads that are absent -----
def counted():
    """Return a kernel of data of any type and counts, whose results are of the data's type and int64."""

    @kernel(name="test_option", num_outputs=2, output_names=("kept", "how_often"), absent_heads=True, shape_only=(1,))
    def op(data, counts):
        """Each element, and its count as int64."""

    op.shape(lambda data, counts: [data, counts])

    @op.infer_types
    def _(ins, outs):
        data = ins[0] if ins[0] != mx.dtypes.UNKNOWN else outs[0]
        return [data, mx.dtypes.INT32 if ins[1] == mx.dtypes.UNKNOWN else ins[1]], [data, mx.dtypes.INT64]

    @op.both
    def _(xp, inputs, outputs):
        outputs[0][...], outputs[1][...] = inputs

    @op.gradient
    def _(F, heads, inputs, outputs):
        return [heads[0] if heads[1] is None else F.zeros_like(heads[0]), None]

    return op


def test_types_that_a_rule_completes_in_both_directions():
    op = counted()
    data, counts = sym.var("data"), sym.var("counts")
    both = op(data, counts, name="c")
    assert both.list_outputs() == ["c_kept", "c_how_often"]
    assert both.infer_type(data="float64") == ([np.float64, np.int32], [np.float64, np.int64], [])
    from_result = sym.broadcast_add(op(data, counts)[0], sym.var("other", dtype="float64"))
    assert dict(zip(from_result.list_arguments(), from_result.infer_type()[0], strict=True))["data"] is np.float64
    kept, often = op(X, nd.array([3, 1, 2], dtype="int32"))
    assert kept.dtype is np.float32 and often.dtype is np.int64 and often.asnumpy().tolist() == [3, 1, 2]


def test_heads_that_are_absent_are_told_to_a_rule():
    x, counts = nd.array([1.0, 2]), nd.array([3, 1], dtype="int32")
    x.attach_grad()
    with autograd.record():
        kept, _ = counted()(x, counts)
    kept.backward()
    assert x.grad.asnumpy().tolist() == [1, 1]


@pytest.mark.parametrize("rule, says", [
    (lambda ins, outs: ins, "returned .*; expected a pair"),
    (lambda ins, outs: (ins, outs[0]), "returned .*; expected a pair"),
    (lambda ins, outs: (ins, ["no type"]), "no type"),
    (lambda ins, outs: ([], outs), "returned 0 types"),
])  # fmt: skip
def test_rules_of_types_that_are_wrong(rule, says):
    op = counted()
    op.infer_types(rule)
    with pytest.raises(mx.MXNetError, match=f"operator test_option.*rule of types.*{says}"):
        op(X, X)


def test_names_of_fewer_outputs_than_there_are():
    op = kernel(name="test_option", num_outputs=2, output_names=("one",))(f)
    with pytest.raises(mx.MXNetError, match=r"operator test_option.*output_names gave \('one',\) for 2 outputs"):
        op(sym.var("x")).list_outputs()


def test_inplace_says_nothing_any_more():
    with pytest.warns(FutureWarning, match="inplace= has no effect"):
        op = elementwise(name="test_option", inplace=((0, 0),))(lambda x: x + 1)
    assert op(X).asnumpy().tolist() == [2, 3, 4]
