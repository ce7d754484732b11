"""Records of operators that lay elements out anew (``mxop/ops/layout.py``)."""

from __future__ import annotations

from functools import partial

import numpy as np

from . import Record, Refusal, record_of

_cases = partial(record_of, order=2)


def _diagonal(data, k=0, axis1=0, axis2=1):
    return np.diagonal(data, k, axis1, axis2)


def _diagonal_grad(head, like, k=0, axis1=0, axis2=1):
    result = np.zeros_like(like)
    rows = np.moveaxis(result, (axis1, axis2), (-2, -1))
    for i in range(head.shape[-1]):
        rows[..., i + max(-k, 0), i + max(k, 0)] = head[..., i]
    return result


def _makediag(A, offset=0):
    n = A.shape[-1] + abs(offset)
    return _diagonal_grad(A, np.zeros((*A.shape[:-1], n, n), A.dtype), offset, -2, -1)


def _pad(data, pad_width, mode="constant", constant_value=0.0):
    more = {"constant_values": constant_value} if mode == "constant" else {}
    return np.pad(data, list(zip(pad_width[::2], pad_width[1::2], strict=True)), mode, **more)


def _unpad(head, pad_width, mode):
    shape = [d - b - a for d, b, a in zip(head.shape, pad_width[::2], pad_width[1::2], strict=True)]
    found, places = np.zeros(np.prod(shape)), _pad(np.arange(np.prod(shape)).reshape(shape), pad_width, mode)
    np.add.at(found, places.reshape(-1), head.reshape(-1))
    return found.reshape(shape).astype(head.dtype)


