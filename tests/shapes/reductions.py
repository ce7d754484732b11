"""Reductions along any axes, what broadcasts, and the sums that undo that."""

import math

import numpy as np

from .drawing import Case, operator
from .reference import Value, absolute, exp, extreme, log, moved, sqrt, value


def _reduced(draw, ndim):
    """Return parameters of a reduction, and the axes that they mean."""
    axes, keepdims, exclude = draw.axes(ndim), draw.flag(), draw.flag(0.2)
    everything = draw.flag(0.25)
    if everything:
        return {"keepdims": keepdims}, tuple(range(ndim)), keepdims
    written = tuple(a - ndim if draw.flag(0.3) else a for a in axes)
    written = written[0] if len(written) == 1 and draw.flag() else written
    if exclude:
        axes = tuple(a for a in range(ndim) if a not in axes)
    return {"axis": written, "keepdims": keepdims, "exclude": exclude}, axes, keepdims


def _shaped(x):
    """Return a reduction of all elements as an array of one."""
    return x if x.ndim else x.reshape(1)


def _shape(draw, **options):
    while True:
        shape = draw.shape(1, 4, **options)
        if all(shape):
            return shape


def total(draw):
    shape, op = draw.shape(1, 5), draw.pick(["sum", "nansum"])
    params, axes, kept = _reduced(draw, len(shape))
    return operator(op, [draw.real(*shape)], lambda x: _shaped(x.sum(axes, kept)), **params)


def average(draw):
    shape = _shape(draw)
    params, axes, kept = _reduced(draw, len(shape))
    return operator("mean", [draw.real(*shape)], lambda x: _shaped(x.mean(axes, kept)), **params)


def multiplied(draw):
    shape, op = draw.shape(1, 4), draw.pick(["prod", "nanprod"])
    params, axes, kept = _reduced(draw, len(shape))
    n = int(np.prod([shape[a] for a in axes]))
    near = 0.5 / max(n, 1) ** 0.5

    def product(x):
        y = x.data.prod(axis=axes, keepdims=True)
        kept_shape = x.data.prod(axis=axes, keepdims=kept).shape
        return _shaped(Value(y.reshape(kept_shape), (x, lambda h: h.reshape(y.shape) * y / x.data)))

    data = draw.real(*shape, low=1 - near, high=1 + near)
    return operator(op, [data], product, dtypes=("float32", "float64"), slack=10, **params)


def largest(draw):
    shape, op = _shape(draw), draw.pick(["max", "min"])
    params, axes, kept = _reduced(draw, len(shape))
    if not axes:
        return total(draw)
    data = draw.distinct(*shape)
    return operator(op, [data], lambda x: _shaped(extreme(x, axes, kept, op == "max")), **params,
                    dtypes=("float32", "float64", *(["float16"] if data.values.size < 2048 else [])))  # fmt: skip


def position(draw):
    shape, op, kept = _shape(draw), draw.pick(["argmax", "argmin"]), draw.flag()
    axis = draw.axis(len(shape)) if draw.flag(0.8) else None
    data = draw.whole(-9, 9, shape, "float32") if draw.flag() else draw.distinct(*shape)
    data.fixed = False

    def found(x):
        at = getattr(np, op)(x.data, axis, keepdims=kept)
        return np.asarray(at, np.float64).reshape(at.shape or (1,))

    return operator(op, [data], found, axis=axis, keepdims=kept, differentiable=False, dtypes=("float32", "float64"))


def norm(draw):
    shape, order, kept = draw.shape(1, 4, empty=0), draw.integer(1, 2), draw.flag()
    axes = draw.axes(len(shape)) if draw.flag(0.8) else None
    axes = axes if axes is None or len(axes) <= 2 else axes[:2]
    written = axes[0] if axes and len(axes) == 1 else axes

    def length(x):
        found = absolute(x).sum(axes, kept) if order == 1 else sqrt((x * x).sum(axes, kept))
        return _shaped(found)

    return operator("norm", [draw.real(*shape, low=0.1)], length, ord=order, axis=written, keepdims=kept)


