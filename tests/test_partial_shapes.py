"""Inference from shapes that are known in part: as much as MXNet finds, and nothing that full inference contradicts.

The questions and MXNet's answers are in ``data/partial_shapes.json`` (see ``mxnet_answers.py``).  Where MXNet's answer
itself contradicts the full shapes (an unknown input of ``Concat`` counts as empty there), or MXNet refuses to answer, only
the second is asked.
"""

import itertools
import random

import mxnet_answers as asked
import pytest

import mxop as mx
from mxop import sym
from mxop.opdef import infer

QUESTIONS = asked.read("partial_shapes.json")
GROUPS = {name: list(rows) for name, rows in itertools.groupby(QUESTIONS, key=lambda q: q[0][0] + " np" * q[3])}


def listed(found, np_shape):
    """Return the shapes of all inputs and outputs, None what is unknown."""
    return [None if s is None else infer.from_legacy(s, np_shape) for s in itertools.chain(*found)]


def truth_of(call, out):
    """Return all shapes of a call when those of its inputs are known."""
    full = call[2]
    whole = listed(asked.partial_shapes(mx, call, full, False), mx.is_np_shape())
    return [*whole[: len(full)], whole[-1], whole[-1]] if out is not False else whole


def includes(more, less):
    """Tell whether a shape says all that another says."""
    return less is None or (more is not None and infer.compatible(more, less) and infer.unify(more, less) == more)


@pytest.mark.parametrize("name", GROUPS)
def test_as_much_as_mxnet_finds(name):
    for call, given, out, np_shape, answer in GROUPS[name]:
        with mx.util.np_shape(np_shape):
            truth = truth_of(call, out)
            if out is not False and not infer.compatible(infer.from_legacy(out, np_shape), truth[-1]):
                continue  # MXNet's full sums have another shape under np_shape
            found = listed(asked.partial_shapes(mx, call, given, out), np_shape)
        assert all(map(infer.compatible, found, truth)), (call, given, out, found)
        expected = listed(answer, np_shape) if answer is not None else [None] * len(truth)
        for ours, theirs, true in zip(found, expected, truth, strict=True):
            assert includes(ours, theirs) or not infer.compatible(theirs, true), (call, given, out, found)


def test_most_questions_are_answered():
    """The exemptions above are few."""
    assert len(QUESTIONS) > 800 and sum(q[4] is not None for q in QUESTIONS) > 700


@pytest.mark.parametrize("call", [*asked.CALLS, *asked.LATER_CALLS], ids=lambda call: call[0])
def test_what_is_found_is_true_and_grows_with_what_is_given(call):
    rng = random.Random(1)
    truth = truth_of(call, False)
    for _ in range(12):
        given = [asked.hidden(rng, s, False) for s in call[2]]
        known = [tuple(s or d for s, d in zip(g, t, strict=False)) if g and rng.random() < 0.5 else g
                 for g, t in zip(given, call[2], strict=True)]  # fmt: skip
        less = listed(asked.partial_shapes(mx, call, given, False), False)
        more = listed(asked.partial_shapes(mx, call, known, False), False)
        assert all(map(infer.compatible, less, truth)) and all(map(includes, more, less)), (call, given, known)
    complete = listed(asked.partial_shapes(mx, call, call[2], False), False)
    assert all(map(infer.known, complete)) or call[0] == "_ones"


# ---- beyond MXNet ---------------------------------------------------------------------------------------------------
a, b, c = sym.Variable("a"), sym.Variable("b"), sym.Variable("c")

BEYOND = [
    (sym.batch_dot(a, b), {"a": (5, 2, 3)}, [(5, 2, 3), (5, 3, 0)], (5, 2, 0)),
    (sym.batch_dot(a, b), {"a": (0, 2, 0), "b": (5, 3, 0)}, [(5, 2, 3), (5, 3, 0)], (5, 2, 0)),
    (sym.dot(a, b), {"a": (2, 3), "b": (0, 4)}, [(2, 3), (3, 4)], (2, 4)),
    (sym.dot(a, b, transpose_b=True) + c, {"a": (0, 3), "b": (0, 0), "c": (2, 4)}, [(2, 3), (4, 3), (2, 4)], (2, 4)),
    (sym.tile(a, reps=(2, 3)), {"a": (0, 4)}, [(0, 4)], (0, 12)),
    (sym.tile(a, reps=(2, 3)) + b, {"a": (0, 4), "b": (6, 0)}, [(3, 4), (6, 12)], (6, 12)),
    (sym.repeat(a, repeats=2, axis=0) + b, {"b": (6, 0)}, [(3, 0), (6, 0)], (6, 0)),
    (sym.sum(a, axis=1) + b, {"a": (0, 3, 0), "b": (2, 4)}, [(2, 3, 4), (2, 4)], (2, 4)),
    (sym.argmax(a, axis=1), {"a": (0, 3)}, [(0, 3)], (0,)),
    (sym.broadcast_like(a, b), {"a": (1, 3), "b": (4, 0)}, [(1, 3), (4, 0)], (4, 3)),
    (sym.slice_axis(a, axis=1, begin=1, end=3), {"a": (0, 0)}, [(0, 0)], (0, 0)),
    (sym.where(a, b, c), {"b": (2, 3)}, [(), (2, 3), ()], ()),
    (sym.where(a, b, c), {"a": (2, 0), "b": (0, 3)}, [(2, 3)] * 3, (2, 3)),
    (sym.where(a, b, c), {"a": (0,), "b": (2, 3)}, [(2,), (2, 3), (2, 3)], (2, 3)),
    (sym.where(a, b, c), {"a": (2,), "b": (0, 3), "c": (0, 0)}, [(2,), (2, 3), (2, 3)], (2, 3)),
    (sym.where(a, b, c), {"a": (5,), "b": (0,)}, [(5,)] * 3, (5,)),
    (sym.where(a, b, c) * 1 + sym.Variable("d"), {"a": (0,), "d": (2, 3)}, [(2,), (2, 3), (2, 3), (2, 3)], (2, 3)),
]  # fmt: skip


