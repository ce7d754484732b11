"""Images ``(height, width, channels)``, or batches of them: conversion, parts, mirror images, other sizes, borders.

Values and sizes of new images are those of OpenCV 3.4, which MXNet uses.
"""

import math
from functools import lru_cache, partial

from ..opdef import Floats, Shape, composite, infer, kernel
from ..opdef.parts import Part
from ..support import dtypes
from ..support.errors import OpTypeError, OpValueError
from ._shared import adjoint, both_ways, device_of, element, equal_shapes, in_loops, in_steps, loops, on_host, typed_by_first


# ---- for this file and for image_random.py ---------------------------------------------------------------------------------
def axes_of(op, shape, channels_last=True):
    """Return the axes of height, width and channels of an image or a batch of them."""
    if len(shape) not in (3, 4):
        expected = "height, width, channels" if channels_last else "channels, height, width"
        raise OpValueError(
            f"operator {op}: data have shape {infer.show(shape)}; expected an image ({expected}), or a batch of them"
        )
    first = len(shape) - 3
    return (first, first + 1, first + 2) if channels_last else (first + 1, first + 2, first)


def real(F, data):
    """Return data in a type to compute with: all but float64 in float32."""
    return data if dtypes.code_of(data.dtype) in (dtypes.FLOAT32, dtypes.FLOAT64) else F.cast(data, dtype="float32")


def by_channel(F, data, values, axis):
    """Return one number for each channel, or for all, as an operand that is broadcast to real data."""
    shape = [1] * len(data.shape)
    shape[axis] = len(values)
    numbers = [F.full(shape=(1,), value=v, dtype=data.dtype, ctx=device_of(data)) for v in values]
    return F.reshape(F.Concat(*numbers, dim=0), shape=tuple(shape))


def as_given(F, data, found, saturate=True):
    """Return results in the type of the data: bytes are cut to 0...255."""
    code = dtypes.code_of(data.dtype)
    if saturate and code == dtypes.UINT8:
        found = F.clip(found, a_min=0, a_max=255)
    return found if dtypes.code_of(found.dtype) == code else F.cast(found, dtype=data.dtype)


# ---- from and to tensors ----------------------------------------------------------------------------------------------------
@composite(name="_image_to_tensor", aliases=("_npx__image_to_tensor",))
def to_tensor(F, data):
    """Convert images of bytes to float32 from 0 to 1, channels first: ``(channels, height, width)``.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(height, width, channels)`` or ``(batch, height, width, channels)``, of any type; the result is divided by 255.

    >>> mx.nd.image.to_tensor(mx.nd.array([[[0, 51, 255]]], dtype='uint8')).asnumpy().tolist()
    [[[0.0]], [[0.20000000298023224]], [[1.0]]]
    """
    height, width, channels = axes_of("_image_to_tensor", data.shape)
    moved = F.transpose(data, axes=(*range(height), channels, height, width))
    return F.cast(moved, dtype="float32") / 255


both_ways(to_tensor, lambda data: data and (*data[:-3], data[-1], *data[-3:-1]),
          lambda out, data: (*out[:-3], *out[-2:], out[-3]) if len(out) > 2 else None)  # fmt: skip
to_tensor.infer_types(lambda ins, outs: (ins, [dtypes.FLOAT32]))


@equal_shapes
@composite(name="_image_normalize", aliases=("_npx__image_normalize",))
def normalize(F, data, *, mean: Floats = (0, 0, 0, 0), std: Floats = (1, 1, 1, 1)):
    """Subtract a mean from each channel, and divide by a standard deviation.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(channels, height, width)`` or ``(batch, channels, height, width)``.
    mean, std : tuple of float
        One number for each channel, or one for all.

    >>> mx.nd.image.normalize(mx.nd.array([[[1]], [[4]]]), mean=(1, 2), std=(0.5,)).asnumpy().tolist()
    [[[0.0]], [[4.0]]]
    """
    axis = axes_of("_image_normalize", data.shape, channels_last=False)[2]
    channels, found = data.shape[axis], real(F, data)
    for name, values, unset in (("mean", mean, (0, 0, 0, 0)), ("std", std, (1, 1, 1, 1))):
        values = values[:1] if values == unset else values
        if len(values) not in (1, channels):
            raise OpValueError(f"operator _image_normalize: {name}={values} for data of shape {infer.show(data.shape)}; "
                               f"expected one number, or {channels}, one for each channel")  # fmt: skip
        operate = F.broadcast_sub if name == "mean" else F.broadcast_div
        found = operate(found, by_channel(F, found, values, axis))
    return as_given(F, data, found, saturate=False)


