"""The package's operators for `Value`s, by the names that programs of both use: ``program(Numpy, ...)`` is the reference."""

from types import SimpleNamespace

import numpy as np

from . import reference as r
from .reference import moved, value


def _foreach(body, data, states):
    several, outputs = isinstance(data, list), []
    for t in range((data[0] if several else data).shape[0]):
        found, states = body([d[t] for d in data] if several else data[t], states)
        outputs.append(found)
    if isinstance(outputs[0], list):
        return [r.stacked(each) for each in zip(*outputs, strict=True)], states
    return r.stacked(outputs), states


def _while_loop(cond, func, loop_vars, max_iterations):
    outputs, steps = [], 0
    while steps < max_iterations and np.all(cond(*loop_vars)):
        found, loop_vars = func(*loop_vars)
        outputs.append(found)
        steps += 1
    rest = [value(np.zeros(outputs[0].shape))] * (max_iterations - steps)
    return r.stacked([*outputs, *rest]), loop_vars


def _axes(x, axis):
    return tuple(a % x.ndim for a in np.atleast_1d(axis))


class Numpy:
    """Operators in NumPy."""

    sin, tanh, exp, sigmoid, relu = map(staticmethod, (r.sin, r.tanh, r.exp, r.sigmoid, r.relu))
    contrib = SimpleNamespace(foreach=_foreach, while_loop=_while_loop,
                              cond=lambda pred, then, otherwise: then() if np.all(pred) else otherwise())  # fmt: skip

    @staticmethod
    def square(x):
        return x * x

    @staticmethod
    def broadcast_add(x, y):
        return x + y

    @staticmethod
    def broadcast_sub(x, y):
        return x - y

    @staticmethod
    def broadcast_mul(x, y):
        return x * y

    @staticmethod
    def sum(x, axis, keepdims=False):
        return x.sum(_axes(x, axis), keepdims)

    @staticmethod
    def max(x, axis, keepdims=False):
        return r.extreme(x, _axes(x, axis), keepdims)

    @staticmethod
    def mean(x, axis, keepdims=False):
        return x.mean(_axes(x, axis), keepdims)

    @staticmethod
    def softmax(x, axis):
        e = r.exp(x - value(x.data.max(axis, keepdims=True)))
        return e / e.sum((axis % x.ndim,), True)

    @staticmethod
    def dot(x, y):
        return r.einsum("mk,kn->mn", x, y)

    @staticmethod
    def cumsum(x, axis):
        return r.linear(x, lambda a: a.cumsum(axis), lambda h: np.flip(np.flip(h, axis).cumsum(axis), axis))

    @staticmethod
    def sort(x, axis):
        at = np.argsort(x.data, axis, kind="stable")
        return moved(x, lambda a: np.take_along_axis(a, at, axis))

    @staticmethod
    def slice_axis(x, axis, begin, end):
        return x[(slice(None),) * (axis % x.ndim) + (slice(begin, end),)]

    @staticmethod
    def slice(x, begin, end, step=()):
        return x[tuple(map(slice, begin, end, step or (None,) * len(begin)))]

    @staticmethod
    def slice_like(x, like):
        return x[tuple(map(slice, like.shape))]

    @staticmethod
    def Crop(x, h_w, offset, num_args=1):
        return x[:, :, offset[0] : offset[0] + h_w[0], offset[1] : offset[1] + h_w[1]]

    @staticmethod
    def reshape(x, shape):
        return x.reshape(shape)

    @staticmethod
    def expand_dims(x, axis):
        return moved(x, lambda a: np.expand_dims(a, axis))

    @staticmethod
    def squeeze(x, axis):
        return moved(x, lambda a: a.squeeze(axis))

    @staticmethod
    def flip(x, axis):
        return moved(x, lambda a: np.flip(a, axis))

    @staticmethod
    def transpose(x, axes):
        return x.transpose(*axes)

    @staticmethod
    def broadcast_to(x, shape):
        return moved(x, lambda a: np.broadcast_to(a, shape))

    @staticmethod
    def concat(*xs, dim):
        return r.joined(xs, dim)

    @staticmethod
    def split(x, num_outputs, axis):
        n = x.shape[axis] // num_outputs
        return [Numpy.slice_axis(x, axis, k * n, (k + 1) * n) for k in range(num_outputs)]

    @staticmethod
    def take(x, indices, axis):
        return moved(x, lambda a: np.take(a, np.clip(indices, 0, a.shape[axis] - 1).astype(np.int64), axis))

    @staticmethod
    def identity(x):
        return x * 1.0
