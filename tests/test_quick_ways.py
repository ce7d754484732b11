"""What small calls do in C is what the general way does: numbers, conversions, arrays of NumPy's, ranges, shapes."""

import ctypes
import functools

import numpy as np
import pytest

import mxop as mx
from mxop import nd
from mxop.op import Elementwise, kernel

FORMATS = "fdeBibq?l"
CODES = ("float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool")
NUMBERS = np.array([0, 1, -1, 1.5, -1.5, 300, -300, 3e9, -3e9, 1e20, np.nan, np.inf, -np.inf, 65504, 70000, 1e-8])


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("dtype", [None, "float64", "float16", "int32"])
def test_arrays_of_numpy(format_, dtype):
    with np.errstate(all="ignore"):
        a = (np.random.default_rng(0).normal(size=(3, 4, 5)) * 50).astype(format_)
        for view in (a, a[::2, ::-1], a.T, a[:, 1], a[0, 0, 0], a[:0], np.broadcast_to(a[0], (2, 4, 5))):
            want, got = view.astype(dtype or "float32"), nd.array(view, dtype=dtype).asnumpy()
            assert got.dtype == want.dtype and got.shape == want.shape
            np.testing.assert_array_equal(got, want)


def test_arrays_are_copies():
    a = np.zeros(3, "float32")
    x = nd.array(a)
    a[:] = 1
    assert x.asnumpy().tolist() == [0, 0, 0]
    host = x.asnumpy()
    x[:] = 2
    assert host.tolist() == [0, 0, 0]


def test_transposed_arrays_are_copies():
    a = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    for dtype in CODES:
        x = nd.array(a, dtype=dtype)
        for view in (
            x,
            x[::-1],
            x[:, 1:2],
            x[0],
            x[0, 0],
            x[0, 0, 0],
            x[:, :, ::2],
            x[:, None, :, None],
            nd.arange(240, dtype="int32").reshape((2, 6, 5, 4))[:, ::-1],
            nd.zeros((70, 80), dtype=dtype),
        ):
            want, found = view.asnumpy().T, view.T
            assert found.dtype == view.dtype and found.shape == want.shape and found.context == view.context
            np.testing.assert_array_equal(found.asnumpy(), want)
            np.testing.assert_array_equal(found.asnumpy(), nd.transpose(view).asnumpy())
    x = nd.array(a[0])
    y, x[:] = x.T, 7
    np.testing.assert_array_equal(y.asnumpy(), a[0].T)
    assert x.as_in_context(mx.cpu(1)).T.context == mx.cpu(1)


def test_a_recorded_transpose_has_a_gradient():
    x = nd.array([[1.0, 2.0], [3.0, 4.0]])
    x.attach_grad()
    with mx.autograd.record():
        y = (x.T * nd.array([[1.0, 2.0], [3.0, 4.0]])).T
    y.backward()
    assert x.grad.asnumpy().tolist() == [[1, 3], [2, 4]]


@pytest.mark.parametrize("given", [">f4", "u4", "c8", "M8[s]", "O"])
def test_buffers_of_other_kinds_take_the_general_way(given):
    a = np.zeros(2, given)
    if given in (">f4", "u4"):
        assert nd.array(a).asnumpy().tolist() == [0, 0]
    else:
        with pytest.raises(mx.MXNetError, match="array"):
            nd.array(np.array([None, "a"], object) if given == "O" else a)


@pytest.mark.parametrize("source", CODES)
@pytest.mark.parametrize("target", CODES)
def test_astype_is_cast(source, target):
    x = nd.array(NUMBERS if "float" in source else np.nan_to_num(NUMBERS) % 200, dtype=source)
    found, want = x.astype(target), nd.Cast(x, dtype=target)
    assert found.dtype == want.dtype and found is not x
    np.testing.assert_array_equal(found.asnumpy(), want.asnumpy())


