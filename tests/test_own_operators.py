"""Writing an operator of one's own: how it is called, what a wrong definition or formula says, pickling."""

import copy
import math
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mxop as mx
from mxop import op
from mxop.op import F, composite, elementwise, kernel, reduction

HERE = Path(__file__).name


pytestmark = pytest.mark.usefixtures("scratch")


@pytest.fixture
def swish():
    @elementwise(name="own_swish")
    def swish(data, *, beta: float = 1.0):
        return data * F.sigmoid(beta * data)

    return swish


def reference(x, beta=1.0):
    return x / (1 + np.exp(-beta * x))


X = np.array([-1.0, 0.5, 2.0])


# ---- calling --------------------------------------------------------------------------------------------------------
def test_the_definition_is_a_function_of_arrays(swish):
    x = mx.nd.array(X, dtype="float64")
    for found in (swish(x, beta=0.5), swish(x, 0.5), swish(data=x, beta=0.5)):
        np.testing.assert_allclose(found.asnumpy(), reference(X, 0.5), rtol=1e-12)
    out = mx.nd.zeros(3, dtype="float64")
    assert swish(x, out=out) is out
    np.testing.assert_allclose(out.asnumpy(), reference(X), rtol=1e-12)
    with pytest.raises(mx.MXNetError, match="no parameter 'bta'"):
        swish(x, bta=1)
    with pytest.raises(mx.MXNetError, match="must be an NDArray"):
        swish(X)


def test_several_outputs_may_overlap_an_input_that_lies_otherwise():
    @elementwise(name="own_sum_and_difference", num_outputs=2)
    def sum_and_difference(a, b):
        return a + b, a - b

    memory = mx.nd.arange(6, dtype="float64")
    a, b = memory[:4], mx.nd.ones(4, dtype="float64")
    first, second = memory[1:5], mx.nd.zeros(4, dtype="float64")
    sum_and_difference(a, b, out=[first, second])
    assert first.asnumpy().tolist() == [1, 2, 3, 4] and second.asnumpy().tolist() == [-1, 0, 1, 2]


def test_the_definition_is_a_function_of_symbols(swish):
    x = mx.sym.Variable("x")
    for net in (swish(x, beta=0.5), swish(data=x, beta=0.5)):
        assert isinstance(net, mx.Symbol) and net.list_arguments() == ["x"]
        np.testing.assert_allclose(net.eval(x=mx.nd.array(X))[0].asnumpy(), reference(X, 0.5), rtol=1e-5)
    assert mx.sym.load_json(swish(x, beta=0.5, name="s").tojson()).list_outputs() == ["s_output"]
    with pytest.raises(mx.MXNetError, match="must be a Symbol"):

        @elementwise(name="own_two")
        def two(lhs, rhs):
            return lhs + rhs

        two(x, mx.nd.ones(3))


def test_the_definition_takes_lists_and_tensors_with_axes(swish):
    @elementwise(name="own_total")
    def total(*args):
        return sum(args[1:], args[0])

    x = mx.nd.array(X)
    assert total([x, x]).asnumpy().tolist() == (2 * x).asnumpy().tolist()
    assert isinstance(total([mx.sym.var("a"), mx.sym.var("b")]), mx.Symbol)
    width = mx.axes.make_axis(3, name="W")
    named = swish(mx.axes.tensor(x, [width]))
    assert named.axes == mx.axes.make_axes([width])
    np.testing.assert_allclose(named.asnumpy(), reference(X), rtol=1e-5)


def test_the_definition_is_part_of_another_formula(swish):
    @elementwise(name="own_outer")
    def outer(data, *, gain: float = 2.0):
        return swish(gain * data, beta=gain) + swish(data)

    x = mx.nd.array(X, dtype="float64")
    x.attach_grad()
    with mx.autograd.record():
        y = outer(x, gain=3.0)
    y.backward()
    np.testing.assert_allclose(y.asnumpy(), reference(3 * X, 3.0) + reference(X), rtol=1e-12)
    step = 1e-6
    slope = [reference(3 * v, 3.0) + reference(v) for v in (X + step, X - step)]
    np.testing.assert_allclose(x.grad.asnumpy(), (slope[0] - slope[1]) / (2 * step), rtol=1e-6)
    assert op.get("own_outer").formula(op.get("own_outer").parse({}), 1).params == ("gain",)


def test_a_formula_cannot_hold_what_would_lose_its_own_rule():
    @elementwise(name="own_straight", rule=lambda g, data, out: g)
    def straight(data):
        return F.round(data)

    with pytest.raises(mx.MXNetError, match=r"own_user.*operator own_straight has a rule of its own for its gradient"):

        @elementwise(name="own_user")
        def user(data):
            return 2 * straight(data)


