"""Convolutions and their transposes, in one to three dimensions: strides, dilation, padding, groups, layouts; im2col."""

from itertools import product

import numpy as np

from .drawing import operator
from .reference import Value, einsum, gathered, scattered


def padded(x, before, after, fill=0.0):
    """Return images ``(batch, channels, ...)`` with elements on either side of each dimension."""
    inside = (slice(None), slice(None), *(slice(b, b + n) for b, n in zip(before, x.shape[2:], strict=True)))
    widths = [(0, 0), (0, 0), *zip(before, after, strict=True)]
    return Value(np.pad(x.data, widths, constant_values=fill), (x, lambda h: h[inside]))


def places(kernel, stride, dilate, found):
    """Return where each place of all windows lies in the padded images."""
    return [(slice(None), slice(None), *(slice(p * d, p * d + (n - 1) * s + 1, s)
                                         for p, s, d, n in zip(place, stride, dilate, found, strict=True)))
            for place in product(*map(range, kernel))]  # fmt: skip


class Frame:
    """Drawn kernel, stride, dilation and padding, and sizes of images that have windows."""

    def __init__(self, draw, room, full=False):
        n = draw.pick([1, 1, 2, 2, 2, 3])
        self.n, most = n, (9, 5, 3)[n - 1]
        same = draw.flag(0.6)

        def numbers(low, high):
            return (draw.integer(low, high),) * n if same else tuple(draw.integer(low, high) for _ in range(n))

        self.kernel = numbers(1, most)
        self.stride = numbers(1, 3) if draw.flag(0.6) else (1,) * n
        self.dilate = numbers(1, 3) if draw.flag(0.3) else (1,) * n
        self.pad = tuple(draw.integer(0, min(k - 1, 3)) if draw.flag() else 0 for k in self.kernel)
        self.reach = tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilate, strict=True))
        sizes = draw.sizes(n, room=max(room, 4), most=(70_000, 300, 40)[n - 1], empty=0)
        self.sizes = tuple(max(s, r - 2 * p, 1) for s, r, p in zip(sizes, self.reach, self.pad, strict=True))

    def found(self):
        """Return how many windows there are."""
        return tuple((n + 2 * p - r) // s + 1
                     for n, p, r, s in zip(self.sizes, self.pad, self.reach, self.stride, strict=True))  # fmt: skip

    def params(self):
        return {"kernel": self.kernel, "stride": self.stride, "dilate": self.dilate, "pad": self.pad}

    def tags(self):
        return [text for text, holds in (("strided", set(self.stride) != {1}), ("dilated", set(self.dilate) != {1}),
                                         ("padded", any(self.pad)), (f"{self.n} dimensions", True)) if holds]  # fmt: skip


