"""Records of operators that create arrays (``mxop/ops/create.py``)."""

from __future__ import annotations

import numpy as np

from . import Record


def _created(reference, *params, **details):
    """Make a record of an operator without inputs."""
    return Record(reference, params=params, shapes=[()] * len(params), order=0, grad_inputs=(), dtypes="f", **details)


def _arange(start, stop=None, step=1.0, repeat=1):
    first, last = (0.0, start) if stop is None else (start, stop)
    return np.repeat(np.arange(first, last, step), repeat)


def _arange_like(data, start=0.0, step=1.0, repeat=1, axis=None):
    size = data.size if axis is None else data.shape[axis]
    values = start + step * (np.arange(size) // repeat)
    return values.reshape(data.shape) if axis is None else values


_SHAPED = ({"shape": (2, 3)}, {"shape": (4,)})

RECORDS: dict[str, Record] = {
    "_zeros": _created(lambda shape: np.zeros(shape), *_SHAPED),
    "_zeros_without_dtype": _created(lambda shape: np.zeros(shape), *_SHAPED),
    "_ones": _created(lambda shape: np.ones(shape), *_SHAPED),
    "_full": _created(lambda shape, value: np.full(shape, float(value)), *({"value": 2.5, **s} for s in _SHAPED)),
    "_arange": _created(
        _arange, {"start": 5}, {"start": 1, "stop": 2, "step": 0.25, "repeat": 2}, {"start": 5, "stop": 1, "step": -1.5}
    ),
    "_linspace": _created(
        np.linspace, {"start": 0, "stop": 1, "num": 5}, {"start": 2, "stop": 1, "num": 4, "endpoint": False}
    ),
    "_eye": _created(lambda N, M=0, k=0: np.eye(N, M or N, k), {"N": 3}, {"N": 2, "M": 3, "k": 1}, {"N": 3, "k": -1}),
    "_constant": _created(
        lambda shape, data, dtype: np.array([[1.0, -2.0]], np.float32),
        {"shape": (1, 2), "data": "AACAPwAAAMA=", "dtype": "float32"},
    ),
    "_contrib_arange_like": Record(
        _arange_like, params=[{}, {"axis": 1, "start": 1, "step": 2}, {"axis": -1, "repeat": 2}, {"repeat": 3}],
        shapes=[((2, 3),), ((2, 3),), ((2, 3),), ((2, 2),)], order=0, grad_inputs=(),
        unchecked={"shapes back": "forward alone, as MXNet"},
    ),
    "zeros_like": Record(np.zeros_like, shapes=[((2, 3),), ((0, 3),)], order=0, grad_inputs=()),
    "ones_like": Record(np.ones_like, shapes=[((2, 3),), ((0, 3),)], order=0, grad_inputs=()),
}  # fmt: skip
