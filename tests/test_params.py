"""Parameters of operators: kinds beyond single numbers, and many of them."""

import copy
import enum
import json
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import mxop as mx
from mxop import nd, sym
from mxop.op import AnyValue, Floats, Shape, composite, elementwise
from mxop.symbol.compose import as_strings


@pytest.fixture
def scaled():
    def params_scaled(F, data, *, sizes: tuple[float, ...] = (1.0,), more: Floats = (), counts: tuple[int, ...] = (2, 3)):
        for size in (*sizes, *more):
            data = data * size
        return data * len(counts)

    op = composite(params_scaled)
    yield op
    mx.op.unregister("params_scaled")


@pytest.mark.parametrize(
    "sizes", [(0.5, 0.25), [0.5, 0.25], np.array([0.5, 0.25]), "(0.5, 0.25)", "[0.5, .25]", 0.125, "0.125"]
)
def test_a_tuple_of_real_numbers(scaled, sizes):
    assert nd.params_scaled(nd.array([8.0]), sizes=sizes).item() == 2
    net = sym.params_scaled(sym.Variable("x"), sizes=sizes, more=(2,))
    again = mx.sym.load_json(net.tojson())
    assert again.eval(x=nd.array([8.0]))[0].asscalar() == 4
    assert nd.params_scaled(nd.array([8.0]), sizes=()).item() == 16


@pytest.mark.parametrize("sizes", ["a", ("a", 1), None, object(), {"a": 1}, "(1, 'a')", [[1, 2]], 1j])
def test_what_is_no_tuple_of_numbers(scaled, sizes):
    with pytest.raises(
        mx.MXNetError, match=r"operator params_scaled: parameter sizes=.*expected a tuple of numbers|tuple of <float>"
    ):
        nd.params_scaled(nd.array([8.0]), sizes=sizes)


def test_other_tuples_are_refused():
    with pytest.raises(mx.MXNetError, match=r"operator params_named, .*parameter 'names' needs a type"):

        @composite
        def params_named(F, data, *, names: tuple[str, ...] = ()):
            return data


def test_sixteen_numbers():
    names = [f"p{k}" for k in range(16)]
    scope = {}
    exec(
        f"def params_many(data, *, {', '.join(f'{n}: float = {k}' for k, n in enumerate(names))}):\n"
        f"    return data + {' + '.join(f'{k + 1} * {n}' for k, n in enumerate(names))}",
        scope,
    )
    elementwise(scope["params_many"])
    try:
        want = sum((k + 1) * k for k in range(16))
        x = nd.array([1.0])
        x.attach_grad()
        with mx.autograd.record():
            y = nd.params_many(x)
        y.backward()
        assert (y.item(), x.grad.item()) == (1 + want, 1)
        assert nd.params_many(x, p15=0, p0=5).item() == 1 + want - 16 * 15 + 5
    finally:
        mx.op.unregister("params_many")


def test_no_shape_is_the_default():
    """As in MXNet, where None is a shape that is not known."""
    x, y = nd.ones((3, 4)), nd.ones((2, 2))
    assert nd.slice_like(x, y, axes=None).shape == nd.slice_like(x, y, axes="None").shape == (2, 2)
    assert mx.sym.Dropout(mx.sym.Variable("x"), axes=None).list_arguments() == ["x"]
    with pytest.raises(mx.MXNetError, match="reps=None"):
        nd.tile(x, reps=None)


# ---- what a symbol takes, its JSON and its pickle say ------------------------------------------------------------------
class Halves(float):
    """A number of a user's, with a text of its own."""

    def __str__(self):
        return "half"

    __repr__ = __str__


class Counts(enum.IntEnum):
    TWO = 2


class Words(str, enum.Enum):  # noqa: UP042  its text is Words.LEAKY
    LEAKY = "leaky"


NUMBERS = [
    True, False, 0, 1, 2, -1, 3, 2**31, 2**53 + 1, 2**63, -(2**70), 10**400, 10**5000, 0.0, -0.0, 0.1, 1.0, 2.5, 1e22, 5e-324,
    math.nan, math.inf, -math.inf, np.bool_(True), np.int8(2), np.uint64(2**63), np.float16(0.1), np.float32(0.1),
    np.float64(0.1), np.array(True), np.array(2), np.array(0.1), np.array([2]), Halves(0.5), Counts.TWO, Fraction(1, 4),
    Decimal("0.1"), "2", "True", "1e3", "0.1f", " 2 ", "nan",
]  # fmt: skip
TUPLES = [(n,) for n in NUMBERS] + [
    [1, 2],
    (1, True),
    (2, np.int64(3)),
    np.array([1, 2]),
    (0.5, np.float32(0.1)),
    (None, 2),
    (),
]


