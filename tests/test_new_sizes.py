"""Sizes that change from call to call: a plan is completed from a pattern, unless a function asks for the sizes themselves.

That all composites of the package give the same bits either way, gradients included, ``check_op`` says ("other calls").
"""

import math
import threading
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import run_python

import mxop as mx
from mxop import nd

RNG = np.random.default_rng(11)
#: On both sides of what decides how rows are computed: 16 rows, 16,384 elements, rows of 256 elements and of 64 KiB.
SIZES = [(3, 4), (5, 7), (4, 4), (1, 6), (6, 1), (0, 5), (15, 33), (16, 33), (17, 33), (64, 255), (64, 256), (65, 257), (9, 9),
         (128, 129), (2, 16385), (20, 16384), (33, 64), (34, 64), (7, 3)]  # fmt: skip


def normalized(x, g):
    h = x - x.mean(axis=-1, keepdims=True)
    return nd.softmax(h / nd.sqrt((h * h).mean(axis=-1, keepdims=True) + 0.1) * g)


def attended(x, g):
    scores = nd.dot(x * g, x, transpose_b=True) / math.sqrt(x.shape[-1])
    return nd.dot(nd.softmax(scores), x)


def averaged(x, g):
    return nd.square(nd.LayerNorm(x, g, g) - x.sum(axis=0) / max(x.shape[0], 1)).sum() / max(x.size, 1)


def split(x, g):
    half = x.shape[1] // 2
    return nd.concat(x[:, half:] * g[half:], nd.sigmoid(x[:, :half]), dim=1).reshape((-1, x.shape[1]))


def branching(x, g):
    y = x * g if x.shape[0] > 16 else x + g
    for k in range(min(x.shape[0], 3)):
        y = y * (k + x.shape[0] / 8)
    return y.transpose()


FUNCTIONS = [normalized, attended, averaged, split, branching]


def arrays(shape, dtype="float32"):
    return [nd.array(RNG.uniform(0.2, 1.5, s).astype(dtype), dtype=dtype) for s in (shape, shape[-1:])]


def gradients(function, given, order):
    """Return the results and gradients of a function, to an order."""
    given = [a.copy() for a in given]
    for a in given:
        a.attach_grad()
    with mx.autograd.record():
        y = function(*given)
        found = [y]
        for _ in range(order):
            y = mx.autograd.grad([y * y], given[:1], create_graph=True)[0]
            found.append(y)
    y.backward()
    return [a.asnumpy() for a in (*found, *(a.grad for a in given))]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_any_sizes_in_turn(function, dtype, anew):
    compiled = mx.graph.compiled(function)
    tolerance = {"float32": 2e-5, "float64": 1e-12, "float16": 2e-2}[dtype]
    for shape in [*SIZES, *SIZES[::-1]]:
        given = arrays(shape, dtype)
        with mx.graph.planned(False):
            expected = function(*given).asnumpy()
        got = compiled(*given)
        assert got.shape == expected.shape and got.dtype == expected.dtype
        np.testing.assert_allclose(got.asnumpy(), expected, rtol=tolerance, atol=tolerance, err_msg=str(shape))


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients_of_any_sizes_in_turn(function, order, anew):
    compiled = mx.graph.compiled(function)
    for shape in [(3, 4), (5, 7), (18, 6), (6, 6), (19, 5), (4, 9), (20, 8)]:
        given = arrays(shape, "float64")
        with mx.graph.planned(False):
            expected = gradients(function, given, order)
        for got, want in zip(gradients(compiled, given, order), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-8, err_msg=str(shape))


def test_a_function_is_called_once_for_all_sizes_that_it_does_not_tell_apart():
    calls = []

    @mx.graph.compiled
    def function(x, g):
        calls.append(x)
        return normalized(x, g)

    for n in range(17, 80):
        function(*arrays((n, 32 + n)))
    assert len(calls) == 1
    for n in range(2, 10):  # fewer rows than a strip has
        function(*arrays((n, 50)))
    assert len(calls) == 2


