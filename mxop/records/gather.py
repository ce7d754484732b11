"""Records of operators that take elements at indices (``mxop/ops/gather.py``)."""

from __future__ import annotations

import numpy as np

from . import Record

#: Indices reach beyond both ends, where the mode allows it.
_DATA, _INDEX = (-2.0, 2.0), (-5.0, 6.0)


_FORWARD = {"shapes back": "forward alone, as MXNet: indices do not say how much there is to take from"}


def _record(reference, *cases, index=1, bounds=_INDEX, inputs=2, **details):
    """Make a record of pairs of parameters and shapes; input `index` holds indices."""
    details = {"unchecked": _FORWARD, "grad_inputs": tuple(k for k in range(1) if k != index), **details}
    return Record(
        reference, params=[params for params, _ in cases], shapes=[tuple(shapes) for _, shapes in cases],
        domain=tuple(bounds if k == index else _DATA for k in range(inputs)), whole=(index,), **details,
    )  # fmt: skip


def _places(index, size, mode):
    at = np.trunc(index).astype(np.int64)
    return np.clip(at, 0, size - 1) if mode == "clip" else at % size


def _take(a, indices, axis=0, mode="clip"):
    return np.take(a, _places(indices, a.shape[axis], mode), axis)


def _pick(data, index, axis=-1, keepdims=False, mode="clip"):
    at = _places(index, data.shape[axis], mode)
    found = np.take_along_axis(data, at if at.ndim == data.ndim else np.expand_dims(at, axis), axis)
    return found if keepdims else np.squeeze(found, axis)


def _take_lanes(data, index, axis):
    return np.take_along_axis(data, _places(index, data.shape[axis], "clip"), axis)


def _added(take):
    """Return the reference of the gradient of a reference that takes elements."""

    def reference(head, index, like, **params):
        places = take(np.arange(like.size).reshape(like.shape), index, **params)
        result = np.zeros(like.size, head.dtype)
        np.add.at(result, places.ravel(), head.ravel())
        return result.reshape(like.shape)

    return reference


def _gather_nd(data, indices):
    return data[tuple(indices.astype(np.int64))]


def _scatter_nd(data, indices, shape):
    result = np.zeros(shape, data.dtype)
    result[tuple(indices.astype(np.int64))] = data
    return result


def _scatter_add_nd(data, indices, shape):
    result = np.zeros(shape, data.dtype)
    np.add.at(result, tuple(indices.astype(np.int64)), data)
    return result


def _one_hot(indices, depth, on_value=1.0, off_value=0.0, dtype="float32"):
    return np.where(np.trunc(indices)[..., None] == np.arange(depth), on_value, off_value).astype(dtype)


def _mask(data, index, axis=0):
    return np.compress(index != 0, data, axis)


def _mask_grad(head, index, like, axis=0):
    result = np.zeros(like.shape, head.dtype)
    result[(slice(None),) * (axis % like.ndim) + (index != 0,)] = head
    return result


_TAKE = (
    ({}, [(4, 3), (2, 2)]), ({"axis": -1, "mode": "wrap"}, [(2, 3), (4,)]), ({"axis": 1}, [(2, 3, 2), (3,)]),
    ({}, [(5,), (3,)]), ({"axis": 1, "mode": "wrap"}, [(0, 3), (2,)]),
)  # fmt: skip
_PICK = (
    ({}, [(2, 3), (2,)]),
    ({"axis": 0, "mode": "wrap"}, [(3, 2), (2,)]),
    ({"axis": 1, "keepdims": True}, [(2, 3, 2), (2, 1, 2)]),
    ({"keepdims": True}, [(2, 3), (2,)]),
)
_LANES = (({"axis": 1}, [(2, 3), (2, 4)]), ({"axis": 0}, [(3, 2), (2, 2)]), ({"axis": -2}, [(2, 3, 2), (2, 2, 2)]))
_POINTS = (({}, [(3, 4), (2, 5)]), ({}, [(3, 2), (1, 4)]), ({}, [(3, 3, 2), (2, 2, 2)]))
_PARTS = (
    ({"shape": (3, 4)}, [(5,), (2, 5)]),
    ({"shape": (3, 2)}, [(4, 2), (1, 4)]),
    ({"shape": (3, 3, 2)}, [(2, 2, 2), (2, 2, 2)]),
)
_MASKS = (({}, [(5, 3), (5,)]), ({"axis": 1}, [(2, 6), (6,)]), ({"axis": -2}, [(2, 5, 2), (5,)]), ({}, [(6,), (6,)]))
_MASKS_BACK = (({}, [(5, 3), (5,), (5, 3)]), ({"axis": 1}, [(2, 6), (6,), (2, 6)]))
_NEGATIVE = (-3.0, 2.0)  # within three elements from either end


