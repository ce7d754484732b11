"""How tests compare arrays where NumPy's own comparisons do not look, and how they ask which path a call takes."""

import numpy as np

import mxop as mx
from mxop import nd
from mxop._core import core

NULL, WRITE, ADD = 0, 1, 3  # requests, as :func:`into` takes them


def heads(outputs):
    """Return output gradients that differ from element to element: equal ones hide elements that change places."""
    return [nd.array(np.random.default_rng(k).uniform(-1, 1, o.shape), dtype=o.dtype) for k, o in enumerate(outputs)]


def same_signs(have, want):
    """Zeros have the same signs; a NaN has none."""
    np.testing.assert_array_equal(np.signbit(have) & ~np.isnan(have), np.signbit(want) & ~np.isnan(want))


def steps_of(executor):
    """Return what runs for an executor, and by which path: see ``Row.steps``."""
    return [step for row in executor.explain() for step in row.steps]


def path_of(symbol, dtype="float32", **shapes):
    """Return what runs for a symbol of variables of these shapes, all of one type."""
    types = dict.fromkeys(shapes, dtype)
    return steps_of(symbol.simple_bind(mx.cpu(), grad_req="null", type_dict=types, **shapes))


def into(op, inputs, out, req=WRITE, attrs=None, **params):
    """Call an operator that writes its results, or adds them to what is there, as its calls in a graph do."""
    op = mx.op.get(op) if isinstance(op, str) else op
    return core.invoke_req(op, inputs, op.parse(params) if attrs is None else attrs, out, req)


def ops(symbol):
    """Return the operators of a symbol, in order."""
    return [n.op.name for n in mx.graph.Graph(symbol._entries).nodes if n.op is not None]


def evaluate(symbol, **arrays):
    """Return the first output of a symbol for these values of its variables."""
    return symbol.eval(**{k: nd.array(v) for k, v in arrays.items()})[0].asnumpy()


def stored(values, stype):
    """Return a sparse array of these values."""
    return nd.array(values).tostype(stype)