def test_a_recorded_astype_has_a_gradient():
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with mx.autograd.record():
        y = (x.astype("float64") * 3).sum()
    y.backward()
    assert x.grad.asnumpy().tolist() == [3, 3]


@pytest.mark.parametrize("arguments", [(5,), (2, 9), (10, 0, -3), (0, 20, 7), (-4, 4, 2), (1,), (2**22, 2**22 + 9, 4)])
def test_ranges_of_integers(arguments):
    np.testing.assert_array_equal(nd.arange(*arguments).asnumpy(), np.arange(*arguments, dtype="float32"))


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("number", [0, 2, -1.5, 70000, 1e300])
@pytest.mark.parametrize("key", [slice(None), slice(1, 5), 3, (slice(None, None, 2),), (None, slice(2, 4)), ...])
def test_numbers_are_assigned(dtype, number, key):
    x, quick = nd.zeros((6,), dtype=dtype), nd.zeros((6,), dtype=dtype)
    try:
        mx.ndarray.indexing.setitem(x, key, number)
    except mx.MXNetError as problem:
        with pytest.raises(type(problem)):
            quick[key] = number
    else:
        quick[key] = number
        np.testing.assert_array_equal(quick.asnumpy(), x.asnumpy())


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize(
    "key", [np.s_[1:3, 2:4], np.s_[..., ::-2], np.s_[:, 1], np.s_[2, :, 5:1:-1], np.s_[:, None, 3:, 0], np.s_[1:]]
)
def test_numbers_are_assigned_to_blocks(dtype, key):
    x, wanted = nd.zeros((4, 5, 6), dtype=dtype), np.zeros((4, 5, 6), dtype)
    turned, wanted_turned = nd.zeros((6, 5, 4), dtype=dtype).T, np.zeros((6, 5, 4), dtype).T
    for there, here in ((x, wanted), (turned, wanted_turned)):
        there[key] = here[key] = 7
        np.testing.assert_array_equal(there.asnumpy(), here)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "key", [np.s_[1:3, :, 3:], np.s_[:, 2, 1:65], np.s_[1], np.s_[..., ::-1], np.s_[2, 3, 7:71], np.s_[::2, ::-2]]
)
def test_numbers_are_assigned_to_long_rows_and_nothing_beside(dtype, key):
    x, wanted = nd.zeros((4, 5, 77), dtype=dtype), np.zeros((4, 5, 77), dtype)
    x[key] = wanted[key] = -1.5
    np.testing.assert_array_equal(x.asnumpy(), wanted)


def test_writing_through_a_quick_way_is_seen():
    """By autograd, and refused where memory is read-only."""
    x, y = nd.ones((3,)), nd.ones((3,))
    x.attach_grad()
    with mx.autograd.record():
        z = x * y
    y[1] = 5
    with pytest.raises(mx.MXNetError, match="was changed after it was recorded, by an assignment"):
        z.backward()
    host = np.zeros(3, "float32")
    host.flags.writeable = False
    with pytest.raises(mx.MXNetError, match="read-only"):
        nd.from_numpy(host)[:] = 1


@pytest.mark.parametrize("dtype", CODES)
def test_the_only_element(dtype):
    x = nd.array([[3]], dtype=dtype)
    assert x.item() == 3 or dtype == "bool"
    assert type(x.item()) is type(x.asnumpy().item())
    assert type(x.asscalar()) is type(x.asnumpy()[0, 0]) and x.asscalar() == x.asnumpy()[0, 0]


@pytest.mark.parametrize("sizes", [(6, 4), (-1, 4), (24,), (2, -1, 2), (1, 24, 1), (24, 1, 1, 1, 1, 1, 1, 1)])
def test_plain_shapes(sizes):
    a = np.arange(24, dtype="float32")
    x = nd.array(a)
    for found in (x.reshape(sizes), x.reshape(*sizes), x.reshape(list(sizes))):
        np.testing.assert_array_equal(found.asnumpy(), a.reshape(sizes))
        assert found._shares_memory(x)
    t = nd.array(a.reshape(4, 6))._view((6, 4), (1, 6), 0)
    np.testing.assert_array_equal(t.reshape(sizes).asnumpy(), a.reshape(4, 6).T.reshape(sizes))


