"""Numbers that change from call to call: a plan holds for any, unless a composite's function asks for their values.

That all operators of the package give the same bits either way, gradients included, ``check_op`` says ("other numbers").
"""

import math
import sys
import threading

import numpy as np
import pytest

import mxop as mx
from mxop.op import F as formula
from mxop.op import composite, elementwise
from mxop.opdef.symbolic import Completions, SymbolicNumber, Trace, completed, computed, no_new_guards

RNG = np.random.default_rng(5)
X = RNG.normal(size=(4, 6)).astype(np.float32)


@pytest.fixture
def defined():
    """Register operators for one test."""
    made = []

    def define(function, decorator=composite):
        made.append(decorator(function))
        return made[-1]

    yield define
    for op in made:
        mx.op.unregister(op.name)


def softmax(x, temperature):
    e = np.exp((x - x.max(-1, keepdims=True)) / temperature)
    return e / e.sum(-1, keepdims=True)


def layer_norm(x, eps):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)


CALLS = {
    "softmax": (lambda x, v: mx.nd.softmax(x, temperature=v), softmax),
    "log_softmax": (lambda x, v: mx.nd.log_softmax(x, temperature=v), lambda x, v: np.log(softmax(x, v))),
    "LayerNorm": (lambda x, v: mx.nd.LayerNorm(x, mx.nd.ones(6), mx.nd.zeros(6), eps=v), layer_norm),
    "LeakyReLU": (lambda x, v: mx.nd.LeakyReLU(x, slope=v), lambda x, v: np.where(x > 0, x, v * x)),
    "elu": (lambda x, v: mx.nd.LeakyReLU(x, act_type="elu", slope=v), lambda x, v: np.where(x > 0, x, v * np.expm1(x))),
    "MakeLoss": (lambda x, v: mx.nd.MakeLoss(x, grad_scale=v), lambda x, v: x),
    "L2Normalization": (
        lambda x, v: mx.nd.L2Normalization(x, eps=v), lambda x, v: x / np.sqrt((x * x).sum(1, keepdims=True) + v)
    ),
}  # fmt: skip


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_many_numbers_make_two_plans(name, recorded, kept):
    call, reference = CALLS[name]
    x = mx.nd.array(X)
    if recorded:
        x.attach_grad()
    counts = []
    for k in range(60):
        v = 0.5 + k / 64
        with mx.autograd.record() if recorded else mx.autograd.pause():
            y = call(x, v)
        np.testing.assert_allclose(y.asnumpy(), reference(X.astype(np.float64), v), rtol=2e-5, atol=2e-6)
        counts.append(len(kept()))
    assert 0 < counts[5] == counts[-1]


IMAGE = mx.nd.array(np.arange(24.0).reshape(1, 1, 4, 6))
INTEGERS = {
    "topk": (lambda k: mx.nd.topk(mx.nd.arange(200), k=k, ret_typ="value"), lambda k: np.arange(199, 199 - k, -1)),
    "pad": (lambda k: mx.nd.pad(IMAGE, mode="edge", pad_width=(0, 0, 0, 0, k, 1, 2, k)),
            lambda k: np.pad(IMAGE.asnumpy(), [(0, 0), (0, 0), (k, 1), (2, k)], mode="edge")),
    "AdaptiveAvgPooling2D": (lambda k: mx.nd.contrib.AdaptiveAvgPooling2D(IMAGE, output_size=(4 * k, 6)),
                             lambda k: IMAGE.asnumpy().repeat(k, axis=2)),
    "SequenceMask": (lambda k: mx.nd.SequenceMask(mx.nd.ones((4, 2)), mx.nd.array([1, 3]), use_sequence_length=True, value=k),
                     lambda k: np.where(np.arange(4)[:, None] < [1, 3], 1, k)),
    "uniform": (lambda k: mx.nd.random.uniform(2, 2, shape=(k, 77)), lambda k: np.full((k, 77), 2)),
    "negative_binomial": (lambda k: mx.nd.random.negative_binomial(k, 1.0, shape=77), lambda k: np.zeros(77)),
}  # fmt: skip


@pytest.mark.parametrize("name", INTEGERS)
def test_many_integers_make_few_patterns(name, prepared):
    """The second call that differs in integers only makes a pattern whose integers are sizes."""
    call, reference = INTEGERS[name]
    counts = []
    for k in (7, 9, 11, *range(12, 60), 5, 3):
        np.testing.assert_array_equal(call(k).asnumpy(), reference(k), strict=False)
        counts.append(len(prepared))
    assert 0 < counts[3] == counts[-1]