def test_definitions_of_every_kind_are_functions(swish):
    @reduction("add", name="own_cubes")
    def cubes(data):
        return data**3

    @composite(name="own_mixed")
    def mixed(F, data):
        return swish(data) + F.sum(data)

    @kernel(name="own_double")
    def double(data):
        """Twice the data."""

    @double.shape
    def _(data):
        return data

    @double.cpu
    def _(inputs, outputs):
        outputs[0][:] = inputs[0] * 2

    x = mx.nd.array(X)
    assert cubes(x, axis=0).item() == pytest.approx((X**3).sum())
    assert double(x).asnumpy().tolist() == (2 * X).tolist()
    want = reference(X) + X.sum()
    np.testing.assert_allclose(mixed(x).asnumpy(), want, rtol=1e-5)
    net = mixed(mx.sym.Variable("x"))  # its operators are called on values of a graph
    assert net.infer_shape(x=(3,))[1] == [(3,)]
    np.testing.assert_allclose(net.eval(x=x)[0].asnumpy(), want, rtol=1e-5)


# ---- definitions ----------------------------------------------------------------------------------------------------
def test_a_default_among_the_inputs_is_refused_with_the_words_to_write():
    with pytest.raises(mx.MXNetError, match=r"def f\(data, \*, alpha: float = 1.0, beta: int = 2, mode: str = 'a'\)"):

        @elementwise
        def f(data, alpha=1.0, *, beta: int = 2, mode: str = "a"):
            return data

    with pytest.raises(TypeError, match=r"def g\(F, data, \*, axis: int = 0\)"):

        @composite
        def g(F, data, axis: int = 0):
            return data

    assert op.find("f") is None and op.find("g") is None


@pytest.mark.parametrize("made", [math.sin, np.sin, "name", 3])
def test_what_is_no_function_is_refused(made):
    with pytest.raises(mx.MXNetError, match="a function that is written in Python"):
        elementwise(made)


def test_a_function_without_a_name_is_refused():
    with pytest.raises(mx.MXNetError, match="give name="):
        elementwise(lambda data: data)
    assert elementwise(lambda data: data + 1, name="own_named")(mx.nd.zeros(1)).item() == 1


def test_a_namespace_without_a_name():
    source = """
from mxop.op import F, composite, elementwise, kernel, reduction
@elementwise
def own_a(data): return data + 1
@reduction("add")
def own_b(data): return data * data
@composite
def own_c(F, data): return F.sum(data)
@kernel
def own_d(data):
    "Nothing."
@elementwise
def own_a(data): return data + 2
"""
    exec(source, {})
    x = mx.nd.array([1, 2])
    assert mx.nd.own_a(x).asnumpy().tolist() == [3, 4]
    assert (mx.nd.own_b(x).item(), mx.nd.own_c(x).item()) == (5, 3)
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.own_b(x)
    y.backward()
    assert x.grad.asnumpy().tolist() == [2, 4]