@pytest.mark.parametrize(("symbol", "given", "arguments", "output"), BEYOND)
def test_sizes_are_found_one_by_one(symbol, given, arguments, output):
    assert symbol.infer_shape_partial(**given) == (arguments, [output], [])


def test_split_v2_knows_its_data_from_its_parts():
    parts = mx.sym.split_v2(a, (1, 3), axis=1)
    y = sym.Group([parts[0] + sym.Variable("p"), parts[1] + sym.Variable("q"), parts[2] + sym.Variable("r")])
    found = dict(zip(y.list_arguments(), y.infer_shape_partial(p=(0, 1), q=(2, 2), r=(0, 4))[0], strict=True))
    assert found["a"] == (2, 7) and found["r"] == (2, 4)
    equal = mx.sym.split_v2(a, 3)
    assert equal.infer_shape_partial(a=(0, 5)) == ([(0, 5)], [(0, 5)] * 3, [])


def test_what_is_given_is_completed_by_what_was_declared():
    y = sym.exp(sym.Variable("x", shape=(2, 0, 5)))
    assert y.infer_shape(x=(0, 3, 0)) == ([(2, 3, 5)], [(2, 3, 5)], [])
    assert y.infer_shape_partial(x=()) == ([(2, 0, 5)], [(2, 0, 5)], [])
    assert y.infer_shape(x=(7, 1)) == ([(7, 1)], [(7, 1)], [])  # over it, where they contradict


# ---- np_shape -------------------------------------------------------------------------------------------------------
def test_unknown_is_minus_one_and_none_under_np_shape():
    y = sym.exp(a)
    with mx.np_shape():
        assert y.infer_shape_partial(a=(-1, 3)) == ([(-1, 3)], [(-1, 3)], [])
        assert y.infer_shape_partial(a=(None, 3)) == ([(-1, 3)], [(-1, 3)], [])
        assert y.infer_shape_partial(a=None) == y.infer_shape_partial() == ([None], [None], [])
        assert y.infer_shape(a=(0, 3)) == ([(0, 3)], [(0, 3)], []) and y.infer_shape(a=()) == ([()], [()], [])
    assert y.infer_shape_partial(a=None) == y.infer_shape_partial(a=()) == ([()], [()], [])


@pytest.mark.parametrize(
    ("shape", "found"),
    [((0, 3), (-1, 3)), ((-1, 3), (-1, 3)), ((None, 3), (-1, 3)), ((), None), (None, None), ((2, 3), (2, 3))],
)
def test_unknown_sizes_of_a_file_stay_unknown_under_np_shape(shape, found):
    text = sym.exp(sym.Variable("x", shape=shape)).tojson()
    with mx.np_shape():
        loaded = sym.load_json(text)
        assert loaded.infer_shape_partial() == ([found], [found], [])
        again = sym.load_json(loaded.tojson())  # now it says that it was written under np_shape
        assert again.infer_shape_partial() == ([found], [found], []) and again.tojson() == loaded.tojson()


@pytest.mark.parametrize(("shape", "found"), [((0, 3), (0, 3)), ((-1, 3), (-1, 3)), ((), ()), ((2, 3), (2, 3))])
def test_sizes_of_a_file_of_np_shape_are_what_they_were(shape, found):
    with mx.np_shape():
        text = sym.exp(sym.Variable("x", shape=shape)).tojson()
        assert sym.load_json(text).infer_shape_partial() == ([found], [found], [])


def test_constants_of_unknown_size_stay_so_under_np_shape():
    text = (sym.zeros((0, 3)) + a).tojson()  # a state whose batch size is not known
    with mx.np_shape():
        assert sym.load_json(text).infer_shape(a=(2, 3)) == ([(2, 3)], [(2, 3)], [])


@pytest.mark.parametrize("make", [
    lambda: sym.FullyConnected(sym.zeros((0, 3)), num_hidden=4, name="f") + sym.slice_axis(a, axis=1, begin=0, end=4),
    lambda: sym.FullyConnected(a, num_hidden=3, name="f") * sym.exp(sym.zeros((0, 0))),
    lambda: sym.softmax(sym.ones((0, 5)) * 2) + a,
])  # fmt: skip
def test_constants_of_unknown_size_run_and_train(make):
    y, x = make(), mx.nd.arange(10).reshape((2, 5))
    executor = y.simple_bind(mx.cpu(), a=(2, 5))
    (out,) = executor.forward(is_train=True, a=x)
    executor.backward(mx.nd.ones_like(out))
    assert out.shape == y.infer_shape(a=(2, 5))[1][0] and executor.grad_dict["a"].shape == (2, 5)
    assert executor.forward(is_train=False, a=x)[0].shape == out.shape


def test_a_constant_of_unknown_size_is_an_output_too():
    state = sym.zeros((0, 3))
    executor = sym.Group([state, a + state]).simple_bind(mx.cpu(), a=(2, 3))
    executor.forward(is_train=True)
    executor.backward([mx.nd.ones((2, 3))] * 2)
    assert [out.shape for out in executor.outputs] == [(2, 3), (2, 3)]
    assert executor.grad_dict["a"].asnumpy().tolist() == [[1] * 3] * 2
