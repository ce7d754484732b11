"""Registration, lookup, parameters: what ``mx.op`` promises."""

from typing import Annotated, Literal

import numpy as np
import pytest

import mxop as mx
from mxop import op
from mxop.op import DType, Range, Scalar, Shape, elementwise, reduction


def test_names_and_namespaces():
    assert mx.nd.contrib.quadratic.op is mx.nd.quadratic.op is op.get("_contrib_quadratic")
    assert op.namespace_of("_linalg_gemm") == ("linalg", "gemm")
    assert op.get("_Plus") is op.get("elemwise_add")
    assert mx.nd.op.exp.op is mx.nd.exp.op
    assert "_backward_exp" in op.names()
    assert "_backward_exp" not in op.names(hidden=False)
    backward = op.get("_backward_quadratic")
    assert backward.is_backward
    assert op.get("_backward__backward_sin").is_backward


def test_unknown_names_are_answered_with_the_closest():
    with pytest.raises(mx.MXNetError, match="did you mean 'sigmoid'"):
        op.get("sigmod")
    with pytest.raises(AttributeError, match="did you mean 'tanh'"):
        mx.nd.tanhh  # noqa: B018
    with pytest.raises(mx.MXNetError, match=r"no parameter 'alpha'.*a, b, c"):
        mx.nd.quadratic(mx.nd.ones((2,)), alpha=1)


def test_an_operator_without_parameters_ignores_those_of_programs():
    x, s = mx.nd.array([0, 1]), mx.sym.Variable("x")
    with pytest.warns(UserWarning, match="operator log has no parameters; axis=1 is ignored"):
        assert mx.nd.log(x + 1, axis=1)[0].item() == 0
    with pytest.warns(UserWarning, match="operator exp has no parameters; axis=-1 is ignored"):
        y = mx.sym.exp(s, axis=-1, name="e")
    assert y.list_attr() == {"axis": "-1"}  # as MXNet's files have it
    again = mx.sym.load_json(y.tojson())
    assert again.tojson() == y.tojson() and again.eval(x=x)[0][0].item() == 1
    for call in (lambda: mx.nd.exp(x, scale=x), lambda: mx.nd.exp(x, is_train=True), lambda: mx.sym.exp(s, scale=s)):
        with pytest.raises(mx.MXNetError, match=r"operator exp has no (parameter|input) '(scale|is_train)'"):
            call()


def test_an_operator_of_ones_own_refuses_them(scratch):
    @elementwise
    def scratch_plain(data):
        """The data, doubled."""
        return data * 2

    with pytest.raises(mx.MXNetError, match="no parameter 'scale'"):
        mx.nd.scratch_plain(mx.nd.ones((2,)), scale=3)


def test_a_users_operator_exists_everywhere(scratch):
    @elementwise
    def scratch_cube(data, *, shift: float = 0.0):
        """Evaluate ``data**3 + shift``."""
        return data**3 + shift

    x = mx.nd.array([1, 2])
    assert mx.nd.scratch_cube(x, shift=1).asnumpy().tolist() == [2.0, 9.0]
    assert mx.sym.scratch_cube(mx.sym.Variable("x")).eval(x=x)[0].asnumpy().tolist() == [1.0, 8.0]
    assert mx.nd.scratch_cube.__doc__.startswith("Evaluate")
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.scratch_cube(x)
    y.backward()
    assert x.grad.asnumpy().tolist() == [3.0, 12.0]


def test_a_taken_name_needs_override(scratch):
    with pytest.raises(mx.MXNetError, match="taken"):

        @elementwise(name="exp")
        def other(data):
            return data + 1

    assert mx.nd.exp(mx.nd.zeros((1,))).asscalar() == 1

    @elementwise(name="scratch_twice")
    def first(data):
        return data + 1

    @elementwise(name="scratch_twice", override=True)
    def second(data):
        return data + 2

    assert mx.nd.scratch_twice(mx.nd.zeros((1,))).asscalar() == 2


def test_an_equal_definition_takes_over():
    old = op.get("_contrib_quadratic")
    source = """def quadratic(data, *, a: float = 0.0, b: float = 0.0, c: float = 0.0):
    'Doc.'
    return data * (a * data + b) + c
"""
    scope = {"__name__": "users_module"}
    exec(source, scope)
    try:
        new = elementwise(scope["quadratic"])
        assert op.get("quadratic") is op.get("_contrib_quadratic") is new
        assert mx.nd.contrib.quadratic(mx.nd.array([[1, 2], [3, 4]]), a=1, b=2, c=3).asnumpy().tolist() == [
            [6, 11],
            [18, 27],
        ]
    finally:
        op.register(old, override=True)