# ---- parts and mirror images ------------------------------------------------------------------------------------------------
@composite(name="_image_crop", aliases=("_npx__image_crop",), planned=False)
def crop(F, data, *, x: int, y: int, width: int, height: int):
    """Take a rectangle of images.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(height, width, channels)`` or ``(batch, height, width, channels)``.
    x, y : int
        The left edge, and the upper one.
    width, height : int
        The size of the result.

    >>> mx.nd.image.crop(mx.nd.array([[[1], [2], [3]]]), x=1, y=0, width=2, height=1).asnumpy().tolist()
    [[[2.0], [3.0]]]
    """
    axis = axes_of("_image_crop", data.shape)[0]
    size = data.shape[axis : axis + 2]
    if x < 0 or y < 0 or width < 1 or height < 1 or x + width > size[1] or y + height > size[0]:
        raise OpValueError(f"operator _image_crop: x={x}, y={y}, width={width}, height={height} is outside of images of width "
                           f"{size[1]} and height {size[0]}")  # fmt: skip
    return F.slice(data, begin=(*[None] * axis, y, x), end=(*[None] * axis, y + height, x + width))


@equal_shapes
@composite(name="_image_flip_left_right", aliases=("_npx__image_flip_left_right",))
def flip_left_right(F, data):
    """Exchange left and right of images ``(height, width, channels)``, or of a batch of them.

    >>> mx.nd.image.flip_left_right(mx.nd.array([[[1], [2], [3]]])).asnumpy().tolist()
    [[[3.0], [2.0], [1.0]]]
    """
    return F.reverse(data, axis=(axes_of("_image_flip_left_right", data.shape)[1],))


@equal_shapes
@composite(name="_image_flip_top_bottom", aliases=("_npx__image_flip_top_bottom",))
def flip_top_bottom(F, data):
    """Exchange top and bottom of images ``(height, width, channels)``, or of a batch of them.

    >>> mx.nd.image.flip_top_bottom(mx.nd.array([[[1]], [[2]]])).asnumpy().tolist()
    [[[2.0]], [[1.0]]]
    """
    return F.reverse(data, axis=(axes_of("_image_flip_top_bottom", data.shape)[0],))


# ---- other sizes ------------------------------------------------------------------------------------------------------------
_NEAREST, _LINEAR, _CUBIC, _AREA, _LANCZOS, _GROWN = range(6)  # the last: areas of images that become larger
_SUM, _LINEAR8, _CUBIC8, _MEAN, _MEAN_UP = range(5)  # the last steps of mxop/_kernels/pixels.pyx


def _allowed_types(op):
    """Let images have one of the types for which OpenCV can give them another size."""

    @op.infer_types
    def _(ins, outs, **params):
        found = infer.same_type(op.name, ["src", "output"], [ins[0], outs[0]])[0]
        if found not in (dtypes.UINT8, dtypes.FLOAT32, dtypes.FLOAT64, dtypes.UNKNOWN):
            raise OpTypeError(f"operator {op.name}: needs images of uint8, float32 or float64, got {dtypes.NAMES[found]}")
        return [found], [found]


@kernel(name="_cvimresize", aliases=("_npi_cvimresize",))
def imresize(src, *, w: int, h: int, interp: int = 1):
    """Give images the width `w` and the height `h`; ``mx.image.imresize`` says more.

    >>> mx.nd._internal._cvimresize(mx.nd.array([[[1], [3]]]), w=1, h=1).asnumpy().tolist()
    [[[2.0]]]
    """


@imresize.shape
def _(src, *, w, h, interp):
    axis = axes_of("_cvimresize", src)[0]
    if w < 1 or h < 1 or 0 in src[axis:]:
        raise OpValueError(f"operator _cvimresize: from shape {infer.show(src)} to w={w}, h={h}; expected sizes above 0")
    if interp not in range(5):
        raise OpValueError(f"operator _cvimresize: interp={interp}; expected 0 (nearest), 1 (bilinear), 2 (bicubic), 3 (area) "
                           "or 4 (Lanczos)")  # fmt: skip
    return (*src[:axis], h, w, src[-1])


_allowed_types(imresize)


@typed_by_first
@kernel(name="_cvimresize_grad", shape_only=(1,))
def imresize_grad(head, like, *, interp: int):
    """Spread elements over those of which they are weighted sums: the gradient of ``_cvimresize``."""


