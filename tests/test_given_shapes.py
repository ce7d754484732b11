"""Shapes in every form, wherever a shape is taken: one integer, tuple, list, array, NumPy's integers."""

import itertools

import numpy as np
import pytest

import mxop as mx
from mxop import nd, sym

a = sym.Variable("a")

TWO_BY_THREE = {
    "tuple": lambda: (2, 3), "list": lambda: [2, 3], "array": lambda: np.array([2, 3]),
    "small array": lambda: np.array([2, 3], "uint8"), "integers of NumPy": lambda: (np.int64(2), np.int8(3)),
    "NDArray": lambda: nd.array([2, 3], dtype="int64"), "range": lambda: range(2, 4), "generator": lambda: (i for i in (2, 3)),
}  # fmt: skip
SIX = {
    "int": lambda: 6, "integer of NumPy": lambda: np.int32(6), "array": lambda: np.array(6), "one": lambda: (6,),
    "array of one": lambda: np.array([6]), "NDArray of one": lambda: nd.array([6], dtype="int32"),
}  # fmt: skip
WRONG = [2.0, (2.0, 3), "ab", True, (True, 3), ((2, 3),), (2, "3"), np.array([2.0, 3]), np.array([[2, 3]]), {"a": 2}]


class Filled(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], nd.ones(out_data[0].shape))


NUMBERS = itertools.count()


def custom_op(shape):
    class FilledProp(mx.operator.CustomOpProp):
        def infer_shape(self, in_shape):
            return in_shape, [shape], []

        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Filled()

    name = f"test_given_shapes_{next(NUMBERS)}"  # what a class said before is remembered
    mx.operator.register(name)(FilledProp)
    return nd.Custom(nd.ones(1), op_type=name).shape


def custom(shape):
    op = mx.operator.Custom(lambda x: np.ones((2, 3) if np.size(shape) == 2 else 6, x.dtype), out_shape=shape,
                            out_dtype=lambda x: x, func_type="pyfunc")  # fmt: skip
    return op(nd.ones(1)).shape


def bound(shape):
    return a.simple_bind(mx.cpu(), a=shape).outputs[0].shape


TAKERS = {
    "nd.zeros": lambda s: nd.zeros(s).shape,
    "nd.ones": lambda s: nd.ones(s).shape,
    "nd.full": lambda s: nd.full(s, 7).shape,
    "nd.empty": lambda s: nd.empty(s).shape,
    "nd.reshape": lambda s: nd.reshape(nd.ones(6), shape=s).shape,
    "array.reshape": lambda s: nd.ones(6).reshape(s).shape,
    "array.reshape(shape=)": lambda s: nd.ones(6).reshape(shape=s).shape,
    "nd.broadcast_to": lambda s: nd.broadcast_to(nd.ones(1), shape=s).shape,
    "array.broadcast_to": lambda s: nd.ones(1).broadcast_to(s).shape,
    "nd.tile": lambda s: nd.tile(nd.ones(1), reps=s).shape,
    "array.tile": lambda s: nd.ones(1).tile(s).shape,
    "sym.zeros": lambda s: sym.zeros(s).infer_shape()[1][0],
    "sym.ones": lambda s: sym.ones(s).infer_shape()[1][0],
    "sym.full": lambda s: sym.full(s, 7).eval()[0].shape,
    "sym.reshape": lambda s: sym.reshape(a, shape=s).infer_shape(a=6)[1][0],
    "symbol.reshape": lambda s: a.reshape(s).infer_shape(a=6)[1][0],
    "symbol.broadcast_to": lambda s: a.broadcast_to(s).infer_shape(a=1)[1][0],
    "symbol.tile": lambda s: sym.load_json(a.tile(s).tojson()).infer_shape(a=1)[1][0],
    "infer_shape": lambda s: a.infer_shape(a=s)[0][0],
    "infer_shape by position": lambda s: a.infer_shape(s)[0][0],
    "infer_shape_partial": lambda s: a.infer_shape_partial(a=s)[0][0],
    "simple_bind": bound,
    "executor.reshape": lambda s: a.simple_bind(mx.cpu(), a=(3, 4)).reshape(a=s).outputs[0].shape,
    "Variable": lambda s: sym.Variable("v", shape=s).infer_shape()[0][0],
    "Variable in JSON": lambda s: sym.load_json(sym.Variable("v", shape=s).tojson()).infer_shape()[0][0],
    "optimize": lambda s: sym.exp(a).optimize(a=s).infer_shape(a=s)[0][0],
    "CustomOp": custom_op,
    "Custom": custom,
}


ASKED_TWICE = ("optimize", "Custom", "CustomOp")  # a generator is used up then


@pytest.mark.parametrize(
    ("taker", "form"),
    [(t, f) for t in TAKERS for f in TWO_BY_THREE if f != "generator" or t not in ASKED_TWICE],
)
def test_a_shape_of_two_sizes(taker, form):
    assert TAKERS[taker](TWO_BY_THREE[form]()) == (2, 3)


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("form", SIX)
def test_a_shape_of_one_size(taker, form):
    assert TAKERS[taker](SIX[form]()) == (6,)


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("number", range(len(WRONG)))
def test_what_is_no_shape(taker, number):
    TAKERS[taker]((2, 3))  # nothing equal that was parsed before is taken for it
    TAKERS[taker]((1, 3)) if "broadcast_to" in taker or taker in ("nd.tile", "array.tile") else None
    with pytest.raises(mx.MXNetError) as caught:
        TAKERS[taker](WRONG[number])
    assert isinstance(caught.value, (TypeError, ValueError))


@pytest.mark.parametrize("taker", [t for t in TAKERS if "reshape" not in t or t == "executor.reshape"])
def test_no_size_is_negative(taker):
    with pytest.raises(mx.MXNetError):
        TAKERS[taker]((-2, 3))


AXES = {
    "sum": (lambda s: nd.sum(nd.ones((2, 3, 4, 5)), axis=s).shape, (2, 5)),
    "x.sum": (lambda s: nd.ones((2, 3, 4, 5)).sum(axis=s).shape, (2, 5)),
    "transpose": (lambda s: nd.transpose(nd.ones((2, 3)), axes=np.asarray(s) - 1).shape, (2, 3)),
    "x.transpose": (lambda s: nd.ones((2, 3)).transpose(np.asarray(s) - 1).shape, (2, 3)),
    "s.transpose": (lambda s: a.transpose(np.asarray(s) - 1).infer_shape(a=(2, 3))[1][0], (2, 3)),
    "squeeze": (lambda s: nd.squeeze(nd.ones((2, 1, 1, 5)), axis=s).shape, (2, 5)),
    "slice": (lambda s: nd.slice(nd.ones((5, 5)), begin=s, end=(3, 5)).shape, (2, 3)),
    "flip": (lambda s: nd.flip(nd.ones((1, 2, 3, 4)), axis=s).shape, (1, 2, 3, 4)),
}


@pytest.mark.parametrize("name", AXES)
@pytest.mark.parametrize("form", [tuple, list, np.array, lambda s: nd.array(s, dtype="int64").asnumpy()])
def test_other_tuples_of_integers_too(name, form):
    call, expected = AXES[name]
    assert call(form((1, 2))) == expected


def test_a_shape_is_read_at_each_call():
    shape = np.array([2, 3])
    assert nd.reshape(nd.ones(6), shape=shape).shape == (2, 3)
    shape[:] = [3, 2]
    assert nd.reshape(nd.ones(6), shape=shape).shape == (3, 2)
    assert nd.reshape(nd.ones(6), shape=nd.array([6, 1], dtype="int32")).shape == (6, 1)