def _grad(take, cases, shape_of, **details):
    """Make the record of a gradient from the cases of its operator."""
    made = [(params, [shape_of(*shapes, **params), shapes[1], shapes[0]]) for params, shapes in cases]
    return _record(_added(take), *made, inputs=3, **details)


def _shape_by(take):
    return lambda data, index, **params: take(np.zeros(data), np.zeros(index), **params).shape


RECORDS: dict[str, Record] = {
    "take": _record(_take, *_TAKE),
    "_take_grad": _grad(_take, _TAKE, _shape_by(_take)),
    "_take_added": _record(
        lambda data, head, index, **params: data + _added(_take)(head, index, data, **params),
        *((params, [a, _shape_by(_take)(a, index, **params), index]) for params, (a, index) in _TAKE),
        index=2, inputs=3, grad_inputs=(0, 1),
    ),
    "pick": _record(_pick, *_PICK),
    "_pick_grad": _grad(_pick, _PICK, _shape_by(_pick)),
    "_take_lanes": _record(_take_lanes, *_LANES),
    "_take_lanes_grad": _grad(_take_lanes, _LANES, _shape_by(_take_lanes)),
    "_contrib_boolean_mask": _record(_mask, *_MASKS, bounds=(0.0, 1.0)),
    "_boolean_mask_grad": _record(_mask_grad, *_MASKS_BACK, bounds=(1.0, 1.0), inputs=3),
    "_boolean_mask_as": _record(
        lambda data, index, like, axis=0: _mask(data, index, axis), *_MASKS_BACK, bounds=(1.0, 1.0), inputs=3
    ),
    "batch_take": _record(_pick, ({}, [(3, 4), (3,)]), ({}, [(1, 5), (1,)]), input_types={1: "int32"}),
    "Embedding": Record(
        lambda data, weight, **params: _take(weight, data),
        params=[{"input_dim": 4, "output_dim": 3}, {"input_dim": 2, "output_dim": 1}],
        shapes=[((2, 3), (4, 3)), ((5,), (2, 1))], domain=(_INDEX, _DATA), unchecked=_FORWARD, whole=(0,), grad_inputs=(1,),
    ),
    "gather_nd": _record(_gather_nd, *_POINTS, bounds=_NEGATIVE),
    "_gather_nd_grad": _grad(_gather_nd, _POINTS, _shape_by(_gather_nd), bounds=_NEGATIVE),
    # one part, or parts with places that differ: of several with one place, gradients say nothing
    "scatter_nd": _record(
        _scatter_nd, ({"shape": (3, 4)}, [(1,), (2, 1)]), ({"shape": (3, 2)}, [(1, 2), (1, 1)]), bounds=_NEGATIVE,
        unchecked={**_FORWARD, **dict.fromkeys(("small shapes", "small gradients"), "its shape is a parameter")},
    ),
    "_backward_gather_nd": _record(_scatter_add_nd, *_PARTS, bounds=_NEGATIVE),
    "one_hot": _record(
        _one_hot, ({"depth": 3}, [(2, 3)]), ({"depth": 4, "on_value": 2.0, "off_value": -1.0, "dtype": "int32"}, [(3,)]),
        ({"depth": 1, "dtype": "float64"}, [(0, 2)]), returns=lambda given, depth, dtype="float32", **params: dtype, index=0,
        inputs=1, order=0,
    ),
}  # fmt: skip