@pytest.mark.parametrize("sizes", [(5, -1), (7,), (-1, -1), (2**62, 2**62), (2**70,), (1.5,)])
def test_shapes_that_do_not_fit(sizes):
    with pytest.raises(mx.MXNetError):
        nd.zeros((24,)).reshape(sizes)


@pytest.mark.parametrize("size", [2**45, 2**50, 2**62])
def test_results_beyond_memory(size):
    for call in (nd.broadcast_to, lambda x, shape: nd.broadcast_axis(x, axis=0, size=shape[0])):
        with pytest.raises(mx.MXNetError, match=r"memory|too large"):
            call(nd.ones((1,)), shape=(size,))


def test_conversions_say_what_they_cannot():
    assert "Give the same elements another shape" in nd.NDArray.reshape.__doc__
    with pytest.raises(mx.MXNetError, match="dtype"):
        nd.zeros((2,)).astype("float128x")


# ---- calls like the last ones -------------------------------------------------------------------------------------------
def test_calls_that_differ_in_one_thing_are_told_apart():
    x, rows = nd.array([[1.0, 2.0], [3.0, 4.0]]), []
    for _ in range(3):  # the second and third time, all of them are among the latest
        rows.append([
            nd.slice_axis(x, axis=0, begin=0, end=1).shape, nd.slice_axis(x, axis=1, begin=0, end=1).shape,
            nd.slice_axis(x, begin=0, end=1, axis=1).shape, nd.slice_axis(x.T, axis=0, begin=1, end=2).asnumpy().tolist(),
            nd.concat(x, x, dim=0).shape, nd.concat(x, x, x, dim=0).shape, nd.concat(x, x, dim=1).shape,
            nd.argmax(x, axis=0).dtype, nd.argmax(x.astype("int32"), axis=1).shape, nd.sum(x, axis=1, keepdims=True).shape,
            nd.sum(x, axis=1, keepdims=False).shape, nd.topk(x, k=1).shape, nd.topk(x, k=2).shape,
        ])  # fmt: skip
    assert rows[0] == rows[1] == rows[2]
    assert rows[0][:3] == [(1, 2), (2, 1), (2, 1)] and rows[0][3] == [[2.0, 4.0]]
    assert rows[0][4:7] == [(4, 2), (6, 2), (2, 4)] and rows[0][9:] == [(2, 1), (2,), (2, 1), (2, 2)]


def test_views_of_what_lies_elsewhere_are_told_apart():
    a = np.arange(24.0).reshape(2, 3, 4)
    others = [a, a[::-1], a.transpose(2, 1, 0), a[:, :, ::2], a[0], a[:, 1], a.astype("int32"), a + 1, a[:1, :, :1]]
    arrays = [nd.array(b, dtype=b.dtype) for b in others]
    arrays += [arrays[0][::-1], arrays[0][:, :, ::2], arrays[0][:, 1], arrays[2].T, arrays[0][:1]]
    for x in (*arrays, *arrays[::-1]):
        b = x.asnumpy()
        for found, want in (
            (nd.transpose(x), b.T),
            (nd.expand_dims(x, axis=1), b[:, None]),
            (nd.flip(data=x, axis=0), b[::-1]),
        ):
            assert found.dtype == b.dtype
            np.testing.assert_array_equal(found.asnumpy(), want)
    x, y = arrays[0].copy(), arrays[0].copy()
    x.attach_grad()
    nd.transpose(y)
    with mx.autograd.record():
        z = nd.transpose(x)  # as the call before, which was not recorded
    z.backward(nd.array(a.T * 2, dtype="float64"))
    np.testing.assert_array_equal(x.grad.asnumpy(), a * 2)