@imresize_grad.shape
def _(head, like, *, interp):
    axes_of("_cvimresize_grad", like)
    if len(head) != len(like) or (*head[:-3], head[-1]) != (*like[:-3], like[-1]) or 0 in head[-3:] or 0 in like[-3:]:
        raise OpValueError(
            f"operator _cvimresize_grad: head of shape {head} and like of {like} differ in more than width and height"
        )
    return like


@in_loops(imresize, real=False)
def _(xp, inputs, outputs, *, interp, **params):
    (image,), (out,) = inputs, outputs
    _resize(xp, image, out, image.shape, out.shape, interp)


@in_loops(imresize_grad, real=False)
def _(xp, inputs, outputs, *, interp):
    (head, _), (out,) = inputs, outputs
    _resize(xp, head, out, out.shape, head.shape, interp, back=True)


@imresize.gradient
def _(F, heads, inputs, outputs, *, interp, **params):
    return [F._cvimresize_grad(heads[0], inputs[0], interp=interp)]


@imresize_grad.gradient
def _(F, heads, inputs, outputs, *, interp):
    height, width = inputs[0].shape[-3:-1]
    return [F._cvimresize(heads[0], w=width, h=height, interp=interp), None]


def _resize(xp, given, out, old, new, interp, back=False):
    """Write images of another size, or the gradients of images of the size `old`."""
    if not out.size:
        return
    bytes_, scales = given.dtype == "uint8", [1 / (n / m) for m, n in zip(old[-3:-1], new[-3:-1], strict=True)]
    whole = all(abs(s - round(s)) < 2.3e-16 and round(s) for s in scales)
    if interp == _LINEAR and scales == [2, 2]:
        interp = _AREA
    if interp == _AREA and min(scales) < 1:
        interp = _GROWN
    form, way, scale = "float64" if given.dtype == "float64" else "float32", _SUM, 1.0
    if interp == _AREA:
        way = _MEAN_UP if bytes_ and scales == [2, 2] and old[-1] in (1, 3, 4) else _MEAN
        scale = 1 / (round(scales[0]) * round(scales[1])) if whole else 1.0
    elif interp == _NEAREST:
        way = _MEAN
    elif bytes_:
        form, way, scale = "int32", {_CUBIC: _CUBIC8, _LANCZOS: _SUM}.get(interp, _LINEAR8), 2.0**-22
    tables = [a for axis in (-2, -3) for a in _table(old[axis], new[axis], interp, whole, form, axis == -2, back)]
    given, out = (a.reshape(-1, *a.shape[-3:]) for a in (given, out))
    loops(xp, "pixels").resize(given, out, *tables, way, scale)


@lru_cache(512)
def _table(n, size, interp, whole, form, along_row, back):
    """Return where the weights of each of `size` new elements begin, the places of the `n` old ones, and the weights.

    With `back`, each of the `n` elements is a sum of some of `size` ones.
    """
    import numpy as np

    i, ratio = np.arange(size), size / n
    if interp == _NEAREST:
        counts, at, weights = np.ones(size, int), np.minimum(np.floor(i * (1 / ratio)), n - 1), np.ones(size)
    elif interp == _AREA:
        counts, at, weights = _areas(np, n, i, 1 / ratio)
        weights = np.ones(len(at)) if whole else weights
    else:
        counts, at, weights = _near(np, n, i, ratio, interp, along_row)
    weights = weights.astype("float32")
    weights = np.rint(weights * np.float32(2048)) if form == "int32" else weights
    if back:
        unused = np.setdiff1d(np.arange(n), at)
        places, at = np.concatenate([at, unused]), np.concatenate([np.repeat(i, counts), 0 * unused])
        order = np.argsort(places, kind="stable")
        counts, at, weights = np.bincount(places.astype(int)), at[order], np.append(weights, 0 * unused)[order]
    return np.cumsum([0, *counts], dtype="int32"), at.astype("int32"), weights.astype(form)


def _areas(np, n, i, scale):
    """Return how many old elements each new one covers, which ones, and the part of it that each takes."""
    begin, end = i * scale, i * scale + scale
    width, last = np.minimum(scale, n - begin), np.minimum(np.floor(end), n - 1)
    first = np.minimum(np.ceil(begin), last)
    head, tail = first - begin > 1e-3, end - last > 1e-3
    counts = (head + last - first + tail).astype(int)
    ends = np.cumsum(counts)
    at = np.arange(ends[-1]) + np.repeat(first - head - (ends - counts), counts)
    weights = np.repeat(1 / width, counts)
    weights[(ends - counts)[head]] = ((first - begin) / width)[head]
    weights[ends[tail] - 1] = (np.minimum(np.minimum(end - last, 1), width) / width)[tail]
    return counts, at, weights