def test_aliases(scratch):
    @elementwise(name="scratch_named", aliases=("scratch_other",))
    def named(data):
        return data

    op.alias("scratch_named", "_contrib_scratch_third")
    assert mx.nd.scratch_other.op is mx.nd.contrib.scratch_third.op is op.get("scratch_named")
    with pytest.raises(mx.MXNetError, match="taken"):
        op.alias("scratch_named", "exp")


def typed(data, *, i: int = 3, f: float = 0.5, b: bool = True, s: str = "x", e: Literal["p", "q"] = "p", t: Shape = (1, 2),
          d: DType = "float32", o: int | None = None, r: Annotated[int, Range(1, 8)] = 2, n: Scalar = 1.0):  # fmt: skip
    """All kinds of parameters."""
    return data


@pytest.fixture
def spec():
    elementwise(typed)
    yield op.get("typed").spec
    op.unregister("typed")


def test_parameters_parse_values_and_strings(spec):
    assert dict(spec.parse({})) == {
        "i": 3, "f": 0.5, "b": True, "s": "x", "e": "p", "t": (1, 2), "d": 0, "o": None, "r": 2, "n": 1.0,
    }  # fmt: skip
    found = spec.parse({"i": "4", "f": "2", "b": "False", "e": "q", "t": "(3, 4)", "d": "float16", "o": "None", "r": "8"})
    assert dict(found)["i"] == 4
    assert found.f == 2.0
    assert found.b is False
    assert found.t == (3, 4)
    assert found.d == 2
    assert found.o is None
    assert spec.parse({"t": 5}).t == (5,)
    assert spec.parse({"t": [1, np.int64(2)]}).t == (1, 2)
    assert spec.parse({"d": np.int64}).d == 6
    assert spec.to_strings(found, {"t": 0, "d": 0, "b": 0}) == {"t": "(3, 4)", "d": "float16", "b": "False"}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"i": "x"}, "i='x'.*an integer"),
        ({"i": 1.5}, "an integer"),
        ({"f": "abc"}, "a number"),
        ({"b": "maybe"}, "True or False"),
        ({"e": "r"}, "'p', 'q'"),
        ({"t": "(1, 'a')"}, "tuple of integers"),
        ({"t": "__import__('os')"}, "tuple of integers"),
        ({"d": "float99"}, "float16"),
        ({"r": 9}, "from 1 to 8"),
        ({"i": None}, "i=None"),
        ({"zzz": 1}, "no parameter 'zzz'"),
    ],
)
def test_bad_parameters_name_operator_value_and_what_is_allowed(spec, given, says):
    with pytest.raises(mx.MXNetError, match=f"typed.*{says}"):
        spec.parse(given)


def test_a_parameter_without_type_is_refused():
    with pytest.raises(mx.MXNetError, match="needs a type annotation"):

        @elementwise
        def scratch_untyped(data, *, a=1):
            return data

    assert op.find("scratch_untyped") is None


def test_info_has_every_registration_attribute():
    found = op.info("quadratic")
    assert found["parameters"] == dict.fromkeys("abc", "float, optional, default=0.0")
    assert found["FListInputNames"] == ["data"]
    assert found["FGradient"] == {"defined": True, "operator": "_backward__contrib_quadratic", "uses": "in"}
    assert found["TIsBackward"] is False
    assert {"mx.nd.contrib.quadratic", "mx.sym.contrib.quadratic", "mx.nd.quadratic"} <= set(found["functions"])
    assert op.info("_backward_quadratic")["TIsBackward"] is True
    for name in op.names(hidden=False):
        assert op.describe(name)


def test_a_users_reduction(scratch):
    @reduction("add")
    def scratch_cubes(data):
        """Sum of cubes."""
        return data**3

    x = mx.nd.array([[1, 2], [3, 4]])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.scratch_cubes(x, axis=1)
    assert y.asnumpy().tolist() == [9.0, 91.0]
    y.backward()
    assert x.grad.asnumpy().tolist() == [[3.0, 12.0], [27.0, 48.0]]


def test_every_rule_leads_to_rules():
    """Whatever a gradient rule calls has a rule itself, or says that its gradient is zero."""
    own = [o for o in op.operators() if o.module.startswith("mxop.")]  # other files of tests define some when they are read
    without = [o.name for o in own if not o.differentiable]
    constants = ("_arange", "_zeros", "_ones", "_eye", "_full", "shape_array", "size_array")
    allowed = {n for n in without if n.startswith(constants)}
    assert set(without) - allowed - {"_linspace", "_contrib_arange_like"} == set(), without