ROWS = {
    "softmax": nd.softmax,
    "LayerNorm": lambda x: nd.LayerNorm(x, nd.ones(x.shape[1]), nd.zeros(x.shape[1])),
    "SoftmaxOutput": lambda x: nd.SoftmaxOutput(x, nd.zeros(x.shape[0])),
    "gelu": lambda x: nd.LeakyReLU(x, act_type="gelu"),
    "BatchNorm": lambda x: nd.BatchNorm(x, *[nd.ones(x.shape[1]) for _ in range(4)]),
    "SequenceMask": lambda x: nd.SequenceMask(x, nd.ones(x.shape[1]), use_sequence_length=True),
    "softmax of lengths": lambda x: nd.softmax(x, nd.ones(x.shape[0], dtype="int32"), use_length=True),
    "gemm2": lambda x: nd.linalg.gemm2(x, x, transpose_b=True, alpha=2.0),
    "syrk": nd.linalg.syrk,
    "einsum": lambda x: nd.einsum(x, x[0], x[0], subscripts="ij,j,j->i"),
    "slice": lambda x: nd.softmax(nd.slice(x, begin=(2, 3), end=(None, -1))),
    "CTCLoss": lambda x: nd.CTCLoss(x.expand_dims(1), nd.ones((1, 9))),
    "resized by scales": lambda x: nd.contrib.BilinearResize2D(x.reshape((1, 1, *x.shape)), scale_height=0.7, scale_width=1.6),
}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", ROWS)
def test_a_composite_is_prepared_once_for_sizes_that_are_alike(name, recorded, prepared):
    counts = []
    for n in range(20, 60):
        x = nd.array(RNG.normal(size=(n, n + 70)))
        if recorded:
            x.attach_grad()
        with mx.autograd.record() if recorded else mx.autograd.pause():
            ROWS[name](x)
        counts.append(len(prepared))
    assert 0 < counts[0] == counts[-1]