def test_inputs_of_operators_that_take_any_number_are_counted():
    x = nd.ones((2,))
    with pytest.raises(mx.MXNetError, match="takes 1 inputs"):
        nd._internal._backward__contrib_sign_ste(x, x, x)
    with pytest.raises(mx.MXNetError, match="num_args=3 but 2 inputs"):
        nd.concat(x, x, dim=0, num_args=3)
    assert nd.concat(x, x, dim=0, num_args=2).shape == nd.concat(x, x, dim=0).shape == (4,)


OpFunction = type(nd.exp)  # one of its own has seen no other call
M, V = nd.array([[1.0, 2.0], [3.0, 4.0]]), nd.array([5.0, 6.0])
WRITTEN = [  # one operator's calls, which differ in how they are written, or in one thing
    ("slice", [((M, (0, 1), (2, 2)), {}), ((M, (0, 1)), {"end": (2, 2)}), ((M,), {"begin": [0, 1], "end": [2, 2]}),
               ((), {"data": M, "begin": (0, 1), "end": (2, 2)}), ((M, (0, True), (2, 2)), {}), ((M, (0, 1.0), (2, 2)), {}),
               ((M,), {"end": (2, 2), "begin": (0, 1)}), ((M,), {"begin": (0, None), "end": (2, 1)}), ((M, (0, 1)), {}),
               ((M, (0, 1), (2, 2)), {"end": (2, 2)}), ((M, (0, 1), V), {}), ((M, M), {"begin": (0, 1), "end": (2, 2)})]),
    ("FullyConnected", [((M, M, V), {"num_hidden": 2}), ((M,), {"weight": M, "bias": V, "num_hidden": 2}),
                        ((M, M, None, 2), {"no_bias": True}), ((M, M), {"no_bias": True, "num_hidden": 2}),
                        ((), {"bias": V, "data": M, "weight": M.T, "num_hidden": 2}), ((M, M), {"num_hidden": 2}),
                        ((M, M, V), {"weight": M, "num_hidden": 2}), ((M, M, V), {"no_bias": True, "num_hidden": 2}),
                        ((M, M, V), {"num_hidden": 2, "name": "fc"}), ((M, M, V), {"num_hidden": 2.0})]),
    ("broadcast_sub", [((M, V), {}), ((), {"lhs": M, "rhs": V}), ((), {"rhs": M, "lhs": V}), ((M,), {"rhs": V}),
                       ((M,), {"lhs": V}), ((V,), {"rhs": M, "lhs": None}), ((M, V), {"other": 1})]),
    ("LeakyReLU", [((-M, V), {"act_type": "prelu"}), ((-M,), {"gamma": V, "act_type": "prelu"}), ((-M,), {"act_type": "elu"}),
                   ((-M,), {"act_type": "elu", "slope": 0.5}), ((-M,), {"act_type": "elu", "slope": 1}), ((-M, V), {})]),
    ("clip", [((M, 2, 3), {}), ((M, 2.0, 3.0), {}), ((M,), {"a_min": 2, "a_max": 3}), ((M, 2), {"a_max": 3}), ((M, 2), {}),
              ((M, 2, 3), {"a_max": 3}), ((M, 2, 3, 4), {}), ((), {"data": M, "a_min": 2, "a_max": 3}), ((M, "2", 3), {})]),
    ("_div_scalar", [((M, 0.0), {}), ((M, -0.0), {}), ((M,), {"scalar": 0}), ((M,), {"scalar": 2}), ((M, True), {})]),
    ("Concat", [((M, M), {"dim": 0}), ((M, M, M), {"dim": 0}), ((M, M), {"dim": 1}), ((M, M), {"dim": 1, "num_args": 2}),
                ((M, M), {"dim": 1, "num_args": 3}), (([M, M],), {"dim": True}), ((M,), {"dim": 0})]),
    ("sum", [((M,), {}), ((M, 0), {}), ((M, (0,)), {}), ((M, None, True), {}), ((M,), {"axis": 1, "out": nd.zeros((2,))}),
             ((M,), {"axis": 1, "out": nd.ones((2,))}), ((M,), {"axis": 1, "out": None}), ((M,), {"axis": "1"}),
             ((M,), {"axis": 1, "out": nd.zeros((3,))}), ((M,), {"axis": 1, "out": [nd.zeros((2,))]})]),
    ("Cast", [((M,), {"dtype": "int32"}), ((M,), {"dtype": np.int32}), ((M,), {"dtype": np.dtype("int8")}), ((M, "int64"), {}),
              ((M,), {"dtype": int}), ((M,), {"dtype": "nothing"})]),
]  # fmt: skip


