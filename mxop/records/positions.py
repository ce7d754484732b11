"""Records of positions and of rows at positions (``mxop/ops/positions.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal


def _ravel(data, shape):
    found = np.trunc(data[0])
    for size, row in zip(shape[1:], data[1:], strict=True):
        found = found * size + np.trunc(row)
    return found


def _unravel(data, shape):
    left, found = np.trunc(data), []
    for size in shape[:0:-1]:
        found.append(np.fmod(left, size))
        left = (left - found[-1]) / size
    return np.stack([left, *found[::-1]])


def _index_array(data, axes=None):
    every = np.stack([*np.indices(data.shape)], -1)
    return every if axes is None else every[..., list(axes)]


def _index_copy(old, index, new):
    result = np.array(old)
    result[index.astype(np.int64)] = new
    return result


def _khatri_rao(first, *others):
    for a in others:
        first = (first[:, None] * a).reshape(-1, a.shape[1])
    return first


_ZERO = {"order": 0, "grad_inputs": (), "whole": (0,)}

RECORDS: dict[str, Record] = {
    "_ravel_multi_index": Record(
        _ravel, params=[{"shape": (3, 4)}, {"shape": (-1, 2, 2)}], shapes=[((2, 5),), ((3, 2),)], domain=(0, 3), **_ZERO,
        refuses=[Refusal(r"expected \(2, ...\)", shapes=((3, 5),)), Refusal("expected sizes", params={"shape": (2, 0)})],
    ),
    "_unravel_index": Record(
        _unravel, params=[{"shape": (3, 4)}, {"shape": (-1, 2, 2)}, {"shape": (9,)}], shapes=[((5,),), ((2, 3),), ((2,),)],
        domain=(-5, 12), **_ZERO, refuses=[Refusal("expected sizes", params={"shape": (2, -1)})],
    ),
    "_contrib_index_array": Record(
        _index_array, params=[{}, {"axes": (1, 0)}, {"axes": (-1,)}], shapes=[((2, 3),), ((2, 3, 2),), ((4,),)], order=0,
        grad_inputs=(), returns="int64", refuses=[Refusal("axes=2", params={"axes": (2,)})],
    ),
    "_contrib_index_copy": Record(
        _index_copy, shapes=[((2, 3), (1,), (1, 3)), ((4,), (1,), (1,))], domain=((-2, 2), (0, 1), (-2, 2)), whole=(1,),
        grad_inputs=(0, 2), order=2, input_types={1: "int32"},
        refuses=[Refusal("new_tensor has shape", shapes=((2, 3), (1,), (1, 2)))],
    ),
    "khatri_rao": Record(
        _khatri_rao, shapes=[((2, 3), (4, 3)), ((2, 2), (1, 2), (3, 2)), ((2, 3),)],
        refuses=[Refusal("equal numbers of columns", shapes=((2, 3), (3, 2)))],
        unchecked={"shapes back": "the sizes of the factors do not follow from their product"},
    ),
}  # fmt: skip