INDEXED = {
    "row": lambda x: x[0] + x[-1], "rows": lambda x: x[1:] - x[:-1], "inner": lambda x: x[1:-1, 2:-2],
    "column": lambda x: x[:, 0], "last": lambda x: x[..., -1:], "every other": lambda x: x[::2],
    "backwards": lambda x: x[::-1, -2:3:-3],
    "new axis": lambda x: x[None], "half": lambda x: x[:, x.shape[1] // 2 :], "beyond": lambda x: x[-500:, :500],
    "one": lambda x: x[:1, 3],
    "parts": lambda x: nd.concat(*nd.split_v2(x, (3, 5), axis=1)[::-1], dim=1),
}  # fmt: skip


@pytest.mark.parametrize("how", INDEXED)
def test_parts_of_any_sizes(how, prepared):
    """Positions that are counted from an end are sizes, too."""
    compiled, counts = mx.graph.compiled(lambda x: INDEXED[how](x) * 2), []
    for n in range(17, 30):
        values = RNG.normal(size=(n, n + 30)).astype("float32")
        x = nd.array(values)
        x.attach_grad()
        with mx.autograd.record():
            y = compiled(x)
        head = RNG.integers(1, 9, y.shape).astype("float32")
        y.backward(nd.array(head))
        wanted = np.zeros_like(values)
        if how != "parts":
            np.testing.assert_array_equal(y.asnumpy(), INDEXED[how](values) * 2)
            place = np.arange(values.size).reshape(values.shape)
            signs = {"rows": [(place[1:], 2), (place[:-1], -2)], "row": [(place[0], 2), (place[-1], 2)]}
            for places, sign in signs.get(how, [(INDEXED[how](place), 2)]):
                np.add.at(wanted.reshape(-1), places, sign * head)
        else:
            bounds = np.split(head, np.cumsum([n + 25, 2]), axis=1)  # of the parts, which are joined in reverse
            wanted += 2 * np.concatenate(bounds[::-1], axis=1)
        np.testing.assert_array_equal(x.grad.asnumpy(), wanted)
        counts.append(len(prepared))
    assert 0 < counts[0] == counts[-1]


def ends():
    return st.none() | st.integers(-9, 9)


@settings(deadline=None)
@given(st.lists(st.tuples(ends(), ends(), st.sampled_from([None, 1, 2, 3, -1, -2, -4])), min_size=1, max_size=2))
def test_slices_of_any_sizes(parts):
    key = tuple(slice(*part) for part in parts)
    compiled = mx.graph.compiled(lambda x: x[key] + 1)
    for shape in ((5, 6), (7, 3), (2, 8), (11, 1), (7, 7)):
        values = np.arange(np.prod(shape), dtype="float32").reshape(shape)
        np.testing.assert_array_equal(compiled(nd.array(values)).asnumpy(), values[key] + 1)


def trained(n, **params):
    x = nd.array(RNG.normal(size=(n, 10)))
    x.attach_grad()
    with mx.autograd.record():
        y = nd.SoftmaxOutput(x, nd.array(np.arange(n) % 10), **params)
    y.backward()
    return x.grad.asnumpy(), y.asnumpy() - np.eye(10)[np.arange(n) % 10]


X = mx.sym.Variable("data")
NETWORKS = {
    "SoftmaxOutput": mx.sym.SoftmaxOutput(X, normalization="batch", smooth_alpha=0.25, name="out"),
    "std": mx.sym._internal._std(X, axis=1),
    "var": mx.sym._internal._var(X, ddof=1.0),
    "in mode": mx.sym.LeakyReLU(mx.sym.Dropout(X * 1.5, p=0.5) - 0.5, act_type="leaky"),
}


CALLS = {
    "SoftmaxOutput": lambda x, label: nd.SoftmaxOutput(x, label, normalization="batch", smooth_alpha=0.25),
    "std": lambda x: x.std(axis=1),
    "var": lambda x: x.var(ddof=1),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_executors_of_any_sizes(name, request):
    """Numbers that follow from sizes, such as the classes of labels, are made when arrays are bound."""
    expanded, counts = [], []

    @mx.op.composite(name="counted_by_a_test")
    def counted(F, data):
        expanded.append(data)
        return data * 1

    request.addfinalizer(lambda: mx.op.unregister("counted_by_a_test"))
    net = mx.sym.counted_by_a_test(NETWORKS[name])
    for n in range(20, 32):
        bound = net.simple_bind(mx.cpu(), data=(n, 3 * n))
        values = [RNG.normal(size=(n, 3 * n)), np.arange(n)]
        for array, value in zip(bound.arg_arrays, values, strict=False):
            array[:] = value
        bound.forward(is_train=False)
        x, *rest = (nd.array(v) for v in values[: len(bound.arg_arrays)])
        counts.append(len(expanded))
        if name == "in mode":
            want = np.where(values[0] * 1.5 < 0.5, 0.25, 1) * (values[0] * 1.5 - 0.5)
            np.testing.assert_allclose(bound.outputs[0].asnumpy(), want, rtol=1e-5, atol=1e-6)
            continue
        bound.forward(is_train=True)
        head = nd.array(RNG.normal(size=bound.outputs[0].shape))
        bound.backward(head)
        x.attach_grad()
        with mx.autograd.record():
            y = CALLS[name](x, *rest)
        y.backward(head)
        np.testing.assert_allclose(bound.outputs[0].asnumpy(), y.asnumpy(), rtol=1e-5)
        np.testing.assert_allclose(bound.grad_dict["data"].asnumpy(), x.grad.asnumpy(), rtol=1e-5, atol=1e-7)
    assert 0 < counts[1] == counts[-1]
    if name == "std":
        assert " / 9.64365076" in str(bound.explain())  # the root of 93, for this executor


@pytest.mark.parametrize("params", [{}, {"use_ignore": True, "ignore_label": 77.0}])
def test_small_batches_first_leave_larger_ones_alone(params, prepared):
    """Rows are computed otherwise from 16 on; parameters that did not change are constants there, too."""
    counts = []
    for n in (5, 6, 7, 16, 17, 18, 19, 8, 9, 20, 40):
        found, wanted = trained(n, **params)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
        counts.append(len(prepared))
    assert counts[3] > counts[2] and counts[4] == counts[-1]


def test_gradients_of_gradients_after_other_numbers(prepared):
    """What decided about the first gradient holds for the second one, though the plan did not keep the number."""
    counts = []
    for p, n in ((0.5, 3), (0.25, 4), *((0.0, n) for n in range(5, 25))):
        x = nd.ones((n, n + 2))
        x.attach_grad()
        with mx.autograd.record():
            (g,) = mx.autograd.grad([nd.Dropout(x, p=p)], [x], [nd.ones_like(x) * 3], create_graph=True)
        counts.append(len(prepared))
    assert (g.asnumpy() == 3).all() and 0 < counts[4] == counts[-1]


def test_sequences_of_any_length(prepared):
    """A loop's number of steps is a size; its body is made ready once for all of them."""

    def states(data, first, weight):
        def step(x, state):
            state = nd.tanh(nd.dot(x, weight) + state)
            return state * x.shape[0], state

        found, last = nd.contrib.foreach(step, data, first)
        return found.sum(axis=0) + last

    def results(function, given):
        for a in given:
            a.attach_grad()
        with mx.autograd.record():
            y = function(*given)
        y.backward(head)
        return [a.asnumpy() for a in (y, *(a.grad for a in given))]

    head = nd.array(RNG.normal(size=(18, 21)), dtype="float64")
    compiled, counts = mx.graph.compiled(states), []
    for steps in (7, 0, 1, 3, 20, 11, 5, 40, 2):
        given = [nd.array(RNG.normal(size=s), dtype="float64") for s in ((steps, 18, 19), (18, 21), (19, 21))]
        first = given[1].asnumpy()  # the loop on arrays asks its first step what it returns
        wanted = results(states, given) if steps else [first, given[0].asnumpy(), head.asnumpy(), np.zeros((19, 21))]
        before = len(prepared)
        for a, b in zip(results(compiled, given), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
        counts.append(len(prepared) - before)
    assert counts[0] > 0 == sum(counts[5:])  # many rows together are computed otherwise


@pytest.mark.parametrize("integers", [False, True])
def test_a_call_that_failed_does_not_make_others_anew(integers, prepared):
    """The same operator with other sizes, or other integers, after a mistake in one of them."""
    counts = []
    for n in (20, 21, 22, 23, *range(30, 40)):
        with pytest.raises(mx.MXNetError):
            nd.topk(nd.ones((2, 19)), k=n + 200, axis=1) if integers else nd.linalg.gemm2(nd.ones((n, 70)), nd.ones((71, n)))
        before = len(prepared)
        nd.topk(nd.ones((2, 99)), k=n, axis=1) if integers else nd.linalg.gemm2(nd.ones((n, 70)), nd.ones((70, n + 100)))
        counts.append(len(prepared) - before)
    assert sum(counts[:3]) > 0 == sum(counts[3:])


LOOKED_UP = {
    "set": lambda x: x * (2.0 if x.shape[0] in {4, 8} else 1.0),
    "dictionary": lambda x: x * {4: 2.0, 8: 3.0}.get(x.shape[0], 1.0),
    "cache": lambda x: x * lru_cache(lambda n: 2.0 if n == 4 else 1.0)(x.shape[0]),
    "text": lambda x: x * {"(4, 2)": 2.0}.get(str(x.shape), 1.0),
    "different sizes": lambda x: x * float(len({*x.shape})),
}


@pytest.mark.parametrize("how", LOOKED_UP)
@pytest.mark.parametrize("compiled", [True, False])
def test_sizes_that_a_function_looks_up_decide(how, compiled, request):
    """Hashes and texts are those of the value."""
    function = LOOKED_UP[how]
    if compiled:
        called = mx.graph.compiled(function)
    else:
        called = mx.op.composite(lambda F, x: function(x), name="looked_up_by_a_test")
        request.addfinalizer(lambda: mx.op.unregister("looked_up_by_a_test"))
    for n in (3, 4, 5, 8, 9, 4, 2):
        x = np.ones((n, 2), "float32")
        np.testing.assert_array_equal(called(nd.array(x)).asnumpy(), function(x))


def test_what_a_function_asks_decides():
    calls = []

    @mx.graph.compiled
    def function(x):
        calls.append(x)
        return x * 2 if x.shape[0] % 3 else x.sum(axis=0)

    for n in [*range(2, 40), *range(2, 40)]:
        x = nd.array(RNG.integers(-9, 10, size=(n, 3)))  # whose sums are exact in any order
        expected = x.asnumpy() * 2 if n % 3 else x.asnumpy().sum(0)
        np.testing.assert_array_equal(function(x).asnumpy(), expected)
    assert len(calls) <= 10


FIRST_CALLS = """
import mxop as mx
traced = []

@mx.graph.compiled
def function(x, gamma, beta):
    traced.append(x.shape)
    return mx.nd.LayerNorm(x, gamma, beta)

gamma, beta = mx.nd.ones(4), mx.nd.zeros(4)
for n in (20, 20, 30):
    function(mx.nd.ones((n, 4)), gamma, beta)

@mx.op.elementwise
def never_seen_before(x):
    return x + 1

function(mx.nd.ones((40, 4)), gamma, beta)
print(len(traced))
"""


def test_operators_with_new_names_leave_plans_alone():
    """The first call loads parts of the package that register operators; so does a user between calls."""
    assert run_python(FIRST_CALLS) == "1"


def test_a_first_layer_loads_no_symbols_and_reads_few_signatures():
    told = run_python("""
import sys
import mxop as mx
mx.nd.LayerNorm(mx.nd.ones((20, 4)), mx.nd.ones(4), mx.nd.zeros(4)).wait_to_read()
print("mxop.symbol" in sys.modules, sum("spec" in vars(op) for op in mx.op.operators()) < 100)
""")
    assert told == "False True"


def test_numbers_that_sizes_are_made_into():
    @mx.graph.compiled
    def function(x):
        n = x.shape[0]
        return x * (n / 3 + 0.25) + n**2 - (n + 7) % 5 + nd.ones_like(x) * (n // 2)

    for n in range(2, 30):
        x = nd.array(RNG.normal(size=(n, 3)), dtype="float64")
        expected = x.asnumpy() * (n / 3 + 0.25) + n**2 - (n + 7) % 5 + n // 2
        np.testing.assert_allclose(function(x).asnumpy(), expected, rtol=1e-14)


def test_whole_numbers_that_sizes_are_made_into(prepared):
    """Rounding and bits give sizes; what numbers have besides is asked of the value."""

    def function(x):
        n, third = x.shape[0], x.shape[0] / 3
        whole = (math.trunc(third) + 2 * math.floor(-third) + 3 * math.ceil(third) + 4 * round(third) + round(n) + math.floor(n)
                 + (n & 6) + (n | 8) + (n ^ 5) + (n << 2) + (n >> 1) + (3 & n) + (1 << (n % 3)))  # fmt: skip
        return nd.broadcast_to(x[:1, 0], shape=(whole + 60,)) + round(third, 1)

    compiled, counts = mx.graph.compiled(function), []
    for n in range(17, 32):
        x = nd.ones((n, 2))
        np.testing.assert_allclose(compiled(x).asnumpy(), function(x).asnumpy(), rtol=1e-6)
        counts.append(len(prepared))
    assert 0 < counts[0] == counts[-1]
    lengths = mx.graph.compiled(lambda x: x * x.shape[0].bit_length() + (x.shape[1] / 3).is_integer())
    assert [lengths(nd.ones((n, 9 + n)))[0, 0].item() for n in (3, 4, 9)] == [3, 3, 5]
    with pytest.raises(AttributeError, match="'int' object has no attribute 'bits'"):
        mx.graph.compiled(lambda x: x * x.shape[0].bits)(x)


def test_counts_that_float16_does_not_hold():
    for n in (65000, 66000, 70000, 90000):
        x = nd.ones((n, 2), dtype="float16")
        assert nd.LayerNorm(x.T, nd.ones(n, dtype="float16"), nd.ones(n, dtype="float16")).asnumpy().tolist()[0][:2] == [1, 1]
        assert mx.graph.compiled(lambda x: nd.square(x).mean())(x).item() == 1


@pytest.mark.parametrize("name", ["LayerNorm", "InstanceNorm"])
def test_formulas_are_compiled_once_for_all_counts(name, monkeypatch, anew):
    calls = {
        "LayerNorm": lambda x, g: nd.LayerNorm(nd.log1p(x), g, g),
        "InstanceNorm": lambda x, g: nd.InstanceNorm(nd.arctan(x).expand_dims(2).tile((1, 1, x.shape[1])), g, g),
    }
    compiled = []
    for module in ("row_kernels", "prepare"):
        known = getattr(mx._core, module).compile_program
        monkeypatch.setattr(f"mxop._core.{module}.compile_program", lambda *a, k=known: compiled.append(a) or k(*a))
    function = mx.graph.compiled(calls[name])
    for n in (40, 41, 42):
        function(*arrays((20, n)))
    before = len(compiled)
    for n in range(43, 60):
        given = arrays((20, n))
        np.testing.assert_array_equal(function(*given).asnumpy(), planned_off(calls[name], given))
    assert before and len(compiled) == before


def planned_off(function, given):
    with mx.graph.planned(False):
        return function(*given).asnumpy()


def test_errors_are_the_same_after_other_sizes():
    @mx.graph.compiled
    def function(x, y):
        return nd.softmax(nd.broadcast_add(x, y))

    for n in (3, 4, 5):
        function(nd.ones((n, n + 2)), nd.ones((1, n + 2)))
    with pytest.raises(mx.MXNetError, match="shapes do not broadcast"):
        function(nd.ones((5, 4)), nd.ones((1, 3)))
    with pytest.raises(mx.MXNetError, match="shape"):
        nd.LayerNorm(nd.ones((5, 4)), nd.ones(3), nd.ones(4))
    for n in (3, 4, 5):
        nd.LayerNorm(nd.ones((5, n)), nd.ones(n), nd.ones(n))
    with pytest.raises(mx.MXNetError, match="shape"):
        nd.LayerNorm(nd.ones((5, 4)), nd.ones(3), nd.ones(4))


def test_composites_of_many_sizes_against_numpy():
    for shape in [*SIZES, *SIZES[::-1]]:
        x = RNG.normal(size=shape)
        e = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
        got = nd.softmax(nd.array(x, dtype="float64"), temperature=1 + shape[0] / 100).asnumpy()
        e = np.exp((x - x.max(-1, keepdims=True, initial=-np.inf)) / (1 + shape[0] / 100))
        np.testing.assert_allclose(got, e / e.sum(-1, keepdims=True), rtol=1e-12)


def test_threads_with_sizes_of_their_own():
    compiled, failed = mx.graph.compiled(normalized), []

    def work(start):
        for k in range(60):
            given = arrays((17 + start + 4 * k, 5 + k % 7))
            with mx.graph.planned(False):
                expected = normalized(*given).asnumpy()
            if not np.allclose(compiled(*given).asnumpy(), expected, rtol=1e-5, atol=1e-6):
                failed.append((start, k))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


def test_a_call_that_was_recorded_keeps_its_sizes():
    compiled = mx.graph.compiled(normalized)
    recorded = []
    for n in (18, 19, 25, 31):
        x, g = arrays((n, 6), "float64")
        x.attach_grad()
        with mx.autograd.record():
            recorded.append((x, g, compiled(x, g)))
    for x, g, y in recorded:
        y.backward(y)
        with mx.graph.planned(False):
            z = x.copy()
            z.attach_grad()
            with mx.autograd.record():
                y = normalized(z, g)
            y.backward(y)
        np.testing.assert_allclose(x.grad.asnumpy(), z.grad.asnumpy(), rtol=1e-10, atol=1e-12)


def test_many_sizes_keep_a_bounded_number_of_plans(kept):
    counts = []
    for n in range(2, 600):
        nd.LeakyReLU(nd.ones((n,)), act_type="gelu")
        counts.append(len(kept()))
    assert counts[:100] == [*range(1, 101)] and max(counts) < 500