# ---- mistakes in formulas -------------------------------------------------------------------------------------------
ARRAY = np.array([1.0, 2.0])
MISTAKES = {
    "F.sum(data)": "@reduction('add')",
    "F.max(data)": "F.maximum",
    "F.expp(data)": "did you mean 'exp'",
    "F.softmax(data)": "called in a @composite",
    "F.clip(data, 0, 1)": "F.minimum(F.maximum(x, low), high)",
    "F.logical_and(data, 1)": "F.land(a, b)",
    "F.exp(data, 1)": "F.exp takes 1 operand, 2 given",
    "data * ARRAY": "an array (a ndarray of shape (2,)) cannot be a constant",
    "ARRAY * data": "cannot be a constant of a formula",
    "F.maximum(data, ARRAY)": "cannot be a constant of a formula",
    "data * mx.nd.ones(1)": "an array (a NDArray of shape (1,)) cannot be a constant",
    "mx.nd.ones(2) + data": "cannot be a constant of a formula",
    "ARRAY": "cannot be a constant of a formula",
    "data + 'a'": "a formula cannot use 'a' of type str",
    "(data > 0) & data": "& is for truth values such as (x > 0); use F.land(a, b)",
    "2 & data": "F.land(a, b)",
    "data | data": "F.lor(a, b)",
    "~data": "F.lnot(a)",
    "data ^ 2": "a ** b",
    "data @ data": "dot in a @composite",
    "data[0]": "a formula sees one element at a time",
    "len(data)": "a formula sees one element at a time",
    "sum(data)": "a formula sees one element at a time",
    "data if data > 0 else -data": "F.where(condition, a, b)",
    "0 < data < 1": "F.land",
    "max(data, 0)": "F.maximum",
    "math.sin(data)": "F.sin(x) in place of math.sin(x)",
    "float(data)": "not a Python number",
    "int(data)": "F.trunc(x)",
    "range(data)": "cannot be a position or a count",
    "round(data, 2)": "F.rint(x * 10**digits) / 10**digits",
    "np.exp(data)": "use mxop.op.F.exp in a formula",
    "np.where(data > 0, 1, 2)": "F.where",
    "mx.nd.sin(data)": "F.sin(x) in place of nd.sin(x)",
    "mx.sym.sin(data)": "F.sin(x) in place of nd.sin(x)",
    "data.sum()": "has no .sum",
    "data.shape": "has no .shape",
    "None": "returned None",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_in_a_formula_says_what_to_write(text, tmp_path):
    path = tmp_path / "mistaken.py"
    path.write_text(f"def own_mistaken(data):\n    return {text}\n")
    scope = {"F": F, "np": np, "math": math, "mx": mx, "ARRAY": ARRAY, "__name__": "mistaken"}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    with pytest.raises(mx.MXNetError) as told:
        elementwise(scope["own_mistaken"])
    message = str(told.value)
    assert MISTAKES[text] in message
    assert message.startswith("operator own_mistaken")
    if "returned" not in message:
        assert f"{path}:2, in `return {text}`" in message
    assert op.find("own_mistaken") is None


def test_mistakes_in_rules_and_reductions_are_placed_too():
    with pytest.raises(mx.MXNetError, match=rf"operator own_ruled.*{HERE}.*F\.sum"):

        @elementwise(name="own_ruled", rule=lambda g, data, out: F.sum(g))
        def ruled(data):
            return data

    with pytest.raises(mx.MXNetError, match=rf"operator own_reduced.*{HERE}.*F\.sum"):

        @reduction("add", name="own_reduced", final=lambda value, count: F.sum(value))
        def reduced(data):
            return data

    assert op.find("own_ruled") is None and op.find("own_reduced") is None


def test_what_python_and_numpy_numbers_can_do_in_a_formula():
    @elementwise(name="own_numbers")
    def numbers(data, *, base: float = 2.0):
        scaled = np.float64(2) * data + np.sqrt(2) * data - np.float32(1) / data
        return scaled + np.array(3.0) + round(data) + math.floor(data) + math.ceil(data) + math.trunc(data) + math.log(base)

    x = np.array([1.25, 2.75])
    want = 2 * x + np.sqrt(2) * x - 1 / x + 3 + np.rint(x) + np.floor(x) + np.ceil(x) + np.trunc(x)
    for base in (2.0, math.e, 2.0):  # math.log needs the value, so there is a formula for each
        found = numbers(mx.nd.array(x, dtype="float64"), base=base)
        np.testing.assert_allclose(found.asnumpy(), want + math.log(base), rtol=1e-12)


def test_names_that_are_not_there_are_attribute_errors():
    assert not hasattr(F, "sum") and hasattr(F, "exp")
    with pytest.raises(mx.MXNetError, match="write a \\* b"):
        F.multiply  # noqa: B018


# ---- pickling -------------------------------------------------------------------------------------------------------
def test_operators_are_pickled_by_name(swish):
    for function in (mx.nd.own_swish, mx.nd.exp, mx.nd.contrib.quadratic, mx.nd._internal._backward_own_swish):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(function, protocol)) is function
    assert pickle.loads(pickle.dumps(swish)) is swish
    assert copy.deepcopy([swish])[0] is swish and copy.copy(swish) is swish
    for function in (mx.sym.own_swish, mx.sym.exp, mx.sym.contrib.quadratic):
        assert pickle.loads(pickle.dumps(function)) is function


def test_what_has_lost_its_name_is_not_pickled(swish):
    op.unregister("own_swish")
    with pytest.raises(mx.MXNetError, match="own_swish cannot be pickled"):
        pickle.dumps(swish)


def test_a_pickled_operator_brings_its_module(tmp_path):
    (tmp_path / "own_module.py").write_text(
        "from mxop.op import elementwise\n@elementwise\ndef own_far(data):\n    return data + 41\n"
    )
    path = [str(tmp_path), str(Path(mx.__file__).parent.parent)]
    write = f"import sys; sys.path[:0] = {path}; import pickle, own_module, mxop as mx; " \
            f"pickle.dump([mx.nd.own_far, own_module.own_far], open('far.pickle', 'wb'))"  # fmt: skip
    read = f"import sys; sys.path[:0] = {path}; import pickle, mxop as mx; " \
           f"print([f(mx.nd.ones(1)).item() for f in pickle.load(open('far.pickle', 'rb'))])"  # fmt: skip
    subprocess.run([sys.executable, "-c", write], cwd=tmp_path, check=True, timeout=120)
    done = subprocess.run([sys.executable, "-c", read], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[42.0, 42.0]", done.stderr
    (tmp_path / "own_module.py").unlink()
    done = subprocess.run([sys.executable, "-c", read], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "operator 'own_far' was defined in the module own_module, which cannot be imported" in done.stderr