def _outcome(function, args, kwargs):
    try:
        found = function(*args, **kwargs)
    except mx.MXNetError as problem:
        return type(problem), str(problem)
    if isinstance(kwargs.get("out"), nd.NDArray):
        assert found is kwargs["out"]
    found = found if isinstance(found, list) else [found]
    return [(a.dtype, a.shape, np.signbit(a.asnumpy()).tolist(), a.asnumpy().tolist()) for a in found]


@pytest.mark.parametrize("name, calls", WRITTEN, ids=[name for name, _ in WRITTEN])
def test_a_call_is_what_it_is_alone_however_it_is_written(name, calls):
    op = mx.op.get(name)
    alone = [_outcome(OpFunction(op), *call) for call in calls]
    together, random = OpFunction(op), np.random.default_rng(0)
    for k in [*range(len(calls)), *random.integers(0, len(calls), 40 * len(calls))]:
        assert _outcome(together, *calls[k]) == alone[k], calls[k]
    assert sum(isinstance(found, list) for found in alone) > len(calls) // 3


def test_a_call_is_inferred_once_however_it_is_written(own):
    """The short way is taken: of calls alike, the first alone asks the rule for shapes."""
    asked = []

    @kernel
    def quick_way_counted(data, *, times: int = 1):
        """Copy the data."""

    quick_way_counted.shape(lambda data, times: asked.append(data) or (*data,))
    quick_way_counted.cpu(prepared=True)(lambda steps, inputs, outputs, times: steps.move(inputs[0], outputs[0]))
    own(quick_way_counted)
    f, x, y = nd.quick_way_counted, nd.ones((3, 4)), nd.zeros((3, 4))
    ways = [lambda: f(x), lambda: f(data=x), lambda: f(x, times=1), lambda: f(x, 1), lambda: f(y)]
    for _ in range(6):
        assert all(way().asnumpy().tolist() == (y if way is ways[-1] else x).asnumpy().tolist() for way in ways)
    assert asked == [(3, 4)]
    for _ in range(3):
        f(x.T), f(x[:2]), f(x, times=2)
    assert sorted(asked) == [(2, 4), (3, 4), (3, 4), (4, 3)]


def test_inputs_by_name_are_whatever_array_comes():
    for k in range(5):
        x, w, out, wanted = nd.full((1, 2), k), nd.full((3, 2), 10 + k), nd.zeros((1, 3)), [[2.0 * k * (10 + k)] * 3]
        params = {"num_hidden": 3, "no_bias": True}
        assert nd.FullyConnected(weight=w, data=x, **params).asnumpy().tolist() == wanted
        assert nd.FullyConnected(data=x, weight=w, out=out, **params) is out
        assert out.asnumpy().tolist() == wanted
        with pytest.raises(mx.MXNetError, match="weight"):
            nd.FullyConnected(weight=k, data=x, **params)


def test_large_or_odd_parameters_are_read_each_time():
    x = nd.zeros((1,) * 2)
    for sizes in ([2, 3], [np.int64(2), 3], np.array([2, 3]), nd.array([2, 3], dtype="int64")):
        for _ in range(3):
            assert nd.broadcast_to(x, shape=sizes).shape == (2, 3)
    deep = ()
    for _ in range(100_000):
        deep = (deep,)
    for _ in range(3):
        with pytest.raises(mx.MXNetError):
            nd.broadcast_to(x, shape=deep)
        with pytest.raises(mx.MXNetError):
            nd.broadcast_to(x, shape=(1,) * 1000)