def _channels(draw, least_groups=1):
    """Return (groups, channels of each, filters of each); often depthwise."""
    groups = draw.pick([1, 1, 1, 2, 3, draw.size(40, least_groups)])
    if draw.flag(0.25):
        return max(groups, draw.size(40)), 1, draw.pick([1, 1, 2])
    most = max(70 // groups, 1)
    return groups, draw.size(most), draw.size(most)


def _drawn(draw):
    at = Frame(draw, draw.room)
    groups, channels, filters = _channels(draw)
    while (
        draw.room * 300 < np.prod(at.sizes) * groups * channels * filters * np.prod(at.kernel)
        and groups * channels * filters > 1
    ):
        groups, channels, filters = (max(n // 2, 1) for n in (groups, channels, filters))
    batch = draw.pick([1, 1, 2, 3, draw.size(9)]) if np.prod(at.sizes) * groups * channels < draw.room else 1
    return at, batch if not draw.flag(0.03) else 0, groups, channels, filters


def _last(draw, n):
    """Return a layout, and whether its channels are the last."""
    layout = draw.pick([None, None, *(([("NCW",), ("NCHW", "NHWC", "NHWC"), ("NCDHW", "NDHWC", "NDHWC")])[n - 1])])
    return layout, layout is not None and layout.endswith("C")


def _back(x):
    return x.transpose(0, *range(2, x.ndim), 1)


def _second(x):
    return x.transpose(0, x.ndim - 1, *range(1, x.ndim - 1))


def convolved(x, w, at, groups, found):
    batch, each = x.shape[0], x.shape[1] // groups
    windows = gathered(padded(x, at.pad, at.pad), places(at.kernel, at.stride, at.dilate, found))
    windows = windows.reshape(len(windows.data), batch, groups, each, int(np.prod(found)))
    w = w.reshape(groups, w.shape[0] // groups, each, len(windows.data))
    return einsum("kngcs,gfck->ngfs", windows, w).reshape(batch, w.shape[0] * w.shape[1], *found)


def added(x, w, kernel, stride, dilate, groups):
    """Return the transposed convolution of the whole result, with nothing cut off."""
    (batch, channels, *sizes), n = x.shape, int(np.prod(kernel))
    each, whole = (
        w.shape[1],
        [(m - 1) * s + (k - 1) * d + 1 for m, s, k, d in zip(sizes, stride, kernel, dilate, strict=True)],
    )
    parts = einsum("ngcs,gcfk->kngfs", x.reshape(batch, groups, channels // groups, int(np.prod(sizes))),
                   w.reshape(groups, channels // groups, each, n))  # fmt: skip
    parts = parts.reshape(n, batch, groups * each, *sizes)
    return scattered(parts, places(kernel, stride, dilate, sizes), (batch, groups * each, *whole))


def convolution(draw):
    at, batch, groups, channels, filters = _drawn(draw)
    (layout, last), no_bias, found = _last(draw, at.n), draw.flag(), at.found()

    def layer(x, w, *bias):
        y = convolved(_second(x) if last else x, _second(w) if last else w, at, groups, found)
        y = y + bias[0].reshape(-1, *(1,) * at.n) if bias else y
        return _back(y) if last else y

    data, weight = (batch, groups * channels, *at.sizes), (groups * filters, channels, *at.kernel)
    if last:
        data, weight = (s[:1] + s[2:] + s[1:2] for s in (data, weight))
    inputs = [draw.real(*data), draw.real(*weight), draw.real(groups * filters)]
    tags = [*at.tags(), *(["channels last"] if last else []), *(["grouped"] if groups > 1 else []),
            *(["depthwise"] if groups > 1 and channels == 1 else [])]  # fmt: skip
    return operator("Convolution", inputs[: 2 if no_bias else 3], layer, **at.params(), num_filter=groups * filters,
                    num_group=groups, no_bias=no_bias, layout=layout, tags=tags)  # fmt: skip


def deconvolution(draw):
    at, batch, groups, channels, filters = _drawn(draw)
    (layout, last), no_bias = _last(draw, at.n), draw.flag()
    adj = tuple(draw.integer(0, s - 1) if draw.flag() else 0 for s in at.stride)
    whole = tuple((n - 1) * s + r + a for n, s, r, a in zip(at.sizes, at.stride, at.reach, adj, strict=True))
    pad = tuple(p if n - 2 * p > 0 else 0 for p, n in zip(at.pad, whole, strict=True))
    inside = (slice(None), slice(None), *(slice(p, n - p) for p, n in zip(pad, whole, strict=True)))

    def layer(x, w, *bias):
        x, w = (_second(x), _second(w)) if last else (x, w)
        y = padded(added(x, w, at.kernel, at.stride, at.dilate, groups), (0,) * at.n, adj)[inside]
        y = y + bias[0].reshape(-1, *(1,) * at.n) if bias else y
        return _back(y) if last else y

    data, weight = (batch, groups * channels, *at.sizes), (groups * channels, filters, *at.kernel)
    if last:
        data, weight = (s[:1] + s[2:] + s[1:2] for s in (data, weight))
    inputs = [draw.real(*data), draw.real(*weight), draw.real(groups * filters)]
    return operator("Deconvolution", inputs[: 2 if no_bias else 3], layer, **(at.params() | {"pad": pad}), adj=adj,
                    num_filter=groups * filters, num_group=groups, no_bias=no_bias, layout=layout,
                    tags=[*at.tags(), *(["channels last"] if last else [])])  # fmt: skip


def _columns(draw):
    at = Frame(draw, draw.room // 4)
    at.n = 2
    for name in ("kernel", "stride", "dilate", "pad", "reach", "sizes"):
        numbers = getattr(at, name)
        setattr(at, name, numbers[:2] if len(numbers) > 1 else numbers * 2)
    at.sizes = tuple(max(min(s, 60), r - 2 * p, 1) for s, r, p in zip(at.sizes, at.reach, at.pad, strict=True))
    return at, draw.integer(1, 3), draw.size(5)


def im2col(draw):
    at, batch, channels = _columns(draw)
    found = at.found()

    def columns(x):
        windows = gathered(padded(x, at.pad, at.pad), places(at.kernel, at.stride, at.dilate, found))
        return windows.transpose(1, 2, 0, 3, 4).reshape(batch, channels * len(windows.data), int(np.prod(found)))

    return operator("im2col", [draw.real(batch, channels, *at.sizes)], columns, **at.params(), tags=at.tags())


def col2im(draw):
    at, batch, channels = _columns(draw)
    found, n = at.found(), int(np.prod(at.kernel))
    sizes = [s + 2 * p for s, p in zip(at.sizes, at.pad, strict=True)]
    inside = (slice(None), slice(None), *(slice(p, p + s) for p, s in zip(at.pad, at.sizes, strict=True)))

    def summed(x):
        parts = x.reshape(batch, channels, n, *found).transpose(2, 0, 1, 3, 4)
        return scattered(parts, places(at.kernel, at.stride, at.dilate, found), (batch, channels, *sizes))[inside]

    inputs = [draw.real(batch, channels * n, int(np.prod(found)))]
    return operator("col2im", inputs, summed, output_size=at.sizes, **at.params(), tags=at.tags())


MAKERS = [convolution, convolution, convolution, deconvolution, deconvolution, im2col, col2im]
