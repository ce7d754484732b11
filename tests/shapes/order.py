"""Sorting, the largest elements, and running sums, along any axis; lengths around networks, digits and blocks."""

import numpy as np

from .drawing import operator
from .reference import linear, moved


def _lines(draw):
    """Return a shape and an axis, which is long more often than others."""
    shape = draw.shape(1, 4, empty=0)
    axis = draw.axis(len(shape))
    if draw.flag(0.5):
        k = int(np.argmax(shape))
        axis = k if draw.flag() else k - len(shape)
    return shape, axis


def _data(draw, shape):
    """Return elements that are all different, or of few values."""
    if draw.flag(0.3):
        data = draw.whole(-9, 9, shape, "float32")
        data.fixed = False
        return data, ("float32", "float64")
    data = draw.distinct(*shape)
    return data, ("float32", "float64", "float16") if data.values.size < 2048 else ("float32", "float64")


def _order(x, axis, ascending):
    return np.argsort(x if ascending else -x, axis, kind="stable")


def sort(draw):
    shape, axis = _lines(draw)
    axis, ascending = None if draw.flag(0.1) else axis, draw.flag()
    data, types = _data(draw, shape)

    def sorted_(x):
        x, k = (x.reshape(-1), 0) if axis is None else (x, axis)
        at = _order(x.data, k, ascending)
        return moved(x, lambda a: np.take_along_axis(a, at, k))

    return operator("sort", [data], sorted_, axis=axis, is_ascend=ascending, dtypes=types)


def argsort(draw):
    shape, axis = _lines(draw)
    ascending = draw.flag()
    data, types = _data(draw, shape)
    return operator("argsort", [data], lambda x: _order(x.data, axis, ascending), axis=axis, is_ascend=ascending,
                    dtype=draw.pick(["float32", "int32", "int64"]), dtypes=types, differentiable=False)  # fmt: skip


def topk(draw):
    shape, axis = _lines(draw)
    n, ascending = shape[axis], draw.flag()
    k, kind = draw.pick([1, min(n, 5), draw.integer(1, n), n, 0]), draw.pick(["value", "indices", "mask", "both"])
    data, types = _data(draw, shape)

    def largest(x):
        at = np.take(_order(x.data, axis, ascending), range(k or n), axis)
        if kind == "indices":
            return at
        if kind == "mask":
            found = np.zeros(shape)
            np.put_along_axis(found, at, 1, axis)
            return found
        values = moved(x, lambda a: np.take_along_axis(a, at, axis))
        return values if kind == "value" else [values, at]

    return operator("topk", [data], largest, axis=axis, k=k, ret_typ=kind, is_ascend=ascending, dtype="int64", dtypes=types,
                    differentiable=kind == "value", tags=[kind])  # fmt: skip


def cumsum(draw):
    shape, axis = _lines(draw)
    axis = None if draw.flag(0.2) else axis

    def sums(x):
        x, k = (x.reshape(-1), 0) if axis is None else (x, axis)
        return linear(x, lambda a: a.cumsum(k), lambda h: np.flip(np.flip(h, k).cumsum(k), k))

    return operator("cumsum", [draw.real(*shape)], sums, axis=axis)


MAKERS = [sort, argsort, topk, topk, cumsum, cumsum]