def test_parameters_that_change_are_read_each_time():
    x, shape, begin = nd.zeros((1, 3)), [2, 3], [0, 0]
    assert nd.broadcast_to(x, shape=shape).shape == (2, 3)
    shape[0] = 5
    assert nd.broadcast_to(x, shape=shape).shape == (5, 3)
    assert nd.slice(x, begin=begin, end=(1, 2)).shape == (1, 2)
    begin[1] = 1
    assert nd.slice(x, begin=begin, end=(1, 2)).shape == (1, 1)


def test_the_meaning_of_shapes_is_that_of_the_thread():
    x = nd.array([1.0, 2.0])
    for _ in range(2):
        assert nd.sum(x).shape == nd.argmax(x, axis=0).shape == (1,)
        with mx.np_shape(True):
            assert nd.sum(x).shape == nd.argmax(x, axis=0).shape == ()


def test_an_operator_that_is_replaced_is_another_one():
    x, found = nd.array([1.0, 2.0]), []
    for count in (1, 2):

        @kernel(name="quick_way_replaced", override=True)
        def replaced(data):
            """Repeat the data."""

        replaced.shape(lambda data, count=count: (count, *data))
        replaced.view(lambda shape, strides, count=count: ((count, *shape), (0, *strides), 0))
        found += [nd.quick_way_replaced(x).shape for _ in range(2)]
    held = nd.quick_way_replaced
    replaced.shape(lambda data: (3, *data))
    replaced.view(lambda shape, strides: ((3, *shape), (0, *strides), 0))
    assert [held(x).shape for _ in range(2)] == [(3, 2), (3, 2)]
    mx.op.unregister("quick_way_replaced")
    assert found == [(1, 2), (1, 2), (2, 2), (2, 2)]


@pytest.mark.parametrize("dtype", [None, "float64", "int32"])
def test_lists_of_numbers_become_what_numpy_makes_of_them(dtype):
    for given in (
        [1, 2.5, -0.0],
        [True, False],
        [[1, 2], [3, 4]],
        [2**53 + 1, 3],
        [float("nan"), float("inf"), 1e300],
        [7],
    ):
        if dtype == "int32" and any(isinstance(v, float) for v in given):
            continue
        with np.errstate(all="ignore"):
            want = np.array(given).astype(dtype or "float32")
        found = nd.array(given, dtype=dtype).asnumpy()
        assert found.dtype == want.dtype and np.array_equal(found, want, equal_nan=True), given
        assert np.array_equal(np.signbit(found), np.signbit(want))
    with mx.cpu(1):
        made = [
            nd.array([1.0]),
            nd.array(np.ones(2, "f4")),
            nd.zeros((2,)),
            nd.ones((2,)),
            nd.full((2,), 2.0),
            nd.arange(3),
        ]
        assert {str(a.context) for a in made} == {"cpu(1)"}
    with mx.cpu(0):
        assert str(nd.zeros((2,)).context) == "cpu(0)"


def test_numpy_arrays_are_copied_whatever_their_order():
    x = np.arange(10, dtype="f4")
    for given in (x, x[::2], x[::-1], x[:0], x.reshape(2, 5).T, x.astype("f8")):
        found = nd.array(given)
        assert np.array_equal(found.asnumpy(), given.astype("f4"))
    made = nd.array(x)
    x[0] = 9
    assert made.asnumpy()[0] == 0


# ---- results where they are asked for -----------------------------------------------------------------------------------
FORMULAS = [
    op
    for op in mx.op.operators(hidden=False)
    if isinstance(op, Elementwise) and op.module.startswith("mxop.ops") and 1 <= len(op.arguments) <= 3
    and not any(p.required for p in op.spec.params) and not op.writes
    and op.num_outputs(op.parse({}), len(op.arguments)) == 1
]  # fmt: skip