def exactly(attrs):
    """Return parameters as what tells them apart: 1, 1.0 and True are equal, and NaN is not."""
    return [(type(v), repr(v)) for v in attrs.values_]


@pytest.mark.parametrize(
    "name",
    [op.name for op in mx.op.operators() if op.module.startswith("mxop.") and mx.op.namespace_of(op.name)[0] != "_internal"],
)
def test_what_a_symbol_takes_loads_again(name):
    op = mx.op.get(name)
    required = {p.name: 1 for p in op.spec.params if p.required}
    for p in op.spec.params:
        if p.kind is AnyValue:
            continue
        given = [*NUMBERS, *TUPLES] if p.kind in (tuple, Shape, Floats) else NUMBERS
        for value in [*given, *p.choices, *([Words(c) for c in p.choices if c == "leaky"])]:
            try:
                attrs = op.parse({**required, p.name: value})
            except (mx.MXNetError, ValueError):
                continue
            params = {**required, p.name: value}
            texts = as_strings(op, attrs, params)
            assert all(type(text) is str for text in texts.values()), (p.name, value)
            assert exactly(op.parse(json.loads(json.dumps(texts)))) == exactly(attrs), (p.name, value, texts)
            assert exactly(op.parse(op.spec.to_strings(attrs))) == exactly(attrs), (p.name, value)


@pytest.mark.parametrize("make", [
    lambda x, n: x + n, lambda x, n: n - x, lambda x, n: x * n, lambda x, n: x / n, lambda x, n: n / x, lambda x, n: x**n,
    lambda x, n: n**x, lambda x, n: x % n, lambda x, n: x // n, lambda x, n: x < n, lambda x, n: n >= x, lambda x, n: x == n,
    sym.maximum, sym.hypot, lambda x, n: sym.clip(x, a_min=-9, a_max=n), lambda x, n: sym.smooth_l1(x, scalar=n),
    lambda x, n: sym.LeakyReLU(x, act_type="leaky", slope=n), lambda x, n: sym.full((2,), n) + x,
    lambda x, n: sym.one_hot(x, 3, on_value=n), lambda x, n: sym.expand_dims(x, axis=n), lambda x, n: sym.topk(x, k=n),
    lambda x, n: sym.FullyConnected(x.reshape((1, -1)), sym.ones((2, 2)), no_bias=n, num_hidden=2),
    lambda x, n: sym.repeat(x, repeats=n), lambda x, n: sym.Cast(x, dtype=n), lambda x, n: sym.tile(x, reps=(n,)),
    lambda x, n: sym.arange(0, n) * sym.sum(x),
])  # fmt: skip
def test_symbols_that_load_again_compute_the_same(make):
    x = nd.array([0.5, 2.0])
    for number in NUMBERS:
        try:
            net = make(sym.Variable("x"), number)
            if math.prod(net.infer_shape(x=(2,))[1][0]) > 1000:
                continue
            wanted = net.eval(x=x)[0].asnumpy()
        except (mx.MXNetError, TypeError, OverflowError):
            continue
        for again in (sym.load_json(net.tojson()), pickle.loads(pickle.dumps(net)), copy.deepcopy(net)):
            found = again.eval(x=x)[0].asnumpy()
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)


def test_truths_are_written_as_mxnet_reads_them():
    x = sym.Variable("x")
    for net, key in ((x * True, "scalar"), (sym.clip(x, a_min=0, a_max=True), "a_max"), (sym.topk(x, k=True), "k")):
        assert net.list_attr()[key] in ("1", "1.0")
    assert sym.topk(x, is_ascend=True).list_attr()["is_ascend"] == "True"
    assert (x * 2).list_attr()["scalar"] == "2" and (x * 2.5).list_attr()["scalar"] == "2.5"
    assert sym.FullyConnected(x, num_hidden=2, lr_mult=True).list_attr()["lr_mult"] == "1"
    assert sym.Variable("w", lr_mult=True, wd_mult=np.float32(0.5)).list_attr()["__lr_mult__"] == "1"
