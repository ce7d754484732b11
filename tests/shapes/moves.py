"""What only moves elements: whole and part of arrays, of every type; gradients are the moves back."""

import numpy as np

from .drawing import operator
from .reference import joined, moved, stacked

#: Several dimensions, some of which are small: what is moved is lines, tiles or elements.
REALS = ("float32", "float64", "float16")


def transpose(draw):
    shape = draw.shape(1, 5)
    axes = tuple(int(a) for a in draw.rng.permutation(len(shape)))
    if draw.flag(0.2):
        return operator("transpose", [draw.real(*shape)], lambda x: x.transpose(*range(x.ndim)[::-1]))
    return operator("transpose", [draw.real(*shape)], lambda x: x.transpose(*axes), axes=axes)


def swapaxes(draw):
    shape = draw.shape(2, 5)
    a, b = (int(k) for k in draw.rng.permutation(len(shape))[:2])
    return operator("swapaxes", [draw.real(*shape)], lambda x: moved(x, lambda y: y.swapaxes(a, b)), dim1=a, dim2=b)


def _range(draw, n):
    """Return begin, end and step of a slice that leaves an element or more."""
    step = draw.pick([1, 1, 2, 3, -1, -2, None])
    first, last = sorted((draw.integer(0, n - 1), draw.integer(0, n - 1)))
    begin, end = (first, last + 1) if (step or 1) > 0 else (last, first - 1 if first else None)
    begin = None if draw.flag(0.2) else begin - n if draw.flag(0.3) else begin
    end = None if draw.flag(0.2) else end - n if end is not None and end < n and draw.flag(0.3) and (step or 1) > 0 else end
    return begin, end, step


def part(draw):
    shape = draw.shape(1, 5, empty=0)
    ranges = [_range(draw, n) for n in shape[: draw.integer(1, len(shape))]]
    begin, end, step = zip(*ranges, strict=True)
    where = tuple(slice(*r) for r in ranges)
    options = {} if set(step) <= {1, None} and draw.flag() else {"step": step}
    if not options:
        where = tuple(slice(b, e) for b, e, _ in ranges)
    tags = ["backward steps"] if options and any((s or 1) < 0 for s in step) else []
    return operator("slice", [draw.real(*shape)], lambda x: x[where], begin=begin, end=end, tags=tags, **options)


def part_of_axis(draw):
    shape = draw.shape(1, 5, empty=0)
    axis = draw.axis(len(shape))
    n = shape[axis]
    first, last = sorted((draw.integer(0, n - 1), draw.integer(0, n - 1)))
    begin, end = first - n if draw.flag(0.3) else first, None if draw.flag(0.3) else last + 1
    where = (slice(None),) * (axis % len(shape)) + (slice(begin, end),)
    return operator("slice_axis", [draw.real(*shape)], lambda x: x[where], axis=axis, begin=begin, end=end)


def part_like(draw):
    shape = draw.shape(1, 4, empty=0)
    axes = draw.axes(len(shape)) if draw.flag() else ()
    small = tuple(draw.integer(1, n) if not axes or k in axes else n for k, n in enumerate(shape))
    like = draw.whole(0, 1, small, "float32")
    where = tuple(map(slice, small))
    return operator("slice_like", [draw.real(*shape), like], lambda x, y: x[where], axes=axes, dtypes=("float32",))


def crop(draw):
    shape = draw.sizes(4, most=300, empty=0)
    height, width = draw.integer(1, shape[2]), draw.integer(1, shape[3])
    y, x = draw.integer(0, shape[2] - height), draw.integer(0, shape[3] - width)
    centre = draw.flag(0.3)
    if centre:
        y, x = (shape[2] - height) // 2, (shape[3] - width) // 2
    options = {"center_crop": True} if centre else {"offset": (y, x)}
    return operator(
        "Crop", [draw.real(*shape)], lambda a: a[:, :, y : y + height, x : x + width], h_w=(height, width), **options
    )


