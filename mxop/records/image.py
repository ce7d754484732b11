"""Records of operators on images (``mxop/ops/image.py``); what MXNet 1.9.1 gives stands in ``tests/test_image.py``."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal

_IMAGES = [((4, 5, 3),), ((2, 3, 4, 1),)]
_NO_IMAGE = Refusal("expected an image", shapes=((2, 3),))
_EDGES = ("edge", "symmetric", "wrap", "reflect")


def _normalized(data, mean=(0,), std=(1,)):
    shape = (-1, 1, 1)
    return (data - np.reshape(mean, shape)) / np.reshape(std, shape)


def _weights(n, size, interp):
    """Return the weights of `n` elements for each of `size` new ones: nearest, bilinear or bicubic."""
    matrix = np.zeros((size, n))
    for i in range(size):
        at = i * n / size if interp == 0 else (i + 0.5) * n / size - 0.5
        place = int(np.floor(at))
        for k in {0: range(1), 1: range(2), 2: range(-1, 3)}[interp]:
            x = abs(at - place - k)
            weight = {0: 1, 1: 1 - x, 2: 1.25 * x**3 - 2.25 * x**2 + 1 if x <= 1 else -0.75 * (x**3 - 5 * x**2 + 8 * x - 4)}[
                interp
            ]
            matrix[i, min(max(place + k, 0), n - 1)] += weight
    return matrix


def _resized(data, w, h, interp=1):
    return np.einsum("hy,wx,...yxc->...hwc", _weights(data.shape[-3], h, interp), _weights(data.shape[-2], w, interp), data)


def _spread(head, like, interp):
    rows, columns = (_weights(like.shape[axis], head.shape[axis], interp) for axis in (-3, -2))
    return np.einsum("hy,wx,...hwc->...yxc", rows, columns, head)


def _by_size(data, size, keep_ratio=False, interp=1):
    height, width = data.shape[-3:-1]
    if keep_ratio and len(size) == 1:
        size = (size[0], size[0] * height // width) if height > width else (size[0] * width // height, size[0])
    return _resized(data, size[0], size[-1], interp)


def _bordered(data, top, bot, left, right, type=0, value=0.0, values=()):
    sides = [(0, 0)] * (data.ndim - 3) + [(top, bot), (left, right), (0, 0)]
    if type:
        return np.pad(data, sides, mode=_EDGES[type - 1])
    parts = [np.pad(data[..., c], sides[:-1], constant_values=values[c] if values else value) for c in range(data.shape[-1])]
    return np.stack(parts, axis=-1)


def _folded(head, top, bot, left, right, type):
    rows, columns = head.shape[-3] - top - bot, head.shape[-2] - left - right
    if not type:
        return head[..., top : top + rows, left : left + columns, :]
    found, mode = np.zeros((*head.shape[:-3], rows, columns, head.shape[-1])), _EDGES[type - 1]
    for i, row in enumerate(np.pad(np.arange(rows), (top, bot), mode)):
        for j, column in enumerate(np.pad(np.arange(columns), (left, right), mode)):
            found[..., row, column, :] += head[..., i, j, :]
    return found


_CROP = {"x": 1, "y": 1, "width": 2, "height": 1}
_SIDES = {"top": 1, "bot": 0, "left": 2, "right": 1}
_FORWARD = {"shapes back": "forward: the result does not say of which size"}
#: Sizes of which the weights, which are float32, are exact; tests/test_image.py has MXNet's results for others.
_SIZED = {"dtypes": "l", "unchecked": {"special": "infinity times a weight of 0", **_FORWARD}}

RECORDS: dict[str, Record] = {
    "_image_to_tensor": Record(
        lambda data: np.moveaxis(data, -1, -3) / 255, shapes=_IMAGES, returns="float32", refuses=[_NO_IMAGE],
        unchecked=dict.fromkeys(("gradient", "head gradients"), "results are float32; tests/test_image.py has the gradient"),
    ),
    "_image_normalize": Record(
        _normalized, shapes=[((3, 4, 5),), ((2, 3, 2, 2),)], refuses=[
            _NO_IMAGE, Refusal("one for each channel", params={"mean": (1, 2)}), Refusal("std=", params={"std": (1, 2, 3, 4)}),
        ],
        params=[{"mean": (0.5, 1.0, -1.0), "std": (0.5, 2.0, 4.0)}, {"mean": (0.25,), "std": (2.0,)}],
    ),
    "_image_crop": Record(
        lambda data, x, y, width, height: data[..., y : y + height, x : x + width, :], shapes=_IMAGES, params=[_CROP],
        refuses=[Refusal("expected an image", shapes=((2, 3),), params=_CROP), *(Refusal("is outside", params={**_CROP, **bad})
                 for bad in ({"x": -1}, {"y": 4}, {"width": 0}, {"height": 4}, {"width": 5}))],
    ),
    "_image_flip_left_right": Record(lambda data: data[..., ::-1, :], shapes=_IMAGES, refuses=[_NO_IMAGE]),
    "_image_flip_top_bottom": Record(lambda data: data[..., ::-1, :, :], shapes=_IMAGES, refuses=[_NO_IMAGE]),
    "_image_resize": Record(
        _by_size, shapes=[((4, 8, 3),), ((4, 8, 3),), ((2, 4, 2, 1),)],
        params=[{"size": (2,)}, {"size": (8,), "keep_ratio": True}, {"size": (8, 2), "interp": 2}],
        refuses=[Refusal("size=", params={"size": (1, 2, 3)}), Refusal("size=", params={"size": (0, 1)})], **_SIZED,
    ),
    "_cvimresize": Record(
        _resized, shapes=[((4, 8, 3),), ((4, 2, 1),), ((2, 1, 4, 5),)],
        params=[{"w": 4, "h": 8, "interp": k} for k in range(3)],
        refuses=[Refusal("sizes above 0", params={"w": 0, "h": 1}), Refusal("interp=5", params={"w": 1, "h": 1, "interp": 5}),
                 Refusal("needs images", params={"w": 1, "h": 1}, dtypes=("int32",))], **_SIZED,
    ),
    "_cvimresize_grad": Record(
        _spread, shapes=[((4, 4, 3), (4, 8, 3)), ((8, 4, 1), (4, 2, 1)), ((2, 1, 8, 2), (2, 1, 4, 2))],
        params=[{"interp": k} for k in range(3)], grad_inputs=(0,), **_SIZED,
        refuses=[Refusal("differ in more", shapes=((4, 4, 3), (4, 4, 1)), params={"interp": 1})],
    ),
    "_cvcopyMakeBorder": Record(
        _bordered, shapes=[((4, 5, 3),), ((2, 3, 4, 3),)],
        params=[{**_SIDES, "value": 1.0}, {**_SIDES, "values": (1.0, 2.0, 3.0)}, *({**_SIDES, "type": k} for k in range(1, 5))],
        refuses=[Refusal("top=-1", params={**_SIDES, "top": -1}), Refusal("type=5", params={**_SIDES, "type": 5})],
    ),
    "_cvcopyMakeBorder_grad": Record(
        _folded, shapes=[((4, 5, 3),), ((2, 6, 7, 1),)], params=[{**_SIDES, "type": k} for k in range(5)],
        refuses=[Refusal("no such borders", params={**_SIDES, "left": 5, "type": 0})],
    ),
}  # fmt: skip