def test_integers_that_a_function_asks_have_patterns_of_their_own(defined):
    """Sizes still change from call to call without a trace; wrong integers are refused as ever."""

    def halves(F, x, *, times: int = 1, axis: int = 0):
        for _ in range(times):
            x = x * 0.5
        return F.sum(x, axis=axis) + times

    op = defined(halves)
    for times in (*range(2, 14), 2, 13, 3):
        for n in (3, 5):
            x = np.ones((n, 4, 2), "float32")
            np.testing.assert_array_equal(op(mx.nd.array(x), times=times, axis=2).asnumpy(), x.sum(2) * 0.5**times + times)
    with pytest.raises(mx.MXNetError, match="axis"):
        op(mx.nd.array(x), times=2, axis=3)


def test_gradients_are_those_of_the_number_of_their_call():
    for order in (1, 2):
        xs = [mx.nd.array(X) for _ in range(4)]
        outputs = []
        for x, v in zip(xs, (0.5, 0.7, 0.9, 1.1), strict=True):
            x.attach_grad()
            with mx.autograd.record():
                y = mx.nd.softmax(x, temperature=v)
                if order == 2:
                    y = mx.autograd.grad([y * y], [x], create_graph=True)[0]
            outputs.append(y)
        for y in outputs:  # after all calls were made
            y.backward(mx.nd.array(X[::-1].copy()))
        for x, v in zip(xs, (0.5, 0.7, 0.9, 1.1), strict=True):
            z = mx.nd.array(X)
            z.attach_grad()
            with mx.autograd.record():
                y = mx.nd.softmax(z / v)
                if order == 2:
                    y = mx.autograd.grad([y * y], [z], create_graph=True)[0]
            y.backward(mx.nd.array(X[::-1].copy()))
            np.testing.assert_allclose(x.grad.asnumpy(), z.grad.asnumpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("v", [2, -0.0, 1e-30, 1e300, math.inf, -math.inf, math.nan, np.float64(0.3), np.float32(0.1), True])
def test_special_numbers(v):
    alone = mx.nd.LeakyReLU(mx.nd.array(X), slope=v).asnumpy()
    for other in (0.1, 0.2, 0.3):
        mx.nd.LeakyReLU(mx.nd.array(X), slope=other)
    np.testing.assert_array_equal(mx.nd.LeakyReLU(mx.nd.array(X), slope=v).asnumpy(), alone)
    with np.errstate(all="ignore"):
        expected = np.where(X > 0, X, np.float32(v) * X)
    np.testing.assert_array_equal(alone, expected)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numbers_are_rounded_once(dtype):
    x = X.astype(dtype)
    for v in (0.1, 0.2, 0.3, 0.7):
        got = mx.nd.LeakyReLU(mx.nd.array(x, dtype=dtype), slope=v).asnumpy()
        wide = np.float64 if dtype == "float64" else np.float32
        np.testing.assert_array_equal(got, np.where(x > 0, x, (wide(v) * x.astype(wide)).astype(dtype)))


def test_what_a_function_asks_decides(defined):
    @defined
    def _branching(F, x, *, a: float, b: float | None = None):
        """Different operators for different numbers."""
        if b is None:
            return x + a if a > 1 else x - a
        if isinstance(b, float) and b == 0.5:
            return x * math.exp(a)
        return x * (a / b if abs(b) >= 0.25 else max(a, b))

    def expected(a, b):
        if b is None:
            return X + np.float32(a) if a > 1 else X - np.float32(a)
        return X * np.float32(math.exp(a) if b == 0.5 else a / b if abs(b) >= 0.25 else max(a, b))

    for _ in range(3):
        for a in (0.5, 0.75, 1.0, 1.5, 1.75, 3.0):
            for b in (None, 0.5, 0.3, -0.3, 0.2, 0.1):
                got = mx.nd._internal._branching(mx.nd.array(X), a=a, b=b).asnumpy()
                np.testing.assert_allclose(got, expected(a, b), rtol=3e-7, err_msg=f"{a}, {b}")


def test_numbers_that_another_composite_and_a_formula_take(defined, kept):
    def _scaled(data, *, by: float, plus: float = 0.0):
        """A formula."""
        return formula.exp(data) * by + plus

    defined(_scaled, elementwise)

    @defined
    def _nested(F, x, *, t: float = 1.0):
        """A composite of composites."""
        return F._scaled(F.softmax(x, temperature=t * 2), by=1 / t, plus=t)

    before = None
    for k in range(20):
        t = 1 + k / 32
        got = mx.nd._internal._nested(mx.nd.array(X), t=t).asnumpy()
        np.testing.assert_allclose(got, np.exp(softmax(X.astype(np.float64), 2 * t)) / t + t, rtol=1e-6)
        if k > 4:
            assert before >= len(kept())
        before = len(kept())


def test_what_is_computed_outside_is_computed_again(defined):
    calls = []

    def half(value):
        calls.append(value)
        if value < 0:
            raise mx.MXNetError("a number below 0")
        return value / 2

    @defined
    def _by_half(F, x, *, a: float):
        """Multiply by what a function makes of the parameter."""
        return x * computed(half, a)

    for a in (1.0, 2.0, 3.0, 4.0):
        np.testing.assert_array_equal(mx.nd._internal._by_half(mx.nd.array(X), a=a).asnumpy(), X * np.float32(a / 2))
    assert 4.0 in calls
    with pytest.raises(mx.MXNetError, match="a number below 0"):
        mx.nd._internal._by_half(mx.nd.array(X), a=-1.0)


def test_errors_are_the_same_after_other_numbers():
    for high in (1.0, 2.0, 3.0):
        assert mx.nd.random.uniform(0, high, shape=(5,)).asnumpy().max() < high
    with pytest.raises(mx.MXNetError, match=r"low=0\.0 and high=-1\.0; expected low <= high"):
        mx.nd.random.uniform(0, -1, shape=(5,))
    for scale in (1.0, 2.0, 3.0):
        mx.nd.random.normal(0, scale, shape=(5,))
    with pytest.raises(mx.MXNetError, match="scale=0"):
        mx.nd.random.normal(0, 0, shape=(5,))
    with pytest.raises(mx.MXNetError, match="from 0 to 1"):
        mx.nd.Dropout(mx.nd.array(X), p=1.5)


def test_limits_that_change_bound_what_is_drawn():
    for k in range(1, 40):
        low, high = -k / 8, k / 4
        x = mx.nd.random.uniform(low, high, shape=(1000,)).asnumpy()
        assert low <= x.min() < low + 0.1 * (high - low) and high - 0.1 * (high - low) < x.max() < high
        kept = mx.nd.Dropout(mx.nd.ones((4000,)), p=k / 64, mode="always").asnumpy()
        assert abs((kept == 0).mean() - k / 64) < 0.05 and np.isclose(kept.max(), 1 / (1 - k / 64), rtol=1e-6)


def test_threads_with_numbers_of_their_own():
    x, failed = mx.nd.array(X), []

    def work(start):
        for k in range(200):
            v = 0.5 + start / 16 + k / 256
            got = mx.nd.softmax(x, temperature=v).asnumpy()
            if not np.allclose(got, softmax(X.astype(np.float64), v), rtol=1e-5):
                failed.append(v)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


def test_a_definition_that_changes_is_seen(defined):
    def define(times):
        @composite(override=True)
        def _redefined(F, x, *, a: float):
            """One that is defined again."""
            return x * (a * times)

        return _redefined

    for times in (1, 2):
        define(times)
        for a in (0.25, 0.5, 0.75):
            np.testing.assert_array_equal(mx.nd._internal._redefined(mx.nd.array(X), a=a).asnumpy(), X * np.float32(a * times))
    mx.op.unregister("_redefined")


def test_a_recorded_call_is_written_with_its_own_numbers():
    for slope in (0.125, 0.375, 0.5, 0.75):
        x = mx.nd.array(X)
        x.attach_grad()
        with mx.autograd.record():
            y, z = mx.nd.LeakyReLU(x, slope=slope), mx.nd.LeakyReLU(x, act_type="gelu", slope=slope)
        for a in (y, z):  # gelu reads no slope
            (attrs,) = mx.autograd.get_symbol(a).attr_dict().values()
            assert float(attrs["slope"]) == slope


def test_a_number_that_cannot_be_an_input_is_the_errors_of_the_call(defined):
    @defined
    def _rooted(F, x, *, a: float):
        """A root that is complex below 0."""
        return x * a**0.5

    for a in (0.25, 1.0, 4.0):
        np.testing.assert_array_equal(mx.nd._internal._rooted(mx.nd.array(X), a=a).asnumpy(), X * np.float32(a**0.5))
    with pytest.raises(mx.MXNetError):
        mx.nd._internal._rooted(mx.nd.array(X), a=-4.0)


# ---- the numbers themselves -------------------------------------------------------------------------------------------


def test_arithmetic_of_symbolic_numbers():
    trace = Trace({"a": 3.0, "b": 4})
    a, b = trace.numbers["a"], trace.numbers["b"]
    made = (2 * a + b / 2 - a**2) // 1 % 5 - -abs(1 - b) + 7 / a + 2**b
    assert type(made) is SymbolicNumber and not trace.guards.answers
    for x, y in ((3.0, 4), (0.5, -7), (2.25, 0)):
        assert made.at({"a": x, "b": y}) == (2 * x + y / 2 - x**2) // 1 % 5 - -abs(1 - y) + 7 / x + 2**y
    assert a * 2 is a * 2 and a * 2 is not a * 2.0  # made in the same way: one number


def test_what_is_asked_becomes_a_guard():
    trace = Trace({"a": 3.0})
    a = trace.numbers["a"]
    assert a > 2 and a != 4 and a and a is not None and a != 5 and not a == 6  # noqa: SIM201
    assert trace.holds({"a": 4.5}) and not trace.holds({"a": 4.0}) and not trace.holds({"a": 1.0})
    assert not trace.holds({"a": math.nan})
    assert math.sqrt(a) == math.sqrt(3) and not trace.holds({"a": 4.5}) and trace.holds({"a": 3.0})


ASKING = {
    "float": float, "int": int, "str": str, "bool": bool, "exp": math.exp, "floor": math.floor, "round": round,
    "float32": np.float32, "format": "{:.2f}".format, "isnan": np.isnan, "hash": hash, "set": {1.0, 2.0}.__contains__,
    "dict": {2.5: 1}.get, "repr": repr, "text of a tuple": lambda a: f"{(a, 1)}",
}  # fmt: skip


@pytest.mark.parametrize("ask", ASKING)
def test_no_value_is_read_unseen(ask):
    trace = Trace({"a": 2.5})
    try:
        found = ASKING[ask](trace.numbers["a"])
    except TypeError:
        return  # refused: the plan is made for the number
    if type(found) is SymbolicNumber:
        assert ask in ("floor", "round") and not trace.guards.answers
        assert [found.at({"a": a}) for a in (2.5, -1.25)] == [ASKING[ask](a) for a in (2.5, -1.25)]
        return
    assert trace.guards.answers and not trace.holds({"a": 0.0})


def test_no_question_is_asked_while_a_pattern_is_completed():
    trace = Trace({"a": 2.5})
    trace.closed = True
    with no_new_guards(), pytest.raises(RuntimeError, match="was read after its graph was completed"):
        float(trace.numbers["a"])
    assert trace.numbers["a"] > 2 and not trace.guards.answers  # who has kept it may ask


def test_guards_of_another_graph_are_not_those_of_the_first():
    """A thread may ask whether the first graph holds while another makes a gradient with the same numbers."""
    trace = Trace({"a": 3.0})
    a = trace.numbers["a"]
    assert a > 2
    trace.closed = True
    with trace.more_guards() as guards:
        assert a > 2.5
        assert trace.holds({"a": 2.25}) and not trace.holds({"a": 1.0})
        assert not guards.hold({"a": 2.25}) and guards.hold({"a": 2.75})
        assert list(trace.guards.answers) != list(guards.answers)
    assert trace.holds({"a": 2.25})


def test_parts_that_threads_add_keep_their_values():
    trace = Trace({}, {"a": 5})
    a, parts = trace.numbers["a"], Completions(trace)
    found = [[] for _ in range(4)]

    def add(k):
        for n in range(300):
            value = (a + (4 * n + k), object())
            found[k].append((parts.add(value), 5 + 4 * n + k, value[1], parts.of({"a": 5}) if n % 50 == 0 else None))

    threads = [threading.Thread(target=add, args=(k,)) for k in range(4)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(before)
    assert [len(items) for items in found] == [300] * 4
    values = parts.of({"a": 5})
    for part, number, other, _ in (item for items in found for item in items):
        assert completed(part, values) == (number, other)


def test_axes_that_change_are_axes_still():
    """An axis is an integer, which becomes symbolic; a dictionary of axes must be one of numbers."""
    x, v = RNG.normal(size=(2, 5, 5, 5)).astype("float32"), np.arange(1, 6, dtype="float32")
    arrays = [mx.nd.array(a) for a in (x, v, v, v - 1, v)]
    for axis in (2, 3, 1, 2, 3, -1, -2):
        shape = [5 if k == axis % 4 else 1 for k in range(4)]
        scale, mean = v.reshape(shape), (v - 1).reshape(shape)
        found = mx.nd.BatchNorm(*arrays, axis=axis, eps=0.5, use_global_stats=True, fix_gamma=False)
        np.testing.assert_allclose(found.asnumpy(), (x - mean) / np.sqrt(scale + 0.5) * scale + scale, 1e-5, 1e-5)
