"""Records of deformable convolution (``mxop/ops/deformable.py``): the references move windows pixel by pixel."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal, record_of
from .sampling import weights


def _pixels(data, offset, mask, kernel, stride, dilate, pad, groups, clamp):
    """Return the pixels of windows, ``(batch, channels, elements, down, across)``."""
    batch, channels, height, width = data.shape
    elements, (down, across) = kernel[0] * kernel[1], offset.shape[2:]
    offset = offset.reshape(batch, groups, elements, 2, down, across)
    of_each = []
    for group in range(groups):
        part = data.reshape(batch, groups, -1, height, width)[:, group]
        for k, (i, j) in enumerate(np.ndindex(*kernel)):
            y = offset[:, group, k, 0] + (np.arange(down) * stride[0] - pad[0] + i * dilate[0])[:, None]
            x = offset[:, group, k, 1] + np.arange(across) * stride[1] - pad[1] + j * dilate[1]
            found = np.einsum(
                "nijy,nijx,ncyx->ncij", weights(y, height, False, False, clamp), weights(x, width, False, False, clamp), part
            )
            of_each.append(found if mask is None else found * mask[:, group * elements + k][:, None])
    found = np.reshape(of_each, (groups, elements, batch, channels // groups, down, across))
    return found.transpose(2, 0, 3, 1, 4, 5).reshape(batch, channels, elements, down, across)


def _convolution(data, offset, *rest, kernel, num_filter, stride=(1, 1), dilate=(1, 1), pad=(0, 0), num_group=1,
                 num_deformable_group=1, no_bias=False, mask=None):  # fmt: skip
    weight, bias = rest[0], 0 if no_bias else rest[1][:, None, None]
    pixels = _pixels(data, offset, mask, kernel, stride, dilate, pad, num_deformable_group, mask is None)
    parts = np.split(pixels, num_group, axis=1)
    filters = np.split(weight.reshape(*weight.shape[:2], -1), num_group)
    found = [np.einsum("fck,nckij->nfij", f, p) for f, p in zip(filters, parts, strict=True)]
    return np.concatenate(found, axis=1) + bias


def _modulated(data, offset, mask, *rest, **params):
    return _convolution(data, offset, *rest, mask=mask, **params)


_PLAIN = {"kernel": (2, 2), "num_filter": 2, "no_bias": True}
_CASES = (
    (_PLAIN, [(1, 2, 4, 3), (1, 8, 3, 2), (2, 2, 2, 2)]),
    ({"kernel": (1, 2), "num_filter": 2, "stride": (2, 1), "dilate": (1, 2), "pad": (1, 1), "num_group": 2,
      "num_deformable_group": 2}, [(2, 2, 3, 4), (2, 8, 3, 4), (2, 1, 1, 2), (2,)]),
)  # fmt: skip


def _with_mask(shapes):
    data, (batch, twice, *size), *rest = shapes
    return [data, (batch, twice, *size), (batch, twice // 2, *size), *rest]


def _between(data, offset, *rest):
    """Return offsets that end between pixels: from -2.8 to 2.8, but for what is near whole numbers."""
    return (data, np.floor(offset) + 0.2 + 0.6 * (offset - np.floor(offset)), *rest)


def _refusals(masked):
    def shapes(*given):
        return tuple(_with_mask(given) if masked else given)

    return [
        Refusal("expected two sizes", params={**_PLAIN, "kernel": (2,)}),
        Refusal("expected two sizes", params={**_PLAIN, "layout": "NCW"}),
        Refusal("num_deformable_group=2 does not divide", params={**_PLAIN, "num_deformable_group": 2},
                shapes=shapes((1, 3, 4, 3), (1, 16, 3, 2), (2, 3, 2, 2))),
        Refusal("num_group=2 does not divide", params={**_PLAIN, "num_filter": 3, "num_group": 2}),
        Refusal("offset has shape", shapes=shapes((1, 2, 4, 3), (1, 8, 3, 3), (2, 2, 2, 2))),
        Refusal("floating-point", dtypes=("int32",) * (3 + masked)),
    ]  # fmt: skip


_INFINITE = {"special": "0 times an infinite pixel is NaN in the reference"}
_SMALL = dict.fromkeys(("small shapes", "small gradients"), "one of mask and offset would stay as it is")


def _record(reference, masked):
    return record_of(
        reference, *((p, _with_mask(s) if masked else s) for p, s in _CASES), prepare=_between, dtypes="f",
        unchecked=_INFINITE | (_SMALL if masked else {}), refuses=_refusals(masked),
        domain=((-1, 1), (-3, 2.9), *((-1, 1),) * (2 + masked)),
    )  # fmt: skip


RECORDS: dict[str, Record] = {
    "_contrib_DeformableConvolution": _record(_convolution, False),
    "_contrib_ModulatedDeformableConvolution": _record(_modulated, True),
}