@pytest.mark.parametrize("op", FORMULAS, ids=lambda op: op.name)
def test_out_is_what_a_call_returns(op):
    rng = np.random.default_rng(3)
    n = len(op.arguments)
    memory = nd.array(rng.uniform(0.1, 0.9, size=(4 * n + 2)))
    function = OpFunction(op)
    inputs = [memory[4 * k : 4 * k + 4] for k in range(n)]
    want = function(*inputs)
    want, before = want.asnumpy(), memory.asnumpy()
    for start in range(4 * n - 1):  # over inputs, over parts of them, and beside them
        memory[:] = nd.array(before)
        out = memory[start : start + 4]
        found = function(*inputs, out=out)
        assert found is out
        np.testing.assert_array_equal(out.asnumpy(), want)
        before_elsewhere = np.delete(before, slice(start, start + 4))
        np.testing.assert_array_equal(np.delete(memory.asnumpy(), slice(start, start + 4)), before_elsewhere)


def test_small_calls_write_into_arrays_in_place():
    x, y = nd.array([1.0, 2.0, 3.0]), nd.array([10.0, 20.0, 30.0])
    same, view = x, x[:2]
    x += y
    x *= 2
    x[:2] -= y[1:]
    assert x is same and x.asnumpy().tolist() == [2, 14, 66] and view.asnumpy().tolist() == [2, 14]
    x[1:] += x[:2]  # neighbours, which were read before
    assert x.asnumpy().tolist() == [2, 16, 80]


def test_small_calls_do_not_write_what_they_must_not():
    x, y = nd.array([1.0, 2.0, 3.0]), nd.array([1.0, 2.0, 3.0])
    for out, message in (
        (nd.zeros(4), "out has shape"), (nd.zeros(3, dtype="float64"), "out has dtype"), (nd.zeros((3, 1)), "out has shape"),
    ):  # fmt: skip
        with pytest.raises(mx.MXNetError, match=message):
            nd.broadcast_add(x, y, out=out)
        assert not out.asnumpy().any()
    fixed = np.zeros(3, "float32")
    fixed.flags.writeable = False
    out = nd.from_numpy(fixed, zero_copy=True)
    with pytest.raises(mx.MXNetError, match="read-only"):
        nd.exp(x, out=out)
    y.attach_grad()
    with mx.autograd.record():
        z = y * 2
        with pytest.raises(mx.MXNetError, match="recorded"):
            z += x
        written = nd.zeros(3)
        nd.exp(z, out=written)
    written.backward()
    np.testing.assert_allclose(y.grad.asnumpy(), 2 * np.exp(2 * y.asnumpy()), rtol=1e-6)
    np.testing.assert_allclose(written.asnumpy(), np.exp(2 * y.asnumpy()), rtol=1e-6)


def test_a_saved_array_that_is_changed_in_place_is_found_out():
    x, y = nd.array([1.0, 2.0]), nd.array([3.0, 4.0])
    x.attach_grad()
    with mx.autograd.record():
        z = x * y
    y += 1
    with pytest.raises(mx.MXNetError, match="changed"):
        z.backward()


def test_keyword_arguments_stay_the_callers():
    x, given = nd.array([1.0, 2.0, 3.0]), {"a_min": 1.5, "a_max": 2.5, "out": None, "name": "n"}
    before, call = dict(given), ctypes.pythonapi.PyObject_Call  # which hands on the very dictionary
    call.restype, call.argtypes = ctypes.py_object, [ctypes.py_object] * 3
    for _ in range(2):
        for function in (nd.clip, functools.partial(nd.clip), nd.clip.__call__):
            assert function(x, **given).asnumpy().tolist() == [1.5, 2, 2.5]
            assert call(function, (x,), given).asnumpy().tolist() == [1.5, 2, 2.5]
            assert given == before