def _near(np, n, i, ratio, interp, along_row):
    """Return how many old elements surround each new one, which ones, and their weights, as OpenCV computes these."""
    if interp == _GROWN:
        place = np.floor(i * (1 / ratio))
        rest = ((i + 1) - (place + 1) * ratio).astype("float32")
        rest = np.where(rest <= 0, 0, rest - np.floor(rest))
    else:
        where = ((i + 0.5) * (1 / ratio) - 0.5).astype("float32")
        place = np.floor(where)
        rest = where - place
    if along_row and interp in (_LINEAR, _GROWN):
        rest = np.where((place < 0) | (place >= n - 1), 0, rest)
        place = np.clip(place, 0, n - 1)
    rest = rest.astype("float32")
    weights = _cubic(rest) if interp == _CUBIC else _lanczos(np, rest) if interp == _LANCZOS else [1 - rest, rest]
    count = len(weights)
    at = np.clip(place[:, None] + np.arange(1 - count // 2, 1 + count // 2), 0, n - 1)
    return np.full(len(i), count), at.ravel(), np.stack(weights, axis=1).ravel()


def _cubic(at):
    """Return the weights of four elements for places between the two in the middle."""
    a = at.dtype.type(-0.75)
    outer = ((a * (at + 1) - 5 * a) * (at + 1) + 8 * a) * (at + 1) - 4 * a
    near, other = (((a + 2) * x - (a + 3)) * x * x + 1 for x in (at, 1 - at))
    return [outer, near, other, 1 - outer - near - other]


def _lanczos(np, at):
    """Return the weights of eight elements, by Lanczos' kernel."""
    angle = -(at.astype("float64") + 3) * math.pi / 4
    turned = [np.sin(angle) * c + np.cos(angle) * s for c, s in _TURNS]
    with np.errstate(all="ignore"):
        weights = [(t / (angle + k * math.pi / 4) ** 2).astype("float32") for k, t in enumerate(turned)]
        weights = [w * (1 / sum(weights[1:], weights[0])) for w in weights]
    return [np.where(at < np.finfo("float32").eps, np.float32(k == 3), w) for k, w in enumerate(weights)]


_S = math.sqrt(0.5)
_TURNS = ((1, 0), (-_S, -_S), (0, 1), (_S, -_S), (-1, 0), (_S, _S), (0, -1), (-_S, _S))


@composite(name="_image_resize", aliases=("_npx__image_resize",), planned=False)
def resized(F, data, *, size: Shape = (), keep_ratio: bool = False, interp: int = 1):
    """Give images another size.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(height, width, channels)`` or ``(batch, height, width, channels)``, of uint8, float32 or float64.
    size : int or tuple of int
        Width and height of the result; or one number for both.
    keep_ratio : bool
        Whether one number is the size of the shorter side, and the other follows from the ratio.
    interp : int
        0: nearest pixel, 1: bilinear, 2: bicubic, 3: mean of the area, 4: Lanczos.

    >>> mx.nd.image.resize(mx.nd.array([[[1], [3]]]), size=(4, 1)).asnumpy().ravel().tolist()
    [1.0, 1.5, 2.5, 3.0]
    """
    axis = axes_of("_image_resize", data.shape)[0]
    if len(size) not in (1, 2) or min(size) < 1:
        raise OpValueError(f"operator _image_resize: size={size}; expected width and height, or one number for both")
    height, width = data.shape[axis : axis + 2]
    w, h = size if len(size) == 2 else size * 2
    if keep_ratio and len(size) == 1 and height and width:
        w, h = (w, h * height // width) if height > width else (w * width // height, h)
    return F._cvimresize(data, w=w, h=h, interp=interp)


for _op in (normalize, crop, flip_left_right, flip_top_bottom, resized):
    typed_by_first(_op)


# ---- borders ----------------------------------------------------------------------------------------------------------------
_BORDERS = (None, "edge", "symmetric", "wrap", "reflect")


def _kind(type):
    """Return how a border is made, without OpenCV's flag for images that are not part of larger ones."""
    return type & ~16


@kernel(name="_cvcopyMakeBorder")
def border(src, *, top: int, bot: int, left: int, right: int, type: int = 0, value: float = 0.0, values: Floats = ()):
    """Surround an image; ``mx.image.copyMakeBorder`` says more.

    >>> bordered = mx.nd._internal._cvcopyMakeBorder(mx.nd.array([[[1]]]), top=0, bot=0, left=1, right=1, value=5)
    >>> bordered.asnumpy().ravel().tolist()
    [5.0, 1.0, 5.0]
    """


def _with_border(src, *, top, bot, left, right, type, sign=1, **params):
    """Return the shape of images with a border, as far as it follows; with the other sign, without it."""
    if src is None:
        return None
    sides = axes_of("_cvcopyMakeBorder", src)
    height, width = (
        None if src[a] is None else src[a] + sign * b for a, b in zip(sides, (top + bot, left + right), strict=False)
    )
    return (*src[:-3], height, width, src[-1])


@border.shape
def _(src, *, top, bot, left, right, type, value, values):
    if min(top, bot, left, right) < 0 or _kind(type) not in range(5) or (_kind(type) and 0 in src[-3:-1]):
        raise OpValueError(f"operator _cvcopyMakeBorder: top={top}, bot={bot}, left={left}, right={right}, type={type} for "
                           f"shape {infer.show(src)}; expected sizes from 0 on and a type from 0 to 4")  # fmt: skip
    return _with_border(src, top=top, bot=bot, left=left, right=right, type=type)


both_ways(border, _with_border, lambda out, src, **params: _with_border(out, sign=-1, **params))
typed_by_first(border)


@kernel(name="_cvcopyMakeBorder_grad")
def border_grad(head, *, top: int, bot: int, left: int, right: int, type: int):
    """Add borders to the pixels of which they are made: the gradient of ``_cvcopyMakeBorder``."""


@border_grad.shape
def _(head, *, top, bot, left, right, type):
    if len(head) not in (3, 4) or min(top, bot, left, right) < 0 or top + bot > head[-3] or left + right > head[-2]:
        raise OpValueError(f"operator _cvcopyMakeBorder_grad: head of shape {infer.show(head)} has no such borders")
    return _with_border(head, top=top, bot=bot, left=left, right=right, type=type, sign=-1)


both_ways(border_grad, partial(_with_border, sign=-1), lambda out, head, **params: _with_border(out, **params))
typed_by_first(border_grad)


def _runs(size, low, high, mode):
    """Yield the parts of an axis' margins, and the elements that each repeats: they lie in steps of one, or are one."""
    import numpy as np

    places = np.pad(np.arange(size), (low, high), mode=mode).tolist()
    for begin, end in ((0, low), (low + size, len(places))):
        while begin < end:
            step, stop = (places[begin + 1] - places[begin] if begin + 1 < end else 0), begin + 1
            step = step if abs(step) == 1 else 0
            while stop < end and places[stop] - places[stop - 1] == step:
                stop += 1
            first, last = places[begin] + low, places[stop - 1] + low
            yield slice(begin, stop), slice(first, last + (step or 1) if last + (step or 1) >= 0 else None, step or 1)
            begin = stop


@in_steps(border)
def _(steps, inputs, outputs, *, top, bot, left, right, type, value, values):
    image, out = (Part(steps, a) for a in (*inputs, *outputs))
    height, width, channels = image.shape[-3:]
    if not _kind(type):
        for c, number in enumerate(([*values, *[0.0] * channels] if values else [value] * channels)[:channels]):
            out[..., c] = element(_rounded(number, out.dtype), out.dtype, "copyMakeBorder")
    out[..., top : top + height, left : left + width, :] = image
    if _kind(type):
        for margin, source in _runs(width, left, right, _BORDERS[_kind(type)]):
            out[..., top : top + height, margin, :] = out[..., top : top + height, source, :]
        for margin, source in _runs(height, top, bot, _BORDERS[_kind(type)]):
            out[..., margin, :, :] = out[..., source, :, :]


def _rounded(number, dtype):
    """Return the number that an image of a type has for one: the nearest integer, of those that there are."""
    import numpy as np

    if dtype.kind not in "iu":
        return number
    return int(np.clip(np.rint(number), np.iinfo(dtype).min, np.iinfo(dtype).max))


@on_host(border_grad, real=False)
def _(np, inputs, outputs, *, top, bot, left, right, type):
    (head,), (out,) = inputs, outputs
    rows, columns = slice(top, top + out.shape[-3]), slice(left, left + out.shape[-2])
    if not _kind(type):
        out[...] = head[..., rows, columns, :]
        return
    sides = (out.shape[-3], top, bot), (out.shape[-2], left, right)
    rows, columns = (np.pad(np.arange(n), (low, high), mode=_BORDERS[_kind(type)]) for n, low, high in sides)
    total = np.zeros(out.shape, np.promote_types(out.dtype, np.float32))
    np.add.at(total, (..., rows[:, None], columns, slice(None)), head)
    out[...] = total


adjoint(border, border_grad)
