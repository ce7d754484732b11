"""Records of windows and convolutions (``mxop/ops/windows.py``, ``mxop/ops/convolution.py``).

References move over the padded image window by window.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from . import Record, Refusal, record_of


# ---- windows, one by one ---------------------------------------------------------------------------------------------
def _frame(kernel, stride=(), dilate=(), pad=()):
    n = len(kernel)
    return kernel, stride or (1,) * n, dilate or (1,) * n, pad or (0,) * n


def counts(sizes, kernel, stride, dilate, pad, count="valid"):
    """Return how many windows there are along each dimension."""
    found = []
    for size, k, s, d, p in zip(sizes, kernel, stride, dilate, pad, strict=True):
        spare = size + 2 * p - d * (k - 1) - 1
        found.append({"valid": spare // s + 1, "full": int(np.ceil(spare / s)) + 1, "same": int(np.ceil(size / s))}[count])
    return tuple(found)


def padded(data, kernel, stride, dilate, pad, fill=0.0):
    """Return images with their padding, and as much behind as any window needs."""
    more = [(p, p + s + d * k) for p, s, d, k in zip(pad, stride, dilate, kernel, strict=True)]
    return np.pad(data, [(0, 0), (0, 0), *more], constant_values=fill)


def each_window(found, kernel, stride, dilate, pad=None):
    """Yield the place of each window, and the index of its elements in the padded images."""
    for place in product(*map(range, found)):
        starts = [i * s for i, s in zip(place, stride, strict=True)]
        yield (slice(None), slice(None), *place), (slice(None), slice(None), *(
            slice(i, i + d * (k - 1) + 1, d) for i, d, k in zip(starts, dilate, kernel, strict=True)))  # fmt: skip


def windows_of(data, kernel, stride=(), dilate=(), pad=(), count="valid", fill=0.0):
    """Return ``(batch, channels, elements of a window, windows...)``."""
    at = _frame(kernel, stride, dilate, pad)
    found, whole = counts(data.shape[2:], *at, count), padded(data, *at, fill)
    result = np.zeros((*data.shape[:2], int(np.prod(kernel)), *found), data.dtype)
    for place, part in each_window(found, *at):
        result[(*place[:2], slice(None), *place[2:])] = whole[part].reshape(*data.shape[:2], -1)
    return result


def _added(windows, kernel, stride, dilate, pad, shape):
    """Return images of a shape to which ``(batch, channels, elements of a window, windows...)`` add up."""
    at = _frame(kernel, stride, dilate, pad)
    whole = padded(np.zeros(shape, windows.dtype), *at)
    for place, part in each_window(windows.shape[3:], *at):
        whole[part] += windows[(*place[:2], slice(None), *place[2:])].reshape(*shape[:2], *kernel)
    return whole[(slice(None), slice(None), *(slice(p, p + n) for p, n in zip(at[3], shape[2:], strict=True)))]


def _windows_sum(data, kernel, stride=(), dilate=(), pad=(), count="valid", size=()):
    if not size:
        size = _deconvolved(data.shape[3:], _frame(kernel, stride, dilate, pad))
    return _added(data, kernel, stride, dilate, pad, (*data.shape[:2], *size))


def _deconvolved(sizes, at, adj=()):
    return tuple(
        (n - 1) * s + d * (k - 1) + 1 - 2 * p + a for n, k, s, d, p, a in zip(sizes, *at, adj or (0,) * len(sizes), strict=True)
    )


def _centre(data, size):
    return data[_middle(data.shape, size)]


def _centre_grad(head, like, size):
    result = np.zeros_like(like)
    result[_middle(like.shape, size)] = head
    return result


def _middle(shape, size):
    starts = [(d - n + 1) // 2 for d, n in zip(shape[2:], size, strict=True)]
    return (slice(None), slice(None), *(slice(a, a + n) for a, n in zip(starts, size, strict=True)))


def _im2col(data, **params):
    found = windows_of(data, **params)
    return found.reshape(found.shape[0], found.shape[1] * found.shape[2], -1)


def _col2im(data, output_size, kernel, stride=(), dilate=(), pad=()):
    found = counts(output_size, *_frame(kernel, stride, dilate, pad))
    windows = data.reshape(data.shape[0], -1, int(np.prod(kernel)), *found)
    return _added(windows, kernel, stride, dilate, pad, (*windows.shape[:2], *output_size))


# ---- convolution -----------------------------------------------------------------------------------------------------
def _convolution(data, weight, bias=None, num_filter=None, num_group=1, no_bias=False, layout=None, **where):
    last = layout is not None and layout.endswith("C")
    if last:
        data, weight = np.moveaxis(data, -1, 1), np.moveaxis(weight, -1, 1)
    windows = windows_of(data, **where)  # (batch, channels, places, ...)
    rows = weight.reshape(*weight.shape[:2], -1)
    parts = [
        np.einsum("fcp,bcp...->bf...", w, x)
        for w, x in zip(np.split(rows, num_group), np.split(windows, num_group, 1), strict=True)
    ]
    return _finished(np.concatenate(parts, 1), bias, last)


def _convolved_data(head, weight, size=(), num_group=1, **where):
    rows = weight.reshape(*weight.shape[:2], -1)
    pairs = zip(np.split(rows, num_group), np.split(head, num_group, 1), strict=True)
    windows = np.concatenate([np.einsum("fcp,bf...->bcp...", w, x) for w, x in pairs], 1)
    return _added(windows, *_frame(**where), (head.shape[0], windows.shape[1], *size))


def _convolved_weight(data, head, num_group=1, **where):
    windows = windows_of(data, **where)
    windows = windows.reshape(*windows.shape[:3], -1)
    pairs = zip(np.split(windows, num_group, 1), np.split(head.reshape(*head.shape[:2], -1), num_group, 1), strict=True)
    return np.concatenate([np.einsum("bcpn,bfn->fcp", x, h) for x, h in pairs]).reshape(head.shape[1], -1, *where["kernel"])


def _finished(result, bias, last):
    if bias is not None:
        result = result + bias.reshape(-1, *(1,) * (result.ndim - 2))
    return np.moveaxis(result, 1, -1) if last else result


def deconvolution(
    data, weight, bias=None, kernel=(), stride=(), dilate=(), pad=(), adj=(), target_shape=(), num_filter=None, num_group=1,
    no_bias=True, layout=None,
):  # fmt: skip
    last = layout is not None and layout.endswith("C")
    if last:
        data, weight = np.moveaxis(data, -1, 1), np.moveaxis(weight, -1, 1)
    rows = weight.reshape(*weight.shape[:2], -1)
    parts = [
        np.einsum("cfp,bc...->bfp...", w, x)
        for w, x in zip(np.split(rows, num_group), np.split(data, num_group, 1), strict=True)
    ]
    windows = np.concatenate(parts, 1)
    pad, adj = ((), ()) if target_shape else (pad, adj)
    shape = (data.shape[0], num_filter, *_deconvolved(data.shape[2:], _frame(kernel, stride, dilate, pad), adj))
    result = _added(windows, kernel, stride, dilate, pad, shape)
    return _finished(_centre(result, target_shape) if target_shape else result, bias, last)


# ---- the records -----------------------------------------------------------------------------------------------------
#: Of what gradient rules and composites alone call.
GIVEN = {"shapes back": "it is called with shapes that fit each other, and looks at no others"}
_FRAMES = (
    ({"kernel": (2,)}, (2, 2, 3)),
    ({"kernel": (2, 3), "stride": (2, 1), "pad": (1, 0)}, (1, 2, 3, 4)),
    ({"kernel": (2, 1), "dilate": (2, 1), "stride": (1, 2)}, (2, 1, 4, 3)),
    ({"kernel": (1, 2, 2), "pad": (0, 1, 0), "stride": (1, 2, 2)}, (1, 1, 2, 2, 3)),
)
_PARTIAL = (
    ({"kernel": (2,), "stride": (2,), "count": "full"}, (1, 2, 5)),
    ({"kernel": (2,), "stride": (3,), "count": "same"}, (1, 2, 5)),
)
_SUMS = (
    ({"kernel": (2,)}, (2, 2, 2, 2)),
    ({"kernel": (3,), "stride": (2,), "pad": (1,)}, (1, 2, 3, 2)),
    ({"kernel": (2, 2), "stride": (1, 2), "size": (3, 5)}, (1, 2, 4, 2, 2)),
    ({"kernel": (2, 1), "dilate": (2, 1), "stride": (2, 2)}, (2, 1, 2, 2, 2)),
)
_CONVOLUTIONS = (
    ({"kernel": (2,), "num_filter": 2}, [(2, 2, 4), (2, 2, 2), (2,)]),
    ({"kernel": (2, 3), "num_filter": 2, "no_bias": True}, [(1, 2, 3, 4), (2, 2, 2, 3)]),
    ({"kernel": (3, 2), "stride": (2, 1), "pad": (1, 1), "num_filter": 2}, [(2, 1, 3, 2), (2, 1, 3, 2), (2,)]),
    ({"kernel": (2, 2), "dilate": (2, 1), "num_filter": 4, "num_group": 2}, [(1, 2, 4, 2), (4, 1, 2, 2), (4,)]),
    ({"kernel": (2, 2), "num_filter": 3, "num_group": 3, "no_bias": True}, [(1, 3, 3, 3), (3, 1, 2, 2)]),
    ({"kernel": (1, 1), "num_filter": 3}, [(2, 2, 2, 2), (3, 2, 1, 1), (3,)]),
    ({"kernel": (1, 1), "num_filter": 2, "stride": (2, 2), "no_bias": True}, [(1, 2, 3, 3), (2, 2, 1, 1)]),
    ({"kernel": (2, 1, 2), "pad": (1, 0, 0), "num_filter": 1}, [(1, 2, 2, 2, 2), (1, 2, 2, 1, 2), (1,)]),
    ({"kernel": (2, 2), "num_filter": 2, "layout": "NHWC"}, [(1, 3, 2, 2), (2, 2, 2, 2), (2,)]),
    ({"kernel": (1, 2, 1), "num_filter": 2, "layout": "NDHWC", "no_bias": True}, [(1, 2, 3, 2, 1), (2, 1, 2, 1, 1)]),
)
_DECONVOLUTIONS = (
    ({"kernel": (3,), "stride": (2,), "num_filter": 2}, [(2, 2, 3), (2, 2, 3)]),
    ({"kernel": (2, 2), "num_filter": 2, "no_bias": False}, [(1, 2, 2, 3), (2, 2, 2, 2), (2,)]),
    ({"kernel": (3, 2), "stride": (2, 2), "pad": (1, 0), "adj": (1, 1), "num_filter": 1}, [(1, 2, 2, 2), (2, 1, 3, 2)]),
    ({"kernel": (2, 2), "dilate": (2, 1), "num_filter": 4, "num_group": 2}, [(1, 2, 2, 2), (2, 2, 2, 2)]),
    ({"kernel": (3, 3), "stride": (2, 2), "target_shape": (4, 3), "num_filter": 1}, [(1, 1, 2, 2), (1, 1, 3, 3)]),
    (
        {"kernel": (3,), "stride": (2,), "pad": (9,), "adj": (7,), "target_shape": (4,), "num_filter": 1},
        [(1, 1, 2), (1, 1, 3)],
    ),
    ({"kernel": (2, 1, 2), "num_filter": 1}, [(1, 2, 1, 2, 2), (2, 1, 2, 1, 2)]),
    ({"kernel": (2, 2), "num_filter": 2, "layout": "NHWC", "no_bias": False}, [(1, 2, 2, 1), (1, 2, 2, 2), (2,)]),
)
#: Images, filters and results that belong together.
_THREE = (
    ({"kernel": (2,)}, [(2, 2, 4), (3, 2, 2), (2, 3, 3)]),
    ({"kernel": (3, 2), "stride": (2, 1), "pad": (1, 1)}, [(2, 1, 4, 2), (2, 1, 3, 2), (2, 2, 2, 3)]),
    ({"kernel": (2, 2), "dilate": (2, 1), "num_group": 2}, [(1, 2, 4, 2), (4, 1, 2, 2), (1, 4, 2, 1)]),
    ({"kernel": (1, 1), "stride": (2, 2)}, [(1, 2, 3, 4), (2, 2, 1, 1), (1, 2, 2, 2)]),
    ({"kernel": (1, 2, 1), "pad": (0, 1, 0)}, [(1, 1, 2, 1, 1), (1, 1, 1, 2, 1), (1, 1, 2, 2, 1)]),
)
_COLUMNS = (
    ({"kernel": (2, 2), "stride": (2, 1), "pad": (1, 0)}, [(2, 2, 3, 3)]),
    ({"kernel": (2,), "dilate": (2,)}, [(1, 2, 4)]),
    ({"kernel": (1, 2, 2)}, [(1, 1, 2, 2, 3)]),
)
_WHERE = {"kernel": (2, 2), "num_filter": 2, "no_bias": True}
_REFUSED = (
    Refusal("spans 3 elements", params={**_WHERE, "kernel": (3, 3)}, shapes=((1, 2, 2, 5), (2, 2, 3, 3))),
    Refusal("num_group=2 does not divide", params={**_WHERE, "num_group": 2}, shapes=((1, 3, 3, 3), (2, 1, 2, 2))),
    Refusal("num_group=2 does not divide", params={**_WHERE, "num_filter": 3, "num_group": 2},
            shapes=((1, 2, 3, 3), (3, 1, 2, 2))),
    Refusal(r"weight has shape \(2, 3, 2, 2\)", params=_WHERE, shapes=((1, 2, 3, 3), (2, 3, 2, 2))),
    Refusal("expected 2 numbers", params={**_WHERE, "stride": (1,)}, shapes=((1, 2, 3, 3), (2, 2, 2, 2))),
    Refusal("expected 2 numbers", params={**_WHERE, "pad": (1, -1)}, shapes=((1, 2, 3, 3), (2, 2, 2, 2))),
    Refusal("one to three sizes", params={**_WHERE, "kernel": ()}, shapes=((1, 2, 3, 3), (2, 2, 2, 2))),
    Refusal("expected 4 dimensions", params=_WHERE, shapes=((1, 2, 3), (2, 2, 2, 2))),
    Refusal("does not fit kernel", params={**_WHERE, "layout": "NCDHW"}, shapes=((1, 2, 3, 3), (2, 2, 2, 2))),
    Refusal("floating-point", params=_WHERE, shapes=((1, 2, 3, 3), (2, 2, 2, 2)), dtypes=("int32", "int32")),
)  # fmt: skip

RECORDS: dict[str, Record] = {
    "_windows": record_of(windows_of, *((p, [s]) for p, s in _FRAMES + _PARTIAL), order=2, unchecked=GIVEN),
    "_windows_sum": record_of(
        _windows_sum, *((p, [s]) for p, s in _SUMS),
        *((p | {"size": s[2:]}, [windows_of(np.zeros(s), **p).shape]) for p, s in _FRAMES + _PARTIAL), order=2, unchecked=GIVEN,
    ),
    "_convolved": record_of(_convolution, *((p, [x, w]) for p, (x, w, _) in _THREE), dtypes="f", order=2, unchecked=GIVEN),
    "_convolved_data": record_of(
        _convolved_data, *((p | {"size": x[2:]}, [y, w]) for p, (x, w, y) in _THREE), dtypes="f", order=2,
        unchecked=GIVEN | dict.fromkeys(("small shapes", "small gradients"), "the size of the images is a parameter"),
    ),
    "_convolved_weight": record_of(
        _convolved_weight, *((p, [x, y]) for p, (x, _, y) in _THREE), dtypes="f", order=2, unchecked=GIVEN,
    ),
    "_centre": record_of(_centre, ({"size": (2,)}, [(2, 1, 5)]), ({"size": (3, 1)}, [(1, 2, 4, 1)]), order=2),
    "_centre_grad": record_of(
        _centre_grad, ({"size": (2,)}, [(2, 1, 2), (2, 1, 5)]), ({"size": (3, 1)}, [(1, 2, 3, 1), (1, 2, 4, 1)]),
        grad_inputs=(0,), order=2, unchecked=GIVEN,
    ),
    "im2col": record_of(
        _im2col, *_COLUMNS, dtypes="f", unchecked={"shapes back": "the number of windows does not say where they lie"},
        refuses=[Refusal("spans 5", params={"kernel": (5, 5)}), Refusal("floating-point", dtypes=("int32",))],
    ),
    "col2im": record_of(
        _col2im,
        *(({**p, "output_size": s[0][2:]}, [_im2col(np.zeros(s[0]), **p).shape]) for p, s in _COLUMNS),
        dtypes="f",
        refuses=[Refusal("columns for kernel", shapes=((2, 8, 5),)), Refusal("columns for kernel", shapes=((2, 7, 6),)),
                 Refusal("expected 2 sizes", params={"kernel": (2, 2), "output_size": (3,)})],
    ),
    "Convolution": record_of(_convolution, *_CONVOLUTIONS, dtypes="f", refuses=_REFUSED),
    "Convolution_v1": record_of(_convolution, *(c for c in _CONVOLUTIONS if c[0]["kernel"] != (2,)), dtypes="f",
                                refuses=_REFUSED[:4]),
    "Deconvolution": record_of(
        deconvolution, *_DECONVOLUTIONS, dtypes="f",
        refuses=[*_REFUSED[4:8], Refusal("num_group=2 does not divide", params={**_WHERE, "num_group": 2}, shapes=(
            (1, 3, 3, 3), (3, 1, 2, 2))),
            Refusal("expected less than stride", params={**_WHERE, "adj": (1, 1)}, shapes=((1, 2, 3, 3), (2, 2, 2, 2))),
            Refusal("target_shape", params={**_WHERE, "target_shape": (9, 1)}, shapes=((1, 2, 3, 3), (2, 2, 2, 2))),
            Refusal("leaves nothing", params={**_WHERE, "pad": (2, 2)}, shapes=((1, 2, 3, 3), (2, 2, 2, 2)))],
    ),
}  # fmt: skip