@pytest.mark.parametrize("n", [2049, 5000, 16384, 16385])
@pytest.mark.parametrize("name", ["smooth_l1", "softsign", "quadratic", "tanh"])
def test_a_call_of_several_blocks_gives_the_bits_of_its_parts(name, n):
    call = mx.nd.contrib.quadratic if name == "quadratic" else getattr(mx.nd, name)
    symbol = mx.sym.contrib.quadratic if name == "quadratic" else getattr(mx.sym, name)
    given = {"a": 2.0, "b": -3.0, "c": 0.5} if name == "quadratic" else {}
    x = mx.nd.array(np.random.default_rng(n).standard_normal(n) * 3, dtype="float32")
    parts = np.concatenate([call(x[k : k + 100], **given).asnumpy() for k in range(0, n, 100)])
    executor = symbol(mx.sym.Variable("x"), **given).bind(mx.cpu(), {"x": x})
    assert np.array_equal(call(x, **given).asnumpy(), parts)
    assert np.array_equal(executor.forward()[0].asnumpy(), parts)


@pytest.mark.parametrize("row_dtype", ["float32", "float16"])
@pytest.mark.parametrize("columns", [1, 2, 63, 300, 1023, 1024, 1025, 2048, 3001])
def test_rows_that_come_again_are_those_of_numpy(columns, row_dtype):
    """Short ones are loaded once for many blocks, long ones are read where they lie."""
    rng = np.random.default_rng(columns)
    rows = 70_000 // columns + 3
    x, row, column = (rng.normal(size=s).astype("float32") for s in ((rows, columns), (columns,), (rows, 1)))
    row = row.astype(row_dtype).astype("float32")
    given = [mx.nd.array(a) for a in (x, row, column)]
    given[1] = given[1].astype(row_dtype)
    data, scale, shift = mx.sym.var("data"), mx.sym.var("scale"), mx.sym.var("shift")
    if row_dtype == "float32":
        np.testing.assert_array_equal(mx.nd.broadcast_add(given[0], given[1]).asnumpy(), x + row)
        np.testing.assert_array_equal(mx.nd.broadcast_mul(given[1], given[0][1:]).asnumpy(), row * x[1:])
        out = mx.nd.ones((rows, columns))
        mx.nd.broadcast_add(given[0], given[1], out=out)
        np.testing.assert_array_equal(out.asnumpy(), x + row)
    scaled = mx.sym.broadcast_mul(data, mx.sym.cast(scale, "float32"))
    made = mx.sym.relu(mx.sym.broadcast_add(scaled, shift))
    bound = made.bind(mx.cpu(), dict(zip(("data", "scale", "shift"), given, strict=True)), grad_req="null")
    np.testing.assert_array_equal(bound.forward()[0].asnumpy(), np.maximum(x * row + column, np.float32(0)))
    deep = mx.nd.broadcast_add(given[0].reshape((1, rows, columns)).tile((2, 1, 1)), mx.nd.array(x)).asnumpy()
    np.testing.assert_array_equal(deep, np.stack([x, x]) + x)


@pytest.mark.parametrize(
    "call",
    [
        lambda zero: nd.one_hot(nd.array([0]), 2, off_value=zero),
        lambda zero: nd.pad(nd.ones((1, 1, 1, 1)), mode="constant", pad_width=(0,) * 7 + (1,), constant_value=zero),
        lambda zero: nd.SequenceMask(nd.ones((2, 1)), nd.array([1]), use_sequence_length=True, value=zero),
        lambda zero: nd._internal._full(shape=(2,), value=zero),
    ],
)
def test_zeros_of_both_signs_are_two_parameters(call):
    """They are equal: the second call was prepared as the first one."""
    for zero in (-0.0, 0.0, -0.0):
        assert np.signbit(call(zero).asnumpy().ravel()[-1]) == np.signbit(zero)