def moments(draw):
    shape, kept = _shape(draw), draw.flag()
    axes = draw.axes(len(shape))

    def both(x):
        away = x - x.mean(axes, True)
        return [_shaped(x.mean(axes, kept)), _shaped((away * away).mean(axes, kept))]

    return operator("moments", [draw.real(*shape)], both, axes=axes, keepdims=kept)


def _thinner(draw, shape):
    return tuple(1 if draw.flag(0.4) else n for n in shape)


def broadcast(draw):
    """A formula of operands that broadcast: its gradients are sums along the axes of size 1."""
    op = draw.pick(["broadcast_add", "broadcast_sub", "broadcast_mul", "broadcast_div", "broadcast_maximum"])
    shape = draw.shape(1, 5)
    first, second = _thinner(draw, shape), _thinner(draw, shape)
    if op == "broadcast_div":
        return operator(op, [draw.real(*first), draw.real(*second, low=0.5)], lambda x, y: x / y)

    def largest_of(x, y):
        first_wins = value((x.data >= y.data).astype(float))
        return x * first_wins + y * (1 - first_wins)

    formulas = {"broadcast_add": lambda x, y: x + y, "broadcast_sub": lambda x, y: x - y, "broadcast_mul": lambda x, y: x * y,
                "broadcast_maximum": largest_of}  # fmt: skip
    inputs = (
        [draw.distinct(*first), draw.distinct(*second)]
        if op == "broadcast_maximum"
        else [draw.real(*first), draw.real(*second)]
    )
    if op == "broadcast_maximum":
        inputs[1].values = inputs[1].values + 1 / 2048
    return operator(
        op,
        inputs,
        formulas[op],
        dtypes=("float32", "float64") if op == "broadcast_maximum" else ("float32", "float64", "float16"),
    )


def broadcast_to(draw):
    shape = draw.shape(1, 5, empty=0)  # as a parameter, 0 is the size that is there
    small, op = _thinner(draw, shape), draw.pick(["broadcast_to", "broadcast_axis", "broadcast_like"])

    def large(x, *like):
        return moved(x, lambda a: np.broadcast_to(a, shape))

    if op == "broadcast_like":
        return operator(op, [draw.real(*small), draw.whole(0, 1, shape, "float32")], large, dtypes=("float32",))
    if op == "broadcast_to":
        return operator(op, [draw.real(*small)], large, shape=shape)
    axes = tuple(k for k, (n, m) in enumerate(zip(small, shape, strict=True)) if n != m)
    return operator(op, [draw.real(*small)], large, axis=axes, size=tuple(shape[a] for a in axes))


def reduced_formula(draw):
    """A formula, a reduction and a formula of that: they may become one pass."""
    shape = _shape(draw)
    axes, kept = draw.axes(len(shape)), draw.flag()

    def call(F, x, y):
        return F.log(F.sum(F.exp(x * 0.5) * F.square(y), axis=axes, keepdims=kept) + 1.0)

    def formula(x, y):
        return _shaped(log((exp(x * 0.5) * y * y).sum(axes, kept) + 1.0))

    halves = ["float16"] if math.prod(shape) < 2**15 else []  # whose sums end at 65504
    return Case(f"log(sum(exp(x/2) * y**2, axis={axes}, keepdims={kept}) + 1)", [draw.real(*shape), draw.real(*shape)], call,
                formula, tags=("formula",), dtypes=("float32", "float32", "float64", *halves))  # fmt: skip


def squares(draw):
    shape = draw.shape(1, 3)
    arrays = [draw.real(*shape) for _ in range(draw.integer(1, 9))]

    def added(*xs):
        found = xs[0]
        for x in xs[1:]:
            found = found + x
        return found

    return operator("add_n", arrays, added)


MAKERS = [total, total, average, multiplied, largest, position, norm, moments, broadcast, broadcast, broadcast_to,
          reduced_formula, squares]  # fmt: skip
