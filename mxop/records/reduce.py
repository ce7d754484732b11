"""Records of reductions (``mxop/ops/reduce.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal

#: Cases of parameters, and the shape that each is tried on: no axis, negative and several ones, `exclude`, sizes 0, 1.
_CASES = [
    ({}, (2, 3)), ({"axis": 1}, (2, 3, 2)), ({"axis": -1, "keepdims": True}, (3, 2)), ({"axis": (0, -1)}, (2, 3, 2)),
    ({"axis": (), "keepdims": True}, (2, 3)), ({"axis": 1, "exclude": True}, (2, 3, 2)),
    ({"axis": (0, 2), "exclude": True, "keepdims": True}, (2, 3, 2)), ({"axis": 1}, (0, 3)), ({"axis": 0}, (1, 3)),
    ({"axis": 0}, (5,)),
]  # fmt: skip


def axes_of(data, axis, exclude):
    if axis is None or axis == ():
        return tuple(range(data.ndim))
    axes = {a % data.ndim for a in ((axis,) if isinstance(axis, int) else axis)}
    return tuple(i for i in range(data.ndim) if (i in axes) != exclude)


def full(result):
    """Give the result of a full reduction MXNet's shape."""
    return np.reshape(result, (1,)) if np.ndim(result) == 0 else result


def _logsumexp(data, axis, keepdims):
    top = np.max(data, axis=axis, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        top = np.where(np.isfinite(top), top, 0)
        found = np.log(np.sum(np.exp(data - top), axis=axis, keepdims=True)) + top
    return found if keepdims else np.squeeze(found, axis)


def _along(function):
    """Make a reference with MXNet's parameters of a NumPy reduction."""

    def reference(data, axis=None, keepdims=False, exclude=False):
        return full(function(data, axis=axes_of(data, axis, exclude), keepdims=keepdims))

    return reference


def _reduction(function, **details):
    params = details.pop("params", [case for case, _ in _CASES])
    shapes = details.pop("shapes", [(shape,) for _, shape in _CASES])
    refuses = [Refusal("axis=5 is out of range", params={"axis": 5}), Refusal("axis", params={"axis": (0, 0)})]
    return Record(_along(function), params=params, shapes=shapes, refuses=refuses, **details)


def _norm(data, ord=2, axis=None, keepdims=False, out_dtype=None):
    axes = axes_of(data, axis, False)
    size = np.abs(data) if ord == 1 else np.square(data)
    total = full(np.sum(size, axis=axes, keepdims=keepdims))
    return total if ord == 1 else np.sqrt(total)


def _position(function):
    def reference(data, axis=None, keepdims=False):
        found = function(data, axis=axis)
        if axis is None:
            return np.reshape(found, (1,) * data.ndim if keepdims else (1,))
        return full(np.expand_dims(found, axis) if keepdims else found)

    return reference


def _positions(function):
    cases = [
        ({"axis": 1}, (2, 3, 2)), ({"axis": -1, "keepdims": True}, (3, 4)), ({}, (2, 3)), ({"keepdims": True}, (2, 3)),
        ({"axis": 0}, (5,)), ({"axis": 1}, (0, 3)),
    ]  # fmt: skip
    return Record(
        _position(function), params=[case for case, _ in cases], shapes=[(shape,) for _, shape in cases], order=0,
        grad_inputs=(),
    )  # fmt: skip


def _moments(data, axes=None, keepdims=False):
    along = axes_of(data, axes, False)
    return full(np.mean(data, axis=along, keepdims=keepdims)), full(np.var(data, axis=along, keepdims=keepdims))


def _spread(function):
    def reference(data, axis=None, ddof=0.0, keepdims=False):
        return full(function(data, axis=axes_of(data, axis, False), ddof=ddof, keepdims=keepdims))

    params = [{}, {"axis": 1, "ddof": 1.0}, {"axis": (0, -1), "keepdims": True}, {"axis": -1, "ddof": 0.5}]
    return Record(reference, params=params, shapes=[((2, 3),), ((2, 3, 2),), ((2, 3, 2),), ((3, 4),)], dtypes="f")


RECORDS: dict[str, Record] = {
    # ---- sums
    "sum": _reduction(np.sum),
    "mean": _reduction(np.mean),
    "nansum": _reduction(np.nansum),
    "norm": Record(
        _norm, params=[{}, {"axis": 1}, {"axis": (0, -1), "keepdims": True}, {"ord": 1, "axis": -1}, {"ord": 1}, {"axis": 1}],
        shapes=[((2, 3),), ((2, 3, 2),), ((2, 3, 2),), ((3, 2),), ((4,),), ((0, 3),)], avoid=(0,), domain=(-2.0, 2.0),
    ),
    "_logsumexp": Record(
        _along(_logsumexp), params=[p for p, shape in _CASES if 0 not in shape],
        shapes=[(shape,) for _, shape in _CASES if 0 not in shape], dtypes="f",
    ),
    "_finite_or_zero": Record(
        lambda data: np.where(np.isfinite(data), data, 0), order=0, grad_inputs=(), shapes=[((2, 3),)]
    ),
    # ---- products: few elements, as integers would overflow
    "prod": _reduction(np.prod),
    "nanprod": _reduction(np.nanprod),
    # ---- truths
    "all": _reduction(np.all, order=0, grad_inputs=(), domain=(-1.0, 3.0)),
    "any": _reduction(np.any, order=0, grad_inputs=(), domain=(-1.0, 3.0)),
    # ---- extrema
    "max": _reduction(np.max),
    "min": _reduction(np.min),
    "argmax": _positions(np.argmax),
    "argmin": _positions(np.argmin),
    "_largest_at": Record(
        lambda data, axis: np.argmax(data, axis), params=[{"axis": 1}, {"axis": -1}], shapes=[((2, 3),), ((2, 3, 2),)],
        order=0, grad_inputs=(), returns="int64",
    ),
    "argmax_channel": Record(
        lambda data: full(np.argmax(data, axis=1)), shapes=[((2, 3),), ((2, 3, 2),)], order=0, grad_inputs=()
    ),
    # integers: the difference from a mean that was rounded to an integer is not the exact one
    "moments": Record(
        _moments, params=[{}, {"axes": 1}, {"axes": (0, -1), "keepdims": True}],
        shapes=[((2, 3),), ((2, 3, 2),), ((2, 3, 2),)], dtypes="f",
    ),
    "_var": _spread(np.var),
    "_std": _spread(np.std),
}  # fmt: skip
