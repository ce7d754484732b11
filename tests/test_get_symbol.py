"""``autograd.get_symbol`` of whatever was recorded: operators, plans, gradients."""

import json
from itertools import permutations

import numpy as np
import pytest
from test_ops import EXEMPT, OPERATORS

import mxop as mx
from mxop import autograd, nd
from mxop.check import cases, find_record
from mxop.errors import MXNetError


def same_again(y, arrays):
    """Compare a recorded array with its symbol, written, read, and bound with the arrays in the order that fits."""
    symbol = mx.sym.load_json(autograd.get_symbol(y).tojson())
    names = symbol.list_inputs()
    assert names and all(name.startswith("var") for name in names)
    states = symbol.list_auxiliary_states()
    problem = None
    for given in permutations(arrays, len(names)):
        chosen = {name: a.detach().copy() for name, a in zip(names, given, strict=True)}
        args = {name: a for name, a in chosen.items() if name not in states}
        try:
            executor = symbol.bind(mx.cpu(), args, aux_states={name: chosen[name] for name in states})
            found = executor.forward(is_train=autograd.is_training())[0].asnumpy()
        except MXNetError as error:  # of arrays that do not fit
            problem = error
            continue
        if found.shape == y.shape and np.allclose(found, y.asnumpy(), rtol=1e-5, atol=1e-6, equal_nan=True):
            return symbol
    raise AssertionError(f"the symbol with {names} computes something else ({problem})")


def recordable(name):
    op = mx.op.get(name)
    return name not in EXEMPT and find_record(op) is not None


@pytest.mark.parametrize("name", [n for n in OPERATORS if recordable(n)])
def test_every_operator(name):
    op = mx.op.get(name)
    tried = 0
    for case in cases.cases(op, find_record(op), np.random.default_rng(0)):
        if case.random or not case.variables or len(case.shapes) > 6:
            continue
        arrays = case.arrays(case.sample("float32" if "f" in find_record(op).dtypes else "float64"))
        for k in case.variables:
            arrays[k].attach_grad()
        before = [a.copy() for a in arrays]  # a call may change states
        with autograd.record(train_mode=bool(case.train)):
            outputs = case.call(arrays)
            for y in outputs[: op.num_visible_outputs(case.attrs, len(arrays))]:
                if y.size:
                    same_again(y, before)
                    tried += 1
        if tried > 3:
            break
    assert tried or not _may_be_recorded(op)


def _may_be_recorded(op):
    found = cases.cases(op, find_record(op), np.random.default_rng(0))
    return any(case.variables and not case.random and len(case.shapes) <= 6 for case in found)


def test_programs():
    x, w = nd.array(np.random.default_rng(0).random((3, 4))), nd.array(np.random.default_rng(1).random((4, 4)))
    x.attach_grad()
    w.attach_grad()
    net = mx.graph.compiled(lambda a, b: (nd.softmax(nd.dot(a, b)) * 2, a.sum()))
    with autograd.record():
        h = nd.softmax(nd.dot(nd.log_softmax(x, axis=1), w) + x[:, ::-1])
        h = h.astype("float64").copyto(nd.zeros((3, 4), dtype="float64")).as_in_context(mx.cpu(1)).astype("float32")
        first = nd.LayerNorm(h, nd.ones(4), nd.zeros(4)).sum(axis=0)
        both = net(x, w)
        (slope,) = autograd.grad(nd.softmax(nd.dot(x, w)) ** 2, [x], create_graph=True)
    assert len(autograd.get_symbol(first).list_arguments()) == 4  # and the constants
    same_again(h, [x, w])
    same_again(both[0], [x, w])
    same_again(both[1], [x, w])
    found = autograd.get_symbol(slope)
    assert len(found.list_arguments()) <= 3  # the head gradient may be one
    same_again(slope, [x, w, nd.ones((3, 4))])
    names = [node["name"] for node in json.loads(found.tojson())["nodes"]]
    assert len(set(names)) == len(names)


def test_a_function_of_the_user_is_refused():
    class Mine(autograd.Function):
        def forward(self, x):
            return x * 2

        def backward(self, dy):
            return dy * 2

    x = nd.ones(2)
    x.attach_grad()
    with autograd.record():
        y = nd.softmax(Mine()(x))
    with pytest.raises(MXNetError, match="Mine is a Function of the user, not an operator"):
        autograd.get_symbol(y)
