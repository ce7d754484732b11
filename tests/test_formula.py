"""The formula layer: simplification keeps values, derivatives are right, programs compute what formulas say."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mxop as mx
from mxop import nd
from mxop._core import core
from mxop._kernels import generate, instruction_sets
from mxop.formula import (
    TABLE,
    NeedsValue,
    TraceError,
    backward,
    compile_program,
    const,
    expr,
    input_,
    param,
    substitute,
    vjp,
    walk,
)
from mxop.op import F, elementwise

# maximum and minimum say what NumPy leaves open: of 0.0 and -0.0, the first operand wins
NUMPY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "square": np.square,

    "maximum": lambda a, b: np.where((a >= b) | np.isnan(a), a, b),
    "minimum": lambda a, b: np.where((a <= b) | np.isnan(a), a, b),
    "where": lambda c, a, b: np.where(c != 0, a, b),
    "lt": lambda a, b: (a < b) * 1.0, "ge": lambda a, b: (a >= b) * 1.0, "eq": lambda a, b: (a == b) * 1.0,
    "exp": np.exp, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "sigmoid": lambda a: 1 / (1 + np.exp(-a)), "abs": np.abs,
    "sign": np.sign,
}  # fmt: skip
SMOOTH = ("add", "sub", "mul", "square", "neg", "sin", "cos", "tanh", "sigmoid")


def evaluate(roots, inputs, params=None):
    """Compute formulas with NumPy, in float64 or what the inputs are."""
    return evaluate_all(roots, inputs, params)[0]


def evaluate_all(roots, inputs, params=None):
    """Return the values of formulas, and the largest absolute values on the way, which are finite."""
    values = {}
    for node in walk(roots):
        if node.kind == expr.CALL:
            values[node] = NUMPY[node.label](*(values[a] for a in node.args))
        elif node.kind == "input":
            values[node] = inputs[node.label]
        elif node.kind == "param":
            values[node] = np.float64(params[node.label])
        else:
            values[node] = np.float64(node.label)
    largest = np.max([np.where(np.isfinite(v), np.abs(v), 0) + 0 * inputs[0] for v in values.values()], axis=0)
    return [np.broadcast_to(values[r], inputs[0].shape) for r in roots], largest


def expressions(names, leaves):
    """Random expressions that keep the nodes as drawn (nothing is simplified away)."""

    def extend(children):
        return st.one_of(
            *(st.tuples(*[children] * TABLE[n].arity).map(lambda args, n=n: expr.raw_call(n, args)) for n in names)
        )

    return st.recursive(leaves, extend, max_leaves=12)


CONSTANTS = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 3.0, 0.5, math.inf, math.nan])
LEAVES = st.one_of(st.integers(0, 2).map(input_), CONSTANTS.map(const))
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan, 3.0])


@settings(max_examples=300, deadline=None)
@given(expressions(list(NUMPY), LEAVES))
def test_simplification_keeps_every_value(expression):
    inputs = [SPECIAL, np.roll(SPECIAL, 3), np.roll(SPECIAL, 5)]
    with np.errstate(all="ignore"):
        before = evaluate([expression], inputs)[0]
        after = evaluate(substitute([expression], {const(123.0): const(4.0)}), inputs)[0]  # rebuilds, so simplifies
    np.testing.assert_array_equal(np.isnan(before), np.isnan(after))
    finite = np.isfinite(before)
    np.testing.assert_allclose(after[finite], before[finite], rtol=1e-14)
    np.testing.assert_array_equal(after[~finite & ~np.isnan(before)], before[~finite & ~np.isnan(before)])
    zero = before == 0
    np.testing.assert_array_equal(np.signbit(after[zero]), np.signbit(before[zero]))


def test_zero_times_x_and_x_plus_zero_stay():
    x = input_(0)
    assert repr(x * 0) == "mul(0.0, x0)"
    assert repr(x + 0) == "add(x0, 0.0)"  # turns -0.0 into 0.0
    assert (x * 1) is x
    assert F.neg(F.neg(x)) is x
    assert x**0 is const(1)
    assert (x + 1) is (x + 1)


@settings(max_examples=150, deadline=None)
@given(expressions(SMOOTH, st.integers(0, 1).map(input_)), st.integers(0, 1))
def test_derivatives_match_differences(expression, wrt):
    x = np.linspace(-0.9, 0.8, 7)
    inputs = [x, x[::-1].copy()]
    grads = vjp([expression], [const(1.0)], [input_(0), input_(1)])
    derived = np.zeros_like(x) if grads[wrt] is None else evaluate([grads[wrt]], inputs)[0]
    step = 1e-5
    high, low = [v.copy() for v in inputs], [v.copy() for v in inputs]
    high[wrt] += step
    low[wrt] -= step
    numeric = (evaluate([expression], high)[0] - evaluate([expression], low)[0]) / (2 * step)
    np.testing.assert_allclose(derived, numeric, rtol=1e-5, atol=1e-6 * (1 + np.abs(numeric).max()))


@settings(max_examples=200, deadline=None)
@given(st.lists(expressions(list(NUMPY), LEAVES), min_size=1, max_size=3))
def test_programs_compute_what_formulas_say(roots):
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(-2, 2, 37) for _ in range(3)]
    arrays = [core.from_numpy(v) for v in inputs]
    outputs = [core.empty((37,), 1) for _ in roots]
    core.prepare_formula(roots, arrays, outputs, [1] * len(roots)).run()
    assert agree([output.asnumpy() for output in outputs], roots, inputs)


def agree(results, roots, inputs):
    """Tell whether results are what formulas say: to 1e-12, but for what the last bits of numbers on the way decide."""
    with np.errstate(all="ignore"):
        expected, largest = evaluate_all(roots, inputs)
        others = [evaluate(roots, [v * (1 + s) for v in inputs]) for s in (2.0**-51, -(2.0**-51))]
        others.append(evaluate(roots, [v.astype(np.longdouble) for v in inputs]))
        for k, got in enumerate(results):
            want = expected[k]
            # the sine of a huge number, or a difference, is what last bits make of it
            unsure = np.max([np.abs(other[k] - want) for other in others], axis=0)
            same = (got == want) | (np.isnan(got) & np.isnan(want))
            near = np.abs(got - want) <= 1e-300 + 1e-12 * np.abs(want) + 1e-15 * largest + 8 * unsure
            on_edge = np.any([np.isfinite(other[k]) != np.isfinite(want) for other in others], axis=0)
            if not (same | near | on_edge).all():
                return False
    return True


@pytest.mark.parametrize("wrong", [lambda v: v * (1 + 1e-11), lambda v: v + 1e-11, lambda v: v * np.nan, lambda v: v / 0])
def test_wrong_results_do_not_agree(wrong):
    x = np.random.default_rng(0).uniform(-2, 2, 37)
    for root in (F.exp(input_(0)), F.sin(input_(0)) * input_(0) + 1.0, F.tanh(F.exp(input_(0))) - 3.0):
        right = evaluate([root], [x])[0]
        with np.errstate(all="ignore"):
            assert agree([right], [root], [x]) and not agree([wrong(right)], [root], [x])


def test_the_largest_instruction_is_taken():
    x, a, b, c = input_(0), param("a"), param("b"), param("c")
    program = compile_program([x * (a * x + b) + c], 1, lambda name: instruction_sets.has_instruction(name, 0))
    assert [s.name for s in program.steps] == ["add(mul(x0,add(mul(s0,x0),s1)),s2)"]
    assert program.steps[0].scalars == ("a", "b", "c")


def test_a_value_used_twice_is_computed_once():
    shared = F.exp(input_(0))
    program = compile_program([shared + F.sin(shared)], 1, lambda name: name.count("(") == 1)
    assert [s.name for s in program.steps].count("exp(x0)") == 1


@pytest.mark.parametrize(
    ("formula", "uses"),
    [
        (lambda x: F.sin(x), ("in", (0,), ())),
        (lambda x: F.exp(x), ("out", (), (0,))),
        (lambda x: 2 * x, ("none", (), ())),
        (lambda x: F.gamma(x), ("inout", (0,), (0,))),
    ],
)
def test_dependencies_are_found(formula, uses):
    rule = backward((formula(input_(0)),), 1)
    assert (rule.inputs, rule.outputs) == uses[1:]


def test_every_order_has_a_formula():
    rule = backward((F.tanh(input_(0)),), 1)
    for _ in range(4):
        n = len(rule.heads) + len(rule.inputs) + len(rule.outputs)
        rule = backward(tuple(r for r in rule.roots if r is not None), n)
        assert any(r is not None for r in rule.roots)


def test_what_cannot_be_traced_says_so():
    x = input_(0)
    with pytest.raises(TraceError, match="where"):
        bool(x > 0)
    with pytest.raises(NeedsValue):
        bool(param("a") > 0)
    with pytest.raises(TraceError, match=r"mxop\.op\.F\.exp"):
        np.exp(x)
    with pytest.raises(TraceError):
        float(x)
    with pytest.raises(TypeError, match="1 operand"):
        F.exp(x, x)


def test_every_primitive_has_an_instruction_for_floating_point():
    for row in TABLE.values():
        name = f"{row.name}({','.join(f'x{i}' for i in range(row.arity))})"
        for ctype in (0, 1):
            assert instruction_sets.has_instruction(name, ctype), name


def test_branching_on_a_parameter_specialises():
    from mxop.op import elementwise, unregister

    @elementwise(name="_test_branch")
    def branch(data, *, a: float = 1.0):
        """Add or multiply."""
        return data + a if a > 0 else data * a

    try:
        x = mx.nd.array([1, 2])
        f = mx.nd._internal._test_branch
        assert f(x, a=2.0).asnumpy().tolist() == [3.0, 4.0]
        assert f(x, a=-2.0).asnumpy().tolist() == [-2.0, -4.0]
        assert f(x).asnumpy().tolist() == [2.0, 3.0]
    finally:
        unregister("_test_branch")


def test_every_place_of_a_scalar_in_an_instruction_is_its_own():
    """Loops are made of formulas in which one parameter may stand twice; who finds them has a number for each place."""
    for name, (_, _, scalars) in generate.instructions().items():
        assert len(set(scalars)) == len(scalars), name

    @elementwise
    def formula_two_scalars(x, y, *, a: float, b: float):
        """A formula that is one instruction."""
        return a * (x + b * y)

    try:
        assert nd.formula_two_scalars(nd.array([2]), nd.array([8]), a=0.5, b=0.25).item() == 2
        assert instruction_sets.has_instruction("mul(s0,add(x0,mul(s1,x1)))", 0)
    finally:
        mx.op.unregister("formula_two_scalars")


# ---- numbers made of parameters --------------------------------------------------------------------------------------
def test_numbers_are_computed_once():
    a, b, x = param("a"), param("b"), input_(0)
    roots = ((x * (1 - a) + (a / b - 2) * (1 - a)) * -(a - b),)
    program = compile_program(roots, 1, lambda name: instruction_sets.has_instruction(name, 0), real=True)
    assert {str(s) for step in program.steps for s in step.scalars} >= {"sub(1.0, a)"}
    plain = compile_program(roots, 1, lambda name: instruction_sets.has_instruction(name, 0))
    assert len(plain.steps) > len(program.steps)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numbers_made_of_parameters(dtype):
    @elementwise(name="formula_of_numbers")
    def of_numbers(x, *, a: float, b: float):
        """A formula with numbers."""
        return (x * (1 - a) + (a / b - 2) * (1 - a)) * -(a - b) + (a + b)

    try:
        x = np.arange(5).astype(dtype)
        for a, b in ((0.9, 0.25), (0.0, -3.0), (2.5, 1e-3), (1.0, 0.0), (float("inf"), 2.0), (1e300, 1e-300)):
            with np.errstate(all="ignore"):
                wide = x.astype("float64" if dtype == "float64" else "float32")
                p, q = wide.dtype.type(a), wide.dtype.type(b)
                want = (wide * (1 - p) + (p / q - 2) * (1 - p)) * -(p - q) + (p + q)
                assert want.dtype == wide.dtype
            for size in (5, 5000):
                found = nd.formula_of_numbers(nd.array(np.resize(x, size), dtype=dtype), a=a, b=b).asnumpy()
                assert found.dtype == dtype
                np.testing.assert_allclose(found, np.resize(want, size).astype(dtype), 1e-2 if dtype == "float16" else 1e-6)
    finally:
        mx.op.unregister("formula_of_numbers")


def test_long_formulas_of_parameters():
    total = param("a")
    for k in range(40):
        total = total * 0.5 + param("b") - k
    program = compile_program((input_(0) + total,), 1, lambda name: instruction_sets.has_instruction(name, 1), real=True)
    assert program.steps


def test_steps_that_take_values():
    x, mean, scale, shift = map(input_, range(4))
    formula = (x - mean) * scale + shift

    def program(formula, n, values, available=lambda name: instruction_sets.has_instruction(name, 0)):
        return compile_program((formula,), n, available, True, frozenset(values))

    assert len(program(formula, 4, ()).steps) == 2
    found = program(formula, 4, {1, 2, 3})
    assert {r for step in found.steps for r in step.srcs} & {1, 2, 3} == set()
    assert [step.name for step in found.steps] == ["add(mul(s0,sub(x0,s1)),s2)"]
    assert [str(value) for value in found.steps[0].scalars] == ["in2[...]", "in1[...]", "in3[...]"]
    assert program(F.exp(x), 2, {1}).values == set()  # nobody reads it
    both = program(x * (mean + scale), 3, {1, 2})
    assert [step.name for step in both.steps] == ["mul(s0,x0)"]  # their sum is one scalar
    assert [str(value) for value in both.steps[0].scalars] == ["add(in1[...], in2[...])"]


def test_formulas_without_some_heads_take_no_more_than_the_whole():
    """What a tape kept for the whole formula is there for each part of it."""
    x, y = input_(0), input_(1)
    formulas = [(F.tanh(x), F.tanh(x) * y, F.exp(y)), (F.maximum(x, 0.0), x * x), (F.maximum(x, 0.0), F.maximum(y, x), y),
                (F.sqrt(x), F.exp(x) + F.sqrt(x), F.log(y)), (F.sin(x), F.cos(x))]  # fmt: skip
    for roots in formulas:
        whole = backward(roots, 2)
        for n in range(1, len(roots)):
            for absent in itertools.combinations(range(len(roots)), n):
                part = backward(roots, 2, absent=absent)
                assert set(part.inputs) <= set(whole.inputs) and set(part.outputs) <= set(whole.outputs)
                assert set(part.heads) <= set(range(len(roots))) - set(absent)


@pytest.fixture
def formula():
    """Make a formula an operator for the time of a test."""
    made = []

    def make(function, **options):
        made.append(elementwise(function, name=f"formula_under_test_{len(made)}", **options))
        return made[-1]

    yield make
    for op in made:
        mx.op.unregister(op.name)


def bound(op, *arrays, **params):
    """Return what a bound graph of one call gives."""
    names = [f"x{k}" for k in range(len(arrays))]
    call = op(*map(mx.sym.Variable, names), **params)
    return call.bind(mx.cpu(), dict(zip(names, arrays, strict=True)), grad_req="null").forward()[0].asnumpy()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "bool"])
@pytest.mark.parametrize(
    ("function", "in_python"),
    [
        (lambda x: x < 2**40, lambda x: x < 2**40),
        (lambda x: x > -(2**40), lambda x: x > -(2**40)),
        (lambda x: x == 2**33 + 1, lambda x: x == 2**33 + 1),
        (lambda x: F.minimum(x, 2**40 + 3), lambda x: x),
        (lambda x: F.maximum(-(2**40), x), lambda x: x),
        (lambda x: x % (2**40), lambda x: x % 2**40),
        (lambda x: x // (2**40 + 3), lambda x: x // 2**40),
        (lambda x: x / (2**40 + 3), lambda x: 0),
        (lambda x: x + 2**40, lambda x: x),  # of which the lowest bits count
    ],
)
def test_constants_beyond_an_integer_type_keep_their_value(formula, dtype, function, in_python):
    op = formula(function)
    values = np.array([0, 1]) if dtype == "bool" else np.array([0, 1, 100, *np.iinfo(dtype).min + np.arange(2)])
    x = nd.array(values, dtype=dtype)
    want = np.array([in_python(int(v)) for v in values]).astype(dtype)
    np.testing.assert_array_equal(op(x).asnumpy(), want)
    np.testing.assert_array_equal(bound(op, x), want)


def test_integer_constants_up_to_64_bits_leave_integers_exact(formula):
    x = nd.array([2**53 + 1, -3], dtype="int64")
    for number in (2**62, -(2**62), -(2**63), 2**63 - 1):
        plus = formula(lambda x: x + number)  # noqa: B023  it is traced now
        assert plus(x).asnumpy().tolist() == [(v + number + 2**63) % 2**64 - 2**63 for v in (2**53 + 1, -3)]
    assert formula(lambda x: F.maximum(x, -(2**63)))(x).asnumpy().tolist() == [2**53 + 1, -3]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, *, p: x * (p / 2),
        lambda x, *, p: 127.5 / p + 0 * x,
        lambda x, *, p: x * (p * p * p - 0.1 / p),
        lambda x, *, p: x + F.exp(p) * F.log(p),
        lambda x, *, p: F.where(p + 255 < 10, x, -x),
        lambda x, *, p: F.where(p - 0.1 == 0, x, -x),
        lambda x, *, p: x * F.minimum(F.sqrt(p), 1e-30 * p / 1e-30),
    ],
)
def test_bound_calls_compute_with_numbers_as_calls_on_arrays_do(formula, dtype, function):
    for kind in (mx.op.Scalar, float):
        function.__annotations__ = {"p": kind}
        op = formula(function)
        x = nd.array(np.arange(1, 6), dtype=dtype)
        for p in (0.3, 7.0, 0.1, 3.0, 33.3):
            np.testing.assert_array_equal(bound(op, x, p=p), op(x, p=p).asnumpy(), err_msg=str(p))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("number", [1e300, -1e300, 65520.0])
def test_a_result_of_one_number_beyond_the_type_is_infinite_without_a_word(formula, number):
    x = nd.array([0, 1], dtype="float16")
    op = formula(lambda x: F.where(1, number, x))
    assert bound(op, x).tolist() == op(x).asnumpy().tolist() == [math.copysign(math.inf, number)] * 2


@pytest.mark.parametrize(
    "function",
    [lambda x: F.gamma(F.arcsinh(-(x ** (-1.0)))), lambda x: F.sin(-2 * F.exp(-(x ** (-1.0)))), lambda x: F.exp(-(x**-0.5))],
)
def test_a_rule_reaches_operands_that_simplification_has_taken_apart(formula, function):
    op, step = formula(function), 1e-4
    x = nd.array(np.add.outer([-step, 0, step], [0.7, 1.9, 2.6]), dtype="float64")
    x.attach_grad()
    with mx.autograd.record():
        slopes = [op(x)]
        for _ in range(3):
            slopes.append(mx.autograd.grad(slopes[-1], x, create_graph=True)[0])
    for below, found in itertools.pairwise([slope.asnumpy() for slope in slopes]):
        np.testing.assert_allclose(found[1], (below[2] - below[0]) / (2 * step), rtol=1e-5, atol=1e-6)