def concat(draw):
    shape, n = draw.shape(1, 4), draw.integer(1, 6)
    axis = draw.axis(len(shape))
    k = axis % len(shape)
    lengths = [draw.size(max(2 * shape[k] // n, 1), 0 if draw.flag(0.1) else 1) for _ in range(n)]
    inputs = [draw.real(*shape[:k], m, *shape[k + 1 :]) for m in lengths]
    return operator("concat", inputs, lambda *xs: joined(xs, k), dim=axis)


def stack(draw):
    shape, n = draw.shape(0, 4, room=max(draw.room // 4, 1)), draw.integer(1, 5)
    axis = draw.integer(-len(shape) - 1, len(shape))
    k = axis % (len(shape) + 1)
    return (
        operator("stack", [draw.real(*shape) for _ in range(n)], lambda *xs: stacked(xs, k), axis=axis)
        if shape
        else concat(draw)
    )


def split(draw):
    n, shape = draw.integer(1, 5), draw.shape(1, 4, empty=0)
    axis = draw.axis(len(shape))
    k = axis % len(shape)
    shape = (*shape[:k], shape[k] * n, *shape[k + 1 :])
    squeeze = draw.flag(0.3) and shape[k] == n and len(shape) > 1

    def parts(x):
        each = shape[k] // n
        found = [moved(x, lambda a, i=i: np.take(a, range(i * each, (i + 1) * each), k)) for i in range(n)]
        return [moved(y, lambda a: a.squeeze(k)) for y in found] if squeeze else found

    return operator("split", [draw.real(*shape)], parts, num_outputs=n, axis=axis, squeeze_axis=squeeze)


def tile(draw):
    shape, reps = (
        draw.shape(1, 4, room=max(draw.room // 8, 1)),
        tuple(draw.integer(1, 4) for _ in range(draw.integer(1, 4))),
    )
    return operator("tile", [draw.real(*shape)], lambda x: moved(x, lambda a: np.tile(a, reps)), reps=reps)


def repeat(draw):
    shape, n = draw.shape(1, 4, room=max(draw.room // 4, 1)), draw.integer(1, 6)
    axis = draw.axis(len(shape)) if draw.flag(0.7) else None
    return operator("repeat", [draw.real(*shape)], lambda x: moved(x, lambda a: a.repeat(n, axis)), repeats=n, axis=axis)


def flip(draw):
    shape = draw.shape(1, 5)
    axes = draw.axes(len(shape))
    axes = axes[0] if len(axes) == 1 else axes
    op = draw.pick(["flip", "reverse"])
    return operator(op, [draw.real(*shape)], lambda x: moved(x, lambda a: np.flip(a, axes)), axis=axes)


def pad(draw):
    rank = draw.pick([4, 4, 5])
    shape = draw.sizes(rank, most=300, room=draw.room // 2, empty=0)
    mode = draw.pick(["constant", "edge", "reflect"])
    most = [0, 0, *((n - 1 if mode == "reflect" else 9) for n in shape[2:])]
    widths = [(draw.integer(0, min(m, 9)), draw.integer(0, min(m, 9))) for m in most]
    fill = draw.pick([0.0, 1.5])

    def padded(x):
        if mode == "constant":
            return moved(x, lambda a: np.pad(a, widths, constant_values=-1), fill)
        return moved(x, lambda a: np.pad(a, widths, mode=mode))

    return operator("pad", [draw.real(*shape)], padded, mode=mode, pad_width=tuple(w for pair in widths for w in pair),
                    constant_value=fill, tags=[mode])  # fmt: skip


def blocks(draw):
    op, n = draw.pick(["space_to_depth", "depth_to_space"]), draw.integer(1, 4)
    b, c, h, w = draw.sizes(4, room=max(draw.room // (n * n), 1), most=200, empty=0)

    def to_depth(a):
        return a.reshape(b, c, h, n, w, n).transpose(0, 3, 5, 1, 2, 4).reshape(b, n * n * c, h, w)

    def to_space(a):
        return a.reshape(b, n, n, c, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(b, c, h * n, w * n)

    shape = (b, c, h * n, w * n) if op == "space_to_depth" else (b, c * n * n, h, w)
    function = to_depth if op == "space_to_depth" else to_space
    return operator(op, [draw.real(*shape)], lambda x: moved(x, function), block_size=n)


def reshape(draw):
    shape = draw.shape(1, 5)
    joined_axes = draw.integer(0, len(shape) - 1)
    new = (*shape[:joined_axes], int(np.prod(shape[joined_axes:])))
    if 0 in shape:
        return flip(draw)
    codes = (0,) * joined_axes + (-1,) if draw.flag() else new
    return operator("reshape", [draw.real(*shape)], lambda x: x.reshape(new), shape=codes)


def diagonal(draw):
    shape, k = draw.shape(1, 3, empty=0), draw.integer(-2, 2)
    if len(shape) == 1:
        size = min(shape[0], 300)
        return operator("diag", [draw.real(size)], lambda x: moved(x, lambda a: np.diag(a + 1, k) - 1), k=k)
    k = min(max(k, 1 - shape[0]), shape[1] - 1)
    return operator("diag", [draw.real(*shape)], lambda x: moved(x, lambda a: np.diagonal(a, k, 0, 1)), k=k)


def chosen(draw):
    shape = draw.shape(1, 4)
    condition = draw.whole(0, 1, shape, "float32")

    def where(c, x, y):
        c = (c != 0) * 1.0
        return x * c + y * (1 - c)

    return operator("where", [condition, draw.real(*shape), draw.real(*shape)], where, dtypes=("float32",))


def cast(draw):
    shape, to = draw.shape(0, 4), draw.pick(["float32", "float64"])
    return operator("cast", [draw.real(*shape)], lambda x: x * 1.0, dtype=to, dtypes=(to,))


MAKERS = [transpose, transpose, swapaxes, part, part, part_of_axis, part_like, crop, concat, concat, stack, split, tile, repeat,
          flip, pad, blocks, reshape, diagonal, chosen, cast]  # fmt: skip
