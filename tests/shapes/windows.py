"""Pooling and resizing of images."""

import numpy as np

from .convolution import Frame, _back, _second, added, padded, places
from .drawing import operator
from .reference import einsum, first_extreme, gathered, joined, moved, sqrt, value


def pooling(draw):
    at = Frame(draw, draw.room // 2)
    at.dilate, at.reach = (1,) * at.n, at.kernel
    at.sizes = tuple(max(s, k) for s, k in zip(at.sizes, at.kernel, strict=True))
    convention, kind = (
        draw.pick(["valid", "valid", "full", "same"]),
        draw.pick(["max", "max", "avg", "avg", "sum", "lp"]),
    )
    if convention == "same":
        at.pad = (0,) * at.n
    include, whole = draw.flag(0.7), draw.flag(0.15)
    numbers = list(zip(at.sizes, at.kernel, at.stride, at.pad, strict=True))
    if convention == "valid":
        found = tuple((n + 2 * p - k) // s + 1 for n, k, s, p in numbers)
    elif convention == "full":
        found = tuple(-((n + 2 * p - k) // -s) + 1 for n, k, s, p in numbers)
    else:
        found = tuple(-(n // -s) for n, k, s, p in numbers)
    batch, channels = draw.integer(1, 3), draw.size(20)
    layouts = [(None, "NCW", "NWC"), (None, "NCHW", "NHWC"), (None, "NCDHW", "NDHWC")][at.n - 1]
    layout = draw.pick(layouts)
    last = layout is not None and layout.endswith("C")
    beyond = tuple(max((f - 1) * s + k - n - p, p) for f, (n, k, s, p) in zip(found, numbers, strict=True))

    def reduced(windows, axis):
        if kind == "max":
            return first_extreme(windows, (axis,), False)
        if kind == "lp":
            return sqrt((windows * windows).sum((axis,)))
        return windows.sum((axis,))

    def pooled(x):
        x = _second(x) if last else x
        if whole:
            y = reduced(x.reshape(*x.shape[:2], -1), 2) * (1 / np.prod(at.sizes) if kind == "avg" else 1.0)
            y = y.reshape(*y.shape, *(1,) * at.n)
        else:
            large = padded(x, at.pad, beyond, -np.inf if kind == "max" else 0.0)
            y = reduced(gathered(large, places(at.kernel, at.stride, at.dilate, found)), 0)
            if kind == "avg":
                y = y * (1 / divisor())
        return _back(y) if last else y

    def divisor():
        total = np.ones(1)
        for f, (n, k, s, p) in zip(found, numbers, strict=True):
            inside = (0, n + 2 * p) if include else (p, p + n)
            counts = [max(min(i * s + k, inside[1]) - max(i * s, inside[0]), 0) for i in range(f)]
            total = np.multiply.outer(total, counts)
        return np.maximum(total[0], 1)

    shape = (batch, channels, *at.sizes)
    shape = shape[:1] + shape[2:] + shape[1:2] if last else shape
    data = draw.real(*shape, low=0.5, high=1.5) if kind == "lp" else draw.real(*shape)
    tags = [*at.tags(), kind, convention, *(["channels last"] if last else []), *(["global"] if whole else [])]
    return operator("Pooling", [data], pooled, kernel=at.kernel, stride=at.stride, pad=at.pad, pool_type=kind,
                    pooling_convention=convention, global_pool=whole, count_include_pad=include, layout=layout,
                    p_value=2 if kind == "lp" else None, tags=tags)  # fmt: skip


def _images(draw, room=None, least=1):
    batch, channels, height, width = draw.sizes(4, room=room or draw.room // 4, most=300, empty=0.02)
    return batch, channels, max(height, least), max(width, least)


def upsampling(draw):
    scale, (batch, channels, height, width) = draw.integer(1, 4), _images(draw)
    several = draw.flag(0.3)
    total = draw.pick(["concat", "sum"]) if several else "concat"

    def larger(*images):
        found = []
        for x in images:
            down, right = scale * height // x.shape[2], scale * width // x.shape[3]
            found.append(moved(x, lambda a, d=down, r=right: a.repeat(d, 2).repeat(r, 3)))
        return found[0] if len(found) == 1 else joined(found, 1) if total == "concat" else found[0] + found[1]

    inputs = [draw.real(batch, channels, height, width)]
    if several:
        factor = draw.pick([f for f in range(1, scale + 1) if scale % f == 0])
        inputs.append(draw.real(batch, channels, height * factor, width * factor))
    return operator("UpSampling", inputs, larger, scale=scale, sample_type="nearest", multi_input_mode=total,
                    num_args=len(inputs))  # fmt: skip


def upsampling_bilinear(draw):
    scale, (batch, channels, height, width) = draw.integer(1, 4), _images(draw, draw.room // 16)
    k, pad, batch, channels = 2 * scale - scale % 2, scale // 2, max(batch, 1), max(channels, 1)

    def larger(x, w):
        y = added(x, w, (k, k), (scale, scale), (1, 1), channels)
        return y[:, :, pad : pad + scale * height, pad : pad + scale * width]

    inputs = [draw.real(batch, channels, height, width), draw.real(channels, 1, k, k)]
    return operator("UpSampling", inputs, larger, scale=scale, sample_type="bilinear", num_filter=channels, num_args=2,
                    tags=["bilinear"])  # fmt: skip


def _mixed(weights, x, axis):
    letters = "abcd"
    return einsum(f"{letters},z{letters[axis]}->{letters.replace(letters[axis], 'z')}", x, value(weights))


def _interpolated(n, size, corners):
    at = np.linspace(0, n - 1, size) if corners or size == 1 else np.clip((np.arange(size) + 0.5) * n / size - 0.5, 0, n - 1)
    low = np.minimum(np.floor(at).astype(int), n - 1)
    weights = np.zeros((size, n))
    np.add.at(weights, (np.arange(size), low), 1 - (at - low))
    np.add.at(weights, (np.arange(size), np.minimum(low + 1, n - 1)), at - low)
    return weights


def bilinear_resize(draw):
    shape, (height, width), corners = _images(draw), draw.sizes(2, room=draw.room // 4, most=200, empty=0), draw.flag()

    def resized(x, *like):
        x = _mixed(_interpolated(shape[2], height, corners), x, 2)
        return _mixed(_interpolated(shape[3], width, corners), x, 3)

    return operator("contrib.BilinearResize2D", [draw.real(*shape)], resized, height=height, width=width, align_corners=corners)


def adaptive_pooling(draw):
    shape, size = _images(draw), draw.sizes(2, room=draw.room // 4, most=60, empty=0)

    def weights(n, size):
        found = np.zeros((size, n))
        for i in range(size):
            low, high = i * n // size, -((i + 1) * n // -size)
            found[i, low:high] = 1 / (high - low)
        return found

    def pooled(x):
        return _mixed(weights(shape[3], size[1]), _mixed(weights(shape[2], size[0]), x, 2), 3)

    return operator("contrib.AdaptiveAvgPooling2D", [draw.real(*shape)], pooled, output_size=size)


MAKERS = [pooling, pooling, pooling, upsampling, upsampling_bilinear, bilinear_resize, adaptive_pooling]