def _crop(data, *like, offset=(0, 0), h_w=(0, 0), center_crop=False):
    h, w = like[0].shape[2:] if like else h_w
    y, x = ((data.shape[2] - h) // 2, (data.shape[3] - w) // 2) if center_crop else offset
    return data[:, :, y : y + h, x : x + w]


def _to_space(data, block_size):
    n, c, h, w = data.shape
    b = block_size
    blocks = data.reshape(n, b, b, c // b**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    return blocks.reshape(n, c // b**2, h * b, w * b)


def _to_depth(data, block_size):
    n, c, h, w = data.shape
    b = block_size
    return data.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4).reshape(n, c * b**2, h // b, w // b)


_FORWARD = {"shapes back": "the input's shape does not follow from the output's, but for some parameters"}
_EDGE, _REFLECT = {"mode": "edge"}, {"mode": "reflect"}

RECORDS: dict[str, Record] = {
    "_diagonal": _cases(_diagonal, ({}, (3, 4)), ({"k": 1, "axis1": 2, "axis2": 0}, (2, 3, 4)), ({"k": -2}, (3, 2)),
                        unchecked=_FORWARD),
    "_diagonal_grad": _cases(
        _diagonal_grad, ({}, [(3,), (3, 4)]), ({"k": 1, "axis1": 2, "axis2": 0}, [(3, 1), (2, 3, 4)]), grad_inputs=(0,),
        unchecked={"shapes back": "gradient rules call it with shapes that fit each other, and look at no others"},
    ),
    "diag": _cases(
        lambda data, k=0, **axes: np.diag(data, k) if data.ndim == 1 else np.diagonal(data, k, **axes),
        ({}, (3,)), ({"k": -2}, (2,)), ({}, (3, 4)), ({"k": 1, "axis1": -2, "axis2": -1}, (2, 3, 3)),
        refuses=[Refusal("no diagonal 9", params={"k": 9}, shapes=((3, 4),)),
                 Refusal("same axis", params={"axis1": 1}, shapes=((3, 4),)),
                 Refusal("axis2=2", params={"axis2": 2}, shapes=((3, 4),))],
        unchecked=_FORWARD,
    ),
    "_linalg_makediag": _cases(_makediag, ({}, (3,)), ({"offset": 1}, (2, 3)), ({"offset": -2}, (2, 1, 2))),
    "_linalg_extractdiag": _cases(
        lambda A, offset=0: np.diagonal(A, offset, -2, -1),
        ({}, (3, 3)), ({"offset": 1}, (2, 3, 3)), ({"offset": -2}, (2, 1, 4, 4)),
        refuses=[Refusal("square matrices", shapes=((2, 3),)), Refusal("no diagonal 4", params={"offset": 4})],
    ),
    "_pad_constant": _cases(_pad, ({"pad_width": (1, 0)}, (3,)),
                            ({"pad_width": (0, 1, 2, 3), "constant_value": 2.5}, (2, 3))),
    "_pad_border": _cases(
        _pad, ({"mode": "edge", "pad_width": (0, 0, 1, 2)}, (2, 3)), ({"mode": "reflect", "pad_width": (1, 0, 2, 1)}, (2, 3)),
        refuses=[Refusal("margins below the size", params={"mode": "reflect", "pad_width": (0, 0, 3, 0)}, shapes=((2, 3),))],
    ),
    "_pad_border_grad": _cases(
        _unpad, ({"mode": "edge", "pad_width": (0, 0, 1, 2)}, (2, 6)), ({"mode": "reflect", "pad_width": (1, 0, 2, 1)}, (3, 6)),
    ),
    "Pad": _cases(
        _pad,
        ({"mode": "constant", "pad_width": (0, 0, 0, 0, 1, 2, 0, 3), "constant_value": 1.5}, (1, 2, 2, 3)),
        ({**_EDGE, "pad_width": (0, 0, 0, 0, 1, 2, 0, 3)}, (1, 2, 2, 3)),
        ({**_REFLECT, "pad_width": (0, 0, 0, 0, 1, 0, 2, 1)}, (1, 2, 2, 3)),
        ({**_REFLECT, "pad_width": (3, 2)}, (4,)),
        ({**_EDGE, "pad_width": (0, 0)}, (4,)),
        refuses=[Refusal("expected 8 numbers", params={**_EDGE, "pad_width": (1, 1)}),
                 Refusal("numbers from 0 on", params={**_EDGE, "pad_width": (-1, 1)}, shapes=((3,),)),
                 Refusal("below the size of the axis", params={**_REFLECT, "pad_width": (3, 0)}, shapes=((3,),))],
    ),
    "Crop": _cases(
        _crop, ({"h_w": (2, 3), "offset": (1, 1)}, (2, 1, 3, 4)), ({"center_crop": True}, [(1, 2, 5, 4), (2, 1, 2, 3)]),
        ({"offset": (2, 0)}, [(1, 2, 5, 4), (2, 1, 2, 3)]), grad_inputs=(0,),
        refuses=[
            Refusal(r"h_w=\(2, 3\) at offset=\(2, 0\)", params={"h_w": (2, 3), "offset": (2, 0)}),
            Refusal("4 dimensions", shapes=((3, 4),)), Refusal(r"h_w=\(0, 0\)", params={"h_w": (0, 0)}),
        ],
        unchecked=_FORWARD,
    ),
    "depth_to_space": _cases(
        _to_space, ({"block_size": 2}, (2, 8, 1, 3)), ({"block_size": 1}, (1, 2, 2, 2)),
        refuses=[Refusal("cannot be split", shapes=((1, 3, 2, 2),)), Refusal("4 dimensions", shapes=((4, 2),)),
                 Refusal("of 1 or more", shapes=((2, 4, 0, 3),)), Refusal("block_size", params={"block_size": 0})],
    ),
    "space_to_depth": _cases(
        _to_depth, ({"block_size": 2}, (2, 2, 2, 4)), ({"block_size": 3}, (1, 1, 3, 6)), ({"block_size": 1}, (1, 2, 2, 2)),
        refuses=[Refusal("cannot be split", shapes=((1, 3, 2, 5),)), Refusal("4 dimensions", shapes=((4, 2),)),
                 Refusal("of 1 or more", shapes=((0, 1, 2, 2),))],
    ),
}  # fmt: skip
