"""Records of what resizes images (``mxop/ops/resize.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal, record_of
from .convolution import GIVEN, deconvolution


# ---- nearest ----------------------------------------------------------------------------------------------------------
def _repeated_to(data, like, scale):
    down, right = (like.shape[a] * scale // data.shape[a] for a in (2, 3))
    return np.broadcast_to(data[:, :, :, None, :, None], (*data.shape[:3], down, data.shape[3], right))


def _upsampling(*data, scale, sample_type, num_filter=0, multi_input_mode="concat", num_args=1):
    if sample_type == "bilinear":
        size = 2 * scale - scale % 2
        return deconvolution(*data, kernel=(size,) * 2, stride=(scale,) * 2, pad=(scale // 2,) * 2, num_filter=num_filter,
                              num_group=num_filter)  # fmt: skip
    height, width = (n * scale for n in data[0].shape[2:])
    large = [x.repeat(height // x.shape[2], 2).repeat(width // x.shape[3], 3) for x in data]
    return np.concatenate(large, 1) if multi_input_mode == "concat" else sum(large)


# ---- along one axis --------------------------------------------------------------------------------------------------
def _weights(n, size, how):
    """Return the matrix, ``(size, n)``, that resizes an axis."""
    if how == "bins":
        places = [range(int(np.floor(i * n / size)), int(np.ceil((i + 1) * n / size))) for i in range(size)]
        return np.array([[(k in place) / len(place) for k in range(n)] for place in places])
    at = np.linspace(0, n - 1, size) if how == "corners" or size == 1 else (np.arange(size) + 0.5) * n / size - 0.5
    return np.stack([np.interp(at, np.arange(n), row) for row in np.eye(n)], 1)


def _mixed(weights, data, axis):
    """Return weighted sums along an axis; what has the weight 0 may be NaN."""
    rows = np.moveaxis(data, axis, 0)
    weights = weights.reshape(*weights.shape, *(1,) * (data.ndim - 1))
    return np.moveaxis(np.where(weights == 0, 0, weights * rows).sum(1), 0, axis)


def _resized(data, like=None, axis=0, size=1, scale=None, mode="size", how=None):
    n = data.shape[axis]
    if mode != "size" or scale is not None:
        size = _new_size(n, mode, scale, None if like is None else like.shape[axis])
    return _mixed(_weights(n, size, how), data, axis)


def _new_size(n, mode, scale, like):
    return {
        "size": lambda: int(n * scale),
        "like": lambda: like,
        "odd_scale": lambda: int((n - n % 2) * scale) + n % 2,
        "to_even_down": lambda: n // 2 * 2,
        "to_even_up": lambda: (n + 1) // 2 * 2,
        "to_odd_down": lambda: (n - 1) // 2 * 2 + 1,
        "to_odd_up": lambda: n // 2 * 2 + 1,
    }[mode]()


def _resized_grad(head, like, axis, how):
    return _mixed(_weights(like.shape[axis], head.shape[axis], how).T, head, axis)


def _bilinear(data, like=None, height=1, width=1, scale_height=None, scale_width=None, mode="size", align_corners=True):
    how = "corners" if align_corners else "pixels"
    data = _resized(data, like, 2, height, scale_height, mode, how)
    return _resized(data, like, 3, width, scale_width, mode, how)


# ---- the records -----------------------------------------------------------------------------------------------------
_AXES = (
    ({"axis": 1, "size": 2, "how": "bins"}, [(2, 5)]),
    ({"axis": 0, "size": 3, "how": "bins"}, [(4, 2)]),
    ({"axis": 2, "size": 5, "how": "bins"}, [(1, 2, 2)]),
    ({"axis": 1, "size": 3, "how": "corners"}, [(2, 4)]),
    ({"axis": 0, "size": 5, "how": "pixels"}, [(3, 2)]),
)
_LIKE = (({"axis": 1, "mode": "like", "how": "pixels"}, [(2, 5), (1, 3)]),)
_IMAGE = [(2, 1, 3, 4)]
RECORDS: dict[str, Record] = {
    "_repeated_to": record_of(
        _repeated_to, ({"scale": 2}, [(1, 2, 2, 3), (1, 2, 2, 3)]), ({"scale": 4}, [(2, 1, 2, 4), (1, 3, 1, 2)]),
        grad_inputs=(0,), order=2,
    ),
    "UpSampling": record_of(
        _upsampling,
        ({"scale": 2, "sample_type": "nearest"}, [(1, 2, 2, 3)]),
        ({"scale": 4, "sample_type": "nearest"}, [(1, 2, 1, 2), (1, 1, 2, 4)]),
        ({"scale": 2, "sample_type": "nearest", "multi_input_mode": "sum"}, [(1, 2, 2, 2), (1, 2, 4, 1)]),
        ({"scale": 2, "sample_type": "bilinear", "num_filter": 2}, [(1, 2, 2, 2), (2, 1, 4, 4)]),
        ({"scale": 3, "sample_type": "bilinear", "num_filter": 1}, [(1, 1, 2, 1), (1, 1, 5, 5)]),
        dtypes="f",
        refuses=[
            Refusal("does not divide 4", params={"scale": 2, "sample_type": "nearest", "num_args": 2},
                    shapes=((1, 1, 2, 2), (1, 1, 3, 2))),
            Refusal("expected", params={"scale": 2, "sample_type": "nearest"}, shapes=((1, 1, 2),)),
            Refusal("takes 2 inputs", params={"scale": 2, "sample_type": "bilinear", "num_filter": 2}),
        ],
    ),
    "_resized": record_of(
        _resized, *_AXES, ({"axis": 1, "mode": "odd_scale", "scale": 1.5, "how": "corners"}, [(2, 5)]), dtypes="f", order=2,
        refuses=[Refusal("no elements", shapes=((2, 0),)), Refusal("floating-point", dtypes=("int32",))], unchecked=GIVEN,
    ),
    "_resized_grad": record_of(
        _resized_grad,
        *(({"axis": p["axis"], "how": p["how"]}, [_resized(np.zeros(s[0]), **p).shape, s[0]]) for p, s in _AXES),
        dtypes="f", order=2, grad_inputs=(0,), unchecked=GIVEN, refuses=[Refusal("floating-point", dtypes=("int8", "int8"))],
    ),
    "_contrib_BilinearResize2D": record_of(
        _bilinear, ({"height": 5, "width": 3}, _IMAGE), ({"height": 2, "width": 7, "align_corners": False}, _IMAGE),
        ({"scale_height": 2.0, "scale_width": 0.5}, _IMAGE),
        ({"mode": "odd_scale", "scale_height": 2.0, "scale_width": 1.5}, _IMAGE),
        *(({"mode": f"to_{parity}_{side}"}, _IMAGE) for parity in ("even", "odd") for side in ("down", "up")),
        ({"mode": "like"}, [*_IMAGE, (1, 2, 2, 6)]), ({"mode": "like", "align_corners": False}, [*_IMAGE, (1, 2, 5, 3)]),
        dtypes="f", grad_inputs=(0,),
        unchecked={"shapes back": "the sizes of the result do not follow from those of the data"},
        refuses=[
            Refusal("expected two numbers above 0", params={"scale_height": 2.0}),
            Refusal("expected two numbers above 0", params={"mode": "odd_scale"}),
            Refusal("expected sizes above 0", params={"scale_height": 0.1, "scale_width": 1.0}),
            Refusal("without elements", shapes=((1, 1, 0, 2),)), Refusal("height, width", shapes=((2, 2, 4),)),
            Refusal("floating-point", dtypes=("int32",)),
        ],
    ),
}  # fmt: skip
